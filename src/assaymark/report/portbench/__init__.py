"""Pages of a benchmark run: supported claims, stages, histories, questions, and every episode."""

# ruff: noqa: F401, I001  # what is not in __all__ is for tests and for the pages of several tracks

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.report.portbench.index import (
        BenchmarkIndex, BenchRun, claim_cards, design_note, bench_levels, stage_note, stage_tables, bench_withheld,
    )  # fmt: skip
    from assaymark.report.portbench.pages import each_benchmark_page, render_benchmark, front_sentences, tier_cuts
    from assaymark.report.portbench.records import BenchProvenance, questions_section
    from assaymark.report.portbench.sections import bench_measurements, signals_figure, windows_table
    from assaymark.report.text import EQUAL_WEIGHT

__all__ = ["BenchRun", "BenchmarkIndex", "each_benchmark_page", "render_benchmark"]

__getattr__ = exported(__name__)
