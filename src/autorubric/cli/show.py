"""Stored runs shown in the terminal, as pages or as files: `autorubric show`, `report`, `view`, `export`."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import autorubric
from autorubric import cli
from autorubric.apps.tool.response import CritiqueResponse
from autorubric.cli.app import Exit, guarded, notice
from autorubric.cli.gates import fail_under_option, max_lost_option
from autorubric.cli.options import Columns, JsonFlag, RunFolder, flag, option
from autorubric.cli.output import open_in_browser, print_blocks, print_json, report_json, run_blocks
from autorubric.cli.runs import open_stored_run, run_counts
from autorubric.criteria.values import MAX_LOST, Submission
from autorubric.errors import ArgumentError
from autorubric.runs.export import ExportFormat, ExportTable
from autorubric.runs.items import ItemResult
from autorubric.scoring.reports import EnsembleCriterionReport, answer_text, is_split
from autorubric.support.blocks import Block, Cell, TableBlock, TextBlock
from autorubric.support.write import write_bytes_atomic

_WIDEST_TEXT = 2_000


ShownItem = Annotated[str | None, option("--item", "ID", "Show only this item: its text, votes and reasons.")]
Prompts = Annotated[bool, flag("--prompts", "With --item: also show the prompts and model replies.")]
Only = Annotated[
    Literal["all", "failed", "split", "abstained", "wrong"],
    option(
        "--only",
        "WHICH",
        "Which items to list: failed (a vote failed or the item has no score), split (votes "
        "differ), abstained (a vote abstains), wrong (a verdict differs from the label), or all.  "
        "[default: all]",
    ),
]
SortBy = Annotated[
    Literal["dataset", "score"],
    option(
        "--sort",
        "BY",
        "Order: dataset, or score (lowest first, items without a score last).  [default: dataset]",
    ),
]
ListedItems = Annotated[int, option("--limit", "N", "List at most N items.  [default: 20]", min=1)]


@guarded
def show(
    run: RunFolder,
    item: ShownItem = None,
    prompts: Prompts = False,
    only: Only = "all",
    sort: SortBy = "dataset",
    limit: ListedItems = 20,
    as_json: JsonFlag = False,
) -> Exit:
    """Show a run: its metrics and items, or one item with every vote and reason.

    With --json, prints an object with the keys run, total_items, successful_items, partly_scored_items,
    failed_items, unfinished_items, mean_score, verdicts (as for `eval`), notices and items: all finished ones
    that --only selects, each with id, score, error, answers (by criterion) and assumed (criteria with an
    assumed answer). With --item, the keys are run, id, submission, error, report (null if grading failed),
    labels (by criterion) and, with --prompts, exchanges (criterion, judge, sample, messages, replies and
    shared_with of each).

    \b
    Examples:
      autorubric show experiments/essays-1 --only split --sort score
      autorubric show experiments/essays-1 --item essay-7 --prompts

    Exit codes: 0 success, 2 invalid command line, file or run folder.
    """
    result = autorubric.EvalResult.from_experiment(run)
    if item is not None:
        return _show_item(run, result, item, prompts=prompts, as_json=as_json)
    if prompts:
        raise ArgumentError("--prompts needs --item ID")
    chosen: Sequence[ItemResult] = result.item_results
    if only != "all":
        # The same marks as in a report.
        marked = autorubric.reports.items.marks_of(result).items[only]
        chosen = [one for one in chosen if one.item_idx in marked]
    if sort == "score":
        chosen = sorted(chosen, key=_by_score)
    if as_json:
        print_json(_run_json(run, result, chosen))
        return Exit.DONE
    blocks = [*run_blocks(result), _items_block(result, chosen[:limit])]
    if len(chosen) > limit:
        blocks.append(TextBlock(text=f"and {len(chosen) - limit} more; --limit N shows more"))
    print_blocks(blocks)
    return Exit.DONE


def _by_score(one: ItemResult) -> tuple[bool, float, int]:
    """Return a sort key that puts the lowest score first and items without a score last."""
    score = one.report.score if one.report is not None else None
    return (score is None, score or 0.0, one.item_idx)


def _split_cells(result: autorubric.EvalResult, listed: Sequence[ItemResult]) -> Collection[tuple[int, str]]:
    """Return the cells whose votes differ, without loading numpy unless there is a ranking."""
    found = [(one.item_idx, report) for one in listed if one.report for report in one.report.report]
    if any(report.criterion.level == "ranking" for _, report in found):
        return autorubric.reports.items.marks_of(result).cells["split"]
    return {(at, report.name) for at, report in found if is_split(report)}


def _items_block(result: autorubric.EvalResult, chosen: Sequence[ItemResult]) -> TableBlock:
    split = _split_cells(result, chosen)
    names = list(dict.fromkeys(c.name for one in chosen if one.report for c in one.report.report))
    rows: list[tuple[Cell, ...]] = []
    for one in chosen:
        found = {
            c.name: answer_text(c) + (" (split)" if (one.item_idx, c.name) in split and not c.tie else "")
            for c in (one.report.report if one.report else ())
        }
        answers = [found.get(name, "") for name in names]
        score = one.report.score if one.report else None
        rows.append((result.dataset.item_id(one.item_idx), score, *answers, one.error or ""))
    errors = any(row[-1] for row in rows)
    columns = ("item", "score", *names, *(("error",) if errors else ()))
    return TableBlock(title="Items", columns=columns, rows=tuple(row[: len(columns)] for row in rows))


def _run_json(run: Path, result: autorubric.EvalResult, chosen: Sequence[ItemResult]) -> dict[str, Any]:
    return {
        "run": str(run),
        **run_counts(result),
        "notices": list(result.notices),
        "items": [
            {
                "id": result.dataset.item_id(one.item_idx),
                "score": one.report.score if one.report else None,
                "error": one.error,
                "answers": {c.name: c.final_answer for c in one.report.report} if one.report else {},
                "assumed": list(one.report.assumed) if one.report else [],
            }
            for one in chosen
        ],
    }


def _show_item(run: Path, result: autorubric.EvalResult, item: str, *, prompts: bool, as_json: bool) -> Exit:
    found = _find_item(result, item)
    labels = result.dataset.item_truth(found.item_idx) or {}
    exchanges = [_exchange_json(one) for one in result.exchanges(item)] if prompts else None
    if prompts and not exchanges:
        notice("No prompts are stored for this item: no model was called, or the run did not store them")
    if as_json:
        content: dict[str, Any] = {
            "run": str(run),
            "id": item,
            "submission": found.item.submission,
            "error": found.error,
            "report": report_json(found.report) if found.report else None,
            "labels": dict(labels),
        }
        print_json(content | ({} if exchanges is None else {"exchanges": exchanges}))
        return Exit.DONE
    given = found.item.submission
    text = Submission.parse(given).text if isinstance(given, list) else given
    shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, indent=2)
    cut = f"{shown[:_WIDEST_TEXT]}\n[… {len(shown) - _WIDEST_TEXT:,} more characters]"
    blocks: list[Block] = [TextBlock(title=f"Item {item}", text=shown if len(shown) <= _WIDEST_TEXT else cut)]
    if found.report is not None:
        blocks += [*found.report.blocks(), *_votes_blocks(found.report.report, labels)]
    if found.error is not None:
        blocks.append(TextBlock(title="Error", text=found.error))
    print_blocks([*blocks, *(block for one in exchanges or () for block in _exchange_blocks(one))])
    return Exit.DONE


def _find_item(result: autorubric.EvalResult, item: str) -> ItemResult:
    for place, position in enumerate(result.item_results.positions):
        if result.dataset.item_id(position) == item:
            return result.item_results[place]
    if any(result.dataset.item_id(position) == item for position, _ in result.item_results.unfinished()):
        raise ArgumentError(f"item {item!r} is unfinished; resume the run")
    ids = [result.dataset.item_id(position) for position in result.item_results.positions]
    raise ArgumentError(f"item {item!r} is not in the run; {_similar_ids(item, ids)}")


def _similar_ids(item: str, ids: Sequence[str]) -> str:
    """Suggest the ids most similar to an unknown id, or the command that lists all ids."""
    near = [one for one in ids if item and item.lower() in one.lower()][:3]
    near = near or get_close_matches(item, ids, n=3)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    shown = ", ".join(map(repr, ids[:3])) + (" and so on" if len(ids) > 3 else "")
    return f"the run has {len(ids)} items: {shown}; see: autorubric show RUN" if ids else "the run is empty"


def _votes_blocks(reports: Sequence[EnsembleCriterionReport], labels: Any) -> list[TableBlock]:
    """Return a table of labels and of votes with their reasons, and one of probabilities if there are any."""
    rows: list[tuple[Cell, ...]] = []
    shares: list[tuple[Cell, ...]] = []
    for report in reports:
        label = labels.get(report.name)
        if label is not None:
            rows.append((report.name, "label", "", _answer_words(label), ""))
        for vote in report.votes:
            has_answer = vote.answer is not None and vote.status != "abstained"
            answer = _answer_words(vote.answer) if has_answer else vote.status.replace("_", " ")
            key = (report.name, vote.judge_id, vote.sample)
            rows.append((*key, answer, vote.reason_shown or vote.error or ""))
            if vote.probabilities_shown:
                shares.append((*key, vote.probabilities_shown))
    columns = ("criterion", "by", "sample")
    votes = TableBlock(title="Votes", columns=(*columns, "answer", "reason"), rows=tuple(rows))
    if not shares:
        return [votes]
    return [votes, TableBlock(title="Probabilities", columns=(*columns, "probabilities"), rows=tuple(shares))]


def _answer_words(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _exchange_json(one: Any) -> dict[str, Any]:
    return {
        "criterion": one.criterion,
        "judge": one.judge_id,
        "sample": one.sample,
        "messages": [{"role": role, "content": content} for role, content in one.exchanged.messages],
        "replies": list(one.exchanged.replies),
        "shared_with": one.exchanged.shared_with,
    }


def _exchange_blocks(one: dict[str, Any]) -> list[Block]:
    head = f"{one['criterion']}, judge {one['judge']}, sample {one['sample']}"
    if one["shared_with"] is not None:
        return [TextBlock(title=head, text=f"sent in one request with {one['shared_with']}")]
    sent = "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in one["messages"])
    received = "\n\n".join(f"[reply]\n{reply}" for reply in one["replies"])
    return [TextBlock(title=head, text=f"{sent}\n\n{received}")]


Baseline = Annotated[
    Path | None, option("--baseline", "RUN2", "Folder of another run of the same items to compare with.")
]
ReportFile = Annotated[
    Path,
    option("--out -o", "FILE", "HTML file to write; an existing file is replaced.  [default: report.html]"),
]
Critique = Annotated[
    Path | None,
    option("--critique", "FILE", "Critique to include as a section: the output of `critique-text --json`."),
]
MaxChars = Annotated[
    int | None,
    option(
        "--max-chars",
        "N",
        "Maximum number of characters to keep per text; 0 omits the texts.  [default: 20000]",
        min=0,
    ),
]


@guarded
def report(
    run: RunFolder,
    baseline: Baseline = None,
    out: ReportFile = Path("report.html"),
    critique: Critique = None,
    max_chars: MaxChars = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Write a run's report as a single HTML file.

    The report contains the scores, criteria, judges and texts, and every vote with its reason. The file is
    self-contained: viewing it requires no server, network access or other files.

    With --json, prints an object with the keys run, baseline, report (path of the file) and bytes (its size).

    \b
    Examples:
      autorubric report experiments/essays-1
      autorubric report experiments/essays-2 \\
          --baseline experiments/essays-1 -o essays.html

    Exit codes: 0 success, 2 invalid command line, file or run folder.
    """
    result = open_stored_run(run)
    before = autorubric.EvalResult.from_experiment(baseline) if baseline is not None else None
    shown = _read_critique(critique) if critique is not None else None
    result.to_html(out, baseline=before, critique=shown, max_chars=max_chars)
    if as_json:
        other = None if baseline is None else str(baseline)
        print_json({"run": str(run), "baseline": other, "report": str(out), "bytes": out.stat().st_size})
    else:
        typer.echo(str(out))
    return Exit.DONE


