"""The arithmetic of a stated decision: sizes, forecasts, limits, and whether they fit together."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from assaymark.judging.reading import Cell, Shown
from assaymark.records import Constraint, Context, Instrument

_HELD = ("buy", "hold", "short", "target_weight")
_VOLATILITY = re.compile(r"(?:^|_)(?:vol|volatility|stdev|std)(?:_|$)")
_PORTFOLIO, _BENCHMARK, _ALPHA = (
    re.compile(rf"(?:^|[._])(?:expected_)?{what}(?:_expected)?(?:_return)?(?:_pct|_percent)?$")
    for what in ("portfolio", "benchmark", "alpha")
)
_ENDS = {"low": "low", "p10": "low", "base": "base", "p50": "base", "high": "high", "p90": "high"}
_TOTAL_SLACK = 0.005
_PRINTED = 0.00006
_SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Sizes:
    """How a decision is spread. ``effective`` holdings and groups are inverse Herfindahl numbers; ``volatility`` is
    the weighted mean rank, 0..1, of the holdings' stated volatility among all instruments."""

    effective: float | None
    largest: float | None
    groups: float | None
    volatility: float | None


@dataclass(frozen=True, slots=True)
class Forecasts:
    """How stated forecasts and sizes go together.

    ``order`` is the share of pairs of holdings in which the larger one has the higher forecast; ``edge`` the weight of
    holdings with a forecast above the benchmark's; ``ranges`` the share of stated ranges with low <= base <= high;
    ``arithmetic`` the share of stated sums that hold.
    """

    order: float | None
    edge: float | None
    ranges: float | None
    arithmetic: float | None


def held(shown: Shown) -> dict[str, float]:
    """Absolute weights by instrument of what the decision holds; equal ones where no weight is given at all."""
    actions = [action for action in shown.actions if action.kind in _HELD]
    weights: dict[str, float] = defaultdict(float)
    for action in actions:
        weights[action.instrument] += abs(action.weight or 0.0)
    if not math.fsum(weights.values()):
        return dict.fromkeys(weights, 1.0 / max(len(weights), 1))
    return {instrument: weight for instrument, weight in weights.items() if weight > 0}


# --- spread -----------------------------------------------------------------------------------------------------------


def sizes(holdings: Mapping[str, float], instruments: Mapping[str, Instrument], ranks: Mapping[str, float]) -> Sizes:
    """How the holdings are spread over instruments, groups and stated volatility."""
    total = math.fsum(holdings.values())
    if not total:
        return Sizes(None, None, None, None)
    shares = {item: weight / total for item, weight in holdings.items()}
    groups: dict[str, float] = defaultdict(float)
    for item, share in shares.items():
        known = instruments.get(item)
        groups[(known.group or known.asset_class or item) if known else item] += share
    ranked = {item: share for item, share in shares.items() if item in ranks}
    weight = math.fsum(ranked.values())
    return Sizes(
        effective=_effective(shares),
        largest=max(shares.values()),
        groups=_effective(groups),
        volatility=math.fsum(share * ranks[item] for item, share in ranked.items()) / weight if weight else None,
    )


def _effective(shares: Mapping[str, float]) -> float:
    """The inverse Herfindahl number."""
    return 1.0 / math.fsum(share * share for share in shares.values())


def volatility_ranks(context: Context) -> dict[str, float]:
    """For each instrument its mid-rank, 0..1, by stated volatility, averaged over the fields that state one."""
    fields: dict[str, dict[str, float]] = defaultdict(dict)
    for fact in context.facts:
        if fact.instrument and isinstance(fact.value, float) and _VOLATILITY.search(fact.field):
            fields[fact.field][fact.instrument] = fact.value
    ranks: dict[str, list[float]] = defaultdict(list)
    for values in fields.values():
        ordered = sorted(values.values())
        for instrument, value in values.items():
            ranks[instrument].append((bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered)))
    return {instrument: math.fsum(found) / len(found) for instrument, found in ranks.items()}


# --- forecasts --------------------------------------------------------------------------------------------------------


def forecasts(shown: Shown, holdings: Mapping[str, float], stated: Sequence[bool] = ()) -> Forecasts:
    """How the stated forecasts agree with the sizes and with each other; ``stated``: whether further sums hold."""
    expected = {
        action.instrument: action.expected_return for action in shown.actions if action.expected_return is not None
    }
    benchmark = _value(shown, _BENCHMARK)
    return Forecasts(
        order=_order(holdings, expected),
        edge=_edge(holdings, expected, benchmark or 0.0),
        ranges=_ranges(shown),
        arithmetic=_arithmetic(shown, holdings, expected, stated),
    )


