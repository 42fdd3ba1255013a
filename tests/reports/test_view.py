"""`autorubric view`: a real process, asked over a socket and looked at in Chromium."""

from __future__ import annotations

import codecs
import csv
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from autorubric import (
    Criterion,
    CriterionGrader,
    DataItem,
    EvalResult,
    NumericalRatingCriterion,
    PassFailCriterion,
    Rubric,
    RubricDataset,
    evaluate_sync,
)
from autorubric.judges import JudgeReply, JudgeRequest
from tests.reports.conftest import Browser

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process is ended by SIGINT")

RUBRIC = Rubric(
    [
        Criterion(name="polite", requirement="It is polite.", weight=1.0),
        NumericalRatingCriterion(name="share", requirement="What share is right.", weight=1.0, max_value=100),
    ]
)
TEXTS = ("Good morning.", "No.", "Of course, gladly.", "What?")


May = Callable[[str], None]


def graded(folder: Path, dataset: RubricDataset, may: May = lambda text: None) -> EvalResult:
    """A run in `folder/run` by a judge that finds every text polite and half right, once it may."""

    def kind(request: JudgeRequest) -> JudgeReply:
        may(request.submission.text or "")
        return JudgeReply(
            answer=request.criterion.parse_truth(50 if request.criterion.name == "share" else "MET")
        )

    return evaluate_sync(
        dataset,
        CriterionGrader(judges=[kind]),
        experiment_name="run",
        experiments_dir=folder,
        show_progress=False,
        max_concurrent_items=1,
    )


def texts() -> RubricDataset:
    """Four texts without labels."""
    items = [DataItem(id=f"t{at}", submission=text) for at, text in enumerate(TEXTS)]
    return RubricDataset(rubric=RUBRIC, items=items)


