"""Read arbitrary score tables: detect their layout from the columns, and record the assumptions made."""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assaymark.errors import LISTED, InputError, Problem
from assaymark.importers.report import MAKERS_OF, family_of, is_person, maker_of
from assaymark.importers.roles import (
    NAMES,
    Floats,
    Ints,
    PairOrders,
    RoleTable,
    ScoreRecords,
    Wanted,
    abridge,
    texts_and_codes,
    win_rates,
)
from assaymark.rows import FileRows
from assaymark.text import count_of

Layout = Literal["one row a score", "one column a criterion", "one column a judge", "pairs", "pairs in both orders"]

SCALES: Final = ((0.0, 1.0), (1.0, 5.0), (1.0, 7.0), (1.0, 10.0), (0.0, 10.0), (0.0, 100.0))
"""Scales that are recognised from the values, smallest first."""

_MARKS: Final = ("one row a score", "one column a criterion", "one column a judge")

_SLIPS, _CODES = 0.02, 0.1  # maximum shares of scores that count as typing errors, or as missing-value codes

NO_SCORE: Final = -1.0
"""The code of many tools for an unreadable reply. It lies on no scale here, so it counts as missing."""


@dataclass(frozen=True, slots=True)
class ScoresRead:
    """A parsed score table.

    ``table`` has the documented columns; ``roles`` maps a role to its source column; ``read`` is a summary in one line,
    ``filled`` lists the assumptions made, and ``left`` what was not used or counted, as sentences.
    ``families`` are vendors by judge, ``choices`` those made after the scores were known, ``dropped`` the judges left
    out by choice. ``levels`` is True if scores are marks on the scale; win rates are not. ``row`` is the source row of
    each row of the table. ``people`` are grades of people outside the panel: by trajectory, then by column and
    criterion ("" without one). ``pi`` are inclusion probabilities by cycle, and ``pi_by`` names who fixed them.
    """

    table: pa.Table
    shape: Layout
    roles: Mapping[str, str]
    dimensions: tuple[str, ...]
    scale: tuple[float, float]
    levels: bool
    read: str
    filled: tuple[str, ...]
    left: tuple[str, ...]
    choices: tuple[str, ...]
    families: Mapping[str, str]
    families_known: bool
    unused: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    orders: Mapping[str, PairOrders] = field(default_factory=dict)
    row: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    people: Mapping[str, Mapping[tuple[str, str], float]] = field(default_factory=dict)
    pi: Mapping[str, float] = field(default_factory=dict)
    pi_by: str = ""


class UnnamedError(InputError):
    """Numeric columns without a name in the options; ``columns`` may be the ``wanted`` dimensions or judges."""

    def __init__(
        self, source: str, problems: Iterable[Problem], columns: Sequence[str], wanted: Literal["dimensions", "judges"]
    ) -> None:
        super().__init__(source, problems)
        self.columns, self.wanted = tuple(columns), wanted


def read_scores(rows: FileRows, wanted: Wanted | None = None) -> ScoresRead:
    """Convert a raw table to scores in the documented columns; raises `InputError` with every problem."""
    reading, orders = _TableParser(rows, wanted or Wanted()), dict[str, PairOrders]()
    shape = reading.shape()
    if shape in _MARKS:
        reading.need("agent", *(() if "trajectory" in reading.roles else ("item",)))
    match shape:
        case "one row a score":
            table = reading.long()
        case "one column a judge":
            table = reading.by_judge()
        case "one column a criterion":
            table = reading.by_criterion()
        case _:
            table, orders = win_rates(reading, twice=shape == "pairs in both orders")
    return reading.finish(shape, table, orders)


