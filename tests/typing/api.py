"""Every public name in a typical use, for type checkers; nothing here is run.

What an expression is said to be is what users may rely on: a change that breaks a line here breaks their
type checks too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal, assert_type

import pandas as pd
import polars as pl

import autorubric as ar
from autorubric.integrations import call_tool
from autorubric.support.objects import Json

Rows = list[list[int | None]]


def criteria() -> list[ar.BaseCriterion]:
    """Kinds of criterion, with their parts."""
    plain = ar.Criterion(name="apology", requirement="It apologises.", weight=6.0)
    assert_type(plain.is_binary, bool)
    options = [ar.CriterionOption(label="low", value=0.0), ar.CriterionOption(label="high", value=1.0)]
    scale: ar.criteria.ScaleType = "ordinal"
    choice = ar.Criterion(requirement="How kind?", options=options, scale_type=scale)
    assert_type(choice.find_option_by_label("low"), int)
    levels = [ar.RubricLevel(name=f"level {index}", index=index, description="…") for index in (1, 2)]
    return [
        plain,
        choice,
        ar.PassFailCriterion(requirement="It is short."),
        ar.LikertCriterion(
            requirement="Kind?",
            scale=[ar.LikertItem(val=1, description="no"), ar.LikertItem(val=2, description="yes")],
        ),
        ar.NumericalRatingCriterion(requirement="Clear?", min_value=0.0, max_value=10.0),
        ar.ChecklistCriterion(requirement="Parts?", items={"greeting": "It greets."}),
        ar.AnalyticRubricCriterion(
            requirement="Well written?",
            dimensions={"style": ar.RubricDimension(description="Style", min_score=1, max_score=5)},
        ),
        ar.HolisticRubricCriterion(requirement="Overall?", levels=levels),
        ar.NarrativeCriterion(requirement="What stands out?"),
        ar.ComparativeCriterion(requirement="Which is kinder?", mode="pairwise"),
        ar.Criterion(requirement="It is safe.", gate=ar.Gate(at_least=1.0, cap=0.0)),
        ar.Criterion(requirement="It says when.", when=ar.When(criterion="apology")),
    ]


@ar.criteria.register_kind("brevity")
class BrevityCriterion(ar.BaseCriterion):
    """A kind of the user's own."""

    level: ClassVar[ar.criteria.Level] = "interval"
    words: ar.criteria.BoundInt = ar.criteria.BoundInt(min_val=0, max_val=1000)
    share: ar.criteria.BoundFloat = ar.criteria.BoundFloat(min_val=0.0, max_val=1.0)
    short: ar.criteria.BoolField = ar.criteria.BoolField()
    form: ar.criteria.ChoiceField = ar.criteria.ChoiceField(choices=("prose", "list"))
    quotes: ar.criteria.ListField = ar.criteria.ListField()
    counts: ar.criteria.DictField = ar.criteria.DictField()
    reason: ar.criteria.TextField = ar.criteria.TextField()


def fields() -> list[ar.criteria.EvalField]:
    """Fields of an evaluation, whatever they hold."""
    return [ar.criteria.TextField(), ar.criteria.BoolField()]


def rubrics() -> ar.Rubric:
    """Rubrics, groups and scores of labels."""
    assert_type(ar.Rubric.from_file("rubric.yaml"), ar.Rubric)
    group = ar.RubricGroup("tone", tuple(criteria()), 2.0)
    rubric = ar.Rubric([*criteria(), group], guidelines="Be fair.")
    assert_type(rubric[0], ar.BaseCriterion)
    assert_type(rubric.names, tuple[str, ...])
    assert_type(rubric.to_dict(), dict[str, Any])
    assert_type(
        rubric.compute_score({"apology": "MET"}, cannot_assess_strategy=ar.CannotAssessStrategy.ZERO),
        float | None,
    )
    ar.criteria.register_check("short", lambda text: len(text) < 100)
    ar.Criterion(requirement="…", check=ar.criteria.TranscriptCheck(tool_called="search", at_most=3))
    return rubric


def models() -> ar.LLMConfig:
    """Models as data."""
    thinking = ar.ThinkingConfig(level=ar.llm.ThinkingLevel.LOW)
    config = ar.LLMConfig(
        model="gpt-6-luna", temperature=0.0, thinking=thinking, fallbacks=("anthropic/claude-sonnet-5-5",)
    )
    assert_type(config.model, str)
    assert_type(ar.LLM("gpt-6-luna", temperature=1.0), ar.LLMConfig)
    return config


