"""`assaymark season judge`: have every judge grade every agent's record, whole and period by period."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any, Final

from assaymark.claims.season_plan import Season, period_of
from assaymark.engine import CallSpec, Ledger, Model, Reply, Unusable
from assaymark.engine.prices import Prices
from assaymark.errors import InputError, ModelError, Problem
from assaymark.judging import PlannedCall
from assaymark.judging.season import calls as asking
from assaymark.judging.season import plans
from assaymark.judging.season.calls import (
    GradedPart,
    HorizonGrades,
    HorizonLedger,
    HorizonTask,
    OutcomeGrade,
    horizon_score,
    outcome_grade,
)
from assaymark.judging.season.plans import ScoringPlan
from assaymark.judging.season.record import Horizon, StepRecord
from assaymark.judging.season.scoring import HIGHEST
from assaymark.market.instruments import weekdays
from assaymark.notebook import CommandResult
from assaymark.prompting import Parsed, ReplyState
from assaymark.protocol import EngineChoice
from assaymark.records import Judgment
from assaymark.report.text import counted
from assaymark.workflow.ask import (
    Forecast,
    budget_of,
    check_plan_hash,
    forecast,
    require_not_stopped,
    retry_line,
    run_all,
    unusable_of,
)
from assaymark.workflow.human_labels import SamplingFrame, stored_draw, stored_grades
from assaymark.workflow.import_records import import_named_grades
from assaymark.workflow.progress import note
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import CONTEXTS, DECISIONS, EVIDENCE, HUMAN, JUDGMENTS, OUTCOMES, Store
from assaymark.workflow.tracks import season_records as rows
from assaymark.workflow.tracks.season_day import guard, open_run, opening_calls, read_journal, steps_blocked
from assaymark.workflow.tracks.season_facts import SeasonMaterial, season_material
from assaymark.workflow.tracks.season_lock import LockedSeason, stored_season

Probe = tuple[asking.PlannedProbe, str]
"""A call of the author probe, and the period that it shows; empty for a whole record."""


class SeasonAsker:
    """Makes judging calls through the ledger, each once, and collects their replies and failures."""

    def __init__(self, folder: RunFolder, ledger: Ledger, models: Mapping[str, Model], engine: EngineChoice) -> None:
        self.folder, self.ledger, self.models, self.engine = folder, ledger, models, engine
        self.replies: dict[str, Reply] = {}
        self.responded: set[str] = set()
        self.failed: dict[str, str] = {}
        """Models none of whose calls got a reply, with the reason: they are not called again in this run."""
        self.seconds: dict[str, str] = {}
        """The keys of second calls, by the keys of calls whose reply was not JSON."""
        self.made = 0

    def ask(self, planned: Sequence[PlannedCall[Any, Any]], unusable: Unusable | None = None) -> None:
        """Make the calls without a reply. If a reply is not JSON, make one more call, and its reply counts."""
        by_key = {item.call.key: item for item in planned}
        self._ask({key: planned.call for key, planned in by_key.items()}, unusable)
        again = {
            key: planned.again().call
            for key, planned in by_key.items()
            if key not in self.seconds and planned.asks_again(self.replies[key])
        }
        self._ask({call.key: call for call in again.values()})
        self.seconds |= {key: call.key for key, call in again.items()}
        self.replies |= {key: self.replies[call.key] for key, call in again.items()}

    def _ask(self, calls_by: Mapping[str, CallSpec], unusable: Unusable | None = None) -> None:
        self.replies |= dict(self.ledger.replies([key for key in calls_by if key not in self.replies]))
        pending = {key: call for key, call in calls_by.items() if key not in self.replies}
        reasons = {key: self.failed[call.model] for key, call in pending.items() if call.model in self.failed}
        pending = {key: call for key, call in pending.items() if key not in reasons}
        if pending:
            calls = list(pending.values())
            settings = self.models, self.engine, "asking the judges", unusable
            summary = run_all(self.ledger, calls, *settings, first=False)
            self.made += summary.made
            self.replies |= dict(self.ledger.replies(list(pending)))
            lost = {key: call.model for key, call in pending.items() if key not in self.replies}
            self.responded |= {call.model for key, call in pending.items() if key not in lost}
            if lost:
                require_not_stopped(summary, self.folder)
                advice = f"every reply so far is kept in {self.folder.path}; run the same command to resume"
                budget = budget_of(self.models)
                if budget is not None and budget.stopped is not None:
                    raise ModelError(f"{budget.stopped}; {advice}", retryable=True)
                failed = {failure.key: failure.reason for failure in summary.failed}
                unasked = [key for key in lost if key not in failed]
                if unasked and not summary.stopped:
                    raise ModelError(f"{len(unasked)} calls were given up elsewhere; {advice}", retryable=True)
                reasons |= {key: failed.get(key, "; ".join(summary.stopped)) for key in lost}
                self.failed |= {model: reasons[key] for key, model in lost.items() if model not in self.responded}
        for key, reason in reasons.items():
            self.replies[key] = Reply(reason, calls_by[key].model, finish="failed")

    def grades(self, tasks: Sequence[HorizonTask]) -> list[HorizonGrades]:
        """Return the grades of all tasks, requested part by part; a task without a usable reply has grades too."""
        while due := [(task, planned) for task in tasks if (planned := task.next_call()) is not None]:
            planned_calls = [planned for _, planned in due]
            self.ask(planned_calls, unusable_of(planned_calls))
            for task, planned in due:
                key = planned.call.key
                again = self.seconds.get(key)  # a part whose second call counts has the key of that call
                task.take(planned.read(self.replies[key]), again or key, key if again else "")
        return [task.grades() for task in tasks]

    def guesses(self, probes: Sequence[Probe]) -> list[rows.SeasonGuess]:
        """Return the author guesses of the probes."""
        self.ask([planned for planned, _ in probes])
        guesses = []
        for planned, period in probes:
            call, (author, options) = planned.call, planned.about
            read = planned.read(self.replies[call.key])
            key, guess = self.seconds.get(call.key, call.key), None if read.answer is None else read.answer[0]
            about = author, planned.judge.name, call.trial
            guesses.append(rows.SeasonGuess(*about, period, len(options), read.state, guess, key))
        return guesses


@dataclass(frozen=True, slots=True, eq=False)
class SeasonPart:
    """A part of a season that is graded on its own, with the fields of `rows.SeasonGrade`."""

    agent: str
    scope: rows.GradeScope
    period: str
    replicate: int
    first: str
    last: str
    horizon: Horizon
    ledger: HorizonLedger


def season_parts(material: SeasonMaterial) -> list[SeasonPart]:
    """Return all parts to grade: whole records first, then periods in order, then replicates."""
    shown: dict[tuple[str, int], Sequence[StepRecord]] = {(name, 0): steps for name, steps in material.steps.items()}
    shown |= material.replicates
    horizons = {key: material.horizon(key[0], steps) for key, steps in shown.items()}
    decisions = [step.decision for steps in shown.values() for step in steps]
    ledgers = asking.horizon_ledgers(list(horizons.values()), decisions, material.contexts)
    parts: dict[rows.GradeScope, list[SeasonPart]] = {"whole": [], "period": [], "replicate": []}
    for ((agent, replicate), horizon), ledger in zip(horizons.items(), ledgers, strict=True):
        days = [step.day for step in shown[agent, replicate]]
        scope: rows.GradeScope = "replicate" if replicate else "whole"
        parts[scope].append(SeasonPart(agent, scope, "", replicate or 1, days[0], days[-1], horizon, ledger))
        if replicate:
            continue
        length = material.season.judging.period
        for period, steps in groupby(enumerate(days, start=1), key=lambda entry: period_of(entry[1], length)):
            (first, begin), *rest = steps
            last, end = rest[-1] if rest else (first, begin)
            cut = horizon.between(first, last)
            numbers = {number: evidence for number, evidence in ledger.items() if first <= number <= last}
            parts["period"].append(SeasonPart(agent, "period", period, 1, begin, end, cut, numbers))
    return [*parts["whole"], *sorted(parts["period"], key=lambda part: part.period), *parts["replicate"]]


def season_tasks(
    parts: Sequence[SeasonPart], season: Season, plan: ScoringPlan
) -> list[tuple[SeasonPart, HorizonTask]]:
    """Return a task for every part and judge: whole records in all trials of the judge, other parts in one."""
    judges, budget = season.model_judges, season.judging.token_budget
    return [
        (part, task)
        for part in parts
        for task in asking.horizon_tasks({part.agent: part.horizon}, judges, plan, budget, once=part.scope != "whole")
    ]


def outcomes_after(
    material: SeasonMaterial, tasks: Sequence[tuple[SeasonPart, HorizonTask]], graded: Sequence[HorizonGrades]
) -> list[list[asking.PlannedOutcome]]:
    """Return the outcome calls that follow the grades of each task: of whole records, once these have grades."""
    plan, budget = material.scoring, material.season.judging.token_budget
    return [
        asking.outcome_calls(grades, part.horizon, material.outcomes, task.judge, plan, budget)
        if part.scope == "whole" and grades.state == "ok"
        else []
        for (part, task), grades in zip(tasks, graded, strict=True)
    ]


def season_probes(parts: Sequence[SeasonPart], season: Season) -> list[Probe]:
    """Return the author probes: of every whole record, and of every period in which all agents decided."""
    judges, budget = season.model_judges, season.judging.token_budget
    probes: dict[tuple[str, str], Probe] = {}
    agents = {part.agent for part in parts}
    by_period: dict[str, dict[str, Horizon]] = {}
    for part in parts if season.judging.author_probe else ():
        if part.scope != "replicate":
            by_period.setdefault(part.period, {})[part.agent] = part.horizon
    for period, horizons in by_period.items():
        if set(horizons) == agents and len(agents) > 1:
            for probe in asking.probe_calls(horizons, judges, budget, once=bool(period)):
                probes.setdefault((probe.about[0], probe.call.key), (probe, period))
    return list(probes.values())


def grade_row(
    part: SeasonPart, grades: HorizonGrades, plan: ScoringPlan, outcome: OutcomeGrade | None
) -> rows.SeasonGrade:
    """Return one judge's score of one part."""
    score = horizon_score(grades, plan, part.horizon, part.ledger, outcome)
    return rows.SeasonGrade(
        part.agent, grades.judge, grades.family, grades.trial, part.scope, part.period, part.replicate, part.first,
        part.last, len(part.horizon.steps), score,
    )  # fmt: skip


