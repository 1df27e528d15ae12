"""Calls of a study: planning them, making them through the ledger, and parsing replies; also the work of a worker."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from assaymark import judging, metrology
from assaymark.agents.llm import DecisionKey, agent_call, date_call, envelope_of, is_unanswered, prompt_of
from assaymark.engine import CallSpec, Ledger, Message, Model, RunSummary, run_worker, spawned
from assaymark.engine.providers.http_agent import is_outside
from assaymark.errors import InputError, LedgerError, PlanError, problems_of
from assaymark.judging import PlannedGrade, Rubric, user_messages
from assaymark.judging.evidence import ContextIndex, evidence_summary, numeric_ledger
from assaymark.market.cycles import CycleKey
from assaymark.metrology import ControlCell, ScoreTable
from assaymark.notebook import Displayable
from assaymark.protocol import EngineChoice, JudgeSpec, Study
from assaymark.records import (
    Context,
    Decision,
    Evidence,
    Judgment,
    Measurement,
    Rationale,
    content_id,
    grouped,
    sha256_text,
)
from assaymark.workflow import ask as asking
from assaymark.workflow.lock import Locked, Selection, cut_cycles, open_locked, planned_decisions, select
from assaymark.workflow.progress import counts, say
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import ANCHOR, CYCLES, DECISIONS, EVIDENCE, HUMAN, JUDGMENTS, PROBE, Store


@dataclass(eq=False)
class JudgingSession:
    """A run folder, its plan and its models; decisions are read and rendered once, on first use."""

    folder: RunFolder
    locked: Locked
    models: Mapping[str, Model]
    evidence: tuple[Measurement, ...] | None = None  # measurements of the numbers in texts, once checked

    @property
    def store(self) -> Store:
        """The tables of the run."""
        return Store(self.folder)

    @cached_property
    def decisions(self) -> list[Decision]:
        """All imported decisions: the names of agents that the study leaves out have to be blinded too."""
        return self.store.read(DECISIONS)

    @cached_property
    def selection(self) -> Selection:
        """The decisions of the study."""
        return select(self.decisions, self.locked.study)

    @cached_property
    def shown(self) -> dict[str, Message]:
        """The message with each decision, the same for every judge and rubric, by record id."""
        return user_messages(self.decisions, self.store.each_context(), self.locked.study)

    def plan(
        self, rubric: Rubric, judges: Sequence[JudgeSpec] | None = None, only: Collection[str] | None = None
    ) -> list[PlannedGrade]:
        """Return the calls by which judges grade decisions under a rubric."""
        study = self.locked.study
        return judging.plan_calls(self.decisions, {}, study, rubric, judges, only, self.shown)

    def grade(
        self, rubric: Rubric, stage: str, judges: Sequence[JudgeSpec] | None = None, only: Collection[str] | None = None
    ) -> tuple[list[Judgment], int]:
        """Grade decisions under a rubric; returns the strictly parsed judgments, and the number of calls made now."""
        planned = self.plan(rubric, judges, only)
        unusable = asking.unusable_of(planned)
        with Ledger.open(self.folder.ledger) as ledger:
            asking.check_plan_hash(self.folder, ledger, self.locked)
            calls, sent, engine = [item.call for item in planned], 0, self.locked.study.engine
            for again in ("", " again"):
                settings = self.models, engine, stage + again, "the judges", None if again else unusable
                sent += asking.require_replies(self.folder, ledger, calls, *settings)[1]
                judgments = parse_judgments(planned, ledger)
                bad = {
                    item.call.key: item
                    for item, judgment in zip(planned, judgments, strict=True)
                    if judgment.status == "invalid" and not judgment.first_key
                }
                calls = [bad[key].again().call for key, reply in ledger.replies(bad) if bad[key].asks_again(reply)]
                if not calls:
                    break
            return judgments, sent

    @cached_property
    def analysed(self) -> Analysed:
        """The scores of the judges and their analysis, made once for the held-out judge and for `measure`."""
        study, scores = self.locked.study, Scores.of(self.store, self.locked, self.selection)
        return scores, metrology.analyse(scores.honest, study, np.random.default_rng([study.seed, 1]))

    def results(self) -> dict[str, Any]:
        """Return results of judging that `measure` can reuse, as its keyword arguments."""
        cached, study = vars(self), self.locked.study
        results = {name: cached.get(name) for name in ("analysed", "evidence")}
        if study.oracle and "shown" in cached:  # the oracle reads the judges' messages
            results["oracle"] = judging.oracle_scores(self.decisions, (), study, self.shown)
        return results

    def human_judgments(self) -> list[Judgment]:
        """Return the grades of people on the panel."""
        people = {judge.name for judge in self.locked.study.judges if judge.human}
        chosen = {decision.record_id for decision in self.selection.decisions} if people else ()
        human = self.store.read(HUMAN) if people else ()
        return [judgment for judgment in human if judgment.judge in people and judgment.trajectory in chosen]


def parse_judgments(planned: Sequence[PlannedGrade], ledger: Ledger) -> list[Judgment]:
    """Parse the stored replies to planned calls; a second reply replaces an invalid first one."""
    replies = asking.stored_replies(ledger, [item.call for item in planned])
    judgments = [judging.judgment(item, replies[item.call.key]) for item in planned]
    bad = {at: item.again().call.key for at, item in enumerate(planned) if judgments[at].status == "invalid"}
    seconds = dict(ledger.replies(bad.values()))
    for at, key in bad.items():
        if key in seconds:
            judgments[at] = judging.judgment(planned[at], replies[planned[at].call.key], second=seconds[key])
    return judgments


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a run: judgments by trajectory, the honest records as a table, the control cells."""

    selection: Selection
    judgments: Mapping[str, list[Judgment]]
    honest: ScoreTable
    cells: tuple[ControlCell, ...]
    all_judges: ScoreTable
    left_out: Mapping[str, str]

    @classmethod
    def of(cls, store: Store, locked: Locked, selection: Selection | None = None) -> Scores:
        """Read the judgments of a run into tables; ``selection`` are its decisions, read here by default."""
        study = locked.study
        selection = selection or select(store.read(DECISIONS), study)
        judgments: Mapping[str, list[Judgment]] = grouped(store.read(JUDGMENTS), attrgetter("trajectory"))

        def table(decisions: Sequence[Decision]) -> ScoreTable:
            lengths = {decision.record_id: judging.token_count(judging.judged_text(decision)) for decision in decisions}
            graded = (judgment for decision in decisions for judgment in judgments.get(decision.record_id, ()))
            return metrology.score_table(graded, decisions, study.rubric.weights, lengths, study.scale)

        complete = honest = table(selection.honest)
        missing = study.missing
        left_out = honest.excess(missing)
        if left_out:
            words = "; ".join(f"judge {judge}: {reason}" for judge, reason in left_out.items())
            if missing.on_excess == "stop" or len(left_out) == len(honest.judges):
                raise LedgerError(f"too many replies are missing: {words}")
            without = {name: [one for one in calls if one.judge not in left_out] for name, calls in judgments.items()}
            judgments = {name: calls for name, calls in without.items() if calls}
            honest = table(selection.honest)
        # Which judges' trials may be averaged is decided on honest records: within a cell, trials hardly differ.
        averaged = metrology.averaging(honest, study)
        cells = []
        for kind in study.cells_judged:
            by_id = {decision.record_id: decision for decision in selection.cell(kind)}
            scores = metrology.gated(table(selection.cell(kind)), study, averaged)
            judged = [by_id[name] for name in scores.trajectories]
            parents, makers = tuple(d.derivation.parent for d in judged), tuple(d.agent.family for d in judged)
            cells.append(ControlCell(kind, scores, parents, makers))
        return cls(selection, judgments, metrology.gated(honest, study, averaged), tuple(cells), complete, left_out)


