"""Grading comparisons: both orders asked and kept, what they come to, and what other criteria see of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autorubric import (
    ComparativeCriterion,
    CriterionGrader,
    DataItem,
    FewShotConfig,
    JudgeSpec,
    Rubric,
    RubricDataset,
    evaluate_sync,
)
from autorubric.errors import ContextLengthError, JudgeError, ReplyError, RunMismatchError
from autorubric.judges import JudgeReply, JudgeRequest
from autorubric.llm import ModelRequest
from autorubric.runs import EvalResult
from autorubric.scoring import EnsembleCriterionReport, JudgeVote
from tests.doubles import TableJudge, binary, in_loop, model_judge

PAIR = {"new": "Heavy drops fall.", "old": "Rain is wet."}
THREE = {"x": "one", "y": "two", "z": "three"}


def pair(**fields: Any) -> ComparativeCriterion:
    return ComparativeCriterion(**{"name": "better", "requirement": "Which explains more?", **fields})


def takes_the_first(request: JudgeRequest) -> str:
    return request.order[0]


def prefers_new(request: JudgeRequest) -> str:
    return "new"


def prefers_old(request: JudgeRequest) -> str:
    return "old"


async def decided(
    criterion: ComparativeCriterion, *judges: Any, to_grade: Any = PAIR, **options: Any
) -> EnsembleCriterionReport:
    report = await CriterionGrader(judges=list(judges), **options).grade(to_grade, Rubric([criterion]))
    return report.report[0]


@in_loop
async def test_each_order_is_a_vote_that_is_kept() -> None:
    """A judge is asked in the order declared and in its reverse; each vote says which."""
    found = await decided(pair(), prefers_new)
    assert [vote.order for vote in found.votes] == [("new", "old"), ("old", "new")]
    assert [(vote.answer, vote.value) for vote in found.votes] == [("new", 1.0)] * 2
    assert (found.final_answer, found.score_value, found.tie, found.agreement) == ("new", 1.0, False, 1.0)
    assert found.position_inconsistent == ()
    assert JudgeVote.from_dict(json.loads(json.dumps(found.votes[1].to_dict()))) == found.votes[1]


@in_loop
async def test_orders_that_contradict_each_other_are_a_tie() -> None:
    """A judge that is swayed by the order counts as undecided and is named."""
    found = await decided(pair(), takes_the_first)
    assert (found.final_answer, found.score_value, found.tie) == ("tie", 0.5, True)
    assert found.position_inconsistent == ("takes_the_first",)
    assert found.agreement == 0.0
    panel = await decided(pair(), takes_the_first, prefers_old, JudgeSpec(prefers_old, judge_id="second"))
    assert (panel.final_answer, panel.tie) == ("old", False)
    assert panel.position_inconsistent == ("takes_the_first",)
    assert panel.judge_decisions["takes_the_first"].tie


@in_loop
async def test_a_preference_and_a_tie_contradict_each_other() -> None:
    """What is better in one order only is not better."""
    found = await decided(pair(), lambda request: ["new", "tie"][request.presentation])
    assert (found.final_answer, found.tie) == ("tie", True)
    assert found.position_inconsistent == ("<lambda>",)
    honest = await decided(pair(), lambda request: "tie")
    assert (honest.final_answer, honest.tie, honest.position_inconsistent) == ("tie", False, ())


@in_loop
async def test_margins_of_one_direction_are_averaged() -> None:
    """How far a preference goes may differ between the orders; in whose favour may not."""
    found = await decided(pair(margin=2), lambda request: [-2, -1][request.presentation])
    assert (found.final_answer, found.score_value, found.position_inconsistent) == (-1.5, 0.875, ())
    assert found.agreement == 1.0
    torn = await decided(pair(margin=2), lambda request: [-2, 1][request.presentation])
    assert (torn.final_answer, torn.score_value, torn.tie) == (0, 0.5, True)
    assert torn.position_inconsistent == ("<lambda>",)


@in_loop
async def test_samples_are_taken_in_both_orders() -> None:
    """Each sample has two votes; it is their sample that a contradiction makes a tie."""

    def judge(request: JudgeRequest) -> str:
        return request.order[0] if request.sample == 0 else "new"

    found = await decided(pair(), JudgeSpec(judge, samples=3))
    assert [(vote.sample, vote.order) for vote in found.votes] == [
        (sample, order) for sample in range(3) for order in (("new", "old"), ("old", "new"))
    ]
    assert found.final_answer == "new"
    assert found.judge_decisions["judge"].mean_value == pytest.approx(5 / 6)
    assert found.position_inconsistent == ("judge",)


@in_loop
async def test_one_order_is_asked_where_one_is_wanted() -> None:
    """The order is drawn for each item and the same in every run; unshuffled it is the declared one."""
    one = pair(both_orders=False)
    orders = set()
    for n in range(20):
        found = await decided(one, prefers_new, to_grade={**PAIR, "old": f"text {n}"})
        again = await decided(one, prefers_new, to_grade={**PAIR, "old": f"text {n}"})
        assert [vote.order for vote in found.votes] == [vote.order for vote in again.votes]
        orders.add(found.votes[0].order)
    assert len(orders) in (1, 2)
    plain = await decided(one, prefers_new, shuffle_options=False)
    assert [vote.order for vote in plain.votes] == [("new", "old")]


@in_loop
async def test_rankings_and_the_best_of_several() -> None:
    """Both are asked in the order given and in its reverse; what differs is counted by Borda, and named."""
    ranked = await decided(
        pair(mode="ranking"), lambda r: [["x", "y", "z"], ["y", "x", "z"]][r.presentation], to_grade=THREE
    )
    assert ranked.final_answer == [["x", "y"], "z"]
    assert (ranked.score_value, ranked.tie) == (0.75, True)
    assert ranked.position_inconsistent == ("<lambda>",)
    best = await decided(pair(mode="best_of"), takes_the_first, to_grade=THREE)
    assert (best.final_answer, best.score_value, best.tie) == (["x", "z"], 0.5, True)
    steady = await decided(pair(mode="best_of"), lambda request: "y", to_grade=THREE)
    assert (steady.final_answer, steady.score_value, steady.tie) == ("y", 0.0, False)


@in_loop
async def test_an_order_that_failed_leaves_the_other() -> None:
    """A lost vote counts nowhere; an unreadable one counts against the first under `conservative`."""

    def lost(request: JudgeRequest) -> str:
        if request.presentation:
            raise JudgeError("no reply")
        return "new"

    def unreadable(request: JudgeRequest) -> str:
        return ["new", "gibberish"][request.presentation]

    found = await decided(pair(), lost)
    assert (found.final_answer, found.tie, found.position_inconsistent) == ("new", False, ())
    assert [vote.status for vote in found.votes] == ["answered", "failed"]
    assert found.votes[1].order == ("old", "new")
    assert (await decided(pair(), unreadable, on_failure="exclude")).final_answer == "new"
    assumed = await decided(pair(), unreadable)
    assert (assumed.final_answer, assumed.position_inconsistent) == ("tie", ())
    assert not assumed.decision.assumed
    nothing = await decided(pair(), TableJudge({"better": ReplyError("no JSON")}))
    assert (nothing.decision.assumed, nothing.final_answer, nothing.agreement) == (True, "old", None)


@in_loop
async def test_judges_may_abstain_from_a_comparison() -> None:
    """An abstention in both orders is one of the criterion; in one order it leaves the other."""
    both = await decided(pair(), lambda request: {"cannot_assess": True, "reason": "both empty"})
    assert (both.status, both.score_value, both.final_reason.split("\n")[0]) == (
        "abstained",
        None,
        "<lambda>: both empty",
    )
    one = await decided(pair(), lambda request: ["old", None][request.presentation])
    assert (one.status, one.final_answer) == ("answered", "old")
    assert [vote.order for vote in one.votes] == [("new", "old"), ("old", "new")]


@in_loop
async def test_a_submission_without_candidates_fails_that_criterion_alone() -> None:
    """It says what is missing; no judge is asked and nothing is assumed. Others judge the text."""
    asked: list[str] = []

    def judge(request: JudgeRequest) -> str:
        asked.append(request.criterion.name or "")
        return "MET"

    rubric = Rubric([pair(), binary("cause")])
    report = await CriterionGrader(judges=[judge]).grade("a text", rubric)
    assert asked == ["cause"]
    assert report.score == 1.0
    assert report.report[0].status == "failed"
    assert "exactly two candidates; the submission has none" in (report.error or "")
    three = await decided(pair(), judge, to_grade=THREE)
    assert "has 3" in (three.error or "")


@in_loop
async def test_other_kinds_judge_the_first_candidate() -> None:
    """A rubric may compare candidates and judge the first one by itself."""
    seen = []

    def judge(request: JudgeRequest) -> str:
        seen.append((request.criterion.name, request.submission.text, request.order))
        return "MET" if request.criterion.level == "binary" else "old"

    report = await CriterionGrader(judges=[judge]).grade(PAIR, Rubric([pair(weight=1.0), binary(weight=3.0)]))
    assert report.score == 0.75
    assert ("claim", PAIR["new"], ()) in seen
    assert len(seen) == 3


@in_loop
async def test_a_check_compares_once() -> None:
    """A criterion's own check is a function of the first text and sees no order."""
    found = await decided(pair(check=lambda text: "new" if "drops" in text else "old"), prefers_old)
    assert (found.final_answer, len(found.votes)) == ("new", 1)


