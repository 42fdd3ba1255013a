"""Calls that are nearly right: what is accepted, and errors that say what to give."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import autorubric as ar
from autorubric.errors import ArgumentError, FileError, RubricError
from autorubric.llm import ThinkingLevel
from autorubric.metrics import compute_metrics
from tests.metrics.reports import BINARY, ORDINAL, labelled, report, run

RUBRIC = ar.Rubric(
    [{"name": "clear", "requirement": "It is clear."}, {"name": "kind", "requirement": "It is kind."}]
)


def test_the_version_is_an_attribute_and_the_package_a_program() -> None:
    """`autorubric.__version__` and `python -m autorubric --version` say the same."""
    done = subprocess.run(
        [sys.executable, "-m", "autorubric", "--version"], capture_output=True, text=True, check=True
    )
    assert ar.__version__ in done.stdout


def test_a_model_name_is_not_a_grader() -> None:
    """`grade_sync` says what a grader is."""
    with pytest.raises(
        ArgumentError, match=r"grader='anthropic/claude-sonnet-5-5' cannot grade; pass a grader"
    ):
        RUBRIC.grade_sync("a text", "anthropic/claude-sonnet-5-5")  # type: ignore[arg-type]


def test_a_run_takes_a_dataset_and_a_grader() -> None:
    """`evaluate` says what each of the two is."""
    items = ar.RubricDataset(rubric=RUBRIC, items=[ar.DataItem(submission="x")])
    with pytest.raises(
        ArgumentError, match=r"grader must be a grader, such as .*; got 'anthropic/claude-sonnet-5-5'"
    ):
        ar.evaluate_sync(items, "anthropic/claude-sonnet-5-5")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"dataset must be a RubricDataset; got 'd\.json'"):
        ar.evaluate_sync("d.json", ar.CriterionGrader(judges=[lambda request: "MET"]))  # type: ignore[arg-type]


def test_a_length_penalty_is_computed_from_fields_and_submissions() -> None:
    """A mapping serves as the policy, and a submission as the text."""
    policy = {"free_budget": 0, "max_cap": 4, "penalty_at_cap": 1.0, "exponent": 1.0}
    assert ar.scoring.compute_length_penalty("one two", policy) == 0.5
    parts = {"thinking": "one", "output": "two three"}
    assert ar.scoring.compute_length_penalty(parts, policy) == 0.75
    assert ar.scoring.compute_length_penalty(parts, {**policy, "penalty_type": "OUTPUT_ONLY"}) == 0.5
    assert ar.scoring.compute_length_penalty("short") == 0.0
    with pytest.raises(ArgumentError, match=r"is not a length penalty: .*free_budget"):
        ar.scoring.compute_length_penalty("x", {"max_cap": 1})
    with pytest.raises(ArgumentError, match="text must be a string or a submission"):
        ar.scoring.compute_length_penalty(5)  # type: ignore[arg-type]


def test_labels_of_a_scale_are_a_list() -> None:
    """A number in their place is an error that shows a list."""
    for scale in (ar.metrics.Nominal, ar.metrics.Ordinal):
        with pytest.raises(ArgumentError, match=r"such as range\(5\)"):
            scale(5)  # type: ignore[arg-type]


def test_all_faults_of_a_rubric_are_reported_at_once() -> None:
    """Repeated names and unknown conditions are found among criteria with other errors, and of them."""
    with pytest.raises(RubricError) as caught:
        ar.Rubric.from_dict(
            [
                {"name": "a", "requirement": "x"},
                {"name": "a"},
                {"name": "b", "requirement": "x", "when": "nosuch"},
                {"name": "c", "weight": "heavy", "when": "b"},
                {"name": "d", "when": "neither"},
                {"name": "e", "requirement": "x", "when": "d"},
            ]
        )
    told = {(fault.path, fault.message.split(";")[0]) for fault in caught.value.faults}
    assert ("[1].name", "the name 'a' is already used by an earlier criterion") in told
    assert ("[2].when", "unknown criterion 'nosuch'") in told
    assert ("[4].when", "unknown criterion 'neither'") in told
    assert any(path == "[3].weight" for path, _ in told)
    assert not any(path in ("[3].when", "[5].when") for path, _ in told)


def test_a_group_alone_is_a_rubric() -> None:
    """`{"name", "weight", "criteria"}` is read, kept and scored as the one group of a rubric."""
    given = {"name": "style", "weight": 3, "criteria": [{"name": "clear", "requirement": "x"}]}
    rubric = ar.Rubric.from_dict({**given, "guidelines": "Be strict."})
    assert rubric.names == ("clear",) or list(rubric.names) == ["clear"]
    assert rubric.guidelines == "Be strict."
    assert ar.Rubric.from_dict(rubric.to_dict()) == rubric
    assert rubric == ar.Rubric.from_dict({"criteria": [given], "guidelines": "Be strict."})
    with pytest.raises(RubricError, match="a group must have a name"):
        ar.Rubric.from_dict({"weight": 3, "criteria": given["criteria"]})


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_plain_labels_are_options_in_files(tmp_path: Path, suffix: str) -> None:
    """Files and the JSON schema take them; a nominal answer enters no score, an ordinal one does."""
    given = [
        {"name": "tone", "requirement": "Which tone?", "options": ["warm", "cold", "no"]},
        {
            "name": "detail",
            "requirement": "How much?",
            "options": ["none", "some", "all"],
            "scale_type": "ordinal",
        },
    ]
    source = tmp_path / f"rubric{suffix}"
    source.write_text(json.dumps(given), encoding="utf-8")  # JSON is YAML, too
    rubric = ar.Rubric.from_file(source)
    for ending in (suffix, ".toml"):
        written = tmp_path / f"written{ending}"
        rubric.to_file(written)
        assert ar.Rubric.from_file(written) == rubric
    assert rubric.to_dict()["criteria"][0]["options"] == ["warm", "cold", "no"]
    for form in (given, rubric.to_dict()):
        jsonschema.validate(form, ar.Rubric.json_schema())
        assert ar.Rubric.from_dict(form) == rubric
    said = {"tone": "cold", "detail": "some"}
    report = rubric.grade_sync("x", ar.CriterionGrader(judges=[lambda one: said[str(one.criterion.name)]]))
    assert report.score == 0.5
    tone = report.per_criterion[0]
    assert (tone.decision.answer and tone.decision.answer.label, tone.score_value) == ("cold", None)
    alone = ar.Rubric([rubric[0]]).grade_sync("x", ar.CriterionGrader(judges=[lambda one: "warm"]))
    assert alone.score is None
    with pytest.raises(RubricError, match=r"\[0\]\.options\[1\]: an option must be a label .*; got 5"):
        ar.Rubric.from_dict([{"requirement": "x", "options": ["a", 5]}])


@pytest.mark.parametrize(
    "criterion",
    [
        ar.PassFailCriterion(name="a", requirement="It is short."),
        ar.LikertCriterion(
            requirement="Kind?",
            scale=[ar.LikertItem(val=1, description="no"), ar.LikertItem(val=2, description="yes")],
        ),
        ar.NumericalRatingCriterion(requirement="Clear?", min_value=0.0, max_value=10.0),
        ar.NarrativeCriterion(requirement="Say why."),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_criterion_alone_is_written_with_its_type(criterion: ar.BaseCriterion) -> None:
    """What it is written as is read by its class and by a rubric, with the same votes to be used again."""
    kind = type(criterion)
    written = json.loads(criterion.model_dump_json())
    assert written["type"] == criterion.kind
    assert kind.model_validate(written) == kind.model_validate(criterion.model_dump()) == criterion
    (read,) = ar.Rubric.from_dict([json.loads(criterion.model_dump_json(exclude_defaults=True))])
    assert read.with_name("x") == criterion.with_name("x")
    assert read.with_name("x").vote_fields() == criterion.with_name("x").vote_fields()
    with pytest.raises(ValueError, match=r"type of a .* must be"):
        kind.model_validate({**written, "type": "checklist"})


def test_enumerations_are_read_in_any_case() -> None:
    """The seeds' `SKIP`, `ZERO`, `PARTIAL` and `FAIL` are the strategies."""
    for name in ("SKIP", "ZERO", "PARTIAL", "FAIL"):
        assert ar.CannotAssessConfig(strategy=name).strategy is ar.CannotAssessStrategy[name]
        assert ar.CannotAssessStrategy(name) is ar.CannotAssessStrategy[name]
    assert ThinkingLevel("HIGH") is ThinkingLevel.HIGH
    assert ar.CriterionVerdict("cannot_assess") is ar.CriterionVerdict.CANNOT_ASSESS
    with pytest.raises(ValueError, match="IGNORE"):
        ar.CannotAssessStrategy("IGNORE")


