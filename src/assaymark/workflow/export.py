"""Tasks for Inspect AI: `inspect eval assaymark/judge` and `inspect eval assaymark/pairs`, found by an entry point.

Whoever runs them chooses the model on Inspect's command line. The prompts are the ones of a study, and the replies are
read by the same strict parsers. Such an eval is no run: nothing of it enters a ledger, and no claim follows from it.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from assaymark import __version__
from assaymark.engine import CallSpec, Finish, Ledger, Message, Reply
from assaymark.engine.providers.inspect import response_schema
from assaymark.errors import AssayError, InputError, LedgerError, PlanError, Problem
from assaymark.judging import Invalid, PlannedCall, Rubric, judgment, load_rubric, plan_calls, second_call
from assaymark.judging.pairs import (
    TIE_ALLOWED,
    PlannedPairCall,
    build_stimuli,
    check,
    finance_tasks,
    parse_pair_reply,
    plan_pair_calls,
)
from assaymark.protocol import JudgeSpec
from assaymark.records import Judgment, sha256_text
from assaymark.workflow.lock import open_locked
from assaymark.workflow.run_folder import RunFolder, is_version_1
from assaymark.workflow.study_calls import Desk
from assaymark.workflow.tables import ANCHOR, JUDGMENTS, PROBE, Store, Table
from assaymark.workflow.track import Progress, silent
from assaymark.workflow.tracks.datasheet import datasheet_name
from assaymark.workflow.version_1 import open_version_1

# `assaymark export`: a judged run as logs that Inspect's viewer opens, or as Arrow tables for a notebook.
#
# A log shows what its judge saw and said, and no more than that about who decided: samples are numbered by the digest
# of the blinded prompt, agents and record ids are left out, and no mean is taken over them. Otherwise a viewer that
# sorts by score would print the very order that a verdict withholds.


TASK: Final = "assaymark/judge"
"""What the exported logs name as their task."""

_STOPS: Final[Mapping[Finish, str]] = {
    "stop": "stop",
    "length": "max_tokens",
    "refusal": "content_filter",
    "failed": "unknown",
}
_REASONS: Final = {"invalid": "invalid_response_format", "refused": "refusal"}
_NOT_SHOWN: Final = (
    "Agents and record ids are left out, as they were for the judge. Which agents may be ordered is a matter of "
    "verdicts; see the report of the run. call_key leads to the record in tables/judgments.parquet."
)


@dataclass(frozen=True, slots=True)
class ExportedLog:
    """One log that was written: whose answers it holds, how many, and how many of them carry scores."""

    path: Path
    judge: str
    samples: int
    scored: int

    def __str__(self) -> str:
        return f"{self.path}: {self.samples} answers of {self.judge}, {self.scored} with scores"


@dataclass(frozen=True, slots=True)
class _Shown:
    """What logs may say of a run: its name and plan, and of each record the name it goes by and its cluster."""

    study: str
    plan_hash: str
    locked_at: str
    names: Mapping[str, str]
    clusters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One judge's calls of one kind, each with what came back and what it was taken for."""

    kind: str
    judge: JudgeSpec
    rubric: Rubric
    answers: tuple[tuple[PlannedCall, Reply, Judgment], ...]


def require_inspect(name: str = "inspect_ai") -> ModuleType:
    """A module of Inspect AI, imported now."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pass
    raise AssayError("this needs the package inspect-ai: pip install 'assaymark[inspect]'")


def export_inspect(folder: RunFolder, out: Path, *, progress: Progress = silent) -> list[ExportedLog]:
    """Write what the judges of a run were asked and answered, one ``.eval`` log for each judge.

    The outside judge and the anchor probe get logs of their own. People on a panel have none: they answered no prompt.
    """
    require_inspect()
    locked = open_version_1(folder) if is_version_1(folder) else open_locked(folder)
    desk = Desk(folder, locked, {}, progress)
    clusters = {one.record_id: one.cluster for one in desk.decisions}
    shown = _Shown(locked.study.name, locked.plan_hash, locked.locked_at, item_names(desk.shown), clusters)
    made = []
    for asked in _all_asked(desk):
        path = out / f"{asked.kind}-{datasheet_name(asked.judge.name)}.eval"
        _write(_log(asked, shown), path)
        scored = sum(judgment.status == "ok" for *_, judgment in asked.answers)
        made.append(ExportedLog(path, asked.judge.name, len(asked.answers), scored))
    return made


def item_names(shown: Mapping[str, Message]) -> dict[str, str]:
    """A name for what is judged that tells nothing of who decided: its place by the digest of the blinded prompt.

    >>> from assaymark.engine import Text
    >>> item_names({"ash-1": Message("user", (Text.of("Buy."),)), "elm-1": Message("user", (Text.of("Hold."),))})
    {'ash-1': 'item-0001', 'elm-1': 'item-0002'}
    """
    order = sorted(shown, key=lambda name: (sha256_text(shown[name].canonical), name))
    return {name: f"item-{place:04d}" for place, name in enumerate(order, start=1)}


def chat_messages(call: CallSpec) -> list[Any]:
    """The messages of a call as Inspect's, with ids of their content, so that equal logs are equal."""
    model = require_inspect("inspect_ai.model")
    kinds = {"system": model.ChatMessageSystem, "user": model.ChatMessageUser}
    return [
        kinds[one.role](id=sha256_text(one.canonical)[:22], content=_plain(one.text), source="input")
        for one in call.messages
    ]


