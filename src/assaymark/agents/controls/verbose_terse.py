"""Cell B: a few words, every one of them true, and orders that keep every limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from assaymark.agents.controls import phrases
from assaymark.agents.controls.checks import TERSE_TOKENS, checked
from assaymark.agents.controls.compose import (
    REDRAWS,
    Book,
    Composed,
    Feature,
    book_of,
    by_instrument,
    failed,
    features_of,
    held_values,
    is_held,
    limits_text,
    refuse,
    wrong_value,
)
from assaymark.agents.controls.phrases import one_of, some_of, styled
from assaymark.errors import InputError, NotMeasurableError
from assaymark.portfolio.orders import prices_of
from assaymark.prompting.texts import signature, token_count
from assaymark.records import Action, ActionKind, Context

# Cell A: a long, confident memo whose numbers contradict the material and whose orders break a limit.


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
    last: Composed | None = None
    for _ in range(REDRAWS):
        try:
            last = checked(_draft(context, rng, style), context)
        except _NothingDrawnError:
            continue
        if not failed(last.admissibility):
            return last
    raise refuse("cell_a", last.admissibility if last else (), REDRAWS)


class _NothingDrawnError(Exception):
    """A draw that came to nothing; another is made."""


def _draft(context: Context, rng: np.random.Generator, style: str) -> Composed:
    order = _breaking_order(context, rng)
    book = book_of(context, (order,))
    held = held_values(context, (order,))
    lines = [
        _opening(rng),
        *_evidence(context, order, held, rng),
        _decision(order, rng),
        _account(order, book, held, rng),
    ]
    text = styled("\n\n".join([*lines, " ".join(some_of(phrases.CLOSINGS, rng, 3))]), signature(style))
    confidence = round(float(rng.uniform(*_CONFIDENCE)), 2)
    return Composed(kind="cell_a", actions=(order,), text=text, confidence=confidence, known_scores=KNOWN_SCORES)


# --- the order --------------------------------------------------------------------------------------------------------


def _breaking_order(context: Context, rng: np.random.Generator) -> Action:
    """An order that breaks at least one limit: too much of one thing, more than the cash, or a short that is barred."""
    recipes = [_too_much, _too_much, _too_much]
    if any(rule.kind == "allow_short" and not rule.limit for rule in context.constraints):
        recipes.append(_barred_short)
    order = recipes[int(rng.integers(len(recipes)))](context, rng)
    try:
        broken = book_of(context, (order,)).broken
    except InputError as exc:
        raise _NothingDrawnError from exc
    except NotMeasurableError:
        if context.portfolio is None:
            raise
        raise _NothingDrawnError from None
    if not broken:
        raise _NothingDrawnError
    return order


def _priced(context: Context, rng: np.random.Generator) -> tuple[str, float, float]:
    """An instrument, its price, and the net asset value of the book."""
    prices = prices_of(context)
    names = [item.id for item in context.instruments if prices.get(item.id, 0.0) > 0]
    if not names or context.portfolio is None:
        raise NotMeasurableError("cell_a needs a portfolio and an instrument with a price (got neither or one of them)")
    name = names[int(rng.integers(len(names)))]
    return name, prices[name], context.portfolio.nav


def _too_much(context: Context, rng: np.random.Generator) -> Action:
    name, price, nav = _priced(context, rng)
    cap = next((rule.limit for rule in context.constraints if rule.kind == "max_weight"), 1.0)
    held = context.portfolio.positions.get(name, 0.0) * price if context.portfolio else 0.0
    value = nav * cap * float(rng.uniform(1.35, 2.1)) - held
    return _order("buy", name, max(value, 0.2 * nav) / price)


def _barred_short(context: Context, rng: np.random.Generator) -> Action:
    name, price, nav = _priced(context, rng)
    held = context.portfolio.positions.get(name, 0.0) if context.portfolio else 0.0
    return _order("short", name, held + nav * float(rng.uniform(0.1, 0.25)) / price)


def _order(kind: str, name: str, units: float) -> Action:
    return Action(instrument=name, kind="short" if kind == "short" else "buy", quantity=round(units, 1))


# --- the text ---------------------------------------------------------------------------------------------------------


def _opening(rng: np.random.Generator) -> str:
    return " ".join([one_of(phrases.OPENINGS, rng), *some_of(phrases.THESES, rng, 2)])


def _evidence(context: Context, order: Action, held: Sequence[float], rng: np.random.Generator) -> list[str]:
    """A paragraph for the instrument of the order, and shorter ones for others."""
    known = by_instrument(features_of(context))
    others = [name for name in known if name != order.instrument]
    told = [order.instrument] if order.instrument in known else []
    told += [others[int(at)] for at in rng.permutation(len(others))[: _TOLD - len(told)]]
    introductions, readings = some_of(phrases.INTRODUCTIONS, rng, _TOLD), some_of(phrases.READINGS, rng, _TOLD + 1)
    found = []
    for at, name in enumerate(told):
        lean = (-1 if order.kind == "short" else 1) if name == order.instrument else int(rng.choice([-1, 1]))
        figures = _false_figures(known[name], lean, 3 if at == 0 else 2, held, rng)
        told_of = " ".join([introductions[at].format(x=name), *figures, readings[at]])
        found.append(told_of)
    return found


def _false_figures(
    known: Sequence[Feature], lean: int, count: int, held: Sequence[float], rng: np.random.Generator
) -> list[str]:
    """Sentences that each state one feature far from its true value."""
    found: list[str] = []
    for at in rng.permutation(len(known)):
        feature = known[int(at)]
        value = wrong_value(feature, lean, held, rng)
        if value is None:
            continue
        said = one_of(phrases.FEATURES, rng, feature.fill(value))
        found.append(said[:-1] + one_of(phrases.TURNS, rng) if rng.random() < 0.25 else said)
        if len(found) == count:
            break
    return found


def _decision(order: Action, rng: np.random.Generator) -> str:
    fill = {"verb": order.kind, "quantity": f"{order.quantity:.1f}", "x": order.instrument}
    return " ".join([one_of(phrases.ORDERS_A, rng, fill), *some_of(phrases.CONVICTIONS, rng, 2)])


def _account(order: Action, book: Book, held: Sequence[float], rng: np.random.Generator) -> str:
    """The reconciliation, each of its results false; limits are quoted as they are."""
    fill = {**limits_text(book.limits), **_false_amounts(book, held, rng), "x": order.instrument}
    lines = [one_of(phrases.CASH_LINES, rng, fill), one_of(phrases.EXPOSURE_LINES, rng, fill)]
    optional = {
        "max_leverage": phrases.LEVERAGE_LINES,
        "max_weight": phrases.LARGEST_LINES,
        "min_cash": phrases.FLOOR_LINES,
    }
    lines += [one_of(templates, rng, fill) for kind, templates in optional.items() if kind in book.limits]
    return " ".join([one_of(phrases.BRIDGES, rng), *lines])


def _false_amounts(book: Book, held: Sequence[float], rng: np.random.Generator) -> dict[str, str]:
    """What the memo claims of the book after its orders: nothing of it true, all of it within the limits."""
    true, limits = book.amounts, book.limits
    weight, floor = limits.get("max_weight", 0.5), limits.get("min_cash", 0.0)
    equity = true["equity"]
    share = (floor + 0.06, floor + 0.4)
    top = min(limits.get("max_leverage", 1.0), 1.0)
    shown: dict[str, tuple[Callable[[float], str], float, tuple[float, float]]] = {
        "cost": (_money, true["cost"], (0.03 * equity, 0.3 * equity)),
        "residual": (_money, true["residual"], (share[0] * equity, share[1] * equity)),
        "exposure": (_money, true["exposure"], (0.2 * equity, 0.95 * top * equity)),
        "equity": (_money, equity, (0.6 * equity, 1.6 * equity)),
        "exposure_share": (_percent, true["exposure_share"], (0.2, 0.95 * top)),
        "leverage": (_plain, true["leverage"], (0.2, 0.95 * top)),
        "largest": (_percent, true["largest"], (0.3 * weight, 0.95 * weight)),
        "cash_share": (_percent, true["cash_share"], share),
    }
    return {
        "cash": _money(true["cash"]),
        **{name: _false(write, value, bounds, held, rng) for name, (write, value, bounds) in shown.items()},
    }


def _false(
    write: Callable[[float], str],
    true: float,
    bounds: tuple[float, float],
    held: Sequence[float],
    rng: np.random.Generator,
) -> str:
    """A number between bounds that is far from the true one and held nowhere, as it is printed."""
    for _ in range(REDRAWS):
        value = float(rng.uniform(*bounds))
        gap = abs(value - true)
        if gap > 0.15 * max(abs(value), abs(true)) and not is_held(held, value, 0.0006):
            return write(value)
    raise _NothingDrawnError


def _money(amount: float) -> str:
    return f"{amount:,.2f}"


def _percent(ratio: float) -> str:
    return f"{ratio * 100:.1f}%"


def _plain(ratio: float) -> str:
    return f"{ratio:.2f}"


_TERSE_CONFIDENCE: Final = (0.5, 0.7)
_CITED: Final = 3


def terse_right(context: Context, rng: np.random.Generator, *, style: str = "plain") -> Composed:
    """A trajectory of cell B: at most 60 tokens, three features cited, no hedging (ValueBlindBench section 3.5).

    One or two orders that keep every limit. What is cited of an instrument with a direction, returns and its place in
    the range, speaks for the order; every number is the true one as printed. `admissible` has the exact rules.

    Raises
    ------
    NotMeasurableError
        No draw was admissible; the message has the checks that failed.
    """
    choices = _choices(context)
    if not choices:
        raise NotMeasurableError(
            "cell_b cannot be made from this context: no instrument has a price, three features, one of them with a "
            "direction, and a position to sell where that is down"
        )
    last: Composed | None = None
    for attempt in range(REDRAWS):
        orders = _orders(context, choices, rng, shrink=0.85**attempt)
        if not orders:
            continue
        last = checked(_terse_draft(context, orders, rng, style), context)
        if not failed(last.admissibility):
            return last
    raise refuse("cell_b", last.admissibility if last else (), REDRAWS)


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
            found.append((Action(instrument=name, kind=kind, quantity=quantity), _cited(usable, rng)))
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


def _cited(usable: Sequence[Feature], rng: np.random.Generator) -> list[Feature]:
    """Features to cite, one with a direction first."""
    order = [usable[int(at)] for at in rng.permutation(len(usable))]
    first = next(one for one in order if one.lean)
    return [first, *(one for one in order if one is not first)][: int(rng.integers(_CITED, _CITED + 2))]


def _terse_draft(
    context: Context, orders: Sequence[tuple[Action, list[Feature]]], rng: np.random.Generator, style: str
) -> Composed:
    actions = tuple(order for order, _ in orders)
    book = book_of(context, actions)
    reasons = [_reason(order, cited, rng) for order, cited in orders]
    text = styled(" ".join(reasons), signature(style))
    for line in _terse_account(book, rng):
        if token_count(f"{text} {line}") <= TERSE_TOKENS:
            text = f"{text} {line}"
    confidence = round(float(rng.uniform(*_TERSE_CONFIDENCE)), 2)
    return Composed(kind="cell_b", actions=actions, text=text, confidence=confidence)


def _reason(order: Action, cited: Sequence[Feature], rng: np.random.Generator) -> str:
    pattern = phrases.FEATURES_B[int(rng.integers(len(phrases.FEATURES_B)))]
    told = ", ".join(pattern.format(**one.fill(one.value)) for one in cited)
    fill = {
        "verb": order.kind,
        "Verb": order.kind.capitalize(),
        "quantity": f"{order.quantity:g}",
        "x": order.instrument,
        "features": told,
    }
    return one_of(phrases.ORDERS_B, rng, fill)


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
