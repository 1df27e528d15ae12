"""The call key is the sha256 of canonical JSON of everything that can change the answer."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.engine import CallSpec, Message, Text
from assaymark.records import canonical_json, sha256_text

texts = st.text(st.characters(codec=None), max_size=20)  # lone surrogates included
parts = st.lists(texts.map(Text.of), max_size=3).map(tuple)
messages = st.lists(st.builds(Message, st.sampled_from(["system", "user"]), parts), max_size=3).map(tuple)
values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
specs = st.builds(
    CallSpec, model=texts, messages=messages, template=texts, trial=st.integers(1, 50), order=st.integers(0, 1),
    seed=st.none() | st.integers(), temperature=st.none() | st.floats(0, 2), effort=st.none() | texts,
    schema=st.none() | texts.map(Text.of), again=st.booleans(), args=st.dictionaries(texts, values, max_size=3),
)  # fmt: skip


def by_definition(call: CallSpec) -> str:
    """The slow and plain way to say what a key is."""
    fields = {field.name: getattr(call, field.name) for field in dataclasses.fields(call)}
    fields["messages"] = [[message.role, [part.sha256 for part in message.parts]] for message in call.messages]
    if not call.again:
        del fields["again"]
    fields["schema"] = call.schema.sha256 if call.schema else None
    return sha256_text(canonical_json(fields))


@given(specs)
def test_fast_key_equals_the_definition(call):
    assert call.key == by_definition(call)


BASE = CallSpec(model="a/b", messages=(Message("user", (Text.of("x"), Text.of("y"))),), template="t")
CHANGES = {
    "model": "a/c",
    "messages": (Message("user", (Text.of("y"), Text.of("x"))),),
    "template": "u",
    "trial": 2,
    "order": 1,
    "seed": 0,
    "temperature": 0.0,
    "effort": "low",
    "schema": Text.of("{}"),
    "again": True,
    "args": {"top_p": 0.9},
}


def test_every_field_is_among_the_changes():
    assert set(CHANGES) == {field.name for field in dataclasses.fields(CallSpec)}


@pytest.mark.parametrize("name", CHANGES)
def test_each_field_changes_the_key(name):
    assert dataclasses.replace(BASE, **{name: CHANGES[name]}).key != BASE.key


@pytest.mark.parametrize(
    "other",
    [
        (Message("system", (Text.of("x"), Text.of("y"))),),
        (Message("user", (Text.of("x"),)), Message("user", (Text.of("y"),))),
        (Message("user", (Text.of("x\n\ny"),)),),
    ],
    ids=["role", "two messages", "one part"],
)
def test_how_a_prompt_is_cut_changes_the_key(other):
    assert dataclasses.replace(BASE, messages=other).key != BASE.key


def test_order_of_arguments_does_not_change_the_key():
    one, two = (dataclasses.replace(BASE, args=args) for args in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    assert one.key == two.key


def test_a_temperature_without_json_form_is_refused():
    with pytest.raises(ValueError, match="no JSON form"):
        _ = dataclasses.replace(BASE, temperature=float("nan")).key


def test_texts_are_the_parts_then_the_schema():
    schema = Text.of("{}")
    assert dataclasses.replace(BASE, schema=schema).texts == (*BASE.messages[0].parts, schema)
    assert BASE.texts == BASE.messages[0].parts
