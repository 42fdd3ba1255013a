"""Rates and scores corrected for a judge whose abstentions depend on the label."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from autorubric.criteria import Criterion
from autorubric.datasets import DataItem, RubricDataset
from autorubric.metrics import (
    Binary,
    Estimate,
    Interval,
    bradley_terry,
    corrected_rate,
    corrected_score,
    judge_report,
)
from autorubric.metrics.core.scales import Array, Scale
from autorubric.rubric import Rubric
from autorubric.scoring import Decision, EnsembleCriterionReport, EnsembleEvaluationReport
from benchmarks.false_words._rows import Kind, Row

TRUE_RATE = 0.6
N_LABELS, N_TESTS = 200, 800
SHARES = (0.05, 0.12, 0.2, 0.4)


def covers(found: Estimate, truth: float) -> bool | None:
    """Return whether an interval contains the truth; None without an interval."""
    return None if found.low is None or found.high is None else found.low <= truth <= found.high


def judge_of(truth: Array, abstained: float, rng: np.random.Generator) -> Array:
    """Return verdicts of a judge that is right on .85 and abstains 9 times as often on failures."""
    right = rng.random(len(truth)) < 0.85
    verdicts = np.where(right, truth, 1 - truth).astype(object)
    rarely = abstained / (TRUE_RATE + 9 * (1 - TRUE_RATE))
    verdicts[rng.random(len(truth)) < np.where(truth == 1, rarely, min(1.0, 9 * rarely))] = "CANNOT_ASSESS"
    return verdicts


def rate_world(rng: np.random.Generator, *, abstained: float, method: Any, figure: str = "") -> bool | None:
    """Return whether the corrected rate, or the rate of the labels, covers the true rate."""
    truth = (rng.random(N_LABELS + N_TESTS) < TRUE_RATE).astype(int)
    verdicts = judge_of(truth, abstained, rng)
    found = corrected_rate(verdicts[N_LABELS:], truth[:N_LABELS], verdicts[:N_LABELS], method=method)
    return covers(getattr(found, figure) if figure else found, TRUE_RATE)


def unanswered_world(rng: np.random.Generator, *, method: Any) -> bool | None:
    """As `rate_world`, where 20% of labels have no answer and the judge abstains on 70% of these items."""
    truth = (rng.random(N_LABELS + N_TESTS) < TRUE_RATE).astype(object)
    verdicts = judge_of(truth, 0.12, rng)
    outside = rng.random(len(truth)) < 0.2
    verdicts[outside & (rng.random(len(truth)) < 0.7)] = "NA"
    truth[outside] = "NA"
    found = corrected_rate(verdicts[N_LABELS:], truth[:N_LABELS], verdicts[:N_LABELS], method=method)
    return covers(found, TRUE_RATE)


POINT = Criterion(name="point", requirement="It makes the point.", weight=1.0)


def report_of(verdict: str) -> EnsembleEvaluationReport:
    """Return a report with this verdict, which is the same object in all items of a run."""
    answer = POINT.parse_truth(verdict)
    assert answer is not None
    made = Decision(status="abstained" if answer.abstains else "answered", answer=answer)
    one = EnsembleCriterionReport(criterion=POINT, decision=made, score_value=made.value)
    return EnsembleEvaluationReport(score=made.value, report=[one], node_scores={"": made.value})


REPORTS = {verdict: report_of(verdict) for verdict in ("MET", "UNMET", "CANNOT_ASSESS")}
WORDS = {0: "UNMET", 1: "MET"}


def score_world(
    rng: np.random.Generator, *, abstained: float, method: Any, on: Any = "criteria"
) -> bool | None:
    """Return whether the corrected mean score of a run covers the true mean score."""
    n, n_labels = 600, 200
    truth = (rng.random(n) < TRUE_RATE).astype(int)
    verdicts = judge_of(truth, abstained, rng)
    items = [
        DataItem(submission=str(at), ground_truth=[WORDS[one]] if at < n_labels else None)
        for at, one in enumerate(truth.tolist())
    ]
    results = [
        SimpleNamespace(item_idx=at, item=item, report=REPORTS[WORDS.get(verdict, verdict)])
        for at, (item, verdict) in enumerate(zip(items, verdicts.tolist(), strict=True))
    ]
    dataset = RubricDataset(rubric=Rubric([POINT]), items=items)
    run = SimpleNamespace(item_results=results)
    return covers(corrected_score(run, dataset, method=method, on=on, n_resamples=400).score, TRUE_RATE)


Label = dict[str, str]


def long_rows(rater: str, kind: str, signal: Array, n_abstained: int = 0) -> list[Label]:
    """Return labels MET where the signal is above 0; the rater abstains where it is least sure."""
    least = set(np.argsort(np.abs(signal))[:n_abstained].tolist())
    return [
        {
            "item_id": str(at), "criterion": "c", "rater": rater, "rater_kind": kind,
            "label": "CANNOT_ASSESS" if at in least else "MET" if one > 0 else "UNMET",
        }
        for at, one in enumerate(signal.tolist())
    ]  # fmt: skip


def person_world(rng: np.random.Generator, *, abstained: float) -> bool:
    """Return whether a judge exactly like three people is said to outperform them."""
    n = 60
    truth = rng.choice([-1.0, 1.0], n)
    rows = [one for who in "abc" for one in long_rows(who, "human", truth + rng.normal(0, 1, n))]
    rows += long_rows("judge", "judge", truth + rng.normal(0, 1, n), round(abstained * n))
    return "outperforms an annotator" in judge_report(rows, n_resamples=200).summary()


def best_world(rng: np.random.Generator) -> bool:
    """Return whether the worse of two judges, which abstains on its 30% least sure cells, is named best."""
    n = 150
    truth = rng.choice([-1.0, 1.0], n)
    rows = long_rows("truth", "truth", truth)
    rows += long_rows("good", "judge", truth + rng.normal(0, 0.8, n))
    rows += long_rows("shy", "judge", truth + rng.normal(0, 1, n), round(0.3 * n))
    return "single judges is shy" in judge_report(rows, n_resamples=200).summary()


def rows_of(rater: str, kind: str, answers: Array, hard: Array, missing: str | None) -> list[dict[str, Any]]:
    """Return labels, or numbers; on the mask `hard` with the label `missing`, or no row."""
    return [
        {
            "item_id": str(at), "criterion": "c", "rater": rater, "rater_kind": kind,
            "label": missing if hard[at] else one if answers.dtype == float else WORDS[int(one)],
        }
        for at, one in enumerate(answers.tolist()) if not hard[at] or missing is not None
    ]  # fmt: skip


def hard_world(rng: np.random.Generator, *, missing: str | None, people: bool, scale: Scale) -> bool:
    """Return whether a judge without answers on hard cells is called best, or better than people.

    All raters have equal error rates on hard cells, and on the others.
    """
    n = 80 if isinstance(scale, Interval) else 150
    hard, none = rng.random(n) < 0.3, np.zeros(n, dtype=bool)
    truth: Any = rng.uniform(0, 10, n) if isinstance(scale, Interval) else rng.random(n) < 0.5

    def answers() -> Any:
        if isinstance(scale, Interval):
            return np.clip(truth + rng.normal(0, 1, n) * np.where(hard, 4, 0.8), 0, 10)
        return truth ^ (rng.random(n) < np.where(hard, 0.45, 0.05))

    others = [("a", "human"), ("b", "human"), ("c", "human")] if people else [("a", "judge")]
    rows = [one for who, kind in others for one in rows_of(who, kind, answers(), none, None)]
    rows += rows_of("truth", "truth", truth, none, None) if not people else []
    rows += rows_of("shy", "judge", answers(), hard, missing)
    said = " ".join(judge_report(rows, scales=scale, n_resamples=200).summary().split())
    return ("outperforms an annotator" if people else "single judges is shy") in said


def tie_world(rng: np.random.Generator) -> bool | None:
    """Return whether the difference of two strengths is covered, where 35 to 40% of games are ties."""
    chances = np.exp([0.5, -0.5, np.log(1.4)])
    winners = rng.choice(3, size=200, p=chances / chances.sum()).tolist()
    found = bradley_terry([("a", "b", ("a", "b", None)[winner]) for winner in winners])
    return covers(found.difference("a", "b"), 1.0)


def rare_world(rng: np.random.Generator, *, rate: float) -> bool | None:
    """Return whether Lang and Reiczigel's interval covers a rate near 0 or 1, from 60 + 60 labels."""
    calib, tested = np.repeat([0, 1], 60), (rng.random(300) < rate).astype(int)
    said = [np.where(rng.random(len(one)) < 0.85, one, 1 - one) for one in (tested, calib)]
    return covers(corrected_rate(said[0], calib, said[1]), rate)


