"""Pages of a benchmark run: what may be said, the stages, the histories, the questions, and every episode."""

from __future__ import annotations

from assaymark.report.portbench.inputs import (
    AskedQuestion,
    BenchModel,
    BenchRun,
    ClassView,
    DateTrace,
    EpisodeTrace,
    MarketView,
    NavPath,
    ProfileView,
    QuestionTrace,
    SnapshotView,
    StageTrace,
    TemplateView,
    WindowView,
)
from assaymark.report.portbench.pages import each_benchmark_page, render_benchmark

__all__ = [
    "AskedQuestion",
    "BenchModel",
    "BenchRun",
    "ClassView",
    "DateTrace",
    "EpisodeTrace",
    "MarketView",
    "NavPath",
    "ProfileView",
    "QuestionTrace",
    "SnapshotView",
    "StageTrace",
    "TemplateView",
    "WindowView",
    "each_benchmark_page",
    "render_benchmark",
]
