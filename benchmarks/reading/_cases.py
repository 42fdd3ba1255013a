"""The operations that read stored data into figures, and what takes their place without the library."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd

from autorubric import (
    CriterionGrader,
    DataItem,
    EvalResult,
    JudgeReply,
    Rubric,
    RubricDataset,
    evaluate_sync,
    generate_critiques,
)
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.metrics import (
    bias_report,
    bradley_terry,
    dawid_skene,
    item_analysis,
    judge_report,
    kendall_w,
    panel_audit,
    run_difference,
    variance_components,
)
from benchmarks.critique._pass import teacher

_REASON = "The text says so in its second sentence, as the requirement asks."


class Case(NamedTuple):
    """An operation, what replaces it without the library, and the wanted ratio of their CPU times."""

    title: str
    ours: Callable[[], Any]
    bare_title: str
    bare: Callable[[], Any]
    goal: float


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


def _answer(judge_id: str, item_id: str, criterion: str) -> str:
    return "MET" if crc32(f"{judge_id} {item_id} {criterion}".encode("ascii")) % 10 < 6 else "UNMET"


def _judge(judge_id: str, *, is_async: bool) -> FunctionJudge:
    def answer(request: JudgeRequest) -> JudgeReply:
        answer = _answer(judge_id, request.item_id or "", request.criterion.name or "")
        return JudgeReply(answer=answer, reason=_REASON)

    async def answer_async(request: JudgeRequest) -> JudgeReply:
        return answer(request)

    return FunctionJudge(function=answer_async if is_async else answer, judge_id=judge_id)


def write_run(folder: Path, name: str, n_items: int, judges: Sequence[str], *, is_async: bool = True) -> Path:
    """Grade a dataset with functions as judges and return the run's folder."""
    grader = CriterionGrader(judges=[_judge(one, is_async=is_async) for one in judges])
    options: dict[str, Any] = {"experiments_dir": folder, "show_progress": False, "store_prompts": False}
    return evaluate_sync(_dataset(n_items), grader, experiment_name=name, **options).experiment_dir


def _json_lines(path: Path) -> list[Any]:
    with path.open("rb") as file:
        return [json.loads(line) for line in file]


def run_cases(folder: Path, n_items: int) -> list[Case]:
    """Return the cases about a stored run; each opens the run again, except for those after the first."""
    run, other = (write_run(folder, name, n_items, judges) for name, judges in (("a", "xyz"), ("b", "uvw")))
    kept = EvalResult.from_experiment(run)
    frame = kept.votes_table()
    votes = ("json.loads of each line of votes.jsonl", lambda: _json_lines(run / "votes.jsonl"))
    items = ("json.loads of each line of items.jsonl", lambda: _json_lines(run / "items.jsonl"))
    csv = ("pandas to_csv of the same table", lambda: frame.to_csv(index=False))

    def opened(*, snapshot: bool = True) -> EvalResult:
        if not snapshot:
            (run / "votes.snapshot").unlink(missing_ok=True)
        return EvalResult.from_experiment(run)

    def other_run() -> EvalResult:
        return EvalResult.from_experiment(other)

    def metrics() -> object:
        return opened(snapshot=False).compute_metrics(bootstrap=True, per_judge=True)

    cases = [
        Case("votes table, without a snapshot", lambda: opened(snapshot=False).votes_table(), *votes, 0.45),
        Case("votes table, from a snapshot", lambda: opened().votes_table(), *votes, 0.45),
        Case("votes table, again", kept.votes_table, *votes, 0.05),
        Case("compute_metrics(bootstrap, per_judge), without a snapshot", metrics, *votes, 0.7),
        Case("scores_table", lambda: opened().scores_table(), *items, 5.0),
        Case("iterate over item_results", lambda: [one.report for one in opened().item_results], *votes, 0.9),
        Case("export of votes, CSV", lambda: kept.export("csv", table="votes"), *csv, 2.7),
        Case("export of votes, JSONL", lambda: kept.export("jsonl", table="votes"), *csv, 2.7),
        Case("HTML report", lambda: opened().to_html(folder / "page.html"), *votes, 3.6),
        Case(
            "run_difference", lambda: run_difference(opened(), EvalResult.from_experiment(other)), *votes, 0.9
        ),
    ]
    audits: Any = (judge_report, panel_audit, bias_report, item_analysis, variance_components)
    after = [Case(f"{one.__name__}, after the first", partial(one, kept), *votes, 0.45) for one in audits]
    return [*cases, *after]


