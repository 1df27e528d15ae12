"""A season day by day, live or as a replay: settle yesterday's orders, show agents the day, ask them, record it."""

from __future__ import annotations

import fcntl
import gc
import hashlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, TypeVar

from assaymark.agents.llm import ABSENT, NOT_USABLE, season_texts
from assaymark.claims.season_plan import Season
from assaymark.engine import CallSpec, Ledger, Model
from assaymark.errors import InputError, LedgerError, PlanError, Problem
from assaymark.importers.report import CASH, EQUAL_WEIGHT
from assaymark.judging.season.calls import judge_texts
from assaymark.market.history import Clock, Day
from assaymark.notebook import CommandResult
from assaymark.portfolio.broker import Account
from assaymark.protocol import AgentSpec
from assaymark.records import Context, Decision, Portfolio, canonical_json, parse, sha256_text, sync_folder, to_json
from assaymark.workflow.ask import Canaries, check_call, check_plan_hash, prices_of, print_raised
from assaymark.workflow.progress import note, silent, watched
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import CONTEXTS, DECISIONS, OUTCOMES, Store
from assaymark.workflow.tracks import season_accounts as books
from assaymark.workflow.tracks import season_records as rows
from assaymark.workflow.tracks.season_accounts import AccountDay, DueDays
from assaymark.workflow.tracks.season_context import (
    AgentDay,
    DayMaterial,
    agent_calls,
    agent_context,
    agent_prompt,
    ask_agents,
    context_json,
    day_material,
    limits_of,
)
from assaymark.workflow.tracks.season_lock import LockedSeason, SeasonData, lock_season, open_season

T = TypeVar("T")

_SYNC_S: Final = 1.0
_START: Final = "0" * 64
_YOUNG: Final = 100_000


@dataclass(frozen=True, slots=True)
class DayEntry:
    """One day: its record, the JSON of the context that agents shared, and the seconds that decisions took."""

    record: dict[str, Any]
    facts: str = "[]"
    instruments: str = "[]"
    series: str = "[]"
    times: dict[str, float | None] | None = None

    @property
    def day(self) -> str:
        """The day, as YYYY-MM-DD."""
        return str(self.record["day"])

    @property
    def moment(self) -> datetime:
        """The time at which agents decided."""
        return datetime.fromisoformat(self.record["moment"].replace("Z", "+00:00"))


class DayJournal:
    """The journal of a run folder. Use `DayJournal.open`, which locks it for one process."""

    def __init__(self, path: Path) -> None:
        self.entries, self.digest, size = _parse_journal(path)
        self._path = path
        self._file = path.open("ab")
        self._file.truncate(size)
        self._synced = time.monotonic()

    @classmethod
    @contextmanager
    def open(cls, folder: RunFolder) -> Iterator[DayJournal]:
        """Open the journal, locked until the block ends."""
        path = journal_path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        with steps_blocked(folder):
            journal = cls(path)
            try:
                yield journal
            finally:
                try:
                    journal._file.flush()
                    journal.sync()
                finally:
                    journal._file.close()

    @property
    def last(self) -> date | None:
        """The last day that is done."""
        return date.fromisoformat(self.entries[-1].day) if self.entries else None

    @property
    def navs(self) -> dict[str, float]:
        """The net asset values after the last day that is done; empty before the first."""
        agents = self.entries[-1].record["agents"] if self.entries else {}
        return {name: agent["nav"]["nav"] for name, agent in agents.items()}

    def append(self, entry: DayEntry) -> None:
        """Append a day to the journal."""
        body = "\t".join([canonical_json(entry.record), entry.facts, entry.instruments, entry.series])
        self.digest = hashlib.sha256(f"{self.digest}{body}".encode("utf-8", "surrogatepass")).hexdigest()
        line = f"{self.digest}\t{body}\t{canonical_json(entry.times or {})}\n"
        try:
            self._file.write(line.encode("utf-8", "surrogatepass"))
            self._file.flush()
        except OSError as exc:
            raise LedgerError(f"cannot write {self._path}: {exc.strerror or exc}") from None
        self.entries.append(entry)
        if time.monotonic() - self._synced > _SYNC_S:
            self.sync()

    def sync(self) -> None:
        """Flush the journal to disk."""
        os.fsync(self._file.fileno())
        sync_folder(self._path.parent)
        self._synced = time.monotonic()


