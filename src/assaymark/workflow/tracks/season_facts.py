"""A season read from its tables, and measurements of its agents other than grades: returns, checks, trading, facts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from itertools import product, starmap
from operator import attrgetter
from typing import Any, Final, TypeVar

import numpy as np

from assaymark.agents.llm import ABSENT, is_unanswered
from assaymark.claims.levels import NOISE, TOTAL
from assaymark.claims.messages import Phrase, Value, phrase
from assaymark.claims.season_plan import Season
from assaymark.errors import InputError, NotMeasurableError
from assaymark.importers.report import REPLAYED
from assaymark.judging.evidence import BORNE_OUT, ContextIndex, chance_corrected
from assaymark.judging.season.plans import ScoringPlan, applicable
from assaymark.judging.season.record import BOOK_STAGES, Horizon, StepRecord, horizon_of
from assaymark.judging.season.scoring import thrashing
from assaymark.market.instruments import weekdays
from assaymark.metrology.bootstrap import daily_excess
from assaymark.metrology.estimates import number
from assaymark.portfolio import performance
from assaymark.portfolio.broker import RELIABILITY, Account
from assaymark.prompting import INSTRUCTION_LIKE
from assaymark.records import IDENTICAL, JSON, Agent, Context, Decision, Evidence, Measurement, Outcome, grouped
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import DECISIONS, OUTCOMES, Store
from assaymark.workflow.tracks import season_records as rows
from assaymark.workflow.tracks.season_accounts import MOVE
from assaymark.workflow.tracks.season_lock import LockedSeason, stored_season

WITHIN: Final = 5
"""The days within which a trade that reverses an earlier one counts as a round trip."""

SAMPLED: Final = 60
"""Maximum decisions of one agent for chance-corrected agreement, since the context of each is read anew."""

measured = partial(number, Measurement)
LEVEL: Final = 0.95
"""Coverage of the intervals. Tests of claims use the plan's alpha."""

V = TypeVar("V")

_LARGE: Final = ("facts", "series", "instruments")


@dataclass(frozen=True, slots=True, eq=False)
class SeasonMaterial:
    """A season as read from its tables."""

    season: Season
    plan_hash: str
    universe: tuple[str, ...]
    agents: tuple[Agent, ...]
    contexts: Mapping[str, Context]
    steps: Mapping[str, tuple[StepRecord, ...]]
    replicates: Mapping[tuple[str, int], tuple[StepRecord, ...]]
    outcomes: tuple[Outcome, ...]
    navs: Mapping[str, tuple[rows.SeasonNav, ...]]
    baselines: Mapping[str, tuple[rows.SeasonNav, ...]]
    checks: tuple[rows.SeasonCheck, ...]
    partial: bool

    @property
    def scoring(self) -> ScoringPlan:
        """The scoring plan of the season, without the criteria that its contexts have no field for."""
        return applicable(self.season.scoring_plan, self.contexts.values())

    def horizon(self, agent: str, steps: Sequence[StepRecord]) -> Horizon:
        """Return an agent's decisions as a blinded record, as its judges see it."""
        prompt = self.season.instructions(agent).strip()
        return horizon_of(steps, self.contexts, self.agents, self.universe, prompt)


