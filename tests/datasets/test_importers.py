"""Files of other tools: their shapes, their scores and their faults."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from autorubric import (
    CriterionGrader,
    Rubric,
    RubricDataset,
    evaluate_sync,
    from_healthbench,
    from_paperbench,
    from_promptfoo,
)
from autorubric.errors import ArgumentError, DatasetError, RubricError
from autorubric.runs import healthbench_score

SETTINGS = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def write_rows(path: Path, rows: list[Any]) -> Path:
    """The rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def health_row(name: str, points: list[float]) -> dict[str, Any]:
    """A row in the shape of HealthBench."""
    return {
        "example_tags": ["theme:hedging", "physician_agreed_category:enough-context"],
        "ideal_completions_data": {
            "ideal_completion": f"See a doctor, {name}.",
            "ideal_completions_group": "G1",
        },
        "prompt": [
            {"role": "user", "content": "My knee hurts."},
            {"role": "assistant", "content": "Since when?"},
            {"role": "user", "content": "Since Monday."},
        ],
        "prompt_id": name,
        "rubrics": [
            {"criterion": f"Does thing {at}.", "points": one, "tags": ["level:example", "axis:accuracy"]}
            for at, one in enumerate(points)
        ],
        "canary": "none",
    }


def test_healthbench_rows(tmp_path: Path) -> None:
    """A row becomes an item with its conversation, its rubric, its reference and its tags."""
    path = write_rows(tmp_path / "hb.jsonl", [health_row("p1", [5, -3, 2]), health_row("p2", [1])])
    dataset = from_healthbench(path, submissions={"p1": "Rest it."})
    item, rubric = dataset[0], dataset.get_item_rubric(0)
    assert [dataset.item_id(i) for i in range(2)] == ["p1", "p2"]
    assert (item.submission, dataset[1].submission) == ("Rest it.", None)
    assert [criterion.weight for criterion in rubric] == [5.0, -3.0, 2.0]
    assert [criterion.requirement for criterion in rubric] == [
        "Does thing 0.",
        "Does thing 1.",
        "Does thing 2.",
    ]
    assert item.reference_submission == "See a doctor, p1."
    assert item.metadata["tags"]["criterion_2"] == ["level:example", "axis:accuracy"]
    assert item.metadata["example_tags"][0] == "theme:hedging"
    assert (item.prompt or "").startswith("user:\n  My knee hurts.\nassistant:\n")
    path = tmp_path / "copy.jsonl"
    dataset.to_file(path)
    assert RubricDataset.from_file(path) == dataset


@pytest.mark.parametrize(
    "messages", [lambda turns: turns, lambda turns: {"messages": turns}], ids=["list", "object"]
)
@pytest.mark.parametrize("key", ["criterion", "criterion_text"])
def test_healthbench_professional_rows(messages: Any, key: str, tmp_path: Path) -> None:
    """The newer keys are read like the older ones, and errors have lines."""
    turns = [{"role": "user", "content": "It hurts."}]
    row = {"id": "p", "conversation": messages(turns), "rubric_items": [{key: "A", "points": 5}]}
    row["rubric_items"].append({key: "B", "points": -3})
    path = write_rows(tmp_path / "hb.jsonl", [{**row, "specialty": "knee"}])
    dataset = from_healthbench(path, submissions={"p": "Rest."})
    assert [(one.requirement, one.weight) for one in dataset.get_item_rubric(0)] == [("A", 5.0), ("B", -3.0)]
    assert (dataset.item_id(0), dataset[0].prompt, dataset[0].submission) == ("p", "It hurts.", "Rest.")
    assert dataset[0].metadata == {"specialty": "knee", "tags": {}}
    path = write_rows(tmp_path / "hb.jsonl", [row, {**row, "id": "q", "conversation": []}])
    with pytest.raises(DatasetError, match=r"\[1\]\.conversation \(line 2\)"):
        from_healthbench(path)


def test_one_question_is_the_prompt_as_it_stands(tmp_path: Path) -> None:
    """A conversation of one message of a user needs no roles."""
    row = {**health_row("p", [1]), "prompt": [{"role": "user", "content": "Is it safe?"}]}
    assert from_healthbench(write_rows(tmp_path / "hb.jsonl", [row]))[0].prompt == "Is it safe?"


