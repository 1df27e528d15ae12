"""What the pages of a benchmark are made from.

Numbers come as measurements, by name and labels:

``bench.level`` (board, model)
    Mean score on a leaderboard, with its interval.
``contrast`` (dimension, high, low), ``order.autocorrelation`` and ``order.detectable`` (dimension)
    What orders on a leaderboard rest on; ``dimension`` is the board.
``bench.stage`` (model, profile, stage, windows)
    Mean score of S1 to S5; ``windows`` is all, normal or stress, ``profile`` a profile or `ALL`. Stage ``CEPS`` and
    ``PAS`` beside them.
``bench.ceiling`` (profile, stage)
    The same of answers that are true at every stage.
``bench.adaptation`` (model)
    How much alignment differs between profiles.
``bench.drawdown`` (model, profile, window)
    Maximum drawdown, a positive share; ``detail`` has ``tolerance``, ``stress`` and ``wanted``.
``bench.sharpe`` (model, profile, window), ``bench.sharpe.contrast`` (the same: against equal weight)
    With intervals over resampled histories.
``bench.performance`` (model, profile, window, figure)
    ``figure`` is total_return, volatility, sortino, calmar, turnover, holdings, largest_weight or buys (the share of
    instruments with the signal buy).
``bench.baseline`` (baseline, window, figure)
    The same figures, and sharpe and drawdown, of the five baselines.
``bench.stress`` (model, profile)
    Mean stress score of the stress windows.
``bench.risk_safe`` (model, profile, scenario)
    CEPS of a scenario; ``detail`` has the ``threshold`` and whether it is reached (``safe``).
``bench.question`` (model, condition, and one of template, regime, kind, or none for all)
    Mean score on questions. ``kind`` is formula or judgment.
``bench.dissociation`` (board)
    Rank correlation of questions and pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from assaymark.claims.boards import Leaderboard
from assaymark.records import Measurement, Verdict

ALL: Final = "all"
"""The leaderboard over all profiles, and the label ``profile`` of what was measured over all of them."""

QUESTIONS: Final = "questions"
"""The leaderboard of the questions; every other one bears the name of its profile."""


@dataclass(frozen=True, slots=True)
class BenchModel:
    """A model that was put through the benchmark; ``words`` say what a reference model does."""

    name: str
    model: str
    family: str
    words: str = ""

    @property
    def reference(self) -> bool:
        """Whether it is one of ours, made to be known."""
        return self.model.startswith("reference/")


@dataclass(frozen=True, slots=True)
class ProfileView:
    """One investor profile with its limits (Table 7): shares, VaR negative."""

    name: str
    equity_cap: float
    bond_floor: float
    drawdown_tolerance: float
    var_limit: float


@dataclass(frozen=True, slots=True)
class WindowView:
    """One window: first and last day as ISO dates, how many decisions fall into it."""

    name: str
    title: str
    first: str
    last: str
    stress: bool
    decisions: int


@dataclass(frozen=True, slots=True, eq=False)
class NavPath:
    """One history: net asset value on each trading day, 1.0 on the first. A baseline has no profile."""

    model: str
    profile: str
    window: str
    days: tuple[str, ...]
    nav: NDArray[np.float64]
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class StageTrace:
    """One stage on one date: what was asked and said (S1 to S3), what was true, and how the score came about.

    ``prompt`` and ``reply`` are excerpts; ``cut`` says that there is more of either in the ledger under ``key``.
    ``rows`` are lines of a table with a header in ``columns``; ``arithmetic`` are lines of plain text.
    """

    stage: str
    score: float
    state: str
    reason: str = ""
    prompt: str = ""
    reply: str = ""
    cut: bool = False
    key: str = ""
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


@dataclass(frozen=True, slots=True)
class QuestionTrace:
    """One question as it was asked, answered and scored; some of each template are shown."""

    model: str
    template: str
    condition: str
    regime: str
    prompt: str
    reply: str
    truth: str
    score: float
    state: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One answer to one question: its score, how it could be read, and the key of its call.

    ``kind`` is formula or judgment, and empty for a template that is neither.
    """

    model: str
    question: str
    template: str
    condition: str
    regime: str
    kind: str
    score: float
    state: str
    key: str


@dataclass(frozen=True, slots=True, eq=False)
class ClassView:
    """One asset class of the market.

    ``instruments`` is how many of it the run holds, ``listed`` how many its snapshot has. ``lines`` of shape (n_points,
    n_instruments) are their closes on the sampled days, 100 at the first of each and NaN where there is none; ``index``
    (n_points,) is the equal-weight index of the class.
    """

    name: str
    instruments: int
    listed: int
    tickers: tuple[str, ...]
    lines: NDArray[np.float64]
    index: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotView:
    """What a model is shown on one date. ``layers`` are name, heads and rows of the tables, as prompts print them.

    ``between`` of shape (n_classes, n_classes) has the mean correlation of every two of ``classes``, on the diagonal
    that within a class, NaN where a class has one member.
    """

    window: str
    day: str
    layers: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]], ...]
    classes: tuple[str, ...]
    between: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MarketView:
    """The market of a run: its classes over the sampled ``days``, correlations, and snapshots of some dates.

    ``correlation`` of shape (n_instruments, n_instruments) is pairwise over the training years in the order of
    ``classes``, NaN where a pair has none; ``over`` are the first and the last day behind it. ``between`` has its means
    by class, as in `SnapshotView`.
    """

    days: tuple[str, ...]
    classes: tuple[ClassView, ...]
    correlation: NDArray[np.float64]
    between: NDArray[np.float64]
    over: tuple[str, str]
    snapshots: tuple[SnapshotView, ...] = ()


@dataclass(frozen=True, slots=True)
class TemplateView:
    """The questions of one template: the whole set by ``splits``, and those of the ``split`` that was asked.

    ``asked`` is how many were drawn from it; ``regimes`` counts all of them, ``with_text`` is the share of them with
    news or filings, and ``characters`` the mean length of their prompts.
    """

    template: str
    splits: Mapping[str, int]
    split: str
    asked: int
    regimes: Mapping[str, int]
    with_text: float
    characters: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BenchRun:
    """Everything the pages of a benchmark show.

    ``replies`` counts the replies of the pipeline by how they could be read, ``answers`` those of the questions.
    ``leaderboards`` has one per profile, one over all profiles, and one of the questions, as far as they were run.
    ``asked`` is every answer to a question, where ``questions`` are some of them whole. ``notes`` are sentences about
    this run that a reader has to know. ``panel`` is the address of the pages on which judges graded the
    rationales, relative to the report. ``data`` is the market, ``templates`` the set of questions. ``others``
    is the mean CEPS of each model on the first board by the convention that the plan does not score by.
    """

    name: str
    title: str
    plan_hash: str
    locked_at: str
    convention: str
    market: str
    instruments: int
    frequency: str
    cost_bps: float
    level: float
    models: tuple[BenchModel, ...]
    profiles: tuple[ProfileView, ...]
    windows: tuple[WindowView, ...]
    leaderboards: tuple[Leaderboard, ...]
    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...]
    paths: tuple[NavPath, ...] = ()
    episodes: tuple[EpisodeTrace, ...] = ()
    questions: tuple[QuestionTrace, ...] = ()
    asked: tuple[AskedQuestion, ...] = ()
    replies: Mapping[str, int] = field(default_factory=dict)
    answers: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    panel: str | None = None
    data: MarketView | None = None
    templates: tuple[TemplateView, ...] = ()
    others: Mapping[str, Measurement] = field(default_factory=dict)
