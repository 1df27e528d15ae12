"""A book of four assets, orders on it, and texts that reconcile it, made up for the tests of order-based decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from assaymark import records
from assaymark.portfolio import fee_of, settle

CUTOFF = datetime(2000, 1, 3, 12, tzinfo=UTC)
PRICES = {"Asset A": 100.25, "Asset B": 98.5, "Asset C": 103.75, "Asset D": 99.125}
VOLATILITY = {"Asset A": 0.002, "Asset B": 0.004, "Asset C": 0.006, "Asset D": 0.008}
HELD = {"Asset A": 300.0, "Asset C": 250.0}
CONSTRAINTS = (
    records.Constraint("max_weight", 0.35, "nav", scope="holding"), records.Constraint("min_cash", 0.05, "nav"),
    records.Constraint("max_leverage", 1.2, "multiple"), records.Constraint("max_orders", 3.0, "count"),
    records.Constraint("allow_short", 0.0, "count"), records.Constraint("fee", 10.0, "bps", scope="order"),
)  # fmt: skip
NAV = round(42_000.0 + sum(HELD[name] * PRICES[name] for name in HELD), 2)
BOOK = records.Portfolio(currency="USD", cash=42_000.0, nav=NAV, positions=HELD)
BUY_B = (records.Action(instrument="Asset B", kind="buy", quantity=120.0),)


def fact(instrument, field, value, unit):
    times = {"available_at": CUTOFF, "as_of": CUTOFF, "source": "bars"}
    return records.Fact(id=f"{instrument}.{field}", instrument=instrument, field=field, value=value, unit=unit, **times)


def bars(instrument, last):
    times = tuple(CUTOFF - timedelta(minutes=minutes) for minutes in (2, 1, 0))
    return records.Series(instrument=instrument, interval_s=60, times=times, close=(100.0, 100.5, last))


def context(**changes):
    columns = (("price", PRICES, "price"), ("volatility_60m", VOLATILITY, "ratio"))
    given = {
        "completeness": "complete", "cutoff": CUTOFF, "cutoff_source": "neutral clock",
        "prompt": "Decide on orders and say why.", "portfolio": BOOK, "constraints": CONSTRAINTS,
        "facts": tuple(fact(name, field, values[name], unit) for name in PRICES for field, values, unit in columns),
        "series": tuple(bars(name, price) for name, price in PRICES.items()),
        "instruments": tuple(
            records.Instrument(id=name, name=name, asset_class="equity", group=name) for name in PRICES
        ),
    }  # fmt: skip
    return records.Context(**given | changes)


def decision(text="We buy Asset B.", actions=BUY_B, of=None, **changes):
    given = {
        "record_id": "calm-0007-ash", "episode_id": "calm-0007", "step": 1, "cluster": "calm",
        "decided_at": CUTOFF + timedelta(seconds=30), "agent": records.Agent(id="ash", family="ash"),
        "context_id": records.content_id(of or context()), "actions": actions, "format": "orders-v1",
        "rationales": (records.Rationale(text=text, kind="summary"),),
        "provenance": records.Provenance(source="made-up"), "confidence": 0.6,
    }  # fmt: skip
    return records.Decision(**given | changes)


def with_book(cash=BOOK.cash, **positions):
    """The context with another book of assets, named by their letters."""
    units = {f"Asset {letter}": held for letter, held in positions.items()}
    nav = round(cash + sum(held * PRICES[name] for name, held in units.items()), 2)
    return context(portfolio=replace(BOOK, cash=cash, nav=nav, positions=units))


def settled(actions=BUY_B, book=BOOK):
    return settle(book, PRICES, actions, fee_bps=fee_of(CONSTRAINTS))


def reconciled(after):
    """Everything about a book in the wording of the reference agents."""
    top = max(after.weights, key=lambda name: abs(after.weights[name]))
    return (
        f"Cash {after.cash:,.2f} less cost {after.cost:,.2f} leaves {after.residual:,.2f}. "
        f"Exposure {after.exposure:,.2f} over equity {after.equity:,.2f} is {after.leverage:.1%}. "
        f"Leverage {after.leverage:.2f} against a cap of 1.20. "
        f"Largest position {top} at {after.weights[top]:.1%} against a cap of 35.0%. "
        f"Cash is {after.residual / after.equity:.1%} of equity against a floor of 5.0%."
    )
