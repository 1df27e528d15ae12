"""Questions as JSON lines: ours out and in, and the set that the authors of PortBench published in."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from pydantic import TypeAdapter, ValidationError

from assaymark.benchmark.questions.answers import read_answer
from assaymark.benchmark.questions.payloads import (
    ABLATED,
    REGIME_NAMES,
    SPLITS,
    TEMPLATES,
    Answer,
    Context,
    Direction,
    Number,
    PairAllocation,
    Payload,
    PositionSize,
    Printed,
    Rebalancing,
    Regime,
    RegimeCall,
    RegimeView,
    ReturnDirection,
    SharpeAllocation,
    Split,
    TailRisk,
    Template,
    Trade,
    Weights,
)
from assaymark.benchmark.questions.templates import Question
from assaymark.encoding import write_atomic
from assaymark.errors import InputError, Problem
from assaymark.prompting.texts import Rejected, shown, strict_json
from assaymark.records import JSON, canonical_json, problems_of, to_json

LARGEST_FILE: Final = 1 << 30
"""Bytes of the largest file of questions that is read."""

_KINDS: Mapping[Template, tuple[type[Payload], type[Answer]]] = {
    "T1": (ReturnDirection, Direction),
    "T2": (TailRisk, Number),
    "T3": (PositionSize, Number),
    "T4": (PairAllocation, Weights),
    "T5": (SharpeAllocation, Weights),
    "T6": (Rebalancing, Trade),
    "T7": (RegimeCall, RegimeView),
}
_BLANK: Mapping[Template, Answer] = {
    "T1": Direction("flat"), "T2": Number(0.0), "T3": Number(0.0), "T4": Weights({}), "T5": Weights({}),
    "T6": Trade(False), "T7": RegimeView(None),
}  # fmt: skip
_MOST_PROBLEMS = 20


def answer_text(answer: Answer) -> str:
    """An answer as it is asked for, to be read by people and by `read_answer`."""
    match answer:
        case Direction():
            return answer.way
        case Number():
            return f"{answer.value:.10f}".rstrip("0")
        case Weights():
            return ", ".join(f"{name}={value:.10f}" for name, value in answer.weights.items())
        case Trade(rebalance=True, side=str() as side, instrument=str() as instrument, size=size):
            return f"yes; {side} {size or 0.0:.4f} of {instrument}"
        case Trade():
            return "yes" if answer.rebalance else "no"
        case RegimeView():
            changes = ", ".join(f"{name}={change}" for name, change in answer.changes.items())
            return f"regime={answer.regime}; {changes}"


def question_line(question: Question) -> str:
    """One question as one line of JSON: what it is made of, and both of its prompts for whoever only asks."""
    fields = {
        "id": question.id,
        "template": question.template,
        "level": question.level,
        "split": question.split,
        "regime": question.regime,
        "day": question.day.isoformat(),
        "instruments": list(question.instruments),
        "prompt": question.prompt("full"),
        "answer": answer_text(question.answer),
        "truth": to_json(question.answer),
        "payload": to_json(question.payload),
        "context": to_json(question.context),
    }
    if question.template in ABLATED:
        fields["restricted"] = question.prompt("restricted")
    return canonical_json(fields)


def questions_digest(questions: Iterable[Question]) -> str:
    """sha256 over the lines of a set: equal sets have equal digests, on every machine."""
    whole = hashlib.sha256()
    for one in questions:
        whole.update(question_line(one).encode("utf-8", "surrogatepass") + b"\n")
    return whole.hexdigest()


def write_questions(path: Path, questions: Iterable[Question]) -> str:
    """Write a set as JSON lines, whole or not at all."""
    text = "".join([question_line(one) + "\n" for one in questions]).encode("utf-8", "surrogatepass")
    write_atomic(path, text)
    return hashlib.sha256(text).hexdigest()


def read_questions(path: Path) -> tuple[Question, ...]:
    """The questions of a file of JSON lines, ours or the authors'."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(path.name, [f"is larger than {LARGEST_FILE} bytes"])
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as exc:
        raise InputError(path.name, [f"cannot be read: {exc.strerror or exc}"]) from None
    except UnicodeDecodeError as exc:
        raise InputError(path.name, [f"is not UTF-8 text: byte {exc.start}"]) from None
    found: list[Question] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(_question(line))
            except InputError as exc:
                problems += [Problem(f"line {number}, {one.where}".rstrip(", "), one.what) for one in exc.problems]
    counted = Counter(one.id for one in found)
    twice = [mark for mark, count in counted.items() if count > 1]
    problems += [Problem("id", f"comes more than once: {', '.join(twice[:5])}")] if twice else []
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        rest = [Problem("", f"and {more} more")] if more > 0 else []
        raise InputError(path.name, [*problems[:_MOST_PROBLEMS], *rest])
    if not found:
        raise InputError(path.name, ["holds no questions; JSON lines are expected, one question a line"])
    return tuple(found)


