"""Calibrations of a judge's probabilities: fits, refusals, files, and their use in runs."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from autorubric import (
    ChecklistCriterion,
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
from autorubric.errors import ArgumentError, FileError
from autorubric.judges import JudgeRequest
from autorubric.metrics import calibrate_probabilities, judge_report
from autorubric.scoring import JudgeVote, ProbabilityCalibration

METHODS: tuple[Any, ...] = ("temperature", "platt", "isotonic")
TONES = ("cold", "plain", "warm")
BINARY = Criterion(name="clear", requirement="It is clear.")


def tone(requirement: str = "How warm is it?") -> Criterion:
    """An ordinal criterion with an NA option."""
    options = [CriterionOption(label=one, value=at / 2) for at, one in enumerate(TONES)]
    options.append(CriterionOption(label="none", value=0.0, na=True))
    return Criterion(name="tone", requirement=requirement, options=options, scale_type="ordinal")


class Stating:
    """A judge that states the probabilities of a table by item and criterion, as a model of some version."""

    def __init__(self, table: dict[Any, Any], judge_id: str = "a", model: str = "m-1") -> None:
        self.judge_id = judge_id
        self._table = table
        self._model = model

    def describe(self) -> dict[str, Any]:
        """What its votes depend on."""
        return {"judge": "stating", "model": self._model}

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the stated probabilities."""
        stated = self._table[request.item_id, request.criterion.name]
        return JudgeReply(
            answer=None, probabilities=stated, probability_source="decision_model", model=self._model
        )


def drawn(n: int, power: float, seed: int = 0) -> tuple[dict[str, Any], dict[Any, Any]]:
    """Labels drawn from probabilities, and those probabilities raised to a power and divided by their sum."""
    rng = np.random.default_rng(seed)
    truth: dict[str, Any] = {}
    stated: dict[Any, Any] = {}
    for at in range(n):
        item, labels = f"i{at}", {}
        for name, answers in {"clear": ("UNMET", "MET"), "tone": TONES}.items():
            p = rng.dirichlet(np.ones(len(answers)))
            labels[name] = answers[rng.choice(len(answers), p=p)]
            q = p**power / (p**power).sum()
            stated[item, name] = dict(zip(answers, q.tolist(), strict=True))
        truth[item] = labels
    return truth, stated


def dataset_of(truth: dict[str, Any], rubric: Rubric) -> RubricDataset:
    """A dataset with the labels of the criteria of a rubric."""
    items = [
        DataItem(
            id=item,
            submission=item,
            description=item,
            ground_truth={name: label for name, label in labels.items() if name in rubric.names},
        )
        for item, labels in truth.items()
    ]
    return RubricDataset(name="d", prompt="p", rubric=rubric, items=items)


def graded(
    truth: dict[str, Any], judges: list[Any], folder: Path, rubric: Any = None, **options: Any
) -> EvalResult:
    """A run with soft votes."""
    dataset = dataset_of(truth, rubric or Rubric([BINARY, tone()]))
    name = options.pop("experiment_name", None)
    grader = CriterionGrader(judges=judges, **{"votes": "soft", **options})
    return evaluate_sync(dataset, grader, show_progress=False, experiments_dir=folder, experiment_name=name)


@pytest.fixture(scope="module")
def distorted(tmp_path_factory: pytest.TempPathFactory) -> EvalResult:
    """A run of a judge that is overconfident by a power of 3."""
    truth, stated = drawn(400, 3.0)
    return graded(truth, [Stating(stated)], tmp_path_factory.mktemp("distorted"))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_distortion_is_undone(distorted: EvalResult, method: Any) -> None:
    """All losses and calibration errors decrease, on held-out items and in the report on the rescored run."""
    found = calibrate_probabilities(distorted, method=method)
    assert found.log_loss.after < found.log_loss.before and found.log_loss.low > 0
    assert found.brier.low < found.brier.before - found.brier.after < found.brier.high
    assert (found.n_items, found.n_held_out) == (200, 200)
    before = judge_report(distorted).per_judge["a"].probabilities
    after = judge_report(distorted.rescore(calibrations=[found])).per_judge["a"].probabilities
    for name in ("clear", "tone"):
        assert after[name].brier < before[name].brier
        assert after[name].ece_debiased < before[name].ece_debiased / 2


