"""`assaymark measure`: judgments and evidence in, measurements out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assaymark.agents.llm import NOT_USABLE
from assaymark.claims.standing import missing_words
from assaymark.errors import InputError
from assaymark.judging import asked_alike, judged_text, load_rubric, oracle_scores, style_counts, token_count
from assaymark.judging.evidence import evidence_summary, forecast_mismatches
from assaymark.judging.evidence.context_index import Material
from assaymark.metrology import (
    Conduct,
    ScoreTable,
    analyse,
    anchor_measurements,
    cell_measurements,
    conduct_measurements,
    contamination_measurements,
    contested,
    flagged_measurements,
    known_measurements,
    length_matched_contrasts,
    missing_measurements,
    oracle_measurements,
    probe_measurements,
    style_measurements,
)
from assaymark.metrology.datasheet import Datasheet, limit_measurements
from assaymark.metrology.probes import ORACLE_DIMENSION
from assaymark.portfolio.orders import audit, fee_of, prices_of, settle
from assaymark.prompting.texts import INSTRUCTION_LIKE
from assaymark.protocol import Study
from assaymark.records import AGGREGATE, Context, Decision, Judgment, Measurement, content_id
from assaymark.workflow.ask import probe_basis
from assaymark.workflow.lock import Locked, open_locked
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.scores import Scores
from assaymark.workflow.tables import ANCHOR, DECISIONS, EVIDENCE, JUDGMENTS, MEASUREMENTS, PROBE, Store
from assaymark.workflow.track import Progress, counted, saying, silent
from assaymark.workflow.tracks.datasheet import stored_datasheets

# What the agents of a study did, from its records: the inputs of the conduct measurements.


UNSETTLED = "settlement"
"""The rule that orders break which cannot be settled at all."""


def measured_conduct(store: Store, locked: Locked) -> list[Measurement]:
    """How the agents behaved that a study asked itself; nothing for imported records.

    Every honest decision counts, those that no judge was shown because their reply could not be used included.
    """
    if locked.study.substrate is None:
        return []
    decisions = [one for one in store.read(DECISIONS) if one.derivation.kind == "honest" and one.replicate == 1]
    return list(conduct_measurements(_conduct(decisions, store), level=locked.study.inference.level))


def _conduct(decisions: list[Decision], store: Store) -> Iterator[Conduct]:
    """Every decision beside its context, one context at a time."""
    asked: dict[str, list[Decision]] = {}
    for one in decisions:
        asked.setdefault(one.context_id, []).append(one)
    for name, context in store.each_context():
        for one in asked.get(name, ()):
            yield conduct_of(one, context)


def conduct_of(decision: Decision, context: Context) -> Conduct:
    """What a decision shows of the conduct of its agent.

    The limits are those of the context, held against its book after the orders at its last prices; see
    `assaymark.portfolio.orders.audit`. Orders that cannot be settled break the one rule `UNSETTLED`.
    """
    usable = not set(decision.flags) & set(NOT_USABLE)
    timed = decision.call.timing_source != "absent"
    return Conduct(
        agent=decision.agent.id,
        cluster=decision.cluster,
        usable=usable,
        flags=decision.flags,
        checks=_checks(decision, context) if usable else None,
        seconds=decision.call.seconds if timed else None,
        output_tokens=decision.call.output_tokens,
        tokens=token_count(judged_text(decision)),
    )


def _checks(decision: Decision, context: Context) -> tuple[tuple[str, bool], ...] | None:
    """Every numeric limit and whether it is kept; None without a book."""
    if context.portfolio is None:
        return None
    try:
        after = settle(context.portfolio, prices_of(context), decision.actions, fee_bps=fee_of(context.constraints))
    # Amounts beyond what a float holds make sums of infinities.
    except (InputError, ValueError, OverflowError):
        return ((UNSETTLED, False),)
    if not math.isfinite(after.equity + after.exposure):
        return ((UNSETTLED, False),)
    return tuple((check.rule, check.kept) for check in audit(after, context.constraints))


# The constraint-arithmetic oracle on the records of a run: its scores, and what of them counts as known quality.


def scored_by_oracle(store: Store, locked: Locked) -> dict[str, int]:
    """The oracle's score of constraint awareness of every selected record that is made of orders, by record id.

    For `oracle_measurements`. Every control cell of the plan is scored like the honest records. The oracle reads the
    prompt that the judges are shown. Empty where no record is made of orders on a portfolio with prices.
    """
    decisions: Sequence[Decision] = store.read(DECISIONS)
    return oracle_scores(decisions, store.each_context(), locked.study)


def oracle_known(
    locked: Locked, scores: Mapping[str, float], known: Mapping[str, Mapping[str, float]]
) -> dict[str, Mapping[str, float]]:
    """Known scores by record with the oracle's among them, for `known_measurements`.

    The oracle's scores count as known quality only under a rubric that words constraint awareness as the oracle scores
    it (v1.1, constraints-1.0): under other anchors a judge may differ from it and make no error. What a record's own
    construction fixes goes before.
    """
    found = (
        {name: {ORACLE_DIMENSION: float(score)} for name, score in scores.items()} if asked_alike(locked.rubric) else {}
    )
    return {name: {**found.get(name, {}), **known.get(name, {})} for name in {**found, **known}}


def measure(folder: RunFolder, *, progress: Progress = silent) -> int:
    """Measure the panel, the agents, the control cells and the evidence of a judged run; returns how many there are.

    Raises
    ------
    LedgerError
        The judgments are not there yet: judge first.
    """
    locked = open_locked(folder)
    store = Store(folder)
    tables = (JUDGMENTS, EVIDENCE, ANCHOR, PROBE)
    basis = {"plan": locked.plan_hash, **{table.name: store.digest(table) for table in tables}}
    sheets = {sheet.judge: sheet for sheet in stored_datasheets(folder)} if locked.study.datasheets else {}
    basis["datasheets"] = content_id(sheets) if sheets else None
    if not store.done(MEASUREMENTS, basis):
        found = _Run(store, locked, Scores.of(store, locked), sheets).measured(progress)
        store.write(MEASUREMENTS, found, basis)
        lacking = [one for one in found if one.name == "missing.share" and "judge" in one.labels and one.value]
        for line in missing_words(lacking, locked.study.inference.alpha):
            saying(progress)(line)
    return store.rows(MEASUREMENTS)


@dataclass(frozen=True, slots=True)
class _Run:
    """What is measured: the scores of a run, and everything else that its records hold."""

    store: Store
    locked: Locked
    scores: Scores
    sheets: Mapping[str, Datasheet]

    @property
    def study(self) -> Study:
        return self.locked.study

    def measured(self, progress: Progress) -> list[Measurement]:
        """Everything, the parts that the plan did not ask for named as not measured where a verdict needs them."""
        study = self.study
        honest, cells = self.scores.honest, self.scores.cells
        rng = np.random.default_rng([study.seed, 1])
        panel = analyse(honest, study, rng=rng, style=self._style(), progress=counted(progress))
        found = [*panel, *missing_measurements(self.scores.whole, self.scores.left_out)]
        found += style_measurements(honest, study, rng=np.random.default_rng([study.seed, 4]))
        found += cell_measurements(honest, cells, study)
        for cell in cells:
            if cell.kind == "length_matched":
                found += length_matched_contrasts(cell, honest, study)
        oracle = scored_by_oracle(self.store, self.locked) if study.oracle else {}
        tables = [honest, *(cell.table for cell in cells)]
        if study.oracle:
            found += oracle_measurements(tables, oracle, study, rng=np.random.default_rng([study.seed, 6]))
        found += known_measurements(tables, oracle_known(self.locked, oracle, self._known()), study)
        if study.contamination is not None:
            found += contamination_measurements(honest, study, self._instruments())
        found += limit_measurements(self.sheets, study)
        found += measured_conduct(self.store, self.locked)
        found += flagged_measurements(
            (
                (one.agent.id, one.cluster, INSTRUCTION_LIKE in one.flags)
                for one in self.scores.selection.honest
                if one.replicate == 1
            ),
            level=study.inference.level,
        )
        return [*found, *self._anchor(), *self._probe(panel), *self._evidence()]

    def _style(self) -> dict[str, dict[str, float]]:
        """The plan's covariates beside length, by name and trajectory."""
        names = [name for name in self.study.claims.covariates if name != "log2"]
        texts = (
            {one.record_id: style_counts(judged_text(one), names) for one in self.scores.selection.honest}
            if names
            else {}
        )
        return {name: {key: found[name] for key, found in texts.items()} for name in names}

    def _known(self) -> dict[str, Mapping[str, float]]:
        """What a faultless judge would give, where the construction of a control record fixes it."""
        return {
            one.record_id: one.derivation.known_scores
            for one in self.scores.selection.decisions
            if one.derivation.known_scores
        }

    def _instruments(self) -> dict[str, frozenset[str]]:
        return {
            one.record_id: frozenset(action.instrument for action in one.actions)
            for one in self.scores.selection.honest
        }

    def _anchor(self) -> Iterator[Measurement]:
        """The same judge under two rubrics, on the trajectories where both of its grades can be used."""
        wanted = self.study.anchor_probe
        if wanted is None or self.store.digest(ANCHOR) is None:
            return
        after = _scores(self.store.read(ANCHOR))
        before = _scores(one for found in self.scores.judgments.values() for one in found if one.judge == wanted.judge)
        both = sorted(before.keys() & after.keys())
        by_id = {one.record_id: one for one in self.scores.selection.honest}
        yield from anchor_measurements(
            {name: before[name] for name in both},
            {name: after[name] for name in both},
            agents={name: by_id[name].agent.id for name in both},
            clusters={name: by_id[name].cluster for name in both},
            changed=load_rubric(wanted.rubric).changed(self.locked.rubric),
            judge=wanted.judge,
            rubric=wanted.rubric,
            study=self.study,
        )

    def _probe(self, panel: Sequence[Measurement]) -> Iterator[Measurement]:
        """What the outside judge said, or why it was not asked."""
        plan = contested(panel, self.study)
        asked = self.store.done(PROBE, probe_basis(self.locked, self.store, plan))
        scores = _with_aggregate(_scores(self.store.read(PROBE)), self.scores.honest) if asked else {}
        honest = [one for one in self.scores.selection.honest if one.record_id in scores]
        yield from probe_measurements(
            plan,
            scores,
            agents={one.record_id: one.agent.id for one in honest},
            cycles={one.record_id: one.cycle for one in honest},
            clusters={one.record_id: one.cluster for one in honest},
            study=self.study,
        )

    def _evidence(self) -> list[Measurement]:
        """What the numeric ledger of a run measures; its material is needed to say what chance would support."""
        decisions = self.scores.selection.honest
        used = {decision.context_id for decision in decisions}
        # Indexed one by one: all contexts and all their indices at once are what would take the most memory of a run.
        material = {name: Material.of(context) for name, context in self.store.each_context() if name in used}
        rng = np.random.default_rng([self.study.seed, 2])
        level = self.study.inference.level
        summary = evidence_summary(self.store.read(EVIDENCE), decisions, material, rng=rng, level=level)
        return [*summary, forecast_mismatches(decisions)]


def _scores(judgments: Iterable[Judgment]) -> dict[str, dict[str, float]]:
    """One judge's mean score of each trajectory over its usable trials, by dimension."""
    trials: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    for one in judgments:
        if one.status == "ok":
            trials[one.trajectory].append(one.scores)
    return {
        trajectory: {name: sum(one[name] for one in scores) / len(scores) for name in scores[0]}
        for trajectory, scores in trials.items()
    }


def _with_aggregate(scores: Mapping[str, Mapping[str, float]], table: ScoreTable) -> dict[str, dict[str, float]]:
    """The same scores with the aggregate, weighed as the panel's."""
    share = dict(zip(table.dimensions, table.weights.tolist(), strict=True))
    return {
        trajectory: {AGGREGATE: sum(share[name] * value for name, value in one.items()), **one}
        for trajectory, one in scores.items()
    }
