"""The calls of one judge as columns: checked all at once, then counted by task."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from assaymark.errors import InputError, Problem
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.datasheet.arrays import VerdictCounts, decompose_arrays
from assaymark.metrology.datasheet.verdicts import CODES, VERDICTS
from assaymark.records import PairCall, PairCondition

Words = NDArray[np.str_]

BASE: Final = "tie-allowed"
"""The instruction of the base arm."""

STRICT: Final = "strict"
"""The instruction that asks for a tie wherever only the wording differs."""

_CONDITIONS: Final[tuple[str, ...]] = get_args(PairCondition)


@dataclass(frozen=True, slots=True)
class CallTable:
    """The calls of one judge, one row per call, as codes.

    ``better`` is the slot (0 or 1) in which the better text stood, -1 where neither is better; ``pair`` numbers pairs,
    ``order`` is 0 for u in slot 1. ``digest`` is a short hash of all calls, whatever their sequence.
    """

    judge: str
    tasks: tuple[str, ...]
    task: Ints
    pair: Ints
    order: Ints
    trial: Ints
    verdict: Ints
    better: Ints
    delta: Floats
    condition: Words
    variant: Words
    prompt: Words
    digest: str

    @property
    def arms(self) -> tuple[str, ...]:
        """The instructions that were given, the base arm first."""
        return tuple(sorted(np.unique(self.prompt).tolist(), key=lambda name: (name != BASE, name)))

    def where(
        self, *, prompt: str, condition: str | None = None, variant: str | None = None, delta: float | None = None
    ) -> Ints:
        """Rows of an arm, of one condition, variant and step or of all."""
        found = self.prompt == prompt
        if condition is not None:
            found &= self.condition == condition
        if variant is not None:
            found &= self.variant == variant
        if delta is not None:
            found &= self.delta == delta
        return np.flatnonzero(found)

    def variants(self, rows: Ints) -> list[str]:
        """The kinds of pairs among the rows, where they have one."""
        return [name for name in np.unique(self.variant[rows]).tolist() if name]

    def steps(self, prompt: str) -> list[float]:
        """The ladder steps that an arm has, in ascending order."""
        found: list[float] = np.unique(self.delta[self.where(prompt=prompt, condition="ladder")]).tolist()
        return found

    def by_task(self, rows: Ints, hit: Bools) -> Ints:
        """Calls that hit and calls that did not [G, 2] in each task, of the given rows."""
        places = self.task[rows] * 2 + np.where(hit, 0, 1)
        return np.bincount(places, minlength=2 * len(self.tasks)).reshape(-1, 2)

    def questions(self, rows: Ints) -> int:
        """How many different questions (pair, order) the rows asked; trials repeat a question."""
        return int(np.unique(self.pair[rows] * 2 + self.order[rows]).size)

    def pairs(self, rows: Ints) -> VerdictCounts:
        """Class counts of the pairs among the rows, each trial of a pair by itself."""
        units = self.pair[rows] * (self.trial.max(initial=0) + 1) + self.trial[rows]
        _, unit = np.unique(units, return_inverse=True)
        one = np.zeros(rows.size, dtype=np.int64)
        return decompose_arrays(one, unit, self.order[rows], self.verdict[rows], self.task[rows], tasks=len(self.tasks))


def call_table(calls: Sequence[PairCall]) -> CallTable:
    """One judge's calls as columns.

    Raises
    ------
    InputError
        No calls, several judges, a word that is no verdict, condition or order, a step without a better text or the
        reverse, a pair whose calls contradict each other about its condition, task, step, better text or variant, or
        the same question asked twice in one trial. All problems are named, each with its place.
    """
    problems = list(_problems(calls))
    if problems:
        raise InputError("pair calls", problems)
    pairs = {pair: k for k, pair in enumerate(sorted({call.pair for call in calls}))}
    tasks = {task: k for k, task in enumerate(sorted({call.task for call in calls}))}
    order = np.array([call.order == "vu" for call in calls], dtype=np.int64)
    better = np.array([{"u": 0, "v": 1, None: -1}[call.better] for call in calls])
    return CallTable(
        judge=calls[0].judge,
        tasks=tuple(tasks),
        task=np.array([tasks[call.task] for call in calls]),
        pair=np.array([pairs[call.pair] for call in calls]),
        order=order,
        trial=np.array([call.trial for call in calls]),
        verdict=np.array([CODES[call.verdict] for call in calls]),
        better=np.where(better < 0, -1, better ^ order),
        delta=np.array([call.delta for call in calls], dtype=np.float64),
        condition=np.array([call.condition for call in calls]),
        variant=np.array([call.variant for call in calls]),
        prompt=np.array([call.prompt for call in calls]),
        digest=digest_of(calls),
    )


def digest_of(calls: Iterable[PairCall]) -> str:
    """A short hash of what was asked and answered, whatever the sequence of the calls."""
    found = hashlib.sha256()
    for line in sorted(
        f"{c.judge}|{c.prompt}|{c.condition}|{c.variant}|{c.task}|{c.delta}|{c.better}|{key_of(c)}|{c.verdict}"
        for c in calls
    ):
        found.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return found.hexdigest()[:16]


def key_of(call: PairCall) -> str:
    """The question as one text: pair, order, prompt and trial.

    >>> key_of(PairCall(pair="t1.q0.q1", condition="ladder", task="t1", order="uv", verdict="tie", judge="j"))
    't1.q0.q1|uv|tie-allowed|1'
    """
    return f"{call.pair}|{call.order}|{call.prompt}|{call.trial}"


def _problems(calls: Sequence[PairCall]) -> Iterable[Problem]:
    """Everything wrong with the calls, in their sequence."""
    if not len(calls):
        yield Problem("", "no calls; at least one is needed")
        return
    judges = sorted({call.judge for call in calls})
    if len(judges) > 1:
        yield Problem("judge", f"a datasheet is of one judge (got {', '.join(judges)}); pass the calls of each alone")
    first: dict[tuple[str, str], tuple[int, PairCall]] = {}
    seen: Counter[tuple[str, str, str, str, int]] = Counter()
    for i, call in enumerate(calls):
        where = f"call {i + 1} (pair {call.pair})"
        yield from (Problem(where, what) for what in _faults(call))
        asked = (call.judge, call.prompt, call.pair, call.order, call.trial)
        seen[asked] += 1
        if seen[asked] > 1:
            yield Problem(where, f"asked twice: prompt {call.prompt}, order {call.order}, trial {call.trial}")
        at, earlier = first.setdefault((call.judge, call.pair), (i, call))
        for name in ("condition", "task", "delta", "better", "variant"):
            here, there = getattr(call, name), getattr(earlier, name)
            if here != there:
                yield Problem(where, f"{name} {here!r} contradicts {there!r} in call {at + 1} of the same pair")


def _faults(call: PairCall) -> Iterable[str]:
    """What is wrong within one call."""
    if call.condition not in _CONDITIONS:
        yield f"condition must be one of {', '.join(_CONDITIONS)} (got {call.condition!r})"
    if call.verdict not in CODES:
        yield f"verdict must be one of {', '.join(VERDICTS)} (got {call.verdict!r})"
    if call.order not in ("uv", "vu"):
        yield f"order must be uv or vu: a pair has two contents (got {call.order!r})"
    if call.better not in ("u", "v", None):
        yield f"better must be u, v or none: a pair has two contents (got {call.better!r})"
    if call.trial < 1:
        yield f"trial must be at least 1 (got {call.trial})"
    if not 0 <= call.delta < float("inf"):
        yield f"delta must be a number of at least 0 (got {call.delta})"
    elif (call.delta > 0) != (call.better is not None):
        yield f"a better text needs a delta above 0 and the reverse (got delta {call.delta:g}, better {call.better!r})"
    elif (call.condition == "ladder") != (call.delta > 0):
        yield f"ladder pairs, and no others, have a delta above 0 (got {call.condition}, delta {call.delta:g})"
