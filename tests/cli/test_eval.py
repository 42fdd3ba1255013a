"""`autorubric eval` and `autorubric metrics`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from autorubric.cli.runs import new_run_name
from tests.cli.conftest import LABELS, RUBRIC, TEXTS, Cli, write_votes
from tests.runs.runs import as_if_killed
from tests.servers.fixtures import OpenAIServer

RUN_KEYS = {
    *("experiment_name", "experiment_dir", "total_items", "successful_items", "failed_items"),
    *("partly_scored_items", "unfinished_items", "verdicts"),
    *("mean_score", "tokens", "cost", "calls_saved", "stopped", "seconds", "notices", "items"),
}


def test_a_dataset_is_graded_into_a_folder(cli: Cli, dataset: str) -> None:
    """The summary says how many items have a score and where the run lies, stderr how to measure it."""
    done = cli("eval", dataset, "--judge", "lexical", "--name", "first", "--runs-dir", "runs")
    assert done.code == 0
    assert "Run first" in done.out
    assert str(Path("runs/first")) in done.out
    assert f"autorubric metrics {Path('runs/first')}" in done.err
    assert Path("runs/first").is_dir()


def test_recorded_votes_go_round(cli: Cli, dataset: str, votes: str) -> None:
    """A recorded rater that gives the labels scores as the labels do, and its figures are perfect."""
    judge = f"recorded:{votes}#right"
    done = cli("eval", dataset, "--judge", judge, "--name", "right", "--json")
    assert done.code == 0
    assert set(done.json) == RUN_KEYS
    assert [(one["id"], one["error"]) for one in done.json["items"]] == [(name, None) for name in TEXTS]
    assert [one["score"] for one in done.json["items"]] == pytest.approx([1, 0, 0, 1])
    assert done.json["mean_score"] == pytest.approx(0.5)
    measured = cli("metrics", done.json["experiment_dir"], "--json")
    assert measured.code == 0
    assert set(measured.json) == {"run", "verdicts", "metrics"}
    assert measured.json["metrics"]["criterion_accuracy"] == 1.0
    assert measured.json["metrics"]["mean_kappa"] == 1.0


def test_metrics_of_each_judge_with_intervals(cli: Cli, dataset: str, votes: str) -> None:
    """`--per-judge` gives the figures of each, `--bootstrap` intervals; both also as tables."""
    judges = ("--judge", f"recorded:{votes}#right", "--judge", f"recorded:{votes}#wrong")
    cli("eval", dataset, *judges, "--name", "two")
    found = cli("metrics", "experiments/two", "--per-judge", "--bootstrap", "--json").json["metrics"]
    assert set(found["per_judge"]) == {"right", "wrong"}
    assert found["bootstrap"]["n_bootstrap"] == 1000
    shown = cli("metrics", "experiments/two", "--per-judge")
    assert shown.code == 0
    assert "capital" in shown.out and "wrong" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 100


def test_metrics_against_other_labels(cli: Cli, dataset: str, votes: str, tmp_path: Path) -> None:
    """`--dataset` measures the same run against labels given later."""
    cli("eval", dataset, "--judge", f"recorded:{votes}#right", "--name", "right")
    content = json.loads((tmp_path / dataset).read_text(encoding="utf-8"))
    for item in content["items"]:
        item["ground_truth"]["capital"] = "MET"
    (tmp_path / "later.json").write_text(json.dumps(content), encoding="utf-8")
    found = cli("metrics", "experiments/right", "--dataset", "later.json", "--json").json["metrics"]
    assert found["criterion_accuracy"] == pytest.approx((0.5 + 1 + 1) / 3)


def test_a_supervised_judge_is_trained_on_a_dataset(cli: Cli, dataset: str) -> None:
    """`supervised:TRAIN` learns from a dataset file and judges."""
    done = cli("eval", dataset, "--judge", f"supervised:{dataset}", "--name", "learnt", "--json")
    assert done.code == 0
    assert done.json["successful_items"] == 4


def test_a_rubric_may_be_given_for_a_table(cli: Cli, rubric: str, tmp_path: Path) -> None:
    """A CSV has no rubric of its own; `--rubric` gives one. Without labels, metrics are not offered."""
    (tmp_path / "texts.csv").write_text("id,submission\na,Paris\n", encoding="utf-8")
    done = cli("eval", "texts.csv", "--rubric", rubric, "--judge", "lexical", "--name", "table")
    assert done.code == 0
    assert "autorubric metrics" not in done.err
    refused = cli("eval", "texts.csv", "--judge", "lexical", "--name", "none")
    assert refused.code == 2
    assert "rubric" in refused.err


def test_a_run_without_a_name_gets_one(cli: Cli, dataset: str) -> None:
    """The name is made from the dataset's file."""
    done = cli("eval", dataset, "--judge", "lexical", "--json")
    assert done.json["experiment_name"].startswith("texts-20")


