"""JSON from a model read without a guess, the words of texts, and which of a decision's texts are judged."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NoReturn

from assaymark.records import JSON, Decision, Rationale, RationaleKind

_FENCE = "```"
MOST_DIGITS = 20
"""Converting 100,000 digits takes long, and no score has them."""


class Rejected(ValueError):
    """Not the form that was asked for; the message becomes the recorded reason."""


class NotJson(Rejected):
    """No JSON value."""


def strict_reply(text: str) -> JSON:
    """The one JSON value of a reply, alone or in one code fence; else raises as `strict_json`."""
    bare = text.strip()
    if bare.startswith(_FENCE) and bare.endswith(_FENCE) and "\n" in bare:
        kind, _, inside = bare[len(_FENCE) : -len(_FENCE)].partition("\n")
        if kind.strip().lower() in ("", "json"):
            return strict_json(inside)
    return strict_json(text)


def no_json(text: str) -> bool:
    """Whether a reply is no JSON value at all, not even in a code fence."""
    try:
        strict_reply(text)
    except NotJson:
        return True
    except Rejected:
        pass
    return False


def strict_json(text: str) -> JSON:
    """The one JSON value that ``text`` is."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_int)
    except json.JSONDecodeError as exc:
        raise NotJson(f"not one JSON object: {exc.msg[:1].lower()}{exc.msg[1:]} at character {exc.pos}") from None
    except RecursionError:
        raise Rejected("nested too deeply") from None


def shown(value: object) -> str:
    """A value for a reason: cut short, printable ASCII only."""
    seen = ascii(value)
    return seen if len(seen) <= 60 else seen[:57] + "..."


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, unless a key comes twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Rejected(f"key {shown(key)} comes more than once")
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise Rejected(f"{name} is not JSON")


def _int(digits: str) -> int:
    """An integer of sane length."""
    if len(digits) > MOST_DIGITS:
        raise Rejected(f"an integer with {len(digits)} digits")
    return int(digits)


_HEDGING = """
    may might could would likely unlikely probably probable probability possible possibly possibility potential
    potentially uncertain uncertainty uncertainties roughly approximately appear appears appeared apparently seem seems
    seemed seemingly suggest suggests suggested suggesting perhaps maybe tentative tentatively doubt doubts doubtful
    cautious cautiously caution modest modestly odds chance chances presumably conceivably conceivable arguably
    somewhat tends tend tended guess guesses hopefully hope hopes unclear unsure unproven speculative plausible
    plausibly supposedly believe believes think assume assumes assuming unsettled questionable
"""
HEDGES: Final = frozenset(_HEDGING.split())
"""English words that take something back from a statement. Holds every such word of the reference judges."""

HEDGE_PHRASES: Final = (
    "more or less", "sort of", "kind of", "in part", "to some extent", "not certain", "not sure", "hard to say",
    "cannot rule out", "if anything", "on balance", "remains to be seen",
)  # fmt: skip
"""Several words that hedge only together."""

UNSPACED_HEDGES: Final = ("可能", "或许", "大约", "不确定", "预计", "也许", "大概")
"""Hedging words of scripts without blanks, looked for anywhere."""

CONFIDENT: Final = (
    "absolutely", "airtight", "beyond dispute", "beyond question", "certain", "certainly", "clearly", "conclusive",
    "conclusively", "decisive", "decisively", "definitive", "definitively", "guaranteed", "indisputable", "inevitable",
    "no question", "obvious", "obviously", "proven", "full conviction", "undeniable", "unmistakable", "unquestionably",
    "without question", "without reservation", "with total confidence", "cannot fail", "leaves nothing open",
    "i am sure", "flawless",
)  # fmt: skip
"""Phrases by which a text says that it is sure."""

_WHO = r"(?:judge|grader|evaluator|assessor|reviewer|assistant|language model|llm|ai)"
_IT = r"(?:this|it|me|(?:my|the|this)\s+(?:answer|decision|rationale|response|reasoning|text|output|analysis))"
_AMOUNT = r"(?:[.,]?\d|%|per\s?cent|bps|basis|x\b|days?|weeks?|months?|years?|sessions?|hours?|minutes?|shares|units)"
_MOST = r"(?:full|highest|maximum|top|perfect)\s+(?:marks?|scores?|grades?)"
_TOP = rf"(?:(?:5|five|10|ten|100)\b(?!\s*{_AMOUNT})|{_MOST})"
INSTRUCTIONS: Final = (
    # fences of our prompts, and marks of others'
    r"<<<\s*(?:BEGIN|END)\b",
    r"<\|\w+\|>|\[/?INST\]|</?(?:system|instructions?|prompt)>",
    r"^\s*(?:#+\s*(?:system|instructions?)\b|(?:system|assistant)\s*:)",
    # the replies that they ask for
    r'"(?:scores|lookahead_check|verdict)"\s*:',
    r"\b(?:ignore|disregard|forget|override)\s+(?:\w+\s+){0,3}(?:instructions?|prompts?|rubrics?)\b",
    r"\b(?:system|hidden)\s+prompt\b|\bnew\s+instructions?\s*:",
    rf"\b(?:give|rate|score|grade|award|assign)\s+{_IT}\s+(?:(?:an?|with|the)\s+)*{_TOP}",
    r"\b(?:judges?|graders?|evaluators?|assessors?|reviewers?)\s*[,:]\s*(?:please|you|give|score|rate|award|assign)\b",
    rf"\b(?:note|message|instructions?|attention)\s+(?:to|for)\s+(?:the\s+|all\s+)?{_WHO}s?\b",
    rf"\byou\s+are\s+(?:now\s+)?(?:an?|the)\s+{_WHO}\b",
)
"""What a text says to a judge or imitates of its prompt, as regular expressions; upper and lower case are one."""

