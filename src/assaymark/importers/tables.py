"""Read rows from arbitrary files, and from logs of common evaluation tools, which are detected by their content."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from assaymark.errors import InputError, Problem
from assaymark.rows import FileRows, PlaceOf, Recognised, raise_or_note, read

__all__ = ["FORMATS", "FileRows", "Format", "read_rows"]

Object = Mapping[str, Any]
RowStream = Iterator[tuple[int, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Format:
    """Log format of one tool: its required keys, the keys that are read, a note, and the conversion to rows."""

    name: str
    reads: frozenset[str]
    said: str
    needs: tuple[str, ...]
    looks: Callable[[Any], bool]
    to_rows: Callable[[Any, str], RowStream]


FORMATS: list[Format] = []
"""Known log formats, in the order in which they are tried."""


def _has(tree: Any, *keys: str) -> bool:
    """True if the first object of a list has these keys."""
    return isinstance(tree, list) and bool(tree) and isinstance(tree[0], dict) and {*keys} <= tree[0].keys()


def _register(
    name: str, reads: str, note: str = "", needs: str = "", looks: Callable[[Any], bool] | None = None
) -> Callable[[Callable[[Any, str], RowStream]], None]:
    """Decorator that adds a tool's format to `FORMATS`; ``reads`` and ``needs`` are keys separated by spaces."""
    keys = tuple(needs.split())

    def add(to_rows: Callable[[Any, str], RowStream]) -> None:
        test = looks or (lambda tree: _has(tree, *keys))
        FORMATS.append(Format(name, frozenset(reads.split()), note, keys, test, to_rows))

    return add


def read_rows(
    source: Path | bytes, name: str = "", *, nested: bool = True, delimiter: str | None = None, keep_going: bool = False
) -> FileRows:
    """Read the rows of a file of any supported kind, or of a folder with logs of one tool."""
    name = name or (str(source) if isinstance(source, Path) else "data")
    recognise = partial(_recognise, name, keep_going)
    try:
        name.encode()  # files of the run name it
        if isinstance(source, Path) and source.is_dir():
            return _read_folder(source, name, keep_going)
        data = source if isinstance(source, bytes) else source.read_bytes()  # once, since it may be a pipe
    except OSError as exc:
        raise InputError(name, [f"cannot be read: {exc.strerror or exc}"]) from None
    except (UnicodeEncodeError, pa.ArrowTypeError) as exc:
        unlike = f"its files differ: column {str(exc).rpartition(': Field ')[2]}; write it alike in all"
        unlike = "its name is not UTF-8; rename it" if isinstance(exc, UnicodeEncodeError) else unlike
        raise InputError(name, [unlike]) from None
    if data.startswith(b"PK\x03\x04"):
        names: list[str] = []
        with suppress(zipfile.BadZipFile):
            names = zipfile.ZipFile(io.BytesIO(data)).namelist()
        if any(name in ("header.json", "_journal/start.json") for name in names):
            log = _inspect_log(data, name)
            flat, ended = list(_inspect_rows(log)), _status_note(log.status)
            if not flat:
                raise InputError(name, [", ".join(("is recognised as Inspect AI log, without a score in it", *ended))])
            rows = read(json.dumps([row for _, row in flat]).encode(), name)
            line = np.fromiter((place + 1 for place, _ in flat), np.int64, len(flat))
            notes, sha256 = (FORMATS[0].said, *ended, *rows.said), hashlib.sha256(data).hexdigest()
            return FileRows(name, rows.table, line, "record", FORMATS[0].name, notes, sha256)
    return read(data, name, nested, recognise, delimiter, keep_going)


_IN_FOLDERS: Final = (".eval", ".json", ".jsonl", ".ndjson", ".parquet")


