"""Who took part in a season and what happened in it, as its site shows it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from assaymark.agents.llm import NOT_USABLE, REJECTED
from assaymark.judging.season.horizon_types import StepRecord
from assaymark.records import Action, Decision
from assaymark.report.datasheet import datasheet_path
from assaymark.report.season.inputs import (
    SeasonAgent,
    SeasonJudge,
    SeasonPath,
    SeasonRefusal,
    SeasonStep,
    SeasonTrade,
)
from assaymark.workflow.season_file import RECORDS, Season
from assaymark.workflow.season_material import SeasonMaterial
from assaymark.workflow.season_records import SeasonCheck, SeasonNav, SeasonRejection

_NUMBERS = ("quantity", "weight", "price", "leverage", "stop", "target", "confidence", "expected_return")


def season_agents(season: Season) -> tuple[SeasonAgent, ...]:
    """Who traded, in the order of the season file; a model of records is called what they call it."""
    return tuple(
        SeasonAgent(
            name=one.name,
            family=one.family,
            model=one.model.removeprefix(f"{RECORDS}/") if season.recorded else one.model,
            strategy=season.strategies.get(one.name, ""),
        )
        for one in season.agents
    )


def season_judges(season: Season, sheets: Collection[str]) -> tuple[SeasonJudge, ...]:
    """Who graded, in the order of the season file. ``sheets`` are the judges with a datasheet."""
    return tuple(
        SeasonJudge(
            name=one.name,
            family=one.family,
            model=one.model,
            human=one.human,
            trials=one.trials,
            datasheet=datasheet_path(one.name) if one.name in sheets else None,
        )
        for one in season.panel
    )


def season_paths(material: SeasonMaterial) -> tuple[SeasonPath, ...]:
    """Net asset values of the agents and then of the baselines, day by day."""
    start = material.season.capital
    books = [(name, False, rows) for name, rows in material.navs.items()]
    books += [(name, True, rows) for name, rows in sorted(material.baselines.items())]
    return tuple(
        SeasonPath(
            name=name,
            baseline=baseline,
            start=start,
            days=tuple(one.day for one in rows),
            nav=tuple(one.nav for one in rows),
        )
        for name, baseline, rows in books
        if rows
    )


def season_steps(material: SeasonMaterial) -> dict[str, tuple[SeasonStep, ...]]:
    """Every decision of the first replicate with what came of it, by agent.

    Net asset value, cash and positions are those after its orders were settled. They are absent where that day has not
    come yet.
    """
    wrong = _mismatches(material.checks)
    same_day = material.season.recorded
    found = {}
    for name, steps in material.steps.items():
        after = _navs_after([one.day for one in steps], material.navs[name], same_day=same_day)
        numbered = enumerate(zip(steps, after, strict=True), start=1)
        found[name] = tuple(
            _step(number, one, nav, material.seconds.get(one.decision.record_id), wrong.get(one.decision.record_id, ()))
            for number, (one, nav) in numbered
        )
    return found


def order_text(action: Action) -> str:
    """An order as it was given: its kind, its instrument, and its numbers.

    >>> order_text(Action(instrument="ABC", kind="buy", quantity=12.5))
    'buy ABC, quantity 12.5'
    """
    numbers = [f"{name} {value:.10g}" for name in _NUMBERS if (value := getattr(action, name)) is not None]
    return ", ".join([f"{action.kind} {action.instrument}".strip(), *numbers])


# --- parts ------------------------------------------------------------------------------------------------------------


def _step(
    number: int, one: StepRecord, nav: SeasonNav | None, seconds: float | None, mismatches: Sequence[str]
) -> SeasonStep:
    decision = one.decision
    return SeasonStep(
        number=number,
        day=one.day,
        record_id=decision.record_id,
        orders=tuple(order_text(action) for action in decision.actions),
        texts=tuple((text.kind, text.text) for text in decision.rationales),
        fills=tuple(
            SeasonTrade(
                symbol=fill.symbol,
                quantity=fill.quantity,
                price=fill.price,
                cost=fill.cost,
                kind=getattr(fill, "kind", "order"),
            )
            for fill in one.fills
        ),
        refusals=tuple(
            SeasonRefusal(
                symbol=order.symbol,
                reason=order.reason,
                text=order.text if isinstance(order, SeasonRejection) else order.reason,
            )
            for order in one.rejections
        ),
        flags=decision.flags,
        problem=_problem(decision),
        seconds=seconds,
        nav=None if nav is None else nav.nav,
        cash=None if one.book is None else one.book.cash,
        positions={} if one.book is None else dict(sorted(one.book.positions.items())),
        mismatches=tuple(mismatches),
    )


def _problem(decision: Decision) -> str:
    """Why a decision holds no orders, or not all of them, in the words that are recorded with it."""
    told = {*NOT_USABLE, REJECTED} & {*decision.flags}
    return "; ".join(decision.missing) if told else ""


def _navs_after(days: Sequence[str], navs: Sequence[SeasonNav], *, same_day: bool) -> Iterator[SeasonNav | None]:
    """The book after each decision: of its own day, or of the first later day on which anything was settled."""
    rows = [one for one in navs if one.state == "ok"]
    if same_day:
        by_day = {one.day: one for one in rows}
        yield from (by_day.get(day) for day in days)
        return
    at = 0
    for day in days:
        while at < len(rows) and rows[at].day <= day:
            at += 1
        yield rows[at] if at < len(rows) else None


def _mismatches(checks: Sequence[SeasonCheck]) -> Mapping[str, list[str]]:
    """What does not reconcile, by record."""
    found: dict[str, list[str]] = defaultdict(list)
    for check in checks:
        for line in check.mismatches:
            record, _, text = line.partition("\t")
            found[record].append(text)
    return found
