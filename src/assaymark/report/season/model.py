"""The pages of the agents of a season: one for each, with the rest of its ledger and its decisions beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from assaymark.report.formats import clean
from assaymark.report.frame import SCRIPTS
from assaymark.report.paging import paged, pager
from assaymark.report.season.decisions import DecisionCard, decision_cards, decision_filters, decisions_answer
from assaymark.report.season.ledger import (
    FIRST_BYTES,
    FIRST_ROWS,
    LedgerLine,
    LedgerWords,
    ledger_answer,
    ledger_counts,
    ledger_filters,
    ledger_lines,
    ledger_notes,
)
from assaymark.report.season.lookup import SeasonLookup
from assaymark.report.season.model_book import ModelBook, ModelWords
from assaymark.report.season.model_checks import FIRST_MISMATCHES, checks_view
from assaymark.report.season.model_earned import EarnedView, data_path, earned_view
from assaymark.report.season.model_graded import graded_view
from assaymark.report.season.model_head import head_view
from assaymark.report.season.model_mismatches import MismatchRow, mismatch_rows
from assaymark.report.season.model_paths import further_path
from assaymark.report.season.model_said import model_levels
from assaymark.report.season.words import Words

PART_BYTES: Final = 380_000
"""Bytes of rows on a part of a ledger or of the decisions: little enough for a phone."""

_LAST_CARDS, _CARD_BYTES = 5, 24_000
_STYLES: Final = ("season-model.css",)


class Frame(Protocol):
    """What sets a page: a template with its values, in the frame of the site."""

    def __call__(self, template: str, path: str, title: str, *, styles: Sequence[str], **values: Any) -> str:
        """The page."""
        ...


def model_pages(lookup: SeasonLookup, words: Words, frame: Frame, up: str = "") -> Iterator[tuple[str, str]]:
    """The pages of every agent in one language, as path and text, one after the other.

    Parameters
    ----------
    lookup : SeasonLookup
        The season; nothing else is read.
    words : Words
        The language.
    frame : Frame
        Sets a page of the site.
    up : str
        The way from the folder of the language to that of the site.

    Yields
    ------
    tuple of str
        ``agents/NAME.html`` with ``agents/NAME.csv``, the values behind its figure; ``agents/NAME-decisions.html``
        with every decision; ``agents/NAME-ledger-2.html`` and ``agents/NAME-checks.html`` where a ledger or a list of
        mismatches is long. Each is below 1 MB.
    """
    said = ModelWords(words.catalogue)
    rows = LedgerWords(said, len(lookup.run.judges))
    for name, agent in lookup.agents.items():
        yield from _agent(ModelBook(lookup, said, agent, lookup.pages[name], up), rows, frame)


def _agent(book: ModelBook, rows: LedgerWords, frame: Frame) -> Iterator[tuple[str, str]]:
    cards = paged(decision_cards(book), PART_BYTES)
    places = {
        card.number: _leaf(further_path(book.path, "decisions", at))
        for at, part in enumerate(cards, 1)
        for card in part
    }
    lines = ledger_lines(book, rows, places)
    (first, *_) = paged(lines[:FIRST_ROWS], FIRST_BYTES)
    further = paged(lines[len(first) :], PART_BYTES) if len(first) < len(lines) else ()
    wrong = mismatch_rows(book, places)
    earned = earned_view(book)
    yield book.path, _main(book, frame, earned, first, (len(lines), len(further)), cards, wrong)
    if earned.data:
        yield data_path(book.path), earned.data
    yield from _ledger(book, frame, further, (len(first), len(lines)))
    yield from _decisions(book, frame, cards)
    if len(wrong) > FIRST_MISMATCHES:
        yield from _checks(book, frame, wrong)


# --- pages ------------------------------------------------------------------------------------------------------------


def _main(
    book: ModelBook,
    frame: Frame,
    earned: EarnedView,
    first: Sequence[LedgerLine],
    ledger: tuple[int, int],
    cards: Sequence[Sequence[DecisionCard]],
    wrong: tuple[MismatchRow, ...],
) -> str:
    lines, further = ledger
    latest = _latest([card for part in cards for card in part])
    head = head_view(book)
    return frame(
        "season-model.html",
        book.path,
        head.name,
        styles=(*_STYLES, "judges.css", "brush.css"),
        scripts=(*SCRIPTS, "brush.js"),
        t=book.say,
        head=head,
        levels=model_levels(book),
        earned=earned,
        graded=graded_view(book),
        checks=checks_view(book, wrong),
        checks_link=_leaf(further_path(book.path, "checks", 1)) if len(wrong) > FIRST_MISMATCHES else "",
        answer=ledger_answer(book),
        counts=ledger_counts(book),
        notes=ledger_notes(book),
        rows=[line.html for line in first],
        labels=ledger_labels(book.words),
        filters=ledger_filters(book.words, first),
        total=book.words.count(len(first)),
        pager=_pager(book, "ledger", further + 1, 0),
        rest=book.say("ledger.rest", first=len(first), n=lines) if further else "",
        decided=decisions_answer(book),
        latest=[card.html for card in latest],
        decisions_link=_leaf(further_path(book.path, "decisions", 1)) if len(book.steps) > len(latest) else "",
    )


def _ledger(
    book: ModelBook, frame: Frame, parts: Sequence[Sequence[LedgerLine]], done: tuple[int, int]
) -> Iterator[tuple[str, str]]:
    """The rows after those on the agent's page."""
    start, total = done
    for at, part in enumerate(parts, 2):
        path = further_path(book.path, "ledger", at)
        values = {"first": start + 1, "last": start + len(part), "n": total}
        yield (
            path,
            _part(
                book,
                frame,
                ("season-ledger.html", path, "ledger"),
                lede=book.say("ledger.span", **values),
                rows=[line.html for line in part],
                labels=ledger_labels(book.words),
                filters=ledger_filters(book.words, part),
                total=book.words.count(len(part)),
                pager=_pager(book, "ledger", len(parts) + 1, at - 1),
            ),
        )
        start += len(part)


