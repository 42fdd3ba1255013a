"""Rate limits for requests to a provider, shared by everything in one event loop that uses the provider.

Each request obeys the limits that it came with, measured against all requests to the provider, and the limits
learned from the provider's rejections. Waiting requests are served strictly in order of arrival, so that none
starves: requests behind a waiting one wait too, even if their own limits are wider. A waiting request holds
no slot.

If another process enforces the limits of several processes, `set_authority` connects this one to it.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from autorubric._kept import Kept
from autorubric.rate_limit._limiter import WINDOW_SECONDS, Gate, Limiter, Limits, Slot, Traffic

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
    """The interface of objects that enforce limits across several processes."""

    def gate(self, provider: str, limits: Limits) -> Gate:
        """Return a gate that grants slots for requests to the provider under these limits."""
        ...


_authority: Authority | None = None


def set_authority(authority: Authority | None) -> Authority | None:
    """Set the authority that limits this process's requests, or None, and return the previous one."""
    global _authority
    before, _authority = _authority, authority
    return before


def limiter_for(provider: str, limits: Limits) -> Gate:
    """Return the gate of the process's authority for a provider or, without an authority, a local limiter."""
    return local_limiter(provider, limits) if _authority is None else _authority.gate(provider, limits)


def local_limiter(provider: str, limits: Limits) -> Limiter:
    """Return a limiter with these limits that counts all requests to the provider in this event loop."""
    providers = _TRAFFIC.of(asyncio.get_running_loop())
    traffic = providers.get(provider)
    if traffic is None:
        traffic = providers[provider] = Traffic()
    return Limiter(limits, traffic)


def _begun(loop: asyncio.AbstractEventLoop) -> dict[str, Traffic]:
    # A waiting request references its loop, and would keep the entry of a closed loop alive.
    _TRAFFIC.forget(lambda other: other.is_closed())
    return {}


_TRAFFIC: Final = Kept[asyncio.AbstractEventLoop, dict[str, Traffic]](_begun)
