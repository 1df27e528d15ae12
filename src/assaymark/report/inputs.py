"""The input of a report: the frozen record of one run, its look-ups for the sections, and the tiers of its agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from assaymark.claims import ClaimKind, Rules, governing_kappa, index, kind_of, summary_of
from assaymark.claims import Index as Kappas
from assaymark.claims.messages import measure_words
from assaymark.claims.orders import Summary
from assaymark.market import CycleKey, ProbeResult
from assaymark.protocol import Study
from assaymark.records import (
    AGGREGATE,
    AgreementStatus,
    Context,
    Decision,
    Evidence,
    Judgment,
    Level,
    Measurement,
    Verdict,
)
from assaymark.report.blocks import MeasurementIndex, by_name
from assaymark.report.records.judgments import JudgmentPart
from assaymark.report.text import as_text, counted, known, ordinal_span, weakest
from assaymark.text import clean, gate_number

Example = tuple[CycleKey, Context, tuple[Decision, ...]]
"""One cycle with its context and its decisions."""


@dataclass(frozen=True, slots=True)
class RubricView:
    """The rubric as pages show it, with its dimensions as (id, title). ``texts`` are (dimension or "", kind of text,
    text) of a custom rubric, which is not printed anywhere else."""

    name: str
    title: str
    dimensions: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PlantedView:
    """A built-in judge or agent: what it models or which rule it follows (``question``), and its planted properties."""

    name: str
    family: str
    question: str
    planted: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidView:
    """Token use and cost in USD of one model's replies, as its provider counted them. ``unpriced`` counts replies
    without a known price, ``untold`` replies without token counts; ``price_of`` is the date of the price."""

    model: str
    calls: int
    input_tokens: int
    cached_tokens: int | None
    output_tokens: int
    usd: float
    unpriced: int = 0
    untold: int = 0
    in_batches: int = 0
    price_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """An imported table of scores, and how it was read: ``filled`` was assumed, ``left`` was not used, ``choices`` were
    made after the scores were seen. ``orders`` counts, by judge, the outcomes of pairs shown in both orders."""

    source: str
    sha256: str
    format: str
    shape: str
    roles: Mapping[str, str]
    read: str
    filled: tuple[str, ...]
    left: tuple[str, ...]
    choices: tuple[str, ...]
    dimensions: tuple[str, ...]
    scale: tuple[float, float]
    answers: int
    agents: int
    clusters: int
    judges: int
    scores: int
    missing: int
    orders: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    about: str = ""


@dataclass(frozen=True, slots=True)
class AssayRun:
    """Everything that pages and terminal show about one run. ``tests`` come from the datasheets of its judges;
    ``texts`` are all decisions that may be judged, control texts included. A study that makes its own records also has
    its cycles by number, the results of the date probes of its lock, and the first cycle as an ``example``: readers may
    know the real names and dates in them, which agents and judges never see."""

    study: Study
    plan_hash: str
    locked_at: str | None
    rubric: RubricView
    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...]
    decisions: tuple[Decision, ...]
    evidence: tuple[Evidence, ...]
    invalid: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    again: int = 0
    in_flight_bound: int = 0
    reference_panel: tuple[PlantedView, ...] = ()
    import_notes: tuple[str, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)
    datasheets: tuple[str, ...] = ()
    tests: tuple[Measurement, ...] = ()
    cycles: tuple[CycleKey, ...] = ()
    probes: tuple[ProbeResult, ...] = ()
    example: Example | None = None
    reference_agents: tuple[PlantedView, ...] = ()
    paid: tuple[PaidView, ...] | None = ()
    judgments: Mapping[JudgmentPart, Sequence[Judgment]] = field(default_factory=dict)
    texts: Sequence[Decision] = ()
    table: TableView | None = None


KAPPA: Final = "kappa.mean_pairwise"


@dataclass(frozen=True, slots=True, eq=False)
class RunIndex(MeasurementIndex):
    """An `AssayRun` with look-ups for sections: tiers by score, judges' own tests, and cards of claims once placed."""

    run: AssayRun
    families: Mapping[str, str]
    statuses: Mapping[str, AgreementStatus]
    kappas: Kappas
    summary: Summary
    tests: Mapping[str, Sequence[Measurement]]
    claims: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, run: AssayRun) -> RunIndex:
        """Index a run; measurements of a name are in the order of their ids."""
        named = by_name(sorted(run.measurements, key=lambda m: m.id))
        agents = {item.labels["agent"] for item in named.get("score.effect", ())}
        about = [verdict for verdict in run.verdicts if kind_of(verdict.claim) != "cell"]
        families = dict.fromkeys((*(agent for verdict in about for agent in verdict.claim.subjects), *agents), "")
        families |= {decision.agent.id: decision.agent.family for decision in run.decisions}
        agreement = [item for name in (KAPPA, "kappa.other_ddof") for item in named.get(name, ())]
        return cls(
            {item.id: item for item in run.measurements}, named, run, dict(sorted(families.items())),
            # A cell has an agreement of its own, among the texts of the cell.
            {verdict.claim.dimension: verdict.agreement_status for verdict in about}, index(agreement),
            summary_of(run.verdicts, sorted(agents or families)), by_name(run.tests),
        )  # fmt: skip

    @property
    def study(self) -> Study:
        """The plan."""
        return self.run.study

    @property
    def agents(self) -> tuple[str, ...]:
        """Every agent in alphabetical order: no page is sorted by a score."""
        return tuple(self.families)

    @property
    def answers(self) -> int:
        """The number of graded answers of agents: decisions, or the records of a table."""
        return len(self.run.decisions) if self.run.table is None else self.run.table.answers

    @property
    def clusters(self) -> int:
        """The number of clusters of these answers."""
        table = self.run.table
        return len({decision.cluster for decision in self.run.decisions}) if table is None else table.clusters

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The aggregate, then the rubric's dimensions in rubric order."""
        return (AGGREGATE, *(name for name, _ in self.run.rubric.dimensions))

    def place(self, dimension: str) -> int:
        """The place of a score in the order of `dimensions`; an unknown one comes last."""
        names = self.dimensions
        return names.index(dimension) if dimension in names else len(names)

    def by_score(self, name: str) -> list[tuple[str, Measurement]]:
        """The measurement of a name on each score that has one, in the order of `dimensions`."""
        return [(d, item) for d in self.dimensions if (item := self.get(name, d)) is not None]

    def linked_value(self, name: str, dimension: str, **labels: str) -> str:
        """A value, linked to its row, or the reason why there is none in words."""
        item = self.get(name, dimension, **labels)
        return self.link(item, as_text(item))

    def pair(self, name: str, verdict: Verdict) -> Measurement | None:
        """The measurement of a kind for the two agents of a claim, whichever of them is higher."""
        agent, other = verdict.claim.subjects
        return self.contrast(verdict.claim.dimension, agent, other, name)

    def contrast(self, on: str, agent: str, other: str, name: str = "contrast", **labels: str) -> Measurement | None:
        """The contrast of two agents on a dimension; ``name`` may select that of another judge."""
        direct = self.get(name, on, high=agent, low=other, **labels)
        return direct or self.get(name, on, high=other, low=agent, **labels)

    def family(self, agent: str) -> str:
        """The family of an agent; empty if no record names it."""
        return clean(self.families.get(agent, ""), 60)

    def title(self, dimension: str) -> str:
        """The title of a dimension; for an unknown one its id without underscores."""
        if dimension == AGGREGATE:
            return "Overall score"
        return clean(dict(self.run.rubric.dimensions).get(dimension) or dimension.replace("_", " ").capitalize(), 60)

    def status(self, dimension: str) -> AgreementStatus | None:
        """The agreement status of a dimension: from its verdicts, else from the plan's gates."""
        if dimension in self.statuses:
            return self.statuses[dimension]
        kappa = self.gating(dimension)
        return None if kappa is None else Rules.of(self.study).status(kappa.value)

    def gating(self, dimension: str) -> Measurement | None:
        """The kappa that gates a dimension: the one that decided the verdicts under the locked rules."""
        rules = Rules.of(self.study)
        return self.once(("gating", dimension), lambda: governing_kappa(dimension, self.kappas, rules))

    def gating_note(self, dimension: str) -> str:
        """The gating kappa and the format it was computed in; empty where the pooled kappa gates."""
        item = self.gating(dimension)
        if item is None or "format" not in item.labels:
            return ""
        return f"{self.kappa_words(item)} in {clean(item.labels['format'], 60)}"

    def gating_words(self, dimension: str) -> str:
        """The gating kappa with its symbol and format; in words why there is none, if it has no value."""
        item = self.gating(dimension)
        note = self.gating_note(dimension) or self.kappa_words(item)
        return f"{self.sign} {note}" if known(item) else note

    @property
    def sign(self) -> str:
        """The symbol of the agreement coefficient: κ, ICC (intraclass correlation) or α (Krippendorff's)."""
        return {"kappa": "κ", "icc": "ICC", "alpha": "α"}[self.study.rubric.coefficient]

    def kappa_words(self, item: Measurement | None) -> str:
        """A kappa to compare with the gates, with three decimals where rounding to two would lift it over a gate."""
        if not known(item):
            return as_text(item)
        return gate_number(item.value, self.study.gates.halt, self.study.gates.publish)

    def on(self, dimension: str, *kinds: ClaimKind) -> tuple[Verdict, ...]:
        """The verdicts of some kinds on one dimension, by claim id; without kinds all verdicts about agents."""

        def find() -> tuple[Verdict, ...]:
            wanted = kinds or ("first", "pair", "within")
            chosen = (v for v in self.run.verdicts if v.claim.dimension == dimension and kind_of(v.claim) in wanted)
            return tuple(sorted(chosen, key=lambda v: v.claim.id))

        return self.once(("on", dimension, *kinds), find)

    @property
    def cells(self) -> tuple[Verdict, ...]:
        """The verdicts about control cells, by claim id."""
        return tuple(sorted((v for v in self.run.verdicts if kind_of(v.claim) == "cell"), key=lambda v: v.claim.id))

    def alpha(self, dimension: str) -> float:
        """The significance level for adjusted p-values of rankings on a score. Dimensions claimed beside the aggregate
        share alpha with it, and get all of it once every pair on the aggregate is significant."""
        inference = self.study.inference
        scales = self.once(("scales",), lambda: {v.claim.dimension for v in self.run.verdicts if v.claim.asserts_order})
        shared = AGGREGATE in scales and len(scales) > 1 and len(self.dimensions) > 2
        pairs = [1.0 if v.p_adjusted is None else v.p_adjusted for v in self.on(AGGREGATE, "pair")]
        gate = dimension != AGGREGATE and pairs and max(pairs) <= inference.level_of(AGGREGATE, shared)
        return inference.alpha if gate else inference.level_of(dimension, shared)

    @property
    def untestable(self) -> str:
        """The statement that this study cannot rank agents, if no pair can be tested; else empty."""
        pairs = self.on(AGGREGATE, "pair")
        if not pairs or any(v.pair_state != "cannot-be-tested" for v in pairs):
            return ""
        contrasts = (self.pair("contrast", v) for v in pairs)
        clusters = max((int(m.detail.get("clusters", 0)) for m in contrasts if m is not None), default=0)
        return f"This study cannot rank agents: {counted(clusters, 'cluster')}."

    @property
    def preregistered(self) -> bool:
        """True if the plan was locked before its scores were seen."""
        return all(v.preregistered for v in self.run.verdicts)


