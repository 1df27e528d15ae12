"""Prompts and replies of the benchmark's stages: parsing of replies, and calls to models and to external agents."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np

from assaymark.benchmark.market import MarketState
from assaymark.benchmark.plan import PROFILE_WORDS, Profile
from assaymark.benchmark.scores import SIGNALS, Convention, Position, Signal, Stage, StageState
from assaymark.engine.calls import CallSpec, Message, Reply, Text
from assaymark.engine.providers.http_agent import FORMAT, AgentRequest, QuestionContext, is_outside
from assaymark.market import Listing
from assaymark.portfolio.optimisers import Floats
from assaymark.prompting import PromptTemplate, Rejected, brief, fence, object_schema, prompt_template, row, strict_json
from assaymark.protocol import AgentSpec
from assaymark.records import JSON, Constraint, Context, Fact, Portfolio, Series, canonical_json

MOST_CHARACTERS: Final = 200_000
"""Maximum length of a reply that is parsed, in characters."""

TICKER: Final = "ticker"
"""The key of the ticker in a row of JSON."""

FORMS: Final[Mapping[Stage, tuple[str, str]]] = {
    "S1": ("views", "view"),
    "S2": ("signals", "signal"),
    "S3": ("weights", "weight"),
}
"""By stage: the key of the rows in its JSON, and the key of the value in a row."""

# Every repetition below is bounded or cannot overlap its neighbour, so that a hostile reply cannot cause slow matching.
_FENCED = re.compile(r"```[a-zA-Z]*[^\S\n]*\n(.*?)```", re.DOTALL)
_ROW = re.compile(r"\{[^{}]*\}")
_TRAILING = re.compile(r",(?=\s{0,40}[}\]])")
_DECORATION = " \t>|*#+•-\"'`$[(_"
_NUMBERED = re.compile(r"\d{1,3}[.)]\s")
_CLOSE = r"[\"'`*\])_]{0,6}\s{0,40}(?:[:=|\t,;]|->|=>|→)\s{0,40}[\"'`*]{0,6}"
_STRANGER = re.compile(r"([A-Z^][A-Z0-9.^=-]{0,14})" + _CLOSE + r"(?:[+\-−]?[.\d]|(?i:buy|hold|sell)\b)")
# Words in capitals that models write before a number and that are not assets.
_NOT_TICKERS = frozenset({"TOTAL", "SUM", "DATE", "NAV", "NOTE"})
_NOT_VALUES = frozenset({"rationale", "reasoning", "reasons", "regime", "notes", "date"})


FoundValues = tuple[dict[str, list[JSON]], dict[str, JSON], str]
"""Values found in a reply: by ticker, those of unknown tickers, and the reason why its JSON could not be parsed."""


def json_in(candidates: Iterable[str], reasons: list[str] | None = None) -> Iterator[JSON]:
    """Yield the candidates that are JSON, but for trailing commas; the errors of others are added to ``reasons``."""
    for candidate in candidates:
        try:
            yield strict_json(candidate)
        except Rejected as exc:
            try:
                yield strict_json(_TRAILING.sub("", candidate))
            except Rejected:
                if reasons is not None:
                    reasons.append(str(exc))


def find_values(
    text: str, tickers: tuple[str, ...], key: str, column: str, cut: bool = False, *, salvage: bool = False
) -> FoundValues:
    """Find every value for a ticker in a reply: in its JSON, else in complete rows of JSON, else line by line."""
    names, pattern, comma = _patterns(tickers)
    values, unknown, reasons = dict[str, list[JSON]](), dict[str, JSON](), list[str]()

    def add(ticker: str, value: JSON) -> None:  # under the ticker's form in the prompt
        if (name := names.get(ticker.strip().upper())) is None:
            unknown[ticker] = value
        else:
            values.setdefault(name, []).append(value)

    def add_rows(rows: Iterable[JSON]) -> None:  # such as ``{"ticker": ..., "view": ...}``; others are skipped
        for item in rows:
            if isinstance(item, dict) and isinstance(item.get(TICKER), str) and column in item:
                add(item[TICKER], item[column])

    text = text.rpartition("</think>")[2]  # without visible reasoning
    for raw in json_in(objects_in(text, key), reasons):
        rows = raw[key] if isinstance(raw, dict) and key in raw else raw
        if isinstance(rows, dict) and any(name.strip().upper() in names for name in rows):
            for name, value in rows.items():
                if name.lower() not in _NOT_VALUES:
                    add(name, value)
            return values, unknown, ""
        if isinstance(rows, list):
            add_rows(rows)
            if values or unknown:
                return values, unknown, ""
    if salvage:
        add_rows(json_in((match.group() for match in _ROW.finditer(text)), reasons=None))
    if not values and not unknown:
        if cut:
            text = text[: text.rfind("\n") + 1]
        for line in comma.sub("\n", text).splitlines():
            bare = line.lstrip(_DECORATION)  # without bullets, numbering, table borders and emphasis
            if numbered := _NUMBERED.match(bare):
                bare = bare[numbered.end() :].lstrip(_DECORATION)
            if match := pattern.match(bare):
                add(match.group(1), match.group(2).strip())
            elif (stranger := _STRANGER.match(bare)) and stranger.group(1) not in _NOT_TICKERS:
                unknown[stranger.group(1)] = bare[stranger.end(1) :]
    return values, unknown, reasons[-1] if reasons else ""


def objects_in(text: str, key: str) -> Iterator[str]:
    """Yield the parts of a reply that may be its JSON, most likely first; the last of several is the final answer."""
    if "{" not in text:
        return
    stripped = text.strip()
    if stripped.startswith("{"):
        yield stripped
    yield from reversed(_FENCED.findall(text))
    last = stripped.rfind("}")
    for first in (stripped.find("{"), stripped.rfind("{", 0, max(stripped.rfind(f'"{key}"'), 0))):
        if 0 <= first < last:
            yield stripped[first : last + 1]


@lru_cache(maxsize=16)
def _patterns(tickers: tuple[str, ...]) -> tuple[Mapping[str, str], re.Pattern[str], re.Pattern[str]]:
    """Return tickers by upper case and patterns of a line and of the comma before one: ``A: 1, B: 0`` is two lines."""
    # Longest first, so that no ticker matches the beginning of a longer one.
    names = "|".join(re.escape(ticker) for ticker in sorted(tickers, key=lambda ticker: (-len(ticker), ticker)))
    line = re.compile(f"({names}){_CLOSE}(.+)$", re.IGNORECASE)
    comma = re.compile(rf"[,;]\s{{1,4}}(?=[\"'`*]{{0,3}}(?:{names}){_CLOSE})", re.IGNORECASE)
    return {ticker.upper(): ticker for ticker in tickers}, line, comma


def name_list(tickers: list[str]) -> str:
    """Format the first tickers for a message, with the number of the others."""
    few = (one if one.isascii() and one.isprintable() and len(one) < 20 else brief(one) for one in tickers[:3])
    return ", ".join(few) + (f" and {len(tickers) - 3} more" if len(tickers) > 3 else "")


def reply_text(stage: Stage, values: Mapping[str, float | str], *, rationale: str = "") -> str:
    """Return a reply in the requested JSON form."""
    key, column = FORMS[stage]
    rows: list[JSON] = [{TICKER: name, column: value} for name, value in values.items()]
    return json.dumps({key: rows, "rationale": rationale})


ROUNDING: Final = 0.02
"""Tolerance of the sum of weights for rounding: eighty weights with two decimals can deviate from 1 by as much."""

MOST_OFF: Final = 0.5
"""Weights whose sum deviates from 1 by more than this are invalid; others are scaled to 1."""

_NOT_ASKED = "not asked about, left out: "
_KEPT = 32  # cached replies: the same one is parsed for every profile and both conventions
_TINY = 1e-9
_LARGEST = 1e6
_REFUSAL = re.compile(
    r"^\W*(?:i[’']?m sorry|i am sorry|sorry|i can[’']?t|i cannot|i can not|as an ai|i won[’']?t"
    r"|i(?:[’']?m| am) (?:not able|unable)|i (?:must|have to) (?:decline|refuse))\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"([+\-−–]?(?:\d{1,15}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?)\s*(%?)[\"'`*]*(.*)", re.DOTALL
)
_WORD = re.compile(r"(buy|hold|sell)[\"'`*]*(.*)", re.IGNORECASE | re.DOTALL)
# Allowed after a value: nothing, the end of a cell, or a remark. "0.3 to 0.5" and "buy or hold" have two values.
_REMARK = re.compile(r"\s*(?:$|[|;(\[#]|[,.]\s*$|[}\]]|//|[-–—]\s+[A-Za-z])", re.DOTALL)
_TO_MINUS = str.maketrans("−–", "--")


class _Unreadable(ValueError):
    """An unusable value; the message becomes part of the reason."""


def parse_views(reply: Reply, tickers: tuple[str, ...]) -> tuple[Floats, StageState]:
    """Parse an S1 reply: views in [-1, 1], 0 for assets without a usable value."""
    read, state = _parse(reply, tickers, "S1", "0")
    return np.array([read.get(ticker, 0.0) for ticker in tickers], dtype=float), state


def parse_signals(reply: Reply, tickers: tuple[str, ...]) -> tuple[tuple[Signal, ...] | None, StageState]:
    """Parse an S2 reply: a signal for each asset, hold without a usable one; None if there is none at all."""
    read, state = _parse(reply, tickers, "S2", "hold")
    return tuple(read.get(ticker, "hold") for ticker in tickers) if read else None, state


@lru_cache(maxsize=_KEPT)
def parse_weights(reply: Reply, tickers: tuple[str, ...]) -> tuple[Floats | None, StageState]:
    """Parse an S3 reply: weights of at least 0 that sum to 1, or None, which keeps the portfolio."""
    found = _found(reply, tickers, "S3")
    if isinstance(found, StageState):
        return None, found
    values, unknown, _ = found
    signed: dict[str, tuple[float, bool]] = {}
    for ticker, raw in values.items():
        try:
            signed[ticker] = _single_value(raw, "S3")
        except _Unreadable as exc:
            return None, StageState("invalid", f"the weight of {ticker} is not usable: {exc}")
    shares = {ticker: number / 100 if percent else number for ticker, (number, percent) in signed.items()}
    wrong = [f"a weight below 0: {name} ({weight:g})" for name, weight in shares.items() if weight < -_TINY]
    total, reasons = math.fsum(shares.values()), [_NOT_ASKED + name_list(sorted(unknown))] * bool(unknown)
    if abs(total - 100) <= 100 * ROUNDING and not any(percent for _, percent in signed.values()):
        shares, total = {ticker: weight / 100 for ticker, weight in shares.items()}, total / 100
    wrong += [f"a weight above 1: {name} ({weight:g})" for name, weight in shares.items() if weight > 1 + _TINY]
    if not abs(total - 1) <= MOST_OFF:
        wrong.append(f"weights must sum to 1 (got {total:.4g})")
    if wrong:
        return None, StageState("invalid", wrong[0])
    if abs(total - 1) > ROUNDING:
        reasons.append(f"weights sum to {total:.4g}, brought to 1")
    weights = np.array([max(shares.get(ticker, 0.0), 0.0) for ticker in tickers])
    weights = weights / weights.sum()
    weights.setflags(write=False)
    return weights, StageState("partial" if reasons else "ok", "; ".join(reasons))


def rationale_of(text: str) -> str:
    """Return the rationale in a reply: the key ``rationale`` of its JSON; empty if there is none."""
    for raw in json_in(objects_in(text.rpartition("</think>")[2], "weights") if len(text) <= MOST_CHARACTERS else ()):
        rationale = raw.get("rationale") if isinstance(raw, dict) else None
        if isinstance(rationale, str):
            return rationale.strip()
    return ""


def _found(reply: Reply, tickers: tuple[str, ...], stage: Stage) -> FoundValues | StageState:
    """Find the values of a reply, or return the state of a reply that has none."""
    text, cut = reply.text, reply.finish == "length"
    if reply.finish == "refusal":
        return StageState("refused", "the provider reports a refusal")
    if reply.finish == "failed":
        return StageState("invalid", f"no answer: {brief(text)}")
    if len(text) > MOST_CHARACTERS:
        return StageState("invalid", f"longer than {MOST_CHARACTERS} characters (got {len(text)})")
    if cut and stage == "S3":
        return StageState("truncated", "the reply was cut, and half a book is none")
    values, unknown, json_reason = find_values(text, tickers, *FORMS[stage], cut, salvage=stage != "S3")
    if values or unknown:
        return values, unknown, json_reason
    if cut:
        return StageState("truncated", "cut before the first value")
    if not text.strip():
        return StageState("invalid", "an empty reply")
    if _REFUSAL.match(text):
        return StageState("refused", f"says that it will not answer: {brief(text.strip()[:50])}")
    reason = "neither the JSON that was asked for nor a line 'TICKER: value'"
    return StageState("invalid", f"{reason} ({json_reason})" if json_reason else reason)


@lru_cache(maxsize=_KEPT)
def _parse(reply: Reply, tickers: tuple[str, ...], stage: Stage, neutral: str) -> tuple[Mapping[str, Any], StageState]:
    found = _found(reply, tickers, stage)
    if isinstance(found, StageState):
        return {}, found
    values, unknown, json_reason = found
    read: dict[str, Any] = {}
    unreadable: list[str] = []
    for ticker, raw in values.items():
        try:
            read[ticker] = _single_value(raw, stage)
        except _Unreadable as exc:
            unreadable.append(f"{ticker} ({exc})")
    missing = [ticker for ticker in tickers if ticker not in values]
    reasons = [f"JSON that cannot be read as a whole: {json_reason}"] if json_reason else []
    if missing:
        reasons.append(f"{len(missing)} of {len(tickers)} assets are missing, read as {neutral}: {name_list(missing)}")
    if unreadable:
        more = f" and {len(unreadable) - 2} more" if len(unreadable) > 2 else ""
        reasons.append(f"not usable, read as {neutral}: {', '.join(unreadable[:2])}{more}")
    reasons += [_NOT_ASKED + name_list(sorted(unknown))] * bool(unknown)
    if not read:
        return {}, StageState("invalid", "; ".join(["no usable value", *reasons]))
    if reply.finish == "length":
        return read, StageState("truncated", "; ".join(["the reply was cut", *reasons]))
    return read, StageState("partial" if reasons else "ok", "; ".join(reasons))


def _single_value(values: list[JSON], stage: Stage) -> Any:
    """Return the one distinct value for a ticker. Raises `_Unreadable` if none is usable or they differ."""
    read, reason = [], ""
    for value in values:
        try:
            read.append(_parse_value(value, stage))
        except _Unreadable as exc:
            reason = str(exc)
    if not read:
        raise _Unreadable(reason)
    if any(value != read[0] for value in read):
        raise _Unreadable(f"given {len(read)} times, not alike")
    return read[0]


def _parse_value(value: JSON, stage: Stage) -> float | str | tuple[float, bool]:
    """Parse a view, a signal, or a weight and its percent flag: a number, or a text that begins with its only value."""
    if stage == "S2":
        match = _WORD.match(value.strip()) if isinstance(value, str) else None
        if match and _REMARK.match(match.group(2)):
            return match.group(1).lower()
        raise _Unreadable(f"{brief(value)} is none of {', '.join(SIGNALS)}")
    number, percent = value, False
    if isinstance(value, str):
        match = _NUMBER.match(value)
        if match and _REMARK.match(match.group(3)):
            number, percent = float(match.group(1).translate(_TO_MINUS)), bool(match.group(2))
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise _Unreadable(f"{brief(value)} is no number")
    if not abs(number) <= _LARGEST:
        raise _Unreadable(f"{brief(value)} is out of all range")
    if stage == "S3":
        return float(number), percent
    if percent:
        raise _Unreadable(f"{brief(value)} is a percentage")
    if not abs(number) <= 1 + _TINY:
        raise _Unreadable(f"{number:g} is outside -1 to 1")
    return min(max(float(number), -1.0), 1.0)


NEUTRAL_DAY: Final = date(2000, 1, 3)
"""The day of a request whose prompt has none."""

FIRST_NAV: Final = 100_000
"""The initial net asset value of every episode in prompts (figure 25)."""

ANSWER_SCHEMA: Final[Mapping[str, JSON]] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
}
"""Schema of the answer to a question: the text that the prompt requests after ``ANSWER:``."""

_OUTSIDE_CLOSE: Final = time(21, 0, tzinfo=UTC)
_DAY_S: Final = 86_400
_SOURCE: Final = "the close of the decision day"


def outside_call(
    agent: AgentSpec, prompt: str, reply_schema: Mapping[str, JSON], template: str, day: date = NEUTRAL_DAY,
    market: tuple[Mapping[str, Any], Text] | None = None, *, asked: tuple[str, Mapping[str, JSON]] | None = None,
) -> CallSpec:  # fmt: skip
    """Return the call that sends a prompt, with its context as data, to an external agent."""
    cutoff = datetime.combine(day, _OUTSIDE_CLOSE)
    about: dict[str, Any] = {
        "completeness": "complete", "cutoff": cutoff, "cutoff_source": _SOURCE, "prompt": prompt,
    }  # fmt: skip
    if market is None:
        context = Context(**about) if asked is None else QuestionContext(**about, template=asked[0], given=asked[1])
        parts = [canonical_json(AgentRequest(context, reply_schema))]
    else:
        members, numbers = market
        # One object in three texts, so that the market of a date is stored once for all calls.
        frame = canonical_json({"format": FORMAT, "reply_schema": reply_schema})
        parts = [f'{frame[:-1]},"context":{{', f"{canonical_json({**about, **members})[1:-1]},", f"{numbers.text}}}}}"]
    messages = (Message("user", tuple(map(Text.of, parts))),)
    return replace(CallSpec.to(agent, messages, template), temperature=None, effort=None)


def market_numbers(known: MarketState, listings: Sequence[Listing]) -> Text:
    """Return the market of a date as JSON members of a `MarketContext`, shared by all stages, profiles and agents."""
    at = datetime.combine(known.day, _OUTSIDE_CLOSE)
    places = {listing.id: listing for listing in listings}
    times = tuple(datetime.combine(day, _OUTSIDE_CLOSE) for day in known.times.tolist())
    closes_of = tuple(
        Series(name, _DAY_S, times, tuple(closes))
        for name, closes in zip(known.tickers, known.closes.T.tolist(), strict=True)
    )
    # data that cannot be computed from the prices
    rows: list[tuple[str, str, float | str | None, str, str]] = []
    rows += [("", series.id, series.value, series.unit, title) for title, series in known.macro]
    for line in known.lines:
        rows += [(line.ticker, "regime", line.regime, "text", ""), (line.ticker, "beta", line.beta, "ratio", "")]
        rows.append((line.ticker, "duration", line.duration, "years", ""))
    facts = [
        Fact(f"{subject or 'macro'}.{name}", subject, name, value, unit, available_at=at, note=note)
        for subject, name, value, unit, note in rows
        if value is not None
    ]  # fmt: skip
    members = {
        "instruments": [places[name].as_record() for name in known.tickers],
        "series": closes_of,
        "returns": np.round(known.returns, 10).tolist(),
        "correlations": np.round(known.correlation, 8).tolist(),
        "facts": facts,
    }
    return Text.of(canonical_json(members)[1:-1])


TEMPLATE: Final = "stages-v1.txt"
"""The prompt templates in use."""

THRESHOLD: Final[dict[Convention, str]] = {"paper": "0.2", "reference": "0.15"}
"""Threshold of a buy in the prompt of S2. The authors' prompt has 0.15 but its scores use 0.2 (section C.1)."""

