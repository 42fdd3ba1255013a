"""What a report holds: the figures of the metrics, marks of cells, texts, and nothing that is markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from autorubric import (
    ComparativeCriterion,
    Criterion,
    DataItem,
    NumericalRatingCriterion,
    Rubric,
    RubricDataset,
)
from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError, FileError
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.metrics import (
    Ordinal,
    bias,
    bias_report,
    cohen_kappa,
    item_analysis,
    judge_report,
    krippendorff_alpha,
    percent_agreement,
)
from autorubric.metrics.core.estimate import Reason
from autorubric.metrics.core.item_scores import TRUTH
from autorubric.metrics.core.scales import Weights
from autorubric.metrics.figures.specs import shown_metrics
from autorubric.plotting import plot_agreement_matrix
from autorubric.reports import report_html
from autorubric.reports.item_details import truncation_for
from autorubric.reports.items import marks_of
from autorubric.reports.read_run import ReadRun
from autorubric.reports.templates import REASONS, script_json
from autorubric.scoring.reports import is_split
from tests.attacks.hostile import TEXTS
from tests.reports.conftest import Reports
from tests.reports.runs import graded, long_dataset, panel

_BLOCK = re.compile(r'<script type="application/json" id="([\w-]+)">(.*?)</script>', re.DOTALL)


def held(page: str) -> dict[str, Any]:
    """The data blocks of a page by name."""
    return {name: json.loads(content) for name, content in _BLOCK.findall(page)}


@pytest.fixture(scope="module")
def kinds(reports: Reports) -> dict[str, Any]:
    """The data of the report on every kind, with its baseline."""
    return held(Path(reports.url("kinds").removeprefix("file://")).read_text(encoding="utf-8"))


def test_json_in_a_page_is_never_markup() -> None:
    """No text closes the script, opens a comment or breaks a line of it, and all come back as they were."""
    texts = [*TEXTS.values(), "</script><!--<script>", "\ud800", "&lt;\u2028\u2029", "<![CDATA["]
    written = script_json(texts)
    assert not re.search("[<>&\u2028\u2029\x00-\x1f\ud800-\udfff]", written)
    assert json.loads(written) == texts
    written.encode("utf-8")


def test_numbers_that_json_has_not_are_refused() -> None:
    """NaN never gets into a page."""
    with pytest.raises(ValueError, match="JSON compliant"):
        script_json([float("nan")])


@pytest.mark.parametrize("reason", get_args(Reason))
def test_every_reason_has_words(reason: str) -> None:
    """Whatever may be undefined says why in words."""
    words = REASONS[reason]
    assert words and "_" not in words


def test_the_policy_names_the_styles_and_the_program_of_the_page(reports: Reports) -> None:
    """The policy allows what is in the page by its digest, and nothing from anywhere else."""
    page = Path(reports.url("kinds").removeprefix("file://")).read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    told = policy[1].replace("&#39;", "'")
    assert told.startswith("default-src 'none'; ")
    assert "unsafe" not in told
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
        assert f"{tag}-src 'sha256-{digest}'" in told
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", outside)
    assert " style=" not in outside


def test_split_cells_are_the_same_with_and_without_a_table(reports: Reports) -> None:
    """A report on a criterion says that its votes differ where the table of votes does."""
    run = reports.run("kinds")
    split = marks_of(run).cells["split"]
    cells = [
        (one.item_idx, report)
        for one in run.item_results
        for report in (one.report.report if one.report else ())
        if report.criterion.level != "ranking"
    ]
    found = {(at, report.name) for at, report in cells if is_split(report)}
    assert found
    assert found == split & {(at, report.name) for at, report in cells}


def test_figures_are_those_of_the_metrics(reports: Reports, kinds: dict[str, Any]) -> None:
    """Kappa, accuracy, confusion and means, headline and criterion by criterion."""
    run = reports.run("kinds")
    wanted, analysed = judge_report(run), item_analysis(run)
    told = kinds["data"]
    assert told["overview"]["metrics"]["kappa"]["v"] == pytest.approx(wanted.macro.kappa.value, abs=1e-5)
    assert told["overview"]["metrics"]["kappa"]["lo"] == pytest.approx(wanted.macro.kappa.low, abs=1e-5)
    for key, rate in (("recall", wanted.macro.recall), ("specificity", wanted.macro.specificity)):
        assert told["overview"]["metrics"][key]["v"] == pytest.approx(rate.value, abs=1e-5)
        assert told["overview"]["metrics"][key]["lo"] == pytest.approx(rate.low, abs=1e-5)
    binary = {one["name"]: one for one in told["criteria"] if "specificity" in one["metrics"]}
    for name, one in binary.items():
        rates, agreed = one["metrics"], wanted.per_criterion[name]
        assert rates["specificity"]["v"] == pytest.approx(agreed.specificity.value, abs=1e-5)
        assert rates["recall"]["v"] == pytest.approx(agreed.recall.value, abs=1e-5)
    assert binary and len(binary) < len(told["criteria"])
    means = {one.name: one.mean for one in analysed.criteria}
    for one in told["criteria"]:
        labelled = wanted.per_criterion.get(one["name"])
        if one["name"] in means and means[one["name"]].value is not None:
            assert one["mean"]["v"] == pytest.approx(means[one["name"]].value, abs=1e-5)
        if labelled is None:
            continue
        if labelled.accuracy.value is not None:
            assert one["metrics"]["accuracy"]["v"] == pytest.approx(labelled.accuracy.value, abs=1e-5)
        if "confusion" in one:
            assert one["confusion"]["counts"] == [list(row) for row in labelled.table]
    by_name = {one["name"]: one for one in told["judges"]["rows"]}
    assert set(by_name) == {"panel", "ann", "bob", "cyd"}
    for judge, found in wanted.per_judge.items():
        assert by_name[judge]["metrics"]["kappa"]["v"] == pytest.approx(found.macro.kappa.value, abs=1e-5)


def test_leanings_are_those_of_the_bias_report(reports: Reports, kinds: dict[str, Any]) -> None:
    """Of every judge each leaning with its interval, its adjusted p-value or the reason why it has none."""
    run = reports.run("kinds")
    wanted = bias_report(run, run.dataset).per_judge
    rows = {one["name"]: one for one in kinds["data"]["judges"]["rows"] if one["kind"] == "judge"}
    assert set(rows) == set(wanted) == {"ann", "bob", "cyd"}
    n_defined = 0
    for judge, found in wanted.items():
        told = rows[judge]["biases"]
        for kind in ("leniency", "pass_rate_difference", "length_lean", "position_lean", "self_preference"):
            one = getattr(found, kind)
            assert told[kind]["v"] == pytest.approx(one.effect.value, abs=1e-5)
            assert told[kind].get("lo") == pytest.approx(one.effect.low, abs=1e-5)
            assert told[kind]["p"] == pytest.approx(one.adjusted_p_value, abs=1e-5)
            assert told[kind]["named"] == (one.cautious_p_value is not None and one.cautious_p_value < 0.05)
            assert told[kind]["explained_by"] == (one.explained_by or None)
            assert ("why" in told[kind]) == (one.effect.reason is not None)
            n_defined += one.effect.value is not None
    assert n_defined >= 9


def test_costs_are_sums_of_votes(reports: Reports, kinds: dict[str, Any]) -> None:
    """The run's cost and tokens, each item's and each judge's; of a judge that tells none there is none."""
    run, told = reports.run("kinds"), kinds["data"]
    votes = [
        vote
        for result in run.item_results
        if result.report
        for one in result.report.report
        for vote in one.votes
    ]
    costs = [vote.completion_cost for vote in votes if vote.completion_cost is not None]
    assert told["run"]["cost"] == pytest.approx(sum(costs), abs=1e-5)
    assert told["run"]["tokens"] == sum(vote.token_usage.total_tokens for vote in votes if vote.token_usage)
    assert sum(one for one in told["items"]["cost"] if one) == pytest.approx(sum(costs), abs=1e-4)
    for row in told["judges"]["rows"][1:]:
        mine = [vote.completion_cost for vote in votes if vote.judge_id == row["name"]]
        known = [cost for cost in mine if cost is not None]
        assert row["votes"] == len(mine)
        assert row["cost"] == (pytest.approx(sum(known)) if known else None)
    assert told["judges"]["rows"][-1]["cost"] is None


