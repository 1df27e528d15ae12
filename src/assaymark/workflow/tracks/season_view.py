"""Who took part in a season and what happened in it, as its site shows it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from assaymark import __version__
from assaymark.agents.llm import NOT_USABLE, REJECTED
from assaymark.claims.season_types import SeasonVerdicts
from assaymark.judging.season.record import AuditLine, AuditState, StepRecord
from assaymark.judging.season.table import SeasonTable
from assaymark.records import Action, Evidence, Measurement
from assaymark.report.datasheet import datasheet_path
from assaymark.report.season.inputs import (
    SeasonAgent,
    SeasonClaimLine,
    SeasonGradeView,
    SeasonJudge,
    SeasonPath,
    SeasonRefusal,
    SeasonRun,
    SeasonStep,
    SeasonTrade,
)
from assaymark.workflow.tables import EVIDENCE, Store
from assaymark.workflow.tracks.season_judge import season_horizons
from assaymark.workflow.tracks.season_lock import StoredSeason
from assaymark.workflow.tracks.season_material import SeasonMaterial
from assaymark.workflow.tracks.season_plan import RECORDS, Season
from assaymark.workflow.tracks.season_record_tables import (
    GRADES,
    GUESSES,
    REPLACED,
    SeasonCheck,
    SeasonGrade,
    SeasonGuess,
    SeasonNav,
    SeasonRejection,
    SeasonReplaced,
)
from assaymark.workflow.tracks.season_view_rules import claims_by_judge, ledger_view, season_notes, season_rules

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
            name=one.name, family=one.family, model=one.model, human=one.human, trials=one.trials,
            datasheet=datasheet_path(one.name) if one.name in sheets else None,
        )
        for one in season.panel
    )  # fmt: skip


def season_paths(material: SeasonMaterial) -> tuple[SeasonPath, ...]:
    """Net asset values of the agents and then of the baselines, day by day."""
    start = material.season.capital
    books = [(name, False, rows) for name, rows in material.navs.items()]
    books += [(name, True, rows) for name, rows in sorted(material.baselines.items())]
    return tuple(
        SeasonPath(
            name=name, baseline=baseline, start=start, days=tuple(one.day for one in rows),
            nav=tuple(one.nav for one in rows),
        )
        for name, baseline, rows in books
        if rows
    )  # fmt: skip


def season_steps(material: SeasonMaterial) -> dict[str, tuple[SeasonStep, ...]]:
    """Every decision of the first replicate with what came of it, by agent."""
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
    """An order as it was given: its kind, its instrument, and its numbers."""
    numbers = [f"{name} {value:.10g}" for name in _NUMBERS if (value := getattr(action, name)) is not None]
    return ", ".join([f"{action.kind} {action.instrument}".strip(), *numbers])


def _step(
    number: int, one: StepRecord, nav: SeasonNav | None, seconds: float | None, mismatches: Sequence[str]
) -> SeasonStep:
    decision = one.decision
    told = {*NOT_USABLE, REJECTED} & {*decision.flags}
    return SeasonStep(
        number=number,
        day=one.day,
        record_id=decision.record_id,
        orders=tuple(order_text(action) for action in decision.actions),
        texts=tuple((text.kind, text.text) for text in decision.rationales),
        fills=tuple(
            SeasonTrade(
                symbol=fill.symbol, quantity=fill.quantity, price=fill.price, cost=fill.cost,
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
        problem="; ".join(decision.missing) if told else "",
        seconds=seconds,
        nav=None if nav is None else nav.nav,
        cash=None if one.book is None else one.book.cash,
        positions={} if one.book is None else dict(sorted(one.book.positions.items())),
        mismatches=tuple(mismatches),
    )  # fmt: skip


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
    found: dict[str, list[str]] = defaultdict(list)
    for check in checks:
        for line in check.mismatches:
            record, _, text = line.partition("\t")
            found[record].append(text)
    return found


def grade_views(grades: Iterable[SeasonGrade], built_in: Collection[str] = ()) -> tuple[SeasonGradeView, ...]:
    """The grades of whole records, by agent and then judge."""
    found: dict[tuple[str, str], list[SeasonGrade]] = defaultdict(list)
    for one in sorted(grades, key=lambda one: (one.agent, one.judge, one.trial)):
        if one.scope == "whole":
            found[one.agent, one.judge].append(one)
    views = map(_view, found.values())
    return tuple(replace(one, lookahead=None, lookahead_reason="") if one.judge in built_in else one for one in views)


def blinding_of(rows: Iterable[SeasonReplaced]) -> dict[str, tuple[AuditLine, ...]]:
    """What blinding did in each agent's record."""
    found: dict[str, list[AuditLine]] = defaultdict(list)
    for one in sorted(rows, key=lambda one: (one.agent, one.state, -one.count, one.name)):
        state: AuditState = "replaced" if one.state == "replaced" else "kept"
        found[one.agent].append(AuditLine(one.name, state, one.count, one.why))
    return {agent: tuple(lines) for agent, lines in found.items()}


