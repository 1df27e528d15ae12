"""Scoring plans: what ships, what is refused, and what the digest covers."""

from __future__ import annotations

from importlib.resources import files

import pytest

from assaymark.errors import InputError, UnknownNameError
from assaymark.judging import load_scoring, parse_scoring, scoring_names
from assaymark.judging.season.plans import PROCESS

NAMES = ("v0.3", "v0.4")


def text(name: str = "v0.4") -> str:
    return (files("assaymark.judging.season") / "plans" / f"{name}.toml").read_text(encoding="utf-8")


def test_two_plans_ship():
    assert scoring_names() == NAMES
    assert [load_scoring(name).version for name in NAMES] == list(NAMES)
    assert load_scoring() == load_scoring("v0.4")


@pytest.mark.parametrize("name", NAMES)
def test_a_digest_is_of_the_meaning_and_not_of_the_file(name):
    plan = load_scoring(name)
    assert parse_scoring("# said otherwise\n" + text(name)).digest == plan.digest
    assert parse_scoring(text(name).replace("= 12", "= 12.0")).digest == plan.digest


def test_every_rule_enters_the_digest():
    changed = [
        ('grader = "grounded', 'grader = "ungrounded'),
        ('panel = "median"', 'panel = "single"'),
        ("strong = 67", "strong = 68"),
        ("least_seconds = 1.0", "least_seconds = 2.0"),
        ('scale = "absolute"', 'scale = "relative"'),
        ("reference_s = 60.0", "reference_s = 30.0"),
        ("level = 0.95", "level = 0.9"),
        ('["reasoning", "evidence"]', '["reasoning"]'),
        ('title = "Thesis quality"', 'title = "Quality of the thesis"'),
        ("weight = 25", "weight = 20"),
    ]
    texts = [text().replace(old, new) for old, new in changed[:-1]]
    texts.append(text().replace("weight = 25", "weight = 20").replace("weight = 15", "weight = 20", 1))
    digests = {parse_scoring(one).digest for one in texts} | {load_scoring(name).digest for name in NAMES}
    assert len(digests) == len(changed) + 2


@pytest.mark.parametrize("name", NAMES)
def test_what_makes_the_process_score_is_graded(name):
    assert set(PROCESS) <= {part.name for part in load_scoring(name).reasoning}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("weight = 25", "weight = 24", "the parts of evidence must sum to 100 (got 99)"),
        ("weight = 12", "weight = 13", "the parts of reasoning must sum to 100 (got 102)"),
        ("process = 15", "process = 20", "the four components must sum to 100 (got 105)"),
        ('["reasoning", "evidence"]', '["evidence", "evidence"]', "names a component twice"),
        ('["reasoning", "evidence"]', "[]", "needs at least 1 (got 0)"),
        ("mixed = 45", "mixed = 67", "mixed must begin below strong (got mixed 67, strong 67)"),
        ('"temporal_consistency"', '"steadiness"', "missing: temporal_consistency"),
        ('"no_contradiction"', '"claim_support"', "claim_support more than once"),
        ('panel = "median"', 'panel = "mean"', "'single' or 'median'"),
        ("level = 0.95", "level = 1.0", "below 1"),
        ("weight = 10\nleast_seconds = 1.0", "weight = nan\nleast_seconds = 1.0", "finite number"),
        ("least_seconds = 1.0", "least_seconds = 0", "above 0"),
        ('scale = "absolute"', 'scale = "best"', "'absolute' or 'relative'"),
        ("reference_s = 60.0", "reference_s = 0", "above 0"),
        ("[ties]", "[tie]", "tie"),
        ('version = "v0.4"', "version = ", "not TOML"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused(old, new, says):
    assert old in text()
    with pytest.raises(InputError) as caught:
        parse_scoring(text().replace(old, new), source="mine.toml")
    assert str(caught.value).startswith("mine.toml")
    assert says in str(caught.value)


def test_every_wrong_field_is_named_at_once():
    with pytest.raises(InputError) as caught:
        parse_scoring(text().replace("strong = 67", 'strong = "high"').replace("weight = 8", "weight = 0"))
    assert {problem.where for problem in caught.value.problems} >= {"bands.strong", "reasoning.7.weight"}


def test_an_unknown_name_is_answered_with_the_closest():
    with pytest.raises(UnknownNameError, match=r"unknown scoring plan 'v0\.5'\. Did you mean 'v0\.[34]'"):
        load_scoring("v0.5")


def test_without_an_outcome_the_shares_still_make_a_whole():
    for receivers in ('["reasoning", "evidence"]', '["process"]', '["reasoning", "evidence", "process"]'):
        weights = parse_scoring(text().replace('["reasoning", "evidence"]', receivers)).composite
        assert sum(weights.shares(outcome=False).values()) == pytest.approx(100)
        assert weights.shares(outcome=True) == {"reasoning": 40, "evidence": 35, "process": 15, "outcome": 10}
    assert parse_scoring(text().replace('["reasoning", "evidence"]', '["process"]')).composite.shares(
        outcome=False
    ) == pytest.approx({"reasoning": 40, "evidence": 35, "process": 25})
