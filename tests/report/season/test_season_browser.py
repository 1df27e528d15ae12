"""The pages of a season in a browser: switch, filters, sorting and copies; `tests/browser` opens all of its pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_season import made_catalogue, made_season

from assaymark.report import season as season_pages

pytestmark = pytest.mark.browser

SHOWN = "list => [...list].filter(e => e.offsetParent !== null || e.getClientRects().length).length"
UNNAMED = """() => [...document.querySelectorAll('.season tbody tr:not(.base) td.r')]
  .filter(e => !getComputedStyle(e, '::before').content.includes(e.dataset.l)).length"""
BORDERS = """() => ['.qualified .claims', '.no-claim .claims', '.headline .claims']
  .map(s => getComputedStyle(document.querySelector(s)).borderLeftStyle)"""

COVERED = """() => [...document.querySelectorAll('.keys .j99')]
  .filter(e => e.getBoundingClientRect().bottom > e.parentElement.getBoundingClientRect().bottom + 8).length"""


@pytest.fixture(scope="module")
def folder(once) -> Path:
    def build(root: Path) -> None:
        season_pages.write_site(made_season(), root / "eight", [made_catalogue(code) for code in ("en", "de")])

    return once("pages-of-seasons", build)


def test_the_switch_leads_to_the_same_page_and_back_and_filters_and_copies_speak_its_language(visit):
    page = visit("eight/claims.html", permissions=["clipboard-read", "clipboard-write"])
    for path in ("agents/Birch.html", "claims.html"):
        page.show(f"eight/{path}")
        page.click(".switch a")
        assert page.url.endswith(f"/eight/de/{path}")
        assert page.evaluate("document.documentElement.lang") == "de"
        page.click(".switch a")
        assert page.url.endswith(f"/eight/{path}")
    page.click(".switch a")
    page.locator('[data-tools="claim-rows"] button[data-f="qualified"]').click()
    shown = page.evaluate("[...document.querySelectorAll('#claim-rows > li')].filter(r => !r.hidden).length")
    assert shown > 0
    assert page.locator("output").text_content() == f"{shown} von {page.locator('#claim-rows > li').count()} angezeigt"
    button = page.locator("#claim-rows > li:not([hidden]) .copy").first
    assert button.text_content() == "Kopieren"
    button.click()
    page.locator(".copy", has_text="Kopiert").first.wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("„")
    assert "(assaymark: Season 3, days 1 to 61, 2. Januar 2026, Plan a41f7c02" in copied


def test_the_first_page_names_its_numbers_on_a_phone_keeps_shapes_without_colours(visit):
    page = visit("eight/index.html", 390)
    assert page.evaluate(UNNAMED) == 0
    page.emulate_media(forced_colors="active")
    assert page.evaluate(BORDERS) == ["double", "dashed", "solid"]
    page.show("eight/de/agents/Birch.html")
    assert page.evaluate(COVERED) == 0  # a hint of two lines has room for both
    page.show("eight/claims.html")
    page.emulate_media(media="print")
    assert all(page.locator(one).first.is_hidden() for one in (".copy", ".tools", ".switch"))


def test_without_a_script_the_axis_turns_logarithmic_and_all_rows_show(visit):
    page = visit("eight/index.html", java_script_enabled=False)
    lines = "e => [...e.querySelectorAll('svg.wide .lin, svg.wide .log')].map(g => getComputedStyle(g).display)"
    figure = page.locator("#accounts figure")
    assert figure.evaluate(lines) == ["inline", "none"]
    page.locator(".tolog").check()
    assert figure.evaluate(lines) == ["none", "inline"]
    page.show("eight/agents/Birch/ledger.html")
    rows = page.locator("#claim-lines tbody tr")
    assert (rows.count(), rows.first.is_visible(), rows.last.is_visible()) == (122, True, True)
    assert not page.locator("[data-tools]").first.is_visible()


def test_facts_can_be_sorted_and_the_column_of_names_brings_the_order_back(visit):
    page = visit("eight/de/index.html")
    names = "list => list.map(e => e.textContent.trim().split(/\\s/)[0])"
    rows, heads = page.locator(".season tbody th"), page.locator(".season thead [data-sort]")
    first, returns = rows.evaluate_all(names), page.locator(".season tbody td:nth-of-type(4)")
    heads.nth(1).locator("button").click()
    found = [float(text.split()[0].replace("−", "-").replace(",", ".")) for text in returns.all_inner_texts()]
    assert (found, heads.nth(1).get_attribute("aria-sort")) == (sorted(found, reverse=True), "descending")
    heads.nth(1).locator("button").press("Enter")
    assert rows.evaluate_all(names) != first
    assert heads.nth(1).get_attribute("aria-sort") == "ascending"
    heads.nth(0).locator("button").click()
    assert rows.evaluate_all(names) == first
    assert heads.count() == 4  # no score and no range of judges


def test_buttons_and_search_show_what_they_count_and_a_disagreement_is_underlined(visit):
    page = visit("eight/agents/Birch/ledger.html")
    rows = page.locator("#claim-lines tbody tr")
    for button in page.locator("[data-tools=claim-lines] button").all():
        button.click()
        count = int(button.inner_text().split()[-1])
        assert (rows.evaluate_all(SHOWN), button.get_attribute("aria-pressed")) == (count, "true")
        assert page.locator("[data-tools=claim-lines] output").inner_text() == f"{count} of 122 shown"
    script = "list => list.flatMap(e => [...e.querySelectorAll('b')].map(b => getComputedStyle(b).borderBottomStyle))"
    for chosen, style in (("tr.diff", "solid"), ("tr:not(.diff)", "none")):
        assert set(page.locator(f"#claim-lines {chosen} td:last-child").evaluate_all(script)) == {style}
    page.locator("[data-tools=claim-lines] button").first.click()
    page.locator("#claim-lines tbody tr a").nth(20).click()
    assert page.url.endswith("Birch/decisions.html#d51")
    assert page.locator("#d51").is_visible()
    assert page.noise == []
    page.show("eight/de/agents/Birch/decisions.html")
    cards, search = page.locator("#decision-cards > section"), page.locator("[data-tools] input")
    for button in page.locator("[data-tools] button").all():
        button.click()
        assert cards.evaluate_all(SHOWN) == int(button.inner_text().split()[-1])
    page.locator("[data-tools] button").first.click()
    for text, n in (("entscheidung 17", 1), ("nowhere to be found", 0)):
        search.fill(text)
        assert cards.evaluate_all(SHOWN) == n
    assert page.locator("[data-tools] output").inner_text() == "0 von 61 angezeigt"
