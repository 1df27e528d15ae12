"""`assaymark season judge`: every agent's record before every judge, whole and period by period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from assaymark.display import Told
from assaymark.engine import Ledger, Model
from assaymark.errors import InputError, ModelError, Problem
from assaymark.judging.season.horizon_scores import HorizonGrades, HorizonScore, OutcomeGrade, horizon_score
from assaymark.judging.season.outcome_prompts import outcome_calls
from assaymark.judging.season.plans import ScoringPlan
from assaymark.market.calendar import weekdays
from assaymark.records import Judgment
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.importing import import_grades
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.season_file import Season
from assaymark.workflow.season_journal import alone, not_stepping
from assaymark.workflow.season_judging_asking import SeasonAsker
from assaymark.workflow.season_judging_parts import (
    SeasonPart,
    asked_judges,
    season_parts,
    season_probes,
    season_tasks,
)
from assaymark.workflow.season_judging_rows import (
    evidence_rows,
    grade_row,
    guess_row,
    human_rows,
    judged_lines,
    judgment_row,
    replaced_rows,
)
from assaymark.workflow.season_material import SeasonMaterial, material_of
from assaymark.workflow.season_plan import StoredSeason, stored_season
from assaymark.workflow.season_records import (
    FILLS,
    GRADES,
    GUESSES,
    NAVS,
    REJECTIONS,
    REPLACED,
    TIMES,
    SeasonGrade,
    SeasonGuess,
)
from assaymark.workflow.sharing import hold_ledger
from assaymark.workflow.tables import CONTEXTS, DECISIONS, EVIDENCE, HUMAN, JUDGMENTS, OUTCOMES, Store


@dataclass(frozen=True, slots=True, repr=False)
class SeasonJudged(Told):
    """What judging did: how many replies came now, and lines for whoever called."""

    made: int
    lines: tuple[str, ...]


def judge_season(folder: RunFolder, models: Mapping[str, Model], *, progress: Progress = silent) -> SeasonJudged:
    """Have the panel grade every agent's record: whole, period by period, and the decisions of replicates.

    Outcomes are shown once the grades of a record are there, in a call of their own, and on whole records alone. A
    judge that refuses, answers nonsense or never answers is recorded. People of the panel are not asked: their grades
    are read as they were imported (`import_grades`, or the file that the plan names). A call with a reply in the ledger
    is never made again, so it can be killed and called again; and a season that has gone on is graded anew, to its last
    day.

    Raises
    ------
    InputError
        No panel of models, or no decision yet.
    PlanError
        No season is locked here, or its file changed after the lock.
    LedgerError
        Somebody else judges or steps this season now, or a table is damaged.
    ModelError
        Its budget is used up, or no judge answered anything; nothing is written then, and what was answered is kept.
    StoppedError
        The run was asked to stop; what was answered is kept.
    """
    stored, store = stored_season(folder), Store(folder)
    _take_grades(folder, stored.season)
    refuse_unjudgeable(folder, stored.season, store)
    with alone(folder.path / "season" / "judging.lock", f"{folder.path}: this season is being judged by another run"):
        with not_stepping(folder):
            basis = judging_basis(store, stored)
            done = is_judged(store, stored)
            material = None if done else material_of(store, stored)
        if material is None:
            return SeasonJudged(0, tuple(_lines(folder, stored.season, store.read(GRADES), store.read(GUESSES))))
        progress("reading the records", 0, 1)
        parts = season_parts(material)
        progress("reading the records", 1, 1)
        with Ledger.open(folder.ledger) as ledger:
            hold_ledger(folder, ledger, stored)
            asker = SeasonAsker(folder, ledger, models, stored.season.engine, progress)
            grades, guesses = _graded(asker, material, parts)
        people = {one.name for one in stored.season.panel if one.human}
        grades += human_rows(_given(store), parts, material.scoring, people)
        _require_some(folder, grades)
        _write(store, basis, parts, grades, guesses)
        return SeasonJudged(asker.made, tuple(_lines(folder, stored.season, grades, guesses)))


def judging_basis(store: Store, stored: StoredSeason) -> dict[str, str | None]:
    """What the grades of a season are made from: its plan, the tables that judges are shown, and people's grades."""
    tables = (CONTEXTS, DECISIONS, FILLS, REJECTIONS, NAVS, OUTCOMES)
    given = store.content(HUMAN)
    people = {} if given is None else {HUMAN.name: given}
    return {"plan": stored.plan_hash, **{table.name: store.content(table) for table in tables}, **people}


def is_judged(store: Store, stored: StoredSeason) -> bool:
    """Whether the grades are whole, of the season as it is now, and no call is left that never brought a reply."""
    basis = judging_basis(store, stored)
    if not all(store.done(table, basis) for table in (GRADES, GUESSES, REPLACED, EVIDENCE, JUDGMENTS)):
        return False
    failed = any(one.state == "failed" for one in store.read(GUESSES))
    return not failed and not any(_failed(one) for one in store.read(GRADES))


