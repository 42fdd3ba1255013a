"""Comparisons: what a judge is asked, how answers are read in letters and names, and what they are worth."""

from __future__ import annotations

import json
import pickle
import random
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from autorubric.criteria import BaseCriterion, ComparativeCriterion, Shown, Submission
from autorubric.criteria.comparative import candidate_id
from autorubric.errors import ReplyError

PAIR = Submission.parse({"gpt": "Heavy drops fall.", "claude": "Rain is wet."})
THREE = Submission.parse({"x": "one", "y": "two", "z": "three"})

names = st.text(min_size=1, max_size=6).filter(
    lambda name: name.strip().casefold() not in ("", "tie", "cannot assess", "cannot_assess")
)


def several(low: int, high: int) -> st.SearchStrategy[list[str]]:
    return st.lists(names, min_size=low, max_size=high, unique_by=lambda name: name.strip().casefold())


def comparing(submission: Submission = PAIR, **fields: Any) -> BaseCriterion:
    return ComparativeCriterion(**{"name": "better", **fields}).bind(submission)


def of(found: list[str]) -> Submission:
    return Submission(text="t", candidates=dict.fromkeys(found, "t"))


# Schemas


def test_schemas_depend_on_the_mode() -> None:
    """Pairs have a winner, rankings a list of texts, the best one a text; a margin is a field of its own."""

    def fields(**given: Any) -> dict[str, Any]:
        schema = ComparativeCriterion(name="c", **given).evaluation_schema
        return {name: field.annotation for name, field in schema.model_fields.items()}

    head, tail = {"criterion_name": str}, {"explanation": str}
    assert fields() == {**head, "winner": str, **tail}
    assert fields(margin=2) == {**head, "winner": str, "margin": int, **tail}
    assert fields(mode="ranking") == {**head, "ranking": list[str], **tail}
    assert fields(mode="best_of") == {**head, "best": str, **tail}


def test_a_margin_belongs_to_pairs() -> None:
    """Rankings and the best of several have none."""
    with pytest.raises(ValidationError, match="requires mode 'pairwise'; got mode 'ranking'"):
        ComparativeCriterion(name="c", mode="ranking", margin=2)
    with pytest.raises(ValidationError):
        ComparativeCriterion(name="c", margin=-1)


def test_what_a_judge_is_told() -> None:
    """The mode is in the criterion and in how to answer; candidates are not named."""
    for mode, word in (("pairwise", "better?"), ("ranking", "order"), ("best_of", "best?")):
        criterion = comparing(mode=mode, requirement="Which explains more?")
        assert word in criterion.render().split("\n")[1]
        assert "gpt" not in criterion.render() + criterion.instruction()
    assert "1 (slightly) to 2 (far)" in comparing(margin=2).instruction()


# Reading


@pytest.mark.parametrize(
    ("label", "code", "value"),
    [
        ("gpt", "gpt", 1.0),
        (" GPT ", "gpt", 1.0),
        ("claude", "claude", 0.0),
        ("tie", "tie", 0.5),
        ("Tie.", "tie", 0.5),
        (-1, "gpt", 1.0),
        ("1", "claude", 0.0),
        (0, "tie", 0.5),
        ({"winner": "claude", "explanation": "longer"}, "claude", 0.0),
    ],
)
def test_labels_of_a_pair(label: Any, code: str, value: float) -> None:
    """A name, a tie, or a number that is negative where the first is better."""
    answer = comparing().parse_truth(label)
    assert answer is not None
    assert (answer.code, answer.value) == (code, value)


@pytest.mark.parametrize(
    ("label", "code", "value", "words"),
    [
        (-2, -2, 1.0, "gpt by 2"),
        ("-1", -1, 0.75, "gpt by 1"),
        ("tie", 0, 0.5, "tie"),
        (1.0, 1, 0.25, "claude by 1"),
        (1.5, 1.5, 0.125, "claude by 1.5"),
        ({"winner": "claude", "margin": 2, "explanation": ""}, 2, 0.0, "claude by 2"),
        ({"winner": "tie", "margin": 0, "explanation": ""}, 0, 0.5, "tie"),
    ],
)
def test_labels_of_a_graded_pair(label: Any, code: float, value: float, words: str) -> None:
    """The preference -m..m is mapped to [0, 1]; means of labels are labels too."""
    answer = comparing(margin=2).parse_truth(label)
    assert answer is not None
    assert (answer.code, answer.value, answer.label) == (code, value, words)


