"""Kill a run with SIGKILL at random points, resume it, and check after each kill what is stored."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.kills._run import (
    CALLS,
    KINDS,
    PARALLEL,
    Key,
    Kind,
    grade,
    leftovers,
    noted,
    outcome,
    run_folder,
    stored_prompts,
    stored_votes,
)

_MOST_KILLS_OF_ONE = 8


@dataclass(kw_only=True)
class Tally:
    """Counts over all kills.

    Attributes:
        kills: Killed processes.
        runs: Runs of these processes; each was resumed until its end.
        died: Kills by time: before the first vote, among votes, or after the last one.
        votes: Votes in the run folder at a kill, summed over kills.
        lost: … of which the next process did not find.
        asked_again: … of which were requested again.
        doubled: Votes that stand twice in a folder.
        calls: Calls made.
        repeated: Calls made again, since they were in flight, or their answer not yet written, at a kill.
        most_repeated: The most of them after one kill; no more than `2 × PARALLEL` can be.
        unequal: Runs whose result is not that of an uninterrupted one.
        leftovers: Files that a killed process left in the folder of a run that ended well.
        faults: What was wrong, in words.
    """

    kills: int = 0
    runs: int = 0
    died: Counter[str] = field(default_factory=Counter)
    votes: int = 0
    lost: int = 0
    asked_again: int = 0
    doubled: int = 0
    calls: int = 0
    repeated: int = 0
    most_repeated: int = 0
    unequal: int = 0
    leftovers: int = 0
    faults: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {**self.__dict__, "died": dict(sorted(self.died.items()))}


class _Reference(NamedTuple):
    """An uninterrupted run: its outcome, the digest of each vote, and its seconds."""

    outcome: list[Any]
    digests: dict[Key, str]
    seconds: float


def kill_runs(kills: int, seed: int, report: Callable[[str], None] = lambda _: None) -> Tally:
    """Kill processes until the number of kills is reached, over as many runs as necessary."""
    tally, drawn = Tally(), random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        # The first process also imports, so its time does not count.
        _reference(Path(name) / "first", "streamed")
        references = {kind: _reference(Path(name) / f"whole-{kind}", kind) for kind in KINDS}
        while tally.kills < kills:
            kind = KINDS[tally.runs % len(KINDS)]
            folder = Path(name) / f"{tally.runs}-{kind}"
            most = min(_MOST_KILLS_OF_ONE, kills - tally.kills)
            _Killed(folder, kind, references[kind], tally).run_to_end(drawn, most)
            shutil.rmtree(folder)
            tally.runs += 1
            report(f"{tally.kills} kills, {tally.runs} runs, {len(tally.faults)} faults")
    return tally


def _reference(folder: Path, kind: Kind) -> _Reference:
    _prepare(folder, kind)
    # Runs in this process, so that forked processes have its imports.
    start = time.perf_counter()
    grade(folder, kind, folder / "notes")
    seconds = time.perf_counter() - start
    path = run_folder(folder, kind)
    return _Reference(outcome(path), _latest(path), seconds)


def _prepare(folder: Path, kind: Kind) -> None:
    folder.mkdir()
    if kind in ("rejudge", "fork") and _wait(_child(folder, "new", changed=False)) != 0:
        raise SystemExit((folder / "trouble").read_text(encoding="utf-8"))
    (folder / "notes").unlink(missing_ok=True)


def _latest(path: Path) -> dict[Key, str]:
    return dict(stored_votes(path))


def _child(folder: Path, kind: Kind, *, changed: bool = True) -> int:
    """Fork a process and return its id; starting Python would take most of the time."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        grade(folder, kind, folder / "notes", changed=changed)
        code = 0
    except BaseException:
        (folder / "trouble").write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        # The copy must not end or write anything of the parent.
        os._exit(code)


def _wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class _Killed:
    """One run, which is killed and resumed until it ends."""

    def __init__(self, folder: Path, kind: Kind, reference: _Reference, tally: Tally) -> None:
        self._folder = folder
        self._kind: Kind = kind
        self._path = run_folder(folder, kind)
        self._reference = reference
        self._tally = tally
        _prepare(folder, kind)
        # A fork starts with the votes of the run that it was forked from.
        self._stored = self._now() or self._stored_in(folder / "run")

    def run_to_end(self, drawn: random.Random, most: int) -> None:
        """Kill up to `most` times, and then let the run end."""
        for _ in range(most):
            left = 1 - len(self._stored) / CALLS
            if not self._once(
                drawn.uniform(0.0, (0.1 + left) * self._reference.seconds), drawn.random() < 0.3
            ):
                break
        # Twice: a finished run makes no call.
        for _ in range(2):
            self._once(None)
        self._check_end()

    def _once(self, seconds: float | None, at_once: bool = True) -> bool:
        """Run a process, kill it after its start or first call, and return whether it was killed."""
        tally, before = self._tally, self._stored
        calls = len(noted(self._folder / "notes"))
        pid = _child(self._folder, self._kind)
        if seconds is not None:
            deadline = time.monotonic() + self._reference.seconds
            while not at_once and len(noted(self._folder / "notes")) == calls and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(seconds)
            os.kill(pid, signal.SIGKILL)
        code = _wait(pid)
        if code not in (0, -signal.SIGKILL):
            self._fault((self._folder / "trouble").read_text(encoding="utf-8"))
        asked = noted(self._folder / "notes")[calls:]
        now = self._now() or before
        tally.calls += len(asked)
        tally.asked_again += self._count("was requested again", before & set(asked))
        tally.lost += self._count("was lost", before - now)
        unstored = [key for key in asked if key not in now]
        if len(unstored) > 2 * PARALLEL:
            self._fault(f"{len(unstored)} of {len(asked)} calls left no vote")
        if len(set(asked)) != len(asked):
            self._fault("a call was made twice by one process")
        self._stored = now
        if code != -signal.SIGKILL:
            return False
        tally.kills += 1
        tally.votes += len(now)
        tally.repeated += len(unstored)
        tally.most_repeated = max(tally.most_repeated, len(unstored))
        tally.died[_where(len(before), len(now))] += 1
        return True

    def _check_end(self) -> None:
        keys = Counter(
            key for key, digest in stored_votes(self._path) if self._reference.digests[key] == digest
        )
        self._tally.doubled += self._count(
            "is stored twice", {key for key, count in keys.items() if count > 1}
        )
        self._count("has no prompt", set(keys) - stored_prompts(self._path))
        found = leftovers(self._folder)
        self._tally.leftovers += len(found)
        if found or {one.name for one in self._folder.glob("run*")} > {"run", self._path.name}:
            runs = sorted(one.name for one in self._folder.glob("run*"))
            self._fault(f"left behind: {sorted(found)} in {runs}")
        if not (self._path / "manifest.json").exists() or outcome(self._path) != self._reference.outcome:
            self._tally.unequal += 1
            self._fault("the result is not that of an uninterrupted run")

    def _now(self) -> set[Key]:
        return self._stored_in(self._path)

    def _stored_in(self, path: Path) -> set[Key]:
        return {key for key, digest in stored_votes(path) if self._reference.digests.get(key) == digest}

    def _count(self, what: str, keys: set[Key]) -> int:
        if keys:
            self._fault(f"{len(keys)} votes, as {sorted(keys)[0]}: each {what}")
        return len(keys)

    def _fault(self, text: str) -> None:
        self._tally.faults.append(f"{self._folder.name}: {text}")


def _where(before: int, now: int) -> str:
    if now == CALLS:
        return "after the last vote"
    return "among votes" if now > before else "before the first vote"
