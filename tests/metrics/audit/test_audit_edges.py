"""What audits do with next to nothing: a reason for every figure, no exception and no warning."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autorubric.errors import ArgumentError
from autorubric.metrics import bias_report, item_analysis, panel_audit, self_consistency, variance_components
from tests.metrics.audit.tables import Rows, binary_rows, noisy

AUDITS: list[Callable[..., Any]] = [
    panel_audit,
    self_consistency,
    bias_report,
    item_analysis,
    variance_components,
]

TABLES: dict[str, Rows] = {
    "nothing": [],
    "one vote": binary_rows(None, {"a": [1]}),
    "no truth": binary_rows(None, {"a": [1, 0, 1], "b": [1, 1, 1]}),
    "one judge": binary_rows([1, 0, 1], {"a": [1, 1, 1]}),
    "one item": binary_rows([1], {"a": [1], "b": [0]}),
    "two items": binary_rows([1, 0], {"a": [1, 1], "b": [0, 0]}),
    "truth alone": binary_rows([1, 0], {}),
    "judges apart": binary_rows([1, 0, 1, 0], {"a": [1, 0, None, None], "b": [None, None, 1, 0]}),
    "all the same": binary_rows([1, 1, 1], {"a": [1, 1, 1], "b": [1, 1, 1]}),
}


@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: audit.__name__)
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_next_to_nothing_is_reported(audit: Callable[..., Any], table: str) -> None:
    """Every audit of every small table serialises without NaN and prints."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = audit(TABLES[table])
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.summary()
    assert found.blocks()


def _undefined(found: Any) -> list[dict[str, Any]]:
    """Estimates without a value, anywhere in a result."""
    if isinstance(found, dict):
        if "value" in found and "reason" in found:
            return [found] if found["value"] is None else []
        return [one for part in found.values() for one in _undefined(part)]
    return [one for part in found for one in _undefined(part)] if isinstance(found, list) else []


@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: audit.__name__)
def test_every_undefined_figure_has_a_reason(audit: Callable[..., Any]) -> None:
    """Without a truth and with a single judge, what is None says why."""
    undefined = [one for table in TABLES.values() for one in _undefined(audit(table).to_dict())]
    assert undefined
    assert all(one["reason"] for one in undefined)


def test_reasons_of_a_panel_say_what_is_lacking() -> None:
    """No truth, one judge and judges that never meet are told apart."""
    assert panel_audit(TABLES["no truth"]).panel.reason == "no_truth"
    alone = panel_audit(TABLES["one judge"])
    assert alone.panel == pytest.approx(2 / 3)
    assert alone.mean_correlation.reason == alone.per_judge["a"].gain.reason == "one_judge"
    apart = panel_audit(TABLES["judges apart"])
    assert apart.panel.reason == apart.smallest_panel.chosen.reason == "no_pairs"
    assert apart.n_complete == 0


@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: audit.__name__)
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_every_summary_opens_with_a_sentence(audit: Callable[..., Any], table: str) -> None:
    """The first line is one plain sentence and no table, whatever could be computed."""
    opening = audit(TABLES[table]).summary().splitlines()[0]
    assert opening[0].isupper() and opening.endswith(".")
    assert len(opening.split()) > 5


@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: audit.__name__)
def test_no_audit_takes_anything_for_a_dataset(audit: Callable[..., Any]) -> None:
    """What has no items and rubrics is refused, not tripped over."""
    with pytest.raises(ArgumentError, match=r"must be a RubricDataset.*got int"):
        audit(TABLES["two items"], 3)


@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: audit.__name__)
def test_the_order_of_items_moves_no_interval(audit: Callable[..., Any]) -> None:
    """The same rows turned round give the same ends."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 24)
    rows = binary_rows(truth.tolist(), {"a": noisy(truth, 0.2, rng), "b": noisy(truth, 0.3, rng)})
    rows += binary_rows(truth.tolist(), {"a": noisy(truth, 0.4, rng), "b": truth.tolist()}, criterion="d")
    rows = [row | {"sample": 0} if row["rater_type"] == "llm" else row for row in rows]
    rows += [row | {"sample": 1, "label": "MET"} for row in rows if row["rater_type"] == "llm"]
    by_item = sorted(rows, key=lambda row: row["item_id"], reverse=True)
    assert _ends(audit(rows, rng=4).to_dict()) == pytest.approx(_ends(audit(by_item, rng=4).to_dict()))


def _ends(found: Any) -> list[float]:
    if isinstance(found, dict):
        if "low" in found and "high" in found and "reason" in found:
            return [] if found["low"] is None else [found["low"], found["high"]]
        return [end for part in found.values() for end in _ends(part)]
    return [end for part in found for end in _ends(part)] if isinstance(found, list) else []
