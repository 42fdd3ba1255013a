"""The pytest plugin: outcomes, messages, repeats, leave to ask models, JUnit, xdist; and plain unittest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.entry_points import write_entry_points
from tests.servers.fixtures import OpenAIServer

pytest_plugins = ("pytester",)

# A run inside this one drops the modules that it loads itself, and numpy cannot be loaded twice.
for _name in ("integrations.assertions", "integrations.pytest_runs", "metrics"):
    import_module(f"autorubric.{_name}")

_HEAD = """
import asyncio, itertools, unittest
import pytest
from autorubric import CriterionGrader, JudgeReply, JudgeSpec, LLMConfig, Rubric
from autorubric.testing import assert_rubric, assert_rubric_async
from autorubric.errors import ArgumentError, NotJudgedError

RUBRIC = [
    {"name": "apology", "requirement": "The reply apologises for the late parcel.", "weight": 6},
    {"name": "refund", "requirement": "The reply offers a refund.", "weight": 10},
]
GOOD = "We apologise that the parcel is late, and offer you a refund."

def by(function, **options):
    return CriterionGrader(judges=[function], **options)
"""

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pytest on a test file in this process, with this plugin and no other."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(body: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_replies=_HEAD + body)
        plugin = ("-p", "autorubric.integrations.pytest_plugin", "-p", "no:cacheprovider", "--strict-markers")
        return pytester.runpytest_inprocess(*plugin, "--junit-xml=junit.xml", *options)

    return run


def _cases(pytester: pytest.Pytester) -> dict[str, ElementTree.Element]:
    """The cases of the JUnit file, by name."""
    tree = ElementTree.parse(pytester.path / "junit.xml")
    return {case.attrib["name"]: case for case in tree.iter("testcase")}


def _figures(case: ElementTree.Element) -> Mapping[str, str]:
    return {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}


def test_a_low_score_fails_with_criteria_votes_and_reasons(run: Run, pytester: pytest.Pytester) -> None:
    """The message has scores, each criterion, each judge's vote and reason; nothing steers a terminal."""
    ended = run(
        """
def strict(request):
    return {"verdict": "UNMET", "reason": f"no trace \\x1b[31mof it\\x07 in {request.criterion.name}"}

def kind(request):
    return {"verdict": "MET" if request.criterion.name == "apology" else "UNMET", "reason": "so it seems"}

def test_reply():
    grader = CriterionGrader(judges=[strict, kind, JudgeSpec(kind, "kinder")])
    assert_rubric("Sorry \\x1b]0;title\\x07 it is.", RUBRIC, 0.5, grader=grader)
"""
    )
    ended.assert_outcomes(failed=1)
    message = _cases(pytester)["test_reply"].find("failure")
    assert message is not None and message.text is not None
    for told in (
        "score 0.375 is below the minimum of 0.500; judged by strict, kind, kinder",
        "UNMET  refund (weight 10): The reply offers a refund.",
        "MET  apology (weight 6): The reply apologises for the late parcel.",
        r"strict: UNMET – no trace \x1b[31mof it\x07 in refund",
        "kind: MET – so it seems",
        r"text: Sorry \x1b]0;title\x07 it is.",
    ):
        assert told in message.text
    output = ended.stdout.str()
    assert "\x1b" not in output and "\x07" not in output
    # The line that failed is the test's own.
    assert "test_replies.py:" in output and "_assertions.py" not in output
    assert output.index("refund (weight") < output.index("apology (weight")
    assert _figures(_cases(pytester)["test_reply"]) == {
        "rubric_score": "0.375",
        "rubric_pass_rate": "0.0",
        "rubric_judge": "strict, kind, kinder",
    }


def test_an_abstention_is_told_as_one(run: Run, pytester: pytest.Pytester) -> None:
    """Where the panel abstained the message says so, before what its judges said."""
    run(
        """
def unsure(request):
    return "CANNOT_ASSESS" if request.criterion.name == "refund" else "UNMET"

def test_reply():
    assert_rubric("Sorry.", RUBRIC, 0.5, grader=by(unsure))
"""
    )
    (case,) = _cases(pytester).values()
    message = "".join(case.itertext())
    assert "abstained  refund (weight 10)" in message
    assert "None" not in message