Analysed = tuple[Scores, Sequence[Measurement]]  # without covariates and people outside the panel


def anchor_sample(honest: Sequence[Decision], study: Study) -> frozenset[str]:
    """Return the sample of the anchor probe: first replicates, stratified by agent and cluster, seeded by the plan."""
    if study.anchor_probe is None:
        return frozenset()
    first = sorted((record for record in honest if record.replicate == 1), key=lambda record: record.record_id)
    strata = {decision.record_id: (decision.agent.id, decision.cluster) for decision in first}
    rng = np.random.default_rng([study.seed, 3])
    return frozenset(metrology.stratified(strata, min(study.anchor_probe.sample, len(first)), rng))


def probe_basis(locked: Locked, store: Store, plan: metrology.ProbePlan) -> dict[str, str | None]:
    """Return the basis of the held-out judge's calls: the plan, the judgments, and the contested pairs."""
    return {"plan": locked.plan_hash, "judgments": store.digest(JUDGMENTS), "pairs": content_id(sorted(plan.pairs))}


_WORTH_A_PROCESS: Final = 300
"""Number of decisions from which a second process saves more time than it costs to start and to read contexts again."""


@dataclass(frozen=True, slots=True)
class JudgeResult(Displayable):
    """The result of judging; ``made`` counts all new calls, ``reasked`` those of anchor probe and held-out judge."""

    judgments: int
    evidence: int
    made: int
    reasked: int


