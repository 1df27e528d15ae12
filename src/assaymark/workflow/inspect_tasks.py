"""Inspect AI: judges as Inspect tasks, and a judged run as logs for Inspect's viewer.

`inspect eval assaymark/judge` and `inspect eval assaymark/pairs` are found by an entry point; the model is set on
Inspect's command line. The prompts are those of a study, and the same strict parsers read the replies. Such an eval is
not a run: nothing of it is stored in a ledger, and no claim follows from it.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from assaymark import __version__
from assaymark.engine import CallSpec, Finish, Ledger, Message, Reply
from assaymark.engine.providers.inspect import response_schema
from assaymark.errors import AssayError, InputError, LedgerError, PlanError, Problem
from assaymark.judging import PlannedCall, PlannedGrade, Rubric, find_rubric, judgment, load_rubric, rubric_form
from assaymark.judging import pairs as stimuli
from assaymark.judging.pairs import TIE_ALLOWED
from assaymark.protocol import JudgeSpec
from assaymark.records import Judgment, sha256_text
from assaymark.workflow.amend import open_version_1
from assaymark.workflow.lock import Locked, open_locked
from assaymark.workflow.run_folder import RunFolder, is_version_1
from assaymark.workflow.study_calls import JudgingSession
from assaymark.workflow.tables import ANCHOR, JUDGMENTS, PROBE, RecordTable, atomic_path
from assaymark.workflow.tracks.datasheet import datasheet_name

Value = dict[str, float]
_ASKED: Final = JudgeSpec(name="asked", model="inspect/asked", family="asked")
_ENDS: Final[dict[str, Finish]] = {"max_tokens": "length", "model_length": "length", "content_filter": "refusal"}


Made = TypeVar("Made", bound=Callable[..., Any])

ai: Any = None if importlib.util.find_spec("inspect_ai") is None else importlib.import_module("inspect_ai")
"""Inspect AI; None if it is not installed (the extra [inspect])."""


def _require_inspect() -> None:
    if ai is None:
        raise AssayError("this needs the package inspect-ai: pip install 'assaymark[inspect]'")


def _task(make: Made) -> Made:
    """Register a task with Inspect, if that is installed."""
    return make if ai is None else ai.task(make)


def _scorer(*shares: str) -> Callable[[Made], Made]:
    """Register a scorer with Inspect, which averages these values only.

    A mean over trajectories does not compare agents, but in a list of evals it would look as if it did.
    """

    def register(make: Made) -> Made:
        return make if ai is None else ai.scorer.scorer(metrics={name: [ai.scorer.mean()] for name in shares})(make)

    return register


@_task
def judge(run: str, rubric: str = "", trials: int = 1) -> Any:
    """Task: grade the trajectories of the locked run folder ``run``, each ``trials`` times."""
    _require_inspect()
    folder = RunFolder(Path(run))
    locked = open_locked(folder)
    criteria = find_rubric(rubric) if rubric else locked.rubric
    session = JudgingSession(folder, locked, {})
    planned = session.plan(criteria, [_ASKED])
    names = item_names(session.shown)
    clusters = {decision.record_id: decision.cluster for decision in session.decisions}
    samples = [_sample(call.call, names[call.about], {"cluster": clusters[call.about]}) for call in planned]
    about = {"plan_hash": locked.plan_hash, "rubric": criteria.version}
    ordered = sorted(samples, key=lambda sample: str(sample.id))
    scorer = graded((not rubric and locked.study.rubric.text) or rubric or criteria.version)
    return _made_task("decisions", ordered, planned, scorer, trials, about)


@_task
def pairs(seed: int = 7, prompt: str = TIE_ALLOWED, trials: int = 1) -> Any:
    """Task: compare the pairs of a judge datasheet on the finance tasks, each in both orders."""
    _require_inspect()
    built = stimuli.build_stimuli(stimuli.finance_tasks(), seed)
    stimuli.check(built)
    planned = stimuli.plan_pair_calls(built, _ASKED, [prompt])
    # The properties of a pair in one order: for the scorer and for readers of the log, never for the model.
    samples: list[Any] = []
    for call in planned:
        pair, order = call.about
        slot = "" if pair.better is None else str(order.index(pair.better) + 1)
        details = {"condition": pair.condition, "variant": pair.variant, "delta": pair.delta, "task": pair.task}
        samples.append(_sample(call.call, f"{pair.id} {order}", {"better": slot, **details}))
    about = {"seed": seed, "prompt": prompt, "tasks": "finance"}
    return _made_task("pairs", samples, planned, preferred(), trials, about)


def graded_value(text: str, stop: str, rubric: str) -> tuple[Value, str | None]:
    """Return the scores of a judge's reply (NaN if it is unusable), and the reason if it has none."""
    criteria = find_rubric(rubric)
    call = CallSpec(_ASKED.model, messages=(), template="")
    planned = PlannedCall(call, _ASKED, "", rubric_form(criteria))
    grade = judgment(planned, Reply(text, model="", finish=_ENDS.get(stop, "stop")))
    scores = grade.scores or dict.fromkeys(criteria.names, math.nan)
    return {"usable": float(grade.status == "ok"), **scores}, grade.reason


