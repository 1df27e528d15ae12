"""Judge Datasheet: every row of its Table 6 with a count, and the identities of its sections 4 and 5.

The bodies of the source's Tables 1 to 5 are not in our copy. Counts that Table 6 does not print (steps 2 to 4 of the
ladder) are chosen here to agree with what it does print; tests say where that matters.
"""

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
# Judge, arm, quantity, estimate, interval, n: the 27 rows of Table 6 whose method is Wilson's, in its order.
WILSON_ROWS = [
    ("Llama8B", BASE, "dark_current[", 0.6667, 0.5783, 0.7447, 120),
    ("Llama8B", BASE, f"delta0.raw[{SAME}", 1.0000, 0.9690, 1.0000, 120),
    ("Llama8B", BASE, f"delta0.tie_rate[{SAME}", 0.0000, 0.0000, 0.0310, 120),
    ("Llama8B", BASE, "sensitivity[delta=1,", 0.6100, 0.5120, 0.6998, 100),
    ("Llama8B", BASE, "tie_rate[delta=1,", 0.0000, 0.0000, 0.0370, 100),
    ("Llama8B", BASE, "sensitivity[delta=5,", 1.0000, 0.8389, 1.0000, 20),
    ("Llama8B", BASE, "tie_rate[delta=5,", 0.0000, 0.0000, 0.1611, 20),
    ("Qwen14B", BASE, "dark_current[", 0.0000, 0.0000, 0.0310, 120),
    ("Qwen14B", BASE, f"delta0.raw[{SAME}", 0.9917, 0.9543, 0.9985, 120),
    ("Qwen14B", BASE, f"delta0.tie_rate[{SAME}", 0.0083, 0.0015, 0.0457, 120),
    ("Qwen14B", BASE, "sensitivity[delta=1,", 1.0000, 0.9630, 1.0000, 100),
    ("Qwen14B", BASE, "tie_rate[delta=1,", 0.0000, 0.0000, 0.0370, 100),
    ("Qwen14B", BASE, "sensitivity[delta=5,", 1.0000, 0.8389, 1.0000, 20),
    ("Qwen14B", BASE, "tie_rate[delta=5,", 0.0000, 0.0000, 0.1611, 20),
    ("Qwen32B", BASE, "dark_current[", 0.0000, 0.0000, 0.0310, 120),
    ("Qwen32B", BASE, f"delta0.raw[{SAME}", 0.2583, 0.1884, 0.3433, 120),
    ("Qwen32B", BASE, f"delta0.tie_rate[{SAME}", 0.7417, 0.6567, 0.8116, 120),
    ("Qwen32B", BASE, "sensitivity[delta=1,", 0.9400, 0.8752, 0.9722, 100),
    ("Qwen32B", BASE, "tie_rate[delta=1,", 0.0600, 0.0278, 0.1248, 100),
    ("Qwen32B", BASE, "sensitivity[delta=5,", 1.0000, 0.8389, 1.0000, 20),
    ("Qwen32B", BASE, "tie_rate[delta=5,", 0.0000, 0.0000, 0.1611, 20),
    ("Qwen32B", STRICT, f"delta0.raw[{SAME}", 0.0000, 0.0000, 0.0310, 120),
    ("Qwen32B", STRICT, f"delta0.tie_rate[{SAME}", 1.0000, 0.9690, 1.0000, 120),
    ("Qwen32B", STRICT, "sensitivity[delta=1,", 0.5000, 0.4038, 0.5962, 100),
    ("Qwen32B", STRICT, "tie_rate[delta=1,", 0.5000, 0.4038, 0.5962, 100),
    ("Qwen32B", STRICT, "sensitivity[delta=5,", 1.0000, 0.8389, 1.0000, 20),
    ("Qwen32B", STRICT, "tie_rate[delta=5,", 0.0000, 0.0000, 0.1611, 20),
]  # fmt: skip