def season_material(folder: RunFolder, stored: LockedSeason | None = None) -> SeasonMaterial:
    """Read a season from its tables."""
    stored, store = stored or stored_season(folder), Store(folder)
    season = stored.season

    def by(name: str, items: Iterable[V]) -> dict[str, tuple[V, ...]]:
        return {key: tuple(group) for key, group in grouped(items, attrgetter(name)).items()}

    times = {time.record_id: time for time in store.read(rows.TIMES)}
    books = store.read(rows.NAVS), store.stored(rows.BASELINES)
    navs, baselines = (by("agent", sorted(each, key=lambda row: row.day)) for each in books)
    # by decision, in their order
    fills = by("record_id", sorted(store.read(rows.FILLS), key=lambda row: (row.day, row.number)))
    refused = by("record_id", sorted(store.read(rows.REJECTIONS), key=lambda row: (row.day, row.number)))
    order = {agent.name: at for at, agent in enumerate(season.agents)}
    by_agent: dict[tuple[str, int], list[Decision]] = defaultdict(list)
    for one in sorted(store.read(DECISIONS), key=lambda decision: (decision.decided_at, decision.record_id)):
        if one.record_id in times and one.agent.id in order and one.derivation.kind == "honest":
            by_agent[one.agent.id, one.replicate].append(one)
    decided = dict(sorted(by_agent.items(), key=lambda item: (order[item[0][0]], item[0][1])))
    names = list(dict.fromkeys(agent for agent, _ in decided))

    wrong: dict[str, list[str]] = defaultdict(list)
    checks = tuple(store.stored(rows.CHECKS))
    for record, _, text in (line.partition("\t") for check in checks for line in check.mismatches):
        wrong[record].append(text)

    def step(number: int, decision: Decision) -> StepRecord:
        """Return a decision with its settlement; payouts of delisted instruments on that day are among the fills.

        The portfolio after it is that of its own day in imported records, else of the first later day with data.
        """
        name, time = decision.record_id, times[decision.record_id]
        valued = [nav for nav in navs.get(decision.agent.id, ()) if nav.state == "ok" and nav.day >= time.day]
        if season.recorded:
            nav = next((nav for nav in valued if nav.day == time.day), None)
            account, paid = stated_book(decision), []
        else:
            nav = next((nav for nav in valued if nav.day > time.day), None)
            paid = [fill for fill in fills.get("", ()) if nav and (fill.agent, fill.day) == (nav.agent, nav.day)]
            account = None if nav is None else Account(nav.cash, nav.positions)
        all_fills, worth = (*paid, *fills.get(name, ())), None if nav is None else nav.nav
        fields = refused.get(name, ()), account, number, time.seconds, worth, tuple(wrong[name])
        return StepRecord(time.day, decision, all_fills, *fields)

    shown = {decision.context_id for decisions in decided.values() for decision in decisions}
    contexts: dict[str, Context] = {}
    last: Context | None = None
    for name, context in store.each_context(shown):  # contexts of one day share their large parts in memory
        same = {} if last is None else {part: getattr(last, part) for part in _LARGE}
        same = {part: value for part, value in same.items() if value == getattr(context, part)}
        contexts[name] = last = replace(context, **same) if same else context
    families = {agent.name: agent.family for agent in season.agents}  # an import's families come from the file
    replicates = {
        key: tuple(StepRecord(times[one.record_id].day, one) for one in decisions) for key, decisions in decided.items()
    }
    return SeasonMaterial(
        season, stored.plan_hash, stored.data.universe,
        tuple(replace(decided[name, 1][0].agent, family=families[name]) for name in names), contexts,
        {name: tuple(starmap(step, enumerate(decided[name, 1], start=1))) for name in names},
        replicates if season.replicates > 1 else {},
        tuple(row for row in store.stored(OUTCOMES) if row.record_id in times),
        {name: navs.get(name, ()) for name in names}, baselines, checks,
        any(context.completeness != "complete" for context in contexts.values()),
    )  # fmt: skip


def stated_book(decision: Decision) -> Account | None:
    """Return the portfolio that a log states after a decision; None if it states none."""
    held, cash = (decision.stages.get(name) for name in BOOK_STAGES)
    if not isinstance(held, Mapping) or not isinstance(cash, (int, float)):
        return None
    return Account(float(cash), {name: float(units) for name, units in held.items() if isinstance(units, (int, float))})


