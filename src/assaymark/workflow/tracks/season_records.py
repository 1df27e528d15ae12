"""Seasons that somebody else ran: what the imported records of a run folder say of one, and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, Literal

import pyarrow as pa

from assaymark import importers
from assaymark.claims.season_plan import Follows, RecordedFile, SeasonMarket
from assaymark.engine import Ledger
from assaymark.errors import InputError, LedgerError, Problem, UnknownNameError
from assaymark.judging.season.record import BOOK_STAGES, AuditState
from assaymark.judging.season.scoring import HorizonScore
from assaymark.portfolio.broker import Book
from assaymark.records import Decision, Evidence, content_id, row
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import CONTEXTS, DECISIONS, EVIDENCE, OUTCOMES, Column, Store, Table

IMPORTED: Final[tuple[Table[Any], ...]] = (CONTEXTS, DECISIONS, OUTCOMES)
"""The tables that an import writes and a season of records is locked on."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundSeason:
    """What a run folder holds of a season: its decisions, what follows from them, and what its log states beside.

    ``days`` are those of the decisions: where they were made, or in UTC where the log has no place.
    """

    follows: Follows
    decisions: tuple[Decision, ...]
    days: Mapping[str, str]
    track: importers.RecordedTrack | None
    tables: Mapping[str, str | None]
    preflight: tuple[str, ...]

    @property
    def digest(self) -> str:
        """sha256 over the records."""
        return content_id(dict(self.tables))


def records_digest(folder: RunFolder) -> str:
    """sha256 over the records that an import left, whatever library version wrote their tables."""
    store = Store(folder)
    return content_id({table.name: store.content(table) for table in IMPORTED})


def stated_book(decision: Decision) -> Book | None:
    """The book that a log states after a decision; None where it states none."""
    held, cash = (decision.stages.get(name) for name in BOOK_STAGES)
    if not isinstance(held, Mapping) or not isinstance(cash, (int, float)):
        return None
    return Book(float(cash), {name: float(units) for name, units in held.items() if isinstance(units, (int, float))})


def find_season(folder: RunFolder, file: RecordedFile, wrong: Sequence[Problem] = (), *, source: str) -> FoundSeason:
    """The season of a file in the records of a run folder. ``wrong`` is what is known to be wrong besides."""
    problems, store, market = [*file.problems, *wrong], Store(folder), file.market
    contents = {table.name: store.content(table) for table in IMPORTED} if folder.path.is_dir() else {}
    if not (contents and folder.has_ledger and all(contents.values())):
        fmt = market.format if market is not None else "FORMAT"
        what = f"{folder.path} holds no imported records; put them there with: assaymark import {fmt} PATH --out"
        raise InputError(source, [*problems, Problem("market.source", f"{what} {folder.path}")])
    if market is None:
        raise InputError(source, problems)
    files = _files(folder, market, problems)
    every = store.read(DECISIONS)
    known = market.format in importers.IMPORTERS
    tracks = sorted({one.episode_id for one in every}) if known and importers.IMPORTERS[market.format].track else []
    of_track = [one for one in every if not tracks or one.episode_id == market.track]
    honest = [one for one in of_track if one.derivation.kind == "honest"]
    if tracks and market.track not in tracks:
        problems.append(Problem("market.track", f"must be one of {', '.join(tracks)} (got {market.track!r})"))
    elif known and not tracks and market.track:
        problems.append(Problem("market.track", f"records of {market.format} are one track; leave it out"))
    # A record that is older than its material is no record of a season.
    out = frozenset((*market.exclude_flags, importers.CLOCK_CONFLICT))
    ordered = sorted(honest, key=lambda one: (one.decided_at, one.record_id))
    wanted = [one for one in ordered if not out & {*one.flags}]
    if honest and not wanted:
        problems.append(Problem("market.exclude_flags", f"leave no record (got {', '.join(sorted(out))})"))
    there = tuple(sorted({one.agent.id for one in wanted or every}))
    names = [one.name for one in file.agents]
    problems += [Problem("agents", str(UnknownNameError("agent", name, there))) for name in names if name not in there]
    names = names or sorted({one.agent.id for one in wanted})
    chosen = tuple(one for one in wanted if one.agent.id in names)
    for agent in names:  # a record is a sequence of first decisions: two of one moment have no order
        mine = [one for one in chosen if one.agent.id == agent]
        first = [one for one in mine if one.replicate == 1]
        if mine and not first:
            problems.append(Problem(f"agents.{agent}", "has replicates only, and no first decision"))
        if same := [(a.record_id, b.record_id) for a, b in pairwise(first) if a.decided_at == b.decided_at]:
            more = f", and {len(same) - 1} more such pairs" if len(same) > 1 else ""
            what = f"decided twice at one moment ({' and '.join(same[0])}{more}): a record needs an order"
            problems.append(Problem(f"agents.{agent}", what))
    if problems:
        raise InputError(source, problems)
    read = importers.IMPORTERS[market.format].track
    track = None if read is None else read(files, market.track)
    if track is not None and any(one.record_id not in track.days for one in chosen):
        what = "its source files are of another import than its decisions; import the files into a new run folder"
        raise LedgerError(f"{folder.path}: {what}")
    stated = {} if track is None else track.days
    days = {one.record_id: stated.get(one.record_id, str(one.decided_at.date())) for one in chosen}
    agents = {one.agent.id: one.agent for one in wanted}
    follows = Follows(
        agents=tuple((name, agents[name].family, agents[name].model or name) for name in sorted(agents)),
        universe=_universe(store, chosen) if track is None else track.universe,
        first=min(days.values()), last=max(days.values()), replicates=max(one.replicate for one in chosen),
        capital=None if track is None else track.capital, currency=None if track is None else track.currency,
    )  # fmt: skip
    left = sum(one.agent.id in names and bool(out & {*one.flags}) for one in honest)
    told = f"{left} of {left + len(chosen)} records are left out for their flags (market.exclude_flags)"
    return FoundSeason(follows, chosen, days, track, contents, (told,) if left else ())


