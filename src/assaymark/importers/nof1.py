"""Alpha Arena (nof1): conversations in which a model decides on several coins at once, to records and outcomes."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from assaymark.errors import InputError
from assaymark.importers.read import NAME, Progress, json_object, pick, rounds_of, shaped
from assaymark.importers.report import NEXT, Imported, Tally, maker_of, text_missing
from assaymark.records import (
    JSON,
    Action,
    ActionKind,
    Agent,
    CallFacts,
    Context,
    Decision,
    Fact,
    Instrument,
    Outcome,
    Portfolio,
    Provenance,
    Rationale,
    Series,
    content_id,
)
from assaymark.rows import unpack

PROVENANCE: Final = Provenance(source="Scodive/alpha-arena-prompt", licence="MIT")
"""Where the conversations come from unless the caller knows more (a commit, another mirror)."""

ROUND: Final = timedelta(minutes=3)
"""One bar of the prices in the prompt: the arena calls each model at times of its own, so no two share a moment."""

TRADES: Final = "trades.json"
_FAILED: Final = "failed_json_response_raw_text"
_INVALID: Final = "invalid-reply"
_SIGNALS: Final[Mapping[str, ActionKind]] = {
    "buy_to_enter": "buy", "sell_to_enter": "short", "hold": "hold", "close_position": "close",
}  # fmt: skip
_COINS: Final = {
    "BTC": "Bitcoin", "ETH": "Ethereum", "SOL": "Solana", "BNB": "Binance Coin", "XRP": "Ripple", "DOGE": "Dogecoin",
}  # fmt: skip


class _Shape(BaseModel):
    # what else an object holds is listed in the report
    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False, protected_namespaces=())


Name = Annotated[str, Field(pattern=NAME)]
Positive = Annotated[float, Field(gt=0)]
Seconds = Annotated[float, Field(gt=1e9, lt=5e9)]


class Order(_Shape):
    """What a model wants done with one coin."""

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


class Conversation(_Shape):
    """One call of one model; times are seconds since 1970. ``cot_trace`` is an object where no text was kept."""

    id: str
    model_id: Name
    cycle_id: int
    timestamp: Seconds
    user_prompt: str
    llm_response: dict[str, Any]
    cot_trace: str | dict[str, Any] | None = None
    cot_trace_summary: str | None = None


class Trade(_Shape):
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


@dataclass(frozen=True, slots=True)
class _Call:
    """A conversation that was found good, with what its prompt says."""

    said: Conversation
    orders: Mapping[str, Order]
    asked: datetime
    answered: datetime
    context: Context


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
_STATE: Final = tuple((re.compile(f"^{pattern}$", re.M), fields) for pattern, fields in (
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
_ACCOUNT: Final = (
    ("total_return", "percent", re.compile(rf"^Current Total Return \(percent\): {_FLOAT}%$", re.M)),
    ("available_cash", "usd", re.compile(rf"^Available Cash: {_FLOAT}$", re.M)),
    ("account_value", "usd", re.compile(rf"^\*\*Current Account Value:\*\* {_FLOAT}$", re.M)),
    ("sharpe_ratio", "index", re.compile(rf"^Sharpe Ratio: {_FLOAT}$", re.M)),
)
_POSITION: Final = re.compile(r"^\{'symbol'.*\}$", re.M)
_HELD: Final = {
    "entry_price": "price", "liquidation_price": "price", "unrealized_pnl": "usd", "leverage": "multiple",
    "profit_target": "price", "stop_loss": "price", "invalidation_condition": "text", "confidence": "ratio",
    "risk_usd": "usd", "notional_usd": "usd",
}  # fmt: skip


def import_nof1(
    files: Mapping[str, bytes], *, keep_going: bool = False, progress: Progress | None = None,
    provenance: Provenance = PROVENANCE,
) -> Imported:  # fmt: skip
    """Alpha Arena's conversations as decisions of several orders, and what the accounts were worth next.

    ``files`` are ``conv*.json`` and, if there is one, ``trades.json``, plain or gzip. The prompt is kept word for word;
    what stands in its fixed lines (state of each coin, account, positions) is facts and the portfolio as well, and its
    mid prices are bars where it says their interval. The system prompt was not kept, so every context is ``partial``.
    Order, leverage, stop, target and confidence are the actions; justification and invalidation conditions are texts
    beside the trace (kind ``stage``) and its summary. A reply that the arena could not read has the flag
    ``invalid-reply``. `InputError`: a file is missing or damaged; or, unless ``keep_going``, all that is wrong in them.
    """
    tally = Tally()
    held = sorted(name for name in files if name.rsplit("/", 1)[-1].startswith("conv"))
    if len(held) != 1:
        what = "missing" if not held else f"given twice ({', '.join(held)}); keep one"
        raise InputError("conversations.json", [f"{what} (got {', '.join(sorted(files)) or 'no file at all'})"])
    name, data = held[0], unpack(held[0], files[held[0]])
    calls: list[_Call] = []
    places: dict[object, str] = {}
    listed = _list_in(name, data, "conversations", tally)
    for at, tree in enumerate(listed, start=1):
        place = f"{name} conversation {at}"
        if (call := _call(place, tree, tally)) is not None:
            for key in (call.said.id, (call.said.model_id, call.asked)):
                if (first := places.setdefault(key, place)) != place:
                    tally.problem(f"{place}, id", f"{call.said.model_id} is given twice (first at {first})")
                    break
            else:
                calls.append(call)
        if progress is not None:
            progress("conversations", at, len(listed))
    if not listed and not tally.problems:
        tally.problem(name, "holds no conversation; conversations is an empty list")
    trades = []
    if (of := pick(files, TRADES)) is not None:
        for at, tree in enumerate(_list_in(*of, "trades", tally), start=1):
            trade = shaped(Trade, tree, f"{of[0]} trade {at}", tally)
            trades += [] if trade is None else [trade]
    tally.refuse("nof1", keep_going)
    calls.sort(key=lambda call: (call.said.model_id, call.asked))
    cycles = rounds_of([(call.said.model_id, call.asked) for call in calls], ROUND)
    decisions = [_decision(call, *cycles[call.said.model_id, call.asked], provenance) for call in calls]
    outcomes = list(_outcomes(calls, decisions, trades, tally))
    tally.unresolved(
        decisions, {outcome.record_id for outcome in outcomes if outcome.horizon == NEXT}, "outcome at a next step"
    )
    rule = f"rounds are {ROUND.seconds // 60} minutes by the time in the prompt, UTC"
    notes = [f"{rule}: first decisions of a round are one question, second ones another; clusters are days"]
    if failed := sum(_INVALID in decision.flags for decision in decisions):
        notes.append(f"{failed} replies that the arena could not read: kept without orders, flagged {_INVALID}")
    contexts = {content_id(call.context): call.context for call in calls}
    return tally.imported("nof1", decisions, contexts, outcomes, len(listed) - len(calls), notes)


def _list_in(name: str, data: bytes, key: str, tally: Tally) -> list[Any]:
    """The list in a file of one object."""
    try:
        tree = json_object(data)
    except ValueError as exc:
        raise InputError(name, [str(exc)]) from None
    if not isinstance(found := tree.pop(key, None), list):
        seen = f"got {type(found).__name__}; keys: {', '.join(tree) or 'none'}"
        raise InputError(name, [f"{key} must be a list ({seen})"])
    for other, value in tree.items():
        tally.no_place(f"{name} {other}", value)
    return found


def _call(place: str, tree: object, tally: Tally) -> _Call | None:
    """One conversation, or None after every problem of it was noted."""
    before = len(tally.problems)
    if (said := shaped(Conversation, tree, place, tally)) is None:
        return None
    orders: dict[str, Order] = {}
    for coin, one in said.llm_response.items():
        where = f"{place}, llm_response.{coin}"
        if coin == _FAILED or (order := shaped(Order, one, where, tally)) is None:
            continue
        orders[coin] = order
        if order.coin != coin:
            tally.problem(f"{where}.coin", f"is another coin's order (got {order.coin!r:.40})")
    found, answered = _NOW.search(said.user_prompt), datetime.fromtimestamp(said.timestamp, UTC)
    asked = None
    with suppress(ValueError):
        asked = datetime.fromisoformat(found[2]).replace(tzinfo=UTC) if found else None
    if asked is None:
        tally.problem(f"{place}, user_prompt", "does not begin with its minutes, its current time and its invocations")
    elif not timedelta(0) <= answered - asked <= timedelta(days=1):
        what = f"is not within a day after the prompt's current time, {asked.isoformat()} (got {answered.isoformat()})"
        tally.problem(f"{place}, timestamp", what)
    if asked is None or len(tally.problems) > before:
        return None
    for part, shape in [("a conversation", said), *(("an order", order) for order in orders.values())]:
        _extra(part, shape, said.id, tally)
    return _Call(said, orders, asked, answered, _context(said, asked, tally))


def _extra(part: str, shape: _Shape, example: str, tally: Tally) -> None:
    """Lists the fields that nothing here reads."""
    if shape.model_extra:
        tally.no_place(f"{', '.join(sorted(shape.model_extra))} of {part}", example)


def _context(said: Conversation, asked: datetime, tally: Tally) -> Context:
    """The prompt, and as facts what stands in its fixed lines."""
    prompt = said.user_prompt
    facts: list[Fact] = []
    series: list[Series] = []

    def fact(instrument: str, field: str, value: float | str, unit: str, written: str = "") -> None:
        name = f"{instrument.lower() or 'account'}:{field.replace(' ', '_')}"
        facts.append(Fact(id=name, instrument=instrument, field=field, value=value, unit=unit, available_at=asked,
                          as_of=asked, source="prompt", note=written))  # fmt: skip

    coins = list(_COIN.finditer(prompt))
    for match in coins:
        coin = match[1]
        end = _END.search(prompt, match.end())
        part = prompt[match.end() : end.start() if end else len(prompt)]
        for pattern, fields in _STATE:
            if (found := pattern.search(part)) is None:
                tally.missing(f"{fields[0][0]} in its fixed line (kept as text)", f"{said.id} {coin}")
                continue
            for (field, unit), value in zip(fields, found.groups(), strict=True):
                fact(coin, field, float(value), unit)
        if (mids := _MIDS.search(part)) is None:
            tally.missing("interval of the mid prices (kept as text)", f"{said.id} {coin}")
            continue
        try:
            closes, interval = tuple(map(_finite, mids[2].split(","))), 60 * int(mids[1])
            times = tuple(asked - timedelta(seconds=interval * back) for back in reversed(range(len(closes))))
        except _UNREADABLE:
            tally.missing("mid prices (kept as text)", f"{said.id} {coin}")
            continue
        series.append(Series(instrument=coin, interval_s=interval, times=times, close=closes))
    held: dict[str, float] = {}
    for text in _POSITION.findall(prompt):
        try:
            one = ast.literal_eval(text)
            one |= one.pop("exit_plan", {})
            symbol, units = str(one["symbol"]), _finite(one["quantity"])
            values = {field: str(one[field]) if unit == "text" else _finite(one[field])
                      for field, unit in _HELD.items() if field in one}  # fmt: skip
        except _UNREADABLE:
            tally.missing("position in its fixed form (kept as text)", said.id)
            continue
        held[symbol] = units
        for field, value in values.items():
            fact(symbol, field, value, _HELD[field])
    account: dict[str, float] = {}
    for field, unit, pattern in _ACCOUNT:
        if (found := pattern.search(prompt)) is None:
            tally.missing(f"{field} in its fixed line (kept as text)", said.id)
        else:
            account[field] = float(found[1])
            fact("", field.replace("_", " "), account[field], unit, found[0].replace("*", ""))
    portfolio = None
    if {"available_cash", "account_value"} <= account.keys():
        portfolio = Portfolio(currency="USD", cash=account["available_cash"], nav=account["account_value"],
                              positions=held)  # fmt: skip
    return Context(
        completeness="partial", cutoff=asked, cutoff_source="the current time in the prompt, taken as UTC",
        prompt=prompt, facts=tuple(facts), series=tuple(series), portfolio=portfolio, missing=("the system prompt",),
        instruments=tuple(
            Instrument(id=name, symbol=name, name=_COINS.get(name, ""), asset_class="crypto")
            for name in dict.fromkeys(match[1] for match in coins)
        ),
    )  # fmt: skip


def _finite(value: Any) -> float:
    made = float(value)
    if not math.isfinite(made):
        raise ValueError(value)
    return made


def _decision(call: _Call, cycle: str, nth: int, provenance: Provenance) -> Decision:
    """The decision with its texts: summary, reasons and conditions of the orders, and what was thought aloud."""
    said, orders, model = call.said, call.orders, call.said.model_id
    texts = [] if not (said.cot_trace_summary or "").strip() else [
        Rationale(text=said.cot_trace_summary or "", kind="summary")]  # fmt: skip
    texts += [Rationale(text=f"{coin}: {one.justification}", kind="candidate")
              for coin, one in orders.items() if one.justification.strip()]  # fmt: skip
    off = [f"{coin}: {one.invalidation_condition}" for coin, one in orders.items() if one.invalidation_condition]
    if off:
        texts.append(Rationale(text="\n".join(["Invalidation conditions", *off]), kind="risk"))
    trace = said.cot_trace
    if isinstance(trace, dict):
        # the orders once more, or the raw text of a reply that was no JSON
        trace = trace.get(_FAILED) if _FAILED in trace else None if trace == said.llm_response else json.dumps(trace)
    trace = trace or said.llm_response.get(_FAILED)
    if isinstance(trace, str) and trace.strip():
        texts.append(Rationale(text=trace, kind="stage"))
    # the risk in dollars is the one number of an order that an action has no field for
    risks: list[JSON] = [{"instrument": coin, "risk_usd": one.risk_usd} for coin, one in orders.items() if one.risk_usd]
    return Decision(
        record_id=f"{cycle}/{nth}/{model}", episode_id=cycle, step=nth, cluster=f"{call.asked:%Y-%m-%d}",
        decided_at=call.answered, agent=Agent(id=model, family=maker_of(model) or model, model=model),
        context_id=content_id(call.context), rationales=tuple(texts), format="nof1",
        actions=tuple(
            Action(instrument=coin, kind=_SIGNALS[one.signal], quantity=one.quantity, leverage=one.leverage,
                   stop=one.stop_loss, target=one.profit_target, confidence=one.confidence,
                   rationale=one.justification.strip() or None)
            for coin, one in orders.items()
        ),
        provenance=replace(provenance, path=f"{said.id} (cycle {said.cycle_id})"),
        stages={"orders": risks} if risks else {},
        call=CallFacts(seconds=(call.answered - call.asked).total_seconds(), timing_source="derived"),
        flags=(_INVALID,) if _FAILED in said.llm_response else (), missing=text_missing(texts),
    )  # fmt: skip


def _outcomes(
    calls: Sequence[_Call], decisions: Sequence[Decision], trades: Sequence[Trade], tally: Tally
) -> Iterator[Outcome]:
    """Each account at the model's next prompt, and each closed position where the decision that opened it is here."""
    opened: dict[tuple[str, str, str], list[tuple[datetime, datetime, str]]] = {}
    later: _Call | None = None
    found: list[Outcome] = []
    for call, made in zip(reversed(calls), reversed(decisions), strict=True):
        if later is not None and later.said.model_id != call.said.model_id:
            later = None
        until = call.answered + ROUND if later is None else later.answered
        for action in made.actions:
            if (side := {"buy": "long", "short": "short"}.get(action.kind)) is not None:
                whose = made.agent.id, action.instrument, side
                opened.setdefault(whose, []).append((call.answered, until, made.record_id))
        if later is not None and (now := call.context.portfolio) and (then := later.context.portfolio) and now.nav > 0:
            found.append(Outcome(record_id=made.record_id, horizon=NEXT, value=then.nav / now.nav - 1.0, benchmark=None,
                                 resolved_at=later.asked, source="account values of the prompts"))  # fmt: skip
        later = call
    yield from reversed(found)
    for trade in trades:
        at = datetime.fromtimestamp(trade.entry_time, UTC)
        spans = opened.get((trade.model_id, trade.symbol, trade.side), [])
        record = next((name for start, end, name in spans if start <= at < end), None)
        if record is None:
            tally.no_place("trades that no imported decision opened", trade.id)
            continue
        _extra("a trade", trade, trade.id, tally)
        yield Outcome(record_id=record, horizon=f"{trade.symbol} until it was closed", benchmark=None, source=TRADES,
                      value=trade.realized_net_pnl / (trade.entry_price * trade.entry_sz),
                      resolved_at=datetime.fromtimestamp(trade.exit_time, UTC))  # fmt: skip
