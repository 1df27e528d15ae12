"""Built-in rule-based agents: they parse the rendered prompt, compute, and reply in the same format as any model.

They receive the same calls and know nothing but the prompt. Their planted properties are documented (`planted_words`),
so that a study of them has known results.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from assaymark.engine.calls import BuiltInModel, CallSpec
from assaymark.errors import InputError, ModelError, Problem
from assaymark.portfolio.broker import Settlement, audit, fee_of, settle
from assaymark.portfolio.optimisers import min_variance
from assaymark.prompting import SIGNATURES, read_material, sections, signature, with_opening
from assaymark.records import Action, Constraint, Context, Portfolio
from assaymark.text import listing

Floats = npt.NDArray[np.float64]

_FEWEST_BARS = 20


@dataclass(frozen=True, slots=True)
class Asset:
    """Features of one instrument, as stated in the context or computed from its bars; returns are ratios.

    ``hour`` and ``quarter`` are the returns over the whole window and 15 minutes; ``busy`` is the volume of the last 15
    minutes as a multiple of its mean. ``moves`` are the simple one-minute returns, ``low`` the low of the window.
    """

    id: str
    price: float
    hour: float
    quarter: float
    volatility: float
    busy: float
    low: float
    moves: Floats


@dataclass(frozen=True)
class Observation:
    """Inputs of a composer: assets, the current portfolio, its weights (n_assets,), and the constraints."""

    assets: tuple[Asset, ...]
    book: Portfolio
    constraints: tuple[Constraint, ...]
    minutes: int
    prices: Mapping[str, float]
    before: Settlement
    weights: Floats

    def asset(self, name: str) -> Asset:
        """Return the asset with this id."""
        return next(asset for asset in self.assets if asset.id == name)

    def limit(self, kind: str, default: float) -> float:
        """Return the limit of a kind of constraint, or the default."""
        return next((rule.limit for rule in self.constraints if rule.kind == kind), default)

    def after(self, actions: Sequence[Action]) -> Settlement:
        """Return the portfolio after orders, including fees."""
        return settle(self.book, self.prices, actions, fee_bps=fee_of(self.constraints))


def observe(context: Context) -> Observation:
    """Build the observation of a context of minute bars; raises `InputError` with every missing input."""
    bars = {series.instrument: series for series in context.series}
    problems = [
        Problem(f"series.{item.id}", f"at least {_FEWEST_BARS} bars with positive prices are needed")
        for item in context.instruments
        if item.id not in bars
        or len(bars[item.id].close) < _FEWEST_BARS
        or not all(0 < price < math.inf for price in bars[item.id].close)
    ]
    if not context.instruments:
        problems.append(Problem("instruments", "at least one is needed to decide about (got 0)"))
    if context.portfolio is None:
        problems.append(Problem("portfolio", "a book is needed to give orders for (got none)"))
    if problems or context.portfolio is None:
        raise InputError("context", problems)
    stated: dict[str, dict[str, float]] = {}
    for fact in context.facts:
        if fact.instrument and not isinstance(fact.value, str):
            stated.setdefault(fact.instrument, {})[fact.field] = fact.value
    assets: list[Asset] = []
    for item in context.instruments:
        history = bars[item.id]
        closes = np.array(history.close)
        moves, n, end = np.diff(closes) / closes[:-1], closes.size, float(closes[-1])
        computed = {  # for features that the context does not state
            "price": end, f"return_{n}m": float(closes[-1] / closes[0] - 1),
            "return_15m": float(closes[-1] / closes[-16] - 1),
            f"volatility_{n}m": float(moves.std(ddof=1) * math.sqrt(n)), "volume_15m": 1.0,
        }  # fmt: skip
        price, hour, quarter, volatility, busy = (
            stated.get(item.id, {}).get(name, value) for name, value in computed.items()
        )
        assets.append(Asset(item.id, price, hour, quarter, volatility, busy, min(history.low or history.close), moves))
    minutes = min(len(bars[item.id].close) for item in context.instruments)
    prices = {asset.id: asset.price for asset in assets}
    before = settle(context.portfolio, prices, ())
    weights = np.array([before.weights.get(asset.id, 0.0) for asset in assets])
    return Observation(tuple(assets), context.portfolio, context.constraints, minutes, prices, before, weights)


# Formats of numbers, lists and portfolio arithmetic in the agents' texts; all printed figures are true.

_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def _percent(ratio: float, digits: int = 1) -> str:
    """Format a ratio as a percentage, never as negative zero."""
    text = f"{ratio * 100:.{digits}f}"
    return f"{text.lstrip('-') if float(text) == 0 else text}%"


def _fixed(number: float) -> str:
    """Format a dimensionless number with two decimals, never as negative zero."""
    return f"{round(number, 2) + 0.0:.2f}"


def _amount(amount: float) -> str:
    """Format an amount with two decimals and separators."""
    return f"{round(amount, 2) + 0.0:,.2f}"


def _change(ratio: float) -> str:
    """Format a return as direction and size, or "unchanged" if it rounds to zero."""
    size = _percent(abs(ratio), 2)
    return "unchanged" if float(size[:-1]) == 0 else f"{'up' if ratio > 0 else 'down'} {size}"


def _word(number: int) -> str:
    """Format a small count as a word."""
    return _COUNTS[number] if 0 <= number < len(_COUNTS) else str(number)


def _order_list(orders: Sequence[Action]) -> str:
    """Format orders as a list of phrases."""
    return listing([
        f"close {one.instrument}" if one.kind == "close" else f"{one.kind} {one.quantity:g} units of {one.instrument}"
        for one in orders
    ])  # fmt: skip


class Draft(NamedTuple):
    """Orders and their rationale. ``confidence`` lies in 0..1."""

    orders: tuple[Action, ...]
    text: str
    confidence: float


Composer = Callable[[Observation, str], Draft]
"""Function from an observation and the opening words of a house style to a draft; deterministic."""


def _paragraph(opening: str, *sentences: str) -> str:
    """Join non-empty sentences after the opening words of a style."""
    return with_opening(opening, " ".join(filter(None, sentences)))


_SMALLEST = 0.01
_SHRINK = 0.8
_TRIES = 12


def orders_towards(view: Observation, wanted: Floats) -> tuple[Action, ...]:
    """Return the largest changes towards the target weights that the constraints allow, sales first; none if small.

    The number of orders is limited, to the largest differences. If the portfolio after them violates a constraint, all
    orders shrink until it does not, in the end to no orders.
    """
    room = 1.0 - view.limit("min_cash", 0.0) - 0.005
    cap = view.limit("max_weight", 1.0) - 0.004
    target = np.minimum(wanted, cap)
    if (total := float(target.sum())) > room:
        target = target * (room / total)
    changes = target - view.weights
    most = int(view.limit("max_orders", 3))
    chosen = [int(i) for i in np.argsort(-np.abs(changes), kind="stable")[:most] if abs(changes[i]) >= _SMALLEST]
    for step in range(_TRIES):
        orders = []
        for i in sorted(chosen, key=lambda i: changes[i]):
            # Units are rounded down to four decimals, and a sale never exceeds the position.
            asset, change = view.assets[i], float(changes[i]) * _SHRINK**step
            units = math.floor(abs(change) * view.before.equity / asset.price * 1e4) / 1e4
            if change < 0:
                units = min(units, max(view.book.positions.get(asset.id, 0.0), 0.0))
            if units > 0:
                orders.append(Action(instrument=asset.id, kind="buy" if change > 0 else "sell", quantity=units))
        if all(check.kept for check in audit(view.after(orders), view.constraints)):
            return tuple(orders)
    return ()


def _holdings(view: Observation, after: Settlement) -> list[Asset]:
    """Return the holdings after the orders, largest first."""
    return sorted((view.asset(name) for name in after.weights), key=lambda asset: -after.weights[asset.id])


def _inverse_risk(view: Observation) -> Floats:
    """Return the inverse volatility of each instrument."""
    return np.asarray(1.0 / np.maximum([asset.volatility for asset in view.assets], 1e-4), dtype=np.float64)


_PLANTED: Final[dict[str, Any]] = tomllib.loads(
    (files("assaymark.agents") / "planted.toml").read_text(encoding="utf-8")
)
INVESTED: Final[Mapping[str, float]] = {
    name.partition("/")[2]: row["invested"] for name, row in _PLANTED.items() if "invested" in row
}
"""Share of equity that each agent invests; directional agents invest it in assets that moved in their direction."""


def compose_equal_weight(view: Observation, opening: str) -> Draft:
    """Compose equal weights; most of its texts have fewer than 60 words. Confidence is 0.55."""
    wanted = np.full(len(view.assets), INVESTED["equal-weight"] / len(view.assets))
    orders = orders_towards(view, wanted)
    rough = max(view.assets, key=lambda asset: asset.volatility)
    text = _paragraph(
        opening,
        f"Equal shares of {_percent(float(wanted[0]))} each.",
        f"Orders: {_order_list(orders)}." if orders else "No order is needed.",
        f"Roughest: {rough.id}, volatility {_percent(rough.volatility, 2)}.",
    )
    return Draft(orders, text, 0.55)


def compose_inverse_volatility(view: Observation, opening: str) -> Draft:
    """Compose inverse-volatility weights; says each limit and what would be reduced first. Confidence is 0.45."""
    calm = _inverse_risk(view)
    orders = orders_towards(view, INVESTED["inverse-volatility"] * calm / calm.sum())
    after = view.after(orders)
    assets, weights = _holdings(view, after), after.weights
    floor = _percent(view.limit("min_cash", 0.0))
    weights_text, risk = "Nothing is held.", ""
    if assets:
        first, rough = assets[0], max(assets, key=lambda asset: asset.volatility)
        shares = [
            f"{one.id} {_percent(weights[one.id])} ({_change(one.hour)}, volatility {_percent(one.volatility, 2)})"
            for one in assets
        ]
        weights_text = (
            f"Weights and moves over the hour: {listing(shares)}. Leverage {_fixed(after.leverage)} against a cap of "
            f"{_fixed(view.limit('max_leverage', 1.0))}. Largest position {first.id} at {_percent(weights[first.id])} "
            f"against a cap of {_percent(view.limit('max_weight', 1.0))}."
        )
        risk = (
            f"The main risk is {rough.id}: if its volatility of {_percent(rough.volatility, 2)} rises, it would be cut."
            f" If {first.id}, {_change(first.quarter)} over 15 minutes, falls further, so would that. A shock may hit "
            "all of them, but half could be sold."
        )
    text = _paragraph(
        opening, f"Calm decides the size: {_order_list(orders)}." if orders else "The sizes are right.", weights_text,
        f"Cash is {_percent(after.residual / after.equity)} of equity against a floor of {floor}.", risk,
        f"Confidence is {_fixed(0.45)}.",
    )  # fmt: skip
    return Draft(orders, text, 0.45)


def compose_minimum_variance(view: Observation, opening: str) -> Draft:
    """Compose the minimum-variance portfolio with half of the equity, the rest in cash. Confidence is 0.45."""
    moves = np.stack([asset.moves[-(view.minutes - 1) :] for asset in view.assets], axis=1)
    wanted = INVESTED["minimum-variance"] * min_variance(np.cov(moves, rowvar=False)).weights
    orders = orders_towards(view, wanted)
    calm, *_, rough = sorted(view.assets, key=lambda asset: asset.volatility)
    trades = _order_list(orders)
    weights, cap = view.after(orders).weights, _percent(view.limit("max_weight", 1.0))
    positions = [f"{name} {_percent(weights[name])}" for name in sorted(weights, key=lambda name: -weights[name])]
    text = _paragraph(
        opening,
        f"Risk decides the book, not direction. {calm.id} is the calmest instrument, with volatility of "
        f"{_percent(calm.volatility, 2)} over the hour; {rough.id} is the roughest, with "
        f"{_percent(rough.volatility, 2)}.",
        f"To lower the variance: {trades}." if orders else "The book is near least variance, so nothing is traded.",
        f"After that the positions are {listing(positions)}, and the largest stays below the cap of {cap}."
        if positions
        else "Nothing is held.",
        f"Losses could come together in a shock; {rough.id} would be cut first if its volatility doubles.",
        "An hour of prices says little about the next one, so half stays in cash.",
        f"Confidence is {_fixed(0.45)}.",
    )
    return Draft(orders, text, 0.45)


def compose_steward(view: Observation, opening: str) -> Draft:
    """Compose inverse-volatility weights tilted to what rose; the memo covers the rubric. Confidence is 0.45."""
    rank = np.argsort(np.argsort([asset.hour for asset in view.assets])) / max(len(view.assets) - 1, 1)
    tilted = np.sqrt(_inverse_risk(view)) * (0.75 + 0.5 * rank)
    orders = orders_towards(view, INVESTED["steward"] * np.asarray(tilted / tilted.sum(), dtype=np.float64))
    after = view.after(orders)
    assets, weights = _holdings(view, after), after.weights
    if orders:
        headline = f"The book moves in small steps: {_order_list(orders)}."
    else:
        headline = "The book is close to where it should be, and trading would only cost fees, so nothing is traded."
    holdings = [
        f"{one.id} is held at a weight of {_percent(weights[one.id])}: it is {_change(one.hour)} over the hour with "
        f"volatility of {_percent(one.volatility, 2)}, a move that {'may go on' if one.hour > 0 else 'could turn'}."
        for one in assets
    ]
    left_out = [
        f"{asset.id} is left out instead, although it is {_change(asset.quarter)} over 15 minutes."
        for asset in view.assets
        if asset.id not in weights
    ]
    # The arithmetic of the portfolio after the orders, one sentence per limit.
    sums = [
        f"Cash {_amount(after.cash)} less cost {_amount(after.cost)} leaves {_amount(after.residual)}.",
        f"Exposure {_amount(after.exposure)} on equity of {_amount(after.equity)} is {_percent(after.leverage)}.",
        f"Leverage {_fixed(after.leverage)} against a cap of {_fixed(view.limit('max_leverage', 1.0))}.",
    ]
    if largest := max(weights, key=lambda name: weights[name], default=""):
        share, cap = _percent(weights[largest]), _percent(view.limit("max_weight", 1.0))
        sums.append(f"Largest position {largest} at {share} against a cap of {cap}.")
    floor = _percent(view.limit("min_cash", 0.0))
    sums.append(f"Cash is {_percent(after.residual / after.equity)} of equity against a floor of {floor}.")
    risk = "Nothing is held, so nothing can be lost but the chance."
    if assets:
        first, rough = assets[0], max(assets, key=lambda asset: asset.volatility)
        risk = (
            f"The main risk is {rough.id}, the most volatile position with {_percent(rough.volatility, 2)} over the "
            f"hour; a shock there would hurt most. If {first.id} falls below {first.low:.4f}, its low of the hour, its "
            f"weight of {_percent(weights[first.id])} would be cut in half; unless volume holds up, the tilt is likely "
            f"to be taken back. Doubt is large after one hour, so confidence is {_fixed(0.45)}."
        )
    parts = (_paragraph(opening, headline, *holdings), _paragraph("", *left_out), " ".join(sums), risk)
    return Draft(orders, "\n\n".join(filter(None, parts)), 0.45)


class AgentDirection(NamedTuple):
    """Direction of an agent, +1 for momentum or -1 for contrarian, and its phrases."""

    sign: int
    moved: str
    first: str
    even: str
    last: str
    lean: str
    danger: str


# Mirror images in rules and sentences: one trades and describes rises as the other does falls.
MOMENTUM: Final = AgentDirection(+1, "rose", "leads", "best", "lags", "follow that strength", "A reversal is the risk")
CONTRARIAN: Final = AgentDirection(
    -1, "fell", "is cheapest", "weakest", "is stretched", "lean against that weakness", "A further drop is the risk"
)


def compose_direction(way: AgentDirection, view: Observation, opening: str) -> Draft:
    """Compose weights of assets that moved the agent's way, by return over volatility, and more sure if many did."""
    pace = np.array([max(way.sign * asset.quarter, 0.0) / max(asset.volatility, 1e-4) for asset in view.assets])
    wanted = INVESTED["momentum"] * pace / pace.sum() if pace.sum() > 0 else np.zeros(pace.size)
    orders = orders_towards(view, wanted)
    moved = sum(way.sign * asset.quarter > 0 for asset in view.assets)
    ordered = sorted(view.assets, key=lambda asset: -way.sign * asset.quarter)
    first, last = ordered[0], ordered[-1]
    confidence = round(0.5 + 0.2 * moved / len(view.assets), 2)
    trades = _order_list(orders)
    extreme = f"Even the {way.even} of them, {first.id}, is {_change(first.quarter)}."
    if way.sign * first.quarter > 0:
        busy = f"on {_fixed(first.busy)} times its mean volume"
        extreme = f"{first.id} {way.first}, {_change(first.quarter)} over 15 minutes {busy}."
    weights, limit = view.after(orders).weights, "No position is left."
    if weights:
        largest, cap = max(weights, key=lambda name: weights[name]), _percent(view.limit("max_weight", 1.0))
        share = _percent(weights[largest])
        limit = f"The largest position is {largest} at a weight of {share} against a cap of {cap}."
    text = _paragraph(
        opening,
        f"{_word(moved).capitalize()} of {_word(len(view.assets))} instruments {way.moved} over 15 minutes.",
        extreme,
        f"{last.id} {way.last}, {_change(last.quarter)} over 15 minutes.",
        f"The orders {way.lean}: {trades}." if orders else "The book already does, so nothing is traded.",
        *(
            f"{order.instrument} {'is added to' if order.kind == 'buy' else 'is reduced'} because it is "
            f"{_change(view.asset(order.instrument).hour)} over the hour."
            for order in orders
        ),
        limit,
        f"{way.danger}: volatility of {first.id} is {_percent(first.volatility, 2)} over the hour.",
        f"If the move fades, the position is likely to be reduced. Confidence is {_fixed(confidence)}.",
    )
    return Draft(orders, text, confidence)


