"""Decision models over real HTTP, through both contracts and transports: every fault of the fault suite."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from autorubric import (
    CriterionGrader,
    DataItem,
    EscalationConfig,
    LLMConfig,
    RubricDataset,
    estimate,
    evaluate_sync,
)
from autorubric.criteria import BaseCriterion, Criterion
from autorubric.errors import ArgumentError
from autorubric.judges import DecisionModelJudge
from autorubric.metrics import judge_report
from autorubric.rubric import Rubric
from autorubric.runs import EvalResult
from autorubric.scoring import JudgeVote
from tests.doubles import binary, choice
from tests.faults.runs import dataset, votes_of
from tests.servers.fixtures import PASSING_FAULTS, OpenAIServer

KEY = "sk-SENTINEL-0123456789"
WAYS = (("systemone", "direct"), ("openai", "direct"), ("systemone", "litellm"), ("openai", "litellm"))
# litellm's own types and deprecated parts.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way))
def way(
    request: pytest.FixtureRequest, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The settings that reach the server by a contract and a transport."""
    contract, transport = request.param
    if transport == "direct":
        return {"model": "jev-1", "contract": contract, "api_base": openai_server.api_base, "api_key": KEY}
    monkeypatch.setenv("TYPESAFE_API_KEY", KEY)
    monkeypatch.setenv("TYPESAFE_API_BASE", openai_server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.api_base)
    return {"model": {"systemone": "typesafe/jev-1", "openai": "openai/luna"}[contract], "contract": contract}


def _votes(way: dict[str, Any], *criteria: BaseCriterion, **settings: Any) -> list[JudgeVote]:
    judge = DecisionModelJudge(**{"retry_min_wait": 0.01, "max_retries": 0, **way, **settings})
    report = Rubric(list(criteria)).grade_sync("A short text.", CriterionGrader(judges=[judge]))
    return [vote for one in report.report for vote in one.votes]


def test_a_vote_has_the_probabilities_and_the_served_version(
    way: dict[str, Any], openai_server: OpenAIServer
) -> None:
    """By either transport, with the key in the header alone."""
    openai_server.script({"do": "answer", "served": "jev-1.0.3"})
    one, other = _votes(way, binary(), choice())
    assert one.probabilities is not None and other.probabilities is not None
    assert (one.model, other.model) == ("jev-1.0.3", "jev-1.0.3")
    assert one.token_usage is not None and one.token_usage.prompt_tokens == 130
    [request] = openai_server.log()
    assert request["headers"]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in str(request["body"])


@pytest.mark.parametrize("fault", PASSING_FAULTS[:-1], ids=str)
def test_a_passing_fault_is_retried(
    way: dict[str, Any], openai_server: OpenAIServer, fault: dict[str, Any] | str
) -> None:
    """The next try succeeds, and nobody sees the fault."""
    openai_server.script(fault)
    [vote] = _votes(way, binary(), max_retries=2)
    assert vote.probabilities is not None and vote.error is None
    assert len(openai_server.log()) == 2


LASTING: dict[str, tuple[dict[str, Any], str]] = {
    "a wrong key": ({"do": "status", "status": 401}, "AuthenticationError"),
    "no such model": ({"do": "status", "status": 404}, "ModelNotFoundError"),
    "a bad request": ({"do": "status", "status": 400}, "RequestRefusedError"),
    "no credit": ({"do": "status", "status": 402}, "RequestRefusedError"),
    "too many requests": ({"do": "status", "status": 429}, "RateLimitError"),
    "a failure": ({"do": "status", "status": 500}, "ServerError"),
    "no JSON": ({"do": "raw", "body": "<html>busy</html>"}, "ServerError"),
    "something else": ({"do": "raw", "body": '{"choices": []}'}, "ServerError"),
    "answers of another kind": ({"do": "raw", "body": '{"answers": "yes"}'}, "ServerError"),
    "a flood": ({"do": "flood", "megabytes": 40}, "ServerError"),
    "a bomb": ({"do": "bomb", "megabytes": 40}, "ServerError"),
}


