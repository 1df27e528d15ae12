"""The site of a season: every page in every language, from one run, as text; and written to an empty folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from assaymark.claims.messages import Catalogue, catalogue, languages
from assaymark.errors import InputError, Problem
from assaymark.report.formats import clean
from assaymark.report.frame import ALONE, Site
from assaymark.report.levels import LEVELS
from assaymark.report.measured_pages import STYLES
from assaymark.report.paging import beside, in_parts, paged_by
from assaymark.report.season.audits import blinding_view, preference_level, preference_rows
from assaymark.report.season.edition import Edition, editions
from assaymark.report.season.every_words import worded_rows
from assaymark.report.season.inputs import SeasonRun
from assaymark.report.season.leaderboard import board_view
from assaymark.report.season.model import model_pages
from assaymark.report.season.panel import panel_view
from assaymark.report.season.rulebook import rules_view, version_views
from assaymark.report.season.said import claim_cards, said_levels, tally
from assaymark.report.trail.season import OVERVIEW

_CODE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")

CARDS: Final = 100
"""Claims on one page: so many in every language, so that a page has its translation."""


def write_site(
    run: SeasonRun, out: Path, languages: Sequence[str | Catalogue] = languages(), site: Site = ALONE
) -> list[Path]:
    """Write the site of a season.

    Parameters
    ----------
    run : SeasonRun
    out : Path
        A folder that is empty or not there yet.
    languages : sequence of str or Catalogue
        The first lies at the root, every other in a folder with its code. Default: all that come with the package.
    site : Site
        The site that the pages are part of, where there are other runs beside this one.

    Returns
    -------
    list of Path
        Every page, in the order in which it was written.

    Raises
    ------
    InputError
        The folder holds something; no language, or one twice.
    UnknownNameError
        A language that does not come with the package.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(str(out), [Problem("folder", "holds something already; give a new or an empty one")])
    found = []
    for path, html in site_pages(run, languages, site):
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(html, encoding="utf-8")
        found.append(target)
    return found


def site_pages(
    run: SeasonRun, languages: Sequence[str | Catalogue] = languages(), site: Site = ALONE
) -> Iterator[tuple[str, str]]:
    """Every page as path and HTML, one at a time. Equal runs give equal bytes; nothing but the run is read.

    Raises
    ------
    InputError
        No language, one twice, or a code that is none.
    """
    catalogues = [one if isinstance(one, Catalogue) else catalogue(one) for one in languages]
    _check([one.language for one in catalogues])
    for edition in editions(run, catalogues, site):
        for path, html in edition_pages(edition):
            yield f"{edition.folder}{path}", html


def _check(codes: Sequence[str]) -> None:
    """Refuse codes that are no names for folders beside the pages, and one that is there twice."""
    problems = [
        Problem(repr(code), "is no code of a language, such as fr or pt-BR")
        for code in codes
        if not _CODE.fullmatch(code)
    ]
    if not codes or len({code.lower() for code in codes}) < len(codes):
        problems.append(Problem("", f"each of one or more is named once (got {', '.join(codes) or 'none'})"))
    if problems:
        raise InputError("languages", problems)


def edition_pages(edition: Edition) -> Iterator[tuple[str, str]]:
    """The pages of one language, as paths below its folder."""
    yield "index.html", _index(edition)
    yield from _claims(edition)
    yield "panel.html", _panel(edition)
    yield from _measurements(edition)
    yield "rules.html", _rules(edition)
    yield "changelog.html", _changelog(edition)
    yield from model_pages(edition.book, edition.words, edition.render, _to_root(edition))


def _index(edition: Edition) -> str:
    book, words = edition.book, edition.words
    run = book.run
    return edition.render(
        "season.html",
        "index.html",
        clean(run.title or run.name, 120),
        here="index",
        lede=season_lede(edition),
        source=words("index.source", source=clean(run.source, 300)) if run.source else "",
        reference=_reference(edition),
        tally=tally(book, words),
        levels=said_levels(book, words),
        total=words("index.all", n=len(run.decided.verdicts)),
        board=board_view(book, words),
        preference=preference_rows(book, words),
        level=preference_level(book, words),
        blinding=blinding_view(book, words),
        notes=[words.text(note) for note in run.notes],
    )


