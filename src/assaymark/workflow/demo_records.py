"""The demo's own records: an invented market, what could be seen of it, and what the reference agents decided.

Nothing here is real. Instruments, prices and economic figures are drawn from a seed and dated in the 2040s, so that no
model can know them and nobody can take them for history. The decisions are honest: each agent computes from the
context that its record names, which ends at the cutoff.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from assaymark.agents import REFERENCE_AGENTS
from assaymark.records import Constraint, Context, Decision, Fact, Instrument, Portfolio, Provenance, Series, content_id
from assaymark.workflow.demo_prompt import demo_prompt

Floats = npt.NDArray[np.float64]

DEMO_SEED = 2041
"""The seed of the records that the demo ships."""

WARM_UP = 64
"""Closes before the first decision of a regime: enough for every trailing window."""

STEP = 5
"""Sessions from one decision to the next."""

_SHOWN_BARS = 61  # sixty returns, as in ValueBlindBench section 3.2
_FIRST_DAY = "2041-01-02"
_CLOSE = timedelta(hours=21)
_THINKING = timedelta(minutes=20)
_SESSIONS_PER_YEAR = 252
_DAY_S = 86_400
_SOURCE = "assaymark demo"


@dataclass(frozen=True, slots=True)
class Climate:
    """How one asset class behaves in a regime: drift and volatility a year, and the pull of the common factor."""

    drift: float
    volatility: float
    pull: float


@dataclass(frozen=True, slots=True)
class Regime:
    """A stretch of invented history: a climate for each class, and each economic figure from its start to its end.

    ``policy_rate`` and ``inflation_yoy`` are percent, ``credit_spread`` is bps.
    """

    name: str
    climates: dict[str, Climate]
    policy_rate: tuple[float, float]
    inflation_yoy: tuple[float, float]
    credit_spread: tuple[float, float]


@dataclass(frozen=True, slots=True)
class RegimePath:
    """The market in one regime: ``closes`` of shape (n_sessions, n_instruments), ``times`` of their bars, and
    ``economy`` of shape (n_cycles, 3) with policy rate, inflation and credit spread.
    """

    regime: Regime
    times: tuple[datetime, ...]
    closes: Floats
    economy: Floats


def _climates(*values: tuple[float, float, float]) -> dict[str, Climate]:
    classes = ("equity", "bond", "commodity", "real_estate", "cash")
    return {name: Climate(*value) for name, value in zip(classes, values, strict=True)}


REGIMES: tuple[Regime, ...] = (
    Regime(
        "calm-advance",
        _climates((0.16, 0.10, 0.7), (0.03, 0.04, -0.1), (0.04, 0.14, 0.2), (0.10, 0.12, 0.6), (0.02, 0.001, 0.0)),
        policy_rate=(2.0, 2.5),
        inflation_yoy=(2.1, 2.4),
        credit_spread=(105, 90),
    ),
    Regime(
        "late-rally",
        _climates((0.30, 0.17, 0.6), (-0.03, 0.05, 0.1), (0.25, 0.22, 0.4), (0.05, 0.16, 0.5), (0.035, 0.001, 0.0)),
        policy_rate=(3.5, 4.25),
        inflation_yoy=(3.4, 4.3),
        credit_spread=(85, 95),
    ),
    Regime(
        "range-bound",
        _climates((0.00, 0.12, 0.6), (0.02, 0.05, -0.2), (0.00, 0.18, 0.2), (-0.02, 0.13, 0.5), (0.04, 0.001, 0.0)),
        policy_rate=(4.25, 4.25),
        inflation_yoy=(3.2, 2.9),
        credit_spread=(140, 150),
    ),
    Regime(
        "rate-shock",
        _climates((-0.18, 0.20, 0.7), (-0.15, 0.09, 0.5), (0.22, 0.25, 0.1), (-0.25, 0.22, 0.7), (0.045, 0.001, 0.0)),
        policy_rate=(4.5, 6.0),
        inflation_yoy=(5.2, 7.1),
        credit_spread=(160, 240),
    ),
    Regime(
        "sell-off",
        _climates((-0.75, 0.38, 0.9), (0.10, 0.10, -0.4), (-0.45, 0.34, 0.7), (-0.60, 0.33, 0.8), (0.03, 0.001, 0.0)),
        policy_rate=(3.75, 2.0),
        inflation_yoy=(2.6, 1.8),
        credit_spread=(260, 520),
    ),
    Regime(
        "rebound",
        _climates((0.60, 0.24, 0.8), (0.06, 0.06, 0.1), (0.35, 0.26, 0.6), (0.40, 0.24, 0.7), (0.01, 0.001, 0.0)),
        policy_rate=(1.25, 1.0),
        inflation_yoy=(1.6, 1.9),
        credit_spread=(390, 210),
    ),
)
"""The six regimes; their names are the clusters that inference resamples."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """An invented instrument and how it departs from its class: shares of its drift and of its volatility."""

    instrument: Instrument
    drift: float = 1.0
    volatility: float = 1.0


def _listed(short: str, rest: str, asset_class: str, drift: float = 1.0, volatility: float = 1.0) -> _Listed:
    name = f"{short} {rest}"
    return _Listed(
        Instrument(id=short.upper(), name=name, asset_class=asset_class, aliases=(short,)), drift, volatility
    )


UNIVERSE: tuple[_Listed, ...] = (
    _listed("Alder", "Broad Equity", "equity"),
    _listed("Briar", "Growth Equity", "equity", 1.3, 1.35),
    _listed("Cobnut", "Value Equity", "equity", 0.7, 0.9),
    _listed("Dunlin", "Sovereign Bonds", "bond"),
    _listed("Egret", "Corporate Bonds", "bond", 1.1, 1.25),
    _listed("Flintrock", "Metals", "commodity"),
    _listed("Galewood", "Energy", "commodity", 1.2, 1.4),
    _listed("Heathfield", "Property", "real_estate"),
    _listed("Ivory", "Treasury Bills", "cash"),
)
"""The invented instruments; the first is the benchmark of the others."""

CONSTRAINTS: tuple[Constraint, ...] = (
    Constraint(kind="min_holdings", limit=3.0, unit="count"),
    Constraint(kind="max_holdings", limit=5.0, unit="count"),
    Constraint(kind="min_weight", limit=0.05, unit="nav", scope="holding"),
    Constraint(kind="max_weight", limit=0.40, unit="nav", scope="holding"),
    Constraint(kind="weight_increment", limit=0.05, unit="nav", scope="holding"),
)
"""The rules every agent is given."""


def demo_records(*, seed: int = DEMO_SEED, cycles_per_regime: int = 8) -> tuple[list[Decision], dict[str, Context]]:
    """The demo's decisions, and the contexts they name.

    Equal arguments give equal bytes. Each of the six regimes is a cluster of ``cycles_per_regime`` weekly decisions;
    every reference agent decides on every context.

    Parameters
    ----------
    seed : int
        Seeds the whole market.
    cycles_per_regime : int
        Decisions per agent and regime, at least 1.

    Returns
    -------
    decisions, contexts
        In order of regime, cycle and agent; contexts by their content id.

    Examples
    --------
    >>> decisions, contexts = demo_records(cycles_per_regime=1)
    >>> len(decisions), len(contexts), decisions[0].agent.id, decisions[0].cluster
    (18, 6, 'momentum', 'calm-advance')
    """
    rng = np.random.default_rng(seed)
    return records_of(demo_market(rng, cycles_per_regime=cycles_per_regime))


def records_of(paths: Sequence[RegimePath]) -> tuple[list[Decision], dict[str, Context]]:
    """What the reference agents decide along some paths, and the contexts they decide on."""
    decisions: list[Decision] = []
    contexts: dict[str, Context] = {}
    for path in paths:
        for step, context in enumerate(_contexts(path), start=1):
            name = content_id(context)
            contexts[name] = context
            decisions += _decide(path.regime.name, step, context, name)
    return decisions, contexts


def demo_market(rng: np.random.Generator, *, cycles_per_regime: int = 8) -> tuple[RegimePath, ...]:
    """Daily closes and economic figures for every regime, one after the other in time.

    Each regime starts its prices anew at 100 with a warm-up of its own, so that clusters share no window.

    Raises
    ------
    ValueError
        ``cycles_per_regime`` is below 1.
    """
    if cycles_per_regime < 1:
        raise ValueError(f"cycles_per_regime must be at least 1 (got {cycles_per_regime})")
    sessions = WARM_UP + STEP * cycles_per_regime
    paths = []
    for number, regime in enumerate(REGIMES):
        days = np.busday_offset(_FIRST_DAY, np.arange(number * sessions, (number + 1) * sessions), roll="forward")
        times = tuple(datetime.fromisoformat(str(day)).replace(tzinfo=UTC) + _CLOSE for day in days)
        paths.append(
            RegimePath(regime, times, _closes(regime, sessions, rng), _economy(regime, cycles_per_regime, rng))
        )
    return tuple(paths)


def _closes(regime: Regime, sessions: int, rng: np.random.Generator) -> Floats:
    """Closes of shape (sessions, n_instruments), rounded to the cent as a venue would print them."""
    climates = [regime.climates[item.instrument.asset_class] for item in UNIVERSE]
    pull = np.array([climate.pull for climate in climates])
    drift = np.array([c.drift * item.drift for c, item in zip(climates, UNIVERSE, strict=True)])
    volatility = np.array([c.volatility * item.volatility for c, item in zip(climates, UNIVERSE, strict=True)])
    market = rng.standard_normal((sessions - 1, 1))
    sectors = rng.standard_normal((sessions - 1, len(regime.climates)))
    columns = [list(regime.climates).index(item.instrument.asset_class) for item in UNIVERSE]
    own = np.sqrt(0.5) * (sectors[:, columns] + rng.standard_normal((sessions - 1, len(UNIVERSE))))
    shocks = pull * market + np.sqrt(1.0 - pull**2) * own
    returns = drift / _SESSIONS_PER_YEAR + volatility / np.sqrt(_SESSIONS_PER_YEAR) * shocks
    paths = 100.0 * np.vstack([np.ones(len(UNIVERSE)), np.cumprod(1.0 + returns, axis=0)])
    return np.asarray(np.round(paths, 2), dtype=np.float64)


def _economy(regime: Regime, cycles: int, rng: np.random.Generator) -> Floats:
    """Policy rate (quarter points), inflation (tenths) and credit spread (whole bps) for every cycle."""
    along = np.linspace(0.0, 1.0, cycles)[:, None]
    ends = np.array([regime.policy_rate, regime.inflation_yoy, regime.credit_spread], dtype=np.float64)
    level = ends[:, 0] + along * (ends[:, 1] - ends[:, 0]) + rng.standard_normal((cycles, 3)) * (0.0, 0.1, 6.0)
    grid = np.array([0.25, 0.1, 1.0])
    return np.asarray(np.round(np.round(level / grid) * grid, 2), dtype=np.float64)


def _contexts(path: RegimePath) -> Iterator[Context]:
    """The contexts of one regime: each made from the closes up to its cutoff, and nothing later."""
    for cycle in range(len(path.economy)):
        last = WARM_UP - 1 + STEP * cycle
        yield _context(path.times[: last + 1], path.closes[: last + 1], path.economy[cycle])


def _context(times: tuple[datetime, ...], closes: Floats, economy: Floats) -> Context:
    """What could be seen at the last of ``times``."""
    cutoff = times[-1]
    facts = (*_economic_facts(economy, cutoff), *_market_facts(closes, cutoff))
    portfolio = _portfolio(closes[-1])
    instruments = tuple(item.instrument for item in UNIVERSE)
    return Context(
        completeness="complete",
        cutoff=cutoff,
        cutoff_source="close of the last bar",
        prompt=demo_prompt(cutoff, facts, instruments, portfolio, CONSTRAINTS),
        facts=facts,
        series=tuple(
            Series(
                instrument=item.id,
                interval_s=_DAY_S,
                times=times[-_SHOWN_BARS:],
                close=tuple(closes[-_SHOWN_BARS:, column].tolist()),
            )
            for column, item in enumerate(instruments)
        ),
        instruments=instruments,
        portfolio=portfolio,
        constraints=CONSTRAINTS,
    )


def _economic_facts(economy: Floats, cutoff: datetime) -> tuple[Fact, ...]:
    """The economic figures, each published some days before the cutoff."""
    rate, inflation, spread = economy.tolist()
    rows = (
        ("policy_rate", rate, "percent", 6, f"The policy rate stands at {rate:.2f}%."),
        ("inflation_yoy", inflation, "percent", 9, f"Inflation ran at {inflation:.1f}% over the year."),
        ("credit_spread", spread, "bps", 1, f"The credit spread closed at {spread:.0f} bps."),
    )
    return tuple(
        Fact(
            id=f"economy.{field}",
            instrument="",
            field=field,
            value=value,
            unit=unit,
            available_at=cutoff - timedelta(days=age),
            as_of=cutoff - timedelta(days=age),
            source=_SOURCE,
            note=note,
        )
        for field, value, unit, age, note in rows
    )


def _market_facts(closes: Floats, cutoff: datetime) -> Iterator[Fact]:
    """Every market figure of every instrument at the cutoff."""
    table = market_figures(closes)
    for column, item in enumerate(UNIVERSE):
        for field, (unit, values) in table.items():
            yield Fact(
                id=f"{item.instrument.id}.{field}",
                instrument=item.instrument.id,
                field=field,
                value=float(values[column]),
                unit=unit,
                available_at=cutoff,
                as_of=cutoff,
                source=_SOURCE,
            )


def market_figures(closes: Floats) -> dict[str, tuple[str, Floats]]:
    """Unit and values of each market figure, from closes up to and including the cutoff.

    Returns over 5, 21 and 63 sessions; volatility over 21 sessions, annualised; the deepest fall from a peak, and beta
    and correlation to the first instrument, over 63 sessions. Ratios, to six places.

    Parameters
    ----------
    closes : array of shape (n_sessions, n_instruments)
        At least 64 sessions.
    """
    window = closes[-64:]
    daily = window[1:] / window[:-1] - 1.0
    spread = daily - daily.mean(axis=0)
    cross, own = spread[:, [0]].T @ spread, (spread**2).sum(axis=0)
    figures = {
        "price": ("price", closes[-1]),
        "return_5s": ("ratio", closes[-1] / closes[-6] - 1.0),
        "return_21s": ("ratio", closes[-1] / closes[-22] - 1.0),
        "return_63s": ("ratio", closes[-1] / closes[-64] - 1.0),
        "volatility_21s": ("ratio", daily[-21:].std(axis=0, ddof=1) * np.sqrt(_SESSIONS_PER_YEAR)),
        "max_drawdown_63s": ("ratio", (window / np.maximum.accumulate(window, axis=0) - 1.0).min(axis=0)),
        "beta_63s": ("multiple", cross[0] / own[0]),
        "corr_63s": ("multiple", cross[0] / np.sqrt(own[0] * own)),
    }
    return {field: (unit, np.round(values, 6) + 0.0) for field, (unit, values) in figures.items()}


def _portfolio(prices: Floats) -> Portfolio:
    """A standing book: the same units and cash in every context, at the latest prices."""
    cash, positions = 40_000.0, {"ALDER": 350.0, "DUNLIN": 250.0}
    ids = [item.instrument.id for item in UNIVERSE]
    value = sum(units * float(prices[ids.index(name)]) for name, units in positions.items())
    return Portfolio(currency="USD", cash=cash, nav=round(cash + value, 2), positions=positions)


def _decide(regime: str, step: int, context: Context, name: str) -> list[Decision]:
    """Every reference agent's decision on one context."""
    return [
        agent.decide(
            context,
            record_id=f"demo-{regime}-{step:02d}-{agent.name}",
            episode_id=f"demo-{regime}",
            step=step,
            cluster=regime,
            decided_at=context.cutoff + _THINKING,
            format="demo-v1",
            provenance=Provenance(source=_SOURCE),
            context_id=name,
        )
        for agent in REFERENCE_AGENTS.values()
    ]
