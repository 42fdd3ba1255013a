"""The page on which people label items offline, without the answers of judges or other raters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import jinja2
from markupsafe import Markup

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Submission
from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import ArgumentError, ReplyError
from autorubric.reports.templates import csp_digest, read_asset, script_json
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.policies import RubricGroup
from autorubric.support.objects import Json
from autorubric.support.write import write_text_atomic

_MOST_BUTTONS: Final = 12
"""Maximum number of answers shown as buttons; with more, the rater types a number."""


def form_of(criterion: BaseCriterion, candidates: Mapping[str, str]) -> dict[str, Json]:
    """Return the form of a criterion applied to its item.

    The kinds are `choice` (`choices`: `code`, `label`), `number` (`min`, `max`, `whole`), `texts` (`keys`;
    `bare`: the answer is the one text), `compare` (`choices`: `code`, `standing`), `ranking` (`names`),
    `parts` (`parts`: `key`, `title`, `form`; the answer is a mapping) and `json`. The form's value is a label
    that the criterion can read.
    """
    if criterion.part_fields:
        return {
            "kind": "parts",
            "parts": [
                {"key": key, "title": part.requirement or key, "form": form_of(part, {})}
                for key, part in criterion.part_fields.items()
            ],
        }
    if criterion.level == "text":
        return _texts(criterion)
    answers = criterion.answers()
    if criterion.level == "ranking":
        if not answers:
            return {"kind": "ranking", "names": list(candidates)}
        standings = [{"code": one.code, "standing": list(criterion.candidate_values(one))} for one in answers]
        return {"kind": "compare", "choices": standings[::-1]}
    if answers and len(answers) <= _MOST_BUTTONS:
        # The better of two answers comes first, as people expect; scales ascend.
        ordered = answers[::-1] if criterion.level == "binary" else answers
        return {
            "kind": "choice",
            "choices": [{"code": one.code, "label": one.label or str(one.code)} for one in ordered],
        }
    low, high = (answers[0], answers[-1]) if answers else map(criterion.answer_at, (0.0, 1.0))
    ends = (low.code, high.code)
    if all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in ends):
        return {"kind": "number", "min": ends[0], "max": ends[1], "whole": bool(answers)}
    # One part per measuring field, from the values that the evaluation allows.
    parts = []
    for key, spec in _properties(criterion).items():
        if form := _field_form(spec):
            parts.append({"key": key, "title": spec.get("description") or key, "form": form})
    return {"kind": "parts", "parts": parts}


def _properties(criterion: BaseCriterion) -> dict[str, Any]:
    found: dict[str, Any] = criterion.evaluation_schema.model_json_schema()["properties"]
    return {key: spec for key, spec in found.items() if key in criterion.eval_fields}


def _texts(criterion: BaseCriterion) -> dict[str, Json]:
    """Return a form with one text, or one text per section."""
    keys = list(_properties(criterion))
    try:
        answer = criterion.parse_truth("x")
    except ReplyError:
        answer = None
    return {"kind": "texts", "keys": keys, "bare": answer is not None and isinstance(answer.code, str)}


def _field_form(spec: Mapping[str, Any]) -> dict[str, Json] | None:
    """Return the form of one field; None for a text field, which labels do not need."""
    if "enum" in spec or "const" in spec:
        choices = spec.get("enum") or [spec["const"]]
        return {"kind": "choice", "choices": [{"code": one, "label": str(one)} for one in choices]}
    match spec.get("type"):
        case "boolean":
            return {
                "kind": "choice",
                "choices": [{"code": True, "label": "yes"}, {"code": False, "label": "no"}],
            }
        case "integer" | "number":
            whole = spec["type"] == "integer"
            return {"kind": "number", "min": spec.get("minimum"), "max": spec.get("maximum"), "whole": whole}
        case "string":
            return None
        case _:
            return {"kind": "json"}


def content_of(dataset: RubricDataset, title: str, seed: int) -> dict[str, Json]:
    """Return the page's data as JSON: items and rubrics, without labels, ratings, reasons and metadata."""
    guidelines: dict[str | None, int] = {}
    items = []
    for i in range(len(dataset.items)):
        rubric = dataset.get_item_rubric(i)
        place = guidelines.setdefault(rubric.guidelines, len(guidelines))
        items.append(_item(dataset, i, rubric, place))
    return {
        "title": title,
        "dataset": dataset.name or "",
        "fingerprint": dataset.fingerprint,
        "seed": seed,
        "guidelines": list(guidelines),
        "items": items,
    }


