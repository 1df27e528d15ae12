"""The sandbox against the backtest of `assaymark.portfolio`, and by its laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from assaymark.benchmark.episode import Position, equal_start, hold, trade, turnover_between
from assaymark.errors import InputError
from assaymark.portfolio import backtest, max_drawdown

ASSETS = 4


@st.composite
def books(draw):
    """Target weights for some decisions, and the days from each to the next."""
    count = draw(st.integers(1, 4))
    raw = draw(hnp.arrays(float, (count, ASSETS), elements=st.floats(0.0, 1.0)))
    share = draw(hnp.arrays(float, count, elements=st.floats(0.0, 1.0)))
    total = raw.sum(axis=1, keepdims=True)
    targets = np.where(total > 0, raw / np.where(total > 0, total, 1.0), 0.0) * share[:, None]
    lengths = draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    returns = draw(hnp.arrays(float, (sum(lengths), ASSETS), elements=st.floats(-0.9, 1.0)))
    return targets, lengths, returns


def run(targets, lengths, returns, *, cost_bps=15.0, convention="paper"):
    """NAV by the day, the first close included, and the turnovers."""
    position, path, turnovers, first = equal_start(np.arange(ASSETS), ASSETS), [1.0], [], 0
    for at, (target, length) in enumerate(zip(targets, lengths, strict=True)):
        done = trade(position, target, cost_bps=cost_bps)
        turnovers.append(done.turnover)
        days = returns[first : first + length]
        first += length
        position, nav = hold(done.after, days, to_decision=at + 1 < len(lengths), convention=convention)
        path += nav.tolist()
    return np.array(path), np.array(turnovers), position


@given(books(), st.floats(0.0, 100.0))
def test_it_is_the_backtest_that_begins_in_equal_weights(book, cost):
    targets, lengths, returns = book
    nav, turnovers, _ = run(targets, lengths, returns, cost_bps=cost)
    rows = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    # The backtest begins in money: its first trade to equal weights is free here, and the day before.
    wanted = np.full((returns.shape[0] + 2, ASSETS), np.nan)
    wanted[0] = 1.0 / ASSETS
    wanted[rows + 1] = targets
    padded = np.vstack([np.zeros((2, ASSETS)), returns])
    other = backtest(wanted, padded, cost_bps=cost)
    paid = 1.0 - cost * 1e-4
    assert other.turnover[rows + 1] == pytest.approx(turnovers, abs=1e-9)
    # NAV here is before the trade of its close, there after it.
    before = other.nav / paid / np.where(np.arange(wanted.shape[0]) == 0, 1.0, 1.0 - other.cost)
    assert before[1:] == pytest.approx(nav, rel=1e-9)


@given(books())
def test_the_reference_convention_loses_the_return_of_each_rebalance_day(book):
    targets, lengths, returns = book
    blanked = returns.copy()
    blanked[np.cumsum(lengths)[:-1] - 1] = 0.0
    nav, turnovers, _ = run(targets, lengths, returns, convention="reference")
    same, others, _ = run(targets, lengths, blanked)
    assert nav == pytest.approx(same)
    assert turnovers == pytest.approx(others)


@given(books())
def test_permuting_the_assets_changes_no_nav(book):
    targets, lengths, returns = book
    order = np.array([2, 0, 3, 1])
    assert run(targets[:, order], lengths, returns[:, order])[0] == pytest.approx(run(targets, lengths, returns)[0])


@given(books())
def test_drawdown_is_that_of_the_path(book):
    nav, _, position = run(*book)
    assert -1.0 <= position.drawdown <= 0.0
    assert position.nav == pytest.approx(nav[-1])
    assert position.peak == pytest.approx(nav.max())
    assert position.drawdown >= max_drawdown(nav).depth - 1e-12


@given(books())
def test_holding_costs_nothing_and_trading_to_what_is_held_costs_nothing(book):
    _, _, position = run(*book)
    assert trade(position, None).after is position
    again = trade(position, position.weights)
    assert (again.turnover, again.cost, again.after.nav) == (0.0, 0.0, position.nav)


def test_a_constant_portfolio_that_equals_the_start_never_trades():
    returns = np.full((6, ASSETS), 0.01)
    nav, turnovers, _ = run(np.full((3, ASSETS), 0.25), [2, 2, 2], returns)
    assert turnovers == pytest.approx(np.zeros(3), abs=1e-12)
    assert nav == pytest.approx(1.01 ** np.arange(7))


def test_what_was_lost_wholly_does_not_come_back():
    start = trade(equal_start(np.arange(2), 2), np.array([1.0, 0.0]), cost_bps=0.0).after
    position, nav = hold(start, np.array([[-1.0, 0.0], [5.0, 0.0]]), to_decision=False)
    assert nav.tolist() == [0.0, 0.0]
    assert position.drawdown == -1.0
    assert trade(position, np.array([0.0, 1.0])).turnover == 0.0


def test_money_earns_nothing_and_is_kept():
    start = trade(equal_start(np.arange(2), 2), np.array([0.5, 0.0]), cost_bps=0.0).after
    position, nav = hold(start, np.array([[1.0, 9.0]]), to_decision=False)
    assert nav.tolist() == [1.5]
    assert position.weights.round(6).tolist() == [0.666667, 0.0]


def test_no_day_leaves_a_portfolio_as_it_was():
    start = equal_start(np.arange(2), 2)
    position, nav = hold(start, np.empty((0, 2)), to_decision=False)
    assert position is start
    assert nav.size == 0


@pytest.mark.parametrize(
    ("target", "what"),
    [
        (np.array([0.6, 0.6]), "sum to at most 1"),
        (np.array([-0.1, 0.6]), r"at least 0 \(got -0.1\)"),
        (np.array([np.nan, 0.6]), "must be finite"),
        (np.array([1.0]), r"shape \(2,\) \(got \(1,\)\)"),
    ],
)
def test_what_cannot_be_held_is_refused(target, what):
    with pytest.raises(InputError, match=what):
        trade(Position(1.0, np.array([0.5, 0.5]), 1.0), target)


def test_a_target_in_six_decimals_is_brought_to_1():
    done = trade(Position(1.0, np.array([1.0, 0.0, 0.0]), 1.0), np.array([0.333334] * 3), cost_bps=0)
    assert done.after.weights.tolist() == pytest.approx([1 / 3] * 3, abs=1e-12)


def test_turnover_is_two_sided():
    assert turnover_between([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]) == 1.0
