"""Control cells as records: what they carry, how they are spread, and what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from made_cycles import COMPOSERS, honest_decision, made_context

from assaymark.agents.controls import (
    CELL_KINDS,
    CONTROL,
    DERIVED_KINDS,
    Composed,
    cell_decision,
    cell_decisions,
    terse_right,
    verbose_wrong,
)
from assaymark.errors import InputError, NotMeasurableError, UnknownNameError
from assaymark.records import Decision, canonical_json, content_id, parse

CONTEXTS = [made_context(seed) for seed in range(10)]
PLACED = [(content_id(context), context, f"regime {seed % 5}") for seed, context in enumerate(CONTEXTS)]
HONEST = [honest_decision(seed, agent)[1] for seed in range(10) for agent in COMPOSERS]
BY_ID = {key: context for key, context, _ in PLACED}


def cells(kind: str, count: int = 12, **changes) -> list[Decision]:
    given = {"seed": 5, "family": "north", "style": "birch", "honest": HONEST, "tokens": 100, **changes}
    return cell_decisions(PLACED, kind=kind, count=count, **given)


def one(kind: str = "cell_b", **changes) -> Decision:
    composed = terse_right(CONTEXTS[0], np.random.default_rng(0))
    given = {
        "context_id": PLACED[0][0],
        "record_id": "b-1",
        "cluster": "calm",
        "family": "north",
        "seed": 0,
        "decided_at": CONTEXTS[0].cutoff + timedelta(seconds=1),
    }
    return cell_decision(kind, changes.pop("composed", composed), **{**given, **changes})


def test_a_cell_as_a_record():
    found = one()
    assert (found.agent.id, found.agent.family, found.derivation.kind) == (CONTROL, "north", "cell_b")
    assert [text.kind for text in found.rationales] == ["summary"]
    assert (found.episode_id, found.step, found.cluster) == ("b-1", 1, "calm")
    assert parse(Decision, canonical_json(found)) == found


def test_a_cell_that_was_not_checked_is_no_record():
    bare = Composed(kind="cell_b", actions=(), text="Buy.")
    with pytest.raises(NotMeasurableError, match="cell_b b-1 is no control cell: it was never checked"):
        one(composed=bare)
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


def test_another_seed_makes_other_cells():
    assert cells("cell_a", 3)[0].rationales != cells("cell_a", 3, seed=6)[0].rationales


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


def test_contexts_are_used_again_where_there_are_few():
    found = cell_decisions(PLACED[:1], kind="cell_a", count=7, seed=1, family="f")
    assert len({cell.rationales[0].text for cell in found}) == 7


def test_a_context_that_gives_nothing_is_passed_over():
    hopeless = replace(CONTEXTS[0], constraints=())
    mixed = [("none", hopeless, "calm"), ("some", CONTEXTS[1], "calm")]
    found = cell_decisions(mixed, kind="cell_a", count=4, seed=1, family="f")
    assert {cell.context_id for cell in found} == {"some"}
    with pytest.raises(NotMeasurableError, match=r"only 0 of 2 cell_a cells could be made; the last reason: cell_a is"):
        cell_decisions(mixed[:1], kind="cell_a", count=2, seed=1, family="f")


def test_derived_cells_run_out():
    with pytest.raises(NotMeasurableError, match=r"only 50 of 51 fact_flip cells could be made"):
        cells("fact_flip", 51)


def test_cells_are_not_made_from_cells():
    derived = [replace(HONEST[0], derivation=replace(HONEST[0].derivation, kind="red_team"))]
    with pytest.raises(InputError, match="needs an honest decision on one of the contexts"):
        cells("paraphrase", 1, honest=derived)


def test_the_name_of_the_study_stands_before_the_record_ids():
    assert cells("cell_b", 1, study="pilot")[0].record_id == "pilot/cell_b-5-0001"


def test_what_is_refused():
    with pytest.raises(UnknownNameError, match="kind of control cell 'vacuum'"):
        cells("vacuum")
    with pytest.raises(InputError, match=r"count: must not be negative \(got -1\)"):
        cells("cell_a", -1)
    with pytest.raises(InputError, match="tokens: length_matched needs the length asked for"):
        cells("length_matched", tokens=None)
    assert cells("cell_a", 0) == []
