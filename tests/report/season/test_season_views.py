"""The contents of single cells on a season's pages."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import made_season as made
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.judging import band, load_scoring
from assaymark.records import Measurement
from assaymark.report import plain
from assaymark.report import season as season_pages

ENGLISH, GERMAN = season_pages.Language(made.made_catalogue("en")), season_pages.Language(made.made_catalogue("de"))
BANDS = load_scoring().bands
RUN = made.made_season(2, 3)
POINTS = st.lists(st.floats(0, 100), min_size=1, max_size=9)


def measurement(name: str, value: float | None, **more) -> Measurement:
    given = {"n": 5, "n_of": "agents", "method": ""} | more
    return Measurement(name=name, labels={"judge": "North-J"}, value=value, **given)


def graded(points) -> season_pages.SeasonIndex:
    """A season in which judges gave these points."""
    grades = tuple(replace(RUN.grades[0], composite=value) for value in points)
    return season_pages.SeasonIndex.of(replace(RUN, grades=grades, measurements=()))


@given(POINTS)
def test_every_judge_and_both_boundaries_lie_on_the_axis(points):
    index = graded(points)
    scale = season_pages.band_scale(index)
    for value in (*points, BANDS.mixed, BANDS.strong):
        assert 0 <= scale.low <= value <= scale.high <= 100
        assert 0 < scale(value) < season_pages.WIDTH
    ordered = sorted(points)
    assert [scale(value) for value in ordered] == sorted(scale(value) for value in points)
    strip = season_pages.strip_markup(index, "headline", [(value, None) for value in points])
    assert strip.count("<circle") == len(points)
    assert season_pages.strip_head(index)[1].count("<text") == 5


@given(POINTS)
def test_a_range_holds_every_judge_and_is_rounded_as_bands_are(points):
    ends = [int(end) for end in season_pages.lowest_to_highest(ENGLISH, points).split(" to ")]
    assert ends == sorted(set(ends))
    assert ends[0] <= min(points) + 0.5
    assert ends[-1] >= max(points) - 0.5
    for value in points:
        assert band(value) == band(float(season_pages.round_points(value)))


@pytest.mark.parametrize("level", ["headline", "qualified", "no-claim"])
def test_only_a_permitted_row_has_filled_dots(level):
    strip = season_pages.strip_markup(graded([50.0, 60.0]), level, [(50.0, 0), (60.0, 1)])
    assert ('class="open' in strip) == (level == "no-claim")
    empty = season_pages.strip_markup(graded([]), level, [])
    assert "<circle" not in empty
    assert "void" in empty


@given(st.floats(-1e7, 1e7))
def test_a_number_reads_back_in_every_language(value):
    for words in (ENGLISH, GERMAN):
        text = words.number(value, 2, sign=True)
        back = float(text.replace(words.catalogue.minus, "-").replace(words.catalogue.decimal, "."))
        assert math.isclose(back, value, abs_tol=0.0051)
        assert not re.match(r"[+−]0[.,]00$", text)


def test_a_count_and_a_share_are_set_as_each_language_does():
    assert (ENGLISH.amount(14500), GERMAN.amount(14500)) == ("14,500", "14.500")
    assert (ENGLISH.percent(0.0424), GERMAN.percent(-0.0424, sign=True)) == ("4.2\u00a0%", "−4,2\u00a0%")
    assert GERMAN.day("2026-03-01") == "1. März 2026"
    assert GERMAN.quoted("x") == "„x“"


def preferences(value, **more):
    item = measurement("season.self_preference", value, **more)
    return season_pages.preference_table(season_pages.SeasonIndex.of(replace(RUN, measurements=(item,))))


@pytest.mark.parametrize(("value", "low", "high", "reading"), [
    (5.0, 2.0, 8.0, "It favours its family, by 2.0 points or more."),
    (-5.0, -8.0, -2.0, "It is harder on its family, by 2.0 points or more."),
    (0.9, -24.0, 26.0, "No difference shown; one agent cannot rule out 26 points."),
    (17.2, None, None, "Large: 10 points or more. One agent; no interval exists."),
    (-17.2, None, None, "Large: 10 points or more. One agent; no interval exists."),
    (9.9, None, None, "One agent; no interval exists."),
])  # fmt: skip
def test_a_gap_is_read_with_its_interval_and_a_large_one_is_called_large(value, low, high, reading):
    detail = {"own": 1.0, "others": 0.0, "n_own": 1, "n_others": 1}
    [row] = preferences(value, low=low, high=high, detail=detail).rows
    assert row[5] == reading
    assert (getattr(row[4], "style", "") == "b") == (low is None)


def test_an_interval_over_periods_says_so_and_that_one_agent_is_one_agent_and_without_any_gap_there_is_no_table():
    detail = {"own": 20.0, "others": 0.0, "n_own": 14, "n_others": 28, "agents": 1}
    [row] = preferences(20.0, low=15.0, high=25.0, detail=detail, n=14, n_of="periods").rows
    assert row[5].startswith("It favours its family, by 15.0 points or more. Its family has one agent here")
    assert row[4] == "+15.0 to +25.0 (14 periods)"
    assert preferences(None, state="no agent of its family") is None


@pytest.mark.parametrize(("low", "said"), [(0.11, "no more than chance"), (0.6, "more than chance")])
def test_a_probe_is_held_against_chance(low, said):
    item = measurement("season.author_probe", 0.8, low=low, high=0.9, detail={"chance": 0.5, "hits": 4})
    sentences, _ = season_pages.blinding_blocks(season_pages.SeasonIndex.of(replace(RUN, measurements=(item,))))
    assert "4 of 5 guesses" in sentences.items[1]
    assert said in sentences.items[1]


def test_blinding_is_counted_over_all_records():
    run = made.made_season(3, 3)
    sentences, names = season_pages.blinding_blocks(season_pages.SeasonIndex.of(run))
    replaced = sum(line.count for line in run.blinding if line.state == "replaced")
    assert f"replaced names in {replaced} places and left them in" in sentences.items[0]
    assert ("NVX", "kept", "36", "a holding") in names.blocks[0].rows


def test_a_band_that_efficiency_moved_is_named_only_where_the_total_is_shown():
    run = made.made_season()
    row = next(row for row in run.table if row.contestant == "Dogwood")
    moved = replace(row, standing=replace(row.standing, band="strong"))
    assert season_pages.band_words(moved, ENGLISH) == "mixed, all judges"
    assert season_pages.band_words(moved, ENGLISH, shown=True) == "strong with efficiency, mixed without"
    assert season_pages.band_words(None, ENGLISH) == "not graded"


def test_a_measurement_reads_with_its_interval_and_n_or_says_why_there_is_none():
    assert season_pages.result_words(measurement("season.kappa", 0.314, low=0.2, high=0.4), ENGLISH) == (
        "0.31 (0.20 to 0.40), n = 5 agents"
    )
    assert season_pages.result_words(measurement("season.return", 0.0424), GERMAN) == "+4,2\u00a0%, n = 5 Agenten"
    assert season_pages.result_words(measurement("season.kappa", None, state="not defined: one judge"), GERMAN) == (
        "nicht definiert: ein einziger Richter"
    )
    assert season_pages.result_words(measurement("season.thrash", 3.0), ENGLISH) == "3, n = 5 agents"


@pytest.mark.parametrize("words", [ENGLISH, GERMAN])
def test_weights_of_each_list_sum_to_100(words):
    for _, table in season_pages.weight_tables(load_scoring(), words):
        assert sum(float(plain(row.cells[1]).replace(",", ".")) for row in table.lines) == pytest.approx(100)


def test_a_plan_does_not_differ_from_itself():
    plan = load_scoring()
    changed, same = season_pages.differences(plan, plan)
    assert changed == []
    assert {"grader", "panel", "reasoning"} <= set(same)


def test_an_agent_that_is_called_like_a_baseline_keeps_its_own_return():
    run = made.made_season(2, 5)
    called = replace(run, paths=tuple(replace(one, name="cash") if one.name == "Alder" else one for one in run.paths))
    book = season_pages.SeasonIndex.of(replace(called, measurements=()))
    own, baseline = (
        season_pages.account_facts(book, "cash")[0],
        season_pages.account_facts(book, "cash", baseline=True)[0],
    )
    assert own == ENGLISH.percent(run.paths[0].nav[-1] / run.paths[0].start - 1, sign=True)
    assert baseline == "+0.9\u00a0%"
    assert own != baseline
    assert season_pages.account_facts(book, "nobody")[0].style == "un"


def test_the_board_names_whose_totals_lack_a_part():
    notes = " ".join(season_pages.board_notes(season_pages.SeasonIndex.of(made.made_season())))
    assert "No time was measured for Cedar" in notes
    assert "The outcome of Fir could not be resolved" in notes
    assert "no usable grade for Gorse" in notes
    assert "Returns are total returns after costs" in notes
    run = made.made_season(4, 3)
    elsewhere = season_pages.board_notes(season_pages.SeasonIndex.of(replace(run, source="a log")))
    assert "after costs" not in " ".join(elsewhere)
    rows = tuple(replace(row, efficiency=None) for row in run.table)
    untimed = replace(run, table=rows)
    assert "for any agent" in " ".join(season_pages.board_notes(season_pages.SeasonIndex.of(untimed)))
