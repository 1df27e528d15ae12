"""Records of trading held against themselves: honest ones reconcile, planted errors are found and counted once."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError, NotMeasurableError
from assaymark.portfolio.broker import Bar, Book, Order, Rules, StatedFill, StatedStep, Tolerance, reconcile, settle_day

BARS = {"A": Bar(open=50.0, high=55.0, low=45.0, close=52.0), "B": Bar(open=20.0, high=21.0, low=19.0, close=19.5)}
START = Book(1000.0, {"B": 5.0})


def step(name="day", fills=(), book=START, bars=BARS, nav=None):
    return StatedStep(name=name, fills=tuple(fills), book=book, bars=bars, nav=nav)


def bought(symbol, quantity, price=None, cost=0.0):
    return StatedFill(symbol=symbol, quantity=quantity, price=price, cost=cost)


def kinds(found):
    return [(one.kind, one.symbol, one.where) for one in found.mismatches]


wishes = st.lists(
    st.builds(
        Order, symbol=st.sampled_from(["A", "B"]), side=st.sampled_from(["buy", "sell"]), quantity=st.floats(0.1, 20)
    ),
    max_size=4,
)


@given(st.lists(wishes, min_size=1, max_size=5), st.sampled_from([0.0, 15.0]), st.booleans())
def test_what_the_broker_settles_reconciles(days, cost, priced):
    book, steps = START, []
    for number, orders in enumerate(days):
        day = settle_day(book, orders, BARS, Rules(cost_bps=cost, excess="cut"))
        fills = [bought(f.symbol, f.quantity, f.price if priced else None) for f in day.fills]
        steps.append(step(f"day {number}", fills, day.book, nav=day.nav))
        book = day.book
    found = reconcile(START, steps, cost_bps=cost)
    assert found.mismatches == ()
    assert found.unchecked == ()
    assert found.data_reliability == 100.0
    assert found.checks["cash"] == found.checks["nav"] == len(days)
    assert found.navs[-1] == pytest.approx(book.nav({"A": 50.0, "B": 20.0}))


@given(st.floats(0.02, 500), st.sampled_from([-1, 1]))
def test_planted_cash_is_found_once(amount, sign):
    wrong = Book(1000.0 + sign * amount, {"B": 5.0})
    found = reconcile(START, [step("1", book=wrong), step("2", book=wrong)])
    assert kinds(found) == [("cash", "", "")]
    assert (found.n, found.passed["cash"]) == (4, 1)
    assert found.data_reliability == pytest.approx(75.0)


@pytest.mark.parametrize(
    ("fills", "book", "expected", "n"),
    [
        ([bought("A", 2.0)], Book(900.0, {"A": 2.0, "B": 5.0}), [], 3),
        ([bought("A", 2.0, 50.0, 1.0)], Book(899.0, {"A": 2.0, "B": 5.0}), [], 3),
        # a stated price that is not the rule's: the cash that follows from it is right, the price is not
        ([bought("A", 2.0, 52.0)], Book(896.0, {"A": 2.0, "B": 5.0}), [("fill-price", "A", "at the close")], 3),
        ([bought("A", 2.0, 47.0)], Book(906.0, {"A": 2.0, "B": 5.0}), [("fill-price", "A", "inside the bar")], 3),
        ([bought("A", 2.0, 44.0)], Book(912.0, {"A": 2.0, "B": 5.0}), [("fill-price", "A", "outside the bar")], 3),
        # without a stated price, the change of cash is held against the bars
        ([bought("A", 2.0)], Book(896.0, {"A": 2.0, "B": 5.0}), [("cash", "", "at the close")], 3),
        ([bought("A", 2.0)], Book(906.0, {"A": 2.0, "B": 5.0}), [("cash", "", "inside the bar")], 3),
        ([bought("A", 2.0)], Book(880.0, {"A": 2.0, "B": 5.0}), [("cash", "", "outside the bar")], 3),
        # a fill that never arrived, and cash that never moved
        ([bought("A", 2.0)], START, [("fill-quantity", "A", "")], 3),
        # a position that moved without a fill, paid for at the open
        ([], Book(900.0, {"A": 2.0, "B": 5.0}), [("position", "A", "")], 3),
        ([bought("B", -6.0)], Book(1120.0, {"B": -1.0}), [], 2),
        ([], Book(1120.0, {"B": -1.0}), [("position", "B", ""), ("negative-position", "B", "")], 2),
    ],
)
def test_planted_mismatches(fills, book, expected, n):
    found = reconcile(START, [step(fills=fills, book=book)])
    assert kinds(found) == expected
    assert found.n == n
    failed = len({symbol for _, symbol, _ in expected})
    assert found.data_reliability == pytest.approx(100 * (n - failed) / n)


def test_what_cannot_be_checked_is_named_and_not_counted():
    found = reconcile(START, [step(fills=[bought("C", 1.0, 3.0)], book=Book(997.0, {"B": 5.0, "C": 1.0}))])
    assert [(one.kind, one.symbol) for one in found.unchecked] == [("fill", "C")]
    assert found.navs == (None,)
    loose = reconcile(START, [step(fills=[bought("C", 1.0)], book=Book(997.0, {"B": 5.0, "C": 1.0}), nav=5.0)])
    assert [(one.kind, one.symbol) for one in loose.unchecked] == [("cash", "C"), ("nav", "")]
    assert (loose.checks["cash"], loose.checks["fill"]) == (0, 1)


def test_fills_of_a_step_without_a_book_are_carried_at_their_own_price():
    later = {"A": Bar(open=99.0), "B": Bar(open=20.0)}
    steps = [
        StatedStep(name="1", fills=(bought("A", 2.0),), book=None, bars=BARS),
        step("2", [bought("A", 1.0, 99.0)], Book(801.0, {"A": 3.0, "B": 5.0}), later),
    ]
    found = reconcile(START, steps)
    assert found.mismatches == ()
    assert [(one.step, one.kind) for one in found.unchecked] == [("1", "cash"), ("1", "position")]
    assert found.navs == (None, 801 + 297 + 100)


def test_a_stated_nav_is_checked_beside_the_others():
    found = reconcile(START, [step(nav=1100.0), step(nav=1200.0)])
    assert kinds(found) == [("nav", "", "")]
    assert (found.checks["nav"], found.passed["nav"], found.data_reliability) == (2, 1, 100.0)
    assert str(found.mismatches[0]) == "day: nav: stated 1200, recomputed 1100"


def test_printed_precision_is_no_mismatch():
    rounded = step(fills=[bought("A", 0.18252)], book=Book(990.874, {"A": 0.1825, "B": 5.0}))
    assert kinds(reconcile(START, [rounded], tolerance=Tolerance(units=5e-5))) == []
    assert kinds(reconcile(START, [rounded]))[0][0] == "fill-quantity"
    with pytest.raises(InputError, match=r"tolerance\.cash"):
        Tolerance(cash=math.nan)


def test_a_record_without_steps_has_no_reliability():
    with pytest.raises(NotMeasurableError, match="data reliability is undefined"):
        _ = reconcile(START, []).data_reliability


def test_a_bar_without_high_and_low_places_nothing():
    bars = {"A": Bar(open=50.0), "B": Bar(open=20.0)}
    found = reconcile(START, [step(fills=[bought("A", 2.0)], book=Book(880.0, {"A": 2.0, "B": 5.0}), bars=bars)])
    assert kinds(found) == [("cash", "", "no bar")]