def write_season(folder: RunFolder, found: FoundSeason, plan_hash: str) -> None:
    """Write the tables of a season of records; what is whole stays as it is."""
    store, basis = Store(folder), {"plan": plan_hash, "records": found.digest}
    names, track = {decision.record_id for decision in found.decisions}, found.track
    agents = {decision.agent.id for decision in found.decisions}

    made: dict[Table[Any], Iterable[Any]] = dict.fromkeys((FILLS, REJECTIONS, NAVS, BASELINES, CHECKS, TIMES), ())
    if track is not None:
        made[FILLS] = [fill for row in track.fills if (fill := SeasonFill(*row)).record_id in names]
        made[NAVS] = [book for row in track.books if (book := SeasonNav(*row)).agent in agents]
        made[BASELINES] = [SeasonNav(*row) for row in track.baselines]
        made[CHECKS] = [check for row in track.checks if (check := SeasonCheck(*row)).agent in agents]
    times = made[TIMES] = []
    for one in found.decisions:  # seconds that were derived from stamps are not mixed with those that were measured
        seconds = one.call.seconds if one.call.timing_source == "measured" else None
        times.append(SeasonTime(one.record_id, found.days[one.record_id], one.agent.id, one.replicate, seconds))
    for table, rows in made.items():
        if not store.done(table, basis):
            store.write(table, rows, basis)