@pytest.mark.parametrize(
    ("stem", "begins"), [("my texts (1)", "my-texts-1-"), ("...", "run-"), ("ä", "run-")]
)
def test_made_names_are_plain(stem: str, begins: str, tmp_path: Path) -> None:
    """Whatever a file is called, a folder may have the name, and no run has it yet."""
    made = new_run_name(stem, tmp_path)
    assert made.startswith(begins)
    (tmp_path / made).mkdir()
    assert new_run_name(stem, tmp_path) != made


def test_a_changed_dataset_is_refused_and_may_be_judged_anew(cli: Cli, dataset: str, tmp_path: Path) -> None:
    """A run of that name with another text is refused, in the command line's terms, or judged anew."""
    call = ("eval", dataset, "--judge", "lexical", "--name", "one")
    assert cli(*call).code == 0
    text = (tmp_path / dataset).read_text(encoding="utf-8").replace("Paris.", "Rome.")
    (tmp_path / dataset).write_text(text, encoding="utf-8")
    refused = cli(*call)
    assert refused.code == 2
    assert "submission changed" in refused.err
    assert "--on-mismatch 'rejudge'" in refused.err and "another --name" in refused.err
    again = cli(*call, "--on-mismatch", "rejudge", "--json")
    assert again.code == 0
    assert "no longer valid" in again.json["notices"][0] and "no longer valid" in again.err
    assert cli(*call, "--on-mismatch", "sometimes").code == 2


@pytest.fixture
def unreadable(tmp_path: Path) -> str:
    """A judge whose votes on all items but `a` cannot be read."""
    spoiled = dict.fromkeys(LABELS["a"], "INVALID")
    found = {("one", item): labels if item == "a" else spoiled for item, labels in LABELS.items()}
    write_votes(tmp_path / "spoiled.csv", found)
    return "recorded:spoiled.csv"


def test_items_that_fail_are_told_and_fail_the_gate(cli: Cli, dataset: str, unreadable: str) -> None:
    """However high the mean of the others: what could not be judged is named, and the exit code says so."""
    gate = ("--fail-under", "0.0")
    done = cli("eval", dataset, "--judge", unreadable, "--name", "some", "--json", *gate)
    assert done.code == 3
    assert (done.json["successful_items"], done.json["failed_items"]) == (1, 3)
    assert "item 'b': " in done.err


def test_many_failures_are_cut_short(cli: Cli, rubric: str, tmp_path: Path, votes: str) -> None:
    """Of many items with errors the first few are told; a run without any score ends with 3."""
    rows = "".join(f"{number},Paris\n" for number in range(9))
    (tmp_path / "texts.csv").write_text(f"id,submission\n{rows}", encoding="utf-8")
    judge = f"recorded:{votes}#right"
    done = cli("eval", "texts.csv", "--rubric", rubric, "--judge", judge, "--name", "none")
    assert done.code == 3
    assert done.err.count("item '") == 5
    assert "and 4 more" in done.err


def test_fail_fast_ends_with_the_first_failure(cli: Cli, dataset: str, unreadable: str) -> None:
    """`--fail-fast` ends with 3, names the item, and says how to go on."""
    done = cli("eval", dataset, "--judge", unreadable, "--name", "fast", "--fail-fast")
    assert (done.code, done.out) == (3, "")
    assert "item 'b' failed" in done.err or "item 'c' failed" in done.err or "item 'd' failed" in done.err
    assert "--name 'fast'" in done.err


