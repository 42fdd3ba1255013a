"""Limits on requests to a provider; what is counted is shared by everything in one event loop that asks it.

Each request obeys the limits it came with, measured against all requests to the provider, and those that the
provider's rejections taught. Requests that wait are served strictly in the order in which they came, so that
none starves: those behind a request that must wait do too, even where their own limits are wider. A request
that waits holds no slot.

Where another process keeps the limits of many, `set_authority` says how to ask it.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from autorubric._kept import Kept
from autorubric.rate_limit._limiter import Gate, Limiter, Slot, Traffic
from autorubric.rate_limit._limits import WINDOW_SECONDS, Limits

__all__ = [
    "WINDOW_SECONDS",
    "Authority",
    "Gate",
    "Limiter",
    "Limits",
    "Slot",
    "Traffic",
    "limiter_for",
    "local_limiter",
    "set_authority",
]


class Authority(Protocol):
    """Keeps the limits of several processes."""

    def gate(self, provider: str, limits: Limits) -> Gate:
        """What hands out slots for requests to the provider under these limits."""
        ...


_authority: Authority | None = None


def set_authority(authority: Authority | None) -> Authority | None:
    """The authority that this process asked for slots so far; from now on it asks this one, or none."""
    global _authority
    before, _authority = _authority, authority
    return before


def limiter_for(provider: str, limits: Limits) -> Gate:
    """What hands out slots to the provider: the process's authority, or else the event loop's own limiter."""
    return local_limiter(provider, limits) if _authority is None else _authority.gate(provider, limits)


def local_limiter(provider: str, limits: Limits) -> Limiter:
    """A limiter under these limits that counts every request to the provider in the running event loop."""
    providers = _TRAFFIC.of(asyncio.get_running_loop())
    traffic = providers.get(provider)
    if traffic is None:
        traffic = providers[provider] = Traffic()
    return Limiter(limits, traffic)


def _begun(loop: asyncio.AbstractEventLoop) -> dict[str, Traffic]:
    # A request that waits knows its loop, and would keep the entry of a closed one alive.
    _TRAFFIC.forget(lambda other: other.is_closed())
    return {}


_TRAFFIC: Final = Kept[asyncio.AbstractEventLoop, dict[str, Traffic]](_begun)
