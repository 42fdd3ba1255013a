"""The supervised judge: what it learns, how sure it is, what it names as evidence, and what it refuses."""

import asyncio
import pickle
import time
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from autorubric.criteria import BaseCriterion, BoundFloat, Criterion, CriterionOption, Submission, TextField
from autorubric.datasets import DataItem, RubricDataset
from autorubric.demo import demo_dataset
from autorubric.errors import ArgumentError, JudgeError
from autorubric.judges import DescribedJudge, JudgeReply, JudgeRequest, SupervisedJudge
from autorubric.rubric import Rubric


class Warmth(BaseCriterion):
    """A criterion on an interval: it declares no answers."""

    warmth: BoundFloat = BoundFloat(min_val=0.0, max_val=1.0)
    explanation: TextField = TextField()


REFUND = Criterion(name="refund", requirement="The shop pays the money back.")
PLACE = Criterion(
    name="place",
    requirement="Where the scene is set.",
    scale_type="nominal",
    options=(
        CriterionOption(label="sea", value=1.0),
        CriterionOption(label="hills", value=0.5),
        CriterionOption(label="nowhere", value=0.0, na=True),
    ),
)
GOOD = [
    "Your cash comes home tomorrow",
    "All cash comes home",
    "The cash comes home now",
    "Cash comes home soon",
]
BAD = [
    "Nothing to be done here",
    "Sadly nothing can be done",
    "Nothing is owed, nothing done",
    "Nothing done",
]
PLACES = {
    "sea": ["waves of salt", "salt, gulls, waves", "gulls over waves", "salt waves"],
    "hills": ["rocks in snow", "snow, rocks, goats", "goats on rocks", "snowy rocks"],
    "nowhere": ["odd odd thoughts"],
}


def dataset(criteria: list[BaseCriterion], labelled: list[tuple[Any, dict[str, Any]]]) -> RubricDataset:
    """Items with labels."""
    items = [DataItem(submission=text, ground_truth=truth) for text, truth in labelled]
    return RubricDataset(rubric=Rubric(criteria), items=items)


def refunds(good: int = 4, bad: int = 4) -> RubricDataset:
    """Texts that differ in a few words."""
    labelled: list[tuple[Any, dict[str, Any]]] = [(text, {"refund": "MET"}) for text in GOOD[:good]]
    return dataset([REFUND], labelled + [(text, {"refund": "UNMET"}) for text in BAD[:bad]])


def ask(judge: SupervisedJudge, criterion: BaseCriterion, text: str | None) -> JudgeReply:
    """The judge's reply."""
    return asyncio.run(judge.ask(JudgeRequest(criterion=criterion, submission=Submission(text=text))))


@pytest.fixture(scope="module")
def judge() -> SupervisedJudge:
    """A judge of refunds."""
    return SupervisedJudge.fit(refunds())


def test_it_answers_by_the_words_it_learnt_and_names_them(judge: SupervisedJudge) -> None:
    """A new text with the words of one answer gets it; the reason names words, probability and size."""
    reply = ask(judge, REFUND, "We swear that cash comes home on Monday.")
    assert reply.answer.label == "MET"
    assert reply.reason.startswith('relies on "')
    assert '"cash"' in reply.reason
    assert f"(p = {reply.confidence:.2f}, 8 training texts)" in reply.reason
    assert ask(judge, REFUND, "Nothing will be done.").answer.label == "UNMET"


def test_few_texts_never_make_it_sure(judge: SupervisedJudge) -> None:
    """After n texts the confidence is at most (n + 1) / (n + answers)."""
    sure = ask(judge, REFUND, "cash comes home " * 50).confidence
    assert sure is not None and 0.5 < sure <= 9 / 10


def test_options_and_na_are_answers_like_others() -> None:
    """It learns options, NA among them, though some stand once in training."""
    labelled: list[tuple[Any, dict[str, Any]]] = [
        (text, {"place": place}) for place, texts in PLACES.items() for text in texts
    ]
    judge = SupervisedJudge.fit(dataset([PLACE], labelled))
    assert ask(judge, PLACE, "salt in the waves").answer.label == "sea"
    assert ask(judge, PLACE, "odd thoughts indeed").answer.na
    assert ask(judge, PLACE, "rocks, snow").answer.label == "hills"


def test_a_single_answer_in_training_is_the_answer_to_all() -> None:
    """Without a second answer to tell apart it gives the only one, modestly, and says why."""
    reply = ask(SupervisedJudge.fit(refunds(bad=0)), REFUND, "anything")
    assert reply.answer.label == "MET"
    assert reply.confidence == pytest.approx(5 / 6)
    assert reply.reason == "the only answer in training (p = 0.83, 4 training texts)"


