"""The marks of figures: what each shows and hides, exact where it is thinned, and that labels stay apart."""

from __future__ import annotations

import re
from functools import partial
from itertools import combinations, pairwise
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.judging import load_scoring
from assaymark.records import Measurement
from assaymark.report import charts, text_width
from assaymark.report import season as season_pages

TEXTS = re.compile(r'<text[^>]*?x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')


# --- studies ----------------------------------------------------------------------------------------------------------


def views_of(chart, *data, title="t", desc="d", **more):
    """A chart of some data for a screen and for a phone."""
    return charts.views("n", title, desc, partial(chart, *data, **more), charts.WIDE)


def measured(value, low=None, high=None, labels=MappingProxyType({}), **more):
    return Measurement(name="m", labels=labels, value=value, n=9, n_of="texts", method="", low=low, high=high, **more)


def drawn(*rows, title="t", desc="d"):
    """The forest of some kappas, wide and narrow."""
    base = {"title": "Sizing", "value": 0.5, "status": "publish", "interval": (0.45, 0.55), "bootstrap": (0.4, 0.6),
            "state": "ok", "pooled": False}  # fmt: skip
    made = []
    for row in ({**base, **row} for row in rows):
        low, high = row["interval"] or (None, None)
        detail = {"bootstrap": dict(zip(("low", "high"), row["bootstrap"] or (None, None), strict=True))}
        labels = {"dimension": "aggregate" if row["pooled"] else "sizing"}
        item = measured(row["value"], low, high, labels=labels, state=row["state"], detail=detail)
        made.append((row["title"], item, row["status"], row.get("by", ""), row.get("gating"), ()))
    return views_of(charts.forest, made, (0.2, 0.4), "κ", title=title, desc=desc)


def used(names, rows):
    return views_of(charts.scale_use, names, rows, "12345")


FORESTS = (
    # The fill of a square is the permission; an undefined kappa is a dashed box with its reason.
    ({"status": "publish"}, ('class="mh gap"',)), ({"status": "methodology"}, ('class="open mqs"',)),
    ({"status": "halt"}, ('class="open mns"',)),
    ({"value": None, "interval": None, "bootstrap": None, "status": "halt", "state": "not measurable: one family"},
     ("not measurable: one family", 'class="void"', "no number")),
    # That of a format decides without a stroke.
    ({"value": 0.66, "status": "halt", "by": "not defined: no variance in table"}, ("in table</text>", 'class="mnl"')),
)  # fmt: skip


def test_each_kappa_has_its_mark_at_both_widths_the_aggregate_a_diamond_and_the_one_that_decides_stands_beside():
    for row, marks in FORESTS:
        for figure in drawn(row):
            assert all(mark in figure for mark in marks), row
            assert figure.count('class="mnl"') == 1 or "by" not in row
    both = "".join(drawn({"title": "<b>x</b>"}, title="<t>", desc="<d>"))
    assert not {"<b>", "<t>"} & set(re.findall("<.>", both)), "text is escaped"
    wide, _ = drawn({"pooled": True}, {})
    assert [len(re.findall(rf'class="mh gap" d="M[\d. ]+{way}', wide)) for way in "lh"] == [1, 1]
    assert "−0.4" in drawn({"value": -0.1, "interval": (-0.35, 0.1), "status": "halt"})[0], "a wider axis"
    wide, narrow = drawn({"interval": None, "bootstrap": None})
    assert ('class="mhb"' in wide, "none" in wide, "0.50" in narrow) == (False, True, True)
    weak = {"value": 0.66, "status": "methodology"}
    wide, narrow = drawn({**weak, "by": "0.21 in weights-v1", "gating": 0.21})
    assert "0.21 in weights-v1" in [text for _, _, text in TEXTS.findall(wide)]
    assert "weak: 0.21 in weights-v1" in [text for _, _, text in TEXTS.findall(narrow)]
    assert wide.count('class="mql"') == drawn(weak)[0].count('class="mql"') + 1


