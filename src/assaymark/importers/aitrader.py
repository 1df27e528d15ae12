"""Import AI-Trader: logs of agents that traded hourly or daily, with price files, as records and audits."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

import assaymark.records as records
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.importers import read, report
from assaymark.portfolio import Account, Bar, Mismatch, Reconciliation, StatedFill, StatedStep, Tolerance, reconcile
from assaymark.portfolio.broker import RELIABILITY, CheckKind

PROVENANCE: Final = records.Provenance(source="HKUDS/AI-Trader", licence="MIT")
"""Default provenance of the logs; callers may add a commit or name a mirror."""

_MOST: Final = 1e15  # no amount, price or position is larger: sums and products of such numbers are still finite
_CASH_KEY: Final = "CASH"
_COLUMNS: Final = ("symbol", "ts", "open", "high", "low", "close", "volume")
_SHOWN: Final = 20  # complete bars of a held or traded symbol in a context
_CHECKS: Final[Mapping[str, CheckKind]] = {
    "fill-quantity": "fill", "fill-price": "fill", "position": "position", "negative-position": "position",
    "cash": "cash",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Track:
    """One market that the agents traded on, with its time zone and capital, which the logs do not state.

    ``opens`` and ``closes`` are the times since midnight at which a daily track opens and its bar is complete; a bar
    of the other tracks is complete ``lag`` after its stamp. ``units`` is half the last printed digit of positions.
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
        """True if a step is a day, False if it is an hour."""
        return self.opens is not None

    def read(self, stamp: str) -> datetime:
        """Parse a stamp of the log or of a price file as local time without a zone."""
        wanted = "2025-10-09" if self.daily else "2025-10-09 10:30:00"
        try:
            moment = datetime.strptime(stamp, "%Y-%m-%d" if self.daily else "%Y-%m-%d %H:%M:%S")
        except ValueError:
            moment = datetime.min
        if not 1970 <= moment.year <= 2200:
            raise ValueError(f"must be a step such as {wanted} (got {stamp[:40]!r})")
        return moment

    def utc(self, local: datetime, *, complete: bool = False) -> datetime:
        """Return the UTC time of a decision at a step, at its bar's open; or, if ``complete``, of its bar's end."""
        after = self.closes if self.closes is not None else self.lag
        local += after if complete else self.opens or timedelta(0)
        try:
            return local.replace(tzinfo=ZoneInfo(self.zone)).astimezone(UTC)
        except ZoneInfoNotFoundError:
            message = f"this machine has no time zone data for {self.zone}; install the package tzdata"
            raise InputError("aitrader", [message]) from None


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
"""The tracks by their names in the logs."""


