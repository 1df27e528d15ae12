"""Figures of an agent: exact where they are thinned, labels apart, and permission told by fill."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.judging import load_scoring
from assaymark.report import charts, text_width
from assaymark.report import season as season_pages

WORDS = "start", "Fall from the peak", "deepest", "{:g}".format, ()
AXIS = load_scoring().bands, ("weak", "mixed", "strong")


def chart(*navs: list[float], names: str = "abcdefgh") -> tuple[str, list[charts.NavLine], tuple]:
    roles = ("own", "first", *["other"] * len(navs))
    lines = [
        charts.NavLine(name, np.array(nav), "+1 %", role) for name, nav, role in zip(names, navs, roles, strict=False)
    ]  # type: ignore[arg-type]
    return "n", lines, WORDS


def path_points(moves: str) -> list[tuple[float, float]]:
    """Where a path of relative moves goes, read back."""
    head, _, tail = moves.partition("l")
    x, y = (float(number) for number in re.findall(r"-?\d*\.?\d+", head))
    numbers = [float(number) for number in re.findall(r"-?\d*\.?\d+", tail)]
    found = [(x, y)]
    for dx, dy in zip(numbers[::2], numbers[1::2], strict=True):
        x, y = x + dx, y + dy
        found.append((x, y))
    return found


def own_path(svg: str) -> list[tuple[float, float]]:
    (moves,) = re.findall(r'<path class="nav" d="([^"]+)"', svg)
    return path_points(moves)


def height(value: float, low: float, high: float, bottom: float) -> float:
    """Where a value lies on the upper panel."""
    return bottom - (value - low) / (high - low) * (bottom - 14.0)


@given(st.lists(st.floats(0.2, 5.0), min_size=2, max_size=700))
def test_the_line_keeps_its_start_its_end_and_its_deepest_fall(nav):
    for svg in charts.nav_figure(*chart(nav, [1.0] * len(nav)), "t", "d"):
        points = own_path(svg)
        values = 100 * np.array(nav) / nav[0]
        marks = charts.steps(min(100.0, values.min()), max(100.0, values.max()), most=6)
        heights = [y for _, y in points]
        ends = marks[0], marks[-1], 210.0 if "n-w" in svg else 176.0
        deepest = values[int(charts.falls(np.array(nav)).argmin())]
        first, last, low = (height(value, *ends) for value in (100.0, values[-1], deepest))
        # A point is written in tenths, and moves add up without drift.
        assert heights[0] == pytest.approx(first, abs=0.1)
        assert heights[-1] == pytest.approx(last, abs=0.1)
        assert min(abs(one - low) for one in heights) < 0.1


@given(st.lists(st.floats(0.9, 1.1), min_size=1, max_size=8))
def test_names_at_the_line_ends_never_touch_and_stay_within_the_panel(ends):
    for svg in charts.nav_figure(*chart(*[[1.0, end] for end in ends]), "t", "d"):
        found = re.findall(r'<text class="[^"]*" x="[\d.]+" y="([\d.]+)">[a-h] \+1 %', svg)
        heights = sorted(map(float, found))
        assert len(heights) == len(ends)
        assert all(b - a >= 16.9 for a, b in pairwise(heights))
        assert heights[0] > 8


def test_a_name_that_does_not_fit_stands_above_its_return():
    long = [
        charts.NavLine("Gleichgewichtung", np.array([1.0, 1.1]), "+10,0 %", "first"),
        charts.NavLine("Birch", np.array([1.0, 1.0]), "0,0 %", "own"),
    ]
    wide, narrow = charts.nav_figure("n", long, WORDS, "t", "d")
    assert "Gleichgewichtung +10,0 %" in wide
    assert "Gleichgewichtung<" in narrow
    assert ">+10,0 %<" in narrow


def test_what_is_written_into_a_figure_is_escaped():
    hostile = "n", [charts.NavLine("<b>&", np.array([1.0, 1.0]), "<i>", "own")], WORDS
    row = "<b>", "<i>", [(50.0, None)], ()
    for svg in (*charts.nav_figure(*hostile, "<t>", "<d>"), *season_pages.part_figure("p", [row], *AXIS, "<t>", "<d>")):
        assert not re.search(r"<[bidt]>", svg)


@given(st.floats(0.0, 99.0))
def test_falls_fit_their_axis(deepest):
    marks = charts.fall_steps(deepest)
    assert marks[0] == 0.0
    assert marks[-1] >= deepest
    assert 2 <= len(marks) <= 3


@given(st.integers(1, 4000))
def test_ticks_begin_at_the_start_end_on_the_last_day_and_rise(days):
    ticks = charts.day_ticks(days)
    assert (ticks[0], ticks[-1]) == (0, days)
    assert list(ticks) == sorted(set(ticks))
    assert len(ticks) <= 7


@given(st.integers(1, 400))
def test_the_word_for_the_start_stands_clear_of_the_next_day(days):
    words = "Beginn", "f", "d", "{:g}".format, ()
    made = charts.NavLine("a", np.linspace(1, 2, days + 1), "+1 %", "own")
    for svg in charts.nav_figure("n", [made], words, "t", "d"):
        found = re.findall(r'<text class="tk(?: am)?" x="([\d.]+)" y="(?:332|288)">(\w+)<', svg)
        (start, _), (second, text), *_ = found
        assert float(second) - text_width(text, 12) / 2 >= float(start) + text_width("Beginn", 12) + 7


@given(st.data())
def test_a_path_on_other_days_stays_where_it_was_on_days_that_it_lacks(data):
    days = [f"{day:03d}" for day in range(data.draw(st.integers(1, 30)))]
    known = data.draw(st.lists(st.sampled_from(days), unique=True))
    nav = {day: data.draw(st.floats(1, 9)) for day in sorted(known)}
    path = season_pages.SeasonPath(name="x", baseline=True, start=5.0, days=tuple(nav), nav=tuple(nav.values()))
    slow = [5.0] + [next((nav[d] for d in reversed(days[: at + 1]) if d in nav), 5.0) for at in range(len(days))]
    assert season_pages.on_days(path, days).tolist() == slow


@given(st.lists(st.floats(0, 100), min_size=1, max_size=9))
def test_one_dot_a_judge_and_a_line_between_them(points):
    for svg in season_pages.part_figure("p", [("Part", "10", [(one, None) for one in points], ())], *AXIS, "t", "d"):
        assert svg.count('class="judge"') == len(points)
        assert svg.count('class="judges"') == (max(points) > min(points))


def test_a_part_without_a_grade_has_a_dashed_box_and_a_lowered_one_a_ring():
    rows = [("A", "1", (), ()), ("B", "1", [(50.0, None)], ((80.0, 50.0),))]
    for svg in season_pages.part_figure("p", rows, *AXIS, "t", "d"):
        assert svg.count('class="void"') == 1
        assert svg.count("ring") == 1
