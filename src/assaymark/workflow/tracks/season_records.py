"""Seasons that somebody else ran: what the imported records of a run folder say of one, and its tables.

The tables are those of a season that was run here, so whoever judges and publishes need not tell the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from assaymark.engine import Ledger
from assaymark.errors import InputError, LedgerError, Problem, UnknownNameError
from assaymark.importers import IMPORTERS, RecordedBook, RecordedTrack
from assaymark.importers.capitalbench import CLOCK_CONFLICT
from assaymark.judging.season.record import BOOK_STAGES
from assaymark.portfolio.broker import Book
from assaymark.records import Agent, Context, Decision, content_id
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import CONTEXTS, DECISIONS, OUTCOMES, Store
from assaymark.workflow.tracks.season_plan import Follows, RecordedFile, SeasonMarket
from assaymark.workflow.tracks.season_record_tables import (
    BASELINES,
    CHECKS,
    FILLS,
    NAVS,
    REJECTIONS,
    TIMES,
    SeasonCheck,
    SeasonFill,
    SeasonNav,
    SeasonTime,
)

if TYPE_CHECKING:
    from assaymark.workflow.tables import Table


IMPORTED: Final[tuple[Table[Any], ...]] = (CONTEXTS, DECISIONS, OUTCOMES)
"""The tables that an import writes and a season of records is locked on."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundSeason:
    """What a run folder holds of a season: its decisions, what follows from them, and what its log states beside.

    ``left_out`` counts the honest records of the track with a flag that the season does without.
    """

    follows: Follows
    decisions: tuple[Decision, ...]
    track: RecordedTrack | None
    tables: Mapping[str, str | None]
    left_out: int

    @property
    def preflight(self) -> tuple[str, ...]:
        """What a reader of the lock has to know of these records."""
        if not self.left_out:
            return ()
        of = self.left_out + len(self.decisions)
        return (f"{self.left_out} of {of} records are left out for their flags (market.exclude_flags)",)

    @property
    def digest(self) -> str:
        """sha256 over the records."""
        return content_id(dict(self.tables))

    @property
    def days(self) -> dict[str, str]:
        """The day of each decision."""
        return _days(self.decisions, self.track)


def records_digest(folder: RunFolder) -> str:
    """sha256 over the records that an import left, whatever library version wrote their tables."""
    return content_id(_digests(Store(folder)))


def _digests(store: Store) -> dict[str, str | None]:
    return {table.name: store.content(table) for table in IMPORTED}


def stated_book(decision: Decision) -> Book | None:
    """The book that a log states after a decision; None where it states none."""
    held, cash = (decision.stages.get(name) for name in BOOK_STAGES)
    if not isinstance(held, Mapping) or not isinstance(cash, (int, float)):
        return None
    return Book(float(cash), {name: float(units) for name, units in held.items() if isinstance(units, (int, float))})


def find_season(folder: RunFolder, file: RecordedFile, wrong: Sequence[Problem] = (), *, source: str) -> FoundSeason:
    """The season of a file in the records of a run folder. ``wrong`` is what is known to be wrong besides."""
    problems, store = [*file.problems, *wrong], Store(folder)
    if not _imported(folder, store):
        fmt = file.market.format if file.market is not None else "FORMAT"
        what = f"{folder.path} holds no imported records; put them there with: assaymark import {fmt} PATH --out"
        raise InputError(source, [*problems, Problem("market.source", f"{what} {folder.path}")])
    if file.market is None:
        raise InputError(source, problems)
    files = _files(folder, file.market, problems)
    every = store.read(DECISIONS)
    honest = _of_track(every, file.market, problems)
    wanted = _wanted(honest, file.market, problems)
    problems += _unknown(file, {one.agent.id for one in wanted or every})
    chosen = _of_agents(wanted, file, problems)
    if problems:
        raise InputError(source, problems)
    track = _track(folder, files, chosen, file.market)
    follows = _follows([one.agent for one in wanted], chosen, store, track)
    named = {one.name for one in file.agents} or {one.agent.id for one in chosen}
    left = sum(one.agent.id in named and bool(_out(file.market) & {*one.flags}) for one in honest)
    return FoundSeason(follows, chosen, track, _digests(store), left)


