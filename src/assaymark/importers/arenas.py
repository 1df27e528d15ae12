"""Import Alpha Arena (nof1; conversations on several coins) and DeepFund (an SQLite file; one ticker per decision)."""

from __future__ import annotations

import ast
import json
import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

import assaymark.records as records
from assaymark.errors import InputError
from assaymark.importers import read, report
from assaymark.importers.read import Name
from assaymark.rows import unpack
from assaymark.text import count_of

NOF1: Final = records.Provenance(source="Scodive/alpha-arena-prompt", licence="MIT")
"""Default provenance of the conversations; callers may add a commit or name a mirror."""

DEEPFUND: Final = records.Provenance(source="HKUSTDial/DeepFund", licence="MIT")
"""Default provenance of DeepFund's file."""

TRADES: Final = "trades.json"
DATABASE: Final = "deepfund.db"
ROUND: Final = timedelta(minutes=3)
"""Length of a round, one price bar of the prompt: the arena calls each model at a different time."""

_FAILED: Final = "failed_json_response_raw_text"
_INVALID: Final = "invalid-reply"
_SIGNALS: Final[Mapping[str, records.ActionKind]] = {
    "buy_to_enter": "buy", "sell_to_enter": "short", "hold": "hold", "close_position": "close",
}  # fmt: skip
_COINS: Final = {
    "BTC": "Bitcoin", "ETH": "Ethereum", "SOL": "Solana", "BNB": "Binance Coin", "XRP": "Ripple", "DOGE": "Dogecoin",
}  # fmt: skip


class _ArenaModel(BaseModel):
    # extra fields are allowed, and listed in the report
    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False, protected_namespaces=())


Positive = Annotated[float, Field(gt=0)]
Seconds = Annotated[float, Field(gt=1e9, lt=5e9)]


class CoinOrder(_ArenaModel):
    """A model's order for one coin."""

    coin: Name
    signal: Literal["buy_to_enter", "sell_to_enter", "hold", "close_position"]
    quantity: float
    leverage: Annotated[float, Field(ge=0)] | None = None
    stop_loss: float | None = None
    profit_target: float | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    risk_usd: float | None = None
    invalidation_condition: str = ""
    justification: str = ""


class ClosedTrade(_ArenaModel):
    """One position that was opened and closed."""

    id: str
    model_id: Name
    symbol: str
    side: Literal["long", "short"]
    entry_time: Seconds
    exit_time: Seconds
    entry_price: Positive
    entry_sz: Positive
    realized_net_pnl: float

    def outcome(self, record: str) -> records.Outcome:
        """Return the outcome of the position: net profit relative to its cost."""
        value = self.realized_net_pnl / (self.entry_price * self.entry_sz)
        closed = datetime.fromtimestamp(self.exit_time, UTC)
        return records.Outcome(record, f"{self.symbol} until it was closed", value, None, closed, TRADES)


_FLOAT: Final = r"(-?\d{1,15}(?:\.\d{1,25})?(?:e[+-]?\d{1,2})?)"
_UNREADABLE: Final = (
    ValueError, TypeError, KeyError, AttributeError, SyntaxError, OverflowError, RecursionError, MemoryError
)  # fmt: skip
_NOW: Final = re.compile(
    rf"It has been {_FLOAT} minutes since you started trading\. The current time is (\S+ \S+) "
    rf"and you've been invoked {_FLOAT} times"
)
_COIN: Final = re.compile(r"^### ALL (\w+) DATA$", re.M)
_END: Final = re.compile(r"^### ", re.M)
_MIDS: Final = re.compile(
    r"\((\d{1,3}).minute intervals, oldest → latest\):\*\*\s+(?:\w+ mid|Mid) prices: \[([^\]]+)\]"
)
_Lines = tuple[tuple[re.Pattern[str], tuple[tuple[str, str], ...]], ...]
"""Patterns of the fixed lines of a prompt, with field and unit of each number in them."""