def judge(folder: RunFolder, models: Mapping[str, Model], session: JudgingSession | None = None) -> JudgeResult:
    """Grade every selected decision with every judge of the locked plan, and check the numbers in its texts."""
    session = session or JudgingSession(folder, open_locked(folder), models)
    store, locked, study = session.store, session.locked, session.locked.study
    reading, plan = locked.reading, {"plan": locked.plan_hash}
    sent = reasked = 0
    pending = {table for table, basis in ((JUDGMENTS, reading), (EVIDENCE, plan)) if not store.done(table, basis)}
    both, large, audit = len(pending) == 2, len(session.decisions) >= _WORTH_A_PROCESS, list[Audit]()
    with spawned(audit_of, folder, study, processes=both and large) as audited:
        if both and not large:  # parse contexts once, for prompts and for checking numbers
            contexts = audit_contexts(store.each_context(), session.selection.honest, study, audit)
            session.shown = user_messages(session.decisions, contexts, study)
        if JUDGMENTS in pending:
            judgments, sent = session.grade(locked.rubric, "asking the judges")
            store.write(JUDGMENTS, [*judgments, *session.human_judgments()], reading)
            for line in asking.reply_lines(judgments):
                say(line)
        # The anchor probe: one judge again, on a stratified sample, under another rubric (section 5.6).
        if (anchor := study.anchor_probe) is not None and not store.done(ANCHOR, reading):
            rubric, sample = judging.load_rubric(anchor.rubric), anchor_sample(session.selection.honest, study)
            judgments, reasked = session.grade(rubric, "rubric-wording ablation", study.anchor_judges, sample)
            store.write(ANCHOR, judgments, reading)
        # The held-out judge, only on agents of pairs that the panel leaves contested (section 3.5).
        if (probe := study.stability.probe) is not None:
            contested = metrology.contested(session.analysed[1], study)
            basis = probe_basis(locked, store, contested)
            if contested.needed and not store.done(PROBE, basis):
                # The records of questions that both agents of a contested pair answered.
                answers: dict[str, dict[str, str]] = defaultdict(dict)
                for decision in session.selection.honest:
                    if decision.replicate == 1:
                        answers[decision.cycle][decision.agent.id] = decision.record_id
                pairs = {frozenset((high, low)) for _, high, low in contested.pairs}
                met = ((pair, by_agent) for pair in pairs for by_agent in answers.values() if pair <= by_agent.keys())
                probed = frozenset(by_agent[agent] for pair, by_agent in met for agent in pair)
                judgments, more = session.grade(locked.rubric, "asking the held-out judge", [probe], probed)
                store.write(PROBE, judgments, basis)
                reasked += more
        if EVIDENCE in pending:
            evidence, session.evidence = audit[0] if audit else audited()
            store.write(EVIDENCE, evidence, plan)
    return JudgeResult(store.rows(JUDGMENTS), store.rows(EVIDENCE), sent + reasked, reasked)


Audit = tuple[list[Evidence], tuple[Measurement, ...]]  # the checked numbers of decisions, and measurements of them


