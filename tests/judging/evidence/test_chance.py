"""Support beyond chance: against the definition written slowly, and on planted material."""

from __future__ import annotations

import numpy as np
import pytest
from seen import AT, decision

from assaymark.errors import NotMeasurableError
from assaymark.judging import numeric_ledger
from assaymark.judging.evidence import Material, chance_corrected
from assaymark.records import Fact, Instrument

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
    return values, Material.build(facts=facts, instruments=PEOPLE)


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
        part = cells.of_row(material.subjects.rows[subject])
        return any(abs(value - item.number / 100) <= step / 2 + 1e-12 for value in cells.values.rate[part])

    observed = np.mean([agrees(item, item.subject) for item in evidence])
    drawn = []
    for _ in range(permutations):
        order = rng.permutation(len(evidence))
        drawn.append(np.mean([agrees(item, evidence[at].subject) for item, at in zip(evidence, order, strict=True)]))
    return observed, np.mean(drawn)


@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_fast_equals_definition(decimals):
    values, material = world(np.random.default_rng(3), 0.05)
    made, evidence = ledger(values, material, honest=True, decimals=decimals)
    found = chance_corrected(
        evidence, {"c1": material}, {made.record_id: "c1"}, rng=np.random.default_rng(1), permutations=2000
    )
    observed, chance = by_definition(evidence, material, np.random.default_rng(2), 300)
    assert found.n == len(NAMES)
    assert found.observed == pytest.approx(observed)
    assert found.chance == pytest.approx(chance, abs=0.02)
    assert found.corrected == pytest.approx((found.observed - found.chance) / (1 - found.chance))
    assert found.low <= found.chance <= found.high


def test_coarse_figures_agree_with_anybody_and_fine_ones_only_with_their_own():
    values, material = world(np.random.default_rng(5), 0.03)
    shares = []
    for decimals in (0, 2):
        made, evidence = ledger(values, material, honest=True, decimals=decimals)
        shares.append(
            chance_corrected(evidence, {"c1": material}, {made.record_id: "c1"}, rng=np.random.default_rng(1))
        )
    coarse, fine = shares
    assert coarse.observed == fine.observed == 1.0
    assert coarse.chance > 5 * fine.chance


def test_invented_figures_score_nothing_beyond_chance():
    values, material = world(np.random.default_rng(5), 0.03)
    made, evidence = ledger(values, material, honest=False, decimals=1)
    found = chance_corrected(evidence, {"c1": material}, {made.record_id: "c1"}, rng=np.random.default_rng(1))
    assert (found.observed, found.corrected) == (0.0, 0.0)


def test_the_same_draws_give_the_same_numbers():
    values, material = world(np.random.default_rng(5), 0.03)
    made, evidence = ledger(values, material, honest=True, decimals=0)
    first, second = (
        chance_corrected(evidence, {"c1": material}, {made.record_id: "c1"}, rng=np.random.default_rng(9))
        for _ in range(2)
    )
    assert first == second


def test_without_a_number_about_an_instrument_it_is_undefined():
    _, material = world(np.random.default_rng(5), 0.03)
    made = decision("CPI 3.5%")
    evidence = numeric_ledger(made, None, material=material)
    with pytest.raises(NotMeasurableError, match="no number is about an instrument with facts"):
        chance_corrected(evidence, {"c1": material}, {made.record_id: "c1"}, rng=np.random.default_rng(1))


def test_where_every_row_agrees_it_is_undefined():
    facts = [
        Fact(id=name, instrument=name, field="return_5d", value=0.05, unit="ratio", available_at=AT) for name in NAMES
    ]
    material = Material.build(facts=facts, instruments=PEOPLE)
    made = decision(*(f"{name} 5.0%" for name in NAMES))
    evidence = numeric_ledger(made, None, material=material)
    with pytest.raises(NotMeasurableError, match="agrees with every row"):
        chance_corrected(evidence, {"c1": material}, {made.record_id: "c1"}, rng=np.random.default_rng(1))


def test_scaled_signed_and_plain_figures_are_read_from_their_records():
    facts = [
        Fact(id="A00.x", instrument="A00", field="volume", value=57_400.0, unit="count", available_at=AT),
        Fact(id="A00.y", instrument="A00", field="spread", value=0.0025, unit="ratio", available_at=AT),
        Fact(id="A00.z", instrument="A00", field="close", value=12.34, unit="price", available_at=AT),
        Fact(id="A00.w", instrument="A00", field="return_5d", value=-0.02, unit="ratio", available_at=AT),
        Fact(id="A01.x", instrument="A01", field="close", value=99.0, unit="price", available_at=AT),
    ]
    material = Material.build(facts=facts, instruments=PEOPLE)
    made = decision("A00 volume 57k, A00 spread 25 bps, A00 $12.34, A00 -2.0%, A00 at 0.0%")
    evidence = numeric_ledger(made, None, material=material)
    found = chance_corrected(evidence, {"c1": material}, {made.record_id: "c1"}, rng=np.random.default_rng(1))
    assert (found.n, found.observed) == (5, pytest.approx(4 / 5))
