"""Round trips: cases by hand, a slow definition unit by unit, and laws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.judging import RoundTrip, thrashing
from assaymark.portfolio.broker import Fill


@dataclass(frozen=True)
class Traded:
    symbol: str
    quantity: float


def days(*quantities, symbol="A"):
    """Each day's trades of one name: a number, several, or 0 for none."""
    return [[Traded(symbol, q) for q in (day if isinstance(day, tuple) else (day,)) if q] for day in quantities]


def trips(found):
    return [(trip.first, trip.opened, trip.closed, trip.quantity) for trip in found.trips]


units = st.integers(-4, 4).filter(bool)
seasons = st.lists(st.lists(st.builds(Traded, st.sampled_from("AB"), units), max_size=3), max_size=8)
windows = st.integers(0, 4)


def by_definition(season, within):
    """Each unit alone: it takes back the latest open unit of the other side, or opens."""
    open_units = {symbol: [] for symbol in "AB"}
    found = {}
    for day, fills in enumerate(season):
        run = dict.fromkeys("AB", (0, 0))  # a run of one direction, and its sign
        for fill in fills:
            sign = 1 if fill.quantity > 0 else -1
            number, last = run[fill.symbol]
            number += sign != last
            run[fill.symbol] = (number, sign)
            lots = open_units[fill.symbol]
            for _ in range(abs(fill.quantity)):
                while lots and day - lots[0][0] > within:
                    lots.pop(0)
                if lots and lots[-1][1] == -sign:
                    opened, _ = lots.pop()
                    taken, earliest = found.get((day, fill.symbol, number), (0, day))
                    found[day, fill.symbol, number] = (taken + 1, min(earliest, opened))
                else:
                    lots.append((day, sign))
    return sorted((symbol, opened, day, float(taken)) for (day, symbol, _), (taken, opened) in found.items())


@given(seasons, windows)
def test_trips_are_those_of_single_units(season, within):
    found = thrashing(season, within=within)
    assert sorted((t.symbol, t.opened, t.closed, t.quantity) for t in found.trips) == by_definition(season, within)
    assert (found.days, found.within) == (len(season), within)
    assert all(0 <= trip.days <= within for trip in found.trips)
    assert sum(found.by_symbol.values()) == len(found.trips) <= found.trades


@pytest.mark.parametrize(
    ("season", "within", "expected"),
    [
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
    ],
)
def test_by_hand(season, within, expected):
    assert trips(thrashing(season, within=within)) == expected


@given(seasons, windows)
def test_a_longer_window_misses_nothing(season, within):
    one, other = (sum(t.quantity for t in thrashing(season, within=w).trips) for w in (within, 10))
    assert one <= other


@given(seasons, windows)
def test_the_other_way_round_has_the_same_trips(season, within):
    turned = [[Traded(fill.symbol, -fill.quantity) for fill in day] for day in season]
    one, other = thrashing(season, within=within), thrashing(turned, within=within)
    swap = {"buy": "sell", "sell": "buy"}
    assert [(t.symbol, swap[t.first], t.opened, t.closed, t.quantity) for t in one.trips] == [
        (t.symbol, t.first, t.opened, t.closed, t.quantity) for t in other.trips
    ]


@given(seasons, windows)
def test_an_order_in_pieces_is_one_trade(season, within):
    pieces = [[piece for fill in day for piece in (Traded(fill.symbol, fill.quantity / 2),) * 2] for day in season]
    assert thrashing(pieces, within=within) == thrashing(season, within=within)


@given(seasons, windows)
def test_names_do_not_meet(season, within):
    both = thrashing(season, within=within)
    for symbol in "AB":
        alone = thrashing([[fill for fill in day if fill.symbol == symbol] for day in season], within=within)
        assert alone.trips == tuple(trip for trip in both.trips if trip.symbol == symbol)


def test_fractions_leave_no_crumbs():
    found = thrashing(days(0.1, 0.2, -0.3, 0.3, -0.3), within=5)
    assert [(trip.first, trip.opened, trip.closed) for trip in found.trips] == [("buy", 0, 2), ("buy", 3, 4)]


def test_fills_of_the_broker_are_counted():
    fill = Fill(order=0, symbol="A", quantity=2.0, price=10.0, cost=0.1)
    found = thrashing([[fill], [Fill(order=0, symbol="A", quantity=-2.0, price=9.0, cost=0.1)]])
    assert found.trips == (RoundTrip("A", "buy", 0, 1, 2.0),)
    assert found.by_symbol == {"A": 1}


def test_bad_fills_are_told_at_once():
    with pytest.raises(InputError) as caught:
        thrashing([[Traded("A", 0)], [Traded("B", math.nan), Traded("C", 1), Traded("D", math.inf)]], within=-1)
    assert [problem.where for problem in caught.value.problems] == ["day 0, A", "day 1, B", "day 1, D", "within"]
