"""A report as people use it, in Chromium: views, sorting, filters, search, keyboard, sizes, colours.

Every test also holds the page to silence: no console error, no request, nothing that its policy forbids.
"""

from __future__ import annotations

import csv
import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from autorubric import ChecklistCriterion, Rubric
from tests.reports.conftest import Browser, Reports, on_page
from tests.reports.runs import HOSTILE, Scripted, graded, long_dataset, panel

VIEWS = {
    "overview": ("#/", "Items to check first"),
    "items": ("#/items", "29 items"),
    "heat": ("#/heat", "unfavourable"),
    "item": ("#/item/2", "Sorry that your parcel is late"),
    "item-hostile": ("#/item/24", "document.title"),
    "criteria": ("#/criteria", "Discrimination"),
    "criterion": ("#/criteria/0", "Most confusing items"),
    "criterion-number": ("#/criteria/4", "Lin's concordance"),
    "judges": ("#/judges", "Bias"),
    "setup": ("#/setup", "Combining votes"),
    "comparison": ("#/compare", "Items with the largest changes"),
}
SIZES = {
    "desktop-light": {"size": (1280, 860), "color_scheme": "light"},
    "desktop-dark": {"size": (1280, 860), "color_scheme": "dark"},
    "phone-light": {"size": (360, 740), "color_scheme": "light"},
    "phone-dark": {"size": (360, 740), "color_scheme": "dark"},
}


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_every_view_opens_and_fits(browser: Browser, reports: Reports, size: str) -> None:
    """Each view shows what it is for, at any size without a sideways scroll; a picture of each is kept."""

    def look(page: Any) -> None:
        for name, (address, words) in VIEWS.items():
            page.evaluate("address => { location.hash = address; }", address)
            page.get_by_text(words).first.wait_for(state="attached")
            page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            assert page.locator("h1").count() == 1, name
            page.screenshot(path=browser.screenshots / f"{name}-{size}.png")

    browser.look(reports.url("kinds") + "#/", look, **SIZES[size])


def ids(page: Any) -> list[str]:
    """The ids of the rows that are drawn, in order."""
    page.wait_for_selector(".v-body .v-row")
    found: list[str] = page.locator(".v-body .v-row .item-id").all_inner_texts()
    return found


def data(page: Any) -> Any:
    """What the page holds."""
    return page.evaluate("JSON.parse(document.getElementById('data').textContent)")


def settled(page: Any, address: str) -> None:
    """Waits until the page is at an address and has drawn it."""
    page.wait_for_function("part => location.hash.includes(part)", arg=address)
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.mark.slow
@on_page("#/items", report="long")
def test_items_are_sorted_by_any_column(page: Any) -> None:
    """A click sorts upwards, a second one downwards, and what has no value comes last both times."""
    items = data(page)["items"]
    keys = page.locator(".v-head button").evaluate_all("all => all.map(one => one.dataset.sort)")
    assert {"id", "score", "difference", "agreement", "wrong", "split", "abstained", "failed"} <= set(keys)
    for key in keys:
        page.click(f'[data-sort="{key}"]')
        settled(page, f"s={key}")
        assert (
            page.locator('[aria-sort="ascending"]')
            .inner_text()
            .startswith(page.locator(f'[data-sort="{key}"]').inner_text())
        )
    by_score = sorted(range(len(items["id"])), key=lambda at: (items["score"][at], at))
    page.click('[data-sort="score"]')
    settled(page, "s=score")
    assert ids(page)[:5] == [items["id"][at] for at in by_score[:5]]
    page.click('[data-sort="score"]')
    settled(page, "d=desc")
    top = max(items["score"])
    first = ids(page)[0]
    assert items["score"][items["id"].index(first)] == top
    page.click('[data-sort="difference"]')
    settled(page, "s=difference")
    page.locator(".v-grid").evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.v-row')].some(r => r.ariaRowIndex === '161')"
    )
    assert items["truth"][items["id"].index(ids(page)[-1])] is None


