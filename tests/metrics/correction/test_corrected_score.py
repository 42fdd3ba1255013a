"""The mean score of a run, corrected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autorubric.criteria import BaseCriterion, Criterion
from autorubric.datasets import RubricDataset
from autorubric.errors import ArgumentError
from autorubric.grading import CriterionGrader
from autorubric.metrics import corrected_rate, corrected_score
from autorubric.rubric import Rubric
from autorubric.runs import evaluate_sync
from autorubric.scoring import EnsembleCriterionReport
from tests.metrics.asserting import brackets, number
from tests.metrics.reports import BINARY, NOMINAL, ORDINAL, Stars, labelled, report, run

FAULT = Criterion(name="fault", requirement="It has a fault.", weight=-0.5)
WORD = {0: "UNMET", 1: "MET"}


def scored(*reports: list[EnsembleCriterionReport], scores: Any = None) -> Any:
    """A run with these reports, and the item scores that it gave."""
    made = run(*reports)
    for place, one in enumerate(made.item_results):
        if scores is not None:
            one.report.node_scores[""] = float(scores[place])
    return made


def two_criteria(n: int, n_labelled: int, seed: int) -> tuple[Any, RubricDataset, Any, Any]:
    """A run on a point and a fault, truth known to the first items only; with truth and verdicts."""
    rng = np.random.default_rng(seed)
    truth = np.column_stack([rng.random(n) < 0.7, rng.random(n) < 0.3]).astype(int)
    right = rng.random(truth.shape) < 0.85
    judged = np.where(right, truth, 1 - truth)
    names = ("clear", "fault")
    truths = [
        {name: WORD[int(v)] for name, v in zip(names, row, strict=True)} if i < n_labelled else None
        for i, row in enumerate(truth)
    ]
    reports = [[report(BINARY, WORD[int(a)]), report(FAULT, WORD[int(b)])] for a, b in judged]
    scores = np.clip(judged @ [1.0, -0.5], 0, 1)
    return scored(*reports, scores=scores), labelled([BINARY, FAULT], *truths), truth, judged


def test_folded_by_hand() -> None:
    """Each criterion by Rogan and Gladen, folded: θ_clear - θ_fault / 2, the denominator being 1."""
    graded, dataset, truth, judged = two_criteria(200, 80, seed=2)
    found = corrected_score(graded, dataset)
    rates = [corrected_rate(judged[:, c], truth[:80, c], judged[:80, c], ci=None) for c in (0, 1)]
    assert found.per_criterion["clear"].value == pytest.approx(float(rates[0]))
    assert found.per_criterion["fault"].value == pytest.approx(float(rates[1]))
    assert found.score == pytest.approx(float(rates[0]) - float(rates[1]) / 2)
    assert found.raw == pytest.approx(judged[:, 0].mean() - judged[:, 1].mean() / 2)
    assert found.labelled_only == pytest.approx(truth[:80, 0].mean() - truth[:80, 1].mean() / 2)
    assert (found.n_items, found.n_labelled, found.n_incomplete, found.reason) == (200, 80, 0, None)
    # Sums below 0: a fault without the point, by the judge or by a label.
    below = (judged @ [1, -0.5] < 0) | ((truth @ [1, -0.5] < 0) & (np.arange(200) < 80))
    assert found.n_clamped == below.sum()
    assert brackets(found.score)
    json.dumps(found.to_dict(), allow_nan=False)


def test_ppi_folded_by_hand() -> None:
    """Each criterion by ppi++, labelled items against the others, folded."""
    graded, dataset, truth, judged = two_criteria(300, 100, seed=3)
    found = corrected_score(graded, dataset, method="ppi++")
    wanted = [
        corrected_rate(judged[100:, c], truth[:100, c], judged[:100, c], method="ppi++") for c in (0, 1)
    ]
    assert [one.lam for one in found.per_criterion.values()] == pytest.approx([w.lam for w in wanted])
    assert found.score == pytest.approx(float(wanted[0]) - float(wanted[1]) / 2)
    assert brackets(found.score)


def test_fixed_lambda_folded_by_hand() -> None:
    """lam=1 on both criteria, and on item scores: mean(f_U) + mean(Y - f_L) in numpy."""
    graded, dataset, truth, judged = two_criteria(300, 100, seed=3)
    found = corrected_score(graded, dataset, method="ppi++", lam=1.0)
    means = judged[100:].mean(axis=0) + (truth - judged)[:100].mean(axis=0)
    assert [one.lam for one in found.per_criterion.values()] == [1.0, 1.0]
    assert found.score == pytest.approx(means[0] - means[1] / 2)
    whole = corrected_score(graded, dataset, method="ppi++", on="items", lam=1.0)
    y, f = (np.clip(one @ [1.0, -0.5], 0, 1) for one in (truth, judged))
    assert whole.score == pytest.approx(f[100:].mean() + (y - f)[:100].mean())


def test_item_scores_by_ppi() -> None:
    """On items the scores are corrected as they are, clamped: λ mean(f_U) + mean(Y - λ f_L) in numpy."""
    graded, dataset, truth, judged = two_criteria(300, 100, seed=4)
    found = corrected_score(graded, dataset, method="ppi++", on="items")
    y = np.clip(truth[:100] @ [1.0, -0.5], 0, 1)
    f = np.clip(judged @ [1.0, -0.5], 0, 1)
    lam = np.cov(y, f[:100], ddof=0)[0, 1] / ((1 + 100 / 200) * f.var(ddof=1))
    assert found.score == pytest.approx(lam * f[100:].mean() + (y - lam * f[:100]).mean())
    assert brackets(found.score)
    assert found.per_criterion == {}


def test_covariance_of_criteria_is_kept() -> None:
    """Two criteria that are always answered alike vary together: the score's error is the sum of theirs."""
    rng = np.random.default_rng(6)
    twin = BINARY.model_copy(update={"name": "twin"})
    truth = (rng.random(150) < 0.6).astype(int)
    judged = np.where(rng.random(150) < 0.9, truth, 1 - truth)
    reports = [[report(BINARY, WORD[int(v)]), report(twin, WORD[int(v)])] for v in judged]
    truths = [{"clear": WORD[int(v)], "twin": WORD[int(v)]} if i < 70 else None for i, v in enumerate(truth)]
    found = corrected_score(scored(*reports), labelled([BINARY, twin], *truths))
    errors = [number(one.value.se) for one in found.per_criterion.values()]
    # Smoothing draws each table for itself, so the two are not quite one.
    assert number(found.score.se) == pytest.approx(sum(errors) / 2, rel=0.05)


