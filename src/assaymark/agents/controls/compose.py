"""Generate adversarial controls: A, verbose-wrong; B, terse-right; and three derived from an honest decision."""

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
from assaymark.agents.controls.checks import Composed, PrintedFigure
from assaymark.errors import InputError, NotMeasurableError, Problem, check_known
from assaymark.portfolio.broker import prices_of
from assaymark.prompting import SIGNATURES, judged_text, signature, token_count, with_opening
from assaymark.records import Action, ActionKind, Context, Decision, DerivationKind, grouped

REDRAWS: Final = 24
"""Maximum number of draws of a generator."""


def with_checks(composed: Composed, context: Context) -> Composed:
    """Return the cell with the results of its checks."""
    return replace(composed, admissibility=c.admissible(composed.kind, composed, context))


def _draw_cell(
    kind: DerivationKind, draw: Callable[[int], Composed | None], context: Context, nothing: str = ""
) -> Composed:
    """Return the first admissible cell of `REDRAWS` draws; else NotMeasurableError says why, or ``nothing``."""
    last: Composed | None = None
    for number in range(REDRAWS):
        if (composed := draw(number)) is not None:
            last = with_checks(composed, context)
            if not c.failed_checks(last.admissibility):
                return last
    if last is None and nothing:
        raise NotMeasurableError(nothing)
    reason = ("; ".join(map(str, c.failed_checks(last.admissibility))) if last else "") or "nothing could be drawn"
    raise NotMeasurableError(f"{kind} is not admissible as drawn: {reason} (last of {REDRAWS} draws)")


@cache
def phrases() -> dict[str, tuple[str, ...]]:
    """Return the templates of ``phrases.toml`` by name: sentences with alternatives to draw from."""
    text = (files("assaymark.agents.controls") / "phrases.toml").read_text(encoding="utf-8")
    return {name: tuple(templates) for name, templates in tomllib.loads(text).items()}


_CHOICE = re.compile(r"\[([^\[\]]*)\]")


def _draw_choices(template: str, rng: np.random.Generator) -> str:
    """Draw every choice in a template."""
    while _CHOICE.search(template):
        template = _CHOICE.sub(lambda match: str(rng.choice(match.group(1).split("|"))), template)
    return template


def _draw_templates(name: str, rng: np.random.Generator, most: int) -> list[str]:
    """Draw up to ``most`` different templates of a name, with all choices drawn."""
    return [_draw_choices(phrases()[name][int(at)], rng) for at in rng.permutation(len(phrases()[name]))[:most]]


def _draw_template(name: str, rng: np.random.Generator, fill: Mapping[str, str] | None = None) -> str:
    """Draw one template of a name with its choices, and fill in its placeholders if ``fill`` is given."""
    text = _draw_choices(phrases()[name][int(rng.integers(len(phrases()[name])))], rng)
    return text if fill is None else text.format_map(fill)


def _limits_text(limits: Mapping[str, float]) -> dict[str, str]:
    """Format limits for the templates: weights and cash in percent, leverage as a number."""
    shown = {"max_weight": "{:.1%}", "min_cash": "{:.1%}", "max_leverage": "{:.2f}"}
    return {kind: shown[kind].format(limit) for kind, limit in limits.items() if kind in shown}


KNOWN_SCORES: Final[Mapping[str, float]] = MappingProxyType({"constraint_awareness": 1.0})
"""In every rubric here, a violated limit with a false account of it has the lowest score of constraint awareness."""

_CONFIDENCE: Final = (0.9, 0.99)
_TERSE_CONFIDENCE: Final = (0.5, 0.7)
_TOLD: Final = 3  # instruments that the memo covers
_CITED: Final = 3
_ACCOUNT: Final = (  # portfolio arithmetic in few words: the limit that a line needs, and the line
    ("", "Exposure is {exposure_share:.1%} of equity."),
    ("max_leverage", "Leverage {leverage:.2f} against a cap of {max_leverage}."),
    ("min_cash", "Cash is {cash_share:.1%} of equity against a floor of {min_cash}."),
    ("max_weight", "Largest position {largest:.1%} against a cap of {max_weight}."),
)


