"""`autorubric annotate`, `autorubric labels export` and `autorubric labels merge`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import LABELS, TEXTS, Cli


def write_labels(path: Path, rater: str, changed: dict[tuple[str, str], str] | None = None) -> str:
    """The labels of all items as a rater saves them."""
    rows = [
        {
            "item_id": item,
            "criterion": name,
            "rater": rater,
            "value": (changed or {}).get((item, name), value),
            "time": "2026-01-01T00:00:00Z",
        }
        for item, labels in LABELS.items()
        for name, value in labels.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in [{"format": 1}, *rows]), encoding="utf-8")
    return path.name


def test_annotate(cli: Cli, dataset: str, tmp_path: Path) -> None:
    """One file is written, and said on standard error alone."""
    done = cli("annotate", dataset, "-o", "page.html", "--title", "Label these", "--seed", "7")
    assert (done.code, done.out) == (0, "")
    assert "Wrote page.html with 4 items" in done.err
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<title>Label these</title>" in text
    assert '"seed":7' in text
    assert list(tmp_path.glob("page*")) == [tmp_path / "page.html"]


def test_annotate_takes_a_rubric(cli: Cli, rubric: str, tmp_path: Path) -> None:
    """For a dataset that has none of its own; without one the message says so."""
    (tmp_path / "d.jsonl").write_text('{"submission": "x"}\n', encoding="utf-8")
    done = cli("annotate", "d.jsonl", "-o", "page.html")
    assert done.code == 2
    assert "neither item '0' nor the dataset has a rubric" in done.err
    assert cli("annotate", "d.jsonl", "--rubric", rubric, "-o", "page.html").code == 0


def test_labels_come_back_with_agreement(cli: Cli, dataset: str, tmp_path: Path) -> None:
    """Two raters' files become ratings, and how far they agree is printed."""
    ada = write_labels(tmp_path / "ada.jsonl", "ada")
    bob = write_labels(tmp_path / "bob.jsonl", "bob", {("a", "capital"): "UNMET", ("b", "form"): "short"})
    done = cli("labels", "merge", dataset, ada, bob, "-o", "out.json")
    assert done.code == 0
    assert "Wrote out.json with 24 labels from ada, bob" in done.err
    assert "Agreement among annotators" in done.out
    assert "capital" in done.out
    told = cli("labels", "merge", dataset, ada, bob, "-o", "out.json", "--json").json
    assert (told["labels"], told["raters"], told["notices"]) == (24, ["ada", "bob"], [])
    assert told["agreement"]["reliability"]["capital"]["percent_agreement"]["value"] == 0.75
    assert told["agreement"]["reliability"]["rude"]["percent_agreement"]["value"] == 1.0
    written = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert written["items"][0]["ratings"]["bob"]["capital"] == "UNMET"


def test_one_rater_agrees_with_nobody(cli: Cli, dataset: str, tmp_path: Path) -> None:
    """The labels are merged all the same."""
    ada = write_labels(tmp_path / "ada.jsonl", "ada")
    assert cli("labels", "merge", dataset, ada, "-o", "out.jsonl", "--json").json["agreement"] is None
    assert cli("labels", "merge", dataset, ada, "-o", "out.jsonl").out == ""


def test_disputes_are_handed_out_and_decided(cli: Cli, dataset: str, votes: str, tmp_path: Path) -> None:
    """From a run whose judges split, over a page, back into the dataset with who decided."""
    panel = ("--judge", f"recorded:{votes}#right", "--judge", f"recorded:{votes}#wrong")
    assert cli("eval", dataset, *panel, "--name", "r").code == 0
    run = str(Path("experiments") / "r")
    told = cli("labels", "export", run, "-o", "disputed.jsonl", "--split", "judges", "--json").json
    assert told == {"out": "disputed.jsonl", "items": 4, "criteria": {"capital": 4}}
    assert cli("annotate", "disputed.jsonl", "-o", "page.html").code == 0
    assert '"rude"' not in (tmp_path / "page.html").read_text(encoding="utf-8")
    eve = write_labels(tmp_path / "eve.jsonl", "eve", {("a", "capital"): "UNMET"})
    done = cli("labels", "merge", dataset, eve, "--decide", "disputed.jsonl", "-o", "decided.json")
    assert done.code == 0
    assert "skipped 8 labels of criteria that were not in dispute" in done.err
    items = json.loads((tmp_path / "decided.json").read_text(encoding="utf-8"))["items"]
    assert items[0]["ground_truth"]["capital"] == "UNMET"
    decided = items[0]["metadata"]["adjudicated"]["capital"]
    assert (decided["by"], decided["before"]) == ("eve", "MET")
    assert decided["votes"] == {"judges": {"right": "MET", "wrong": "UNMET"}}