_INSTRUCTIONS = re.compile("|".join(INSTRUCTIONS), re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"[a-z]+")


def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the phrases as whole words, the longest first."""
    ordered = sorted(phrases, key=lambda one: (-len(one), one))
    return re.compile(r"(?<![a-z])(?:" + "|".join(map(re.escape, ordered)) + r")(?![a-z])")


_HEDGE_PHRASE = _pattern(HEDGE_PHRASES)
_CONFIDENT = _pattern(CONFIDENT)


def hedges_in(text: str) -> tuple[str, ...]:
    """Every hedging word or phrase of a text, in lower case; words first, then phrases."""
    lower = text.lower()
    found = [word for word in _WORD.findall(lower) if word in HEDGES]
    found += _HEDGE_PHRASE.findall(lower)
    if not text.isascii():
        found += [word for word in UNSPACED_HEDGES for _ in range(text.count(word))]
    return tuple(found)


def instructions_in(text: str) -> tuple[str, ...]:
    """Every place of a text that addresses whoever judges it, or imitates the prompt around it."""
    return tuple(found[0] for found in _INSTRUCTIONS.finditer(text))


def confident_in(text: str) -> tuple[str, ...]:
    """Every phrase of a text that says it is sure, in order and in lower case."""
    return tuple(_CONFIDENT.findall(text.lower()))


JUDGED_KINDS: tuple[RationaleKind, ...] = ("summary", "portfolio", "risk", "candidate", "stage")
"""The kinds of text that judges see, in the order in which they see them.

``arena`` was written by the venue and ``holding`` repeats the actions line by line; neither is judged.
"""

_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_WIDE_PUNCTUATION = re.compile("[\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]")


def judged_rationales(decision: Decision) -> tuple[Rationale, ...]:
    """The texts that judges see, in their order; texts of one kind stay in the order of the record."""
    return tuple(
        sorted(
            (text for text in decision.rationales if text.kind in JUDGED_KINDS),
            key=lambda text: JUDGED_KINDS.index(text.kind),
        )
    )


def judged_text(decision: Decision) -> str:
    """The judged texts as one, with an empty line between them, as the agent wrote them."""
    return "\n\n".join(rationale.text for rationale in judged_rationales(decision))


INSTRUCTION_LIKE = "instruction-like text"
"""The flag of a decision whose texts address the judge or imitate its prompt. It changes no score."""


def flagged(decision: Decision) -> Decision:
    """A decision that says so where its texts address the judge or imitate its prompt."""
    if INSTRUCTION_LIKE in decision.flags or not instructions_in(judged_text(decision)):
        return decision
    return replace(decision, flags=(*decision.flags, INSTRUCTION_LIKE))


def token_count(text: str) -> int:
    """Length of a text in whitespace tokens; each character counts where a script is written without spaces."""
    if text.isascii():
        return len(text.split())
    rest, characters = _UNSPACED.subn(" ", text)
    return characters + len(_WIDE_PUNCTUATION.sub(" ", rest).split())


_DIGIT = re.compile(r"\d")
_LIST_ITEM = re.compile(r"^\s*(?:[-*\u2022]|\d{1,3}[.)])\s", re.MULTILINE)


def style_counts(text: str, names: Sequence[str]) -> dict[str, float]:
    """What else than length may move a judge: ``log2(1 + count per 100 words)`` of digits, list items or hedges."""
    counts = {"digits": _DIGIT, "lists": _LIST_ITEM}
    words = max(1, token_count(text))
    found = {name: len(counts[name].findall(text)) if name in counts else len(hedges_in(text)) for name in names}
    return {name: math.log2(1 + 100 * count / words) for name, count in found.items()}


# Names are taken out of what a judge reads; a style is not. A judge that likes texts of its own make recognises them by
# how they are written, so a reference judge with a planted halo looks for one of these phrases and for nothing else.
SIGNATURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "alder": "Read plainly,",
        "birch": "On the numbers,",
        "cedar": "By this screen,",
        "dogwood": "In brief,",
        "elder": "Seen whole,",
    }
)
"""Style name to the words with which its texts begin. Any agent can be given any style."""


def signature(style: str) -> str:
    """The opening words of a style; nothing for a style that has none."""
    return SIGNATURES.get(style, "")


def style_of(text: str) -> str | None:
    """The style whose opening words a text contains; None if it has none, or those of several."""
    found = [style for style, words in SIGNATURES.items() if words in text]
    return found[0] if len(found) == 1 else None
