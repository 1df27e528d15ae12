"""What an agent of a season is shown on one day: the market, which all share, and its own book beside it.

The shared part is written out once a day, as JSON and as prompt sections, because a context of a hundred series takes
longer to write than everything else on that day. Tests hold both against the slow way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

import numpy as np

from assaymark.agents.season_prompts import fenced
from assaymark.engine.calls import Text
from assaymark.market import MacroReading
from assaymark.market.clock import Day, shown_prices
from assaymark.portfolio.broker import Book
from assaymark.prompting.fences import row
from assaymark.prompting.material import material_blocks, moment
from assaymark.records import Constraint, Context, Fact, Portfolio, Series, canonical_json
from assaymark.workflow.season_file import FEWEST_BARS, Season

INTERVAL_S: Final = 86_400
_CLOSE: Final = timedelta(hours=21)
_digits = lru_cache(maxsize=1 << 16)(repr)  # a close is shown on as many days as there are bars
_MOST_NEWS: Final = 30


@dataclass(frozen=True, slots=True, eq=False)
class DayMaterial:
    """What all agents are shown on a day. ``held`` are instruments that are only shown because somebody holds them.

    ``facts``, ``series`` and ``instruments`` are the JSON of those parts, ``missing`` is what is not there.
    """

    context: Context
    facts: str
    series: str
    instruments: str
    sections: dict[str, Text]


def day_material(season: Season, day: Day, held: Collection[str]) -> DayMaterial:
    """The shared material of a day: instruments that can be traded or are held, their closes, economy and news.

    An instrument without a bar of the day, or with fewer than `FEWEST_BARS` closes, is not offered.
    """
    columns = {name: column for column, name in enumerate(day.universe)}
    shown = shown_prices(day.closes)
    lines = {name: found for name, at in columns.items() if (found := _line(season, day, shown[:, at], name, held))}
    series = tuple(lines.values())
    known = {one.id: one for one in day.view.instruments}
    macro = day.view.all_macro()
    facts = (*_prices(day, series), *_macro(macro), *_news(season, day, frozenset(columns)))
    context = Context(
        completeness="complete",
        cutoff=day.moment,
        cutoff_source="the season's clock",
        prompt="",
        facts=facts,
        series=series,
        instruments=tuple(known[name].as_record() for name in lines),
        constraints=limits_of(season),
        missing=tuple(f"{one.id}: {one.state}" for one in macro if one.state != "ok"),
    )
    sections = {block[0]: fenced(block) for block in material_blocks(replace(context, series=()))}
    closes = [list(map(_digits, one.close)) for one in series]
    if series:
        sections["series"] = fenced(("series", "\n".join(map(_series_text, series, closes))))
    return DayMaterial(
        context,
        canonical_json(facts),
        "[" + ",".join(map(_series_json, series, closes)) + "]",
        canonical_json(context.instruments),
        sections,
    )


def agent_context(shared: DayMaterial, book: Book, nav: float, currency: str, prompt: str) -> Context:
    """The context of one agent."""
    held = Portfolio(currency=currency, cash=book.cash, nav=nav, positions=dict(sorted(book.positions.items())))
    return replace(shared.context, portfolio=held, prompt=prompt)


def context_json(context: Context, facts: str, series: str, instruments: str) -> str:
    """The canonical JSON of a context whose large parts are written already."""
    whole = canonical_json(replace(context, facts=(), series=(), instruments=()))
    head, rest = whole.split('"facts":[],"instruments":[],', 1)
    # the series come last in the order of the keys, so that no text of anybody can be taken for their place
    body = rest.removesuffix('"series":[]}')
    return f'{head}"facts":{facts},"instruments":{instruments},{body}"series":{series}}}'


def agent_sections(shared: DayMaterial, context: Context) -> list[Text]:
    """The sections of an agent's prompt, in the order of `material_blocks`; the shared ones are not made again."""
    own = dict(material_blocks(replace(context, facts=(), series=(), instruments=(), constraints=())))
    order = ("situation", "constraints", "instruments", "holdings", "facts", "series", "prompt")
    found: list[Text] = []
    for label in order:
        if label in own:
            found.append(fenced((label, own[label])))
        elif label in shared.sections and label not in ("situation", "prompt"):
            found.append(shared.sections[label])
    return found


def told(season: Season, agent: str, notes: Sequence[str]) -> str:
    """The text that an agent is given on a day: what it was told, how orders fill, and what became of its last ones."""
    rules = season.rules
    at = "open" if rules.fill == "next_open" else "close"
    beyond = "rejected" if rules.excess == "reject" else "cut to what is allowed"
    lines = [
        season.told(agent).strip(),
        f"Orders fill at the {at} of the next trading day; one beyond cash, holding or limits is {beyond}.",
    ]
    if notes:
        lines.append("\n".join(["Of your last orders, these were not carried out:", *(f"- {one}" for one in notes)]))
    return "\n\n".join(lines)


