"""EvalFields, kinds by tag, and registered checks."""

from __future__ import annotations

import math
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, ValidationError, create_model

from autorubric.criteria import (
    Answer,
    BaseCriterion,
    BoolField,
    BoundFloat,
    BoundInt,
    ChoiceField,
    DictField,
    EvalField,
    ListField,
    PassFailCriterion,
    TextField,
    register_check,
    register_kind,
)
from autorubric.criteria.base import criterion_from_dict, criterion_to_dict, kind_of, registered_kinds
from autorubric.criteria.conditions import check_name, find_check, is_registered
from autorubric.errors import ArgumentError, ReplyError
from tests.criteria.kinds import Counts, Findings, Polite, Share, Tone, TwoMarks, Warmth


def model_of(field: EvalField) -> type[BaseModel]:
    return create_model("Model", given=field.get_field())


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**30), st.floats(0, 1))
def test_positions_on_whole_numbers_stay_in_range(low: int, width: int, share: float) -> None:
    """Any whole number in range stands in [0, 1], the ends at its ends."""
    field = BoundInt(min_val=low, max_val=low + width)
    assert (field.position(low), field.position(low + width)) == (0.0, 1.0)
    position = field.position(low + int(width * share) if width < 2**50 else low + width // 3)
    assert position is not None
    assert 0.0 <= position <= 1.0


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.floats(0, 1))
def test_positions_on_numbers_stay_in_range(one: float, other: float, share: float) -> None:
    """Any number in range stands in [0, 1]."""
    low, high = sorted((one, other))
    if low == high:
        return
    field = BoundFloat(min_val=low, max_val=high)
    position = field.position(min(high, max(low, low + share * (high - low))))
    assert position is not None
    assert 0.0 <= position <= 1.0


def test_at_is_the_inverse_of_position() -> None:
    """A position comes back as what stands there, a whole number where it is one."""
    rating = BoundInt(min_val=1, max_val=7)
    assert [rating.at(rating.position(given) or 0.0) for given in range(1, 8)] == list(range(1, 8))
    assert rating.at(0.75) == 5.5
    assert BoundFloat(min_val=-1.0, max_val=3.0).at(0.5) == 1.0


@pytest.mark.parametrize("bounds", [(1, 1), (2, 1)])
def test_inverted_ranges_are_refused(bounds: tuple[int, int]) -> None:
    """The lower bound is below the upper one."""
    for field in (BoundInt, BoundFloat):
        with pytest.raises(ValidationError, match="must be less than"):
            field(min_val=bounds[0], max_val=bounds[1])


def test_ranges_have_a_finite_width() -> None:
    """Infinite bounds, and a width that no float can hold, are refused."""
    with pytest.raises(ValidationError, match="finite"):
        BoundFloat(min_val=0.0, max_val=math.inf)
    with pytest.raises(ValidationError, match="too wide for a float"):
        BoundFloat(min_val=-1.7e308, max_val=1.7e308)


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        (BoundInt(min_val=1, max_val=5), 5, 6),
        (BoundInt(min_val=1, max_val=5), 1, 1.5),
        (BoundFloat(min_val=0.0, max_val=1.0), 0.25, math.nan),
        (TextField(), "a", 1),
        (BoolField(), False, "perhaps"),
        (ChoiceField(choices=("a", "b")), "b", "c"),
        (DictField(value_type=int), {"a": 1}, {"a": "x"}),
        (DictField(value_type=float), {"a": 1.0}, {"a": math.nan}),
        (ListField(item_type=bool), [True], [3]),
        (ListField(item_type=float), [0.5], [math.inf]),
    ],
)
def test_fields_take_what_they_declare(field: EvalField, good: object, bad: object) -> None:
    """Each field's pydantic type takes a good value, with its description, and refuses a bad one."""
    described = field.model_copy(update={"description": "what to put here"})
    model = model_of(described)
    assert model.model_validate({"given": good}).model_dump() == {"given": good}
    assert model.model_json_schema()["properties"]["given"]["description"] == "what to put here"
    with pytest.raises(ValidationError):
        model.model_validate({"given": bad})


def test_a_list_may_be_left_out() -> None:
    """A list not given is empty; of other fields each must be given."""
    assert model_of(ListField()).model_validate({}).model_dump() == {"given": []}
    with pytest.raises(ValidationError):
        model_of(DictField()).model_validate({})


