"""A rubric as a sequence of criteria: names, sections, score, grading."""

import asyncio
import copy
import itertools
import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st

from autorubric.criteria import Criterion
from autorubric.errors import ArgumentError, RubricError
from autorubric.rubric import Rubric
from autorubric.scoring import CannotAssessStrategy, EnsembleEvaluationReport

SCALE = [{"label": "poor", "value": 0.0}, {"label": "good", "value": 1.0}, {"label": "n/a", "na": True}]


def small_rubric() -> Rubric:
    """Two binary criteria, one of them a penalty, and a scale with an NA option."""
    return Rubric(
        [
            Criterion(name="cites", requirement="It cites a source.", weight=6),
            Criterion(name="rude", requirement="It is rude.", weight=-4),
            Criterion(name="style", requirement="How good is the style?", weight=4, options=SCALE),
        ]
    )


def test_it_is_an_immutable_sequence() -> None:
    """A rubric has a length, an order, items and slices, and nothing can be set in it."""
    rubric = small_rubric()
    assert len(rubric) == 3
    assert [criterion.name for criterion in rubric] == ["cites", "rude", "style"]
    assert rubric[-1].name == "style"
    assert rubric[:2] == (rubric[0], rubric[1])
    assert rubric[1] in rubric
    with pytest.raises(TypeError):
        rubric[0] = rubric[1]  # type: ignore[index]
    with pytest.raises(AttributeError):
        rubric.guidelines = "x"  # type: ignore[misc]


def test_equality_and_hash() -> None:
    """Rubrics are equal where criteria, guidelines and sections are."""
    rubric = small_rubric()
    assert rubric == small_rubric()
    assert hash(rubric) == hash(small_rubric())
    assert rubric != Rubric(rubric, guidelines="Be strict.")
    assert rubric != Rubric(rubric[:2])
    assert rubric != list(rubric)
    assert rubric != Rubric.from_dict({"sections": [{"name": "all", "criteria": list(rubric)}]})


def test_repr_names_the_criteria() -> None:
    """The repr shows how many criteria there are and their names."""
    assert repr(small_rubric()) == "Rubric(3 criteria: cites, rude, style)"


def test_copies_and_pickles() -> None:
    """Workers get an equal rubric."""
    rubric = Rubric(small_rubric(), guidelines="Be fair.")
    assert copy.deepcopy(rubric) == rubric
    assert pickle.loads(pickle.dumps(rubric)) == rubric  # noqa: S301


def test_nameless_criteria_are_named_by_position() -> None:
    """The nameless become criterion_<position>; a name that is taken is not taken twice."""
    rubric = Rubric(
        [
            {"requirement": "a"},
            {"name": "criterion_3", "requirement": "b"},
            {"requirement": "c"},
            {"name": "criterion_3_2", "requirement": "d"},
        ]
    )
    assert rubric.names == ("criterion_1", "criterion_3", "criterion_3_3", "criterion_3_2")


@given(st.lists(st.none() | st.sampled_from(["a", *(f"criterion_{n}" for n in range(4)), "criterion_1_2"])))
def test_names_never_collide(names: list[str | None]) -> None:
    """Whatever names are given, once each, all names of a rubric differ and the given ones stay."""
    unique = [name for place, name in enumerate(names) if name is None or name not in names[:place]] or [None]
    rubric = Rubric([{"name": name, "requirement": "x"} for name in unique])
    assert len(set(rubric.names)) == len(unique)
    assert all(given in (None, name) for given, name in zip(unique, rubric.names, strict=True))


def test_duplicate_names_are_refused() -> None:
    """Two criteria of one name are an error that says where."""
    with pytest.raises(RubricError, match=r"criteria\[1\]\.name: the name 'a' is already used"):
        Rubric([{"name": "a", "requirement": "x"}, {"name": "a", "requirement": "y"}])


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ([], "criteria must not be empty"),
        ("criteria", "criteria must be a list; got str"),
        ({"criteria": []}, "use Rubric.from_dict"),
        (5, "criteria must be a list; got int"),
        ([5], r"criteria\[0\]: a criterion must be a mapping with 'requirement'.*got 5"),
    ],
)
def test_what_is_no_list_of_criteria(criteria: Any, message: str) -> None:
    """A rubric of nothing, or of something else, is an error."""
    with pytest.raises(RubricError, match=message):
        Rubric(criteria)


def test_guidelines_are_text() -> None:
    """Guidelines are a text."""
    with pytest.raises(RubricError, match="guidelines must be a string; got 5"):
        Rubric(small_rubric(), guidelines=5)  # type: ignore[arg-type]


def test_sections_label_criteria() -> None:
    """Sections name consecutive criteria and change neither order nor score."""
    rubric = Rubric.from_dict(
        {
            "sections": [
                {"name": "content", "criteria": small_rubric()[:2]},
                {"name": "form", "criteria": small_rubric()[2:]},
            ]
        }
    )
    assert {name: [c.name for c in held] for name, held in rubric.sections.items()} == {
        "content": ["cites", "rude"],
        "form": ["style"],
    }
    assert rubric.compute_score(["MET", "UNMET", "good"]) == small_rubric().compute_score(
        ["MET", "UNMET", "good"]
    )
    assert small_rubric().sections == {}


