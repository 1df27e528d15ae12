"""A checked log of pairwise verdicts in columns, and its calls as records."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from assaymark.errors import LISTED, InputError, Problem, UnknownNameError
from assaymark.importers.read import text_of, unpack
from assaymark.problems import table_problem
from assaymark.records import PairCall, PairCondition, SlotVerdict

if TYPE_CHECKING:
    from assaymark.importers.verdicts.importer import VerdictMap


# What is wrong with a log: every kind of problem gets its share of the lines that are shown, the rest is counted.


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
        """Raise everything that was found, if anything was."""
        ranked = sorted(
            (
                (place, kind, problem)
                for kind, kept in enumerate(self._kinds.values())
                for place, problem in enumerate(kept)
            ),
            key=lambda item: item[:2],
        )
        shown = [problem for _, _, problem in sorted(ranked[:LISTED], key=lambda item: (item[1], item[0]))]
        rest = len(ranked) - len(shown) + self._more
        if not shown:
            return
        raise InputError(source, shown, more=rest)


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


# From the bytes of a CSV file to columns of codes: a million rows in parts of a second, every broken row named.


Words: TypeAlias = Any
"""A pyarrow string array; the library ships no types."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """A log as text: its ``header``, and the bytes ``body`` that begin with it."""

    name: str
    body: memoryview
    header: tuple[str, ...]
    delimiter: str


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column of text: ``codes`` [n] are places in ``words``, which may hold one twice and words that never occur."""

    words: Words
    codes: Ints

    def at(self, rows: Ints) -> Coded:
        """Some of the rows."""
        return Coded(self.words, self.codes[rows])


def file_bytes(path: Path) -> bytes:
    """The bytes of a file."""
    try:
        return path.read_bytes()
    except OSError as exc:
        raise InputError(str(path), [f"cannot be read: {exc.strerror or exc}"]) from None


def open_sheet(name: str, data: bytes, delimiter: str | None = None) -> Sheet:
    """The header of a log, which may be gzip, begin with a byte order mark and use any of the usual delimiters.

    The delimiter is the one that cuts the header into most cells, unless it is given.
    """
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
    _refuse_other_encodings(name, body)
    header, found = max(
        ((_header(start, choice), choice) for choice in ((delimiter,) if delimiter else _DELIMITERS)),
        key=lambda item: len(item[0]),
    )
    return Sheet(name, body, header, found)


