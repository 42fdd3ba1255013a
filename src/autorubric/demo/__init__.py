"""A small labelled dataset that ships with the package: synthetic, for trying things out without a model."""

from __future__ import annotations

from importlib.resources import files

from autorubric.dataset import RubricDataset

__all__ = ["demo_dataset"]


def demo_dataset() -> RubricDataset:
    """The dataset: 72 replies of a support desk to three messages, with hand-set labels on nine criteria.

    Every text and label was made up for it; figures on it say nothing about real texts.
    """
    return RubricDataset.from_json(files(__name__).joinpath("dataset.json").read_text(encoding="utf-8"))