@pytest.mark.parametrize(
    ("label", "code", "value"),
    [
        (["y", "x", "z"], ["y", "x", "z"], 0.5),
        (["x", ["y", "z"]], ["x", ["y", "z"]], 1.0),
        ("z > x = y", ["z", ["x", "y"]], 0.25),
        ({"ranking": ["z", "y", "x"], "explanation": ""}, ["z", "y", "x"], 0.0),
    ],
)
def test_labels_of_a_ranking(label: Any, code: Any, value: float) -> None:
    """(k - rank) / (k - 1) of the first candidate; those that share a place have the mean of its ranks."""
    answer = comparing(THREE, mode="ranking").parse_truth(label)
    assert answer is not None
    assert (answer.code, answer.value) == (code, value)


@pytest.mark.parametrize(("label", "value"), [("x", 1.0), ("z", 0.0), (["x", "z"], 0.5), (["y", "z"], 0.0)])
def test_labels_of_the_best(label: Any, value: float) -> None:
    """1 where the first is best, 0 where it is not; several that share the place share the 1."""
    answer = comparing(THREE, mode="best_of").parse_truth(label)
    assert answer is not None
    assert answer.value == value
    assert answer.index == ({"x": 0, "z": 2}[label] if isinstance(label, str) else None)


@pytest.mark.parametrize(
    ("fields", "submission", "reply", "told"),
    [
        ({}, PAIR, "gemini", "is not a candidate; candidates: gpt, claude"),
        ({}, PAIR, 2, "a preference must be a number from -1 to 1; got 2"),
        ({}, PAIR, -0.5, "got -0.5"),
        ({}, PAIR, ["gpt"], "is not a candidate"),
        ({}, PAIR, True, "is not a candidate"),
        ({}, PAIR, {"best": "gpt"}, "the reply must contain 'winner'"),
        ({"margin": 2}, PAIR, "gpt", "margin must be 1 to 2"),
        ({"margin": 2}, PAIR, {"winner": "gpt", "margin": 3}, "margin must be 1 to 2; got 3"),
        ({"margin": 2}, PAIR, {"winner": "gpt", "margin": 0}, "margin must be 1 to 2; got 0"),
        ({"margin": 2}, PAIR, float("nan"), "is not a candidate"),
        ({"mode": "ranking"}, THREE, ["x", "y"], "omits z"),
        ({"mode": "ranking"}, THREE, ["x", "y", "z", "x"], "rank each candidate exactly once"),
        ({"mode": "ranking"}, THREE, ["x", "y", "w"], "'w' is not a candidate"),
        ({"mode": "ranking"}, THREE, 3, "a ranking must be a list, best first; got 3"),
        ({"mode": "ranking"}, THREE, ["x", "y", "z", []], "rank each candidate exactly once"),
        ({"mode": "best_of"}, THREE, ["x", "x"], "each of them only once"),
        ({"mode": "best_of"}, THREE, [], "each of them only once"),
        ({}, THREE, "x", "exactly two candidates; the submission has 3"),
        ({"mode": "best_of"}, Submission(text="t"), "x", "two or more candidates; the submission has none"),
        ({}, of(["tie", "win"]), "win", "must not be named 'tie'"),
        ({"mode": "best_of"}, of(["Cannot assess", "win"]), "win", "must not be named 'Cannot assess'"),
        ({}, of([" ", "win"]), "win", "candidate names must not be blank; got ' '"),
        ({"margin": 2}, PAIR, {"winner": "tie", "margin": 2}, "the margin of a tie must be 0; got 2"),
        ({"margin": 2}, PAIR, {"winner": "gpt", "margin": 1.5}, "margin must be 1 to 2; got 1.5"),
    ],
)
def test_what_is_no_answer(fields: dict[str, Any], submission: Submission, reply: Any, told: str) -> None:
    """Errors say what was given and what is allowed."""
    with pytest.raises(ReplyError, match=told):
        comparing(submission, **fields).read(reply)


def test_models_answer_in_letters() -> None:
    """Letters stand for the candidates in the order shown; a name or a number means nothing there."""
    shown = Shown(names=("claude", "gpt"))
    for said in ("A", "a", "Candidate A", "**A**", "[A].", '"candidate A"'):
        assert comparing().read({"winner": said, "explanation": ""}, shown).code == "claude"
    for reply in ({"Winner": "A", "Explanation": "x"}, {"result": {"winner": "A", "explanation": "x"}}):
        answer = comparing().read(reply, shown)
        assert (answer.code, answer.reason) == ("claude", "x")
    assert comparing().read({"winner": "TIE"}, shown).code == "tie"
    for said in ("gpt", "C", "", "1", "AB"):
        with pytest.raises(ReplyError):
            comparing().read({"winner": said}, shown)
    ranked = comparing(THREE, mode="ranking").read({"ranking": ["C", "A", "B"]}, Shown(names=("z", "x", "y")))
    assert ranked.code == ["y", "z", "x"]


