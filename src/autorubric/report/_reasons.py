"""Readable explanations of why a figure is undefined."""

from __future__ import annotations

from typing import Final

_WORDS: Final[dict[str, str]] = {
    "no_pairs": "no criterion has two answers to compare",
    "no_ratings": "no ratings to compare",
    "no_values": "no answer has a value",
    "single_class": "all answers are the same",
    "single_category_scale": "the scale has only one category",
    "no_variance": "the values do not vary",
    "too_few_units": "too few items",
    "no_positive_in_truth": "no label is positive",
    "no_positive_in_pred": "no answer is positive",
    "no_positive": "there are no positive answers or labels",
    "no_negative": "there are no negative answers or labels",
    "no_negative_in_truth": "no label is negative",
    "degenerate_resamples": "undefined in most resamples",
    "na_as_category": "abstentions count as a category, so the categories have no order",
    "no_criterion_defined": "not defined for any criterion",
    "not_comparable": "the values cannot be compared",
    "infinite_loss": "the loss is infinite",
    "no_confidence": "the judges reported no confidence",
    "in_sample": "it would be measured on the data used for fitting",
    "not_connected": "the comparisons are not connected",
    "too_few_labels": "too few labels",
    "uninformative_judge": "the judge's answers do not depend on the label",
    "nonlinear_score": "the score is not a weighted mean",
    "no_spread": "the values have no spread",
    "no_truth": "no item has a label",
    "one_judge": "there is only one judge",
    "no_repeats": "no question was asked twice",
    "no_generator": "no item names the model that wrote it",
    "no_text": "no text has a known length",
    "no_order": "no comparison has a known order",
    "unattainable": "cannot be attained",
    "not_on_scale": "not defined for this scale",
    "not_requested": "not requested",
    "no_interval": "no interval is available",
    "errors_cancel": "the errors cancel each other out",
}


def reason_words(reason: str) -> str:
    """Return an explanation of a reason code of `Estimate.reason`."""
    return _WORDS[reason]