def export_arrow(folder: RunFolder, out: Path) -> list[Path]:
    """Copies of all tables of a run as Arrow IPC files, for whoever reads them without Parquet.

    Those of the panel of a benchmark go into a folder of their own.
    """
    store = Store(folder.require())
    made = [_arrow_copy(folder, name, out) for name in store.contents if store.whole(name)]
    panel = folder.rationales
    return [*made, *export_arrow(panel, out / panel.path.name)] if (panel.tables / "manifest.json").is_file() else made


def _arrow_copy(folder: RunFolder, name: str, out: Path) -> Path:
    path = out / f"{name}.arrow"
    with (
        pq.ParquetFile(folder.tables / f"{name}.parquet", page_checksum_verification=True) as source,
        _in_place(path) as part,
        pa.ipc.new_file(part, source.schema_arrow) as sink,
    ):
        for batch in source.iter_batches():
            sink.write_batch(batch)
    return path


# --- what was asked and answered --------------------------------------------------------------------------------------


def _all_asked(desk: Desk) -> Iterator[_Asked]:
    """Every judge's calls: the panel's, the outside judge's, and those of the anchor probe."""
    study, store = desk.locked.study, desk.store
    yield from _asked(desk, "panel", JUDGMENTS, study.model_judges, desk.locked.rubric)
    outside, anchor = study.stability.probe, study.anchor_probe
    if outside is not None and store.digest(PROBE) is not None:
        yield from _asked(desk, "outside", PROBE, [outside], desk.locked.rubric)
    if anchor is not None and store.digest(ANCHOR) is not None:
        judges = [one for one in study.judges if one.name == anchor.judge]
        yield from _asked(desk, "anchor", ANCHOR, judges, load_rubric(anchor.rubric))


def _asked(
    desk: Desk, kind: str, table: Table[Judgment], judges: Sequence[JudgeSpec], rubric: Rubric
) -> Iterator[_Asked]:
    """The calls behind a table of judgments, judge by judge."""
    held = {(one.judge, one.trajectory, one.trial): one for one in desk.store.read(table)}
    for judge in judges:
        planned = plan_calls(desk.decisions, {}, desk.locked.study, rubric, judges=[judge], shown=desk.shown)
        pairs = [(one, held.get((judge.name, one.trajectory, one.trial))) for one in planned]
        known = [
            (replace(one, call=second_call(one.call)) if judgment.first_key else one, judgment)
            for one, judgment in pairs
            if judgment is not None
        ]
        if any(one.call.key != judgment.call_key for one, judgment in known):
            raise PlanError(f"{desk.folder.path}: the judgments of {judge.name} were not made under this plan")
        replies = _replies(desk.folder, [one.call.key for one, _ in known])
        answers = tuple((one, replies[one.call.key], judgment) for one, judgment in known)
        if answers:
            yield _Asked(kind, judge, rubric, answers)


def _replies(folder: RunFolder, keys: Sequence[str]) -> dict[str, Reply]:
    with Ledger.open(folder.ledger, create=False) as ledger:
        replies = dict(ledger.replies(keys))
    if missing := len(set(keys) - replies.keys()):
        raise LedgerError(f"{missing} replies of judged calls cannot be found in {folder.ledger}; it is damaged")
    return replies


# --- as a log of Inspect ----------------------------------------------------------------------------------------------