def _failed(one: SeasonGrade) -> bool:
    outcome = one.score.outcome
    return one.score.grades.state == "failed" or (outcome is not None and outcome.state == "failed")


def refuse_unjudgeable(folder: RunFolder, season: Season, store: Store) -> None:
    """See that there is somebody who can grade, and something to be graded.

    Raises
    ------
    InputError
        Neither a panel of models nor grades of people, or no decision yet.
    """
    if not asked_judges(season) and not _given(store):
        people = any(one.human for one in season.panel)
        what = "this season has no panel of models that could grade it"
        then = "name judges in the season file ([[panel]]) and lock it in a new run folder"
        if people:
            then = f"read what people graded with: assaymark import human FILE --out {folder.path}"
        raise InputError(str(folder.path), [Problem("", f"{what}; {then}")])
    if not store.rows(TIMES):  # an import leaves decisions before a season of them is locked
        verb = "init FILE --out" if season.recorded else "run"
        what = f"no decision was made yet; run: assaymark season {verb} {folder.path}"
        raise InputError(str(folder.path), [Problem("", what)])


def _given(store: Store) -> Sequence[Judgment]:
    """What people graded, as far as it was imported."""
    return store.read(HUMAN) if store.digest(HUMAN) is not None else ()


def _take_grades(folder: RunFolder, season: Season) -> None:
    """Read the file of grades that the season file names, if it is there: in the run folder, or as it is named."""
    if season.human.grades is None:
        return
    for path in (folder.path / season.human.grades, Path(season.human.grades)):
        if path.is_file():
            import_grades(folder, path)
            return


def _graded(
    asker: SeasonAsker, material: SeasonMaterial, parts: Sequence[SeasonPart]
) -> tuple[list[SeasonGrade], list[SeasonGuess]]:
    """Ask everything: grades first, outcomes once they are there, author identification last."""
    season = material.season
    plan, judges, budget = material.scoring, asked_judges(season), season.judging.token_budget
    planned = season_tasks(parts, judges, plan, budget=budget)
    given = asker.grades([task for _, task in planned])
    outcomes = asker.outcomes(
        [
            outcome_calls(grades, part.horizon, material.outcomes, task.judge, plan, budget=budget)
            if part.scope == "whole" and grades.state == "ok"
            else []
            for (part, task), grades in zip(planned, given, strict=True)
        ]
    )
    rows = [
        grade_row(part, _score(part, grades, outcome, plan))
        for (part, _), grades, outcome in zip(planned, given, outcomes, strict=True)
    ]
    probes = season_probes(parts, judges, budget=budget) if season.judging.author_probe else []
    return rows, [guess_row(*one) for one in asker.guesses(probes)]


def _score(part: SeasonPart, grades: HorizonGrades, outcome: OutcomeGrade | None, plan: ScoringPlan) -> HorizonScore:
    return horizon_score(grades, plan, horizon=part.horizon, ledger=part.ledger, outcome=outcome)


def _require_some(folder: RunFolder, grades: Sequence[SeasonGrade]) -> None:
    """See that somebody answered at all."""
    if all(one.score.grades.state == "failed" for one in grades):
        first = next(one.score.grades for one in grades)
        what = f"no judge answered anything (first: {first.judge}, {first.reason}); nothing was written, and the same "
        raise ModelError(f"{folder.path}: {what}command asks again", retryable=True)


def _write(
    store: Store,
    basis: Mapping[str, str | None],
    parts: Sequence[SeasonPart],
    grades: Sequence[SeasonGrade],
    guesses: Sequence[SeasonGuess],
) -> None:
    """The tables; grades last, so that whoever finds them done finds the others done."""
    store.write(REPLACED, replaced_rows(parts), basis)
    store.write(EVIDENCE, evidence_rows(parts), basis)
    store.write(JUDGMENTS, map(judgment_row, grades), basis)
    store.write(GUESSES, guesses, basis)
    store.write(GRADES, grades, basis)


def _lines(
    folder: RunFolder, season: Season, grades: Sequence[SeasonGrade], guesses: Sequence[SeasonGuess]
) -> list[str]:
    last = max(one.last for one in grades)
    over = weekdays(date.fromisoformat(last[:10]) + timedelta(days=1), season.calendar.last).size == 0
    lines = judged_lines(season.name, grades, guesses, last, over, season.judging.period)
    graded = {one.judge for one in grades}
    people = ", ".join(one.name for one in season.panel if one.human and one.name not in graded)
    how = f"read them with: assaymark import human FILE --out {folder.path}, and judge again"
    return [*lines, *([f"no grades of people yet: {people}; {how}"] if people else [])]