# For daily bars the rules count bars, and phrases about minutes are replaced.

DAY_S: Final = 86_400

_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "15 minutes": "15 days",
        "over the hour": "over the days shown",
        "its low of the hour": "its low of the days shown",
        "An hour of prices says little about the next one": "A few weeks of prices say little about the next ones",
        "after one hour": "after so few days",
    }
)
_PHRASES: Final = re.compile("|".join(map(re.escape, _WORDS)))
_VOLUME: Final = re.compile(r" on [0-9.]+ times its mean volume")


COMPOSERS: Final[Mapping[str, Composer]] = MappingProxyType(
    {
        "reference/momentum": partial(compose_direction, MOMENTUM),
        "reference/contrarian": partial(compose_direction, CONTRARIAN),
        "reference/minimum-variance": compose_minimum_variance,
        "reference/equal-weight": compose_equal_weight,
        "reference/inverse-volatility": compose_inverse_volatility,
        "reference/steward": compose_steward,
    }
)
"""Rule-based agents by model name."""

MIXED: Final = "reference/mixed"
"""Agent that draws momentum or contrarian for each prompt, by its seed.

Two of them with different seeds are exchangeable: a planted tie, whatever the judges prefer.
"""

_MIXTURE = ("reference/momentum", "reference/contrarian")
_ARGUMENTS = ("style", "brief")