@pytest.mark.parametrize("name", ["kinds", "long"])
def test_histograms_count_what_was_scored(reports: Reports, name: str) -> None:
    """Twenty bars from 0 to 1 of the scores, and of the scores by the labels on what is labelled."""
    told = held(Path(reports.url(name).removeprefix("file://")).read_text(encoding="utf-8"))["data"]
    run = ReadRun.of(reports.run(name))
    scores = [score for score in reports.run(name).get_scores() if score is not None]
    by_labels = run.table.scores[TRUTH]
    assert told["overview"]["edges"] == pytest.approx([at / 20 for at in range(21)])
    for key, given in (("counts", scores), ("truth_counts", by_labels[~np.isnan(by_labels)])):
        assert told["overview"][key] == np.histogram(given, bins=20, range=(0, 1))[0].tolist()
    assert [told["overview"][key] for key in ("mean", "median", "n_scored")] == pytest.approx(
        [np.mean(scores), np.median(scores), len(scores)], abs=1e-5
    )


def test_alphas_are_those_of_the_judges_decisions(reports: Reports, kinds: dict[str, Any]) -> None:
    """Each criterion's reliability is that of `reliability` on what the judges decided."""
    run = reports.run("kinds")
    (told,) = [one for one in kinds["data"]["criteria"] if one["name"] == "apology"]
    codes = [
        [
            made.answer.index if made.answer is not None and not made.answer.abstains else None
            for made in one.judge_decisions.values()
        ]
        for result in run.item_results
        if result.report
        for one in result.report.report
        if one.name == "apology"
    ]
    wanted = krippendorff_alpha(codes)
    assert wanted.value is not None
    assert told["reliability"]["alpha"]["v"] == pytest.approx(wanted.value, abs=1e-5)


