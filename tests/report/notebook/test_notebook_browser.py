"""Results in a notebook's page, light and dark: readable, open to everybody, and the rest of the page as it was."""

from __future__ import annotations

import assay_runs
import bench_runs
import full_runs
import judged_sheets
import made_season
import pytest
from browsing import APART, UNFOLD
from looking import AXE, CSS_RULES, RULES, SHORTENED, axe_source

from assaymark.notebook import Rows, render_html
from assaymark.report import bench_parts, judges_parts, season_parts, study_parts

pytestmark = pytest.mark.browser

HOST = """<!doctype html><html lang="en"><title>notebook</title><style>
:root {{ --jp-layout-color0: {ground} }}
body {{ background: {ground}; color: {ink}; margin: 0; padding: 16px }}
table {{ border: 3px solid red; width: 100% }}
tr:nth-child(even) {{ background: red }}
td, th {{ text-align: right; white-space: nowrap; max-width: none }}
</style><main><h1>In [1]</h1><p id="before">before</p>
<table id="own"><tr><td>own</td></tr></table>{shown}<p id="after" class="hair panel wide">after</p></main></html>"""
THEMES = {
    "light": ("#ffffff", "rgba(0, 0, 0, 0.87)", 1200), "dark": ("#111111", "#ffffff", 620),
    "VS Code": ("#1f1f1f", "#cccccc", 960),
}  # fmt: skip
STYLE = """() => ['before', 'own', 'after'].map(id => {
  const s = getComputedStyle(document.getElementById(id)); return [...s].map(k => k + s[k]).join(); })"""
CELLS = """[...document.querySelectorAll('.assay-shown tr, .assay-shown table')].map(one => getComputedStyle(one))
  .map(s => s.backgroundColor + s.borderTopWidth)"""
NARROW = """() => [...document.querySelectorAll('.assay-fig svg.fig')].filter(one => one.getClientRects().length)
  .map(one => one.classList.contains('narrow'))"""


def everything() -> str:
    run = assay_runs.realistic()
    season = season_parts(made_season.hostile_season(), made_season.made_catalogue())
    shown = [
        study_parts(run), study_parts(full_runs.hostile_full()), bench_parts(bench_runs.hostile()),
        judges_parts([judged_sheets.quay(), judged_sheets.hostile()]), season,
    ]  # fmt: skip
    rows = Rows(run.measurements), Rows(run.verdicts), run.verdicts[0], run.measurements[0]
    return "".join([*map(render_html, shown), *(one._repr_html_() for one in rows)])


@pytest.fixture
def page(browser):
    context = browser.new_context()
    page = context.new_page()
    page.noise = []
    page.on("console", lambda message: page.noise.append(message.text))
    page.on("pageerror", lambda error: page.noise.append(str(error)))
    page.on("request", lambda request: page.noise.append(request.url))
    yield page
    context.close()


def show(page, theme: str, width: int, inside: str) -> None:
    """A page of a notebook with results in it, all of them unfolded."""
    ground, ink, _ = THEMES[theme]
    page.set_viewport_size({"width": width, "height": 900})
    page.set_content(HOST.format(ground=ground, ink=ink, shown=inside))
    page.evaluate(UNFOLD)


def test_results_are_readable_run_nothing_and_leave_the_rest_of_the_notebook_as_it_was(page):
    shown = everything()
    show(page, "light", 1200, "")
    before = page.evaluate(STYLE)
    for theme, (_, _, width) in THEMES.items():
        show(page, theme, width, shown)
        if theme == "light":
            assert page.evaluate(STYLE) == before
            assert set(page.evaluate(CELLS)) == {"rgba(0, 0, 0, 0)0px"}, "the notebook does not paint over a table"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.title() == "notebook"
        assert page.noise == []
        page.evaluate(SHORTENED)
        page.evaluate(axe_source())
        kind, values = ("tag", RULES) if theme == "light" else ("rule", CSS_RULES)
        assert page.evaluate(AXE, {"type": kind, "values": values}) == [], theme


def test_no_label_of_a_figure_is_clipped_or_lies_on_another_and_little_room_has_the_narrow_figure(page):
    season = season_parts(made_season.made_season(hostile=False), made_season.made_catalogue())
    sheets = judges_parts([judged_sheets.quay(), judged_sheets.north()])
    show(page, "light", 480, "".join(map(render_html, [study_parts(full_runs.full()), sheets, season])))
    for width, narrow in ((480, {True}), (960, None), (1200, {False})):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(APART) == [], width
        assert narrow in (None, set(page.evaluate(NARROW)))
