"""Two runs on the same items."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scipy.stats import ttest_rel

from autorubric import Criterion, CriterionGrader, DataItem, EvalResult, Rubric, RubricDataset, evaluate_sync
from autorubric.errors import ArgumentError
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.metrics import pass_at_k, run_difference

RUBRIC = Rubric(
    [
        Criterion(name="long", requirement="It has more than three letters.", weight=2),
        Criterion(name="vowel", requirement="It begins with a vowel.", weight=1),
    ]
)
WORDS = ["apple", "sun", "house", "ice", "elm", "water", "egg", "stone"]


def graded(tmp_path: Path, name: str, letters: int, words: list[str], *, labels: bool = False) -> EvalResult:
    """A run of a judge for whom so many letters are not yet long."""
    items = [
        DataItem(
            id=word,
            submission=word,
            ground_truth={"long": len(word) > 3, "vowel": word[0] in "aeiou"} if labels else None,
        )
        for word in words
    ]

    def judge(request: JudgeRequest) -> str:
        text = str(request.submission.text)
        met = len(text) > letters if request.criterion.name == "long" else text[0] in "aeiou"
        return "MET" if met else "UNMET"

    grader = CriterionGrader(judges=[FunctionJudge(function=judge, judge_id="own")])
    dataset = RubricDataset(rubric=RUBRIC, items=items)
    return evaluate_sync(dataset, grader, experiment_name=name, experiments_dir=tmp_path, show_progress=False)


def test_stored_runs_are_read_like_their_reports(tmp_path: Path) -> None:
    """A stored run, whose votes are read in bulk, gives the figures of its items' reports."""

    def judge(request: JudgeRequest) -> str:
        text = str(request.submission.text)
        if text == "elm" or (text == "sun" and request.criterion.name == "long"):
            raise ValueError("no reply")
        return "CANNOT_ASSESS" if text == "ice" else "MET" if len(text) > 4 else "UNMET"

    items = [
        DataItem(id=word, submission=word, ground_truth={"long": True, "vowel": False}) for word in WORDS
    ]
    grader = CriterionGrader(judges=[FunctionJudge(function=judge, judge_id="own")])
    after = evaluate_sync(
        RubricDataset(rubric=RUBRIC, items=items), grader, experiment_name="b", experiments_dir=tmp_path,
        show_progress=False,
    )  # fmt: skip
    before = graded(tmp_path, "a", 2, WORDS, labels=True)
    names = ("dataset", "verdicts", "is_shard")
    plain: list[Any] = [
        SimpleNamespace(item_results=list(run.item_results), **{name: getattr(run, name) for name in names})
        for run in (before, after)
    ]
    assert run_difference(before, after) == run_difference(*plain)


def test_figures_are_those_of_a_paired_t_test(tmp_path: Path) -> None:
    """Means, difference and interval of the scores are scipy's."""
    before, after = graded(tmp_path, "a", 2, WORDS), graded(tmp_path, "b", 3, WORDS)
    found = run_difference(before, after)
    new, old = ([score or 0.0 for score in one.get_scores()] for one in (after, before))
    test = ttest_rel(new, old)
    interval = test.confidence_interval(0.95)
    assert found.score.difference.p_value == pytest.approx(test.pvalue)
    assert found.score.difference.ci is not None
    assert (found.score.difference.ci.lower, found.score.difference.ci.upper) == pytest.approx(interval)
    assert [one.name for one in found.criteria] == ["long", "vowel"]
    assert found.criteria[1].difference.mean_bias == 0.0
    assert found.regressed is True and run_difference(after, before).regressed is False
    assert found.right is None


def test_turned_round_signs_turn(tmp_path: Path) -> None:
    """The baseline against the run is the run against the baseline with other signs."""
    before, after = graded(tmp_path, "a", 2, WORDS), graded(tmp_path, "b", 4, WORDS)
    one, other = run_difference(before, after), run_difference(after, before)
    assert one.score.difference.mean_bias == pytest.approx(-(other.score.difference.mean_bias or 0.0))
    assert (one.score.baseline, one.score.run) == (other.score.run, other.score.baseline)


