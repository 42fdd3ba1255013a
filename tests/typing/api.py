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
from autorubric.values import Json

Rows = list[list[int | None]]


def criteria() -> list[ar.BaseCriterion]:
    """Kinds of criterion, with their parts."""
    plain = ar.Criterion(name="apology", requirement="It apologises.", weight=6.0)
    assert_type(plain.is_binary, bool)
    options = [ar.CriterionOption(label="low", value=0.0), ar.CriterionOption(label="high", value=1.0)]
    scale: ar.ScaleType = "ordinal"
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


@ar.register_kind("brevity")
class BrevityCriterion(ar.BaseCriterion):
    """A kind of the user's own."""

    level: ClassVar[ar.Level] = "interval"
    words: ar.BoundInt = ar.BoundInt(min_val=0, max_val=1000)
    share: ar.BoundFloat = ar.BoundFloat(min_val=0.0, max_val=1.0)
    short: ar.BoolField = ar.BoolField()
    form: ar.ChoiceField = ar.ChoiceField(choices=("prose", "list"))
    quotes: ar.ListField = ar.ListField()
    counts: ar.DictField = ar.DictField()
    reason: ar.TextField = ar.TextField()


def fields() -> list[ar.EvalField]:
    """Fields of an evaluation, whatever they hold."""
    return [ar.TextField(), ar.BoolField()]


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
    ar.register_check("short", lambda text: len(text) < 100)
    return rubric


def models() -> ar.LLMConfig:
    """Models as data."""
    thinking = ar.ThinkingConfig(level=ar.ThinkingLevel.LOW)
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
    assert_type(await ar.generate("Be brief.", "Hello.", "gpt-6-luna"), str)


class Coin:
    """A judge of the user's own."""

    judge_id = "coin"

    async def ask(self, request: ar.JudgeRequest) -> ar.JudgeReply:
        """Heads."""
        assert_type(request.submission, ar.Submission)
        assert_type(request.criterion, ar.BaseCriterion)
        usage = ar.TokenUsage(prompt_tokens=1) + ar.TokenUsage(completion_tokens=1)
        return ar.JudgeReply(answer=ar.CriterionVerdict.MET, reason="heads", usage=usage)


def graders(train: ar.RubricDataset) -> ar.CriterionGrader:
    """Panels of every sort of judge."""
    coin: ar.Judge = Coin()
    recorded = ar.RecordedJudge.panel_from_csv("votes.csv")
    assert_type(recorded, list[ar.RecordedJudge])
    supervised = ar.SupervisedJudge.fit(train, seed=1)
    assert_type(supervised, ar.SupervisedJudge)
    penalties: ar.PenaltyType = "OUTPUT_ONLY"
    penalty = ar.LengthPenalty(free_budget=100, max_cap=200, penalty_type=penalties)
    assert_type(ar.compute_length_penalty("A text.", penalty), float)
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
    assert_type(report.verdicts, ar.VerdictCounts)
    base: ar.EvaluationReport = report
    criterion: ar.CriterionReport = base.report[0]
    assert_type(criterion.decision, ar.Decision)
    assert_type(criterion.decision.answer, ar.Answer | None)
    assert_type(criterion.final_verdict, ar.CriterionVerdict | None)
    assert_type(criterion.final_multi_choice_verdict, ar.MultiChoiceVerdict | None)
    assert_type(criterion.votes, list[ar.JudgeVote])
    vote: ar.MultiChoiceJudgeVote = criterion.votes[0]
    assert_type(vote.verdict, ar.CriterionVerdict | None)
    assert_type(ar.decision(report, threshold=0.7), ar.DecisionResult)