@pytest.mark.parametrize("text", [GOOD[0], f"  {GOOD[0].upper()}\n"])
def test_a_text_seen_in_training_has_no_confidence(judge: SupervisedJudge, text: str) -> None:
    """What it was trained on it cannot judge independently; case and white space make no other text."""
    reply = ask(judge, REFUND, text)
    assert reply.confidence is None
    assert reply.reason.startswith("seen in training, so not an independent judgment; ")


def test_words_that_match_the_criterion_are_evidence_too() -> None:
    """Where the overlap with the requirement speaks louder than any learnt word, the reason quotes it."""
    requirement = "The letter names a weekday."
    days = ["Friday", "Monday", "Sunday", "Tuesday", "Thursday", "Saturday"]
    nouns = ["tea", "ink", "ice", "oak", "elm", "ash"]
    weekday = Criterion(name="weekday", requirement=requirement)
    labelled: list[tuple[Any, dict[str, Any]]] = [
        (f"{day} {noun}.", {"weekday": "MET"}) for day, noun in zip(days, nouns, strict=True)
    ]
    labelled += [(f"{noun} rope{noun}.", {"weekday": "UNMET"}) for noun in nouns]
    reply = ask(SupervisedJudge.fit(dataset([weekday], labelled)), weekday, "Wednesday it is.")
    assert reply.answer.label == "MET"
    assert 'matches the criterion in "Wednesday": "Wednesday it is."' in reply.reason


def test_a_text_of_unknown_words_is_answered_without_evidence() -> None:
    """Where no word of the text was seen in training, the reason does not pretend that one was."""
    gibberish = Criterion(name="g", requirement="It is what it is.")
    labelled = [(text, {"g": "MET"}) for text in GOOD] + [(text, {"g": "UNMET"}) for text in BAD]
    reply = ask(SupervisedJudge.fit(dataset([gibberish], labelled)), gibberish, "12345 67890")
    assert reply.answer in gibberish.answers()
    assert "leans on" not in reply.reason


def test_a_criterion_that_was_not_trained_is_an_error_naming_the_trained(judge: SupervisedJudge) -> None:
    """It judges what it learnt and nothing else."""
    with pytest.raises(
        JudgeError, match="place: the supervised judge was not trained on this criterion, only on refund"
    ):
        ask(judge, PLACE, "waves")
    with pytest.raises(JudgeError, match="not trained"):
        ask(judge, Warmth(name="refund"), "waves")


def test_an_answer_that_the_criterion_lacks_is_an_error(judge: SupervisedJudge) -> None:
    """A criterion of the same name with other answers cannot be answered."""
    other = PLACE.with_name("refund")
    with pytest.raises(JudgeError, match=r"learned the answer 'MET'.*\(sea, hills, nowhere\)"):
        ask(judge, other, "cash comes home")


def test_without_a_text_there_is_an_error(judge: SupervisedJudge) -> None:
    """No text is no basis."""
    with pytest.raises(JudgeError, match="refund: the submission has no text to classify"):
        ask(judge, REFUND, None)


def test_too_few_labelled_items_are_refused_with_what_to_do() -> None:
    """Fewer than two texts with labels teach nothing."""
    unlabelled = DataItem(submission="no label")
    textless = DataItem(submission=None, ground_truth={"refund": "MET"})
    once = DataItem(submission="a text", ground_truth={"refund": "MET"})
    few = RubricDataset(rubric=Rubric([REFUND]), items=[unlabelled, textless, once])
    with pytest.raises(ArgumentError, match=r"got 1 different labelled texts; at least two are needed"):
        SupervisedJudge.fit(few)


def test_texts_without_words_are_refused() -> None:
    """Texts of punctuation alone have no words to learn from."""
    with pytest.raises(ArgumentError, match="no words to learn from"):
        SupervisedJudge.fit(dataset([REFUND], [("...", {"refund": "MET"}), ("!!!", {"refund": "UNMET"})]))


def test_two_texts_are_enough_to_begin() -> None:
    """Two items without a word in common make a judge that is hardly sure of anything."""
    judge = SupervisedJudge.fit(dataset([REFUND], [("yes", {"refund": "MET"}), ("no", {"refund": "UNMET"})]))
    reply = ask(judge, REFUND, "yes yes")
    assert reply.answer.label == "MET"
    assert reply.confidence is not None and reply.confidence <= 0.75