def _universe(store: Store, decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Everything that agents were shown or acted on, where no price file says what there was."""
    used = {decision.context_id for decision in decisions}
    names = {action.instrument for decision in decisions for action in decision.actions if action.instrument}
    for _, context in store.each_context(used):
        shown = {instrument.id for instrument in context.instruments}
        names |= shown or {fact.instrument for fact in context.facts if fact.instrument}
    return tuple(sorted(names))


def _files(folder: RunFolder, market: SeasonMarket, problems: list[Problem]) -> dict[str, bytes]:
    """The source files of the records, by name, as they were imported last."""
    if market.format not in importers.IMPORTERS:
        problems.append(
            Problem("market.format", str(UnknownNameError("format", market.format, tuple(importers.IMPORTERS))))
        )
        return {}
    with Ledger.open(folder.ledger) as ledger:
        sources = [source for source in ledger.sources() if source.format in importers.IMPORTERS]
        there = list(dict.fromkeys(source.format for source in sources))
        if market.format not in there:
            said = f"the records of {folder.path} are of {', '.join(there) or 'no format that is known'}"
            problems.append(Problem("market.format", f"{said} (got {market.format!r})"))
            return {}
        if importers.IMPORTERS[market.format].track is None:
            return {}
        newest = {source.path.removesuffix(".gz"): source for source in sources if source.format == market.format}
        return {one.path: ledger.get_object(one.sha256) for one in newest.values()}


# --- What a season writes down beside contexts and decisions: what was traded, what it was worth, how it was graded ---


DELISTED: Final = "delisted"
"""The kind of a fill that no order asked for: an instrument ended, and its last close was paid out without cost."""


SPLIT: Final = "split"
DIVIDEND: Final = "dividend"
"""Kinds of a fill that no order asked for: a corporate action came into force before the orders of its ex-date."""


@row
class SeasonFill:
    """What changed it on ``day``: signed units, price, and cost in cash. ``record_id`` is the decision behind it."""

    day: str
    agent: str
    record_id: str
    number: int
    symbol: str
    quantity: float
    price: float | None
    cost: float
    kind: str = "order"


@row
class SeasonRejection:
    """An order, or what was cut off one, that was not carried out on ``day``, with the sentence its agent is shown."""

    day: str
    agent: str
    record_id: str
    number: int
    symbol: str
    reason: str
    text: str
    quantity: float | None = None


@row
class SeasonNav:
    """One agent's book after ``day``, valued at the last known closes; ``stale`` names those of earlier days."""

    day: str
    agent: str
    state: str
    cash: float
    nav: float
    costs: float
    positions: Mapping[str, float]
    stale: tuple[str, ...] = ()


@row
class SeasonTime:
    """The seconds that one decision took: of one attempt, without queueing and retries. None where unknown."""

    record_id: str
    day: str
    agent: str
    replicate: int
    seconds: float | None


GradeScope = Literal["whole", "period", "replicate"]
"""What was graded: a whole record; a period of it, for orders; the decisions of one replicate, for noise floors."""


@row
class SeasonGrade:
    """One judge's score of one agent's record, or of a part of it, in one trial."""

    agent: str
    judge: str
    family: str
    trial: int
    scope: GradeScope
    period: str
    replicate: int
    first: str
    last: str
    steps: int
    score: HorizonScore


@row
class SeasonGuess:
    """One guess of a judge at who made a record; ``guess`` is None where ``state`` says that the reply is no guess."""

    author: str
    judge: str
    trial: int
    period: str
    options: int
    state: str
    guess: str | None
    call_key: str


@row
class SeasonCheck:
    """One agent's record held against itself: how many fill, cash and position checks, and how many reconcile."""

    agent: str
    kind: str
    checks: int
    passed: int
    mismatches: tuple[str, ...] = ()


@row
class SeasonReplaced:
    """What blinding did with one name in one agent's record: how often it was replaced or kept, and why."""

    agent: str
    name: str
    state: AuditState
    count: int
    why: str


_TYPES: Final = {
    "int": pa.int64(),
    "float": pa.float64(),
    "Mapping[str, float]": pa.map_(pa.string(), pa.float64()),
    "tuple[str, ...]": pa.list_(pa.string()),
}
"""Of columns, by the types of fields; all others are texts."""


def _columns(kind: type[Any], names: str = "") -> dict[str, tuple[pa.DataType, Column]]:
    """Columns of some fields of a record, each of the type of its field; without ``names`` of all, in their order."""

    def column(name: str, declared: str) -> Column:
        if declared.startswith("Mapping"):
            return lambda row, _: sorted(getattr(row, name).items())
        if declared.startswith("tuple"):
            return lambda row, _: list(getattr(row, name))
        return lambda row, _: getattr(row, name)

    types = {
        name: str(kind.__annotations__[name]).removesuffix(" | None") for name in names.split() or kind.__annotations__
    }
    return {name: (_TYPES.get(one, pa.string()), column(name, one)) for name, one in types.items()}


def _table(name: str, kind: type[Any], order: str, columns: str = "", flat: bool = True, **more: Any) -> Table[Any]:
    """A table of rows of some kind, sorted by the fields that ``order`` names."""
    key = attrgetter(*order.split())
    return Table(name, kind, _columns(kind, columns) | more, sort=lambda row, _: key(row), flat=flat)


FILLS: Final[Table[SeasonFill]] = _table("fills", SeasonFill, "day agent kind number")
REJECTIONS: Final[Table[SeasonRejection]] = _table("rejections", SeasonRejection, "day agent number")
NAVS: Final[Table[SeasonNav]] = _table("navs", SeasonNav, "day agent", flat=False)
TIMES: Final[Table[SeasonTime]] = _table("times", SeasonTime, "record_id")
"""The only table of a season that differs from one run to the next: it holds what was measured."""

BASELINES: Final = replace(NAVS, name="baselines")
"""Books that nobody decided about (``agent`` is the baseline's name), day by day like those of the agents."""

GRADES: Final[Table[SeasonGrade]] = _table(
    "grades", SeasonGrade, "scope period replicate agent judge trial",
    "agent judge family scope period first last trial replicate steps", flat=False,
    composite=(pa.float64(), lambda row, _: row.score.score.composite if row.score.score else None),
)  # fmt: skip
GUESSES: Final[Table[SeasonGuess]] = _table(
    "guesses", SeasonGuess, "author judge period trial", "author judge period state guess call_key trial options"
)
CHECKS: Final[Table[SeasonCheck]] = _table("checks", SeasonCheck, "agent kind")
REPLACED: Final[Table[SeasonReplaced]] = _table("replaced", SeasonReplaced, "agent name state")


@dataclass(frozen=True, slots=True)
class SeasonJudgments:
    """What judging left: grades and guesses, every number beside its material, and what blinding did."""

    grades: tuple[SeasonGrade, ...]
    guesses: tuple[SeasonGuess, ...]
    evidence: tuple[Evidence, ...]
    replaced: tuple[SeasonReplaced, ...]

    @classmethod
    def read(cls, store: Store) -> SeasonJudgments:
        """From the tables of a run folder."""
        return cls(*(tuple(store.read(table)) for table in (GRADES, GUESSES, EVIDENCE, REPLACED)))