def audit_of(folder: RunFolder, study: Study) -> Audit:
    """Check the numbers of a study's honest decisions against their contexts."""
    store, audit = Store(folder), list[Audit]()
    honest = select(store.read(DECISIONS), study).honest
    contexts = store.each_context({decision.context_id for decision in honest})
    deque(audit_contexts(contexts, honest, study, audit), maxlen=0)
    return audit[0]


def audit_contexts(
    contexts: Iterable[tuple[str, Context]], honest: Sequence[Decision], study: Study, audit: list[Audit]
) -> Iterator[tuple[str, Context]]:
    """Yield the same contexts, and check numbers on the way; ``audit`` has the result once all are consumed."""
    evidence, materials, shared = list[Evidence](), dict[str, ContextIndex](), grouped(honest, attrgetter("context_id"))
    for name, context in contexts:
        materials |= {name: ContextIndex.of(context)} if name in shared else {}
        for decision in shared.get(name, ()):
            evidence += numeric_ledger(decision, context, material=materials[name])
        yield name, context
    audit.append((evidence, evidence_summary(
        evidence, honest, materials, rng=np.random.default_rng([study.seed, 2]), level=study.inference.level,
    )))  # fmt: skip


def decide(folder: RunFolder, models: Mapping[str, Model]) -> int:
    """Have every agent of a locked study decide on every cycle, and compose its control cells."""
    locked = open_locked(folder)
    study, store, engine = locked.study, Store(folder), locked.study.engine
    basis: dict[str, str | None] = {"plan": locked.plan_hash}
    if study.substrate is None or store.done(DECISIONS, basis):
        return 0
    contexts = _contexts(study, store)
    planned = [question for key, context in contexts for question in _plan_cycle(study, key, context)]
    calls = [question.call for question in planned]
    with Ledger.open(folder.ledger) as ledger:
        asking.check_plan_hash(folder, ledger, locked)
        settings = models, asking.agent_engine(engine, study.agents), "asking the agents", "the agents"
        replies, sent = asking.require_replies(folder, ledger, calls, *settings)
        batched = ledger.batches.answered_in_batches(replies)
    prices = asking.prices_of(models)
    decisions = [item.decision(replies[item.call.key], prices, item.call.key in batched) for item in planned]
    for line in asking.unusable_decisions(decisions):
        say(line)
    asking.print_raised(models)
    records, controls = list(decisions), study.controls
    usable = [decision for decision in decisions if not is_unanswered(decision)]
    material = [(key.context_id, context, key.regime) for key, context in contexts]
    for kind, count in controls.wanted.items():
        from assaymark.agents.controls import cell_decisions

        records += cell_decisions(
            material, kind, count, study.seed, controls.family, controls.style,
            honest=usable, tokens=controls.length_tokens, study=study.name,
        )  # fmt: skip
    store.write(DECISIONS, records, basis)
    return sent


def plan_decisions(study: Study, store: Store, cycles: slice = slice(None)) -> list[asking.PlannedDecision]:
    """Return a planned decision for every agent on each of the study's cycles, or on a slice of them."""
    return [question for key, seen in _contexts(study, store)[cycles] for question in _plan_cycle(study, key, seen)]


def _contexts(study: Study, store: Store) -> list[tuple[CycleKey, Context]]:
    """Return the contexts of a study with their keys, ordered by regime and number."""
    keys = {key.context_id: key for key in store.read(CYCLES)}
    order = {name: place for place, name in enumerate(study.substrate.regimes if study.substrate else ())}
    contexts = [(keys[name], context) for name, context in store.each_context()]
    return sorted(contexts, key=lambda pair: (order[pair[0].regime], pair[0].number))


def _plan_cycle(study: Study, key: CycleKey, context: Context) -> list[asking.PlannedDecision]:
    """Return a planned decision for every agent on one cycle; its prompt is rendered once."""
    place = DecisionKey(study.name, key.regime, key.number, key.context_id)
    messages: dict[bool, Message] = {}
    questions = []
    for spec in study.agents:
        outside = is_outside(spec.model)
        if outside not in messages:
            messages[outside] = envelope_of(context) if outside else prompt_of(context)
        questions.append(asking.PlannedDecision(spec, place, context, agent_call(spec, messages[outside])))
    return questions


PLACEHOLDER: Final = "This text stands in for the reasons that an agent will give. " * 20
"""A text of about 300 tokens in place of one that is not written yet."""


