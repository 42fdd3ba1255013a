"""Judges of commands: the options that describe a panel, and its grader."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import autorubric
from autorubric.cli.options import demand, names_of, option, range_of, read_numbers, values_of
from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.llm.config import LLMConfig
from autorubric.scoring.aggregation import AGGREGATORS
from autorubric.scoring.policies import AggregationPolicy, OnFailure, VoteMode

T = TypeVar("T")

JUDGE = (
    "Judge to grade with; repeat for a panel. Use a model name, decision:MODEL (a decision model; add "
    "#openai for OpenAI Decisions), lexical, supervised:TRAIN (trained on a labelled dataset), or "
    "recorded:CSV#RATER (votes from a table; omit #RATER if the table has one rater). "
    "Write NAME=J to name the judge in votes and reports."
)
JudgeNames = Annotated[list[str], option("--judge", "J", JUDGE)]


@dataclass(frozen=True, kw_only=True)
class Models:
    """How to reach the judges that are models."""

    api_base: Annotated[
        str | None,
        option(
            "--api-base",
            "URL",
            "Base URL of an OpenAI-compatible server, used for all judges that are models.",
        ),
    ] = None
    api_key_env: Annotated[
        str | None,
        option(
            "--api-key-env",
            "NAME",
            "Environment variable that holds the API key of the models.  [default: the provider's "
            "variable; with --api-base, AUTORUBRIC_API_KEY]",
        ),
    ] = None
    cache_dir: Annotated[
        Path | None,
        option(
            "--cache-dir",
            "DIR",
            "Cache model responses in this folder, and reuse them for identical requests.",
        ),
    ] = None

    def settings(self) -> dict[str, Any]:
        """Return the settings of models, other than the cache folder."""
        return {"api_base": self.api_base, "api_key_env": self.api_key_env}

    def judges(self, names: Sequence[str]) -> list[autorubric.judges.JudgeLike]:
        """Return the judges that the `--judge` values describe, in order."""
        return autorubric.judges.panel.named_judges(names, cache_dir=self.cache_dir, **self.settings())


_AGGREGATIONS: Final[Mapping[Level, str]] = {
    "binary": "aggregation",
    "ordinal": "ordinal_aggregation",
    "nominal": "nominal_aggregation",
    "ranking": "ranking_aggregation",
}
"""Fields of `AggregationPolicy` by level."""
METHODS: Final = {level: values_of(AggregationPolicy, field) for level, field in _AGGREGATIONS.items()}
_POLICIES: Final = AggregationPolicy()
_DEFAULT_METHODS: Final = ", ".join(getattr(_POLICIES, field) for field in _AGGREGATIONS.values())


VotesOption: TypeAlias = Annotated[
    VoteMode | None,
    option(
        "--votes",
        "HOW",
        "Whether to combine the judges' answers (hard) or their probabilities (soft), which score the "
        f"expected value.  [default: {_POLICIES.votes}]",
    ),
]
ThresholdOption: TypeAlias = Annotated[
    list[str] | None,
    option(
        "--threshold",
        "CRITERION=P",
        "For soft votes: probability from which on a binary criterion is met. Repeatable.  [default: the "
        "most probable answer]",
    ),
]
CalibrationOption: TypeAlias = Annotated[
    list[Path] | None,
    option(
        "--calibration",
        "FILE",
        "For soft votes: file of a calibration, written by ProbabilityCalibration.save. Repeatable.",
    ),
]


RequestTimeout: TypeAlias = Annotated[
    float | None,
    option(
        "--timeout",
        "S",
        "Time limit of a request, in seconds.  [default: 60; for a local server, more if its first answer "
        "takes over 6 s]",
        callback=demand(lambda seconds: 0 < seconds < math.inf, "a positive number of seconds"),
    ),
]


def thresholds_of(given: Sequence[str] | None) -> dict[str, float] | None:
    """Return the probabilities in `--threshold` values by criterion; None if there are none."""
    return read_numbers("--threshold", "CRITERION=P", "polite=0.7", given)


@dataclass(frozen=True, kw_only=True)
class PanelOptions(Models):
    """How the judges of a panel vote, and how their votes are combined."""

    temperature: Annotated[
        float | None,
        option(
            "--temperature",
            "T",
            "Sampling temperature of the models, from 0 to 2.  [default: set by the provider]",
            **range_of(LLMConfig, "temperature"),
        ),
    ] = None
    logprobs: Annotated[
        int | None,
        option(
            "--logprobs",
            "K",
            "Store the probabilities of all answers, read from the K most probable tokens (1 to 20).",
            **range_of(LLMConfig, "logprobs"),
        ),
    ] = None
    timeout: RequestTimeout = None
    max_parallel: Annotated[
        int | None,
        option(
            "--max-parallel",
            "N",
            "Maximum number of concurrent requests to each server.  [default: 512; for a local server, 2 at "
            "first and more while it answers as fast]",
            **range_of(LLMConfig, "max_parallel_requests"),
        ),
    ] = None
    samples: Annotated[
        int | None,
        option("--samples", "N", "Number of votes that each model casts per criterion.  [default: 1]", min=1),
    ] = None
    aggregation: Annotated[
        list[str] | None,
        option(
            "--aggregation",
            "[LEVEL=]METHOD",
            f"How to combine votes. For binary criteria: {names_of(METHODS['binary'])}. For other levels: "
            f"ordinal=METHOD ({', '.join(METHODS['ordinal'])}), nominal=METHOD "
            f"({', '.join(METHODS['nominal'])}), ranking=METHOD ({', '.join(METHODS['ranking'])}). Repeat "
            f"for several levels.  [default: {_DEFAULT_METHODS}]",
        ),
    ] = None
    on_failure: Annotated[
        OnFailure | None,
        option(
            "--on-failure",
            "HOW",
            "How to count an unreadable reply: conservative (as UNMET, or MET for a penalty), exclude "
            "(ignore it), or raise (leave the item without a score).  "
            f"[default: {_POLICIES.on_failure}]",
        ),
    ] = None
    votes: VotesOption = None
    threshold: ThresholdOption = None
    calibration: CalibrationOption = None

    def settings(self) -> dict[str, Any]:
        """Return the settings of models, other than the cache folder."""
        sampling = {"temperature": self.temperature, "logprobs": self.logprobs, "timeout": self.timeout}
        sampling["max_parallel_requests"] = self.max_parallel
        return {**super().settings(), **sampling, "samples": self.samples}

    def policies(self) -> dict[str, Any]:
        """Return the policies that are set, as arguments of a grader or fields of a run file."""
        policies = {**aggregation_policies(self.aggregation), "on_failure": self.on_failure}
        policies |= {"votes": self.votes, "thresholds": thresholds_of(self.threshold)}
        policies["calibrations"] = self.calibration and [one.absolute() for one in self.calibration]
        return {name: given for name, given in policies.items() if given is not None}

    def grader(self, names: Sequence[str]) -> autorubric.CriterionGrader:
        """Return the grader with these judges."""
        return autorubric.CriterionGrader(judges=self.judges(names), **self.policies())

    def checked_grader(self, names: Sequence[str], *, preflight: bool) -> autorubric.CriterionGrader:
        """Return the grader with these judges; with `preflight`, models get a test request first."""
        judges = self.judges(names)
        return autorubric.runs.preflight.CheckedGrader(preflight=preflight, judges=judges, **self.policies())


def aggregation_policies(values: Sequence[str] | None) -> dict[str, Any]:
    """Return the methods in `--aggregation` values by field of `AggregationPolicy`."""
    known: dict[str, Collection[str]] = {level: AGGREGATORS[level] for level in _AGGREGATIONS}
    found: dict[str, Any] = {}
    for text in values or ():
        level, _, method = text.rpartition("=")
        methods = known.get(level or "binary")
        if methods is None:
            raise ArgumentError(
                f"--aggregation {text!r}: unknown level {level!r}; available: {', '.join(known)}"
            )
        if method not in methods:
            others = [f"{one}={method}" for one in known if method in known[one]]
            hint = f"; did you mean {' or '.join(others)}?" if others and not level else ""
            raise ArgumentError(
                f"--aggregation {text!r}: unknown method {method!r} for {level or 'binary'} criteria; "
                f"available: {', '.join(methods)}{hint}"
            )
        found["aggregation" if level in ("", "binary") else f"{level}_aggregation"] = method
    return found


def run_and_close(grader: autorubric.grading.Grader, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that uses a grader, and close the grader."""

    async def run() -> T:
        try:
            return await work
        finally:
            await grader.aclose()

    return asyncio.run(run())
