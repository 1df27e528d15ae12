"""Measurements of the ledger, and agreement corrected for chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from seen import COMPLETE, built, context, decision, fact

from assaymark.errors import NotMeasurableError
from assaymark.judging import evidence as evidence_of
from assaymark.judging import numeric_ledger
from assaymark.records import Action, Evidence, Instrument, canonical_json, parse

STATES = ["supported", "contradicted", "derivable", "rule", "own_action", "in_context", "not_found"]
DECISIONS = [
    decision("GOLD 5d return 3.12%", "SMH 21d return 29.68%", record="r1", agent="a1", cluster="w1"),
    decision("GOLD 5d return 9.99%, CPI 3.5%", record="r2", agent="a2", cluster="w1"),
    decision("No figure.", record="r3", agent="a1", cluster="w2"),
    decision("SMH -5.47% and 8.8% somewhere", record="r4", agent="a2", cluster="w3"),
]
LEDGER = [item for made in DECISIONS for item in numeric_ledger(made, context(), material=COMPLETE)]


def summary(decisions=DECISIONS, evidence=LEDGER, contexts=None):
    found = evidence_of.evidence_summary(evidence, decisions, contexts, rng=np.random.default_rng(0))
    return {measurement.id: measurement for measurement in found}


def test_shares_by_state_overall_and_by_agent_and_their_interval():
    found = summary()
    assert found["evidence.share[state=contradicted]"].value == pytest.approx(1 / 6)
    assert found["evidence.share[agent=a1,state=supported]"].value == 1.0
    assert found["evidence.share[agent=a2,state=supported]"].detail["count"] == 2
    for labels in ("", "agent=a1,", "agent=a2,"):
        assert sum(found[f"evidence.share[{labels}state={state}]"].value for state in STATES) == pytest.approx(1)
    silent = found["evidence.no_number_share[]"]
    assert (silent.value, silent.n_of, found["evidence.no_number_share[agent=a1]"].value) == (0.25, "records", 0.5)
    # the interval is the linearised ratio over clusters; w2 holds no number, so two clusters carry the share
    supported, hits, totals = found["evidence.share[state=supported]"], np.array([3, 1]), np.array([4, 2])
    share = hits.sum() / totals.sum()
    assert (supported.value, supported.detail["clusters"]) == (pytest.approx(share), 2)
    reach = stats.t.ppf(0.975, 1) * np.sqrt(2 / 1 * ((hits - share * totals) ** 2).sum()) / totals.sum()
    assert (supported.low, supported.high) == pytest.approx((max(0, share - reach), min(1, share + reach)))
    # tables of older versions keep their state
    old = [replace(one, state="not_verifiable") if one.rule == "unmatched" else one for one in LEDGER]
    assert parse(Evidence, canonical_json(old[-1])).state == "not_verifiable"
    assert summary(evidence=old)["evidence.share[state=not_verifiable]"].value == pytest.approx(1 / 6)
    assert "evidence.share[state=not_verifiable]" not in found


def test_every_measurement_is_complete_and_support_beyond_chance_says_what_it_lacks():
    for one in summary(contexts={"c1": COMPLETE}).values():
        assert (one.value is None) == (one.state != "ok")
        assert (one.low is None) == (one.high is None) == (one.level is None)
        assert one.method
        assert one.inputs
        assert one.low is None or 0 <= one.low <= one.value <= one.high <= 1
        assert canonical_json(one)
    found = summary(contexts={"c1": context()})["evidence.chance_corrected[]"]
    assert found == summary(contexts={"c1": COMPLETE})["evidence.chance_corrected[]"]
    assert found.value <= found.detail["observed"] == pytest.approx(3 / 5)
    for contexts, why in ((None, "contexts are needed"), ({}, "no number is about an instrument")):
        found = summary(contexts=contexts)["evidence.chance_corrected[]"]
        assert (found.value, why in found.state) == (None, True)


def test_no_numbers_is_a_state_and_neither_order_nor_other_decisions_change_anything():
    found = summary([DECISIONS[2]], [])
    none = found["evidence.share[state=supported]"]
    assert (none.value, none.state) == (None, "undefined: no numbers")
    assert found["evidence.no_number_share[]"].value == 1.0
    assert summary([], [])["evidence.no_number_share[]"].state == "undefined: no records"
    assert summary(DECISIONS[:1])["evidence.share[state=supported]"].n == 2
    assert summary(DECISIONS[::-1], LEDGER[::-1], {"c1": COMPLETE}) == summary(contexts={"c1": COMPLETE})


HALVES, PARTS = {"GOLD": 0.5, "CHIPS": 0.5}, {"GOLD": 1.0, "CHIPS": 2.0}


def forecast(stated, weights=HALVES, parts=PARTS, record="r1"):
    actions = tuple(Action(instrument=n, kind="target_weight", weight=w) for n, w in weights.items())
    said = {"portfolio_pct": stated, "benchmark_pct": 0.4, "alpha_pct": 0.2, "holdings": parts}
    return decision(record=record, actions=actions, stages={"forecast": said})


def test_a_stated_forecast_agrees_within_a_hundredth_of_a_point_if_it_has_all_of_its_parts():
    for stated, differs in ((1.5, 0), (1.51, 0), (1.49, 0), (1.511, 1), (1.48, 1), (1.6, 1)):
        found = evidence_of.forecast_mismatches([forecast(stated)])
        assert (found.value, found.n, found.detail["count"]) == (float(differs), 1, differs), stated
    decisions = [forecast(stated, record=name) for name, stated in (("x", 1.5), ("y", 1.5), ("z", 1.9))]
    decisions[0] = replace(decisions[0], actions=(*decisions[0].actions, Action(instrument="SP500", kind="hold")))
    found = evidence_of.forecast_mismatches(decisions)
    assert (found.detail["records"], found.value, found.n) == (["z"], pytest.approx(1 / 3), 3)
    for made in (
        decision(), decision(stages={"forecast": "high"}), decision(stages={"forecast": {"portfolio_pct": 1.0}}),
        *(forecast(stated) for stated in ("1.5", True, float("nan"))), forecast(1.5, parts={"GOLD": 1.0}),
        forecast(1.5, {}, {"GOLD": 1.0}),
    ):  # fmt: skip
        found = evidence_of.forecast_mismatches([made])
        assert (found.value, found.n, found.state) == (None, 0, "undefined: no forecast was stated with its parts")


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(-500, 500)), min_size=1, max_size=6))
def test_a_sum_rounded_or_cut_to_two_decimals_always_agrees(parts):
    weights = {f"A{at}": weight / 100 for at, (weight, _) in enumerate(parts)}
    forecasts = {f"A{at}": value / 100 for at, (_, value) in enumerate(parts)}
    total = sum(weights[name] * forecasts[name] for name in weights)
    for stated in (round(total, 2), int(total * 100) / 100):
        assert evidence_of.forecast_mismatches([forecast(stated, weights, forecasts)]).value == 0.0


NAMES = [f"A{i:02d}" for i in range(30)]
PEOPLE = [Instrument(id=name, symbol=name) for name in NAMES]


def world(seed, spread):
    """A table of two columns, and its material."""
    values = np.random.default_rng(seed).normal(0, spread, (len(NAMES), 2))
    facts = [
        fact(f"{name}.{field}", name, field, float(value))
        for name, row in zip(NAMES, values, strict=True)
        for field, value in zip(("return_5d", "return_21d"), row, strict=True)
    ]
    return values, built(*facts, instruments=PEOPLE)


def told(material, *texts):
    made = decision(*texts)
    return made, numeric_ledger(made, None, material=material)


def ledger(values, material, *, honest, decimals):
    """One number about every instrument: its own first cell, or one that is in nobody's row."""
    figures = enumerate(zip(NAMES, values[:, 0], strict=True))
    texts = [f"{name} {value * 100 if honest else 900 + at:+.{decimals}f}%" for at, (name, value) in figures]
    return told(material, *texts)


