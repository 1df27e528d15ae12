"""Which of a decision's texts are judged, and how long they are."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from assaymark.prompting.wording import hedges_in, instructions_in
from assaymark.records import Decision, Rationale, RationaleKind

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
    """Length of a text in whitespace tokens; each character counts where a script is written without spaces.

    >>> token_count("Buy XLE: oil is scarce.")
    5
    >>> token_count("买入 XLE，因为油价上涨")
    9
    """
    if text.isascii():
        return len(text.split())
    rest, characters = _UNSPACED.subn(" ", text)
    return characters + len(_WIDE_PUNCTUATION.sub(" ", rest).split())


_DIGIT = re.compile(r"\d")
_LIST_ITEM = re.compile(r"^\s*(?:[-*\u2022]|\d{1,3}[.)])\s", re.MULTILINE)


def style_counts(text: str, names: Sequence[str]) -> dict[str, float]:
    """What else than length may move a judge: ``log2(1 + count per 100 words)`` of digits, list items or hedges.

    >>> found = style_counts("- Oil may fall 4 %\\n- Gold may rise", ["digits", "lists", "hedges"])
    >>> {name: round(value, 2) for name, value in found.items()}
    {'digits': 3.46, 'lists': 4.39, 'hedges': 4.39}
    """
    counts = {"digits": _DIGIT, "lists": _LIST_ITEM}
    words = max(1, token_count(text))
    found = {name: len(counts[name].findall(text)) if name in counts else len(hedges_in(text)) for name in names}
    return {name: math.log2(1 + 100 * count / words) for name, count in found.items()}
