"""What follows from a season that was run here: books nobody decided about, checks of the books, and outcomes.

Baselines are kept in the journal day by day, beside the agents. A live source may correct old prices, so a baseline
that is worked out afterwards would have bought at prices nobody saw.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import numpy as np

from assaymark.importers.aitrader.importer import NEXT, WHOLE
from assaymark.importers.recorded import CASH, EQUAL_WEIGHT
from assaymark.market.clock import Day
from assaymark.portfolio.broker import RELIABILITY, Book, Order, StatedFill, StatedStep, reconcile
from assaymark.records import Outcome, canonical_json, parse, to_json
from assaymark.workflow.season_books import Marks, Settlement, due_actions, settle_orders, todays_bars, valued
from assaymark.workflow.season_file import Season
from assaymark.workflow.season_journal import Entry
from assaymark.workflow.season_records import DIVIDEND, SPLIT, SeasonCheck, SeasonNav

SIXTY_FORTY: Final = "60/40"
_CLASSES: Final = {"EQ": 0.6, "BO": 0.4}
_SOURCE: Final = "books of the season at its closes"
MOVE: Final = "price of "
"""How a sentence of `unexplained` begins."""

_JUMP: Final = math.log(4 / 3)
_TIMES_USUAL: Final = 10.0


@dataclass(frozen=True, slots=True)
class Baseline:
    """A book that nobody decides about, and the weights that it buys on the next day with data."""

    book: Book
    wanted: Mapping[str, float] = field(default_factory=dict)

    def to_json(self, nav: SeasonNav) -> dict[str, Any]:
        """As the journal keeps it, with the row that holds its book."""
        return {"wanted": dict(self.wanted), "nav": to_json(nav)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Baseline:
        """From the journal."""
        return cls(Book(float(raw["nav"]["cash"]), dict(raw["nav"]["positions"])), dict(raw["wanted"]))


def new_baselines(season: Season, classes: Mapping[str, str]) -> dict[str, Baseline]:
    """The baselines before the first day: equal weight, cash, and 60/40 where there are equities and bonds.

    Parameters
    ----------
    classes : mapping of instrument to class
        Of the universe.
    """
    names = [EQUAL_WEIGHT, *([SIXTY_FORTY] if set(_CLASSES) <= set(classes.values()) else []), CASH]
    return {name: Baseline(Book(season.capital)) for name in names}


def begun(name: str, one: Baseline, classes: Mapping[str, str], day: Day) -> Baseline:
    """A baseline on the first day with data: it wants its weights of what trades on that day."""
    there = [symbol for symbol in day.universe if symbol in day.quotes]
    if name == EQUAL_WEIGHT:
        return Baseline(one.book, {symbol: 1.0 / len(there) for symbol in there})
    if name == SIXTY_FORTY:
        members = {kind: [symbol for symbol in there if classes[symbol] == kind] for kind in _CLASSES}
        wanted = {symbol: _CLASSES[kind] / len(of) for kind, of in members.items() for symbol in of}
        return Baseline(one.book, wanted)
    return one


def settle_baseline(season: Season, name: str, one: Baseline, day: Day, marks: Marks) -> tuple[Baseline, SeasonNav]:
    """A baseline after a day: it buys once, as an agent would on its second day, and holds.

    The season's rules hold for it, but for the number of orders; what a limit forbids stays in cash.
    """
    rules = season.rules.model_copy(update={"excess": "cut"})
    cost = 1.0 + season.rules.cost_bps / 1e4  # what is bought and its cost make up the weight, so that cash lasts
    orders = [Order(symbol=symbol, side="buy", weight=share / cost) for symbol, share in sorted(one.wanted.items())]
    ruled = season.model_copy(update={"rules": rules})
    settled = settle_orders(ruled, name, one.book, orders, day, marks)
    return Baseline(settled.book), settled.nav


def waiting(name: str, one: Baseline, day: Day, marks: Marks) -> SeasonNav:
    """A baseline on a day without data."""
    return valued(name, str(day.date), "no data", one.book, marks, 0.0)


# --- checks -----------------------------------------------------------------------------------------------------------


def checked(
    season: Season, before: Book, after: Settlement, day: Day, record_id: str, marks: Marks | None = None
) -> dict[str, Any]:
    """One agent's stated fills and book of a day held against each other and the day's bars, for the journal.

    `reconcile` does it: code of its own, which knows nothing of how orders are settled. It starts from the book before,
    after the corporate actions of the market. A held instrument whose price moved as no action explains fails its check
    (`unexplained`), because the value of the book then rests on a price that may be of other units.

    Parameters
    ----------
    marks : mapping, optional
        The last closes before this day; without them nothing is known of actions and moves.
    """
    marks = marks or {}
    fills = tuple(
        StatedFill(symbol=one.symbol, quantity=one.quantity, price=one.price, cost=one.cost)
        for one in after.fills
        if one.kind not in (SPLIT, DIVIDEND)
    )
    held = sorted(before.positions)
    for one in (one for name in held for one in due_actions(name, day, marks)):
        before = before.acted(one.instrument, one.split, one.dividend)
    stated = Book(after.nav.cash, after.nav.positions)
    step = StatedStep(name=record_id, fills=fills, book=stated, bars=todays_bars(day))
    found = reconcile(before, [step], fill=season.rules.fill, short=season.rules.short)
    counts = {kind: [found.checks[kind], found.passed[kind]] for kind in RELIABILITY if found.checks[kind]}
    kinds = {"negative-position": "position"}
    mismatches = [
        [kinds.get(one.kind, one.kind.partition("-")[0]), str(one).removeprefix(f"{record_id}: ")]
        for one in found.mismatches
    ]
    failed, traded = {one.symbol for one in found.mismatches}, {one.symbol for one in fills}
    for name in held:
        if sentence := unexplained(name, day, marks):
            kind = "fill" if name in traded else "position"
            mismatches.append([kind, sentence])
            counts[kind][1] -= name not in failed
    return {"record_id": record_id, "counts": counts, "mismatches": mismatches}


def unexplained(name: str, day: Day, marks: Marks) -> str:
    """What is wrong with a move of the price since the last close that no corporate action explains; else nothing.

    A move counts as such a jump where it is more than a third up or a quarter down and more than ten times the median
    daily move of the closes that are shown. It may be true: then the check fails for a price that is right, and a
    reader knows where to look.
    """
    if name not in day.quotes or name not in marks:
        return ""
    price, of = marks[name]
    close = day.quotes[name].close or price
    worth, actions = Book(0.0, {name: 1.0}), due_actions(name, day, marks)
    for one in actions:
        worth = worth.acted(name, one.split, one.dividend)
    move = abs(math.log(worth.nav({name: close}) / price))
    if move <= _JUMP:  # nearly always, so that the usual move is seldom needed
        return ""
    closes = day.closes[:, day.universe.index(name)]
    moves = np.abs(np.diff(np.log(closes[np.isfinite(closes)])))
    if moves.size and move <= _TIMES_USUAL * float(np.median(moves)):
        return ""
    known = "; ".join(map(str, actions))
    why = f"not explained by {known}" if known else "explained by no action"
    return f"{MOVE}{name} on {day.date}: {close:.10g} after {price:.10g} on {of}, {why}"


def check_rows(entries: Iterable[Entry]) -> list[SeasonCheck]:
    """The checks of all days, by agent and kind."""
    counts: dict[tuple[str, str], list[int]] = {}
    said: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        for agent, raw in entry.record["agents"].items():
            made = raw["checks"] or {"record_id": "", "counts": {}, "mismatches": []}
            for kind, (checks, passed) in made["counts"].items():
                row = counts.setdefault((agent, kind), [0, 0])
                row[0] += checks
                row[1] += passed
            for kind, sentence in made["mismatches"]:
                said.setdefault((agent, kind), []).append(f"{made['record_id']}\t{sentence}")
    return [
        SeasonCheck(agent=agent, kind=kind, checks=row[0], passed=row[1], mismatches=tuple(said.get((agent, kind), ())))
        for (agent, kind), row in counts.items()
    ]


# --- tables -----------------------------------------------------------------------------------------------------------


def baseline_rows(entries: Iterable[Entry]) -> Iterator[SeasonNav]:
    """The baselines day by day."""
    for entry in entries:
        for one in entry.record["baselines"].values():
            yield parse(SeasonNav, canonical_json(one["nav"]), source="journal of the season")


def outcomes_of(season: Season, entries: Sequence[Entry]) -> Iterator[Outcome]:
    """What each agent's book earned from a decision to the next one, and at the last one since the season began.

    Both are differences of net asset values after costs, at the closes of the days of decision; the benchmark is equal
    weight over the same days. An order fills on the day after its decision, so what is earned before that is earned by
    the book as it was. The last decision has no next one yet, and a book that is worth nothing has no return.
    """
    days = [entry for entry in entries if entry.record["state"] == "ok"]
    for agent in season.agents:
        names = [_decision(entry, agent.name) for entry in days]
        for at, (early, late) in enumerate(pairwise(days)):
            value = _earned(_nav(early, agent.name), _nav(late, agent.name))
            if value is not None:
                yield _outcome(names[at], NEXT, value, _earned(_nav(early), _nav(late)), late)
        if len(days) > 1:
            value = _nav(days[-1], agent.name) / season.capital - 1.0
            yield _outcome(names[-1], WHOLE, value, _nav(days[-1]) / season.capital - 1.0, days[-1])


def _decision(entry: Entry, agent: str) -> str:
    """The record id of an agent's decision on a day."""
    return next(
        str(one["record_id"])
        for one in entry.record["decisions"]
        if one["agent"]["id"] == agent and one["replicate"] == 1
    )


def _nav(entry: Entry, agent: str | None = None) -> float:
    """What an agent's book, or equal weight, was worth after a day."""
    row = entry.record["baselines"][EQUAL_WEIGHT] if agent is None else entry.record["agents"][agent]
    return float(row["nav"]["nav"])


def _earned(before: float, after: float) -> float | None:
    return after / before - 1.0 if before > 0 else None


def _outcome(record_id: str, horizon: str, value: float, benchmark: float | None, at: Entry) -> Outcome:
    return Outcome(
        record_id=record_id,
        horizon=horizon,
        value=value,
        benchmark=benchmark,
        resolved_at=datetime.fromisoformat(at.record["moment"].replace("Z", "+00:00")),
        source=_SOURCE,
    )