@pytest.mark.parametrize("field", [DictField(value_type=int), ListField(item_type=float)])
def test_scalar_types_are_written_by_name(field: EvalField) -> None:
    """Fields with a type go through JSON, and other types are refused with those allowed."""
    assert type(field).model_validate_json(field.model_dump_json()) == field
    with pytest.raises(ValidationError, match="must be one of str, int, float, bool"):
        DictField.model_validate({"value_type": "complex"})


@pytest.mark.parametrize("choices", [(), ("a",), ("a", "a")])
def test_choices_are_two_or_more_and_differ(choices: tuple[str, ...]) -> None:
    """A choice without an alternative is none."""
    with pytest.raises(ValidationError, match="at least two different strings"):
        ChoiceField(choices=choices)


def test_a_kind_declares_its_answers_by_its_field() -> None:
    """A yes-or-no kind has two answers, a choice as many as choices, a number none that could be listed."""
    assert [(a.code, a.value, a.index) for a in Polite(name="p").answers()] == [(False, 0, 0), (True, 1, 1)]
    assert [(a.code, a.value) for a in Tone(name="t").answers()] == [
        ("warm", None),
        ("cold", None),
        ("neutral", None),
    ]
    assert Warmth(name="w").answers() == ()


def test_a_bare_value_answers_a_kind_with_one_measure() -> None:
    """A function or a label may give the value alone; with two measures it must name them."""
    assert Warmth(name="w").read(4).value == 0.5
    assert Findings(name="f").read([1, 2]).code == [1, 2]
    assert Warmth(name="w").read({next(iter(Warmth(name="w").eval_fields)): 4}).value == 0.5
    with pytest.raises(ReplyError, match="expected an object with form, content, explanation; got 4"):
        TwoMarks(name="m").read(4)


def test_the_value_is_the_mean_position_of_the_measures() -> None:
    """Texts carry no value, and stay out of what is compared between judges."""
    answer = TwoMarks(name="m").read({"form": 5, "content": 10, "explanation": "so"})
    assert answer.value == 0.75
    assert answer.code == {"form": 5, "content": 10}
    assert answer.reason == "so"
    assert answer.evaluation == {"form": 5, "content": 10, "explanation": "so"}


def test_a_kind_may_value_its_own_way() -> None:
    """A kind that overrides `value_of` measures, whatever its fields."""

    class Politeness(BaseCriterion):
        tone: ChoiceField = ChoiceField(choices=("rude", "polite"))

        def value_of(self, evaluation: object) -> float | None:
            return 1.0 if getattr(evaluation, "tone", "") == "polite" else 0.0

    criterion = Politeness(name="p")
    assert criterion.measures
    assert [answer.value for answer in criterion.answers()] == [0.0, 1.0]
    assert criterion.answer_at(0.25) == Answer(code=None, value=0.25)


def test_kinds_are_found_by_tag() -> None:
    """A registered kind is written with its tag, and an unknown tag names the nearest."""
    assert registered_kinds()["test_warmth"] is Warmth
    assert criterion_to_dict(Warmth(name="w"))["type"] == "test_warmth"
    assert kind_of("test_warmth") is Warmth
    with pytest.raises(ArgumentError, match="criterion 'test_warmt'; did you mean 'test_warmth'"):
        criterion_from_dict({"type": "test_warmt", "name": "w"})
    with pytest.raises(ArgumentError, match="@register_kind"):
        kind_of(["no", "tag"])


def test_a_tag_belongs_to_one_class() -> None:
    """Another class cannot take a tag, the same class defined again may; only criteria are kinds."""
    with pytest.raises(ArgumentError, match="is already used by Warmth; use another"):
        register_kind("test_warmth")(Polite)
    assert register_kind("test_warmth")(Warmth) is Warmth
    with pytest.raises(ArgumentError, match="requires a subclass of BaseCriterion"):
        register_kind("test_other")(int)  # type: ignore[type-var]


def longer_than_five(text: str) -> bool:
    return len(text) > 5


def longer_than_ten(text: str) -> bool:
    return len(text) > 10


