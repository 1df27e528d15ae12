"""The files of AI-Trader logs: tracks, bars, and the steps that agents took."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field

from assaymark.errors import InputError, Problem
from assaymark.importers.read import NAME, Progress, csv_rows, joined, json_objects, pick, require, shaped, text_of
from assaymark.importers.report import Tally
from assaymark.portfolio import Bar, Book, StatedFill
from assaymark.records import Action, ActionKind, Fact, Rationale, Series

_MOST: Final = 1e15  # no amount, price or position is larger: sums and products of such numbers are still finite
_CASH_KEY: Final = "CASH"
_COLUMNS: Final = ("symbol", "ts", "open", "high", "low", "close", "volume")
_SHOWN: Final = 20  # complete bars of a held or traded symbol in a context


@dataclass(frozen=True, slots=True)
class Track:
    """One market that the agents traded on; the logs state neither its clock nor the capital.

    ``opens`` and ``closes`` are when a day of a daily track opens and when its bar is complete, since its midnight;
    decisions are made at the open. Both are None where stamps have a time: there a bar is complete ``lag`` after its
    stamp. The first fills of nearly all agents fit ``capital`` to the cent. ``units`` is half the last printed digit
    of positions, 0 where units are whole.
    """

    name: str
    prices: str
    zone: str
    asset_class: str
    capital: float
    currency: str
    opens: timedelta | None = None
    closes: timedelta | None = None
    lag: timedelta = timedelta(0)
    suffix: str = ""
    units: float = 1e-6

    @property
    def daily(self) -> bool:
        """Whether a step is a day."""
        return self.opens is not None

    def read(self, stamp: str) -> datetime:
        """A stamp of the log or of a price file as written: local, without a zone."""
        wanted = "2025-10-09" if self.daily else "2025-10-09 10:30:00"
        try:
            found = datetime.strptime(stamp, "%Y-%m-%d" if self.daily else "%Y-%m-%d %H:%M:%S")
        except ValueError:
            found = datetime.min
        if not 1970 <= found.year <= 2200:
            raise ValueError(f"must be a step such as {wanted} (got {stamp[:40]!r})")
        return found

    def utc(self, local: datetime, *, complete: bool = False) -> datetime:
        """When a decision at a step is made: its bar's open is known, nothing later; or when all of its bar is."""
        after = self.closes if self.closes is not None else self.lag
        local += after if complete else self.opens or timedelta(0)
        try:
            return local.replace(tzinfo=ZoneInfo(self.zone)).astimezone(UTC)
        except ZoneInfoNotFoundError:
            what = f"this machine has no time zone data for {self.zone}; install the package tzdata"
            raise InputError("aitrader", [what]) from None


TRACKS: Final[Mapping[str, Track]] = MappingProxyType({
    "agent_data": Track(
        "us", "prices_us_hourly.csv", "America/New_York", "equity", 10_000.0, "USD", lag=timedelta(hours=1)
    ),
    "agent_data_astock_hour": Track(
        "cn-hourly", "prices_astock_hourly.csv", "Asia/Shanghai", "equity", 100_000.0, "CNY", suffix="-astock-hour"
    ),
    "agent_data_astock": Track(
        "cn-daily", "prices_astock_daily.csv", "Asia/Shanghai", "equity", 100_000.0, "CNY",
        opens=timedelta(hours=9, minutes=30), closes=timedelta(hours=15),
    ),
    "agent_data_crypto": Track(
        "crypto", "prices_crypto_daily.csv", "UTC", "crypto", 50_000.0, "USDT", opens=timedelta(0),
        closes=timedelta(days=1), units=5.1e-5,
    ),
})  # fmt: skip
"""The tracks by the name that the logs give them."""


