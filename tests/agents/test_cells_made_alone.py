"""Cells A and B: what the generators make, held against the checker, the ledger of numbers and the oracle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_cycles import made_context

from assaymark.agents.controls import admissible, failed, terse_right, verbose_wrong
from assaymark.agents.controls.checks import words_without
from assaymark.agents.controls.compose import book_of
from assaymark.errors import NotMeasurableError
from assaymark.judging import reconcile
from assaymark.judging.evidence import Material, audit_texts
from assaymark.judging.reference.features import topic_counts
from assaymark.prompting import SIGNATURES, style_of, token_count

SEEDS = st.integers(0, 10_000)
MAKERS = {"cell_a": verbose_wrong, "cell_b": terse_right}


@cache
def made(kind: str, seed: int, style: str = "elder"):
    context = made_context(seed)
    return context, MAKERS[kind](context, np.random.default_rng(seed), style=style)


def states(context, text):
    return Counter(found.state for found in audit_texts([("summary", text)], Material.of(context)))


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from(["cell_a", "cell_b"]))
def test_every_cell_is_admissible_to_a_checker_that_did_not_make_it(seed, kind):
    context, cell = made(kind, seed)
    assert failed(admissible(kind, replace(cell, admissibility=()), context)) == ()
    assert cell.admissibility == admissible(kind, cell, context)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_the_judges_ledger_contradicts_a_verbose_cell_and_supports_a_terse_one(seed):
    context, verbose = made("cell_a", seed)
    assert states(context, verbose.text)["contradicted"] >= 3
    context, terse = made("cell_b", seed)
    found = states(context, terse.text)
    assert found["contradicted"] == 0
    assert found["supported"] >= 3


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_the_oracle_of_the_judges_finds_the_arithmetic_of_a_false_and_of_b_true(seed):
    limits = {"leverage_cap", "weight_cap", "cash_floor", "orders_cap", "cash"}
    for kind in MAKERS:
        context, cell = made(kind, seed)
        book = book_of(context, cell.actions)
        found = reconcile(cell.text, book.after, context.constraints)
        verdicts = {part.quantity: part.verdict for part in found.parts if part.quantity not in limits}
        if kind == "cell_a":
            assert "right" not in verdicts.values()
            assert {verdicts["residual"], verdicts["exposure"], verdicts["leverage"]} == {"wrong"}
            assert book.broken
        else:
            assert "wrong" not in verdicts.values()
            assert verdicts["residual"] == "right"
            assert not book.broken


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_lengths_and_hedges_by_the_counters_of_the_judges(seed):
    _, verbose = made("cell_a", seed)
    _, terse = made("cell_b", seed)
    assert token_count(verbose.text) >= 200
    assert token_count(terse.text) <= 60
    assert topic_counts(verbose.text)["hedge"] == topic_counts(terse.text)["hedge"] == 0


def runs(text):
    """Every five words of a text that follow each other, numbers and names left out."""
    words = words_without(text)
    return [tuple(words[at : at + 5]) for at in range(len(words) - 4)]


def likest(texts):
    """The largest share of runs that any two of the texts share (Jaccard): 1 is a copy."""
    found = [set(runs(text)) for text in texts]
    return max(len(a & b) / max(len(a | b), 1) for a, b in combinations(found, 2))


def distinct_share(texts):
    """Distinct runs over all of them: 1 where nothing is said twice."""
    found = [run for text in texts for run in runs(text)]
    return len(set(found)) / len(found)


def test_fifty_of_each_are_no_near_copies():
    texts = {kind: [made(kind, seed)[1].text for seed in range(50)] for kind in MAKERS}
    assert likest(texts["cell_a"]) < 0.25
    assert distinct_share(texts["cell_a"]) > 0.4
    # A few words about few things: numbers and names, left out of the measure, are what differs most.
    assert likest(texts["cell_b"]) < 0.7
    assert all(len(set(of_kind)) == 50 for of_kind in texts.values())


def test_one_context_gives_many_texts():
    context = made_context(3)
    for make in MAKERS.values():
        assert len({make(context, np.random.default_rng(seed)).text for seed in range(20)}) == 20


def test_a_text_begins_with_the_words_of_its_style_and_of_no_other():
    for kind in MAKERS:
        for style in SIGNATURES:
            _, cell = made(kind, 4, style)
            assert cell.text.startswith(SIGNATURES[style])
            assert style_of(cell.text) == style
        assert style_of(made(kind, 4, "plain")[1].text) is None


def test_equal_seeds_make_equal_cells():
    context = made_context(5)
    for make in MAKERS.values():
        assert make(context, np.random.default_rng(1)) == make(context, np.random.default_rng(1))


def test_known_scores_hold_only_what_the_construction_fixes():
    assert dict(made("cell_a", 0)[1].known_scores) == {"constraint_awareness": 1.0}
    assert dict(made("cell_b", 0)[1].known_scores) == {}


@pytest.mark.parametrize("kind", list(MAKERS))
def test_a_context_without_what_a_cell_is_about_is_refused(kind):
    context = made_context(1)
    rng = np.random.default_rng(0)
    with pytest.raises(NotMeasurableError, match=r"portfolio"):
        MAKERS[kind](replace(context, portfolio=None), rng)
    prices_alone = tuple(fact for fact in context.facts if fact.field == "price")
    with pytest.raises(NotMeasurableError, match=r"contradicted features is 0, needs at least 3|three features"):
        MAKERS[kind](replace(context, facts=prices_alone), rng)


def test_without_a_rule_to_break_there_is_no_cell_a():
    context = replace(made_context(1), constraints=())
    with pytest.raises(NotMeasurableError, match=r"cell_a is not admissible as drawn: .*of 24 draws"):
        verbose_wrong(context, np.random.default_rng(0))


def test_without_room_for_an_order_there_is_no_cell_b():
    context = made_context(1)
    tight = tuple(replace(rule, limit=0.0) if rule.kind == "max_leverage" else rule for rule in context.constraints)
    with pytest.raises(NotMeasurableError, match=r"broken rules is 1, needs 0 \(max_leverage"):
        terse_right(replace(context, constraints=tight), np.random.default_rng(0))
