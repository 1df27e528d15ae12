"""The table of a season and the round trips in it: laws, planted noise, cases by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.judging import (
    Contestant,
    NoiseFloor,
    agreement_row,
    band,
    contested_band,
    efficiency,
    gap_floor,
    load_scoring,
    noise_floor,
    season_table,
    thrashing,
    tie_classes,
    total_score,
)

JUDGES = ("auditor", "reader", "skeptic")
UNKNOWN = noise_floor([])


points = st.floats(0, 100)


floors = st.just(UNKNOWN) | st.builds(
    lambda value, freedom: NoiseFloor(value, freedom, freedom + 1, 1, "ok"),
    st.sampled_from([0.0, 0.5, 2.0, 10.0]),
    st.integers(1, 20),
)


@st.composite
def seasons(draw):
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6))
    return [
        Contestant(
            name,
            draw(st.dictionaries(st.sampled_from(JUDGES), points, max_size=3)),
            draw(st.none() | st.floats(0, 100)),
            draw(floors),
        )
        for name in names
    ]


def known(value, freedom=30):
    return NoiseFloor(value, freedom, freedom + 1, 1, "ok")


def graded(*totals, floor=UNKNOWN):
    """Contestants named by their place whose judges all agree and who have no timing: the total is the composite."""
    return [Contestant(f"c{k}", dict.fromkeys(JUDGES, total), None, floor) for k, total in enumerate(totals)]


@given(seasons(), floors)
def test_a_row_is_made_of_the_scores(contestants, judges):
    table = season_table(contestants, judges=judges)
    by_name = {row.contestant: row for row in table.rows}
    assert set(by_name) == {one.name for one in contestants}
    some = [one for one in contestants if one.composites]
    quick = efficiency([agreement_row(one.name, one.composites).median for one in some], [one.seconds for one in some])
    for one, share in zip(some, quick, strict=True):
        row, scores = by_name[one.name], list(one.composites.values())
        assert row.total == total_score(scores, share)
        assert row.efficiency == share
        assert row.agreement.standing == contested_band(scores)
        assert (row.agreement.low, row.agreement.high) == (min(scores), max(scores))
        assert row.standing.band == band(row.total)
        assert row.standing.contested == (len({band(total_score([score], share)) for score in scores}) > 1)
        assert (row.state == "graded") == (not row.absent)


@given(seasons(), floors, st.randoms(use_true_random=False))
def test_order_of_contestants_and_judges_changes_nothing(contestants, judges, random):
    other = [
        Contestant(one.name, dict(sorted(one.composites.items(), reverse=True)), one.seconds, one.floor)
        for one in contestants
    ]
    random.shuffle(other)
    assert season_table(other, judges=judges) == season_table(contestants, judges=judges)


@given(seasons(), floors)
def test_names_change_nothing(contestants, judges):
    renamed = [
        Contestant("z" + one.name, {"z" + j: c for j, c in one.composites.items()}, one.seconds, one.floor)
        for one in contestants
    ]
    one, other = season_table(contestants, judges=judges), season_table(renamed, judges=judges)
    assert one.gaps == other.gaps
    for a, b in zip(one.rows, other.rows, strict=True):
        assert "z" + a.contestant == b.contestant
        assert (a.total, a.first, a.last, a.standing, a.state) == (b.total, b.first, b.last, b.standing, b.state)


@given(seasons(), floors)
def test_places_are_those_that_hold_against_every_pair(contestants, judges):
    table = season_table(contestants, judges=judges)
    ranked = [row for row in table.rows if row.total is not None]
    noise = {one.name: one.floor for one in contestants}

    def apart(one, other):
        floor = gap_floor(noise[one.contestant], noise[other.contestant], judges)
        return floor is not None and one.total - other.total > floor + 1e-9

    boundaries = [k for k in range(1, len(ranked)) if all(apart(a, b) for a in ranked[:k] for b in ranked[k:])]
    edges = [0, *boundaries, len(ranked)] if ranked else []
    expected = [(low + 1, high) for low, high in pairwise(edges) for _ in range(low, high)]
    assert [(row.first, row.last) for row in ranked] == expected
    assert len(table.gaps) == max(len(ranked) - 1, 0)
    for k, gap in enumerate(table.gaps, start=1):
        assert (gap.state == "apart") == (k in boundaries)
        assert gap.gap == ranked[k - 1].total - ranked[k].total >= 0
        assert (gap.floor is None) == (gap.state == "floor unknown")


CALM, NOISY = known(0.1), known(10.0)


@pytest.mark.parametrize(("contestants", "judges", "places", "gaps"), [
    # where nothing was repeated everybody shares one place
    (graded(90, 50, 10), CALM, [(1, 3)] * 3, ["floor unknown"] * 2),
    (graded(90, 50, 10, floor=CALM), UNKNOWN, [(1, 3)] * 3, ["floor unknown"] * 2),
    # a noisy contestant takes its neighbours with it
    ([*graded(80, 77, floor=CALM), Contestant("noisy", {"auditor": 74.0}, None, NOISY),
      Contestant("far", {"auditor": 30.0}, None, CALM)],
     CALM, [(1, 3)] * 3 + [(4, 4)], ["tie through others", "tie", "apart"]),
    # equal totals tie even without any noise
    (graded(60, 60, 50, floor=known(0.0)), known(0.0), [(1, 2), (1, 2), (3, 3)], ["tie", "apart"]),
])  # fmt: skip
def test_places_and_gaps(contestants, judges, places, gaps):
    table = season_table(contestants, judges=judges)
    assert [(row.first, row.last) for row in table.rows] == places
    assert [gap.state for gap in table.gaps] == gaps


def test_what_always_comes_out_alike_gives_no_floor():
    same = noise_floor([[60, 60], [51, 51, 51]])
    assert (same.value, same.freedom, same.replicates, same.state) == (None, 3, 5, "identical repetitions")
    assert gap_floor(same, same, same) is None
    assert gap_floor(same, same, known(2.0)) == gap_floor(known(0.0), known(0.0), known(2.0))
    assert gap_floor(same, UNKNOWN, known(2.0)) is None
    assert [gap.state for gap in season_table(graded(90, 10, floor=same), judges=same).gaps] == ["floor unknown"]
    assert noise_floor([]) == noise_floor([[60], [70]]) == UNKNOWN
    assert gap_floor(UNKNOWN, known(1.0), known(1.0)) is None
    assert gap_floor(known(0.0), known(0.0), known(0.0)) == 0.0


def test_a_floor_is_what_was_planted():
    rng = np.random.default_rng(1)
    groups = 60 + rng.normal(0, 5, (400, 1)) + rng.normal(0, 3, (400, 4))
    found = noise_floor(groups.tolist())
    assert found.value == pytest.approx(3.0, abs=0.1)
    assert (found.freedom, found.replicates, found.groups) == (1200, 1600, 400)
    assert found.value == pytest.approx(math.sqrt(groups.var(axis=1, ddof=1).mean()))


@pytest.mark.parametrize("replicates", [2, 3, 10])
def test_equal_contestants_are_ranked_apart_no_more_often_than_the_level_says(replicates):
    rng = np.random.default_rng(replicates)
    wrong = 0
    for _ in range(1000):
        a, b, j = (noise_floor([rng.normal(60, sd, replicates).tolist()]) for sd in (2.0, 2.0, 1.0))
        totals = sorted(60 + rng.normal(0, 2.0, 2) + rng.normal(0, 1.0, 2), reverse=True)
        wrong += tie_classes(totals, [a, b], j)[1][0].state == "apart"
    assert wrong < 70


def test_a_real_difference_is_found_when_the_noise_is_known():
    rng = np.random.default_rng(8)
    floor = noise_floor(rng.normal(60, 1, (20, 3)).tolist())
    assert tie_classes([70, 64, 63.5], [floor] * 3, floor)[0] == [(1, 1), (2, 3), (2, 3)]


def test_rows_that_lack_something_say_so():
    table = season_table(
        [
            Contestant("half", {"auditor": 70.0, "reader": 60.0}, 3.0, known(0.1)),
            Contestant("none", {}),
            Contestant("full", dict.fromkeys(JUDGES, 50.0), None, known(0.1)),
        ],
        judges=known(0.1),
    )
    half, full, none = table.rows
    assert (half.state, half.absent, half.agreement.median) == ("graded by part of the panel", ("skeptic",), 65.0)
    assert (half.efficiency, half.total) == (65.0, pytest.approx(65.0))
    assert (full.state, full.absent, full.efficiency, full.total) == ("graded", (), None, 50.0)
    assert (none.state, none.absent, none.total, none.first, none.standing) == ("not graded", JUDGES, None, None, None)
    assert len(table.gaps) == 1


def test_an_agent_that_never_gave_a_usable_answer_has_neither_efficiency_nor_a_total():
    silent = Contestant("silent", dict.fromkeys(JUDGES, 25.0), 0.01, known(0.1), answered=False)
    table = season_table([silent, *graded(50, floor=known(0.1))], judges=known(0.1))
    other, row = table.rows
    assert (row.contestant, row.state, row.total, row.efficiency, row.agreement, row.first) == (
        "silent", "no usable answer", None, None, None, None,
    )  # fmt: skip
    assert (other.total, other.absent, len(table.gaps)) == (50.0, (), 0)


def test_the_band_of_a_total_can_be_another_than_the_medians_and_a_plan_without_efficiency_shows_none():
    quick, slow = season_table([Contestant(name, {"auditor": 70.0}, s) for name, s in (("a", 600.0), ("b", 1.0))]).rows
    assert (quick.total, slow.total) == (70.0, pytest.approx(63.7))
    assert (slow.agreement.standing.band, slow.standing.band, slow.standing.state) == (
        "strong", "mixed", "single judge",
    )  # fmt: skip
    plan = load_scoring("v0.3")
    table = season_table([Contestant("a", {"auditor": 70.0}, 2.0)], plan=plan)
    assert (table.rows[0].efficiency, table.rows[0].total) == (None, 70.0)
    assert (table.grader, table.plan, table.level) == (plan.grader, plan.digest, 0.95)
    with pytest.raises(InputError, match="for a single judge"):
        season_table([Contestant("a", {"auditor": 70.0, "reader": 60.0})], plan=plan)
    assert season_table([]).rows == ()


def test_bad_input_is_told_at_once():
    bad = [Contestant("a", {"auditor": 101.0}), Contestant("a", {}), Contestant("b", {"reader": math.nan})]
    with pytest.raises(InputError) as caught:
        season_table(bad)
    assert [problem.where for problem in caught.value.problems] == ["a", "a, auditor", "b, reader"]
    with pytest.raises(InputError, match="at least one judge"):
        agreement_row("a", {})
    with pytest.raises(InputError, match=r"floors: one for each of 2 \(got 1\)"):
        tie_classes([2, 1], [UNKNOWN], UNKNOWN)
    with pytest.raises(InputError, match="falling order"):
        tie_classes([1, 2], [UNKNOWN] * 2, UNKNOWN)
    with pytest.raises(InputError) as caught:
        noise_floor([[1, math.inf], [math.nan]])
    assert [problem.where for problem in caught.value.problems] == ["groups[0][1]", "groups[1][0]"]
    for value, freedom in ((1.0, 0), (-1.0, 3), (100.1, 3), (math.nan, 3)):
        with pytest.raises(InputError, match="needs a value in"):
            NoiseFloor(value, freedom, 2, 1, "ok")


def days(*quantities, symbol="A"):
    """Each day's trades of one name: a number, several, or 0 for none."""
    return [[(symbol, q) for q in (day if isinstance(day, tuple) else (day,)) if q] for day in quantities]


