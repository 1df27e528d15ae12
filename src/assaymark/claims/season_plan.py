"""Season files: their fields and checks, and seasons that follow from imported records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, time
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from assaymark.errors import InputError, Problem
from assaymark.judging.season.plans import DEFAULT_SCORING, EfficiencyScale, ScoringPlan, load_scoring, scoring_names
from assaymark.judging.season.record import BUDGET, LEAST_BUDGET
from assaymark.plan import (
    FEW_CONSECUTIVE,
    FEWEST_CLUSTERS,
    FEWEST_CONSECUTIVE,
    BiasRules,
    ClusterOrder,
    Frozen,
    Human,
    MissingLimits,
    OrderRules,
    plan_problems,
    read_plan,
    read_toml,
    refuse_version_1,
)
from assaymark.portfolio.broker import BrokerRules
from assaymark.protocol import AgentSpec, DatasheetLimits, EngineChoice, JudgeSpec, Name
from assaymark.records import content_id, duplicates, problems_of, record


def period_of(day: str, period: Literal["week", "month"]) -> str:
    """Return the period of a day: its ISO 8601 week, or its month."""
    if period == "month":
        return day[:7]
    week = date.fromisoformat(day[:10]).isocalendar()
    return f"{week.year}-W{week.week:02d}"


def period_preflight(
    days: Iterable[str], period: Literal["week", "month"], order: ClusterOrder = "consecutive"
) -> tuple[str, ...]:
    """Return a warning if a season of these days has too few periods to rank its agents; else nothing."""
    n = len({period_of(day, period) for day in days})
    serial = order == "consecutive"
    needed = FEWEST_CONSECUTIVE if serial else FEWEST_CLUSTERS
    if n >= needed:
        return ()
    more = f"{needed} that follow each other are needed, {FEW_CONSECUTIVE} for a claim without this condition"
    requirement = more if serial else f"{needed} are needed"
    return (f"{n} {period}{'' if n == 1 else 's'}: this season cannot rank agents; {requirement}",)


FEWEST_BARS = 20
"""Minimum closes before an instrument is offered."""

RECORDS: Final = "records"
"""The market source of a season of imported records, which are in its run folder."""


class SeasonMarket(Frozen):
    """Price source: ``synthetic``, the folder of a snapshot (`assaymark data`), or `RECORDS`."""

    source: str = "synthetic"
    seed: int = Field(default=0, ge=0, description="random seed of the synthetic market")
    live: bool = False
    format: str = Field(default="", max_length=60, description="format of imported records, as in assaymark import")
    track: str = Field(default="", max_length=120, description="market of imported records, if there are several")
    exclude_flags: tuple[Name, ...] = Field(default=(), description="flags whose records are left out")

    @model_validator(mode="after")
    def _source(self) -> SeasonMarket:
        if self.live and self.source in ("synthetic", RECORDS):
            verb = "are" if self.source == RECORDS else "market is"
            raise ValueError(f"live needs a source that grows; the {self.source} {verb} there whole")
        if self.source != RECORDS and (self.format or self.track or self.exclude_flags):
            raise ValueError(f'format, track and exclude_flags go with source = "{RECORDS}" (got {self.source!r})')
        if self.source == RECORDS and not self.format:
            raise ValueError("format: which importer made the records, such as aitrader")
        return self


class SeasonCalendar(Frozen):
    """First and last day, and the time of day (UTC) at which agents decide, after that day's bars are complete."""

    first: date
    last: date
    decide_at: time = Field(default=time(21, 30), description="time of decision in UTC, 21:00 or later")
    late_after_h: float = Field(
        default=48.0, gt=0, le=24 * 30, description="live: hours to wait for the data of a day after decide_at"
    )

    @model_validator(mode="after")
    def _ordered(self) -> SeasonCalendar:
        if self.first > self.last:
            raise ValueError(f"first must not be later than last (got {self.first} and {self.last})")
        return self

    @field_validator("decide_at")
    @classmethod
    def _after_the_close(cls, value: time) -> time:
        if value.tzinfo is not None:
            raise ValueError(f"is a time of day in UTC and takes no zone (got {value.isoformat()})")
        if value < time(21):
            raise ValueError(f"must be from 21:00 on, when the bars of a day are complete (got {value.isoformat()})")
        return value


