"""Reference models of the benchmark: ten rules with planted properties that see the prompt and nothing else."""

from __future__ import annotations

from assaymark.benchmark.reference.models import (
    PREFIX,
    SKILLS,
    ReferenceBenchmarkModel,
    benchmark_argument_problems,
    reference_benchmark_models,
)

__all__ = ["PREFIX", "SKILLS", "ReferenceBenchmarkModel", "benchmark_argument_problems", "reference_benchmark_models"]
