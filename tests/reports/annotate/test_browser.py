"""The annotation page in a browser, used as a rater uses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autorubric import Rubric, RubricDataset, merge_labels
from tests.reports.annotate.conftest import RUBRIC, Opened, labelled_dataset


def begin(page: Any, rater: str) -> None:
    """Gives the rater's name and goes on to the items."""
    page.fill("#rater", rater)
    page.keyboard.press("Enter")
    page.wait_for_selector("fieldset")


def go_to(page: Any, text: str) -> None:
    """Goes to the item whose column holds the text, from the first one on."""
    for button, times in (("#previous", 10), ("#next", 10)):
        for _ in range(times):
            if text in page.inner_text("section[aria-label=Item]"):
                return
            page.click(button)
    raise AssertionError(text)


def saved(page: Any, path: Path) -> list[Any]:
    """The rows of the file that the page saves."""
    with page.expect_download() as download:
        page.click("#save")
    download.value.save_as(path)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def order(page: Any, n_items: int) -> list[str]:
    """The texts of the items, in the order shown."""
    found = []
    for _ in range(n_items):
        found.append(page.inner_text("section[aria-label=Item] .text"))
        page.keyboard.press("ArrowRight")
    return found


def box(page: Any, name: str) -> Any:
    """The fieldset of a criterion."""
    return page.locator("fieldset").filter(has=page.locator("legend", has_text=name)).first


def test_every_level_is_labelled_and_brought_back(opened: Opened, tmp_path: Path) -> None:
    """Every kind of form is filled in, saved, and merged as a rating of the rater."""
    dataset = labelled_dataset(1)
    page = opened(dataset)
    begin(page, "ada")
    go_to(page, "Text 0.")
    page.keyboard.press("1")
    page.keyboard.press("2")
    page.keyboard.press("4")
    box(page, "share").locator("input").fill("62.5")
    for place, name in ((0, "yes"), (1, "no")):
        box(page, "parts").locator(".part").nth(place).get_by_role("button", name=name).click()
    for place, name in ((0, "3"), (1, "0")):
        box(page, "craft").locator(".part").nth(place).get_by_role("button", name=name).click()
    box(page, "feedback").locator("textarea").first.fill("Say <b>when</b>.\nAnd where.")
    box(page, "both").locator("textarea").nth(0).fill("The start.")
    box(page, "both").locator("textarea").nth(1).fill("The end.")
    go_to(page, "First.")
    letters = page.inner_text("section[aria-label=Item]")
    first = "A" if letters.index("First.") < letters.index("Second.") else "B"
    box(page, "better").get_by_role("button", name=f"{first} is better").click()
    box(page, "margin").get_by_role("button", name=f"{first} is better by 2").click()
    for letter, at in ((first, "1"), ("B" if first == "A" else "A", "2")):
        box(page, "order").locator("label", has_text=f"Candidate {letter}").locator("select").select_option(
            at
        )
    box(page, "best").get_by_role("button", name="Cannot assess").click()
    assert "model-x" not in page.inner_text("body")
    rows = saved(page, tmp_path / "ada.jsonl")
    assert (rows[0]["format"], rows[0]["rater"], rows[0]["fingerprint"]) == (1, "ada", dataset.fingerprint)
    merged = merge_labels(dataset, [tmp_path / "ada.jsonl"])
    assert merged.notices == ()
    assert merged.dataset.item_ratings(0)["ada"] == {
        "clear": "MET",
        "tone": "kind",
        "depth": 4,
        "share": 62.5,
        "parts": {"date": True, "place": False},
        "craft": {"style_score": 3, "order_score": 0},
        "feedback": "Say <b>when</b>.\nAnd where.",
        "both": {"good": "The start.", "bad": "The end."},
    }
    assert merged.dataset.item_ratings(1)["ada"] == {
        "better": "model-x",
        "margin": -2,
        "order": ["model-x", "model-y"],
        "best": "CANNOT_ASSESS",
    }