class TrackPrices:
    """Price bars of one track by local stamp, oldest first; only a bar's open was known at its stamp."""

    def __init__(self, track: Track, name: str, data: bytes, tally: report.Tally) -> None:
        """Parse a price file; invalid rows are noted and left out. The newest bar may have only an open."""
        self.track, before = track, len(tally.problems)
        bars, stamps = dict[datetime, dict[str, Bar]](), dict[str, datetime]()
        self._volumes, self._series = (
            dict[tuple[str, datetime], float](), dict[tuple[datetime, str], records.Series | None](),
        )  # fmt: skip

        def wrong(line: int, message: str, column: str = "") -> None:
            tally.problem(read.place_of(f"{name} line {line}", column), message)

        try:
            for line, row in read.csv_rows(read.text_of(name, data), wrong):
                if tuple(row) != _COLUMNS:
                    tally.problem(name, f"must have the columns {', '.join(_COLUMNS)} (got {', '.join(row)[:120]})")
                    break
                try:
                    step = stamps.get(row["ts"]) or stamps.setdefault(row["ts"], track.read(row["ts"]))
                    cells: dict[str, float | None] = {}
                    for column in _COLUMNS[2:]:
                        text, least = row[column], 0.0 if column == "volume" else math.ulp(0.0)
                        value: float | None = math.nan
                        with suppress(ValueError):
                            value = float(text) if text else None
                        if value is not None and not least <= value <= _MOST:
                            above = "above" if least else "from"
                            raise ValueError(f"{column}: must be a number {above} 0 to {_MOST:.0e} (got {text[:40]!r})")
                        cells[column] = value
                    opened, high, low, close, volume = cells.values()
                    if opened is None:
                        raise ValueError("open: is needed (got nothing)")
                    if high is not None and low is not None and close is not None:
                        slack = 1e-9 * high
                        if not (low - slack <= min(opened, close) and max(opened, close) <= high + slack):
                            prices = f"{opened:g}, {close:g} and {low:g} to {high:g}"
                            raise ValueError(f"open and close must lie from low to high (got {prices})")
                    elif any(price is not None for price in (high, low, close)):
                        raise ValueError("high, low and close: give all three or none")
                except ValueError as exc:
                    wrong(line, str(exc))
                    continue
                symbol = row["symbol"]
                if not symbol:
                    wrong(line, "is empty", "symbol")
                elif symbol in bars.setdefault(step, {}):
                    wrong(line, f"{symbol} has two bars at {row['ts']}", "ts")
                else:
                    bars[step][symbol] = Bar(opened, high, low, close)
                    self._volumes[symbol, step] = volume or 0.0
        except ValueError as exc:
            tally.problem(name, str(exc))
        if not bars and len(tally.problems) == before:
            tally.problem(name, "holds no bar")
        self.steps = sorted(bars)
        self.bars = {step: bars[step] for step in self.steps}
        self.symbols = tuple(sorted({symbol for quotes in bars.values() for symbol in quotes}))
        self._facts = dict[datetime, tuple[records.Fact, ...]]()

    def opens(self, step: datetime) -> dict[str, float]:
        """Return the open of every symbol at a step."""
        return {symbol: bar.open for symbol, bar in self.bars[step].items() if bar.open is not None}

    def facts(self, step: datetime) -> tuple[records.Fact, ...]:
        """Return the prices that agents saw at a step: every symbol's open, and its previous close."""
        if step not in self._facts:
            decided = self.track.utc(step)
            known = [("price", decided, symbol, price) for symbol, price in self.opens(step).items()]
            known += [
                ("previous_close", end, symbol, bar.close) for last, end in self._complete(step, 1).items()
                for symbol, bar in self.bars[last].items() if bar.close is not None
            ]  # fmt: skip
            self._facts[step] = tuple(
                records.Fact(f"{name}:{symbol}", symbol, name, price, "price", at, at, self.track.prices)
                for name, at, symbol, price in known
            )
        return self._facts[step]

    def series(self, step: datetime, symbols: Iterable[str]) -> tuple[records.Series, ...]:
        """Return the last complete bars before a step, for each of the symbols that has any."""
        wanted = sorted(set(symbols))
        new = [symbol for symbol in wanted if (step, symbol) not in self._series]
        ends = self._complete(step, _SHOWN) if new else {}
        for symbol in new:
            bars = {moment: bar for moment in ends if (bar := self.bars[moment].get(symbol)) is not None}
            whole = {one: bar for one, bar in bars.items() if bar.close is not None}  # then it has all four prices
            self._series[step, symbol] = None if not whole else records.Series(
                instrument=symbol, interval_s=86_400 if self.track.daily else 3_600,
                times=tuple(ends[moment] for moment in whole),
                volume=tuple(self._volumes[symbol, moment] for moment in whole),
                **{name: tuple(getattr(bar, name) for bar in whole.values())
                   for name in ("open", "high", "low", "close")},
            )  # fmt: skip
        return tuple(series for symbol in wanted if (series := self._series[step, symbol]) is not None)

    def benchmark(self, start: datetime, end: datetime) -> float | None:
        """Return the mean open-to-open return of the symbols that have both opens: the equal-weight benchmark."""
        opens, other = self.opens(start), self.opens(end)
        both = [other[symbol] / price - 1.0 for symbol, price in opens.items() if symbol in other]
        return math.fsum(both) / len(both) if both else None

    def _complete(self, step: datetime, most: int) -> dict[datetime, datetime]:
        """Return those of the last ``most`` steps before ``step`` whose bars were complete then, with their ends."""
        at, decided = bisect_left(self.steps, step), self.track.utc(step)
        ends = {moment: self.track.utc(moment, complete=True) for moment in self.steps[max(at - most, 0) : at]}
        return {moment: end for moment, end in ends.items() if end <= decided}


