"""A checked log of pairwise verdicts in columns, and a CSV file as columns of codes: a million rows in a moment."""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from assaymark.errors import LISTED, InputError, Problem, UnknownNameError
from assaymark.importers.read import text_of
from assaymark.problems import table_problem
from assaymark.records import PairCall, PairCondition, SlotVerdict
from assaymark.rows import unpack

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Findings:
    """Collects problems by kind, so that a thousand of one kind do not hide the only one of another."""

    def __init__(self) -> None:
        self._kinds: dict[str, list[Problem]] = {}
        self._more = 0

    def add(self, kind: str, where: str, what: str) -> None:
        """One problem of a kind; of each kind the first `LISTED` are kept and the rest is counted."""
        kept = self._kinds.setdefault(kind, [])
        if len(kept) < LISTED:
            kept.append(Problem(where, what))
        else:
            self._more += 1

    def rows(self, kind: str, bad: Bools, describe: Callable[[int], tuple[str, str]]) -> None:
        """One problem for each place of ``bad`` [n]; ``describe`` makes where and what, and is called for few."""
        places = np.flatnonzero(bad)
        for place in places[:LISTED].tolist():
            self.add(kind, *describe(place))
        self._more += max(0, places.size - LISTED)

    def refuse(self, source: str) -> None:
        """Raise everything that was found, if anything was: of each kind its first problems, in turn."""
        kinds = enumerate(self._kinds.values())
        ranked = [(place, kind, problem) for kind, kept in kinds for place, problem in enumerate(kept)]
        ranked.sort(key=lambda item: item[:2])
        if ranked:
            shown = sorted(ranked[:LISTED], key=lambda item: (item[1], item[0]))
            rest = len(ranked) - len(shown) + self._more
            raise InputError(source, [problem for _, _, problem in shown], more=rest)


VERDICTS: Final[tuple[SlotVerdict, ...]] = get_args(SlotVerdict)
"""The slot verdicts in the order of their codes 0..4."""

CALLS_CONDITION: Final[PairCondition] = "different_subset"
"""The condition under which the calls of a log are recorded. No log guarantees that its two texts are equally good."""

Seen = Literal["all", "some", "none"]


