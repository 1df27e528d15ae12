"""Detect the roles of columns in score tables, parse columns, and convert pairwise comparisons to scores."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from assaymark.errors import LISTED, InputError, UnknownNameError
from assaymark.importers.report import TableProblems
from assaymark.records import duplicates
from assaymark.rows import FileRows
from assaymark.text import percent

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    "agent": ("agent", "model", "system", "contestant", "candidate", "policy", "bot", "player", "method", "participant",
              "submission", "generator", "model_id", "model_name", "agent_id", "agent_name", "system_id",
              "system_name", "llm"),
    "judge": ("judge", "annotator", "rater", "grader", "evaluator", "reviewer", "assessor", "scorer", "labeler",
              "labeller", "judge_id", "judge_name", "judge_model", "annotator_id", "rater_id", "grader_id",
              "evaluator_id"),
    "item": ("item", "question", "question_id", "prompt_id", "sample_id", "item_id", "doc", "doc_id", "document_id",
             "example", "example_id", "task", "task_id", "instance", "instance_id", "query", "query_id", "case",
             "case_id", "conversation_id", "input_id"),
    "score": ("score", "rating", "grade", "points", "mark", "overall_score"),
    "dimension": ("dimension", "criterion", "criteria", "aspect", "metric", "attribute"),
    "trial": ("trial", "repeat", "repetition", "rep", "epoch"),
    "family": ("family", "judge_family", "judge_vendor", "vendor"),
    "agent_family": ("agent_family", "agent_vendor", "model_family", "model_vendor"),
    "length": ("length", "words", "tokens", "n_words", "n_tokens", "num_tokens", "text_length", "response_length",
               "output_tokens"),
    "text": ("text", "response", "answer", "output", "completion"),
    "agent_a": ("agent_a", "model_a", "system_a", "agent_1", "model_1", "system_1", "player_a", "candidate_a"),
    "agent_b": ("agent_b", "model_b", "system_b", "agent_2", "model_2", "system_2", "player_b", "candidate_b"),
    "winner": ("winner", "preference", "preferred", "verdict", "choice"),
    "order": ("order", "swapped", "swap", "position"),
    "order_1": ("order_1", "winner_ab", "verdict_ab", "winner_1", "verdict_1"),
    "order_2": ("order_2", "winner_ba", "verdict_ba", "winner_2", "verdict_2"),
}  # fmt: skip
"""Column names of each role, the documented name first; case, spaces and dashes are ignored."""

LATE: Final[Mapping[str, tuple[str, ...]]] = {
    "item": ("prompt", "input", "id", "sample"), "score": ("passed", "correct", "label"),
}  # fmt: skip
"""Column names that are used for a role only if no name in `SYNONYMS` matches."""

_ABROAD: Final[Mapping[str, str]] = {
    "model": "modell modele modelo modello 模型", "system": "systeme sistema 系统",
    "question": "frage pregunta domanda 问题", "task": "aufgabe tache tarea 任务", "item": "element elemento 题目",
    "judge": "richter juge juez giudice 评委 裁判", "evaluator": "bewerter evaluateur evaluador 评估者",
    "reviewer": "gutachter prufer 评审", "annotator": "annotateur anotador 标注者",
    "score": "bewertung punktzahl puntuacion puntaje punteggio 评分 得分", "points": "punkte puntos 分数",
    "answer": "antwort reponse respuesta 回答",
    "criterion": "kriterium critere criterio 标准 维度", "winner": "gewinner sieger vainqueur gagnant ganador 胜者",
}  # fmt: skip
"""Words for those of `SYNONYMS` in other languages, without accents; no "note", since 1 is the best in German."""
_ENGLISH: Final = {word: english for english, words in _ABROAD.items() for word in words.split()}

_EXACT: Final = ("cluster", "cycle", "trajectory", "replicate", "format", "derivation", "parent", "pi", "pi_by")
"""Roles whose columns are recognised by the exact name only."""

HUMAN: Final = "human_"
"""Prefix of columns with grades of people outside the panel."""

ROLES: Final = (*SYNONYMS, *_EXACT)

_OPTIONAL: Final = ("dimension", "trial", "family", "agent_family", "length", "text", "order")
_OF_PAIRS: Final = ("agent_a", "agent_b", "winner", "order", "order_1", "order_2")
_MISSING: Final = ("", "nan", "na", "n/a", "n.a.", "#n/a", "<na>", "null", "none", "-", "–", "—")
_NO_NAMES: Final = ("nan", "<na>", "#n/a")  # others, such as "none", may be names
_EMPTY: Final = "; correct it, or leave the cell empty where there is no score"
_COMMA: Final = re.compile(r"[+-]?\d+,\d+")
_DECIMAL: Final = r"^[+-]?\d+,(\d{1,2}|\d{4,})$"
_JOINTS: Final = re.compile(r"[ -]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # as in modelName
_NUMBER: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_PASS: Final = ("pass", "passed", "yes", "true", "correct", "success", "good", "accept", "accepted")
_FAIL: Final = ("fail", "failed", "no", "false", "incorrect", "failure", "bad", "reject", "rejected", "wrong")
NAMES: Final = str.maketrans({"[": "(", "]": ")", "=": "-", ",": ";", "|": "/"})
"""Characters with a meaning in claim ids, and their replacements in names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """User options for a table; ``roles`` maps a role to a column, a dotted path, or several joined by ``+``."""

    roles: Mapping[str, str] = field(default_factory=dict)
    scale: tuple[float, float] | None = None
    dimensions: tuple[str, ...] | None = None
    judges: tuple[str, ...] | None = None
    family: Mapping[str, str] = field(default_factory=dict)
    planned: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    human: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ScoreRecords:
    """Scores [records, criteria] with item, agent, judge and trial codes of each record, and its first row."""

    items: list[str]
    item: Ints
    agents: list[str]
    agent: Ints
    judges: list[str]
    judge: Ints
    trial: Ints
    dimensions: list[str]
    scores: Floats
    row: Ints

    def only(self, mask: Bools) -> ScoreRecords:
        """Return a subset of the records, with only its items, agents and judges."""
        (i, item), (a, agent), (j, judge) = (
            np.unique(codes[mask], return_inverse=True) for codes in (self.item, self.agent, self.judge)
        )
        items, agents, judges = ([names[k] for k in used] for names, used in
                                 ((self.items, i), (self.agents, a), (self.judges, j)))  # fmt: skip
        return ScoreRecords(items, item, agents, agent, judges, judge, self.trial[mask], self.dimensions,
                            self.scores[mask], self.row[mask])  # fmt: skip