def row_name(row: tuple) -> str:
    return f"{row[0]}-{row[1]}-{row[2].rstrip('[,')}"


@pytest.mark.parametrize("row", WILSON_ROWS, ids=row_name)
def test_table_6_wilson_row(row, sheets):
    judge, prompt, name, estimate, low, high, n = row
    found = sheets[judge][f"{name}prompt={prompt}]"]
    assert found.value == pytest.approx(estimate, abs=DIGIT)
    wilson = found.detail["wilson"]
    assert (wilson["low"], wilson["high"]) == pytest.approx((low, high), abs=DIGIT)
    assert (found.n, found.n_of) == (n, "calls")


def test_table_6_has_27_wilson_rows():
    assert len(set(map(row_name, WILSON_ROWS))) == 27


@pytest.mark.parametrize("row", WILSON_ROWS, ids=row_name)
def test_wilson_intervals_follow_from_the_printed_estimates(row):
    *_, estimate, low, high, n = row
    assert wilson(round(estimate * n), n) == pytest.approx((low, high), abs=DIGIT)


@pytest.mark.parametrize(
    ("judge", "prompt", "part", "printed"),
    [
        ("Llama8B", BASE, "stable", 0.0333), ("Llama8B", BASE, "positional", 0.9667),
        ("Qwen14B", BASE, "stable", 0.4500), ("Qwen14B", BASE, "positional", 0.5333),
        ("Qwen32B", BASE, "stable", 0.0000), ("Qwen32B", BASE, "positional", 0.0833),
        ("Qwen32B", STRICT, "stable", 0.0000), ("Qwen32B", STRICT, "positional", 0.0000),
    ],
)  # fmt: skip
def test_table_6_decomposition_row(judge, prompt, part, printed, sheets):
    """The source gives these rows no interval; ours has one, which is no printed figure."""
    found = sheets[judge][f"delta0.{part}[{SAME}prompt={prompt}]"]
    assert found.value == pytest.approx(printed, abs=DIGIT)
    assert (found.n, found.n_of) == (60, "pairs")
    assert found.low is not None
    assert found.low <= found.value <= found.high
    assert found.high > found.low


@pytest.mark.parametrize(
    ("judge", "prompt"), [("Llama8B", BASE), ("Qwen14B", BASE), ("Qwen32B", BASE), ("Qwen32B", STRICT)]
)
def test_table_6_d_prime_row(judge, prompt, sheets):
    """3.3812 follows from 10 + 10 calls, split by the slot of the better text; 20 calls in one cell give 3.9615."""
    found = sheets[judge][f"d_prime[delta=5,prompt={prompt}]"]
    assert found.value == pytest.approx(3.3812, abs=DIGIT)
    assert found.n == 20
    assert (found.low, found.high, found.level) == (None, None, None)
    assert "ceiling" in found.method
    assert d_prime(20, 20, 0, 20) == pytest.approx(3.9615, abs=DIGIT)


@pytest.mark.parametrize("judge", ["Qwen14B", "Qwen32B"])
def test_table_6_left_censored_threshold(judge, sheets):
    found = sheets[judge][f"threshold[prompt={BASE}]"]
    assert found.value == 1.0
    assert found.n == 300
    assert found.detail["censored"] == "left"
    assert found.detail["text"] == "<= 1"
    # Every resample is censored too: no interval rather than one of no width.
    assert (found.low, found.high) == (None, None)