@contextmanager
def viewing(*arguments: str | Path) -> Iterator[str]:
    """The address of a process of `autorubric view`; it is stopped as by Ctrl-C, and ends with 0.

    It prints no traceback.
    """
    main = "from autorubric.cli import main; main()"
    command = [sys.executable, "-c", main, "view", *map(str, arguments), "--no-browser"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            assert line.startswith("http://127.0.0.1:"), process.stderr and process.stderr.read()
            yield line
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
            assert process.stderr is not None and "Traceback" not in process.stderr.read()
        finally:
            process.kill()


def ask(url: str, path: str = "", body: Any = None, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """What the server answers: status, content and headers."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=30)
    try:
        content = None if body is None else json.dumps(body)
        given = {"Origin": f"http://{parts.netloc}", "Content-Type": "application/json", **headers}
        connection.request("GET" if body is None else "POST", parts.path + path, content, given)
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


def state(url: str) -> dict[str, Any]:
    """The run's progress as the page reads it."""
    found: dict[str, Any] = json.loads(ask(url, "state")[1])
    return found


def until(condition: Callable[[], bool]) -> None:
    """Waits until it holds, for a minute at most."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_only_this_page_reads_and_labels(tmp_path: Path) -> None:
    """Without the token, under another host name or from another page there is nothing."""
    graded(tmp_path, texts())
    label = {"item": "t0", "criterion": "polite", "value": "MET"}
    with viewing(tmp_path / "run") as url, viewing(tmp_path / "run") as other:
        assert urlsplit(url).path != urlsplit(other).path
        status, page, headers = ask(url)
        assert (status, b"polite" in page) == (200, True)
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY"
        root = url[: url.index("/", 8) + 1]
        for path in ("", "state", "x" * 32 + "/", "x" * 32 + "/state"):
            assert ask(root + path)[:2] == (404, b"Not Found")
        assert ask(url, Host="evil.example")[0] == 403
        assert ask(url, "state", Host="evil.example:80")[0] == 403
        assert ask(url, "labels", label, Origin="http://evil.example")[0] == 403
        assert ask(url, "labels", label, Origin="null")[0] == 403
        assert ask(url, "labels", label, **{"Content-Type": "text/plain"})[0] == 415
        assert ask(url, "labels", [label])[0] == 400
        assert ask(url, "labels", {**label, "value": "\ud800"})[0] == 400
        for length in (str(1 << 21), "9" * 5_000):
            assert ask(url, "labels", label, **{"Content-Length": length})[0] == 413
        assert ask(url, "other", label)[0] == 404
        assert state(url)["saved"] == 0
    assert not (tmp_path / "run" / "labels.jsonl").exists()


def test_labels_are_saved_with_who_and_when(tmp_path: Path) -> None:
    """Each label is a line of the run's folder, the last one counts, and figures follow."""
    graded(tmp_path, texts())
    with viewing(tmp_path / "run", "--rater", "ada") as url:
        for value in ("MET", "UNMET"):
            assert ask(url, "labels", {"item": "t1", "criterion": "polite", "value": value})[0] == 200
        status, content, _ = ask(url, "labels", {"item": "t1", "criterion": "polite", "value": "perhaps"})
        assert (status, "perhaps" in json.loads(content)["error"]) == (400, True)
        status, content, _ = ask(url, "labels", {"item": "t1", "criterion": "rude", "value": "MET"})
        assert (status, "polite, share" in json.loads(content)["error"]) == (400, True)
        assert ask(url, "labels", {"item": "t9", "criterion": "polite", "value": "MET"})[0] == 400
        assert state(url)["saved"] == 2
    rows = [json.loads(line) for line in (tmp_path / "run" / "labels.jsonl").read_text("utf-8").splitlines()]
    assert [row["value"] for row in rows] == ["MET", "UNMET"]
    assert {row["rater"] for row in rows} == {"ada"} and all(row["time"] and row["sha256"] for row in rows)
    # A later view shows what was labelled.
    with viewing(tmp_path / "run") as url:
        assert b"UNMET" in ask(url)[1]


@pytest.mark.parametrize("has_file", [False, True])
def test_a_stale_page_overwrites_no_newer_label(has_file: bool, tmp_path: Path) -> None:
    """Its label gets 409 and is not saved, also from the page of another process; a new page may save it."""
    graded(tmp_path, texts())
    texts().to_file(file := tmp_path / "texts.json")
    arguments = (tmp_path / "run", *(("--dataset", file) if has_file else ()))
    other_arguments = (tmp_path / "run", "--rater", "bob")

    def known(url: str) -> int:
        return int(re.findall(rb'"labels":(\d+)', ask(url)[1])[-1])

    with viewing(*arguments) as url, viewing(*other_arguments) as other:
        label: dict[str, Any] = {"item": "t1", "criterion": "polite", "value": "MET", "labels": known(url)}
        for saved in (label, {**label, "item": "t0"}, {**label, "value": "MET"}):
            assert ask(url, "labels", saved)[0] == 200
        for address in (url, other):
            status, answer, _ = ask(address, "labels", {**label, "value": "UNMET"})
            assert status == 409
            assert json.loads(answer) == {"error": "a newer label was saved (MET by viewer); reload the page"}
        assert ask(other, "labels", {**label, "value": "UNMET", "labels": known(other)})[0] == 200
        assert ask(url, "labels", label)[0] == 409
        assert ask(url, "labels", {**label, "labels": known(url)})[0] == 200
    rows = [json.loads(line) for line in (tmp_path / "run" / "labels.jsonl").read_text("utf-8").splitlines()]
    assert [row["value"] for row in rows if row["item_id"] == "t1"] == ["MET", "MET", "UNMET", "MET"]


def test_a_client_that_disconnects_leaves_no_traceback(tmp_path: Path) -> None:
    """Whether it has sent half a request, or does not read the page."""
    graded(tmp_path, texts())
    with viewing(tmp_path / "run") as url:
        parts = urlsplit(url)
        for request in (f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n", "GET / HT"):
            with socket.create_connection((parts.hostname, parts.port or 0)) as client:
                client.sendall(request.encode())
                # The connection is reset instead of being closed.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert ask(url)[0] == 200


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".yaml"])
def test_labels_go_into_the_dataset(suffix: str, tmp_path: Path) -> None:
    """A dataset file has them as its truth, and who decided."""
    texts().to_file(tmp_path / f"texts{suffix}")
    graded(tmp_path, texts())
    file = tmp_path / f"texts{suffix}"
    with viewing(tmp_path / "run", "--dataset", file, "--rater", "ada") as url:
        assert ask(url, "labels", {"item": "t1", "criterion": "polite", "value": "UNMET"})[0] == 200
        assert ask(url, "labels", {"item": "t2", "criterion": "share", "value": 90})[0] == 200
    found = RubricDataset.from_file(file)
    assert found[1].ground_truth == {"polite": "UNMET"}
    assert found[2].ground_truth == {"share": 90}
    assert found[1].metadata["adjudicated"]["polite"]["by"] == "ada"
    assert found[1].metadata["adjudicated"]["polite"]["votes"] == {"panel": "MET"}
    assert found[0] == texts()[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values", "allowed"),
    [
        ("polite", (None, True, 1, [], {"verdict": "MET"}, "perhaps"), '"MET", "UNMET"'),
        ("share", (None, True, -1, 101, float("nan"), "many"), "numbers from 0.0 to 100.0"),
        ("passes", (None, 1, "maybe", ["MET"]), "true, false"),
    ],
)
def test_values_that_are_no_label_are_refused(
    name: str, values: tuple[Any, ...], allowed: str, tmp_path: Path
) -> None:
    """Whatever JSON it is: nothing is written, and the answer names the labels."""
    rubric = Rubric([*RUBRIC, PassFailCriterion(name="passes", requirement="It passes.")])
    file = tmp_path / "texts.json"
    RubricDataset(rubric=rubric, items=texts().items).to_file(file)
    data = RubricDataset.from_file(file)
    evaluate_sync(
        data, CriterionGrader(judges=[lambda request: request.criterion.conservative()]),
        experiments_dir=tmp_path, experiment_name="run", show_progress=False,
    )  # fmt: skip
    before = file.read_bytes()
    with viewing(tmp_path / "run", "--dataset", file) as url:
        for value in values:
            status, answer, _ = ask(url, "labels", {"item": "t0", "criterion": name, "value": value})
            error = f"{name}: {json.dumps(value)} is not a label; allowed: {allowed}"
            assert (status, json.loads(answer)) == (400, {"error": error})
        assert state(url)["saved"] == 0
    assert file.read_bytes() == before
    assert not (tmp_path / "run" / "labels.jsonl").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "lead", "delimiter", "encoding"),
    [
        ("replies.csv", [], ";", "utf-8-sig"),
        ("replies.tsv", [], "\t", "utf-16"),
        ("replies.csv", [["sep=", ""]], ";", "cp1252"),
    ],
)
def test_labels_go_into_a_table(
    tmp_path: Path, name: str, lead: list[list[str]], delimiter: str, encoding: str
) -> None:
    """Of a file with its own columns only the label's cell changes; the other columns stay as they are."""
    file = tmp_path / name
    rows = [["ticket", "reply", "ok", "by"], *([f"t{at}", text, "", "é"] for at, text in enumerate(TEXTS))]
    with file.open("w", encoding=encoding, newline="") as opened:
        csv.writer(opened, delimiter=delimiter).writerows([*lead, *rows])
    data = RubricDataset.from_file(file, rubric=RUBRIC, id="ticket", submission="reply")
    graded(tmp_path, data)
    columns = ("--submission", "reply", "--truth", "polite=ok")
    with viewing(tmp_path / "run", "--dataset", file, *columns) as url:
        for place, name, value in ((1, "polite", "UNMET"), (2, "polite", "MET"), (3, "share", 70)):
            label = {"item": data.item_id(place), "criterion": name, "value": value}
            assert ask(url, "labels", label)[0] == 200
    assert file.read_bytes().startswith(codecs.BOM_UTF8)
    with file.open(encoding="utf-8-sig", newline="") as opened:
        found = list(csv.reader(opened, delimiter=delimiter))
    assert found[: len(lead)] == lead
    found = found[len(lead) :]
    assert found[0] == [*rows[0], "truth.share"]
    assert [row[2] for row in found[1:]] == ["", "UNMET", "MET", ""]
    assert [row[4] for row in found[1:]] == ["", "", "", "70"]
    assert [(row[0], row[1], row[3]) for row in found] == [(row[0], row[1], row[3]) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (",reply,polite\n0,a,\n1,b,no\n", ",reply,polite\n0,a,\n1,b,UNMET\n"),
        (
            '"reply";"";"polite"\r\n"a;""";"";""\r\n\r\n"b\n";x;',
            '"reply";"";"polite"\r\n"a;""";"";""\r\n\r\n"b\n";x;UNMET',
        ),
        ('reply,by\n"a",\n b ,"x"', 'reply,by,truth.polite\n"a",,\n b ,"x",UNMET'),
        ('reply,by\n"",""\na,x\n,\nb,\n', 'reply,by,truth.polite\n"",""\na,x,\n,\nb,,UNMET\n'),
        ("reply,by\nb,x,,\nc,y\n", "reply,by,truth.polite\nb,x,,\nc,y,UNMET\n"),
        ('reply\tby\n"a" b\t\n"c\t5"\n', 'reply\tby\ttruth.polite\n"a" b\t\t\n"c\t5"\tUNMET\n'),
        ('reply\tby\n"a" b\t\n""\t\n', 'reply\tby\ttruth.polite\n"a" b\t\t\n""\t\tUNMET\n'),
        ("reply\nok\n\n\nb\n", "reply,truth.polite\nok,\n\n\nb,UNMET\n"),
    ],
)
def test_nothing_else_in_a_csv_file_changes(before: str, after: str, mark: str, tmp_path: Path) -> None:
    """Headers without a name, quotes, blank lines, line ends and the byte order mark stay byte for byte."""
    file = tmp_path / "replies.csv"
    file.write_text(mark + before, encoding="utf-8", newline="")
    data = RubricDataset.from_file(file, rubric=RUBRIC, submission="reply")
    graded(tmp_path, data)
    with viewing(tmp_path / "run", "--dataset", file, "--submission", "reply") as url:
        label = {"item": data.item_id(1), "criterion": "polite", "value": "UNMET"}
        assert ask(url, "labels", label)[0] == 200
    assert file.read_bytes().decode("utf-8") == mark + after


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_edits_of_other_programs_are_not_overwritten(suffix: str, tmp_path: Path) -> None:
    """The label is then kept with the run alone, and the answer says so; the page goes on."""
    file = tmp_path / f"texts{suffix}"
    texts().to_file(file)
    data = RubricDataset.from_file(file, rubric=RUBRIC)
    graded(tmp_path, data)
    with viewing(tmp_path / "run", "--dataset", file) as url:
        label = {"item": data.item_id(1), "criterion": "polite", "value": "UNMET"}
        assert ask(url, "labels", label)[0] == 200
        edited = file.read_bytes() + b"\n"
        file.write_bytes(edited)
        status, answer, _ = ask(url, "labels", {**label, "value": "MET"})
        assert status == 400 and b"was changed by another program" in answer
        assert file.read_bytes() == edited
        assert ask(url)[0] == 200
    assert len((tmp_path / "run" / "labels.jsonl").read_text(encoding="utf-8").splitlines()) == 2