def _read_folder(path: Path, name: str, keep_going: bool) -> FileRows:
    """Read all logs of one tool, or Parquet files of one table, in a folder and below; other files get a note."""
    logs: list[FileRows] = []
    beside: list[str] = []
    for file in sorted(path.rglob("*")):
        if file.is_file() and any(suffix in _IN_FOLDERS for suffix in file.suffixes):
            try:
                rows = read_rows(file, keep_going=keep_going)
            except InputError as exc:
                beside.append(f"{file.relative_to(path)} ({exc.problems[0].what:.140})")
                continue
            recognised = any(rows.format == kind for kind in ("Parquet", *(tool.name for tool in FORMATS)))
            logs += [rows] if recognised else []
            beside += [] if recognised else [str(file.relative_to(path))]
    kinds = Counter(rows.format for rows in logs)
    if len(kinds) != 1:
        present = ", ".join(f"{n} of {kind}" for kind, n in kinds.items()) or "none"
        names = ", ".join(kind.name for kind in FORMATS)
        message = f"a folder holds Parquet files or logs of one tool ({names}; got {present}); name a file otherwise"
        raise InputError(name, [message, *(f"not read: {file}" for file in beside[:12])])
    sizes = np.cumsum([0, *map(len, logs)])
    notes = dict.fromkeys(line for rows in logs for line in rows.said)
    notes |= {f"not read: {', '.join(beside[:12])}{' ...' if len(beside) > 12 else ''}": None} if beside else {}
    return FileRows(
        name, pa.concat_tables([rows.table for rows in logs], promote_options="permissive"),
        np.concatenate([rows.line for rows in logs]), logs[0].unit, logs[0].format, tuple(notes),
        hashlib.sha256("".join(rows.sha256 for rows in logs).encode()).hexdigest(),
        tuple((str(Path(rows.name).relative_to(path)), int(at)) for rows, at in zip(logs, sizes, strict=False)),
    )  # fmt: skip


def _recognise(name: str, keep_going: bool, tree: Any, where: PlaceOf) -> Recognised | None:
    """Convert a JSON tree of one of `FORMATS` to rows; None if none matches."""
    tool = next((kind for kind in FORMATS if kind.looks(tree)), None)
    if tool is None:
        return None
    notes, objects, places = [tool.said] if tool.said else [], tree, None
    if isinstance(tree, list):
        lacks = {k: [key for key in tool.needs if key not in entry] if isinstance(entry, dict) else None
                 for k, entry in enumerate(tree)}  # fmt: skip
        problems = [
            Problem(where(k), f"has no {', '.join(keys)} ({tool.name})" if keys else f"must be an object ({tool.name})")
            for k, keys in lacks.items()
            if keys != []
        ]
        if problems:
            raise_or_note(name, problems, notes if keep_going else None)
        places = [k for k, keys in lacks.items() if keys == []]
        objects = [tree[k] for k in places]
    rows: list[tuple[int, dict[str, Any]]] = []
    try:
        for place, row in tool.to_rows(objects, name):
            rows.append((place if places is None else places[place], row))
    except (TypeError, KeyError, AttributeError, ValueError, IndexError) as exc:
        after = f"after {where(rows[-1][0])}" if rows else ""
        message = f"is recognised as {tool.name}, and holds what that tool does not write ({exc})"
        raise InputError(name, [Problem(after, f"{message}; map the columns of your table")]) from None
    if not rows:
        raise InputError(name, [f"is recognised as {tool.name}, without a score in it"])
    first_objects = tree[:50] if isinstance(tree, list) else [tree]
    used = tool.reads | (set(tool.needs) - _TEXTS) | {str(row["judge"]).partition("/")[0] for _, row in rows}
    beside = dict.fromkeys(key for head in first_objects if isinstance(head, dict) for key in head if key not in used)
    notes += _status_note(tree["status"]) if tool is FORMATS[0] else ()
    notes += [f"not read: {', '.join(beside)}"] if beside else []
    return tool.name, rows, tuple(notes)


_TEXTS: Final = {"judgment", "filtered_resps"}  # keys that identify a tool but are not read


def _turn_fields(record: Object) -> dict[str, Any]:
    """Return the common fields of MT-Bench rows; a judge is named by its model, without the prompt template."""
    question, judge = record["question_id"], record.get("judge")
    return {
        "item": f"{question} turn {record['turn']}" if "turn" in record else str(question), "cluster": question,
        "judge": str(judge[0] if isinstance(judge, list) and judge else judge),
    }  # fmt: skip


def _number_trials(rows: list[tuple[int, dict[str, Any]]]) -> RowStream:
    """Yield rows with trial numbers, which count repeats of one item, agent and judge."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for _, row in rows:
        key = (row["item"], row["agent"], row["judge"])
        counts[key] += 1
        row["trial"] = counts[key]
    yield from rows


_GRADES: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}


def _inspect_log(tree: Any, name: str) -> Any:
    """Read an Inspect AI log with Inspect's own reader."""
    try:
        read_eval_log = import_module("inspect_ai.log").read_eval_log
    except ImportError:
        message = "is an Inspect AI log, which its own reader reads: pip install 'assaymark[inspect]'"
        raise InputError(name, [message]) from None
    return read_eval_log(io.BytesIO(tree if isinstance(tree, bytes) else json.dumps(tree).encode()))


def _status_note(status: Any) -> tuple[str, ...]:
    """Return a note if the run of a log did not finish, because samples may be missing."""
    return () if status == "success" else (f"its run ended with status {str(status)!r:.40}; samples may be missing",)