_CODE: Final = r"(?P<code>\d{6}\.S[HZ])"
_NAME: Final = r"(?P<name>[\u4e00-\u9fff]{2,6})"
_PATTERNS: Final = (
    re.compile(rf"(?<![\u4e00-\u9fff]){_NAME}\*{{0,2}}\s?[(（]{_CODE}[)）]"),
    re.compile(rf"{_CODE}\s?[(（]{_NAME}[)）]"),
)  # fmt: skip
_FINISH: Final = re.compile(r"</?FINISH_SIGNAL>")
_THINK: Final = re.compile(r"<think>(.*?)</think>", re.S)
_TOOL_OUTPUT: Final = "Tool results:"


def company_names(texts: Iterable[str | None]) -> Mapping[str, str]:
    """Return the company name of each code, which price files lack: the name most often next to it in brackets."""
    counts: dict[str, Counter[str]] = {}
    for text in texts:
        for pattern in _PATTERNS:
            for match in pattern.finditer(text or ""):
                counts.setdefault(match["code"], Counter())[match["name"]] += 1
    # at least three times, and more often than all other names together; a name of two codes is dropped
    best = {code: names.most_common(1)[0] for code, names in counts.items()}
    names = {code: name for code, (name, n) in best.items() if n >= 3 and 2 * n > counts[code].total()}
    shared = {name for name, n in Counter(names.values()).items() if n > 1}
    return {code: name for code, name in sorted(names.items()) if name not in shared}


def step_texts(text: str | None) -> tuple[tuple[records.Rationale, ...], tuple[str, ...]]:
    """Return the rationales of a step, and its flags: ``think-block``, ``tool-output``, ``no-finish-signal``."""
    written = text or ""
    # reasoning in <think> blocks is a separate rationale: only one of the models logged it
    thoughts = [thought.strip() for thought in _THINK.findall(written)]
    answer = _FINISH.sub("", _THINK.sub("", written)).strip()
    texts: list[tuple[str, records.RationaleKind]] = [(thought, "stage") for thought in thoughts]
    tool = answer.startswith(_TOOL_OUTPUT)  # repeats what a tool returned: not written by the agent
    if answer != _TOOL_OUTPUT:
        texts.append((answer, "arena" if tool else "summary"))
    marks = {"think-block": thoughts, "tool-output": tool, "no-finish-signal": not _FINISH.search(written)}
    return report.rationales_of(texts), tuple(flag for flag, marked in marks.items() if marked)


class _LoggedAction(read.StrictModel):
    action: Literal["buy", "buy_crypto", "sell", "sell_crypto", "no_trade"]
    symbol: str
    amount: Annotated[float, Field(ge=0, le=_MOST)]
    price: Annotated[float, Field(gt=0, le=_MOST)] | None = None


class LogLine(read.StrictModel):
    """One step of one agent. ``rationale`` is its last message, ``timestamps`` are those of messages, without zone."""

    track: str
    model: read.Name
    step: str
    rationale: str | None
    n_messages: Annotated[int, Field(ge=0)]
    timestamps: list[str]
    actions: list[_LoggedAction]
    positions_after: dict[str, Annotated[float, Field(ge=-_MOST, le=_MOST)]] | None


_KINDS: Final[Mapping[str, records.ActionKind]] = {
    "buy": "buy", "buy_crypto": "buy", "sell": "sell", "sell_crypto": "sell", "no_trade": "no_trade",
}  # fmt: skip


