"""Cells made from an honest decision: other words, one number changed, another length; and the checker of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_cycles import COMPOSERS, honest_decision, made_context

from assaymark.agents import (
    CELL_KINDS,
    CONTROL,
    DERIVED_KINDS,
    Composed,
    admissible,
    cell_decision,
    cell_decisions,
    fact_flip,
    failed,
    length_matched,
    paraphrase,
    terse_right,
    verbose_wrong,
)
from assaymark.agents.controls.checks import (
    figures_in,
    numerals_in,
    run_overlap,
    sentences_of,
    word_overlap,
    words_without,
)
from assaymark.agents.controls.compose import book_of, held_values, is_held
from assaymark.agents.controls.verbose_terse import _reworded
from assaymark.errors import InputError, NotMeasurableError, UnknownNameError
from assaymark.judging import numeric_ledger, reconcile
from assaymark.judging.evidence import Material, audit_texts
from assaymark.judging.reference.features import topic_counts
from assaymark.prompting import SIGNATURES, hedges_in, judged_text, style_of, token_count
from assaymark.records import Decision, Rationale, canonical_json, content_id, parse

SEEDS, AGENTS = st.integers(0, 400), st.sampled_from(COMPOSERS)


@cache
def honest(seed: int, agent: str):
    return honest_decision(seed, agent)


def ledger(decision, context, text: str):
    return numeric_ledger(replace(decision, rationales=(Rationale(text=text, kind="summary"),)), context)


def broken(composed: Composed, context) -> set[str]:
    return {check.rule for check in failed(admissible(composed.kind, composed, context))}


def drawn(seed=0):
    return np.random.default_rng(seed)


# --- paraphrase -------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(SEEDS, AGENTS)
def test_a_paraphrase_keeps_every_fact_and_hardly_a_run_of_words(seed, agent):
    context, decision = honest(seed, agent)
    cell = paraphrase(decision, context, drawn(seed))
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
    # The judges' ledger supports it no less than the original.
    was, now = (Counter(one.state for one in ledger(decision, context, text)) for text in (before, after))
    assert now["supported"] >= was["supported"]
    assert now["contradicted"] == was["contradicted"] == 0


def test_paraphrases_read_as_sentences():
    for agent in COMPOSERS:
        context, decision = honest(3, agent)
        text = paraphrase(decision, context, drawn(1)).text
        pieces = [text[start:end] for start, end in sentences_of(text)]
        ended = [before[-1] for before in pieces[:-1]]
        assert all(after[0].isupper() or mark == ";" for mark, after in zip(ended, pieces[1:], strict=True))
        assert all(mark in ".!?;" for mark in ended)
        assert not any("\ue000" <= character <= "\uf8ff" for character in text)


@pytest.mark.parametrize(
    ("make", "text", "why"),
    [
        (paraphrase, "Zwei Titel steigen, und wir kaufen 3.5 davon.", "not admissible as drawn: overlap of words is 1"),
        (paraphrase, "Up \ue0000\ue002 now.", "private-use characters"),
        (fact_flip, "Two of them rise, so I buy 3 of 7.", "states no number that the material holds"),
    ],
)
def test_a_text_of_which_no_cell_can_be_made_is_refused(make, text, why):
    context, decision = honest_decision(1, text=text)
    with pytest.raises(NotMeasurableError, match=why):
        make(decision, context, drawn())


def test_a_conclusion_may_come_before_its_reason():
    text = "The book is full, so nothing is traded. Asset A stays as a core, so we wait."
    context, decision = honest_decision(1, text=text)
    made = {_reworded(judged_text(decision), context, drawn(seed)) for seed in range(12)}
    assert any("since the book is full" in one or "as the book is full" in one for one in made)


def test_the_checker_refuses_a_paraphrase_that_changes_what_is_said():
    context, decision = honest(2, "momentum")
    cell = paraphrase(decision, context, drawn())
    for text, rule in (
        (cell.text.replace("0.", "1.", 1), "numbers added or lost"),
        (cell.text.replace("Asset", "Ascot", 1), "instruments named more or less often"),
        (cell.text + " perhaps", "hedging words added or lost"),
        (cell.text + " so it is" * 20, "change of length"),
    ):
        assert rule in broken(replace(cell, text=text), context)
    copied = replace(cell, text=judged_text(decision))
    assert broken(copied, context) == {"overlap of words", "overlap of runs of three words"}
    assert broken(replace(cell, actions=()), context) == {"orders of the original"}
    one, other = (item.id for item in context.instruments[:2])
    said = f"{one}'s 15m return is 1.00%. {other}'s 60m return is 2.00%."
    swapped = f"{other}'s 15m return is 1.00%. {one}'s 60m return is 2.00%."
    stated = replace(decision, rationales=(Rationale(text=said, kind="summary"),))
    found = broken(Composed(kind="paraphrase", actions=decision.actions, text=swapped, original=stated), context)
    assert "statements added or lost" in found


# --- fact-flip --------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(SEEDS, AGENTS, st.integers(0, 50))
def test_a_flip_changes_one_number_to_one_that_nothing_supports(seed, agent, draw):
    context, decision = honest(seed, agent)
    cell = fact_flip(decision, context, drawn(draw))
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
    made = [fact_flip(decision, context, drawn(seed)) for seed in range(12)]
    turned = [cell for cell in made if cell.change.new[1:] == cell.change.old[1:]]
    assert turned
    assert len(turned) < len(made)
    states = [ledger(decision, context, cell.text)[0].state for cell in made]
    assert set(states) == {"contradicted"}


def test_amounts_and_features_without_a_book_and_places_in_the_range_are_flipped_too():
    context, steward = honest_decision(4, "steward")
    account = judged_text(steward).split("\n\n")[-2]
    _, decision = honest_decision(4, "steward", text=account)
    cell = fact_flip(decision, context, drawn())
    assert cell.change.old in account
    assert "." in cell.change.new
    context, decision = honest_decision(4)
    targets = tuple(replace(one, kind="target_weight", weight=0.1, quantity=None) for one in decision.actions)
    cell = fact_flip(replace(decision, actions=targets), replace(context, portfolio=None), drawn())
    assert failed(cell.admissibility) == ()
    fact = next(one for one in context.facts if one.field == "range_60m")
    context, decision = honest_decision(4, text=f"{fact.instrument}'s 60m range is {fact.value:.2f}.")
    for seed in range(10):  # a place in the range stays between its ends
        assert 0 < float(fact_flip(decision, context, drawn(seed)).change.new) <= 1


def flipped(old: str, new: str, *, context, decision) -> set[str]:
    text = judged_text(decision)
    assert old in text
    return broken(
        Composed(kind="fact_flip", actions=decision.actions, text=text.replace(old, new, 1), original=decision), context
    )


def test_the_checker_refuses_a_flip_that_is_none():
    context, decision = honest(6, "momentum")
    cell = fact_flip(decision, context, drawn())
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
        return length_matched(decision, context, tokens, drawn(seed))
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


def test_a_text_of_the_right_length_stays_as_it_is_and_numbers_go_last():
    context, decision = honest(1, "momentum")
    tokens = token_count(judged_text(decision))
    assert length_matched(decision, context, tokens, drawn()).text == judged_text(decision)
    plain = "The book is quiet and this sentence holds none. "
    text = "Read plainly, it rises. " + plain * 3 + "Asset A is up 0.10% over 15 minutes. Asset B is up 0.20% over 5m."
    context, decision = honest_decision(1, text=text)
    cell = length_matched(decision, context, 19, drawn())
    assert cell.text == "Read plainly, it rises. Asset A is up 0.10% over 15 minutes. Asset B is up 0.20% over 5m."


def test_lengths_that_cannot_be_met_are_refused():
    context, decision = honest(1, "equal-weight")
    for tokens, why in ((5000, r"tokens within 5% of 5000"), (2, r"tokens within 5% of 2$")):
        with pytest.raises(NotMeasurableError, match=why):
            length_matched(decision, context, tokens, drawn())
    with pytest.raises(InputError, match=r"tokens: must be at least 1 \(got 0\)"):
        length_matched(decision, context, 0, drawn())


def test_the_checker_refuses_what_is_not_made_of_whole_true_sentences():
    context, decision = honest(7, "momentum")
    cell = length_matched(decision, context, 150, drawn())
    name = context.instruments[0].id
    first, *rest = [cell.text[a:b] for a, b in sentences_of(cell.text)]
    for text, rule in (
        (f"{cell.text} {name}'s 60m volatility is 91.00%.", "added numbers that are wrong"),
        (f"{cell.text} Nothing more is said.", "added sentences without a feature"),
        (" ".join(rest), "sentences dropped from a text that was lengthened"),
        ("Nothing is said.", "numbers kept"),
    ):
        assert rule in broken(replace(cell, text=text), context)
    assert broken(replace(cell, tokens=100), context) == {"distance from the length asked for"}
    assert first not in "Nothing is said."


# Cells A and B: what the generators make, held against the checker, the ledger of numbers and the oracle

SEEDS_OF_CELLS = st.integers(0, 10_000)
MAKERS = {"cell_a": verbose_wrong, "cell_b": terse_right}


@cache
def made(kind: str, seed: int, style: str = "elder"):
    context = made_context(seed)
    return context, MAKERS[kind](context, np.random.default_rng(seed), style=style)


def states(context, text):
    return Counter(found.state for found in audit_texts([("summary", text)], Material.of(context)))


@settings(max_examples=25, deadline=None)
@given(SEEDS_OF_CELLS)
def test_every_cell_is_what_it_should_be_to_checkers_that_did_not_make_it(seed):
    limits = {"leverage_cap", "weight_cap", "cash_floor", "orders_cap", "cash"}
    for kind in MAKERS:
        context, cell = made(kind, seed)
        assert failed(admissible(kind, replace(cell, admissibility=()), context)) == ()
        assert cell.admissibility == admissible(kind, cell, context)
        # The judges' ledger, the oracle of their arithmetic, and their counters of words and hedges
        found, book = states(context, cell.text), book_of(context, cell.actions)
        parts = reconcile(cell.text, book.after, context.constraints).parts
        verdicts = {part.quantity: part.verdict for part in parts if part.quantity not in limits}
        assert topic_counts(cell.text)["hedge"] == 0
        if kind == "cell_a":
            assert found["contradicted"] >= 3
            assert "right" not in verdicts.values()
            assert {verdicts["residual"], verdicts["exposure"], verdicts["leverage"]} == {"wrong"}
            assert book.broken
            assert token_count(cell.text) >= 200
        else:
            assert (found["contradicted"], book.broken) == (0, ())
            assert found["supported"] >= 3
            assert "wrong" not in verdicts.values()
            assert verdicts["residual"] == "right"
            assert token_count(cell.text) <= 60


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


def test_one_context_gives_many_texts_each_in_its_style_and_equal_ones_for_equal_seeds():
    context = made_context(3)
    for kind, make in MAKERS.items():
        assert len({make(context, drawn(seed)).text for seed in range(20)}) == 20
        assert make(context, drawn(1)) == make(context, drawn(1))
        for style in SIGNATURES:
            _, cell = made(kind, 4, style)
            assert cell.text.startswith(SIGNATURES[style])
            assert style_of(cell.text) == style
        assert style_of(made(kind, 4, "plain")[1].text) is None
    # Known scores hold only what the construction fixes.
    assert dict(made("cell_a", 0)[1].known_scores) == {"constraint_awareness": 1.0}
    assert dict(made("cell_b", 0)[1].known_scores) == {}


def test_a_context_without_what_a_cell_is_about_is_refused():
    context = made_context(1)
    tight = tuple(replace(rule, limit=0.0) if rule.kind == "max_leverage" else rule for rule in context.constraints)
    prices = tuple(fact for fact in context.facts if fact.field == "price")
    few = r"contradicted features is 0, needs at least 3|three features"
    for make, other, why in (
        *((make, replace(context, portfolio=None), "portfolio") for make in MAKERS.values()),
        *((make, replace(context, facts=prices), few) for make in MAKERS.values()),
        (verbose_wrong, replace(context, constraints=()), r"cell_a is not admissible as drawn: .*of 24 draws"),
        (terse_right, replace(context, constraints=tight), r"broken rules is 1, needs 0 \(max_leverage"),
    ):
        with pytest.raises(NotMeasurableError, match=why):
            make(other, drawn())


# Control cells as records: what they carry, how they are spread, and what is refused

CONTEXTS = [made_context(seed) for seed in range(10)]
PLACED = [(content_id(context), context, f"regime {seed % 5}") for seed, context in enumerate(CONTEXTS)]
HONEST = [honest_decision(seed, agent)[1] for seed in range(10) for agent in COMPOSERS]
BY_ID = {key: context for key, context, _ in PLACED}


def cells(kind: str, count: int = 12, **changes) -> list[Decision]:
    given = {"seed": 5, "family": "north", "style": "birch", "honest": HONEST, "tokens": 100, **changes}
    return cell_decisions(PLACED, kind=kind, count=count, **given)


def one(kind: str = "cell_b", **changes) -> Decision:
    composed = terse_right(CONTEXTS[0], drawn())
    given = {"context_id": PLACED[0][0], "record_id": "b-1", "cluster": "calm", "family": "north", "seed": 0}
    given["decided_at"] = CONTEXTS[0].cutoff + timedelta(seconds=1)
    return cell_decision(kind, changes.pop("composed", composed), **{**given, **changes})


def test_a_cell_as_a_record():
    found = one()
    assert (found.agent.id, found.agent.family, found.derivation.kind) == (CONTROL, "north", "cell_b")
    assert [text.kind for text in found.rationales] == ["summary"]
    assert (found.episode_id, found.step, found.cluster) == ("b-1", 1, "calm")
    assert parse(Decision, canonical_json(found)) == found
    with pytest.raises(NotMeasurableError, match="cell_b b-1 is no control cell: it was never checked"):
        one(composed=Composed(kind="cell_b", actions=(), text="Buy."))
    with pytest.raises(InputError, match=r"kind: must be that of the cell, cell_b \(got cell_a\)"):
        one("cell_a")


@pytest.mark.parametrize("kind", CELL_KINDS)
def test_cells_are_spread_evenly_and_repeat_by_seed(kind):
    found = cells(kind)
    assert len(found) == 12
    per_cluster = Counter(cell.cluster for cell in found)
    assert set(per_cluster) == {f"regime {number}" for number in range(5)}
    assert max(per_cluster.values()) - min(per_cluster.values()) <= 1
    assert found == cells(kind)
    assert len({cell.record_id for cell in found}) == len({cell.rationales[0].text for cell in found}) == 12
    assert {cell.derivation.kind for cell in found} == {kind}
    assert {cell.agent.family for cell in found} == {"north"}
    assert cells(kind, 3)[0].rationales != cells(kind, 3, seed=6)[0].rationales


@pytest.mark.parametrize(("kind", "make"), [("cell_a", verbose_wrong), ("cell_b", terse_right)])
def test_the_seed_of_a_record_repeats_its_generator(kind, make):
    for cell in cells(kind, 4):
        again = make(BY_ID[cell.context_id], np.random.default_rng(cell.derivation.seed), style="birch")
        assert again.text == cell.rationales[0].text
        assert again.actions == cell.actions


@pytest.mark.parametrize("kind", DERIVED_KINDS)
def test_a_derived_cell_is_paired_with_its_parent(kind):
    parents = {decision.record_id: decision for decision in HONEST}
    found = cells(kind)
    assert len({cell.derivation.parent for cell in found}) == 12
    for cell in found:
        parent = parents[cell.derivation.parent]
        assert (cell.cycle, cell.cluster, cell.format) == (parent.cycle, parent.cluster, parent.format)
        assert cell.actions == parent.actions
        assert cell.confidence == parent.confidence
    assert all(bool(cell.flags) == (kind == "fact_flip") for cell in found)


def test_contexts_are_used_again_passed_over_or_run_out():
    few = cell_decisions(PLACED[:1], kind="cell_a", count=7, seed=1, family="f")
    assert len({cell.rationales[0].text for cell in few}) == 7
    mixed = [("none", replace(CONTEXTS[0], constraints=()), "calm"), ("some", CONTEXTS[1], "calm")]
    found = cell_decisions(mixed, kind="cell_a", count=4, seed=1, family="f")
    assert {cell.context_id for cell in found} == {"some"}
    with pytest.raises(NotMeasurableError, match=r"only 0 of 2 cell_a cells could be made; the last reason: cell_a is"):
        cell_decisions(mixed[:1], kind="cell_a", count=2, seed=1, family="f")
    with pytest.raises(NotMeasurableError, match=r"only 50 of 51 fact_flip cells could be made"):
        cells("fact_flip", 51)
    assert cells("cell_b", 1, study="pilot")[0].record_id == "pilot/cell_b-5-0001"


def test_what_is_refused():
    with pytest.raises(UnknownNameError, match="kind of control cell 'vacuum'"):
        cells("vacuum")
    with pytest.raises(InputError, match=r"count: must not be negative \(got -1\)"):
        cells("cell_a", -1)
    with pytest.raises(InputError, match="tokens: length_matched needs the length asked for"):
        cells("length_matched", tokens=None)
    assert cells("cell_a", 0) == []
    derived = [replace(HONEST[0], derivation=replace(HONEST[0].derivation, kind="red_team"))]
    with pytest.raises(InputError, match="needs an honest decision on one of the contexts"):
        cells("paraphrase", 1, honest=derived)