def test_a_tier_has_a_box_an_agent_alone_a_point_and_one_that_may_not_be_drawn_says_why():
    why = ("Judges do not agree", "κ 0.11; 0.20 needed")
    none = [charts.TierRow(("Marten", "Otter"), "no-claim", None, None, "")]
    chart = "".join(charts.tier_chart(none, (1, 5), "t", 350.0, reasons=why)[0])
    assert [part in chart for part in ("Judges do not agree", "<path", "url(#t-h)")] == [True, False, True]
    rows = [
        charts.TierRow(("Marten",), "headline", (4.1, 4.3), 4.2, "4.20 (4.10 to 4.30)", "above two others"),
        charts.TierRow(("Badger", "Otter"), "qualified", (3.5, 3.9), None, "3.50 to 3.90, one tier", "no ranking"),
    ]
    chart = "".join(charts.tier_chart(rows, (3, 5), "t", 1120.0)[0])
    assert [chart.count(part) for part in ('class="mh gap"', "box", "4.20 (4.10 to 4.30)")] == [1, 1, 1]
    for mark, shown in (("p", 'class="ink"'), ("q", 'class="mq"'), ("n", 'class="open mns"')):
        strip = charts.Strip(charts.strip_axis([0.3], 0.15), ((0.15, "0.15", False),), ((0.3, 0.2, 0.4),), mark).svg()
        assert all(part in strip for part in (shown, ">0.15</text>", 'class="now"')), mark


@given(st.lists(st.floats(1, 5), min_size=1, max_size=9))
def test_a_score_axis_holds_its_values_on_few_ticks(values):
    scale, ticks = charts.score_axis(values)
    assert scale.low <= min(values) + 1e-6
    assert max(values) <= scale.high + 1e-6
    assert 2 <= len(ticks) <= 6


def test_the_ends_of_a_score_axis_have_room_and_a_strip_has_a_point_only_if_it_is_given_one():
    assert charts.score_head(charts.score_axis([])) == ""
    assert "4.2" in charts.score_head(charts.score_axis([3.9, 4.4]))
    for x, _, text in TEXTS.findall(charts.score_head(charts.score_axis([1.81, 1.88]))):
        assert text_width(text, 12) / 2 + 1 <= float(x) <= 260 - text_width(text, 12) / 2 - 1
    assert charts.Scale(0, 1, 10, 20)(3) == 20, "a scale holds values at its ends"
    axis = charts.score_axis([0.3, 0.6])
    assert ["h10v10" in charts.interval_strip(axis, (0.4, 0.5), point) for point in (None, 0.45)] == [False, True]
    assert 'class="span"' not in charts.interval_strip(axis, None)


def test_bars_are_as_long_as_their_shares_and_long_names_stay_apart():
    half, rest = (0.5, "50 %"), (0.0, "0 %")
    wide, narrow = views_of(charts.bar_table, ["One", "Two"], [("All", "10", (half, rest))])
    assert len(re.findall(r'class="bar1"[^>]*width="([\d.]+)"', wide)) == 1
    assert [text in narrow for text in ("50 %", "0 %")] == [True, True]
    # The names of its rows were once taken for its title.
    rows = [("All", "10", (half,)), ("Alder", "4", ((0.2, "20 %"),))]
    for figure in views_of(charts.bar_table, ["supported"], rows, title="Shares of each state"):
        assert ">Shares of each state</title>" in figure
    names = ["anthropic-claude-opus-4-7", "anthropic-claude-opus-4-8", "anthropic-claude-opus-5", "xai"]
    bars = views_of(charts.bar_table, ["One", "Two"], [(name, "10", (half,) * 2) for name in names], total=False)
    for figure in (*bars, *used(names, [("Sizing", ((0.2,) * 5,) * 4)])):
        shown = {text for _, _, text in TEXTS.findall(figure) if text.endswith(("xai", "4-7", "4-8", "us-5", "-5"))}
        assert {text.rsplit(" ", 1)[-1][-3:] for text in shown} == {"4-7", "4-8", "s-5", "xai"}


