"""Checks of tool calls and final states in conversations."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st

from autorubric import Criterion, CriterionGrader, Rubric, RubricDataset, evaluate_sync
from autorubric.criteria import Submission, TranscriptCheck
from autorubric.errors import RubricError
from autorubric.judges import JudgeRequest
from autorubric.scoring import JudgeVote


def _call(name: str, arguments: Any = None, call_id: str | None = None) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _agent(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def _result(content: Any, call_id: str | None = None, name: str | None = None) -> dict[str, Any]:
    found = {"role": "tool", "content": content, "tool_call_id": call_id, "name": name}
    return {key: value for key, value in found.items() if value is not None}


USER = {"role": "user", "content": "Book a table."}
BOOKING = [
    USER,
    _agent(_call("search", {"city": "Oslo", "seats": 2}, "a"), _call("search", {"city": "Bergen"}, "b")),
    _result('["Roma"]', "a"),
    _result("[]", "b"),
    _agent(_call("book", '{"place": {"name": "Roma"}, "seats": 2}', "c")),
    _result('{"status": "booked", "number": 88}', "c"),
    {"role": "assistant", "content": "Booked at Roma."},
]


def _vote(check: Any, submission: Any, criterion: Any = None) -> JudgeVote:
    """The vote of a check; the panel's judge must not be asked."""

    def judge(request: JudgeRequest) -> str:
        raise AssertionError(f"{request.criterion.name} was sent to a judge")

    one = criterion or Criterion(name="checked", requirement="As the check says.", check=check)
    report = Rubric([one]).grade_sync(submission, CriterionGrader(judges=[judge]))
    (vote,) = report.report[0].votes
    return vote


def _answer(check: Any, submission: Any) -> bool | None:
    """Whether the check passed; None for an abstention."""
    vote = _vote(check, submission)
    assert vote.error is None and vote.reason, vote
    return {"MET": True, "UNMET": False, "CANNOT_ASSESS": None}[str(vote.verdict or "CANNOT_ASSESS")]