@pytest.mark.parametrize("method", ["rogan-gladen", "ppi++"])
def test_abstentions_are_a_third_answer(method: Any) -> None:
    """The same value as `corrected_rate`, with every label; the summary counts the abstentions."""
    rng = np.random.default_rng(7)
    truth = (rng.random(500) < 0.6).astype(int)
    judged = np.where(rng.random(500) < 0.85, truth, 1 - truth)
    said = [WORD[int(v)] for v in judged]
    for at in np.flatnonzero(rng.random(500) < np.where(truth == 1, 0.04, 0.4)):
        said[at] = "CANNOT_ASSESS"
    truths = [{"clear": WORD[int(v)]} if i < 200 else None for i, v in enumerate(truth)]
    found = corrected_score(
        scored(*[[report(BINARY, one)] for one in said]), labelled([BINARY], *truths), method=method
    )
    tested = said[200:] if method == "ppi++" else said
    wanted = corrected_rate(tested, truth[:200], said[:200], method=method)
    assert found.score == pytest.approx(float(wanted))
    assert found.labelled_only == pytest.approx(truth[:200].mean())
    n_abstained = said.count("CANNOT_ASSESS")
    assert (found.n_items, found.n_labelled, found.n_abstained, found.n_unjudged) == (
        500,
        200,
        n_abstained,
        0,
    )
    assert f"items with abstentions {n_abstained}" in " ".join(found.summary().split())
    share = f"on the {100 - n_abstained / 5:.0f}% of cells they answered"
    assert f"{share} ({n_abstained} of 500 items have abstentions)" in found.summary()


