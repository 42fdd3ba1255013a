"""The record of a critique, with its content, its provenance, and whether it follows its schema."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from sys import float_info
from typing import Any, Final

from autorubric._files import parse_structured
from autorubric.critique._drafts import Draft, key_of
from autorubric.critique._evidence import evidence_of
from autorubric.critique._provenance import Answered
from autorubric.errors import FileError
from autorubric.values import Json

LONGEST_RAW: Final = 20_000
"""Maximum number of characters kept of a reply that is not a critique."""
UNSAID: Final = ("hallucination", "verification", "schema")
"""Keys that are always None in a critique made by a rubric."""


def critique_record(draft: Draft, answered: Answered[dict[str, Json]]) -> dict[str, Json]:
    """Return the record of a draft's critique, or of the failure to get one."""
    critique = answered.answer
    evidence = [] if critique is None else evidence_of(critique, draft.output)
    return {
        "id": draft.written_id,
        "draft_id": draft.written_id,
        "critique": critique,
        "raw_critique_text": None if critique is not None else raw_text(answered.text),
        "teacher": answered.provenance.to_dict(),
        "critique_contract": _contract(draft, answered, evidence),
        "created_at": now(),
        "evidence": evidence,
        "draft_hash": draft.digest,
    }


def raw_text(text: str | None) -> str | None:
    """Return a reply truncated to the 20,000 characters that are kept in a record."""
    return None if text is None else text[:LONGEST_RAW]


def now() -> str:
    """Return the current UTC time in ISO 8601 format."""
    return datetime.now(UTC).isoformat()


def is_strict_json(text: str | None) -> bool:
    """Return whether an unparsed reply is strict JSON, without fences, prose, duplicate keys or NaN."""
    try:
        parse_structured(text or "", "json")
    except FileError:
        return False
    return True


def _contract(
    draft: Draft, answered: Answered[dict[str, Json]], evidence: list[dict[str, Json]]
) -> dict[str, Json]:
    critique = answered.answer
    if critique is None:
        assert answered.failure is not None
        error = {"code": answered.failure.code, "message": answered.failure.message}
        return {"strict_json_ok": is_strict_json(answered.text), "schema_ok": False, "error": error}
    return {
        # A rubric's critique is made from votes, so there is no reply that could be invalid.
        "strict_json_ok": answered.text is None or is_strict_json(answered.text),
        "schema_ok": True,
        "id_ok": key_of(critique.get("id", draft.id)) == draft.id,
        "evidence_ok": all(one["resolved"] for one in evidence),
    }


def verdict_of(record: Mapping[str, Any]) -> str | None:
    """Return the verdict in a record; None if there is no verdict."""
    critique = record.get("critique")
    verdict = critique.get("verdict") if isinstance(critique, Mapping) else None
    return verdict if isinstance(verdict, str) else None


def scores_of(critique: Mapping[str, Any]) -> dict[str, float]:
    """Return the numeric scores in a critique, by name."""
    scores = critique.get("scores")
    if not isinstance(scores, Mapping):
        return {}
    return {
        str(name): float(score)
        for name, score in scores.items()
        # An integer may be too large for a float.
        if isinstance(score, int | float) and not isinstance(score, bool) and abs(score) <= float_info.max
    }


def graded_score(critique: Mapping[str, Any]) -> float | None:
    """Return the score of a critique that was made by a rubric; None for other critiques.

    Unlike the criteria's values in `scores`, this score includes weights and penalties.
    """
    score = critique.get("score")
    # These keys identify a rubric's critique; in a custom schema, `score` may mean something else.
    silent = all(name in critique and critique[name] is None for name in UNSAID)
    return float(score) if silent and isinstance(score, int | float) and 0 <= score <= 1 else None


def risk_of(critique: Mapping[str, Any]) -> str | None:
    """Return the hallucination risk level in a critique; None if there is no risk level."""
    hallucination = critique.get("hallucination")
    level = hallucination.get("risk_level") if isinstance(hallucination, Mapping) else None
    return level if isinstance(level, str) else None


def issues_of(critique: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the issues in a critique that are mappings."""
    issues = critique.get("issues")
    return [one for one in issues if isinstance(one, Mapping)] if isinstance(issues, list) else []