class LogStep:
    """A parsed line with its track and local stamp: agent, decision id, actions, fills, and the portfolio after it."""

    def __init__(self, line: LogLine, track: Track, at: datetime) -> None:
        self.line, self.track, self.at, self.day = line, track, at, at.strftime("%Y-%m-%d")
        self.agent = line.model.removesuffix(track.suffix)  # some logs add the name of the track
        self.record_id = f"{track.name}/{self.day if track.daily else at.strftime('%Y-%m-%dT%H:%M')}/{self.agent}"
        self.actions = tuple(
            records.Action(one.symbol, kind, price=one.price, quantity=None if kind == "no_trade" else one.amount)
            for one in line.actions
            for kind in [_KINDS[one.action]]
        )  # fmt: skip
        # the venue logs an action once it is done
        self.fills = tuple(
            StatedFill(action.instrument, action.quantity if action.kind == "buy" else -action.quantity, action.price)
            for action in self.actions
            if action.quantity
        )
        self.book: Account | None = None
        if (after := line.positions_after) is not None and _CASH_KEY in after:
            positions = {name: units for name, units in after.items() if units and name != _CASH_KEY}
            self.book = Account(after[_CASH_KEY], positions)

    def problems(self, prices: TrackPrices) -> Iterator[tuple[str, str]]:
        """Yield the problems of a well-formed line as (field, message)."""
        line, file = self.line, self.track.prices
        if self.at not in prices.bars:
            yield "step", f"has no bar in {file} (got {line.step!r})"
        for number, action in enumerate(line.actions):
            if action.action != "no_trade" and action.symbol not in prices.symbols:
                yield f"actions.{number}.symbol", f"has no bars in {file} (got {action.symbol!r:.60})"
        after = {} if line.positions_after is None else line.positions_after
        if line.positions_after is not None and _CASH_KEY not in after:
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
            yield "timestamps", "have a zone, which this log's times never had; please report the change in an issue"
        elif times != sorted(times):
            yield "timestamps", "go backwards"

    def decision(
        self, number: int, context_id: str, mismatches: Sequence[Mismatch], provenance: records.Provenance
    ) -> records.Decision:
        """Build the decision of a step; ``mismatches`` are those of its portfolio."""
        rationales, marks = step_texts(self.line.rationale)
        flags = [*marks, *dict.fromkeys(f"{_CHECKS[mismatch.kind]}-mismatch" for mismatch in mismatches)]
        decided, call = self.track.utc(self.at), records.CallFacts()
        written = [datetime.fromisoformat(timestamp) for timestamp in self.line.timestamps]
        # the zone of the timestamps is unknown: no zone can explain more than a day
        if written and written[0].replace(tzinfo=UTC) - decided > timedelta(days=1):
            flags.append(report.REPLAYED)
        if written and written[0] != written[-1]:  # every call and tool of the step lies between them
            call = records.CallFacts(seconds=(written[-1] - written[0]).total_seconds(), timing_source="derived")
        # the relation of a mismatch to the step's bar is later information, so only the audit has it
        stages: dict[str, records.JSON] = {
            "reconciliation": [
                f"{f'{one.kind} {one.symbol}'.strip()}: stated {one.stated:.10g}, recomputed {one.recomputed:.10g}"
                for one in mismatches
            ]
        }
        missing = list(report.text_missing(rationales))
        if self.book is None:
            missing.append("positions after")
        else:
            stages |= {"holdings": dict(self.book.positions), "cash_after": self.book.cash}
        return records.Decision(
            self.record_id, self.track.name, number, report.week_of(self.at), decided,
            report.agent_of(self.agent, self.agent), context_id, self.actions, rationales, format=self.track.name,
            provenance=provenance, stages=stages, call=call, flags=tuple(flags), missing=tuple(missing),
        )  # fmt: skip