def _read_critique(path: Path) -> CritiqueResponse:
    try:
        return CritiqueResponse.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ArgumentError(
            f"{path} is not a critique ({error}); pass the output of `autorubric critique-text --json`"
        ) from None


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
    viewed = cli.view_server.RunPage(run, dataset, columns.field_map(), rater)
    try:
        server = cli.view_server.ViewServer(viewed, port)
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


Format = Annotated[ExportFormat, option("--format", None, "Format of the exported file.")]
ExportFile = Annotated[Path | None, option("-o --out", "FILE", "File to write.  [default: standard output]")]
Table = Annotated[
    ExportTable,
    option(
        "--table",
        None,
        "csv, parquet, jsonl: a row per item (scores) or per vote, decision or label (votes).",
        show_default=True,
    ),
]
CaseFailUnder = Annotated[
    float | None, fail_under_option("With junit: report an item whose score is below X as a failure.")
]

CaseMaxLost = Annotated[
    float | None,
    max_lost_option(
        "With junit: maximum fraction of missing verdicts of an item, and of a run with unfinished items; "
        f"more is an error.  [default: {MAX_LOST}, for items only with --fail-under]"
    ),
]


@guarded
def export(
    run: RunFolder,
    format: Format,
    out: ExportFile = None,
    table: Table = "scores",
    fail_under: CaseFailUnder = None,
    max_lost: CaseMaxLost = None,
) -> Exit:
    """Export a run as a table, a Markdown page, or a JUnit report for CI servers.

    Only finished items are exported; Markdown pages and JUnit reports begin with the number of unfinished
    ones. In CSV files, texts that a spreadsheet would evaluate as formulas are prefixed with '. In a JUnit
    report, each item is a test case, and an item without a score is an error.

    \b
    Examples:
      autorubric export experiments/essays-1 --format csv -o essays.csv
      autorubric export experiments/essays-1 --format jsonl --table votes
      autorubric export experiments/essays-1 --format junit \\
          --fail-under 0.7 -o essays.xml

    Exit codes: 0 success, 2 invalid command line or run folder.
    """
    if fail_under is not None and format != "junit":
        raise ArgumentError(f"--fail-under requires --format junit; got --format {format}")
    if table == "votes" and format in ("markdown", "junit"):
        raise ArgumentError(f"--table votes requires --format csv, parquet or jsonl, not {format}")
    if out is None and format == "parquet":
        raise ArgumentError("Parquet is a binary format; name the output file with --out")
    result = open_stored_run(run)
    content = result.export(format, table=table, fail_under=fail_under, max_lost=max_lost)
    if out is None:
        if hasattr(sys.stdout, "buffer"):
            # As UTF-8, whatever the terminal's encoding is: XML declares it, and data are never escaped.
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
        else:
            sys.stdout.write(content.decode("utf-8"))
    else:
        write_bytes_atomic(out, content)
        notice(f"Wrote {out}.")
    return Exit.DONE