def test_what_judges_get_wrong_is_exported_and_annotated(
    cli: Cli, dataset: str, votes: str, tmp_path: Path
) -> None:
    """`labels export --where wrong` has the items of `show --only wrong`; the page asks for them alone."""
    assert cli("eval", dataset, "--judge", f"recorded:{votes}#wrong", "--name", "r").code == 0
    run = str(Path("experiments") / "r")
    listed = [one["id"] for one in cli("show", run, "--only", "wrong", "--json").json["items"]]
    told = cli("labels", "export", run, "--where", "wrong", "-o", "wrong.json", "--json").json
    assert told == {"out": "wrong.json", "items": len(listed), "criteria": {"capital": 4}}
    written = json.loads((tmp_path / "wrong.json").read_text(encoding="utf-8"))["items"]
    assert [one["id"] for one in written] == listed == [*"abcd"]
    assert written[0]["metadata"]["disputed"]["capital"]["label"] == "MET"
    done = cli("labels", "export", run, "--where", "split", "--where", "lost", "-o", "none.jsonl")
    assert "with 0 items marked split or lost" in done.err
    assert cli("annotate", run, "--where", "wrong", "-o", "page.html").code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"capital"' in page and '"rude"' not in page
    eve = write_labels(tmp_path / "eve.jsonl", "eve")
    assert cli("labels", "merge", dataset, eve, "--decide", "wrong.json", "-o", "out.json").code == 0


def test_marks_are_of_a_run(cli: Cli, dataset: str, tmp_path: Path) -> None:
    """A dataset has no marks, a run's folder needs them, and they do not go with --split."""
    assert cli("eval", dataset, "--judge", "lexical", "--name", "r").code == 0
    run = str(Path("experiments") / "r")
    for arguments, said in (
        (("labels", "export", dataset, "--where", "wrong"), "requires a run"),
        (("labels", "export", run, "--where", "wrong", "--split", "judges"), "cannot be combined"),
        (("annotate", dataset, "--where", "wrong"), "is not a run folder"),
        (("annotate", run), "pass --where"),
        (("annotate", run, "--where", "wrong", "--rubric", "rubric.yaml"), "a run has its own rubric"),
    ):
        done = cli(*arguments, "-o", "out.jsonl")
        assert (done.code, said in done.err) == (2, True), done.err
    assert not (tmp_path / "out.jsonl").exists()


def test_disputes_of_a_dataset(cli: Cli, dataset: str, tmp_path: Path) -> None:
    """A file with ratings is as good as a run, for what people disagree on."""
    ada = write_labels(tmp_path / "ada.jsonl", "ada")
    bob = write_labels(tmp_path / "bob.jsonl", "bob", {("a", "capital"): "UNMET"})
    cli("labels", "merge", dataset, ada, bob, "-o", "rated.json")
    done = cli("labels", "export", "rated.json", "-o", "disputed.jsonl")
    assert "1 items in dispute (capital: 1)" in done.err
    assert cli("labels", "export", "rated.json", "-o", "d.jsonl", "--split", "judges").code == 2
    assert cli("labels", "export", dataset, "-o", "none.jsonl", "--json").json["items"] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["merge", "texts.json", "nosuch.jsonl", "-o", "o.json"],
        ["merge", "texts.json", "-o", "o.json"],
        ["export", "nosuch", "-o", "o.jsonl"],
        ["export", "texts.json", "-o", "o.jsonl", "--tolerance", "2"],
    ],
)
def test_faulty_command_lines(cli: Cli, dataset: str, arguments: list[str]) -> None:
    """They end with 2 and write nothing."""
    assert cli("labels", *arguments).code == 2
    assert not Path("o.json").exists()
    assert not Path("o.jsonl").exists()