def _log(asked: _Asked, shown: _Shown) -> Any:
    """One judge's answers as an ``EvalLog``."""
    log = require_inspect("inspect_ai.log")
    samples = [_sample(*answer, asked, shown) for answer in asked.answers]
    scored = sum(judgment.status == "ok" for *_, judgment in asked.answers)
    counts = {"scored_samples": scored, "unscored_samples": len(samples) - scored}
    return log.EvalLog(
        status="success",
        eval=_spec(asked, shown),
        results=log.EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=[log.EvalScore(name=name, scorer=name, **counts) for name in asked.rubric.names],
        ),
        # The one time on record; without any, the viewer shows a duration that is no number.
        stats=log.EvalStats(started_at=shown.locked_at, completed_at=shown.locked_at),
        samples=samples,
    )


def _spec(asked: _Asked, shown: _Shown) -> Any:
    """What was asked of whom, and under which plan."""
    log, model = require_inspect("inspect_ai.log"), require_inspect("inspect_ai.model")
    judge, plan = asked.judge, shown.plan_hash
    ids = sorted({shown.names[planned.trajectory] for planned, *_ in asked.answers})
    identity = sha256_text(f"{plan} {asked.kind} {judge.name}")[:22]
    return log.EvalSpec(
        eval_id=identity,
        run_id=plan[:22],
        task_id=sha256_text(f"{plan} {asked.kind}")[:22],
        created=shown.locked_at,
        task=TASK,
        task_display_name=f"{judge.name} ({asked.kind})",
        dataset=log.EvalDataset(name=shown.study, samples=len(ids), sample_ids=ids, shuffled=False),
        model=judge.model,
        model_args=dict(judge.args),
        model_generate_config=model.GenerateConfig(
            temperature=judge.temperature, seed=judge.seed, reasoning_effort=judge.effort
        ),
        config=log.EvalConfig(epochs=judge.trials),
        packages={"assaymark": __version__},
        metadata={
            "plan_hash": plan,
            "kind": asked.kind,
            "judge": judge.name,
            "family": judge.family,
            "rubric": asked.rubric.version,
            "not_shown": _NOT_SHOWN,
        },
    )


def _sample(planned: PlannedCall, reply: Reply, judgment: Judgment, asked: _Asked, shown: _Shown) -> Any:
    """One answer: the prompt as it was shown, the reply as it came, and the scores that it was taken for."""
    log, messages = require_inspect("inspect_ai.log"), chat_messages(planned.call)
    output = _output(reply, planned)
    return log.EvalSample(
        id=shown.names[planned.trajectory],
        epoch=planned.trial,
        uuid=sha256_text(f"{asked.kind} {planned.judge} {planned.trajectory} {planned.trial}")[:22],
        input=messages,
        target="",
        messages=[*messages, output.message],
        output=output,
        scores=_scores(judgment, asked.rubric),
        model_usage={planned.call.model: output.usage} if output.usage else {},
        total_time=reply.seconds,
        metadata={
            "cluster": shown.clusters[planned.trajectory],
            "status": judgment.status,
            "call_key": judgment.call_key,
            "lookahead_check": judgment.lookahead_check,
            "evidence": [_plain(quote) for quote in judgment.evidence],
        },
    )


def _output(reply: Reply, planned: PlannedCall) -> Any:
    """A reply as Inspect's output; its input tokens leave out those that were read from a cache."""
    model = require_inspect("inspect_ai.model")
    said = model.ChatMessageAssistant(
        id=f"{planned.call.key[:22]}", content=_plain(reply.text), source="generate", model=reply.model
    )
    choice = model.ChatCompletionChoice(message=said, stop_reason=_STOPS[reply.finish])
    return model.ModelOutput(model=reply.model, choices=[choice], usage=_usage(reply), time=reply.seconds)


def _usage(reply: Reply) -> Any:
    if reply.input_tokens is None or reply.output_tokens is None:
        return None
    return require_inspect("inspect_ai.model").ModelUsage(
        input_tokens=reply.input_tokens - (reply.cached_tokens or 0),
        output_tokens=reply.output_tokens,
        total_tokens=reply.input_tokens + reply.output_tokens,
        input_tokens_cache_read=reply.cached_tokens,
        reasoning_tokens=reply.reasoning_tokens,
    )