async def clients() -> None:
    """Asking a model for text, and for an instance of a class."""
    async with ar.LLMClient(models()) as client:
        assert_type(await client.generate("Be brief.", "Hello."), str)
        assert_type(
            await client.generate("Be brief.", "Hello.", ar.CannotAssessConfig), ar.CannotAssessConfig
        )
    assert_type(await ar.llm.generate("Be brief.", "Hello.", "gpt-6-luna"), str)
    assert_type(ar.llm.generate_sync("Be brief.", "Hello.", "gpt-6-luna"), str)
    settings = ar.llm.generate_sync("Be brief.", "Hello.", "gpt-6-luna", ar.CannotAssessConfig)
    assert_type(settings, ar.CannotAssessConfig)


class Coin:
    """A judge of the user's own."""

    judge_id = "coin"

    async def ask(self, request: ar.JudgeRequest) -> ar.JudgeReply:
        """Heads."""
        assert_type(request.submission, ar.Submission)
        turns: tuple[ar.criteria.Turn, ...] = request.submission.turns
        calls: list[ar.criteria.ToolCall] = [call for turn in turns for call in turn.tool_calls]
        assert all(call.name and call.text and call.id for call in calls)
        images: tuple[ar.criteria.Image, ...] = request.submission.images
        assert all(image.label and image.url and image.sha256 and image.data for image in images)
        assert_type(request.criterion, ar.BaseCriterion)
        usage = ar.TokenUsage(prompt_tokens=1) + ar.TokenUsage(completion_tokens=1)
        return ar.JudgeReply(answer=ar.CriterionVerdict.MET, reason="heads", usage=usage)


def graders(train: ar.RubricDataset) -> ar.CriterionGrader:
    """Panels of every sort of judge."""
    coin: ar.Judge = Coin()
    recorded = ar.RecordedJudge.panel_from_csv("votes.csv")
    assert_type(recorded, list[ar.RecordedJudge])
    decision = ar.judges.DecisionModelJudge("jev-1", "openai", api_base="http://localhost:8080/v1")
    assert_type(decision.models, tuple[ar.LLMConfig, ...])
    supervised = ar.judges.SupervisedJudge.fit(train, seed=1)
    assert_type(supervised, ar.judges.SupervisedJudge)
    penalties: ar.PenaltyType = "OUTPUT_ONLY"
    penalty = ar.LengthPenalty(free_budget=100, max_cap=200, penalty_type=penalties)
    assert_type(ar.scoring.compute_length_penalty("A text.", penalty), float)
    assert_type(ar.CriterionGrader(llm_config="gpt-6-luna"), ar.CriterionGrader)
    return ar.CriterionGrader(
        judges=[
            coin,
            *recorded,
            supervised,
            ar.LexicalJudge(),
            "gpt-6-luna",
            models(),
            lambda request: "MET",
            ar.JudgeSpec(models(), "mini", weight=2.0, samples=3),
            ar.Critic("anthropic/claude-sonnet-5-5", criteria()[2]),
        ],
        aggregation="weighted",
        training_data=train,
        few_shot_config=ar.FewShotConfig(n_examples=2),
        length_penalty=penalty,
        cannot_assess_config=ar.CannotAssessConfig(strategy=ar.CannotAssessStrategy.SKIP),
        escalation=ar.EscalationConfig(judges=["anthropic/claude-sonnet-5-5"], threshold=0.8),
    )


async def grading(grader: ar.Grader) -> None:
    """A report and what is in it."""
    report = await rubrics().grade("A text.", grader, query="Where is it?")
    assert_type(report, ar.EnsembleEvaluationReport)
    assert_type(rubrics().grade_sync({"thinking": "…", "output": "…"}, grader), ar.EnsembleEvaluationReport)
    assert_type(report.score, float | None)
    assert_type(report.report, list[ar.EnsembleCriterionReport])
    assert_type(report.judge_scores, dict[str, float | None])
    assert_type(report.token_usage, ar.TokenUsage | None)
    assert_type(report.verdicts, ar.criteria.VerdictCounts)
    base: ar.EvaluationReport = report
    criterion: ar.CriterionReport = base.report[0]
    assert_type(criterion.decision, ar.scoring.Decision)
    assert_type(criterion.decision.answer, ar.Answer | None)
    assert_type(criterion.final_verdict, ar.CriterionVerdict | None)
    assert_type(criterion.final_multi_choice_verdict, ar.scoring.MultiChoiceVerdict | None)
    assert_type(criterion.votes, list[ar.JudgeVote])
    vote: ar.scoring.MultiChoiceJudgeVote = criterion.votes[0]
    assert_type(vote.verdict, ar.CriterionVerdict | None)
    assert_type(ar.decision(report, threshold=0.7), ar.metrics.DecisionResult)


