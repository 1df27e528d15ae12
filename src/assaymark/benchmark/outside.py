"""Agents of one's own in the benchmark: a Python callable, or whatever answers at an address.

They are sent what a study sends them, a context as JSON, whose prompt is that of the stage or the question. Beside it
the context has the market and the portfolio, or what a question states, as numbers. What they answer is read like any
other reply: JSON of the schema that comes with the request, or lines as the prompt asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any, Final

import numpy as np

from assaymark.benchmark.panel import Known
from assaymark.benchmark.profiles import Profile
from assaymark.benchmark.snapshot import PortfolioState
from assaymark.benchmark.stages import Signal, Stage
from assaymark.engine.calls import CallSpec, Message, Text
from assaymark.engine.models.exchange import FORMAT, AgentRequest, QuestionContext
from assaymark.market import Listing
from assaymark.protocol import AgentSpec
from assaymark.records import JSON, Constraint, Context, Fact, Portfolio, Series, canonical_json

NEUTRAL_DAY: Final = date(2000, 1, 3)
"""The day of a request whose prompt states none."""

FIRST_NAV: Final = 100_000
"""The net asset value that every episode begins with, as prompts show it (figure 25)."""

ANSWER_SCHEMA: Final[Mapping[str, JSON]] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
}
"""The answer to a question: what the prompt asks to be written after ``ANSWER:``."""

_CLOSE: Final = time(21, 0, tzinfo=UTC)
_DAY_S: Final = 86_400
_SOURCE: Final = "the close of the decision day"


@dataclass(frozen=True, slots=True)
class OwnNumbers:
    """The numbers of one call that are not the market's; ``held`` and what follows it are of S3 alone."""

    stage: Stage
    horizon: int | None = None
    views: Mapping[str, float] = field(default_factory=dict)
    signals: Mapping[str, Signal] = field(default_factory=dict)
    held: PortfolioState | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    closes: Mapping[str, float] = field(default_factory=dict)
    profile: Profile | None = None
    cost_bps: float = 0.0

    def members(self) -> dict[str, JSON | Portfolio | tuple[Constraint, ...] | Mapping[str, float]]:
        """The members of a `MarketContext` that they fill."""
        held = {name: weight for name, weight in self.weights.items() if weight > 0}
        found = {"stage": self.stage, "horizon_days": self.horizon, "views": self.views, "signals": self.signals}
        return {**found, "weights": held, "portfolio": self._portfolio(held), "constraints": tuple(self._constraints())}

    def _portfolio(self, held: Mapping[str, float]) -> Portfolio | None:
        """Units at the last close; what has no close on the day is in ``weights`` alone."""
        if self.held is None:
            return None
        nav = self.held.nav * FIRST_NAV
        units = {name: weight * nav / self.closes[name] for name, weight in held.items() if name in self.closes}
        return Portfolio(currency="USD", cash=nav * max(1.0 - sum(held.values()), 0.0), nav=nav, positions=units)

    def _constraints(self) -> Iterator[Constraint]:
        if self.profile is None:
            return
        one = self.profile
        yield Constraint(kind="max_weight", limit=one.equity_cap, unit="nav", scope="equity and crypto")
        yield Constraint(kind="min_weight", limit=one.bond_floor, unit="nav", scope="bond and cash")
        yield Constraint(kind="max_drawdown", limit=one.drawdown_tolerance, unit="ratio")
        yield Constraint(kind="value_at_risk_95", limit=one.var_limit, unit="ratio")
        yield Constraint(kind="fee", limit=self.cost_bps, unit="bps", scope="order")


def outside_call(
    agent: AgentSpec,
    prompt: str,
    reply_schema: Mapping[str, JSON],
    template: str,
    day: date = NEUTRAL_DAY,
    *,
    market: tuple[OwnNumbers, Text] | None = None,
    asked: tuple[str, Mapping[str, JSON]] | None = None,
) -> CallSpec:
    """The call that puts a prompt to an agent of its own.

    Parameters
    ----------
    agent : AgentSpec
    prompt : str
        The text that any other model would be sent.
    reply_schema : mapping
        JSON Schema of the answer.
    template : str
        sha256 of the prompt's template.
    day : date
        Of the decision; nothing in the prompt is later than its close.
    market : tuple of OwnNumbers and Text, optional
        The numbers of a stage: its own, and `market_numbers` of the date.
    asked : tuple of str and mapping, optional
        The template of a question and the numbers that it states.

    Examples
    --------
    >>> agent = AgentSpec(name="mine", family="mine", model="python/mine.agents:decide")
    >>> "ANSWER" in outside_call(agent, "Say ANSWER: yes", ANSWER_SCHEMA, "0" * 64).messages[0].text
    True
    """
    cutoff = datetime.combine(day, _CLOSE)
    about: dict[str, Any] = {
        "completeness": "complete", "cutoff": cutoff, "cutoff_source": _SOURCE, "prompt": prompt,
    }  # fmt: skip
    if market is None:
        context = Context(**about) if asked is None else QuestionContext(**about, template=asked[0], given=asked[1])
        parts = [canonical_json(AgentRequest(context=context, reply_schema=reply_schema))]
    else:
        own, numbers = market
        # One object in three texts, so that the market of a date is kept once however many calls show it.
        frame = canonical_json({"format": FORMAT, "reply_schema": reply_schema})
        profile = None if own.profile is None else own.profile.text
        parts = [
            f'{frame[:-1]},"context":{{',
            f"{canonical_json({**about, **own.members(), 'profile': profile})[1:-1]},",
            f"{numbers.text}}}}}",
        ]
    return CallSpec(
        model=agent.model,
        messages=(Message("user", tuple(map(Text.of, parts))),),
        template=template,
        seed=agent.seed,
        args=dict(agent.args),
    )


def market_numbers(known: Known, listings: Sequence[Listing]) -> Text:
    """The market of a decision date as members of a `MarketContext`: the same text for every stage, profile and agent.

    Parameters
    ----------
    known : Known
    listings : sequence of Listing
        As they read on the date.
    """
    at = datetime.combine(known.day, _CLOSE)
    places = {one.id: one for one in listings}
    times = tuple(datetime.combine(day, _CLOSE) for day in known.times.tolist())
    series = tuple(
        Series(instrument=name, interval_s=_DAY_S, times=times, close=tuple(closes))
        for name, closes in zip(known.tickers, known.closes.T.tolist(), strict=True)
    )
    members = {
        "instruments": [places[name].as_record() for name in known.tickers],
        "series": series,
        "returns": np.round(known.returns, 10).tolist(),
        "correlations": np.round(known.correlation, 8).tolist(),
        "facts": list(_facts(known, at)),
    }
    return Text.of(canonical_json(members)[1:-1])


def _facts(known: Known, at: datetime) -> Iterator[Fact]:
    """What cannot be computed from the prices: macro series, and of an asset its regime, beta and duration."""

    def fact(instrument: str, name: str, value: float | str | None, unit: str, note: str = "") -> Iterator[Fact]:
        if value is not None:
            id = f"{instrument or 'macro'}.{name}"
            yield Fact(id=id, instrument=instrument, field=name, value=value, unit=unit, available_at=at, note=note)

    for series in known.macro:
        yield from fact("", series.id, series.value, series.unit, series.title)
    for one in known.lines:
        yield from fact(one.ticker, "regime", one.regime, "text")
        yield from fact(one.ticker, "beta", one.beta, "ratio")
        yield from fact(one.ticker, "duration", one.duration, "years")
