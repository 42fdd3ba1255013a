"""Runs in batches of providers, against the suite's server."""

from __future__ import annotations

import json
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from autorubric import (
    Criterion,
    CriterionGrader,
    DataItem,
    EvalResult,
    JudgeSpec,
    LLMConfig,
    Rubric,
    RubricDataset,
)
from autorubric.errors import (
    ArgumentError,
    ItemFailedError,
    ProviderError,
    RunError,
    RunFormatError,
    RunMismatchError,
    RunWriteError,
)
from autorubric.llm.batches import _Queued, split_requests
from autorubric.runs import estimate, evaluate_sync
from tests.servers.fixtures import OpenAIServer


def _dataset(count: int = 4) -> RubricDataset:
    criteria = [Criterion(name=name, requirement=f"Speaks of {name}.") for name in ("apple", "pear")]
    items = [DataItem(id=f"i{n}", submission=f"text number {n}") for n in range(count)]
    return RubricDataset(name="fruit", rubric=Rubric(criteria), items=items)


def _config(server: OpenAIServer, kind: str = "openai", **changes: Any) -> LLMConfig:
    price = {"input_cost_per_token": 1e-5, "output_cost_per_token": 2e-5, "api_key": "sk-secret-of-the-test"}
    if kind == "anthropic":
        return LLMConfig(
            model="anthropic/claude-haiku-4-5",
            api_base=server.url,
            **{**price, "retry_min_wait": 0, **changes},
        )
    if kind == "litellm":
        changes = {"model": "openai/gpt-5.4", "transport": "litellm", **changes}
    given = {"model": "m", "api_base": server.api_base, **price, "retry_min_wait": 0, **changes}
    return LLMConfig(**given)


def _run(folder: Path, model: LLMConfig, **options: Any) -> EvalResult:
    grader = options.pop("grader", None) or CriterionGrader(judges=[model])
    return evaluate_sync(
        options.pop("dataset", None) or _dataset(),
        grader,
        experiment_name="run",
        experiments_dir=folder,
        show_progress=False,
        **{"batch": True, **options},
    )


def _until_done(folder: Path, model: LLMConfig, most: int = 12, **options: Any) -> tuple[EvalResult, int]:
    for calls in range(1, most):
        result = _run(folder, model, **options)
        if result.stopped != "batch":
            return result, calls
    raise AssertionError(result.notices)


def _judged(result: EvalResult) -> int:
    return result.verdicts.answered + result.verdicts.abstained


def _votes(result: EvalResult) -> list[Any]:
    found = []
    for item in result.item_results:
        assert item.report is not None
        for criterion in item.report.report:
            for vote in criterion.votes:
                told = (vote.judge_id, vote.sample, vote.status, vote.answer, vote.reason, vote.model)
                found.append((item.item_idx, criterion.name, *told, vote.token_usage))
    return sorted(found, key=repr)