class Prices:
    """The bars of one track; ``steps`` are the local stamps, oldest first.

    ``bars`` are by step; only their opens were known at it.
    """

    def __init__(self, track: Track, bars: Mapping[datetime, Mapping[str, Bar]], volumes: Mapping[str, float]) -> None:
        self.track = track
        self.steps = sorted(bars)
        self.bars = {step: bars[step] for step in self.steps}
        self._volumes = volumes
        self.symbols = tuple(sorted({symbol for found in bars.values() for symbol in found}))
        self._facts: dict[datetime, tuple[Fact, ...]] = {}

    def opens(self, step: datetime) -> dict[str, float]:
        """The open of every symbol at a step."""
        return {symbol: bar.open for symbol, bar in self.bars[step].items() if bar.open is not None}

    def last_open(self, symbol: str, step: datetime) -> float | None:
        """The open of a symbol at a step, or the last one before; None where there is none yet."""
        found = (self.bars[one].get(symbol) for one in reversed(self.steps[: bisect_right(self.steps, step)]))
        return next((bar.open for bar in found if bar is not None and bar.open is not None), None)

    def facts(self, step: datetime) -> tuple[Fact, ...]:
        """What an agent was shown of prices at a step: every symbol's open, and its close one bar before."""
        if step not in self._facts:
            decided = self.track.utc(step)
            seen = [("price", decided, symbol, price) for symbol, price in self.opens(step).items()]
            seen += [
                ("previous_close", self.track.utc(last, complete=True), symbol, bar.close)
                for last in self._complete(step, 1) for symbol, bar in self.bars[last].items() if bar.close is not None
            ]  # fmt: skip
            self._facts[step] = tuple(
                Fact(id=f"{name}:{symbol}", instrument=symbol, field=name, value=price, unit="price", available_at=at,
                     as_of=at, source=self.track.prices)
                for name, at, symbol, price in seen
            )  # fmt: skip
        return self._facts[step]

    def series(self, step: datetime, symbols: Iterable[str]) -> tuple[Series, ...]:
        """The last complete bars before a step of each of the symbols that has any."""
        known, found = self._complete(step, _SHOWN), []
        for symbol in sorted(set(symbols)):
            bars = {one: bar for one in known if (bar := self.bars[one].get(symbol)) is not None}
            whole = {one: bar for one, bar in bars.items() if None not in (bar.open, bar.high, bar.low, bar.close)}
            if whole:
                found.append(Series(
                    instrument=symbol, interval_s=86_400 if self.track.daily else 3_600,
                    times=tuple(self.track.utc(one, complete=True) for one in whole),
                    volume=tuple(self._volumes.get(f"{symbol} {one}", 0.0) for one in whole),
                    **{name: tuple(getattr(bar, name) for bar in whole.values())
                       for name in ("open", "high", "low", "close")},
                ))  # fmt: skip
        return tuple(found)

    def benchmark(self, start: datetime, end: datetime) -> float | None:
        """The mean return from open to open of the symbols that have both: an equal weight of the universe."""
        one, other = self.opens(start), self.opens(end)
        both = [other[symbol] / price - 1.0 for symbol, price in one.items() if symbol in other]
        return math.fsum(both) / len(both) if both else None

    def _complete(self, step: datetime, most: int) -> list[datetime]:
        """Of the last ``most`` steps before one, those whose bars were complete at it."""
        at, decided = bisect_left(self.steps, step), self.track.utc(step)
        return [one for one in self.steps[max(at - most, 0) : at] if self.track.utc(one, complete=True) <= decided]


