"""The lexical judge: what words can say, what it does without any, and that no text upsets it."""

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from autorubric.criteria import BaseCriterion, BoundFloat, Criterion, CriterionOption, Submission, TextField
from autorubric.errors import JudgeError
from autorubric.judges import DescribedJudge, JudgeReply, JudgeRequest, LexicalJudge
from autorubric.judges.lexical import LOOKED_AT, weigh


class Warmth(BaseCriterion):
    """A criterion on an interval: it declares no answers."""

    warmth: BoundFloat = BoundFloat(min_val=0.0, max_val=1.0)
    explanation: TextField = TextField()


REFUND = Criterion(name="refund", requirement="The reply promises a refund of the delivery fee.")
COVERAGE = Criterion(
    name="coverage",
    requirement="How far the text covers the causes of the delay: storms, customs, a strike.",
    options=(
        CriterionOption(label="fully", value=1.0),
        CriterionOption(label="not at all", value=0.0),
        CriterionOption(label="partly", value=0.5),
        CriterionOption(label="not applicable", value=0.0, na=True),
    ),
)
TOPIC = Criterion(
    name="topic",
    requirement="What the text is about: weather speaks of rain or sun, money speaks of prices, pay or rent.",
    scale_type="nominal",
    options=(CriterionOption(label="weather", value=1.0), CriterionOption(label="money", value=0.0)),
)
ALL = [REFUND, COVERAGE, TOPIC]


def ask(criterion: BaseCriterion, text: str | None) -> JudgeReply:
    """The lexical judge's reply."""
    request = JudgeRequest(criterion=criterion, submission=Submission(text=text))
    return asyncio.run(LexicalJudge().ask(request))


def label(criterion: BaseCriterion, text: str) -> Any:
    """The label of the lexical judge's answer."""
    answer = ask(criterion, text).answer
    return answer and answer.label


def binary(requirement: str) -> Criterion:
    """A binary criterion."""
    return Criterion(name="c", requirement=requirement)


def test_a_sentence_with_the_requirements_words_is_met_and_quoted() -> None:
    """The best sentence decides; the reason names the words and quotes it, whatever their endings."""
    reply = ask(REFUND, "Hello. We are refunding what the delivery cost you, fees included. Bye.")
    assert reply.answer.label == "MET"
    assert reply.reason == (
        'matches the criterion in "refunding", "delivery", "fees": '
        '"We are refunding what the delivery cost you, fees included."'
    )
    assert reply.confidence is not None and 0.5 < reply.confidence < 1
    assert not reply.truncated


@pytest.mark.parametrize("text", ["", "   ", "\0", "Bananas are yellow.", "\ud800\udfff"])
def test_a_text_without_those_words_is_unmet(text: str) -> None:
    """Where nothing is shared, a binary criterion is unmet and the reason says so."""
    reply = ask(REFUND, text)
    assert reply.answer.label == "UNMET"
    assert reply.reason == "no word of the text matches the criterion"


def test_a_weak_match_is_named_and_unmet() -> None:
    """A single shared word of many does not do, and the reason says that it is the only one."""
    requirement = "The report compares quarterly revenue, staff turnover and churn."
    reply = ask(binary(requirement), "Our staff is kind.")
    assert reply.answer.label == "UNMET"
    assert reply.reason == 'matches the criterion only in "staff": "Our staff is kind."'


def test_a_fault_is_met_by_a_text_that_shows_it() -> None:
    """A requirement that states a fault is judged alike: MET says that the fault is there."""
    fault = Criterion(name="insult", requirement="The reply insults the customer.", weight=-5.0)
    assert label(fault, "Such an insult of a customer was never heard.") == "MET"
    assert label(fault, "The parcel is on its way.") == "UNMET"


@pytest.mark.parametrize("requirement", ["Contains no jargon.", "Avoids jargon.", "It doesn't use jargon."])
def test_a_requirement_of_absence_is_met_by_a_text_without_the_words(requirement: str) -> None:
    """A requirement that asks for an absence is met where its words are absent."""
    assert label(binary(requirement), "A plain word.") == "MET"
    assert label(binary(requirement), "We use jargon.") == "UNMET"