def _refuse_other_encodings(name: str, body: memoryview) -> None:
    """Raise bytes that are no UTF-8; the fast reader notices them only in the columns that are read."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(body), _DECODED):
            decoder.decode(body[start : start + _DECODED])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        text_of(name, bytes(body))  # names the line


def _header(start: bytes, delimiter: str) -> tuple[str, ...]:
    """The first row of a CSV text."""
    text = start.decode("utf-8", "replace")
    return tuple(next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), ()))


def read_columns(sheet: Sheet, places: Collection[int]) -> dict[int, Coded]:
    """Some columns of a log, by their places in the header."""
    quoted = _QUOTE in np.frombuffer(sheet.body, dtype=np.uint8)
    if quoted:
        _refuse_loose_quotes(sheet)
    broken: list[tuple[int | None, int]] = []
    table = _parse(sheet, places, broken, quoted=quoted, threads=True)
    if broken:
        # Rows have numbers only when they are read in order.
        broken.clear()
        _parse(sheet, places, broken, quoted=quoted, threads=False)
        found = Findings()
        for row, cells in broken:
            found.add("cells", f"row {row}", f"has {cells} cells (the header has {len(sheet.header)})")
        found.refuse(sheet.name)
    if not table.num_rows:
        raise InputError(sheet.name, ["has a header and no rows"])
    return {place: _coded(table.column(str(place))) for place in places}


def _parse(
    sheet: Sheet, places: Iterable[int], broken: list[tuple[int | None, int]], *, quoted: bool, threads: bool
) -> Any:
    """The columns as an Arrow table of dictionaries; notes number and cells of every row of the wrong length."""

    def note(row: Any) -> str:
        broken.append((row.number, row.actual_columns))
        return "skip"

    names = [str(place) for place in range(len(sheet.header))]
    wanted = [str(place) for place in sorted(places)]
    kind = pa.dictionary(pa.int32(), pa.string())
    # A block holds a row at least; only where the usual size does not, one block takes the whole file.
    for size in (1 << 20, min(len(sheet.body) + 1, _LARGEST_BLOCK)):
        try:
            return pacsv.read_csv(
                pa.BufferReader(pa.py_buffer(sheet.body)),
                pacsv.ReadOptions(column_names=names, skip_rows_after_names=1, use_threads=threads, block_size=size),
                pacsv.ParseOptions(delimiter=sheet.delimiter, newlines_in_values=quoted, invalid_row_handler=note),
                pacsv.ConvertOptions(column_types=dict.fromkeys(wanted, kind), include_columns=wanted),
            )
        except pa.ArrowInvalid as exc:
            if "straddling" in str(exc) and size < len(sheet.body):
                broken.clear()
                continue
            raise InputError(sheet.name, [table_problem(exc)]) from None
    raise AssertionError


def _coded(column: Any) -> Coded:
    """A column of dictionary chunks as one."""
    whole = column.unify_dictionaries().combine_chunks()
    return Coded(whole.dictionary, whole.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def _refuse_loose_quotes(sheet: Sheet) -> None:
    """Raise a quote that opens a cell and never closes: everything up to the next quote would be one cell.

    The fast reader takes such a cell as it is. Where every quote opens or closes a cell, nothing can be lost; only
    where one does not, the slow and strict reader of the standard library looks at every row.
    """
    text = np.frombuffer(sheet.body, dtype=np.uint8)
    places = np.flatnonzero(text == _QUOTE)
    edges = np.frombuffer(f'{sheet.delimiter}\r\n"'.encode(), dtype=np.uint8)
    opens, closes = places[0::2], places[1::2]
    before = text[np.maximum(opens - 1, 0)]
    after = text[np.minimum(closes + 1, text.size - 1)]
    tidy = (np.isin(before, edges) | (opens == 0)).all() and (np.isin(after, edges) | (closes == text.size - 1)).all()
    if tidy and places.size % 2 == 0:
        return
    rows = 0
    stream = io.TextIOWrapper(io.BytesIO(sheet.body), encoding="utf-8", errors="replace", newline="")
    try:
        for row in csv.reader(stream, delimiter=sheet.delimiter, strict=True):
            rows += bool(row)
    except csv.Error as exc:
        said = "a quote is opened here and never closed" if "unexpected end" in str(exc) else str(exc)
        raise InputError(sheet.name, [Problem(f"row {rows + 1}", f"not CSV: {said}")]) from None


# --- names and codes --------------------------------------------------------------------------------------------------


def sorted_codes(columns: Sequence[Coded]) -> tuple[tuple[str, ...], list[Ints]]:
    """The distinct words of some columns, trimmed and sorted, and each column as places among them.

    >>> names, (codes,) = sorted_codes([Coded(pa.array(["b", " a", "never", "a"]), np.array([0, 1, 3]))])
    >>> names, codes.tolist()
    (('a', 'b'), [1, 0, 0])
    """
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
    """The distinct numbers in a column in ascending order, and the place of each row's number among them.

    >>> [part.tolist() for part in dense(np.array([70, 3, 70]))]
    [[3, 70], [1, 0, 1]]
    """
    if not codes.size:
        return codes, codes
    encoded = pa.array(codes).dictionary_encode()  # hashing is several times as fast as sorting all rows
    numbers = encoded.dictionary.to_numpy()
    order = np.argsort(numbers)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return numbers[order], rank[encoded.indices.to_numpy()]


def joined(columns: Sequence[tuple[Ints, int]]) -> Ints:
    """Several codes as one that sorts as they do, the first column counting most; each comes with its number of codes.

    >>> joined([(np.array([0, 1]), 2), (np.array([2, 0]), 3)]).tolist()
    [2, 3]
    """
    whole, room = columns[0]
    for codes, size in columns[1:]:
        if room > _LARGEST_CODE // max(size, 1):
            numbers, whole = dense(whole)
            room = numbers.size
        whole = whole * size + codes
        room *= size
    return whole


# What the cells of a verdict log mean: names, repetitions and verdicts as codes; what means nothing is named.


_TRIAL: Final = re.compile(r"(\d{1,9})(?:\.0*)?", re.ASCII)
# Written right to left, or over other text: a name could look like another one on a page.
_TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNPRINTED: Final = ("Cc", "Zl", "Zp")
_CLASH: Final = -2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Calls:
    """The rows that could be read, in their sequence in the file: names, and one code a row in each column."""

    judges: tuple[str, ...]
    questions: tuple[str, ...]
    contents: tuple[str, ...]
    trials: tuple[int, ...]
    ids: tuple[str, ...] | None
    labels: Mapping[str, SlotVerdict]
    judge: Ints
    question: Ints
    slot_1: Ints
    slot_2: Ints
    trial: Ints
    verdict: Ints
    pair: Ints | None
    row: Ints


def coded_calls(columns: Mapping[str, Coded], row: Ints, mapping: VerdictMap, found: Findings) -> Calls:
    """Our columns of a log as codes; rows with a cell that means nothing go to ``found`` and are left out.

    Without a column for the question, a pair is one.
    """
    judges, (judge,) = sorted_codes([columns["judge"]])
    questions, (question,) = sorted_codes([columns["question" if "question" in columns else "pair"]])
    contents, (slot_1, slot_2) = sorted_codes([columns["slot_1"], columns["slot_2"]])
    ids, (pair,) = sorted_codes([columns["pair"]]) if "pair" in columns else (None, [None])
    trials, trial = _trials(columns.get("trial"), row, found)
    bad = trial < 0
    for field, names, codes in (
        ("judge", judges, judge),
        ("question", questions, question),
        ("slot_1", contents, slot_1),
        ("slot_2", contents, slot_2),
        ("pair", ids, pair),
    ):
        if field in columns and names and codes is not None:
            bad |= _empty(field, names, codes, row, found)
    _check_judges(judges, judge, row, found)
    same = (slot_1 == slot_2) & ~bad
    found.rows(
        "one content",
        same,
        lambda k: (f"row {row[k]}", f"has {contents[slot_1[k]]!r:.60} in both slots; a pair needs two contents"),
    )
    verdict, labels = _verdicts(columns["verdict"], (slot_1, slot_2), contents, mapping, row, found)
    good = np.flatnonzero(~bad & ~same & (verdict >= 0))
    return Calls(
        judges=judges,
        questions=questions,
        contents=contents,
        trials=trials,
        ids=ids,
        labels=labels,
        judge=judge[good],
        question=question[good],
        slot_1=slot_1[good],
        slot_2=slot_2[good],
        trial=trial[good],
        verdict=verdict[good],
        pair=None if pair is None else pair[good],
        row=row[good],
    )


def _empty(field: str, names: tuple[str, ...], codes: Ints, row: Ints, found: Findings) -> Bools:
    """The rows whose cell is empty; the empty name sorts before all others."""
    bad: Bools = codes == (0 if names[0] == "" else -1)
    found.rows(f"empty {field}", bad, lambda k: (f"row {row[k]}, {field}", "is empty; a value is needed"))
    return bad


def _check_judges(judges: tuple[str, ...], judge: Ints, row: Ints, found: Findings) -> None:
    """Names of judges are printed on screens and pages, so they may not hold what is no character."""
    for code, name in enumerate(judges):
        wrong = next((c for c in name if unicodedata.category(c) in _UNPRINTED or c in _TURNING), None)
        if wrong is not None:
            first = row[np.argmax(judge == code)]
            what = f"the name of a judge may hold no control characters (got {name!r:.60}, with {ord(wrong):#04x})"
            found.add("judge", f"row {first}, judge", what)


def _trials(column: Coded | None, row: Ints, found: Findings) -> tuple[tuple[int, ...], Ints]:
    """The numbers of the repetitions, and the place of each row's among them; -1 where it is no number."""
    if column is None:
        return (1,), np.zeros(row.size, dtype=np.int64)
    words, (codes,) = sorted_codes([column])
    read = [_TRIAL.fullmatch(word) for word in words]
    numbers = tuple(sorted({int(match[1]) for match in read if match}))
    place = {number: k for k, number in enumerate(numbers)}
    trial = np.array([place[int(match[1])] if match else -1 for match in read], dtype=np.int64)[codes]
    what = "must be a whole number from 0 to 999999999"
    found.rows("trial", trial < 0, lambda k: (f"row {row[k]}, trial", f"{what} (got {words[codes[k]]!r:.60})"))
    return numbers, trial


