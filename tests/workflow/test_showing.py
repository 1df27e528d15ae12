"""A study's own cycles, probes and decisions as the report and the behaviour measurements use them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assaymark import records, workflow
from assaymark.errors import LedgerError
from assaymark.judging import load_rubric
from assaymark.market import CycleKey
from assaymark.protocol import AgentSpec, JudgeSpec, Study, Substrate

NOON = datetime(2000, 1, 3, 12, tzinfo=UTC)
THEN = datetime(2016, 10, 19, 15, 48, tzinfo=UTC)
PROBE = {
    "alpha": 0.01, "asked": 25, "chance": 0.001, "control": 0.8, "control_asked": 25, "control_hits": 25, "hits": 1,
    "p": 0.02, "passed": True, "probe": "mechanical",
}  # fmt: skip


def context(number: int, *, book: bool = True) -> records.Context:
    return records.Context(
        completeness="complete", cutoff=NOON, cutoff_source="neutral clock", prompt=f"Cycle {number}.",
        facts=(records.Fact(id="p", instrument="Asset A", field="price", value=100.0, unit="price",
                            available_at=NOON),),
        portfolio=records.Portfolio(currency="USD", cash=1000.0, nav=1000.0) if book else None,
        constraints=(records.Constraint(kind="max_weight", limit=0.4, unit="nav"),),
    )  # fmt: skip


def decision(agent: str, seen: records.Context, units: float = 1.0, **more) -> records.Decision:
    whole = {
        "record_id": f"{agent}-{seen.prompt}", "episode_id": seen.prompt, "step": 1, "cluster": "calm",
        "decided_at": NOON, "agent": records.Agent(id=agent, family=agent), "context_id": records.content_id(seen),
        "actions": (records.Action(instrument="Asset A", kind="buy", quantity=units),),
        "rationales": (records.Rationale(text="Three little words.", kind="summary"),), "format": "orders-v1",
        "provenance": records.Provenance(source="made up"),
        "call": records.CallFacts(seconds=1.5, timing_source="measured", output_tokens=9),
    }  # fmt: skip
    return records.Decision(**{**whole, **more})


def study(**more) -> Study:
    places = (("birch", "openai/one"), ("alder", "reference/steward"))
    windows = dict.fromkeys(("storm", "calm"), ("2016-01-01",) * 2)
    base = {
        "agents": tuple(AgentSpec(name=name, family=name, model=model) for name, model in places),
        "substrate": Substrate(source="/somewhere/minutes.csv", regimes=tuple(windows), windows=windows),
    }
    return Study(name="s", seed=1, judges=(JudgeSpec(name="j", model="reference/reader", family="f"),), **base | more)


def locked(plan: Study, *probes) -> workflow.Locked:
    return workflow.Locked(plan, load_rubric("v1.0"), "0" * 64, "now", {}, (), probes)


CONTEXTS_MADE = [context(number) for number in range(3)]


@pytest.fixture
def store(tmp_path: Path) -> workflow.Store:
    """Two cycles of one regime and one of another, with decisions on all of them and a control beside them."""
    folder = workflow.RunFolder(tmp_path / "run")
    places = (("storm", 2), ("storm", 1), ("calm", 1))
    keys = [
        CycleKey(
            context_id=records.content_id(seen), regime=regime, number=number, source="x", names={"Asset A": "FENQUO"},
            first_bar=THEN + timedelta(days=number), last_bar=THEN + timedelta(days=number, hours=1),
            left_out=("KELRUV",) if number == 1 else (),
        )
        for seen, (regime, number) in zip(CONTEXTS_MADE, places, strict=True)
    ]  # fmt: skip
    decisions = [decision(agent, seen) for seen in CONTEXTS_MADE for agent in ("birch", "alder")]
    control = decision("control", CONTEXTS_MADE[1], derivation=records.Derivation(kind="cell_b"))
    with workflow.new_folder(folder.path):
        found = workflow.Store(folder)
        found.write(workflow.CONTEXTS, CONTEXTS_MADE, {})
        found.write(workflow.CYCLES, keys, {})
        found.write(workflow.DECISIONS, [*decisions, control], {})
    return found


def test_the_view_counts_cycles_and_shows_the_first_of_the_first_regime_without_its_controls(store):
    cycles, probes, example = workflow.substrate_view(locked(study(), PROBE), store)
    assert sorted(one.regime for one in cycles) == ["calm", "storm", "storm"]
    assert [(one.hits, one.passed) for one in probes] == [(1, True)]
    key, context, on_it = example
    assert (key.regime, key.number, context) == ("storm", 1, CONTEXTS_MADE[1])
    assert [one.agent.id for one in on_it] == ["alder", "birch"]


def test_imported_records_have_no_view_and_no_conduct(store):
    plan = locked(study(agents=(), substrate=None))
    assert workflow.substrate_view(plan, store) == ((), (), None)
    assert workflow.measure_behaviour(store, plan) == []
    assert [one.name for one in workflow.planted_agents(study())] == ["alder"]


def test_a_probe_that_cannot_be_read_is_a_damaged_lock(store):
    for probe in ({"probe": "mechanical"}, {**PROBE, "hits": "many"}):
        with pytest.raises(LedgerError, match="date probe that cannot be read"):
            workflow.substrate_view(locked(study(), probe), store)


def test_conduct_is_measured_over_honest_decisions_of_every_agent(store):
    found = {item.id: item for item in workflow.measure_behaviour(store, locked(study()))}
    assert {item.labels["agent"] for item in found.values()} == {"alder", "birch"}
    kept = found["agent.limits_kept[agent=alder]"]
    seconds, tokens = found["agent.seconds[agent=birch]"], found["agent.text_tokens[agent=birch]"]
    assert (kept.n, kept.value, seconds.value, tokens.value) == (3, 1.0, 1.5, 3.0)


def test_what_a_decision_shows_of_its_agent():
    seen = CONTEXTS_MADE[0]
    assert workflow.behaviour_of(decision("a", seen, 5.0), seen).checks == (("max_weight", False),)
    assert workflow.behaviour_of(decision("a", seen, 1e308), seen).checks == (("settlement", False),)
    assert workflow.behaviour_of(decision("a", seen, -1.0), seen).checks == (("settlement", False),)
    assert workflow.behaviour_of(decision("a", context(9, book=False)), context(9, book=False)).checks is None
    refused = workflow.behaviour_of(decision("a", seen, actions=(), rationales=(), flags=("refused",)), seen)
    assert (refused.usable, refused.checks, refused.flags) == (False, None, ("refused",))
    untimed = replace(decision("a", seen), call=records.CallFacts(seconds=3.0, timing_source="absent"))
    assert workflow.behaviour_of(untimed, seen).seconds is None