def _view(trials: Sequence[SeasonGrade]) -> SeasonGradeView:
    first = trials[0]
    good = [(one.score.grades, one.score.score, one) for one in trials if one.score.score is not None]
    if not good:
        grades = first.score.grades
        return SeasonGradeView(
            agent=first.agent, judge=first.judge, state=grades.state, reason=grades.reason or "",
            parts=len(grades.parts),
        )  # fmt: skip
    scores = [score for _, score, _ in good if score is not None]
    words = good[0][0]
    failed = next((grades for grades, _, _ in good if grades.lookahead_check == "fail"), None)
    outcomes = [score.outcome for score in scores if score.outcome is not None]
    given = [grades.data_reliability for grades, _, _ in good]
    points = [one for one in given if one is not None]
    return SeasonGradeView(
        agent=first.agent,
        judge=first.judge,
        state="ok",
        composite=fmean(score.composite for score in scores),
        axes={name: fmean(getattr(one, name) for one in scores) for name in ("reasoning", "evidence", "process")},
        reasoning=_means([grades.reasoning for grades, _, _ in good]),
        evidence=_means(
            [
                {**one.score.grades.evidence, **{part.part: part.counted for part in one.score.capped}}
                for _, _, one in good
            ]
        ),
        capped=_given([one for _, _, one in good]),
        outcome=fmean(outcomes) if outcomes else None,
        outcome_state=_outcome_state([one for _, _, one in good]),
        data_reliability=fmean(points) if points else None,
        lookahead=(failed or words).lookahead_check,
        lookahead_reason=(failed or words).lookahead_reason,
        verdict=words.verdict,
        summary=words.summary,
        parts=len(words.parts),
    )


def _means(points: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: fmean(one[name] for one in points) for name in points[0]}


def _given(trials: Sequence[SeasonGrade]) -> dict[str, float]:
    """What the judge had given to parts that were lowered in some trial."""
    lowered = {part.part for one in trials for part in one.score.capped if part.counted < part.given}
    return {name: fmean(one.score.grades.evidence[name] for one in trials) for name in sorted(lowered)}


def _outcome_state(trials: Sequence[SeasonGrade]) -> str:
    """``ok``, ``unresolved`` where nobody could be asked, or why the judge's replies are no grade."""
    outcomes = [one.score.outcome for one in trials if one.score.outcome is not None]
    if not outcomes:
        return "unresolved"
    return next((one.state for one in outcomes if one.state == "ok"), outcomes[0].state)


@dataclass(frozen=True, slots=True)
class SeasonJudgments:
    """What judging left: grades and guesses, every number beside its material, and what blinding did."""

    grades: tuple[SeasonGrade, ...]
    guesses: tuple[SeasonGuess, ...]
    evidence: tuple[Evidence, ...]
    replaced: tuple[SeasonReplaced, ...]

    @classmethod
    def read(cls, store: Store) -> SeasonJudgments:
        """From the tables of a run folder."""
        return cls(*(tuple(store.read(table)) for table in (GRADES, GUESSES, EVIDENCE, REPLACED)))


@dataclass(frozen=True, slots=True, eq=False)
class SeasonFindings:
    """What follows from a judged season: its numbers, its table, and what may be said."""

    measurements: tuple[Measurement, ...]
    table: SeasonTable
    decided: SeasonVerdicts


def season_run(
    stored: StoredSeason, material: SeasonMaterial, judged: SeasonJudgments, found: SeasonFindings, *,
    sheets: Collection[str] = (),
) -> SeasonRun:  # fmt: skip
    """The season as its site shows it. ``sheets`` are the judges with a datasheet."""
    season = stored.season
    days = sorted({one.day for steps in material.steps.values() for one in steps})
    return SeasonRun(
        name=season.name, title=season.title, plan_hash=stored.plan_hash, locked_at=stored.locked_at,
        software=__version__, first=days[0], last=days[-1], days=len(days), currency=season.currency,
        capital=season.capital if season.has_books else None, universe=stored.universe, prompt=season.prompt,
        scoring=material.scoring, agents=season_agents(season), judges=season_judges(season, sheets),
        paths=season_paths(material), steps=season_steps(material), ledger=claim_ledgers(material, judged),
        grades=grade_views(judged.grades, {one.name for one in season.panel if one.model.startswith("reference/")}),
        table=found.table, decided=found.decided, measurements=found.measurements,
        blinding=blinding_of(judged.replaced), rules=season_rules(season), source=_source(material),
        partial=material.partial, notes=season_notes(material, judged.grades, found.measurements),
    )  # fmt: skip


def claim_ledgers(material: SeasonMaterial, judged: SeasonJudgments) -> dict[str, tuple[SeasonClaimLine, ...]]:
    """The claim ledger of every agent, over its texts as the judges saw them."""
    numbers: dict[str, list[Evidence]] = defaultdict(list)
    for one in judged.evidence:
        numbers[one.decision].append(one)
    return {
        agent: ledger_view(horizon, numbers, claims_by_judge(judged.grades, agent), material.contexts)
        for agent, horizon in season_horizons(material).items()
    }


def _source(material: SeasonMaterial) -> str:
    if not material.season.recorded:
        return ""
    sources: Sequence[str] = [
        one.decision.provenance.source for steps in material.steps.values() for one in steps if one.decision.provenance
    ]
    return ", ".join(sorted({*sources}))