def row(name: str, claim: str, world: Callable[..., bool | None], **fixed: Any) -> Row:
    """Return a row, on a false word if the claim says what "is said"."""
    kind: Kind = "false word" if "is said" in claim else "coverage"
    return Row(name=f"corrections/{name}", claim=claim, kind=kind, world=partial(world, **fixed))


METHODS = ("ppi++", "rogan-gladen")
RATE = "the interval of the corrected rate covers the true rate"
SCORE = "the interval of the corrected score covers the true mean score"
PERSON = "a judge like a person is said to outperform an annotator"
BEST = "one of two equal judges is said to be the best"
ALONE = "the interval of the labels alone covers the true rate"
DESIGNS = [(method, share, {"method": method, "abstained": share}) for method in METHODS for share in SHARES]
ROWS: tuple[Row, ...] = (
    *(row(f"corrected_rate {m}, {s:.0%} abstained", RATE, rate_world, **fixed) for m, s, fixed in DESIGNS),
    row("labelled_only, 20% abstained", ALONE, rate_world, **DESIGNS[2][2], figure="labelled_only"),
    *(
        row(f"corrected_rate {m}, labels without an answer", RATE, unanswered_world, method=m)
        for m in METHODS
    ),
    *(row(f"corrected_score {m}, {s:.0%} abstained", SCORE, score_world, **fixed) for m, s, fixed in DESIGNS),
    row("corrected_score on items, 20% abstained", SCORE, score_world, **DESIGNS[2][2], on="items"),
    row("people, 0% abstained", PERSON, person_world, abstained=0.0),
    row("people, 30% abstained", PERSON, person_world, abstained=0.3),
    row("best judge, 30% abstained", "a worse judge that abstains is said to be the best", best_world),
    *(
        row(f"{what}, hard cells {how}", claim, hard_world, missing=missing, people=people, scale=scale)
        for what, claim, people in (("people", PERSON, True), ("best judge", BEST, False))
        for how, missing, scale in (
            ("NA on numbers with a range", "NA", Interval(0, 10)),
            ("NA on numbers", "NA", Interval()),
            ("INVALID", "INVALID", Binary()),
            ("without a row", None, Binary()),
        )
    ),
    row("bradley_terry with ties", "the interval covers the true difference of strengths", tie_world),
    row("corrected_rate near 0", RATE, rare_world, rate=0.03),
    row("corrected_rate near 1", RATE, rare_world, rate=0.97),
)
