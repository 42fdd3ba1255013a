"""The data of the labelling page: items and rubrics, without any answers or labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from autorubric.criteria import BaseCriterion
from autorubric.report._annotate._forms import form_of
from autorubric.rubric import Rubric
from autorubric.types import RubricGroup
from autorubric.values import Json, Submission


class LabelledItem(Protocol):
    """Interface of an item that the labelling page uses."""

    @property
    def submission(self) -> Json:
        """The submission to label."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Metadata; a `disputed` entry restricts the item to the criteria that it names."""
        ...


class ItemsToLabel(Protocol):
    """Interface of a dataset that the labelling page uses."""

    @property
    def name(self) -> str | None:
        """Name of the dataset."""
        ...

    @property
    def items(self) -> Sequence[LabelledItem]:
        """The items."""
        ...

    @property
    def fingerprint(self) -> str:
        """A fingerprint that changes if any text changes."""
        ...

    def item_id(self, i: int, /) -> str:
        """Return the item's id."""
        ...

    def get_item_rubric(self, i: int, /) -> Rubric:
        """Return the item's rubric."""
        ...

    def get_item_prompt(self, i: int, /) -> str | None:
        """Return the prompt that the item's submission responds to."""
        ...

    def get_item_reference_submission(self, i: int, /) -> str | None:
        """Return the item's reference answer."""
        ...

    def item_fingerprint(self, i: int, /) -> str:
        """Return a fingerprint that changes if the item's text changes."""
        ...


def content_of(dataset: ItemsToLabel, title: str, seed: int) -> dict[str, Json]:
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


def _item(dataset: ItemsToLabel, i: int, rubric: Rubric, place: int) -> dict[str, Json]:
    item = dataset.items[i]
    submission = Submission.parse(item.submission)
    disputed = item.metadata.get("disputed")
    # A user's own metadata may also have this name.
    asked = set(rubric.names)
    if isinstance(disputed, Mapping) and disputed and set(disputed) <= asked:
        asked = set(disputed)
    above = dict(_above(rubric.root, ()))
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
            _criterion(criterion.facing(submission), submission, above.get(criterion.name or "", ""))
            for criterion in rubric
            if criterion.name in asked
        ],
    }


def _criterion(criterion: BaseCriterion, submission: Submission, above: str) -> dict[str, Json]:
    form = form_of(criterion, submission.candidates)
    # A text may contain the words of an abstention without being one.
    abstains = criterion.level != "text"
    when = criterion.when
    return {
        "name": criterion.name,
        "group": above,
        "requirement": criterion.requirement or "",
        "details": _details(criterion, form),
        "penalty": _penalty(criterion),
        "when": when.criterion if when is not None else None,
        "abstains": abstains,
        "form": form,
        "misfit": criterion.misfit(submission),
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


def _above(group: RubricGroup, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each criterion with the path of groups that contain it."""
    for one in group.criteria:
        if isinstance(one, RubricGroup):
            yield from _above(one, (*path, one.name))
        else:
            yield one.name or "", " › ".join(path)