def test_items_are_matched_by_id(tmp_path: Path) -> None:
    """Those in one run alone are counted and left out; without a common one there is nothing to compare."""
    before = graded(tmp_path, "a", 3, WORDS[:6])
    after = graded(tmp_path, "b", 3, list(reversed(WORDS[2:])))
    found = run_difference(before, after)
    assert (found.n_items, found.n_only_baseline, found.n_only_run) == (4, 2, 2)
    assert found.score.difference.mean_bias == 0.0 and found.regressed is False
    with pytest.raises(ArgumentError, match="no items in common"):
        run_difference(graded(tmp_path, "c", 3, WORDS[:2]), graded(tmp_path, "d", 3, WORDS[2:]))


def test_shares_of_right_answers(tmp_path: Path) -> None:
    """With labels, of each item the share on which each run is right."""
    before, after = graded(tmp_path, "a", 3, WORDS), graded(tmp_path, "b", 2, WORDS)
    labelled = graded(tmp_path, "c", 3, WORDS, labels=True)
    found = run_difference(before, after, labelled.dataset)
    assert found.right is not None
    assert found.right.baseline == 1.0
    three = sum(len(word) == 3 for word in WORDS)
    assert found.right.run == pytest.approx(1 - three / 2 / len(WORDS))
    assert "share right" in found.summary()


def test_one_item_says_nothing(tmp_path: Path) -> None:
    """Below two pairs it cannot be told whether scores fell."""
    found = run_difference(graded(tmp_path, "a", 2, ["sun"]), graded(tmp_path, "b", 3, ["sun"]))
    assert found.score.difference.ci is None and found.regressed is None


def _bare(tmp_path: Path, name: str, items: list[dict[str, Any]]) -> EvalResult:
    """A run on items without ids of a judge that likes texts with more than three letters."""

    def judge(request: JudgeRequest) -> str:
        return "MET" if len(str(request.submission.text)) > 3 else "UNMET"

    grader = CriterionGrader(judges=[FunctionJudge(function=judge, judge_id="own")])
    dataset = RubricDataset(rubric=[{"name": "long", "requirement": "It is long."}], items=items)
    return evaluate_sync(dataset, grader, experiment_name=name, experiments_dir=tmp_path, show_progress=False)


@pytest.mark.parametrize("prompted", [True, False])
def test_items_without_ids_are_paired_by_prompt_or_text(prompted: bool, tmp_path: Path) -> None:
    """The same data in another order give no difference, with prompts and without."""
    items = [{"submission": word} | ({"prompt": f"Say {word}."} if prompted else {}) for word in WORDS]
    found = run_difference(_bare(tmp_path, "a", items), _bare(tmp_path, "b", items[::-1]))
    assert (found.n_items, found.n_only_baseline, found.n_only_run) == (len(WORDS), 0, 0)
    assert (found.score.difference.mean_bias, found.score.difference.std_bias) == (0.0, 0.0)


@pytest.mark.parametrize("prompts", ["none", "on one side", "with blanks"])
def test_few_items_in_another_place_are_paired_with_themselves(prompts: str, tmp_path: Path) -> None:
    """Two of eight texts change places; a prompt may be missing on one side or end with a blank."""
    items = [{"submission": word} for word in WORDS]
    moved = [*items[:2], items[3], items[2], *items[4:]]
    if prompts != "none":
        moved = [{**one, "prompt": f"Say {one['submission']}. "} for one in moved]
    if prompts == "with blanks":
        items = [{**one, "prompt": f"Say {one['submission']}."} for one in items]
    found = run_difference(_bare(tmp_path, "a", items), _bare(tmp_path, "b", moved))
    assert (found.n_items, found.score.difference.std_bias) == (len(WORDS), 0.0)


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ({"prompt": "p"}, {"prompt": "q"}, "items have no ids, no prompt is in both datasets, so"),
        ({"prompt": "p"}, {}, "items have no ids, no prompt is in both datasets, so"),
        ({}, {}, "items have no ids, the order, number, .* and texts repeat or differ, so"),
    ],
)
def test_items_that_cannot_be_paired_are_refused(
    one: dict[str, str], other: dict[str, str], message: str, tmp_path: Path
) -> None:
    """The message says what is in the way."""
    before = _bare(tmp_path, "a", [{"submission": text, **one} for text in "abb"])
    after = _bare(tmp_path, "b", [{"submission": text, **other} for text in "bab"])
    with pytest.raises(ArgumentError, match=message):
        run_difference(before, after)