class ReferenceAgent(BuiltInModel):
    """Rule-based agent that replies like any model: it parses the context from the rendered prompt.

    The argument ``style`` sets its opening words; ``brief`` is the share of its texts, 0..1, that have only its orders
    (no amounts, numbers or reasons), drawn by seed and prompt.
    """

    def answer(self, call: CallSpec) -> str:
        """Return the orders and their rationale as JSON text."""
        if problems := agent_argument_problems(self.name, call.args):
            raise ModelError("; ".join(problems), retryable=False)
        prompt = "\n\n".join(call.shown())
        view, daily, volume = _observation(prompt)
        opening = signature(str(call.args.get("style", "")))
        rule = self.name if self.name != MIXED else _MIXTURE[_hash_byte(f"{call.seed}|{prompt}") % 2]
        orders, text, confidence = COMPOSERS[rule](view, opening)
        if _hash_byte(f"brief|{call.seed}|{prompt}") < 256 * float(call.args.get("brief", 0.0)):
            trades = [f"{order.kind} {order.instrument}" for order in orders]
            text = _paragraph(opening, f"Orders: {listing(trades)}." if trades else "No order is needed.")
        if daily:
            text = _PHRASES.sub(lambda match: _WORDS[match[0]], text)
            # Without volumes in the bars the text does not mention volume.
            text = text if volume else _VOLUME.sub("", text)
        named = [{"instrument": order.instrument, "side": order.kind, "quantity": order.quantity} for order in orders]
        return json.dumps({"orders": named, "rationale": text, "confidence": confidence})


