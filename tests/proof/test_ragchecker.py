"""Graded preferences of two annotators and a judge: the published correlations, and ranks of floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from autorubric import CriterionGrader, RecordedJudge, RubricDataset, evaluate_sync
from autorubric.metrics import (
    Estimate,
    RankingCriterionMetrics,
    accuracy,
    cohen_kappa,
    kendall_tau_b,
    krippendorff_alpha,
    pearson,
    spearman,
)
from tests.proof.real_data import pairs, read_csv, reference

pytestmark = pytest.mark.shared_data

CRITERIA = ("correctness", "completeness", "overall")
CORRELATIONS: dict[str, Callable[..., Estimate]] = {"pearson": pearson, "spearman": spearman}


@pytest.fixture(scope="module")
def ragchecker(shared_data: Path) -> RubricDataset:
    """280 pairs on three criteria, graded -2 to 2 by two annotators."""
    return pairs(shared_data / "ragchecker", margin=2, one_order=True)


def slots(dataset: RubricDataset, criterion: str) -> tuple[list[float], list[float]]:
    """The two annotators' labels of a criterion."""
    raters: Sequence[Mapping[str, Mapping[str, float]]] = [
        dataset.item_ratings(i) for i in range(len(dataset.items))
    ]
    return (
        [float(item["human_slot1"][criterion]) for item in raters],
        [float(item["human_slot2"][criterion]) for item in raters],
    )


def differences(folder: Path, criterion: str) -> list[float]:
    """The judge's score of answer b less that of a, in the order of the items."""
    return [
        float(row["value"])
        for row in read_csv(folder / "ragchecker" / "labels.csv")
        if row["rater"].startswith("ragchecker") and row["criterion"] == criterion
    ]


def scaled(values: Sequence[float]) -> list[float]:
    """The source's min-max scaling."""
    low, high = min(values), max(values)
    return [(value - low) / (high - low) for value in values]


def test_the_twelve_published_correlations(ragchecker: RubricDataset, shared_data: Path) -> None:
    """Pearson and Spearman of annotators and of judge with all 560 labels, to the printed decimals."""
    published = reference(shared_data / "ragchecker")
    checked = 0
    for criterion in CRITERIA:
        first, second = slots(ragchecker, criterion)
        judged = differences(shared_data, criterion)
        assert (len(first), len(second), len(judged)) == (280, 280, 280)
        for who, one, other in (
            ("human", scaled(first), scaled(second)),
            ("judge", scaled(first + second), scaled(judged * 2)),
        ):
            for name, figure in CORRELATIONS.items():
                entry = published[f"{criterion}/{who}_{name}"]
                found = 100 * float(figure(one, other, ci=None))
                assert round(found, entry["decimals"]) == entry["published"], entry["id"]
                assert found == pytest.approx(entry["value"], abs=1e-9)
                checked += 1
    assert checked == 12


@pytest.mark.parametrize("criterion", CRITERIA)
def test_ranks_tell_floats_apart_that_differ_by_rounding(
    criterion: str, ragchecker: RubricDataset, shared_data: Path
) -> None:
    """Spearman ties equal floats only: unscaled, scaled and rounded differences have three values.

    Differences that are equal in exact arithmetic differ in the last bit, and scaling moves that bit.
    """
    known = reference(shared_data / "ragchecker")
    first, second = slots(ragchecker, criterion)
    judged = differences(shared_data, criterion) * 2
    unscaled = 100 * float(spearman(first + second, judged, ci=None))
    rounded = 100 * float(spearman(first + second, [round(one, 10) for one in judged], ci=None))
    assert unscaled == pytest.approx(known[f"{criterion}/judge_spearman_unscaled"]["value"], abs=1e-9)
    assert rounded == pytest.approx(known[f"{criterion}/judge_spearman_rounded"]["value"], abs=1e-9)
    assert len({unscaled, rounded, known[f"{criterion}/judge_spearman"]["value"]}) == 3
    assert len(set(judged)) > len({round(one, 10) for one in judged})


@pytest.mark.parametrize("criterion", CRITERIA)
def test_figures_computed_elsewhere(criterion: str, ragchecker: RubricDataset, shared_data: Path) -> None:
    """Agreement of the annotators and the judge against their mean, as another implementation has them."""
    known = reference(shared_data / "ragchecker")
    first, second = slots(ragchecker, criterion)
    mean = [(one + other) / 2 for one, other in zip(first, second, strict=True)]
    judged = differences(shared_data, criterion)
    decided = [place for place, one in enumerate(mean) if one]
    signs = accuracy(*([float(np.sign(side[i])) for i in decided] for side in (mean, judged)), ci=None)
    both = np.column_stack([first, second])
    found: dict[str, Estimate | int] = {
        "judge_pearson_vs_mean": pearson(mean, judged, ci=None),
        "judge_spearman_vs_mean": spearman(mean, judged, ci=None),
        "judge_kendall_b_vs_mean": kendall_tau_b(mean, judged, ci=None),
        "sign_accuracy": signs,
        "sign_pairs": signs.n,
        "human_qwk": cohen_kappa(first, second, weights="quadratic", ci=None),
        "human_exact": accuracy(first, second, ci=None),
        "human_krippendorff_nominal": krippendorff_alpha(both, level="nominal", ci=None),
        "human_krippendorff_ordinal": krippendorff_alpha(both, level="ordinal", ci=None),
        "human_krippendorff_interval": krippendorff_alpha(both, level="interval", ci=None),
    }
    for name, figure in found.items():
        assert float(figure) == pytest.approx(known[f"{criterion}/{name}"]["value"], abs=1e-9), name


@pytest.mark.slow
def test_graded_preferences_through_the_grader(
    ragchecker: RubricDataset, shared_data: Path, tmp_path: Path
) -> None:
    """Two annotators as judges: the decision is their mean preference, its value that of the first answer."""
    path = shared_data / "ragchecker" / "labels.csv"
    judges = [RecordedJudge.from_csv(path, rater) for rater in ("human_slot1", "human_slot2")]
    result = evaluate_sync(
        ragchecker, CriterionGrader(judges=judges), experiments_dir=tmp_path, show_progress=False
    )
    for criterion in CRITERIA:
        first, second = slots(ragchecker, criterion)
        for position, report in enumerate(result.get_reports()):
            assert report is not None
            decided = next(one for one in report.report if one.name == criterion)
            mean = (first[position] + second[position]) / 2
            assert decided.final_answer == mean
            assert decided.score_value == pytest.approx((2 - mean) / 4)
    metrics = result.compute_metrics(ragchecker, per_judge=True)
    for judge in metrics.per_judge.values():
        for found in judge.per_criterion:
            assert isinstance(found, RankingCriterionMetrics)
            assert found.position_consistency is None
            assert found.reasons["position_consistency"] == "no_pairs"
