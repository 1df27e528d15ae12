"""What holds for every reference agent, whatever the market."""

from __future__ import annotations

import dataclasses
import re
from datetime import timedelta

import numpy as np
import pytest
from agent_contexts import CUTOFF, DECIDED, WHO, context, contexts
from hypothesis import given, settings

import assaymark.agents as package
from assaymark.agents import REFERENCE_AGENTS, observe, reference_agent
from assaymark.agents.minimum_variance import covariance
from assaymark.errors import InputError, UnknownNameError
from assaymark.records import Decision, Portfolio, canonical_json, content_id, parse

AGENTS = list(REFERENCE_AGENTS.values())
TABLE = {
    "Ash": (0.01, 0.02, 0.05, 0.12, -0.05, 1.0, 1.0),
    "Beech": (0.02, 0.05, 0.12, 0.22, -0.09, 1.3, 0.8),
    "Cedrel": (-0.01, 0.01, -0.03, 0.05, -0.02, -0.1, -0.2),
    "Damson": (0.0, 0.01, 0.02, 0.15, -0.06, 0.4, 0.3),
    "Elder": (0.0, 0.002, 0.006, 0.001, 0.0, 0.0, 0.0),
    "Fir": (-0.03, -0.06, -0.1, 0.31, -0.2, 1.5, 0.7),
}


def weights_of(decision: Decision) -> list[float]:
    return [action.weight for action in decision.actions if action.kind == "target_weight"]


def texts_of(decision: Decision) -> str:
    return "\n".join(rationale.text for rationale in decision.rationales)


def test_the_agents_have_three_families_and_names_of_their_own():
    assert [agent.name for agent in AGENTS] == ["momentum", "minimum-variance", "equal-weight"]
    assert len({agent.family for agent in AGENTS}) == 3
    assert {agent.identity.fingerprint for agent in AGENTS} == {f"reference/{agent.name}@1" for agent in AGENTS}


def test_an_unknown_agent_is_answered_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match=r"unknown reference agent 'momentun'\. Did you mean 'momentum'\?"):
        reference_agent("momentun")


def test_the_public_names_are_sorted_and_importable():
    named = [name for name in package.__all__ if name[0].islower()]
    assert named == sorted(named)
    assert all(hasattr(package, name) for name in package.__all__)


@settings(max_examples=25, deadline=None)
@given(contexts())
def test_every_book_keeps_the_rules(seen_by_all):
    mandate = observe(seen_by_all, decided_at=DECIDED).mandate
    for agent in AGENTS:
        weights = np.array(weights_of(agent.decide(seen_by_all, **WHO)))
        assert weights.sum() == pytest.approx(1.0, abs=1e-9)
        assert mandate.min_holdings <= weights.size <= mandate.max_holdings
        assert weights.min() >= mandate.min_weight - 1e-9
        assert weights.max() <= mandate.max_weight + 1e-9
        steps = weights / mandate.weight_increment
        assert np.allclose(steps, np.round(steps), atol=1e-6)
        assert sorted(weights, reverse=True) == list(weights)


@settings(max_examples=25, deadline=None)
@given(contexts())
def test_every_decision_has_its_reasons_and_a_confidence(seen_by_all):
    for agent in AGENTS:
        decision = agent.decide(seen_by_all, **WHO)
        kinds = [rationale.kind for rationale in decision.rationales]
        assert kinds[:2] == ["summary", "portfolio"]
        assert set(kinds[2:]) == {"risk"}
        assert 2 <= len(kinds[2:]) <= 3
        assert 0 <= decision.confidence <= 1
        assert f"{decision.confidence:.2f}" in texts_of(decision)
        assert decision.context_id == content_id(seen_by_all)
        assert decision.decided_at >= seen_by_all.cutoff


@settings(max_examples=25, deadline=None)
@given(contexts())
def test_every_number_in_a_text_was_seen_or_decided(seen_by_all):
    for agent in AGENTS:
        decision = agent.decide(seen_by_all, **WHO)
        allowed = printable(seen_by_all, decision)
        written = re.findall(r"-?\d+(?:\.\d+)?(?:%| bps)?", texts_of(decision))
        assert [number for number in written if number not in allowed] == []


