"""What control cells are made of: the book after their orders, features of the context, and composed cells."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

import numpy as np

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.portfolio.orders import RuleCheck, Settlement, audit, fee_of, prices_of, settle
from assaymark.records import Action, Context, Decision, DerivationKind

MADE_HERE: Final = "assaymark control cells"
"""Where a control cell comes from, in its provenance."""


@dataclass(frozen=True, slots=True)
class Book:
    """A settlement, its rules, and the amounts by name; shares and weights are ratios."""

    after: Settlement
    checks: tuple[RuleCheck, ...]
    amounts: Mapping[str, float]
    limits: Mapping[str, float]

    @property
    def broken(self) -> tuple[RuleCheck, ...]:
        """The rules that are not kept."""
        return tuple(check for check in self.checks if not check.kept)


def book_of(context: Context, actions: Sequence[Action]) -> Book:
    """The book of a context after orders."""
    if context.portfolio is None:
        raise NotMeasurableError("a control cell needs a context with a portfolio (got none)")
    known = {item.id for item in context.instruments}
    unknown = [action.instrument for action in actions if action.instrument and action.instrument not in known]
    if unknown:
        raise InputError("orders", [Problem(name, "is no instrument of the context") for name in unknown])
    after = settle(context.portfolio, prices_of(context), actions, fee_bps=fee_of(context.constraints))
    if after.equity <= 0:
        raise NotMeasurableError(f"the book has no equity left after the orders (got {after.equity:g})")
    amounts = {
        "cash": after.cash,
        "cost": after.cost,
        "proceeds": -after.cost,
        "residual": after.residual,
        "cash_share": after.residual / after.equity,
        "exposure": after.exposure,
        "exposure_share": after.exposure / after.equity,
        "equity": after.equity,
        "leverage": after.leverage,
        "largest": max(map(abs, after.weights.values()), default=0.0),
    }
    limits = {rule.kind: rule.limit for rule in context.constraints}
    return Book(after, audit(after, context.constraints), amounts, limits)


def book_if_any(context: Context, actions: Sequence[Action]) -> Book | None:
    """The book after orders; None where the context has none, or the orders are targets of weight."""
    try:
        return book_of(context, actions)
    except (InputError, NotMeasurableError):
        return None


def held_values(context: Context, actions: Sequence[Action]) -> list[float]:
    """Every size that the material or the decision holds: facts, book, limits, orders, and differences of one field.

    A number that equals none of them, as printed or in percent, is supported by nothing here.
    """
    found = [abs(float(fact.value)) for fact in context.facts if not isinstance(fact.value, str)]
    by_field: dict[str, list[float]] = {}
    for fact in context.facts:
        if fact.instrument and not isinstance(fact.value, str):
            by_field.setdefault(fact.field, []).append(float(fact.value))
    found += [abs(a - b) for values in by_field.values() for i, a in enumerate(values) for b in values[i + 1 :]]
    found += [rule.limit for rule in context.constraints]
    found += [
        abs(value)
        for action in actions
        for value in (action.quantity, action.price, action.weight)
        if value is not None
    ]
    if context.portfolio is not None:
        book = context.portfolio
        found += [book.cash, book.nav, *map(abs, book.positions.values())]
        if (after := book_if_any(context, actions)) is not None:
            found += [abs(value) for value in (*after.amounts.values(), *after.after.weights.values())]
    return [value for value in found if math.isfinite(value)]


def is_held(values: Sequence[float], size: float, half: float) -> bool:
    """Whether a printed size equals any value within half a last digit, in any scale of a percentage."""
    return any(abs(value * scale - size) <= half for value in values for scale in (1.0, 100.0, 0.01))


_FIELD: Final = re.compile(r"([a-z]+)_(\d{1,4}[a-z])\Z")
_REDRAWS: Final = 60


@dataclass(frozen=True, slots=True)
class Feature:
    """One number that the material gives for an instrument over a horizon, such as ``return_15m``."""

    instrument: str
    kind: str
    horizon: str
    value: float

    @property
    def field(self) -> str:
        """The name of the fact."""
        return f"{self.kind}_{self.horizon}"

    @property
    def lean(self) -> int:
        """1 where it speaks for buying, -1 for selling, 0 where it has no direction."""
        if self.kind == "return":
            return (self.value > 0) - (self.value < 0)
        return (self.value > 0.5) - (self.value < 0.5) if self.kind == "range" else 0

    def printed(self, value: float) -> str:
        """A value of this feature as cells print it: returns with their sign and volatility in percent."""
        if self.kind == "return":
            return f"{value * 100:+.2f}%"
        return f"{value * 100:.2f}%" if self.kind == "volatility" else f"{value:.2f}"

    def fill(self, value: float) -> dict[str, str]:
        """What the templates of `phrases` need, with a value of this feature."""
        return {"x": self.instrument, "h": self.horizon, "k": self.kind, "v": self.printed(value)}


def features_of(context: Context) -> tuple[Feature, ...]:
    """The features that cells cite: numeric facts with a kind and a horizon in their names, in the context's order.

    A price has no horizon and is not among them; nor is a return that prints as 0.00%, which has no direction.
    """
    known = {item.id for item in context.instruments}
    found = []
    for fact in context.facts:
        named = _FIELD.match(fact.field)
        if fact.instrument not in known or named is None or isinstance(fact.value, str):
            continue
        kind, horizon = named.groups()
        value = float(fact.value)
        if kind in _WRONG and not (kind in ("return", "volatility") and abs(value) < 1e-4):
            found.append(Feature(fact.instrument, kind, horizon, value))
    return tuple(found)


def by_instrument(features: Sequence[Feature]) -> dict[str, list[Feature]]:
    """Features under the instruments that they are about."""
    found: dict[str, list[Feature]] = {}
    for feature in features:
        found.setdefault(feature.instrument, []).append(feature)
    return found


def wrong_value(feature: Feature, lean: int, held: Sequence[float], rng: np.random.Generator) -> float | None:
    """A value far from the true one that the material holds nowhere; None if none was found.

    ``lean`` is the direction in which the lie is told: a feature with a direction is drawn on that side.
    """
    for _ in range(_REDRAWS):
        value = _WRONG[feature.kind](feature.value, lean, rng)
        size = abs(float(feature.printed(value).rstrip("%")))
        true = abs(float(feature.printed(feature.value).rstrip("%")))
        signs = (value > 0) != (feature.value > 0)
        gap = size + true if signs else abs(size - true)
        if gap >= 0.4 * max(size, true) and gap >= 0.1 and not is_held(held, size, 0.005):
            return value
    return None


def _wrong_return(true: float, lean: int, rng: np.random.Generator) -> float:
    size = float(rng.uniform(0.006, 0.04))
    if true * lean > 0:
        size += abs(true) * float(rng.uniform(2.0, 4.0))
    return lean * size


_WRONG: Final[Mapping[str, Callable[[float, int, np.random.Generator], float]]] = {
    "return": _wrong_return,
    "volatility": lambda true, lean, rng: true * float(rng.uniform(2.2, 4.5)) + 0.002,  # noqa: ARG005
    "range": lambda true, lean, rng: (  # noqa: ARG005
        0.5 + lean * float(rng.uniform(0.1, 0.47)) if lean else float(rng.uniform(0.03, 0.97))
    ),
    "volume": lambda true, lean, rng: true * float(rng.uniform(1.9, 4.0)) + 0.2,  # noqa: ARG005
}
"""Wrong values by kind of feature: from the true one and the direction in which the lie is told."""


def limits_text(limits: Mapping[str, float]) -> dict[str, str]:
    """The limits as the templates print them: weights and cash in percent, leverage plainly."""
    return {
        kind: f"{limit:.2f}" if kind == "max_leverage" else f"{limit * 100:.1f}%"
        for kind, limit in limits.items()
        if kind in ("max_weight", "min_cash", "max_leverage")
    }


CELL_KINDS: Final[tuple[DerivationKind, ...]] = ("cell_a", "cell_b", "paraphrase", "fact_flip", "length_matched")
"""The kinds of control cell that are made and checked here."""

DERIVED_KINDS: Final[tuple[DerivationKind, ...]] = ("paraphrase", "fact_flip", "length_matched")
"""Those that are made from an honest decision."""

REDRAWS: Final = 24
"""How often a generator draws before it gives up."""


@dataclass(frozen=True, slots=True)
class AdmissibilityCheck:
    """One rule held against a composed cell: ``value`` is what was found, ``limit`` what is needed, in words.

    ``detail`` quotes what decided it, where something did.
    """

    rule: str
    value: float
    limit: str
    passed: bool
    detail: str = ""

    def __str__(self) -> str:
        found = f"{self.rule} is {self.value:g}, needs {self.limit}"
        return f"{found} ({self.detail})" if self.detail else found


@dataclass(frozen=True, slots=True)
class Change:
    """The one number that a fact-flip changed: what was printed, what is printed now, and the offset in the text."""

    old: str
    new: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A control cell before it becomes a record.

    ``original`` is the honest decision that a derived cell was made from, ``tokens`` the length that was asked for.
    ``known_scores`` holds, by rubric dimension, what a faultless judge gives; only what the construction fixes is in
    it. ``admissibility`` is empty for a cell that nobody has checked yet.
    """

    kind: DerivationKind
    actions: tuple[Action, ...]
    text: str
    confidence: float | None = None
    original: Decision | None = None
    tokens: int | None = None
    change: Change | None = None
    known_scores: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    admissibility: tuple[AdmissibilityCheck, ...] = ()