def write_season(folder: RunFolder, found: FoundSeason, plan_hash: str) -> None:
    """Write the tables of a season of records; what is whole stays as it is."""
    store, basis = Store(folder), {"plan": plan_hash, "records": found.digest}
    names, days, track = {one.record_id for one in found.decisions}, found.days, found.track
    agents = {one.agent.id for one in found.decisions}
    fills = [] if track is None else [one for one in track.fills if one.record_id in names]
    made: dict[Table[Any], Iterable[Any]] = {
        FILLS: [
            SeasonFill(
                day=one.day, agent=one.agent, record_id=one.record_id, number=one.number, symbol=one.symbol,
                quantity=one.quantity, price=one.price, cost=0.0,
            )
            for one in fills
        ],
        REJECTIONS: (),
        NAVS: [] if track is None else [_nav(one) for one in track.books if one.agent in agents],
        BASELINES: [] if track is None else [_nav(one) for one in track.baselines],
        CHECKS: [] if track is None else list(_checks(track, agents)),
        TIMES: [_time(one, days) for one in found.decisions],
    }  # fmt: skip
    for table, rows in made.items():
        if not store.done(table, basis):
            store.write(table, rows, basis)


# --- what the folder holds --------------------------------------------------------------------------------------------


def _imported(folder: RunFolder, store: Store) -> bool:
    return folder.path.is_dir() and folder.has_ledger and all(store.content(table) for table in IMPORTED)


def _files(folder: RunFolder, market: SeasonMarket, problems: list[Problem]) -> dict[str, bytes]:
    """The source files of the records, by name, as they were imported last."""
    if market.format not in IMPORTERS:
        problems.append(Problem("market.format", str(UnknownNameError("format", market.format, tuple(IMPORTERS)))))
        return {}
    with Ledger.open(folder.ledger) as ledger:
        sources = [one for one in ledger.sources() if one.format in IMPORTERS]
        there = list(dict.fromkeys(one.format for one in sources))
        if market.format not in there:
            said = f"the records of {folder.path} are of {', '.join(there) or 'no format that is known'}"
            problems.append(Problem("market.format", f"{said} (got {market.format!r})"))
            return {}
        if IMPORTERS[market.format].track is None:
            return {}
        newest = {one.path.removesuffix(".gz"): one for one in sources if one.format == market.format}
        return {one.path: ledger.get_object(one.sha256) for one in newest.values()}


def _of_track(decisions: Sequence[Decision], market: SeasonMarket, problems: list[Problem]) -> tuple[Decision, ...]:
    """The honest decisions of the track, in order."""
    known = market.format in IMPORTERS
    tracks = sorted({one.episode_id for one in decisions}) if known and IMPORTERS[market.format].track else []
    if tracks and market.track not in tracks:
        problems.append(Problem("market.track", f"must be one of {', '.join(tracks)} (got {market.track!r})"))
        return ()
    if known and not tracks and market.track:
        problems.append(Problem("market.track", f"records of {market.format} are one track; leave it out"))
    of_track = [one for one in decisions if not tracks or one.episode_id == market.track]
    honest = [one for one in of_track if one.derivation.kind == "honest"]
    return tuple(sorted(honest, key=lambda one: (one.decided_at, one.record_id)))


def _out(market: SeasonMarket) -> frozenset[str]:
    """The flags of records that are left out. A record that is older than its material is no record of a season."""
    return frozenset((*market.exclude_flags, CLOCK_CONFLICT))


def _wanted(decisions: Sequence[Decision], market: SeasonMarket, problems: list[Problem]) -> tuple[Decision, ...]:
    """The decisions without those that are left out."""
    out = _out(market)
    kept = tuple(one for one in decisions if not out & {*one.flags})
    if decisions and not kept:
        problems.append(Problem("market.exclude_flags", f"leave no record (got {', '.join(sorted(out))})"))
    return kept


def _of_agents(decisions: Sequence[Decision], file: RecordedFile, problems: list[Problem]) -> tuple[Decision, ...]:
    """The decisions of the agents that the file names, or of all."""
    named = [one.name for one in file.agents] or sorted({one.agent.id for one in decisions})
    chosen = tuple(one for one in decisions if one.agent.id in named)
    for agent in named:
        own = [one for one in chosen if one.agent.id == agent]
        first = [one for one in own if one.replicate == 1]
        if own and not first:
            problems.append(Problem(f"agents.{agent}", "has replicates only, and no first decision"))
        problems += _order_problems(agent, first)
    return chosen