def test_a_run_with_votes_on_some_criteria_has_a_page(tmp_path: Path) -> None:
    """A run that was stopped in its first item."""

    evaluate_sync(
        texts(), CriterionGrader(judges=[lambda request: "MET"]), experiments_dir=tmp_path,
        experiment_name="run", show_progress=False, max_calls=1,
    )  # fmt: skip
    with viewing(tmp_path / "run") as url:
        assert ask(url)[0] == 200
        (tmp_path / "run" / "labels.jsonl").write_text(
            '[1]\n{"item_id": [], "criterion": {}}\n', encoding="utf-8"
        )
        assert ask(url)[0] in (200, 400)
        shutil.rmtree(tmp_path / "run")
        assert ask(url, "state")[0] in (200, 400)


def test_another_dataset_is_refused(tmp_path: Path) -> None:
    """Labels are not saved into a file of other items."""
    graded(tmp_path, texts())
    texts().subset(range(3)).to_file(tmp_path / "other.json")
    main = "from autorubric.cli import main; main()"
    command = [sys.executable, "-c", main, "view", "run", "--dataset", "other.json", "--no-browser"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 2
    assert "other.json does not match run; pass the dataset that was graded" in done.stderr


def test_a_run_in_progress_is_followed(tmp_path: Path, browser: Browser) -> None:
    """New items appear, in the state and on the page, without anything being pressed."""
    go_on = threading.Event()

    def may(text: str) -> None:
        if text == TEXTS[2]:
            go_on.wait(60)

    running = threading.Thread(target=graded, args=(tmp_path, texts(), may))
    running.start()
    try:
        votes = tmp_path / "run" / "items.jsonl"
        until(lambda: votes.exists() and len(votes.read_bytes().splitlines()) >= 2)
        with viewing(tmp_path / "run") as url:
            before = state(url)
            assert (before["done"], before["total"]) == (2, 4)

            def look(page: Any) -> None:
                page.wait_for_selector(".live.going")
                assert "2 of 4 items" in page.inner_text(".live")
                go_on.set()
                page.wait_for_selector(".live:not(.going)[data-done='4']")
                page.evaluate("location.hash = '#items'")
                page.wait_for_selector("text=t3")

            browser.look(url, look, served=True)
            assert state(url)["version"] > before["version"]
    finally:
        go_on.set()
        running.join()


@pytest.mark.slow
def test_a_person_labels_in_the_page(tmp_path: Path, browser: Browser) -> None:
    """A click saves a label, a number too; the figures follow when asked for."""
    graded(tmp_path, texts())

    def look(page: Any) -> None:
        page.click("#criterion-0 .labelling button:has-text('UNMET')")
        page.wait_for_selector("#criterion-0 .labelling >> text=Saved.")
        assert page.get_attribute("#criterion-0 button:has-text('UNMET')", "aria-pressed") == "true"
        page.fill("#criterion-1 .labelling input", "90")
        page.click("#criterion-1 .labelling button")
        page.wait_for_selector("#criterion-1 .labelling >> text=Saved.")
        page.screenshot(path=str(browser.screenshots / "view-label.png"))
        page.click("text=Update figures")
        page.wait_for_selector("text=label UNMET")
        page.wait_for_selector(".live >> text=2 labels saved")

    with viewing(tmp_path / "run") as url:
        browser.look(f"{url}#item/1", look, served=True)


@pytest.mark.slow
def test_a_stale_page_says_reload(tmp_path: Path, browser: Browser) -> None:
    """A newer label is not overwritten; the page's own labels can be changed again."""
    graded(tmp_path, texts())

    def look(page: Any) -> None:
        for value, other in (("UNMET", "CANNOT"), ("MET", "UNMET")):
            shown = f"has-text('{value}'):not(:has-text('{other}'))"
            page.click(f"#criterion-0 .labelling button:{shown}")
            page.wait_for_selector(f"#criterion-0 button[aria-pressed=true]:{shown}")
        assert ask(url, "labels", {"item": "t1", "criterion": "polite", "value": "UNMET"})[0] == 200
        page.click("#criterion-0 .labelling button:has-text('MET'):not(:has-text('UNMET'))")
        page.wait_for_selector(
            "#criterion-0 >> text=a newer label was saved (UNMET by viewer); reload the page"
        )
        page.click("text=Update figures")
        page.wait_for_selector("text=label UNMET")

    with viewing(tmp_path / "run") as url:
        browser.look(f"{url}#item/1", look, served=True, logged=("409 (Conflict)",))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json"])
def test_only_the_new_label_is_saved(suffix: str, tmp_path: Path) -> None:
    """A correction made in the file between two views stays, and the last of two raters decides."""
    file = tmp_path / f"texts{suffix}"
    texts().to_file(file)
    data = RubricDataset.from_file(file, rubric=None if suffix == ".json" else RUBRIC)
    graded(tmp_path, data)
    for rater, place, value in (("ada", 1, "MET"), ("bob", 2, "UNMET"), ("ada", 2, "MET")):
        if (rater, place) == ("bob", 2):
            content = file.read_text(encoding="utf-8")
            assert content.count('"MET"') + content.count(",MET") >= 1
            corrected = content.replace(",MET", ",UNMET").replace('"polite": "MET"', '"polite": "UNMET"')
            assert corrected != content
            file.write_text(corrected, encoding="utf-8", newline="")
        with viewing(tmp_path / "run", "--dataset", file, "--rater", rater) as url:
            label = {"item": data.item_id(place), "criterion": "polite", "value": value}
            assert ask(url, "labels", label)[0] == 200
    found = RubricDataset.from_file(file, rubric=None if suffix == ".json" else RUBRIC)
    assert [(found.item_truth(at) or {})["polite"] for at in (1, 2)] == ["UNMET", "MET"]


def test_labels_of_other_criteria_keep_their_columns(tmp_path: Path) -> None:
    """`--truth` for one criterion does not move the labels of another to a new column."""
    file = tmp_path / "replies.csv"
    rubric = Rubric([*RUBRIC, PassFailCriterion(name="refund", requirement="It offers a refund.")])
    file.write_text("reply,right,human_refund\na,yes,true\nb,no,false\n", encoding="utf-8")
    data = RubricDataset.from_file(file, rubric=rubric, submission="reply", truth={"polite": "right"})
    evaluate_sync(
        data, CriterionGrader(judges=[lambda request: request.criterion.conservative()]),
        experiments_dir=tmp_path, experiment_name="run", show_progress=False,
    )  # fmt: skip
    with viewing(
        tmp_path / "run", "--dataset", file, "--submission", "reply", "--truth", "polite=right"
    ) as url:
        label = {"item": data.item_id(1), "criterion": "refund", "value": True}
        assert ask(url, "labels", label)[0] == 200
    assert file.read_text(encoding="utf-8") == "reply,right,human_refund\na,yes,true\nb,no,true\n"
