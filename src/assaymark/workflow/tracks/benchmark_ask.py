"""The questions of a benchmark: which are asked, what was answered, and what is measured of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from assaymark.benchmark.episode import EpisodeRules, EpisodeState
from assaymark.benchmark.plan import BenchPlan
from assaymark.benchmark.profiles import profile_named
from assaymark.benchmark.questions.answers import QAScore, score_answer
from assaymark.benchmark.questions.payloads import ABLATED, TEMPLATES, Condition, Template
from assaymark.benchmark.questions.published import answer_text, write_questions
from assaymark.benchmark.questions.render import template_digest
from assaymark.benchmark.questions.results import FORMULA, JUDGMENT, Cell, QATable, Scored, tabulate
from assaymark.benchmark.questions.templates import Question
from assaymark.benchmark.replies import ANSWER_SCHEMA, outside_call
from assaymark.benchmark.stages import CONVENTIONS, EpisodeResult
from assaymark.claims.kinds import DISSOCIATION
from assaymark.engine import CallSpec, Ledger, Message, Model, Reply, Text
from assaymark.engine.providers.http_agent import is_outside, no_reply
from assaymark.errors import InputError, Problem
from assaymark.metrology.measure_orders import RESAMPLES, ScoredItems, rank_agreement
from assaymark.protocol import AgentSpec, EngineChoice
from assaymark.records import Measurement, Score, sha256_text
from assaymark.report.portbench import AskedQuestion, QuestionTrace
from assaymark.report.portbench.inputs import ALL, QUESTIONS
from assaymark.workflow.ask import require_all, run_all
from assaymark.workflow.run_folder import RunFolder, write_sums
from assaymark.workflow.sharing import hold_ledger
from assaymark.workflow.track import Progress, Within, silent
from assaymark.workflow.tracks.benchmark_measure import (
    boards_of,
    ceps_items,
    family_measurements,
    left_out,
    missing_measurements,
    unscored_models,
    without_numbers,
)
from assaymark.workflow.tracks.benchmark_view import Notes

if TYPE_CHECKING:
    from assaymark.workflow.tracks.benchmark_measure import Lacking
    from assaymark.workflow.tracks.benchmark_plan import LockedBench


# Every episode of a benchmark through its stages: asked in waves through the ledger, or led through by its replies.
#
# The stages of one episode wait for each other; episodes do not. A wave asks the pending call of every episode
# together, so a run makes as many waves as the longest window has stages, however many models there are.


ANSWER_KEY: Final = "reference/portbench-answer-key"
"""What stands where the model's name would, in episodes that are answered with what was true."""


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """One finished episode: scored by the plan's convention and by the other one, from the same replies."""

    agent: AgentSpec
    state: EpisodeState
    result: EpisodeResult
    other: EpisodeResult
    notes: Notes

    @property
    def name(self) -> str:
        """``agent/profile/window``."""
        return self.state.name


def rules_of(plan: BenchPlan) -> EpisodeRules:
    """What a plan sets for every episode."""
    chosen = plan.pipeline
    return EpisodeRules(
        convention=plan.convention,
        alpha=chosen.alpha,
        penalty=chosen.penalty,
        cost_bps=chosen.cost_bps,
        drift_limit=chosen.drift_limit,
    )


def pipeline_calls(locked: LockedBench) -> int:
    """How many calls the pipeline makes: three a decision date."""
    plan = locked.plan
    dates = sum(len(one.decisions) for one in locked.data.windows)
    return 3 * dates * len(plan.models) * len(plan.pipeline.profiles)


def run_episodes(
    folder: RunFolder, locked: LockedBench, models: Mapping[str, Model], *, progress: Progress = silent
) -> tuple[Episode, ...]:
    """Take every episode of a plan to its end; what the ledger has is not asked again."""
    pairs = _states(locked)
    engine = locked.plan.engine.model_copy(update={"batch": False})  # a stage needs the reply to the one before
    total, done = pipeline_calls(locked), 0
    with Ledger.open(folder.ledger) as ledger:
        hold_ledger(folder, ledger, locked)
        while wave := _wave(pairs):
            told = Within(progress, partial(_tell, progress, done, total))
            replies = _asked(ledger, folder, wave, models, engine, told)
            _take(wave, replies)
            done += len(wave)
            progress("pipeline", done, total)
    return _finished(pairs)


def stored_episodes(
    folder: RunFolder, locked: LockedBench, *, progress: Progress = silent
) -> tuple[Episode, ...] | None:
    """The episodes of a plan from the replies in its ledger; None if some are missing."""
    if not folder.has_ledger:
        return None
    pairs = _states(locked)
    total, done = pipeline_calls(locked), 0
    with Ledger.open(folder.ledger, create=False) as ledger:
        while wave := _wave(pairs):
            replies = dict(ledger.replies({call.key for call in wave.values()}))
            if any(call.key not in replies for call in wave.values()):
                return None
            _take(wave, replies)
            done += len(wave)
            progress("reading the pipeline", done, total)
    return _finished(pairs)


