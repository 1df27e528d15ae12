"""AI-Trader: logs of agents that traded by the hour or day, from decisions and price files to records and audits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from typing import Final

from assaymark.errors import InputError, UnknownNameError
from assaymark.importers.aitrader_log import Prices, Step, names_in, read_log, texts_of
from assaymark.importers.makers import maker_of
from assaymark.importers.read import Progress
from assaymark.importers.report import (
    CASH,
    EQUAL_WEIGHT,
    NO_TEXT,
    Imported,
    RecordedBook,
    RecordedCheck,
    RecordedFill,
    RecordedTrack,
    Tally,
    has_text,
)
from assaymark.portfolio import Book, Mismatch, Reconciliation, StatedStep, Tolerance, reconcile
from assaymark.portfolio.broker import RELIABILITY, CheckKind
from assaymark.records import (
    JSON,
    Agent,
    CallFacts,
    Context,
    Decision,
    Instrument,
    Outcome,
    Portfolio,
    Provenance,
    content_id,
)

PROVENANCE: Final = Provenance(source="HKUDS/AI-Trader", licence="MIT")
"""Where the logs come from unless the caller knows more (a commit, another mirror)."""

REPLAYED: Final = "replayed"
"""The flag of a decision whose messages were written more than a day after its step."""

NEXT, WHOLE = "to the agent's next step", "whole log"
"""The horizons of the outcomes."""

_CHECKS: Final[Mapping[str, CheckKind]] = {
    "fill-quantity": "fill",
    "fill-price": "fill",
    "position": "position",
    "negative-position": "position",
    "cash": "cash",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One agent's book on one track, held against its own actions and the track's prices.

    ``records`` are the ids of its decisions, oldest first, as are ``reconciliation.navs``; a mismatch's ``step`` is
    such an id. NAV is that of the stated book after a step, at the opens of the step's bars: the prices at which the
    venue fills.
    """

    track: str
    agent: str
    capital: float
    records: tuple[str, ...]
    reconciliation: Reconciliation

    @property
    def last_nav(self) -> float | None:
        """The last NAV that is known."""
        return next((nav for nav in reversed(self.reconciliation.navs) if nav is not None), None)

    def mismatches(self, record: str) -> tuple[Mismatch, ...]:
        """What does not fit at one decision."""
        return tuple(one for one in self.reconciliation.mismatches if one.step == record)


def audit_aitrader(files: Mapping[str, bytes]) -> tuple[Audit, ...]:
    """The books in AI-Trader logs (files as for `import_aitrader`), each mismatch as stated and recomputed."""
    tally = Tally()
    log = read_log(files, tally)
    if tally.problems:
        raise InputError("aitrader", tally.problems)
    return tuple(_audit_of(steps, log.prices[track]) for (track, _), steps in log.runs().items())


def _audit_of(steps: Sequence[Step], prices: Prices) -> Audit:
    """The audit of one agent's steps on one track, oldest first."""
    track = steps[0].track
    stated = [
        StatedStep(name=step.record_id, fills=step.fills, book=step.book, bars=prices.bars(step.at)) for step in steps
    ]
    # cash is printed to the cent in one track and more finely in the others
    tolerance = Tolerance(cash=0.01, units=track.units)
    return Audit(
        track=track.name,
        agent=steps[0].agent,
        capital=track.capital,
        records=tuple(step.record_id for step in steps),
        reconciliation=reconcile(Book(track.capital), stated, tolerance=tolerance),
    )