# Models


def answers(winner: Callable[[str], str]) -> Callable[[ModelRequest], dict[str, Any]]:
    """A model that is shown a comparison answers with `winner` of the prompt, else with a verdict."""

    def answer(request: ModelRequest) -> dict[str, Any]:
        prompt = request.messages[-1].content
        if "winner, the letter" in prompt:
            return {"explanation": "because", "winner": winner(prompt), "cannot_assess": False}
        return {"reason": "it has", "verdict": "MET"}

    return answer


@in_loop
async def test_models_see_letters_and_no_names() -> None:
    """The candidates stand in the order of the vote; the prompt names neither, nor a submission."""
    judge, transport = model_judge(answers(lambda prompt: "A"))
    found = await decided(pair(), judge)
    assert [vote.answer for vote in found.votes] == ["new", "old"]
    assert found.final_answer == "tie"
    for prompt, texts in zip(
        transport.prompts, (list(PAIR.values()), list(PAIR.values())[::-1]), strict=True
    ):
        assert prompt.index('name="A"') < prompt.index(texts[0]) < prompt.index('name="B"')
        assert prompt.index('name="B"') < prompt.index(texts[1])
        assert "new" not in prompt and "<submission" not in prompt


@in_loop
async def test_a_model_that_reads_the_texts_is_consistent() -> None:
    """Whatever the order, the letter is mapped back to the candidate that it stood for."""

    def by_text(prompt: str) -> str:
        return "A" if prompt.index(PAIR["old"]) < prompt.index(PAIR["new"]) else "B"

    judge, _ = model_judge(answers(by_text))
    found = await decided(pair(), judge)
    assert (found.final_answer, found.position_inconsistent) == ("old", ())


