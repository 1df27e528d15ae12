"""Small contexts of one cycle each: an hour of made one-minute bars, a book and limits, as agents see them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from assaymark.agents import COMPOSERS as RULES
from assaymark.agents import observe
from assaymark.prompting import signature
from assaymark.records import (
    Agent,
    Constraint,
    Context,
    Decision,
    Fact,
    Instrument,
    Portfolio,
    Provenance,
    Rationale,
    Series,
    content_id,
)

NOW = datetime(2000, 1, 3, 12, tzinfo=UTC)
CLASSES = ("equity", "bond", "commodity", "crypto", "real_estate")
_BARS = 60


def made_context(seed: int, *, instruments: int = 0) -> Context:
    """The context of a seed: four to six instruments, two or three of them held within the limits."""
    rng = np.random.default_rng([2000, seed])
    size = instruments or int(rng.integers(4, 7))
    names = [f"Asset {letter}" for letter in "ABCDEF"[:size]]
    moves = rng.normal(rng.normal(0, 2e-4, size), 8e-4, (_BARS - 1, size))
    close = np.round(100 * np.cumprod(np.vstack([np.ones(size), 1 + moves]), axis=0), 4)
    volume = rng.lognormal(4, 0.4, (_BARS, size)).round(0)
    limits = _limits(rng)
    prices = {name: float(close[-1, at]) for at, name in enumerate(names)}
    return Context(
        completeness="complete",
        cutoff=NOW,
        cutoff_source="neutral clock",
        prompt="Decide which orders to give for the book, keep every limit, and explain your reasons.",
        facts=tuple(fact for at, name in enumerate(names) for fact in _facts(name, close[:, at], volume[:, at])),
        series=tuple(_series(name, close[:, at], volume[:, at]) for at, name in enumerate(names)),
        instruments=tuple(
            Instrument(id=name, name=name, asset_class=CLASSES[at % len(CLASSES)]) for at, name in enumerate(names)
        ),
        portfolio=_book(prices, limits, rng),
        constraints=limits,
    )


def _series(name: str, close: np.ndarray, volume: np.ndarray) -> Series:
    times = tuple(NOW - timedelta(minutes=_BARS - 1 - at) for at in range(_BARS))
    column = tuple(close.tolist())
    return Series(
        instrument=name, interval_s=60, times=times, close=column, open=column, high=column, low=column,
        volume=tuple(volume.tolist()),
    )  # fmt: skip


def _facts(name: str, close: np.ndarray, volume: np.ndarray) -> list[Fact]:
    moves = np.diff(close) / close[:-1]
    low, high = close.min(), close.max()
    values = {
        "price": ("price", close[-1]),
        "return_5m": ("ratio", close[-1] / close[-6] - 1),
        "return_15m": ("ratio", close[-1] / close[-16] - 1),
        "return_60m": ("ratio", close[-1] / close[0] - 1),
        "volatility_60m": ("ratio", moves.std(ddof=1) * np.sqrt(_BARS)),
        "range_60m": ("ratio", (close[-1] - low) / (high - low)),
        "volume_15m": ("multiple", volume[-15:].mean() / volume.mean()),
    }
    return [
        Fact(id=f"{name}.{field}", instrument=name, field=field, value=round(float(value), 6), unit=unit,
             available_at=NOW, as_of=NOW, source="bars")
        for field, (unit, value) in values.items()
    ]  # fmt: skip


def _limits(rng: np.random.Generator) -> tuple[Constraint, ...]:
    return (
        Constraint(kind="max_weight", limit=float(rng.choice([0.3, 0.35, 0.4])), unit="nav", scope="holding"),
        Constraint(kind="min_cash", limit=float(rng.choice([0.02, 0.05, 0.08])), unit="nav"),
        Constraint(kind="max_leverage", limit=float(rng.choice([1.0, 1.2, 1.5])), unit="multiple"),
        Constraint(kind="max_orders", limit=float(rng.integers(2, 4)), unit="count"),
        Constraint(kind="allow_short", limit=float(rng.integers(0, 2)), unit="count"),
        Constraint(kind="fee", limit=10.0, unit="bps", scope="order"),
    )


def _book(prices: dict[str, float], limits: tuple[Constraint, ...], rng: np.random.Generator) -> Portfolio:
    held = [str(name) for name in rng.choice(list(prices), size=int(rng.integers(2, 4)), replace=False)]
    shares = rng.uniform(0.4, 0.95, len(held)) * min(limits[0].limit, 0.9 / len(held))
    positions = {name: round(1e5 * float(w) / prices[name], 4) for name, w in zip(held, shares, strict=True)}
    worth = sum(units * prices[name] for name, units in positions.items())
    cash = round(1e5 - worth, 2)
    return Portfolio(currency="USD", cash=cash, nav=round(cash + worth, 2), positions=positions)


COMPOSERS = ("momentum", "contrarian", "minimum-variance", "equal-weight", "steward")
STYLES = ("alder", "birch", "cedar", "dogwood", "elder")


def honest_decision(seed: int, agent: str = "momentum", *, text: str | None = None) -> tuple[Context, Decision]:
    """What a reference agent decides on the context of a seed, or the same decision with another text."""
    context = made_context(seed)
    opening = signature(STYLES[COMPOSERS.index(agent)])
    draft = RULES[f"reference/{agent}"](observe(context), opening)
    decision = Decision(
        record_id=f"{agent}-{seed}", episode_id=f"made-{seed}", step=1, cluster=f"regime {seed % 5}",
        decided_at=context.cutoff + timedelta(seconds=5), agent=Agent(id=agent, family=f"ref-{agent}"),
        context_id=content_id(context), actions=draft.orders, format="orders-v1",
        rationales=(Rationale(text=draft.text if text is None else text, kind="summary"),),
        provenance=Provenance(source="test"), confidence=draft.confidence,
    )  # fmt: skip
    return context, decision
