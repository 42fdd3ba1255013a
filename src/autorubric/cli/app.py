"""The command-line application: its commands, `--version` and the entry point."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from autorubric._version import VERSION
from autorubric.cli.command import guarded
from autorubric.support.lazy import COMMANDS_GROUP, extension_names, load_extension

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
