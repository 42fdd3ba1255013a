"""A digest of the prompts' wording, for manifests."""

from __future__ import annotations

import hashlib
import json

from autorubric.criteria import ComparativeCriterion, Criterion, CriterionOption
from autorubric.prompts import Material, Question, compose, compose_batch
from autorubric.values import Submission


def prompt_digest(system: str | None, choice_system: str | None) -> str:
    """Return the SHA-256 of sample prompts with these system prompts; it changes with their wording."""
    material = Material(submission=Submission(text="text"), query="query", reference="reference")
    options = (CriterionOption(label="a", value=0.0), CriterionOption(label="b", value=1.0))
    questions = [
        Question(criterion=Criterion(name="binary", requirement="r")),
        Question(criterion=Criterion(name="choice", requirement="r", options=options)),
    ]
    prompts = [compose(material, question, system_prompt=system) for question in questions]
    prompts.append(compose_batch(material, [("c1", questions[0])], system_prompt=choice_system))
    prompts.append(compose(*_sample_comparison(), system_prompt=system))
    digest = hashlib.sha256()
    for prompt in prompts:
        for message in prompt.messages:
            digest.update(message.content.encode("utf-8", "surrogatepass"))
        digest.update(json.dumps(prompt.schema.schema).encode("ascii"))
    return digest.hexdigest()


def _sample_comparison() -> tuple[Material, Question]:
    submission = Submission(text="one", candidates={"a": "one", "b": "two"})
    criterion = ComparativeCriterion(name="pair", requirement="r").facing(submission)
    shown = criterion.show(submission, None)
    return Material(submission=submission, order=("a", "b")), Question(criterion=criterion, shown=shown)
