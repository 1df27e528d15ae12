"""A horizon: one agent's whole trajectory in order, without names and without information from the future.

The judges of a season grade horizons (season methodology v0.3: "the whole horizon of a model's decisions"). The texts
are blinded once for the whole record, so that an agent named on two days has the same token on both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, Literal

from assaymark.engine.calls import Text
from assaymark.errors import InputError, Problem
from assaymark.judging.blinding import Blinding, blinding_for, blinding_names, company_names
from assaymark.judging.prompts import ACTION_NUMBERS, decision_blocks, hidden, kept_names
from assaymark.judging.season.plans import MOST_NOTE_TOKENS
from assaymark.prompting import (
    fence,
    judged_rationales,
    moment,
    number_text,
    refuse_future,
    row,
    table_lines,
    token_count,
)
from assaymark.records import Action, Agent, Constraint, Context, Decision, Fact, Outcome, Rationale, sha256_text

AuditState = Literal["replaced", "kept"]

BOOK_STAGES: Final = ("holdings", "cash_after")
"""The stages of a decision in which a log states the portfolio after it: units by symbol, and cash."""
ORDER: Final = "order"
"""The kind of a fill that executes an order."""
ACTION: Final = "action"
"""The source of facts on splits and dividends; ``as_of`` is their ex-date."""
RECENT_STEPS: Final = 5
"""The number of steps for which a symbol counts as recently traded after its last trade."""
BUDGET: Final = 120_000
"""Default maximum number of words of the steps shown in one call."""
LEAST_BUDGET: Final = 2 * MOST_NOTE_TOKENS

Fill = tuple[str, float, float | None, float, str]
"""A trade: symbol, signed units, price if known, cost, and the kind: `ORDER`, a split, a dividend or a delisting."""
Holdings = tuple[float, tuple[tuple[str, float], ...]]
"""Cash, and the units of each symbol in alphabetical order."""

_LAST = {"open": "price", "high": "price", "low": "price", "close": "price", "volume": "count"}
"""The fields of the last bar that are listed with the facts, with their units."""


@dataclass(frozen=True, slots=True)
class MarketLines:
    """A market table: a column per field with its unit, a row per symbol; cells in ``words`` are not numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[str, ...] = ()
    text: str = field(init=False, repr=False, compare=False)
    """The rendered table, empty without rows; stored, because it is most of a horizon and shown in many calls."""

    def __post_init__(self) -> None:
        shown = "\n".join(table_lines("market", ("symbol", *self.columns), self.rows))
        object.__setattr__(self, "text", shown)


NO_MARKET = MarketLines((), ())


