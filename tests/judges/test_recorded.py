"""Recorded votes as judges."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from autorubric.criteria import (
    AnalyticRubricCriterion,
    Answer,
    ChecklistCriterion,
    ComparativeCriterion,
    NarrativeCriterion,
    NumericalRatingCriterion,
    RubricDimension,
)
from autorubric.errors import ArgumentError, FileError, ReplyError
from autorubric.grading import CriterionGrader
from autorubric.judges import JudgeReply, RecordedJudge
from autorubric.rubric import Rubric
from autorubric.scoring import CriterionReport
from tests.criteria.kinds import Warmth
from tests.doubles import binary, choice, request_for

HEAD = "item_id,criterion,rater,rater_type,value"


def table(folder: Path, *lines: str, head: str = HEAD, encoding: str = "utf-8") -> Path:
    path = folder / "labels.csv"
    path.write_text("\n".join([head, *lines, ""]), encoding=encoding)
    return path


def ask(judge: RecordedJudge, criterion: Any = None, item_id: str = "i1", sample: int = 0) -> JudgeReply:
    request = request_for(criterion or binary(), None, item_id=item_id, sample=sample)
    return asyncio.run(judge.ask(request))


def code(reply: JudgeReply) -> Any:
    return reply.answer.code if isinstance(reply.answer, Answer) else reply.answer


def test_votes_match_item_and_criterion(tmp_path: Path) -> None:
    """A row answers its item and criterion, and no other; no text is needed."""
    judge = RecordedJudge.from_csv(table(tmp_path, "i1,claim,gpt,llm,MET", "i2,claim,gpt,llm,no"))
    assert judge.judge_id == "gpt"
    assert code(ask(judge)) == "MET"
    assert code(ask(judge, item_id="i2")) == "UNMET"
    assert not ask(judge, item_id="i3").asked
    assert not ask(judge, binary("other")).asked


def test_criteria_match_in_each_row(tmp_path: Path) -> None:
    """Rows may spell a criterion differently; two spellings in a cell are two criteria."""
    names = ("claim", "Claim", "claim ", "CLAIM")
    rows = [f"i{at},{name},gpt,llm,MET" for at, name in enumerate(names)]
    judge = RecordedJudge.from_csv(table(tmp_path, *rows))
    assert [code(ask(judge, item_id=f"i{at}")) for at in range(4)] == ["MET"] * 4
    with pytest.warns(UserWarning, match="has votes on an item under two spellings of a criterion"):
        judge = RecordedJudge.from_csv(table(tmp_path, *rows, "i1,CLAIM,gpt,llm,UNMET"))
    assert [code(ask(judge, binary(name), "i1")) for name in ("Claim", "CLAIM")] == ["MET", "UNMET"]
    wide = table(tmp_path, "i1,claim,MET,UNMET,7", head="item_id,criterion,gpt,ann,batch_id")
    assert code(ask(RecordedJudge.from_csv(wide, "ann"))) == "UNMET"


def test_probabilities_need_no_value(tmp_path: Path) -> None:
    """The most probable answer is the vote's answer."""
    row = 'i1,claim,gpt,"{""MET"": 0.8, ""UNMET"": 0.2}"'
    judge = RecordedJudge.from_csv(table(tmp_path, row, head="item_id,criterion,rater,probabilities"))
    reply = ask(judge)
    assert (code(reply), reply.probabilities) == (None, {"MET": 0.8, "UNMET": 0.2})


def test_a_panel_has_columns_of_probabilities(tmp_path: Path) -> None:
    """Each rater's rows have their own distribution."""
    path = table(tmp_path, "i1,claim,a,0.8,0.2", "i1,claim,b,0.3,0.7", head="item_id,criterion,rater,p1,p2")
    panel = RecordedJudge.panel_from_csv(path, probabilities={"p1": "MET", "p2": "UNMET"})
    shares = [{"MET": 0.8, "UNMET": 0.2}, {"MET": 0.3, "UNMET": 0.7}]
    assert [ask(judge).probabilities for judge in panel] == shares


def test_labels_are_mapped(tmp_path: Path) -> None:
    """`labels` turns raw values into the criterion's own, `INVALID` too where it is named."""
    path = table(tmp_path, "i1,claim,gpt,llm,Ja", "i2,claim,gpt,llm,INVALID")
    judge = RecordedJudge.from_csv(path, labels={"Ja": "MET", "INVALID": "UNMET"})
    assert code(ask(judge)) == "MET"
    assert code(ask(judge, item_id="i2")) == "UNMET"