ASKED: Final[tuple[Stage, ...]] = ("S1", "S2", "S3")
"""The stages that call the model; S4 and S5 are computed."""

COLUMNS: Final = ("ticker", "class", "close", "ret20_pct", "ret60_pct", "vol_pct", "maxdd_pct", "sharpe", "beta",
                  "duration", "regime")  # fmt: skip
"""The columns of the table of assets."""

ABSENT: Final = "n/a"
"""The text for an undefined number."""

MOST_NAMED: Final = 8
"""A news item names up to this many assets; above, only their number, as in reviews of a whole class."""

MONEY: Final = "money"
"""The row of the portfolio for cash outside all assets."""


def stage_template() -> PromptTemplate:
    """Return the prompt template of all stages, whose sha256 is ``CallSpec.template`` of every call of the pipeline."""
    return prompt_template("assaymark.benchmark", TEMPLATE)


def stage_texts() -> dict[str, str]:
    """Return every text that prompts of the pipeline are made from, by name, for the plan hash."""
    schemas = {f"schema of {stage}": _schema(stage).text for stage in ASKED}
    return {TEMPLATE: stage_template().text, **schemas, "investor profile": PROFILE_WORDS}


def reply_schema(stage: Stage) -> dict[str, JSON]:
    """Return the JSON schema of a reply, in the subset that providers with structured output accept."""
    word: dict[str, JSON] = {"type": "string"}
    value: dict[str, JSON] = {"type": "string", "enum": list(SIGNALS)} if stage == "S2" else {"type": "number"}
    key, column = FORMS[stage]
    rows: dict[str, JSON] = {"type": "array", "items": object_schema({TICKER: word, column: value})}
    return object_schema({key: rows, "rationale": word})