def verbose_wrong(context: Context, rng: np.random.Generator, style: str = "elder") -> Composed:
    """Generate a verbose-wrong text (cell A): at least 200 words, confident, false (ValueBlindBench section 3.5).

    One order violates a limit; the features cited for it and for others are false and far from the true values; cash,
    exposure and leverage are reconciled to false numbers. `admissible` has the exact rules; NotMeasurableError has the
    failed checks if no draw is admissible.
    """
    barred = any(rule.kind == "allow_short" and not rule.limit for rule in context.constraints)
    cap = next((rule.limit for rule in context.constraints if rule.kind == "max_weight"), 1.0)
    prices, portfolio = prices_of(context), context.portfolio
    features = grouped(c.features_of(context), lambda feature: feature.instrument)
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
        book = c.try_book_after(context, (order,))
        if book is None or not book.broken:
            return None
        sizes = c.context_values(context, (order,))
        opening = " ".join([_draw_template("openings", rng), *_draw_templates("theses", rng, 2)])
        evidence = _paragraphs(features, order, sizes, rng)
        fill = {"verb": order.kind, "quantity": f"{order.quantity:.1f}", "x": order.instrument}
        decision = " ".join([_draw_template("orders_a", rng, fill), *_draw_templates("convictions", rng, 2)])
        # The memo's claims about the portfolio after its orders: all false, and all within the limits
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
            for _ in range(REDRAWS):  # a number that is far from the true one and not in the context
                value = float(rng.uniform(low, high))
                distant = abs(value - true[amount]) > 0.15 * max(abs(value), abs(true[amount]))
                if distant and not c.matches_any(sizes, value, 0.0006):
                    fill[amount] = shown.format(value)
                    break
            else:
                return None
        # The reconciliation with false results; limits are quoted correctly.
        lines = [_draw_template("cash_lines", rng, fill), _draw_template("exposure_lines", rng, fill)]
        for kind, topic in (("max_leverage", "leverage"), ("max_weight", "largest"), ("min_cash", "floor")):
            lines += [_draw_template(f"{topic}_lines", rng, fill)] if kind in limits else []
        account = " ".join([_draw_template("bridges", rng), *lines])
        closing = " ".join(_draw_templates("closings", rng, 3))
        text = with_opening(signature(style), "\n\n".join([opening, *evidence, decision, account, closing]))
        confidence = round(float(rng.uniform(*_CONFIDENCE)), 2)
        return Composed("cell_a", (order,), text, confidence, known_scores=KNOWN_SCORES)

    return _draw_cell("cell_a", draw, context)


def _paragraphs(
    features: Mapping[str, list[c.Feature]], order: Action, sizes: Sequence[float], rng: np.random.Generator
) -> list[str]:
    """Return a paragraph on the order's instrument and shorter ones on others, with false features."""
    others = [name for name in features if name != order.instrument]
    named = [order.instrument] if order.instrument in features else []
    named += [others[int(at)] for at in rng.permutation(len(others))[: _TOLD - len(named)]]
    introductions, readings = _draw_templates("introductions", rng, _TOLD), _draw_templates("readings", rng, _TOLD + 1)
    paragraphs = []
    for number, name in enumerate(named):
        lean = (-1 if order.kind == "short" else 1) if name == order.instrument else int(rng.choice([-1, 1]))
        figures: list[str] = []
        for at in rng.permutation(len(features[name])):
            feature = features[name][int(at)]
            if (value := feature.wrong_value(lean, sizes, rng)) is not None:
                sentence = _draw_template("features", rng, feature.fill(value))
                figures.append(sentence[:-1] + _draw_template("turns", rng) if rng.random() < 0.25 else sentence)
                if len(figures) == (3 if number == 0 else 2):
                    break
        paragraphs.append(" ".join([introductions[number].format(x=name), *figures, readings[number]]))
    return paragraphs