def true_episodes(locked: LockedBench) -> tuple[EpisodeResult, ...]:
    """Episodes in which every stage is answered with what was true: nobody is asked, and nothing is written down."""
    agent = AgentSpec(name="answers", family="answers", model=ANSWER_KEY)
    found = []
    for name, window in product(locked.plan.pipeline.profiles, locked.data.windows):
        state = EpisodeState(agent, profile_named(name), window, rules_of(locked.plan))
        while not state.over:
            state.follow(Reply(text=state.true_reply(), model=ANSWER_KEY))
        found.append(state.result())
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """One episode under both conventions. The replies are those to the first."""

    first: EpisodeState
    second: EpisodeState
    notes: Notes = field(default_factory=Notes)


def _tell(progress: Progress, before: int, total: int, now: int, _of: int) -> None:
    progress("pipeline", before + now, total)


def _states(locked: LockedBench) -> tuple[_Pair, ...]:
    plan = locked.plan
    rules = rules_of(plan)
    (other,) = (one for one in CONVENTIONS if one != plan.convention)
    turned = replace(rules, convention=other)
    cases = product(plan.models, map(profile_named, plan.pipeline.profiles), locked.data.windows)
    return tuple(
        _Pair(EpisodeState(agent, profile, window, rules), EpisodeState(agent, profile, window, turned))
        for agent, profile, window in cases
    )


def _wave(pairs: Sequence[_Pair]) -> dict[_Pair, CallSpec]:
    """The pending call of every episode that is not over."""
    return {pair: call for pair in pairs if (call := pair.first.next_call()) is not None}


def _asked(
    ledger: Ledger,
    folder: RunFolder,
    wave: Mapping[_Pair, CallSpec],
    models: Mapping[str, Model],
    engine: EngineChoice,
    progress: Progress,
) -> dict[str, Reply]:
    calls = list({call.key: call for call in wave.values()}.values())
    keys = [call.key for call in calls]
    if ledger.pending(keys):
        ledger.plan(calls)
        summary = run_all(ledger, calls, models, engine, what="pipeline", progress=progress)
        require_all(summary, "the pipeline", folder)
    return dict(ledger.replies(keys))


def _take(wave: Mapping[_Pair, CallSpec], replies: Mapping[str, Reply]) -> None:
    for pair, call in wave.items():
        reply, asked = replies[call.key], pair.first.asked[-1]
        pair.notes.add(asked.day, asked.stage, call, reply)
        pair.first.take(reply)
        pair.second.follow(reply)  # its own prompt might differ, with its portfolio: what counts is what was answered


def _finished(pairs: Sequence[_Pair]) -> tuple[Episode, ...]:
    return tuple(
        Episode(one.first.agent, one.first, one.first.result(), one.second.result(), one.notes) for one in pairs
    )


FILE: Final = "questions.jsonl"
"""In the run folder: the questions that were asked."""

EXCERPT: Final = 1500


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One question as one model answered it under one condition, scored by the plan's convention and the other one.

    ``missing`` says that nothing came: no reply, not one that could not be read.
    """

    question: Question
    condition: Condition
    scored: QAScore
    other: QAScore
    reply: str
    key: str
    missing: bool


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """All that one model answered."""

    agent: AgentSpec
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """One call: a question under one condition, put to one model."""

    agent: AgentSpec
    question: Question
    condition: Condition
    call: CallSpec


def chosen_questions(locked: LockedBench) -> tuple[Question, ...]:
    """The questions that are asked: so many of each template from one split, by a draw that any machine repeats."""
    wanted = locked.plan.questions
    chosen: list[Question] = []
    for template in TEMPLATES:
        some = [one for one in locked.pool if one.template == template]
        drawn = sorted(some, key=lambda one: sha256_text(f"{wanted.seed}/{one.id}"))[: wanted.per_template]
        chosen += sorted(drawn, key=lambda one: one.id)
    if not chosen:
        raise InputError("questions", [Problem("split", f"no question is in the split {wanted.split!r}")])
    return tuple(chosen)


def ask_questions(
    folder: RunFolder, locked: LockedBench, models: Mapping[str, Model], *, progress: Progress = silent
) -> tuple[Answered, ...]:
    """Put every question to every model; what the ledger has is not asked again."""
    asked = planned_questions(locked)
    write_questions(folder.path / FILE, list({one.question.id: one.question for one in asked}.values()))
    write_sums(folder)
    calls = list({one.call.key: one.call for one in asked}.values())
    with Ledger.open(folder.ledger) as ledger:
        hold_ledger(folder, ledger, locked)
        ledger.plan(calls)
        summary = run_all(ledger, calls, models, locked.plan.engine, what=QUESTIONS, progress=progress)
        require_all(summary, "the questions", folder)
        return _answered(locked, asked, dict(ledger.replies([call.key for call in calls])))


def stored_answers(folder: RunFolder, locked: LockedBench) -> tuple[Answered, ...] | None:
    """What the ledger has of a plan's questions; None if they were not asked, or an answer is missing."""
    if not (folder.path / FILE).is_file() or not folder.has_ledger:
        return None
    asked = planned_questions(locked)
    keys = list({one.call.key for one in asked})
    with Ledger.open(folder.ledger, create=False) as ledger:
        if ledger.pending(keys):
            return None
        return _answered(locked, asked, dict(ledger.replies(keys)))