def import_aitrader(
    files: Mapping[str, bytes],
    *,
    keep_going: bool = False,
    progress: Progress | None = None,
    provenance: Provenance = PROVENANCE,
) -> Imported:
    """AI-Trader's steps as decisions, what of the prices was known at each, and how the books went on.

    ``files`` are ``decisions.jsonl`` and the price file of every track in it, plain or gzip. The log holds the last
    message of a step, its actions and the book after it. The prompt and what tools returned are not there, so every
    context is ``partial``: the book before the step, the open of every symbol (the price at which the venue fills), the
    close one bar before, and the last bars of what is held or traded; nothing of the step's own bar but its open. Each
    book is held against the actions and the prices (`Audit`); a decision at whose step something does not fit carries a
    flag, and its ``stages`` list what. `InputError`: a file is missing or damaged; or, unless ``keep_going``, all that
    is wrong in them.
    """
    tally = Tally()
    log = read_log(files, tally, progress)
    if tally.problems and not keep_going:
        raise InputError("aitrader", tally.problems)
    contexts: dict[str, Context] = {}
    decisions: list[Decision] = []
    outcomes: list[Outcome] = []
    audits: list[Audit] = []
    stamps: dict[str, set[datetime]] = {}
    for step in log.steps:
        stamps.setdefault(step.line.track, set()).add(step.at)
    # agents at one step of a track answered the same question: its steps are numbered from 1
    numbers = {(track, at): n for track, found in stamps.items() for n, at in enumerate(sorted(found), start=1)}
    names = names_in(step.line.rationale for step in log.steps)
    for (track, _), steps in log.runs().items():
        prices = log.prices[track]
        instruments = tuple(
            Instrument(id=symbol, symbol=symbol, name=names.get(symbol, ""), asset_class=prices.track.asset_class)
            for symbol in prices.symbols
        )
        audit = _audit_of(steps, prices)
        audits.append(audit)
        before = Book(steps[0].track.capital)
        for step in steps:
            context = _context(step, before, prices, instruments)
            name = content_id(context)
            contexts[name] = context
            decisions.append(_decision(step, numbers[track, step.at], name, audit, provenance))
            before = step.book or before
        outcomes += _outcomes(steps, prices, audit)
    tally.unresolved(decisions, {one.record_id for one in outcomes if one.horizon == NEXT}, "outcome at a next step")
    kinds = Counter(one.kind for audit in audits for one in audit.reconciliation.mismatches)
    tally.counts.update({f"mismatches of kind {kind}": n for kind, n in sorted(kinds.items())})
    notes = ["high, low and close of a step's own bar are left out of its context: they came after the decision"]
    if replayed := sum(REPLAYED in decision.flags for decision in decisions):
        notes.append(
            f"{replayed} decisions were written more than a day after their step: kept, flagged {REPLAYED}; "
            "the models may have known what came next"
        )
    for audit in audits:
        checked = audit.reconciliation
        last = "not known" if audit.last_nav is None else f"{audit.last_nav:,.2f}"
        sound = f"data reliability {checked.data_reliability:.1f}" if checked.n else "nothing to check"
        parts = ", ".join(f"{kind} {checked.passed[kind]} of {checked.checks[kind]}" for kind in RELIABILITY)
        steps_made = f"in {len(audit.records)} steps"
        notes.append(f"{audit.track} {audit.agent}: NAV {audit.capital:,.2f} to {last} {steps_made}, {sound} ({parts})")
    return tally.imported("aitrader", decisions, contexts, outcomes, bad=log.bad, notes=notes)


def _context(step: Step, before: Book, prices: Prices, instruments: tuple[Instrument, ...]) -> Context:
    """What is known of what the agent saw."""
    held, opens = before.positions, prices.opens(step.at)
    traded = [one.instrument for one in step.actions if one.instrument]
    return Context(
        completeness="partial", cutoff=step.track.decided_at(step.at),
        cutoff_source=f"the step's stamp, taken as {step.track.zone} time", prompt="", facts=prices.facts(step.at),
        series=prices.series(step.at, [*held, *traded]), instruments=instruments,
        portfolio=Portfolio(
            currency=step.track.currency,
            cash=before.cash,
            nav=before.cash + sum(units * opens[symbol] for symbol, units in held.items() if symbol in opens),
            positions=held,
        ),
        missing=(
            "the prompt",
            "what tools returned",
            *(f"the price of {symbol}" for symbol in sorted(set(held) - set(opens))),
        ),
    )  # fmt: skip


def _decision(step: Step, number: int, context_id: str, audit: Audit, provenance: Provenance) -> Decision:
    found = audit.mismatches(step.record_id)
    rationales, marks = texts_of(step.line.rationale)
    flags = [*marks, *dict.fromkeys(f"{_CHECKS[one.kind]}-mismatch" for one in found)]
    decided, book = step.track.decided_at(step.at), step.book
    written = [datetime.fromisoformat(one) for one in step.line.timestamps]
    # the clock's zone is not known: a day is more than any zone can make up for
    if written and written[0].replace(tzinfo=UTC) - decided > timedelta(days=1):
        flags.append(REPLAYED)
    # how a mismatch lies to the step's bar came after the decision, and is left to the audit
    stages: dict[str, JSON] = {
        "reconciliation": [
            f"{f'{one.kind} {one.symbol}'.strip()}: stated {one.stated:.10g}, recomputed {one.recomputed:.10g}"
            for one in found
        ]
    }
    if book is not None:
        stages |= {"holdings": dict(book.positions), "cash_after": book.cash}
    missing = () if has_text(rationales) else (NO_TEXT,)
    timed = bool(written) and written[0] != written[-1]  # every call and tool of the step lies between them
    year, week, _ = step.at.isocalendar()
    return Decision(
        record_id=step.record_id, episode_id=step.track.name, step=number, cluster=f"{year}-W{week:02d}",
        decided_at=decided, agent=Agent(id=step.agent, family=maker_of(step.agent) or step.agent, model=step.agent),
        context_id=context_id,
        actions=step.actions, rationales=rationales, format=step.track.name,
        provenance=replace(provenance, path=f"{step.line.track}/{step.line.model}"),
        stages=stages, call=CallFacts(seconds=(written[-1] - written[0]).total_seconds(), timing_source="derived")
        if timed else CallFacts(), flags=tuple(flags),
        missing=missing if book is not None else (*missing, "positions after"),
    )  # fmt: skip


