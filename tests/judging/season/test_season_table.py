"""The table of a season and the round trips in it: laws, planted noise, cases by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark import judging
from assaymark.errors import InputError
from assaymark.judging import Contestant, NoiseFloor, season_table

JUDGES = ("auditor", "reader", "skeptic")
UNKNOWN = judging.noise_floor([])


def known(value, freedom=30):
    return NoiseFloor(value, freedom, freedom + 1, 1, "ok")


def graded(*totals, floor=UNKNOWN):
    """Contestants named by their place whose judges all agree and who have no timing: the total is the composite."""
    return [Contestant(f"c{k}", dict.fromkeys(JUDGES, total), None, floor) for k, total in enumerate(totals)]


points = st.floats(0, 100)
floors = st.just(UNKNOWN) | st.builds(known, st.sampled_from([0.0, 0.5, 2.0, 10.0]), st.integers(1, 20))
composites = st.dictionaries(st.sampled_from(JUDGES), points, max_size=3)
contestant = st.tuples(composites, st.none() | points, floors)
seasons = st.dictionaries(st.sampled_from("abcdefgh"), contestant, max_size=6).map(
    lambda found: [Contestant(name, *one) for name, one in found.items()]
)


@given(seasons, floors, st.randoms(use_true_random=False))
def test_a_row_is_made_of_the_scores_and_neither_order_nor_names_change_anything(contestants, judges, random):
    table = season_table(contestants, judges=judges)
    by_name = {row.contestant: row for row in table}
    assert set(by_name) == {one.name for one in contestants}
    some = [one for one in contestants if one.composites]
    quick = judging.efficiency(
        [judging.contested_band([*one.composites.values()]).median for one in some], [one.seconds for one in some]
    )
    for one, share in zip(some, quick, strict=True):
        row, scores = by_name[one.name], list(one.composites.values())
        assert (row.total, row.efficiency) == (judging.total_score(scores, share), share)
        assert row.agreement == judging.contested_band(scores)
        assert (row.agreement.low, row.agreement.high) == (min(scores), max(scores))
        assert row.standing.band == judging.band(row.total)
        assert row.standing.contested == (
            len({judging.band(judging.total_score([score], share)) for score in scores}) > 1
        )
        assert (row.state == "graded") == (not row.absent)
    other = [
        Contestant(one.name, dict(sorted(one.composites.items(), reverse=True)), one.seconds, one.floor)
        for one in contestants
    ]
    random.shuffle(other)
    assert season_table(other, judges=judges) == table
    renamed = season_table(
        [
            Contestant("z" + one.name, {"z" + j: c for j, c in one.composites.items()}, one.seconds, one.floor)
            for one in contestants
        ],
        judges=judges,
    )
    for a, b in zip(table, renamed, strict=True):
        assert "z" + a.contestant == b.contestant
        assert (a.total, a.first, a.last, a.standing, a.state) == (b.total, b.first, b.last, b.standing, b.state)


@given(seasons, floors)
def test_places_are_those_that_hold_against_every_pair(contestants, judges):
    table = season_table(contestants, judges=judges)
    ranked = [row for row in table if row.total is not None]
    noise = {one.name: one.floor for one in contestants}

    def apart(one, other):
        floor = judging.gap_floor(noise[one.contestant], noise[other.contestant], judges)
        return floor is not None and one.total - other.total > floor + 1e-9

    boundaries = [k for k in range(1, len(ranked)) if all(apart(a, b) for a in ranked[:k] for b in ranked[k:])]
    edges = [0, *boundaries, len(ranked)] if ranked else []
    expected = [(low + 1, high) for low, high in pairwise(edges) for _ in range(low, high)]
    assert [(row.first, row.last) for row in ranked] == expected
    assert all(high.total >= low.total for high, low in pairwise(ranked))


CALM, NOISY = known(0.1), known(10.0)


@pytest.mark.parametrize(("contestants", "judges", "places"), [
    # where nothing was repeated everybody shares one place
    (graded(90, 50, 10), CALM, [(1, 3)] * 3), (graded(90, 50, 10, floor=CALM), UNKNOWN, [(1, 3)] * 3),
    # a noisy contestant takes its neighbours with it
    ([*graded(80, 77, floor=CALM), Contestant("noisy", {"auditor": 74.0}, None, NOISY),
      Contestant("far", {"auditor": 30.0}, None, CALM)], CALM, [(1, 3)] * 3 + [(4, 4)]),
    # equal totals tie even without any noise
    (graded(60, 60, 50, floor=known(0.0)), known(0.0), [(1, 2), (1, 2), (3, 3)]),
])  # fmt: skip
def test_places(contestants, judges, places):
    assert [(row.first, row.last) for row in season_table(contestants, judges=judges)] == places


def test_a_floor_is_what_was_planted_and_what_always_comes_out_alike_gives_none():
    same = judging.noise_floor([[60, 60], [51, 51, 51]])
    assert (same.value, same.freedom, same.replicates, same.state) == (None, 3, 5, "identical repetitions")
    assert judging.gap_floor(same, same, same) is None
    assert judging.gap_floor(same, same, known(2.0)) == judging.gap_floor(known(0.0), known(0.0), known(2.0))
    assert judging.gap_floor(same, UNKNOWN, known(2.0)) is None
    assert [(row.first, row.last) for row in season_table(graded(90, 10, floor=same), judges=same)] == [(1, 2)] * 2
    assert judging.noise_floor([[60], [70]]) == UNKNOWN
    assert judging.gap_floor(UNKNOWN, known(1.0), known(1.0)) is None
    assert judging.gap_floor(known(0.0), known(0.0), known(0.0)) == 0.0
    rng = np.random.default_rng(1)
    groups = 60 + rng.normal(0, 5, (400, 1)) + rng.normal(0, 3, (400, 4))
    found = judging.noise_floor(groups.tolist())
    assert found.value == pytest.approx(3.0, abs=0.1)
    assert (found.freedom, found.replicates, found.groups) == (1200, 1600, 400)
    assert found.value == pytest.approx(math.sqrt(groups.var(axis=1, ddof=1).mean()))
    floor = judging.noise_floor(np.random.default_rng(8).normal(60, 1, (20, 3)).tolist())
    assert judging.tie_classes([70, 64, 63.5], [floor] * 3, floor) == [(1, 1), (2, 3), (2, 3)]


@pytest.mark.parametrize("replicates", [2, 3, 10])
def test_equal_contestants_are_ranked_apart_no_more_often_than_the_level_says(replicates):
    rng = np.random.default_rng(replicates)
    wrong = 0
    for _ in range(1000):
        a, b, j = (judging.noise_floor([rng.normal(60, sd, replicates).tolist()]) for sd in (2.0, 2.0, 1.0))
        totals = sorted(60 + rng.normal(0, 2.0, 2) + rng.normal(0, 1.0, 2), reverse=True)
        wrong += judging.tie_classes(totals, [a, b], j) == [(1, 1), (2, 2)]
    assert wrong < 70


def test_rows_that_lack_something_say_so():
    calm, none = known(0.1), Contestant("none", {})
    table = season_table(
        [Contestant("half", {"auditor": 70.0, "reader": 60.0}, 3.0, calm), none, *graded(50, floor=calm)], judges=calm
    )
    half, full, none = table
    assert (half.state, half.absent, half.agreement.median) == ("graded by part of the panel", ("skeptic",), 65.0)
    assert (half.efficiency, half.total) == (65.0, pytest.approx(65.0))
    assert (full.state, full.absent, full.efficiency, full.total) == ("graded", (), None, 50.0)
    assert (none.state, none.absent, none.total, none.first, none.standing) == ("not graded", JUDGES, None, None, None)
    # an agent that never gave a usable answer has neither efficiency nor a total
    silent = Contestant("silent", dict.fromkeys(JUDGES, 25.0), 0.01, calm, answered=False)
    table = season_table([silent, *graded(50, floor=calm)], judges=calm)
    other, row = table
    assert (row.contestant, row.state) == ("silent", "no usable answer")
    assert (row.total, row.efficiency, row.agreement, row.first) == (None, None, None, None)
    assert (other.total, other.absent) == (50.0, ())


def test_the_band_of_a_total_can_be_another_than_the_medians_and_a_plan_without_efficiency_shows_none():
    quick, slow = season_table([Contestant(name, {"auditor": 70.0}, s) for name, s in (("a", 600.0), ("b", 1.0))])
    assert (quick.total, slow.total) == (70.0, pytest.approx(63.7))
    standing = slow.standing
    assert (slow.agreement.band, standing.band, standing.state) == ("strong", "mixed", "single judge")
    plan = judging.load_scoring("v0.3")
    (row,) = season_table([Contestant("a", {"auditor": 70.0}, 2.0)], plan=plan)
    assert (row.efficiency, row.total) == (None, 70.0)
    with pytest.raises(InputError, match="for a single judge"):
        season_table([Contestant("a", {"auditor": 70.0, "reader": 60.0})], plan=plan)
    assert season_table([]) == ()


def refused(call):
    """Return the locations of the problems."""
    with pytest.raises(InputError) as caught:
        call()
    return [problem.where for problem in caught.value.problems]


def test_bad_input_is_told_at_once():
    bad = [Contestant("a", {"auditor": 101.0}), Contestant("a", {}), Contestant("b", {"reader": math.nan})]
    assert refused(lambda: season_table(bad)) == ["a", "a, auditor", "b, reader"]
    assert refused(lambda: judging.noise_floor([[1, math.inf], [math.nan]])) == ["groups[0][1]", "groups[1][0]"]
    fills = [[("A", 0)], [("B", math.nan), ("C", 1), ("D", math.inf)]]
    assert refused(lambda: judging.thrashing(fills, within=-1)) == ["day 0, A", "day 1, B", "day 1, D", "within"]
    for what, call in (
        (r"floors: one for each of 2 \(got 1\)", lambda: judging.tie_classes([2, 1], [UNKNOWN], UNKNOWN)),
        ("falling order", lambda: judging.tie_classes([1, 2], [UNKNOWN] * 2, UNKNOWN)),
        *(("needs a value in", lambda some=some: NoiseFloor(*some, 2, 1, "ok"))
          for some in ((1.0, 0), (-1.0, 3), (100.1, 3), (math.nan, 3))),
    ):  # fmt: skip
        with pytest.raises(InputError, match=what):
            call()


# Round trips

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
def test_trips_are_those_of_single_units_whatever_the_side_the_pieces_and_the_names(season, within):
    found, trades = whole = judging.thrashing(season, within=within)
    assert sorted((symbol, *rest) for symbol, _, *rest in found) == by_definition(season, within)
    assert all(0 <= closed - opened <= within for _, _, opened, closed, _ in found)
    assert len(found) <= trades
    assert sum(trip[4] for trip in found) <= sum(
        trip[4] for trip in judging.thrashing(season, 10)[0]
    )  # a longer window
    turned = judging.thrashing([[(symbol, -quantity) for symbol, quantity in day] for day in season], within=within)
    swap = {"buy": "sell", "sell": "buy"}
    assert [(symbol, swap[first], *rest) for symbol, first, *rest in found] == list(turned[0])
    pieces = [[piece for symbol, quantity in day for piece in ((symbol, quantity / 2),) * 2] for day in season]
    assert judging.thrashing(pieces, within=within) == whole  # an order in pieces is one trade
    for symbol in "AB":
        alone = judging.thrashing([[fill for fill in day if fill[0] == symbol] for day in season], within=within)
        assert alone[0] == tuple(trip for trip in found if trip[0] == symbol)


def test_trips_by_hand():
    for season, within, expected in (
        ((10, -10), 5, [("buy", 0, 1, 10)]), ((10, 0, -10), 1, []), ((10, 0, -10), 2, [("buy", 0, 2, 10)]),
        ((-10, 10), 5, [("sell", 0, 1, 10)]), (((10, -4),), 0, [("buy", 0, 0, 4)]), ((10, 5, 5), 5, []), ((), 5, []),
        ((10, -10, 10, -10), 5, [("buy", 0, 1, 10), ("buy", 2, 3, 10)]), ((10, 5, -12), 5, [("buy", 0, 2, 12)]),
        ((10, -4, -6), 5, [("buy", 0, 1, 4), ("buy", 0, 2, 6)]), ((10, 0, 0, 0, -10, 10), 3, [("sell", 4, 5, 10)]),
        ((5, -8, 3), 5, [("buy", 0, 1, 5), ("sell", 1, 2, 3)]),
        ((0.1, 0.2, -0.3, 0.3, -0.3), 5, [("buy", 0, 2, 0.3), ("buy", 3, 4, 0.3)]),
    ):  # fmt: skip
        days = [[("A", q) for q in (day if isinstance(day, tuple) else (day,)) if q] for day in season]
        found = [trip[1:] for trip in judging.thrashing(days, within=within)[0]]
        assert found == [(*trip[:3], pytest.approx(trip[3])) for trip in expected], season
