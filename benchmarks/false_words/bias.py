"""Biases that `bias_report` names in worlds with and without a bias, with and without wrong labels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.stats import rankdata

from autorubric import Criterion, DataItem, Rubric, RubricDataset
from autorubric.metrics import BiasReport, Estimate, bias_report, judge_report
from benchmarks.false_words._rows import Kind, Row

CRITERIA = ("a", "b", "c")
RUBRIC = Rubric([Criterion(name=name, requirement="It is.") for name in CRITERIA])
LABELS = np.array(["UNMET", "MET"], dtype=object)
SURE = 0.05


def label(truth: Any, error: float, rng: np.random.Generator) -> Any:
    """Return the truth with this share of wrong labels."""
    return truth ^ (rng.random(truth.shape) < error)


def judge(truth: Any, fpr: Any, fnr: Any, rng: np.random.Generator) -> Any:
    """Return verdicts with these error rates, which broadcast to the shape of the truth."""
    return truth ^ (rng.random(truth.shape) < np.where(truth, fnr, fpr))


def report(
    labels: Any,
    verdicts: dict[str, Any],
    *,
    words: Any = None,
    authors: Any = None,
    people: dict[str, Any] | None = None,
    label_error: float | None = None,
) -> BiasReport:
    """Return the bias report of verdicts and labels, arrays of shape `(n_items, 3)`; labels may be None."""
    n = len(next(iter(verdicts.values())))
    names = (
        [dict(zip(CRITERIA, LABELS[row.astype(int)], strict=True)) for row in labels]
        if labels is not None
        else []
    )
    rated = {who: LABELS[one.astype(int)] for who, one in (people or {}).items()}
    items = [
        DataItem(
            id=f"i{at}",
            submission="w " * int(10 if words is None else words[at]),
            ground_truth=names[at] if names else None,
            ratings={who: dict(zip(CRITERIA, one[at], strict=True)) for who, one in rated.items()} or None,
            metadata={} if authors is None else {"generator": authors[at]},
        )
        for at in range(n)
    ]
    rows = [
        {"item_id": f"i{at}", "criterion": name, "rater": who, "rater_type": "llm", "label": said[at, place]}
        for who, one in verdicts.items()
        for said in (LABELS[one.astype(int)],)
        for at in range(n)
        for place, name in enumerate(CRITERIA)
    ]
    return bias_report(rows, RubricDataset(rubric=RUBRIC, items=items), label_error=label_error)


def is_named(found: BiasReport, kind: str = "") -> bool:
    """Return whether the summary names a bias, of this kind if one is given."""
    return found.summary().startswith("The clearest bias") and kind in found.summary().splitlines()[0]


def covers(effect: Estimate, truth: float) -> bool | None:
    """Return whether the interval contains the truth; None without an interval."""
    return None if effect.low is None or effect.high is None else effect.low <= truth <= effect.high


def draw_texts(rng: np.random.Generator, n: int, base: Any, *, by_length: float = 0.0) -> tuple[Any, Any]:
    """Return words and truth, `(n, 3)`; a text of twice the words passes more often by `by_length` logits."""
    doublings = rng.normal(0, 1, n)
    logit = np.log(base / (1 - np.asarray(base))) + by_length * doublings[:, None]
    truth = rng.random((n, len(CRITERIA))) < 1 / (1 + np.exp(-logit))
    return np.maximum(1, np.round(80 * 2**doublings)), truth


def authors_world(  # noqa: PLR0913 - parameters of a simulation
    rng: np.random.Generator,
    *,
    judges: str = "xyz",
    guilty: str = "x",
    errors: tuple[float, ...] = (0.15, 0.15, 0.15),
    own_base: float = 0.5,
    label_error: float = 0.0,
    shared: bool = False,
    favour: float = 0.0,
    assumed: float | None = None,
    claim: str = "named",
    n: int = 120,
) -> bool | None:
    """Judges that also wrote texts; `guilty` passes its own texts wrongly more often by `favour`.

    `own_base` is the base rate of the texts of `x`, and the claim `power` is that `x` is named.
    """
    authors = rng.choice([*judges], n)
    _, truth = draw_texts(rng, n, np.where(authors == "x", own_base, 0.5)[:, None])
    favoured = favour * (authors == guilty)[:, None]
    verdicts = {
        who: judge(truth, error + favoured * (who == guilty), error - favoured * (who == guilty), rng)
        for who, error in zip(judges, errors[: len(judges)], strict=True)
    }
    people = {who: label(truth, label_error, rng) for who in "pq"}
    found = report(
        people["p"], verdicts, authors=authors, people=people if shared else None, label_error=assumed
    )
    if claim == "named":
        return is_named(found)
    if claim == "covers":
        return covers(found.per_judge["x"].self_preference.effect, favour)
    return is_named(found, "x's self-preference") or is_named(found, "x's own-family error")


def length_world(  # noqa: PLR0913 - parameters of a simulation
    rng: np.random.Generator,
    *,
    errors: tuple[float, float, float] = (0.1, 0.1, 0.1),
    base: tuple[float, float, float] = (0.5, 0.5, 0.5),
    by_length: float = 1.0,
    label_error: float = 0.0,
    shared: bool = False,
    slope: float = 0.0,
    assumed: float | None = None,
    claim: str = "named",
    n: int = 200,
) -> bool | None:
    """One judge that passes the longer half of the texts more often by `slope`; longer texts are better."""
    words, truth = draw_texts(rng, n, base, by_length=by_length)
    shift = slope * (2 * (rankdata(words) - 0.5) / n - 1)[:, None]
    said = judge(truth, np.clip(np.array(errors) + shift, 0, 1), np.clip(np.array(errors) - shift, 0, 1), rng)
    people = {who: label(truth, label_error, rng) for who in "pq"}
    found = report(
        people["p"], {"x": said}, words=words, people=people if shared else None, label_error=assumed
    )
    if claim == "named":
        return is_named(found)
    if claim == "covers":
        return covers(found.per_judge["x"].length_lean.effect, slope)
    return is_named(found, "x's length")


def leniency_world(  # noqa: PLR0913 - parameters of a simulation
    rng: np.random.Generator,
    *,
    base: float = 0.85,
    fpr: float = 0.1,
    fnr: float = 0.1,
    label_error: float = 0.0,
    shared: bool = False,
    assumed: float | None = None,
    claim: str = "named",
    n: int = 200,
) -> bool | None:
    """One judge with these error rates."""
    _, truth = draw_texts(rng, n, base)
    people = {who: label(truth, label_error, rng) for who in "pq"}
    verdicts = {"x": judge(truth, fpr, fnr, rng)}
    found = report(people["p"], verdicts, people=people if shared else None, label_error=assumed)
    if claim == "named":
        return is_named(found)
    if claim == "covers":
        return covers(found.per_judge["x"].leniency.effect, (fpr - fnr) / 2)
    return is_named(found, "x's leniency")


def equal_world(rng: np.random.Generator, *, n: int = 80) -> bool | None:
    """Two people and a judge with the same error rate; the labels are those on which people agree."""
    _, truth = draw_texts(rng, n, 0.5)
    rows = [
        {"item_id": f"i{at}", "criterion": name, "rater": who, "rater_kind": kind, "label": said[at, place]}
        for who, kind in (("p", "human"), ("q", "human"), ("j", "judge"))
        for said in (LABELS[label(truth, 0.15, rng).astype(int)],)
        for at in range(n)
        for place, name in enumerate(CRITERIA)
    ]
    ceiling = judge_report(rows, n_resamples=200).human_ceiling
    return None if ceiling is None else covers(ceiling.gap["j"].kappa, 0.0)


ACCURATE = (0.05, 0.25, 0.25)
UNEQUAL: dict[str, Any] = {"errors": (0.02, 0.1, 0.35), "base": (0.9, 0.5, 0.2)}
NAMED = "a bias of judges that see neither author nor length and err symmetrically is named"


def _row(name: str, world: Any, claim: str = NAMED, kind: Kind = "false word") -> Row:
    return Row(name=f"bias: {name}", claim=claim, kind=kind, world=world)


def _covers(name: str, what: str, world: Any) -> Row:
    return _row(f"{name}, interval", world, f"the interval of {what} contains the true value", "coverage")


def _power(name: str, what: str, world: Any) -> Row:
    return _row(f"{name}, power", world, f"the summary names the true {what}", "power")


RIGHT: dict[str, Any] = {"assumed": 0.0}

FALSE = (
    *(
        _row(f"{name}{how}", partial(world, **options, **more))
        for how, more in (("", {}), (", labels known to be right", RIGHT))
        for name, world, options in (
            ("a more accurate judge", authors_world, {"errors": ACCURATE}),
            ("a better generator", authors_world, {"own_base": 0.9}),
            (
                "a more accurate judge and better generator",
                authors_world,
                {"errors": ACCURATE, "own_base": 0.8},
            ),
            ("longer texts are better", length_world, {}),
            ("longer texts are better, unequal error rates of criteria", length_world, UNEQUAL),
            ("base rate .85", leniency_world, {}),
        )
    ),
    *(
        _row(
            f"a more accurate judge and better generator, 10% wrong labels{who}",
            partial(authors_world, errors=ACCURATE, own_base=0.8, label_error=0.1, shared=shared),
        )
        for who, shared in ((", one person", False), (", two people", True))
    ),
    *(
        _row(
            f"a favour of 15 points of another of {len(judges)} judges",
            partial(authors_world, judges=judges, guilty="y", favour=0.15, claim="power", n=300, **RIGHT),
            "a judge is named for the preference of another",
        )
        for judges in ("xy", "xyz")
    ),
    _row("longer texts are better, 15% wrong labels, one person", partial(length_world, label_error=0.15)),
    _row(
        "longer texts are better, 15% wrong labels, two people",
        partial(length_world, label_error=0.15, shared=True),
    ),
    *(
        _row(
            f"base rate .85, {error:.1%} wrong labels, {'two people' if shared else 'one person'}",
            partial(leniency_world, label_error=error, shared=shared),
        )
        for error in (0.05, 0.075, 0.1)
        for shared in (False, True)
    ),
)
COVERED = (
    _covers("favour of 15 points", "self-preference", partial(authors_world, favour=0.15, claim="covers")),
    _covers(
        "a more accurate judge and better generator",
        "self-preference",
        partial(authors_world, errors=ACCURATE, own_base=0.8, claim="covers"),
    ),
    _covers(
        "5 points from the shorter to the longer half",
        "the length bias",
        partial(length_world, slope=0.05, errors=(0.2,) * 3, claim="covers"),
    ),
    _covers(
        "unequal error rates of criteria", "the length bias", partial(length_world, **UNEQUAL, claim="covers")
    ),
    _covers(
        "a judge equal to people", "the judge's kappa minus a person's, in a person's place,", equal_world
    ),
    _covers("base rate .85", "leniency", partial(leniency_world, fpr=0.3, claim="covers")),
    _covers("base rate .5", "leniency", partial(leniency_world, fpr=0.3, base=0.5, claim="covers")),
)
_LONG: dict[str, Any] = {"slope": 0.15, "errors": (0.2,) * 3, "claim": "power"}
_LENIENT: dict[str, Any] = {"fpr": 0.4, "fnr": 0.05, "claim": "power"}
POWER = (
    _power(
        "favour of 15 points, labels known to be right",
        "self-preference",
        partial(authors_world, favour=0.15, claim="power", **RIGHT),
    ),
    _power(
        "15 points from the shorter to the longer half, labels known to be right",
        "length bias",
        partial(length_world, **_LONG, **RIGHT),
    ),
    _power(
        "base rate .85, FPR .4, FNR .05, labels known to be right",
        "leniency",
        partial(leniency_world, **_LENIENT, **RIGHT),
    ),
    _power(
        "favour of 15 points, one person",
        "self-preference",
        partial(authors_world, favour=0.15, claim="power"),
    ),
    _power(
        "favour of 15 points, two people with 5% errors",
        "self-preference",
        partial(authors_world, favour=0.15, label_error=0.05, shared=True, claim="power"),
    ),
    _power(
        "15 points from the shorter to the longer half, one person",
        "length bias",
        partial(length_world, **_LONG),
    ),
    _power(
        "15 points from the shorter to the longer half, length independent of truth, one person",
        "length bias",
        partial(length_world, by_length=0.0, **_LONG),
    ),
    _power(
        "15 points from the shorter to the longer half, two people with 5% errors",
        "length bias",
        partial(length_world, label_error=0.05, shared=True, **_LONG),
    ),
    _power(
        "base rate .5, FPR .4, FNR .05, one person", "leniency", partial(leniency_world, base=0.5, **_LENIENT)
    ),
    _power("base rate .85, FPR .4, FNR .05, one person", "leniency", partial(leniency_world, **_LENIENT)),
    _power(
        "base rate .85, FPR .4, FNR .05, two people with 3% errors",
        "leniency",
        partial(leniency_world, label_error=0.03, shared=True, **_LENIENT),
    ),
)
ROWS: tuple[Row, ...] = (*FALSE, *COVERED, *POWER)
