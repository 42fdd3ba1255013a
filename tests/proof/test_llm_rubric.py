"""Nine ordinal questions on dialogues: all published figures, and NA and constant answers in a run."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from autorubric import CriterionGrader, EvalResult, RecordedJudge, RubricDataset, evaluate_sync
from autorubric.metrics import (
    MetricsResult,
    Ordinal,
    OrdinalCriterionMetrics,
    brier,
    cohen_kappa,
    judge_report,
    kendall_tau_b,
    krippendorff_alpha,
    log_loss,
    pearson,
    rmse,
    score_distribution,
    spearman,
)
from tests.conftest import SHARED_DATA
from tests.proof.real_data import agrees, cells, llm_rubric, read_csv, reference_ids, references, run

pytestmark = pytest.mark.shared_data

FOLDER = SHARED_DATA / "llm_rubric"
REFERENCES = references("llm_rubric")
QUESTIONS = tuple(f"Q{number}" for number in range(9))
ARGMAX = "gpt-3.5-turbo-16k:argmax"
SYSTEMS = {"random": "baseline:random", "sample_llm": "baseline:sample_llm", "argmax_llm": ARGMAX}
ANSWERS = (1, 2, 3, 4)

Figures = dict[str, float | None]


def answers(rater: str, question: str) -> dict[str, float]:
    """What a rater answers to a question, by dialogue, NA left out."""
    return {
        item: float(label)
        for (item, name), label in cells("llm_rubric")[rater].items()
        if name == question and label != "NA"
    }


def people() -> list[str]:
    """The 24 annotators."""
    return [rater for rater in cells("llm_rubric") if rater.startswith("judge_")]


def truth(question: str) -> dict[str, float]:
    """The one human answer of each real dialogue."""
    found: dict[str, float] = {}
    for rater in people():
        found |= {item: n for item, n in answers(rater, question).items() if item.startswith("real:")}
    return found


@cache
def distributions() -> dict[str, dict[str, list[float]]]:
    """The probabilities of the four answers: by question, then by dialogue."""
    found: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for row in read_csv(FOLDER / "llm_distributions.csv"):
        found[row["criterion"]][row["item_id"]] = [float(row[f"p{answer}"] or 0) for answer in ANSWERS]
    return found


def expected(question: str) -> dict[str, float]:
    """The mean of each distribution; the source divides by the sum only where that is below 1."""
    return {
        item: sum(answer * p for answer, p in zip(ANSWERS, shares, strict=True)) / min(1.0, sum(shares))
        for item, shares in distributions()[question].items()
    }


def of_system(question: str, system: str) -> Figures:
    """Error, correlations and spread of a system's answers on the real dialogues."""
    people_say = truth(question)
    said = expected(question) if system == "expected_llm" else answers(SYSTEMS[system], question)
    items = sorted(people_say)
    columns = [people_say[item] for item in items], [said[item] for item in items]
    mean = score_distribution(columns[1]).mean
    figures = {
        "rmse": rmse(*columns, ci=None).value,
        "pearson": pearson(*columns, ci=None).value,
        "spearman": spearman(*columns, ci=None).value,
        "kendall_b": kendall_tau_b(*columns, ci=None).value,
        "mean": mean,
        "std_population": rmse([mean] * len(items), columns[1], ci=None).value,
    }
    if system == "argmax_llm":
        scale = Ordinal([1.0, 2.0, 3.0, 4.0])
        kappa = cohen_kappa(*columns, scale=scale, weights="quadratic", ci=None)
        figures["cohen_kappa_quadratic"] = kappa.value
    return {f"{system}/{name}": value for name, value in figures.items()}


def of_distributions(question: str) -> Figures:
    """Losses of the probabilities, made to sum to 1: Brier's at the three inner thresholds, logarithmic."""
    people_say = truth(question)
    items = sorted(people_say)
    stored = [distributions()[question][item] for item in items]
    shares = [[p / sum(one) for p in one] for one in stored]
    at_most = [
        brier([people_say[item] <= top for item in items], [sum(one[:top]) for one in shares], ci=None)
        for top in ANSWERS[:3]
    ]
    codes = [int(people_say[item]) - 1 for item in items]
    return {"rps": sum(map(float, at_most)), "nll": log_loss(codes, shares, clip=1e-12, ci=None).value}