def test_the_keyboard_does_it_all(opened: Opened, tmp_path: Path) -> None:
    """Answers, abstentions, reasons, items and saving without a pointer."""
    dataset = RubricDataset(rubric=Rubric(RUBRIC[:2]), items=[{"submission": "One."}, {"submission": "Two."}])
    page = opened(dataset)
    begin(page, "bob")
    page.keyboard.press("r")
    page.keyboard.type("since 2 n")
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    page.keyboard.press("0")
    page.keyboard.press("u")
    assert "Item 2 of 2; 1 done" in page.inner_text("header")
    page.keyboard.press("j")
    page.keyboard.press("1")
    page.keyboard.press("k")
    page.keyboard.press("1")
    page.keyboard.press("?")
    assert page.locator("dialog").is_visible()
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert "2 done" in page.inner_text("header")
    with page.expect_download() as download:
        page.keyboard.press("s")
    download.value.save_as(tmp_path / "bob.jsonl")
    rows = [
        json.loads(line) for line in (tmp_path / "bob.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    ]
    assert sorted(row["value"] for row in rows) == ["CANNOT_ASSESS", "MET", "UNMET", "rude"]
    assert [row.get("reason") for row in rows if row["value"] == "UNMET"] == ["since 2 n"]


def test_raters_have_orders_of_their_own(opened: Opened) -> None:
    """The same rater has the same order again, another rater or seed another one."""
    items = [{"submission": f"Text {at}."} for at in range(8)]
    dataset = RubricDataset(rubric=Rubric(RUBRIC[:1]), items=items)
    orders: dict[tuple[str, int], list[str]] = {}
    for rater, seed in (("ada", 0), ("ada", 0), ("bob", 0), ("ada", 1)):
        page = opened(dataset, seed=seed)
        begin(page, rater)
        found = order(page, 8)
        assert orders.setdefault((rater, seed), found) == found
        page.context.close()
    assert len({tuple(found) for found in orders.values()}) == 3
    assert {frozenset(found) for found in orders.values()} == {frozenset(one["submission"] for one in items)}


def test_progress_is_kept(opened: Opened, chromium: Any) -> None:
    """A page that is opened again goes on where its rater left, and shows another rater nothing."""
    context = chromium.new_context()
    page = opened(context=context)
    begin(page, "ada")
    page.keyboard.press("1")
    page.keyboard.press("n")
    page.close()
    page = opened(context=context)
    begin(page, "eve")
    assert page.locator("fieldset.answered").count() == 0
    page.close()
    page = opened(context=context)
    begin(page, "ada")
    assert "Item 2 of 7" in page.inner_text("header")
    page.keyboard.press("p")
    assert page.locator("fieldset.answered").count() == 1
    context.close()


def test_labels_are_loaded_again(opened: Opened, tmp_path: Path) -> None:
    """A saved file takes its rater on, in another browser; lines of others are passed over and counted."""
    page = opened()
    begin(page, "ada")
    page.keyboard.press("2")
    rows = saved(page, tmp_path / "ada.jsonl")
    assert len(rows) == 2
    foreign = [{**rows[1], "rater": "bob"}, {**rows[1], "item_id": "nosuch"}, {**rows[1], "sha256": "0"}]
    text = "\n".join(map(json.dumps, [*rows, *foreign])) + "\nno json\n7\n"
    (tmp_path / "more.jsonl").write_text(text, encoding="utf-8")
    page.context.close()
    page = opened()
    begin(page, "ada")
    assert page.locator("fieldset.answered").count() == 0
    page.set_input_files("#file", tmp_path / "more.jsonl")
    page.wait_for_selector("fieldset.answered")
    assert (
        "Loaded 1 labels; skipped 3 labels of another rater or dataset and 2 unreadable"
        in page.inner_text("#said")
    )
    assert page.locator("button[aria-pressed=true]").inner_text().endswith("UNMET")
    assert [row["value"] for row in saved(page, tmp_path / "again.jsonl")[1:]] == ["UNMET"]


def test_texts_stay_texts(opened: Opened) -> None:
    """Markup in a submission is shown as it stands; no script of it runs and no picture is asked for."""
    page = opened()
    begin(page, "<b>ada</b>")
    go_to(page, "Text 0.")
    assert "<img src=x onerror=" in page.inner_text("section[aria-label=Item]")
    assert page.locator("img").count() == 0
    assert page.title() == "Essays & more"
    assert "<b>ada</b>" in page.inner_text("header")


def test_an_answer_can_be_taken_back(opened: Opened, tmp_path: Path) -> None:
    """A number that is none, an incomplete part and a second press on `Cannot assess` leave no label."""
    page = opened(labelled_dataset(1))
    begin(page, "ada")
    go_to(page, "Text 0.")
    share = box(page, "share").locator("input")
    share.fill("50")
    share.fill("5000")
    box(page, "parts").locator(".part").nth(0).get_by_role("button", name="yes").click()
    box(page, "tone").get_by_role("button", name="Cannot assess").click()
    box(page, "tone").get_by_role("button", name="Cannot assess").click()
    assert [row["criterion"] for row in saved(page, tmp_path / "x.jsonl")[1:]] == []


LONG = RubricDataset(
    rubric=Rubric(
        [{"name": f"c{at}", "requirement": "It is so.", "weight": -1 if at == 8 else 1} for at in range(9)]
    ),
    items=[{"submission": "\n\n".join(f"Paragraph {at}. " + "word " * 80 for at in range(60))}] * 2,
)


@pytest.mark.parametrize("size", [(1280, 800), (360, 700), (740, 360)], ids=["desktop", "phone", "landscape"])
def test_the_text_stays_in_view(opened: Opened, chromium: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """At the last of nine criteria the text is still shown, and scrolls without the criteria."""
    context = chromium.new_context(viewport={"width": size[0], "height": size[1]})
    page = opened(LONG, context=context)
    begin(page, "ada")
    for _ in range(8):
        page.keyboard.press("1")
    page.screenshot(path=tmp_path / "criteria.png")
    text, last = page.locator("#item"), box(page, "c8")
    for shown in (text, last.get_by_role("button", name="UNMET")):
        place = shown.bounding_box()
        assert 0 <= place["y"] < size[1] and place["y"] + min(place["height"], 100) <= size[1]
    assert text.bounding_box()["height"] >= min(200, size[1] // 4)
    before = last.bounding_box()
    text.evaluate("one => one.scrollTop = 500")
    assert text.evaluate("one => one.scrollTop") == 500
    assert last.bounding_box() == before
    assert page.evaluate("document.documentElement.scrollHeight") <= size[1]
    page.keyboard.press("n")
    assert page.locator("#item").evaluate("one => one.scrollTop") == 0
    context.close()


def test_a_phone_has_a_bar_of_one_row(opened: Opened, chromium: Any, tmp_path: Path) -> None:
    """The bar is one row with a button for the text; the rest is behind another, and works from there."""
    context = chromium.new_context(viewport={"width": 360, "height": 700}, accept_downloads=True)
    page = opened(LONG, context=context)
    begin(page, "ada")
    shown = page.locator("header button:visible")
    assert shown.all_inner_texts() == ["←", "→", "Text", "More"]
    assert len({round(one.bounding_box()["y"]) for one in shown.all()}) == 1
    assert page.locator("header").bounding_box()["height"] < 64
    assert page.inner_text("#short") == "1/2 · 0/18"
    page.click("#text")
    assert not page.locator("section[aria-label=Criteria]").is_visible()
    assert page.locator("#item").bounding_box()["height"] > 600
    page.click("#text")
    box(page, "c0").get_by_role("button", name="UNMET").click()
    assert page.inner_text("#short") == "1/2 · 1/18 *"
    page.click("#more")
    rows = saved(page, tmp_path / "ada.jsonl")
    assert [row["value"] for row in rows[1:]] == ["UNMET"] and not page.locator("#save").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


def test_progress_counts_criteria(opened: Opened) -> None:
    """An item that is half labelled counts by its criteria."""
    page = opened(LONG)
    begin(page, "ada")
    assert "Item 1 of 2; 0 done; 0 of 18 criteria labelled." in page.inner_text("header")
    for _ in range(5):
        page.keyboard.press("1")
    assert "Item 1 of 2; 0 done; 5 of 18 criteria labelled." in page.inner_text("header")
    bar = page.locator("#progress")
    assert (bar.evaluate("one => one.value"), bar.evaluate("one => one.max")) == (5, 18)
    assert not page.locator("#text").is_visible() and not page.locator("#more").is_visible()


def test_a_penalty_says_what_its_answer_means(opened: Opened) -> None:
    """MET of a penalty means that the error is present, and the page says so at that criterion alone."""
    rubric = Rubric(
        [
            {"name": "clear", "requirement": "It is clear."},
            {"name": "rude", "requirement": "It is rude.", "weight": -1},
            {"name": "false", "type": "pass_fail", "requirement": "It is false.", "weight": -1},
            {"name": "long", "type": "numerical_rating", "requirement": "How long.", "weight": -1},
        ]
    )
    page = opened(RubricDataset(rubric=rubric, items=[{"submission": "One."}]))
    begin(page, "ada")
    assert "Penalty" not in box(page, "clear").inner_text()
    assert "Penalty: MET means that the error is present." in box(page, "rude").inner_text()
    assert "Penalty: passed means that the error is present." in box(page, "false").inner_text()
    assert "Penalty: the more this applies, the lower the score." in box(page, "long").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone(opened: Opened, chromium: Any, scheme: str) -> None:
    """Nothing is wider than a narrow screen, in light and dark."""
    context = chromium.new_context(viewport={"width": 360, "height": 700}, color_scheme=scheme)
    page = opened(context=context)
    begin(page, "ada")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (shown == "rgb(255, 255, 255)") == (scheme == "light")
    context.close()