def test_checks_are_found_by_name() -> None:
    """A registered check is found and named by its name, an unknown one names the nearest."""
    assert register_check("tests.longer_than_ten", longer_than_ten) is longer_than_ten
    assert find_check("tests.longer_than_ten") is find_check(longer_than_ten) is longer_than_ten
    assert check_name(longer_than_ten) == check_name("tests.longer_than_ten") == "tests.longer_than_ten"
    assert is_registered(longer_than_ten)
    with pytest.raises(ArgumentError, match=r"did you mean 'tests\.longer_than_ten'"):
        find_check("tests.longer_than_tem")
    with pytest.raises(ArgumentError, match="available: "):
        find_check("?")


def test_unregistered_checks_have_qualified_names() -> None:
    """A function is called by its module and name, an object without one by its class."""
    assert check_name(len) == "builtins:len"
    assert check_name(str.isupper) == "builtins:str.isupper"
    assert check_name(longer_than_five) == f"{__name__}:longer_than_five"
    assert check_name("text".startswith) == "builtins:str.startswith"
    assert check_name(partial(len)) == "functools:partial"
    assert not is_registered(len)


def test_a_check_name_is_taken_once() -> None:
    """Another function under a taken name is refused, the same again is not; names are not empty."""
    register_check("tests.upper", str.isupper)
    register_check("tests.upper", str.isupper)
    with pytest.raises(ArgumentError, match="already registered for another check"):
        register_check("tests.upper", str.islower)
    for name, function in (("", str.isupper), ("tests.none", None)):
        with pytest.raises(ArgumentError, match="pass a name and a function"):
            register_check(name, function)  # type: ignore[arg-type]


def test_the_instruction_tells_what_each_field_takes() -> None:
    """A server need not show the schema to its model, so bounds, choices and descriptions are in words."""
    assert "rating (a whole number from 1 to 7: 1 is cold, 7 is warm)" in Warmth(name="w").instruction()
    assert "tone (one of warm, cold, neutral)" in Tone(name="t").instruction()
    assert "share (a number from -1 to 3)" in Share(name="s").instruction()
    assert "polite (true or false)" in Polite(name="p").instruction()
    assert "findings (a list of int)" in Findings(name="f").instruction()
    assert "counts (an object from names to float)" in Counts(name="c").instruction()
    assert Warmth(name="w").instruction().startswith("Answer with: explanation; rating")


def test_a_field_that_measures_nothing_has_no_positions() -> None:
    """Texts, choices, lists and dicts stand nowhere and have no units."""
    for field in (TextField(), ChoiceField(choices=("a", "b")), ListField(), DictField()):
        assert not field.measures
        assert field.position("a") is None
        assert field.at(0.5) is None


def test_an_installed_package_may_declare_a_kind(tmp_path: Path) -> None:
    """A kind under the entry point `autorubric.kinds` is found by its tag, without an import of its own."""
    (tmp_path / "their_kinds.py").write_text(
        "from autorubric import BaseCriterion; from autorubric.criteria import BoundInt\n"
        "class Stars(BaseCriterion):\n"
        "    stars: BoundInt = BoundInt(min_val=1, max_val=5)\n",
        encoding="utf-8",
    )
    declared = tmp_path / "their_kinds-1.0.dist-info"
    declared.mkdir()
    metadata = "Metadata-Version: 2.1\nName: their-kinds\nVersion: 1.0\n"
    (declared / "METADATA").write_text(metadata, encoding="utf-8")
    (declared / "entry_points.txt").write_text(
        "[autorubric.kinds]\ntheir_stars = their_kinds:Stars\n", encoding="utf-8"
    )
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from autorubric import Rubric\n"
        "rubric = Rubric.from_dict([{'type': 'their_stars', 'name': 's', 'requirement': 'r'}])\n"
        "print(type(rubric[0]).__name__, rubric.to_dict()['criteria'][0]['type'])\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "Stars their_stars\n"


def test_a_kind_without_a_tag_of_its_own_cannot_be_written() -> None:
    """It would be read back as another kind: the plain one, or that of the class above."""

    class Untagged(BaseCriterion):
        mark: BoundInt = BoundInt(min_val=0, max_val=10)

    class Lenient(PassFailCriterion):
        pass

    for kind in (Untagged, Lenient):
        with pytest.raises(ArgumentError, match=rf"{kind.__name__} has no type tag.*@register_kind"):
            criterion_to_dict(kind(name="c", requirement="r"))