def agent_measurements(material: SeasonMaterial, grades: Sequence[rows.SeasonGrade]) -> Iterator[Measurement]:
    """Yield ``season.reliability``, ``.lookahead``, ``.thrash`` and ``.decisions`` of every agent."""
    days = sorted({step.day for steps in material.steps.values() for step in steps})
    built_in = {judge.name for judge in material.season.panel if judge.model.startswith("reference/")}
    for agent, steps in material.steps.items():
        labels = {"agent": agent}
        checks = [check for check in material.checks if check.agent == agent]
        counted = [check for check in checks if check.kind in RELIABILITY]
        n, passed = sum(check.checks for check in counted), sum(check.passed for check in counted)
        yield measured(
            "season.reliability", labels, 100.0 * passed / n if n else None, (n, "checks"),
            "100 times the share of fill, cash and position checks that reconcile", "nothing could be checked",
            {check.kind: [check.passed, check.checks] for check in checks},
        )  # fmt: skip
        said: dict[str, list[str]] = defaultdict(list)  # a judge reports look-ahead if it does so in any trial
        for grade in grades:
            answer = grade.score.grades.lookahead_check
            if grade.agent == agent and grade.scope == "whole" and grade.judge not in built_in and answer is not None:
                said[grade.judge].append(answer)  # built-in judges do not detect look-ahead
        checked: dict[str, JSON] = {name: "fail" if "fail" in found else "pass" for name, found in sorted(said.items())}
        yield measured(
            "season.lookahead", labels, list(checked.values()).count("fail") if checked else None,
            (len(checked), "judges"), "judges that say an earlier decision was graded on, or made with, later data",
            "not graded", checked,
        )  # fmt: skip
        trips, across, detail = None, 0, {}
        if material.season.has_books:  # a log may have several decisions on a day, or none
            fills: dict[str, list[tuple[str, float]]] = {day: [] for day in days}
            for step in steps:
                moved = (fill for fill in step.fills if fill.quantity and getattr(fill, "kind", "") != rows.SPLIT)
                fills[step.day] += [(fill.symbol, fill.quantity) for fill in moved]
            reversed_by, trades = thrashing(list(fills.values()), WITHIN)
            trips, across = len(reversed_by), len(days)
            names = Counter(symbol for symbol, *_ in reversed_by)
            by_symbol = dict(sorted(names.items(), key=lambda item: (-item[1], item[0])))
            detail = {"within": WITHIN, "trades": trades, "by_symbol": by_symbol}
        yield measured(
            "season.thrash", labels, trips, (across, "days"),
            "trades that take back earlier ones of the same name within some days, the latest first",
            "no fill is recorded", detail,
        )  # fmt: skip
        counts: dict[str, JSON] = {
            "rejected": sum(len(step.rejections) for step in steps),
            "silent": sum(is_unanswered(step.decision) for step in steps),
            "absent": sum(ABSENT in step.decision.flags for step in steps),
        }
        yield measured("season.decisions", labels, len(steps), (len(steps), "decisions"), "counted", detail=counts)


def return_measurements(material: SeasonMaterial, rng: np.random.Generator) -> Iterator[Measurement]:
    """Yield ``season.return`` and ``season.drawdown`` of agents and baselines, and ``season.excess`` of their pairs."""
    capital = material.season.capital
    books = [({"agent": name}, navs) for name, navs in material.navs.items()]
    books += [({"baseline": name}, navs) for name, navs in material.baselines.items()]
    for labels, navs in books:
        state, total, fall = "no days", None, None
        if navs:
            try:
                history = performance([capital, *(row.nav for row in navs)])
                state, total, fall = "ok", history.total_return, history.max_drawdown
            except InputError:
                state = "its value fell to zero"
        for name, value, method in (
            ("season.return", total, "last value over the capital, less 1"),
            ("season.drawdown", fall, "deepest fall below an earlier high, the capital being the first"),
        ):
            yield measured(name, labels, value, (len(navs), "days"), method, state, unit="share")
    for (agent, series), (baseline, other) in product(material.navs.items(), sorted(material.baselines.items())):
        # the mean daily difference, over the days on which both have a value
        base = {nav.day: nav.nav for nav in other if nav.state == "ok"}
        both = [(nav.nav, base[nav.day]) for nav in series if nav.state == "ok" and nav.day in base]
        late = bool(both) and series[0].day > other[0].day
        since = " from the end of its first day on" if late else ""
        paths = np.array(both if late else [(capital, capital), *both]).T
        labels, days = {"agent": agent, "baseline": baseline}, paths.shape[1] - 1
        excess = partial(measured, "season.excess", labels, count=(days, "days"))
        if not days or (paths <= 0).any():
            yield excess(None, method="", state="its value fell to zero" if days else "no common days")
            continue
        returns, others = (path[1:] / path[:-1] - 1.0 for path in paths)
        overall = float(paths[0][-1] / capital - paths[1][-1] / paths[1][0])
        try:
            gap = daily_excess(returns, others, rng, LEVEL)
        except NotMeasurableError:
            state = "too few days" if days < 10 else "the difference does not vary"
            yield excess(None, method="", state=state, detail={"whole": overall})
            continue
        yield excess(
            gap.value, method=f"mean daily difference{since}; {gap.method}", ends=(gap.low, gap.high), level=LEVEL,
            unit="share a day", detail={"p": gap.p, "whole": overall, "block": gap.block},
        )  # fmt: skip


