"""Seven judges and three experts a story: the judge report's figures beside the human ceiling."""

from __future__ import annotations

import pytest

from autorubric import RecordedJudge
from autorubric.metrics import JudgeReport, judge_report
from tests.conftest import SHARED_DATA
from tests.metrics.asserting import number
from tests.proof.real_data import agrees, references, run, ttcw

pytestmark = pytest.mark.shared_data

FOLDER = SHARED_DATA / "ttcw"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> JudgeReport:
    """The report, answers counted as the source counts them: what is no "yes" is No."""
    labels = {"Yes": "MET", "No": "UNMET", "INVALID": "UNMET"}
    judges = RecordedJudge.panel_from_csv(FOLDER / "labels.csv", labels=labels, missing="UNMET")
    return judge_report(run(ttcw(FOLDER), judges, tmp_path_factory.mktemp("ttcw")), n_resamples=300)


def test_published_balanced_accuracies(found: JudgeReport) -> None:
    """Over all cells, on each test, and their mean: the published figures of every judge."""
    reference = references("ttcw")
    assert len(found.per_judge) == 7
    for judge, one in found.per_judge.items():
        assert agrees(one.micro.balanced_accuracy.value, reference[f"{judge}/balanced_accuracy"]), judge
        assert agrees(one.macro.balanced_accuracy.value, reference[f"{judge}/avg_bacc"]), judge
        for test, agreed in one.per_criterion.items():
            wanted = reference[f"{judge}/{test}/balanced_accuracy"]
            assert agrees(agreed.balanced_accuracy.value, wanted), (judge, test)


def test_no_judge_comes_near_the_experts(found: JudgeReport) -> None:
    """Experts reach a mean kappa of .62 with each other, pooled too; every judge lies far below."""
    ceiling = found.human_ceiling
    assert ceiling is not None and len(ceiling.humans) == 11
    assert number(ceiling.macro.kappa.value) == pytest.approx(0.624, abs=0.001)
    assert number(ceiling.pooled.kappa.value) > 0.5
    for judge, gap in ceiling.gap.items():
        assert number(gap.kappa.high) < 0, judge
    assert any("human_ceiling.pooled" in warning for warning in found.warnings)
    assert "falls short of an annotator" in found.summary()
