"""Who took part in a season and what happened in it, as its site shows it."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import fmean

from assaymark import __version__
from assaymark.agents.llm import NOT_USABLE, REJECTED
from assaymark.claims.season_claims import SeasonVerdicts
from assaymark.judging.season.record import AuditLine, AuditState
from assaymark.judging.season.table import SeasonTable
from assaymark.market.instruments import weekdays
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
from assaymark.workflow.tracks.season_context import SeasonMaterial
from assaymark.workflow.tracks.season_judge import season_horizons
from assaymark.workflow.tracks.season_lock import StoredSeason
from assaymark.workflow.tracks.season_measure import AXES
from assaymark.workflow.tracks.season_plan import RECORDS, Season
from assaymark.workflow.tracks.season_records import (
    GRADES,
    GUESSES,
    REPLACED,
    SeasonGrade,
    SeasonGuess,
    SeasonRejection,
    SeasonReplaced,
)
from assaymark.workflow.tracks.season_view_rules import claims_by_judge, ledger_view, season_notes, season_rules

_NUMBERS = ("quantity", "weight", "price", "leverage", "stop", "target", "confidence", "expected_return")


def season_agents(season: Season) -> tuple[SeasonAgent, ...]:
    """Who traded, in the order of the season file; a model of records is called what they call it."""
    return tuple(
        SeasonAgent(
            name=one.name, family=one.family, strategy=season.strategies.get(one.name, ""),
            model=one.model.removeprefix(f"{RECORDS}/") if season.recorded else one.model,
        )
        for one in season.agents
    )  # fmt: skip


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


def order_text(action: Action) -> str:
    """An order as it was given: its kind, its instrument, and its numbers."""
    numbers = [f"{name} {value:.10g}" for name in _NUMBERS if (value := getattr(action, name)) is not None]
    return ", ".join([f"{action.kind} {action.instrument}".strip(), *numbers])


def season_steps(material: SeasonMaterial) -> dict[str, tuple[SeasonStep, ...]]:
    """Every decision of the first replicate with what came of it, by agent.

    The book after a decision is of its own day in records, and else of the first later day that settled anything.
    """
    wrong: dict[str, list[str]] = defaultdict(list)
    for check in material.checks:
        for line in check.mismatches:
            record, _, text = line.partition("\t")
            wrong[record].append(text)
    found = {}
    for name, steps in material.steps.items():
        settled = [one for one in material.navs[name] if one.state == "ok"]
        same_day, days = {one.day: one for one in settled}, [one.day for one in settled]
        made = []
        for number, one in enumerate(steps, start=1):
            at = bisect_right(days, one.day)
            later = settled[at] if at < len(settled) else None
            nav = same_day.get(one.day) if material.season.recorded else later
            decision, book = one.decision, one.book
            told = {*NOT_USABLE, REJECTED} & {*decision.flags}
            fills = tuple(
                SeasonTrade(
                    symbol=fill.symbol, quantity=fill.quantity, price=fill.price, cost=fill.cost,
                    kind=getattr(fill, "kind", "order"),
                )
                for fill in one.fills
            )  # fmt: skip
            refusals = tuple(
                SeasonRefusal(
                    symbol=order.symbol, reason=order.reason,
                    text=order.text if isinstance(order, SeasonRejection) else order.reason,
                )
                for order in one.rejections
            )  # fmt: skip
            made.append(
                SeasonStep(
                    number=number, day=one.day, record_id=decision.record_id,
                    orders=tuple(order_text(action) for action in decision.actions),
                    texts=tuple((text.kind, text.text) for text in decision.rationales),
                    fills=fills, refusals=refusals, flags=decision.flags,
                    problem="; ".join(decision.missing) if told else "",
                    seconds=material.seconds.get(decision.record_id), nav=None if nav is None else nav.nav,
                    cash=None if book is None else book.cash,
                    positions={} if book is None else dict(sorted(book.positions.items())),
                    mismatches=tuple(wrong.get(decision.record_id, ())),
                )
            )  # fmt: skip
        found[name] = tuple(made)
    return found


def grade_views(grades: Iterable[SeasonGrade], built_in: Collection[str] = ()) -> tuple[SeasonGradeView, ...]:
    """The grades of whole records, by agent and then judge: means over trials, and the words of the first."""
    found: dict[tuple[str, str], list[SeasonGrade]] = defaultdict(list)
    for one in sorted(grades, key=lambda one: (one.agent, one.judge, one.trial)):
        if one.scope == "whole":
            found[one.agent, one.judge].append(one)
    views = []
    for (agent, judge), trials in found.items():
        good = [(one.score, one.score.grades, one.score.score) for one in trials if one.score.score is not None]
        if not good:
            first = trials[0].score.grades
            views.append(
                SeasonGradeView(
                    agent=agent, judge=judge, state=first.state, reason=first.reason or "", parts=len(first.parts)
                )
            )
            continue
        words = good[0][1]
        looked = next((one for _, one, _ in good if one.lookahead_check == "fail"), words)
        scores = [score for _, _, score in good if score is not None]
        outcomes = [score.outcome for score in scores if score.outcome is not None]
        asked = [one.outcome.state for one, _, _ in good if one.outcome is not None]
        points = [one.data_reliability for _, one, _ in good if one.data_reliability is not None]
        counted = [{**one.grades.evidence, **{part.part: part.counted for part in one.capped}} for one, _, _ in good]
        lowered = sorted({part.part for one, _, _ in good for part in one.capped if part.counted < part.given})
        said = judge not in built_in
        views.append(
            SeasonGradeView(
                agent=agent, judge=judge, state="ok", composite=fmean(score.composite for score in scores),
                axes={name: fmean(getattr(one, name) for one in scores) for name in AXES},
                reasoning=_means([one.reasoning for _, one, _ in good]), evidence=_means(counted),
                capped={name: fmean(one.evidence[name] for _, one, _ in good) for name in lowered},
                outcome=fmean(outcomes) if outcomes else None,
                outcome_state="ok" if "ok" in asked else next(iter(asked), "unresolved"),
                data_reliability=fmean(points) if points else None,
                lookahead=looked.lookahead_check if said else None,
                lookahead_reason=looked.lookahead_reason if said else "",
                verdict=words.verdict, summary=words.summary, parts=len(words.parts),
            )
        )  # fmt: skip
    return tuple(views)


def _means(points: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: fmean(one[name] for one in points) for name in points[0]}


def blinding_of(rows: Iterable[SeasonReplaced]) -> dict[str, tuple[AuditLine, ...]]:
    """What blinding did in each agent's record."""
    found: dict[str, list[AuditLine]] = defaultdict(list)
    for one in sorted(rows, key=lambda one: (one.agent, one.state, -one.count, one.name)):
        state: AuditState = "replaced" if one.state == "replaced" else "kept"
        found[one.agent].append(AuditLine(one.name, state, one.count, one.why))
    return {agent: tuple(lines) for agent, lines in found.items()}


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
    steps = [one for ones in material.steps.values() for one in ones]
    days = sorted({one.day for one in steps})
    decided = max(one.decision.decided_at for one in steps)
    left = [] if season.recorded else [*map(str, weekdays(date.fromisoformat(days[-1]), season.calendar.last))]
    ahead = [day for day in left if day > days[-1]]
    next_at = f"{ahead[0]}T{season.calendar.decide_at.isoformat()}+00:00" if ahead and season.market.live else ""
    sources = {one.decision.provenance.source for one in steps if one.decision.provenance}
    return SeasonRun(
        name=season.name, title=season.title, plan_hash=stored.plan_hash, locked_at=stored.locked_at,
        software=__version__, first=days[0], last=days[-1], days=len(days), currency=season.currency,
        capital=season.capital if season.has_books else None, universe=stored.universe, prompt=season.prompt,
        scoring=material.scoring, agents=season_agents(season), judges=season_judges(season, sheets),
        paths=season_paths(material), steps=season_steps(material), ledger=claim_ledgers(material, judged),
        grades=grade_views(judged.grades, {one.name for one in season.panel if one.model.startswith("reference/")}),
        table=found.table, decided=found.decided, measurements=found.measurements,
        blinding=blinding_of(judged.replaced), rules=season_rules(season),
        source=", ".join(sorted(sources)) if season.recorded else "", partial=material.partial,
        notes=season_notes(material, judged.grades, found.measurements), planned=len(days) + len(ahead),
        closes=str(season.calendar.last), decided_at=decided.isoformat(), next_decision=next_at,
        live=season.market.live,
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