def terse_right(context: Context, rng: np.random.Generator, style: str = "plain") -> Composed:
    """Generate a terse-right text (cell B): at most 60 words, three features, no hedging (ValueBlindBench section 3.5).

    It has one or two orders within every limit. Cited features with a direction, returns and range positions, support
    the order, and every number is correct. `admissible` has the exact rules.
    """
    # Every instrument and side with at least three features, none of which supports the other side
    prices, positions = prices_of(context), context.portfolio.positions if context.portfolio else {}
    choices: list[tuple[str, int, list[c.Feature]]] = []
    for name, features in grouped(c.features_of(context), lambda feature: feature.instrument).items():
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
    book = c.book_after(context, ())
    after, limits = book.after, book.limits

    def draw(attempt: int) -> Composed | None:
        # One or two orders of different instruments, which shrink with every attempt
        wanted = min(int(rng.integers(1, 3)), int(limits.get("max_orders", 2.0)))
        orders: list[tuple[Action, list[c.Feature]]] = []
        for at in rng.permutation(len(choices)):
            name, side, usable = choices[int(at)]
            if len(orders) == wanted or any(order.instrument == name for order, _ in orders):
                continue
            # A part of what the limits allow, or of the position, in units that print without rounding
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
        return _terse_text(context, orders, rng, style) if orders else None

    return _draw_cell("cell_b", draw, context)


def _terse_text(
    context: Context, orders: Sequence[tuple[Action, list[c.Feature]]], rng: np.random.Generator, style: str
) -> Composed:
    """Compose the text of cell B: the reasons of its orders, then as much of the arithmetic as fits."""
    actions, reasons = tuple(order for order, _ in orders), []
    book = c.book_after(context, actions)
    for order, cited in orders:
        pattern = _draw_template("features_b", rng)
        citations = ", ".join(pattern.format(**feature.fill(feature.value)) for feature in cited)
        fill = {"verb": order.kind, "Verb": order.kind.capitalize(), "quantity": f"{order.quantity:g}",
                "x": order.instrument, "features": citations}  # fmt: skip
        reasons.append(_draw_template("orders_b", rng, fill))
    text = with_opening(signature(style), " ".join(reasons))
    # The portfolio arithmetic in random order; lines that do not fit are left out
    true, limits = book.amounts, _limits_text(book.limits)
    spent = f"less cost {true['cost']:,.2f}" if true["cost"] >= 0 else f"plus proceeds {-true['cost']:,.2f}"
    cash = f"Cash {true['cash']:,.2f} {spent} leaves {true['residual']:,.2f}."
    lines = [line.format(**true, **limits) for limit, line in _ACCOUNT if not limit or limit in limits]
    for line in [cash, *(lines[int(at)] for at in rng.permutation(len(lines)))]:
        if token_count(f"{text} {line}") <= c.TERSE_TOKENS:
            text = f"{text} {line}"
    confidence = round(float(rng.uniform(*_TERSE_CONFIDENCE)), 2)
    return Composed("cell_b", actions, text, confidence)


# Private-use characters mark the parts that must not change; texts that contain them are rejected.
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


def _derive(kind: DerivationKind, decision: Decision, text: str, **more: Any) -> Composed:
    """Build a derived cell: the orders and confidence of an honest decision, with another text."""
    fields: dict[str, Any] = {"actions": decision.actions, "confidence": decision.confidence, "original": decision}
    return Composed(kind, text=text, **fields, **more)


def paraphrase(decision: Decision, context: Context, rng: np.random.Generator) -> Composed:
    """Generate a paraphrase of a decision.

    Sentences and phrases are replaced by rewordings from ``thesaurus.toml``, and sentences that do not refer to the
    previous one are reordered within their paragraph. Numbers, names and the opening words of a style stay.
    """
    text = judged_text(decision)
    if any(mark in text for mark in (_NUMBER, _NAME, _END)):
        raise NotMeasurableError("paraphrase cannot be made of a text with private-use characters (U+E000 to U+E002)")
    return _draw_cell("paraphrase", lambda _: _derive("paraphrase", decision, reword(text, context, rng)), context)


