"""The context and the calls of a season's agents on one day; every reply, or its absence, becomes a decision."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

import numpy as np

from assaymark.agents import llm
from assaymark.claims.season_plan import FEWEST_BARS, Season, period_of
from assaymark.engine import Ledger, Model, Reply, Text
from assaymark.engine.prices import Prices
from assaymark.engine.providers.http_agent import is_outside
from assaymark.engine.providers.registry import check_ready
from assaymark.engine.rate_limits import provider_of
from assaymark.errors import ModelError, StoppedError
from assaymark.judging.season.record import ACTION
from assaymark.market.history import FIELDS, Day, shown_prices
from assaymark.portfolio.broker import Account
from assaymark.prompting import material_blocks, moment, row
from assaymark.protocol import AgentSpec
from assaymark.records import (
    Constraint,
    Context,
    Decision,
    Fact,
    Instrument,
    Portfolio,
    Provenance,
    Series,
    canonical_json,
    grouped,
)
from assaymark.workflow.ask import PlannedDecision, agent_engine, budget_of, run_all
from assaymark.workflow.run_folder import RunFolder

INTERVAL_S: Final = 86_400
_CLOSE: Final = timedelta(hours=21)
_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MOST_NEWS: Final = 30
_PERIODS: Final = 4
"""Periods of each filed field that are shown: the newest four, a year of quarters."""

_PERIOD: Final = re.compile(r"(?P<year>\d{4})(?:-Q(?P<quarter>[1-4])|-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?")
_ADDRESSES: Final = ("http/", "https/")


@dataclass(frozen=True, slots=True, eq=False)
class DayMaterial:
    """The context that all agents of a day share, with its large parts as JSON and as prompt sections."""

    context: Context
    facts: str
    series: str
    instruments: str
    sections: dict[str, Text]


def day_material(season: Season, day: Day, owned: Collection[str]) -> DayMaterial:
    """Return the shared context of a day: instruments that can be traded or are ``owned``, with bars, splits,
    dividends, sector and filings; macro series; and news.
    """
    series = _series_of(season, day, owned)
    listings, at, macro = {listing.id: listing for listing in day.view.instruments}, day.moment, day.view.all_macro()
    facts = [
        Fact(f"{bars.instrument}.price", bars.instrument, "price", bars.close[-1], "price", at, bars.times[-1], "close")
        for bars in series
    ]  # fmt: skip
    # facts of each instrument: its sector, splits and dividends within its bars, and filings
    for bars in series:
        name = bars.instrument
        if sector := listings[name].sector:
            facts.append(Fact(f"{name}.sector", name, "sector", sector, "text", at, None, "listing"))
        for action in day.actions.get(name, ()):
            closed = datetime(action.ex_date.year, action.ex_date.month, action.ex_date.day, tzinfo=UTC) + _CLOSE
            if closed < bars.times[0]:
                continue
            changes = [("split", action.split, "multiple")] if action.split != 1.0 else []
            changes += [("dividend", action.dividend, "price")] if action.dividend else []
            for field, value, unit in changes:
                stated = f"{name}.{field}.{action.ex_date}"
                facts.append(Fact(stated, name, field, value, unit, min(closed, at), closed - _CLOSE, ACTION))
        filed = grouped(day.view.fundamentals(name), lambda filing: filing.field)  # sorted by period
        for filing in (filing for filings in filed.values() for filing in filings[-_PERIODS:]):
            stated, ends = f"{name}.{filing.field}.{filing.period}", _period_end(filing.period)
            note, value = "" if ends else f"period {filing.period}", float(filing.value)
            facts.append(Fact(stated, name, filing.field, value, filing.unit, filing.filed_at, ends, "filing", note))
    for reading in macro:  # current readings; series that are stale or not yet released are listed as missing
        if reading.value is not None and reading.period is not None and reading.released is not None:
            period = reading.period.astype("datetime64[D]").astype(object)
            start, out = datetime(period.year, period.month, period.day, tzinfo=UTC), reading.released
            since = datetime.fromtimestamp(out, UTC)
            facts.append(
                Fact(f"macro.{reading.id}", "", reading.id, float(reading.value), reading.unit, since, start, "macro")
            )
    if season.news_days:  # the last news on the universe or on no instrument in particular, oldest first
        universe = frozenset(day.universe)
        news = [one for one in day.view.news(season.news_days) if not one.instruments or universe & {*one.instruments}]
        for number, item in enumerate(news[-_MOST_NEWS:], start=1):
            alone = len(item.instruments) == 1 and item.instruments[0] in universe
            name, since = item.instruments[0] if alone else "", item.published_at
            facts.append(Fact(f"news.{number}", name, "news", item.text, "text", since, since, item.source))
    context = Context(
        completeness="complete", cutoff=at, cutoff_source="the season's clock", prompt="", facts=tuple(facts),
        series=series, instruments=tuple(listings[bars.instrument].as_record() for bars in series),
        constraints=limits_of(season), missing=tuple(f"{one.id}: {one.state}" for one in macro if one.state != "ok"),
    )  # fmt: skip
    offered, listed = _listed_instruments(context.instruments)
    blocks = material_blocks(replace(context, series=(), instruments=()))
    sections = {label: llm.fenced_text((label, text)) for label, text in blocks} | listed
    written = [*map(_series_written, series)]
    if series:
        sections["series"] = llm.fenced_text(("series", "\n".join(text for _, text in written)))
    raw_facts = ",".join([
        f'{{"as_of":{_json(fact.as_of)},"available_at":{_json(fact.available_at)},"field":{_json(fact.field)},"id":'
        f'{_json(fact.id)},"instrument":{_json(fact.instrument)},"note":{_json(fact.note)},"source":{_json(fact.source)},'
        f'"unit":{_json(fact.unit)},"value":{repr(fact.value) if type(fact.value) is float else _json(fact.value)}}}'
        for fact in facts
    ])  # fmt: skip
    return DayMaterial(context, f"[{raw_facts}]", f"[{','.join(raw for raw, _ in written)}]", offered, sections)


def agent_context(shared: DayMaterial, account: Account, nav: float, currency: str, prompt: str) -> Context:
    """Return the context of one agent: the shared one with its portfolio and prompt."""
    holdings = Portfolio(currency, account.cash, nav, positions=dict(sorted(account.positions.items())))
    return replace(shared.context, portfolio=holdings, prompt=prompt)


def context_json(context: Context, facts: str, series: str, instruments: str) -> str:
    """Return the canonical JSON of a context whose large parts are JSON already."""
    text = canonical_json(replace(context, facts=(), series=(), instruments=()))
    head, rest = text.split('"facts":[],"instruments":[],', 1)
    # ``series`` is the last key, so that no text in the context can be mistaken for it
    body = rest.removesuffix('"series":[]}')
    return f'{head}"facts":{facts},"instruments":{instruments},{body}"series":{series}}}'


def agent_sections(shared: DayMaterial, context: Context) -> list[Text]:
    """Return the sections of an agent's prompt in the order of `material_blocks`; shared sections are reused."""
    blocks = dict(material_blocks(replace(context, facts=(), series=(), instruments=(), constraints=())))
    sections: list[Text] = []
    for label in ("situation", "constraints", "instruments", "holdings", "facts", "series", "prompt"):
        if label in blocks:
            sections.append(llm.fenced_text((label, blocks[label])))
        elif label in shared.sections and label not in ("situation", "prompt"):
            sections.append(shared.sections[label])
    return sections