def _decisions(book: ModelBook, frame: Frame, parts: Sequence[Sequence[DecisionCard]]) -> Iterator[tuple[str, str]]:
    for at, part in enumerate(parts, 1):
        path = further_path(book.path, "decisions", at)
        yield (
            path,
            _part(
                book,
                frame,
                ("season-decisions.html", path, "decisions"),
                lede=decisions_answer(book),
                rows=[card.html for card in part],
                filters=decision_filters(book.words, part),
                total=book.words.count(len(part)),
                pager=_pager(book, "decisions", len(parts), at - 1),
            ),
        )


def _checks(book: ModelBook, frame: Frame, wrong: Sequence[MismatchRow]) -> Iterator[tuple[str, str]]:
    parts = paged(wrong, PART_BYTES)
    for at, part in enumerate(parts, 1):
        path = further_path(book.path, "checks", at)
        yield (
            path,
            _part(
                book,
                frame,
                ("season-checks.html", path, "checks"),
                lede=book.say("reliability.listed", n=len(wrong)),
                rows=[line.html for line in part],
                pager=_pager(book, "checks", len(parts), at - 1),
            ),
        )


def _part(book: ModelBook, frame: Frame, page: tuple[str, str, str], **values: Any) -> str:
    """A page beside the agent's own, with a link back to it."""
    template, path, kind = page
    name = clean(book.agent.name, 120)
    title = book.say(f"further.{kind}", agent=name)
    return frame(template, path, title, styles=_STYLES, t=book.say, name=name, up=_leaf(book.path), **values)


# --- parts ------------------------------------------------------------------------------------------------------------


def _latest(cards: Sequence[DecisionCard]) -> Sequence[DecisionCard]:
    """The last decisions, as far as the agent's page has room for them."""
    size = 0
    for at, card in enumerate(reversed(cards[-_LAST_CARDS:])):
        size += card.size
        if size > _CARD_BYTES:
            return cards[len(cards) - at :]
    return cards[-_LAST_CARDS:]


def ledger_labels(words: ModelWords) -> Mapping[str, str]:
    """The heads of the ledger by the name of the column; ``style`` hands them to the rows of a phone."""
    heads = {name: words.say(f"ledger.head.{name}") for name in ("day", "claim", "saw", "numbers", "judges")}
    plain = (re.sub(r'[\\"<>;]', "", head) for head in heads.values())
    style = ";".join(f'--l{at}:"{head}"' for at, head in enumerate(plain, 1) if at > 1)
    return {**heads, "title": words.say("ledger.section"), "style": style}


def _pager(book: ModelBook, kind: str, parts: int, at: int) -> str:
    """Links between the parts; the first part of a ledger is the agent's page."""
    names = [_leaf(further_path(book.path, kind, part)) for part in range(1, parts + 1)]
    if kind == "ledger":
        names[0] = f"{_leaf(book.path)}#ledger"
    return pager(names, at, part=book.words("frame.part"), parts=book.words("frame.parts"))


def _leaf(path: str) -> str:
    return path.rpartition("/")[2]
