"""Readable explanations of why a figure is undefined."""

from __future__ import annotations

from typing import Final

_WORDS: Final[dict[str, str]] = {
    "no_pairs": "no cell was answered on both sides",
    "no_ratings": "no ratings to compare",
    "no_values": "no answer has a value",
    "single_class": "all answers are the same",
    "single_category_scale": "the scale has one category",
    "no_variance": "nothing varies",
    "too_few_units": "too few items",
    "no_positive_in_truth": "no label is positive",
    "no_positive_in_pred": "no answer is positive",
    "no_positive": "nothing is positive on either side",
    "no_negative": "nothing is negative on either side",
    "no_negative_in_truth": "no label is negative",
    "degenerate_resamples": "undefined in most resamples",
    "na_as_category": "abstentions count as a category, which leaves no order",
    "no_criterion_defined": "defined on no criterion",
    "not_comparable": "the two sides cannot be compared",
    "infinite_loss": "the loss is infinite",
    "no_confidence": "judges gave no confidence",
    "in_sample": "it would be measured on what was fitted",
    "not_connected": "the comparisons are not connected",
    "too_few_labels": "too few labels",
    "uninformative_judge": "the judge tells nothing about the truth",
    "nonlinear_score": "the score is not a weighted mean",
    "no_spread": "there is no spread",
    "no_truth": "nothing is labelled",
    "one_judge": "there is one judge",
    "no_repeats": "nothing was asked twice",
    "no_generator": "no item names what wrote it",
    "no_text": "no texts whose length is known",
    "no_order": "no comparisons whose order is known",
    "unattainable": "cannot be attained",
    "not_on_scale": "this scale does not have it",
    "not_requested": "not asked for",
    "no_interval": "no interval",
    "errors_cancel": "errors cancel each other",
}


def reason_words(reason: str) -> str:
    """Return an explanation of a reason code of `Estimate.reason`."""
    return _WORDS[reason]
