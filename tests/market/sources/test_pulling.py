"""What all networked sources share: requests refused before they are sent, manners, names, the way into a store."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from fred_wire import asked as asked_fred
from fred_wire import service as fred_service
from hypothesis import given
from hypothesis import strategies as st
from kraken_wire import asked as asked_ccxt
from kraken_wire import candles, kraken

from assaymark.errors import InputError, UnknownNameError
from assaymark.market import open_history, sources, write_snapshot
from assaymark.market.sources.request import (
    DailySeries,
    ServiceUnavailable,
    TransientError,
    asked_wait,
    checked_data,
    one_line,
    series_problems,
    with_retries,
)

PAGE = (Path(__file__).parents[3] / "docs" / "market-sources.md").read_text(encoding="utf-8")
CLIENTS = {
    "yfinance": "yfinance", "fred": "fredapi", "alfred": "fredapi", "ccxt": "ccxt", "huggingface": "huggingface_hub",
}  # fmt: skip
ENOUGH = {"api_key": "k", "exchange": "kraken", "repo": "a/b"}


def enough(source: str) -> sources.Request:
    """A request that only a missing client library keeps from being asked."""
    options = {name: value for name, value in ENOUGH.items() if name in sources.SOURCES[source].options}
    return sources.Request(symbols=("X",) if sources.SOURCES[source].symbols else (), options=options)


@pytest.mark.parametrize("source", sorted(sources.SOURCES))
def test_a_missing_client_is_one_line_that_says_what_to_install(source, now, monkeypatch):
    monkeypatch.setitem(sys.modules, CLIENTS[source], None)
    with pytest.raises(InputError, match=r"needs a library that is not installed") as caught:
        sources.pull(source, enough(source), now=now)
    assert f"pip install 'assaymark[{sources.SOURCES[source].extra}]'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_source_is_answered_with_the_right_name(now):
    with pytest.raises(UnknownNameError, match=r"unknown source 'yfinanc'\. Did you mean 'yfinance'"):
        sources.pull("yfinanc", sources.Request(), now=now)


def test_every_problem_of_a_request_is_named_at_once(now):
    request = sources.Request(
        symbols=("A", "A", "B C", ""), start=date(2024, 2, 1), end=date(2024, 1, 1),
        options={"colour": "red", "endpoint": "file:///etc"},
    )  # fmt: skip
    with pytest.raises(InputError, match="source yfinance") as caught:
        sources.pull("yfinance", request, now=now.replace(tzinfo=None))
    said = str(caught.value)
    for part in ("A: is asked for more than once", "'B C'", "''", "2024-02-01 comes after", "option colour: is unknown",
                 "option endpoint: must begin with https://", "now: needs a time zone"):  # fmt: skip
        assert part in said


def test_questions_are_refused_like_snapshots(tmp_path, now):
    with pytest.raises(InputError, match="option repo: is needed"):
        sources.pull_questions(sources.Request(), tmp_path, now=now)


@pytest.mark.parametrize("source", sorted(sources.SOURCES))
def test_the_page_names_every_source_and_option(source):
    assert f"`{source}`" in PAGE
    assert f"assaymark[{sources.SOURCES[source].extra}]" in PAGE
    assert [name for name in sources.SOURCES[source].options if f"`{name}" not in PAGE] == []


def test_bars_go_through_a_store_and_are_known_when_their_day_is_over(tmp_path, now, manners):
    with kraken(XXBTZUSD=candles(date(2024, 3, 4), 5)) as there:
        found = sources.pull("ccxt", asked_ccxt(there.url), now=now, manners=manners)
    write_snapshot(tmp_path / "store", found)
    history = open_history(tmp_path / "store")
    before, after = (
        history.as_of(datetime(2024, 3, 5, hour, minute, tzinfo=UTC)) for hour, minute in ((0, 0), (23, 59))
    )
    assert before.prices(1).values[-1, 0] == 101.0
    assert after.prices(1).values[-1, 0] == 101.0
    assert history.as_of(datetime(2024, 3, 6, tzinfo=UTC)).prices(1).values[-1, 0] == 102.0


def test_vintages_go_through_a_store_and_read_as_they_stood(tmp_path, now, manners):
    with fred_service() as there:
        found = sources.pull("alfred", asked_fred(there.url), now=now, manners=manners)
    write_snapshot(tmp_path / "store", found)
    history = open_history(tmp_path / "store")
    rate = [history.as_of(datetime(2024, *day, tzinfo=UTC)).macro("UNRATE") for day in ((1, 5), (1, 6), (2, 2), (2, 3))]
    assert [one.value for one in rate] == [None, 3.7, 3.7, 3.7]
    assert [str(one.period) for one in rate[1:]] == ["2023-12-31", "2023-12-31", "2024-01-31"]


@given(st.lists(st.sampled_from([None, 0.0, 3.0, 59.0]), max_size=6))
def test_no_question_is_asked_more_often_than_manners_allow(answers):
    waits, left = [], list(answers)
    manners = sources.RetryPolicy(attempts=4, sleep=waits.append)

    def ask() -> str:
        if left:
            raise TransientError("busy", left.pop(0))
        return "data"

    if len(answers) < 4:
        assert with_retries(ask, manners) == "data"
        assert len(waits) == len(answers)
    else:
        with pytest.raises(ServiceUnavailable, match="given up after 4 attempts"):
            with_retries(ask, manners)
        assert len(answers) - len(left) == 4
    expected = [2.0 * 2**place if one is None else one for place, one in enumerate(answers[:3])]
    assert waits == expected


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "12"}, 12.0),
        ({"Retry-After": "Fri, 08 Mar 2024 12:01:00 GMT", "Date": "Fri, 08 Mar 2024 12:00:00 GMT"}, 60.0),
        ({"Retry-After": "Fri, 08 Mar 2024 11:00:00 GMT", "Date": "Fri, 08 Mar 2024 12:00:00 GMT"}, 0.0),
        ({"Retry-After": "Fri, 08 Mar 2024 12:01:00 GMT"}, None), ({"Retry-After": "-5"}, None),
        ({"Retry-After": "inf"}, None), ({"Retry-After": "9" * 400}, None), ({"Retry-After": "\u0663"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_the_wait_that_is_asked_for_is_read_strictly(headers, seconds):
    assert asked_wait(headers) == seconds


@pytest.mark.parametrize("body", [b"<!DOCTYPE html>", b"\n <HTML>", b"<head>", b"<Body class=x>"])
def test_pages_are_no_data(body):
    with pytest.raises(ServiceUnavailable, match="is an HTML page"):
        checked_data(body)


@given(st.text(max_size=400))
def test_foreign_text_becomes_one_short_printable_line_without_the_key(text):
    shown = one_line(f"{text}canary{text}", "canary")
    assert len(shown) <= 200
    assert shown.isprintable()
    assert "canary" not in shown or "canary" in text


def made(**changes) -> DailySeries:
    """Four good days of one instrument."""
    days = np.arange(np.datetime64("2024-03-04"), np.datetime64("2024-03-08"))
    fields = ("open", "high", "low", "close", "volume")
    bars = {name: np.full(4, value) for name, value in zip(fields, (10.0, 12.0, 9.0, 11.0, 5.0), strict=True)}
    given = {
        "id": "A", "asset_class": "EQ", "sub": "equity", "name": "A", "currency": "USD", "listed": None, "days": days,
        "bars": bars, "adj_factor": np.ones(4),
    }  # fmt: skip
    return DailySeries(**{**given, **changes})


def changed(field: str, value: float) -> dict[str, np.ndarray]:
    bars = dict(made().bars)
    bars[field] = np.array([*bars[field][:2], value, value])
    return bars


@pytest.mark.parametrize(("changes", "said"), [
    ({"bars": changed("close", np.nan)}, "A, 2024-03-06: a close must be positive (got nan); 2 days in all"),
    ({"bars": changed("close", np.inf)}, "a close must be positive (got inf)"),
    ({"bars": changed("open", 0.0)}, "a open must be positive where it is given (got 0)"),
    ({"bars": changed("volume", -1.0)}, "a volume cannot be negative (got -1)"),
    ({"bars": changed("high", 8.0)}, "the high is below the low (got -1)"),
    ({"adj_factor": np.array([1.0, 0.0, 1.0, 1.0])}, "an adjustment factor must be positive (got 0)"),
    ({"adj_factor": np.array([1.0, np.nan, 1.0, 1.0])}, "an adjustment factor must be positive (got nan)"),
    ({"days": made().days[[0, 1, 1, 2]]}, "A, 2024-03-05: the day is there twice"),
    ({"days": made().days[[0, 2, 1, 3]]}, "A, 2024-03-05: the day comes after 2024-03-06"),
])  # fmt: skip
def test_what_cannot_be_true_of_a_series_is_named_with_its_first_place(changes, said):
    assert said in "\n".join(map(str, series_problems(made(**changes))))


def test_missing_fields_beside_the_close_are_no_problem():
    bars = {name: np.full(4, np.nan) for name in ("open", "high", "low", "volume")}
    assert series_problems(made(bars={**bars, "close": np.full(4, 1.0)})) == []


@given(st.integers(-10, 200), st.integers(0, 86_400))
def test_no_bar_is_kept_before_its_day_is_over(hours, complete_at):
    now = datetime(2024, 3, 4, tzinfo=UTC) + timedelta(hours=hours)
    kept = made(complete_at=complete_at).within(date(2024, 3, 1), date(2024, 3, 31), now)
    assert (kept.known_at <= now.timestamp()).all()
    over = sum(datetime(2024, 3, day, tzinfo=UTC) + timedelta(seconds=complete_at) <= now for day in range(4, 8))
    assert kept.days.size == over
