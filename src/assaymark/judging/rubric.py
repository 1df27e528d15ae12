"""Rubrics: what the judges are asked, with a text for every point of every scale."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from assaymark.errors import UnknownNameError
from assaymark.plan import read_model
from assaymark.records import AGGREGATE

# Files that come with the package and are chosen by name: rubrics and scoring plans.


def shipped_names(folder: str) -> tuple[str, ...]:
    """The names of the files in a folder of this package, in alphabetical order."""
    names = (entry.name for entry in (files("assaymark.judging") / folder).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def shipped_text(kind: str, folder: str, name: str) -> str:
    """The file ``name`` in a folder of this package."""
    if name not in shipped_names(folder):
        raise UnknownNameError(kind, name, shipped_names(folder))
    return (files("assaymark.judging") / folder / f"{name}.toml").read_text(encoding="utf-8")


SCALE = (1, 2, 3, 4, 5)
"""The points of every dimension's scale, worst first."""

_FOLDER = "rubrics"

PassCondition = Literal["cell_b: no verbosity-bias"]

_Line = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$")]


class _Strict(BaseModel):
    """Base of the parts of a rubric file: immutable, strict types, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Dimension(_Strict):
    """One question with five anchors. ``anchors[0]`` describes a 1, ``anchors[4]`` a 5."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    question: _Line
    anchors: Annotated[tuple[_Line, ...], Field(min_length=len(SCALE), max_length=len(SCALE))]


class Rubric(_Strict):
    """A version of the grading rules: its dimensions in the order in which judges see them.

    ``note`` stands above the dimensions in every prompt. ``pass_condition`` is what a variant has to show before it may
    be said to have mended what it was written for.
    """

    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]
    title: _Line
    note: _Line | None = None
    pass_condition: PassCondition | None = None
    dimensions: Annotated[tuple[Dimension, ...], Field(alias="dimension", min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> Rubric:
        names = self.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"each dimension needs a name of its own (got {', '.join(twice)} more than once)")
        if AGGREGATE in names:
            raise ValueError(f"{AGGREGATE!r} names the mean over the dimensions and cannot name one of them")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions, in the rubric's order."""
        return tuple(dimension.name for dimension in self.dimensions)

    @property
    def text(self) -> str:
        """The rubric as judges read it; its bytes enter every prompt and the plan hash."""
        blocks = [_dimension_text(dimension) for dimension in self.dimensions]
        return "\n\n".join(blocks if self.note is None else [self.note, *blocks])

    def changed(self, other: Rubric) -> frozenset[str]:
        """The dimensions that another rubric words otherwise, or has alone."""
        mine, theirs = ({d.name: _dimension_text(d) for d in rubric.dimensions} for rubric in (self, other))
        return frozenset(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))


def _dimension_text(dimension: Dimension) -> str:
    """One dimension as a block of seven lines."""
    anchors = (f"  {point} = {anchor}" for point, anchor in zip(SCALE, dimension.anchors, strict=True))
    return "\n".join((dimension.name, f"  {dimension.question}", *anchors))


def parse_rubric(text: str, *, source: str = "rubric.toml") -> Rubric:
    """A rubric from the text of its TOML file."""
    return read_model(Rubric, text, source=source)


def rubric_names() -> tuple[str, ...]:
    """The names of the rubrics that come with the package, in alphabetical order."""
    return shipped_names(_FOLDER)


@cache
def load_rubric(name: str) -> Rubric:
    """The rubric ``name`` that comes with the package.

    Raises
    ------
    UnknownNameError
        There is no such rubric; the message offers the closest name.
    """
    return parse_rubric(shipped_text("rubric", _FOLDER, name), source=f"rubric {name}")