def agent_prompt(season: Season, agent: str, notes: Sequence[str], actions: Sequence[str] = ()) -> str:
    """Return an agent's prompt of a day: the season's, how orders fill, and which of its last ones did not fill."""
    at = "open" if season.rules.fill == "next_open" else "close"
    beyond = "rejected" if season.rules.excess == "reject" else "cut to what is allowed"
    lines = [
        season.instructions(agent).strip(),
        f"Orders fill at the {at} of the next trading day; one beyond cash, holding or limits is {beyond}.",
    ]
    for title, rows in (
        ("Of your last orders, these were not carried out:", notes),
        ("Splits and dividends of what you hold, since the last day:", actions),
    ):
        if rows:
            lines.append("\n".join([title, *map("- {}".format, rows)]))
    return "\n\n".join(lines)


@lru_cache(maxsize=8)
def _listed_instruments(instruments: tuple[Instrument, ...]) -> tuple[str, dict[str, Text]]:
    """Return the instruments of a day as JSON and as a prompt section; cached, because they rarely change."""
    alone = Context(completeness="complete", cutoff=_ANY_TIME, cutoff_source="", prompt="", instruments=instruments)
    blocks = {label: text for label, text in material_blocks(alone) if label == "instruments"}
    return canonical_json(instruments), {label: llm.fenced_text((label, text)) for label, text in blocks.items()}


