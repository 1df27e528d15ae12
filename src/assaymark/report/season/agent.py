"""The pages of an agent: one with its account, grades, last decisions and checks, and beside it all of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from assaymark.claims.evidence import SILENT
from assaymark.claims.messages import said
from assaymark.claims.season_claims import Place
from assaymark.judging.season.plans import TEMPORAL
from assaymark.judging.season.table import AgreementRow, SeasonRow
from assaymark.records import Measurement
from assaymark.report.blocks import (
    Block,
    Facts,
    Group,
    Inline,
    Linked,
    Listing,
    Mark,
    Page,
    Passage,
    Section,
    Table,
    Text,
    bold,
    level_words,
    notes,
    spaced,
    written,
)
from assaymark.report.page import beside
from assaymark.report.season.accounts import account_paths, cash_share, data_path, earned_section, held, last_book
from assaymark.report.season.decisions import (
    decision_filters,
    decision_group,
    decision_parts,
    decision_places,
    decision_row,
    decisions_answer,
    mismatch_parts,
    mismatch_table,
    mismatch_words,
    order_count,
)
from assaymark.report.season.edition import Edition
from assaymark.report.season.grades import graded_section
from assaymark.report.season.index import ModelBook, ModelWords
from assaymark.report.season.inputs import SeasonGradeView
from assaymark.report.season.ledger import ledger_answer, ledger_counts, ledger_notes, ledger_parts
from assaymark.report.season.ledger import ledger_table as checked
from assaymark.report.season.levels import agent_levels, level_blocks
from assaymark.text import clean

_ROOM, _WHY, _SYMBOLS, _HELD, _WRONG = 2_000, 400, 5, 12, 3
LAST_CARDS: Final = 3
"""Decisions on the page of an agent, and sentences of its fact check."""


def agent_pages(edition: Edition) -> Iterator[tuple[str, str]]:
    """The pages of every agent in one language, as path and text, one after the other."""
    words, lookup = ModelWords(edition.words.catalogue), edition.book
    names = list(lookup.agents)
    for at, (name, agent) in enumerate(lookup.agents.items()):
        book = ModelBook(lookup, words, agent, lookup.pages[name], edition.to_root)
        places = decision_places(book.path, book.steps)
        earned, data = earned_section(book)
        then = names[(at + 1) % len(names)]
        up: tuple[Inline, ...] = (Linked(edition.frame.study or words("nav.index"), "index.html"),)
        if len(names) > 1:
            up = *up, " · ", words.say("head.next"), " ", Linked(clean(then, 60), lookup.pages[then])
        yield book.path, edition.page(_main(book, earned, places, up))
        if data:
            yield data_path(book.path), data
        for page in _further(book, places):
            yield page.path, edition.page(page)


# --- the page of an agent ---------------------------------------------------------------------------------------------


def _main(book: ModelBook, earned: Section, places: Mapping[int, str], up: Inline) -> Page:
    words = book.words
    place = book.run.decided.place(book.agent.name)
    stand = level_words(place.level, words(f"level.{place.level}.tag")), " ", _place(book, place)
    why = clean(words.text(place.why), 300)
    head: list[Block] = [Text((*stand, f": {why}" if why else "", ". ", *_scored(book, place)), "cap stand")]
    head.append(level_blocks(agent_levels(book)))
    if book.agent.strategy:
        head.append(Passage(clean(book.agent.strategy, _ROOM), book.say("head.strategy")))
    return Page(
        book.path,
        clean(book.agent.name, 120),
        _facts(book),
        (earned, graded_section(book), _decided(book, places), _checked(book, places)),
        tuple(head),
        up=up,
        notice=book.say("head.reference") if book.agent.reference else "",
        aside=tuple(_account(book)),
        styles=("season-agent.css", "judges.css", "brush.css"),
        scripts=("page.js", "brush.js"),
    )


def _facts(book: ModelBook) -> str:
    steps = book.steps
    counts = (
        ("decisions", len(steps)),
        ("orders", sum(order_count(step) for step in steps)),
        ("refused", sum(len(step.refusals) for step in steps)),
    )
    said_counts = {name: said(f"model.count.{name}", n=n) for name, n in counts}
    names = {"family": clean(book.agent.family, 80), "model": clean(book.agent.model, 120)}
    return book.say("head.facts", **names, **said_counts)


def _account(book: ModelBook) -> Iterator[Inline]:
    """Its value and return, and those of the first baseline."""
    paths = account_paths(book.lookup, book.agent.name)
    gains = [book.words.percent(path.nav[-1] / path.start - 1, sign=True) for path in paths[:2]]
    for path, gain in zip(paths[:1], gains, strict=False):
        value = f"{book.words.money(path.nav[-1])} {clean(book.run.currency, 12)}"
        yield bold(value), " ", gain
    if len(paths) > 1:
        name = "equal weight" if book.words.has(f"model.baseline.{paths[1].name}") is False else paths[1].name
        yield book.say("head.beside", baseline=book.words.word("baseline", name), gain=gains[1])


def _place(book: ModelBook, place: Place) -> str:
    """The ranks that it can have."""
    if place.first is None or place.last is None:
        return book.say("head.no_place")
    of = sum(one.first is not None for one in book.run.decided.places)
    if place.first == place.last:
        return book.say("head.place", place=place.first, of=of)
    return book.say("head.places", first=place.first, last=place.last, of=of)


def _scored(book: ModelBook, place: Place) -> tuple[Inline, ...]:
    """The points of each judge, and the total; of an agent that shares its tier the range of its judges."""
    row, name, lookup = book.row, "season.total", book.lookup
    judged = judged_sentence(book, row)
    if row is None or row.total is None:
        return (judged,)
    own, tier = lookup.judged(place.agent, name), lookup.tier_range(place.agent, name)
    total = book.say("head.total", total=row.total)
    if not place.shown and own is not None and tier is not None:
        ends = dict(zip(("low", "high", "tier_low", "tier_high"), map(book.words.points, (*own, *tier)), strict=True))
        total = book.say("head.range", n=sum(one.composite is not None for one in book.grades), **ends)
    return judged, " ", book.note(book.one(name), total)


def judged_sentence(book: ModelBook, row: SeasonRow | None) -> Inline:
    """The points of each judge and the band that they make, contested or not."""
    agreement = None if row is None else row.agreement
    if agreement is None:
        return book.say("judged.silent" if row is not None and row.state == SILENT else "judged.none")
    points = sorted(one.composite for one in book.grades if one.composite is not None)
    shown = tuple(map(book.words.points, points or (agreement.low, agreement.high)))
    kind = {"agreed": "agreed", "contested": "contested", "single judge": "single"}[agreement.standing.state]
    if kind == "single" and not book.run.decided.place(book.agent.name).shown:
        kind = "alone"
    sentence = book.say(f"judged.{kind}", points=shown, **_bands(book, agreement))
    absent = tuple(clean(name, 60) for name in (() if row is None else row.absent))
    sentence = f"{sentence} {book.say('judged.absent', judges=absent)}" if absent else sentence
    first = next((one.judge for one in book.grades if one.composite is not None), "")
    return book.note(book.one("season.composite", judge=first), sentence)


def _bands(book: ModelBook, agreement: AgreementRow) -> dict[str, str]:
    standing = agreement.standing
    names = {"band": standing.band, "low": standing.lowest, "high": standing.highest}
    return {name: book.words.term("claim.band", band) for name, band in names.items()}


def _decided(book: ModelBook, places: Mapping[int, str]) -> Section:
    """What it holds, and its last decisions."""
    words, lead = book.words, decisions_answer(book)
    blocks: list[Block] = []
    if (last := last_book(book.steps)) is not None and last.nav is not None:
        what = ", ".join(held(words, last, _HELD)) or words.say("accounts.nothing")
        cash = f"{words.say('accounts.cash')} {cash_share(words, last)}"
        when = bold(words.say("decisions.held", day=words.day(last.day)))
        blocks.append(Text((when, f": {cash}; {words.say('accounts.held')}: {what}")))
    latest = [step for at, step in enumerate(reversed(book.steps)) if at < LAST_CARDS]
    if latest:
        heads = tuple(words.say(f"decisions.head.{name}") for name in ("day", "trades", "cost", "reason", "source"))
        lines = tuple(decision_row(book, step, places[step.number]) for step in latest)
        first, *_ = decision_parts(book.path, book.steps)
        all_of_them = Linked(words.say("decisions.all", n=len(book.steps)), first)
        blocks += [Table(heads, lines, frozenset((2,)), "", stacked=True, style="latest"), Text(all_of_them)]
    return Section("decisions", book.say("decisions.section"), lead, tuple(blocks))


def _checked(book: ModelBook, places: Mapping[int, str]) -> Section:
    """The fact check of its numbers, and what else was checked."""
    lines = tuple(reversed(book.lines))[:LAST_CARDS]
    unkept = book.say("ledger.partial") if book.run.partial else ""
    blocks: list[Block] = []
    if lines:
        first, *_ = ledger_parts(book.path, book.lines)
        whole = Linked(book.say("ledger.all", n=len(book.lines)), first)
        blocks = [checked(book, lines, places), Text(whole), *notes((unkept,))]
    usable = [one for one in book.grades if one.state == "ok"]
    wrong = mismatch_parts(book.path, book.steps)
    listed = Linked(book.say("reliability.all"), next(iter(wrong))) if wrong else ""
    some = [written(mismatch_words(book.words, text)) for part in wrong.values() for _, text in part[:_WRONG]][:_WRONG]
    reliable = (_reliability(book, wrong), *some, listed, _judged(book, usable))
    rows: tuple[tuple[str, Inline], ...] = (
        (book.say("lookahead.title"), spaced((_lookahead(book, usable), *_looked(book, usable)), " ")),
        (book.say("reliability.title"), spaced(filter(None, reliable), " ")),
        (book.say("thrash.title"), _thrash(book, usable)),
    )
    clean_record = not wrong and all(one.lookahead in (None, "pass") for one in usable)
    blocks.append(Group(book.say("checks.section"), (Facts(rows),), "checks", "closed" if clean_record else ""))
    return Section("ledger", book.say("ledger.section"), ledger_answer(book), tuple(blocks))


def _lookahead(book: ModelBook, usable: Sequence[SeasonGradeView]) -> Inline:
    looked = [one for one in usable if one.lookahead is not None]
    failed = sum(one.lookahead != "pass" for one in looked)
    rule = book.say("lookahead.elsewhere" if book.run.source else "lookahead.rule")
    if not looked:
        return f"{rule} {book.say('lookahead.nobody')}"
    key, count = "lookahead.found" if failed else "lookahead.clear", book.words.few(len(looked))
    told = f"{rule} {book.say(key, failed=failed, n=len(looked), count=count)}"
    return book.note(book.one("season.lookahead"), told)


def _looked(book: ModelBook, usable: Sequence[SeasonGradeView]) -> Iterator[Inline]:
    """What each judge says of knowledge of the future, where one saw some."""
    if any(one.lookahead not in (None, "pass") for one in usable):
        for one in usable:
            if one.lookahead is not None:
                mark = Mark("supported" if one.lookahead == "pass" else "contradicted")
                word = book.words.word("lookahead_word", one.lookahead)
                why = clean(one.lookahead_reason, _WHY)
                said_why = written(f" {book.words.quoted(why)}") if why else ""
                yield mark, bold(clean(one.judge, 60)), f": {word}", said_why, "."


def _reliability(book: ModelBook, wrong: Mapping[str, Sequence[object]]) -> Inline:
    item, found = book.one("season.reliability"), sum(map(len, wrong.values()))
    if item is None:
        return book.say("reliability.listed", n=found) if found else book.say("reliability.unchecked")
    if item.value is None:
        return book.say("reliability.none", why=book.words.state(item))
    value = book.words.number(item.value, 1)
    failed = _failed(item)
    if not failed:
        return book.note(item, book.say("reliability.clear", value=value, n=item.n))
    return book.note(item, book.say("reliability.answer", value=value, n=item.n, failed=failed))


def _failed(item: Measurement) -> int:
    """How many checks do not reconcile, from the score: it is 100 times the share that does."""
    return round(item.n * (1.0 - (item.value or 0.0) / 100.0))


def _judged(book: ModelBook, usable: Sequence[SeasonGradeView]) -> str:
    points = [one.data_reliability for one in usable if one.data_reliability is not None]
    if not points:
        return ""
    return book.say("reliability.judged", points=tuple(book.words.number(one, 0) for one in sorted(points)))


def _thrash(book: ModelBook, usable: Sequence[SeasonGradeView]) -> Inline:
    item = book.one("season.thrash")
    grades = [one.reasoning[TEMPORAL] for one in usable if TEMPORAL in one.reasoning]
    ends = dict(zip(("low", "high"), map(book.words.points, (min(grades), max(grades))), strict=True)) if grades else {}
    compared = book.say("thrash.beside", **ends) if grades else ""
    if item is None:
        counted = book.say("thrash.uncounted")
    elif item.value is None:
        counted = book.say("thrash.none", why=book.words.state(item))
    elif item.detail.get("trades") == 0:
        return book.say("thrash.no_trade")
    else:
        counted = book.say("thrash.answer", n=round(item.value))
    detail = {} if item is None or item.value is None else item.detail
    within, counts = detail.get("within"), detail.get("by_symbol")
    window = book.say("thrash.within", n=within) if isinstance(within, int) else ""
    names = ""
    if isinstance(counts, dict) and counts:
        most = tuple(f"{clean(name, 40)} {book.words.count(n)}" for name, n in list(counts.items())[:_SYMBOLS])
        names = book.say("thrash.by_symbol", symbols=most)
    return book.note(item, " ".join(filter(None, (counted, window, names, compared))))


# --- the pages beside it ----------------------------------------------------------------------------------------------


def _further(book: ModelBook, places: Mapping[int, str]) -> Iterator[Page]:
    """All of its decisions, of its fact check, and of what does not reconcile, each with a link back to its page."""
    words, wrong, counts = book.words, mismatch_parts(book.path, book.steps), ledger_counts(book)
    kinds: Sequence[tuple[str, Inline, Mapping[str, Sequence[Any]], Callable[[Any], tuple[Block, ...]]]] = (
        ("decisions", decisions_answer(book), decision_parts(book.path, book.steps),
         lambda steps: (Listing(tuple(decision_group(book, one) for one in steps), decision_filters(words, steps),
                                words.say("decisions.what"), "decision-cards"),)),
        ("ledger", book.say("ledger.answer"), ledger_parts(book.path, book.lines),
         lambda lines: (*notes(ledger_notes(book)), *((counts,) if counts else ()),
                        checked(book, lines, places, "claim-lines"))),
        ("checks", book.say("reliability.listed", n=sum(map(len, wrong.values()))), wrong,
         lambda found: (mismatch_table(book, found, places),)),
    )  # fmt: skip
    for kind, lead, parts, made in kinds:
        for path, rows, links in beside(parts.items(), part=words("frame.part"), parts=words("frame.parts")):
            name = clean(book.agent.name, 120)
            up, title = Linked(name, f"{book.path}#{kind}"), book.say(f"further.{kind}", agent=name)
            yield Page(path, title, lead, blocks=made(rows), up=up, parts=links, styles=("season-agent.css",))
