"""Limits that a provider does not state, learnt from the requests that it rejects (HTTP 429).

Two bounds are kept: how many requests at a time, and how many a second. A rejection lowers the one that
explains it: the first where more requests were in flight than have usually been answered of late, else the
second.

- Requests at a time come down to those that were not rejected.
- Requests a second come down to what got through in the last second, less a twentieth. Once known, they come
  down by a twentieth at a time, and no further than to nine tenths of that.
- Each answer to a request that a bound held back raises it by so little that about a hundred answers pay
  for one rejection; by more as long as the bound is a guess, or has not been met for a while.
- Where a tenth of the requests are rejected after the first second, `LoadTest` finds out whether that
  depends on the load. If it does not, both bounds are given up until rejections become more frequent.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import islice
from typing import Final, Protocol

_DECREASE: Final = 0.95
_LEAST: Final = 0.9
_FASTER: Final = 0.0005
"""Share of the rate that one answer adds: what a rejection took is back after a hundred answers."""
_WIDER: Final = 0.0125
"""Requests at a time that one answer adds."""
_GUESSED_FASTER: Final = 0.02
_GUESSED_WIDER: Final = 0.25
"""The same, as long as the bound is a guess: one that was not met from below."""
_CONFIRMING: Final = 4
"""So many answers to requests that the bound held back, and a rejection after them, meet it from below."""
_FIRST_SECONDS: Final = 1.0
"""A rate is no more than a guess before a whole second has passed."""
_STAGE_SECONDS: Final = 2.0
_STAGE_ANSWERS: Final = 80
"""After so long, and so many answers, without a rejection the increase doubles."""
_MOST_STAGES: Final = 8.0

_LATELY: Final = 200
"""Answers from which is taken how many requests fit at a time."""
_REMEMBERED: Final = 4096
_ENOUGH: Final = 8
_SHORTEST_LOOK: Final = 0.2
_LONGEST_LOOK: Final = 64.0
_CREDIT: Final = 0.02
"""Seconds by which requests that a busy event loop sent late may be caught up with."""
_CLOSED: Final = 3
"""So many rejections, with no answer between them, say that nothing gets through."""
_PROBE: Final = 0.25
"""Share of the time without an answer after which one is asked for again."""
_SHORTEST_PROBE: Final = 0.05
_LONGEST_PROBE: Final = 10.0

_WATCHED: Final = 50
"""Outcomes from which the share of rejections is taken."""
_MANY: Final = 0.1
"""Share of rejections from which it is tested whether they depend on the load."""
_EASED: Final = 0.75
"""Share of the pace at which requests are sent meanwhile."""
_SURE: Final = math.log(20.0)
"""Logarithm of the likelihood ratio at which the test ends."""
_FEWEST: Final = 3
"""Answers without which rejections are not called random: a provider that is closed rejects everything."""


class Sent(Protocol):
    """A request that was sent.

    Attributes:
        number: Its number among all requests to the provider.
        running: How many were in flight then, itself included.
        at: When it was sent; unknown, and minus infinity, before the first rejection.
        rejections: How many requests had been turned away by then.
        is_held: Whether the rate held it back.
    """

    number: int
    running: int
    at: float
    rejections: int
    is_held: bool


class Bound:
    """A bound that was learnt: it comes down at a rejection and goes up by little.

    Args:
        step: What one answer adds; a share of the bound if `is_share`.
        guess: The same, as long as the bound is a guess.
        is_share: Whether steps are shares.
        learning: Seconds for which it is a guess at least.

    Attributes:
        value: The bound; infinite as long as nothing speaks for one.
        is_known: Whether it was met from below.
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
        """Comes down to the value, where it is higher."""
        if self.value == math.inf:
            self._since = now
        self.value = min(self.value, value)
        if self._answers >= _CONFIRMING and now - self._since >= self._learning:
            self.is_known = True
        self._lowered_at = now
        self._answers = 0

    def grow(self, now: float) -> None:
        """Goes up by what one answer allows."""
        self._answers += 1
        step = self._guess
        if self.is_known:
            quiet = min(
                (now - self._lowered_at) / _STAGE_SECONDS, self._answers / _STAGE_ANSWERS, _MOST_STAGES
            )
            step = self._step * 2.0**quiet
        self.value += step * self.value if self._is_share else step

    def lift(self, value: float) -> None:
        """Goes up to the value, from which it is a guess again."""
        self.value = value
        self.is_known = False


