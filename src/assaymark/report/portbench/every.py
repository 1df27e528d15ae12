"""Every measurement of a benchmark as a row: by kind and name, never by value."""

from __future__ import annotations

from collections import Counter
from typing import Final

from assaymark.records import Measurement, sha256_text
from assaymark.report.formats import clean, count, number, percent, span, state_words
from assaymark.report.measured import MeasuredRow
from assaymark.report.portbench.book import BenchBook

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


def every_measurement(book: BenchBook) -> tuple[MeasuredRow, ...]:
    """All measurements by kind and then by what they are about."""
    order = {name: at for at, name in enumerate(_TITLES)}
    ordered = sorted(book.run.measurements, key=lambda m: (order.get(m.name, len(order)), _undirected(m), m.id))
    seen: Counter[str] = Counter()
    rows = []
    for item in ordered:
        anchor = f"m{sha256_text(_undirected(item))[:10]}"
        seen[anchor] += 1
        rows.append(_row(item, anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}"))
    return tuple(rows)


def _undirected(item: Measurement) -> str:
    """An id that does not tell the higher of two models."""
    pair = sorted(value for key, value in item.labels.items() if key in ("high", "low"))
    others = sorted(f"{key}={value}" for key, value in item.labels.items() if key not in ("high", "low"))
    return f"{item.name}[{','.join((*others, *pair))}]"


def _row(item: Measurement, anchor: str) -> MeasuredRow:
    level = f", {percent(item.level)}" if item.level is not None else ""
    about = [f"{clean(key, 30)} {clean(item.labels[key], 60)}" for key in sorted(item.labels)]
    value = state_words(item) if item.value is None else f"{number(item.value, 3)} {clean(item.unit, 24)}".rstrip()
    ends = "" if item.low is None or item.high is None else f"{span(item.low, item.high, 3)}{level}"
    return MeasuredRow(
        id=item.id,
        anchor=anchor,
        key=clean(item.name, 60),
        title=_TITLES.get(item.name, clean(item.name, 60)),
        about="; ".join(about) or "the whole run",
        value=value,
        interval=ends or "no interval",
        n=f"{count(item.n)} {clean(item.n_of, 60)}".strip(),
        method=clean(item.method, 200),
    )
