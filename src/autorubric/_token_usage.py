"""Token counts of model calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from autorubric._frozen import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Token counts of one or more model calls; instances can be added with `+`.

    Attributes:
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens received, including reasoning.
        total_tokens: Total reported by the provider.
        cache_creation_input_tokens: Prompt tokens written to the provider's prefix cache.
        cache_read_input_tokens: Prompt tokens read from the provider's prefix cache.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        if not isinstance(other, TokenUsage):
            return NotImplemented
        return TokenUsage(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})

    @classmethod
    def sum(cls, usages: Iterable[TokenUsage]) -> TokenUsage:
        """Return the sum of several token counts."""
        totals = map(sum, zip(*map(_counts_of, usages), strict=True))
        return cls(**dict(zip(cls.__slots__, totals, strict=False)))

    def to_dict(self) -> dict[str, int]:
        """Return the counts as a dict by field name."""
        return dict(zip(self.__slots__, _counts_of(self), strict=True))


_counts_of = attrgetter(*TokenUsage.__slots__)