def datasets() -> ar.RubricDataset:
    """Items, files, frames and splits."""
    item = ar.DataItem(submission="A text.", ground_truth=["MET"], ratings={"ann": ["MET"]}, id="1")
    dataset = ar.RubricDataset(rubric=rubrics(), items=[item])
    assert_type(ar.RubricDataset.from_file("data.jsonl"), ar.RubricDataset)
    assert_type(ar.RubricDataset.stream("data.jsonl"), ar.RubricDataset)
    train, test = dataset.split_train_test(10, seed=1)
    parts = dataset.split(train=0.2, dev=0.4, test=0.4, stratify="apology", group="author", seed=1)
    assert_type(parts, ar.datasets.DatasetSplit)
    assert_type(parts.dev, ar.RubricDataset)
    assert_type(test.get_item_rubric(0), ar.Rubric)
    assert_type(dataset.to_dataframe(), pd.DataFrame)
    assert_type(dataset.to_dataframe("polars"), pl.DataFrame)
    return train


async def runs(dataset: ar.RubricDataset, grader: ar.Grader) -> ar.EvalResult:
    """Runs, their estimates, parts and results."""
    assert_type(ar.estimate(dataset, grader), ar.runs.RunEstimate)
    assert_type(ar.estimate(dataset, grader).judges, tuple[ar.runs.JudgeEstimate, ...])
    assert_type(await ar.evaluate(dataset, grader, max_cost=1.0, on_mismatch="rejudge"), ar.EvalResult)
    config = ar.EvalConfig(experiment_name="first", max_concurrent_items=8)
    assert_type(await ar.EvalRunner(dataset, grader, config).run(), ar.EvalResult)
    assert_type(ar.runs.run_shard(dataset, grader, 0, 2), ar.EvalResult)
    assert_type(ar.load_run("autorubric.yaml"), ar.runs.RunSetup)
    assert_type(ar.load_run().evaluate_sync(), ar.EvalResult)
    assert_type(dataset.field_map, ar.FieldMap | None)
    assert_type(ar.merge_runs(["a", Path("b")], "c"), ar.EvalResult)
    assert_type(await ar.fill_ground_truth(dataset, grader), ar.RubricDataset)
    assert_type(ar.fill_ground_truth_sync(dataset, grader, force=True), ar.RubricDataset)
    result = ar.evaluate_sync(dataset, grader, experiment_name="first")
    assert_type(result.item_results[0], ar.ItemResult)
    assert_type(result.timing_stats, ar.runs.EvalTimingStats)
    assert_type(result.get_scores(), list[float | None])
    assert_type(result.compute_metrics(dataset), ar.metrics.MetricsResult)
    assert_type(result.fingerprint, Mapping[str, Json])
    assert_type(result.verdicts, ar.criteria.VerdictCounts)
    assert_type((result.n_verdicts_lost, result.n_verdicts_assumed), tuple[int, int])
    assert_type(result.partly_scored_items, int)
    assert_type(result.verdicts.missing_share, float | None)
    point = ar.runs.replay_escalation(
        result, ar.EscalationConfig(judges=["anthropic/claude-sonnet-5-5"], threshold=0.8)
    )
    assert_type(point, ar.runs.EscalationPoint)
    assert_type(ar.runs.choose_band(result, dataset, max_loss=0.01), tuple[float, float])
    curve = ar.runs.calibrate_escalation(result, dataset)
    assert_type(curve, ar.runs.EscalationCurve)
    assert_type(curve.threshold_for(0.9), float | None)
    return result


