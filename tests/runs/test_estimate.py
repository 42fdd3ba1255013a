"""Estimates: what a run would take, planned and rendered as the run does it, and nothing sent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autorubric import CriterionGrader, DataItem, EscalationConfig, JudgeSpec, RubricDataset, estimate
from autorubric.errors import ArgumentError
from autorubric.grading import Grader
from autorubric.judges import Critic, LexicalJudge, ModelJudge
from autorubric.llm import LLMClient, LLMConfig
from autorubric.runs import RunEstimate
from tests.doubles import ScriptedTransport, binary
from tests.runs.runs import TEXTS, CountingJudge, run, small_dataset, small_rubric
from tests.servers.fixtures import OpenAIServer

PRICED = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.01}
UNPRICED = dict.fromkeys(PRICED)


def model(**fields: Any) -> LLMConfig:
    return LLMConfig(**{"model": "openai/none-such", **PRICED, **fields})


def of(*judges: Any, dataset: RubricDataset | None = None, **options: Any) -> RunEstimate:
    return estimate(
        small_dataset(*TEXTS) if dataset is None else dataset, CriterionGrader(judges=judges, **options)
    )


def test_calls_tokens_and_cost_per_judge_and_in_total() -> None:
    """Four items, two criteria, three samples of one and one of the other judge."""
    found = of(JudgeSpec(model(), "a", samples=3), JudgeSpec(model(), "b"))
    assert [(one.judge_id, one.calls, one.votes) for one in found.judges] == [("a", 24, 24), ("b", 8, 8)]
    assert found.calls == 32
    assert found.completion_tokens == 32 * 80
    a, b = found.judges
    assert a.prompt_tokens == 3 * (b.prompt_tokens or 0)
    assert b.cost == pytest.approx((b.prompt_tokens or 0) * 0.001 + 8 * 80 * 0.01)
    assert found.cost == pytest.approx((a.cost or 0) + (b.cost or 0))
    assert not found.at_most


def test_tokens_are_those_of_the_requests_that_would_be_sent(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """The run then sends the very prompts that were counted, in that number."""
    config = model(api_base=openai_server.api_base)
    found = of(config)
    run(tmp_path, None, grader=CriterionGrader(judges=[config]))
    bodies = [request["body"] for request in openai_server.log()]
    characters = [
        sum(len(message["content"]) for message in body["messages"])
        + len(json.dumps(body["response_format"]["json_schema"]["schema"], separators=(",", ":")))
        for body in bodies
    ]
    assert found.calls == len(bodies) == 8
    assert found.prompt_tokens == sum(-(-count // 4) for count in characters)


@pytest.mark.parametrize(("llm_calls", "calls"), [("per_criterion", 8), ("per_item", 4), (2, 4)])
def test_shared_requests_are_fewer(llm_calls: Any, calls: int) -> None:
    """Requests are counted, not votes."""
    found = of(model(), llm_calls=llm_calls)
    assert (found.calls, found.votes) == (calls, 8)


def test_judges_that_ask_nobody_cost_nothing() -> None:
    """A built-in judge and a check have votes, and no calls."""
    rubric = small_rubric()
    with_check = small_dataset(
        *TEXTS, rubric=type(rubric)([*rubric, binary("short", check=lambda text: True)])
    )
    found = of(LexicalJudge(), dataset=with_check)
    assert [(one.judge_id, one.votes, one.calls, one.cost) for one in found.judges] == [
        ("lexical", 8, 0, 0.0),
        ("check", 4, 0, 0.0),
    ]


def test_a_judge_of_ones_own_is_not_guessed_at() -> None:
    """What it does is not known, and then neither is the total."""
    found = of(CountingJudge(), model())
    assert found.judges[0].calls is None
    assert "prices are unknown" in found.judges[0].reason
    assert (found.calls, found.cost) == (None, None)
    assert found.judges[1].cost is not None


def test_prices_come_from_the_list_or_are_missing_with_a_reason() -> None:
    """A listed model, one that nobody knows, and a server of one's own, whatever its model is called."""
    models = [model(model="gpt-6-luna", **UNPRICED), model(**UNPRICED)]
    own = model(model="openai/gpt-6-luna", api_base="http://127.0.0.1:9/v1", **UNPRICED)
    listed, unlisted, here = of(*models, own).judges
    expected = ((listed.prompt_tokens or 0) * 0.1 + (listed.completion_tokens or 0) * 0.5) / 1e6
    assert listed.cost == pytest.approx(expected)
    assert (unlisted.cost, here.cost) == (None, None)
    assert "price list" in unlisted.reason
    assert "127.0.0.1" in here.reason