def _verdicts(
    column: Coded, slots: tuple[Ints, Ints], contents: tuple[str, ...], mapping: VerdictMap, row: Ints, found: Findings
) -> tuple[Ints, Mapping[str, SlotVerdict]]:
    """The verdict code of each row, below 0 where there is none, and the words that were read as labels."""
    words, (codes,) = sorted_codes([column])
    labels = {word: label for word in words if (label := mapping.label(word)) is not None}
    by_label = np.array([VERDICTS.index(labels[word]) if word in labels else -1 for word in words], dtype=np.int64)
    by_label = by_label[codes]
    verdict = by_label
    if mapping.verdict_names != "slots":
        place = {name: k for k, name in enumerate(contents)}
        content = np.array([-1 if word in mapping.labels else place.get(word, -1) for word in words], dtype=np.int64)
        chosen = content[codes]
        by_content = np.where(chosen == slots[0], 0, np.where(chosen == slots[1], 1, -1))
        verdict = np.where(by_content >= 0, by_content, by_label)
        verdict = np.where((by_label >= 0) & (by_content >= 0) & (by_label != by_content), _CLASH, verdict)
    read_as_label = set(np.unique(codes[(by_label >= 0) & (verdict == by_label)]).tolist())
    _note_unknown(words, codes, verdict, (contents, *slots), row, found)
    return verdict, {word: labels[word] for k, word in enumerate(words) if k in read_as_label}


