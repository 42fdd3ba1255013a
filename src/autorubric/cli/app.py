"""The command-line application, whose commands are functions: groups of options, errors as exit codes."""

from __future__ import annotations

import inspect
import os
import shlex
import shutil
import signal
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from enum import IntEnum
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from autorubric._version import VERSION
from autorubric.errors import AutorubricError, ItemFailedError, JudgeError, RunError, RunWriteError
from autorubric.support.blocks import printable
from autorubric.support.extensions import COMMANDS_GROUP, extension_names, load_extension


class Exit(IntEnum):
    """Exit codes of commands."""

    DONE = 0
    BELOW = 1  # The command succeeded, but the score is below `--fail-under`.
    USAGE = 2  # The command line or a file is invalid; nothing was judged.
    UNJUDGED = 3  # Something could not be judged, or more verdicts are missing than allowed.
    WAITING = 4  # Batches of the provider are not finished; the same command continues.
    STOPPED = 130
    TERMINATED = 143  # SIGTERM; shells use the same code for a process that it ends.
    CUT = 141  # The program reading stdout, such as `head`, closed the pipe; shells use the same code.


class Without:
    """In the `Annotated` type of a group of options: the fields that are not options of the command."""

    def __init__(self, *names: str) -> None:
        self.names = names


def guarded(command: Callable[..., Exit]) -> Callable[..., None]:
    """Wrap a command so that it prints errors as messages and exits with the code that it returns."""
    parameters, groups = _expand_groups(command)

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        for name, (group, names) in groups.items():
            options[name] = group(**{each: options.pop(each) for each in names if each in options})
        with _plain_warnings():
            try:
                code = command(*args, **options)
            except AutorubricError as error:
                notice(f"Error: {in_flags(str(error)) if isinstance(error, RunError) else error}")
                begun = isinstance(error, RunWriteError) and error.begun
                unjudged = begun or isinstance(error, JudgeError | ItemFailedError)
                code = Exit.UNJUDGED if unjudged else Exit.USAGE
            except BrokenPipeError:
                # Discard the output that is still buffered, so that the process ends quietly.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                code = Exit.CUT
            except OSError as error:
                notice(f"Error: {file_error_text(error)}")
                code = Exit.USAGE
            except KeyboardInterrupt as stop:
                notice(" ".join(["Stopped.", *map(str, stop.args)]))
                code = Exit.TERMINATED if isinstance(stop, _Termination) else Exit.STOPPED
        raise typer.Exit(code)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def command_group(summary: str, *examples: str) -> typer.Typer:
    """Return a group of commands, whose help shows calls that are not wrapped."""
    heading = "Examples" if len(examples) > 1 else "Example"
    calls = "".join(f"\n  {call}" for call in examples)
    return typer.Typer(
        no_args_is_help=True, rich_markup_mode=None, help=f"{summary}\n\n\b\n{heading}:{calls}"
    )


def _expand_groups(
    command: Callable[..., Exit],
) -> tuple[list[inspect.Parameter], dict[str, tuple[type, list[str]]]]:
    """Return the parameters of a command with each group replaced by its fields, and the groups by name."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        hint = hints.get(parameter.name, parameter.annotation)
        group, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if not is_dataclass(group) or not isinstance(group, type):
            parameters.append(parameter.replace(annotation=hint))
            continue
        omitted = {name for one in extras if isinstance(one, Without) for name in one.names}
        options = [one for one in _options_of(group) if one.name not in omitted]
        groups[parameter.name] = (group, [one.name for one in options])
        parameters += options
    if groups:
        # Options without a default may follow options that have one.
        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    return parameters, groups


@cache
def _options_of(group: type) -> list[inspect.Parameter]:
    """Return the fields of a group as parameters."""
    types = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=types[one.name],
        )
        for one in fields(group)
    ]


@contextmanager
def stoppable(folder: Path, *, done: str, command: str) -> Iterator[None]:
    """Add to an interrupt in the block where finished work is stored, and the command that resumes.

    SIGTERM ends the block as Ctrl-C does, with another exit code.
    """
    kind: type[KeyboardInterrupt] = KeyboardInterrupt

    def stop(_: int, frame: FrameType | None) -> None:
        nonlocal kind
        kind = _Termination
        # The handler of the event loop, unless a shell ignores interrupts of what runs in the background.
        interrupt = signal.getsignal(signal.SIGINT)
        (interrupt if callable(interrupt) else signal.default_int_handler)(signal.SIGINT, frame)

    # Only the main thread can set handlers.
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, stop) if in_main else None
    try:
        yield
    except KeyboardInterrupt:
        where = f"{done.capitalize()} items are in {shlex.quote(str(folder))}"
        raise kind(f"{where}. To resume, run {command}.") from None
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)


class _Termination(KeyboardInterrupt):
    """An interrupt by SIGTERM."""


def file_error_text(error: OSError) -> str:
    """Format an operating system error as one line, with its file name if there is one."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def in_flags(text: str) -> str:
    """Replace parameter names in a library message with the matching command-line flags."""
    for parameter, flag in (("experiment_name", "--name"), ("on_mismatch", "--on-mismatch")):
        text = text.replace(f"{parameter}=", f"{flag} ").replace(parameter, flag)
    return text


