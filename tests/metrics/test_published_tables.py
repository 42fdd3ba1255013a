"""Figures that papers print for their own tables, to the printed decimals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pytest

from autorubric.metrics import (
    Nominal,
    bias,
    bradley_terry,
    cohen_kappa,
    dawid_skene,
    fleiss_kappa,
    gwet_ac,
    icc,
    krippendorff_alpha,
    lin_ccc,
    wilson,
)
from tests.conftest import SHARED_DATA
from tests.metrics.asserting import number
from tests.metrics.published import (
    CITATIONS,
    COHEN_1960,
    FOUR,
    FOURTEEN,
    JOURNALS,
    LARGE,
    MINI,
    OBSERVERS,
    READINGS,
    SHROUT_FLEISS,
    WINNIPEG,
)
from tests.proof.real_data import load_json


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table, what is computed of it, and the figures as printed.

    Attributes:
        figures: Gives the figures from inputs and params.
        printed: The figures, with the decimals of the source, separated by blanks.
        inputs: The table.
        params: What was chosen.
    """

    figures: Callable[..., Iterable[float]]
    printed: str
    inputs: dict[str, Any]
    params: dict[str, Any] = field(default_factory=dict)


def kappa(**table: Any) -> list[float]:
    """Cohen's."""
    return [float(cohen_kappa(**table))]


def fleiss(**table: Any) -> list[float]:
    """Fleiss'."""
    if "categories" in table:
        table["scale"] = Nominal(table.pop("categories"))
    return [float(fleiss_kappa(**table))]


def ac1(ratings: Any, categories: list[int]) -> list[float]:
    """Gwet's."""
    return [float(gwet_ac(ratings=ratings, scale=Nominal(categories)))]


def alpha(**table: Any) -> list[float]:
    """Krippendorff's."""
    return [float(krippendorff_alpha(**table))]


def correlation(ratings: Any, kind: Any) -> list[float]:
    """Of one of Shrout and Fleiss' six forms."""
    return [float(icc(ratings, form=kind))]


def concordance(a: list[int], b: list[int]) -> list[float]:
    """Lin's."""
    return [float(lin_ccc(a, b))]


def differences(a: list[int], b: list[int]) -> list[float]:
    """Mean and standard deviation of a minus b."""
    found = bias(b, a)
    return [number(found.mean_bias), number(found.std_bias)]


def abilities(wins: list[list[int]]) -> list[float]:
    """Log-abilities against the first journal."""
    places = range(len(wins))
    names = JOURNALS
    found = bradley_terry(
        [(names[i], names[j], names[i]) for i in places for j in places for _ in range(wins[i][j])]
    ).strengths
    assert found is not None
    return [found[name] - found[names[0]] for name in names]


def score_interval(successes: int, n: int, method: str) -> list[float]:
    """Wilson's."""
    assert method == "wilson"
    found = wilson(successes, n)
    return [number(found.low), number(found.high)]


def prior(votes: list[list[int]]) -> list[float]:
    """Shares of the grades, from (patient, observer, grade)."""
    patients = [[grade for who, _, grade in votes if who == patient] for patient in range(1, 46)]
    found = dawid_skene(patients, raters=[observer for who, observer, _ in votes if who == 1]).prior
    assert found is not None
    return [float(share) for share in found]


ANAESTHETISTS = [
    [patient, observer, grade]
    for patient, readings in enumerate(READINGS, 1)
    for observer, grade in zip(OBSERVERS, readings, strict=True)
]
FIVE = {"categories": [1, 2, 3, 4, 5]}
METERS = {"a": LARGE, "b": MINI}

