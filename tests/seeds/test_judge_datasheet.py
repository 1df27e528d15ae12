"""Judge Datasheet: every row of its Table 6 with a count, and the identities of its sections 4 and 5.

The bodies of the source's Tables 1 to 5 are not in our copy. Counts that Table 6 does not print (steps 2 to 4 of the
ladder) are chosen here to agree with what it does print; tests say where that matters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from assaymark.metrology import d_prime, datasheet, detection_threshold, wilson
from assaymark.records import Measurement, PairCall

DIGIT = 1e-4  # one unit of the last printed digit
TASKS = 10
PAIRS = {1: 50, 2: 40, 3: 30, 4: 20, 5: 10}
BASE, STRICT = "tie-allowed", "strict"


@dataclass(frozen=True)
class Judge:
    """Counts behind a judge's printed rows: vacuum preferences, pairs by class, right calls and ties by step."""

    vacuum: int
    stable: int
    positional: int
    one_sided: int
    right: dict[int, int]
    ties: dict[int, int]


LLAMA = Judge(80, 2, 58, 0, {1: 61, 2: 52, 3: 42, 4: 30, 5: 20}, {})
QWEN14 = Judge(0, 27, 32, 1, {1: 100, 2: 80, 3: 60, 4: 40, 5: 20}, {})
QWEN32 = Judge(0, 0, 5, 21, {1: 94, 2: 80, 3: 60, 4: 40, 5: 20}, {1: 6})
QWEN32_STRICT = Judge(-1, 0, 0, 0, {1: 50, 5: 20}, {1: 50})
JUDGES = {"Llama8B": LLAMA, "Qwen14B": QWEN14, "Qwen32B": QWEN32}

ORDERS = ("uv", "vu")


def calls_of(judge: Judge, name: str, prompt: str = BASE) -> Iterator[PairCall]:
    """The calls that these counts describe: vacuum, same-subset and ladder, in both orders; no vacuum under strict."""

    def pair(pair: str, condition: str, task: int, verdicts: tuple[str, str], **parts: object) -> Iterator[PairCall]:
        for order, verdict in zip(ORDERS, verdicts, strict=True):
            yield PairCall(
                pair=pair, condition=condition, task=f"t{task % TASKS}", order=order, verdict=verdict, judge=name,
                prompt=prompt, **parts,
            )  # fmt: skip

    if judge.vacuum >= 0:
        answers = ["1"] * judge.vacuum + ["tie"] * (120 - judge.vacuum)
        for i in range(60):
            kind = ("empty", "whitespace", "identical")[i % 3]
            yield from pair(f"v{i}", "vacuum", i, (answers[2 * i], answers[2 * i + 1]), variant=kind)
    classes = [("1", "2")] * judge.stable + [("1", "1")] * judge.positional + [("tie", "2")] * judge.one_sided
    classes += [("tie", "tie")] * (60 - len(classes))
    for i, verdicts in enumerate(classes):
        yield from pair(f"s{i}", "same_subset", i, verdicts)
    for delta, right in judge.right.items():
        n, ties = PAIRS[delta], judge.ties.get(delta, 0)
        # Half of the calls are right in slot 1 and half in slot 2, as both orders of every pair are shown.
        outcomes = ["right"] * right + ["tie"] * ties
        outcomes += ["wrong"] * (2 * n - len(outcomes))
        for i in range(n):
            said = tuple(
                "tie" if outcome == "tie" else best if outcome == "right" else {"1": "2", "2": "1"}[best]
                for outcome, best in zip(outcomes[2 * i : 2 * i + 2], ("1", "2"), strict=True)
            )
            yield from pair(f"l{delta}.{i}", "ladder", i, said, delta=float(delta), better="u")


@pytest.fixture(scope="module")
def sheets() -> dict[str, dict[str, Measurement]]:
    """Every measurement by judge and by id without the judge; the strict arm under its own name."""
    found = {}
    for name, judge in JUDGES.items():
        calls = list(calls_of(judge, name))
        if name == "Qwen32B":
            calls += calls_of(QWEN32_STRICT, name, STRICT)
        measured = datasheet.datasheet_measurements(calls, rng=np.random.default_rng(4))
        found[name] = {m.id.replace(f"judge={name},", "").replace(f",judge={name}", ""): m for m in measured}
    return found


