"""The providers of critiques, the order in which they are tried, and the judge that asks one."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import ValidationError

from autorubric.apps.tool.form import TEMPLATE, CritiqueFindings, CritiqueForm
from autorubric.apps.tool.request import CritiqueRequest, FoundType
from autorubric.errors import (
    ArgumentError,
    BudgetError,
    FileError,
    JudgeError,
    ProviderTimeoutError,
    ReplyError,
)
from autorubric.judges.answering import CallableSource, callable_source_of
from autorubric.judges.base import JudgeReply, JudgeRequest
from autorubric.judges.critic import Critic
from autorubric.llm.config import LLMConfig
from autorubric.support.concurrency import NoStrayCancellation, call_user_code, is_cancelled
from autorubric.support.objects import Json
from autorubric.support.read import Document, format_fault, read_structured
from autorubric.support.reading_errors import Faults, nearest_key, short_repr

T = TypeVar("T")


async def await_provider(work: Awaitable[T], ends: float, *, last: bool) -> T:
    """Return a provider's result if it arrives within the provider's share of the available time."""
    share = None if last else (ends - time.perf_counter()) / 2
    try:
        with NoStrayCancellation("the provider"):
            async with asyncio.timeout(share) as limit:
                return await work
    except TimeoutError:
        if share is not None and limit.expired():
            raise ProviderTimeoutError(f"no answer within {share:.3g} s") from None
        raise


def unavailable(asked: str, why: str) -> str:
    """Return the error message for a call that requested a provider by name and failed."""
    return f"Provider {asked!r} is not available: {why}"


PROVIDERS_VARIABLE: Final = "AUTORUBRIC_PROVIDERS"
"""Environment variable with the path of the default provider table."""

TABLE_FORMAT: Final = 1
"""Version of the table format. Older versions can be read; newer versions are rejected."""

_NAME: Final = re.compile(r"local_fm|gpt4|claude|custom:[A-Za-z0-9][A-Za-z0-9_.-]*")
_SUFFIXES: Final = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml"}
_KEYS: Final = ("format", "providers", "audit_path", "audit_content")
_FLAGS: Final = ("local", "fast", "specialised")
_GUARDED: Final = frozenset({"security", "safety"})


@dataclass(frozen=True, slots=True)
class Provider:
    """An evaluator and its strengths.

    Attributes:
        evaluator: A model name, an `LLMConfig`, a judge, an object with `forward(prompt)`, or a sync or async
            function of the prompt.
        local: Whether the evaluator runs on this machine and is therefore preferred for code.
        fast: Whether the evaluator is fast and is therefore preferred if no other preference applies.
        specialised: Whether the evaluator is preferred for the `security` and `safety` criteria.
        name: Name of the provider in the table.
        fault: Errors in the table entry, which make the provider unusable; empty if there are none.
    """

    evaluator: Any
    local: bool = False
    fast: bool = False
    specialised: bool = False
    name: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTable:
    """Providers, in the order in which to try them, and audit log settings.

    Attributes:
        providers: The available providers.
        audit_path: Path of the audit log, to which one line is appended per call; None for no log.
        audit_content: Whether to include content and context in the lines.
    """

    providers: tuple[Provider, ...] = field(default=())
    audit_path: Path | None = None
    audit_content: bool = False

    @classmethod
    def from_file(cls, path: str | Path) -> ProviderTable:
        """Read a table from a YAML, TOML or JSON file; an individual provider's errors go into its `fault`.

        Raises:
            FileError: If the file cannot be read, has other errors, or contains no usable provider. The
                message lists all errors.
        """
        document = read_structured(path, suffixes=_SUFFIXES)
        faults = document.faults()
        table = _read_table(document, faults)
        if faults or all(one.fault for one in table.providers):
            for one in table.providers:
                if one.fault:
                    faults.add(("providers", one.name), one.fault)
            faults.raise_as(FileError)
        return table

    def by_name(self, name: str) -> Provider:
        """Return the provider with the given name.

        Raises:
            ArgumentError: If there is no usable provider with this name.
        """
        found = next((one for one in self.providers if one.name == name), None)
        if found is None:
            available = ", ".join(one.name for one in self.providers) or "none configured"
            raise ArgumentError(f"Provider {name!r} is not available; available: {available}")
        if found.fault:
            raise ArgumentError(unavailable(name, found.fault))
        return found

    def route(self, name: str, content_type: FoundType, criteria: Iterable[str]) -> tuple[Provider, ...]:
        """Return the providers to try, in order, or only the named provider.

        Local providers come first for code, and specialised providers for security and safety. If no provider
        is preferred in this way, a fast provider comes first. The others follow in table order.

        Raises:
            ArgumentError: If there are no providers or the named provider is not available.
        """
        if name != "auto":
            return (self.by_name(name),)
        if not self.providers:
            raise ArgumentError(
                "No provider is available: pass providers, or set the environment variable "
                f"{PROVIDERS_VARIABLE} to the path of a provider table"
            )
        guarded = bool(_GUARDED & {one.casefold() for one in criteria})
        ranked = sorted(self.providers, key=lambda one: _rank(one, content_type == "code", guarded))
        if all(_rank(ranked[0], content_type == "code", guarded)):
            first = next((one for one in ranked if one.fast), None)
            ranked.sort(key=lambda one: one is not first)
        return tuple(ranked)


Providers: TypeAlias = ProviderTable | Mapping[str, Any] | str | Path | None


def provider_table(value: Providers) -> ProviderTable:
    """Convert a caller's argument to a provider table; None selects the table set in the environment."""
    if value is None:
        value = os.environ.get(PROVIDERS_VARIABLE) or {}
    if isinstance(value, ProviderTable):
        return value
    if isinstance(value, str | Path):
        return ProviderTable.from_file(value)
    if not isinstance(value, Mapping):
        raise ArgumentError(f"providers must be a mapping of names to evaluators; got {short_repr(value)}")
    return ProviderTable(providers=tuple(_provider(str(name), one) for name, one in value.items()))


