"""The demo's records: invented, honest, repeatable, and blind to what comes next."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections import Counter
from datetime import timedelta

import numpy as np
import pytest

from assaymark.agents import REFERENCE_AGENTS
from assaymark.judging import numeric_ledger
from assaymark.records import Context, canonical_json, content_id, parse
from assaymark.workflow.demo_records import (
    CONSTRAINTS,
    REGIMES,
    STEP,
    UNIVERSE,
    WARM_UP,
    demo_market,
    demo_records,
    market_figures,
    records_of,
)


@pytest.fixture(scope="module")
def records():
    return demo_records()


@pytest.fixture(scope="module")
def small_market():
    return demo_market(np.random.default_rng(5), cycles_per_regime=3)


def test_every_agent_answers_every_question_of_every_regime(records):
    decisions, contexts = records
    assert len(contexts) == 6 * 8
    assert len(decisions) == 6 * 8 * 3
    assert len({decision.record_id for decision in decisions}) == len(decisions)
    cycles = itertools.groupby(decisions, key=lambda decision: decision.cycle)
    for _, group in cycles:
        same = list(group)
        assert [decision.agent.id for decision in same] == list(REFERENCE_AGENTS)
        assert len({decision.context_id for decision in same}) == 1
    assert list(dict.fromkeys(decision.cluster for decision in decisions)) == [regime.name for regime in REGIMES]


def test_contexts_are_named_by_their_content_and_complete(records):
    decisions, contexts = records
    assert {decision.context_id for decision in decisions} == contexts.keys()
    assert all(content_id(context) == name for name, context in contexts.items())
    assert {context.completeness for context in contexts.values()} == {"complete"}
    assert {context.missing for context in contexts.values()} == {()}
    first = next(iter(contexts.values()))
    assert parse(Context, canonical_json(first)) == parse(Context, canonical_json(dataclasses.replace(first)))


def test_nothing_was_known_before_it_was_available(records):
    decisions, contexts = records
    for decision in decisions:
        context = contexts[decision.context_id]
        assert context.cutoff < decision.decided_at
        assert max(fact.available_at for fact in context.facts) <= context.cutoff
        assert all(series.times[-1] == context.cutoff for series in context.series)
        assert decision.flags == ()


def test_the_same_seed_gives_the_same_bytes():
    first, second = demo_records(seed=9, cycles_per_regime=2), demo_records(seed=9, cycles_per_regime=2)
    assert canonical_json(first) == canonical_json(second)
    assert canonical_json(demo_records(seed=10, cycles_per_regime=2)) != canonical_json(first)


def test_what_happens_later_changes_nothing_before(small_market):
    cycle = 1
    last = WARM_UP - 1 + STEP * cycle
    decisions, contexts = records_of(small_market)
    changed = []
    for path in small_market:
        closes, economy = path.closes.copy(), path.economy.copy()
        closes[last + 1 :] *= np.linspace(0.5, 2.0, len(closes) - last - 1)[:, None]
        economy[cycle + 1 :] += 3.0
        changed.append(dataclasses.replace(path, closes=closes, economy=economy))
    others, other_contexts = records_of(changed)
    early = [decision for decision in decisions if decision.step <= cycle + 1]
    assert early == [decision for decision in others if decision.step <= cycle + 1]
    assert all(contexts[decision.context_id] == other_contexts[decision.context_id] for decision in early)
    late = [decision for decision in decisions if decision.step > cycle + 1]
    assert all(decision not in others for decision in late)


def test_what_happened_before_the_cutoff_does_change_the_records(small_market):
    last = WARM_UP - 1
    path = small_market[0]
    closes = path.closes.copy()
    closes[last, 0] *= 1.2
    decisions, _ = records_of([path])
    others, _ = records_of([dataclasses.replace(path, closes=closes)])
    assert decisions[0].context_id != others[0].context_id
    assert decisions[0].rationales != others[0].rationales


def test_regimes_follow_each_other_on_weekdays_and_share_no_session(small_market):
    times = [time for path in small_market for time in path.times]
    assert all(later > earlier for earlier, later in itertools.pairwise(times))
    assert max(time.weekday() for time in times) == 4
    assert all(path.closes.shape == (len(path.times), len(UNIVERSE)) for path in small_market)
    assert times[0].year == 2041


def test_the_regimes_differ_as_their_names_say():
    market = {path.regime.name: path.closes for path in demo_market(np.random.default_rng(1), cycles_per_regime=60)}
    bench = {name: np.diff(np.log(closes[:, 0])) for name, closes in market.items()}
    assert bench["sell-off"].mean() < 0 < bench["calm-advance"].mean()
    assert bench["sell-off"].std() > 2.5 * bench["calm-advance"].std()
    shock = np.diff(np.log(market["rate-shock"]), axis=0)
    calm = np.diff(np.log(market["sell-off"]), axis=0)
    assert np.corrcoef(shock[:, 0], shock[:, 3])[0, 1] > 0.15 > -0.15 > np.corrcoef(calm[:, 0], calm[:, 3])[0, 1]


def test_figures_equal_their_definition():
    rng = np.random.default_rng(2)
    closes = 100 * np.cumprod(1 + 0.01 * rng.standard_normal((80, 3)), axis=0)
    table = market_figures(closes)
    for column in range(3):
        prices, bench = closes[-64:, column].tolist(), closes[-64:, 0].tolist()
        own = [b / a - 1 for a, b in itertools.pairwise(prices)]
        base = [b / a - 1 for a, b in itertools.pairwise(bench)]
        fall = min(later / prices[i] - 1 for i in range(64) for later in prices[i:])
        expected = {
            "price": prices[-1],
            "return_5s": prices[-1] / prices[-6] - 1,
            "return_21s": prices[-1] / prices[-22] - 1,
            "return_63s": prices[-1] / prices[-64] - 1,
            "volatility_21s": statistics.stdev(own[-21:]) * 252**0.5,
            "max_drawdown_63s": fall,
            "beta_63s": statistics.covariance(base, own) / statistics.variance(base),
            "corr_63s": statistics.correlation(base, own),
        }
        assert expected.keys() == table.keys()
        for field, value in expected.items():
            assert table[field][1][column] == pytest.approx(value, abs=1e-6), field


def test_the_shown_bars_and_the_figures_agree(records):
    for context in records[1].values():
        facts = {fact.id: fact.value for fact in context.facts}
        for series in context.series:
            assert len(series.close) == 61
            assert facts[f"{series.instrument}.price"] == series.close[-1]
            assert facts[f"{series.instrument}.return_21s"] == pytest.approx(
                series.close[-1] / series.close[-22] - 1, abs=1e-6
            )


def test_the_prompt_shows_what_the_context_holds(records):
    context = next(iter(records[1].values()))
    for fact in context.facts:
        if fact.note:
            assert fact.note in context.prompt
        else:
            shown = f"{fact.value * 100:.2f}%" if fact.unit == "ratio" else f"{fact.value:.2f}"
            assert shown in context.prompt, fact.id
    for item in context.instruments:
        assert item.name in context.prompt
    assert f"NAV {context.portfolio.nav:.2f}" in context.prompt
    assert "max holdings 5" in context.prompt
    assert "max weight 40%" in context.prompt


def test_the_book_adds_up_and_the_rules_are_kept(records):
    decisions, contexts = records
    limits = {rule.kind: rule.limit for rule in CONSTRAINTS}
    for decision in decisions:
        context = contexts[decision.context_id]
        prices = {fact.instrument: fact.value for fact in context.facts if fact.field == "price"}
        value = sum(units * prices[name] for name, units in context.portfolio.positions.items())
        assert context.portfolio.nav == pytest.approx(context.portfolio.cash + value, abs=0.01)
        weights = [action.weight for action in decision.actions if action.weight is not None]
        assert sum(weights) == pytest.approx(1.0)
        assert limits["min_holdings"] <= len(weights) <= limits["max_holdings"]
        assert max(weights) <= limits["max_weight"]


def test_records_say_that_they_are_the_demo_and_name_no_ticker(records):
    decisions, contexts = records
    assert {decision.provenance.source for decision in decisions} == {"assaymark demo"}
    assert {decision.format for decision in decisions} == {"demo-v1"}
    assert {item.symbol for context in contexts.values() for item in context.instruments} == {None}


def test_the_styles_differ_in_length_by_design(records):
    """The memo runs to 300-450 tokens, the figures to 120-180, the note to 55-90."""
    ranges = {"momentum": (300, 450), "minimum-variance": (120, 180), "equal-weight": (55, 90)}
    for decision in records[0]:
        tokens = sum(len(rationale.text.split()) for rationale in decision.rationales)
        low, high = ranges[decision.agent.id]
        assert low <= tokens <= high, decision.record_id


def test_at_least_one_cycle_is_needed():
    with pytest.raises(ValueError, match=r"at least 1 \(got 0\)"):
        demo_records(cycles_per_regime=0)


def test_the_decision_follows_the_cutoff_at_once(records):
    decisions, contexts = records
    waits = {decision.decided_at - contexts[decision.context_id].cutoff for decision in decisions}
    assert waits == {timedelta(minutes=20)}


@pytest.mark.parametrize("name", REFERENCE_AGENTS)
def test_the_numbers_in_the_reasons_come_from_what_was_seen(records, name):
    """The contexts are complete, so a contradiction would be a real one."""
    decisions, contexts = records
    own = [decision for decision in decisions if decision.agent.id == name]
    found = Counter(item.state for one in own for item in numeric_ledger(one, contexts[one.context_id]))
    backed = found["supported"] + found["derivable"] + found["own_action"] + found["rule"]
    assert found["contradicted"] == 0
    assert backed >= 0.8 * found.total()
    assert found["supported"] > 5 * len(own)
