"""Results in a notebook's page, light and dark: readable, open to everybody, and the rest of the page as it was."""

from __future__ import annotations

import assay_runs
import bench_runs
import full_runs
import judged_sheets
import made_season
import pytest
from browsing import APART
from looking import RULES, axe_source

from assaymark.notebook import Rows, html
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
    "light": ("#ffffff", "rgba(0, 0, 0, 0.87)"), "dark": ("#111111", "#ffffff"), "VS Code": ("#1f1f1f", "#cccccc"),
}  # fmt: skip
STYLE = "id => { const s = getComputedStyle(document.getElementById(id)); return [...s].map(k => k + s[k]).join() }"
AXE = """only => axe.run(document, {resultTypes: ['violations'], runOnly: only}).then(
  found => found.violations.map(({id, nodes}) => id + ': ' + nodes[0].html.slice(0, 140)))"""


def everything() -> str:
    run = assay_runs.realistic()
    shown = [
        study_parts(run), study_parts(full_runs.hostile_full()), bench_parts(bench_runs.hostile()),
        judges_parts([judged_sheets.quay(), judged_sheets.hostile()]),
        season_parts(made_season.hostile_season(), made_season.made_catalogue()),
    ]  # fmt: skip
    rows = Rows(run.measurements), Rows(run.verdicts), run.verdicts[0], run.measurements[0]
    return "".join([*map(html, shown), *(one._repr_html_() for one in rows)])


@pytest.fixture(scope="module")
def shown() -> str:
    return everything()


@pytest.fixture
def opened(browser, shown):
    """``opened(theme, width)``: a page of a notebook with every result in it, all of them unfolded."""
    contexts = []

    def go(theme: str, width: int, inside: str = shown):
        context = browser.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.noise = []
        page.on("console", lambda message: page.noise.append(message.text))
        page.on("pageerror", lambda error: page.noise.append(str(error)))
        page.on("request", lambda request: page.noise.append(request.url))
        ground, ink = THEMES[theme]
        page.set_content(HOST.format(ground=ground, ink=ink, shown=inside))
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        return page

    yield go
    for context in contexts:
        context.close()


@pytest.mark.parametrize(("theme", "width"), [("light", 1200), ("dark", 620), ("VS Code", 960)])
def test_results_are_readable_and_run_nothing(opened, theme, width):
    page = opened(theme, width)
    page.evaluate(axe_source())
    assert page.evaluate(AXE, list(RULES)) == []
    assert page.title() == "notebook"
    assert page.noise == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [480, 960, 1200])
def test_no_label_of_a_figure_is_clipped_or_lies_on_another(opened, width):
    catalogue = made_season.made_catalogue()
    shown = [
        study_parts(full_runs.full()),
        judges_parts([judged_sheets.quay(), judged_sheets.north()]),
        season_parts(made_season.made_season(hostile=False), catalogue),
    ]
    assert opened("light", width, "".join(map(html, shown))).evaluate(APART) == []


@pytest.mark.parametrize("name", ["before", "own", "after"])
def test_the_rest_of_the_notebook_is_as_it_was(opened, name):
    assert opened("light", 1200).evaluate(STYLE, name) == opened("light", 1200, "").evaluate(STYLE, name)


def test_the_notebook_does_not_paint_over_a_table(opened):
    page = opened("light", 1200)
    cells = "[...document.querySelectorAll('.assay-shown tr, .assay-shown table')]"
    style = f"{cells}.map(one => getComputedStyle(one)).map(s => s.backgroundColor + s.borderTopWidth)"
    assert set(page.evaluate(style)) == {"rgba(0, 0, 0, 0)0px"}


def test_where_there_is_little_room_the_narrow_figure_stands(opened):
    visible = """() => [...document.querySelectorAll('.assay-fig svg.fig')].filter(one => one.getClientRects().length)
      .map(one => one.classList.contains('narrow'))"""
    assert set(opened("light", 420).evaluate(visible)) == {True}
    assert set(opened("light", 1200).evaluate(visible)) == {False}