def run_metrics(result: ar.EvalResult, dataset: ar.RubricDataset) -> None:
    assert_type(result.stopped, Literal["max_calls", "max_cost", "same_error", "batch"] | None)
    """The figures of a run against truth."""
    metrics = ar.compute_metrics(result, dataset, bootstrap=True, per_judge=True)
    assert_type(metrics.criterion_accuracy, float | None)
    assert_type(metrics.pooled, ar.metrics.PooledMetrics)
    assert_type(metrics.bootstrap, ar.metrics.BootstrapResults | None)
    assert_type(metrics.na_stats, ar.metrics.NaStats)
    assert_type(metrics.score_pearson, ar.metrics.CorrelationResult)
    assert_type(metrics.bias, ar.metrics.BiasResult)
    assert_type(metrics.bias.ci, ar.metrics.ConfidenceInterval | None)
    assert_type(metrics.per_judge, Mapping[str, ar.metrics.JudgeMetrics])
    rater: ar.metrics.RaterMetrics = metrics.per_judge["mini"]
    for criterion in rater.per_criterion:
        if isinstance(criterion, ar.metrics.OrdinalCriterionMetrics):
            assert_type(criterion.weighted_kappa, float | None)
        elif isinstance(criterion, ar.metrics.NominalCriterionMetrics):
            assert_type(criterion.per_option, tuple[ar.metrics.OptionMetrics, ...])
        elif isinstance(criterion, ar.metrics.IntervalCriterionMetrics):
            assert_type(criterion.ccc, float | None)
        elif isinstance(criterion, ar.metrics.RankingCriterionMetrics):
            assert_type(criterion.tie_rate, float | None)
        else:
            assert_type(criterion, ar.metrics.CriterionMetrics)
            assert_type(criterion.confusion_matrix, ar.metrics.ConfusionMatrix)
    assert_type(ar.metrics.votes_table(result, dataset), pd.DataFrame)
    assert_type(result.votes_table(library="polars"), pl.DataFrame)
    assert_type(metrics.to_dataframe("polars"), pl.DataFrame)
    assert_type(ar.metrics.spreadsheet_safe(metrics.to_dataframe()), pd.DataFrame)


def judges_judged(result: ar.EvalResult, dataset: ar.RubricDataset) -> None:
    """Reports on judges, audits and corrections."""
    report = ar.judge_report(result, dataset)
    assert_type(report, ar.metrics.JudgeReport)
    assert_type(report.macro, ar.metrics.MacroFigures)
    assert_type(report.micro, ar.metrics.HeadlineFigures)
    assert_type(report.panel, ar.metrics.RaterReport)
    assert_type(report.panel.failures, ar.metrics.RaterFailures)
    assert_type(report.panel.comparisons["better"], ar.metrics.ComparisonFigures)
    assert_type(report.human_ceiling, ar.metrics.HumanCeilings | None)
    assert_type(report.reliability, Mapping[str, ar.metrics.Reliability])
    assert_type(report.per_criterion["apology"], ar.metrics.Agreement)
    compared = ar.metrics.compare_run(result, dataset, stat="accuracy")
    assert_type(compared, ar.metrics.RunComparison)
    assert_type(compared.judges, tuple[ar.metrics.JudgePair, ...])
    assert_type(compared.judges[0].coverage, float)
    assert_type(ar.judge_report(result, truth="median").panel_and_best, ar.metrics.PanelAndBest | None)
    assert_type(ar.judge_report(result).n_tied_labels, int | None)
    assert_type(result.compute_metrics(truth="majority").n_tied_labels, int | None)
    assert_type(result.dataset.with_truth("mode"), ar.RubricDataset)
    rule: ar.datasets.TruthRule = "mean"
    assert_type(ar.metrics.compare_run(result, truth=rule).n_tied_labels, int | None)
    assert_type(ar.metrics.panel_audit(result), ar.metrics.PanelAudit)
    assert_type(ar.metrics.bias_report(result), ar.metrics.BiasReport)
    assert_type(ar.metrics.item_analysis(result), ar.metrics.ItemAnalysis)
    assert_type(ar.metrics.variance_components(result), ar.metrics.VarianceComponents)
    assert_type(ar.metrics.self_consistency(result), ar.metrics.SelfConsistency)
    assert_type(ar.metrics.pass_at_k([result], 2, task=lambda item: item.id), ar.metrics.PassRates)
    assert_type(ar.metrics.pass_at_k({"a": [True]}, 1).pass_hat_k, ar.metrics.Estimate)
    corrected = ar.corrected_score(result, dataset, method="ppi++")
    assert_type(corrected, ar.metrics.CorrectedScore)
    assert_type(ar.corrected_score(result, calibration=result).n_labelled, int)
    assert_type(corrected.per_criterion["apology"], ar.metrics.CorrectedCriterion)
    assert_type(ar.corrected_rate([1, 0], [1, 0], [1, 1]), ar.metrics.CorrectedRate)
    calibration = ar.metrics.calibrate_probabilities(result, dataset, method="platt", held_out=0.3)
    assert_type(calibration, ar.scoring.ProbabilityCalibration)
    assert_type(calibration.brier, ar.scoring.HeldOutLoss)
    assert_type(result.rescore(votes="soft", calibrations=[calibration]), ar.EvalResult)
    found = ar.metrics.judge_report(result).panel.probabilities
    assert_type(found, Mapping[str, ar.metrics.ProbabilityFigures])


