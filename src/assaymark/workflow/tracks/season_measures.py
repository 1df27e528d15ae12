"""Everything that is measured of a judged season, from its tables: numbers with their denominators and intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Protocol

import numpy as np

from assaymark.agents.llm import NOT_USABLE
from assaymark.claims.evidence import SeasonGates
from assaymark.judging import token_count
from assaymark.judging.season.scoring import DecisionTime, decision_time
from assaymark.judging.season.table import SeasonTable
from assaymark.metrology.datasheet import Datasheet, limit_measurements
from assaymark.metrology.measure_panel import flagged_measurements
from assaymark.prompting.texts import INSTRUCTION_LIKE
from assaymark.protocol import DatasheetLimits, JudgeSpec
from assaymark.records import CallFacts, Evidence, Measurement
from assaymark.workflow.tracks.season_judge import asked_judges
from assaymark.workflow.tracks.season_material import SeasonMaterial
from assaymark.workflow.tracks.season_measure import (
    SeasonReplies,
    agent_measurements,
    ledger_measurements,
    return_measurements,
    season_scores,
)
from assaymark.workflow.tracks.season_measure_judges import (
    Tokens,
    judge_measurements,
    kappa_measurement,
    probe_measurements,
    reply_measurements,
    season_orders,
)
from assaymark.workflow.tracks.season_measure_table import judge_noise, season_totals, table_measurements
from assaymark.workflow.tracks.season_plan import period_of
from assaymark.workflow.tracks.season_record_tables import SeasonGrade, SeasonGuess

BASELINE: Final = SeasonGates().baseline
LEVEL: Final = 0.95
"""Coverage of the intervals. Tests of claims go by the plan's alpha."""


class Judged(Protocol):
    """What judging left."""

    @property
    def grades(self) -> Sequence[SeasonGrade]:
        """Of whole records, periods and replicates."""
        ...

    @property
    def guesses(self) -> Sequence[SeasonGuess]:
        """At authors."""
        ...

    @property
    def evidence(self) -> Sequence[Evidence]:
        """Every number of the whole records beside its material."""
        ...


@dataclass(frozen=True, slots=True)
class _Demand:
    """What a season asks of its judges' datasheets."""

    datasheets: DatasheetLimits
    model_judges: Sequence[JudgeSpec]


def season_findings(
    material: SeasonMaterial, judged: Judged, sheets: Sequence[Datasheet] = (), *, rng: np.random.Generator
) -> tuple[list[Measurement], SeasonTable]:
    """The measurements of a judged season, and its table."""
    season, plan = material.season, material.scoring
    agreement, returns, rows = rng.spawn(3)
    names = [one.name for one in season.agents]
    replies = SeasonReplies.of(judged.grades, names, season.missing)
    grades = [one for one in judged.grades if one.judge not in replies.left_out]
    scores = season_scores(judged.grades, names, replies.left_out)
    times = {agent: _time(material, agent) for agent in scores.agents}
    silent = {agent for agent in scores.agents if not _answers(material, agent)}
    totals = season_totals(scores, times, plan, silent=silent)
    families, tokens = {one.name: one.family for one in season.agents}, written(material)
    earned = [*return_measurements(material, level=LEVEL, rng=returns)]
    compared = len([row for row in totals.table.rows if row.total is not None]) > 1
    # As in `decide_season`: orders share the error rate with the comparisons with a baseline.
    shared = compared and any(one.name == "season.excess" and one.labels["baseline"] == BASELINE for one in earned)
    inference = season.inference.model_copy(update={"alpha": season.inference.alpha / (1 + shared)})
    orders = season_orders(
        totals, families, tokens, inference, claims=season.claims, order=season.cluster_order, level=LEVEL
    )
    found = [
        *table_measurements(totals),
        *orders,
        kappa_measurement(totals.heard, plan, level=LEVEL, rng=agreement, order=season.cluster_order),
        *judge_measurements(totals, families, tokens, level=LEVEL, order=season.cluster_order),
        *judge_noise(totals.heard),
        *probe_measurements(judged.guesses, level=LEVEL),
        *reply_measurements(judged.grades, judged.guesses, replies),
        *agent_measurements(material, grades),
        *earned,
        *ledger_measurements(material, judged.evidence, grades, rng=rows),
        *flagged_measurements(_flagged(material, scores.agents), level=LEVEL),
    ]
    if season.datasheets is not None:
        demand = _Demand(season.datasheets, asked_judges(season))
        found += limit_measurements({one.judge: one for one in sheets}, demand)
    return found, totals.table


def _flagged(material: SeasonMaterial, agents: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Agent, period and flag of every decision that was graded, for `flagged_measurements`."""
    for agent in agents:
        for step in material.steps.get(agent, ()):
            period = period_of(step.day, material.season.judging.period)
            yield agent, period, INSTRUCTION_LIKE in step.decision.flags


def _answers(material: SeasonMaterial, agent: str) -> list[str]:
    decisions = (step.decision for step in material.steps.get(agent, ()))
    return [one.record_id for one in decisions if not {*NOT_USABLE} & {*one.flags}]


def _time(material: SeasonMaterial, agent: str) -> DecisionTime:
    seconds = map(material.seconds.get, _answers(material, agent))
    return decision_time(
        CallFacts(seconds=one, timing_source="absent" if one is None else "measured") for one in seconds
    )


def written(material: SeasonMaterial) -> Tokens:
    """How many words of rationale every agent wrote in each period, per decision: a short week is no terse one."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for agent, steps in material.steps.items():
        for step in steps:
            period = period_of(step.day, material.season.judging.period)
            found[agent, period].append(sum(token_count(one.text) for one in step.decision.rationales))
    return {key: fmean(counts) for key, counts in found.items()}