@in_loop
async def test_requests_per_item_keep_the_orders_apart() -> None:
    """Plain criteria share a request, comparisons one for each order; all are judged."""

    def script(request: ModelRequest) -> dict[str, Any]:
        prompt = request.messages[-1].content
        ids = [line.split("]")[0][1:] for line in prompt.splitlines() if line.startswith("[c")]
        comparing = "winner, the letter" in prompt
        said: dict[str, Any] = {"winner": "A"} if comparing else {"verdict": "MET"}
        return {"evaluations": [{"id": key, "explanation": "e", "reason": "r", **said} for key in ids]}

    judge, transport = model_judge(script)
    rubric = Rubric([pair(name="one"), binary("p"), pair(name="two"), binary("q")])
    grader = CriterionGrader(judges=[judge], llm_calls="per_item")
    report = await grader.grade(PAIR, rubric)
    assert len(transport.requests) == 3
    assert [one.status for one in report.report] == ["answered"] * 4
    assert [one.final_answer for one in report.report] == ["tie", "MET", "tie", "MET"]
    plain = [prompt for prompt in transport.prompts if "<submission" in prompt]
    assert len(plain) == 1


@in_loop
async def test_a_batch_leaves_out_what_cannot_be_shown() -> None:
    """A comparison without candidates fails by itself and not with the criteria that it was asked with."""

    def script(request: ModelRequest) -> dict[str, Any]:
        keys = [line[1:6] for line in request.messages[-1].content.splitlines() if line.startswith("[c")]
        return {"evaluations": [{"id": key, "reason": "r", "verdict": "MET"} for key in keys]}

    judge, _ = model_judge(script)
    rubric = Rubric([pair(name="one"), binary("p"), binary("q"), pair(name="two")])
    report = await CriterionGrader(judges=[judge], llm_calls="per_item").grade("a text", rubric)
    assert [one.status for one in report.report] == ["failed", "answered", "answered", "failed"]
    alone = await CriterionGrader(judges=[judge], llm_calls="per_item").grade(
        "a text", Rubric([pair(name="one"), pair(name="two")])
    )
    assert [one.status for one in alone.report] == ["failed", "failed"]