def test_scale_use_shows_the_commonest_mark_and_missing_judges_and_no_percent_collides_or_leaves_it():
    wide, narrow = used(["a", "b"], [("Sizing", ((0.1, 0.2, 0.4, 0.2, 0.1), None))])
    assert ("40\u00a0%" in wide, "no marks" in narrow) == (True, True)
    assert "%" not in used([f"j{at}" for at in range(12)], [("Sizing", ((0.2,) * 5,) * 12)])[1]
    for top in range(5):
        shares = tuple(0.3 if at == top else 0.175 for at in range(5))
        for figure in used(["a", "b", "c"], [("Sizing", (shares,) * 3)]):
            width = float(re.search(r'viewBox="0 0 (\d+)', figure)[1])
            found = [(float(x), text) for x, _, text in TEXTS.findall(figure) if "%" in text]
            assert len(found) == 3
            assert all(
                text_width(text, 12) / 2 - 0.1 <= x <= width - text_width(text, 12) / 2 + 0.1 for x, text in found
            )


# --- benchmarks -------------------------------------------------------------------------------------------------------


def points_of(svg: str, kind: str) -> list[tuple[float, float]]:
    """The points of a path of a class, from its relative moves."""
    moves = re.search(rf'<path class="{kind}" d="M([^"]+)"|<path d="M([^"]+)" class="{kind}"', svg)
    numbers = [float(value) for value in re.findall(r"-?\d*\.?\d+", moves[1] or moves[2])]
    steps = np.array(numbers).reshape(-1, 2).cumsum(axis=0)  # moves add up without drift
    return [tuple(step) for step in steps]


def one(nav, baseline=None, tolerance=0.1) -> str:
    _, (svg,) = charts.history_panels("h", [("m", np.asarray(nav))], baseline, tolerance)
    return svg


@given(st.lists(st.floats(0.2, 3.0), min_size=2, max_size=400), st.floats(0.01, 0.9))
def test_a_path_ends_where_the_history_ends_and_reaches_its_deepest_fall_which_is_that_of_its_definition(values, limit):
    nav = np.array([1.0, *values])
    svg = one(nav, tolerance=limit)
    line, fall = points_of(svg, "nav"), points_of(svg, "nav thin")
    assert line[0][0] == 34
    assert line[-1][0] == pytest.approx(262, abs=0.051)
    deepest = -float(charts.drawdowns(nav).min())
    assert max(y for _, y in fall) == pytest.approx(106 + 52 * deepest / max(deepest, limit), abs=0.3)
    assert len(line) <= 152
    slow = [value / max(nav[: at + 1]) - 1 for at, value in enumerate(nav)]
    np.testing.assert_allclose(charts.drawdowns(nav), slow, atol=1e-12)


def test_the_line_of_equal_weight_is_written_once_and_a_history_of_one_day_or_without_a_move_is_drawn():
    nav = np.linspace(1, 0.9, 130)
    shared, panels = charts.history_panels("h", [(n, nav) for n in "abc"], nav[::-1] / nav[-1], 0.1)
    assert shared.count('id="h-b"') == 1
    assert all('href="#h-b"' in panel and len(panel) < 6_000 for panel in panels)
    assert all("0.0\u00a0%" in one(flat) for flat in ([1.0], [1.0] * 50))


POINTS = st.tuples(
    st.text("abcdefgh", min_size=1, max_size=12), st.floats(-2, 3).map(measured), st.floats(0, 0.6),
    st.sampled_from([True, False, None]), st.booleans(),
)  # fmt: skip


@given(st.lists(POINTS, min_size=1, max_size=10), st.floats(0.05, 0.4))
def test_every_point_stands_on_the_side_of_the_limit_that_it_is_on(found, tolerance):
    for svg in views_of(charts.stress_scatter, found, tolerance, "w"):
        edge = float(re.search(r'class="gs" x1="[\d.]+" y1="([\d.]+)"|y1="([\d.]+)"[^>]*class="gs"', svg).group(1))
        marks = [float(y) for y in re.findall(r'<circle[^>]*cy="([\d.]+)"', svg)]
        for y, fall in zip(marks, [fall for _, _, fall, _, baseline in found if not baseline], strict=True):
            if abs(fall - tolerance) > 0.01:
                assert (y > edge) == (fall > tolerance)


