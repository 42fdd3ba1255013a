"""Single damages of a file, and their results."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.damage._run import KINDS, Graded, Kind, grade, make, opened, outcome, scores_by_id

FILES: Final = (
    *(
        "votes.jsonl",
        "items.jsonl",
        "dataset.jsonl",
        "prompts.jsonl",
        "manifest.json",
        "dataset.sums",
        "lock",
    ),
)

Change = Callable[[bytes, random.Random], bytes]


def _lines(content: bytes) -> list[bytes]:
    return content.splitlines(keepends=True)


def _flip_bit(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def _change_digit(content: bytes, rng: random.Random) -> bytes:
    at = rng.choice([found.start() for found in re.finditer(rb"\d", content)])
    digit = str((int(content[at : at + 1]) + rng.randrange(1, 10)) % 10).encode("ascii")
    return content[:at] + digit + content[at + 1 :]


def _delete_line(content: bytes, rng: random.Random) -> bytes:
    lines = _lines(content)
    del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def _repeat_line(content: bytes, rng: random.Random) -> bytes:
    lines = _lines(content)
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return b"".join(lines)


def _swap_lines(content: bytes, rng: random.Random) -> bytes:
    lines = _lines(content)
    if len(lines) > 1:
        one, two = rng.sample(range(len(lines)), 2)
        lines[one], lines[two] = lines[two], lines[one]
    return b"".join(lines)


def _truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def _truncate_at_line(content: bytes, rng: random.Random) -> bytes:
    lines = _lines(content)
    return b"".join(lines[: rng.randrange(len(lines))])


def _insert_bytes(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.randbytes(rng.randrange(1, 9)) + content[at:]


def _zero_range(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    size = min(rng.randrange(1, 400), len(content) - at)
    return content[:at] + bytes(size) + content[at + size :]


def _forge_number(content: bytes, rng: random.Random) -> bytes:
    """Change a number in a line that stays valid JSON: a score, a weight or a value."""
    lines = _lines(content)
    wanted = [n for n, line in enumerate(lines) if re.search(rb'"(?:score|weight|value|cost)":', line)]
    if not wanted:
        return _change_digit(content, rng)
    at = rng.choice(wanted)
    lines[at] = re.sub(rb'("(?:score|weight|value|cost)": ?)-?[\d.]+', rb"\g<1>0.99", lines[at], count=1)
    return b"".join(lines)


def _change_verdict(content: bytes, rng: random.Random) -> bytes:
    found = list(re.finditer(rb'"(?:UNMET|MET)"', content))
    if not found:
        return _change_digit(content, rng)
    one = rng.choice(found)
    return content[: one.start()] + (b'"MET"' if one[0] == b'"UNMET"' else b'"UNMET"') + content[one.end() :]


CHANGES: Final[dict[str, Change]] = {
    "bit flipped": _flip_bit,
    "digit changed": _change_digit,
    "line deleted": _delete_line,
    "line repeated": _repeat_line,
    "lines swapped": _swap_lines,
    "cut anywhere": _truncate,
    "cut after a line": _truncate_at_line,
    "bytes inserted": _insert_bytes,
    "range zeroed": _zero_range,
    "number forged": _forge_number,
    "verdict changed": _change_verdict,
}


class _Reference(NamedTuple):
    """An undamaged run of a kind.

    Attributes:
        folder: Its folder.
        opened: Its outcome after opening.
        resumed: Its outcome after resuming.
        asked: Number of calls of resuming it.
        scores: By item, the allowed scores: after opening and after resuming.
    """

    folder: Path
    opened: dict[str, Any]
    resumed: dict[str, Any]
    asked: int
    scores: dict[str, tuple[float | None, float | None]]


@dataclass
class Tally:
    """Results of damages.

    Attributes:
        damages: Number by file and change.
        opened: Number of openings by result: identical, reported, refused, silent.
        resumed: Number of resumptions by result.
        wrong_scores: Damages after which the score of an item differs from the undamaged run.
        lost: Votes that damages destroyed.
        asked_again: Calls that resuming made beyond those that the undamaged run makes.
        faults: What was wrong, in words.
    """

    damages: Counter[str] = field(default_factory=Counter)
    opened: Counter[str] = field(default_factory=Counter)
    resumed: Counter[str] = field(default_factory=Counter)
    wrong_scores: int = 0
    asked_again: int = 0
    lost: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the results of other damages."""
        self.damages += other.damages
        self.opened += other.opened
        self.resumed += other.resumed
        self.wrong_scores += other.wrong_scores
        self.lost += other.lost
        self.asked_again += other.asked_again
        self.faults += other.faults

    def to_dict(self) -> dict[str, Any]:
        """Return the results for JSON."""
        return {name: dict(held) if isinstance(held, Counter) else held for name, held in vars(self).items()}