def trips(found):
    return [(trip.first, trip.opened, trip.closed, trip.quantity) for trip in found]


units = st.integers(-4, 4).filter(bool)


thrash_seasons = st.lists(st.lists(st.tuples(st.sampled_from("AB"), units), max_size=3), max_size=8)


windows = st.integers(0, 4)


def by_definition(season, within):
    """Each unit alone: it takes back the latest open unit of the other side, or opens."""
    open_units = {symbol: [] for symbol in "AB"}
    found = {}
    for day, fills in enumerate(season):
        run = dict.fromkeys("AB", (0, 0))  # a run of one direction, and its sign
        for symbol, quantity in fills:
            sign = 1 if quantity > 0 else -1
            number, last = run[symbol]
            number += sign != last
            run[symbol] = (number, sign)
            lots = open_units[symbol]
            for _ in range(abs(quantity)):
                while lots and day - lots[0][0] > within:
                    lots.pop(0)
                if lots and lots[-1][1] == -sign:
                    opened, _ = lots.pop()
                    taken, earliest = found.get((day, symbol, number), (0, day))
                    found[day, symbol, number] = (taken + 1, min(earliest, opened))
                else:
                    lots.append((day, sign))
    return sorted((symbol, opened, day, float(taken)) for (day, symbol, _), (taken, opened) in found.items())


