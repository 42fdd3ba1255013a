"""The package on the page about extending the library, installed as the page says and used from outside."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "contributing" / "extending.md"
_FILE = re.compile(r"^```(?:python|toml)\n# ([\w/.]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RUBRIC = """\
- name: warm
  type: warmth
  requirement: The warmth of the tone
  aggregation: lower_median
"""
_TEXTS = "Please sit down, please.\nGo away.\nPlease, please, please: stay a while.\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the path in which the page's package is installed."""
    folder = tmp_path_factory.mktemp("site")
    files = dict(_FILE.findall(PAGE.read_text(encoding="utf-8")))
    project = tomllib.loads(files.pop("pyproject.toml"))["project"]
    (folder / "quiz").mkdir()
    (folder / "quiz" / "__init__.py").touch()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in points.items()))
    ]
    metadata = folder / "quiz-0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: quiz\nVersion: 0\n", encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with a rubric and a file for the importer."""
    (tmp_path / "rubric.yaml").write_text(_RUBRIC, encoding="utf-8")
    (tmp_path / "texts.quiz").write_text(_TEXTS, encoding="utf-8")
    return tmp_path


def _run(site: Path, folder: Path, *command: str, status: int = 0) -> str:
    path = os.pathsep.join([str(site), str(ROOT / "src")])
    ended = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def _votes(folder: Path, run: str) -> list[dict[str, object]]:
    lines = (folder / "experiments" / run / "votes.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _evaluate(site: Path, folder: Path, run: str, *options: str) -> str:
    return _run(site, folder, "autorubric", "eval", "texts.quiz", "--name", run, "--no-progress", *options)


def test_a_metric_is_known_by_its_name(site: Path, folder: Path) -> None:
    """Its specification is found, and functions that take the name of a metric compute it."""
    program = (
        "from autorubric.metrics import human_ceiling, spec\n"
        "print(spec('extreme_share').reference)\n"
        "people = [[1, 1, 1], [5, 5, 4], [3, 3, 3], [4, 2, 2]]\n"
        "print(human_ceiling(people, stat='extreme_share').stat)\n"
    )
    (folder / "program.py").write_text(program, encoding="utf-8")
    assert _run(site, folder, "program") == "share of units in the same extreme\nextreme_share\n"


_RESULTS = """
import json, re
from autorubric import CriterionGrader, Rubric, RubricDataset, evaluate_sync
from autorubric.metrics import agreement, compute_metrics, judge_report, Ordinal
from autorubric.reports import report_html
from quiz.judge import KeywordJudge

dataset = RubricDataset(rubric=Rubric.from_file("rubric.yaml"))
for n, label in ((0, 1), (5, 5), (1, 1), (2, 3), (4, 4), (0, 1)):
    dataset.add_item(submission="please " * n, ground_truth=[label])
