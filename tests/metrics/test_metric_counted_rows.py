"""Equal units are counted, not repeated: what that may and may not change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from autorubric.metrics import conger_kappa, fleiss_kappa, krippendorff_alpha
from autorubric.metrics.core.contingency import encode, number_pairs
from autorubric.metrics.core.resampling import draw_weights
from autorubric.metrics.figures.many_raters import CountedRows
from autorubric.metrics.figures.ranks import kendall_of, rank_pairs

TABLES = hnp.arrays(np.int64, st.tuples(st.integers(0, 40), st.integers(1, 4)), elements=st.integers(-1, 2))


@settings(deadline=None)
@given(TABLES, st.sampled_from([3, 100]))
def test_rows_and_counts_make_the_table_again(rows, size):
    """Each row written as often as it is counted is the table, in another order."""
    table = CountedRows.of(rows, size, None)
    assert len(np.unique(table.rows, axis=0)) == len(table.rows)
    again = np.repeat(table.rows, table.counts, axis=0)
    assert sorted(again.tolist()) == sorted(rows.tolist())


def test_rows_that_are_no_number_stay():
    """Rows too long for a number of 64 bits, and rows of clusters, are left as they are."""
    rows = np.zeros((5, 70), dtype=np.int64)
    assert CountedRows.of(rows, 5, None).rows.shape == (5, 70)
    assert CountedRows.of(rows[:, :2], 5, np.arange(5)).counts.tolist() == [1] * 5


@settings(deadline=None, max_examples=40)
@given(TABLES)
def test_a_cluster_for_each_unit_changes_no_value(rows):
    """Units that are clusters are not counted together, and yield the same coefficients."""
    ids = np.arange(len(rows))
    for figure in (
        lambda **options: conger_kappa(rows, labels=3, ci=None, **options),
        lambda **options: fleiss_kappa(rows, labels=3, ci=None, **options),
        *(
            lambda level=level, **options: krippendorff_alpha(rows, level=level, labels=3, ci=None, **options)
            for level in ("nominal", "ordinal", "interval", "ratio")
        ),
    ):
        counted, single = figure(), figure(cluster=ids)
        assert (counted.n, counted.n_missing, counted.reason) == (single.n, single.n_missing, single.reason)
        assert counted.value == (None if single.value is None else pytest.approx(single.value))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_integers_are_coded_without_sorting(dtype):
    """Close integers, narrow and wide ones, get the codes of their order."""
    values = np.array([120, 3, 120, 5, 3] * 60, dtype=dtype)
    coded = encode([values], None, None)
    assert coded.codes[0].tolist() == [2, 0, 2, 1, 0] * 60
    assert coded.scale is not None and coded.scale.labels == (3, 5, 120)


def test_narrow_integers_do_not_overflow():
    """The distance of the ends of a narrow type does not fit into it, and is right all the same."""
    values = np.arange(-128, 128, dtype=np.int8)
    assert encode([values], None, None).codes[0].tolist() == list(range(256))


@pytest.mark.parametrize("counts", [[2] * 100 + [1] * 300, [0, 2] * 150, [1, 0, 0, 0] * 80, [1] * 300])
def test_units_are_drawn_by_their_counts(counts):
    """Units come up in proportion to how many they stand for, and as many in all as are drawn."""
    total = sum(counts)
    weights = draw_weights(np.array(counts), total, 2000, np.random.default_rng(0))
    assert (weights.sum(1) == total).all()
    for count in set(counts):
        drawn = weights[:, np.array(counts) == count]
        assert drawn.mean() == pytest.approx(count, abs=0.02)
        assert not drawn.any() or count > 0


def test_many_pairs_are_ranked_as_pair_by_pair():
    """Tau of more pairs than a matrix would hold, with ties and weights, from all pairs one by one."""
    rng = np.random.default_rng(1)
    n = 1600
    x, y = rng.integers(0, 300, n), rng.integers(0, 300, n)
    weights = rng.integers(0, 4, (2, n)).astype(float)
    signs = np.sign(x[:, None] - x) * np.sign(y[:, None] - y)
    found = kendall_of(rank_pairs(number_pairs(x, y, np.arange(n))))(weights)
    for row, tau in zip(weights, found, strict=True):
        pairs = np.outer(row, row)
        ties = [float(pairs[one[:, None] != one].sum()) for one in (x, y)]
        assert tau == pytest.approx((pairs * signs).sum() / np.sqrt(ties[0] * ties[1]))