@dataclass(frozen=True, slots=True)
class OrderCounts:
    """How many pairs of a judge were asked in ``both`` orders, and how many in ``one`` only; each trial counts."""

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
    """The calls of one or more judges on n rows, sorted by judge, pair, trial and order; codes are places among names.

    Everything but ``row`` and ``duplicates`` is the same whatever the sequence of the rows in the file, and so is
    ``digest`` (sixteen hex digits over names, codes and verdicts). J ``judges``, Q ``questions`` (what inference
    resamples), C ``contents`` (what was compared), T ``trials`` (the numbers of the repetitions), P pairs: ``pair_ids``
    if the file has them (otherwise a pair is a question and two contents), ``pair_question`` [P], ``pair_contents`` [P,
    2] (u, v; u first by name). ``judge``, ``pair``, ``trial``, ``verdict`` [n] are codes (a verdict is a place in
    `VERDICTS` and names a slot); ``order`` [n] is 0 where u was in slot 1; ``row`` [n] is the place in the file, its
    header being row 1. ``both`` and ``single`` [J] count pairs that a judge was asked in both orders and in one.
    ``rows``, ``filtered``, ``duplicates`` count rows of the file, those left out by ``filter``, and those that repeat a
    call with the same verdict. ``columns`` is the column read for each field, ``labels`` the words read as a verdict
    whatever their row held. Which content is better is not known (``condition``), so a preference is not an error.
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

    ``task`` is the question. ``delta`` is 0 and ``better`` None: neither is known. The condition is `CALLS_CONDITION`;
    a share measured on these calls is about all pairs of the log, not about equal ones.
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


BLANKS: Final = " \t\n\v\f\r"
"""What is dropped around a cell."""

HEADER: Final = 1
"""Rows are numbered as a spreadsheet does, the header being row 1; lines without any cell are not counted."""

_BOM: Final = b"\xef\xbb\xbf"
_DELIMITERS: Final = (",", ";", "\t", "|")
_SNIFFED: Final = 1 << 16
_DECODED: Final = 1 << 24
_LARGEST_BLOCK: Final = (1 << 31) - 1
_QUOTE: Final = 0x22
_LARGEST_CODE: Final = (1 << 63) - 1


class Coded(NamedTuple):
    """A column of text: ``codes`` [n] are places in ``words`` (a pyarrow array), which may repeat or never occur."""

    words: Any
    codes: Ints


class CsvLog:
    """A log as text: its ``header``, and the bytes ``body`` that begin with it.

    It may be gzip, begin with a byte order mark and use any of the usual delimiters: unless it is given, the one that
    cuts the header into most cells.
    """

    def __init__(self, name: str, source: bytes | Path, delimiter: str | None = None) -> None:
        self.name = name
        try:
            data = source if isinstance(source, bytes) else source.read_bytes()
        except OSError as exc:
            raise InputError(str(source), [f"cannot be read: {exc.strerror or exc}"]) from None
        body = memoryview(unpack(name, data))
        start = bytes(body[:_SNIFFED])
        blank = len(start) - len(start.removeprefix(_BOM).lstrip(b"\r\n"))
        if not start.removeprefix(_BOM).strip():
            raise InputError(name, ["is empty; a header row is needed"])
        body, start = body[blank:], start[blank:]
        if len(body) == len(start):  # the fast reader wants an end of line even behind a header without rows
            body = memoryview(start + b"\n")
        if start[:4] == b"PAR1" or start[:1] in (b"{", b"["):
            kind = "Parquet" if start[:4] == b"PAR1" else "JSON"
            raise InputError(name, [f"is {kind}; write the log as CSV, one row a verdict"])
        # the fast reader notices bytes that are no UTF-8 only in the columns that are read
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for at in range(0, len(body), _DECODED):
                decoder.decode(body[at : at + _DECODED])
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            text_of(name, bytes(body))  # names the line
        text = start.decode("utf-8", "replace")
        self.body = body
        self.header, self.delimiter = max(
            (
                (tuple(next(csv.reader(io.StringIO(text, newline=""), delimiter=choice), ())), choice)
                for choice in ((delimiter,) if delimiter else _DELIMITERS)
            ),
            key=lambda item: len(item[0]),
        )

    def columns(self, places: Iterable[int]) -> dict[int, Coded]:
        """Some columns, by their places in the header."""
        places = sorted(places)
        quoted = _QUOTE in np.frombuffer(self.body, dtype=np.uint8)
        if quoted:
            self._refuse_loose_quotes()
        broken: list[tuple[int | None, int]] = []
        table = self._parse(places, broken, quoted=quoted, threads=True)
        if broken:
            # Rows have numbers only when they are read in order.
            broken.clear()
            self._parse(places, broken, quoted=quoted, threads=False)
            found = Findings()
            for row, cells in broken:
                found.add("cells", f"row {row}", f"has {cells} cells (the header has {len(self.header)})")
            found.refuse(self.name)
        if not table.num_rows:
            raise InputError(self.name, ["has a header and no rows"])
        coded = {}
        for place in places:
            whole = table.column(str(place)).unify_dictionaries().combine_chunks()
            codes = whole.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            coded[place] = Coded(whole.dictionary, codes)
        return coded

    def _parse(
        self, places: Sequence[int], broken: list[tuple[int | None, int]], *, quoted: bool, threads: bool
    ) -> Any:
        """The columns as an Arrow table of dictionaries; notes number and cells of every row of the wrong length."""

        def note(row: Any) -> str:
            broken.append((row.number, row.actual_columns))
            return "skip"

        names = [str(place) for place in range(len(self.header))]
        wanted = [str(place) for place in places]
        kind = pa.dictionary(pa.int32(), pa.string())
        # A block holds a row at least; only where the usual size does not, one block takes the whole file.
        for size in (1 << 20, min(len(self.body) + 1, _LARGEST_BLOCK)):
            try:
                return pacsv.read_csv(
                    pa.BufferReader(pa.py_buffer(self.body)),
                    pacsv.ReadOptions(
                        column_names=names, skip_rows_after_names=1, use_threads=threads, block_size=size
                    ),
                    pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=quoted, invalid_row_handler=note),
                    pacsv.ConvertOptions(column_types=dict.fromkeys(wanted, kind), include_columns=wanted),
                )
            except pa.ArrowInvalid as exc:
                if "straddling" in str(exc) and size < len(self.body):
                    broken.clear()
                    continue
                raise InputError(self.name, [table_problem(exc)]) from None
        raise AssertionError

    def _refuse_loose_quotes(self) -> None:
        """Raise a quote that opens a cell and never closes: everything up to the next quote would be one cell.

        The fast reader takes such a cell as it is. Where every quote opens or closes a cell, nothing can be lost; only
        where one does not, the slow and strict reader of the standard library looks at every row.
        """
        text = np.frombuffer(self.body, dtype=np.uint8)
        places = np.flatnonzero(text == _QUOTE)
        edges = np.frombuffer(f'{self.delimiter}\r\n"'.encode(), dtype=np.uint8)
        opens, closes = places[0::2], places[1::2]
        before = text[np.maximum(opens - 1, 0)]
        after = text[np.minimum(closes + 1, text.size - 1)]
        tidy = (np.isin(before, edges) | (opens == 0)).all() and (
            np.isin(after, edges) | (closes == text.size - 1)
        ).all()
        if tidy and places.size % 2 == 0:
            return
        rows = 0
        stream = io.TextIOWrapper(io.BytesIO(self.body), encoding="utf-8", errors="replace", newline="")
        try:
            for row in csv.reader(stream, delimiter=self.delimiter, strict=True):
                rows += bool(row)
        except csv.Error as exc:
            said = "a quote is opened here and never closed" if "unexpected end" in str(exc) else str(exc)
            raise InputError(self.name, [Problem(f"row {rows + 1}", f"not CSV: {said}")]) from None


def sorted_codes(columns: Sequence[Coded]) -> tuple[tuple[str, ...], list[Ints]]:
    """The distinct words of some columns, trimmed and sorted, and each column as places among them."""
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
    """The distinct numbers in a column in ascending order, and the place of each row's number among them."""
    if not codes.size:
        return codes, codes
    encoded = pa.array(codes).dictionary_encode()  # hashing is several times as fast as sorting all rows
    numbers = encoded.dictionary.to_numpy()
    order = np.argsort(numbers)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return numbers[order], rank[encoded.indices.to_numpy()]


def joined(columns: Sequence[tuple[Ints, int]]) -> Ints:
    """Several codes, each with its number of codes, as one that sorts as they do, the first column counting most."""
    whole, room = columns[0]
    for codes, size in columns[1:]:
        if room > _LARGEST_CODE // max(size, 1):
            numbers, whole = dense(whole)
            room = numbers.size
        whole = whole * size + codes
        room *= size
    return whole
