"""P-values adjusted for their number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from statsmodels.stats.multitest import multipletests

from autorubric.errors import ArgumentError
from autorubric.metrics import adjust_pvalues

NAMES = {"holm": "holm", "bh": "fdr_bh", "by": "fdr_by", "bonferroni": "bonferroni"}
METHODS = sorted(NAMES)
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(10))
def test_it_is_what_statsmodels_gives(method, seed):
    """The same numbers as `multipletests`, ties and ends of the range included."""
    rng = np.random.default_rng(seed)
    p = rng.choice([0.0, 1e-9, 0.02, 0.5, 1.0, *rng.random(20)], size=1 + 4 * seed).tolist()
    expected = multipletests(p, method=NAMES[method])[1]
    assert adjust_pvalues(p, method) == pytest.approx(expected.tolist(), abs=1e-12)


def test_three_p_values_by_hand():
    """.01, .04, .03. Holm: 3·.01, then 2·.03 = .06, then max(.06, .04). BH: .03, .04·3/3, min(.03·3/2, .04).

    BY is BH times 1 + 1/2 + 1/3 = 11/6, Bonferroni three times each.
    """
    p = [0.01, 0.04, 0.03]
    assert adjust_pvalues(p) == pytest.approx([0.03, 0.06, 0.06])
    assert adjust_pvalues(p, "bh") == pytest.approx([0.03, 0.04, 0.04])
    assert adjust_pvalues(p, "bonferroni") == pytest.approx([0.03, 0.12, 0.09])
    assert adjust_pvalues(p, "by") == pytest.approx([0.055, 0.22 / 3, 0.22 / 3])


@pytest.mark.parametrize("method", METHODS)
def test_tests_that_could_not_be_made_do_not_count(method):
    """None and NaN stay None and leave the number of tests alone."""
    alone = adjust_pvalues([0.2, 0.01], method)
    assert adjust_pvalues([None, 0.2, float("nan"), 0.01], method) == [None, alone[0], None, alone[1]]
    assert adjust_pvalues([], method) == []
    assert adjust_pvalues([None], method) == [None]


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None)
@given(p=P_VALUES)
def test_order_is_kept_and_nothing_gets_smaller(method, p):
    """Adjusted p-values rank as the p-values do, lie at or above them and at most at 1."""
    adjusted = [one for one in adjust_pvalues(p, method) if one is not None]
    assert all(before <= after <= 1 for before, after in zip(p, adjusted, strict=True))
    ranked = [adjusted[place] for place in np.argsort(p)]
    assert ranked == sorted(ranked)


def test_wrong_arguments_are_refused():
    """P-values outside [0, 1] and unknown methods raise."""
    with pytest.raises(ArgumentError, match=r"1\.5"):
        adjust_pvalues([0.1, 1.5])
    with pytest.raises(ArgumentError, match="holm"):
        adjust_pvalues([0.1], "sidak")  # type: ignore[arg-type]
