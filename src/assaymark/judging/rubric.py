"""Rubrics: the questions for the judges, with anchor texts for the points of the scale."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.plan import Frozen, read_model, shipped_names, shipped_text
from assaymark.protocol import RubricChoice
from assaymark.records import AGGREGATE, JSON, duplicates

_FOLDER = "rubrics"
_POINT: Final = re.compile(r"-?\d{1,6}")
_MOST_POINTS: Final = 1000

PassCondition = Literal["cell_b: no verbosity-bias"]

_Line = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$")]
_Lines = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x09\x0b-\x1f]+$")]
_LISTED = 11  # points up to which a reply's schema lists them, which every provider can enforce


class Dimension(Frozen):
    """One question with its anchors, worst first: a text for each point in ``at``, by default for every point.

    In a file ``anchors`` is a list with one text per point, or a table of points and texts that includes both ends.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: _Line | None = None
    question: _Line
    weight: Annotated[float, Field(ge=0)] | None = None
    at: tuple[int, ...] = (1, 2, 3, 4, 5)
    anchors: tuple[_Line, ...]

    @model_validator(mode="before")
    @classmethod
    def _by_point(cls, raw: Any) -> Any:
        """Convert a table of anchors to a list of texts and a list of points."""
        anchors = raw.get("anchors") if isinstance(raw, Mapping) else None
        if not isinstance(anchors, Mapping) or not all(_POINT.fullmatch(str(point)) for point in anchors):
            return raw
        rows = sorted((int(point), text) for point, text in anchors.items())
        return {**raw, "at": [point for point, _ in rows], "anchors": [text for _, text in rows]}

    @field_validator("anchors")
    @classmethod
    def _one_each(cls, anchors: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        wanted = info.data.get("at", anchors)
        if len(anchors) != len(wanted):
            raise ValueError(
                f"must be one text for each of {len(wanted)} points, worst first (got {len(anchors)}); a table such as "
                '{ 1 = "...", 5 = "..." } describes some of them'
            )
        return anchors


class Rubric(Frozen):
    """A version of the grading rules: its dimensions in the order in which judges see them.

    ``scale`` has the lowest and the highest integer score. ``instructions`` precede the dimensions in every prompt.
    ``pass_condition`` is the result that a variant of the rubric must show before it may be said to fix the problem
    that it was written for.
    """

    model_config = ConfigDict(populate_by_name=True)

    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,80}$")]
    title: _Line
    scale: tuple[int, int] = (1, 5)
    instructions: _Lines | None = None
    pass_condition: PassCondition | None = None
    dimensions: Annotated[tuple[Dimension, ...], Field(alias="dimension", min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _points(cls, raw: Any) -> Any:
        """Assign lists of anchors to every point of the scale."""
        named = raw.get("dimension") if isinstance(raw, Mapping) else None
        try:
            low, high = map(int, raw.get("scale", (1, 5)))
        except (TypeError, ValueError, AttributeError):
            return raw
        if not isinstance(named, (list, tuple)) or not 0 < high - low <= _MOST_POINTS:
            return raw
        every = tuple(range(low, high + 1))
        return {**raw, "dimension": [{"at": every, **row} if isinstance(row, Mapping) else row for row in named]}

    @field_validator("scale")
    @classmethod
    def _ascending(cls, scale: tuple[int, int]) -> tuple[int, int]:
        if not 0 < scale[1] - scale[0] <= _MOST_POINTS:
            problem = f"names its lowest and its highest whole score, at most {_MOST_POINTS} points apart"
            raise ValueError(f"{problem} (got {list(scale)})")
        return scale

    @field_validator("dimensions")
    @classmethod
    def _consistent(cls, dimensions: tuple[Dimension, ...], info: ValidationInfo) -> tuple[Dimension, ...]:
        names, wrong = [dimension.name for dimension in dimensions], []
        twice = duplicates(names)
        if twice:
            wrong.append(f"each dimension needs a unique name (got {', '.join(twice)} more than once)")
        if AGGREGATE in names:
            wrong.append(f"{AGGREGATE!r} names the mean over the dimensions and cannot name one of them")
        low, high = info.data.get("scale", (dimensions[0].at[0], dimensions[0].at[-1]))
        off = [dimension.name for dimension in dimensions if not (dimension.at[0] == low and dimension.at[-1] == high)]
        if off:
            wrong.append(f"anchors describe both ends of the scale, {low} and {high} (not so: {', '.join(off)})")
        unweighed = [dimension.name for dimension in dimensions if dimension.weight is None]
        if 0 < len(unweighed) < len(names):
            wrong.append(f"every dimension has a weight, 0 allowed, or none has (missing: {', '.join(unweighed)})")
        elif not unweighed and not sum(dimension.weight or 0 for dimension in dimensions):
            wrong.append("at least one weight must be above 0")
        if wrong:
            raise ValueError("; ".join(wrong))
        return dimensions

    @property
    def weights(self) -> dict[str, float] | None:
        """The weights of the dimensions in the aggregate; None if they are equal."""
        shares = {dimension.name: dimension.weight for dimension in self.dimensions if dimension.weight is not None}
        return shares or None

    @property
    def points(self) -> dict[str, JSON]:
        """The JSON schema of one score."""
        low, high = self.scale
        if high - low < _LISTED:
            return {"type": "integer", "enum": list(range(low, high + 1))}
        return {"type": "integer", "description": f"{low} to {high}"}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions, in the rubric's order."""
        return tuple(dimension.name for dimension in self.dimensions)

    @property
    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield the rubric as table rows: dimension (empty for the instructions), kind of text, text."""
        if self.instructions is not None:
            yield "", "instructions", self.instructions
        for dimension in self.dimensions:
            yield dimension.name, "question", dimension.question
            yield from (
                (dimension.name, str(point), text) for point, text in zip(dimension.at, dimension.anchors, strict=True)
            )

    @property
    def text(self) -> str:
        """The rubric as shown to judges; its bytes enter every prompt and the plan hash."""
        blocks = [_dimension_text(dimension) for dimension in self.dimensions]
        return "\n\n".join(blocks if self.instructions is None else [self.instructions, *blocks])

    def changed(self, other: Rubric) -> frozenset[str]:
        """Return the dimensions that another rubric words differently or that only it has."""
        texts, other_texts = ({d.name: _dimension_text(d) for d in rubric.dimensions} for rubric in (self, other))
        return frozenset(name for name in {*texts, *other_texts} if texts.get(name) != other_texts.get(name))


def _dimension_text(dimension: Dimension) -> str:
    """Render one dimension as a block: its name, its question, and a line for each anchor."""
    anchors = (f"  {point} = {anchor}" for point, anchor in zip(dimension.at, dimension.anchors, strict=True))
    return "\n".join((dimension.name, f"  {dimension.question}", *anchors))


def parse_rubric(text: str, source: str = "rubric.toml") -> Rubric:
    """Parse a rubric from the text of its TOML file."""
    return read_model(Rubric, text, source)


@cache
def _parsed(text: str, source: str) -> Rubric:
    return parse_rubric(text, source)


def rubric_of(choice: RubricChoice) -> Rubric:
    """Return the rubric of a plan: parsed from the text in the plan, or a built-in one by name."""
    return load_rubric(choice.name) if choice.text is None else _parsed(choice.text, f"rubric {choice.name}")


def find_rubric(named: str) -> Rubric:
    """Find a rubric by its text, by the path of a ``.toml`` file, or by the name of a built-in one."""
    if "\n" in named:
        return _parsed(named, "rubric")
    if not named.endswith(".toml"):
        return load_rubric(named)
    try:
        return parse_rubric(Path(named).read_text(encoding="utf-8"), source=named)
    except FileNotFoundError:
        raise UnknownNameError("rubric", named, rubric_names()) from None
    except (OSError, UnicodeDecodeError) as exc:
        raise InputError(named, [Problem("", f"cannot be read as a rubric ({exc})")]) from None


def rubric_names() -> tuple[str, ...]:
    """Return the names of the built-in rubrics in alphabetical order."""
    return shipped_names(_FOLDER)


@cache
def load_rubric(name: str) -> Rubric:
    """Load the built-in rubric ``name``."""
    return parse_rubric(shipped_text("rubric", _FOLDER, name), source=f"rubric {name}")
