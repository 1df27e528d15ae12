"""The first page of the demonstration keeps its budgets: height, words, bytes, and what is above the fold."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from looking import said, visiting

from assaymark.cli import main

pytestmark = pytest.mark.browser

HEIGHTS = {1440: 4_500, 390: 8_500}
WORDS = 1_100
SCORES = Path(__file__).parents[2] / "examples/scores.csv"
FIRST = {"tallies": (".counts", 300), "result": (".answer", 720)}
"""Ends that have to be above so many pixels at 1440."""

_SMALL = """() => [...document.querySelectorAll('svg text')].filter(e => e.getClientRects().length).filter(e => {
  const svg = e.ownerSVGElement, scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return parseFloat(getComputedStyle(e).fontSize) * scale < 11.9;
}).map(e => e.textContent)"""

_WORDS = """[...document.querySelectorAll('select, .log')].forEach(e => e.remove()) ||
  document.querySelector('main').innerText.split(/\\s+/).length"""
"""Words of a page, without the choices of a form and without the scale of a figure that is not shown."""


def test_the_first_page_keeps_its_budgets(browser, example):
    path = example("demo") / "report/index.html"
    data, problems = path.read_bytes(), []
    assert len(data) <= 200_000
    assert len(gzip.compress(data)) <= 45_000
    (bench,) = re.findall(rb'id="b-data">(.*?)</script>', data, flags=re.DOTALL)
    assert len(bench) <= 40_000
    with visiting(browser) as visitor:
        for width, most in HEIGHTS.items():
            visitor.open(path.as_uri(), ("light", width))
            page = visitor.page
            height = page.evaluate("document.documentElement.scrollHeight")
            problems += [f"{height} px at {width}, at most {most}"] if height > most else []
            problems += visitor.spoken(path.as_uri())
            problems += [f"{width} px: {one!r} is smaller than 12 px" for one in page.evaluate(_SMALL)]
            if width == 1440:
                for name, (one, below) in FIRST.items():
                    end = page.evaluate(f"document.querySelector('{one}').getBoundingClientRect().bottom")
                    problems += [f"{name} end at {end}, at most {below}"] if end > below else []
                chart = page.evaluate("document.querySelector('#ahead svg.fig').getBoundingClientRect().top")
                problems += [f"first chart at {chart}"] if chart > 1000 else []
                words = page.evaluate(_WORDS)
                problems += [f"{words} words, at most {WORDS}"] if words > WORDS else []
        problems += visitor.overflow(320)
    assert not problems, said(problems)


OTHERS = {  # most pixels of a page on a desk and on a phone, and most of its words
    "index.html": ([], 3_000, 6_000, 750),
    "agents/Alder.html": ([], 2_600, 4_800, 650),
    "of a table": (["check", str(SCORES)], 3_500, 6_500, 900),
    "of real judges": (["demo", "--real"], 4_500, 6_500, 1_300),  # six judges and pairs in both orders
}


@pytest.mark.parametrize("name", OTHERS)
def test_pages_of_seasons_and_tables_keep_their_budgets(browser, example, tmp_path, name):
    command, *heights, words = OTHERS[name]
    if command:
        assert main([*command, "--out", str(tmp_path / "run"), "--quiet"]) == 0
    page = tmp_path / "run/report/index.html" if command else example("made seasons") / "eight" / name
    with visiting(browser) as visitor:
        for width, most in zip((1440, 390), heights, strict=True):
            visitor.open(page.as_uri(), ("light", width))
            assert visitor.page.evaluate("document.documentElement.scrollHeight") <= most
            if command:
                end = visitor.page.evaluate("document.querySelector('.counts').getBoundingClientRect().bottom")
                assert end <= 1_200
        assert visitor.page.evaluate(_WORDS) <= words
        assert visitor.overflow(320) == []


def test_everything_of_the_first_page_is_there_for_everybody(browser, example):
    path = example("demo") / "report/index.html"
    with visiting(browser) as visitor:
        visitor.open(path.as_uri())
        sheets = len(re.findall(rb"/Type\s*/Page\b", visitor.page.pdf(format="A4")))
        problems = [f"{sheets} sheets of paper"] if sheets > 6 else []
        problems += [*visitor.printed(), *visitor.barriers([("light", 1440), ("dark", 390)])]
    assert not problems, said(problems)


def test_every_figure_is_a_picture_and_a_table_of_its_own(browser, example, tmp_path):
    """Files beside the pages, without a script; the picture in points is made by the page."""
    root = example("demo") / "report"
    drawn = sorted((root / "figures").glob("*.svg"))
    assert len(drawn) > 20
    for path in drawn:
        picture = ElementTree.parse(path).getroot()
        assert picture.tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(--bg)" in path.read_text()
        assert re.search(r"<metadata>Figure: .+, plan [0-9a-f]+…[0-9a-f]+, assaymark ", path.read_text())
    heads, *rows = (root / "figures/index-tiers-w.csv").read_text().splitlines()
    assert heads == "Agents,Low,High,Score"
    assert rows
    with visiting(browser) as visitor:
        visitor.open((root / "index.html").as_uri())
        page = visitor.page
        page.locator("#ahead .get summary").first.click()
        with page.expect_download() as saved:
            page.locator("#ahead [data-png]").first.click()
        saved.value.save_as(tmp_path / "figure.png")
        assert visitor.noise == []
    data = (tmp_path / "figure.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(data[16:20], "big") == 2240
