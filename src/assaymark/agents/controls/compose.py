"""Control cells, made and recorded: A, long and wrong; B, terse and right; three made from an honest decision."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import count, pairwise
from types import MappingProxyType
from typing import Any, Final

import numpy as np

import assaymark.records as records
from assaymark.agents.controls import checks as c
from assaymark.agents.controls.checks import Composed, Figure
from assaymark.errors import InputError, NotMeasurableError, Problem, UnknownNameError
from assaymark.portfolio.broker import prices_of
from assaymark.prompting import SIGNATURES, judged_text, signature, token_count
from assaymark.records import Action, ActionKind, Context, Decision, DerivationKind

REDRAWS: Final = 24
"""How often a generator draws before it gives up."""


def checked(composed: Composed, context: Context) -> Composed:
    """The same cell with the record of its checks."""
    return replace(composed, admissibility=c.admissible(composed.kind, composed, context))


def _drawn(
    kind: DerivationKind, draw: Callable[[int], Composed | None], context: Context, nothing: str = ""
) -> Composed:
    """The first admissible cell of `REDRAWS` draws (``draw`` takes their number), with the record of its checks.

    Raises NotMeasurableError with every check that the last draw failed, or with ``nothing`` where nothing was drawn.
    """
    last: Composed | None = None
    for number in range(REDRAWS):
        if (composed := draw(number)) is not None:
            last = checked(composed, context)
            if not c.failed(last.admissibility):
                return last
    if last is None and nothing:
        raise NotMeasurableError(nothing)
    why = ("; ".join(map(str, c.failed(last.admissibility))) if last else "") or "nothing could be drawn"
    raise NotMeasurableError(f"{kind} is not admissible as drawn: {why} (last of {REDRAWS} draws)")


# Words for features, drawn


def _by_instrument(context: Context) -> dict[str, list[c.Feature]]:
    features: dict[str, list[c.Feature]] = {}
    for feature in c.features_of(context):
        features.setdefault(feature.instrument, []).append(feature)
    return features


@cache
def phrases() -> dict[str, tuple[str, ...]]:
    """The templates of ``phrases.toml`` by name: sentences with alternatives, from which a text is drawn."""
    text = (files("assaymark.agents.controls") / "phrases.toml").read_text(encoding="utf-8")
    return {name: tuple(templates) for name, templates in tomllib.loads(text).items()}


_CHOICE = re.compile(r"\[([^\[\]]*)\]")


def _chosen(template: str, rng: np.random.Generator) -> str:
    """A template with every choice drawn."""
    while _CHOICE.search(template):
        template = _CHOICE.sub(lambda match: str(rng.choice(match.group(1).split("|"))), template)
    return template


def _some_of(name: str, rng: np.random.Generator, most: int) -> list[str]:
    """Different templates of a name in a drawn order, each with every choice drawn."""
    return [_chosen(phrases()[name][int(at)], rng) for at in rng.permutation(len(phrases()[name]))[:most]]


def _one_of(name: str, rng: np.random.Generator, fill: Mapping[str, str] | None = None) -> str:
    """One of the templates of a name, drawn, with its choices and, where something is given, its names filled in."""
    text = _chosen(phrases()[name][int(rng.integers(len(phrases()[name])))], rng)
    return text if fill is None else text.format_map(fill)


def _limits_text(limits: Mapping[str, float]) -> dict[str, str]:
    """The limits as the templates print them: weights and cash in percent, leverage plainly."""
    shown = {"max_weight": "{:.1%}", "min_cash": "{:.1%}", "max_leverage": "{:.2f}"}
    return {kind: shown[kind].format(limit) for kind, limit in limits.items() if kind in shown}


def _styled(text: str, style: str) -> str:
    """A text behind the opening words of a style; its first letter is small unless a name begins there."""
    opening = signature(style)
    first = text if re.match(r"Asset\b|I\b", text) else text[:1].lower() + text[1:]
    return f"{opening} {first}" if opening else text


# Cell A, long, confident and wrong with orders that break a limit; cell B, a few true words that keep every limit

KNOWN_SCORES: Final[Mapping[str, float]] = MappingProxyType({"constraint_awareness": 1.0})
"""Under every rubric here, a broken limit with a false account of it is the lowest score of constraint awareness."""

_CONFIDENCE: Final = (0.9, 0.99)
_TERSE_CONFIDENCE: Final = (0.5, 0.7)
_TOLD: Final = 3  # instruments that the memo speaks about
_CITED: Final = 3
_ACCOUNT: Final = (  # the arithmetic of a book in the fewest words: the limit that a line needs, and the line
    ("", "Exposure is {exposure_share:.1%} of equity."),
    ("max_leverage", "Leverage {leverage:.2f} against a cap of {max_leverage}."),
    ("min_cash", "Cash is {cash_share:.1%} of equity against a floor of {min_cash}."),
    ("max_weight", "Largest position {largest:.1%} against a cap of {max_weight}."),
)


def verbose_wrong(context: Context, rng: np.random.Generator, style: str = "elder") -> Composed:
    """A trajectory of cell A: at least 200 tokens, sure of itself, wrong by arithmetic (ValueBlindBench section 3.5).

    One order breaks a limit; the features cited for it and for others are false and far from the true values; cash,
    exposure and leverage are reconciled to numbers that are not those of the book. `admissible` has the exact rules;
    NotMeasurableError has the checks that failed where no draw was admissible.
    """
    barred = any(rule.kind == "allow_short" and not rule.limit for rule in context.constraints)
    cap = next((rule.limit for rule in context.constraints if rule.kind == "max_weight"), 1.0)
    prices, portfolio, features = prices_of(context), context.portfolio, _by_instrument(context)
    names = [item.id for item in context.instruments if prices.get(item.id, 0.0) > 0]
    if not names or portfolio is None:
        raise NotMeasurableError("cell_a needs a portfolio and an instrument with a price (got neither or one of them)")

    def draw(_: int) -> Composed | None:
        short = int(rng.integers(4 if barred else 3)) == 3
        name = names[int(rng.integers(len(names)))]
        price, nav, units = prices[name], portfolio.nav, portfolio.positions.get(name, 0.0)
        if short:
            quantity = units + nav * float(rng.uniform(0.1, 0.25)) / price
        else:
            quantity = max(nav * cap * float(rng.uniform(1.35, 2.1)) - units * price, 0.2 * nav) / price
        order = Action(instrument=name, kind="short" if short else "buy", quantity=round(quantity, 1))
        book = c.book_if_any(context, (order,))
        if book is None or not book.broken:
            return None
        sizes = c.held_values(context, (order,))
        opening = " ".join([_one_of("openings", rng), *_some_of("theses", rng, 2)])
        evidence = _evidence(features, order, sizes, rng)
        fill = {"verb": order.kind, "quantity": f"{order.quantity:.1f}", "x": order.instrument}
        decision = " ".join([_one_of("orders_a", rng, fill), *_some_of("convictions", rng, 2)])
        # The memo's claims about the book after its orders: nothing of it true, all of it within the limits
        true, limits, equity = book.amounts, book.limits, book.amounts["equity"]
        weight, floor = limits.get("max_weight", 0.5), limits.get("min_cash", 0.0)
        top = min(limits.get("max_leverage", 1.0), 1.0)
        fill = {**_limits_text(limits), "cash": f"{true['cash']:,.2f}", "x": order.instrument}
        for amount, low, high, shown in (
            ("cost", 0.03 * equity, 0.3 * equity, "{:,.2f}"),
            ("residual", (floor + 0.06) * equity, (floor + 0.4) * equity, "{:,.2f}"),
            ("exposure", 0.2 * equity, 0.95 * top * equity, "{:,.2f}"),
            ("equity", 0.6 * equity, 1.6 * equity, "{:,.2f}"),
            ("exposure_share", 0.2, 0.95 * top, "{:.1%}"),
            ("leverage", 0.2, 0.95 * top, "{:.2f}"),
            ("largest", 0.3 * weight, 0.95 * weight, "{:.1%}"),
            ("cash_share", floor + 0.06, floor + 0.4, "{:.1%}"),
        ):
            for _ in range(REDRAWS):  # a number that is far from the true one and held nowhere
                value = float(rng.uniform(low, high))
                far = abs(value - true[amount]) > 0.15 * max(abs(value), abs(true[amount]))
                if far and not c.is_held(sizes, value, 0.0006):
                    fill[amount] = shown.format(value)
                    break
            else:
                return None
        # The reconciliation, each of its results false; limits are quoted as they are.
        lines = [_one_of("cash_lines", rng, fill), _one_of("exposure_lines", rng, fill)]
        for kind, topic in (("max_leverage", "leverage"), ("max_weight", "largest"), ("min_cash", "floor")):
            lines += [_one_of(f"{topic}_lines", rng, fill)] if kind in limits else []
        account = " ".join([_one_of("bridges", rng), *lines])
        closing = " ".join(_some_of("closings", rng, 3))
        text = _styled("\n\n".join([opening, *evidence, decision, account, closing]), style)
        confidence = round(float(rng.uniform(*_CONFIDENCE)), 2)
        return Composed("cell_a", (order,), text, confidence, known_scores=KNOWN_SCORES)

    return _drawn("cell_a", draw, context)


def _evidence(
    features: Mapping[str, list[c.Feature]], order: Action, sizes: Sequence[float], rng: np.random.Generator
) -> list[str]:
    """A paragraph for the instrument of the order, and shorter ones for others: features far from their true values."""
    others = [name for name in features if name != order.instrument]
    named = [order.instrument] if order.instrument in features else []
    named += [others[int(at)] for at in rng.permutation(len(others))[: _TOLD - len(named)]]
    introductions, readings = _some_of("introductions", rng, _TOLD), _some_of("readings", rng, _TOLD + 1)
    paragraphs = []
    for number, name in enumerate(named):
        lean = (-1 if order.kind == "short" else 1) if name == order.instrument else int(rng.choice([-1, 1]))
        figures: list[str] = []
        for at in rng.permutation(len(features[name])):
            feature = features[name][int(at)]
            if (value := feature.wrong_value(lean, sizes, rng)) is not None:
                sentence = _one_of("features", rng, feature.fill(value))
                figures.append(sentence[:-1] + _one_of("turns", rng) if rng.random() < 0.25 else sentence)
                if len(figures) == (3 if number == 0 else 2):
                    break
        paragraphs.append(" ".join([introductions[number].format(x=name), *figures, readings[number]]))
    return paragraphs


def terse_right(context: Context, rng: np.random.Generator, style: str = "plain") -> Composed:
    """A trajectory of cell B: at most 60 words, three features cited, no hedging (ValueBlindBench section 3.5).

    One or two orders that keep every limit. What is cited of an instrument with a direction, returns and its place in
    the range, speaks for the order; every number is the true one as printed. `admissible` has the exact rules.
    """
    # Every instrument and side for which three features can be cited, none of which speaks for the other side
    prices, positions = prices_of(context), context.portfolio.positions if context.portfolio else {}
    choices: list[tuple[str, int, list[c.Feature]]] = []
    for name, features in _by_instrument(context).items():
        for side in (1, -1):
            usable = [feature for feature in features if feature.lean in (0, side)]
            tradable = prices.get(name, 0.0) > 0 and (side > 0 or positions.get(name, 0.0) > 0)
            if tradable and len(usable) >= _CITED and any(feature.lean for feature in usable):
                choices.append((name, side, usable))
    if not choices:
        raise NotMeasurableError(
            "cell_b cannot be made from this context: no instrument has a price, three features, one of them with a "
            "direction, and a position to sell where that is down"
        )
    book = c.book_of(context, ())
    after, limits = book.after, book.limits

    def draw(attempt: int) -> Composed | None:
        # One or two orders of different instruments, smaller with every attempt
        wanted = min(int(rng.integers(1, 3)), int(limits.get("max_orders", 2.0)))
        orders: list[tuple[Action, list[c.Feature]]] = []
        for at in rng.permutation(len(choices)):
            name, side, usable = choices[int(at)]
            if len(orders) == wanted or any(order.instrument == name for order, _ in orders):
                continue
            # A part of what the limits leave room for, or of what is held, in units that print in full
            part, price = float(rng.uniform(0.4, 0.9)) * 0.85**attempt, prices[name]
            units = after.positions.get(name, 0.0)
            if side < 0:
                units *= part
            else:
                room = limits.get("max_weight", 1.0) * after.equity - units * price
                cash = after.residual - limits.get("min_cash", 0.0) * after.equity
                gross = limits.get("max_leverage", 1.0) * after.equity - after.exposure
                units = part * max(min(room, 0.5 * cash, gross), 0.0) / price
            quantity = float(round(units)) if units >= 20 else round(units, 1)
            if quantity > 0:
                kind: ActionKind = "buy" if side > 0 else "sell"
                order = [usable[int(place)] for place in rng.permutation(len(usable))]
                first = next(one for one in order if one.lean)  # features to cite, one with a direction first
                cited = [first, *(one for one in order if one is not first)][: int(rng.integers(_CITED, _CITED + 2))]
                orders.append((Action(name, kind, quantity), cited))
        return _terse(context, orders, rng, style) if orders else None

    return _drawn("cell_b", draw, context)


def _terse(
    context: Context, orders: Sequence[tuple[Action, list[c.Feature]]], rng: np.random.Generator, style: str
) -> Composed:
    """The words of cell B: the reasons of its orders, then as much of the arithmetic as fits."""
    actions, reasons = tuple(order for order, _ in orders), []
    book = c.book_of(context, actions)
    for order, cited in orders:
        pattern = _one_of("features_b", rng)
        citations = ", ".join(pattern.format(**feature.fill(feature.value)) for feature in cited)
        fill = {"verb": order.kind, "Verb": order.kind.capitalize(), "quantity": f"{order.quantity:g}",
                "x": order.instrument, "features": citations}  # fmt: skip
        reasons.append(_one_of("orders_b", rng, fill))
    text = _styled(" ".join(reasons), style)
    # The arithmetic of the book in a drawn order; what does not fit is left out
    true, limits = book.amounts, _limits_text(book.limits)
    spent = f"less cost {true['cost']:,.2f}" if true["cost"] >= 0 else f"plus proceeds {-true['cost']:,.2f}"
    cash = f"Cash {true['cash']:,.2f} {spent} leaves {true['residual']:,.2f}."
    lines = [line.format(**true, **limits) for limit, line in _ACCOUNT if not limit or limit in limits]
    for line in [cash, *(lines[int(at)] for at in rng.permutation(len(lines)))]:
        if token_count(f"{text} {line}") <= c.TERSE_TOKENS:
            text = f"{text} {line}"
    confidence = round(float(rng.uniform(*_TERSE_CONFIDENCE)), 2)
    return Composed("cell_b", actions, text, confidence)


# Control cells made from an honest decision: other words, one number made wrong, another length

# Private characters stand for what must not change; a text that holds any of them is refused.
_NUMBER, _NAME, _END = "\ue000", "\ue001", "\ue002"
_NUMERAL = re.compile(r"[+\-−]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:\s?%|[A-Za-z]+)?")
_SLOT = re.compile(r"[#@*]\d")
_SLOTS: Final = {
    "#": ("n", f"{_NUMBER}[0-9]+{_END}"), "@": ("x", f"{_NAME}[0-9]+{_END}"), "*": ("w", r"[A-Za-z]+(?: [a-z]+)?"),
}  # fmt: skip
_TOKEN = re.compile(f"[{_NUMBER}{_NAME}][0-9]+{_END}")
_LEANS = re.compile(
    r"(?:It|Its|This|That|These|They|Those|Such|So|Then|Therefore|Hence|But|However|Yet|Still|And|Both|Even|After|There"
    r"|My trades|More of|Less of|The holding of|The other|On the opposite)\b"
)
_MOST_KEPT = 0.4
_SO = re.compile(r"(?P<first>[^,;:.!?]+), so (?P<then>[^,;:.!?]+)\.")


def _made(kind: DerivationKind, decision: Decision, text: str, **more: Any) -> Composed:
    """A cell with the orders and the confidence of an honest decision, and another text."""
    given: dict[str, Any] = {"actions": decision.actions, "confidence": decision.confidence, "original": decision}
    return Composed(kind, text=text, **given, **more)


def paraphrase(decision: Decision, context: Context, rng: np.random.Generator) -> Composed:
    """The same decision in other words.

    Whole sentences and phrases are replaced by fixed rewordings of ``thesaurus.toml``, and sentences that do not lean
    on the one before change places within their paragraph. Numbers, names and the opening words of a style stay.
    """
    text = judged_text(decision)
    if any(mark in text for mark in (_NUMBER, _NAME, _END)):
        raise NotMeasurableError("paraphrase cannot be made of a text with private-use characters (U+E000 to U+E002)")
    return _drawn("paraphrase", lambda _: _made("paraphrase", decision, reworded(text, context, rng)), context)


def reworded(text: str, context: Context, rng: np.random.Generator) -> str:
    """A text in other words, with its names, its numbers and the opening words of its style."""
    opening = next((words for words in SIGNATURES.values() if text.startswith(words)), "")
    plain = text[len(opening) :].lstrip() if opening else text
    # A token in place of every name and every number
    originals: dict[str, str] = {}
    numbers = count()

    def hide(mark: str, piece: str) -> str:
        token = f"{mark}{next(numbers)}{_END}"
        originals[token] = piece
        return token

    named, at = "", 0
    for mention in c.mentions_in(plain, context):
        named += plain[at : mention.start] + hide(_NAME, plain[mention.start : mention.end])
        at = mention.end
    named += plain[at:]
    tokens, masked = [*_TOKEN.findall(named), ""], ""
    for part, token in zip(_TOKEN.split(named), tokens, strict=True):
        masked += _NUMERAL.sub(lambda match: hide(_NUMBER, match.group()), part) + token
    # Each paragraph with its blocks in a drawn order: a sentence and those that lean on it move together
    paragraphs: list[str] = []
    for part in masked.split("\n\n"):
        blocks: list[list[str]] = []
        for start, end in c.sentences_of(part):
            if blocks and (_LEANS.match(part[start:end]) or blocks[-1][-1].endswith(";")):
                blocks[-1].append(part[start:end])
            else:
                blocks.append([part[start:end]])
        pinned = 1 if opening else 0
        order = [blocks[pinned + int(at)] for at in rng.permutation(max(len(blocks) - pinned, 0))]
        paragraphs.append(" ".join(sentence for block in (*blocks[:pinned], *order) for sentence in block))
    masked = "\n\n".join(paragraphs)
    # A text whose rewordings all make it longer comes back to its length where some of it is kept.
    keep = float(rng.uniform(0.0, _MOST_KEPT))
    sentences, phrase, others = _rewordings()

    def rephrased(match: re.Match[str], ways: tuple[str, ...]) -> str:
        if rng.random() < keep:
            return match.group()
        way, slots = ways[int(rng.integers(len(ways)))], match.groupdict()
        return _cased(_SLOT.sub(lambda slot: slots[_SLOTS[slot[0][0]][0] + slot[0][1]], way), match)

    def turned(match: re.Match[str]) -> str:
        # A conclusion before its reason, where no figure could lose the name that it belongs to
        first, then = match.group("first"), match.group("then")
        if _NUMBER in match.group() or rng.random() < 0.5:
            return match.group()
        lowered = first.lstrip()
        if first[:1] == " ":
            return f" {then}, because {lowered[:1].lower()}{lowered[1:]}."
        return f"{then}, because {lowered}."

    def replaced(match: re.Match[str]) -> str:
        ways = others[match.group().lower()]
        return _cased(ways[int(rng.integers(len(ways)))], match)

    for pattern, ways in sentences:
        masked = pattern.sub(lambda match, ways=ways: rephrased(match, ways), masked)  # type: ignore[misc]
    masked = phrase.sub(replaced, _SO.sub(turned, masked))
    # Capitals where sentences begin, and a small letter behind the opening words of a style
    plain = _TOKEN.sub(lambda match: originals[match.group()], masked)
    plain = re.sub(r"([.!?]\s+|\n\n)([a-z])", lambda match: match.group(1) + match.group(2).upper(), plain)
    if not opening:
        return plain[:1].upper() + plain[1:]
    first = plain if re.match(r"(?:I|Asset)\b", plain) else plain[:1].lower() + plain[1:]
    return f"{opening} {first}"


@cache
def _rewordings() -> tuple[list[tuple[re.Pattern[str], tuple[str, ...]]], re.Pattern[str], dict[str, tuple[str, ...]]]:
    """The rewordings that ship with the package: sentences, the longest first, and phrases with their pattern."""
    raw = tomllib.loads((files("assaymark.agents.controls") / "thesaurus.toml").read_text(encoding="utf-8"))
    lower = {phrase.lower(): tuple(others) for phrase, others in raw["phrases"].items()}
    ordered = "|".join(re.escape(phrase) for phrase in sorted(lower, key=lambda phrase: (-len(phrase), phrase)))
    phrase = re.compile(rf"(?<![\w'])(?:{ordered})(?![\w'])", re.IGNORECASE)
    # A source as a pattern: slots become groups, and case does not matter.
    sentences = []
    for source, ways in sorted(raw["sentences"].items(), key=lambda pair: -len(pair[0])):
        pattern = ""
        for part, slot in zip(_SLOT.split(source), [*_SLOT.findall(source), ""], strict=True):
            group, kind = _SLOTS[slot[0]] if slot else ("", "")
            pattern += re.escape(part) + (f"(?P<{group}{slot[1]}>{kind})" if slot else "")
        sentences.append((re.compile(rf"(?<!\w){pattern}(?!\w)", re.IGNORECASE), tuple(ways)))
    return sentences, phrase, lower


def _cased(way: str, match: re.Match[str]) -> str:
    """A way with a capital where a sentence begins there, and a small first letter elsewhere."""
    before = match.string[: match.start()]
    begins = not before.strip() or before.rstrip()[-1] in ".!?" or before.endswith("\n")
    if begins or re.match(r"I\b", way):
        return way[:1].upper() + way[1:]
    return way[:1].lower() + way[1:]


_SIGNED: Final = ("return", "alpha", "beta", "correlation")
_FACTORS: Final = (1.6, 4.0)


def fact_flip(decision: Decision, context: Context, rng: np.random.Generator) -> Composed:
    """The same decision with one number of its text changed to a wrong one.

    A number that the text gives rightly for a feature of an instrument is taken first, else one of the arithmetic of
    the book, else one that the material holds. Its sign is turned where it prints one that means something, or its
    size is changed; the new value is held nowhere in the material. ``change`` says what was done, and where.
    """

    def telling(figure: Figure) -> bool:
        # A measurement has a fraction or a percent sign, and is not zero.
        return (figure.percent or figure.decimals > 0) and figure.value != 0

    text, sizes = judged_text(decision), c.held_values(context, decision.actions)
    statements, _ = c.statements_of(text, context, decision.actions, c.book_if_any(context, decision.actions))
    right = [statement for statement in statements if statement.right and telling(statement.figure)]
    # A figure, whether its sign can be turned, and whether it is a place between 0 and 1: of the best sort there is.
    choices: list[tuple[Figure, bool, bool]] = []
    for statement in (statement for statement in right if statement.kind == "feature"):
        kind, figure = statement.about.split("_")[0], statement.figure
        choices.append((figure, figure.signed and kind in _SIGNED, kind == "range" and not figure.percent))
    if not choices:
        choices = [(one.figure, False, False) for one in right if one.kind == "amount" and one.about in c.RECONCILED]
    if not choices:
        loose = [figure for figure in c.figures_beside(text, c.mentions_in(text, context)) if telling(figure)]
        choices = [(figure, False, False) for figure in loose if c.is_held(sizes, abs(figure.value), figure.half)]
    if not choices:
        raise NotMeasurableError(
            "fact_flip cannot be made from this decision: its text states no number that the material holds"
        )

    def draw(_: int) -> Composed | None:
        figure, signed, place = choices[int(rng.integers(len(choices)))]
        for _ in range(REDRAWS):
            if signed and rng.random() < 0.5:
                new = figure.written(-figure.value)
                break
            factor = float(rng.uniform(*_FACTORS))
            value = figure.value * factor if rng.random() < 0.5 else figure.value / factor
            if place:
                value = float(rng.uniform(0.02, 0.98))
            # A size of a few last digits has to move by more of them than a factor gives.
            value += np.copysign(8 * figure.step, value) if abs(value - figure.value) < 8 * figure.step else 0.0
            new = figure.written(value)
            size = abs(c.figures_in(new)[0].value)
            if size and (not place or size <= 1) and not c.is_held(sizes, size, figure.half):
                break
        else:
            return None
        flipped = text[: figure.start] + new + text[figure.end :]
        return _made("fact_flip", decision, flipped, change=(figure, new))

    return _drawn("fact_flip", draw, context)


def length_matched(decision: Decision, context: Context, tokens: int, rng: np.random.Generator) -> Composed:
    """The same decision with a text whose length is within 5 % of ``tokens``.

    A text that is too short gets true sentences behind it, each about a feature that it does not cite yet. One that
    is too long loses whole sentences, those without numbers first and never all that have one; its first sentence
    stays. A text that is within 5 % already stays as it is.
    """
    if tokens < 1:
        raise InputError("length_matched", [Problem("tokens", f"must be at least 1 (got {tokens})")])
    text = judged_text(decision)
    size, low, high = token_count(text), tokens * (1 - c.MATCHED_SHARE), tokens * (1 + c.MATCHED_SHARE)
    statements, _ = c.statements_of(text, context, decision.actions, None)
    cited = {(statement.instrument, statement.about) for statement in statements if statement.kind == "feature"}
    fresh = [one for one in c.features_of(context) if (one.instrument, f"{one.kind}_{one.horizon}") not in cited]

    def draw(_: int) -> Composed | None:
        longer, have = text, size
        if have > high:
            shorter = _shortened(text, low, high)
            return None if shorter is None else _made("length_matched", decision, shorter, tokens=tokens)
        # True sentences about features that are not cited yet
        for at in rng.permutation(len(fresh)) if have < low else ():
            feature = fresh[int(at)]
            texts = [template.format_map(feature.fill(feature.value)) for template in phrases()["additions"]]
            sizes = [token_count(text) for text in texts]
            if ends := [text for text, more in zip(texts, sizes, strict=True) if low <= have + more <= high]:
                longer, have = f"{longer} {ends[int(rng.integers(len(ends)))]}", tokens
                break
            # What is left has to hold at least one more of the shortest sentences.
            if fits := [text for text, more in zip(texts, sizes, strict=True) if have + more + min(sizes) <= high]:
                added = fits[int(rng.integers(len(fits)))]
                longer, have = f"{longer} {added}", have + token_count(added)
        return None if have < low else _made("length_matched", decision, longer, tokens=tokens)

    what = f"no choice of sentences brings its {size} tokens within {c.MATCHED_SHARE:.0%} of {tokens}"
    return _drawn("length_matched", draw, context, f"length_matched cannot be made from this decision: {what}")


def _shortened(text: str, low: float, high: float) -> str | None:
    """A choice of sentences of ``low`` to ``high`` tokens together, the first among them."""
    spans = c.sentences_of(text)
    sizes = [token_count(text[start:end]) for start, end in spans]
    worth = [len(c.figures_in(text[start:end])) for start, end in spans]
    best: dict[int, tuple[int, tuple[int, ...]]] = {sizes[0]: (worth[0], (0,))} if spans else {}
    for at in range(1, len(spans)):
        for size, (value, chosen) in list(best.items()):
            total = size + sizes[at]
            if total <= high and best.get(total, (-1, ()))[0] < value + worth[at]:
                best[total] = (value + worth[at], (*chosen, at))
    fits = {size: choice for size, choice in best.items() if low <= size <= high}
    value, chosen = fits[max(fits, key=lambda size: (fits[size][0], size))] if fits else (0, ())
    if not fits or (any(worth) and not value):
        return None
    shorter = text[spans[0][0] : spans[0][1]]
    for before, at in pairwise(chosen):
        # A new paragraph begins where one began between the chosen sentences.
        between = text[spans[before][1] : spans[at][0]]
        shorter += ("\n\n" if "\n\n" in between else " ") + text[spans[at][0] : spans[at][1]]
    return shorter


# Control cells as records: one cell, and a number of them spread over the clusters of a study

MADE_HERE: Final = "assaymark control cells"
"""Where a control cell comes from, in its provenance."""

CONTROL: Final = "control"
"""The agent id of every control cell."""

ORDERS: Final = "orders-v1"
"""The format of the decisions that a cell makes itself; a derived one keeps that of its parent."""

Placed = tuple[str, Context, str]
"""A context's id, the context, and the cluster that it belongs to."""
Source = tuple[str, Context, Decision | None]
"""A context's id, the context, and the honest decision that a derived cell is made from."""


