"""Whether the criteria of a rubric do their work."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from autorubric import CriterionGrader, DataItem, Rubric, RubricDataset, RubricGroup, evaluate_sync
from autorubric.criteria import Criterion
from autorubric.errors import ArgumentError
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.metrics import Interval, cronbach_alpha, item_analysis, kendall_tau_b
from autorubric.metrics.core.label_table import table_of
from autorubric.runs import EvalResult
from tests.metrics.asserting import number
from tests.metrics.audit.tables import Rows, binary_rows


def _rows(answers: np.ndarray) -> Rows:
    rows: Rows = []
    for at in range(answers.shape[1]):
        rows += binary_rows(None, {"a": answers[:, at].tolist()}, criterion=f"c{at}")
    return rows


def _answers(seed: int, n: int = 100, k: int = 5) -> np.ndarray:
    """Criteria that hang on one trait."""
    rng = np.random.default_rng(seed)
    trait = rng.normal(size=(n, 1))
    return (trait + rng.normal(size=(n, k)) > np.linspace(-1, 1, k)).astype(int)


def _graded(rubric: Rubric, answers: np.ndarray, folder: Path) -> EvalResult:
    """A run in which a judge said so on each item and criterion."""
    names = [leaf.name for leaf in rubric.root.leaves]

    def says(request: JudgeRequest) -> str:
        at = int(str(request.submission.text))
        return "MET" if answers[at, names.index(request.criterion.name)] else "UNMET"

    items = [DataItem(id=str(at), submission=str(at)) for at in range(len(answers))]
    judge = FunctionJudge(function=says, judge_id="j")
    dataset = RubricDataset(rubric=rubric, items=items)
    return evaluate_sync(
        dataset, CriterionGrader(judges=[judge]), experiments_dir=folder, show_progress=False
    )


def _criterion(name: str, weight: float) -> Criterion:
    return Criterion(name=name, requirement=f"It is {name}.", weight=weight)


@pytest.mark.parametrize("seed", range(3))
def test_discrimination_is_the_corrected_item_total_correlation(seed: int) -> None:
    """Each criterion against the mean of the others, and its pass rate."""
    answers = _answers(seed)
    found = item_analysis(_rows(answers))
    for at, one in enumerate(found.criteria):
        rest = np.delete(answers, at, axis=1).mean(1)
        assert one.discrimination == pytest.approx(np.corrcoef(answers[:, at], rest)[0, 1])
        assert one.mean == pytest.approx(answers[:, at].mean())
        assert one.alpha_without == pytest.approx(
            float(cronbach_alpha(np.delete(answers, at, axis=1), ci=None))
        )
    assert found.alpha == pytest.approx(float(cronbach_alpha(answers, ci=None)))


def test_upper_minus_lower_by_hand() -> None:
    """Of 100 items with distinct totals the 27 best and the 27 worst are set against each other."""
    rng = np.random.default_rng(4)
    levels = np.sort(rng.random(100))
    drawn = (rng.random(100) < levels).astype(float)
    rows = [
        {"item_id": f"i{i}", "criterion": name, "rater": "a", "rater_type": "llm", "value": float(values[i])}
        for name, values in (("steps", np.round(levels, 6)), ("bit", drawn))
        for i in range(100)
    ]  # fmt: skip
    table = table_of(rows, scales=Interval(0, 1))
    found = {one.name: one for one in item_analysis(table).criteria}
    bit = np.array([row["value"] for row in rows if row["criterion"] == "bit"])
    steps = np.array([row["value"] for row in rows if row["criterion"] == "steps"])
    order = np.argsort(steps + bit)
    expected = bit[order[-27:]].mean() - bit[order[:27]].mean()
    assert found["bit"].upper_lower == pytest.approx(expected)


def test_items_tied_at_the_edge_share_it() -> None:
    """Ten items with totals 0, ½ and 1, 2.7 wanted at each end: ties enter by their share."""
    # Totals: four items 0, four ½ (c0 alone), two 1. Upper 2.7: the two at 1, and .7 of those at ½.
    answers = np.array([[0, 0]] * 4 + [[1, 0]] * 4 + [[1, 1]] * 2)
    found = item_analysis(_rows(answers)).criteria
    assert found[0].upper_lower == pytest.approx(1.0 - 0.0)
    assert found[1].upper_lower == pytest.approx(2 / 2.7)


def test_copies_and_dead_criteria_are_named() -> None:
    """A criterion that repeats another, one that never varies and one that nobody answered."""
    answers = _answers(1, k=3)
    answers = np.column_stack([answers, answers[:, 0], np.ones(len(answers), dtype=int)])
    rows = _rows(answers)
    unanswered = {"item_id": "i0", "criterion": "c5"}
    rows.append({**unanswered, "rater": "a", "rater_type": "llm", "label": "CANNOT_ASSESS"})
    rows.append({**unanswered, "rater": "truth", "rater_type": "truth", "label": "MET"})
    found = item_analysis(rows)
    strongest = found.redundant[0]
    assert (strongest.first, strongest.second) == ("c0", "c3")
    assert strongest.correlation == pytest.approx(1.0)
    assert found.dead == ("c4", "c5")
    by_name = {one.name: one for one in found.criteria}
    assert by_name["c4"].dead == "no_variance"
    assert by_name["c4"].discrimination.reason == "no_variance"
    assert by_name["c5"].dead == "no_values"
    assert by_name["c5"].mean.reason == "no_values"
    json.dumps(found.to_dict(), allow_nan=False)
    assert "have no values: c4, c5. Check c0 and c3 next: they are redundant" in found.summary()
    two = item_analysis(_rows(_answers(1, k=2)), n_draws=1)
    assert "weakest correlation" not in two.summary()


def test_coin_flips_are_not_called_redundant_or_weak() -> None:
    """Of 190 pairs on 12 items some correlate by .7; copies on 80 items are shown to be redundant."""
    rng = np.random.default_rng(0)
    coins = item_analysis(_rows(rng.integers(0, 2, (12, 20))), n_draws=1)
    assert coins.redundant and all(number(one.correlation.low) < 0.7 for one in coins.redundant)
    assert coins.summary().startswith("No criterion clearly has the weakest correlation with the rest")
    copied = rng.integers(0, 2, (80, 4))
    found = item_analysis(_rows(np.column_stack([copied, copied[:, 0]])), n_draws=1)
    assert found.summary().startswith("Check c0 and c4 first: they are redundant (|r| 1.000 [0.8")
    reversed_copy = item_analysis(_rows(np.column_stack([copied, 1 - copied[:, 0]])), n_draws=1)
    assert "c0 and c4 first: they are redundant (|r| 1.000 [0.8" in reversed_copy.summary()


def test_the_weakest_criterion_needs_an_interval() -> None:
    """A coin among criteria that follow the text is the weakest."""
    rng = np.random.default_rng(2)
    quality = rng.random((100, 1))
    answers = np.column_stack([rng.random((100, 4)) < quality, rng.random(100) < 0.5]).astype(int)
    found = item_analysis(_rows(answers), n_draws=1)
    assert found.summary().startswith("Check c4 first: it has the weakest correlation with the rest, r = ")


def test_few_items_make_no_redundant_pair() -> None:
    """Criteria that agree on nine items are not called redundant; on ten they are."""
    alike = np.array([[0, 0], [1, 1]] * 5)
    assert item_analysis(_rows(alike[:9])).redundant == ()
    assert len(item_analysis(_rows(alike)).redundant) == 1


def test_scores_are_those_of_the_rubric(tmp_path: Path) -> None:
    """Dropping a criterion is set against the run's own scores, groups and penalties included."""
    rubric = Rubric(
        [
            _criterion("a", 3.0),
            _criterion("b", -2.0),
            RubricGroup("g", [_criterion("c", 1.0), _criterion("d", 2.0)], weight=4.0),
        ]
    )
    answers = _answers(2, n=40, k=4)
    result = _graded(rubric, answers, tmp_path)
    found = item_analysis(result, rater="panel")
    # Of the group 1/3 and 2/3 of its 4; of the whole 7.
    weights = np.array([3.0, -2.0, 4 / 3, 8 / 3])
    scores = np.array([score for score in result.get_scores() if score is not None])
    assert np.clip(answers @ weights / 7, 0, 1) == pytest.approx(scores)
    assert [one.weight for one in found.criteria] == pytest.approx(weights.tolist())
    for at, one in enumerate(found.criteria):
        left = np.delete(weights, at)
        without = np.clip(np.delete(answers, at, axis=1) @ left / left[left > 0].sum(), 0, 1)
        expected = kendall_tau_b(np.round(scores, 9), np.round(without, 9), ci=None)
        assert one.tau_without == pytest.approx(float(expected))