def journal_path(folder: RunFolder) -> Path:
    """Return the path of a run folder's journal."""
    return folder.path / "season" / "days.journal"


def read_journal(folder: RunFolder) -> tuple[list[DayEntry], str]:
    """Read the days that are done, and the digest of all of them, without a lock."""
    return _parse_journal(journal_path(folder))[:2]


def _parse_journal(path: Path) -> tuple[list[DayEntry], str, int]:
    """Return the complete lines of a journal, the digest of the last one, and their size in bytes."""
    if not path.is_file():
        return [], _START, 0
    try:
        raw = path.read_bytes()
    except OSError as exc:
        raise LedgerError(f"cannot read {path}: {exc.strerror or exc}") from None
    entries: list[DayEntry] = []
    digest, size = _START, 0
    for number, line in enumerate(raw.split(b"\n")[:-1], start=1):
        damaged = f"{path} is damaged at line {number}"
        try:
            parts = line.decode("utf-8", "surrogatepass").split("\t")
        except UnicodeDecodeError:
            parts = []
        chained = (digest + "\t".join(parts[1:5])).encode("utf-8", "surrogatepass")
        if len(parts) != 6 or parts[0] != hashlib.sha256(chained).hexdigest():
            raise LedgerError(f"{damaged}; restore it from a copy, or replay in a new folder")
        digest, size = parts[0], size + len(line) + 1
        try:
            entries.append(DayEntry(json.loads(parts[1]), parts[2], parts[3], parts[4], json.loads(parts[5])))
        except json.JSONDecodeError as exc:
            raise LedgerError(f"{damaged} ({exc.msg})") from None
    return entries, digest, size


def steps_blocked(folder: RunFolder) -> AbstractContextManager[None]:
    """Lock the season against steps, so that its tables do not change meanwhile."""
    return guard(journal_path(folder).with_suffix(".lock"), f"{folder.path}: another step of this season is running")


@contextmanager
def guard(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock file; the operating system releases it if the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LedgerError(f"{busy}; nothing was done, run this again later") from None
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True, repr=False)
class Stepped(CommandResult[tuple[date, ...]]):
    """The result of a command: the days done now, lines to print, and each agent's net asset value after them."""

    navs: Mapping[str, float]
    overdue: tuple[str, ...] = ()
    absent: Mapping[str, int] = field(default_factory=dict)


def start_season(
    folder: RunFolder, text: str, source: str, models: Mapping[str, Model], *, now: datetime,
    allow_absent: Collection[str] = (),
) -> LockedSeason:  # fmt: skip
    """Lock a season as `lock_season` does, after one trial call to each model, to agents about the first day."""

    def ask(season: Season, data: SeasonData) -> Canaries:
        found, schemas = Canaries(models, season.engine), judge_texts(season.scoring_plan)
        agents = [agent for agent in season.agents if agent.name not in allow_absent]
        if not season.recorded and not all(agent.model.startswith("reference/") for agent in agents):
            clock = data.clock(season)
            days = (clock.day(day, after=None) for day in clock.due(None, now=now if season.market.live else None))
            if (day := next((day for day in days if day.quotes), None)) is not None:
                found.ask(opening_calls(season, day, agents))
            else:  # the market has no day yet
                found.ask(check_call(agent, season_texts()["schema of an agent"]) for agent in agents)
        found.ask(check_call(judge, schemas[f"schema {season.scoring}"]) for judge in season.panel if not judge.human)
        found.require()
        return found

    return lock_season(folder, text, source, models, now=now, allow_absent=allow_absent, first=ask)


def opening_calls(season: Season, day: Day, agents: Sequence[AgentSpec]) -> list[CallSpec]:
    """Return the calls to agents on a day with untouched portfolios, replicates included."""
    start = Account(season.capital)
    settled = {agent.name: books.settle_account(season, agent.name, start, None, day, {}) for agent in agents}
    shared, agent_days = _day_contexts(season, day, agents, settled)
    return [item.call for each in agent_days for item in agent_calls(season, day.date, each, shared)]


