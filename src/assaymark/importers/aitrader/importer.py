"""AI-Trader: logs of agents that traded by the hour or day, from decisions and price files to records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from assaymark.errors import InputError
from assaymark.importers.aitrader.log import Log, Step, marks_of, names_in, rationales_of, read_log
from assaymark.importers.aitrader.prices import Prices
from assaymark.importers.aitrader.season import FLAGS, Audit, audit_of
from assaymark.importers.report import NO_TEXT, Imported, Tally, has_text
from assaymark.portfolio import Mismatch
from assaymark.portfolio.broker import RELIABILITY
from assaymark.records import JSON, Agent, CallFacts, Context, Decision, Outcome, Portfolio, Provenance, content_id

PROVENANCE: Final = Provenance(source="HKUDS/AI-Trader", licence="MIT")
"""Where the logs come from unless the caller knows more (a commit, another mirror)."""

FAMILIES: Final[Mapping[str, str]] = {
    "claude": "anthropic",
    "deepseek": "deepseek",
    "gemini": "google",
    "glm": "zhipu",
    "gpt": "openai",
    "minimax": "minimax",
    "qwen": "alibaba",
}
"""The maker of a model, by the first word of its name."""

REPLAYED: Final = "replayed"
"""The flag of a decision whose messages were written more than a day after its step."""

NOT_KEPT: Final = ("the prompt", "what tools returned")
"""What the agents saw and the logs do not hold."""

POSITIONS: Final = "positions after"
"""What stands in ``Decision.missing`` where the log states no book after the step."""

NEXT, WHOLE = "to the agent's next step", "whole log"
"""The horizons of the outcomes."""


def import_aitrader(
    files: Mapping[str, bytes],
    *,
    keep_going: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
    provenance: Provenance = PROVENANCE,
) -> Imported:
    """AI-Trader's steps as decisions, what of the prices was known at each, and how the books went on.

    The log holds the last message of a step, its actions and the book after it. The prompt and what tools returned
    are not there, so every context is ``partial``. It holds the book before the step, the open of every symbol (the
    price at which the venue fills), the close one bar before, and the last bars of what is held or traded. Nothing of
    the step's own bar but its open is in it. Each book is held against the actions and the prices (`Audit`); a
    decision at whose step something does not fit carries a flag, and its ``stages`` list what.

    Parameters
    ----------
    files : mapping of name to bytes
        ``decisions.jsonl`` and the price file of every track that occurs in it, plain or gzip.
    keep_going : bool
        Import what is good although something is not; the report counts both.
    progress : callable, optional
        Told (what, done, total) as steps are read.
    provenance : Provenance
        Source, commit and licence to stamp on every decision.

    Raises
    ------
    InputError
        A file is missing or damaged; or, unless ``keep_going``, anything in them is wrong: all of it at once.
    """
    tally = Tally()
    log = read_log(files, tally, progress)
    if tally.problems and not keep_going:
        raise InputError("aitrader", tally.problems)
    contexts: dict[str, Context] = {}
    decisions: list[Decision] = []
    outcomes: list[Outcome] = []
    audits: list[Audit] = []
    numbers = _step_numbers(log)
    names = names_in(step.line.rationale for step in log.steps)
    for prices in log.prices.values():
        prices.name(names)
    for (track, _), steps in log.runs().items():
        prices = log.prices[track]
        audit = audit_of(steps, prices)
        audits.append(audit)
        for step, before in zip(steps, _books_before(steps), strict=True):
            context = _context(step, before, prices)
            context_id = content_id(context)
            contexts[context_id] = context
            decisions.append(_decision(step, numbers[track, step.at], context_id, audit, provenance))
        outcomes += _outcomes(steps, prices, audit)
    _account(tally, decisions, contexts, outcomes, audits)
    report = tally.report("aitrader", decisions, bad=log.bad, notes=_notes(decisions, audits))
    return Imported(decisions=tuple(decisions), contexts=contexts, outcomes=tuple(outcomes), report=report)


def family_of(model: str) -> str:
    """Who made a model, read from its name; a name that begins with no known word is its own family.

    >>> family_of("claude-3.7-sonnet"), family_of("qwen3-max"), family_of("in-house-7")
    ('anthropic', 'alibaba', 'in-house-7')
    """
    return FAMILIES.get(model.split("-")[0].lower().rstrip("0123456789"), model)


def _step_numbers(log: Log) -> dict[tuple[str, datetime], int]:
    """The steps of each track, numbered from 1: agents at one step answered the same question."""
    stamps: dict[str, set[datetime]] = {}
    for step in log.steps:
        stamps.setdefault(step.line.track, set()).add(step.at)
    return {(track, at): number for track, found in stamps.items() for number, at in enumerate(sorted(found), start=1)}


def _books_before(steps: Sequence[Step]) -> Iterator[tuple[float, dict[str, float]]]:
    """Cash and units before each step: the last that were stated."""
    cash, held = steps[0].track.capital, dict[str, float]()
    for step in steps:
        yield cash, held
        if step.cash is not None:
            cash, held = step.cash, step.held or {}


def _context(step: Step, before: tuple[float, dict[str, float]], prices: Prices) -> Context:
    """What is known of what the agent saw."""
    cash, held = before
    opens = prices.opens(step.at)
    missing = list(NOT_KEPT)
    unpriced = sorted(set(held) - set(opens))
    missing += [f"the price of {symbol}" for symbol in unpriced]
    traded = [one.instrument for one in step.actions if one.instrument]
    decided = step.track.decided_at(step.at)
    portfolio = Portfolio(
        currency=step.track.currency,
        cash=cash,
        nav=cash + sum(units * opens[symbol] for symbol, units in held.items() if symbol in opens),
        positions=held,
    )
    return Context(
        completeness="partial",
        cutoff=decided,
        cutoff_source=f"the step's stamp, taken as {step.track.zone} time",
        prompt="",
        facts=prices.facts(step.at),
        series=prices.series(step.at, [*held, *traded]),
        instruments=prices.instruments,
        portfolio=portfolio,
        missing=tuple(missing),
    )


def _decision(step: Step, number: int, context_id: str, audit: Audit, provenance: Provenance) -> Decision:
    found = audit.mismatches(step.record_id)
    rationales = rationales_of(step.line.rationale)
    flags = [*marks_of(step.line.rationale), *dict.fromkeys(FLAGS[one.kind] for one in found)]
    clock = step.wall_clock
    decided = step.track.decided_at(step.at)
    # the clock's zone is not known: a day is more than any zone can make up for
    if clock is not None and clock[0].replace(tzinfo=UTC) - decided > timedelta(days=1):
        flags.append(REPLAYED)
    missing = [] if has_text(rationales) else [NO_TEXT]
    missing += [POSITIONS] if step.held is None else []
    stages: dict[str, JSON] = {
        "reconciliation": [_said(one) for one in found],
    }
    if step.held is not None and step.cash is not None:
        stages |= {"holdings": dict(step.held), "cash_after": step.cash}
    year, week, _ = step.at.isocalendar()
    return Decision(
        record_id=step.record_id,
        episode_id=step.track.name,
        step=number,
        cluster=f"{year}-W{week:02d}",
        decided_at=decided,
        agent=Agent(id=step.agent, family=family_of(step.agent), model=step.agent),
        context_id=context_id,
        actions=step.actions,
        rationales=rationales,
        format=step.track.name,
        provenance=Provenance(
            source=provenance.source,
            path=f"{step.line.track}/{step.line.model}",
            commit=provenance.commit,
            licence=provenance.licence,
        ),
        stages=stages,
        call=_call(step),
        flags=tuple(flags),
        missing=tuple(missing),
    )


def _said(one: Mismatch) -> str:
    """A mismatch for the record. How it lies to the step's bar came after the decision, and is left to the audit."""
    what = f"{one.kind} {one.symbol}".strip()
    return f"{what}: stated {one.stated:.10g}, recomputed {one.recomputed:.10g}"