@pytest.mark.parametrize(("fault", "error"), LASTING.values(), ids=LASTING)
def test_a_lasting_fault_fails_every_vote(
    way: dict[str, Any], openai_server: OpenAIServer, fault: dict[str, Any], error: str
) -> None:
    """With the error of its kind; no vote is made up."""
    openai_server.script(fault, repeat="last")
    votes = _votes(way, binary("one"), binary("two"))
    assert [vote.status for vote in votes] == ["failed", "failed"]
    assert {str(vote.error).partition(":")[0] for vote in votes} == {error}
    assert {vote.probabilities for vote in votes} == {None}


@pytest.mark.parametrize("fault", ["hang", "drip", "reset", "truncated"])
def test_a_connection_that_gives_no_answer_fails(
    way: dict[str, Any], openai_server: OpenAIServer, fault: str
) -> None:
    """After the timeout, or at once if it is broken."""
    openai_server.script({"do": fault, "seconds": 30}, repeat="last")
    [vote] = _votes(way, binary(), timeout=0.5)
    kind = "ProviderTimeoutError" if fault in ("hang", "drip") else "ProviderConnectionError"
    assert str(vote.error).startswith(kind)


def test_an_error_that_repeats_the_key_is_masked(way: dict[str, Any], openai_server: OpenAIServer) -> None:
    """In any vote."""
    openai_server.script("echo_key", repeat="last")
    [vote] = _votes(way, binary())
    assert vote.status == "failed" and KEY not in str(vote.error)


def test_nobody_listening_is_a_connection_error() -> None:
    """The error says what to check."""
    [vote] = _votes({"model": "jev", "api_base": "http://127.0.0.1:9/v1"}, binary())
    assert "ProviderConnectionError" in str(vote.error) and "check api_base" in str(vote.error)


def _run(folder: Path, judge: DecisionModelJudge, data: RubricDataset, **options: Any) -> EvalResult:
    given = {"experiment_name": "run", "experiments_dir": folder, "show_progress": False, **options}
    return evaluate_sync(data, CriterionGrader(judges=[judge]), **given)


def _judge(server: OpenAIServer, model: str = "jev-1", **settings: Any) -> DecisionModelJudge:
    return DecisionModelJudge(model, api_base=server.api_base, retry_min_wait=0.01, **settings)