def season_lede(edition: Edition) -> str:
    """Who took part, with what, for how long, and who graded it."""
    run, words = edition.book.run, edition.words
    agents, judges = len(run.agents), edition.book.graders
    strategies = any(one.strategy for one in run.agents)
    told = "index.prompt" if run.prompt else "index.strategies" if strategies else "index.untold"
    capital = words("index.no_capital")
    if run.capital is not None:
        capital = words("index.capital", capital=words.money(run.capital), currency=clean(run.currency, 12))
    text = words(
        "index.lede",
        agents=words("index.agents", n=agents, few=words.few(agents)),
        told=words(told),
        universe=words("index.universe", n=len(run.universe), count=words.count(len(run.universe))),
        capital=capital,
        days=words("index.days", n=run.days, count=words.count(run.days)),
        first=words.day(run.first),
        last=words.day(run.last),
        judges=words("index.judges", n=judges, few=words.few(judges)),
    )
    return ". ".join(part[:1].upper() + part[1:] for part in text.split(". "))


def _reference(edition: Edition) -> str:
    """That agents or judges are ours and no models that anybody made to trade or to judge."""
    run, words = edition.book.run, edition.words
    agents, judges = (bool(who) and all(one.reference for one in who) for who in (run.agents, run.judges))
    if not agents and not judges:
        return ""
    return words(f"index.reference.{'both' if agents and judges else 'agents' if agents else 'judges'}")


def _claims(edition: Edition) -> Iterator[tuple[str, str]]:
    words = edition.words
    cards = claim_cards(edition.book, words)
    pages = in_parts("claims", paged_by(cards, lambda _: 1, CARDS))
    tags: dict[str, str] = {level: words(f"level.{level}.tag") for level in LEVELS}
    for name, rows, parts in beside(pages.items(), part=words("frame.part"), parts=words("frame.parts")):
        yield (
            name,
            edition.render(
                "season-claims.html",
                name,
                words("claims.title"),
                here="claims",
                rows=rows,
                filters=words.filters([row.level for row in rows], tags),
                total=words("index.all", n=len(rows)),
                pager=parts,
            ),
        )


def _panel(edition: Edition) -> str:
    book, words = edition.book, edition.words
    return edition.render(
        "season-panel.html",
        "panel.html",
        words("panel.title"),
        here="panel",
        panel=panel_view(book, words),
        preference=preference_rows(book, words),
        level=preference_level(book, words),
        blinding=blinding_view(book, words),
        records=f"{_to_root(edition)}{OVERVIEW}" if book.run.records else "",
        site=_to_root(edition),
    )


def _measurements(edition: Edition) -> Iterator[tuple[str, str]]:
    book, words = edition.book, edition.words
    for name, found, parts in beside(book.measured.items(), part=words("frame.part"), parts=words("frame.parts")):
        rows = worded_rows(book, found, words, _to_root(edition))
        groups = [row.group for row in rows]
        yield (
            name,
            edition.render(
                "season-measurements.html",
                name,
                words("measured.title"),
                here="measurements",
                styles=STYLES,
                rows=rows,
                rests=any(row.rests for row in rows),
                filters=words.filters(groups, {group: group for group in groups}),
                total=words("measured.total", n=len(rows), count=words.count(len(rows))),
                pager=parts,
            ),
        )


def _to_root(edition: Edition) -> str:
    """The way from a page at the top of a language to the folder of the site, where datasheets are linked from."""
    return "../" * edition.folder.count("/")


def _rules(edition: Edition) -> str:
    words = edition.words
    rules = rules_view(edition.book, words)
    return edition.render("season-rules.html", "rules.html", words("rules.title"), here="rules", rules=rules)


def _changelog(edition: Edition) -> str:
    words = edition.words
    versions = version_views(edition.book, words)
    title = words("changelog.title")
    return edition.render("season-changelog.html", "changelog.html", title, here="changelog", versions=versions)
