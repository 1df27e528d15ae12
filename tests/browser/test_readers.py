"""Readers without script, without a mouse, and without colours of ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from looking import said, until, visiting

pytestmark = pytest.mark.browser

PAGES = {
    "demo": (
        "report/index.html", "report/search.html", "report/claims.html", "report/ledger/page-001.html",
        "report/measurements.html",
    ),
    "season": ("index.html", "claims.html", "de/agents/one.html"),
    "datasheets": ("report/datasheets.html", "report/datasheet/slot-biased.html"),
    "portbench": ("report/index.html", "report/questions.html"),
}  # fmt: skip

_UNSHOWN = """() => [...document.querySelectorAll('main *')].filter(e => {
  if (e.closest('details:not([open]), [data-js], .sprite, svg, noscript') || e.hasAttribute('data-js')) return false;
  return e.hidden || (e.matches('tr, li, section, table') && !e.getClientRects().length);
}).map(e => e.outerHTML.slice(0, 120))"""

_BUTTONS = """() => [...document.querySelectorAll('button, input')]
  .filter(e => !e.closest('.keys, .scale'))  // what these do is done by the style sheet
  .filter(e => e.getClientRects().length).length"""

_LISTEN = """() => { window.unseen = []; document.addEventListener('focusin', ({target: e}) => {
  const own = getComputedStyle(e), box = e.getBoundingClientRect();
  const seen = own.outlineStyle !== 'none' && parseFloat(own.outlineWidth) >= 2 && box.width > 0 && box.left > -500;
  window.first ??= e.className;
  e.dataset.reached = '1';
  if (!seen) window.unseen.push(e.outerHTML.slice(0, 120));
}); }"""

_MISSED = """() => [...document.querySelectorAll('a[href], button, input, summary, main *')].filter(e => {
  if (e.dataset.reached || !e.checkVisibility({visibilityProperty: true}) || e.type === 'radio') return false;
  if (e.matches('a[href], button, input, summary')) return true;
  const scrolls = ['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1;
  return scrolls && !e.querySelector('a[href], button, [tabindex="0"]');
}).map(e => e.outerHTML.slice(0, 120))"""

_TAB = """() => {
  const all = [...document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]')];
  return all.filter(e => e.checkVisibility()).length;
}"""

LEVELS = {"headline": "solid", "qualified": "double", "no-claim": "dashed"}
_PERMISSIONS = """() => Object.fromEntries(['headline', 'qualified', 'no-claim'].map(
  level => [level, getComputedStyle(document.querySelector('.' + level + ' .claims')).borderLeftStyle]))"""
_BORDERLESS = """() => [...document.querySelectorAll('.tag, .chip, .notice, .tools button, .wh')].filter(e => {
  const own = getComputedStyle(e);
  return e.getClientRects().length && (own.borderTopStyle === 'none' || parseFloat(own.borderTopWidth) < 1);
}).map(e => e.outerHTML.slice(0, 120))"""


def pages_of(root: Path, name: str) -> list[str]:
    return [(root / path).as_uri() for path in PAGES[name] if (root / path).is_file()]


@pytest.mark.parametrize("name", PAGES)
def test_without_script_everything_shows_and_no_button_that_does_nothing(browser, example, name):
    problems = []
    with visiting(browser, java_script_enabled=False) as visitor:
        urls = pages_of(example(name), name)
        assert len(urls) > 1
        for url in urls:
            visitor.page.goto(url)
            problems += [f"{url}: not shown: {one}" for one in visitor.page.evaluate(_UNSHOWN)]
            if found := visitor.page.evaluate(_BUTTONS):
                problems.append(f"{url}: {found} buttons and boxes that nothing listens to")
            problems += visitor.noise
    assert not problems, said(problems)


@pytest.mark.parametrize("name", PAGES)
def test_the_tabulator_key_reaches_everything_and_with_own_colours_levels_and_marks_keep_borders(
    browser, example, name
):
    problems, urls = [], pages_of(example(name), name)
    with visiting(browser) as visitor:
        page = visitor.page
        for url in urls:
            visitor.open(url, ("light", 390))
            if url in (urls[0], urls[-1]):
                page.evaluate(_LISTEN)
                # Those that follow on a page of very many links are built like those before.
                few = (steps := int(page.evaluate(_TAB)) + 2) <= 150
                for _ in range(min(steps, 150)):
                    page.keyboard.press("Tab")
                assert "skip" in page.evaluate("window.first"), "first the way past the menu"
                problems += [f"{url}: has no visible focus: {one}" for one in page.evaluate("window.unseen")]
                problems += [f"{url}: not reached: {one}" for one in page.evaluate(_MISSED)] if few else []
            page.emulate_media(forced_colors="active")
            assert page.evaluate(_BORDERLESS) == []
            if all(page.locator(f".{one} .claims").count() for one in LEVELS):
                assert page.evaluate(_PERMISSIONS) == LEVELS
            page.emulate_media(forced_colors="none")
    assert not problems, said(problems)


def test_a_call_is_found_over_all_parts_and_arrow_keys_lead_to_its_neighbours(browser, example):
    with visiting(browser) as visitor:
        visitor.open((example("demo") / "report/search.html").as_uri())
        page = visitor.page
        page.fill("#s-box", "auditor birch trial 3")
        assert page.locator("#s-list li").count() == 50  # so many are shown
        page.locator("#s-list a", has_text="call").nth(1).click()
        heading = page.locator(".call:target h2")
        first = heading.inner_text()
        assert first.startswith("auditor on ")
        assert page.locator(".call:visible").count() == 1
        assert page.locator(".call:target aside a", has_text="reader").count() == 1
        for key, moved in (("ArrowRight", True), ("ArrowLeft", False)):
            page.keyboard.press(key)
            same = "was => (document.querySelector('.call:target h2').innerText != was[0]) == was[1]"
            until(page, same, [first, moved])
        assert visitor.noise == []