def preferred_value(text: str, stop: str, better: str) -> tuple[Value, str | None]:
    """Return the scores of a judge's reply to a pair (NaN where one does not apply), and the reason if it has none."""
    finish = _ENDS.get(stop)
    read = stimuli.pair_form().parse(text)
    if finish or read.answer is None:
        reason = f"the reply ended by {finish}" if finish else read.reason
        return {"usable": 0.0, "first": math.nan, "right": math.nan}, reason
    first = {"1": 1.0, "2": 0.0}.get(read.answer, math.nan)
    right = float(read.answer == better) if better else math.nan
    return {"usable": 1.0, "first": first, "right": right}, None


def _sample(call: CallSpec, name: str, metadata: dict[str, Any]) -> Any:
    return ai.dataset.Sample(id=name, input=chat_messages(call), metadata=metadata)


def _made_task(
    name: str, samples: list[Any], planned: Sequence[PlannedCall[Any, Any]], scorer: Any, trials: int,
    metadata: dict[str, Any],
) -> Any:  # fmt: skip
    """Return a task that requests the reply form by the provider's own means, and never answers from a cache."""
    if not planned:
        raise InputError("inspect eval", [Problem("run", "no decision is left to judge")])
    return ai.Task(
        dataset=ai.dataset.MemoryDataset(samples, name=name), solver=ai.solver.generate(cache=False), scorer=scorer,
        config=ai.model.GenerateConfig(response_schema=response_schema(planned[0].call)), epochs=trials,
        metadata=metadata,
    )  # fmt: skip


@_scorer("usable")
def graded(rubric: str) -> Callable[[Any, Any], Awaitable[Any]]:
    """Return a scorer that parses a judge's reply strictly: usable or not, and a score for each rubric dimension."""

    async def score(state: Any, _target: Any) -> Any:
        return _score(state, *graded_value(state.output.completion, _stop(state), rubric))

    return score


@_scorer("usable", "first", "right")
def preferred() -> Callable[[Any, Any], Awaitable[Any]]:
    """Return a scorer of a judge's reply to a pair: usable or not, first slot preferred, better text preferred."""

    async def score(state: Any, _target: Any) -> Any:
        return _score(state, *preferred_value(state.output.completion, _stop(state), state.metadata["better"]))

    return score


def _stop(state: Any) -> str:
    return str(state.output.choices[0].stop_reason) if state.output.choices else "unknown"


def _score(state: Any, value: Value, problem: str | None) -> Any:
    reason = None if problem is None else "invalid_response_format"
    return ai.scorer.Score(value=value, answer=state.output.completion, explanation=problem, reason=reason)


# --- Logs of a run ----------------------------------------------------------------------------------------------------

TASK: Final = "assaymark/judge"
"""The task that exported logs name."""

