"""Shared code of networked sources: requests refused before they are sent, retries, and invalid answers."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import market_wires as wires
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import BROKEN, PAGE, STORM, Reply
from market_wires import COMMIT, DAYS, END, FILE, REPO, START, TOKEN, WIRES, candles, chart, seconds

from assaymark.errors import InputError, UnknownNameError
from assaymark.market import sources
from assaymark.market.sources.request import (
    DailySeries, ServiceUnavailable, TransientError, asked_wait, check_data, safe_line, series_problems, with_retries,
)  # fmt: skip

CLIENTS = {"fred": "fredapi", "alfred": "fredapi", "huggingface": "huggingface_hub"}
ENOUGH = {"api_key": "k", "exchange": "kraken", "repo": "a/b"}


@pytest.mark.parametrize("source", sorted(sources.SOURCES))
def test_a_missing_client_is_one_line_that_says_what_to_install_and_the_page_names_every_option(
    source, refused, monkeypatch
):
    """A request that only a missing client library keeps from being asked."""
    made = sources.SOURCES[source]
    monkeypatch.setitem(sys.modules, CLIENTS.get(source, source), None)
    options = {name: value for name, value in ENOUGH.items() if name in made.options}
    said = refused(source, sources.Request(symbols=("X",) if made.symbols else (), options=options))
    assert "needs a library that is not installed" in said
    assert f"pip install 'assaymark[{made.extra}]'" in said
    assert "\n" not in said
    page = (Path(__file__).parents[3] / "docs" / "market-sources.md").read_text(encoding="utf-8")
    named = (f"`{source}`", f"assaymark[{made.extra}]", *(f"`{name}" for name in made.options))
    assert [one for one in named if one not in page] == []


def test_every_problem_of_a_request_is_named_at_once(tmp_path, told):
    request = sources.Request(
        symbols=("A", "A", "B C", ""), start=date(2024, 2, 1), end=date(2024, 1, 1),
        options={"colour": "red", "endpoint": "file:///etc"},
    )  # fmt: skip
    with pytest.raises(InputError, match="source yfinance") as caught:
        sources.pull("yfinance", request, now=told["now"].replace(tzinfo=None))
    said = ("A: is requested more than once", "'B C'", "''", "2024-02-01 comes after", "option colour: is unknown",
            "option endpoint: must begin with https://", "now: needs a time zone")  # fmt: skip
    assert [part for part in said if part not in str(caught.value)] == []
    with pytest.raises(UnknownNameError, match=r"unknown source 'yfinanc'\. Did you mean 'yfinance'"):
        sources.pull("yfinanc", sources.Request(), **told)
    with pytest.raises(InputError, match="option repo: is needed"):
        sources.pull_questions(sources.Request(), tmp_path, **told)


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
    else:
        with pytest.raises(ServiceUnavailable, match="given up after 4 attempts"):
            with_retries(ask, manners)
        assert len(answers) - len(left) == 4
    assert waits == [2.0 * 2**place if one is None else one for place, one in enumerate(answers[:3])]


def test_the_wait_that_is_asked_for_is_read_strictly():
    noon, name = {"Date": "Fri, 08 Mar 2024 12:00:00 GMT"}, "Retry-After"
    later, before = (f"Fri, 08 Mar 2024 {time} GMT" for time in ("12:01:00", "11:00:00"))
    assert asked_wait({"retry-after": "12"}) == 12.0
    assert [asked_wait({name: one, **noon}) for one in (later, before)] == [60.0, 0.0]
    assert {asked_wait({name: one}) for one in (later, "-5", "inf", "9" * 400, "\u0663")} == {None}
    assert asked_wait({}) is None


@given(st.text(max_size=400))
def test_foreign_text_becomes_one_short_printable_line_without_the_key_and_pages_are_no_data(text):
    shown = safe_line(f"{text}canary{text}", "canary")
    assert len(shown) <= 200
    assert shown.isprintable()
    assert "canary" not in shown or "canary" in text
    for body in (b"<!DOCTYPE html>", b"\n <HTML>", b"<head>", b"<Body class=x>"):
        with pytest.raises(ServiceUnavailable, match="is an HTML page"):
            check_data(body)


def made(**changes) -> DailySeries:
    """Four good days of one instrument."""
    days = np.arange(np.datetime64("2024-03-04"), np.datetime64("2024-03-08"))
    bars = {name: np.full(4, value) for name, value in
            {"open": 10.0, "high": 12.0, "low": 9.0, "close": 11.0, "volume": 5.0}.items()}  # fmt: skip
    given = {
        "id": "A", "asset_class": "EQ", "sub": "equity", "name": "A", "currency": "USD", "listed": None, "days": days,
        "bars": bars, "adj_factor": np.ones(4),
    }  # fmt: skip
    return DailySeries(**{**given, **changes})


def changed(field: str, value: float) -> dict[str, object]:
    bars = made().bars
    return {"bars": {**bars, field: np.array([*bars[field][:2], value, value])}}


@pytest.mark.parametrize(("changes", "said"), [
    (changed("close", np.nan), "A, 2024-03-06: a close must be positive (got nan); 2 days in all"),
    (changed("close", np.inf), "a close must be positive (got inf)"),
    (changed("open", 0.0), "a open must be positive where it is given (got 0)"),
    (changed("volume", -1.0), "a volume cannot be negative (got -1)"),
    (changed("high", 8.0), "the high is below the low (got -1)"),
    ({"adj_factor": np.array([1.0, 0.0, 1.0, 1.0])}, "an adjustment factor must be positive (got 0)"),
    ({"adj_factor": np.array([1.0, np.nan, 1.0, 1.0])}, "an adjustment factor must be positive (got nan)"),
    ({"days": made().days[[0, 1, 1, 2]]}, "A, 2024-03-05: the day is there twice"),
    ({"days": made().days[[0, 2, 1, 3]]}, "A, 2024-03-05: the day comes after 2024-03-06"),
])  # fmt: skip
def test_what_cannot_be_true_of_a_series_is_named_with_its_first_place(changes, said):
    assert said in "\n".join(map(str, series_problems(made(**changes))))
    missing = {name: np.full(4, np.nan) for name in ("open", "high", "low", "volume")}
    assert series_problems(made(bars={**missing, "close": np.full(4, 1.0)})) == []


@given(st.integers(-10, 200), st.integers(0, 86_400))
def test_no_bar_is_kept_before_its_day_is_over(hours, complete_at):
    now = datetime(2024, 3, 4, tzinfo=UTC) + timedelta(hours=hours)
    kept = made(complete_at=complete_at).within(date(2024, 3, 1), date(2024, 3, 31), now)
    assert (kept.known_at <= now.timestamp()).all()
    over = sum(datetime(2024, 3, day, tzinfo=UTC) + timedelta(seconds=complete_at) <= now for day in range(4, 8))
    assert kept.days.size == over


# Services that are busy, broken or something else

SOUND = {  # what a service holds, what is asked of it, and the rows of its answer
    "yfinance": ({"SPY": chart("SPY"), "TLT": chart("TLT")}, ("SPY", "TLT"), 8), "fred": ({}, (), 2),
    "ccxt": ({"XXBTZUSD": candles(), "XETHZUSD": candles()}, ("BTC/USD", "ETH/USD"), 14), "huggingface": ({}, (), None),
}  # fmt: skip
TIRED = "; given up after 3 attempts"
CUT_FILE = Reply(b'{"id"', cut=True, headers={"ETag": '"x"', "X-Repo-Commit": COMMIT})
ALL = [
    (STORM, f"too many requests (status 429){TIRED}", 3), (BROKEN, f"the service is not available (status 500){TIRED}",
     3),
    (PAGE, "the answer is an HTML page, not data", 1), (Reply(b'{"chart":', cut=True), "the service does not answer",
     3),
    (Reply(b"[" + b"1," * 1_500_000 + b"1]"), "the answer is larger than 2,000,000 bytes", 1),
    (Reply(status=429, headers={"Retry-After": "3600"}), "asks for a wait of 3600 s", 1),
]  # fmt: skip
FAULTS = [(source, *fault) for source in ("yfinance", "fred", "ccxt") for fault in ALL] + [
    ("fred", Reply(b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'), "declares a document type", 1),
    ("fred", Reply(b""), "the answer is not XML", 1),
    ("fred", Reply(b"<seriess>", cut=True), "the service does not answer (IncompleteRead", 3),
    ("ccxt", Reply.json({"error": ["EAPI:Rate limit exceeded"]}), "kraken is busy", 3),
    ("ccxt", Reply.json({"error": ["EGeneral:Permission denied"]}), "kraken refuses", 1),
    ("ccxt", Reply(b"not json"), "the answer is not JSON", 1),
]  # fmt: skip
HUB_FAULTS = [
    *((at, fault, said) for at in ("/api/", "/resolve/") for fault, said, _ in ALL[:2]), ("/api/", CUT_FILE, TIRED),
    ("/resolve/", CUT_FILE, TIRED),
    *((at, Reply.json({"error": "no"}, status, X_Error_Code=code), said) for at, status, code, said in (
        ("/api/", 403, "GatedRepo", f"{REPO}: asks for consent on its own page first; then pass a token"),
        ("/api/", 404, "RevisionNotFound", f"option revision: is not a revision of {REPO}"),
        ("/resolve/", 404, "EntryNotFound", f"option file: is not in {REPO} any more"),
        ("/api/", 403, "", "the token is refused (status 403"), ("/api/", 418, "", "the service refuses (status 418"))),
]  # fmt: skip


@pytest.mark.parametrize(("source", "fault", "said", "asked_for"), FAULTS)
def test_a_service_that_does_not_answer_is_given_up_with_one_line(source, fault, said, asked_for, refused):
    (service, asked), (held, symbols, _) = WIRES[source], SOUND[source]
    with service(**held) as there:
        there.faults = [fault] * 50
        message = refused(source, asked(there.url, *symbols))
    assert said in message
    assert ("\n" in message, len(there.paths(there.at))) == (False, asked_for)


@pytest.mark.parametrize(("at", "fault", "said"), HUB_FAULTS)
def test_faults_and_refusals_of_datasets_are_told_apart(at, fault, said, refused):
    with wires.hub() as there:
        there.at, there.faults = at, [fault] * 50
        message = refused("huggingface", wires.hub_asked(there.url, token=TOKEN))
    assert said in message
    assert ("\n" in message, TOKEN in message) == (False, False)


@pytest.mark.parametrize("source", SOUND)
def test_a_passing_storm_is_waited_out_as_long_as_asked(source, pull, waits):
    (service, asked), (held, symbols, rows) = WIRES[source], SOUND[source]
    with service(**held) as there:
        pull(source, asked(there.url, *symbols))  # a client may ask elsewhere, once in a process
        waits.clear()
        there.faults = [STORM, BROKEN]
        found = pull(source, asked(there.url, *symbols))
    assert rows in (None, found.tables["macro" if source == "fred" else "bars"].num_rows)
    assert [one for one in waits if one >= 2] == [7.0, 4.0]  # an exchange asks for a pause between questions too


def half(value: str, day: str = "2024-01-01") -> dict[str, object]:
    return {"latest": ((day, value, "2024-02-02", END),)}


WHOLE = {"whole": True}
SEVERAL = {"files": {"a.csv": b"", "b.csv": b""}}
WRONG = [  # the source, what its service holds, what is asked of it, and what is said
    ("yfinance", {"A": chart("A", close=[1.0, -2.0, 3.0, 4.0, 5.0])}, ("A",),
     "A, 2024-03-05: a close must be positive (got -2)"),
    ("yfinance", {"A": chart("A"), "B": chart("B", currency="EUR")}, ("A", "B"), "one snapshot holds one currency"),
    ("yfinance", {"A": chart("A", currency=None)}, ("A",), "A: the reply names no currency"),
    ("yfinance", {"A": chart("A", instrumentType="CURRENCY")}, ("A",),
     "of the kind CURRENCY, which has no asset class"),
    ("yfinance", {"A": chart("A", days=DAYS[:1])["chart"]["result"][0]}, ("A",), "A: "),
    ("yfinance", {"A": {"chart": {"result": [{"meta": {}, "timestamp": []}], "error": None}}}, ("A",), "A: "),
    ("yfinance", {"A": chart("A"), "B": chart("B", days=DAYS[:3]), "C": chart("C", days=DAYS[:3])}, ("A", "B", "C"),
     "2024-03-07: only 1 of 3 instruments have a bar (A): half a day?"),
    ("yfinance", {}, {"class.A": "XX"}, "must be one of EQ, BO, CO, CR, RE, CA (got 'XX')"),
    ("yfinance", {}, {"class.SPY": "EQ"}, "class.SPY: names a symbol that was not requested"),
    ("fred", {"latest": ()}, (), "UNRATE: has no value in the requested days"),
    ("fred", half("."), (), "UNRATE: has no value in the requested days"),
    ("fred", half("inf"), (), "UNRATE, 2024-01-31: the value is infinite"),
    ("fred", half("many"), (), "UNRATE: the reply cannot be read (ValueError"),
    ("fred", half("1", "soon"), (), "UNRATE: the reply cannot be read"),
    ("fred", {"every": "5M"}, (), "UNRATE: has the frequency '5M'"),
    ("fred", {"count": 7, "limit": 2}, (), "the service sent 2 of 7 values; ask for fewer days or vintages"),
    ("fred", {}, {"lag_days": "-1"}, "must be a whole number of days"),
    ("alfred", {}, {"vintages_from": "spring"}, "must be a day"),
    ("alfred", {}, {"lag_days": "3"}, "option lag_days: is unknown; alfred takes"),
    ("ccxt", {"XXBTZUSD": [[*candles()[0][:4], "-1.0", *candles()[0][5:]]], **WHOLE}, (),
     "a close must be positive (got -1)"),
    ("ccxt", {"XXBTZUSD": [], **WHOLE}, (), "BTC/USD: has no bar in the requested days"),
    ("ccxt", {"XXBTZUSD": [[seconds(START), "1", "2"]], **WHOLE}, (), "a close must be positive (got nan)"),
    ("ccxt", {"XXBTZUSD": [["soon", "1", "2", "1", "1", "1", "1", 1]], **WHOLE}, (), "has no bar in the requested"),
    ("ccxt", {"XXBTZUSD": candles(), "XXBTZEUR": candles(), **WHOLE}, ("BTC/USD", "BTC/EUR"),
     "EUR: BTC/EUR; USD: BTC/USD"),
    ("ccxt", {}, {"timeframe": "1m"}, "must be 1d: a snapshot holds one bar a day"),
    ("ccxt", {}, {"exchange": ""}, "such as exchange=kraken"),
    ("huggingface", {}, {"repo": "lab/other"},
     "lab/other: is not a dataset of the service, or not public; a token may be needed"),
    ("huggingface", {}, {"repo": ""}, "option repo: is needed"),
    ("huggingface", {}, {"repo": "../.."}, "the reply cannot be read"),
    ("huggingface", {}, {"file": "nope.csv"}, f"'nope.csv' is not in the dataset; files that fit: {FILE}"),
    ("huggingface", SEVERAL, (), "has 2 files that end in .csv or .parquet: a.csv, b.csv"),
    ("huggingface", {"files": {}}, (), "has 0 files that end in"),
    ("huggingface", {"files": {"../../out.csv": b"date,A\n"}}, (), "the reply cannot be read (ValueError"),
    ("huggingface", {"sizes": {FILE: 3_000_000_000}}, (), "the answer is larger than 2,000,000 bytes"),
    ("huggingface", {"files": {FILE: PAGE.body}}, (), "the answer is an HTML page, not data"),
    ("huggingface", {"files": {FILE: b"x" * 2_000_001}, "sizes": {FILE: 7}}, (),
     "the answer is larger than 2,000,000 bytes"),
    ("huggingface", {"private": True}, {"token": TOKEN}, "or the token is refused"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "held", "given", "said"), WRONG)
def test_wrong_requests_and_answers_are_named(source, held, given, said, refused):
    service, asked = WIRES[source]
    options = given if isinstance(given, dict) else {}
    symbols = ("A",) if source == "yfinance" and options else () if options else given
    with service(**held) as there:
        assert said in refused(source, asked(there.url, *symbols, **options))


@pytest.mark.parametrize(("source", "held", "symbols", "said"), [
    ("yfinance", {"SPY": chart("SPY")}, ("SPY", "NOPE", "NADA"), "is not known or has no prices"),
    ("fred", {}, ("UNRATE", "NOPE", "NADA"), "the service refuses: Bad Request. The series does not exist."),
    ("ccxt", {}, ("BTC/USD", "NO/PE", "NA/DA"), "is not known to kraken"),
])  # fmt: skip
def test_unknown_names_are_all_named_and_nothing_is_given(source, held, symbols, said, refused):
    service, asked = WIRES[source]
    with service(**held) as there:
        message = refused(source, asked(there.url, *symbols))
    lines = [line.strip() for line in message.splitlines()[1:]]
    assert [one.startswith(f"{name}: {said}") for one, name in zip(lines, symbols[1:], strict=True)] == [True, True]
    if source == "ccxt":  # before any bar is asked for
        assert there.paths(wires.OHLC) == []
