"""The plan of a season in its run folder: locked on its file, texts and market before any agent is called."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from assaymark import __version__, importers
from assaymark.agents.llm import season_texts
from assaymark.claims import season_plan as plans
from assaymark.claims.season_plan import RecordedFields, RecordedFile, Season, SeasonMarket, parse_season
from assaymark.errors import InputError, LedgerError, PlanError, Problem, UnknownNameError
from assaymark.judging.season.calls import judge_texts
from assaymark.market import CLASSES, History, open_history, read_manifest, synthetic_history
from assaymark.market.history import Clock
from assaymark.market.instruments import weekdays
from assaymark.plan import read_toml
from assaymark.protocol import AgentSpec, JudgeSpec
from assaymark.records import JSON, Decision, canonical_json, content_id, parse, sha256_text, to_json, write_atomic
from assaymark.workflow import run_folder as runs
from assaymark.workflow.ask import Canaries
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import CONTEXTS, DECISIONS, OUTCOMES, RecordTable, Store
from assaymark.workflow.tracks import season_records as rows

if TYPE_CHECKING:
    from assaymark.engine import Model
    from assaymark.workflow.ask import Canaries

SEASON: Final = runs.LockKind(
    format="assaymark season lock 2",
    absent="{0} contains no season; make one with: assaymark season init {2} --out {1}",
    others={"": "{0} contains a study or a benchmark, not a season; use another folder"},
    texts="texts of this version",
    restore="restore it, or use a new run folder",
)
"""The format and the messages of a season's lock."""

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True, eq=False)
class SeasonData:
    """The data of a season: the price store, its digest, and the instruments in the order of the store."""

    store: History | None
    digest: str
    universe: tuple[str, ...]
    earlier: tuple[Path, ...] = ()

    @property
    def history(self) -> History:
        """The price store; raises `PlanError` if the season has none or was opened without it."""
        if self.store is None:
            raise PlanError("this season was run elsewhere, or was read without its market")
        return self.store

    def clock(self, season: Season) -> Clock:
        """Return the clock of a season over this store."""
        days = season.calendar
        return Clock(self.history, self.universe, days.first, days.last, at=days.decide_at, bars=season.bars)

    def older(self, season: Season, day: date) -> SeasonData | None:
        """Return the snapshot retrieved before this one; None if there is none, or it is from before ``day``."""
        if not self.earlier or read_manifest(self.earlier[0]).origin.retrieved_at.date() < day:
            return None
        folder, *rest = self.earlier
        history = open_history(folder)
        _check_chosen(season, history, self.universe, str(folder))
        return SeasonData(history, read_manifest(folder).digest, self.universe, tuple(rest))


@dataclass(frozen=True, slots=True, eq=False)
class LockedSeason:
    """A locked season with its data; `stored_season` leaves its market out.

    ``inputs`` are the digests of its data, and ``preflight`` notes on what its design cannot show.
    """

    season: Season
    plan_hash: str
    locked_at: str
    amendments: tuple[runs.Amendment, ...]
    preregistered: bool
    inputs: Mapping[str, str]
    preflight: tuple[str, ...]
    data: SeasonData


def is_season(folder: RunFolder) -> bool:
    """True if a season is locked in a run folder."""
    return SEASON.holds(folder)