_STOPS: Final[Mapping[Finish, str]] = {
    "stop": "stop", "length": "max_tokens", "refusal": "content_filter", "failed": "unknown",
}  # fmt: skip
_REASONS: Final = {"invalid": "invalid_response_format", "refused": "refusal"}
_NOT_SHOWN: Final = (
    "Agents and record ids are left out, as they were for the judge. Which rankings are supported "
    "is in the report of the run. call_key finds the record in tables/judgments.parquet."
)


def export_inspect(folder: RunFolder, out: Path) -> list[dict[str, Any]]:
    """Write one ``.eval`` log for each judge of a run, with its calls and replies; returns path and counts of each."""
    _require_inspect()
    locked = open_version_1(folder) if is_version_1(folder) else open_locked(folder)
    session = JudgingSession(folder, locked, {})
    study, store, names = locked.study, session.store, item_names(session.shown)
    clusters = {decision.record_id: decision.cluster for decision in session.decisions}
    probe, anchor = study.stability.probe, study.anchor_probe
    kinds: list[tuple[str, RecordTable[Judgment], Sequence[JudgeSpec], Rubric]] = [
        ("panel", JUDGMENTS, study.model_judges, locked.rubric)
    ]
    if probe is not None and store.digest(PROBE) is not None:
        kinds.append(("outside", PROBE, [probe], locked.rubric))
    if anchor is not None and store.digest(ANCHOR) is not None:
        kinds.append(("anchor", ANCHOR, study.anchor_judges, load_rubric(anchor.rubric)))
    files = []
    for kind, table, judges, rubric in kinds:
        judgments = {(grade.judge, grade.trajectory, grade.trial): grade for grade in store.read(table)}
        for judge in judges:
            planned = session.plan(rubric, [judge])
            pairs = [(call, judgments.get((judge.name, call.about, call.call.trial))) for call in planned]
            answered = [(one.again() if grade.first_key else one, grade) for one, grade in pairs if grade is not None]
            if any(planned.call.key != answer.call_key for planned, answer in answered):
                raise PlanError(f"{folder.path}: the judgments of {judge.name} were not made under this plan")
            keys = [planned.call.key for planned, _ in answered]
            with Ledger.open(folder.ledger, create=False) as ledger:
                replies = dict(ledger.replies(keys))
            if lost := len(set(keys) - replies.keys()):
                raise LedgerError(f"{lost} replies of judged calls cannot be found in {folder.ledger}; it is damaged")
            if answered:
                path = out / f"{kind}-{datasheet_name(judge.name)}.eval"
                samples = [
                    _answer(kind, rubric, names, clusters, one, replies[one.call.key], grade) for one, grade in answered
                ]
                ids = sorted({names[planned.about] for planned, _ in answered})
                scored = sum(answer.status == "ok" for _, answer in answered)
                log = _log(locked, kind, judge, rubric, ids, samples, scored)
                with atomic_path(path) as part:
                    ai.log.write_eval_log(log, str(part), format="eval")
                files.append({"path": str(path), "judge": judge.name, "samples": len(answered), "scored": scored})
    return files


def item_names(shown: Mapping[str, Message]) -> dict[str, str]:
    """Return an anonymous name for each judged item: its rank by the digest of its blinded prompt."""
    order = sorted(shown, key=lambda name: (sha256_text(shown[name].canonical), name))
    return {name: f"item-{place:04d}" for place, name in enumerate(order, start=1)}


def chat_messages(call: CallSpec) -> list[Any]:
    """Return the messages of a call as Inspect's; ids are content digests, so that equal logs are equal."""
    kinds = {"system": ai.model.ChatMessageSystem, "user": ai.model.ChatMessageUser}
    return [
        kinds[message.role](id=sha256_text(message.canonical)[:22], content=_valid_utf8(message.text), source="input")
        for message in call.messages
    ]