def test_the_most_confusing_items_come_first(tmp_path: Path) -> None:
    """By how far answers are from the labels, then what failed, abstained or split; the rest is left out."""

    def judge(name: str) -> FunctionJudge:
        def says(request: JudgeRequest) -> Any:
            if request.item_id == "a vote failed" and name == "two":
                raise RuntimeError("it broke")
            if request.item_id == "a vote abstains" and name == "two":
                return "CANNOT_ASSESS"
            return 9 if request.item_id == "split" and name == "two" else 5

        return FunctionJudge(function=says, judge_id=name)

    truth: dict[str, int | None] = {
        "fine": 5,
        "near": 6,
        "split": None,
        "far": 1,
        "a vote abstains": None,
        "farthest": 10,
        "a vote failed": None,
    }
    items = [
        DataItem(id=name, submission=name, ground_truth=None if label is None else {"n": label})
        for name, label in truth.items()
    ]
    rubric = Rubric([NumericalRatingCriterion(name="n", requirement="N.", min_value=0, max_value=10)])
    run = graded(tmp_path, RubricDataset(rubric=rubric, items=items), [judge("one"), judge("two")])
    told = held(report_html(run))["data"]
    listed = [told["items"]["id"][at] for at in told["criteria"][0]["confusing"]]
    assert listed == ["farthest", "far", "a vote failed", "a vote abstains", "split"]


