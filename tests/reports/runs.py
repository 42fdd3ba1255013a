"""Runs to make reports of: one with everything in it, a plain one and its baseline, and a long one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autorubric import (
    ChecklistCriterion,
    ComparativeCriterion,
    Criterion,
    CriterionGrader,
    CriterionOption,
    DataItem,
    EvalResult,
    Gate,
    JudgeReply,
    NarrativeCriterion,
    NumericalRatingCriterion,
    Rubric,
    RubricDataset,
    When,
    evaluate_sync,
)
from autorubric.errors import ProviderTimeoutError, TokenUsage
from autorubric.judges import JudgeRequest
from autorubric.scoring import RubricGroup
from tests.attacks.hostile import TEXTS

TONES = [
    CriterionOption(label=label, value=value)
    for label, value in (("cold", 0.0), ("plain", 0.4), ("kind", 0.8), ("warm", 1.0))
]
TOPICS = [
    CriterionOption(label="parcel", value=1.0),
    CriterionOption(label="invoice", value=0.5),
    CriterionOption(label="not applicable", value=0.0, na=True),
]

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<style>*{display:none}</style> {{ 7 * 7 }} \u2028\u2029 \u202egnp.exe\u202c \x00 \x1b[31m &lt;b&gt; "
    "<!-- ]]>"
)


class Scripted:
    """Answers from the item's label, errs on a share of cells, fails on some and abstains on some."""

    def __init__(self, judge_id: str, right: float, *, cost: float | None = 0.002, reason: str = "") -> None:
        self.judge_id = judge_id
        self._right = right
        self._cost = cost
        self._reason = reason

    def describe(self) -> dict[str, str]:
        """What its votes depend on."""
        return {"judge": self.judge_id, "right": str(self._right)}

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """A reply drawn from the item, the criterion, the sample and the judge alone."""
        name = request.criterion.name or ""
        rng = random.Random(f"{self.judge_id} {request.item_id} {name} {request.sample}")
        if "down" in request.item_id or rng.random() < 0.02:
            raise ProviderTimeoutError(f"no answer in 30 s {HOSTILE if 'hostile' in request.item_id else ''}")
        reason = f"{self.judge_id} on {name}: {self._reason or rng.choice(_REASONS)}"
        if "hostile" in request.item_id:
            reason += HOSTILE
        abstains = rng.random() < 0.04
        answer = {"cannot_assess": True} if abstains else self._answer(request, rng)
        usage = TokenUsage(prompt_tokens=180, completion_tokens=24, total_tokens=204)
        return JudgeReply(
            answer=answer,
            reason=reason,
            confidence=round(rng.uniform(0.5, 1.0), 2),
            usage=usage,
            cost=self._cost,
            model=f"model-of-{self.judge_id}",
        )

    def _answer(self, request: JudgeRequest, rng: random.Random) -> Any:
        criterion, good = request.criterion, _is_good(request.submission.text)
        if criterion.level == "ranking":
            names = list(request.submission.candidates)
            return names[0] if rng.random() < self._right else names[1]
        if rng.random() < self._right:
            return answer_of(criterion.name or "", good)
        return answer_of(criterion.name or "", rng.random() < 0.5)


_REASONS = (
    "the second sentence says so in plain words.",
    "the reply names the delay but offers nothing for it.",
    "there is a promise, and a date with it.",
    "it reads as if a form letter had been sent.",
)


def _is_good(text: str | None) -> bool:
    return (text or "").startswith("Sorry")


def answer_of(criterion: str, good: bool) -> Any:
    """What a good reply, or a poor one, is given on a criterion."""
    answers: dict[str, tuple[Any, Any]] = {
        "tone": ("plain", "warm"),
        "topic": ("not applicable", "parcel"),
        "polish": (3, 8),
        "parts": ({"greeting": True, "name": False}, {"greeting": True, "name": True}),
        "blame": ("MET", "UNMET"),
        "advice": ("Say when the parcel will come.", "Nothing."),
    }
    return answers.get(criterion, ("UNMET", "MET"))[good]


