"""Gates: options that turn scores, metrics and lost verdicts into exit codes."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, NamedTuple

import autorubric
from autorubric.cli.app import Exit, notice
from autorubric.cli.options import demand, option
from autorubric.cli.runs import CRITERION_FIELDS, criterion_figure
from autorubric.criteria.values import MANY_ABSTAINED, MAX_LOST, VerdictCounts
from autorubric.errors import ArgumentError
from autorubric.support.extensions import METRICS_GROUP, extension_names


def max_lost_option(help: str) -> Any:
    """Return the `--max-lost` option, which takes a fraction in [0, 1]."""
    return option("--max-lost", "SHARE", help, min=0, max=1)


MaxLost = Annotated[
    float | None,
    max_lost_option(
        "Exit with code 3 if more than this fraction of due verdicts was lost, assumed or not judged.  "
        f"[default: {MAX_LOST} with a --fail option]"
    ),
]
MaxAbstained = Annotated[
    float | None,
    option(
        "--max-abstained",
        "SHARE",
        "Exit with code 3 if more than this fraction of due verdicts are abstentions.  [default: no limit]",
        min=0,
        max=1,
    ),
]


def fail_under_option(help: str, **settings: Any) -> Any:
    """Return a `--fail-under` option that takes a score."""
    return option(
        "--fail-under",
        "X",
        help,
        callback=demand(math.isfinite, "a score; it must be a finite number"),
        **settings,
    )


@dataclass(frozen=True, kw_only=True)
class VerdictLimits:
    """The gates on missing verdicts and on abstentions."""

    max_lost: MaxLost = None
    max_abstained: MaxAbstained = None

    @property
    def is_set(self) -> bool:
        """Whether there is a limit, apart from the default one."""
        return self.max_lost is not None or self.max_abstained is not None

    def exceeded_by(self, verdicts: VerdictCounts, of: str = "") -> bool:
        """Return whether missing verdicts exceed `max_lost` (or `MAX_LOST`), or abstentions `max_abstained`.

        A notice says so, and names abstentions also if there are many and no limit.
        """
        most, head = MAX_LOST if self.max_lost is None else self.max_lost, f"{of}: " if of else ""
        loses_many = verdicts.exceeds(most)
        if loses_many:
            how = "lost, assumed or not judged" if verdicts.not_judged else "lost or assumed"
            notice(
                f"{head}{verdicts.missing:,} of {verdicts.due:,} verdicts ({verdicts.missing_share:.1%}) "
                f"were {how}, more than --max-lost {most:g}"
            )
        share, limit = verdicts.abstained_share or 0.0, self.max_abstained
        abstains = limit is not None and share > limit
        if abstains or share > MANY_ABSTAINED:
            why = f", more than --max-abstained {limit:g}" if abstains else "; --max-abstained sets a limit"
            notice(f"{head}{verdicts.abstained:,} of {verdicts.due:,} verdicts ({share:.1%}) abstained{why}")
        return loses_many or abstains


@dataclass(frozen=True, kw_only=True)
class ScoreGate(VerdictLimits):
    """The gates on scores, on missing verdicts and on abstentions."""

    fail_under: Annotated[
        float | None,
        fail_under_option(
            "Exit with code 1 if the score, or the mean score of the items, is below X (0 to 1).",
            min=0,
            max=1,
        ),
    ] = None

    def exit_code(
        self, score: float | None, verdicts: VerdictCounts | None = None, *, unjudged: int = 0
    ) -> Exit:
        """Return the exit code for a score, and print a notice if a gate fails."""
        is_gate = self.fail_under is not None or self.is_set
        if verdicts is not None and is_gate and self.exceeded_by(verdicts):
            return Exit.UNJUDGED
        if score is None or unjudged:
            return Exit.UNJUDGED
        if self.fail_under is None or score >= self.fail_under:
            return Exit.DONE
        notice(f"score {_below(score, self.fail_under)} is below --fail-under {self.fail_under:g}")
        return Exit.BELOW


def exceeds_max_lost(share: float, max_lost: float | None, *, is_gate: bool) -> bool:
    """Return whether `share` exceeds `max_lost`, which defaults to `MAX_LOST` with a gate, otherwise 0."""
    return share > ((MAX_LOST if is_gate else 0.0) if max_lost is None else max_lost)


_MEANS: Final = {
    "accuracy": "criterion_accuracy",
    "balanced_accuracy": "criterion_balanced_accuracy",
    "precision": "criterion_precision",
    "recall": "criterion_recall",
    "sensitivity": "criterion_sensitivity",
    "specificity": "criterion_specificity",
    "f1": "criterion_f1",
    "kappa": "mean_kappa",
}
_OF_SCORES: Final = {name: f"score_{name}" for name in ("spearman", "kendall", "pearson")}
_ALIASES: Final = {"tpr": "sensitivity", "tnr": "specificity"}
_LOW: Final = ".low"
_WITH_ENDS: Final = ("sensitivity", "specificity", *_OF_SCORES)
_BOOTSTRAPPED: Final = ("accuracy", "kappa")
"""Metrics whose mean over criteria has a bootstrap interval."""


@cache
def _means() -> Mapping[str, str]:
    """Return the fields of means over criteria by metric, with the metrics of installed packages."""
    return _MEANS | {name: f"criterion_{name}" for name in extension_names(METRICS_GROUP)}


@cache
def _between_gates() -> re.Pattern[str]:
    """Return the pattern of a comma between gates; names of criteria may contain commas as well."""
    names = "|".join(map(re.escape, [*_ALIASES, *_means(), *_OF_SCORES]))
    return re.compile(rf",(?=\s*(?:{names})(?:{re.escape(_LOW)})?[@=])")


class MetricGate(NamedTuple):
    """A minimum for a metric, over all criteria or for one criterion."""

    text: str  # Left side of the gate as entered, such as `tnr.low@apology`.
    figure: str  # Name of the metric, with aliases resolved.
    criterion: str | None  # Name of the criterion; None for all.
    low: bool  # Whether the gate applies to the lower bound of the interval instead of the metric.
    least: float  # Smallest value that passes.


def read_gates(values: Sequence[str]) -> list[MetricGate]:
    """Parse `--fail-under` values into gates."""
    return [_gate(part.strip()) for value in values for part in _between_gates().split(value)]


def _gate(value: str) -> MetricGate:
    text, equals, bound = value.rpartition("=")
    figure, at, criterion = text.partition("@")
    low = figure.endswith(_LOW)
    name = figure.removesuffix(_LOW)
    try:
        least = float(bound)
    except ValueError:
        least = math.nan
    if not equals or not math.isfinite(least) or (at and not criterion):
        raise ArgumentError(
            f"--fail-under must be METRIC=X, such as tpr=.9, kappa@tone=0.4 or tnr.low=.8; got {value!r}"
        )
    known = _ALIASES.get(name, name)
    if known not in _means() and (at or known not in _OF_SCORES):
        allowed = ", ".join([*_ALIASES, *_means(), *(() if at else _OF_SCORES)])
        raise ArgumentError(f"--fail-under {value!r}: unknown metric {name!r}; available: {allowed}")
    # Recall is sensitivity, which has an interval.
    known = "sensitivity" if low and known == "recall" else known
    ends = _WITH_ENDS if at else (*_WITH_ENDS, *_BOOTSTRAPPED)
    if low and known not in ends:
        where = f"{name} of one criterion" if known in _BOOTSTRAPPED else name
        raise ArgumentError(
            f"--fail-under {value!r}: .low is not available for {where}, but for: tpr, tnr, recall, "
            f"{', '.join(ends)}"
        )
    if least > 1 and known not in extension_names(METRICS_GROUP):
        raise ArgumentError(f"--fail-under {value!r}: metrics are at most 1, so {least:g} always fails")
    return MetricGate(text, known, criterion or None, low, least)


def needs_bootstrap(gates: Sequence[MetricGate]) -> bool:
    """Return whether a gate applies to a bootstrap interval."""
    return any(gate.low and gate.figure in _BOOTSTRAPPED for gate in gates)


def check_gates(gates: Sequence[MetricGate], found: autorubric.metrics.MetricsResult) -> Exit:
    """Print each failed gate and return the exit code; a gate fails if its metric is undefined."""
    worst = Exit.DONE
    for gate in gates:
        value, reason = _value(gate, found)
        if value is None:
            notice(f"{gate.text} is undefined ({reason}), so it cannot reach {gate.least:g}")
            worst = Exit.UNJUDGED
        elif value < gate.least:
            notice(
                f"{gate.text} is {_below(value, gate.least)}, below {gate.least:g}{_why_never(gate, found)}"
            )
            worst = worst or Exit.BELOW
        own = [one for one in found.per_criterion if gate.criterion in (None, one.name) and one.answered_na]
        if own and gate.figure in _means():
            n, names = sum(one.answered_na for one in own), ", ".join(one.name for one in own)
            notice(
                f"{gate.text} excludes {n} cells that the panel answered and whose label has no answer "
                f"(NA or CANNOT_ASSESS), on {names}"
            )
        if value is not None and gate.criterion is None and gate.figure in _means():
            done, of = found.defined[_means()[gate.figure]]
            if done < of:
                notice(f"{gate.text} is the mean over {done} of {of} criteria; it is undefined on the others")
    return worst


def _below(value: float, least: float) -> str:
    """Return a value with three decimals, or as many more as show that it is below `least`."""
    texts = (f"{value:.{digits}f}" for digits in range(3, 17))
    return next((text for text in texts if float(text) < least), repr(value))


def _why_never(gate: MetricGate, found: autorubric.metrics.MetricsResult) -> str:
    """Say that the labels are too few for a lower bound; empty if they are not, or if that is unknown."""
    from autorubric.metrics.core.intervals import normal_quantile, t_quantile, wilson_ends  # load scipy

    if not gate.low:
        return ""
    if gate.criterion is None and (_value(gate._replace(low=False), found)[0] or 0) > 1 - 1e-9:
        return "; this is what a judge without errors reaches on these labels, so label more items"
    if gate.figure not in ("sensitivity", "specificity"):
        return ""
    met, kind = gate.figure == "sensitivity", autorubric.metrics.CriterionMetrics
    own = [one for one in found.per_criterion if gate.criterion in (None, one.name) and isinstance(one, kind)]
    counts = [n for one in own if (n := one.support_true if met else one.n_samples - one.support_true)]
    ends = getattr(found, f"criterion_{gate.figure}_ci")
    level = ends.confidence if ends else 0.95
    z = normal_quantile(level)

    def reached(n: float) -> float:
        return wilson_ends(1.0, n, z if gate.criterion else t_quantile(level, max(n, 2.0) - 1))[0]

    # The effective number of items of a mean is at most this one.
    best = reached(len(counts) ** 2 / sum(1 / n for n in counts)) if counts else 1.0
    if best >= gate.least:
        return ""
    text = f"; with {sum(counts)} answered items labelled {'MET' if met else 'UNMET'}, a judge without errors"
    if gate.least >= 1 or len(counts) > 1:
        return f"{text} reaches {'at most ' if len(counts) > 1 else ''}{best:.3f}"
    some = itertools.count(math.ceil(z**2 * gate.least / (1 - gate.least)))
    needed = next(n for n in some if reached(n) >= gate.least)
    return f"{text} reaches {best:.3f}; label at least {needed} such items"


def _value(gate: MetricGate, found: autorubric.metrics.MetricsResult) -> tuple[float | None, str]:
    """Return the gate's metric, or None and the reason."""
    if gate.criterion is not None:
        return _on_criterion(gate, gate.criterion, found)
    if gate.figure in _OF_SCORES:
        scored = getattr(found, _OF_SCORES[gate.figure])
        ends = scored.ci.lower if scored.ci else None
        return (ends if gate.low else scored.coefficient), scored.reason or "too few items for an interval"
    name = _means()[gate.figure]
    if gate.low and getattr(found, name, None) is not None:
        if gate.figure in _BOOTSTRAPPED:
            ends = getattr(found.bootstrap, f"{gate.figure}_ci")
        else:
            ends = getattr(found, f"{name}_ci")
        return (ends.lower if ends else None), "too few items for an interval"
    return getattr(found, name, None), _why_no_mean(gate.figure, found)