def test_a_run_resumes_after_lost_votes(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Only the items without votes are asked about again."""
    data = dataset(4, criteria=3)
    openai_server.script({"do": "status", "status": 400}, repeat="last")
    judge = _judge(openai_server)
    first = _run(tmp_path, judge, data)
    assert {vote.status for vote in votes_of(first)} == {"failed"}
    openai_server.reset()
    again = _run(tmp_path, judge, data)
    assert len(openai_server.log()) == 4
    assert all(vote.probabilities is not None for vote in votes_of(again))
    openai_server.reset()
    same = _run(tmp_path, judge, data)
    assert openai_server.log() == []
    assert votes_of(same) == votes_of(again)
    opened = EvalResult.from_experiment(tmp_path / "run")
    assert [vote.probabilities for vote in votes_of(opened)] == [
        vote.probabilities for vote in votes_of(again)
    ]


def test_a_seeded_rain_of_faults_loses_nothing(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A third of the requests fail in passing; every vote arrives."""
    faults = {
        "limited": {"share": 0.1, "do": "status", "status": 429},
        "failed": {"share": 0.1, "do": "status", "status": 503},
        "reset": {"share": 0.07, "do": "reset"},
        "torn": {"share": 0.06, "do": "truncated"},
    }
    openai_server.trouble(seed=3, faults=faults)
    result = _run(tmp_path, _judge(openai_server, max_retries=6), dataset(40))
    assert len(votes_of(result)) == 200
    assert all(vote.probabilities is not None for vote in votes_of(result))


def test_an_estimate_counts_the_requests_and_says_what_it_cannot_know(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """One request an item, no reply tokens, the price of the config; nothing is sent."""
    judge = _judge(openai_server, input_cost_per_token=1e-6, output_cost_per_token=1e-6)
    found = estimate(dataset(5), CriterionGrader(judges=[judge]), experiments_dir=tmp_path)
    [one] = found.judges
    assert (one.votes, one.calls, one.completion_tokens) == (25, 5, 0)
    assert one.prompt_tokens is not None and one.cost == pytest.approx(one.prompt_tokens * 1e-6)
    assert any("a server with lower limits" in note for note in found.notes)
    assert openai_server.log() == []


def test_a_budget_stops_the_run_before_the_next_request(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """`max_calls` counts requests to the server, not votes."""
    result = _run(tmp_path, _judge(openai_server), dataset(6), max_calls=2)
    assert result.stopped == "max_calls"
    assert len(openai_server.log()) == 2
    assert len([vote for vote in votes_of(result) if vote.probabilities]) == 10


def test_votes_have_their_cost_once(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """At the price of the config, on the first vote of each request."""
    judge = _judge(openai_server, input_cost_per_token=1e-6, output_cost_per_token=0.0)
    result = _run(tmp_path, judge, dataset(2, criteria=3))
    costs = [vote.completion_cost for vote in votes_of(result)]
    assert costs == [pytest.approx(170e-6), None, None] * 2


def test_the_cache_keeps_whole_replies_alone(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """An invalid answer is not kept; a valid one is not asked for again."""
    judge = _judge(openai_server, cache_enabled=True, cache_dir=tmp_path / "cache")
    openai_server.script({"do": "answer", "answers": {"q1": None}})
    _run(tmp_path, judge, dataset(1), experiment_name="a")
    assert len(openai_server.log()) == 2
    _run(tmp_path, judge, dataset(1), experiment_name="b")
    assert len(openai_server.log()) == 3
    _run(tmp_path, judge, dataset(1), experiment_name="c")
    assert len(openai_server.log()) == 3


@pytest.mark.parametrize(
    ("model", "served", "is_alias"),
    [
        ("jev-latest", "jev-latest", True),
        ("jev-1", "jev-1.0.3", True),
        ("jev-1.0.3", "jev-1.0.3", False),
        ("typesafe/jev-1.0.3", "jev-1.0.3", False),
    ],
)
def test_an_alias_is_reported(
    openai_server: OpenAIServer, tmp_path: Path, model: str, served: str, is_alias: bool
) -> None:
    """The run says so, now and when it is opened again."""
    openai_server.script({"do": "answer", "served": served}, repeat="last")
    result = _run(tmp_path, _judge(openai_server, model), dataset(2))
    for notices in (result.notices, EvalResult.from_experiment(tmp_path / "run").notices):
        found = [notice for notice in notices if "can refer to another version" in notice]
        assert len(found) == is_alias
        assert all(model in notice and served in notice for notice in found)
    manifest = (tmp_path / "run" / "manifest.json").read_text(encoding="utf-8")
    assert ("can refer to another version" in manifest) == is_alias


def test_a_criterion_that_does_not_fit_stops_a_run_before_it_starts(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """No folder is made, and nothing is sent."""
    rubric = Rubric([binary("fits"), choice("long", {f"o{n:02}": n / 11 for n in range(12)})])
    data = RubricDataset(name="d", rubric=rubric, items=[DataItem(submission="A text.", id="i")])
    with pytest.raises(ArgumentError, match="'long' has 12 possible answers"):
        _run(tmp_path, _judge(openai_server), data)
    assert openai_server.log() == []
    assert not list(tmp_path.iterdir())


def test_a_judge_that_passes_everything_is_named(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """With the accuracy of passing everything, and both rates."""
    yes = {key: {"type": "noul", "noul": p} for key, p in (("q1", 0.9), ("q2", 0.05))}
    openai_server.script({"do": "answer", "answers": yes}, repeat="last")
    rubric = Rubric([binary("kind")])
    items = [
        DataItem(submission=f"Text {n}.", id=f"i{n}", ground_truth={"kind": "UNMET" if n % 4 == 0 else "MET"})
        for n in range(12)
    ]
    result = _run(tmp_path, _judge(openai_server), RubricDataset(name="d", rubric=rubric, items=items))
    line = (
        "panel: on kind, a judge that passes everything would reach the same accuracy or a higher one: "
        "0.750, compared with 0.750 (sensitivity 1.000, specificity 0.000)"
    )
    metrics = result.compute_metrics()
    assert line in metrics.warnings
    assert "Sensitivity and specificity" in metrics.summary()
    report = judge_report(result)
    assert any(line.removeprefix("panel: ") in warning for warning in report.warnings)
    assert "Sensitivity and specificity" in report.summary()


def test_a_judge_that_never_finds_a_penalty_is_named(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A penalty passes if it is UNMET."""
    no = {key: {"type": "noul", "noul": 0.05} for key in ("q1", "q2")}
    openai_server.script({"do": "answer", "answers": no}, repeat="last")
    items = [
        DataItem(submission=f"Text {n}.", id=f"i{n}", ground_truth={"rude": "UNMET" if n % 4 else "MET"})
        for n in range(12)
    ]
    rubric = Rubric([Criterion(name="rude", requirement="It is rude.", weight=-5)])
    result = _run(tmp_path, _judge(openai_server), RubricDataset(name="d", rubric=rubric, items=items))
    line = (
        "panel: on rude, a judge that answers UNMET to everything would reach the same accuracy or a higher "
        "one: 0.750, compared with 0.750 (sensitivity 0.000, specificity 1.000)"
    )
    assert line in result.compute_metrics().warnings


def test_what_is_uncertain_goes_to_a_judge_that_gives_reasons(openai_server: OpenAIServer) -> None:
    """One request to the decision model, and one about the criterion in the band to the text model."""
    sure, unsure = {"type": "noul", "noul": 0.98}, {"type": "noul", "noul": 0.5}
    never = {"type": "noul", "noul": 0.01}
    answers = {"q1": sure, "q2": never, "q3": unsure, "q4": never}
    openai_server.script({"do": "answer", "answers": answers}, model="jev-1")
    openai_server.script(
        {"do": "answer", "payload": {"verdict": "MET", "reason": "It says so."}}, model="text"
    )
    text = LLMConfig(model="openai/text", api_base=openai_server.api_base, transport="openai_compatible")
    escalation = EscalationConfig([text], band=(0.2, 0.8))
    grader = CriterionGrader(judges=[_judge(openai_server)], escalation=escalation)
    report = Rubric([binary("sure"), binary("unsure")]).grade_sync("A text.", grader)
    assert report.escalated == ("unsure",)
    assert [one.final_reason for one in report.report] == ["", "It says so."]
    assert [one["path"] for one in openai_server.log()] == ["/v1/systemone", "/v1/chat/completions"]


def test_rounds_of_early_stopping_ask_about_all_criteria_together(openai_server: OpenAIServer) -> None:
    """Three judges need at most three requests for an item, whatever its number of criteria."""
    judges = [_judge(openai_server, f"jev-{number}") for number in range(3)]
    grader = CriterionGrader(judges=judges, stop_when_decided=True)
    report = Rubric([binary(f"c{number}") for number in range(6)]).grade_sync("A text.", grader)
    assert len(openai_server.log()) <= 3
    assert all(one.decision.status in ("answered", "abstained") for one in report.report)


def test_a_judge_can_be_sent_to_another_process(openai_server: OpenAIServer) -> None:
    """As its config; it opens its own connections there."""
    judge = pickle.loads(pickle.dumps(_judge(openai_server, contract="openai")))  # noqa: S301 - our own
    report = Rubric([binary()]).grade_sync("A text.", CriterionGrader(judges=[judge]))
    assert report.report[0].votes[0].probabilities is not None
    assert openai_server.log()[0]["path"] == "/v1/decisions"