class TraderLog:
    """The valid steps of the files in order, and prices by the log's track name; problems are noted in the tally."""

    def __init__(self, files: Mapping[str, bytes], tally: report.Tally, progress: read.Progress | None = None) -> None:
        self.prices: dict[str, TrackPrices] = {}
        self.steps: list[LogStep] = []
        name, data = read.require(files, "decisions.jsonl")
        without: dict[str, list[int]] = {}  # by track: steps without prices, and 1 if it has a price file
        places: dict[str, str] = {}
        lines = 0
        for place, text, tree in read.json_objects("steps", name, data, tally, progress):
            lines += 1
            line = None if tree is None else read.try_model(LogLine, text, place, tally)
            if line is None:
                continue
            track = TRACKS.get(line.track)
            if track is None:
                tally.problem(f"{place}, track", f"must be one of {', '.join(TRACKS)} (got {line.track[:60]!r})")
                continue
            if line.track not in self.prices and line.track not in without:
                without[line.track] = [0, 1]
                try:
                    if (picked := read.pick(files, track.prices)) is None:
                        without[line.track][1] = 0
                    else:
                        self.prices[line.track] = TrackPrices(track, *picked, tally)
                except InputError as exc:
                    tally.problems += [Problem(read.place_of(exc.source, p.where), p.what) for p in exc.problems]
            if line.track not in self.prices or not self.prices[line.track].steps:
                without[line.track][0] += 1
                continue
            try:
                step = LogStep(line, track, track.read(line.step))
            except ValueError as exc:
                tally.problem(f"{place}, step", str(exc))
                continue
            wrong = list(step.problems(self.prices[line.track]))
            if step.record_id in places:
                first = places[step.record_id]
                wrong.append(("step", f"{line.model} has two lines at {line.step} (first at {first})"))
            for column, message in wrong:
                tally.problem(f"{place}, {column}", message)
            if not wrong:
                places[step.record_id] = place
                self.steps.append(step)
        for present, name_of in sorted((there, name) for name, (n, there) in without.items() if n):
            n, file = without[name_of][0], TRACKS[name_of].prices
            lost = f"missing, and needed for {n} steps of {name_of}; give it as {file} or {file}.gz"
            tally.problem(file, f"{n} steps of {name_of} without prices: their file is broken" if present else lost)
        if not lines:
            tally.problem(name, "contains no step: every line is empty")
        self.bad = lines - len(self.steps)

    def runs(self) -> dict[tuple[str, str], list[LogStep]]:
        """Return each agent's steps by track and agent, oldest first."""
        steps = sorted(self.steps, key=lambda step: (step.line.track, step.agent, step.at))
        return records.grouped(steps, lambda step: (step.line.track, step.agent))


@dataclass(frozen=True, slots=True)
class Audit:
    """Audit of one agent's portfolio on one track against its actions and the prices; ``records`` are decision ids."""

    track: str
    agent: str
    capital: float
    records: tuple[str, ...]
    reconciliation: Reconciliation

    @property
    def last_nav(self) -> float | None:
        """The last known NAV."""
        return next((nav for nav in reversed(self.reconciliation.navs) if nav is not None), None)


def audit_aitrader(files: Mapping[str, bytes]) -> tuple[Audit, ...]:
    """Audit the portfolios in AI-Trader logs (files as for `import_aitrader`), with every mismatch."""
    tally = report.Tally()
    log = TraderLog(files, tally)
    tally.refuse("aitrader")
    return tuple(_audit_run(steps, log.prices[track]) for (track, _), steps in log.runs().items())


def _audit_run(steps: Sequence[LogStep], prices: TrackPrices) -> Audit:
    """Audit one agent's steps on one track, oldest first."""
    track = steps[0].track
    stated = [StatedStep(step.record_id, step.fills, step.book, prices.bars[step.at]) for step in steps]
    # cash is printed to the cent in one track and more finely in the others
    result = reconcile(Account(track.capital), stated, tolerance=Tolerance(0.01, track.units))
    return Audit(track.name, steps[0].agent, track.capital, tuple(step.record_id for step in steps), result)