def _value(shown: Shown, path: re.Pattern[str]) -> float | None:
    """A stated return by its path, as a ratio."""
    for name, value in shown.values.items():
        if isinstance(value, float) and path.search(name):
            return value / 100 if name.endswith(("pct", "percent")) else value
    return None


def _order(holdings: Mapping[str, float], expected: Mapping[str, float]) -> float | None:
    """Concordance of size and forecast over pairs of unequal size; equal forecasts count half."""
    known = [(weight, expected[item]) for item, weight in holdings.items() if item in expected]
    pairs = [(a, b) for a, b in combinations(known, 2) if abs(a[0] - b[0]) > _SLACK]
    if not pairs:
        return None
    return sum(_concordance(a, b) for a, b in pairs) / len(pairs)


def _concordance(a: tuple[float, float], b: tuple[float, float]) -> float:
    """1 where the larger has the higher forecast, 0 where it has the lower."""
    if abs(a[1] - b[1]) < _SLACK:
        return 0.5
    return float((a[0] > b[0]) == (a[1] > b[1]))


def _edge(holdings: Mapping[str, float], expected: Mapping[str, float], benchmark: float) -> float | None:
    """The weight share of holdings that are forecast to beat the benchmark."""
    known = {item: weight for item, weight in holdings.items() if item in expected}
    total = math.fsum(known.values())
    if not total:
        return None
    return math.fsum(weight for item, weight in known.items() if expected[item] > benchmark) / total


def _ranges(shown: Shown) -> float | None:
    """The share of stated ranges that are in order."""
    found = [_range(entry) for entries in shown.tables.values() for entry in entries]
    checked = [fine for fine in found if fine is not None]
    return sum(checked) / len(checked) if checked else None


def _range(entry: Mapping[str, Cell]) -> bool | None:
    """Whether low <= base <= high and low < high; None for what is no range."""
    ends = {}
    for name, value in entry.items():
        if isinstance(value, float):
            ends.update({_ENDS[word]: value for word in name.split("_") if word in _ENDS})
    if "low" not in ends or "high" not in ends:
        return None
    return ends["low"] <= ends.get("base", ends["low"]) <= ends["high"] and ends["low"] < ends["high"]


def _arithmetic(
    shown: Shown, holdings: Mapping[str, float], expected: Mapping[str, float], stated: Sequence[bool]
) -> float | None:
    """The share of sums that hold: weights make at most one, parts make the whole, whole less benchmark makes alpha.

    Sums are compared within half of the last digit of a percentage with two decimals, and a little.
    """
    checks = list(stated)
    if any(action.weight is not None for action in shown.actions):
        checks.append(math.fsum(holdings.values()) <= 1 + _TOTAL_SLACK)
    whole, benchmark, alpha = (_value(shown, path) for path in (_PORTFOLIO, _BENCHMARK, _ALPHA))
    if whole is not None and holdings and holdings.keys() <= expected.keys():
        parts = math.fsum(weight * expected[item] for item, weight in holdings.items())
        checks.append(abs(parts - whole) <= _PRINTED)
    if whole is not None and benchmark is not None and alpha is not None:
        checks.append(abs(whole - benchmark - alpha) <= _PRINTED)
    return sum(checks) / len(checks) if checks else None


# --- limits -----------------------------------------------------------------------------------------------------------


def legality(context: Context, shown: Shown, holdings: Mapping[str, float]) -> float | None:
    """The share of limits that the decision keeps, of those that can be checked from weights alone.

    Limits on anything but single holdings and the whole portfolio are left out: their exceptions are not in the
    prompt, and a breach must not be alleged on a guess.
    """
    if not any(action.weight is not None for action in shown.actions):
        return None
    checks = [fine for limit in context.constraints if (fine := _keeps(limit, holdings)) is not None]
    return sum(checks) / len(checks) if checks else None


def _keeps(limit: Constraint, holdings: Mapping[str, float]) -> bool | None:
    """Whether one limit is kept; None if it cannot be told."""
    if limit.scope not in ("portfolio", "holding") or not holdings:
        return None
    value, weights = limit.limit, list(holdings.values())
    checks = {
        "max_holdings": lambda: len(weights) <= value,
        "min_holdings": lambda: len(weights) >= value,
        "max_weight": lambda: max(weights) <= value + _SLACK,
        "min_weight": lambda: min(weights) >= value - _SLACK,
        "max_total_weight": lambda: math.fsum(weights) <= value + _TOTAL_SLACK,
        "weight_increment": lambda: all(abs(w / value - round(w / value)) < _SLACK for w in weights),
    }
    check = checks.get(limit.kind)
    return check() if check and value > 0 else None