def test_item_scores_keep_the_labels_of_abstentions() -> None:
    """An item without a score because of abstentions counts as 1/2 beside its label: λ in numpy."""
    said = ["MET"] * 60 + ["CANNOT_ASSESS"] * 30 + ["UNMET"] * 60
    truths = [{"clear": "MET" if i % 5 else "UNMET"} if i % 2 else None for i in range(150)]
    scores = [{"MET": 1.0, "UNMET": 0.0}.get(one) for one in said]
    graded = scored(*[[report(BINARY, one)] for one in said])
    for one, score in zip(graded.item_results, scores, strict=True):
        one.report.node_scores[""] = score
    found = corrected_score(graded, labelled([BINARY], *truths), method="ppi++", on="items", lam=1.0)
    f = np.array([0.5 if score is None else score for score in scores])
    y = np.array([bool(i % 5) for i in range(150)])
    known = np.arange(150) % 2 == 1
    assert found.score == pytest.approx(f[~known].mean() + (y - f)[known].mean())
    assert (found.n_labelled, found.n_abstained) == (75, 30)


def test_na_labels_are_a_true_answer_without_a_value() -> None:
    """A judge that is always right, NA included, leaves the mean of the labels that have an answer."""
    answers = ["high"] * 40 + ["low"] * 20 + ["some"] * 20 + ["n/a"] * 40
    truths = [{"depth": one} if i % 2 else None for i, one in enumerate(answers)]
    found = corrected_score(
        scored(*[[report(ORDINAL, one)] for one in answers]), labelled([ORDINAL], *truths)
    )
    assert found.score == pytest.approx((40 + 8) / 80)
    assert found.per_criterion["depth"].distribution == pytest.approx(
        {"low": 0.25, "some": 0.25, "high": 0.5}
    )


def test_options_by_hand() -> None:
    """Three options, M inverted: of 10 low the judge calls 8 low and 2 some, some and high it gets right.

    It calls 40 of 100 items low, 40 some and 20 high: low = 40/0.8 = 50, some = 40 - 0.2·50 = 30, high = 20.
    Mean value = 0.5·0 + 0.3·0.4 + 0.2·1 = 0.32. (The labelled 30 are among the 100.)
    """
    labelled_pairs = (
        [("low", "low")] * 8 + [("low", "some")] * 2 + [("some", "some")] * 10 + [("high", "high")] * 10
    )
    others = ["low"] * 32 + ["some"] * 28 + ["high"] * 10
    reports = [[report(ORDINAL, said)] for said in [pair[1] for pair in labelled_pairs] + others]
    truths = [{"depth": pair[0]} for pair in labelled_pairs] + [None] * 70
    found = corrected_score(scored(*reports), labelled([ORDINAL], *truths))
    shares = found.per_criterion["depth"].distribution
    assert shares == pytest.approx({"low": 0.5, "some": 0.3, "high": 0.2})
    assert found.score == pytest.approx(0.32)


def test_perfect_judges_change_nothing() -> None:
    """Without an error among the labels the corrected score is the raw one, for every kind of option."""
    answers = [("high", "warm"), ("low", "dry"), ("some", "cold")] * 10
    reports = [[report(ORDINAL, a), report(NOMINAL, b)] for a, b in answers]
    truths = [{"depth": a, "tone": b} if i < 15 else None for i, (a, b) in enumerate(answers)]
    found = corrected_score(scored(*reports), labelled([ORDINAL, NOMINAL], *truths))
    assert found.score == pytest.approx(float(found.raw))


def test_penalties_alone_start_at_one() -> None:
    """With penalties only the score is 1 less the fault's rate: the scoring formula's own start and scale."""
    reports = [[report(FAULT, said)] for said in ["MET"] * 5 + ["UNMET"] * 15]
    truths = [{"fault": said} for said in ["MET"] * 5 + ["UNMET"] * 15]
    found = corrected_score(scored(*reports), labelled([FAULT], *truths))
    assert found.score == pytest.approx(0.75)


def few_options(seed: int) -> tuple[Any, RubricDataset]:
    """Sixty items with three options of which ten are labelled, by a judge that is right in three of four."""
    rng = np.random.default_rng(seed)
    words = ["low", "some", "high"]
    truth = rng.integers(0, 3, 60)
    judged = np.where(rng.random(60) < 0.6, truth, rng.integers(0, 3, 60))
    truths = [{"depth": words[k]} if i < 10 else None for i, k in enumerate(truth)]
    return scored(*[[report(ORDINAL, words[k])] for k in judged]), labelled([ORDINAL], *truths)


