"""The first page of the demonstration keeps its budgets: height, words, bytes, and what is above the fold."""

from __future__ import annotations

import gzip
import re

import pytest
from looking import said, visiting

pytestmark = pytest.mark.browser

HEIGHTS = {1440: 4_500, 390: 8_500}
WORDS = 1_100
FIRST = {"tallies": (".counts", 300), "result": (".answer", 720)}
"""Ends that have to be above so many pixels at 1440."""

_SMALL = """() => [...document.querySelectorAll('svg text')].filter(e => e.getClientRects().length).filter(e => {
  const svg = e.ownerSVGElement, scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return parseFloat(getComputedStyle(e).fontSize) * scale < 11.9;
}).map(e => e.textContent)"""


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
                words = page.evaluate(
                    "[...document.querySelectorAll('select')].forEach(e => e.remove()) ||"
                    " document.querySelector('main').innerText.split(/\\s+/).length"
                )
                problems += [f"{words} words, at most {WORDS}"] if words > WORDS else []
        problems += visitor.overflow(320)
    assert not problems, said(problems)


def test_everything_of_the_first_page_is_there_for_everybody(browser, example):
    path = example("demo") / "report/index.html"
    with visiting(browser) as visitor:
        visitor.open(path.as_uri())
        problems = [*visitor.printed(), *visitor.barriers([("light", 1440), ("dark", 390)])]
    assert not problems, said(problems)