def market_lines(context: Context, symbols: Iterable[str]) -> MarketLines:
    """Build a table of a context's facts about some symbols, with a row for each symbol that has any."""
    wanted = set(symbols)
    wanted |= {item.id for item in context.instruments if item.symbol in wanted}
    grid: dict[str, dict[str, Fact]] = {}
    today = context.cutoff.date()
    for fact in context.facts:
        # A split or dividend of an earlier day is omitted, because the table of one day cannot show its date.
        gone_by = fact.source == ACTION and fact.as_of is not None and fact.as_of.date() < today
        if fact.instrument in wanted and not gone_by:
            facts = grid.setdefault(fact.instrument, {})
            column = f"{fact.field} [{fact.unit}]"
            old = facts.get(column)
            # By id if both are equally recent, so that the input order does not matter.
            if old is not None and fact.as_of and old.as_of and fact.as_of != old.as_of:
                newer = fact.as_of > old.as_of
            else:
                newer = old is None or (fact.available_at, fact.id) > (old.available_at, old.id)
            if newer:
                facts[column] = fact
    cells = {
        symbol: {
            column: fact.value if isinstance(fact.value, str) else number_text(fact.value)
            for column, fact in facts.items()
        }
        for symbol, facts in grid.items()
    }
    for series in context.series:
        if series.instrument in wanted:
            last = {name: getattr(series, name)[-1] for name in _LAST if getattr(series, name)}
            row = cells.setdefault(series.instrument, {}) if last else {}
            row |= {f"last {name} [{_LAST[name]}]": number_text(value) for name, value in last.items()}
    columns = tuple(dict.fromkeys(column for line in cells.values() for column in line))
    rows = tuple((symbol, *(cells[symbol].get(column, "") for column in columns)) for symbol in sorted(cells))
    texts = [fact.value for facts in grid.values() for fact in facts.values() if isinstance(fact.value, str)]
    return MarketLines(columns, rows, tuple(dict.fromkeys([*columns, *texts])))


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One recorded step: the decision and its execution by the broker. ``book`` is the portfolio after it.

    ``fills`` have a symbol, a quantity, a price and a cost, ``rejections`` a symbol and a reason. The fields from
    ``number`` on are for pages and not part of a horizon; ``mismatches`` are statements that contradict the others.
    """

    day: str
    decision: Decision
    fills: Sequence[Any] = ()
    rejections: Sequence[Any] = ()
    book: Any | None = None
    number: int = 0
    seconds: float | None = None
    nav: float | None = None
    mismatches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HorizonStep:
    """One blinded step, counted from 1; its record ids are never rendered."""

    number: int
    day: str
    record_id: str
    context_id: str
    actions: tuple[Action, ...]
    stated: str
    """The numbers of the decision's structured parts."""
    texts: tuple[Rationale, ...]
    fills: tuple[Fill, ...]
    rejections: tuple[tuple[str, str], ...]
    """Symbols with the reason of each rejection."""
    book: Holdings | None
    """Shown without its value, which is the result over the horizon; only the outcome call shows results."""
    market: MarketLines
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class AuditLine:
    """The audit of one blinded name: the number of times it was replaced or kept in this record, and the reason."""

    name: str
    state: AuditState
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class Horizon:
    """One agent's trajectory in order. It does not identify the agent; `PlannedCall` does."""

    steps: tuple[HorizonStep, ...]
    mandate: str = ""
    before: Holdings | None = None
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
        """The sha256 of its mandate, step numbers and record ids."""
        return sha256_text("\n".join([self.mandate, *(f"{step.number}\t{step.record_id}" for step in self.steps)]))

    def between(self, first: int, last: int) -> Horizon:
        """Return steps ``first`` to ``last`` with the portfolio before them; raise InputError if there are none."""
        chosen = tuple(step for step in self.steps if first <= step.number <= last)
        if not chosen:
            problem = f"none from {first} to {last} (has {self.first}..{self.last})"
            raise InputError("horizon", [Problem("steps", problem)])
        books = [step.book for step in self.steps if step.number < first and step.book is not None]
        return replace(self, steps=chosen, before=books[-1] if books else self.before)


def outcome_text(step: HorizonStep, outcomes: Sequence[Outcome]) -> str:
    """Render one step for the outcome call: the actions without their reasons, and the outcomes."""
    happened = []
    for outcome in outcomes:
        resolved = moment(outcome.resolved_at) if outcome.resolved_at else ""
        happened.append((outcome.horizon, number_text(outcome.value), number_text(outcome.benchmark), resolved))
    after = "\n".join(table_lines("outcomes", ("horizon", "value", "benchmark", "resolved"), happened))
    blocks = [("step", "\n".join(_action_lines(step))), *([("outcomes", after)] if after else [])]
    return "\n".join(fence(label, content) for label, content in blocks)


def holdings_text(book: Holdings | None) -> str:
    """Render the portfolio at the boundary between two parts."""
    return fence("book", "\n".join(_holdings_lines(book)) if book is not None else "not recorded")


def rules_lines(rules: Sequence[Constraint]) -> list[str]:
    """Render the rules as a table; empty if there are none."""
    lines = ((rule.kind, number_text(rule.limit), rule.unit, rule.scope) for rule in rules)
    return table_lines("rules", ("kind", "limit", "unit", "scope"), lines)


