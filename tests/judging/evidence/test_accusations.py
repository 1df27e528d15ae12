"""Conditions for calling a number contradicted, case by case, with every exception."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seen import COMPLETE, FACTS, PARTIAL, audit, built, fact, free, material, only, states

from assaymark.records import Instrument

ACCUSED = [
    "GOLD return over 5d was 4.9%", "IAU: 5d return +9.12%", "GOLD 5d return -3.12%",
    "Chips volatility over 21 sessions 41.7%", "SMH beta 63d spy 2.06", "GOLD max drawdown 21d 16.5%",
    "GOLD close $98.87",
]  # fmt: skip


@pytest.mark.parametrize("text", ACCUSED)
def test_a_clear_misstatement_of_one_cell_is_contradicted_and_a_partial_context_accuses_nobody(text):
    found, partial = only(text), only(text, PARTIAL)
    assert (found.state, found.rule, len(found.facts)) == ("contradicted", "one-cell-differs", 1)
    assert (partial.state, partial.rule) == ("not_found", "partial-context")


NOT_ACCUSED = {
    "no subject": "5d return was 4.9%", "two subjects": "GOLD and SMH 5d return 4.9%", "no field": "GOLD 4.9% over 5d",
    "another owner": "GOLD: SMH 5d return 4.9%", "no horizon": "GOLD return 4.9%", "dollars": "GOLD 5d return $4.90",
    "horizon without a cell": "GOLD return over 63d 4.9%", "a hedge": "GOLD 5d return of roughly 4.9%",
    "a forecast": "GOLD 5d return could be 4.9%", "a threshold": "GOLD 5d return above 4.9%",
    "a comparison": "GOLD 5d return beat by 4.9%", "two numbers in the clause": "GOLD 5d return 4.9% 5.9%",
    "a list of subjects": "GOLD, SMH 5d return 4.9%", "another noun": "GOLD 5d return dispersion 4.9%",
    "a benchmark the field does not name": "GOLD 5d return with SPY 4.9%", "a bare integer": "GOLD 5d return 5",
    "another measure": "GOLD 5d return rank 4.9%", "one last digit off, rounding": "GOLD 5d return 3.2%",
    "truncation": "GOLD 21d return 8.1%", "rounding a rounded display": "EWY 5d return 12.8%",
    "a word of movement": "GOLD 5d return fell 3.12%", "derivable": "EWY 5d return outperformed SPY by 11.48%",
}  # fmt: skip


# --- a stored display value, and everything that is not simply another value for it ----------------------------------

FUNDS = (
    Instrument(id="BRIAR", symbol="BRIAR", name="Briar Growth Equity"),
    Instrument(id="GOLD", symbol="IAU", name="Gold Trust"),
)


def shown(unit, prompt=""):
    """Values as a page displays them, in a complete context."""
    facts = [
        fact("b1", "BRIAR", "return_21d", 3.1, unit), fact("b2", "BRIAR", "volatility_21d", 12.4, unit),
        fact("g1", "GOLD", "return_21d", 1.2, unit), fact("g2", "GOLD", "price", 2345.5, "usd"),
    ]  # fmt: skip
    return built(*facts, instruments=FUNDS, completeness="complete", rules=(prompt,))


PLAIN = [
    "Briar's 21-session return is 17.4%", "Briar 21d return: 17.4%", "BRIAR's 21-day return was 17.4%",
    "Over 21 sessions Briar returned 17.4%", "Briar returned 17.4% over the last 21 sessions.",
    "Briar’s return over the past 21 days was １７.４％.", "BRIAR: 21d return -17.4%",
    "Briar's 21-day return is 17,4 %", "Briar's 21-day return is 17.4%, so I buy it.",
    "Briar's 21-day return is 17.4%, Gold's price $2,345.50", "**Briar** 21d return: **17.4%**",
    "Briar's 21-day return is 0.174", "Gold's price is 2,100.5",
]  # fmt: skip


OTHERWISE = [
    "Briar's 21-day return is 0.031", "Briar's 21-day return is 3.14%", "Briar's 21-day return is 310 bps",
    "Briar's 21-day return is 3,1 %", "Briar's 21-day return is 1.2x", "Briar's 21-day return is $17.4",
    "Briar's 21-day return is not 17.4%", "Briar's 21-day return isn't 17.4%", "Briar's 21-day return is never 17.4%",
    "Briar's 21-day excess return is 17.4%", "Briar's annualised 21-day return is 17.4%",
    "Briar's 21-day return is 17.4% annualised", "Briar's 21-day return is 17.4% (annualised)",
    "Briar's 21-day (log) return is 17.4%", "Briar's 21-day log return is 17.4%",
    "Briar's median 21-day return is 17.4%", "Briar's 21-day momentum is 17.4%",
    "Briar's 21-day return minus fees is 2.9%", "Briar's 21-day return is 17.4%, net of fees",
    "Briar's 21-day return is 17.4% (3.1% before fees)", "Briar's 21-day return in EUR is 17.4%",
    "Briar's 21-day return is 17.4% in €", "Last year Briar's 21-day return was 17.4%",
    "Last year, Briar's 21-day return was 17.4%", "In my simulation, Briar's 21-day return was 17.4%",
    "Briar's 21-day return was 17.4% a month ago", "Briar's 21-day return was 17.4%, but that was last year",
    "Gold's price was 2,100 in January", "A year ago all was well. Briar's 21-day return was 17.4%.",
    "Briar's 21-day return is 17.4%. That is false.", "Briar's 21-day return is 17.4%, so I doubt the source",
    "Briar's 21-day return rose by 17.4%", "Briar gained 17.4% over 21 sessions",
    "Briar's peers' 21-day return is 17.4%", "Briar's sector 21-day return is 17.4%",
    "Briar and Gold's 21-day return is 17.4%", "Gold and Briar's 21-day return is 17.4%",
    "Briar/Gold 21-day return is 17.4%", "A 50/50 mix of Briar and Gold's 21-day return is 17.4%",
    "Silver and Briar's 21-day return is 17.4%", "Briar's 21-day return ranks in the top 10%",
    "Briar's 21-day return has an 80% chance", "Briar's 21-day volatility limit is 30%",
    "Briar's 21-day return is 17.4 percentage points", "Briar's 21-day return is ~17.4%",
    'Briar\'s 21-day return is "17.4%"', "Is Briar's 21-day return 17.4%?", "If Briar's 21-day return is 17.4%, I buy",
    "Briar's 5-day and 21-day return is 17.4%", "Briar's 21-day return is " + "very " * 80 + "17.4%",
]  # fmt: skip


@pytest.mark.parametrize("unit", ["pct", "percent"])
def test_a_plain_misstatement_of_a_displayed_value_is_accused_and_a_statement_about_anything_else_is_not(unit):
    seen = shown(unit)
    assert [text for text in PLAIN if states(text, seen)[0] != "contradicted"] == []
    assert [text for text in OTHERWISE if "contradicted" in states(text, seen)] == []


def test_nobody_is_accused_of_quoting_the_prompt_or_the_briefing():
    text = "Briar's 21-day return is 17.4%"
    for prompt, state in (
        ("the index made 17.4%", "in_context"), ("一年回报17.4％", "in_context"), ("a factor of 0.174", "not_found"),
        ("17.38 points", "not_found"), ("nothing of the sort, 17.2", "contradicted"),
    ):  # fmt: skip
        assert states(text, shown("pct", prompt)) == [state], prompt
    note = free("b1", "made", 17.4, "percent", "The sector index made 17.4% in spring.")
    assert states("GOLD 5d return 17.4%") == ["contradicted"]
    assert states("GOLD 5d return 17.4%", material(facts=(*FACTS, note))) == ["in_context"]
    text = "GOLD 5d return 9.99%, SMH 21d return 11.11%"
    assert states(text, COMPLETE) == ["contradicted", "contradicted"]
    assert states(text, PARTIAL) == ["not_found", "not_found"]


def gold(*values, unit="ratio"):
    """A complete context in which gold has these fields and values."""
    facts = (fact(f"{field}.{at}", "GOLD", field, value, unit) for at, (field, value) in enumerate(values))
    return built(*facts, completeness="complete")


def test_any_doubt_acquits_and_which_cell_is_accused():
    assert {why for why, text in NOT_ACCUSED.items() if "contradicted" in states(text)} == set()
    for seen, text, state in (
        # a value without decimals can be misstated too
        (gold(("return_21d", 2.0), unit="pct"), "GOLD 21d return 17.4%", "contradicted"),
        (gold(("return_21d", 2.0), unit="pct"), "GOLD 21d return 2.4%", "not_found"),
        # not under a synonym that may be measured otherwise
        (gold(("momentum_21d", 0.5), unit="index"), "GOLD 21d return 17.4", "not_found"),
        (gold(("momentum_21d", 0.5), unit="index"), "GOLD 21d momentum 17.4", "contradicted"),
        # two values of one field accuse nobody
        (gold(("return_5d", 0.03), ("return_5d", 0.05)), "GOLD 5d return 9.99%", "not_found"),
    ):
        assert states(text, seen) == [state], text
    specific = gold(("return_5d", 0.031), ("active_return_5d", 0.012))
    assert only("GOLD active return 5d 8.88%", specific).facts == ("active_return_5d.1",)


SHARES = st.floats(-0.9, 0.9).filter(lambda share: abs(share) > 1e-6)


@given(SHARES, st.integers(0, 3), st.sampled_from(["round", "cut", "twice"]))
def test_display_rounding_and_truncation_never_accuse(value, decimals, how):
    seen = gold(("return_5d", value))
    shown = value * 100
    if how == "cut":
        shown = int(shown * 10**decimals) / 10**decimals
    elif how == "twice":
        shown = round(shown, decimals + 1)
    text = f"GOLD 5d return {shown:+.{decimals}f}%"
    assert "contradicted" not in states(text, seen)


@given(st.floats(-0.5, 0.5), st.integers(1, 3), st.floats(1.6, 50.0), st.booleans())
def test_anything_well_beyond_the_last_digit_does(value, decimals, steps, up):
    seen = gold(("return_5d", value))
    shown = value * 100 + (steps if up else -steps) * 10**-decimals
    (found,) = audit(f"GOLD 5d return {shown:+.{decimals}f}%", seen)
    printed = float(found.number)
    stored = 10.0 ** (2 - len(repr(value).partition(".")[2].rstrip("0"))) if "e" not in repr(value) else 0.0
    another_scale = any(0.8 < abs(printed) * factor / abs(value * 100 or 1e-9) < 1.2 for factor in (100, 0.01))
    if abs(abs(printed) - abs(value * 100)) > 1.01 * max(10**-decimals, min(stored, 1.0)) and not another_scale:
        assert found.state == "contradicted"
