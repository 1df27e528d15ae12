"""The frame of every page of a season's site: one book, one language, and the way to the same page in the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from assaymark import __version__
from assaymark.claims.messages import Catalogue
from assaymark.report.formats import clean, short_hash
from assaymark.report.frame import asset, content_security_policy, environment, frame_words
from assaymark.report.season.inputs import SeasonRun
from assaymark.report.season.lookup import SeasonLookup
from assaymark.report.season.words import Words

NAV: Final = ("index", "claims", "panel", "rules", "changelog")
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

    def render(
        self, template: str, path: str, title: str, *, here: str = "", styles: Sequence[str] = (), **values: Any
    ) -> str:
        """One page.

        Parameters
        ----------
        template : str
            Extends ``season-base.html``.
        path : str
            Where the page lies below this language's folder: ``agents/alder.html``.
        title : str
            Set as it is: clean what comes from a record.
        here : str
            Its name in the menu, empty for pages that are not there.
        styles : sequence of str
            Style sheets beside those of every page.
        **values
            What the template needs.
        """
        run = self.book.run
        return (
            environment()
            .get_template(template)
            .render(
                csp=content_security_policy(),
                css="\n".join(asset(name) for name in (*_STYLES, *styles)),
                js=asset("page.js"),
                ui=frame_words(self.words.catalogue),
                w=self.words,
                here=here,
                title=title,
                study=clean(run.title or run.name, 120),
                nav=[(name, f"{name}.html", self.words(f"nav.{name}")) for name in NAV],
                root=self.up(path),
                switch=self.switch(path),
                version=__version__,
                short_hash=short_hash(clean(run.plan_hash)),
                **values,
            )
        )

    def up(self, path: str) -> str:
        """The way from a page to the folder of its language."""
        return "../" * path.count("/")

    def switch(self, path: str) -> list[tuple[str, str, str]]:
        """The same page in every language: code, name and link; no link to itself."""
        out = "../" * (self.folder + path).count("/")
        return [
            (code, name, "" if folder == self.folder else f"{out}{folder}{path}")
            for code, name, folder in self.languages
        ]


def editions(run: SeasonRun, catalogues: Sequence[Catalogue]) -> tuple[Edition, ...]:
    """The site in each language: the first at the root, every other in a folder with its code."""
    book = SeasonLookup.of(run)
    named = tuple((one.language, one.name, f"{one.language}/" if at else "") for at, one in enumerate(catalogues))
    return tuple(
        Edition(book, Words(one), folder, named) for one, (_, _, folder) in zip(catalogues, named, strict=True)
    )