SAME = "condition=same_subset,"
ROWS = """
    Llama8B tie-allowed dark_current[ 0.6667 0.5783 0.7447 120
    Llama8B tie-allowed delta0.raw[same 1.0000 0.9690 1.0000 120
    Llama8B tie-allowed delta0.tie_rate[same 0.0000 0.0000 0.0310 120
    Llama8B tie-allowed sensitivity[delta=1, 0.6100 0.5120 0.6998 100
    Llama8B tie-allowed tie_rate[delta=1, 0.0000 0.0000 0.0370 100
    Llama8B tie-allowed sensitivity[delta=5, 1.0000 0.8389 1.0000 20
    Llama8B tie-allowed tie_rate[delta=5, 0.0000 0.0000 0.1611 20
    Qwen14B tie-allowed dark_current[ 0.0000 0.0000 0.0310 120
    Qwen14B tie-allowed delta0.raw[same 0.9917 0.9543 0.9985 120
    Qwen14B tie-allowed delta0.tie_rate[same 0.0083 0.0015 0.0457 120
    Qwen14B tie-allowed sensitivity[delta=1, 1.0000 0.9630 1.0000 100
    Qwen14B tie-allowed tie_rate[delta=1, 0.0000 0.0000 0.0370 100
    Qwen14B tie-allowed sensitivity[delta=5, 1.0000 0.8389 1.0000 20
    Qwen14B tie-allowed tie_rate[delta=5, 0.0000 0.0000 0.1611 20
    Qwen32B tie-allowed dark_current[ 0.0000 0.0000 0.0310 120
    Qwen32B tie-allowed delta0.raw[same 0.2583 0.1884 0.3433 120
    Qwen32B tie-allowed delta0.tie_rate[same 0.7417 0.6567 0.8116 120
    Qwen32B tie-allowed sensitivity[delta=1, 0.9400 0.8752 0.9722 100
    Qwen32B tie-allowed tie_rate[delta=1, 0.0600 0.0278 0.1248 100
    Qwen32B tie-allowed sensitivity[delta=5, 1.0000 0.8389 1.0000 20
    Qwen32B tie-allowed tie_rate[delta=5, 0.0000 0.0000 0.1611 20
    Qwen32B strict delta0.raw[same 0.0000 0.0000 0.0310 120
    Qwen32B strict delta0.tie_rate[same 1.0000 0.9690 1.0000 120
    Qwen32B strict sensitivity[delta=1, 0.5000 0.4038 0.5962 100
    Qwen32B strict tie_rate[delta=1, 0.5000 0.4038 0.5962 100
    Qwen32B strict sensitivity[delta=5, 1.0000 0.8389 1.0000 20
    Qwen32B strict tie_rate[delta=5, 0.0000 0.0000 0.1611 20
""".strip().splitlines()
"""Judge, arm, quantity, estimate, interval, n: the 27 rows of Table 6 whose method is Wilson's, in its order."""


@pytest.mark.parametrize("row", ROWS, ids=str.strip)
def test_table_6_wilson_row_and_its_interval_from_the_printed_estimate(row, sheets):
    judge, prompt, name, *numbers = row.split()
    estimate, low, high, n = map(float, numbers)
    found = sheets[judge][f"{name.replace('same', SAME)}prompt={prompt}]"]
    assert found.value == pytest.approx(estimate, abs=DIGIT)
    assert (found.detail["wilson"]["low"], found.detail["wilson"]["high"]) == pytest.approx((low, high), abs=DIGIT)
    assert (found.n, found.n_of) == (n, "calls")
    assert wilson(round(estimate * n), int(n)) == pytest.approx((low, high), abs=DIGIT)


ARMS = [("Llama8B", BASE, 0.0333, 0.9667), ("Qwen14B", BASE, 0.4500, 0.5333), ("Qwen32B", BASE, 0.0000, 0.0833),
        ("Qwen32B", STRICT, 0.0000, 0.0000)]  # fmt: skip


@pytest.mark.parametrize(("judge", "prompt", "stable", "positional"), ARMS)
def test_table_6_decomposition_and_d_prime_rows_and_equation_7(judge, prompt, stable, positional, sheets):
    """The source gives parts no interval; ours has one, which is no printed figure. A d' of 3.3812 follows from
    10 + 10 calls, split by the slot of the better text; 20 calls in one cell give 3.9615."""
    parts = {name: sheets[judge][f"delta0.{name}[{SAME}prompt={prompt}]"]
             for name in ("raw", "stable", "positional", "one_sided", "other")}  # fmt: skip
    for name, printed in (("stable", stable), ("positional", positional)):
        assert (parts[name].value, parts[name].n) == (pytest.approx(printed, abs=DIGIT), 60)
        assert parts[name].n_of == "pairs"
        assert parts[name].low <= parts[name].value <= parts[name].high != parts[name].low
    value = {name: part.value for name, part in parts.items()}
    assert value["raw"] == pytest.approx(value["stable"] + value["positional"] + value["one_sided"] / 2)
    assert value["other"] == 0
    found = sheets[judge][f"d_prime[delta=5,prompt={prompt}]"]
    assert (found.value, found.n) == (pytest.approx(3.3812, abs=DIGIT), 20)
    assert (found.low, found.high, found.level) == (None, None, None)
    assert "ceiling" in found.method
    assert d_prime(20, 20, 0, 20) == pytest.approx(3.9615, abs=DIGIT)