@pytest.mark.parametrize(
    ("check", "passes"),
    [
        ({"tool_called": "search"}, True),
        ({"tool_called": "pay"}, False),
        ({"tool_called": "Search"}, False),
        ({"tool_called": "search", "at_least": 2}, True),
        ({"tool_called": "search", "at_least": 3}, False),
        ({"tool_called": "search", "at_most": 1}, False),
        ({"tool_called": "pay", "at_most": 1}, True),
        ({"tool_called": "pay", "at_least": 1, "at_most": 1}, False),
        ({"tool_called": "search", "at_least": 2, "at_most": 2}, True),
        ({"tool_called": "pay", "at_least": 0}, True),
        ({"tool_called": "search", "arguments": {"city": "Oslo"}, "at_most": 1, "at_least": 1}, True),
        ({"tool_called": "search", "arguments": {"seats": 2.0}}, True),
        ({"tool_called": "search", "arguments": {"seats": "2"}}, False),
        ({"tool_called": "search", "arguments": {"city": "Oslo"}, "exact": True}, False),
        ({"tool_called": "search", "arguments": {"city": "Bergen"}, "exact": True}, True),
        ({"tool_called": "book", "arguments": {"place": {"name": {"$pattern": "^R.m"}}}}, True),
        ({"tool_called": "book", "arguments": {"seats": {"$pattern": "2"}}}, False),
        ({"tool_called": "search", "exact": True}, False),
        ({"forbidden_tools": ["pay", "cancel"]}, True),
        ({"forbidden_tools": ["pay", "book"]}, False),
        ({"forbidden_tools": ["book"], "arguments": {"seats": 4}}, True),
        ({"tool_order": ["search", "book"]}, True),
        ({"tool_order": ["search", "search", "book"]}, True),
        ({"tool_order": ["book", "search"]}, False),
        ({"tool_order": ["search", "search", "search"]}, False),
        ({"tool_order": ["search", "book"], "contiguous": True}, True),
        ({"tool_order": ["book"], "contiguous": True}, True),
        ({"final_state": {"status": "booked"}}, True),
        ({"final_state": {"status": "booked"}, "exact": True}, False),
        ({"final_state": {"status": "booked", "number": 88.0}, "exact": True}, True),
        ({"final_state": {"number": 89}}, False),
        ({"final_state": {"status": "booked"}, "tool": "book"}, True),
        ({"final_state": [], "tool": "search"}, True),
        ({"final_state": ["Roma"], "tool": "search"}, False),
        ({"final_state": {}, "tool": "pay"}, False),
    ],
)
def test_checks_of_a_conversation(check: dict[str, Any], passes: bool) -> None:
    """Called, count, arguments, forbidden, order and final state, on one conversation."""
    assert _answer(check, BOOKING) is passes


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ({"tool_called": "book"}, "calls of book: 1, expected at least 1; turn 5 call 1 ('book')"),
        (
            {"tool_called": "search", "arguments": {"city": "Oslo"}},
            "calls of search: 1, expected at least 1; turn 2 call 1 ('search'); with other arguments turn 2 "
            "call 2 ('search'): arguments/city is 'Bergen', expected 'Oslo'",
        ),
        ({"forbidden_tools": ["pay", "book"]}, "calls of pay or book: 1, expected 0; turn 5 call 1 ('book')"),
        (
            {"tool_order": ["search", "book"], "contiguous": True},
            "called in order: turn 2 call 2 ('search'), turn 5 call 1 ('book')",
        ),
        (
            {"tool_order": ["book", "search"]},
            "not called in order: book, search; calls: turn 2 call 1 ('search'), turn 2 call 2 ('search'), "
            "turn 5 call 1 ('book')",
        ),
        ({"final_state": {"number": True}}, "turn 6, result of a tool: /number is 88, expected True"),
        ({"final_state": {"total": 3}}, "turn 6, result of a tool: /total is missing"),
        (
            {"final_state": {"status": "booked"}, "exact": True},
            "turn 6, result of a tool: /number is not expected",
        ),
        (
            {"final_state": ["Oslo", 1], "tool": "search"},
            "turn 4, result of search: the value is [], expected",
        ),
    ],
)
def test_reasons_name_turn_and_call(check: dict[str, Any], reason: str) -> None:
    """The reason of a vote is its evidence."""
    assert _vote(check, BOOKING).reason.startswith(reason)


def test_long_evidence_is_shortened() -> None:
    """Of many calls, the first five are named, and long names and values are cut."""
    odd = _vote({"tool_order": ["a", "b"]}, [USER, *[_agent(_call("x\n" * 9000))] * 9]).reason
    assert len(odd) < 2000 and "\n" not in odd
    turns = [USER, *[_agent(_call("search", {"q": "x" * 9000})) for _ in range(300)]]
    reason = _vote({"tool_called": "search", "arguments": {"q": 1}}, turns).reason
    assert "turn 6 call 1" in reason and "turn 7" not in reason and "and 295 more" in reason
    assert len(reason) < 2000


@pytest.mark.parametrize("submission", ["search() -> Roma", {"output": "x", "thinking": "y"}])
def test_a_text_fails_the_vote(submission: Any) -> None:
    """A transcript without structure is not searched for tool calls, and the vote is never UNMET."""
    checks: list[dict[str, Any]] = [
        {"forbidden_tools": ["pay"]},
        {"tool_called": "pay"},
        {"final_state": None},
    ]
    for check in checks:
        vote = _vote(check, submission)
        assert (vote.status, vote.verdict) == ("failed", None)
        assert "needs a conversation: a list of {'role', 'content', 'tool_calls'}" in str(vote.error)


def test_no_text_fails_the_vote() -> None:
    """An item without a submission has no conversation."""
    assert _vote({"tool_called": "pay"}, None).status == "failed"


@pytest.mark.parametrize(
    "answers",
    [
        {"type": "numerical_rating", "min_value": 0, "max_value": 100},
        {"options": ["no", "yes"], "scale_type": "nominal"},
    ],
)
def test_other_kinds_of_answers_are_refused(answers: dict[str, Any]) -> None:
    """A check passes or not; this is neither a number of points nor an option."""
    given_one = {"name": "c", "requirement": "r", "check": {"tool_called": "book"}}
    with pytest.raises(RubricError, match="met or not; remove the check, or the options, points or levels"):
        Rubric.from_dict([given_one | answers])