def _inspect_rows(log: Any) -> RowStream:
    """Yield the scores of an Inspect AI log; C, I, P and N are 1, 0, 0.5 and 0, as in its accuracy."""
    for place, sample in enumerate(log.samples or ()):
        for scorer, score in (sample.scores or {}).items():
            values = score.value if isinstance(score.value, dict) else {"": score.value}
            for key, value in values.items():
                number = _GRADES.get(value) if isinstance(value, str) else value
                yield place, {
                    "item": f"{log.eval.task}/{sample.id}", "agent": str(log.eval.model),
                    "judge": f"{scorer}/{key}" if key else scorer,
                    "score": value if number is None else float(number) if isinstance(number, bool) else number,
                    "trial": sample.epoch,
                }  # fmt: skip


@_register(
    "Inspect AI log", "eval samples status version", "scorers are read as judges, epochs as trials",
    looks=lambda tree: isinstance(tree, dict) and {"eval", "samples", "status"} <= tree.keys()
    and isinstance(tree["eval"], dict),
)  # fmt: skip
def _inspect(tree: Any, name: str) -> RowStream:
    yield from _inspect_rows(_inspect_log(tree, name))


def _results(tree: Any) -> list[Any]:
    """Return the results in a promptfoo file; empty for other files."""
    results = tree.get("results") if isinstance(tree, dict) else None
    rows = tree if isinstance(tree, list) else results.get("results") if isinstance(results, dict) else None
    return rows if isinstance(rows, list) else []


@_register(
    "promptfoo results", "results provider prompt promptIdx testIdx vars testCase gradingResult success score",
    "assertions are read as judges", looks=lambda tree: _has(_results(tree), "provider", "prompt", "success", "score"),
)  # fmt: skip
def _promptfoo(tree: Any, _: str) -> RowStream:
    """Yield promptfoo rows: an agent is a provider (with prompt if several), a judge an assertion's metric or type."""
    results = _results(tree)
    prompts = {result.get("promptIdx", (result.get("prompt") or {}).get("label")) for result in results}
    tests, rows = dict[str, int](), list[tuple[int, dict[str, Any]]]()
    for place, record in enumerate(results):
        provider = record.get("provider")
        name = provider.get("label") or provider.get("id") if isinstance(provider, dict) else provider
        label = record.get("promptIdx", (record.get("prompt") or {}).get("label"))
        agent = f"{name} prompt {label + 1 if isinstance(label, int) else label}" if len(prompts) > 1 else str(name)
        test = json.dumps([record.get("vars"), (record.get("testCase") or {}).get("assert")], sort_keys=True)
        item = f"test {tests.setdefault(test, len(tests) + 1)}"
        grading = record.get("gradingResult") or {}
        parts = [part for part in grading.get("componentResults") or () if isinstance(part, dict)]
        names: Counter[str] = Counter()
        for part in parts or [{"score": record.get("score"), "assertion": {"type": "score"}}]:
            assertion = part.get("assertion") or {}
            judge = str(assertion.get("metric") or assertion.get("type") or "assertion")
            names[judge] += 1
            judge = judge if names[judge] == 1 else f"{judge} {names[judge]}"
            rows.append((place, {"item": item, "agent": agent, "judge": judge, "score": part.get("score")}))
    yield from _number_trials(rows)


@_register(
    "AlpacaEval annotations", "annotator dataset",
    "AlpacaEval shuffles the outputs and does not write their order: position bias cannot be measured",
    "instruction generator_1 generator_2 preference",
)  # fmt: skip
def _alpaca(tree: Sequence[Object], _: str) -> RowStream:
    """Yield AlpacaEval rows: preference 1 is output_1, 2 output_2, 1.5 (0 in old files) a tie, others are weighted."""
    items: dict[str, int] = {}
    for place, record in enumerate(tree):
        names, given = (str(record["generator_1"]), str(record["generator_2"])), record.get("preference")
        number = given if isinstance(given, int | float) and not isinstance(given, bool) and given == given else None
        winner = "invalid" if number is None else "tie" if number in (0, 1.5) else names[number > 1.5]
        yield place, {
            "item": f"instruction {items.setdefault(str(record['instruction']), len(items) + 1)}", "agent_a": names[0],
            "agent_b": names[1], "judge": str(record.get("annotator", "annotator")), "winner": winner,
            "preference_as_written": given, "dataset": record.get("dataset"),
        }  # fmt: skip