def test_an_unmapped_invalid_is_a_failed_vote(tmp_path: Path) -> None:
    """It is unreadable, on every kind of criterion."""
    path = table(tmp_path, "i1,claim,gpt,llm,INVALID", "i1,scale,gpt,llm,INVALID", "i1,w,gpt,llm,INVALID")
    judge = RecordedJudge.from_csv(path)
    for criterion in (binary(), choice(), Warmth(name="w")):
        with pytest.raises(ReplyError, match=r"INVALID|integer"):
            ask(judge, criterion)


def test_na_is_the_na_option_or_an_abstention(tmp_path: Path) -> None:
    """`NA` chooses the criterion's NA option; without one it is CANNOT_ASSESS."""
    judge = RecordedJudge.from_csv(table(tmp_path, "i1,claim,r,human,NA", "i1,scale,r,human,NA"))
    assert ask(judge).answer is None
    assert ask(judge, choice()).answer is None
    assert ask(judge, choice(na="does not apply")).answer.label == "does not apply"
    assert ask(judge, choice(na="na")).answer.na


def test_missing_rows_may_be_filled(tmp_path: Path) -> None:
    """By default a missing row was not asked; a label may stand in for it."""
    path = table(tmp_path, "i1,claim,gpt,llm,MET")
    assert not ask(RecordedJudge.from_csv(path), item_id="i9").asked
    filled = ask(RecordedJudge.from_csv(path, missing="UNMET"), item_id="i9")
    assert (filled.asked, filled.answer) == (True, "UNMET")


def test_samples_reasons_and_confidences(tmp_path: Path) -> None:
    """Further columns are read; a sample answers its own index; a byte order mark does not matter."""
    path = table(
        tmp_path,
        'i1,claim,gpt,llm,MET,0,"sure, yes",0.75',
        "i1,claim,gpt,llm,UNMET,1,,",
        head=HEAD + ",sample,reason,confidence",
        encoding="utf-8-sig",
    )
    judge = RecordedJudge.from_csv(path)
    first, second = ask(judge), ask(judge, sample=1)
    assert (code(first), first.reason, first.confidence) == ("MET", "sure, yes", 0.75)
    assert (code(second), second.reason, second.confidence) == ("UNMET", "", None)
    assert not ask(judge, sample=2).asked


def test_one_of_several_raters_must_be_named(tmp_path: Path) -> None:
    """The error lists them; the one named gives the judge its id unless another is given."""
    path = table(tmp_path, "i1,claim,a,llm,MET", "i1,claim,b,human,UNMET")
    with pytest.raises(ArgumentError, match="has 2 raters: a, b; pass rater="):
        RecordedJudge.from_csv(path)
    with pytest.raises(ArgumentError, match="has no rater 'c'; available: a, b"):
        RecordedJudge.from_csv(path, "c")
    assert RecordedJudge.from_csv(path, "b").judge_id == "b"
    assert RecordedJudge.from_csv(path, "b", judge_id="expert").judge_id == "expert"


def test_a_panel_is_a_judge_for_each_rater(tmp_path: Path) -> None:
    """By default the models, in the order of their rows; others by type or name."""
    path = table(tmp_path, "i1,claim,b,llm,MET", "i1,claim,a,llm,UNMET", "i1,claim,h,human,MET")
    assert [judge.judge_id for judge in RecordedJudge.panel_from_csv(path)] == ["b", "a"]
    everyone = RecordedJudge.panel_from_csv(path, rater_type=None)
    assert [judge.judge_id for judge in everyone] == ["b", "a", "h"]
    named = RecordedJudge.panel_from_csv(path, raters=["a"], labels={"UNMET": "MET"})
    assert [code(ask(judge)) for judge in named] == ["MET"]
    with pytest.raises(ArgumentError, match="no llm rater h; available: b, a"):
        RecordedJudge.panel_from_csv(path, raters=["h"])
    with pytest.raises(ArgumentError, match="no robot rater"):
        RecordedJudge.panel_from_csv(path, rater_type="robot")


def test_a_rater_has_one_value_a_sample(tmp_path: Path) -> None:
    """Duplicates are told, all of them."""
    rows = ["i1,claim,a,llm,MET"] * 2 + ["i2,claim,a,llm,MET"] * 2
    with pytest.raises(FileError) as caught:
        RecordedJudge.from_csv(table(tmp_path, *rows))
    assert [fault.path for fault in caught.value.faults] == ["i1/claim/a", "i2/claim/a"]