class SeasonRules(Frozen):
    """The broker's rules (`assaymark.portfolio.broker.BrokerRules`), and the maximum number of orders per day."""

    fill: Literal["next_open", "close"] = Field(
        default="next_open", description="fill price: the open or the close of the next trading day"
    )
    cost_bps: float = Field(default=10.0, ge=0, lt=10_000)
    fractional: bool = True
    lot: float = Field(default=1.0, gt=0)
    short: bool = False
    max_weight: float | None = Field(default=None, gt=0, le=10)
    max_exposure: float = Field(default=1.0, gt=0, le=10)
    excess: Literal["reject", "cut"] = "reject"
    max_orders: int = Field(default=10, ge=1, le=50, description="orders of an agent a day; further ones are rejected")

    @property
    def broker(self) -> BrokerRules:
        """The rules as the broker's type. No order fills at a price from an earlier day."""
        return BrokerRules(**self.model_dump(exclude={"max_orders"}))


class SeasonJudging(Frozen):
    """Settings of grading other than the panel and the scoring plan."""

    period: Literal["week", "month"] = Field(default="week", description="graded period, beside the season")
    token_budget: int = Field(default=BUDGET, ge=LEAST_BUDGET, le=2_000_000)
    author_probe: bool = Field(default=True, description="ask judges to identify the author; not scored")
    alpha: float = Field(default=0.05, gt=0, lt=1)
    publish: float = Field(default=0.4, ge=-1, le=1, description="kappa needed to publish rankings")
    halt: float = Field(default=0.2, ge=-1, le=1, description="kappa below which no ranking is published")

    @model_validator(mode="after")
    def _gates(self) -> SeasonJudging:
        if self.halt > self.publish:
            raise ValueError(f"halt must not be higher than publish (got {self.halt} and {self.publish})")
        return self


