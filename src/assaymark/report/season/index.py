"""Look-ups of a season for its pages: grades, rows and measurements by name, and the words of one language."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from assaymark.claims.messages import Catalogue, Phrase, Value, english
from assaymark.claims.season_claims import SeasonVerdicts
from assaymark.claims.season_plan import RECORDS, Season
from assaymark.judging.season.plans import ScoringPlan, SubComponent
from assaymark.judging.season.record import AuditLine, StepRecord
from assaymark.judging.season.scoring import SeasonRow
from assaymark.protocol import AgentSpec
from assaymark.records import EvidenceState, Measurement
from assaymark.report.blocks import Filter, MeasurementIndex, by_name
from assaymark.report.charts.paths import Floats
from assaymark.report.measurements import MeasurementRow, measurement_links, quantities, table_rows
from assaymark.report.page import by_file, file_stems
from assaymark.text import NBSP, clean, prose


@dataclass(frozen=True, slots=True)
class SeasonPath:
    """Net asset values day by day, in currency; ``start`` is the value before the first day."""

    name: str
    baseline: bool
    start: float
    days: tuple[str, ...]
    nav: tuple[float, ...]

    def on(self, days: Sequence[str]) -> Floats:
        """The values before and on these days, each kept until the next; before later days, that of the first."""
        known = dict(zip(self.days, self.nav, strict=True))
        before = [known[day] for day in self.days if day <= days[0]] if self.days[:1] < (*days[:1],) else []
        values = [before[-1] if before else self.start]
        for day in days:
            values.append(known.get(day, values[-1]))
        return np.array(values)


@dataclass(frozen=True, slots=True)
class SeasonClaimLine:
    """One checkable statement of a record, with its state by the numeric fact check and by the judges."""

    number: int
    day: str
    quote: str  # hostile
    saw: str  # the fields of the agent's context that decided
    numbers: EvidenceState | None  # by the numeric fact check; None for a quotation without a number
    rule: str = ""
    judges: Mapping[str, str] = field(default_factory=dict)  # the states by judge, for those that checked it
    which: str = ""  # the number that the state refers to
    start: int = 0  # its position in the quotation

    @property
    def disagree(self) -> bool:
        """True if the fact check and the judges, or two judges, do not give the same state."""
        layers = {*self.judges.values()}
        if self.numbers is not None and self.numbers != "own_action":
            good = self.numbers in ("supported", "derivable", "rule")
            layers.add("supported" if good else "contradicted" if self.numbers == "contradicted" else "not_verifiable")
        return len(layers) > 1


@dataclass(frozen=True, slots=True)
class SeasonGradeView:
    """The grade that one judge gave one agent's whole record: axes and parts in points, by name."""

    agent: str
    judge: str
    state: str  # ``ok``, or the reason for no grades; then all numbers are absent
    composite: float | None = None
    axes: Mapping[str, float] = field(default_factory=dict)
    reasoning: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, float] = field(default_factory=dict)
    capped: Mapping[str, float] = field(default_factory=dict)  # parts that the fact check lowered, as given
    outcome: float | None = None
    outcome_state: str = "none"
    data_reliability: float | None = None
    lookahead: str | None = None
    lookahead_reason: str = ""
    verdict: str = ""  # the judge's words, like the summary: hostile
    summary: str = ""
    reason: str = ""
    parts: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class SeasonRun:
    """A judged, measured and decided season, as its site shows it."""

    plan: Season
    plan_hash: str
    locked_at: str
    software: str
    first: str
    last: str
    days: int
    universe: tuple[str, ...]
    scoring: ScoringPlan
    paths: tuple[SeasonPath, ...]
    steps: Mapping[str, tuple[StepRecord, ...]]  # by agent, in the order of the days, like the ledger
    ledger: Mapping[str, tuple[SeasonClaimLine, ...]]
    grades: tuple[SeasonGradeView, ...]
    table: tuple[SeasonRow, ...]  # totals, bands and tiers; ``decided`` says which are printed
    decided: SeasonVerdicts
    measurements: tuple[Measurement, ...]  # every number on a page except facts
    blinding: tuple[AuditLine, ...]  # texts that blinding replaced and kept, for every agent
    source: str = ""  # the operator; empty for seasons run here
    partial: bool = False  # part of the agents' context was not stored
    notes: tuple[Phrase, ...] = ()  # remarks for readers besides its claims
    planned: int = 0  # all days of the calendar; 0 if future days are unknown
    decided_at: str = ""
    next_decision: str = ""  # in UTC, like the last one; empty if there is none
    sheets: Mapping[str, str] = field(default_factory=dict)  # paths of the datasheets of its judges
    url: str = ""  # the address of the site, for feeds and previews
    publications: tuple[Mapping[str, Any], ...] = ()  # the verdicts of every publication, this one last
    records: Mapping[tuple[str, str, str], str] = field(default_factory=dict)  # (kind, who, about) to address
    closes: Mapping[str, float] = field(default_factory=dict)  # at which holdings are valued; empty if unknown