@pytest.mark.slow
def test_the_temperature_is_that_of_the_distortion(tmp_path: Path) -> None:
    """With many items, T is the power of the distortion, for two and three answers."""
    truth, stated = drawn(1500, 2.0, seed=5)
    run = graded(truth, [Stating(stated)], tmp_path)
    found = calibrate_probabilities(run, held_out=0.2)
    assert found.parameters["clear"][0][0] == pytest.approx(2.0, rel=0.15)
    assert found.parameters["tone"] == (found.parameters["tone"][0],) * 3
    assert found.parameters["tone"][0][0] == pytest.approx(2.0, rel=0.15)


@pytest.mark.slow
def test_platt_is_logistic_regression_of_the_logit(tmp_path: Path) -> None:
    """Slope and intercept are close to an unpenalised regression, and those of the two answers mirrored."""
    truth, stated = drawn(1500, 2.0, seed=5)
    run = graded(truth, [Stating(stated)], tmp_path, Rubric([BINARY]))
    items = [f"i{at}" for at in range(300)]
    found = calibrate_probabilities(run, method="platt", held_out=items)
    fitted = [item for item in truth if item not in items]
    x = logit([stated[item, "clear"]["MET"] for item in fitted]).clip(-13.8, 13.8)
    y = [truth[item]["clear"] == "MET" for item in fitted]
    line = LogisticRegression(C=1e9).fit(x[:, None], y)
    unmet, met = found.parameters["clear"]
    assert met == pytest.approx((line.coef_[0, 0], line.intercept_[0]), abs=0.02)
    assert unmet == pytest.approx((met[0], -met[1]), abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_a_calibrated_judge_is_refused(tmp_path: Path, method: Any) -> None:
    """There is nothing to improve; the error states the losses and the interval."""
    truth, stated = drawn(300, 1.0, seed=2)
    run = graded(truth, [Stating(stated)], tmp_path)
    with pytest.raises(ArgumentError, match=r"refused.* on 150 held-out items.* before and .* \[-0\."):
        calibrate_probabilities(run, method=method)


def test_order_and_name_of_items_do_not_matter(distorted: EvalResult, tmp_path: Path) -> None:
    """Items in another order give the same calibration, and another label another digest."""
    truth, stated = drawn(400, 3.0)
    mixed = list(truth)
    random.Random(1).shuffle(mixed)
    again = graded({item: truth[item] for item in mixed}, [Stating(stated)], tmp_path / "mixed")
    found = calibrate_probabilities(distorted)
    assert calibrate_probabilities(again) == found
    truth["i0"]["clear"] = {"MET": "UNMET", "UNMET": "MET"}[truth["i0"]["clear"]]
    other = dataset_of(truth, Rubric([BINARY, tone()]))
    assert calibrate_probabilities(distorted, other).data != found.data


def test_a_single_calibration_is_not_a_list(distorted: EvalResult) -> None:
    """A path would otherwise be read as a list of letters."""
    with pytest.raises(ArgumentError, match=r"must be a list; got str"):
        distorted.rescore(calibrations="calibration.json")


def test_the_split_can_be_given_and_seeded(distorted: EvalResult) -> None:
    """Held-out items are a share, by a seed, or ids; too few are refused."""
    ids = [f"i{at}" for at in range(0, 400, 2)]
    assert calibrate_probabilities(distorted, held_out=[*ids, "unknown"]).n_held_out == 200
    assert calibrate_probabilities(distorted, held_out=0.75).n_items == 100
    assert calibrate_probabilities(distorted, rng=1) != calibrate_probabilities(distorted, rng=2)
    for wrong in (0.01, ["i1"], 0.99):
        with pytest.raises(ArgumentError, match="10 are needed"):
            calibrate_probabilities(distorted, held_out=wrong)
    with pytest.raises(ArgumentError, match="held_out must be"):
        calibrate_probabilities(distorted, held_out=1.5)


@pytest.fixture(scope="module")
def fitted(distorted: EvalResult) -> dict[str, ProbabilityCalibration]:
    """A calibration by each method."""
    return {method: calibrate_probabilities(distorted, method=method) for method in METHODS}


def vote_of(shares: dict[str, float]) -> JudgeVote:
    """A vote of the calibrated judge."""
    origin: Any = {"probability_source": "decision_model", "model": "m-1"}
    return JudgeVote(judge_id="a", status="answered", probabilities=shares, **origin)


SHARES = st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4).filter(lambda one: sum(one) > 1e-3)


