"""The pages of agents in a real browser: silent, offline, in every width and light, labels apart, filters exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from browsing import APART, write_pages
from made_season import hostile_season, made_catalogue, made_season, planned

from assaymark.report.season import SeasonRun, site_pages

pytestmark = pytest.mark.browser

PAGES = (
    "eight/agents/Birch.html", "eight/agents/Birch/ledger.html", "eight/de/agents/Elm.html",
    "eight/de/agents/Gorse/decisions.html", "many/agents/Alder.html", "one/de/agents/Hazel.html",
    "hostile/agents/Dogwood.html", "hostile/agents/birch-s-hne-c2e34254/decisions.html", "words/de/agents/Alder.html",
    "words/agents/Alder/decisions.html", "words/agents/Alder/checks.html",
)  # fmt: skip
SHOWN = "list => [...list].filter(e => e.offsetParent !== null || e.getClientRects().length).length"


def pages(run: SeasonRun) -> Mapping[str, str]:
    return dict(site_pages(run, [made_catalogue(code) for code in ("en", "de")]))


def many() -> SeasonRun:
    """A season with many judges and more baselines than names fit beside their lines."""
    run = made_season(1, 250, 9)
    cash = next(path for path in run.paths if path.name == "cash")
    more = tuple(replace(cash, name=f"baseline of a long name {at}") for at in range(5))
    return replace(run, paths=(*run.paths, *more))


def words() -> SeasonRun:
    """A season whose texts are one word of a thousand letters each."""
    run, long = made_season(1, 9), "W" * 1000
    steps = tuple(
        replace(one, orders=(long,), texts=(("summary", long), ("risk", long)), mismatches=(long,), flags=(long,))
        for one in run.steps["Alder"]
    )
    lines = tuple(replace(one, quote=long, saw=long, judges={long: "supported"}) for one in run.ledger["Alder"])
    grades = tuple(replace(one, verdict=long, summary=long, lookahead_reason=long) for one in run.grades)
    return planned(replace(run, steps={"Alder": steps}, ledger={"Alder": lines}, grades=grades), title=long)


@pytest.fixture(scope="module")
def folder(once) -> Path:
    def build(root: Path) -> None:
        seasons = {
            "eight": made_season(), "many": many(), "one": made_season(8, 1, 1), "hostile": hostile_season(),
            "words": words(),
        }  # fmt: skip
        for name, run in seasons.items():
            write_pages(root / name, pages(run))

    return once("pages-of-agents", build)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_silent_offline_fits_and_its_labels_stay_apart(visit, path):
    page = visit(path)
    assert page.title() != "pwned"
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    for width in (1440, 524, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        assert page.evaluate(APART) == []
    assert page.noise == []
    assert len(page.asked) == 1


def test_a_button_shows_the_claims_that_it_counts(visit):
    page = visit("eight/agents/Birch/ledger.html")
    rows = page.locator("#claim-lines tbody tr")
    for button in page.locator("[data-tools=claim-lines] button").all():
        button.click()
        count = int(button.inner_text().split()[-1])
        assert rows.evaluate_all(SHOWN) == count
        assert button.get_attribute("aria-pressed") == "true"
        assert page.locator("[data-tools=claim-lines] output").inner_text() == f"{count} of 122 shown"


def test_search_and_buttons_work_together_on_decisions(visit):
    page = visit("eight/de/agents/Birch/decisions.html")
    cards = page.locator("#decision-cards > section")
    for button in page.locator("[data-tools] button").all():
        button.click()
        assert cards.evaluate_all(SHOWN) == int(button.inner_text().split()[-1])
    page.locator("[data-tools] button").first.click()
    page.locator("[data-tools] input").fill("entscheidung 17")
    assert cards.evaluate_all(SHOWN) == 1
    page.locator("[data-tools] input").fill("nowhere to be found")
    assert cards.evaluate_all(SHOWN) == 0
    assert page.locator("[data-tools] output").inner_text() == "0 von 61 angezeigt"


def test_without_a_script_all_rows_show_and_no_button_does(visit):
    page = visit("eight/agents/Birch/ledger.html", java_script_enabled=False)
    assert page.locator("#claim-lines tbody tr").count() == 122
    assert page.locator("#claim-lines tbody tr").first.is_visible()
    assert page.locator("#claim-lines tbody tr").last.is_visible()
    assert not page.locator("[data-tools]").first.is_visible()


def test_a_disagreement_is_underlined_and_agreement_is_not(visit):
    page = visit("eight/agents/Birch/ledger.html")
    script = "list => list.flatMap(e => [...e.querySelectorAll('b')].map(b => getComputedStyle(b).borderBottomStyle))"
    marked = page.locator("#claim-lines tr.diff td:last-child").evaluate_all(script)
    assert marked
    assert set(marked) == {"solid"}
    others = page.locator("#claim-lines tr:not(.diff) td:last-child").evaluate_all(script)
    assert set(others) == {"none"}


def test_a_claim_leads_to_its_decision(visit):
    page = visit("eight/agents/Birch/ledger.html")
    page.locator("#claim-lines tbody tr a").nth(20).click()
    assert page.url.endswith("Birch/decisions.html#d51")
    assert page.locator("#d51").is_visible()
    assert page.noise == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_on_a_page_can_be_read(visit, scheme):
    script = """() => {
      const lum = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
          .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
        return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
      const back = lum(getComputedStyle(document.body).backgroundColor);
      return [...document.querySelectorAll('main p, main td, main th, main li, main .hd, main dd, .beside p')]
        .filter(e => e.textContent.trim()).map(e => { const a = lum(getComputedStyle(e).color);
          return (Math.max(a, back) + 0.05) / (Math.min(a, back) + 0.05); }); }"""
    found = visit("eight/agents/Birch.html", color_scheme=scheme).evaluate(script)
    assert min(found) >= 4.5
