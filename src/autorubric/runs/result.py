"""The result of a run, read from its folder: one result per item, with durations, cost and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack, overload

from autorubric.criteria.values import VerdictCounts
from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.item import TruthRule
from autorubric.errors import ArgumentError, TokenUsage
from autorubric.runs.config import StopReason
from autorubric.runs.differences import mapping_in
from autorubric.runs.item_results import StoredResults, View
from autorubric.runs.items import EvalTimingStats, ItemResult
from autorubric.runs.lines import StoredExchange, stored_exchanges
from autorubric.runs.manifest import read_manifest
from autorubric.runs.reopen import StoredRun, reopen
from autorubric.scoring.reports import run_headline
from autorubric.support.frames import Library, in_library
from autorubric.support.objects import Json

# Methods import metrics, reports, exports and blocks when they are called: most programs only read the scores
# of a run, and each of these modules takes as long to load (20 to 500 ms) as opening the run.
if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from autorubric.metrics.core.read_votes import CannotAssessMode, NaMode
    from autorubric.metrics.summaries.compute import MetricsResult
    from autorubric.reports.critique import CritiqueView
    from autorubric.rubric.rubric import Rubric
    from autorubric.runs.export import ExportFormat, ExportTable
    from autorubric.runs.rescore import Policies
    from autorubric.scoring.reports import EnsembleEvaluationReport
    from autorubric.support.blocks import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalResult:
    """The result of a run.

    Attributes:
        dataset: The graded dataset.
        item_results: One result per item, in dataset order; each result is read from the run folder on
            access.
        timing_stats: Durations of the run and its items.
        started_at: Start time of the run, with time zone.
        completed_at: End time of the run, with time zone.
        experiment_name: Name of the run folder.
        experiment_dir: Path of the run folder.
        notices: Messages for the user, for example about skipped lines or recomputed scores.
        stopped: Reason why the run stopped early: `max_calls` or `max_cost` if a limit was reached,
            `same_error` if a judge kept failing with the same error; None if the run did not stop early.
    """

    dataset: RubricDataset = field(repr=False)
    item_results: StoredResults = field(repr=False)
    timing_stats: EvalTimingStats
    started_at: datetime
    completed_at: datetime
    experiment_name: str
    experiment_dir: Path
    notices: tuple[str, ...] = ()
    stopped: StopReason | None = None

    @property
    def total_items(self) -> int:
        """Number of finished items, which alone are results."""
        return len(self.item_results)

    @property
    def unfinished_items(self) -> int:
        """Number of items that are not finished, because the run was stopped or is in progress."""
        return len(self.dataset) - self.total_items

    @property
    def successful_items(self) -> int:
        """Number of items with a score."""
        return self.total_items - self.failed_items

    @property
    def failed_items(self) -> int:
        """Number of items without a score."""
        return self.item_results.tally.failed

    @property
    def partly_scored_items(self) -> int:
        """Number of items that have a score although one of their verdicts was lost."""
        return self.item_results.partly_scored

    @property
    def verdicts(self) -> VerdictCounts:
        """Counts of verdicts that were requested, answered, abstained, lost, assumed and not judged."""
        return self.item_results.verdicts

    @property
    def n_verdicts_lost(self) -> int:
        """Number of verdicts excluded from all scores because there was no usable reply."""
        return self.verdicts.lost

    @property
    def n_verdicts_assumed(self) -> int:
        """Number of verdicts counted as the conservative answer because the reply was unreadable."""
        return self.verdicts.assumed

    @property
    def errors(self) -> list[tuple[int, str]]:
        """Position and error of each item that has an error, including partly scored items."""
        told = ((line.position, line.error or line.partial) for line in self.item_results.lines())
        return sorted((position, error) for position, error in told if error)

    @property
    def total_token_usage(self) -> TokenUsage | None:
        """Total number of tokens used; None if no tokens were counted."""
        return self.item_results.tally.tokens

    @property
    def total_completion_cost(self) -> float | None:
        """Total cost in US dollars of the votes with a known cost; None if no cost is known."""
        return self.item_results.tally.cost

    @property
    def calls_saved(self) -> int:
        """Number of votes that were not requested because they could no longer change a decision.

        With `llm_calls="per_criterion"`, this is the number of calls saved.
        """
        return self.item_results.tally.calls_saved

    @property
    def is_shard(self) -> bool:
        """Whether the run graded only its part of a dataset; raises as `fingerprint` does."""
        return read_manifest(self.experiment_dir).get("shard") is not None

    @property
    def fingerprint(self) -> Mapping[str, Json]:
        """Settings from the run's manifest that affect decisions, excluding the items and the rubric.

        These are the judges by id, a digest of the prompts, sampling, few-shot examples, checks, aggregation
        and judge weights.

        Raises:
            RunFormatError: If the manifest of the run folder is damaged.
            FileError: If the manifest cannot be read.
        """
        manifest = read_manifest(self.experiment_dir)
        deciding = mapping_in(manifest, "deciding")
        kept = ("aggregation", "cannot_assess", "escalation", "judge_weights")
        return {**mapping_in(manifest, "asking"), **{name: deciding.get(name) for name in kept}}

    def get_scores(self) -> list[float | None]:
        """Return the score of each item, in dataset order; None for items that have no score."""
        return self.item_results.scores()

    def get_reports(self) -> Sequence[EnsembleEvaluationReport | None]:
        """Return the report of each item, computed on access; None if grading raised an exception."""
        return View(self.total_items, lambda place: self.item_results[place].report)

    def filter_successful(self) -> Sequence[ItemResult]:
        """Return the results of items with a score, read on access."""
        return self.item_results.where(lambda line: line.error is None)

    def filter_failed(self) -> Sequence[ItemResult]:
        """Return the results of items without a score, read on access."""
        return self.item_results.where(lambda line: line.error is not None)

    def compute_metrics(  # noqa: PLR0913 - the options of the function of that name
        self,
        dataset: RubricDataset | None = None,
        *,
        bootstrap: bool = False,
        n_bootstrap: int = 1000,
        per_judge: bool = False,
        cannot_assess: CannotAssessMode = "exclude",
        na_mode: NaMode = "exclude",
        truth: TruthRule | None = None,
        confidence_level: float = 0.95,
        seed: int | None = None,
    ) -> MetricsResult:
        """Compute the judges' metrics against the dataset's ground truth; see `autorubric.compute_metrics`.

        Args:
            dataset: A dataset with ground truth, whose items are matched by id; None for the graded dataset.
            bootstrap: Whether to compute bootstrap intervals over items for the macro metrics.
            n_bootstrap: Number of resamples.
            per_judge: Whether to include the metrics of each judge.
            cannot_assess: Whether CANNOT_ASSESS is excluded (`exclude`), counts as UNMET or the worst option
                (`as_unmet`), or is a separate category (`as_category`).
            na_mode: Whether NA is excluded (`exclude`), counts as the worst option (`as_worst`), or is a
                separate category (`as_category`), in which case metrics for ordered answers are None.
            truth: Rule that combines several annotators' labels into one label; see `judge_report`.
            confidence_level: Confidence level of all intervals.
            seed: Random seed for resampling; None means 0.

        Raises:
            ArgumentError: If a graded item is missing from the dataset or has a different text there, or an
                argument has an unknown value.
        """
        from autorubric.metrics.summaries.compute import compute_metrics

        return compute_metrics(
            self,
            dataset if dataset is not None else self.dataset,
            bootstrap=bootstrap,
            n_bootstrap=n_bootstrap,
            per_judge=per_judge,
            cannot_assess=cannot_assess,
            na_mode=na_mode,
            truth=truth,
            confidence_level=confidence_level,
            seed=seed,
        )

    @overload
    def votes_table(self, dataset: RubricDataset | None = None) -> pd.DataFrame: ...
    @overload
    def votes_table(
        self, dataset: RubricDataset | None = None, *, library: Literal["polars"]
    ) -> pl.DataFrame: ...
    def votes_table(
        self, dataset: RubricDataset | None = None, *, library: Library = "pandas"
    ) -> pd.DataFrame | pl.DataFrame:
        """Return a DataFrame with one row per vote, judge decision, panel decision and ground-truth label.

        With `library="polars"`, return a polars DataFrame, in which columns of mixed types are text.
        """
        from autorubric.metrics.core.read_votes import votes_table

        if isinstance(dataset, str):
            raise ArgumentError(f"{dataset!r} is not a dataset; use votes_table(library={dataset!r})")
        return in_library(votes_table(self, dataset if dataset is not None else self.dataset), library)

    @overload
    def scores_table(self, library: Literal["pandas"] = "pandas") -> pd.DataFrame: ...
    @overload
    def scores_table(self, library: Literal["polars"]) -> pl.DataFrame: ...
    def scores_table(self, library: Library = "pandas") -> pd.DataFrame | pl.DataFrame:
        """Return a DataFrame with one row per item, in dataset order.

        Columns: `item` (the position), `item_id`, `score`, `raw_score`, `judge.<id>` (the score based only on
        that judge's votes), `group.<name>` (the group's score), `answer.<criterion>` (the decision in words),
        `value.<criterion>` (the decision's value in the score, in [0, 1]), `assumed` (a JSON list of the
        criteria with an assumed answer, because no reply could be read), `mean_agreement`,
        `cannot_assess_count`, `tokens`, `cost` (in US dollars), `seconds` and `error`. Undefined values, such
        as the answer if the panel abstained, are missing. With `library="polars"`, return a polars DataFrame.
        """
        from autorubric.runs.export import scores_table

        return in_library(scores_table(self), library)

    def export(
        self,
        format: ExportFormat,
        *,
        table: ExportTable = "scores",
        fail_under: float | None = None,
        max_lost: float | None = None,
    ) -> bytes:
        """Return the run as file content for other programs.

        `csv`, `parquet` and `jsonl` contain `scores_table`, or `votes_table` if `table="votes"`. In CSV,
        strings that a spreadsheet would evaluate as formulas are escaped (see `spreadsheet_safe`); answers
        that are not strings are JSON in CSV and Parquet. `markdown` is a page with the run's figures, the
        criteria and the items. `junit` is a test suite with one test case per item, an error for each item
        without a score, and sensitivity and specificity as properties if items are labelled. All contain
        finished items only; `markdown` and `junit` begin with the number of unfinished items, if there are
        any.

        Args:
            format: The file format.
            table: The table to export as CSV, Parquet or JSONL: `scores` or `votes`.
            fail_under: Minimum score; a `junit` case with a lower score is a failure. None for no minimum.
            max_lost: Maximum fraction of missing verdicts, in [0, 1]; None means 0.05. A `junit` case that
                exceeds it is an error, unless both `fail_under` and `max_lost` are None. If items are
                unfinished and the whole run exceeds it, there is one more case, which is an error.

        Raises:
            ArgumentError: If the format or the table is unknown.
            MissingDependencyError: If the format is Parquet and pyarrow is not installed.
        """
        from autorubric.runs.export import export_run

        return export_run(self, format, table, fail_under, max_lost)

    def to_html(
        self,
        path: str | Path,
        *,
        baseline: EvalResult | None = None,
        critique: CritiqueView | None = None,
        max_chars: int | None = None,
    ) -> None:
        """Write the run to a self-contained HTML file.

        Args:
            path: Path of the file; an existing file is replaced.
            baseline: Another run of the same items to compare with.
            critique: A result of `critique_evaluate` to show on the page.
            max_chars: Maximum number of characters of a submission, prompt or reference; truncated texts
                are marked. None means 20,000, and 0 omits the texts. Votes and reasons are always shown.

        Raises:
            ArgumentError: If the baseline run graded different items, or `max_chars` is negative.
            FileError: If the file cannot be written.
        """
        from autorubric.reports.page import DEFAULT_MAX_CHARS, write_report

        most = DEFAULT_MAX_CHARS if max_chars is None else max_chars
        write_report(self, path, baseline=baseline, critique=critique, max_chars=most)

    def summary(self) -> str:
        """Return a short summary of the run as plain text."""
        from autorubric.support.blocks import render_text

        return render_text(self.blocks())

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from autorubric.support.blocks import card

        return card(self.blocks())

    def blocks(self) -> list[Block]:
        """Return the run's figures as blocks for renderers."""
        from autorubric.support.blocks import ScalarBlock, TextBlock

        cost, usage = self.total_completion_cost, self.total_token_usage
        verdicts = self.verdicts
        figures = ScalarBlock(
            title=f"Run {run_headline(self.experiment_name, self.total_items, self.unfinished_items)}",
            figures=(
                ("items", self.total_items),
                ("with a score", self.successful_items),
                ("partly scored", self.partly_scored_items),
                ("without a score", self.failed_items),
                ("mean score", self.item_results.tally.mean_score),
                ("verdicts requested", verdicts.asked),
                ("verdicts answered", verdicts.answered),
                ("verdicts abstained", verdicts.abstained),
                ("verdicts lost", verdicts.lost),
                ("verdicts assumed", verdicts.assumed),
                *((("verdicts not judged", verdicts.not_judged),) if verdicts.not_judged else ()),
                ("tokens", usage.total_tokens if usage else None),
                ("cost in US dollars", cost),
                *((("votes skipped", self.calls_saved),) if self.calls_saved else ()),
                ("seconds", self.timing_stats.total_duration_seconds),
                ("folder", str(self.experiment_dir)),
            ),
        )
        texts = {"No item has a score": self._why_unscored(), "Notices": "\n".join(self.notices)}
        return [figures, *(TextBlock(title=title, text=text) for title, text in texts.items() if text)]

    def _why_unscored(self) -> str:
        """Return the first error if every item has one and no item has a score."""
        if not self.total_items or self.successful_items:
            return ""
        position, error = self.errors[0]
        return f"item {self.dataset.item_id(position)!r}: {error}"

    @classmethod
    def from_experiment(cls, path: str | Path) -> EvalResult:
        """Open a stored run; reports are recomputed from the stored votes without calling any judge.

        Raises:
            RunFormatError: If the folder is not a run folder, was written by a newer version, or is damaged.
        """
        folder = Path(path)
        return cls._of(folder, reopen(folder))

    def rescore(self, rubric: Rubric | None = None, **policies: Unpack[Policies]) -> EvalResult:
        """Return the run with scores recomputed from its stored votes with different weights or policies.

        No judge is called, and the run folder is not changed.

        Args:
            rubric: Replacement for the shared rubric, with different weights, option values, gates, groups
                or conditions. Criteria whose question has changed have no votes; a notice lists them.
            **policies: See `Policies`; omitted options keep their values.

        Raises:
            ArgumentError: If a policy or judge is unknown, or the rubric has no criterion in common with the
                run's rubric.
            RunFormatError: If the run folder is missing or damaged.
        """
        from autorubric.runs.rescore import rescore

        return self._of(self.experiment_dir, rescore(self.experiment_dir, rubric, policies))

    def exchanges(self, item_id: str) -> list[StoredExchange]:
        """Return the model requests and replies for an item's votes, in order of arrival.

        The list is empty if prompts were not stored. For judges that are not models, it contains only
        unreadable replies.

        Raises:
            OSError: If the file cannot be read.
        """
        return stored_exchanges(self.experiment_dir, item_id)

    @classmethod
    def _of(cls, folder: Path, stored: StoredRun) -> EvalResult:
        return cls(**stored._asdict(), experiment_name=folder.name, experiment_dir=folder)
