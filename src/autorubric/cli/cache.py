"""The `autorubric cache stats` and `autorubric cache clear` commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autorubric.cli.output import Exit, JsonFlag, notice, print_json, report_errors
from autorubric.cli.tables import print_blocks
from autorubric.support.blocks import Cell, ScalarBlock

if TYPE_CHECKING:
    from autorubric.llm.cache import ReplyCache


CacheFolder = Annotated[
    Path,
    typer.Option(
        "--cache-dir", metavar="DIR", help="Cache folder.  [default: .autorubric_cache]", show_default=False
    ),
]
_DEFAULT = Path(".autorubric_cache")

cache_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@cache_app.command("stats")
@report_errors
def stats(cache_dir: CacheFolder = _DEFAULT, as_json: JsonFlag = False) -> Exit:
    """Show the number of cached replies, their total size and the cache folder.

    With --json, prints an object with the keys path, entries, size_bytes and max_bytes.

    \b
    Example:
      autorubric cache stats --cache-dir .autorubric_cache
    """
    found = _open_existing(cache_dir)
    if found is None:
        held: dict[str, Cell] = {"path": str(cache_dir), "entries": 0, "size_bytes": 0, "max_bytes": 0}
    else:
        told = found.stats()
        found.close()
        held = {"path": told.path, "entries": told.entries}
        held |= {"size_bytes": told.size_bytes, "max_bytes": told.max_bytes}
    if as_json:
        print_json(held)
    else:
        print_blocks([ScalarBlock(title="Cached replies", figures=tuple(held.items()))])
    return Exit.DONE


@cache_app.command("clear")
@report_errors
def clear(cache_dir: CacheFolder = _DEFAULT, as_json: JsonFlag = False) -> Exit:
    """Remove all cached replies.

    With --json, prints an object with the keys path and removed.

    \b
    Example:
      autorubric cache clear --cache-dir .autorubric_cache
    """
    found = _open_existing(cache_dir)
    removed = 0
    if found is not None:
        removed = found.clear()
        found.close()
    if as_json:
        print_json({"path": str(found.path if found else cache_dir), "removed": removed})
    else:
        notice(f"Removed {removed} replies from {cache_dir}.")
    return Exit.DONE


def _open_existing(folder: Path) -> ReplyCache | None:
    """Return the cache in a folder; None if there is no cache, because opening it would create one."""
    # Imported late, since it loads pydantic.
    from autorubric.llm.cache import ReplyCache

    found = ReplyCache(folder)
    return found if found.path.exists() else None
