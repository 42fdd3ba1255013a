"""The published node scores of real nested rubrics, through rubric, recorded judge, grader and run."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

import pytest

from autorubric import CriterionGrader, EvalResult, RecordedJudge, Rubric, RubricDataset, evaluate_sync
from tests.proof.real_data import paperbench

pytestmark = pytest.mark.shared_data

TREES = (
    "all-in-one",
    "pinn",
    "rice",
    "semantic-self-consistency",
    "stay-on-topic-with-classifier-free-guidance",
)


@pytest.fixture(scope="module")
def graded(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[RubricDataset, EvalResult]:
    """The five submissions, graded by the recorded human."""
    folder = shared_data / "paperbench"
    dataset = paperbench(folder)
    judge = RecordedJudge.from_csv(folder / "labels.csv", "human")
    result = evaluate_sync(
        dataset,
        CriterionGrader(judges=[judge]),
        experiment_name="run",
        experiments_dir=tmp_path_factory.mktemp("paperbench"),
        show_progress=False,
    )
    return dataset, result


def published(folder: Path) -> dict[str, dict[str, float]]:
    """Published scores of inner nodes by item and node; that of the root under the empty name."""
    scores: dict[str, dict[str, float]] = {}
    with (folder / "paperbench" / "published_inner_scores.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            node = row["node_id"] if row["parent_id"] else ""
            scores.setdefault(row["item_id"], {})[node] = float(row["score"])
    return scores


def test_all_838_node_scores(graded: tuple[RubricDataset, EvalResult], shared_data: Path) -> None:
    """Every inner node of the five trees scores what was published, to 1e-9, and there are no others."""
    dataset, result = graded
    wanted = published(shared_data)
    assert sum(map(len, wanted.values())) == 838
    assert sorted(wanted) == sorted(TREES)
    for position, report in enumerate(result.get_reports()):
        assert report is not None
        nodes = wanted[dataset.item_id(position)]
        assert report.node_scores.keys() == nodes.keys()
        assert report.node_scores == pytest.approx(nodes, abs=1e-9)
        assert report.score == report.node_scores[""] == report.judge_scores["human"]
        assert report.error is None


def test_the_truth_scores_as_the_recorded_judge(graded: tuple[RubricDataset, EvalResult]) -> None:
    """Scores of labels go through the same tree: the human measured against itself errs by nothing."""
    dataset, result = graded
    metrics = result.compute_metrics(dataset)
    assert metrics.score_mae == pytest.approx(0.0, abs=1e-12)
    assert metrics.n_items == 5


def test_a_reopened_run_scores_the_same(graded: tuple[RubricDataset, EvalResult]) -> None:
    """The trees come back from the run folder."""
    _, result = graded
    assert result.experiment_dir is not None
    again = EvalResult.from_experiment(result.experiment_dir)
    for one, other in zip(result.get_reports(), again.get_reports(), strict=True):
        assert one is not None
        assert other is not None
        assert one.node_scores == other.node_scores


def test_labels_alone_give_the_root_scores(shared_data: Path) -> None:
    """`compute_score` of the human labels is the published root score, and takes no time."""
    dataset = paperbench(shared_data / "paperbench")
    wanted = published(shared_data)
    for position in range(len(dataset.items)):
        labels: Any = dataset.item_truth(position)
        began = time.process_time()
        score = dataset.get_item_rubric(position).compute_score(labels)
        assert time.process_time() - began < 30
        assert score == pytest.approx(wanted[dataset.item_id(position)][""], abs=1e-9)


def test_large_trees_round_trip(shared_data: Path, tmp_path: Path) -> None:
    """A tree of 1963 leaves and 588 inner nodes comes back from its file, and is read in bounded time."""
    dataset = paperbench(shared_data / "paperbench")
    rubric = dataset.get_item_rubric(TREES.index("pinn"))
    assert len(rubric) == 1963
    assert len(rubric.root.groups) == 588
    rubric.to_file(tmp_path / "pinn.json")
    began = time.process_time()
    assert Rubric.from_file(tmp_path / "pinn.json") == rubric
    assert time.process_time() - began < 60