@given(thrash_seasons, windows)
def test_trips_are_those_of_single_units(season, within):
    found, trades = thrashing(season, within=within)
    assert sorted((t.symbol, t.opened, t.closed, t.quantity) for t in found) == by_definition(season, within)
    assert all(0 <= trip.closed - trip.opened <= within for trip in found)
    assert len(found) <= trades


@pytest.mark.parametrize(("season", "within", "expected"), [
    (days(10, -10), 5, [("buy", 0, 1, 10)]),
    (days(10, 0, -10), 1, []),
    (days(10, 0, -10), 2, [("buy", 0, 2, 10)]),
    (days(-10, 10), 5, [("sell", 0, 1, 10)]),
    (days((10, -4)), 0, [("buy", 0, 0, 4)]),
    (days(10, -10, 10, -10), 5, [("buy", 0, 1, 10), ("buy", 2, 3, 10)]),
    (days(10, -4, -6), 5, [("buy", 0, 1, 4), ("buy", 0, 2, 6)]),
    (days(10, 5, -12), 5, [("buy", 0, 2, 12)]),
    (days(10, 0, 0, 0, -10, 10), 3, [("sell", 4, 5, 10)]),
    (days(5, -8, 3), 5, [("buy", 0, 1, 5), ("sell", 1, 2, 3)]),
    (days(10, 5, 5), 5, []),
    ([], 5, []),
    (days(0.1, 0.2, -0.3, 0.3, -0.3), 5, [("buy", 0, 2, 0.3), ("buy", 3, 4, 0.3)]),
])  # fmt: skip
def test_by_hand(season, within, expected):
    found, _ = thrashing(season, within=within)
    assert trips(found) == [(*trip[:3], pytest.approx(trip[3])) for trip in expected]


