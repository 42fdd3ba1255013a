"""What all results of audits and corrections can do."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from autorubric.metrics import (
    alt_test,
    bias_report,
    compare_judges,
    corrected_rate,
    human_ceiling,
    item_analysis,
    panel_audit,
    self_consistency,
    variance_components,
)
from autorubric.metrics.core.result import AuditFindings
from autorubric.support.blocks import TableBlock
from tests.metrics.audit.tables import binary_rows, noisy

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 2, 60).tolist()
JUDGES = {name: noisy(TRUTH, 0.2, RNG) for name in "abc"}
ROWS = binary_rows(TRUTH, JUDGES)
HUMANS = np.array([noisy(TRUTH, 0.2, RNG) for _ in range(3)]).T

RESULTS = {
    "alt_test": alt_test(JUDGES["a"], HUMANS, n_resamples=20),
    "bias_report": bias_report(ROWS, n_resamples=20),
    "compare_judges": compare_judges(TRUTH, JUDGES["a"], JUDGES["b"], n_resamples=20),
    "corrected_rate": corrected_rate(JUDGES["a"], TRUTH, JUDGES["a"]),
    "human_ceiling": human_ceiling(HUMANS, n_resamples=20),
    "item_analysis": item_analysis(ROWS, n_draws=5),
    "panel_audit": panel_audit(ROWS, n_resamples=20),
    "self_consistency": self_consistency([[1, 1, 0], [0, 0, 0], [1, 1, 1]], n_resamples=20),
    "variance_components": variance_components(ROWS, n_resamples=20),
}


@pytest.mark.parametrize("found", RESULTS.values(), ids=RESULTS)
def test_a_result_is_text_json_latex_and_html(found: Any) -> None:
    """Every form is made of the same blocks, and opens with a sentence."""
    assert isinstance(found, AuditFindings)
    assert found.summary().strip()
    assert any(line.endswith(".") for line in found.summary().splitlines()[:2])
    json.dumps(found.to_dict(), allow_nan=False)
    assert "tabular" in found.to_latex()
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("found", RESULTS.values(), ids=RESULTS)
def test_the_first_table_of_a_result_is_its_frame(found: Any, library: Any) -> None:
    """Its columns and number of rows are those of the text, in either library."""
    table = next(block for block in found.blocks() if isinstance(block, TableBlock))
    frame = found.to_dataframe(library=library)
    assert list(frame.columns) == list(table.columns)
    assert len(frame) == len(table.rows)


def test_a_comparison_of_judges_is_summarised() -> None:
    """The sentence has the difference and the test; the table has both judges."""
    text = compare_judges(
        [1, 1, 0, 0], [1, 1, 0, 1], [1, 0, 1, 1], stat="accuracy", method="mcnemar"
    ).summary()
    assert text.startswith("Difference in accuracy, judge a - judge b: 0.500")
    assert "exact McNemar" in text
    assert "judge a" in text and "judge b" in text
