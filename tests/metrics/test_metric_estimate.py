"""An estimate behaves as its number, and says so where it has none."""

from __future__ import annotations

import json
import math
import numbers
import statistics
from fractions import Fraction

import numpy as np
import pytest

from autorubric.errors import ArgumentError
from autorubric.metrics import Estimate, UndefinedEstimateError

HALF = Estimate(0.5, 0.25, 0.75, 0.1, 40, "share")
UNDEFINED = Estimate.undefined("no_pairs", n=0, method="share", n_missing=3)


def test_compares_with_numbers_and_estimates():
    """A defined estimate compares by value."""
    assert HALF == 0.5
    assert Estimate(0.5) == HALF
    assert HALF != 0.25
    assert 0.25 < HALF < 1
    assert HALF <= 0.5 <= HALF
    assert Estimate(0.25) < HALF
    assert HALF >= 0.5
    assert pytest.approx(0.5) == HALF
    assert pytest.approx(0.5) == HALF
    assert HALF != "0.5"
    assert {HALF: 1}[Estimate(0.5)] == 1


def test_calculates_as_its_value():
    """Arithmetic gives plain floats, from either side."""
    assert HALF + 1 == 1.5 == 1 + HALF
    assert HALF - 1 == -0.5
    assert 1 - HALF == 0.5
    assert HALF * 2 == 1.0 == 2 * HALF
    assert HALF / 2 == 0.25
    assert 1 / HALF == 2.0
    assert HALF**2 == 0.25
    assert (-HALF, +HALF, abs(-HALF + 0)) == (-0.5, 0.5, 0.5)
    assert round(Estimate(0.126), 2) == 0.13
    assert math.sqrt(Estimate(0.25)) == 0.5
    assert statistics.fmean([HALF, 0.0]) == 0.25
    assert (HALF.real, HALF.imag, HALF.as_integer_ratio()) == (0.5, 0.0, (1, 2))
    assert np.asarray([float(HALF)]).sum() == 0.5
    assert float(np.asarray(HALF)) == 0.5
    assert bool(HALF)
    assert not Estimate(0.0)


def test_formats_as_its_value():
    """Format specifications apply to the number."""
    assert f"{HALF:.2f}" == "0.50"
    assert f"{HALF:.0%}" == "50%"
    assert str(HALF) == "0.5"


def test_undefined_has_no_number():
    """Every way to a number raises one typed error with the reason; formatting does not."""
    with pytest.raises(UndefinedEstimateError, match="no_pairs") as caught:
        float(UNDEFINED)
    assert caught.value.reason == "no_pairs"
    for number in (
        lambda: UNDEFINED + 1,
        lambda: UNDEFINED < 1,
        lambda: bool(UNDEFINED),
        lambda: round(UNDEFINED),
    ):
        with pytest.raises(ArgumentError):
            number()
    assert f"{UNDEFINED:.2f}" == "n/a"
    assert str(UNDEFINED) == "n/a (no_pairs)"
    assert UNDEFINED != 0.0
    assert not UNDEFINED.is_defined


def test_serialises_to_json_without_nan():
    """All fields survive strict JSON."""
    assert json.loads(json.dumps(UNDEFINED.to_dict(), allow_nan=False))["n_missing"] == 3
    assert json.loads(json.dumps(HALF.to_dict(), allow_nan=False))["low"] == 0.25


def test_refuses_nan_and_silence():
    """A NaN, or nothing without a reason, is no estimate."""
    with pytest.raises(ArgumentError, match="finite"):
        Estimate(float("nan"))
    with pytest.raises(ArgumentError, match="reason"):
        Estimate(None)


def test_maps_through_a_monotone_function():
    """The ends follow the value and stay in order; an undefined estimate stays as it is."""
    mapped = HALF.map(lambda x: -x)
    assert (mapped.value, mapped.low, mapped.high, mapped.se) == (-0.5, -0.75, -0.25, None)
    assert UNDEFINED.map(lambda x: x) is UNDEFINED
    assert Estimate(0.5).map(lambda x: 2 * x) == 1.0


def test_is_a_real_number_in_every_operation():
    """Whatever a real number takes part in gives what the plain number gives, on either side."""
    number, e = 2.5, Estimate(2.5)
    assert (int(e), math.trunc(e), math.floor(e), math.ceil(e)) == (2, 2, 2, 3)
    assert (complex(e), e.conjugate(), e.real, e.imag) == (2.5 + 0j, 2.5, 2.5, 0.0)
    for other in (2, 0.1, Fraction(3, 4), Estimate(1.5)):
        plain = float(other)
        assert (e**other, other**e) == (number**plain, plain**number)
        assert (e // other, other // e) == (number // plain, plain // number)
        assert (e % other, other % e) == (number % plain, plain % number)
        assert (divmod(e, other), divmod(other, e)) == (divmod(number, plain), divmod(plain, number))


@pytest.mark.parametrize("name", sorted(numbers.Real.__abstractmethods__))
def test_has_every_method_that_a_real_number_must_have(name):
    """The class is registered as a real number, so that no method of one may be missing."""
    assert callable(getattr(Estimate, name, None)) or isinstance(getattr(Estimate, name), property)


@pytest.mark.parametrize(
    "operation", [int, math.floor, math.ceil, lambda e: 2**e, lambda e: e // 2, lambda e: e % 2, complex]
)
def test_an_undefined_one_raises_in_these_too(operation):
    """No integer, power or remainder comes of an estimate without a value."""
    with pytest.raises(ArgumentError):
        operation(UNDEFINED)