def _note_unknown(
    words: tuple[str, ...],
    codes: Ints,
    verdict: Ints,
    shown: tuple[tuple[str, ...], Ints, Ints],
    row: Ints,
    found: Findings,
) -> None:
    """One problem for each word that is no verdict, at its first row and with the number of its rows."""
    contents, slot_1, slot_2 = shown
    for state in (-1, _CLASH):
        rows = np.flatnonzero(verdict == state)
        unknown, first, counts = np.unique(codes[rows], return_index=True, return_counts=True)
        for k in np.argsort(first).tolist():
            at = rows[first[k]]
            there = f"{contents[slot_1[at]]!r:.40}, {contents[slot_2[at]]!r:.40}"
            word = f"{words[unknown[k]]!r:.60}"
            many = f" in {counts[k]} rows" if counts[k] > 1 else ""
            if state == _CLASH:
                what = (
                    f"{word}{many} is a label and also a content of its row ({there}) in another slot; "
                    'say in the map: verdict_names = "contents" or "slots"'
                )
            else:
                what = (
                    f"{word}{many} is no verdict; known are {', '.join(VERDICTS)}, A, B, their usual spellings, and "
                    f"the contents of the row ({there}); map other words under labels"
                )
            found.add("clash" if state == _CLASH else "verdict", f"row {row[at]}, verdict", what)