def _scores(judgment: Judgment, rubric: Rubric) -> dict[str, Any]:
    """A score for each dimension; of an answer that gave none, Inspect's mark for that with the reason."""
    score = require_inspect("inspect_ai.scorer").Score
    if judgment.status == "ok":
        return {name: score(value=judgment.scores[name]) for name in rubric.names}
    lost = {"reason": _REASONS[judgment.status], "explanation": judgment.reason}
    return {name: score.unscored(**lost) for name in rubric.names}


def _write(log: Any, path: Path) -> None:
    with _in_place(path) as part:
        require_inspect("inspect_ai.log").write_eval_log(log, str(part), format="eval")


@contextmanager
def _in_place(path: Path) -> Iterator[Path]:
    """A path to write at; what lies there at the end takes the place of ``path`` as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=".partial-") as folder:
        part = Path(folder) / path.name
        yield part
        part.replace(path)


def _plain(text: str) -> str:
    """A text that UTF-8 can carry: half a surrogate pair becomes its escape."""
    return text.encode("utf-8", "backslashreplace").decode()


Value = dict[str, float]
_ASKED: Final = JudgeSpec(name="asked", model="inspect/asked", family="asked")
_INSPECT_TASKS_STOPS: Final[dict[str, Finish]] = {
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refusal",
}


def judge(run: str, rubric: str = "", trials: int = 1) -> Any:
    """The trajectories of a locked run, graded by the model under evaluation.

    Parameters
    ----------
    run : str
        Run folder, locked; a study that makes its own records must have decided.
    rubric : str
        Name of a rubric that comes with the package; default: the study's.
    trials : int
        How often each trajectory is shown, as Inspect's epochs.

    Raises
    ------
    InputError, PlanError
        There is no such run, or it is not locked.
    UnknownNameError
        There is no such rubric.
    """
    folder = RunFolder(Path(run))
    locked = open_locked(folder)
    wanted = load_rubric(rubric or locked.study.rubric.name)
    desk = Desk(folder, locked, {}, silent)
    planned = plan_calls(desk.decisions, {}, locked.study, wanted, judges=[_ASKED], shown=desk.shown)
    names = item_names(desk.shown)
    clusters = {one.record_id: one.cluster for one in desk.decisions}
    samples = [
        _inspect_tasks_sample(one.call, names[one.trajectory], {"cluster": clusters[one.trajectory]}) for one in planned
    ]
    about = {"plan_hash": locked.plan_hash, "rubric": wanted.version}
    ordered = sorted(samples, key=lambda one: str(one.id))
    return _task("decisions", ordered, planned, _scorers()["graded"](wanted.version), trials, about)


def pairs(seed: int = 7, prompt: str = TIE_ALLOWED, trials: int = 1) -> Any:
    """The pairs of a judge datasheet on the finance tasks, each in both orders."""
    stimuli = build_stimuli(finance_tasks(), seed)
    check(stimuli)
    planned = plan_pair_calls(stimuli, _ASKED, [prompt])
    samples = [_inspect_tasks_sample(one.call, f"{one.pair.id} {one.order}", _known(one)) for one in planned]
    about = {"seed": seed, "prompt": prompt, "tasks": "finance"}
    return _task("pairs", samples, planned, _scorers()["preferred"](), trials, about)


def graded_value(text: str, stop: str, rubric: str) -> tuple[Value, str | None]:
    """A judge's reply as the values of a score, and why it carries none.

    ``usable`` is 1 or 0. Dimensions of a reply that is not usable are NaN, which Inspect leaves out of every metric.

    >>> graded_value("I give this a 5.", "stop", "v1.0")[1]
    'not one JSON object: expecting value at character 0'
    """
    wanted = load_rubric(rubric)
    call = CallSpec(model=_ASKED.model, messages=(), template="")
    planned = PlannedCall(call=call, trajectory="", judge=_ASKED.name, family=_ASKED.family, trial=1)
    found = judgment(planned, Reply(text=text, model="", finish=_INSPECT_TASKS_STOPS.get(stop, "stop")), wanted)
    scores = found.scores or dict.fromkeys(wanted.names, math.nan)
    return {"usable": float(found.status == "ok"), **scores}, found.reason


def preferred_value(text: str, stop: str, better: str) -> tuple[Value, str | None]:
    """A judge's reply to a pair as the values of a score, and why it carries none.

    ``first`` is 1 where slot 1 is preferred and 0 where slot 2 is; ``right`` is 1 where the better text is preferred
    and 0 where the other is or neither. They are NaN where that is no question: of a tie, and where neither is better.

    >>> preferred_value('{"verdict": "2", "reason": "It names a stop."}', "stop", "2")
    ({'usable': 1.0, 'first': 0.0, 'right': 1.0}, None)
    """
    finish = _INSPECT_TASKS_STOPS.get(stop)
    found = Invalid(f"the reply ended by {finish}") if finish else parse_pair_reply(text)
    if isinstance(found, Invalid):
        return {"usable": 0.0, "first": math.nan, "right": math.nan}, found.reason
    first = {"1": 1.0, "2": 0.0}.get(found.verdict, math.nan)
    right = float(found.verdict == better) if better else math.nan
    return {"usable": 1.0, "first": first, "right": right}, None


def _known(one: PlannedPairCall) -> dict[str, Any]:
    """What is known of a pair in one order: for the scorer and for readers of the log, never for the model."""
    slot = "" if one.pair.better is None else str(one.order.index(one.pair.better) + 1)
    pair = one.pair
    return {
        "better": slot,
        "condition": pair.condition,
        "variant": pair.variant,
        "delta": pair.delta,
        "task": pair.task,
    }


def _inspect_tasks_sample(call: CallSpec, name: str, metadata: dict[str, Any]) -> Any:
    return require_inspect("inspect_ai.dataset").Sample(id=name, input=chat_messages(call), metadata=metadata)


def _task(
    name: str,
    samples: list[Any],
    planned: Sequence[PlannedCall | PlannedPairCall],
    scorer: Any,
    trials: int,
    metadata: dict[str, Any],
) -> Any:
    """A task that asks for the form of the reply by the provider's own means, and never answers from a cache."""
    if not planned:
        raise InputError("inspect eval", [Problem("run", "no decision is left to judge")])
    ai, model = require_inspect(), require_inspect("inspect_ai.model")
    return ai.Task(
        dataset=require_inspect("inspect_ai.dataset").MemoryDataset(samples, name=name),
        solver=require_inspect("inspect_ai.solver").generate(cache=False),
        scorer=scorer,
        epochs=trials,
        config=model.GenerateConfig(response_schema=response_schema(planned[0].call)),
        metadata=metadata,
    )


