"""The client `fredapi`, unchanged, against its service's wire format on loopback: series, observations, vintages."""

from __future__ import annotations

import traceback
from datetime import UTC, date, datetime

import pytest
from fred_wire import FIRST, KEY, asked, error, service
from loopback import BROKEN, Reply

from assaymark.errors import InputError
from assaymark.market import sources


def refused(there, source, request, now, manners) -> str:
    with pytest.raises(InputError, match=f"source {source}") as caught:
        sources.pull(source, request, now=now, manners=manners)
    return str(caught.value)


def test_values_of_today_carry_an_assumed_release(now, manners):
    with service() as there:
        found = sources.pull("fred", asked(there.url), now=now, manners=manners)
    first, second = found.tables["macro"].to_pylist()
    # The service names a month by its first day; a period here is its last day.
    assert (first["ref_period"], first["value"]) == (date(2024, 1, 31), 3.7)
    assert first["realtime_start"] == datetime(2024, 3, 6, 12, tzinfo=UTC)
    assert (first["realtime_end"], first["unit"], first["title"]) == (None, "%", "UNRATE rate")
    assert second["ref_period"] == date(2024, 2, 29)
    assert any("not what was known then" in note for note in found.origin.notes)
    assert found.id.startswith("fred-2024-03-08-")


@pytest.mark.parametrize(
    ("every", "end"),
    [("D", "2024-01-01"), ("W", "2024-01-01"), ("Q", "2024-03-31"), ("SA", "2024-06-30"), ("A", "2024-12-31")],
)
def test_periods_end_with_their_last_day(every, end, now, manners):
    with service(every, latest=FIRST[:1]) as there:
        found = sources.pull("fred", asked(there.url, lag_days="2"), now=now, manners=manners)
    (row,) = found.tables["macro"].to_pylist()
    assert row["ref_period"] == date.fromisoformat(end)
    assert row["realtime_start"].date().toordinal() == date.fromisoformat(end).toordinal() + 2


def test_each_vintage_lasts_until_the_next_of_its_period(now, manners):
    with service() as there:
        found = sources.pull("alfred", asked(there.url), now=now, manners=manners)
    rows = [(one["ref_period"], one["value"], one["realtime_start"], one["realtime_end"]) for one in
            found.tables["macro"].to_pylist()]  # fmt: skip
    revised = datetime(2024, 2, 3, tzinfo=UTC)
    assert rows == [
        (date(2023, 12, 31), 3.7, datetime(2024, 1, 6, tzinfo=UTC), revised),
        (date(2023, 12, 31), 3.8, revised, None),
        (date(2024, 1, 31), 3.7, revised, None),
    ]


def test_days_bound_the_observations_of_both(now, manners):
    with service() as there:
        request = asked(there.url)
        bounded = sources.Request(symbols=request.symbols, start=date(2024, 1, 1), options=request.options)
        assert sources.pull("alfred", bounded, now=now, manners=manners).tables["macro"].num_rows == 1
        sources.pull("fred", bounded, now=now, manners=manners)
    assert there.asked[-1][2]["observation_start"] == "2024-01-01"


def test_unknown_series_are_all_named(now, manners):
    with service() as there:
        said = refused(there, "fred", asked(there.url, "UNRATE", "NOPE", "NADA"), now, manners)
    assert "NOPE: the reply cannot be read" not in said
    assert [line.strip() for line in said.splitlines()[1:]] == [
        "NOPE: the service refuses: Bad Request. The series does not exist.",
        "NADA: the service refuses: Bad Request. The series does not exist.",
    ]


@pytest.mark.parametrize("source", ["fred", "alfred"])
def test_a_wrong_key_is_one_line_and_nowhere_in_a_traceback(source, now, manners):
    wrong = KEY[::-1]
    with service() as there, pytest.raises(InputError, match="the key is refused") as caught:
        sources.pull(source, asked(there.url, key=wrong), now=now, manners=manners)
    assert "\n" not in str(caught.value)
    below = caught.value.__traceback__.tb_next  # this test's own frame holds the key
    shown = traceback.TracebackException(InputError, caught.value, below, capture_locals=True)
    assert wrong not in "".join(shown.format(chain=True))
    assert caught.value.__context__ is caught.value.__cause__ is None


@pytest.mark.parametrize(
    "fault",
    [
        error(f"Bad Request. {KEY} is strange"), Reply(f"<error {KEY}".encode(), 400), Reply(f"<{KEY}/>".encode()),
        BROKEN, Reply(b"<obs", cut=True), Reply(f"<html>{KEY}</html>".encode()),
    ],
    ids=["echo", "no xml", "other xml", "broken", "cut", "page"],
)  # fmt: skip
def test_no_fault_of_the_service_brings_the_key_out(fault, now, manners, caplog, capfd):
    with service() as there:
        there.faults = [fault] * 20
        with pytest.raises(InputError, match="source fred") as caught:
            sources.pull("fred", asked(there.url), now=now, manners=manners)
    shown = traceback.TracebackException(
        InputError, caught.value, caught.value.__traceback__.tb_next, capture_locals=True
    )
    assert KEY not in "".join(shown.format(chain=True)) + caplog.text + "".join(capfd.readouterr())


def test_no_key_is_in_what_is_kept(now, manners):
    with service() as there:
        request = asked(there.url)
        found = sources.pull("fred", request, now=now, manners=manners)
    assert KEY not in repr(request) + repr(found.origin) + repr(found.tables)
    assert KEY in there.asked[0][2]["api_key"]


def test_no_key_no_question(now, manners):
    with service() as there:
        said = refused(
            there, "fred", sources.Request(symbols=("UNRATE",), options={"endpoint": there.url}), now, manners
        )
    assert "FRED_API_KEY" in said
    assert there.asked == []


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"latest": ()}, "UNRATE: has no value in the days asked for"),
        ({"latest": (("2024-01-01", ".", "2024-02-02", "9999-12-31"),)}, "UNRATE: has no value in the days asked for"),
        ({"latest": (("2024-01-01", "inf", "2024-02-02", "9999-12-31"),)}, "UNRATE, 2024-01-31: the value is infinite"),
        (
            {"latest": (("2024-01-01", "many", "2024-02-02", "9999-12-31"),)},
            "UNRATE: the reply cannot be read (ValueError",
        ),
        ({"latest": (("soon", "1", "2024-02-02", "9999-12-31"),)}, "UNRATE: the reply cannot be read"),
        ({"every": "5M"}, "UNRATE: has the frequency '5M'"),
        ({"count": 7, "limit": 2}, "the service sent 2 of 7 values; ask for fewer days or vintages"),
    ],
    ids=["empty", "dots", "infinite", "words", "no day", "frequency", "half"],
)
def test_wrong_answers_are_named(known, said, now, manners):
    with service(**known) as there:
        assert said in refused(there, "fred", asked(there.url), now, manners)


@pytest.mark.parametrize(("source", "options", "said"), [
    ("fred", {"lag_days": "-1"}, "must be a whole number of days"),
    ("alfred", {"vintages_from": "spring"}, "must be a day"),
    ("alfred", {"lag_days": "3"}, "option lag_days: is unknown; alfred takes"),
])  # fmt: skip
def test_wrong_options_are_named(source, options, said, now, manners):
    with service() as there:
        assert said in refused(there, source, asked(there.url, **options), now, manners)
