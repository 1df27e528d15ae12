"""What the pages of one agent look up and say: its records and measurements, and the words of one language."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from assaymark.claims.messages import Value
from assaymark.claims.season_claims import SeasonVerdicts
from assaymark.judging.season.table import SeasonRow
from assaymark.records import Measurement, measurement_id
from assaymark.report.blocks import Inline, Linked, linked
from assaymark.report.measurements import MeasuredRow, measured_links
from assaymark.report.page import file_stems
from assaymark.report.season.inputs import (
    SeasonAgent,
    SeasonClaimLine,
    SeasonGradeView,
    SeasonPath,
    SeasonRun,
    SeasonStep,
)
from assaymark.report.season.measurements import measured_pages
from assaymark.report.season.words import Words
from assaymark.text import clean

# A season as its pages look things up: grades, rows, measurements and pages by name, indexed once for all.


_POINTS: Final = (
    "season.total", "season.without", "season.composite", "season.axis", "season.outcome", "season.efficiency",
)  # fmt: skip
"""What grades an agent; where it shares its tier, a range over its judges is in its place."""


def _hidden(decided: SeasonVerdicts, item: Measurement) -> str:
    """The reason as the name of a state; empty where the value may be shown.

    An agent that shares its tier has a range in its place (`SeasonLookup.spread`), and that reason only without grades.
    """
    if "high" in item.labels:
        pair = frozenset((item.labels["high"], item.labels["low"]))
        levels = (
            one.verdict.publication_level
            for one in decided.verdicts
            if one.kind == "above" and frozenset(one.verdict.claim.subjects) == pair
        )
        return "" if next(levels, "no-claim") != "no-claim" else "not shown: no supported order"
    if item.name in _POINTS:
        shown = any(one.shown for one in decided.places if one.agent == item.labels["agent"])
        return "" if shown or item.value is None else "not graded"
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class SeasonLookup:
    """A season and its indexes.

    Attributes
    ----------
    run : SeasonRun
    agents : mapping of name to SeasonAgent
        In alphabetical order.
    grades : mapping of agent to grades
        In the order of the judges.
    rows : mapping of agent to SeasonRow
    pages : mapping of agent to str
        Where its page lies below the folder of a language: ``agents/Alder.html``.
    by_id : mapping of id to Measurement
    measured : mapping of page to rows
        Where every measurement stands, in no language yet.
    links : mapping of id to str
        The row of a measurement, below the folder of a language.
    """

    run: SeasonRun
    agents: Mapping[str, SeasonAgent]
    grades: Mapping[str, tuple[SeasonGradeView, ...]]
    rows: Mapping[str, SeasonRow]
    pages: Mapping[str, str]
    by_id: Mapping[str, Measurement]
    measured: Mapping[str, tuple[MeasuredRow, ...]]
    links: Mapping[str, str]

    @classmethod
    def of(cls, run: SeasonRun) -> SeasonLookup:
        """Index a season."""
        agents = {one.name: one for one in sorted(run.agents, key=lambda one: (one.name.casefold(), one.name))}
        order = {judge.name: at for at, judge in enumerate(run.judges)}
        grades: dict[str, list[SeasonGradeView]] = {name: [] for name in agents}
        for grade in sorted(run.grades, key=lambda grade: order.get(grade.judge, len(order))):
            grades.setdefault(grade.agent, []).append(grade)
        hidden = partial(_hidden, run.decided)
        measured = measured_pages(run.measurements, hidden)
        stems = file_stems("agents", [(name,) for name in agents])
        return cls(
            run=run,
            agents=agents,
            grades={name: tuple(found) for name, found in grades.items()},
            rows={row.contestant: row for row in run.table.rows},
            pages={name: f"{stem}.html" for name, stem in zip(agents, stems, strict=True)},
            by_id={one.id: one for one in run.measurements},
            measured=measured,
            links=measured_links(measured),
        )

    @property
    def graders(self) -> int:
        """How many judges gave a usable grade; one that refused everything, or did not grade yet, is none."""
        return len({one.judge for one in self.run.grades if one.composite is not None})

    def hidden(self, item: Measurement) -> str:
        """Why a value is not shown: of a pair without a supported order, or of an agent that shares its tier."""
        return _hidden(self.run.decided, item)

    def spread(self, item: Measurement) -> tuple[float, float] | None:
        """What stands for a value that is hidden because its agent shares a tier: the range of its judges."""
        labels = item.labels
        if "agent" not in labels or not self.hidden(item):
            return None
        return self.judged(labels["agent"], item.name, labels.get("axis", ""))

    def graded(self, item: Measurement) -> int:
        """How many judges graded the agent that a measurement is about."""
        return sum(one.composite is not None for one in self.grades.get(item.labels.get("agent", ""), ()))

    def judged(self, agent: str, name: str, axis: str = "") -> tuple[float, float] | None:
        """The range of the judges of an agent, in the points of a kind of measurement; None without a grade.

        One judge has no range, and its points are the agent's: where these may not be shown, it is the tier's.
        """
        found = self._points(agent, name, axis)
        if len(found) == 1 and not self.run.decided.place(agent).shown:
            return self.tier_range(agent, name, axis)
        return (min(found), max(found)) if found else None

    def tier_range(self, agent: str, name: str, axis: str = "") -> tuple[float, float] | None:
        """From the lowest to the highest points that a judge gave an agent of the same tier."""
        tier = next((tier for tier in self.run.decided.tiers if agent in tier), (agent,))
        found = [points for one in tier for points in self._points(one, name, axis)]
        return (min(found), max(found)) if found else None

    def _points(self, agent: str, name: str, axis: str) -> list[float]:
        """What the grade of each judge alone comes to: totals and efficiency are in proportion to the composite."""
        graded = [one for one in self.grades.get(agent, ()) if one.composite is not None]
        if name == "season.axis":
            return [one.axes[axis] for one in graded if axis in one.axes]
        if name == "season.outcome":
            return [one.outcome for one in graded if one.outcome is not None]
        row = self.rows.get(agent)
        if row is None or row.agreement is None:
            return []
        whole = {"season.composite": None, "season.efficiency": row.efficiency}.get(name, row.total)
        share = 1.0 if whole is None or not row.agreement.median else whole / row.agreement.median
        return [min(share * (one.composite or 0.0), 100.0) for one in graded]

    def one(self, name: str, **labels: str) -> Measurement | None:
        """The measurement of that name and those labels, None where it was not made."""
        return self.by_id.get(measurement_id(name, labels))

    def link(self, item: Measurement | None) -> str:
        """Where a measurement stands, empty for none."""
        return "" if item is None else self.links[item.id]

    def to(self, item: Measurement | None, text: str) -> str:
        """A text that leads to the row of a measurement where it has a value; else the text alone."""
        return linked(item, text, self.links)

    def judge_place(self, name: str) -> int | None:
        """The place of a judge in the panel, from 0; None where it is none of its judges."""
        return next((at for at, judge in enumerate(self.run.judges) if judge.name == name), None)

    def value(self, name: str, **labels: str) -> float | None:
        """The value of a measurement, None where there is none."""
        found = self.one(name, **labels)
        return None if found is None else found.value

    def path(self, name: str, *, baseline: bool = False) -> SeasonPath | None:
        """The path of an agent, or of a baseline, which may be called the same; None without one."""
        return next((one for one in self.run.paths if one.name == name and one.baseline == baseline), None)


@dataclass(frozen=True, slots=True)
class ModelWords(Words):
    """The sentences of the pages of agents in one language."""

    def say(self, key: str, **values: Value) -> str:
        """A sentence; values are set as they are, so what comes from a record has to be clean."""
        return self(f"model.{key}", **values)

    def word(self, group: str, name: str) -> str:
        """A word for a name out of a fixed list; a name without one is shown as it is, made safe.

        >>> from assaymark.claims.messages import english
        >>> words = ModelWords(english())
        >>> words.word("flag", "no-answer"), words.word("flag", "unheard of")
        ('no answer', 'unheard of')
        """
        key = f"model.{group}.{name.replace('-', '_').replace(' ', '_').lower()}"
        return self(key) if self.has(key) else clean(name, 80)

    def amount(self, value: float, digits: int = 0) -> str:
        """A number with groups of three digits and fixed decimals.

        >>> from assaymark.claims.messages import english
        >>> ModelWords(english()).amount(-101260.5, 1)
        '−101,260.5'
        """
        whole, _, decimals = self.number(value, digits).partition(self.catalogue.decimal)
        minus = whole[: -len(whole.lstrip(self.catalogue.minus))]
        units = f"{int(whole[len(minus) :]):,}".replace(",", self("format.thousands"))
        return f"{minus}{units}{self.catalogue.decimal if decimals else ''}{decimals}"

    def points(self, value: float) -> str:
        """Points out of 100 as a whole number, rounded half up as bands are read.

        >>> from assaymark.claims.messages import english
        >>> ModelWords(english()).points(66.5)
        '67'
        """
        return self.count(math.floor(round(value, 9) + 0.5))

    def state(self, item: Measurement) -> str:
        """Why there is no number, in words."""
        return self.term("state", item.state)


@dataclass(frozen=True, slots=True, eq=False)
class ModelBook:
    """One agent of a season in one language. ``path`` is its page; its other pages lie in a folder of its name.

    ``up`` leads from the folder of the language to that of the site, where records lie.
    """

    lookup: SeasonLookup
    words: ModelWords
    agent: SeasonAgent
    path: str
    up: str = ""

    @property
    def run(self) -> SeasonRun:
        """The season."""
        return self.lookup.run

    @property
    def steps(self) -> Sequence[SeasonStep]:
        """Its decisions."""
        return self.run.steps.get(self.agent.name, ())

    @property
    def lines(self) -> Sequence[SeasonClaimLine]:
        """Every checkable sentence of its record."""
        return self.run.ledger.get(self.agent.name, ())

    @property
    def grades(self) -> tuple[SeasonGradeView, ...]:
        """What each judge gave it, in the order of the panel."""
        return self.lookup.grades.get(self.agent.name, ())

    @property
    def row(self) -> SeasonRow | None:
        """Its row of the table."""
        return self.lookup.rows.get(self.agent.name)

    def to(self, item: Measurement | None, text: str) -> str:
        """A text that leads to the row of a measurement where it has a value; else the text alone."""
        return self.lookup.to(item, text)

    def note(self, item: Measurement | None, text: str) -> Inline:
        """A sentence, and a link to the row of a measurement after it where that has a value."""
        link = self.lookup.to(item, self.words("measured.open"))
        return (text, " ", link) if isinstance(link, Linked) else text

    def to_grade(self, judge: str, text: str) -> str:
        """A text that leads to what a judge gave this agent, where records lie beside the pages."""
        return Linked(text, self._record("grades", judge, self.agent.name))

    def source(self, step: SeasonStep) -> str:
        """Where the prompt and the reply of a decision are; empty where records do not lie beside the pages."""
        return self._record("decisions", self.agent.name, step.record_id)

    def _record(self, *key: str) -> str:
        place = self.run.records.get((key[0], key[1], key[2]))
        return "" if place is None else self.up + place

    def say(self, key: str, **values: Value) -> str:
        """A sentence of the pages of agents."""
        return self.words.say(key, **values)

    def one(self, name: str, **labels: str) -> Measurement | None:
        """A measurement about this agent."""
        return self.lookup.one(name, agent=self.agent.name, **labels)
