"""`assaymark export`: a judged run as logs that Inspect's viewer opens, or as Arrow tables for a notebook."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
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
from assaymark.errors import AssayError, LedgerError, PlanError
from assaymark.judging import PlannedCall, Rubric, load_rubric, plan_calls, second_call
from assaymark.protocol import JudgeSpec
from assaymark.records import Judgment, sha256_text
from assaymark.workflow.lock import open_locked
from assaymark.workflow.run_folder import RunFolder, is_version_1
from assaymark.workflow.study_calls import Desk
from assaymark.workflow.tables import ANCHOR, JUDGMENTS, PROBE, Store, Table
from assaymark.workflow.track import Progress, silent
from assaymark.workflow.tracks.datasheet import datasheet_name
from assaymark.workflow.version_1 import open_version_1

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
    """Write what the judges of a run were asked and answered, one ``.eval`` log for each judge."""
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
    """A name for what is judged that tells nothing of who decided: its place by the digest of the blinded prompt."""
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
    """Copies of all tables of a run as Arrow IPC files, for whoever reads them without Parquet."""
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
