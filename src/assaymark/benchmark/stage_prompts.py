"""The prompts of S1, S2 and S3: versioned templates, filled from a date, a profile and the answers before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from typing import Final

import numpy as np

from assaymark.benchmark.market import Known
from assaymark.benchmark.profiles import PROFILE_WORDS, Profile
from assaymark.benchmark.replies import FIRST_NAV, FORMS, TICKER, OwnNumbers, model_call, outside_call
from assaymark.benchmark.stages import SIGNALS, Convention, Position, Signal, Stage
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


def market_text(known: Known) -> Text:
    """The market as every stage that looks at it reads it; the same text whoever is asked."""
    parts = {name: fence(name, _table(heads, rows)) for name, (heads, rows) in layers(known).items()}
    day, lookback = known.day.isoformat(), known.returns.shape[0]
    return Text.of(stage_template().filled("market", day=day, lookback=lookback, **parts))


Layer = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]
"""A table that a prompt shows: its heads and its rows."""


def layers(known: Known) -> dict[str, Layer]:
    """The layers of a date that are the same whoever is asked, as the prompts print them."""
    assets, macro, classes, news = [], [], [], []
    for line in known.lines:
        moves = map(_percent, (line.return_20, line.return_60, line.volatility, line.max_drawdown))
        ratios = map(_fixed, (line.sharpe, line.beta, line.duration))
        assets.append((line.ticker, line.asset_class, f"{line.close:.6g}", *moves, *ratios, line.regime))
    for series in known.macro:
        value = ABSENT if series.value is None else f"{series.value:.6g}"
        macro.append((series.title, value, series.unit, series.state))
    for at, one in enumerate(known.lines_by_class):
        means = [_fixed(value) for value in known.between[at].tolist()]
        if one.intra is None:
            means[at] = ABSENT
        count = str(one.members)
        classes.append((one.asset_class, count, one.regime, _fixed(one.intra), _fixed(one.with_equities), *means))
    for item in known.news:
        about = [name for name in item.instruments if name in known.tickers]
        named = " ".join(about) if len(about) <= MOST_NAMED else f"{len(about)} assets"
        news.append((item.published_at.date().isoformat(), item.source, named or ABSENT, item.text))
    names = (one.asset_class for one in known.lines_by_class)
    return {
        "assets": (COLUMNS, tuple(assets)),
        "macro": (("series", "value", "unit", "state"), tuple(macro)),
        "correlations": (("class", "assets", "regime", "within", "with_equities", *names), tuple(classes)),
        "news": (("published", "source", "about", "text"), tuple(news)),
    }


def views_call(
    agent: AgentSpec, market: Text, known: Known, *, horizon: int, convention: Convention = "paper",
    numbers: Text | None = None,
) -> CallSpec:  # fmt: skip
    """S1: the call that asks for a view of every asset."""
    scale = stage_template().filled("scale", horizon=horizon) if convention == "paper" else ""
    own = OwnNumbers("S1", horizon=horizon if convention == "paper" else None)
    asked = Text.of(stage_template().filled("S1", count=len(known.tickers), scale=scale))
    return _call(agent, "S1", known.day, market, asked, numbers=numbers, own=own)


def signals_call(
    agent: AgentSpec, known: Known, views: Floats, *, convention: Convention = "paper", numbers: Text | None = None
) -> CallSpec:
    """S2: the call that asks for a signal for every asset."""
    said = dict(zip(known.tickers, views[known.part].tolist(), strict=True))
    table = _table(("ticker", "view"), ((ticker, f"{view:.6g}") for ticker, view in said.items()))
    filled = stage_template().filled(
        "S2", count=len(said), day=known.day.isoformat(), views=fence("views", table),
        threshold=THRESHOLD[convention],
    )  # fmt: skip
    return _call(agent, "S2", known.day, Text.of(filled), numbers=numbers, own=OwnNumbers("S2", views=said))


def weights_call(
    agent: AgentSpec, market: Text, known: Known, position: Position, tickers: Sequence[str], profile: Profile,
    views: Floats, signals: Sequence[Signal], *, horizon: int, cost_bps: float, numbers: Text | None = None,
) -> CallSpec:  # fmt: skip
    """S3: the call that asks for the weights of the portfolio."""
    places = dict(zip(known.tickers, known.part.tolist(), strict=True))
    rows = ((ticker, f"{views[at]:.6g}", signals[at]) for ticker, at in places.items())
    held = position.weights
    owned = [(tickers[at], f"{held[at]:.4f}") for at in np.flatnonzero(held > 0).tolist()]
    money = 1.0 - float(held.sum())
    portfolio = [
        ("net_asset_value", f"{position.nav * FIRST_NAV:.0f}"),
        ("net_asset_value_at_the_start", str(FIRST_NAV)),
        ("drawdown_from_peak_pct", f"{100 * position.drawdown:.2f}"),
        *owned,
        *([(MONEY, f"{money:.4f}")] if money > 5e-5 else []),
    ]
    own = OwnNumbers(
        "S3", horizon=horizon, views={ticker: float(views[at]) for ticker, at in places.items()},
        signals={ticker: signals[at] for ticker, at in places.items()}, held=position,
        weights=dict(zip(tickers, held.tolist(), strict=True)), closes={one.ticker: one.close for one in known.lines},
        profile=profile, cost_bps=cost_bps,
    )  # fmt: skip
    filled = stage_template().filled(
        "S3", day=known.day.isoformat(), portfolio=fence("portfolio", _table(("what", "value"), portfolio)),
        profile=profile.text, signals=fence("signals", _table(("ticker", "view", "signal"), rows)), horizon=horizon,
        cost=f"{cost_bps:g}",
    )  # fmt: skip
    return _call(agent, "S3", known.day, market, Text.of(filled), numbers=numbers, own=own)


def _call(
    agent: AgentSpec, stage: Stage, day: date, *parts: Text, numbers: Text | None = None, own: OwnNumbers
) -> CallSpec:
    if is_outside(agent.model):
        prompt = "\n\n".join([_system().text, *(part.text for part in parts)])
        market = None if numbers is None else (own, numbers)
        return outside_call(agent, prompt, reply_schema(stage), stage_template().sha256, day, market=market)
    messages = (_system(), Message("user", parts))
    return model_call(agent, messages, stage_template().sha256, _schema(stage))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    return "\n".join([row(head), *(row(cells) for cells in rows)])


def _percent(value: float | None) -> str:
    return ABSENT if value is None else f"{100 * value:.2f}"


def _fixed(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2f}"
