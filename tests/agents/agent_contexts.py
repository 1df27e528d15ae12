"""Small contexts for the agents' tests: written by hand, or drawn by hypothesis."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import strategies as st

from assaymark.agents import observe
from assaymark.records import Constraint, Context, Fact, Instrument, Portfolio, Series

CUTOFF = datetime(2042, 5, 6, 21, tzinfo=UTC)
DECIDED = CUTOFF + timedelta(minutes=5)
CLASSES = ("equity", "bond", "commodity", "real_estate", "cash")
NAMES = ("Ash", "Beech", "Cedrel", "Damson", "Elder", "Fir", "Gorse", "Hazel", "Iris")
FIELDS = ("return_5s", "return_21s", "return_63s", "volatility_21s", "max_drawdown_63s", "beta_63s", "corr_63s")
WHO = {"record_id": "r1", "episode_id": "e1", "step": 1, "cluster": "c1", "decided_at": DECIDED}


def instrument(name: str, asset_class: str = "equity") -> Instrument:
    return Instrument(id=name.upper(), name=f"{name} Holdings", asset_class=asset_class, aliases=(name,))


def fact(name: str, field: str, value: float | str, unit: str = "ratio", **changes: object) -> Fact:
    plain = Fact(id=f"{name}.{field}", instrument=name, field=field, value=value, unit=unit, available_at=CUTOFF)
    return dataclasses.replace(plain, **changes)


def rows(table: dict[str, tuple[float, ...]]) -> tuple[Fact, ...]:
    """Facts from instrument -> values in the order of FIELDS; shorter rows leave the rest unknown."""
    units = {"beta_63s": "multiple", "corr_63s": "multiple"}
    return tuple(
        fact(name.upper(), field, value, units.get(field, "ratio"))
        for name, values in table.items()
        for field, value in zip(FIELDS, values, strict=False)
    )


def context(table: dict[str, tuple[float, ...]], **changes: object) -> Context:
    """A complete context; the class of each instrument is taken in turn."""
    plain = Context(
        completeness="complete",
        cutoff=CUTOFF,
        cutoff_source="test",
        prompt="the observation",
        facts=rows(table),
        instruments=tuple(instrument(name, CLASSES[i % len(CLASSES)]) for i, name in enumerate(table)),
    )
    return dataclasses.replace(plain, **changes)


def seen(table: dict[str, tuple[float, ...]], **changes: object):
    return observe(context(table, **changes), decided_at=DECIDED)


def bars(names: tuple[str, ...], closes: np.ndarray, **changes: object) -> tuple[Series, ...]:
    times = tuple(CUTOFF - timedelta(days=len(closes) - 1 - i) for i in range(len(closes)))
    plain = (
        Series(instrument=name.upper(), interval_s=86_400, times=times, close=tuple(closes[:, i].tolist()))
        for i, name in enumerate(names)
    )
    return tuple(dataclasses.replace(item, **changes) for item in plain)


@st.composite
def rules(draw: st.DrawFn) -> tuple[Constraint, ...]:
    """Rules under which a full book of at least five instruments exists."""
    increment, most = draw(st.sampled_from([(0.05, 5), (0.1, 4), (0.01, 6), (0.25, 3)]))
    cap = draw(st.sampled_from([0.5, 0.75, 1.0]))
    fewest = draw(st.integers(1, 2))
    return (
        Constraint(kind="min_holdings", limit=float(fewest), unit="count"),
        Constraint(kind="max_holdings", limit=float(most), unit="count"),
        Constraint(kind="min_weight", limit=increment, unit="nav"),
        Constraint(kind="max_weight", limit=cap * 100, unit="percent"),
        Constraint(kind="weight_increment", limit=increment, unit="ratio"),
    )


_RETURN = st.floats(-0.6, 0.9).map(lambda x: round(x, 4))


@st.composite
def contexts(draw: st.DrawFn) -> Context:
    """Any market of five to nine instruments, with or without bars, a book, and economic facts."""
    size = draw(st.integers(5, 9))
    names = NAMES[:size]
    table = {
        name: (
            draw(_RETURN),
            draw(_RETURN),
            draw(_RETURN),
            draw(st.floats(0.0, 0.9)),
            -draw(st.floats(0, 0.9)),
            draw(st.floats(-2, 3)),
            draw(st.floats(-1, 1)),
        )
        for name in names
    }
    economy = (
        fact("", "policy_rate", draw(st.floats(-1, 9)), "percent"),
        fact("", "inflation_yoy", draw(st.floats(-2, 12)), "percent"),
        fact("", "credit_spread", draw(st.floats(20, 900)), "bps"),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    closes = 100 * np.cumprod(1 + 0.02 * rng.standard_normal((40, size)), axis=0)
    return context(
        table,
        facts=rows(table) + economy[: draw(st.integers(0, 3))],
        series=bars(names, closes) if draw(st.booleans()) else (),
        constraints=draw(rules()),
        portfolio=draw(st.sampled_from([None, Portfolio(currency="USD", cash=1.0, nav=2.0, positions={"ASH": 1.0})])),
    )
