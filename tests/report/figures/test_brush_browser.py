"""A stretch of days read off a figure in a real browser: by pointer, finger and keys, with the values of Python."""

from __future__ import annotations

import re
from pathlib import Path

import bench_runs
import pytest
from bench_runs import rendered
from browsing import write_pages
from made_season import made_season, pages

from assaymark.report import charts, portbench

pytestmark = pytest.mark.browser

SEASON = made_season(2, 61)
AGENT = "agents/Alder.html"
FIGURE = "[data-brush] svg.fig:visible"
CHOSEN = """el => [...el.querySelectorAll('.sel')].map(e => [parseFloat(e.getAttribute('x')),
  parseFloat(e.getAttribute('width'))])"""
SHARE = re.compile(r"([+−]?\d+[.,]\d)\u00a0%")


@pytest.fixture(scope="module")
def folder(once) -> Path:
    def build(root: Path) -> None:
        write_pages(root, pages(SEASON))
        write_pages(root / "bench", rendered("two"))

    return once("pages-to-brush", build)


def paths(run=SEASON, agent="Alder"):
    """The lines of the figure from the records: the agent, equal weight, and the other baselines by name."""
    own = next(one for one in run.paths if not one.baseline and one.name == agent)
    baselines = sorted(
        (one for one in run.paths if one.baseline), key=lambda one: (one.name not in portbench.EQUAL_WEIGHT, one.name)
    )
    return [one.on(own.days) for one in (own, *baselines)]


def told(nav, first: int, last: int) -> tuple[float, float]:
    """The return and the deepest fall of a stretch, in percent, one day after the other."""
    part = nav[first : last + 1]
    top, deepest = part[0], 0.0
    for value in part:
        top = max(top, value)
        deepest = min(deepest, value / top - 1)
    assert deepest == pytest.approx(float(charts.drawdowns(part).min()))
    return 100 * (part[-1] / part[0] - 1), 100 * deepest


def shown(page, where="[data-brush]") -> list[tuple[float, float]]:
    """The two shares that the page shows for each line."""
    found = []
    for text in page.locator(f"{where} li").all_inner_texts():
        shares = [float(share.replace("−", "-").replace(",", ".")) for share in SHARE.findall(text)]
        assert len(shares) == 2, text
        found.append((shares[0], shares[1]))
    return found


def said_days(page) -> tuple[int, int]:
    """The stretch in the words of the page."""
    text = page.locator("[data-brush] output").first.inner_text()
    first, last = re.match(r"(?:Day|Tag) (\d+) \(.*?\) (?:to day|bis Tag) (\d+) ", text).groups()
    assert "single observation" in text or "einzelne Beobachtung" in text
    return int(first), int(last)


def agrees(page, first: int, last: int) -> None:
    """Assert that the shown shares equal those computed in Python, to a tenth of a percent."""
    for seen, nav in zip(shown(page), paths(), strict=True):
        assert seen == pytest.approx(told(nav, first, last), abs=0.0501)


def drag(page, start: float, end: float) -> None:
    """From a share of the figure's width to another."""
    figure = page.locator(FIGURE).first
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    page.mouse.move(box["x"] + start * box["width"], box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], box["y"] + 90, steps=4)
    page.mouse.up()


@pytest.mark.parametrize(("path", "width"), [(AGENT, 1440), (f"de/{AGENT}", 390)])
def test_a_drag_reads_returns_and_falls_of_its_days(visit, path, width):
    page = visit(path, width)
    assert said_days(page) == (0, 61)
    agrees(page, 0, 61)
    drag(page, 0.3, 0.5)
    first, last = said_days(page)
    assert 0 < first < last < 61
    agrees(page, first, last)
    for left, size in page.locator("[data-brush]").evaluate(CHOSEN):
        assert 0 < left < left + size < 100
    assert page.noise == []


def test_the_pointer_chooses_while_its_button_is_down_either_way_and_escape_takes_all_days(visit):
    page = visit(AGENT)
    page.locator(FIGURE).first.click(position={"x": 300, "y": 60})
    assert said_days(page) == (0, 61), "a click chooses nothing"
    drag(page, 0.3, 0.5)
    forth = said_days(page), shown(page)
    page.mouse.move(400, 300)
    page.locator(FIGURE).first.hover()
    assert said_days(page) == forth[0], "after the button is up the pointer chooses nothing more"
    drag(page, 0.5, 0.3)
    assert (said_days(page), shown(page)) == forth
    drag(page, 0.5, 1.3)
    first, last = said_days(page)
    assert (0 < first < 61, last) == (True, 61), "beyond the figure it ends with its days"
    page.keyboard.press("Escape")
    assert said_days(page) == (0, 61)
    assert all(size == 0 for _, size in page.locator("[data-brush]").evaluate(CHOSEN))


def test_keys_move_both_ends(visit):
    page = visit(AGENT)
    start, end = page.locator("[data-brush] [type=range]").all()
    start.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    end.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    assert said_days(page) == (5, 58)
    agrees(page, 5, 58)
    end.focus()
    page.keyboard.press("Home")  # both ends have changed places
    assert said_days(page) == (0, 5)
    agrees(page, 0, 5)


def test_a_finger_chooses_across_and_scrolls_up_and_down(visit):
    page = visit(AGENT, 390, has_touch=True, is_mobile=True)
    figure = page.locator(FIGURE).first
    assert figure.evaluate("el => getComputedStyle(el).touchAction") == "pan-y"
    figure.scroll_into_view_if_needed()
    session = page.context.new_cdp_session(page)

    def swipe(*points):
        kinds = ["touchStart", *["touchMove"] * (len(points) - 1)]
        for kind, (x, y) in zip(kinds, points, strict=True):
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    box = figure.bounding_box()
    x, y = box["x"], box["y"]
    swipe((x + 80, y + 50), (x + 110, y + 51), (x + 150, y + 52))
    first, last = said_days(page)
    assert 0 < first < last < 61
    agrees(page, first, last)
    before = page.evaluate("scrollY")
    swipe((x + 90, y + 150), (x + 91, y + 110), (x + 92, y + 30))
    assert any(page.evaluate("scrollY") > before or page.wait_for_timeout(50) for _ in range(100))


def test_without_a_script_nothing_of_it_is_there(visit):
    page = visit(AGENT, java_script_enabled=False)
    assert page.locator(".brush:visible").count() == 0
    assert page.locator(FIGURE).count() == 1
    assert page.locator('a[href$="Alder.csv"]').count() == 1


def test_the_panels_of_a_benchmark_are_read_together(visit):
    page = visit("bench/histories.html")
    first_figure = page.locator("[data-brush]").first
    drag(page, 0.4, 0.8)
    text = first_figure.locator("output").inner_text()
    first, last = map(int, re.match(r"Day (\d+) \(.*?\) to day (\d+) ", text).groups())
    book = portbench.BenchmarkIndex.of(bench_runs.two())
    window, profile = book.stress[0].name, book.run.profiles[0].name
    chosen = {tuple(pair) for pair in first_figure.evaluate(CHOSEN)}
    assert len(chosen) == 1
    seen = dict(
        zip(first_figure.locator("li b").all_inner_texts(), shown(page, "[data-brush] >> nth=0 >>"), strict=True)
    )
    for one in book.run.results:
        if (one.window, one.profile) == (window, profile):
            assert seen[one.model] == pytest.approx(told(one.nav, first, last), abs=0.0501)
    assert page.noise == []
