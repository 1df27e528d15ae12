"""The windows that a benchmark runs through, and the dates on which it decides (PortBench, section 3.1 and Table 6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

import numpy as np

from assaymark.benchmark.profiles import RISK_SAFE
from assaymark.errors import InputError, UnknownNameError
from assaymark.market import History, synthetic_market

Kind = Literal["normal", "stress"]
Pace = Literal["weekly", "monthly", "quarterly"]

HORIZONS: Final[dict[Pace, int]] = {"weekly": 5, "monthly": 21, "quarterly": 63}
"""Trading days after a decision that its truths look at."""

_UNIT: Final[dict[Pace, int]] = {"weekly": 0, "monthly": 1, "quarterly": 3}


@dataclass(frozen=True, slots=True)
class Window:
    """A period to decide in."""

    name: str
    first: date
    last: date
    kind: Kind = "normal"
    threshold: float | None = None
    title: str = ""


SEED_WINDOWS: Final[tuple[Window, ...]] = (
    Window("normal", date(2024, 1, 1), date(2024, 12, 31), title="Normal year 2024"),
    Window("china-2015", date(2015, 8, 1), date(2016, 2, 29), "stress", RISK_SAFE["china-2015"], "2015 China Shock"),
    Window("covid-2020", date(2020, 2, 1), date(2020, 5, 31), "stress", RISK_SAFE["covid-2020"], "2020 COVID Crash"),
    Window(
        "crypto-2022", date(2022, 5, 1), date(2022, 12, 31), "stress", RISK_SAFE["crypto-2022"], "2022 Crypto Collapse"
    ),
)
"""The windows of PortBench for prices of real dates."""

_EMBEDDED: Final[dict[str, str]] = {"liquidity": "china-2015", "pandemic": "covid-2020", "tightening": "crypto-2022"}
"""Which window of the embedded market stands for which of PortBench: the same kind of shock and about as long."""

_SEED = re.compile(r"(?:seed|synthetic)-(\d+)")  # in memory, and as a snapshot on disk


def windows_of(history: History) -> tuple[Window, ...]:
    """The four windows of a store: the dates of PortBench, but for the embedded market where its own stress lies."""
    seed = _SEED.fullmatch(history.snapshot)
    if history.source != "synthetic" or seed is None:
        return SEED_WINDOWS
    market = synthetic_market(int(seed[1]))
    found = [SEED_WINDOWS[0]]
    for own in market.windows:
        like = next(one for one in SEED_WINDOWS if one.name == _EMBEDDED[own.name])
        first, last = (market.days[row].astype(object) for row in (own.first, own.last))
        title = f"{own.name.capitalize()} shock of the embedded market"
        found.append(Window(like.name, first, last, like.kind, like.threshold, title))
    return tuple(found)


def window_named(name: str, windows: tuple[Window, ...]) -> Window:
    """The window of that name."""
    for one in windows:
        if one.name == name:
            return one
    raise UnknownNameError("window", name, [one.name for one in windows])


def decision_rows(days: np.ndarray, open_days: np.ndarray, window: Window, pace: Pace) -> np.ndarray:
    """The rows of the decisions: the window's first trading day, then the first of each week, month or quarter."""
    inside = open_days & (days >= np.datetime64(window.first)) & (days <= np.datetime64(window.last))
    rows = np.flatnonzero(inside)
    if not rows.size:
        there = f"{days[0]} to {days[-1]}" if days.size else "no day at all"
        raise InputError(
            f"window {window.name}",
            [f"needs trading days from {window.first} to {window.last} (the store has {there})"],
        )
    periods = _periods(days[rows], pace)
    firsts = rows[np.flatnonzero(np.concatenate([[True], np.diff(periods) != 0]))]
    near = (firsts > firsts[0]) & (firsts - firsts[0] < HORIZONS[pace] / 2)
    return np.asarray(firsts[~near])


def _periods(days: np.ndarray, pace: Pace) -> np.ndarray:
    """The number of each day's week (from Monday), month or quarter."""
    if pace == "weekly":
        return np.asarray((days.astype("datetime64[D]").astype(int) + 3) // 7)
    return np.asarray(days.astype("datetime64[M]").astype(int) // _UNIT[pace])