def grading_cases(folder: Path, n_items: int) -> list[Case]:
    """Return the cases that write: a run of three functions, and a critique pass."""
    numbers = iter(range(1_000_000))

    def evaluate_functions(*, is_async: bool) -> None:
        write_run(folder, f"functions-{next(numbers)}", n_items, "xyz", is_async=is_async)

    def loop() -> None:
        with (folder / "loop.jsonl").open("w", encoding="utf-8") as file:
            for item in _dataset(n_items).items:
                for criterion in (f"c{at}" for at in range(5)):
                    for judge_id in "xyz":
                        answer = _answer(judge_id, item.id or "", criterion)
                        file.write(
                            json.dumps({"item": item.id, "criterion": criterion, "answer": answer}) + "\n"
                        )

    bare = ("a loop with json.dumps", loop)
    return [
        Case("evaluate, synchronous functions", partial(evaluate_functions, is_async=False), *bare, 5.5),
        Case("evaluate, async functions", partial(evaluate_functions, is_async=True), *bare, 5.5),
        _critique_case(folder, n_items, numbers),
    ]


def _critique_case(folder: Path, n_drafts: int, numbers: Iterator[int]) -> Case:
    drafts = folder / "drafts.jsonl"
    output = {"plan": [{"text": "Walk along the river. " * 20}]}
    rows = [{"id": f"d{at}", "prompt": "Plan.", "output": output, "contract": {}} for at in range(n_drafts)]
    drafts.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def critique() -> None:
        generate_critiques(drafts, folder / f"critiques-{next(numbers)}", teacher)

    def bare() -> None:
        lines = [json.loads(line) for line in drafts.read_text(encoding="utf-8").splitlines()]
        (folder / "copy.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")

    return Case("critique pass, async teacher", critique, "json.loads and json.dumps", bare, 15.6)


def data_cases(folder: Path, n_rows: int) -> list[Case]:
    """Return the cases about dataset files, DataFrames and label tables."""
    dataset = _dataset(n_rows)
    files = {suffix: folder / f"items.{suffix}" for suffix in ("csv", "parquet", "jsonl")}
    for path in files.values():
        dataset.to_file(path)
    frame, rubric = dataset.to_dataframe(), _rubric()
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
            {"csv": 30.0, "parquet": 24.0, "jsonl": 2.4}[suffix],
        )
        for suffix, path in files.items()
    ]
    cases.append(
        Case(
            "RubricDataset.from_dataframe",
            lambda: RubricDataset.from_dataframe(frame, rubric=rubric),
            "frame.to_dict",
            lambda: frame.to_dict("records"),
            1.7,
        )
    )
    return cases


def table_cases(n_rows: int) -> list[Case]:
    """Return the cases about tables of labels, games and ratings."""
    return [
        _label_case(8 * n_rows),
        _report_case(),
        _games_case(n_rows),
        _ranks_case(),
        _reliability_case(n_rows),
    ]


