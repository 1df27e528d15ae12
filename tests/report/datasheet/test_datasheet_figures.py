"""The marks of a datasheet: what each shows, that greyscale loses nothing, and that labels stay apart."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.report.datasheet.figures import (
    PARTS,
    Curve,
    CurvePoint,
    DotAxis,
    DotRow,
    Foot,
    Heads,
    MapPoint,
    Operating,
    StackRow,
    axis_of,
    curves,
    dots,
    segment,
    series,
    share_map,
    stacks,
)
from assaymark.report.datasheet.figures.placing import Box, Request, around, placed
from assaymark.report.datasheet.figures.stack import _apart
from assaymark.report.formats import text_width

RECT = re.compile(r'<rect class="([^"]+)"(?: x="([\d.]+)")? ?y="[\d.]+" width="([\d.]+)"|<rect[^>]*?>')
TEXTS = re.compile(r'<text[^>]*?x="(-?[\d.]+)" y="(-?[\d.]+)"(?: text-anchor="(\w+)")?[^>]*>([^<]*)</text>')
LADDER = (CurvePoint(0.5, 0.58, (0.46, 0.7)), CurvePoint(1, 0.84, (0.75, 0.9)), CurvePoint(5, 1.0, (0.84, 1.0)))


def drawn(panel) -> str:
    return "".join(str(part) for part in panel.parts)


def test_every_pair_class_has_a_fill_of_its_own_without_any_hue():
    text = drawn(stacks("s", [StackRow("j", (1, 2, 3, 4, 5), "")], 524))
    fills = [fill for _, _, fill in PARTS]
    assert len(set(fills)) == len(PARTS)
    assert {"url(#s-lines)", "url(#s-cross)"} == set(re.findall(r'fill="(url[^"]+)"', text))
    assert {"pb p-grey", "pb p-solid", "pb p-empty"} <= set(re.findall(r'class="(pb p-\w+)"', text))
    assert not re.search(r"#[0-9a-f]{3,6}\b", text.replace("#s-", ""))


def test_lengths_of_a_stack_are_its_pairs():
    text = drawn(stacks("s", [StackRow("j", (6, 14, 10, 0, 30), "")], 524))
    bars = [(attrs, float(w)) for attrs, w in re.findall(r'<rect([^>]*?)width="([\d.]+)"', text)]
    widths = [
        float(re.search(r'width="([\d.]+)"', rect)[1])
        for rect in re.findall(r"<rect[^>]*>", text)
        if 'height="28"' in rect
    ]
    assert len(bars) > 4
    assert np.allclose(np.array(widths) / sum(widths), np.array([6, 14, 10, 30]) / 60, atol=0.002)
    assert [t for _, _, _, t in TEXTS.findall(text)][-4:] == ["6", "14", "10", "30"]


@given(
    st.lists(st.tuples(st.floats(0, 500), st.floats(8, 40)), min_size=1, max_size=6).map(lambda rows: sorted(rows)),
)
def test_counts_below_a_stack_never_touch(rows):
    centres, widths = [c for c, _ in rows], [w for _, w in rows]
    found = _apart(centres, widths, 524)
    assert all(b - a >= (v + w) / 2 - 1e-6 for (a, v), (b, w) in pairwise(zip(found, widths, strict=True)))
    assert found[0] - widths[0] / 2 >= -1e-6
    assert found[-1] + widths[-1] / 2 <= 524 + 1e-6


def test_judges_differ_by_shape_too():
    shapes = [series(at)[0] for at in range(5)]
    assert len(set(shapes)) == 5
    assert [series(at)[1] for at in range(16)].count("k1") == 1


def test_a_point_lies_where_its_two_shares_are():
    point = MapPoint("j", 0.2, 0.1, (0.1, 0.3), (0.05, 0.2), 0)
    text = drawn(share_map([point], Heads("x", "y"), 524, 320))
    cx, cy = map(float, re.search(r'<circle class="k1 gap" cx="([\d.]+)" cy="([\d.]+)"', text).groups())
    ticks = {t: float(x) for x, y, anchor, t in TEXTS.findall(text) if anchor == "middle"}
    heights = {t: float(y) - 4 for x, y, anchor, t in TEXTS.findall(text) if anchor == "end" and float(x) < 40}
    assert cx == pytest.approx(ticks["0.2"], abs=0.2)
    assert cy == pytest.approx(heights["0.1"], abs=0.2)
    across, up = re.findall(r'<line class="k1l" x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', text)
    assert float(across[0]) == pytest.approx(ticks["0.1"], abs=0.2)
    assert float(across[2]) == pytest.approx(ticks["0.3"], abs=0.2)
    assert float(up[3]) == pytest.approx((heights["0.1"] + heights["0"]) / 2, abs=0.3)


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1), st.text(st.characters(codec="ascii"), min_size=1, max_size=60)),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([524, 350]),
)
def test_no_name_on_a_map_leaves_it_and_no_two_overlap(points, width):
    rows = [MapPoint(name, x, y, None, None, at) for at, (x, y, name) in enumerate(points)]
    text = drawn(share_map(rows, Heads("x", "y"), width))
    assert "<script" not in text
    boxes = []
    for match in re.finditer(
        r'<text class="k\dt halo" x="(-?[\d.]+)" y="(-?[\d.]+)"(?: text-anchor="(\w+)")?>([^<]*)<', text
    ):
        x, y, anchor, name = match.groups()
        size = text_width(re.sub(r"&#?\w+;", "w", name), 13) * 0.9
        left = {"start": 0, None: 0, "middle": -size / 2, "end": -size}[anchor] + float(x)
        assert left >= -2
        assert left + size <= width + 2
        boxes.append(Box(left, float(y) - 9, left + size, float(y) + 2))
    assert len(boxes) == len(points)
    assert all(a.shared(b) == 0 for at, a in enumerate(boxes) for b in boxes[at + 1 :])


def test_labels_take_the_first_free_spot():
    one = Request(("name",), tuple(around(100, 100)))
    (free,) = placed([one], [], Box(0, 0, 300, 300))
    assert free == one.spots[0]
    (moved,) = placed([one], [Box(105, 80, 200, 120)], Box(0, 0, 300, 300))
    assert moved == one.spots[1]


def test_the_foot_of_a_threshold_stands_at_its_value():
    foot = Foot(1.0, (0.6, 1.4), None, "detects 1.00")
    text = drawn(curves([Curve("j", LADDER, 0, foot)], 524))
    ticks = {t: float(x) for x, _, anchor, t in TEXTS.findall(text) if anchor == "middle"}
    upright = [
        m
        for m in re.findall(r'<line class="k1l" x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', text)
        if m[0] == m[2]
    ]
    assert any(float(x) == pytest.approx(ticks["1"], abs=0.2) for x, *_ in upright)
    (bar,) = re.findall(r'<rect class="k1f" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', text) or re.findall(
        r'<rect class="k1f"[^>]*?x="([\d.]+)"[^>]*?width="([\d.]+)"', text
    )
    assert float(bar[1]) == pytest.approx(0.8 * (ticks["5"] - ticks["1"]) / 4, abs=0.3)
    assert "½" in ticks


@pytest.mark.parametrize(("censored", "lines"), [("left", 4), ("right", 3)])
def test_a_censored_threshold_has_an_arrow_and_no_false_foot(censored, lines):
    value = 0.5 if censored == "left" else 5.0
    text = drawn(curves([Curve("j", LADDER, 0, Foot(value, None, censored, "detects"))], 524))
    assert text.count('<line class="k1l"') == lines
    assert len(re.findall(r'<path class="k1l" d="M[^"]*m', text)) == 1


def test_peers_are_thin_dashed_and_aside():
    text = drawn(curves([Curve("a", LADDER, 0), Curve("b", LADDER, 1)], 524))
    assert text.count('class="k1c"') == 1
    assert text.count('class="k2d"') == 1
    main = re.search(r'class="k1c" d="M([\d.]+)', text)[1]
    peer = re.search(r'class="k2d" d="M([\d.]+)', text)[1]
    assert main != peer


def test_a_segment_has_a_filled_and_an_empty_end_and_no_curve():
    base, strict = Operating("ties", 0.4, 0.8, (0.3, 0.5), (0.7, 0.9)), Operating("strict", 0.1, 0.6, None, None)
    text = drawn(segment(base, strict, 0, 524))
    assert text.count('class="k1 gap"') == 1
    assert text.count('class="open k1l"') == 1
    assert text.count('class="ink"') == 1
    assert {"40 % and 80 %", "10 % and 60 %"} <= {t.replace("\u00a0", " ") for *_, t in TEXTS.findall(text)}


def test_equal_operating_points_have_no_arrow():
    point = Operating("p", 0.4, 0.8, None, None)
    text = drawn(segment(point, point, 0, 350))
    assert 'class="ink"' not in text
    assert 'class="gs"' not in text


def test_a_row_without_a_value_is_a_dashed_box():
    rows = [DotRow("a", None, None, "not measured: x"), DotRow("b", 0.1, (0.05, 0.2), "0.10")]
    text = drawn(dots(rows, axis_of(rows, shares=True), 350))
    assert text.count('class="void"') == 1
    assert "not measured: x" in text


def test_long_titles_and_numbers_take_two_lines():
    short, long = (
        dots([DotRow("t" * n, 0.1, None, "0.100 to 0.200, +0.100")], DotAxis(0, 1, 0.5), 350) for n in (5, 45)
    )
    assert long.height > short.height


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=5))
def test_an_axis_holds_what_is_drawn_on_it(values):
    rows = [DotRow("r", value, (value - 0.1, value + 0.1), "") for value in values]
    axis = axis_of(rows, line=0.0)
    assert axis.low <= min(min(values) - 0.1, 0) + 1e-6
    assert axis.high >= max(max(values) + 0.1, 0) - 1e-6
    assert (axis.high - axis.low) / axis.step <= 9