@pytest.mark.parametrize("judge", ["Qwen14B", "Qwen32B"])
def test_table_6_left_censored_threshold(judge, sheets):
    """Every resample is censored too: no interval rather than one of no width."""
    found = sheets[judge][f"threshold[prompt={BASE}]"]
    assert (found.value, found.n, found.low, found.high) == (1.0, 300, None, None)
    assert (found.detail["censored"], found.detail["text"]) == ("left", "<= 1")


def test_table_6_threshold_of_llama(sheets):
    """4.0000 [2.7143, 4.0000], n = 300. Only the counts at steps 1 and 5 are printed, so only this much follows.
    19/7 lies between grid points, so the curve is read between its knots; then a threshold of exactly 4 needs the fit
    to reach 75 % exactly there, as 30 of 40 do. That the upper end is no larger than the estimate is not what a
    bootstrap of such counts gives; it agrees with a threshold read off the grid, and the source does not say."""
    found = sheets["Llama8B"][f"threshold[prompt={BASE}]"]
    assert (found.value, found.detail["censored"], found.n) == (pytest.approx(4.0, abs=DIGIT), None, 300)
    assert found.low < 4.0
    # Where the curve passes 75 % five sevenths of the way from step 2 to step 3, the threshold is the printed bound.
    bound = detection_threshold([1, 2, 3, 4, 5], [0.61, 0.70, 0.77, 0.77, 1.0], [100, 80, 60, 40, 20])
    assert (bound.value, 19 / 7) == pytest.approx((2.7143, 2.7143), abs=DIGIT)


def test_table_6_strict_arm_rows_without_a_number(sheets):
    states = {name: sheets["Qwen32B"][f"{name}[prompt={STRICT}]"] for name in ("dark_current", "threshold")}
    assert {name: (one.value, one.state) for name, one in states.items()} == {
        "dark_current": (None, "not measured: vacuum was not run under strict"),
        "threshold": (None, "not measured: the ladder under strict has the steps 1, 5 only, needs 3"),
    }


def test_sections_4_and_5_no_preference_of_qwen32_and_its_criterion_under_the_strict_prompt(sheets):
    """0.5667; the one-sided share, which the text leaves out, is then 21 of 60, and 0.7417 = 0.5667 + 0.35 / 2. The
    lost sensitivity is ties: no wrong choices, decided calls all right, step 5 untouched."""
    found = sheets["Qwen32B"]
    tie, none, half = (
        found[f"delta0.{name}[{SAME}prompt={BASE}]"].value for name in ("tie_rate", "no_preference", "one_sided")
    )
    assert (none, half) == pytest.approx((0.5667, 0.35), abs=DIGIT)
    assert (none + half / 2, 0.7417) == pytest.approx((tie, tie), abs=DIGIT)
    strict = {name: found[f"{name}[delta=1,prompt={STRICT}]"].value
              for name in ("wrong_rate", "conditional_accuracy", "miss_by_tie")}  # fmt: skip
    assert strict == {"wrong_rate": 0.0, "conditional_accuracy": 1.0, "miss_by_tie": 0.5}
    assert found[f"miss_by_tie[delta=1,prompt={STRICT}]"].detail["of_misses"] == 1.0
    assert found[f"delta0.no_preference[{SAME}prompt={STRICT}]"].value == 1.0
    kinds = ("same_subset", "ladder,delta=1", "ladder,delta=5")
    shifts = [found[f"criterion.shift[condition={kind}]"].value for kind in kinds]
    assert shifts == pytest.approx([1 - 0.7417, 0.50 - 0.06, 0.0], abs=DIGIT)


def test_section_4_the_three_profiles(sheets):
    """Presentation-conflicted, mixed, and clean."""
    chips = {name: [str(chip) for chip in datasheet.sketch(tuple(found.values()))] for name, found in sheets.items()}
    assert chips["Llama8B"] == [
        "vacuum: leaky", "equal texts: position-led", "target: needs 4 requirements", "strict prompt: not measured",
    ]  # fmt: skip
    assert chips["Qwen14B"][:3] == ["vacuum: clean", "equal texts: mixed", "target: sensitive at one requirement"]
    assert chips["Qwen32B"] == [
        "vacuum: clean", "equal texts: quiet", "target: sensitive at one requirement",
        "strict prompt: moves the criterion",
    ]  # fmt: skip


def test_section_3_design_counts():
    """120 vacuum calls, 60 same-subset pairs and 50/40/30/20/10 ladder pairs in both orders, 10 tasks."""
    calls = list(calls_of(LLAMA, "x"))
    assert len(calls) == 120 + 2 * 60 + 2 * (50 + 40 + 30 + 20 + 10)
    assert (sum(call.order == "uv" for call in calls), len({call.task for call in calls})) == (len(calls) / 2, TASKS)