def _label_case(n_rows: int) -> Case:
    rng = random.Random(1)
    labels = pd.DataFrame(
        [
            (f"i{item}", f"c{criterion}", rater, kind, rng.choice(("MET", "UNMET")))
            for item in range(n_rows // 20)
            for criterion in range(5)
            for rater, kind in (("ann", "human"), ("x", "judge"), ("y", "judge"), ("z", "judge"))
        ],
        columns=["item_id", "criterion", "rater", "rater_kind", "label"],
    )
    pivot = (
        "pandas pivot",
        lambda: labels.pivot(index=["item_id", "criterion"], columns="rater", values="label"),
    )
    return Case(f"judge_report of {len(labels):,} labels", lambda: judge_report(labels), *pivot, 12.0)


def _report_case() -> Case:
    """Return the case of 200 criteria, 200 items and 6 judges; the baseline resamples one figure of each."""
    rng = np.random.default_rng(1)
    n_criteria, n_items, judges = 200, 200, "abcdef"
    truth = rng.random((n_criteria, n_items)) < 0.5
    agrees = rng.random((n_criteria, len(judges), n_items)) < 0.8
    met = {"truth": truth, **{judge: agrees[:, at] == truth for at, judge in enumerate(judges)}}
    raters = {rater: "human" if rater == "truth" else "judge" for rater in met}
    labels = pd.DataFrame(
        [
            (f"i{item}", f"c{criterion}", rater, kind, "MET" if met[rater][criterion, item] else "UNMET")
            for criterion in range(n_criteria)
            for item in range(n_items)
            for rater, kind in raters.items()
        ],
        columns=["item_id", "criterion", "rater", "rater_kind", "label"],
    )

    def bare() -> list[Any]:
        drawn = np.random.default_rng(0)
        samples = [drawn.integers(0, n_items, (1000, n_items)) for _ in range(n_criteria)]
        return [agrees[at, judge][one].mean(axis=1) for at, one in enumerate(samples) for judge in range(6)]

    return Case(
        "judge_report, 200 criteria × 200 items × 6 judges",
        lambda: judge_report(labels),
        "a numpy bootstrap of each judge's accuracy",
        bare,
        4.2,
    )


def _games_case(n_games: int) -> Case:
    rng = np.random.default_rng(1)
    n_players = max(2, n_games // 100)
    skill = rng.normal(size=n_players)
    one = rng.integers(0, n_players, n_games)
    two = (one + rng.integers(1, n_players, n_games)) % n_players
    is_won = rng.random(n_games) < 1 / (1 + np.exp(skill[two] - skill[one]))
    winner, loser = np.where(is_won, one, two), np.where(is_won, two, one)
    played = [(f"p{a}", f"p{b}", f"p{c}") for a, b, c in zip(one, two, winner, strict=True)]

    def bare() -> Any:
        wins, strengths = np.bincount(winner, minlength=n_players), np.ones(n_players)
        for _ in range(10_000):
            shares = 1 / (strengths[winner] + strengths[loser])
            found = wins / (
                np.bincount(winner, shares, minlength=n_players)
                + np.bincount(loser, shares, minlength=n_players)
            )
            found /= found.mean()
            if np.abs(found - strengths).max() < 1e-6:
                break
            strengths = found
        return strengths

    title = f"bradley_terry, {n_players:,} players, {n_games:,} games"
    return Case(title, lambda: bradley_terry(played), "minorization–maximization in numpy", bare, 1.85)


def _ranks_case() -> Case:
    ratings = np.random.default_rng(1).integers(1, 8, (20_000, 5)).astype(float)

    def bare() -> list[Any]:
        drawn = np.random.default_rng(0)
        samples = (ratings[drawn.integers(0, len(ratings), len(ratings))].sum(axis=1) for _ in range(1000))
        return [np.var(one) for one in samples]

    return Case(
        "kendall_w, 20,000 × 5", lambda: kendall_w(ratings), "1,000 resamples of the rows' sums", bare, 0.73
    )


def _reliability_case(n_votes: int) -> Case:
    """Return the case of 40 raters who give each item five of eight labels; the baseline is EM in numpy."""
    rng = np.random.default_rng(1)
    n_items, n_raters, k = n_votes // 5, 40, 8
    truth = rng.integers(0, k, n_items)
    ratings = np.full((n_items, n_raters), -1)
    for place in range(5):
        rater = (rng.integers(0, 8, n_items) + 8 * place) % n_raters
        ratings[np.arange(n_items), rater] = np.where(
            rng.random(n_items) < 0.7, truth, rng.integers(0, k, n_items)
        )
    item, rater = np.nonzero(ratings >= 0)
    label = ratings[item, rater]

    def bare() -> Any:
        likely = np.zeros((n_items, k))
        np.add.at(likely, (item, label), 1.0)
        likely /= likely.sum(axis=1, keepdims=True)
        before = -np.inf
        for _ in range(1000):
            errors = np.full((n_raters, k, k), 1e-300)
            np.add.at(errors.transpose(0, 2, 1), (rater, label), likely[item])
            errors /= errors.sum(axis=2, keepdims=True)
            logs = np.tile(np.log(likely.mean(axis=0)), (n_items, 1))
            np.add.at(logs, item, np.log(errors)[rater, :, label])
            top = logs.max(axis=1, keepdims=True)
            sums = np.exp(logs - top).sum(axis=1, keepdims=True)
            likely, found = np.exp(logs - top) / sums, float((top + np.log(sums)).sum())
            if abs(found - before) < 1e-8 * abs(found):
                break
            before = found
        return likely

    title = f"dawid_skene, 40 raters, 8 labels, {n_votes:,} votes"
    return Case(title, lambda: dawid_skene(ratings, labels=k), "EM in numpy", bare, 1.0)