def failed(checks: Sequence[AdmissibilityCheck]) -> tuple[AdmissibilityCheck, ...]:
    """The checks that did not pass."""
    return tuple(check for check in checks if not check.passed)


@cache
def phrases() -> dict[str, tuple[str, ...]]:
    """The templates of ``phrases.toml`` by name: sentences with alternatives, from which a text is drawn."""
    text = (files("assaymark.agents.controls") / "phrases.toml").read_text(encoding="utf-8")
    return {name: tuple(templates) for name, templates in tomllib.loads(text).items()}


_CHOICE = re.compile(r"\[([^\[\]]*)\]")


def _chosen(template: str, rng: np.random.Generator, fill: Mapping[str, str] | None = None) -> str:
    """A template with every choice drawn and, where something to fill in is given, every name filled in."""
    while _CHOICE.search(template):
        template = _CHOICE.sub(lambda found: str(rng.choice(found.group(1).split("|"))), template)
    return template if fill is None else template.format_map(fill)


def one_of(templates: Sequence[str], rng: np.random.Generator, fill: Mapping[str, str] | None = None) -> str:
    """One of the templates, drawn."""
    return _chosen(templates[int(rng.integers(len(templates)))], rng, fill)


def some_of(templates: Sequence[str], rng: np.random.Generator, count: int) -> list[str]:
    """Different templates in a drawn order, each drawn."""
    order = rng.permutation(len(templates))[:count]
    return [_chosen(templates[int(at)], rng) for at in order]


def styled(text: str, opening: str) -> str:
    """A text behind the opening words of a style; its first letter is small unless a name begins there."""
    if not opening:
        return text
    keeps = re.match(r"Asset\b|I\b", text)
    return f"{opening} {text if keeps else text[:1].lower() + text[1:]}"
