"""Every figure of every track: named and described in words, and with its numbers beside it as a table or a file."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser

import assay_runs
import full_runs
import judged_sheets
import pytest
from bench_runs import rendered
from made_season import site
from outline import html_of

from assaymark.report import asset, charts, render_comparison, render_datasheet, render_pages

BLOCKS = {"section", "main"}
"""Where the numbers behind a figure have to stand: in the innermost of these that holds it."""


class Figures(HTMLParser):
    """The figures of a page, and which of the blocks around them hold a table or lead to a file of data."""

    def __init__(self):
        super().__init__()
        self.blocks, self.found, self.drawing, self.told = [], [], None, ""

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        kinds = (values.get("class") or "").split()
        if tag in BLOCKS:
            self.blocks.append({"numbers": False})
        if tag == "table" or (tag == "a" and (values.get("href") or "").endswith(".csv")):
            for block in self.blocks[-1:]:
                block["numbers"] = True
        if tag == "svg" and "fig" in kinds:
            self.drawing = {"id": values["id"], "by": values["aria-labelledby"], "block": self.blocks[-1], "texts": {}}
            assert values["role"] == "img"
            self.found.append(self.drawing)
        if self.drawing and tag in ("title", "desc"):
            self.told = values["id"]

    def handle_data(self, data):
        if self.told:
            self.drawing["texts"][self.told] = data

    def handle_endtag(self, tag):
        if tag in ("title", "desc"):
            self.told = ""
        if tag == "svg":
            self.drawing = None
        if tag in BLOCKS:
            self.blocks.pop()


@cache
def pages() -> dict[str, dict[str, str]]:
    """Pages of every track."""
    sheets = [judged_sheets.quay(), judged_sheets.north(), judged_sheets.log()]
    return {
        "study": html_of(render_pages(assay_runs.realistic())), "whole study": html_of(render_pages(full_runs.full())),
        "datasheet": html_of({**render_datasheet(sheets[0], sheets[1:]), **render_comparison(sheets)}),
        "benchmark": html_of(rendered("two")), "season": html_of(site("short")),
    }  # fmt: skip


@pytest.mark.parametrize("track", ["study", "whole study", "datasheet", "benchmark", "season"])
def test_every_figure_is_described_and_has_its_numbers_beside_it(track):
    seen = 0
    for path, html in pages()[track].items():
        read = Figures()
        read.feed(html)
        for one in read.found:
            seen += 1
            title, desc = (one["texts"].get(key, "") for key in one["by"].split())
            assert len(title) > 5, (path, one["id"])
            assert len(desc) > 10, (path, one["id"])
            assert one["block"]["numbers"], (path, one["id"])
    assert seen >= 2


def test_the_table_behind_a_figure_has_the_numbers_of_every_cell():
    html = render_pages(full_runs.full())["controls.html"]
    section = html[html.index('id="controls"') :]
    row = section[section.index('<th scope="row">Cell B') :]
    row = row[: row.index("</tr>")]
    assert "median 3.97" in row
    assert "withheld" not in row


def test_a_file_of_data_gives_a_spreadsheet_nothing_to_run_and_can_always_be_written():
    names = ("=1+1", 1.0), ("\t@x", -2.5), ("-y", 0.1), ('a "b", c', 1e-9)
    text = charts.csv_text(("agent", "value"), names)
    assert text == 'agent,value\n\'=1+1,1.0\n\'@x,-2.5\n\'-y,0.1\n"a ""b"", c",1e-09\n'
    charts.csv_text(("agent",), [("a\ud800b\x00\n\u202e",)]).encode("utf-8")


def test_more_judges_than_the_style_sheet_knows_are_drawn_without_it():
    style = asset("judges.css")
    assert re.findall(r"main:has\(\.j(\d+):hover\)", style) == [str(at) for at in range(charts.POINTED)]
    assert [type(one).__name__ for one in charts.judge_marks(charts.POINTED, [charts.label(0, 0, "x")])] == ["Text"]
    assert not charts.JudgeWords(charts.POINTED, "one more", "2").pointed
