"""Services that are busy, broken or something else: every source waits as asked, gives up with one line, or refuses."""

from __future__ import annotations

import fred_wire
import pytest
import test_source_huggingface as hub
import test_source_yfinance as yahoo
from kraken_wire import asked, candles, kraken
from loopback import BROKEN, PAGE, STORM, Reply

from assaymark.errors import InputError
from assaymark.market import sources

SERVICES = {
    "yfinance": (
        lambda: yahoo.service(SPY=yahoo.chart("SPY"), TLT=yahoo.chart("TLT")),
        lambda url: yahoo.asked(url, "SPY", "TLT"), 8,
    ),
    "fred": (fred_wire.service, fred_wire.asked, 2),
    "ccxt": (lambda: kraken(XXBTZUSD=candles(), XETHZUSD=candles()), lambda url: asked(url, "BTC/USD", "ETH/USD"), 14),
    "huggingface": (hub.service, hub.asked, None),
}  # fmt: skip
"""A service of each source, a request of it, and the rows of its answer."""

ALL = {
    "storm": (STORM, "too many requests (status 429); given up after 3 attempts", 3),
    "broken": (BROKEN, "the service is not available (status 500); given up after 3 attempts", 3),
    "page": (PAGE, "the answer is an HTML page, not data", 1),
    "cut": (Reply(b'{"chart":', cut=True), "the service does not answer", 3),
    "huge": (Reply(b"[" + b"1," * 1_500_000 + b"1]"), "the answer is larger than 2,000,000 bytes", 1),
    "long wait": (Reply(status=429, headers={"Retry-After": "3600"}), "a wait of 3600 s is asked for", 1),
}
OWN = {
    "fred, entities": (Reply(b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'), "declares a document type", 1),
    "fred, empty": (Reply(b""), "the answer is no XML", 1),
    "fred, incomplete": (Reply(b"<seriess>", cut=True), "the service does not answer (IncompleteRead", 3),
    "ccxt, its own limit": (Reply.json({"error": ["EAPI:Rate limit exceeded"]}), "kraken is busy", 3),
    "ccxt, refusal": (Reply.json({"error": ["EGeneral:Permission denied"]}), "kraken refuses", 1),
    "ccxt, no json": (Reply(b"not json"), "the answer is no JSON", 1),
}
FAULTS = {f"{source}, {name}": fault for source in ("yfinance", "fred", "ccxt") for name, fault in ALL.items()} | OWN


@pytest.mark.parametrize("case", FAULTS)
def test_a_service_that_does_not_answer_is_given_up_with_one_line(case, now, manners):
    source, (fault, said, asked_for) = case.partition(",")[0], FAULTS[case]
    service, request, _ = SERVICES[source]
    with service() as there:
        there.faults = [fault] * 50
        with pytest.raises(InputError, match=f"source {source}") as caught:
            sources.pull(source, request(there.url), now=now, manners=manners)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(there.paths(there.at)) == asked_for


@pytest.mark.parametrize("source", SERVICES)
def test_a_passing_storm_is_waited_out_as_long_as_asked(source, now, manners, waits):
    service, request, rows = SERVICES[source]
    with service() as there:
        sources.pull(
            source, request(there.url), now=now, manners=manners
        )  # a client may ask elsewhere, once in a process
        waits.clear()
        there.faults = [STORM, BROKEN]
        found = sources.pull(source, request(there.url), now=now, manners=manners)
    assert rows in (None, found.tables["macro" if source == "fred" else "bars"].num_rows)
    assert [one for one in waits if one >= 2] == [7.0, 4.0]  # an exchange asks for a pause between questions too
