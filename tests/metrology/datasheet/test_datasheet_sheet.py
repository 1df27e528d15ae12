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
from assaymark.metrology.datasheet import Datasheet, anchored_calls, compare, datasheet_of, sketch
from assaymark.metrology.datasheet.sheet import difference_interval
from assaymark.records import canonical_json, parse


@pytest.fixture(scope="module")
def calls(draw, planted):
    rng = np.random.default_rng(21)
    strict = draw(rng, planted(), conditions=frozenset({"same_subset"}), prompt="strict")
    return draw(rng, planted()) + strict


def sheet_of(calls, **parts):
    return datasheet_of(
        calls, rng=np.random.default_rng(1), **({"manifest": "m", "prompts": {"tie-allowed": "p"}} | parts)
    )


@pytest.fixture(scope="module")
def sheet(calls):
    return sheet_of(calls, model="reference/j", family="reference", planted={"dark_current": 0.15})


def verdict_of(found):
    return found[-1].detail["verdict"]


def drifts(found):
    return {m.labels["of"]: m for m in found if m.name == "drift"}


def test_it_comes_back_from_json_as_it_went(sheet):
    text = canonical_json(sheet)
    again = parse(Datasheet, text)
    assert again == parse(Datasheet, canonical_json(again))
    assert canonical_json(again) == text
    assert [m.id for m in again.measurements] == [m.id for m in sheet.measurements]
    assert [m.value for m in again.measurements] == [m.value for m in sheet.measurements]


def test_unknown_keys_and_wrong_types_are_refused(sheet):
    plain = json.loads(canonical_json(sheet))
    with pytest.raises(InputError, match="colour"):
        parse(Datasheet, json.dumps(plain | {"colour": "red"}))
    with pytest.raises(InputError, match="source"):
        parse(Datasheet, json.dumps(plain | {"source": "memory"}))


def test_it_says_what_was_run(sheet, calls):
    assert (sheet.judge, sheet.model, sheet.source) == ("j", "reference/j", "run")
    assert sheet.arms == ("tie-allowed", "strict")
    invalid = sum(call.verdict == "invalid" for call in calls)
    assert sheet.calls == {"all": len(calls), "ok": len(calls) - invalid, "invalid": invalid}
    assert sheet.tasks == 10
    assert sheet.sketch == tuple(chip.text for chip in sketch(sheet.measurements))
    assert sheet.non_claims


def test_kept_calls_come_back(sheet, calls):
    assert set(anchored_calls(sheet)) == set(calls)
    assert anchored_calls(sheet_of(calls, keep_calls=False)) == ()


def test_kept_calls_that_cannot_be_read_are_named(sheet):
    broken = replace(
        sheet, anchors={"v0|uv|tie-allowed|1": "1", "v0|uw|tie-allowed|1": "1", "gone|uv|x|1": "2", "": "tie"}
    )
    with pytest.raises(InputError, match="3 problems"):
        anchored_calls(broken)


def test_a_prompt_with_a_bar_cannot_be_kept(calls):
    barred = [replace(call, prompt="a|b") for call in calls if call.prompt == "strict"]
    with pytest.raises(InputError, match="must not contain"):
        sheet_of(barred)
    assert sheet_of(barred, keep_calls=False).arms == ("a|b",)
    named = [replace(call, pair=f"a|{call.pair}") for call in calls]
    assert set(anchored_calls(sheet_of(named))) == set(named)


def test_an_instrument_compared_with_itself_is_the_same(sheet):
    found = compare(sheet, sheet)
    assert verdict_of(found) == "same instrument"
    assert found[-1].value == 0.0
    assert all(m.value == 0 and m.low < 0 < m.high for m in drifts(found).values())
    assert found[-1].detail["widest"] > 0
    assert found[-1].n == len(drifts(found))


def test_a_shift_is_found_question_by_question(sheet, calls):
    """Every fourth vacuum tie is now a choice of slot 1; nothing else changed."""
    ties = [i for i, call in enumerate(calls) if call.condition == "vacuum" and call.verdict == "tie"][::4]
    later = sheet_of([replace(call, verdict="1") if i in ties else call for i, call in enumerate(calls)])
    found = compare(sheet, later)
    assert found[-1].detail["shifted"] == ["dark_current"]
    assert (found[-1].value, verdict_of(found)) == (1.0, "shifted")
    m = drifts(found)["dark_current"]
    assert m.value == pytest.approx(len(ties) / 120)
    assert (m.n, m.n_of) == (120, "common calls")
    assert m.low > 0
    assert drifts(compare(later, sheet))["dark_current"].value == pytest.approx(-m.value)
    others = {of: m for of, m in drifts(found).items() if of != "dark_current"}
    assert all(m.value == 0 for m in others.values())


