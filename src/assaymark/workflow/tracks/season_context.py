"""What an agent of a season is shown and asked on one day, and what a season left in its tables."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from assaymark.agents.llm import ABSENT, LLMAgent, Place, fenced, season_call, season_message
from assaymark.claims.season_plan import FEWEST_BARS, Season
from assaymark.engine import CallSpec, Ledger, Model, Reply
from assaymark.engine.calls import Text
from assaymark.engine.prices import Prices
from assaymark.engine.providers.http_agent import is_outside, patience
from assaymark.engine.providers.registry import check_ready
from assaymark.engine.rate_limits import provider_of
from assaymark.errors import ModelError, StoppedError
from assaymark.judging.season.plans import (
    ScoringPlan,
    applicable,
)
from assaymark.judging.season.record import ACTION, StepRecord
from assaymark.market import Filing, Listing
from assaymark.market.history import FIELDS, Day, shown_prices
from assaymark.portfolio.broker import Book
from assaymark.prompting import material_blocks, moment, row
from assaymark.protocol import AgentSpec
from assaymark.records import (
    Agent,
    Constraint,
    Context,
    Decision,
    Fact,
    Instrument,
    Outcome,
    Portfolio,
    Provenance,
    Series,
    canonical_json,
)
from assaymark.workflow.ask import purse_of, run_all
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import DECISIONS, OUTCOMES, Store
from assaymark.workflow.tracks.season_lock import stored_season
from assaymark.workflow.tracks.season_records import (
    BASELINES,
    CHECKS,
    FILLS,
    NAVS,
    REJECTIONS,
    TIMES,
    SeasonCheck,
    SeasonNav,
    SeasonRejection,
    stated_book,
)

if TYPE_CHECKING:
    from assaymark.workflow.tables import Table
    from assaymark.workflow.tracks.season_lock import StoredSeason

INTERVAL_S: Final = 86_400
_CLOSE: Final = timedelta(hours=21)
_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MOST_NEWS: Final = 30
_PERIODS: Final = 4
"""Periods of each filed field that are shown: the newest ones, a year of quarters."""

_PERIOD: Final = re.compile(r"(?P<year>\d{4})(?:-Q(?P<quarter>[1-4])|-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?")


@dataclass(frozen=True, slots=True, eq=False)
class DayMaterial:
    """What all agents are shown on a day. ``held`` are instruments that are only shown because somebody holds them."""

    context: Context
    facts: str
    series: str
    instruments: str
    sections: dict[str, Text]


def day_material(season: Season, day: Day, held: Collection[str]) -> DayMaterial:
    """The shared material of a day: instruments that can be traded or are held, with their bars, splits, dividends,
    sector and filings, the economy and news.
    """
    lines = _bars(season, day, held)
    series = tuple(lines.values())
    known = {instrument.id: instrument for instrument in day.view.instruments}
    macro, at = day.view.all_macro(), day.moment
    prices = tuple(
        Fact(id=f"{one.instrument}.price", instrument=one.instrument, field="price", value=one.close[-1], unit="price",
             available_at=at, as_of=one.times[-1], source="close")
        for one in series
    )  # fmt: skip
    others = [fact for one in series for fact in _about(day, known[one.instrument], one)]
    for reading in macro:  # as it reads now; a series that is stale or not out yet is among what is missing
        if reading.value is not None and reading.period is not None and reading.released is not None:
            period = reading.period.astype("datetime64[D]").astype(object)
            others.append(
                Fact(
                    id=f"macro.{reading.id}", instrument="", field=reading.id, value=float(reading.value),
                    unit=reading.unit, available_at=datetime.fromtimestamp(reading.released, UTC),
                    as_of=datetime(period.year, period.month, period.day, tzinfo=UTC), source="macro",
                )
            )  # fmt: skip
    if season.news_days:  # the last news about the universe or about nobody in particular, oldest first
        universe = frozenset(day.universe)
        news = [one for one in day.view.news(season.news_days) if not one.instruments or universe & {*one.instruments}]
        for number, item in enumerate(news[-_MOST_NEWS:], start=1):
            named = item.instruments
            others.append(
                Fact(
                    id=f"news.{number}", instrument=named[0] if len(named) == 1 and named[0] in universe else "",
                    field="news", value=item.text, unit="text", available_at=item.published_at,
                    as_of=item.published_at, source=item.source,
                )
            )  # fmt: skip
    context = Context(
        completeness="complete", cutoff=at, cutoff_source="the season's clock", prompt="", facts=(*prices, *others),
        series=series, instruments=tuple(known[name].as_record() for name in lines), constraints=limits_of(season),
        missing=tuple(f"{one.id}: {one.state}" for one in macro if one.state != "ok"),
    )  # fmt: skip
    offered, listed = _offered(context.instruments)
    sections = {
        label: fenced((label, text)) for label, text in material_blocks(replace(context, series=(), instruments=()))
    }
    sections |= listed
    written = [*map(_series_written, series)]
    if series:
        sections["series"] = fenced(("series", "\n".join(text for _, text in written)))
    facts = [
        f'{{"as_of":{_json(price.as_of)},"available_at":{_json(at)},"field":"price","id":{_json(price.id)},"instrument":'
        f'{_json(price.instrument)},"note":"","source":"close","unit":"price","value":{price.value!r}}}'
        for price in prices
    ]
    return DayMaterial(
        context, "[" + ",".join(filter(None, [*facts, canonical_json(others)[1:-1]])) + "]",
        "[" + ",".join(raw for raw, _ in written) + "]", offered, sections,
    )  # fmt: skip


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


def told(season: Season, agent: str, notes: Sequence[str], actions: Sequence[str] = ()) -> str:
    """The text that an agent is given on a day: what it was told, how orders fill, and what became of its last ones."""
    rules = season.rules
    at = "open" if rules.fill == "next_open" else "close"
    beyond = "rejected" if rules.excess == "reject" else "cut to what is allowed"
    lines = [
        season.told(agent).strip(),
        f"Orders fill at the {at} of the next trading day; one beyond cash, holding or limits is {beyond}.",
    ]
    if notes:
        lines.append("\n".join(["Of your last orders, these were not carried out:", *(f"- {note}" for note in notes)]))
    if actions:
        lines.append(
            "\n".join(["Splits and dividends of what you hold, since the last day:", *map("- {}".format, actions)])
        )
    return "\n\n".join(lines)


@lru_cache(maxsize=8)
def _offered(instruments: tuple[Instrument, ...]) -> tuple[str, dict[str, Text]]:
    """The instruments of a day as JSON and as a prompt section: hardly ever others than on the day before."""
    alone = Context(completeness="complete", cutoff=_ANY_TIME, cutoff_source="", prompt="", instruments=instruments)
    blocks = {label: text for label, text in material_blocks(alone) if label == "instruments"}
    return canonical_json(instruments), {label: fenced((label, text)) for label, text in blocks.items()}


def _bars(season: Season, day: Day, held: Collection[str]) -> dict[str, Series]:
    """The last bars of the instruments that are shown, by name; a field that some bar lacks is left out."""
    fields = {name: shown_prices(values) for name, values in day.bars.items()}
    shown = fields.pop("close")
    there = np.isfinite(shown)
    # Of most instruments there is a close on every day: those are cut out together.
    whole = there[-season.bars :].all(axis=0) & (shown.shape[0] >= season.bars)
    last = shown[-season.bars :].T.tolist()
    others = {name: values[-season.bars :].T.tolist() for name, values in fields.items()}
    times = _closes_of(day.days[-season.bars :].tobytes(), min(season.bars, day.days.size))
    found = {}
    for at, name in enumerate(day.universe):
        if whole[at]:
            own, close = times, tuple(last[at])
            more = {field: values[at] for field, values in others.items()}
        else:
            rows = np.flatnonzero(there[:, at])[-season.bars :]
            own, close = _closes_of(day.days[rows].tobytes(), rows.size), tuple(shown[rows, at].tolist())
            more = {field: values[rows, at].tolist() for field, values in fields.items()}
        offered = name in day.quotes and len(close) >= FEWEST_BARS
        if close and (offered or name in held):
            kept = {field: tuple(values) for field, values in more.items() if all(map(math.isfinite, values))}
            found[name] = Series(instrument=name, interval_s=INTERVAL_S, times=own, close=close, **kept)
    return found


@lru_cache(maxsize=64)
def _closes_of(raw: bytes, count: int) -> tuple[datetime, ...]:
    """The closing times of days; nearly all instruments of a day share them."""
    days: list[date] = np.frombuffer(raw, dtype="datetime64[D]", count=count).astype(object).tolist()
    return tuple(datetime(one.year, one.month, one.day, tzinfo=UTC) + _CLOSE for one in days)


def _about(day: Day, listing: Listing, series: Series) -> Iterator[Fact]:
    """What is known of one instrument beside its bars: its sector, splits and dividends within them, and filings."""
    name = listing.id
    if listing.sector:
        yield Fact(
            id=f"{name}.sector", instrument=name, field="sector", value=listing.sector, unit="text",
            available_at=day.moment, source="listing",
        )  # fmt: skip
    for one in day.actions.get(name, ()):
        closed = datetime(one.ex_date.year, one.ex_date.month, one.ex_date.day, tzinfo=UTC) + _CLOSE
        if closed < series.times[0]:
            continue
        said = (("split", one.split, "multiple"),) if one.split != 1.0 else ()
        paid = (("dividend", one.dividend, "price"),) if one.dividend else ()
        for field, value, unit in (*said, *paid):
            yield Fact(
                id=f"{name}.{field}.{one.ex_date}", instrument=name, field=field, value=value, unit=unit,
                available_at=min(closed, day.moment), as_of=closed - _CLOSE, source=ACTION,
            )  # fmt: skip
    filed: dict[str, list[Filing]] = {}
    for filing in day.view.fundamentals(name):  # by period
        filed.setdefault(filing.field, []).append(filing)
    for filing in (filing for ones in filed.values() for filing in ones[-_PERIODS:]):
        ends = _end_of(filing.period)
        yield Fact(
            id=f"{name}.{filing.field}.{filing.period}", instrument=name, field=filing.field,
            value=float(filing.value), unit=filing.unit, available_at=filing.filed_at, as_of=ends, source="filing",
            note="" if ends else f"period {filing.period}",
        )  # fmt: skip


@lru_cache(maxsize=1024)
def _end_of(period: str) -> datetime | None:
    """The last day of a period such as 2024, 2024-Q1 or 2024-03, or the day that it names; None for other words."""
    found = _PERIOD.fullmatch(period)
    if found is None:
        return None
    year, month = int(found["year"]), 3 * int(found["quarter"]) if found["quarter"] else int(found["month"] or 12)
    if not 1 <= month <= 12:
        return None
    if found["day"]:
        try:
            return datetime(year, month, int(found["day"]), tzinfo=UTC)
        except ValueError:
            return None
    return datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC) - timedelta(days=1)


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


@lru_cache(maxsize=4096)
def _json(value: str | datetime | None) -> str:
    return canonical_json(value)


@lru_cache(maxsize=64)
def _times(times: tuple[datetime, ...]) -> tuple[str, tuple[str, ...]]:
    """Times as JSON and as prompts print them; nearly all series of a day share them."""
    return canonical_json(times), tuple(map(moment, times))


def _series_written(series: Series) -> tuple[str, str]:
    """A series as `canonical_json` and as the section of `material_blocks`; its numbers are written once for both."""
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


# --- What a season left behind, read from the tables of its run folder alone: what is judged, measured and shown ------


T = TypeVar("T")

_LARGE: Final = ("facts", "series", "instruments")


@dataclass(frozen=True, slots=True, eq=False)
class SeasonMaterial:
    """A season as its tables hold it."""

    season: Season
    plan_hash: str
    universe: tuple[str, ...]
    agents: tuple[Agent, ...]
    contexts: Mapping[str, Context]
    steps: Mapping[str, tuple[StepRecord, ...]]
    replicates: Mapping[tuple[str, int], tuple[StepRecord, ...]]
    outcomes: tuple[Outcome, ...]
    navs: Mapping[str, tuple[SeasonNav, ...]]
    baselines: Mapping[str, tuple[SeasonNav, ...]]
    checks: tuple[SeasonCheck, ...]
    seconds: Mapping[str, float | None]
    rejections: Mapping[str, tuple[SeasonRejection, ...]]
    partial: bool

    @property
    def scoring(self) -> ScoringPlan:
        """The scoring plan of the season, without the parts for which its contexts have no field."""
        return applicable(self.season.scoring_plan, self.contexts.values())


def season_material(folder: RunFolder) -> SeasonMaterial:
    """Everything that a season left in its tables."""
    return material_of(Store(folder), stored_season(folder))


def material_of(store: Store, stored: StoredSeason) -> SeasonMaterial:
    """As `season_material`, for a season whose lock was read."""
    season = stored.season
    navs, times = _by_agent(store.read(NAVS)), {time.record_id: time for time in store.read(TIMES)}
    rejections = store.read(REJECTIONS)
    fills, refused = (  # by the decision that they are due to, in their order
        _grouped(sorted(rows, key=lambda row: (row.day, row.number)), "record_id")
        for rows in (store.read(FILLS), rejections)
    )

    def kept(table: Table[T]) -> list[T]:
        return [] if store.digest(table) is None else store.read(table)

    order = {one.name: at for at, one in enumerate(season.agents)}
    found: dict[tuple[str, int], list[Decision]] = defaultdict(list)
    for one in sorted(store.read(DECISIONS), key=lambda one: (one.decided_at, one.record_id)):
        if one.record_id in times and one.agent.id in order and one.derivation.kind == "honest":
            found[one.agent.id, one.replicate].append(one)
    decided = dict(sorted(found.items(), key=lambda item: (order[item[0][0]], item[0][1])))
    names = list(dict.fromkeys(agent for agent, _ in decided))

    def step(decision: Decision) -> StepRecord:
        """A decision with what the broker made of it. What was paid out on that day stands among the fills."""
        name, day = decision.record_id, times[decision.record_id].day
        if season.recorded:
            book, paid = stated_book(decision), []
        else:
            later = (one for one in navs.get(decision.agent.id, ()) if one.state == "ok" and one.day > day)
            nav = next(later, None)
            paid = [one for one in fills.get("", ()) if nav and (one.agent, one.day) == (nav.agent, nav.day)]
            book = None if nav is None else Book(nav.cash, nav.positions)
        made, rejected = (*paid, *fills.get(name, ())), tuple(refused.get(name, ()))
        return StepRecord(day=day, decision=decision, fills=made, rejections=rejected, book=book)

    shown = {one.context_id for ones in decided.values() for one in ones}
    contexts: dict[str, Context] = {}
    last: Context | None = None
    for name, context in store.each_context():
        if name in shown:  # what agents of one day share is in memory once
            same = {} if last is None else {part: getattr(last, part) for part in _LARGE}
            same = {part: value for part, value in same.items() if value == getattr(context, part)}
            contexts[name] = last = replace(context, **same) if same else context
    families = {one.name: one.family for one in season.agents}  # of records, the file's word counts for more
    replicates = {
        key: tuple(StepRecord(day=times[one.record_id].day, decision=one) for one in ones)
        for key, ones in decided.items()
    }
    return SeasonMaterial(
        season, stored.plan_hash, stored.universe,
        tuple(replace(decided[name, 1][0].agent, family=families[name]) for name in names), contexts,
        steps={name: tuple(map(step, decided[name, 1])) for name in names},
        replicates=replicates if season.replicates > 1 else {},
        outcomes=tuple(one for one in kept(OUTCOMES) if one.record_id in times),
        navs={name: navs.get(name, ()) for name in names}, baselines=_by_agent(kept(BASELINES)),
        checks=tuple(kept(CHECKS)), seconds={name: one.seconds for name, one in times.items()},
        rejections={name: tuple(rejection for rejection in rejections if rejection.agent == name) for name in names},
        partial=any(one.completeness != "complete" for one in contexts.values()),
    )  # fmt: skip


def _grouped(rows: Iterable[Any], name: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for item in rows:
        found[getattr(item, name)].append(item)
    return found


def _by_agent(rows: Iterable[SeasonNav]) -> dict[str, tuple[SeasonNav, ...]]:
    ordered = sorted(rows, key=lambda row: row.day)
    return {name: tuple(ones) for name, ones in _grouped(ordered, "agent").items()}


# --- The agents of a season on one day: each is asked once, and whatever came back, or did not, is a decision ---------


_MARGIN_S: Final = 10.0
_ADDRESSES: Final = ("http/", "https/")
_LANE: Final = 8  # few at once, so that the seconds of a decision are its own and not those of a queue


@dataclass(frozen=True, slots=True)
class Asked:
    """One agent before one day, with the id of its context."""

    spec: AgentSpec
    context: Context
    context_id: str


Call = tuple[Asked, int, CallSpec]
"""Whom, in which trial, and what."""


def ask_agents(
    folder: RunFolder, ledger: Ledger, season: Season, day: date, asked: Sequence[Asked], shared: DayMaterial,
    models: Mapping[str, Model], prices: Prices, progress: Progress = silent,
) -> list[tuple[Decision, float | None]]:  # fmt: skip
    """Ask every agent about one day, in as many replicates as the season has: the decisions, and their seconds.

    The seconds are measured, and so no part of a decision.
    """
    calls, live = [one for each in asked for one in calls_of(season, each, shared)], season.market.live
    kept = f"every day and reply so far is kept in {folder.path}, and the same command goes on"
    # An agent outside has its own patience; cut off before it, it would be asked again.
    outside = [patience(one.spec.args) + _MARGIN_S for one in asked if is_outside(one.spec.model)]
    lane = {
        "concurrency": min(season.engine.concurrency, _LANE),
        "deadline_s": max([season.engine.deadline_s, *outside]),
    }
    # Why agents cannot be asked, by their names; those that have answered already need not be there.
    absent: dict[str, str] = {}
    looked_at = [one for one in calls if live or one[2].model.startswith(_ADDRESSES)]
    pending = {*ledger.pending([call.key for _, _, call in looked_at])}
    for one, _, call in looked_at:
        if call.key in pending and one.spec.name not in absent and call.model in models:
            try:
                check_ready(models[call.model], call.args)
            except ModelError as exc:
                absent[one.spec.name] = str(exc).partition("; ")[0]
    specs = [call for one, _, call in calls if one.spec.name not in absent]
    engine = season.engine.model_copy(update=lane)
    summary = run_all(ledger, specs, models, engine, what=f"asking on {day}", progress=progress, first=False)
    if summary.interrupted:
        raise StoppedError(f"stopped: {kept}")
    failed = {one.key: one.reason for one in summary.failed}
    replies = dict(ledger.replies([call.key for _, _, call in calls]))
    purse, stopped = purse_of(models), {}
    if live and summary.stopped and not (purse is not None and purse.stopped):
        # providers that were not asked to the end: a live season goes on without them
        stopped = {line.partition(" ")[0].rstrip(":"): line.partition("; ")[0] for line in summary.stopped}
    elif summary.stopped or summary.left:
        why = "; ".join(summary.stopped) or f"{summary.left} calls were given up elsewhere"
        raise ModelError(f"{why}; {kept}", retryable=True)
    for one, _, call in calls:
        why = stopped.get(provider_of(call.model), "")
        if why and call.key not in replies:
            absent[one.spec.name] = why
    if len(absent) == len(asked):
        why = "; ".join(dict.fromkeys(absent.values()))
        raise ModelError(f"no agent could be asked on {day} ({why}); {kept}", retryable=True)
    batched = ledger.batches.answered_in_batches(replies)
    found = []
    for one, trial, call in calls:
        name, reply = one.spec.name, replies.get(call.key)
        lost = reply is None and name in absent
        if reply is None:
            reply = Reply(text=absent.get(name) or failed.get(call.key, "no reply"), model=call.model, finish="failed")
        batch = call.key in batched
        cost = prices.cost_of(call.model, reply.input_tokens, reply.output_tokens, reply.cached_tokens, batch)
        found.append(_decided(season, day, (one, trial, call), reply, cost, absent=lost))
    return found


def calls_of(season: Season, asked: Asked, shared: DayMaterial) -> list[Call]:
    """What an agent is asked about one day, once for each replicate."""
    message = season_message(agent_sections(shared, asked.context))
    return [
        (asked, trial, season_call(asked.spec, asked.context, message, trial))
        for trial in range(1, season.replicates + 1)
    ]


def _decided(
    season: Season, day: date, asked: Call, reply: Reply, cost: float | None, *, absent: bool
) -> tuple[Decision, float | None]:
    one, trial, call = asked
    week = day.isocalendar()
    place = Place(season.name, f"{week.year}-W{week.week:02d}", trial, one.context_id)
    found = LLMAgent(one.spec).decide(one.context, place, reply, key=call.key, cost_usd=cost)
    raw = None if absent else found.call.raw_object  # no such call was made
    decision = replace(
        found, record_id=f"{season.name}-{day}-{one.spec.name}{'' if trial == 1 else f'-r{trial}'}",
        episode_id=f"{season.name}-{day}", replicate=trial, flags=(*found.flags, ABSENT) if absent else found.flags,
        call=replace(found.call, seconds=None, timing_source="absent", raw_object=raw),
        provenance=Provenance(source="assaymark season"),
    )  # fmt: skip
    return decision, found.call.seconds