def of_people(question: str) -> Figures:
    """How far two or three people agree on each synthetic dialogue."""
    given: dict[str, list[float]] = defaultdict(list)
    for rater in people():
        for item, answer in answers(rater, question).items():
            if item.startswith("synth:"):
                given[item].append(answer)
    widest = max(map(len, given.values()))
    rows = [[*row, *[None] * (widest - len(row))] for row in given.values()]
    return {
        "krippendorff_nominal": krippendorff_alpha(rows, level="nominal", ci=None).value,
        "krippendorff_ordinal": krippendorff_alpha(rows, level="ordinal", ci=None).value,
        "krippendorff_interval": krippendorff_alpha(rows, level="interval", ci=None).value,
    }


@pytest.fixture(scope="module")
def figures() -> Figures:
    """Every figure by its id, from plain columns."""
    found: Figures = {}
    for question in QUESTIONS:
        real = of_distributions(question)
        for system in (*SYSTEMS, "expected_llm"):
            real |= of_system(question, system)
        found |= {f"real/{question}/{name}": value for name, value in real.items()}
        found |= {f"synth/{question}/{name}": value for name, value in of_people(question).items()}
    return found


@pytest.mark.parametrize("name", reference_ids("llm_rubric"))
def test_figures_from_columns(name: str, figures: Figures) -> None:
    """The functions give each reference, published ones to their printed decimals, None where constant."""
    assert agrees(figures[name], REFERENCES[name]), (figures[name], REFERENCES[name])


def test_nothing_is_left_out(figures: Figures) -> None:
    """All 270 references are reached, 24 of them published, six undefined."""
    assert figures.keys() == REFERENCES.keys()
    assert len(REFERENCES) == 270
    assert sum(one["published"] is not None for one in REFERENCES.values()) == 24
    assert sum(one["value"] is None for one in REFERENCES.values()) == 6


@pytest.fixture(scope="module")
def dialogues() -> RubricDataset:
    """All 473 dialogues, labelled by people."""
    return llm_rubric(FOLDER)


@pytest.fixture(scope="module")
def result(dialogues: RubricDataset, tmp_path_factory: pytest.TempPathFactory) -> EvalResult:
    """A run of the most probable answers over the real dialogues."""
    real = dialogues.subset(i for i in range(len(dialogues)) if dialogues.item_id(i).startswith("real:"))
    judge = RecordedJudge.from_csv(FOLDER / "labels.csv", ARGMAX)
    return run(real, [judge], tmp_path_factory.mktemp("real"))


@pytest.mark.parametrize(("votes", "system"), [("soft", "expected_llm"), ("hard", "argmax_llm")])
def test_figures_of_soft_and_hard_runs(
    dialogues: RubricDataset, votes: Literal["soft", "hard"], system: str, tmp_path: Path
) -> None:
    """The published errors of expected values and of most probable answers, from recorded distributions."""
    real = dialogues.subset(i for i in range(len(dialogues)) if dialogues.item_id(i).startswith("real:"))
    columns = {f"p{answer}": str(answer) for answer in range(1, 5)}
    judge = RecordedJudge.from_csv(FOLDER / "llm_distributions.csv", probabilities=columns)
    grader = CriterionGrader(judges=[judge], votes=votes)
    result = evaluate_sync(real, grader, experiment_name="run", experiments_dir=tmp_path, show_progress=False)
    for found in (result, EvalResult.from_experiment(tmp_path / "run")):
        question = by_question(found.compute_metrics())["Q0"]
        assert question.rmse is not None
        assert agrees(3 * question.rmse, REFERENCES[f"real/Q0/{system}/rmse"])
        assert agrees(question.spearman.coefficient, REFERENCES[f"real/Q0/{system}/spearman"])
        assert agrees(question.kendall.coefficient, REFERENCES[f"real/Q0/{system}/kendall_b"])
        reported = judge_report(found).panel.per_criterion["Q0"]
        assert agrees(3 * (reported.rmse.value or 0.0), REFERENCES[f"real/Q0/{system}/rmse"])
        assert agrees(reported.pearson.value, REFERENCES[f"real/Q0/{system}/pearson"])