def _call(step: Step) -> CallFacts:
    """The seconds between the first and the last kept message; they hold every call and tool of the step."""
    clock = step.wall_clock
    if clock is None or clock[0] == clock[1]:
        return CallFacts()
    return CallFacts(seconds=(clock[1] - clock[0]).total_seconds(), timing_source="derived")


def _outcomes(steps: Sequence[Step], prices: Prices, audit: Audit) -> list[Outcome]:
    """What each stated book was worth at the agent's next step, and the whole log's return at its last."""
    found: list[Outcome] = []
    for step, later in pairwise(steps):
        value = _worth(step, prices, later)
        now = _worth(step, prices, step)
        if value is not None and now is not None and now > 0:
            found.append(_outcome(step, later, prices, NEXT, value / now - 1.0, step))
    if audit.last_nav is not None and audit.reconciliation.navs[-1] is not None:
        found.append(_outcome(steps[-1], steps[-1], prices, WHOLE, audit.last_nav / audit.capital - 1.0, steps[0]))
    return found


def _worth(step: Step, prices: Prices, at: Step) -> float | None:
    """The book after a step at the opens of another; None where a price or the book is not there."""
    opens = prices.opens(at.at)
    if step.held is None or step.cash is None or not set(step.held) <= set(opens):
        return None
    return step.cash + sum(units * opens[symbol] for symbol, units in step.held.items())


