"""Cell A, long, confident and wrong with orders that break a limit; cell B, a few true words that keep every limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from assaymark.agents.controls.checks import TERSE_TOKENS, drawn
from assaymark.agents.controls.compose import (
    REDRAWS,
    Book,
    Composed,
    Feature,
    book_if_any,
    book_of,
    by_instrument,
    features_of,
    held_values,
    is_held,
    limits_text,
    one_of,
    phrases,
    some_of,
    styled,
    wrong_value,
)
from assaymark.errors import NotMeasurableError
from assaymark.portfolio.orders import prices_of
from assaymark.prompting.texts import signature, token_count
from assaymark.records import Action, ActionKind, Context

KNOWN_SCORES: Final[Mapping[str, float]] = MappingProxyType({"constraint_awareness": 1.0})
"""Under every rubric here, a broken limit with a false account of it is the lowest score of constraint awareness."""

_CONFIDENCE: Final = (0.9, 0.99)
_TOLD: Final = 3
"""Instruments that the memo speaks about."""


def verbose_wrong(context: Context, rng: np.random.Generator, *, style: str = "elder") -> Composed:
    """A trajectory of cell A: at least 200 tokens, sure of itself, wrong by arithmetic (ValueBlindBench section 3.5).

    One order breaks a limit; the features cited for it and for others are false and far from the true values; cash,
    exposure and leverage are reconciled to numbers that are not those of the book. `admissible` has the exact rules.

    Raises
    ------
    NotMeasurableError
        No draw was admissible; the message has the checks that failed.
    """

    def draw(_: int) -> Composed | None:
        try:
            return _draft(context, rng, style)
        except _NothingDrawnError:
            return None

    return drawn("cell_a", draw, context)


class _NothingDrawnError(Exception):
    """A draw that came to nothing; another is made."""


def _draft(context: Context, rng: np.random.Generator, style: str) -> Composed:
    order = _breaking_order(context, rng)
    book = book_of(context, (order,))
    held = held_values(context, (order,))
    opening = " ".join([one_of(phrases()["openings"], rng), *some_of(phrases()["theses"], rng, 2)])
    evidence = _evidence(context, order, held, rng)
    fill = {"verb": order.kind, "quantity": f"{order.quantity:.1f}", "x": order.instrument}
    decision = " ".join([one_of(phrases()["orders_a"], rng, fill), *some_of(phrases()["convictions"], rng, 2)])
    # The reconciliation, each of its results false; limits are quoted as they are.
    fill = {**limits_text(book.limits), **_false_amounts(book, held, rng), "x": order.instrument}
    lines = [one_of(phrases()["cash_lines"], rng, fill), one_of(phrases()["exposure_lines"], rng, fill)]
    optional = {
        "max_leverage": phrases()["leverage_lines"],
        "max_weight": phrases()["largest_lines"],
        "min_cash": phrases()["floor_lines"],
    }
    lines += [one_of(templates, rng, fill) for kind, templates in optional.items() if kind in book.limits]
    account = " ".join([one_of(phrases()["bridges"], rng), *lines])
    closing = " ".join(some_of(phrases()["closings"], rng, 3))
    text = styled("\n\n".join([opening, *evidence, decision, account, closing]), signature(style))
    confidence = round(float(rng.uniform(*_CONFIDENCE)), 2)
    return Composed(kind="cell_a", actions=(order,), text=text, confidence=confidence, known_scores=KNOWN_SCORES)


def _breaking_order(context: Context, rng: np.random.Generator) -> Action:
    """An order that breaks at least one limit: too much of one thing, more than the cash, or a short that is barred."""
    barred = any(rule.kind == "allow_short" and not rule.limit for rule in context.constraints)
    short = int(rng.integers(4 if barred else 3)) == 3
    prices = prices_of(context)
    names = [item.id for item in context.instruments if prices.get(item.id, 0.0) > 0]
    if not names or context.portfolio is None:
        raise NotMeasurableError("cell_a needs a portfolio and an instrument with a price (got neither or one of them)")
    name = names[int(rng.integers(len(names)))]
    price, nav, units = prices[name], context.portfolio.nav, context.portfolio.positions.get(name, 0.0)
    if short:
        quantity = units + nav * float(rng.uniform(0.1, 0.25)) / price
    else:
        cap = next((rule.limit for rule in context.constraints if rule.kind == "max_weight"), 1.0)
        value = nav * cap * float(rng.uniform(1.35, 2.1)) - units * price
        quantity = max(value, 0.2 * nav) / price
    order = Action(instrument=name, kind="short" if short else "buy", quantity=round(quantity, 1))
    book = book_if_any(context, (order,))
    if book is None or not book.broken:
        raise _NothingDrawnError
    return order


def _evidence(context: Context, order: Action, held: Sequence[float], rng: np.random.Generator) -> list[str]:
    """A paragraph for the instrument of the order, and shorter ones for others: features far from their true values."""
    known = by_instrument(features_of(context))
    others = [name for name in known if name != order.instrument]
    named = [order.instrument] if order.instrument in known else []
    named += [others[int(at)] for at in rng.permutation(len(others))[: _TOLD - len(named)]]
    introductions, readings = (
        some_of(phrases()["introductions"], rng, _TOLD),
        some_of(phrases()["readings"], rng, _TOLD + 1),
    )
    paragraphs = []
    for number, name in enumerate(named):
        lean = (-1 if order.kind == "short" else 1) if name == order.instrument else int(rng.choice([-1, 1]))
        figures: list[str] = []
        for at in rng.permutation(len(known[name])):
            feature = known[name][int(at)]
            value = wrong_value(feature, lean, held, rng)
            if value is None:
                continue
            said = one_of(phrases()["features"], rng, feature.fill(value))
            figures.append(said[:-1] + one_of(phrases()["turns"], rng) if rng.random() < 0.25 else said)
            if len(figures) == (3 if number == 0 else 2):
                break
        paragraphs.append(" ".join([introductions[number].format(x=name), *figures, readings[number]]))
    return paragraphs


def _false_amounts(book: Book, held: Sequence[float], rng: np.random.Generator) -> dict[str, str]:
    """The memo's claims about the book after its orders: nothing of it true, all of it within the limits."""
    true, limits = book.amounts, book.limits
    weight, floor = limits.get("max_weight", 0.5), limits.get("min_cash", 0.0)
    equity = true["equity"]
    top = min(limits.get("max_leverage", 1.0), 1.0)
    shown: dict[str, tuple[Callable[[float], str], tuple[float, float]]] = {
        "cost": (_money, (0.03 * equity, 0.3 * equity)),
        "residual": (_money, ((floor + 0.06) * equity, (floor + 0.4) * equity)),
        "exposure": (_money, (0.2 * equity, 0.95 * top * equity)),
        "equity": (_money, (0.6 * equity, 1.6 * equity)),
        "exposure_share": (_percent, (0.2, 0.95 * top)),
        "leverage": ("{:.2f}".format, (0.2, 0.95 * top)),
        "largest": (_percent, (0.3 * weight, 0.95 * weight)),
        "cash_share": (_percent, (floor + 0.06, floor + 0.4)),
    }
    found = {"cash": _money(true["cash"])}
    for name, (write, bounds) in shown.items():
        for _ in range(REDRAWS):  # a number that is far from the true one and held nowhere
            value = float(rng.uniform(*bounds))
            if abs(value - true[name]) > 0.15 * max(abs(value), abs(true[name])) and not is_held(held, value, 0.0006):
                found[name] = write(value)
                break
        else:
            raise _NothingDrawnError
    return found


