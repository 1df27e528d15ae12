"""Measurements of the ledger, and agreement corrected for chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from seen import AT, COMPLETE, context, decision

from assaymark.errors import NotMeasurableError
from assaymark.judging import evidence as evidence_of
from assaymark.judging import numeric_ledger
from assaymark.records import Action, Evidence, Fact, Instrument, canonical_json, parse

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


def test_shares_by_state_overall_and_by_agent():
    found = summary()
    assert found["evidence.share[state=supported]"].value == pytest.approx(4 / 6)
    assert found["evidence.share[state=contradicted]"].value == pytest.approx(1 / 6)
    assert found["evidence.share[agent=a1,state=supported]"].value == 1.0
    assert found["evidence.share[agent=a2,state=supported]"].detail["count"] == 2
    for labels in ("", "agent=a1,", "agent=a2,"):
        assert sum(found[f"evidence.share[{labels}state={state}]"].value for state in STATES) == pytest.approx(1)
    assert found["evidence.no_number_share[]"].value == 0.25
    assert found["evidence.no_number_share[agent=a1]"].value == 0.5
    assert found["evidence.no_number_share[]"].n_of == "records"


def test_tables_of_older_versions_keep_their_state():
    old = [replace(one, state="not_verifiable") if one.rule == "unmatched" else one for one in LEDGER]
    assert parse(Evidence, canonical_json(old[-1])).state == "not_verifiable"
    found = summary(evidence=old)
    assert found["evidence.share[state=not_verifiable]"].value == pytest.approx(1 / 6)
    assert "evidence.share[state=not_verifiable]" not in summary()


def test_every_measurement_is_complete_and_goes_to_json():
    for one in summary(contexts={"c1": COMPLETE}).values():
        assert (one.value is None) == (one.state != "ok")
        assert (one.low is None) == (one.high is None) == (one.level is None)
        assert one.method
        assert one.inputs
        if one.low is not None:
            assert 0 <= one.low <= one.value <= one.high <= 1
        assert canonical_json(one)


def test_the_interval_is_the_linearised_ratio_over_clusters():
    found = summary()["evidence.share[state=supported]"]
    hits, totals = np.array([3, 0, 1]), np.array([4, 0, 2])
    # w2 holds no number, so two clusters carry the share
    hits, totals = hits[totals > 0], totals[totals > 0]
    share = hits.sum() / totals.sum()
    error = np.sqrt(2 / 1 * ((hits - share * totals) ** 2).sum()) / totals.sum()
    reach = stats.t.ppf(0.975, 1) * error
    assert found.detail["clusters"] == 2
    assert (found.low, found.high) == pytest.approx((max(0, share - reach), min(1, share + reach)))


def test_support_beyond_chance_takes_contexts_or_materials_and_says_what_it_lacks():
    found = summary(contexts={"c1": context()})["evidence.chance_corrected[]"]
    assert found == summary(contexts={"c1": COMPLETE})["evidence.chance_corrected[]"]
    assert found.detail["observed"] == pytest.approx(3 / 5)
    assert found.value <= found.detail["observed"]
    for contexts, why in ((None, "contexts are needed"), ({}, "no number is about an instrument")):
        found = summary(contexts=contexts)["evidence.chance_corrected[]"]
        assert found.value is None
        assert why in found.state


def test_no_numbers_is_a_state_and_neither_order_nor_other_decisions_change_anything():
    found = summary([DECISIONS[2]], [])
    none = found["evidence.share[state=supported]"]
    assert (none.value, none.state) == (None, "undefined: no numbers")
    assert found["evidence.no_number_share[]"].value == 1.0
    assert summary([], [])["evidence.no_number_share[]"].state == "undefined: no records"
    assert summary(DECISIONS[:1])["evidence.share[state=supported]"].n == 2
    assert summary(DECISIONS[::-1], LEDGER[::-1], {"c1": COMPLETE}) == summary(contexts={"c1": COMPLETE})


def forecast(stated, weights, parts, record="r1"):
    return decision(
        record=record,
        actions=tuple(Action(instrument=n, kind="target_weight", weight=w) for n, w in weights.items()),
        stages={"forecast": {"portfolio_pct": stated, "benchmark_pct": 0.4, "alpha_pct": 0.2, "holdings": parts}},
    )


HALVES = {"GOLD": 0.5, "CHIPS": 0.5}


@pytest.mark.parametrize(
    ("stated", "differs"), [(1.5, False), (1.51, False), (1.49, False), (1.511, True), (1.48, True), (1.6, True)]
)
def test_a_stated_forecast_agrees_within_a_hundredth_of_a_point(stated, differs):
    found = evidence_of.forecast_mismatches([forecast(stated, HALVES, {"GOLD": 1.0, "CHIPS": 2.0})])
    assert (found.value, found.n, found.detail["count"]) == (float(differs), 1, int(differs))


def test_records_that_differ_are_named_and_actions_without_a_weight_are_no_parts():
    parts = {"GOLD": 1.0, "CHIPS": 2.0}
    decisions = [forecast(stated, HALVES, parts, record=name) for name, stated in (("x", 1.5), ("y", 1.5), ("z", 1.9))]
    decisions[0] = replace(decisions[0], actions=(*decisions[0].actions, Action(instrument="SP500", kind="hold")))
    found = evidence_of.forecast_mismatches(decisions)
    assert (found.detail["records"], found.value, found.n) == (["z"], pytest.approx(1 / 3), 3)


@pytest.mark.parametrize("made", [
    decision(),
    decision(stages={"forecast": "high"}),
    decision(stages={"forecast": {"portfolio_pct": 1.0}}),
    forecast("1.5", HALVES, {"GOLD": 1.0, "CHIPS": 2.0}),
    forecast(True, HALVES, {"GOLD": 1.0, "CHIPS": 2.0}),
    forecast(float("nan"), HALVES, {"GOLD": 1.0, "CHIPS": 2.0}),
    forecast(1.5, HALVES, {"GOLD": 1.0}),
    forecast(1.5, {}, {"GOLD": 1.0}),
])  # fmt: skip
def test_without_all_of_its_parts_a_forecast_does_not_count(made):
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


def world(rng, spread):
    """A table of two columns, and its material."""
    values = rng.normal(0, spread, (len(NAMES), 2))
    facts = [
        Fact(id=f"{name}.{field}", instrument=name, field=field, value=float(value), unit="ratio", available_at=AT)
        for name, row in zip(NAMES, values, strict=True)
        for field, value in zip(("return_5d", "return_21d"), row, strict=True)
    ]
    return values, evidence_of.Material.build(facts=facts, instruments=PEOPLE)


def ledger(values, material, *, honest, decimals):
    """One number about every instrument: its own first cell, or one that is in nobody's row."""
    texts = [
        f"{name} {value * 100 if honest else 900 + at:+.{decimals}f}%"
        for at, (name, value) in enumerate(zip(NAMES, values[:, 0], strict=True))
    ]
    made = decision(*texts)
    return made, numeric_ledger(made, None, material=material)


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
    values, material = world(np.random.default_rng(3), 0.05)
    made, evidence = ledger(values, material, honest=True, decimals=decimals)
    found = beyond(made, evidence, material, permutations=2000)
    observed, chance = by_definition(evidence, material, np.random.default_rng(2), 300)
    assert (found.n, found.observed) == (len(NAMES), pytest.approx(observed))
    assert found.chance == pytest.approx(chance, abs=0.02)
    assert found.corrected == pytest.approx((found.observed - found.chance) / (1 - found.chance))
    assert found.low <= found.chance <= found.high