@cache
def _schema(stage: Stage) -> Text:
    return Text.of(json.dumps(reply_schema(stage), indent=1))


@cache
def _system() -> Message:
    return Message("system", (Text.of(stage_template().part("system")),))


def market_text(known: MarketState) -> Text:
    """Return the market in the form of prompts, the same text for all stages and models."""
    parts = {name: fence(name, _table(columns, rows)) for name, (columns, rows) in prompt_tables(known).items()}
    day, lookback = known.day.isoformat(), known.returns.shape[0]
    return Text.of(stage_template().filled("market", day=day, lookback=lookback, **parts))


PromptTable = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]
"""A table in a prompt: its column names and its rows."""


def prompt_tables(known: MarketState) -> dict[str, PromptTable]:
    """Return the tables of a date in the form of prompts, the same for all models."""
    assets, macro, classes, news = [], [], [], []
    for line in known.lines:
        moves = (_fixed(x, 100) for x in (line.return_20, line.return_60, line.volatility, line.max_drawdown))
        ratios = map(_fixed, (line.sharpe, line.beta, line.duration))
        assets.append((line.ticker, line.asset_class, f"{line.close:.6g}", *moves, *ratios, line.regime))
    for title, series in known.macro:
        macro.append((title, ABSENT if series.value is None else f"{series.value:.6g}", series.unit, series.state))
    groups = tuple(known.regimes)
    for at, (group, regime) in enumerate(known.regimes.items()):
        means = [_fixed(None if math.isnan(value) else value) for value in known.between[at].tolist()]
        with_equities = ABSENT if group == "equity" or "equity" not in groups else means[groups.index("equity")]
        classes.append((group, str(known.classes.count(group)), regime, means[at], with_equities, *means))
    for item in known.news:
        about = [name for name in item.instruments if name in known.tickers]
        name_list = " ".join(about) if len(about) <= MOST_NAMED else f"{len(about)} assets"
        news.append((item.published_at.date().isoformat(), item.source, name_list or ABSENT, item.text))
    return {
        "assets": (COLUMNS, tuple(assets)),
        "macro": (("series", "value", "unit", "state"), tuple(macro)),
        "correlations": (("class", "assets", "regime", "within", "with_equities", *groups), tuple(classes)),
        "news": (("published", "source", "about", "text"), tuple(news)),
    }


