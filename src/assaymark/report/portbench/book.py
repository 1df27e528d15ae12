"""What the pages of a benchmark are made from: its measurements by name and labels, its verdicts by kind.

``bench.level`` (board, model), ``contrast`` (dimension, high, low), ``order.*`` (dimension): leaderboards.
``bench.stage`` (model, profile, stage, windows), ``bench.ceiling`` (profile, stage): S1 to S5, CEPS and PAS.
``bench.adaptation`` (model), ``bench.stress`` (model, profile), ``bench.risk_safe`` (model, profile, scenario).
``bench.drawdown``, ``bench.sharpe``, ``bench.sharpe.contrast`` (model, profile, window), ``bench.performance`` (the
same and figure), ``bench.baseline`` (baseline, window, figure): histories.
``bench.question`` (model, condition, and one of template, regime, kind, or none for all), ``bench.dissociation``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from assaymark.benchmark.episode import BaselineResult, Heard
from assaymark.benchmark.market import Window
from assaymark.benchmark.plan import BenchPlan
from assaymark.benchmark.profiles import Profile
from assaymark.benchmark.questions.answers import Scored
from assaymark.benchmark.questions.payloads import Split, Template
from assaymark.benchmark.questions.templates import Question
from assaymark.benchmark.scores import EpisodeResult, StageState
from assaymark.claims.boards import Leaderboard
from assaymark.records import Level, Measurement, Verdict, measurement_id
from assaymark.report.blocks import Index, by_name
from assaymark.report.text import bounds_of, shown
from assaymark.text import clean, span

ALL: Final = "all"
"""The leaderboard over all profiles, and the label ``profile`` of what was measured over all of them."""

QUESTIONS: Final = "questions"
"""The leaderboard of the questions; every other one bears the name of its profile."""


@dataclass(frozen=True, slots=True)
class StageTrace:
    """One stage on one date: what was asked and said (S1 to S3), what was true, and how the score came about."""

    stage: str
    score: float
    state: StageState
    heard: Heard
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    arithmetic: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DateTrace:
    """One decision date of an episode."""

    day: str
    ceps: float
    pas: float
    stages: tuple[StageTrace, ...]


@dataclass(frozen=True, slots=True)
class EpisodeTrace:
    """One model under one profile through one window, in the manner of figures 28 to 30."""

    model: str
    profile: str
    window: str
    dates: tuple[DateTrace, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ClassView:
    """One asset class of the market."""

    name: str
    instruments: int  # that the run holds
    listed: int  # that its snapshot has
    tickers: tuple[str, ...]
    lines: NDArray[np.float64]  # (n_points, n_instruments): closes, 100 at the first of each, NaN where there is none
    index: NDArray[np.float64]  # (n_points,): the equal-weight index of the class


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotView:
    """What a model is shown on one date; ``layers`` are name, heads and rows of the tables, as prompts print them."""

    window: str
    day: str
    layers: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]], ...]
    classes: tuple[str, ...]
    between: NDArray[np.float64]  # (n_classes, n_classes): mean correlations, NaN within a class of one member


@dataclass(frozen=True, slots=True, eq=False)
class MarketView:
    """The market of a run: its classes over the sampled ``days``, correlations, and snapshots of some dates."""

    days: tuple[str, ...]
    classes: tuple[ClassView, ...]
    correlation: NDArray[np.float64]  # (n_instruments, n_instruments): pairwise, by class, NaN for none
    between: NDArray[np.float64]  # its means by class, as in `SnapshotView`
    over: tuple[str, str]  # the first and the last day behind it
    snapshots: tuple[SnapshotView, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BenchRun:
    """Everything the pages of a benchmark show."""

    plan: BenchPlan
    plan_hash: str
    locked_at: str
    market: str
    instruments: int  # that can be held
    profiles: tuple[Profile, ...] = ()
    windows: tuple[Window, ...] = ()
    decisions: Mapping[str, int] = field(default_factory=dict)  # of each window
    leaderboards: tuple[Leaderboard, ...] = ()  # one per profile, one over all, one of the questions, as far as run
    verdicts: tuple[Verdict, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    results: Sequence[EpisodeResult] = ()
    baselines: Sequence[BaselineResult] = ()
    episodes: tuple[EpisodeTrace, ...] = ()
    replies: Mapping[str, int] = field(default_factory=dict)  # of the pipeline, by how they could be read
    answers: Mapping[str, Sequence[Scored]] = field(default_factory=dict)  # of each model to the questions
    notes: tuple[str, ...] = ()  # what a reader has to know
    panel: str | None = None  # the pages on which judges graded the rationales, relative to the report
    data: MarketView | None = None
    pool: Sequence[Question] = ()  # from which the questions were drawn
    splits: Mapping[tuple[Template, Split], int] = field(default_factory=dict)  # questions of the whole set
    others: Mapping[str, Measurement] = field(default_factory=dict)  # CEPS by the convention the plan does not score by

    @property
    def title(self) -> str:
        """What the pages are called."""
        return self.plan.title or "PortBench"

    @property
    def built_in(self) -> dict[str, bool]:
        """Which models are rules of this package."""
        return {one.name: one.model.startswith("reference/") for one in self.plan.models}


ROUNDING: Final = 1e-9
Kind = Literal["first", "gates", "gate", "beats", "dissociation", "above", "within", "other"]
KINDS: Final[tuple[Kind, ...]] = ("first", "gates", "gate", "beats", "dissociation", "above", "within", "other")
STAGES: Final[Mapping[str, tuple[str, str]]] = {
    "S1": ("outlook", "Market interpretation"), "S2": ("signals", "Signal generation"),
    "S3": ("weights", "Weight optimisation"), "S4": ("trading", "Execution"), "S5": ("risk", "Risk monitoring"),
}  # fmt: skip


def kind_of(verdict: Verdict) -> Kind:
    """What a claim of a benchmark says, from its id."""
    name = verdict.claim.id.partition("[")[0]
    return next((kind for kind in KINDS if kind == name), "other")


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkIndex(Index):
    """A `BenchRun` with its look-ups."""

    run: BenchRun
    names: tuple[str, ...]
    verdicts: Mapping[str, Verdict]

    @classmethod
    def of(cls, run: BenchRun) -> BenchmarkIndex:
        """Index a run once. Models are listed by name: no page is sorted by a value that no verdict supports."""
        names = tuple(sorted(model.name for model in run.plan.models))
        verdicts, by_id = {one.claim.id: one for one in run.verdicts}, {item.id: item for item in run.measurements}
        return cls(by_id, by_name(run.measurements), run, names, verdicts)

    @property
    def profile(self) -> str:
        """What most measurements are of: all profiles together, or the only one."""
        return ALL if len(self.run.profiles) != 1 else self.run.profiles[0].name

    def board(self, name: str | None) -> Leaderboard | None:
        """A leaderboard by its name."""
        return next((leaderboard for leaderboard in self.run.leaderboards if leaderboard.board.name == name), None)

    def shares_tier(self, board: str | None, model: str) -> bool:
        """Whether a model cannot be ranked on a leaderboard, so that no page shows its score as a point."""
        found = self.board(board)
        return found is not None and any(model in tier and len(tier) > 1 for tier in found.tiers)

    @property
    def stress(self) -> tuple[Window, ...]:
        """The stress windows in the order of the plan."""
        return tuple(window for window in self.run.windows if window.kind == "stress")

    @property
    def normal(self) -> Window | None:
        """The calm window, if one was run."""
        return next((window for window in self.run.windows if window.kind == "normal"), None)

    @property
    def strictest(self) -> Profile | None:
        """The profile with the smallest drawdown limit."""
        return min(self.run.profiles, key=lambda profile: profile.drawdown_tolerance, default=None)

    @property
    def has_pipeline(self) -> bool:
        """Whether the stages were run."""
        return bool(self.run.results or self.run.baselines or self.run.episodes or "bench.stage" in self.by_name)

    @property
    def has_histories(self) -> bool:
        """Whether any model has a history in a window and profile of the plan."""
        windows, profiles = ({one.name for one in those} for those in (self.run.windows, self.run.profiles))
        return any(len(one.nav) for one in self.run.results if one.window in windows and one.profile in profiles)

    def of_kind(self, *kinds: Kind) -> tuple[Verdict, ...]:
        """Verdicts of some kinds, in the order of the run."""
        return tuple(verdict for verdict in self.run.verdicts if kind_of(verdict) in kinds)

    def pair_level(self, board: str, first: str, second: str) -> Level:
        """At which level the order of two models is supported, whichever it is."""
        for high, low in ((first, second), (second, first)):
            found = self.verdicts.get(measurement_id("above", {"dimension": board, "high": high, "low": low}))
            if found is not None:
                return found.publication_level
        return "no-claim"

    def gate(self, model: str, profile: str) -> bool | None:
        """Whether a model stays within a profile's limit under stress; None where neither is supported."""
        verdict = self.verdicts.get(measurement_id("gate", {"model": model, "profile": profile}))
        if verdict is None or verdict.publication_level == "no-claim":
            return None
        falls = [m for m in self.every("bench.drawdown", model=model, profile=profile) if m.detail.get("stress")]
        return all(m.value is not None and m.value <= float(m.detail["tolerance"]) + ROUNDING for m in falls)

    def window(self, name: str) -> str:
        """How a page calls a window."""
        found = next((window for window in self.run.windows if window.name == name), None)
        return clean((found.title or found.name) if found else name, 60)

    def missing(self, command: Literal["pipeline", "qa"]) -> str:
        """That a part was not run, with the command that runs it."""
        part, adds = ("The pipeline was not run", "adds it")
        if command == "qa":
            part, adds = ("The questions were not asked", "adds them")
        return f"{part}: “assaymark bench {command}” with the same plan and run folder {adds} to this page."


def range_words(item: Measurement | None) -> str:
    """The interval alone, or why there is none: a point would rank the models."""
    if item is None or item.value is None:
        return why_none(item)
    ends = bounds_of(item)
    return "no interval" if ends is None else span(*ends)


def why_none(item: Measurement | None) -> str:
    """Why a cell has no number, in few words: a page says once what models without a score lack."""
    return "no score" if item is not None and item.state.startswith("no score") else shown(item)


def board_title(name: str) -> str:
    """How a page calls a leaderboard."""
    return {ALL: "All profiles", QUESTIONS: "Questions"}.get(name, f"{clean(name, 40).capitalize()} profile")


def pipeline_boards(run: BenchRun) -> tuple[Leaderboard, ...]:
    """The leaderboards of the pipeline: over all profiles, then one a profile."""
    known = {profile.name for profile in run.profiles} | {ALL}
    return tuple(leaderboard for leaderboard in run.leaderboards if leaderboard.board.name in known)


def profile_word(name: str) -> str:
    """A profile's name as the head of a column."""
    return clean(name, 24).capitalize()
