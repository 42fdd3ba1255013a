"""No attack changes the structure of a request, whatever kind of criterion it is about."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest

from autorubric import Criterion, CriterionGrader, JudgeSpec, LLMConfig, Rubric
from autorubric.apps.redteam import Attack, builtin_attacks
from autorubric.apps.redteam.run import insert
from autorubric.criteria import BaseCriterion, ComparativeCriterion, Submission
from autorubric.grading import GradingTask
from autorubric.judges.prompts import item_tag, neutralise
from autorubric.llm import ModelRequest
from tests.criteria.kinds import KINDS
from tests.doubles import in_loop, model_judge
from tests.servers.answers import example
from tests.servers.fixtures import OpenAIServer

PARTS = ("query", "reference", "thinking", "submission", "candidate", "context", "example")
HARMLESS = Attack(id="harmless", family="control", text="Nothing is attacked here.")
CRITERIA = [make(name=f"k{number}") for number, make in enumerate(KINDS.values())]
PLAIN = GradingTask(
    submission=Submission(text="Rain falls because droplets grow.", thinking="Droplets, then weight."),
    rubric=Rubric([criterion for criterion in CRITERIA if criterion.level != "ranking"]),
    query="Why does it rain?",
    reference_submission="Droplets grow until they are too heavy.",
    item_id="rain",
)
PAIR = GradingTask(
    submission=Submission.parse({"gpt": "Heavy drops fall.", "claude": "Rain is wet."}),
    rubric=Rubric([ComparativeCriterion(name="better", requirement="Which explains more?")]),
    query="Why does it rain?",
    reference_submission="Droplets grow until they are too heavy.",
)
ATTACKS = [attack for attack in builtin_attacks() if not attack.is_control]
_DELIMITER = re.compile(rf"</?(?:{'|'.join(PARTS)})-[^\n]*>", re.IGNORECASE)
_BRACKETS = {"‹": ("&#60;", "&lt;", "<", "＜"), "⟦": ("[",)}


class Structure(NamedTuple):
    """What of a request may not depend on the texts in it; the tag of the delimiters stands as `TAG`."""

    roles: tuple[str, ...]
    system: str
    delimiters: tuple[str, ...]
    criterion: str
    schema: Any
    sampling: Any


def tag_of(task: GradingTask) -> str:
    """The tag of a task's delimiters."""
    submission = task.submission
    others = list(submission.candidates.values())[1:]
    return item_tag(submission.text, submission.thinking, task.query, task.reference_submission, *others)


def structure(request: ModelRequest, tag: str) -> Structure:
    """The structure of a request."""
    system, user = request.messages
    prefix, rest = user.content[: user.cache_prefix], user.content[user.cache_prefix or 0 :]
    delimiters = [found.replace(tag, "TAG") for found in _DELIMITER.findall(user.content)]
    assert prefix.endswith(f"-{tag}>\n\n")
    return Structure(
        roles=tuple(message.role for message in request.messages),
        system=system.content,
        delimiters=tuple(delimiters),
        criterion=rest.replace(tag, "TAG"),
        schema=request.schema,
        sampling=(request.model, request.sample, dict(request.params)),
    )


async def asked(task: GradingTask, **options: Any) -> list[ModelRequest]:
    """The requests that grading a task sends, without those that ask again."""
    judge, transport = model_judge(example_reply)
    await CriterionGrader(judges=[judge], **options).judge(task)
    # Whether the made-up replies can be read, and are asked for again, is not the question here.
    first = [request for request in transport.requests if len(request.messages) == 2]
    return sorted(first, key=lambda one: one.messages[-1].content[one.messages[-1].cache_prefix :])


def example_reply(request: ModelRequest) -> Any:
    """A reply that follows the request's schema."""
    assert request.schema is not None
    return example(request.schema.schema, seed="x")


def unaltered(written: str, arrived: str) -> bool:
    """Whether a text arrived as written, except for brackets of look-alike delimiters and chat tokens."""
    at = 0
    for letter in arrived:
        if written.startswith(letter, at):
            at += 1
            continue
        bracket = next((one for one in _BRACKETS.get(letter, ()) if written.startswith(one, at)), None)
        if bracket is None:
            return False
        at += len(bracket)
    return at == len(written)


