"""Running coroutines: from synchronous code, also in a notebook, and a limited number at a time."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextvars
import functools
import inspect
import os
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from itertools import chain
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar
from weakref import ref

from autorubric.errors import JudgeError
from autorubric.support.objects import IdentityCache

T = TypeVar("T")
P = ParamSpec("P")
SelfT = TypeVar("SelfT")
ItemT = TypeVar("ItemT")
DoneT = TypeVar("DoneT")
_ASK_AGAIN = 0.02
"""Seconds after which a waiting item is checked again."""


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a separate event loop and return its result; uvloop is used if installed."""
    if not loop_is_running():
        return _run(coroutine)
    # A loop cannot be entered twice.
    result: T = _start_thread(lambda: _run(coroutine), "autorubric-sync", is_daemon=False).result()
    return result


def sync_twin(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return the synchronous version of an async function, with its signature and docstring."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(function(*args, **kwargs))

    _name_twin(call, function)
    return call


def sync_method(
    method: Callable[Concatenate[SelfT, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SelfT, P], T]:
    """Return the synchronous version of an async method; it calls the override of a subclass."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def call(self: SelfT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        # An override can require what is optional here, so it also receives the defaults.
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        override: Callable[..., Coroutine[Any, Any, T]] = getattr(self, method.__name__)
        return run_sync(override(*bound.args[1:], **bound.kwargs))

    _name_twin(call, method)
    return call


def _name_twin(twin: Callable[..., Any], function: Callable[..., Any]) -> None:
    """Name a synchronous twin, so that it can be pickled, and say in its docstring what it is."""
    name = function.__name__
    twin.__name__ = name.removesuffix("_async") if name.endswith("_async") else f"{name}_sync"
    twin.__qualname__ = function.__qualname__.removesuffix(name) + twin.__name__
    summary, _, details = (function.__doc__ or "").partition("\n\n")
    lead = f"Call `{name}` from synchronous code, even inside a running event loop."
    twin.__doc__ = f"{lead}\n\n    {summary}" + (f"\n\n{details}" if details else "")


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    notes: list[str] = []

    async def run_with_notes() -> T:
        try:
            return await coroutine
        except asyncio.CancelledError as error:
            notes.extend(getattr(error, "__notes__", ()))
            raise

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            try:
                return runner.run(run_with_notes())
            except (KeyboardInterrupt, SystemExit):
                _end_tasks(runner.get_loop())
                raise
    except KeyboardInterrupt as interrupt:
        # The interrupt reached the coroutine as a cancellation and is raised here as a separate exception.
        for note in notes:
            interrupt.add_note(note)
        raise


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Run the tasks that an interrupt inside one of them left to their end, so that they release locks."""
    # Each task that the interrupt reaches raises it again, which stops the loop.
    while pending := asyncio.all_tasks(loop):
        for task in pending:
            task.cancel()
        try:
            loop.run_until_complete(asyncio.wait(pending))
        except (KeyboardInterrupt, SystemExit):
            # An interrupt that ended no task is Ctrl-C.
            if not any(task.done() for task in pending):
                return


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop factory; None if uvloop is missing or a custom event loop policy is set."""
    if type(asyncio.get_event_loop_policy()) is not asyncio.DefaultEventLoopPolicy:
        return None
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = new_event_loop
    return factory


class NoStrayCancellation:
    """Raises `JudgeError` for a `CancelledError` of an awaited object, which would end the caller."""

    __slots__ = ("_who",)

    def __init__(self, who: str) -> None:
        self._who = who

    def __enter__(self) -> None:
        """Enter the context; errors are handled on exit."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, asyncio.CancelledError) and not is_cancelled():
            raise JudgeError(f"{self._who} raised CancelledError") from error


def is_cancelled() -> bool:
    """Return whether the running task is being cancelled, and not only an object that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def call_user_code(
    function: Callable[..., Any],
    *arguments: Any,
    error_of: Callable[[BaseException], Exception] = JudgeError,
    thread: Literal["pool", "daemon"] | None = "pool",
) -> Any:
    """Call a function of the caller, by default in a thread, and return its result, awaited if necessary.

    error_of: Makes the error for a `StopIteration`, which cannot leave a thread, and for an exit in a daemon
    thread, which would end the event loop.
    """
    if thread is None or inspect.iscoroutinefunction(function):
        result = function(*arguments)
        return await result if inspect.isawaitable(result) else result

    def call_in_daemon() -> Any:
        try:
            return function(*arguments)
        except BaseException as error:
            if isinstance(error, StopIteration) or not isinstance(error, Exception):
                raise error_of(error) from error
            raise

    if thread == "pool":
        context = contextvars.copy_context()
        result = await call_in_thread(function, *arguments, error_of=error_of, context=context)
    else:
        # The task can stop waiting for a daemon thread, which does not keep the process alive.
        result = await asyncio.wrap_future(
            _start_thread(call_in_daemon, "autorubric-provider", is_daemon=True)
        )
    return await result if inspect.isawaitable(result) else result


def call_in_thread(
    function: Callable[..., Any],
    *arguments: Any,
    error_of: Callable[[BaseException], Exception],
    context: contextvars.Context,
) -> asyncio.Future[Any]:
    """Call a function in a thread of the pool, in this context; see `call_user_code`."""

    def call() -> Any:
        try:
            return function(*arguments)
        except StopIteration as error:
            raise error_of(error) from error

    return _THREAD_CALLS.of(asyncio.get_running_loop()).submit(call, context)


class _ThreadCalls:
    """Calls functions in the threads of a loop's default executor.

    `asyncio.to_thread` wakes the loop after each call, which takes several times as long as a short function.
    Here, a thread takes one call after the other, and all results that have arrived are delivered together.
    """

    _MOST_TASKS: Final = 64
    _SLICE: Final = 0.02
    """Seconds after which a thread returns to the executor, which may have other work."""
    _GROWTH_DELAY: Final = 0.001
    """Seconds after which the number of threads is doubled if calls still wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)
        self._lock = threading.Lock()
        self._waiting: deque[tuple[asyncio.Future[Any], contextvars.Context, Callable[[], Any]]] = deque()
        self._done: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._n_tasks = 0  # tasks of the executor that run or wait
        self._is_growth_due = self._is_delivery_due = False

    def submit(self, function: Callable[[], Any], context: contextvars.Context) -> asyncio.Future[Any]:
        """Call a function in a thread, in this context."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((future, context, function))
        with self._lock:
            is_idle = not self._n_tasks
        if is_idle:
            self._start(1)
        if not self._is_growth_due:
            self._is_growth_due = True
            loop.call_later(self._GROWTH_DELAY, self._grow)
        return future

    def _start(self, count: int) -> None:
        for _ in range(min(count, self._MOST_TASKS - self._n_tasks)):
            with self._lock:
                self._n_tasks += 1
            self._continue()

    def _grow(self) -> None:
        self._is_growth_due = bool(self._waiting)
        if self._is_growth_due:
            self._start(min(len(self._waiting), max(1, self._n_tasks)))
            asyncio.get_running_loop().call_later(self._GROWTH_DELAY, self._grow)

    def _work(self) -> None:
        end = time.monotonic() + self._SLICE
        while True:
            with self._lock:
                if not self._waiting:
                    self._n_tasks -= 1
                    return
                if time.monotonic() > end:
                    break
                future, context, function = self._waiting.popleft()
            if future.cancelled():
                continue
            try:
                self._finish(future, context.run(function), None)
            # The caller gets any exception, as from `asyncio.to_thread`.
            except BaseException as error:
                self._finish(future, None, error)
        # The loop starts another task, after other work that waits for a thread.
        self._call_loop(self._continue)

    def _finish(self, future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        self._done.append((future, value, error))
        if not self._is_delivery_due:
            self._is_delivery_due = True
            self._call_loop(self._deliver)

    def _call_loop(self, function: Callable[[], None]) -> None:
        loop = self._loop()
        # A loop that was closed takes no results, for example after an interrupt.
        with suppress(RuntimeError):
            if loop is not None:
                loop.call_soon_threadsafe(function)

    def _deliver(self) -> None:
        # Reset first: a result that arrives during the delivery is delivered now or again later.
        self._is_delivery_due = False
        while self._done:
            future, value, error = self._done.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

    def _continue(self) -> None:
        try:
            asyncio.get_running_loop().run_in_executor(None, self._work)
        except RuntimeError as error:
            # The executor was shut down, and takes no more calls.
            with self._lock:
                self._n_tasks -= 1
                self._done.extend((future, None, error) for future, _, _ in self._waiting)
                self._waiting.clear()
            self._deliver()


_THREAD_CALLS: Final = IdentityCache[asyncio.AbstractEventLoop, _ThreadCalls](_ThreadCalls)


def _start_thread(
    function: Callable[[], Any], name: str, *, is_daemon: bool
) -> concurrent.futures.Future[Any]:
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(function())
        # Every exception that ends the thread, including an interrupt, is raised in the caller.
        except BaseException as error:
            future.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name=name, daemon=is_daemon).start()
    return future


def loop_is_running() -> bool:
    """Return whether an event loop is running in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class KeptLoop:
    """An event loop in a separate thread that is kept between calls so that connections stay open."""

    def __init__(self, release: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._release = release
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        # Never released: collecting a parent's loop would remove its sockets from the shared poller.
        self._not_ours: list[asyncio.AbstractEventLoop] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave_parent_loop)
        atexit.register(self._end)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and return its result; cancel it if the wait is interrupted."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._get_loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _get_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = (_loop_factory() or asyncio.new_event_loop)()
                threading.Thread(target=self._loop.run_forever, name="autorubric-loop", daemon=True).start()
            return self._loop

    def _leave_parent_loop(self) -> None:
        # Another thread may have held the lock at the fork.
        self._lock = threading.Lock()
        if self._loop is not None:
            self._not_ours.append(self._loop)
            self._loop = None

    def _end(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._release(), loop).result()
            loop.call_soon_threadsafe(loop.stop)


async def run_bounded(
    items: Iterable[ItemT],
    work: Callable[[ItemT], Awaitable[DoneT]],
    *,
    limit: int,
    may_begin: Callable[[ItemT], bool] | None = None,
) -> AsyncGenerator[DoneT, None]:
    """Yield the result of `work` for each item as it finishes, with at most `limit` items in progress."""
    waiting = iter(items)
    held: list[ItemT] = []
    # An ordered set: tasks that end at the same time are yielded in the order of their start.
    running: dict[asyncio.Task[DoneT], None] = {}
    done: set[asyncio.Task[DoneT]] = set()

    def fill() -> None:
        for item in chain(held, waiting):
            # An item that cannot start yet is checked again when another one finishes or after a short wait.
            if may_begin is not None and not may_begin(item):
                held[:] = [item]
                return
            held.clear()
            running[asyncio.ensure_future(_run_work(work, item))] = None
            if len(running) >= limit:
                return

    try:
        fill()
        while running:
            pause = _ASK_AGAIN if held else None
            done, _ = await asyncio.wait(running, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            ended = [task for task in running if task in done]
            for task in ended:
                del running[task]
            fill()
            # Finished results are yielded before a failure is raised, so that the caller can keep them.
            for task in sorted(ended, key=lambda one: one.cancelled() or one.exception() is not None):
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, *done, return_exceptions=True)


async def _run_work(work: Callable[[ItemT], Awaitable[DoneT]], item: ItemT) -> DoneT:
    return await work(item)