class Season(Frozen):
    """A season file; see ``docs/season.md``."""

    version: Literal["2"] = "2"
    name: Name
    title: str = ""
    seed: int = Field(default=0, ge=0, description="random seed of resampling")
    agents: tuple[AgentSpec, ...] = Field(min_length=1)
    prompt: str = Field(default="", max_length=100_000, description="instructions to all agents")
    strategies: dict[Name, Annotated[str, Field(min_length=1, max_length=100_000)]] = Field(
        default_factory=dict, description="instructions to each agent, instead of one prompt"
    )
    market: SeasonMarket = SeasonMarket()
    universe: int | tuple[Name, ...] = Field(
        default=20, description="number of instruments, from the classes in turn, or their names"
    )
    capital: float = Field(default=100_000.0, gt=0, le=1e12)
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3,5}$")] = "USD"
    calendar: SeasonCalendar
    rules: SeasonRules = SeasonRules()
    bars: int = Field(default=30, ge=FEWEST_BARS, le=252, description="daily closes shown of each instrument")
    news_days: int = Field(default=5, ge=0, le=60, description="days of news shown; 0 for none")
    panel: tuple[JudgeSpec, ...] = ()
    scoring: str = DEFAULT_SCORING
    efficiency: EfficiencyScale = Field(default=EfficiencyScale(), description="definition of 100 points of efficiency")
    judging: SeasonJudging = SeasonJudging()
    inference: OrderRules = OrderRules()
    claims: BiasRules = BiasRules()
    missing: MissingLimits = MissingLimits()
    human: Human = Human()
    datasheets: DatasheetLimits | None = None
    replicates: int = Field(default=1, ge=1, le=50, description="decisions on identical input; the first one trades")
    engine: EngineChoice = EngineChoice()

    @model_validator(mode="after")
    def _consistent(self) -> Season:
        for field, names in (
            ("agents", [agent.name for agent in self.agents]),
            ("panel", [judge.name for judge in self.panel]),
            ("universe", [] if isinstance(self.universe, int) else list(self.universe)),
        ):
            if twice := duplicates(names):
                raise ValueError(f"{field}: each is named once (twice: {', '.join(twice)})")
        if odd := [agent.name for agent in self.agents if "/" in agent.name or agent.name.startswith(".")]:
            raise ValueError(f"agents: a name is part of record ids and holds no slash (got {', '.join(odd)})")
        if "panel" in [agent.name for agent in self.agents]:
            raise ValueError("agents: panel is what the judges are called together; choose another name")
        rate, other = self.judging.alpha, self.inference.alpha
        if rate != other:
            raise ValueError(f"judging.alpha and inference.alpha are one error rate; give one (got {rate} and {other})")
        asked: dict[str, list[str]] = {}
        for judge in self.panel:
            call = judge.model_dump_json(exclude={"name", "family", "trials"})
            asked.setdefault(judge.name if judge.human else call, []).append(judge.name)
        if same := next((names for names in asked.values() if len(names) > 1), None):
            field = "are asked the very same call, and one answer would count as several that agree"
            raise ValueError(f"panel: {' and '.join(same)} {field}; give them other models, seeds or args")
        if self.recorded and not self.strategies:
            return self  # the instructions of imported agents may be unknown
        if bool(self.prompt.strip()) == bool(self.strategies):
            raise ValueError("agents get either one prompt or one strategy each; give one of the two")
        names, strategies = sorted(agent.name for agent in self.agents), sorted(self.strategies)
        if strategies and strategies != names:
            detail = f"agents: {', '.join(names)}; got {', '.join(strategies)}"
            raise ValueError(f"strategies: one for each agent and no other ({detail})")
        return self

    @model_validator(mode="before")
    @classmethod
    def _alpha_given_once(cls, raw: Any) -> Any:
        tables = [raw.get(name, {}) for name in ("judging", "inference")] if isinstance(raw, dict) else []
        if not tables or not all(isinstance(table, dict) for table in tables):
            return raw
        judging, inference = tables
        if "alpha" in judging:
            return {**raw, "inference": {"alpha": judging["alpha"], **inference}}
        return {**raw, "judging": {**judging, "alpha": inference["alpha"]}} if "alpha" in inference else raw

    @field_validator("universe")
    @classmethod
    def _some_universe(cls, value: int | tuple[str, ...]) -> int | tuple[str, ...]:
        if (value if isinstance(value, int) else len(value)) < 1:
            raise ValueError(f"needs at least one instrument (got {value!r})")
        return value

    @field_validator("scoring")
    @classmethod
    def _known_scoring(cls, value: str) -> str:
        if value not in scoring_names():
            raise ValueError(f"is not a scoring plan; known: {', '.join(scoring_names())}")
        return value

    @property
    def scoring_plan(self) -> ScoringPlan:
        """The scoring plan, with the efficiency scale of the file."""
        plan = load_scoring(self.scoring)
        rule = plan.efficiency.model_copy(update=self.efficiency.model_dump())
        return plan.model_copy(update={"efficiency": rule})

    @property
    def model_judges(self) -> tuple[JudgeSpec, ...]:
        """The judges of the panel that are models; the others are people."""
        return tuple(judge for judge in self.panel if not judge.human)

    @property
    def recorded(self) -> bool:
        """True if the season consists of imported records."""
        return self.market.source == RECORDS

    @property
    def has_books(self) -> bool:
        """True if portfolios are available; False for records without a track, which have no prices or capital."""
        return not self.recorded or bool(self.market.track)

    @property
    def cluster_order(self) -> ClusterOrder:
        """The order of periods: consecutive in time unless the file sets another."""
        return self.inference.cluster_order or "consecutive"

    def instructions(self, agent: str) -> str:
        """Return the instructions of an agent: its own strategy, or else the prompt."""
        return self.strategies.get(agent, self.prompt)


def parse_season(text: str, source: str = "season.toml") -> Season:
    """Parse the text of a season file; raises `InputError` with every problem."""
    return read_plan(Season, read_toml(text, source), source)