@given(SHARES)
def test_results_are_distributions(fitted: dict[str, ProbabilityCalibration], masses: list[float]) -> None:
    """The mass of an abstention stays the same, and a temperature keeps the order of the answers."""
    shares = dict(zip((*TONES, "none"), (np.array(masses) / sum(masses)).tolist(), strict=True))
    for method, calibration in fitted.items():
        made: Any = calibration.apply(tone(), vote_of(shares))
        assert sum(made.values()) == pytest.approx(1.0)
        assert all(0.0 <= one <= 1.0 + 1e-12 for one in made.values())
        assert made["none"] == shares["none"]
        if method == "temperature":
            ranked = sorted(TONES, key=shares.__getitem__)
            assert [made[one] for one in ranked] == sorted(made[one] for one in TONES)


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_every_method_is_monotone_on_two_answers(
    fitted: dict[str, ProbabilityCalibration], one: float, other: float
) -> None:
    """A larger probability of MET never becomes smaller than a smaller one."""
    low, high = sorted((one, other))
    for calibration in fitted.values():
        made: list[Any] = [
            calibration.apply(BINARY, vote_of({"MET": p, "UNMET": 1 - p}))["MET"] for p in (low, high)
        ]
        assert made[0] <= made[1] + 1e-9


def test_a_new_run_applies_and_shows_the_calibration(
    distorted: EvalResult, fitted: dict[str, ProbabilityCalibration], tmp_path: Path
) -> None:
    """Votes stay as the judge gave them; the manifest has the calibration, which decisions use."""
    truth, stated = drawn(30, 3.0, seed=9)
    calibration = fitted["temperature"]
    run = graded(truth, [Stating(stated)], tmp_path, calibrations=[calibration])
    first: Any = run.get_reports()[0]
    report = first.report[0]
    assert dict(report.votes[0].probabilities) == stated["i0", "clear"]
    assert dict(report.decision.probabilities) != stated["i0", "clear"]
    manifest = json.loads((run.experiment_dir / "manifest.json").read_text(encoding="utf-8"))
    stored = manifest["deciding"]["aggregation"]["calibrations"]
    assert ProbabilityCalibration.model_validate(stored[0]) == calibration
    again = EvalResult.from_experiment(run.experiment_dir)
    assert again.get_scores() == run.get_scores()
    plain = run.rescore(calibrations=[])
    assert plain.get_scores() == graded(truth, [Stating(stated)], tmp_path / "plain").get_scores()
    assert plain.get_scores() != run.get_scores()
    assert run.rescore(votes="hard").get_scores()
    # A calibration is fitted on the judge's own probabilities, calibrated before or not.
    whole = distorted.rescore(calibrations=[calibration])
    assert calibrate_probabilities(whole) == calibration


def test_resuming_with_a_calibration_asks_no_judge(
    fitted: dict[str, ProbabilityCalibration], tmp_path: Path
) -> None:
    """A finished run gets new scores from its stored votes, and a short notice and entry on the page."""
    truth, stated = drawn(30, 3.0, seed=9)
    plain = graded(truth, [Stating(stated)], tmp_path, experiment_name="run")
    again = graded(truth, [Stating({})], tmp_path, experiment_name="run", calibrations=[fitted["isotonic"]])
    assert again.get_scores() == plain.rescore(calibrations=[fitted["isotonic"]]).get_scores()
    assert None not in again.get_scores()
    told = [one for one in again.notices if "calibrations" in one]
    assert len(told) == 1 and len(told[0]) < 400
    again.to_html(tmp_path / "page.html")
    assert '["calibrations","a: isotonic"]' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_calibration_is_only_for_its_judge_model_and_criteria(
    fitted: dict[str, ProbabilityCalibration], distorted: EvalResult, tmp_path: Path
) -> None:
    """Another judge, version of the model or question is refused, and the error names both."""
    truth, stated = drawn(12, 3.0, seed=9)
    calibration = fitted["platt"]
    with pytest.raises(ArgumentError, match="judge 'a' is not in the panel: b"):
        CriterionGrader(judges=[Stating(stated, "b")], votes="soft", calibrations=[calibration])
    with pytest.raises(ArgumentError, match="judge 'a' has two calibrations"):
        distorted.rescore(calibrations=[calibration, calibration])
    with pytest.raises(ArgumentError, match="require votes='soft'"):
        CriterionGrader(judges=[Stating(stated)], calibrations=[calibration])
    moved = graded(truth, [Stating(stated, model="m-2")], tmp_path / "moved", calibrations=[calibration])
    assert moved.get_scores() == [None] * 12
    assert "for probabilities from 'decision_model, m-1'; got 'decision_model, m-2'" in moved.errors[0][1]
    with pytest.raises(ArgumentError, match="criterion 'tone': it was fitted on another question"):
        graded(
            truth,
            [Stating(stated)],
            tmp_path / "reworded",
            Rubric([BINARY, tone("Is it warm?")]),
            calibrations=[calibration],
        )
    renamed = Rubric([BINARY.model_copy(update={"name": "plain"})])
    with pytest.raises(ArgumentError, match="criterion 'plain': it was fitted on only clear, tone"):
        graded({"i": {}}, [Stating(stated)], tmp_path / "renamed", renamed, calibrations=[calibration])
    shorter = {**calibration.parameters, "clear": calibration.parameters["clear"][:1]}
    changed = calibration.model_copy(update={"parameters": shorter})
    with pytest.raises(ArgumentError, match="criterion 'clear': it was fitted on 1 answers, not 2"):
        distorted.rescore(calibrations=[changed])


