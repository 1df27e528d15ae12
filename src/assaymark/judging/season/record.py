"""A horizon: one agent's whole record in order, without names and without anything that was not known yet.

It is what the judges of a season grade (season methodology v0.3: "the whole horizon of a model's decisions"). The
texts are blinded once for the whole record, so an agent that is named on two days is the same token on both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Final, Literal, Protocol

from assaymark.engine.calls import Text
from assaymark.errors import InputError, Problem
from assaymark.judging.blinding import Anonymised, Blinding, blinding_names, company_names, compiled
from assaymark.judging.prompts import ACTION_NUMBERS, decision_blocks, hidden, kept_names
from assaymark.judging.season.market_lines import NO_MARKET, MarketLines, market_lines, table_lines
from assaymark.judging.season.replies import MOST_NOTE_TOKENS
from assaymark.prompting.context import moment, number_text, refuse_future
from assaymark.prompting.fences import fence, row
from assaymark.prompting.texts import judged_rationales, token_count
from assaymark.records import Action, Agent, Constraint, Context, Decision, Outcome, Rationale, sha256_text

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


# The nouns of a horizon: steps as they are recorded, and as judges are shown them.


AuditState = Literal["replaced", "kept"]

BOOK_STAGES: Final = ("holdings", "cash_after")
"""The parts of a decision in which a log states the book after it: units by symbol, and cash."""


ORDER: Final = "order"
"""The kind of a fill that an order asked for."""


class Filled(Protocol):
    """A fill of a broker: signed units, their price where it is known, and the cost in cash."""

    @property
    def symbol(self) -> str:
        """What was traded, or should have been."""
        ...

    @property
    def quantity(self) -> float:
        """Units; below 0 sold."""
        ...

    @property
    def price(self) -> float | None:
        """Per unit; None where the record has none."""
        ...

    @property
    def cost(self) -> float:
        """In cash."""
        ...


class Refused(Protocol):
    """An order that was not carried out, and the word for why."""

    @property
    def symbol(self) -> str:
        """What was traded, or should have been."""
        ...

    @property
    def reason(self) -> str:
        """A word."""
        ...


class Held(Protocol):
    """A book: cash, and units of each symbol."""

    @property
    def cash(self) -> float:
        """In the currency of the book."""
        ...

    @property
    def positions(self) -> Mapping[str, float]:
        """Units by symbol; below 0 short."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step as it was recorded: what was decided, and what the broker made of it. ``book`` is the one after."""

    day: str
    decision: Decision
    fills: Sequence[Filled] = ()
    rejections: Sequence[Refused] = ()
    book: Held | None = None


@dataclass(frozen=True, slots=True)
class HorizonFill:
    """What was traded: signed units, their price where the record has one, and the cost in cash.

    A ``kind`` other than ``order`` is no deed of the agent: a split, a dividend, an instrument that ended.
    """

    symbol: str
    quantity: float
    price: float | None
    cost: float
    kind: str = ORDER


@dataclass(frozen=True, slots=True)
class HorizonRejection:
    """What was not traded, and the word for why."""

    symbol: str
    reason: str


@dataclass(frozen=True, slots=True)
class HorizonBook:
    """Cash, and units of each symbol in alphabetical order.

    Its value is left out: over a horizon that is the result, and results are for the outcome call alone.
    """

    cash: float
    positions: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonStep:
    """One step, blinded. ``number`` counts from 1.

    ``record_id``, ``context_id`` and ``decided_at`` tie it to the records and are never rendered. ``stated`` holds the
    numbers of the decision's structured parts, ``constraints`` the rules it was under.
    """

    number: int
    day: str
    record_id: str
    context_id: str
    decided_at: datetime
    actions: tuple[Action, ...]
    stated: str
    texts: tuple[Rationale, ...]
    fills: tuple[HorizonFill, ...]
    rejections: tuple[HorizonRejection, ...]
    book: HorizonBook | None
    market: MarketLines
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class AuditLine:
    """What blinding did with one name: how often it was replaced or kept in this record, and why."""

    name: str
    state: AuditState
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class Horizon:
    """One agent's record in order. It does not say whose; `PlannedHorizonCall` does.

    ``mandate`` is the prompt that all agents of the season were given, ``before`` the book before the first step where
    the record shows one. ``audit`` lists what blinding replaced and kept.
    """

    steps: tuple[HorizonStep, ...]
    mandate: str = ""
    before: HorizonBook | None = None
    audit: tuple[AuditLine, ...] = field(default=(), compare=False)

    @property
    def first(self) -> int:
        """The number of the first step."""
        return self.steps[0].number

    @property
    def last(self) -> int:
        """The number of the last step."""
        return self.steps[-1].number

    @property
    def id(self) -> str:
        """sha256 over the records and steps it is made of."""
        return sha256_text("\n".join([self.mandate, *(f"{one.number}\t{one.record_id}" for one in self.steps)]))

    def between(self, first: int, last: int) -> Horizon:
        """The steps ``first`` to ``last``, with the book at the boundary: a week of it, or a part of a long one.

        Raises
        ------
        InputError
            There is no such step.
        """
        chosen = tuple(step for step in self.steps if first <= step.number <= last)
        if not chosen:
            raise InputError(
                "horizon", [Problem("steps", f"none from {first} to {last} (has {self.first}..{self.last})")]
            )
        held = [step.book for step in self.steps if step.number < first and step.book is not None]
        return replace(self, steps=chosen, before=held[-1] if held else self.before)