def reword(text: str, context: Context, rng: np.random.Generator) -> str:
    """Reword a text, keeping its names, its numbers and the opening words of its style."""
    opening = next((words for words in SIGNATURES.values() if text.startswith(words)), "")
    plain = text[len(opening) :].lstrip() if opening else text
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
    # Shuffle the blocks of each paragraph: a sentence and those that refer to it move together
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
    # Rewordings may all be longer, so a random share of sentences is kept to limit the change of length.
    keep = float(rng.uniform(0.0, _MOST_KEPT))
    sentences, phrase, others = _rewordings()

    def rephrased(match: re.Match[str], ways: tuple[str, ...]) -> str:
        if rng.random() < keep:
            return match.group()
        way, slots = ways[int(rng.integers(len(ways)))], match.groupdict()
        return _match_case(_SLOT.sub(lambda slot: slots[_SLOTS[slot[0][0]][0] + slot[0][1]], way), match)

    def turned(match: re.Match[str]) -> str:
        # Put the conclusion before its reason, unless a figure could be separated from its name
        first, then = match.group("first"), match.group("then")
        if _NUMBER in match.group() or rng.random() < 0.5:
            return match.group()
        lowered = first.lstrip()
        if first[:1] == " ":
            return f" {then}, because {lowered[:1].lower()}{lowered[1:]}."
        return f"{then}, because {lowered}."

    def replaced(match: re.Match[str]) -> str:
        ways = others[match.group().lower()]
        return _match_case(ways[int(rng.integers(len(ways)))], match)

    for pattern, ways in sentences:
        masked = pattern.sub(lambda match, ways=ways: rephrased(match, ways), masked)  # type: ignore[misc]
    masked = phrase.sub(replaced, _SO.sub(turned, masked))
    # Restore capitals at the beginning of sentences, and lower case after the opening words of a style
    plain = _TOKEN.sub(lambda match: originals[match.group()], masked)
    plain = re.sub(r"([.!?]\s+|\n\n)([a-z])", lambda match: match.group(1) + match.group(2).upper(), plain)
    return with_opening(opening, plain) if opening else plain[:1].upper() + plain[1:]


@cache
def _rewordings() -> tuple[list[tuple[re.Pattern[str], tuple[str, ...]]], re.Pattern[str], dict[str, tuple[str, ...]]]:
    """Return the built-in rewordings: sentences, longest first, and phrases with their pattern."""
    raw = tomllib.loads((files("assaymark.agents.controls") / "thesaurus.toml").read_text(encoding="utf-8"))
    lower = {phrase.lower(): tuple(others) for phrase, others in raw["phrases"].items()}
    ordered = "|".join(re.escape(phrase) for phrase in sorted(lower, key=lambda phrase: (-len(phrase), phrase)))
    phrase = re.compile(rf"(?<![\w'])(?:{ordered})(?![\w'])", re.IGNORECASE)
    # Source sentences as patterns: slots become groups, and case is ignored.
    sentences = []
    for source, ways in sorted(raw["sentences"].items(), key=lambda pair: -len(pair[0])):
        pattern = ""
        for part, slot in zip(_SLOT.split(source), [*_SLOT.findall(source), ""], strict=True):
            group, kind = _SLOTS[slot[0]] if slot else ("", "")
            pattern += re.escape(part) + (f"(?P<{group}{slot[1]}>{kind})" if slot else "")
        sentences.append((re.compile(rf"(?<!\w){pattern}(?!\w)", re.IGNORECASE), tuple(ways)))
    return sentences, phrase, lower


