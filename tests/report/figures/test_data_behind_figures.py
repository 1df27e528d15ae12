"""Every figure of every track: named and described in words, and with its numbers beside it as a table or a file."""

from __future__ import annotations

import re
from functools import cache

import assay_runs
import full_runs
import judged_sheets
import pytest
from bench_runs import rendered
from made_season import site
from outline import html_of

from assaymark.report import asset, charts, render_comparison, render_datasheet, render_pages

FIGURE = re.compile(r'<svg[^>]* class="fig [^>]*>.*?</svg>', re.DOTALL)
BLOCK = re.compile(r"<(/?)(?:section|main)\b|" + FIGURE.pattern + r'|<table|<a [^>]*href="[^"]*\.csv"', re.DOTALL)


def figures(html: str) -> list[tuple[str, bool]]:
    """The figures of a page, and whether the innermost section around each holds a table or leads to a file of data."""
    blocks, found = [[]], []
    for part in BLOCK.finditer(html):
        if part[0].startswith("</"):
            mine = blocks.pop()
            numbers = any(not one.startswith("<svg") for one in mine)
            found += [(one, numbers) for one in mine if one.startswith("<svg")]
        elif part[0].startswith(("<section", "<main")):
            blocks.append([])
        else:
            blocks[-1].append(part[0])
    return found


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
        found = figures(html)
        assert len(found) == len(FIGURE.findall(html)), path
        for drawing, numbers in found:
            seen, name = seen + 1, (path, drawing[:80])
            assert (numbers, 'role="img"' in drawing) == (True, True), name
            by = re.search(r'aria-labelledby="(\S+) (\S+)"', drawing).groups()
            told = [re.search(rf'<(title|desc)[^>]* id="{one}"[^>]*>([^<]*)<', drawing)[2] for one in by]
            assert [len(told[0]) > 5, len(told[1]) > 10] == [True, True], name
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
    assert charts.judge_marks(charts.POINTED, [charts.label(0, 0, "x")]) == [charts.label(0, 0, "x")]
    assert not charts.JudgeWords(charts.POINTED, "one more", "2").pointed