def _action_lines(step: HorizonStep) -> list[str]:
    """Render a step's header, its actions (columns with any value), fills, rejections, and the portfolio."""
    filled = [name for name in ACTION_NUMBERS if any(getattr(action, name) is not None for action in step.actions)]
    actions = [
        (item.instrument, item.kind, *(number_text(getattr(item, name)) for name in filled)) for item in step.actions
    ]
    kinds = any(kind != ORDER for *_, kind in step.fills)
    fills = [(symbol, *map(number_text, numbers), *([kind] * kinds)) for symbol, *numbers, kind in step.fills]
    return [
        row(("step", str(step.number), step.day)),
        # The table of actions is shown even without rows.
        row(("table", str(len(actions)), "actions")),
        row(("instrument", "action", *filled)),
        *map(row, actions),
        *table_lines("fills", ("symbol", "units", "price", "cost", *(["kind"] * kinds)), fills),
        *table_lines("refused", ("symbol", "reason"), step.rejections),
        *_holdings_lines(step.book),
    ]


def _holdings_lines(book: Holdings | None) -> list[str]:
    if book is None:
        return []
    positions = ((symbol, number_text(units)) for symbol, units in book[1])
    return [row(("cash", number_text(book[0]))), *table_lines("book", ("symbol", "units"), positions)]


@dataclass(frozen=True, slots=True)
class HorizonPart:
    """Consecutive steps of a horizon that are shown in one call."""

    at: int
    of: int
    first: int
    last: int
    horizon: tuple[int, int]
    tokens: int
    over: bool
    before: Holdings | None
    rules: tuple[Constraint, ...]
    body: Text

    @property
    def size(self) -> int:
        """The number of steps shown in this part."""
        return self.last - self.first + 1


def split_horizon(horizon: Horizon, budget: int = BUDGET) -> tuple[HorizonPart, ...]:
    """Split a horizon that exceeds a judge's context window at step boundaries; one part if it fits."""
    if budget < LEAST_BUDGET:
        raise InputError("horizon", [Problem("budget", f"must be at least {LEAST_BUDGET} tokens (got {budget})")])
    # Render each step as fenced blocks: its tables, its stated numbers, and each text.
    rules: tuple[Constraint, ...] | None = None
    texts = []
    for step in horizon.steps:
        tables = [*_action_lines(step), *filter(None, [step.market.text])]
        if step.constraints != rules:
            tables += rules_lines(step.constraints)
        rules = step.constraints
        blocks = [("step", "\n".join(tables)), *([("stated", step.stated)] if step.stated else [])]
        blocks += [(text.kind, text.text) for text in step.texts]
        texts.append("\n".join(fence(label, content) for label, content in blocks))
    return group_parts(horizon, texts, budget, reserve=MOST_NOTE_TOKENS)


def group_parts(horizon: Horizon, texts: Sequence[str], budget: int, *, reserve: int) -> tuple[HorizonPart, ...]:
    """Group rendered steps into parts within the budget; all parts but the first leave ``reserve`` words free."""
    sizes = [token_count(text) for text in texts]
    cuts = group_steps(sizes, budget, reserve)
    parts = []
    for at, places in enumerate(cuts):
        books = [step.book for step in horizon.steps[: places.start] if step.book is not None]
        tokens = sum(sizes[place] for place in places)
        first, last = horizon.steps[places.start], horizon.steps[places.stop - 1]
        over = len(places) == 1 and tokens > budget - (reserve if at else 0)
        before, body = books[-1] if books else horizon.before, Text.of("\n\n".join(texts[place] for place in places))
        at_of, ends = (at + 1, len(cuts)), (first.number, last.number)
        whole = (horizon.first, horizon.last)
        parts.append(HorizonPart(*at_of, *ends, whole, tokens, over, before, first.constraints, body))
    return tuple(parts)


