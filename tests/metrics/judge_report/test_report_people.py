"""Judges in the place of people, and what the summary says first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autorubric.errors import ArgumentError
from autorubric.metrics import Binary, cohen_kappa, judge_report
from tests.metrics.asserting import brackets, number
from tests.metrics.judge_report.tables import drawn_table, labels


def everyone_alike(n_people: int, n_items: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """People and a judge who are all right on 85 % of the items."""
    met = rng.random(n_items) < 0.5
    rows: list[dict[str, Any]] = []
    for kind, who in (("judge", "j"), *(("human", f"h{at}") for at in range(n_people))):
        right = rng.random(n_items) < 0.85
        rows += labels(kind, who, "clear", np.where(met == right, "MET", "UNMET").tolist())
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("n_people", [2, 3, 4, 5])
def test_a_judge_that_is_as_people_are_has_no_gap(n_people: int) -> None:
    """The gap of a judge drawn as the people are is 0 on average, however many people there are.

    Set against all of the people, a judge came out .19 above each of two people, and .04 below each of three.
    """
    rng = np.random.default_rng(n_people)
    gaps = []
    for _ in range(12):
        found = judge_report(everyone_alike(n_people, 300, rng), scales=Binary(), n_resamples=40)
        assert found.human_ceiling is not None
        gaps.append(number(found.human_ceiling.gap["j"].kappa.value))
    # A gap has a standard deviation of about .05: four standard errors of the mean of 12.
    assert abs(float(np.mean(gaps))) < 0.058


def test_a_gap_sets_both_against_the_same_rest() -> None:
    """Of two people the rest of one is the other: kappa of the judge and of the person with it, by hand."""
    rows = everyone_alike(2, 60, np.random.default_rng(0))
    said = {who: [row["label"] for row in rows if row["rater"] == who] for who in ("j", "h0", "h1")}
    found = judge_report(rows, scales=Binary(), n_resamples=100).human_ceiling
    assert found is not None and found.made_the_truth
    between = number(cohen_kappa(said["h0"], said["h1"], scale=Binary()).value)
    with_each = [number(cohen_kappa(said["j"], said[who], scale=Binary()).value) for who in ("h0", "h1")]
    gap = found.gap["j"].kappa
    assert number(gap.value) == pytest.approx(float(np.mean(with_each)) - between)
    assert brackets(gap)
    assert found.gap["panel"].kappa.value == gap.value


def test_a_gap_is_on_the_cells_of_the_person() -> None:
    """What a person did not answer does not count for the judge in that person's place either."""
    people = {"h0": ["MET", "UNMET", "MET", "UNMET"], "h1": ["MET", "UNMET", "MET", "MET"]}
    rows = labels("human", "h0", "c", people["h0"]) + labels("human", "h1", "c", people["h1"])
    rows += labels("human", "h2", "c", ["MET", "UNMET"])
    rows += labels("judge", "j", "c", ["MET", "UNMET", "UNMET", "MET"])
    found = judge_report(rows, scales=Binary(), n_resamples=20).human_ceiling
    assert found is not None
    # h0 against h1 and h2, who say M, U, M, M: 3 of 4, the judge 3 of 4.
    # h1 against h0 and h2, who say M, U, M, U: 3 of 4, the judge 2 of 4.
    # h2 against h0 and h1 on the two items it has: 2 of 2, the judge 2 of 2. In the mean (0 - 1/4 + 0) / 3.
    assert number(found.gap["j"].accuracy.value) == pytest.approx(-1 / 12)


def test_other_labels_than_theirs_are_not_set_beside_people() -> None:
    """Where the truth is not what most people say, the first looks draw no verdict from the gap."""
    rows = everyone_alike(3, 60, np.random.default_rng(1))
    theirs = judge_report(rows, scales=Binary(), n_resamples=40)
    assert theirs.human_ceiling is not None and theirs.human_ceiling.made_the_truth
    assert "Against the same annotators" in theirs.summary()
    rows += labels("truth", "gold", "clear", ["MET", "UNMET"] * 30)
    other = judge_report(rows, scales=Binary(), n_resamples=40)
    assert other.human_ceiling is not None and not other.human_ceiling.made_the_truth
    assert "The labels are not from these annotators" in other.summary()
    assert "Against the same annotators" not in other.summary()