@pytest.mark.parametrize(("kind", "flag"), [("wrong", 1), ("split", 2), ("abstained", 4), ("failed", 8)])
def test_filters_leave_what_they_name(browser: Browser, reports: Reports, kind: str, flag: int) -> None:
    """A filter leaves the items with such a cell, as many as it said, and two leave those with both."""

    def look(page: Any) -> None:
        told = data(page)
        items, cells = told["items"], told["cells"]
        at, wanted = 0, []
        for item, rubric in zip(items["id"], items["rubric"], strict=True):
            after = at + len(items["rubrics"][rubric])
            if any(one & flag for one in cells["flags"][at:after]):
                wanted.append(item)
            at = after
        button = page.locator(f'[data-filter="{kind}"]')
        assert str(len(wanted)) in button.inner_text()
        button.click()
        settled(page, f"f={kind}")
        assert page.locator(f'[data-filter="{kind}"]').get_attribute("aria-pressed") == "true"
        assert page.locator("#found").inner_text().startswith(f"{len(wanted)} of ")
        # The last one is hostile and shown with its controls written out.
        assert ids(page)[:5] == wanted[:5]
        page.locator('[data-filter="clear"]').click()
        # The address changes before the page is drawn.
        page.wait_for_function("() => document.getElementById('found').innerText === '29 items'")
        assert "f=" not in page.url

    browser.look(reports.url("kinds") + "#/items", look)


@on_page("#/items")
def test_a_filter_can_be_held_to_one_criterion(page: Any) -> None:
    """With a criterion chosen, marks count on it alone."""
    page.select_option(".filters select", label="better")
    settled(page, "c=")
    assert ids(page) == ["pair"]
    page.click('[data-filter="wrong"]')
    settled(page, "f=wrong")
    assert page.locator(".empty").inner_text() == "No item matches."


@pytest.mark.slow
@on_page("#/")
def test_search_finds_texts_reasons_and_ids(page: Any) -> None:
    """The slash goes to the search; words of texts, reasons, errors and ids are found; Escape clears it."""
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    for words, wanted in (
        ('"number 7."', "reply-07"),
        ("GIVE A DATE", None),
        ("no answer in 30 s down-1", "down-1"),
        ("cyd on better", "pair"),
    ):
        page.fill("#search", words)
        page.wait_for_function(
            "q => new URLSearchParams(location.hash.split('?')[1]).get('q') === q", arg=words
        )
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        if wanted is None:
            assert page.locator(".empty").count() == 1
        else:
            assert ids(page) == [wanted]
    page.keyboard.press("Escape")
    page.wait_for_function("() => !location.hash.includes('q=')")
    assert page.locator("#found").inner_text() == "29 items"


@on_page("#/items")
def test_the_list_is_used_by_keyboard(page: Any) -> None:
    """Arrows move in the list, Enter opens, arrows go on to neighbours, Escape leads back; focus is seen."""
    page.focus(".v-grid")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator(".v-grid").get_attribute("aria-activedescendant") == "row-2"
    assert page.evaluate("getComputedStyle(document.querySelector('.v-grid')).outlineStyle") == "solid"
    page.keyboard.press("End")
    assert page.locator(".v-grid").get_attribute("aria-activedescendant") == "row-28"
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    settled(page, "#/item/0")
    assert page.locator("h1").inner_text().startswith("reply-00")
    page.keyboard.press("ArrowRight")
    settled(page, "#/item/1")
    page.keyboard.press("ArrowLeft")
    settled(page, "#/item/0")
    page.keyboard.press("Escape")
    settled(page, "#/items")
    page.keyboard.press("Escape")
    page.wait_for_function("() => location.hash === '#/'")


@on_page("#/")
def test_the_tab_key_reaches_all_in_order(page: Any) -> None:
    """First the skip link, then the views, the search and the colours; the skip link leads to the content."""
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = []
    for _ in range(9):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.dataset.view || document.activeElement.id"))
    assert seen == ["overview", "items", "heat", "criteria", "judges", "setup", "compare", "search", "theme"]
    page.focus(".skip")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@on_page("#/heat")
