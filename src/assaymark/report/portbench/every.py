"""Every measurement of a benchmark as a row: by kind and name, never by value.

A difference whose order is not supported is without its numbers. A score of a model that shares its tier has its
interval in its place, without a point.
"""

from __future__ import annotations

from typing import Final

from assaymark.claims.boards import LEVEL, SHARPE_CONTRAST
from assaymark.records import Measurement, measurement_id
from assaymark.report.measurements import MeasuredRow, rows_of
from assaymark.report.portbench.book import BenchBook
from assaymark.report.portbench.inputs import QUESTIONS
from assaymark.report.records.texts import Rests
from assaymark.text import span

_TITLES: Final = {
    "bench.level": "Level on a leaderboard",
    "contrast": "Paired difference of two models",
    "order.autocorrelation": "Autocorrelation of clusters in time, lag 1",
    "order.detectable": "Smallest detectable difference, for a leader",
    "bench.stage": "Mean score of a stage",
    "bench.ceiling": "Mean score of true answers",
    "bench.adaptation": "Adaptation to the profile",
    "bench.drawdown": "Maximum drawdown",
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

    def hidden(item: Measurement) -> str:
        labels = item.labels
        if item.name == "contrast":
            level = book.pair_level(labels["dimension"], labels["high"], labels["low"])
            return "" if level != "no-claim" else "not shown: no supported order"
        if item.name == SHARPE_CONTRAST:
            claim = book.verdicts.get(measurement_id("beats", labels))
            supported = claim is not None and claim.publication_level != "no-claim"
            return "" if supported or item.value is None else "not shown: the difference is not supported"
        if item.value is None or not book.shares_tier(_board_of(item), labels.get("model", "")):
            return ""
        ends = "not shown" if item.low is None or item.high is None else f"{span(item.low, item.high)}, its interval"
        return f"{ends}; the model shares its tier"

    return rows_of(book.run.measurements, _TITLES, rests=rests, hidden=hidden)


def _board_of(item: Measurement) -> str | None:
    """The leaderboard that a score of one model is the score of; None where it is of no leaderboard."""
    if item.name == LEVEL:
        return item.labels["board"]
    if item.name == "bench.risk_safe" or (item.name == "bench.stage" and item.labels["stage"] == "CEPS"):
        return item.labels["profile"]
    whole = item.name == "bench.question" and item.labels.keys() == {"model", "condition"}
    return QUESTIONS if whole else None