def two_raters(truth: list[str], pred: list[str], ratings: Rows) -> None:
    """Figures of two columns of labels, and of many raters."""
    binary, nominal = ar.metrics.Binary(), ar.metrics.Nominal(["a", "b"])
    ordinal, interval = ar.metrics.Ordinal(["low", "high"]), ar.metrics.Interval(0.0, 1.0)
    assert_type(
        ar.metrics.scale_of(ar.Criterion(requirement="…")),
        ar.metrics.Binary | ar.metrics.Nominal | ar.metrics.Ordinal | ar.metrics.Interval,
    )
    kappa = ar.cohen_kappa(truth, pred, scale=ordinal, weights="quadratic", ci="bca", n_resamples=500)
    assert_type(kappa, ar.metrics.Estimate)
    assert_type(kappa.low, float | None)
    with suppress(ar.metrics.UndefinedEstimateError):
        assert_type(float(kappa), float)
    figures = [
        ar.metrics.accuracy(truth, pred, scale=binary),
        ar.metrics.balanced_accuracy(truth, pred),
        ar.metrics.macro_f1(truth, pred),
        ar.metrics.mcc(truth, pred),
        ar.metrics.scott_pi(truth, pred, scale=nominal),
        ar.metrics.gwet_ac(truth, pred, scale=nominal),
        ar.metrics.brennan_prediger(truth, pred, scale=nominal),
        ar.metrics.precision(truth, pred),
        ar.metrics.recall(truth, pred),
        ar.metrics.specificity(truth, pred),
        ar.metrics.f1(truth, pred, positive="a"),
        ar.metrics.positive_agreement(truth, pred),
        ar.metrics.negative_agreement(truth, pred),
        ar.metrics.adjacent_accuracy(truth, pred, scale=ordinal, k=1),
        ar.krippendorff_alpha(ratings, level="ordinal"),
        ar.metrics.fleiss_kappa(ratings),
        ar.metrics.conger_kappa(ratings),
        ar.metrics.percent_agreement(ratings),
        ar.metrics.icc(ratings, form="ICC(2,1)"),
        ar.metrics.cronbach_alpha(ratings),
        ar.metrics.kendall_w(ratings),
        ar.metrics.wasserstein_distance([0.1], [0.2], scale=interval),
        ar.metrics.earth_movers_distance([0.1], [0.2], scale=interval),
        ar.metrics.wilson(3, 4),
        ar.metrics.position_consistency(["a"], ["b"]),
        ar.metrics.clustered_se([0.1, 0.2], ["x", "y"]),
    ]
    assert_type(figures, list[ar.metrics.Estimate])
    found = ar.agreement(truth, pred, scale=ordinal, abstain="as_category")
    assert_type(found, ar.metrics.Agreement)
    assert_type(found.per_option, tuple[ar.metrics.OptionAgreement, ...])
    assert_type(found.abstentions, ar.metrics.Abstentions)
    assert_type(ar.reliability(ratings, scale=ordinal).raters, tuple[ar.metrics.RaterShares, ...])
    assert_type(ar.metrics.human_ceiling(ratings, stat="kappa"), ar.metrics.HumanCeiling)
    tested = ar.metrics.alt_test([1, 0], ratings, epsilon=0.1)
    assert_type(tested, ar.metrics.AltTestResult)
    assert_type(tested.per_annotator, Mapping[str, ar.metrics.AnnotatorTest])
    assert_type(ar.metrics.majority_vote(ratings), list[Any])
    assert_type(ar.metrics.dawid_skene(ratings), ar.metrics.DawidSkeneResult)
    assert_type(ar.metrics.spec("cohen_kappa"), ar.metrics.MetricSpec)
    assert_type([one.name for one in ar.metrics.SPECS], list[str])
    table = ar.metrics.TableMetric(name="share of all", hits=lambda tables: tables[..., 0, 0])
    assert_type(ar.metrics.MetricDisplay(table=table).table, ar.metrics.TableMetric | None)