def open_run(folder: RunFolder) -> LockedSeason:
    """Open a season that is run here; raises `PlanError` for one made of imported records."""
    locked = open_season(folder)
    if locked.season.recorded:
        raise PlanError(
            f"{folder.path} contains a season that was run elsewhere; use: assaymark season judge {folder.path}"
        )
    return locked


def run_season(folder: RunFolder, models: Mapping[str, Model], *, now: datetime) -> Stepped:
    """Run every day of a season that is due; of a replay, all days to its end."""
    return _run_days(folder, models, now, lambda _locked, _clock, _done, arrivals: arrivals)


def step_season(folder: RunFolder, models: Mapping[str, Model], *, now: datetime, day: date | None = None) -> Stepped:
    """Run one trading day of a season, after every missed day before it."""

    def chosen(locked: LockedSeason, clock: Clock, done: date | None, arrivals: DueDays) -> DueDays:
        live = locked.season.market.live
        if day is None:
            return arrivals if live else DueDays(arrivals.days[:1], arrivals.reached)
        problem = ""
        if not clock.first <= day <= clock.last:
            problem = f"is outside the season ({clock.first} to {clock.last})"
        elif done is not None and day < done:
            problem = f"is before {done}, the last completed day; days run forward only"
        elif live and clock.moment(day) > now:
            problem = f"is not over: its hour of decision is {clock.moment(day).isoformat()}"
        elif arrivals.reached is None or day > arrivals.reached:
            reached = "has no day yet" if arrivals.reached is None else f"ends on {arrivals.reached}"
            problem = f"is ahead of the market, which {reached}"
        elif arrivals.waiting is not None and day >= arrivals.waiting:
            problem = f"is not reached: {arrivals.announced}"
        if problem:
            raise InputError("--day", [Problem("", f"{day} {problem}")])
        days, lost = (pair for pair in arrivals.days if pair[0] <= day), (each for each in arrivals.lost if each <= day)
        return DueDays(tuple(days), arrivals.reached, tuple(lost))

    return _run_days(folder, models, now, chosen)


def _run_days(
    folder: RunFolder, models: Mapping[str, Model], now: datetime,
    choose: Callable[[LockedSeason, Clock, date | None, DueDays], DueDays],
) -> Stepped:  # fmt: skip
    """Run the chosen days, then write the tables, also if a day failed."""
    locked = open_run(folder)
    with DayJournal.open(folder) as journal:
        clock = locked.data.clock(locked.season)
        arrivals = choose(locked, clock, journal.last, books.find_due_days(locked, journal.last, now))
        due = tuple(day for day, _ in arrivals.days)
        before = gc.get_threshold()
        try:
            gc.set_threshold(_YOUNG, 50, 50)  # rarely: each collection would scan a replay's days
            with Ledger.open(folder.ledger) as ledger:
                check_plan_hash(folder, ledger, locked)
                session = SeasonState(folder, locked, journal, ledger, models)
                for number, (day, data) in enumerate(arrivals.days):
                    note("days", number, len(due))
                    session.digest = data.digest
                    day_clock = clock if data is locked.data else data.clock(locked.season)
                    with watched(silent):  # count days, not the calls of each
                        session.run_day(day_clock.day(day, after=journal.last))
                note("days", len(due), len(due))
        finally:
            gc.set_threshold(*before)
            print_raised(models)
            journal.sync()
            write_tables(folder, locked, journal.entries, journal.digest)
        # The days without a usable reply by agent: not reached (absent), or reached in vain (mute).
        absent, unusable = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        entries = journal.entries[-len(due) :] if due else []
        for row in (row for entry in entries for row in entry.record["decisions"] if row["replicate"] == 1):
            if {*row["flags"]} & {*NOT_USABLE}:
                (absent if ABSENT in row["flags"] else unusable)[row["agent"]["id"]].append("; ".join(row["missing"]))
        waiting = [arrivals.announced] if arrivals.announced else []
        begins = f"nothing is due: the season begins on {clock.first}, and the market has no data for it yet"
        lines = waiting or ([] if arrivals.overdue else [begins])
        if journal.entries:
            last = journal.entries[-1].day
            state = f"{last}: " + "; ".join(f"{one.name} {journal.navs[one.name]:,.2f}" for one in locked.season.agents)
            lines = [*(waiting or ([] if arrivals.overdue else [f"nothing is due after {last}"])), state]
        if due:
            empty = [entry.day for entry in entries if entry.record["state"] != "ok"]
            done = f"{len(due)} days done" if len(due) > 1 else f"{due[0]} done"
            without = f"; without data: {', '.join(empty[:5])}" if empty else ""
            lines, span = [f"{locked.season.name}: {done}{without}", state], f"of {len(due)} days, and held"
            for name, days in sorted(unusable.items()):
                lines.append(f"{name} gave no usable reply on {len(days)} {span} (last: {days[-1]})")
            for name, days in sorted(absent.items()):
                lines.append(f"{name} was absent on {len(days)} {span} (last: {days[-1]})")
            lines += waiting
        late = "its data came too late; the day is recorded without decisions, and orders were postponed"
        warnings = (*(f"{day}: {late}" for day in arrivals.lost), *([arrivals.overdue] if arrivals.overdue else []))
        missed = {name: len(days) for name, days in sorted(absent.items())}
        return Stepped(due, tuple(lines), journal.navs, warnings, missed)


