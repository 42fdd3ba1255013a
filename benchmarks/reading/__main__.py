"""CPU time from stored data to figures, next to bare baselines: `python -m benchmarks.reading`."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pandas as pd

from autorubric import CriterionGrader, DataItem, EvalResult, JudgeReply, Rubric, RubricDataset, evaluate_sync
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.metrics import (
    bias_report,
    bradley_terry,
    item_analysis,
    judge_report,
    panel_audit,
    run_difference,
    variance_components,
)
from benchmarks._output import markdown, print_results

_REASON = "The text says so in its second sentence, as the requirement asks."


class Case(NamedTuple):
    """An operation, and what is done in its place without the library."""

    title: str
    ours: Callable[[], Any]
    bare_title: str
    bare: Callable[[], Any]


def _rubric() -> Rubric:
    return Rubric(
        [{"name": f"c{at}", "requirement": f"It states point {at}.", "weight": at + 1} for at in range(5)]
    )


def _dataset(n_items: int) -> RubricDataset:
    rng = random.Random(0)
    items = [
        DataItem(
            id=f"i{at}",
            submission=f"Text number {at} about rivers. " * 5,
            ground_truth=[rng.choice(("MET", "UNMET")) for _ in range(5)],
        )
        for at in range(n_items)
    ]
    return RubricDataset(name="reading", prompt="Write.", rubric=_rubric(), items=items)


def _judge(judge_id: str) -> FunctionJudge:
    async def answer(request: JudgeRequest) -> JudgeReply:
        rng = random.Random(f"{judge_id} {request.item_id} {request.criterion.name}")
        return JudgeReply(answer="MET" if rng.random() < 0.6 else "UNMET", reason=_REASON)

    return FunctionJudge(function=answer, judge_id=judge_id)


def write_run(folder: Path, name: str, n_items: int, judges: Sequence[str]) -> Path:
    """Grade a dataset with functions as judges and return the run's folder."""
    grader = CriterionGrader(judges=[_judge(one) for one in judges])
    options: dict[str, Any] = {"experiments_dir": folder, "show_progress": False, "store_prompts": False}
    return evaluate_sync(_dataset(n_items), grader, experiment_name=name, **options).experiment_dir


def _json_lines(path: Path) -> list[Any]:
    with path.open("rb") as file:
        return [json.loads(line) for line in file]


def run_cases(folder: Path, n_items: int) -> list[Case]:
    """Return the cases about a stored run; each opens the run again, except for those after the first."""
    run, other = (write_run(folder, name, n_items, judges) for name, judges in (("a", "xyz"), ("b", "uvw")))
    kept = EvalResult.from_experiment(run)
    kept.votes_table()
    frame = kept.votes_table()
    votes = ("json.loads of each line of votes.jsonl", lambda: _json_lines(run / "votes.jsonl"))
    items = ("json.loads of each line of items.jsonl", lambda: _json_lines(run / "items.jsonl"))
    csv = ("pandas to_csv of the same table", lambda: frame.to_csv(index=False))

    def opened() -> EvalResult:
        return EvalResult.from_experiment(run)

    cases = [
        Case("votes table, first time", lambda: opened().votes_table(), *votes),
        Case("votes table, again", kept.votes_table, *votes),
        Case("compute_metrics(bootstrap, per_judge), first", lambda: _metrics(opened()), *votes),
        Case("scores_table", lambda: opened().scores_table(), *items),
        Case("iterate over item_results", lambda: [one.report for one in opened().item_results], *votes),
        Case("export of votes, CSV", lambda: kept.export("csv", table="votes"), *csv),
        Case("export of votes, JSONL", lambda: kept.export("jsonl", table="votes"), *csv),
        Case("HTML report", lambda: opened().to_html(folder / "page.html"), *votes),
        Case("run_difference", lambda: run_difference(opened(), EvalResult.from_experiment(other)), *votes),
    ]
    audits: Any = (judge_report, panel_audit, bias_report, item_analysis, variance_components)
    return [*cases, *(Case(f"{one.__name__}, after the first", partial(one, kept), *votes) for one in audits)]


def _metrics(result: EvalResult) -> object:
    return result.compute_metrics(bootstrap=True, per_judge=True)


def data_cases(folder: Path, n_rows: int) -> list[Case]:
    """Return the cases about dataset files, DataFrames and label tables."""
    dataset = _dataset(n_rows)
    files = {suffix: folder / f"items.{suffix}" for suffix in ("csv", "parquet", "jsonl")}
    for path in files.values():
        dataset.to_file(path)
    frame, rubric, rng = dataset.to_dataframe(), _rubric(), random.Random(1)
    bare: dict[str, Callable[[], Any]] = {
        "csv": lambda: pd.read_csv(files["csv"]),
        "parquet": lambda: pd.read_parquet(files["parquet"]),
        "jsonl": lambda: _json_lines(files["jsonl"]),
    }
    cases = [
        Case(
            f"RubricDataset.from_file, {suffix}",
            partial(RubricDataset.from_file, path, rubric=None if suffix == "jsonl" else rubric),
            "json.loads" if suffix == "jsonl" else "pandas",
            bare[suffix],
        )
        for suffix, path in files.items()
    ]
    cases.append(
        Case(
            "RubricDataset.from_dataframe",
            lambda: RubricDataset.from_dataframe(frame, rubric=rubric),
            "frame.to_dict",
            lambda: frame.to_dict("records"),
        )
    )
    labels = pd.DataFrame(
        [
            (f"i{item}", f"c{criterion}", rater, kind, rng.choice(("MET", "UNMET")))
            for item in range(n_rows // 5)
            for criterion in range(5)
            for rater, kind in (("ann", "human"), ("x", "judge"), ("y", "judge"), ("z", "judge"))
        ],
        columns=["item_id", "criterion", "rater", "rater_kind", "label"],
    )
    grouped = ("pandas groupby", lambda: labels.groupby(["criterion", "rater", "label"]).size())
    cases.append(Case("judge_report of a label table", lambda: judge_report(labels), *grouped))
    games = [(f"p{rng.randrange(100)}", f"q{rng.randrange(100)}") for _ in range(n_rows)]
    played = [(a, b, rng.choice((a, b))) for a, b in games]
    cases.append(
        Case(
            "bradley_terry, 200 players",
            lambda: bradley_terry(played, prior=1.0),
            "pandas groupby",
            lambda: pd.DataFrame(played).groupby([0, 1]).size(),
        )
    )
    return cases


def measure(case: Case, repetitions: int) -> dict[str, Any]:
    """Return median CPU seconds of both, in turn, and their ratio."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repetitions):
        for call, found in zip((case.ours, case.bare), times, strict=True):
            start = time.process_time()
            call()
            found.append(time.process_time() - start)
    ours, bare = map(statistics.median, times)
    return {
        "case": case.title,
        "cpu_s": ours,
        "bare": case.bare_title,
        "bare_cpu_s": bare,
        "ratio": ours / bare if bare else None,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print all cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("--items", type=int, default=20_000, help="items of the run (5 criteria, 3 judges)")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of dataset files")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        cases = [*run_cases(folder, given.items), *data_cases(folder, given.rows)]
        found = [measure(case, given.repetitions) for case in cases]
    head = ("operation", "CPU s", "baseline", "CPU s", "ratio")
    lines = [
        (one["case"], f"{one['cpu_s']:.2f}", one["bare"], f"{one['bare_cpu_s']:.2f}", f"{one['ratio']:.2f}")
        for one in found
    ]
    print_results(markdown([head, ("---", "--:", "---", "--:", "--:"), *lines]), found, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