def _outcomes(steps: Sequence[Step], prices: Prices, audit: Audit) -> Iterator[Outcome]:
    """What each stated book was worth at the agent's next step, and the whole log's return at its last."""
    found: list[tuple[Step, Step, Step, str, float]] = []
    for step, later in pairwise(steps):
        if (book := step.book) is None:
            continue
        opens = [prices.opens(at) for at in (step.at, later.at)]
        if all(set(book.positions) <= set(one) for one in opens):
            now, then = (book.cash + sum(n * one[symbol] for symbol, n in book.positions.items()) for one in opens)
            if now > 0:
                found.append((step, step, later, NEXT, then / now - 1.0))
    if audit.last_nav is not None and audit.reconciliation.navs[-1] is not None:
        found.append((steps[-1], steps[0], steps[-1], WHOLE, audit.last_nav / audit.capital - 1.0))
    for step, start, end, horizon, value in found:
        yield Outcome(
            record_id=step.record_id,
            horizon=horizon,
            value=value,
            benchmark=prices.benchmark(start.at, end.at),
            resolved_at=step.track.decided_at(end.at),
            source=f"recomputed from positions and the opens of {step.track.prices}",
        )


def season_aitrader(files: Mapping[str, bytes], track: str) -> RecordedTrack:
    """One track (``us``, ...) as its log states it, day by day, beside an equal weight and cash.

    A day is one of the exchange. An agent's book of a day is the one it states after its last step of that day, and all
    books of a day are valued at the opens of the track's last step of that day: the prices at which the venue fills. So
    at the last step NAV is the audit's (`Audit.last_nav`). A fill without a stated price has the open of its step.
    Equal weight buys every symbol that has an open at the track's first step, there, and holds. Lines that an import
    refuses are passed over.
    """
    log = read_log(files, Tally())
    steps = [one for one in log.steps if one.track.name == track]
    if not steps:
        raise UnknownNameError("track", track, tuple(sorted({one.track.name for one in log.steps})))
    prices, capital = log.prices[steps[0].line.track], steps[0].track.capital
    closing: dict[str, datetime] = {}  # the last step of each day, whoever made it
    for one in sorted(steps, key=lambda one: one.at):
        closing[_day(one)] = one.at

    def valued(name: str, day: str, book: Book, stated: bool = True) -> Iterator[RecordedBook]:
        """At the day's opens, what has none there at its last one; nothing where a symbol never had any."""
        found = {symbol: prices.last_open(symbol, closing[day]) for symbol in sorted(book.positions)}
        known = {symbol: price for symbol, price in found.items() if price is not None}
        if len(known) == len(found):
            yield RecordedBook(
                day=day, agent=name, state="ok" if stated else "not stated", cash=book.cash, nav=book.nav(known),
                positions={symbol: book.positions[symbol] for symbol in found},
                stale=tuple(symbol for symbol in found if symbol not in prices.opens(closing[day])),
            )  # fmt: skip

    opens = prices.opens(min(one.at for one in steps))
    equal = Book(0.0, {symbol: capital / len(opens) / price for symbol, price in opens.items()})
    baselines = [
        book
        for day in closing
        for name, held in ((EQUAL_WEIGHT, equal), (CASH, Book(capital)))
        for book in valued(name, day, held)
    ]
    fills: list[RecordedFill] = []
    books: list[RecordedBook] = []
    checks: list[RecordedCheck] = []
    for run in (found for found in log.runs().values() if found[0].track.name == track):
        agent, held = run[0].agent, Book(capital)
        for step in run:
            fills += [
                RecordedFill(
                    day=_day(step),
                    agent=agent,
                    record_id=step.record_id,
                    number=number,
                    symbol=fill.symbol,
                    quantity=fill.quantity,
                    price=prices.opens(step.at).get(fill.symbol) if fill.price is None else fill.price,
                )
                for number, fill in enumerate(step.fills, start=1)
            ]
        made = {day: list(of) for day, of in groupby(run, key=_day)}
        for day in (one for one in closing if one >= _day(run[0])):
            for step in made.get(day, ()):
                held = step.book or held
            books += valued(agent, day, held, stated=day not in made or made[day][-1].book is not None)
        found = _audit_of(run, prices).reconciliation
        checks += [
            RecordedCheck(
                agent=agent,
                kind=kind,
                checks=found.checks[kind],
                passed=found.passed[kind],
                mismatches=tuple(
                    (one.step, str(one).removeprefix(f"{one.step}: "))
                    for one in found.mismatches
                    if _CHECKS[one.kind] == kind
                ),
            )
            for kind in RELIABILITY
            if found.checks[kind]
        ]
    return RecordedTrack(
        name=track, capital=capital, currency=steps[0].track.currency, universe=prices.symbols,
        days={one.record_id: _day(one) for one in steps}, fills=tuple(fills), books=tuple(books),
        baselines=tuple(baselines), checks=tuple(checks),
    )  # fmt: skip


def _day(step: Step) -> str:
    return step.at.strftime("%Y-%m-%d")
