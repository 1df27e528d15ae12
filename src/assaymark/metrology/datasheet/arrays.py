"""The decomposition and the agreement of judges on columns of codes, for logs of millions of verdicts.

Codes are whole numbers from 0: judges, pairs, orders (0: u in slot 1, 1: v in slot 1), verdicts (places in
`VERDICTS`), tasks. Trials of a pair are pairs of their own: fold the trial into the pair code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import InputError, Problem
from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Ints
from assaymark.metrology.datasheet.verdicts import CLASS_OF, CLASSES, OUTCOME_OF, OUTCOMES, VERDICTS

_DENSE = 1 << 25  # (judge, pair) places up to which a table with a place for each is cheaper than sorting
_NAMED = 5  # faulty rows that an error lists one by one
_NONE = len(VERDICTS)


def _content(first: int, second: int) -> int:
    """The outcome by content of a pair: 0 for u, which stands in slot 1 in the first order, 1 for v."""
    if max(first, second) >= OUTCOMES.index("invalid"):
        return max(first, second)
    ahead = (1, -1, 0)[first] - (1, -1, 0)[second]
    return 0 if ahead > 0 else 1 if ahead < 0 else OUTCOMES.index("no preference")


_ASKED = range(len(OUTCOMES) + 1)  # the last stands for a call that was not asked
_CONTENT = np.array([[_content(first, second) for second in _ASKED] for first in _ASKED], dtype=np.int8)


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """What the verdicts of J judges come to in G tasks.

    ``pairs`` [J, G, 7] counts pairs by class (`CLASSES`), ``calls`` [J, G, 5] all calls by verdict (`VERDICTS`), and
    ``incomplete`` [J] the pairs seen in one order only, which have no class.
    """

    pairs: Ints
    calls: Ints
    incomplete: Ints


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two judges answered the same calls: ``tables`` [G, 4, 4] of outcomes (`OUTCOMES`), by task.

    By content the first two outcomes are the contents u and v, and the units are pairs.
    """

    first: int
    second: int
    tables: Ints


def decompose_arrays(
    judge_codes: ArrayLike,
    pair_codes: ArrayLike,
    order_codes: ArrayLike,
    verdict_codes: ArrayLike,
    task_codes: ArrayLike,
    *,
    tasks: int | None = None,
) -> VerdictCounts:
    """Pairs by class, for each judge and task: `decompose` of a whole log at once.

    Parameters
    ----------
    judge_codes, pair_codes, order_codes, verdict_codes, task_codes : int arrays of shape (n,)
        One row per call, in any sequence.
    tasks : int, optional
        Number of tasks G; by default one more than the largest code.

    Returns
    -------
    VerdictCounts

    Raises
    ------
    InputError
        Columns of unequal length, codes off their range, one call asked twice, or a pair in two tasks; with the first
        rows of each.

    Examples
    --------
    >>> counts = decompose_arrays([0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 2, 1], [0, 0, 0, 0])
    >>> dict(zip(CLASSES, counts.pairs[0, 0].tolist()))["one-sided"]
    1
    """
    columns = {
        "judge_codes": judge_codes,
        "pair_codes": pair_codes,
        "order_codes": order_codes,
        "verdict_codes": verdict_codes,
        "task_codes": task_codes,
    }
    judge, pair, order, verdict, task = _codes("decompose_arrays", columns)
    judges, groups = _size(judge), max(_size(task), tasks or 0)
    unit, units = _units(judge, pair)
    answers = np.full((2, units), _NONE, dtype=np.int8)
    answers[order, unit] = verdict
    task_of = np.zeros(units, dtype=np.int64)
    task_of[unit] = task
    judge_of = np.zeros(units, dtype=np.int64)
    judge_of[unit] = judge
    _refuse_faults(unit, order, task, task_of, answers)
    shown = answers != _NONE
    both = np.flatnonzero(shown.all(axis=0))
    kind = CLASS_OF[answers[0, both], answers[1, both]]
    place = (judge_of[both] * groups + task_of[both]) * len(CLASSES) + kind
    size = judges * groups
    alone = judge_of[shown[0] != shown[1]]
    return VerdictCounts(
        pairs=np.bincount(place, minlength=size * len(CLASSES)).reshape(judges, groups, -1),
        calls=np.bincount((judge * groups + task) * _NONE + verdict, minlength=size * _NONE).reshape(
            judges, groups, -1
        ),
        incomplete=np.bincount(alone, minlength=judges),
    )