def read_prices(track: Track, name: str, data: bytes, tally: Tally) -> Prices:
    """The bars in a price file; every problem of it is noted in ``tally``, and the row left out.

    A row may have an open only: that is the newest bar, cut off where the agents saw it.
    """
    before = len(tally.problems)
    bars: dict[datetime, dict[str, Bar]] = {}
    volumes: dict[str, float] = {}
    stamps: dict[str, datetime] = {}

    def wrong(line: int, what: str, column: str = "") -> None:
        tally.problem(joined(f"{name} line {line}", column), what)

    try:
        for line, row in csv_rows(text_of(name, data), wrong):
            if tuple(row) != _COLUMNS:
                tally.problem(name, f"must have the columns {', '.join(_COLUMNS)} (got {', '.join(row)[:120]})")
                break
            try:
                step = stamps.get(row["ts"]) or stamps.setdefault(row["ts"], track.read(row["ts"]))
                bar, volume = _bar(row)
            except ValueError as exc:
                wrong(line, str(exc))
                continue
            symbol = row["symbol"]
            if not symbol:
                wrong(line, "is empty", "symbol")
            elif symbol in bars.setdefault(step, {}):
                wrong(line, f"{symbol} has two bars at {row['ts']}", "ts")
            else:
                bars[step][symbol] = bar
                volumes[f"{symbol} {step}"] = volume
    except ValueError as exc:
        tally.problem(name, str(exc))
    if not bars and len(tally.problems) == before:
        tally.problem(name, "holds no bar")
    return Prices(track, bars, volumes)


def _bar(row: Mapping[str, str]) -> tuple[Bar, float]:
    """One row's bar and volume."""
    found: dict[str, float | None] = {}
    for column in _COLUMNS[2:]:
        text, least = row[column], 0.0 if column == "volume" else math.ulp(0.0)
        try:
            value = float(text) if text else None
        except ValueError:
            value = math.nan
        if value is not None and not least <= value <= _MOST:
            above = "above" if least else "from"
            raise ValueError(f"{column}: must be a number {above} 0 to {_MOST:.0e} (got {text[:40]!r})")
        found[column] = value
    opened, high, low, close = (found[column] for column in ("open", "high", "low", "close"))
    if opened is None:
        raise ValueError("open: is needed (got nothing)")
    if high is not None and low is not None and close is not None:
        slack = 1e-9 * high
        if not (low - slack <= min(opened, close) and max(opened, close) <= high + slack):
            seen = f"{opened:g}, {close:g} and {low:g} to {high:g}"
            raise ValueError(f"open and close must lie from low to high (got {seen})")
    elif any(one is not None for one in (high, low, close)):
        raise ValueError("high, low and close: give all three or none")
    return Bar(open=opened, high=high, low=low, close=close), found["volume"] or 0.0


_CODE: Final = r"(?P<code>\d{6}\.S[HZ])"
_NAME: Final = r"(?P<name>[\u4e00-\u9fff]{2,6})"
_PATTERNS: Final = (
    re.compile(rf"(?<![\u4e00-\u9fff]){_NAME}\*{{0,2}}\s?[(（]{_CODE}[)）]"),
    re.compile(rf"{_CODE}\s?[(（]{_NAME}[)）]"),
)
_FINISH: Final = re.compile(r"</?FINISH_SIGNAL>")
_THINK: Final = re.compile(r"<think>(.*?)</think>", re.S)
_TOOL_OUTPUT: Final = "Tool results:"


def names_in(texts: Iterable[str | None]) -> Mapping[str, str]:
    """The company name of each code, which the price files do not hold: what most often stands in brackets beside it.

    A name must stand there three times, and more often than all others together; one of two codes goes to neither.
    """
    seen: dict[str, Counter[str]] = {}
    for text in texts:
        for pattern in _PATTERNS:
            for found in pattern.finditer(text or ""):
                seen.setdefault(found["code"], Counter())[found["name"]] += 1
    best = {code: names.most_common(1)[0] for code, names in seen.items()}
    names = {code: name for code, (name, n) in best.items() if n >= 3 and 2 * n > seen[code].total()}
    shared = {name for name, n in Counter(names.values()).items() if n > 1}
    return {code: name for code, name in sorted(names.items()) if name not in shared}


