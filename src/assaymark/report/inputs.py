"""What the report is made from: one frozen record of an assay, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from assaymark.protocol import Study
from assaymark.records import AGGREGATE, Context, Decision, Evidence, Measurement, Verdict
from assaymark.report.records.judgments import Judged

# What a study that makes its own records shows its agents: views of its cycles, its date probes and one whole cycle.
#
# Real names and dates stand here, because a reader may know them. Agents and judges never see these views.


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeView:
    """The cycles of one regime: how many, between which bars they lie, and which instruments were left out of how many.
    ``left_out`` maps the real name of an instrument to the number of cycles in whose period it did not trade."""

    name: str
    cycles: int
    first: datetime
    last: datetime
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DateProbeView:
    """What one date probe of the lock found: hits among sanitised cycles, and among those with everything left in."""

    probe: str
    passed: bool
    asked: int
    hits: int
    control_asked: int
    control_hits: int
    chance: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleView:
    """One cycle as its agents saw it, what each of them decided, and the way back to the source. ``names`` maps neutral
    to real names of instruments, ``left_out`` are real names."""

    regime: str
    number: int
    first: datetime
    last: datetime
    names: Mapping[str, str]
    context: Context
    decisions: tuple[Decision, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubstrateView:
    """Where the cycles of a study come from. ``source`` is ``synthetic`` or the name of a file. ``example`` is the
    first cycle of the first regime; None where there is no cycle."""

    source: str
    bars: int
    regimes: tuple[RegimeView, ...]
    probes: tuple[DateProbeView, ...] = ()
    example: CycleView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricView:
    """The rubric as a reader meets it: its name, its title, and its dimensions as (id, title) in rubric order.
    ``texts`` are (dimension or "", what it is, text) of a rubric of one's own, which stands nowhere else."""

    name: str
    title: str
    dimensions: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, str, str], ...] = ()

    def dimension_title(self, dimension: str) -> str:
        """How a dimension is called in a table or figure; an unknown one keeps its id without underscores.

        >>> RubricView(name="r", title="R", dimensions=(("sizing", "Position sizing"),)).dimension_title("sizing")
        'Position sizing'
        """
        if dimension == AGGREGATE:
            return "Overall score"
        return dict(self.dimensions).get(dimension) or dimension.replace("_", " ").capitalize()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedView:
    """A reference judge or agent and what was planted in it. ``question`` is what a judge is a model of, or the rule
    that an agent follows; ``planted`` are its properties."""

    name: str
    family: str
    question: str
    planted: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidView:
    """What the replies of one model came to, in tokens as its provider counted them and in USD. ``usd`` is the sum over
    the replies whose price is known, and ``unpriced`` counts the others; ``untold`` counts the replies whose tokens are
    not known. ``cached_tokens`` is None where no reply told it, ``price_of`` the date of the price, None where there is
    none."""

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
    """A table of scores that somebody else made, and how it was read. ``roles`` maps a role to a column; ``read`` says
    it in one line; ``filled`` was assumed, ``left`` not used or not counted, ``choices`` made with the scores at hand,
    each in words. ``missing`` counts scores that are not there. ``orders`` are by judge what became of pairs that it
    saw in both orders, ``about`` what the table is and is not."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AssayRun:
    """Everything that the pages and the terminal show about one run; ``tests`` are from the datasheets of its judges.

    Examples
    --------
    >>> from assaymark.protocol import JudgeSpec
    >>> study = Study(name="s", seed=1, judges=(JudgeSpec(name="j", model="reference/j", family="f"),))
    >>> rubric = RubricView(name="v1.0", title="A rubric", dimensions=())
    >>> run = AssayRun(study=study, plan_hash="0" * 64, locked_at=None, rubric=rubric,
    ...                verdicts=(), measurements=(), decisions=(), evidence=())
    >>> run.calls
    0
    """

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
    substrate: SubstrateView | None = None
    reference_agents: tuple[PlantedView, ...] = ()
    paid: tuple[PaidView, ...] | None = ()
    judged: Judged = field(default_factory=Judged)
    table: TableView | None = None
