"""The window of a server on the user's own machine, which rejects nothing but answers late.

It starts with a few requests in flight, and doubles per round of answers as long as the median time of a
request hardly grows, like the slow start of TCP. A time-out counts as a rejection, which halves it.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from autorubric.llm.config import LLMConfig
from autorubric.llm.names import is_local
from autorubric.support.objects import SAME_ERRORS_TO_STOP

_START: Final = 2
_GROWTH: Final = 1.25
"""Ratio of the median times of two rounds from which the window is not doubled: the requests wait in line."""
_LINE: Final = 1.6
"""Ratio from which requests wait in line for sure; below it, earlier ones may have been fast by chance."""
_DRIFT: Final = 1.1
"""Factor by which the times before are raised after a round that is slower, but below that ratio."""
_FEWEST: Final = 4
"""Minimum number of requests from which a median is computed."""
_ROOM: Final = 2.0
"""Time limit divided by the longest time that a larger window may cause: in proportion to its size."""
_PATIENCE: Final = 10.0
"""Default time limit of a local server, at least, divided by the seconds of its first answer."""


class LocalServer(NamedTuple):
    """What is set for a server on the user's own machine."""

    timeout: float  # seconds
    is_timeout_set: bool  # whether the user set it; otherwise it adapts to the first answer
    parallel: int | None = None  # maximum number of concurrent requests, from which the window starts

    def time_limit(self, first_answer: float) -> float:
        """Return the time limit of requests, given the seconds of the first answer."""
        return self.timeout if self.is_timeout_set else max(self.timeout, _PATIENCE * first_answer)


def local_server(config: LLMConfig) -> LocalServer | None:
    """Return what is set for the server of a config; None if it is not on the user's own machine."""
    if not is_local(config.model, config.api_base):
        return None
    return LocalServer(config.timeout, "timeout" in config.model_fields_set, config.max_parallel_requests)


class TimeLimit:
    """The time limit of requests to a model; that of a local server adapts to its first answer."""

    __slots__ = ("_local", "seconds")

    def __init__(self, config: LLMConfig) -> None:
        self.seconds = config.timeout
        self._local = local_server(config)

    def note_answer(self, seconds: float) -> None:
        """Record the seconds of an answer."""
        if self._local is not None:
            self.seconds, self._local = self._local.time_limit(seconds), None


class LocalWindow:
    """The number of requests in flight that a local server gets; all times are in seconds of one clock."""

    __slots__ = (
        *("_before", "_halved", "_has_timed_out", "_limit", "_server", "_since", "_times", "_timeouts"),
        "size",
    )

    def __init__(self, server: LocalServer) -> None:
        self.size = server.parallel or _START
        self._server = server
        self._limit: float | None = None  # of a request; None before the first answer
        self._before = math.inf  # median time of a request when the window was half as large
        self._since = self._halved = -math.inf  # time of the last change, and of the last time-out
        self._times: list[float] = []  # of the requests in this round
        self._has_timed_out = False
        self._timeouts = 0  # in a row, each with one request in flight

    def add_answer(self, sent: float, now: float, running: int, most: int) -> None:
        """Record an answer, with this many requests in flight; grow the window, to at most `most`."""
        self._timeouts, seconds = 0, now - sent
        if self._limit is None:
            self._limit = self._server.time_limit(seconds)
            if self._server.parallel is None and _START * _ROOM * seconds > self._limit:
                self.size = 1
        # Only requests that spent most of their time in a full window show what the window costs.
        if running < self.size or self.size >= most or sent + now < 2 * self._since:
            return
        self._times.append(seconds)
        if len(self._times) < max(self.size, _FEWEST):
            return
        median = sorted(self._times)[len(self._times) // 2]
        self._times.clear()
        step = max(1, self.size // 4) if self._has_timed_out else self.size
        is_flat = self._has_timed_out or median < _GROWTH * self._before
        if not is_flat and median < _LINE * self._before:
            self._before *= _DRIFT
        if is_flat and _ROOM * median * (self.size + step) <= self._limit * self.size:
            self.size, self._before, self._since = min(most, self.size + step), median, now

    def add_timeout(self, sent: float, now: float, running: int) -> bool:
        """Halve the window once per round of time-outs; return whether the server does not answer at all."""
        if sent >= self._halved:
            self.size, self._has_timed_out = max(1, self.size // 2), True
            self._since = self._halved = now
            self._times.clear()
        self._timeouts = self._timeouts + 1 if running == 1 else 0
        return self._timeouts >= SAME_ERRORS_TO_STOP
