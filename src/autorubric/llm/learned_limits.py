"""Limits that a provider does not publish, learned from the requests that it rejects (HTTP 429).

There are two bounds: the number of concurrent requests, and the requests per second. A rejection lowers the
bound that explains it: the first if more requests were in flight than have usually been answered recently,
otherwise the second.

- The concurrency bound drops to the number of requests that were not rejected.
- The rate bound drops to the rate of the last second, less a twentieth. Once known, it drops by a twentieth
  at a time, and not below nine tenths of that rate.
- Each answer to a request that a bound delayed raises the bound slightly, so that about a hundred answers
  offset one rejection; the increase is larger if the bound is a guess, or has not been reached for a while.
- If a tenth of the requests are rejected after the first second, `LoadTest` checks whether rejections depend
  on the load. If they do not, both bounds are dropped until rejections become more frequent.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import islice
from typing import Final, Protocol

_DECREASE: Final = 0.95
_LEAST: Final = 0.9
_FASTER: Final = 0.0005
"""Share of the rate added per answer: about a hundred answers offset one rejection."""
_WIDER: Final = 0.0125
"""Concurrent requests added per answer."""
_GUESSED_FASTER: Final = 0.02
_GUESSED_WIDER: Final = 0.25
"""Concurrent requests added per answer for a bound that is a guess, not yet reached from below."""
_CONFIRMING: Final = 4
"""Delayed requests that must be answered before a rejection to confirm the bound from below."""
_FIRST_SECONDS: Final = 1.0
"""Seconds that must pass before a rate is more than a guess."""
_STAGE_SECONDS: Final = 2.0
_STAGE_ANSWERS: Final = 80
"""Number of answers without a rejection, together with a minimum time, after which the increase doubles."""
_MOST_STAGES: Final = 8.0

_LATELY: Final = 200
"""Number of recent answers used to estimate how many concurrent requests fit."""
_REMEMBERED: Final = 4096
_ENOUGH: Final = 8
_SHORTEST_LOOK: Final = 0.2
_LONGEST_LOOK: Final = 64.0
_CREDIT: Final = 0.02
"""Maximum number of seconds of delay by a busy event loop that later requests may catch up."""
_CLOSED: Final = 3
"""Number of consecutive rejections, without an answer, after which the provider counts as closed."""
_PROBE: Final = 0.25
"""Interval between probes of a closed provider, as a share of the time without an answer."""
_SHORTEST_PROBE: Final = 0.05
_LONGEST_PROBE: Final = 10.0

_WATCHED: Final = 50
"""Number of outcomes used to compute the share of rejections."""
_MANY: Final = 0.1
"""Minimum share of rejections to test whether they depend on the load."""
_EASED: Final = 0.75
"""Share of the previous pace used for requests during the test."""
_SURE: Final = math.log(20.0)
"""Logarithm of the likelihood ratio at which the test ends."""
_FEWEST: Final = 3
"""Minimum number of answers to call rejections random, because a closed provider rejects everything."""


class Sent(Protocol):
    """A request that was sent.

    Attributes:
        number: Its number among all requests to the provider.
        running: Number of requests in flight at that time, including itself.
        at: Time of sending; minus infinity (unknown) before the first rejection.
        rejections: Number of requests rejected before it was sent.
        is_held: Whether the rate bound delayed it.
    """

    number: int
    running: int
    at: float
    rejections: int
    is_held: bool


class Bound:
    """A learned bound that drops at a rejection and rises slowly.

    Args:
        learning: Minimum number of seconds for which the bound is a guess.

    Attributes:
        value: The bound; infinite if there is no evidence of a limit.
        is_known: Whether the bound was reached from below.
    """

    __slots__ = (
        *("_answers", "_guess", "_is_share", "_learning", "_lowered_at", "_since", "_step"),
        *("is_known", "value"),
    )

    def __init__(self, step: float, guess: float, *, is_share: bool, learning: float) -> None:
        self.value = math.inf
        self.is_known = False
        self._step = step
        self._guess = guess
        self._is_share = is_share
        self._learning = learning
        self._since = 0.0
        self._lowered_at = -math.inf
        self._answers = 0

    def lower(self, value: float, now: float) -> None:
        """Lower the bound to the value, if it is higher."""
        if self.value == math.inf:
            self._since = now
        self.value = min(self.value, value)
        if self._answers >= _CONFIRMING and now - self._since >= self._learning:
            self.is_known = True
        self._lowered_at = now
        self._answers = 0

    def grow(self, now: float) -> None:
        """Raise the bound by the increase for one answer."""
        self._answers += 1
        step = self._guess
        if self.is_known:
            quiet = min(
                (now - self._lowered_at) / _STAGE_SECONDS, self._answers / _STAGE_ANSWERS, _MOST_STAGES
            )
            step = self._step * 2.0**quiet
        self.value += step * self.value if self._is_share else step

    def lift(self, value: float) -> None:
        """Raise the bound to the value, which makes it a guess again."""
        self.value = value
        self.is_known = False


class LoadTest:
    """A test of whether rejections depend on the load: the sequential probability ratio test of Wald (1945).

    During the test, requests are sent at three quarters of the previously accepted rate. Rejections are then
    as frequent as before if they are random, and at most a quarter as frequent if a limit causes them.

    Attributes:
        is_running: Whether the test is running.
        random_share: Share of requests that are rejected at random; 0 if no random rejections were found.
    """

    __slots__ = ("_answers", "_evidence", "_first", "_rejections", "_share", "is_running", "random_share")

    def __init__(self) -> None:
        self.is_running = False
        self.random_share = 0.0
        self._first = 0
        self._answers, self._rejections = 0, 0
        self._share = 0.0
        self._evidence = 0.0

    def is_due(self, last: int) -> bool:
        """Return whether more requests are rejected than limits or the known random share explain."""
        if self.is_running or self._answers + self._rejections < _WATCHED:
            return False
        random = self.random_share
        self._share = min(0.9, self._rejections / _WATCHED)
        self._restart(last)
        return self._share >= (min(2 * random, (1 + random) / 2) if random else _MANY)

    def start(self, last: int) -> None:
        """Start the test; only requests with a number above `last` count."""
        self.is_running = True
        self._evidence = 0.0
        self._restart(last)

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
        is_random = self._evidence <= -_SURE and self._answers >= _FEWEST
        if not is_random and self._evidence < _SURE:
            return False
        self.is_running = False
        self.random_share = self._share if is_random else 0.0
        self._restart(last)
        return True

    def _restart(self, last: int) -> None:
        self._first = last
        self._answers, self._rejections = 0, 0


class LearnedLimits:
    """The limits learned from the rejections of one provider; created at the first rejection.

    Attributes:
        width: Bound on concurrent requests.
        rate: Bound on requests per second.
        rejections: Number of rejected requests.
    """

    __slots__ = (
        *("_answered_at", "_asked_until", "_before", "_due", "_epoch", "_lately", "_load_test", "_paused_by"),
        *("_paused_until", "_rate_epoch", "_rejected", "_sent", "_since", "_unanswered", "_usual", "rate"),
        *("rejections", "width"),
    )

    def __init__(self, running: int, now: float) -> None:
        self.width = Bound(_WIDER, _GUESSED_WIDER, is_share=False, learning=0.0)
        self.rate = Bound(_FASTER, _GUESSED_FASTER, is_share=True, learning=_FIRST_SECONDS)
        self.rejections = 0
        self._since = self._answered_at = now
        self._due = now
        self._epoch = 0
        self._rate_epoch = 0
        self._paused_until = self._asked_until = now
        self._paused_by, self._unanswered = 0, _CLOSED - 1
        self._lately: deque[tuple[int, int, int]] = deque(maxlen=_LATELY)
        self._usual = 1
        self._sent = deque((now,) * running, maxlen=_REMEMBERED)
        self._rejected: deque[tuple[int, float]] = deque(maxlen=_REMEMBERED)
        self._load_test = LoadTest()
        self._before = (math.inf, math.inf, math.inf)

    def is_full(self, running: int) -> bool:
        """Return whether this many requests in flight reach the known capacity of the provider."""
        return running + 1 > self.width.value

    def wait(self, now: float, latest: float) -> float:
        """Return the seconds until the next request is due; 0 or less if it is due now."""
        due = self._due if self.rate.value < math.inf else now
        asked_until = self._asked_until if self._asked_until <= latest else now
        return max(due, asked_until, min(self._paused_until, latest)) - now

    def sending(self, now: float) -> bool:
        """Count a request that is sent and return whether the rate bound delayed it."""
        self._sent.append(now)
        if self.rate.value == math.inf:
            return False
        gap = 1.0 / self.rate.value
        is_held = now < self._due + gap
        self._due = max(self._due, now - max(gap, _CREDIT)) + gap
        return is_held

    def answered(self, sent: Sent, last: int, now: float) -> None:
        """Update the bounds after an answered request."""
        self._unanswered = 0
        self._answered_at = now
        self._lately.append((sent.number, sent.running, sent.rejections))
        if sent.number > self._paused_by:
            # A later request was answered, so the provider is not closed.
            self._paused_until = self._asked_until = now
        self.ended(sent, last)
        if self._load_test.is_running:
            return
        if sent.running + 1 > self.width.value:
            self.width.grow(now)
        elif sent.is_held:
            self.rate.grow(now)

    def ended(self, sent: Sent, last: int) -> None:
        """Count a request that was not rejected, whatever its result."""
        if self._load_test.count(sent.number, last, is_rejected=False):
            self._end_test(last)

    def rejected(self, sent: Sent, left: int, last: int, now: float) -> bool:
        """Update the bounds after a rejected request and return whether the provider seems to be closed."""
        self.rejections += 1
        self._rejected.append((sent.number, max(sent.at, self._since)))
        is_news = sent.number > self._epoch
        if is_news:
            self._epoch = last
            self._usual = self._usual_width()
        if self._load_test.count(sent.number, last, is_rejected=True):
            self._end_test(last)
        elif now - self._since >= _FIRST_SECONDS and self._load_test.is_due(last):
            self._start_test(last, now)
        if self._load_test.is_running or self._load_test.random_share:
            return is_news
        fitted = self._fitted(sent.number, sent.running, sent.rejections)
        if fitted > self._usual:
            # The part of a burst that was not rejected fits.
            self.width.lower(max(left, fitted - 1, self._usual), now)
        elif sent.number > self._rate_epoch:
            self._rate_epoch = last
            self._lower_rate(now)
        return is_news and fitted == 1

    def pause(self, retry_after: float | None, number: int, now: float) -> None:
        """Pause after a rejection, unless a request sent after this one is answered.

        A few rejections among answers cause no pause, because the lowered bounds are sufficient.
        """
        self._unanswered += 1
        # If rejections are random, several in a row may occur by chance.
        if self._unanswered < (_WATCHED if self._load_test.random_share else _CLOSED):
            return
        if retry_after is None:
            wait = max(_SHORTEST_PROBE, min(_LONGEST_PROBE, _PROBE * (now - self._answered_at)))
            self._paused_until = max(self._paused_until, now + wait)
        else:
            self._asked_until = max(self._asked_until, now + retry_after)
        self._paused_by = number

    def _lower_rate(self, now: float) -> None:
        seen = self._seen_rate(now)
        if not seen:
            return
        value = self.rate.value
        lower = max(_DECREASE * value, _LEAST * seen) if self.rate.is_known else _DECREASE * min(value, seen)
        self.rate.lower(lower, now)
        self._due = max(self._due, now)

    def _start_test(self, last: int, now: float) -> None:
        seen = self._seen_rate(now)
        if not seen:
            return
        self._load_test.start(last)
        self._before = self.width.value, self.rate.value, _DECREASE * seen
        self.width.value = max(1.0, _EASED * min(self.width.value, self._usual))
        self.rate.value = _EASED * min(self.rate.value, seen)
        self._due = max(self._due, now)

    def _end_test(self, last: int) -> None:
        if self._load_test.random_share:
            # No bound explains random rejections.
            self.width.lift(math.inf)
            self.rate.lift(math.inf)
        else:
            self.width.value, self.rate.value, seen = self._before
            if seen < self.rate.value:
                self.rate.value = seen
                self.rate.is_known = True
        self._epoch = self._rate_epoch = last

    def _seen_rate(self, now: float) -> float:
        """Return the accepted requests per second over the last second, or longer if there were few."""
        look = 1.0
        while True:
            start = now - look
            count = _since(self._sent, start) - sum(at > start for _, at in self._rejected)
            if count >= _ENOUGH or look >= _LONGEST_LOOK or start <= self._since:
                return count / min(look, max(now - self._since, _SHORTEST_LOOK))
            look *= 2.0

    def _usual_width(self) -> int:
        """Return the concurrency that a tenth of the latest answers reached or exceeded; at least 1."""
        fitted = sorted((self._fitted(*one) for one in self._lately), reverse=True)
        return max(1, fitted[len(fitted) // 10]) if fitted else 1

    def _fitted(self, number: int, running: int, rejections: int) -> int:
        """Return how many requests in flight when one was sent were not rejected, including itself."""
        since = min(self.rejections - rejections, len(self._rejected))
        return running - sum(other < number for other, _ in islice(reversed(self._rejected), since))


def _since(times: deque[float], start: float) -> int:
    for back, at in enumerate(reversed(times)):
        if at <= start:
            return back
    return len(times)
