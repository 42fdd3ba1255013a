"""How many items a study needs."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy import stats

import autorubric.metrics as metrics
from autorubric.errors import ArgumentError
from autorubric.metrics import compare_judges, sample_size


def test_two_methods_for_the_same_kappas():
    """.4 against .6 at a prevalence of .3: two-sided 190, one-sided 141, and each says which it is."""
    two_sided = sample_size.kappa(0.4, 0.6, prevalence=0.3, method="donner-eliasziw")
    one_sided = sample_size.kappa(0.4, 0.6, prevalence=0.3, method="cantor")
    assert (float(two_sided), float(one_sided)) == (190.0, 141.0)
    assert (two_sided.n, one_sided.n) == (190, 141)
    assert "Donner" in two_sided.method and "two-sided" in two_sided.method
    assert "Cantor" in one_sided.method and "one-sided" in one_sided.method
    assert metrics.sample_size is sample_size
    json.dumps(two_sided.to_dict(), allow_nan=False)


def test_donner_eliasziw_by_hand():
    """Prevalence .5: cells (.35, .3, .35) at .4 and (.4, .2, .4) at .6.

    Σ = 2 · .05²/.35 + .1²/.3 = 1/21; (1.959964 + .841621)² · 21 = 7.848880 · 21 = 164.83.
    """
    found = sample_size.kappa(0.4, 0.6, method="donner-eliasziw")
    assert found == 165
    assert "164.83 before rounding" in found.method


def test_cantor_by_hand():
    """Both margins .5: Q(κ) = 1 - κ², so ((1.644854 √.84 + .841621 √.64) / .2)² = 118.90, thus 119."""
    assert sample_size.kappa(0.4, 0.6, method="cantor") == 119


@pytest.mark.parametrize(("k0", "k1", "prevalence"), [(0.4, 0.6, 0.3), (0.7, 0.5, 0.5), (0.0, 0.4, 0.2)])
def test_cantors_number_has_its_power(k0, k1, prevalence):
    """Simulated kappas of that many items pass the one-sided test about 80 % of the time."""
    n = sample_size.kappa(k0, k1, prevalence=prevalence, method="cantor").n
    same = prevalence * (1 - prevalence)
    cells = [prevalence**2 + k1 * same, same * (1 - k1), same * (1 - k1), (1 - prevalence) ** 2 + k1 * same]
    draws = np.random.default_rng(0).multinomial(n, cells, size=20_000) / n
    observed = draws[:, 0] + draws[:, 3]
    p, q = draws[:, 0] + draws[:, 1], draws[:, 0] + draws[:, 2]
    expected = p * q + (1 - p) * (1 - q)
    kappas = (observed - expected) / (1 - expected)
    null = sample_size._cantor_sd(sample_size._cells(k0, prevalence, "k0"), prevalence) / math.sqrt(n)
    found = np.mean((kappas - k0) * np.sign(k1 - k0) > stats.norm.ppf(0.95) * null)
    assert found == pytest.approx(0.8, abs=0.05)


def test_proportion_by_hand():
    """Half within .05: 1.959964² · .25 / .0025 = 384.15, thus 385; a tenth within .03: 384.15 too.

    At a half, no other proportion has a wider interval, so that the assurance is 1.
    """
    assert sample_size.proportion(0.5, 0.05) == sample_size.proportion(0.5, 0.05, assurance=None) == 385
    assert sample_size.proportion(0.1, 0.03, assurance=None) == 385
    assert sample_size.proportion(0.5, 0.05, confidence_level=0.99) == 664


@pytest.mark.parametrize(("p", "half_width"), [(0.8, 0.05), (0.1, 0.03), (0.95, 0.02), (0.3, 0.1)])
def test_the_interval_of_a_proportion_is_narrow_enough_in_four_of_five_studies(p, half_width):
    """Wilson's interval, over all counts; at the number without assurance, in about half of studies."""

    def assurance(n):
        counts = np.arange(n + 1)
        ends = [metrics.wilson(int(k), n) for k in counts]
        narrow = np.array([float(one.high) - float(one.low) <= 2 * half_width + 1e-12 for one in ends])
        return stats.binom.pmf(counts, n, p)[narrow].sum()

    found = sample_size.proportion(p, half_width)
    assert "assurance 0.8" in found.method
    assert assurance(found.n) >= 0.8
    assert assurance(sample_size.proportion(p, half_width, assurance=None).n) < 0.75


@pytest.mark.parametrize(("k0", "k1"), [(0.4, 0.6), (0.2, 0.5), (0.6, 0.4)])
def test_the_interval_of_kappa_excludes_the_null_in_four_of_five_studies(k0, k1):
    """At a prevalence of .1, the bootstrap interval of the library, in 150 studies of that many items.

    The interval that is planned for is Fisher's z; the bootstrap interval is a little wider for a low kappa.
    """
    n, same = sample_size.kappa(k0, k1, prevalence=0.1).n, 0.09
    cells = [0.81 + k1 * same, same * (1 - k1), same * (1 - k1), 0.01 + k1 * same]
    draws = np.random.default_rng(1).multinomial(n, cells, size=150).reshape(-1, 2, 2)
    found = [metrics.cohen_kappa(table=one, scale=metrics.Binary(), n_resamples=400) for one in draws]
    assert np.mean([float(one.low) > k0 if k1 > k0 else float(one.high) < k0 for one in found]) >= 0.69


def test_paired_by_hand():
    """.2 against .1: ψ = .3, δ = .1; ((1.959964 √.3 + .841621 √.29) / .1)² = 233.09, thus 234."""
    found = sample_size.paired(0.2, 0.1, method="asymptotic")
    assert found == 234
    assert "Connor" in found.method
    assert found == sample_size.paired(0.1, 0.2, method="asymptotic")
    assert sample_size.paired(0.2, 0.1) == sample_size.paired(0.1, 0.2) > found