def human_rows(
    judgments: Iterable[Judgment], parts: Iterable[SeasonPart], plan: ScoringPlan, judges: Collection[str]
) -> Iterator[rows.SeasonGrade]:
    """Yield people's grades of records and periods as season grades, capped by checked numbers like any other."""
    names = [each.name for each in (*plan.reasoning, *plan.evidence)]
    by_id = {f"{one.agent}/{one.period}" if one.period else one.agent: one for one in parts if one.scope != "replicate"}
    for judgment in judgments:
        part = by_id.get(judgment.trajectory)
        if part is None or judgment.judge not in judges:
            continue
        lacking = [name for name in names if name not in judgment.scores]
        graded = judgment.status == "ok" and not lacking
        state: ReplyState = "ok" if graded else "invalid"
        scores, steps = judgment.scores if graded else {}, len(part.horizon.steps)
        graded_part = GradedPart(1, steps, 0, False, judgment.call_key, state)
        grades = HorizonGrades(
            part.agent, judgment.judge, judgment.family, judgment.trial, part.horizon.id, asking.grader_version(plan),
            state, (graded_part,), None if graded else judgment.reason or f"not graded: {', '.join(lacking)}",
            {each.name: scores[each.name] for each in plan.reasoning if graded},
            {each.name: scores[each.name] for each in plan.evidence if graded}, judgment.scores.get("data_reliability"),
        )  # fmt: skip
        points = judgment.scores.get("outcome")
        outcome = None if points is None or part.period else OutcomeGrade(state="ok", outcome=points)
        yield grade_row(part, grades, plan, outcome)


