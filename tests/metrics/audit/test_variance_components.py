"""Where the variance of votes comes from, and what it takes to be reliable."""

from __future__ import annotations

import json

import numpy as np
import pytest
import statsmodels.formula.api as formula
from hypothesis import given, settings, strategies as st
from pandas import DataFrame
from scipy.stats import f
from statsmodels.stats.anova import anova_lm

from autorubric.errors import ArgumentError
from autorubric.metrics import Interval, icc, variance_components
from autorubric.metrics.audit.facets import arrange_votes, effects_of, variance_estimates
from autorubric.metrics.audit.variance import Design, GeneralisabilityStudy, reliability
from autorubric.metrics.core.label_table import table_of
from tests.metrics.asserting import number
from tests.metrics.audit.tables import Rows, value_rows


def _study(rows: Rows, **options: float) -> GeneralisabilityStudy:
    """The study of a criterion of open numbers."""
    table = table_of(rows, scales=Interval())
    return variance_components(table, **{"n_resamples": 30, **options}).per_criterion["c"]  # type: ignore[arg-type]


def _raw(study: GeneralisabilityStudy) -> dict[str, float]:
    return {one.source: number(one.raw) for one in study.components}


def _cube(seed: int, sds: tuple[float, float, float, float], shape: tuple[int, int, int]) -> np.ndarray:
    """Item, judge, item × judge and sample effects of these standard deviations."""
    rng = np.random.default_rng(seed)
    i, j, s = shape
    return (
        rng.normal(0, sds[0], (i, 1, 1))
        + rng.normal(0, sds[1], (1, j, 1))
        + rng.normal(0, sds[2], (i, j, 1))
        + rng.normal(0, sds[3], (i, j, s))
    )


def test_components_by_hand() -> None:
    """Two judges, three items, one vote each: mean squares 7, 6 and 1, so that item = (7 - 1) / 2."""
    votes = np.array([[1.0, 3.0], [3.0, 3.0], [4.0, 7.0]])
    # Item means 2, 3, 5.5, judge means 8/3 and 13/3, grand mean 3.5.
    between_items = 2 * ((2 - 3.5) ** 2 + (3 - 3.5) ** 2 + (5.5 - 3.5) ** 2) / 2
    between_judges = 3 * ((8 / 3 - 3.5) ** 2 + (13 / 3 - 3.5) ** 2) / 1
    total = ((votes - 3.5) ** 2).sum()
    left = (total - 2 * between_items - between_judges) / 2
    found = _raw(_study(value_rows(votes)))
    assert found == pytest.approx(
        {"item": (between_items - left) / 2, "judge": (between_judges - left) / 3, "residual": left}
    )


@pytest.mark.parametrize("seed", range(4))
def test_balanced_components_are_those_of_anova(seed: int) -> None:
    """Expected mean squares of statsmodels' analysis of variance, solved, are the components."""
    i, j, s = shape = (12, 4, 3)
    votes = _cube(seed, (1.0, 0.5, 0.4, 0.7), shape)
    places = [place.reshape(-1) for place in np.meshgrid(*map(range, shape), indexing="ij")]
    frame = DataFrame({"y": votes.reshape(-1), "i": places[0], "j": places[1]})
    squares = anova_lm(formula.ols("y ~ C(i) * C(j)", frame).fit())["mean_sq"]
    within = squares["Residual"]
    both = (squares["C(i):C(j)"] - within) / s
    study = _study(value_rows(votes))
    assert study.balanced
    assert _raw(study) == pytest.approx(
        {
            "item": (squares["C(i)"] - squares["C(i):C(j)"]) / (j * s),
            "judge": (squares["C(j)"] - squares["C(i):C(j)"]) / (i * s),
            "item:judge": both,
            "sample": within,
        }
    )


@pytest.mark.parametrize("seed", range(3))
def test_coefficients_are_intraclass_correlations(seed: int) -> None:
    """With one vote a judge G is ICC(3,k), Φ is ICC(2,k), and Φ of a vote is ICC(2,1)."""
    votes = _cube(seed, (1.0, 0.5, 0.0, 0.7), (25, 4, 1))[:, :, 0]
    study = _study(value_rows(votes))
    assert study.g == pytest.approx(float(icc(votes, form="ICC(3,k)", ci=None)))
    assert study.phi == pytest.approx(float(icc(votes, form="ICC(2,k)", ci=None)))
    assert study.single == pytest.approx(float(icc(votes, form="ICC(2,1)", ci=None)))