def datasets() -> ar.RubricDataset:
    """Items, files, frames and splits."""
    item = ar.DataItem(submission="A text.", ground_truth=["MET"], ratings={"ann": ["MET"]}, id="1")
    dataset = ar.RubricDataset(rubric=rubrics(), items=[item])
    assert_type(ar.RubricDataset.from_file("data.jsonl"), ar.RubricDataset)
    assert_type(ar.RubricDataset.stream("data.jsonl"), ar.RubricDataset)
    train, test = dataset.split_train_test(10, seed=1)
    parts = dataset.split(train=0.2, dev=0.4, test=0.4, stratify="apology", group="author", seed=1)
    assert_type(parts, ar.DatasetSplit)
    assert_type(parts.dev, ar.RubricDataset)
    assert_type(test.get_item_rubric(0), ar.Rubric)
    assert_type(dataset.to_dataframe(), pd.DataFrame)
    assert_type(dataset.to_dataframe("polars"), pl.DataFrame)
    return train


async def runs(dataset: ar.RubricDataset, grader: ar.Grader) -> ar.EvalResult:
    """Runs, their estimates, parts and results."""
    assert_type(ar.estimate(dataset, grader), ar.RunEstimate)
    assert_type(ar.estimate(dataset, grader).judges, tuple[ar.JudgeEstimate, ...])
    assert_type(await ar.evaluate(dataset, grader, max_cost=1.0, on_mismatch="rejudge"), ar.EvalResult)
    config = ar.EvalConfig(experiment_name="first", max_concurrent_items=8)
    assert_type(await ar.EvalRunner(dataset, grader, config).run(), ar.EvalResult)
    assert_type(ar.run_shard(dataset, grader, 0, 2), ar.EvalResult)
    assert_type(ar.load_run("autorubric.yaml"), ar.RunSetup)
    assert_type(ar.load_run().evaluate_sync(), ar.EvalResult)
    assert_type(dataset.field_map, ar.FieldMap | None)
    assert_type(ar.merge_runs(["a", Path("b")], "c"), ar.EvalResult)
    assert_type(await ar.fill_ground_truth(dataset, grader), ar.RubricDataset)
    assert_type(ar.fill_ground_truth_sync(dataset, grader, force=True), ar.RubricDataset)
    result = ar.evaluate_sync(dataset, grader, experiment_name="first")
    assert_type(result.item_results[0], ar.ItemResult)
    assert_type(result.timing_stats, ar.EvalTimingStats)
    assert_type(result.get_scores(), list[float | None])
    assert_type(result.compute_metrics(dataset), ar.MetricsResult)
    assert_type(result.fingerprint, Mapping[str, Json])
    assert_type(result.verdicts, ar.VerdictCounts)
    assert_type((result.n_verdicts_lost, result.n_verdicts_assumed), tuple[int, int])
    assert_type(result.partly_scored_items, int)
    assert_type(result.verdicts.missing_share, float | None)
    point = ar.replay_escalation(
        result, ar.EscalationConfig(judges=["anthropic/claude-sonnet-5-5"], threshold=0.8)
    )
    assert_type(point, ar.EscalationPoint)
    curve = ar.calibrate_escalation(result, dataset)
    assert_type(curve, ar.EscalationCurve)
    assert_type(curve.threshold_for(0.9), float | None)
    return result


def run_metrics(result: ar.EvalResult, dataset: ar.RubricDataset) -> None:
    assert_type(result.stopped, Literal["max_calls", "max_cost", "same_error"] | None)
    """The figures of a run against truth."""
    metrics = ar.compute_metrics(result, dataset, bootstrap=True, per_judge=True)
    assert_type(metrics.criterion_accuracy, float | None)
    assert_type(metrics.pooled, ar.PooledMetrics)
    assert_type(metrics.bootstrap, ar.BootstrapResults | None)
    assert_type(metrics.na_stats, ar.NaStats)
    assert_type(metrics.score_pearson, ar.CorrelationResult)
    assert_type(metrics.bias, ar.BiasResult)
    assert_type(metrics.bias.ci, ar.ConfidenceInterval | None)
    assert_type(metrics.per_judge, Mapping[str, ar.JudgeMetrics])
    rater: ar.RaterMetrics = metrics.per_judge["mini"]
    for criterion in rater.per_criterion:
        if isinstance(criterion, ar.OrdinalCriterionMetrics):
            assert_type(criterion.weighted_kappa, float | None)
        elif isinstance(criterion, ar.NominalCriterionMetrics):
            assert_type(criterion.per_option, tuple[ar.OptionMetrics, ...])
        elif isinstance(criterion, ar.IntervalCriterionMetrics):
            assert_type(criterion.ccc, float | None)
        elif isinstance(criterion, ar.RankingCriterionMetrics):
            assert_type(criterion.tie_rate, float | None)
        else:
            assert_type(criterion, ar.CriterionMetrics)
            assert_type(criterion.confusion_matrix, ar.ConfusionMatrix)
    assert_type(ar.votes_table(result, dataset), pd.DataFrame)
    assert_type(result.votes_table(library="polars"), pl.DataFrame)
    assert_type(metrics.to_dataframe("polars"), pl.DataFrame)
    assert_type(ar.spreadsheet_safe(metrics.to_dataframe()), pd.DataFrame)