def test_what_cannot_be_calibrated_is_refused(tmp_path: Path) -> None:
    """Judges without probabilities, several judges, mixed versions and criteria with few labels."""
    truth, stated = drawn(40, 3.0)

    def plain(request: JudgeRequest) -> str:
        return "MET"

    none = graded(truth, [plain], tmp_path / "none", Rubric([BINARY]))
    with pytest.raises(ArgumentError, match="no vote has probabilities; grade with a judge that gives them"):
        calibrate_probabilities(none)
    unlabelled = graded({key: {} for key in truth}, [Stating(stated)], tmp_path / "unlabelled")
    with pytest.raises(ArgumentError, match="no item has both a label and probabilities"):
        calibrate_probabilities(unlabelled)
    two = graded(truth, [Stating(stated), Stating(stated, "b", "m-2")], tmp_path / "two")
    with pytest.raises(ArgumentError, match=r"judge=None: .* available: 'a', from decision_model, m-1; 'b'"):
        calibrate_probabilities(two)
    few = {item: dict(labels) for item, labels in truth.items()}
    for item in list(few)[3:]:
        del few[item]["tone"]
    with pytest.raises(ArgumentError, match=r"criterion 'tone' has . labelled items to fit on"):
        calibrate_probabilities(graded(few, [Stating(stated)], tmp_path / "few"))
    with pytest.raises(ArgumentError, match="method must be one of"):
        calibrate_probabilities(two, judge="a", method="bayes")  # type: ignore[arg-type]


def test_a_file_is_read_back_and_validated(fitted: dict[str, ProbabilityCalibration], tmp_path: Path) -> None:
    """A saved calibration is equal; a newer format, another method and damaged parameters are refused."""
    path = tmp_path / "calibration.json"
    for calibration in fitted.values():
        calibration.save(path)
        assert ProbabilityCalibration.from_file(path) == calibration
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["format"] == 1 and len(content["data"]) == 64
    for change, told in (
        ({"format": 2}, "format 2 is newer"),
        ({"method": "platt"}, "parameters do not match"),
        ({"parameters": {}}, "parameters do not match"),
        ({"extra": 1}, "extra"),
        ({"method": "pickle"}, "temperature"),
    ):
        path.write_text(json.dumps({**content, **change}), encoding="utf-8")
        with pytest.raises(FileError, match=told):
            ProbabilityCalibration.from_file(path)


@pytest.mark.slow
def test_parts_of_a_criterion_are_calibrated_separately(tmp_path: Path) -> None:
    """The items of a checklist have their own parameters, by the name of the part."""
    rng = np.random.default_rng(0)
    items = {"date": "A date", "name": "A name"}
    truth: dict[str, Any] = {}
    stated: dict[Any, Any] = {}
    for at in range(300):
        truth[f"i{at}"], stated[f"i{at}", "form"] = {"form": {}}, {}
        for one, power in (("date", 3.0), ("name", 0.3)):
            p = rng.random()
            q = p**power / (p**power + (1 - p) ** power)
            stated[f"i{at}", "form"][one] = {"MET": q, "UNMET": 1 - q}
            truth[f"i{at}"]["form"][one] = bool(rng.random() < p)
    run = graded(truth, [Stating(stated)], tmp_path, Rubric([ChecklistCriterion(name="form", items=items)]))
    found = calibrate_probabilities(run)
    assert list(found.parameters) == ["form/date", "form/name"]
    assert found.parameters["form/date"][0][0] > 2 and found.parameters["form/name"][0][0] < 0.5
    after = judge_report(run.rescore(calibrations=[found])).per_judge["a"].probabilities
    assert after["form/name"].brier < judge_report(run).per_judge["a"].probabilities["form/name"].brier
