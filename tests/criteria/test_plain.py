"""The plain criterion: verdicts and options."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from autorubric.criteria import Criterion, CriterionOption, CriterionVerdict, Submission
from autorubric.errors import ArgumentError, AutorubricError, ReplyError
from tests.doubles import binary, choice

SUBMISSION = Submission(text="text")


def test_options_make_a_criterion_multi_choice() -> None:
    """Without options it is binary, with them ordinal or nominal as the scale type says."""
    assert (binary().is_binary, binary().is_multi_choice, binary().level) == (True, False, "binary")
    assert (choice().is_binary, choice().is_multi_choice, choice().level) == (False, True, "ordinal")
    assert choice(scale_type="nominal").level == "nominal"
    assert binary().weight == 10.0


@pytest.mark.parametrize("word", ["MET", "met", " Met ", "yes", "TRUE", "pass", "1", "1.0", True, 1, 1.0])
def test_words_for_met(word: object) -> None:
    """MET, yes, true, pass and 1 are MET, in any case."""
    answer = binary().read(word)
    assert (answer.code, answer.value, answer.label, answer.index) == ("MET", 1.0, "MET", 1)


@pytest.mark.parametrize("word", ["UNMET", "No", "false", "fail", "0", "0.0", False, 0, 0.0])
def test_words_for_unmet(word: object) -> None:
    """UNMET, no, false, fail and 0 are UNMET, in any case."""
    answer = binary().read(word)
    assert (answer.code, answer.value, answer.index) == ("UNMET", 0.0, 0)


def test_cannot_assess_has_no_value() -> None:
    """The verdict CANNOT_ASSESS is an abstention."""
    answer = binary().read(CriterionVerdict.CANNOT_ASSESS)
    assert (answer.code, answer.value, answer.cannot_assess) == ("CANNOT_ASSESS", None, True)


@pytest.mark.parametrize("key", ["Verdict", "VERDICT", "verdict\u200b"])
def test_two_verdicts_are_none(key: str) -> None:
    """Keys that are equal after folding have no single reading."""
    with pytest.raises(ReplyError, match="differ only in case"):
        binary().read({"verdict": "MET", key: "UNMET"})


@pytest.mark.parametrize("word", ["", "maybe", "2", 2, 0.5, [], {}, "MET UNMET", "NA", "INVALID"])
def test_other_words_are_no_verdict(word: object) -> None:
    """Everything else is refused with what was given and what is allowed."""
    with pytest.raises(ReplyError, match=r"allowed: MET.*UNMET.*CANNOT_ASSESS") as caught:
        binary().read(word)
    assert "claim" in str(caught.value)


def test_a_long_wrong_reply_is_told_shortly() -> None:
    """An error goes back to the judge and into reports, so it does not repeat a megabyte."""
    for criterion in (binary(), choice()):
        with pytest.raises(ReplyError) as caught:
            criterion.read("x" * 1_000_000)
        assert len(str(caught.value)) < 500


def test_labels_are_read_in_any_case_quoted_or_enumerated() -> None:
    """Case, blanks, quotes and a bullet or number before the label do not count."""
    for word in ("fair", "FAIR ", '"fair"', "`Fair`", "- fair", "b) fair", "(2) fair", "2. fair"):
        assert choice().read({"label": word}).code == "fair"


def test_a_label_counts_as_written_before_it_is_cleaned() -> None:
    """Labels that look like decoration are found as they stand."""
    heights = choice(values={"5": 0.0, "5'": 1.0, "a. five": 0.5, "five": 0.25})
    assert heights.read("5'").code == "5'"
    assert heights.read("a. five").code == "a. five"
    odd = choice(values={"CANNOT_ASSESS": 0.0, "sure": 1.0})
    assert odd.read("cannot_assess").code == "CANNOT_ASSESS"


def test_words_before_a_label_are_no_enumeration() -> None:
    """A reply that says two things is not read as the second of them."""
    with pytest.raises(ReplyError):
        choice(values={"yes": 1.0, "not": 0.0}).read("no: yes")


def test_a_bare_number_may_be_a_value_or_a_label() -> None:
    """In truth and in functions a number stands for the option with that label, else with that value."""
    assert choice().parse_truth(0.5).code == "fair"  # type: ignore[union-attr]
    scale = choice(values={"1": 0.0, "2": 0.5, "3": 1.0})
    assert scale.read(1).code == "1"
    assert scale.read(2.0).code == "2"
    assert choice(values={"1000000": 0.0, "2": 1.0}).read(1000000).code == "1000000"
    with pytest.raises(ReplyError, match="the label or value of an option"):
        choice(values={"a": 0.5, "b": 0.5, "c": 1.0}).read(0.5)
    for huge in (10**400, -(10**5000)):
        with pytest.raises(ReplyError, match="the number is too large"):
            choice().parse_truth(huge)


def test_a_number_in_a_judges_reply_is_never_read_as_a_value() -> None:
    """A judge has not seen the values: its `1` may count the options, and the best one is no safe reading."""
    with pytest.raises(ReplyError, match="is not the label of an option"):
        choice().read({"label": 1, "reason": "the first"})
    assert choice(values={"1": 0.0, "2": 1.0}).read({"label": 1}).value == 0.0


def test_a_scale_may_be_left_open() -> None:
    """The words CANNOT_ASSESS abstain on a scale too, where no option is called so."""
    assert choice().read("cannot_assess").cannot_assess
    assert choice().read({"label": "CANNOT_ASSESS"}).cannot_assess


def test_an_na_option_has_no_value() -> None:
    """Choosing it is an abstention, and it needs no value of its own."""
    answer = choice(na="none").read("none")
    assert (answer.na, answer.value, answer.label, answer.abstains) == (True, None, "none", True)
    assert CriterionOption.model_validate({"label": "none", "na": True}).value == 0.0


@given(st.integers())
def test_options_are_shown_shuffled_with_na_last(seed: int) -> None:
    """The order is a permutation of the options in which NA options keep the end."""
    criterion = choice(values={"a": 0.0, "b": 0.3, "c": 0.6, "d": 1.0}, na="e")
    order = criterion.show(SUBMISSION, random.Random(seed)).order
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert order[-1] == 4
    lines = criterion.render(criterion.show(SUBMISSION, random.Random(seed))).splitlines()
    assert lines[-5:] == [f"- {'abcde'[index]}" for index in order]


def test_values_are_never_shown() -> None:
    """A judge sees labels, not what they are worth."""
    assert "0.5" not in choice().render() + choice().instruction()


def test_options_are_found_by_label_and_position() -> None:
    """`find_option_by_label` and `get_option_value` answer, or say what there is."""
    assert choice().find_option_by_label(" GOOD ") == 2
    assert choice().get_option_value(1) == 0.5
    with pytest.raises(ArgumentError, match="no option 'best'; allowed: 'poor', 'fair', 'good'"):
        choice().find_option_by_label("best")
    for index in (-1, 3):
        with pytest.raises(ArgumentError, match=f"no option at index {index}"):
            choice().get_option_value(index)
    with pytest.raises(AutorubricError, match="no option"):
        binary().find_option_by_label("MET")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"requirement": ""}, "at least 1 character"),
        ({}, "requirement"),
        ({"requirement": "r", "weight": float("nan")}, "finite"),
        ({"requirement": "r", "name": ""}, "at least 1 character"),
        ({"requirement": "r", "options": []}, "at least two options that are not NA"),
        ({"requirement": "r", "options": [{"label": "a", "value": 1.0}]}, "at least two"),
        (
            {"requirement": "r", "options": [{"label": "a", "value": 1.0}, {"label": "A ", "value": 0.0}]},
            "labels must be unique; repeated: 'a'",
        ),
        ({"requirement": "r", "options": [{"label": "a", "value": 1.5}, {"label": "b", "value": 0}]}, "1"),
        ({"requirement": "r", "options": [{"label": " ", "value": 1}, {"label": "b", "value": 0}]}, "blank"),
        ({"requirement": "r", "options": [{"label": "a"}, {"label": "b", "value": 0}]}, "value"),
        (
            {"requirement": "r", "options": ["a", {"label": "b", "value": 0}]},
            "either all options or none .* without a value: 'a'",
        ),
        ({"requirement": "r", "options": ["a", "A "]}, "labels must be unique; repeated: 'a'"),
        ({"requirement": "r", "options": ["a", 1]}, "an option must be a label"),
        ({"requirement": "r", "options": "ab"}, "options must be a list of labels"),
        (
            {"requirement": "r", "scale_type": "ordinal", "options": [{"label": "a", "value": None}, "b"]},
            "an ordinal scale must have values",
        ),
        ({"requirement": "r", "scale_type": "interval"}, "ordinal"),
        ({"requirement": "r", "check": 5}, "a check must be a function"),
        ({"requirement": "r", "check": ""}, "a check must be a function"),
    ],
)
def test_bad_criteria_are_refused(fields: dict[str, object], told: str) -> None:
    """Each fault gives one error that says what is wrong."""
    with pytest.raises(ValidationError, match=told):
        Criterion.model_validate(fields)


def test_plain_labels_are_options_without_values() -> None:
    """They are nominal in the declared order, and no answer has a value, a failed one's neither."""
    criterion = Criterion(requirement="Tone?", options=["good", "bad", {"label": "none", "na": True}])
    assert criterion.level == "nominal"
    assert not criterion.measures
    assert [one.label for one in criterion.answers()] == ["good", "bad", "none"]
    assert [one.value for one in criterion.answers()] == [None, None, None]
    assert criterion.get_option_value(1) is None
    assert criterion.read("Bad").index == 1
    assert criterion.conservative().value is None
    assert Criterion.model_validate(criterion.model_dump()) == criterion
    assert Criterion.model_validate_json(criterion.model_dump_json(exclude_defaults=True)) == criterion
    assert criterion == Criterion(requirement="Tone?", options=criterion.options)


@given(st.lists(st.text(min_size=1), min_size=2, unique_by=lambda one: one.strip().casefold()))
def test_plain_labels_of_an_ordinal_scale_are_evenly_spaced(labels: list[str]) -> None:
    """With `scale_type="ordinal"` they lie lowest first from 0 to 1."""
    labels = [f"x{label}" for label in labels]
    criterion = Criterion.model_validate({"requirement": "r", "options": labels, "scale_type": "ordinal"})
    values = [option.value for option in criterion.options or ()]
    assert values == [place / (len(labels) - 1) for place in range(len(labels))]
    assert Criterion.model_validate(criterion.model_dump()) == criterion


def test_what_is_asked_leaves_out_what_only_scores() -> None:
    """Weight, aggregation and option values change no question."""
    one = choice(weight=1.0, aggregation="min")
    other = choice(values={"poor": 0.1, "fair": 0.2, "good": 0.9}, weight=2.0)
    assert one.vote_fields() == other.vote_fields()
    assert one.vote_fields() != choice(values={"poor": 0.0, "fair": 0.5, "great": 1.0}).vote_fields()
    assert binary().vote_fields() != binary(requirement="Another?").vote_fields()