def judges_judged(result: ar.EvalResult, dataset: ar.RubricDataset) -> None:
    """Reports on judges, audits and corrections."""
    report = ar.judge_report(result, dataset)
    assert_type(report, ar.JudgeReport)
    assert_type(report.macro, ar.MacroFigures)
    assert_type(report.micro, ar.HeadlineFigures)
    assert_type(report.panel, ar.RaterReport)
    assert_type(report.panel.failures, ar.RaterFailures)
    assert_type(report.panel.comparisons["better"], ar.ComparisonFigures)
    assert_type(report.human_ceiling, ar.HumanCeilings | None)
    assert_type(report.reliability, Mapping[str, ar.Reliability])
    assert_type(report.per_criterion["apology"], ar.Agreement)
    compared = ar.compare_run(result, dataset, stat="accuracy")
    assert_type(compared, ar.RunComparison)
    assert_type(compared.judges, tuple[ar.JudgePair, ...])
    assert_type(compared.judges[0].coverage, float)
    assert_type(ar.judge_report(result, truth="median").panel_and_best, ar.PanelAndBest | None)
    assert_type(ar.judge_report(result).n_tied_labels, int | None)
    assert_type(result.compute_metrics(truth="majority").n_tied_labels, int | None)
    assert_type(result.dataset.with_truth("mode"), ar.RubricDataset)
    rule: ar.TruthRule = "mean"
    assert_type(ar.compare_run(result, truth=rule).n_tied_labels, int | None)
    assert_type(ar.panel_audit(result), ar.PanelAudit)
    assert_type(ar.bias_report(result), ar.BiasReport)
    assert_type(ar.item_analysis(result), ar.ItemAnalysis)
    assert_type(ar.variance_components(result), ar.VarianceComponents)
    assert_type(ar.self_consistency(result), ar.SelfConsistency)
    corrected = ar.corrected_score(result, dataset, method="ppi++")
    assert_type(corrected, ar.CorrectedScore)
    assert_type(ar.corrected_score(result, calibration=result).n_labelled, int)
    assert_type(corrected.per_criterion["apology"], ar.CorrectedCriterion)
    assert_type(ar.corrected_rate([1, 0], [1, 0], [1, 1]), ar.CorrectedRate)