def _log(
    locked: Locked, kind: str, judge: JudgeSpec, rubric: Rubric, ids: Sequence[str], samples: Sequence[Any],
    scored: int,
) -> Any:  # fmt: skip
    """Return the replies of one judge as an ``EvalLog``, with its model, the plan, and how many have scores."""
    log, plan, study, when = ai.log, locked.plan_hash, locked.study.name, locked.locked_at
    counts = {"scored_samples": scored, "unscored_samples": len(samples) - scored}
    settings = {"temperature": judge.temperature, "seed": judge.seed, "reasoning_effort": judge.effort}
    about = {"plan_hash": plan, "kind": kind, "judge": judge.name, "family": judge.family}
    spec = log.EvalSpec(
        eval_id=sha256_text(f"{plan} {kind} {judge.name}")[:22], run_id=plan[:22],
        task_id=sha256_text(f"{plan} {kind}")[:22], created=when, task=TASK,
        task_display_name=f"{judge.name} ({kind})",
        dataset=log.EvalDataset(name=study, samples=len(ids), sample_ids=ids, shuffled=False),
        model=judge.model, model_args=dict(judge.args), model_generate_config=ai.model.GenerateConfig(**settings),
        config=log.EvalConfig(epochs=judge.trials), packages={"assaymark": __version__},
        metadata={**about, "rubric": rubric.version, "not_shown": _NOT_SHOWN},
    )  # fmt: skip
    scores = [log.EvalScore(name=name, scorer=name, **counts) for name in rubric.names]
    return log.EvalLog(
        status="success", eval=spec, samples=samples,
        results=log.EvalResults(total_samples=len(samples), completed_samples=len(samples), scores=scores),
        # The only time on record; without one the viewer shows NaN as the duration.
        stats=log.EvalStats(started_at=when, completed_at=when),
    )  # fmt: skip


def _answer(
    kind: str, rubric: Rubric, names: Mapping[str, str], clusters: Mapping[str, str], planned: PlannedGrade,
    reply: Reply, judged: Judgment,
) -> Any:  # fmt: skip
    """Return one reply as an ``EvalSample``: the prompt, the reply, and the scores that were read from it."""
    model, messages = ai.model, chat_messages(planned.call)
    assistant = model.ChatMessageAssistant(
        id=planned.call.key[:22], content=_valid_utf8(reply.text), source="generate", model=reply.model
    )
    usage = None
    if reply.input_tokens is not None and reply.output_tokens is not None:
        usage = model.ModelUsage(
            input_tokens=reply.input_tokens - (reply.cached_tokens or 0),  # without cached tokens
            output_tokens=reply.output_tokens, total_tokens=reply.input_tokens + reply.output_tokens,
            input_tokens_cache_read=reply.cached_tokens, reasoning_tokens=reply.reasoning_tokens,
        )  # fmt: skip
    choice = model.ChatCompletionChoice(message=assistant, stop_reason=_STOPS[reply.finish])
    output = model.ModelOutput(model=reply.model, choices=[choice], usage=usage, time=reply.seconds)
    score = ai.scorer.Score
    if judged.status == "ok":
        scores = {name: score(value=judged.scores[name]) for name in rubric.names}
    else:  # a sample without scores, with the reason
        lost = {"reason": _REASONS[judged.status], "explanation": judged.reason}
        scores = {name: score.unscored(**lost) for name in rubric.names}
    return ai.log.EvalSample(
        id=names[planned.about], epoch=planned.call.trial,
        uuid=sha256_text(f"{kind} {planned.judge.name} {planned.about} {planned.call.trial}")[:22],
        input=messages, target="", messages=[*messages, output.message], output=output, scores=scores,
        model_usage={planned.call.model: output.usage} if output.usage else {}, total_time=reply.seconds,
        metadata={
            "cluster": clusters[planned.about],
            "status": judged.status,
            "call_key": judged.call_key,
            "lookahead_check": judged.lookahead_check,
            "evidence": [_valid_utf8(quote) for quote in judged.evidence],
        },
    )  # fmt: skip


def _valid_utf8(text: str) -> str:
    """``text`` as valid UTF-8: half of a surrogate pair becomes its escape."""
    return text.encode("utf-8", "backslashreplace").decode()
