"""Every measurement of a benchmark as a row: by kind and name, never by value."""

from __future__ import annotations

from typing import Final

from assaymark.report.measured import MeasuredRow, rows_of
from assaymark.report.portbench.book import BenchBook
from assaymark.report.trail.refs import Rests

_TITLES: Final = {
    "bench.level": "Level on a leaderboard",
    "bench.contrast": "Difference of two models",
    "bench.stage": "Mean score of a stage",
    "bench.ceiling": "Mean score of the answers themselves",
    "bench.adaptation": "Adaptation to the profile",
    "bench.drawdown": "Deepest fall",
    "bench.sharpe": "Sharpe ratio",
    "bench.sharpe.contrast": "Sharpe ratio against equal weight",
    "bench.performance": "Performance",
    "bench.baseline": "Performance of a baseline",
    "bench.stress": "Stress score",
    "bench.risk_safe": "CEPS of a stress window",
    "bench.question": "Mean score on questions",
    "bench.dissociation": "Questions and pipeline, rank correlation",
}


def every_measurement(book: BenchBook, rests: Rests = lambda _: ()) -> tuple[MeasuredRow, ...]:
    """All measurements of a benchmark; ``rests`` gives the records that one was computed from."""
    return rows_of(book.run.measurements, _TITLES, rests=rests)
