"""The marks: what each shows, what it hides, and that labels stay apart."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.report import text_width
from assaymark.report.charts import (
    BarCell,
    BarRow,
    ForestRow,
    Gates,
    Scale,
    Strip,
    TierRow,
    bar_table,
    forest,
    label,
    scale_use,
    score_axis,
    score_head,
    strip_axis,
    tier_chart,
)

GATES = Gates(0.2, 0.4)
TEXTS = re.compile(r'<text[^>]*?x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')


def row(title="Sizing", value=0.5, status="publish", **more):
    base = {"interval": (0.45, 0.55), "bootstrap": (0.4, 0.6), "state": "", "pooled": False}
    return ForestRow(title=title, value=value, status=status, **{**base, **more})


def test_text_is_escaped():
    assert "&lt;script&gt;" in str(label(0, 0, "<script>"))
    wide, narrow = forest("f", [row(title="<b>x</b>")], GATES, "<t>", "<d>")
    assert "<b>" not in wide + narrow
    assert "<t>" not in wide + narrow


@pytest.mark.parametrize(("status", "mark"), [("publish", "mh gap"), ("methodology", "open mqs"), ("halt", "open mns")])
def test_the_fill_of_a_square_is_the_permission(status, mark):
    for figure in forest("f", [row(status=status)], GATES, "t", "d"):
        assert f'class="{mark}"' in figure


def test_the_aggregate_is_a_diamond():
    wide, _ = forest("f", [row(pooled=True), row()], GATES, "t", "d")
    diamonds = re.findall(r'class="mh gap" d="M[\d. ]+l', wide)
    squares = re.findall(r'class="mh gap" d="M[\d. ]+h', wide)
    assert (len(diamonds), len(squares)) == (1, 1)


def test_an_undefined_kappa_is_a_dashed_box_with_its_reason():
    rows = [row(value=None, interval=None, bootstrap=None, status="halt", state="not measurable: one family")]
    for figure in forest("f", rows, GATES, "t", "d"):
        assert "not measurable: one family" in figure
        assert 'class="void"' in figure
        assert "no number" in figure


def test_an_interval_below_zero_widens_the_axis_and_without_one_only_the_point_is_drawn():
    wide, _ = forest("f", [row(value=-0.1, interval=(-0.35, 0.1), status="halt")], GATES, "t", "d")
    assert "−0.4" in wide
    wide, narrow = forest("f", [row(interval=None, bootstrap=None)], GATES, "t", "d")
    assert 'class="mhb"' not in wide
    assert "none" in wide
    assert "0.50" in narrow


def test_a_tier_that_may_not_be_drawn_has_no_mark_and_says_why():
    rows = [TierRow(("Marten", "Otter"), "no-claim", None, None, "")]
    why = ("Judges do not agree", "κ 0.11; 0.20 needed")
    chart = tier_chart("t", rows, (1, 5), "T", "d", width=350.0, kind="both", why=why)
    assert "Judges do not agree" in chart
    assert "<path" not in chart
    assert "url(#t-h)" in chart


def test_an_agent_alone_in_its_tier_has_a_point_and_others_a_box():
    rows = [
        TierRow(("Marten",), "headline", (4.1, 4.3), 4.2, "4.20 (4.10 to 4.30)", "above two others"),
        TierRow(("Badger", "Otter"), "qualified", (3.5, 3.9), None, "3.50 to 3.90, one tier", "no ranking inside"),
    ]
    chart = tier_chart("t", rows, (3, 5), "T", "d", width=1120.0, kind="wide")
    assert chart.count('class="mh gap"') == 1
    assert chart.count("box") == 1
    assert "4.20 (4.10 to 4.30)" in chart
    assert score_head(score_axis([])) == ""
    assert "4.2" in score_head(score_axis([3.9, 4.4]))


@pytest.mark.parametrize(("mark", "drawn"), [("p", 'class="ink"'), ("q", 'class="mq"'), ("n", 'class="open mns"')])
def test_a_strip_marks_a_value_by_whether_it_passes(mark, drawn):
    strip = Strip(strip_axis([0.3], 0.15), ((0.15, "0.15", False),), ((0.3, 0.2, 0.4),), mark).svg()
    assert drawn in strip
    assert ">0.15</text>" in strip
    assert 'class="now"' in strip


@given(st.lists(st.floats(1, 5), min_size=1, max_size=9))
def test_a_score_axis_holds_its_values_on_few_ticks(values):
    axis = score_axis(values)
    assert axis.low <= min(values) + 1e-6
    assert max(values) <= axis.high + 1e-6
    assert 2 <= len(axis.ticks) <= 6


def test_bars_are_as_long_as_their_shares():
    rows = [BarRow("All", "10", (BarCell(0.5, "50 %"), BarCell(0.0, "0 %")), total=True)]
    wide, narrow = bar_table("b", ["One", "Two"], rows, "t", "d")
    widths = [float(w) for w in re.findall(r'class="bar1"[^>]*width="([\d.]+)"', wide)]
    assert len(widths) == 1
    assert "50 %" in narrow
    assert "0 %" in narrow
    # The names of its rows were once taken for its title.
    rows = [BarRow("All", "10", (BarCell(0.5, "50 %"),), total=True), BarRow("Alder", "4", (BarCell(0.2, "20 %"),))]
    for figure in bar_table("b", ["supported"], rows, "Shares of each state", "d"):
        assert ">Shares of each state</title>" in figure


def test_scale_use_shows_the_commonest_mark_and_missing_judges_and_drops_percents_before_they_collide():
    rows = [("Sizing", ((0.1, 0.2, 0.4, 0.2, 0.1), None))]
    wide, narrow = scale_use("u", ["a", "b"], rows, "t", "d")
    assert "40\u00a0%" in wide
    assert "no marks" in narrow
    rows = [("Sizing", tuple((0.2,) * 5 for _ in range(12)))]
    _, narrow = scale_use("u", [f"j{at}" for at in range(12)], rows, "t", "d")
    assert "%" not in narrow
    assert Scale(0, 1, 10, 20)(3) == 20, "a scale holds values at its ends"


def test_long_names_stay_apart_in_every_figure():
    names = ["anthropic-claude-opus-4-7", "anthropic-claude-opus-4-8", "anthropic-claude-opus-5", "xai"]
    bars = bar_table("b", ["One", "Two"], [BarRow(n, "10", (BarCell(0.5, "50 %"),) * 2) for n in names], "t", "d")
    marks = scale_use("u", names, [("Sizing", ((0.2,) * 5,) * 4)], "t", "d")
    for figure in (*bars, *marks):
        shown = {text for _, _, text in TEXTS.findall(figure) if text.endswith(("xai", "4-7", "4-8", "us-5", "-5"))}
        assert {text.rsplit(" ", 1)[-1][-3:] for text in shown} == {"4-7", "4-8", "s-5", "xai"}


@pytest.mark.parametrize("top", range(5))
def test_no_percent_of_a_small_figure_leaves_it(top):
    shares = tuple(0.3 if at == top else 0.175 for at in range(5))
    for figure in scale_use("u", ["a", "b", "c"], [("Sizing", (shares,) * 3)], "t", "d"):
        width = float(re.search(r'viewBox="0 0 (\d+)', figure)[1])
        found = [(float(x), text) for x, _, text in TEXTS.findall(figure) if "%" in text]
        assert len(found) == 3
        for x, text in found:
            assert text_width(text, 12) / 2 - 0.1 <= x <= width - text_width(text, 12) / 2 + 0.1


def test_the_ends_of_a_score_axis_have_room_for_their_labels():
    head = score_head(score_axis([1.81, 1.88]))
    for x, _, text in TEXTS.findall(head):
        assert text_width(text, 12) / 2 + 1 <= float(x) <= 260 - text_width(text, 12) / 2 - 1


def test_the_kappa_that_decides_stands_beside_its_gate():
    rows = [row(value=0.66, status="methodology", by="0.21 in weights-v1", gating=0.21)]
    wide, narrow = forest("f", rows, GATES, "t", "d")
    assert "0.21 in weights-v1" in [text for _, _, text in TEXTS.findall(wide)]
    assert "weak: 0.21 in weights-v1" in [text for _, _, text in TEXTS.findall(narrow)]
    plain, _ = forest("f", [row(value=0.66, status="methodology")], GATES, "t", "d")
    assert wide.count('class="mql"') == plain.count('class="mql"') + 1


def test_an_undefined_kappa_of_a_format_decides_without_a_stroke():
    rows = [row(value=0.66, status="halt", by="not defined: no variance in table")]
    for figure in forest("f", rows, GATES, "t", "d"):
        assert any(text.endswith("in table") for _, _, text in TEXTS.findall(figure))
        assert figure.count('class="mnl"') == 1
