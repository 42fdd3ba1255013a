"""Passes killed at random points and resumed: `python -m tests.drafts.killing critique FOLDER 100 SEED`.

Every pass is a process of its own, forked from this one, and ended by SIGKILL after a random time. After each
kill the files are looked at, and once a folder is done they are compared with what they held before.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from autorubric import generate_critiques
from autorubric.apps.drafts import TeacherPrompt, refine
from tests.drafts.teachers import critique, draft, read_lines, scored, write_lines

DRAFTS = 60
LATEST_KILL = 0.09
"""Seconds after which a process is killed at the latest, on a machine with nothing else to do."""
LATE_KILLS = 8
"""Kills of a folder that is done."""
OUTCOMES = ("refined", "rejected", "undecided", "errors")


def kill_and_resume(kind: str, folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """What was seen: kills, folders finished, records kept, lost and doubled, torn lines, whole JSON files.

    A manifest or statistics that are not whole JSON raise.
    """
    rng = random.Random(seed)
    seen = {"kills": 0, "folders": 0, "lost": 0, "doubled": 0, "torn": 0, "kept": 0}
    seen |= {"late_kills": 0, "manifests": 0, "stats": 0}
    while seen["kills"] < kills:
        _one_folder(kind, folder / f"{kind}-{seen['folders']}", kills, rng, seen)
        seen["folders"] += 1
    return seen


def _one_folder(kind: str, folder: Path, kills: int, rng: random.Random, seen: dict[str, int]) -> None:
    folder.mkdir(parents=True)
    write_lines(folder / "drafts.jsonl", [draft(number, output=f"text {number}") for number in range(DRAFTS)])
    rows = [{"id": f"draft_{n}", "critique": critique(id=f"draft_{n}")} for n in range(DRAFTS)]
    write_lines(folder / "given.jsonl", rows)
    work, names, stem = KINDS[kind]
    held: dict[str, dict[str, Any]] = {}
    latest = LATEST_KILL
    while True:
        attempt, before = rng.randrange(1 << 30), len(held)
        finished = _run_and_kill(partial(work, folder, attempt), rng.uniform(0.005, latest))
        for name in names:
            _note(folder / name, held, seen)
        _read_whole(folder, stem, seen)
        if finished:
            break
        # Where the machine is busy, a process needs longer before it has written anything.
        latest *= 1.0 if len(held) > before else 1.3
        seen["kills"] += 1
        if seen["kills"] >= kills:
            work(folder, 0)
            break
    work(folder, 0)
    _read_whole(folder, stem, seen)
    for _ in range(LATE_KILLS):
        # With nothing left to ask, all that a process does is write manifest and statistics over those there.
        seen["late_kills"] += not _run_and_kill(partial(work, folder, 0), rng.uniform(0.002, LATEST_KILL / 2))
        _read_whole(folder, stem, seen)
    records = [record for name in names for record in read_lines(folder / name)]
    ids = [record["id"] for record in records]
    seen["doubled"] += len(ids) - len(set(ids))
    seen["lost"] += DRAFTS - len(set(ids))
    # What had come out well is still there as it was.
    final = {record["id"]: record for record in records}
    seen["lost"] += sum(final.get(key) != record for key, record in held.items())
    seen["kept"] += len(held)


def _run_and_kill(work: Callable[[], None], seconds: float) -> bool:
    """Whether the work ended before it was killed."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _note(path: Path, held: dict[str, dict[str, Any]], seen: dict[str, int]) -> None:
    """Notes every whole record of a file that came out well."""
    if not path.exists():
        return
    content = path.read_bytes()
    seen["torn"] += bool(content) and not content.endswith(b"\n")
    for line in content.split(b"\n")[:-1]:
        record = json.loads(line)
        if record["critique"] is not None and not record.get("error"):
            seen["doubled"] += held.setdefault(record["id"], record) != record


def _read_whole(folder: Path, stem: str, seen: dict[str, int]) -> None:
    """Reads what is written in one piece: as it was before or as it is after, wherever the process ended."""
    for name, of, key in (("manifest", "manifests", "outputs"), ("stats", "stats", "notices")):
        path = folder / f"{stem}_{name}.json"
        if path.exists():
            content = path.read_text(encoding="utf-8")
            assert content.endswith("}\n") and key in json.loads(content), f"{path.name}: {content[:200]!r}"
            seen[of] += 1


def _critique(folder: Path, attempt: int) -> None:
    rng = random.Random(attempt)

    async def teacher(prompt: TeacherPrompt) -> Any:
        await asyncio.sleep(rng.uniform(0, 0.04))
        failed = attempt and rng.random() < 0.2
        return "nothing" if failed else critique(id=prompt.draft_id)

    drafts = folder / "drafts.jsonl"
    retry = attempt % 2 == 0
    generate_critiques(drafts, folder, teacher, resume=True, retry_errors=retry)


def _refine(folder: Path, attempt: int) -> None:
    rng = random.Random(attempt)

    async def teacher(prompt: TeacherPrompt) -> Any:
        await asyncio.sleep(rng.uniform(0, 0.02))
        if attempt and rng.random() < 0.1:
            raise RuntimeError("it failed")
        if prompt.task == "rewrite":
            return f"better {rng.random()}"
        return scored(5, "pass") if rng.random() < 0.7 else scored(1, "reject")

    sources = folder / "given.jsonl", folder / "drafts.jsonl"
    refine(*sources, folder, teacher, resume=True, retry_errors=attempt % 2 == 0)


KINDS: dict[str, tuple[Callable[[Path, int], None], tuple[str, ...], str]] = {
    "critique": (_critique, ("critiques_v1.jsonl",), "critiques_v1"),
    "refine": (_refine, tuple(f"{name}_v1.jsonl" for name in OUTCOMES), "refined_v1"),
}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    kind, folder, kills, seed = sys.argv[1:]
    told = kill_and_resume(kind, Path(folder), int(kills), int(seed))
    sys.stdout.write(json.dumps(told) + "\n")