def by_question(metrics: MetricsResult) -> dict[str, OrdinalCriterionMetrics]:
    """The figures of each question."""
    return {one.name: one for one in metrics.per_criterion if isinstance(one, OrdinalCriterionMetrics)}


def test_na_answers_are_missing_by_default(result: EvalResult) -> None:
    """Dialogues without references have no truth on four questions, and the figures leave them out."""
    found = by_question(result.compute_metrics())
    assert found.keys() == set(QUESTIONS)
    for question, one in found.items():
        steps = len(one.per_option) - 1
        assert one.rmse is not None
        assert agrees(steps * one.rmse, REFERENCES[f"real/{question}/argmax_llm/rmse"])
        for name, figure in (("spearman", one.spearman), ("kendall_b", one.kendall)):
            assert agrees(figure.coefficient, REFERENCES[f"real/{question}/argmax_llm/{name}"])
    counts = {question: one.n_samples for question, one in found.items() if one.n_samples < 223}
    assert counts == {"Q1": 146, "Q3": 148, "Q4": 146, "Q5": 146}


def test_constant_answers_have_no_correlation(result: EvalResult) -> None:
    """Where a judge says the same of every dialogue, its correlation is undefined with a reason, not 0."""
    found = by_question(result.compute_metrics())
    for question in ("Q4", "Q5"):
        assert found[question].spearman.coefficient is None
        assert found[question].spearman.reason == "no_variance"
    assert found["Q3"].spearman.coefficient is not None


def test_na_as_a_category_leaves_no_order(result: EvalResult) -> None:
    """As a category NA enters accuracy and kappa, and what needs an order is None with the reason."""
    found = by_question(result.compute_metrics(na_mode="as_category"))["Q4"]
    assert found.n_samples > 146
    assert found.weighted_kappa is None
    assert found.reasons["weighted_kappa"] == "na_as_category"
    assert found.kappa is not None


def test_na_as_the_worst_is_recorded(result: EvalResult) -> None:
    """Counted as the worst option, NA enters the order, and the result says so."""
    metrics = result.compute_metrics(na_mode="as_worst")
    found = by_question(metrics)["Q4"]
    assert found.n_samples > 146
    assert found.weighted_kappa is not None
    assert "NA is counted as worst" in metrics.warnings
    assert metrics.na_mode == "as_worst"


@pytest.mark.slow
def test_a_panel_over_dialogues_of_both_kinds(dialogues: RubricDataset, tmp_path: Path) -> None:
    """Answers of a panel to real and synthetic dialogues: NA leaves the figures and is counted."""
    judges = RecordedJudge.panel_from_csv(FOLDER / "labels.csv", rater_type="llm")
    metrics = run(dialogues, judges, tmp_path).compute_metrics(dialogues, per_judge=True)
    truths = [dialogues.item_truth(i) for i in range(len(dialogues))]
    labels = {
        (dialogues.item_id(i), name): label
        for i, labelled in enumerate(truths)
        for name, label in (labelled or {}).items()
        if label is not None
    }
    asked = {cell for judge in metrics.per_judge for cell in cells("llm_rubric")[judge]}
    answered = [cell for cell, label in labels.items() if label != "NA" and cell in asked]
    assert metrics.n_items == len({item for item, _ in labels})
    assert (metrics.n_ordinal_criteria, len(metrics.per_judge)) == (9, len(judges))
    assert metrics.na_stats.n_cells == len(labels)
    assert metrics.na_stats.truth_abstained == list(labels.values()).count("NA") > 0
    assert metrics.na_stats.not_asked == len(labels.keys() - asked) > 0
    assert metrics.na_stats.n_answered == metrics.pooled.n == len(answered)