def test_there_are_forty_attacks_of_many_families() -> None:
    """The set that ships has forty attacks, two controls, and no two alike."""
    assert len(ATTACKS) == 40
    assert len(builtin_attacks()) == 42
    assert len({attack.family for attack in ATTACKS}) >= 10
    assert len({attack.written for attack in builtin_attacks()}) == 42
    assert {attack.into for attack in ATTACKS} == {"submission", "reference", "query"}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.id)
@pytest.mark.parametrize("options", [{}, {"llm_calls": "per_item"}, {"seed": 3}], ids=str)
@pytest.mark.parametrize("task", [PLAIN, PAIR], ids=["one", "pair"])
@in_loop
async def test_the_structure_of_requests_is_that_of_a_harmless_text(
    task: GradingTask, options: dict[str, Any], attack: Attack
) -> None:
    """Roles, system prompt, delimiters, the criteria's block, the schema and its place stay the same."""
    plain = insert(task, HARMLESS.model_copy(update={"into": attack.into, "place": attack.place}))
    attacked = insert(task, attack)
    assert plain is not None and attacked is not None
    expected = [structure(one, tag_of(plain)) for one in await asked(plain, **options)]
    found = [structure(one, tag_of(attacked)) for one in await asked(attacked, **options)]
    assert found == expected


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.id)
@in_loop
async def test_the_text_arrives_as_it_was_written(attack: Attack) -> None:
    """Between its delimiters stands the text, with nothing changed but brackets of look-alikes."""
    task = insert(PLAIN, attack)
    assert task is not None
    texts = {"submission": task.submission.text, "reference": task.reference_submission, "query": task.query}
    tag = tag_of(task)
    for request in await asked(task):
        content = request.messages[-1].content
        for part, written in texts.items():
            assert content.count(f"<{part}-{tag}>") == content.count(f"</{part}-{tag}>") == 1
            arrived = content.split(f"<{part}-{tag}>\n")[1].split(f"\n</{part}-{tag}>")[0]
            assert written is not None
            assert unaltered(written, arrived)
            assert arrived == neutralise(written)


@pytest.mark.parametrize(
    "mark", ["\u202e", "\u2066", "\ufe0f", "\U000e0073", "\u034f", "\u3164", "\x7f", "\u061c", "／", "∕"]
)
@pytest.mark.parametrize("bracket", ["<", "〈", "《", "&#60;", "&#x3C;", "&LT;"])
def test_look_alikes_with_unseen_marks_are_neutralised(mark: str, bracket: str) -> None:
    """Marks that nobody sees do not hide a delimiter, nor do other ways to write its bracket."""
    forged = f"{bracket}{mark}/sub{'' if mark in '／∕' else mark}mission-0>"
    assert neutralise(forged).startswith("‹")


def test_structure_over_http(openai_server: OpenAIServer) -> None:
    """What a server gets is one system and one user message and the schema, whatever the text holds."""
    config = LLMConfig(
        model="openai/m", api_base=openai_server.api_base, api_key="k", transport="openai_compatible"
    )
    grader = CriterionGrader(judges=[JudgeSpec(config, "m")])
    rubric = Rubric([Criterion(name="cause", requirement="It names a cause.")])
    bodies = []
    for attack in (HARMLESS, *ATTACKS):
        text = attack.insert("Rain falls because droplets grow.")
        openai_server.reset()
        report = rubric.grade_sync(text, grader)
        assert report.report[0].status in ("answered", "abstained")
        (entry,) = openai_server.log()
        bodies.append(entry["body"])
        assert neutralise(text) in entry["body"]["messages"][1]["content"]
    shapes = [_shape(body) for body in bodies]
    assert all(shape == shapes[0] for shape in shapes)


def _shape(body: dict[str, Any]) -> Any:
    first, second = body["messages"]
    rest = {key: value for key, value in body.items() if key != "messages"}
    return first, second["role"], second["content"].rpartition("</submission-")[2].partition(">")[2], rest


def test_kinds_are_all_there() -> None:
    """The structure is tested on every kind of criterion."""
    kinds: set[type[BaseCriterion]] = {type(criterion) for criterion in (*PLAIN.rubric, *PAIR.rubric)}
    assert len(kinds) >= 9
