"""First pages keep their budgets: height, words, bytes, what is above the fold; and their figures can be taken away."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from looking import said, visiting

from assaymark.cli import main

pytestmark = pytest.mark.browser

SCORES = Path(__file__).parents[2] / "examples/scores.csv"
FIRST = {".counts": 300, ".answer": 720}
"""Of the demonstration: tallies and result have to end above so many pixels at 1440."""
_SMALL = """() => [...document.querySelectorAll('svg text')].filter(e => e.getClientRects().length).filter(e => {
  const svg = e.ownerSVGElement, scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return parseFloat(getComputedStyle(e).fontSize) * scale < 11.9;
}).map(e => e.textContent)"""
_WORDS = """[...document.querySelectorAll('select, .log')].forEach(e => e.remove()) ||
  document.querySelector('main').innerText.split(/\\s+/).length"""
"""Words of a page, without the choices of a form and without the scale of a figure that is not shown."""
_BOTTOM = "one => document.querySelector(one).getBoundingClientRect().bottom"
PAGES = {  # most pixels of a page on a desk and on a phone, and most of its words
    "demo": ([], 4_500, 8_500, 1_100),
    "index.html": ([], 3_000, 6_000, 750),
    "agents/Alder.html": ([], 2_600, 4_800, 650),
    "portbench": ([["bench", "qa"], ["bench", "pipeline"]], 3_000, 6_000, 750),
    "of a table": ([["check", str(SCORES)]], 3_500, 6_500, 900),
    "of real judges": ([["demo", "--real"]], 4_500, 6_500, 1_300),  # six judges and pairs in both orders
}


@pytest.mark.parametrize("name", PAGES)
def test_first_pages_keep_their_budgets(browser, example, tmp_path, name):
    commands, *heights, words = PAGES[name]
    for command in commands:
        assert main([*command, "--out", str(tmp_path / "run"), "--quiet"]) == 0
    seasons = name.endswith(".html")
    made = tmp_path / "run" if commands else example("made seasons" if seasons else "demo")
    path = made / ("report/index.html" if not seasons else f"eight/{name}")
    with visiting(browser) as visitor:
        problems, page = [], visitor.page
        for width, most in zip((1440, 390), heights, strict=True):
            visitor.open(path.as_uri(), ("light", width))
            height = page.evaluate("document.documentElement.scrollHeight")
            problems += [f"{height} px at {width}, at most {most}"] if height > most else []
            if name == "demo":
                problems += [f"{width} px: {one!r} is smaller than 12 px" for one in page.evaluate(_SMALL)]
            for one, below in (FIRST if name == "demo" and width == 1440 else {}).items():
                end = page.evaluate(_BOTTOM, one)
                problems += [f"{one} ends at {end}, at most {below}"] if end > below else []
            if name.startswith("of "):
                assert page.evaluate(_BOTTOM, ".counts") <= 1_200
            if seasons and width == 1440:
                assert page.evaluate(_BOTTOM, ".lv") < 900
                assert page.evaluate("document.querySelector('svg.fig.wide').getBoundingClientRect().top") < 1_000
        problems += visitor.overflow(320)
        visitor.set(("light", 1440 if name in ("demo", "portbench") else 390))
        found = page.evaluate(_WORDS)
        problems += [f"{found} words, at most {words}"] if found > words else []
        if name == "demo":
            assert page.evaluate("document.querySelector('#ahead svg.fig').getBoundingClientRect().top") <= 1000
            data = path.read_bytes()
            assert (len(data) <= 200_000, len(gzip.compress(data)) <= 45_000) == (True, True)
            (bench,) = re.findall(rb'id="b-data">(.*?)</script>', data, flags=re.DOTALL)
            assert len(bench) <= 40_000
            assert 1 <= len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) <= 6, "sheets of paper"
    assert not problems, said(problems)


def test_every_figure_is_a_picture_and_a_table_of_its_own(browser, example, tmp_path):
    """Files beside the pages, without a script; the picture in points is made by the page."""
    root = example("demo") / "report"
    drawn = sorted((root / "figures").glob("*.svg"))
    assert len(drawn) > 20
    for text in (path.read_text() for path in drawn):
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(--bg)" in text
        assert re.search(r"<metadata>Figure: .+, plan [0-9a-f]+…[0-9a-f]+, assaymark ", text)
    heads, *rows = (root / "figures/index-tiers-w.csv").read_text().splitlines()
    assert (heads, bool(rows)) == ("Agents,Low,High,Score", True)
    with visiting(browser) as visitor:
        visitor.open((root / "index.html").as_uri())
        visitor.page.locator("#ahead .get summary").first.click()
        with visitor.page.expect_download() as saved:
            visitor.page.locator("#ahead [data-png]").first.click()
        saved.value.save_as(tmp_path / "figure.png")
        assert visitor.noise == []
    data = (tmp_path / "figure.png").read_bytes()
    assert (data[:8], int.from_bytes(data[16:20], "big")) == (b"\x89PNG\r\n\x1a\n", 2240)
