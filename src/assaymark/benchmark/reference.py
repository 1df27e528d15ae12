"""Built-in models of the benchmark: ten rules with planted properties that read only the prompt."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from types import MappingProxyType
from typing import Final, cast

import numpy as np

from assaymark.benchmark.replies import ABSENT, FORMS, reply_text
from assaymark.benchmark.scores import SIGNALS, Stage
from assaymark.engine.calls import CallSpec, Finish, Model, Reply
from assaymark.errors import AssayError, InputError, ModelError
from assaymark.portfolio import max_sharpe
from assaymark.portfolio.optimisers import Bools, Floats
from assaymark.prompting import cells, sections

_VALUE = r"(-?\d+(?:\.\d+)?)"
_TREND = 0.05  # a larger move over the window counts as a trend
_FORM = re.compile(r"(\S+)=<weight>")
_PAIR = re.compile(rf"^(\S+): annual volatility {_VALUE}, annual mean return {_VALUE}$", re.MULTILINE)
_WEIGHTS = re.compile(rf"^(\S+): {_VALUE}, {_VALUE}$", re.MULTILINE)
_MOVES = re.compile(rf"^(\w+): \+?{_VALUE}, [\d.]+$", re.MULTILINE)
GUESSES: Final[Mapping[str, str]] = {
    "value at risk (VaR) of": "-0.012",
    "fixed-fractional rule": "0.5",
    "the portfolio is rebalanced if": "no",
    "trading days from now, against today?": "positive",
    "Which regime is": "regime=sideways; equity=hold, bond=hold, commodity=hold, real_estate=hold, crypto=decrease, "
    "cash=increase",
}
"""The guessed answer to each kind of question, by a phrase of its prompt; guessed weights are equal."""


def guess(prompt: str) -> str:
    """Return a guess as the reply to the prompt of a question."""
    if names := _FORM.findall(prompt):
        return "ANSWER: " + ", ".join(f"{name}={1.0 / len(names):.6f}" for name in names)
    for words, answer in GUESSES.items():
        if words in prompt:
            return f"ANSWER: {answer}"
    return "This is none of the questions that can be guessed here."


def solve(prompt: str) -> str:
    """Return the solution of a question from its prompt alone: the upper bound for self-contained questions."""

    def stated(pattern: str) -> float:
        match = re.search(pattern.replace("#", _VALUE), prompt)
        return float(match[1]) if match else 0.0

    def tail(share: float) -> float:  # of the returns, linear between order statistics
        block = re.search(r"oldest first:\n((?:[-0-9. ]+\n)+)", prompt)
        ordered = sorted(float(number) for number in block[1].split()) if block else []
        place = (len(ordered) - 1) * share
        low = math.floor(place)
        return ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])

    if "value at risk (VaR) of" in prompt:
        reason, answer = "By historical simulation.", f"{tail(1 - (stated(r'at #% confidence') or 95.0) / 100):.12g}"
    elif "fixed-fractional rule" in prompt:
        reason, answer = "By the fixed-fractional rule.", f"{min(1.0, stated(r'd = #') / abs(tail(0.01))):.12g}"
    elif "have the least variance?" in prompt:
        (asset, s1, m1), (other, s2, m2) = (
            (name, float(size), float(mean)) for name, size, mean in _PAIR.findall(prompt)
        )
        # Without a covariance the two are assumed to be uncorrelated.
        both, floor = (stated(r"Annual covariance of [^\n]*: #"), stated(r"Required annual return: at least #"))
        first = min(max((s2 * s2 - both) / (s1 * s1 + s2 * s2 - 2 * both), 0.0), 1.0)
        if first * m1 + (1 - first) * m2 < floor:
            first = (floor - m2) / (m1 - m2)
        reason = "By the weights of least variance that earn enough."
        answer = f"{asset}={first:.12f}, {other}={1 - first:.12f}"
    elif "have the largest Sharpe ratio?" in prompt:
        block = re.search(r"Annual mean returns:\n((?:\S+: \S+\n)+)", prompt)
        means = [line.split(": ") for line in block[1].splitlines()] if block else []
        matrix = [[float(cell) for cell in row.split(", ")] for row in re.findall(r"(?m)^\[(-?\d[^\]]*)\]$", prompt)]
        # Without a covariance matrix the instruments are assumed to be uncorrelated with equal variances.
        excess = np.array([float(value) for _, value in means]) - stated(r"Riskless rate: #")
        weights = _largest_ratio(excess, np.array(matrix) if matrix else np.eye(len(means)))
        reason = "By every set of instruments in turn."
        answer = ", ".join(f"{name}={value:.12f}" for (name, _), value in zip(means, weights, strict=True))
    elif "the portfolio is rebalanced if" in prompt:
        off = {name: float(now) - float(aim) for name, now, aim in _WEIGHTS.findall(prompt)}
        name = max(off, key=lambda ticker: abs(off[ticker]))
        reason, answer = "No weight is too far off.", "no"
        if abs(off[name]) > (stated(r"more than # away") or 0.05):
            side = "sell" if off[name] > 0 else "buy"
            reason, answer = f"{name} is furthest off.", f"yes; {side} {abs(off[name]):.4f} of {name}"
    elif "trading days from now, against today?" in prompt:
        change = stated(r", return \+?#")
        way = "positive" if change > 0.01 else "negative" if change < -0.01 else "flat"
        reason, answer = "What has moved is taken to move on.", way
    elif "Which regime is" in prompt:
        change = (stated(r"from 100\.00 to #") or 100.0) / 100.0 - 1.0
        calm = "bear" if change < -_TREND else "bull" if change > _TREND else "sideways"
        moves = {name: float(moved) for name, moved in _MOVES.findall(prompt)}
        todo = {name: (value > _TREND) - (value < -_TREND) for name, value in moves.items()}
        changes = ", ".join(f"{name}={('hold', 'increase', 'decrease')[way]}" for name, way in todo.items())
        reason, answer = "By the trend of each class.", f"regime={'crisis' if change < -0.15 else calm}; {changes}"
    else:
        return "This is none of the questions that can be solved here."
    return f"{reason}\nANSWER: {answer}"


def _largest_ratio(excess: Floats, covariance: Floats) -> Floats:
    """Compute the maximum-Sharpe long-only weights by trying every support, on each of which the problem is linear."""
    best, portfolio = -math.inf, np.full(excess.size, 1.0 / excess.size)
    for chosen in (pick for count in range(1, excess.size + 1) for pick in combinations(range(excess.size), count)):
        at = list(chosen)
        try:
            raw = np.linalg.solve(covariance[np.ix_(at, at)], excess[at])
        except np.linalg.LinAlgError:
            continue
        if not (raw.sum() > 0 and (raw >= 0).all()):
            continue
        weights = np.zeros(excess.size)
        weights[at] = raw / raw.sum()
        ratio = float(weights @ excess) / math.sqrt(float(weights @ covariance @ weights))
        if ratio > best:
            best, portfolio = ratio, weights
    return portfolio


Values = Mapping[str, float | str]
"""Views, signals or weights by ticker."""

ViewRule = Callable[["MarketTables", int], Floats]
"""Computes views in [-1, 1] from the tables of a prompt and the horizon in days."""

InvestorLimits = tuple[float, float]
"""The investor's limits as shares: maximum of equities and crypto, minimum of bonds and cash."""