def test_every_compared_quantity_is_the_change_of_its_measurement(sheet, draw, planted):
    strict = draw(np.random.default_rng(23), planted(), conditions=frozenset({"same_subset"}), prompt="strict")
    later = sheet_of(draw(np.random.default_rng(22), planted()) + strict)
    paired = drifts(compare(sheet, later))
    counted = drifts(compare(replace(sheet, anchors={}, pairs={}), replace(later, anchors={}, pairs={})))
    assert paired.keys() == counted.keys()
    assert "sensitivity[delta=1]" in paired
    assert "delta0.stable[condition=same_subset,prompt=strict]" in paired
    assert "dark_current[prompt=strict]" not in paired
    for of, m in paired.items():
        assert m.value == pytest.approx(counted[of].value)
        assert (m.detail["old"], m.detail["new"]) == pytest.approx(
            (counted[of].detail["old"], counted[of].detail["new"])
        )


def test_from_counts_it_is_fishers_test_and_newcombes_interval(sheet, draw, planted):
    later = sheet_of(draw(np.random.default_rng(22), planted(vacuum=0.4)), keep_calls=False)
    m = drifts(compare(sheet, later))["dark_current"]
    sizes = [
        round(next(x for x in s.measurements if x.name == "dark_current").detail["effective_n"]) for s in (sheet, later)
    ]
    old, new = (round(share * n) for share, n in zip((m.detail["old"], m.detail["new"]), sizes, strict=True))
    assert m.detail["p"] == pytest.approx(stats.fisher_exact([[old, sizes[0] - old], [new, sizes[1] - new]]).pvalue)


shares = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(shares, shares)
def test_the_interval_of_a_difference_is_newcombes(old, new):
    expected = confint_proportions_2indep(*new, *old, method="newcomb", compare="diff", alpha=0.05)
    found = difference_interval(old[0] / old[1], new[0] / new[1], old[1], new[1], 0.05)
    assert found == pytest.approx(expected, abs=1e-9)


def test_shifts_are_adjusted_over_all_quantities(sheet, draw, planted):
    later = sheet_of(draw(np.random.default_rng(22), planted(vacuum=0.3)))
    found = drifts(compare(sheet, later))
    smallest = min(found.values(), key=lambda m: m.detail["p"])
    assert smallest.detail["p_holm"] == pytest.approx(min(1.0, smallest.detail["p"] * len(found)))
    assert smallest.level == 0.95
    assert drifts(compare(sheet, later, alpha=0.01))["dark_current"].level == 0.99


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"manifest": "other"}, "the texts differ"),
        ({"manifest": ""}, "the texts differ"),
        ({"prompts": {"tie-allowed": "q"}}, "the prompt differs: tie-allowed"),
        ({"arms": ("else",)}, "no prompt was used in both"),
    ],
)
def test_other_texts_or_prompts_are_not_comparable(sheet, change, reason):
    (found,) = compare(sheet, replace(sheet, **change))
    assert verdict_of([found]) == "not comparable"
    assert found.value is None
    assert reason in found.state


def test_logs_are_comparable_only_by_common_pairs(sheet, calls):
    log = replace(sheet, manifest="", prompts={})
    assert verdict_of(compare(log, log)) == "same instrument"
    bare = replace(log, anchors={}, pairs={})
    assert "nothing shows that the texts are the same" in compare(bare, bare)[0].state
    pair = "same_subset0"
    turned = replace(log, pairs={**log.pairs, pair: replace(log.pairs[pair], task="elsewhere")})
    assert "pairs of the same name are different pairs, such as same_subset0" in compare(log, turned)[0].state


def test_nothing_in_common_is_not_comparable(sheet):
    empty = replace(sheet, anchors={}, pairs={}, measurements=())
    assert "no quantity was measured in both" in compare(sheet, empty)[0].state
