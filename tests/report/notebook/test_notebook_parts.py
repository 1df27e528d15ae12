"""Whole results in a notebook: the words and figures of the pages, and no link to the network."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser

import assay_runs
import bench_runs
import full_runs
import judged_sheets
import made_season
import pytest

from assaymark.notebook import Collapsed, Drawing, Grid, Quote, render_html, render_text
from assaymark.report import Figure, bench_parts, drawing, judges_parts, render_pages, season_parts, study_parts

CATALOGUE = made_season.made_catalogue()
RUNS = {
    "study": lambda: study_parts(assay_runs.realistic()), "full study": lambda: study_parts(full_runs.full()),
    "ten agents": lambda: study_parts(assay_runs.large()), "withheld": lambda: study_parts(assay_runs.withheld()),
    "minimal": lambda: study_parts(assay_runs.minimal()),
    "hostile study": lambda: study_parts(full_runs.hostile_full()),
    "benchmark": lambda: bench_parts(bench_runs.eight()), "questions": lambda: bench_parts(bench_runs.questions_only()),
    "empty benchmark": lambda: bench_parts(bench_runs.empty()),
    "hostile benchmark": lambda: bench_parts(bench_runs.hostile()),
    "judge": lambda: judges_parts([judged_sheets.quay()]),
    "judges": lambda: judges_parts([judged_sheets.quay(), judged_sheets.north(), judged_sheets.log()]),
    "hostile judge": lambda: judges_parts([judged_sheets.hostile(), judged_sheets.empty()]),
    "season": lambda: season_parts(made_season.made_season(hostile=False), CATALOGUE),
    "hostile season": lambda: season_parts(made_season.hostile_season(), CATALOGUE),
}  # fmt: skip
ELEMENTS = {
    "div", "style", "p", "span", "small", "table", "thead", "tbody", "tr", "th", "td", "details", "summary",
    "svg", "title", "desc", "g", "text", "tspan", "line", "rect", "circle", "path", "polyline", "polygon", "ellipse",
    "defs", "pattern",
}  # fmt: skip


class Elements(HTMLParser):
    """Every element with its attributes; each is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found, self.open = [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def every(parts):
    for part in parts:
        yield part
        if isinstance(part, Collapsed):
            yield from every(part.parts)


@pytest.mark.parametrize("name", RUNS)
def test_it_is_text_tables_and_figures_with_names_and_styles_of_their_own(name):
    parts = list(RUNS[name]())
    page = render_html(parts)
    found = Elements(page).found
    assert {tag for tag, _ in found} <= ELEMENTS
    for key, value in ((key, value) for _, attributes in found for key, value in attributes.items()):
        assert not key.startswith("on"), key
        assert key not in ("src", "href", "style", "srcdoc"), key
        assert "://" not in (value or "")
    assert len(page) < 150_000
    ids = Counter(attributes["id"] for _, attributes in found if "id" in attributes)
    assert [one for one, n in ids.items() if n > 1] == []
    assert all(re.match(r"a[0-9a-f]{8}-", one) for one in ids)
    asked = re.findall(r"url\(#([^)]+)\)", page)
    asked += [one for _, attributes in found for one in (attributes.get("aria-labelledby") or "").split()]
    assert set(asked) <= set(ids)
    (style,) = re.findall(r"<style>(.*?)</style>", page)
    rules = re.sub(r"@container[^{]*\{", "", style)
    heads = [one.strip(" }") for head in re.findall(r"([^{}]+)\{", rules) for one in re.split(r",(?![^(]*\))", head)]
    assert [head for head in heads if not head.startswith((".assay-shown", ".assay-fig"))] == []
    assert set(re.findall(r"var\(--([a-z]\w*)\)", page)) <= set(re.findall(r"--(\w+):", style))
    for picture in (svg for part in every(parts) if isinstance(part, Drawing) for svg in (part.wide, part.narrow)):
        assert re.search(r"<title [^>]*>[^<]+</title><desc [^>]*>[^<]+</desc>", picture)
        assert 'role="img"' in picture
    lines = render_text(parts).splitlines()  # a terminal has it too
    assert 0 < max(map(len, lines)) <= 100
    assert "\x1b" not in "".join(lines)


def test_what_is_quoted_is_what_the_page_quotes():
    run = assay_runs.realistic()
    made = render_pages(run)
    page = unescape("".join(text for path, text in made.items() if path.startswith("claims")))
    said = [part for part in every(study_parts(run)) if isinstance(part, Quote)]
    assert said
    for part in said:
        assert f"“{part.text}”" in page
        assert all(sentence in page for sentence in part.also.removesuffix(".").split(". "))


def test_of_a_run_without_claims_nothing_is_quoted_and_the_tier_has_its_range():
    parts = list(every(study_parts(assay_runs.withheld())))
    assert not any(isinstance(part, Quote) for part in parts)
    (table,) = (part for part in parts if isinstance(part, Grid) and "Score, 1 to 5" in part.heads)
    assert [row[:3] for row in table.rows] == [
        ("Badger, Marten, Otter, Stoat, Weasel", "1 to 5, cannot be ranked", "3.65 to 4.38")
    ]


def test_two_figures_of_a_kind_do_not_share_names():
    def made(words: str) -> Drawing:
        svg = f'<svg id="k-w" class="fig wide" aria-labelledby="k-w-t k-w-d"><title id="k-w-t">{words}</title></svg>'
        return drawing(Figure("t", "c", svg, svg.replace("k-w", "k-n")))

    one, other = made("id k-w stays"), made("another")
    assert "id k-w stays" in one.wide
    assert not set(re.findall(r'id="([^"]+)"', one.wide)) & set(re.findall(r'id="([^"]+)"', other.wide))
    assert made("another") == other