@pytest.mark.parametrize(
    ("head", "lines", "told"),
    [
        ("item_id,criterion,value", ["i1,claim,MET"], "column 'rater' not found"),
        (HEAD, ["i1,claim,a"], r"line 2\): the row has 3 cells, but the header has 5"),
        (
            HEAD + ",sample",
            ["i1,claim,a,llm,MET,x"],
            r"line 2\): sample must be a non-negative integer; got 'x'",
        ),
        (HEAD + ",sample", ["i1,claim,a,llm,MET,-1"], "sample must be a non-negative integer; got '-1'"),
        (
            HEAD + ",confidence",
            ["i1,claim,a,llm,MET,sure"],
            "confidence must be a number from 0 to 1, or empty; got 'sure'",
        ),
        (
            HEAD + ",confidence",
            ["i1,claim,a,llm,MET,7"],
            "confidence must be a number from 0 to 1, or empty; got '7'",
        ),
    ],
)
def test_faulty_tables_are_told(tmp_path: Path, head: str, lines: list[str], told: str) -> None:
    """Each fault with its line, what was given and what is allowed."""
    with pytest.raises(FileError, match=told):
        RecordedJudge.from_csv(table(tmp_path, *lines, head=head))


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """One reading of the error is enough to mend the file."""
    head = HEAD + ",sample,confidence"
    path = table(tmp_path, "i1,claim,a,llm,MET,x,", "i2,claim,a,llm,MET,0,7", head=head)
    with pytest.raises(FileError) as caught:
        RecordedJudge.from_csv(path)
    assert [fault.line for fault in caught.value.faults] == [2, 3]


def test_unreadable_files_are_told(tmp_path: Path) -> None:
    """No file, bytes that are no text, and no table."""
    with pytest.raises(FileError, match="file not found"):
        RecordedJudge.from_csv(tmp_path / "absent.csv")
    path = tmp_path / "latin.csv"
    path.write_bytes(HEAD.encode() + b"\ni1,claim,M\x81ller,human,MET\n")
    with pytest.raises(FileError, match="not UTF-8"):
        RecordedJudge.from_csv(path)
    with pytest.raises(FileError, match=r"'.txt' is not supported; supported: .csv, .tsv, .jsonl"):
        RecordedJudge.from_csv(path.rename(tmp_path / "labels.txt"))


def test_kinds_with_several_fields_have_labels_in_json(tmp_path: Path) -> None:
    """A checklist and an analytic rubric are recorded as mappings, lists or numbers."""
    items = ChecklistCriterion(name="ck", items={"a": "It has a.", "b": "It has b."})
    scored = AnalyticRubricCriterion(
        name="an",
        dimensions={key: RubricDimension(description=key, min_score=1, max_score=5) for key in "cs"},
    )
    cells = {
        "i1": (items, '"{""a"": true, ""b"": false}"', 0.5),
        "i2": (items, '"[""a"", ""b""]"', 1.0),
        "i3": (items, "0.5", 0.5),
        "i4": (scored, '"{""c"": 5, ""s"": 1}"', 0.5),
        "i5": (scored, "2", 0.25),
    }
    rows = [f"{item_id},{one.name},gpt,llm,{cell}" for item_id, (one, cell, _) in cells.items()]
    judge = RecordedJudge.from_csv(table(tmp_path, *rows))
    for item_id, (criterion, _, value) in cells.items():
        answer = ask(judge, criterion, item_id=item_id).answer
        assert isinstance(answer, Answer)
        assert answer.value == value


def test_recorded_votes_need_no_reference(tmp_path: Path) -> None:
    """Whoever voted on a comparison with a reference had it."""
    rubric = Rubric(
        [
            NumericalRatingCriterion(
                name="n", min_value=0, max_value=10, mode="relative_to_target", requirement="r"
            )
        ]
    )
    judge = RecordedJudge.from_csv(table(tmp_path, "i1,n,gpt,llm,5"))
    report = rubric.grade_sync("text", CriterionGrader(judges=[judge]), item_id="i1")
    assert report.score == 0.5


def test_na_on_a_narrative_is_an_abstention(tmp_path: Path) -> None:
    """Nobody writes feedback that says NA."""
    judge = RecordedJudge.from_csv(table(tmp_path, "i1,n,gpt,llm,NA", "i2,n,gpt,llm,Well said."))
    assert ask(judge, NarrativeCriterion(name="n")).answer is None
    assert code(ask(judge, NarrativeCriterion(name="n"), item_id="i2")) == "Well said."


def test_a_table_without_types_is_of_every_type(tmp_path: Path) -> None:
    """Where no column says what raters are, all of them make the panel; a field may hold a whole text."""
    long = "x" * 200_000
    path = table(tmp_path, f"i1,claim,a,MET,{long}", head="item_id,criterion,rater,value,reason")
    [judge] = RecordedJudge.panel_from_csv(path)
    assert len(ask(judge).reason) == 200_000