def _hash_byte(name: str) -> int:
    """Return a number in 0..255, determined by the name."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[0]


def reference_agents() -> dict[str, ReferenceAgent]:
    """Return the built-in agents by model name, for registration."""
    return {name: ReferenceAgent(name) for name in (*COMPOSERS, MIXED)}


def agent_argument_problems(model: str, args: Mapping[str, Any]) -> list[str]:
    """Return the problems of a built-in agent's arguments; empty for other models."""
    if model not in COMPOSERS and model != MIXED:
        return []
    problems = [
        f"argument {name} is unknown (allowed: {', '.join(_ARGUMENTS)})" for name in args if name not in _ARGUMENTS
    ]
    if "style" in args and args["style"] not in SIGNATURES:
        problems.append(f"argument style must be one of {', '.join(SIGNATURES)} (got {args['style']!r})")
    share = args.get("brief", 0.0)
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0.0 <= share <= 1.0:
        problems.append(f"argument brief must be a share in 0..1 (got {share!r:.80})")
    return problems


@lru_cache(maxsize=64)
def _observation(prompt: str) -> tuple[Observation, bool, bool]:
    """Return the observation of a prompt, and True if its bars are daily and have volumes; cached for all agents."""
    context = read_material(sections(prompt))
    daily = any(series.interval_s == DAY_S for series in context.series)
    return observe(context), daily, any(series.volume for series in context.series)