@pytest.mark.parametrize("value", [7.0, -0.1, float("nan"), float("inf"), "0.5"])
def test_a_value_lies_between_0_and_1(value: Any) -> None:
    """A kind that says otherwise is its author's mistake, and is told so."""

    class Wild(BaseCriterion):
        mark: BoundInt = BoundInt(min_val=0, max_val=10)

        def value_of(self, evaluation: Any) -> Any:
            return value

    with pytest.raises(ArgumentError, match=rf"Wild.value_of must return a number .* got {value!r} for 'c'"):
        Wild(name="c").read(5)


def test_a_value_may_miss_the_ends_by_rounding() -> None:
    """Means do."""

    class Near(BaseCriterion):
        mark: BoundInt = BoundInt(min_val=0, max_val=10)

        def value_of(self, evaluation: Any) -> float | None:
            return 1.0000000000000002

    assert Near(name="c").read(5).value == 1.0


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("_hidden", "starts with an underscore"),
        ("criterion_name", "conflicts with the field 'criterion_name'"),
        ("cannot_assess", "conflicts with the field 'cannot_assess'"),
        ("id", "conflicts with the field 'id'"),
        ("copy", "conflicts with the attribute 'copy'"),
        ("render", "hides the attribute 'render'"),
        ("read", "hides the attribute 'read'"),
        ("level", "hides the attribute 'level'"),
    ],
)
@pytest.mark.filterwarnings("ignore:Field name")
def test_fields_that_would_be_lost_are_refused(name: str, told: str) -> None:
    """What a kind declares as a field of the reply may not be called as something else is."""
    body = {"__annotations__": {name: BoolField}, name: BoolField(), "__module__": __name__}
    with pytest.raises(ArgumentError, match=rf"Odd.{name}: the field {told}"):
        type("Odd", (BaseCriterion,), body)


@pytest.mark.parametrize("name", ["render", "criterion_name", "copy", "reason"])
@pytest.mark.filterwarnings("ignore:Field name")
def test_fields_without_a_default_are_checked_too(name: str) -> None:
    """As a plan may declare them, to be given when a criterion is made; a reason is a text."""
    body = {"__annotations__": {name: BoundInt}, "__module__": __name__}
    with pytest.raises(ArgumentError, match=rf"Odd.{name}: the field "):
        type("Odd", (BaseCriterion,), body)


def test_choices_are_read_whatever_their_case() -> None:
    """As options are."""

    class Pick(BaseCriterion):
        pick: ChoiceField = ChoiceField(choices=("Red", "Blue"))

    assert Pick(name="c").read({"pick": " red "}).code == "Red"
    with pytest.raises(ValidationError, match="blank"):
        ChoiceField(choices=("", "x"))


def test_bounds_are_no_booleans() -> None:
    """True is 1 to Python, and to nobody who writes a scale."""
    with pytest.raises(ValidationError, match="must be a number; got True"):
        BoundInt(min_val=False, max_val=True)


@pytest.mark.parametrize("said", [True, "true", "Yes", 1])
def test_an_abstention_may_be_said_in_several_words(said: Any) -> None:
    """As a yes is."""
    answer = PassFailCriterion(name="c", requirement="r").read({"cannot_assess": said, "reason": "no text"})
    assert (answer.cannot_assess, answer.reason) == (True, "no text")


def test_a_kind_without_a_text_has_a_place_for_a_reason() -> None:
    """An abstention is said with its reason, on every kind."""

    class Bare(BaseCriterion):
        mark: BoundInt = BoundInt(min_val=0, max_val=10)

    assert list(Bare(name="c").wire_schema["properties"]) == ["reason", "mark", "cannot_assess"]
    answer = Bare(name="c").read({"reason": "no text", "mark": 0, "cannot_assess": True})
    assert (answer.cannot_assess, answer.reason) == (True, "no text")


def test_a_field_says_what_it_is() -> None:
    """`EvalField` alone is none: a field without `get_field` cannot be made."""

    class Vague(EvalField):
        pass

    for field in (EvalField, Vague):
        with pytest.raises(TypeError, match="get_field"):
            field()  # type: ignore[abstract]


def test_schemas_are_made_once() -> None:
    """The single one and that of a batch."""
    criterion = Warmth(name="w")
    assert criterion.evaluation_schema is criterion.evaluation_schema
    assert criterion.batch_evaluation_schema is criterion.batch_evaluation_schema