def test_equal_votes_describe_alike(tmp_path: Path) -> None:
    """The order of rows does not count, a value does."""
    rows = ["i1,claim,a,llm,MET", "i2,claim,a,llm,UNMET"]
    one = RecordedJudge.from_csv(table(tmp_path, *rows)).describe()
    assert RecordedJudge.from_csv(table(tmp_path, *reversed(rows))).describe() == one
    assert RecordedJudge.from_csv(table(tmp_path, rows[0])).describe() != one


def test_recorded_votes_grade(tmp_path: Path) -> None:
    """A panel of recorded raters is a panel like any other: failed, unasked and answered votes."""
    path = table(tmp_path, "i1,claim,a,llm,MET", "i1,claim,b,llm,INVALID", "i2,claim,c,llm,MET")
    grader = CriterionGrader(judges=RecordedJudge.panel_from_csv(path), on_failure="exclude")
    report = Rubric([binary()]).grade_sync(None, grader, item_id="i1")
    assert [vote.status for vote in report.report[0].votes] == ["answered", "failed", "not_asked"]
    assert report.score == 1.0
    assert report.judge_scores == {"a": 1.0, "b": None, "c": None}


# Pairs in both orders

PAIRS = ("i1,better,gpt@ab,llm,x", "i1,better,gpt@ba,llm,y", "i2,better,gpt@ab,llm,INVALID")
CANDIDATES = {"x": "one", "y": "two"}


def pair(**fields: Any) -> ComparativeCriterion:
    return ComparativeCriterion(name="better", **fields)


def graded(
    judge: RecordedJudge, item_id: str = "i1", criterion: ComparativeCriterion | None = None
) -> CriterionReport:
    grader = CriterionGrader(judges=[judge], on_failure="exclude")
    rubric = Rubric([criterion or pair()])
    return asyncio.run(grader.grade(CANDIDATES, rubric, item_id=item_id)).report[0]


def test_pairs_are_recorded_in_both_orders(tmp_path: Path) -> None:
    """Each order has its rater; the values name the same candidates in both."""
    orders = {"ab": "gpt@ab", "ba": "gpt@ba"}
    judge = RecordedJudge.from_csv(table(tmp_path, *PAIRS), orders=orders, judge_id="gpt")
    found = graded(judge)
    assert [(vote.judge_id, vote.order, vote.answer) for vote in found.votes] == [
        ("gpt", ("x", "y"), "x"),
        ("gpt", ("y", "x"), "y"),
    ]
    assert found.position_inconsistent == ("gpt",)
    lost = graded(judge, "i2")
    assert [vote.status for vote in lost.votes] == ["failed", "not_asked"]
    assert lost.votes[1].order == ("y", "x")
    assert RecordedJudge.from_csv(table(tmp_path, *PAIRS), orders=orders).judge_id == "gpt@ab"
    assert set(judge.describe()) == {"judge", "votes", "missing", "swapped"}


def test_one_order_recorded_is_one_vote(tmp_path: Path) -> None:
    """Without `orders` a row is no vote on both orders, and the other order is not asked."""
    judge = RecordedJudge.from_csv(table(tmp_path, *PAIRS), "gpt@ab")
    assert [vote.status for vote in graded(judge).votes] == ["answered", "not_asked"]
    assert (graded(judge).final_answer, graded(judge).position_inconsistent) == ("x", ())
    only = graded(judge, criterion=pair(both_orders=False))
    assert [vote.status for vote in only.votes] == ["answered"]


def test_pairs_without_texts_are_read_from_numbers(tmp_path: Path) -> None:
    """Nothing says which names there are then; numbers do not need them."""
    judge = RecordedJudge.from_csv(table(tmp_path, "i1,better,gpt,llm,-1"))
    report = asyncio.run(CriterionGrader(judges=[judge]).grade(None, Rubric([pair()]), item_id="i1"))
    assert report.score == 1.0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"orders": {"ab": "gpt@ab"}}, "orders must be "),
        ({"orders": {"ab": "gpt@ab", "ba": "gpt@ba"}, "rater": "gpt@ab"}, "without the argument rater"),
        ({"orders": {"ab": "gpt@ab", "ba": "claude@ba"}}, "has no rater claude@ba"),
    ],
)
def test_orders_that_are_none(arguments: dict[str, Any], told: str, tmp_path: Path) -> None:
    """Both orders need a rater that is in the file."""
    with pytest.raises(ArgumentError, match=told):
        RecordedJudge.from_csv(table(tmp_path, *PAIRS), **arguments)