# Horizons as the text that a judge reads: a fence for each step, and one for each text that the agent wrote.


def step_texts(steps: Sequence[HorizonStep]) -> list[str]:
    """Each step as text. The rules stand in the first step, and wherever they change."""
    shown: tuple[Constraint, ...] | None = None
    found = []
    for step in steps:
        found.append(step_text(step, rules=step.constraints != shown))
        shown = step.constraints
    return found


def step_text(step: HorizonStep, *, rules: bool = True) -> str:
    """One step: its tables, the numbers that it states, and each text, fenced one by one."""
    tables = [_head(step), _actions(step.actions), *_done(step), *_horizon_rendering_book(step.book), *_market(step)]
    if rules:
        tables += table_lines("rules", ("kind", "limit", "unit", "scope"), _rules(step.constraints))
    blocks = [("step", "\n".join(tables))]
    if step.stated:
        blocks.append(("stated", step.stated))
    blocks += [(text.kind, text.text) for text in step.texts]
    return "\n".join(fence(label, content) for label, content in blocks)


def deed_text(step: HorizonStep, outcomes: Sequence[Outcome]) -> str:
    """One step for the outcome call: what was done, without reasons, and what happened afterwards."""
    tables = [_head(step), _actions(step.actions), *_done(step), *_horizon_rendering_book(step.book)]
    happened = (
        (
            one.horizon,
            number_text(one.value),
            number_text(one.benchmark),
            moment(one.resolved_at) if one.resolved_at else "",
        )
        for one in outcomes
    )
    told = "\n".join(table_lines("outcomes", ("horizon", "value", "benchmark", "resolved"), happened))
    blocks = [("step", "\n".join(tables)), *([("outcomes", told)] if told else [])]
    return "\n".join(fence(label, content) for label, content in blocks)


def book_text(book: HorizonBook | None) -> str:
    """A book on its own: at the boundary of two parts."""
    return (
        fence("book", "\n".join(_horizon_rendering_book(book))) if book is not None else fence("book", "not recorded")
    )


def rules_text(rules: Sequence[Constraint]) -> str:
    """The rules on their own; nothing where there are none."""
    lines = table_lines("rules", ("kind", "limit", "unit", "scope"), _rules(rules))
    return fence("rules", "\n".join(lines)) if lines else ""


def _head(step: HorizonStep) -> str:
    return row(("step", str(step.number), step.day))


def _actions(actions: Sequence[Action]) -> str:
    """A table of the actions with the columns that any of them fills; it stands there without rows too."""
    filled = [name for name in ACTION_NUMBERS if any(getattr(action, name) is not None for action in actions)]
    rows = [(one.instrument, one.kind, *(number_text(getattr(one, name)) for name in filled)) for one in actions]
    lines = [row(("table", str(len(rows)), "actions")), row(("instrument", "action", *filled))]
    return "\n".join([*lines, *map(row, rows)])


def _done(step: HorizonStep) -> list[str]:
    """What the broker filled and refused."""
    head: tuple[str, ...] = ("symbol", "units", "price", "cost")
    fills: list[tuple[str, ...]] = [
        (one.symbol, number_text(one.quantity), number_text(one.price), number_text(one.cost)) for one in step.fills
    ]
    if any(one.kind != ORDER for one in step.fills):
        head = (*head, "kind")
        fills = [(*cells, one.kind) for cells, one in zip(fills, step.fills, strict=True)]
    refused = ((order.symbol, order.reason) for order in step.rejections)
    return [
        *table_lines("fills", head, fills),
        *table_lines("refused", ("symbol", "reason"), refused),
    ]


