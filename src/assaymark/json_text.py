"""JSON of any shape as rows: JSON lines, lists of objects, an object of lists; objects in objects as dotted columns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from assaymark.errors import InputError, Problem

Ints = NDArray[np.int64]

WIDEST: Final = 1000
"""Keys that become columns; an object with more of them, such as one keyed by item, stays JSON text."""

_DEEPEST: Final = 3


def dumps(value: Any) -> str:
    """A value as JSON text, as people write it."""
    return json.dumps(value, ensure_ascii=False, default=str)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some pairs, for ``object_pairs_hook``; raises where a key stands twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        (twice, _), *_rest = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {twice!r} stands twice in one object")
    return made


_STRICT: Final = json.JSONDecoder(object_pairs_hook=once)


def json_problem(error: Exception, text: str) -> str:
    """Why a text is no JSON, with what stands there."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    if not isinstance(error, json.JSONDecodeError):
        return "a number of more than 4300 digits" if "integer string conversion" in str(error) else str(error)
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
        return f"not JSON: {error.msg} at column {error.colno}; it ends in the middle, fetch the file again"
    near = text[max(error.pos - 10, 0) : error.pos + 20]
    return f"not JSON: {error.msg} at column {error.colno} (near {near!r})"


def objects_of(name: str, text: str, said: list[str] | None = None) -> tuple[Any, Ints | None]:
    """The objects of JSON lines with their lines, or the one tree of a JSON file and None."""
    lines = text.split("\n")
    there = [k for k, line in enumerate(lines) if line and not line.isspace()]
    written = [lines[k] for k in there]
    number = np.array(there, dtype=np.int64) + 1
    first: Any = None
    try:
        first = _STRICT.decode(written[0])
    except (ValueError, RecursionError):
        try:
            return _STRICT.decode(text), None
        except (ValueError, RecursionError) as exc:
            if len(written) == 1 or not written[1].startswith("{"):
                where = f"line {exc.lineno}" if isinstance(exc, json.JSONDecodeError) else ""
                raise InputError(name, [Problem(where, json_problem(exc, text))]) from None
    holds = first.values() if isinstance(first, dict) else ([],)
    if len(written) == 1 and any(isinstance(hold, dict | list) for hold in holds):
        return first, None
    try:
        found = _STRICT.decode(f"[{','.join(written)}]")
        if len(found) == len(written) and all(type(one) is dict for one in found):
            return found, number
    except (ValueError, RecursionError):
        pass
    problems: list[Problem] = []
    found = []
    for where, line in zip(number.tolist(), written, strict=True):
        try:
            found.append(_STRICT.decode(line))
            if not isinstance(found[-1], dict):
                what = f"must be a JSON object (got {line.strip():.40})"
                problems.append(Problem(f"line {where}", what))
        except (ValueError, RecursionError) as exc:
            problems.append(Problem(f"line {where}", json_problem(exc, line)))
    if problems:
        leave_out(name, problems, said)
        wrong = {problem.where for problem in problems}
        good = [k for k, where in enumerate(number.tolist()) if f"line {where}" not in wrong]
        return [one for one in found if isinstance(one, dict)], number[good]
    return found, number


def leave_out(name: str, problems: Sequence[Problem], said: list[str] | None) -> None:
    """Raise what is wrong with lines, or put it into ``said`` where they may be left out."""
    if said is None:
        raise InputError(name, problems)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    said.append(f"left out: {problems[0]}{more}")