def test_a_check_with_a_reply_without_tools_is_not_met() -> None:
    """A conversation without any call is a conversation."""
    turns = [USER, {"role": "assistant", "content": "search() -> Roma"}]
    assert _answer({"tool_called": "search"}, turns) is False
    assert _answer({"forbidden_tools": ["search"]}, turns) is True
    assert _answer({"final_state": {"a": 1}}, turns) is False


@pytest.mark.parametrize(
    "arguments", ["nope", "", '{"a": 1', '{"a": 1, "a": 2}', "[1]", "null", '"a"', "{'a': 1}"]
)
def test_arguments_that_are_not_an_object_are_reported(arguments: str) -> None:
    """The tool was called, but with no argument; the reason says what the arguments are."""
    turns = [USER, _agent(_call("f", arguments))]
    assert _answer({"tool_called": "f"}, turns) is True
    checks: list[dict[str, Any]] = [{"arguments": {"a": 1}}, {"arguments": {}}, {"exact": True}]
    for check in checks:
        vote = _vote({"tool_called": "f", **check}, turns)
        assert str(vote.verdict) == "UNMET"
        assert "arguments that are not a JSON object: the text is" in vote.reason
    assert _answer({"tool_called": "f", "arguments": {"a": 1}, "at_most": 0}, turns) is True


@pytest.mark.parametrize("arguments", [None, "{}", {}])
def test_calls_without_arguments(arguments: Any) -> None:
    """No arguments are an empty object."""
    turns = [USER, _agent(_call("f", arguments))]
    assert _answer({"tool_called": "f", "arguments": {}, "exact": True}, turns) is True
    assert _answer({"tool_called": "f", "arguments": {"a": None}}, turns) is False


@pytest.mark.parametrize(
    ("expected", "given_one", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (True, 1, False),
        (True, True, True),
        (1, "1", False),
        (None, None, True),
        (None, False, False),
        ("é", "e\u0301", False),
        ("日本", "日本", True),
        ("\ud800", "\ud800", True),
        ([1, {"a": 2}], [1.0, {"a": 2, "b": 3}], True),
        ([1], [1, 2], False),
        ([], {}, False),
        ([[True]], [[1]], False),
        (10**20, 1e20, True),
        (2**53 + 1, float(2**53), False),
        ({"$pattern": "l+o$"}, "hello", True),
        ({"$pattern": "^l"}, "hello", False),
        ({"$pattern": "5"}, 5, False),
        ({"$pattern": "."}, None, False),
        ({"$pattern": "^日.$"}, "日本", True),
        ({"$pattern": "a.b"}, "a\ud800b", True),
        ({"$pattern": "a", "b": 1}, {"$pattern": "a", "b": 1}, True),
    ],
)
def test_equality_of_values(expected: Any, given_one: Any, equal: bool) -> None:
    """As in JSON Schema: numbers by value, booleans are not numbers, texts by code points."""
    turns = [USER, _agent(_call("f", json.dumps({"x": {"deep": [given_one]}})))]
    assert _answer({"tool_called": "f", "arguments": {"x": {"deep": [expected]}}}, turns) is equal
    turns.append(_result(json.dumps(given_one)))
    assert _answer({"final_state": expected}, turns) is equal


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, 1.0, 0.5]), st.sampled_from("ab")
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(JSON, JSON)
def test_exact_equality_is_that_of_json_schema(expected: Any, value: Any) -> None:
    """`const` of JSON Schema decides whether an exact state is equal; every value equals itself."""
    check = TranscriptCheck(final_state=expected, exact=True)
    conversation = _turns([USER, _result(json.dumps(value))])
    same = jsonschema.Draft202012Validator({"const": expected}).is_valid(value)
    assert check(conversation)[0] is same
    assert TranscriptCheck(final_state=value, exact=True)(conversation)[0] is True