def test_asymptotic_number_has_its_power():
    """McNemar's test without correction finds the difference in about 80 % of simulated studies."""
    n = sample_size.paired(0.2, 0.1, method="asymptotic").n
    draws = np.random.default_rng(0).multinomial(n, [0.2, 0.1, 0.7], size=20_000)
    z = (draws[:, 0] - draws[:, 1]) / np.sqrt(draws[:, 0] + draws[:, 1])
    assert np.mean(np.abs(z) > stats.norm.ppf(0.975)) == pytest.approx(0.8, abs=0.02)


SHARES = [(0.15, 0.05), (0.25, 0.05), (0.6, 0.4), (0.3, 0.0), (0.9, 0.1), (1.0, 0.0), (0.02, 0.06)]


def _power(n, p10, p01, alpha=0.05):
    """Power of scipy's exact test, summed over all numbers of discordant items."""
    total = 0.0
    for size in range(1, n + 1):
        k = np.arange(size + 1)
        rejected = 2 * stats.binom.cdf(np.minimum(k, size - k), size, 0.5) < alpha
        inner = stats.binom.pmf(k, size, p10 / (p10 + p01))[rejected].sum()
        total += stats.binom.pmf(size, n, min(1.0, p10 + p01)) * inner
    return total


@pytest.mark.parametrize(("p10", "p01"), SHARES[1:5])
def test_the_exact_number_keeps_its_power(p10, p01):
    """From that number on the exact test has the power, and not with one item less."""
    n = sample_size.paired(p10, p01).n
    if n < 70:
        assert all(_power(n + more, p10, p01) >= 0.8 for more in (0, 1, 2, 3, 5, 8))
        assert _power(n - 1, p10, p01) < 0.8


@pytest.mark.parametrize(("p10", "p01"), SHARES)
@pytest.mark.parametrize("power", [0.5, 0.8, 0.9])
def test_more_items_than_the_number_never_have_less_power(p10, p01, power):
    """The power is no monotone function of n; the number is one from which on it stays above."""
    n = sample_size.paired(p10, p01, power=power).n
    found = [sample_size._exact_power(n + more, (p10, p01), 0.05) for more in range(-1, 200)]
    assert found[0] < power <= min(found[1:])


def test_the_number_serves_the_test_of_the_library():
    """.15 against .05: at the number asked for, the exact McNemar of `compare_judges` has a power of .80.

    The closed form asks for 155 items, at which the power is .762.
    """
    n = sample_size.paired(0.15, 0.05).n
    assert n == 168
    draws = np.random.default_rng(2).multinomial(n, [0.15, 0.05, 0.8], size=4000)
    p_values: dict[tuple[int, int], float] = {}
    for only_a, only_b in {(int(a), int(b)) for a, b, _ in draws}:
        a = np.arange(n) < n - only_b
        b = np.arange(n) >= only_a
        result = compare_judges(np.ones(n), a, b, method="mcnemar", ci=None)
        p_values[only_a, only_b] = result.p_value if result.p_value is not None else 1.0
    found = np.mean([p_values[int(a), int(b)] < 0.05 for a, b, _ in draws])
    assert found == pytest.approx(sample_size._exact_power(n, (0.15, 0.05), 0.05), abs=0.02)
    assert found >= 0.785


@settings(deadline=None)
@given(
    st.floats(-0.1, 0.9),
    st.floats(-0.1, 0.9),
    st.floats(0.2, 0.8),
    st.sampled_from(["cantor", "donner-eliasziw"]),
)
def test_more_is_asked_of_more(k0, k1, prevalence, method):
    """More power, a stricter level and nearer kappas need more; exchanging the labels changes nothing."""
    assume(abs(k0 - k1) > 0.05)
    plain = sample_size.kappa(k0, k1, prevalence=prevalence, method=method)
    assert sample_size.kappa(k0, k1, prevalence=prevalence, method=method, power=0.9) >= plain
    assert sample_size.kappa(k0, k1, prevalence=prevalence, method=method, alpha=0.01) >= plain
    assert sample_size.kappa(k0, (k0 + k1) / 2, prevalence=prevalence, method=method) >= plain
    exchanged = sample_size.kappa(k0, k1, prevalence=1 - prevalence, method=method)
    assert abs(exchanged - plain) <= 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: sample_size.kappa(0.4, 0.4),
        lambda: sample_size.kappa(0.4, 1.0),
        lambda: sample_size.kappa(-0.6, 0.4, prevalence=0.2),
        lambda: sample_size.kappa(0.4, 0.6, prevalence=0.0),
        lambda: sample_size.kappa(0.4, 0.6, alpha=1.0),
        lambda: sample_size.kappa(0.4, 0.6, power=float("nan")),
        lambda: sample_size.kappa(0.4, 0.6, method="flack"),  # type: ignore[arg-type]
        lambda: sample_size.proportion(0.0, 0.1),
        lambda: sample_size.proportion(0.5, 0.0),
        lambda: sample_size.proportion(0.5, 0.1, assurance=1.0),
        lambda: sample_size.paired(0.2, 0.2),
        lambda: sample_size.paired(0.2, 0.1, method="mid-p"),  # type: ignore[arg-type]
        lambda: sample_size.paired(0.8, 0.3),
        lambda: sample_size.paired(-0.1, 0.3),
    ],
)
def test_impossible_studies_are_refused(call):
    """Equal hypotheses, kappas that the prevalence rules out, and shares outside their range raise."""
    with pytest.raises(ArgumentError, match=r"must|there is no difference"):
        call()