_STATE: Final[_Lines] = tuple((re.compile(f"^{pattern}$", re.M), fields) for pattern, fields in (
    (rf"current_price = {_FLOAT}, current_ema20 = {_FLOAT}, current_macd = {_FLOAT}, .*rsi.* = {_FLOAT}",
     (("current_price", "price"), ("ema20", "price"), ("macd", "price"), ("rsi 7 period", "index"))),
    (rf"Open Interest: Latest: {_FLOAT}\s+Average: {_FLOAT}",
     (("open_interest latest", "count"), ("open_interest average", "count"))),
    (rf"Funding Rate: {_FLOAT}", (("funding_rate", "ratio"),)),
    (rf"20.Period EMA: {_FLOAT} vs\. 50.Period EMA: {_FLOAT}",
     (("ema 20 period 4h", "price"), ("ema 50 period 4h", "price"))),
    (rf"3.Period ATR: {_FLOAT} vs\. 14.Period ATR: {_FLOAT}",
     (("atr 3 period 4h", "price"), ("atr 14 period 4h", "price"))),
    (rf"Current Volume: {_FLOAT} vs\. Average Volume: {_FLOAT}",
     (("volume current 4h", "count"), ("volume average 4h", "count"))),
))  # fmt: skip
_ACCOUNT: Final[_Lines] = (
    (re.compile(rf"^Current Total Return \(percent\): {_FLOAT}%$", re.M), (("total_return", "percent"),)),
    (re.compile(rf"^Available Cash: {_FLOAT}$", re.M), (("available_cash", "usd"),)),
    (re.compile(rf"^\*\*Current Account Value:\*\* {_FLOAT}$", re.M), (("account_value", "usd"),)),
    (re.compile(rf"^Sharpe Ratio: {_FLOAT}$", re.M), (("sharpe_ratio", "index"),)),
)
_POSITION: Final = re.compile(r"^\{'symbol'.*\}$", re.M)
_HELD: Final = {
    "entry_price": "price", "liquidation_price": "price", "unrealized_pnl": "usd", "leverage": "multiple",
    "profit_target": "price", "stop_loss": "price", "invalidation_condition": "text", "confidence": "ratio",
    "risk_usd": "usd", "notional_usd": "usd",
}  # fmt: skip