def test_a_long_message_is_cut(run: Run, pytester: pytest.Pytester) -> None:
    """However many criteria there are and however much judges say, the message has a bounded length."""
    ended = run(
        """
def talker(request):
    return {"verdict": "UNMET", "reason": "because " * 5000}

def test_reply():
    many = [{"name": f"c{i}" * 50, "requirement": "A claim. " * 300} for i in range(300)]
    assert_rubric("word " * 100_000, many, 0.5, grader=by(talker))
"""
    )
    ended.assert_outcomes(failed=1)
    failure = _cases(pytester)["test_reply"].find("failure")
    assert failure is not None and failure.text is not None
    assert "more criteria with no greater effect on the score" in failure.text
    assert len(failure.text) < 12_000


def test_a_failed_judge_is_an_error_and_no_failure(run: Run, pytester: pytest.Pytester) -> None:
    """Without a judgment nothing is said of the text: `E` in the terminal, `<error>` in the JUnit file."""
    ended = run(
        """
def broken(request):
    raise RuntimeError("the judge is gone")

def half(request):
    if request.criterion.name == "refund":
        raise RuntimeError("half gone")
    return "MET"

def babbling(request):
    return {"verdict": "PERHAPS"}

def open_to(request):
    return None

@pytest.mark.parametrize("judge", [broken, half, babbling, open_to])
def test_reply(judge):
    assert_rubric(GOOD, RUBRIC, 0.9, grader=by(judge))

def test_plain():
    Rubric(RUBRIC).grade_sync(GOOD, by(broken, on_failure="raise"))

class TestReplies(unittest.TestCase):
    def test_method(self):
        assert_rubric(GOOD, RUBRIC, 0.9, grader=by(broken))

def test_bug():
    raise KeyError("a fault of the test itself")
"""
    )
    ended.assert_outcomes(errors=6, failed=1)
    assert ended.ret == pytest.ExitCode.TESTS_FAILED
    ended.stdout.fnmatch_lines(["*the text could not be judged: *the judge is gone*"])
    cases = _cases(pytester)
    for name in ("test_reply[broken]", "test_reply[half]", "test_reply[babbling]", "test_reply[open_to]"):
        assert cases[name].find("error") is not None and cases[name].find("failure") is None
        assert "rubric_pass_rate" not in _figures(cases[name])
    assert cases["test_plain"].find("error") is not None
    assert cases["test_method"].find("error") is not None
    assert cases["test_bug"].find("failure") is not None


def test_too_many_lost_verdicts_of_a_panel_are_an_error(run: Run) -> None:
    """Half of a panel's verdicts lost are an error, unless `max_lost` of the call or the marker allows it."""
    ended = run(
        """
def broken(request):
    raise RuntimeError("gone")

def kind(request):
    return "MET"

def panel():
    return CriterionGrader(judges=[broken, kind])

def test_strict():
    with pytest.raises(NotJudgedError, match="2 of 4 verdicts were lost.*exceeds the limit max_lost=0.05"):
        assert_rubric("Any text.", RUBRIC, 1.0, grader=panel())

def test_error():
    assert_rubric("Any text.", RUBRIC, 0.0, max_lost=0.4, grader=panel())

def test_call():
    assert assert_rubric("Any text.", RUBRIC, 1.0, max_lost=0.5, grader=panel()).score == 1.0

@pytest.mark.rubric(min_score=1.0, max_lost=0.5)
def test_marker():
    assert asyncio.run(assert_rubric_async("Any text.", RUBRIC, grader=panel())).score == 1.0

def test_share():
    with pytest.raises(ArgumentError, match="max_lost must be a number from 0 to 1; got 2"):
        assert_rubric("Any text.", RUBRIC, 0.0, max_lost=2, grader=panel())
"""
    )
    ended.assert_outcomes(passed=4, errors=1)


