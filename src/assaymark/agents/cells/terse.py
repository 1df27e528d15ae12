"""Cell B: a few words, every one of them true, and orders that keep every limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from assaymark.agents.cells import phrases
from assaymark.agents.cells.admissibility import TERSE_TOKENS, checked
from assaymark.agents.cells.book import Book, book_of
from assaymark.agents.cells.composed import REDRAWS, Composed, failed, refuse
from assaymark.agents.cells.features import Feature, by_instrument, features_of, limits_text
from assaymark.agents.cells.phrases import one_of, styled
from assaymark.errors import NotMeasurableError
from assaymark.portfolio.orders import prices_of
from assaymark.prompting.styles import signature
from assaymark.prompting.texts import token_count
from assaymark.records import Action, ActionKind, Context

_CONFIDENCE: Final = (0.5, 0.7)
_CITED: Final = 3


def terse_right(context: Context, rng: np.random.Generator, *, style: str = "plain") -> Composed:
    """A trajectory of cell B: at most 60 tokens, three features cited, no hedging (ValueBlindBench section 3.5).

    One or two orders that keep every limit. What is cited of an instrument with a direction, returns and its place in
    the range, speaks for the order; every number is the true one as printed. `admissible` has the exact rules.

    Parameters
    ----------
    context : Context
        With features of instruments, a portfolio and its limits.
    rng : numpy Generator
        Draws the orders, the features cited and the wording.
    style : str
        A house style; a name that is none gives a text without opening words.

    Returns
    -------
    Composed
        With its checks, all passed; no score is known in advance.

    Raises
    ------
    NotMeasurableError
        No draw was admissible; the message has the checks that failed.

    Examples
    --------
    The session in ``docs/cells.md`` makes one of each kind.
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
        last = checked(_draft(context, orders, rng, style), context)
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


def _draft(
    context: Context, orders: Sequence[tuple[Action, list[Feature]]], rng: np.random.Generator, style: str
) -> Composed:
    actions = tuple(order for order, _ in orders)
    book = book_of(context, actions)
    reasons = [_reason(order, cited, rng) for order, cited in orders]
    text = styled(" ".join(reasons), signature(style))
    for line in _account(book, rng):
        if token_count(f"{text} {line}") <= TERSE_TOKENS:
            text = f"{text} {line}"
    confidence = round(float(rng.uniform(*_CONFIDENCE)), 2)
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


def _account(book: Book, rng: np.random.Generator) -> list[str]:
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