def _horizon_rendering_book(book: HorizonBook | None) -> list[str]:
    """Cash and positions."""
    if book is None:
        return []
    held = ((symbol, number_text(units)) for symbol, units in book.positions)
    return [row(("cash", number_text(book.cash))), *table_lines("book", ("symbol", "units"), held)]


def _market(step: HorizonStep) -> list[str]:
    return [step.market.text] if step.market.text else []


def _rules(rules: Sequence[Constraint]) -> Iterable[Sequence[str]]:
    return ((rule.kind, number_text(rule.limit), rule.unit, rule.scope) for rule in rules)


def outcomes_by_step(steps: Sequence[HorizonStep], outcomes: Iterable[Outcome]) -> Mapping[int, tuple[Outcome, ...]]:
    """The outcomes that are resolved, by the number of their step, in an order of their own."""
    numbers = {step.record_id: step.number for step in steps}
    found: dict[int, list[Outcome]] = {}
    for one in outcomes:
        if one.resolved_at is not None and one.record_id in numbers:
            found.setdefault(numbers[one.record_id], []).append(one)
    return {at: tuple(sorted(ones, key=lambda one: (one.horizon, one.source))) for at, ones in found.items()}


# Horizons that are longer than a judge's window, cut at step boundaries and never silently.
#
# The rule: parts are filled from the first step on, each as full as the budget allows. A step that alone is longer than
# the budget is a part of its own and marked `over`; what the model makes of it is recorded like any reply. From the
# second part on some of the budget is kept free for the judge's notes on what came before. Sub-scores of the parts are
# averaged by their number of steps.


BUDGET: Final = 120_000
"""Whitespace tokens of the steps shown in one call, where a plan says nothing else."""

LEAST_BUDGET: Final = 2 * MOST_NOTE_TOKENS


@dataclass(frozen=True, slots=True)
class HorizonPart:
    """Consecutive steps of a horizon that are shown in one call.

    ``at`` counts from 1 to ``of``; ``whole`` are the numbers of the first and the last step of the whole horizon.
    ``body`` is the steps as text, of ``tokens`` whitespace tokens; ``before`` is the book before the first step and
    ``rules`` those in force at it. ``over`` says that its one step alone is longer than the budget.
    """

    at: int
    of: int
    first: int
    last: int
    whole: tuple[int, int]
    tokens: int
    over: bool
    before: HorizonBook | None
    rules: tuple[Constraint, ...]
    body: Text

    @property
    def size(self) -> int:
        """The number of steps shown."""
        return self.last - self.first + 1


def split_horizon(horizon: Horizon, *, budget: int = BUDGET) -> tuple[HorizonPart, ...]:
    """The parts of a horizon, by the rule above; one part if it fits."""
    if budget < LEAST_BUDGET:
        raise InputError("horizon", [Problem("budget", f"must be at least {LEAST_BUDGET} tokens (got {budget})")])
    texts = step_texts(horizon.steps)
    return parts_of(horizon, texts, budget=budget, reserve=MOST_NOTE_TOKENS)


def parts_of(horizon: Horizon, texts: Sequence[str], *, budget: int, reserve: int) -> tuple[HorizonPart, ...]:
    """Steps as text, in parts within the budget; all but the first part keep ``reserve`` tokens free."""
    sizes = [token_count(text) for text in texts]
    cuts = cut(sizes, budget, reserve)
    rooms = [budget, *[budget - reserve] * (len(cuts) - 1)]
    return tuple(_part(horizon, texts, sizes, at, cuts, rooms[at]) for at in range(len(cuts)))


def cut(sizes: Sequence[int], budget: int, reserve: int = 0) -> list[range]:
    """Places of consecutive steps with these sizes, as full as the budget allows.

    >>> cut([4, 4, 4, 9, 1], 8)
    [range(0, 2), range(2, 3), range(3, 4), range(4, 5)]
    """
    cuts: list[range] = []
    start = full = 0
    for at, size in enumerate(sizes):
        room = budget - (reserve if cuts else 0)
        if at > start and full + size > room:
            cuts.append(range(start, at))
            start, full = at, 0
        full += size
    return [*cuts, range(start, len(sizes))]


def _part(
    horizon: Horizon, texts: Sequence[str], sizes: Sequence[int], at: int, cuts: Sequence[range], room: int
) -> HorizonPart:
    """One part."""
    places = cuts[at]
    held = [step.book for step in horizon.steps[: places.start] if step.book is not None]
    tokens = sum(sizes[place] for place in places)
    return HorizonPart(
        at=at + 1,
        of=len(cuts),
        first=horizon.steps[places.start].number,
        last=horizon.steps[places.stop - 1].number,
        whole=(horizon.first, horizon.last),
        tokens=tokens,
        over=len(places) == 1 and tokens > room,
        before=held[-1] if held else horizon.before,
        rules=horizon.steps[places.start].constraints,
        body=Text.of("\n\n".join(texts[place] for place in places)),
    )