class RoleTable:
    """The rows of a table, the column of each role, and the problems found in them."""

    def __init__(self, rows: FileRows, wanted: Wanted) -> None:
        self.file, self.rows, self.wanted = rows, rows.table, wanted
        self.problems = TableProblems(rows.name)
        self.filled, self.left = list[str](), list[str]()
        self.choices, self.passed_over = list[str](), list[str]()
        self.unread = False
        self._numbers = dict[str, tuple[Floats, Bools]]()
        self.written = dict[str, str]()
        self.used, self._open = set[str](), set[str]()
        names = self.rows.column_names
        if twice := duplicates(names):
            self.problems.add("header", f"column names must be unique (twice: {', '.join(twice)})")
        elif not len(rows):
            self.problems.add("", "has a header but no rows" if names else "is empty; a header and rows are needed")
        self.problems.refuse()
        self.plain = {in_english(name): name for name in reversed(names)}
        # the columns with grades of people outside the panel
        mapped = {*(wanted.judges or ()), *(wanted.dimensions or ()), *wanted.roles.values()}
        people = tuple(name for name in names if name.lower().startswith(HUMAN) and name not in mapped)
        self.human = people if wanted.human is None else wanted.human
        self.unknown("--human", "column", wanted.human or (), names)
        self.problems.refuse()
        self.roles = self._roles()

    def unknown(self, flag: str, kind: str, names: Iterable[str], choices: Sequence[str]) -> None:
        """Note every name in an option that the table does not have."""
        for name in [name for name in names if name not in choices]:
            self.problems.add(flag, str(UnknownNameError(kind, name, choices)))

    def _roles(self) -> dict[str, str]:
        """Return the column of each role; several candidates are a problem, or a note if the role is optional."""
        named = {name: role for role, names in SYNONYMS.items() for name in reversed(names)}
        roles = {named.get(in_english(role), role): column for role, column in self.wanted.roles.items()}
        for role, column in roles.items():
            self.unknown(f"--map {role}", "role", (role,), ROLES)
            try:
                self.file.column(column)
            except InputError as exc:
                self.problems.add(f"--map {role}={column}", exc.problems[0].what)
        self.problems.refuse()
        spoken = _source_columns(roles) | set(self.wanted.dimensions or ()) | set(self.wanted.judges or ())
        free = {name: column for name, column in self.plain.items() if column not in spoken}
        filled = {name: column for name, column in free.items() if self.rows[column].null_count < len(self.rows)}
        exact = _EXACT[: None if self.human else -2]  # inclusion probabilities need human grades
        roles |= {role: filled[role] for role in exact if role in filled and role not in roles}
        pairs = any(name in self.plain for name in (*SYNONYMS["agent_a"], *SYNONYMS["order_1"])) or "agent_a" in roles
        of_no_use = ("agent", "score", "dimension") if pairs else _OF_PAIRS
        for role, names in SYNONYMS.items():
            if role in roles or role in of_no_use:
                continue
            known = filled if role in _OPTIONAL else free  # a column without any value has no role that may be missing
            columns = [known[name] for name in names if name in known]
            columns = columns or [free[name] for name in LATE.get(role, ()) if name in free][:1]
            if len(columns) > 1 and role in ("length", "text", "order"):
                note = f"{abridge(columns)} could each hold the {role} of an answer; say which with --map {role}=COLUMN"
                self.left.append(note)
            elif len(columns) > 1:
                note = f"{abridge(columns)} could each be the {role}; say which with --map {role}={columns[0]}"
                self.problems.add("header", note)
                self._open.add(role)
            elif columns:
                roles[role] = columns[0]
        if "order_1" in roles and "order_2" in roles:
            roles.pop("winner", None)
        return roles

    def free(self) -> list[str]:
        """Return the columns without a role."""
        used = _source_columns(self.roles) | set(self.human)
        return [name for name in self.rows.column_names if name not in used]

    def need(self, *roles: str) -> None:
        """Note the required roles without a column, with the columns that may be meant."""
        free, nothing = self.free(), not self.roles and not self._open
        asked = ("item", "agent", "judge", "score") if nothing else roles
        missing = [role for role in asked if role not in self.roles and role not in self._open]
        if not missing:
            return
        columns = abridge([f"{name!r:.60}" for name in self.rows.column_names], LISTED)
        columns += "".join(f"; {line}, while each score needs a row" for line in self.file.said if "JSON text" in line)
        alike = {role: [name for name in free if {*SYNONYMS[role]} & {*re.split("[._]", in_english(name))}]
                 for role in missing}  # fmt: skip
        flags = " ".join(
            f"--map {role}={quote(alike[role][0] if len(alike[role]) == 1 else 'COLUMN')}" for role in missing
        )
        head = "no name of a column is known" if nothing else f"no column is the {' or the '.join(missing)}"
        known = f"{', '.join(SYNONYMS[missing[0]][:6])}, ... are known; " if len(missing) == 1 else ""
        message = f"{head} ({known}the table has {columns}); say which{' is what' * nothing} with {flags}"
        if nothing and self.file.unit == "line" and "JSON" not in self.file.format:
            cut = "cells are separated by a comma, semicolon, tab or bar, and " if len(self.plain) == 1 else ""
            message += f"; {cut}the first line has to name the columns"
        elif not nothing:
            message += "; a judge alone is named with --judges NAME" if "judge" in missing else ""
            if len(alike.get("agent", "-")) != 1 and sum(map(self.is_number, free)) > 1:
                message += "; a table with one column a system is not read: write one row a score"
        self.problems.add("header", message)
        if nothing:
            self.problems.refuse()

    def column(self, role: str) -> Any:
        """Return the column of a role as trimmed text, empty for nulls."""
        self.used.update(self.roles[role].split("+"))
        return pc.utf8_trim_whitespace(pc.fill_null(_decode(self.file.column(self.roles[role])).cast(pa.string()), ""))

    def coded(self, role: str, *, name: bool = False) -> tuple[list[str], Ints]:
        """Return the distinct texts of a role's column and the code of each row; empty cells are noted."""
        words, codes = texts_and_codes(self.column(role))
        self.refuse_empty(role, words, codes, np.arange(codes.size))
        if name:
            words = self.names(role, words, codes)
        texts, place = np.unique(np.array(words, dtype=object).astype(str), return_inverse=True)
        return texts.tolist(), place[codes]

    def refuse_empty(self, role: str, words: Sequence[str], codes: Ints, rows: Ints) -> None:
        """Note the rows with an empty cell in a role's column, or with what other tools write for one."""
        unnamed = {code: repr(word) if word else "empty" for code, word in enumerate(words)
                   if word.lower() in ("", *_NO_NAMES)}  # fmt: skip
        bad = np.isin(codes, [*unnamed])
        found = {row: unnamed[code] for row, code in zip(rows[bad].tolist(), codes[bad].tolist(), strict=True)}
        needed = f"each row needs its {role}"
        self.problems.rows(np.array(sorted(found), dtype=np.int64),
                           lambda row: (self.at(row, role), f"is {found[row]}; {needed}"))  # fmt: skip

    def judge_of_rows(self) -> tuple[list[str], Ints]:
        """Return the judges and each row's judge; ``--judges`` names the judge of a table without such a column."""
        if "judge" not in self.roles and self.wanted.judges and len(self.wanted.judges) == 1:
            self.problems.refuse()
            return self.names("judge", self.wanted.judges), np.zeros(self.rows.num_rows, dtype=np.int64)
        self.need("judge")
        self.problems.refuse()
        return self.coded("judge", name=True)

    def names(self, role: str, words: Sequence[str], codes: Ints | None = None) -> list[str]:
        """Replace characters of names that have a meaning in claim ids; invalid or ambiguous names are noted."""
        labels = [word.translate(NAMES) for word in words]
        for k in [k for k, word in enumerate(labels) if len(word) > 120 or not word.isprintable()][:LISTED]:
            message = f"a name has 1 to 120 printable characters ({len(labels[k]):,} in {labels[k]!r:.40}); rename it"
            row = -1 if codes is None else int(np.argmax(codes == k))
            self.problems.add(self.at(row, role) if row >= 0 else self.roles.get(role, role), message, row)
        if changed := [f"{old} as {new}" for old, new in zip(words, labels, strict=True) if old != new]:
            many = "criteria" if role == "criterion" else f"{role}s"
            self.filled.append(f"names of {many} written without []=,|: {abridge(changed, 3)}")
        if len(set(labels)) < len(set(words)):
            self.problems.add(self.roles.get(role, role), "two names differ only in characters that a name cannot have")
        return labels

    def at(self, row: int, role: str = "") -> str:
        """Format the place of a row, with a column given by role or name."""
        return self.file.where(row) + (f", {self.roles.get(role, role)}" if role else "")

    def is_score(self, name: str) -> bool:
        """True if a column has only numbers, or only words for pass and fail."""
        return self.is_number(name) or (bool(labels := self.labels(name)) and {*labels} <= {*_PASS, *_FAIL})

    def is_number(self, name: str) -> bool:
        """True if all non-missing cells of a column are numbers, and there is at least one."""
        values, bad = self.parsed(name)
        return not bad.any() and not np.isnan(values).all()

    def parsed(self, name: str) -> tuple[Floats, Bools]:
        """Return a column as numbers (NaN if missing), and the mask of rows with other content."""
        if name in self._numbers:
            return self._numbers[name]
        column = _decode(self.file.column(name))
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.string())
        kind, none = column.type, pa.array(np.zeros(len(column), dtype=bool))
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            text = pc.utf8_trim_whitespace(column)
            text = pc.if_else(pc.is_in(pc.utf8_lower(text), pa.array(_MISSING, type=text.type)), None, text)
            text, self.written[name] = _as_written(text)
            bad = pc.fill_null(pc.invert(pc.match_substring_regex(text, _NUMBER)), False)
            values = pc.cast(pc.utf8_ltrim(pc.if_else(bad, None, text), "+"), pa.float64())
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            values, bad = pc.cast(column, pa.float64(), safe=False), none
        else:
            values, bad = pa.nulls(len(column), pa.float64()), none if pa.types.is_null(kind) else pc.is_valid(column)
        numbers = np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64)
        wrong = np.asarray(bad.to_numpy(zero_copy_only=False), dtype=bool) | np.isinf(numbers)
        self._numbers[name] = np.where(wrong, np.nan, numbers), wrong
        return self._numbers[name]

    def labels(self, name: str) -> list[str]:
        """Return up to 50 distinct non-missing words of a column, in lower case."""
        column = self.rows.column(name)
        if pa.types.is_nested(column.type):
            return []
        words = pc.unique(pc.utf8_lower(pc.utf8_trim_whitespace(column.cast(pa.string()))))
        return [word for word in words[:50].to_pylist() if word is not None and word not in _MISSING]

    def scores(self, name: str) -> Floats:
        """Return a column of scores; words for pass and fail become 1 and 0, other text is noted."""
        self.used.add(name)
        values, bad = self.parsed(name)
        if not bad.any():
            self.filled += [f"{name}: {self.written[name]}"] if self.written.get(name) else []
            return values.copy()
        cells, labels = self.rows.column(name).cast(pa.string()), self.labels(name)
        if set(labels) <= {*_PASS, *_FAIL}:
            text = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
            passed, failed = (pc.fill_null(pc.is_in(text, pa.array(words)), False).to_numpy(zero_copy_only=False)
                              for words in (_PASS, _FAIL))  # fmt: skip
            self.filled.append(f"{name}: {abridge([label for label in labels if label in _PASS])} is 1 and "
                               f"{abridge([label for label in labels if label in _FAIL])} is 0")  # fmt: skip
            return np.where(passed, 1.0, np.where(failed, 0.0, np.nan))
        alike: dict[str, list[int]] = {}  # rows by text, those with a decimal comma under ","
        for row in np.flatnonzero(bad).tolist():
            word = cells[row].as_py().strip()
            alike.setdefault("," if _COMMA.fullmatch(word) else word, []).append(row)
        if np.isnan(values).all() and len(labels) > 1 and "," not in alike:
            shown = abridge([f"{label:.40}" for label in labels], 5)
            self.problems.add(name, f"holds the labels {shown}; write them as numbers, or two of them as pass and fail")
            return values.copy()
        self.unread = True
        for word, (row, *others) in alike.items():
            more = f", and {len(others):,} more like it" if others else ""
            message = f"text in a column of scores (got {cells[row].as_py()!r:.60}{more})"
            message += "; write it with a decimal point, or without a comma in thousands" if word == "," else _EMPTY
            self.problems.add(self.at(row, name), message, row, f"text in {name}")
        return values.copy()


