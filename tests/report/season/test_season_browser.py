"""The pages of a season in a real browser: silent, offline, in every width and light, labels apart, copies exact."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from browsing import APART, write_pages
from made_season import hostile_season, made_catalogue, made_season, pages, planned

from assaymark.report import season as season_pages

pytestmark = pytest.mark.browser

TOP = ("index.html", "claims.html", "panel.html", "measurements.html", "rules.html", "changelog.html", "method.html",
       "archive.html")  # fmt: skip
AGENTS = (
    "eight/agents/Birch.html", "eight/agents/Birch/ledger.html", "eight/de/agents/Elm.html",
    "eight/de/agents/Gorse/decisions.html", "many/agents/Alder.html", "one/de/agents/Hazel.html",
    "hostile/agents/Dogwood.html", "hostile/agents/birch-s-hne-c2e34254/decisions.html", "words/de/agents/Alder.html",
    "words/agents/Alder/decisions.html", "words/agents/Alder/checks.html",
)  # fmt: skip
CONTRAST = """() => {
  const lum = c => { const m = c.match(/[\\d.]+/g).slice(0, 3).map(Number)
      .map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * m[0] + 0.7152 * m[1] + 0.0722 * m[2]; };
  const base = lum(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll(
      'main p, main td, main th, main li, main dd, main .hd, main .wh, main .un, .beside p, .switch *')]
    .filter(e => e.getClientRects().length && e.textContent.trim() && !e.closest('.tag, pre, .tools'))
    .map(e => { const a = lum(getComputedStyle(e).color);
      return [(Math.max(a, base) + 0.05) / (Math.min(a, base) + 0.05), e.textContent.slice(0, 40)]; })
    .filter(([ratio]) => ratio < 4.5);
}"""
CLIPPED = """() => [...document.querySelectorAll('main td, main th, main .wh, main p, main li, main dd')]
  .filter(e => e.getClientRects().length && getComputedStyle(e).display !== 'inline' && !e.closest('.scroll, .scrolls'))
  .filter(e => e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.className + ': ' + e.textContent.slice(0, 60))"""
FITS = "document.documentElement.scrollWidth <= innerWidth"
SHOWN = "list => [...list].filter(e => e.offsetParent !== null || e.getClientRects().length).length"


def many() -> season_pages.SeasonRun:
    """A season with many judges and more baselines than names fit beside their lines."""
    run = made_season(1, 250, 9)
    cash = next(path for path in run.paths if path.name == "cash")
    return replace(run, paths=(*run.paths, *(replace(cash, name=f"baseline of a long name {at}") for at in range(5))))


def words() -> season_pages.SeasonRun:
    """A season whose texts are one word of a thousand letters each."""
    run, long = made_season(1, 9), "W" * 1000
    step = {"orders": (long,), "texts": (("summary", long), ("risk", long)), "mismatches": (long,), "flags": (long,)}
    lines = tuple(replace(one, quote=long, saw=long, judges={long: "supported"}) for one in run.ledger["Alder"])
    grades = tuple(replace(one, verdict=long, summary=long, lookahead_reason=long) for one in run.grades)
    steps = {"Alder": tuple(replace(one, **step) for one in run.steps["Alder"])}
    return planned(replace(run, steps=steps, ledger={"Alder": lines}, grades=grades), title=long)


@pytest.fixture(scope="module")
def folder(once) -> Path:
    def build(root: Path) -> None:
        season_pages.write_site(made_season(), root / "eight", [made_catalogue(code) for code in ("en", "de")])
        seasons = {"single": made_season(3, 4, 1), "hostile": hostile_season(), "words": words(), "many": many(),
                   "four": made_season(4, 47, hostile=False), "one": made_season(8, 1, 1)}  # fmt: skip
        for name, run in seasons.items():
            write_pages(root / name, pages(run))

    return once("pages-of-seasons", build)


def test_every_page_is_silent_offline_and_fits_in_every_width(visit):
    for path in (*(f"eight/{folder}{path}" for folder in ("", "de/") for path in TOP), *AGENTS):
        page = visit(path)
        top = path.rpartition("/")[2] in TOP
        if not top:
            page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        for width in (1440, 900, 524, 390) if top else (1440, 524, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(FITS), (path, width)
            assert page.evaluate(APART) == [], (path, width)
            assert not top or page.evaluate(CLIPPED) == [], (path, width)
        assert page.title() != "pwned"
        assert page.noise == []
        assert len(page.asked) == 1
        page.close()


@pytest.mark.parametrize(
    "path", ["eight/index.html", "eight/de/panel.html", "eight/claims.html", "eight/agents/Birch.html"]
)
def test_every_text_can_be_read_in_light_and_in_dark(visit, path):
    page = visit(path)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CONTRAST) == [], scheme


def test_levels_with_a_claim_start_on_the_first_screen(visit):
    for path, n in (("eight/index.html", 3), ("eight/de/index.html", 3), ("single/index.html", 1)):
        tops = visit(path).evaluate("[...document.querySelectorAll('.lv')].map(e => e.getBoundingClientRect().top)")
        assert len(tops) == n
        assert max(tops) < 900


def test_the_switch_leads_to_the_same_page_and_back(visit):
    for path in ("claims.html", "agents/Birch.html"):
        page = visit(f"eight/{path}")
        page.click(".switch a")
        assert page.url.endswith(f"/eight/de/{path}")
        assert page.evaluate("document.documentElement.lang") == "de"
        page.click(".switch a")
        assert page.url.endswith(f"/eight/{path}")


def test_filters_and_copies_speak_the_language_of_the_page(visit):
    page = visit("eight/de/claims.html", permissions=["clipboard-read", "clipboard-write"])
    page.locator('[data-tools="claim-rows"] button[data-f="qualified"]').click()
    shown = page.evaluate("[...document.querySelectorAll('#claim-rows > li')].filter(r => !r.hidden).length")
    assert shown > 0
    every = page.locator("#claim-rows > li").count()
    assert page.locator("output").text_content() == f"{shown} von {every} angezeigt"
    button = page.locator("#claim-rows > li:not([hidden]) .copy").first
    assert button.text_content() == "Kopieren"
    button.click()
    page.locator(".copy", has_text="Kopiert").first.wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("„")
    assert "(assaymark: Season 3, days 1 to 61, 2. Januar 2026, Plan a41f7c02" in copied


def test_on_a_phone_every_number_has_its_name_and_without_colours_permissions_keep_their_shapes(visit):
    unnamed = visit("eight/index.html", 390).evaluate(
        """() => [...document.querySelectorAll('.season tbody tr:not(.base) td.r')]
          .filter(e => !getComputedStyle(e, '::before').content.includes(e.dataset.l)).length"""
    )
    assert unnamed == 0
    styles = visit("eight/index.html", forced_colors="active").evaluate(
        """() => ['.qualified .claims', '.no-claim .claims', '.headline .claims']
          .map(s => getComputedStyle(document.querySelector(s)).borderLeftStyle)"""
    )
    assert styles == ["double", "dashed", "solid"]


def test_print_opens_what_is_folded_and_hides_the_controls(visit):
    page = visit("eight/claims.html")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")
    page.emulate_media(media="print")
    assert all(page.locator(one).first.is_hidden() for one in (".copy", ".tools", ".switch"))


def test_without_a_script_the_axis_turns_logarithmic_and_all_rows_show(visit):
    page = visit("eight/index.html", java_script_enabled=False)
    lines = "e => [...e.querySelectorAll('svg.wide .lin, svg.wide .log')].map(g => getComputedStyle(g).display)"
    figure = page.locator("#accounts figure")
    assert figure.evaluate(lines) == ["inline", "none"]
    page.locator(".tolog").check()
    assert figure.evaluate(lines) == ["none", "inline"]
    page = visit("eight/agents/Birch/ledger.html", java_script_enabled=False)
    rows = page.locator("#claim-lines tbody tr")
    assert rows.count() == 122
    assert rows.first.is_visible()
    assert rows.last.is_visible()
    assert not page.locator("[data-tools]").first.is_visible()


def test_a_figure_of_the_first_page_is_saved_as_png(visit, tmp_path):
    page = visit("eight/index.html")
    page.locator("#accounts .get summary").click()
    with page.expect_download() as saved:
        page.locator("#accounts [data-png]").click()
    saved.value.save_as(tmp_path / "figure.png")
    data = (tmp_path / "figure.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(data) > 10_000  # drawn, and not an empty sheet
    assert page.noise == []


def test_facts_can_be_sorted_and_the_column_of_names_brings_the_order_back(visit):
    page = visit("eight/de/index.html")
    names = "list => list.map(e => e.textContent.trim().split(/\\s/)[0])"
    rows, heads = page.locator(".season tbody th"), page.locator(".season thead [data-sort]")
    first = rows.evaluate_all(names)
    returns = page.locator(".season tbody td:nth-of-type(4)")
    heads.nth(1).locator("button").click()
    found = [float(text.split()[0].replace("−", "-").replace(",", ".")) for text in returns.all_inner_texts()]
    assert found == sorted(found, reverse=True)
    assert heads.nth(1).get_attribute("aria-sort") == "descending"
    heads.nth(1).locator("button").press("Enter")
    assert rows.evaluate_all(names) != first
    assert heads.nth(1).get_attribute("aria-sort") == "ascending"
    heads.nth(0).locator("button").click()
    assert rows.evaluate_all(names) == first
    assert page.locator(".season thead [data-sort]").count() == 4  # no score and no range of judges


@pytest.mark.parametrize(
    ("path", "heights", "most"),
    [("four/index.html", {1440: 3_000, 390: 6_000}, 750), ("four/agents/Alder.html", {1440: 2_600, 390: 4_800}, 720)],
)
def test_first_pages_keep_their_budgets(visit, folder, path, heights, most):
    data = (folder / path).read_bytes()
    assert len(data) <= 200_000
    assert len(gzip.compress(data)) <= 45_000
    for width, tall in heights.items():
        page = visit(path, width)
        assert page.evaluate("document.documentElement.scrollHeight") <= tall, width
        page.set_viewport_size({"width": 320, "height": 900})
        assert page.evaluate(FITS)
    page = visit(path)
    page.evaluate("document.querySelectorAll('.keys span').forEach(e => e.remove())")
    assert len(page.evaluate("document.querySelector('main').innerText").split()) <= most
    assert page.evaluate("document.querySelector('.lv').getBoundingClientRect().bottom") < 900
    assert page.evaluate("document.querySelector('svg.fig.wide').getBoundingClientRect().top") < 1_000


# --- the fact check and the decisions of an agent ---------------------------------------------------------------------


def test_a_button_shows_the_claims_that_it_counts_and_a_disagreement_is_underlined(visit):
    page = visit("eight/agents/Birch/ledger.html")
    rows = page.locator("#claim-lines tbody tr")
    for button in page.locator("[data-tools=claim-lines] button").all():
        button.click()
        count = int(button.inner_text().split()[-1])
        assert rows.evaluate_all(SHOWN) == count
        assert button.get_attribute("aria-pressed") == "true"
        assert page.locator("[data-tools=claim-lines] output").inner_text() == f"{count} of 122 shown"
    script = "list => list.flatMap(e => [...e.querySelectorAll('b')].map(b => getComputedStyle(b).borderBottomStyle))"
    for chosen, style in (("tr.diff", "solid"), ("tr:not(.diff)", "none")):
        assert set(page.locator(f"#claim-lines {chosen} td:last-child").evaluate_all(script)) == {style}
    page.locator("[data-tools=claim-lines] button").first.click()
    page.locator("#claim-lines tbody tr a").nth(20).click()
    assert page.url.endswith("Birch/decisions.html#d51")
    assert page.locator("#d51").is_visible()
    assert page.noise == []


def test_search_and_buttons_work_together_on_decisions(visit):
    page = visit("eight/de/agents/Birch/decisions.html")
    cards, search = page.locator("#decision-cards > section"), page.locator("[data-tools] input")
    for button in page.locator("[data-tools] button").all():
        button.click()
        assert cards.evaluate_all(SHOWN) == int(button.inner_text().split()[-1])
    page.locator("[data-tools] button").first.click()
    for text, n in (("entscheidung 17", 1), ("nowhere to be found", 0)):
        search.fill(text)
        assert cards.evaluate_all(SHOWN) == n
    assert page.locator("[data-tools] output").inner_text() == "0 von 61 angezeigt"