def by_definition(evidence, material, rng, permutations):
    """Permute the subjects within unit and decimals, and look every number up in the row it then has."""

    def agrees(item, subject):
        cells = material.cells
        step = 10.0 ** -len(item.quote.partition(".")[2].rstrip("%")) / 100
        part = cells.parts[material.subjects.rows[subject]]
        return any(abs(value - item.number / 100) <= step / 2 + 1e-12 for value in cells.values.rate[part])

    observed = np.mean([agrees(item, item.subject) for item in evidence])
    drawn = []
    for _ in range(permutations):
        order = rng.permutation(len(evidence))
        drawn.append(np.mean([agrees(item, evidence[at].subject) for item, at in zip(evidence, order, strict=True)]))
    return observed, np.mean(drawn)


def beyond(made, evidence, material, seed=1, permutations=200):
    rng = np.random.default_rng(seed)
    return evidence_of.chance_corrected(evidence, {"c1": material}, {made.record_id: "c1"}, rng, permutations)


@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_fast_equals_definition(decimals):
    values, material = world(3, 0.05)
    made, evidence = ledger(values, material, honest=True, decimals=decimals)
    value, n, found = beyond(made, evidence, material, permutations=2000)
    observed, chance = by_definition(evidence, material, np.random.default_rng(2), 300)
    assert (n, found["observed"]) == (len(NAMES), pytest.approx(observed))
    assert found["chance"] == pytest.approx(chance, abs=0.02)
    assert value == pytest.approx((found["observed"] - found["chance"]) / (1 - found["chance"]))
    assert found["chance_low"] <= found["chance"] <= found["chance_high"]


def test_coarse_figures_agree_with_anybody_fine_ones_with_their_own_and_invented_ones_with_nobody():
    values, material = world(5, 0.03)
    (*_, coarse), (*_, fine), (corrected, _, invented) = (
        beyond(*ledger(values, material, honest=honest, decimals=decimals), material)
        for honest, decimals in ((True, 0), (True, 2), (False, 1))
    )
    assert coarse["observed"] == fine["observed"] == 1.0
    assert coarse["chance"] > 5 * fine["chance"]
    assert (invented["observed"], corrected) == (0.0, 0.0)
    again = ledger(values, material, honest=True, decimals=0)
    assert beyond(*again, material, seed=9) == beyond(*again, material, seed=9)
    same = built(*(fact(n, n, "return_5d", 0.05) for n in NAMES), instruments=PEOPLE)
    for one, texts, why in (
        (material, ["CPI 3.5%"], "no number is about an instrument with facts"),
        (same, [f"{name} 5.0%" for name in NAMES], "agrees with every row"),
    ):
        with pytest.raises(NotMeasurableError, match=why):
            beyond(*told(one, *texts), one)


def test_scaled_signed_and_plain_figures_are_read_from_their_records():
    material = built(
        fact("A00.x", "A00", "volume", 57_400.0, "count"), fact("A00.y", "A00", "spread", 0.0025),
        fact("A00.z", "A00", "close", 12.34, "price"), fact("A00.w", "A00", "return_5d", -0.02),
        fact("A01.x", "A01", "close", 99.0, "price"), instruments=PEOPLE,
    )  # fmt: skip
    _, n, found = beyond(
        *told(material, "A00 volume 57k, A00 spread 25 bps, A00 $12.34, A00 -2.0%, A00 at 0.0%"), material
    )
    assert (n, found["observed"]) == (5, pytest.approx(4 / 5))
