"""Seven judges of 14 creativity tests on 48 stories: all published figures, from columns and from runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from autorubric import RecordedJudge
from autorubric.metrics import (
    CriterionMetrics,
    Estimate,
    MetricsResult,
    accuracy,
    balanced_accuracy,
    bias,
    cohen_kappa,
    f1,
    fleiss_kappa,
    kendall_tau_b,
    krippendorff_alpha,
    majority_vote,
    pearson,
    precision,
    recall,
    rmse,
    score_distribution,
    spearman,
    wilson,
)
from tests.conftest import SHARED_DATA
from tests.metrics.asserting import holds
from tests.proof.real_data import agrees, cells, reference_ids, references, run, ttcw

pytestmark = pytest.mark.shared_data

FOLDER = SHARED_DATA / "ttcw"
REFERENCES = references("ttcw")
JUDGES = ("cgpt", "claudev13", "claudev2", "claudev21", "claude3-opus", "gpt4", "gemini-pro")
TESTS = tuple(f"test{number:02}" for number in range(1, 15))
LABELS = {"Yes": "MET", "No": "UNMET"}
# The source counts an answer that is no "yes" as No, so that is how the recorded votes are read.
AS_THE_SOURCE = {**LABELS, "INVALID": "UNMET"}

Figures = dict[str, float | None]


class Columns:
    """The cells in one order: what three experts say, their majority, and what each judge says."""

    def __init__(self) -> None:
        labels = cells("ttcw")
        people = [given for rater, given in labels.items() if rater.startswith("expert")]
        self.cells = sorted(labels["gpt4"])
        self.experts = [[given[cell] for given in people if cell in given] for cell in self.cells]
        self.truth = majority_vote(self.experts)
        self.found = {judge: len(labels[judge]) for judge in JUDGES}
        self.valid = {
            judge: [label if label in LABELS else None for label in map(labels[judge].get, self.cells)]
            for judge in JUDGES
        }
        self.judged = {judge: [label or "No" for label in given] for judge, given in self.valid.items()}

    def on(self, test: str) -> list[int]:
        """The places of a test's cells."""
        return [place for place, (_, name) in enumerate(self.cells) if name == test]

    def totals(self, labels: list[str]) -> list[int]:
        """How many tests each story passes."""
        passed = dict.fromkeys((item for item, _ in self.cells), 0)
        for (item, _), label in zip(self.cells, labels, strict=True):
            passed[item] += label == "Yes"
        return list(passed.values())


def of_judge(columns: Columns, judge: str) -> Figures:
    """What the source reports of a judge, and what was computed beside it."""
    truth, judged, valid = columns.truth, columns.judged[judge], columns.valid[judge]
    as_numbers = [[float(label == "Yes") for label in side] for side in (truth, judged)]
    totals = columns.totals(truth), columns.totals(judged)
    by_test = {}
    for test in TESTS:
        on = columns.on(test)
        found = balanced_accuracy([truth[i] for i in on], [judged[i] for i in on], ci=None)
        by_test[f"{test}/balanced_accuracy"] = found.value
    on_valid = accuracy(truth, valid, ci=None)
    return {
        "balanced_accuracy": balanced_accuracy(truth, judged, ci=None).value,
        "precision": precision(truth, judged, positive="Yes", ci=None).value,
        "recall": recall(truth, judged, positive="Yes", ci=None).value,
        "f1": f1(truth, judged, positive="Yes", ci=None).value,
        "corr": pearson(*as_numbers, ci=None).value,
        "n_found": columns.found[judge],
        **by_test,
        "avg_bacc": score_distribution(by_test.values()).mean,
        "cohen_kappa": cohen_kappa(truth, judged, ci=None).value,
        "n_valid": on_valid.n,
        "accuracy_valid_only": on_valid.value,
        "cohen_kappa_valid_only": cohen_kappa(truth, valid, ci=None).value,
        "story_total/pearson": pearson(*totals, ci=None).value,
        "story_total/spearman": spearman(*totals, ci=None).value,
        "story_total/kendall_b": kendall_tau_b(*totals, ci=None).value,
        "story_total/mean_bias": bias(*totals).mean_bias,
        "story_total/rmse": rmse(*totals, ci=None).value,
    }