def planned_questions(locked: LockedBench) -> tuple[_Asked, ...]:
    """Every call of the questions. What reads alike under both conditions is asked under the first one only."""
    conditions = locked.plan.questions.conditions
    shown = [
        (question, condition, Message("user", (Text.of(question.prompt(condition)),)))
        for question in chosen_questions(locked)
        for condition in conditions
        if condition == conditions[0] or question.template in ABLATED
    ]
    return tuple(
        _Asked(agent, question, condition, _call(agent, question, condition, message))
        for agent in locked.plan.models
        for question, condition, message in shown
    )


def _call(agent: AgentSpec, question: Question, condition: Condition, message: Message) -> CallSpec:
    if is_outside(agent.model):
        asked = question.template, question.given(condition)
        return outside_call(agent, message.text, ANSWER_SCHEMA, template_digest(), asked=asked)
    return CallSpec(
        model=agent.model,
        messages=(message,),
        template=template_digest(),
        seed=agent.seed,
        temperature=agent.temperature,
        effort=agent.effort,
        args=agent.args,
    )


def _answered(locked: LockedBench, asked: Sequence[_Asked], replies: Mapping[str, Reply]) -> tuple[Answered, ...]:
    items: defaultdict[str, list[Item]] = defaultdict(list)
    for one in asked:
        reply = replies[one.call.key]
        scored, turned = (
            score_answer(one.question, reply.text, finish=reply.finish, convention=each)
            for each in (locked.plan.convention, locked.other)
        )
        text = reply.text[:EXCERPT]
        item = Item(one.question, one.condition, scored, turned, text, one.call.key, no_reply(reply))
        items[one.agent.name].append(item)
    return tuple(Answered(agent, tuple(items[agent.name])) for agent in locked.plan.models)


# --- numbers --------------------------------------------------------------------------------------------------------


def question_scores(locked: LockedBench, answers: Sequence[Answered]) -> Iterator[Score]:
    """Rows of the table of scores, by both conventions."""
    for answered in answers:
        for item in answered.items:
            one = item.question
            labels = {"template": one.template, "condition": item.condition, "regime": one.regime, "split": one.split}
            for convention, scored in ((locked.plan.convention, item.scored), (locked.other, item.other)):
                yield Score(
                    about=one.id,
                    agent=answered.agent.name,
                    cluster=str(one.day),
                    name="QA",
                    value=float(scored.score),
                    convention=convention,
                    state=scored.state,
                    labels=labels,
                )


def question_items(
    answers: Sequence[Answered], condition: Condition, unscored: Mapping[str, str], *, other: bool = False
) -> ScoredItems:
    """Scores of every model on every question under one condition; questions of one day are one cluster."""
    rows = [[one for one in answered.items if one.condition == condition] for answered in answers]
    models = tuple(answered.agent.name for answered in answers)
    values = np.array([[(one.other if other else one.scored).score for one in row] for row in rows])
    values[[name in unscored for name in models]] = np.nan
    return ScoredItems(
        models,
        values,
        tuple(str(one.question.day) for one in rows[0]),
        tuple(one.question.template for one in rows[0]),
        unscored,
    )


def question_replies(answers: Sequence[Answered]) -> Lacking:
    """How many questions each model gave no reply to, of how many."""
    return {one.agent.name: (sum(item.missing for item in one.items), len(one.items)) for one in answers}


