"""The benchmarks run, on inputs too small to time; what they compare is the same figure."""

from __future__ import annotations

import json

import benchmarks.report.__main__ as report
import numpy as np
import pytest
from benchmarks.calibrated_score.__main__ import (
    DESIGNS as CALIBRATED,
    columns,
    corrected,
    drawn as drawn_runs,
    main as calibrated,
)
from benchmarks.clustered_kappa.__main__ import (
    DESIGNS as CLUSTERED,
    drawn as drawn_clusters,
    main as clustered,
    true_kappa,
)
from benchmarks.coverage.__main__ import main as coverage
from benchmarks.coverage._simulations import SIMULATIONS, Cell
from benchmarks.coverage._tally import tally
from benchmarks.decision.__main__ import main as decisions
from benchmarks.decisions.__main__ import main as decision_models
from benchmarks.false_words.bias import ROWS as BIAS_ROWS
from benchmarks.metrics.__main__ import main as metrics
from benchmarks.metrics._baselines import BASELINES, ordinal_alpha, plain_dawid_skene
from benchmarks.metrics._inputs import binary_votes, units
from benchmarks.metrics._ours import CASES
from benchmarks.power.__main__ import main as power
from benchmarks.realmodel.__main__ import measure as real_model

from autorubric.metrics import accuracy, cohen_kappa, corrected_score, dawid_skene, krippendorff_alpha
from tests.metrics.correction.test_calibrated_score import judged_run
from tests.metrics.reports import BINARY
from tests.reports.conftest import chromium


def test_every_case_is_timed_beside_another_way(tmp_path, capsys):
    """Each case has a baseline, a time and a row; memory is measured where asked for."""
    file = tmp_path / "times.json"
    assert metrics(["--tiny", "--repetitions", "1", "--no-memory", "--json", str(file)]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))["figures"]
    assert [one["case"] for one in found] == list(CASES) == list(BASELINES)
    assert all(one["wall"] > 0 and one["baselines"] for one in found)
    assert capsys.readouterr().out.count("\n|") == len(CASES) + 1


def test_memory_is_measured_in_a_process_of_its_own(tmp_path):
    """A case's memory is what its call allocates, and what a process takes that does nothing else."""
    file = tmp_path / "memory.json"
    assert metrics(["--tiny", "--only", "run", "--repetitions", "1", "--json", str(file)]) == 0
    (found,) = json.loads(file.read_text(encoding="utf-8"))["figures"]
    assert 0 < found["allocated_mb"] < found["process_mb"]


@pytest.mark.slow
def test_every_view_of_a_report_is_timed(tmp_path):
    """Each view has its seconds beside what the report took; a view over its time is told and fails."""
    chromium()
    file = tmp_path / "report.json"
    report.main(["--items", "12", "--judges", "2", "--repetitions", "1", "--json", str(file)])
    found = json.loads(file.read_text(encoding="utf-8"))["figures"]
    assert set(found["opened"]) == set(report.VIEWS)
    assert found["items"] == 12 and found["megabytes"] > 0


def test_a_slow_view_fails(capsys):
    """Up to three seconds all is well; over that the status is 1, and the view is named."""
    assert report.status({"overview": 1.2, "heat map": 3.0}) == 0
    assert report.status({"overview": 1.2, "heat map": 3.1}) == 1
    assert capsys.readouterr().err == "over 3 s: heat map\n"


def test_baselines_compute_the_same():
    """Alpha and Dawid and Skene's posterior by plain numpy are the figures of the package."""
    ratings = units(400, 4, 3)
    assert krippendorff_alpha(ratings, level="ordinal", labels=3, ci=None) == pytest.approx(
        ordinal_alpha(ratings, 3)
    )
    ours = np.array(dawid_skene(ratings, labels=3).posterior)
    assert ours == pytest.approx(plain_dawid_skene(ratings, 3), abs=1e-5)


def test_synthetic_votes_have_the_shape_of_a_run():
    """Each judge votes and decides on each cell, and the panel and the labels stand beside."""
    table = binary_votes(5, 2, 3)
    assert len(table) == 5 * 2 * (3 + 3 + 2)
    assert table.judges == ("judge-0", "judge-1", "judge-2")
    assert {len(scores) for scores in table.scores.values()} == {5}


def test_every_simulation_prints_a_row_a_cell(tmp_path, capsys):
    """The table of coverage has a row a cell, and the same seed gives the same counts."""
    file = tmp_path / "coverage.json"
    options = ["--replicates", "6", "--workers", "1", "--sizes", "50", "--json", str(file)]
    counts = []
    for _ in range(2):
        coverage(options)
        counts.append(json.loads(file.read_text(encoding="utf-8")))
        assert capsys.readouterr().out.count("\n") == len(counts[-1]) + 4
    assert counts[0] == counts[1]
    assert len(counts[0]) >= len(SIMULATIONS)
    for one in counts[0]:
        assert one["covered"] + one["below"] + one["above"] + one["without"] == 6


def test_refusals_are_no_coverage():
    """Where labels show no failure the rate is refused, which counts against coverage and is told apart."""
    found = tally(Cell(simulation="rogan-gladen", prevalence=0.9, n=6), 40, seed=0)
    assert found.without > 0
    assert found.coverage < found.coverage_of_given <= 1


