"""Moves the fragments in `changelog.d` to the end of *Unreleased* in CHANGELOG.md."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_HEAD = "## Unreleased\n"


def assembled(changelog: str, fragments: list[str]) -> str:
    """The changelog with the fragments as the last entries of *Unreleased*."""
    before, head, after = changelog.partition(_HEAD)
    if not head:
        raise SystemExit(f"CHANGELOG.md has no line {_HEAD.strip()!r}")
    next_version = re.search(r"^## ", after, re.MULTILINE)
    end = next_version.start() if next_version else len(after)
    unreleased = after[:end].rstrip("\n") + "\n" + "".join(fragments)
    return before + head + unreleased + ("\n" + after[end:] if next_version else "")


def main() -> None:
    """Writes the changelog and deletes what it holds now."""
    paths = sorted((ROOT / "changelog.d").glob("*.md"))
    changelog = ROOT / "CHANGELOG.md"
    told = assembled(
        changelog.read_text(encoding="utf-8"), [path.read_text(encoding="utf-8") for path in paths]
    )
    changelog.write_text(told, encoding="utf-8")
    for path in paths:
        path.unlink()


if __name__ == "__main__":
    main()