class Conversation(_ArenaModel):
    """One call of one model; times are seconds since 1970. ``cot_trace`` is an object if the arena stored no text."""

    id: str
    model_id: Name
    cycle_id: int
    timestamp: Seconds
    user_prompt: str
    llm_response: dict[str, Any]
    cot_trace: str | dict[str, Any] | None = None
    cot_trace_summary: str | None = None

    @property
    def answered(self) -> datetime:
        """Time of the reply."""
        return datetime.fromtimestamp(self.timestamp, UTC)

    def read(self, place: str, tally: report.Tally) -> tuple[Mapping[str, CoinOrder], datetime] | None:
        """Return the orders and the time of the prompt; None if there are problems, which are noted."""
        before, orders = len(tally.problems), dict[str, CoinOrder]()
        for coin, answer in self.llm_response.items():
            at = f"{place}, llm_response.{coin}"
            if coin == _FAILED or (order := read.try_model(CoinOrder, answer, at, tally)) is None:
                continue
            orders[coin] = order
            if order.coin != coin:
                tally.problem(f"{at}.coin", f"is another coin's order (got {order.coin!r:.40})")
        match, asked = _NOW.search(self.user_prompt), None
        with suppress(ValueError):
            asked = datetime.fromisoformat(match[2]).replace(tzinfo=UTC) if match else None
        if asked is None:
            message = "does not begin with its minutes, its current time and its invocations"
            tally.problem(f"{place}, user_prompt", message)
        elif not timedelta(0) <= self.answered - asked <= timedelta(days=1):
            message = f"is not within a day after the prompt's current time, {asked.isoformat()}"
            tally.problem(f"{place}, timestamp", f"{message} (got {self.answered.isoformat()})")
        if asked is None or len(tally.problems) > before:
            return None
        for part, shape in [("a conversation", self), *(("an order", order) for order in orders.values())]:
            _note_extra(part, shape, self.id, tally)
        return orders, asked

    def context(self, asked: datetime, tally: report.Tally) -> records.Context:
        """Build the context: the prompt verbatim, and its fixed lines as facts."""
        prompt = self.user_prompt
        facts: list[records.Fact] = []
        series: list[records.Series] = []

        def fact(instrument: str, field: str, value: float | str, unit: str, note: str = "") -> None:
            name = f"{instrument.lower() or 'account'}:{field.replace(' ', '_')}"
            facts.append(records.Fact(name, instrument, field, value, unit, asked, asked, "prompt", note))

        coins = list(_COIN.finditer(prompt))
        for match in coins:
            coin = match[1]
            end = _END.search(prompt, match.end())
            part = prompt[match.end() : end.start() if end else len(prompt)]
            for field, unit, number, _ in _stated(part, _STATE, f"{self.id} {coin}", tally):
                fact(coin, field, number, unit)
            if (mids := _MIDS.search(part)) is None:
                tally.missing("interval of the mid prices (kept as text)", f"{self.id} {coin}")
                continue
            try:
                closes, interval = tuple(map(_finite, mids[2].split(","))), 60 * int(mids[1])
                times = tuple(asked - timedelta(seconds=interval * back) for back in reversed(range(len(closes))))
            except _UNREADABLE:
                tally.missing("mid prices (kept as text)", f"{self.id} {coin}")
                continue
            series.append(records.Series(coin, interval, times, closes))
        holdings: dict[str, float] = {}
        for text in _POSITION.findall(prompt):
            try:
                position = ast.literal_eval(text)
                position |= position.pop("exit_plan", {})
                symbol, units = str(position["symbol"]), _finite(position["quantity"])
                values = {field: str(position[field]) if unit == "text" else _finite(position[field])
                          for field, unit in _HELD.items() if field in position}  # fmt: skip
            except _UNREADABLE:
                tally.missing("position in its fixed form (kept as text)", self.id)
                continue
            holdings[symbol] = units
            for field, value in values.items():
                fact(symbol, field, value, _HELD[field])
        account: dict[str, float] = {}
        for field, unit, number, line in _stated(prompt, _ACCOUNT, self.id, tally):
            account[field] = number
            fact("", field.replace("_", " "), number, unit, line.replace("*", ""))
        portfolio = None
        if {"available_cash", "account_value"} <= account.keys():
            portfolio = records.Portfolio(currency="USD", cash=account["available_cash"], nav=account["account_value"],
                                          positions=holdings)  # fmt: skip
        return records.Context(
            completeness="partial", cutoff=asked, cutoff_source="the current time in the prompt, taken as UTC",
            prompt=prompt, facts=tuple(facts), series=tuple(series), portfolio=portfolio,
            missing=("the system prompt",),
            instruments=tuple(
                records.Instrument(id=name, symbol=name, name=_COINS.get(name, ""), asset_class="crypto")
                for name in dict.fromkeys(match[1] for match in coins)
            ),
        )  # fmt: skip

    def decision(
        self, orders: Mapping[str, CoinOrder], asked: datetime, context_id: str, question: tuple[str, int],
        provenance: records.Provenance,
    ) -> records.Decision:  # fmt: skip
        """Build the decision; ``question`` is the round, and the number of the model's earlier calls in it."""
        off = [f"{coin}: {one.invalidation_condition}" for coin, one in orders.items() if one.invalidation_condition]
        trace = self.cot_trace
        if isinstance(trace, dict):
            # a copy of the orders, or the raw text of a reply that was not JSON
            again = None if trace == self.llm_response else json.dumps(trace)
            trace = trace.get(_FAILED) if _FAILED in trace else again
        trace = trace or self.llm_response.get(_FAILED)
        texts = report.rationales_of([
            (self.cot_trace_summary or "", "summary"),
            *((f"{coin}: {order.justification}", "candidate")
              for coin, order in orders.items() if order.justification.strip()),
            ("\n".join(["Invalidation conditions", *off]) if off else "", "risk"),
            (trace if isinstance(trace, str) else "", "stage"),  # the chain of thought
        ])  # fmt: skip
        # an action has no field for the risk in dollars
        risks: list[records.JSON] = [
            {"instrument": x, "risk_usd": order.risk_usd} for x, order in orders.items() if order.risk_usd
        ]
        (cycle, nth), agent = question, report.agent_of(self.model_id, self.model_id)
        return records.Decision(
            record_id=f"{cycle}/{nth}/{agent.id}", episode_id=cycle, step=nth, cluster=f"{asked:%Y-%m-%d}",
            decided_at=self.answered, agent=agent, context_id=context_id, rationales=texts, format="nof1",
            actions=tuple(
                records.Action(coin, _SIGNALS[one.signal], one.quantity, leverage=one.leverage, stop=one.stop_loss,
                               target=one.profit_target, confidence=one.confidence,
                               rationale=one.justification.strip() or None)
                for coin, one in orders.items()
            ),
            provenance=replace(provenance, path=f"{self.id} (cycle {self.cycle_id})"),
            stages={"orders": risks} if risks else {},
            call=records.CallFacts(seconds=(self.answered - asked).total_seconds(), timing_source="derived"),
            flags=(_INVALID,) if _FAILED in self.llm_response else (), missing=report.text_missing(texts),
        )  # fmt: skip