WeightRule = Callable[["MarketTables", Floats, Bools, InvestorLimits], Floats]
"""Computes weights from views, buy signals (all True if there are none) and limits."""

VERSION: Final = "2"
"""Changed with every change that can alter a reply; part of the fingerprint."""

PREFIX: Final = "reference/portbench-"
"""The prefix of the names of these models."""

SCALE: Final = 0.10
"""The return that corresponds to a view of 1, as stated in S1."""

NOISE: Final = 0.4
"""The standard deviation of the noise that ``noisy`` adds to a view."""

_DECIMALS = 6
_SMALLEST_VOL = 1e-4
_RISKY, _SAFE = ("equity", "crypto"), ("bond", "cash")
_PRIOR: Final = {"equity": 0.05, "crypto": 0.05, "real_estate": 0.03, "commodity": 0.01, "bond": 0.02, "cash": 0.03}

FAULTS: Final = (
    "none", "lines", "fence", "missing", "extra", "out of range", "no number", "cut", "refusal", "prose", "code",
)  # fmt: skip
"""The faults of a reply; the first three forms are still parsed."""


def faulty_reply(fault: str, stage: Stage, values: Values) -> tuple[str, Finish]:
    """Return a reply with one of the `FAULTS`."""
    whole, first = reply_text(stage, values), next(iter(values))
    match fault:
        case "lines":
            return "Here you are:\n" + "\n".join(f"- **{name}**: {value}" for name, value in values.items()), "stop"
        case "fence":
            return f"Let me think.\n```json\n{json.dumps(json.loads(whole), indent=2)}\n```", "stop"
        case "missing":
            return reply_text(stage, dict(list(values.items())[::2])), "stop"
        case "extra":
            return reply_text(stage, {**values, "ZZTOP": values[first]}), "stop"
        case "out of range":
            return reply_text(stage, {**values, first: "maybe" if stage == "S2" else -1.7}), "stop"
        case "no number":
            return reply_text(stage, {**values, first: float("nan")}), "stop"
        case "cut":
            return whole[: len(whole) * 2 // 3], "length"
        case "refusal":
            return "I'm sorry, but I cannot give investment advice.", "stop"
        case "prose":
            return "On balance the outlook is mixed, and a balanced stance across all of these seems prudent.", "stop"
        case "code":
            return f"```python\n{FORMS[stage][0]} = {{name: rule(name) for name in assets}}\n```", "stop"
        case _:
            return whole, "stop"


_TASK = re.compile(r"^TASK (S[123]), ", re.MULTILINE)
_HORIZON = re.compile(r"over the next (\d+) trading days")
_THRESHOLD = re.compile(r"above (\d+(?:\.\d+)?),")
_MOST = re.compile(r"Equities and crypto together must be at most (\d+(?:\.\d+)?)%")
_LEAST = re.compile(r"Bonds and cash together must be at least (\d+(?:\.\d+)?)%")
_COLUMNS: Final = ("ret20_pct", "ret60_pct", "vol_pct", "sharpe")


@dataclass(frozen=True, slots=True, eq=False)
class MarketTables:
    """The tables of assets and correlations in a prompt."""

    tickers: tuple[str, ...]
    classes: tuple[str, ...]
    numbers: dict[str, Floats]
    correlation: Floats


def _number(pattern: re.Pattern[str], text: str, label: str) -> float:
    match = pattern.search(text)
    if not match:
        raise InputError("prompt", [f"it names no {label}"])
    return float(match.group(1))


def _rows(text: str, label: str) -> list[list[str]]:
    """Return the rows of a table in a prompt, the first with the names of its columns."""
    for section in sections(text):
        if section.label == label:
            return [cells(line) for line in section.content.split("\n")]
    raise InputError("prompt", [f"it has no table of {label}"])


@lru_cache(maxsize=16)
def tables_of(part: str) -> MarketTables:
    """Parse the market tables of a prompt part; cached for all models that get the same market. Raises `InputError`."""

    def value(cell: str) -> float:
        return 0.0 if cell == ABSENT else float(cell)

    (head, *rows), (titles, *between), numbers = _rows(part, "assets"), _rows(part, "correlations"), {}
    for name in _COLUMNS:
        column, scale = head.index(name), 0.01 if name.endswith("_pct") else 1.0
        numbers[name] = scale * np.array([value(row[column]) for row in rows])
    classes = tuple(row[1] for row in rows)
    names, skipped = [row[0] for row in between], len(titles) - len(between)
    means = np.array([[value(cell) for cell in row[skipped:]] for row in between])
    at = [names.index(kind) for kind in classes]
    correlation = means[np.ix_(at, at)]
    np.fill_diagonal(correlation, 1.0)
    return MarketTables(tuple(row[0] for row in rows), classes, numbers, correlation)


def apply_limits(weights: Floats, sheet: MarketTables, limits: InvestorLimits) -> Floats:
    """Adjust weights to the limits: shrink risky classes to the cap and raise safe ones to the floor."""
    (most, least), (risky, safe) = limits, (np.isin(sheet.classes, names) for names in (_RISKY, _SAFE))
    if not safe.any():
        return weights
    adjusted = weights.copy()
    if (total := float(adjusted[risky].sum())) > most:
        adjusted[risky] *= most / total
    short = max(least - float(adjusted[safe].sum()), 0.0)
    rest = ~safe
    others = float(adjusted[rest].sum())
    if others > 0 and (spare := 1.0 - float(adjusted.sum())) < short:
        adjusted[rest] *= max(1.0 - (short - max(spare, 0.0)) / others, 0.0)
    basis = adjusted[safe] if adjusted[safe].sum() > 0 else np.ones(int(safe.sum()))
    adjusted[safe] = basis / basis.sum() * (1.0 - float(adjusted[rest].sum()))
    return _normalise(adjusted)


@dataclass(frozen=True, slots=True)
class Rule:
    """The rules of a built-in model for views and weights, its share of solved questions, and a description."""

    view: ViewRule
    weigh: WeightRule
    skill: float
    does: str


def _view(returns: Floats) -> Floats:
    return np.clip(returns / SCALE, -1.0, 1.0)


def _normalise(amounts: Floats, otherwise: Bools | None = None) -> Floats:
    """Normalise amounts to weights that sum to 1; if all are 0, use equal weights over ``otherwise`` (or all)."""
    chosen = np.ones(amounts.size) if otherwise is None else otherwise.astype(float)
    parts = amounts if amounts.sum() > 0 else chosen
    return np.asarray(parts / parts.sum())


def _vol(sheet: MarketTables, least: float = _SMALLEST_VOL) -> Floats:
    return np.maximum(sheet.numbers["vol_pct"], least)


def _extrapolated(sheet: MarketTables, horizon: int) -> Floats:
    """Views from the mean daily return of 60 days, extrapolated over the horizon."""
    return _view(sheet.numbers["ret60_pct"] * horizon / 60)


def _momentum(sheet: MarketTables, _: int) -> Floats:
    """Views from the whole return of the last 60 days, which are the truth of the convention ``reference``."""
    return _view(sheet.numbers["ret60_pct"])


def _best_only(sheet: MarketTables, _: int) -> Floats:
    """A view of 1 on the highest Sharpe ratio, -1 on the lowest, and 0 on all others."""
    sharpe = sheet.numbers["sharpe"]
    views = np.zeros(sharpe.size)
    views[int(sharpe.argmin())], views[int(sharpe.argmax())] = -1.0, 1.0
    return views


def _highest_sharpe(sheet: MarketTables, views: Floats, buys: Bools, limits: InvestorLimits) -> Floats:
    """Maximum-Sharpe weights as S3 asks, from the prompt's volatilities and class correlations, within the limits."""
    vol = _vol(sheet)
    try:
        weights = max_sharpe(views * SCALE, sheet.correlation * np.outer(vol, vol), allowed=buys).weights
    except AssayError:  # class means of correlations need not form a valid covariance
        weights = _normalise(buys / vol)
    return apply_limits(weights, sheet, limits)


def _by_view(_: MarketTables, views: Floats, buys: Bools, __: InvestorLimits) -> Floats:
    """Weights in proportion to positive views."""
    return _normalise(np.where(buys, np.maximum(views, 0.0), 0.0), buys)


def _sixty_forty(sheet: MarketTables, *_: object) -> Floats:
    """Sixty percent in equities and forty in bonds, equal weights within each."""
    classes = np.array(sheet.classes)
    weights = np.zeros(classes.size)
    for name, share in (("equity", 0.6), ("bond", 0.4)):
        weights[classes == name] = share / max((classes == name).sum(), 1)
    return _normalise(weights)


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "literal": Rule(
            _extrapolated, _highest_sharpe, 1.0,
            "carries the 60-day return on and holds the highest Sharpe ratio within the profile",
        ),
        "prior": Rule(
            lambda sheet, _: np.array([_PRIOR.get(name, 0.0) for name in sheet.classes]), _sixty_forty, 0.0,
            "looks at no number: one view a class, 60/40",
        ),
        "stubborn": Rule(
            lambda sheet, _: np.zeros(len(sheet.tickers)),
            lambda sheet, *_: np.full(len(sheet.tickers), 1.0 / len(sheet.tickers)), 0.1,
            "has no view and holds equal weights whatever is asked",
        ),
        "momentum": Rule(_momentum, _by_view, 0.8, "buys what rose over 60 days"),
        "contrarian": Rule(lambda sheet, _: -_momentum(sheet, _), _by_view, 0.5, "buys what fell over 60 days"),
        "steady": Rule(
            lambda sheet, _: np.where(sheet.numbers["vol_pct"] <= np.median(sheet.numbers["vol_pct"]), 0.5, 0.0),
            lambda sheet, _, buys, __: _normalise(buys / _vol(sheet) ** 2), 0.9,
            "prefers the calmer half, weighted by inverse variance",
        ),
        "cautious": Rule(
            _extrapolated,
            lambda sheet, _, buys, limits: apply_limits(
                _normalise(buys / _vol(sheet, 0.01)), sheet, (0.8 * limits[0], min(1.2 * limits[1], 1.0))
            ),
            0.7, "weights by inverse volatility, well within the profile",
        ),
        "bold": Rule(_best_only, _by_view, 0.3, "puts everything into the best Sharpe ratio"),
        "noisy": Rule(_momentum, _by_view, 0.6, "follows the 60-day return with noise added"),
        "garbled": Rule(
            _momentum, _by_view, 0.4, "follows the 60-day return in forms with a fault, from prose to weights above 1",
        ),
    }
)  # fmt: skip
"""The rules of all built-in models of the benchmark."""