def test_by_name_and_weight() -> None:
    """A criterion is found by name, and the nearest name is given where there is none."""
    rubric = small_rubric()
    assert rubric.by_name("rude") is rubric[1]
    assert rubric.total_positive_weight == 10
    with pytest.raises(ArgumentError, match="unknown criterion 'stile'; did you mean 'style'"):
        rubric.by_name("stile")


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["MET", "UNMET", "good"], 1.0),
        (["MET", "MET", "poor"], 0.2),
        (["UNMET", "MET", "poor"], 0.0),
        (["yes", False, 1], 1.0),
        (["MET", "UNMET", "n/a"], 1.0),
        (["MET", "CANNOT_ASSESS", "poor"], 0.6),
        ([None, None, "good"], 1.0),
        ([None, None, None], None),
        (["CANNOT_ASSESS", "CANNOT_ASSESS", "n/a"], None),
        ({"style": "good", "cites": "UNMET"}, 0.4),
        ({}, None),
    ],
)
def test_score_of_labels(verdicts: Any, expected: float | None) -> None:
    """Labels in order or by name give the score of the formula; what is open or not judged is left out."""
    assert small_rubric().compute_score(verdicts) == (
        expected if expected is None else pytest.approx(expected)
    )


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (CannotAssessStrategy.SKIP, 1.0),
        (CannotAssessStrategy.ZERO, 0.4),
        (CannotAssessStrategy.PARTIAL, 0.4 + 0.25 * (6 - 4) / 10),
        (CannotAssessStrategy.FAIL, 0.0),
    ],
)
def test_score_with_open_criteria(strategy: CannotAssessStrategy, expected: float) -> None:
    """CANNOT_ASSESS counts as the strategy says."""
    labels = ["CANNOT_ASSESS", "CANNOT_ASSESS", "good"]
    score = small_rubric().compute_score(labels, cannot_assess_strategy=strategy, partial_credit=0.25)
    assert score == pytest.approx(expected)


def test_raw_score() -> None:
    """Without normalising the score is the weighted sum."""
    assert small_rubric().compute_score(["MET", "MET", "good"], normalize=False) == 6.0


@pytest.mark.parametrize(
    ("verdicts", "message"),
    [
        (["MET"], "1 labels for 3 criteria"),
        ("MET", "labels must be a list or a mapping"),
        (5, "labels must be a list or a mapping"),
        ({"stile": "good"}, "unknown criterion 'stile'; did you mean 'style'"),
        (["maybe", "UNMET", "fine"], "cites: 'maybe' is not a verdict.*; style: 'fine' is not an option"),
    ],
)
def test_labels_that_do_not_fit(verdicts: Any, message: str) -> None:
    """Labels that are too few, of no criterion, or not allowed are errors; all wrong ones are named."""
    with pytest.raises(ArgumentError, match=message):
        small_rubric().compute_score(verdicts)


@given(st.permutations(range(3)), st.sampled_from(list(itertools.product(["MET", "UNMET"], repeat=2))))
def test_score_does_not_depend_on_order(order: list[int], labels: tuple[str, str]) -> None:
    """The score of labels by name is the same in whatever order the criteria stand."""
    rubric = small_rubric()
    named = {"cites": labels[0], "rude": labels[1], "style": "good"}
    assert Rubric([rubric[place] for place in order]).compute_score(named) == rubric.compute_score(named)


class Recorder:
    """A grader that keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    async def grade(
        self,
        to_grade: Any,
        rubric: Rubric,
        query: str | None = None,
        reference_submission: str | None = None,
        item_id: str | None = None,
    ) -> EnsembleEvaluationReport:
        """A fixed report."""
        self.asked.append((to_grade, rubric, query, reference_submission, item_id))
        return EnsembleEvaluationReport(score=0.5)


def test_grading_passes_everything_on() -> None:
    """A rubric hands the submission, itself and what belongs to it to the grader."""
    grader, rubric = Recorder(), small_rubric()
    report = rubric.grade_sync("text", grader, "query", "reference", "id-1")
    assert report.score == 0.5
    assert grader.asked == [("text", rubric, "query", "reference", "id-1")]


async def grade_both_ways(grader: Recorder) -> None:
    """Grades with the coroutine and, inside its loop, with the synchronous twin."""
    await small_rubric().grade("a", grader)
    small_rubric().grade_sync("b", grader)


def test_synchronous_twin_works_inside_a_loop() -> None:
    """`grade_sync` works where an event loop runs already."""
    grader = Recorder()
    asyncio.run(grade_both_ways(grader))
    assert [asked[0] for asked in grader.asked] == ["a", "b"]


@pytest.mark.parametrize("wrong", [{"cannot_assess_strategy": "bogus"}, {"partial_credit": 3.0}])
def test_a_policy_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    """A function's bad argument is an error of ours, and says what is allowed."""
    rubric = Rubric([Criterion(name="a", requirement="r")])
    with pytest.raises(ArgumentError, match="must be one of skip"):
        rubric.compute_score(["MET"], **wrong)