def test_the_matrix_is_the_agreement_of_pairs(tmp_path: Path) -> None:
    """Two judges that differ on one of four cells agree on three quarters."""
    items = [DataItem(id=str(at), submission=str(at)) for at in range(4)]
    dataset = RubricDataset(rubric=Rubric([Criterion(name="a", requirement="A.")]), items=items)
    judges = [
        FunctionJudge(function=lambda request: "MET", judge_id="yes"),
        FunctionJudge(function=_says_no_to("3"), judge_id="no to one"),
    ]
    told = held(report_html(graded(tmp_path, dataset, judges)))["data"]["judges"]["matrix"]
    names = told["names"]
    found = {(names[a], names[b]): figure for a, b, figure, _ in told["cells"]}
    assert found["yes", "no to one"]["v"] == 0.75
    wanted = percent_agreement(
        [[1, 1], [1, 1], [1, 1], [1, 0]], cluster=[0, 1, 2, 3], labels=2, ci="analytic"
    )
    assert found["yes", "no to one"]["lo"] == pytest.approx(wanted.low, abs=1e-5)


def test_the_matrix_has_kappas_too(reports: Reports, kinds: dict[str, Any]) -> None:
    """Against the labels they are the headline of each judge; between judges those of `cohen_kappa`."""
    matrix = kinds["data"]["judges"]["matrix"]
    found = {(matrix["names"][a], matrix["names"][b]): kappa for a, b, _, kappa in matrix["cells"]}
    wanted = judge_report(reports.run("kinds"))
    for judge, one in wanted.per_judge.items():
        assert found["labels", judge]["v"] == pytest.approx(one.macro.kappa.value, abs=1e-5)
    run = reports.run("long")
    tones = long_dataset(1).rubric
    assert tones is not None
    values = [answer.value or 0.0 for answer in tones.by_name("tone").answers()]
    kappas = []
    for name in tones.names:
        pairs = [
            [report.judge_decisions[judge].answer for judge in ("ann", "bob")]
            for result in run.item_results
            if result.report
            for report in result.report.report
            if report.name == name
        ]
        codes = [[one.index for one in pair if one] for pair in pairs if _both_answer(pair)]
        scale = Ordinal(range(4), values) if name == "tone" else None
        weights: Weights = "quadratic" if scale else None
        left, right = zip(*codes, strict=True)
        kappas.append(float(cohen_kappa(left, right, scale=scale, weights=weights)))
    told = held(report_html(run))["data"]["judges"]["matrix"]
    (kappa,) = [one[3] for one in told["cells"] if [told["names"][at] for at in one[:2]] == ["ann", "bob"]]
    assert kappa["v"] == pytest.approx(sum(kappas) / len(kappas), abs=1e-5)
    assert kappa["how"] == "Cohen's kappa, mean over criteria, 5 of 5 criteria defined"


def _both_answer(pair: list[Any]) -> bool:
    return all(one is not None and not one.abstains for one in pair)


def test_judges_who_agree_by_chance_alone_have_no_kappa(tmp_path: Path) -> None:
    """Two who say the same of everything agree wholly, and chance alone explains it: no kappa, a reason."""
    items = [DataItem(id=str(at), submission=str(at)) for at in range(4)]
    dataset = RubricDataset(rubric=Rubric([Criterion(name="a", requirement="A.")]), items=items)
    judges = [FunctionJudge(function=lambda request: "MET", judge_id=name) for name in ("one", "two")]
    told = held(report_html(graded(tmp_path, dataset, judges)))["data"]["judges"]["matrix"]
    _, _, agreed, kappa = told["cells"][0]
    assert agreed["v"] == 1
    assert (kappa["v"], kappa["why"]) == (None, "all answers are the same")


def test_one_criterion_has_nothing_to_be_set_against(tmp_path: Path) -> None:
    """Discrimination is against the other criteria; where there is none, the report says so."""
    items = [DataItem(id=str(at), submission=str(at)) for at in range(4)]
    dataset = RubricDataset(rubric=Rubric([Criterion(name="a", requirement="A.")]), items=items)
    told = held(
        report_html(graded(tmp_path, dataset, [FunctionJudge(function=_says("MET"), judge_id="one")]))
    )
    found = told["data"]["criteria"][0]["discrimination"]
    assert found == {"v": None, "why": "the rubric has only one criterion"}