@given(st.dictionaries(st.sampled_from("xyz"), JSON, max_size=3), st.sampled_from("xyz"))
def test_keys_that_are_not_expected_do_not_matter(value: dict[str, Any], key: str) -> None:
    """A part of a mapping is enough, unless the check is exact."""
    conversation = _turns([USER, _result(json.dumps(value))])
    part = {name: one for name, one in value.items() if name != key}
    assert TranscriptCheck(final_state=part)(conversation)[0] is True
    assert TranscriptCheck(final_state=part, exact=True)(conversation)[0] is (part == value)


def _turns(conversation: list[Any]) -> Any:
    return Submission.parse(conversation).turns


NAMES = st.lists(st.sampled_from("abc"), max_size=7)


@given(NAMES, st.lists(st.sampled_from("abc"), min_size=1, max_size=3), st.integers(1, 3))
def test_order_of_calls(calls: list[str], order: list[str], per_turn: int) -> None:
    """Adjacent calls are a slice, others a subsequence, however the calls are spread over turns."""
    groups = [calls[at : at + per_turn] for at in range(0, len(calls), per_turn)]
    conversation = _turns([USER, *[_agent(*map(_call, group)) for group in groups]])
    rest = iter(calls)
    subsequence = all(name in rest for name in order)
    adjacent = any(calls[at : at + len(order)] == order for at in range(len(calls)))
    assert TranscriptCheck(tool_order=tuple(order))(conversation)[0] is subsequence
    assert TranscriptCheck(tool_order=tuple(order), contiguous=True)(conversation)[0] is adjacent


@given(NAMES, st.integers(0, 4), st.integers(0, 4))
def test_number_of_calls(calls: list[str], low: int, high: int) -> None:
    """The limits include their ends."""
    low, high = min(low, high), max(low, high)
    conversation = _turns([USER, *[_agent(_call(name)) for name in calls]])
    check = TranscriptCheck(tool_called="a", at_least=low, at_most=high)
    assert check(conversation)[0] is (low <= calls.count("a") <= high)
    assert TranscriptCheck(forbidden_tools=("a", "b"))(conversation)[0] is not bool({"a", "b"} & {*calls})


SET, GET = _agent(_call("set", {}, "a")), _agent(_call("get", {}, "a"))
BOTH = _agent(_call("set", {}, "a"), _call("get", {}, "b"))
ONE = {"final_state": {"x": 1}}
X = '{"x": 1}'


@pytest.mark.parametrize(
    ("turns", "check", "passes"),
    [
        # The result of the last call is missing, so the state is unknown.
        ([SET], ONE, None),
        ([SET, _result(X, "a"), _agent(_call("set"))], ONE, None),
        ([SET, _result(X, "a"), GET], {**ONE, "tool": "set"}, True),
        # Results of parallel calls arrive in another order.
        ([BOTH, _result("2", "b"), _result("1", "a")], {"final_state": 1, "tool": "set"}, True),
        ([BOTH, _result("2", "b"), _result("1", "a")], {"final_state": 2, "tool": "get"}, True),
        # An id that is used again belongs to the last call before the result.
        ([SET, _result("1", "a"), GET, _result("2", "a")], {"final_state": 1, "tool": "set"}, True),
        ([SET, _result("1", "a"), GET, _result("2", "a")], {"final_state": 2, "tool": "get"}, True),
        # The name of a result counts, whatever its id; without both, it belongs to the call without an id.
        ([_result(X, "unknown", "state")], {**ONE, "tool": "state"}, True),
        ([_agent(_call("get")), _result("1")], {"final_state": 1, "tool": "get"}, True),
        ([_result("1", "unknown")], {"final_state": 1, "tool": "get"}, False),
        # A state that is added as the result of a tool that nobody called.
        ([SET, _result("ok", "a"), _result(X, None, "state")], {**ONE, "tool": "state"}, True),
        # Results that are not JSON are texts.
        ([_result("ok", None, "set")], {"final_state": "ok"}, True),
        ([_result("moved 3 files")], {"final_state": {"$pattern": r"moved \d+ files"}}, True),
        ([_result('"ok"')], {"final_state": "ok"}, True),
        ([_result("{'x': 1}")], ONE, False),
        ([{"role": "tool", "content": None}], {"final_state": ""}, True),
        ([_result("null")], {"final_state": None}, True),
        ([_result("NaN")], {"final_state": "NaN"}, True),
        ([_result([{"type": "text", "text": '{"x"'}, {"type": "text", "text": ": 1}"}])], ONE, True),
        # Calls of unknown roles count; their contents are not results.
        ([{"role": "worker-2", "content": "", "tool_calls": [_call("set")]}], {"tool_called": "set"}, True),
        ([{"role": "environment", "content": "1"}], {"final_state": 1}, False),
        # Names are compared as they are.
        ([_agent(_call("søk", {"by": "Å"}))], {"tool_called": "søk", "arguments": {"by": "Å"}}, True),
        ([_agent(_call("fs.write"))], {"forbidden_tools": ["fs"]}, True),
    ],
)
def test_odd_conversations(turns: list[Any], check: dict[str, Any], passes: bool | None) -> None:
    """Missing results, parallel calls, ids that repeat or are unknown, roles that nobody knows."""
    assert _answer(check, [USER, *turns]) is passes


