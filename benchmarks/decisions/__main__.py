"""Requests and cost per verdict of decision models and text models: `python -m benchmarks.decisions`.

Both kinds of judge grade the demo data against a server on the loopback interface. Tokens are estimated at
four characters of the bodies that arrived, and 80 reply tokens per verdict of a text model. The price per
token is the same for both, so that the difference comes from what is sent.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.servers.fixtures import OpenAIServer, serving

from autorubric import Criterion, CriterionGrader, DataItem, LLMConfig, Rubric, RubricDataset, evaluate_sync
from autorubric.demo import demo_dataset
from autorubric.judges import DecisionModelJudge
from autorubric.runs.estimation import REPLY_TOKENS_A_CRITERION
from benchmarks._output import markdown, print_results

SENT, RECEIVED = 1.0, 4.0  # US dollars per million tokens
LIMIT = 128  # questions that the server takes in the table of rubric sizes

Panel = Callable[[str], CriterionGrader]


def _text_model(how: str) -> Panel:
    def panel(api_base: str) -> CriterionGrader:
        config = LLMConfig(model="openai/judge", api_base=api_base, transport="openai_compatible")
        return CriterionGrader(judges=[config], llm_calls=how)  # type: ignore[arg-type]

    return panel


def _decision_model(contract: str) -> Panel:
    def panel(api_base: str) -> CriterionGrader:
        return CriterionGrader(judges=[DecisionModelJudge("judge", contract, api_base=api_base)])  # type: ignore[arg-type]

    return panel


PANELS: dict[str, Panel] = {
    "text model, one request per criterion": _text_model("per_criterion"),
    "text model, one request per item": _text_model("per_item"),
    "decision model, System One": _decision_model("systemone"),
    "decision model, OpenAI Decisions": _decision_model("openai"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The requests and tokens of one judge on one dataset."""

    judge: str
    items: int
    criteria: int
    requests: int
    requests_per_item: float
    sent_per_verdict: float
    received_per_verdict: float
    dollars_per_1000_verdicts: float


def measure(name: str, data: RubricDataset, server: OpenAIServer, limit: int | None = None) -> Measured:
    """Return what the server saw of one judge that grades the dataset."""
    server.reset()
    if limit is not None:
        server.script({"do": "answer", "max_questions": limit}, repeat="last")
    with TemporaryDirectory() as folder:
        grader = PANELS[name](server.api_base)
        result = evaluate_sync(data, grader, experiments_dir=folder, show_progress=False)
        votes = [v for one in result.item_results if one.report for c in one.report.report for v in c.votes]
    if failed := [vote.error for vote in votes if vote.status == "failed"]:
        raise RuntimeError(f"{name}: {len(failed)} verdicts failed, the first with {failed[0]}")
    bodies = [request["body"] for request in server.log()]
    sent = sum(len(json.dumps(body, ensure_ascii=False)) for body in bodies) / 4
    received = 0 if "questions" in bodies[0] else REPLY_TOKENS_A_CRITERION * len(votes)
    return Measured(
        judge=name,
        items=len(data),
        criteria=len(data.get_item_rubric(0)),
        requests=len(bodies),
        requests_per_item=len(bodies) / len(data),
        sent_per_verdict=sent / len(votes),
        received_per_verdict=received / len(votes),
        dollars_per_1000_verdicts=(SENT * sent + RECEIVED * received) / len(votes) / 1000,
    )


def _of_size(criteria: int) -> RubricDataset:
    rubric = Rubric([Criterion(name=f"c{n}", requirement=f"It says {n}.") for n in range(criteria)])
    return RubricDataset(name="size", rubric=rubric, items=[DataItem(submission="A text.", id="i")])


def table_of(found: Sequence[Measured]) -> str:
    """Return the results as a Markdown table."""
    heads = (
        "judge",
        "criteria",
        "requests per item",
        "tokens sent per verdict",
        "received",
        "$ per 1,000 verdicts",
    )
    lines = [heads, ("---", *("--:" for _ in heads[1:]))]
    for one in found:
        figures = (
            f"{one.requests_per_item:g}",
            f"{one.sent_per_verdict:.0f}",
            f"{one.received_per_verdict:.0f}",
        )
        lines.append((one.judge, str(one.criteria), *figures, f"{one.dollars_per_1000_verdicts:.3f}"))
    return markdown(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and JSON; return 1 if a decision model needs more requests than its limit requires."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, help="number of items of the demo data; all by default")
    parser.add_argument("--sizes", type=int, nargs="*", default=[5, 64, 65, 128, 200])
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    chosen = parser.parse_args(arguments)
    data = demo_dataset()
    if chosen.items is not None:
        data = RubricDataset(name="demo", rubric=data.rubric, items=list(data.items)[: chosen.items])
    with serving() as server:
        demo = [measure(name, data, server) for name in PANELS]
        learned = []
        for size in chosen.sizes:
            learned.append(measure("decision model, System One", _of_size(size), server, LIMIT))
    found = {"demo": [asdict(one) for one in demo], "sizes": [asdict(one) for one in learned]}
    print_results(f"{table_of(demo)}\n\n{table_of(learned)}", found, chosen.json)
    is_one = all(one.requests_per_item == 1 for one in demo if one.judge.startswith("decision"))
    # Two questions per binary criterion; above the limit, the first request is the one that is refused.
    needed = [-(-2 * one.criteria // LIMIT) + (2 * one.criteria > LIMIT) for one in learned]
    return 0 if is_one and [one.requests for one in learned] == needed else 1


if __name__ == "__main__":
    sys.exit(main())