@pytest.mark.parametrize("prompt", [None, "Say it."])
def test_items_without_ids_are_paired_by_reference(prompt: str | None, tmp_path: Path) -> None:
    """References identify items whose prompts repeat or are missing, also in tables of unequal length."""
    items = [{"submission": word, "reference_submission": word, "prompt": prompt} for word in WORDS]
    longer = [{**one, "submission": f"{one['reference_submission']}!"} for one in items]
    before = _bare(tmp_path, "a", items)
    turned = run_difference(before, _bare(tmp_path, "b", longer[::-1]))
    short = run_difference(before, _bare(tmp_path, "c", longer[1:]))
    assert (turned.n_items, turned.score.difference.mean_bias) == (8, 4 / 8)
    assert (short.n_items, short.n_only_baseline, short.score.difference.mean_bias) == (7, 1, 4 / 7)
    bare = [{"submission": one["submission"], "prompt": prompt} for one in longer[1:]]
    with pytest.raises(ArgumentError, match=r"items have no ids, the order, number, .* cannot be paired"):
        run_difference(before, _bare(tmp_path, "d", bare))


def test_items_without_ids_are_paired_by_position_only_under_equal_prompts(tmp_path: Path) -> None:
    """New texts for the same prompts are paired by position, and those of a shuffled table by prompt."""
    items = [{"prompt": f"Say {word}.", "submission": word} for word in WORDS]
    longer = [{**one, "submission": one["submission"] + "!"} for one in items]
    before = _bare(tmp_path, "a", items)
    straight = run_difference(before, _bare(tmp_path, "b", longer))
    shuffled = run_difference(before, _bare(tmp_path, "c", [*longer[3:], *longer[:2]]))
    # Sun, ice, elm and egg become long; the shuffled table lacks house.
    assert straight.score.difference.mean_bias == 4 / 8
    assert shuffled.score.difference.mean_bias == 4 / 7
    assert (shuffled.n_items, shuffled.n_only_baseline) == (7, 1)
    turned = [{"submission": "Fine.", "prompt": str(at // 2)} for at in range(4)]
    with pytest.raises(ArgumentError, match="prompts repeat, so that they cannot be paired"):
        run_difference(_bare(tmp_path, "d", turned), _bare(tmp_path, "e", turned[::-1]))


@pytest.mark.parametrize(
    "shared",
    [{}, {"prompt": "Say."}, {"reference_submission": "x"}, {"prompt": "Say.", "reference_submission": "x"}],
)
def test_other_texts_without_ids_and_own_prompts_are_paired_by_row_with_a_warning(
    shared: dict[str, str], tmp_path: Path
) -> None:
    """Nothing shows whether the order is the same; equal texts, or prompts that differ, do."""
    items = [{"submission": word, **shared} for word in WORDS]
    longer = [{**one, "submission": one["submission"] + "!"} for one in items]
    before = _bare(tmp_path, "a", items)
    with pytest.warns(UserWarning, match=r"matched by row, and 8 of 8 have new texts.*--id COLUMN"):
        assert run_difference(before, _bare(tmp_path, "b", longer)).n_items == len(WORDS)
    with warnings.catch_warnings(action="error"):
        run_difference(before, _bare(tmp_path, "c", items))
        first, second = (
            _bare(
                tmp_path,
                name,
                [{**one, "prompt": f"Say {word}."} for one, word in zip(texts, WORDS, strict=True)],
            )
            for name, texts in (("d", items), ("e", longer))
        )
        run_difference(first, second)


def test_conversations_without_ids_are_paired_by_their_first_turns(tmp_path: Path) -> None:
    """The turns before the first reply are the prompt of a conversation."""
    talks = [
        {"submission": [{"role": "user", "content": f"Say {word}."}, {"role": "assistant", "content": word}]}
        for word in WORDS
    ]
    found = run_difference(_bare(tmp_path, "a", talks), _bare(tmp_path, "b", talks[::-1]))
    assert (found.n_items, found.score.difference.std_bias) == (len(WORDS), 0.0)


def test_trials_without_ids_are_of_the_same_prompt(tmp_path: Path) -> None:
    """Runs of one trial each are joined by prompt, in whichever order their items are."""
    items = [{"prompt": f"Say {word}.", "submission": word} for word in WORDS]
    found = pass_at_k([_bare(tmp_path, "a", items), _bare(tmp_path, "b", items[::-1])], 2)
    assert (found.pass_at_k.value, found.pass_hat_k.value) == (0.5, 0.5)