@given(thrash_seasons, windows)
def test_a_longer_window_misses_nothing(season, within):
    one, other = (sum(t.quantity for t in thrashing(season, w)[0]) for w in (within, 10))
    assert one <= other


@given(thrash_seasons, windows)
def test_the_other_way_round_has_the_same_trips(season, within):
    turned = [[(symbol, -quantity) for symbol, quantity in day] for day in season]
    one, other = thrashing(season, within=within), thrashing(turned, within=within)
    swap = {"buy": "sell", "sell": "buy"}
    assert [(t.symbol, swap[t.first], t.opened, t.closed, t.quantity) for t in one[0]] == [
        (t.symbol, t.first, t.opened, t.closed, t.quantity) for t in other[0]
    ]


@given(thrash_seasons, windows)
def test_an_order_in_pieces_is_one_trade(season, within):
    pieces = [[piece for symbol, quantity in day for piece in ((symbol, quantity / 2),) * 2] for day in season]
    assert thrashing(pieces, within=within) == thrashing(season, within=within)


@given(thrash_seasons, windows)
def test_names_do_not_meet(season, within):
    both = thrashing(season, within=within)
    for symbol in "AB":
        alone = thrashing([[fill for fill in day if fill[0] == symbol] for day in season], within=within)
        assert alone[0] == tuple(trip for trip in both[0] if trip.symbol == symbol)


def test_bad_fills_are_told_at_once():
    with pytest.raises(InputError) as caught:
        thrashing([[("A", 0)], [("B", math.nan), ("C", 1), ("D", math.inf)]], within=-1)
    assert [problem.where for problem in caught.value.problems] == ["day 0, A", "day 1, B", "day 1, D", "within"]
