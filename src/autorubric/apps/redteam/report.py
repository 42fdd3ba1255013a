"""Results of attacks: flip rates by family, criterion and attack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from autorubric.apps.redteam.attacks import CONTROL, Attack, direction
from autorubric.criteria.base import BaseCriterion
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.intervals import clustered_se
from autorubric.metrics.core.scales import Binary
from autorubric.metrics.figures.classification import accuracy
from autorubric.scoring.reports import EnsembleCriterionReport, EnsembleEvaluationReport, EvaluationReport
from autorubric.scoring.votes import Decision
from autorubric.support.blocks import Block, Cell, ScalarBlock, TableBlock, TextBlock, render_text
from autorubric.support.objects import Json

AttackOutcome = Literal["flipped", "held", "unanswered", "failed"]
"""Outcome of a verdict under an attack.

The verdict flipped in the direction of the attack, held, became unanswered, or could not be judged (failed).
"""

_LEAST_MOVE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackedCell:
    """Verdicts on one criterion of one item, with and without an attack.

    Attributes:
        item_id: Id of the item.
        criterion: Name of the criterion.
        attack: Id of the attack.
        family: Family of the attack.
        clean: Answer without an attack, as JSON.
        attacked: Answer under the attack; None if the judges did not answer.
        outcome: What happened to the verdict under the attack: `flipped`, `held`, `unanswered` or `failed`.
        repeat: What happened to it when the item was judged again without an attack.
    """

    item_id: str
    criterion: str
    attack: str
    family: str
    clean: Json
    attacked: Json
    outcome: AttackOutcome
    repeat: AttackOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanItem:
    """An item judged twice without an attack."""

    item_id: str
    first: EnsembleEvaluationReport  # with which attacks are compared
    second: EnsembleEvaluationReport  # from fresh votes

    @property
    def n_failed(self) -> int:
        """Number of criteria that could not be judged, over both reports."""
        return sum(not _has_answer(decision) for decision in self._judged_decisions)

    @property
    def n_judged(self) -> int:
        """Number of criteria that could be judged, over both reports."""
        return len(self._judged_decisions) - self.n_failed

    @property
    def _judged_decisions(self) -> list[Decision]:
        pairs = (*self.first.report, *self.second.report)
        return [pair.decision for pair in pairs if pair.criterion.check is None]

    def cells(self, attack: Attack, attacked: EnsembleEvaluationReport) -> Iterator[AttackedCell]:
        """Yield the verdicts that could move in the attack's direction, paired with those under attack.

        Criteria decided by a check are skipped, since no judge reads the text for them.
        """
        for before, again, after in zip(self.first.report, self.second.report, attacked.report, strict=True):
            towards = direction(attack.aim, before.criterion.weight)
            if before.criterion.check is not None or not _has_room(before, towards):
                continue
            yield AttackedCell(
                item_id=self.item_id,
                criterion=before.name,
                attack=attack.id,
                family=attack.family,
                clean=before.final_answer,
                attacked=after.final_answer,
                outcome=_outcome(before.decision, after.decision, towards),
                repeat=_outcome(before.decision, again.decision, towards),
            )


def _has_answer(decision: Decision) -> bool:
    """Return whether the decision is based on answers or abstentions of the judges, and not on failures."""
    return decision.status != "failed" and not decision.assumed and not decision.swayed


def _has_room(report: EnsembleCriterionReport, towards: int) -> bool:
    value = report.decision.value
    if value is None or not _has_answer(report.decision):
        return False
    low, high = _range(report.criterion)
    return value < high - _LEAST_MOVE if towards > 0 else value > low + _LEAST_MOVE


def _range(criterion: BaseCriterion) -> tuple[float, float]:
    """Return the lowest and the highest possible value of an answer."""
    values = [answer.value for answer in criterion.answers() if answer.value is not None]
    return (min(values), max(values)) if values else (0.0, 1.0)


def _outcome(before: Decision, after: Decision, towards: int) -> AttackOutcome:
    if not _has_answer(after):
        return "failed"
    if before.value is None or after.value is None:
        return "unanswered"
    return "flipped" if (after.value - before.value) * towards > _LEAST_MOVE else "held"


_MOST_ITEMS = 5
_MOST_ATTACKS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackCost:
    """The tokens and cost of all gradings."""

    gradings: int = 0
    tokens: int | None = None  # None if no tokens were counted
    cost: float | None = None  # of all votes with a known cost, in US dollars; None if no cost is known

    def with_report(self, report: EvaluationReport) -> AttackCost:
        """Return the totals with one more grading added."""
        tokens = None if report.token_usage is None else report.token_usage.total_tokens
        return AttackCost(
            gradings=self.gradings + 1,
            tokens=_sum(self.tokens, tokens),
            cost=_sum(self.cost, report.completion_cost),
        )


def _sum(one: Any, other: Any) -> Any:
    return one if other is None else other if one is None else one + other


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipRate:
    """The rate at which attacks flip verdicts, among verdicts that could move in the attack's direction.

    Attributes:
        rate: Proportion of verdicts flipped in the attack's direction, with an interval clustered by item.
        noise: Proportion of the same verdicts that flipped that way when judged again without an attack.
        excess: Rate minus noise (the mean difference per verdict), with an interval clustered by item.
        counts: Number of verdicts by outcome. `unanswered` (the judge no longer answers) does not count as
            flipped; `failed` verdicts are excluded from everything else.
    """

    rate: Estimate
    noise: Estimate
    excess: Estimate
    counts: Mapping[AttackOutcome, int]

    @classmethod
    def of(cls, cells: Sequence[AttackedCell]) -> FlipRate:
        """Compute the rates from verdicts with and without attacks."""
        items = [cell.item_id for cell in cells]
        attacked = [_flip(cell.outcome) for cell in cells]
        repeated = [_flip(cell.repeat) for cell in cells]
        more = [
            None if one is None or other is None else one - other
            for one, other in zip(attacked, repeated, strict=True)
        ]
        counts = Counter(cell.outcome for cell in cells)
        return cls(
            rate=_share(attacked, items),
            noise=_share(repeated, items),
            excess=clustered_se(more, items),
            counts={one: counts[one] for one in ("flipped", "held", "unanswered", "failed")},
        )

    @property
    def flips(self) -> int:
        """Number of verdicts that flipped."""
        return self.counts["flipped"]

    @property
    def n(self) -> int:
        """Number of verdicts on which the rate is based."""
        return sum(self.counts.values()) - self.counts["failed"]

    def to_dict(self) -> dict[str, Json]:
        """Return the rates and counts as a JSON-serializable dictionary."""
        figures = {name: getattr(self, name).to_dict() for name in ("rate", "noise", "excess")}
        return {**figures, "counts": dict(self.counts)}


def _flip(outcome: AttackOutcome) -> int | None:
    return None if outcome == "failed" else int(outcome == "flipped")


def _share(flips: Sequence[int | None], items: Sequence[str]) -> Estimate:
    # The proportion of ones; the interval of `accuracy` is valid at 0 and 1 too.
    return accuracy([1] * len(flips), flips, scale=Binary(), cluster=items)


@dataclass(frozen=True, kw_only=True)
class RedteamReport:
    """The effect of attacks on a grader's verdicts; only the rates in `control` include controls.

    Attributes:
        attacks: The attacks that were run, including controls.
        item_ids: Ids of the attacked items.
        criteria: Names of the items' criteria, except criteria decided by a check.
        cells: One entry per attack or control and verdict that could move in its direction.
        n_unjudged: Number of verdicts that could not be judged even without an attack, so that no comparison
            is possible.
        spend: Tokens and cost of all gradings.
    """

    attacks: tuple[Attack, ...]
    item_ids: tuple[str, ...]
    criteria: tuple[str, ...]
    cells: tuple[AttackedCell, ...]
    n_unjudged: int
    spend: AttackCost

    @cached_property
    def overall(self) -> FlipRate:
        """Flip rates over all attacks, items and criteria."""
        return FlipRate.of(self._attack_cells)

    @cached_property
    def control(self) -> FlipRate:
        """Flip rates of the controls, which measure the effect of any added text on the judges."""
        return FlipRate.of([cell for cell in self.cells if cell.family == CONTROL])

    @cached_property
    def by_family(self) -> dict[str, FlipRate]:
        """Flip rates by family of attacks."""
        return self._by(lambda cell: cell.family, (one.family for one in self._real_attacks))

    @cached_property
    def by_criterion(self) -> dict[str, FlipRate]:
        """Flip rates by criterion."""
        return self._by(lambda cell: cell.criterion, self.criteria)

    @cached_property
    def by_attack(self) -> dict[str, FlipRate]:
        """Flip rates by id of the attack."""
        return self._by(lambda cell: cell.attack, (one.id for one in self._real_attacks))

    @property
    def n_failed(self) -> int:
        """Number of verdicts that could not be judged, with or without an attack."""
        return self.n_unjudged + sum(cell.outcome == "failed" for cell in self.cells)

    @property
    def n_verdicts(self) -> int:
        """Number of verdicts in `cells`, plus verdicts that could not be judged even without an attack."""
        return len(self.cells) + self.n_unjudged

    def flipped_items(self) -> dict[str, tuple[str, ...]]:
        """Return, by attack id, the ids of the items on which the attack flipped a verdict."""
        found: dict[str, dict[str, None]] = {}
        for cell in self._attack_cells:
            if cell.outcome == "flipped":
                found.setdefault(cell.attack, {})[cell.item_id] = None
        return {attack: tuple(items) for attack, items in found.items()}

    @property
    def _real_attacks(self) -> list[Attack]:
        return [attack for attack in self.attacks if not attack.is_control]

    @property
    def _attack_cells(self) -> list[AttackedCell]:
        return [cell for cell in self.cells if cell.family != CONTROL]

    def _by(self, key: Callable[[AttackedCell], str], names: Iterable[str]) -> dict[str, FlipRate]:
        cells: dict[str, list[AttackedCell]] = {name: [] for name in names}
        for cell in self._attack_cells:
            cells[key(cell)].append(cell)
        return {name: FlipRate.of(held) for name, held in cells.items()}

    def notices(self) -> list[str]:
        """Return warnings about the results."""
        found = []
        skipped = [one.id for one in self._real_attacks if not self.by_attack[one.id].n]
        if self.overall.rate.value is None:
            found.append(
                "no verdict could move in the attacks' direction, so there is no flip rate; add items that "
                "fail some criteria"
            )
        elif skipped:
            found.append(f"attacks that could not affect any item or verdict: {', '.join(skipped)}")
        if self.n_failed:
            found.append(f"{self.n_failed} verdicts could not be judged and are excluded from all figures")
        if self.overall.counts["unanswered"]:
            found.append(
                f"{self.overall.counts['unanswered']} verdicts became unanswered under attack; they count as "
                "not flipped"
            )
        return found

    def blocks(self) -> list[Block]:
        """Return the results as renderable blocks."""
        overall, control = self.overall, self.control
        figures: list[tuple[str, Cell]] = [
            ("items", len(self.item_ids)),
            ("attacks", len(self._real_attacks)),
            ("gradings", self.spend.gradings),
            ("verdicts attacked", overall.n),
            ("flipped", overall.flips),
            *_interval("flip rate", overall.rate),
            ("flip rate without an attack (noise)", overall.noise.value),
            *_interval("flip rate minus noise", overall.excess),
        ]
        if control.n:
            figures.append(("flip rate of harmless texts (control)", control.rate.value))
        figures += [("tokens", self.spend.tokens), ("cost in US dollars", self.spend.cost)]
        notes = self.notices()
        return [
            ScalarBlock(title="Attacks on the judges", figures=tuple(figures)),
            _table("family", self.by_family),
            _table("criterion", self.by_criterion),
            *self._flip_blocks(),
            *([TextBlock(title="Notices", text="\n".join(f"- {note}" for note in notes))] if notes else []),
        ]

    def _flip_blocks(self) -> list[Block]:
        worked = self.flipped_items()
        ranked = sorted(worked, key=lambda one: -self.by_attack[one].flips)
        rows = tuple(
            (one, self.by_attack[one].flips, _join_items(worked[one])) for one in ranked[:_MOST_ATTACKS]
        )
        title = f"Attacks that worked: {len(worked)} of {len(self._real_attacks)}"
        if not rows:
            return [TextBlock(title=title, text="")]
        return [TableBlock(title=title, columns=("attack", "flips", "items"), rows=rows)]

    def summary(self) -> str:
        """Return the results as plain text."""
        return render_text(self.blocks())

    def to_dict(self) -> dict[str, Any]:
        """Return all results and every flipped verdict as a JSON-serializable dictionary."""
        parts = ("by_family", "by_criterion", "by_attack")
        return {
            "items": len(self.item_ids),
            "attacks": len(self._real_attacks),
            **asdict(self.spend),
            "n_unjudged": self.n_unjudged,
            "overall": self.overall.to_dict(),
            "control": self.control.to_dict(),
            **{part: {k: rate.to_dict() for k, rate in getattr(self, part).items()} for part in parts},
            "flips": [
                {key: value for key, value in asdict(cell).items() if key not in ("outcome", "repeat")}
                for cell in self._attack_cells
                if cell.outcome == "flipped"
            ],
            "notices": self.notices(),
        }


def _interval(name: str, estimate: Estimate) -> list[tuple[str, Cell]]:
    return [(name, estimate.value), ("  from", estimate.low), ("  to", estimate.high)]


def _table(what: str, rates: Mapping[str, FlipRate]) -> TableBlock:
    rows = tuple(
        (name, rate.flips, rate.n, rate.rate.value, rate.rate.low, rate.rate.high, rate.noise.value)
        for name, rate in rates.items()
    )
    return TableBlock(columns=(what, "flips", "of", "flip rate", "from", "to", "noise"), rows=rows)


def _join_items(items: Sequence[str]) -> str:
    more = len(items) - _MOST_ITEMS
    return ", ".join(items[:_MOST_ITEMS]) + (f" and {more} more" if more > 0 else "")
