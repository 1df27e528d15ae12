"""``verdicts.json``: the verdicts of one run, and what they rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Final

from assaymark import __version__
from assaymark.claims import summary_of
from assaymark.claims.messages import english, stand_ins
from assaymark.notebook import MARKS, Folded, Heading, Note, Part, Result, Said, parts_of
from assaymark.protocol import AgentSpec, Study
from assaymark.records import JSON, Level, Measurement, Rows, Verdict
from assaymark.text import clean, prose
from assaymark.workflow.run_folder import Amendment

FORMAT: Final = "assaymark verdicts 2"
_SAID: Final = 6
_PEOPLE: Final = ("human.sample", "human.agreement", "human.judge")


@dataclass(frozen=True, slots=True)
class Panel:
    """Who judged: names by family, which of them are reference judges with planted properties, and whether any is."""

    judges: Mapping[str, str]
    reference: bool
    built_in: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceLine:
    """One row of a season's table: the ranks that an agent can have, whether its total is shown, and why."""

    agent: str
    first: int | None
    last: int | None
    shown: bool
    level: Level
    why: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VerdictFile(Result):
    """``verdicts.json``: the verdicts of one run and the measurements they rest on.

    ``tiers``, ``ranks``, ``top_set`` and ``within_margin`` follow from the verdicts, by scale. ``missing`` has the
    share of each judge's replies that did not come or could not be read, and of each agent's; ``notes`` say what of a
    table of scores was left out, and what was chosen with the scores at hand. ``agents``, or models of
    a benchmark, are those that claims compare, each with whether it is a rule-based stand-in. Only seasons have
    ``places`` and ``judged_to``, the last day that a judge was shown; their ``rubric`` is the scoring plan.

    It holds no time and no random name: the same records, plan and replies make the same bytes.
    """

    format: str
    software: str
    study: str
    title: str
    plan_hash: str
    rubric: str
    panel: Panel
    agents: Mapping[str, bool] = field(default_factory=dict)
    amendments: tuple[Mapping[str, JSON], ...] = ()
    preregistered: bool = True
    tally: Mapping[str, int]
    tiers: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    ranks: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    top_set: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    within_margin: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    missing: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    judged_to: str = ""
    places: tuple[PlaceLine, ...] = ()
    verdicts: tuple[Verdict, ...]
    measurements: Mapping[str, Measurement] = field(default_factory=dict)

    def _parts(self) -> Iterator[Part]:
        """The supported claims; what is not supported behind a line, named without its direction."""
        yield Heading(f"{clean(self.title or self.study, 120)}: supported claims")
        yield Note(" · ".join(f"{MARKS[level]} {count} {level}" for level, count in self.tally.items()))
        made_by = "agents" if self.panel.judges else "models"
        for level in ("headline", "qualified"):
            said = []
            for one in (verdict for verdict in self.verdicts if verdict.publication_level == level):
                # What has to be said with a claim: whether judges or agents are built in, and its condition.
                kind = one.claim.id.partition("[")[0]
                judges = {} if kind.endswith(".beats") else self.panel.built_in
                agents = {} if kind == "cell" else self.agents
                built_in = stand_ins(english(), judges, agents, one.claim.subjects, made_by)
                said.append(Said(level, one.said, f"{built_in} {prose(one.condition or '')}".strip()))
            yield from said[:_SAID]
            if more := tuple(said[_SAID:]):
                yield Folded(f"{len(more)} more {level}", more)
        kept = (one for one in self.verdicts if one.publication_level == "no-claim")
        # By what is shown: the ids, and so the order of the file, have the higher of a pair first.
        if withheld := Rows(sorted(kept, key=lambda one: (one.claim.dimension, one.said))):
            yield Folded(f"{len(withheld)} not supported by this evidence", parts_of(withheld))


def tally_of(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many verdicts of each level."""
    found = Counter(verdict.publication_level for verdict in verdicts)
    return {level: found.get(level, 0) for level in ("headline", "qualified", "no-claim")}


def verdict_file(
    study: Study, plan_hash: str, verdicts: Sequence[Verdict], measurements: Sequence[Measurement],
    preregistered: bool = True, amendments: Sequence[Amendment] = (),
) -> VerdictFile:  # fmt: skip
    """The contents of ``verdicts.json``."""
    built_in = {one.name: one.model.startswith("reference/") for one in study.judges}
    judges = {judge.name: judge.family for judge in study.judges}
    lacking = [item for item in measurements if item.name == "missing.share" and item.value]
    return decided_file(
        verdicts, measurements, sorted({item.labels["agent"] for item in measurements if item.name == "score.effect"}),
        study=study.name, title=study.title, plan_hash=plan_hash, rubric=study.rubric.name,
        panel=Panel(judges, any(built_in.values()), built_in),
        made_by=study.agents, amendments=amendments, preregistered=preregistered,
        missing={item.labels.get("agent") or item.labels["judge"]: item.value for item in lacking},
    )  # fmt: skip


def decided_file(
    verdicts: Sequence[Verdict], measurements: Sequence[Measurement], agents: Sequence[str], *,
    made_by: Sequence[AgentSpec] = (), amendments: Sequence[Amendment] = (),
    unranked: Mapping[str, Collection[str]] = MappingProxyType({}), **given: Any,
) -> VerdictFile:  # fmt: skip
    """The contents of ``verdicts.json`` of a study, a season or a benchmark; ``given`` are its other fields."""
    built_in = {one.name for one in made_by if one.model.startswith("reference/")}
    used = {name for verdict in verdicts for name in verdict.measurements}
    supported = {name for one in verdicts if one.publication_level != "no-claim" for name in one.measurements}
    return VerdictFile(
        format=FORMAT,
        software=f"assaymark {__version__}",
        tally=tally_of(verdicts),
        **asdict(summary_of(verdicts, agents, unranked)),
        verdicts=tuple(verdicts),
        agents={name: name in built_in for name in sorted({*agents, *(one.name for one in made_by)})},
        amendments=tuple(
            {"number": amendment.number, "reason": amendment.reason, "fields": dict(amendment.fields)}
            for amendment in amendments
        ),
        # The gap of an unsupported pair is in the tables and certificates, and not in this file; how judges stand
        # beside people is.
        measurements={
            item.id: item
            for item in measurements
            if item.id in supported or (item.id in used and "high" not in item.labels) or item.name in _PEOPLE
        },
        **given,
    )