def _question(line: str) -> Question:
    try:
        fields = strict_json(line)
    except Rejected as exc:
        raise InputError("", [str(exc)]) from None
    if not isinstance(fields, dict):
        raise InputError("", ["must be an object"])
    return _ours(fields) if "payload" in fields else _theirs(fields)


def _ours(fields: Mapping[str, JSON]) -> Question:
    template, split, regime, day = _place(fields, "template", "split", "regime", "day")
    payload, answer = _KINDS[template]
    kinds: Any = payload if "text" not in (fields.get("payload") or {}) else Printed
    found = Question(
        _text(fields, "id"), template, split, regime, day, _record(kinds, fields, "payload"),
        _record(Context, fields, "context"), _record(answer, fields, "truth"),
    )  # fmt: skip
    if fields.get("prompt") != found.prompt("full"):
        raise InputError("", [Problem("prompt", "is not the one that its payload gives in this version of assaymark")])
    return found


def _theirs(fields: Mapping[str, JSON]) -> Question:
    name = "template_id" if "template_id" in fields else "template"
    template, split, regime, day = _place(fields, name, "split", "market_regime", "decision_date")
    assets = fields.get("assets")
    if not (isinstance(assets, list) and all(isinstance(one, str) for one in assets)):
        raise InputError("", [Problem("assets", f"must be a list of names (got {shown(assets)})")])
    mark = _text(fields, "qa_id" if "qa_id" in fields else "id")
    payload = Printed(tuple(assets), _text(fields, "question"))
    blank = Question(mark, template, split, regime, day, payload, Context(), _BLANK[template])
    said, number = fields.get("answer"), fields.get("answer_numeric")
    if template in ("T2", "T3") and isinstance(number, int | float):
        return Question(mark, template, split, regime, day, payload, Context(), Number(float(number)))
    read = read_answer(blank, f"ANSWER: {said}" if isinstance(said, str | int | float) else "")
    if read.answer is None:
        raise InputError("", [Problem("answer", f"{read.reason} (got {shown(said)})")])
    return Question(mark, template, split, regime, day, payload, Context(), read.answer)


def _place(
    fields: Mapping[str, JSON], template: str, split: str, regime: str, day: str
) -> tuple[Template, Split, Regime, date]:
    problems = [
        Problem(name, f"must be one of {', '.join(known)} (got {shown(fields.get(name))})")
        for name, known in ((template, TEMPLATES), (split, SPLITS), (regime, REGIME_NAMES))
        if fields.get(name) not in known
    ]
    try:
        when = date.fromisoformat(str(fields.get(day)))
    except ValueError:
        problems.append(Problem(day, f"must be a day such as 2025-03-03 (got {shown(fields.get(day))})"))
    if problems:
        raise InputError("", problems)
    return cast(Template, fields[template]), cast(Split, fields[split]), cast(Regime, fields[regime]), when


def _text(fields: Mapping[str, JSON], name: str) -> str:
    value = fields.get(name)
    if not (isinstance(value, str) and value):
        raise InputError("", [Problem(name, f"must be a text (got {shown(value)})")])
    return value


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _record(kind: Any, fields: Mapping[str, JSON], name: str) -> Any:
    try:
        return _adapter(kind).validate_python(fields.get(name))
    except ValidationError as exc:
        raise InputError(
            "", [Problem(f"{name}.{one.where}".rstrip("."), one.what) for one in problems_of(exc)]
        ) from None
