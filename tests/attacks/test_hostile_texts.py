"""Hostile texts through the whole line: file, judges, run folder, reopened, command line, exports."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from autorubric import (
    Criterion,
    CriterionGrader,
    DataItem,
    EvalResult,
    JudgeReply,
    JudgeSpec,
    LexicalJudge,
    LLMConfig,
    Rubric,
    RubricDataset,
    evaluate_sync,
)
from autorubric.errors import ArgumentError, AutorubricError, DatasetError, FileError
from autorubric.judges.prompts import neutralise
from autorubric.metrics import spreadsheet_safe
from tests.attacks.hostile import RAW, TEXTS
from tests.cli.conftest import Cli
from tests.servers.fixtures import OpenAIServer

KEPT = {name: text for name, text in TEXTS.items() if name != "lone surrogate"}
FORMATS = ("json", "jsonl", "yaml", "csv", "parquet")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def rubric_of(text: str = "") -> Rubric:
    """A rubric with the text wherever a rubric takes one."""
    return Rubric(
        [
            Criterion(name="capital", requirement=f"It names Paris. {text}", weight=4),
            Criterion(name="rude", requirement=f"It is rude. {text}", weight=-2),
        ],
        guidelines=f"Be fair. {text}",
    )


def dataset_of(text: str) -> RubricDataset:
    """A labelled dataset with the text wherever a dataset takes one; rubrics take no half characters."""
    whole = "".join(letter for letter in text if not "\ud800" <= letter <= "\udfff")
    truth = {"capital": "MET", "rude": "UNMET"}
    fields: dict[str, Any] = {"prompt": whole, "reference_submission": whole, "metadata": {"note": text}}
    items = [
        DataItem(id="a", submission=text, ground_truth=truth, **fields),
        DataItem(id="b", submission={"thinking": text, "output": f"{text} Paris."}, ground_truth=truth),
        DataItem(id="c", submission="Lyon.", ground_truth={"capital": "UNMET", "rude": "MET"}),
    ]
    return RubricDataset(name="texts", rubric=rubric_of(whole), items=items)


def echo(request: Any) -> JudgeReply:
    """A judge that gives the text back as its reason."""
    return JudgeReply(answer="MET", reason=request.submission.text or "")


def grader_over(server: OpenAIServer) -> CriterionGrader:
    """Two judges in this process, and a model behind a server."""
    config = LLMConfig(
        model="openai/m", api_base=server.api_base, api_key="k", transport="openai_compatible", max_retries=0
    )
    return CriterionGrader(judges=[LexicalJudge(), echo, JudgeSpec(config, "model")])


def judged(dataset: RubricDataset, grader: CriterionGrader, folder: Path) -> EvalResult:
    """The dataset, graded into the run `run`."""
    return evaluate_sync(dataset, grader, experiment_name="run", experiments_dir=folder, show_progress=False)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", KEPT)
def test_dataset_files_lose_nothing(name: str, form: str, tmp_path: Path) -> None:
    """What is written comes back as it was, formulas in CSV cells too; only NUL may be refused in CSV."""
    text = KEPT[name]
    items = [DataItem(id="a", submission=text, prompt=text, reference_submission=f"x{text}")]
    path = tmp_path / f"d.{form}"
    RubricDataset(items=items).to_file(path)
    backs = [RubricDataset.from_file(path)]
    if form in ("jsonl", "parquet"):
        backs.append(RubricDataset.stream(path))
    for back in backs:
        assert back[0].submission == text
        assert (back.get_item_prompt(0), back.get_item_reference_submission(0)) == (text, f"x{text}")


@pytest.mark.parametrize("form", FORMATS)
def test_half_a_character_is_refused_by_files(form: str, tmp_path: Path) -> None:
    """No file can carry it, so writing it is a typed error, and reading it too; nothing is left behind."""
    dataset = RubricDataset(items=[DataItem(id="a", submission=TEXTS["lone surrogate"])])
    path = tmp_path / f"d.{form}"
    with pytest.raises((ArgumentError, FileError)):
        dataset.to_file(path)
    assert not list(tmp_path.iterdir())


def test_escaped_half_a_character_is_refused_on_reading(tmp_path: Path) -> None:
    r"""JSON and YAML that write it as `\ud800` are refused with the reason."""
    for form, content in (("json", '[{"submission": "\\ud800"}]'), ("yaml", '- submission: "\\ud800"\n')):
        path = tmp_path / f"d.{form}"
        path.write_text(content, encoding="utf-8")
        with pytest.raises(DatasetError, match=r"an unpaired surrogate|invalid YAML"):
            RubricDataset.from_file(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_the_whole_line(name: str, tmp_path: Path, cli: Cli, openai_server: OpenAIServer) -> None:
    """Judged, stored, opened again and shown: scores stay, the texts stay, and no raw escape is shown."""
    text = TEXTS[name]
    payload = {"verdict": "MET", "reason": f"Because {text}"}
    openai_server.script({"do": "answer", "content": json.dumps(payload)}, repeat="last")
    result = judged(dataset_of(text), grader_over(openai_server), tmp_path / "runs")
    assert (result.total_items, result.failed_items) == (3, 0)
    votes = [vote for report in result.get_reports() if report for one in report.report for vote in one.votes]
    assert {vote.status for vote in votes} == {"answered"}
    sent = [entry["body"]["messages"][1]["content"] for entry in openai_server.log()]
    # UTF-8 has no half characters; a question mark stands for each.
    carried = neutralise(text).encode("utf-8", "replace").decode("utf-8")
    assert any(carried in one for one in sent)

    again = EvalResult.from_experiment(tmp_path / "runs" / "run")
    assert again.get_scores() == result.get_scores()
    assert again.dataset[0].submission == text
    assert [report and report.report[0].final_reason for report in again.get_reports()] == [
        report and report.report[0].final_reason for report in result.get_reports()
    ]
    assert not RAW.search(again.summary())

    for command in (
        ("metrics", "runs/run", "--per-judge"),
        ("judges", "compare", "runs/run"),
        ("judges", "audit", "runs/run", "--only", "report", "--only", "bias"),
        ("show", "runs/run"),
        ("show", "runs/run", "--item", "a", "--prompts"),
        ("compare", "runs/run", "runs/run"),
        ("score", "runs/run", "--aggregation", "unanimous"),
        ("rejudge", "runs/run", "--judge", "lexical", "--name", "again"),
        ("merge", "runs/run", "--out", "runs/merged"),
        ("export", "runs/run", "--format", "markdown"),
        ("validate", "runs/run/dataset.jsonl"),
    ):
        done = cli(*command)
        # No file carries half a character, and a text without a character has nothing to judge.
        refused = name in ("lone surrogate", "blank") and command[0] == "validate"
        assert done.code == (2 if refused else 0), done.err
        assert not RAW.search(done.out + done.err)


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_commands_show_no_raw_escape(
    name: str, tmp_path: Path, cli: Cli, openai_server: OpenAIServer
) -> None:
    """`grade`, `eval` and `redteam` show names, reasons and errors without steering the terminal."""
    text = KEPT[name]
    payload = {"verdict": "MET", "reason": f"Because {text}"}
    openai_server.script({"do": "answer", "content": json.dumps(payload)}, repeat="last")
    items = [DataItem(id=f"id {text}", submission=f"Lyon {text}"), DataItem(id="b", submission=None)]
    RubricDataset(name=f"set {text}", rubric=rubric_of(text), items=items).to_file("d.json")
    rubric_of(text).to_file("r.json")
    Path("text.txt").write_text(f"Paris {text}", encoding="utf-8")
    model = ("--judge", "hosted_vllm/m", "--api-base", openai_server.api_base)
    calls = [
        ("grade", "--file", "text.txt", "--rubric", "r.json", *model),
        ("eval", "d.json", *model, "--judge", "lexical", "--name", "one"),
        ("redteam", "d.json", "--judge", "lexical", "--attacks", "hidden,encoded"),
        ("grade", "text", "--rubric", f"no\x1b[2J{name}.yaml", "--judge", "lexical"),
    ]
    for call in calls:
        done = cli(*call)
        assert not RAW.search(done.out + done.err), call


@pytest.mark.parametrize("name", KEPT)
def test_json_output_is_plain_ascii(name: str, cli: Cli) -> None:
    """What `--json` prints is ASCII, and gives the texts back as they are."""
    text = KEPT[name]
    Path("text.txt").write_text(f"Paris {text}", encoding="utf-8")
    rubric_of(text).to_file("r.json")
    done = cli("grade", "--file", "text.txt", "--rubric", "r.json", "--judge", "lexical", "--json")
    assert done.out.isascii() and not RAW.search(done.out)
    assert [one["name"] for one in done.json["criteria"]] == ["capital", "rude"]


def test_tables_for_spreadsheets_hold_no_formula(tmp_path: Path) -> None:
    """Texts that begin a formula are marked in the CSV of figures and in a safe votes table; numbers stay."""
    names = [
        text
        for key, text in KEPT.items()
        if key in ("formula", "formula plus", "formula at", "formula minus")
    ]
    rubric = Rubric([Criterion(name=name, requirement="It names Paris.") for name in names])
    truth = dict.fromkeys(names, "MET")
    items = [
        DataItem(id=f"={number}", submission=text, ground_truth=truth)
        for number, text in enumerate(("Paris.", "Lyon.", "Paris!"))
    ]
    result = judged(
        RubricDataset(rubric=rubric, items=items),
        CriterionGrader(judges=[LexicalJudge(), JudgeSpec(echo, "@echo")]),
        tmp_path,
    )
    path = tmp_path / "metrics.csv"
    result.compute_metrics(per_judge=True).to_file(path)
    figures = list(csv.reader(path.open(encoding="utf-8", newline="")))
    table = result.votes_table()
    safe = list(csv.reader(io.StringIO(spreadsheet_safe(table).to_csv(index=False))))
    for rows in (figures, safe):
        assert len(rows) > 4
        assert [cell for row in rows for cell in row if cell.startswith(FORMULA) and not _number(cell)] == []
        assert any(cell.startswith("'=") for row in rows for cell in row)
    # The table itself is not touched, so that it can be read again.
    assert f"={0}" in set(table["item_id"])
    numeric = table.select_dtypes("number")
    assert numeric.equals(spreadsheet_safe(table)[numeric.columns])


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "..",
        ".",
        "",
        "/tmp/x",
        "a/b",
        "a\\b",
        "C:x",
        "~",
        "x\x00y",
        "x\ny",
        "con",
        "NUL.txt",
        "a" * 200,
        " x",
        "x ",
        "x.",
        "\u202ex",
        "．．",
        "x\x1b[2J",
        "-rf",
        "$HOME",
        "*",
    ],
)
def test_run_names_lead_nowhere(name: str, tmp_path: Path, cli: Cli) -> None:
    """A name that could leave the folder of runs, or is none, is refused, and nothing is written."""
    folder = tmp_path / "inside" / "runs"
    with pytest.raises(ArgumentError, match="experiment_name"):
        evaluate_sync(
            dataset_of("x"),
            CriterionGrader(judges=[LexicalJudge()]),
            experiment_name=name,
            experiments_dir=folder,
            show_progress=False,
        )
    assert not (tmp_path / "inside").exists()


@pytest.mark.parametrize("name", ["../../evil", "/etc/x", "\x00", "con", "a/b\\c", "\u202e", ""])
def test_made_run_names_are_plain(name: str, tmp_path: Path) -> None:
    """A run named after its dataset stays in the folder of runs."""
    dataset = RubricDataset(name=name, rubric=rubric_of(), items=[DataItem(submission="Paris.")])
    result = evaluate_sync(
        dataset,
        CriterionGrader(judges=[LexicalJudge()]),
        experiments_dir=tmp_path / "runs",
        show_progress=False,
    )
    assert result.experiment_dir.parent == tmp_path / "runs"
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_dataset_rubrics_lead_nowhere(tmp_path: Path) -> None:
    """A dataset cannot name a rubric outside its folder, by dots, by root or by a link."""
    (tmp_path / "secret.yaml").write_text("- requirement: x\n", encoding="utf-8")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    for name in (
        "../secret.yaml",
        str(tmp_path / "secret.yaml"),
        "link.yaml",
        "a/../../secret.yaml",
        "x\x00.yaml",
    ):
        path = inside / "d.json"
        path.write_text(json.dumps({"rubric": name, "items": [{"submission": "x"}]}), encoding="utf-8")
        with pytest.raises(AutorubricError):
            RubricDataset.from_file(path)


@pytest.mark.parametrize("before", ["", " ", "\u3000", "\u200e", "\x00", "\x0b", "\u2060\u2003"], ids=ascii)
def test_formulas_are_marked_wherever_a_table_has_texts(before: str) -> None:
    """In cells and in the names of columns and rows, also behind what nobody sees; other texts stay."""
    formula, other = f"{before}=1+1", f"{before}a=1"
    table = pd.DataFrame({formula: [formula], other: [other]}, index=pd.Index([formula], name=formula))
    written = list(csv.reader(io.StringIO(spreadsheet_safe(table).to_csv(), newline="")))
    assert written == [[f"'{formula}", f"'{formula}", other], [f"'{formula}", f"'{formula}", other]]