def test_labels_that_cannot_be_learnt_are_left_out() -> None:
    """Numbers and CANNOT_ASSESS are no answers to choose from; the rest is learnt."""
    labelled = [
        (text, {"refund": truth, "warm": 0.5})
        for text, truth in [
            *((t, "MET") for t in GOOD),
            *((t, "UNMET") for t in BAD),
            ("hm", "CANNOT_ASSESS"),
        ]
    ]
    judge = SupervisedJudge.fit(dataset([REFUND, Warmth(name="warm")], labelled))
    assert judge.criterion_names == ("refund",)
    assert judge.describe()["n_train"] == 8


def test_it_learns_from_the_majority_of_raters() -> None:
    """Where there is no ground truth, ratings stand in."""
    items = [
        DataItem(submission=text, ratings={rater: {"refund": truth} for rater in "abc"})
        for text, truth in [(GOOD[0], "MET"), (BAD[0], "UNMET")]
    ]
    judge = SupervisedJudge.fit(RubricDataset(rubric=Rubric([REFUND]), items=items))
    assert ask(judge, REFUND, "cash comes home").answer.label == "MET"


def test_the_same_seed_gives_the_same_judge() -> None:
    """Training is deterministic, and no seed is seed 0."""
    judges = [SupervisedJudge.fit(refunds(), seed=seed) for seed in (None, 0)]
    replies = [ask(judge, REFUND, "cash or nothing") for judge in judges]
    assert replies[0] == replies[1]
    assert judges[0].describe() == judges[1].describe()


def test_it_says_what_its_answers_depend_on(judge: SupervisedJudge) -> None:
    """The description tells judges apart by training labels, and names sizes and answers."""
    described = judge.describe()
    assert isinstance(judge, DescribedJudge)
    assert (described["judge"], described["n_train"], described["seed"]) == ("supervised", 8, 0)
    assert described["criteria"] == {"refund": {"n": 8, "answers": ["MET", "UNMET"]}}
    flipped = [(t, {"refund": "UNMET"}) for t in GOOD] + [(t, {"refund": "MET"}) for t in BAD]
    other = SupervisedJudge.fit(dataset([REFUND], flipped))
    assert other.describe()["trained_on"] != described["trained_on"]


def test_it_can_travel_to_a_worker(judge: SupervisedJudge) -> None:
    """A copy in another process answers alike."""
    copy = pickle.loads(pickle.dumps(judge))  # noqa: S301
    assert ask(copy, REFUND, "cash comes home") == ask(judge, REFUND, "cash comes home")


def test_a_huge_text_is_cut_and_takes_no_time(judge: SupervisedJudge) -> None:
    """Ten million characters are cut, which the reply says, in bounded time."""
    text = "cash comes home \ud800 " * 600_000
    started = time.process_time()
    reply = ask(judge, REFUND, text)
    assert time.process_time() - started < 60
    assert reply.truncated
    reply.reason.encode("utf-8")


def test_many_texts_do_not_pile_up(judge: SupervisedJudge) -> None:
    """Vectors of a few texts are kept, and dropping them changes no answer."""
    first = ask(judge, REFUND, "cash comes home again")
    for number in range(40):
        ask(judge, REFUND, f"text {number}")
    assert len(judge._features._kept) <= 32
    assert ask(judge, REFUND, "cash comes home again") == first


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(codec=None, exclude_categories=()), max_size=200))
def test_any_text_gets_an_answer_of_the_criterion(judge: SupervisedJudge, text: str) -> None:
    """Whatever the text, the reply is a declared answer with a probability that is at least even odds."""
    reply = ask(judge, REFUND, text)
    assert reply.answer in REFUND.answers()
    assert reply.confidence is None or 0.5 <= reply.confidence <= 1
    reply.reason.encode("utf-8")


def test_on_the_demo_dataset_it_beats_the_majority_class_on_held_out_texts() -> None:
    """Where there is something to learn, forty texts beat the base rates, and confidence fits accuracy."""
    train, test = demo_dataset().split_train_test(40, seed=0)
    judge = SupervisedJudge.fit(train)
    right, guessed, confidence = [], [], []
    for position, item in enumerate(test):
        truth = test.item_truth(position) or {}
        for criterion in test.get_item_rubric(position):
            name = criterion.name or ""
            labels = [(train.item_truth(i) or {})[name] for i in range(len(train))]
            reply = ask(judge, criterion, Submission.parse(item.submission).text)
            right.append(reply.answer.label == truth[name])
            guessed.append(max(sorted(set(labels)), key=labels.count) == truth[name])
            confidence.append(reply.confidence or 0.0)
    accuracy = sum(right) / len(right)
    assert accuracy > sum(guessed) / len(guessed) + 0.1
    assert abs(sum(confidence) / len(confidence) - accuracy) < 0.1
