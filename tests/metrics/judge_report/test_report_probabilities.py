"""The part of a judge report about probabilities: losses, calibration errors and reliability diagrams."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from autorubric import (
    Criterion,
    CriterionGrader,
    CriterionOption,
    DataItem,
    EvalResult,
    JudgeReply,
    Rubric,
    RubricDataset,
    evaluate_sync,
)
from autorubric.judges import JudgeRequest, RecordedJudge
from autorubric.metrics import JudgeReport, judge_report

BINARY = Criterion(name="clear", requirement="It is clear.")
TONES = [CriterionOption(label=one, value=at / 2) for at, one in enumerate(("cold", "plain", "warm"))]
ORDINAL = Criterion(
    name="tone",
    requirement="How warm is it?",
    options=[*TONES, CriterionOption(label="none", value=0.0, na=True)],
    scale_type="ordinal",
)


class Stating:
    """A judge that states the probabilities of a table, by item and criterion, or by item and sample."""

    def __init__(self, table: dict[Any, Any], judge_id: str = "stating", backends: Any = None) -> None:
        self.judge_id = judge_id
        self._table = table
        self._backends = backends or {}

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the stated probabilities, or an abstention without any."""
        stated = self._table.get((request.item_id, request.criterion.name))
        if stated is None:
            return JudgeReply(answer=None)
        return JudgeReply(
            answer=None,
            probabilities=stated,
            probability_source="decision_model",
            probability_backend=self._backends.get(request.item_id, "server"),
        )


def reported(
    judges: list[Any], truth: dict[str, dict[str, str]], rubric: list[Any], folder: Path, votes: Any = "soft"
) -> tuple[EvalResult, JudgeReport]:
    """A run of judges over labelled items, and the report on them."""
    names = [one.name for one in rubric]
    items = [
        DataItem(
            id=item,
            submission=item,
            description=item,
            ground_truth={name: said[name] for name in names if name in said},
        )
        for item, said in truth.items()
    ]
    dataset = RubricDataset(name="d", prompt="p", rubric=Rubric(rubric), items=items)
    grader = CriterionGrader(judges=judges, votes=votes)
    run = evaluate_sync(dataset, grader, show_progress=False, experiments_dir=folder)
    return run, judge_report(run)


def drawn(n: int, seed: int) -> tuple[dict[str, dict[str, str]], dict[Any, Any]]:
    """Labels of items on both criteria, and probabilities that are related to them."""
    rng = np.random.default_rng(seed)
    truth, stated = {}, {}
    for at in range(n):
        item = f"i{at}"
        met, tone = bool(rng.random() < 0.6), int(rng.integers(3))
        truth[item] = {"clear": "MET" if met else "UNMET", "tone": TONES[tone].label}
        share = float(np.clip(rng.normal(0.7 if met else 0.3, 0.2), 0.01, 0.99))
        stated[item, "clear"] = {"MET": share, "UNMET": 1 - share}
        others = rng.dirichlet(np.ones(3) + 2 * np.eye(3)[tone])
        stated[item, "tone"] = {one.label: float(p) for one, p in zip(TONES, others, strict=True)}
    return truth, stated


def test_figures_equal_those_of_scikit_learn(tmp_path: Path) -> None:
    """Losses and areas of a binary and an ordinal criterion are those of scikit-learn."""
    truth, stated = drawn(60, 0)
    _, report = reported([Stating(stated)], truth, [BINARY, ORDINAL], tmp_path)
    found = report.per_judge["stating"].probabilities
    y = np.array([one["clear"] == "MET" for one in truth.values()]).astype(int)
    p = np.array([stated[item, "clear"]["MET"] for item in truth])
    codes = np.array([[one.label for one in TONES].index(said["tone"]) for said in truth.values()])
    q = np.array([[stated[item, "tone"][one.label] for one in TONES] for item in truth])
    assert found["clear"].brier == pytest.approx(np.mean((p - y) ** 2))
    assert found["clear"].log_loss == pytest.approx(log_loss(y, p))
    assert found["clear"].auroc == pytest.approx(roc_auc_score(y, p))
    assert found["tone"].brier == pytest.approx(np.mean(((q - np.eye(3)[codes]) ** 2).sum(1)))
    assert found["tone"].log_loss == pytest.approx(log_loss(codes, q, labels=[0, 1, 2]))
    assert found["tone"].auroc == pytest.approx(roc_auc_score(codes, q, multi_class="ovr"))
    assert "positive class" in found["clear"].brier.method
    assert "sum over 3 classes" in found["tone"].brier.method
    for one in found.values():
        low, high = one.brier.low, one.brier.high
        assert low is not None and high is not None and low < one.brier < high