def import_nof1(
    files: Mapping[str, bytes], *, keep_going: bool = False, progress: read.Progress | None = None,
    provenance: records.Provenance = NOF1,
) -> report.Imported:  # fmt: skip
    """Import Alpha Arena's conversations; contexts are ``partial``, and unreadable replies have a flag."""
    tally = report.Tally()
    names = sorted(name for name in files if name.rsplit("/", 1)[-1].startswith("conv"))
    if len(names) != 1:
        message = "missing" if not names else f"given twice ({', '.join(names)}); keep one"
        raise InputError("conversations.json", [f"{message} (got {', '.join(sorted(files)) or 'no file at all'})"])
    calls: list[tuple[Conversation, Mapping[str, CoinOrder], datetime]] = []
    places: dict[object, str] = {}
    total = 0
    for place, talk in _items(Conversation, names[0], files[names[0]], "conversation", tally, progress):
        total += 1
        if talk is not None and (good := talk.read(place, tally)) is not None:
            for key in (talk.id, (talk.model_id, good[1])):
                if (first := places.setdefault(key, place)) != place:
                    tally.problem(f"{place}, id", f"{talk.model_id} is given twice (first at {first})")
                    break
            else:
                calls.append((talk, *good))
    if not total and not tally.problems:
        tally.problem(names[0], "contains no conversation; conversations is an empty list")
    of = read.pick(files, TRADES)
    trades = [] if of is None else [trade for _, trade in _items(ClosedTrade, *of, "trade", tally) if trade is not None]
    tally.refuse("nof1", keep_going)
    calls.sort(key=lambda call: (call[0].model_id, call[2]))
    cycles = read.rounds_of([(talk.model_id, asked) for talk, _, asked in calls], ROUND)
    contexts: dict[str, records.Context] = {}
    decisions: list[records.Decision] = []
    for talk, orders, asked in calls:
        context_id = records.content_id(context := talk.context(asked, tally))
        contexts[context_id] = context
        decisions.append(talk.decision(orders, asked, context_id, cycles[talk.model_id, asked], provenance))
    # outcomes: the account value at the model's next prompt, and closed positions whose opening decision was imported
    outcomes: list[records.Outcome] = []
    opened: dict[tuple[str, str, str], list[tuple[datetime, datetime, str]]] = {}
    for (talk, _, _), current, later in zip(calls, decisions, [*decisions[1:], None], strict=True):
        later = later if later is not None and later.agent.id == talk.model_id else None
        until = talk.answered + ROUND if later is None else later.decided_at
        for action in current.actions:
            if (side := {"buy": "long", "short": "short"}.get(action.kind)) is not None:
                spans = opened.setdefault((talk.model_id, action.instrument, side), [])
                spans.append((talk.answered, until, current.record_id))
        if later is not None:
            now, then = (contexts[decision.context_id] for decision in (current, later))
            if now.portfolio and then.portfolio and now.portfolio.nav > 0:
                value, source = then.portfolio.nav / now.portfolio.nav - 1.0, "account values of the prompts"
                outcomes.append(records.Outcome(current.record_id, report.NEXT, value, None, then.cutoff, source))
    for trade in trades:
        began = datetime.fromtimestamp(trade.entry_time, UTC)
        at = opened.get((trade.model_id, trade.symbol, trade.side), [])[::-1]
        if (record := next((name for start, end, name in at if start <= began < end), None)) is None:
            tally.no_place("trades that no imported decision opened", trade.id)
            continue
        _note_extra("a trade", trade, trade.id, tally)
        outcomes.append(trade.outcome(record))
    questions = "first decisions of a round are one question, second ones another; clusters are days"
    notes = [f"rounds are {ROUND.seconds // 60} minutes by the time in the prompt, UTC: {questions}"]
    if failed := sum(_INVALID in decision.flags for decision in decisions):
        notes.append(f"{count_of(failed, 'replies')} unread by the arena: kept without orders, flagged {_INVALID}")
    return tally.imported("nof1", decisions, contexts, outcomes, total - len(calls), notes, report.NO_NEXT)