def test_components_are_unbiased_with_votes_missing() -> None:
    """Over 300 tables with a third of the votes missing the mean estimates are the true components."""
    found = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        votes = _cube(seed + 1000, (1.0, 0.5, 0.4, 0.7), (20, 5, 2))
        kept = rng.random(votes.shape) > 0.33
        place = np.nonzero(kept)
        layout = arrange_votes(place[0], place[1], np.zeros(len(place[0]), dtype=int), votes[kept])
        found.append(variance_estimates(layout, effects_of(layout), np.ones((1, 20)))[0])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(mean - [1.0, 0.25, 0.16, 0.49]) < 4 * error)
    assert np.all(error < 0.03)


def test_an_item_drawn_twice_is_two_items() -> None:
    """Weights of resampled items give what a table with copied items gives, orders included."""
    rng = np.random.default_rng(5)
    shape = (7, 3, 2, 2)
    votes = rng.normal(size=shape) + rng.normal(size=(7, 1, 1, 1))
    kept = rng.random(shape) > 0.2
    drawn = np.array([2, 0, 1, 3, 1, 0, 0])

    def components(values: np.ndarray, there: np.ndarray, weights: np.ndarray) -> np.ndarray:
        place = np.nonzero(there)
        layout = arrange_votes(place[0], place[1], place[2], values[there])
        return np.asarray(variance_estimates(layout, effects_of(layout), weights[None, :])[0])

    copies = np.repeat(np.arange(7), drawn)
    assert components(votes, kept, drawn) == pytest.approx(
        components(votes[copies], kept[copies], np.ones(7))
    )


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000))
def test_order_and_origin_do_not_matter(seed: int) -> None:
    """Shuffling rows and moving all votes changes nothing; stretching them by 3 multiplies variances by 9."""
    votes = np.round(_cube(seed, (1.0, 0.5, 0.4, 0.7), (8, 3, 2)), 6)
    votes[np.random.default_rng(seed).random(votes.shape) < 0.15] = np.nan
    rows = value_rows(votes)
    shuffled = [rows[at] for at in np.random.default_rng(seed).permutation(len(rows))]
    base = _raw(_study(rows, n_resamples=1))
    assert _raw(_study(shuffled, n_resamples=1)) == pytest.approx(base, abs=1e-9)
    stretched = _raw(_study(value_rows(3 * votes + 50), n_resamples=1))
    assert stretched == pytest.approx({name: 9 * one for name, one in base.items()}, abs=1e-6)


def test_negative_components_are_flagged() -> None:
    """Where judges differ less than chance has it, the component is 0, flagged, beside the raw value."""
    rng = np.random.default_rng(0)
    votes = rng.normal(size=(20, 3))
    votes -= votes.mean(0)
    component = _study(value_rows(votes)).component("judge")
    assert component is not None
    assert component.variance == 0.0
    assert component.negative
    assert number(component.raw) < 0


def test_the_plan_is_the_smallest() -> None:
    """No design of fewer judges × samples reaches the target; the plan does."""
    study = _study(value_rows(_cube(3, (1.0, 0.6, 0.5, 1.2), (40, 5, 3))))
    variances = np.array([number(one.variance.value) for one in study.components])
    effects = [frozenset({0}), frozenset({1}), frozenset({0, 1}), frozenset()]

    def phi(judges: int, samples: int) -> float:
        design = Design(judges=judges, samples=samples, orders=1)
        return float(reliability(variances, effects, design, "phi"))

    plan = study.plan
    assert plan.judges is not None and plan.samples is not None
    votes = plan.judges * plan.samples
    assert plan.reached == pytest.approx(phi(plan.judges, plan.samples))
    assert number(plan.reached) >= 0.8
    assert all(phi(j, s) < 0.8 for j in range(1, votes) for s in range(1, 11) if j * s < votes)
    assert number(study.plan_g.judges) <= plan.judges


def test_the_plan_has_an_interval() -> None:
    """The interval of G is that of F (Feldt 1965), and the plan says how many judges are sure."""
    votes = _cube(3, (1.0, 0.3, 0.5, 0.8), (60, 4, 1))
    found = variance_components(value_rows(votes), n_resamples=20_000)
    plan = found.per_criterion["c"].plan_g
    cube = votes[:, :, 0]
    rest = cube - cube.mean(0) - cube.mean(1, keepdims=True) + cube.mean()
    ratio = 4 * cube.mean(1).var(ddof=1) / ((rest**2).sum() / (59 * 3))
    ends = [(ratio / f.ppf(q, 59, 177) - 1) / 4 for q in (0.975, 0.025)]
    assert plan.judges is not None
    wanted = [odds * plan.judges / (1 + odds * plan.judges) for odds in ends]
    assert (plan.low, plan.high) == pytest.approx(wanted, abs=0.004)
    found = variance_components(value_rows(np.clip(np.rint(3 + votes), 1, 5).astype(int)), n_resamples=200)
    score = found.score.plan
    assert number(score.low) < 0.8 <= number(score.reached) < number(score.high)
    assert f"may reach 0.8, which is not shown (Φ of the plan {score.reached:.3f} [" in found.summary()


