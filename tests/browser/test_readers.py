"""Readers without script, without a mouse, without colours of ours, and on paper."""

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

_FOCUSED = """() => {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  const own = getComputedStyle(e), box = e.getBoundingClientRect();
  const seen = own.outlineStyle !== 'none' && parseFloat(own.outlineWidth) >= 2 && box.width > 0 && box.left > -500;
  e.dataset.reached = '1';
  return [seen, e.outerHTML.slice(0, 120)];
}"""

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
def test_the_tabulator_key_reaches_everything_and_is_seen(browser, example, name):
    problems = []
    with visiting(browser) as visitor:
        for url in (pages_of(example(name), name)[0], pages_of(example(name), name)[-1]):
            visitor.open(url, ("light", 390))
            page = visitor.page
            page.keyboard.press("Tab")
            assert "skip" in page.evaluate("document.activeElement.className"), "first the way past the menu"
            for _ in range(min(int(page.evaluate(_TAB)) + 2, 150)):
                found = page.evaluate(_FOCUSED)
                if found is None:
                    break
                if not found[0]:
                    problems.append(f"{url}: has no visible focus: {found[1]}")
                page.keyboard.press("Tab")
            else:
                continue  # a page of very many links; those that follow are built like those before
            problems += [f"{url}: not reached: {one}" for one in page.evaluate(_MISSED)]
    assert not problems, said(problems)


LEVELS = {"headline": "solid", "qualified": "double", "no-claim": "dashed"}
_PERMISSIONS = """() => Object.fromEntries(['headline', 'qualified', 'no-claim'].map(
  level => [level, getComputedStyle(document.querySelector('.' + level + ' .claims')).borderLeftStyle]))"""
_BORDERLESS = """() => [...document.querySelectorAll('.tag, .chip, .notice, .tools button, .wh')].filter(e => {
  const own = getComputedStyle(e);
  return e.getClientRects().length && (own.borderTopStyle === 'none' || parseFloat(own.borderTopWidth) < 1);
}).map(e => e.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("name", PAGES)
def test_with_the_readers_own_colours_levels_and_marks_keep_their_borders(browser, example, name):
    with visiting(browser, forced_colors="active") as visitor:
        for url in pages_of(example(name), name):
            visitor.page.goto(url)
            assert visitor.page.evaluate(_BORDERLESS) == []
            if all(visitor.page.locator(f".{one} .claims").count() for one in LEVELS):
                assert visitor.page.evaluate(_PERMISSIONS) == LEVELS


def test_a_page_becomes_a_document_of_paper(browser, example, tmp_path, pictures):
    (url, *_) = pages_of(example("season"), "season")
    with visiting(browser) as visitor:
        visitor.open(url)
        path = (pictures or tmp_path) / "season~index.pdf"
        path.parent.mkdir(parents=True, exist_ok=True)
        visitor.page.pdf(path=str(path), format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "10mm"))
        data = path.read_bytes()
    assert data.startswith(b"%PDF-")
    assert data.count(b"/Type /Page\n") + data.count(b"/Type /Page ") + data.count(b"/Type /Page/") >= 1


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