def records_of(name: str, tree: Any, said: list[str]) -> list[dict[str, Any]]:
    """The rows in a JSON tree: a list of objects, an object of lists, or an object with one list of objects in it."""
    if isinstance(tree, list):
        wrong = [(k, one) for k, one in enumerate(tree, start=1) if not isinstance(one, dict)]
        if wrong or not tree:
            shown = [Problem(f"record {k}", f"must be an object (got {dumps(one):.40})") for k, one in wrong]
            raise InputError(name, shown or ["is an empty list; one object a row is needed"])
        return tree
    if not isinstance(tree, dict):
        raise InputError(name, [f"must be a list of objects (got {dumps(tree):.40})"])
    values = list(tree.values())
    lists = [value for value in values if isinstance(value, list)]
    if values and len(lists) == len(values) and not any(isinstance(one, dict) for held in lists for one in held[:1]):
        if len({len(value) for value in values}) > 1:
            sizes = ", ".join(f"{key} {len(one)}" for key, one in tree.items())
            raise InputError(name, [f"columns are lists of one length (got {sizes})"])
        return [dict(zip(tree, row, strict=True)) for row in zip(*values, strict=True)]
    if all(isinstance(value, dict) and list(value) == [str(k) for k in range(len(value))] for value in values):
        keys = list(values[0]) if values else []
        if keys and all(list(value) == keys for value in values):  # as pandas writes a frame
            return [{key: one[k] for key, one in tree.items()} for k in keys]
    found = dict(_lists(tree, "", _DEEPEST))
    if not found:
        return [tree]
    if len(found) > 1:
        held = ", ".join(f"{path} ({len(rows)})" for path, rows in found.items())
        what = f"one list of objects is needed (got {held}); write the rows alone as a JSON list or JSON lines"
        raise InputError(name, [what])
    ((path, rows),) = found.items()
    beside = [key for key in tree if key != path.partition(".")[0]]
    said.append(f"rows are the list {path}" + (f"; not read: {', '.join(beside)}" if beside else ""))
    return records_of(name, rows, said)


def _lists(tree: Mapping[str, Any], path: str, depth: int) -> Iterator[tuple[str, list[Any]]]:
    """The lists of objects in a tree, by their dotted paths."""
    for key, value in tree.items():
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            yield path + key, value
        elif isinstance(value, dict) and depth > 1:
            yield from _lists(value, f"{path}{key}.", depth - 1)


def columns_of(
    records: Sequence[Mapping[str, Any] | None], path: str, nested: bool, into: dict[str, list[Any]],
    kept: dict[str, list[str]],
) -> None:  # fmt: skip
    """The columns of some objects, those of objects inside of them under dotted names; every value as text."""
    keys = dict.fromkeys(chain.from_iterable(filter(None, records)))
    if len(keys) > WIDEST:
        raise ValueError(f"the objects have {len(keys)} different keys (allowed {WIDEST}); one row an object is needed")
    for key in keys:
        name, values = path + key, [None if record is None else record.get(key) for record in records]
        if name in into:
            raise ValueError(f"column {name!r} stands twice: as a key and as a path into an object; rename the key")
        kinds = set(map(type, values))
        if nested and dict in kinds:
            inner = [value if type(value) is dict else None for value in values]
            if 0 < len({one for value in inner if value for one in value}) <= WIDEST:
                kept["flat"] += [] if path else [name]
                columns_of(inner, f"{name}.", nested, into, kept)
                if kinds <= {dict, type(None)}:
                    continue
                values = [None if type(value) is dict else value for value in values]
        if kinds & {dict, list}:
            kept["json"].append(name)
        into[name] = values if kinds <= {str, type(None)} else [_text(value) for value in values]


def _text(value: Any) -> str | None:
    if value is None or type(value) is str:
        return value
    return repr(value) if type(value) in (int, float) else dumps(value)


def inside(text: str | None, path: str) -> str | None:
    """The value at a dotted path into a JSON text, as text; keys may hold dots, and numbers count entries from 0."""
    try:
        tree = json.loads(text) if text else None
    except ValueError:
        return None

    def walk(tree: Any, parts: Sequence[str]) -> Any:
        if not parts:
            return tree
        if isinstance(tree, list):
            place = int(parts[0]) if parts[0].isdecimal() else len(tree)
            return walk(tree[place], parts[1:]) if place < len(tree) else None
        cuts = range(len(parts), 0, -1) if isinstance(tree, dict) else ()
        return next((walk(tree[k], parts[c:]) for c in cuts if (k := ".".join(parts[:c])) in tree), None)

    return _text(walk(tree, path.split(".")))