class LoadTest:
    """Tests whether rejections depend on the load, with the sequential probability ratio test of Wald (1945).

    While it runs, requests are sent at three quarters of the pace that got through. Rejections are then as
    frequent as before if they are random, and at most a quarter as frequent if a limit causes them.

    Attributes:
        is_running: Whether requests are sent at three quarters of the pace.
        random_share: Share of requests that are rejected at random; 0 where none was found.
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
        """Whether more requests are rejected than a known limit explains, or than were rejected at random.

        Args:
            last: Number of the last request that was sent.
        """
        if self.is_running or self._answers + self._rejections < _WATCHED:
            return False
        random = self.random_share
        self._share = min(0.9, self._rejections / _WATCHED)
        self._restart(last)
        return self._share >= (min(2 * random, (1 + random) / 2) if random else _MANY)

    def start(self, last: int) -> None:
        """Starts; requests with a number above `last` count."""
        self.is_running = True
        self._evidence = 0.0
        self._restart(last)

    def count(self, number: int, last: int, *, is_rejected: bool) -> bool:
        """Counts the outcome of a request; says whether the test ends with it."""
        # Rejections come back sooner than answers: all of so many requests count, or none.
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


class Learnt:
    """What the rejections of one provider taught; made at the first of them.

    Args:
        running: How many requests are in flight, the rejected one included.
        now: The time.

    Attributes:
        width: Bound of requests at a time.
        rate: Bound of requests a second.
        rejections: How many requests have been turned away.
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
        """Whether so many in flight are as many as the provider is known to take."""
        return running + 1 > self.width.value

    def wait(self, now: float, latest: float) -> float:
        """Seconds until the next request is due; 0 or less if it is.

        Args:
            now: The time.
            latest: Until when the caller waits. A pause that the provider asked for and that ends later holds
                nothing back; one that was learnt ends then at the latest.
        """
        due = self._due if self.rate.value < math.inf else now
        asked_until = self._asked_until if self._asked_until <= latest else now
        return max(due, asked_until, min(self._paused_until, latest)) - now

    def sending(self, now: float) -> bool:
        """Counts a request that is sent; says whether the rate held it back."""
        self._sent.append(now)
        if self.rate.value == math.inf:
            return False
        gap = 1.0 / self.rate.value
        is_held = now < self._due + gap
        self._due = max(self._due, now - max(gap, _CREDIT)) + gap
        return is_held

    def answered(self, sent: Sent, last: int, now: float) -> None:
        """Learns from a request that was answered."""
        self._unanswered = 0
        self._answered_at = now
        self._lately.append((sent.number, sent.running, sent.rejections))
        if sent.number > self._paused_by:
            # What was sent later got through: the provider is not closed.
            self._paused_until = self._asked_until = now
        self.ended(sent, last)
        if self._load_test.is_running:
            return
        if sent.running + 1 > self.width.value:
            self.width.grow(now)
        elif sent.is_held:
            self.rate.grow(now)

    def ended(self, sent: Sent, last: int) -> None:
        """Counts a request that was not turned away, whatever came of it."""
        if self._load_test.count(sent.number, last, is_rejected=False):
            self._end_test(last)

    def rejected(self, sent: Sent, left: int, last: int, now: float) -> bool:
        """Learns from a request that was turned away; says whether nothing seems to get through.

        Args:
            sent: The request.
            left: How many others are in flight now.
            last: Number of the last request that was sent.
            now: The time.
        """
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
            # Of a burst, what was not turned away is what fits.
            self.width.lower(max(left, fitted - 1, self._usual), now)
        elif sent.number > self._rate_epoch:
            self._rate_epoch = last
            self._lower_rate(now)
        return is_news and fitted == 1

    def pause(self, retry_after: float | None, number: int, now: float) -> None:
        """After a rejection: sends nothing for a while, unless a request sent after this one is answered.

        A rejection or two among answers are no reason, since the bounds came down: only they wait.

        Args:
            retry_after: Seconds that the provider asks to wait; None: longer and longer.
            number: The request's number among all to the provider.
            now: The time.
        """
        self._unanswered += 1
        # Where rejections come at random, several follow one another by chance.
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
        """Requests a second that were not turned away: of the last second, or longer where there were few."""
        look = 1.0
        while True:
            start = now - look
            count = _since(self._sent, start) - sum(at > start for _, at in self._rejected)
            if count >= _ENOUGH or look >= _LONGEST_LOOK or start <= self._since:
                return count / min(look, max(now - self._since, _SHORTEST_LOOK))
            look *= 2.0

    def _usual_width(self) -> int:
        """How many fitted at a time, or more, for a tenth of the latest answers; at least 1."""
        fitted = sorted((self._fitted(*one) for one in self._lately), reverse=True)
        return max(1, fitted[len(fitted) // 10]) if fitted else 1

    def _fitted(self, number: int, running: int, rejections: int) -> int:
        """How many of those in flight when a request was sent were not turned away, itself included."""
        since = min(self.rejections - rejections, len(self._rejected))
        return running - sum(other < number for other, _ in islice(reversed(self._rejected), since))


def _since(times: deque[float], start: float) -> int:
    for back, at in enumerate(reversed(times)):
        if at <= start:
            return back
    return len(times)