def judged_lines(
    folder: RunFolder, season: Season, grades: Sequence[rows.SeasonGrade], guesses: Sequence[rows.SeasonGuess]
) -> list[str]:
    """Return lines on what was graded and what was not."""
    agents, judges, period = {grade.agent for grade in grades}, {grade.judge for grade in grades}, season.judging.period
    last = max(grade.last for grade in grades)
    soon = "" if _is_over(season, last) else "; the season is not over, and is graded again as it continues"
    graded = f"{counted(len(agents), 'agent')} graded by {counted(len(judges), 'judge')} up to {last}{soon}"
    states: dict[str, list[str]] = {}
    for scope, label in (("whole", "whole records"), ("period", f"{period}s"), ("replicate", "replicates")):
        states[label] = [grade.score.grades.state for grade in grades if grade.scope == scope]
    outcomes = [(grade.judge, grade.score.outcome) for grade in grades if grade.score.outcome is not None]
    states["outcomes"] = [outcome.state for _, outcome in outcomes]
    states["author identification"] = [guess.state for guess in guesses]
    shares = [f"{what} {statuses.count('ok'):,} of {len(statuses):,}" for what, statuses in states.items() if statuses]
    lines = [f"{season.name}: {graded}", ", ".join(shares)]
    parts = [(grade.judge, part.first_key, part.state) for grade in grades for part in grade.score.grades.parts]
    for judge in sorted({judge for judge, _, _ in parts}):
        again = [state for name, first, state in parts if name == judge and first]
        if again:
            lines.append(retry_line(judge, len(again), sum(name == judge for name, _, _ in parts), again.count("ok")))
    replies: list[tuple[str, str, str | None]] = [
        *((grade.judge, grade.score.grades.state, grade.score.grades.reason) for grade in grades),
        *((judge, outcome.state, outcome.reason) for judge, outcome in outcomes),
        *((guess.judge, guess.state, None) for guess in guesses),
    ]
    for judge in sorted({judge for judge, _, _ in replies}):
        states_of = [(state, reason) for name, state, reason in replies if name == judge]
        for state, (words, then) in _KINDS.items():
            if bad := [reason for kind, reason in states_of if kind == state]:
                first = next((f" (first: {reason})" for reason in bad if reason), "")
                lines.append(f"{judge}: {len(bad):,} of {len(states_of):,} replies {words}{first}; {then}")
    people = ", ".join(judge.name for judge in season.panel if judge.human and judge.name not in judges)
    advice = f"read them with: assaymark import human FILE --out {folder.path}, and judge again"
    lines += [f"no grades of people yet: {people}; {advice}"] if people else []
    if (draw := stored_draw(folder)) is not None:
        pairs = {(grade.trajectory, grade.grader) for grade in stored_grades(folder) if grade.score is not None}
        by = counted(len({grader for _, grader in pairs}), "person", "people")
        drawn = f"{len(draw.units)} of {len(draw.frame)} {period}s drawn"
        lines.append(f"people beside the panel: {counted(len(pairs), 'grade')} by {by}, {drawn}")
    return lines