def test_the_heat_map_is_used_by_keyboard(page: Any) -> None:
    """Arrows move both ways and say where they are; Enter opens the item at the criterion."""
    page.focus(".v-grid")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    current = page.locator(".v-grid").get_attribute("aria-activedescendant")
    assert current == "cell-1-1"
    assert page.locator(f"#{current}").get_attribute("aria-label").startswith("reply-01, refund:")
    assert page.locator("#heat-about").inner_text().startswith("reply-01 · refund:")
    page.keyboard.press("Enter")
    settled(page, "#/item/1?c=1")
    page.wait_for_selector("#criterion-1.wanted")


@on_page("#/heat")
def test_the_heat_map_tells_states_apart(page: Any) -> None:
    """Wrong, split, abstained, failed and not applicable cells look different and say what they are."""
    for mark, words in (
        ("flag-wrong", "differs"),
        ("flag-split", "votes differ"),
        ("abstained", "not applicable"),
        ("other", "not applicable"),
    ):
        cell = page.locator(f".heat-row .heat-cell.{mark}").first
        assert words in cell.get_attribute("aria-label")
    page.locator(".v-grid").evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
    page.wait_for_selector(".heat-row .heat-cell.failed", state="attached")
    assert "failed" in page.locator(".heat-row .heat-cell.failed").first.get_attribute("aria-label")
    page.hover(".heat-row .heat-cell")
    assert ": " in page.locator("#heat-about").inner_text()


@on_page("#/heat")
def test_a_column_of_the_heat_map_sorts_it(page: Any) -> None:
    """A click on a criterion puts the items with its lowest value first."""
    page.click(".heat-name button >> nth=0")
    settled(page, "s=c")
    words = page.locator(".heat-row .heat-cell[data-k='0']").evaluate_all("all => all.map(a => a.ariaLabel)")
    answers = [re.search(r": (\w+)", one).group(1) for one in words]  # type: ignore[union-attr]
    answers = [one for one in answers if one in ("MET", "UNMET")]
    assert {"MET", "UNMET"} == set(answers)
    assert sorted(answers, reverse=True) == answers


@on_page("#/criteria")
def test_tables_of_figures_are_sorted(page: Any) -> None:
    """A click on a head sorts the table by it, undefined figures last."""
    page.click("thead button:has-text('Criterion')")
    names = page.locator("tbody th").all_inner_texts()
    assert names == sorted(names, key=str.lower)
    page.click("thead button:has-text('Pass rate or mean')")
    told = page.locator("tbody td[data-label='Pass rate or mean']").all_inner_texts()
    values = [float(text.split()[0]) for text in told if text[0].isdigit()]
    assert values == sorted(values, reverse=True)
    assert told[-1].startswith("–")


@on_page("#/criteria")
def test_shares_are_on_one_line_with_their_percent_sign(page: Any) -> None:
    """TPR and TNR have columns; no figure breaks between the number and its unit."""
    heads = page.locator("thead th").all_inner_texts()
    assert {"TPR", "TNR"} <= {head.strip(" ↓↑") for head in heads}
    lines = page.evaluate(
        "[...document.querySelectorAll('.figure > .strong')].map((one) => one.getClientRects().length)"
    )
    assert lines and set(lines) == {1}


@on_page("#/criteria/0")
def test_a_criterion_shows_figures_and_confusion(page: Any) -> None:
    """Kappa with its interval, the confusion matrix and links to the items that confuse."""
    one = data(page)["criteria"][0]
    matrix = page.locator("table.matrix tbody td").all_inner_texts()
    assert [int(cell) for cell in matrix] == [n for row in one["confusion"]["counts"] for n in row]
    row = page.locator("tr", has_text="Cohen's kappa").inner_text()
    assert f"{one['metrics']['kappa']['v']:.2f}" in row
    assert (
        f"[{one['metrics']['kappa']['lo']:.2f}, {one['metrics']['kappa']['hi']:.2f}]".replace("-", "−") in row
    )
    page.click(".looks a >> nth=0")
    settled(page, "#/item/")


