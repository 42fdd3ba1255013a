"""The two contracts of decision models: answers with known probabilities, and what goes wrong in them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

Question = Mapping[str, Any]


def decided(body: Mapping[str, Any], step: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """The status and body of a response to a request of either contract.

    A step may name `max_questions` and `max_labels` (HTTP 422 above them), the `served` version, and
    `answers`: by id of a question an answer to give instead, or None to leave it out.
    """
    questions = questions_in(body)
    if len(questions) > step.get("max_questions", 400):
        return 422, _refused(["body", "questions"], f"at most {step['max_questions']} items")
    most = max(len(labels_of(one)) for one in questions.values())
    if most > step.get("max_labels", 255):
        where = ["body", "questions", "q", "criteria"]
        return 422, _refused(where, f"A choice question takes at most {step['max_labels']} labels")
    changed = step.get("answers", {})
    answers = {key: changed.get(key, answer_to(one)) for key, one in questions.items()}
    # A question of twelve words or so, and a shared text.
    sent = 50 + 20 * len(questions)
    usage: dict[str, Any] = {"input_tokens": sent, "output_tokens": 0}
    if isinstance(body["questions"], list):
        usage |= {"total_tokens": sent, "output_tokens_details": {"reasoning_tokens": 0}}
        usage["input_tokens_details"] = {"cached_tokens": 16, "cache_write_tokens": 0}
        found: Any = [one for one in answers.values() if one is not None]
    else:
        found = {key: one for key, one in answers.items() if one is not None}
    return 200, {"model": step.get("served", body["model"]), "answers": found, "usage": usage}


def _refused(where: list[str], message: str) -> dict[str, Any]:
    return {"detail": [{"loc": where, "msg": message, "type": "too_long"}]}


def questions_in(body: Mapping[str, Any]) -> dict[str, Question]:
    """The questions by id."""
    given = body["questions"]
    return {one["name"]: one for one in given} if isinstance(given, list) else dict(given)


def labels_of(question: Question) -> list[str]:
    """The labels of a choice, the indices of a score's levels, or yes and no."""
    if question["type"] == "choice":
        given = question.get("choices")
        return list(question["criteria"]) if given is None else [one["value"] for one in given]
    if question["type"] == "score":
        return [str(place) for place, _ in enumerate(question.get("levels") or question["criteria"])]
    return ["no", "yes"]


def known_probabilities(question: Question) -> list[float]:
    """The probabilities of a question's labels, which sum to 1; a function of its instructions."""
    labels = labels_of(question)
    drawn = [_draw(f"{question['instructions']}/{label}") for label in labels]
    shares = [one / sum(drawn) for one in drawn[:-1]]
    return [*shares, max(0.0, 1.0 - sum(shares))]


def answer_to(question: Question) -> dict[str, Any]:
    """The answer to a question of either contract, with the known probabilities."""
    labels, shares = labels_of(question), known_probabilities(question)
    top = labels[shares.index(max(shares))]
    match question["type"]:
        case "noul":
            return {"type": "noul", "noul": shares[1]}
        case "predicate":
            return {"type": "predicate", "name": question.get("name"), "probability": shares[1]}
    confidence = {"type": question["type"], "confidence": 0.5}
    mean = sum(place * share for place, share in enumerate(shares))
    chosen = {"choice": top} if question["type"] == "choice" else {"score": mean}
    if "choices" in question or "levels" in question:
        return {
            **confidence,
            **chosen,
            "name": question.get("name"),
            "probabilities": _listed(question, shares),
        }
    legend = (
        {}
        if question["type"] == "choice"
        else {"legend": dict(zip(labels, question["criteria"], strict=True))}
    )
    return {**confidence, **chosen, **legend, "probabilities": dict(zip(labels, shares, strict=True))}


def _listed(question: Question, shares: Sequence[float]) -> list[dict[str, Any]]:
    if question["type"] == "choice":
        pairs = zip(question["choices"], shares, strict=True)
        return [{"value": one["value"], "probability": share} for one, share in pairs]
    return [
        {"label": one["label"], "value": place, "probability": share}
        for place, (one, share) in enumerate(zip(question["levels"], shares, strict=True))
    ]


def _draw(seed: str) -> int:
    return 1 + int.from_bytes(hashlib.sha256(seed.encode("utf-8", "replace")).digest()[:2], "big")