def import_aitrader(
    files: Mapping[str, bytes], *, keep_going: bool = False, progress: read.Progress | None = None,
    provenance: records.Provenance = PROVENANCE,
) -> report.Imported:  # fmt: skip
    """Import AI-Trader's steps as decisions, with the prices known at each step, and outcomes from the portfolios.

    ``files`` are ``decisions.jsonl`` and the price file of every track in it, plain or gzip. The log lacks the prompt
    and tool outputs, so every context is ``partial``; of a step's own bar it has only the open.
    """
    tally = report.Tally()
    log = TraderLog(files, tally, progress)
    tally.refuse("aitrader", keep_going)
    contexts: dict[str, records.Context] = {}
    encoded: dict[int, tuple[object, str]] = {}
    decisions: list[records.Decision] = []
    outcomes: list[records.Outcome] = []
    audits: list[Audit] = []
    stamps: dict[str, set[datetime]] = {}
    for step in log.steps:
        stamps.setdefault(step.line.track, set()).add(step.at)
    # agents at one step of a track answered the same question: its steps are numbered from 1
    numbers = {(track, at): n for track, times in stamps.items() for n, at in enumerate(sorted(times), start=1)}
    names = company_names(step.line.rationale for step in log.steps)
    for (track, _), steps in log.runs().items():
        prices = log.prices[track]
        instruments = tuple(
            records.Instrument(symbol, symbol, names.get(symbol, ""), prices.track.asset_class)
            for symbol in prices.symbols
        )
        audit = _audit_run(steps, prices)
        audits.append(audit)
        before = Account(steps[0].track.capital)
        for step in steps:
            owned, opens = before.positions, prices.opens(step.at)
            worth_now = before.cash + sum(units * opens[symbol] for symbol, units in owned.items() if symbol in opens)
            shown = [*owned, *(action.instrument for action in step.actions if action.instrument)]
            unpriced = (f"the price of {symbol}" for symbol in sorted(set(owned) - set(opens)))
            context = records.Context(
                completeness="partial", cutoff=step.track.utc(step.at), prompt="",
                cutoff_source=f"the step's stamp, taken as {step.track.zone} time", facts=prices.facts(step.at),
                instruments=instruments, series=prices.series(step.at, shown),
                portfolio=records.Portfolio(step.track.currency, before.cash, nav=worth_now, positions=owned),
                missing=("the prompt", "what tools returned", *unpriced),
            )  # fmt: skip
            name = report.context_id(context, encoded, tally.texts)
            contexts[name] = context
            source = replace(provenance, path=f"{step.line.track}/{step.line.model}")
            mismatches = [mismatch for mismatch in audit.reconciliation.mismatches if mismatch.step == step.record_id]
            decisions.append(step.decision(numbers[track, step.at], name, mismatches, source))
            before = step.book or before
        # the return of each stated portfolio until the agent's next step, and of the whole log
        worth: list[tuple[LogStep, LogStep, LogStep, str, float]] = []
        for step, later in pairwise(steps):
            pair = [prices.opens(at) for at in (step.at, later.at)]
            if (held := step.book) is not None and all(set(held.positions) <= set(row) for row in pair):
                now, then = (held.cash + sum(n * row[symbol] for symbol, n in held.positions.items()) for row in pair)
                worth += [(step, step, later, report.NEXT, then / now - 1.0)] if now > 0 else []
        if audit.last_nav is not None and audit.reconciliation.navs[-1] is not None:
            worth.append((steps[-1], steps[0], steps[-1], report.WHOLE, audit.last_nav / audit.capital - 1.0))
        outcomes += [
            records.Outcome(step.record_id, horizon, value, prices.benchmark(start.at, end.at), step.track.utc(end.at),
                           f"recomputed from positions and the opens of {step.track.prices}")
            for step, start, end, horizon, value in worth
        ]  # fmt: skip
    kinds = Counter(mismatch.kind for audit in audits for mismatch in audit.reconciliation.mismatches)
    tally.counts.update({f"mismatches of kind {kind}": n for kind, n in sorted(kinds.items())})
    notes = ["high, low and close of a step's own bar are left out of its context: they came after the decision"]
    notes += report.replay_notes(decisions, "step")
    for audit in audits:
        checked = audit.reconciliation
        last = "not known" if audit.last_nav is None else f"{audit.last_nav:,.2f}"
        sound = f"data reliability {checked.data_reliability:.1f}" if checked.n else "nothing to check"
        parts = ", ".join(f"{kind} {checked.passed[kind]} of {checked.checks[kind]}" for kind in RELIABILITY)
        steps_made = f"in {len(audit.records)} steps"
        notes.append(f"{audit.track} {audit.agent}: NAV {audit.capital:,.2f} to {last} {steps_made}, {sound} ({parts})")
    return tally.imported("aitrader", decisions, contexts, outcomes, log.bad, notes, report.NO_NEXT)


