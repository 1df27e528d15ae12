"""What does not reconcile in a record, in words: the sentences of `portfolio.Mismatch`, read back and said again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from assaymark.report.formats import clean
from assaymark.report.paging import row_bytes
from assaymark.report.season.model_book import ModelBook, ModelWords

_MOST, _MARKUP = 400, 120
_KINDS: Final = "fill-quantity|fill-price|cash|position|negative-position|nav"
_SENTENCE: Final = re.compile(
    rf"(?P<kind>{_KINDS})(?: of (?P<symbol>.+?))?: stated (?P<stated>[-+.\de]+), recomputed (?P<recomputed>[-+.\de]+)"
    r"(?:, (?P<where>at the close|inside the bar|outside the bar|no bar))?"
)
_MOVE: Final = re.compile(
    r"price of (?P<symbol>.+?) on (?P<day>[-\d]+): (?P<close>[-+.\de]+) after (?P<before>[-+.\de]+) on "
    r"(?P<earlier>[-\d]+), (?:explained by no action|not explained by (?P<actions>.+))"
)
"""As `assaymark.workflow.season_settled.unexplained` writes it."""


@dataclass(frozen=True, slots=True)
class MismatchRow:
    """A statement that does not follow from the others, with the day and the link to its decision.

    ``size`` is about how many bytes its row takes, the same in every language.
    """

    html: Markup
    size: int


def mismatch_rows(book: ModelBook, places: Mapping[int, str]) -> tuple[MismatchRow, ...]:
    """Every mismatch in the order of the days; ``places`` says on which page a decision stands."""
    found = []
    for step in book.steps:
        for text in step.mismatches:
            number = book.words.count(step.number)
            link = Markup('<a href="{}#d{}">{}</a>').format(places[step.number], step.number, number)
            words = mismatch_words(book.words, text)
            html = Markup('<tr><th scope="row">{}</th><td>{}</td><td dir="auto">{}</td></tr>\n').format(
                link, clean(step.day, 24), words
            )
            found.append(MismatchRow(html, row_bytes(_MARKUP, [link, step.day, text[:_MOST]])))
    return tuple(found)


def mismatch_words(words: ModelWords, text: str) -> str:
    """A mismatch in the language of the page; a sentence of another form stays as it was recorded, made safe.

    >>> from assaymark.claims.messages import english
    >>> said = mismatch_words(ModelWords(english()), "cash: stated 14.4, recomputed 17.7507, outside the bar")
    >>> said
    'Cash: stated 14.4, recomputed 17.7507, which no price of the step explains.'
    >>> mismatch_words(ModelWords(english()), "The cash is odd.")
    'The cash is odd.'
    """
    shown = clean(text, _MOST)
    if moved := _MOVE.fullmatch(shown):
        said = "acted" if moved["actions"] else "moved"
        return words.say(f"mismatch.price.{said}", **{key: value or "" for key, value in moved.groupdict().items()})
    found = _SENTENCE.fullmatch(shown)
    if found is None:
        return shown
    try:
        stated, recomputed = (words.catalogue.number(float(found[name]), ".10g") for name in ("stated", "recomputed"))
    except ValueError:
        return shown
    what = words.word("mismatch", found["kind"])
    if found["symbol"]:
        what = words.say("mismatch.of", what=what, symbol=found["symbol"])
    where = words.say(f"mismatch.where.{found['where'].replace(' ', '_')}") if found["where"] else ""
    return words.say("mismatch.said", what=what, stated=stated, recomputed=recomputed, where=where)