@pytest.mark.parametrize(("least", "code"), [("0.5", 0), ("0.51", 1)])
def test_a_mean_below_the_least_exits_with_one(
    cli: Cli, dataset: str, votes: str, least: str, code: int
) -> None:
    """`--fail-under` is for the mean score."""
    judge = f"recorded:{votes}#right"
    assert cli("eval", dataset, "--judge", judge, "--name", "x", "--fail-under", least).code == code


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nope.json", "--judge", "lexical"], "nope.json"),
        (["texts.json", "--judge", "lexical", "--name", "../out"], "../out"),
        (["texts.json", "--judge", "lexical", "--rubric", "nope.yaml"], "nope.yaml"),
        (["texts.json", "--judge", "lexical", "--runs-dir", "rubric.yaml/in"], "rubric.yaml"),
    ],
)
def test_faulty_input_exits_with_two(cli: Cli, dataset: str, arguments: list[str], told: str) -> None:
    """What is wrong is named on stderr, without a traceback."""
    done = cli("eval", *arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert "Traceback" not in done.err


def test_metrics_of_what_is_no_run(cli: Cli, tmp_path: Path) -> None:
    """A folder that holds no run is named, and the exit code is 2."""
    done = cli("metrics", "nowhere", "--json")
    assert (done.code, done.out) == (2, "")
    assert "nowhere" in done.err


def test_metrics_of_an_unfinished_run_say_so(cli: Cli, dataset: str, unreadable: str) -> None:
    """Figures of a run that was not finished come with a notice."""
    cli("eval", dataset, "--judge", unreadable, "--name", "cut", "--fail-fast")
    folder = Path("experiments/cut")
    as_if_killed(folder)
    for name in ("items.jsonl", "votes.jsonl"):
        first = (folder / name).read_bytes().splitlines(keepends=True)[0]
        (folder / name).write_bytes(first)
    done = cli("metrics", "experiments/cut")
    assert "are unfinished" in done.err


def test_metrics_without_labels_exit_with_two(cli: Cli, tmp_path: Path) -> None:
    """Without labels there is nothing to measure against."""
    (tmp_path / "r.yaml").write_text(RUBRIC, encoding="utf-8")
    (tmp_path / "texts.csv").write_text("id,submission\na,Paris\n", encoding="utf-8")
    cli("eval", "texts.csv", "--rubric", "r.yaml", "--judge", "lexical", "--name", "bare")
    done = cli("metrics", "experiments/bare")
    assert (done.code, done.out) == (2, "")
    assert "--dataset" in done.err


def test_a_dry_run_sends_and_writes_nothing(cli: Cli, dataset: str) -> None:
    """What it would take, as a table or one object; there is no run folder afterwards."""
    call = ("eval", dataset, "--judge", "gpt-6-luna", "--judge", "lexical", "--dry-run")
    shown = cli(*call)
    assert shown.code == 0
    assert "Estimate for 4 items" in shown.out and "gpt-6-luna" in shown.out
    found = cli(*call, "--json").json
    assert found["calls"] == found["judges"][0]["calls"] == found["judges"][1]["votes"]
    assert found["cost"] > 0
    assert not Path("experiments").exists()


def test_a_dry_run_of_a_stored_run_counts_what_is_left(cli: Cli, dataset: str) -> None:
    """Votes that are there are not counted again."""
    call = ("eval", dataset, "--judge", "lexical", "--name", "one")
    assert cli(*call).code == 0
    found = cli(*call, "--dry-run", "--json").json
    assert (found["votes"], found["calls"]) == (0, 0)
    assert found["stored_votes"] > 0


def test_a_run_stopped_at_its_calls_says_how_to_go_on(
    cli: Cli, dataset: str, openai_server: OpenAIServer
) -> None:
    """Exit code 130, what is finished in the object, and the flag in words."""
    call = ("eval", dataset, "--judge", "openai/m", "--api-base", openai_server.api_base, "--name", "one")
    stopped = cli(*call, "--max-calls", "3", "--json")
    assert stopped.code == 130
    assert stopped.json["stopped"] == "max_calls"
    assert len(openai_server.log()) == 3
    assert "Stopped at --max-calls. To resume, run the same command with --name one." in stopped.err
    assert any("to resume, run again with --name 'one'" in told for told in stopped.json["notices"])
    done = cli(*call, "--json")
    assert done.code == 0
    assert done.json["stopped"] is None


def test_a_cost_that_cannot_be_kept_is_refused(cli: Cli, dataset: str, openai_server: OpenAIServer) -> None:
    """The price of a server of one's own is not known: nothing is sent, and the model is named."""
    call = ("eval", dataset, "--judge", "openai/m", "--api-base", openai_server.api_base, "--max-cost", "1")
    refused = cli(*call)
    assert refused.code == 2
    assert "openai/m" in refused.err
    assert openai_server.log() == []
    assert cli(*call[:-1], "0").code == 2


def test_an_unknown_cost_has_its_reason(cli: Cli, dataset: str, openai_server: OpenAIServer) -> None:
    """The summary of a run names the model without a price, and says where no judge is a model."""
    call = ("eval", dataset, "--judge", "openai/m", "--api-base", openai_server.api_base, "--name", "one")
    for shown in (cli(*call), cli("show", "experiments/one")):
        assert re.search(r"cost in US dollars +unknown \(no price for openai/m\)", shown.out), shown.out
    shown = cli("eval", dataset, "--judge", "lexical", "--name", "two")
    assert re.search(r"cost in US dollars +none reported \(the panel has no models\)", shown.out), shown.out