@pytest.mark.parametrize("name", ["anthropic/claude-sonnet-5-5", "openai/none-such"])
@pytest.mark.parametrize("api_base", [None, "http://127.0.0.1:9/v1"])
def test_a_price_of_ones_own_comes_before_the_list(name: str, api_base: str | None) -> None:
    """Of a listed model, of one that nobody knows, and on a server of one's own."""
    (found,) = of(model(model=name, api_base=api_base)).judges
    expected = (found.prompt_tokens or 0) * 0.001 + (found.completion_tokens or 0) * 0.01
    assert found.cost == pytest.approx(expected)


def test_critics_that_ask_models_are_counted() -> None:
    """Their own prompts are rendered; a critic is asked for its own criterion alone."""
    rubric = small_rubric()
    critic = Critic(evaluator=model(), criterion=rubric.by_name("apple"))
    (found,) = of(critic).judges
    assert (found.calls, found.votes) == (4, 8)
    assert found.cost is not None and found.cost > 0


def test_stored_votes_are_not_counted_again(tmp_path: Path) -> None:
    """What a run of that name holds is not asked for, unless something has changed."""
    judge = ModelJudge(
        judge_id="m",
        client=LLMClient(model(), transport=ScriptedTransport(lambda _: {"reason": "r", "verdict": "MET"})),
    )
    grader = CriterionGrader(judges=[judge])
    run(tmp_path, None, small_dataset(*TEXTS[:3]), grader=grader)

    def again(dataset: RubricDataset) -> RunEstimate:
        return estimate(dataset, grader, experiment_name="run", experiments_dir=tmp_path)

    whole = again(small_dataset(*TEXTS))
    assert (whole.calls, whole.stored_votes) == (2, 6)
    changed = again(small_dataset("other", *TEXTS[1:]))
    assert (changed.calls, changed.stored_votes) == (4, 4)
    assert estimate(small_dataset(*TEXTS), grader, experiment_name="new", experiments_dir=tmp_path).calls == 8


def test_what_may_be_left_out_is_said() -> None:
    """Early stopping and a cascade may take less than is counted."""
    assert of(model(), stop_when_decided=True).at_most
    found = of(LexicalJudge(), escalation=EscalationConfig([model()], threshold=0.5))
    assert found.at_most
    assert found.calls == 8
    assert "Upper bound" in found.summary()
    assert found.to_dict()["at_most"] is True


def test_the_cache_is_not_looked_into(tmp_path: Path) -> None:
    """Kept replies are free, and that is said."""
    found = of(model(cache_enabled=True, cache_dir=tmp_path / "cache"))
    assert any("cache" in note for note in found.notes)
    assert not (tmp_path / "cache").exists()


def test_items_are_read_one_by_one(tmp_path: Path) -> None:
    """A streamed dataset is gone through without being held."""
    path = tmp_path / "items.jsonl"
    lines = [{"id": f"i{n}", "submission": text} for n, text in enumerate(TEXTS)]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    streamed = RubricDataset.stream(path, rubric=small_rubric())
    assert of(model(), dataset=streamed).calls == 8


def test_other_graders_cannot_say() -> None:
    """What a grader of one's own will ask is not known."""

    class Own(Grader):
        async def judge(self, task: Any, *, stored: Any = None, listener: Any = None) -> Any: ...

        def aggregate(self, task: Any, votes: Any) -> Any: ...

        def describe(self) -> Any: ...

    with pytest.raises(ArgumentError, match="must be a CriterionGrader to be estimated; got Own"):
        estimate(small_dataset("a"), Own())


def test_litellm_is_loaded_only_for_a_price() -> None:
    """Without a model whose price is to be looked up, an estimate imports nothing heavy."""
    program = (
        "import sys\n"
        "from autorubric import CriterionGrader, LexicalJudge, LLMConfig, estimate\n"
        "from autorubric.demo import demo_dataset\n"
        "local = LLMConfig(model='m', api_base='http://127.0.0.1:9/v1')\n"
        "own = LLMConfig(model='n', input_cost_per_token=1e-6, output_cost_per_token=0)\n"
        "found = estimate(demo_dataset(), CriterionGrader(judges=[local, own, LexicalJudge()]))\n"
        "assert found.calls == 2 * 72 * 9\n"
        "assert found.judges[1].cost == found.judges[1].prompt_tokens * 1e-6\n"
        "assert not {'litellm', 'aiohttp'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_item_without_a_rubric_is_told() -> None:
    """As in the run itself."""
    with pytest.raises(ArgumentError, match="rubric"):
        of(model(), dataset=RubricDataset(items=[DataItem(submission="x")]))