def test_a_candidate_may_be_called_like_a_letter() -> None:
    """Where letters are read, names that look like them do not count."""
    submission = Submission.parse({"a": "first", "b": "second"})
    assert comparing(submission).read({"winner": "A"}, Shown(names=("b", "a"))).code == "b"
    assert comparing(submission).read({"winner": "A"}).code == "a"


def test_letters_run_on_after_z() -> None:
    """There are as many as candidates."""
    ids = [candidate_id(place) for place in range(60)]
    assert ids[:3] + ids[25:28] == ["A", "B", "C", "Z", "A1", "B1"]
    assert len(set(ids)) == 60


def test_without_a_submission_names_are_kept_and_have_no_value() -> None:
    """Which candidate is the first is not known then; numbers and ties need no names."""
    unbound = ComparativeCriterion(name="c").bind(Submission(text=None))
    assert (unbound.read("gpt").code, unbound.read("gpt").value) == ("gpt", None)
    assert (unbound.read(-1).code, unbound.read(-1).value) == (-1, 1.0)
    assert unbound.read("tie").value == 0.5
    assert unbound.read("-1").value == 1.0
    graded = ComparativeCriterion(name="c", margin=2).read({"winner": "gpt", "margin": 2})
    assert graded.code == {"winner": "gpt", "margin": 2}
    assert ComparativeCriterion(name="c", mode="ranking").read("b > a").code == ["b", "a"]
    assert ComparativeCriterion(name="c", mode="best_of").read("b").value is None
    assert unbound.candidate_values(unbound.read("gpt")) == ()
    assert ComparativeCriterion(name="c", mode="ranking").candidate_values(graded) == ()


def test_the_worst_answer_for_the_first_candidate() -> None:
    """It loses, comes last, or is not the best; for a penalty the other way round."""
    assert comparing().conservative().code == "claude"
    assert comparing(margin=3, weight=-1.0).conservative().code == -3
    assert comparing(THREE, mode="ranking").conservative().code == ["y", "z", "x"]
    assert comparing(THREE, mode="ranking", weight=-1.0).conservative().code == ["x", "y", "z"]
    assert comparing(THREE, mode="best_of").conservative().value == 0.0
    assert comparing(THREE, mode="ranking").answer_at(0.3).code is None


def test_a_bound_criterion_is_pickled_and_bound_once() -> None:
    """Workers get the names with it; facing the same candidates again changes nothing."""
    criterion = comparing()
    assert pickle.loads(pickle.dumps(criterion)).read("gpt").value == 1.0  # noqa: S301 - our own bytes
    assert criterion.bind(PAIR) is criterion
    assert criterion.bind(THREE) != criterion


# Properties


@given(st.data(), st.sampled_from([0, 1, 3]))
def test_either_presentation_gives_the_same_answer(data: st.DataObject, margin: int) -> None:
    """Whichever order a judge saw, its preference for a candidate is read as the same answer."""
    pair = data.draw(several(2, 2))
    criterion = comparing(of(pair), margin=margin)
    preferred = data.draw(st.sampled_from(pair))
    steps = {"margin": data.draw(st.integers(1, margin))} if margin else {}
    answers = []
    for order in criterion.presentations(of(pair), random.Random(0)):
        letter = candidate_id(order.index(preferred))
        answers.append(criterion.read({"winner": letter, **steps}, Shown(names=order)))
    assert len(answers) == 2
    assert answers[0] == answers[1]
    again = criterion.parse_truth(json.loads(json.dumps(answers[0].code)))
    assert again is not None
    assert (again.code, again.value) == (answers[0].code, answers[0].value)


@given(several(2, 2), st.sampled_from([0, 2]), st.sampled_from([-2, -1, 0, 1, 2]))
def test_swapping_a_pair_flips_the_value(pair: list[str], margin: int, preference: int) -> None:
    """The value is that of the first candidate: declared the other way round it is what is left of 1."""
    signed = preference if margin else max(-1, min(1, preference))
    one = comparing(of(pair), margin=margin).read(signed)
    other = comparing(of(pair[::-1]), margin=margin).read(-signed)
    assert one.value is not None
    assert one.value + (other.value or 0.0) == 1.0
    assert one.label == other.label


