"""Figures of a benchmark: exact where they are thinned, apart where they are crowded, and never a point too many."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.report import charts, text_width


def drawn(svg: str, kind: str) -> list[tuple[float, float]]:
    """The points of the path of a class, from its relative moves."""
    moves = re.search(rf'<path class="{kind}" d="M([^"]+)"|<path d="M([^"]+)" class="{kind}"', svg)
    start, _, rest = (moves.group(1) or moves.group(2)).partition("l")
    at = [float(value) for value in start.split()]
    steps = [float(value) for value in re.findall(r"-?\d*\.?\d+", rest)]
    points = [tuple(at)]
    for dx, dy in zip(steps[::2], steps[1::2], strict=True):
        at = [at[0] + dx, at[1] + dy]
        points.append(tuple(at))
    return points


def one(nav, baseline=None, tolerance=0.1) -> str:
    _, (svg,) = charts.history_panels("h", [("m", np.asarray(nav))], baseline, tolerance)
    return svg


@given(st.lists(st.floats(0.2, 3.0), min_size=2, max_size=400), st.floats(0.01, 0.9))
def test_a_path_ends_where_the_history_ends_and_reaches_its_deepest_fall(values, tolerance):
    nav = np.array([1.0, *values])
    svg = one(nav, tolerance=tolerance)
    line, fall = drawn(svg, "nav"), drawn(svg, "nav thin")
    assert line[0][0] == 34
    assert line[-1][0] == pytest.approx(262, abs=0.051)
    lowest = max(y for _, y in fall)
    deepest = -float(charts.falls(nav).min())
    assert lowest == pytest.approx(106 + 52 * deepest / max(deepest, tolerance), abs=0.3)
    assert len(line) <= 152


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=300))
def test_the_fall_is_that_of_its_definition(values):
    nav = np.array([1.0, *values])
    slow = [value / max(nav[: at + 1]) - 1 for at, value in enumerate(nav)]
    np.testing.assert_allclose(charts.falls(nav), slow, atol=1e-12)


def test_the_line_of_equal_weight_is_written_once_for_all_panels():
    nav = np.linspace(1, 0.9, 130)
    shared, panels = charts.history_panels("h", [(n, nav) for n in "abc"], nav[::-1] / nav[-1], 0.1)
    assert shared.count('id="h-b"') == 1
    assert all('href="#h-b"' in panel for panel in panels)
    assert all(len(panel) < 6_000 for panel in panels)


def test_a_history_of_one_day_and_one_that_never_moves_are_drawn():
    assert "0.0\u00a0%" in one([1.0])
    assert "0.0\u00a0%" in one([1.0] * 50)


def test_a_strip_has_a_point_only_if_it_is_given_one():
    axis = charts.score_axis([0.3, 0.6])
    assert "h10v10" not in charts.interval_strip(axis, 0.4, 0.5, None)
    assert "h10v10" in charts.interval_strip(axis, 0.4, 0.5, 0.45)
    assert 'class="span"' not in charts.interval_strip(axis, None, None, None)


# --- the scatter ------------------------------------------------------------------------------------------------------

points = st.builds(
    charts.StressPoint, name=st.text("abcdefgh", min_size=1, max_size=12), sharpe=st.floats(-2, 3), low=st.none(),
    high=st.none(), fall=st.floats(0, 0.6), passes=st.sampled_from([True, False, None]), baseline=st.booleans(),
)  # fmt: skip


@given(st.lists(points, min_size=1, max_size=10), st.floats(0.05, 0.4))
def test_every_point_stands_on_the_side_of_the_limit_that_it_is_on(found, tolerance):
    wide, narrow = charts.stress_scatter("s", found, tolerance, "w", "t", "d")
    for svg in (wide, narrow):
        edge = float(re.search(r'class="gs" x1="[\d.]+" y1="([\d.]+)"|y1="([\d.]+)"[^>]*class="gs"', svg).group(1))
        marks = [float(y) for y in re.findall(r'<circle[^>]*cy="([\d.]+)"', svg)]
        models = [point for point in found if not point.baseline]
        assert len(marks) == len(models)
        for y, point in zip(marks, models, strict=True):
            if abs(point.fall - tolerance) > 0.01:
                assert (y > edge) == (point.fall > tolerance)


def test_a_map_has_each_pair_once_in_the_tint_of_its_size():
    values = np.array([[1.0, 0.8, -0.2], [0.8, 1.0, np.nan], [-0.2, np.nan, 1.0]])
    for svg in charts.correlation_map("m", [("a", 2), ("b", 1)], values, "title", "desc"):
        found = {kind: moves.count("M") for kind, moves in re.findall(r'<path class="(r-?\d)"[^>]* d="([^"]*)"', svg)}
        assert found == {"r4": 1, "r-1": 1}
        assert ">0.80<" not in svg
    wide, _ = charts.correlation_map("m", [("a", 1), ("b", 1), ("c", 1)], values, "title", "desc", numbers=True)
    assert re.findall(r'on am" [^>]*>([^<]*)<', wide) == ["1.00", "0.80", "1.00", "−0.20", "1.00"]


@pytest.mark.parametrize(
    ("value", "kind"), [(-1, "r-2"), (-0.3, "r-1"), (-0.1, ""), (0.1, "r1"), (0.3, "r2"), (0.5, "r3"), (1, "r4")]
)
def test_a_tint_begins_at_its_value(value, kind):
    assert charts.tint_of(value) == kind


def test_a_class_is_drawn_from_the_first_price_of_each_instrument():
    lines = np.array([[100.0, np.nan], [110.0, np.nan], [50.0, 100.0], [200.0, 90.0]])
    svg = charts.class_panel(
        "c", lines, np.array([100.0, 110.0, 60.0, 200.0]), [2015.0, 2016, 2017, 2018], [(2016, 2017)], "t", "d"
    )
    thin, bold = (re.search(f'class="{kind}" d="([^"]*)"', svg).group(1) for kind in ("eqw", "nav"))
    assert (thin.count("M"), bold.count("M")) == (2, 1)
    assert svg.count('class="shade"') == 1
    assert ">100<" in svg


def test_labels_stay_apart_where_twelve_models_crowd():
    rng = np.random.default_rng(4)
    found = [
        charts.StressPoint(
            f"model-{at}", x := float(rng.normal(0.6, 0.4)), x - 1, x + 1, float(rng.uniform(0.06, 0.2)), True
        )
        for at in range(12)
    ]
    wide, _ = charts.stress_scatter("s", found, 0.1, "w", "t", "d")
    texts = re.findall(r'<text class="tb halo( a[em])?" x="([\d.]+)" y="([\d.]+)">([^<]+)', wide)
    assert len(texts) == 12
    boxes = []
    for anchor, x, y, text in texts:
        width = text_width(text, 13)
        left = float(x) - (width if "ae" in anchor else width / 2 if "am" in anchor else 0)
        boxes.append((left, float(y) - 11, left + width, float(y) + 2))
    for a, b in combinations(boxes, 2):
        over = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        assert min(over) <= 1, (a, b)


def test_a_cross_marks_what_fails_and_a_hostile_name_is_text():
    found = [
        charts.StressPoint("</text><script>", 0.5, 0.1, 0.9, 0.2, False),
        charts.StressPoint("good", 0.5, 0.1, 0.9, 0.05, True),
    ]
    wide, narrow = charts.stress_scatter("s", found, 0.1, "w", "t", "d")
    for svg in (wide, narrow):
        assert svg.count("l5.2 5.2") == 1
        assert "<script>" not in svg
