"""The head of an agent's page: the ranks that it can have, what it did, and how it was graded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assaymark.claims.messages import said
from assaymark.claims.season_index import SILENT
from assaymark.claims.season_types import Place
from assaymark.judging.season.table import AgreementRow, SeasonRow
from assaymark.records import Level
from assaymark.report.formats import clean
from assaymark.report.season.inputs import SeasonStep
from assaymark.report.season.model_book import ModelBook

_NO_ORDER: Final = ("hold", "no_trade")
_ROOM: Final = 2_000


@dataclass(frozen=True, slots=True)
class HeadView:
    """The head of the page. ``total`` is a range without a single rank, and empty without a total."""

    name: str
    level: Level
    tag: str
    place: str
    why: str
    facts: str
    judged: str
    total: str
    strategy: str
    reference: bool


def head_view(book: ModelBook) -> HeadView:
    """The head of one agent."""
    place = book.run.decided.place(book.agent.name)
    row = book.row
    return HeadView(
        name=clean(book.agent.name, 120),
        level=place.level,
        tag=book.words(f"level.{place.level}.tag"),
        place=_place(book, place),
        why=clean(book.words.text(place.why), 300),
        facts=_facts(book),
        judged=judged_sentence(book, row),
        total=_total(book, place, row),
        strategy=clean(book.agent.strategy, _ROOM),
        reference=book.agent.reference,
    )


def _total(book: ModelBook, place: Place, row: SeasonRow | None) -> str:
    """The total; of an agent that shares its tier the range of its judges and that of the tier."""
    if row is None or row.total is None:
        return ""
    name, lookup = "season.total", book.lookup
    own, tier = lookup.judged(place.agent, name), lookup.tier_range(place.agent, name)
    said = book.say("head.total", total=row.total)
    if not place.shown and own is not None and tier is not None:
        ends = dict(zip(("low", "high", "tier_low", "tier_high"), map(book.words.points, (*own, *tier)), strict=True))
        said = book.say("head.range", n=sum(one.composite is not None for one in book.grades), **ends)
    return book.to(book.one(name), said)


def _place(book: ModelBook, place: Place) -> str:
    """The ranks that it can have."""
    if place.first is None or place.last is None:
        return book.say("head.no_place")
    of = sum(one.first is not None for one in book.run.decided.places)
    if place.first == place.last:
        return book.say("head.place", place=place.first, of=of)
    return book.say("head.places", first=place.first, last=place.last, of=of)


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


def order_count(step: SeasonStep) -> int:
    """Orders of a decision; to hold, or to trade nothing, is none.

    >>> order_count(SeasonStep(number=1, day="", record_id="", orders=("buy NVX, quantity 1", "hold ORL")))
    1
    """
    return sum(not order.startswith(_NO_ORDER) for order in step.orders)


def judged_sentence(book: ModelBook, row: SeasonRow | None) -> str:
    """The points of each judge and the band that they make, contested or not."""
    agreement = None if row is None else row.agreement
    if agreement is None:
        return book.say("judged.silent" if row is not None and row.state == SILENT else "judged.none")
    points = sorted(one.composite for one in book.grades if one.composite is not None)
    written = tuple(map(book.words.points, points or (agreement.low, agreement.high)))
    kind = _kind(agreement)
    if kind == "single" and not book.run.decided.place(book.agent.name).shown:
        kind = "alone"
    sentence = book.say(f"judged.{kind}", points=written, **_bands(book, agreement))
    absent = tuple(clean(name, 60) for name in (() if row is None else row.absent))
    said = f"{sentence} {book.say('judged.absent', judges=absent)}" if absent else sentence
    first = next((one.judge for one in book.grades if one.composite is not None), "")
    return book.to(book.one("season.composite", judge=first), said)


def _kind(agreement: AgreementRow) -> str:
    return {"agreed": "agreed", "contested": "contested", "single judge": "single"}[agreement.standing.state]


def _bands(book: ModelBook, agreement: AgreementRow) -> dict[str, str]:
    standing = agreement.standing
    names = {"band": standing.band, "low": standing.lowest, "high": standing.highest}
    return {name: book.words.term("claim.band", band) for name, band in names.items()}