def ledger_measurements(
    material: SeasonMaterial, evidence: Iterable[Evidence], grades: Iterable[rows.SeasonGrade], rng: np.random.Generator
) -> Iterator[Measurement]:
    """Yield ``season.ledger`` of every agent: the share of its numbers that its own context supports."""
    agent_of = {step.decision.record_id: agent for agent, steps in material.steps.items() for step in steps}
    numbers: dict[str, list[Evidence]] = defaultdict(list)
    for row in evidence:
        if row.decision in agent_of:
            numbers[agent_of[row.decision]].append(row)
    whole = [grade for grade in grades if grade.scope == "whole"]
    for agent, steps in material.steps.items():
        of_agent = numbers[agent]
        counts = Counter(row.state for row in of_agent)
        n, spoken = len(of_agent) - counts["own_action"], {row.decision for row in of_agent}
        pairs = [grade.score.disagreement for grade in whole if grade.agent == agent]
        compared = [pair for pair in pairs if pair is not None]
        detail: dict[str, Any] = {
            "counts": dict(sorted(counts.items())),
            "silent": sum(step.decision.record_id not in spoken for step in steps),
            "steps": len(steps),
            "claims": sum(pair.claims for pair in compared),
            "disagreements": sum(pair.overruled + pair.strict for pair in compared),
            "misquoted": sum(pair.misquoted for pair in compared),
        }
        # the agreement with the right row beyond chance
        chosen = steps[:: math.ceil(len(steps) / SAMPLED)] if steps else steps
        contexts = {step.decision.record_id: step.decision.context_id for step in chosen}
        needed = {contexts[row.decision] for row in of_agent if row.decision in contexts}
        visible = {name: ContextIndex.of(material.contexts[name]) for name in sorted(needed & material.contexts.keys())}
        with suppress(NotMeasurableError):
            value, about, parts = chance_corrected(of_agent, visible, contexts, rng)
            shares = {name: parts[name] for name in ("observed", "chance")}
            detail |= {**shares, "corrected": value, "rows": about}
        borne = sum(counts[state] for state in BORNE_OUT)
        method = "share of numbers that the agent's own material bears out"
        share = borne / n if n else None
        yield measured("season.ledger", {"agent": agent}, share, (n, "numbers"), method, "no number", detail)


# --- Notes for readers of a season ------------------------------------------------------------------------------------

_OF_STEPS: Final = "aitrader"
"""A format in which steps have timestamps, but only messages say when decisions were written."""

_MOST_DAYS: Final = 5


def _counted(key: str, about: Sized | int, **values: Value) -> Iterator[Phrase]:
    """Yield a note with the number of what it is about; nothing if there is none."""
    n = about if isinstance(about, int) else len(about)
    yield from [phrase(f"note.{key}", n, **values)] if n else []


def hindsight_notes(material: SeasonMaterial) -> Iterator[Phrase]:
    """Yield notes on decisions written down late, and on those without a time in a log of steps."""
    if not material.season.recorded:
        return
    decisions = [step.decision for steps in material.steps.values() for step in steps]
    in_time = [decision for decision in decisions if REPLAYED not in decision.flags]
    yield from _counted("records.replayed", len(decisions) - len(in_time), of=len(decisions))
    if material.season.market.format == _OF_STEPS:
        undated = sum(decision.call.timing_source == "absent" for decision in in_time)
        yield from _counted("records.undated", undated, of=len(decisions))


def record_notes(material: SeasonMaterial) -> Iterator[Phrase]:
    """Yield the notes on a season of imported records; none on a season that was run here."""
    if not material.season.recorded:
        return
    yield phrase("note.records.not_ours")
    yield from hindsight_notes(material)
    steps = [step for days in material.steps.values() for step in days]
    if any(material.navs.values()):
        yield phrase("note.records.valued")
        yield from _counted("records.not_stated", sum(step.book is None for step in steps), of=len(steps))
    else:
        yield phrase("note.records.no_books")
    checks, passed = (sum(getattr(check, name) for check in material.checks) for name in ("checks", "passed"))
    if checks:
        key = "mismatches" if passed < checks else "reconciled"
        yield phrase(f"note.records.{key}", checks - passed, of=checks)
    else:
        yield phrase("note.records.unchecked")
    spans = {name: (steps[0].day, steps[-1].day) for name, steps in material.steps.items() if steps}
    if len(material.steps) > 1:
        first, last = min(day for day, _ in spans.values()), max(day for _, day in spans.values())
        late = tuple(sorted(name for name, span in spans.items() if span != (first, last)))
        yield from _counted("records.part", late, agents=late, first=first, last=last)


def late_note(material: SeasonMaterial, grades: Sequence[rows.SeasonGrade]) -> Phrase | None:
    """Return a note if the grades cover fewer days than the season has by now."""
    judged, last = max(grade.last for grade in grades), max(steps[-1].day for steps in material.steps.values() if steps)
    return phrase("note.judged_to", judged=judged, last=last) if judged < last else None