def test_marks_that_no_item_has(cli: Cli, dataset: str, votes: str) -> None:
    """`annotate --where` names the mark that no item has, and errors name the options of the command line."""
    assert cli("eval", dataset, "--judge", f"recorded:{votes}#right", "--name", "r").code == 0
    run = str(Path("experiments") / "r")
    done = cli("annotate", run, "--where", "wrong", "--where", "lost", "-o", "page.html")
    assert done.code == 2 and f"no item in {run} is marked wrong or lost" in done.err
    done = cli("labels", "export", run, "--where", "wrong", "--split", "people", "-o", "out.jsonl")
    assert done.code == 2 and "cannot be combined with --split or --tolerance" in done.err


def write_wide(path: Path, people: dict[str, dict[tuple[str, str], str]]) -> str:
    """The labels of all items with a column for each person, and where they differ from the truth."""
    lines = [",".join(["item_id", "criterion", *people])]
    for item, labels in LABELS.items():
        for name, value in labels.items():
            cells = [changed.get((item, name), value) for changed in people.values()]
            lines.append(",".join([item, name, *cells]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path.name


def test_a_table_with_a_column_a_person_is_merged(cli: Cli, dataset: str, tmp_path: Path) -> None:
    """Wide tables give ratings as pages do, alone and with pages; empty cells are no labels."""
    bob = {("a", "capital"): "UNMET", ("b", "rude"): ""}
    wide = write_wide(tmp_path / "wide.csv", {"ada": {}, "bob": bob})
    done = cli("labels", "merge", dataset, wide, "-o", "labelled.json", "--json").json
    assert (done["labels"], done["raters"]) == (23, ["ada", "bob"])
    items = json.loads((tmp_path / "labelled.json").read_text(encoding="utf-8"))["items"]
    assert items[0]["ratings"]["bob"]["capital"] == "UNMET"
    assert "rude" not in items[1]["ratings"]["bob"]
    eve = write_labels(tmp_path / "eve.jsonl", "eve")
    both = cli("labels", "merge", dataset, wide, eve, "-o", "all.json", "--json").json
    assert (both["labels"], both["raters"]) == (35, ["ada", "bob", "eve"])
    assert both["agreement"] is not None
    refused = cli("labels", "merge", dataset, wide, "-o", "x.json", "--decide", dataset)
    assert refused.code == 2 and "--decide requires labels saved by annotation pages" in refused.err


def test_metrics_take_labels_from_a_table(cli: Cli, dataset: str, votes: str, tmp_path: Path) -> None:
    """`metrics --labels` measures a run without labels against the majority of the people in a table."""
    content = json.loads((tmp_path / dataset).read_text(encoding="utf-8"))
    for item in content["items"]:
        del item["ground_truth"]
    (tmp_path / "bare.json").write_text(json.dumps(content), encoding="utf-8")
    asked = ("--judge", f"recorded:{votes}#right", "--name", "bare", "--no-progress")
    assert cli("eval", "bare.json", *asked).code == 0
    assert cli("metrics", "experiments/bare").code == 2
    wide = write_wide(tmp_path / "wide.csv", {"ada": {}, "bob": {}, "cy": {("a", "capital"): "UNMET"}})
    found = cli("metrics", "experiments/bare", "--labels", wide, "--json").json["metrics"]
    assert found["criterion_accuracy"] == 1.0
    (tmp_path / "wide.csv").write_text("item_id,criterion,ada\na,capitol,MET\n", encoding="utf-8")
    refused = cli("metrics", "experiments/bare", "--labels", wide)
    assert refused.code == 2 and "capital" in refused.err


def test_labels_of_a_file_replace_those_stored(cli: Cli, dataset: str, votes: str, tmp_path: Path) -> None:
    """The figures are those of the file; its raters and the rows of other items are reported."""
    asked = ("--judge", f"recorded:{votes}#right", "--name", "own", "--no-progress")
    assert cli("eval", dataset, *asked).code == 0
    assert cli("metrics", "experiments/own", "--json").json["metrics"]["criterion_accuracy"] == 1.0
    lines = ["Item_ID,criterion,ada", "a,capital,UNMET", "zzz,capital,MET"]
    (tmp_path / "other.csv").write_text("\n".join(lines), encoding="utf-8")
    found = cli("metrics", "experiments/own", "--labels", "other.csv", "--json")
    assert found.json["metrics"]["criterion_accuracy"] == 0.0
    assert "labels in other.csv by: ada" in found.err
    assert "1 of 2 labels belong to items that are not in the dataset" in found.err


def test_labels_given_in_view_are_read_by_metrics(cli: Cli, dataset: str, votes: str, tmp_path: Path) -> None:
    """The last label of a cell counts; a line that is no label is an error with its number."""
    asked = ("--judge", f"recorded:{votes}#right", "--name", "own", "--no-progress")
    assert cli("eval", dataset, *asked).code == 0
    label = {"item_id": "a", "criterion": "capital", "rater": "ada"}
    lines = [json.dumps(label | {"value": value}) for value in ("UNMET", "MET")]
    file = tmp_path / "experiments/own/labels.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    found = cli("metrics", "experiments/own", "--labels", str(file), "--json").json["metrics"]
    assert (found["criterion_accuracy"], found["na_stats"]["n_cells"]) == (1.0, 1)
    file.write_text('{"format": 1}\n' + lines[0] + "\n[1]\n", encoding="utf-8")
    refused = cli("metrics", "experiments/own", "--labels", str(file))
    assert (
        refused.code == 2 and "(line 3): expected a mapping with the keys item_id, criterion" in refused.err
    )


def test_raters_are_selected(cli: Cli, dataset: str, votes: str, tmp_path: Path) -> None:
    """A column that is not a rater's is named with its first value, and is left out with --rater."""
    asked = ("--judge", f"recorded:{votes}#right", "--name", "own", "--no-progress")
    assert cli("eval", dataset, *asked).code == 0
    lines = ["item_id\tcriterion\tada\tnote\tbob"]
    for item in "abcd":
        label = LABELS[item]["capital"]
        lines.append("\t".join([item, "capital", label, f"seen {item}", "N/A" if item == "a" else label]))
    (tmp_path / "wide.tsv").write_text("\n".join(lines), encoding="utf-8")
    for call in (
        ("labels", "merge", dataset, "wide.tsv", "-o", "m.json"),
        ("metrics", "experiments/own", "--labels", "wide.tsv"),
        ("judges", "audit", "experiments/own", "--labels", "wide.tsv", "--only", "report"),
    ):
        refused = cli(*call)
        assert refused.code == 2
        assert "1 error" in refused.err and "'seen a' is not a verdict" in refused.err
        told = (
            "column or rater 'note' (4 cells, first in line 2): no value is a label. Select the others with "
        )
        assert f"{told}--rater NAME (raters= in Python)" in refused.err
        done = cli(*call, "--rater", "ada", "--rater", "bob", "--json")
        assert done.code == 0, done.err
        assert "labels in wide.tsv by: ada, bob" in done.err
    merged = cli("labels", "merge", dataset, "wide.tsv", "-o", "m.json", "--rater", "bob", "--json").json
    assert (merged["labels"], merged["raters"]) == (3, ["bob"])
    page = write_labels(tmp_path / "ada.jsonl", "ada")
    assert "requires a table" in cli("labels", "merge", dataset, page, "-o", "m.json", "--rater", "x").err
    assert "requires --labels" in cli("metrics", "experiments/own", "--rater", "ada").err


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            "l.csv",
            "item_id,ada,bob\na,MET,MET\n",
            "rubric has 3; use one row per label (item_id, criterion, ",
        ),
        ("l.csv", "item_id,ada,bob\na,MET,MET\n", "Raters found: ada, bob"),
        ("l.csv", "item_id,rater,value\na,ada,MET\n", "column 'criterion' not found; use one row per label"),
        ("l.csv", "item_id,criterion,ada,ada\na,capital,MET,MET\n", "the column 'ada' appears twice"),
        ("l.txt", "item_id,criterion,ada\na,capital,MET\n", "supported: .csv, .tsv, .jsonl"),
    ],
)
def test_tables_of_another_layout(
    cli: Cli, dataset: str, tmp_path: Path, name: str, text: str, told: str
) -> None:
    """The message says what was found and what is expected."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    refused = cli("labels", "merge", dataset, name, "-o", "m.json")
    assert refused.code == 2 and told in refused.err


@pytest.mark.parametrize(
    ("columns", "item"),
    [
        ("Conv ID,", "Conv ID"),
        ("ticket_id,", "ticket_id"),
        ("messageId,", "messageId"),
        ("essay_id,", "essay_id"),
        ("item,ticket_id", "item"),
        ("ticket_id,essay_id", "ticket_id"),
    ],
)
def test_names_of_ids_are_recognised(cli: Cli, dataset: str, tmp_path: Path, columns: str, item: str) -> None:
    """The choice is printed; the names are those of the ids in datasets."""
    rows = f"{columns},Question,Coder,Rating\na,,capital,Ada,y\nb,,capital,Ada,N\n"
    (tmp_path / "l.csv").write_text(rows, encoding="utf-8")
    done = cli("labels", "merge", dataset, "l.csv", "-o", "m.json", "--json")
    assert (done.json["labels"], done.json["raters"]) == (2, ["Ada"])
    assert f"columns of l.csv: item_id={item}, criterion=Question, rater=Coder, value=Rating" in done.err


@pytest.mark.parametrize("columns", ["essay_id,text_id", "ticket_id,message_id"])
def test_several_columns_of_ids_are_not_guessed(cli: Cli, dataset: str, tmp_path: Path, columns: str) -> None:
    """The table is refused."""
    (tmp_path / "l.csv").write_text(f"{columns},Question,Coder,Rating\na,b,capital,Ada,y\n", encoding="utf-8")
    refused = cli("labels", "merge", dataset, "l.csv", "-o", "m.json")
    assert refused.code == 2 and "column 'item_id' not found" in refused.err


def test_of_two_columns_for_one_key_none_is_chosen(cli: Cli, dataset: str, tmp_path: Path) -> None:
    """The message lists the columns; in a wide table, any name is a rater's."""
    rows = "item,question,coder,rating,score\na,capital,Ada,y,1\n"
    (tmp_path / "l.csv").write_text(rows, encoding="utf-8")
    refused = cli("labels", "merge", dataset, "l.csv", "-o", "m.json")
    assert refused.code == 2 and "column 'value' not found; use one row per label" in refused.err
    assert "Columns: item, question, coder, rating, score" in refused.err
    rows = "Item ID,Criteria,label\na,capital,t\n"
    (tmp_path / "l.csv").write_text(rows, encoding="utf-8")
    assert cli("labels", "merge", dataset, "l.csv", "-o", "m.json", "--json").json["raters"] == ["label"]


