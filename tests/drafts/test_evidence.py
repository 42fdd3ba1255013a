"""Whether what a critique points at is there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from autorubric.apps.drafts import resolve_evidence
from autorubric.apps.drafts.drafts import json_text
from tests.drafts.teachers import PAYLOAD

OUTPUT: dict[str, Any] = {**PAYLOAD, "first title": {"a.b": [1, None]}, "7": {"x": 0}}


@pytest.mark.parametrize(
    "path",
    [
        "payload",
        "payload.trip_days[0].activities[1]",
        "$.payload.trip_days[0]",
        "$['payload'].trip_days",
        'payload["trip_days"][0]["activities"][0]',
        '["first title"]["a.b"][1]',
        "first title",
        "7.x",
        " payload ",
    ],
)
def test_paths_that_lead_somewhere(path: str) -> None:
    """Dots and brackets lead to what is there, in data and in its JSON text alike."""
    assert resolve_evidence(path, OUTPUT)
    assert resolve_evidence(path, json.dumps(OUTPUT))


@pytest.mark.parametrize(
    "path",
    [
        *("", "$", ".", "payload.", "payload..trip_days", "payload.trip_days[1]", "payload.trip_days[-1]"),
        *("payload.trip_days.0", "payload[trip_days]", "nope", "payload.trip_days[0]activities", "payload]"),
        *("payload.trip_days[99999999999999]", "payload.trip_days[0].activities[1].x", "Because it says so."),
    ],
)
def test_paths_that_lead_nowhere(path: str) -> None:
    """What is not there, or is not a path, leads nowhere."""
    assert not resolve_evidence(path, OUTPUT)


def test_a_plain_text_has_no_places() -> None:
    """In an output that is no JSON no path leads anywhere."""
    assert not resolve_evidence("payload", "payload: yes")


keys = st.text(st.characters(exclude_characters="\"'[].\\", exclude_categories=("Cs", "Cc", "Z")), min_size=1)


@given(st.recursive(st.integers(), lambda inner: st.lists(inner) | st.dictionaries(keys, inner)), st.data())
def test_every_place_has_a_path(data: Any, draw: st.DataObject) -> None:
    """Walking anywhere into data and writing the way down gives a path that leads there."""
    path, place = "", data
    while isinstance(place, dict | list) and place:
        step = draw.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        path += f"[{step}]" if isinstance(place, list) else f'["{step}"]'
        place = place[step]
    assert resolve_evidence(path, data) == bool(path)


@given(st.text())
def test_any_text_is_taken_for_a_path_or_none(path: str) -> None:
    """No text raises."""
    assert resolve_evidence(path, OUTPUT) in (True, False)


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(DATA)
def test_data_are_shown_as_python_indents_them(data: Any) -> None:
    """Prompts, and so what models were asked, do not depend on who writes the JSON."""
    assert json_text(data) == (
        data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, indent=1)
    )
