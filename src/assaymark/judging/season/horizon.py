"""A horizon: one agent's whole record in order, without names and without anything that was not known yet.

It is what the judges of a season grade (season methodology v0.3: "the whole horizon of a model's decisions"). The
texts are blinded once for the whole record, so an agent that is named on two days is the same token on both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from assaymark.errors import InputError, Problem
from assaymark.judging.blinding import blinding_names, company_names, compiled
from assaymark.judging.prompts import hidden, kept_names
from assaymark.judging.rendering import decision_blocks
from assaymark.judging.season.horizon_blinding import HorizonBlinding
from assaymark.judging.season.horizon_types import (
    BOOK_STAGES,
    ORDER,
    Horizon,
    HorizonBook,
    HorizonFill,
    HorizonRejection,
    HorizonStep,
    StepRecord,
)
from assaymark.judging.season.market_lines import NO_MARKET, market_lines
from assaymark.prompting.material import refuse_future
from assaymark.prompting.texts import judged_rationales
from assaymark.records import Agent, Context, Decision

__all__ = [
    "RECENT_STEPS",
    "Horizon",
    "HorizonBook",
    "HorizonFill",
    "HorizonRejection",
    "HorizonStep",
    "StepRecord",
    "horizon_of",
]

RECENT_STEPS: Final = 5
"""A symbol counts as recently traded for this many steps after its last trade."""


def horizon_of(
    records: Sequence[StepRecord],
    contexts: Mapping[str, Context],
    *,
    agents: Iterable[Agent],
    keep: Iterable[str] = (),
    mandate: str = "",
    recent: int = RECENT_STEPS,
) -> Horizon:
    """The horizon of one agent, from its steps in order.

    Market and fundamental lines of a step are the facts of that step's own context, about symbols that are held or
    acted on in it or were traded up to ``recent`` steps before; see `market_lines`. Of the texts, those that judges see
    (`prompting.texts.JUDGED_KINDS`).

    Parameters
    ----------
    records : sequence of StepRecord
        Of one agent, one replicate, in the order of their decisions.
    contexts : mapping of context id to Context
        At least those that the decisions refer to.
    agents : iterable of Agent
        All of the season: each of them may be named by any other. Their order does not matter.
    keep : iterable of str
        What blinding must leave alone beside the tickers and company names in the contexts. A maker whose share is
        among all of these is a holding, and its name stays as well (`blinding.company_names`).
    mandate : str
        The prompt that the season gives to all agents; it is blinded like the rest.
    recent : int
        Steps for which a traded symbol stays shown.

    Raises
    ------
    InputError
        No step, steps of several agents, out of order or recorded twice, a context that is missing or that holds
        anything from after its decision, numbers that are not finite: all at once.
    """
    shown = list(records)
    _refuse(shown, contexts, recent)
    universe = dict.fromkeys(name for one in shown for name in kept_names(contexts[one.decision.context_id]))
    kept = frozenset((*universe, *keep))
    kept |= frozenset(company_names(kept))
    names = blinding_names([*agents, shown[0].decision.agent])
    identifiers = hidden([one.decision for one in shown], _context(shown[0], contexts), names, ()).identifiers
    blind = HorizonBlinding(compiled(names, kept), kept, identifiers)
    steps, before = [], _before(shown[0], contexts)
    wanted = _Wanted(recent, before)
    for number, one in enumerate(shown, start=1):
        steps.append(_step(number, one, _context(one, contexts), wanted, kept))
    return blind.horizon(Horizon(tuple(steps), mandate, before))


def _context(one: StepRecord, contexts: Mapping[str, Context]) -> Context:
    return contexts[one.decision.context_id]


def _before(one: StepRecord, contexts: Mapping[str, Context]) -> HorizonBook | None:
    """The book before the first decision, where its context shows it."""
    held = _context(one, contexts).portfolio
    return None if held is None else HorizonBook(held.cash, tuple(sorted(held.positions.items())))


def _step(number: int, one: StepRecord, context: Context, wanted: _Wanted, kept: frozenset[str]) -> HorizonStep:
    """One step as it is recorded; `HorizonBlinding` takes the names out afterwards, for the whole horizon at once."""
    decision = one.decision
    blocks = dict(decision_blocks(_without_book(one), kept))
    symbols = wanted.at(number, one, context)
    book = None if one.book is None else HorizonBook(one.book.cash, tuple(sorted(one.book.positions.items())))
    return HorizonStep(
        number=number,
        day=one.day,
        record_id=decision.record_id,
        context_id=decision.context_id,
        decided_at=decision.decided_at,
        actions=tuple(replace(action, rationale=None) for action in decision.actions),
        stated=blocks["stated"],
        texts=judged_rationales(decision),
        fills=tuple(
            HorizonFill(fill.symbol, fill.quantity, fill.price, fill.cost, getattr(fill, "kind", ORDER))
            for fill in one.fills
        ),
        rejections=tuple(HorizonRejection(order.symbol, order.reason) for order in one.rejections),
        book=book,
        market=market_lines(context, symbols) if symbols else NO_MARKET,
        constraints=context.constraints,
    )


def _without_book(one: StepRecord) -> Decision:
    """The decision without the book that it states, where the step shows that book anyway."""
    if one.book is None:
        return one.decision
    stages = {name: part for name, part in one.decision.stages.items() if name not in BOOK_STAGES}
    return replace(one.decision, stages=stages)


class _Wanted:
    """Whose market lines a step shows, as the horizon is gone through."""

    def __init__(self, recent: int, before: HorizonBook | None) -> None:
        self.recent = recent
        self.held: set[str] = {symbol for symbol, units in before.positions if units} if before else set()
        self.traded: dict[str, int] = {}

    def at(self, number: int, one: StepRecord, context: Context) -> frozenset[str]:
        """The symbols of one step: held before or after it, acted on in it, or traded a few steps ago."""
        stated = context.portfolio.positions if context.portfolio else {}
        before = self.held | {symbol for symbol, units in stated.items() if units}
        if one.book is not None:
            self.held = {symbol for symbol, units in one.book.positions.items() if units}
        self.traded |= {fill.symbol: number for fill in one.fills}
        ago = {symbol for symbol, at in self.traded.items() if number - at <= self.recent}
        acted = {action.instrument for action in one.decision.actions if action.instrument}
        return frozenset(before | self.held | ago | acted)


# --- what is refused ------------------------------------------------------------------------------------------------


def _refuse(records: Sequence[StepRecord], contexts: Mapping[str, Context], recent: int) -> None:
    """Everything for which there is no horizon."""
    if not records:
        raise InputError("horizon", [Problem("steps", "at least one is needed (got 0)")])
    problems = [] if recent >= 0 else [Problem("recent", f"must be a number of steps from 0 (got {recent})")]
    authors = sorted({f"{one.decision.agent.id} (replicate {one.decision.replicate})" for one in records})
    if len(authors) > 1:
        problems.append(Problem("steps", f"must be of one agent and replicate (got {', '.join(authors)})"))
    problems += _order_problems([one.decision for one in records])
    for one in records:
        problems += _record_problems(one, contexts)
    if problems:
        raise InputError("horizon", problems)


def _order_problems(decisions: Sequence[Decision]) -> list[Problem]:
    """Steps out of order, and records that come twice."""
    problems = [
        Problem(f"record {late.record_id}", f"decided at {late.decided_at}, not after record {early.record_id}")
        for early, late in pairwise(decisions)
        if late.decided_at <= early.decided_at
    ]
    twice = [name for name, count in Counter(one.record_id for one in decisions).items() if count > 1]
    return problems + [Problem(f"record {name}", "comes more than once") for name in twice]


def _record_problems(one: StepRecord, contexts: Mapping[str, Context]) -> list[Problem]:
    """A context that is missing or from the future, and numbers that are none."""
    where = f"record {one.decision.record_id}"
    context = contexts.get(one.decision.context_id)
    problems = []
    if context is None:
        problems.append(Problem(where, f"its context {one.decision.context_id[:12]} is not among them"))
    else:
        try:
            refuse_future(one.decision, context)
        except InputError as exc:
            problems += [Problem(f"{where}, {problem.where}", problem.what) for problem in exc.problems]
    numbers = [
        (f"fill of {fill.symbol}", n) for fill in one.fills for n in (fill.quantity, fill.price or 0.0, fill.cost)
    ]
    if one.book is not None:
        numbers += [
            ("cash", one.book.cash),
            *((f"position {name}", units) for name, units in one.book.positions.items()),
        ]
    problems += [
        Problem(f"{where}, {what}", f"must be finite (got {number})")
        for what, number in numbers
        if not math.isfinite(number)
    ]
    return problems