def test_a_run_of_comparisons_alone_has_a_headline(tmp_path: Path) -> None:
    """Accuracy and kappa of comparisons are those of what they came to, by place and not by name."""
    truth = ["right", "left", "left", "tie", "right", "left"]
    said = ["right", "left", "right", "tie", "right", "left"]
    criteria = [ComparativeCriterion(name=name, requirement="Better?", both_orders=False) for name in "ab"]
    items = [
        DataItem(
            id=str(at),
            submission={f"left{at}": "1", f"right{at}": "2"},
            ground_truth=dict.fromkeys("ab", one if one == "tie" else f"{one}{at}"),
        )
        for at, one in enumerate(truth)
    ]

    def says(request: JudgeRequest) -> str:
        answer = said[int(request.item_id)]
        return answer if answer == "tie" else f"{answer}{request.item_id}"

    judges = [FunctionJudge(function=says, judge_id="one")]
    told = held(report_html(graded(tmp_path, RubricDataset(rubric=Rubric(criteria), items=items), judges)))[
        "data"
    ]
    wanted = cohen_kappa(truth, said)
    for one in (told["overview"], *told["judges"]["rows"], *told["criteria"]):
        assert one["metrics"]["kappa"]["v"] == pytest.approx(wanted.value, abs=1e-5)
        assert one["metrics"]["accuracy"]["v"] == pytest.approx(5 / 6, abs=1e-5)
        assert one["metrics"]["kappa"]["lo"] < one["metrics"]["kappa"]["v"] < one["metrics"]["kappa"]["hi"]
    assert told["criteria"][0]["confusion"] == {
        "labels": ["first", "second", "tie"],
        "counts": [[2, 1, 0], [0, 2, 0], [0, 0, 1]],
    }


def _says_no_to(item: str) -> Any:
    def says(request: JudgeRequest) -> str:
        return "UNMET" if request.item_id == item else "MET"

    return says


@pytest.fixture
def marked(tmp_path: Path) -> dict[str, Any]:
    """The report on five items of which each has one mark, and the last has none."""

    def judge(name: str) -> Any:
        def says(request: JudgeRequest) -> Any:
            if request.item_id == "failed":
                raise RuntimeError("it broke")
            if request.item_id == "abstained" and name == "one":
                return "CANNOT_ASSESS"
            if request.item_id == "split" and name == "one":
                return 9 if request.criterion.name == "n" else "UNMET"
            return 5 if request.criterion.name == "n" else "MET"

        return FunctionJudge(function=says, judge_id=name)

    rubric = Rubric(
        [Criterion(name="a", requirement="A."), NumericalRatingCriterion(name="n", requirement="N.")]
    )
    names = ("fine", "abstained", "split", "wrong", "failed")
    truth = {"wrong": {"a": "UNMET", "n": 1}, "fine": {"a": "MET", "n": 6}}
    items = [DataItem(id=name, submission=name, ground_truth=truth.get(name)) for name in names]
    run = graded(
        tmp_path, RubricDataset(rubric=rubric, items=items), [judge(name) for name in ("one", "two", "three")]
    )
    return held(report_html(run))


def test_cells_are_marked_for_what_they_are(marked: dict[str, Any]) -> None:
    """Wrong 1, split 2, abstained 4, failed 8; a number near its label, or near the others, is neither."""
    told = marked["data"]
    flags = dict(zip(told["items"]["id"], zip(*[iter(told["cells"]["flags"])] * 2, strict=True), strict=True))
    assert flags == {"fine": (0, 0), "abstained": (4, 4), "split": (2, 2), "wrong": (1, 1), "failed": (8, 8)}