def test_compute_metrics_of_a_result_shows_its_parameters() -> None:
    """They are those of the function, with the same defaults."""
    method = inspect.signature(ar.EvalResult.compute_metrics).parameters
    function = inspect.signature(compute_metrics).parameters
    options = [one for one in function.values() if one.kind is one.KEYWORD_ONLY]
    assert options
    assert all(method[one.name].default == one.default for one in options)
    assert not any(one.kind is one.VAR_KEYWORD for one in method.values())


def test_figures_are_found_by_criterion() -> None:
    """`per_criterion` of metrics takes positions and names; an unknown name says which there are."""
    found = compute_metrics(
        run([report(BINARY, "MET"), report(ORDINAL, "low")]),
        labelled([BINARY, ORDINAL], {"clear": "MET", "depth": "low"}),
    )
    assert found.per_criterion["depth"] is found.per_criterion[1]
    assert found.per_criterion[:1] == [found.per_criterion["clear"]]
    with pytest.raises(KeyError, match=r"'nosuch'; available: clear, depth"):
        found.per_criterion["nosuch"]
    assert str(found) == found.summary()


def test_a_report_is_readable() -> None:
    """`print(report)` shows criteria, reasons and the score; criteria are found by name."""
    grader = ar.CriterionGrader(judges=[lambda request: {"verdict": "MET", "reason": "Short words."}])
    graded = RUBRIC.grade_sync("a text", grader)
    assert graded.per_criterion["kind"] is graded.report[1]
    text = str(graded)
    assert text == graded.summary()
    assert "clear" in text and "MET" in text and "Short words." in text and "score" in text
    assert "EnsembleCriterionReport(" not in text


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_csv_with_semicolons_is_read(tmp_path: Path, delimiter: str) -> None:
    """Spreadsheets of many languages write semicolons; commas inside quotes do not count."""
    path = tmp_path / "d.csv"
    rows = [["id", '"submission"', '"meta.note, short"'], ["a", '"Well, yes; or no"', "n"]]
    path.write_text("\r\n".join(delimiter.join(row) for row in rows), encoding="utf-8")
    dataset = ar.RubricDataset.from_file(path, rubric=RUBRIC)
    assert dataset[0].submission == "Well, yes; or no"
    assert dataset.item_id(0) == "a"


@pytest.mark.parametrize("suffix", [".xlsx", ".xls", ".ods"])
def test_a_spreadsheet_is_to_be_saved_as_csv(tmp_path: Path, suffix: str) -> None:
    """The error says what to do."""
    path = tmp_path / f"d{suffix}"
    path.write_bytes(b"PK")
    with pytest.raises(FileError, match="save the file as CSV"):
        ar.RubricDataset.from_file(path)