# --- registered with Inspect ------------------------------------------------------------------------------------------


def graded(rubric: str) -> Callable[[Any, Any], Awaitable[Any]]:
    """Scores a judge's reply by the strict parser: usable or not, and every dimension of the rubric."""

    async def score(state: Any, _target: Any) -> Any:
        return _score(state, *graded_value(state.output.completion, _stop(state), rubric))

    return score


def preferred() -> Callable[[Any, Any], Awaitable[Any]]:
    """Scores a judge's reply to a pair: usable or not, the slot it prefers, and whether that is the better text's."""

    async def score(state: Any, _target: Any) -> Any:
        return _score(state, *preferred_value(state.output.completion, _stop(state), state.metadata["better"]))

    return score


def _stop(state: Any) -> str:
    return str(state.output.choices[0].stop_reason) if state.output.choices else "unknown"


def _score(state: Any, value: Value, problem: str | None) -> Any:
    reason = None if problem is None else "invalid_response_format"
    made = require_inspect("inspect_ai.scorer").Score
    return made(value=value, answer=state.output.completion, explanation=problem, reason=reason)


_REGISTERED: Final[dict[str, Any]] = {}


def _scorers() -> dict[str, Any]:
    """The scorers as Inspect knows them, registered once."""
    if not _REGISTERED:
        scorer = require_inspect("inspect_ai.scorer")
        # A mean over trajectories says nothing of agents, but in a list of evals it would look as if it did: only the
        # share of usable replies is added up, and for pairs what is known of them.
        _REGISTERED["graded"] = scorer.scorer(metrics={"usable": [scorer.mean()]})(graded)
        shares = {name: [scorer.mean()] for name in ("usable", "first", "right")}
        _REGISTERED["preferred"] = scorer.scorer(metrics=shares)(preferred)
    return _REGISTERED


def register() -> None:
    """Make the tasks and scorers known to Inspect. Importing this module does so, where Inspect is installed."""
    task = require_inspect().task
    for make in (judge, pairs):
        task(make)
    _scorers()


if importlib.util.find_spec("inspect_ai") is not None:
    register()