def stage_call(
    agent: AgentSpec, stage: Stage, known: MarketState, market: Text, numbers: Text | None, convention: Convention,
    horizon: int, views: Floats, signals: Sequence[Signal], position: Position, tickers: Sequence[str],
    profile: Profile, cost_bps: float,
) -> CallSpec:  # fmt: skip
    """Return the call for views (S1), signals (S2) or weights (S3); ``numbers`` is the market for external agents."""
    places, day = dict(zip(known.tickers, known.part.tolist(), strict=True)), known.day.isoformat()
    stated = {ticker: float(views[at]) for ticker, at in places.items()}
    # the members of a `MarketContext` that belong to one call, not to the market
    members: dict[str, Any] = {"stage": stage, "horizon_days": None, "views": {}, "signals": {}, "weights": {}}
    members |= {"portfolio": None, "constraints": (), "profile": None}
    more: dict[str, Any] = {}
    if stage == "S1":
        paper = convention == "paper"
        more = {"count": len(places), "scale": stage_template().filled("scale", horizon=horizon) if paper else ""}
        members["horizon_days"] = horizon if paper else None
    elif stage == "S2":
        table = _table(("ticker", "view"), ((ticker, f"{view:.6g}") for ticker, view in stated.items()))
        more = {"count": len(stated), "day": day, "views": fence("views", table), "threshold": THRESHOLD[convention]}
        members["views"] = stated
    else:
        rows = ((ticker, f"{views[at]:.6g}", signals[at]) for ticker, at in places.items())
        weights = position.weights
        money = 1.0 - float(weights.sum())
        portfolio = [
            ("net_asset_value", f"{position.nav * FIRST_NAV:.0f}"),
            ("net_asset_value_at_the_start", str(FIRST_NAV)),
            ("drawdown_from_peak_pct", f"{100 * position.drawdown:.2f}"),
            *((tickers[at], f"{weights[at]:.4f}") for at in np.flatnonzero(weights > 0).tolist()),
            *([(MONEY, f"{money:.4f}")] if money > 5e-5 else []),
        ]
        shares = {name: weight for name, weight in zip(tickers, weights.tolist(), strict=True) if weight > 0}
        nav, closes = position.nav * FIRST_NAV, {line.ticker: line.close for line in known.lines}
        # in units at the last close; assets without a close on the day are in the weights only
        units = {name: weight * nav / closes[name] for name, weight in shares.items() if name in closes}
        cash = nav * max(1.0 - sum(shares.values()), 0.0)
        limits = (
            ("max_weight", profile.equity_cap, "nav", "equity and crypto"),
            ("min_weight", profile.bond_floor, "nav", "bond and cash"),
            ("max_drawdown", profile.drawdown_tolerance, "ratio", "portfolio"),
            ("value_at_risk_95", profile.var_limit, "ratio", "portfolio"),
            ("fee", cost_bps, "bps", "order"),
        )
        members |= {
            "horizon_days": horizon, "views": stated, "signals": {ticker: signals[at] for ticker, at in places.items()},
            "weights": shares, "portfolio": Portfolio("USD", cash, nav, positions=units),
            "constraints": tuple(Constraint(k, x, unit, scope) for k, x, unit, scope in limits),
            "profile": profile.text,
        }  # fmt: skip
        more = {
            "day": day, "portfolio": fence("portfolio", _table(("what", "value"), portfolio)), "profile": profile.text,
            "signals": fence("signals", _table(("ticker", "view", "signal"), rows)), "horizon": horizon,
            "cost": f"{cost_bps:g}",
        }  # fmt: skip
    asked = Text.of(stage_template().filled(stage, **more))
    parts = (asked,) if stage == "S2" else (market, asked)
    if is_outside(agent.model):
        prompt = "\n\n".join([_system().text, *(part.text for part in parts)])
        data = None if numbers is None else (members, numbers)
        return outside_call(agent, prompt, reply_schema(stage), stage_template().sha256, known.day, data)
    return CallSpec.to(agent, (_system(), Message("user", parts)), stage_template().sha256, _schema(stage))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    return "\n".join([row(head), *(row(cells) for cells in rows)])


def _fixed(value: float | None, scale: float = 1) -> str:
    return ABSENT if value is None else f"{scale * value:.2f}"
