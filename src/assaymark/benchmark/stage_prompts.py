"""The prompts of S1, S2 and S3: versioned templates, filled from a snapshot, a profile and the answers before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from typing import Final

import numpy as np

from assaymark.benchmark.profiles import PROFILE_WORDS, Profile
from assaymark.benchmark.replies import FIRST_NAV, FORMS, TICKER, OwnNumbers, outside_call
from assaymark.benchmark.snapshot import AssetLine, ClassLine, MarketSnapshot
from assaymark.benchmark.stages import SIGNALS, Convention, Signal, Stage
from assaymark.engine.calls import CallSpec, Message, Text
from assaymark.engine.providers.http_agent import is_outside
from assaymark.portfolio.qp import Floats
from assaymark.prompting.fences import PromptTemplate, fence, prompt_template, row
from assaymark.protocol import AgentSpec
from assaymark.records import JSON

TEMPLATE: Final = "stages-v1.txt"
"""The prompt templates in use."""

THRESHOLD: Final[dict[Convention, str]] = {"paper": "0.2", "reference": "0.15"}
"""From which view on S2 is told to buy. The authors' prompt said 0.15 and was scored by 0.2 (section C.1)."""

ASKED: Final[tuple[Stage, ...]] = ("S1", "S2", "S3")
"""The stages that ask the model; S4 and S5 are arithmetic."""

COLUMNS: Final = ("ticker", "class", "close", "ret20_pct", "ret60_pct", "vol_pct", "maxdd_pct", "sharpe", "beta",
                  "duration", "regime")  # fmt: skip
"""The columns of the table of assets."""

ABSENT: Final = "n/a"
"""What stands for a number that is not defined."""

MOST_NAMED: Final = 8
"""A piece of news names so many assets; of more it counts them, because a review of a class is about all of it."""

MONEY: Final = "money"
"""The row of the portfolio for what is in no asset."""


def stage_template() -> PromptTemplate:
    """The prompt template of all stages, whose sha256 is ``CallSpec.template`` of every call of the pipeline."""
    return prompt_template("assaymark.benchmark", TEMPLATE)


def stage_texts() -> dict[str, str]:
    """Every text that the prompts of the pipeline are made from, by name: what a plan hash has to cover."""
    schemas = {f"schema of {stage}": _schema(stage).text for stage in ASKED}
    return {TEMPLATE: stage_template().text, **schemas, "investor profile": PROFILE_WORDS}


def reply_schema(stage: Stage) -> dict[str, JSON]:
    """The JSON schema of a reply, in the subset that providers with structured output accept."""
    word: dict[str, JSON] = {"type": "string"}
    value: dict[str, JSON] = {"type": "string", "enum": list(SIGNALS)} if stage == "S2" else {"type": "number"}
    key, column = FORMS[stage]
    rows: dict[str, JSON] = {"type": "array", "items": _object({TICKER: word, column: value})}
    return _object({key: rows, "rationale": word})


def _object(properties: dict[str, JSON]) -> dict[str, JSON]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


@cache
def _schema(stage: Stage) -> Text:
    return Text.of(json.dumps(reply_schema(stage), indent=1))


@cache
def _system() -> Message:
    return Message("system", (Text.of(stage_template().part("system")),))


def market_text(snapshot: MarketSnapshot) -> Text:
    """The market as every stage that looks at it reads it; the same text whoever is asked."""
    parts = {name: fence(name, _table(heads, rows)) for name, (heads, rows) in layers(snapshot).items()}
    return Text.of(stage_template().filled("market", day=snapshot.day.isoformat(), lookback=snapshot.lookback, **parts))


Layer = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]
"""A table that a prompt shows: its heads and its rows."""


def layers(snapshot: MarketSnapshot) -> dict[str, Layer]:
    """The layers of a snapshot that are the same whoever is asked, as the prompts print them."""
    return {
        "assets": (COLUMNS, tuple(map(_asset, snapshot.assets))),
        "macro": (("series", "value", "unit", "state"), tuple(_macro(snapshot))),
        "correlations": _correlations(snapshot.classes, snapshot.between),
        "news": (("published", "source", "about", "text"), tuple(_news(snapshot))),
    }


def views_call(
    agent: AgentSpec,
    market: Text,
    snapshot: MarketSnapshot,
    *,
    horizon: int,
    convention: Convention = "paper",
    numbers: Text | None = None,
) -> CallSpec:
    """S1: the call that asks for a view of every asset."""
    scale = stage_template().filled("scale", horizon=horizon) if convention == "paper" else ""
    own = OwnNumbers("S1", horizon=horizon if convention == "paper" else None)
    asked = Text.of(stage_template().filled("S1", count=len(snapshot.assets), scale=scale))
    return _call(agent, "S1", snapshot.day, market, asked, numbers=numbers, own=own)