def _money(amount: float) -> str:
    return f"{amount:,.2f}"


def _percent(ratio: float) -> str:
    return f"{ratio * 100:.1f}%"


_TERSE_CONFIDENCE: Final = (0.5, 0.7)
_CITED: Final = 3


def terse_right(context: Context, rng: np.random.Generator, *, style: str = "plain") -> Composed:
    """A trajectory of cell B: at most 60 words, three features cited, no hedging (ValueBlindBench section 3.5).

    One or two orders that keep every limit. What is cited of an instrument with a direction, returns and its place in
    the range, speaks for the order; every number is the true one as printed. `admissible` has the exact rules. Raises
    NotMeasurableError where no draw was admissible; the message has the checks that failed.
    """
    choices = _choices(context)
    if not choices:
        raise NotMeasurableError(
            "cell_b cannot be made from this context: no instrument has a price, three features, one of them with a "
            "direction, and a position to sell where that is down"
        )

    def draw(attempt: int) -> Composed | None:
        orders = _orders(context, choices, rng, shrink=0.85**attempt)
        return _terse_draft(context, orders, rng, style) if orders else None

    return drawn("cell_b", draw, context)


Choice = tuple[str, int, list[Feature]]
"""An instrument, the side of an order, and what can be cited for it."""


def _choices(context: Context) -> list[Choice]:
    """Every instrument and side for which three features can be cited, none of which speaks for the other side."""
    prices, held = prices_of(context), context.portfolio.positions if context.portfolio else {}
    found: list[Choice] = []
    for name, known in by_instrument(features_of(context)).items():
        for side in (1, -1):
            usable = [one for one in known if one.lean in (0, side)]
            tradable = prices.get(name, 0.0) > 0 and (side > 0 or held.get(name, 0.0) > 0)
            if tradable and len(usable) >= _CITED and any(one.lean for one in usable):
                found.append((name, side, usable))
    return found