def test_a_pattern_takes_time_linear_in_the_text() -> None:
    """A pattern that takes a backtracking engine 2^50000 steps answers, and so does one on a deep value."""
    turns = [USER, _agent(_call("f", {"q": "a" * 50_000 + "b"}))]
    assert _answer({"tool_called": "f", "arguments": {"q": {"$pattern": "^(a+)+$"}}}, turns) is False
    deep = [USER, _agent(_call("f", "[" * 100_000))]
    assert _answer({"tool_called": "f", "arguments": {"q": 1}}, deep) is False


YAML = """\
criteria:
  - name: searched
    requirement: The agent searches for the parcel.
    check:
      tool_called: search
      at_least: 1
      arguments: {query: {$pattern: "parcel \\\\d+"}}
  - name: deleted
    requirement: The agent deletes something.
    weight: -5
    check: {tool_called: delete}
  - name: state
    requirement: The order is cancelled.
    check: {final_state: {status: cancelled, refund: 12.5}, tool: get_order}
"""


def test_a_rubric_file_states_checks(tmp_path: Path) -> None:
    """Files in every format state checks as data, and are read back as they were."""
    path = tmp_path / "rubric.yaml"
    path.write_text(YAML, encoding="utf-8")
    rubric = Rubric.from_file(path)
    for name in ("copy.yaml", "copy.json", "copy.toml"):
        rubric.to_file(tmp_path / name)
        assert Rubric.from_file(tmp_path / name) == rubric
    assert Rubric.from_dict(json.loads(json.dumps(rubric.to_dict()))) == rubric
    assert pickle.loads(pickle.dumps(rubric)) == rubric  # noqa: S301 - our own bytes
    assert len({hash(criterion) for criterion in rubric}) == 3
    jsonschema.validate(rubric.to_dict(), Rubric.json_schema())
    state = Criterion(name="s", requirement="r", check={"final_state": None})
    assert Rubric.from_dict(Rubric([state]).to_dict()) == Rubric([state])
    turns = [USER, _agent(_call("search", {"query": "parcel 12"})), _result("none")]
    report = rubric.grade_sync(turns, CriterionGrader(judges=[lambda request: "MET"]))
    assert [str(one.final_verdict) for one in report.report] == ["MET", "UNMET", "UNMET"]
    assert {vote.judge_id for one in report.report for vote in one.votes} == {"check"}


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({}, "expected one of tool_called, forbidden_tools, tool_order, final_state; got none"),
        ({"at_least": 1}, "expected one of tool_called, .*; got none"),
        ({"tool_called": "a", "tool_order": ["b"]}, "expected one of .*; got tool_called, tool_order"),
        ({"tool_caled": "a"}, "unknown key 'tool_caled'; did you mean 'tool_called'"),
        ({"tool_order": ["a"], "at_least": 1}, "at_least is not an option of tool_order: contiguous"),
        ({"final_state": 1, "arguments": {}}, "arguments is not an option of final_state: exact, tool"),
        ({"tool_called": "a", "at_least": 3, "at_most": 1}, "at_least is 3, above at_most, which is 1"),
        ({"tool_called": "a", "at_most": -1}, "at_most"),
        ({"tool_called": "a", "at_most": 1.5}, "at_most"),
        ({"tool_called": "a", "at_least": "1"}, "at_least: the value must be a number; got '1'"),
        ({"tool_called": "a", "at_least": True}, "at_least: the value must be a number; got True"),
        ({"tool_called": ""}, "tool_called"),
        ({"tool_called": None}, "tool_called"),
        ({"tool_called": ["a"]}, "tool_called: expected a string"),
        ({"tool_order": []}, "tool_order"),
        ({"tool_order": "ab"}, "tool_order: expected a list"),
        ({"forbidden_tools": ["a", ""]}, "forbidden_tools"),
        ({"tool_called": "a", "arguments": ["x"]}, "arguments: expected a mapping"),
        ({"final_state": float("nan")}, "final_state"),
        ({"tool_called": "a", "arguments": {"x": {"$pattern": "("}}}, r"invalid \$pattern: .*unclosed group"),
        ({"tool_called": "a", "arguments": {"x": {"$pattern": 3}}}, r"invalid \$pattern: .*must be str"),
        ({"tool_called": "a", "arguments": {"x": {"$pattern": ["a"]}}}, r"invalid \$pattern: unhashable"),
        ({"final_state": [1, {"$pattern": "ok"}, {"$pattern": "(?=a)"}]}, "look-ahead .* is not supported"),
        ({"final_state": {"a": {"$pattern": r"(a)\1"}}}, "backreferences are not supported"),
        ({"final_state": {"$pattern": r"(\p{L}{1000}){1000}"}}, "exceeds size limit"),
    ],
)
def test_invalid_checks(check: dict[str, Any], message: str) -> None:
    """Errors of files name the criterion, the value and what is allowed."""
    with pytest.raises(RubricError, match=message) as caught:
        Rubric.from_dict([{"name": "c", "requirement": "r", "check": check}])
    assert "[0].check" in str(caught.value)