class SeasonState:
    """The state of a season between two days, and the step from one to the next."""

    def __init__(
        self, folder: RunFolder, locked: LockedSeason, journal: DayJournal, ledger: Ledger, models: Mapping[str, Model],
    ) -> None:  # fmt: skip
        self.folder, self.journal, self.ledger, self.models = folder, journal, ledger, models
        self.season, self.prices, self.digest = locked.season, prices_of(models), locked.data.digest
        start, universe = Account(self.season.capital), set(locked.data.universe)
        self.accounts = {agent.name: start for agent in self.season.agents}
        self.decided: dict[str, Decision] = {}  # by agent, the decision whose orders fill next
        self.classes = {one.id: one.asset_class for one in locked.data.history.listings if one.id in universe}
        both = {*books.SIXTY_FORTY_OF} <= {*self.classes.values()}  # 60/40 needs equities and bonds
        names = [EQUAL_WEIGHT, *([books.SIXTY_FORTY] if both else []), CASH]
        self.baselines: dict[str, books.Baseline] = {name: (start, {}) for name in names}
        self.traded = any(entry.record["state"] == "ok" for entry in journal.entries)
        self.marks: books.Marks = {}
        self.acted: frozenset[str] = frozenset()
        if not journal.entries:
            return
        last = journal.entries[-1].record
        pending = {agent["pending"] for agent in last["agents"].values()} - {None}
        decisions: dict[str | None, Any] = {None: None}
        for entry in reversed(journal.entries):
            decisions |= {raw["record_id"]: raw for raw in entry.record["decisions"] if raw["record_id"] in pending}
            if pending <= decisions.keys():
                break
        for name, one in last["agents"].items():
            positions = {symbol: float(units) for symbol, units in one["account"]["positions"].items()}
            self.accounts[name] = Account(float(one["account"]["cash"]), positions)
            if (raw := decisions[one["pending"]]) is not None:
                self.decided[name] = _parse_record(Decision, raw)
        for name, one in last["baselines"].items():
            nav, weights = one["nav"], one["wanted"]
            self.baselines[name] = Account(float(nav["cash"]), dict(nav["positions"])), dict(weights)
        self.marks = {name: (float(price), str(day)) for name, (price, day) in last["marks"].items()}
        self.acted = frozenset(map(str, last.get("acted", ())))

    def run_day(self, day: Day) -> None:
        """Run one day for all agents: settle their orders, show them the day, ask them, and record it.

        On a day without data nothing is traded, and orders wait for the next day with data.
        """
        season = self.season
        if day.quotes:  # drop corporate actions that were applied on the evening before their ex-date
            done = {
                name: [one for one in actions if one.since and str(one.since) < self.marks[name][1] < str(one.ex_date)]
                for name, actions in day.actions.items()
                if name in self.acted
            }
            if any(done.values()):
                remaining = {
                    name: [one for one in ones if one not in done.get(name, ())] for name, ones in day.actions.items()
                }
                day = replace(day, actions={name: tuple(actions) for name, actions in remaining.items()})
            acted = {name for name in day.actions if books.due_actions(name, day, self.marks)}
            self.acted = frozenset(acted | (self.acted - day.quotes.keys()))
        before, due, marks, now = self.accounts, self.decided, self.marks, str(day.date)
        settled, baselines = dict[str, AccountDay](), dict[str, Any]()
        for name, account in before.items():
            if day.quotes:
                settled[name] = books.settle_account(season, name, account, due.get(name), day, marks)
            else:
                settled[name] = AccountDay(account, books.value_account(name, now, "no data", account, marks))
        for name, baseline in self.baselines.items():
            if not day.quotes:
                nav = books.value_account(name, now, "no data", baseline[0], marks)
            else:
                baseline, nav = books.settle_baseline(season, name, baseline, day, marks, self.classes, not self.traded)
                self.baselines[name] = baseline
            baselines[name] = {"wanted": dict(baseline[1]), "nav": to_json(nav)}
        shown: dict[str, AgentDay] = {}
        decided: list[tuple[Decision, float | None]] = []
        missing: tuple[str, ...] = ()
        large = ("[]", "[]", "[]")
        if day.quotes:
            self.traded, self.marks = True, books.marks_after(marks, day)
            shared, agent_days = _day_contexts(season, day, season.agents, settled)
            arguments = agent_days, shared, self.models, self.prices
            decided = ask_agents(self.folder, self.ledger, season, day.date, *arguments)
            first = {decision.agent.id: decision for decision, _ in decided if decision.replicate == 1}
            self.accounts, self.decided = {name: settlement.book for name, settlement in settled.items()}, first
            shown, missing = {item[0].name: item for item in agent_days}, shared.context.missing
            large = (shared.facts, shared.instruments, shared.series)
        agents = {}
        for name, settlement in settled.items():
            account, last, pending = self.accounts[name], due.get(name), self.decided.get(name)
            source = "" if last is None else last.record_id
            agents[name] = {
                "account": {"cash": account.cash, "positions": dict(account.positions)},
                "pending": None if pending is None else pending.record_id,
                "nav": to_json(settlement.nav),
                "fills": to_json(settlement.fills),
                "rejections": to_json(settlement.rejections),
                "prompt": shown[name][1].prompt if name in shown else None,
                "context_id": shown[name][2] if name in shown else None,
                "checks": books.audit_day(season, before[name], settlement, day, source, marks) if day.quotes else None,
            }
        record = {
            "day": now,
            "moment": to_json(day.moment),
            "state": "ok" if day.quotes else "no data",
            "market": self.digest,
            "marks": {name: list(mark) for name, mark in self.marks.items()},
            "acted": sorted(self.acted),
            "agents": agents,
            "decisions": [to_json(decision) for decision, _ in decided],
            "missing": list(missing),
            "baselines": baselines,
        }
        self.journal.append(DayEntry(record, *large, {decision.record_id: seconds for decision, seconds in decided}))