def season_aitrader(files: Mapping[str, bytes], track: str) -> report.RecordedTrack:
    """Return one track (``us``, ...) day by day as stated in its log, with equal-weight and cash baselines.

    An agent's portfolio of a day is the one stated after its last step of that day; all portfolios of a day are valued
    at the opens of the track's last step of that day. Lines that an import refuses are skipped.
    """
    log = TraderLog(files, report.Tally())
    steps = [step for step in log.steps if step.track.name == track]
    if not steps:
        raise UnknownNameError("track", track, tuple(sorted({step.track.name for step in log.steps})))
    prices, capital = log.prices[steps[0].line.track], steps[0].track.capital
    # the last step of each day, of any agent
    closing = {step.day: step.at for step in sorted(steps, key=lambda step: step.at)}

    def valued(name: str, day: str, account: Account, state: str = "ok") -> Iterator[report.RecordedBook]:
        """Yield a portfolio valued at the day's opens, or at last known opens; nothing if a symbol never had one."""
        quotes: dict[str, float] = {}
        for symbol in sorted(account.positions):
            for moment in reversed(prices.steps[: bisect_right(prices.steps, closing[day])]):
                if (bar := prices.bars[moment].get(symbol)) is not None and bar.open is not None:
                    quotes[symbol] = bar.open
                    break
        if len(quotes) == len(account.positions):
            stale = tuple(symbol for symbol in quotes if symbol not in prices.opens(closing[day]))
            positions = {symbol: account.positions[symbol] for symbol in quotes}
            yield day, name, state, account.cash, account.nav(quotes), 0.0, positions, stale

    opens = prices.opens(min(step.at for step in steps))
    equal = Account(0.0, {symbol: capital / len(opens) / price for symbol, price in opens.items()})
    lines = ((report.EQUAL_WEIGHT, equal), (report.CASH, Account(capital)))
    record = report.RecordedTrack(capital, steps[0].track.currency, prices.symbols, {x.record_id: x.day for x in steps})
    record.baselines += [entry for day in closing for name, account in lines for entry in valued(name, day, account)]
    for run in (steps for steps in log.runs().values() if steps[0].track.name == track):
        agent, account = run[0].agent, Account(capital)
        record.fills += [
            (step.day, agent, step.record_id, number, fill.symbol, fill.quantity,
             prices.opens(step.at).get(fill.symbol) if fill.price is None else fill.price, 0.0)
            for step in run for number, fill in enumerate(step.fills, start=1)
        ]  # fmt: skip
        by_day = {day: list(of) for day, of in groupby(run, key=lambda step: step.day)}
        for day in (day for day in closing if day >= run[0].day):
            for step in by_day.get(day, ()):
                account = step.book or account
            stated = day not in by_day or by_day[day][-1].book is not None
            record.books += valued(agent, day, account, "ok" if stated else "not stated")
        checked = _audit_run(run, prices).reconciliation
        for kind in RELIABILITY:
            details = tuple(
                f"{mismatch.step}\t{str(mismatch).removeprefix(f'{mismatch.step}: ')}"
                for mismatch in checked.mismatches
                if _CHECKS[mismatch.kind] == kind
            )
            if checked.checks[kind]:
                record.checks.append((agent, kind, checked.checks[kind], checked.passed[kind], details))
    return record
