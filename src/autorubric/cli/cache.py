"""The `autorubric cache stats` and `autorubric cache clear` commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from autorubric.cli.command import Exit, command_group, guarded, notice
from autorubric.cli.options import JsonFlag, option
from autorubric.cli.output import print_json, print_result
from autorubric.llm.cache import CacheStats, ReplyCache
from autorubric.llm.config import LLMConfig
from autorubric.support.blocks import ScalarBlock

_DEFAULT = LLMConfig.model_construct(model="").cache_dir
CacheFolder = Annotated[Path, option("--cache-dir", "DIR", f"Cache folder.  [default: {_DEFAULT}]")]

cache_app = command_group("Show or clear the cache of model responses.", "autorubric cache stats")


@cache_app.command("stats")
@guarded
def show_stats(cache_dir: CacheFolder = _DEFAULT, as_json: JsonFlag = False) -> Exit:
    """Show the number of cached replies, their total size and the cache folder.

    With --json, prints an object with the keys path, entries, size_bytes and max_bytes.

    \b
    Example:
      autorubric cache stats --cache-dir .autorubric_cache
    """
    stats = CacheStats(path=str(cache_dir))
    found = _existing(cache_dir)
    if found is not None:
        stats = found.stats()
        found.close()
    figures = {name: getattr(stats, name) for name in ("path", "entries", "size_bytes", "max_bytes")}
    block = ScalarBlock(title="Cached replies", figures=tuple(figures.items()))
    print_result(lambda: figures, lambda: [block], as_json=as_json)
    return Exit.DONE


@cache_app.command("clear")
@guarded
def clear(cache_dir: CacheFolder = _DEFAULT, as_json: JsonFlag = False) -> Exit:
    """Remove all cached replies.

    With --json, prints an object with the keys path and removed.

    \b
    Example:
      autorubric cache clear --cache-dir .autorubric_cache
    """
    found = _existing(cache_dir)
    removed = 0
    if found is not None:
        removed = found.clear()
        found.close()
    if as_json:
        print_json({"path": str(found.path if found else cache_dir), "removed": removed})
    else:
        notice(f"Removed {removed} replies from {cache_dir}.")
    return Exit.DONE


def _existing(folder: Path) -> ReplyCache | None:
    """Return the cache in a folder; None if there is no cache, because opening it would create one."""
    found = ReplyCache(folder)
    return found if found.path.exists() else None
