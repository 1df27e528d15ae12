"""The summary for a terminal: 80 columns, no colour, no control characters."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import assay_runs as runs
import pytest
from page_words import words
from rich.console import Console

from assaymark.report import render_pages, terminal_summary


def printed(name: str, **changed) -> str:
    out = io.StringIO()
    run = replace(getattr(runs, name)(), **changed)
    Console(file=out, width=80, color_system=None).print(terminal_summary(run))
    return out.getvalue()


@pytest.mark.parametrize("name", ["realistic", "large", "withheld", "hostile", "minimal"])
def test_it_fits_80_columns_without_colour_and_markup_in_a_name_is_text(name):
    text = printed(name)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text
    assert name != "hostile" or "{{7*7}}" in text


def test_it_says_what_the_first_page_says_in_its_order():
    run = replace(runs.realistic(), reference_panel=())
    text = " ".join(printed("realistic", reference_panel=()).split())
    page = words(render_pages(run)["index.html"])
    said = [
        "“Marten ranks first of the 5 agents on the overall score.”",
        "Badger, Otter, Stoat and Weasel cannot be ranked. The judges agree on five of six dimensions, weakly on one.",
        "31 supported", "5 only with a condition", "79 not supported", "of 115 sentences fixed in advance",
        "Who is ahead, and can it be said?", "Two tiers on the overall score.", "Do planted texts fool the judges?",
        "Not known: no control texts were graded.", "How good are the judges?",
        "Not known: the judges were not tested on texts of known quality.", "What limits the result?",
    ]  # fmt: skip
    for words_of in (text, page):
        places = [words_of.index(one) for one in said]
        assert places == sorted(places)
    assert "[x] “Marten" in text
    assert "Marten 4.31 (4.24 to 4.38)" in text
    assert re.search(r"Badger, Otter, +3\.65 to 4\.14 +=+ +.*no ranking", text), "a tier shares its range"
    for title in ("Some agents are too close", "Only one agent can rank first"):
        assert title in text
        assert title in page


def test_built_in_judges_name_nobody_and_what_is_not_supported_is_not_printed():
    text = " ".join(printed("realistic").split())
    assert "[-] Built-in judges scored these agents" in text
    assert "ranks first" not in text
    text = printed("withheld")
    assert "No sentence is supported by this study yet" in text
    assert "3.65" not in text
    assert all(f"{level:.2f}" not in text for level in runs.LEVELS.values())
    assert "ranks first" not in text