def _match_case(way: str, match: re.Match[str]) -> str:
    """Capitalise a replacement at the beginning of a sentence; elsewhere make its first letter lower case."""
    before = match.string[: match.start()]
    begins = not before.strip() or before.rstrip()[-1] in ".!?" or before.endswith("\n")
    if begins or re.match(r"I\b", way):
        return way[:1].upper() + way[1:]
    return way[:1].lower() + way[1:]


_SIGNED: Final = ("return", "alpha", "beta", "correlation")
_FACTORS: Final = (1.6, 4.0)


def fact_flip(decision: Decision, context: Context, rng: np.random.Generator) -> Composed:
    """Generate a copy of a decision with one number of its text changed to a wrong one.

    The number is a correct value of an instrument's feature if possible, else of the portfolio arithmetic, else any
    value of the context. Its sign is reversed (if it is printed and meaningful) or its size changed; the context does
    not contain the new value. ``change`` has the changed figure and its new text.
    """

    def telling(figure: PrintedFigure) -> bool:
        # A measurement has a fraction or a percent sign, and is not zero.
        return (figure.percent or figure.decimals > 0) and figure.value != 0

    text, sizes = judged_text(decision), c.context_values(context, decision.actions)
    statements, _ = c.statements_of(text, context, decision.actions, c.try_book_after(context, decision.actions))
    right = [statement for statement in statements if statement.right and telling(statement.figure)]
    # Figures of the best available kind, each with: its sign can be reversed; it is a position between 0 and 1.
    choices: list[tuple[PrintedFigure, bool, bool]] = []
    for statement in (statement for statement in right if statement.kind == "feature"):
        kind, figure = statement.about.split("_")[0], statement.figure
        choices.append((figure, figure.signed and kind in _SIGNED, kind == "range" and not figure.percent))
    if not choices:
        choices = [(one.figure, False, False) for one in right if one.kind == "amount" and one.about in c.RECONCILED]
    if not choices:
        loose = [figure for figure in c.figures_outside(text, c.mentions_in(text, context)) if telling(figure)]
        choices = [(figure, False, False) for figure in loose if c.matches_any(sizes, abs(figure.value), figure.half)]
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
            # A small size has to change by more last digits than a factor gives.
            value += np.copysign(8 * figure.step, value) if abs(value - figure.value) < 8 * figure.step else 0.0
            new = figure.written(value)
            size = abs(c.figures_in(new)[0].value)
            if size and (not place or size <= 1) and not c.matches_any(sizes, size, figure.half):
                break
        else:
            return None
        flipped = text[: figure.start] + new + text[figure.end :]
        return _derive("fact_flip", decision, flipped, change=(figure, new))

    return _draw_cell("fact_flip", draw, context)


def length_matched(decision: Decision, context: Context, tokens: int, rng: np.random.Generator) -> Composed:
    """Generate a copy of a decision whose text is within 5 % of ``tokens`` words.

    True sentences are added to a short text, each on a feature that it does not cite. Whole sentences are removed from
    a long text, those without numbers first and never all with one; its first sentence stays. A text that is already
    within 5 % is unchanged.
    """
    if tokens < 1:
        raise InputError("length_matched", [Problem("tokens", f"must be at least 1 (got {tokens})")])
    text = judged_text(decision)
    size, low, high = token_count(text), tokens * (1 - c.MATCHED_SHARE), tokens * (1 + c.MATCHED_SHARE)
    statements, _ = c.statements_of(text, context, decision.actions, None)
    cited = {(statement.instrument, statement.about) for statement in statements if statement.kind == "feature"}
    fresh = [item for item in c.features_of(context) if (item.instrument, f"{item.kind}_{item.horizon}") not in cited]

    def draw(_: int) -> Composed | None:
        longer, have = text, size
        if have > high:
            shorter = _shorten(text, low, high)
            return None if shorter is None else _derive("length_matched", decision, shorter, tokens=tokens)
        for at in rng.permutation(len(fresh)) if have < low else ():
            feature = fresh[int(at)]
            texts = [template.format_map(feature.fill(feature.value)) for template in phrases()["additions"]]
            sizes = [token_count(text) for text in texts]
            if ends := [text for text, more in zip(texts, sizes, strict=True) if low <= have + more <= high]:
                longer, have = f"{longer} {ends[int(rng.integers(len(ends)))]}", tokens
                break
            # The rest must have room for at least one more of the shortest sentences.
            if fits := [text for text, more in zip(texts, sizes, strict=True) if have + more + min(sizes) <= high]:
                added = fits[int(rng.integers(len(fits)))]
                longer, have = f"{longer} {added}", have + token_count(added)
        return None if have < low else _derive("length_matched", decision, longer, tokens=tokens)

    reason = f"no choice of sentences brings its {size} tokens within {c.MATCHED_SHARE:.0%} of {tokens}"
    return _draw_cell("length_matched", draw, context, f"length_matched cannot be made from this decision: {reason}")


