"""The marks: what each shows, what it hides, and that labels stay apart."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.report import charts, text_width

TEXTS = re.compile(r'<text[^>]*?x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')


def drawn(*rows, title="t", desc="d"):
    """The forest of some kappas, wide and narrow."""
    base = {"title": "Sizing", "value": 0.5, "status": "publish", "interval": (0.45, 0.55), "bootstrap": (0.4, 0.6),
            "state": "", "pooled": False}  # fmt: skip
    return charts.forest(
        "f", [charts.ForestRow(**{**base, **row}) for row in rows], charts.Gates(0.2, 0.4), title, desc
    )


def used(names, rows):
    return charts.scale_use("u", names, rows, "t", "d")


def test_text_is_escaped():
    assert "&lt;script&gt;" in str(charts.label(0, 0, "<script>"))
    both = "".join(drawn({"title": "<b>x</b>"}, title="<t>", desc="<d>"))
    assert not {"<b>", "<t>"} & set(re.findall("<.>", both))


FORESTS = (
    # The fill of a square is the permission; an undefined kappa is a dashed box with its reason.
    ({"status": "publish"}, ('class="mh gap"',)),
    ({"status": "methodology"}, ('class="open mqs"',)),
    ({"status": "halt"}, ('class="open mns"',)),
    ({"value": None, "interval": None, "bootstrap": None, "status": "halt", "state": "not measurable: one family"},
     ("not measurable: one family", 'class="void"', "no number")),
    # That of a format decides without a stroke.
    ({"value": 0.66, "status": "halt", "by": "not defined: no variance in table"}, ("in table</text>", 'class="mnl"')),
)  # fmt: skip


@pytest.mark.parametrize(("row", "marks"), FORESTS)
def test_each_kappa_has_its_mark_at_both_widths(row, marks):
    for figure in drawn(row):
        assert all(mark in figure for mark in marks)
        assert figure.count('class="mnl"') == 1 or "by" not in row


def test_a_forest_shows_the_aggregate_as_a_diamond_widens_its_axis_and_draws_points_without_intervals():
    wide, _ = drawn({"pooled": True}, {})
    assert [len(re.findall(rf'class="mh gap" d="M[\d. ]+{way}', wide)) for way in "lh"] == [1, 1]
    assert "−0.4" in drawn({"value": -0.1, "interval": (-0.35, 0.1), "status": "halt"})[0]
    wide, narrow = drawn({"interval": None, "bootstrap": None})
    assert 'class="mhb"' not in wide
    assert "none" in wide
    assert "0.50" in narrow


def test_the_kappa_that_decides_stands_beside_its_gate():
    weak = {"value": 0.66, "status": "methodology"}
    wide, narrow = drawn({**weak, "by": "0.21 in weights-v1", "gating": 0.21})
    assert "0.21 in weights-v1" in [text for _, _, text in TEXTS.findall(wide)]
    assert "weak: 0.21 in weights-v1" in [text for _, _, text in TEXTS.findall(narrow)]
    assert wide.count('class="mql"') == drawn(weak)[0].count('class="mql"') + 1


def test_a_tier_has_a_box_an_agent_alone_a_point_and_one_that_may_not_be_drawn_says_why():
    why = ("Judges do not agree", "κ 0.11; 0.20 needed")
    none = [charts.TierRow(("Marten", "Otter"), "no-claim", None, None, "")]
    chart = charts.tier_chart("t", none, (1, 5), "T", "d", width=350.0, kind="both", why=why)
    assert "Judges do not agree" in chart
    assert "<path" not in chart
    assert "url(#t-h)" in chart
    rows = [
        charts.TierRow(("Marten",), "headline", (4.1, 4.3), 4.2, "4.20 (4.10 to 4.30)", "above two others"),
        charts.TierRow(
            ("Badger", "Otter"), "qualified", (3.5, 3.9), None, "3.50 to 3.90, one tier", "no ranking inside"
        ),
    ]
    chart = charts.tier_chart("t", rows, (3, 5), "T", "d", width=1120.0, kind="wide")
    assert [chart.count(part) for part in ('class="mh gap"', "box")] == [1, 1]
    assert "4.20 (4.10 to 4.30)" in chart


@pytest.mark.parametrize(("mark", "drawn"), [("p", 'class="ink"'), ("q", 'class="mq"'), ("n", 'class="open mns"')])
def test_a_strip_marks_a_value_by_whether_it_passes(mark, drawn):
    strip = charts.Strip(charts.strip_axis([0.3], 0.15), ((0.15, "0.15", False),), ((0.3, 0.2, 0.4),), mark).svg()
    assert all(part in strip for part in (drawn, ">0.15</text>", 'class="now"'))


@given(st.lists(st.floats(1, 5), min_size=1, max_size=9))
def test_a_score_axis_holds_its_values_on_few_ticks(values):
    axis = charts.score_axis(values)
    assert axis.low <= min(values) + 1e-6
    assert max(values) <= axis.high + 1e-6
    assert 2 <= len(axis.ticks) <= 6


def test_the_ends_of_a_score_axis_have_room_for_their_labels():
    assert charts.score_head(charts.score_axis([])) == ""
    assert "4.2" in charts.score_head(charts.score_axis([3.9, 4.4]))
    for x, _, text in TEXTS.findall(charts.score_head(charts.score_axis([1.81, 1.88]))):
        assert text_width(text, 12) / 2 + 1 <= float(x) <= 260 - text_width(text, 12) / 2 - 1
    assert charts.Scale(0, 1, 10, 20)(3) == 20, "a scale holds values at its ends"


def test_bars_are_as_long_as_their_shares():
    rows = [charts.BarRow("All", "10", (charts.BarCell(0.5, "50 %"), charts.BarCell(0.0, "0 %")), total=True)]
    wide, narrow = charts.bar_table("b", ["One", "Two"], rows, "t", "d")
    assert len(re.findall(r'class="bar1"[^>]*width="([\d.]+)"', wide)) == 1
    assert "50 %" in narrow
    assert "0 %" in narrow
    # The names of its rows were once taken for its title.
    rows = [
        charts.BarRow("All", "10", (charts.BarCell(0.5, "50 %"),), total=True),
        charts.BarRow("Alder", "4", (charts.BarCell(0.2, "20 %"),)),
    ]
    for figure in charts.bar_table("b", ["supported"], rows, "Shares of each state", "d"):
        assert ">Shares of each state</title>" in figure


def test_scale_use_shows_the_commonest_mark_and_missing_judges_and_drops_percents_before_they_collide():
    wide, narrow = used(["a", "b"], [("Sizing", ((0.1, 0.2, 0.4, 0.2, 0.1), None))])
    assert "40\u00a0%" in wide
    assert "no marks" in narrow
    assert "%" not in used([f"j{at}" for at in range(12)], [("Sizing", ((0.2,) * 5,) * 12)])[1]


def test_long_names_stay_apart_in_every_figure():
    names = ["anthropic-claude-opus-4-7", "anthropic-claude-opus-4-8", "anthropic-claude-opus-5", "xai"]
    bars = charts.bar_table(
        "b", ["One", "Two"], [charts.BarRow(n, "10", (charts.BarCell(0.5, "50 %"),) * 2) for n in names], "t", "d"
    )
    for figure in (*bars, *used(names, [("Sizing", ((0.2,) * 5,) * 4)])):
        shown = {text for _, _, text in TEXTS.findall(figure) if text.endswith(("xai", "4-7", "4-8", "us-5", "-5"))}
        assert {text.rsplit(" ", 1)[-1][-3:] for text in shown} == {"4-7", "4-8", "s-5", "xai"}


@pytest.mark.parametrize("top", range(5))
def test_no_percent_of_a_small_figure_leaves_it(top):
    shares = tuple(0.3 if at == top else 0.175 for at in range(5))
    for figure in used(["a", "b", "c"], [("Sizing", (shares,) * 3)]):
        width = float(re.search(r'viewBox="0 0 (\d+)', figure)[1])
        found = [(float(x), text) for x, _, text in TEXTS.findall(figure) if "%" in text]
        assert len(found) == 3
        for x, text in found:
            assert text_width(text, 12) / 2 - 0.1 <= x <= width - text_width(text, 12) / 2 + 0.1