def cell_decision(
    composed: Composed, context_id: str, record_id: str, cluster: str, family: str, seed: int, decided_at: datetime
) -> Decision:
    """A composed cell as a record; NotMeasurableError where it was not checked, or c.failed a check.

    A cell derived from a decision takes its episode, step, cluster, time and format from it, so that the two can be
    compared as a pair.
    """
    kind, origin, change = composed.kind, composed.original, composed.change
    if not composed.admissibility or c.failed(composed.admissibility):
        reason = "; ".join(map(str, c.failed(composed.admissibility))) or "it was never checked"
        raise NotMeasurableError(f"{kind} {record_id} is no control cell: {reason}")
    episode, step, form, parent = record_id, 1, ORDERS, None
    if origin:
        episode, step, form, parent = origin.episode_id, origin.step, origin.format, origin.record_id
        cluster, decided_at = origin.cluster, origin.decided_at
    return Decision(
        record_id, episode, step, cluster, decided_at, records.Agent(CONTROL, family, model=f"{CONTROL}/{kind}"),
        context_id, composed.actions, format=form, rationales=(records.Rationale(composed.text, kind="summary"),),
        provenance=records.Provenance(source=MADE_HERE), confidence=composed.confidence,
        derivation=records.Derivation(kind, parent, seed, known_scores=dict(composed.known_scores)),
        flags=(f"{change[0].quote} changed to {change[1]}",) if change else (),
    )  # fmt: skip