def normalise(text: str) -> str:
    """Normalise a name or word: lower case, with spaces and dashes as underscores."""
    return _JOINTS.sub("_", text.strip().lower())


def in_english(name: str) -> str:
    """Normalise a name of a column: lower case, no accents, parts joined by underscores, known words in English."""
    plain = unicodedata.normalize("NFKD", _CAMEL.sub("_", name.strip()).lower())
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    return "_".join(_ENGLISH.get(part, part) for part in _JOINTS.sub("_", plain).split("_"))


def _source_columns(roles: Mapping[str, str]) -> set[str]:
    """Return the columns that roles are read from."""
    return {part for column in roles.values() for part in column.split("+")}


def abridge(names: Sequence[str], most: int = 8) -> str:
    """Join names by commas; of many, list the first few."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _decode(column: Any) -> Any:
    """Decode a dictionary column."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _as_written(text: Any) -> tuple[Any, str]:
    """Return numbers with a decimal point, no percent sign and no "/5", if all are written alike, and what changed."""
    notes, slashed = list[str](), pc.all(pc.match_substring(text, "/")).as_py()
    ends = pc.unique(pc.replace_substring_regex(text, "^[^/]*", "")).drop_null().to_pylist() if slashed else []
    if len(ends) == 1:
        text, notes = pc.utf8_rtrim_whitespace(pc.replace_substring(text, ends[0], "")), [f"{ends[0]} is left out"]
    if pc.all(pc.ends_with(text, "%")).as_py():
        text, notes = pc.utf8_rtrim(text, "% \u00a0\u202f"), ["percent signs are left out"]
    # 4,000 may be thousands, so that some cell has to show a comma that is not
    if pc.any(pc.match_substring_regex(text, _DECIMAL)).as_py() and not pc.any(pc.match_substring(text, ".")).as_py():
        text, notes = pc.replace_substring(text, ",", "."), [*notes, "decimal commas are read as points"]
    return text, " and ".join(notes)


