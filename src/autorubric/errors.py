"""The errors that the library raises on purpose, as one tree.

```text
AutorubricError
├── ArgumentError (ValueError)         an invalid argument or combination of arguments
├── FileError (ValueError)             an invalid file; `faults` lists every error in it
│   ├── RubricError                    … a rubric or one of its criteria
│   └── DatasetError                   … a dataset or one of its items
├── JudgeError                         a judge could not answer
│   ├── ReplyError (ValueError)        … because its reply cannot be parsed
│   ├── JudgeCodeError                 … because its own code has a programming error
│   ├── NotJudgedError                 … so that a text under test has no complete score
│   └── ProviderError                  … because a model provider sent no usable reply
│       ├── AuthenticationError        the API key is missing or rejected
│       ├── ModelNotFoundError         the model or the endpoint does not exist
│       ├── RequestRefusedError        the provider rejects the request; retrying does not help
│       │   ├── ContextLengthError     … because the text is longer than the model's context
│       │   └── SchemaRefusedError     … because it does not support the response format
│       └── TransientError             worth retrying
│           ├── RateLimitError         too many requests or tokens; may carry `retry_after`
│           ├── ProviderTimeoutError   no reply arrived in time
│           ├── ProviderConnectionError  the connection failed or broke
│           └── ServerError            the provider failed (5xx) or sent an invalid response
├── RunError                           a run folder cannot be used as requested
│   ├── RunMismatchError               … because its inputs have changed
│   ├── RunLockedError                 … because another process is writing to it
│   ├── RunFormatError                 … because a newer version wrote it, or it is damaged
│   ├── RunWriteError                  … because the system refuses the write
│   └── ItemFailedError                … because an item failed and the run stops at the first failure
├── BudgetError                        the run has used up its calls or US dollars
└── MissingDependencyError (ImportError)  an optional package is not installed
```
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Self


class AutorubricError(Exception):
    """Base class of all errors that the library raises deliberately."""


class ArgumentError(AutorubricError, ValueError):
    """An invalid argument or combination of arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One error in a file.

    Attributes:
        path: Location inside the file, such as `criteria[2].weight`; empty for the file as a whole.
        message: The value found, the allowed values, and how to fix the error.
        line: Line number, from 1; None if the format has no line numbers.
        count: Number of cells with this error; the message and the line are those of the first.
    """

    path: str
    message: str
    line: int | None = None
    count: int = 1

    def __str__(self) -> str:
        cells = f"{self.count} cells" if self.count > 1 else ""
        line = f"{cells and ', first in '}line {self.line}" if self.line else ""
        where = f"{self.path} ({cells}{line})".lstrip() if cells or line else self.path or "(top level)"
        return f"{where}: {self.message}"


class FileError(AutorubricError, ValueError):
    """An invalid file, or an invalid mapping passed instead of a file, with all errors found in it.

    Attributes:
        source: Path of the file, or a description of the mapping.
        faults: All errors, in file order.
    """

    def __init__(self, source: str, faults: Iterable[Fault]) -> None:
        self.source = source
        self.faults = tuple(faults)
        count = f"{len(self.faults)} error{'s' if len(self.faults) != 1 else ''}"
        super().__init__("\n".join([f"{source}: {count}", *(f"  - {fault}" for fault in self.faults)]))

    @classmethod
    def whole(cls, source: object, message: str, line: int | None = None) -> Self:
        """Return an error about a file as a whole, or about one line of it."""
        return cls(str(source), [Fault(path="", message=message, line=line)])


class RubricError(FileError):
    """An invalid rubric or criterion."""


class DatasetError(FileError):
    """An invalid dataset or item."""


class JudgeError(AutorubricError):
    """A judge failed to answer; its vote is recorded as failed.

    Attributes:
        usage: Tokens spent on the attempt, if counted.
        cost: US dollars spent on the attempt, if known.
        replies: Raw replies received, oldest first.
        messages: Role and content of each message sent, if a model was called.
        attempted: The models called, in order; empty if no model was called.
        selected_model: Model that sent the last reply, as named by the provider; None if there was no reply.
        request_id: Id that the provider assigned to the last reply, if any.
        seconds: Seconds from sending the last request to a model to its reply or error; None if unknown.
        requests_left: Number of requests to models that may still be sent for the vote; None if unknown.
    """

    usage: TokenUsage | None = None
    cost: float | None = None
    replies: tuple[str, ...] = ()
    messages: tuple[tuple[str, str], ...] = ()
    attempted: tuple[str, ...] = ()
    selected_model: str | None = None
    request_id: str | None = None
    seconds: float | None = None
    requests_left: int | None = None


class ReplyError(JudgeError, ValueError):
    """A reply arrived but cannot be parsed as an answer to its criterion.

    Attributes:
        reply: The raw reply, if any.
    """

    def __init__(self, message: str, *, reply: str | None = None) -> None:
        self.reply = reply
        super().__init__(message)


class JudgeCodeError(JudgeError):
    """A judge's own code raised a programming error, such as `AttributeError` or `TypeError`.

    Attributes:
        place: File and line that raised the error; empty if unknown.
    """

    def __init__(self, message: str, *, place: str = "") -> None:
        self.place = place
        super().__init__(message)


class NotJudgedError(JudgeError):
    """A text under test could not be judged; this counts as an error, not as a failed assertion."""


class ProviderError(JudgeError):
    """A model provider did not send a usable reply.

    Attributes:
        model: The model called.
        status: HTTP status, if any.
        retry_after: Seconds to wait before the next request, if the provider specifies them.
    """

    def __init__(
        self, message: str, *, model: str = "", status: int | None = None, retry_after: float | None = None
    ) -> None:
        self.model = model
        self.status = status
        self.retry_after = retry_after
        super().__init__(message)


class AuthenticationError(ProviderError):
    """The API key is missing, or the provider rejected it."""


class ModelNotFoundError(ProviderError):
    """The provider does not have this model or endpoint."""


class RequestRefusedError(ProviderError):
    """The provider rejected the request; sending it again will not help."""


class ContextLengthError(RequestRefusedError):
    """The request is longer than the model's context."""


