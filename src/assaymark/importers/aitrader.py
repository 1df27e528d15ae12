"""AI-Trader: logs of agents that traded by the hour or day, from decisions and price files to records and audits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from typing import Final

from assaymark.errors import UnknownNameError
from assaymark.importers.aitrader_log import Log, Prices, Step, names_in, texts_of
from assaymark.importers.read import Progress
from assaymark.importers.report import (
    CASH,
    EQUAL_WEIGHT,
    NEXT,
    REPLAYED,
    WHOLE,
    Imported,
    RecordedBook,
    RecordedCheck,
    RecordedFill,
    RecordedTrack,
    Tally,
    maker_of,
    replayed,
    text_missing,
    week_of,
)  # fmt: skip
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
)  # fmt: skip

PROVENANCE: Final = Provenance(source="HKUDS/AI-Trader", licence="MIT")
"""Where the logs come from unless the caller knows more (a commit, another mirror)."""

_CHECKS: Final[Mapping[str, CheckKind]] = {
    "fill-quantity": "fill", "fill-price": "fill", "position": "position", "negative-position": "position",
    "cash": "cash",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
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
        return tuple(mismatch for mismatch in self.reconciliation.mismatches if mismatch.step == record)


def audit_aitrader(files: Mapping[str, bytes]) -> tuple[Audit, ...]:
    """The books in AI-Trader logs (files as for `import_aitrader`), each mismatch as stated and recomputed."""
    tally = Tally()
    log = Log(files, tally)
    tally.refuse("aitrader")
    return tuple(_audit_of(steps, log.prices[track]) for (track, _), steps in log.runs().items())


def _audit_of(steps: Sequence[Step], prices: Prices) -> Audit:
    """The audit of one agent's steps on one track, oldest first."""
    track = steps[0].track
    stated = [StatedStep(step.record_id, step.fills, step.book, prices.bars[step.at]) for step in steps]
    # cash is printed to the cent in one track and more finely in the others
    found = reconcile(Book(track.capital), stated, tolerance=Tolerance(0.01, track.units))
    return Audit(track.name, steps[0].agent, track.capital, tuple(step.record_id for step in steps), found)


def import_aitrader(
    files: Mapping[str, bytes], *, keep_going: bool = False, progress: Progress | None = None,
    provenance: Provenance = PROVENANCE,
) -> Imported:  # fmt: skip
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
    log = Log(files, tally, progress)
    tally.refuse("aitrader", keep_going)
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
            held, opens = before.positions, prices.opens(step.at)
            context = Context(
                completeness="partial",
                cutoff=step.track.utc(step.at),
                cutoff_source=f"the step's stamp, taken as {step.track.zone} time",
                prompt="",
                facts=prices.facts(step.at),
                instruments=instruments,
                series=prices.series(
                    step.at, [*held, *(action.instrument for action in step.actions if action.instrument)]
                ),
                portfolio=Portfolio(
                    currency=step.track.currency,
                    cash=before.cash,
                    positions=held,
                    nav=before.cash + sum(units * opens[symbol] for symbol, units in held.items() if symbol in opens),
                ),
                missing=(
                    "the prompt",
                    "what tools returned",
                    *(f"the price of {symbol}" for symbol in sorted(set(held) - set(opens))),
                ),
            )
            name = content_id(context)
            contexts[name] = context
            where = replace(provenance, path=f"{step.line.track}/{step.line.model}")
            decisions.append(_decision(step, numbers[track, step.at], name, audit.mismatches(step.record_id), where))
            before = step.book or before
        # what each stated book was worth at the agent's next step, and the whole log's return at its last
        worth: list[tuple[Step, Step, Step, str, float]] = []
        for step, later in pairwise(steps):
            pair = [prices.opens(at) for at in (step.at, later.at)]
            if (book := step.book) is not None and all(set(book.positions) <= set(one) for one in pair):
                now, then = (book.cash + sum(n * one[symbol] for symbol, n in book.positions.items()) for one in pair)
                worth += [(step, step, later, NEXT, then / now - 1.0)] if now > 0 else []
        if audit.last_nav is not None and audit.reconciliation.navs[-1] is not None:
            worth.append((steps[-1], steps[0], steps[-1], WHOLE, audit.last_nav / audit.capital - 1.0))
        outcomes += [
            Outcome(record_id=step.record_id, horizon=horizon, value=value, resolved_at=step.track.utc(end.at),
                    benchmark=prices.benchmark(start.at, end.at),
                    source=f"recomputed from positions and the opens of {step.track.prices}")
            for step, start, end, horizon, value in worth
        ]  # fmt: skip
    tally.unresolved(
        decisions, {outcome.record_id for outcome in outcomes if outcome.horizon == NEXT}, "outcome at a next step"
    )
    kinds = Counter(one.kind for audit in audits for one in audit.reconciliation.mismatches)
    tally.counts.update({f"mismatches of kind {kind}": n for kind, n in sorted(kinds.items())})
    notes = ["high, low and close of a step's own bar are left out of its context: they came after the decision"]
    notes += replayed(decisions, "step")
    for audit in audits:
        checked = audit.reconciliation
        last = "not known" if audit.last_nav is None else f"{audit.last_nav:,.2f}"
        sound = f"data reliability {checked.data_reliability:.1f}" if checked.n else "nothing to check"
        parts = ", ".join(f"{kind} {checked.passed[kind]} of {checked.checks[kind]}" for kind in RELIABILITY)
        steps_made = f"in {len(audit.records)} steps"
        notes.append(f"{audit.track} {audit.agent}: NAV {audit.capital:,.2f} to {last} {steps_made}, {sound} ({parts})")
    return tally.imported("aitrader", decisions, contexts, outcomes, log.bad, notes)


