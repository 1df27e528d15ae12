"""The four tracks of the logs: their price files, clocks and capital, which the logs do not state themselves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import ConfigDict, Field

from assaymark.errors import InputError, Problem
from assaymark.importers.aitrader.prices import Prices, read_prices
from assaymark.importers.read import joined, json_lines, json_object, pick, require, shaped
from assaymark.importers.report import NAME, Tally
from assaymark.records import Action, ActionKind, Rationale

# Company names that the price files do not hold, as the agents themselves wrote them beside the codes.


_CODE: Final = r"(?P<code>\d{6}\.S[HZ])"
_NAME: Final = r"(?P<name>[\u4e00-\u9fff]{2,6})"
_PATTERNS: Final = (
    re.compile(rf"(?<![\u4e00-\u9fff]){_NAME}\*{{0,2}}\s?[(（]{_CODE}[)）]"),
    re.compile(rf"{_CODE}\s?[(（]{_NAME}[)）]"),
)

LEAST: Final = 3
"""A name must stand beside its code so often, and more often than all others together."""


def names_in(texts: Iterable[str | None]) -> Mapping[str, str]:
    """The name of each code: what stands in brackets beside it, or before it, most of the time.

    A name that would go to two codes goes to neither.

    >>> dict(names_in(["买入 招商银行(600036.SH) 100股", "600036.SH（招商银行）", "- **招商银行** (600036.SH)", None]))
    {'600036.SH': '招商银行'}
    """
    seen: dict[str, Counter[str]] = {}
    for text in texts:
        for pattern in _PATTERNS:
            for found in pattern.finditer(text or ""):
                seen.setdefault(found["code"], Counter())[found["name"]] += 1
    best = {code: names.most_common(1)[0] for code, names in seen.items()}
    names = {code: name for code, (name, n) in best.items() if n >= LEAST and 2 * n > seen[code].total()}
    shared = {name for name, n in Counter(names.values()).items() if n > 1}
    return {code: name for code, name in sorted(names.items()) if name not in shared}


# What an agent wrote at the end of a step, without the marks that were meant for the machine.


FINISH: Final = re.compile(r"</?FINISH_SIGNAL>")
THINK: Final = re.compile(r"<think>(.*?)</think>", re.S)
TOOL_OUTPUT: Final = "Tool results:"


def rationales_of(text: str | None) -> tuple[Rationale, ...]:
    """The texts of a step: what was thought aloud as kind ``stage``, the answer as kind ``summary``.

    A think-block is the model's own reasoning, and only one of the models left it in its log. It is kept word for word
    and apart, so that a study can leave it out and a reader can see which texts had one. The finish signal is a word
    for the machine that ran the agent: it is taken out. A message that repeats what a tool returned was not written by
    the agent, and is of kind ``arena``: kept, neither judged nor ledgered.

    >>> rationales_of("<think>\\nToo dear.\\n</think>\\nI hold.\\n<FINISH_SIGNAL>")
    (Rationale(text='Too dear.', kind='stage'), Rationale(text='I hold.', kind='summary'))
    >>> rationales_of("<FINISH_SIGNAL>")
    ()
    """
    if text is None:
        return ()
    thoughts = [found.strip() for found in THINK.findall(text)]
    answer = FINISH.sub("", THINK.sub("", text)).strip()
    kept = [Rationale(text=thought, kind="stage") for thought in thoughts if thought]
    if answer.startswith(TOOL_OUTPUT):
        kept += [Rationale(text=answer, kind="arena")] if answer != TOOL_OUTPUT else []
    elif answer:
        kept.append(Rationale(text=answer, kind="summary"))
    return tuple(kept)


def marks_of(text: str | None) -> tuple[str, ...]:
    """The flags that a step's text earns: ``think-block``, ``tool-output``, ``no-finish-signal``."""
    written = text or ""
    answer = FINISH.sub("", THINK.sub("", written)).strip()
    flags = []
    if THINK.search(written):
        flags.append("think-block")
    if answer.startswith(TOOL_OUTPUT):
        flags.append("tool-output")
    if not FINISH.search(written):
        flags.append("no-finish-signal")
    return tuple(flags)


