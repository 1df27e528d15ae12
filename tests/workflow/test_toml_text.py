"""What is written as TOML is read back as it was."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.plan import toml_text, toml_value

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
SCALARS = st.one_of(TEXTS, NUMBERS, st.dates(), st.times(), st.datetimes())
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3))
TABLES = st.recursive(
    st.dictionaries(TEXTS, VALUES, max_size=3),
    lambda inner: st.dictionaries(TEXTS, st.one_of(VALUES, inner, st.lists(inner, min_size=1, max_size=2)), max_size=3),
    max_leaves=6,
)


@given(st.one_of(VALUES, TABLES))
def test_a_value_on_one_line(value):
    text = toml_value(value)
    assert text.isprintable()
    assert tomllib.loads(f"x = {text}") == {"x": value}


@given(TABLES)
def test_a_document(table):
    assert tomllib.loads(toml_text(table)) == _without_empty(table)


def test_characters_that_are_hard_to_write():
    for char in ('"', "\\", "\x00", "\n", "\x7f", "\u2028", "\uffff", "\U000e0041", "\U0010ffff", "é"):
        assert tomllib.loads(f"x = {toml_value(f'a{char}1')}") == {"x": f"a{char}1"}
    with pytest.raises(tomllib.TOMLDecodeError):  # half of a character is refused by whoever reads it
        tomllib.loads(f"x = {toml_value(chr(0xD800))}")


def _without_empty(value):
    """A table without the empty tables inside it, which a document leaves out."""
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_empty(item) for key, item in value.items() if item != {}}
    return value
