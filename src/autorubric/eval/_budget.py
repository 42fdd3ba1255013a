"""Limits on the spending of a run, checked before any request is sent."""

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
    """Return a budget for requests to these models; if no limit is set, the budget is unlimited.

    Args:
        models: The models that may be called, without their fallback models.
        max_calls: Maximum number of requests; None for no limit.
        max_cost: Maximum cost of all requests in US dollars; None for no limit.

    Raises:
        ArgumentError: If a limit is not positive, or `max_cost` is set and the price of a model or fallback
            model is unknown. The message lists all models without a known price.
    """
    limit = SpendingLimit(max_calls=max_calls, max_cost=max_cost)
    if max_cost is not None:
        _demand_prices(models)
    return limit


def unknown_prices(models: Sequence[LLMConfig]) -> dict[str, str | None]:
    """Return the models without a known price, with the reason for each."""
    from autorubric.llm import pricings_of

    return {one.model: one.reason for config in models for one in pricings_of(config) if one.price is None}


def _demand_prices(models: Sequence[LLMConfig]) -> None:
    from autorubric.llm import PRICE_IT

    if unknown := unknown_prices(models):
        told = "; ".join(f"{model} ({reason})" for model, reason in unknown.items())
        raise ArgumentError(
            f"max_cost requires the price of each model, but some are unknown: {told}; {PRICE_IT}, or set "
            "max_calls"
        )