def _unknown(file: RecordedFile, there: set[str]) -> list[Problem]:
    """The agents of the file that are not there, each with those that are."""
    known = tuple(sorted(there))
    names = [one.name for one in file.agents if one.name not in there]
    return [Problem("agents", str(UnknownNameError("agent", name, known))) for name in names]


def _order_problems(agent: str, decisions: Sequence[Decision]) -> list[Problem]:
    """A record is a sequence: two decisions of one moment have no order."""
    same = [(a.record_id, b.record_id) for a, b in pairwise(decisions) if a.decided_at == b.decided_at]
    if not same:
        return []
    one, other = same[0]
    more = f", and {len(same) - 1} more such pairs" if len(same) > 1 else ""
    what = f"decided twice at one moment ({one} and {other}{more}): a record needs an order"
    return [Problem(f"agents.{agent}", what)]


def _track(
    folder: RunFolder, files: Mapping[str, bytes], decisions: Sequence[Decision], market: SeasonMarket
) -> RecordedTrack | None:
    """What the log states beside its decisions."""
    read = IMPORTERS[market.format].track
    if read is None:
        return None
    found = read(files, market.track)
    if any(one.record_id not in found.days for one in decisions):
        what = "its source files are of another import than its decisions; import the files into a new run folder"
        raise LedgerError(f"{folder.path}: {what}")
    return found


def _follows(
    everybody: Iterable[Agent], chosen: Sequence[Decision], store: Store, track: RecordedTrack | None
) -> Follows:
    """What of a season file follows from the records."""
    agents = {one.id: one for one in everybody}
    days = _days(chosen, track).values()
    return Follows(
        agents=tuple((name, agents[name].family, agents[name].model or name) for name in sorted(agents)),
        universe=_universe(store, chosen) if track is None else track.universe,
        first=min(days),
        last=max(days),
        replicates=max(one.replicate for one in chosen),
        capital=None if track is None else track.capital,
        currency=None if track is None else track.currency,
    )


def _days(decisions: Sequence[Decision], track: RecordedTrack | None) -> dict[str, str]:
    """The day of each decision: where it was made, or in UTC where the log has no place."""
    stated = {} if track is None else track.days
    return {one.record_id: stated.get(one.record_id, str(one.decided_at.date())) for one in decisions}


def _universe(store: Store, decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Everything that agents were shown or acted on, where no price file says what there was."""
    used = {one.context_id for one in decisions}
    names = {action.instrument for one in decisions for action in one.actions if action.instrument}
    for name, context in store.each_context():
        if name in used:
            names |= _named(context)
    return tuple(sorted(names))


def _named(context: Context) -> set[str]:
    return {one.id for one in context.instruments} or {fact.instrument for fact in context.facts if fact.instrument}


# --- rows -------------------------------------------------------------------------------------------------------------


def _nav(book: RecordedBook) -> SeasonNav:
    return SeasonNav(
        day=book.day,
        agent=book.agent,
        state=book.state,
        cash=book.cash,
        nav=book.nav,
        costs=0.0,
        positions=book.positions,
        stale=book.stale,
    )


def _checks(track: RecordedTrack, agents: set[str]) -> Iterable[SeasonCheck]:
    for one in track.checks:
        if one.agent in agents:
            yield SeasonCheck(
                agent=one.agent,
                kind=one.kind,
                checks=one.checks,
                passed=one.passed,
                mismatches=tuple(f"{record}\t{sentence}" for record, sentence in one.mismatches),
            )


def _time(one: Decision, days: Mapping[str, str]) -> SeasonTime:
    """The seconds of a decision, where they were measured; what was derived from stamps is not mixed with that."""
    measured = one.call.timing_source == "measured"
    return SeasonTime(
        record_id=one.record_id,
        day=days[one.record_id],
        agent=one.agent.id,
        replicate=one.replicate,
        seconds=one.call.seconds if measured else None,
    )