def _provider(name: str, value: Any) -> Provider:
    if name == "auto":
        return Provider(None, name=name, fault="the name 'auto' is reserved; use another name")
    if isinstance(value, Provider):
        return replace(value, name=name)
    return Provider(evaluator=value, local=name == "local_fm", name=name)


def _rank(provider: Provider, code: bool, guarded: bool) -> list[bool]:
    # Code stays on this machine if possible, regardless of the criteria.
    preferences = (code and provider.local, guarded and provider.specialised)
    return [not is_preferred for is_preferred in preferences]


def _read_table(document: Document, faults: Faults) -> ProviderTable:
    data = document.data
    if not isinstance(data, Mapping):
        faults.add((), "a provider table must be a mapping with the key 'providers'")
        return ProviderTable()
    for key in data:
        if key not in _KEYS:
            faults.add((key,), f"unknown key {key!r}; {nearest_key(str(key), _KEYS)}")
    if fault := format_fault(data.get("format", 1), TABLE_FORMAT):
        faults.add(("format",), fault)
    audit_path, audit_content = data.get("audit_path"), data.get("audit_content", False)
    if audit_path is not None and not (isinstance(audit_path, str) and audit_path):
        faults.add(("audit_path",), f"must be the path of a file; got {short_repr(audit_path)}")
        audit_path = None
    if not isinstance(audit_content, bool):
        faults.add(("audit_content",), f"must be true or false; got {short_repr(audit_content)}")
    entries = data.get("providers")
    if not isinstance(entries, Mapping) or not entries:
        faults.add(("providers",), f"must be a mapping of names to models; got {short_repr(entries)}")
        entries = {}
    return ProviderTable(
        providers=tuple(_read_provider(name, entry) for name, entry in entries.items()),
        audit_path=None if audit_path is None else Path(document.source).parent / audit_path,
        audit_content=audit_content is True,
    )


def _read_provider(name: str, entry: Json) -> Provider:
    """Return the provider for a table entry, with the errors of the entry."""
    settings = {"model": entry} if isinstance(entry, str) else entry
    found: list[str] = []
    if not _NAME.fullmatch(name):
        found.append(f"the name {name!r} is invalid; use local_fm, gpt4, claude or custom:<id>")
    if not isinstance(settings, Mapping):
        found.append(f"the entry must be a model name or a mapping with 'model'; got {short_repr(entry)}")
        return Provider(None, name=name, fault="; ".join(found))
    flags = {flag: settings.get(flag, flag == "local" and name == "local_fm") for flag in _FLAGS}
    found += [
        f"{flag}: must be true or false; got {short_repr(value)}"
        for flag, value in flags.items()
        if not isinstance(value, bool)
    ]
    config = None
    try:
        config = LLMConfig.model_validate({k: v for k, v in settings.items() if k not in _FLAGS})
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_context=False, include_input=False):
            place = ".".join(str(part) for part in fault["loc"] if not str(part).startswith(":"))
            found.append(f"{place}: {fault['msg']}")
    kinds = {flag: value is True for flag, value in flags.items()}
    return Provider(config, name=name, fault="; ".join(found), **kinds)