def season_notes(
    material: SeasonMaterial, grades: Sequence[rows.SeasonGrade], measurements: Sequence[Measurement] = ()
) -> Iterator[Phrase]:
    """Yield the notes on a season, the most important first: what is incomplete, then the behaviour of agents."""
    yield from record_notes(material)
    if earlier := late_note(material, grades):
        yield earlier
    last, end = max(steps[-1].day for steps in material.steps.values() if steps), material.season.calendar.last
    if weekdays(date.fromisoformat(last[:10]) + timedelta(days=1), end).size:
        yield phrase("note.going_on", last=last, end=str(end))
    if material.partial:
        yield phrase("note.partial")
    answered = {
        name: [step.seconds for step in steps if not is_unanswered(step.decision)]
        for name, steps in sorted(material.steps.items())
    }
    untimed = tuple(name for name, times in answered.items() if times and all(seconds is None for seconds in times))
    yield from _counted("untimed", untimed, agents=untimed)
    judges = sorted({grade.judge for grade in grades})
    awaited = tuple(sorted({judge.name for judge in material.season.panel} - {*judges}))
    yield from _counted("judge_awaited", awaited, judges=awaited)
    by_judge = {judge: [grade.score.grades for grade in grades if grade.judge == judge] for judge in judges}
    for judge, horizons in by_judge.items():
        bad = sum(grades.state != "ok" for grades in horizons)
        yield from _counted("judge_silent", bad, judge=judge, of=len(horizons))
    for judge, horizons in by_judge.items():
        firsts = [part.first_key for grades in horizons for part in grades.parts]
        yield from _counted("judge_again", sum(map(bool, firsts)), judge=judge, of=len(firsts))
    for name, steps in sorted(material.steps.items()):
        absent = [step for step in steps if ABSENT in step.decision.flags]
        why, lost = "; ".join(absent[-1].decision.missing) if absent else "", len(steps) - len(answered[name])
        yield from _counted("agent_absent", absent, agent=name, of=len(steps), why=why)
        yield from _counted("agent_silent", lost - len(absent), agent=name, of=len(steps))
    refused = {name: sum(len(step.rejections) for step in steps) for name, steps in material.steps.items()}
    agents = tuple(sorted(name for name, n in refused.items() if n))
    yield from _counted("rejected", sum(refused.values()), agents=agents)
    same = {item.labels["of"] for item in measurements if item.name == NOISE and item.state == IDENTICAL}
    totals = {item.labels["agent"] for item in measurements if item.name == TOTAL and item.value is not None}
    if agents := tuple(sorted(same & totals)):
        yield phrase("note.identical", agents=agents)
    for name, steps in sorted(material.steps.items()):
        flagged = sum(INSTRUCTION_LIKE in step.decision.flags for step in steps)
        yield from _counted("instructing", flagged, agent=name, of=len(steps))
    # days without data, corporate actions and price jumps, and records graded in parts

    def few(names: Sequence[str]) -> tuple[str, ...]:
        more = len(names) - _MOST_DAYS
        return (*names[:_MOST_DAYS], *([f"+{more}"] if more > 0 else []))

    navs = [nav for history in material.navs.values() for nav in history]
    fills = [fill for steps in material.steps.values() for step in steps for fill in step.fills]
    empty = sorted({row.day for row in navs if row.state == "no data"})
    yield from _counted("no_data", empty, days=few(empty))
    yield from _counted("stale", {row.day for row in navs if row.state == "ok" and row.stale})
    for key, kinds in (("ended", (rows.DELISTED,)), ("acted", (rows.SPLIT, rows.DIVIDEND))):
        names = tuple(sorted({fill.symbol for fill in fills if getattr(fill, "kind", "") in kinds}))
        yield from _counted(key, names, names=names)
    lines = {line.partition("\t")[2] for check in material.checks for line in check.mismatches}
    places = (line.removeprefix(MOVE).partition(":")[0].rpartition(" on ") for line in lines if line.startswith(MOVE))
    moves = sorted(f"{name} {day}" for name, _, day in places)
    yield from _counted("jumped", moves, moves=few(moves))
    parts = {grade.agent: len(grade.score.grades.parts) for grade in grades if grade.scope == "whole"}
    split = tuple(sorted(name for name, n in parts.items() if n > 1))
    yield from _counted("split", split, agents=split, parts=max(parts.values(), default=0))
