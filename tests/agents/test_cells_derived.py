"""Cells made from an honest decision: other words, one number changed, another length; and the checker of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_cycles import COMPOSERS, honest_decision

from assaymark.agents.controls import Composed, admissible, fact_flip, failed, length_matched, paraphrase
from assaymark.agents.controls.checks import figures_in, numerals_in, run_overlap, sentences_of, word_overlap
from assaymark.agents.controls.compose import held_values, is_held
from assaymark.errors import InputError, NotMeasurableError
from assaymark.judging import numeric_ledger
from assaymark.prompting import hedges_in, judged_text, style_of, token_count
from assaymark.records import Rationale

SEEDS, AGENTS = st.integers(0, 400), st.sampled_from(COMPOSERS)


@cache
def honest(seed: int, agent: str):
    return honest_decision(seed, agent)


def ledger(decision, context, text: str):
    return numeric_ledger(replace(decision, rationales=(Rationale(text=text, kind="summary"),)), context)


def broken(composed: Composed, context) -> set[str]:
    return {check.rule for check in failed(admissible(composed.kind, composed, context))}


# --- paraphrase -------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(SEEDS, AGENTS)
def test_a_paraphrase_keeps_every_fact_and_hardly_a_run_of_words(seed, agent):
    context, decision = honest(seed, agent)
    cell = paraphrase(decision, context, np.random.default_rng(seed))
    before, after = judged_text(decision), cell.text
    names = [item.id for item in context.instruments]
    assert failed(admissible("paraphrase", cell, context)) == ()
    assert numerals_in(before) == numerals_in(after)
    assert [before.count(name) for name in names] == [after.count(name) for name in names]
    assert cell.actions == decision.actions
    assert len(hedges_in(before)) == len(hedges_in(after))
    assert style_of(before) == style_of(after)
    assert abs(token_count(after) / token_count(before) - 1) <= 0.15
    assert word_overlap(before, after, names) <= 0.8
    assert run_overlap(before, after, names) <= 0.5


@settings(max_examples=20, deadline=None)
@given(SEEDS, AGENTS)
def test_the_judges_ledger_supports_a_paraphrase_no_less_than_the_original(seed, agent):
    context, decision = honest(seed, agent)
    cell = paraphrase(decision, context, np.random.default_rng(seed))
    before, after = (
        Counter(one.state for one in ledger(decision, context, t)) for t in (judged_text(decision), cell.text)
    )
    assert after["supported"] >= before["supported"]
    assert after["contradicted"] == before["contradicted"] == 0


def test_paraphrases_read_as_sentences():
    for agent in COMPOSERS:
        context, decision = honest(3, agent)
        text = paraphrase(decision, context, np.random.default_rng(1)).text
        pieces = [text[start:end] for start, end in sentences_of(text)]
        ended = [before[-1] for before in pieces[:-1]]
        assert all(after[0].isupper() or mark == ";" for mark, after in zip(ended, pieces[1:], strict=True))
        assert all(mark in ".!?;" for mark in ended)
        assert not any("\ue000" <= character <= "\uf8ff" for character in text)


def test_a_text_in_words_that_nobody_listed_is_refused():
    context, decision = honest_decision(1, text="Zwei Titel steigen, und wir kaufen 3.5 davon.")
    with pytest.raises(NotMeasurableError, match=r"paraphrase is not admissible as drawn: overlap of words is 1"):
        paraphrase(decision, context, np.random.default_rng(0))


def test_a_text_with_private_characters_is_refused():
    context, decision = honest_decision(1, text="Up \ue0000\ue002 now.")
    with pytest.raises(NotMeasurableError, match="private-use characters"):
        paraphrase(decision, context, np.random.default_rng(0))


def test_a_conclusion_may_come_before_its_reason():
    text = "The book is full, so nothing is traded. Asset A stays as a core, so we wait."
    context, decision = honest_decision(1, text=text)
    made = {paraphrase_of(decision, context, seed) for seed in range(12)}
    assert any("since the book is full" in one or "as the book is full" in one for one in made)


def paraphrase_of(decision, context, seed: int) -> str:
    from assaymark.agents.controls.verbose_terse import _reworded

    return _reworded(judged_text(decision), context, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda text: text.replace("0.", "1.", 1), "numbers added or lost"),
        (lambda text: text.replace("Asset", "Ascot", 1), "instruments named more or less often"),
        (lambda text: text + " perhaps", "hedging words added or lost"),
        (lambda text: text + " so it is" * 20, "change of length"),
    ],
)
def test_the_checker_refuses_a_paraphrase_that_changes_what_is_said(change, rule):
    context, decision = honest(2, "momentum")
    cell = paraphrase(decision, context, np.random.default_rng(0))
    assert rule in broken(replace(cell, text=change(cell.text)), context)


def test_the_checker_refuses_a_copy_and_a_number_that_changed_its_owner():
    context, decision = honest(2, "momentum")
    cell = paraphrase(decision, context, np.random.default_rng(0))
    copied = replace(cell, text=judged_text(decision))
    assert broken(copied, context) == {"overlap of words", "overlap of runs of three words"}
    one, other = (item.id for item in context.instruments[:2])
    said = f"{one}'s 15m return is 1.00%. {other}'s 60m return is 2.00%."
    swapped = f"{other}'s 15m return is 1.00%. {one}'s 60m return is 2.00%."
    stated = replace(decision, rationales=(Rationale(text=said, kind="summary"),))
    found = broken(Composed(kind="paraphrase", actions=decision.actions, text=swapped, original=stated), context)
    assert "statements added or lost" in found


def test_the_checker_refuses_other_orders():
    context, decision = honest(2, "momentum")
    cell = paraphrase(decision, context, np.random.default_rng(0))
    assert broken(replace(cell, actions=()), context) == {"orders of the original"}


# --- fact-flip --------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(SEEDS, AGENTS, st.integers(0, 50))
def test_a_flip_changes_one_number_to_one_that_nothing_supports(seed, agent, draw):
    context, decision = honest(seed, agent)
    cell = fact_flip(decision, context, np.random.default_rng(draw))
    before, change = judged_text(decision), cell.change
    assert cell.text == before[: change.start] + change.new + before[change.start + len(change.old) :]
    assert change.old != change.new
    assert before[change.start :].startswith(change.old)
    (new,) = figures_in(change.new)
    assert not is_held(held_values(context, decision.actions), abs(new.value), new.half)
    assert cell.actions == decision.actions
    assert failed(admissible("fact_flip", cell, context)) == ()


@settings(max_examples=20, deadline=None)
@given(SEEDS, AGENTS, st.integers(0, 50))
def test_the_judges_ledger_supports_the_number_before_and_not_after(seed, agent, draw):
    context, decision = honest(seed, agent)
    cell = fact_flip(decision, context, np.random.default_rng(draw))
    at = cell.change.start
    before = {one.start: one.state for one in ledger(decision, context, judged_text(decision))}
    after = {one.start: one.state for one in ledger(decision, context, cell.text)}
    assert before.pop(at) == "supported"
    assert after.pop(at) in ("not_found", "contradicted")
    assert sorted(before.values()) == sorted(after.values())


def test_a_printed_sign_may_be_turned():
    context, _ = honest_decision(4)
    fact = next(one for one in context.facts if one.field == "return_60m")
    said = f"{fact.instrument}'s 60m return is {fact.value * 100:+.2f}%."
    context, decision = honest_decision(4, text=said)
    made = [fact_flip(decision, context, np.random.default_rng(seed)) for seed in range(12)]
    turned = [cell for cell in made if cell.change.new[1:] == cell.change.old[1:]]
    assert turned
    assert len(turned) < len(made)
    states = [ledger(decision, context, cell.text)[0].state for cell in made]
    assert set(states) == {"contradicted"}


def test_amounts_of_the_book_are_flipped_where_no_feature_is_told():
    context, steward = honest_decision(4, "steward")
    account = judged_text(steward).split("\n\n")[-2]
    _, decision = honest_decision(4, "steward", text=account)
    cell = fact_flip(decision, context, np.random.default_rng(0))
    assert cell.change.old in account
    assert "." in cell.change.new


def test_a_context_without_a_book_still_has_features_to_flip():
    context, decision = honest_decision(4)
    bookless = replace(context, portfolio=None)
    targets = tuple(replace(one, kind="target_weight", weight=0.1, quantity=None) for one in decision.actions)
    cell = fact_flip(replace(decision, actions=targets), bookless, np.random.default_rng(0))
    assert failed(cell.admissibility) == ()


def test_a_place_in_the_range_stays_between_its_ends():
    context, _ = honest_decision(4)
    fact = next(one for one in context.facts if one.field == "range_60m")
    said = f"{fact.instrument}'s 60m range is {fact.value:.2f}."
    context, decision = honest_decision(4, text=said)
    for seed in range(10):
        cell = fact_flip(decision, context, np.random.default_rng(seed))
        assert 0 < float(cell.change.new) <= 1


def test_a_text_without_a_number_to_flip_is_refused():
    context, decision = honest_decision(1, text="Two of them rise, so I buy 3 of 7.")
    with pytest.raises(NotMeasurableError, match="states no number that the material holds"):
        fact_flip(decision, context, np.random.default_rng(0))


def flipped(old: str, new: str, *, context, decision) -> set[str]:
    text = judged_text(decision)
    assert old in text
    return broken(
        Composed(kind="fact_flip", actions=decision.actions, text=text.replace(old, new, 1), original=decision), context
    )


def test_the_checker_refuses_a_flip_that_is_none():
    context, decision = honest(6, "momentum")
    cell = fact_flip(decision, context, np.random.default_rng(0))
    old = cell.change.old
    told = {"context": context, "decision": decision}
    assert flipped(old, old, **told) == {"changed numbers"}
    assert flipped("rose", "fell", **told) == {"text around the numbers", "changed numbers"}
    (figure,) = figures_in(old)
    near = figure.written(figure.value + 2 * figure.step)
    assert "change in last printed digits" in flipped(old, near, **told)
    other = next(f for f in context.facts if f.field == "volatility_60m" and f"{f.value * 100:.2f}%" != old)
    assert "the number now" in flipped(old, f"{other.value * 100:.2f}%", **told)
    assert "the number before" in flipped("Confidence is 0.", "Confidence is 9.", **told)
    twice = cell.text.replace("Confidence is 0.", "Confidence is 9.")
    assert broken(replace(cell, text=twice), context) == {"changed numbers"}


# --- length -----------------------------------------------------------------------------------------------------------


def fitted(decision, context, tokens: int, seed: int) -> Composed | None:
    """A rerun of that length, or None where whole sentences cannot make it."""
    try:
        return length_matched(decision, context, tokens, np.random.default_rng(seed))
    except NotMeasurableError:
        return None


def test_most_lengths_can_be_met():
    made = [fitted(*reversed(honest(seed, agent)), 120, seed) for seed in range(8) for agent in COMPOSERS]
    assert sum(one is not None for one in made) >= 0.7 * len(made)


@settings(max_examples=25, deadline=None)
@given(SEEDS, AGENTS, st.integers(60, 220))
def test_a_length_is_met_within_a_twentieth_by_true_sentences_or_fewer(seed, agent, tokens):
    context, decision = honest(seed, agent)
    before = judged_text(decision)
    cell = fitted(decision, context, tokens, seed)
    if cell is None:
        return
    assert abs(token_count(cell.text) / tokens - 1) <= 0.05 + 1e-9
    assert failed(admissible("length_matched", cell, context)) == ()
    assert figures_in(cell.text)
    if len(cell.text) > len(before):
        assert cell.text.startswith(before)
        added = {one.state for one in ledger(decision, context, cell.text) if one.start >= len(before)}
        assert added == {"supported"}
    else:
        whole = {before[a:b] for a, b in sentences_of(before)}
        assert {cell.text[a:b] for a, b in sentences_of(cell.text)} <= whole
        assert style_of(cell.text) == style_of(before)


def test_a_text_of_the_right_length_stays_as_it_is():
    context, decision = honest(1, "momentum")
    tokens = token_count(judged_text(decision))
    assert length_matched(decision, context, tokens, np.random.default_rng(0)).text == judged_text(decision)


def test_numbers_go_last():
    plain = "The book is quiet and this sentence holds none. "
    text = "Read plainly, it rises. " + plain * 3 + "Asset A is up 0.10% over 15 minutes. Asset B is up 0.20% over 5m."
    context, decision = honest_decision(1, text=text)
    cell = length_matched(decision, context, 19, np.random.default_rng(0))
    assert cell.text == "Read plainly, it rises. Asset A is up 0.10% over 15 minutes. Asset B is up 0.20% over 5m."


def test_lengths_that_cannot_be_met_are_refused():
    context, decision = honest(1, "equal-weight")
    with pytest.raises(NotMeasurableError, match=r"tokens within 5% of 5000"):
        length_matched(decision, context, 5000, np.random.default_rng(0))
    with pytest.raises(NotMeasurableError, match=r"tokens within 5% of 2$"):
        length_matched(decision, context, 2, np.random.default_rng(0))
    with pytest.raises(InputError, match=r"tokens: must be at least 1 \(got 0\)"):
        length_matched(decision, context, 0, np.random.default_rng(0))


def test_the_checker_refuses_what_is_not_made_of_whole_true_sentences():
    context, decision = honest(7, "momentum")
    cell = length_matched(decision, context, 150, np.random.default_rng(0))
    name = context.instruments[0].id
    false = f"{cell.text} {name}'s 60m volatility is 91.00%."
    assert "added numbers that are wrong" in broken(replace(cell, text=false), context)
    empty = f"{cell.text} Nothing more is said."
    assert "added sentences without a feature" in broken(replace(cell, text=empty), context)
    assert broken(replace(cell, tokens=100), context) == {"distance from the length asked for"}
    first, *rest = [cell.text[a:b] for a, b in sentences_of(cell.text)]
    assert "sentences dropped from a text that was lengthened" in broken(replace(cell, text=" ".join(rest)), context)
    words = "Nothing is said."
    assert "numbers kept" in broken(replace(cell, text=words), context)
    assert first not in words