def _why_no_mean(figure: str, found: autorubric.metrics.MetricsResult) -> str:
    if _means()[figure] not in found.defined:
        return "results do not contain it"
    of = found.defined[_means()[figure]][1]
    if figure in ("precision", "recall", "sensitivity", "specificity", "f1") and not of:
        return "no criterion is binary"
    label = {"sensitivity": "MET", "recall": "MET", "specificity": "UNMET"}.get(figure)
    return f"no criterion has an answered item labelled {label}" if label else "no criterion has this metric"


def _on_criterion(
    gate: MetricGate, name: str, found: autorubric.metrics.MetricsResult
) -> tuple[float | None, str]:
    own = next((one for one in found.per_criterion if one.name == name), None)
    if own is None:
        names = ", ".join(one.name for one in found.per_criterion)
        raise ArgumentError(f"criterion {name!r} has no metrics. Criteria: {names}")
    names_of = CRITERION_FIELDS.get(gate.figure, (gate.figure,))
    if not any(hasattr(own, field) for field in names_of):
        return None, f"not computed for {own.criterion_type} criteria"
    if gate.low:
        ends = getattr(own, f"{gate.figure}_ci")
        value = ends.lower if ends else None
    else:
        value = criterion_figure(own, gate.figure)
    reasons = [own.reasons[field] for field in names_of if field in own.reasons]
    words = {
        "no_positive_in_truth": "no answered item is labelled MET",
        "no_negative_in_truth": "no answered item is labelled UNMET",
    }
    return value, next((words.get(reason, reason) for reason in reasons), "no interval")
