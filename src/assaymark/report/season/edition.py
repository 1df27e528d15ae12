"""The frame of every page of a season's site: one book, one language, and the way to the same page in the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.claims.messages import Catalogue, english
from assaymark.report.blocks import Page
from assaymark.report.page import ALONE, JUDGES, Frame, Link, Site, frame_words
from assaymark.report.season.index import SeasonLookup
from assaymark.report.season.inputs import SeasonRun
from assaymark.report.season.words import Words
from assaymark.report.text import short_hash
from assaymark.text import clean

NAV: Final = ("index", "claims", "panel", "measurements", "rules", "method", "archive")
"""The pages of the menu, by name."""

_STYLES: Final = ("page.css", "season.css")


@dataclass(frozen=True, slots=True, eq=False)
class Edition:
    """A season's site in one language.

    ``folder`` is where it lies below the site: empty for the first language, ``de/`` for another. ``languages`` are all
    of the site as (code, name, folder).
    """

    book: SeasonLookup
    words: Words
    folder: str
    languages: tuple[tuple[str, str, str], ...]
    frame: Frame

    def page(self, page: Page) -> str:
        """A page of blocks, with the way to the same page in the other languages."""
        return self.frame.page(page, self.switch(page.path))

    @property
    def to_root(self) -> str:
        """The way from the folder of the language to that of the site, where records and datasheets lie."""
        return "../" * self.folder.count("/")

    def switch(self, path: str) -> list[tuple[str, str, str]]:
        """The same page in every language: code, name and link; no link to itself."""
        out = "../" * (self.folder + path).count("/")
        return [
            (code, name, "" if folder == self.folder else f"{out}{folder}{path}")
            for code, name, folder in self.languages
        ]


def editions(run: SeasonRun, catalogues: Sequence[Catalogue], site: Site = ALONE) -> tuple[Edition, ...]:
    """The site in each language: the first at the root, every other in a folder with its code."""
    book = SeasonLookup.of(run)
    named = tuple((one.language, one.name, f"{one.language}/" if at else "") for at, one in enumerate(catalogues))
    found = []
    for one, (_, _, folder) in zip(catalogues, named, strict=True):
        words, depth = Words(one), folder.count("/")
        frame = _frame(run, words, site.below(depth), "../" * depth)
        found.append(Edition(book, words, folder, named, frame))
    return tuple(found)


def season_frame(run: SeasonRun, site: Site = ALONE) -> Frame:
    """What stands around pages in English at the top of the site, such as the datasheets of the judges."""
    return _frame(run, Words(english()), site)


def _frame(run: SeasonRun, words: Words, site: Site, root: str = "") -> Frame:
    nav = [Link(name, f"{name}.html", words(f"nav.{name}")) for name in NAV]
    if any((judge.datasheet or "").startswith("datasheet/") for judge in run.judges):  # the site has their pages
        nav.append(Link(JUDGES, f"{root}datasheets.html", words("nav.judges")))
    return Frame(
        study=clean(run.title or run.name, 120),
        mark=short_hash(clean(run.plan_hash)),
        nav=tuple(nav),
        site=site,
        styles=_STYLES,
        ui=frame_words(words.catalogue),
    )