def lock_season(
    folder: RunFolder, text: str, source: str, models: Mapping[str, Model] | None = None, *, now: datetime,
    allow_absent: Collection[str] = (), first: Callable[[Season, SeasonData], Canaries] | None = None,
) -> LockedSeason:  # fmt: skip
    """Lock a season in a run folder. Repeating it changes nothing, and a failure leaves nothing behind."""
    runs.require_version_2(folder)
    records: ImportedSeason | None = None
    absent: tuple[str, ...] = ()
    if plans.is_recorded(text, source):
        from assaymark.workflow.lock import model_problems

        file = plans.read_recorded(text, source)
        panel = ((f"panel.{judge.name}", judge) for judge in file.panel or ())
        wrong = chain.from_iterable(model_problems(*place, models, "judge of seasons") for place in panel)
        records = find_season(folder, file, source, [*wrong])
        season = plans.recorded_season(file, records.follows, source)
        data = SeasonData(None, records.digest, records.follows.universe)
    else:
        # Locking a season again does not require its agents to be available.
        required = None if folder.lock.is_file() else models
        season, data, absent = _check_season(text, source, models, required, allow_absent)
    plan_hash = plans.season_hash(season, text_digests(season), _input_digests(season, data))
    if folder.lock.is_file():
        locked = open_season(folder)
        if locked.plan_hash != plan_hash:
            raise PlanError(
                f"{source} differs from the season locked in {folder.path} (plan hash {plan_hash[:12]}..., locked "
                f"{locked.plan_hash[:12]}...); a locked season is not changed: use a new run folder (--out)"
            )
    sent = None if first is None or folder.lock.is_file() else first(season, data)
    with runs.new_folder(folder.path):
        if records is not None:
            write_records(folder, records, plan_hash)
        if not folder.lock.is_file():
            write_atomic(folder.plan, text)
            inputs = _input_digests(season, data)
            lock = season_lock(season, plan_hash, to_json(now), inputs, data.universe, records, absent)
            runs.write_lock(folder, lock)
    locked = open_season(folder, data)
    if sent is not None:
        sent.keep(folder, locked)
    return locked


def open_season(folder: RunFolder, data: SeasonData | None = None) -> LockedSeason:
    """Open the locked season of a run folder with its current market. Raises `PlanError` if locked data changed."""
    stored = stored_season(folder)
    season = stored.season
    if data is None and season.recorded:
        store = Store(folder)
        records = content_id({table.name: store.content(table) for table in IMPORTED})  # whatever version wrote them
        data = SeasonData(None, records, stored.data.universe)
    elif data is None:
        data = open_market(season, str(folder.plan), stored.data.universe)
    if _input_digests(season, data) != stored.inputs:
        noun = "records" if season.recorded else "market"
        instead = "use a new run folder" if season.recorded else "lock a season with market.live"
        raise PlanError(
            f"{folder.path}: the {noun} changed after the lock (now {data.digest[:24]}..., locked "
            f"{stored.inputs.get('market', '')[:24]}...); restore them, or {instead}"
        )
    return replace(stored, data=data)


def stored_season(folder: RunFolder) -> LockedSeason:
    """Open the locked season of a run folder without its market, for reading its tables."""
    stored = SEASON.stored(folder)
    complete = isinstance(stored.get("universe"), list) and isinstance(stored.get("inputs"), dict)
    if not complete or not isinstance(stored.get("plan_hash"), str):
        raise LedgerError(f"{folder.lock} is damaged; lock the season again in a new folder")
    season = season_of(runs.read_text(folder.plan, "season"), stored, source=str(folder.plan))
    inputs = {str(key): str(value) for key, value in stored["inputs"].items()}
    plan_hash = plans.season_hash(season, text_digests(season), inputs)
    SEASON.require_unedited(folder, plan_hash, stored)
    amendments = runs.read_amendments(folder, stored.get("amendments", ()))
    universe, preflight = (tuple(map(str, stored.get(name, ()))) for name in ("universe", "preflight"))
    preregistered, data = bool(stored.get("preregistered", True)), SeasonData(None, inputs.get("market", ""), universe)
    return LockedSeason(season, plan_hash, str(stored["locked_at"]), amendments, preregistered, inputs, preflight, data)


def text_digests(season: Season) -> dict[str, str]:
    """Return the digests of all prompt texts, for agents and for judges, and of the scoring plan."""
    plan = season.scoring_plan
    texts = {**season_texts(), **judge_texts(plan)}
    return {**{name: sha256_text(text) for name, text in texts.items()}, "scoring": plan.digest}