@_register(
    "Arena-Hard judgments", "question_id uid baseline",
    "game 1 shows the baseline first, game 2 the model; where the file does not name it, it is called baseline",
    "games model judge",
)  # fmt: skip
def _arena_hard(tree: Sequence[Object], _: str) -> RowStream:
    for place, record in enumerate(tree):
        model, baseline = str(record["model"]), str(record.get("baseline") or "baseline")
        for order, game in enumerate(record["games"], start=1):
            score = (game or {}).get("score")
            shown = (baseline, model) if order % 2 else (model, baseline)
            winner = {"A": shown[0], "B": shown[1]}.get(str(score)[:1], "invalid") if score else "invalid"
            yield place, {
                "item": str(record.get("uid", record.get("question_id"))), "agent_a": shown[0], "agent_b": shown[1],
                "judge": str(record["judge"]), "winner": "tie" if score in ("A=B", "B=A") else winner, "game": order,
                "verdict_as_written": score,
            }  # fmt: skip


@_register(
    "MT-Bench pairwise judgments", "judge turn", "winners name models, and game 2 shows model_2 first",
    "question_id model_1 model_2 g1_winner g2_winner",
)  # fmt: skip
def _mt_bench_pair(tree: Sequence[Object], _: str) -> RowStream:
    for place, record in enumerate(tree):
        names, turn = {"model_1": str(record["model_1"]), "model_2": str(record["model_2"])}, _turn_fields(record)
        for order, first, second in ((1, "model_1", "model_2"), (2, "model_2", "model_1")):
            winner = record.get(f"g{order}_winner")
            yield place, {
                "item": turn["item"], "agent_a": names[first], "agent_b": names[second], "judge": turn["judge"],
                "winner": names.get(str(winner), "tie" if winner == "tie" else "invalid"), "game": order,
                "cluster": turn["cluster"],
            }  # fmt: skip


@_register("MT-Bench single judgments", "turn", needs="question_id model judge score judgment")
def _mt_bench_single(tree: Sequence[Object], _: str) -> RowStream:
    """Yield MT-Bench rows; FastChat's score of -1 is an unreadable reply."""
    for place, record in enumerate(tree):
        score, turn = record["score"] if record["score"] != -1 else None, _turn_fields(record)
        yield place, {"item": turn["item"], "agent": str(record["model"]), "judge": turn["judge"], "score": score,
                      "cluster": turn["cluster"]}  # fmt: skip


_HARNESS: Final = frozenset({
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
    "target_hash", "schema_version", "sample_len", "task_name",
})  # fmt: skip


@_register(
    "lm-evaluation-harness samples", "filter metrics",
    "metrics are read as judges, and the system is named after the folder that holds the file",
    "doc_id filtered_resps",
)  # fmt: skip
def _harness(tree: Sequence[Object], name: str) -> RowStream:
    """Yield rows of ``MODEL/samples_TASK_TIME.jsonl``, in which only the folder names the model."""
    path = Path(name)
    agent = path.parent.name or path.name.split(".")[0]
    task = re.match(r"samples_(.+?)(?:_\d{4}-\d\d-\d\d.*)?\.jsonl", path.name)
    before = f"{task[1]}/" if task else ""
    for place, sample in enumerate(tree):
        named, rule = sample.get("metrics"), sample.get("filter", "none")
        for metric in named if isinstance(named, list) else [key for key in sample if key not in _HARNESS]:
            value = sample.get(metric)
            if isinstance(value, int | float):
                judge, item = metric if rule == "none" else f"{metric}/{rule}", f"{before}{sample['doc_id']}"
                yield place, {"item": item, "agent": agent.replace("__", "/"), "judge": judge, "score": float(value)}


@_register(
    "OpenAI evals log", "spec sample_id type data run_id event_id", "matches and metrics are read as judges",
    looks=lambda tree: _has(tree, "spec") or _has(tree, "run_id", "event_id", "sample_id", "type"),
)  # fmt: skip
def _openai_evals(tree: Sequence[Object], _: str) -> RowStream:
    """Yield rows of match events (1 or 0) and metrics events, in which each number is a judge."""
    spec: Object = next((event["spec"] for event in tree if isinstance(event.get("spec"), dict)), {})
    agent = "+".join(map(str, spec.get("completion_fns") or [spec.get("model_name", "completion")]))
    rows = []
    for place, event in enumerate(tree):
        payload, kind = event.get("data"), event.get("type")
        data: Object = payload if isinstance(payload, dict) else {}
        values = {"match": data.get("correct")} if kind == "match" else data if kind == "metrics" else {}
        for judge, value in values.items():
            if isinstance(value, bool | int | float):
                row = {"item": str(event.get("sample_id")), "agent": agent, "judge": judge, "score": float(value)}
                rows.append((place, row))
    yield from _number_trials(rows)
