"""From datasheets to pages and figures: self-contained, escaped, silent on the network, ordered by name alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from assaymark.errors import InputError, Problem
from assaymark.metrology.datasheet import Datasheet
from assaymark.records import Measurement
from assaymark.report.datasheet.comparison import comparison_view
from assaymark.report.datasheet.reading import Opened, comparable, opened, xml_safe
from assaymark.report.datasheet.sheet_view import sheet_view
from assaymark.report.datasheet.summary import summary_svg
from assaymark.report.frame import ALONE, JUDGES, Frame, Link, Site, asset
from assaymark.report.trail.refs import Rests

COMPARISON: Final = "datasheets.html"

_STYLES: Final = ("datasheet.css", "datasheet-marks.css", "judges.css")


def judges_frame(first: str = COMPARISON, site: Site = ALONE) -> Frame:
    """What stands around the pages of judges that were measured by themselves, in no study."""
    around = site if site.runs else Site(home=first)
    return Frame(study="", mark="", nav=(Link(JUDGES, first, "Judges"),), site=around)


def render_datasheet(
    sheet: Datasheet,
    peers: Sequence[Datasheet] = (),
    frame: Frame | None = None,
    rests: Rests = lambda _: (),
) -> Mapping[str, str]:
    """The page of one judge and its summary figure, as relative path -> text. Equal datasheets give equal bytes.

    Parameters
    ----------
    sheet : Datasheet
        The judge that the page is about. Drift measurements among its measurements get a section.
    peers : sequence of Datasheet
        Judges that the figures draw for scale, by name and at most four; those that were measured on other texts or
        under another prompt are left out, and named. With peers the page links to ``datasheets.html``.
    frame : Frame or None
        What stands around the pages of the run that the judge is part of; None for a judge by itself.
    rests : callable
        Gives the answers that a measurement was computed from, where they have pages beside these.

    Returns
    -------
    mapping of str to str
        ``datasheet/<judge>.html`` (at most 200 KB and 45 KB gzipped) and ``datasheet/<judge>.svg``, which stands
        alone; more than 230 measurements stand in ``datasheet/<judge>-measurements.html``. A name that is no safe file
        name gets a safe one; see `datasheet_path`.

    Examples
    --------
    >>> sheet = Datasheet(judge="quay-j", measurements=(), sketch=(), calls={"all": 0}, tasks=0, source="run")
    >>> sorted(render_datasheet(sheet))
    ['datasheet/quay-j.html', 'datasheet/quay-j.svg']
    """
    others = [peer for peer in peers if peer.judge != sheet.judge]
    fit = opened([peer for peer in others if comparable(sheet, peer)])
    unfit = opened([peer for peer in others if not comparable(sheet, peer)])
    this = Opened.of(sheet)
    view = sheet_view(this, fit, unfit, rests)
    page, more = this.page, this.rows_page
    figure = page.removesuffix(".html") + ".svg"
    frame = frame or judges_frame(COMPARISON if others else page)
    values = {
        "compare": f"../{COMPARISON}" if others else "",
        "figure": _leaf(figure),
        "page": _leaf(page),
        "more": _leaf(more),
        "v": view,
    }
    made = {page: _page(frame, "datasheet.html", view.title, root="../", **values)}
    if view.apart:
        title = f"{this.name}, every measurement"
        made[more] = _page(frame, "datasheet-measurements.html", title, root="../", **values)
    made[figure] = xml_safe(summary_svg(this, fit, asset("datasheet-marks.css"), asset("datasheet-figure.css")))
    return made


def render_comparison(
    sheets: Sequence[Datasheet], *, agreement: Sequence[Measurement] = (), frame: Frame | None = None
) -> Mapping[str, str]:
    """Several judges on one page, by name: small multiples and one table. Nothing on it ranks them.

    Parameters
    ----------
    sheets : sequence of Datasheet
        At least one, each judge once. Figures draw the first twelve by name; the tables hold all.
    agreement : sequence of Measurement
        ``between.kappa_content`` and ``between.kappa`` of pairs of judges; those among the measurements of a sheet are
        shown as well.
    frame : Frame or None
        What stands around the pages of the run that the judges are part of; None for judges by themselves.

    Returns
    -------
    mapping of str to str
        ``datasheets.html``. It links to the page of each judge, as `render_datasheet` names it.

    Raises
    ------
    InputError
        No datasheet, or two of one judge.
    """
    names = [sheet.judge for sheet in sheets]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems = [
        Problem("judge", f"{name!r} has two datasheets; a comparison needs one of each judge") for name in twice
    ]
    if not names:
        problems = [Problem("", "no datasheets; at least one is needed")]
    if problems:
        raise InputError("comparison of datasheets", problems)
    view = comparison_view(opened(sheets), agreement)
    title = "Judges, measured as instruments"
    return {COMPARISON: _page(frame or judges_frame(), "datasheet-comparison.html", title, v=view)}


def _leaf(path: str) -> str:
    """A page seen from another one of its folder."""
    return path.rpartition("/")[2]


def _page(frame: Frame, template: str, title: str, *, root: str = "", **values: Any) -> str:
    return xml_safe(frame.render(template, title, here=JUDGES, root=root, styles=_STYLES, **values))
