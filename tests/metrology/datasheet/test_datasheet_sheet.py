"""The datasheet as a record, and two of them compared."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep

from assaymark.errors import InputError
from assaymark.metrology import datasheet
from assaymark.protocol import parse_study
from assaymark.records import Measurement, canonical_json, parse


@pytest.fixture(scope="module")
def calls(draw, planted):
    rng = np.random.default_rng(21)
    strict = draw(rng, planted(), conditions=frozenset({"same_subset"}), prompt="strict")
    return draw(rng, planted()) + strict


def sheet_of(calls, **parts):
    usual = {"manifest": "m", "prompts": {"tie-allowed": "p"}}
    return datasheet.datasheet_of(calls, rng=np.random.default_rng(1), **(usual | parts))


@pytest.fixture(scope="module")
def sheet(calls):
    return sheet_of(calls, model="reference/j", family="reference", planted={"dark_current": 0.15})


def verdict_of(found):
    return found[-1].detail["verdict"]


def drifts(found):
    return {m.labels["of"]: m for m in found if m.name == "drift"}


def test_it_comes_back_from_json_as_it_went(sheet, calls):
    text = canonical_json(sheet)
    again = parse(datasheet.Datasheet, text)
    assert canonical_json(again) == text
    assert [(m.id, m.value) for m in again.measurements] == [(m.id, m.value) for m in sheet.measurements]
    # Unknown keys and wrong types are refused.
    for key, value in (("colour", "red"), ("source", "memory")):
        with pytest.raises(InputError, match=key):
            parse(datasheet.Datasheet, json.dumps(json.loads(text) | {key: value}))
    # It says what was run.
    assert (sheet.judge, sheet.model, sheet.source) == ("j", "reference/j", "run")
    assert sheet.arms == ("tie-allowed", "strict")
    invalid = sum(call.verdict == "invalid" for call in calls)
    assert (sheet.calls, sheet.tasks) == ({"all": len(calls), "ok": len(calls) - invalid, "invalid": invalid}, 10)
    assert sheet.sketch == tuple(chip.text for chip in datasheet.sketch(sheet.measurements))
    assert sheet.non_claims
    # Kept calls come back, and those that cannot be read are named.
    assert set(datasheet.anchored_calls(sheet)) == set(calls)
    assert datasheet.anchored_calls(sheet_of(calls, keep_calls=False)) == ()
    broken = replace(
        sheet, anchors={"v0|uv|tie-allowed|1": "1", **dict.fromkeys(("v0|uw|x|1", "gone|uv|x|1", ""), "1")}
    )
    with pytest.raises(InputError, match="3 problems"):
        datasheet.anchored_calls(broken)


def test_a_prompt_with_a_bar_cannot_be_kept(calls, sheet):
    barred = [replace(call, prompt="a|b") for call in calls if call.prompt == "strict"]
    with pytest.raises(InputError, match="must not contain"):
        sheet_of(barred)
    assert sheet_of(barred, keep_calls=False).arms == ("a|b",)
    named = [replace(call, pair=f"a|{call.pair}") for call in calls]
    assert set(datasheet.anchored_calls(sheet_of(named))) == set(named)


def test_a_changed_judge_is_shifted_and_an_unchanged_one_is_not(calls, sheet):
    found = datasheet.compare(sheet, sheet)
    assert (verdict_of(found), found[-1].value, found[-1].n) == ("same instrument", 0.0, len(drifts(found)))
    assert all(m.value == 0 and m.low < 0 < m.high for m in drifts(found).values())
    assert found[-1].detail["widest"] > 0
    # Every fourth vacuum tie is now a choice of slot 1; nothing else changed.
    ties = [i for i, call in enumerate(calls) if call.condition == "vacuum" and call.verdict == "tie"][::4]
    later = sheet_of([replace(call, verdict="1") if i in ties else call for i, call in enumerate(calls)])
    found = datasheet.compare(sheet, later)
    assert (found[-1].detail["shifted"], found[-1].value, verdict_of(found)) == (["dark_current"], 1.0, "shifted")
    changed = drifts(found)
    m = changed.pop("dark_current")
    assert (m.value, m.n, m.n_of) == (pytest.approx(len(ties) / 120), 120, "common calls")
    assert m.low > 0
    assert drifts(datasheet.compare(later, sheet))["dark_current"].value == pytest.approx(-m.value)
    assert {other.value for other in changed.values()} == {0}


def test_every_compared_quantity_is_the_change_of_its_measurement(sheet, draw, planted):
    strict = draw(np.random.default_rng(23), planted(), conditions=frozenset({"same_subset"}), prompt="strict")
    later = sheet_of(draw(np.random.default_rng(22), planted()) + strict)
    paired = drifts(datasheet.compare(sheet, later))
    counted = drifts(datasheet.compare(replace(sheet, anchors={}, pairs={}), replace(later, anchors={}, pairs={})))
    assert paired.keys() == counted.keys()
    assert {"sensitivity[delta=1]", "delta0.stable[condition=same_subset,prompt=strict]"} <= set(paired)
    assert "dark_current[prompt=strict]" not in paired
    for of, m in paired.items():
        other = counted[of]
        wanted = (other.value, other.detail["old"], other.detail["new"])
        assert (m.value, m.detail["old"], m.detail["new"]) == pytest.approx(wanted)
    # From counts it is fishers test and newcombes interval.
    later = sheet_of(draw(np.random.default_rng(22), planted(vacuum=0.4)), keep_calls=False)
    m = drifts(datasheet.compare(sheet, later))["dark_current"]
    darks = [next(m for m in one.measurements if m.name == "dark_current") for one in (sheet, later)]
    (n, other), shares = (round(one.detail["effective_n"]) for one in darks), (m.detail["old"], m.detail["new"])
    old, new = round(shares[0] * n), round(shares[1] * other)
    assert m.detail["p"] == pytest.approx(stats.fisher_exact([[old, n - old], [new, other - new]]).pvalue)
    # Shifts are adjusted over all quantities.
    found = drifts(datasheet.compare(sheet, later))
    smallest = min(found.values(), key=lambda m: m.detail["p"])
    assert smallest.detail["p_holm"] == pytest.approx(min(1.0, smallest.detail["p"] * len(found)))
    assert (smallest.level, drifts(datasheet.compare(sheet, later, alpha=0.01))["dark_current"].level) == (0.95, 0.99)


shares = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(shares, shares)
def test_the_interval_of_a_difference_is_newcombes(old, new):
    expected = confint_proportions_2indep(*new, *old, method="newcomb", compare="diff", alpha=0.05)
    found = datasheet.difference_interval(old[0] / old[1], new[0] / new[1], old[1], new[1], 0.05)
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("change", "reason"), [
    ({"manifest": "other"}, "the texts differ"), ({"manifest": ""}, "the texts differ"),
    ({"prompts": {"tie-allowed": "q"}}, "the prompt differs: tie-allowed"),
    ({"arms": ("else",)}, "no prompt was used in both")
])  # fmt: skip
def test_other_texts_or_prompts_are_not_comparable(sheet, change, reason):
    (found,) = datasheet.compare(sheet, replace(sheet, **change))
    assert (verdict_of([found]), found.value) == ("not comparable", None)
    assert reason in found.state


def test_logs_are_comparable_only_by_common_pairs(sheet, calls):
    log = replace(sheet, manifest="", prompts={})
    assert verdict_of(datasheet.compare(log, log)) == "same instrument"
    bare = replace(log, anchors={}, pairs={})
    assert "nothing shows that the texts are the same" in datasheet.compare(bare, bare)[0].state
    turned = replace(log, pairs=log.pairs | {"same_subset0": replace(log.pairs["same_subset0"], task="elsewhere")})
    assert "pairs of the same name are different pairs, such as same_subset0" in datasheet.compare(log, turned)[0].state
    empty = replace(sheet, anchors={}, pairs={}, measurements=())
    assert "no quantity was measured in both" in datasheet.compare(sheet, empty)[0].state


# The chips, each at both sides of the bounds in its rule
def measurement(name, value, prompt="tie-allowed", detail=None, **labels):
    labels = {"judge": "j", **({"prompt": prompt} if prompt else {}), **labels}
    made = {
        "n": 60, "n_of": "calls", "method": "made up", "state": "ok" if value is not None else "not measured: made up"
    }  # fmt: skip
    return Measurement(name=name, labels=labels, value=value, detail=detail or {}, **made)


def vacuum(share):
    return [measurement("dark_current", 0.9, variant="empty"), measurement("dark_current", share)]


def equal_texts(*shares):
    names = zip(("raw", "stable", "positional"), shares, strict=True)
    return [measurement(f"delta0.{name}", value, condition="same_subset") for name, value in names]


def target(value, censored):
    return [measurement("threshold", value, detail={"censored": censored})]


def outcome(axis, measurements):
    return next(chip.outcome for chip in datasheet.sketch(measurements) if chip.axis == axis)


def strict_arm(shift, accuracy=(1.0, 1.0), largest=(1.0, 1.0)):
    found = [measurement("criterion.shift", shift, prompt=None, condition="same_subset")]
    for prompt, right, top in zip(("tie-allowed", "strict"), accuracy, largest, strict=True):
        found.append(measurement("conditional_accuracy", right, prompt, delta="1"))
        found.append(measurement("sensitivity", 0.9 if prompt == "tie-allowed" else 0.5, prompt, delta="1"))
        found.append(measurement("sensitivity", top, prompt, delta="5"))
    return found


BELOW, AT = "sensitive below one requirement", "sensitive at one requirement"
MOVES, COSTS = "moves the criterion", "costs resolution"
CHIPS = {
    ("vacuum", vacuum): [
        (0.0, "clean"), (0.02, "clean"), (0.021, "nearly clean"), (0.1, "nearly clean"), (0.11, "leaky")],
    ("equal texts", equal_texts): [
        (0.26, 0.0, 0.083, "quiet"), (0.33, 0.1, 0.1, "quiet"), (0.34, 0.1, 0.1, "mixed"), (0.5, 0.05, 0.05, "mixed"),
        (0.43, 0.1, 0.233, "position-led"), (1.0, 0.033, 0.967, "position-led"), (0.4, 0.1, 0.2, "position-led"),
        (0.4, 0.11, 0.2, "mixed"), (0.4, 0.3, 0.05, "wording-led"), (0.99, 0.45, 0.533, "mixed"),
        (0.5, None, None, "not measured")],
    ("target", target): [
        (0.83, None, BELOW), (0.5, "left", BELOW), (1.0, "left", AT), (1.0, None, AT),
        (1.2, None, "needs 2 requirements"), (4.0, None, "needs 4 requirements"), (5.0, "right", "insensitive")],
    ("strict prompt", strict_arm): [
        (0.26, MOVES), (-0.26, MOVES), (0.04, "no effect"), (0.26, (0.95, 0.90), MOVES), (0.26, (0.95, 0.89), COSTS),
        (0.26, (1, 1), (1.0, 0.9), MOVES), (0.26, (1, 1), (1.0, 0.85), COSTS), (0.01, (1, 1), (1.0, 0.85), COSTS),
        (None, "not measured")],
}  # fmt: skip


@pytest.mark.parametrize(("axis", "made", "case"), [(*axis, case) for axis, cases in CHIPS.items() for case in cases])
def test_each_chip_at_both_sides_of_the_bounds_in_its_rule(axis, made, case):
    assert outcome(axis, made(*case[:-1])) == case[-1]


def test_an_axis_without_its_measurements_is_not_measured():
    assert [chip.outcome for chip in datasheet.sketch([])] == ["not measured"] * 4
    # Every chip carries its rule and what it rests on.
    measurements = [measurement("dark_current", 0.0), *equal_texts(0.2, 0.0, 0.1)]
    chips = datasheet.sketch(measurements)
    assert [chip.axis for chip in chips] == list(datasheet.RULES)
    for chip in chips:
        assert (chip.rule, chip.text) == (datasheet.RULES[chip.axis], f"{chip} ({chip.rule})")
        assert chip.outcome == "not measured" or chip.basis
        assert set(chip.basis) <= {m.id for m in measurements}
        assert chip.outcome == "not measured" or chip.outcome in chip.rule
    # The only arm of a log is sketched.
    assert outcome("vacuum", [measurement("dark_current", 0.5, "theirs")]) == "leaky"
    # What is not claimed is said in sentences.
    assert len(set(datasheet.NON_CLAIMS)) == len(datasheet.NON_CLAIMS) >= 5
    assert all(claim.startswith("That ") and claim.endswith(".") for claim in datasheet.NON_CLAIMS)


# Limits that a study sets for its judges, against their datasheets
def study(limits: str):
    judges = '[{name = "j", model = "m/j", family = "f"}, {name = "p", model = "human/table", family = "human"}]'
    return parse_study(f'name = "s"\nseed = 1\njudges = {judges}\n[datasheets]\n{limits}\n')


def limits_sheet(**values: float | None) -> datasheet.Datasheet:
    found = []
    for name, value in values.items():
        detail = {"censored": "right", "text": "> 5"} if name == "threshold" and value == 5.0 else {}
        if name in ("vacuum_score", "slope", "verbosity"):
            found.append(measurement(f"point.{name}", value, None, dimension="aggregate"))
        elif name == "positional":
            found.append(measurement("delta0.positional", value, condition="same_subset"))
        else:
            found.append(measurement(name, value, detail=detail))
    made = {"sketch": (), "calls": {}, "tasks": 1, "source": "run", "model": "m/j"}
    return datasheet.Datasheet(judge="j", measurements=tuple(found), **made)


def gate(limits: str, one: datasheet.Datasheet | None):
    (found,) = datasheet.limit_measurements({} if one is None else {"j": one}, study(limits))
    return found


@pytest.mark.parametrize(("limits", "values", "failed"), [
    ("dark_current = 0.05", {"dark_current": 0.05}, []),
    ("dark_current = 0.05", {"dark_current": 0.06}, ["dark_current 0.06, at most 0.05"]),
    ("slope = 0.2", {"slope": 0.2}, []), ("slope = 0.2", {"slope": 0.1}, ["slope 0.10, at least 0.2"]),
    ("verbosity = 0.15", {"verbosity": -0.15}, []), ("verbosity = 0", {"verbosity": 0.0}, []),
    ("verbosity = 0.15", {"verbosity": 0.27}, ["verbosity 0.27 points per 100 words, at most 0.15"]),
    ("verbosity = 0.15", {"verbosity": -0.27}, []),
    ("verbosity = 0.15", {"slope": 0.3}, ["verbosity not measured, at most 0.15"]),
    ("threshold = 5", {"threshold": 4.0}, []), ("threshold = 5", {"threshold": 5.0}, ["threshold > 5, at most 5"]),
    ("vacuum_score = 2", {"vacuum_score": None}, ["vacuum_score not measured: made up, at most 2"]),
    ("positional = 0.1\nslope = 0.2", {"slope": 0.5}, ["positional not measured, at most 0.1"])
])  # fmt: skip
def test_each_limit_is_held_against_its_own_measurement(limits, values, failed):
    found = gate(limits, limits_sheet(**values))
    assert (found.detail["failed"], found.value) == (failed, len(failed))


def test_a_judge_without_a_datasheet_or_with_one_of_another_model_has_a_state():
    assert gate("slope = 0.1", None).state == "not measured: no datasheet of this judge"
    other = replace(limits_sheet(slope=1.0), model="m/other")
    assert gate("slope = 0.1", other).state == "not measured: of another model"
    # People have no datasheet and no plan asks for nothing.
    assert [m.labels["judge"] for m in datasheet.limit_measurements({}, study("slope = 0.1"))] == ["j"]
    for limits, message in (
        ('on_failure = "no-claim"', "demanded without a limit"),
        ("verbosity = -0.1", "verbosity.*0"),
    ):
        with pytest.raises(InputError, match=message):
            study(limits)