_STAYS: Final = "stored verbatim and not retried"
_KINDS: Final[dict[ReplyState, tuple[str, str]]] = {
    "invalid": ("do not have the required form", _STAYS),
    "refused": ("are refusals", _STAYS),
    "truncated": ("were cut off", _STAYS),
    "failed": ("never came", "recorded, and retried by the same command"),
}


def judge_season(folder: RunFolder, models: Mapping[str, Model]) -> CommandResult[int]:
    """Have the panel grade every agent's record: whole, period by period, and the decisions of replicates.

    Returns the number of replies that are new.
    """
    stored, store = stored_season(folder), Store(folder)
    import_named_grades(folder, stored.season.human.grades)
    refuse_unjudgeable(folder, stored.season, store)
    with guard(folder.path / "season" / "judging.lock", f"{folder.path}: this season is being judged by another run"):
        with steps_blocked(folder):
            basis = judging_basis(store, stored)
            material = None if is_judged(store, stored) else season_material(folder, stored)
        season = stored.season
        if material is None:
            stand = store.read(rows.GRADES), store.read(rows.GUESSES)
            return CommandResult(0, tuple(judged_lines(folder, season, *stand)))
        note("reading the records", 0, 1)
        parts, plan = season_parts(material), material.scoring
        note("reading the records", 1, 1)
        with Ledger.open(folder.ledger) as ledger:
            check_plan_hash(folder, ledger, stored)
            asker = SeasonAsker(folder, ledger, models, season.engine)
            planned = season_tasks(parts, season, plan)
            graded = asker.grades([task for _, task in planned])
            outcome_calls = outcomes_after(material, planned, graded)
            asker.ask([planned for calls in outcome_calls for planned in calls])
            grades = []
            for (part, _), result, calls in zip(planned, graded, outcome_calls, strict=True):
                replies = [asker.replies[each.call.key] for each in calls]
                outcome = outcome_grade(calls, replies) if calls else None
                grades.append(grade_row(part, result, plan, outcome))
            guesses = asker.guesses(season_probes(parts, season))
        people = {judge.name for judge in season.panel if judge.human}
        grades += human_rows(store.stored(HUMAN), parts, plan, people)
        if all(grade.score.grades.state == "failed" for grade in grades):
            first = grades[0].score.grades
            problem = f"no judge replied (first: {first.judge}, {first.reason}); nothing was written"
            raise ModelError(f"{folder.path}: {problem}, and the same command asks again", retryable=True)
        records = [part for part in parts if part.scope == "whole"]
        replaced = [
            rows.SeasonReplaced(part.agent, line.name, line.state, line.count, line.why)
            for part in records
            for line in part.horizon.audit
        ]
        store.write(rows.REPLACED, replaced, basis)
        # the numbers in the reasons of whole records, with positions in the blinded texts
        store.write(EVIDENCE, (one for part in records for evidence in part.ledger.values() for one in evidence), basis)
        store.write(JUDGMENTS, map(rows.judgment_row, grades), basis)
        store.write(rows.GUESSES, guesses, basis)
        store.write(rows.GRADES, grades, basis)
        return CommandResult(asker.made, tuple(judged_lines(folder, season, grades, guesses)))