_SENTENCE: Final = 900
_WORDS: Final = range(2, 13)


@dataclass(frozen=True, slots=True)
class Language:
    """The words of one language. Calling it renders a sentence of the pages; `text` renders one stored with the season.

    >>> words = Language(english())
    >>> words.range(2, 4), words.percent(-0.0184), words.amount(14500)
    ('2 to 4', '−1.8\\xa0%', '14,500')
    """

    catalogue: Catalogue
    days: dict[tuple[str, bool], str] = field(default_factory=dict, compare=False, repr=False)  # as `day` puts them

    def __call__(self, key: str, n: Value | None = None, /, **values: Value) -> str:
        """A sentence of the pages. Values are not escaped: clean those that come from a record."""
        return self.catalogue.say(key, n, **values).replace(" %", f"{NBSP}%")

    def say(self, key: str, n: Value | None = None, /, **values: Value) -> str:
        """A sentence of the agent pages."""
        return self(f"model.{key}", n, **values)

    def has(self, key: str) -> bool:
        """True if the language has such a key."""
        return key in self.catalogue.texts

    def text(self, sentence: Phrase, limit: int = _SENTENCE) -> str:
        """A stored sentence of the season in words, safe to show."""
        return prose(self.catalogue.render(sentence), limit).replace(" %", f"{NBSP}%")

    def texts(self, sentences: Iterable[Phrase]) -> str:
        """Stored sentences of the season, joined."""
        return " ".join(map(self.text, sentences))

    def term(self, group: str, name: str) -> str:
        """The word for a known name, such as a band; a name that the language does not have stays unchanged.

        >>> Language(english()).term("month", "1"), Language(english()).term("month", "Pluviôse")
        ('January', 'Pluviôse')
        """
        return self(f"{group}.{name}") if self.has(f"{group}.{name}") else clean(name, 80)

    def word(self, group: str, name: str) -> str:
        """Like `term`, for names on agent pages, which are written in several ways.

        >>> words = Language(english())
        >>> words.word("flag", "no-answer"), words.word("flag", "unheard of")
        ('no answer', 'unheard of')
        """
        key = f"model.{group}.{name.replace('-', '_').replace(' ', '_').lower()}"
        return self(key) if self.has(key) else clean(name, 80)

    def part(self, part: SubComponent) -> str:
        """The name of a part of an axis; one that the language does not have keeps the title of its plan."""
        return self(f"part.{part.name}") if self.has(f"part.{part.name}") else clean(part.title, 80)

    def of(self, n: int, name: str) -> str:
        """The noun that follows a count, in singular or plural.

        >>> Language(english()).of(12, "gradings"), Language(english()).of(1, "gradings")
        ('gradings', 'grading')
        """
        return self.term("of_one" if n == 1 and self.has(f"of_one.{name}") else "of", name)

    def names(self, names: Iterable[str]) -> str:
        """Names as a list in words, safe to show."""
        return self.catalogue.names([clean(name, 60) for name in names])

    def number(self, value: float, digits: int = 1, sign: bool = False) -> str:
        """A number with fixed decimals and a true minus; 0 has no sign."""
        signed = sign and float(f"{value:.{digits}f}")
        return self.catalogue.number(value, f"{'+' if signed else ''}.{digits}f")

    def amount(self, value: float, digits: int = 0) -> str:
        """A count or an amount, with groups of three digits and fixed decimals.

        >>> Language(english()).amount(-101260.5, 1)
        '−101,260.5'
        """
        return self.catalogue.number(value, f",.{digits}f")

    def points(self, value: float) -> str:
        """Points out of 100 as a whole number, rounded half up as for bands."""
        return self.amount(round_points(value))

    def few(self, value: int) -> str:
        """Small counts as words, from two on."""
        return self.catalogue.say(f"claim.count.{value}") if value in _WORDS else self.amount(value)

    def percent(self, share: float, digits: int = 1, sign: bool = False) -> str:
        """A share in percent; the sign is not separated from its number by a line break."""
        return self("format.percent", value=self.number(100 * share, digits, sign))

    def span(self, low: float, high: float, digits: int = 1, sign: bool = False) -> str:
        """The ends of an interval, in words."""
        return self.range(*(self.number(end, digits, sign) for end in (low, high)))

    def range(self, first: Value, last: Value) -> str:
        """A range, in words."""
        return self.catalogue.say("places.range", first=first, last=last)

    def day(self, text: str, *, short: bool = False) -> str:
        """An ISO date or time in words, or in ``short`` as day and month for an axis; any other text unchanged.

        >>> Language(english()).day("2026-01-05"), Language(english()).day("2026-01-02T08:00:00Z")
        ('5 January 2026', '2 January 2026, 08:00 UTC')
        >>> Language(english()).day("2026-01-05", short=True)
        '5 Jan'
        """
        if (text, short) in self.days:
            return self.days[text, short]
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return clean(text, 12 if short else 40)
        parts = {"day": str(at.day), "month": self.catalogue.say(f"month.{at.month}"), "year": str(at.year)}
        time = (at.astimezone(UTC) if at.tzinfo else at).strftime("%H:%M")
        if short:
            shown = self.catalogue.say("format.day", **parts | {"month": parts["month"][:3], "year": ""}).strip()
        else:
            form = "format.day" if len(text) <= len("2026-01-05") else "format.moment"
            shown = self.catalogue.say(form, **parts, time=time)
        return self.days.setdefault((text, short), shown)

    def quoted(self, text: str) -> str:
        """A sentence in the quotation marks of the language."""
        return f"{self.catalogue.say('frame.open')}{text}{self.catalogue.say('frame.close')}"

    def filters(self, keys: Iterable[str], titles: Mapping[str, str], rows: int | None = None) -> tuple[Filter, ...]:
        """A button for all rows, then one for each key that occurs, in the order of ``titles``."""
        counts = Counter(keys)
        options = ((key, title, self.amount(counts[key])) for key, title in titles.items() if counts[key])
        return ("", self("frame.all"), self.amount(counts.total() if rows is None else rows)), *options


