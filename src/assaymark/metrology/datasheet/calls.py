"""The pairwise calls of one judge as columns: checked together, then counted by task."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from operator import attrgetter
from typing import Final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.records import PairCall, PairCondition

# The direction-stability decomposition of the two answers to one pair (Judge Datasheet section 3.3).
#
# A verdict names a *slot*. Choosing the same slot in both orders is therefore the opposite of choosing the same
# *content*: the first follows the position, the second the text. All counts here derive from that table.


VERDICTS: Final = ("1", "2", "tie", "abstain", "invalid")
"""The slot verdicts in the order of their codes 0..4."""

CODES: Final = {verdict: code for code, verdict in enumerate(VERDICTS)}
"""The code of each slot verdict."""

OUTCOMES: Final = ("1", "2", "no preference", "invalid")
"""The outcomes of a call; a valid abstention is no preference, like a tie."""

OUTCOME_OF: Final[Ints] = np.array([0, 1, 2, 2, 3])
"""The outcome code of each verdict code."""

CLASSES: Final = (
    "stable", "positional, slot 1", "positional, slot 2", "one-sided", "no preference", "other, one preference",
    "other, no preference",
)  # fmt: skip
"""The classes of a pair. A pair with an invalid call is always in one of the two "other" classes."""

STABLE, POSITIONAL_1, POSITIONAL_2, ONE_SIDED, NO_PREFERENCE, OTHER_PREFERENCE, OTHER_NONE = range(7)

PREFERENCES: Final[Floats] = np.array([1.0, 1.0, 1.0, 0.5, 0.0, 0.5, 0.0])
"""Share of a pair's two calls that are preferences, by class (the weights of eq. 7)."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """The decomposition of raw false preference into shares of pairs (Judge Datasheet eqs. 2 to 7).

    ``raw_false_preference = stable + positional + one_sided / 2 + other``, where ``other`` is the contribution of pairs
    with an invalid call, and ``stable + positional + one_sided + no_preference + other_pairs = 1``.
    """

    raw_false_preference: float
    stable: float
    positional: float
    one_sided: float
    no_preference: float
    other: float
    other_pairs: float
    n_pairs: int


def pair_class(first: str, second: str) -> int:
    """Return the class of a pair from its verdict with u in slot 1 and its verdict with v in slot 1."""
    preferences = [verdict for verdict in (first, second) if verdict in ("1", "2")]
    if "invalid" in (first, second):
        return OTHER_PREFERENCE if preferences else OTHER_NONE
    if len(preferences) < 2:
        return ONE_SIDED if preferences else NO_PREFERENCE
    if first != second:
        return STABLE
    return POSITIONAL_1 if first == "1" else POSITIONAL_2


CLASS_OF: Final[Ints] = np.array([pair_class(a, b) for a, b in product(VERDICTS, VERDICTS)]).reshape(5, 5)
"""The class of each pair of verdict codes [first, second]."""


def decompose(first: Sequence[str], second: Sequence[str]) -> Decomposition:
    """Decompose preference between texts of the same quality into content-driven and position-driven shares.

    A high raw rate alone does not show its cause. ``stable`` is the share of pairs in which one text won in both
    orders, ``positional`` the share in which one slot won in both, ``one_sided`` the share with a preference in one
    order only. Other tools report positional / (stable + positional), which hides the one-sided pairs.

    Parameters
    ----------
    first : sequence of n slot verdicts
        ``"1" "2" "tie" "abstain" "invalid"``, one per pair, in one presentation order.
    second : sequence of n slot verdicts
        The same pairs with the two contents swapped.

    Returns
    -------
    Decomposition
        Shares in 0..1.

    Raises
    ------
    NotMeasurableError
        No pairs.
    InputError
        Sequences of unequal length, or a word that is no slot verdict; each with its place.

    References
    ----------
    Usami et al. (2026). LLM judges have dark current. Section 3.3, eqs. 2 to 7.

    Examples
    --------
    >>> found = decompose(["1", "1", "tie", "2"], ["1", "2", "tie", "tie"])
    >>> found.stable, found.positional, found.one_sided, found.raw_false_preference
    (0.25, 0.25, 0.25, 0.625)
    """
    # Raise for every unknown verdict, and for unequal lengths.
    problems = [
        Problem(f"{name}[{i}]", f"must be one of {', '.join(VERDICTS)} (got {verdict!r})")
        for name, verdicts in (("first", first), ("second", second))
        for i, verdict in enumerate(verdicts)
        if verdict not in CODES
    ]
    if len(first) != len(second):
        problems.append(Problem("first, second", f"must be equally long (got {len(first)} and {len(second)})"))
    if problems:
        raise InputError("decompose", problems)
    if not len(first):
        raise NotMeasurableError("a decomposition of no pairs is undefined (n = 0)")
    counts = Counter(pair_class(a, b) for a, b in zip(first, second, strict=True))
    return decomposition_of(np.array([counts[k] for k in range(len(CLASSES))]))


def decomposition_of(counts: Ints) -> Decomposition:
    """Compute `decompose` from the number of pairs in each class [7]."""
    n = int(counts.sum())
    share = counts / n
    positional, other = counts[POSITIONAL_1] + counts[POSITIONAL_2], counts[OTHER_PREFERENCE] + counts[OTHER_NONE]
    return Decomposition(
        raw_false_preference=float(PREFERENCES @ counts) / n, stable=float(share[STABLE]),
        positional=float(positional) / n, one_sided=float(share[ONE_SIDED]), no_preference=float(share[NO_PREFERENCE]),
        other=float(share[OTHER_PREFERENCE]) / 2, other_pairs=float(other) / n, n_pairs=n,
    )  # fmt: skip


# The decomposition, and the agreement of judges, on columns of codes, for logs of millions of verdicts.
#
# Codes are integers from 0: judges, pairs, orders (0: u in slot 1, 1: v in slot 1), verdicts (indices into
# `VERDICTS`), tasks. Trials of a pair are separate pairs: include the trial in the pair code.


_DENSE = 1 << 25  # (judge, pair) combinations up to which a dense table is cheaper than sorting
_NAMED = 5  # faulty rows listed individually in an error
_NONE = len(VERDICTS)

_ASKED = range(len(OUTCOMES) + 1)  # the last code is a missing call
_UNUSABLE, _EVEN = OUTCOMES.index("invalid"), OUTCOMES.index("no preference")
_AHEAD = (1, -1, 0)  # the content preferred by each usable outcome in the first order, where u is in slot 1
# The outcome of a pair by content: 0 for u, 1 for v.
_CONTENT = np.array(
    [
        [
            max(a, b) if max(a, b) >= _UNUSABLE
            else 0 if _AHEAD[a] > _AHEAD[b] else 1 if _AHEAD[a] < _AHEAD[b] else _EVEN
            for b in _ASKED
        ]
        for a in _ASKED
    ],
    dtype=np.int8,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """Counts of the verdicts of J judges in G tasks.
    ``pairs`` [J, G, 7] counts pairs by class (`CLASSES`), ``calls`` [J, G, 5] all calls by verdict (`VERDICTS`), and
    ``incomplete`` [J] the pairs shown in one order only, which have no class."""

    pairs: Ints
    calls: Ints
    incomplete: Ints


@dataclass(frozen=True, slots=True)
class JointOutcomes:
    """The joint outcomes of two judges on the same calls: ``tables`` [G, 4, 4] of `OUTCOMES`, by task.
    If counted by content, the first two outcomes are the contents u and v, and the units are pairs."""

    first: int
    second: int
    tables: Ints


def decompose_arrays(
    judge_codes: ArrayLike, pair_codes: ArrayLike, order_codes: ArrayLike, verdict_codes: ArrayLike,
    task_codes: ArrayLike, *, tasks: int | None = None,
) -> VerdictCounts:  # fmt: skip
    """Count pairs by class for each judge and task, for `decompose` of a whole log at once."""
    columns = zip(("judge", "pair", "order", "verdict", "task"),
                  (judge_codes, pair_codes, order_codes, verdict_codes, task_codes), strict=True)  # fmt: skip
    judge, pair, order, verdict, task = _codes("decompose_arrays", dict(columns))
    judges, groups = _size(judge), max(_size(task), tasks or 0)
    # The index of each row's (judge, pair), and the number of indices.
    unit, units = judge * _size(pair) + pair, _size(judge) * _size(pair)
    if units > _DENSE:
        names, unit = np.unique(unit, return_inverse=True)
        units = names.size
    answers = np.full((2, units), _NONE, dtype=np.int8)
    answers[order, unit] = verdict
    task_of = np.zeros(units, dtype=np.int64)
    task_of[unit] = task
    judge_of = np.zeros(units, dtype=np.int64)
    judge_of[unit] = judge
    _refuse_faults("decompose_arrays", answers != _NONE, order * units + unit, task_of[unit] != task)
    shown = answers != _NONE
    both = np.flatnonzero(shown.all(axis=0))
    kind = CLASS_OF[answers[0, both], answers[1, both]]
    place = (judge_of[both] * groups + task_of[both]) * len(CLASSES) + kind
    size = judges * groups
    alone = judge_of[shown[0] != shown[1]]
    every = np.bincount((judge * groups + task) * _NONE + verdict, minlength=size * _NONE)
    pairs = np.bincount(place, minlength=size * len(CLASSES)).reshape(judges, groups, -1)
    return VerdictCounts(pairs, every.reshape(judges, groups, -1), np.bincount(alone, minlength=judges))


def agreement_arrays(
    judge_codes: ArrayLike, call_codes: ArrayLike, verdict_codes: ArrayLike, task_codes: ArrayLike,
    content: bool = False,
) -> tuple[JointOutcomes, ...]:  # fmt: skip
    """Count the joint outcomes of every two judges on their common calls, by task."""
    columns = zip(
        ("judge", "call", "verdict", "task"), (judge_codes, call_codes, verdict_codes, task_codes), strict=True
    )
    judge, call, verdict, task = _codes("agreement_arrays", dict(columns))
    judges, groups, kinds = _size(judge), _size(task), len(OUTCOMES)
    if judges * _size(call) > _DENSE:
        _, unit = np.unique(call // 2, return_inverse=True)
        call = unit * 2 + call % 2
    questions = _size(call) + _size(call) % 2
    answers = np.full((judges, questions), kinds, dtype=np.int8)
    answers[judge, call] = OUTCOME_OF[verdict]
    task_of = np.zeros(questions, dtype=np.int64)
    task_of[call] = task
    _refuse_faults("agreement_arrays", answers != kinds, judge * questions + call, task_of[call] != task)
    if content:
        answers, task_of = _CONTENT[answers[:, ::2], answers[:, 1::2]], task_of[::2]
    pairs = []
    for a, b in combinations(range(judges), 2):
        common = np.flatnonzero((answers[a] != kinds) & (answers[b] != kinds))
        place = (task_of[common] * kinds + answers[a, common]) * kinds + answers[b, common]
        tables = np.bincount(place, minlength=groups * kinds * kinds).reshape(groups, kinds, kinds)
        pairs.append(JointOutcomes(a, b, tables))
    return tuple(pairs)


def _codes(source: str, columns: Mapping[str, ArrayLike]) -> list[Ints]:
    """Check the columns and return them as equally long arrays of codes within their ranges."""
    top, arrays, problems = {"order": 1, "verdict": _NONE - 1}, [], []
    for name, values in columns.items():
        column = checks.array(source, f"{name}_codes", values)
        if column.ndim != 1 or not column.size or column.dtype.kind not in "iub":
            shape = f"got shape {column.shape}, {column.dtype}"
            checks.fail(source, f"{name}_codes", f"must be one axis of whole numbers ({shape})")
        low, high = int(column.min()), int(column.max())
        if low < 0 or high > top.get(name, high):
            limit = f"0..{top[name]}" if name in top else "at least 0"
            row = np.flatnonzero((column < 0) | (column > top.get(name, high)))[0]
            problem = f"codes must be {limit} (first that is not: {column[row]}, row {row})"
            problems.append(Problem(f"{name}_codes", problem))
        arrays.append(column.astype(np.int64, copy=False))
    sizes = sorted({column.size for column in arrays})
    if len(sizes) > 1:
        names = ", ".join(f"{name}_codes" for name in columns)
        problems.append(Problem(names, f"must be equally long (got {', '.join(map(str, sizes))})"))
    if problems:
        raise InputError(source, problems)
    return arrays


def _size(codes: Ints) -> int:
    return int(codes.max()) + 1


def _refuse_faults(source: str, filled: Bools, places: Ints, moved: Bools) -> None:
    """Raise InputError for repeated calls (if there are more rows than cells filled; only then are they searched for)
    and for pairs in two tasks."""

    def rows(mask: Bools) -> str:
        indices = np.flatnonzero(mask)
        more = f" and {indices.size - _NAMED} more" if indices.size > _NAMED else ""
        return f"rows {', '.join(map(str, indices[:_NAMED].tolist()))}{more}"

    faults = []
    if int(np.count_nonzero(filled)) != places.size:
        again = np.ones(places.size, dtype=bool)
        again[np.unique(places, return_index=True)[1]] = False
        problem = "asked before: the same judge, pair and order; fold trials into the pair code"
        faults.append(Problem(rows(again), problem))
    if moved.any():
        faults.append(Problem(rows(moved), "task contradicts another call of the same pair"))
    if faults:
        raise InputError(source, faults)


Words = NDArray[np.str_]

BASE: Final = "tie-allowed"
"""The prompt variant of the base arm."""

STRICT: Final = "strict"
"""The prompt variant that asks for a tie if only the wording differs."""

_CONDITIONS: Final[tuple[str, ...]] = get_args(PairCondition)


@dataclass(frozen=True, slots=True)
class CallTable:
    """The calls of one judge, one row per call, as codes.
    ``better`` is the slot (0 or 1) of the better text, -1 if neither is better, and 2 if the ground truth is a tie;
    ``pair`` numbers the pairs, ``order`` is 0 for u in slot 1. ``digest`` is a short hash of all calls, independent of
    their sequence."""

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
        """The prompt variants used, the base arm first."""
        return tuple(sorted(np.unique(self.prompt).tolist(), key=lambda name: (name != BASE, name)))

    def where(
        self, prompt: str, condition: str | None = None, variant: str | None = None, delta: float | None = None
    ) -> Ints:
        """Return the rows of an arm, optionally of one condition, variant and step only."""
        mask = self.prompt == prompt
        if condition is not None:
            mask &= self.condition == condition
        if variant is not None:
            mask &= self.variant == variant
        if delta is not None:
            mask &= self.delta == delta
        return np.flatnonzero(mask)

    def variants(self, rows: Ints) -> list[str]:
        """Return the non-empty variants among the rows."""
        return [name for name in np.unique(self.variant[rows]).tolist() if name]

    def steps(self, prompt: str) -> list[float]:
        """Return an arm's ladder steps in ascending order."""
        levels: list[float] = np.unique(self.delta[self.where(prompt, condition="ladder")]).tolist()
        return levels

    def by_task(self, rows: Ints, hit: Bools) -> Ints:
        """Count the hits and the misses [G, 2] among the given rows in each task."""
        places = self.task[rows] * 2 + np.where(hit, 0, 1)
        return np.bincount(places, minlength=2 * len(self.tasks)).reshape(-1, 2)

    def questions(self, rows: Ints) -> int:
        """Count the distinct questions (pair, order) among the rows; trials repeat a question."""
        return int(np.unique(self.pair[rows] * 2 + self.order[rows]).size)

    def pairs(self, rows: Ints) -> VerdictCounts:
        """Count the pairs among the rows by class, each trial of a pair separately."""
        units = self.pair[rows] * (self.trial.max(initial=0) + 1) + self.trial[rows]
        _, unit = np.unique(units, return_inverse=True)
        one = np.zeros(rows.size, dtype=np.int64)
        return decompose_arrays(one, unit, self.order[rows], self.verdict[rows], self.task[rows], tasks=len(self.tasks))