def texts_of(text: str | None) -> tuple[tuple[Rationale, ...], tuple[str, ...]]:
    """The texts of a step, and the flags they earn: ``think-block``, ``tool-output``, ``no-finish-signal``.

    What was thought aloud is of kind ``stage``: only one of the models left it in its log, so it is kept word for word
    and apart. The answer is of kind ``summary``, without the finish signal, which is for the machine that ran the
    agent. A message that repeats what a tool returned was not written by the agent and is of kind ``arena``.
    """
    written = text or ""
    thoughts = [found.strip() for found in _THINK.findall(written)]
    answer = _FINISH.sub("", _THINK.sub("", written)).strip()
    kept = [Rationale(text=thought, kind="stage") for thought in thoughts if thought]
    tool = answer.startswith(_TOOL_OUTPUT)
    if answer and answer != _TOOL_OUTPUT:
        kept.append(Rationale(text=answer, kind="arena" if tool else "summary"))
    marks = {"think-block": thoughts, "tool-output": tool, "no-finish-signal": not _FINISH.search(written)}
    return tuple(kept), tuple(flag for flag, found in marks.items() if found)


_KINDS: Final[Mapping[str, ActionKind]] = {
    "buy": "buy", "buy_crypto": "buy", "sell": "sell", "sell_crypto": "sell", "no_trade": "no_trade",
}  # fmt: skip
_SIGNS: Final[Mapping[ActionKind, float]] = {"buy": 1.0, "sell": -1.0}


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class _LoggedAction(_Shape):
    action: Literal["buy", "buy_crypto", "sell", "sell_crypto", "no_trade"]
    symbol: str
    amount: Annotated[float, Field(ge=0, le=_MOST)]
    price: Annotated[float, Field(gt=0, le=_MOST)] | None = None


class Line(_Shape):
    """One step of one agent. ``rationale`` is its last message, ``timestamps`` when messages were written, unzoned."""

    track: str
    model: Annotated[str, Field(pattern=NAME)]
    step: str
    rationale: str | None
    n_messages: Annotated[int, Field(ge=0)]
    timestamps: list[str]
    actions: list[_LoggedAction]
    positions_after: dict[str, Annotated[float, Field(ge=-_MOST, le=_MOST)]] | None


@dataclass(frozen=True, slots=True)
class Step:
    """A line that was found good, with its track and its local stamp."""

    line: Line
    track: Track
    at: datetime

    @property
    def agent(self) -> str:
        """The model, without the name of the track that some logs add to it."""
        return self.line.model.removesuffix(self.track.suffix)

    @property
    def record_id(self) -> str:
        """The decision's id: track, step and agent."""
        stamp = self.at.strftime("%Y-%m-%d" if self.track.daily else "%Y-%m-%dT%H:%M")
        return f"{self.track.name}/{stamp}/{self.agent}"

    @property
    def day(self) -> str:
        """The day of the exchange."""
        return self.at.strftime("%Y-%m-%d")

    @property
    def book(self) -> Book | None:
        """Cash and units after the step, where they are stated."""
        after = self.line.positions_after
        if after is None:
            return None
        return Book(after[_CASH_KEY], {name: units for name, units in after.items() if units and name != _CASH_KEY})

    @property
    def actions(self) -> tuple[Action, ...]:
        """The logged actions as ours."""
        return tuple(
            Action(instrument=one.symbol, kind=_KINDS[one.action], price=one.price,
                   quantity=None if one.action == "no_trade" else one.amount)
            for one in self.line.actions
        )  # fmt: skip

    @property
    def fills(self) -> tuple[StatedFill, ...]:
        """The logged actions that moved anything: the venue logs an action once it is done."""
        return tuple(
            StatedFill(action.instrument, _SIGNS[action.kind] * action.quantity, action.price)
            for action in self.actions
            if action.kind in _SIGNS and action.quantity
        )


