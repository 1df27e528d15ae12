"""A checked log of pairwise verdicts in columns, and its calls as records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from assaymark.errors import UnknownNameError
from assaymark.importers.verdicts.findings import Ints
from assaymark.records import PairCall, PairCondition, SlotVerdict

VERDICTS: Final[tuple[SlotVerdict, ...]] = get_args(SlotVerdict)
"""The slot verdicts in the order of their codes 0..4."""

CALLS_CONDITION: Final[PairCondition] = "different_subset"
"""The condition under which the calls of a log are recorded. No log guarantees that its two texts are equally good."""

Seen = Literal["all", "some", "none"]


@dataclass(frozen=True, slots=True)
class OrderCounts:
    """How many pairs of a judge were asked in ``both`` orders, and how many in ``one`` only; each trial counts.

    >>> OrderCounts(both=2, one=1).seen
    'some'
    """

    both: int
    one: int

    @property
    def seen(self) -> Seen:
        """Whether all pairs, some or none have both orders."""
        if not self.both:
            return "none"
        return "some" if self.one else "all"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class VerdictLog:
    """The calls of one or more judges on n rows, sorted by judge, pair, trial and order.

    Everything but ``row`` and ``duplicates`` is the same whatever the sequence of the rows in the file, and so is
    ``digest``. Names are sorted; a code is a place among them.

    Attributes
    ----------
    source, digest
        Name of the file; sixteen hex digits over names, codes and verdicts.
    judges, questions, contents : tuples of names
        J judges, Q questions (what inference resamples), C contents (models, or whatever was compared).
    trials : tuple of int
        The T numbers that the repetitions have in the file; ``(1,)`` without such a column.
    pair_ids : tuple of str or None
        Names of the P pairs, if the file has them. Otherwise a pair is a question and two contents.
    pair_question [P], pair_contents [P, 2] : int
        Question and contents (u, v) of each pair; u is the first of the two names in alphabetical order.
    judge, pair, trial, verdict [n] : int
        Codes; a verdict is a place in `VERDICTS` and names a slot.
    order [n] : int
        0 where u stood in slot 1, 1 where v did.
    row [n] : int
        Where the call stands in the file: the header is row 1, empty lines are not counted.
    both, single [J] : int
        Pairs (each trial by itself) that a judge was asked in both orders, and in one only.
    rows, filtered, duplicates : int
        Rows of the file; those left out by ``filter``; those left out because they repeat a call with the same verdict.
    columns : mapping
        The column that was read for each of our fields.
    labels : mapping
        The words that were read as a verdict whatever their row held, and what each was taken for.
    condition
        Always ``"log"``: nothing is known about which content is better, so a preference is not an error.
    """

    source: str
    digest: str
    judges: tuple[str, ...]
    questions: tuple[str, ...]
    contents: tuple[str, ...]
    trials: tuple[int, ...]
    pair_ids: tuple[str, ...] | None
    pair_question: Ints
    pair_contents: Ints
    judge: Ints
    pair: Ints
    trial: Ints
    order: Ints
    verdict: Ints
    row: Ints
    both: Ints
    single: Ints
    rows: int
    filtered: int
    duplicates: int
    columns: Mapping[str, str]
    labels: Mapping[str, SlotVerdict]
    condition: Literal["log"] = "log"

    def __len__(self) -> int:
        """Calls."""
        return self.judge.size

    @property
    def question(self) -> Ints:
        """The question of each call [n]."""
        return self.pair_question[self.pair]

    @property
    def trial_of_pair(self) -> Ints:
        """Pair and trial in one code [n]: what two orders are compared within."""
        return self.pair * len(self.trials) + self.trial

    @property
    def call(self) -> Ints:
        """Pair, trial and order in one code [n]: two judges answered the same call if it is equal."""
        return self.trial_of_pair * 2 + self.order

    @property
    def slot_contents(self) -> Ints:
        """The contents that stood in slots 1 and 2 [n, 2]."""
        both = self.pair_contents[self.pair]
        return np.where(self.order[:, None] == 0, both, both[:, ::-1])

    @property
    def chosen(self) -> Ints:
        """The content that each call prefers [n], -1 where it prefers none."""
        slot = np.minimum(self.verdict, 1)
        return np.where(self.verdict < 2, self.slot_contents[np.arange(len(self)), slot], -1)

    @property
    def orders(self) -> Mapping[str, OrderCounts]:
        """For each judge, how many pairs have both orders."""
        counts = zip(self.judges, self.both.tolist(), self.single.tolist(), strict=True)
        return {judge: OrderCounts(both, one) for judge, both, one in counts}

    @property
    def both_orders(self) -> Seen:
        """Whether all pairs, some or none were asked in both orders; without any, position cannot be told from text."""
        return OrderCounts(int(self.both.sum()), int(self.single.sum())).seen

    def pair_name(self, pair: int) -> str:
        """The pair's id in the file, or question and contents as a JSON list: no two pairs share it."""
        if self.pair_ids is not None:
            return self.pair_ids[pair]
        u, v = self.pair_contents[pair].tolist()
        names = [self.questions[self.pair_question[pair]], self.contents[u], self.contents[v]]
        return json.dumps(names, ensure_ascii=False)


def to_pair_calls(log: VerdictLog, judge: str) -> list[PairCall]:
    """One judge's calls as records, for logs small enough to hold them: about a microsecond and a kilobyte each.

    ``task`` is the question. ``delta`` is 0 and ``better`` None: neither is known. The condition is
    `CALLS_CONDITION`; a share measured on these calls is about all pairs of the log, not about equal ones.

    Raises
    ------
    UnknownNameError
        The log has no such judge.
    """
    if judge not in log.judges:
        raise UnknownNameError("judge", judge, log.judges)
    rows = np.flatnonzero(log.judge == log.judges.index(judge))
    names = {pair: log.pair_name(pair) for pair in np.unique(log.pair[rows]).tolist()}
    return [
        PairCall(
            pair=names[pair],
            condition=CALLS_CONDITION,
            task=log.questions[question],
            order="vu" if order else "uv",
            verdict=VERDICTS[verdict],
            judge=judge,
            trial=log.trials[trial],
        )
        for pair, question, order, verdict, trial in zip(
            log.pair[rows].tolist(),
            log.question[rows].tolist(),
            log.order[rows].tolist(),
            log.verdict[rows].tolist(),
            log.trial[rows].tolist(),
            strict=True,
        )
    ]