def group_steps(sizes: Sequence[int], budget: int, reserve: int = 0) -> list[range]:
    """Group consecutive steps of these sizes into index ranges, each as full as the budget allows."""
    cuts: list[range] = []
    start = full = 0
    for at, size in enumerate(sizes):
        room = budget - (reserve if cuts else 0)
        if at > start and full + size > room:
            cuts.append(range(start, at))
            start, full = at, 0
        full += size
    return [*cuts, range(start, len(sizes))]


def horizon_of(
    records: Sequence[StepRecord], contexts: Mapping[str, Context], agents: Iterable[Agent], keep: Iterable[str] = (),
    mandate: str = "", *, recent: int = RECENT_STEPS,
) -> Horizon:  # fmt: skip
    """Build the horizon of one agent (one replicate) from its steps in order."""
    _check_records(records, contexts, recent)
    shown = [(record, contexts[record.decision.context_id]) for record in records]
    spared = frozenset((*(name for _, context in shown for name in kept_names(context)), *keep))
    spared |= frozenset(company_names(spared))
    names = blinding_names([*agents, records[0].decision.agent])
    identifiers = hidden([record.decision for record in records], shown[0][1], names, ()).ids
    first = shown[0][1].portfolio
    before = None if first is None else (first.cash, tuple(sorted(first.positions.items())))
    holdings = {symbol for symbol, units in before[1] if units} if before else set()
    traded: dict[str, int] = {}
    steps = []
    for number, (step, context) in enumerate(shown, start=1):
        decision, stated_book = step.decision, None
        # Symbols held before or after the step, acted on in it, or traded a few steps ago.
        stated = context.portfolio.positions if context.portfolio else {}
        symbols = holdings | {symbol for symbol, units in stated.items() if units}
        if step.book is not None:
            stated_book = (step.book.cash, tuple(sorted(step.book.positions.items())))
            holdings = {symbol for symbol, units in stated_book[1] if units}
            # The portfolio stated in a decision is omitted if the step shows that portfolio anyway.
            stages = {name: part for name, part in decision.stages.items() if name not in BOOK_STAGES}
            decision = replace(decision, stages=stages)
        traded |= {fill.symbol: number for fill in step.fills}
        symbols |= holdings | {symbol for symbol, at in traded.items() if number - at <= recent}
        symbols |= {action.instrument for action in decision.actions if action.instrument}
        steps.append(
            HorizonStep(
                number, step.day, decision.record_id, decision.context_id,
                tuple(replace(action, rationale=None) for action in decision.actions),
                dict(decision_blocks(decision, spared))["stated"], judged_rationales(decision),
                tuple((f.symbol, f.quantity, f.price, f.cost, getattr(f, "kind", ORDER)) for f in step.fills),
                tuple((order.symbol, order.reason) for order in step.rejections), stated_book,
                market_lines(context, symbols) if symbols else NO_MARKET, context.constraints,
            ),
        )  # fmt: skip
    return _blind_horizon(Horizon(tuple(steps), mandate, before), blinding_for(names, spared), spared, identifiers)


def _blind_horizon(horizon: Horizon, blinding: Blinding, spared: frozenset[str], identifiers: Sequence[str]) -> Horizon:
    """Return the blinded horizon with its audit; the texts are blinded together for the whole record."""
    uses = Counter[str]()

    def counted(text: str) -> str:
        uses[text] += 1
        return text

    _rewrite_texts(horizon, counted, spared)
    plain = {}
    ids = 0
    for text, count in uses.items():
        without = text
        for identifier in identifiers:
            if identifier in without:
                ids += without.count(identifier) * count
                without = without.replace(identifier, "[id]")
        plain[text] = without
    blinded = dict(zip(plain, blinding.apply_all(list(plain.values())), strict=True))
    audit = []
    for state, reason in _WHY.items():
        counts: Counter[str] = Counter()
        for text, version in blinded.items():
            counts.update({name: count * uses[text] for name, count in getattr(version, state).items()})
        audit += [AuditLine(name, state, counts[name], reason) for name in sorted(counts)]
    if ids:
        audit.append(AuditLine("[id]", "replaced", ids, "identifiers of records and episodes"))
    return replace(_rewrite_texts(horizon, lambda text: blinded[text].text, spared), audit=tuple(audit))


