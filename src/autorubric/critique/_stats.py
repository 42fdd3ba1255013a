"""Statistics over the records of a critiques file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from autorubric.critique._records import issues_of, risk_of, scores_of, verdict_of
from autorubric.values import Json

_VERDICTS: Final = ("pass", "revise", "reject")
_RISKS: Final = ("low", "medium", "high")
_ISSUE_TYPES: Final = (
    "hallucination",
    "overconfidence",
    "schema",
    "verification",
    "actionability",
    "clarity",
    "safety",
)
_CODES: Final = ("JSON_PARSE_ERROR", "SCHEMA_ERROR", "PROVIDER_ERROR", "TIMEOUT")


@dataclass(slots=True)
class CritiqueTally:
    """Counts over the records of a critiques file."""

    records: int = 0
    parsed: int = 0
    valid: int = 0
    unresolved: int = 0
    other_ids: int = 0
    verdicts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_VERDICTS, 0)))
    issues: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_ISSUE_TYPES, 0)))
    risks: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_RISKS, 0)))
    errors: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_CODES, 0)))
    first_errors: dict[str, str] = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]]) -> CritiqueTally:
        """Create the tally of records."""
        tally = cls()
        for record in records:
            tally.add(record)
        return tally

    def add(self, record: Mapping[str, Any]) -> None:
        """Add one record to the counts."""
        self.records += 1
        self._add_spent(record.get("teacher") or {})
        contract = record.get("critique_contract") or {}
        error = contract.get("error") or {}
        if error:
            self.errors[str(error.get("code"))] += 1
            self.first_errors.setdefault(str(error.get("code")), str(error.get("message")))
        critique = record.get("critique")
        self.parsed += isinstance(critique, Mapping) or error.get("code") == "SCHEMA_ERROR"
        if not isinstance(critique, Mapping):
            return
        self.valid += bool(contract.get("schema_ok"))
        self.other_ids += contract.get("id_ok") is False
        self.unresolved += sum(one.get("resolved") is False for one in record.get("evidence") or [])
        verdict = verdict_of(record)
        if verdict is not None:
            self.verdicts[verdict] += 1
        risk = risk_of(critique)
        if risk is not None:
            self.risks[risk] += 1
        self.issues.update(str(issue.get("type")) for issue in issues_of(critique))
        for name, score in scores_of(critique).items():
            self.sums[name] = self.sums.get(name, 0.0) + score
            self.counts[name] += 1

    def _add_spent(self, teacher: Mapping[str, Any]) -> None:
        usage = teacher.get("usage") or {}
        total = usage.get("total_tokens")
        self.tokens += total if isinstance(total, int) else 0
        cost = teacher.get("cost")
        if isinstance(cost, int | float):
            self.cost += cost
        else:
            self.unpriced += 1

    def to_dict(self) -> dict[str, Json]:
        """Return the statistics; rates are percentages of the records, or None if there are no records."""
        return {
            "critique_parse_rate": percent(self.parsed, self.records),
            "critique_schema_valid_rate": percent(self.valid, self.records),
            "verdict_distribution": dict(self.verdicts),
            "issue_type_counts": dict(self.issues.most_common()),
            "risk_level_distribution": dict(self.risks),
            "avg_scores": {name: total / self.counts[name] for name, total in self.sums.items()},
            "records": self.records,
            "error_counts": dict(self.errors),
            "first_errors": dict(self.first_errors),
            "unresolved_evidence": self.unresolved,
            "id_mismatches": self.other_ids,
            "tokens": self.tokens,
            "cost": None if self.unpriced else self.cost,
        }


def percent(part: int, whole: int) -> float | None:
    """Return a part as a percentage of the whole; None if the whole is 0."""
    return 100.0 * part / whole if whole else None
