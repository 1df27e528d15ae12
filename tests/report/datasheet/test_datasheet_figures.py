"""The marks of a datasheet: what each shows, that greyscale loses nothing, and that labels stay apart."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.report import charts, text_width
from assaymark.text import clean

LADDER = ((0.5, 0.58, (0.46, 0.7)), (1, 0.84, (0.75, 0.9)), (5, 1.0, (0.84, 1.0)))


def drawn(panel) -> str:
    return "".join(map(str, panel[0]))


def elements(panel, tag):
    """All elements of a kind, as their attributes; a text has its words under "text" and its place under "anchor"."""
    root = ElementTree.fromstring(f"<svg>{drawn(panel)}</svg>")
    made = [{**found.attrib, "text": found.text or ""} for found in root.iter(tag)]
    for one in made:
        kinds = one.get("class", "").split()
        one["anchor"] = "middle" if "am" in kinds else "end" if "ae" in kinds else "start"
        one["class"] = " ".join(kind for kind in kinds if kind not in ("am", "ae"))
    return made


def texts(panel):
    return [found["text"].replace("\u00a0", " ") for found in elements(panel, "text")]


def ticks(panel, anchor):
    """Positions of axis labels: across for "middle", down (of the line, not the baseline) for "end"."""
    key, shift = ("x", 0) if anchor == "middle" else ("y", 4)
    found = [t for t in elements(panel, "text") if t["anchor"] == anchor and t["class"] in ("tk", "tb12")]
    return {t["text"]: float(t[key]) - shift for t in found}


def test_every_pair_class_has_a_fill_of_its_own_without_any_hue_and_lengths_of_a_stack_are_its_pairs():
    text = drawn(charts.stacks([("j", (1, 2, 3, 4, 5), "", 0)], "s", 524))
    assert len({fill for _, _, fill in charts.PARTS}) == len(charts.PARTS)
    assert {"url(#s-lines)", "url(#s-cross)"} == set(re.findall(r'fill="(url[^"]+)"', text))
    assert {"pb p-grey", "pb p-solid", "pb p-empty"} <= set(re.findall(r'class="(pb p-\w+)"', text))
    assert not re.search(r"#[0-9a-f]{3,6}\b", text.replace("#s-", ""))
    panel = charts.stacks([("j", (6, 14, 10, 0, 30), "", 0)], "s", 524)
    widths = np.array([float(r["width"]) for r in elements(panel, "rect") if r["height"] == "28"])
    assert np.allclose(widths / widths.sum(), np.array([6, 14, 10, 30]) / 60, atol=0.002)
    assert texts(panel)[-4:] == ["6", "14", "10", "30"]
    shapes = [charts.marker_style(at)[0] for at in range(5)]
    assert (len(set(shapes)), [charts.marker_style(at)[1] for at in range(16)].count("k1")) == (5, 1), "by shape too"


@given(st.lists(st.tuples(st.floats(0, 500), st.floats(8, 40)), min_size=1, max_size=6).map(sorted))
def test_counts_below_a_stack_never_touch(rows):
    centres, widths = [c for c, _ in rows], [w for _, w in rows]
    found = charts.spread_labels(centres, widths, 524)
    assert all(b - a >= (v + w) / 2 - 1e-6 for (a, v), (b, w) in pairwise(zip(found, widths, strict=True)))
    assert found[0] - widths[0] / 2 >= -1e-6
    assert found[-1] + widths[-1] / 2 <= 524 + 1e-6


def test_a_point_lies_where_its_two_shares_are_and_labels_take_the_first_free_spot():
    panel = charts.share_map([charts.MapPoint("j", 0.2, 0.1, (0.1, 0.3), (0.0, 0.2), 0)], ("x", "y"), "s", 524)
    across, down = ticks(panel, "middle"), ticks(panel, "end")
    (point,) = elements(panel, "circle")
    assert [float(point[key]) for key in ("cx", "cy")] == pytest.approx([across["0.2"], down["0.1"]], abs=0.2)
    flat, upright = (m for m in elements(panel, "line") if m["class"] == "k1l")
    assert [float(flat[key]) for key in ("x1", "x2")] == pytest.approx([across["0.1"], across["0.3"]], abs=0.2)
    assert [float(upright[key]) for key in ("y1", "y2")] == pytest.approx([down["0.2"], down["0"]], abs=0.2)
    one, whole = (("name",), tuple(charts.spots_around(100, 100))), charts.Box(0, 0, 300, 300)
    assert list(charts.place_labels([one], [], whole)) == [one[1][0]]
    (moved,) = charts.place_labels([one], [charts.Box(105, 80, 200, 120)], whole)
    assert moved == one[1][3], "above and below touch the taken box by two pixels"


NAMED = st.tuples(st.floats(0, 1), st.floats(0, 1), st.text(st.characters(codec="ascii"), min_size=1, max_size=30))


@given(st.lists(NAMED, min_size=1, max_size=5), st.sampled_from([524, 350]))
def test_no_name_on_a_map_leaves_it_and_no_two_overlap(points, width):
    rows = [charts.MapPoint(clean(name) or "j", x, y, None, None, at) for at, (x, y, name) in enumerate(points)]
    boxes = []
    for t in elements(charts.share_map(rows, ("x", "y"), "s", width), "text"):
        if t["class"].endswith("t halo"):
            x, y, size = float(t["x"]), float(t["y"]), text_width(t["text"], 13)
            left = x + {"start": 0, "middle": -size / 2, "end": -size}[t["anchor"]]
            assert -1 <= left <= width + 1 - size
            boxes.append(charts.Box(left, y - 9, left + size, y + 2))
    assert len(boxes) == len(points)
    assert all(a.shared(b) == 0 for at, a in enumerate(boxes) for b in boxes[at + 1 :])


def test_the_foot_of_a_threshold_stands_at_its_value_a_censored_one_has_an_arrow_and_peers_are_dashed_and_aside():
    panel = charts.curves([charts.Curve("j", LADDER, 0, (1.0, (0.6, 1.4), None, "detects 1.00"))], "s", 524)
    across, down = ticks(panel, "middle"), ticks(panel, "end")
    foot, *_ = (m for m in elements(panel, "line") if m["class"] == "k1l")
    assert float(foot["x1"]) == float(foot["x2"]) == pytest.approx(across["1"], abs=0.2)
    assert [float(foot[key]) for key in ("y1", "y2")] == pytest.approx([down["75 %"], down["0 %"]], abs=0.2)
    (bar,) = (r for r in elements(panel, "rect") if r["class"] == "k1f")
    unit = (across["5"] - across["1"]) / 4
    wanted = [across["1"] - 0.4 * unit, 0.8 * unit]
    assert [float(bar[key]) for key in ("x", "width")] == pytest.approx(wanted, abs=0.2)
    assert across["½"] == pytest.approx((across["0"] + across["1"]) / 2, abs=0.2)
    for censored, value, lines in (("left", 0.5, 4), ("right", 5.0, 3)):
        text = drawn(charts.curves([charts.Curve("j", LADDER, 0, (value, None, censored, "detects"))], "s", 524))
        assert text.count('<line class="k1l"') == lines, "no false foot"
        assert len(re.findall(r'<path class="k1l" d="M[^"]*m', text)) == 1
    text = drawn(charts.curves([charts.Curve("a", LADDER, 0), charts.Curve("b", LADDER, 1)], "s", 524))
    assert [text.count(f'class="{kind}"') for kind in ("k1c", "k2d")] == [1, 1]
    main, peer = (re.search(rf'class="{kind}" d="M([\d.]+)', text)[1] for kind in ("k1c", "k2d"))
    assert main != peer


def test_a_segment_has_a_filled_and_an_empty_end_and_no_curve_and_equal_points_no_arrow():
    base = charts.MapPoint("ties", 0.4, 0.8, (0.3, 0.5), (0.7, 0.9))
    panel = charts.segment(base, charts.MapPoint("strict", 0.1, 0.6, None, None), "s", 524)
    assert [c["class"] for c in elements(panel, "circle")] == ["k1 gap", "open k1l"]
    assert [p["class"] for p in elements(panel, "path")] == ["ink"]
    assert {"40 % and 80 %", "10 % and 60 %"} <= set(texts(panel))
    point = charts.MapPoint("p", 0.4, 0.8, None, None)
    text = drawn(charts.segment(point, point, "s", 350))
    assert [f'class="{kind}"' in text for kind in ("ink", "gs")] == [False, False]


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=5))
def test_an_axis_holds_what_is_drawn_on_it(values):
    rows = [charts.AxisRow("r", "", "", value, (value - 0.1, value + 0.1)) for value in values]
    first, last, step = charts.value_axis(rows, against=0.0)
    assert first * step <= min(min(values) - 0.1, 0) + 1e-6
    assert last * step >= max(max(values) + 0.1, 0) - 1e-6
    assert last - first <= 9


def test_a_row_without_a_value_is_a_dashed_box_and_long_titles_and_numbers_take_two_lines():
    rows = [charts.AxisRow("a", "not measured: x"), charts.AxisRow("b", "0.10", "", 0.1, (0.05, 0.2))]
    text = drawn(charts.dots(rows, "s", 350, shares=True))
    assert (text.count('class="void"'), "not measured: x" in text) == (1, True)
    words = "0.100 to 0.200, +0.100"
    short, long = (charts.dots([charts.AxisRow("t" * n, words, "", 0.1)], "s", 350) for n in (5, 45))
    assert long[1] > short[1]
