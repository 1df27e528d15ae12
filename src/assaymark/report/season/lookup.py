"""A season as its pages look things up: grades, rows, measurements and pages by name, indexed once for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from assaymark.claims.season_types import SeasonVerdicts
from assaymark.judging.season.table import SeasonRow
from assaymark.records import Measurement, measurement_id
from assaymark.report.linked import leading
from assaymark.report.measured import MeasuredRow, measured_links
from assaymark.report.season.every import measured_pages
from assaymark.report.season.inputs import SeasonAgent, SeasonGradeView, SeasonPath, SeasonRun
from assaymark.report.season.model_paths import agent_paths

_TOTALS: Final = ("season.total", "season.without")


def _hidden(decided: SeasonVerdicts, item: Measurement) -> str:
    """The reason as the name of a state; empty where the value may be shown."""
    if "high" in item.labels:
        pair = frozenset((item.labels["high"], item.labels["low"]))
        levels = (
            one.verdict.publication_level
            for one in decided.verdicts
            if one.kind == "above" and frozenset(one.verdict.claim.subjects) == pair
        )
        return "" if next(levels, "no-claim") != "no-claim" else "not shown: no supported order"
    if item.name in _TOTALS:
        shown = any(one.shown for one in decided.places if one.agent == item.labels["agent"])
        return "" if shown or item.value is None else "not shown: no single rank"
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
        return cls(
            run=run,
            agents=agents,
            grades={name: tuple(found) for name, found in grades.items()},
            rows={row.contestant: row for row in run.table.rows},
            pages=agent_paths(agents),
            by_id={one.id: one for one in run.measurements},
            measured=measured,
            links=measured_links(measured),
        )

    def hidden(self, item: Measurement) -> str:
        """Why a value is not shown: of a pair without a supported order, or a total without a single rank."""
        return _hidden(self.run.decided, item)

    def one(self, name: str, **labels: str) -> Measurement | None:
        """The measurement of that name and those labels, None where it was not made."""
        return self.by_id.get(measurement_id(name, labels))

    def link(self, item: Measurement | None) -> str:
        """Where a measurement stands, empty for none."""
        return "" if item is None else self.links[item.id]

    def to(self, item: Measurement | None, text: str) -> str:
        """A text that leads to the row of a measurement where it has a value; else the text alone."""
        return leading(item, text, self.links)

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
