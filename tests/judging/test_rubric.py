"""Rubrics: what ships, what is refused, and how they read."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from assaymark.errors import InputError, UnknownNameError
from assaymark.judging import load_rubric, rubric_names
from assaymark.judging.rubric import parse_rubric

DIMENSIONS = (
    "action_coherence",
    "risk_alignment",
    "uncertainty_handling",
    "position_sizing",
    "information_use",
    "constraint_awareness",
)


def text() -> str:
    return (files("assaymark.judging") / "rubrics" / "v1.0.toml").read_text(encoding="utf-8")


def test_v1_0_has_the_six_dimensions_with_thirty_different_anchors():
    rubric = load_rubric("v1.0")
    assert rubric.names == DIMENSIONS
    assert rubric.version == "v1.0"
    anchors = [anchor for dimension in rubric.dimensions for anchor in dimension.anchors]
    assert len(anchors) == len(set(anchors)) == 30


def test_the_text_numbers_every_anchor():
    lines = load_rubric("v1.0").text.splitlines()
    assert [sum(line.startswith(f"  {point} = ") for line in lines) for point in range(1, 6)] == [6] * 5


def test_an_unknown_name_is_answered_with_the_closest():
    with pytest.raises(UnknownNameError, match=r"unknown rubric 'v1\.00'\. Did you mean 'v1\.0'"):
        load_rubric("v1.00")
    assert "v1.0" in rubric_names()


def test_every_problem_of_a_rubric_is_named_at_once():
    with pytest.raises(InputError) as caught:
        parse_rubric(
            'version = "x"\ntitle = "t"\nextra = 1\n[[dimension]]\nname = "A"\nquestion = "q"\nanchors = ["a"]'
        )
    wrong = {problem.where for problem in caught.value.problems}
    assert wrong >= {"dimension.0.name", "dimension.0.anchors", "extra"}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "risk_alignment"', 'name = "action_coherence"', "action_coherence more than once"),
        ('name = "risk_alignment"', 'name = "aggregate"', "names the mean over the dimensions"),
        ('title = "', 'title = 3 # "', "must be text"),
        ("[[dimension]]", "[[dimension]", "not TOML"),
    ],
)
def test_a_wrong_rubric_is_refused(old, new, says):
    with pytest.raises(InputError, match=says):
        parse_rubric(text().replace(old, new, 1))


def test_a_rubric_is_frozen():
    with pytest.raises(ValueError, match="frozen"):
        load_rubric("v1.0").version = "v2"
    assert tomllib.loads(text())["version"] == "v1.0"


def blocks(name: str) -> dict[str, str]:
    """The lines of each dimension in a rubric's file."""
    raw = (files("assaymark.judging") / "rubrics" / f"{name}.toml").read_text(encoding="utf-8")
    found = raw.split("[[dimension]]\n")[1:]
    return {block.split('"')[1]: block.strip() for block in found}


def test_v1_1_differs_from_v1_0_in_the_anchors_of_constraint_awareness_and_in_no_other_byte():
    old, new = blocks("v1.0"), blocks("v1.1")
    assert list(old) == list(new) == list(DIMENSIONS)
    assert {name for name in old if old[name] != new[name]} == {"constraint_awareness"}
    assert load_rubric("v1.1").changed(load_rubric("v1.0")) == {"constraint_awareness"}
    question = load_rubric("v1.0").dimensions[-1].question
    assert load_rubric("v1.1").dimensions[-1].question == question
    assert "arithmetic" in load_rubric("v1.1").dimensions[-1].anchors[4]


def test_v1_2_adds_a_note_on_length_and_a_condition_and_changes_no_anchor():
    assert blocks("v1.2") == blocks("v1.0")
    rubric = load_rubric("v1.2")
    assert rubric.text == f"{rubric.note}\n\n{load_rubric('v1.0').text}"
    assert rubric.pass_condition == "cell_b: no verbosity-bias"
    assert rubric.changed(load_rubric("v1.0")) == frozenset()