@on_page("#/item/1")
def test_an_item_shows_each_judges_vote_beside_the_label(page: Any) -> None:
    """Texts, and on every criterion each judge's answer and reason; what is not the label says so."""
    for words in ("Where is my parcel?", "This is reply number 1.", "apology", "Substance", "People:"):
        assert page.get_by_text(words).count() >= 1
    votes = page.locator("#criterion-0 .vote")
    assert [one.split("\n")[0] for one in votes.all_inner_texts()] == ["ann", "bob", "cyd"]
    assert all("on apology:" in one for one in votes.all_inner_texts())
    # The label is spelt "yes", and read as MET.
    assert page.locator("#criterion-0 .truth").inner_text() == "label MET"
    for words in votes.all_inner_texts():
        assert ("differs from label" in words) == ("UNMET" in words)
    told = data(page)
    wrong = [
        at
        for at, flags in enumerate(told["cells"]["flags"][: 10 * 24])
        if flags & 1 and told["items"]["rubric"][at // 10] == 0
    ]
    page.evaluate("at => { location.hash = `#/item/${at}`; }", wrong[0] // 10)
    page.wait_for_selector(".verdict.is-wrong .truth.differs")


@on_page("#/item/25")
def test_an_item_that_failed_says_so(page: Any) -> None:
    """There is no score, and each vote tells its error."""
    assert page.locator("dl.facts").inner_text().startswith("Score\n–")
    assert "no answer in 30 s" in page.locator(".vote .failure").first.inner_text()
    assert page.locator(".note").inner_text() != ""


@on_page("#/item/26")
def test_thinking_stands_apart_from_the_text(page: Any) -> None:
    """What an author thought is folded and not the submission."""
    assert page.locator("details summary", has_text="Thinking").count() == 1
    assert page.locator(".graded").inner_text().startswith("Sorry")


@on_page("#/item/27")
def test_a_long_text_is_cut_and_says_so(page: Any) -> None:
    """The text is cut at the documented length, and the overview says that texts were."""
    assert "Truncated after 20,000 of 30,010 characters." in page.locator(".texts").inner_text()
    assert len(page.locator(".graded").inner_text()) == 20_000
    page.evaluate("location.hash = '#/'")
    page.get_by_text("is truncated:").wait_for(state="attached")


@on_page("#/item/28")
def test_candidates_stand_side_by_side_with_their_orders(page: Any) -> None:
    """Each candidate has its text, and each vote the order in which they were shown."""
    assert page.locator(".part h2").all_inner_texts()[1:] == ["Candidate first", "Candidate second"]
    told = page.locator(".votes").inner_text()
    assert "order first → second" in told
    assert "order second → first" in told


@on_page("#/item/24")
def test_hostile_texts_stay_texts(page: Any) -> None:
    """Markup, scripts, escapes and marks that turn text round are shown, and do nothing."""
    # As the page draws it, NUL, escape and the override written out.
    shown = HOSTILE.replace("\x00", "\\x00").replace("\x1b", "\\x1b")
    shown = shown.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c")
    assert page.locator("h1 bdi").text_content() == f"hostile {shown}"
    assert "owned" in page.title()
    assert page.title() != "owned"
    assert page.locator("main img, main script, main style, main iframe").count() == 0
    assert page.locator("script").count() == 3
    assert all(
        "<script>" in one and "on apology" in one
        for one in page.locator("#criterion-0 .reason").all_inner_texts()
    )


@on_page("#/compare")
def test_a_comparison_tells_differences_with_intervals(page: Any) -> None:
    """Both runs against the labels, the difference with its paired interval, and a sentence that says it."""
    told = data(page)["compare"]
    right = told["headline"][0]
    text = page.locator("#compare-verdict").inner_text()
    assert f"{right['difference']['v']:.3f}" in text
    assert "Proportion of correct answers: higher by" in text
    page.get_by_text("All items with a changed answer").click()
    settled(page, "f=changed")
    assert page.locator("#found").inner_text().startswith(f"{sum(map(bool, told['changed']))} of ")


@on_page("#/compare")
def test_a_comparison_counts_the_verdicts_of_both_runs(page: Any) -> None:
    """Verdicts lost and assumed are in the view, of the run and of its baseline."""
    told = data(page)["compare"]["verdicts"]
    rows = page.locator("#compare-verdicts tbody tr").all_inner_texts()
    kinds = ("asked", "answered", "abstained", "lost", "assumed")
    assert [row.split()[-5:] for row in rows] == [[f"{one[kind]:,}" for kind in kinds] for one in told]


@on_page("#/judges", size=(1300, 860))
def test_the_biases_of_judges_fit_the_width(page: Any) -> None:
    """The table of biases needs no horizontal scrolling on a usual screen."""
    page.wait_for_selector(".biases")
    widths = page.evaluate(
        "(({scrollWidth: w, clientWidth: c}) => [w, c])(document.querySelector('.biases').parentNode)"
    )
    assert widths[0] <= widths[1]


@on_page("#/", report="unlabelled")
def test_undefined_figures_say_why(page: Any) -> None:
    """Without labels agreement has no tile and a reason, and there is no filter of wrong answers."""
    assert "–" not in page.locator(".tiles").inner_text()
    assert page.locator(".tile", has_text="Agreement with labels").count() == 0
    assert "Agreement with labels (no item has a label)" in page.locator(".missing").inner_text()
    page.evaluate("location.hash = '#/items'")
    page.wait_for_selector(".filters")
    assert page.locator('[data-filter="wrong"]').count() == 0
    page.evaluate("location.hash = '#/judges'")
    page.get_by_text("There is only one judge and no label").wait_for()
    page.evaluate("location.hash = '#/criteria/0'")
    page.get_by_text("No labels.").wait_for()


@on_page("#/items", report="long")
def test_only_rows_in_sight_are_drawn(page: Any) -> None:
    """Of 160 rows a screenful is in the page, the last ones once they are scrolled to."""
    page.wait_for_selector(".v-body .v-row")
    assert page.locator(".v-body .v-row").count() < 60
    page.locator(".v-grid").evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
    page.locator(".item-id", has_text="reply-00159").wait_for()
    assert page.locator(".v-body .v-row").count() < 60
    assert page.locator(".v-grid").get_attribute("aria-rowcount") == "161"


@on_page("#/", color_scheme="light")
def test_colours_follow_the_system_and_the_switch(page: Any) -> None:
    """Light and dark follow the system's choice until the button is pressed, which keeps its own."""
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(background)
    assert dark != light
    page.click("#theme")
    assert page.evaluate(background) == light
    assert page.locator("#theme").get_attribute("aria-pressed") == "false"
    page.emulate_media(color_scheme="light")
    page.click("#theme")
    assert page.evaluate(background) == dark


@on_page("#/items", reduced_motion="reduce")
def test_nothing_moves_where_motion_is_reduced(page: Any) -> None:
    """Who asks for less motion gets no transitions."""
    seconds = page.evaluate("getComputedStyle(document.querySelector('.chip')).transitionDuration")
    assert seconds == "0s"


@on_page("#/items")
def test_a_print_leaves_the_controls_out(page: Any) -> None:
    """On paper there are the rows, without navigation, filters and inner scrolling."""
    page.emulate_media(media="print")
    for hidden in (".top", ".filters"):
        assert not page.locator(hidden).is_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.v-grid')).overflow") == "visible"


@on_page("#/nowhere")
def test_an_unknown_address_is_the_overview(page: Any) -> None:
    """An address that names no view shows the first one, and one of no item says so."""
    assert page.get_by_text("Items to check first").count() == 1
    page.evaluate("location.hash = '#/item/999'")
    page.get_by_text("No such item").wait_for()


@on_page("#/setup")
def test_the_rubric_and_the_judges_settings_have_a_page(page: Any) -> None:
    """It shows each criterion's answers and weight, and each judge with its samples and weight."""
    rubric = page.locator("table", has_text="Requirement").first.inner_text()
    assert "Offers a refund." in rubric and "cold" in rubric and "−4" in rubric
    judges = page.locator(".settings > div").all_inner_texts()
    assert [one.split()[0] for one in judges] == ["ann", "bob", "cyd"]
    assert all("samples" in one and "weight" in one for one in judges)
    assert "majority" in page.locator("main").inner_text()


@on_page("#/items?f=wrong")
def test_the_items_shown_are_exported_as_csv(page: Any) -> None:
    """The button saves the filtered items with their scores and their answers on each criterion."""
    n_shown = int(page.locator("#found").inner_text().split()[0])
    with page.expect_download() as download:
        page.get_by_role("button", name="Export CSV").click()
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == n_shown and rows[0]["apology"] in {"MET", "UNMET"}
    assert float(rows[0]["score"]) <= 1 and download.value.suggested_filename == "parcels-2-items.csv"


def test_no_text_of_an_export_begins_a_formula(browser: Browser, tmp_path: Path) -> None:
    """A text that a spreadsheet would run has an apostrophe before it; quotes and commas stay."""
    names = ["=1+1", " @x", 'say "a,b"']
    dataset = long_dataset(3)
    named = [one.model_copy(update={"id": name}) for one, name in zip(dataset.items, names, strict=True)]
    run = graded(tmp_path, dataset.with_items(named), panel()[:1], "formulas")
    run.to_html(tmp_path / "formulas.html")

    def look(page: Any) -> None:
        with page.expect_download() as download:
            page.get_by_role("button", name="Export CSV").click()
        text = Path(download.value.path()).read_text(encoding="utf-8-sig")
        assert [row["id"] for row in csv.DictReader(text.splitlines())] == ["'=1+1", "' @x", 'say "a,b"']

    browser.look((tmp_path / "formulas.html").as_uri() + "#/items", look)


@on_page("#/judges")
def test_tables_of_judges_and_intervals_have_what_they_need(page: Any) -> None:
    """A table of judges is exported, and each interval is drawn over an axis with its ends named."""
    assert page.get_by_role("button", name="Export CSV").count() == 1
    ticks = page.locator(".whisker").first.locator(".tick-small").all_text_contents()
    assert ticks in (["−1", "0", "1"], ["0", "1"])


@on_page("#/")
def test_names_do_not_break_inside_words_and_minus_signs_are_minus_signs(page: Any) -> None:
    """A name breaks after a separator only, and no negative number has a hyphen."""
    page.locator("summary", has_text="Show all").click()
    assert not re.search(r"(?<![\w.)\]-])-\.?\d", page.locator("main").inner_text())
    page.evaluate("location.hash = '#/criteria'")
    name = page.locator("th a", has_text="parts/greeting").locator("bdi")
    assert name.inner_html() == "parts/<wbr>greeting"
    page.evaluate("location.hash = '#/'")
    assert re.fullmatch(r"Warnings \(\d+\)", page.locator("h2", has_text="Warnings").inner_text())


@on_page("#/heat", size=(1280, 860))
def test_heat_map_headings_do_not_touch(page: Any) -> None:
    """There is room between any two headings."""
    boxes = page.locator(".heat-name button").evaluate_all(
        "all => all.map(one => { const box = one.getBoundingClientRect(); return [box.left, box.right]; })"
    )
    assert len(boxes) > 5
    assert all(left[1] + 4 <= right[0] for left, right in itertools.pairwise(boxes))


class Described(Scripted):
    """A judge that describes itself as a model does."""

    def describe(self) -> dict[str, Any]:
        """Settings, some of them not set."""
        return {"model": "some/model", "temperature": None, "top_p": 0.9, "fallbacks": [], "seed": None}


def test_guidelines_and_settings_of_models_are_shown(browser: Browser, tmp_path: Path) -> None:
    """Guidelines are above the criteria, and parts below; the default temperature is the provider's."""
    dataset = long_dataset(2)
    assert dataset.rubric is not None
    steps = ChecklistCriterion(name="steps", items={"label": "It mentions a return label."})
    rubric = Rubric([*dataset.rubric, steps], guidelines="Judge only what is written.")
    changed = dataset.with_rubric(rubric)
    graded(tmp_path, changed, [Described("ann", 1.0)], "settings").to_html(tmp_path / "settings.html")

    def look(page: Any) -> None:
        assert page.locator(".guidelines").all_inner_texts() == ["Judge only what is written."]
        part = page.locator("tr", has_text="steps/label").inner_text()
        assert part.split("\t") == ["steps/label", "It mentions a return label.", "no 0.0, yes 1.0", "–"]
        rows = page.locator(".settings tr").all_inner_texts()
        assert [one.split("\t") for one in rows] == [
            ["model", "some/model"],
            ["temperature", "the provider's default"],
            ["top p", "0.9"],
            ["samples", "1"],
            ["weight", "1"],
        ]

    browser.look((tmp_path / "settings.html").as_uri() + "#/setup", look)
