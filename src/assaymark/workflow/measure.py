"""`assaymark measure`: compute measurements from judgments and evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter

import numpy as np

import assaymark.metrology as metrology
from assaymark.agents.controls import MADE_HERE
from assaymark.agents.llm import is_unanswered
from assaymark.claims.findings import describe_missing
from assaymark.errors import InputError
from assaymark.judging import asked_alike, judged_text, load_rubric, oracle_scores, style_counts, token_count
from assaymark.judging.evidence import evidence_summary, forecast_mismatches
from assaymark.judging.evidence.context_index import ContextIndex
from assaymark.metrology.datasheet import Datasheet, limit_measurements
from assaymark.metrology.probes import ORACLE_DIMENSION
from assaymark.portfolio.broker import audit, fee_of, prices_of, settle
from assaymark.prompting import INSTRUCTION_LIKE
from assaymark.protocol import SCALE
from assaymark.records import AGGREGATE, Context, Decision, Judgment, Measurement, content_id, grouped
from assaymark.workflow.human_labels import honest_records, labels_of, people_basis, store_labels
from assaymark.workflow.lock import Locked, open_locked
from assaymark.workflow.progress import count_parts, say
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.study_calls import Analysed, Scores, probe_basis
from assaymark.workflow.tables import ANCHOR, DECISIONS, EVIDENCE, JUDGMENTS, MEASUREMENTS, PROBE, Store
from assaymark.workflow.tracks.datasheet import stored_datasheets

UNSETTLED = "settlement"
"""The rule reported as broken by orders that cannot be settled."""


def measure_behaviour(store: Store, locked: Locked) -> list[Measurement]:
    """Measure the behaviour of a study's own agents; empty for imported records."""
    if locked.study.substrate is None:
        return []
    decisions = store.read(DECISIONS)
    first = (decision for decision in decisions if decision.derivation.kind == "honest" and decision.replicate == 1)
    by_context = grouped(first, attrgetter("context_id"))
    conduct = (behaviour_of(one, context) for name, context in store.each_context() for one in by_context.get(name, ()))
    return list(metrology.conduct_measurements(conduct, locked.study.inference.level))


def behaviour_of(decision: Decision, context: Context) -> metrology.AgentBehaviour:
    """Return the behaviour of an agent in one decision, with a check of each numeric limit if there is a portfolio."""
    usable = not is_unanswered(decision)
    checks: tuple[tuple[str, bool], ...] | None = None
    if usable and context.portfolio is not None:
        checks = ((UNSETTLED, False),)
        # Amounts beyond the range of a float give infinite sums.
        with suppress(InputError, ValueError, OverflowError):
            fee = fee_of(context.constraints)
            after = settle(context.portfolio, prices_of(context), decision.actions, fee_bps=fee)
            if math.isfinite(after.equity + after.exposure):
                checks = tuple((check.rule, check.kept) for check in audit(after, context.constraints))
    timed = decision.call.timing_source != "absent"
    seconds = decision.call.seconds if timed else None
    size = decision.call.output_tokens, token_count(judged_text(decision))
    return metrology.AgentBehaviour(decision.agent.id, decision.cluster, usable, decision.flags, checks, seconds, *size)


def score_by_oracle(store: Store, locked: Locked) -> dict[str, int]:
    """Return the oracle's score of constraint awareness of each selected record that consists of orders, by id."""
    decisions: Sequence[Decision] = store.read(DECISIONS)
    return oracle_scores(decisions, store.each_context(), locked.study)


def known_scores(
    locked: Locked, scores: Mapping[str, float], fixed: Mapping[str, Mapping[str, float]]
) -> dict[str, Mapping[str, float]]:
    """Return the known scores by record, including the oracle's, for `known_measurements`."""
    alike = scores if asked_alike(locked.rubric) else {}
    by_id = {name: {ORACLE_DIMENSION: float(score)} for name, score in alike.items()}
    return {name: {**by_id.get(name, {}), **fixed.get(name, {})} for name in {**by_id, **fixed}}


def measured_from(folder: RunFolder, locked: Locked) -> tuple[dict[str, str | None], dict[str, Datasheet]]:
    """Store the grades that people gave since; return the digests of all that is measured, and the judges' sheets."""
    store, study = Store(folder), locked.study
    if study.human.grades:
        from assaymark.workflow.import_records import import_named_grades

        import_named_grades(folder, study.human.grades, anchor=True)
    store_labels(folder)
    basis = {"plan": locked.plan_hash, **{one.name: store.digest(one) for one in (JUDGMENTS, EVIDENCE, ANCHOR, PROBE)}}
    sheets = {sheet.judge: sheet for sheet in stored_datasheets(folder)} if study.datasheets else {}
    basis["datasheets"] = content_id(sheets) if sheets else None
    people = people_basis(folder)
    return basis if people is None else basis | {"people": people}, sheets


def measure(
    folder: RunFolder, oracle: Mapping[str, int] | None = None, analysed: Analysed | None = None,
    evidence: Sequence[Measurement] | None = None,
) -> int:  # fmt: skip
    """Measure panel, agents, control cells and evidence of a judged run; returns the number of measurements."""
    locked = open_locked(folder)
    store, study, (basis, sheets) = Store(folder), locked.study, measured_from(folder, locked)
    if not store.done(MEASUREMENTS, basis):
        measurements = [*_measurements(store, locked, oracle, analysed, evidence), *limit_measurements(sheets, study)]
        store.write(MEASUREMENTS, measurements, basis)
        lacking = [one for one in measurements if one.name == "missing.share" and "judge" in one.labels and one.value]
        for line in describe_missing(lacking, study.inference.alpha):
            say(line)
    return store.rows(MEASUREMENTS)