def call_table(calls: Sequence[PairCall]) -> CallTable:
    """Convert one judge's calls to columns."""
    problems = list(_problems(calls))
    if problems:
        raise InputError("pair calls", problems)
    digest = hashlib.sha256()
    for line in sorted(
        f"{c.judge}|{c.prompt}|{c.condition}|{c.variant}|{c.task}|{c.delta}|{c.better}|{key_of(c)}|{c.verdict}"
        for c in calls
    ):
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    pairs = {pair: k for k, pair in enumerate(sorted({call.pair for call in calls}))}
    tasks = {task: k for k, task in enumerate(sorted({call.task for call in calls}))}
    order = np.array([call.order == "vu" for call in calls], dtype=np.int64)
    better = np.array([{"u": 0, "v": 1, None: -1}[call.better] for call in calls])
    task, pair = [tasks[call.task] for call in calls], [pairs[call.pair] for call in calls]
    columns = (
        np.array([getattr(call, name) for call in calls]) for name in ("trial", "condition", "variant", "prompt")
    )
    trial, condition, variant, prompt = columns
    return CallTable(
        calls[0].judge, tuple(tasks), np.array(task), np.array(pair), order, trial,
        np.array([CODES[call.verdict] for call in calls]), np.where(better < 0, -1, better ^ order),
        np.array([call.delta for call in calls], dtype=np.float64), condition, variant,
        prompt, digest=digest.hexdigest()[:16],
    )  # fmt: skip