class Coded(NamedTuple):
    """A text column: ``codes`` [n] are indices into ``words`` (a pyarrow array, with possible repeats or unused)."""

    words: Any
    codes: Ints


def encode(column: Any) -> Coded:
    """Encode a column of any type as distinct words and codes; nulls are the empty word."""
    encoded = pc.fill_null(_decode(column).cast(pa.string()), "").dictionary_encode()
    encoded = encoded.unify_dictionaries().combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    return Coded(encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def texts_and_codes(column: Any) -> tuple[list[str], Ints]:
    """Return the distinct texts of a column, and each row's index into them."""
    words, codes = encode(column)
    return words.to_pylist(), codes


_TIES: Final = ("tie", "tied", "draw", "both", "neither", "equal", "same", "c", "inconsistent", "tie (bothbad)",
                "bothbad", "both_bad", "0", "unentschieden", "empate", "平局")  # fmt: skip
_FIRST: Final = ("a", "1", "first", "left", "[[a]]", "assistant_a")
_SECOND: Final = ("b", "2", "-1", "second", "right", "[[b]]", "assistant_b")
_SLOTS: Final = dict.fromkeys(_TIES, 0.5) | dict.fromkeys(_FIRST, 1.0) | dict.fromkeys(_SECOND, 0.0)
"""Share of a win that a verdict's label gives the text in position 1."""

_TEXTS: Final = {f"{what}_{side}": float(side in "a1") for what in ("agent", "model", "system") for side in "ab12"}
_SWAPPED: Final = ("ba", "b,a", "swapped", "true", "yes", "2", "reversed", "vu", "1_swapped")
_STRAIGHT: Final = ("ab", "a,b", "original", "false", "no", "1", "0", "uv", "")

PairOrders = Mapping[str, int]
"""Number of pairs that a judge saw in ``both`` orders, and of those with each outcome (``same_text``,
``same_place``, ``first_place``, ``one_tie``)."""


def win_rates(cells: RoleTable, *, twice: bool) -> tuple[ScoreRecords, dict[str, PairOrders]]:
    """Compute win rates: the orders of a pair are averaged first, then opponents; a tie is one half."""
    columns = ("order_1", "order_2") if twice else ("winner",)
    cells.need("item", "agent_a", "agent_b", *columns)
    judges, judge = cells.judge_of_rows()
    sides = [cells.coded(role, name=True) for role in ("agent_a", "agent_b")]
    items, item = cells.coded("item")
    cells.problems.refuse()
    agents = sorted({*sides[0][0], *sides[1][0]})
    place = {name: k for k, name in enumerate(agents)}
    first, second = (np.array([place[name] for name in names])[codes] for names, codes in sides)
    cells.problems.rows(
        first == second, lambda row: (cells.at(row, "agent_b"), "an agent is compared with itself; leave such rows out")
    )
    swapped = np.zeros(first.size, dtype=bool)
    if "order" in cells.roles and not twice:
        words = cells.column("order")
        swapped, readable = swap_masks(words)
        cells.problems.rows(
            ~readable, lambda k: (cells.at(k, "order"), f"must be ab or ba (got {words[k].as_py()!r:.60})")
        )
    reversed = [np.zeros_like(swapped), ~swapped] if twice else [swapped]
    value = np.concatenate([_wins(cells, columns[k], first, second, place, way) for k, way in enumerate(reversed)])
    if twice:
        swapped = np.repeat([False, True], item.size)
        first, second, judge, item = (np.tile(array, 2) for array in (first, second, judge, item))
    # unreadable verdicts: a note, or a problem if none is readable
    unread = Counter[str]()
    for role, values in zip(columns, np.split(value, len(columns)), strict=True):
        labels, codes = texts_and_codes(cells.column(role))
        unread.update(labels[code] or "empty" for code in codes[np.isnan(values)].tolist())
    lost, listed = unread.total(), abridge([f"{word:.40} {n:,}" for word, n in sorted(unread.items())])
    if lost == value.size:
        rule = f"no verdict of {lost:,} can be read ({listed}); the name of either agent, A, B and tie can"
        cells.problems.add(cells.roles[columns[0]], rule)
    elif lost:
        cells.left.append(f"{lost:,} of {value.size:,} comparisons have no verdict that can be read: {listed}")
    cells.problems.refuse()
    of_low = np.where(first < second, value, 1 - value)  # share of the agent that is first by name
    order, usable, a = (first > second) ^ swapped, ~np.isnan(of_low), len(agents)
    pair = ((judge * len(items) + item) * a + np.minimum(first, second)) * a + np.maximum(first, second)
    in_order = (pair * 2 + order)[usable]
    keys, by_order = _means(in_order, of_low[usable])
    if again := in_order.size - keys.size:
        cells.filled.append(f"{again:,} comparisons repeat one of the same judge in the same order and are averaged")
    keys, by_pair = _means(keys // 2, by_order)
    ends = np.concatenate([keys // a**2 * a + keys // a % a, keys // a**2 * a + keys % a])
    cell, share = _means(ends, np.concatenate([by_pair, 1 - by_pair]))
    groups, at = np.unique(judge * len(items) + item, return_index=True)
    scored = ScoreRecords(
        items, cell // a % len(items), agents, cell % a, judges, cell // a // len(items),
        np.ones(cell.size, dtype=np.int64), ["share of wins"], share[:, None],
        at[np.searchsorted(groups, cell // a)] % cells.rows.num_rows,
    )  # fmt: skip
    sitting = pair * item.size + np.arange(item.size) % (item.size // 2) if twice else pair  # a row's orders are one
    outcomes = _outcomes(judges, judge[usable], sitting[usable], order[usable], of_low[usable])
    if not outcomes:
        first_of = np.bincount(np.where(swapped, second, first), minlength=a) / np.bincount(np.append(first, second))
        shares = abridge([f"{name} {percent(share)}" for name, share in zip(agents, first_of, strict=True)])
        known = "shown" if "order" in cells.roles else "named"  # without a column it is not known which was shown first
        cells.left.append(f"no pair was seen in both orders, so position bias is not measured; {known} first: {shares}")
    return scored, outcomes


def swap_masks(words: pa.Array | pa.ChunkedArray) -> tuple[Bools, Bools]:
    """Return masks of the rows with swapped order, and of readable rows; if 0 occurs, 1 means swapped."""
    lower = pc.utf8_lower(words)
    swapped = [*_SWAPPED, *("1" if pc.any(pc.equal(lower, "0")).as_py() else ())]
    masks = [pc.is_in(lower, pa.array(spellings)) for spellings in (swapped, [*swapped, *_STRAIGHT])]
    return masks[0].to_numpy(zero_copy_only=False), masks[1].to_numpy(zero_copy_only=False)


def _means(keys: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Return the distinct keys, and the mean value of each."""
    distinct, at = np.unique(keys, return_inverse=True)
    return distinct, np.bincount(at, weights=values) / np.bincount(at)


def _wins(cells: RoleTable, role: str, first: Ints, second: Ints, agents: Mapping[str, int], swapped: Bools) -> Floats:
    """Return the share of ``agent_a``: 1, one half, 0, or NaN if unreadable; ``swapped`` rows show its text second."""
    words, codes = texts_and_codes(cells.column(role))
    named = np.array([agents.get(word.translate(NAMES), -1) for word in words])[codes]
    plain = [word.strip().lower() for word in words]
    slot, content = (np.array([of.get(word, np.nan) for word in plain]) for of in (_SLOTS, _TEXTS))
    if {*plain} - {""} == {"0", "1"} - agents.keys():
        cells.problems.add(cells.roles[role], "0 and 1 alone do not say who won; write A, B and tie, or names")
    if np.isin(slot, (0.0, 1.0)).any():
        shown = "agent_b's" if swapped.all() else "agent_b's in rows that say so" if swapped.any() else "agent_a's"
        cells.filled.append(f"{cells.roles[role]} names places: the first is the text that was shown first, {shown}")
    by_place = np.where(np.isnan(content[codes]), np.abs(swapped - slot[codes]), content[codes])
    return np.where(named == first, 1.0, np.where(named == second, 0.0, np.where(named >= 0, np.nan, by_place)))


def _outcomes(judges: Sequence[str], judge: Ints, pair: Ints, order: Bools, of_low: Floats) -> dict[str, PairOrders]:
    """Count the outcomes of pairs that each judge saw in both orders; repeats of one order have equal weights."""
    keys, at = np.unique(pair, return_inverse=True)
    with np.errstate(invalid="ignore"):
        (won, tie, lost), (won_too, tie_too, lost_too) = (
            [
                np.bincount(at[those], of_low[those] == value, keys.size) / np.bincount(at[those], minlength=keys.size)
                for value in (1.0, 0.5, 0.0)
            ]
            for those in (~order, order)
        )
    both, owner = ~np.isnan(won) & ~np.isnan(won_too), np.zeros(keys.size, dtype=np.int64)
    owner[at] = judge
    kinds = {
        "both": np.ones(keys.size), "same_text": won * won_too + lost * lost_too,
        "same_place": won * lost_too + lost * won_too, "first_place": won * lost_too,
        "one_tie": tie * (1 - tie_too) + (1 - tie) * tie_too,
    }  # fmt: skip
    counts = {name: np.rint(np.bincount(owner[both], share[both], len(judges))).astype(int).tolist()
              for name, share in kinds.items()}  # fmt: skip
    return {name: {kind: tally[k] for kind, tally in counts.items()}
            for k, name in enumerate(judges) if counts["both"][k]}  # fmt: skip
