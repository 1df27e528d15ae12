"""How many questions of each template each split gets, and on which days they are asked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import Final

import numpy as np

from assaymark.benchmark.questions.payloads import REGIME_NAMES, SPLITS, TEMPLATES, Split, Template
from assaymark.errors import InputError, Problem
from assaymark.market import CLASSES, AssetClass, History, class_index, fill_gaps, regimes

COUNTS: Mapping[Template, int] = MappingProxyType(
    {"T1": 1000, "T2": 1000, "T3": 1000, "T4": 1000, "T5": 1000, "T6": 778, "T7": 491}
)
"""How many of each template: 6,269 (figure 15)."""

SHARES: Mapping[Split, int] = MappingProxyType({"train": 1941, "val": 2700, "test": 1628})
"""How items are shared out between the splits: in proportion to the set that the authors published."""

LEAST_REGIME: Final = 0.10
"""Share of the days of a split that each regime gets at least, where the split has so many days of it."""

LONGEST_LOOK: Final = 252
"""Days that a regime looks back, and so the least history of a question."""

_DAYS = 120  # of a split that is asked for fewer T7; each T7 needs a day of its own


def generator(*names: object) -> np.random.Generator:
    """The random numbers that belong to these names, on every machine.

    >>> float(round(generator(0, "T1").random(), 12)) == float(round(generator(0, "T1").random(), 12))
    True
    """
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest, "big"))))


def split_of(year: int) -> Split:
    """The split of a year (PortBench, B.3).

    >>> split_of(2022), split_of(2024), split_of(2025)
    ('train', 'val', 'test')
    """
    return "train" if year <= 2022 else "val" if year <= 2024 else "test"


def shared_out(counts: Mapping[Template, int]) -> dict[tuple[Template, Split], int]:
    """Items of each template and split: in proportion to `SHARES`, whole, and even for T6.

    Raises
    ------
    InputError
        A template is unknown, a count is negative, or that of T6 is odd.

    Examples
    --------
    >>> {split: n for (name, split), n in shared_out({"T6": 778}).items()}
    {'train': 240, 'val': 336, 'test': 202}
    """
    problems = [
        Problem(name, f"is no template; templates are {', '.join(TEMPLATES)}")
        for name in counts
        if name not in TEMPLATES
    ]
    problems += [Problem(name, f"must be 0 or more (got {n})") for name, n in counts.items() if n < 0]
    if counts.get("T6", 0) % 2:
        problems.append(Problem("T6", f"must be even, because half of it needs a trade (got {counts['T6']})"))
    if problems:
        raise InputError("counts", problems)
    found = {}
    total = sum(SHARES.values())
    for name, count in counts.items():
        step = 2 if name == "T6" else 1
        exact = {split: count * share / total / step for split, share in SHARES.items()}
        whole = {split: int(value) for split, value in exact.items()}
        short = count // step - sum(whole.values())
        for split in sorted(SPLITS, key=lambda one: whole[one] - exact[one])[:short]:
            whole[split] += 1
        found.update({(name, split): step * value for split, value in whole.items() if value})
    return found


def chosen_days(
    history: History, wanted: Mapping[tuple[Template, Split], int], *, seed: int, window: int, horizon: int
) -> dict[Split, list[tuple[int, AssetClass]]]:
    """The rows of the days of each split, in order, each with the class whose regime T7 asks for on it.

    That is equities, except on days that stand in for a regime which equities are hardly ever in during the split.

    Raises
    ------
    InputError
        The market has too few days for what is wanted; every split that lacks some is named.
    """
    problems, found = [], {}
    rows = np.arange(max(window, LONGEST_LOOK), history.days.size - horizon)
    years = history.days[rows].astype("datetime64[Y]").astype(int) + 1970
    labels = _labels(history)
    for split in SPLITS:
        most = max((count for (_, one), count in wanted.items() if one == split), default=0)
        if not most:
            continue
        alone = wanted.get(("T7", split), 0)
        there = rows[[split_of(int(year)) == split for year in years]]
        need = max(alone, min(most, _DAYS))
        if there.size < max(alone, 1):
            problems.append(_too_few(split, int(there.size), max(alone, 1), window, horizon))
            continue
        rng = generator("portbench", seed, "days", split)
        found[split] = _spread(rng, there, labels, min(need, there.size))
    if problems:
        raise InputError(f"market {history.source} {history.snapshot}".strip(), problems)
    return found


def _labels(history: History) -> dict[AssetClass, np.ndarray]:
    """The regime of each class on every day, to choose days by; what a question says is read as of its day."""
    if not any(one.asset_class == "EQ" for one in history.listings):
        raise InputError("market", ["questions need the class equity, whose regime they state"])
    index = class_index(fill_gaps(history.bars["close"]), history.listings)
    return {kind: regimes(path) for kind, path in index.items()}


def _spread(
    rng: np.random.Generator, rows: np.ndarray, labels: Mapping[AssetClass, np.ndarray], count: int
) -> list[tuple[int, AssetClass]]:
    """So many different rows, with every regime that any class is in."""
    order = rng.permutation(rows)
    least = max(1, round(count * LEAST_REGIME))
    found: dict[int, AssetClass] = {}
    for name in REGIME_NAMES:
        # CLASSES begins with equities: other classes are asked about only where those do not have the regime.
        places = ((int(row), kind) for kind in CLASSES if kind in labels for row in order if labels[kind][row] == name)
        new = dict(islice(((row, kind) for row, kind in places if row not in found), least))
        found.update(islice(new.items(), max(count - len(found), 0)))
    for row in order:
        if len(found) < count:
            found.setdefault(int(row), "EQ")
    return sorted(found.items())


def _too_few(split: Split, there: int, need: int, window: int, horizon: int) -> Problem:
    """What a market lacks."""
    back = max(window, LONGEST_LOOK)
    what = {"train": "up to 2022", "val": "in 2023 and 2024", "test": "from 2025 on"}[split]
    return Problem(
        f"split {split}",
        f"needs {need} days {what} with {back} days before and {horizon} after them (got {there}); take a longer "
        "market or ask for fewer questions",
    )
