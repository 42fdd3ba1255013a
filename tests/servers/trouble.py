"""What a troubled provider does to requests: faults drawn by a seed, and limits that it does not tell."""

from __future__ import annotations

import hashlib
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Trouble:
    """Which requests fail, and how.

    A request's fault depends on the seed, its body, and how often this body came before: it is the same in
    whatever order requests come.

    Attributes:
        seed: Seed of the draws.
        faults: Steps by name, each with its `share` of requests.
        seconds: How long a right answer takes.
        payload: The JSON of a right answer; None: one that follows the schema.
        answers: Right answers that are given; what comes later is held for ever; None: all.
        parallel: Most requests that are answered at a time.
        per_second: Most requests that are taken in a second.
        burst: How many may come at once: capacity of a bucket that fills at `per_second`; None: no more than
            `per_second` in any second.
        retry_after: `Retry-After` of rejections, where they have one.
    """

    seed: int = 0
    faults: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0
    payload: dict[str, Any] | None = None
    answers: int | None = None
    parallel: int | None = None
    per_second: float | None = None
    burst: float | None = None
    retry_after: str | None = None
    began: float = field(default_factory=time.monotonic)
    outcomes: list[tuple[float, str, str]] = field(default_factory=list)
    _came: Counter[str] = field(default_factory=Counter)
    _answering: int = 0
    _taken: deque[float] = field(default_factory=deque)
    _tokens: float | None = None
    _filled: float = 0.0

    def step(self, raw: bytes) -> tuple[str, dict[str, Any]]:
        """The outcome's name and the step for a request with this body."""
        key = hashlib.sha256(raw).hexdigest()[:16]
        self._came[key] += 1
        name, step = self._fault(key) or ("answered", self._right())
        if not self._takes():
            name, step = "limited", {"do": "status", "status": 429, "message": "Slow down."}
            if self.retry_after is not None:
                step["headers"] = {"Retry-After": self.retry_after}
        elif name == "answered":
            name, step = self._given(step)
        self.outcomes.append((time.monotonic() - self.began, name, key))
        return name, step

    def begin(self) -> None:
        """An answer is begun."""
        self._answering += 1

    def end(self) -> None:
        """An answer is done."""
        self._answering -= 1

    def _given(self, step: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if self.answers is None:
            return "answered", step
        self.answers -= 1
        return ("answered", step) if self.answers >= 0 else ("held", {"do": "hang", "seconds": 3600})

    def _right(self) -> dict[str, Any]:
        right: dict[str, Any] = {"do": "answer", "seconds": self.seconds}
        return right if self.payload is None else {**right, "payload": self.payload}

    def _fault(self, key: str) -> tuple[str, dict[str, Any]] | None:
        drawn = (
            int(hashlib.sha256(f"{self.seed}/{key}/{self._came[key]}".encode()).hexdigest()[:12], 16) / 16**12
        )
        for name, step in self.faults.items():
            drawn -= step["share"]
            if drawn < 0:
                return name, step
        return None

    def _takes(self) -> bool:
        if self.parallel is not None and self._answering >= self.parallel:
            return False
        if self.per_second is None:
            return True
        now = time.monotonic()
        if self.burst is None:
            while self._taken and now - self._taken[0] >= 1.0:
                self._taken.popleft()
            if len(self._taken) >= self.per_second:
                return False
            self._taken.append(now)
            return True
        tokens = self.burst if self._tokens is None else self._tokens + (now - self._filled) * self.per_second
        self._filled = now
        self._tokens = min(self.burst, tokens)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