@given(st.data())
def test_rankings_go_through_letters_and_back(data: st.DataObject) -> None:
    """In any order of presentation a ranking is read as the names that it means."""
    found = data.draw(several(2, 6))
    criterion = comparing(of(found), mode="ranking")
    wanted = data.draw(st.permutations(found))
    order = tuple(data.draw(st.permutations(found)))
    answer = criterion.read({"ranking": [candidate_id(order.index(n)) for n in wanted]}, Shown(names=order))
    assert answer.code == wanted
    assert answer.value == pytest.approx((len(found) - 1 - wanted.index(found[0])) / (len(found) - 1))
    assert criterion.ranking_answer(criterion.candidate_values(answer)).code == wanted


@given(st.data(), st.sampled_from(["pairwise", "ranking", "best_of"]))
def test_a_standing_holds_the_value_for_each_candidate(data: st.DataObject, mode: Any) -> None:
    """Were a candidate declared first, the same answer would have the value that stands for it."""
    found = data.draw(several(2, 2 if mode == "pairwise" else 4))
    points = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=len(found), max_size=len(found)))
    criterion = comparing(of(found), mode=mode)
    answer = criterion.ranking_answer(points)
    standing = criterion.candidate_values(answer)
    assert standing[0] == answer.value
    for place, name in enumerate(found):
        moved = [name, *(other for other in found if other != name)]
        assert comparing(of(moved), mode=mode).read(answer.code).value == pytest.approx(standing[place])


# Presentations and examples


def test_both_orders_are_the_declared_one_and_its_reverse() -> None:
    """For any number of candidates; nothing is drawn."""
    for seed in range(3):
        assert comparing().presentations(PAIR, random.Random(seed)) == (("gpt", "claude"), ("claude", "gpt"))
    ranking = comparing(THREE, mode="ranking")
    assert ranking.presentations(THREE, None) == (("x", "y", "z"), ("z", "y", "x"))


def test_one_order_is_drawn() -> None:
    """Each candidate comes first as often as not; without shuffling it is the order declared."""
    criterion = comparing(both_orders=False)
    drawn = [criterion.presentations(PAIR, random.Random(seed)) for seed in range(200)]
    assert all(len(orders) == 1 for orders in drawn)
    assert 70 < sum(orders == (("gpt", "claude"),) for orders in drawn) < 130
    assert criterion.presentations(PAIR, None) == (("gpt", "claude"),)


def test_nothing_to_compare_is_shown_once_and_said() -> None:
    """A judge is not asked twice for what no judge can be shown."""
    single = Submission(text="alone")
    assert comparing().presentations(single, None) == ((),)
    assert "exactly two candidates; the submission has none" in str(comparing().why_inapplicable(single))
    assert comparing().why_inapplicable(Submission(text=None)) is None
    assert comparing().example(single, comparing().read("tie")) == (None, None)


def test_examples_are_in_letters() -> None:
    """An example shows the candidates as a judge sees them, its answer by the letter, whatever the order."""
    firsts = set()
    for n in range(20):
        submission = Submission.parse({"good": f"text {n}", "bad": "other"})
        criterion = comparing(submission, margin=2)
        text, answer = criterion.example(submission, criterion.read(-2))
        assert text is not None
        better = "A" if text.startswith(f"Candidate A:\ntext {n}") else "B"
        assert answer == f"{better} by 2"
        assert f"Candidate {better}:\ntext {n}" in text
        assert "good" not in text
        firsts.add(better)
    assert firsts == {"A", "B"}


@pytest.mark.parametrize("margin", [2, 2.0, "2", "2.0", "2\u200b"])
def test_a_margin_is_read_in_any_form_of_a_number(margin: Any) -> None:
    """As ratings are."""
    answer = comparing(margin=3).read({"winner": "gpt", "margin": margin, "explanation": ""})
    assert answer.label == "gpt by 2"


@pytest.mark.parametrize(
    ("mode", "reply", "told"),
    [
        ("pairwise", "Z", "'Z' is not a candidate; candidates: A, B"),
        ("pairwise", "gpt", "'gpt' is not a candidate; candidates: A, B"),
        ("best_of", "Z", "candidates: A, B"),
        ("ranking", ["A"], "the ranking omits B"),
    ],
)
def test_errors_about_letters_name_nobody(mode: Any, reply: Any, told: str) -> None:
    """What goes back to a model that was shown letters speaks of letters, never of names."""
    with pytest.raises(ReplyError, match=told) as caught:
        comparing(mode=mode).read(reply, Shown(names=("claude", "gpt")))
    assert "claude" not in str(caught.value)