def test_a_diagram_by_hand(tmp_path: Path) -> None:
    """Ten cells in two bins: mean forecasts, rates and the calibration error are as by hand."""
    met = [1, 1, 1, 0, 0, 0, 0, 0, 1, 0]
    said = [0.85, 0.9, 0.85, 0.9, 0.15, 0.15, 0.2, 0.2, 0.15, 0.15]
    truth = {f"i{at}": {"clear": "MET" if one else "UNMET"} for at, one in enumerate(met)}
    stated = {(f"i{at}", "clear"): {"MET": p, "UNMET": 1 - p} for at, p in enumerate(said)}
    _, report = reported([Stating(stated)], truth, [BINARY], tmp_path)
    found = report.per_judge["stating"].probabilities["clear"]
    low, high = found.curve.bins
    assert (low.n, high.n) == (6, 4)
    assert [low.forecast, low.rate.value] == pytest.approx([1 / 6, 1 / 6])
    assert [high.forecast, high.rate.value] == pytest.approx([0.875, 0.75])
    assert found.ece == pytest.approx(0.4 * 0.125)
    assert found.ece_debiased <= found.ece


def test_abstaining_mass_is_shown_beside_probabilities_of_the_answers(tmp_path: Path) -> None:
    """Figures compare the probabilities given an answer; the mass of CANNOT_ASSESS and NA is a figure."""
    truth = {
        "a": {"clear": "MET", "tone": "cold"},
        "b": {"clear": "UNMET", "tone": "none"},
        "c": {"clear": "MET", "tone": "warm"},
        "d": {"clear": "MET", "tone": "plain"},
    }
    stated = {
        ("a", "clear"): {"MET": 0.4, "UNMET": 0.1, "CANNOT_ASSESS": 0.5},
        ("b", "clear"): {"MET": 0.2, "UNMET": 0.8},
        ("c", "clear"): {"CANNOT_ASSESS": 1.0},
        ("a", "tone"): {"cold": 0.25, "plain": 0.25, "none": 0.5},
        ("b", "tone"): {"cold": 1.0},
        ("d", "tone"): {"plain": 1.0},
    }
    _, report = reported([Stating(stated)], truth, [BINARY, ORDINAL], tmp_path)
    clear, tone = report.per_judge["stating"].probabilities.values()
    assert clear.brier == pytest.approx((0.2**2 + 0.2**2) / 2)
    assert (clear.brier.n, clear.brier.n_missing) == (2, 1)
    assert clear.abstention == pytest.approx(0.5)
    # The label of b is NA, and c has no probabilities.
    assert tone.brier.n == 2
    assert tone.brier == pytest.approx((0.5**2 + 0.5**2) / 2)
    assert tone.abstention == pytest.approx(0.25)


def test_a_label_with_probability_0_leaves_the_log_loss_undefined(tmp_path: Path) -> None:
    """The loss is not clipped: it is None with a reason, and the other figures stay."""
    truth = {"a": {"clear": "MET"}, "b": {"clear": "UNMET"}}
    stated = {("a", "clear"): {"UNMET": 1.0}, ("b", "clear"): {"UNMET": 0.9, "MET": 0.1}}
    _, report = reported([Stating(stated)], truth, [BINARY], tmp_path)
    found = report.per_judge["stating"].probabilities["clear"]
    assert (found.log_loss.value, found.log_loss.reason) == (None, "infinite_loss")
    assert found.brier == pytest.approx((1 + 0.01) / 2)


def test_origins_are_never_combined(tmp_path: Path) -> None:
    """A judge with probabilities from two servers has no figures of them, and the report says why."""
    truth, stated = drawn(40, 1)
    backends = {f"i{at}": "old" if at < 15 else "new" for at in range(40)}
    judges = [Stating(stated, "mixed", backends=backends), Stating(stated, "pure")]
    _, report = reported(judges, truth, [BINARY], tmp_path)
    assert not report.per_judge["mixed"].probabilities and not report.panel.probabilities
    assert report.per_judge["pure"].probabilities["clear"].origin == "decision_model, server"
    told = "mixed: probabilities of different origins (decision_model, new; decision_model, old)"
    assert any(warning.startswith(told) for warning in report.warnings)