class Log:
    """The steps and prices of the files; what is wrong goes to ``tally``.

    ``prices`` are by the log's track name, ``steps`` the good ones in their order, ``bad`` how many were left out.
    """

    def __init__(self, files: Mapping[str, bytes], tally: Tally, progress: Progress | None = None) -> None:
        self.prices: dict[str, Prices] = {}
        self.steps: list[Step] = []
        name, data = require(files, "decisions.jsonl")
        without: dict[str, Counter[str]] = {"missing": Counter(), "broken": Counter()}  # steps without prices
        places: dict[str, str] = {}
        lines = 0
        for place, text, tree in json_objects("steps", name, data, tally, progress):
            lines += 1
            line = None if tree is None else shaped(Line, text, place, tally)
            if line is None:
                continue
            track = TRACKS.get(line.track)
            if track is None:
                tally.problem(f"{place}, track", f"must be one of {', '.join(TRACKS)} (got {line.track[:60]!r})")
                continue
            if line.track not in self.prices and not any(line.track in of for of in without.values()):
                made, kind = None, "broken"
                try:
                    if (found := pick(files, track.prices)) is None:
                        kind = "missing"
                    else:
                        made = read_prices(track, *found, tally)
                except InputError as exc:
                    tally.problems += [
                        Problem(joined(exc.source, problem.where), problem.what) for problem in exc.problems
                    ]
                if made is not None and made.steps:
                    self.prices[line.track] = made
                else:
                    without[kind][line.track] = 0
            if line.track not in self.prices:
                next(of for of in without.values() if line.track in of)[line.track] += 1
                continue
            try:
                step = Step(line, track, track.read(line.step))
            except ValueError as exc:
                tally.problem(f"{place}, step", str(exc))
                continue
            wrong = list(_faults(step, self.prices[line.track]))
            if step.record_id in places:
                first = places[step.record_id]
                wrong.append(("step", f"{line.model} has two lines at {line.step} (first at {first})"))
            for where, what in wrong:
                tally.problem(f"{place}, {where}", what)
            if not wrong:
                places[step.record_id] = place
                self.steps.append(step)
        for track_name, n in without["missing"].items():
            file = TRACKS[track_name].prices
            what = f"missing, and needed for {n} steps of {track_name}; give it as {file} or {file}.gz"
            tally.problem(file, what)
        for track_name, n in without["broken"].items():
            tally.problem(TRACKS[track_name].prices, f"{n} steps of {track_name} without prices: their file is broken")
        if not lines:
            tally.problem(name, "holds no step: no line with anything in it")
        self.bad = lines - len(self.steps)

    def runs(self) -> dict[tuple[str, str], list[Step]]:
        """Each agent's steps on each track, oldest first, by track and agent."""
        found: dict[tuple[str, str], list[Step]] = {}
        for step in sorted(self.steps, key=lambda one: (one.line.track, one.agent, one.at)):
            found.setdefault((step.line.track, step.agent), []).append(step)
        return found


def _faults(step: Step, prices: Prices) -> Iterator[tuple[str, str]]:
    """What is wrong with a line of the right shape: field and what."""
    line, file = step.line, prices.track.prices
    if step.at not in prices.bars:
        yield "step", f"has no bar in {file} (got {line.step!r})"
    for number, one in enumerate(line.actions):
        if one.action != "no_trade" and one.symbol not in prices.symbols:
            yield f"actions.{number}.symbol", f"has no bars in {file} (got {one.symbol!r:.60})"
    after = line.positions_after
    if after is not None:
        if _CASH_KEY not in after:
            yield "positions_after", f"has no {_CASH_KEY}"
        for symbol in after:
            if symbol != _CASH_KEY and symbol not in prices.symbols:
                yield "positions_after", f"{symbol!r:.60} has no bars in {file}"
    times = []
    for number, text in enumerate(line.timestamps):
        try:
            times.append(datetime.fromisoformat(text))
        except ValueError:
            yield f"timestamps.{number}", f"must be a time such as 2025-11-17T06:44:32 (got {text[:40]!r})"
    if any(time.tzinfo is not None for time in times):
        yield "timestamps", "have a zone, which this log's never had; say what changed in an issue"
    elif times != sorted(times):
        yield "timestamps", "go backwards"