def _items(
    kind: type[read.Model], name: str, data: bytes, noun: str, tally: report.Tally,
    progress: read.Progress | None = None,
) -> Iterator[tuple[str, read.Model | None]]:  # fmt: skip
    """Yield place and parsed object for each item of the list in a file; None if invalid, with the problems noted."""
    key = f"{noun}s"
    try:
        tree = read.json_object(unpack(name, data))
    except ValueError as exc:
        raise InputError(name, [str(exc)]) from None
    if not isinstance(entries := tree.pop(key, None), list):
        got = f"got {read.written(entries)}; other keys: {', '.join(tree) or 'none'}"
        raise InputError(name, [f"{key} must be a list ({got})"])
    for other, value in tree.items():
        tally.no_place(f"{name} {other}", value)
    for at, entry in enumerate(entries, start=1):
        place = f"{name} {noun} {at}"
        yield place, read.try_model(kind, entry, place, tally)
        if progress is not None:
            progress(key, at, len(entries))


def _stated(text: str, lines: _Lines, place: str, tally: report.Tally) -> Iterator[tuple[str, str, float, str]]:
    """Yield field, unit, number and line of what the fixed lines of a text state; absent lines are noted."""
    for pattern, fields in lines:
        if (line := pattern.search(text)) is None:
            tally.missing(f"{fields[0][0]} in its fixed line (kept as text)", place)
            continue
        for (field, unit), number in zip(fields, line.groups(), strict=True):
            yield field, unit, float(number), line[0]


def _note_extra(part: str, shape: _ArenaModel, example: str, tally: report.Tally) -> None:
    """Note the fields that are not read."""
    if shape.model_extra:
        tally.no_place(f"{', '.join(sorted(shape.model_extra))} of {part}", example)


def _finite(value: Any) -> float:
    if not math.isfinite(number := float(value)):
        raise ValueError(value)
    return number


_DAY: Final = timedelta(days=1)
_ACTIONS: Final[Mapping[str, records.ActionKind]] = {"Buy": "buy", "Sell": "sell", "Hold": "hold"}


class _TableRow(BaseModel):
    # extra columns are allowed, and listed in the report
    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, protected_namespaces=())


class _ConfigRow(_TableRow):
    id: str
    exp_name: Name
    llm_model: Name