def _item(dataset: RubricDataset, i: int, rubric: Rubric, place: int) -> dict[str, Json]:
    item = dataset.items[i]
    submission = Submission.parse(item.submission)
    disputed = item.metadata.get("disputed")
    # A user's own metadata may also have this name.
    asked = set(rubric.names)
    if isinstance(disputed, Mapping) and disputed and set(disputed) <= asked:
        asked = set(disputed)
    group_paths = dict(_group_paths(rubric.root, ()))
    return {
        "id": dataset.item_id(i),
        "sha256": dataset.item_fingerprint(i),
        "prompt": dataset.get_item_prompt(i),
        "reference": dataset.get_item_reference_submission(i),
        "text": None if submission.candidates else submission.text,
        "thinking": submission.thinking,
        "candidates": [{"name": name, "text": text} for name, text in submission.candidates.items()],
        "guidelines": place,
        "criteria": [
            _criterion(criterion.bind(submission), submission, group_paths.get(criterion.name or "", ""))
            for criterion in rubric
            if criterion.name in asked
        ],
    }


def _criterion(criterion: BaseCriterion, submission: Submission, path: str) -> dict[str, Json]:
    form = form_of(criterion, submission.candidates)
    # A text may contain the words of an abstention without being one.
    abstains = criterion.level != "text"
    when = criterion.when
    return {
        "name": criterion.name,
        "group": path,
        "requirement": criterion.requirement or "",
        "details": _details(criterion, form),
        "penalty": _penalty(criterion),
        "when": when.criterion if when is not None else None,
        "abstains": abstains,
        "form": form,
        "misfit": criterion.why_inapplicable(submission),
    }


def _penalty(criterion: BaseCriterion) -> str:
    """Explain what an answer to a penalty means, since its name may sound positive; empty otherwise."""
    if criterion.weight >= 0:
        return ""
    met = next((one.label for one in criterion.answers() if one.value == 1.0 and one.label), None)
    if criterion.level != "binary" or met is None:
        return "Penalty: the more this applies, the lower the score."
    return f"Penalty: {met} means that the error is present."


def _details(criterion: BaseCriterion, form: Mapping[str, Any]) -> str:
    """Return the text that a judge reads besides name and requirement; empty if the form shows it."""
    head = BaseCriterion.render(criterion)
    rest = criterion.render().removeprefix(head).strip("\n")
    if form["kind"] == "parts":
        return ""
    labels = {f"- {one.get('label')}" for one in form.get("choices", ())}
    told = rest.split("\n")[1:]
    return "" if told and set(told) <= labels else rest


def _group_paths(group: RubricGroup, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each criterion with the path of groups that contain it."""
    for one in group.criteria:
        if isinstance(one, RubricGroup):
            yield from _group_paths(one, (*path, one.name))
        else:
            yield one.name or "", " › ".join(path)


def write_annotation_page(
    dataset: RubricDataset, path: str | Path, *, seed: int = 0, title: str | None = None
) -> None:
    """Write the page from `annotation_page` to a file.

    Raises:
        ArgumentError: If the dataset has no items, or an item has no rubric.
        FileError: If the file cannot be written.
    """
    write_text_atomic(path, annotation_page(dataset, seed=seed, title=title))


def annotation_page(dataset: RubricDataset, *, seed: int = 0, title: str | None = None) -> str:
    """Return a self-contained HTML page for labelling a dataset's items.

    Each rater enters an id and sees the items in a rater-specific random order; letters are assigned to
    compared candidates in the same way. The page does not show answers from judges or other raters. The
    browser stores the progress. Labels can be saved as JSON lines at any time; the page can resume from such
    a file, and `merge_labels` reads it. If an item's metadata has the key `disputed`, as set by
    `disputed_items`, the page asks only about those criteria.

    Args:
        dataset: The items and their rubrics.
        seed: Random seed for the orders, combined with the rater's id.
        title: Page heading; defaults to the dataset's name.

    Raises:
        ArgumentError: If the dataset has no items, or an item has no rubric.
    """
    if not dataset.items:
        raise ArgumentError("the dataset has no items to label")
    heading = title or dataset.name or "Items to label"
    content = content_of(dataset, heading, seed)
    styles, program = read_asset("labelling.css"), read_asset("labelling.js")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(read_asset("labelling.html")).render(
        title=heading,
        policy=(
            f"default-src 'none'; script-src {csp_digest(program)}; style-src {csp_digest(styles)}; "
            "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
        ),
        styles=Markup(styles),
        program=Markup(program),
        content=Markup(script_json(content, ascii_only=True)),
    )
