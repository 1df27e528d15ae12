"""Rows from anybody's file, and from the logs of well-known evaluation tools, which are known by their content."""

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
from assaymark.rows import Recognised, Rows, Where, leave_out, read

__all__ = ["FORMATS", "Format", "Rows", "read_rows"]

Object = Mapping[str, Any]
Made = Iterator[tuple[int, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Format:
    """One tool: the keys that each of its objects has, which keys are read, what is said of it, how rows are made."""

    name: str
    reads: frozenset[str]
    said: str
    needs: tuple[str, ...]
    looks: Callable[[Any], bool]
    to_rows: Callable[[Any, str], Made]


FORMATS: list[Format] = []
"""The tools whose logs are known, in the sequence in which they are tried."""


def _has(tree: Any, *keys: str) -> bool:
    """Whether the first object of a list has some keys."""
    return isinstance(tree, list) and bool(tree) and isinstance(tree[0], dict) and {*keys} <= tree[0].keys()


def _format(
    name: str, reads: str, said: str = "", needs: str = "", looks: Callable[[Any], bool] | None = None
) -> Callable[[Callable[[Any, str], Made]], None]:
    """Adds the reader of a tool's objects to `FORMATS`; keys are words."""
    keys = tuple(needs.split())

    def add(to_rows: Callable[[Any, str], Made]) -> None:
        known = looks or (lambda tree: _has(tree, *keys))
        FORMATS.append(Format(name, frozenset(reads.split()), said, keys, known, to_rows))

    return add


def read_rows(
    source: Path | bytes, name: str = "", *, nested: bool = True, delimiter: str | None = None, keep_going: bool = False
) -> Rows:
    """The rows of anybody's file."""
    name = name or (str(source) if isinstance(source, Path) else "data")
    recognise = partial(_recognise, name=name, keep_going=keep_going)
    try:
        if isinstance(source, Path) and source.is_dir():
            return _folder(source, name, keep_going)
        if isinstance(source, bytes):
            start = source[:4]
        else:
            with source.open("rb") as handle:
                start = handle.read(4)
    except OSError as exc:
        raise InputError(name, [f"cannot be read: {exc.strerror or exc}"]) from None
    if start == b"PK\x03\x04":
        data = source if isinstance(source, bytes) else source.read_bytes()
        held: list[str] = []
        with suppress(zipfile.BadZipFile):
            held = zipfile.ZipFile(io.BytesIO(data)).namelist()
        if any(one in ("header.json", "_journal/start.json") for one in held):
            log = _inspect_log(data, name)
            flat, ended = list(_inspect_rows(log)), _ended(log.status)
            if not flat:
                raise InputError(name, [", ".join(("is recognised as Inspect AI log, without a score in it", *ended))])
            rows = read(json.dumps([row for _, row in flat]).encode(), name)
            line = np.fromiter((place + 1 for place, _ in flat), np.int64, len(flat))
            said, sha256 = (FORMATS[0].said, *ended, *rows.said), hashlib.sha256(data).hexdigest()
            return Rows(name, rows.table, line, "record", FORMATS[0].name, said, sha256)
    return read(source, name, nested, recognise, delimiter, keep_going)


def _folder(path: Path, name: str, keep_going: bool) -> Rows:
    """The rows of all logs of one tool in a folder and in those below it; every other file is named."""
    found: list[Rows] = []
    beside: list[str] = []
    for one in sorted(path.rglob("*")):
        if one.is_file() and any(suffix in (".eval", ".json", ".jsonl", ".ndjson") for suffix in one.suffixes):
            try:
                rows = read_rows(one, keep_going=keep_going)
            except InputError as exc:
                beside.append(f"{one.relative_to(path)} ({exc.problems[0].what:.140})")
                continue
            known = any(rows.format == kind.name for kind in FORMATS)
            found += [rows] if known else []
            beside += [] if known else [str(one.relative_to(path))]
    kinds = Counter(rows.format for rows in found)
    if len(kinds) != 1:
        held = ", ".join(f"{n} of {kind}" for kind, n in kinds.items()) or "none"
        names = ", ".join(kind.name for kind in FORMATS)
        what = f"a folder holds logs of one tool ({names}; got {held}); name a file of any other table"
        raise InputError(name, [what, *(f"not read: {one}" for one in beside[:12])])
    sizes = np.cumsum([0, *map(len, found)])
    said = dict.fromkeys(line for rows in found for line in rows.said)
    said |= {f"not read: {', '.join(beside[:12])}{' ...' if len(beside) > 12 else ''}": None} if beside else {}
    return Rows(
        name, pa.concat_tables([rows.table for rows in found], promote_options="default"),
        np.concatenate([rows.line for rows in found]), found[0].unit, found[0].format, tuple(said),
        hashlib.sha256("".join(rows.sha256 for rows in found).encode()).hexdigest(),
        tuple((str(Path(rows.name).relative_to(path)), int(at)) for rows, at in zip(found, sizes, strict=False)),
    )  # fmt: skip


def _recognise(tree: Any, where: Where, *, name: str, keep_going: bool) -> Recognised | None:
    """The rows of a tree that one of `FORMATS` knows."""
    one = next((kind for kind in FORMATS if kind.looks(tree)), None)
    if one is None:
        return None
    said, objects, kept = [one.said] if one.said else [], tree, None
    if isinstance(tree, list):
        lacks = {k: [key for key in one.needs if key not in held] if isinstance(held, dict) else None
                 for k, held in enumerate(tree)}  # fmt: skip
        problems = [
            Problem(where(k), f"has no {', '.join(keys)} ({one.name})" if keys else f"must be an object ({one.name})")
            for k, keys in lacks.items()
            if keys != []
        ]
        if problems:
            leave_out(name, problems, said if keep_going else None)
        kept = [k for k, keys in lacks.items() if keys == []]
        objects = [tree[k] for k in kept]
    found: list[tuple[int, dict[str, Any]]] = []
    try:
        for place, row in one.to_rows(objects, name):
            found.append((place if kept is None else kept[place], row))
    except (TypeError, KeyError, AttributeError, ValueError, IndexError) as exc:
        after = f"after {where(found[-1][0])}" if found else ""
        what = f"is recognised as {one.name}, and holds what that tool does not write ({exc})"
        raise InputError(name, [Problem(after, f"{what}; map the columns of a table of your own")]) from None
    if not found:
        raise InputError(name, [f"is recognised as {one.name}, without a score in it"])
    heads = tree[:50] if isinstance(tree, list) else [tree]
    used = one.reads | (set(one.needs) - _TEXTS) | {str(row["judge"]).partition("/")[0] for _, row in found}
    beside = dict.fromkeys(key for head in heads if isinstance(head, dict) for key in head if key not in used)
    said += _ended(tree["status"]) if one is FORMATS[0] else ()
    said += [f"not read: {', '.join(beside)}"] if beside else []
    return one.name, found, tuple(said)


_TEXTS: Final = {"judgment", "filtered_resps"}  # keys by which a tool is known, and which are not read


def _turn(one: Object) -> dict[str, Any]:
    """What MT-Bench's files have in common; a judge goes by its model: MT-Bench writes model and prompt template."""
    question, judge = one["question_id"], one.get("judge")
    return {
        "item": f"{question} turn {one['turn']}" if "turn" in one else str(question), "cluster": question,
        "judge": str(judge[0] if isinstance(judge, list) and judge else judge),
    }  # fmt: skip


def _counted(rows: list[tuple[int, dict[str, Any]]]) -> Made:
    """Rows with the number of the trial, where one item, agent and judge occurs several times."""
    seen: Counter[tuple[Any, ...]] = Counter()
    for _, row in rows:
        key = (row["item"], row["agent"], row["judge"])
        seen[key] += 1
        row["trial"] = seen[key]
    yield from rows


_GRADES: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}


def _inspect_log(tree: Any, name: str) -> Any:
    """An Inspect AI log through its own reader."""
    try:
        read_eval_log = import_module("inspect_ai.log").read_eval_log
    except ImportError:
        what = "is an Inspect AI log, which its own reader reads: pip install 'assaymark[inspect]'"
        raise InputError(name, [what]) from None
    return read_eval_log(io.BytesIO(tree if isinstance(tree, bytes) else json.dumps(tree).encode()))


def _ended(status: Any) -> tuple[str, ...]:
    """What is said of a log whose run did not come to its end: samples may lack."""
    return () if status == "success" else (f"its run ended with status {str(status)!r:.40}; samples may be missing",)


def _inspect_rows(log: Any) -> Made:
    """Its scores; C, I, P and N are 1, 0, one half and 0 as in its accuracy."""
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


@_format(
    "Inspect AI log", "eval samples status version", "scorers are read as judges, epochs as trials",
    looks=lambda tree: isinstance(tree, dict) and {"eval", "samples", "status"} <= tree.keys()
    and isinstance(tree["eval"], dict),
)  # fmt: skip
def _inspect(tree: Any, name: str) -> Made:
    yield from _inspect_rows(_inspect_log(tree, name))


def _results(tree: Any) -> list[Any]:
    """The results in a promptfoo file; empty for any other."""
    held = tree.get("results") if isinstance(tree, dict) else None
    rows = tree if isinstance(tree, list) else held.get("results") if isinstance(held, dict) else None
    return rows if isinstance(rows, list) else []


@_format(
    "promptfoo results", "results provider prompt promptIdx testIdx vars testCase gradingResult success score",
    "assertions are read as judges", looks=lambda tree: _has(_results(tree), "provider", "prompt", "success", "score"),
)  # fmt: skip
def _promptfoo(tree: Any, _: str) -> Made:
    """A system is a provider, with its prompt where there are several; assertions are judges, by metric or type."""
    results = _results(tree)
    prompts = {result.get("promptIdx", (result.get("prompt") or {}).get("label")) for result in results}
    tests: dict[str, int] = {}
    rows = []
    for place, one in enumerate(results):
        provider = one.get("provider")
        who = provider.get("label") or provider.get("id") if isinstance(provider, dict) else provider
        label = one.get("promptIdx", (one.get("prompt") or {}).get("label"))
        agent = f"{who} prompt {label + 1 if isinstance(label, int) else label}" if len(prompts) > 1 else str(who)
        test = json.dumps([one.get("vars"), (one.get("testCase") or {}).get("assert")], sort_keys=True)
        item = f"test {tests.setdefault(test, len(tests) + 1)}"
        grading = one.get("gradingResult") or {}
        parts = [part for part in grading.get("componentResults") or () if isinstance(part, dict)]
        names: Counter[str] = Counter()
        for part in parts or [{"score": one.get("score"), "assertion": {"type": "score"}}]:
            assertion = part.get("assertion") or {}
            judge = str(assertion.get("metric") or assertion.get("type") or "assertion")
            names[judge] += 1
            judge = judge if names[judge] == 1 else f"{judge} {names[judge]}"
            rows.append((place, {"item": item, "agent": agent, "judge": judge, "score": part.get("score")}))
    yield from _counted(rows)


@_format(
    "AlpacaEval annotations", "annotator dataset",
    "AlpacaEval shuffles the outputs and does not write their order: nothing can be said of position",
    "instruction generator_1 generator_2 preference",
)  # fmt: skip
def _alpaca(tree: Sequence[Object], _: str) -> Made:
    """A preference of 1 is output_1 and of 2 output_2, 1.5 (0 in old files) a tie; between them weighted verdicts."""
    items: dict[str, int] = {}
    for place, one in enumerate(tree):
        names, given = (str(one["generator_1"]), str(one["generator_2"])), one.get("preference")
        number = given if isinstance(given, int | float) and not isinstance(given, bool) and given == given else None
        winner = "invalid"
        if number is not None:
            winner = "tie" if number in (0, 1.5) else names[number > 1.5]
        yield place, {
            "item": f"instruction {items.setdefault(str(one['instruction']), len(items) + 1)}", "agent_a": names[0],
            "agent_b": names[1], "judge": str(one.get("annotator", "annotator")), "winner": winner,
            "preference_as_written": given, "dataset": one.get("dataset"),
        }  # fmt: skip


@_format(
    "Arena-Hard judgments", "question_id uid baseline",
    "game 1 shows the baseline first, game 2 the model; where the file does not name it, it is called baseline",
    "games model judge",
)  # fmt: skip
def _arena_hard(tree: Sequence[Object], _: str) -> Made:
    for place, one in enumerate(tree):
        model, baseline = str(one["model"]), str(one.get("baseline") or "baseline")
        for order, game in enumerate(one["games"], start=1):
            said = (game or {}).get("score")
            shown = (baseline, model) if order % 2 else (model, baseline)
            winner = {"A": shown[0], "B": shown[1]}.get(str(said)[:1], "invalid") if said else "invalid"
            yield place, {
                "item": str(one.get("uid", one.get("question_id"))), "agent_a": shown[0], "agent_b": shown[1],
                "judge": str(one["judge"]), "winner": "tie" if said in ("A=B", "B=A") else winner, "game": order,
                "verdict_as_written": said,
            }  # fmt: skip


@_format(
    "MT-Bench pairwise judgments", "judge turn", "winners name models, and game 2 shows model_2 first",
    "question_id model_1 model_2 g1_winner g2_winner",
)  # fmt: skip
def _mt_bench_pair(tree: Sequence[Object], _: str) -> Made:
    for place, one in enumerate(tree):
        names, made = {"model_1": str(one["model_1"]), "model_2": str(one["model_2"])}, _turn(one)
        for order, first, second in ((1, "model_1", "model_2"), (2, "model_2", "model_1")):
            winner = one.get(f"g{order}_winner")
            yield place, {
                "item": made["item"], "agent_a": names[first], "agent_b": names[second], "judge": made["judge"],
                "winner": names.get(str(winner), "tie" if winner == "tie" else "invalid"), "game": order,
                "cluster": made["cluster"],
            }  # fmt: skip


@_format("MT-Bench single judgments", "turn", needs="question_id model judge score judgment")
def _mt_bench_single(tree: Sequence[Object], _: str) -> Made:
    """A score of -1 is a reply that FastChat could not read."""
    for place, one in enumerate(tree):
        score, made = one["score"] if one["score"] != -1 else None, _turn(one)
        yield place, {"item": made["item"], "agent": str(one["model"]), "judge": made["judge"], "score": score,
                      "cluster": made["cluster"]}  # fmt: skip


_HARNESS: Final = frozenset({
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
    "target_hash", "schema_version", "sample_len", "task_name",
})  # fmt: skip


@_format(
    "lm-evaluation-harness samples", "filter metrics",
    "metrics are read as judges, and the system is called after the folder that holds the file",
    "doc_id filtered_resps",
)  # fmt: skip
def _harness(tree: Sequence[Object], name: str) -> Made:
    """The harness writes ``MODEL/samples_TASK_TIME.jsonl`` for a model and a task, without the model's name in it."""
    path = Path(name)
    agent = path.parent.name or path.name.split(".")[0]
    task = re.match(r"samples_(.+?)(?:_\d{4}-\d\d-\d\d.*)?\.jsonl", path.name)
    before = f"{task[1]}/" if task else ""
    for place, one in enumerate(tree):
        named, rule = one.get("metrics"), one.get("filter", "none")
        for metric in named if isinstance(named, list) else [key for key in one if key not in _HARNESS]:
            value = one.get(metric)
            if isinstance(value, int | float):
                judge = metric if rule == "none" else f"{metric}/{rule}"
                item = f"{before}{one['doc_id']}"
                yield place, {"item": item, "agent": agent.replace("__", "/"), "judge": judge, "score": float(value)}


@_format(
    "OpenAI evals log", "spec sample_id type data run_id event_id", "matches and metrics are read as judges",
    looks=lambda tree: _has(tree, "spec") or _has(tree, "run_id", "event_id", "sample_id", "type"),
)  # fmt: skip
def _openai_evals(tree: Sequence[Object], _: str) -> Made:
    """Events of the types match and metrics; a match is 1 or 0, and each number of a metrics event is a judge."""
    spec: Object = next((one["spec"] for one in tree if isinstance(one.get("spec"), dict)), {})
    agent = "+".join(map(str, spec.get("completion_fns") or [spec.get("model_name", "completion")]))
    rows = []
    for place, one in enumerate(tree):
        held = one.get("data")
        data: Object = held if isinstance(held, dict) else {}
        kind = one.get("type")
        given = {"match": data.get("correct")} if kind == "match" else data if kind == "metrics" else {}
        for judge, value in given.items():
            if isinstance(value, bool | int | float):
                row = {"item": str(one.get("sample_id")), "agent": agent, "judge": judge, "score": float(value)}
                rows.append((place, row))
    yield from _counted(rows)
