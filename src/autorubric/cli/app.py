"""The command-line application: its commands, `--version` and the entry point."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from autorubric._version import VERSION
from autorubric.cli.annotate import annotate
from autorubric.cli.cache import cache_app
from autorubric.cli.compare import compare
from autorubric.cli.critique import critique, refine
from autorubric.cli.critique_text import critique_text
from autorubric.cli.demo import demo
from autorubric.cli.eval import evaluate
from autorubric.cli.export import export
from autorubric.cli.grade import grade
from autorubric.cli.init import init
from autorubric.cli.judges import judges_app
from autorubric.cli.labels import labels_app
from autorubric.cli.merge import merge
from autorubric.cli.metrics import metrics
from autorubric.cli.output import report_errors, tolerate_narrow_encodings
from autorubric.cli.redteam import redteam
from autorubric.cli.rejudge import rejudge
from autorubric.cli.report import report
from autorubric.cli.score import score
from autorubric.cli.show import show
from autorubric.cli.tools import mcp, tools
from autorubric.cli.validate import schema, validate
from autorubric.cli.view import view
from autorubric.support.extensions import extension_names, load_extension

COMMANDS_GROUP: Final = "autorubric.commands"
"""The entry point group of other commands."""


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        """Run a command; an invalid choice is reported without the prefix of pydantic's messages."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, with those of installed packages at the end."""
        own = super().list_commands(ctx)
        return own + [name for name in extension_names(COMMANDS_GROUP) if name not in own]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; those of installed packages are functions that Typer reads."""
        command = super().get_command(ctx, cmd_name)
        if command is None and (function := load_extension(COMMANDS_GROUP, cmd_name)):
            extension = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
            extension.command(cmd_name)(report_errors(function))
            return typer.main.get_command(extension)
        return command


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


def with_example(help_text: str, *calls: str) -> str:
    """Return the help of a command group, followed by example calls that are not wrapped."""
    lines = "\n".join(f"  {call}" for call in calls)
    return f"{help_text}\n\n\b\n{'Examples' if len(calls) > 1 else 'Example'}:\n{lines}"


app.command("init")(init)
app.command("grade")(grade)
app.command("eval")(evaluate)
app.command("merge")(merge)
app.command("show")(show)
app.command("metrics")(metrics)
app.command("compare")(compare)
app.command("score")(score)
app.command("rejudge")(rejudge)
app.command("export")(export)
app.command("annotate")(annotate)
app.add_typer(
    judges_app,
    name="judges",
    help=with_example(
        "Compare a run's judges with each other, and audit them.",
        "autorubric judges compare experiments/essays-1",
        "autorubric judges audit experiments/essays-1",
    ),
)
app.command("report")(report)
app.command("view")(view)
app.command("redteam")(redteam)
app.command("critique")(critique)
app.command("refine")(refine)
app.command("critique-text")(critique_text)
app.command("tools")(tools)
app.command("mcp")(mcp)
app.command("validate")(validate)
app.command("schema")(schema)
app.command("demo")(demo)
app.add_typer(
    labels_app,
    name="labels",
    help=with_example(
        "Export disputed items for labelling, and merge human labels into a dataset.",
        "autorubric labels export experiments/essays-1 -o disputed.jsonl",
        "autorubric labels merge essays.json disputed.jsonl -o labelled.json",
    ),
)
app.add_typer(
    cache_app,
    name="cache",
    help=with_example("Show or clear the cache of model responses.", "autorubric cache stats"),
)


def main() -> None:
    """Run the command line and exit the process with the command's exit code."""
    tolerate_narrow_encodings()
    app()