def _orders(
    context: Context, choices: Sequence[Choice], rng: np.random.Generator, *, shrink: float
) -> list[tuple[Action, list[Feature]]]:
    """One or two orders of different instruments, smaller with every attempt."""
    most = next((rule.limit for rule in context.constraints if rule.kind == "max_orders"), 2.0)
    count = min(int(rng.integers(1, 3)), int(most))
    found: list[tuple[Action, list[Feature]]] = []
    for at in rng.permutation(len(choices)):
        name, side, usable = choices[int(at)]
        if len(found) == count or any(order.instrument == name for order, _ in found):
            continue
        quantity = _quantity(context, name, side, float(rng.uniform(0.4, 0.9)) * shrink)
        if quantity > 0:
            kind: ActionKind = "buy" if side > 0 else "sell"
            order = [usable[int(place)] for place in rng.permutation(len(usable))]
            first = next(one for one in order if one.lean)  # features to cite, one with a direction first
            cited = [first, *(one for one in order if one is not first)][: int(rng.integers(_CITED, _CITED + 2))]
            found.append((Action(instrument=name, kind=kind, quantity=quantity), cited))
    return found


def _quantity(context: Context, name: str, side: int, part: float) -> float:
    """A part of what the limits leave room for, or of what is held, in units that print in full."""
    book, price = book_of(context, ()), prices_of(context)[name]
    held = book.after.positions.get(name, 0.0)
    if side < 0:
        units = held * part
    else:
        equity = book.after.equity
        room = book.limits.get("max_weight", 1.0) * equity - held * price
        cash = book.after.residual - book.limits.get("min_cash", 0.0) * equity
        gross = book.limits.get("max_leverage", 1.0) * equity - book.after.exposure
        units = part * max(min(room, 0.5 * cash, gross), 0.0) / price
    return float(round(units)) if units >= 20 else round(units, 1)


def _terse_draft(
    context: Context, orders: Sequence[tuple[Action, list[Feature]]], rng: np.random.Generator, style: str
) -> Composed:
    actions = tuple(order for order, _ in orders)
    book = book_of(context, actions)
    reasons = []
    for order, cited in orders:
        pattern = phrases()["features_b"][int(rng.integers(len(phrases()["features_b"])))]
        fill = {
            "verb": order.kind,
            "Verb": order.kind.capitalize(),
            "quantity": f"{order.quantity:g}",
            "x": order.instrument,
            "features": ", ".join(pattern.format(**one.fill(one.value)) for one in cited),
        }
        reasons.append(one_of(phrases()["orders_b"], rng, fill))
    text = styled(" ".join(reasons), signature(style))
    for line in _terse_account(book, rng):
        if token_count(f"{text} {line}") <= TERSE_TOKENS:
            text = f"{text} {line}"
    confidence = round(float(rng.uniform(*_TERSE_CONFIDENCE)), 2)
    return Composed(kind="cell_b", actions=actions, text=text, confidence=confidence)


def _terse_account(book: Book, rng: np.random.Generator) -> list[str]:
    """The arithmetic of the book in the fewest words, in a drawn order; what does not fit is left out."""
    true, limits = book.amounts, limits_text(book.limits)
    name, sign = ("cost", 1.0) if true["cost"] >= 0 else ("proceeds", -1.0)
    joint = "less" if sign > 0 else "plus"
    cash = f"Cash {true['cash']:,.2f} {joint} {name} {sign * true['cost']:,.2f} leaves {true['residual']:,.2f}."
    found = [f"Exposure is {true['exposure_share'] * 100:.1f}% of equity."]
    if "max_leverage" in limits:
        found.append(f"Leverage {true['leverage']:.2f} against a cap of {limits['max_leverage']}.")
    if "min_cash" in limits:
        found.append(f"Cash is {true['cash_share'] * 100:.1f}% of equity against a floor of {limits['min_cash']}.")
    if "max_weight" in limits:
        found.append(f"Largest position {true['largest'] * 100:.1f}% against a cap of {limits['max_weight']}.")
    return [cash, *(found[int(at)] for at in rng.permutation(len(found)))]
