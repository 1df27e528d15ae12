"""What the site of a season is made of: frozen views that whoever publishes fills from tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assaymark.claims.messages import Said
from assaymark.claims.season_claims import SeasonVerdicts
from assaymark.judging.season.plans import ScoringPlan
from assaymark.judging.season.record import AuditLine
from assaymark.judging.season.table import SeasonTable
from assaymark.records import EvidenceState, Measurement


@dataclass(frozen=True, slots=True)
class SeasonAgent:
    """One agent: its name, who makes its model, the model, and what it alone was told (empty with a shared prompt)."""

    name: str
    family: str
    model: str
    strategy: str = ""

    @property
    def reference(self) -> bool:
        """Whether it is one of ours, made to be known."""
        return self.model.startswith("reference/")


@dataclass(frozen=True, slots=True)
class SeasonJudge:
    """One judge. ``datasheet`` is where its datasheet lies seen from the site's folder, None without one."""

    name: str
    family: str
    model: str
    human: bool = False
    trials: int = 1
    datasheet: str | None = None

    @property
    def reference(self) -> bool:
        """Whether it is one of ours, made to be known."""
        return self.model.startswith("reference/")


@dataclass(frozen=True, slots=True)
class SeasonPath:
    """Net asset value day by day, in currency; ``start`` is what it began with."""

    name: str
    baseline: bool
    start: float
    days: tuple[str, ...]
    nav: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SeasonTrade:
    """A fill. ``price`` is None where the record has none; ``kind`` as in `SeasonFill`."""

    symbol: str
    quantity: float
    price: float | None
    cost: float
    kind: str = "order"


@dataclass(frozen=True, slots=True)
class SeasonRefusal:
    """An order that was not carried out: the word for why, and the sentence that its agent was shown."""

    symbol: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class SeasonStep:
    """One decision and what came of it.

    ``orders`` and ``texts`` (kind and text) are as the agent wrote them: hostile until escaped. ``mismatches`` are
    statements of the record that do not follow from the others.
    """

    number: int
    day: str
    record_id: str
    orders: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    fills: tuple[SeasonTrade, ...] = ()
    refusals: tuple[SeasonRefusal, ...] = ()
    flags: tuple[str, ...] = ()
    problem: str = ""
    seconds: float | None = None
    nav: float | None = None
    cash: float | None = None
    positions: Mapping[str, float] = field(default_factory=dict)
    mismatches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeasonClaimLine:
    """One checkable statement of a record, in both layers.

    ``numbers`` is the state of the numeric ledger, None where the quotation holds no number; ``judges`` the states by
    judge, for those that looked at it. ``saw`` names what of the agent's material decided. ``which`` is the number that
    the state is of, and ``start`` its place in ``quote``, which is hostile.
    """

    number: int
    day: str
    quote: str
    saw: str
    numbers: EvidenceState | None
    rule: str = ""
    judges: Mapping[str, str] = field(default_factory=dict)
    which: str = ""
    start: int = 0

    @property
    def disagree(self) -> bool:
        """Whether the layers differ: a judge says supported or contradicted where the numbers say the other, or so."""
        layers = {*self.judges.values()}
        if self.numbers is not None and self.numbers != "own_action":
            good = self.numbers in ("supported", "derivable", "rule")
            layers.add("supported" if good else "contradicted" if self.numbers == "contradicted" else "not_verifiable")
        return len(layers) > 1


@dataclass(frozen=True, slots=True)
class SeasonGradeView:
    """What one judge gave one agent's whole record: axes and parts in points, by name.

    ``state`` is ``ok`` or why there are no grades; then all numbers are absent. ``capped`` names parts that the numeric
    ledger lowered, with what the judge had given. ``verdict`` and ``summary`` are the judge's words: hostile.
    """

    agent: str
    judge: str
    state: str
    composite: float | None = None
    axes: Mapping[str, float] = field(default_factory=dict)
    reasoning: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, float] = field(default_factory=dict)
    capped: Mapping[str, float] = field(default_factory=dict)
    outcome: float | None = None
    outcome_state: str = "none"
    data_reliability: float | None = None
    lookahead: str | None = None
    lookahead_reason: str = ""
    verdict: str = ""
    summary: str = ""
    reason: str = ""
    parts: int = 1


@dataclass(frozen=True, slots=True)
class SeasonRule:
    """One line of the rules page: the field of the season file, its value, and what it means."""

    group: str
    name: str
    value: str
    meaning: Said


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeasonRun:
    """A season that was judged, measured and decided, as its site shows it.

    Attributes
    ----------
    steps, ledger : mapping of agent to lines
        In the order of the days.
    table : SeasonTable
        Totals, bands and tie classes; which of it is printed is for ``decided``.
    measurements : tuple of Measurement
        Every number that a page prints beside facts, by id.
    blinding : mapping of agent to lines
        What blinding replaced and kept.
    rules : tuple of SeasonRule
        From the locked file.
    capital : float or None
        What each agent began with; None for records that state no books.
    source : str
        Who ran it: empty for seasons that were run here, else where the records come from.
    partial : bool
        Whether some of what the agents could see is not kept.
    notes : tuple of Said
        What a reader has to know of this season beside its claims.
    planned : int
        Days that the calendar has in all; 0 where it says nothing of days to come.
    closes, decided_at, next_decision : str
        The last day of the calendar, and the moments of the last decision and of the next one, in UTC; empty where
        there is none.
    live : bool
        Whether its market still grows.
    url : str
        Where the site will lie, for feeds and previews; empty where that is not known.
    publications : tuple of mappings
        The verdicts of every publication in order, this one last.
    records : mapping of (kind, who, about) to str
        Where records begin that lie beside these pages, below the folder of the site. ``about`` is the agent of a
        grade or of a guess, the record id of a decision, and empty for all that somebody made.
    """

    name: str
    title: str
    plan_hash: str
    locked_at: str
    software: str
    first: str
    last: str
    days: int
    currency: str
    capital: float | None
    universe: tuple[str, ...]
    prompt: str
    scoring: ScoringPlan
    agents: tuple[SeasonAgent, ...]
    judges: tuple[SeasonJudge, ...]
    paths: tuple[SeasonPath, ...]
    steps: Mapping[str, tuple[SeasonStep, ...]]
    ledger: Mapping[str, tuple[SeasonClaimLine, ...]]
    grades: tuple[SeasonGradeView, ...]
    table: SeasonTable
    decided: SeasonVerdicts
    measurements: tuple[Measurement, ...]
    blinding: Mapping[str, tuple[AuditLine, ...]]
    rules: tuple[SeasonRule, ...]
    source: str = ""
    partial: bool = False
    notes: tuple[Said, ...] = ()
    planned: int = 0
    closes: str = ""
    decided_at: str = ""
    next_decision: str = ""
    live: bool = False
    url: str = ""
    publications: tuple[Mapping[str, Any], ...] = ()
    records: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