def _day_contexts(
    season: Season, day: Day, agents: Sequence[AgentSpec], settled: Mapping[str, AccountDay]
) -> tuple[DayMaterial, list[AgentDay]]:
    """Return the shared context of a day, and each agent with its own: its portfolio and its unexecuted orders."""
    shared = day_material(season, day, {name for settlement in settled.values() for name in settlement.book.positions})
    agent_days = []
    for spec in agents:
        account = settled[spec.name]
        prompt = agent_prompt(season, spec.name, account.notes, account.actions)
        context = agent_context(shared, account.book, account.nav.nav, season.currency, prompt)
        raw = context_json(context, shared.facts, shared.series, shared.instruments)
        agent_days.append((spec, context, sha256_text(raw)))
    return shared, agent_days


def _parse_record(kind: type[T], raw: Any) -> T:
    return parse(kind, canonical_json(raw), source="journal of the season")


def write_tables(folder: RunFolder, locked: LockedSeason, entries: Sequence[DayEntry], digest: str) -> None:
    """Write the journal as tables; equal journals give equal bytes, except in `TIMES`."""
    store, season = Store(folder), locked.season
    basis: dict[str, str | None] = {"plan": locked.plan_hash, "journal": digest}
    written = CONTEXTS, DECISIONS, OUTCOMES, rows.FILLS, rows.REJECTIONS, rows.TIMES, rows.BASELINES, rows.CHECKS
    if all(store.done(table, basis) for table in (*written, rows.NAVS)):
        return
    agents = [agent for entry in entries for agent in entry.record["agents"].values()]
    baselines = [baseline for entry in entries for baseline in entry.record["baselines"].values()]
    checks: dict[tuple[str, str], rows.SeasonCheck] = {}  # by agent and kind
    for name, stored in (pair for entry in entries for pair in entry.record["agents"].items()):
        result = stored["checks"] or {"counts": {}}
        for kind, (total, passed) in result["counts"].items():
            wrong = tuple(f"{result['record_id']}\t{text}" for of, text in result["mismatches"] if of == kind)
            sums = checks.get((name, kind), rows.SeasonCheck(name, kind, 0, 0))
            total, passed = sums.checks + total, sums.passed + passed
            checks[name, kind] = rows.SeasonCheck(name, kind, total, passed, (*sums.mismatches, *wrong))
    shown = {
        agent["context_id"]: (entry, agent)
        for entry in entries
        for agent in entry.record["agents"].values()
        if agent["context_id"] is not None
    }
    limits = limits_of(season)

    def context_text(entry: DayEntry, agent: Mapping[str, Any]) -> str:
        """Return the JSON of an agent's context, whose facts and bars are not parsed again."""
        holdings = {name: agent["nav"][name] for name in ("cash", "nav", "positions")}
        context = Context(
            completeness="complete", cutoff=entry.moment, cutoff_source="the season's clock", prompt=agent["prompt"],
            portfolio=Portfolio(season.currency, **holdings), constraints=limits,
            missing=tuple(entry.record["missing"]),
        )  # fmt: skip
        return context_json(context, entry.facts, entry.series, entry.instruments)

    contexts: Iterator[Any] = (
        SimpleNamespace(
            completeness="complete", cutoff=entry.moment, missing=entry.record["missing"],
            facts=range(entry.facts.count('"available_at":')),
        )
        for entry, _ in shown.values()
    )  # fmt: skip
    store.write_arrow(CONTEXTS, CONTEXTS.to_arrow(contexts, (context_text(*each) for each in shown.values())), basis)
    decisions = (decision for entry in entries for decision in entry.record["decisions"])
    store.write(DECISIONS, (_parse_record(Decision, decision) for decision in decisions), basis)
    store.write(rows.FILLS, (rows.SeasonFill(**fill) for agent in agents for fill in agent["fills"]), basis)
    refused = (rows.SeasonRejection(**rejection) for agent in agents for rejection in agent["rejections"])
    store.write(rows.REJECTIONS, refused, basis)
    store.write(rows.TIMES, times_of(entries), basis)
    store.write(OUTCOMES, books.outcomes_of(season, entries), basis)
    store.write(rows.BASELINES, [_parse_record(rows.SeasonNav, baseline["nav"]) for baseline in baselines], basis)
    store.write(rows.CHECKS, checks.values(), basis)
    store.write(rows.NAVS, [_parse_record(rows.SeasonNav, agent["nav"]) for agent in agents], basis)


def times_of(entries: Sequence[DayEntry]) -> Iterator[rows.SeasonTime]:
    """Yield the measured seconds of each decision."""
    for entry in entries:
        times = entry.times or {}
        for decision in entry.record["decisions"]:
            name = decision["record_id"]
            yield rows.SeasonTime(name, entry.day, decision["agent"]["id"], decision["replicate"], times.get(name))