def test_the_panel_has_figures_only_with_soft_votes(tmp_path: Path) -> None:
    """Hard votes have no joint probabilities; with soft votes, the panel's are the judges' means."""
    truth, stated = drawn(30, 2)
    _, other = drawn(30, 3)
    judges = [Stating(stated, "a"), Stating(other, "b")]
    _, hard = reported(judges, truth, [BINARY], tmp_path / "hard", "hard")
    _, soft = reported(judges, truth, [BINARY], tmp_path / "soft")
    assert not hard.panel.probabilities
    assert hard.per_judge["a"].probabilities == soft.per_judge["a"].probabilities
    y = np.array([one["clear"] == "MET" for one in truth.values()])
    mean = np.array([(stated[i, "clear"]["MET"] + other[i, "clear"]["MET"]) / 2 for i in truth])
    assert soft.panel.probabilities["clear"].brier == pytest.approx(np.mean((mean - y) ** 2))


def test_judges_without_probabilities_have_no_figures(tmp_path: Path) -> None:
    """Nothing is computed from answers alone, even with soft votes."""
    truth, stated = drawn(20, 4)

    def plain(request: JudgeRequest) -> str:
        return "MET"

    _, report = reported([plain, Stating(stated, "b")], truth, [BINARY], tmp_path)
    assert not report.per_judge["plain"].probabilities
    assert list(report.per_judge["b"].probabilities) == ["clear"]


def test_figures_are_in_every_form_of_the_report(tmp_path: Path) -> None:
    """The dict, the frame, the terminal and the page contain the figures and the bins."""
    truth, stated = drawn(40, 5)
    run, report = reported([Stating(stated)], truth, [BINARY, ORDINAL], tmp_path)
    plain = report.to_dict()["per_judge"]["stating"]["probabilities"]["clear"]
    assert json.loads(json.dumps(plain))["curve"]["bins"][0]["n"] >= 1
    frame = report.to_dataframe()
    mine = frame[(frame.rater == "stating") & (frame.criterion == "tone") & (frame.figure == "brier")]
    assert mine["value"].item() == report.per_judge["stating"].probabilities["tone"].brier.value
    assert "log loss" in report.summary() and "mean forecast" in report.summary()
    run.to_html(tmp_path / "page.html")
    assert "ece_equal_mass" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.shared_data
def test_real_distributions(shared_data: Path, tmp_path: Path) -> None:
    """An LLM's recorded distributions on nine questions have the losses of a plain computation."""
    folder = shared_data / "llm_rubric"
    options = [CriterionOption(label=str(at), value=(at - 1) / 3) for at in range(1, 5)]
    options.append(CriterionOption(label="NA", value=0.0, na=True))
    names = [f"Q{at}" for at in range(9)]
    rubric = [Criterion(name=one, requirement=one, options=options, scale_type="ordinal") for one in names]
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["item_id"].startswith("real:")]
    truth: dict[str, dict[str, str]] = {}
    for row in rows:
        truth.setdefault(row["item_id"], {})[row["criterion"]] = row["value"]
    columns = {f"p{at}": str(at) for at in range(1, 5)}
    judge = RecordedJudge.from_csv(folder / "llm_distributions.csv", probabilities=columns)
    _, report = reported([judge], truth, rubric, tmp_path)
    with (folder / "llm_distributions.csv").open(encoding="utf-8", newline="") as lines:
        given = {(row["item_id"], row["criterion"]): row for row in csv.DictReader(lines)}
    for name in names:
        known = [(item, said[name]) for item, said in truth.items() if said.get(name, "NA") != "NA"]
        p = np.array([[float(given[item, name][one]) for one in columns] for item, _ in known])
        p /= p.sum(axis=1, keepdims=True)
        codes = np.array([int(said) - 1 for _, said in known])
        found = report.per_judge[judge.judge_id].probabilities[name]
        assert found.brier.n == len(known)
        assert found.brier == pytest.approx(np.mean(((p - np.eye(4)[codes]) ** 2).sum(axis=1)))
        if p[np.arange(len(codes)), codes].min() > 0:
            assert found.log_loss == pytest.approx(log_loss(codes, p, labels=[0, 1, 2, 3]))
        else:
            assert found.log_loss.reason == "infinite_loss"
        top = p.argmax(axis=1)
        bins = np.minimum(np.ceil(p.max(axis=1) * 10).astype(int) - 1, 9)
        gaps = [abs(p.max(axis=1)[bins == at].sum() - (top == codes)[bins == at].sum()) for at in range(10)]
        assert found.ece == pytest.approx(math.fsum(gaps) / len(known))