def printable(context, decision) -> set[str]:
    """Every way in which a number of the context or of the decision itself may be printed."""
    ratios = [fact.value for fact in context.facts if fact.unit == "ratio"]
    plain = [fact.value for fact in context.facts if fact.unit != "ratio"]
    weights = weights_of(decision)
    forms = {f"{size:.1f}%" for value in ratios for size in (value * 100, -value * 100, 0.0)}
    forms |= {f"{value:.{digits}f}{unit}" for value in plain for digits in (0, 1, 2) for unit in ("", "%", " bps")}
    forms |= {f"{number * 100:.0f}%" for number in (*weights, sum(weights[:2]), 1.0)}
    forms |= {f"{rule.limit:g}" for rule in context.constraints}
    forms |= {f"{rule.limit * (100 if rule.unit != 'percent' else 1):.0f}%" for rule in context.constraints}
    forms |= {"5", "21", "63", "39", f"{decision.confidence:.2f}", "0.00", "0.00%", "0%"}
    if "forecast" in decision.stages:
        stated = decision.stages["forecast"]
        forms |= {f"{value:.2f}%" for value in (stated["portfolio_pct"], stated["benchmark_pct"])}
    return forms | derived(context, decision)


def derived(context, decision) -> set[str]:
    """The few figures an agent works out: the volatility of its book, its ratio, and what is in bonds and bills."""
    view = observe(context, decided_at=DECIDED)
    held = {action.instrument: action.weight for action in decision.actions if action.weight}
    book = np.array([held.get(asset.id, 0.0) for asset in view.assets])
    cov = covariance(view)
    own = float(np.sqrt(book @ cov @ book))
    bonds = sum(held.get(asset.id, 0.0) for asset in view.assets if asset.asset_class in ("bond", "cash"))
    return {f"{own:.1%}", f"{own / np.sqrt(cov[view.base, view.base]):.2f}", f"{bonds:.0%}"}


@settings(max_examples=20, deadline=None)
@given(contexts())
def test_a_stated_forecast_is_the_weighted_sum_of_its_parts(seen_by_all):
    decision = reference_agent("momentum").decide(seen_by_all, **WHO)
    stated = decision.stages["forecast"]
    held = {action.instrument: action for action in decision.actions if action.kind == "target_weight"}
    assert stated["holdings"].keys() == held.keys()
    total = sum(held[name].weight * part for name, part in stated["holdings"].items())
    assert stated["portfolio_pct"] == pytest.approx(total, abs=0.005 + 1e-9)
    for name, part in stated["holdings"].items():
        assert held[name].expected_return == pytest.approx(part / 100)


@pytest.mark.parametrize("name", ["minimum-variance", "equal-weight"])
def test_an_agent_that_expects_nothing_states_no_forecast(name):
    decision = reference_agent(name).decide(context(TABLE), **WHO)
    assert decision.stages == {}
    assert all(action.expected_return is None for action in decision.actions)


@settings(max_examples=20, deadline=None)
@given(contexts())
def test_the_same_context_gives_the_same_bytes_and_a_valid_record(seen_by_all):
    for agent in AGENTS:
        text = canonical_json(agent.decide(seen_by_all, **WHO))
        assert canonical_json(agent.decide(dataclasses.replace(seen_by_all), **WHO)) == text
        assert canonical_json(parse(Decision, text)) == text


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_text_does_not_name_its_author(agent):
    text = texts_of(agent.decide(context(TABLE), **WHO)).lower()
    for other in AGENTS:
        for name in (other.name, other.name.replace("-", " "), other.family, other.identity.model):
            assert name not in text


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_positions_without_a_target_are_closed(agent):
    book = Portfolio(currency="USD", cash=0.0, nav=10.0, positions={"OLD": 1.0, "ASH": 2.0, "BEECH": 3.0})
    decision = agent.decide(context(TABLE, portfolio=book), **WHO)
    kept = {action.instrument for action in decision.actions if action.kind == "target_weight"}
    closed = {action.instrument for action in decision.actions if action.kind == "close"}
    assert closed == set(book.positions) - kept
    assert "OLD" in closed


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_no_agent_decides_on_what_came_later(agent):
    with pytest.raises(InputError, match="could not be known yet"):
        agent.decide(context(TABLE), **{**WHO, "decided_at": CUTOFF - timedelta(seconds=1)})


def test_the_styles_differ_in_length_by_design():
    lengths = [len(texts_of(agent.decide(context(TABLE), **WHO)).split()) for agent in AGENTS]
    memo, figures, note = lengths
    assert memo > 1.8 * figures
    assert figures > 1.25 * note


def test_callers_may_say_where_the_record_belongs():
    agent = reference_agent("equal-weight")
    plain = agent.decide(context(TABLE), **WHO)
    assert (plain.format, plain.provenance.source) == ("reference-v1", "assaymark reference agent")
    told = agent.decide(context(TABLE), **WHO, format="mine", context_id="abc")
    assert (told.format, told.context_id) == ("mine", "abc")