def of_experts(columns: Columns) -> Figures:
    """How often the experts say Yes, and how far they agree."""
    yes = {
        test: wilson(sum(columns.truth[i] == "Yes" for i in on), len(on))
        for test in TESTS
        if (on := columns.on(test))
    }
    kappas: dict[str, Estimate] = {
        f"fleiss_kappa/{test}": fleiss_kappa([columns.experts[i] for i in columns.on(test)], ci=None)
        for test in TESTS
    }
    return {
        **{f"{test}/ratio_positive": share.value for test, share in yes.items()},
        "ratio_positive_mean": score_distribution(float(share) for share in yes.values()).mean,
        "fleiss_kappa_all": fleiss_kappa(columns.experts, ci=None).value,
        **{name: kappa.value for name, kappa in kappas.items()},
        "krippendorff_nominal": krippendorff_alpha(columns.experts, ci=None).value,
    }


def of_panel(columns: Columns) -> Figures:
    """The majority of the seven, and how far they agree."""
    voted = majority_vote(list(zip(*columns.judged.values(), strict=True)))
    answered = list(zip(*columns.valid.values(), strict=True))
    return {
        "accuracy": accuracy(columns.truth, voted, ci=None).value,
        "cohen_kappa": cohen_kappa(columns.truth, voted, ci=None).value,
        "balanced_accuracy": balanced_accuracy(columns.truth, voted, ci=None).value,
        "krippendorff_nominal": krippendorff_alpha(answered, ci=None).value,
    }


@pytest.fixture(scope="module")
def figures() -> Figures:
    """Every figure by its id, from plain columns."""
    columns = Columns()
    parts = {judge: of_judge(columns, judge) for judge in JUDGES}
    parts |= {"human": of_experts(columns), "panel7": of_panel(columns)}
    return {f"{part}/{name}": value for part, found in parts.items() for name, value in found.items()}


@pytest.mark.parametrize("name", reference_ids("ttcw"))
def test_figures_from_columns(name: str, figures: Figures) -> None:
    """The functions give each reference, published ones to their printed decimals."""
    assert agrees(figures[name], REFERENCES[name]), (figures[name], REFERENCES[name])


def test_nothing_is_left_out(figures: Figures) -> None:
    """All 245 references are reached, 162 of them published."""
    assert figures.keys() == REFERENCES.keys()
    assert len(REFERENCES) == 245
    assert sum(one["published"] is not None for one in REFERENCES.values()) == 162


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> MetricsResult:
    """Figures of a run that counts as the source does: INVALID and missing answers are No."""
    judges = RecordedJudge.panel_from_csv(FOLDER / "labels.csv", labels=AS_THE_SOURCE, missing="UNMET")
    dataset = ttcw(FOLDER)
    result = run(dataset, judges, tmp_path_factory.mktemp("ttcw"))
    return result.compute_metrics(dataset, per_judge=True, bootstrap=True)


@pytest.mark.parametrize("judge", JUDGES)
def test_figures_of_a_run(judge: str, metrics: MetricsResult) -> None:
    """Each judge of the panel: all cells, each test, and scores, which are totals over fourteen."""
    found = metrics.per_judge[judge]
    assert (found.pooled.n, len(found.per_criterion), found.n_scores) == (672, 14, 48)
    reported = {
        "balanced_accuracy": found.pooled.balanced_accuracy,
        "precision": found.pooled.precision,
        "recall": found.pooled.recall,
        "f1": found.pooled.f1,
        "corr": found.pooled.pearson,
        "cohen_kappa": found.pooled.kappa,
        "avg_bacc": found.criterion_balanced_accuracy,
        "story_total/pearson": found.score_pearson.coefficient,
        "story_total/spearman": found.score_spearman.coefficient,
        "story_total/kendall_b": found.score_kendall.coefficient,
        "story_total/mean_bias": 14 * (found.bias.mean_bias or 0.0),
        "story_total/rmse": 14 * (found.score_rmse or 0.0),
    }
    for one in found.per_criterion:
        assert isinstance(one, CriterionMetrics)
        reported[f"{one.name}/balanced_accuracy"] = one.balanced_accuracy
    for name, value in reported.items():
        assert agrees(value, REFERENCES[f"{judge}/{name}"]), (name, value)


