"""Checks that the lower bounds in pyproject.toml are the versions that the lowest resolution installs."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def main(project: Path, lowest: Path) -> int:
    """Print each bound below the version that other packages require, and return 1 if there is one."""
    declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    extras = [one for extra in declared.get("optional-dependencies", {}).values() for one in extra]
    pins = re.findall(r"^([\w.-]+)==([\d.]+)", lowest.read_text(encoding="utf-8"), re.MULTILINE)
    installed = {name.lower(): version for name, version in pins}
    untrue = 0
    for requirement in [*declared["dependencies"], *extras]:
        found = re.match(r"([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement)
        version = found and installed.get(found[1].lower())
        if found and version and not f"{version}.".startswith(f"{found[2]}."):
            found_version = f"the lowest version that can be installed is {version}"
            sys.stdout.write(f"{requirement}: {found_version}; raise the bound\n")
            untrue = 1
    return untrue


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
