"""What the report says is planted in a reference agent is said of every one of them, and of nobody else."""

from __future__ import annotations

import pytest

from assaymark.agents import reference_agents
from assaymark.agents.reference import INVESTED, WORDS, planted_words
from assaymark.prompting.texts import SIGNATURES


def test_every_reference_agent_has_its_words():
    assert set(WORDS) == set(reference_agents())
    for found in WORDS.values():
        assert found.rule.endswith(".")
        assert len(found.properties) >= 3


@pytest.mark.parametrize(("name", "invested"), INVESTED.items())
def test_the_share_that_is_said_is_the_share_that_is_invested(name, invested):
    said = " ".join(WORDS[f"reference/{name}"].properties)
    assert f"{100 * invested:.0f}\u00a0%" in said


@pytest.mark.parametrize("style", SIGNATURES)
def test_a_house_style_is_said_with_its_opening_words(style):
    found = planted_words("reference/steward", {"style": style})
    assert found is not None
    assert SIGNATURES[style] in found.properties[-1]
    assert found.properties[:-1] == WORDS["reference/steward"].properties


def test_a_share_of_brief_texts_is_said_before_the_style():
    found = planted_words("reference/mixed", {"style": "dogwood", "brief": 0.8})
    assert found is not None
    assert found.properties[-2] == "gives its orders and no reason in 80\u00a0% of its texts"
    assert SIGNATURES["dogwood"] in found.properties[-1]


@pytest.mark.parametrize("args", [{}, {"style": "plain"}, {"brief": 0.0}])
def test_without_a_style_nothing_is_added(args):
    assert planted_words("reference/mixed", args) == WORDS["reference/mixed"]


def test_nothing_is_planted_in_a_model_that_is_not_ours():
    assert planted_words("openai/steward", {"style": "alder"}) is None