# The names in a horizon, taken out of all of it at once.


@dataclass(frozen=True, slots=True)
class HorizonBlinding:
    """The blinding of a whole horizon.

    ``kept`` holds the names in the universe as they are written, ``identifiers`` the ids of records and episodes.
    """

    blinding: Blinding
    kept: frozenset[str]
    identifiers: tuple[str, ...]

    def horizon(self, found: Horizon) -> Horizon:
        """The horizon without names, and with the audit of that."""
        texts = list(dict.fromkeys(self._texts(found)))
        plain = [self._without_identifiers(text) for text in texts]
        blinded = self.blinding.apply_all([text for text, _ in plain])
        said = {text: one.text for text, one in zip(texts, blinded, strict=True)}
        uses = Counter(self._texts(found))
        audit = _audit([(one, uses[text]) for text, one in zip(texts, blinded, strict=True)])
        ids = sum(count * uses[text] for text, (_, count) in zip(texts, plain, strict=True))
        if ids:
            audit = (*audit, AuditLine("[id]", "replaced", ids, "identifiers of records and episodes"))
        steps = tuple(self._blinded(step, said) for step in found.steps)
        before = None if found.before is None else _book(found.before, said)
        return Horizon(steps, said.get(found.mandate, found.mandate), before, audit)

    def _texts(self, found: Horizon) -> Iterable[str]:
        """Everything that is not a number or a name in the universe, in the order of the record."""
        yield found.mandate
        yield from self._symbols(found.before)
        for step in found.steps:
            yield step.day
            yield from self._foreign(action.instrument for action in step.actions)
            yield step.stated
            yield from (text.text for text in step.texts)
            yield from self._foreign(fill.symbol for fill in step.fills)
            for order in step.rejections:
                yield from (*self._foreign([order.symbol]), order.reason)
            yield from self._symbols(step.book)
            yield from step.market.words

    def _symbols(self, book: HorizonBook | None) -> Iterable[str]:
        return self._foreign(symbol for symbol, _ in book.positions) if book else ()

    def _foreign(self, symbols: Iterable[str]) -> Iterable[str]:
        """Symbols that are not in the universe: an order may name anything."""
        return (symbol for symbol in symbols if symbol not in self.kept)

    def _without_identifiers(self, text: str) -> tuple[str, int]:
        """The text with ids as ``[id]``, and how many there were."""
        count = 0
        for identifier in self.identifiers:
            if identifier in text:
                count += text.count(identifier)
                text = text.replace(identifier, "[id]")
        return text, count

    @staticmethod
    def _blinded(step: HorizonStep, said: Mapping[str, str]) -> HorizonStep:
        """One step with its texts replaced."""

        def of(text: str) -> str:
            return said.get(text, text)

        return replace(
            step,
            day=of(step.day),
            actions=tuple(replace(action, instrument=of(action.instrument)) for action in step.actions),
            stated=of(step.stated),
            texts=tuple(Rationale(text=of(text.text), kind=text.kind) for text in step.texts),
            fills=tuple(replace(fill, symbol=of(fill.symbol)) for fill in step.fills),
            rejections=tuple(HorizonRejection(of(order.symbol), of(order.reason)) for order in step.rejections),
            book=None if step.book is None else _book(step.book, said),
            market=step.market.worded(said),
        )


def _book(book: HorizonBook, said: Mapping[str, str]) -> HorizonBook:
    return HorizonBook(book.cash, tuple((said.get(symbol, symbol), units) for symbol, units in book.positions))


def _audit(found: Sequence[tuple[Anonymised, int]]) -> tuple[AuditLine, ...]:
    """What was replaced and kept in all texts, each as often as it is shown."""
    replaced: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    for one, uses in found:
        replaced.update({name: count * uses for name, count in one.replaced.items()})
        kept.update({name: count * uses for name, count in one.kept.items()})
    lines = [AuditLine(name, "replaced", n, "names an agent, a model or its maker") for name, n in replaced.items()]
    lines += [
        AuditLine(name, "kept", n, "a listed name stands in it, and it is in the universe") for name, n in kept.items()
    ]
    return tuple(sorted(lines, key=lambda line: (line.state, line.name)))


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