def agreement_arrays(
    judge_codes: ArrayLike,
    call_codes: ArrayLike,
    verdict_codes: ArrayLike,
    task_codes: ArrayLike,
    *,
    tasks: int | None = None,
    content: bool = False,
) -> tuple[Agreement, ...]:
    """How every two judges answered the calls they have in common, by task.

    With ``content``, a judge's two answers to a pair are averaged over its orders: a content that is ahead is
    preferred; where they cancel, or neither order has a preference, there is none. Pairs that a judge saw in one order
    only are left out, and one unusable answer makes the pair invalid.

    Parameters
    ----------
    judge_codes, verdict_codes, task_codes : int arrays of shape (n,)
        One row per call.
    call_codes : int array of shape (n,)
        Which question it was: pair and trial in one code, times two, plus the order.
    tasks : int, optional
        Number of tasks G; by default one more than the largest code.
    content : bool
        By content after averaging orders, instead of call by call.

    Returns
    -------
    tuple of Agreement
        One for each two judges, in the order of their codes; tables of zeros where they share no call.

    Raises
    ------
    InputError
        As for `decompose_arrays`.

    Examples
    --------
    >>> (found,) = agreement_arrays([0, 0, 1, 1], [0, 1, 0, 1], [0, 2, 0, 1], [0, 0, 0, 0])
    >>> found.tables[0].tolist()
    [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    """
    columns = {
        "judge_codes": judge_codes,
        "call_codes": call_codes,
        "verdict_codes": verdict_codes,
        "task_codes": task_codes,
    }
    judge, call, verdict, task = _codes("agreement_arrays", columns)
    judges, groups, kinds = _size(judge), max(_size(task), tasks or 0), len(OUTCOMES)
    if judges * _size(call) > _DENSE:
        _, unit = np.unique(call // 2, return_inverse=True)
        call = unit * 2 + call % 2
    questions = _size(call) + _size(call) % 2
    answers = np.full((judges, questions), kinds, dtype=np.int8)
    answers[judge, call] = OUTCOME_OF[verdict]
    task_of = np.zeros(questions, dtype=np.int64)
    task_of[call] = task
    faults = [*_twice(answers != kinds, judge * questions + call), *_moved(task_of[call] != task)]
    if faults:
        raise InputError("agreement_arrays", faults)
    if content:
        answers, task_of = _CONTENT[answers[:, ::2], answers[:, 1::2]], task_of[::2]
    found = []
    for a, b in combinations(range(judges), 2):
        common = np.flatnonzero((answers[a] != kinds) & (answers[b] != kinds))
        place = (task_of[common] * kinds + answers[a, common]) * kinds + answers[b, common]
        tables = np.bincount(place, minlength=groups * kinds * kinds).reshape(groups, kinds, kinds)
        found.append(Agreement(a, b, tables))
    return tuple(found)


def _codes(source: str, columns: dict[str, ArrayLike]) -> list[Ints]:
    """The columns as equally long arrays of codes within their ranges."""
    top = {"order_codes": 1, "verdict_codes": _NONE - 1}
    found, problems = [], []
    for name, values in columns.items():
        column = checks.array(source, name, values)
        if column.ndim != 1 or not column.size or column.dtype.kind not in "iub":
            checks.fail(source, name, f"must be one axis of whole numbers (got shape {column.shape}, {column.dtype})")
        low, high = int(column.min()), int(column.max())
        if low < 0 or high > top.get(name, high):
            limit = f"0..{top[name]}" if name in top else "at least 0"
            rows = np.flatnonzero((column < 0) | (column > top.get(name, high)))
            problems.append(
                Problem(name, f"codes must be {limit} (first that is not: {column[rows[0]]}, row {rows[0]})")
            )
        found.append(column.astype(np.int64, copy=False))
    sizes = sorted({column.size for column in found})
    if len(sizes) > 1:
        problems.append(Problem(", ".join(columns), f"must be equally long (got {', '.join(map(str, sizes))})"))
    if problems:
        raise InputError(source, problems)
    return found


def _size(codes: Ints) -> int:
    return int(codes.max()) + 1


def _units(judge: Ints, pair: Ints) -> tuple[Ints, int]:
    """A number for each (judge, pair) in each row, and how many numbers there are."""
    wide = _size(judge) * _size(pair)
    unit = judge * _size(pair) + pair
    if wide <= _DENSE:
        return unit, wide
    names, unit = np.unique(unit, return_inverse=True)
    return unit, names.size


def _refuse_faults(unit: Ints, order: Ints, task: Ints, task_of: Ints, answers: NDArray[np.int8]) -> None:
    """Raise calls asked twice and pairs in two tasks."""
    faults = [*_twice(answers != _NONE, order * answers.shape[1] + unit), *_moved(task_of[unit] != task)]
    if faults:
        raise InputError("decompose_arrays", faults)


def _twice(filled: Bools, places: Ints) -> Sequence[Problem]:
    """A problem if more rows than places were filled; rows are looked for only then."""
    if int(np.count_nonzero(filled)) == places.size:
        return []
    _, first = np.unique(places, return_index=True)
    again = np.ones(places.size, dtype=bool)
    again[first] = False
    return [Problem(_rows(again), "asked before: the same judge, pair and order; fold trials into the pair code")]


def _moved(wrong: Bools) -> Sequence[Problem]:
    """A problem if the rows of some pair name different tasks."""
    return [Problem(_rows(wrong), "task contradicts another call of the same pair")] if wrong.any() else []


def _rows(mask: Bools) -> str:
    """The faulty rows, the first few by number."""
    rows = np.flatnonzero(mask)
    more = f" and {rows.size - _NAMED} more" if rows.size > _NAMED else ""
    return f"rows {', '.join(map(str, rows[:_NAMED].tolist()))}{more}"