def two_raters(truth: list[str], pred: list[str], ratings: Rows) -> None:
    """Figures of two columns of labels, and of many raters."""
    binary, nominal = ar.Binary(), ar.Nominal(["a", "b"])
    ordinal, interval = ar.Ordinal(["low", "high"]), ar.Interval(0.0, 1.0)
    assert_type(ar.scale_of(ar.Criterion(requirement="…")), ar.Binary | ar.Nominal | ar.Ordinal | ar.Interval)
    kappa = ar.cohen_kappa(truth, pred, scale=ordinal, weights="quadratic", ci="bca", n_resamples=500)
    assert_type(kappa, ar.Estimate)
    assert_type(kappa.low, float | None)
    with suppress(ar.UndefinedEstimateError):
        assert_type(float(kappa), float)
    figures = [
        ar.accuracy(truth, pred, scale=binary), ar.balanced_accuracy(truth, pred), ar.macro_f1(truth, pred),
        ar.mcc(truth, pred), ar.scott_pi(truth, pred, scale=nominal), ar.gwet_ac(truth, pred, scale=nominal),
        ar.brennan_prediger(truth, pred, scale=nominal), ar.precision(truth, pred), ar.recall(truth, pred),
        ar.specificity(truth, pred), ar.f1(truth, pred, positive="a"), ar.positive_agreement(truth, pred),
        ar.negative_agreement(truth, pred), ar.adjacent_accuracy(truth, pred, scale=ordinal, k=1),
        ar.krippendorff_alpha(ratings, level="ordinal"), ar.fleiss_kappa(ratings), ar.conger_kappa(ratings),
        ar.percent_agreement(ratings), ar.icc(ratings, form="ICC(2,1)"), ar.cronbach_alpha(ratings),
        ar.kendall_w(ratings), ar.wasserstein_distance([0.1], [0.2], scale=interval), ar.wilson(3, 4),
        ar.position_consistency(["a"], ["b"]), ar.clustered_se([0.1, 0.2], ["x", "y"]),
    ]  # fmt: skip
    assert_type(figures, list[ar.Estimate])
    assert_type(ar.fleiss_kappa_by_category(ratings), dict[Any, ar.Estimate])
    found = ar.agreement(truth, pred, scale=ordinal, abstain="as_category")
    assert_type(found, ar.Agreement)
    assert_type(found.per_option, tuple[ar.OptionAgreement, ...])
    assert_type(found.abstentions, ar.Abstentions)
    assert_type(ar.reliability(ratings, scale=ordinal).raters, tuple[ar.RaterShares, ...])
    assert_type(ar.human_ceiling(ratings, stat="kappa"), ar.HumanCeiling)
    tested = ar.alt_test([1, 0], ratings, epsilon=0.1)
    assert_type(tested, ar.AltTestResult)
    assert_type(tested.per_annotator, Mapping[str, ar.AnnotatorTest])
    assert_type(ar.majority_vote(ratings), list[Any])
    assert_type(ar.dawid_skene(ratings), ar.DawidSkeneResult)
    assert_type(ar.spec("cohen_kappa"), ar.MetricSpec)
    assert_type([one.name for one in ar.SPECS], list[str])


def numbers(truth: list[float], pred: list[float]) -> None:
    """Figures of numbers, distributions, probabilities and preferences."""
    figures = [
        ar.pearson(truth, pred), ar.spearman(truth, pred), ar.kendall_tau_b(truth, pred),
        ar.lin_ccc(truth, pred), ar.rmse(truth, pred), ar.mae(truth, pred), ar.js_distance(truth, pred),
        ar.brier(truth, pred), ar.log_loss(truth, pred), ar.auroc(truth, pred), ar.ece(truth, pred, bins=5),
        ar.pairwise_accuracy(truth, pred, ties="skip"), ar.soft_pairwise_accuracy([truth], [pred]),
    ]  # fmt: skip
    assert_type(figures, list[ar.Estimate])
    assert_type(ar.bias(truth, pred), ar.BiasResult)
    assert_type(ar.systematic_bias(truth, pred), ar.BiasResult)
    assert_type(ar.ks_test(truth, pred), ar.KSTestResult)
    assert_type(ar.earth_movers_distance(truth, pred), ar.EMDResult)
    assert_type(ar.score_distribution(truth), ar.DistributionResult)
    assert_type(ar.brier_parts(truth, pred), ar.BrierParts)
    assert_type(ar.reliability_curve(truth, pred), ar.ReliabilityCurve)
    assert_type(ar.reliability_curve(truth, pred).bins, tuple[ar.ReliabilityBin, ...])
    assert_type(ar.accuracy_at_coverage(truth, pred, [0.9]), ar.CoverageCurve)
    assert_type(ar.accuracy_at_coverage(truth, pred, [0.9]).points, tuple[ar.CoveragePoint, ...])
    assert_type(ar.tie_calibrated_pairwise_accuracy(truth, pred), ar.TieCalibratedAccuracy)
    assert_type(ar.bradley_terry([("a", "b", "a")]), ar.BradleyTerryResult)
    assert_type(ar.elo([("a", "b", None)]), ar.EloResult)
    assert_type(ar.compare_judges(truth, pred, pred, stat="mae"), ar.JudgeComparison)
    assert_type(ar.compare_judges(truth, pred, pred).statistic, ar.TestStatistic | None)
    assert_type(ar.adjust_pvalues([0.01, None], method="bh"), list[float | None])
    assert_type(ar.sample_size.kappa(0.4, 0.6), ar.Estimate)


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
    chosen = ar.choose_attacks(["control"], ar.builtin_attacks())
    assert_type(chosen, tuple[ar.Attack, ...])
    assert_type(await ar.red_team(dataset, grader, attacks=chosen), ar.RedteamReport)
    assert_type(ar.red_team_sync(dataset, grader).overall, ar.FlipRate)