def test_replies_of_a_model_that_cannot_be_read_are_counted(run: Run, openai_server: OpenAIServer) -> None:
    """One unreadable verdict of four, counted as the conservative answer, is an error above `max_lost`."""
    openai_server.script({"do": "answer", "payload": {"verdict": "MET", "reason": "Yes."}}, repeat="last")
    openai_server.script({"do": "answer", "content": "Perhaps."}, contains="a refund", repeat="last")
    openai_server.script({"do": "answer", "content": "Perhaps."}, contains="could not be used", repeat="last")
    body = f"""
def panel():
    model = LLMConfig(model="openai/own", api_base="{openai_server.api_base}")
    kind = lambda request: "MET"
    return CriterionGrader(judges=[model, kind, JudgeSpec(kind, "kinder")])

def test_strict():
    with pytest.raises(NotJudgedError, match="1 of 6 verdicts were assumed.*exceeds the limit max_lost=0.05"):
        assert_rubric("Any text.", RUBRIC, 0.5, grader=panel())

def test_lenient():
    assert_rubric("Any text.", RUBRIC, 0.5, max_lost=0.2, grader=panel())
"""
    run(body, "--rubric-judge", "openai/own").assert_outcomes(passed=2)


def test_repeats_are_one_result_with_a_pass_rate(run: Run, pytester: pytest.Pytester) -> None:
    """The body runs as often as marked, on fresh samples; told once are rate, interval and mean score."""
    ended = run(
        """
seen = []
def by_turns(request):
    seen.append(request.sample)
    return JudgeReply(answer="MET" if request.sample != 1 else "UNMET", cost=0.25)

@pytest.fixture
def grader():
    return by(by_turns)

@pytest.mark.rubric(min_score=0.5, repeats=4, min_pass_rate=0.75)
def test_enough(grader):
    assert_rubric(GOOD, RUBRIC, grader=grader)

@pytest.mark.rubric(min_score=0.5, repeats=4)
def test_too_few(grader):
    assert_rubric(GOOD, RUBRIC, grader=grader)

def test_samples():
    assert seen == [0, 0, 1, 1, 2, 2, 3, 3] * 2

@pytest.mark.rubric(min_score=0.5, repeats=3)
def test_unjudged_once():
    def gone(request):
        if request.sample == 1:
            raise RuntimeError("gone")
        return "MET"
    assert_rubric(GOOD, RUBRIC, grader=by(gone))
"""
    )
    ended.assert_outcomes(passed=2, failed=1, errors=1)
    cases = _cases(pytester)
    assert _figures(cases["test_enough"]) == {
        "rubric_score": "0.75",
        "rubric_pass_rate": "0.75",
        "rubric_judge": "by_turns",
        "rubric_cost": "2.0",
        "rubric_repeats": "4",
        # Wilson's score interval of 3 of 4, R's prop.test(3, 4, correct = FALSE).
        "rubric_pass_rate_low": "0.300642",
        "rubric_pass_rate_high": "0.954413",
    }
    rate = "passed 3 of 4 (pass rate 0.75, 95% interval 0.30 to 0.95)"
    failure = cases["test_too_few"].find("failure")
    assert failure is not None and failure.text is not None
    assert f"{rate}; at least 4 of 4 must pass" in failure.text
    assert "repeat 2: score 0.000" in failure.text
    ended.stdout.fnmatch_lines(["*rubric repeats*", f"*::test_enough: {rate}; mean score 0.750"])
    assert "rubric_repeats" not in _figures(cases["test_unjudged_once"])


def test_faulty_markers_are_errors(run: Run) -> None:
    """What a marker cannot mean is said before the test runs."""
    ended = run(
        """
@pytest.mark.rubric(least=0.5)
def test_name(): ...

@pytest.mark.rubric(0.5)
def test_position(): ...

@pytest.mark.rubric(repeats=0)
def test_repeats(): ...

@pytest.mark.rubric(repeats=2, min_pass_rate=70)
def test_rate(): ...

class TestReplies(unittest.TestCase):
    @pytest.mark.rubric(repeats=2)
    def test_method(self): ...

def test_no_score():
    with pytest.raises(ValueError, match="min_score is missing"):
        assert_rubric(GOOD, RUBRIC)
"""
    )
    ended.assert_outcomes(errors=5, passed=1)
    for told in (
        "unknown arguments: least. Allowed: min_score",
        "repeats must be a positive integer; got 0",
        "min_pass_rate must be greater than 0 and at most 1; got 70",
        "is not supported for unittest.TestCase",
    ):
        ended.stdout.fnmatch_lines([f"*{told}*"])