def test_negation_next_to_the_word_weighs_against_it() -> None:
    """A word just after a negation counts little."""
    denied = weigh(REFUND, "We will not refund the delivery fee.")
    assert denied.strength < weigh(REFUND, "We will refund the delivery fee.").strength / 2
    assert weigh(REFUND, "We can't refund it.").strength < weigh(REFUND, "We can refund it.").strength


def test_what_does_not_count_is_not_looked_for() -> None:
    """A sentence of the requirement on what does not count gives no words to look for."""
    criterion = binary("The reply apologises. Regret about feelings does not count.")
    assert label(criterion, "I regret your feelings.") == "UNMET"
    assert label(criterion, "I apologise.") == "MET"


@pytest.mark.parametrize(
    ("requirement", "shown", "absent"),
    [
        ("Gives a weekday.", "Come on Friday.", "Come on a weekdays-only ticket? Later."),
        ("Names a date.", "It was 3 May.", "It was then."),
        ("Names a price.", "It costs $12.", "It costs much."),
        ("Gives a link.", "See https://example.org for more.", "See there."),
        ("Asks a question.", "Where is it?", "It is there."),
        ("Gives a percentage.", "It fell by 12 %.", "It fell by 12 metres."),
        ("Opens with a greeting.", "Dear Ann, it is here.", "It is here."),
        ("Names the hour.", "Come at 17:30 then.", "Come then."),
        ("Names three colours.", "There are 3 colours.", "Grey."),
    ],
)
def test_what_is_named_by_its_kind_is_known_by_its_form(requirement: str, shown: str, absent: str) -> None:
    """A requirement that speaks of a date, a price or a link is met by one, not by the word for it."""
    assert label(binary(requirement), shown) == "MET"
    assert label(binary(requirement), absent) == "UNMET"


def test_a_quoted_phrase_is_looked_for_word_by_word() -> None:
    """A phrase in quotes counts as a whole, with any white space and case."""
    criterion = binary('The letter carries the note "without prejudice" somewhere.')
    assert label(criterion, "Sent Without\n  Prejudice today.".replace("\n", " ")) == "MET"
    assert label(criterion, "Sent with prejudice, or without.") == "UNMET"


def test_similar_spellings_count() -> None:
    """Words of one family match where their endings differ more than stemming undoes."""
    assert label(binary("Explains."), "nothing") == "UNMET"
    assert weigh(binary("The organisation."), "organizing").strength > 0
    assert weigh(binary("The organisation."), "oranges, origins").strength == 0


def test_a_scale_is_walked_by_how_much_is_shown() -> None:
    """Options are taken in the order of their values, however they are declared."""
    assert label(COVERAGE, "The delay had causes: storms closed customs, then a strike.") == "fully"
    assert label(COVERAGE, "There was some delay.") == "partly"
    assert label(COVERAGE, "There was not any delay, and nor did customs help.") == "not at all"


def test_na_is_chosen_where_nothing_is_shared() -> None:
    """The NA option is the answer to a text that does not speak of the matter at all, and to no other."""
    assert label(COVERAGE, "Bananas are yellow.") == "not applicable"
    assert weigh(COVERAGE, "storms and customs").odds[3] == 0


def test_a_scale_without_na_is_at_its_lowest_where_nothing_is_shared() -> None:
    """Without an NA option nothing shared is the lowest value."""
    scale = Criterion(name="s", requirement="Covers storms.", options=(COVERAGE.options or ())[:3])
    assert label(scale, "Bananas are yellow.") == "not at all"


def test_words_of_an_option_and_of_its_gloss_choose_it() -> None:
    """An option is found by its label's words and by the clause of the requirement that explains it."""
    assert label(TOPIC, "The weather is fine.") == "weather"
    assert label(TOPIC, "Some rain, later sun.") == "weather"
    reply = ask(TOPIC, "The rent is due.")
    assert reply.answer.label == "money"
    assert '"rent"' in reply.reason


def test_it_abstains_where_no_word_tells_options_apart() -> None:
    """Among options without an order, with nothing to choose by, there is no answer and no confidence."""
    reply = ask(TOPIC, "Bananas are yellow.")
    assert (reply.answer, reply.confidence) == (None, None)