@pytest.mark.parametrize("kind", ["openai", "litellm", "anthropic"])
def test_a_batch_gives_the_votes_of_a_direct_run(
    kind: str, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """The first call submits, the second collects; votes are equal, at half the cost, paid for once."""
    openai_server.batches(polls=1)
    first = _run(tmp_path / "batch", _config(openai_server, kind))
    assert first.stopped == "batch"
    assert "8 requests outstanding (batches: 1)" in first.notices[-1]
    done = _run(tmp_path / "batch", _config(openai_server, kind))
    assert done.stopped is None, done.notices
    assert set(openai_server.batches()["paid"].values()) == {1}
    assert len(openai_server.batches()["paid"]) == 8
    assert done.total_completion_cost == pytest.approx(8 * (100e-5 + 20 * 2e-5) / 2)
    report = done.item_results[0].report
    assert report is not None
    assert {vote.latency_seconds for vote in report.report[0].votes} == {None}
    if kind != "anthropic":
        direct = _run(tmp_path / "direct", _config(openai_server, kind), batch=False)
        assert [v[:-1] for v in _votes(direct)] == [v[:-1] for v in _votes(done)]
        assert direct.item_results.tally.mean_score == done.item_results.tally.mean_score


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("fate", ["expired", "missing", "garbage", "overloaded", "duplicate", "unreadable"])
def test_what_has_no_usable_result_goes_into_the_next_batch(
    kind: str, fate: str, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """Only the request without a usable result is sent again, whatever the order of results."""
    openai_server.batches(polls=1, rules=[{"contains": "text number 2", "fate": fate, "times": 1}])
    done, calls = _until_done(tmp_path, _config(openai_server, kind))
    assert done.stopped is None
    told = openai_server.batches()
    sizes = [size for _, _, size in told["batches"]]
    assert sizes == ([8] if fate == "duplicate" else [8, 1])
    assert calls == len(sizes) + 1
    assert set(told["paid"].values()) == {1}
    assert len(told["paid"]) == (9 if fate == "unreadable" else 8)
    assert _judged(done) == 8
    cost = done.total_completion_cost
    assert cost == pytest.approx((9 if fate == "unreadable" else 8) * (100e-5 + 20 * 2e-5) / 2)


@pytest.mark.parametrize("kind", ["openai", "litellm", "anthropic"])
def test_results_that_contradict_each_other_are_asked_again(
    kind: str, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """Neither of two results for one request counts; the notice says so, and a single one is the vote."""
    openai_server.batches(polls=1, rules=[{"contains": "text number 2", "fate": "contradicting", "times": 2}])
    model = _config(openai_server, kind)
    _run(tmp_path, model)
    second = _run(tmp_path, model)
    assert second.stopped == "batch"
    assert "2 requests of batch" in second.notices[-1] and "contradict each other" in second.notices[-1]
    done = _run(tmp_path, model)
    assert done.stopped is None
    assert [size for _, _, size in openai_server.batches()["batches"]] == [8, 2]
    if kind != "anthropic":
        direct = _run(tmp_path / "direct", model, batch=False)
        assert [v[:-1] for v in _votes(direct)] == [v[:-1] for v in _votes(done)]


def test_results_that_always_contradict_each_other_end_after_the_retries(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """The vote is lost, with the reason."""
    openai_server.batches(
        polls=1, rules=[{"contains": "text number 1", "fate": "contradicting", "times": 99}]
    )
    done, calls = _until_done(tmp_path, _config(openai_server, max_retries=1))
    assert (calls, done.verdicts.lost) == (3, 2)
    report = done.item_results[1].report
    assert report is not None
    assert "contradict each other" in str(report.report[0].votes[0].error)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_refused_request_is_a_failed_vote(kind: str, tmp_path: Path, openai_server: OpenAIServer) -> None:
    """An error that another try does not mend fails the vote, and is tried again once the run is resumed."""
    openai_server.batches(polls=1, rules=[{"contains": "text number 1", "fate": "refused", "times": 2}])
    done, calls = _until_done(tmp_path, _config(openai_server, kind))
    assert (calls, done.verdicts.lost) == (2, 2)
    done, calls = _until_done(tmp_path, _config(openai_server, kind))
    assert (calls, done.verdicts.lost) == (2, 0)
    assert [size for _, _, size in openai_server.batches()["batches"]] == [8, 2]


def test_transient_errors_end_after_the_retries(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """A request that keeps failing is sent as often as `max_retries` allows."""
    openai_server.batches(polls=1, rules=[{"contains": "text number 1", "fate": "overloaded", "times": 99}])
    done, calls = _until_done(tmp_path, _config(openai_server, max_retries=2))
    assert (calls, done.verdicts.lost) == (4, 2)


def test_requests_of_an_item_are_adjacent(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """The requests that share a prefix follow each other."""
    _run(tmp_path, _config(openai_server), dataset=_dataset(40))
    (order,) = openai_server.batches()["orders"]
    items = [next(n for n in range(39, -1, -1) if f"text number {n}" in text) for text in order]
    assert items == [n for n in dict.fromkeys(items) for _ in range(2)]


def test_equal_texts_are_asked_separately(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """Items with the same text, samples, and equal judges have their own requests, as in a direct run."""
    items = [DataItem(id=f"i{n}", submission="the same") for n in range(3)]
    dataset = RubricDataset(name="same", rubric=_dataset().rubric, items=items)
    openai_server.batches(polls=1)
    model = _config(openai_server)
    grader = CriterionGrader(judges=[JudgeSpec(model, name) for name in ("one", "two")])
    _run(tmp_path, model, dataset=dataset, grader=grader)
    done = _run(tmp_path, model, dataset=dataset, grader=grader)
    assert done.stopped is None
    assert sum(openai_server.batches()["paid"].values()) == 12


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("clock", [0, -3600, 3600, -1e9])
def test_a_lost_response_submits_nothing_twice(
    kind: str, clock: float, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """If the provider accepted a batch but its response was lost, the batch is found by the next call.

    The clocks of the machine and the provider may differ.
    """
    openai_server.batches(polls=1, clock=clock)
    _run(tmp_path / "other", _config(openai_server, kind), dataset=_dataset(9).subset([8]))
    openai_server.batches(lose_create=1)
    with pytest.raises(ProviderError):
        _run(tmp_path, _config(openai_server, kind))
    done, _ = _until_done(tmp_path, _config(openai_server, kind))
    assert done.stopped is None
    assert len(openai_server.batches()["batches"]) == 2
    assert set(openai_server.batches()["paid"].values()) == {1}


@pytest.mark.parametrize(
    "told",
    [
        {"id": 5},
        {"id": None},
        {"status": None},
        {"status": ["completed"]},
        {"status": "failed", "errors": [7]},
    ],
)
def test_a_malformed_state_is_an_error(
    told: dict[str, Any], tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """The message says what the provider returned, and nothing is submitted again."""
    openai_server.batches(polls=1, told=told)
    _run(tmp_path, _config(openai_server))
    with pytest.raises(ProviderError, match=r"no state of a batch|rejected batch batch_0"):
        _run(tmp_path, _config(openai_server))
    assert len(openai_server.batches()["batches"]) == 1


def test_a_malformed_list_is_an_error(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """A batch that may be in the list is not submitted again."""
    openai_server.batches(polls=1, lose_create=1, page={"data": 7})
    for message in ("failed", "not a list of batches"):
        with pytest.raises(ProviderError, match=message):
            _run(tmp_path, _config(openai_server))
    openai_server.batches(page={})
    assert _until_done(tmp_path, _config(openai_server))[0].stopped is None
    assert len(openai_server.batches()["batches"]) == 1


def test_a_complete_batch_without_results_is_not_submitted_again(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """Its replies are paid for, so they are waited for until the requests are sent directly."""
    openai_server.batches(polls=1, told={"output_file_id": None, "error_file_id": None})
    _run(tmp_path, _config(openai_server))
    for _ in range(3):
        with pytest.raises(ProviderError, match="batch_0 is complete, but has no results of 8 req"):
            _run(tmp_path, _config(openai_server))
    shutil.copytree(tmp_path / "run", tmp_path / "direct" / "run")
    direct = _run(tmp_path / "direct", _config(openai_server), batch=False, finish_direct=True)
    openai_server.batches(told={})
    done = _run(tmp_path, _config(openai_server))
    assert (done.stopped, _judged(done), direct.stopped, _judged(direct)) == (None, 8, None, 8)
    assert len(openai_server.batches()["batches"]) == 1


@pytest.mark.parametrize("fate", ["overloaded", "refused", "expired"])
def test_a_complete_batch_with_errors_alone_is_not_submitted_again(
    fate: str, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """An error file beside a lost file of replies, which are paid for."""
    rules = [{"contains": "text number 1", "fate": fate, "times": 1}]
    openai_server.batches(polls=1, told={"output_file_id": None}, rules=rules)
    _run(tmp_path, _config(openai_server))
    for _ in range(3):
        with pytest.raises(ProviderError, match=r"no results of [78] requests.* --finish-direct"):
            _run(tmp_path, _config(openai_server))
    openai_server.batches(told={})
    done, _ = _until_done(tmp_path, _config(openai_server))
    assert (done.stopped, max(openai_server.batches()["paid"].values())) == (None, 1)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_request_without_a_result_is_not_submitted_without_end(
    kind: str, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """Once a batch has only such requests, the run waits until they are sent directly."""
    openai_server.batches(polls=1, rules=[{"contains": "text number 1", "fate": "missing", "times": 99}])
    config = _config(openai_server, kind)
    _run(tmp_path, config)
    assert _run(tmp_path, config).stopped == "batch"
    for _ in range(3):
        with pytest.raises(ProviderError, match=r"no results of 2 requests.* --finish-direct"):
            _run(tmp_path, config)
    assert [size for _, _, size in openai_server.batches()["batches"]] == [8, 2]


@pytest.mark.parametrize(
    ("total", "completed", "message"),
    [(9, 9, "9 of 9 requests"), (8, 7, "7 of 8 requests"), (8, 8, ""), (0, 0, "")],
)
def test_counts_that_contradict_the_provider_are_shown(
    total: int, completed: int, message: str, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """A notice has the provider's count beside the run's own."""
    counts = {"total": total, "completed": completed, "failed": 0}
    openai_server.batches(polls=1, told={"request_counts": counts})
    done, _ = _until_done(tmp_path, _config(openai_server))
    (shown,) = [one for one in done.notices if "the provider says" in one] or [""]
    assert message in shown and bool(message) == ("8 of 8 requests have a reply" in shown)


def test_results_are_read_with_a_bound(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """Results that are larger than all replies may be are refused, without filling the memory."""
    openai_server.batches(polls=1, flood=200 << 20)
    _run(tmp_path, _config(openai_server), dataset=_dataset(2))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ProviderError, match=r"exceeds 167,772,160 bytes.* --finish-direct"):
        _run(tmp_path, _config(openai_server), dataset=_dataset(2))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10
    openai_server.batches(flood=100 << 20)
    with pytest.raises(ProviderError, match="has no results"):
        _run(tmp_path, _config(openai_server), dataset=_dataset(2))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
    assert len(openai_server.batches()["batches"]) == 1


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_finish_direct_asks_the_tail_at_once(kind: str, tmp_path: Path, openai_server: OpenAIServer) -> None:
    """Batches are cancelled, what they answered is used, and only the rest is sent directly."""
    openai_server.batches(polls=99)
    _run(tmp_path, _config(openai_server, kind))
    done = _run(tmp_path, _config(openai_server, kind), batch=False, finish_direct=True)
    if kind == "openai":
        assert done.stopped is None
        assert (_judged(done), len(openai_server.batches()["paid"])) == (8, 4)
    direct = [one for one in openai_server.log() if one["path"].endswith(("/completions", "/messages"))]
    assert len(direct) == (4 if kind == "openai" else 12)


def test_finish_direct_needs_batches(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """A wrong name starts no run at the usual price."""
    with pytest.raises(RunError, match="has no batches"):
        _run(tmp_path, _config(openai_server), batch=False, finish_direct=True)
    assert openai_server.log() == []
    assert list(tmp_path.iterdir()) == []


def test_a_direct_run_does_not_pay_again(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """While batches are outstanding, a run without batches is refused."""
    _run(tmp_path, _config(openai_server))
    with pytest.raises(RunError, match="finish_direct"):
        _run(tmp_path, _config(openai_server), batch=False)
    assert openai_server.log() == []


def test_a_direct_run_pays_for_no_reply_again(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """If a run stops because all votes fail, the replies that it did not read are still protected."""
    rules = [{"contains": f"number {n}\\n", "fate": "refused", "times": 2} for n in range(10)]
    openai_server.batches(polls=1, rules=rules)
    config = _config(openai_server)
    _run(tmp_path, config, dataset=_dataset(30))
    assert _run(tmp_path, config, dataset=_dataset(30)).stopped == "same_error"
    with pytest.raises(RunError, match="finish_direct"):
        _run(tmp_path, config, dataset=_dataset(30), batch=False)
    done, _ = _until_done(tmp_path, config, dataset=_dataset(30))
    assert _judged(done) == 60
    assert set(openai_server.batches()["paid"].values()) == {1}


def test_changed_settings_are_refused_while_replies_are_outstanding(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """Another model would pay again; once a run with it is complete, the old batch holds up nothing."""
    openai_server.batches(polls=99)
    _run(tmp_path, _config(openai_server))
    other = _config(openai_server, model="n")
    with pytest.raises(RunMismatchError):
        _run(tmp_path, other)
    assert len(openai_server.batches()["batches"]) == 1
    _run(tmp_path, other, on_mismatch="rejudge")
    openai_server.batches(polls=1)
    done = _run(tmp_path, other)
    assert done.stopped is None
    assert "batch batch_0 of m" in done.notices[-1]
    assert _run(tmp_path, other, batch=False).stopped is None


def test_a_rejected_batch_protects_nothing(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """Nothing was paid for, so the model can be corrected under the same name."""
    openai_server.batches(polls=1, fail="no such model")
    _run(tmp_path, _config(openai_server))
    with pytest.raises(ProviderError, match="no such model"):
        _run(tmp_path, _config(openai_server))
    openai_server.batches(fail="")
    assert _until_done(tmp_path, _config(openai_server, model="n"))[0].stopped is None


def test_fail_fast_sends_a_failed_request_again(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """The next command after the error continues, as in a direct run."""
    openai_server.batches(polls=1, rules=[{"contains": "number 0", "fate": "refused"}])
    config = _config(openai_server)
    _run(tmp_path, config, fail_fast=True)
    with pytest.raises(ItemFailedError):
        _run(tmp_path, config, fail_fast=True)
    done, _ = _until_done(tmp_path, config, fail_fast=True)
    assert _judged(done) == 8


@pytest.mark.parametrize("content", [None, b"", b"{\n", b"[1]\n", b"\0" * 99])
def test_lost_replies_are_an_error(
    content: bytes | None, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """A file with replies that was damaged or not copied is named, and nothing is submitted again."""
    openai_server.batches(polls=1, rules=[{"contains": "number 0", "fate": "expired"}])
    config = _config(openai_server)
    _run(tmp_path, config)
    _run(tmp_path, config)
    file = tmp_path / "run" / "batches" / "0001-replies.jsonl"
    kept = file.read_bytes()
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(RunFormatError, match="0001-replies"):
        _run(tmp_path, config)
    file.write_bytes(kept)
    assert _run(tmp_path, config).stopped is None


def test_a_folder_that_cannot_be_written_stops_the_run(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """It is no failure of the judge, so no verdict is lost, and the next command collects."""
    openai_server.batches(polls=1)
    config = _config(openai_server)
    _run(tmp_path, config)
    folder = tmp_path / "run" / "batches"
    shutil.rmtree(folder)
    with pytest.raises(RunWriteError, match="batches"):
        _run(tmp_path, config)
    folder.mkdir()
    done = _run(tmp_path, config)
    assert (done.stopped, _judged(done)) == (None, 8)


def test_a_dummy_key_is_left_in_replies(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """Keys of local servers may be words; removing them from replies would make these unreadable."""
    openai_server.batches(polls=1)
    done, _ = _until_done(tmp_path, _config(openai_server, api_key="verdict"))
    assert _judged(done) == 8


def test_early_stopping_runs_in_rounds(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """Each batch contains the votes of one round; votes that no longer matter are never sent."""
    openai_server.batches(polls=1)
    judges = [_config(openai_server, model=f"m{n}") for n in range(3)]
    grader = CriterionGrader(judges=judges, stop_when_decided=True)
    done, calls = _until_done(tmp_path / "a", judges[0], grader=grader)
    direct = _run(tmp_path / "b", judges[0], grader=grader, batch=False)
    assert calls > 2
    assert [v[:-1] for v in _votes(done)] == [v[:-1] for v in _votes(direct)]


def test_limits_are_those_of_the_whole_run(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """Requests are reserved before they are submitted, all calls count, and replies are still read."""
    openai_server.batches(polls=1)
    first = _run(tmp_path, _config(openai_server), max_calls=4)
    assert first.stopped == "max_calls"
    again = _run(tmp_path, _config(openai_server), max_calls=4)
    assert again.stopped == "max_calls"
    assert _judged(again) == 4
    assert [size for _, _, size in openai_server.batches()["batches"]] == [4]
    done, _ = _until_done(tmp_path, _config(openai_server), max_calls=8)
    assert (done.stopped, _judged(done)) == (None, 8)


def test_max_cost_holds_at_batch_prices(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """No more is submitted than the estimated cost allows."""
    stopped = _run(tmp_path, _config(openai_server), max_cost=0.02)
    assert stopped.stopped == "max_cost"
    submitted = sum(size for _, _, size in openai_server.batches()["batches"])
    assert 0 < submitted < 8


def test_a_rejected_batch_stops_the_run(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """The provider's reason is shown, and nothing is submitted until the next call."""
    openai_server.batches(fail="the model is not available in batches", polls=1)
    _run(tmp_path, _config(openai_server))
    with pytest.raises(ProviderError, match="the model is not available in batches"):
        _run(tmp_path, _config(openai_server))
    assert len(openai_server.batches()["batches"]) == 1
    openai_server.batches(fail="")
    done, _ = _until_done(tmp_path, _config(openai_server))
    assert _judged(done) == 8


def test_a_server_without_batches_is_refused(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """An address without the routes is an error that names them, and no request was answered."""
    model = LLMConfig(model="m", api_base=f"{openai_server.url}/other/v1", max_retries=0)
    with pytest.raises(ProviderError, match=r"401|no batch endpoint"):
        _run(tmp_path, model)
    assert openai_server.batches()["paid"] == {}


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (LLMConfig(model="m", api_base="http://x/v1", transport="openai_decisions"), "decision models"),
        (LLMConfig(model="gemini/gemini-3.8-flash"), ".gemini. has no known batch endpoint"),
        (
            LLMConfig(model="m", api_base="http://x/v1", extra_params={"api_token": "s"}),
            "the secret api_token",
        ),
    ],
)
def test_models_without_batches_are_refused(model: LLMConfig, reason: str, tmp_path: Path) -> None:
    """A model that cannot be asked in batches is refused before anything is created."""
    with pytest.raises(ArgumentError, match=reason):
        _run(tmp_path, model)
    assert not (tmp_path / "run").exists()


def test_functions_are_called_directly(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """A judge that is a function votes at once, next to a model in batches."""
    openai_server.batches(polls=1)
    asked: list[str] = []

    def judge(request: Any) -> str:
        asked.append(request.item_id)
        return "MET"

    model = _config(openai_server)
    grader = CriterionGrader(judges=[judge, model])
    _run(tmp_path, model, grader=grader)
    assert len(asked) == 8
    done = _run(tmp_path, model, grader=grader)
    assert (len(asked), done.stopped) == (8, None)


def test_no_key_is_in_any_file(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """The key is sent with every call to the provider and stored nowhere."""
    openai_server.batches(polls=1)
    for kind in ("openai", "anthropic"):
        _until_done(tmp_path / kind, _config(openai_server, kind))
    assert all("sk-secret-of-the-test" in json.dumps(one) for one in openai_server.batches()["headers"])
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"sk-secret" not in file.read_bytes()


def test_a_line_of_the_record_has_every_key_once(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """Of a repeated key, other programs would read only one value."""
    _run(tmp_path, _config(openai_server))
    for line in (tmp_path / "run" / "batches.jsonl").read_text(encoding="utf-8").splitlines():
        names = [name for name, _ in json.loads(line, object_pairs_hook=list)]
        assert len(set(names)) == len(names) and {"time", "at", "crc"} <= set(names)


def test_a_damaged_record_is_refused(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """A damaged line could hide a submitted batch, so nothing is sent."""
    _run(tmp_path, _config(openai_server))
    record = tmp_path / "run" / "batches.jsonl"
    record.write_bytes(record.read_bytes().replace(b"submitting", b"submottung"))
    with pytest.raises(RunError, match=r"batches.jsonl, line 2 is damaged"):
        _run(tmp_path, _config(openai_server))


class _Tiny:
    most_requests, most_bytes = 3, 100
    head, separator, tail = b"[", b",", b"]"

    def line(self, custom_id: str, body: bytes) -> bytes:
        return body


@given(st.lists(st.integers(1, 97), max_size=30))
def test_batches_keep_to_the_limits(sizes: list[int]) -> None:
    """All requests are in a batch, in order, and no batch exceeds a limit or could hold the next request."""
    queued = [_Queued(("u", "m"), 0, n, size, str(n), 0.0) for n, size in enumerate(sizes)]
    parts = [list(part) for part in split_requests(queued, _Tiny())]  # type: ignore[arg-type]
    assert [one for part in parts for one in part] == queued
    for number, part in enumerate(parts):
        held = sum(one.size + 1 for one in part)
        assert len(part) <= 3
        assert held + 2 <= 100
        if number + 1 < len(parts):
            assert len(part) == 3 or held + parts[number + 1][0].size + 1 > 98


def test_a_request_beyond_the_limit_is_refused() -> None:
    """One request that no batch can hold is an error."""
    with pytest.raises(ArgumentError, match="200 bytes"):
        list(split_requests([_Queued(("u", "m"), 0, 0, 200, "k", 0.0)], _Tiny()))  # type: ignore[arg-type]


def test_an_estimate_shows_both_prices(openai_server: OpenAIServer) -> None:
    """Batches cost half, the wait is stated, and nothing is sent; without `batch`, there is one price."""
    grader = CriterionGrader(judges=[_config(openai_server)])
    found = estimate(_dataset(), grader, batch=True)
    assert found.batch_cost == pytest.approx((found.cost or 0.0) / 2)
    assert f"In batches: {found.batch_cost:.3f} US dollars" in found.summary()
    assert "24 hours" in found.summary()
    assert estimate(_dataset(), grader).to_dict()["batch_cost"] is None
    assert "In batches" not in estimate(_dataset(), grader).summary()
    assert openai_server.log() == []
    with pytest.raises(ArgumentError, match="gemini"):
        estimate(_dataset(), CriterionGrader(judges=["gemini/gemini-3.8-flash"]), batch=True)