class _PortfolioRow(_TableRow):
    id: str
    config_id: str


class _SignalRow(_TableRow):
    portfolio_id: str
    ticker: str
    analyst: str
    signal: str
    justification: str
    llm_prompt: str


class _DecisionRow(_TableRow):
    id: str
    portfolio_id: str
    updated_at: datetime
    trading_date: datetime
    ticker: Name
    llm_prompt: str
    action: Literal["Buy", "Sell", "Hold"]
    shares: Annotated[int, Field(ge=0, le=10**15)]
    price: Positive
    justification: str

    @field_validator("updated_at", "trading_date")
    @classmethod
    def _is_sane(cls, when: datetime) -> datetime:
        if not 1970 <= when.year <= 2200:
            raise ValueError(f"must be a time from 1970 to 2200 (got {when.isoformat()})")
        return when

    @property
    def written(self) -> datetime:
        """Time at which the row was written; SQLite's clock is UTC without a zone."""
        return self.updated_at if self.updated_at.tzinfo else self.updated_at.replace(tzinfo=UTC)


_STATED: Final[_Lines] = (
    (re.compile(r"^Current Price: (\d+(?:\.\d+)?)$", re.M), (("current_price", "price"),)),
    (re.compile(r"^Holding Shares(?: at current)?: (-?\d+(?:\.\d+)?)$", re.M), (("holding_shares", "count"),)),
    (re.compile(r"^Remaining Shares(?: Allowed For Purchases)?: (-?\d+(?:\.\d+)?)$", re.M),
     (("remaining_shares", "count"),)),
)  # fmt: skip


