"""A validated log of pairwise verdicts, stored as integer code columns for speed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assaymark.errors import UnknownNameError
from assaymark.importers.roles import Coded, Ints
from assaymark.records import JSON, PairCall, PairCondition, SlotVerdict

VERDICTS: Final[tuple[SlotVerdict, ...]] = get_args(SlotVerdict)
"""Slot verdicts in the order of their codes 0..4."""

CALLS_CONDITION: Final[PairCondition] = "different_subset"
"""Condition of the calls of a log. No log guarantees that its two texts are equally good."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class VerdictLog:
    """The calls of one or more judges as n rows, sorted by judge, pair, trial and order; codes are indices into names.

    Everything except ``line`` and ``duplicates`` is independent of the row order in the file, including ``digest``
    (sixteen hex digits over names, codes and verdicts). There are J ``judges``, Q ``questions`` (the clusters of
    inference), C ``contents`` (the texts compared), T ``trials`` (numbers of the repetitions) and P pairs: ``pair_ids``
    if the file has them (otherwise a pair is a question and two contents), ``pair_question`` [P], ``pair_contents`` [P,
    2] (u, v; u first by name). ``judge``, ``pair``, ``trial`` and ``verdict`` [n] are codes (a verdict is an index into
    `VERDICTS` and names a slot); ``order`` [n] is 0 if u was in slot 1; ``line`` [n] is the line in the file, from 1.
    ``pair_truth`` [P] is the better content (0: u, 1: v, 2: tie, -1: unknown) from a column.
    ``nulls`` [m, 6] are judge, question, verdict, pair, order and trial of the null calls, with the same text in both
    slots; their pairs are numbered apart. ``both`` and ``single`` [J] count the other pairs that a judge saw in both
    orders and in one.
    ``rows``, ``filtered`` and ``duplicates`` count the rows of the file, those left out by ``filter``, and repeated
    calls with the same verdict. ``columns`` is the column of each field, ``labels`` are the words read as verdicts
    independent of their row, ``reading`` is a note on what they name and the effect if they name the other. ``said``
    are notes on skipped rows, ``sha256`` and ``format`` are those of the file, ``filters`` the selection of rows.
    Without a column for the truth a preference is not an error (``condition``).
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
    line: Ints
    both: Ints
    single: Ints
    rows: int
    filtered: int
    duplicates: int
    columns: Mapping[str, str]
    labels: Mapping[str, SlotVerdict]
    pair_truth: Ints
    nulls: Ints
    reading: str
    said: tuple[str, ...]
    sha256: str
    format: str
    filters: Mapping[str, tuple[str, ...]]
    condition: Literal["log"] = "log"

    @property
    def provenance(self) -> dict[str, JSON]:
        """Source of the calls and the settings with which they were read, as JSON."""
        return {
            "file": self.source, "sha256": self.sha256, "format": self.format, "rows": self.rows,
            "filtered": self.filtered, "duplicates": self.duplicates, "columns": dict(self.columns),
            "filters": {name: list(values) for name, values in self.filters.items()}, "reading": self.reading,
            "said": list(self.said),
        }  # fmt: skip

    def __len__(self) -> int:
        """Return the number of calls."""
        return self.judge.size

    @property
    def question(self) -> Ints:
        """The question of each call [n]."""
        return self.pair_question[self.pair]

    @property
    def trial_of_pair(self) -> Ints:
        """Code of pair and trial [n]; the two orders with equal codes are compared."""
        return self.pair * len(self.trials) + self.trial

    @property
    def call(self) -> Ints:
        """Code of pair, trial and order [n]; two judges with equal codes answered the same call."""
        return self.trial_of_pair * 2 + self.order

    @property
    def chosen(self) -> Ints:
        """The preferred content of each call [n], -1 if none."""
        content = self.pair_contents[self.pair, np.minimum(self.verdict, 1) ^ self.order]
        return np.where(self.verdict < 2, content, -1)

    def pair_name(self, pair: int) -> str:
        """Return the pair's id in the file, or question and contents as a JSON list, which is unique."""
        if self.pair_ids is not None:
            return self.pair_ids[pair]
        u, v = self.pair_contents[pair].tolist()
        names = [self.questions[self.pair_question[pair]], self.contents[u], self.contents[v]]
        return json.dumps(names, ensure_ascii=False)


def to_pair_calls(log: VerdictLog, judge: str) -> list[PairCall]:
    """Convert one judge's calls to records, each of about a kilobyte, so only for small logs."""
    if judge not in log.judges:
        raise UnknownNameError("judge", judge, log.judges)
    rows = np.flatnonzero(log.judge == log.judges.index(judge))
    names = {pair: log.pair_name(pair) for pair in np.unique(log.pair[rows]).tolist()}
    columns = (column[rows].tolist() for column in (log.pair, log.question, log.order, log.verdict, log.trial))
    return [
        PairCall(pair=names[pair], condition=CALLS_CONDITION, task=log.questions[question],
                 order="vu" if order else "uv", verdict=VERDICTS[verdict], judge=judge, trial=log.trials[trial])
        for pair, question, order, verdict, trial in zip(*columns, strict=True)
    ]  # fmt: skip


BLANKS: Final = " \t\n\v\f\r"
"""Whitespace that is trimmed from cells."""

_LARGEST_CODE: Final = (1 << 63) - 1


def sorted_codes(columns: Sequence[Coded]) -> tuple[tuple[str, ...], list[Ints]]:
    """Return the distinct trimmed words of some columns, sorted, and each column as indices into them."""
    words = pc.ascii_trim(pa.concat_arrays([column.words for column in columns]), BLANKS)
    used = np.zeros(len(words), dtype=bool)
    starts = np.cumsum([0, *(len(column.words) for column in columns)])
    for start, column in zip(starts, columns, strict=False):
        used[start + column.codes] = True
    names = pc.unique(words.filter(pa.array(used)))
    names = names.take(pc.sort_indices(names))
    place = pc.index_in(words, value_set=names).fill_null(-1).to_numpy().astype(np.int64)
    return tuple(names.to_pylist()), [
        place[start + column.codes] for start, column in zip(starts, columns, strict=False)
    ]


def dense(codes: Ints) -> tuple[Ints, Ints]:
    """Return the distinct numbers of a column in ascending order, and each row's index into them."""
    if not codes.size:
        return codes, codes
    encoded = pa.array(codes).dictionary_encode()  # hashing is several times as fast as sorting all rows
    numbers = encoded.dictionary.to_numpy()
    order = np.argsort(numbers)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return numbers[order], rank[encoded.indices.to_numpy()]


def combine_codes(columns: Sequence[tuple[Ints, int]]) -> Ints:
    """Combine code columns, given with their sizes, into one column with the same lexicographic order."""
    whole, room = columns[0]
    for codes, size in columns[1:]:
        if room > _LARGEST_CODE // max(size, 1):
            numbers, whole = dense(whole)
            room = numbers.size
        whole = whole * size + codes
        room *= size
    return whole
