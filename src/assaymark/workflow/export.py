"""`assaymark export`: a judged run as logs that Inspect's viewer opens, or as Arrow tables for a notebook."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from assaymark import __version__
from assaymark.engine import CallSpec, Finish, Ledger, Message, Reply
from assaymark.errors import AssayError, LedgerError, PlanError
from assaymark.judging import PlannedCall, Rubric, load_rubric, second_call
from assaymark.protocol import JudgeSpec
from assaymark.records import Judgment, sha256_text
from assaymark.workflow.lock import Locked, open_locked
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import RunFolder, is_version_1
from assaymark.workflow.study_calls import JudgingSession
from assaymark.workflow.tables import ANCHOR, JUDGMENTS, PROBE, Store, Table
from assaymark.workflow.tracks.datasheet import datasheet_name
from assaymark.workflow.version_1 import open_version_1

TASK: Final = "assaymark/judge"
"""What the exported logs name as their task."""

_STOPS: Final[Mapping[Finish, str]] = {
    "stop": "stop", "length": "max_tokens", "refusal": "content_filter", "failed": "unknown",
}  # fmt: skip
_REASONS: Final = {"invalid": "invalid_response_format", "refused": "refusal"}
_NOT_SHOWN: Final = (
    "Agents and record ids are left out, as they were for the judge. Which agents may be ordered is a matter of "
    "verdicts; see the report of the run. call_key leads to the record in tables/judgments.parquet."
)


def require_inspect(name: str = "inspect_ai") -> ModuleType:
    """A module of Inspect AI, imported now."""
    with suppress(ImportError):
        return importlib.import_module(name)
    raise AssayError("this needs the package inspect-ai: pip install 'assaymark[inspect]'")


def export_inspect(folder: RunFolder, out: Path, progress: Progress = silent) -> list[dict[str, Any]]:
    """Write what the judges of a run were asked and answered, one ``.eval`` log for each judge."""
    require_inspect()
    locked = open_version_1(folder) if is_version_1(folder) else open_locked(folder)
    desk = JudgingSession(folder, locked, {}, progress)
    study, store, names = locked.study, desk.store, item_names(desk.shown)
    clusters = {decision.record_id: decision.cluster for decision in desk.decisions}
    probe, anchor = study.stability.probe, study.anchor_probe
    kinds: list[tuple[str, Table[Judgment], Sequence[JudgeSpec], Rubric]] = [
        ("panel", JUDGMENTS, study.model_judges, locked.rubric)
    ]
    if probe is not None and store.digest(PROBE) is not None:
        kinds.append(("outside", PROBE, [probe], locked.rubric))
    if anchor is not None and store.digest(ANCHOR) is not None:
        again = [one for one in study.judges if one.name == anchor.judge]
        kinds.append(("anchor", ANCHOR, again, load_rubric(anchor.rubric)))
    made = []
    for kind, table, judges, rubric in kinds:
        held = {(one.judge, one.trajectory, one.trial): one for one in store.read(table)}
        for judge in judges:
            planned = desk.plan(rubric, [judge])
            pairs = [(one, held.get((judge.name, one.trajectory, one.trial))) for one in planned]
            known = [
                (replace(one, call=second_call(one.call)) if judgment.first_key else one, judgment)
                for one, judgment in pairs
                if judgment is not None
            ]
            if any(one.call.key != judgment.call_key for one, judgment in known):
                raise PlanError(f"{folder.path}: the judgments of {judge.name} were not made under this plan")
            keys = [one.call.key for one, _ in known]
            with Ledger.open(folder.ledger, create=False) as ledger:
                replies = dict(ledger.replies(keys))
            if lost := len(set(keys) - replies.keys()):
                raise LedgerError(f"{lost} replies of judged calls cannot be found in {folder.ledger}; it is damaged")
            if known:
                path = out / f"{kind}-{datasheet_name(judge.name)}.eval"
                samples = [
                    _sample(kind, rubric, names, clusters, one, replies[one.call.key], found) for one, found in known
                ]
                ids = sorted({names[one.trajectory] for one, _ in known})
                scored = sum(found.status == "ok" for _, found in known)
                log = _log(locked, kind, judge, rubric, ids, samples, scored)
                with _in_place(path) as part:
                    require_inspect("inspect_ai.log").write_eval_log(log, str(part), format="eval")
                made.append({"path": str(path), "judge": judge.name, "samples": len(known), "scored": scored})
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
        kinds[message.role](id=sha256_text(message.canonical)[:22], content=_plain(message.text), source="input")
        for message in call.messages
    ]


def export_arrow(folder: RunFolder, out: Path) -> list[Path]:
    """Copies of all tables of a run as Arrow IPC files, those of a benchmark's panel in a folder of their own."""
    store, made = Store(folder.require()), []
    for name in filter(store.digest, store.contents):
        made.append(out / f"{name}.arrow")
        with (
            pq.ParquetFile(folder.tables / f"{name}.parquet", page_checksum_verification=True) as source,
            _in_place(made[-1]) as part,
            pa.ipc.new_file(part, source.schema_arrow) as sink,
        ):
            for batch in source.iter_batches():
                sink.write_batch(batch)
    panel = folder.rationales
    return [*made, *export_arrow(panel, out / panel.path.name)] if (panel.tables / "manifest.json").is_file() else made


