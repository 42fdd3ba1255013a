"""Probabilities of all answers, read from the alternatives to the tokens of a reply."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from autorubric.criteria import BaseCriterion, Criterion, CriterionOption, LikertCriterion, Submission
from autorubric.criteria.base import AS_DECLARED, Shown
from autorubric.criteria.fields import BoundInt
from autorubric.judges.token_probabilities import LEAST_MASS, Certainty, TokenText, certainty_of
from autorubric.llm.transport import Token
from autorubric.llm.wire import reply_in
from autorubric.scoring.probabilities import read_probabilities
from tests.criteria.kinds import KINDS
from tests.doubles import binary, choice
from tests.servers.tokens import logprobs_of

VERDICTS = {"MET": 0.7, "UNMET": 0.2, "CANNOT_ASSESS": 0.1}
CUTS = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def options(*labels: str) -> Criterion:
    """A nominal criterion with these labels."""
    return Criterion(name="c", requirement="r", options=list(labels), scale_type="nominal")


def say(
    criterion: BaseCriterion,
    replies: Mapping[str, float],
    said: str,
    *,
    key: str = "",
    shown: Shown = AS_DECLARED,
    **tokens: Any,
) -> Certainty:
    """What a reply says of its certainty, after its way over the wire."""
    logprobs = logprobs_of(said, replies, **tokens)
    envelope = {"choices": [{"message": {"content": said}, "logprobs": logprobs}]}
    reply = reply_in(json.loads(json.dumps(envelope)), "m")
    assert reply is not None
    found = certainty_of(criterion, shown, TokenText(reply.tokens), key)
    if found.probabilities is not None:
        # What is stored is what can be read.
        read_probabilities(criterion, found.probabilities)
    return found


def fields(name: str, shares: Mapping[Any, float], **before: Any) -> dict[str, float]:
    """Whole replies that differ in one field, with their probabilities."""
    return {json.dumps({**before, name: value}, ensure_ascii=False): share for value, share in shares.items()}


@given(CUTS, st.sampled_from(list(VERDICTS)), st.text(max_size=20), st.sampled_from([None, 0, 2]))
def test_however_a_reply_is_cut_the_distribution_is_the_same(
    cuts: list[int], said: str, reason: str, indent: int | None
) -> None:
    """Tokens may begin before the value and end in the middle of it, or of a character of the reason."""
    replies = {
        json.dumps({"reason": reason, "verdict": verdict}, indent=indent, ensure_ascii=False): share
        for verdict, share in VERDICTS.items()
    }
    text = next(text for text in replies if json.loads(text)["verdict"] == said)
    found = say(binary(), replies, text, cuts=cuts)
    assert found.probabilities == pytest.approx(VERDICTS, abs=1e-5)
    assert found.confidence == pytest.approx(VERDICTS[said], abs=1e-5)


WORDS = st.text('abü"é😀 ', min_size=1, max_size=4).filter(lambda word: bool(word.strip()))
LABELS = st.lists(WORDS, min_size=2, max_size=5, unique_by=lambda word: word.strip().casefold())


@given(LABELS, CUTS, st.data())
def test_labels_are_told_apart_or_it_is_said_that_they_are_not(
    labels: list[str], cuts: list[int], data: st.DataObject
) -> None:
    """Labels may begin with each other, and have quotation marks and characters of several bytes."""
    weights = data.draw(st.lists(st.integers(1, 99), min_size=len(labels), max_size=len(labels)))
    shares = {label: weight / sum(weights) for label, weight in zip(labels, weights, strict=True)}
    said = data.draw(st.sampled_from(labels))
    replies = fields("label", shares, reason="r")
    found = say(options(*labels), replies, list(replies)[labels.index(said)], cuts=cuts)
    if found.probabilities is None:
        assert found.unknown is not None and "begin with the same token" in found.unknown
    else:
        assert found.probabilities == pytest.approx(shares, abs=1e-5 + 0.011)
    if len({label[0] for label in labels}) == len(labels) and all(label[0].isascii() for label in labels):
        assert found.probabilities == pytest.approx(shares, abs=1e-5)


def test_what_a_later_token_tells_apart_is_divided_there() -> None:
    """`very good` and `very bad` begin alike; what was said first leaves less for both."""
    shares = {"very good": 0.42, "very bad": 0.28, "poor": 0.3}
    replies = fields("label", shares, reason="r")
    for said in (0, 1):
        found = say(options(*shares), replies, list(replies)[said], cuts=[5])
        assert found.probabilities == pytest.approx(shares, abs=1e-5)


def test_labels_that_begin_alike_are_named() -> None:
    """The model said `poor`; nobody knows how it would have gone on after `very`."""
    shares = {"very good": 0.42, "very bad": 0.28, "poor": 0.3}
    replies = fields("label", shares, reason="r")
    found = say(options(*shares), replies, list(replies)[2], cuts=[5])
    assert found.probabilities is None
    assert found.unknown == "['very bad', 'very good'] begin with the same token and cannot be told apart"


def likert(high: int) -> LikertCriterion:
    """A scale from 1."""
    return LikertCriterion(name="l", requirement="r", rating=BoundInt(min_val=1, max_val=high))


@pytest.mark.parametrize("said", ["1", "10"])
def test_a_number_that_begins_another_is_told_apart_by_what_follows(said: str) -> None:
    """After `1` comes a bracket or a digit."""
    replies = {'{"explanation": "e", "rating": 1}': 0.6, '{"explanation": "e", "rating": 10}': 0.4}
    text = next(one for one in replies if one.endswith(f" {said}}}"))
    found = say(likert(10), replies, text, cuts=[1])
    assert found.probabilities is not None
    shares = {label: share for label, share in found.probabilities.items() if share}
    assert shares == pytest.approx({"1": 0.6, "10": 0.4}, abs=1e-5)
    assert sum(found.probabilities.values()) == pytest.approx(1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(("one", "is_told"), [(0.3, False), (0.004, True)])
def test_a_number_that_may_begin_another_is_not_counted_for_it(one: float, is_told: bool) -> None:
    """A 7 was said, and a 1 may be the beginning of 10; if it is improbable, that makes no difference."""
    replies = {'{"rating": 7}': 1.0 - one, '{"rating": 1}': one}
    found = say(likert(10), replies, '{"rating": 7}', cuts=[1])
    assert (found.probabilities is not None) == is_told
    if not is_told:
        assert found.unknown == "['1', '10'] begin with the same token and cannot be told apart"


def test_on_a_scale_of_one_digit_every_number_counts() -> None:
    """There is no 10 that a 1 could begin."""
    shares = {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.3, 5: 0.1}
    replies = fields("rating", shares, explanation="e")
    found = say(likert(5), replies, list(replies)[3], cuts=[3])
    assert found.probabilities == pytest.approx({str(k): v for k, v in shares.items()}, abs=1e-5)


def test_alternatives_that_a_grammar_excludes_do_not_count() -> None:
    """llama.cpp lists what the model would have written without the schema; what is left is made 1."""
    replies = fields("verdict", VERDICTS, reason="r")
    found = say(binary(), replies, next(iter(replies)), cuts=[3], other={" The": 0.3, "Met": 0.1})
    assert found.probabilities == pytest.approx(VERDICTS, abs=1e-5)


def test_below_the_least_mass_there_are_none() -> None:
    """A model that would rather have written something else says little about the verdict."""
    replies = fields("verdict", VERDICTS, reason="r")
    found = say(binary(), replies, next(iter(replies)), cuts=[3], other={" The": 1.01 - LEAST_MASS})
    assert found.probabilities is None
    assert found.unknown == "tokens that begin an answer have a probability of only 0.09; 0.1 is required"


def test_a_token_that_is_not_among_the_top_counts() -> None:
    """A grammar can choose a token that the model found improbable; servers list the top ones only."""
    shares = {"MET": 0.02, "UNMET": 0.9, "CANNOT_ASSESS": 0.08}
    replies = fields("verdict", shares, reason="r")
    found = say(binary(), replies, next(iter(replies)), cuts=[3], most=2)
    assert found.probabilities == pytest.approx(shares, abs=1e-5)


def test_a_label_that_may_be_hidden_is_named() -> None:
    """With one alternative, the others may be as probable as what is left."""
    replies = fields("verdict", VERDICTS, reason="r")
    found = say(binary(), replies, next(iter(replies)), cuts=[3], most=1)
    assert found.probabilities is None and found.unknown is not None
    assert "most probable tokens begins one of ['CANNOT_ASSESS', 'UNMET']" in found.unknown
    assert "increase logprobs" in found.unknown


def test_a_certain_token_needs_no_alternatives() -> None:
    """What is left for the others is less than a hundredth."""
    replies = fields("verdict", {"MET": 0.999, "UNMET": 0.001}, reason="r")
    found = say(binary(), replies, next(iter(replies)), cuts=[3], most=1)
    assert found.probabilities == pytest.approx({"MET": 1.0, "UNMET": 0.0, "CANNOT_ASSESS": 0.0})


@given(CUTS)
def test_an_abstention_of_its_own_field_takes_its_share(cuts: list[int]) -> None:
    """The labels share what is left."""
    replies = {}
    for abstains, p in ((False, 0.8), (True, 0.2)):
        for label, share in {"good": 0.75, "bad": 0.25}.items():
            text = json.dumps({"reason": "r", "cannot_assess": abstains, "label": label})
            replies[text] = p * share
    expected = {"good": 0.6, "bad": 0.2, "CANNOT_ASSESS": 0.2}
    for said in replies:
        found = say(options("good", "bad"), replies, said, cuts=cuts)
        assert found.probabilities == pytest.approx(expected, abs=1e-5)


def test_a_field_that_cannot_be_told_apart_is_named() -> None:
    """Labels are not to blame if the tokens of `cannot_assess` are vague."""
    sure, vague = Token(' "good"', 0.0, (("x", -9.0),)), Token(" true", -0.5, ((" ", -0.9),))
    tokens = [Token('{"label":', 0.0), sure, Token(', "cannot_assess":', 0.0), vague, Token("}", 0.0)]
    found = certainty_of(options("good", "bad"), AS_DECLARED, TokenText(tokens), "")
    told = "['cannot_assess: false', 'cannot_assess: true'] begin with the same token"
    assert found.unknown == f"{told} and cannot be told apart"


def test_without_the_field_an_abstention_is_not_included() -> None:
    """A server that enforces no schema may leave it out."""
    replies = fields("label", {"good": 0.75, "bad": 0.25}, reason="r")
    found = say(options("good", "bad"), replies, next(iter(replies)), cuts=[4])
    assert found.probabilities == pytest.approx({"good": 0.75, "bad": 0.25}, abs=1e-5)


def test_an_option_that_is_not_applicable_is_a_label() -> None:
    """Its share is not that of an abstention."""
    criterion = Criterion(
        name="c",
        requirement="r",
        options=[
            CriterionOption(label="yes", value=1.0),
            CriterionOption(label="no", value=0.0),
            CriterionOption(label="does not apply", value=None, na=True),
        ],
    )
    shares = {"yes": 0.5, "no": 0.3, "does not apply": 0.2}
    replies = fields("label", shares, reason="r")
    found = say(criterion, replies, next(iter(replies)), cuts=[4])
    assert found.probabilities == pytest.approx(shares, abs=1e-5)


@given(CUTS)
def test_every_part_of_a_checklist_has_its_own(cuts: list[int]) -> None:
    """Each is conditional on those before it, which are independent here."""
    given_shares = {"has_docstring": 0.9, "has_tests": 0.25, "handles_errors": 0.5}
    replies = {}
    for bits in range(8):
        said = {name: bool(bits >> at & 1) for at, name in enumerate(given_shares)}
        share = math.prod(p if said[name] else 1 - p for name, p in given_shares.items())
        replies[json.dumps({"reason": "r", **said, "cannot_assess": False})] = share
    found = say(KINDS["checklist"](name="c", requirement="r"), replies, list(replies)[5], cuts=cuts)
    assert found.probabilities is not None
    for name, p in given_shares.items():
        expected = {"yes": p, "no": 1 - p, "CANNOT_ASSESS": 0.0}
        assert found.probabilities[name] == pytest.approx(expected, abs=1e-5)


def test_every_dimension_has_its_own() -> None:
    """Scores are labels."""
    replies = {}
    for content, p in ((4, 0.75), (2, 0.25)):
        for style, q in ((0, 0.5), (1, 0.3), (2, 0.2)):
            said = {"content_explanation": "e", "content_score": content, "style_explanation": "e"}
            replies[json.dumps({**said, "style_score": style, "cannot_assess": False})] = p * q
    found = say(KINDS["analytic_rubric"](name="a", requirement="r"), replies, next(iter(replies)), cuts=[2])
    assert found.probabilities is not None
    assert found.probabilities["content_score"]["4"] == pytest.approx(0.75, abs=1e-5)  # type: ignore[index]
    assert found.probabilities["style_score"]["1"] == pytest.approx(0.3, abs=1e-5)  # type: ignore[index]


@pytest.mark.parametrize("order", [("left", "right"), ("right", "left")])
def test_letters_of_candidates_become_their_names(order: tuple[str, str]) -> None:
    """In both orders."""
    criterion = KINDS["comparative"](name="p", requirement="r").bind(
        Submission.parse({"left": "one", "right": "two"})
    )
    replies = fields("winner", {"A": 0.6, "B": 0.3, "tie": 0.1}, explanation="e")
    found = say(criterion, replies, next(iter(replies)), cuts=[3], shown=Shown(names=order))
    expected = {order[0]: 0.6, order[1]: 0.3, "tie": 0.1}
    assert found.probabilities == pytest.approx(expected, abs=1e-5)


@given(CUTS)
def test_every_criterion_of_a_shared_reply_has_its_own(cuts: list[int]) -> None:
    """The answers of other criteria are text before and after it."""
    replies = {}
    for first, p in VERDICTS.items():
        for second, q in {"good": 0.9, "bad": 0.1}.items():
            said = [
                {"id": "c1a2b", "reason": '"verdict": "MET" {', "verdict": first},
                {"id": "c3c4d", "reason": "r", "cannot_assess": False, "label": second},
            ]
            replies[json.dumps({"evaluations": said})] = p * q
    for said_text in list(replies)[2:4]:
        one = say(binary(), replies, said_text, key="c1a2b", cuts=cuts)
        other = say(options("good", "bad"), replies, said_text, key="c3c4d", cuts=cuts)
        assert one.probabilities == pytest.approx(VERDICTS, abs=1e-5)
        assert other.probabilities == pytest.approx({"good": 0.9, "bad": 0.1, "CANNOT_ASSESS": 0.0}, abs=1e-5)
        assert one.confidence == pytest.approx(VERDICTS["UNMET"], abs=1e-5)


def test_thinking_before_the_answer_is_text() -> None:
    """A draft in it does not count."""
    thinking = '<think>Perhaps {"verdict": "CANNOT_ASSESS"}, or {"verdict" …</think>\n'
    replies = {thinking + text: share for text, share in fields("verdict", VERDICTS, reason="r").items()}
    found = say(binary(), replies, next(iter(replies)), cuts=[4], spare=["\n", "  ", ""])
    assert found.probabilities == pytest.approx(VERDICTS, abs=1e-5)


@pytest.mark.parametrize(
    ("criterion", "text", "reason"),
    [
        (binary(), "MET", "the field 'verdict' was not found in the tokens of the reply"),
        (binary(), '{"verdict": "Yes"}', 'the answer "Yes" is not written as in the schema of the reply'),
        (
            KINDS["numerical_rating"](name="n", requirement="r"),
            '{"score": 7}',
            "score is not one of a list of values",
        ),
        (KINDS["two marks"](name="n", requirement="r"), '{"form": 7}', "the answer depends on 2 fields"),
        (KINDS["text"](name="n", requirement="r"), '{"remark": "x"}', "the answer depends on 0 fields"),
    ],
    ids=str,
)
def test_what_has_no_distribution_says_why(criterion: BaseCriterion, text: str, reason: str) -> None:
    """Nothing is invented."""
    found = say(criterion, {text: 1.0}, text, cuts=[1])
    assert found.probabilities is None
    assert found.unknown is not None and found.unknown.startswith(reason)


HOSTILE = st.lists(
    st.tuples(
        st.text('{}"":,[]\\ verdictMETUN\ud800\udcff0.e', max_size=8),
        st.floats(),
        st.lists(st.tuples(st.text('METUN"', max_size=4), st.floats()), max_size=3),
    ),
    max_size=12,
)


@given(HOSTILE)
def test_any_tokens_are_read(tokens: Sequence[tuple[str, float, Any]]) -> None:
    """Odd texts, NaN and infinities make no probabilities, or such as sum to 1."""
    for criterion in (binary(), choice(), likert(10)):
        found = certainty_of(criterion, AS_DECLARED, TokenText(tokens), "")  # type: ignore[arg-type]
        assert (found.probabilities is None) == (found.unknown is not None)
        if found.probabilities is not None:
            read_probabilities(criterion, found.probabilities)