def test_phi_by_brennans_formula() -> None:
    """Φ = σ²_p / (σ²_p + σ²_j / n_j + σ²_pj / n_j + σ²_s / (n_j n_s)), G without the judges' own term."""
    study = _study(value_rows(_cube(8, (1.0, 0.6, 0.5, 0.8), (50, 4, 3))))
    item, judge, both, sample = (number(one.variance.value) for one in study.components)
    relative = both / 4 + sample / 12
    assert study.phi == pytest.approx(item / (item + judge / 4 + relative))
    assert study.g == pytest.approx(item / (item + relative))
    assert study.single == pytest.approx(item / (item + judge + both + sample))
    assert sum(number(one.share) for one in study.components) == pytest.approx(1.0)


def test_the_same_judge_again_does_not_help() -> None:
    """Where all error is what a judge thinks of an item, samples are wasted and the plan takes one."""
    study = _study(value_rows(_cube(1, (1.0, 0.0, 1.0, 0.01), (60, 4, 3))))
    assert study.plan_g.samples == 1
    assert number(study.plan_g.judges) >= 3


def test_order_is_a_facet_where_it_is_known() -> None:
    """Votes that know their order have a component of it, which more judges do not average away."""
    rng = np.random.default_rng(2)
    i, j, o = (60, 3, 2)
    effect = rng.normal(0, 1, (i, 1, o))
    votes = rng.normal(0, 1, (i, 1, 1)) + effect + rng.normal(0, 0.3, (i, j, o))
    rows = [
        {"item_id": f"i{a}", "criterion": "c", "rater": f"j{b}", "rater_type": "llm", "sample": 0,
         "order": "xy"[c], "value": float(votes[a, b, c])}
        for a, b, c in np.ndindex(i, j, o)
    ]  # fmt: skip
    study = _study(rows, n_resamples=200)
    component = study.component("item:order")
    assert component is not None
    assert number(component.variance.low) < 1.0 < number(component.variance.high)
    assert study.n_orders == 2
    assert study.plan.judges is None
    assert study.plan.reason == "unattainable"


def test_one_judge_is_planned_in_samples_alone() -> None:
    """Of a single judge nothing is known of others: the plan adds samples."""
    study = _study(value_rows(_cube(4, (1.0, 0.0, 0.0, 1.0), (80, 1, 3))))
    assert [one.source for one in study.components] == ["item", "sample"]
    assert study.plan.judges == 1
    assert number(study.plan.samples) in range(3, 7)
    once = _study(value_rows(_cube(4, (1.0, 0.0, 0.0, 1.0), (80, 1, 1))))
    assert once.plan.reason in ("no_repeats", "no_variance")


def test_item_scores_weigh_criteria_alike_without_a_rubric() -> None:
    """The score's study is that of the mean over criteria of each judge and sample."""
    rng = np.random.default_rng(7)
    votes = {name: rng.integers(1, 6, (15, 3, 2)) for name in ("c", "d")}
    for one in votes.values():
        one[0, 0, :] = (1, 5)
    rows = [row for name, cube in votes.items() for row in value_rows(cube, criterion=name)]
    found = variance_components(rows, n_resamples=10)
    mean = sum(((cube - 1) / 4) for cube in votes.values()) / 2
    assert _raw(found.score) == pytest.approx(_raw(_study(value_rows(mean))))
    assert found.score.n_votes == 90


def test_intervals_resample_items() -> None:
    """The interval of the items' variance covers the truth, and follows the seed."""
    rows = value_rows(_cube(9, (1.0, 0.3, 0.2, 0.5), (100, 3, 2)))
    first, again, other = (_study(rows, n_resamples=200, rng=seed) for seed in (0, 0, 1))
    component = first.component("item")
    assert component is not None
    assert number(component.variance.low) < 1.0 < number(component.variance.high)
    assert first == again
    assert first.phi.low != other.phi.low


def test_too_little_is_undefined_with_a_reason() -> None:
    """One item, no vote, votes that never vary: None and a reason, no warning."""
    one = variance_components(value_rows([[1.0, 2.0]]))
    assert one.score.phi.reason == one.score.plan.reason == "too_few_units"
    none = variance_components([])
    assert none.score.phi.reason == "no_ratings"
    assert none.per_criterion == {}
    flat = _study(value_rows(np.ones((5, 3, 2))))
    assert flat.phi.reason == "no_variance"
    assert flat.plan.reason == "no_variance"
    for found in (one, none):
        json.dumps(found.to_dict(), allow_nan=False)


def test_a_target_out_of_range_is_refused() -> None:
    """A reliability of 1 cannot be planned for."""
    with pytest.raises(ArgumentError, match=r"target must be.* got 1\.0"):
        variance_components([], target=1.0)