def _log(
    locked: Locked, kind: str, judge: JudgeSpec, rubric: Rubric, ids: Sequence[str], samples: Sequence[Any],
    scored: int,
) -> Any:  # fmt: skip
    """One judge's answers as an ``EvalLog``: what was asked of whom, under which plan, and how many have scores."""
    log, model = require_inspect("inspect_ai.log"), require_inspect("inspect_ai.model")
    plan, study, when = locked.plan_hash, locked.study.name, locked.locked_at
    counts = {"scored_samples": scored, "unscored_samples": len(samples) - scored}
    settings = {"temperature": judge.temperature, "seed": judge.seed, "reasoning_effort": judge.effort}
    about = {"plan_hash": plan, "kind": kind, "judge": judge.name, "family": judge.family}
    spec = log.EvalSpec(
        eval_id=sha256_text(f"{plan} {kind} {judge.name}")[:22], run_id=plan[:22],
        task_id=sha256_text(f"{plan} {kind}")[:22], created=when, task=TASK,
        task_display_name=f"{judge.name} ({kind})",
        dataset=log.EvalDataset(name=study, samples=len(ids), sample_ids=ids, shuffled=False),
        model=judge.model, model_args=dict(judge.args), model_generate_config=model.GenerateConfig(**settings),
        config=log.EvalConfig(epochs=judge.trials), packages={"assaymark": __version__},
        metadata={**about, "rubric": rubric.version, "not_shown": _NOT_SHOWN},
    )  # fmt: skip
    scores = [log.EvalScore(name=name, scorer=name, **counts) for name in rubric.names]
    return log.EvalLog(
        status="success", eval=spec, samples=samples,
        results=log.EvalResults(total_samples=len(samples), completed_samples=len(samples), scores=scores),
        # The one time on record; without any, the viewer shows a duration that is no number.
        stats=log.EvalStats(started_at=when, completed_at=when),
    )  # fmt: skip


def _sample(
    kind: str, rubric: Rubric, names: Mapping[str, str], clusters: Mapping[str, str], planned: PlannedCall,
    reply: Reply, judgment: Judgment,
) -> Any:  # fmt: skip
    """One answer: the prompt as it was shown, the reply as it came, and the scores that it was taken for."""
    log, model, messages = (
        require_inspect("inspect_ai.log"), require_inspect("inspect_ai.model"), chat_messages(planned.call),
    )  # fmt: skip
    said = model.ChatMessageAssistant(
        id=planned.call.key[:22], content=_plain(reply.text), source="generate", model=reply.model
    )
    usage = None
    if reply.input_tokens is not None and reply.output_tokens is not None:
        usage = model.ModelUsage(
            input_tokens=reply.input_tokens - (reply.cached_tokens or 0),  # without those read from a cache
            output_tokens=reply.output_tokens, total_tokens=reply.input_tokens + reply.output_tokens,
            input_tokens_cache_read=reply.cached_tokens, reasoning_tokens=reply.reasoning_tokens,
        )  # fmt: skip
    choice = model.ChatCompletionChoice(message=said, stop_reason=_STOPS[reply.finish])
    output = model.ModelOutput(model=reply.model, choices=[choice], usage=usage, time=reply.seconds)
    score = require_inspect("inspect_ai.scorer").Score
    if judgment.status == "ok":
        scores = {name: score(value=judgment.scores[name]) for name in rubric.names}
    else:  # Inspect's mark for an answer that gave none, with the reason
        lost = {"reason": _REASONS[judgment.status], "explanation": judgment.reason}
        scores = {name: score.unscored(**lost) for name in rubric.names}
    return log.EvalSample(
        id=names[planned.trajectory], epoch=planned.trial,
        uuid=sha256_text(f"{kind} {planned.judge} {planned.trajectory} {planned.trial}")[:22],
        input=messages, target="", messages=[*messages, output.message], output=output, scores=scores,
        model_usage={planned.call.model: output.usage} if output.usage else {}, total_time=reply.seconds,
        metadata={
            "cluster": clusters[planned.trajectory],
            "status": judgment.status,
            "call_key": judgment.call_key,
            "lookahead_check": judgment.lookahead_check,
            "evidence": [_plain(quote) for quote in judgment.evidence],
        },
    )  # fmt: skip


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
