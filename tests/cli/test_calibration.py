"""`--calibration`, and `calibrations` in run files."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

from autorubric import CriterionGrader, EvalResult, RecordedJudge, Rubric, RubricDataset, evaluate_sync
from autorubric.metrics import calibrate_probabilities
from tests.cli.conftest import Cli

ITEMS = ["eval", "items.jsonl", "--rubric", "rubric.json", "--judge", "recorded:votes.csv", "--votes", "soft"]


@pytest.fixture
def calibrated(cli: Cli) -> list[float | None]:
    """Files of an overconfident judge and its calibration, and the calibrated scores."""
    rng, rows, items = random.Random(1), [], []
    for number in range(400):
        p = rng.random()
        yes, no = p**4, (1 - p) ** 4
        shares = {"MET": yes / (yes + no), "UNMET": no / (yes + no)}
        rows.append([f"i{number}", "kind", "m", json.dumps(shares)])
        label = "MET" if rng.random() < p else "UNMET"
        items.append({"id": f"i{number}", "submission": f"t{number}", "ground_truth": {"kind": label}})
    with Path("votes.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["item_id", "criterion", "rater", "probabilities"], *rows])
    Path("items.jsonl").write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    content = {"criteria": [{"name": "kind", "requirement": "The reply is kind."}]}
    Path("rubric.json").write_text(json.dumps(content), encoding="utf-8")
    run = evaluate_sync(
        RubricDataset.from_file("items.jsonl", rubric=Rubric.from_file("rubric.json")),
        CriterionGrader(judges=[RecordedJudge.from_csv("votes.csv")], votes="soft"),
        experiment_name="before",
        show_progress=False,
    )
    calibrate_probabilities(run).save("calibration.json")
    return run.rescore(calibrations=["calibration.json"]).get_scores()


def test_commands_and_run_files_apply_a_calibration(cli: Cli, calibrated: list[float | None]) -> None:
    """A new run, a stored run that is rescored, and a run file in another folder give the same scores."""
    assert cli(*ITEMS, "--name", "new", "--calibration", "calibration.json").code == 0
    assert EvalResult.from_experiment("experiments/new").get_scores() == calibrated
    scored = json.loads(cli("score", "experiments/before", "--calibration", "calibration.json", "--json").out)
    assert [one["score"] for one in scored["items"]] == calibrated
    Path("runs").mkdir()
    Path("runs/run.yaml").write_text(
        "data: ../items.jsonl\nrubric: ../rubric.json\nname: file\nvotes: soft\n"
        "judges: [recorded:../votes.csv]\ncalibrations: [../calibration.json]\n",
        encoding="utf-8",
    )
    assert cli("eval", "runs/run.yaml").code == 0
    assert EvalResult.from_experiment("runs/experiments/file").get_scores() == calibrated


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--calibration", "missing.json"], "missing.json"),
        (["--calibration", "rubric.json"], "rubric.json"),
        (["--calibration", "calibration.json", "--votes", "hard"], "require votes='soft'"),
        (
            ["--calibration", "calibration.json", "--judge", "x=recorded:votes.csv"],
            "judge 'm' is not in the panel",
        ),
    ],
)
def test_a_calibration_that_does_not_apply_is_refused(
    cli: Cli, calibrated: list[float | None], options: list[str], message: str
) -> None:
    """Before anything is graded."""
    given = [one for one in ITEMS if "--judge" not in options or one not in ("--judge", "recorded:votes.csv")]
    refused = cli(*given, *options, "--name", "refused")
    assert refused.code == 2
    assert message in refused.err
    assert not Path("experiments/refused").exists()
