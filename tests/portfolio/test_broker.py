"""The paper broker: nothing is lost, no rule is broken, and every refusal has its reason."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError, NotMeasurableError
from assaymark.portfolio import (
    Bar, Account, Order, BrokerRules, StatedFill, StatedStep, Tolerance, orders_of, reconcile, settle_day,
)  # fmt: skip
from assaymark.records import Action

SIDES = ("buy", "sell", "short", "cover", "close", "target")
BARS = {
    "A": Bar(open=50.0, high=55.0, low=45.0, close=52.0), "B": Bar(open=20.0, high=21.0, low=19.0, close=19.5),
    "OLD": Bar(open=10.0, close=10.0, age=3), "NONE": Bar(open=None),
}  # fmt: skip
SYMBOLS = ("A", "B", "OLD", "NONE", "???")


def buy(symbol, quantity=None, weight=None):
    return Order(symbol=symbol, side="buy", quantity=quantity, weight=weight)


def sell(symbol, quantity=None, weight=None):
    return Order(symbol=symbol, side="sell", quantity=quantity, weight=weight)


def one_reason(order, book=None, rules=None, **more):
    day = settle_day(book or Account(1000.0, {"A": 4.0}), [order], BARS, rules or BrokerRules(), **more)
    assert not day.fills
    (rejection,) = day.rejections
    return rejection.reason, rejection.text


# --- laws ---------------------------------------------------------------------------------------------------------

amounts = st.one_of(
    st.none(), st.floats(0, 200), st.sampled_from([0.0, -1.0, math.nan, math.inf, 1e308, 5.0, True, "many", 10**400])
)
orders = st.lists(
    st.builds(
        Order, symbol=st.sampled_from(SYMBOLS), side=st.sampled_from([*SIDES, "hold", ""]), quantity=amounts,
        weight=st.one_of(st.none(), st.floats(-1.5, 1.5), st.just(math.nan)),
    ),
    max_size=8,
)  # fmt: skip
rules = st.builds(
    BrokerRules, fill=st.sampled_from(["next_open", "close"]), cost_bps=st.floats(0, 200), fractional=st.booleans(),
    lot=st.sampled_from([1.0, 10.0]), short=st.booleans(), max_weight=st.one_of(st.none(), st.floats(0.05, 1)),
    max_exposure=st.floats(0.2, 2), excess=st.sampled_from(["reject", "cut"]), max_age=st.sampled_from([0, 5]),
)  # fmt: skip
longs = st.builds(
    Account, st.floats(0, 1e5), st.dictionaries(st.sampled_from(["A", "B", "OLD"]), st.floats(0, 100), max_size=3)
)


@given(longs, orders, rules)
def test_money_and_orders_are_conserved_and_the_rules_hold_after_any_day(book, wishes, rule):
    day = settle_day(book, wishes, BARS, rule)
    scale = max(1.0, day.nav_before)
    assert day.nav == pytest.approx(day.nav_before - day.costs, abs=1e-9 * scale)
    assert day.book.cash == pytest.approx(book.cash + math.fsum(one.cash for one in day.fills), abs=1e-9 * scale)
    for symbol in BARS:
        moved = math.fsum(one.quantity for one in day.fills if one.symbol == symbol)
        after = day.book.positions.get(symbol, 0.0)
        assert after == pytest.approx(book.positions.get(symbol, 0.0) + moved, abs=1e-9)
    # No order is lost, and none is filled twice.
    answered = {one.order for one in day.fills} | {one.order for one in day.rejections}
    silent = [wishes[i] for i in range(len(wishes)) if i not in answered]
    assert all(one.side == "target" for one in silent)  # a target that is met already asks for nothing
    assert len({one.order for one in day.fills}) == len(day.fills)
    assert all(one.text.startswith(str(wishes[one.order])) for one in day.rejections)
    assert [one.order for one in day.rejections] == sorted(one.order for one in day.rejections)
    # Every unit asked for is filled or rejected.
    for number, order in enumerate(wishes):
        rejected = [one.quantity or 0.0 for one in day.rejections if one.order == number]
        filled = [one.quantity for one in day.fills if one.order == number]
        if order.side in ("buy", "sell") and filled and order.weight is None:
            assert abs(math.fsum([*filled, *rejected])) == pytest.approx(abs(order.quantity))
    # The rules hold.
    assert day.book.cash >= -1e-6 * scale
    assert rule.short or all(units >= 0 for units in day.book.positions.values())
    for one in day.fills:
        assert one.price == BARS[one.symbol].at(rule.fill)
        assert BARS[one.symbol].age <= rule.max_age
        assert one.cost == pytest.approx(abs(one.quantity) * one.price * rule.cost_bps / 1e4)
    assert repr(settle_day(book, list(wishes), dict(BARS), rule)) == repr(day), "a day settled twice is the same day"


@given(longs, orders, rules)
def test_sales_come_before_purchases_and_lots_are_kept(book, wishes, rule):
    plain = [one for one in wishes if one.side in ("buy", "sell")]
    signs = [one.quantity > 0 for one in settle_day(book, plain, BARS, rule).fills]
    assert signs == sorted(signs)
    whole = replace(rule, fractional=False)
    day = settle_day(book, wishes, BARS, whole)
    for one in day.fills:
        lots = one.quantity / whole.lot
        closed = day.book.positions.get(one.symbol, 0.0) == 0
        assert closed or wishes[one.order].side in ("close", "target", "sell") or abs(lots - round(lots)) < 1e-6


@given(st.floats(1, 1e5), st.floats(0, 1.5), st.floats(0, 100), st.floats(0.05, 1))
def test_a_cut_order_uses_all_that_is_allowed(cash, weight, cost, most):
    rule = BrokerRules(cost_bps=cost, max_weight=most, excess="cut")
    day = settle_day(Account(cash), [buy("A", weight=weight)] if weight else [], BARS, rule)
    value = day.book.positions.get("A", 0.0) * 50.0
    assert value <= most * day.nav * (1 + 1e-9)
    if weight > most:
        assert value == pytest.approx(min(most * day.nav, cash / (1 + cost / 1e4)), rel=1e-9)


# --- one by one ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "rule", "reason", "said"),
    [
        (buy("A", 100.0), BrokerRules(), "beyond-cash", "buy 100 A: costs 5,000.00 and cash is 1,000.00"),
        (buy("A", 20.0), BrokerRules(cost_bps=1), "beyond-cash", "costs 1,000.10"),
        (sell("A", 5.0), BrokerRules(), "beyond-holding", "4 units are held"),
        (sell("B", 5.0), BrokerRules(), "not-held", "nothing of it is held"),
        (Order(symbol="A", side="close"), BrokerRules(max_age=0), None, ""),
        (Order(symbol="B", side="close"), BrokerRules(), "not-held", "close B: nothing of it is held"),
        (Order(symbol="A", side="short", quantity=1.0), BrokerRules(), "short-forbidden", "not allowed"),
        (Order(symbol="A", side="cover", quantity=1.0), BrokerRules(short=True), "not-held", "nothing of it is short"),
        (Order(symbol="B", side="target", weight=-0.1), BrokerRules(), "short-forbidden", "0 units are held"),
        (buy("C", 1.0), BrokerRules(), "unknown-symbol", "not in the universe"),
        (buy("NONE", 1.0), BrokerRules(), "no-price", "has no price today"),
        (buy("OLD", 1.0), BrokerRules(max_age=2), "stale-price", "3 days old (allowed 2)"),
        (buy("A", 0.5), BrokerRules(fractional=False), "fraction", "only multiples of 1 units"),
        (buy("A", 150.0), BrokerRules(fractional=False, lot=100), "fraction", "multiples of 100"),
        (buy("A", weight=0.01), BrokerRules(fractional=False), "fraction", "less than one lot of 1 units"),
        (buy("A", 0.0), BrokerRules(), "bad-quantity", "must be above 0 (got 0)"),
        (buy("A", -3.0), BrokerRules(), "bad-quantity", "must be above 0 (got -3)"),
        (buy("A", math.nan), BrokerRules(), "bad-quantity", "must be a number up to 1e+15 (got nan)"),
        (buy("A", "ten"), BrokerRules(), "bad-quantity", "got 'ten'"),
        (buy("A", 10**5000), BrokerRules(), "bad-quantity", "(got a number of more than 15 digits)"),
        (buy("A", True), BrokerRules(), "bad-quantity", "got True"),
        (buy("A"), BrokerRules(), "bad-order", "either a quantity or a weight"),
        (buy("A", 1.0, 0.1), BrokerRules(), "bad-order", "either a quantity or a weight"),
        (Order(symbol="A", side="target", quantity=2.0), BrokerRules(), "bad-order", "needs a weight"),
        (Order(symbol="A", side="hodl", quantity=2.0), BrokerRules(), "bad-order", "side must be one of buy, sell"),
        (Order(symbol=["A"], side="buy", quantity=2.0), BrokerRules(), "unknown-symbol", ""),
        (buy("A", 10.0), BrokerRules(max_weight=0.5), "beyond-weight", "allowed is 50.00% of NAV in one position"),
        (buy("A", 10.0), BrokerRules(max_exposure=0.5), "beyond-exposure", "0.50 times NAV"),
        (buy("B", 1e-13), BrokerRules(max_exposure=0.1), "beyond-exposure", "0.10 times NAV"),
    ],
)  # fmt: skip
def test_each_refusal_has_its_reason(order, rule, reason, said):
    if reason is None:
        assert settle_day(Account(1000.0, {"A": 4.0}), [order], BARS, rule).book == Account(1200.0, {})
        return
    found, text = one_reason(order, rules=rule)
    assert found == reason
    assert said in text
    # A symbol of the universe without a bar has no price.
    assert one_reason(buy("Z", 1.0), universe=["A", "Z"])[0] == "no-price"
    assert one_reason(buy("B", 1.0), universe=["A", "Z"])[0] == "unknown-symbol"


def test_a_rotation_pays_for_itself_whatever_the_order_of_the_list():
    book, wishes = Account(0.0, {"A": 10.0}), [buy("B", 25.0), sell("A", 10.0)]
    for asked in (wishes, wishes[::-1]):
        day = settle_day(book, asked, BARS, BrokerRules())
        assert day.book == Account(0.0, {"B": 25.0})
        assert not day.rejections


def test_an_order_is_cut_and_the_rest_is_kept():
    day = settle_day(Account(100.0), [buy("A", 3.0)], BARS, BrokerRules(excess="cut"))
    assert [one.quantity for one in day.fills] == [2.0]
    (rest,) = day.rejections
    assert (rest.reason, rest.quantity) == ("beyond-cash", 1.0)
    assert rest.text.endswith("2 units were filled")
    cut = BrokerRules(excess="cut", fractional=False, lot=2, cost_bps=1)
    assert [one.quantity for one in settle_day(Account(100.0), [buy("B", 8.0)], BARS, cut).fills] == [4.0]
    odd = settle_day(Account(0.0, {"A": 1.5}), [sell("A", 9.0)], BARS, BrokerRules(excess="cut", fractional=False))
    assert odd.book == Account(75.0, {})
    used = settle_day(Account(30.0), [buy("A", 9.0), buy("A", 9.0)], BARS, BrokerRules(excess="cut", cost_bps=1))
    assert ([one.order for one in used.fills], [one.order for one in used.rejections]) == ([0], [0, 1])


def test_a_target_moves_to_the_weight_and_then_asks_for_nothing():
    target = Order(symbol="A", side="target", weight=0.5)
    day = settle_day(Account(1000.0), [target], BARS, BrokerRules())
    assert day.book == Account(500.0, {"A": 10.0})
    again = settle_day(day.book, [target], BARS, BrokerRules())
    assert (again.fills, again.rejections) == ((), ())
    none = settle_day(day.book, [Order("A", "target", weight=0.0)], BARS, BrokerRules(fractional=False, lot=100))
    assert none.book == Account(1000.0, {})
    at_close = settle_day(Account(104.0), [buy("A", 2.0)], BARS, BrokerRules(fill="close"))
    assert (at_close.book.cash, at_close.fills[0].price) == (0.0, 52.0)


def test_short_positions_where_they_are_allowed():
    short = Order(symbol="A", side="short", quantity=10.0)
    day = settle_day(Account(1000.0), [short], BARS, BrokerRules(short=True))
    assert day.book == Account(1500.0, {"A": -10.0})
    assert day.nav == 1000.0
    more = settle_day(day.book, [Order(symbol="A", side="short", quantity=11.0)], BARS, BrokerRules(short=True))
    assert [one.reason for one in more.rejections] == ["beyond-exposure"]
    back = settle_day(day.book, [Order("A", "cover", 12.0)], BARS, BrokerRules(short=True, excess="cut"))
    assert back.book == Account(1000.0, {})
    assert back.rejections[0].quantity == 2.0


def test_a_weight_of_nothing_left_is_no_amount():
    broke = Account(100.0, {"A": -10.0, "B": 5.0})
    day = settle_day(broke, [buy("B", weight=0.5), Order(symbol="B", side="target", weight=0.0)], BARS, BrokerRules())
    assert [(one.order, one.reason) for one in day.rejections] == [(0, "bad-quantity")]
    assert "a NAV of -300.00 is no amount" in day.rejections[0].text
    assert day.book.positions == {"A": -10.0}


def test_a_held_symbol_is_valued_at_its_last_price_and_what_makes_no_sense_is_refused_with_every_problem():
    day = settle_day(Account(10.0, {"OLD": 2.0}), [], BARS, BrokerRules())
    assert (day.nav, day.stale) == (30.0, ("OLD",))
    with pytest.raises(InputError, match="3 problems") as caught:
        settle_day(Account(math.nan, {"NONE": 1.0, "A": math.inf}), [], BARS, BrokerRules())
    assert "NONE: is held and has no price; give its last one with its age" in str(caught.value)
    with pytest.raises(InputError, match="7 problems"):
        BrokerRules(fill="noon", cost_bps=math.nan, lot=0, max_weight=0, max_exposure=0, excess="?", max_age=-1)


def test_actions_become_orders():
    actions = [
        Action(instrument="A", kind="buy", quantity=2.0), Action(instrument="A", kind="hold"),
        Action(instrument="B", kind="target_weight", weight=0.3), Action(instrument="", kind="no_trade"),
    ]  # fmt: skip
    assert orders_of(actions) == (buy("A", 2.0), Order(symbol="B", side="target", weight=0.3))


@given(st.floats(100, 1e5), orders, rules)
def test_limits_hold_on_a_book_that_begins_in_cash(cash, wishes, rule):
    """Without costs NAV stands still, so no later order can push an earlier position over a limit."""
    free = replace(rule, cost_bps=0.0)
    day = settle_day(Account(cash), wishes, BARS, free)
    values = [abs(units) * BARS[symbol].at(free.fill) for symbol, units in day.book.positions.items()]
    assert math.fsum(values) <= free.max_exposure * day.nav * (1 + 1e-8)
    assert max(values, default=0.0) <= (free.max_weight or 10.0) * day.nav * (1 + 1e-8)


def test_a_corporate_action_changes_units_and_cash_and_a_short_position_pays():
    long = Account(10.0, {"A": 6.0, "B": 1.0}).acted("A", split=1.5, dividend=2.0)
    assert (long.cash, dict(long.positions)) == (28.0, {"A": 9.0, "B": 1.0})
    assert Account(10.0, {"A": -6.0}).acted("A", dividend=2.0).cash == -2.0
    assert Account(10.0, {"A": 10.0}).acted("A", split=0.1) == Account(10.0, {"A": 1.0})
    assert Account(10.0, {"B": 1.0}).acted("A", split=10.0, dividend=2.0) == Account(10.0, {"B": 1.0})


# Records of trading held against themselves: honest ones reconcile, planted errors are found and counted once

PRICED = {symbol: BARS[symbol] for symbol in "AB"}
START = Account(1000.0, {"B": 5.0})


def step(name="day", fills=(), book=START, bars=PRICED, nav=None):
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
        day = settle_day(book, orders, PRICED, BrokerRules(cost_bps=cost, excess="cut"))
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
    wrong = Account(1000.0 + sign * amount, {"B": 5.0})
    found = reconcile(START, [step("1", book=wrong), step("2", book=wrong)])
    assert kinds(found) == [("cash", "", "")]
    assert (found.n, found.passed["cash"]) == (4, 1)
    assert found.data_reliability == pytest.approx(75.0)


BOTH = {"A": 2.0, "B": 5.0}
PLANTED = [
    ([bought("A", 2.0)], Account(900.0, BOTH), [], 3),
    ([bought("A", 2.0, 50.0, 1.0)], Account(899.0, BOTH), [], 3),
    # a stated price that is not the rule's: the cash that follows from it is right, the price is not
    ([bought("A", 2.0, 52.0)], Account(896.0, BOTH), [("fill-price", "A", "at the close")], 3),
    ([bought("A", 2.0, 47.0)], Account(906.0, BOTH), [("fill-price", "A", "inside the bar")], 3),
    ([bought("A", 2.0, 44.0)], Account(912.0, BOTH), [("fill-price", "A", "outside the bar")], 3),
    # without a stated price, the change of cash is held against the bars
    ([bought("A", 2.0)], Account(896.0, BOTH), [("cash", "", "at the close")], 3),
    ([bought("A", 2.0)], Account(906.0, BOTH), [("cash", "", "inside the bar")], 3),
    ([bought("A", 2.0)], Account(880.0, BOTH), [("cash", "", "outside the bar")], 3),
    # a fill that never arrived, and cash that never moved
    ([bought("A", 2.0)], START, [("fill-quantity", "A", "")], 3),
    # a position that moved without a fill, paid for at the open
    ([], Account(900.0, BOTH), [("position", "A", "")], 3),
    ([bought("B", -6.0)], Account(1120.0, {"B": -1.0}), [], 2),
    ([], Account(1120.0, {"B": -1.0}), [("position", "B", ""), ("negative-position", "B", "")], 2),
]


@pytest.mark.parametrize(("fills", "book", "expected", "n"), PLANTED)
def test_planted_mismatches(fills, book, expected, n):
    found = reconcile(START, [step(fills=fills, book=book)])
    assert kinds(found) == expected
    assert found.n == n
    failed = len({symbol for _, symbol, _ in expected})
    assert found.data_reliability == pytest.approx(100 * (n - failed) / n)


def test_what_cannot_be_checked_is_named_and_not_counted():
    found = reconcile(START, [step(fills=[bought("C", 1.0, 3.0)], book=Account(997.0, {"B": 5.0, "C": 1.0}))])
    assert [(one.kind, one.symbol) for one in found.unchecked] == [("fill", "C")]
    assert found.navs == (None,)
    loose = reconcile(START, [step(fills=[bought("C", 1.0)], book=Account(997.0, {"B": 5.0, "C": 1.0}), nav=5.0)])
    assert [(one.kind, one.symbol) for one in loose.unchecked] == [("cash", "C"), ("nav", "")]
    assert (loose.checks["cash"], loose.checks["fill"]) == (0, 1)


def test_fills_of_a_step_without_a_book_are_carried_at_their_own_price():
    later = {"A": Bar(open=99.0), "B": Bar(open=20.0)}
    steps = [
        StatedStep(name="1", fills=(bought("A", 2.0),), book=None, bars=PRICED),
        step("2", [bought("A", 1.0, 99.0)], Account(801.0, {"A": 3.0, "B": 5.0}), later),
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
    rounded = step(fills=[bought("A", 0.18252)], book=Account(990.874, {"A": 0.1825, "B": 5.0}))
    assert kinds(reconcile(START, [rounded], tolerance=Tolerance(units=5e-5))) == []
    assert kinds(reconcile(START, [rounded]))[0][0] == "fill-quantity"
    with pytest.raises(InputError, match=r"tolerance\.cash"):
        Tolerance(cash=math.nan)


def test_a_record_without_steps_has_no_reliability_and_a_bar_without_high_and_low_places_nothing():
    with pytest.raises(NotMeasurableError, match="data reliability is undefined"):
        _ = reconcile(START, []).data_reliability
    bars = {"A": Bar(open=50.0), "B": Bar(open=20.0)}
    found = reconcile(START, [step(fills=[bought("A", 2.0)], book=Account(880.0, BOTH), bars=bars)])
    assert kinds(found) == [("cash", "", "no bar")]
