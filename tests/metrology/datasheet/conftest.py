"""Made-up judges for the datasheet tests: calls drawn from known probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from repetitions import untraced
from scipy import stats

from assaymark.metrology import datasheet
from assaymark.records import PairCall

TASKS = 10
LADDER_PAIRS = {0.5: 50, 1.0: 50, 2.0: 40, 3.0: 30, 4.0: 20, 5.0: 10}
CLASS_VERDICTS = {
    "stable": ("1", "2"), "slot 1": ("1", "1"), "slot 2": ("2", "2"), "one-sided": ("tie", "1"), "none": ("tie", "tie"),
    "other": ("invalid", "2"), "lost": ("invalid", "tie"),
}  # fmt: skip


@dataclass(frozen=True)
class Planted:
    """A judge as probabilities. ``classes`` are those of equal pairs; ``ladder`` right and tied by step."""

    vacuum: float = 0.15
    graded: float = 0.25
    filler: float = 0.3
    classes: Mapping[str, float] = field(default_factory=lambda: {
        "stable": 0.2, "slot 1": 0.15, "slot 2": 0.1, "one-sided": 0.15, "none": 0.35, "other": 0.03, "lost": 0.02
    })  # fmt: skip
    ladder: Mapping[float, tuple[float, float]] = field(default_factory=lambda: {
        0.5: (0.45, 0.36), 1.0: (0.62, 0.25), 2.0: (0.72, 0.17), 3.0: (0.76, 0.16), 4.0: (0.78, 0.13), 5.0: (0.80, 0.10)
    })  # fmt: skip
    alike: float = np.inf  # concentration of the tasks' class shares around the planted ones; inf: all tasks alike


def draw_calls(
    rng: np.random.Generator, planted: Planted, *, judge: str = "j", tasks: int = TASKS, pairs: int = 60,
    prompt: str = "tie-allowed", trial: int = 1,
    conditions: frozenset[str] = frozenset({"vacuum", "graded_vacuum", "same_subset", "ladder", "filler"}),
) -> list[PairCall]:  # fmt: skip
    """One run of the protocol by this judge."""

    def shown(pair: str, condition: str, i: int, verdicts: tuple[str, ...], **parts: Any) -> Iterator[PairCall]:
        for order, verdict in zip(("uv", "vu"), verdicts, strict=True):
            yield PairCall(
                pair=pair, condition=condition, task=f"t{i % tasks}", order=order, verdict=verdict, judge=judge,
                prompt=prompt, trial=trial, **parts,
            )  # fmt: skip

    def either(share: float) -> tuple[str, str]:
        first, second = (str(rng.integers(1, 3)) if rng.random() < share else "tie" for _ in range(2))
        return first, second

    found: list[PairCall] = []
    if "vacuum" in conditions:
        for i in range(60):
            kind = ("empty", "whitespace", "identical")[i % 3]
            found += shown(f"v{i}", "vacuum", i, either(planted.vacuum), variant=kind)
    if "graded_vacuum" in conditions:
        for i in range(30):
            found += shown(f"g{i}", "graded_vacuum", i, either(planted.graded), variant="typo")
    if "filler" in conditions:
        for i in range(50):
            # v, with the filler, stands in slot 2 and then in slot 1.
            said = ["2", "1"], ["1", "2"]
            verdicts = tuple(said[0][k] if rng.random() < planted.filler else said[1][k] for k in range(2))
            found += shown(f"f{i}", "filler", i, verdicts)
    for condition in ("same_subset", "different_subset"):
        if condition in conditions:
            names, share = list(planted.classes), np.array(list(planted.classes.values()))
            alike = np.isinf(planted.alike)
            shares = [share if alike else rng.dirichlet(share * planted.alike) for _ in range(tasks)]
            for i in range(pairs):
                verdicts = CLASS_VERDICTS[names[rng.choice(len(names), p=shares[i % tasks])]]
                swap = verdicts[::-1] if rng.random() < 0.5 else verdicts
                found += shown(f"{condition}{i}", condition, i, swap)
    if "ladder" in conditions:
        for delta, (right, tied) in planted.ladder.items():
            for i in range(LADDER_PAIRS[delta]):
                better = "uv"[i % 2]
                verdicts = []
                for order in ("uv", "vu"):
                    best = str(order.index(better) + 1)
                    u = rng.random()
                    verdicts.append(best if u < right else "tie" if u < right + tied else "21"[int(best) - 1])
                found += shown(f"l{delta:g}.{i}", "ladder", i, tuple(verdicts), delta=delta, better=better)
    return found


@pytest.fixture(scope="session")
def planted() -> Callable[..., Planted]:
    return lambda **parts: replace(Planted(), **parts)


@pytest.fixture(scope="session")
def draw() -> Callable[..., list[PairCall]]:
    return draw_calls


@pytest.fixture(scope="session")
def in_band() -> Callable[[int, int, float], bool]:
    """Return True if the number of n intervals that cover the truth is in the central 99.9 % band of their level."""
    return lambda held, n, level: bool(stats.binom.ppf(0.0005, n, level) <= held <= stats.binom.ppf(0.9995, n, level))


@pytest.fixture(scope="session")
def kept() -> Callable[[int, int, float], bool]:
    """Return True if conservative intervals cover the truth often enough."""
    return lambda held, n, level: bool(held >= stats.binom.ppf(0.0005, n, level))


@pytest.fixture(scope="session")
def coverage() -> Callable[..., dict[str, tuple[int, int]]]:
    """For each name, in how many runs the interval holds its truth, and how many runs have one.
    Names are ids without the judge; ``@wilson`` asks for the interval that takes calls for independent."""

    def count(runs: Iterator[tuple[list[PairCall], np.random.Generator]], truths: Mapping[str, float]) -> Any:
        held, of = dict.fromkeys(truths, 0), dict.fromkeys(truths, 0)

        def add(calls: list[PairCall], rng: np.random.Generator) -> None:
            measured = datasheet.datasheet_measurements(calls, rng=rng)
            found = {m.id.replace("judge=j,", "").replace(",judge=j", ""): m for m in measured}
            for name, truth in truths.items():
                m = found[name.split("@")[0]]
                low, high = (m.detail["wilson"][end] for end in ("low", "high")) if "@" in name else (m.low, m.high)
                if low is not None:
                    of[name] += 1
                    held[name] += low - 1e-9 <= truth <= high + 1e-9

        add(*next(runs))
        untraced(lambda: [add(*run) for run in runs])
        return {name: (held[name], of[name]) for name in truths}

    return count


@pytest.fixture(scope="session")
def class_truths() -> Callable[[Mapping[str, float]], dict[str, float]]:
    """Return the values that planted class shares imply, at the level of pairs."""

    def of(classes: Mapping[str, float]) -> dict[str, float]:
        label = "[condition=same_subset,prompt=tie-allowed]"
        positional = classes["slot 1"] + classes["slot 2"]
        raw = classes["stable"] + positional + (classes["one-sided"] + classes["other"]) / 2
        return {
            f"delta0.stable{label}": classes["stable"], f"delta0.positional{label}": positional,
            f"delta0.one_sided{label}": classes["one-sided"], f"delta0.no_preference{label}": classes["none"],
            f"delta0.other_pairs{label}": classes["other"] + classes["lost"],
            f"delta0.other{label}": classes["other"] / 2,
            f"delta0.flip_rate{label}": positional / (positional + classes["stable"]),
            f"delta0.slot_1_share{label}": classes["slot 1"] / positional, f"delta0.raw{label}": raw,
        }  # fmt: skip

    return of