_HOUR: Final = timedelta(hours=1)
_YEARS: Final = (1970, 2200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One market that the agents traded on.

    Attributes
    ----------
    name
        Ours; the episode of every decision on the track.
    prices
        The file with its bars.
    zone
        That of the exchange: stamps in the logs have none.
    opens, closes
        When a day of a daily track opens, and when its bar is complete, since its midnight. Decisions are made at the
        open. Both are None where stamps have a time of their own.
    lag
        How long after its stamp a bar with a time is complete: an hour where stamps are the bar's start, nothing where
        they are its end.
    capital, currency
        What each agent started with. The first fills of nearly all agents fit it to the cent.
    units
        Half the last printed digit of positions; 0 where units are whole.
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

    @property
    def interval_s(self) -> int:
        """Seconds from one bar to the next within a session."""
        return 86_400 if self.daily else 3_600

    def read(self, stamp: str) -> datetime:
        """A stamp of the log or of a price file as written: local, without a zone."""
        wanted = "2025-10-09" if self.daily else "2025-10-09 10:30:00"
        try:
            found = datetime.strptime(stamp, "%Y-%m-%d" if self.daily else "%Y-%m-%d %H:%M:%S")
        except ValueError:
            found = datetime.min
        if not _YEARS[0] <= found.year <= _YEARS[1]:
            raise ValueError(f"must be a step such as {wanted} (got {stamp[:40]!r})")
        return found

    def decided_at(self, local: datetime) -> datetime:
        """The moment of a decision at a step: its bar's open is known, nothing later."""
        return self._utc(local + (self.opens or timedelta(0)))

    def complete_at(self, local: datetime) -> datetime:
        """When all of the bar with this stamp is known."""
        return self._utc(local + (self.closes if self.closes is not None else self.lag))

    def _utc(self, local: datetime) -> datetime:
        try:
            zone = ZoneInfo(self.zone)
        except ZoneInfoNotFoundError:
            what = f"this machine has no time zone data for {self.zone}; install the package tzdata"
            raise InputError("aitrader", [what]) from None
        return local.replace(tzinfo=zone).astimezone(UTC)


TRACKS: Final[Mapping[str, Track]] = MappingProxyType(
    {
        "agent_data": Track(
            name="us",
            prices="prices_us_hourly.csv",
            zone="America/New_York",
            asset_class="equity",
            capital=10_000.0,
            currency="USD",
            lag=_HOUR,
        ),
        "agent_data_astock_hour": Track(
            name="cn-hourly",
            prices="prices_astock_hourly.csv",
            zone="Asia/Shanghai",
            asset_class="equity",
            capital=100_000.0,
            currency="CNY",
            suffix="-astock-hour",
        ),
        "agent_data_astock": Track(
            name="cn-daily",
            prices="prices_astock_daily.csv",
            zone="Asia/Shanghai",
            asset_class="equity",
            capital=100_000.0,
            currency="CNY",
            opens=timedelta(hours=9, minutes=30),
            closes=timedelta(hours=15),
        ),
        "agent_data_crypto": Track(
            name="crypto",
            prices="prices_crypto_daily.csv",
            zone="UTC",
            asset_class="crypto",
            capital=50_000.0,
            currency="USDT",
            opens=timedelta(0),
            closes=timedelta(days=1),
            units=5.1e-5,
        ),
    }
)
"""The tracks by the name that the logs give them."""


# The lines of ``decisions.jsonl``: their shape, and what is wrong with one although its shape is right.


_STRICT: Final = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

CASH: Final = "CASH"

MOST: Final = 1e15
"""No amount, price or position is larger: sums and products of such numbers are still finite."""

KINDS: Final[dict[str, ActionKind]] = {
    "buy": "buy",
    "buy_crypto": "buy",
    "sell": "sell",
    "sell_crypto": "sell",
    "no_trade": "no_trade",
}
"""What the log calls its actions, and what they are here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAction:
    """One entry of a step's action log; ``price`` stands in a handful of them."""

    __pydantic_config__ = _STRICT

    action: Literal["buy", "buy_crypto", "sell", "sell_crypto", "no_trade"]
    symbol: str
    amount: Annotated[float, Field(ge=0, le=MOST)]
    price: Annotated[float, Field(gt=0, le=MOST)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One step of one agent. ``rationale`` is its last message, ``timestamps`` when messages were written, unzoned."""

    __pydantic_config__ = _STRICT

    track: str
    model: Annotated[str, Field(pattern=NAME)]
    step: str
    rationale: str | None
    n_messages: Annotated[int, Field(ge=0)]
    timestamps: list[str]
    actions: list[LoggedAction]
    positions_after: dict[str, Annotated[float, Field(ge=-MOST, le=MOST)]] | None


@dataclass(frozen=True, slots=True)
class Step:
    """A line that was found good, with its track and its local stamp; ``place`` says where it was read."""

    line: Line
    track: Track
    at: datetime
    place: str

    @property
    def agent(self) -> str:
        """The model, without the name of the track that some logs add to it."""
        return self.line.model.removesuffix(self.track.suffix) if self.track.suffix else self.line.model

    @property
    def record_id(self) -> str:
        """The decision's id: track, step and agent."""
        stamp = self.at.strftime("%Y-%m-%d" if self.track.daily else "%Y-%m-%dT%H:%M")
        return f"{self.track.name}/{stamp}/{self.agent}"

    @property
    def cash(self) -> float | None:
        """Cash after the step, where it is stated."""
        return None if self.line.positions_after is None else self.line.positions_after[CASH]

    @property
    def held(self) -> dict[str, float] | None:
        """Units after the step, where they are stated; nothing of a symbol is left out."""
        after = self.line.positions_after
        return None if after is None else {symbol: units for symbol, units in after.items() if units and symbol != CASH}

    @property
    def actions(self) -> tuple[Action, ...]:
        """The logged actions as ours."""
        return tuple(
            Action(
                instrument=one.symbol,
                kind=KINDS[one.action],
                quantity=None if one.action == "no_trade" else one.amount,
                price=one.price,
            )
            for one in self.line.actions
        )

    @property
    def wall_clock(self) -> tuple[datetime, datetime] | None:
        """When the first and last kept messages were written, on a clock without a zone."""
        if not self.line.timestamps:
            return None
        times = [datetime.fromisoformat(one) for one in self.line.timestamps]
        return min(times), max(times)


def faults(line: Line, at: datetime, prices: Prices) -> list[str]:
    """What is wrong with a line of the right shape: ``field: what``."""
    found = []
    if at not in prices:
        found.append(f"step: has no bar in {prices.track.prices} (got {line.step!r})")
    for number, one in enumerate(line.actions):
        if one.action == "no_trade":
            continue
        if one.symbol not in prices.symbols:
            found.append(f"actions.{number}.symbol: has no bars in {prices.track.prices} (got {one.symbol!r:.60})")
    after = line.positions_after
    if after is not None:
        if CASH not in after:
            found.append(f"positions_after: has no {CASH}")
        unknown = [symbol for symbol in after if symbol != CASH and symbol not in prices.symbols]
        found += [f"positions_after: {symbol!r:.60} has no bars in {prices.track.prices}" for symbol in unknown]
    return found + _clock_faults(line)


def _clock_faults(line: Line) -> list[str]:
    found, times = [], []
    for number, text in enumerate(line.timestamps):
        try:
            times.append(datetime.fromisoformat(text))
        except ValueError:
            found.append(f"timestamps.{number}: must be a time such as 2025-11-17T06:44:32 (got {text[:40]!r})")
    if any(one.tzinfo is not None for one in times):
        found.append("timestamps: have a zone, which this log's never had; say what changed in an issue")
    elif times != sorted(times):
        found.append("timestamps: go backwards")
    return found


# The files of a log together: price files for the tracks that occur, and every step.


DECISIONS = "decisions.jsonl"
"""The file of steps, plain or as ``.gz``; the price files stand beside it."""

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Log:
    """What was read: prices by the log's track name, good steps in their order, and how many were left out.

    ``broken`` counts the steps of each track whose price file could not be read at all.
    """

    prices: dict[str, Prices] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    bad: int = 0
    broken: dict[str, int] = field(default_factory=dict)

    def runs(self) -> dict[tuple[str, str], list[Step]]:
        """Each agent's steps on each track, oldest first, by track and agent."""
        found: dict[tuple[str, str], list[Step]] = {}
        for step in sorted(self.steps, key=lambda one: (one.line.track, one.agent, one.at)):
            found.setdefault((step.line.track, step.agent), []).append(step)
        return found


def read_log(files: Mapping[str, bytes], tally: Tally, progress: Progress | None = None) -> Log:
    """Every step and price of the files; what is wrong goes to ``tally``."""
    log = Log()
    name, data = require(files, DECISIONS)
    lines = list(json_lines(data))
    absent: dict[str, int] = {}
    places: dict[str, str] = {}
    for done, (number, line) in enumerate(lines, start=1):
        if not _read_line(log, files, f"{name} line {number}", line, tally, absent, places):
            log.bad += 1
        if progress is not None:
            progress("steps", done, len(lines))
    for track, count in absent.items():
        wanted = TRACKS[track].prices
        tally.problem(wanted, f"missing, and needed for {count} steps of {track}; give it as {wanted} or {wanted}.gz")
    for track, count in log.broken.items():
        tally.problem(TRACKS[track].prices, f"{count} steps of {track} without prices: their file is broken")
    if not lines:
        tally.problem(name, "holds no step: no line with anything in it")
    return log


def _read_line(
    log: Log,
    files: Mapping[str, bytes],
    place: str,
    text: bytes,
    tally: Tally,
    absent: dict[str, int],
    places: dict[str, str],
) -> bool:
    """Whether a line became a step."""
    try:
        json_object(text)
    except ValueError as exc:
        tally.problem(place, str(exc))
        return False
    line: Line | None = shaped(Line, text, place, tally)
    if line is None:
        return False
    track = TRACKS.get(line.track)
    if track is None:
        tally.problem(f"{place}, track", f"must be one of {', '.join(TRACKS)} (got {line.track[:60]!r})")
        return False
    prices = None if line.track in log.broken else _prices(log, files, line.track, tally)
    if prices is None:
        unread = log.broken if line.track in log.broken else absent
        unread[line.track] = unread.get(line.track, 0) + 1
        return False
    try:
        at = track.read(line.step)
    except ValueError as exc:
        tally.problem(f"{place}, step", str(exc))
        return False
    found = faults(line, at, prices)
    step = Step(line, track, at, place)
    if step.record_id in places:
        found.append(f"step: {line.model} has two lines at {line.step} (first at {places[step.record_id]})")
    for what in found:
        where, _, rest = what.partition(": ")
        tally.problem(f"{place}, {where}", rest)
    if found:
        return False
    places[step.record_id] = place
    log.steps.append(step)
    return True


def _prices(log: Log, files: Mapping[str, bytes], track: str, tally: Tally) -> Prices | None:
    """The prices of a track, read when its first step is met; None where there is no such file."""
    if track not in log.prices:
        before = len(tally.problems)
        try:
            found = pick(files, TRACKS[track].prices)
            made = None if found is None else read_prices(TRACKS[track], *found, tally)
        except InputError as exc:
            tally.problems += [Problem(joined(exc.source, one.where), one.what) for one in exc.problems]
            made = None
        if made is not None and made.steps:
            log.prices[track] = made
        elif len(tally.problems) > before:
            log.broken.setdefault(track, 0)
    return log.prices.get(track)