def in_daemon_thread(function: Callable[[Any], Any]) -> Callable[[Any], Awaitable[Any]]:
    """Return an async version of a function, for which a caller can stop waiting."""
    if inspect.iscoroutinefunction(function):
        return function

    async def call(argument: Any) -> Any:
        return await call_user_code(
            function,
            argument,
            thread="daemon",
            error_of=lambda error: JudgeError(f"{type(error).__name__} was raised: {error}"),
        )

    return call


@dataclass(kw_only=True)
class CritiqueJudge:
    """A judge that asks one evaluator about all criteria of a request at once."""

    judge_id: str  # name of the provider
    evaluator: Any  # the evaluator: any value accepted by `Critic`
    request: CritiqueRequest  # the request to evaluate
    content_note: str  # a note about the content for the critic
    # The findings in the reply; None until the reply has arrived.
    findings: CritiqueFindings | None = field(default=None, init=False)
    # The error that occurred; None if no error occurred.
    failure: JudgeError | None = field(default=None, init=False)

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Ask the evaluator about one criterion and return the answer."""
        return (await self.ask_many([request]))[0]

    async def ask_many(self, requests: Sequence[JudgeRequest]) -> list[JudgeReply]:
        """Ask the evaluator about several criteria in one request and return the answers."""
        sheet = CritiqueForm(
            name="critique",
            parts=tuple(one.criterion for one in requests),
            mode=self.request.evaluation_mode,
            content_note=self.content_note,
            max_issues=self.request.max_issues,
            is_pass_fail=self.request.scoring_scale == "pass-fail",
        )
        try:
            reply = await self._reply(sheet, requests[0])
            self.findings = sheet.findings(reply.answer.evaluation)
        except JudgeError as error:
            self.failure = error
            raise
        # An evaluator is user code: any exception, including an exit, is a failure of the provider, unless
        # the caller cancelled the call.
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or is_cancelled():
                raise
            self.failure = JudgeError(f"provider {self.judge_id!r} raised {type(error).__name__}: {error}")
            raise self.failure from error
        answers = [self.findings.answers[one.criterion.name or ""] for one in requests]
        replies = [JudgeReply(answer=answer, reason=answer.reason, model=reply.model) for answer in answers]
        spent = {name: getattr(reply, name) for name in ("usage", "cost", "truncated", "shown")}
        replies[0] = replace(replies[0], **spent)
        return replies

    def _name_errors(self, source: CallableSource) -> Callable[[Any], Awaitable[Any]]:
        """Return the async version of a function whose errors name the provider."""

        async def ask(prompt: Any) -> Any:
            try:
                return await source.call(prompt)
            except (JudgeError, BudgetError):
                raise
            except Exception as error:
                message = f"provider {self.judge_id!r} raised {type(error).__name__}: {error}"
                raise JudgeError(message) from error

        return ask

    async def _reply(self, sheet: CritiqueForm, first: JudgeRequest) -> JudgeReply:
        evaluator = self.evaluator
        if (source := callable_source_of(evaluator)) is not None:
            if source.asynchronous is None and source.sync is not None:
                source = replace(source, asynchronous=in_daemon_thread(source.sync))
            evaluator = self._name_errors(source)
        guidelines = "\n\n".join(text for text in (first.guidelines, self.request.context) if text)
        async with Critic(evaluator, sheet, TEMPLATE) as critic:
            reply = await critic.ask(
                JudgeRequest(
                    criterion=sheet, submission=first.submission, guidelines=guidelines or None, shuffle=False
                )
            )
        if reply.answer.cannot_assess:
            error = ReplyError(reply.answer.reason or "the evaluator returned no evaluation")
            error.usage, error.cost = reply.usage, reply.cost
            raise error
        return reply