def test_coarse_figures_agree_with_anybody_fine_ones_with_their_own_and_invented_ones_with_nobody():
    values, material = world(np.random.default_rng(5), 0.03)
    coarse, fine, invented = (
        beyond(*ledger(values, material, honest=honest, decimals=decimals), material)
        for honest, decimals in ((True, 0), (True, 2), (False, 1))
    )
    assert coarse.observed == fine.observed == 1.0
    assert coarse.chance > 5 * fine.chance
    assert (invented.observed, invented.corrected) == (0.0, 0.0)
    again = ledger(values, material, honest=True, decimals=0)
    assert beyond(*again, material, seed=9) == beyond(*again, material, seed=9)


def test_where_no_number_or_every_row_agrees_it_is_undefined():
    same = [Fact(id=n, instrument=n, field="return_5d", value=0.05, unit="ratio", available_at=AT) for n in NAMES]
    for material, texts, why in (
        (world(np.random.default_rng(5), 0.03)[1], ["CPI 3.5%"], "no number is about an instrument with facts"),
        (
            evidence_of.Material.build(facts=same, instruments=PEOPLE),
            [f"{name} 5.0%" for name in NAMES],
            "agrees with every row",
        ),
    ):
        made = decision(*texts)
        with pytest.raises(NotMeasurableError, match=why):
            beyond(made, numeric_ledger(made, None, material=material), material)


def test_scaled_signed_and_plain_figures_are_read_from_their_records():
    facts = [
        Fact(id="A00.x", instrument="A00", field="volume", value=57_400.0, unit="count", available_at=AT),
        Fact(id="A00.y", instrument="A00", field="spread", value=0.0025, unit="ratio", available_at=AT),
        Fact(id="A00.z", instrument="A00", field="close", value=12.34, unit="price", available_at=AT),
        Fact(id="A00.w", instrument="A00", field="return_5d", value=-0.02, unit="ratio", available_at=AT),
        Fact(id="A01.x", instrument="A01", field="close", value=99.0, unit="price", available_at=AT),
    ]
    material = evidence_of.Material.build(facts=facts, instruments=PEOPLE)
    made = decision("A00 volume 57k, A00 spread 25 bps, A00 $12.34, A00 -2.0%, A00 at 0.0%")
    evidence = numeric_ledger(made, None, material=material)
    found = beyond(made, evidence, material)
    assert (found.n, found.observed) == (5, pytest.approx(4 / 5))