_MODELS = """
def test_own():
    assert_rubric(GOOD, RUBRIC, 0.0, grader=CriterionGrader(llm_config="gpt-6-luna"))

def test_fixture(rubric_grader):
    report = Rubric(RUBRIC).grade_sync(GOOD, rubric_grader)
    assert report.score is not None and report.score >= 0.0

def test_default():
    assert_rubric(GOOD, RUBRIC, 0.0)
"""


def test_comparing_words_is_warned_about_once(pytester: pytest.Pytester) -> None:
    """Without a named judge, the first assertion warns; a judge that is named is taken as wanted."""
    pytester.makepyfile(
        """
from autorubric.testing import assert_rubric

def test_one():
    assert_rubric("Sorry.", [{"name": "apology", "requirement": "It says sorry."}], 0.0)

def test_two():
    assert_rubric("Sorry.", [{"name": "apology", "requirement": "It says sorry."}], 0.0)
"""
    )
    # The warning comes once a process.
    ended = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    ended.assert_outcomes(passed=2, warnings=1)
    ended.stdout.fnmatch_lines(
        ["*test_*.py:4: UserWarning: assert_rubric has no grader and uses LexicalJudge*"]
    )
    named = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--rubric-judge", "lexical")
    named.assert_outcomes(passed=2, warnings=0)


def test_models_are_not_asked_without_leave(run: Run, pytester: pytest.Pytester) -> None:
    """A model in the test or in the ini file is skipped with a reason; offline judges are not."""
    run(_MODELS).assert_outcomes(skipped=1, passed=2)
    assert _figures(_cases(pytester)["test_default"])["rubric_judge"] == "lexical"
    run(_MODELS, "--rubric-judge", "lexical").assert_outcomes(skipped=1, passed=2)
    pytester.makeini("[pytest]\nrubric_judge = openai/gpt-6-luna\n")
    ended = run(_MODELS, "-rs")
    ended.assert_outcomes(skipped=3)
    ended.stdout.fnmatch_lines(["*calls to openai/gpt-6-luna may cost money; pass --rubric-judge*"])


def test_the_command_line_gives_leave(
    run: Run, pytester: pytest.Pytester, openai_server: OpenAIServer
) -> None:
    """With --rubric-judge the named model is asked, and replies are kept where a folder is named."""
    body = _MODELS.replace(
        'llm_config="gpt-6-luna"',
        f'llm_config=LLMConfig(model="openai/own", api_base="{openai_server.api_base}")',
    )
    options = ("--rubric-judge", "openai/named", "--rubric-api-base", openai_server.api_base)
    run(body, *options, "--rubric-cache-dir", "kept").assert_outcomes(passed=3)
    asked = [one["body"]["model"] for one in openai_server.log()]
    # Twice the same text for the run's own grader: asked once, and read from the folder then.
    assert sorted(asked) == ["named", "named", "own", "own"]
    assert _figures(_cases(pytester)["test_default"])["rubric_judge"] == "openai/named"
    assert list((pytester.path / "kept").iterdir())


def test_what_is_no_judge_is_a_usage_error(run: Run) -> None:
    """A slip in the name is told with the option that it was given to."""
    ended = run(_MODELS, "--rubric-judge", "lexcal")
    assert "--rubric-judge 'lexcal': unknown model 'lexcal'; did you mean 'lexical'?" in ended.stdout.str()
    assert ended.ret != pytest.ExitCode.OK


def test_asynchronous_tests(run: Run) -> None:
    """Both forms work where an event loop is running, and the awaited one lets it go on."""
    ended = run(
        """
def test_running_loop():
    async def body():
        assert_rubric(GOOD, RUBRIC, 0.5)
        with pytest.raises(AssertionError, match="score 0.000"):
            assert_rubric("Hello.", RUBRIC, 0.5)
    asyncio.run(body())

def test_awaited():
    async def body():
        ready = asyncio.Event()
        async def patient(request):
            await ready.wait()
            return "MET"
        asyncio.get_running_loop().call_soon(ready.set)
        return await assert_rubric_async(GOOD, RUBRIC, 0.5, grader=by(patient))
    assert asyncio.run(body()).score == 1.0
"""
    )
    ended.assert_outcomes(passed=2)


