"""What the pages of one agent look up and say: its records and measurements, and the words of one language."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.claims.messages import Value
from assaymark.judging.season.table import SeasonRow
from assaymark.records import Measurement
from assaymark.report.formats import clean
from assaymark.report.linked import Linked
from assaymark.report.season.inputs import SeasonAgent, SeasonGradeView, SeasonPath, SeasonRun, SeasonStep
from assaymark.report.season.lookup import SeasonLookup
from assaymark.report.season.words import Words


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
    """One agent of a season in one language. ``path`` is its page; its other pages lie beside it.

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
    def grades(self) -> tuple[SeasonGradeView, ...]:
        """What each judge gave it, in the order of the panel."""
        return self.lookup.grades.get(self.agent.name, ())

    @property
    def row(self) -> SeasonRow | None:
        """Its row of the table."""
        return self.lookup.rows.get(self.agent.name)

    @property
    def nav(self) -> SeasonPath | None:
        """Its own path, where it has a day."""
        found = (p for p in self.run.paths if not p.baseline and p.name == self.agent.name and p.nav)
        return next(found, None)

    def to(self, item: Measurement | None, text: str) -> str:
        """A text that leads to the row of a measurement where it has a value; else the text alone."""
        return self.lookup.to(item, text)

    def to_grade(self, judge: str, text: str) -> str:
        """A text that leads to what a judge gave this agent, where records lie beside the pages."""
        place = self.run.records.get(("grades", judge, self.agent.name))
        return text if place is None else Linked(text, self.up + place)

    def say(self, key: str, **values: Value) -> str:
        """A sentence of the pages of agents."""
        return self.words.say(key, **values)

    def one(self, name: str, **labels: str) -> Measurement | None:
        """A measurement about this agent."""
        return self.lookup.one(name, agent=self.agent.name, **labels)