def judging_basis(store: Store, stored: LockedSeason) -> dict[str, str | None]:
    """Return the digests of a season's plan, of the tables shown to judges, and of grades by people."""
    tables = (CONTEXTS, DECISIONS, rows.FILLS, rows.REJECTIONS, rows.NAVS, OUTCOMES)
    labels = store.content(HUMAN)
    people = {} if labels is None else {HUMAN.name: labels}
    return {"plan": stored.plan_hash, **{table.name: store.content(table) for table in tables}, **people}


def is_judged(store: Store, stored: LockedSeason) -> bool:
    """True if the grades are complete, of the season as it is now, and no call failed without a reply."""
    basis = judging_basis(store, stored)
    if not all(store.done(table, basis) for table in (rows.GRADES, rows.GUESSES, rows.REPLACED, EVIDENCE, JUDGMENTS)):
        return False
    grades = store.read(rows.GRADES)
    states = {guess.state for guess in store.read(rows.GUESSES)} | {grade.score.grades.state for grade in grades}
    return "failed" not in states | {grade.score.outcome.state for grade in grades if grade.score.outcome is not None}


def judged_frame(folder: RunFolder) -> SamplingFrame:
    """Return the periods that people can grade in a fully judged season, on its scale of points.

    Raises `InputError` if no sample is drawn and the season is not judged to its end, because periods may change; or if
    no period has grades of all agents. A drawn sample stays readable while the season is judged again.
    """
    stored, store = stored_season(folder), Store(folder)
    season, drawn = stored.season, stored_draw(folder) is not None
    if not (drawn or is_judged(store, stored)):
        problem = "has changed since it was judged, so the periods to sample are not known"
        raise InputError(str(folder.path), [Problem("", f"{problem}; first run: assaymark season judge {folder.path}")])
    grades = store.read(rows.GRADES)
    if not (drawn or _is_over(season, last := max(grade.last for grade in grades))):
        problem = f"runs to {season.calendar.last} and is judged to {last}; its sample is drawn when it is over"
        raise InputError(str(folder.path), [Problem("", problem)])
    records, clusters = rows.judged_periods(grades)
    if not records:
        problem = f"has no {season.judging.period} in which all agents were graded, so there is nothing to draw from"
        raise InputError(str(folder.path), [Problem("", problem)])
    return SamplingFrame(records, clusters, (), (0.0, HIGHEST), season.seed, season.human)


