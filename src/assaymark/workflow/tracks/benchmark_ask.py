"""The questions of a benchmark: which are asked, what was answered, and what is measured of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from assaymark.benchmark.episode import EpisodeRules, EpisodeState
from assaymark.benchmark.plan import BenchPlan
from assaymark.benchmark.profiles import profile_named
from assaymark.benchmark.questions.answers import (
    FORMULA,
    JUDGMENT,
    Cell,
    QAScore,
    QATable,
    Scored,
    score_answer,
    tabulate,
)
from assaymark.benchmark.questions.payloads import ABLATED, TEMPLATES, Condition, Template
from assaymark.benchmark.questions.published import answer_text, write_questions
from assaymark.benchmark.questions.render import template_digest
from assaymark.benchmark.questions.templates import Question
from assaymark.benchmark.replies import ANSWER_SCHEMA, model_call, outside_call
from assaymark.benchmark.scores import EpisodeResult
from assaymark.claims.boards import DISSOCIATION
from assaymark.engine import CallSpec, Ledger, Message, Model, Reply, Text
from assaymark.engine.providers.http_agent import is_outside, no_reply
from assaymark.errors import InputError, Problem
from assaymark.metrology.measure_orders import RESAMPLES, ScoredItems, rank_agreement
from assaymark.protocol import AgentSpec
from assaymark.records import Measurement, Score, sha256_text
from assaymark.report.portbench import AskedQuestion, QuestionTrace
from assaymark.report.portbench.inputs import ALL, QUESTIONS
from assaymark.workflow.ask import hold_ledger, require_all, run_all
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import RunFolder, write_sums
from assaymark.workflow.track import Within
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
        convention=plan.convention, alpha=chosen.alpha, penalty=chosen.penalty, cost_bps=chosen.cost_bps,
        drift_limit=chosen.drift_limit,
    )  # fmt: skip


def pipeline_calls(locked: LockedBench) -> int:
    """How many calls the pipeline makes: three a decision date."""
    plan = locked.plan
    dates = sum(len(one.decisions) for one in locked.data.windows)
    return 3 * dates * len(plan.models) * len(plan.pipeline.profiles)


def run_episodes(
    folder: RunFolder, locked: LockedBench, models: Mapping[str, Model], *, progress: Progress = silent
) -> tuple[Episode, ...]:
    """Take every episode of a plan to its end; what the ledger has is not asked again."""
    engine = locked.plan.engine.model_copy(update={"batch": False})  # a stage needs the reply to the one before
    total = pipeline_calls(locked)
    with Ledger.open(folder.ledger) as ledger:
        hold_ledger(folder, ledger, locked)

        def answered(calls: Sequence[CallSpec], done: int) -> dict[str, Reply]:
            keys = [call.key for call in calls]
            if ledger.pending(keys):
                ledger.plan(calls)
                told = Within(progress, lambda now, _of: progress("pipeline", done + now, total))
                summary = run_all(ledger, calls, models, engine, what="pipeline", progress=told)
                require_all(summary, "the pipeline", folder)
            return dict(ledger.replies(keys))

        found = _each_episode(locked, answered, lambda done: progress("pipeline", done, total))
    assert found is not None
    return found


def stored_episodes(
    folder: RunFolder, locked: LockedBench, *, progress: Progress = silent
) -> tuple[Episode, ...] | None:
    """The episodes of a plan from the replies in its ledger; None if some are missing."""
    if not folder.has_ledger:
        return None
    total = pipeline_calls(locked)
    with Ledger.open(folder.ledger, create=False) as ledger:
        return _each_episode(
            locked,
            lambda calls, _done: dict(ledger.replies({call.key for call in calls})),
            lambda done: progress("reading the pipeline", done, total),
        )


def _each_episode(
    locked: LockedBench,
    replies_to: Callable[[Sequence[CallSpec], int], Mapping[str, Reply]],
    progress: Callable[[int], None],
) -> tuple[Episode, ...] | None:
    """Every episode under both conventions, wave by wave; None where a reply is missing.

    The replies are those to the plan's convention. By the other one a prompt might differ, with its portfolio: what
    counts is what was answered.
    """
    plan, rules = locked.plan, rules_of(locked.plan)
    turned = replace(rules, convention=locked.other)
    episodes = [
        (EpisodeState(agent, profile, window, rules), EpisodeState(agent, profile, window, turned), Notes())
        for agent, profile, window in product(
            plan.models, map(profile_named, plan.pipeline.profiles), locked.data.windows
        )
    ]
    done = 0
    while wave := [(one, call) for one in episodes if (call := one[0].next_call()) is not None]:
        replies = replies_to(list({call.key: call for _, call in wave}.values()), done)
        if any(call.key not in replies for _, call in wave):
            return None
        for (first, second, notes), call in wave:
            reply, asked = replies[call.key], first.asked[-1]
            notes.add(asked.day, asked.stage, call, reply)
            first.take(reply)
            second.follow(reply)
        done += len(wave)
        progress(done)
    return tuple(
        Episode(first.agent, first, first.result(), second.result(), notes) for first, second, notes in episodes
    )


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


FILE: Final = "questions.jsonl"
"""In the run folder: the questions that were asked."""

EXCERPT: Final = 1500


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One question as one model answered it under one condition, scored by the plan's convention and the other one."""

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
    write_questions(folder.path / FILE, list({one.id: one for _, one, _, _ in asked}.values()))
    write_sums(folder)
    calls = list({call.key: call for *_, call in asked}.values())
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
    keys = list({call.key for *_, call in asked})
    with Ledger.open(folder.ledger, create=False) as ledger:
        if ledger.pending(keys):
            return None
        return _answered(locked, asked, dict(ledger.replies(keys)))


