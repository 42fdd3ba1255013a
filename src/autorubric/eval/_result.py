"""What a run gives, as a view on its folder: one result an item, with timing, spend and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

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
    """What a run gave.

    Attributes:
        dataset: The dataset that was graded.
        item_results: One result an item, in the dataset's order; a sequence whose elements are read from
            the run folder when asked for.
        timing_stats: How long it took.
        started_at: When it started, with time zone.
        completed_at: When it ended, with time zone.
        experiment_name: The run folder's name.
        experiment_dir: The run folder.
        notices: What the reader should know: lines passed over, scores computed anew, and the like.
        stopped: Why the run was stopped before all items were graded: `max_calls` or `max_cost`, the limit,
            or `same_error`, since a judge failed over and over with the same error; None where it was not.
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
        """Items graded."""
        return len(self.item_results)

    @property
    def successful_items(self) -> int:
        """Items with a score."""
        return self.total_items - self.failed_items

    @property
    def failed_items(self) -> int:
        """Items without a score."""
        return self.item_results.tally.failed

    @property
    def partly_scored_items(self) -> int:
        """Items with a score although a verdict behind it was lost."""
        return self.item_results.partly_scored

    @property
    def verdicts(self) -> VerdictCounts:
        """Verdicts asked for, answered, abstained, lost and assumed, with the first cause of each loss."""
        return self.item_results.verdicts

    @property
    def n_verdicts_lost(self) -> int:
        """Verdicts without a usable reply, which count nowhere."""
        return self.verdicts.lost

    @property
    def n_verdicts_assumed(self) -> int:
        """Verdicts whose reply could not be read and which count as the conservative answer."""
        return self.verdicts.assumed

    @property
    def errors(self) -> list[tuple[int, str]]:
        """Position and error of each item that has one, items with a partial score included."""
        told = ((line.position, line.error or line.partial) for line in self.item_results.lines())
        return sorted((position, error) for position, error in told if error)

    @property
    def total_token_usage(self) -> TokenUsage | None:
        """Tokens of all items; None where none was counted."""
        return self.item_results.tally.tokens

    @property
    def total_completion_cost(self) -> float | None:
        """US dollars of all votes whose cost is known; None where none is."""
        return self.item_results.tally.cost

    @property
    def calls_saved(self) -> int:
        """Votes of all items that were not asked for, since they could no longer matter.

        Each is a call where every criterion has its own, as under `llm_calls="per_criterion"`.
        """
        return self.item_results.tally.calls_saved

    @property
    def fingerprint(self) -> Mapping[str, Json]:
        """What the run's decisions depend on besides items and rubric, as its manifest says it.

        Judges by id, prompts (a digest), sampling, few-shot examples, checks, aggregation and judge weights.

        Raises:
            RunFormatError: The manifest of the run folder is damaged.
            FileError: It cannot be read.
        """
        manifest = read_manifest(self.experiment_dir)
        deciding = mapping_in(manifest, "deciding")
        kept = ("aggregation", "cannot_assess", "escalation", "judge_weights")
        return {**mapping_in(manifest, "asking"), **{name: deciding.get(name) for name in kept}}

    def get_scores(self) -> list[float | None]:
        """The score of each item, in the dataset's order; None where it has none."""
        return self.item_results.scores()

    def get_reports(self) -> Sequence[EnsembleEvaluationReport | None]:
        """The report of each item, in the dataset's order, made when asked for; None where grading raised."""
        return View(self.total_items, lambda place: self.item_results[place].report)

    def filter_successful(self) -> Sequence[ItemResult]:
        """The items with a score, read when asked for."""
        return self.item_results.where(lambda line: line.error is None)

    def filter_failed(self) -> Sequence[ItemResult]:
        """The items without a score, read when asked for."""
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
        """The judges' figures against the dataset's ground truth, as `autorubric.compute_metrics` gives them.

        Args:
            dataset: Where the truth is, its items matched by id; the graded dataset by default.
            bootstrap: Whether to resample items for intervals of the macro figures.
            n_bootstrap: Resamples.
            per_judge: Whether to give the figures of each judge too.
            cannot_assess: Whether CANNOT_ASSESS is left out (`exclude`), counts as UNMET or the worst option
                (`as_unmet`), or is a category of its own (`as_category`).
            na_mode: Whether NA is left out (`exclude`), counts as the worst option (`as_worst`), or is a
                category (`as_category`), which leaves the figures of an order None.
            truth: How several people's labels become the label, as in `judge_report`.
            confidence_level: Level of all intervals.
            seed: Seed of the resampling; None is 0.

        Raises:
            ArgumentError: The dataset lacks an item that was graded, or has it with another text, or an
                option is not one of those allowed.
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

    def votes_table(self, dataset: RubricDataset | None = None) -> pd.DataFrame:
        """One row a vote, a judge's decision, a panel's decision and a truth label."""
        from autorubric.metrics import votes_table

        return votes_table(self, dataset if dataset is not None else self.dataset)

    def scores_table(self) -> pd.DataFrame:
        """One row an item, in the dataset's order.

        Columns: `item` (its position), `item_id`, `score`, `raw_score`, `judge.<id>` (the score that a
        judge's votes give alone), `group.<name>` (the score of a group), `answer.<criterion>` and
        `value.<criterion>` (the answer decided on, in words, and on [0, 1] as it enters the score),
        `assumed` (a JSON list of the criteria whose answer is that of unreadable replies),
        `mean_agreement`, `cannot_assess_count`, `tokens`, `cost` (US dollars), `seconds` and `error`. What an
        item lacks is missing, and so is an answer where the panel abstained.
        """
        # Late, here and below: few runs are made into files, and the formats take their time to load.
        from autorubric.eval._export import scores_table

        return scores_table(self)

    def export(
        self,
        format: ExportFormat,
        *,
        table: ExportTable = "scores",
        fail_under: float | None = None,
        max_lost: float = 0.05,
    ) -> bytes:
        """The content of a file with the run, for other programs.

        `csv`, `parquet` and `jsonl` hold `scores_table`, or `votes_table` if `table="votes"`. In CSV, which
        spreadsheets open, texts that would be formulas are marked (see `spreadsheet_safe`); answers that
        are no texts are JSON there and in Parquet. `markdown` is a page with the figures, the criteria and
        the items; `junit` a test suite with an item a case, an error where it has no score, and, if items are
        labelled, sensitivity and specificity as properties.

        Args:
            format: The format.
            table: Which table, where the format holds one.
            fail_under: In `junit`, a case whose score is below is a failure.
            max_lost: In `junit` with `fail_under`, a case is an error where a larger share of its verdicts,
                on [0, 1], was lost or assumed.

        Raises:
            ArgumentError: There is no such format or table.
            MissingDependencyError: Parquet without pyarrow.
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
        """Writes the run as one HTML file that needs no server, no network and no other file.

        Args:
            path: The file; what is there is replaced.
            baseline: Another run of the same items, to compare it with.
            critique: What `critique_evaluate` gave, to show as a view of its own.
            max_chars: Characters that are kept of a submission, prompt or reference, what is cut saying so;
                None keeps 20,000, 0 leaves the texts out. Votes and their reasons are always in it.

        Raises:
            ArgumentError: The baseline graded other items, or `max_chars` is below 0.
            FileError: The file cannot be written.
        """
        # Late, as figures are.
        from autorubric.report import DEFAULT_MAX_CHARS, write_report

        most = DEFAULT_MAX_CHARS if max_chars is None else max_chars
        write_report(self, path, baseline=baseline, critique=critique, max_chars=most)

    def summary(self) -> str:
        """The run in a few lines of plain text."""
        from autorubric._blocks import render_text

        return render_text(self.blocks())

    def _repr_html_(self) -> str:
        from autorubric._blocks import card

        return card(self.blocks())

    def blocks(self) -> list[Block]:
        """The run's figures, for any renderer."""
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
        """The first error, where every item has one and no score."""
        if not self.total_items or self.successful_items:
            return ""
        position, error = self.errors[0]
        return f"item {self.dataset.item_id(position)!r}: {error}"

    @classmethod
    def from_experiment(cls, path: str | Path) -> EvalResult:
        """The result of a stored run, its reports computed anew from the stored votes; no judge is asked.

        Raises:
            RunFormatError: The folder holds no run, a newer version wrote it, or it is damaged.
        """
        folder = Path(path)
        return cls._of(folder, reopen(folder))

    def rescored(self, rubric: Rubric | None = None, **policies: Unpack[Policies]) -> EvalResult:
        """The run as it would be under other weights or policies, from the stored votes; no judge is asked.

        The run folder stays as it is.

        Args:
            rubric: Stands in the place of the rubric that items share; with other weights, option values,
                gates, groups or conditions. Criteria that ask something else than they did are left without
                votes, and a notice names them.
            **policies: See `Policies`; what is left out stays as it was.

        Raises:
            ArgumentError: There is no such policy or judge, or the rubric shares no criterion with the run's.
            RunFormatError: The run folder is gone or damaged.
        """
        # Late, since hardly any run is scored again.
        from autorubric.eval._rescore import rescore

        return self._of(self.experiment_dir, rescore(self.experiment_dir, rubric, policies))

    def exchanges(self, item_id: str) -> list[StoredExchange]:
        """What was sent to models for an item's votes and what came back, in the order in which it came.

        Empty where no prompts were stored. Of a judge that is no model there is what could not be read.

        Raises:
            OSError: The file cannot be read.
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
