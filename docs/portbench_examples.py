"""Worked examples of the two conventions of the benchmark: the same input, and what each of them makes of it.

Every number is computed here from `assaymark.benchmark` on the embedded market; `docs/portbench_table.py` puts the
table into the page, and a test holds the page to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date
from functools import cache

import numpy as np

from assaymark.benchmark import (
    BALANCED,
    CONSERVATIVE,
    CONVENTIONS,
    THRESHOLD,
    BenchMarket,
    Convention,
    MarketState,
    MarketWindow,
    Risk,
    Scene,
    ahead_of,
    choose_universe,
    equal_start,
    exposures,
    hold,
    inter_class_score,
    oracle_weights,
    profile_alignment,
    risk_of,
    s1_score,
    scene_on,
    signals_of,
    weight_accuracy,
    windows_of,
)
from assaymark.benchmark.questions import Context, PairAllocation, Question, Weights, score_answer
from assaymark.market import synthetic_history

DAY = date(2024, 3, 1)
ASSET = "ALBIX"
"""The asset of the examples about one asset: an equity that fell before the day and rose after it."""

Row = tuple[str, str, str, str]
"""The difference, the input, and the two results."""


@cache
def world() -> MarketWindow:
    """The calm window of the embedded market, with the default 81 instruments."""
    history = synthetic_history(0)
    return MarketWindow(BenchMarket(history, choose_universe(history)), windows_of(history)[0], "monthly")


@cache
def scene(convention: Convention) -> Scene:
    """Return the market after the day of the examples."""
    here = world()
    return scene_on(here.market, here.market.row_of(DAY), here.horizon, convention=convention)


def known() -> MarketState:
    """Return the data known on that day."""
    return world().known(DAY)


def conventions_table() -> str:
    """The worked examples as a Markdown table."""
    head = "| what differs | the same input | `paper` | `reference` |\n|---|---|---|---|\n"
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows())


def rows() -> Iterator[Row]:
    """One row for every difference."""
    yield from _views()
    yield from _signals()
    yield from _weights()
    yield from _oracle()
    yield from _risk()
    yield from _rest()


def _both(what: str, given: str, found: list[str]) -> Row:
    return (what, given, found[0], found[1])


# --- S1 and S2 --------------------------------------------------------------------------------------------------------


def _views() -> Iterator[Row]:
    here, at = world(), known().tickers.index(ASSET)
    before = float(np.prod(1.0 + known().returns[:, at]) - 1.0)
    after = float(ahead_of(here.market, here.market.row_of(DAY), here.horizon)[0][known().part[at]])
    given = f"{ASSET} on {DAY}: {100 * before:+.1f} % in the 60 days before, {100 * after:+.1f} % in the 21 after"
    yield _both("S1, the true view", given, [f"{scene(one).views[at]:+.3f}" for one in CONVENTIONS])
    said = scene("reference").views
    given = f"{DAY}, a model says of all {said.size} what the last 60 days were"
    yield _both("S1, the score", given, [f"{s1_score(said, scene(one).views):.3f}" for one in CONVENTIONS])


def _signals() -> Iterator[Row]:
    told = ["buy" if float(THRESHOLD[one]) < 0.18 else "hold" for one in CONVENTIONS]
    prompts = [f"above {THRESHOLD[one]}, so {said}" for one, said in zip(CONVENTIONS, told, strict=True)]
    truth = signals_of(np.array([0.18]))[0]
    yield _both("S2, the threshold in the prompt", f"a view of 0.18, of which the truth is `{truth}`", prompts)
    counts = [Counter(signals_of(scene(one).views)) for one in CONVENTIONS]
    shown = [", ".join(f"{found[name]} {name}" for name in ("buy", "hold", "sell")) for found in counts]
    yield _both("S2, the true signals", f"the market of {DAY}", shown)


# --- S3 ---------------------------------------------------------------------------------------------------------------


def _weights() -> Iterator[Row]:
    n = known().part.size
    one = np.where(np.arange(n) < n // 2, 1.0 / (n // 2), 0.0)
    two = np.where(one > 0, 0.0, 1.0 / (n - n // 2))
    found = [f"{weight_accuracy(one, two, convention=each):.4f}" for each in CONVENTIONS]
    yield _both("S3, accuracy", f"two books over {n} assets with nothing in common", found)
    alone = np.zeros(n)
    alone[0] = 1.0
    found = [
        f"{inter_class_score(alone, known().correlation, known().classes, convention=each):.4f}" for each in CONVENTIONS
    ]
    yield _both("S3, hedging between classes", "everything in one asset, so only one class is held", found)


def _oracle() -> Iterator[Row]:
    here, at = world(), known().tickers.index(ASSET)
    row = here.market.row_of(DAY)
    means = [ahead_of(here.market, row, here.horizon, convention=one)[1][:, at].mean() for one in CONVENTIONS]
    given = f"{ASSET} on {DAY}: the mean daily return that the oracle is given"
    yield _both("oracle, where the horizon begins", given, [f"{1e4 * one:.1f} bps" for one in means])
    buys = np.array([one == "buy" for one in signals_of(scene("paper").views)])
    found = []
    for one in CONVENTIONS:
        weights, status = oracle_weights(scene(one).mean, scene(one).covariance, buys, convention=one)
        found.append(f"{_largest(weights)} (`{status}`)")
    given = f"{DAY}, {buys.sum()} assets allowed: the largest weights"
    yield _both("oracle, covariance, riskless rate and solver", given, found)
    only = np.zeros(here.market.universe.size, dtype=bool)
    only[known().part[at]] = True
    held, found = here.start().weights, []
    for one in CONVENTIONS:
        truths = here.truths(DAY, only, held, BALANCED, convention=one)
        found.append(f"{(truths.weights > 1e-6).sum()} held, turnover {truths.turnover:.3f}")
    yield _both("oracle, what it may buy", f"{DAY}, the model says buy to {ASSET} alone", found)


def _largest(weights: np.ndarray) -> str:
    first = np.argsort(-weights, kind="stable")[:2]
    return ", ".join(f"{known().tickers[at]} {weights[at]:.2f}" for at in first)


# --- S5, profiles and the rest ----------------------------------------------------------------------------------------


def _risk() -> Iterator[Row]:
    n = known().part.size
    even = np.full(n, 1.0 / n)
    found = [risk_of(even, known().returns, CONSERVATIVE, convention=one) for one in CONVENTIONS]
    given = f"{DAY}, equal weights, conservative: VaR {100 * found[0].var:.2f} % against a limit of -1 %"
    yield _both("S5, drift and flag", given, [_flag(one) for one in found])
    large = np.full(n, 0.65 / (n - 1))
    large[0] = 0.35
    found = [risk_of(large, known().returns, BALANCED, convention=one) for one in CONVENTIONS]
    given = f"{DAY}, 35 % in one asset, balanced: VaR {100 * found[0].var:.2f} % against a limit of -2 %"
    yield _both("S5, drift and flag", given, [_flag(one) for one in found])


def _flag(found: Risk) -> str:
    return f"drift {100 * found.drift:.1f} %, {'flag' if found.rebalance else 'no flag'}"


def _rest() -> Iterator[Row]:
    book, classes = [0.5, 0.2, 0.3], ["equity", "real_estate", "bond"]
    found = []
    for one in CONVENTIONS:
        risky, safe = exposures(book, classes, convention=one)
        score = profile_alignment(risky, safe, -0.015, BALANCED)
        found.append(f"{100 * risky:.0f} % against a cap of 65 %: {score:.3f}")
    given = "50 % equities, 20 % real estate, 30 % bonds, balanced, VaR -1.5 %"
    yield _both("PAS, what counts as equity", given, found)
    moves, start = np.array([[0.01], [0.02]]), equal_start(np.arange(1), 1)
    found = [f"{hold(start, moves, to_decision=True, convention=one)[1][-1]:.4f}" for one in CONVENTIONS]
    yield _both("NAV, the day of the next decision", "one asset, +1 % and then +2 % on the day of a decision", found)
    found = [f"{score_answer(_pair(), 'A=0.5, B=0.5', convention=one).score:.4f}" for one in CONVENTIONS]
    yield _both("T4 and T5", "0.5 and 0.5 where the answer is 0.476 and 0.524", found)


def _pair() -> Question:
    """A question of T4 with known weights."""
    shown = PairAllocation(("A", "B"), (0.2, 0.19), (0.05, 0.06), 0.004, 0.105, 0.0)
    answer = Weights({"A": 0.476, "B": 0.524})
    return Question("T4-1", "T4", "test", "bull", date(2025, 3, 3), shown, Context("bull"), answer)


if __name__ == "__main__":
    print(conventions_table(), end="")  # noqa: T201
