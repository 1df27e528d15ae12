"""What calls have cost: replies of batches at their price, and what is unknown never as nothing."""

from __future__ import annotations

from datetime import date

import pytest
from batch_house import House
from engine_calls import Scripted, calls

from assaymark.engine import Ledger, run_batches, run_calls
from assaymark.engine.budget import costs_of
from assaymark.engine.prices import Price, Prices

PRICE = Price(pattern="house/one", input=10, output=100, batch=0.5, as_of=date(2026, 11, 1), source="an example")
PRICES = Prices("an example", (PRICE,))


def test_a_reply_of_a_batch_costs_what_the_batch_costs(tmp_path):
    (tmp_path / "house").mkdir()
    house = House(tmp_path / "house")  # 100 tokens in and 10 out
    asked = calls(4, model="house/one")
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        run_batches(ledger, asked[:3], {"house": house.maker}, poll_s=0.001)
        costs = costs_of(ledger, asked, PRICES)
        assert (costs.replies, costs.in_batches, costs.unknown) == (3, 3, 0)
        assert costs.usd == pytest.approx(3 * 0.5 * (100 * 10 + 10 * 100) / 1e6)
        assert costs.saved_usd == pytest.approx(costs.usd)
        run_calls(ledger, asked[3:], {"house/one": Scripted(lambda _spec: "4")})  # which does not count tokens
        costs = costs_of(ledger, asked, PRICES)
        assert (costs.replies, costs.in_batches, costs.unknown, costs.usd) == (4, 3, 1, None)
        assert costs.known_usd == pytest.approx(3e-3)
        assert costs_of(ledger, asked, Prices("none", ())).unknown == 4
