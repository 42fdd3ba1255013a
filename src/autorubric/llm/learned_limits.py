"""Limits that a provider does not publish, learned from the requests that it rejects (HTTP 429).

One window bounds the number of requests in flight, and paces them: a window of them is sent in the mean time
of an answer. It therefore adapts to limits on concurrent requests and on requests per second. The window
follows AIMD (additive increase, multiplicative decrease), as in TCP:

- A rejection lowers it to a twentieth less than was accepted lately, but by at most a tenth per round trip.
- Each answer to a request that the window delayed raises it, by more the longer no request was rejected.
- If nothing is accepted, all requests pause.
- If many requests are rejected, `LoadTest` checks whether this depends on the load. If it does not,
  rejections do not lower the window until they become more frequent.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from itertools import takewhile
from typing import Final, Protocol

_DECREASE: Final = 0.95
"""Share of the accepted requests to which the window drops: two in a hundred are rejected in the long run."""
_LEAST: Final = 0.9
"""Minimum share of the window that is kept per round trip, because a rejection can have other causes."""
_GROWTH: Final = 4e-5
"""Share of the window added per answer, times the answers since a rejection; fifty offset a twentieth."""
_RANDOM_GROWTH: Final = 8.0
"""Requests in flight added per answer while rejections are random, and no rejection lowers the window."""
_AVERAGED: Final = 200
"""Answers whose mean time is used for pacing; fewer would make the pace as uneven as the answers."""
_CREDIT: Final = 0.02
"""Maximum number of seconds of delay by a busy event loop that later requests may catch up."""

_REMEMBERED: Final = 4096
_ENOUGH: Final = 8
"""Number of accepted requests from which their rate is estimated; fewer are looked up further back."""
_SHORTEST_LOOK: Final = 0.2
"""Seconds over which a burst is spread, because its first milliseconds are not a rate."""

_CLOSED: Final = 5
"""Number of consecutive rejections, without an answer, after which the provider counts as closed."""
_PROBE: Final = 0.25
"""Interval between probes of a closed provider, as a share of the time without an answer."""
_SHORTEST_PROBE: Final = 0.05
_LONGEST_PROBE: Final = 10.0

_FIRST_SECONDS: Final = 1.0
"""Seconds in which a limit per second still rejects what the first burst exceeded it by."""
_WATCHED: Final = 50
"""Number of outcomes used to compute the share of rejections."""
_MANY: Final = 0.1
"""Minimum share of rejections to test whether they depend on the load; limits cause a fifth of it."""
_EASED: Final = 0.75
"""Share of what was accepted that is sent during the test."""
_SURE: Final = math.log(20.0)
"""Logarithm of the likelihood ratio at which the test ends."""
_FEWEST: Final = 3
"""Minimum number of answers to call rejections random, because a closed provider rejects everything."""
_MOST_RANDOM: Final = 0.75
"""Maximum share of rejections to call them random; above it, a limit has probably dropped."""


class Sent(Protocol):
    """A request that was sent: its number, the time, and whether the window delayed it."""

    number: int
    at: float
    is_held: bool


class LoadTest:
    """A test of whether rejections depend on the load: Wald's sequential probability ratio test (1945)."""

    # Less is sent during the test. Rejections are then as frequent as before if they are random, and at most
    # a quarter as frequent if a limit causes them.
    __slots__ = ("_answers", "_evidence", "_first", "_rejections", "_share", "is_running", "random_share")

    def __init__(self) -> None:
        self.is_running = False
        self.random_share = 0.0  # of requests that are rejected at random; 0 if none were found
        self._first = self._answers = self._rejections = 0
        self._share = self._evidence = 0.0

    def is_due(self, last: int) -> bool:
        """Return whether more requests are rejected than a limit or the known random share explains."""
        if self.is_running or self._answers + self._rejections < _WATCHED:
            return False
        random = self.random_share
        self._share = min(0.9, self._rejections / _WATCHED)
        self.count_from(last)
        return self._share >= (min(3 * random, (1 + random) / 2) if random else _MANY)

    def start(self, last: int) -> None:
        self.is_running, self._evidence = True, 0.0
        self.count_from(last)

    def count(self, number: int, last: int, *, is_rejected: bool) -> bool:
        """Count the outcome of a request and return whether the test ends with it."""
        # Rejections arrive sooner than answers, so only a fixed set of requests is counted.
        if number <= self._first or (not self.is_running and number > self._first + _WATCHED):
            return False
        self._rejections += is_rejected
        self._answers += not is_rejected
        if not self.is_running:
            return False
        if is_rejected:
            self._evidence -= math.log(4.0)
        else:
            self._evidence += math.log((1 - self._share / 4) / (1 - self._share))
        self._evidence = max(-_SURE, min(_SURE, self._evidence))
        is_random = self._evidence <= -_SURE and self._answers >= _FEWEST and self._share <= _MOST_RANDOM
        if not is_random and self._evidence < _SURE:
            return False
        self.is_running = False
        self.random_share = self._share if is_random else 0.0
        self.count_from(last)
        return True

    def count_from(self, last: int) -> None:
        """Count only requests with a number above `last`."""
        self._first, self._answers, self._rejections = last, 0, 0


