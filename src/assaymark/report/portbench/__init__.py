"""Pages of a benchmark run: what may be said, the stages, the histories, the questions, and every episode."""

from __future__ import annotations

from assaymark.report.portbench.inputs import (
    BenchModel,
    BenchRun,
    DateTrace,
    EpisodeTrace,
    NavPath,
    ProfileView,
    QuestionTrace,
    StageTrace,
    WindowView,
)
from assaymark.report.portbench.pages import render_benchmark

__all__ = [
    "BenchModel",
    "BenchRun",
    "DateTrace",
    "EpisodeTrace",
    "NavPath",
    "ProfileView",
    "QuestionTrace",
    "StageTrace",
    "WindowView",
    "render_benchmark",
]