def _outcome(step: Step, later: Step, prices: Prices, horizon: str, value: float, start: Step) -> Outcome:
    return Outcome(
        record_id=step.record_id,
        horizon=horizon,
        value=value,
        benchmark=prices.benchmark(start.at, later.at),
        resolved_at=step.track.decided_at(later.at),
        source=f"recomputed from positions and the opens of {step.track.prices}",
    )


def _account(
    tally: Tally,
    decisions: Sequence[Decision],
    contexts: Mapping[str, Context],
    outcomes: Sequence[Outcome],
    audits: Sequence[Audit],
) -> None:
    """The counts of the report."""
    resolved = {one.record_id for one in outcomes if one.horizon == NEXT}
    for decision in decisions:
        for what in decision.missing:
            if what != NO_TEXT:  # the report has a line of its own for these
                tally.missing(what, decision.record_id)
        if decision.record_id not in resolved:
            tally.missing("outcome at a next step", decision.record_id)
    tally.counts.update(
        {
            "decisions": len(decisions),
            "contexts": len(contexts),
            "agents": len({decision.agent.id for decision in decisions}),
            "clusters": len({decision.cluster for decision in decisions}),
            "outcomes": len(outcomes),
            "facts": sum(len(context.facts) for context in contexts.values()),
        }
    )
    kinds = Counter(one.kind for audit in audits for one in audit.reconciliation.mismatches)
    tally.counts.update({f"mismatches of kind {kind}": n for kind, n in sorted(kinds.items())})


def _notes(decisions: Sequence[Decision], audits: Sequence[Audit]) -> tuple[str, ...]:
    """What a reader has to know before using these records."""
    replayed = sum(REPLAYED in decision.flags for decision in decisions)
    notes = ["high, low and close of a step's own bar are left out of its context: they came after the decision"]
    if replayed:
        notes.append(
            f"{replayed} decisions were written more than a day after their step: kept, flagged {REPLAYED}; "
            "the models may have known what came next"
        )
    for audit in audits:
        found = audit.reconciliation
        last = "not known" if audit.last_nav is None else f"{audit.last_nav:,.2f}"
        sound = f"data reliability {found.data_reliability:.1f}" if found.n else "nothing to check"
        parts = ", ".join(f"{kind} {found.passed[kind]} of {found.checks[kind]}" for kind in RELIABILITY)
        steps = f"in {len(audit.records)} steps"
        notes.append(f"{audit.track} {audit.agent}: NAV {audit.capital:,.2f} to {last} {steps}, {sound} ({parts})")
    return tuple(notes)