class _TableParser(RoleTable):
    """Parser of one table."""

    def shape(self) -> Layout:
        """Detect the layout of the table."""
        roles, judges = self.roles, self.wanted.judges
        if "order_1" in roles and "order_2" in roles:
            return "pairs in both orders"
        if "agent_a" in roles or "agent_b" in roles or ("winner" in roles and "agent" not in roles):
            return "pairs"
        if judges and "judge" not in roles and all(name in self.rows.column_names for name in judges):
            return "one column a judge"
        if "score" in roles and not self.wanted.dimensions:
            return "one row a score"
        if "judge" not in roles and not judges:
            named = [name for name in self.free() if maker_of(name) or is_person(name)]
            if len(named) > 1 and all(map(self.is_score, named)):
                return "one column a judge"
        if "score" in roles and "dimension" in roles:
            return "one row a score"
        return "one column a criterion"

    def _criteria(self) -> tuple[list[str], Ints]:
        """Return the criteria and each row's criterion, from a column if there is one."""
        if "dimension" in self.roles:
            return self.coded("dimension", name=True)
        return ["score"], np.zeros(self.rows.num_rows, dtype=np.int64)

    def long(self) -> ScoreRecords:
        """Parse a table with one row per score."""
        judges, judge = self.judge_of_rows()
        scores = self.scores(self.roles["score"])
        dimensions, dimension = self._criteria()
        rows = np.arange(scores.size)
        if "dimension" in self.roles and self.wanted.dimensions:
            self.unknown("--dimensions", "criterion", self.wanted.dimensions, dimensions)
            self.problems.refuse()
            places = [dimensions.index(dimension) for dimension in self.wanted.dimensions]
            rows = np.flatnonzero(np.isin(dimension, places))
            if rows.size < scores.size:
                rest = [dimension for dimension in dimensions if dimension not in self.wanted.dimensions]
                self.left.append(f"{scores.size - rows.size:,} scores on {abridge(rest)} are not used")
                self.choices += [] if self.wanted.planned else [f"without the criteria {abridge(rest)}"]
            dimension = np.searchsorted(np.sort(places), dimension)
            dimensions = [dimensions[k] for k in sorted(places)]
        return self._gather(judges, judge[rows], dimensions, dimension[rows], scores[rows], rows)

    def by_criterion(self) -> ScoreRecords:
        """Parse a table with one column per criterion."""
        chosen = list(self.wanted.dimensions or ())
        numeric = [name for name in self.free() if self.is_number(name)]
        if not chosen:
            judged, flag = "judge" in self.roles or self.wanted.judges, quote(",".join(numeric))
            if not numeric or (self.problems.summaries and not judged):
                self.need("judge", "score")
            self.problems.refuse()
            if not judged:
                text = f"no column is the judge; if each numeric column is one: --judges {flag}"
                text += f"; if one judge gave all scores: --judges NAME --dimensions {flag}"
                raise UnnamedError(self.problems.source, [Problem("header", text)], numeric, "judges")
            places = [f"{name} in column {self.rows.column_names.index(name) + 1}" for name in numeric]
            text = f"which of the numeric columns are scores? {abridge(places)}; name them, as in --dimensions {flag}"
            raise UnnamedError(self.problems.source, [Problem("header", text)], numeric, "dimensions")
        for name in chosen:
            if name not in self.rows.column_names:
                close = difflib.get_close_matches(name, self.rows.column_names, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                self.problems.add(f"--dimensions {name}", f"the table has no such column{hint}")
        judges, judge = self.judge_of_rows()
        scores = np.concatenate([self.scores(name) for name in chosen])
        dimensions, (n, k) = self.names("criterion", chosen), (self.rows.num_rows, len(chosen))
        return self._gather(
            judges, np.tile(judge, k), dimensions, np.repeat(np.arange(k), n), scores, np.tile(np.arange(n), k)
        )

    def by_judge(self) -> ScoreRecords:
        """Parse a table with one column per judge."""
        columns = sorted(self.wanted.judges or [name for name in self.free() if maker_of(name) or is_person(name)])
        self.problems.refuse()
        others = [name for name in self.free() if name not in columns and self.is_score(name)]
        self.passed_over = [other for other in others if maker_of(other) or is_person(other)]
        others = [other for other in others if self.is_number(other)]
        if others and not self.wanted.judges:
            place = self.rows.column_names.index
            examples = ", ".join(f"{other} in column {place(other) + 1}" for other in others[:LISTED])
            text = f"numeric columns of no known judge: {examples}; name the judges, as in --judges {','.join(columns)}"
            raise UnnamedError(self.problems.source, [Problem("header", text)], [*columns, *others], "judges")
        n, k = self.rows.num_rows, len(columns)
        scores = np.concatenate([self.scores(column) for column in columns])
        dimensions, dimension = self._criteria()
        scored = ~np.isnan(scores)  # an empty cell is skipped, as the judge may not have been asked
        if none := n - int(scored.reshape(k, n).any(axis=0).sum()):
            self.left.append(f"{count_of(none, 'rows')} {'have' if none > 1 else 'has'} no score of any judge")
        scored |= not scored.any()
        return self._gather(
            self.names("judge", columns), np.repeat(np.arange(k), n)[scored], dimensions, np.tile(dimension, k)[scored],
            scores[scored], np.tile(np.arange(n), k)[scored],
        )  # fmt: skip

    def _gather(
        self, judges: Sequence[str], judge: Ints, dimensions: Sequence[str], dimension: Ints, scores: Floats,
        rows: Ints,
    ) -> ScoreRecords:  # fmt: skip
        """Group scores into one record for each item, agent, judge and trial."""
        agents, agent = self.coded("agent", name=True)
        items, item = self.coded("item" if "item" in self.roles else "trajectory")
        item, agent = item[rows], agent[rows]
        lost = scores == NO_SCORE
        below = self.wanted.scale is not None and self.wanted.scale[0] <= NO_SCORE
        if lost.any() and not below and np.nanmin(scores[~lost], initial=0) >= 0:
            mark = "what tools write where a reply could not be read"
            self.left.append(f"{count_of(int(lost.sum()), 'scores')} of −1 count as missing: {mark}")
            scores = np.where(lost, np.nan, scores)
        result = ((item * len(agents) + agent) * len(judges) + judge) * len(dimensions) + dimension
        trial = self._trials(result, scores, rows)
        base = result // len(dimensions)
        count = int(trial.max(initial=0)) + 1
        key, d = base * count + trial, dimension
        order = np.lexsort((d, key))
        again = np.zeros(key.size, dtype=bool)
        again[order[1:]] = (key[order][1:] == key[order][:-1]) & (d[order][1:] == d[order][:-1])
        if again.any():
            # an equal duplicate is left out with a note, a different score is a problem
            last, this = order[:-1][again[order[1:]]], order[1:][again[order[1:]]]
            same = (scores[this] == scores[last]) | (np.isnan(scores[this]) & np.isnan(scores[last]))
            other = zip(this[~same].tolist(), last[~same].tolist(), strict=True)
            before = dict(zip(rows[this[~same]].tolist(), other, strict=True))

            def say(row: int) -> tuple[str, str]:
                here, first = before[row]
                number = self.column("trial")[row].as_py() if "trial" in self.roles else trial[here] + 1
                label = f"{items[item[here]]:.60}, {agents[agent[here]]}, {judges[judge[here]]}, trial {number}"
                text = f"a second score for {label}: {scores[here]:g}, and {scores[first]:g} in {self.at(rows[first])}"
                hint = "keep one, or number the trials"
                return self.at(row, "score" if "score" in self.roles else ""), f"{text}; {hint}"

            self.problems.rows(np.array(sorted(before), dtype=np.int64), say)
            if n := int(same.sum()):
                result_s = f"{count_of(n, 'rows')} repeat{'s' if n == 1 else ''} a result with its score"
                self.left.append(f"{result_s}: counted once")
        records, first, at = np.unique(key, return_index=True, return_inverse=True)
        matrix = np.full((records.size, len(dimensions)), np.nan)
        matrix[at[~again], d[~again]] = scores[~again]
        return ScoreRecords(
            items, item[first], agents, agent[first], list(judges), judge[first], trial[first] + 1, list(dimensions),
            matrix, rows[first],
        )  # fmt: skip

    def _trials(self, result: Ints, scores: Floats, rows: Ints) -> Ints:
        """Return the trial of each score from 0: from a column, or repeats numbered independently of the row order."""
        if "trial" in self.roles:
            self.used.add(self.roles["trial"])
            values, bad = self.parsed(self.roles["trial"])
            wrong = bad | np.isnan(values) | (values < 0) | (np.floor(values) != values)
            column, rule = self.rows.column(self.roles["trial"]), "a trial is a whole number, as in 1, 2, 3"
            self.problems.rows(wrong, lambda row: (self.at(row, "trial"), f"{rule} (got {column[row].as_py()!r:.60})"))
            if wrong.any():
                self.problems.refuse()
            return np.unique(values, return_inverse=True)[1][rows]
        order = np.lexsort((scores, result))
        starts = np.flatnonzero(np.r_[True, result[order][1:] != result[order][:-1]])
        size = np.diff(np.r_[starts, result.size])
        if size.max(initial=1) == 1:
            return np.zeros(result.size, dtype=np.int64)
        rank = np.arange(result.size) - np.repeat(starts, size)
        # The numbering of repeats must depend neither on their scores nor on the row order.
        turn = np.array([zlib.crc32(str(code).encode()) % k if k > 1 else 0
                         for code, k in zip(result[order][starts].tolist(), size.tolist(), strict=True)])  # fmt: skip
        trial = np.empty_like(result)
        trial[order] = (rank + np.repeat(turn, size)) % np.repeat(size, size)
        n, most = int((size > 1).sum()), int(size.max())
        self.filled.append(f"{n:,} result{'s' * (n != 1)} given more than once (up to {most} times), read as trials")
        return trial

    def finish(self, shape: Layout, scored: ScoreRecords, orders: Mapping[str, PairOrders]) -> ScoresRead:
        """Build the result: the table in the documented columns, with roles, notes and choices."""
        choices = self.choices
        judges = () if shape == "one column a judge" else self.wanted.judges or ()
        for flag, names in (("--without", self.wanted.without), ("--judges", judges)):
            self.unknown(flag, "judge", names, scored.judges)
        chosen = [name for name in scored.judges if name not in self.wanted.without]
        if judges:
            chosen = [name for name in chosen if name in judges]
        if dropped := sorted({*scored.judges, *self.passed_over} - set(chosen)):
            choices.append(f"without {abridge(dropped)}")
            scored = scored.only(np.isin(scored.judge, [scored.judges.index(name) for name in chosen]))
        if not chosen:
            self.problems.add("--without", f"no judge is left of {abridge(sorted({*dropped}))}; one has to stay")
            self.problems.refuse()
        scale = self._scale(scored) if shape in _MARKS else (0.0, 1.0)
        families, complete = self._families(scored)
        self.problems.refuse()
        table = self._table(scored, families)
        people, pi, pi_by = self._people(table, scored, scale), dict[str, float](), ""
        if self.human and "pi" in self.roles:
            # the inclusion probability of each cycle in the human sample, and who fixed it
            self.used.add(self.roles["pi"])
            values, bad = self.parsed(self.roles["pi"])
            off = bad | np.isnan(values) | (values <= 0) | (values > 1)
            every = "every record needs its probability, above 0 to 1"
            self.problems.rows(off, lambda row: (self.at(row, "pi"), every))
            words = self.column("pi_by").to_pylist() if "pi_by" in self.roles else []
            if not (pi_by := "; ".join(sorted({*words} - {""}))):
                message = "inclusion probabilities need who fixed them, and when: --map pi_by=COLUMN"
                self.problems.add("header", message)
            cycles = table.column("cycle" if "cycle" in table.column_names else "trajectory").to_pylist()
            for cycle, row in zip(cycles, scored.row.tolist(), strict=True):
                if pi.setdefault(cycle, float(values[row])) != values[row]:
                    self.problems.add(self.at(row, "pi"), f"two probabilities of {cycle!r:.60}; each has one", row)
        self.problems.refuse()
        unused = tuple(name for name in self.free() if name not in self.used)
        low, high = scale
        roles = sorted(self.roles.items(), key=lambda item: item[0] == "score")  # scores last, followed by the scale
        named = [f"{role} = {column}" for role, column in roles if role in _SHOWN]
        if shape == "one column a criterion":
            named.append(f"scores = {abridge(scored.dimensions)}")
        if shape == "one column a judge":
            named.append(f"judges = {abridge(scored.judges)}")
        named += [f"people = {abridge(self.human)}"] if people else []
        rest = f"; {count_of(len(unused), 'columns')} not used: {abridge(unused)}" if unused else ""
        read = f"{', '.join(named)}{f' ({low:g} to {high:g})' if shape in _MARKS else ''}, {shape}{rest}"
        return ScoresRead(
            table, shape, dict(self.roles), tuple(scored.dimensions), scale, shape in _MARKS, read, tuple(self.filled),
            tuple(self.left), tuple(choices), families, complete, unused, tuple(dropped),
            {name: one for name, one in orders.items() if name in chosen}, scored.row, people, pi, pi_by if pi else "",
        )  # fmt: skip

    def _scale(self, scored: ScoreRecords) -> tuple[float, float]:
        """Return the declared scale, or the smallest known one whose ends both occur in the scores."""
        scores = scored.scores
        column = self.roles.get("score", abridge(scored.dimensions))
        if np.isnan(scores).all():
            self.problems.refuse()
            self.problems.add(column, f"no row of {self.rows.num_rows:,} has a score; --map score=COLUMN names another")
            self.problems.refuse()
        low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
        if (declared := self.wanted.scale) is not None:
            off = (scores < declared[0]) | (scores > declared[1])
            first = {int(scored.row[record]): (record, at) for record, at in np.argwhere(off)[::-1].tolist()}
            message = f"lies outside {declared[0]:g}..{declared[1]:g}; scores run from {low:g} to {high:g}"
            message += " (correct it, or declare another scale)"
            self.problems.rows(
                scored.row[off.any(axis=1)],
                lambda row: (self._place(scored, *first[row]), f"{scores[first[row]]:.12g} {message}"),
            )
            return declared
        whole = _known_scale(scores)
        for least, most in SCALES if whole in (None, SCALES[-1]) else ():
            # a few outlying scores are typing errors or missing-value codes, and say nothing about the scale
            off, n = (scores < least) | (scores > most), np.count_nonzero(~np.isnan(scores))
            rest, share = scores[~off & ~np.isnan(scores)], np.count_nonzero(off) / n
            away = np.maximum(least - scores, scores - most)[off]
            tells, far = _known_scale(rest) is not None, away.min(initial=np.inf) > most - least
            if 0 < share <= _CODES and ((far and tells) or (whole is None and (far or (tells and share <= _SLIPS)))):
                record, at = min(np.argwhere(off).tolist(), key=lambda spot: int(scored.row[spot[0]]))
                message = f"{scores[record, at]:.12g} lies outside the other scores, {rest.min():g} to {rest.max():g}"
                message += f" (one of {away.size:,} such scores)" if away.size > 1 else ""
                remedy = f"correct it, or leave the cell empty; --scale {least:g}..{most:g} fits the others"
                remedy += "" if far else f", --scale {low:g}..{high:g} all"
                self.problems.add(self._place(scored, record, at), f"{message}; {remedy}", int(scored.row[record]))
                return whole or (low, high)
        parts = dict(zip(scored.dimensions, scores.T, strict=True)) if len(scored.dimensions) > 1 else {}
        parts |= {name: scores[scored.judge == k].ravel() for k, name in enumerate(scored.judges)}
        scales = {name: scale for name, values in parts.items() if (scale := _known_scale(values)) is not None}
        guess = whole or next((scale for scale in SCALES if scale[0] <= low and high <= scale[1]), (low, high))
        # parts that are probably on another scale: each uses a smaller one from end to end
        others = {
            name: scale for name, scale in scales.items()
            if scale != whole and np.count_nonzero(~np.isnan(parts[name])) >= 20
            and scale[1] < guess[1] and scale[1] - scale[0] < guess[1] - guess[0]
        }  # fmt: skip
        flag = f"--scale {guess[0]:g}..{guess[1]:g}"
        if others:
            seen = abridge([f"{name} uses {scale[0]:g}..{scale[1]:g}" for name, scale in others.items()])
            message = f"two scales in one table: {seen}, while the whole runs from {low:g} to {high:g}"
            self.problems.add(column, f"{message}; bring them to one, or declare that it is one with {flag}")
        elif whole is None and self.unread:
            pass  # the scale may follow from the unreadable scores
        elif whole is None:
            message = f"scores run from {low:g} to {high:g}, which does not determine the scale"
            self.problems.add(column, f"{message}; declare it, as in {flag}")
        else:
            self.filled.append(f"scale {whole[0]:g} to {whole[1]:g}, read from the scores (--scale declares another)")
        return whole or (low, high)

    def _place(self, scored: ScoreRecords, record: int, criterion: int) -> str:
        """Format the place of a score: its row, and the column of the score, criterion or judge."""
        names = ("score", scored.dimensions[criterion], scored.judges[scored.judge[record]])
        known = (name for name in names if name in self.roles or name in self.rows.column_names)
        return self.at(int(scored.row[record]), next(known, ""))

    def _families(self, scored: ScoreRecords) -> tuple[dict[str, str], bool]:
        """Return each judge's vendor from the options, a column, or its name, else itself; True if all are known."""
        given = dict(self.wanted.family)
        self.unknown("--family", "judge or agent", given, sorted({*scored.judges, *scored.agents}))
        column = self._by_owner("family", scored, scored.judge, scored.judges)
        makers: dict[str, str] = {}
        unknown, notes = [], []
        for name in scored.judges:
            maker = given.get(name) or column.get(name) or self.wanted.planned.get(name)
            if maker in (None, "") and (maker := maker_of(name)) is not None:
                notes.append(f"{name}: {maker}")
            if (maker or "").lower() in ("human", "person", "people") or (not maker and is_person(name)):
                maker = f"{name} (a person)" if name not in ("human",) else name
                notes.append(f"{name}: a person")
            if not maker:
                unknown.append(name)
            makers[name] = family_of(maker or name).translate(NAMES)
        if notes:
            self.filled.append(
                f"makers read from names ({MAKERS_OF}): {abridge(notes, 12)} (--family JUDGE=MAKER corrects)"
            )
        if unknown:
            self.filled.append(f"no maker is known for {abridge(unknown)}; each counts as a separate family")
        return makers, not unknown

    def _by_owner(self, role: str, scored: ScoreRecords, code: Ints, names: Sequence[str]) -> dict[str, str]:
        """Return a column's value for each judge or agent; two different values are noted."""
        if role not in self.roles:
            return {}
        words, values = texts_and_codes(self.column(role))
        values, firsts = values[scored.row], dict[str, tuple[str, int]]()
        pairs, first = np.unique(code * len(words) + values, return_index=True)
        for pair, row in zip(pairs.tolist(), scored.row[first].tolist(), strict=True):
            name, word = names[pair // len(words)], words[pair % len(words)]
            if name in firsts and name not in self.wanted.family:
                (other, before), (word, row) = sorted((firsts[name], (word, row)), key=lambda entry: entry[1])
                what = f"{name} has {word!r} here and {other!r} in {self.at(before)}; each has one"
                self.problems.add(self.at(row, role), f"{what} (--family {name}=MAKER decides)", row)
            firsts[name] = word, row
        return {name: word for name, (word, _) in firsts.items()}

    def _table(self, scored: ScoreRecords, families: Mapping[str, str]) -> pa.Table:
        """Build the documented columns."""

        def names(words: Sequence[str], codes: Ints) -> Any:
            return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(words, pa.string()))

        records, place = np.unique(scored.item * len(scored.agents) + scored.agent, return_inverse=True)
        columns: dict[str, Any] = {}
        if "trajectory" in self.roles:
            columns["trajectory"] = self._of_rows("trajectory", scored.row)
        else:
            n = len(scored.agents)
            texts = [f"{scored.items[record // n]} / {scored.agents[record % n]}" for record in records.tolist()]
            columns["trajectory"] = names(texts, place)
        columns["agent"] = names(scored.agents, scored.agent)
        item_names = names(scored.items, scored.item)
        if "cycle" in self.roles:
            columns["cycle"] = self._of_rows("cycle", scored.row)
            self.refuse_empty("cycle", *texts_and_codes(columns["cycle"]), scored.row)
        elif "item" in self.roles:
            columns["cycle"] = item_names
        if "cluster" in self.roles:
            columns["cluster"] = self._of_rows("cluster", scored.row)
            # each item must lie in one cluster
            words, codes = texts_and_codes(columns["cluster"])
            self.refuse_empty("cluster", words, codes, scored.row)
            first = np.full(len(scored.items), -1, dtype=np.int64)
            first[scored.item[::-1]] = codes[::-1]
            for k in np.unique(scored.item[first[scored.item] != codes])[:LISTED].tolist():
                seen = abridge(sorted({words[code] for code in codes[scored.item == k].tolist()}))
                column, item = self.roles["cluster"], self.roles.get("item", "item")
                row = int(scored.row[(scored.item == k) & (codes != first[k])].min())
                what = f"item {scored.items[k]:.60} is in several clusters ({seen}); name items by both, as in"
                self.problems.add(self.at(row, column), f"{what} --map item={item}+{column}", row)
        else:
            columns["cluster"] = columns.get("cycle", item_names)
            own = self.roles.get("item", "item").replace("+", " and ")
            larger = "--cluster COLUMN for groups of them, which give less power"
            self.filled.append(f"each {own} is one cluster ({larger})")
        columns["judge"] = names(scored.judges, scored.judge)
        columns["family"] = names([families[name] for name in scored.judges], scored.judge)
        columns["trial"] = pa.array(scored.trial)
        makers = self._by_owner("agent_family", scored, scored.agent, scored.agents)
        owners = {name: self.wanted.family.get(name) or makers.get(name) or maker_of(name) for name in scored.agents}
        nameless = [name for name, maker in owners.items() if not maker]
        if nameless and len(nameless) < len(owners):
            self.filled.append(
                f"no maker is known for {abridge(nameless)}; "
                "without it self-preference is not tested (--family AGENT=MAKER names it)"
            )
        if not nameless:
            columns["agent_family"] = names(
                [family_of(str(owners[name])).translate(NAMES) for name in scored.agents], scored.agent
            )
        for role in ("format", "derivation", "parent", "replicate"):
            if role in self.roles:
                columns[role] = self._of_rows(role, scored.row)
        lengths = self._lengths(scored, place)
        if lengths is not None:
            columns["length"] = pa.array(lengths)
        self.problems.refuse()
        for name, scores in zip(scored.dimensions, scored.scores.T, strict=True):
            columns[name] = pa.array(np.ascontiguousarray(scores), mask=np.isnan(scores))
        return pa.table(columns)

    def _people(
        self, table: pa.Table, scored: ScoreRecords, scale: tuple[float, float]
    ) -> dict[str, dict[tuple[str, str], float]]:
        """Return people's grades of each answer; two different grades of one person for one answer are noted."""
        grades: dict[str, dict[tuple[str, str], float]] = {}
        if not self.human or "agent" not in self.roles:
            return grades
        item, agent = (self.coded(role)[1] for role in ("item" if "item" in self.roles else "trajectory", "agent"))
        answer = item * (int(agent.max(initial=0)) + 1) + agent
        named = dict(zip(answer[scored.row].tolist(), table.column("trajectory").to_pylist(), strict=True))
        criterion = self.column("dimension").to_pylist() if "dimension" in self.roles else []
        low, high = scale
        for column in self.human:
            values, bad = self.parsed(column)
            off = bad | (values < low) | (values > high)
            text = self.rows.column(column)

            def say(row: int, column: str = column, text: Any = text) -> tuple[str, str]:
                message = f"a grade is a number from {low:g} to {high:g} (got {text[row].as_py()!r:.60})"
                return self.at(row, column), message

            self.problems.rows(off, say)
            for row in np.flatnonzero(~np.isnan(values) & ~off).tolist():
                name, key = named.get(answer[row]), (column, criterion[row] if criterion else "")
                if name is None:
                    continue
                if grades.setdefault(name, {}).setdefault(key, float(values[row])) != values[row]:
                    message = f"another grade of {name!r:.60} than {grades[name][key]:g} in a row before"
                    self.problems.add(self.at(row, column), f"{message}; each person gives one", row)
        return grades

    def _of_rows(self, role: str, rows: Ints) -> Any:
        column = self.column(role)
        return (column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column).take(pa.array(rows))

    def _lengths(self, scored: ScoreRecords, place: Ints) -> Ints | None:
        """Return the words of each record's text; None without a column, or if it differs between rows of an answer."""
        if "length" in self.roles:
            self.used.add(self.roles["length"])
            values, bad = self.parsed(self.roles["length"])
            source = self.roles["length"]
        elif "text" in self.roles:
            words = pc.list_value_length(pc.utf8_split_whitespace(pc.utf8_trim_whitespace(self.column("text"))))
            values, bad = np.asarray(words.to_numpy(), dtype=np.float64), np.zeros(self.rows.num_rows, dtype=bool)
            source = f"words of {self.roles['text']}"
        else:
            return None
        lengths = values[scored.row]
        first = np.full(int(place.max()) + 1, np.nan)
        first[place[::-1]] = lengths[::-1]
        if bad.any() or np.isnan(lengths).any() or (lengths < 0).any() or (first[place] != lengths).any():
            self.left.append(f"length is not examined: {source} lacks a number, or differs between rows of one answer")
            return None
        self.filled.append(f"length = {source}")
        return np.floor(lengths).astype(np.int64)


_SHOWN: Final = ("agent", "agent_a", "agent_b", "judge", "item", "trajectory", "score", "winner", "order", "order_1",
                 "order_2", "dimension", "trial", "cluster")  # fmt: skip


def _known_scale(values: Floats) -> tuple[float, float] | None:
    """Return the smallest known scale that contains all values and whose ends both occur; None if there is none."""
    present = values[~np.isnan(values)]
    if not present.size:
        return None
    low, high = float(present.min()), float(present.max())
    scale = next((scale for scale in SCALES if scale[0] <= low and high <= scale[1]), None)
    if scale is None:
        return None
    if scale == (0.0, 100.0) and bool(((present > 10) & (np.floor(present) == present)).any()):
        return scale
    if scale == (0.0, 1.0) and not np.isin(present, (0.0, 1.0)).all():
        return None
    return scale if (low, high) == scale else None