@pytest.mark.parametrize(
    ("criterion", "label", "read", "answers"),
    [
        (Criterion(name="a", requirement="A."), "yes", "MET", {"MET": False, "UNMET": True}),
        (Criterion(name="a", requirement="A."), True, "MET", {"MET": False, "UNMET": True}),
        (Criterion(name="a", requirement="A."), 0, "UNMET", {"MET": True, "UNMET": False}),
        (NumericalRatingCriterion(name="a", requirement="A."), "7", "7", {9: False, 2: True}),
        (
            ComparativeCriterion(name="a", requirement="A.", margin=2, both_orders=False),
            1,
            "two by 1",
            {2: False, 0.4: False, -1: True, 0: True},
        ),
    ],
    ids=["word", "truth value", "number for a verdict", "number", "margin"],
)
def test_votes_are_marked_by_what_the_label_means(
    tmp_path: Path, criterion: BaseCriterion, label: Any, read: str, answers: dict[Any, bool]
) -> None:
    """The label is told as it was read; a vote is off by the measure of decisions, not by its spelling."""
    compared = criterion.level == "ranking"
    submission = {"one": "One.", "two": "Two."} if compared else "One."
    item = DataItem(id="x", submission=submission, ground_truth={"a": label})
    judges = [FunctionJudge(function=_says(answer), judge_id=str(answer)) for answer in answers]
    run = graded(tmp_path, RubricDataset(rubric=Rubric([criterion]), items=[item]), judges)
    chunk = held(report_html(run))["details-0"]
    (told,) = chunk["items"][0]["criteria"]
    assert chunk["strings"][told["truth"]] == read
    assert [bool(vote.get("w")) for vote in told["votes"]] == list(answers.values())


def _says(answer: Any) -> Any:
    return lambda request: answer


def test_numbers_are_told_without_their_tail(tmp_path: Path) -> None:
    """A mean of three votes is shortened alike in the heat map, on the item's page and in the comparison."""
    rubric = Rubric([NumericalRatingCriterion(name="n", requirement="N.", min_value=0, max_value=10)])
    item = DataItem(id="x", submission="One.", ground_truth={"n": 2})
    judges = [
        FunctionJudge(function=_says(given), judge_id=name)
        for name, given in (("one", 5), ("two", 5), ("three", 6))
    ]
    dataset = RubricDataset(rubric=rubric, items=[item])
    run = graded(tmp_path, dataset, judges)
    page = held(report_html(run, baseline=graded(tmp_path, dataset, judges[1:], "before")))
    told, chunk = page["data"], page["details-0"]
    assert told["strings"][told["cells"]["label"][0]] == "5.33333"
    assert chunk["strings"][chunk["items"][0]["criteria"][0]["answer"]] == "5.33333"
    assert told["strings"][told["cells"]["truth"][0]] == "2"
    assert told["strings"][told["compare"]["labels"][0]] == "5.5"
    assert told["first"][0]["why"] == "differs from the label: 5.33333 instead of 2"


def test_an_item_without_a_score_has_failed(tmp_path: Path) -> None:
    """Where all abstain no vote failed, but there is no score: the filter of failures counts the item too."""
    items = [DataItem(submission="One.")]
    dataset = RubricDataset(rubric=Rubric([Criterion(name="a", requirement="A.")]), items=items)
    run = graded(tmp_path, dataset, [FunctionJudge(function=_says("CANNOT_ASSESS"), judge_id="one")])
    told = held(report_html(run))["data"]
    assert told["items"]["score"] == [None]
    assert told["counts"]["failed"] == {"cells": 0, "items": 1}