def test_the_panel_of_a_run(metrics: MetricsResult) -> None:
    """The panel's decision is the majority, and its figures are of that."""
    pooled = metrics.pooled
    assert agrees(pooled.accuracy, REFERENCES["panel7/accuracy"])
    assert agrees(pooled.kappa, REFERENCES["panel7/cohen_kappa"])
    assert agrees(pooled.balanced_accuracy, REFERENCES["panel7/balanced_accuracy"])


def test_bootstrap_brackets_the_macro_figures(metrics: MetricsResult) -> None:
    """Intervals over resampled stories lie around accuracy, kappa and score error, of panel and judges."""
    for found in (metrics, *metrics.per_judge.values()):
        ends = found.bootstrap
        assert ends is not None
        assert holds(ends.accuracy_ci, found.criterion_accuracy)
        assert holds(ends.kappa_ci, found.mean_kappa)
        assert holds(ends.rmse_ci, found.score_rmse)


@pytest.mark.parametrize("judge", JUDGES)
def test_a_judge_alone(judge: str, metrics: MetricsResult, tmp_path: Path) -> None:
    """A judge alone, a panel of one, has the figures that it has within the panel."""
    alone = RecordedJudge.from_csv(FOLDER / "labels.csv", judge, labels=AS_THE_SOURCE, missing="UNMET")
    dataset = ttcw(FOLDER)
    found = run(dataset, [alone], tmp_path).compute_metrics(dataset, per_judge=True)
    assert found.pooled == found.per_judge[judge].pooled == metrics.per_judge[judge].pooled


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> MetricsResult:
    """Figures of a run that takes answers as they are: INVALID failed, missing not asked."""
    judges = RecordedJudge.panel_from_csv(FOLDER / "labels.csv", labels=LABELS)
    dataset = ttcw(FOLDER)
    result = run(dataset, judges, tmp_path_factory.mktemp("strict"))
    return result.compute_metrics(dataset, per_judge=True)


@pytest.mark.parametrize("judge", JUDGES)
def test_failed_and_missing_verdicts_count_nowhere(judge: str, strict: MetricsResult) -> None:
    """INVALID answers are failures, missing ones not asked, and figures use the rest."""
    found, recorded = strict.per_judge[judge], cells("ttcw")[judge]
    n_valid = REFERENCES[f"{judge}/n_valid"]["value"]
    assert found.pooled.n == n_valid
    assert found.coverage == pytest.approx(n_valid / 672)
    assert agrees(found.pooled.accuracy, REFERENCES[f"{judge}/accuracy_valid_only"])
    assert agrees(found.pooled.kappa, REFERENCES[f"{judge}/cohen_kappa_valid_only"])
    assert found.na_stats.failed == sum(label == "INVALID" for label in recorded.values())
    assert agrees(672 - found.na_stats.not_asked, REFERENCES[f"{judge}/n_found"])


def test_the_votes_say_why_there_is_no_answer(tmp_path: Path) -> None:
    """Of gemini-pro 50 votes failed, their answers being INVALID, and 14 were not asked for."""
    judge = RecordedJudge.from_csv(FOLDER / "labels.csv", "gemini-pro", labels=LABELS)
    reports = run(ttcw(FOLDER), [judge], tmp_path).get_reports()
    statuses = [vote.status for report in reports if report for one in report.report for vote in one.votes]
    assert (len(statuses), statuses.count("failed"), statuses.count("not_asked")) == (672, 50, 14)