def damage_runs(numbers: range, seed: int, folder: Path) -> Tally:
    """Damage runs, each once, and open and resume them.

    Args:
        numbers: Numbers of the damages in the order of the seed.
        seed: Seed of the damages.
        folder: Folder of the runs.
    """
    references = {kind: _reference(folder / kind, kind) for kind in KINDS}
    tally = Tally()
    for number, (kind, file, name) in enumerate(islice(_cases(seed), numbers.stop)):
        if number in numbers:
            rng = random.Random(f"{seed}/{number}")
            _try(folder / "damaged", references[kind], kind, file, name, rng, tally)
    return tally


def _cases(seed: int) -> Iterator[tuple[Kind, str, str]]:
    """Return kinds of runs, files and changes in a shuffled order; logs and dataset are more frequent."""
    rng = random.Random(seed)
    files = (*FILES, "votes.jsonl", "items.jsonl", "dataset.jsonl", "votes.jsonl", "items.jsonl")
    while True:
        cases = [(kind, file, name) for kind in KINDS for file in files for name in CHANGES]
        rng.shuffle(cases)
        yield from cases


def _reference(folder: Path, kind: Kind) -> _Reference:
    folder.mkdir()
    make(folder, kind)
    kept = folder.with_name(f"{kind}-kept")
    shutil.copytree(folder, kept)
    first, again = opened(folder), grade(folder, kind)
    assert first.result is not None and again.result is not None, first.error + again.error
    before, after = dict(scores_by_id(first.result)), dict(scores_by_id(again.result))
    return _Reference(
        folder=kept,
        opened=outcome(first.result, Graded()),
        resumed=outcome(opened(folder).result or again.result, Graded()),
        asked=again.asked,
        scores={item_id: (before.get(item_id), score) for item_id, score in after.items()},
    )


def _try(
    folder: Path, reference: _Reference, kind: Kind, file: str, name: str, rng: random.Random, tally: Tally
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(reference.folder, folder)
    damaged = folder / "run" / file
    whole = damaged.read_bytes()
    content = CHANGES[name](whole, rng) if whole else whole
    if content == whole:
        return
    damaged.write_bytes(content)
    tally.damages[f"{file}: {name}"] += 1
    lost = _lost_votes(reference.folder / "run", damaged.parent)
    tally.lost += lost
    case = f"{kind}, {file}: {name}"
    first = opened(folder)
    tally.opened[_classify(first, reference.opened, reference, file, f"{case}, opened", tally)] += 1
    again = grade(folder, kind)
    tally.resumed[_classify(again, reference.resumed, reference, file, f"{case}, resumed", tally)] += 1
    if again.result is not None:
        tally.asked_again += again.asked - reference.asked
        if again.asked > reference.asked + lost:
            tally.faults.append(f"{case}: {lost} votes lost, {again.asked - reference.asked} asked again")
        after = opened(folder)
        scores = dict(scores_by_id(after.result)) if after.result else None
        if scores != reference.resumed["scored"] or "damaged" in after.messages:
            tally.faults.append(f"{case}: not repaired by resuming: {after.messages}")


def _lost_votes(whole: Path, damaged: Path) -> int:
    """Return the votes of a folder that another folder does not have."""
    before, after = ((one / "votes.jsonl").read_bytes().splitlines() for one in (whole, damaged))
    return len(set(before) - set(after))


def _outcome(found: Graded) -> dict[str, Any] | None:
    return None if found.result is None else outcome(found.result, found)


def _classify(
    found: Graded, expected: dict[str, Any], reference: _Reference, file: str, case: str, tally: Tally
) -> str:
    """Return whether a result is identical, reported, refused, or silently different."""
    outputs = _outcome(found)
    if outputs is None:
        if not found.error:
            tally.faults.append(f"{case}: neither a result nor an error")
        return "refused"
    assert found.result is not None
    for item_id, score in scores_by_id(found.result):
        if score is not None and score not in reference.scores.get(item_id, ()):
            tally.wrong_scores += 1
            tally.faults.append(f"{case}: {item_id} has the score {score}")
    if outputs == expected:
        return "identical"
    if "damaged" in found.messages and file in found.messages:
        return "reported"
    if "unfinished" in found.messages and "unfinished" not in case:
        return "reported as unfinished"
    different = [name for name, output in outputs.items() if output != expected[name]]
    tally.faults.append(f"{case}: silent: {json.dumps(different)}")
    return "silent"
