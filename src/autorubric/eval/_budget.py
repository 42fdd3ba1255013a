"""What a run may spend, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autorubric.errors import ArgumentError
from autorubric.eval._config import EvalConfig
from autorubric.llm import SpendingLimit

if TYPE_CHECKING:
    from autorubric.graders import Grader
    from autorubric.llm import LLMConfig


def budget_of(config: EvalConfig, grader: Grader) -> SpendingLimit:
    """The budget that a run's options set; one without limits where they set none.

    Raises:
        ArgumentError: `max_cost` is set and the price of a model, or of one that it falls back on, is not
            known; all of them are named.
    """
    if config.max_cost is not None:
        _demand_prices(grader.models)
    return SpendingLimit(max_calls=config.max_calls, max_cost=config.max_cost)


def _demand_prices(models: Sequence[LLMConfig]) -> None:
    from autorubric.llm import PRICE_IT, pricings_of

    unknown = {one.model: one.reason for config in models for one in pricings_of(config) if one.price is None}
    if unknown:
        told = "; ".join(f"{model} ({reason})" for model, reason in unknown.items())
        raise ArgumentError(
            f"max_cost cannot be kept, since the price is not known of {told}; {PRICE_IT}, or set max_calls"
        )