def season_of(text: str, stored: Mapping[str, Any], source: str) -> Season:
    """Parse the season in a file; ``stored`` is its lock, which holds the facts derived from imported records."""
    if "follows" not in stored:
        return parse_season(text, source)
    follows = parse(plans.RecordedFields, canonical_json(stored["follows"]), source="the lock")
    return plans.recorded_season(plans.read_recorded(text, source), follows, source)


def season_lock(
    season: Season, fingerprint: str, locked_at: JSON, inputs: Mapping[str, str], universe: Sequence[str],
    records: ImportedSeason | None, absent: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """Return the lock of a season; for imported records it includes the facts derived from them."""
    # the decision days: those of imported records, else every weekday
    all_days = weekdays(season.calendar.first, season.calendar.last)
    days = sorted(set(records.days.values())) if records is not None else [str(day) for day in all_days]
    preflight = [*plans.period_preflight(days, season.judging.period, season.cluster_order)]
    if absent:
        preflight.append(f"when this season was locked, no answer came from: {', '.join(absent)}")
    of_records: dict[str, JSON] = {}
    if records is not None:
        preflight += records.preflight
        of_records = {"follows": to_json(records.follows), "tables": dict(records.tables)}
    fields = {"inputs": dict(inputs), "universe": list(universe), "preflight": preflight}
    return SEASON.new_lock(fingerprint, locked_at, **fields, **of_records)


def _input_digests(season: Season, data: SeasonData) -> dict[str, str]:
    """Return the digests of a season's data; a live market grows, and so has none."""
    market = "live" if season.market.live else data.digest
    return {"market": market, "universe": content_id(list(data.universe))}


def open_market(season: Season, source: str, chosen: Sequence[str] = ()) -> SeasonData:
    """Open the market of a season; ``chosen`` are the instruments of its lock."""
    market, earlier = season.market, tuple[Path, ...]()
    if market.source == "synthetic":
        history, digest = synthetic_history(market.seed), synthetic_digest(market)
    else:
        folder = Path(market.source)
        if market.live and not (folder / "snapshot.json").is_file():  # a growing source, latest snapshot first
            snapshots = [path.parent for path in folder.glob("*/snapshot.json")]
            if not snapshots:
                problem = "contains no snapshot; fetch one with: assaymark data pull SOURCE --out"
                raise InputError(str(folder), [Problem("", f"{problem} {folder}/DAY")])
            by_time = sorted((read_manifest(path).origin.retrieved_at, path.name, path) for path in snapshots)
            folder, *others = (path for *_, path in reversed(by_time))
            earlier = tuple(others)
        history, digest = open_history(folder), read_manifest(folder).digest
    if chosen:
        _check_chosen(season, history, chosen, source)
        return SeasonData(history, digest, tuple(chosen), earlier)
    listings, selection, days, problems = history.listings, season.universe, season.calendar, list[Problem]()
    ids = [listing.id for listing in listings]
    if not isinstance(selection, int):
        universe = tuple(name for name in ids if name in selection)
        unknown = [name for name in selection if name not in ids]
        problems += [Problem("universe", str(UnknownNameError("instrument", name, ids))) for name in unknown]
    elif selection > len(trading := [listing for listing in listings if listing.trades_on(days.first)]):
        universe, problem = (), f"{selection} instruments are asked for, and {len(trading)} trade on {days.first}"
        problems.append(Problem("universe", f"{problem}; allowed: 1 to {len(trading)}"))
    else:  # by asset class in turn, so that a small universe is mixed
        hands = [[listing.id for listing in trading if listing.asset_class == name] for name in CLASSES]
        dealt = [instrument for row in zip_longest(*hands) for instrument in row if instrument is not None][:selection]
        universe = tuple(listing.id for listing in trading if listing.id in dealt)
    if not history.days.size:
        problems.append(Problem("market", "holds no day"))
    else:
        first, last = (history.days[row].astype("datetime64[D]").astype(object) for row in (0, -1))
        for name, day, early in (("first", days.first, days.first < first), ("last", days.last, False)):
            if early or (day > last and not market.live):
                problem = f"{day} is outside the market: the market has days from {first} to {last}"
                problems.append(Problem(f"calendar.{name}", problem))
    problems += _unadjusted(season, history, universe)
    if problems:
        raise InputError(source, problems)
    return SeasonData(history, digest, universe, earlier)


def _check_chosen(season: Season, history: History, chosen: Sequence[str], source: str) -> None:
    listed = {listing.id for listing in history.listings}
    if lost := [name for name in chosen if name not in listed]:
        raise InputError(source, [Problem("market", f"has no {', '.join(lost[:5])} any more")])
    if problems := _unadjusted(season, history, chosen):
        raise InputError(source, problems)


def synthetic_digest(market: SeasonMarket) -> str:
    """Return the digest of the synthetic market: its seed and the version that generates it."""
    return f"synthetic-{market.seed} of assaymark {__version__}"


def _unadjusted(season: Season, history: History, universe: Sequence[str]) -> list[Problem]:
    """Return a problem if prices of a live market may be adjusted or not: a split could look like a gain or loss."""
    unsaid = [name for name in universe if name in history.unstated]
    if not season.market.live or not unsaid:
        return []
    names = f"{', '.join(unsaid[:5])}{f' and {len(unsaid) - 5} more' if len(unsaid) > 5 else ''}"
    problem = f"{history.source or 'it'} does not say whether prices are adjusted for splits and dividends ({names})"
    needs = "a live season needs to know: give each bar an adj_factor (1 where nothing is adjusted)"
    return [Problem("market", f"{problem}; {needs}, or list splits and dividends on their ex-dates")]


def _check_season(
    text: str, source: str, models: Mapping[str, Model] | None, there: Mapping[str, Model] | None,
    allow_absent: Collection[str],
) -> tuple[Season, SeasonData, tuple[str, ...]]:  # fmt: skip
    """Check a season and its market; returns both, and the absent agents. Models in ``there`` have to be available.

    In an invalid file every valid part is still checked, so that all problems are reported at once.
    """
    from assaymark.workflow.lock import absent_problems, model_problems

    raw, problems, data = read_toml(text, source), [], None
    try:
        season: Season | None = parse_season(text, source)
    except InputError as exc:
        season, problems = None, [*exc.problems]
        if any(problem.where == "version" for problem in problems):
            raise
    agents = _valid_entries(AgentSpec, raw.get("agents"))
    for agent in agents:
        problems += model_problems(f"agents.{agent.name}", agent, models, "agent")
    for judge in _valid_entries(JudgeSpec, raw.get("panel")):
        problems += model_problems(f"panel.{judge.name}", judge, models, "judge of seasons")
    market = season
    if market is None:
        parts = {name: raw[name] for name in ("market", "calendar", "universe") if name in raw}
        any_agent = {"name": "agent", "family": "family", "model": "reference/agent"}
        with suppress(ValidationError):
            market = Season.model_validate({"name": "season", "prompt": "-", "agents": [any_agent], **parts})
    try:
        data = None if market is None else open_market(market, source)
    except InputError as exc:
        problems += [one if one.where else Problem("market.source", f"{exc.source} {one.what}") for one in exc.problems]
    names = [agent.name for agent in agents]
    for name in sorted({*allow_absent} - {*names}):
        problems.append(Problem("--allow-absent", str(UnknownNameError("agent", name, names))))
    absent = {agent.name: [*absent_problems(f"agents.{agent.name}", agent, there)] for agent in agents}
    for name, reasons in absent.items():
        if name not in allow_absent:
            instead = f"or lock the season without it answering: --allow-absent {name}"
            problems += [replace(problem, what=f"{problem.what}, {instead}") for problem in reasons]
    if problems or season is None or data is None:
        raise InputError(source, problems)
    return season, data, tuple(name for name, reasons in absent.items() if reasons)


def _valid_entries(kind: type[M], entries: object) -> list[M]:
    """Return the entries of a list in a file that are valid by themselves."""
    records = []
    for entry in entries if isinstance(entries, list) else ():
        with suppress(ValidationError):
            records.append(kind.model_validate(entry))
    return records


# --- Seasons of imported records --------------------------------------------------------------------------------------


IMPORTED: Final[tuple[RecordTable[Any], ...]] = (CONTEXTS, DECISIONS, OUTCOMES)
"""The tables that an import writes and a season of imported records is locked on."""


@dataclass(frozen=True, slots=True, eq=False)
class ImportedSeason:
    """The season in imported records: the decisions, the facts derived from them, and the books in the log.

    ``days`` are the days of the decisions: local ones if the log has a time zone, else in UTC.
    """

    follows: RecordedFields
    decisions: tuple[Decision, ...]
    days: Mapping[str, str]
    track: importers.RecordedTrack | None
    tables: Mapping[str, str | None]
    preflight: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The sha256 of the records."""
        return content_id(dict(self.tables))


def find_season(folder: RunFolder, file: RecordedFile, source: str, wrong: Sequence[Problem] = ()) -> ImportedSeason:
    """Find the season of a file in the imported records of a run folder; ``wrong`` are further problems to report."""
    problems, store, market = [*file.problems, *wrong], Store(folder), file.market
    contents = {table.name: store.content(table) for table in IMPORTED} if folder.path.is_dir() else {}
    if not (contents and folder.has_ledger and all(contents.values())):
        fmt = market.format if market is not None else "FORMAT"
        problem = f"{folder.path} contains no imported records; import them with: assaymark import {fmt} PATH --out"
        raise InputError(source, [*problems, Problem("market.source", f"{problem} {folder.path}")])
    if market is None:
        raise InputError(source, problems)
    files = _source_files(folder, market, problems)
    every = store.read(DECISIONS)
    is_known = market.format in importers.IMPORTERS
    tracks = sorted({row.episode_id for row in every}) if is_known and importers.IMPORTERS[market.format].track else []
    of_track = [decision for decision in every if not tracks or decision.episode_id == market.track]
    honest = [decision for decision in of_track if decision.derivation.kind == "honest"]
    if tracks and market.track not in tracks:
        problems.append(Problem("market.track", f"must be one of {', '.join(tracks)} (got {market.track!r})"))
    elif is_known and not tracks and market.track:
        problems.append(Problem("market.track", f"records of {market.format} are one track; leave it out"))
    # A record that is older than its context cannot be part of a season.
    out = frozenset((*market.exclude_flags, importers.CLOCK_CONFLICT))
    ordered = sorted(honest, key=lambda decision: (decision.decided_at, decision.record_id))
    eligible = [decision for decision in ordered if not out & {*decision.flags}]
    if honest and not eligible:
        problems.append(Problem("market.exclude_flags", f"leave no record (got {', '.join(sorted(out))})"))
    there = tuple(sorted({decision.agent.id for decision in eligible or every}))
    names = [agent.name for agent in file.agents]
    problems += [Problem("agents", str(UnknownNameError("agent", name, there))) for name in names if name not in there]
    names = names or sorted({decision.agent.id for decision in eligible})
    chosen = tuple(decision for decision in eligible if decision.agent.id in names)
    for agent in names:  # records need an order: no two first decisions at one time
        of_agent = [decision for decision in chosen if decision.agent.id == agent]
        first = [decision for decision in of_agent if decision.replicate == 1]
        if of_agent and not first:
            problems.append(Problem(f"agents.{agent}", "has replicates only, and no first decision"))
        if same := [(a.record_id, b.record_id) for a, b in pairwise(first) if a.decided_at == b.decided_at]:
            more = f", and {len(same) - 1} more such pairs" if len(same) > 1 else ""
            problem = f"decided twice at one moment ({' and '.join(same[0])}{more}): a record needs an order"
            problems.append(Problem(f"agents.{agent}", problem))
    if problems:
        raise InputError(source, problems)
    read = importers.IMPORTERS[market.format].track
    track = None if read is None else read(files, market.track)
    if track is not None and any(decision.record_id not in track.days for decision in chosen):
        problem = "its source files are of another import than its decisions; import the files into a new run folder"
        raise LedgerError(f"{folder.path}: {problem}")
    stated = {} if track is None else track.days
    days = {decision.record_id: stated.get(decision.record_id, str(decision.decided_at.date())) for decision in chosen}
    agents = {decision.agent.id: decision.agent for decision in eligible}
    follows = RecordedFields(
        agents=tuple((name, agents[name].family, agents[name].model or name) for name in sorted(agents)),
        universe=_instruments(store, chosen) if track is None else track.universe,
        first=min(days.values()), last=max(days.values()), replicates=max(decision.replicate for decision in chosen),
        capital=None if track is None else track.capital, currency=None if track is None else track.currency,
    )  # fmt: skip
    excluded = sum(decision.agent.id in names and bool(out & {*decision.flags}) for decision in honest)
    left_note = f"{excluded} of {excluded + len(chosen)} records are left out for their flags (market.exclude_flags)"
    return ImportedSeason(follows, chosen, days, track, contents, (left_note,) if excluded else ())


def write_records(folder: RunFolder, records: ImportedSeason, plan_hash: str) -> None:
    """Write the tables of a season of imported records; complete ones stay as they are."""
    store, basis = Store(folder), {"plan": plan_hash, "records": records.digest}
    names, track = {decision.record_id for decision in records.decisions}, records.track
    agents = {decision.agent.id for decision in records.decisions}

    tables = dict[RecordTable[Any], list[Any]]()
    if track is not None:
        tables[rows.FILLS] = [fill for row in track.fills if (fill := rows.SeasonFill(*row)).record_id in names]
        tables[rows.NAVS] = [nav for row in track.books if (nav := rows.SeasonNav(*row)).agent in agents]
        tables[rows.BASELINES] = [rows.SeasonNav(*row) for row in track.baselines]
        tables[rows.CHECKS] = [check for row in track.checks if (check := rows.SeasonCheck(*row)).agent in agents]
    tables[rows.TIMES] = [
        rows.SeasonTime(
            decision.record_id, records.days[decision.record_id], decision.agent.id, decision.replicate,
            # measured times only, not those derived from timestamps
            decision.call.seconds if decision.call.timing_source == "measured" else None,
        )
        for decision in records.decisions
    ]  # fmt: skip
    for table in (rows.FILLS, rows.REJECTIONS, rows.NAVS, rows.BASELINES, rows.CHECKS, rows.TIMES):
        if not store.done(table, basis):
            store.write(table, tables.get(table, ()), basis)


def _instruments(store: Store, decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Return all instruments that agents were shown or acted on, for records without a price file."""
    used = {decision.context_id for decision in decisions}
    names = {action.instrument for decision in decisions for action in decision.actions if action.instrument}
    for _, context in store.each_context(used):
        shown = {instrument.id for instrument in context.instruments}
        names |= shown or {fact.instrument for fact in context.facts if fact.instrument}
    return tuple(sorted(names))


def _source_files(folder: RunFolder, market: SeasonMarket, problems: list[Problem]) -> dict[str, bytes]:
    """Return the source files of the records as last imported, by path."""
    if market.format not in importers.IMPORTERS:
        problems.append(
            Problem("market.format", str(UnknownNameError("format", market.format, tuple(importers.IMPORTERS))))
        )
        return {}
    from assaymark.engine import Ledger

    with Ledger.open(folder.ledger) as ledger:
        sources = [source for source in ledger.sources() if source.format in importers.IMPORTERS]
        formats = list(dict.fromkeys(source.format for source in sources))
        if market.format not in formats:
            there_are = f"the records of {folder.path} are of {', '.join(formats) or 'no format that is known'}"
            problems.append(Problem("market.format", f"{there_are} (got {market.format!r})"))
            return {}
        if importers.IMPORTERS[market.format].track is None:
            return {}
        newest = {source.path.removesuffix(".gz"): source for source in sources if source.format == market.format}
        return {source.path: ledger.get_object(source.sha256) for source in newest.values()}