async def strategies(grader: ar.Grader) -> None:
    """The best of several candidates."""
    verify = ar.QualitativeCriteria("Is it right?", "gpt-6-luna", num_samples=3)
    cost = ar.QuantitativeCriteria("How long is it?", models())
    assert_type(await verify.evaluate("A text."), ar.SampledEvaluation[bool])
    assert_type(await cost.evaluate("A text."), ar.SampledEvaluation[float])
    threshold = ar.RubricThreshold(rubrics(), grader, 0.7)

    async def both(candidate: str, context: Any) -> bool:
        return await verify.verify(candidate, context) and await threshold.verify(candidate, context)

    for step in (ar.Strategy(verify, cost), ar.Strategy(threshold, threshold), ar.Strategy(cost=len)):
        assert_type(step.run_sync(ar.LLM("gpt-6-luna"), "Write."), ar.StrategyResult)
    strategy = ar.Strategy(verify=both, cost=cost, num_candidates=2)
    result = await strategy.run(lambda prompt: "A text.", "Write.", max_calls=10, max_cost=1.0)
    assert_type(await strategy.run(iter(["A text."]), "Write."), ar.StrategyResult)
    assert_type(result.stopped, Literal["max_calls", "max_cost"] | None)
    assert_type(result, ar.StrategyResult)
    assert_type(result.to_dict(), dict[str, Json])
    assert_type(result.candidates, tuple[ar.StrategyCandidate, ...])
    assert_type(ar.extract_code("```python\n1\n```"), str)


async def passes() -> None:
    """Critiques of drafts from files."""

    def teacher(prompt: ar.TeacherPrompt) -> ar.TeacherReply:
        return ar.TeacherReply(text="{}")

    assert_type(ar.generate_critiques("drafts.jsonl", "out", teacher, resume=True), dict[str, Any])
    drafts, critiques, out = "drafts.jsonl", "critiques.jsonl", "out"
    assert_type(await ar.generate_critiques_async(drafts, out, teacher, max_calls=9), dict[str, Any])
    assert_type(ar.refine(critiques, drafts, out, teacher, max_cost=0.5), dict[str, Any])
    assert_type(await ar.refine_async(critiques, drafts, out, teacher, max_calls=9), dict[str, Any])
    assert_type(ar.load_critique_schema(), dict[str, Any])
    assert_type(ar.load_critique_prompt_template(), str)
    assert_type(ar.resolve_evidence("output.title", {"title": "…"}), bool)


async def tools() -> None:
    """Critiques for agents."""
    request = ar.CritiqueRequest(content="A text.", criteria=["clarity"])
    table = ar.ProviderTable(providers=(ar.Provider("gpt-6-luna", fast=True, name="mini"),))
    assert_type(await ar.critique_evaluate(request, providers=table), ar.CritiqueResponse)
    assert_type(ar.critique_evaluate_sync({"content": "A text.", "criteria": "clarity"}), ar.CritiqueResponse)
    called = await call_tool("grade", {"text": "A text.", "rubric": "rubric.yaml"}, providers=table)
    assert_type(called["ok"], Json)
    refined = await ar.refine_until("A text.", lambda content, _: content, "clarity", max_calls=9)
    assert_type(refined.content, str)
    assert_type(ar.refine_until_sync("A text.", lambda content, _: content, "clarity").passed, bool)


