"""The pages in a real browser: silent, offline, working without and with script, and the same in every light."""

from __future__ import annotations

from pathlib import Path

import assay_runs as runs
import full_runs
import pytest
from browsing import APART, write_pages

from assaymark.report import render_pages

pytestmark = pytest.mark.browser

RUNS = ("realistic", "large", "withheld", "full", "long")
FIGURES = (
    "realistic/index.html", "large/index.html", "full/index.html", "full/claim-map.html", "long/index.html",
    "long/claim-map.html",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(once) -> Path:
    """All pages of all runs as files."""

    def build(root: Path) -> None:
        for name in RUNS:
            write_pages(root / name, render_pages(getattr(runs if hasattr(runs, name) else full_runs, name)()))

    return once("pages-of-studies", build)


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("name", ["large", "long"])
def test_a_page_is_silent_offline_and_fits(visit, name, width):
    page = visit(f"{name}/index.html", width)
    assert page.noise == []
    assert len(page.asked) == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("path", ["claim-map.html", "claims.html", "measurements.html", "ledger/page-001.html"])
def test_the_other_pages_fit_a_phone(visit, path):
    for name in ("realistic", "long"):
        page = visit(f"{name}/{path}", 390)
        assert page.noise == []
        assert len(page.asked) == 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("name", ["realistic", "large", "withheld", "full"])
def test_all_three_levels_start_on_the_first_screen(visit, name):
    tops = visit(f"{name}/index.html").evaluate(
        "[...document.querySelectorAll('.lv')].map(e => e.getBoundingClientRect().top)"
    )
    assert len(tops) == 3
    assert max(tops) < 900


def test_filters_and_search_show_what_they_count(visit):
    page = visit("realistic/index.html")
    visible = "[...document.querySelectorAll('#ledger-rows tbody tr')].filter(r => !r.hidden)"
    button = page.locator('[data-tools="ledger-rows"] button[data-f="contradicted"]')
    button.click()
    shown = page.evaluate(f"{visible}.length")
    assert button.get_attribute("aria-pressed") == "true"
    assert button.text_content() == f"Contradicted {shown}"
    assert page.evaluate(f"{visible}.every(r => r.dataset.k === 'contradicted')")
    assert page.locator('[data-tools="ledger-rows"] output').text_content() == f"{shown} of 100 shown"
    page.locator('[data-tools="ledger-rows"] button[data-f=""]').click()
    page.locator('[data-tools="ledger-rows"] input').fill("rec-00007")
    assert 0 < page.evaluate(f"{visible}.length") < 10
    assert page.noise == []


def test_cards_are_filtered_like_rows(visit):
    page = visit("full/claims.html")
    visible = "[...document.querySelectorAll('#claim-rows > li')].filter(r => !r.hidden)"
    button = page.locator('[data-tools="claim-rows"] button[data-f="headline"]')
    button.click()
    shown = page.evaluate(f"{visible}.length")
    assert 0 < shown < page.locator("#claim-rows > li").count()
    assert button.text_content() == f"Headline {shown}"
    assert page.evaluate(f"{visible}.every(r => r.dataset.k === 'headline')")
    assert page.noise == []


def test_without_script_all_rows_show_and_no_dead_button_does(visit):
    page = visit("realistic/index.html", java_script_enabled=False)
    assert page.locator("#ledger-rows tbody tr").count() == 100
    assert page.locator("#ledger-rows tbody tr").nth(99).is_visible()
    assert not page.locator(".tools").first.is_visible()
    assert not page.locator(".copy").first.is_visible()


def test_on_a_phone_the_long_table_is_folded_and_the_page_short(visit):
    folded = "document.querySelector('#ledger-rows').closest('details')"
    button = "details:has(#ledger-rows) > summary"
    for script in (True, False):
        page = visit("realistic/index.html", 390, java_script_enabled=script)
        assert not page.locator("#ledger-rows tbody tr").first.is_visible()
        page.locator(button).click()
        assert page.locator("#ledger-rows tbody tr").nth(99).is_visible()
    page = visit("large/index.html", 390)
    assert page.evaluate("document.documentElement.scrollHeight") < 20_000
    assert not page.evaluate(f"{folded}.open")
    assert not visit("realistic/index.html").locator(button).is_visible()


def test_copy_puts_sentence_condition_and_plan_on_the_clipboard(visit):
    page = visit("realistic/index.html", permissions=["clipboard-read", "clipboard-write"])
    page.locator(".lv.qualified .copy").first.click()
    page.locator(".lv.qualified .copy", has_text="Copied").first.wait_for()
    text = page.evaluate("navigator.clipboard.readText()")
    assert "ranks first" in text
    assert "The judges agree only weakly on this score." in text
    assert runs.PLAN in text


def test_dark_mode_and_forced_colours_follow_the_reader(visit):
    light, dark = visit("realistic/index.html"), visit("realistic/index.html", color_scheme="dark")
    paint = "getComputedStyle(document.body).backgroundColor"
    assert light.evaluate(paint) == "rgb(255, 255, 255)"
    assert dark.evaluate(paint) == "rgb(17, 21, 26)"
    assert dark.noise == []
    forced = visit("realistic/index.html", forced_colors="active")
    assert forced.evaluate("getComputedStyle(document.querySelector('.no-claim .claims')).borderLeftStyle") == "dashed"


def test_one_width_of_each_figure_is_shown(visit):
    shown = (
        "[...document.querySelectorAll('svg.fig')]"
        ".filter(e => getComputedStyle(e).display !== 'none').map(e => e.classList[1])"
    )
    assert "narrow" not in visit("realistic/index.html").evaluate(shown)
    assert "wide" not in visit("realistic/index.html", 390).evaluate(shown)


def test_labels_of_figures_stay_apart_and_inside(visit):
    for path in FIGURES:
        for width in (1440, 390):
            assert visit(path, width).evaluate(APART) == []
