"""The chips, each at both sides of the bounds in its rule."""

from __future__ import annotations

import pytest

from assaymark.metrology.datasheet import NON_CLAIMS, RULES, sketch
from assaymark.records import Measurement


def measurement(name, value, prompt="tie-allowed", detail=None, **labels):
    labels = {"judge": "j", **({"prompt": prompt} if prompt else {}), **labels}
    state = "ok" if value is not None else "not measured: made up"
    return Measurement(
        name=name, labels=labels, value=value, n=60, n_of="calls", method="made up", state=state, detail=detail or {}
    )


def equal_texts(raw, stable, positional):
    return [
        measurement(f"delta0.{name}", value, condition="same_subset")
        for name, value in (("raw", raw), ("stable", stable), ("positional", positional))
    ]


def outcome(axis, measurements):
    return next(chip.outcome for chip in sketch(measurements) if chip.axis == axis)


@pytest.mark.parametrize(
    ("share", "word"),
    [(0.0, "clean"), (0.02, "clean"), (0.021, "nearly clean"), (0.1, "nearly clean"), (0.11, "leaky")],
)
def test_vacuum(share, word):
    by_kind = measurement("dark_current", 0.9, variant="empty")
    assert outcome("vacuum", [by_kind, measurement("dark_current", share)]) == word


@pytest.mark.parametrize(
    ("raw", "stable", "positional", "word"),
    [
        (0.26, 0.0, 0.083, "quiet"),
        (0.33, 0.1, 0.1, "quiet"),
        (0.34, 0.1, 0.1, "mixed"),
        (0.5, 0.05, 0.05, "mixed"),
        (0.43, 0.1, 0.233, "position-led"),
        (1.0, 0.033, 0.967, "position-led"),
        (0.4, 0.1, 0.2, "position-led"),
        (0.4, 0.11, 0.2, "mixed"),
        (0.4, 0.3, 0.05, "wording-led"),
        (0.99, 0.45, 0.533, "mixed"),
    ],
)
def test_equal_texts(raw, stable, positional, word):
    assert outcome("equal texts", equal_texts(raw, stable, positional)) == word


@pytest.mark.parametrize(
    ("value", "censored", "word"),
    [
        (0.83, None, "sensitive below one requirement"),
        (0.5, "left", "sensitive below one requirement"),
        (1.0, "left", "sensitive at one requirement"),
        (1.0, None, "sensitive at one requirement"),
        (1.2, None, "needs 2 requirements"),
        (4.0, None, "needs 4 requirements"),
        (5.0, "right", "insensitive"),
    ],
)
def test_target(value, censored, word):
    assert outcome("target", [measurement("threshold", value, detail={"censored": censored})]) == word


def strict_arm(shift, *, accuracy=(1.0, 1.0), largest=(1.0, 1.0)):
    found = [measurement("criterion.shift", shift, prompt=None, condition="same_subset")]
    for prompt, right, top in zip(("tie-allowed", "strict"), accuracy, largest, strict=True):
        found.append(measurement("conditional_accuracy", right, prompt, delta="1"))
        found.append(measurement("sensitivity", 0.9 if prompt == "tie-allowed" else 0.5, prompt, delta="1"))
        found.append(measurement("sensitivity", top, prompt, delta="5"))
    return found


@pytest.mark.parametrize(
    ("measurements", "word"),
    [
        (strict_arm(0.26), "moves the criterion"),
        (strict_arm(-0.26), "moves the criterion"),
        (strict_arm(0.04), "no effect"),
        (strict_arm(0.26, accuracy=(0.95, 0.90)), "moves the criterion"),
        (strict_arm(0.26, accuracy=(0.95, 0.89)), "costs resolution"),
        (strict_arm(0.26, largest=(1.0, 0.9)), "moves the criterion"),
        (strict_arm(0.26, largest=(1.0, 0.85)), "costs resolution"),
        (strict_arm(0.01, largest=(1.0, 0.85)), "costs resolution"),
        (strict_arm(None), "not measured"),
    ],
)
def test_strict_prompt(measurements, word):
    assert outcome("strict prompt", measurements) == word


def test_an_axis_without_its_measurements_is_not_measured():
    assert [chip.outcome for chip in sketch([])] == ["not measured"] * 4
    assert outcome("equal texts", equal_texts(0.5, None, None)) == "not measured"


def test_every_chip_carries_its_rule_and_what_it_rests_on():
    measurements = [measurement("dark_current", 0.0), *equal_texts(0.2, 0.0, 0.1)]
    chips = sketch(measurements)
    assert [chip.axis for chip in chips] == list(RULES)
    for chip in chips:
        assert chip.rule == RULES[chip.axis]
        assert chip.text == f"{chip} ({chip.rule})"
        assert chip.outcome == "not measured" or chip.basis
        assert set(chip.basis) <= {m.id for m in measurements}
        assert chip.outcome == "not measured" or chip.outcome in chip.rule


def test_the_only_arm_of_a_log_is_sketched():
    assert outcome("vacuum", [measurement("dark_current", 0.5, "theirs")]) == "leaky"


def test_what_is_not_claimed_is_said_in_sentences():
    assert len(set(NON_CLAIMS)) == len(NON_CLAIMS) >= 5
    assert all(claim.startswith("That ") and claim.endswith(".") for claim in NON_CLAIMS)
