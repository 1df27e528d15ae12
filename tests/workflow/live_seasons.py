"""A market of four instruments whose data arrive day by day, and the command line on the evenings of a live season."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from assaymark.cli import app, main, models
from assaymark.cli import tracks as cli_season
from assaymark.engine import Model
from assaymark.engine.providers.registry import Models, providers
from assaymark.market import snapshot_from_file, weekdays, write_snapshot

DAYS: list[date] = weekdays(date(2024, 1, 22), date(2024, 3, 29)).astype(object).tolist()
SEASON = DAYS[-20:]
SPLIT_DAY, LATE, NEXT, HALT = SEASON[7], SEASON[10], SEASON[11], SEASON[14:17]
DIVIDEND_DAY = LATE
NAMES = ("DIVI", "HALT", "PLAIN", "SPLIT")
COST = 0.001
START = 100_000.0


@dataclass(frozen=True)
class Bar:
    """One traded bar, and the action that comes into force on its day."""

    open: float
    close: float
    volume: float
    split: float = 1.0
    dividend: float = 0.0


@cache
def traded() -> Mapping[str, Mapping[date, Bar]]:
    """What was traded: SPLIT splits 10 for 1, DIVI pays 1.25, HALT does not trade on three days."""
    rng = np.random.default_rng(5)
    found: dict[str, dict[date, Bar]] = {}
    for name, level in zip(NAMES, (50.0, 20.0, 80.0, 1000.0), strict=True):
        bars: dict[date, Bar] = {}
        for day in DAYS:
            split = 10.0 if (name, day) == ("SPLIT", SPLIT_DAY) else 1.0
            dividend = 1.25 if (name, day) == ("DIVI", DIVIDEND_DAY) else 0.0
            opened = level / split - dividend  # what is lost in price is gained in units and cash
            level = opened * float(np.exp(rng.normal(0.0005, 0.01)))
            if name != "HALT" or day not in HALT:
                bars[day] = Bar(round(opened, 4), round(level, 4), 1000.0 * split, split, dividend)
        found[name] = bars
    return found


def factors(bars: Mapping[date, Bar]) -> dict[date, float]:
    """Adjustment factors as a data vendor makes them, counting back from the last bar."""
    found, days = {}, sorted(bars)
    factor = 1.0
    for at in range(len(days) - 1, -1, -1):
        found[days[at]] = factor
        if at:
            before, now = bars[days[at - 1]].close, bars[days[at]]
            factor *= (1.0 - now.dividend / (before / now.split)) / now.split
    return found


Row = Mapping[str, object]


def by_factor(name: str, bars: Mapping[date, Bar]) -> Iterator[Row]:
    """Rows with an adjustment factor as of the last of them."""
    for day, factor in factors(bars).items():
        yield _row(name, day, bars[day]) | {"adj_factor": repr(factor)}


def by_action(name: str, bars: Mapping[date, Bar]) -> Iterator[Row]:
    """Rows that list splits and dividends."""
    for day, bar in bars.items():
        yield _row(name, day, bar) | {"split": bar.split if bar.split != 1 else "", "dividend": bar.dividend or ""}


def _row(name: str, day: date, bar: Bar) -> dict[str, object]:
    high, low = max(bar.open, bar.close), min(bar.open, bar.close)
    return {"instrument": name, "date": str(day), "open": bar.open, "high": high, "low": low, "close": bar.close,
            "volume": bar.volume}  # fmt: skip


def arrive(source: Path, day: date, rows: Callable[..., Iterator[Row]] = by_factor, *, without: date | None = None):
    """The snapshot of a day: everything up to it, as of it."""
    source.mkdir(parents=True, exist_ok=True)
    path = source / f"{day}.csv"
    known = {name: {at: bar for at, bar in bars.items() if at <= day} for name, bars in traded().items()}
    lines = [line for name, bars in known.items() for line in rows(name, bars) if line["date"] != str(without)]
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(lines[0]))
        out.writeheader()
        out.writerows(lines)
    now = evening(NEXT) + timedelta(minutes=5) if day == LATE else datetime.combine(day, time(21, 5), UTC)
    write_snapshot(source / str(day), snapshot_from_file(path, now=now))


def file_of(source: Path, agents: Mapping[str, str], *, extra: str = "") -> str:
    """The season: twenty days, four instruments."""
    cast = "".join(
        f'\n[[agents]]\nname = "{one}"\nfamily = "{one}"\nmodel = "{model}"\n' for one, model in agents.items()
    )
    return f"""
name = "live"
prompt = "Grow the book."
universe = {list(NAMES)}
market = {{source = '{source}', live = true}}
engine = {{deadline_s = 5, attempts = 1}}
{extra}
[calendar]
first = {SEASON[0]}
last = {SEASON[-1]}
{cast}
[[panel]]
name = "reader"
family = "of-reader"
model = "reference/season-reader"
"""


def stepped(folder: Path, moment: datetime) -> tuple[int, str, str]:
    """``season step`` at another time: its exit status, and what it printed."""

    class At(datetime):
        @classmethod
        def now(cls, _tz=None):
            return moment

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(cli_season, "datetime", At)
        status = main(["season", "step", str(folder)])
    return status, out.getvalue(), err.getvalue()


def evening(day: date, *, hour: int = 22) -> datetime:
    return datetime.combine(day, time(hour), UTC)


def bar_of(name: str, day: date) -> Bar | None:
    return traded()[name].get(day)


def by_close(name: str, bars: Mapping[date, Bar]) -> Iterator[Row]:
    """Rows that say nothing of adjustments."""
    return (_row(name, day, bar) for day, bar in bars.items())


def as_they_are(name: str, bars: Mapping[date, Bar]) -> Iterator[Row]:
    """Rows that say that nothing is to be adjusted, which is wrong on the day of a split."""
    return (_row(name, day, bar) | {"adj_factor": 1.0} for day, bar in bars.items())


@contextmanager
def scripted(cast: Mapping[str, Model]) -> Iterator[None]:
    known = app.info.context_settings["obj"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            app.info.context_settings, "obj", replace(known, models=lambda: Models({**models(), **cast}, providers()))
        )
        yield
