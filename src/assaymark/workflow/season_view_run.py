"""A judged season as one view, from its tables: what `report.season` makes a site of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from assaymark import __version__
from assaymark.claims.season_types import SeasonVerdicts
from assaymark.judging.season.table import SeasonTable
from assaymark.records import Evidence, Measurement
from assaymark.report.season.inputs import SeasonClaimLine, SeasonRun
from assaymark.workflow.season_judging_parts import season_horizons
from assaymark.workflow.season_material import SeasonMaterial
from assaymark.workflow.season_plan import StoredSeason
from assaymark.workflow.season_records import (
    GRADES,
    GUESSES,
    REPLACED,
    SeasonGrade,
    SeasonGuess,
    SeasonReplaced,
)
from assaymark.workflow.season_view import season_agents, season_judges, season_paths, season_steps
from assaymark.workflow.season_view_grades import blinding_of, grade_views
from assaymark.workflow.season_view_ledger import claims_by_judge, ledger_view
from assaymark.workflow.season_view_notes import season_notes
from assaymark.workflow.season_view_rules import season_rules
from assaymark.workflow.tables import EVIDENCE, Store


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
    stored: StoredSeason,
    material: SeasonMaterial,
    judged: SeasonJudgments,
    found: SeasonFindings,
    *,
    sheets: Collection[str] = (),
) -> SeasonRun:
    """The season as its site shows it. ``sheets`` are the judges with a datasheet."""
    season = stored.season
    days = sorted({one.day for steps in material.steps.values() for one in steps})
    return SeasonRun(
        name=season.name,
        title=season.title,
        plan_hash=stored.plan_hash,
        locked_at=stored.locked_at,
        software=__version__,
        first=days[0],
        last=days[-1],
        days=len(days),
        currency=season.currency,
        capital=season.capital if season.has_books else None,
        universe=stored.universe,
        prompt=season.prompt,
        scoring=material.scoring,
        agents=season_agents(season),
        judges=season_judges(season, sheets),
        paths=season_paths(material),
        steps=season_steps(material),
        ledger=claim_ledgers(material, judged),
        grades=grade_views(judged.grades, {one.name for one in season.panel if one.model.startswith("reference/")}),
        table=found.table,
        decided=found.decided,
        measurements=found.measurements,
        blinding=blinding_of(judged.replaced),
        rules=season_rules(season),
        source=_source(material),
        partial=material.partial,
        notes=season_notes(material, judged.grades, found.measurements),
    )


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
    """Who ran a season that was not run here, as its records say."""
    if not material.season.recorded:
        return ""
    sources: Sequence[str] = [
        one.decision.provenance.source for steps in material.steps.values() for one in steps if one.decision.provenance
    ]
    return ", ".join(sorted({*sources}))
