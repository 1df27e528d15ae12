"""Cell A, long, confident and wrong with orders that break a limit; cell B, a few true words that keep every limit."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import count, pairwise
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from assaymark.agents.controls.checks import (
    MATCHED_SHARE,
    RECONCILED,
    TERSE_TOKENS,
    Figure,
    drawn,
    figures_in,
    mentions_in,
    outside,
    sentences_of,
    statements_of,
)
from assaymark.agents.controls.compose import (
    REDRAWS,
    Book,
    Change,
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
from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.portfolio.orders import prices_of
from assaymark.prompting import SIGNATURES, judged_text, signature, token_count
from assaymark.records import Action, ActionKind, Context, Decision, DerivationKind

KNOWN_SCORES: Final[Mapping[str, float]] = MappingProxyType({"constraint_awareness": 1.0})
"""Under every rubric here, a broken limit with a false account of it is the lowest score of constraint awareness."""

_CONFIDENCE: Final = (0.9, 0.99)
_TOLD: Final = 3
"""Instruments that the memo speaks about."""


def verbose_wrong(context: Context, rng: np.random.Generator, style: str = "elder") -> Composed:
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
    breaking_order_book = book_if_any(context, (order,))
    if breaking_order_book is None or not breaking_order_book.broken:
        raise _NothingDrawnError
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


def terse_right(context: Context, rng: np.random.Generator, style: str = "plain") -> Composed:
    """A trajectory of cell B: at most 60 words, three features cited, no hedging (ValueBlindBench section 3.5).

    One or two orders that keep every limit. What is cited of an instrument with a direction, returns and its place in
    the range, speaks for the order; every number is the true one as printed. `admissible` has the exact rules.
    """
    # Every instrument and side for which three features can be cited, none of which speaks for the other side
    prices, held = prices_of(context), context.portfolio.positions if context.portfolio else {}
    choices: list[Choice] = []
    for name, known in by_instrument(features_of(context)).items():
        for side in (1, -1):
            usable = [one for one in known if one.lean in (0, side)]
            tradable = prices.get(name, 0.0) > 0 and (side > 0 or held.get(name, 0.0) > 0)
            if tradable and len(usable) >= _CITED and any(one.lean for one in usable):
                choices.append((name, side, usable))
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
        # A part of what the limits leave room for, or of what is held, in units that print in full
        part = float(rng.uniform(0.4, 0.9)) * shrink
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
        quantity = float(round(units)) if units >= 20 else round(units, 1)
        if quantity > 0:
            kind: ActionKind = "buy" if side > 0 else "sell"
            order = [usable[int(place)] for place in rng.permutation(len(usable))]
            first = next(one for one in order if one.lean)  # features to cite, one with a direction first
            cited = [first, *(one for one in order if one is not first)][: int(rng.integers(_CITED, _CITED + 2))]
            found.append((Action(instrument=name, kind=kind, quantity=quantity), cited))
    return found


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
    # The arithmetic of the book in the fewest words, in a drawn order; what does not fit is left out
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
    for line in [cash, *(found[int(at)] for at in rng.permutation(len(found)))]:
        if token_count(f"{text} {line}") <= TERSE_TOKENS:
            text = f"{text} {line}"
    confidence = round(float(rng.uniform(*_TERSE_CONFIDENCE)), 2)
    return Composed(kind="cell_b", actions=actions, text=text, confidence=confidence)


# Control cells made from an honest decision: other words, one number made wrong, another length

# Private characters stand for what must not change; a text that holds any of them is refused.
_NUMBER, _NAME, _END = "\ue000", "\ue001", "\ue002"
_NUMERAL = re.compile(r"[+\-−]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:\s?%|[A-Za-z]+)?")
_SLOT = re.compile(r"[#@*]\d")
_TOKEN = re.compile(f"[{_NUMBER}{_NAME}][0-9]+{_END}")
_LEANS = re.compile(
    r"(?:It|Its|This|That|These|They|Those|Such|So|Then|Therefore|Hence|But|However|Yet|Still|And|Both|Even|After|There"
    r"|My trades|More of|Less of|The holding of|The other|On the opposite)\b"
)
_MOST_KEPT = 0.4
_SO = re.compile(r"(?P<first>[^,;:.!?]+), so (?P<then>[^,;:.!?]+)\.")


def paraphrase(decision: Decision, context: Context, rng: np.random.Generator) -> Composed:
    """The same decision in other words.

    Whole sentences and phrases are replaced by fixed rewordings of ``thesaurus.toml``, and sentences that do not lean
    on the one before change places within their paragraph. Numbers, names and the opening words of a style stay.

    Raises
    ------
    NotMeasurableError
        Too little of the text could be reworded, or no draw kept its length; the message says which check failed.
    """
    text = judged_text(decision)
    if any(mark in text for mark in (_NUMBER, _NAME, _END)):
        raise NotMeasurableError("paraphrase cannot be made of a text with private-use characters (U+E000 to U+E002)")

    def draw(_: int) -> Composed:
        return _made("paraphrase", decision, _reworded(text, context, rng))

    return drawn("paraphrase", draw, context)


def _made(kind: DerivationKind, decision: Decision, text: str, **more: Any) -> Composed:
    """A cell with the orders and the confidence of an honest decision, and another text."""
    given: dict[str, Any] = {"actions": decision.actions, "confidence": decision.confidence, "original": decision}
    return Composed(kind=kind, text=text, **given, **more)


def _reworded(text: str, context: Context, rng: np.random.Generator) -> str:
    opening = next((words for words in SIGNATURES.values() if text.startswith(words)), "")
    kept: dict[str, str] = {}
    # The text with a token in place of every name and every number.
    masked_text = text[len(opening) :].lstrip() if opening else text
    numbers = count()

    def hide(mark: str, said: str) -> str:
        token = f"{mark}{next(numbers)}{_END}"
        kept[token] = said
        return token

    masked_found, at = "", 0
    for one in mentions_in(masked_text, context):
        masked_found += masked_text[at : one.start] + hide(_NAME, masked_text[one.start : one.end])
        at = one.end
    masked_found += masked_text[at:]
    parts = _TOKEN.split(masked_found)
    tokens = [*_TOKEN.findall(masked_found), ""]
    masked = "".join(
        _NUMERAL.sub(lambda one: hide(_NUMBER, one.group()), part) + token
        for part, token in zip(parts, tokens, strict=True)
    )
    # A paragraph with its blocks in a drawn order: a sentence and those that lean on it move together.
    shuffleds: list[str] = []
    for part in masked.split("\n\n"):
        pinned = bool(opening)
        blocks: list[list[str]] = []
        for start, end in sentences_of(part):
            sentence = part[start:end]
            joined = blocks and (_LEANS.match(sentence) or blocks[-1][-1].endswith(";"))
            if joined:
                blocks[-1].append(sentence)
            else:
                blocks.append([sentence])
        head, rest = (blocks[:1], blocks[1:]) if pinned else ([], blocks)
        order = [rest[int(at)] for at in rng.permutation(len(rest))]
        shuffleds.append(" ".join(sentence for block in (*head, *order) for sentence in block))
    masked = "\n\n".join(shuffleds)
    # A text whose rewordings all make it longer comes back to its length where some of it is kept.
    keep = float(rng.uniform(0.0, _MOST_KEPT))
    rules, phrase, others = _rules()
    for rule in rules:
        masked = rule.applied(masked, rng, keep)

    def turned(found: re.Match[str]) -> str:
        # A conclusion before its reason, where no figure could lose the name that it belongs to.
        first, then = found.group("first"), found.group("then")
        if _NUMBER in found.group() or rng.random() < 0.5:
            return found.group()
        lowered = first.lstrip()
        if first[:1] == " ":
            return f" {then}, because {lowered[:1].lower()}{lowered[1:]}."
        return f"{then}, because {lowered}."

    def reworded(found: re.Match[str]) -> str:
        ways = others[found.group().lower()]
        return _cased(ways[int(rng.integers(len(ways)))], found)

    masked = phrase.sub(reworded, _SO.sub(turned, masked))
    plain = _capitals(_TOKEN.sub(lambda found: kept[found.group()], masked), bool(opening))
    return f"{opening} {plain}" if opening else plain


@dataclass(frozen=True, slots=True)
class _Rule:
    """A sentence or clause with slots, and the ways in which it can be said instead."""

    pattern: re.Pattern[str]
    ways: tuple[str, ...]

    def applied(self, text: str, rng: np.random.Generator, keep: float) -> str:
        """The text with every match said in another way, except for a share that is kept."""

        def said(found: re.Match[str]) -> str:
            if rng.random() < keep:
                return found.group()
            way = self.ways[int(rng.integers(len(self.ways)))]
            slots = found.groupdict()
            return _cased(_SLOT.sub(lambda slot: slots[_group(slot.group())], way), found)

        return self.pattern.sub(said, text)


@lru_cache(maxsize=1)
def _rules() -> tuple[tuple[_Rule, ...], re.Pattern[str], dict[str, tuple[str, ...]]]:
    """The rewordings that ship with the package: sentences, the longest first, and phrases with their pattern."""
    raw = tomllib.loads((resources.files("assaymark.agents.controls") / "thesaurus.toml").read_text(encoding="utf-8"))
    sentences = sorted(raw["sentences"].items(), key=lambda pair: -len(pair[0]))
    lower = {phrase.lower(): tuple(others) for phrase, others in raw["phrases"].items()}
    ordered = sorted(lower, key=lambda one: (-len(one), one))
    phrase = re.compile(r"(?<![\w'])(?:" + "|".join(map(re.escape, ordered)) + r")(?![\w'])", re.IGNORECASE)
    # A source as a pattern: slots become groups, and case does not matter.
    patterns: list[_Rule] = []
    for source, ways in sentences:
        kinds = {"#": f"{_NUMBER}[0-9]+{_END}", "@": f"{_NAME}[0-9]+{_END}", "*": r"[A-Za-z]+(?: [a-z]+)?"}
        parts = _SLOT.split(source)
        slots = [*_SLOT.findall(source), ""]
        made = "".join(
            re.escape(part) + (f"(?P<{_group(slot)}>{kinds[slot[0]]})" if slot else "")
            for part, slot in zip(parts, slots, strict=True)
        )
        patterns.append(_Rule(re.compile(rf"(?<!\w){made}(?!\w)", re.IGNORECASE), tuple(ways)))
    return tuple(patterns), phrase, lower


def _group(slot: str) -> str:
    return {"#": "n", "@": "x", "*": "w"}[slot[0]] + slot[1]


def _cased(way: str, found: re.Match[str]) -> str:
    """A way with a capital where a sentence begins there, and a small first letter elsewhere."""
    before = found.string[: found.start()]
    begins = not before.strip() or before.rstrip()[-1] in ".!?" or before.endswith("\n")
    if begins or re.match(r"I\b", way):
        return way[:1].upper() + way[1:]
    return way[:1].lower() + way[1:]


def _capitals(text: str, after_opening: bool) -> str:
    """Capitals where sentences begin, and a small letter behind the opening words of a style."""

    def raised(found: re.Match[str]) -> str:
        return found.group(1) + found.group(2).upper()

    text = re.sub(r"([.!?]\s+|\n\n)([a-z])", raised, text)
    if after_opening:
        return text if re.match(r"(?:I|Asset)\b", text) else text[:1].lower() + text[1:]
    return text[:1].upper() + text[1:]


_SIGNED: Final = ("return", "alpha", "beta", "correlation")
_FACTORS: Final = (1.6, 4.0)


def fact_flip(decision: Decision, context: Context, rng: np.random.Generator) -> Composed:
    """The same decision with one number of its text changed to a wrong one.

    A number that the text gives rightly for a feature of an instrument is taken first, else one of the arithmetic of
    the book, else one that the material holds. Its sign is turned where it prints one that means something, or its
    size is changed; the new value is held nowhere in the material. ``change`` says what was done, and where.

    Raises
    ------
    NotMeasurableError
        The text has no number that can be made wrong, or no draw was admissible.
    """
    text = judged_text(decision)
    held = held_values(context, decision.actions)
    said = statements_of(text, context, decision.actions, book_if_any(context, decision.actions))
    # A figure, whether its sign can be turned, and whether it is a place between 0 and 1: of the best sort there is.
    choices: list[tuple[Figure, bool, bool]] = []
    for feature in said.features:
        if feature.right and _telling(feature.figure):
            kind, figure = feature.about.split("_")[0], feature.figure
            choices.append((figure, figure.signed and kind in _SIGNED, kind == "range" and not figure.percent))
    if not choices:
        amounts = [
            amount for amount in said.amounts if amount.right and amount.about in RECONCILED and _telling(amount.figure)
        ]
        choices = [(amount.figure, False, False) for amount in amounts]
    if not choices:
        loose = [one for one in outside(figures_in(text), mentions_in(text, context)) if _telling(one)]
        choices = [(one, False, False) for one in loose if is_held(held, abs(one.value), one.half)]
    if not choices:
        raise NotMeasurableError(
            "fact_flip cannot be made from this decision: its text states no number that the material holds"
        )

    def draw(_: int) -> Composed | None:
        figure, signed, place = choices[int(rng.integers(len(choices)))]
        new = _wrong(figure, signed, place, held, rng)
        if new is None:
            return None
        flipped = text[: figure.start] + new + text[figure.end :]
        return _made("fact_flip", decision, flipped, change=Change(figure.quote, new, figure.start))

    return drawn("fact_flip", draw, context)


def _telling(figure: Figure) -> bool:
    """Whether a figure is a measurement: it has a fraction or a percent sign, and is not zero."""
    return (figure.percent or figure.decimals > 0) and figure.value != 0


def _wrong(figure: Figure, signed: bool, place: bool, held: Sequence[float], rng: np.random.Generator) -> str | None:
    """Another value as it is printed; None where none was found."""
    for _ in range(REDRAWS):
        if signed and rng.random() < 0.5:
            return figure.written(-figure.value)
        factor = float(rng.uniform(*_FACTORS))
        value = figure.value * factor if rng.random() < 0.5 else figure.value / factor
        if place:
            value = float(rng.uniform(0.02, 0.98))
        # A size of a few last digits has to move by more of them than a factor gives.
        value = value + np.copysign(8 * figure.step, value) if abs(value - figure.value) < 8 * figure.step else value
        new = figure.written(value)
        size = abs(figures_in(new)[0].value)
        if size and (not place or size <= 1) and not is_held(held, size, figure.half):
            return new
    return None


def length_matched(decision: Decision, context: Context, tokens: int, rng: np.random.Generator) -> Composed:
    """The same decision with a text whose length is within 5 % of ``tokens``.

    A text that is too short gets true sentences behind it, each about a feature that it does not cite yet. One that
    is too long loses whole sentences, those without numbers first and never all that have one; its first sentence
    stays. A text that is within 5 % already stays as it is.

    Raises
    ------
    InputError
        ``tokens`` is not positive.
    NotMeasurableError
        The material has too little to add, or no choice of sentences comes near enough.
    """
    if tokens < 1:
        raise InputError("length_matched", [Problem("tokens", f"must be at least 1 (got {tokens})")])
    text = judged_text(decision)
    have, low, high = token_count(text), tokens * (1 - MATCHED_SHARE), tokens * (1 + MATCHED_SHARE)

    def draw(_: int) -> Composed | None:
        made: str | None = text
        if have > high:
            made = _shortened(text, low, high)
        elif have < low:
            added = _additions(text, decision, context, low - have, high - have, rng)
            made = None if added is None else " ".join([text, *added])
        return None if made is None else _made("length_matched", decision, made, tokens=tokens)

    what = f"no choice of sentences brings its {have} tokens within {MATCHED_SHARE:.0%} of {tokens}"
    return drawn("length_matched", draw, context, nothing=f"length_matched cannot be made from this decision: {what}")


def _shortened(text: str, low: float, high: float) -> str | None:
    """A choice of sentences of ``low`` to ``high`` tokens together, the first among them."""
    spans = sentences_of(text)
    sizes = [token_count(text[start:end]) for start, end in spans]
    worth = [len(figures_in(text[start:end])) for start, end in spans]
    best: dict[int, tuple[int, tuple[int, ...]]] = {sizes[0]: (worth[0], (0,))} if spans else {}
    for at in range(1, len(spans)):
        for size, (value, chosen) in list(best.items()):
            total = size + sizes[at]
            if total <= high and best.get(total, (-1, ()))[0] < value + worth[at]:
                best[total] = (value + worth[at], (*chosen, at))
    fits = {size: one for size, one in best.items() if low <= size <= high}
    if not fits:
        return None
    value, chosen = fits[max(fits, key=lambda size: (fits[size][0], size))]
    if sum(worth) and not value:
        return None
    found = text[spans[0][0] : spans[0][1]]
    for before, at in pairwise(chosen):
        # A new paragraph begins where one began between the chosen sentences.
        between = text[spans[before][1] : spans[at][0]]
        found += ("\n\n" if "\n\n" in between else " ") + text[spans[at][0] : spans[at][1]]
    return found


def _additions(
    text: str, decision: Decision, context: Context, low: float, high: float, rng: np.random.Generator
) -> list[str] | None:
    """True sentences of ``low`` to ``high`` tokens together, about features that are not cited yet."""
    cited = {(one.instrument, one.about) for one in statements_of(text, context, decision.actions, None).features}
    fresh = [one for one in features_of(context) if (one.instrument, one.field) not in cited]
    found: list[str] = []
    have = 0
    for at in rng.permutation(len(fresh)):
        feature = fresh[int(at)]
        texts = [template.format_map(feature.fill(feature.value)) for template in phrases()["additions"]]
        sizes = [token_count(one) for one in texts]
        ends = [one for one, size in zip(texts, sizes, strict=True) if low <= have + size <= high]
        if ends:
            return [*found, ends[int(rng.integers(len(ends)))]]
        # What is left has to hold at least one more of the shortest sentences.
        fits = [one for one, size in zip(texts, sizes, strict=True) if have + size + min(sizes) <= high]
        if fits:
            found.append(fits[int(rng.integers(len(fits)))])
            have += token_count(found[-1])
    return None