def numbers(truth: list[float], pred: list[float]) -> None:
    """Figures of numbers, distributions, probabilities and preferences."""
    figures = [
        ar.metrics.pearson(truth, pred),
        ar.metrics.spearman(truth, pred),
        ar.metrics.kendall_tau_b(truth, pred),
        ar.metrics.lin_ccc(truth, pred),
        ar.metrics.rmse(truth, pred),
        ar.metrics.mae(truth, pred),
        ar.metrics.brier(truth, pred),
        ar.metrics.log_loss(truth, pred),
        ar.metrics.auroc(truth, pred),
        ar.metrics.ece(truth, pred, bins=5),
        ar.metrics.pairwise_accuracy(truth, pred, ties="skip"),
    ]
    assert_type(figures, list[ar.metrics.Estimate])
    assert_type(ar.metrics.bias(truth, pred), ar.metrics.BiasResult)
    assert_type(ar.metrics.systematic_bias(truth, pred), ar.metrics.BiasResult)
    assert_type(ar.metrics.ks_test(truth, pred), ar.metrics.KSTestResult)
    assert_type(ar.metrics.score_distribution(truth), ar.metrics.DistributionResult)
    assert_type(ar.metrics.brier_parts(truth, pred), ar.metrics.BrierParts)
    assert_type(ar.metrics.reliability_curve(truth, pred), ar.metrics.ReliabilityCurve)
    assert_type(ar.metrics.reliability_curve(truth, pred).bins, tuple[ar.metrics.ReliabilityBin, ...])
    assert_type(ar.metrics.accuracy_at_coverage(truth, pred, [0.9]), ar.metrics.CoverageCurve)
    assert_type(
        ar.metrics.accuracy_at_coverage(truth, pred, [0.9]).points, tuple[ar.metrics.CoveragePoint, ...]
    )
    assert_type(ar.metrics.bradley_terry([("a", "b", "a")]), ar.metrics.BradleyTerryResult)
    assert_type(ar.compare_judges(truth, pred, pred, stat="mae"), ar.metrics.JudgeComparison)
    assert_type(ar.compare_judges(truth, pred, pred).statistic, ar.metrics.TestStatistic | None)
    assert_type(ar.metrics.adjust_pvalues([0.01, None], method="bh"), list[float | None])
    assert_type(ar.metrics.sample_size.kappa(0.4, 0.6), ar.metrics.Estimate)


async def critics() -> None:
    """Evaluations, and opinion scores of several."""

    def evaluator(prompt: ar.Prompt) -> dict[str, Any]:
        assert_type(prompt.content, str)
        return {"passed": True, "reason": "…"}

    critic = ar.Critic(evaluator, criteria()[2])
    evaluations = [critic("A text."), await critic.aforward("A text.")]
    assert_type(ar.mean_opinion_score(evaluations), ar.AggregatedScore)
    assert_type(ar.median_opinion_score(evaluations), ar.AggregatedScore)
    assert_type(ar.aggregate_scores(evaluations, method="mean"), ar.AggregatedScore)
    assert_type(ar.inter_rater_reliability({"1": {"ann": 4, "bob": 5}}), float | None)


async def attacks(dataset: ar.RubricDataset, grader: ar.Grader) -> None:
    """Attacks on one's own judge."""
    chosen = ar.apps.redteam.choose_attacks(["control"], ar.apps.redteam.builtin_attacks())
    assert_type(chosen, tuple[ar.apps.redteam.Attack, ...])
    assert_type(
        await ar.apps.redteam.red_team(dataset, grader, attacks=chosen), ar.apps.redteam.RedteamReport
    )
    assert_type(ar.apps.redteam.red_team_sync(dataset, grader).overall, ar.apps.redteam.FlipRate)


