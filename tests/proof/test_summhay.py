"""Six judges of 200 summaries, each with one of 29 rubrics: all published figures, and those of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import median_low

import pytest

from autorubric import RecordedJudge
from autorubric.metrics import (
    MetricsResult,
    Ordinal,
    accuracy,
    bias,
    cohen_kappa,
    f1,
    kendall_tau_b,
    krippendorff_alpha,
    pearson,
    rmse,
    score_distribution,
    spearman,
)
from tests.conftest import SHARED_DATA
from tests.proof.real_data import agrees, cells, load_lines, read_csv, reference_ids, references, run, summhay

pytestmark = pytest.mark.shared_data

FOLDER = SHARED_DATA / "summhay"
REFERENCES = references("summhay")
JUDGES = ("gpt-4o", "9fs-gpt-4o", "claude3-opus", "claude3-haiku", "gemini-1.5-pro", "gpt3.5")
# Only of these does the source print how they lean towards writers and lengths.
LEANING = ("gpt-4o", "claude3-opus", "gemini-1.5-pro")
VALUES = {"not_covered": 0.0, "partially_covered": 0.5, "fully_covered": 1.0}
SCALE = Ordinal(list(VALUES), list(VALUES.values()))

Figures = dict[str, float | None]


def levels(judge: str) -> tuple[list[str], list[str]]:
    """What the human and a judge say of each of the 1,419 cells."""
    truth, judged = cells("summhay")["human"], cells("summhay")[judge]
    return list(truth.values()), [judged[cell] for cell in truth]


def numbers(labels: list[str]) -> list[float]:
    """The values of levels."""
    return [VALUES[label] for label in labels]


def coverage(rater: str) -> dict[str, float]:
    """The mean value that each summary gets."""
    given: dict[str, list[float]] = defaultdict(list)
    for (item, _), label in cells("summhay")[rater].items():
        given[item].append(VALUES[label])
    return {item: sum(values) / len(values) for item, values in given.items()}


def links(rater: str) -> dict[tuple[str, str], int | None]:
    """The one bullet to which a rater linked each insight; None where there is none, or several."""
    return {
        (row["item_id"], row["criterion"]): int(place) if (place := row["bullet_index0"]).isdigit() else None
        for row in read_csv(FOLDER / "links.csv")
        if row["rater"] == rater
    }


def of_cells(judge: str) -> Figures:
    """Agreement on cells, in levels and in values."""
    truth, judged = levels(judge)
    values = numbers(truth), numbers(judged)
    full = [[label == "fully_covered" for label in side] for side in (truth, judged)]
    linked, found = links("human"), links(judge)
    alpha = krippendorff_alpha(list(zip(truth, judged, strict=True)), level="ordinal", scale=SCALE, ci=None)
    return {
        "pearson": pearson(*values, ci=None).value,
        "spearman": spearman(*values, ci=None).value,
        "kendall_b": kendall_tau_b(*values, ci=None).value,
        "linking_accuracy": accuracy(list(linked.values()), [found[cell] for cell in linked], ci=None).value,
        "accuracy": accuracy(truth, judged, ci=None).value,
        "cohen_kappa_unweighted": cohen_kappa(truth, judged, ci=None).value,
        "cohen_kappa_linear": cohen_kappa(truth, judged, scale=SCALE, weights="linear", ci=None).value,
        "cohen_kappa_quadratic": cohen_kappa(truth, judged, scale=SCALE, weights="quadratic", ci=None).value,
        "krippendorff_ordinal": alpha.value,
        "binary_full/f1": f1(truth, judged, positive="fully_covered", ci=None).value,
        "binary_full/cohen_kappa": cohen_kappa(*full, ci=None).value,
    }


def of_summaries(judge: str) -> Figures:
    """Scores of summaries."""
    truth, judged = coverage("human"), coverage(judge)
    columns = list(truth.values()), [judged[item] for item in truth]
    return {
        "item_score/pearson": pearson(*columns, ci=None).value,
        "item_score/spearman": spearman(*columns, ci=None).value,
        "item_score/mean_bias": bias(*columns).mean_bias,
        "item_score/rmse": rmse(*columns, ci=None).value,
    }


def of_leanings(judge: str) -> Figures:
    """How much better than the human's are a judge's scores, by writer and by length."""
    truth, judged = coverage("human"), coverage(judge)
    by_writer: dict[str, list[str]] = defaultdict(list)
    lengths = {}
    for row in load_lines(FOLDER / "items.jsonl"):
        by_writer[row["meta"]["writer"]].append(row["item_id"])
        lengths[row["item_id"]] = row["meta"]["n_words"] / row["meta"]["n_bullets"]
    leaning = {
        writer: bias([truth[item] for item in own], [judged[item] for item in own]).mean_bias
        for writer, own in by_writer.items()
    }
    words, scores = list(lengths.values()), [judged[item] for item in lengths]
    excess = [judged[item] - truth[item] for item in lengths]
    return {
        **{f"bias/{writer}": value for writer, value in leaning.items()},
        "bias/average": score_distribution(leaning.values()).mean,
        "length_delta_corr": pearson(words, excess, ci=None).value,
        "length_score_corr": pearson(words, scores, ci=None).value,
    }


@pytest.fixture(scope="module")
def figures() -> Figures:
    """Every figure by its id, from plain columns."""
    parts: dict[str, Mapping[str, float | None]] = {
        judge: of_cells(judge) | of_summaries(judge) | (of_leanings(judge) if judge in LEANING else {})
        for judge in JUDGES
    }
    truth = levels(JUDGES[0])[0]
    voted = [
        median_low(given) for given in zip(*(numbers(levels(judge)[1]) for judge in JUDGES), strict=True)
    ]
    parts["panel6"] = {"median_accuracy": accuracy(numbers(truth), voted, ci=None).value}
    return {f"{part}/{name}": value for part, found in parts.items() for name, value in found.items()}


@pytest.mark.parametrize("name", reference_ids("summhay"))
def test_figures_from_columns(name: str, figures: Figures) -> None:
    """The functions give each reference, published ones to their printed decimals."""
    assert agrees(figures[name], REFERENCES[name]), (figures[name], REFERENCES[name])


def test_nothing_is_left_out(figures: Figures) -> None:
    """All 127 references are reached, 48 of them published."""
    assert figures.keys() == REFERENCES.keys()
    assert len(REFERENCES) == 127
    assert sum(one["published"] is not None for one in REFERENCES.values()) == 48


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> MetricsResult:
    """Figures of a run of the panel of six, over 29 different rubrics."""
    judges = RecordedJudge.panel_from_csv(FOLDER / "labels.csv")
    dataset = summhay(FOLDER)
    return run(dataset, judges, tmp_path_factory.mktemp("summhay")).compute_metrics(dataset, per_judge=True)


@pytest.mark.parametrize("judge", JUDGES)
def test_figures_of_a_run(judge: str, metrics: MetricsResult) -> None:
    """With a rubric an item: figures over the shared scale, and of the scores of the summaries."""
    found = metrics.per_judge[judge]
    assert (found.pooled.n, found.n_scores) == (1419, 200)
    reported = {
        "pearson": found.pooled.pearson,
        "accuracy": found.pooled.accuracy,
        "cohen_kappa_unweighted": found.pooled.kappa,
        "cohen_kappa_quadratic": found.pooled.weighted_kappa,
        "item_score/pearson": found.score_pearson.coefficient,
        "item_score/spearman": found.score_spearman.coefficient,
        "item_score/mean_bias": found.bias.mean_bias,
        "item_score/rmse": found.score_rmse,
    }
    for name, value in reported.items():
        assert agrees(value, REFERENCES[f"{judge}/{name}"]), (name, value)


def test_criteria_that_few_items_share_are_said_to_be_undefined(metrics: MetricsResult) -> None:
    """On 195 insights of seven summaries each many kappas are undefined, and a warning counts them."""
    assert (metrics.n_items, metrics.n_criteria, metrics.n_ordinal_criteria) == (200, 195, 195)
    done, of = metrics.defined["mean_kappa"]
    assert 0 < done < of == 195
    told = [one for one in metrics.warnings if " undefined (single_class) on " in one]
    assert any("weighted_kappa" in one for one in told)
    assert list(metrics.pooled_by_scale) == ["not_covered | partially_covered | fully_covered"]