def _is_over(season: Season, last: str) -> bool:
    return weekdays(date.fromisoformat(last[:10]) + timedelta(days=1), season.calendar.last).size == 0


def refuse_unjudgeable(folder: RunFolder, season: Season, store: Store) -> None:
    """Raise `InputError` if no judge can grade the season, or no decision was made yet."""
    if not season.model_judges and not store.stored(HUMAN):
        people = any(judge.human for judge in season.panel)
        problem = "this season has no panel of models that could grade it"
        then = "name judges in the season file ([[panel]]) and lock it in a new run folder"
        if people:
            then = f"read what people graded with: assaymark import human FILE --out {folder.path}"
        raise InputError(str(folder.path), [Problem("", f"{problem}; {then}")])
    if not store.rows(rows.TIMES):  # records imported before the season was locked have no times
        verb = "init FILE --out" if season.recorded else "run"
        problem = f"no decision was made yet; run: assaymark season {verb} {folder.path}"
        raise InputError(str(folder.path), [Problem("", problem)])


_ANSWER: Final = plans.HorizonAnswer(
    reasoning={}, evidence={}, data_reliability=0, claims=(), lookahead_check="pass", lookahead_reason="", verdict="",
    summary="", notes="word " * plans.MOST_NOTE_TOKENS,
)  # fmt: skip
"""A placeholder for the reply on an earlier part, with notes of the maximum length."""


def expect_season_run(folder: RunFolder, prices: Prices, *, now: datetime) -> Forecast:
    """Estimate the calls and the cost of `assaymark season run`. Nothing is sent or written."""
    locked = open_run(folder)
    clock, done, days = locked.data.clock(locked.season), None, []
    if entries := read_journal(folder)[0]:
        done = date.fromisoformat(entries[-1].day)
    for due in clock.due(done, now=now if locked.season.market.live else None):
        day = clock.day(due, after=done)
        days += [day] if day.quotes else []
        done = due
    calls = [call for day in days for call in opening_calls(locked.season, day, locked.season.agents)]
    estimate = forecast({"agents": calls}, folder, prices, locked.season.engine.batch)
    if len(days) > 1:
        estimate = estimate.with_note(
            f"{len(days):,} days: what agents hold later is not known; the portfolios of the start are used instead"
        )
    return estimate


def expect_season_judging(folder: RunFolder, prices: Prices) -> Forecast:
    """Estimate the calls and the cost of `assaymark season judge`. Nothing is sent or written."""
    stored, store = stored_season(folder), Store(folder)
    refuse_unjudgeable(folder, stored.season, store)
    material = season_material(folder, stored)
    season, parts, calls = stored.season, season_parts(material), list[CallSpec]()
    tasks = season_tasks(parts, season, material.scoring)
    with Ledger.open(folder.ledger, create=False) if folder.has_ledger else nullcontext() as ledger:
        for _, task in tasks:
            while (planned := task.next_call()) is not None:
                calls.append(planned.call)
                # The calls of a record in one part do not depend on replies.
                keys = [planned.call.key] if ledger is not None and len(task.parts) > 1 else []
                reply = next((one for _, one in ledger.replies(keys)), None) if ledger is not None and keys else None
                task.take(Parsed("ok", _ANSWER) if reply is None else planned.read(reply), "")
    outcomes = outcomes_after(material, tasks, [task.grades() for _, task in tasks])
    stages = {
        "grades": calls, "outcomes": [planned.call for some in outcomes for planned in some],
        "author identification": [probe.call for probe, _ in season_probes(parts, season)],
    }  # fmt: skip
    estimate = forecast(stages, folder, prices, season.engine.batch)
    if any(len(task.parts) > 1 for _, task in tasks):
        estimate = estimate.with_note(
            f"of long records later parts show a judge's notes: {plans.MOST_NOTE_TOKENS:,} words are assumed"
        )
    return estimate
