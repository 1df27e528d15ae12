"""Control cells made from an honest decision: other words, one number made wrong, another length."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import count, pairwise
from typing import Any, Final

import numpy as np

from assaymark.agents.controls.checks import (
    MATCHED_SHARE,
    RECONCILED,
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
    Change,
    Composed,
    book_if_any,
    features_of,
    held_values,
    is_held,
    phrases,
)
from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.prompting.texts import SIGNATURES, judged_text, token_count
from assaymark.records import Context, Decision, DerivationKind

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
    masked = _masked(text[len(opening) :].lstrip() if opening else text, context, kept)
    masked = "\n\n".join(_shuffled(part, rng, pinned=bool(opening)) for part in masked.split("\n\n"))
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


def _masked(text: str, context: Context, kept: dict[str, str]) -> str:
    """The text with a token in place of every name and every number."""
    numbers = count()

    def hide(mark: str, said: str) -> str:
        token = f"{mark}{next(numbers)}{_END}"
        kept[token] = said
        return token

    found, at = "", 0
    for one in mentions_in(text, context):
        found += text[at : one.start] + hide(_NAME, text[one.start : one.end])
        at = one.end
    found += text[at:]
    parts = _TOKEN.split(found)
    tokens = [*_TOKEN.findall(found), ""]
    return "".join(
        _NUMERAL.sub(lambda one: hide(_NUMBER, one.group()), part) + token
        for part, token in zip(parts, tokens, strict=True)
    )


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
    return tuple(_Rule(_pattern(source), tuple(ways)) for source, ways in sentences), phrase, lower


def _group(slot: str) -> str:
    return {"#": "n", "@": "x", "*": "w"}[slot[0]] + slot[1]


def _pattern(source: str) -> re.Pattern[str]:
    """A source as a pattern: slots become groups, and case does not matter."""
    kinds = {"#": f"{_NUMBER}[0-9]+{_END}", "@": f"{_NAME}[0-9]+{_END}", "*": r"[A-Za-z]+(?: [a-z]+)?"}
    parts = _SLOT.split(source)
    slots = [*_SLOT.findall(source), ""]
    made = "".join(
        re.escape(part) + (f"(?P<{_group(slot)}>{kinds[slot[0]]})" if slot else "")
        for part, slot in zip(parts, slots, strict=True)
    )
    return re.compile(rf"(?<!\w){made}(?!\w)", re.IGNORECASE)


def _shuffled(part: str, rng: np.random.Generator, *, pinned: bool) -> str:
    """A paragraph with its blocks in a drawn order: a sentence and those that lean on it move together."""
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
    return " ".join(sentence for block in (*head, *order) for sentence in block)


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
    choices = _choices(text, decision, context)
    if not choices:
        raise NotMeasurableError(
            "fact_flip cannot be made from this decision: its text states no number that the material holds"
        )
    held = held_values(context, decision.actions)

    def draw(_: int) -> Composed | None:
        figure, signed, place = choices[int(rng.integers(len(choices)))]
        new = _wrong(figure, signed, place, held, rng)
        if new is None:
            return None
        flipped = text[: figure.start] + new + text[figure.end :]
        return _made("fact_flip", decision, flipped, change=Change(figure.quote, new, figure.start))

    return drawn("fact_flip", draw, context)


Choice = tuple[Figure, bool, bool]
"""A figure, whether its sign can be turned, and whether it is a place between 0 and 1."""


def _choices(text: str, decision: Decision, context: Context) -> list[Choice]:
    """The figures that may be changed: of the best sort that the text has any of."""
    book = book_if_any(context, decision.actions)
    said = statements_of(text, context, decision.actions, book)
    features = []
    for one in said.features:
        if one.right and _telling(one.figure):
            kind = one.about.split("_")[0]
            place = kind == "range" and not one.figure.percent
            features.append((one.figure, one.figure.signed and kind in _SIGNED, place))
    if features:
        return features
    amounts = [one for one in said.amounts if one.right and one.about in RECONCILED and _telling(one.figure)]
    if amounts:
        return [(one.figure, False, False) for one in amounts]
    held = held_values(context, decision.actions)
    loose = outside(figures_in(text), mentions_in(text, context))
    return [(one, False, False) for one in loose if _telling(one) and is_held(held, abs(one.value), one.half)]


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
    have = token_count(text)
    near = f"within {MATCHED_SHARE:.0%} of {tokens}"

    def draw(_: int) -> Composed | None:
        made = _fitted(text, decision, context, tokens, rng)
        return None if made is None else _made("length_matched", decision, made, tokens=tokens)

    what = f"no choice of sentences brings its {have} tokens {near}"
    return drawn("length_matched", draw, context, nothing=f"length_matched cannot be made from this decision: {what}")


def _fitted(text: str, decision: Decision, context: Context, tokens: int, rng: np.random.Generator) -> str | None:
    low, high = tokens * (1 - MATCHED_SHARE), tokens * (1 + MATCHED_SHARE)
    have = token_count(text)
    if low <= have <= high:
        return text
    if have > high:
        return _shortened(text, low, high)
    added = _additions(text, decision, context, low - have, high - have, rng)
    return None if added is None else " ".join([text, *added])


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


def _shortened(text: str, low: float, high: float) -> str | None:
    """The first sentence and as many others as fit, those with numbers before those without; paragraphs are kept.

    Of all choices within the bounds the one with the most numbers is taken, then the longest.
    """
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
