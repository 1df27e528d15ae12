"""Supported claims about one agent with their conditions, and what is not supported: the top of its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assaymark.claims.season_types import SeasonVerdict
from assaymark.records import Level
from assaymark.report.levels import LEVELS
from assaymark.report.season.model_book import ModelBook
from assaymark.report.season.said import SaidClaim, reasons_of, said_claim, withheld_text

_LEFT_OUT: Final = ("above", "within")
_MOST: Final = 4


@dataclass(frozen=True, slots=True)
class ModelLevel:
    """The claims of one level about an agent; unsupported ones are listed with the first of their reasons."""

    level: Level
    tag: str
    said: tuple[SaidClaim, ...]
    withheld: tuple[tuple[str, str], ...]
    more: int


def model_levels(book: ModelBook) -> tuple[ModelLevel, ...]:
    """The levels at which there is a claim about an agent. Pairs are only on the page of all claims."""
    name = book.agent.name
    mine = [
        one for one in book.run.decided.verdicts if name in one.verdict.claim.subjects and one.kind not in _LEFT_OUT
    ]
    found = (_level(book, level, [one for one in mine if one.verdict.publication_level == level]) for level in LEVELS)
    return tuple(one for one in found if one.said or one.withheld)


def _level(book: ModelBook, level: Level, verdicts: list[SeasonVerdict]) -> ModelLevel:
    tag, shown = book.words(f"level.{level}.tag"), verdicts[:_MOST]
    if level != "no-claim":
        return ModelLevel(
            level, tag, tuple(said_claim(book.lookup, one, book.words) for one in shown), (), len(verdicts[_MOST:])
        )
    named = dict.fromkeys(
        (withheld_text(one, book.words), book.words.texts(reasons_of(book.lookup, one)[:1])) for one in verdicts
    )
    return ModelLevel(level, tag, (), tuple(named)[:_MOST], max(len(named) - _MOST, 0))
