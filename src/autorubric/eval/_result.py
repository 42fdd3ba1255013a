"""The result of a run, as a view of its folder: one result per item, with timing, cost and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack, overload

from autorubric._frames import Library, in_library
from autorubric.dataset import RubricDataset, TruthRule
from autorubric.eval._config import StopReason
from autorubric.eval._fingerprint import mapping_in
from autorubric.eval._folder import read_manifest
from autorubric.eval._items import EvalTimingStats, ItemResult
from autorubric.eval._reopen import StoredRun, reopen
from autorubric.eval._results import StoredResults, View
from autorubric.values import Json, TokenUsage, VerdictCounts

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from autorubric._blocks import Block
    from autorubric.eval._exchanges import StoredExchange
    from autorubric.eval._export import ExportFormat, ExportTable
    from autorubric.eval._rescore import Policies
    from autorubric.metrics import MetricsResult
    from autorubric.metrics._cells import CannotAssessMode, NaMode
    from autorubric.report import CritiqueView
    from autorubric.rubric import Rubric
    from autorubric.types import EnsembleEvaluationReport


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalResult:
    """The result of a run.

    Attributes:
        dataset: The graded dataset.
        item_results: One result per item, in the dataset's order; a sequence that reads its elements from the
            run folder on access.
        timing_stats: Durations.
        started_at: Start, with time zone.
        completed_at: End, with time zone.
        experiment_name: Name of the run folder.
        experiment_dir: The run folder.
        notices: Messages for the reader, such as skipped lines or recomputed scores.
        stopped: Why the run stopped before all items were graded: `max_calls` or `max_cost` for a limit,
            `same_error` if a judge kept failing with the same error; None if it did not stop.
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
        """Number of graded items."""
        return len(self.item_results)

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
        """Number of items that have a score although a verdict behind it was lost."""
        return self.item_results.partly_scored

    @property
    def verdicts(self) -> VerdictCounts:
        """Counts of verdicts asked for, answered, abstained, lost and assumed, with causes of losses."""
        return self.item_results.verdicts

    @property
    def n_verdicts_lost(self) -> int:
        """Number of verdicts without a usable reply; they do not count in any score."""
        return self.verdicts.lost

    @property
    def n_verdicts_assumed(self) -> int:
        """Number of verdicts whose reply could not be read; they count as the conservative answer."""
        return self.verdicts.assumed

    @property
    def errors(self) -> list[tuple[int, str]]:
        """Position and error of each item with an error, including items with a partial score."""
        told = ((line.position, line.error or line.partial) for line in self.item_results.lines())
        return sorted((position, error) for position, error in told if error)

    @property
    def total_token_usage(self) -> TokenUsage | None:
        """Tokens of all items; None if none were counted."""
        return self.item_results.tally.tokens

    @property
    def total_completion_cost(self) -> float | None:
        """Cost in US dollars of all votes with a known cost; None if no cost is known."""
        return self.item_results.tally.cost

    @property
    def calls_saved(self) -> int:
        """Number of votes that were not requested because they could no longer change a decision.

        With `llm_calls="per_criterion"`, this is the number of calls saved.
        """
        return self.item_results.tally.calls_saved

    @property
    def fingerprint(self) -> Mapping[str, Json]:
        """What the run's decisions depend on besides items and rubric, from its manifest.

        Judges by id, a digest of the prompts, sampling, few-shot examples, checks, aggregation and judge
        weights.

        Raises:
            RunFormatError: If the manifest of the run folder is damaged.
            FileError: If it cannot be read.
        """
        manifest = read_manifest(self.experiment_dir)
        deciding = mapping_in(manifest, "deciding")
        kept = ("aggregation", "cannot_assess", "escalation", "judge_weights")
        return {**mapping_in(manifest, "asking"), **{name: deciding.get(name) for name in kept}}

    def get_scores(self) -> list[float | None]:
        """Return the score of each item, in the dataset's order; None for items without a score."""
        return self.item_results.scores()

    def get_reports(self) -> Sequence[EnsembleEvaluationReport | None]:
        """Return the report of each item, in order, computed on access; None if grading raised."""
        return View(self.total_items, lambda place: self.item_results[place].report)

    def filter_successful(self) -> Sequence[ItemResult]:
        """Return the items with a score, read on access."""
        return self.item_results.where(lambda line: line.error is None)

    def filter_failed(self) -> Sequence[ItemResult]:
        """Return the items without a score, read on access."""
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
            dataset: A dataset with the truth, its items matched by id; None for the graded dataset.
            bootstrap: Whether to resample items for intervals of the macro metrics.
            n_bootstrap: Number of resamples.
            per_judge: Whether to include the metrics of each judge.
            cannot_assess: Whether CANNOT_ASSESS is left out (`exclude`), counts as UNMET or the worst option
                (`as_unmet`), or is a separate category (`as_category`).
            na_mode: Whether NA is left out (`exclude`), counts as the worst option (`as_worst`), or is a
                category (`as_category`), which makes metrics of ordered answers None.
            truth: How labels of several people become one label, as in `judge_report`.
            confidence_level: Level of all intervals.
            seed: Seed of the resampling; None means 0.

        Raises:
            ArgumentError: If the dataset lacks a graded item or has it with another text, or an option is not
                one of those allowed.
        """
        # Late, since metrics load numpy and a run that wants none should not wait for it.
        from autorubric.metrics import compute_metrics

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
        """Return one row per vote, judge's decision, panel's decision and truth label.

        With `library="polars"` it is a polars frame; columns of mixed types are text there.
        """
        from autorubric.metrics import votes_table

        return in_library(votes_table(self, dataset if dataset is not None else self.dataset), library)

    @overload
    def scores_table(self, library: Literal["pandas"] = "pandas") -> pd.DataFrame: ...
    @overload
    def scores_table(self, library: Literal["polars"]) -> pl.DataFrame: ...
    def scores_table(self, library: Library = "pandas") -> pd.DataFrame | pl.DataFrame:
        """Return one row per item, in the dataset's order.

        Columns: `item` (its position), `item_id`, `score`, `raw_score`, `judge.<id>` (the score from that
        judge's votes alone), `group.<name>` (the score of a group), `answer.<criterion>` and
        `value.<criterion>` (the decision in words, and on [0, 1] as it enters the score), `assumed` (a JSON
        list of the criteria whose answer is assumed because no reply could be read), `mean_agreement`,
        `cannot_assess_count`, `tokens`, `cost` (US dollars), `seconds` and `error`. Values that an item lacks
        are missing, and so is an answer if the panel abstained. With `library="polars"` it is a polars frame.
        """
        # Late, here and below: few runs are made into files, and the formats take their time to load.
        from autorubric.eval._export import scores_table

        return in_library(scores_table(self), library)

    def export(
        self,
        format: ExportFormat,
        *,
        table: ExportTable = "scores",
        fail_under: float | None = None,
        max_lost: float = 0.05,
    ) -> bytes:
        """Return the run as the content of a file for other programs.

        `csv`, `parquet` and `jsonl` hold `scores_table`, or `votes_table` if `table="votes"`. In CSV, texts
        that a spreadsheet would run as formulas are marked (see `spreadsheet_safe`); answers that are not
        texts are JSON in CSV and Parquet. `markdown` is a page with the metrics, the criteria and the items.
        `junit` is a test suite with one case per item, an error for each item without a score, and, if items
        are labelled, sensitivity and specificity as properties.

        Args:
            format: The format.
            table: The table, for formats that hold one.
            fail_under: In `junit`, a case with a lower score is a failure.
            max_lost: In `junit` with `fail_under`, a case is an error if a larger share of its verdicts, on
                [0, 1], was lost or assumed.

        Raises:
            ArgumentError: If there is no such format or table.
            MissingDependencyError: If the format is Parquet and pyarrow is not installed.
        """
        from autorubric.eval._export import exported

        return exported(self, format, table, fail_under, max_lost)

    def to_html(
        self,
        path: str | Path,
        *,
        baseline: EvalResult | None = None,
        critique: CritiqueView | None = None,
        max_chars: int | None = None,
    ) -> None:
        """Write the run as one HTML file that needs no server, network or other file.

        Args:
            path: The file; an existing file is replaced.
            baseline: Another run on the same items to compare with.
            critique: A result of `critique_evaluate` to show as a view of the page.
            max_chars: Characters kept of a submission, prompt or reference; truncated texts are marked. None
                keeps 20,000, and 0 leaves the texts out. Votes and their reasons are always included.

        Raises:
            ArgumentError: If the baseline graded other items, or `max_chars` is negative.
            FileError: If the file cannot be written.
        """
        # Late, as figures are.
        from autorubric.report import DEFAULT_MAX_CHARS, write_report

        most = DEFAULT_MAX_CHARS if max_chars is None else max_chars
        write_report(self, path, baseline=baseline, critique=critique, max_chars=most)

    def summary(self) -> str:
        """Return the run in a few lines of plain text."""
        from autorubric._blocks import render_text

        return render_text(self.blocks())

    def _repr_html_(self) -> str:
        from autorubric._blocks import card

        return card(self.blocks())

    def blocks(self) -> list[Block]:
        """Return the run's figures as blocks for renderers."""
        # Late, since most who open a run read its scores and print nothing.
        from autorubric._blocks import ScalarBlock, TextBlock

        cost, usage = self.total_completion_cost, self.total_token_usage
        verdicts = self.verdicts
        figures = ScalarBlock(
            title=f"Run {self.experiment_name}",
            figures=(
                ("items", self.total_items),
                ("with a score", self.successful_items),
                ("partly scored", self.partly_scored_items),
                ("without a score", self.failed_items),
                ("mean score", self.item_results.tally.mean_score),
                ("verdicts asked for", verdicts.asked),
                ("verdicts answered", verdicts.answered),
                ("verdicts abstained", verdicts.abstained),
                ("verdicts lost", verdicts.lost),
                ("verdicts assumed", verdicts.assumed),
                ("tokens", usage.total_tokens if usage else None),
                ("cost in US dollars", cost),
                *((("votes left out", self.calls_saved),) if self.calls_saved else ()),
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
        """Open a stored run; its reports are recomputed from the stored votes, and no judge is asked.

        Raises:
            RunFormatError: If the folder is not a run, was written by a newer version, or is damaged.
        """
        folder = Path(path)
        return cls._of(folder, reopen(folder))

    def rescored(self, rubric: Rubric | None = None, **policies: Unpack[Policies]) -> EvalResult:
        """Return the run under other weights or policies, computed from the stored votes; no judge is asked.

        The run folder is not changed.

        Args:
            rubric: Replaces the rubric that the items share, with other weights, option values, gates, groups
                or conditions. Criteria that ask something else have no votes, and a notice lists them.
            **policies: See `Policies`; options left out keep their values.

        Raises:
            ArgumentError: If there is no such policy or judge, or the rubric shares no criterion with the
                run's.
            RunFormatError: If the run folder is missing or damaged.
        """
        # Late, since hardly any run is scored again.
        from autorubric.eval._rescore import rescore

        return self._of(self.experiment_dir, rescore(self.experiment_dir, rubric, policies))

    def exchanges(self, item_id: str) -> list[StoredExchange]:
        """Return what was sent to models for an item's votes and their replies, in order of arrival.

        Empty if no prompts were stored. For judges that are not models, only unreadable replies are returned.

        Raises:
            OSError: If the file cannot be read.
        """
        from autorubric.eval._exchanges import stored_exchanges

        return stored_exchanges(self.experiment_dir, item_id)

    @classmethod
    def _of(cls, folder: Path, stored: StoredRun) -> EvalResult:
        return cls(
            dataset=stored.dataset,
            item_results=stored.item_results,
            timing_stats=stored.timing_stats,
            started_at=stored.started_at,
            completed_at=stored.completed_at,
            experiment_name=folder.name,
            experiment_dir=folder,
            notices=stored.notices,
        )
