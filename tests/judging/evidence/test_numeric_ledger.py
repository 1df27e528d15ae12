"""Rulings of the numeric ledger on single numbers, rule by rule."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
import seen as m
from hypothesis import given, settings
from hypothesis import strategies as st
from seen import AT, CELLS, COMPLETE, FACTS, INSTRUMENTS, PARTIAL, audit, built, context, decision, fact, free, only

from assaymark.judging import evidence, numeric_ledger
from assaymark.judging.evidence import ledger
from assaymark.records import Action, Constraint, Portfolio, Rationale, canonical_json

SAID = {
    ("supported", "row-labelled"): (
        "GOLD 5d return +3.12%", "GOLD 5d return 3.1%", "IAU return over 5 sessions was 312 bps",
        "GOLD max drawdown -6.52% over 21d", "SMH return_5d -5.47"),
    ("supported", "row-part-labelled"): (
        "Chips fell 5.5% in 5d", "GOLD drawdown of 6.5%", "CHIPS volatility 52.7%", "low volatility of 11.1% for SPY",
        "SMH beta 3.06", "SMH beta 3.1x"),
    ("supported", "row-unlabelled"): ("SMH -5.47%", "IAU closed at $88.87"),
    # free facts need a shared subject
    ("supported", "free-fact"): (
        "CPI is at 3.5%", "payrolls rose 115k", "jobs: 115,000", "10-year at 4.63%", "Brent fell 2.0% on the day",
        "Brent settled at $91.01"),
    ("supported", "free-fact-in-sentence"): ("Crude slipped, closing the day near $91.01 again",),
    # what cannot be checked says why
    ("not_found", "threshold"): (
        "exit if GOLD falls more than 3.1%", "exit if Brent falls below $85.5", "VIX >19.5", "GOLD may fall by 6.5%",
        "Invalidation: SMH -5.5% breakdown", "Invalidation: SMH underperforms SPY by 6.7% in 5d"),
    ("not_found", "bare-integer"): ("11 reasons",), ("not_found", "unmatched"): ("up 77.7%", "IAU is up 3%"),
    ("in_context", "row-other-horizon"): ("GOLD 21d return +3.12%",),  # there, but not what the text names
    # differences and sums of visible facts
    ("derivable", "difference-of-rows"): (
        "EWY outperformed SPY by 11.48 percentage points in 5d", "SMH beats IAU by 21.54% over 21d",
        "IAU underperformed SMH by 21.54% over 21d", "Chips lagged SPY by 6.70% in 5d"),
    ("derivable", "difference-in-note"): (
        "the 10-year Treasury yield rose 5 bps", "Treasury yield curve: 30-year less 10-year spread 0.55%"),
    ("derivable", "sum-in-note"): ("Treasury 10-year and 30-year yields together 9.81%",),
}  # fmt: skip


def test_every_rule_finds_what_it_is_for():
    for (state, rule), texts in SAID.items():
        for text in texts:
            found = only(text)
            assert (found.state, found.rule) == (state, rule), text
            assert not rule.startswith("free") or all(name.startswith("b") for name in found.facts)
            assert state != "derivable" or len(found.facts) == 2
    for text in ("看好IAU的5日回报率3.12%", "IAU ５日上涨３.１２％", "IAU的回报为3,12 %"):  # other scripts are read
        found = only(text)
        assert (found.subject, found.state) == ("GOLD", "supported"), text
        assert text[found.start : found.start + len(found.quote)] == found.quote


def test_another_row_sign_horizon_direction_or_subject_does_not():
    for text in (
        "CHIPS 5d return +3.12%",  # gold's
        "GOLD 5d return -3.12%",  # the wrong sign
        "GOLD up 9.4%",
        "GOLD 21d return +3%",  # too coarse to be claimed for another horizon
        "GOLD is rank 3 of 11",  # bare integers name no field
    ):
        assert "supported" not in m.states(text, PARTIAL), text
    for text in (
        "SMH outperformed SPY by 6.70% in 5d",  # it lagged
        "EWY vs SPY -11.48% in 5d",
        "EWY beat SPY by 30%",  # too coarse without a field or horizon
        "EWY beat SPY by 11.48% over 21d",  # another horizon's
    ):
        assert m.states(text, PARTIAL) == ["not_found"], text
    for state, texts in {
        # a printed minus agrees with a decrease, and a sign must not turn a free fact round
        "supported": ("Brent -2.0%", "oil slid again: Brent -2.0%"),
        "not_found": ("CPI -3.5%", "Brent +2.0%", "10-year at -4.63%", "Brent rose 2.0%"),
        "in_context": ("wages grew 3.5%", "sentiment at 91.01", "yields at 115k"),  # without a shared subject
    }.items():
        for text in texts:
            assert m.states(text) == [state], text
    assert m.states("Fed funds at 3.5-3.75%") == ["supported", "supported"]


def test_what_a_note_says_counts():
    for facts, text, name in (
        ([free("b1", "claims", 7_400.0, "count", "Claims decreased by 7,400 to 231,000.")], "claims -7,400", "b1"),
        # numbers of a note, of text facts, and what a pronoun inherits from the sentence before
        ([free("b1", "sales", 298.5, "usd", "Global chip sales were $298.5 billion, up 25.4% from the prior quarter.")],
         "chip sales up 25.4%", "b1"),
        ([free("b1", "wage growth", "between 3.1% and 3.4%", "text")], "wage growth of 3.4%", "b1"),
        ([free("b9", "closed at", 7411.98, "index", "The FTSE closed at 7,411.98."),
          free("b10", "It was down", -1.9, "percent", "It was down 1.9% for the week.")], "FTSE down 1.9%", "b10"),
    ):  # fmt: skip
        found = only(text, evidence.ContextIndex.build(facts=facts))
        assert (found.state, found.facts) == ("supported", (name,))
    note = "Copper stocks rose to 412.5 kilotons from 330.0 kilotons."
    seen = evidence.ContextIndex.build(
        [free(f"b{at}", "copper stocks", n, "count", note) for at, n in ((0, 412.5), (1, 330.0))]
    )
    assert only("copper stocks rose 25.0%", seen).rule == "relative-change-in-note"
    assert only("copper stocks up 1.25x", seen).rule == "ratio-in-note"
    seen = built(*(fact(f"{n}.a", n, "active_return_5d", v) for n, v in (("GOLD", 0.0609), ("SP500", 0.0))))
    assert m.states("IAU active return vs SPY -6.09% in 5d", seen) == ["not_found"]  # no differences of differences


def test_rules_of_prompt_and_constraints():
    seen = m.material(constraints=(Constraint(kind="max_weight", limit=0.4, unit="nav", scope="cluster"),))
    assert only("respects the 40% cluster cap", seen).facts == ("constraint:max_weight",)
    assert m.states("weights are multiples of 5%", seen) == ["rule"]
    assert m.states("the portfolio stays within 1-6 holdings", seen) == ["rule", "rule"]
    # one of one short sentence is known by its only word
    seen = m.material(prompt="Explain the risks you see in the market. No holding above 60%. Report every weight.")
    assert m.states("no holding exceeds 60%", seen) == ["rule"]
    assert only("nothing exceeds 60%", seen).state == "in_context"
    news = m.material(prompt="Deliveries of orders fell 12%. Analysts must explain every position.")  # no rule
    assert m.states("deliveries of orders fell 12%", news) == ["in_context"]
    held = Portfolio(currency="USD", cash=2_345.5, nav=10_000.0, positions={"GOLD": 12.5})  # visible, too
    assert m.states("cash of $2,345.50 and IAU units held 12.5", m.material(portfolio=held)) == ["supported"] * 2


OWN = decision(
    Rationale(kind="candidate", text="GOLD (selected)\nEvidence: 5d return 3.1%\nlow -2%, base 1.25%, high 4%"),
    Rationale(kind="portfolio", text="A 35% gold weight, confidence 0.62, expected alpha 0.4%; stop at $80.50."),
    Rationale(kind="arena", text="The venue says 99.9%."),
    actions=(Action(instrument="GOLD", kind="target_weight", weight=0.35, expected_return=0.0125, stop=80.5),),
    confidence=0.62,
    stages={
        "candidates": [{"option_id": "GOLD", "low_pct": -2, "base_pct": 1.25, "high_pct": 4.0}],
        "forecast": {"portfolio_pct": 1.1, "alpha_pct": 0.4, "holdings": {"GOLD": 1.25}},
        "notes": [True, None, "text", {"deep": {"bps_bps": 12}}],
    },
)  # fmt: skip


def test_own_figures_are_own_actions_and_the_arena_is_silent():
    found = numeric_ledger(OWN, context())
    assert [e.quote for e in found] == ["3.1%", "-2%", "1.25%", "4%", "35%", "0.62", "0.4%", "$80.50"]
    assert [e.state for e in found] == ["supported", *["own_action"] * 7]
    assert {e.part for e in found} == {0, 1}
    assert found == numeric_ledger(OWN, context(), material=COMPLETE) == sorted(found, key=lambda e: (e.part, e.start))
    for item in found:
        assert OWN.rationales[item.part].text[item.start : item.start + len(item.quote)] == item.quote
    assert canonical_json(found)
    own = evidence.DecisionNumbers.of([("CHIPS", "weight allocation", 0.225, "ratio")])
    assert only("SMH at 22.5% here", COMPLETE, own).rule == "own-same-subject"
    assert only("IAU at 22.5% here", PARTIAL, own).state == "not_found"
    # the reason of one action is about its instrument
    reason = "Strong 5d return of 3.12%"
    made = decision(reason, actions=(Action(instrument="GOLD", kind="buy", rationale=reason),))
    (one,) = numeric_ledger(made, context())
    assert (one.subject, one.state) == ("GOLD", "supported")
    shared = replace(made, actions=(*made.actions, Action(instrument="CHIPS", kind="buy", rationale=reason)))
    assert [e.state for e in numeric_ledger(shared, context())] == ["in_context"]


def test_a_number_of_shares_is_the_agents_own_if_it_is_that_of_its_book_or_order():
    own = evidence.DecisionNumbers.of([("GOLD", "holdings", 11.0, "count"), ("CHIPS", "holdings", 12.0, "count")])
    for text in ("GOLD: {n} shares", "买入黄金 IAU {n}股", "sold {n} share of IAU", "now {n} units of IAU"):
        found = only(text.format(n=11), PARTIAL, own)
        assert (found.state, found.rule, found.subject) == ("own_action", "own-same-subject", "GOLD"), text
        assert only(text.format(n=12), PARTIAL, own).state == "not_found"
    assert only("GOLD: 11 of these", PARTIAL, own).rule == "bare-integer"
    # units held before and values after the orders are the decision's own
    held = Portfolio(currency="USD", cash=10.0, nav=100.0, positions={"GOLD": 20.0})
    found = numeric_ledger(decision("Cut GOLD from 20 shares."), context(completeness="partial", portfolio=held))
    assert [one.state for one in found] == ["own_action"]
    held = Portfolio(currency="USD", cash=1000.0, nav=1402.5, positions={"GOLD": 10.0})
    bought = (Action(instrument="GOLD", kind="buy", quantity=3.0),)
    priced = (fact("p", "GOLD", "price", 40.25, "price"),)
    seen = context(completeness="partial", portfolio=held, facts=priced, series=())
    one = decision("GOLD now stands at $523.25.", "GOLD stood at $402.51.", actions=bought)
    assert [found.state for found in numeric_ledger(one, seen)] == ["own_action", "not_found"]
    sold = decision("Sell 10.0 units of GOLD.", actions=(Action("GOLD", "sell", quantity=10.0),))  # all that is held
    assert [found.rule for found in numeric_ledger(sold, seen)] == ["own-labelled"]
    assert evidence.audit_texts([("summary", "5.5%")], PARTIAL, owners={"5.5%": "NOBODY"})[0].subject == ""


CLOSES = [100.0, 104.0, 101.0, 99.0, 103.0, 106.05]
UP_DOWN = [100.0, 101.0, 100.0, 101.0, 100.0]
MOVES = [b / a - 1 for a, b in pairwise(UP_DOWN)]
YEARLY = (sum((m - sum(MOVES) / 4) ** 2 for m in MOVES) / 3) ** 0.5 * 252**0.5


def test_recomputed_from_bars():
    for closes, text, rules in (
        (CLOSES, "Gold return_3d 5.0%", ["return-3d"]), (CLOSES, "IAU up 6.05% over five sessions", ["return-5d"]),
        (CLOSES, "Gold drawdown 4.81% in 5d", ["drawdown-5d"]), (CLOSES, "Gold up 7.77% over 5d", ["unmatched"]),
        (CLOSES, "Gold up 6.05% over 900y", ["unmatched"]), (CLOSES, "SMH up 6.05% over 5d", ["unmatched"]),
        (UP_DOWN, f"Gold 4d volatility {YEARLY:.2%}", ["volatility-4d"]),  # a year
        ([0.0, 1.0, 2.0], "Gold up 100.0% over 1d; SMH up 3.33% in 1d", ["return-1d", "unmatched"]),
        ([0.0, 1.0, 2.0], "Gold up 50.1% over 2d", ["unmatched"]),  # no price
    ):  # fmt: skip
        found = audit(text, m.material(series=(m.bars("GOLD", closes), m.bars("CHIPS", [1.0])), facts=()))
        assert [one.rule for one in found] == rules, text
        assert all(one.facts == (("series:GOLD",) if one.state == "derivable" else ()) for one in found)


def test_a_return_over_the_days_shown_and_the_distance_between_two_prices_follow_from_them():
    seen = built(series=[m.bars("GOLD", [100.0, 103.0, 101.5, 106.0])])
    for text in ("Gold rose 6.0%", "a return of 6.00% for Gold", "Gold is up 2.91%"):
        found = only(text, seen)
        assert (found.state, found.rule, found.facts) == ("derivable", "return-shown", ("series:GOLD",))
    # the wrong way, too coarse for the middle of the series, no movement, another instrument
    assert m.states("Gold fell 6.0%. Gold is up 2.9%. Gold weighs 6.0%. Chips rose 6.0%", seen) == ["not_found"] * 4
    days = ((1, 100.0), (2, 103.0), (3, 106.0))  # days that are facts are days shown
    facts = [
        fact(f"c{day}", "GOLD", "close", value, "price", as_of=AT - timedelta(days=9 - day)) for day, value in days
    ]
    assert only("Gold gained 6.0%", built(*facts)).rule == "return-shown"
    prices = {"entry_price": 194.29, "current_price": 198.875, "rsi": 71.0}
    seen = built(*(fact(name, "GOLD", name, value, "price") for name, value in prices.items()))
    found = only("GOLD is up 2.36% from its entry", seen)
    assert (found.state, found.rule, found.facts) == ("derivable", "change-in-row", ("current_price", "entry_price"))
    assert m.states("GOLD is down 2.36%", seen) == ["not_found"]


PRINTED = "State of ETH:\ncurrent_price = 4116.25, rsi = 84.504\nPnL: -548.57, 1.25 of 7,420 in 3 orders, up 2.36%"


def test_a_number_that_the_prompt_prints_is_in_the_context():
    seen = m.material(prompt=PRINTED, completeness="partial")
    for text, rule, line in (
        ("it trades at $4,116.25", "in-prompt", 2), ("it trades near 4116.3", "in-prompt-rounded", 2),
        ("we are down 548.57", "in-prompt", 3), ("PnL of -548.57", "in-prompt", 3),
        ("some 7.42k went in", "in-prompt", 3), ("3 orders are open", "bare-integer", 3),
        ("out if it falls below $4,116.25", "threshold", 2),
    ):  # fmt: skip
        found = only(text, seen)
        assert (found.state, found.rule, found.facts) == ("in_context", rule, (f"prompt:{line}",)), text
    for text in ("PnL of +548.57", "an RSI of 84.5", "at 4116.26", "9 orders"):
        assert only(text, seen).state == "not_found", text


# --- laws -----------------------------------------------------------------------------------------------------------

TEXT = (
    "GOLD: 5d return 3.12%, 21d 8.1%; CPI 3.5%. SMH fell 5.47%, Brent $91.01 down 2.0%. "
    "EWY beat SPY by 11.48% in 5d. Fed at 3.5-3.75%, 10-year 4.63%, payrolls 115k."
)


def test_the_same_sentence_again_finds_the_same_and_without_anything_nothing_is_verified(monkeypatch):
    text = f"{TEXT} GOLD 5d return 9.9%. {TEXT}\nSMH: 5d return 9.9%.\n9.9% in 5d.\n{TEXT}" * 12
    kept = audit(text)
    monkeypatch.setattr(ledger, "_MANY", math.inf)
    assert audit(text) == kept
    assert m.states("Gold up 5.5% to $3", evidence.ContextIndex.build(facts=[])) == ["not_found", "not_found"]
    for value in (math.nan, math.inf):
        assert evidence.ContextIndex.build(facts=[fact("f", "GOLD", "return_5d", value)]).cells.ids == ()


@given(st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_the_order_of_facts_and_instruments_changes_nothing(source):
    facts, people = list(FACTS), list(INSTRUMENTS)
    source.shuffle(facts)
    source.shuffle(people)
    assert audit(TEXT, built(*facts, instruments=people, completeness="complete")) == audit(TEXT)


@pytest.mark.parametrize(("unit", "factor"), [("percent", 100.0), ("bps", 1e4), ("ratio", 1.0)])
def test_rescaling_the_facts_changes_nothing(unit, factor):
    rescaled = [replace(one, value=one.value * factor, unit=unit) if one.unit == "ratio" else one for one in FACTS]
    before, after = ([(f.quote, f.state, f.rule) for f in audit(TEXT, built(*some))] for some in (FACTS, rescaled))
    assert before == after


@given(st.sampled_from(sorted(CELLS)), st.integers(0, 4), st.integers(-99_999, 99_999))
def test_a_printed_cell_is_supported_at_any_precision(name, decimals, thousandths):
    value = thousandths / 1e5
    seen = built(fact("f", name, "return_5d", value))
    zero = any(float(f"{value * factor:.{decimals}f}") == 0 for factor in (100, 1e4))
    for text in (f"{name} 5d return {value * 100:+.{decimals}f}%", f"{name} 5d return {value * 1e4:+.{decimals}f} bps"):
        assert only(text, seen).state == "supported" or zero


def test_planted_errors_lose_support():
    """Of altered table numbers at least nine in ten must not be supported any more."""
    rng = random.Random(11)
    kinds = ("return", "active_return", "volatility", "drawdown")
    fields = [f"{kind}_{span}" for kind in kinds for span in ("5d", "21d", "63d")]
    table = {(name, field): round(rng.gauss(0, 0.12), 6) for name in CELLS for field in fields}
    facts = [fact(f"{name}.{field}", name, field, value) for (name, field), value in table.items()]
    seen = built(*facts, completeness="complete")
    lost = []
    for (name, field), value in table.items():
        for decimals in (0, 1, 2):
            label = f"{name} {field.replace('_', ' ')}"
            assert m.states(f"{label} {value * 100:+.{decimals}f}%", seen) == ["supported"]
            altered = value * 100 * rng.choice((-1.0, 0.5, 0.8, 1.25, 1.6)) + rng.choice((-2, 2)) * 10**-decimals
            lost.append(m.states(f"{label} {altered:+.{decimals}f}%", seen) != ["supported"])
    assert sum(lost) / len(lost) >= 0.9
