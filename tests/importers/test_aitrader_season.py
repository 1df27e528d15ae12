"""One track of an AI-Trader log as a season: books day by day, baselines, fills and checks."""

from __future__ import annotations

import math

import made_aitrader as made
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import UnknownNameError
from assaymark.importers import audit_aitrader
from assaymark.importers.aitrader import season_aitrader
from assaymark.portfolio.broker import RELIABILITY

TWO_DAYS = (
    made.HEADER
    + """\
AAA,2025-11-02,10,12,9,11,1
AAA,2025-11-03,11,12,9,12,1
AAA,2025-11-04,12,,,,
BBB,2025-11-02,50,52,49,51,1
BBB,2025-11-04,60,,,,
"""
)


def step(day: str, model: str = "one", **after: float):
    return made.crypto(step=day, model=model, actions=[], positions_after=after)


def two_days(*lines: dict[str, object]):
    return season_aitrader(made.files(*lines, crypto=TWO_DAYS), "crypto")


def test_a_book_without_a_price_on_the_day_is_valued_at_the_last_one_and_named():
    found = two_days(step("2025-11-02", CASH=0.0, BBB=1000.0), step("2025-11-03", CASH=0.0, BBB=1000.0))
    assert [(one.day, one.nav, one.stale) for one in found.books] == [
        ("2025-11-02", 50_000.0, ()),
        ("2025-11-03", 50_000.0, ("BBB",)),
    ]


def test_a_day_without_a_step_keeps_the_book_and_a_day_before_the_first_has_none():
    lines = [step("2025-11-02", CASH=50_000.0), step("2025-11-04", CASH=50_000.0)]
    late = [step("2025-11-03", "two", CASH=39_000.0, AAA=1000.0)]
    found = two_days(*lines, *late)
    assert [(one.agent, one.day, one.nav, one.state) for one in found.books] == [
        ("one", "2025-11-02", 50_000.0, "ok"),
        ("one", "2025-11-03", 50_000.0, "ok"),
        ("one", "2025-11-04", 50_000.0, "ok"),
        ("two", "2025-11-03", 50_000.0, "ok"),
        ("two", "2025-11-04", 51_000.0, "ok"),
    ]


def test_a_symbol_without_any_price_yet_leaves_no_value():
    late = TWO_DAYS.replace("BBB,2025-11-02,50,52,49,51,1\n", "")
    lines = [step("2025-11-02", CASH=0.0, BBB=1.0), step("2025-11-04", CASH=0.0, BBB=1.0)]
    found = season_aitrader(made.files(*lines, crypto=late), "crypto")
    assert [(one.day, one.nav) for one in found.books] == [("2025-11-04", 60.0)]
    assert next(one for one in found.baselines if one.agent == "equal weight").positions == {"AAA": 5000.0}


@given(st.floats(1, 1e6), st.floats(1, 1e6))
def test_equal_weight_earns_the_mean_return_of_its_symbols(first, second):
    lines = [step("2025-11-02", CASH=50_000.0), step("2025-11-04", CASH=50_000.0)]
    prices = TWO_DAYS.replace("AAA,2025-11-04,12", f"AAA,2025-11-04,{first!r}")
    prices = prices.replace("BBB,2025-11-04,60", f"BBB,2025-11-04,{second!r}")
    found = season_aitrader(made.files(*lines, crypto=prices), "crypto")
    ends = {one.agent: one.nav for one in found.baselines if one.day == "2025-11-04"}
    assert ends["equal weight"] == pytest.approx(50_000 * (first / 10 + second / 50) / 2, rel=1e-12)
    assert ends["cash"] == 50_000


def test_a_fill_has_its_stated_price_or_the_open():
    lines = [
        made.line(
            actions=[made.action("buy", "600036.SH", 100, price=40.2), made.action("sell", "601318.SH", 100)],
            positions_after={"600036.SH": 100, "601318.SH": -100, "CASH": 101_480.0},
        )
    ]
    found = season_aitrader(made.files(*lines), "cn-hourly")
    assert [(one.number, one.symbol, one.quantity, one.price) for one in found.fills] == [
        (1, "600036.SH", 100.0, 40.2),
        (2, "601318.SH", -100.0, 55.0),
    ]


def test_lines_that_an_import_refuses_are_passed_over():
    good = made.honest()
    found = season_aitrader(made.files(*good, made.line("2030-01-01 10:30:00")), "cn-hourly")
    assert found == season_aitrader(made.files(*good), "cn-hourly")


def test_a_track_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(UnknownNameError, match=r"unknown track 'us'\. Known: cn-hourly, crypto"):
        season_aitrader(made.files(*made.honest(), made.crypto()), "us")


@pytest.mark.shared
def test_the_last_books_and_all_checks_are_those_of_the_audit(shared):
    files = {path.name: path.read_bytes() for path in (shared / "data" / "aitrader").iterdir()}
    audits = audit_aitrader(files)
    for track in sorted({one.track for one in audits}):
        found = season_aitrader(files, track)
        last = {one.agent: one for one in found.books}
        checks = {(one.agent, one.kind): one for one in found.checks}
        for audit in (one for one in audits if one.track == track):
            assert math.isclose(last[audit.agent].nav, audit.last_nav, rel_tol=1e-12)
            told = [line for kind in RELIABILITY for line in checks[audit.agent, kind].mismatches]
            assert len(told) == len(audit.reconciliation.mismatches)
            for kind in RELIABILITY:
                one = checks[audit.agent, kind]
                assert (one.checks, one.passed) == (
                    audit.reconciliation.checks[kind],
                    audit.reconciliation.passed[kind],
                )
        assert {one.state for one in found.books} <= {"ok", "not stated"}
        assert sum(one.state != "ok" for one in found.books) == (2 if track == "cn-daily" else 0)