def _shorten(text: str, low: float, high: float) -> str | None:
    """Select sentences with ``low`` to ``high`` words in total, including the first; None if impossible."""
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
        # Keep paragraph breaks between the selected sentences.
        between = text[spans[before][1] : spans[at][0]]
        shorter += ("\n\n" if "\n\n" in between else " ") + text[spans[at][0] : spans[at][1]]
    return shorter


MADE_HERE: Final = "assaymark control cells"
"""Provenance source of control cells."""

CONTROL: Final = "control"
"""Agent id of every control cell."""

ORDERS: Final = "orders-v1"
"""Record format of cells A and B; a derived cell has the format of its parent."""

Placed = tuple[str, Context, str]
"""A context's id, the context, and the cluster that it belongs to."""
Source = tuple[str, Context, Decision | None]
"""A context's id, the context, and the honest decision that a derived cell is made from."""


def cell_decision(
    composed: Composed, context_id: str, record_id: str, cluster: str, family: str, seed: int, decided_at: datetime
) -> Decision:
    """Convert a cell to a record; raises NotMeasurableError if it was not checked or failed a check.

    A derived cell has the episode, step, cluster, time and format of its original decision, so that the two can be
    compared as a pair.
    """
    kind, origin, change = composed.kind, composed.original, composed.change
    if not composed.admissibility or c.failed_checks(composed.admissibility):
        reason = "; ".join(map(str, c.failed_checks(composed.admissibility))) or "it was never checked"
        raise NotMeasurableError(f"{kind} {record_id} is not a control cell: {reason}")
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
    """Return the sources of cells by cluster: contexts, or honest decisions; raises `InputError` with every problem."""
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
    """Generate ``count`` control cells, spread evenly over the clusters: their numbers differ by at most one.

    Equal arguments give equal records. A context or decision without an admissible cell is replaced by another of its
    cluster. Cells A and B reuse a context after all others of its cluster were used; each decision gives one derived
    cell. ``derivation.seed`` of each record reproduces its generator. With ``reasons``, fewer cells are no error: it
    has the reason for each context or decision without a cell, and "" for those with one.
    """
    check_known("kind of control cell", c.CELL_KINDS, kind)
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
        """Yield the admissible cells of one cluster, with its sources in random order.

        Derived cells use every source once, the others repeatedly until a whole round gives no cell.
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
                cell_seed = int(np.random.SeedSequence([*key, draws]).generate_state(1)[0])
                try:
                    composed = make(context, decision, np.random.default_rng(cell_seed))
                except NotMeasurableError as exc:
                    reason = str(exc)
                    notes.setdefault(source, reason)
                    continue
                idle, notes[source] = 0, ""
                yield context_id, context, composed, cell_seed
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
            context_id, context, composed, draw_seed = cell
            record_id, at = f"{name}-{seed}-{len(batch) + 1:04d}", context.cutoff + timedelta(seconds=1)
            batch.append(cell_decision(composed, context_id, record_id, cluster, family, draw_seed, at))
    if len(batch) < count and reasons is None:
        raise NotMeasurableError(f"only {len(batch)} of {count} {kind} cells could be made; the last reason: {last}")
    return batch
