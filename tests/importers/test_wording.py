"""Problems of shape: every kind of error in our words, and what would have been allowed."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Generic, Literal, TypeVar

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from assaymark.importers.read import NAME, SHA256, ShapeError, as_shape, json_as_shape

T = TypeVar("T")
_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Leaf(BaseModel):
    model_config = _STRICT

    name: Annotated[str, Field(pattern=NAME)] = "x"
    share: Annotated[float, Field(ge=0, le=1)] = 0.5
    count: Annotated[int, Field(gt=0, lt=9)] | None = None


class Tree(BaseModel, Generic[T]):
    model_config = _STRICT

    inner: T
    many: Annotated[list[Leaf], Field(min_length=1, max_length=2)] = [Leaf()]
    named: dict[str, Leaf] = {}
    kind: Literal["a", "b"] = "a"
    hash: Annotated[str, Field(pattern=SHA256)] | None = None
    code: Annotated[str, Field(pattern="^A[0-9]$")] = "A1"
    good: bool = True


class Open(BaseModel):
    model_config = ConfigDict(extra="forbid")

    day: date = date(2026, 5, 1)
    at: AwareDatetime | None = None
    text: Annotated[str, Field(min_length=2, max_length=3)] = "ab"
    many: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "inner: is missing; a value is needed"),
        ('{"inner": {}, "outer": {"a": 1}}', "outer: unknown key (allowed: inner, many, named, kind, hash, "),
        ('{"inner": {"nme": "y"}}', "inner.nme: unknown key (allowed: name, share, count)"),
        ('{"inner": {}, "many": [{"nme": 1}]}', "many.0.nme: unknown key (allowed: name, share, count)"),
        ('{"inner": {}, "named": {"k": {"n": 1}}}', "named.k.n: unknown key (allowed: name, share, count)"),
        ('{"inner": 3}', "inner: must be an object (got 3)"),
        ('{"inner": {"share": 1.4}}', "inner.share: must be at most 1 (got 1.4)"),
        ('{"inner": {"share": -1}}', "inner.share: must be at least 0 (got -1)"),
        ('{"inner": {"share": NaN}}', "inner.share: must be a finite number (got nan)"),
        ('{"inner": {"share": "much"}}', "inner.share: must be a number (got 'much')"),
        ('{"inner": {"count": 0}}', "inner.count: must be more than 0 (got 0)"),
        ('{"inner": {"count": 9}}', "inner.count: must be less than 9 (got 9)"),
        ('{"inner": {"count": 1.5}}', "inner.count: must be a whole number (got 1.5)"),
        ('{"inner": {"name": "a|b"}}', "inner.name: cannot be a name: 1 to 120 characters, "),
        ('{"inner": {"name": {"a": 1}}}', "inner.name: must be text (got an object)"),
        ('{"inner": {"name": null}}', "inner.name: must be text (got nothing)"),
        ('{"inner": {}, "many": []}', "many: must hold at least 1 (got a list of 0)"),
        ('{"inner": {}, "many": [{}, {}, {}]}', "many: must hold at most 2 (got a list of 3)"),
        ('{"inner": {}, "many": {}}', "many: must be a list (got an object)"),
        ('{"inner": {}, "kind": "c"}', "kind: must be 'a' or 'b' (got 'c')"),
        ('{"inner": {}, "hash": "12"}', "hash: must be a sha256: 64 digits of 0-9 and a-f (got '12')"),
        ('{"inner": {}, "code": "B"}', "code: must be written like ^A[0-9]$ (got 'B')"),
        ('{"inner": {}, "good": 1}', "good: must be true or false (got 1)"),
        ('{"inner": {}, "code": "%s"}' % ("B" * 99), "BBB...)"),
        ("{", "not JSON: "),
    ],
)  # fmt: skip
def test_json_problems_are_in_our_words(text, said):
    with pytest.raises(ShapeError, match=re.escape(said)) as caught:
        json_as_shape(Tree[Leaf], text)
    (problem,) = caught.value.problems
    assert len(str(problem)) < 200


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"tree": 1}, "tree: unknown key (allowed: day, at, text, many)"),
        ({"day": "Friday"}, "day: must be a day such as 2026-05-01 (got 'Friday')"),
        ({"at": "2026-05-01T13:30:00"}, "at: has no time zone; allowed: 2026-05-01T13:30:00Z or with +02:00 (got"),
        ({"at": "noon"}, "at: must be a time such as 2026-05-01T13:30:00Z (got 'noon')"),
        ({"text": "a"}, "text: must have at least 2 characters (got 'a')"),
        ({"text": "abcd"}, "text: must have at most 3 characters (got 'abcd')"),
        ({"many": ["9" * 5000]}, "many.0: must be a whole number of at most 19 digits"),
        ({"many": 7}, "many: must be a list (got 7)"),
        ({"text": b"\xff"}, "text: "),
        (3, "must be an object (got 3)"),
    ],
)
def test_problems_of_trees_are_in_our_words(value, said):
    with pytest.raises(ShapeError, match=re.escape(said)) as caught:
        as_shape(Open, value)
    assert len(str(caught.value)) < 300


def test_a_shape_is_made():
    assert as_shape(Open, {"many": [1]}).many == (1,)
    assert json_as_shape(Tree[Leaf], '{"inner": {"share": 0.25}}').inner.share == 0.25