def _measurements(
    store: Store, locked: Locked, scored: Mapping[str, int] | None, analysed: Analysed | None,
    evidence: Sequence[Measurement] | None,
) -> list[Measurement]:  # fmt: skip
    """Return all measurements; parts that a verdict needs and the plan left out are included as not measured."""
    scores, panel = analysed or (Scores.of(store, locked), None)
    study, honest, records = locked.study, scores.honest, scores.selection.honest
    level, tables = study.inference.level, [honest, *(cell.table for cell in scores.cells)]
    # The plan's covariates other than length, by name and trajectory.
    names = [name for name in study.claims.covariates if name != "log2"]
    texts = {record.record_id: style_counts(judged_text(record), names) for record in records} if names else {}
    style: dict[str, dict[str, float]] = {name: {key: counts[name] for key, counts in texts.items()} for name in names}
    people = labels_of(store.folder, *honest_records(records))
    if panel is None or style or people is not None:
        panel = metrology.analyse(honest, study, np.random.default_rng([study.seed, 1]), style, people,
                        progress=count_parts())  # fmt: skip
    measurements = [*panel, *metrology.missing_measurements(scores.all_judges, scores.left_out)]
    measurements += metrology.style_measurements(honest, study, rng=np.random.default_rng([study.seed, 4]))
    measurements += metrology.cell_measurements(honest, scores.cells, study)
    for cell in scores.cells:
        if cell.kind == "length_matched":
            measurements += metrology.length_matched_contrasts(cell, honest, study)
    oracle = (score_by_oracle(store, locked) if scored is None else scored) if study.oracle else {}
    if study.oracle:
        measurements += metrology.oracle_measurements(tables, oracle, study, rng=np.random.default_rng([study.seed, 6]))
    # The scores of a faultless judge, for control records whose construction fixes them.
    # Controls made by this package have known scores on the scale 1..5 only.
    skipped = study.scale != SCALE and MADE_HERE
    entries = (
        (decision.record_id, decision.derivation.known_scores, decision.provenance.source)
        for decision in scores.selection.decisions
    )
    fixed = {name: scores for name, scores, source in entries if source != skipped}
    fixed_scores = {name: by_record for name, by_record in fixed.items() if by_record}
    measurements += metrology.known_measurements(tables, known_scores(locked, oracle, fixed_scores), study)
    if study.contamination is not None:
        traded = {record.record_id: frozenset(action.instrument for action in record.actions) for record in records}
        measurements += metrology.contamination_measurements(honest, study, traded)
    measurements += measure_behaviour(store, locked)
    flagged = (
        (record.agent.id, record.cluster, INSTRUCTION_LIKE in record.flags)
        for record in records
        if record.replicate == 1
    )
    measurements += metrology.flagged_measurements(flagged, level)
    # The same judge under two rubrics, on the trajectories that it graded usably under both.
    anchor = study.anchor_probe
    if anchor is not None and store.digest(ANCHOR) is not None:
        after = _mean_scores(store.read(ANCHOR))
        before = _mean_scores(one for group in scores.judgments.values() for one in group if one.judge == anchor.judge)
        by_id = {decision.record_id: decision for decision in records}
        both = [(name, by_id[name]) for name in sorted(before.keys() & after.keys())]
        measurements += metrology.anchor_measurements(
            {name: before[name] for name, _ in both}, {name: after[name] for name, _ in both},
            {name: decision.agent.id for name, decision in both}, {name: decision.cluster for name, decision in both},
            load_rubric(anchor.rubric).changed(locked.rubric), anchor.judge, anchor.rubric, study,
        )  # fmt: skip
    # The scores of the held-out judge, or why it was not asked.
    plan = metrology.contested(panel, study)
    answered = store.done(PROBE, probe_basis(locked, store, plan))
    share = dict(zip(honest.dimensions, honest.weights.tolist(), strict=True))
    answers = {
        name: {AGGREGATE: sum(share[dimension] * value for dimension, value in answer.items()), **answer}
        for name, answer in _mean_scores(store.read(PROBE) if answered else ()).items()
    }
    probed = [record for record in records if record.record_id in answers]
    measurements += metrology.probe_measurements(
        plan, answers, agents={decision.record_id: decision.agent.id for decision in probed},
        cycles={row.record_id: row.cycle for row in probed}, clusters={row.record_id: row.cluster for row in probed},
        study=study,
    )  # fmt: skip
    # Numbers checked against the context, which the chance rate needs as well. Contexts are indexed one at a time: all
    # at once would take the most memory of a run. Facts without an instrument do not enter the chance rate, so neither
    # the prompt nor free facts are read for it.
    if evidence is None:
        material = {}
        for name, context in store.each_context({record.context_id for record in records}):
            of_rows = filter(attrgetter("instrument"), context.facts)
            material[name] = ContextIndex.of(replace(context, prompt="", facts=tuple(of_rows)))
        evidence = evidence_summary(
            store.read(EVIDENCE), records, material, rng=np.random.default_rng([study.seed, 2]), level=level
        )
    return [*measurements, *evidence, forecast_mismatches(records)]


def _mean_scores(judgments: Iterable[Judgment]) -> dict[str, dict[str, float]]:
    """Return the mean score of each trajectory over one judge's usable trials, by dimension."""
    usable = grouped((judgment for judgment in judgments if judgment.status == "ok"), attrgetter("trajectory"))
    return {
        trajectory: {name: sum(trial.scores[name] for trial in trials) / len(trials) for name in trials[0].scores}
        for trajectory, trials in usable.items()
    }
