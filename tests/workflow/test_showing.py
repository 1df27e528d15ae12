"""A study's own cycles, probes and decisions as the report and the behaviour measurements use them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from assaymark import records, workflow
from assaymark.errors import LedgerError

NOON = datetime(2000, 1, 3, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def made(own_run) -> tuple[workflow.Locked, workflow.Store]:
    """A run that made its own records."""
    return workflow.open_locked(workflow.RunFolder(own_run)), workflow.Store(workflow.RunFolder(own_run))


def test_the_view_counts_cycles_and_shows_the_first_of_the_first_regime_without_its_controls(made):
    locked, store = made
    substrate = locked.study.substrate
    cycles, probes, (key, context, on_it) = workflow.substrate_view(locked, store)
    assert Counter(one.regime for one in cycles) == dict.fromkeys(substrate.regimes, substrate.cycles)
    assert [(one.hits, one.passed) for one in probes] == [(one["hits"], True) for one in locked.date_probes]
    assert (key.regime, key.number) == (substrate.regimes[0], 1) != (min(substrate.regimes), 1)
    assert records.content_id(context) == key.context_id
    assert [one.agent.id for one in on_it] == sorted(agent.name for agent in locked.study.agents)
    every = [one for one in store.read(workflow.DECISIONS) if one.context_id == key.context_id]
    assert len(every) > len(on_it), "a control was made there too"


def test_imported_records_have_no_view_and_no_conduct(made, finished):
    run = workflow.RunFolder(finished)
    assert workflow.substrate_view(workflow.open_locked(run), workflow.Store(run)) == ((), (), None)
    assert workflow.measure_behaviour(workflow.Store(run), workflow.open_locked(run)) == []
    study = made[0].study
    outside = study.agents[0].model_copy(update={"name": "birch", "model": "openai/one"})
    planted = workflow.planted_agents(study.model_copy(update={"agents": (outside, *study.agents)}))
    assert [one.name for one in planted] == [agent.name for agent in study.agents]


def test_a_probe_that_cannot_be_read_is_a_damaged_lock(made):
    locked, store = made
    for probe in ({"probe": "mechanical"}, {**locked.date_probes[0], "hits": "many"}):
        with pytest.raises(LedgerError, match="date probe that cannot be read"):
            workflow.substrate_view(replace(locked, date_probes=(probe,)), store)


def test_conduct_is_measured_over_honest_decisions_of_every_agent(made):
    locked, store = made
    found = {item.id: item for item in workflow.measure_behaviour(store, locked)}
    honest = [one for one in store.read(workflow.DECISIONS) if one.derivation.kind == "honest"]
    decided = Counter(one.agent.id for one in honest)
    assert {item.labels["agent"] for item in found.values()} == decided.keys()
    for agent, n in decided.items():
        kept, seconds = found[f"agent.limits_kept[agent={agent}]"], found[f"agent.seconds[agent={agent}]"]
        assert (kept.n, seconds.n) == (n, n)
        assert min(one.call.seconds for one in honest) <= seconds.value <= max(one.call.seconds for one in honest)


def context(*, book: bool = True) -> records.Context:
    return records.Context(
        completeness="complete", cutoff=NOON, cutoff_source="neutral clock", prompt="Cycle 1.",
        facts=(records.Fact(id="p", instrument="Asset A", field="price", value=100.0, unit="price",
                            available_at=NOON),),
        portfolio=records.Portfolio(currency="USD", cash=1000.0, nav=1000.0) if book else None,
        constraints=(records.Constraint(kind="max_weight", limit=0.4, unit="nav"),),
    )  # fmt: skip


def test_what_a_decision_shows_of_its_agent():
    seen = context()
    bought = records.Decision(
        record_id="a", episode_id="e", step=1, cluster="calm", decided_at=NOON,
        agent=records.Agent(id="a", family="a"), context_id=records.content_id(seen), format="orders-v1",
        actions=(records.Action(instrument="Asset A", kind="buy", quantity=1.0),),
        rationales=(records.Rationale(text="Three little words.", kind="summary"),),
        provenance=records.Provenance(source="made up"),
        call=records.CallFacts(seconds=1.5, timing_source="measured", output_tokens=9),
    )  # fmt: skip
    for units, checks in ((1.0, ("max_weight", True)), (5.0, ("max_weight", False)), (1e308, ("settlement", False)),
                          (-1.0, ("settlement", False))):  # fmt: skip
        orders = (replace(bought.actions[0], quantity=units),)
        assert workflow.behaviour_of(replace(bought, actions=orders), seen).checks == (checks,)
    shown = workflow.behaviour_of(bought, context(book=False))
    assert (shown.checks, shown.seconds, shown.tokens) == (None, 1.5, 3)
    refused = workflow.behaviour_of(replace(bought, actions=(), rationales=(), flags=("refused",)), seen)
    assert (refused.usable, refused.checks, refused.flags) == (False, None, ("refused",))
    untimed = replace(bought, call=records.CallFacts(seconds=3.0, timing_source="absent"))
    assert workflow.behaviour_of(untimed, seen).seconds is None
