"""65 published judges of pairs, each asked in both orders, through comparisons: the published figures."""

from __future__ import annotations

import asyncio
import csv
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from autorubric import CriterionGrader, RecordedJudge, RubricDataset, evaluate_sync
from autorubric.metrics import (
    RankingCriterionMetrics,
    accuracy,
    cohen_kappa,
    judge_report,
    position_consistency,
)
from autorubric.scoring import JudgeVote
from tests.proof.real_data import pairs, read_csv, reference

pytestmark = pytest.mark.shared_data

FIGURES = ("correct_ab", "correct_ba", "correct_both", "equal", "acc_average_pct", "kappa_agreement")


def said(vote: JudgeVote) -> str:
    """What a vote says; the source keeps what it could not read as an answer of its own."""
    return "INVALID" if vote.status == "failed" else str(vote.answer)


def figures(gold: Sequence[str], ab: Sequence[str], ba: Sequence[str]) -> dict[str, float]:
    """The source's figures from what a judge said in either order."""
    n = len(gold)
    right = [accuracy(gold, answers).value or 0.0 for answers in (ab, ba)]
    steady = [x if x == y else "tie" for x, y in zip(ab, ba, strict=True)]
    as_b = [["b" if answer == "INVALID" else answer for answer in answers] for answers in (ab, ba)]
    return {
        "correct_ab": right[0] * n,
        "correct_ba": right[1] * n,
        "correct_both": (accuracy(gold, steady).value or 0.0) * n,
        "equal": (position_consistency(ab, ba).value or 0.0) * n,
        "acc_average_pct": 100 * sum(right) / 2,
        "kappa_agreement": float(cohen_kappa(*as_b)),
    }


async def graded(dataset: RubricDataset, grader: CriterionGrader) -> dict[str, list[JudgeVote]]:
    """The votes on each item, by its id."""
    votes = {}
    for position, item in enumerate(dataset.items):
        item_id = dataset.item_id(position)
        report = await grader.grade(
            item.submission, dataset.get_item_rubric(position), item.prompt, item_id=item_id
        )
        votes[item_id] = report.report[0].votes
    return votes


@pytest.fixture(scope="module")
def llmbar(shared_data: Path) -> RubricDataset:
    """419 pairs, the better one agreed on by the authors."""
    return pairs(shared_data / "llmbar")


@pytest.fixture(scope="module")
def by_rater(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The judges' rows, a file for each evaluator: reading the whole table 65 times would take the time."""
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in read_csv(shared_data / "llmbar" / "labels.csv"):
        if row["rater_type"] == "llm":
            rows[row["rater"].rsplit("@", 1)[0]].append(row)
    folder = tmp_path_factory.mktemp("llmbar")
    for evaluator, own in rows.items():
        with file_of(folder, evaluator).open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, own[0])
            writer.writeheader()
            writer.writerows(own)
    return folder


def file_of(folder: Path, evaluator: str) -> Path:
    return folder / f"{evaluator.replace('/', '--')}.csv"


def in_both_orders(folder: Path, evaluator: str) -> RecordedJudge:
    orders = {"ab": f"{evaluator}@ab", "ba": f"{evaluator}@ba"}
    return RecordedJudge.from_csv(file_of(folder, evaluator), orders=orders, judge_id=evaluator)


@pytest.mark.slow
def test_the_figures_of_65_judges_are_the_published_ones(
    llmbar: RubricDataset, by_rater: Path, shared_data: Path
) -> None:
    """Accuracy over both orders, agreement and kappa between them: 1950 figures of two votes a pair.

    And the mean accuracy over the four adversarial subsets, which another implementation computed.
    """
    published: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in read_csv(shared_data / "llmbar" / "published_statistics.csv"):
        published[row["evaluator"]].append(row)
    subset = {item.id or "": item.metadata["subset"] for item in llmbar.items}
    gold = {llmbar.item_id(i): llmbar.item_ratings(i)["gold"]["preference"] for i in range(len(llmbar.items))}
    elsewhere = reference(shared_data / "llmbar")
    checked = 0
    for evaluator, rows in published.items():
        votes = asyncio.run(graded(llmbar, CriterionGrader(judges=[in_both_orders(by_rater, evaluator)])))
        assert all([vote.order for vote in cast] == [("a", "b"), ("b", "a")] for cast in votes.values())
        averages = {}
        for row in rows:
            own = {item_id: cast for item_id, cast in votes.items() if subset[item_id] == row["subset"]}
            ab, ba = ([said(cast[place]) for cast in own.values()] for place in (0, 1))
            found = figures([gold[item_id] for item_id in own], ab, ba)
            averages[row["subset"]] = found["acc_average_pct"]
            assert len(own) == int(row["n"])
            for name in FIGURES:
                assert found[name] == pytest.approx(float(row[name]), abs=1e-9), (evaluator, row, name)
                checked += 1
        hard = [average for name, average in averages.items() if name != "Natural"]
        known = elsewhere[f"Adversarial/{evaluator}/accuracy_macro_pct"]["value"]
        assert len(hard) == 4
        assert sum(hard) / 4 == pytest.approx(known, abs=1e-9), evaluator
    assert (len(published), checked) == (65, 1950)


def test_a_run_reports_what_the_two_orders_come_to(
    llmbar: RubricDataset, by_rater: Path, tmp_path: Path
) -> None:
    """Orders that contradict each other are ties, reported, and lower the position consistency."""
    judge = in_both_orders(by_rater, "GPT-4/Vanilla")
    result = evaluate_sync(
        llmbar, CriterionGrader(judges=[judge]), experiments_dir=tmp_path, show_progress=False
    )
    reports = [report.report[0] for report in result.get_reports() if report is not None]
    swayed = [one for one in reports if one.position_inconsistent]
    assert all(one.final_answer == "tie" and one.tie and one.score_value == 0.5 for one in swayed)
    found = result.compute_metrics(llmbar).per_criterion[0]
    assert isinstance(found, RankingCriterionMetrics)
    assert found.position_consistency == pytest.approx(1 - len(swayed) / found.n_position_pairs)
    assert found.tie_rate == pytest.approx(len(swayed) / 419)
    steady = [one for one in reports if not one.tie]
    truth = [llmbar.item_truth(i) for i in range(len(llmbar.items))]
    right = sum(
        one.final_answer == (labels or {})["preference"]
        for one, labels in zip(reports, truth, strict=True)
        if one in steady
    )
    assert found.accuracy == pytest.approx(right / 419)
    assert found.n_samples == 419


def test_the_judge_report_holds_the_published_position_consistency(
    llmbar: RubricDataset, by_rater: Path, shared_data: Path, tmp_path: Path
) -> None:
    """Summed over the subsets, GPT-4's published pairs with equal verdicts are the report's share of 419."""
    judge = in_both_orders(by_rater, "GPT-4/Vanilla")
    result = evaluate_sync(
        llmbar, CriterionGrader(judges=[judge]), experiments_dir=tmp_path, show_progress=False
    )
    report = judge_report(result, n_resamples=50)
    rows = [
        row
        for row in read_csv(shared_data / "llmbar" / "published_statistics.csv")
        if row["evaluator"] == "GPT-4/Vanilla"
    ]
    found = report.panel.comparisons["preference"].position_consistency
    assert found.n == sum(int(row["n"]) for row in rows) == 419
    assert float(found) == pytest.approx(sum(float(row["equal"]) for row in rows) / 419)
    assert float(report.macro.accuracy) == pytest.approx(
        sum(float(row["correct_both"]) for row in rows) / 419
    )
    assert report.macro.macro_f1.low is not None
