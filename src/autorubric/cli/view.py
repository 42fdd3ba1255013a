"""`autorubric view`: serve a run's report on the loopback interface and save labels from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autorubric.cli.metrics import RunFolder
from autorubric.cli.options import (
    IdColumn,
    MetaColumns,
    PromptColumn,
    ReferenceColumn,
    SubmissionColumn,
    TruthColumns,
    field_map,
)
from autorubric.cli.output import Exit, notice, open_in_browser, report_errors
from autorubric.errors import ArgumentError

SavedDataset = Annotated[
    Path | None,
    typer.Option(
        "--dataset",
        metavar="FILE",
        help="Dataset that was graded (.csv, .json, .jsonl or .yaml); labels are saved to this file.",
        show_default=False,
    ),
]
Rater = Annotated[
    str, typer.Option("--rater", metavar="NAME", help="Name of the annotator, stored with the labels.")
]
Port = Annotated[
    int,
    typer.Option(
        "--port",
        metavar="N",
        min=0,
        max=65535,
        help="Port on 127.0.0.1.  [default: any free port]",
        show_default=False,
    ),
]
NoBrowser = Annotated[
    bool, typer.Option("--no-browser", help="Print the address; do not open a browser.", show_default=False)
]


@report_errors
def view(  # noqa: PLR0913 - one parameter an option
    run: RunFolder,
    dataset: SavedDataset = None,
    submission: SubmissionColumn = None,
    prompt: PromptColumn = None,
    reference: ReferenceColumn = None,
    item_id: IdColumn = None,
    truth: TruthColumns = None,
    meta: MetaColumns = None,
    rater: Rater = "viewer",
    port: Port = 0,
    no_browser: NoBrowser = False,
) -> Exit:
    """Open a run's report in a browser, follow a run in progress, and label its items.

    The page is served on 127.0.0.1 to anyone who has its address, which contains a random token. While a run
    is in progress, the page shows new items, the progress, the cost and the failures.

    On the page of an item, each criterion can be labelled. Labels are saved at once to labels.jsonl in the
    run folder and, with --dataset, to the dataset file. In a CSV file, only the label's cell changes.

    \b
    Examples:
      autorubric view experiments/essays-1
      autorubric view experiments/essays-1 --dataset essays.csv \\
          --truth polite=human_polite --rater ada

    Exit codes: 0 stopped with Ctrl-C, 2 invalid command line, file or run folder.
    """
    # Imported late, since it loads numpy.
    from autorubric.cli.view_server import RunPage, ViewServer

    fields = field_map(submission, prompt, reference, item_id, truth, meta)
    viewed = RunPage(run, dataset, fields, rater)
    try:
        server = ViewServer(viewed, port)
    except OSError as error:
        raise ArgumentError(f"--port {port}: {error.strerror}; omit --port to use any free port") from None
    typer.echo(server.url)
    notice("Press Ctrl-C to stop.")
    if not no_browser:
        open_in_browser(server.url)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    if viewed.n_saved:
        notice(f"Saved {viewed.n_saved} labels to {viewed.save_target}.")
    return Exit.DONE
