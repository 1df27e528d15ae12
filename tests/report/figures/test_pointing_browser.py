"""Pointing at a judge in a real browser: its marks stay and those of the others step back, in every figure."""

from __future__ import annotations

from pathlib import Path

import assay_runs
import judged_sheets
import pytest
from browsing import write_pages
from made_season import site

from assaymark.report import render_comparison, render_datasheet, render_pages

pytestmark = pytest.mark.browser

SEEN = """() => {
  const found = {};
  for (const el of document.querySelectorAll('main .j')) {
    if (!el.getClientRects().length || el.closest('.keys')) continue;
    const at = el.getAttribute('class').match(/\\bj(\\d+|x)\\b/)[1];
    (found[at] ??= new Set()).add(Number(getComputedStyle(el).opacity));
  }
  return Object.fromEntries(Object.entries(found).map(([at, all]) => [at, [...all]]));
}"""
"""Script: how opaque the visible marks of each judge are."""


@pytest.fixture(scope="module")
def folder(once) -> Path:
    def build(root: Path) -> None:
        write_pages(root / "study", {"agreement.html": render_pages(assay_runs.realistic())["agreement.html"]})
        sheets = [judged_sheets.quay(), judged_sheets.north(), judged_sheets.strand()]
        write_pages(root / "sheets", {**render_datasheet(sheets[0], sheets[1:]), **render_comparison(sheets)})
        write_pages(root / "season", site("eight"))  # marks name their judge where an agent can be ranked

    return once("pages-to-point-at", build)


def kept(page) -> set[str]:
    """The judges whose visible marks stand as they are, where any have stepped back."""
    seen = page.evaluate(SEEN)
    assert all(values in ([1], [0.2]) for values in seen.values()), seen
    return {at for at, values in seen.items() if values == [1]}


def said(page) -> list[str]:
    """The words that are shown below the figures, each once."""
    script = "list => list.filter(e => getComputedStyle(e).opacity === '1').map(e => e.dataset.v)"
    return page.locator(".keys button span").evaluate_all(script)


# Each has three judges.
PAGES = (
    "study/agreement.html", "sheets/datasheet/quay-j.html", "sheets/datasheets.html", "season/panel.html",
    "season/agents/Alder.html",
)  # fmt: skip


@pytest.mark.parametrize(("path", "width"), [*((path, 1440) for path in PAGES), (PAGES[0], 390), (PAGES[-1], 390)])
def test_a_key_of_a_judge_keeps_its_marks_and_says_its_values_and_a_mark_wins_over_it(visit, path, width):
    page, everybody = visit(path, width), {"0", "1", "2"}
    assert kept(page) - {"x"} == everybody
    assert said(page) == []
    several, keys = page.locator(".keys .j99").first, page.locator(".keys").first.locator("button")
    assert several.evaluate("el => getComputedStyle(el).opacity") == "1"
    names = keys.evaluate_all("list => list.map(e => e.firstChild.textContent)")
    for at, name in enumerate(names):
        keys.nth(at).focus()
        assert kept(page) == {str(at)}, name
        assert len(said(page)) >= 1
        assert several.evaluate("el => getComputedStyle(el).opacity") == "0"
    if path != "season/panel.html" and width == 1440:
        page.locator(".keys button").nth(0).focus()
        texts = page.locator("svg.fig:visible .j1 text")
        (texts if texts.count() else page.locator("svg.fig:visible circle.j1")).first.hover()
        assert kept(page) == {"1"}
        assert len(said(page)) >= 1
        page.mouse.move(1, 1)
        assert kept(page) == {"0"}
    page.locator("h1").focus()
    page.evaluate("document.activeElement.blur()")
    assert kept(page) - {"x"} == everybody
    assert page.noise == []


def test_it_takes_no_script_and_nothing_of_it_is_printed(visit):
    page = visit("study/agreement.html", java_script_enabled=False)
    page.locator(".keys button").nth(1).focus()
    assert kept(page) == {"1"}
    page.emulate_media(media="print")
    assert page.locator(".keys:visible").count() == 0


def test_the_words_below_a_figure_are_those_of_its_text_alternative(visit):
    page = visit("sheets/datasheet/quay-j.html")
    for figure in page.locator("figure:has(.keys)").all():
        told = figure.locator("desc").first.text_content()
        for text in figure.locator(".keys button span").evaluate_all("list => list.map(e => e.dataset.v)"):
            assert text in told