class SchemaRefusedError(RequestRefusedError):
    """The provider does not support the response format of the request."""


class TransientError(ProviderError):
    """A temporary failure; the request is worth retrying."""


class RateLimitError(TransientError):
    """The provider rejected the request because too many requests or tokens were sent."""


class ProviderTimeoutError(TransientError):
    """The provider did not reply in time.

    Attributes:
        is_final: Whether the request is not sent again, because the provider has stopped answering.
    """

    is_final: bool = False


class ProviderConnectionError(TransientError):
    """The connection failed or was lost before the reply was complete.

    Attributes:
        connected: False if no connection could be established, for example because the address is wrong.
    """

    connected: bool = True


class ServerError(TransientError):
    """The provider had an internal failure or sent a response that is not a completion."""


class RunError(AutorubricError):
    """A run folder cannot be used as requested."""


class RunMismatchError(RunError):
    """A run's inputs have changed since it was created.

    Attributes:
        differences: One line per difference.
    """

    def __init__(self, message: str, *, differences: Iterable[str] = ()) -> None:
        self.differences = tuple(differences)
        super().__init__(message)


class RunLockedError(RunError):
    """Another process is writing to the run folder."""


class RunFormatError(RunError):
    """The run folder is damaged or was written by a newer version."""


class RunWriteError(RunError):
    """The run folder cannot be written to, for example because the disk is full; stored data is kept.

    Attributes:
        begun: Whether grading had started.
    """

    def __init__(self, message: str, *, begun: bool = False) -> None:
        self.begun = begun
        super().__init__(message)


class ItemFailedError(RunError):
    """An item could not be judged, and the run was configured to stop at the first such item."""


class BudgetError(AutorubricError):
    """The run's budget is used up; this ends the run instead of failing a vote.

    Attributes:
        limit: The limit that was reached: `max_calls` or `max_cost`.
    """

    def __init__(self, message: str, *, limit: str = "") -> None:
        self.limit = limit
        super().__init__(message)


class MissingDependencyError(AutorubricError, ImportError):
    """A required optional package is not installed."""


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