def test_table_6_threshold_of_llama(sheets):
    """4.0000 [2.7143, 4.0000], n = 300. Only the counts at steps 1 and 5 are printed, so only this much follows.

    19/7 lies between grid points, so the curve is read between its knots; then a threshold of exactly 4 needs the fit
    to reach 75 % exactly there, as 30 of 40 do. That the upper end is no larger than the estimate is not what a
    bootstrap of such counts gives; it agrees with a threshold read off the grid, and the source does not say.
    """
    assert pytest.approx(2.7143, abs=DIGIT) == 19 / 7
    found = sheets["Llama8B"][f"threshold[prompt={BASE}]"]
    assert found.value == pytest.approx(4.0, abs=DIGIT)
    assert found.detail["censored"] is None
    assert found.n == 300
    assert found.low < 4.0
    # Where the curve passes 75 % five sevenths of the way from step 2 to step 3, the threshold is the printed bound.
    bound = detection_threshold([1, 2, 3, 4, 5], [0.61, 0.70, 0.77, 0.77, 1.0], [100, 80, 60, 40, 20])
    assert bound.value == pytest.approx(2.7143, abs=DIGIT)


def test_table_6_strict_arm_rows_without_a_number(sheets):
    dark = sheets["Qwen32B"][f"dark_current[prompt={STRICT}]"]
    assert dark.value is None
    assert dark.state == "not measured: vacuum was not run under strict"
    threshold = sheets["Qwen32B"][f"threshold[prompt={STRICT}]"]
    assert threshold.value is None
    assert threshold.state == "not measured: the ladder under strict has the steps 1, 5 only, needs 3"


def test_section_4_no_preference_of_qwen32(sheets):
    """Section 4: 0.5667; the one-sided share, which the text leaves out, is then 21 of 60."""
    assert sheets["Qwen32B"][f"delta0.no_preference[{SAME}prompt={BASE}]"].value == pytest.approx(0.5667, abs=DIGIT)
    assert sheets["Qwen32B"][f"delta0.one_sided[{SAME}prompt={BASE}]"].value == pytest.approx(0.35)


def test_section_5_tie_rate_is_no_preference_and_half_the_one_sided(sheets):
    """0.7417 = 0.5667 + 0.35 / 2."""
    found = sheets["Qwen32B"]
    tie, none, half = (
        found[f"delta0.{name}[{SAME}prompt={BASE}]"].value for name in ("tie_rate", "no_preference", "one_sided")
    )
    assert tie == pytest.approx(none + half / 2)
    assert tie == pytest.approx(0.7417, abs=DIGIT)


@pytest.mark.parametrize(
    ("judge", "prompt"), [("Llama8B", BASE), ("Qwen14B", BASE), ("Qwen32B", BASE), ("Qwen32B", STRICT)]
)
def test_section_3_equation_7(judge, prompt, sheets):
    raw, stable, positional, one_sided, other = (
        sheets[judge][f"delta0.{name}[{SAME}prompt={prompt}]"].value
        for name in ("raw", "stable", "positional", "one_sided", "other")
    )
    assert raw == pytest.approx(stable + positional + one_sided / 2 + other)
    assert other == 0


def test_section_5_the_strict_prompt_moves_the_criterion(sheets):
    """The lost sensitivity is ties: no wrong choices, decided calls all right, step 5 untouched."""
    found = sheets["Qwen32B"]
    assert found[f"delta0.no_preference[{SAME}prompt={STRICT}]"].value == 1.0
    assert found[f"wrong_rate[delta=1,prompt={STRICT}]"].value == 0.0
    assert found[f"conditional_accuracy[delta=1,prompt={STRICT}]"].value == 1.0
    assert found[f"miss_by_tie[delta=1,prompt={STRICT}]"].value == 0.5
    assert found[f"miss_by_tie[delta=1,prompt={STRICT}]"].detail["of_misses"] == 1.0
    assert found["criterion.shift[condition=same_subset]"].value == pytest.approx(1 - 0.7417, abs=DIGIT)
    assert found["criterion.shift[condition=ladder,delta=1]"].value == pytest.approx(0.50 - 0.06)
    assert found["criterion.shift[condition=ladder,delta=5]"].value == 0.0


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
    assert sum(call.order == "uv" for call in calls) == len(calls) / 2
    assert len({call.task for call in calls}) == TASKS
