"""Grade a long dataset offline, write its report, and measure seconds until Chromium has drawn each view."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autorubric import Criterion, CriterionGrader, DataItem, EvalResult, Rubric, RubricDataset, evaluate_sync
from autorubric.judges import FunctionJudge, JudgeRequest
from benchmarks._output import markdown, print_results

VIEWS = {
    "overview": "#/",
    "items": "#/items",
    "heat map": "#/heat",
    "last item": "#/item/{last}",
    "search": "#/items?q=refund",
}
MOST_SECONDS = 3.0
"""What 10,000 items may take."""

_WORDS = ("parcel", "late", "refund", "postage", "today", "customer", "promise", "date", "depot", "driver")
_DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its table; return 1 if a view takes too long."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--judges", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="file in which to keep the report")
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        run = _grade(given.items, given.judges, Path(folder))
        page = given.keep or Path(folder) / "report.html"
        began = time.process_time()
        run.to_html(page)
        made = {"cpu_seconds": time.process_time() - began, "megabytes": page.stat().st_size / 1e6}
        opened = _time_views(page.resolve(), given.items, given.repetitions)
    rows = [("view", "seconds until drawn"), ("---", "--:")]
    rows += [(name, f"{seconds:.2f}") for name, seconds in opened.items()]
    rows.append((f"writing {made['megabytes']:.1f} MB, CPU", f"{made['cpu_seconds']:.1f}"))
    figures = {"items": given.items, "load": os.getloadavg()[0], **made, "opened": opened}
    print_results(markdown(rows), figures, given.json)
    return status(opened)


def status(opened: Mapping[str, float]) -> int:
    """Return 1, and print the views, if a view took too long; otherwise 0."""
    slow = [name for name, seconds in opened.items() if seconds > MOST_SECONDS]
    if slow:
        print(f"over {MOST_SECONDS:g} s: {', '.join(slow)}", file=sys.stderr)
    return int(bool(slow))


def _grade(n_items: int, n_judges: int, folder: Path) -> EvalResult:
    """Grade a run of five criteria; each vote has its own reason of eighteen words."""
    rng = random.Random(1)
    names = ("apology", "refund", "date", "thanks", "blame")
    rubric = Rubric([Criterion(name=name, requirement=f"The reply has {name}.") for name in names])
    items = [
        DataItem(
            id=f"reply-{at:05d}",
            submission=" ".join(rng.choices(_WORDS, k=80)),
            prompt=f"Where is parcel {at}?",
            ground_truth={name: rng.choice(("MET", "UNMET")) for name in names} if at % 5 else None,
        )
        for at in range(n_items)
    ]

    def says(request: JudgeRequest) -> dict[str, Any]:
        return {"verdict": rng.choice(("MET", "UNMET")), "reason": " ".join(rng.choices(_WORDS, k=18))}

    judges = [FunctionJudge(function=says, judge_id=f"judge-{at}") for at in range(n_judges)]
    return evaluate_sync(
        RubricDataset(name="many parcels", rubric=rubric, items=items),
        CriterionGrader(judges=judges),
        experiments_dir=folder,
        show_progress=False,
    )


def _time_views(page: Path, n_items: int, repetitions: int) -> dict[str, float]:
    """Return median seconds from opening each view in a new tab until it is drawn."""
    from playwright.sync_api import sync_playwright

    found = {}
    with sync_playwright() as started:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for name, address in VIEWS.items():
            seconds = []
            for _ in range(repetitions):
                tab = browser.new_page()
                began = time.perf_counter()
                tab.goto(page.as_uri() + address.format(last=n_items - 1))
                tab.wait_for_selector("main > *")
                tab.evaluate(_DRAWN)
                seconds.append(time.perf_counter() - began)
                tab.close()
            found[name] = statistics.median(seconds)
        browser.close()
    return found


if __name__ == "__main__":
    raise SystemExit(main())