def test_labels_stay_apart_where_twelve_models_crowd_and_a_cross_marks_what_fails():
    rng = np.random.default_rng(4)
    found = []
    for at in range(12):
        x = float(rng.normal(0.6, 0.4))
        found.append((f"model-{at}", measured(x, x - 1, x + 1), float(rng.uniform(0.06, 0.2)), True, False))
    wide, _ = views_of(charts.stress_scatter, found, 0.1, "w")
    texts = re.findall(r'<text class="tb halo( a[em])?" x="([\d.]+)" y="([\d.]+)">([^<]+)', wide)
    assert len(texts) == 12
    boxes = []
    for anchor, x, y, text in texts:
        width = text_width(text, 13)
        left = float(x) - (width if "ae" in anchor else width / 2 if "am" in anchor else 0)
        boxes.append((left, float(y) - 11, left + width, float(y) + 2))
    for a, b in combinations(boxes, 2):
        assert min(min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])) <= 1, (a, b)
    sharpe = measured(0.5, 0.1, 0.9)
    two = [("</text><script>", sharpe, 0.2, False, False), ("good", sharpe, 0.05, True, False)]
    for svg in views_of(charts.stress_scatter, two, 0.1, "w"):
        assert (svg.count("l5.2 5.2"), "<script>" in svg) == (1, False)


def test_a_map_has_each_pair_once_in_the_tint_of_its_size_and_a_class_begins_with_its_first_prices():
    values = np.array([[1.0, 0.8, -0.2], [0.8, 1.0, np.nan], [-0.2, np.nan, 1.0]])
    for svg in views_of(charts.correlation_map, [("a", 2), ("b", 1)], values):
        found = {kind: moves.count("M") for kind, moves in re.findall(r'<path class="(r-?\d)"[^>]* d="([^"]*)"', svg)}
        assert (found, ">0.80<" in svg) == ({"r4": 1, "r-1": 1}, False)
    wide, _ = views_of(charts.correlation_map, [("a", 1), ("b", 1), ("c", 1)], values, numbers=True)
    assert re.findall(r'on am" [^>]*>([^<]*)<', wide) == ["1.00", "0.80", "1.00", "−0.20", "1.00"]
    tints = {-1: "r-2", -0.3: "r-1", -0.1: "", 0.1: "r1", 0.3: "r2", 0.5: "r3", 1: "r4"}
    assert {value: charts.tint_of(value) for value in tints} == tints
    lines = np.array([[100.0, np.nan], [110.0, np.nan], [50.0, 100.0], [200.0, 90.0]])
    index, years = np.array([100.0, 110.0, 60.0, 200.0]), [2015.0, 2016, 2017, 2018]
    svg = "".join(charts.class_panel(lines, index, years, [(2016, 2017)], "c", 350.0)[0])
    moves = [re.search(f'class="{kind}" d="([^"]*)"', svg)[1].count("M") for kind in ("eqw", "nav")]
    assert (moves, svg.count('class="shade"'), ">100<" in svg) == ([2, 1], 1, True)


# --- agents of a season -----------------------------------------------------------------------------------------------


def drawn_at(*made):
    """The drawings of paths for a screen and for a phone."""
    return views_of(charts.nav_figure, *made)


WORDS = "start", "Fall from the peak", "deepest", "{:g}".format, ()
AXIS = load_scoring().bands, ("weak", "mixed", "strong")


def chart(*navs: list[float]) -> tuple:
    roles = ("own", "first", *["other"] * len(navs))
    lines = [
        (name, np.array(nav), "+1 %", role, "") for name, nav, role in zip("abcdefghijklm", navs, roles, strict=False)
    ]
    return lines, WORDS


@given(st.lists(st.floats(0.2, 5.0), min_size=2, max_size=700))
def test_the_line_keeps_its_start_its_end_and_its_deepest_fall(nav):
    for svg in drawn_at(*chart(nav, [1.0] * len(nav))):
        heights = [y for _, y in points_of(svg, "nav")]
        values = 100 * np.array(nav) / nav[0]
        marks = charts.nav_ticks(min(100.0, values.min()), max(100.0, values.max()), most=6)
        bottom = 176.0 if "n-n" in svg else 210.0
        first, last, low = (
            bottom - (value - marks[0]) / (marks[-1] - marks[0]) * (bottom - 14.0)
            for value in (100.0, values[-1], values[int(charts.drawdowns(np.array(nav)).argmin())])
        )
        # A point is written in tenths.
        assert [heights[0], heights[-1]] == pytest.approx([first, last], abs=0.1)
        assert min(abs(height - low) for height in heights) < 0.1