def kinds_rubric() -> Rubric:
    """Every measurement level, groups, a gate, a condition and a penalty."""
    return Rubric(
        [
            RubricGroup(
                "Substance",
                [
                    Criterion(
                        name="apology", requirement="Apologises.", weight=6, gate=Gate(at_least=1.0, cap=0.5)
                    ),
                    Criterion(
                        name="refund",
                        requirement="Offers a refund.",
                        weight=10,
                        when=When(criterion="apology"),
                    ),
                ],
                weight=3,
            ),
            RubricGroup(
                "Form",
                [
                    Criterion(name="tone", requirement="How kind is it?", weight=5, options=TONES),
                    Criterion(
                        name="topic",
                        requirement="What is it on?",
                        weight=2,
                        scale_type="nominal",
                        options=TOPICS,
                    ),
                    NumericalRatingCriterion(
                        name="polish", requirement="How polished?", weight=3, min_value=0, max_value=10
                    ),
                    ChecklistCriterion(
                        name="parts",
                        requirement="What is there?",
                        weight=3,
                        items={"greeting": "A greeting.", "name": "A name."},
                    ),
                ],
            ),
            Criterion(name="blame", requirement="Blames the customer.", weight=-4),
            NarrativeCriterion(name="advice", requirement="What would make it better?", weight=0),
        ]
    )


LABELLED = ("apology", "refund", "tone", "topic", "polish", "parts", "blame")
GOOD = "Sorry that your parcel is late, dear Ms Ada. We refund the postage today."
POOR = "Your parcel is late. You should have ordered sooner."


def kinds_dataset(n_plain: int = 24) -> RubricDataset:
    """Items of every shape: plain, hostile, long, with thinking, with candidates, and one that fails."""
    rubric = kinds_rubric()
    items = [_plain_item(at) for at in range(n_plain)]
    items += [
        DataItem(
            id=f"hostile {HOSTILE}",
            submission=f"Sorry {HOSTILE} {' '.join(TEXTS.values())}",
            prompt=HOSTILE,
            ground_truth={"apology": "UNMET"},
            reasons={"apology": HOSTILE},
            metadata={HOSTILE[:20]: HOSTILE},
        ),
        DataItem(id="down-1", submission=POOR, ground_truth={"apology": "UNMET"}),
        DataItem(id="thinking", submission={"thinking": "They want a date.", "output": GOOD}),
        DataItem(id="long", submission=f"Sorry. {'word ' * 6000}END"),
        DataItem(
            id="pair",
            submission={"first": GOOD, "second": POOR},
            rubric=Rubric([ComparativeCriterion(name="better", requirement="Which is kinder?", weight=1)]),
            ground_truth={"better": "first"},
        ),
    ]
    return RubricDataset(name="late parcels", prompt="Where is my parcel?", rubric=rubric, items=items)


def _plain_item(at: int) -> DataItem:
    good = at % 3 != 0
    text = f"{GOOD if good else POOR} This is reply number {at}."
    truth = {name: answer_of(name, good) for name in LABELLED}
    truth["parts"] = None
    if at == 1:
        # Labels may be spelt as people write them.
        truth["apology"] = {"MET": "yes", "UNMET": "no"}[truth["apology"]]
    people = {"Ada": {"apology": truth["apology"]}, "Ben": {"apology": "MET"}}
    return DataItem(
        id=f"reply-{at:02d}",
        submission=text,
        reference_submission=GOOD,
        ground_truth=truth if at % 5 else None,
        ratings=people if at % 2 else {},
        metadata={"generator": "desk"},
    )


def graded(
    folder: Path, dataset: RubricDataset, judges: Sequence[Any], name: str = "parcels", **options: Any
) -> EvalResult:
    """A run under a name in a folder."""
    grader = CriterionGrader(judges=list(judges), **options)
    return evaluate_sync(dataset, grader, experiment_name=name, experiments_dir=folder, show_progress=False)


def panel(right: float = 0.85) -> list[Scripted]:
    """Three judges, the later the worse."""
    return [Scripted("ann", right), Scripted("bob", right - 0.15), Scripted("cyd", right - 0.3, cost=None)]


def long_dataset(n_items: int) -> RubricDataset:
    """Many items of five criteria; four of five are labelled."""
    rng = random.Random(7)
    rubric = Rubric(
        [
            Criterion(name="apology", requirement="Apologises.", weight=6),
            Criterion(name="refund", requirement="Offers a refund.", weight=10),
            Criterion(name="date", requirement="Gives a date.", weight=4),
            Criterion(name="tone", requirement="How kind is it?", weight=5, options=TONES),
            Criterion(name="blame", requirement="Blames the customer.", weight=-4),
        ]
    )
    words = ("parcel", "late", "refund", "postage", "today", "customer", "promise", "date", "depot", "box")
    items = []
    for at in range(n_items):
        good = rng.random() < 0.6
        tail = " ".join(rng.choices(words, k=rng.randint(40, 120)))
        truth = {name: answer_of(name, good) for name in rubric.names}
        items.append(
            DataItem(
                id=f"reply-{at:05d}",
                submission=f"{GOOD if good else POOR} {tail}",
                prompt=f"Where is parcel {at}?",
                ground_truth=truth if at % 5 else None,
            )
        )
    return RubricDataset(name="many parcels", rubric=rubric, items=items)