# --- parts ------------------------------------------------------------------------------------------------------------


def _line(season: Season, day: Day, values: np.ndarray, name: str, held: Collection[str]) -> Series | None:
    """The last closes of one instrument; None where it is not shown."""
    rows = np.flatnonzero(np.isfinite(values))[-season.bars :]
    offered = name in day.quotes and rows.size >= FEWEST_BARS
    if not rows.size or not (offered or name in held):
        return None
    times = _closes_of(day.days[rows].tobytes(), rows.size)
    return Series(instrument=name, interval_s=INTERVAL_S, times=times, close=tuple(values[rows].tolist()))


@lru_cache(maxsize=64)
def _closes_of(raw: bytes, count: int) -> tuple[datetime, ...]:
    """The closing times of days; nearly all instruments of a day share them."""
    days: list[date] = np.frombuffer(raw, dtype="datetime64[D]", count=count).astype(object).tolist()
    return tuple(datetime(one.year, one.month, one.day, tzinfo=UTC) + _CLOSE for one in days)


def _prices(day: Day, series: Sequence[Series]) -> Iterator[Fact]:
    """The last close of each instrument that is shown."""
    for one in series:
        yield Fact(
            id=f"{one.instrument}.price",
            instrument=one.instrument,
            field="price",
            value=one.close[-1],
            unit="price",
            available_at=day.moment,
            as_of=one.times[-1],
            source="close",
        )


def _macro(readings: Iterable[MacroReading]) -> Iterator[Fact]:
    """The economy as it reads now; a series that is stale or not out yet stands under ``missing``."""
    for one in readings:
        if one.value is None or one.period is None or one.released is None:
            continue
        period = one.period.astype("datetime64[D]").astype(object)
        yield Fact(
            id=f"macro.{one.id}",
            instrument="",
            field=one.id,
            value=float(one.value),
            unit=one.unit,
            available_at=datetime.fromtimestamp(one.released, UTC),
            as_of=datetime(period.year, period.month, period.day, tzinfo=UTC),
            source="macro",
        )


def _news(season: Season, day: Day, universe: frozenset[str]) -> Iterator[Fact]:
    """The last news about the universe or about nobody in particular, oldest first."""
    if not season.news_days:
        return
    items = [one for one in day.view.news(season.news_days) if not one.instruments or universe & set(one.instruments)]
    for number, one in enumerate(items[-_MOST_NEWS:], start=1):
        about = one.instruments[0] if len(one.instruments) == 1 and one.instruments[0] in universe else ""
        yield Fact(
            id=f"news.{number}",
            instrument=about,
            field="news",
            value=one.text,
            unit="text",
            available_at=one.published_at,
            as_of=one.published_at,
            source=one.source,
        )


def limits_of(season: Season) -> tuple[Constraint, ...]:
    """The rules of the season as limits of the book."""
    rules = season.rules
    cap = [] if rules.max_weight is None else [Constraint(kind="max_weight", limit=rules.max_weight, unit="nav",
                                                          scope="holding")]  # fmt: skip
    return (
        *cap,
        Constraint(kind="min_cash", limit=0.0, unit="nav"),
        Constraint(kind="max_leverage", limit=rules.max_exposure, unit="multiple"),
        Constraint(kind="max_orders", limit=float(rules.max_orders), unit="count"),
        Constraint(kind="allow_short", limit=float(rules.short), unit="count"),
        *(() if rules.fractional else (Constraint(kind="whole_units", limit=rules.lot, unit="units"),)),
        Constraint(kind="fee", limit=rules.cost_bps, unit="bps", scope="order"),
    )


@lru_cache(maxsize=64)
def _times_json(times: tuple[datetime, ...]) -> str:
    return canonical_json(times)


@lru_cache(maxsize=64)
def _times_text(times: tuple[datetime, ...]) -> tuple[str, ...]:
    return tuple(map(moment, times))


def _series_json(series: Series, closes: Sequence[str]) -> str:
    """As `canonical_json`, for a series of closes alone, which are given as texts."""
    return (
        f'{{"close":[{",".join(closes)}],"high":[],"instrument":{canonical_json(series.instrument)},"interval_s":'
        f'{series.interval_s},"low":[],"open":[],"times":{_times_json(series.times)},"volume":[]}}'
    )


def _series_text(series: Series, closes: Sequence[str]) -> str:
    """As the section of `material_blocks`, for a series of closes alone, which are given as texts."""
    head = row(("bars", str(len(series.times)), series.instrument, str(series.interval_s)))
    rows = map("\t".join, zip(_times_text(series.times), closes, strict=True))
    return f"{head}\ntime\tclose\n" + "\n".join(rows)