@in_loop
async def test_a_long_pair_is_cut_where_it_is_longest() -> None:
    """A context that is too small costs the longer candidate first."""

    def script(request: ModelRequest) -> Any:
        if len(request.messages[-1].content) > 4000:
            return ContextLengthError("too long")
        return {"explanation": "", "winner": "B"}

    judge, transport = model_judge(script, truncate="end")
    long = {"short": "s" * 1500, "long": "l" * 6000}
    found = await decided(pair(both_orders=False), judge, to_grade=long, shuffle_options=False)
    assert found.votes[0].truncated
    assert found.final_answer == "long"
    assert transport.prompts[-1].count("s" * 1500) == 1


@in_loop
async def test_examples_of_comparisons() -> None:
    """Few-shot examples show both candidates in letters, never the item itself."""
    training = RubricDataset(
        rubric=Rubric([pair()]),
        items=[
            DataItem(id=f"t{n}", submission={"p": f"good {n}", "q": f"bad {n}"}, ground_truth=["p"])
            for n in range(4)
        ],
    )
    judge, transport = model_judge(answers(lambda prompt: "A"))
    grader = CriterionGrader(
        judges=[judge], training_data=training, few_shot_config=FewShotConfig(n_examples=9)
    )
    await grader.grade({"mine": "good 1", "other": "bad 1"}, Rubric([pair()]))
    for prompt in transport.prompts:
        assert prompt.count("Candidate A:") == 3
        assert "good 1\n\nCandidate" not in prompt
        for n in (0, 2, 3):
            example = prompt.split(f"good {n}")[0].rsplit("Candidate ", 1)[1][0]
            assert prompt.split(f"good {n}")[1].split("Judged: ")[1].startswith(example)


# Runs


def compared(n: int = 3) -> RubricDataset:
    items = [
        DataItem(id=f"i{i}", submission={"new": f"a {i}", "old": f"b {i}"}, ground_truth={"better": "new"})
        for i in range(n)
    ]
    return RubricDataset(rubric=Rubric([pair(), pair(name="graded", margin=2)]), items=items)


def run(dataset: RubricDataset, judge: Any, folder: Path, **options: Any) -> EvalResult:
    grader = CriterionGrader(judges=[judge])
    return evaluate_sync(
        dataset, grader, experiment_name="r", experiments_dir=folder, show_progress=False, **options
    )


def test_runs_resume_by_order(tmp_path: Path) -> None:
    """Votes of both orders are stored and told apart; what is missing of one order is asked again."""
    asked: list[tuple[str, tuple[str, ...]]] = []

    def judge(request: JudgeRequest) -> JudgeReply:
        asked.append((request.item_id, request.order))
        answer = request.order[0] if request.criterion.name == "better" else -1
        return JudgeReply(answer=answer, reason="seen")

    first = list(run(compared(), judge, tmp_path).get_reports())
    assert len(asked) == 12
    votes = tmp_path / "r" / "votes.jsonl"
    lines = votes.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if '"item":"i1"' not in line or '"order":["old","new"]' not in line]
    votes.write_text("\n".join(kept) + "\n", encoding="utf-8")
    asked.clear()
    again = run(compared(), judge, tmp_path)
    assert asked == [("i1", ("old", "new"))] * 2
    reopened = EvalResult.from_experiment(tmp_path / "r")
    for result in (again, reopened):
        for one, other in zip(result.get_reports(), first, strict=True):
            assert one is not None and other is not None
            assert [c.decision for c in one.report] == [c.decision for c in other.report]
            assert one.report[0].position_inconsistent == ("judge",)
            assert len(one.report[0].votes) == 2


def test_turning_candidates_round_asks_again(tmp_path: Path) -> None:
    """Stored preferences are of the order declared; another one makes it another item."""
    run(compared(1), lambda request: "new" if request.criterion.name == "better" else -1, tmp_path)
    turned = RubricDataset(
        rubric=compared(1).rubric,
        items=[DataItem(id="i0", submission={"old": "b 0", "new": "a 0"}, ground_truth={"better": "new"})],
    )
    with pytest.raises(RunMismatchError, match="item i0: text changed"):
        run(turned, lambda request: "new", tmp_path)
