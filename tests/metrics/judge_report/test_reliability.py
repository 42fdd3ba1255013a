"""`reliability`: every figure is that of the function of its name, on the scales that have it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from autorubric.errors import ArgumentError
from autorubric.metrics import (
    Binary,
    Interval,
    Nominal,
    Ordinal,
    conger_kappa,
    cronbach_alpha,
    fleiss_kappa,
    gwet_ac,
    icc,
    kendall_w,
    krippendorff_alpha,
    percent_agreement,
    reliability,
)
from tests.metrics.asserting import number

DEPTH = Ordinal(["low", "some", "high"], values=[0.0, 0.3, 1.0])
PLACES: dict[Any, float | None] = {"low": 0.0, "some": 0.3, "high": 1.0, None: None}


def ratings(scale: Any, n: int = 40, seed: int = 1) -> list[list[Any]]:
    """Three raters who agree more often than not, with some ratings missing."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, scale.size, n)
    columns = [np.where(rng.random(n) < 0.7, base, rng.integers(0, scale.size, n)) for _ in range(3)]
    rows: list[list[Any]] = [[scale.labels[code] for code in row] for row in zip(*columns, strict=True)]
    rows[0][1], rows[3][2], rows[3][0] = None, None, None
    return rows


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("scale", [Binary(), Nominal(["x", "y", "z"]), DEPTH])
def test_figures_of_categories_are_those_of_their_functions(scale: Any, clustered: bool) -> None:
    """Value, interval and counts are the same."""
    rows = ratings(scale)
    interval: Any = {"cluster": [i // 2 for i in range(len(rows))] if clustered else None, "n_resamples": 150}
    found = reliability(rows, scale=scale, **interval)
    level: Any = "ordinal" if isinstance(scale, Ordinal) else "nominal"
    alone = {
        "alpha": krippendorff_alpha(rows, level=level, scale=scale, **interval),
        "fleiss": fleiss_kappa(rows, scale=scale, **interval),
        "conger": conger_kappa(rows, scale=scale, **interval),
        "ac1": gwet_ac(ratings=rows, scale=scale, **interval),
        "percent_agreement": percent_agreement(rows, scale=scale, **interval),
    }
    for name, figure in alone.items():
        assert getattr(found, name).to_dict() == figure.to_dict(), name
    assert (found.n_units, found.n_pairable, found.n_raters, found.n_missing) == (40, 39, 3, 3)


def test_figures_of_an_order_take_its_values() -> None:
    """ICC, Cronbach's alpha and Kendall's W see the values, and AC2 has quadratic weights on them."""
    rows = ratings(DEPTH)
    numbers = [[PLACES[one] for one in row] for row in rows]
    found = reliability(rows, scale=DEPTH, icc_form="ICC(3,k)")
    assert found.ac2.to_dict() == gwet_ac(ratings=rows, scale=DEPTH, weights="quadratic").to_dict()
    assert found.icc.to_dict() == icc(numbers, form="ICC(3,k)").to_dict()
    assert found.cronbach.to_dict() == cronbach_alpha(numbers).to_dict()
    assert found.kendall_w.to_dict() == kendall_w(numbers).to_dict()


def test_figures_of_numbers() -> None:
    """An interval has alpha of distances and the figures of numbers, and none of categories."""
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(30, 1)) + rng.normal(size=(30, 3))).tolist()
    rows[2][1] = None
    found = reliability(rows, scale=Interval())
    assert found.alpha.to_dict() == krippendorff_alpha(rows, level="interval", scale=Interval()).to_dict()
    assert found.icc.to_dict() == icc(rows).to_dict()
    assert found.fleiss.reason == "not_on_scale"
    assert set(found.figures()) == {"alpha", "icc", "cronbach", "kendall_w"}
    assert found.raters[1].n == 29 and found.raters[1].shares == {}


def test_only_what_is_asked_for() -> None:
    """Figures can be chosen; those of 0 and 1 are there where asked for; others say why they are not."""
    rows = ratings(Binary())
    found = reliability(rows, scale=Binary(), stats=("fleiss", "icc"))
    assert set(found.figures()) == {"fleiss", "icc"}
    assert found.alpha.reason == "not_requested"
    ones = [[None if one is None else float(one == "MET") for one in row] for row in rows]
    assert found.icc.to_dict() == icc(ones).to_dict()
    assert reliability(rows, scale=Nominal(["UNMET", "MET"]), stats=["icc"]).icc.reason == "not_on_scale"


def test_what_each_rater_gave() -> None:
    """Shares, means and abstentions by rater; a frame's columns are their names."""
    frame = pd.DataFrame({"ann": ["low", "high", "NA", "high"], "bo": ["low", "some", "low", None]})
    ann, bo = reliability(frame, scale=DEPTH).raters
    assert (ann.rater, ann.n, ann.n_missing, ann.n_abstained) == ("ann", 3, 1, 1)
    assert ann.shares == pytest.approx({"low": 1 / 3, "some": 0.0, "high": 2 / 3})
    assert number(ann.mean) == pytest.approx(2 / 3)
    assert (bo.rater, bo.n, bo.n_abstained) == ("bo", 3, 0)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [([], "no_ratings"), ([[None, None]], "no_ratings"), ([["low"], ["high"]], "no_pairs")],
)
def test_too_little_to_compare(rows: list[list[Any]], reason: str) -> None:
    """Without ratings, or with one rater, figures are undefined and JSON carries the rest."""
    found = reliability(rows, scale=DEPTH)
    assert found.fleiss.reason == reason
    json.dumps(found.to_dict(), allow_nan=False)
    assert "Reliability" in found.summary()


@pytest.mark.parametrize(
    ("rows", "arguments", "message"),
    [
        ([["low", "low"], ["low"]], {}, "must have the same length"),
        ("low", {}, "ratings must be a table"),
        (np.zeros(3), {}, "shape"),
        ([["low", "deep"]], {}, "not on the scale"),
        ([["low", "low"]], {"stats": ["kappa"]}, "stats must be a list of"),
        ([["low", "low"]], {"stats": "alpha"}, "stats must be a list of"),
    ],
)
def test_what_cannot_be_is_refused(rows: Any, arguments: dict[str, Any], message: str) -> None:
    """Tables that are none, labels outside and figures that do not exist are refused."""
    with pytest.raises(ArgumentError, match=message):
        reliability(rows, scale=DEPTH, **arguments)