def season_hash(season: Season, texts: Mapping[str, str], inputs: Mapping[str, str]) -> str:
    """Return the sha256 of the canonical season, the digests of every text it uses, and the data it is run on."""
    plan = season.model_dump(mode="json", exclude={"engine": True, "human": {"grades"}})
    return content_id({"season": plan, "texts": dict(texts), "inputs": dict(inputs)})


FOLLOWS: Final = (
    "universe", "capital", "currency", "calendar", "rules", "bars", "news_days", "replicates", "strategies",
)  # fmt: skip
"""Fields of a season file that are derived from imported records."""

_STAND_IN: Final = {
    "agents": [{"name": "agent", "family": "family", "model": f"{RECORDS}/agent"}],
    "calendar": {"first": "2000-01-01", "last": "2000-01-01"},
}


class RecordedAgent(Frozen):
    """One agent of imported records, and its family unless the importer's applies."""

    name: Name
    family: Name | None = None


@record
class RecordedFields:
    """Fields of a season that are derived from imported records: each agent's (name, family, model), and the rest."""

    agents: tuple[tuple[str, str, str], ...]
    universe: tuple[str, ...]
    first: str
    last: str
    replicates: int = 1
    capital: float | None = None
    currency: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RecordedFile:
    """A parsed season file for imported records; ``market``, ``panel`` and ``agents`` lack what could not be parsed."""

    raw: Mapping[str, Any]
    market: SeasonMarket | None
    panel: tuple[JudgeSpec, ...] | None
    agents: tuple[RecordedAgent, ...]
    problems: tuple[Problem, ...]


def is_recorded(text: str, source: str) -> bool:
    """True if the market source of a season file is imported records."""
    market = read_toml(text, source).get("market")
    return isinstance(market, dict) and market.get("source") == RECORDS


def read_recorded(text: str, source: str) -> RecordedFile:
    """Parse a season file for imported records, and collect the problems of the file itself."""
    raw = read_toml(text, source)
    refuse_version_1(raw, source)
    problems = [
        Problem(name, "follows from the records; leave it out (or market.source, for your own season)")
        for name in FOLLOWS
        if name in raw
    ]
    rest = {name: value for name, value in raw.items() if name not in (*FOLLOWS, "agents")}
    panel: tuple[JudgeSpec, ...] | None = None
    try:
        panel = Season.model_validate(rest | _STAND_IN).panel
    except ValidationError as exc:
        problems += plan_problems(exc, Season)
    agents: list[RecordedAgent] = []
    entries = raw.get("agents", [])
    if not isinstance(entries, list):
        problems.append(Problem("agents", f"must be tables [[agents]] (got {type(entries).__name__})"))
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        try:
            agents.append(RecordedAgent.model_validate(entry))
        except ValidationError as exc:
            wrong = problems_of(exc, RecordedAgent)
            problems += [Problem(f"agents.{number}.{problem.where}", problem.what) for problem in wrong]
    if twice := duplicates([agent.name for agent in agents]):
        problems.append(Problem("agents", f"each is named once (twice: {', '.join(twice)})"))
    market: SeasonMarket | None = None
    with suppress(ValidationError):
        market = SeasonMarket.model_validate(rest["market"])
    return RecordedFile(rest, market, panel, tuple(agents), tuple(problems))


def recorded_season(file: RecordedFile, follows: RecordedFields, source: str) -> Season:
    """Build the season of a file and its imported records; raises `InputError` with the file's problems."""
    if file.problems:
        raise InputError(source, list(file.problems))
    makers = {name: (family, model) for name, family, model in follows.agents}
    chosen = file.agents or tuple(RecordedAgent(name=name) for name in makers)
    agents = [
        {"name": spec.name, "family": spec.family or makers[spec.name][0], "model": f"{RECORDS}/{makers[spec.name][1]}"}
        for spec in chosen
    ]
    stated = {"capital": follows.capital, "currency": follows.currency}
    table = {
        **file.raw,
        "agents": agents,
        "universe": list(follows.universe),
        "calendar": {"first": follows.first, "last": follows.last},
        "replicates": follows.replicates,
        **{name: value for name, value in stated.items() if value is not None},
    }
    return read_plan(Season, table, source)