def import_deepfund(
    files: Mapping[str, bytes], *, keep_going: bool = False, progress: read.Progress | None = None,
    provenance: records.Provenance = DEEPFUND,
) -> report.Imported:  # fmt: skip
    """Import DeepFund's decisions, one per agent, ticker and day (others are replicates), with their prompts."""
    tally, (name, data) = report.Tally(), read.require(files, DATABASE)
    with closing(sqlite3.connect(":memory:")) as base:
        try:
            base.deserialize(data)
            configs = {config.id: config for _, config in _rows_of(base, name, "config", _ConfigRow, tally)}
            runs = {portfolio.id: portfolio for _, portfolio in _rows_of(base, name, "portfolio", _PortfolioRow, tally)}
            signals = [signal for _, signal in _rows_of(base, name, "signal", _SignalRow, tally)]
            decided = _rows_of(base, name, "decision", _DecisionRow, tally)
        except (sqlite3.Error, OverflowError) as exc:
            hint = "copy it again while its program is stopped"
            raise InputError(name, [f"no readable SQLite file ({' '.join(f'{exc!s:.80}'.split())}); {hint}"]) from None
    by_id, contexts = dict[str, records.Decision](), dict[str, records.Context]()
    asked, by_question = Counter[tuple[str, str]](), defaultdict[tuple[str, str], list[_SignalRow]](list)
    for got in signals:
        by_question[got.portfolio_id, got.ticker].append(got)
    for done, (place, one) in enumerate(sorted(decided, key=lambda row: (row[1].written, row[0])), start=1):
        run = runs.get(one.portfolio_id)
        config = None if run is None else configs.get(run.config_id)
        if run is None:
            tally.problem(f"{place}, portfolio_id", f"no such portfolio (got {one.portfolio_id!r:.60})")
        elif config is None:
            tally.problem(f"{place}, portfolio_id", f"its portfolio is of no config (got {run.config_id!r:.60})")
        elif one.id in by_id:
            tally.problem(f"{place}, id", f"occurs twice (got {one.id!r:.60})")
        else:
            advice = by_question[one.portfolio_id, one.ticker]
            # the end of the trading day, or the writing of the row if that came first
            cutoff = min(one.written, read.midnight(one.trading_date.date()) + _DAY)
            facts = tuple(
                records.Fact(f"{one.ticker}:{field}", one.ticker, field, number, unit, cutoff, cutoff, "prompt")
                for field, unit, number, _ in _stated(one.llm_prompt, _STATED, one.id, tally)
            )
            prompts = [f"--- prompt of the {got.analyst} analyst ---\n{got.llm_prompt.strip()}" for got in advice]
            context = records.Context(
                completeness="partial", cutoff=cutoff,
                cutoff_source="the end of trading_date (UTC), or updated_at if that came first",
                prompt="\n\n".join([one.llm_prompt.strip(), *prompts]), facts=facts,
                instruments=(records.Instrument(id=one.ticker, symbol=one.ticker, asset_class="equity"),),
                missing=("system prompts", "what tools returned beyond the prompts"),
            )  # fmt: skip
            agent, model = f"{config.llm_model.rsplit('/', 1)[-1]} ({config.exp_name})", config.llm_model
            question = f"{one.trading_date:%Y-%m-%d}/{one.ticker}"
            asked[agent, question] += 1
            nth = asked[agent, question]
            texts = report.rationales_of([(one.justification, "summary"), *(
                (f"{got.analyst} analyst ({got.signal}): {got.justification}", "stage")
                for got in advice if got.justification.strip()
            )])  # fmt: skip
            contexts[key := records.content_id(context)] = context
            by_id[one.id] = records.Decision(
                record_id=f"{question}/{agent}" if nth == 1 else f"{question}/{agent}/r{nth}",
                episode_id=question, step=0, cluster=report.week_of(one.trading_date), decided_at=one.written,
                agent=report.agent_of(agent, model),
                context_id=key, rationales=texts, format="deepfund", replicate=nth,
                actions=(records.Action(instrument=one.ticker, kind=_ACTIONS[one.action], quantity=float(one.shares),
                                        price=one.price),),
                provenance=replace(provenance, path=f"decision {one.id}"), missing=report.text_missing(texts),
                flags=(report.REPLAYED,) if one.written - cutoff > _DAY else (),
            )  # fmt: skip
        if progress is not None:
            progress("decisions", done, len(decided))
    if not decided and not tally.problems:
        tally.problem(name, "contains no decision: its table decision is empty")
    tally.refuse("deepfund", keep_going)
    answered = {(decision.portfolio_id, decision.ticker) for _, decision in decided}
    for got in signals:
        if (got.portfolio_id, got.ticker) not in answered:
            tally.no_place("signals of runs that decided nothing on their ticker", f"{got.analyst} {got.ticker}")
    for run_id in runs.keys() - {run for run, _ in answered}:
        tally.no_place("portfolios of runs without a decision", run_id)
    bad = len(decided) - len(by_id) + tally.counts.pop("unreadable decision", 0)
    decisions, notes = tuple(by_id.values()), report.replay_notes(by_id.values(), "trading day")
    return tally.imported("deepfund", decisions, contexts, (), bad, notes, "outcome")


def _rows_of(
    base: sqlite3.Connection, file: str, table: str, kind: type[read.Model], tally: report.Tally
) -> list[tuple[str, read.Model]]:
    """Return the rows of a table with their places; invalid rows are noted and left out."""
    columns = [row[1] for row in base.execute(f"pragma table_info({table})")]
    if not columns:
        tally.problem(file, f"has no table {table}")
        return []
    if absent := [name for name in kind.model_fields if name not in columns]:
        tally.problem(f"{file} {table}", f"no column {', '.join(absent)} (got {', '.join(columns)})")
        return []
    rows = []
    for number, *cells in base.execute(f"select rowid, * from {table} order by rowid"):
        place = f"{file} {table} row {number}"
        if (row := read.try_model(kind, dict(zip(columns, cells, strict=True)), place, tally)) is None:
            tally.counts[f"unreadable {table}"] += 1
        else:
            rows.append((place, row))
    if rows and (extra := sorted({*columns} - {*kind.model_fields, "id"})):
        tally.no_place(f"{', '.join(extra)} of {table}", rows[0][0], len(rows))
    return rows