def _decision(step: Step, number: int, context_id: str, found: Sequence[Mismatch], provenance: Provenance) -> Decision:
    rationales, marks = texts_of(step.line.rationale)
    flags = [*marks, *dict.fromkeys(f"{_CHECKS[one.kind]}-mismatch" for one in found)]
    decided, book, call = step.track.utc(step.at), step.book, CallFacts()
    written = [datetime.fromisoformat(timestamp) for timestamp in step.line.timestamps]
    # the clock's zone is not known: a day is more than any zone can make up for
    if written and written[0].replace(tzinfo=UTC) - decided > timedelta(days=1):
        flags.append(REPLAYED)
    if written and written[0] != written[-1]:  # every call and tool of the step lies between them
        call = CallFacts(seconds=(written[-1] - written[0]).total_seconds(), timing_source="derived")
    # how a mismatch lies to the step's bar came after the decision, and is left to the audit
    stages: dict[str, JSON] = {
        "reconciliation": [
            f"{f'{one.kind} {one.symbol}'.strip()}: stated {one.stated:.10g}, recomputed {one.recomputed:.10g}"
            for one in found
        ]
    }
    if book is not None:
        stages |= {"holdings": dict(book.positions), "cash_after": book.cash}
    return Decision(
        record_id=step.record_id, episode_id=step.track.name, step=number, cluster=week_of(step.at),
        decided_at=decided, agent=Agent(id=step.agent, family=maker_of(step.agent) or step.agent, model=step.agent),
        context_id=context_id, actions=step.actions, rationales=rationales, format=step.track.name,
        provenance=provenance, stages=stages, call=call, flags=tuple(flags),
        missing=(*text_missing(rationales), *(("positions after",) if book is None else ())),
    )  # fmt: skip


def season_aitrader(files: Mapping[str, bytes], track: str) -> RecordedTrack:
    """One track (``us``, ...) as its log states it, day by day, beside an equal weight and cash.

    A day is one of the exchange. An agent's book of a day is the one it states after its last step of that day, and all
    books of a day are valued at the opens of the track's last step of that day: the prices at which the venue fills. So
    at the last step NAV is the audit's (`Audit.last_nav`). A fill without a stated price has the open of its step.
    Equal weight buys every symbol that has an open at the track's first step, there, and holds. Lines that an import
    refuses are passed over.
    """
    log = Log(files, Tally())
    steps = [one for one in log.steps if one.track.name == track]
    if not steps:
        raise UnknownNameError("track", track, tuple(sorted({one.track.name for one in log.steps})))
    prices, capital = log.prices[steps[0].line.track], steps[0].track.capital
    # the last step of each day, whoever made it
    closing = {one.day: one.at for one in sorted(steps, key=lambda one: one.at)}

    def valued(name: str, day: str, book: Book, stated: bool = True) -> Iterator[RecordedBook]:
        """At the day's opens, what has none there at its last one; nothing where a symbol never had any."""
        found = {symbol: prices.last_open(symbol, closing[day]) for symbol in sorted(book.positions)}
        known = {symbol: price for symbol, price in found.items() if price is not None}
        if len(known) == len(found):
            yield RecordedBook(
                day, name, "ok" if stated else "not stated", book.cash, book.nav(known),
                {symbol: book.positions[symbol] for symbol in found},
                tuple(symbol for symbol in found if symbol not in prices.opens(closing[day])),
            )  # fmt: skip

    opens = prices.opens(min(one.at for one in steps))
    equal = Book(0.0, {symbol: capital / len(opens) / price for symbol, price in opens.items()})
    lines = ((EQUAL_WEIGHT, equal), (CASH, Book(capital)))
    fills: list[RecordedFill] = []
    books: list[RecordedBook] = []
    checks: list[RecordedCheck] = []
    for run in (found for found in log.runs().values() if found[0].track.name == track):
        agent, held = run[0].agent, Book(capital)
        for step in run:
            fills += [
                RecordedFill(step.day, agent, step.record_id, number, fill.symbol, fill.quantity,
                             prices.opens(step.at).get(fill.symbol) if fill.price is None else fill.price)
                for number, fill in enumerate(step.fills, start=1)
            ]  # fmt: skip
        made = {day: list(of) for day, of in groupby(run, key=lambda one: one.day)}
        for day in (one for one in closing if one >= run[0].day):
            for step in made.get(day, ()):
                held = step.book or held
            books += valued(agent, day, held, stated=day not in made or made[day][-1].book is not None)
        found = _audit_of(run, prices).reconciliation
        for kind in RELIABILITY:
            said = [(mismatch.step, str(mismatch).removeprefix(f"{mismatch.step}: ")) for mismatch in found.mismatches
                    if _CHECKS[mismatch.kind] == kind]  # fmt: skip
            if found.checks[kind]:
                checks.append(RecordedCheck(agent, kind, found.checks[kind], found.passed[kind], tuple(said)))
    return RecordedTrack(
        track, capital, steps[0].track.currency, prices.symbols, {one.record_id: one.day for one in steps},
        tuple(fills), tuple(books),
        tuple(book for day in closing for name, held in lines for book in valued(name, day, held)), tuple(checks),
    )  # fmt: skip