def test_a_criterion_has_one_column_of_labels(cli: Cli, dataset: str) -> None:
    """A second one is not ignored."""
    refused = cli("validate", dataset, "--truth", "capital=ada", "--truth", "capital=bob")
    assert refused.code == 2 and "--truth names capital twice" in refused.err


def test_a_table_of_other_columns_is_merged_and_audited(cli: Cli, rubric: str, tmp_path: Path) -> None:
    """`labels merge` takes the columns of `eval`, and `judges audit` the labels of a file."""
    table = "\n".join(["ticket;bot says", *(f"{name};{text}" for name, text in TEXTS.items())])
    (tmp_path / "d.csv").write_text(table, encoding="utf-8")
    columns = ("--rubric", rubric, "--id", "ticket", "--submission", "bot says")
    wide = write_wide(tmp_path / "wide.csv", {"ada": {}, "bob": {("a", "capital"): "UNMET"}})
    done = cli("labels", "merge", "d.csv", wide, *columns, "-o", "m.json", "--json")
    assert done.json["raters"] == ["ada", "bob"]
    assert "columns: id=ticket" in done.err or "submission=bot says" in done.err
    assert cli("eval", "d.csv", *columns, "--judge", "lexical", "--name", "d", "--no-progress").code == 0
    audited = cli("judges", "audit", "experiments/d", "--labels", wide, "--only", "report", "--json")
    assert audited.json["report"]["human_ceiling"] is not None
