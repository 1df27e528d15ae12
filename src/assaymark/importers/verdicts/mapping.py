"""Which column of a verdict log is what: spellings that are known, and a small map for all others."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from assaymark.errors import InputError
from assaymark.importers.verdicts.findings import Findings
from assaymark.importers.wording import ShapeError, as_shape
from assaymark.plan import read_toml
from assaymark.records import SlotVerdict

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

_VERDICT_OF: Final[Mapping[str, SlotVerdict]] = {word: verdict for verdict, words in LABELS.items() for word in words}
_JOINTS: Final = re.compile(r"[ -]+")
_NEEDED: Final = ("judge", "question", "slot_1", "slot_2", "verdict")


class VerdictMap(BaseModel):
    """Which column is what, which rows to read, and what the words of the verdict column mean.

    Every field is optional: a column that is not named here is looked for under its usual spellings (`SPELLINGS`), a
    word that ``labels`` does not hold under `LABELS`. ``filter`` keeps the rows whose column has the value, or one of
    the values. ``judge_name`` is for a log of one judge without a column for it. ``verdict_names`` says what a verdict
    names: slots, contents, or, by default, whichever fits; a word that could be both is then refused.

    >>> VerdictMap(question="qid", labels={"X": "1", "Y": "2"}, filter={"bench": "MTBench"}).question
    'qid'
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
        """What a word means whatever its row holds; None for one that is not known.

        >>> VerdictMap().label("[[C]]"), VerdictMap(labels={"C": "2"}).label("C"), VerdictMap().label("gpt-4")
        ('tie', '2', None)
        """
        if word in self.labels:
            return self.labels[word]
        known = _VERDICT_OF.get(_plain(word))
        return None if self.verdict_names == "contents" and known in ("1", "2") else known


def verdict_map(source: str = "map", **fields: Any) -> VerdictMap:
    """A map from keyword arguments, such as the flags of a command.

    >>> verdict_map(judges="grader")
    Traceback (most recent call last):
    assaymark.errors.InputError: map: judges: unknown key (allowed: version, judge, question, slot_1, slot_2, verdict, \
trial, pair, judge_name, verdict_names, delimiter, labels, filter)

    Raises
    ------
    InputError
        Fields that are wrong or unknown: all of them at once.
    """
    try:
        made: VerdictMap = as_shape(VerdictMap, fields)
    except ShapeError as exc:
        raise InputError(source, exc.problems) from None
    return made


def parse_verdict_map(text: str, *, source: str = "map.toml") -> VerdictMap:
    """A map from its TOML.

    >>> parse_verdict_map('judge = "grader"\\n[filter]\\nbench = "MTBench"').wanted
    {'bench': ('MTBench',)}

    Raises
    ------
    InputError
        Not TOML, or fields that are wrong or unknown: all of them at once.
    """
    return verdict_map(source, **read_toml(text, source=source))


def find_columns(header: Sequence[str], mapping: VerdictMap, found: Findings) -> dict[str, int]:
    """The place of each of our fields in a header; what is missing goes to ``found``, with the closest column.

    >>> find_columns(["QID", "Judge Model", "model_a", "model_b", "winner"], VerdictMap(question="QID"), Findings())
    {'judge': 1, 'question': 0, 'slot_1': 2, 'slot_2': 3, 'verdict': 4}
    """
    places: dict[str, int] = {}
    for field in SPELLINGS:
        named = getattr(mapping, field)
        column = _named(header, named, field, found) if named else _known(header, field, places, found)
        if column is not None:
            places[field] = _single(header, column, found)
    if mapping.judge_name and "judge" in places:
        seen = header[places["judge"]]
        found.add("header", "judge_name", f"the log has a column {seen!r} for the judge; leave judge_name out")
    lost = [field for field in _NEEDED if field not in places and getattr(mapping, field) is None]
    for field in lost:
        if not (field == "question" and "pair" in places) and not (field == "judge" and mapping.judge_name):
            found.add("header", field, _missing(header, field, places))
    return places


def find_filters(header: Sequence[str], mapping: VerdictMap, found: Findings) -> dict[str, int]:
    """The place of each column that rows are chosen by."""
    places = {column: _named(header, column, f"filter {column}", found) for column in mapping.wanted}
    return {column: _single(header, place, found) for column, place in places.items() if place is not None}


def _named(header: Sequence[str], column: str, field: str, found: Findings) -> int | None:
    """The place of a column that the map names."""
    names = [name.strip() for name in header]
    if column.strip() in names:
        return names.index(column.strip())
    found.add("header", field, f"no column {column!r} (the log has {_shown(header)}){_closest(header, [column])}")
    return None


def _known(header: Sequence[str], field: str, places: Mapping[str, int], found: Findings) -> int | None:
    """The place of a column that has one of the usual spellings; slot 2 goes by the spelling of slot 1."""
    names = [_plain(name) for name in header]
    spelled = SPELLINGS[field]
    if field in ("slot_1", "slot_2"):
        both = [pair for pair in _SLOTS if pair[0] in names and pair[1] in names]
        spelled = tuple(pair[field == "slot_2"] for pair in both) or spelled
    held = [name for name in spelled if name in names and names.index(name) not in places.values()]
    if field == "verdict" and len(held) > 1:
        found.add("header", field, f"could be any of {', '.join(held)}; say which in the map: verdict = {held[0]!r}")
    return names.index(held[0]) if held else None


def _single(header: Sequence[str], place: int, found: Findings) -> int:
    """``place``, after a note if its name stands in the header more than once."""
    name = header[place].strip()
    if sum(other.strip() == name for other in header) > 1:
        found.add("header", "header", f"column {name!r} stands there more than once")
    return place


def _missing(header: Sequence[str], field: str, places: Mapping[str, int]) -> str:
    """What to say of a field without a column."""
    free = [name for place, name in enumerate(header) if place not in places.values()]
    known = ", ".join(SPELLINGS[field][:4])
    return (
        f"no column for it (the log has {_shown(header)}; known are {known} ...)"
        f"{_closest(free, SPELLINGS[field])}; name it in the map: {field} = ..."
    )


def _closest(header: Sequence[str], wanted: Sequence[str]) -> str:
    """A question after the column that is spelled most like one that is wanted."""
    plain = {_plain(name): name.strip() for name in header}
    scored = [
        (difflib.SequenceMatcher(None, _plain(word), close).ratio(), plain[close])
        for word in wanted
        for close in difflib.get_close_matches(_plain(word), plain, n=1)
    ]
    return f"; is it {max(scored)[1]!r}?" if scored else ""


def _shown(header: Sequence[str]) -> str:
    """The columns of a header, the first dozen of many."""
    more = f" and {len(header) - 12} more" if len(header) > 12 else ""
    return ", ".join(f"{name.strip():.40}" for name in header[:12]) + more


def _plain(text: str) -> str:
    """A name without what spellings differ in: case, spaces, dashes.

    >>> _plain(" Slot-1 Model ")
    'slot_1_model'
    """
    return _JOINTS.sub("_", text.strip().lower())