def data_and_labels(run: ar.EvalResult, before: ar.EvalResult, path: Path) -> None:
    """Data from elsewhere, labels by people, and one run against another."""
    fields: ar.FieldMap = {"submission": "response"}
    dataset = ar.RubricDataset.from_file(path, **fields)
    assert_type(ar.from_healthbench(path, submissions={"a": "A text."}), ar.RubricDataset)
    assert_type(ar.from_paperbench(path), ar.RubricDataset)
    assert_type(ar.from_promptfoo(path), ar.RubricDataset)
    health: ar.HealthBenchScore = ar.healthbench_score(run)
    assert_type(health.score, float | None)
    assert_type(ar.annotation_page(dataset), str)
    ar.write_annotation_page(dataset, path, seed=1)
    merged: ar.MergedLabels = ar.merge_labels(
        dataset, [path], disputed=ar.disputed_items(run, where=["wrong", "lost"])
    )
    people: ar.HumanAgreement = ar.human_agreement(merged.dataset)
    assert_type(people.n_shared, int)
    difference: ar.RunDifference = ar.run_difference(before, run, rng=1)
    paired: ar.PairedDifference = difference.score
    assert_type(paired.difference, ar.BiasResult)
    assert_type(difference.regressed, bool | None)
    assert_type(difference.score_answered, ar.PairedDifference | None)
    assert_type(difference.run_verdicts, ar.VerdictCounts)
    assert_type(run.rescored(aggregation="any"), ar.EvalResult)
    run.to_html(path, baseline=before)


async def tests_and_training(grader: ar.Grader) -> None:
    """Assertions, rewards and spans."""
    assert_type(ar.assert_rubric("A text.", rubrics(), 0.7, max_lost=0.1), ar.EnsembleEvaluationReport)
    awaited = await ar.assert_rubric_async("A text.", "rubric.yaml", min_score=0.7, grader=grader)
    assert_type(awaited, ar.EnsembleEvaluationReport)
    reward = ar.as_reward(rubrics(), grader, name="kindness")
    assert_type(reward, Callable[..., list[float | None]])
    assert_type(reward(prompts=["q"], completions=["a"], reference=["r"]), list[float | None])
    awaitable = ar.as_async_reward([{"requirement": "It is kind."}], grader)
    assert_type(awaitable, Callable[..., Awaitable[list[float | None]]])
    rollout = ar.as_verifiers_reward(None, grader)
    assert_type(await rollout(prompt="q", completion="a", answer="", state={}), float)
    assert_type(ar.traced(grader, content=True), ar.Grader)


def errors(error: ar.AutorubricError) -> str | None:
    """The tree of errors, and what its branches carry."""
    if isinstance(error, ar.RubricError | ar.DatasetError):
        faults: ar.FileError = error
        assert_type(faults.faults, tuple[ar.Fault, ...])
    if isinstance(error, ar.RateLimitError | ar.ProviderTimeoutError | ar.ServerError):
        transient: ar.TransientError = error
        assert_type(transient.retry_after, float | None)
    if isinstance(error, ar.ContextLengthError | ar.SchemaRefusedError):
        refused: ar.RequestRefusedError = error
        provider: ar.ProviderError = refused
        assert_type(provider.status, int | None)
    if isinstance(error, ar.ReplyError | ar.NotJudgedError | ar.AuthenticationError | ar.ModelNotFoundError):
        judge: ar.JudgeError = error
        assert_type(judge.replies, tuple[str, ...])
    if isinstance(error, ar.JudgeCodeError):
        assert_type(error.place, str)
    if isinstance(error, ar.RunMismatchError):
        assert_type(error.differences, tuple[str, ...])
    runs: tuple[type[ar.RunError], ...] = (ar.RunLockedError, ar.RunFormatError, ar.RunWriteError)
    if isinstance(error, (*runs, ar.ItemFailedError)):
        return None
    if isinstance(error, ar.ArgumentError | ar.MissingDependencyError | ar.ProviderConnectionError):
        return str(error)
    return error.limit if isinstance(error, ar.BudgetError) else None


def verdicts(status: Literal["MET"]) -> ar.CriterionVerdict:
    """Verdicts are texts."""
    text: str = ar.CriterionVerdict(status)
    return ar.CriterionVerdict(text)