run = evaluate_sync(
    dataset, CriterionGrader(judges=[KeywordJudge("please")]), experiment_name="six", show_progress=False
)
metrics, report = compute_metrics(run, dataset), judge_report(run)
alone = agreement([1, 5, 2], [1, 4, 2], scale=Ordinal([1, 2, 3, 4, 5]))
page = json.loads(re.search(r'id="data">(.*?)</script>', report_html(run), re.S).group(1))
results = {
    "agreement": [alone.extreme_share.value, alone.to_dict()["extreme_share"]["value"]],
    "metrics": [
        metrics.per_criterion["warm"].extreme_share,
        metrics.criterion_extreme_share,
        metrics.pooled.extreme_share,
        metrics.to_dict()["per_criterion"][0]["extreme_share"],
        metrics.to_dict()["criterion_extreme_share"],
        *metrics.to_dataframe()["extreme_share"],
    ],
    "report": [
        report.per_criterion["warm"].extreme_share.value,
        report.macro.extreme_share.value,
        report.micro.more["extreme_share"].value,
        report.to_dict()["panel"]["macro"]["extreme_share"]["value"],
        *report.to_dataframe().query("figure == 'extreme_share' and rater == 'panel'")["value"],
    ],
    "interval": [report.macro.extreme_share.low, report.per_criterion["warm"].extreme_share.low],
    "texts": [metrics.summary().count("extreme share"), report.summary().count("extreme share")],
    "columns": [[one["name"] for one in page["metrics"][view]] for view in ("criteria", "judges")],
    "page": [
        one["metrics"]["extreme_share"]["v"] for one in (page["criteria"][0], page["judges"]["rows"][0])
    ],
}
print(json.dumps(results))
"""


def test_results_contain_a_metric(site: Path, folder: Path) -> None:
    """Attributes, `to_dict`, texts, DataFrames and the page of a run contain it, with intervals."""
    (folder / "program.py").write_text(_RESULTS, encoding="utf-8")
    found = json.loads(_run(site, folder, "program").splitlines()[-1])
    assert found["agreement"] == pytest.approx([1 / 3] * 2)
    assert found["metrics"] == pytest.approx([1 / 2] * 7)
    assert found["report"] == pytest.approx([1 / 2] * 7)
    assert all(0 < low < 1 / 2 for low in found["interval"])
    assert all(count >= 2 for count in found["texts"])
    assert found["columns"] == [
        ["Kappa", "Accuracy", "Extreme share"],
        ["Kappa", "Accuracy", "Extreme share"],
    ]
    assert found["page"] == pytest.approx([1 / 2] * 2, abs=1e-5)
    gates = "extreme_share=.5,extreme_share@warm=.6"
    said = _run(site, folder, "autorubric", "metrics", "experiments/six", "--fail-under", gates, status=1)
    assert "extreme_share@warm is 0.500, below 0.6" in said
    assert said.count("below") == 1
    odd = folder / "odd"
    odd.mkdir()
    _install(odd, {"missing": "nowhere:missing"})
    both = Path(os.pathsep.join(map(str, (site, odd))))
    gate = ("experiments/six", "--fail-under", "missing=.5")
    said = _run(both, folder, "autorubric", "metrics", *gate, status=3)
    assert "missing is undefined (results do not contain it), so it cannot reach 0.5" in said


_MISTAKES = {
    "sensitivity": "hits=lambda tables: tables[..., 0, 0]",
    "n": "hits=lambda tables: tables[..., 0, 0]",
    "unfinished": "compute=None",
    "missing": None,
}


def test_a_metric_that_cannot_be_loaded_is_left_out(tmp_path: Path) -> None:
    """A warning names the metric and its package; all other values are the same."""
    for name, table in _MISTAKES.items():
        if table is not None:
            (tmp_path / f"{name}_metric.py").write_text(_declaration(name, table), encoding="utf-8")
    _install(tmp_path, {name: f"{name}_metric:{name}" for name in _MISTAKES})
    lines = [
        "from autorubric.metrics import Binary, agreement",
        "import autorubric.metrics.summaries.results",
        "found = agreement([1, 0, 1], [1, 1, 1], scale=Binary())",
        "print(found.accuracy.value, found.n, dict(found.more))",
    ]
    (tmp_path / "program.py").write_text("\n".join(lines), encoding="utf-8")
    said = _run(tmp_path, tmp_path, "program")
    assert "0.6666666666666666 3 {}" in said
    for name in _MISTAKES:
        assert f"results do not contain the metric '{name}' of odd" in said
    assert said.count("results already have an attribute of this name") == 2


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("compute=lambda tables: 0.5", "compute must return shape"),
        ("compute=lambda tables: tables.sum((-1, -2)) * 7.5", "compute must return numbers from 0 to 1"),
        ("compute=lambda tables: 1 / 0", "compute raised ZeroDivisionError: division by zero"),
        ("hits=lambda tables: tables.sum((-1, -2)) * 3", "hits must be at most trials"),
    ],
)
def test_wrong_values_of_a_metric_are_an_error_that_names_it(
    table: str, message: str, tmp_path: Path
) -> None:
    """It names the metric, and the values do not get into results."""
    (tmp_path / "odd_metric.py").write_text(_declaration("odd", table), encoding="utf-8")
    _install(tmp_path, {"odd": "odd_metric:odd"})
    program = "from autorubric.metrics import Binary, agreement\nagreement([1, 0], [1, 1], scale=Binary())\n"
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    assert f"metric 'odd': {message}" in _run(tmp_path, tmp_path, "program", status=1)


def _declaration(name: str, table: str) -> str:
    return (
        "from autorubric.metrics import MetricDisplay, TableMetric, metric, wilson\n"
        f"shown = MetricDisplay(table=TableMetric(name='odd', {table}))\n"
        "@metric(inputs='labels', levels=('binary',), reference='none', shown=shown)\n"
        f"def {name}(truth, pred, **interval):\n"
        "    return wilson(1, 2)\n"
    )


def _install(folder: Path, metrics: Mapping[str, str]) -> None:
    metadata = folder / "odd-0.dist-info"
    metadata.mkdir()
    lines = ["[autorubric.metrics]", *(f"{name} = {target}" for name, target in metrics.items())]
    (metadata / "entry_points.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 0\n", encoding="utf-8")


def test_kind_judge_importer_and_executor_in_a_run(site: Path, folder: Path) -> None:
    """The command line reads the importer's file, asks the judge and grades with the executor."""
    options = ("--judge", "keyword:please", "--executor", "one_by_one")
    _evaluate(site, folder, "one", *options)
    manifest = json.loads((folder / "experiments" / "one" / "manifest.json").read_text(encoding="utf-8"))
    assert "keyword:please" in json.dumps(manifest)
    shown = _run(site, folder, "autorubric", "show", "experiments/one", "--item", "2")
    assert "warm" in shown
    assert "3 times please" in shown
    _run(site, folder, "autorubric", "report", "experiments/one", "--out", "report.html")
    assert "3 times please" in (folder / "report.html").read_text(encoding="utf-8")
    assert "warmth" in _run(site, folder, "autorubric", "schema")


