"""What a reference agent reads from a context: one row per instrument, the economy, the rules, and what is held."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from assaymark.agents.mandate import Floats, Mandate, read_mandate
from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.records import Context, Fact, Instrument, Series

_DAY_S = 86_400
_FEWEST_RETURNS = 20  # fewer daily returns say too little about a covariance
_NAMED = 5  # an error names this many instruments and counts the rest
_SCALES = {"ratio": 1.0, "percent": 0.01, "bps": 0.0001}
_RETURN = re.compile(r"return_(\d{1,4})([sdmy])")
_SESSIONS = {"s": 1.0, "d": 5 / 7, "m": 21.0, "y": 252.0}
_WORDS = {"s": "session", "d": "day", "m": "month", "y": "year"}


@dataclass(frozen=True, slots=True)
class Trailing:
    """A return up to the cutoff: its size as a ratio, its length in sessions, and how the length is said."""

    ratio: float
    sessions: float
    words: str


@dataclass(frozen=True, slots=True)
class Asset:
    """One instrument as the agent sees it. Ratios, not percent; None where the context does not say.

    ``volatility`` is annualised; ``drawdown`` is zero or negative; ``beta`` and ``correlation`` are against the
    benchmark.
    """

    id: str
    name: str
    short: str
    asset_class: str
    returns: tuple[Trailing, ...]
    volatility: float | None
    drawdown: float | None
    beta: float | None
    correlation: float | None


@dataclass(frozen=True, slots=True)
class Observation:
    """A context in the terms a rule-based agent computes with.

    ``economy`` maps a field of the facts about no instrument to its value in the fact's own unit; ``held`` maps
    instruments to units; ``daily`` holds simple daily returns of shape (n_returns, n_assets), or None when the
    context has no common daily series.
    """

    assets: tuple[Asset, ...]
    economy: Mapping[str, float]
    mandate: Mandate
    held: Mapping[str, float]
    daily: Floats | None

    @property
    def base(self) -> int:
        """Index of the benchmark: the first asset whose stated correlation to it is 1, else the first asset."""
        perfect = (i for i, asset in enumerate(self.assets) if asset.correlation is not None and asset.correlation == 1)
        return next(perfect, 0)

    @property
    def benchmark(self) -> Asset:
        """The asset that the others are compared with."""
        return self.assets[self.base]

    def volatilities(self) -> Floats:
        """Annualised volatility of every asset, shape (n_assets,).

        Raises
        ------
        NotMeasurableError
            The context states no volatility for an instrument, or a negative one.
        """
        unknown = [asset.id for asset in self.assets if asset.volatility is None or asset.volatility < 0]
        if unknown:
            more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
            named = ", ".join(unknown[:_NAMED])
            raise NotMeasurableError(f"the context states no usable volatility for {named}{more}")
        return np.array([asset.volatility for asset in self.assets], dtype=np.float64)


def observe(context: Context, *, decided_at: datetime) -> Observation:
    """Read a context as it could be read at ``decided_at``.

    Raises
    ------
    InputError
        The context holds something that could not be known yet, names no instrument, or has a rule or a number that
        cannot be read: every problem at once.
    """
    problems = _from_the_future(context, decided_at)
    if not context.instruments:
        problems.append(Problem("instruments", "at least one is needed to decide about (got 0)"))
    problems += _unreadable(context.facts)
    if problems:
        raise InputError("context", problems)
    return Observation(
        assets=tuple(_asset(item, _of(context, item.id)) for item in context.instruments),
        economy={fact.field: fact.value for fact in _of(context, "") if not isinstance(fact.value, str)},
        mandate=read_mandate(context.constraints),
        held=dict(context.portfolio.positions) if context.portfolio else {},
        daily=_daily_returns(context),
    )


def _of(context: Context, instrument: str) -> list[Fact]:
    """The facts about one instrument."""
    return [fact for fact in context.facts if fact.instrument == instrument]


def _from_the_future(context: Context, decided_at: datetime) -> list[Problem]:
    """Everything in the context that is later than the decision."""
    said = decided_at.isoformat()
    problems = [
        Problem(
            f"facts.{fact.id}", f"could not be known yet: available {fact.available_at.isoformat()}, decided {said}"
        )
        for fact in context.facts
        if fact.available_at > decided_at
    ]
    problems += [
        Problem(
            f"series.{item.instrument}", f"has a bar after the decision: {item.times[-1].isoformat()}, decided {said}"
        )
        for item in context.series
        if item.times and item.times[-1] > decided_at
    ]
    if context.cutoff > decided_at:
        problems.append(Problem("cutoff", f"is after the decision: {context.cutoff.isoformat()}, decided {said}"))
    return problems


def _unreadable(facts: tuple[Fact, ...]) -> list[Problem]:
    """Numbers that are no numbers, and returns or volatilities in a unit that is no fraction."""
    problems = []
    for fact in facts:
        if isinstance(fact.value, str):
            continue
        if not math.isfinite(fact.value):
            problems.append(Problem(f"facts.{fact.id}", f"must be a finite number (got {fact.value})"))
        elif (
            fact.instrument
            and fact.unit not in _SCALES
            and fact.field.startswith(("return_", "volatility", "max_drawdown"))
        ):
            problems.append(Problem(f"facts.{fact.id}", f"unit must be ratio, percent or bps (got {fact.unit!r})"))
    return problems


def _asset(instrument: Instrument, facts: list[Fact]) -> Asset:
    name = _plain(instrument.name) or _plain(instrument.id)
    return Asset(
        id=instrument.id,
        name=name,
        short=_plain(instrument.aliases[0]) if instrument.aliases else name,
        asset_class=_plain(instrument.asset_class),
        returns=_trailing(facts),
        volatility=_first(facts, "volatility"),
        drawdown=_first(facts, "max_drawdown"),
        beta=_first(facts, "beta"),
        correlation=_first(facts, "corr"),
    )


def _plain(text: str) -> str:
    """A name on one line and of a length that a sentence can carry."""
    return " ".join(text.split())[:60]


def _first(facts: list[Fact], prefix: str) -> float | None:
    """The first fact whose field begins with ``prefix``, as a ratio where it has such a unit."""
    for fact in facts:
        if fact.field.startswith(prefix) and not isinstance(fact.value, str):
            return fact.value * _SCALES.get(fact.unit, 1.0)
    return None


def _trailing(facts: list[Fact]) -> tuple[Trailing, ...]:
    """The trailing returns among ``facts``, shortest first."""
    found = []
    for fact in facts:
        match = _RETURN.fullmatch(fact.field)
        if match and not isinstance(fact.value, str):
            number, unit = int(match[1]), match[2]
            words = f"{number} {_WORDS[unit]}{'' if number == 1 else 's'}"
            found.append(Trailing(fact.value * _SCALES[fact.unit], number * _SESSIONS[unit], words))
    return tuple(sorted(found, key=lambda item: item.sessions))


def _daily_returns(context: Context) -> Floats | None:
    """Simple returns of the daily bars, if every instrument has the same ones."""
    by_id = {item.instrument: item for item in context.series if item.interval_s == _DAY_S}
    rows = [by_id[item.id] for item in context.instruments if item.id in by_id]
    if len(rows) < len(context.instruments) or not _usable(rows):
        return None
    closes = np.array([row.close for row in rows], dtype=np.float64).T
    return np.asarray(closes[1:] / closes[:-1] - 1.0, dtype=np.float64)


def _usable(rows: list[Series]) -> bool:
    """Whether the bars share their times, are many enough, and can be divided by."""
    first = rows[0].times
    return len(first) > _FEWEST_RETURNS and all(row.times == first and min(row.close) > 0 for row in rows)