POINTS = st.lists(st.integers(-10, 10).filter(bool), min_size=1, max_size=5)


@SETTINGS
@given(
    rows=st.lists(
        POINTS.flatmap(
            lambda p: st.tuples(st.just(p), st.lists(st.booleans(), min_size=len(p), max_size=len(p)))
        ),
        min_size=1,
        max_size=4,
    )
)
def test_healthbench_scores(
    rows: list[tuple[list[int], list[bool]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Points met ÷ positive points, clipped in `score`; the benchmark clips the mean over items alone."""
    folder = tmp_path_factory.mktemp("hb")
    names = {f"p{at}": f"answer {at}" for at in range(len(rows))}
    path = write_rows(
        folder / "hb.jsonl", [health_row(name, list(p)) for name, (p, _) in zip(names, rows, strict=True)]
    )
    met = {
        (name, f"criterion_{at + 1}"): yes
        for name, (_, said) in zip(names, rows, strict=True)
        for at, yes in enumerate(said)
    }

    def judge(request: Any) -> str:
        return "MET" if met[request.item_id, request.criterion.name] else "UNMET"

    result = evaluate_sync(
        from_healthbench(path, submissions=names),
        CriterionGrader(judges=[judge]),
        experiments_dir=folder,
        experiment_name="r",
        show_progress=False,
    )
    shares = []
    for report, (points, said) in zip(result.get_reports(), rows, strict=True):
        assert report is not None
        won = sum(one for one, yes in zip(points, said, strict=True) if yes)
        positive = sum(one for one in points if one > 0)
        assert report.raw_score == pytest.approx(won)
        if positive:
            shares.append(won / positive)
            assert report.score == pytest.approx(min(max(won / positive, 0), 1))
    found = healthbench_score(result)
    assert (found.n, found.n_missing) == (len(shares), len(rows) - len(shares))
    assert [one for one in found.items.values() if one is not None] == pytest.approx(shares)
    expected = min(max(sum(shares) / len(shares), 0), 1) if shares else None
    assert found.score == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("change", "message", "line"),
    [
        ({"rubrics": []}, "rubrics.*at least 1 item", 2),
        ({"rubrics": [{"criterion": "x"}]}, "'points' is missing", 2),
        ({"rubrics": [{"criterion": "x", "points": "5"}]}, "expected a number; got '5'", 2),
        ({"rubrics": [{"points": 5}]}, "'criterion' is missing", 2),
        ({"prompt": "", "prompt_id": 7}, "prompt_id.*expected a string; got 7", 2),
        ({"prompt": [{"role": "user"}]}, r"prompt\[0\] must have 'content' or 'tool_calls'", 2),
        ({"prompt_id": "p1"}, "'p1' is already used by row 1", 2),
    ],
)
def test_faulty_healthbench_rows(change: dict[str, Any], message: str, line: int, tmp_path: Path) -> None:
    """Every fault comes with its line."""
    path = write_rows(tmp_path / "hb.jsonl", [health_row("p1", [1]), {**health_row("p2", [1]), **change}])
    with pytest.raises(DatasetError, match=message) as caught:
        from_healthbench(path)
    assert {fault.line for fault in caught.value.faults} == {line}


def test_submissions_of_nobody_are_refused(tmp_path: Path) -> None:
    """The nearest id is told."""
    path = write_rows(tmp_path / "hb.jsonl", [health_row("first", [1])])
    with pytest.raises(ArgumentError, match="did you mean 'first'"):
        from_healthbench(path, submissions={"frist": "x"})


TREE = {
    "id": "root",
    "requirements": "The paper is replicated.",
    "weight": 1,
    "sub_tasks": [
        {
            "id": "code",
            "requirements": "The method is there.",
            "weight": 3,
            "sub_tasks": [
                {
                    "id": "a",
                    "requirements": "The loss is.",
                    "weight": 2,
                    "sub_tasks": [],
                    "task_category": "Code Development",
                },
                {
                    "id": "b",
                    "requirements": "The sampler is.",
                    "weight": 1,
                    "sub_tasks": [],
                    "task_category": "Code Execution",
                },
            ],
        },
        {
            "id": "c",
            "requirements": "The table is.",
            "weight": 1,
            "sub_tasks": [],
            "task_category": "Result Match",
            "finegrained_task_category": "Evaluation",
        },
    ],
}


def test_a_paperbench_tree(tmp_path: Path) -> None:
    """Leaves are criteria, nodes above them groups; a tree scores as the benchmark's does."""
    path = tmp_path / "rubric.json"
    path.write_text(json.dumps(TREE), encoding="utf-8")
    dataset = from_paperbench(path, submissions={"mine": "code"})
    rubric = dataset.get_item_rubric(0)
    assert rubric.names == ("a", "b", "c")
    assert [one.name for one in rubric.root.criteria] == ["code", "c"]
    assert rubric.compute_score({"a": "MET", "b": "UNMET", "c": "UNMET"}) == pytest.approx(3 / 4 * 2 / 3)
    assert dataset.metadata["task_category"] == {
        "a": "Code Development",
        "b": "Code Execution",
        "c": "Result Match",
    }
    assert dataset.metadata["requirements"]["code"] == "The method is there."
    assert len(from_paperbench(path)) == 0


def _tree(children: Any) -> Any:
    return st.builds(
        lambda weight, inner: {"weight": weight, "sub_tasks": inner},
        st.integers(1, 9),
        st.lists(children, min_size=1, max_size=3),
    )


LEAF = st.builds(
    lambda weight, met: {"weight": weight, "met": met, "sub_tasks": []}, st.integers(1, 9), st.booleans()
)


def _numbered(node: dict[str, Any], name: str = "n") -> None:
    node |= {"id": name, "requirements": f"It does {name}."}
    for place, one in enumerate(node["sub_tasks"]):
        _numbered(one, f"{name}.{place}")


def _score(node: dict[str, Any]) -> float:
    """The mean of a node's tasks by weight, as the benchmark defines it."""
    tasks = node["sub_tasks"]
    if not tasks:
        return float(node["met"])
    total = sum(one["weight"] * _score(one) for one in tasks)
    return float(total / sum(one["weight"] for one in tasks))


def _leaves(node: dict[str, Any]) -> dict[str, str]:
    if not node["sub_tasks"]:
        return {node["id"]: "MET" if node["met"] else "UNMET"}
    return {name: said for one in node["sub_tasks"] for name, said in _leaves(one).items()}


@SETTINGS
@given(tree=_tree(st.recursive(LEAF, _tree, max_leaves=8)))
def test_paperbench_scores(tree: dict[str, Any], tmp_path: Path) -> None:
    """Whatever the tree, its score is the benchmark's."""
    _numbered(tree)
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    rubric = from_paperbench(path).rubric
    assert rubric is not None
    assert rubric.compute_score(_leaves(tree)) == pytest.approx(_score(tree))


def test_faults_of_a_tree_come_at_once(tmp_path: Path) -> None:
    """Missing texts, ids that repeat and weights that are none, each with its place."""
    broken = json.loads(json.dumps(TREE))
    broken["sub_tasks"][0]["sub_tasks"][0]["weight"] = -1
    broken["sub_tasks"][0]["sub_tasks"][1]["id"] = "a"
    del broken["sub_tasks"][1]["requirements"]
    path = tmp_path / "rubric.json"
    path.write_text(json.dumps(broken, indent=1), encoding="utf-8")
    with pytest.raises(DatasetError) as caught:
        from_paperbench(path)
    told = {fault.path: fault.line for fault in caught.value.faults}
    assert set(told) == {"sub_tasks[0].sub_tasks[0].weight", "sub_tasks[0].sub_tasks[1].id", "sub_tasks[1]"}
    assert all(told.values())


PROMPTFOO = """\
prompts:
  - "Greet {{name}} in {{ tongue }}."
providers: [echo]
defaultTest:
  vars: {tongue: French}
  assert:
    - {type: llm-rubric, value: Is polite}
tests:
  - description: a guest
    vars: {name: Ada}
    threshold: 0.6
    assert:
      - type: llm-rubric
        value: Names {{name}} and {{nobody}}
        weight: 3
        metric: naming
      - {type: contains, value: Ada}
      - type: assert-set
        assert:
          - {type: llm-rubric, value: Is warm, threshold: 0.8}
          - {type: cost, threshold: 1}
  - vars: {name: Bob, tongue: Dutch}
"""


def test_promptfoo_tests(tmp_path: Path) -> None:
    """A test becomes an item with the asserts that a judge is asked for, its variables filled in."""
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(PROMPTFOO, encoding="utf-8")
    with pytest.warns(UserWarning, match="skipped 1 × contains, 1 × cost"):
        dataset = from_promptfoo(path, submissions={"a guest": "Salut Ada", "1": "Dag Bob"})
    item, rubric = dataset[0], dataset.get_item_rubric(0)
    assert (item.id, item.submission, item.prompt) == ("a guest", "Salut Ada", "Greet Ada in French.")
    assert dataset[1].prompt == "Greet Bob in Dutch."
    assert [(one.name, one.requirement, one.weight) for one in rubric] == [
        ("criterion_1", "Is polite", 1.0),
        ("naming", "Names Ada and {{nobody}}", 3.0),
        ("criterion_3", "Is warm", 1.0),
    ]
    assert [one.level for one in rubric] == ["binary", "binary", "interval"]
    assert item.metadata["thresholds"] == {"criterion_3": 0.8}
    assert item.metadata["threshold"] == 0.6
    assert dataset.metadata["left_out"] == {"contains": 1, "cost": 1}
    assert dataset.get_item_rubric(1).names == ("criterion_1",)


@SETTINGS
@given(asserts=st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=5))
def test_promptfoo_scores(asserts: list[tuple[int, bool]], tmp_path: Path) -> None:
    """The score is the mean of the asserts by weight."""
    test = {
        "assert": [
            {"type": "llm-rubric", "value": f"v{at}", "weight": w} for at, (w, _) in enumerate(asserts)
        ]
    }
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump({"tests": [test]}), encoding="utf-8")
    rubric = from_promptfoo(path).get_item_rubric(0)
    expected = sum(w for w, met in asserts if met) / sum(w for w, _ in asserts)
    assert rubric.compute_score(["MET" if met else "UNMET" for _, met in asserts]) == pytest.approx(expected)


GRADED = """\
prompts: ["Say what {{query}} is."]
defaultTest:
  options: {factuality: {subset: 0.5}}
tests:
  - vars: {query: Oslo, context: [A capital., In Norway.]}
    assert:
      - {type: g-eval, value: [Is short, Is kind], weight: 2, metric: tone}
      - {type: g-eval, value: Is clear, threshold: 0.5}
      - {type: factuality, value: "{{query}} is a capital.", metric: facts}
      - {type: model-graded-closedqa, value: Names Norway}
      - {type: not-llm-rubric, value: Is rude}
      - {type: not-g-eval, value: Is vague}
      - {type: answer-relevance}
      - {type: context-faithfulness, threshold: 0.9}
      - {type: context-recall, value: It is in Norway.}
      - {type: context-relevance, contextTransform: output.context}
      - {type: similar, value: x}
      - {type: select-best, value: the best}
"""


def test_promptfoo_assertions_that_a_model_grades(tmp_path: Path) -> None:
    """They become ratings, choices and statements; those that cannot are left out with the reason."""
    path = tmp_path / "p.yaml"
    path.write_text(GRADED, encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = from_promptfoo(path)
    left_out, approximated = (str(one.message) for one in caught)
    assert "1 × similar (computed from embeddings)" in left_out
    assert "1 × context-relevance (the context is in the provider's output (contextTransform))" in left_out
    assert "1 × select-best (compares several outputs)" in left_out
    assert "1 × answer-relevance, 1 × context-faithfulness, 1 × context-recall" in approximated
    rubric = dataset.get_item_rubric(0)
    assert [one.level for one in rubric] == [
        *("interval", "interval", "interval", "nominal", "binary", "binary"),
        *("interval", "interval", "interval", "interval"),
    ]
    named = {one.name: one for one in rubric}
    assert str(named["facts"].requirement).endswith("Reference: Oslo is a capital.")
    assert [one["value"] for one in named["facts"].model_dump()["options"]] == [0.5, 1.0, 1.0, 0.0, 1.0]
    assert named["criterion_5"].requirement == "The submission does not meet this: Is rude"
    assert "Query: Oslo\nContext: A capital.\n\nIn Norway." in str(named["criterion_8"].requirement)
    assert dataset[0].metadata["thresholds"] == {
        "tone": 0.7,
        "criterion_2": 0.5,
        "criterion_6": 0.3,
        "criterion_7": 0.7,
        "criterion_8": 0.9,
    }


def test_promptfoo_list_of_g_eval_scores_as_its_mean(tmp_path: Path) -> None:
    """A list of values weighs as one assertion, whatever its length."""
    asserts = [
        {"type": "g-eval", "value": ["a", "b", "c"], "weight": 2},
        {"type": "model-graded-closedqa", "value": "d"},
    ]
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump({"tests": [{"assert": asserts}]}), encoding="utf-8")
    rubric = from_promptfoo(path).get_item_rubric(0)
    assert rubric.compute_score([0.3, 0.6, 0.9, "UNMET"]) == pytest.approx(2 * 0.6 / 3)


def test_tests_without_a_judge_are_left_out(tmp_path: Path) -> None:
    """And counted; a list of tests alone is read too."""
    path = tmp_path / "tests.yaml"
    path.write_text(
        yaml.safe_dump(
            [
                {"assert": [{"type": "equals", "value": "x"}]},
                {"assert": [{"type": "llm-rubric", "value": "y"}]},
            ]
        ),
        encoding="utf-8",
    )
    with pytest.warns(UserWarning, match="1 × equals .*; 1 × test "):
        assert [item.id for item in from_promptfoo(path)] == ["1"]


@pytest.mark.parametrize("key", ["label", "x-note", "description"])
def test_promptfoo_tests_have_own_keys_and_default_assertions(key: str, tmp_path: Path) -> None:
    """Keys that promptfoo does not know are not read; a test may have no variables or assertions."""
    asserts = {"assert": [{"type": "llm-rubric", "value": "It is polite."}]}
    own = {"tests": [{"vars": {"q": "a"}, **asserts, key: "x"}]}
    path = tmp_path / "x.json"
    for config in (own, {"defaultTest": asserts, "tests": [{key: "x"}]}):
        path.write_text(json.dumps(config), encoding="utf-8")
        assert len(from_promptfoo(path)) == 1


_LABEL_STUDIO = [{"id": 1, "data": {"text": "x"}, "annotations": [{"result": []}]}]
_ARGILLA = [{"id": "1", "fields": {"text": "x"}, "metadata": {}, "responses": {"quality": [{"value": 1}]}}]
_AGENTV = {"tests": [{"id": "a", "criteria": "x", "input": "y", "assert": [{"type": "rubrics"}]}]}
_OUTCOMES = {"tests": [{"id": "a", "expected_outcome": "x", "rubrics": ["y"]}]}


@pytest.mark.parametrize("given", [_LABEL_STUDIO, _ARGILLA, _AGENTV, _OUTCOMES, {"tests": []}, []])
def test_files_of_other_tools_are_no_promptfoo_files(given: Any, tmp_path: Path) -> None:
    """They are refused instead of giving a dataset without items."""
    path = tmp_path / "x.json"
    path.write_text(json.dumps(given), encoding="utf-8")
    with pytest.raises(DatasetError, match=r"not a promptfoo file: no test has 'vars' or 'assert'"):
        from_promptfoo(path)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("tests:\n- assert:\n  - {type: llm-rubric}\n", "value must be a non-empty string", 3),
        ("tests:\n- assert:\n  - {type: llm-rubric, value: x, weight: much}\n", "expected a number", 3),
        ("tests:\n- 7\n", "a test must be a mapping", 2),
        ("tests:\n- assert: x\n", "assert must be a list", 2),
        ("tests:\n- assert:\n  - contains\n", "an assertion must be a mapping with 'type'", 3),
        ("tests: file://tests.csv\n", "in the same file", None),
    ],
)
def test_faulty_promptfoo_files(text: str, message: str, line: int | None, tmp_path: Path) -> None:
    """Every fault comes with its line."""
    path = tmp_path / "p.yaml"
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings(), pytest.raises(DatasetError, match=message) as caught:
        from_promptfoo(path)
    assert caught.value.faults[0].line == line