def test_no_interval_where_resamples_are_undefined() -> None:
    """Above a tenth of the resamples without a figure the others say too much: the value stands alone."""
    found = corrected_score(*few_options(seed=0))
    assert "undefined resamples: 209" in found.score.method
    assert (found.score.low, found.score.high, found.score.reason) == (None, None, "degenerate_resamples")
    assert found.per_criterion["depth"].value.reason == "degenerate_resamples"
    kept = corrected_score(*few_options(seed=15))
    assert "undefined resamples: 60" in kept.score.method
    assert brackets(kept.score)


@pytest.mark.parametrize("on", ["criteria", "items"])
def test_means_stay_on_their_scale(on: Any) -> None:
    """Of 60 labels 55 are met, 45 by the judge, which finds all others met: 55/60 + (1 - 45/60) passes 1."""
    said = ["UNMET"] * 15 + ["MET"] * 345
    truths = [{"clear": "MET" if i >= 5 else "UNMET"} if i < 60 else None for i in range(360)]
    graded = scored(*[[report(BINARY, one)] for one in said], scores=[one == "MET" for one in said])
    found = corrected_score(graded, labelled([BINARY], *truths), method="ppi++", on=on)
    for one in (found.score, *(part.value for part in found.per_criterion.values())):
        assert 0 <= number(one.low) <= number(one.value) <= number(one.high) <= 1


def test_summary_says_the_score_first() -> None:
    """A sentence with both means, then the figures and a row a criterion; a refusal says why."""
    graded, dataset, _, _ = two_criteria(120, 60, seed=5)
    found = corrected_score(graded, dataset)
    lines = found.summary().splitlines()
    assert lines[1].startswith(
        f"Corrected with rogan-gladen on 60 labelled items, the mean score is {found.score:.3f} ["
    )
    assert lines[1].endswith(f"the judges' own mean is {found.raw:.3f}.")
    assert sum(line.strip().startswith(("clear", "fault")) for line in lines) == 2
    refused = corrected_score(*few_options(seed=3)).summary()
    assert "could not be corrected (uninformative_judge)" in refused


def test_refused_without_a_true_answer_that_is_given() -> None:
    """The judge says high, and no label does: what high stands for is unknown, and with it the score."""
    reports = [[report(ORDINAL, said)] for said in ["low", "some", "high"] * 5]
    truths = [{"depth": "low" if i % 3 == 0 else "some"} for i in range(15)]
    found = corrected_score(scored(*reports), labelled([ORDINAL], *truths))
    assert found.reason == found.score.reason == "too_few_labels"


def test_refused_where_the_judge_is_uninformative() -> None:
    """A judge that says the contrary is refused on its criterion, and the score with it."""
    pairs = [("MET", "UNMET"), ("UNMET", "MET")] * 10
    found = corrected_score(
        scored(*[[report(BINARY, b)] for _, b in pairs]),
        labelled([BINARY], *[{"clear": a} for a, _ in pairs]),
    )
    assert found.per_criterion["clear"].reason == found.reason == "uninformative_judge"


def test_refused_with_few_labels_or_no_other_item() -> None:
    """ppi++ takes 50 labels, and items without."""
    graded, dataset, _, _ = two_criteria(80, 49, seed=5)
    assert corrected_score(graded, dataset, method="ppi++").reason == "too_few_labels"
    assert corrected_score(graded, dataset, method="ppi++", on="items").reason == "too_few_labels"
    graded, dataset, _, _ = two_criteria(60, 60, seed=5)
    assert corrected_score(graded, dataset, method="ppi++").reason == "no_values"


def test_numbers_are_refused_by_inversion() -> None:
    """Numbers have no confusions, but ppi++ corrects their mean."""
    stars = Stars(name="stars", weight=1.0)
    rng = np.random.default_rng(1)
    truth = rng.integers(1, 6, 120)
    judged = np.clip(truth + rng.integers(-1, 2, 120), 1, 5)
    reports = [[report(stars, int(v))] for v in judged]
    dataset = labelled([stars], *[{"stars": int(v)} if i < 60 else None for i, v in enumerate(truth)])
    assert corrected_score(scored(*reports), dataset).reason == "not_comparable"
    found = corrected_score(scored(*reports), dataset, method="ppi++")
    assert found.score == pytest.approx((truth.mean() - 1) / 4, abs=0.08)