def round_points(value: float) -> int:
    """Points as printed: rounded half up."""
    return math.floor(round(value, 9) + 0.5)


ROWS: Final = 500
"""Rows of measurements on one page: the same number in every language, so that every page has its translation."""


def paged_measurements(
    measurements: Iterable[Measurement], hidden: Callable[[Measurement], str] = lambda _: ""
) -> Mapping[str, tuple[MeasurementRow, ...]]:
    """The rows of every page, by its file name, not yet translated; at least one page, which may be empty."""
    return by_file("measurements", table_rows(measurements, quantities("season"), hidden), ROWS, lambda _: 1)


_POINTS: Final = (
    "season.total", "season.without", "season.composite", "season.axis", "season.outcome", "season.efficiency",
)  # fmt: skip
"""Measurements that grade an agent; if it shares its tier, the range of its judges is shown instead."""

PointRange = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class SeasonIndex(MeasurementIndex):
    """A season with its look-ups in one language. Build one with `SeasonIndex.of`."""

    run: SeasonRun
    words: Language
    agents: Mapping[str, AgentSpec]
    grades: Mapping[str, Sequence[SeasonGradeView]]
    rows: Mapping[str, SeasonRow]
    pages: Mapping[str, str]
    measured: Mapping[str, tuple[MeasurementRow, ...]] = field(default_factory=dict)
    up: str = ""

    @classmethod
    def of(cls, run: SeasonRun, words: Language | None = None) -> SeasonIndex:
        """Index a season, in English by default."""
        agents = {  # an imported model keeps the name in its records
            spec.name: spec.model_copy(update={"model": spec.model.removeprefix(f"{RECORDS}/")})
            for spec in sorted(run.plan.agents, key=lambda agent: (agent.name.casefold(), agent.name))
        }
        order = {judge.name: at for at, judge in enumerate(run.plan.panel)}
        grades: dict[str, list[SeasonGradeView]] = {name: [] for name in agents}
        for grade in sorted(run.grades, key=lambda grade: order.get(grade.judge, len(order))):
            grades.setdefault(grade.agent, []).append(grade)
        stems = file_stems("agents", [(name,) for name in agents])
        pages = {name: f"{stem}.html" for name, stem in zip(agents, stems, strict=True)}
        rows, by_id = {row.contestant: row for row in run.table}, {item.id: item for item in run.measurements}
        index = cls(by_id, by_name(run.measurements), run, words or Language(english()), agents, grades, rows, pages)
        measured = paged_measurements(run.measurements, index.hidden)
        return replace(index, measured=measured, links=measurement_links(measured))

    @property
    def graders(self) -> int:
        """The number of judges with a usable grade, without those that refused everything or have yet to grade."""
        return len({grade.judge for grade in self.run.grades if grade.composite is not None})

    def shown(self, agent: str) -> bool:
        """True if the points of an agent may be shown: it is alone in its tier."""
        return any(place.shown for place in self.run.decided.places if place.agent == agent)

    def hidden(self, item: Measurement) -> str:
        """The reason to hide a value: an unsupported order, or an agent that shares its tier (a range instead)."""
        if "high" in item.labels:
            pair = frozenset((item.labels["high"], item.labels["low"]))
            verdicts = (verdict for verdict in self.run.decided.verdicts if verdict.kind == "above")
            levels = (v.verdict.publication_level for v in verdicts if frozenset(v.verdict.claim.subjects) == pair)
            return "" if next(levels, "no-claim") != "no-claim" else "not shown: no supported ranking"
        if item.name in _POINTS and item.value is not None and not self.shown(item.labels["agent"]):
            return "not graded"
        return ""

    def spread(self, item: Measurement) -> str:
        """The range of the judges in words, in place of a value that is hidden because its agent shares a tier."""
        agent = item.labels.get("agent", "")
        bounds = self.judged(agent, item.name, item.labels.get("axis", "")) if agent and self.hidden(item) else None
        n = sum(grade.composite is not None for grade in self.grades.get(agent, ()))
        return "" if bounds is None else self.words("measured.spread", n, low=bounds[0], high=bounds[1])

    def judged(self, agent: str, name: str, axis: str = "") -> PointRange | None:
        """The range of an agent's judges on a kind of measurement, in points; None without a grade."""
        scores = self._points(agent, name, axis)
        if len(scores) == 1 and not self.shown(agent):
            return self.tier_range(agent, name, axis)
        return (min(scores), max(scores)) if scores else None

    def tier_range(self, agent: str, name: str, axis: str = "") -> PointRange | None:
        """The lowest and the highest points that a judge gave an agent of the same tier."""
        tier = next((tier for tier in self.run.decided.tiers if agent in tier), (agent,))
        scores = [points for agent in tier for points in self._points(agent, name, axis)]
        return (min(scores), max(scores)) if scores else None

    def _points(self, agent: str, name: str, axis: str) -> list[float]:
        """The points by each judge alone; totals and efficiency are scaled in proportion to the composite."""
        graded = [grade for grade in self.grades.get(agent, ()) if grade.composite is not None]
        if name == "season.axis":
            return [grade.axes[axis] for grade in graded if axis in grade.axes]
        if name == "season.outcome":
            return [grade.outcome for grade in graded if grade.outcome is not None]
        row = self.rows.get(agent)
        if row is None or row.agreement is None:
            return []
        total = {"season.composite": None, "season.efficiency": row.efficiency}.get(name, row.total)
        share = 1.0 if total is None or not row.agreement.median else total / row.agreement.median
        return [min(share * (grade.composite or 0.0), 100.0) for grade in graded]

    def href(self, item: Measurement | None) -> str:
        """The address of a measurement's row; empty for None."""
        return "" if item is None else self.links[item.id]

    def record(self, kind: str, who: str, about: str) -> str:
        """The address of a record, relative to the folder of the language; empty if it has no page."""
        place = self.run.records.get((kind, who, about))
        return "" if place is None else self.up + place

    def judge_place(self, name: str) -> int | None:
        """The index of a judge in the panel, from 0; None for a judge that is not in it."""
        return next((at for at, judge in enumerate(self.run.plan.panel) if judge.name == name), None)

    def path(self, name: str, baseline: bool = False) -> SeasonPath | None:
        """The path of an agent, or of a baseline, which may have the same name; None if there is none."""
        return next((path for path in self.run.paths if path.name == name and path.baseline == baseline), None)


@dataclass(frozen=True, slots=True, eq=False)
class AgentIndex:
    """One agent of a season in one language. Its page is ``path``; its other pages are in a folder of its name."""

    season: SeasonIndex
    agent: AgentSpec
    run: SeasonRun
    words: Language
    path: str
    steps: Sequence[StepRecord]
    lines: Sequence[SeasonClaimLine]  # every number and quotation of its record that can be checked
    grades: Sequence[SeasonGradeView]  # of each judge, in the order of the panel

    @classmethod
    def of(cls, season: SeasonIndex, agent: AgentSpec) -> AgentIndex:
        """Index the records of an agent."""
        run, name, grades = season.run, agent.name, season.grades.get(agent.name, ())
        records = run.steps.get(name, ()), run.ledger.get(name, ())
        return cls(season, agent, run, season.words, season.pages[name], *records, grades)

    def say(self, key: str, n: Value | None = None, /, **values: Value) -> str:
        """A sentence of the agent pages."""
        return self.words.say(key, n, **values)

    def get(self, name: str, **labels: str) -> Measurement | None:
        """A measurement of this agent; None if there is none."""
        return self.season.get(name, agent=self.agent.name, **labels)