def test_a_judge_named_like_a_person_stays_apart() -> None:
    """In the place of a person the judge of that name is still the judge."""
    rows = everyone_alike(3, 40, np.random.default_rng(2))
    renamed = [row | {"rater": "h0"} if row["rater"] == "j" else row for row in rows]
    one, other = (judge_report(table, scales=Binary(), n_resamples=20) for table in (rows, renamed))
    assert one.human_ceiling is not None and other.human_ceiling is not None
    assert one.human_ceiling.gap["j"] == other.human_ceiling.gap["h0"]


def test_tied_judges_are_said_to_be_tied() -> None:
    """Two judges that never agree leave the panel undecided, not unasked, and the judges lead."""
    truth = ["MET", "UNMET"] * 4
    rows = labels("truth", "truth", "c", truth) + labels("judge", "a", "c", truth)
    rows += labels("judge", "b", "c", [*truth[1:], "MET"])
    found = judge_report(rows, scales=Binary(), n_resamples=50)
    assert found.panel.failures.undecided_rate == 1.0
    assert found.panel.failures.not_asked_rate == 0.0
    first, second, *rest = found.summary().splitlines()[1:]
    assert first.startswith("- a: mean kappa 1.000") and second.startswith("- b: mean kappa")
    assert "The panel was tied on 100.0% of 8 cells" in rest[0]
    assert "was not asked" not in found.summary()


def test_a_table_without_judges_has_no_panel() -> None:
    """People and a truth alone: nobody was left unasked."""
    rows = labels("truth", "truth", "c", ["MET", "UNMET"]) + labels("human", "h0", "c", ["MET", "MET"])
    found = judge_report(rows, scales=Binary(), n_resamples=20)
    text = found.summary()
    assert "There are no judges to compare" in text
    assert "not asked" not in text and not any("no vote" in one for one in found.warnings)


def test_judges_that_do_equally_well_have_no_best() -> None:
    """On one item, or with equal figures, no judge is said to do best alone."""
    one = labels("truth", "truth", "c", ["MET"])
    for who, said in (("a", "MET"), ("b", "UNMET")):
        one += labels("judge", who, "c", [said])
    assert "The best of" not in judge_report(one, scales=Binary(), n_resamples=20).summary()
    truth = ["MET", "UNMET", "MET", "UNMET"]
    tied = labels("truth", "truth", "c", truth)
    for who in ("a", "b"):
        tied += labels("judge", who, "c", truth)
    assert "The best of" not in judge_report(tied, scales=Binary(), n_resamples=20).summary()


def test_a_summary_names_its_settings() -> None:
    """How abstentions counted, the level, the resamples and the seed stand in it."""
    rows = drawn_table(n_items=10, n_people=1)
    rows = [row for row in rows if row["criterion"] == "clear"]
    plain = judge_report(rows, scales=Binary(), n_resamples=30, rng=7, confidence_level=0.9).summary()
    assert "abstain='exclude'; intervals: 90%, 30 resamples, seed 7" in plain
    assert "Abstentions are counted" not in plain
    strict = judge_report(rows, scales=Binary(), n_resamples=30, abstain="as_negative").summary()
    assert strict.splitlines()[2] == "- Abstentions are counted as the lowest answer (abstain='as_negative')."


@pytest.mark.parametrize("rng", [None, -1, "x", 1.5, True])
def test_a_seed_that_is_none_is_refused(rng: Any) -> None:
    """A seed is a whole number from 0."""
    with pytest.raises(ArgumentError, match="rng must be a non-negative integer"):
        judge_report(drawn_table(n_items=4), rng=rng)


def test_a_seed_of_numpy_is_a_seed() -> None:
    """A number of numpy's seeds as the plain one does."""
    rows = [row for row in drawn_table(n_items=6) if row["criterion"] == "clear"]
    of_numpy: Any = np.int64(5)
    one, other = (judge_report(rows, scales=Binary(), n_resamples=20, rng=seed) for seed in (5, of_numpy))
    assert one == other and one.seed == 5
