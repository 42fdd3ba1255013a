"""Audits of real judges: the seven of ttcw as a panel, people asked twice, writers who judge their own."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from autorubric import RubricDataset
from autorubric.metrics import Ordinal, bias_report, krippendorff_alpha, panel_audit, self_consistency
from tests.proof.real_data import load_lines, read_csv, reference, summhay, ttcw

pytestmark = pytest.mark.shared_data

TTCW_JUDGES = ("cgpt", "claudev13", "claudev2", "claudev21", "claude3-opus", "gpt4", "gemini-pro")

FAMILIES = {
    "gpt-4o": "openai",
    "9fs-gpt-4o": "openai",
    "gpt3.5": "openai",
    "gpt4-turbo": "openai",
    "claude3-opus": "anthropic",
    "claude3-sonnet": "anthropic",
    "claude3-haiku": "anthropic",
    "gemini-1.5-pro": "google",
    "gemini-1.5-flash": "google",
}


def test_ttcw_panel(shared_data: Path) -> None:
    """The panel of seven is right as often as the reference says, and errs as one judge and a half would.

    The source counts what is no "yes" as No; so do these votes, missing ones included.
    """
    folder = shared_data / "ttcw"
    dataset = ttcw(folder)
    said = {(r["rater"], r["item_id"], r["criterion"]): r["value"] for r in read_csv(folder / "labels.csv")}
    names = [criterion.name for criterion in dataset.rubric or ()]
    rows = [
        {"item_id": item.id, "criterion": name, "rater": judge, "rater_type": "llm",
         "label": "MET" if said.get((judge, str(item.id), str(name))) == "Yes" else "UNMET"}
        for judge in TTCW_JUDGES for item in dataset.items for name in names
    ]  # fmt: skip
    found = panel_audit(rows, dataset, n_resamples=200)
    assert (found.n_items, found.n_cells, found.n_complete) == (48, 672, 672)
    assert found.panel == pytest.approx(reference(folder)["panel7/accuracy"]["value"], abs=1e-12)
    truth = {(item, name): label for i in range(48) if (item := dataset.item_id(i))
             for name, label in (dataset.item_truth(i) or {}).items()}  # fmt: skip
    wrong = {
        judge: np.array([[float((r["label"] == "MET") != (truth[str(r["item_id"]), str(name)] == "MET"))
                          for r in rows if (r["rater"], r["criterion"]) == (judge, name)] for name in names])
        for judge in TTCW_JUDGES
    }  # fmt: skip
    centred = {judge: (one - one.mean(1, keepdims=True)).reshape(-1) for judge, one in wrong.items()}
    pooled = [np.corrcoef(centred[a], centred[b])[0, 1] for a, b in combinations(TTCW_JUDGES, 2)]
    assert [one.pooled.value for one in found.correlations] == pytest.approx(pooled)
    assert found.effective_judges == pytest.approx(7 / (1 + 6 * np.mean(pooled)))
    assert 1.5 < found.effective_judges < 2.2
    # Six of seven judges could go: one alone does better where it was not chosen.
    assert len(found.smallest_panel.judges) == 1
    assert found.best_single.difference < 0


def test_people_of_llm_rubric_asked_twice(shared_data: Path) -> None:
    """Nine dialogues rated twice by the same people: the figures are those of counting the 81 pairs."""
    folder = shared_data / "llm_rubric"
    first = {(r["rater"], r["item_id"], r["criterion"]): r["value"] for r in read_csv(folder / "labels.csv")}
    second = read_csv(folder / "labels_repeat.csv")
    by_criterion: dict[str, list[list[str]]] = defaultdict(list)
    for row in second:
        by_criterion[row["criterion"]].append(
            [first[row["rater"], row["item_id"], row["criterion"]], row["value"]]
        )
    pairs = [
        [None if label == "NA" else int(label) for label in pair]
        for one in by_criterion.values()
        for pair in one
    ]
    items = [at for one in by_criterion.values() for at in range(len(one))]
    scale = Ordinal([1, 2, 3, 4])
    found = self_consistency(pairs, scale=scale, cluster=items)
    complete = [pair for pair in pairs if None not in pair]
    assert len(pairs) == 81
    assert found.n_units == len(complete)
    assert found.flip_rate == pytest.approx(np.mean([a != b for a, b in complete]))
    assert found.pairwise_agreement == pytest.approx(1 - float(found.flip_rate))
    assert found.alpha == pytest.approx(
        float(krippendorff_alpha(pairs, level="ordinal", scale=scale, ci=None))
    )


def _slope_within(y: Any, x: Any, strata: Any) -> float:
    """Slope of y on x with an intercept for each stratum: deviations from the means of the strata."""
    places = [[at for at, one in enumerate(strata) if one == stratum] for stratum in dict.fromkeys(strata)]
    left = [np.concatenate([one[at] - one[at].mean() for at in places]) for one in (y, x.astype(float))]
    return float((left[0] * left[1]).sum() / (left[1] ** 2).sum())


def test_summhay_writers_judge_their_own(shared_data: Path) -> None:
    """Self-preference of the judges who are writers, against plain arithmetic on the labels."""
    folder = shared_data / "summhay"
    writer = {row["item_id"]: row["meta"]["writer"] for row in load_lines(folder / "items.jsonl")}
    items = [
        item.model_copy(update={"metadata": {"generator": writer[str(item.id)]}})
        for item in summhay(folder).items
    ]
    dataset = RubricDataset(name="summhay", items=items)
    rows = [row for row in read_csv(folder / "labels.csv") if row["rater_type"] == "llm"]
    found = bias_report(rows, dataset, families=FAMILIES, n_resamples=100)
    assert found.generators["gpt-4o"] == 24
    worth = {"not_covered": 0.0, "partially_covered": 0.5, "fully_covered": 1.0}
    values: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for row in read_csv(folder / "labels.csv"):
        values[row["rater"]][row["item_id"], row["criterion"]] = worth[row["value"]]
    judges = [judge for judge in values if judge != "human"]
    assert set(found.per_judge) == set(judges)
    for judge in judges:
        cells = list(values[judge])
        family = FAMILIES[judge]
        others = [other for other in judges if FAMILIES[other] != family]
        own = np.array([FAMILIES.get(writer[item]) == family for item, _ in cells])
        mine = np.array([values[judge][cell] for cell in cells])
        theirs = np.array([np.mean([values[other][cell] for other in others]) for cell in cells])
        human = np.array([values["human"][cell] for cell in cells])
        one = found.per_judge[judge]
        assert one.mean_difference.effect == pytest.approx((mine - human).mean())
        strata = [(criterion, label) for (_, criterion), label in zip(cells, human, strict=True)]
        assert one.self_preference.effect == pytest.approx(_slope_within(mine - theirs, own, strata))
        assert one.own_error_difference.effect == pytest.approx(_slope_within(mine - human, own, strata))
        words = [len(str(item.submission).split()) for item in items]
        ranks = dict(
            zip([item.id for item in items], (stats.rankdata(words) - 0.5) / len(items), strict=True)
        )
        rank = np.array([ranks[item] for item, _ in cells])
        assert one.length_lean.effect == pytest.approx(_slope_within(mine - human, rank, strata))
    # All judges are more lenient than the people, haiku by far the most; none favours its own family.
    assert max(judges, key=lambda judge: float(found.per_judge[judge].leniency.effect)) == "claude3-haiku"
    assert all(float(one.leniency.effect) > 0 for one in found.per_judge.values())
    assert not any(float(one.self_preference.effect) > 0.01 for one in found.per_judge.values())