TABLES = """\
[judge]
model = "some-model"

[[criterion]]
description = "It runs."
weight = 3

[[criterion]]
name = "style"
description = "How readable it is."
type = "likert"
points = 5

[[criterion]]
name = "share"
description = "What share is done."
type = "numeric"
min = 0
max = 100

[[criterion]]
description = "It has tests."
type = "binary"
"""


def test_criterion_tables(tmp_path: Path) -> None:
    """`[[criterion]]` tables are a rubric; the settings beside them are left out, with a warning."""
    path = tmp_path / "rubric.toml"
    path.write_text(TABLES, encoding="utf-8")
    with pytest.warns(UserWarning, match=r"\[judge\] is ignored"):
        rubric = Rubric.from_file(path)
    assert [(one.name, one.level, one.weight) for one in rubric] == [
        ("criterion_1", "binary", 3.0),
        ("style", "ordinal", 1.0),
        ("share", "interval", 1.0),
        ("criterion_4", "binary", 1.0),
    ]
    score = rubric.compute_score({"criterion_1": "MET", "style": 3, "share": 50, "criterion_4": "UNMET"})
    assert score == pytest.approx((3 + 0.5 + 0.5) / 6)


def test_texts_and_choices(tmp_path: Path) -> None:
    """`{name, text, weight, choices}` is a criterion: labels from the worst to the best, or with values."""
    path = tmp_path / "rubric.json"
    given = [
        {"name": "a", "text": "How good?", "weight": 2, "choices": ["bad", "fair", "good"]},
        {"name": "b", "text": "Is it so?", "choices": {"no": 0, "partly": 0.2, "yes": 1}},
        {"name": "c", "text": "It is there."},
    ]
    path.write_text(json.dumps(given), encoding="utf-8")
    rubric = Rubric.from_file(path)
    assert [answer.value for answer in rubric.by_name("a").answers()] == [0.0, 0.5, 1.0]
    assert [answer.value for answer in rubric.by_name("b").answers()] == [0.0, 0.2, 1.0]
    assert rubric.compute_score(["good", "partly", "MET"]) == pytest.approx((2 + 0.2 + 1) / 4)
    assert Rubric.from_dict(rubric.to_dict()) == rubric


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([{"text": "x", "requirement": "y"}], "are synonyms"),
        ([{"text": "x", "choices": ["one"]}], "at least two labels"),
        ([{"text": "x", "choices": "one"}], "at least two labels"),
        ([{"text": "x", "choices": {"a": 0, "b": 2}}], "less than or equal to 1"),
        ({"criterion": [{"description": "x", "type": "likert"}]}, "requires a number 'points'"),
        ({"criterion": [{"description": "x", "type": "binary", "points": 3}]}, "unknown key 'points'"),
        ({"criterion": [{"description": "x", "type": "numeric", "min": 3, "max": 3}]}, "must be less than"),
        ({"criterion": [{"description": "x"}], "criteria": []}, "unknown key 'criteria'"),
        ({"criterion": {"description": "x"}}, "must be a list"),
    ],
)
def test_faulty_foreign_rubrics(given: Any, message: str) -> None:
    """What cannot be said in the house's words is a fault."""
    with pytest.raises(RubricError, match=message):
        Rubric.from_dict(given)


def test_promptfoo_warns_of_variables_without_a_value_and_of_prompts_left_out(tmp_path: Path) -> None:
    """A variable that no test sets is named, and so are prompts that no item can have."""
    path = tmp_path / "p.yaml"
    asked = {"type": "llm-rubric", "value": "Names {{a}} and {{missing}}"}
    tests = [{"vars": {"a": "x"}, "assert": [asked]}]
    path.write_text(json.dumps({"prompts": ["Say {{a}}", "Tell {{a}}"], "tests": tests}), encoding="utf-8")
    with pytest.warns(UserWarning) as warned:
        dataset = from_promptfoo(path)
    told = [str(one.message) for one in warned]
    assert any(one.endswith("were not replaced: 1 × {{missing}}") for one in told)
    assert any("because the file has 2 prompts" in one for one in told)
    assert dataset[0].prompt is None and len(told) == 2
