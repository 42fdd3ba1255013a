"""`autorubric view`: serve a run's report on the loopback interface and save labels from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autorubric.cli.command import Exit, guarded, notice
from autorubric.cli.options import Columns, RunFolder, flag, option
from autorubric.cli.output import open_in_browser
from autorubric.errors import ArgumentError

SavedDataset = Annotated[
    Path | None,
    option(
        "--dataset",
        "FILE",
        "Dataset that was graded (.csv, .json, .jsonl or .yaml); labels are saved to this file.",
    ),
]
Rater = Annotated[
    str, option("--rater", "NAME", "Name of the annotator, stored with the labels.", show_default=True)
]
Port = Annotated[int, option("--port", "N", "Port on 127.0.0.1.  [default: any free port]", min=0, max=65535)]
NoBrowser = Annotated[bool, flag("--no-browser", "Print the address; do not open a browser.")]


@guarded
def view(
    run: RunFolder,
    dataset: SavedDataset = None,
    *,
    columns: Columns,
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

    viewed = RunPage(run, dataset, columns.field_map(), rater)
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
        notice(f"Saved {viewed.n_saved} labels to {viewed.saved_to}.")
    return Exit.DONE