async def strategies(grader: ar.Grader) -> None:
    """The best of several candidates."""
    verify = ar.QualitativeCriteria("Is it right?", "gpt-6-luna", num_samples=3)
    cost = ar.QuantitativeCriteria("How long is it?", models())
    assert_type(await verify.evaluate("A text."), ar.apps.strategy.SampledEvaluation[bool])
    assert_type(await cost.evaluate("A text."), ar.apps.strategy.SampledEvaluation[float])
    threshold = ar.apps.strategy.RubricThreshold(rubrics(), grader, 0.7)

    async def both(candidate: str, context: Any) -> bool:
        return await verify.verify(candidate, context) and await threshold.verify(candidate, context)

    for step in (ar.Strategy(verify, cost), ar.Strategy(threshold, threshold), ar.Strategy(cost=len)):
        assert_type(step.run_sync(ar.LLM("gpt-6-luna"), "Write."), ar.apps.strategy.StrategyResult)
    strategy = ar.Strategy(verify=both, cost=cost, num_candidates=2)
    result = await strategy.run(lambda prompt: "A text.", "Write.", max_calls=10, max_cost=1.0)
    assert_type(await strategy.run(iter(["A text."]), "Write."), ar.apps.strategy.StrategyResult)
    assert_type(result.stopped, Literal["max_calls", "max_cost"] | None)
    assert_type(result, ar.apps.strategy.StrategyResult)
    assert_type(result.to_dict(), dict[str, Json])
    assert_type(result.candidates, tuple[ar.apps.strategy.StrategyCandidate, ...])
    assert_type(ar.apps.strategy.extract_code("```python\n1\n```"), str)


async def passes() -> None:
    """Critiques of drafts from files."""

    def teacher(prompt: ar.apps.drafts.TeacherPrompt) -> ar.apps.drafts.TeacherReply:
        return ar.apps.drafts.TeacherReply(text="{}")

    assert_type(ar.generate_critiques("drafts.jsonl", "out", teacher, resume=True), dict[str, Any])
    drafts, critiques, out = "drafts.jsonl", "critiques.jsonl", "out"
    assert_type(
        await ar.apps.drafts.generate_critiques_async(drafts, out, teacher, max_calls=9), dict[str, Any]
    )
    assert_type(ar.apps.drafts.refine(critiques, drafts, out, teacher, max_cost=0.5), dict[str, Any])
    assert_type(
        await ar.apps.drafts.refine_async(critiques, drafts, out, teacher, max_calls=9), dict[str, Any]
    )
    assert_type(ar.load_critique_schema(), dict[str, Any])
    assert_type(ar.load_critique_prompt_template(), str)
    assert_type(ar.apps.drafts.resolve_evidence("output.title", {"title": "…"}), bool)


async def tools() -> None:
    """Critiques for agents."""
    request = ar.apps.tool.CritiqueRequest(content="A text.", criteria=["clarity"])
    table = ar.apps.tool.ProviderTable(
        providers=(ar.apps.tool.Provider("gpt-6-luna", fast=True, name="mini"),)
    )
    assert_type(await ar.apps.tool.critique_evaluate(request, providers=table), ar.apps.tool.CritiqueResponse)
    assert_type(
        ar.apps.tool.critique_evaluate_sync({"content": "A text.", "criteria": "clarity"}),
        ar.apps.tool.CritiqueResponse,
    )
    called = await call_tool("grade", {"text": "A text.", "rubric": "rubric.yaml"}, providers=table)
    assert_type(called["ok"], Json)
    refined = await ar.apps.tool.refine_until("A text.", lambda content, _: content, "clarity", max_calls=9)
    assert_type(refined.content, str)
    assert_type(ar.apps.tool.refine_until_sync("A text.", lambda content, _: content, "clarity").passed, bool)


