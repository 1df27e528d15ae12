"""What was checked in an agent's record: knowledge of the future, books that add up, and trades taken back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assaymark.judging.season.plans import TEMPORAL
from assaymark.records import Measurement
from assaymark.report.formats import clean
from assaymark.report.season.inputs import SeasonGradeView
from assaymark.report.season.model_book import ModelBook
from assaymark.report.season.model_mismatches import MismatchRow

FIRST_MISMATCHES: Final = 20
"""Mismatches on the agent's page; where there are more, pages of their own hold all of them."""

_REASON, _SYMBOLS = 400, 5


@dataclass(frozen=True, slots=True)
class LookaheadLine:
    """One judge's check: its glyph, its word, and its reason."""

    judge: str
    glyph: str
    word: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChecksView:
    """The section: three answers, each with what it rests on."""

    lookahead: str
    lookahead_lines: tuple[LookaheadLine, ...]
    reliability: str
    judged_reliability: str
    mismatches: tuple[MismatchRow, ...]
    total: int
    thrash: str


def checks_view(book: ModelBook, found: tuple[MismatchRow, ...]) -> ChecksView:
    """The section of one agent; ``found`` are all its mismatches."""
    usable = [one for one in book.grades if one.state == "ok"]
    return ChecksView(
        lookahead=book.to(book.one("season.lookahead"), _lookahead(book, usable)),
        lookahead_lines=tuple(_line(book, one) for one in usable if one.lookahead is not None),
        reliability=_reliability(book, len(found)),
        judged_reliability=_judged(book, usable),
        mismatches=found[:FIRST_MISMATCHES],
        total=len(found),
        thrash=_thrash(book, usable),
    )


def _lookahead(book: ModelBook, usable: list[SeasonGradeView]) -> str:
    checked = [one for one in usable if one.lookahead is not None]
    failed = sum(one.lookahead != "pass" for one in checked)
    rule = book.say("lookahead.elsewhere" if book.run.source else "lookahead.rule")
    if not checked:
        return f"{rule} {book.say('lookahead.nobody')}"
    key, count = "lookahead.found" if failed else "lookahead.clear", book.words.few(len(checked))
    return f"{rule} {book.say(key, failed=failed, n=len(checked), count=count)}"


def _line(book: ModelBook, one: SeasonGradeView) -> LookaheadLine:
    passed = one.lookahead == "pass"
    return LookaheadLine(
        judge=clean(one.judge, 60),
        glyph="supported" if passed else "contradicted",
        word=book.words.word("lookahead_word", one.lookahead or ""),
        reason=clean(one.lookahead_reason, _REASON),
    )


def _reliability(book: ModelBook, found: int) -> str:
    item = book.one("season.reliability")
    if item is None:
        return book.say("reliability.listed", n=found) if found else book.say("reliability.unchecked")
    if item.value is None:
        return book.say("reliability.none", why=book.words.state(item))
    value = book.words.number(item.value, 1)
    failed = _failed(item)
    if not failed:
        return book.to(item, book.say("reliability.clear", value=value, n=item.n))
    return book.to(item, book.say("reliability.answer", value=value, n=item.n, failed=failed))


def _failed(item: Measurement) -> int:
    """How many checks do not reconcile, from the score: it is 100 times the share that does."""
    return round(item.n * (1.0 - (item.value or 0.0) / 100.0))


def _judged(book: ModelBook, usable: list[SeasonGradeView]) -> str:
    points = [one.data_reliability for one in usable if one.data_reliability is not None]
    if not points:
        return ""
    return book.say("reliability.judged", points=tuple(book.words.number(one, 0) for one in sorted(points)))


def _thrash(book: ModelBook, usable: list[SeasonGradeView]) -> str:
    item = book.one("season.thrash")
    grades = [one.reasoning[TEMPORAL] for one in usable if TEMPORAL in one.reasoning]
    ends = dict(zip(("low", "high"), map(book.words.points, (min(grades), max(grades))), strict=True)) if grades else {}
    beside = book.say("thrash.beside", **ends) if grades else ""
    if item is None:
        said = book.say("thrash.uncounted")
    elif item.value is None:
        said = book.say("thrash.none", why=book.words.state(item))
    elif item.detail.get("trades") == 0:
        return book.say("thrash.no_trade")
    else:
        said = book.say("thrash.answer", n=round(item.value))
    detail = {} if item is None or item.value is None else item.detail
    within, counts = detail.get("within"), detail.get("by_symbol")
    window = book.say("thrash.within", n=within) if isinstance(within, int) else ""
    names = ""
    if isinstance(counts, dict) and counts:
        most = tuple(f"{clean(name, 40)} {book.words.count(n)}" for name, n in list(counts.items())[:_SYMBOLS])
        names = book.say("thrash.by_symbol", symbols=most)
    return book.to(item, " ".join(filter(None, (said, window, names, beside))))