def signals_call(
    agent: AgentSpec,
    snapshot: MarketSnapshot,
    views: Floats,
    *,
    convention: Convention = "paper",
    numbers: Text | None = None,
) -> CallSpec:
    """S2: the call that asks for a signal for every asset."""
    said = {one.ticker: view for one, view in zip(snapshot.assets, views[snapshot.taking_part].tolist(), strict=True)}
    rows = ((ticker, f"{view:.6g}") for ticker, view in said.items())
    filled = stage_template().filled(
        "S2",
        count=len(snapshot.assets),
        day=snapshot.day.isoformat(),
        views=fence("views", _table(("ticker", "view"), rows)),
        threshold=THRESHOLD[convention],
    )
    return _call(agent, "S2", snapshot.day, Text.of(filled), numbers=numbers, own=OwnNumbers("S2", views=said))


def weights_call(
    agent: AgentSpec,
    market: Text,
    snapshot: MarketSnapshot,
    tickers: Sequence[str],
    profile: Profile,
    views: Floats,
    signals: Sequence[Signal],
    *,
    horizon: int,
    cost_bps: float,
    numbers: Text | None = None,
) -> CallSpec:
    """S3: the call that asks for the weights of the portfolio."""
    places = dict(zip([one.ticker for one in snapshot.assets], snapshot.taking_part.tolist(), strict=True))
    rows = ((ticker, f"{views[at]:.6g}", signals[at]) for ticker, at in places.items())
    own = OwnNumbers(
        "S3",
        horizon=horizon,
        views={ticker: float(views[at]) for ticker, at in places.items()},
        signals={ticker: signals[at] for ticker, at in places.items()},
        held=snapshot.portfolio,
        weights={name: float(snapshot.portfolio.weights[at]) for at, name in enumerate(tickers)},
        closes={one.ticker: one.close for one in snapshot.assets},
        profile=profile,
        cost_bps=cost_bps,
    )
    filled = stage_template().filled(
        "S3",
        day=snapshot.day.isoformat(),
        portfolio=fence("portfolio", _portfolio(snapshot, tickers)),
        profile=profile.text,
        signals=fence("signals", _table(("ticker", "view", "signal"), rows)),
        horizon=horizon,
        cost=f"{cost_bps:g}",
    )
    return _call(agent, "S3", snapshot.day, market, Text.of(filled), numbers=numbers, own=own)


def _call(
    agent: AgentSpec, stage: Stage, day: date, *parts: Text, numbers: Text | None = None, own: OwnNumbers
) -> CallSpec:
    if is_outside(agent.model):
        prompt = "\n\n".join([_system().text, *(part.text for part in parts)])
        market = None if numbers is None else (own, numbers)
        return outside_call(agent, prompt, reply_schema(stage), stage_template().sha256, day, market=market)
    return CallSpec(
        model=agent.model,
        messages=(_system(), Message("user", parts)),
        template=stage_template().sha256,
        seed=agent.seed,
        temperature=agent.temperature,
        effort=agent.effort,
        schema=_schema(stage),
        args=dict(agent.args),
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    return "\n".join([row(head), *(row(cells) for cells in rows)])


def _asset(one: AssetLine) -> tuple[str, ...]:
    return (
        one.ticker,
        one.asset_class,
        f"{one.close:.6g}",
        _percent(one.return_20),
        _percent(one.return_60),
        _percent(one.volatility),
        _percent(one.max_drawdown),
        _fixed(one.sharpe),
        _fixed(one.beta),
        _fixed(one.duration),
        one.regime,
    )


def _percent(value: float | None) -> str:
    return ABSENT if value is None else f"{100 * value:.2f}"


def _fixed(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2f}"


def _macro(snapshot: MarketSnapshot) -> Iterable[tuple[str, ...]]:
    for one in snapshot.macro:
        yield one.title, ABSENT if one.value is None else f"{one.value:.6g}", one.unit, one.state


def _correlations(classes: Sequence[ClassLine], between: Floats) -> Layer:
    names = [one.asset_class for one in classes]
    rows = tuple(
        (
            one.asset_class,
            str(one.members),
            one.regime,
            _fixed(one.intra),
            _fixed(one.with_equities),
            *(
                ABSENT if at == other and one.intra is None else _fixed(float(value))
                for other, value in enumerate(between[at])
            ),
        )
        for at, one in enumerate(classes)
    )
    return ("class", "assets", "regime", "within", "with_equities", *names), rows


def _news(snapshot: MarketSnapshot) -> Iterable[tuple[str, ...]]:
    """The news, each with those of the assets above that it is about; a long list of them is only counted."""
    shown = {one.ticker for one in snapshot.assets}
    for one in snapshot.news:
        about = [name for name in one.instruments if name in shown]
        named = " ".join(about) if len(about) <= MOST_NAMED else f"{len(about)} assets"
        yield one.published_at.date().isoformat(), one.source, named or ABSENT, one.text


def _portfolio(snapshot: MarketSnapshot, tickers: Sequence[str]) -> str:
    held = snapshot.portfolio
    rows = [
        ("net_asset_value", f"{held.nav * FIRST_NAV:.0f}"),
        ("net_asset_value_at_the_start", str(FIRST_NAV)),
        ("drawdown_from_peak_pct", f"{100 * held.drawdown:.2f}"),
        *((tickers[at], f"{held.weights[at]:.4f}") for at in np.flatnonzero(held.weights > 0).tolist()),
    ]
    money = 1.0 - float(held.weights.sum())
    return _table(("what", "value"), [*rows, (MONEY, f"{money:.4f}")] if money > 5e-5 else rows)