def test_a_clause_that_names_two_options_explains_neither() -> None:
    """A clause with the names of several options helps none of them."""
    criterion = Criterion(
        name="k",
        requirement="Red or blue. Red means heat; blue means cold.",
        scale_type="nominal",
        options=(CriterionOption(label="red", value=1.0), CriterionOption(label="blue", value=0.0)),
    )
    assert label(criterion, "It is cold.") == "blue"


def test_texts_without_spaces_between_words_are_compared_in_pairs_of_characters() -> None:
    """Chinese and the like are compared, though no space marks their words."""
    criterion = binary("退款运费")
    assert label(criterion, "我们会退款，运费也退。") == "MET"
    assert label(criterion, "香蕉是黄色的。") == "UNMET"


def test_without_a_text_there_is_an_error() -> None:
    """No text is no basis: the judge cannot answer."""
    with pytest.raises(JudgeError, match="refund: the submission has no text"):
        ask(REFUND, None)


def test_a_criterion_without_declared_answers_is_refused() -> None:
    """A number cannot be read off words; the error names the kind and what to do."""
    with pytest.raises(
        JudgeError, match=r"Warmth \(interval\) has no declared answers.*use a model or a function"
    ):
        ask(Warmth(name="w", requirement="Is warm."), "Hello.")


def test_a_requirement_of_stop_words_finds_nothing() -> None:
    """A requirement without a word to look for is unmet, not an error."""
    assert label(binary("It is what it is."), "It is.") == "UNMET"
    assert label(binary("Does not count."), "We count.") == "UNMET"


@pytest.mark.parametrize("piece", ["a", "a\n", ".", " ", "1-", 'x@"', "We refund the delivery fee. ", "退款"])
def test_a_huge_text_is_cut_and_takes_no_time(piece: str) -> None:
    """Ten million characters are cut to what is looked at, which the reply says, in bounded time."""
    text = piece * (10_000_000 // len(piece))
    started = time.process_time()
    reply = ask(REFUND, text)
    assert time.process_time() - started < 60
    assert reply.truncated
    assert len(reply.reason) < 500


def test_what_stands_after_the_cut_is_not_seen() -> None:
    """Evidence beyond the characters looked at does not count."""
    assert label(REFUND, "x " * (LOOKED_AT // 2) + "We refund the delivery fee.") == "UNMET"


def test_reasons_are_fit_for_any_file() -> None:
    """Lone surrogates and control characters of a text do not get into the reason; long quotes are cut."""
    reply = ask(REFUND, "We refund\0 \ud800 the delivery fee" + " and more" * 40)
    reply.reason.encode("utf-8")
    assert "\0" not in reply.reason
    assert reply.reason.endswith('…"')


def test_it_says_what_its_answers_depend_on() -> None:
    """A manifest can tell one version of the judge from another."""
    judge = LexicalJudge()
    assert isinstance(judge, DescribedJudge)
    assert judge.describe() == {"judge": "lexical", "version": 1}
    assert judge.judge_id == "lexical"


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(st.characters(codec=None, exclude_categories=()), max_size=300), which=st.sampled_from(ALL)
)
def test_any_text_gets_an_answer_of_the_criterion(text: str, which: Criterion) -> None:
    """Whatever the text, the reply is one of the declared answers with a confidence, or an abstention."""
    reply = ask(which, text)
    assert reply.answer is None or reply.answer in which.answers()
    assert (reply.answer is None) == (reply.confidence is None)
    assert reply.confidence is None or 0 < reply.confidence <= 1
    reply.reason.encode("utf-8")
    assert reply == ask(which, text)


@settings(max_examples=100, deadline=None)
@given(requirement=st.text(min_size=1, max_size=120), text=st.text(max_size=120))
def test_any_requirement_can_be_asked(requirement: str, text: str) -> None:
    """Whatever the requirement, the odds are probabilities that sum to one."""
    odds = weigh(Criterion(name="c", requirement=requirement), text).odds
    assert all(0 <= odd <= 1 for odd in odds)
    assert sum(odds) == pytest.approx(1)