_shown: set[str] = set()
"""Warnings that the command has already shown."""


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show warnings as notices, without their location in the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in _shown:
            notice(f"Warning: {message}")
            _shown.add(str(message))

    _shown.clear()
    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def notice(*texts: str) -> None:
    """Print messages on stderr, unless they were already shown as warnings."""
    for text in texts:
        if text in _shown:
            continue
        lines, width = printable(text).splitlines(), shutil.get_terminal_size().columns
        # From 80 columns on, lines stay whole, so that they can be searched and copied.
        if width < 80:
            shaped = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
            lines = [shaped.fill(line) for line in lines]
        typer.echo("\n".join(lines), err=True)


COMMANDS: Final = {
    "init": ("files:init", "Write a rubric, a run file and sample data as a starting point."),
    "grade": ("grade:grade", "Grade one text against a rubric."),
    "eval": ("grade:evaluate", "Grade a dataset and store the results in a run folder."),
    "merge": (
        "score:merge",
        "Merge several runs into one: the shards of a dataset, or other runs with the same judges.",
    ),
    "show": ("show:show", "Show a run: its metrics and items, or one item with every vote and reason."),
    "metrics": ("metrics:metrics", "Measure a run's judges against human labels."),
    "compare": ("metrics:compare", "Compare a run with an earlier run, item by item."),
    "pass-at-k": ("metrics:pass_at_k", "Measure how often any, or every one, of k trials of a task passes."),
    "score": (
        "score:score",
        "Rescore a run's stored votes with different weights or policies, without calling judges.",
    ),
    "rejudge": (
        "score:rejudge",
        "Grade the items of a run again with different judges, and compare the two runs.",
    ),
    "export": ("show:export", "Export a run as a table, a Markdown page, or a JUnit report for CI servers."),
    "annotate": ("labels:annotate", "Write an HTML page for labelling items offline."),
    "report": ("show:report", "Write a run's report as a single HTML file."),
    "view": ("show:view", "Open a run's report in a browser, follow a run in progress, and label its items."),
    "redteam": (
        "judges:redteam",
        "Attack your own judges with prompt injections, and measure how often verdicts flip.",
    ),
    "critique": ("critique:critique", "Critique drafts and write the critiques as JSON lines."),
    "refine": ("critique:refine", "Rewrite the drafts whose verdict is revise, and critique them again."),
    "critique-text": (
        "tools:critique_text",
        "Critique a file against criteria, with scores, issues and suggestions.",
    ),
    "tools": ("tools:tools", "Print the function definition of a tool that models can call."),
    "mcp": ("tools:mcp", "Serve critique_evaluate, grade and compute_metrics to agents over MCP."),
    "validate": (
        "files:validate",
        "Check a rubric, dataset or run file, and report all errors with their line numbers.",
    ),
    "schema": ("files:schema", "Print the JSON schema of rubric files or run files, for editors."),
    "demo": (
        "demo:demo",
        "Grade and audit two small datasets offline, without an API key, network access or a model.",
    ),
    "judges": ("judges:judges_app", "Compare a run's judges with each other, and audit them."),
    "labels": (
        "labels:labels_app",
        "Export disputed items for labelling, and merge human labels into a dataset.",
    ),
    "cache": ("files:cache_app", "Show or clear the cache of model responses."),
}
"""The function or group of each command, which is loaded when the command is run, and its summary."""


class _Commands(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (_, summary) in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=summary)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an invalid choice is reported without the prefix of pydantic's messages."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, with those of installed packages at the end."""
        return [*COMMANDS, *(name for name in extension_names(COMMANDS_GROUP) if name not in COMMANDS)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command with its summary alone, or a command of an installed package."""
        if cmd_name in COMMANDS:
            return self.commands[cmd_name]
        function = load_extension(COMMANDS_GROUP, cmd_name)
        return None if function is None else _command(cmd_name, guarded(function))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the loaded command and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in COMMANDS:
            module, _, attribute = COMMANDS[name][0].partition(":")
            command = _command(name, getattr(import_module(f"autorubric.cli.{module}"), attribute))
        return name, command, rest


def _command(name: str, source: typer.Typer | Callable[..., None]) -> Any:
    """Return the command of a group or function, which Typer reads."""
    if isinstance(source, typer.Typer):
        return typer.main.get_group(source)
    single = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    single.command(name)(source)
    return typer.main.get_command(single)


# Without markup, Typer does not load rich, which takes longer to load than the rest of `--help`.
app = typer.Typer(
    name="autorubric",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"autorubric {VERSION}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            is_eager=True,
            callback=_show_version,
            show_default=False,
        ),
    ] = False,
) -> None:
    """Grade texts against weighted rubrics with judges, and measure how far the judges can be trusted.

    \b
    Start with:
      autorubric demo
    """


def tolerate_narrow_encodings() -> None:
    """Make stdout and stderr escape characters that their encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def main() -> None:
    """Run the command line and exit the process with the command's exit code."""
    tolerate_narrow_encodings()
    app()