def test_penalties_are_turned_round(tmp_path: Path) -> None:
    """A penalty that good items avoid discriminates and adds to the reliability."""
    answers = _answers(6, n=60, k=3)
    answers[:, 2] = 1 - answers[:, 2]
    rubric = Rubric([_criterion("a", 1.0), _criterion("b", 1.0), _criterion("fault", -1.0)])
    found = item_analysis(_graded(rubric, answers, tmp_path))
    turned = answers.copy()
    turned[:, 2] = 1 - turned[:, 2]
    assert found.alpha == pytest.approx(float(cronbach_alpha(turned, ci=None)))
    assert found.criteria[2].discrimination > 0.2
    assert found.criteria[2].mean == pytest.approx(answers[:, 2].mean())
    assert any("penalties" in note for note in found.notes)


def test_stratified_alpha_by_its_formula(tmp_path: Path) -> None:
    """1 - Σ σ²_g (1 - α_g) / σ²_T over the rubric's groups; above alpha where groups hang together inside."""
    rng = np.random.default_rng(9)
    traits = rng.normal(size=(80, 2))
    answers = (np.repeat(traits, 3, axis=1) + rng.normal(0, 0.7, size=(80, 6)) > 0).astype(int)
    rubric = Rubric(
        [
            RubricGroup("one", [_criterion(name, 1.0) for name in "abc"], weight=1.0),
            RubricGroup("two", [_criterion(name, 1.0) for name in "def"], weight=1.0),
        ]
    )
    found = item_analysis(_graded(rubric, answers, tmp_path))
    groups = [answers[:, :3], answers[:, 3:]]
    left = sum(one.sum(1).var() * (1 - float(cronbach_alpha(one, ci=None))) for one in groups)
    assert found.stratified_alpha == pytest.approx(1 - left / answers.sum(1).var())
    assert found.stratified_alpha > found.alpha