def _series_of(season: Season, day: Day, owned: Collection[str]) -> tuple[Series, ...]:
    """Return the last bars of the shown instruments; a field that some bar lacks is left out."""
    fields = {name: shown_prices(values) for name, values in day.bars.items()}
    shown = fields.pop("close")
    present = np.isfinite(shown)
    # Most instruments have a close on every day, and are cut out together.
    covered = present[-season.bars :].all(axis=0) & (shown.shape[0] >= season.bars)
    last = shown[-season.bars :].T.tolist()
    others = {name: values[-season.bars :].T.tolist() for name, values in fields.items()}
    times = _closes_of(day.days[-season.bars :].tobytes(), min(season.bars, day.days.size))
    series = []
    for at, name in enumerate(day.universe):
        if covered[at]:
            stamps, close = times, tuple(last[at])
            more = {field: values[at] for field, values in others.items()}
        else:
            rows = np.flatnonzero(present[:, at])[-season.bars :]
            stamps, close = _closes_of(day.days[rows].tobytes(), rows.size), tuple(shown[rows, at].tolist())
            more = {field: values[rows, at].tolist() for field, values in fields.items()}
        offered = name in day.quotes and len(close) >= FEWEST_BARS
        if close and (offered or name in owned):
            complete = {field: tuple(values) for field, values in more.items() if all(map(math.isfinite, values))}
            series.append(Series(name, INTERVAL_S, stamps, close, **complete))
    return tuple(series)


@lru_cache(maxsize=64)
def _closes_of(raw: bytes, count: int) -> tuple[datetime, ...]:
    """Return the closing times of days; nearly all instruments of a day share them."""
    days: list[date] = np.frombuffer(raw, dtype="datetime64[D]", count=count).astype(object).tolist()
    return tuple(datetime(day.year, day.month, day.day, tzinfo=UTC) + _CLOSE for day in days)


@lru_cache(maxsize=1024)
def _period_end(period: str) -> datetime | None:
    """Return the last day of a period such as 2024, 2024-Q1 or 2024-03, or the day itself; None for other texts."""
    match = _PERIOD.fullmatch(period)
    if match is None:
        return None
    year, month = int(match["year"]), 3 * int(match["quarter"]) if match["quarter"] else int(match["month"] or 12)
    try:
        first = datetime(year, month, int(match["day"] or 1), tzinfo=UTC)
    except ValueError:
        return None
    return first if match["day"] else datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC) - timedelta(days=1)


def limits_of(season: Season) -> tuple[Constraint, ...]:
    """Return the rules of a season as constraints on the portfolio."""
    rules = season.rules
    limits: list[tuple[str, float | None, str, str]] = [
        ("max_weight", rules.max_weight, "nav", "holding"),
        ("min_cash", 0.0, "nav", "portfolio"),
        ("max_leverage", rules.max_exposure, "multiple", "portfolio"),
        ("max_orders", float(rules.max_orders), "count", "portfolio"),
        ("allow_short", float(rules.short), "count", "portfolio"),
        ("whole_units", None if rules.fractional else rules.lot, "units", "portfolio"),
        ("fee", rules.cost_bps, "bps", "order"),
    ]
    return tuple(Constraint(kind, limit, unit, scope) for kind, limit, unit, scope in limits if limit is not None)


@lru_cache(maxsize=4096)
def _json(value: str | datetime | None) -> str:
    return canonical_json(value)


@lru_cache(maxsize=64)
def _times(times: tuple[datetime, ...]) -> tuple[str, tuple[str, ...]]:
    """Return times as JSON and as printed in prompts; nearly all series of a day share them."""
    return canonical_json(times), tuple(map(moment, times))


def _series_written(series: Series) -> tuple[str, str]:
    """Return a series as in `canonical_json` and as in `material_blocks`; its numbers are formatted once for both."""
    columns = {name: list(map(repr, getattr(series, name))) for name in FIELDS}
    times, moments = _times(series.times)
    close, high, low, opened, volume = (",".join(columns[name]) for name in ("close", "high", "low", "open", "volume"))
    raw = (
        f'{{"close":[{close}],"high":[{high}],"instrument":{_json(series.instrument)},"interval_s":'
        f'{series.interval_s},"low":[{low}],"open":[{opened}],"times":{times},"volume":[{volume}]}}'
    )
    head = row(("bars", str(len(series.times)), series.instrument, str(series.interval_s)))
    filled = [name for name in FIELDS if columns[name]]
    rows = map("\t".join, zip(moments, *(columns[name] for name in filled), strict=True))
    return raw, f"{head}\n{row(('time', *filled))}\n" + "\n".join(rows)


