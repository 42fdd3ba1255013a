"""Coverage of `decision(judge_error=run)`, and its cost in UNDECIDED: `python -m benchmarks.decision`.

An alternative by criterion is computed next to it. Exits with status 1 if
`decision` covers less than 93 % in a cell.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from autorubric import Criterion, CriterionGrader, DataItem, Rubric, RubricDataset, evaluate_sync
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.metrics import decision
from benchmarks._output import markdown, print_results

CRITERIA, LABELLED, NEW = 10, 100, 50
SENSITIVITY, SPECIFICITY, CORRELATION = 0.85, 0.8, 0.5
THRESHOLD, FLOOR = 0.7, 0.93
HETEROGENEITY: dict[str, tuple[float, float] | None] = {
    "none": None,
    "beta(2, 2)": (2.0, 2.0),
    "beta(.7, .7)": (0.7, 0.7),
}
BASE_RATE = 0.6

Cells = npt.NDArray[np.bool_]


class Drawn(NamedTuple):
    """Truth `(n, criteria)` and verdicts `(n, criteria, judges)`."""

    truth: Cells
    said: Cells


@dataclass(frozen=True, slots=True)
class Tally:
    """Proportions over the new items of all replicates, for one interval."""

    interval: str
    judges: int
    items: str
    decisions: int
    coverage: float
    width: float
    undecided: float
    wrong_pass: float
    wrong_fail: float


def drawn(shape: tuple[float, float] | None, judges: int, n: int, rng: np.random.Generator) -> Drawn:
    """Draw items with individual probabilities of MET, and judges with correlated errors."""
    meets = np.full(n, BASE_RATE) if shape is None else rng.beta(*shape, n)
    truth = rng.random((n, CRITERIA)) < meets[:, None]
    shared, own = rng.normal(size=(n, CRITERIA, 1)), rng.normal(size=(n, CRITERIA, judges))
    latent = ndtr(np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own)
    wrong = latent < np.where(truth, 1 - SENSITIVITY, 1 - SPECIFICITY)[..., None]
    return Drawn(truth, wrong ^ truth[..., None])


def ends_of_decisions(sample: Drawn, folder: Path) -> Iterator[tuple[float, float]]:
    """Return the intervals of `decision` for the items after the labelled ones."""
    names = [f"c{at}" for at in range(CRITERIA)]
    rubric = Rubric([Criterion(name=name, requirement="It holds.", weight=1.0) for name in names])

    def labels(item: int) -> dict[str, str] | None:
        if item >= LABELLED:
            return None
        return {name: "MET" if sample.truth[item, at] else "UNMET" for at, name in enumerate(names)}

    def judge(which: int) -> FunctionJudge:
        def function(request: JudgeRequest) -> str:
            cell = int(request.submission.text or ""), names.index(request.criterion.name or ""), which
            return "MET" if sample.said[cell] else "UNMET"

        return FunctionJudge(function=function, judge_id=f"judge {which}")

    n = len(sample.truth)
    items = [DataItem(id=str(item), submission=str(item), ground_truth=labels(item)) for item in range(n)]
    run = evaluate_sync(
        RubricDataset(name="simulated", rubric=rubric, items=items),
        CriterionGrader(judges=[judge(which) for which in range(sample.said.shape[2])]),
        experiments_dir=folder,
        show_progress=False,
    )
    for item in range(LABELLED, n):
        report = run.item_results[item].report
        assert report is not None
        found = decision(report, threshold=THRESHOLD, judge_error=run)
        assert found.low is not None and found.high is not None
        yield found.low, found.high


def ends_by_criterion(sample: Drawn, rng: np.random.Generator) -> Iterator[tuple[float, float]]:
    """Return alternative intervals: true answers drawn by criterion from counts of labelled items."""
    panel = sample.said.sum(2) * 2 > sample.said.shape[2]
    truth, judged = sample.truth[:LABELLED], panel[:LABELLED]
    for item in range(LABELLED, len(panel)):
        alike = judged == panel[item]
        met = (alike & truth).sum(0) + 0.5
        unmet = (alike & ~truth).sum(0) + 0.5
        shares = rng.beta(met, unmet, size=(1000, CRITERIA))
        scores = (rng.random(shares.shape) < shares).mean(1)
        low, high = np.quantile(scores, (0.025, 0.975))
        yield float(low), float(high)


def tally(items: str, judges: int, replicates: int, seed: int) -> list[Tally]:
    """Return the results of both intervals in one cell."""
    rng = np.random.default_rng([seed, judges, list(HETEROGENEITY).index(items)])
    rows: dict[str, list[tuple[float, float, float]]] = {"by criterion (before)": [], "decision": []}
    for _ in range(replicates):
        sample = drawn(HETEROGENEITY[items], judges, LABELLED + NEW, rng)
        true = sample.truth[LABELLED:].mean(1).tolist()
        with TemporaryDirectory() as folder:
            ends = list(ends_of_decisions(sample, Path(folder)))
        pairs = (("decision", ends), ("by criterion (before)", list(ends_by_criterion(sample, rng))))
        for name, found in pairs:
            rows[name] += [(score, low, high) for score, (low, high) in zip(true, found, strict=True)]
    return [_tally(name, judges, items, np.array(found)) for name, found in rows.items()]


def _tally(name: str, judges: int, items: str, rows: npt.NDArray[np.float64]) -> Tally:
    true, low, high = rows.T
    slack = 1e-9
    passed, failed = low >= THRESHOLD - slack, high < THRESHOLD - slack
    passes = true >= THRESHOLD - slack
    return Tally(
        name,
        judges,
        items,
        len(rows),
        float(((low - slack <= true) & (true <= high + slack)).mean()),
        float((high - low).mean()),
        float((~passed & ~failed).mean()),
        float((passed & ~passes).mean()),
        float((failed & passes).mean()),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decision", description=__doc__)
    parser.add_argument("--replicates", type=int, default=20, help="labelled runs per cell (default 20)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    found = [
        one
        for judges in (1, 3)
        for items in HETEROGENEITY
        for one in tally(items, judges, given.replicates, given.seed)
    ]
    shares_of = ("coverage", "width", "UNDECIDED", "wrong PASS", "wrong FAIL")
    heads = ("judges", "items differ", "interval", *shares_of)
    lines = [heads, ("--:", "---", "---", *["--:"] * 5)]
    for one in found:
        shares = (one.coverage, one.width, one.undecided, one.wrong_pass, one.wrong_fail)
        lines.append((str(one.judges), one.items, one.interval, *(f"{share:.3f}" for share in shares)))
    print_results(markdown(lines), [asdict(one) for one in found], given.json)
    return int(any(one.coverage < FLOOR for one in found if one.interval == "decision"))


if __name__ == "__main__":
    sys.exit(main())