@dataclass(frozen=True, slots=True)
class PlantedProperties:
    """Description of a built-in agent: its rule, and the planted properties that a study should find."""

    rule: str
    properties: tuple[str, ...]


def _percent_of(value: float) -> str:
    return f"{100 * value:.0f}\u00a0%"


WORDS: Final[Mapping[str, PlantedProperties]] = MappingProxyType(
    {
        name: PlantedProperties(
            row["rule"], tuple(text.format(invested=_percent_of(row.get("invested", 0))) for text in row["properties"])
        )
        for name, row in _PLANTED.items()
    }
)
"""Descriptions of the built-in agents by model name."""


def planted_words(model: str, args: Mapping[str, Any]) -> PlantedProperties | None:
    """Return the planted properties of an agent; None for a model that is not built in.

    The argument ``style`` is a house style, by whose opening words a judge may recognise the agent; ``brief`` is the
    share of its texts that have only its orders.
    """
    planted = WORDS.get(model)
    if planted is None:
        return None
    brief, style = float(args.get("brief", 0.0)), str(args.get("style", ""))
    more = [f"gives its orders and no reason in {_percent_of(brief)} of its texts"] if brief else []
    if opening := signature(style):
        more.append(f"its texts begin with “{opening}”, the words of the house style {style}")
    return PlantedProperties(planted.rule, (*planted.properties, *more)) if more else planted