def _rewrite_texts(horizon: Horizon, of: Callable[[str], str], spared: frozenset[str]) -> Horizon:
    """Apply ``of`` to every text of the horizon in the order shown; symbols in ``spared`` stay."""

    def named(symbol: str) -> str:
        return symbol if symbol in spared else of(symbol)

    def book_of(book: Holdings | None) -> Holdings | None:
        return book and (book[0], tuple((named(symbol), units) for symbol, units in book[1]))

    def market_of(market: MarketLines) -> MarketLines:
        changed = {word: text for word in market.words if (text := of(word)) != word}
        if not changed:
            return market
        columns, *rows, words = (
            tuple(changed.get(word, word) for word in line) for line in (market.columns, *market.rows, market.words)
        )
        symbols = (symbol for symbol, *_ in market.rows)
        return MarketLines(columns, tuple((name, *line[1:]) for name, line in zip(symbols, rows, strict=True)), words)

    mandate, before = of(horizon.mandate), book_of(horizon.before)
    steps = tuple(
        replace(
            step, day=of(step.day),
            actions=tuple(replace(action, instrument=named(action.instrument)) for action in step.actions),
            stated=of(step.stated), texts=tuple(Rationale(of(text.text), text.kind) for text in step.texts),
            fills=tuple((named(fill[0]), *fill[1:]) for fill in step.fills),
            rejections=tuple((named(symbol), of(reason)) for symbol, reason in step.rejections),
            book=book_of(step.book), market=market_of(step.market),
        )
        for step in horizon.steps
    )  # fmt: skip
    return Horizon(steps, mandate, before)


_WHY: Final[Mapping[AuditState, str]] = {
    "kept": "a listed name stands in it, and it is in the universe",
    "replaced": "names an agent, a model or its maker",
}


def _check_records(records: Sequence[StepRecord], contexts: Mapping[str, Context], recent: int) -> None:
    """Raise InputError with every reason why no horizon can be built from the records."""
    if not records:
        raise InputError("horizon", [Problem("steps", "at least one is needed (got 0)")])
    problems = [] if recent >= 0 else [Problem("recent", f"must be a number of steps from 0 (got {recent})")]
    authors = sorted({f"{record.decision.agent.id} (replicate {record.decision.replicate})" for record in records})
    if len(authors) > 1:
        problems.append(Problem("steps", f"must be of one agent and replicate (got {', '.join(authors)})"))
    for early, late in pairwise(record.decision for record in records):
        if late.decided_at <= early.decided_at:
            text = f"decided at {late.decided_at}, not after record {early.record_id}"
            problems.append(Problem(f"record {late.record_id}", text))
    for name, count in Counter(record.decision.record_id for record in records).items():
        if count > 1:
            problems.append(Problem(f"record {name}", "comes more than once"))
    for step in records:
        label = f"record {step.decision.record_id}"
        context = contexts.get(step.decision.context_id)
        if context is None:
            problems.append(Problem(label, f"its context {step.decision.context_id[:12]} is not among them"))
        else:
            try:
                refuse_future(step.decision, context)
            except InputError as exc:
                problems += [Problem(f"{label}, {problem.where}", problem.what) for problem in exc.problems]
        numbers = [
            (f"fill of {fill.symbol}", n) for fill in step.fills for n in (fill.quantity, fill.price or 0.0, fill.cost)
        ]
        if step.book is not None:
            numbers.append(("cash", step.book.cash))
            numbers += [(f"position {name}", units) for name, units in step.book.positions.items()]
        problems += [
            Problem(f"{label}, {text}", f"must be finite (got {number})")
            for text, number in numbers
            if not math.isfinite(number)
        ]
    if problems:
        raise InputError("horizon", problems)
