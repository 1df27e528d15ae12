"""Pages of a benchmark run: what may be said, the stages, the histories, the questions, and every episode."""

from __future__ import annotations

from assaymark.report.portbench.book import (
    BenchmarkIndex,
    BenchRun,
    ClassView,
    DateTrace,
    EpisodeTrace,
    MarketView,
    SnapshotView,
    StageTrace,
)
from assaymark.report.portbench.pages import each_benchmark_page, render_benchmark

__all__ = [
    "BenchRun", "BenchmarkIndex", "ClassView", "DateTrace", "EpisodeTrace", "MarketView", "SnapshotView", "StageTrace",
    "each_benchmark_page", "render_benchmark",
]  # fmt: skip
