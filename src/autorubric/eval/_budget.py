"""Limits on what a run may spend, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autorubric.errors import ArgumentError
from autorubric.llm import SpendingLimit

if TYPE_CHECKING:
    from autorubric.llm import LLMConfig


def spending_limit(
    models: Sequence[LLMConfig], *, max_calls: int | None, max_cost: float | None
) -> SpendingLimit:
    """Return the budget of whatever asks these models; one without limits where none is given.

    Args:
        models: The models that may be asked, without those that they fall back on.
        max_calls: Most requests that are sent; None for no limit.
        max_cost: US dollars that they may cost; None for no limit.

    Raises:
        ArgumentError: A limit is not positive; or `max_cost` is set and the price of a model, or of one that
            it falls back on, is not known: all of them are named.
    """
    limit = SpendingLimit(max_calls=max_calls, max_cost=max_cost)
    if max_cost is not None:
        _demand_prices(models)
    return limit


def unknown_prices(models: Sequence[LLMConfig]) -> dict[str, str | None]:
    """Return why a price is unknown, by model, for the models that have none."""
    from autorubric.llm import pricings_of

    return {one.model: one.reason for config in models for one in pricings_of(config) if one.price is None}


def _demand_prices(models: Sequence[LLMConfig]) -> None:
    from autorubric.llm import PRICE_IT

    if unknown := unknown_prices(models):
        told = "; ".join(f"{model} ({reason})" for model, reason in unknown.items())
        raise ArgumentError(
            f"max_cost needs the price of each model; unknown: {told}; {PRICE_IT}, or set max_calls"
        )
