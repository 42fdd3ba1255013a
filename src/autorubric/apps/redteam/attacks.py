"""Attacks on judges, from the text that one inserts to the verdict that it flips."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Final, Literal, TypeAlias, assert_never

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from autorubric.errors import ArgumentError, FileError
from autorubric.scoring.reports import EnsembleCriterionReport, EnsembleEvaluationReport
from autorubric.scoring.votes import Decision
from autorubric.support.objects import Json
from autorubric.support.read import Document, format_fault, parse_structured

Encoding = Literal["plain", "tags", "zero_width", "bits", "bidi", "base64", "rot13", "hex"]

_TAGS_FROM: Final = 0xE0000
_SPACE, _ZERO, _ONE = "\u200b", "\u200b", "\u200c"
_RIGHT_TO_LEFT, _POP = "\u202e", "\u202c"


def _bits(text: str) -> str:
    """Encode the bits of the UTF-8 bytes with two zero-width characters."""
    digits = "".join(f"{byte:08b}" for byte in text.encode("utf-8", "surrogatepass"))
    return "".join(_ONE if digit == "1" else _ZERO for digit in digits)


ENCODINGS: Final[Mapping[Encoding, Callable[[str], str]]] = {
    "plain": lambda text: text,
    # Tag characters mirror ASCII and are invisible.
    "tags": lambda text: "".join(chr(_TAGS_FROM + ord(letter)) for letter in text if ord(letter) < 0x80),
    "zero_width": lambda text: _SPACE.join(text),
    "bits": _bits,
    # Displayed in the right order, but stored in reverse.
    "bidi": lambda text: f"{_RIGHT_TO_LEFT}{text[::-1]}{_POP}",
    "base64": lambda text: base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii"),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "hex": lambda text: text.encode("utf-8", "surrogatepass").hex(),
}
"""Encoding functions by name."""


Aim: TypeAlias = Literal["favour", "high", "low"]
"""Direction in which an attack tries to move a verdict.

`favour` means a verdict in the submission's favor, `high` a higher value, and `low` a lower value.
"""

FORMAT: Final = 1
CONTROL: Final = "control"
"""Family of the harmless control texts, which measure the effect of any added text on a judge."""

_FILE: Final = "attacks.yaml"
_SLOT: Final = "{payload}"
_PARAGRAPH: Final = "\n\n"


class Attack(BaseModel):
    """A text meant to change a judge's verdict; its fields are keyword-only arguments.

    Attributes:
        id: Name of the attack, unique within a set of attacks.
        family: Kind of attack; `control` for harmless texts.
        text: Text to insert into an item, with `{payload}` in place of the payload.
        into: Where to insert the text: into the submission, the reference or the query.
        place: Whether to insert the text at the start or at the end.
        aim: Direction in which the attack tries to change a verdict.
        payload: Text that is encoded and then replaces `{payload}`; empty if there is none.
        encoding: Encoding of the payload.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    family: Annotated[str, Field(pattern=r"^[a-z][a-z_]*$")]
    text: Annotated[str, Field(min_length=1)]
    into: Literal["submission", "reference", "query"] = "submission"
    place: Literal["start", "end"] = "end"
    aim: Aim = "favour"
    payload: str = ""
    encoding: Encoding = "plain"

    @model_validator(mode="after")
    def _check_payload(self) -> Attack:
        if bool(self.payload) != (_SLOT in self.text):
            raise ValueError(f"a payload requires {_SLOT} in the text, and vice versa; set both or neither")
        return self

    @property
    def written(self) -> str:
        """The text to insert into an item, with the payload encoded."""
        return self.text.replace(_SLOT, ENCODINGS[self.encoding](self.payload))

    @property
    def is_control(self) -> bool:
        """Whether the attack is a harmless control."""
        return self.family == CONTROL

    def insert(self, text: str) -> str:
        """Insert the attack at the start or end of a text and return the result."""
        parts = (text, self.written) if self.place == "end" else (self.written, text)
        return _PARAGRAPH.join(parts)


def direction(aim: Aim, weight: float) -> int:
    """Return 1 if the aim is a higher value of a criterion with this weight, and -1 if a lower value."""
    match aim:
        case "favour":
            return -1 if weight < 0 else 1
        case "high":
            return 1
        case "low":
            return -1
        case _:
            assert_never(aim)


@cache
def builtin_attacks() -> tuple[Attack, ...]:
    """Return the built-in attacks: forty attacks on a judge's prompt and two controls."""
    text = files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    return attacks_of(parse_structured(text, "yaml", source=_FILE))


def attacks_of(document: Document) -> tuple[Attack, ...]:
    """Read the attacks of a document `{"format", "attacks": [...]}`."""
    faults = document.faults()
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("attacks"), list):
        faults.add((), "a set of attacks must be a mapping with a list 'attacks'")
        faults.raise_as(FileError)
    if fault := format_fault(data.get("format", FORMAT), FORMAT):
        faults.add(("format",), fault)
    found: dict[str, Attack] = {}
    for position, given in enumerate(data["attacks"]):
        try:
            attack = Attack.model_validate(given)
        except ValidationError as error:
            faults.add_validation(error, Attack, given, ("attacks", position))
            continue
        if attack.id in found:
            faults.add(("attacks", position, "id"), f"the id {attack.id!r} appears twice; ids must be unique")
        found[attack.id] = attack
    faults.raise_as(FileError)
    return tuple(found.values())


def choose_attacks(names: Iterable[str], known: Sequence[Attack] | None = None) -> tuple[Attack, ...]:
    """Return the attacks with the given ids or families, in order; controls are always included.

    Raises:
        ArgumentError: If a name is neither an id nor a family.
    """
    known = builtin_attacks() if known is None else known
    wanted = set(names)
    families = dict.fromkeys(attack.family for attack in known)
    unknown = sorted(wanted - families.keys() - {attack.id for attack in known})
    if unknown:
        raise ArgumentError(
            f"unknown attack or family {', '.join(map(repr, unknown))}; available families: "
            f"{', '.join(families)}; an example of an id is {known[0].id!r}"
        )
    return tuple(one for one in known if one.is_control or one.id in wanted or one.family in wanted)


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
        """Yield the verdicts that could move in the attack's direction, paired with those under attack."""
        for before, again, after in zip(self.first.report, self.second.report, attacked.report, strict=True):
            towards = direction(attack.aim, before.criterion.weight)
            # No judge reads the text for a criterion that a check decides.
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
    possible = [one.value for one in report.criterion.answers() if one.value is not None] or [0.0, 1.0]
    return value < max(possible) - _LEAST_MOVE if towards > 0 else value > min(possible) + _LEAST_MOVE


def _outcome(before: Decision, after: Decision, towards: int) -> AttackOutcome:
    if not _has_answer(after):
        return "failed"
    if before.value is None or after.value is None:
        return "unanswered"
    return "flipped" if (after.value - before.value) * towards > _LEAST_MOVE else "held"
