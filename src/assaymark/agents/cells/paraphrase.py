"""Paraphrase: an honest text in other words, with every number, name and order as it was."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import count

import numpy as np

from assaymark.agents.cells.admissibility import checked
from assaymark.agents.cells.composed import REDRAWS, Composed, failed, refuse
from assaymark.agents.cells.figures import mentions_in, sentences_of
from assaymark.errors import NotMeasurableError
from assaymark.prompting.styles import SIGNATURES
from assaymark.prompting.texts import judged_text
from assaymark.records import Context, Decision

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

    Parameters
    ----------
    decision : Decision
        An honest decision; its judged texts count as one.
    context : Context
        What it was made on.
    rng : numpy Generator
        Draws the rewordings and the order of sentences.

    Raises
    ------
    NotMeasurableError
        Too little of the text could be reworded, or no draw kept its length; the message says which check failed.

    Examples
    --------
    The session in ``docs/cells.md`` makes one of each kind.
    """
    text = judged_text(decision)
    if any(mark in text for mark in (_NUMBER, _NAME, _END)):
        raise NotMeasurableError("paraphrase cannot be made of a text with private-use characters (U+E000 to U+E002)")
    last: Composed | None = None
    for _ in range(REDRAWS):
        last = checked(
            Composed(
                kind="paraphrase",
                actions=decision.actions,
                text=_reworded(text, context, rng),
                confidence=decision.confidence,
                original=decision,
            ),
            context,
        )
        if not failed(last.admissibility):
            return last
    raise refuse("paraphrase", last.admissibility if last else (), REDRAWS)


def _reworded(text: str, context: Context, rng: np.random.Generator) -> str:
    opening = next((words for words in SIGNATURES.values() if text.startswith(words)), "")
    kept: dict[str, str] = {}
    masked = _masked(text[len(opening) :].lstrip() if opening else text, context, kept)
    masked = "\n\n".join(_shuffled(part, rng, pinned=bool(opening)) for part in masked.split("\n\n"))
    # A text whose rewordings all make it longer comes back to its length where some of it is kept.
    keep = float(rng.uniform(0.0, _MOST_KEPT))
    for rule in _rules().sentences:
        masked = rule.applied(masked, rng, keep)
    masked = _SO.sub(lambda found: _turned(found, rng), masked)
    masked = _rules().phrases(masked, rng)
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


# --- rules ------------------------------------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class _Rules:
    sentences: tuple[_Rule, ...]
    phrases: Callable[[str, np.random.Generator], str]


@lru_cache(maxsize=1)
def _rules() -> _Rules:
    """The rewordings that ship with the package, the longest first."""
    raw = tomllib.loads((resources.files("assaymark.agents.cells") / "thesaurus.toml").read_text(encoding="utf-8"))
    sentences = sorted(raw["sentences"].items(), key=lambda pair: -len(pair[0]))
    return _Rules(
        tuple(_Rule(_pattern(source), tuple(ways)) for source, ways in sentences), _phrase_rule(raw["phrases"])
    )


def _group(slot: str) -> str:
    return {"#": "n", "@": "x", "*": "w"}[slot[0]] + slot[1]


def _pattern(source: str) -> re.Pattern[str]:
    """A source as a pattern: slots become groups, and case does not matter."""
    kinds = {
        "#": f"{_NUMBER}[0-9]+{_END}",
        "@": f"{_NAME}[0-9]+{_END}",
        "*": r"[A-Za-z]+(?: [a-z]+)?",
    }
    parts = _SLOT.split(source)
    slots = [*_SLOT.findall(source), ""]
    made = "".join(
        re.escape(part) + (f"(?P<{_group(slot)}>{kinds[slot[0]]})" if slot else "")
        for part, slot in zip(parts, slots, strict=True)
    )
    return re.compile(rf"(?<!\w){made}(?!\w)", re.IGNORECASE)


def _phrase_rule(ways: dict[str, Sequence[str]]) -> Callable[[str, np.random.Generator], str]:
    """One pass over a text that replaces each phrase at most once, the longest first."""
    lower = {phrase.lower(): tuple(others) for phrase, others in ways.items()}
    ordered = sorted(lower, key=lambda one: (-len(one), one))
    pattern = re.compile(r"(?<![\w'])(?:" + "|".join(map(re.escape, ordered)) + r")(?![\w'])", re.IGNORECASE)

    def applied(text: str, rng: np.random.Generator) -> str:
        def said(found: re.Match[str]) -> str:
            others = lower[found.group().lower()]
            return _cased(others[int(rng.integers(len(others)))], found)

        return pattern.sub(said, text)

    return applied


def _turned(found: re.Match[str], rng: np.random.Generator) -> str:
    """A conclusion before its reason, where no figure could lose the name that it belongs to."""
    first, then = found.group("first"), found.group("then")
    if _NUMBER in found.group() or rng.random() < 0.5:
        return found.group()
    lowered = first.lstrip()
    return (
        f" {then}, because {lowered[:1].lower()}{lowered[1:]}." if first[:1] == " " else f"{then}, because {lowered}."
    )


# --- order and case ---------------------------------------------------------------------------------------------------


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
