"""Which column of a verdict log is what: the map a person writes, the usual spellings, and what the words mean."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from assaymark.errors import InputError
from assaymark.importers.read import ShapeError, as_shape
from assaymark.importers.verdict_log import Findings
from assaymark.plan import read_toml
from assaymark.records import SlotVerdict
from assaymark.rows import Rows

Column = Annotated[str, Field(min_length=1)]

_SLOTS: Final = (
    ("slot1_model", "slot2_model"),
    ("slot_1", "slot_2"),
    ("slot1", "slot2"),
    ("slot1_content", "slot2_content"),
    ("model_a", "model_b"),
    ("model_1", "model_2"),
    ("candidate_a", "candidate_b"),
    ("candidate_1", "candidate_2"),
    ("content_1", "content_2"),
    ("first", "second"),
    ("agent_a", "agent_b"),
    ("response_a", "response_b"),
    ("output_1", "output_2"),
)

SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "judge": ("judge", "judge_model", "judge_name", "judge_id", "grader", "rater"),
        "question": ("question_id", "question", "item_id", "item", "prompt_id", "task_id", "qid"),
        "slot_1": tuple(one for one, _ in _SLOTS),
        "slot_2": tuple(two for _, two in _SLOTS),
        "verdict": ("verdict", "winner", "judgment", "judgement", "preference"),
        "trial": ("trial", "rep", "repetition", "repeat", "replicate"),
        "pair": ("pair_id", "pair"),
        "order_1": ("order_1", "verdict_1", "winner_ab", "verdict_ab"),
        "order_2": ("order_2", "verdict_2", "winner_ba", "verdict_ba"),
        "truth": ("truth", "human_winner", "gold_label"),
    }
)
"""Column names that are known without a map, the first that a file has is taken; case, spaces and dashes are free."""

LABELS: Final[Mapping[SlotVerdict, tuple[str, ...]]] = MappingProxyType(
    {
        "1": ("1", "1.0", "a", "[[a]]", "slot_1", "slot1", "model_a", "model_1", "assistant_a", "first"),
        "2": ("2", "2.0", "b", "[[b]]", "slot_2", "slot2", "model_b", "model_2", "assistant_b", "second"),
        "tie": ("tie", "c", "[[c]]", "draw", "tie_(bothbad)", "both_bad", "bothbad"),
        "abstain": ("abstain", "abstention"),
        "invalid": ("invalid", "error"),
    }
)
"""Words that are known as verdicts without a map; case, spaces and dashes are free."""

VERDICT_OF: Final[Mapping[str, SlotVerdict]] = {word: verdict for verdict, words in LABELS.items() for word in words}
"""The verdict of each known word."""
_BAND: Final = r"^-?\d*\.?\d+(\.\.-?\d*\.?\d+)?$"
_JOINTS: Final = re.compile(r"[ -]+")
ORDERS: Final = frozenset({"order_1", "order_2"})
"""The fields of two verdicts in one row."""


class VerdictMap(BaseModel):
    """Which column is what, which rows to read, and what the words of the verdict column mean.

    Every field is optional: a column that is not named here is looked for under its usual spellings (`SPELLINGS`), a
    word that ``labels`` does not hold under `LABELS`. A column is a name, a dotted path into an object, or several
    joined by ``+``. ``order_1`` and ``order_2`` are two verdicts in one row: on the pair as it is named, and with the
    contents swapped. ``order`` says which content a row showed first, where rows name a pair in one way. ``truth``
    names the better content, ``text_1`` and ``text_2`` the texts that were shown, where the slots hold names: equal
    texts are null pairs. ``threshold`` reads a number as a verdict: above it slot ``above``, below it the other, on it
    (or within ``"low..high"``) a tie. ``filter`` keeps the rows whose column has the value, or one of the values.
    ``judge_name`` is for a log of one judge without a column for it. ``verdict_names`` says what a verdict names:
    slots, contents (1 and 2 are then those of the row as it is named), or, by default, whichever fits; a word that
    could be both is then refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal["1"] = "1"
    judge: Column | None = None
    question: Column | None = None
    slot_1: Column | None = None
    slot_2: Column | None = None
    verdict: Column | None = None
    trial: Column | None = None
    pair: Column | None = None
    order_1: Column | None = None
    order_2: Column | None = None
    order: Column | None = None
    truth: Column | None = None
    text_1: Column | None = None
    text_2: Column | None = None
    threshold: Annotated[str, Field(pattern=_BAND)] | None = None
    above: Literal["1", "2"] = "2"
    judge_name: Column | None = None
    verdict_names: Literal["auto", "slots", "contents"] = "auto"
    delimiter: Literal[",", ";", "\t", "|"] | None = None
    labels: dict[str, SlotVerdict] = Field(default_factory=dict)
    filter: dict[Column, str | int | tuple[str | int, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_judge(self) -> VerdictMap:
        if self.judge and self.judge_name:
            raise ValueError("judge names a column and judge_name the one judge of a log; give one of them")
        return self

    @property
    def wanted(self) -> dict[str, tuple[str, ...]]:
        """The values that each column of ``filter`` may have, as text."""
        return {
            column: tuple(map(str, values if isinstance(values, tuple) else (values,)))
            for column, values in self.filter.items()
        }

    def label(self, word: str) -> SlotVerdict | None:
        """What a word means whatever its row holds; None for one that is not known."""
        if word in self.labels:
            return self.labels[word]
        if self.threshold is not None and (number := _number(word)) is not None:
            low, *rest = map(float, self.threshold.split(".."))
            if low <= number <= (rest or [low])[0]:
                return "tie"
            return self.above if number > low else "1" if self.above == "2" else "2"
        return VERDICT_OF.get(plain_word(word))


def _number(word: str) -> float | None:
    try:
        found = float(word)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def verdict_map(source: str = "map", **fields: Any) -> VerdictMap:
    """A map from keyword arguments, such as the flags of a command."""
    try:
        return as_shape(VerdictMap, fields)
    except ShapeError as exc:
        raise InputError(source, exc.problems) from None


def parse_verdict_map(text: str, *, source: str = "map.toml") -> VerdictMap:
    """A map from its TOML."""
    return verdict_map(source, **read_toml(text, source=source))


def find_columns(rows: Rows, mapping: VerdictMap, found: Findings) -> dict[str, str]:
    """The column of each of our fields; what is missing goes to ``found``, with the closest column."""
    header = rows.table.column_names
    fields: dict[str, str] = {}
    plain = [plain_word(name) for name in header]
    both = [pair for pair in _SLOTS if set(pair) <= set(plain)]
    for field in (*SPELLINGS, "order", "text_1", "text_2"):
        spelled = SPELLINGS.get(field, ())
        if named := getattr(mapping, field):
            if is_there(rows, named, field, found):
                fields[field] = named
            continue
        if field in ("slot_1", "slot_2"):  # slot 2 goes by the spelling of slot 1
            spelled = tuple(pair[field == "slot_2"] for pair in both) or spelled
        held = [name for name in spelled if name in plain and header[plain.index(name)] not in fields.values()]
        two = ORDERS.issubset(_spelled(plain) | {one for one in ORDERS if getattr(mapping, one)})
        if field == "verdict" and two:
            continue  # both orders are in one row; what the log makes of them is not read
        if field == "verdict" and len(held) > 1:
            could = f"could be any of {', '.join(held)}; say which in the map: verdict = {held[0]!r}"
            found.add("header", field, could)
        if held:
            fields[field] = header[plain.index(held[0])]
    if mapping.judge_name and "judge" in fields:
        what = f"the log has a column {fields['judge']!r} for the judge; leave judge_name out"
        found.add("header", "judge_name", what)
    free = [name for name in header if name not in fields.values()]
    two = ORDERS.issubset(fields)
    needed = ("judge", "question") if two else ("judge", "question", "slot_1", "slot_2", "verdict")
    for field in (*needed, *(sorted(ORDERS) if ORDERS & fields.keys() else ())):
        stands_in = (field == "question" and "pair" in fields) or (field == "judge" and mapping.judge_name)
        if field not in fields and getattr(mapping, field) is None and not stands_in:
            known = ", ".join(SPELLINGS[field][:4])
            what = f"no column for it (the log has {_shown(header)}; known are {known} ...)"
            closest = _closest(free, SPELLINGS[field])
            found.add("header", field, f"{what}{closest}; name it in the map: {field} = ...")
    return fields


def _spelled(plain: Sequence[str]) -> set[str]:
    """Our fields that a header has under one of their usual spellings."""
    return {field for field, names in SPELLINGS.items() if set(names) & set(plain)}


def is_there(rows: Rows, column: str, field: str, found: Findings) -> bool:
    """Whether a file has a column, after a note if it has not."""
    try:
        rows.column(column)
    except InputError as exc:
        found.add("header", field, exc.problems[0].what)
        return False
    return True


def _closest(header: Sequence[str], wanted: Sequence[str]) -> str:
    """A question after the column that is spelled most like one that is wanted."""
    plain = {plain_word(name): name.strip() for name in header}
    scored = [
        (difflib.SequenceMatcher(None, plain_word(word), close).ratio(), plain[close])
        for word in wanted
        for close in difflib.get_close_matches(plain_word(word), plain, n=1)
    ]
    return f"; is it {max(scored)[1]!r}?" if scored else ""


def _shown(header: Sequence[str]) -> str:
    """The columns of a header, the first dozen of many."""
    more = f" and {len(header) - 12} more" if len(header) > 12 else ""
    return ", ".join(f"{name.strip():.40}" for name in header[:12]) + more


def plain_word(text: str) -> str:
    """A name without what spellings differ in: case, spaces, dashes."""
    return _JOINTS.sub("_", text.strip().lower())