@given(st.lists(st.floats(0.9, 1.1), min_size=1, max_size=13))
def test_names_at_the_line_ends_never_touch_and_stay_within_the_panel(ends):
    for svg in drawn_at(*chart(*[[1.0, end] for end in ends])):
        heights = sorted(map(float, re.findall(r'<text class="[^"]*" x="[\d.]+" y="([\d.]+)">[a-m] \+1 %', svg)))
        assert len(heights) == len(ends)
        assert all(b - a >= min(16.9, 184 / len(ends) - 0.2) for a, b in pairwise(heights))
        assert heights[0] > 8


def test_a_name_that_does_not_fit_stands_above_its_return_and_what_is_written_is_escaped():
    long = [("Gleichgewichtung", np.array([1.0, 1.1]), "+10,0 %", "first", ""),
            ("Birch", np.array([1.0, 1.0]), "0,0 %", "own", "")]  # fmt: skip
    wide, narrow = drawn_at(long, WORDS)
    assert "Gleichgewichtung +10,0 %" in wide
    assert ("Gleichgewichtung<" in narrow, ">+10,0 %<" in narrow) == (True, True)
    hostile = [("<b>&", np.array([1.0, 1.0]), "<i>", "own", "")], WORDS
    row = "<b>", "<i>", [(50.0, None)], ()
    for svg in (
        *views_of(charts.nav_figure, *hostile, title="<t>", desc="<d>"),
        *season_pages.part_figure("p", [row], *AXIS, "<t>", "<d>"),
    ):
        assert not re.search(r"<[bidt]>", svg)


@given(st.floats(0.0, 99.0), st.integers(1, 4000), st.integers(1, 400))
def test_falls_fit_their_axis_ticks_rise_from_the_start_to_the_last_day_and_its_word_stands_clear(deepest, days, few):
    marks, ticks = charts.drawdown_ticks(deepest), charts.day_ticks(days)
    assert marks[0] == 0.0
    assert marks[-1] >= deepest
    assert 2 <= len(marks) <= 3
    assert (ticks[0], ticks[-1], list(ticks)) == (0, days, sorted(set(ticks)))
    assert len(ticks) <= 7
    words = "Beginn", "f", "d", "{:g}".format, ()
    made = ("a", np.linspace(1, 2, few + 1), "+1 %", "own", "")
    for svg in drawn_at([made], words):
        drawn = re.findall(r'<text class="tk(?: (a\w))?" x="([\d.]+)" y="(?:332|288)">(\w+)<', svg)
        (_, start, _), (anchor, second, text), *_ = drawn
        left = float(second) - text_width(text, 12) / (1 if anchor == "ae" else 2)
        assert left >= float(start) + text_width("Beginn", 12) + 7
        # The last day ends where its tick is: labels of the lines begin beside it.
        assert [one == "ae" for one, *_ in drawn] == [False] * (len(drawn) - 1) + [drawn[-1][2] == str(few)]


@given(st.data())
def test_a_path_on_other_days_stays_where_it_was_on_days_that_it_lacks(data):
    days = [f"{day:03d}" for day in range(data.draw(st.integers(1, 30)))]
    known = data.draw(st.lists(st.sampled_from(days), unique=True))
    nav = {day: data.draw(st.floats(1, 9)) for day in sorted(known)}
    path = season_pages.SeasonPath(name="x", baseline=True, start=5.0, days=tuple(nav), nav=tuple(nav.values()))
    slow = [5.0] + [next((nav[d] for d in reversed(days[: at + 1]) if d in nav), 5.0) for at in range(len(days))]
    assert path.on(days).tolist() == slow


@given(st.lists(st.floats(0, 100), min_size=1, max_size=9))
def test_one_dot_a_judge_and_a_line_between_them_and_a_part_without_a_grade_a_dashed_box(points):
    rows = [("Part", "10", [(one, None) for one in points], ()), ("A", "1", (), ())]
    for svg in season_pages.part_figure("p", rows, *AXIS, "t", "d"):
        assert svg.count('class="judge"') == len(points)
        assert svg.count('class="judges"') == (max(points) > min(points))
        assert svg.count('class="void"') == 1
    lowered = [("B", "1", [(50.0, None)], ((80.0, 50.0),))]
    assert all(svg.count("ring") == 1 for svg in season_pages.part_figure("p", lowered, *AXIS, "t", "d"))