def planned_questions(locked: LockedBench) -> list[tuple[AgentSpec, Question, Condition, CallSpec]]:
    """Every call of the questions. What reads alike under both conditions is asked under the first one only."""
    first, found = locked.plan.questions.conditions[0], []
    shown = [
        (question, condition, Message("user", (Text.of(question.prompt(condition)),)))
        for question in chosen_questions(locked)
        for condition in locked.plan.questions.conditions
        if condition == first or question.template in ABLATED
    ]
    for agent, (question, condition, message) in product(locked.plan.models, shown):
        if is_outside(agent.model):
            asked = question.template, question.given(condition)
            call = outside_call(agent, message.text, ANSWER_SCHEMA, template_digest(), asked=asked)
        else:
            call = model_call(agent, (message,), template_digest())
        found.append((agent, question, condition, call))
    return found


def _answered(
    locked: LockedBench, asked: Sequence[tuple[AgentSpec, Question, Condition, CallSpec]],
    replies: Mapping[str, Reply],
) -> tuple[Answered, ...]:  # fmt: skip
    items: defaultdict[str, list[Item]] = defaultdict(list)
    for agent, question, condition, call in asked:
        reply = replies[call.key]
        scored, turned = (
            score_answer(question, reply.text, finish=reply.finish, convention=each)
            for each in (locked.plan.convention, locked.other)
        )
        item = Item(question, condition, scored, turned, reply.text[:EXCERPT], call.key, no_reply(reply))
        items[agent.name].append(item)
    return tuple(Answered(agent, tuple(items[agent.name])) for agent in locked.plan.models)


def question_scores(locked: LockedBench, answers: Sequence[Answered]) -> Iterator[Score]:
    """Rows of the table of scores, by both conventions."""
    for answered in answers:
        for item in answered.items:
            one = item.question
            labels = {"template": one.template, "condition": item.condition, "regime": one.regime, "split": one.split}
            for convention, scored in ((locked.plan.convention, item.scored), (locked.other, item.other)):
                yield Score(
                    about=one.id, agent=answered.agent.name, cluster=str(one.day), name="QA",
                    value=float(scored.score), convention=convention, state=scored.state, labels=labels,
                )  # fmt: skip


def question_items(
    answers: Sequence[Answered], condition: Condition, unscored: Mapping[str, str], *, other: bool = False
) -> ScoredItems:
    """Scores of every model on every question under one condition; questions of one day are one cluster."""
    rows = [[one for one in answered.items if one.condition == condition] for answered in answers]
    models = tuple(answered.agent.name for answered in answers)
    values = np.array([[(one.other if other else one.scored).score for one in row] for row in rows])
    values[[name in unscored for name in models]] = np.nan
    return ScoredItems(
        models, values, tuple(str(one.question.day) for one in rows[0]),
        tuple(one.question.template for one in rows[0]), unscored,
    )  # fmt: skip


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
        found += without_numbers(_table(answered.agent.name, first, tabulate(rows, rng=rng, level=level), level), gone)
    return found


def _table(model: str, first: Condition, table: QATable, level: float) -> Iterator[Measurement]:
    cells: list[tuple[Cell | None, str, dict[str, str]]] = []
    for condition, of in ((first, table.templates), ("restricted", table.restricted)):
        cells += [(cell, condition, {"template": template}) for template, cell in of.items()]
    cells += [(cell, "full less restricted", {"template": template}) for template, cell in table.ablation.items()]
    cells += [(cell, first, {"regime": regime}) for regime, cell in table.regimes.items()]
    cells += [(table.formula, first, {"kind": "formula"}), (table.judgment, first, {"kind": "judgment"})]
    for cell, asked, labels in (*cells, (table.mean, first, {})):
        if cell is not None:
            yield Measurement(
                name="bench.question", labels={"model": model, "condition": asked, **labels}, value=cell.value,
                n=cell.n, n_of="questions", method=cell.method, low=cell.low, high=cell.high,
                level=None if cell.low is None else level,
            )  # fmt: skip


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
            for item in dict.fromkeys((ranked[0], ranked[-1])):
                one, scored = item.question, item.scored
                state = scored.state if not scored.reason else f"{scored.state}: {scored.reason}"
                shown.append(
                    QuestionTrace(
                        model=answered.agent.name, template=one.template, condition=item.condition, regime=one.regime,
                        prompt=one.prompt(item.condition)[:EXCERPT], reply=item.reply, truth=answer_text(one.answer),
                        score=scored.score, state=state, key=item.key,
                    )
                )  # fmt: skip
    return tuple(shown)


def asked_questions(answers: Sequence[Answered]) -> tuple[AskedQuestion, ...]:
    """Every answer with its score and its call."""
    kinds = {**dict.fromkeys(FORMULA, "formula"), **dict.fromkeys(JUDGMENT, "judgment")}
    return tuple(
        AskedQuestion(
            model=answered.agent.name, question=item.question.id, template=item.question.template,
            condition=item.condition, regime=item.question.regime, kind=kinds.get(item.question.template, ""),
            score=item.scored.score, state=item.scored.state, key=item.key,
        )
        for answered in answers
        for item in answered.items
    )  # fmt: skip