AgentDay = tuple[AgentSpec, Context, str]
"""One agent on one day, with the id of its context."""


def agent_calls(season: Season, day: date, agent_day: AgentDay, shared: DayMaterial) -> list[PlannedDecision]:
    """Return the planned decisions of an agent about one day, one for each replicate."""
    spec, context, context_id = agent_day
    # An external agent is sent the context as JSON, as in a study.
    shown = llm.envelope_of(context) if is_outside(spec.model) else llm.season_message(agent_sections(shared, context))
    week = period_of(str(day), "week")
    return [
        PlannedDecision(
            spec, llm.DecisionKey(season.name, week, trial, context_id), context,
            llm.agent_call(spec, shown, llm.SEASON_TEMPLATE, trial),
        )
        for trial in range(1, season.replicates + 1)
    ]  # fmt: skip


def ask_agents(
    folder: RunFolder, ledger: Ledger, season: Season, day: date, agents: Sequence[AgentDay], shared: DayMaterial,
    models: Mapping[str, Model], prices: Prices,
) -> list[tuple[Decision, float | None]]:  # fmt: skip
    """Ask every agent about one day in all replicates; returns the decisions, each with the seconds that it took."""
    planned, live = [item for each in agents for item in agent_calls(season, day, each, shared)], season.market.live
    advice = f"every day and reply so far is kept in {folder.path}; run the same command to resume"
    # Why agents cannot be called, by name; those that have answered already need not be available.
    absent: dict[str, str] = {}
    looked_at = [(item.spec.name, item.call) for item in planned if live or item.call.model.startswith(_ADDRESSES)]
    pending = {*ledger.pending([call.key for _, call in looked_at])}
    for name, call in looked_at:
        if call.key in pending and name not in absent and call.model in models:
            try:
                check_ready(models[call.model], call)
            except ModelError as exc:
                absent[name] = str(exc).partition("; ")[0]
    calls = [item.call for item in planned if item.spec.name not in absent]
    engine = agent_engine(season.engine, (spec for spec, _, _ in agents))
    summary = run_all(ledger, calls, models, engine, f"asking on {day}", first=False)
    if summary.interrupted:
        raise StoppedError(f"stopped: {advice}")
    failed = {failure.key: failure.reason for failure in summary.failed}
    replies = dict(ledger.replies([item.call.key for item in planned]))
    budget, stopped = budget_of(models), {}
    if live and summary.stopped and not (budget is not None and budget.stopped):
        # providers that stopped answering: a live season continues without them
        stopped = {line.partition(" ")[0].rstrip(":"): line.partition("; ")[0] for line in summary.stopped}
    elif summary.stopped or summary.left:
        reason = "; ".join(summary.stopped) or f"{summary.left} calls were given up elsewhere"
        raise ModelError(f"{reason}; {advice}", retryable=True)
    for item in planned:
        reason = stopped.get(provider_of(item.call.model), "")
        if reason and item.call.key not in replies:
            absent[item.spec.name] = reason
    if len(absent) == len(agents):
        reason = "; ".join(dict.fromkeys(absent.values()))
        raise ModelError(f"no agent could be called on {day} ({reason}); {advice}", retryable=True)
    batched, decisions = ledger.batches.answered_in_batches(replies), []
    for item in planned:
        (name, trial), key = (item.spec.name, item.place.number), item.call.key
        lost = key not in replies and name in absent
        reason = absent.get(name) or failed.get(key, "no reply")
        reply = replies.get(key) or Reply(reason, item.call.model, finish="failed")
        base = item.decision(reply, prices, key in batched)
        raw = None if lost else base.call.raw_object  # no call was made
        decision = replace(
            base, record_id=f"{season.name}-{day}-{name}{'' if trial == 1 else f'-r{trial}'}",
            episode_id=f"{season.name}-{day}", replicate=trial, flags=(*base.flags, llm.ABSENT) if lost else base.flags,
            call=replace(base.call, seconds=None, timing_source="absent", raw_object=raw),
            provenance=Provenance(source="assaymark season"),
        )  # fmt: skip
        decisions.append((decision, base.call.seconds))
    return decisions