def _subprocess(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [environment.pop("also", ""), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_under_xdist(pytester: pytest.Pytester) -> None:
    """Outcomes, properties and the summary are the same with the tests spread over two processes."""
    pytester.makepyfile(
        test_replies=_HEAD
        + """
def broken(request):
    raise RuntimeError("gone")

@pytest.mark.rubric(min_score=0.5, repeats=3)
def test_good(rubric_grader):
    assert_rubric(GOOD, RUBRIC, grader=rubric_grader)

def test_low():
    assert_rubric("Hello.", RUBRIC, 0.5)

def test_lost():
    assert_rubric(GOOD, RUBRIC, 0.5, grader=by(broken))

def test_paid():
    assert_rubric(GOOD, RUBRIC, 0.5, grader=CriterionGrader(llm_config="gpt-6-luna"))
"""
    )
    plugins = ("-p", "autorubric.integrations.pytest_plugin", "-p", "xdist.plugin", "--strict-markers")
    options = ("-n", "2", "--junit-xml=junit.xml", "-p", "no:cacheprovider")
    ended = _subprocess(pytester.path, "-m", "pytest", *plugins, *options, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "1 failed, 1 passed, 1 skipped, 1 warning, 1 error" in ended.stdout, ended.stdout + ended.stderr
    assert ended.stdout.count("passed 3 of 3 (pass rate 1.00") == 1
    cases = _cases(pytester)
    assert _figures(cases["test_good"])["rubric_pass_rate"] == "1.0"
    assert cases["test_lost"].find("error") is not None
    assert cases["test_low"].find("failure") is not None


def test_the_entry_point_loads_nothing_of_the_library(tmp_path: Path) -> None:
    """An installed plugin registers its marker and options; a run that grades nothing loads nothing more."""
    declared = write_entry_points(tmp_path / "declared")
    (tmp_path / "test_plain.py").write_text(
        "import json, sys, pytest\n\n\n@pytest.mark.rubric(min_score=0.5)\ndef test_marked(): ...\n\n\n"
        "def test_loaded():\n    print('loaded', json.dumps(sorted(sys.modules)))\n",
        encoding="utf-8",
    )
    options = ("-q", "-s", "--strict-markers", "-p", "no:cacheprovider", "-k", "loaded")
    ended = _subprocess(tmp_path, "-m", "pytest", *options, also=str(declared))
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr
    line = next(line for line in ended.stdout.splitlines() if line.startswith("loaded "))
    loaded = json.loads(line.removeprefix("loaded ").removesuffix("."))
    assert [name for name in loaded if name.partition(".")[0] == "autorubric"] == [
        "autorubric",
        "autorubric._version",
        "autorubric.integrations",
        "autorubric.integrations.pytest_plugin",
        "autorubric.integrations.test_in_progress",
        "autorubric.support",
        "autorubric.support.lazy",
    ]
    told = _subprocess(tmp_path, "-m", "pytest", "--markers", also=str(declared)).stdout
    assert "@pytest.mark.rubric(min_score, max_lost=0.05, repeats=1, min_pass_rate=1.0)" in told


def test_under_unittest(tmp_path: Path) -> None:
    """Without pytest a low score is a failure and a failed judge an error; the judge is the offline one."""
    (tmp_path / "test_replies.py").write_text(
        _HEAD.replace("import pytest\n", "")
        + """
class TestReplies(unittest.TestCase):
    def test_good(self):
        report = assert_rubric(GOOD, RUBRIC, 0.5)
        self.assertEqual(list(report.judge_scores), ["lexical"])

    def test_low(self):
        assert_rubric("Hello.", RUBRIC, 0.5)

    def test_lost(self):
        def broken(request):
            raise RuntimeError("gone")
        assert_rubric(GOOD, RUBRIC, 0.5, grader=by(broken))

    def test_plain_assert(self):
        report = Rubric(RUBRIC).grade_sync(GOOD, CriterionGrader(judges=[lambda request: "MET"]))
        assert report.score == 1.0
""",
        encoding="utf-8",
    )
    ended = _subprocess(tmp_path, "-m", "unittest", "test_replies")
    assert "Ran 4 tests" in ended.stderr, ended.stderr
    assert "FAILED (failures=1, errors=1)" in ended.stderr
    assert "NotJudgedError: the text could not be judged" in ended.stderr