TABLES = {
    # Cohen (1960), Educational and Psychological Measurement 20:37-46, table 2.
    "kappa-cohen1960": Table(figures=kappa, printed="0.492", inputs={"table": COHEN_1960}),
    # Landis and Koch (1977), Biometrics 33:363; the second with the weights of Fleiss and Cohen.
    "kappa-ms-winnipeg-unweighted": Table(figures=kappa, printed="0.208", inputs={"table": WINNIPEG}),
    "kappa-ms-winnipeg-quadratic": Table(
        figures=kappa, printed="0.5246", inputs={"table": WINNIPEG}, params={"weights": "quadratic"}
    ),
    # Wikipedia, Fleiss' kappa.
    "fleiss-wikipedia-10x14": Table(figures=fleiss, printed="0.21", inputs={"counts": FOURTEEN}),
    # Krippendorff (2011), Computing Krippendorff's alpha-reliability.
    **{
        f"kripp-canonical-{level}": Table(
            figures=alpha, printed=printed, inputs={"ratings": FOUR}, params={"level": level}
        )
        for level, printed in (
            ("nominal", "0.743"),
            ("ordinal", "0.815"),
            ("interval", "0.849"),
            ("ratio", "0.797"),
        )
    },
    # Gwet's irrCAC for R, cac.raw4raters.
    "gwet-raw4-gwet_ac-unweighted": Table(
        figures=ac1, printed="0.77544", inputs={"ratings": FOUR}, params=FIVE
    ),
    "gwet-raw4-fleiss_kappa-unweighted": Table(
        figures=fleiss, printed="0.76117", inputs={"ratings": FOUR}, params=FIVE
    ),
    # Shrout and Fleiss (1979), Psychological Bulletin 86:420-428, table 4.
    **{
        f"icc-shrout-fleiss-ICC{form.replace(',', '-')}": Table(
            figures=correlation,
            printed=printed,
            inputs={"ratings": SHROUT_FLEISS},
            params={"kind": f"ICC({form})"},
        )
        for form, printed in (
            ("1,1", "0.17"),
            ("2,1", "0.29"),
            ("3,1", "0.71"),
            ("1,k", "0.44"),
            ("2,k", "0.62"),
            ("3,k", "0.91"),
        )
    },
    # Bland and Altman (1986), Lancet i:307-310; concordance as in Lin (1989), with 1/n moments.
    "ccc-bland-altman-pefr": Table(figures=concordance, printed="0.943", inputs=METERS),
    "loa-bland-altman-pefr": Table(figures=differences, printed="-2.1 38.8", inputs=METERS),
    # The vignette of BradleyTerry2 for R, citations of Stigler (1994).
    "bradley-terry-citations": Table(
        figures=abilities, printed="0.00000 -2.94907 -0.47957 0.26895", inputs={"wins": CITATIONS}
    ),
    # Newcombe (1998), Statistics in Medicine 17:857-872, table I.
    "ci-wilson-81of263": Table(
        figures=score_interval,
        printed="0.2553 0.3662",
        inputs={"successes": 81, "n": 263},
        params={"method": "wilson"},
    ),
    "ci-wilson-15of148": Table(
        figures=score_interval,
        printed="0.0624 0.1605",
        inputs={"successes": 15, "n": 148},
        params={"method": "wilson"},
    ),
    # Dawid and Skene (1979), Applied Statistics 28:20-28.
    "dawid-skene-1979": Table(figures=prior, printed="0.40 0.42 0.11 0.07", inputs={"votes": ANAESTHETISTS}),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_the_published_figure(table: Table) -> None:
    """Rounded to the decimals that the source prints, the figures are the source's."""
    wanted = table.printed.split()
    found = table.figures(**table.inputs, **table.params)
    assert [
        f"{figure:.{len(digits.split('.')[1])}f}" for figure, digits in zip(found, wanted, strict=True)
    ] == wanted


def _numbers(published: Any) -> list[float]:
    """The figures of an entry: one, several, or several by name."""
    if isinstance(published, dict):
        return list(chain.from_iterable(map(_numbers, published.values())))
    return list(published) if isinstance(published, list) else [published]


@pytest.mark.shared_data
def test_the_tables_are_those_of_the_collection() -> None:
    """Every entry of the collected tables is here, with the same inputs, choices and printed figures."""
    entries = {one["id"]: one for one in load_json(SHARED_DATA / "tables" / "published.json")}
    assert entries.keys() == TABLES.keys()
    for name, table in TABLES.items():
        entry = entries[name]
        assert (entry["inputs"], entry["params"]) == (table.inputs, table.params), name
        assert _numbers(entry["published"]) == [float(digits) for digits in table.printed.split()], name
