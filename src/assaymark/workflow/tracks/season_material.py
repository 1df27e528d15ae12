"""What a season left behind, read from the tables of its run folder alone: what is judged, measured and shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from assaymark.judging.season.plans import ScoringPlan, applicable
from assaymark.judging.season.record import StepRecord
from assaymark.portfolio.broker import Book
from assaymark.records import Agent, Context, Decision, Outcome
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import DECISIONS, OUTCOMES, Store
from assaymark.workflow.tracks.season_lock import stored_season
from assaymark.workflow.tracks.season_plan import Season
from assaymark.workflow.tracks.season_record_tables import (
    BASELINES,
    CHECKS,
    FILLS,
    NAVS,
    REJECTIONS,
    TIMES,
    SeasonCheck,
    SeasonNav,
    SeasonRejection,
)
from assaymark.workflow.tracks.season_records import stated_book

if TYPE_CHECKING:
    from assaymark.workflow.tables import Table
    from assaymark.workflow.tracks.season_lock import StoredSeason


T = TypeVar("T")

_LARGE: Final = ("facts", "series", "instruments")


@dataclass(frozen=True, slots=True, eq=False)
class SeasonMaterial:
    """A season as its tables hold it."""

    season: Season
    plan_hash: str
    universe: tuple[str, ...]
    agents: tuple[Agent, ...]
    contexts: Mapping[str, Context]
    steps: Mapping[str, tuple[StepRecord, ...]]
    replicates: Mapping[tuple[str, int], tuple[StepRecord, ...]]
    outcomes: tuple[Outcome, ...]
    navs: Mapping[str, tuple[SeasonNav, ...]]
    baselines: Mapping[str, tuple[SeasonNav, ...]]
    checks: tuple[SeasonCheck, ...]
    seconds: Mapping[str, float | None]
    rejections: Mapping[str, tuple[SeasonRejection, ...]]
    partial: bool

    @property
    def scoring(self) -> ScoringPlan:
        """The scoring plan of the season, without the parts for which its contexts have no field."""
        return applicable(self.season.scoring_plan, self.contexts.values())


def season_material(folder: RunFolder) -> SeasonMaterial:
    """Everything that a season left in its tables."""
    return material_of(Store(folder), stored_season(folder))


def material_of(store: Store, stored: StoredSeason) -> SeasonMaterial:
    """As `season_material`, for a season whose lock was read."""
    season = stored.season
    navs = _by_agent(store.read(NAVS))
    times = {one.record_id: one for one in store.read(TIMES)}
    rejections = store.read(REJECTIONS)
    fills, refused = _lists(store.read(FILLS)), _lists(rejections)
    order = {one.name: at for at, one in enumerate(season.agents)}
    found: dict[tuple[str, int], list[Decision]] = defaultdict(list)
    for one in sorted(store.read(DECISIONS), key=lambda one: (one.decided_at, one.record_id)):
        if one.record_id in times and one.agent.id in order and one.derivation.kind == "honest":
            found[one.agent.id, one.replicate].append(one)
    decided = dict(sorted(found.items(), key=lambda item: (order[item[0][0]], item[0][1])))
    names = list(dict.fromkeys(agent for agent, _ in decided))

    def step(decision: Decision) -> StepRecord:
        """A decision with what the broker made of it. What was paid out on that day stands among the fills."""
        name, day = decision.record_id, times[decision.record_id].day
        if season.recorded:
            book, paid = stated_book(decision), []
        else:
            later = (one for one in navs.get(decision.agent.id, ()) if one.state == "ok" and one.day > day)
            nav = next(later, None)
            paid = [one for one in fills.get("", ()) if nav and (one.agent, one.day) == (nav.agent, nav.day)]
            book = None if nav is None else Book(nav.cash, nav.positions)
        made, rejected = (*paid, *fills.get(name, ())), tuple(refused.get(name, ()))
        return StepRecord(day=day, decision=decision, fills=made, rejections=rejected, book=book)

    shown = {one.context_id for ones in decided.values() for one in ones}
    contexts: dict[str, Context] = {}
    last: Context | None = None
    for name, context in store.each_context():
        if name in shown:  # what agents of one day share is in memory once
            same = {} if last is None else {part: getattr(last, part) for part in _LARGE}
            same = {part: value for part, value in same.items() if value == getattr(context, part)}
            contexts[name] = last = replace(context, **same) if same else context
    families = {one.name: one.family for one in season.agents}  # of records, the file's word counts for more
    replicates = {
        key: tuple(StepRecord(day=times[one.record_id].day, decision=one) for one in ones)
        for key, ones in decided.items()
    }
    return SeasonMaterial(
        season=season, plan_hash=stored.plan_hash, universe=stored.universe,
        agents=tuple(replace(decided[name, 1][0].agent, family=families[name]) for name in names), contexts=contexts,
        steps={name: tuple(map(step, decided[name, 1])) for name in names},
        replicates=replicates if season.replicates > 1 else {},
        outcomes=tuple(one for one in _if_there(store, OUTCOMES) if one.record_id in times),
        navs={name: navs.get(name, ()) for name in names}, baselines=_by_agent(_if_there(store, BASELINES)),
        checks=tuple(_if_there(store, CHECKS)), seconds={name: one.seconds for name, one in times.items()},
        rejections={name: tuple(one for one in rejections if one.agent == name) for name in names},
        partial=any(one.completeness != "complete" for one in contexts.values()),
    )  # fmt: skip


def _by_agent(rows: Iterable[SeasonNav]) -> dict[str, tuple[SeasonNav, ...]]:
    found: dict[str, list[SeasonNav]] = defaultdict(list)
    for one in sorted(rows, key=lambda one: one.day):
        found[one.agent].append(one)
    return {name: tuple(ones) for name, ones in found.items()}


def _lists(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """Fills or rejections by the decision that they are due to, in their order."""
    found: dict[str, list[Any]] = defaultdict(list)
    for one in sorted(rows, key=lambda one: (one.day, one.number)):
        found[one.record_id].append(one)
    return found


def _if_there(store: Store, table: Table[T]) -> list[T]:
    return [] if store.digest(table) is None else store.read(table)