def test_groups_without_a_complete_item_have_no_stratified_alpha(tmp_path: Path) -> None:
    """Where the judge leaves one criterion of every item open, stratified alpha says why it is undefined."""
    rubric = Rubric(
        [
            RubricGroup("one", [_criterion(name, 1.0) for name in "ab"], weight=1.0),
            RubricGroup("two", [_criterion(name, 1.0) for name in "cd"], weight=1.0),
        ]
    )

    def says(request: JudgeRequest) -> str:
        left_open = "abcd"[int(str(request.submission.text)) % 4]
        return "CANNOT_ASSESS" if request.criterion.name == left_open else "MET"

    dataset = RubricDataset(
        rubric=rubric, items=[DataItem(id=str(at), submission=str(at)) for at in range(8)]
    )
    grader = CriterionGrader(judges=[FunctionJudge(function=says, judge_id="j")])
    found = item_analysis(evaluate_sync(dataset, grader, experiments_dir=tmp_path, show_progress=False))
    assert (found.stratified_alpha.value, found.stratified_alpha.n) == (None, 0)
    assert found.stratified_alpha.reason is not None


def test_weights_that_do_not_matter_keep_the_order() -> None:
    """No spread changes nothing; more spread changes more; criteria that agree leave the order alone."""
    rows = _rows(_answers(3, n=60))
    still, little, much = (
        item_analysis(rows, spread=spread, n_draws=60).weights for spread in (0.0, 0.1, 1.0)
    )
    assert still.tau == pytest.approx(1.0)
    assert still.top_kept == 1.0
    assert float(much.tau) < float(little.tau) < 1.0
    same = np.repeat(np.random.default_rng(0).integers(0, 2, (30, 1)), 3, axis=1)
    assert item_analysis(_rows(same), spread=1.0, n_draws=20).weights.tau == pytest.approx(1.0)


def test_seeds_decide_and_item_order_does_not() -> None:
    """The same seed gives the same result; shuffled rows give the same figures."""
    rows = _rows(_answers(5, n=40))
    first, again = (item_analysis(rows, rng=3, n_draws=20).to_dict() for _ in range(2))
    assert first == again
    shuffled = [rows[at] for at in np.random.default_rng(0).permutation(len(rows))]
    moved = {one.name: one for one in item_analysis(shuffled, rng=3, n_draws=20).criteria}
    for one in item_analysis(rows, rng=3, n_draws=20).criteria:
        assert one.discrimination == pytest.approx(float(moved[one.name].discrimination))
        assert one.upper_lower == pytest.approx(float(moved[one.name].upper_lower))


def test_rubrics_that_differ_by_item_have_no_total() -> None:
    """Where no item has all criteria, alpha is undefined; what each criterion does is not."""
    rows = binary_rows(None, {"a": [1, 0, 1]}, criterion="x")
    rows += [{**row, "item_id": f"o{row['item_id']}", "criterion": "y"} for row in rows]
    found = item_analysis(rows)
    assert found.alpha.reason == "too_few_units"
    assert found.criteria[0].mean == pytest.approx(2 / 3)
    assert found.criteria[0].discrimination.value is None
    alone = item_analysis(binary_rows(None, {"a": [1, 0, 1]}))
    assert alone.alpha.reason == "no_pairs"


def test_options_out_of_range_are_refused() -> None:
    """An unknown rater, a threshold of 0 and a negative spread say what is allowed."""
    rows = _rows(_answers(0, n=5))
    with pytest.raises(ArgumentError, match=r"rater must be.*'a'.* got 'b'"):
        item_analysis(rows, rater="b")
    with pytest.raises(ArgumentError, match="redundant_from"):
        item_analysis(rows, redundant_from=0.0)
    with pytest.raises(ArgumentError, match="spread"):
        item_analysis(rows, spread=-1.0)
    assert number(item_analysis(rows, rater="a").criteria[0].mean.value) >= 0