class LearnedWindow:
    """The window of requests that one provider accepts; infinite before the first rejection."""

    __slots__ = (
        *("_accepted", "_answered_at", "_answers", "_asked_until", "_began", "_before", "_due", "_epoch"),
        *("_floor", "_load_test", "_mean_seconds", "_paused_by", "_paused_until", "_timed"),
        *("_unanswered", "is_learned", "size"),
    )

    def __init__(self) -> None:
        self.is_learned = False  # whether any request was rejected; nothing is recorded before
        self.size = math.inf
        self._accepted: OrderedDict[int, float] = OrderedDict()  # time of sending by number, unless rejected
        self._began = -math.inf  # time of the first rejection
        self._mean_seconds, self._timed = 0.0, 0  # of an answer, over this many answers
        self._due = -math.inf
        self._answers = 0  # to delayed requests, since the last rejection
        self._epoch = 0  # the last request sent when the window was lowered
        self._floor = 0.0  # of the window in this round trip
        # A provider that never answered counts as closed at its first rejection.
        self._unanswered, self._answered_at = _CLOSED - 1, -math.inf
        self._paused_until = self._asked_until = -math.inf
        self._paused_by = 0
        self._load_test, self._before = LoadTest(), math.inf

    def is_full(self, running: int) -> bool:
        """Return whether this many requests in flight fill the window, which is never smaller than 1."""
        return running > 0 and running >= self.size

    def wait(self, now: float, latest: float) -> float:
        """Return the seconds until the next request is due; 0 or less if it is due now."""
        due = self._due if self.size < math.inf else now
        asked_until = self._asked_until if self._asked_until <= latest else now
        return max(due, asked_until, min(self._paused_until, latest)) - now

    def add_sent(self, number: int, running: int, now: float) -> bool:
        """Record a request that is sent, and return whether the window delayed it."""
        self._accepted[number] = now
        if len(self._accepted) > _REMEMBERED:
            self._accepted.popitem(last=False)
        if self.size == math.inf:
            return False
        gap = self._mean_seconds / self.size
        is_held = now < self._due + gap or self.is_full(running)
        self._due = max(self._due, now - max(gap, _CREDIT)) + gap
        return is_held

    def add_answer(self, sent: Sent, last: int, now: float) -> None:
        """Raise the window after an answered request; `last` is the number of the last request sent."""
        self._unanswered, self._answered_at = 0, now
        self._timed = min(self._timed + 1, _AVERAGED)
        self._mean_seconds += (now - sent.at - self._mean_seconds) / self._timed
        if sent.number > self._paused_by:
            # A later request was answered, so the provider is not closed.
            self._paused_until = self._asked_until = now
        self.add_end(sent, last)
        if sent.is_held and not self._load_test.is_running:
            self._answers += 1
            is_random = self._load_test.random_share > 0
            self.size += _RANDOM_GROWTH if is_random else _GROWTH * self._answers * self.size

    def add_end(self, sent: Sent, last: int) -> None:
        """Record a request that ended without a rejection."""
        if self._load_test.count(sent.number, last, is_rejected=False):
            self._end_test(last)

    def add_rejection(self, sent: Sent, retry_after: float | None, left: int, last: int, now: float) -> None:
        """Lower the window after a rejected request, with `left` others in flight; pause if that is none."""
        if not self.is_learned:
            self.is_learned = True
            self._began = now
            # The requests in flight are taken as sent now, in the burst that is too much.
            self._accepted.update((number, now) for number in range(last - left, last + 1))
            self._load_test.count_from(last - left)
        self._accepted.pop(sent.number, None)
        test = self._load_test
        if test.count(sent.number, last, is_rejected=True):
            self._end_test(last)
        elif now - self._began >= _FIRST_SECONDS and self._timed and test.is_due(last):
            self._start_test(last, now)
        if sent.number > self._epoch:
            self._epoch = last
            self._floor = 0.0 if self.size == math.inf else _LEAST * self.size
        if not test.is_running and not test.random_share and self._unanswered < _CLOSED:
            # In the first burst, what is left was accepted; rejections of the rest follow and leave less.
            accepted = self._accepted_in_flight(now) if self._floor else max(1.0, left)
            self._lower(max(self._floor, _DECREASE * accepted), now)
        if not left:
            self._pause(retry_after, sent.number, now)

    def _pause(self, retry_after: float | None, number: int, now: float) -> None:
        """Pause after several rejections without an answer, until a later request is answered."""
        self._unanswered += 1
        if self._unanswered < _CLOSED:
            return
        if self._unanswered == _CLOSED and self.size < math.inf:
            # During a pause there are no rejections that would lower the window step by step.
            self._lower(max(self.size / 2, _DECREASE * self._accepted_in_flight(now)), now)
        since = max(self._began, self._answered_at)
        wait = max(_SHORTEST_PROBE, min(_LONGEST_PROBE, _PROBE * (now - since)))
        self._paused_until = max(self._paused_until, now + wait)
        if retry_after is not None:
            self._asked_until = max(self._asked_until, now + retry_after)
        self._paused_by = number

    def _lower(self, size: float, now: float) -> None:
        self.size = min(self.size, size)
        self._due = max(self._due, now)
        self._answers = 0

    def _start_test(self, last: int, now: float) -> None:
        accepted = self._accepted_in_flight(now)
        if accepted:
            self._load_test.start(last)
            self._before = min(self.size, _DECREASE * accepted)
            self._lower(_EASED * accepted, now)

    def _end_test(self, last: int) -> None:
        self.size = self._before
        self._epoch = last

    def _accepted_in_flight(self, now: float) -> float:
        """Return the mean number of accepted requests in flight, by Little's law, over at least a second."""
        elapsed = max(now - self._began, _SHORTEST_LOOK)
        look = 1.0
        while True:
            recent = takewhile(lambda at: at > now - look, reversed(self._accepted.values()))  # noqa: B023
            count = sum(1 for _ in recent)
            if count >= _ENOUGH or look >= elapsed:
                return count / min(look, elapsed) * self._mean_seconds
            look *= 2.0