def data_and_labels(run: ar.EvalResult, before: ar.EvalResult, path: Path) -> None:
    """Data from elsewhere, labels by people, and one run against another."""
    fields: ar.FieldMap = {"submission": "response"}
    dataset = ar.RubricDataset.from_file(path, **fields)
    assert_type(ar.from_healthbench(path, submissions={"a": "A text."}), ar.RubricDataset)
    assert_type(ar.from_paperbench(path), ar.RubricDataset)
    assert_type(ar.from_promptfoo(path), ar.RubricDataset)
    health: ar.runs.HealthBenchScore = ar.runs.healthbench_score(run)
    assert_type(health.score, float | None)
    assert_type(ar.annotation_page(dataset), str)
    ar.write_annotation_page(dataset, path, seed=1)
    merged: ar.datasets.MergedLabels = ar.merge_labels(
        dataset, [path], disputed=ar.disputed_items(run, where=["wrong", "lost"])
    )
    people: ar.metrics.HumanAgreement = ar.metrics.human_agreement(merged.dataset)
    assert_type(people.n_shared, int)
    difference: ar.metrics.RunDifference = ar.metrics.run_difference(before, run, rng=1)
    paired: ar.metrics.PairedDifference = difference.score
    assert_type(paired.difference, ar.metrics.BiasResult)
    assert_type(difference.regressed, bool | None)
    assert_type(difference.score_answered, ar.metrics.PairedDifference | None)
    assert_type(difference.run_verdicts, ar.criteria.VerdictCounts)
    assert_type(run.rescore(aggregation="any"), ar.EvalResult)
    run.to_html(path, baseline=before)


async def tests_and_training(grader: ar.Grader) -> None:
    """Assertions, rewards and spans."""
    assert_type(
        ar.testing.assert_rubric("A text.", rubrics(), 0.7, max_lost=0.1), ar.EnsembleEvaluationReport
    )
    awaited = await ar.testing.assert_rubric_async("A text.", "rubric.yaml", min_score=0.7, grader=grader)
    assert_type(awaited, ar.EnsembleEvaluationReport)
    reward = ar.rewards.as_reward(rubrics(), grader, name="kindness")
    assert_type(reward, Callable[..., list[float | None]])
    assert_type(reward(prompts=["q"], completions=["a"], reference=["r"]), list[float | None])
    awaitable = ar.rewards.as_async_reward([{"requirement": "It is kind."}], grader)
    assert_type(awaitable, Callable[..., Awaitable[list[float | None]]])
    rollout = ar.rewards.as_verifiers_reward(None, grader)
    assert_type(await rollout(prompt="q", completion="a", answer="", state={}), float)
    assert_type(ar.tracing.trace_grader(grader, content=True), ar.Grader)


def errors(error: ar.AutorubricError) -> str | None:
    """The tree of errors, and what its branches carry."""
    if isinstance(error, ar.errors.RubricError | ar.errors.DatasetError):
        faults: ar.FileError = error
        assert_type(faults.faults, tuple[ar.errors.Fault, ...])
    if isinstance(error, ar.errors.RateLimitError | ar.errors.ProviderTimeoutError | ar.errors.ServerError):
        transient: ar.errors.TransientError = error
        assert_type(transient.retry_after, float | None)
    if isinstance(error, ar.errors.ContextLengthError | ar.errors.SchemaRefusedError):
        refused: ar.errors.RequestRefusedError = error
        provider: ar.ProviderError = refused
        assert_type(provider.status, int | None)
    if isinstance(
        error,
        ar.errors.ReplyError
        | ar.errors.NotJudgedError
        | ar.errors.AuthenticationError
        | ar.errors.ModelNotFoundError,
    ):
        judge: ar.JudgeError = error
        assert_type(judge.replies, tuple[str, ...])
    if isinstance(error, ar.errors.JudgeCodeError):
        assert_type(error.place, str)
    if isinstance(error, ar.errors.RunMismatchError):
        assert_type(error.differences, tuple[str, ...])
    runs: tuple[type[ar.errors.RunError], ...] = (
        ar.errors.RunLockedError,
        ar.errors.RunFormatError,
        ar.errors.RunWriteError,
    )
    if isinstance(error, (*runs, ar.errors.ItemFailedError)):
        return None
    if isinstance(
        error, ar.ArgumentError | ar.errors.MissingDependencyError | ar.errors.ProviderConnectionError
    ):
        return str(error)
    return error.limit if isinstance(error, ar.BudgetError) else None


def verdicts(status: Literal["MET"]) -> ar.CriterionVerdict:
    """Verdicts are texts."""
    text: str = ar.CriterionVerdict(status)
    return ar.CriterionVerdict(text)