def question_measurements(locked: LockedBench, answers: Sequence[Answered]) -> list[Measurement]:
    """The leaderboard of questions, and means by template, kind and regime under each condition."""
    level = locked.plan.level
    first = locked.plan.questions.conditions[0]
    replies = question_replies(answers)
    gone = left_out(locked, replies)
    boards, others = ({QUESTIONS: question_items(answers, first, gone, other=other)} for other in (False, True))
    found = [*missing_measurements(QUESTIONS, replies, gone), *family_measurements(locked, boards, others)]
    for at, answered in enumerate(answers):
        rng = np.random.default_rng([locked.plan.seed, 3, at])
        rows = [Scored(one.question, one.condition, one.scored) for one in answered.items]
        table = _table(answered.agent.name, first, tabulate(rows, rng=rng, level=level), level)
        found += without_numbers(table, gone)
    return found


def _table(model: str, first: Condition, table: QATable, level: float) -> Iterator[Measurement]:
    """One row of Table 8 as measurements."""
    for name, cell in (("template", table.templates), ("restricted", table.restricted)):
        condition = first if name == "template" else "restricted"
        for template, found in cell.items():
            yield _cell(found, {"model": model, "condition": condition, "template": template}, level)
    for template, found in table.ablation.items():
        yield _cell(found, {"model": model, "condition": "full less restricted", "template": template}, level)
    for regime, found in table.regimes.items():
        yield _cell(found, {"model": model, "condition": first, "regime": regime}, level)
    for kind, whole in (("formula", table.formula), ("judgment", table.judgment)):
        if whole is not None:
            yield _cell(whole, {"model": model, "condition": first, "kind": kind}, level)
    if table.mean is not None:
        yield _cell(table.mean, {"model": model, "condition": first}, level)


def _cell(cell: Cell, labels: Mapping[str, str], level: float) -> Measurement:
    return Measurement(
        name="bench.question",
        labels=labels,
        value=cell.value,
        n=cell.n,
        n_of="questions",
        method=cell.method,
        low=cell.low,
        high=cell.high,
        level=None if cell.low is None else level,
    )


def rank_measurements(
    locked: LockedBench, episodes: Sequence[Episode], answers: Sequence[Answered]
) -> list[Measurement]:
    """Whether models rank alike on questions and in the pipeline; nothing for fewer than three models."""
    if len(locked.plan.models) < 3:
        return []
    board = boards_of(locked)[0]
    mine = [one for one in episodes if board in (ALL, one.result.profile)]
    first = locked.plan.questions.conditions[0]

    unscored, gone = unscored_models(locked, episodes), left_out(locked, question_replies(answers))

    def measured(resamples: int, *, other: bool) -> Measurement:
        rest = unscored_models(locked, episodes, other=True) if other else {}
        two = question_items(answers, first, gone, other=other), ceps_items(mine, unscored | rest, other=other)
        rng = np.random.default_rng([locked.plan.seed, 2])
        return rank_agreement(
            DISSOCIATION, *two, {"board": board}, rng=rng, level=locked.plan.level, resamples=resamples
        )

    found, turned = measured(RESAMPLES, other=False), measured(2, other=True).value
    detail = found.detail if turned is None else {**found.detail, "other": turned}
    return [replace(found, detail=detail)]


def question_traces(answers: Sequence[Answered]) -> tuple[QuestionTrace, ...]:
    """The worst and the best answered question of each model, template and condition."""
    shown: list[QuestionTrace] = []
    for answered in answers:
        groups: defaultdict[tuple[Template, Condition], list[Item]] = defaultdict(list)
        for item in answered.items:
            groups[item.question.template, item.condition].append(item)
        for items in groups.values():
            ranked = sorted(items, key=lambda one: (one.scored.score, one.question.id))
            shown += [_trace(answered.agent.name, one) for one in dict.fromkeys((ranked[0], ranked[-1]))]
    return tuple(shown)


def asked_questions(answers: Sequence[Answered]) -> tuple[AskedQuestion, ...]:
    """Every answer with its score and its call."""
    kinds = {**dict.fromkeys(FORMULA, "formula"), **dict.fromkeys(JUDGMENT, "judgment")}
    return tuple(
        AskedQuestion(
            model=answered.agent.name,
            question=item.question.id,
            template=item.question.template,
            condition=item.condition,
            regime=item.question.regime,
            kind=kinds.get(item.question.template, ""),
            score=item.scored.score,
            state=item.scored.state,
            key=item.key,
        )
        for answered in answers
        for item in answered.items
    )


def _trace(model: str, item: Item) -> QuestionTrace:
    one = item.question
    return QuestionTrace(
        model=model,
        template=one.template,
        condition=item.condition,
        regime=one.regime,
        prompt=one.prompt(item.condition)[:EXCERPT],
        reply=item.reply,
        truth=answer_text(one.answer),
        score=item.scored.score,
        state=item.scored.state if not item.scored.reason else f"{item.scored.state}: {item.scored.reason}",
        key=item.key,
    )