def test_what_to_look_at_first_is_ranked(marked: dict[str, Any]) -> None:
    """Failures come first, then wrong answers, split votes, abstentions and low scores, each item once."""
    told = marked["data"]
    listed = [(one["kind"], told["items"]["id"][one["item"]]) for one in told["first"]]
    assert listed == [
        ("failed", "failed"),
        ("wrong", "wrong"),
        ("split", "split"),
        ("abstained", "abstained"),
        ("low", "fine"),
    ]
    assert told["first"][0]["why"] == "has no score"
    assert told["first"][1]["why"].startswith("differs from the label: ")
    assert {kind: counted["items"] for kind, counted in told["counts"].items()} == dict.fromkeys(
        ("wrong", "split", "abstained", "failed"), 1
    )


def test_every_vote_is_there_with_its_reason(reports: Reports, kinds: dict[str, Any]) -> None:
    """Votes, reasons and errors of all items and criteria are in the page."""
    run, votes = reports.run("kinds"), []
    for chunk in (content for name, content in kinds.items() if name.startswith("details-")):
        for item in chunk["items"]:
            for one in item["criteria"]:
                for vote in one["votes"]:
                    texts = [chunk["strings"][vote[key]] if key in vote else "" for key in ("r", "e")]
                    votes.append((kinds["data"]["run"]["judges"][vote["j"]], *texts))
    wanted = [
        (vote.judge_id, vote.reason, vote.error or "")
        for result in run.item_results
        if result.report
        for one in result.report.report
        for vote in one.votes
    ]
    assert votes == wanted


def test_texts_are_cut_where_asked_and_where_all_are_too_long(reports: Reports) -> None:
    """Each text is cut at `max_chars`; 0 leaves them out and keeps the reasons."""
    run = reports.run("unlabelled")
    page = held(report_html(run, max_chars=30))
    item, strings = page["details-0"]["items"][0], page["details-0"]["strings"]
    submission = next(one for one in item["texts"] if one[0] == "Submission")
    whole = run.dataset.items[0].submission
    assert (strings[submission[1]], submission[2]) == (whole[:30], len(whole))
    # Queries are shorter than that.
    assert page["data"]["run"]["n_cut"] == 3
    none = held(report_html(run, max_chars=0))
    assert not any(
        one[1:] != [none["details-0"]["strings"].index(""), one[2]]
        for one in none["details-0"]["items"][0]["texts"]
    )
    assert any("on apology:" in text for text in none["details-0"]["strings"])