def score_words(dimension: str) -> str:
    """The name of a dimension's score within a sentence: “the overall score”, “position sizing”."""
    return clean(measure_words(dimension), 60)


# --- tiers: the rankings that the verdicts on a score support ---------------------------------------------------------
#
# A cut is where every agent above it is supported to be higher than every agent below it. The agents between two cuts
# are a tier: they cannot be ranked. Tiers follow from the verdicts and add no error of their own.


@dataclass(frozen=True, slots=True)
class Tier:
    """Agents between two cuts by name, the ranks they share, the weakest verdict that separates them from others, and
    their pairs whose order is supported; these cut the tier nowhere."""

    agents: tuple[str, ...]
    ranks: tuple[int, int]
    level: Level
    inside: tuple[tuple[str, str], ...]

    @property
    def single(self) -> bool:
        """True if the tier has one agent: only then may a score of its own be shown."""
        return len(self.agents) == 1

    @property
    def ranked(self) -> bool:
        """True if the tier is one agent with a supported rank."""
        return self.single and self.level != "no-claim"

    @property
    def rank(self) -> str:
        """The rank of the tier, or the range of its ranks."""
        return ordinal_span(*self.ranks)


def tiers(index: RunIndex, dimension: str) -> tuple[Tier, ...]:
    """The tiers on one score from high to low; a single tier if no cut is supported."""
    groups = index.summary.tiers.get(dimension) or ((index.agents,) if index.agents else ())
    orders, listed, rank = supported_orders(index, dimension), list[Tier](), 1
    for group in groups:
        around = [level for pair, level in orders.items() if len(set(pair) & set(group)) == 1]
        inside = tuple(pair for pair in orders if {*pair} <= {*group})
        listed.append(Tier(group, (rank, rank + len(group) - 1), weakest(around if len(groups) > 1 else ()), inside))
        rank += len(group)
    return tuple(listed)


def supported_orders(index: RunIndex, dimension: str) -> dict[tuple[str, str], Level]:
    """The level of every pair whose order is supported, by (higher, lower)."""
    supported = (v for v in index.on(dimension, "pair") if v.publication_level != "no-claim")
    return {(v.claim.subjects[0], v.claim.subjects[1]): v.publication_level for v in supported}


def judged_range(index: RunIndex, dimension: str, agent: str) -> tuple[float, float] | None:
    """The lowest and highest score by a single judge, shown for agents without a rank; None for fewer than two."""
    levels = [item.value for item in index.known("single.level", dimension, agent=agent)]
    return (min(levels), max(levels)) if len(levels) > 1 else None


def ranked_alone(index: RunIndex, dimension: str) -> dict[str, Tier]:
    """The tiers of one agent, by agent: those that may have a rank and a score of their own."""
    return {tier.agents[0]: tier for tier in tiers(index, dimension) if tier.ranked}