def study_canaries(folder: RunFolder, study: Study, models: Mapping[str, Model]) -> asking.Canaries:
    """Make the trial calls of a study whose cycles or records exist: agents, date probe, then judges."""
    canaries = asking.Canaries(models, study.engine)
    outside = [judge for judge in study.asked_judges if not judge.built_in]
    store = Store(folder)
    if study.substrate is None:
        decisions: Sequence[Decision] = store.read(DECISIONS)
    else:
        # The judges' trial calls show a decision from the agents' trial calls.
        questions = plan_decisions(study, store, slice(1))
        next_ones = lambda: (question.call for question in plan_decisions(study, store, slice(1, 2)))  # noqa: E731
        canaries.ask((question.call for question in questions), ours=bool(outside), further=next_ones)
        if (model := study.substrate.date_probe.model) is not None:
            canaries.ask([date_call(model, cycle.context) for cycle in cut_cycles(study.substrate, cycles=2)])
        prices, replies = asking.prices_of(models), canaries.kept
        answered = [item.decision(replies[item.call.key][1], prices) for item in questions if item.call.key in replies]
        by_id = {decision.record_id: decision for decision in answered}
        decisions = [by_id.get(record.record_id, record) for record in planned_decisions(study, store.read(CYCLES))]

    def judged(number: int) -> Iterable[CallSpec]:
        """Return each judge's call on decision ``number``, counted from 0; decisions with reasons come first."""
        eligible = sorted(judging.eligible(decisions, study.records), key=lambda decision: not decision.rationales)
        if number >= len(eligible) or not outside:
            return []
        first = eligible[number] if eligible[number].rationales else with_placeholder(eligible[number])
        replaced = [first if decision.record_id == first.record_id else decision for decision in decisions]
        shown: Any = user_messages(replaced, store.each_context(), study, only={first.record_id})
        rubric = judging.rubric_of(study.rubric)
        planned = judging.plan_calls(replaced, {}, study, rubric, outside, shown, shown)
        return [call.call for call in planned]

    canaries.ask(judged(0), further=lambda: judged(1))
    canaries.require()
    return canaries


def with_placeholder(planned: Decision) -> Decision:
    """Return a planned decision with a unique text: calls with equal texts would be made once."""
    text = PLACEHOLDER + sha256_text(planned.record_id)[:12]
    return replace(planned, rationales=(Rationale(text, kind="summary"),))


def work(place: RunFolder | str, models: Mapping[str, Model]) -> RunSummary:
    """Answer planned calls of a shared ledger until none is left that this machine can answer."""
    folder = None if isinstance(place, str) else place
    locked = None if folder is None else open_locked(folder)
    with Ledger.open(place if isinstance(place, str) else place.ledger, create=False) as ledger:
        if folder is not None and locked is not None:
            asking.check_plan_hash(folder, ledger, locked)
        # The settings with which calls of this ledger were made last, if any were.
        engine, noted = None if locked is None else locked.study.engine, ledger.notes.get(asking.MANNER)
        try:
            engine = engine if noted is None else EngineChoice.model_validate_json(noted)
        except ValidationError as exc:
            raise InputError(f"{ledger.name}, how its calls are asked", problems_of(exc, EngineChoice)) from None
        if engine is None and ledger.pending_models():
            raise PlanError(
                f"{ledger.name} does not say how its calls are to be asked, and with which limits: no run has begun to "
                "ask them; start the run, or name its run folder"
            )
        return run_worker(
            ledger, models, budget=asking.budget_of(models),
            progress=counts("answering calls"),
            **asking.run_options(engine or EngineChoice()),
        )  # fmt: skip


def work_lines(summary: RunSummary) -> list[str]:
    """Return the lines that `assaymark worker` prints."""
    counts = f"{summary.elsewhere} by others, {len(summary.failed)} failed, {summary.left} left"
    lines = [f"{summary.made} calls answered here, {counts}"]
    if summary.failed:
        first = min(summary.failed, key=lambda failure: failure.key)
        lines.append(f"first failure: {first.key[:12]}..., {first.reason}")
    return [*lines, *summary.stopped]