def test_errors_of_files_have_lines(tmp_path: Path) -> None:
    """An error in a check is reported with the line of the check."""
    path = tmp_path / "rubric.yaml"
    path.write_text(YAML.replace("at_least: 1", "at_least: 1\n      at_mots: 2"), encoding="utf-8")
    with pytest.raises(RubricError, match="unknown key 'at_mots'; did you mean 'at_most'") as caught:
        Rubric.from_file(path)
    assert [fault.line for fault in caught.value.faults] == [4]


def _evaluate(folder: Path, check: dict[str, Any]) -> Any:
    criteria = [
        {"name": "checked", "requirement": "r", "check": check},
        {"name": "judged", "requirement": "Polite."},
    ]
    items = [{"submission": BOOKING, "id": "booking"}, {"submission": "text", "id": "text"}]
    dataset = RubricDataset.from_dict({"rubric": criteria, "items": items})
    asked: list[str] = []

    def judge(request: JudgeRequest) -> str:
        asked.append(str(request.criterion.name))
        return "MET"

    run = evaluate_sync(
        dataset,
        CriterionGrader(judges=[judge]),
        experiments_dir=folder,
        experiment_name="run",
        on_mismatch="rejudge",
    )
    return run, asked


def test_a_run_stores_votes_of_checks(tmp_path: Path) -> None:
    """Votes of checks are stored with their reasons; a changed check is run again, without asking a judge."""
    run, asked = _evaluate(tmp_path, {"tool_called": "book"})
    assert asked == ["judged"] * 2
    booking, text = (one.report.per_criterion["checked"] for one in run.item_results)
    assert (str(booking.final_verdict), booking.reason) == (
        "MET",
        "calls of book: 1, expected at least 1; turn 5 call 1 ('book')",
    )
    assert text.status == "failed" and text.final_verdict is None
    same, asked = _evaluate(tmp_path, {"tool_called": "book"})
    assert asked == []
    assert same.item_results[0].report.to_dict() == run.item_results[0].report.to_dict()
    changed, asked = _evaluate(tmp_path, {"tool_called": "book", "at_least": 2})
    assert asked == []
    assert str(changed.item_results[0].report.per_criterion["checked"].final_verdict) == "UNMET"