def test_the_length_of_all_texts_is_bounded(reports: Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the texts of a run are more than a page should carry, each is cut at less."""
    read = ReadRun.of(reports.run("unlabelled"))
    total = sum(len(item.submission) + len(item.prompt or "") for item in read.dataset.items)
    assert truncation_for(read, 20_000, most_of_all=total).most == 20_000
    assert truncation_for(read, 20_000, most_of_all=total - 1).most < 1_000


@pytest.mark.parametrize("given", [-1, 1.5, True])
def test_a_faulty_length_is_refused(reports: Reports, given: Any) -> None:
    """A length is a whole number from 0."""
    with pytest.raises(ArgumentError, match="max_chars"):
        report_html(reports.run("unlabelled"), max_chars=given)


def test_a_folder_that_is_not_there_is_a_file_error(reports: Reports, tmp_path: Path) -> None:
    """`to_html` says where it could not write."""
    with pytest.raises(FileError, match="nowhere"):
        reports.run("unlabelled").to_html(tmp_path / "nowhere" / "report.html")


def test_a_comparison_is_paired_by_item(reports: Reports, kinds: dict[str, Any]) -> None:
    """The difference of scores is that of `bias` on the items that both scored."""
    run, base = reports.run("kinds"), reports.run("baseline")
    wanted = bias(base.get_scores(), run.get_scores())
    told = kinds["data"]["compare"]
    assert wanted.ci is not None
    assert told["score"]["v"] == pytest.approx(wanted.mean_bias, abs=1e-5)
    assert (told["score"]["lo"], told["score"]["hi"]) == pytest.approx(
        (wanted.ci.lower, wanted.ci.upper), abs=1e-5
    )
    assert (told["n_both"], told["n_only_run"], told["n_only_base"]) == (29, 0, 0)
    assert [one["name"] for one in told["headline"]] == [
        "proportion of correct answers",
        "mean error of scores",
    ]
    assert told["verdicts"] == [run.verdicts.to_dict(), base.verdicts.to_dict()]


def test_a_baseline_of_other_items_is_refused(reports: Reports, tmp_path: Path) -> None:
    """Runs without an item in common, or with another text under an id, are not compared."""
    run = reports.run("unlabelled")
    other = graded(
        tmp_path, long_dataset(3).with_items([DataItem(id="x", submission="Sorry.")]), panel()[:1], "a"
    )
    with pytest.raises(ArgumentError, match="no item in common"):
        report_html(run, baseline=other)
    same = graded(
        tmp_path,
        long_dataset(3).with_items([DataItem(id="reply-00000", submission="Other.")]),
        panel()[:1],
        "b",
    )
    with pytest.raises(ArgumentError, match="a different text"):
        report_html(run, baseline=same)


def test_a_run_that_failed_throughout_has_a_report(tmp_path: Path) -> None:
    """Without a score there are no figures, and the page says so with reasons."""

    def breaks(request: JudgeRequest) -> str:
        raise RuntimeError("it broke")

    run = graded(tmp_path, long_dataset(3), [FunctionJudge(function=breaks, judge_id="broken")])
    told = held(report_html(run))["data"]
    assert told["overview"]["mean"] is None
    assert told["items"]["score"] == [None] * 3
    assert told["overview"]["metrics"]["kappa"]["why"]
    assert told["run"]["n_failed"] == 3


def test_plots_and_reports_agree_on_how_far_judges_agree(reports: Reports, tmp_path: Path) -> None:
    """Share, kappa and n of the plot are those of the page to the digit; silent judges count in neither."""
    pyplot = pytest.importorskip("matplotlib.pyplot")

    def said(divisor: int, silent: int) -> Any:
        def judge(request: JudgeRequest) -> str:
            at = int(str(request.item_id))
            if at % 4 == silent:
                return "CANNOT_ASSESS" if at % 8 == silent else "gibberish"
            return "MET" if at % divisor else "UNMET"

        return judge

    dataset = RubricDataset(
        rubric=Rubric([Criterion(name="a", requirement="Good?"), Criterion(name="b", requirement="Kind?")]),
        items=[DataItem(id=str(at), submission=f"text {at}") for at in range(80)],
    )
    judges = [
        FunctionJudge(function=said(divisor, silent), judge_id=f"j{silent}")
        for divisor, silent in ((2, 0), (3, 1), (5, 2))
    ]
    for run in (graded(tmp_path, dataset, judges), reports.run("kinds")):
        matrix = held(report_html(run))["data"]["judges"]["matrix"]
        axes = plot_agreement_matrix(run, ax=pyplot.subplots()[1])
        drawn = {
            tuple(int(place) for place in text.get_position()): text.get_text().split("\n")
            for text in axes.texts
        }
        names = [tick.get_text() for tick in axes.get_xticklabels()]
        pairs = 0
        for a, b, share, kappa in matrix["cells"]:
            if matrix["kinds"][a] == matrix["kinds"][b] == "judge":
                at = names.index(matrix["names"][a]), names.index(matrix["names"][b])
                wanted = [f"{share['v']:.2f}", f"κ {kappa['v']:.2f}", f"n = {share['n']}"]
                assert drawn[at] == wanted
                pairs += 1
        assert pairs == 3
    pyplot.close("all")


def test_scripts_name_no_metric() -> None:
    """Columns, tiles and names of metrics are data, so a declared metric appears on the page."""
    assets = files("autorubric.reports").joinpath("assets").iterdir()
    scripts = [one for one in assets if one.name.endswith(".js")]
    assert len(scripts) > 10
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        for one in shown_metrics():
            assert not re.search(rf'\.{one.key}\b|"{one.key}"', text), (script.name, one.key)