@dataclass(frozen=True, slots=True)
class ReferenceBenchmarkModel:
    """A built-in `Model` of the benchmark, which reads only the rendered prompt."""

    word: str

    @property
    def name(self) -> str:
        """The name of the model in a plan."""
        return PREFIX + self.word

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call. Raises `ModelError` if it has arguments or its prompt cannot be parsed."""
        if call.args:
            wrong = (f"argument {name} is unknown ({self.name} takes none)" for name in call.args)
            raise ModelError("; ".join(wrong), retryable=False)
        try:
            text, finish = self.answer(call.shown(), call.seed)
        except (InputError, ValueError, KeyError) as exc:
            raise ModelError(f"{self.name} cannot read the prompt: {exc}", retryable=False) from None
        return Reply(text, self.name, finish, fingerprint=f"{self.name}@{VERSION}")

    def answer(self, parts: tuple[str, ...], seed: int | None = None) -> tuple[str, Finish]:
        """Return the reply to a prompt; random draws depend only on the prompt and the seed, on any machine."""
        rule, task = RULES[self.word], parts[-1] if parts else ""
        digest = hashlib.sha256("\n".join([self.word, str(seed), *parts]).encode("utf-8", "surrogatepass")).digest()
        drawn = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))
        if (match := _TASK.search(task)) is None:
            prompt = "\n\n".join(parts)
            return (solve(prompt) if drawn.random() < rule.skill else guess(prompt)), "stop"
        stage = cast(Stage, match.group(1))
        values: dict[str, float | str] = {}
        if stage == "S2":
            least = _number(_THRESHOLD, task, "threshold")
            for name, text in _rows(task, "views")[1:]:
                view = float(text)
                values[name] = "buy" if view > least else "sell" if view < -least else "hold"
            counted = Counter(values.values())
            reason = f"The threshold is kept to: {', '.join(f'{counted[signal]} {signal}' for signal in SIGNALS)}."
        else:
            sheet = tables_of(next((part for part in parts if "<<<BEGIN assets " in part), ""))
            if stage == "S1":
                horizon = _HORIZON.search(task)
                meant = rule.view(sheet, int(horizon.group(1)) if horizon else 21)
                if self.word == "noisy":
                    meant = np.clip(meant + drawn.normal(0.0, NOISE, meant.size), -1.0, 1.0)
            else:
                signals = {name: (float(view), signal) for name, view, signal in _rows(task, "signals")[1:]}
                views = np.array([signals[name][0] for name in sheet.tickers])
                buys = np.array([signals[name][1] == "buy" for name in sheet.tickers])
                limits = _number(_MOST, task, "cap") / 100, _number(_LEAST, task, "floor") / 100
                meant = rule.weigh(sheet, views, buys if buys.any() else np.ones_like(buys), limits)
            rounded = dict(zip(sheet.tickers, np.round(meant, _DECIMALS).tolist(), strict=True))
            largest = sorted(rounded, key=lambda name: (-rounded[name], name))[:3]
            if stage == "S1":
                shown = ", ".join(f"{name} {rounded[name]:+.2f}" for name in largest)
                reason = f"The rule '{self.word}' is most bullish on {shown}."
            else:
                rounded = {name: weight for name, weight in rounded.items() if weight}
                shown = ", ".join(f"{name} {100 * rounded[name]:.1f}%" for name in largest if name in rounded)
                reason = f"The rule '{self.word}' gives weight to {len(rounded)} assets. The largest are {shown}."
            values |= rounded
        if self.word == "garbled":
            return faulty_reply(FAULTS[int(drawn.integers(len(FAULTS)))], stage, values)
        return reply_text(stage, values, rationale=reason), "stop"


def reference_benchmark_models() -> dict[str, Model]:
    """Return the built-in models of the benchmark by name, for registration."""
    return {PREFIX + word: ReferenceBenchmarkModel(word) for word in RULES}


def words_of(model: str) -> str:
    """Describe a built-in model and the share of questions that it solves; empty for any other model."""
    word = model.removeprefix(PREFIX)
    if word == model or word not in RULES:
        return ""
    return f"{RULES[word].does}; solves {100 * RULES[word].skill:.0f} % of the questions and guesses the others"
