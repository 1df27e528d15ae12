"""From calls to measurements: arms, named states, one order, trials, invalid replies, and refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from assaymark.errors import InputError
from assaymark.metrology import datasheet, decompose
from assaymark.records import PairCall, canonical_json, measurement_id

EVERYTHING = frozenset({"vacuum", "graded_vacuum", "same_subset", "different_subset", "ladder", "filler"})
TASKS = [f"t{k}" for k in range(10)]
PAIR_LEVEL = ["stable", "positional", "one_sided", "no_preference", "other", "other_pairs", "flip_rate", "slot_1_share"]


def measured(calls, seed=1):
    """Measurements by name and labels without the judge."""
    found = datasheet.datasheet_measurements(calls, rng=np.random.default_rng(seed))
    return {measurement_id(m.name, {k: v for k, v in m.labels.items() if k != "judge"}): m for m in found}


def call(pair="p", verdict="1", order="uv", condition="same_subset", **parts):
    base = {"task": "t", "judge": "j"}
    return PairCall(pair=pair, condition=condition, order=order, verdict=verdict, **(base | parts))


def pairs(name, verdicts, n=10, *, tasks=10, **parts):
    """Calls of ``n`` pairs in both orders, with the verdicts (first order, second order) that a function gives."""
    return [call(f"{name}{i}", verdict, order, task=f"t{i % tasks}", **parts) for i in range(n)
            for order, verdict in zip(("uv", "vu"), verdicts(i), strict=True)]  # fmt: skip


@pytest.fixture(scope="module")
def calls(draw, planted):
    rng = np.random.default_rng(11)
    base = draw(rng, planted(), conditions=EVERYTHING)
    return base + draw(rng, planted(), conditions=frozenset({"same_subset", "ladder"}), prompt="strict")


@pytest.fixture(scope="module")
def found(calls):
    return measured(calls)


SAME = "[condition=same_subset,prompt=tie-allowed]"


def test_every_arm_has_every_measurement_or_its_state(found):
    for prompt in ("tie-allowed", "strict"):
        whole = ("dark_current", "filler.preference", "pair.invalid_share", "threshold")
        names = {f"{name}[prompt={prompt}]" for name in whole}
        names |= {f"delta0.{name}[condition={condition},prompt={prompt}]" for name in ("raw", "tie_rate", *PAIR_LEVEL)
                  for condition in ("same_subset", "different_subset")}  # fmt: skip
        names |= {f"{name}[delta={delta},prompt={prompt}]" for delta in ("0.5", "1", "2", "3", "4", "5") for name in (
            "sensitivity", "tie_rate", "wrong_rate", "conditional_accuracy", "miss_by_tie", "d_prime")}  # fmt: skip
        assert names - set(found) == set()
    for condition in ("same_subset", "ladder,delta=0.5"):
        assert found[f"criterion.shift[condition={condition}]"].value is not None
    assert "criterion.shift[condition=different_subset]" not in found
    assert len({m.id for m in found.values()}) == len(found)


def test_what_was_not_run_says_so(found):
    only = measured([call(), call(order="vu")])
    for m, state in (
        (found["dark_current[prompt=strict]"], "not measured: vacuum was not run under strict"),
        (found["filler.preference[prompt=strict]"], "not measured: filler was not run under strict"),
        (found["delta0.stable[condition=different_subset,prompt=strict]"],
         "not measured: no different-subset pairs were run"),
        (found["repeat.stability[]"], "undefined: one trial, needs two"),
        (only["criterion.shift[condition=same_subset]"], "not measured: strict arm was not run"),
        (only["sensitivity[delta=1,prompt=tie-allowed]"], "not measured: the quality ladder"),
        (only["graded_vacuum[prompt=tie-allowed,variant=typo]"], "not measured: graded vacuum"),
    ):  # fmt: skip
        assert m.state.startswith(state)
    # Every measurement is whole.
    for m in found.values():
        assert (m.value is None) == (m.state != "ok")
        assert (m.low is None) == (m.high is None) == (m.level is None)
        assert m.value is None or (math.isfinite(m.value) and m.n > 0 and m.method), m.id
        assert m.low is None or (m.low - 1e-12 <= m.value <= m.high + 1e-12 and m.high > m.low), m.id
        assert m.inputs
        assert "NaN" not in canonical_json(m)


def test_shares_of_calls_are_counts_with_intervals_over_tasks(calls, found):
    dark = [c.verdict in "12" for c in calls if c.condition == "vacuum"]
    m = found["dark_current[prompt=tie-allowed]"]
    assert (m.value, m.n) == (sum(dark) / len(dark), 120)
    hits = {task: [c.verdict in "12" for c in calls if (c.condition, c.task) == ("vacuum", task)] for task in TASKS}
    ends = datasheet.share_interval([[sum(hit), len(hit) - sum(hit)] for hit in hits.values()], [1, 0])
    assert (m.low, m.high) == (ends.low, ends.high)
    assert m.method.endswith("delete-one-task jackknife of the log odds, t(9)")
    low, high = proportion_confint(sum(dark), 120, method="wilson")
    assert (m.detail["wilson"]["low"], m.detail["wilson"]["high"]) == pytest.approx((low, high))
    assert m.detail["count"] == sum(m.detail["verdicts"][slot] for slot in "12")
    kinds = [found[f"dark_current[prompt=tie-allowed,variant={v}]"] for v in ("empty", "whitespace", "identical")]
    assert sum(k.detail["count"] for k in kinds) == sum(dark)


def test_pair_shares_are_the_decomposition(calls, found):
    for condition in ("same_subset", "different_subset"):
        chosen = [c for c in calls if c.condition == condition and c.prompt == "tie-allowed"]
        both = [[c.verdict for c in pair] for _, pair in groupby(chosen, key=lambda c: c.pair)]
        expected = decompose(*zip(*both, strict=True))
        label = f"[condition={condition},prompt=tie-allowed]"
        for name in ("stable", "positional", "one_sided", "no_preference", "other", "other_pairs"):
            assert found[f"delta0.{name}{label}"].value == pytest.approx(getattr(expected, name))
        raw = found[f"delta0.raw{label}"]
        assert raw.value == pytest.approx(expected.raw_false_preference)
        assert (raw.detail["of_pairs"], found[f"delta0.stable{label}"].n) == (pytest.approx(raw.value), 60)
        flips = found[f"delta0.flip_rate{label}"]
        assert flips.value == pytest.approx(expected.positional / (expected.positional + expected.stable))
        assert flips.detail["one_sided_pairs"] == round(60 * expected.one_sided)
        assert "one order only" in flips.detail["hides"]


def test_right_tied_wrong_and_invalid_calls_make_all(calls, found):
    for delta in ("0.5", "1", "5"):
        label = f"[delta={delta},prompt=tie-allowed]"
        right, tied, wrong = (found[name + label].value for name in ("sensitivity", "tie_rate", "wrong_rate"))
        assert (right + tied + wrong, found[f"miss_by_tie{label}"].value) == (pytest.approx(1), tied)
        assert found[f"conditional_accuracy{label}"].value == pytest.approx(right / (right + wrong))
        chosen = [c for c in calls if c.condition == "ladder" and f"{c.delta:g}" == delta and c.prompt == "tie-allowed"]
        hits = sum(c.verdict in "12" and c.order[int(c.verdict) - 1] == c.better for c in chosen)
        assert right == hits / len(chosen)
    # The sequence of the calls does not matter.
    order = np.random.default_rng(2).permutation(len(calls))
    assert measured([calls[i] for i in order]) == found
    # The same seed gives the same numbers.
    assert measured(calls) == found
    assert measured(calls, seed=2) != found
    # Columns are measured like calls.
    again = datasheet.table_measurements(datasheet.call_table(calls), rng=np.random.default_rng(1))
    assert [m.value for m in again] == [m.value for m in found.values()]


def test_one_order_refuses_what_needs_both_and_measures_the_rest(calls):
    half = measured([c for c in calls if c.order == "uv"])
    for name in PAIR_LEVEL:
        m = half[f"delta0.{name}{SAME}"]
        assert m.state == "not measured: every pair was shown in one order only, needs both"
        assert m.detail["one_order_pairs"] == 60
    assert (half[f"delta0.raw{SAME}"].n, half["dark_current[prompt=tie-allowed]"].n) == (60, 60)
    for name in ("sensitivity[delta=1,prompt=tie-allowed]", "threshold[prompt=tie-allowed]"):
        assert half[name].value is not None
    # D prime needs the better text in both slots.
    ladder = [call(f"p{i}", "1", condition="ladder", delta=1.0, better="u", task=f"t{i}") for i in range(6)]
    m = measured(ladder)["d_prime[delta=1,prompt=tie-allowed]"]
    assert m.state == "undefined: no usable call had the better text in slot 2"
    # Some pairs in one order are counted and left out.
    lone = next(c for c in calls if c.condition == "same_subset" and c.order == "vu" and c.prompt == "tie-allowed")
    fewer = measured([c for c in calls if c is not lone])
    stable = fewer[f"delta0.stable{SAME}"]
    assert (stable.n, stable.detail["one_order_pairs"], fewer[f"delta0.raw{SAME}"].n) == (59, 1, 119)


def test_invalid_replies_are_their_own_category_and_an_abstention_is_no_preference():
    told = measured([replace(one, reason="two verdicts") if one.verdict == "invalid" else one
                     for one in pairs("p", lambda i: ("invalid" if i < 2 else "1", "2"))])  # fmt: skip
    shares = [told[f"delta0.{name}{SAME}"].value for name in ("other_pairs", "other", "raw", "tie_rate")]
    assert shares == pytest.approx([0.2, 0.1, 18 / 20, 0])
    invalid = told["pair.invalid_share[prompt=tie-allowed]"]
    assert (invalid.value, invalid.n, invalid.detail["reasons"]) == (0.1, 20, {"two verdicts": 2})
    ladder = {"condition": "ladder", "delta": 1.0, "better": "v"}
    tied, abstained = (
        measured(pairs("v", lambda _, word=word: (word, word), 6, condition="vacuum", variant="empty")
                 + pairs("l", lambda _, word=word: (word, word), 6, **ladder)) for word in ("tie", "abstain")
    )  # fmt: skip
    assert [(k, m.value, m.low, m.state) for k, m in tied.items()] == [
        (k, m.value, m.low, m.state) for k, m in abstained.items()
    ]
    assert tied["conditional_accuracy[delta=1,prompt=tie-allowed]"].state == "undefined: no call had a preference"


def test_trials_are_averaged_and_do_not_narrow_the_intervals(draw, planted):
    once = draw(np.random.default_rng(5), planted())
    thrice = [replace(c, trial=t) for t in (1, 2, 3) for c in once]
    first, again = measured(once), measured(thrice)
    for name in ("dark_current[prompt=tie-allowed]", "sensitivity[delta=1,prompt=tie-allowed]"):
        assert again[name].n == 3 * first[name].n
        assert (again[name].value, again[name].low) == pytest.approx((first[name].value, first[name].low))
        assert again[name].detail["wilson"] == first[name].detail["wilson"]
    name = "d_prime[delta=4,prompt=tie-allowed]"
    assert "delta method" in first[name].method
    assert (again[name].high - again[name].low) >= 0.9 * (first[name].high - first[name].low)
    one, thrice = first[f"delta0.stable{SAME}"], again[f"delta0.stable{SAME}"]
    assert (thrice.n, thrice.low, thrice.high) == pytest.approx((180, one.low, one.high))
    assert again["repeat.stability[]"].low < again["repeat.stability[]"].value == 1.0


def test_a_judge_that_always_chooses_slot_1_is_all_positional():
    calls = pairs("p", lambda _: ("1", "1"), 60)
    found = measured(calls)
    positional = found[f"delta0.positional{SAME}"]
    assert [found[f"delta0.{name}{SAME}"].value for name in ("positional", "slot_1_share", "flip_rate")] == [1, 1, 1]
    assert "Clopper-Pearson, each of 10 tasks one unit" in positional.method
    assert positional.low == pytest.approx(0.025 ** (1 / 10))
    none = measured([replace(c, verdict="tie") for c in calls])
    assert none[f"delta0.flip_rate{SAME}"].state == "undefined: no pair was decided in both orders"
    assert none[f"delta0.slot_1_share{SAME}"].state == "undefined: no positional pairs"
    # Filler is in v and what goes against it is counted.
    filler = pairs("f", lambda i: ("2", "1" if i < 4 else "2"), condition="filler")
    m = measured(filler)["filler.preference[prompt=tie-allowed]"]
    assert (m.value, m.detail["against"]) == (14 / 20, 6)
    # A right censored threshold is a bound.
    step = {"condition": "ladder", "better": "u"}
    steps = [one for d in (1.0, 2.0, 3.0) for one in pairs(f"l{d}.", lambda _: ("tie", "tie"), delta=d, **step)]
    m = measured(steps)["threshold[prompt=tie-allowed]"]
    assert (m.value, m.detail["censored"], m.detail["text"], m.low) == (3.0, "right", "> 3", None)


def test_threshold_ends_that_are_bounds_are_written_as_bounds(draw, planted):
    steps = {d: (0.6 + 0.04 * d, 0.1) for d in (1.0, 2.0, 3.0, 4.0, 5.0)}
    m = measured(draw(np.random.default_rng(3), planted(ladder=steps)))["threshold[prompt=tie-allowed]"]
    share, written = m.detail["resamples_censored"], "> 5" if m.high == 5 else f"{m.high:.3g}"
    assert (share["left"] >= 0, share["right"] > 0, m.detail["high_text"]) == (True, True, written)
    assert [delta for delta, _ in m.detail["knots"]] == [1, 2, 3, 4, 5]
    # The strict arm is compared on common questions only.
    base = pairs("p", lambda _: ("1", "1"), 12, tasks=12)
    strict = [replace(c, prompt="strict", verdict="tie") for c in base[:8]]
    name = "criterion.shift[condition=same_subset]"
    m = measured(base + strict)[name]
    assert (m.value, m.n, m.detail["only_one_arm"]) == (1.0, 8, 16)
    assert (m.detail["tie-allowed"], m.detail["strict"], m.low < 1.0) == (0.0, 1.0, True)
    apart = measured(base[:8] + [replace(c, prompt="strict") for c in base[8:]])
    assert apart[name].state.startswith("not measured: the strict arm shares no")
    assert measured([replace(c, prompt="strict") for c in base])[name].state == "not measured: base arm was not run"


@pytest.mark.parametrize(("calls", "message"), [
    ([], "no calls"), ([call(), call(judge="k")], "a datasheet is of one judge .got j, k."),
    ([call(), call()], "call 2 .pair p.: asked twice: prompt tie-allowed, order uv, trial 1"),
    ([call(), call(order="vu", task="s")], "task 's' contradicts 't' in call 1 of the same pair"),
    ([call(), call(order="vu", condition="vacuum")], "condition 'vacuum' contradicts 'same_subset'"),
    ([call(verdict="A")], "verdict must be one of 1, 2, tie, abstain, invalid .got 'A'."),
    ([call(order="uw")], "order must be uv or vu: a pair has two contents .got 'uw'."),
    ([call(better="w", delta=1.0, condition="ladder")], "a pair has two contents .got 'w'."),
    ([call(condition="odd")], "condition must be one of vacuum"),
    ([call(better="u")], "a better text needs a delta above 0"),
    ([call(condition="ladder")], "ladder pairs, and no others"), ([call(delta=math.nan)], "delta must be a number"),
    ([call(trial=0)], "trial must be at least 1")
])  # fmt: skip
def test_calls_that_make_no_sense_are_refused(calls, message):
    with pytest.raises(InputError, match=message):
        datasheet.datasheet_measurements(calls, rng=np.random.default_rng(1))


def test_all_problems_are_named_at_once():
    bad = [call(verdict="A"), call(order="uw"), call("q", task="x"), call("q", task="y"), call("q", task="x")]
    with pytest.raises(InputError) as caught:
        datasheet.datasheet_measurements(bad, rng=np.random.default_rng(1))
    assert len(caught.value.problems) == 5
    # The level must be a probability.
    with pytest.raises(InputError, match="level"):
        datasheet.datasheet_measurements([call()], level=1.5, rng=np.random.default_rng(1))
