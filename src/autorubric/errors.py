"""Every error that the library raises on purpose, as one tree.

```text
AutorubricError
├── ArgumentError (ValueError)         an argument, or a combination of them, that cannot work
├── FileError (ValueError)             a file with faults; all of them at once, in `faults`
│   ├── RubricError                    … a rubric or a criterion in it
│   └── DatasetError                   … a dataset or an item in it
├── JudgeError                         a judge could not answer
│   ├── ReplyError (ValueError)        … it answered, and the answer cannot be read
│   ├── JudgeCodeError                 … its own code has a programming error
│   ├── NotJudgedError                 … so that a text that was to be tested has no full score
│   └── ProviderError                  … a model provider sent no usable reply
│       ├── AuthenticationError        the key is missing or refused
│       ├── ModelNotFoundError         no such model or endpoint
│       ├── RequestRefusedError        the provider rejects the request as it stands
│       │   ├── ContextLengthError     … because the text is longer than the model's context
│       │   └── SchemaRefusedError     … because it cannot take the response format
│       └── TransientError             worth another try
│           ├── RateLimitError         too many requests or tokens; may carry `retry_after`
│           ├── ProviderTimeoutError   no answer in time
│           ├── ProviderConnectionError  no connection, or it broke
│           └── ServerError            the provider failed (5xx), or sent an unreadable envelope
├── RunError                           a run folder that cannot be used as asked
│   ├── RunMismatchError               … because what it depends on has changed
│   ├── RunLockedError                 … because another process writes to it
│   ├── RunFormatError                 … because a newer version wrote it, or it is damaged
│   ├── RunWriteError                  … because the system does not let it be written
│   └── ItemFailedError                … because an item failed and the run was to end there
├── BudgetError                        the calls or US dollars that a run may spend are used up
└── MissingDependencyError (ImportError)  an optional package is not installed
```
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autorubric.values import TokenUsage


class AutorubricError(Exception):
    """Base of every error that the library raises on purpose."""


class ArgumentError(AutorubricError, ValueError):
    """An argument, or a combination of arguments, that cannot work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault in a file.

    Attributes:
        path: Where inside the file, as `criteria[2].weight`; empty for the file as a whole.
        message: What was given, what is allowed, what to do.
        line: Line in the file, from 1; None where the format gives none.
    """

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = self.path or "(top level)"
        return f"{where} (line {self.line}): {self.message}" if self.line else f"{where}: {self.message}"


class FileError(AutorubricError, ValueError):
    """A file, or a mapping that stands for one, with every fault found in it.

    Attributes:
        source: The file's path, or what stood in its place.
        faults: All faults, in the order of the file.
    """

    def __init__(self, source: str, faults: Iterable[Fault]) -> None:
        self.source = source
        self.faults = tuple(faults)
        count = f"{len(self.faults)} error{'s' if len(self.faults) != 1 else ''}"
        super().__init__("\n".join([f"{source}: {count}", *(f"  - {fault}" for fault in self.faults)]))


class RubricError(FileError):
    """A rubric, or a criterion in it, with faults."""


class DatasetError(FileError):
    """A dataset, or an item in it, with faults."""


class JudgeError(AutorubricError):
    """A judge could not answer; becomes a failed vote.

    Attributes:
        usage: Tokens spent in trying, where counted.
        cost: US dollars spent in trying, where known.
        replies: Raw replies that came, oldest first.
        messages: Role and content of each message sent, where a model was asked.
        attempted: Models asked, in order; empty where none was.
        selected_model: The model of the last reply, as its provider names it; None where none came.
        request_id: The provider's id of the last reply, where it gives one.
    """

    usage: TokenUsage | None = None
    cost: float | None = None
    replies: tuple[str, ...] = ()
    messages: tuple[tuple[str, str], ...] = ()
    attempted: tuple[str, ...] = ()
    selected_model: str | None = None
    request_id: str | None = None


class ReplyError(JudgeError, ValueError):
    """A reply came and cannot be read as an answer to its criterion.

    Attributes:
        reply: The reply as it came, where there is one.
    """

    def __init__(self, message: str, *, reply: str | None = None) -> None:
        self.reply = reply
        super().__init__(message)


class JudgeCodeError(JudgeError):
    """A judge's own code has a programming error: it raised an `AttributeError`, a `TypeError` or the like.

    Attributes:
        place: File and line that raised it; empty where unknown.
    """

    def __init__(self, message: str, *, place: str = "") -> None:
        self.place = place
        super().__init__(message)


class NotJudgedError(JudgeError):
    """A text that was to be tested could not be judged: an error of the test, not a failure of the text."""


class ProviderError(JudgeError):
    """A model provider sent no usable reply.

    Attributes:
        model: The model that was asked.
        status: HTTP status, where there was one.
        retry_after: Seconds that the provider asks to wait, where it says so.
    """

    def __init__(
        self, message: str, *, model: str = "", status: int | None = None, retry_after: float | None = None
    ) -> None:
        self.model = model
        self.status = status
        self.retry_after = retry_after
        super().__init__(message)


class AuthenticationError(ProviderError):
    """The key is missing, or the provider refuses it."""


class ModelNotFoundError(ProviderError):
    """The provider knows no such model or endpoint."""


class RequestRefusedError(ProviderError):
    """The provider rejects the request as it stands; sending it again changes nothing."""


class ContextLengthError(RequestRefusedError):
    """The request is longer than the model's context."""


class SchemaRefusedError(RequestRefusedError):
    """The provider cannot take the response format of the request."""


class TransientError(ProviderError):
    """A failure that another try may mend."""


class RateLimitError(TransientError):
    """Too many requests or tokens for now."""


class ProviderTimeoutError(TransientError):
    """No answer within the time allowed."""


class ProviderConnectionError(TransientError):
    """No connection, or it broke before the reply was whole.

    Attributes:
        connected: False where there was no connection at all: a wrong address or port, or no network.
    """

    connected: bool = True


class ServerError(TransientError):
    """The provider failed, or sent an envelope that is not a completion."""


class RunError(AutorubricError):
    """A run folder that cannot be used as asked."""


class RunMismatchError(RunError):
    """What the run depends on has changed since it was made.

    Attributes:
        differences: What differs, one line each.
    """

    def __init__(self, message: str, *, differences: Iterable[str] = ()) -> None:
        self.differences = tuple(differences)
        super().__init__(message)


class RunLockedError(RunError):
    """Another process writes to the run folder."""


class RunFormatError(RunError):
    """A run folder of a newer format, or a damaged one."""


class RunWriteError(RunError):
    """A run folder cannot be written: the disk is full, or the folder read-only; what was written stands.

    Attributes:
        begun: Whether grading had begun.
    """

    def __init__(self, message: str, *, begun: bool = False) -> None:
        self.begun = begun
        super().__init__(message)


class ItemFailedError(RunError):
    """An item could not be judged, and the run was to end at the first that could not."""


class BudgetError(AutorubricError):
    """What a run may spend is used up; no judge's fault, so it ends the run instead of failing a vote.

    Attributes:
        limit: Which limit was reached: `max_calls` or `max_cost`.
    """

    def __init__(self, message: str, *, limit: str = "") -> None:
        self.limit = limit
        super().__init__(message)


class MissingDependencyError(AutorubricError, ImportError):
    """An optional package is needed and not installed."""