def key_of(call: PairCall) -> str:
    """Return the question of a call as one text: pair, order, prompt and trial."""
    return f"{call.pair}|{call.order}|{call.prompt}|{call.trial}"


OF_PAIR: Final = ("condition", "task", "delta", "better", "variant")
"""The fields that are equal in all calls about one pair."""


def _problems(calls: Sequence[PairCall]) -> Iterator[Problem]:
    """Yield every problem with the calls, in their sequence."""
    if not len(calls):
        yield Problem("", "no calls; at least one is needed")
        return
    judges = sorted({call.judge for call in calls})
    if len(judges) > 1:
        yield Problem("judge", f"a datasheet is of one judge (got {', '.join(judges)}); pass the calls of each alone")
    first, kind_of = dict[tuple[str, str], tuple[int, PairCall]](), attrgetter(*OF_PAIR)
    counts: Counter[tuple[str, str, str, str, int]] = Counter()
    for i, call in enumerate(calls):
        label, delta, better, two = (
            f"call {i + 1} (pair {call.pair})", call.delta, call.better, "a pair has two contents",
        )  # fmt: skip
        if call.condition not in _CONDITIONS:
            yield Problem(label, f"condition must be one of {', '.join(_CONDITIONS)} (got {call.condition!r})")
        if call.verdict not in CODES:
            yield Problem(label, f"verdict must be one of {', '.join(VERDICTS)} (got {call.verdict!r})")
        if call.order not in ("uv", "vu"):
            yield Problem(label, f"order must be uv or vu: {two} (got {call.order!r})")
        if better not in ("u", "v", None):
            yield Problem(label, f"better must be u, v or none: {two} (got {better!r})")
        if call.trial < 1:
            yield Problem(label, f"trial must be at least 1 (got {call.trial})")
        if not 0 <= delta < float("inf"):
            yield Problem(label, f"delta must be a number of at least 0 (got {delta})")
        elif (delta > 0) != (better is not None):
            problem = "a better text needs a delta above 0 and the reverse"
            yield Problem(label, f"{problem} (got delta {delta:g}, better {better!r})")
        elif (call.condition == "ladder") != (delta > 0):
            problem = "ladder pairs, and no others, have a delta above 0"
            yield Problem(label, f"{problem} (got {call.condition}, delta {delta:g})")
        asked = (call.judge, call.prompt, call.pair, call.order, call.trial)
        counts[asked] += 1
        if counts[asked] > 1:
            yield Problem(label, f"asked twice: prompt {call.prompt}, order {call.order}, trial {call.trial}")
        at, earlier = first.setdefault((call.judge, call.pair), (i, call))
        if earlier is not call and kind_of(call) != kind_of(earlier):
            for name, here, there in zip(OF_PAIR, kind_of(call), kind_of(earlier), strict=True):
                if here != there:
                    yield Problem(label, f"{name} {here!r} contradicts {there!r} in call {at + 1} of the same pair")
