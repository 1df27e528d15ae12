"""What a reference agent composes: orders, a text that explains them, and a confidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from assaymark.agents.composers.observation import Observation
from assaymark.agents.composers.wording import listing
from assaymark.records import Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Orders and the reasons for them. ``confidence`` lies in 0..1."""

    orders: tuple[Action, ...]
    text: str
    confidence: float


Composer = Callable[[Observation, str], Draft]
"""From an observation and the opening words of a house style to a draft: the same input always gives the same draft."""


def paragraph(opening: str, *sentences: str) -> str:
    """Sentences after the opening words of a style; empty ones are left out.

    >>> paragraph("Read plainly,", "The book is full.", "", "Nothing is sold.")
    'Read plainly, the book is full. Nothing is sold.'
    """
    told = [sentence for sentence in sentences if sentence]
    if not opening or not told:
        return " ".join([*([opening] if opening else []), *told])
    first = told[0]
    # The name of an instrument keeps its capital.
    lowered = first if first.startswith("Asset ") else first[:1].lower() + first[1:]
    return " ".join([opening, lowered, *told[1:]])


def briefly(draft: Draft, opening: str) -> Draft:
    """The same decision with its orders for a text: no amount, no number and no reason."""
    said = [f"{one.kind} {one.instrument}" for one in draft.orders]
    return replace(draft, text=paragraph(opening, f"Orders: {listing(said)}." if said else "No order is needed."))