def test_a_transport_is_named_in_a_run_file(site: Path, folder: Path) -> None:
    """A model behind it needs no key and no network."""
    (folder / "autorubric.yaml").write_text(
        "data: texts.quiz\njudges: [{model: my-model, transport: echo}]\n", encoding="utf-8"
    )
    _run(site, folder, "autorubric", "eval", "--name", "two", "--no-progress")
    assert "always 2" in _run(site, folder, "autorubric", "show", "experiments/two", "--item", "0")


def test_an_aggregator_combines_the_votes(site: Path, folder: Path) -> None:
    """Of two judges' votes it takes the lower, where the library's own median is between them."""
    judges = ("--judge", "a=keyword:please", "--judge", "b=keyword:stay")
    _evaluate(site, folder, "three", *judges)
    export = ("autorubric", "export", "experiments/three", "--format", "csv", "--out", "scores.csv")
    _run(site, folder, *export)
    rows = (folder / "scores.csv").read_text(encoding="utf-8").splitlines()
    column = rows[0].split(",").index("value.warm")
    assert [float(row.split(",")[column]) for row in rows[1:]] == [0.0, 0.0, 0.25]


def test_a_command_is_listed_and_runs(site: Path, folder: Path) -> None:
    """It has its place in the help, and its arguments are read by Typer."""
    assert "longest" in _run(site, folder, "autorubric", "--help")
    _evaluate(site, folder, "four", "--judge", "keyword:please")
    assert "stay a while" in _run(site, folder, "autorubric", "longest", "experiments/four")
    assert "Print the longest text" in _run(site, folder, "autorubric", "longest", "--help")


def test_an_extension_that_cannot_be_loaded_is_named(site: Path, folder: Path, tmp_path: Path) -> None:
    """The message has the name, the group and the cause."""
    broken = tmp_path / "broken-0.dist-info"
    broken.mkdir()
    (broken / "entry_points.txt").write_text(
        "[autorubric.judges]\nbroken = nothing:there\n", encoding="utf-8"
    )
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(site), str(ROOT / "src")])
    program = (
        "from autorubric import ArgumentError\n"
        "from autorubric.judges.panel import named_judges\n"
        "try:\n    named_judges(['broken'])\nexcept ArgumentError as error:\n    print(error)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert "'broken' of the entry point group 'autorubric.judges' cannot be loaded" in ended.stdout