def test_true_values_are_those_of_the_model():
    """The values that intervals should hold are the figures of the whole population."""
    shares = np.array([[0.85, 0.15], [0.9, 8.1]])
    table = np.round(shares * 1000).astype(int)
    assert SIMULATIONS["kappa"].truth(0.9) == pytest.approx(float(cohen_kappa(table=table, ci=None)))
    assert SIMULATIONS["accuracy"].truth(0.9) == pytest.approx(float(accuracy(table=table, ci=None)))


def test_the_power_benchmark_runs(tmp_path):
    """Each design has the power at both numbers of items; a few studies do not fail it."""
    file = tmp_path / "power.json"
    assert power(["--studies", "200", "--json", str(file)]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))["figures"]
    assert {one["asked"] for one in found} == {0.8, 0.9}
    assert all(0.6 < one["power_exact"] <= 1 for one in found)


@pytest.mark.slow
def test_the_decision_benchmark_runs(tmp_path):
    """One labelled run a cell: both intervals, one and three judges, three kinds of items."""
    file = tmp_path / "decision.json"
    decisions(["--replicates", "1", "--json", str(file)])
    found = json.loads(file.read_text(encoding="utf-8"))["figures"]
    assert len(found) == 12
    covered = {one["coverage"] for one in found if one["interval"] == "decision"}
    assert min(covered) > 0.7
    before = {one["items"]: one["coverage"] for one in found if one["interval"] != "decision"}
    assert before["beta(.7, .7)"] < before["none"]


def test_the_benchmark_of_clustered_kappa_runs(tmp_path, capsys):
    """A row a number of clusters, and the figures of each design in the file."""
    file = tmp_path / "clustered_kappa.json"
    clustered(["--replicates", "4", "--clusters", "8", "--workers", "1", "--json", str(file)])
    found = json.loads(file.read_text(encoding="utf-8"))
    assert len(found) == len(CLUSTERED)
    assert f"| 8 | {len(CLUSTERED)} |" in capsys.readouterr().out


@pytest.mark.parametrize("design", [CLUSTERED[3], CLUSTERED[-1]], ids=["verdicts", "ratings"])
def test_true_kappa_is_that_of_many_clusters(design):
    """Kappa of 20,000 clusters is near the true value, of ratings with quadratic weights."""
    truth, judged, _ = drawn_clusters(design, 20_000, np.random.default_rng(0))
    ratings = design.specificity is None
    found = cohen_kappa(
        truth, judged, labels=5 if ratings else 2, weights="quadratic" if ratings else None, ci=None
    )
    assert float(found) == pytest.approx(true_kappa(design), abs=0.01)


def test_the_benchmark_of_calibrated_scores_runs(tmp_path, capsys):
    """A row a design, and the figures of each cell in the file."""
    file = tmp_path / "calibrated_score.json"
    calibrated(["--replicates", "2", "--prevalences", ".5", "--workers", "1", "--json", str(file)])
    found = json.loads(file.read_text(encoding="utf-8"))
    assert len(found) == len(CALIBRATED)
    assert capsys.readouterr().out.count("\n") == len(CALIBRATED) + 2


def test_the_benchmark_of_calibrated_scores_corrects_as_the_library():
    """Columns drawn without runs give what `corrected_score` gives of runs with the same verdicts."""
    rng = np.random.default_rng(0)
    hidden, said = drawn_runs(CALIBRATED[0], 60, 0.4, rng)
    truth, known = drawn_runs(CALIBRATED[0], 50, 0.5, rng)
    ours = corrected(columns(hidden, said, labels=False), columns(truth, known, labels=True), seed=0)
    runs = [judged_run(hidden, said, [BINARY], labels=False), judged_run(truth, known, [BINARY], labels=True)]
    theirs = corrected_score(runs[0], calibration=runs[1], n_resamples=400, rng=0).score
    assert (ours.value, ours.low, ours.high) == (theirs.value, theirs.low, theirs.high)


@pytest.mark.parametrize("row", BIAS_ROWS, ids=lambda row: row.name)
def test_worlds_of_biases_are_drawn(row):
    """Each world says whether a bias is named, or whether its interval contains the true one."""
    assert row.world(np.random.default_rng(0)) in (True, False)


def test_decision_models_need_one_request_an_item(tmp_path):
    """Up to the server's limit; a text model needs one a criterion, or writes a reply for each."""
    file = tmp_path / "decisions.json"
    assert decision_models(["--items", "2", "--sizes", "5", "65", "--json", str(file)]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))["figures"]
    assert [one["requests_per_item"] for one in found["demo"]] == [9, 1, 1, 1]
    assert [one["requests"] for one in found["sizes"]] == [1, 3]
    dollars = [one["dollars_per_1000_verdicts"] for one in found["demo"]]
    assert dollars[2] < dollars[1] < dollars[0]


@pytest.mark.parametrize("llm_calls", ["per_criterion", "per_item"])
def test_the_benchmark_of_a_real_model_counts_what_became_of_verdicts(openai_server, llm_calls):
    """With the suite's server, which answers every schema and reads 64 of 100 tokens from a cache."""
    found = real_model(openai_server.api_base, llm_calls, 20, items=2)
    assert found.is_whole and found.verdicts == 18
    assert found.with_probabilities + sum(found.without.values()) == 18
    assert found.cached_share in (0.64, None) and found.requests == len(openai_server.log())
    assert found.labelled > 0 and found.agreement is not None