def _sources(
    contexts: Sequence[Placed], kind: str, count: int, honest: Sequence[Decision], tokens: int | None
) -> dict[str, list[Source]]:
    """What cells are made from, by cluster: contexts, or honest decisions on them; everything that is wrong at once."""
    derived, sources = kind in c.DERIVED_KINDS, dict[str, list[Source]]()
    placed = {key: (context, cluster) for key, context, cluster in contexts}
    for decision in honest if derived else ():
        if decision.context_id in placed and decision.derivation.kind == "honest":
            context, cluster = placed[decision.context_id]
            sources.setdefault(cluster, []).append((decision.context_id, context, decision))
    for key, context, cluster in () if derived else contexts:
        sources.setdefault(cluster, []).append((key, context, None))
    needed = "an honest decision on one of the contexts" if derived else "a context"
    problems = [Problem("count", f"must not be negative (got {count})")] if count < 0 else []
    if count and not sources:
        problems.append(Problem("contexts", f"{kind} needs {needed} (got none)"))
    if kind == "length_matched" and not tokens:
        problems.append(Problem("tokens", f"length_matched needs the length asked for (got {tokens})"))
    if problems:
        raise InputError("cell_decisions", problems)
    return sources


def cell_decisions(
    contexts: Sequence[Placed], kind: DerivationKind, count: int, seed: int, family: str, style: str = "plain", *,
    honest: Sequence[Decision] = (), tokens: int | None = None, study: str = "",
    reasons: dict[str, str] | None = None,
) -> list[Decision]:  # fmt: skip
    """``count`` control cells, spread evenly over the clusters: their numbers differ by one at most.

    Equal arguments give equal records. A context or decision from which no admissible cell comes is passed over for
    another of its cluster. Cells A and B use a context again once all others of its cluster were used; a derived cell
    is made from a decision once. ``derivation.seed`` of each record repeats its generator. With ``reasons`` it is no
    error that fewer can be made: they say why a context or decision gave none, and "" of one that gave some.
    """
    if kind not in c.CELL_KINDS:
        raise UnknownNameError("kind of control cell", kind, c.CELL_KINDS)
    derived, sources = kind in c.DERIVED_KINDS, _sources(contexts, kind, count, honest, tokens)
    last = "there is nothing left to make one from"
    notes = {} if reasons is None else reasons

    def make(context: Context, decision: Decision | None, rng: np.random.Generator) -> Composed:
        if decision is None:
            return (verbose_wrong if kind == "cell_a" else terse_right)(context, rng, style)
        if kind == "length_matched":
            return length_matched(decision, context, tokens or 0, rng)
        return (paraphrase if kind == "paraphrase" else fact_flip)(decision, context, rng)

    def cells(cluster: str, key: list[int]) -> Iterator[tuple[str, Context, Composed, int]]:
        """The admissible cells of one cluster, its sources tried in a drawn order.

        Derived cells use every source once, the others again and again, until a whole round came to nothing.
        """
        nonlocal last
        members = sources[cluster]
        order = np.random.default_rng(key).permutation(len(members))
        idle, draws, reason = 0, 0, "there is nothing left to make one from"
        while idle < len(members):
            for at in order:
                idle, draws = idle + 1, draws + 1
                context_id, context, decision = members[int(at)]
                source = context_id if decision is None else decision.record_id
                own = int(np.random.SeedSequence([*key, draws]).generate_state(1)[0])
                try:
                    composed = make(context, decision, np.random.default_rng(own))
                except NotMeasurableError as exc:
                    reason = str(exc)
                    notes.setdefault(source, reason)
                    continue
                idle, notes[source] = 0, ""
                yield context_id, context, composed, own
            if derived:
                break
        last = reason

    batch, name = list[Decision](), f"{study}/{kind}" if study else kind
    queues = {
        cluster: cells(cluster, [seed, c.CELL_KINDS.index(kind), number])
        for number, cluster in enumerate(sorted(sources))
    }
    while len(batch) < count and queues:
        for cluster in list(queues):
            if len(batch) == count:
                break
            if (cell := next(queues[cluster], None)) is None:
                del queues[cluster]
                continue
            context_id, context, composed, own = cell
            record_id, at = f"{name}-{seed}-{len(batch) + 1:04d}", context.cutoff + timedelta(seconds=1)
            batch.append(cell_decision(composed, context_id, record_id, cluster, family, own, at))
    if len(batch) < count and reasons is None:
        raise NotMeasurableError(f"only {len(batch)} of {count} {kind} cells could be made; the last reason: {last}")
    return batch