def test_gates_bend_the_score() -> None:
    """A gate makes the score no sum: the criteria stand, the score is refused and says why."""
    gate = Criterion(name="clear", requirement="It is clear.", weight=1.0, gate="required")
    reports = [[report(gate, said)] for said in ["MET", "UNMET"] * 10]
    dataset = labelled([gate], *[{"clear": said} for said in ["MET", "UNMET"] * 10])
    found = corrected_score(scored(*reports), dataset)
    assert (found.score.reason, found.bends) == ("nonlinear_score", ("gates",))
    assert found.per_criterion["clear"].value == 0.5


def test_chosen_labels() -> None:
    """Chosen labels refuse ppi++ and drop the labelled mean."""
    graded, dataset, _, _ = two_criteria(120, 60, seed=5)
    with pytest.raises(ArgumentError, match="random sample"):
        corrected_score(graded, dataset, method="ppi++", sampled="chosen")
    found = corrected_score(graded, dataset, sampled="chosen")
    assert found.labelled_only.reason == "not_comparable"
    assert found.score.value is not None


def test_same_seed_same_figures() -> None:
    """The seed fixes the resamples."""
    graded, dataset, _, _ = two_criteria(120, 60, seed=5)
    assert corrected_score(graded, dataset, rng=2) == corrected_score(graded, dataset, rng=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on": "runs"}, "on must be.* got 'runs'"),
        ({"on": "items"}, "requires method='ppi\\+\\+'"),
        ({"ci": "analytic"}, "ci must be.* got 'analytic'"),
        ({"method": "x"}, "method must be.* got 'x'"),
        ({"confidence_level": "0.9"}, "confidence_level must be.* got '0.9'"),
        ({"n_resamples": 1.5}, "n_resamples must be.* got 1.5"),
        ({"dataset": "labels.csv"}, "got str .labels.csv."),
    ],
)
def test_faulty_options_are_refused(options: dict[str, Any], message: str) -> None:
    """What is given and what is allowed stand in the message."""
    graded, dataset, _, _ = two_criteria(20, 10, seed=5)
    with pytest.raises(ArgumentError, match=message):
        corrected_score(graded, **{"dataset": dataset} | options)


def test_label_tables_have_no_weights() -> None:
    """A table of labels is not a run."""
    with pytest.raises(ArgumentError, match="result must be an EvalResult"):
        corrected_score([{"item_id": "a"}], labelled([BINARY], None))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"result must be an EvalResult.* got NoneType"):
        corrected_score(None)  # type: ignore[arg-type]


def test_items_need_one_rubric() -> None:
    """Criteria of different items have no common rate."""
    first: BaseCriterion = BINARY
    heavier = BINARY.model_copy(update={"weight": 2.0})
    graded = scored([report(first, "MET")], [report(heavier, "MET")])
    items = [{"submission": f"text {i}", "rubric": Rubric([c])} for i, c in enumerate((first, heavier))]
    with pytest.raises(ArgumentError, match="different rubrics"):
        corrected_score(graded, RubricDataset(items=items))


def test_items_of_any_rubrics_have_scores(tmp_path: Path) -> None:
    """On items nothing but the scores counts."""
    rubrics = [Rubric([BINARY.model_copy(update={"name": name})]) for name in "ab"] * 40
    items = [
        {
            "submission": f"text {i}",
            "rubric": rubric,
            "ground_truth": ["MET" if i % 3 else "UNMET"] if i < 60 else None,
        }
        for i, rubric in enumerate(rubrics)
    ]
    data = RubricDataset(items=items)
    graded = evaluate_sync(
        data, CriterionGrader(judges=[lambda request: "MET"]), show_progress=False, experiments_dir=tmp_path
    )
    found = corrected_score(graded, method="ppi++", on="items")
    assert (found.n_items, found.n_labelled, found.raw.value) == (80, 60, 1.0)
    assert found.score == pytest.approx(2 / 3)
