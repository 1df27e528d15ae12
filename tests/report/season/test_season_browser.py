"""The pages of a season in a real browser: silent, offline, in every width and light, labels apart, copies exact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from browsing import APART, FITS, LUM, UNFOLD, write_pages
from made_season import hostile_season, made_catalogue, made_season, pages, planned, redecided

from assaymark.records import Action, Rationale
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
READ = ("eight/index.html", "eight/de/panel.html", "eight/claims.html", "eight/agents/Birch.html")
LEVELS = {"eight/index.html": 3, "eight/de/index.html": 3, "single/index.html": 1}
"""On how many levels the first page of a season has a claim."""
CONTRAST = f"""() => {{ {LUM}
  const base = lum(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll(
      'main p, main td, main th, main li, main dd, main .hd, main .wh, main .un, .beside p, .switch *')]
    .filter(e => e.getClientRects().length && e.textContent.trim() && !e.closest('.tag, pre, .tools'))
    .map(e => {{ const a = lum(getComputedStyle(e).color);
      return [(Math.max(a, base) + 0.05) / (Math.min(a, base) + 0.05), e.textContent.slice(0, 40)]; }})
    .filter(([ratio]) => ratio < 4.5); }}"""
CLIPPED = """() => [...document.querySelectorAll('main td, main th, main .wh, main p, main li, main dd')]
  .filter(e => e.getClientRects().length && getComputedStyle(e).display !== 'inline' && !e.closest('.scroll, .scrolls'))
  .filter(e => e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.className + ': ' + e.textContent.slice(0, 60))"""
TOPS = "[...document.querySelectorAll('.lv')].map(e => e.getBoundingClientRect().top)"
SHOWN = "list => [...list].filter(e => e.offsetParent !== null || e.getClientRects().length).length"
UNNAMED = """() => [...document.querySelectorAll('.season tbody tr:not(.base) td.r')]
  .filter(e => !getComputedStyle(e, '::before').content.includes(e.dataset.l)).length"""
BORDERS = """() => ['.qualified .claims', '.no-claim .claims', '.headline .claims']
  .map(s => getComputedStyle(document.querySelector(s)).borderLeftStyle)"""


def many() -> season_pages.SeasonRun:
    """A season with many judges and more baselines than names fit beside their lines."""
    run = made_season(1, 250, 9)
    cash = next(path for path in run.paths if path.name == "cash")
    return replace(run, paths=(*run.paths, *(replace(cash, name=f"baseline of a long name {at}") for at in range(5))))


def words() -> season_pages.SeasonRun:
    """A season whose texts are one word of a thousand letters each."""
    run, long = made_season(1, 9), "W" * 1000
    said = {"actions": (Action(instrument=long, kind="buy"),), "flags": (long,),
            "rationales": (Rationale(text=long, kind="summary"), Rationale(text=long, kind="risk"))}  # fmt: skip
    lines = tuple(replace(one, quote=long, saw=long, judges={long: "supported"}) for one in run.ledger["Alder"])
    grades = tuple(replace(one, verdict=long, summary=long, lookahead_reason=long) for one in run.grades)
    steps = {"Alder": tuple(redecided(replace(one, mismatches=(long,)), **said) for one in run.steps["Alder"])}
    return planned(replace(run, steps=steps, ledger={"Alder": lines}, grades=grades), title=long)


@pytest.fixture(scope="module")
def folder(once) -> Path:
    def build(root: Path) -> None:
        season_pages.write_site(made_season(), root / "eight", [made_catalogue(code) for code in ("en", "de")])
        english = {"single": made_season(3, 4, 1), "hostile": hostile_season(), "many": many(),
                   "four": made_season(4, 47, hostile=False)}  # fmt: skip
        for name, run in english.items():
            write_pages(root / name, pages(run, "en"))
        for name, run in {"words": words(), "one": made_season(8, 1, 1)}.items():
            write_pages(root / name, pages(run))

    return once("pages-of-seasons", build)


def test_every_page_is_silent_offline_fits_in_every_width_and_can_be_read_in_both_lights(visit):
    page, problems = visit("single/index.html"), []
    german = [f"eight/de/{path}" for path in TOP[:4]]
    for path in ("single/index.html", *(f"eight/{path}" for path in TOP), *german, *AGENTS):
        page.show(path)
        top = path.rpartition("/")[2] in TOP
        tops = page.evaluate(TOPS)
        assert path not in LEVELS or (len(tops), max(tops) < 900) == (LEVELS[path], True)
        if not top:
            page.evaluate(UNFOLD)
        for width in (1440, 900, 524, 390) if top and "/de/" not in path else (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            problems += [] if page.evaluate(FITS) else [(path, width, "wider than the screen")]
            problems += [(path, width, one) for one in page.evaluate(APART)]
            problems += [(path, width, one) for one in page.evaluate(CLIPPED)] if top else []
        for scheme in ("light", "dark") if path in READ else ():
            page.emulate_media(color_scheme=scheme)
            problems += [(path, scheme, one) for one in page.evaluate(CONTRAST)]
        problems += [(path, one) for one in (*page.noise, *page.asked[1:])]
        problems += [(path, "a script ran")] * (page.title() == "pwned")
    assert problems == []


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


def test_the_first_page_names_its_numbers_on_a_phone_keeps_shapes_without_colours_and_saves_a_figure(visit, tmp_path):
    page = visit("eight/index.html", 390)
    assert page.evaluate(UNNAMED) == 0
    page.emulate_media(forced_colors="active")
    assert page.evaluate(BORDERS) == ["double", "dashed", "solid"]
    page.show("eight/index.html", 1440)
    page.locator("#accounts .get summary").click()
    with page.expect_download() as saved:
        page.locator("#accounts [data-png]").click()
    saved.value.save_as(tmp_path / "figure.png")
    data = (tmp_path / "figure.png").read_bytes()
    assert (data[:8], len(data) > 10_000) == (b"\x89PNG\r\n\x1a\n", True), "drawn, and not an empty sheet"
    assert page.noise == []
    page.show("eight/claims.html")
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
