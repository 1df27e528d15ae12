"""What the pages of a benchmark show of its data: classes and correlations of the market, snapshots, questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from assaymark.benchmark.market_window import MarketWindow
from assaymark.benchmark.panel import TRAINING_END
from assaymark.benchmark.questions.payloads import REGIME_NAMES, SPLITS, TEMPLATES
from assaymark.benchmark.questions.published import read_questions
from assaymark.benchmark.questions.question import Question
from assaymark.benchmark.questions.schedule import COUNTS, shared_out
from assaymark.benchmark.stage_prompts import layers
from assaymark.benchmark.universe import is_index
from assaymark.market import CLASS_NAMES, class_index, pairwise_correlation, simple_returns
from assaymark.portfolio.solution import Floats
from assaymark.portfolio.strategies import CLASSES
from assaymark.report.portbench.inputs import ClassView, MarketView, SnapshotView, TemplateView
from assaymark.workflow.bench_plan import LockedBench

_POINTS: Final = 133
"""Days of a history that are drawn: one a month over eleven years."""

_END: Final = datetime(9999, 1, 1, tzinfo=UTC)
_OVERLAP: Final = 60
"""Common days below which a correlation over the training years is left out."""


def market_view(locked: LockedBench, *, snapshots: bool) -> MarketView:
    """The market of a run, with a snapshot from each window where ``snapshots`` are wanted."""
    history, universe = locked.data.history, locked.data.universe
    prices = history.as_of(_END).prices(max(history.days.size, 1))
    column = {name: at for at, name in enumerate(prices.ids)}
    listing = {one.id: one for one in history.listings}
    order = sorted(range(universe.size), key=lambda at: (CLASSES.index(universe.classes[at]), at))
    names = [universe.ids[at] for at in order]
    closes = prices.values[:, [column[name] for name in names]]
    groups = np.array([universe.classes[at] for at in order])
    index = {CLASS_NAMES[key]: one for key, one in class_index(closes, [listing[name] for name in names]).items()}
    shown = np.unique(np.linspace(0, prices.days.size - 1, _POINTS).round().astype(int))
    tradable = Counter(CLASS_NAMES[one.asset_class] for one in history.listings if not is_index(one))
    training = prices.days <= TRAINING_END
    rows = np.flatnonzero(training if training.sum() > _OVERLAP else np.ones_like(training))
    correlation = pairwise_correlation(simple_returns(closes[rows]), min_overlap=_OVERLAP).values
    return MarketView(
        days=tuple(map(str, prices.days[shown])),
        classes=tuple(
            ClassView(
                name=name,
                instruments=int((groups == name).sum()),
                listed=tradable[name],
                tickers=tuple(np.array(names)[groups == name].tolist()),
                lines=_from_100(closes[:, groups == name])[shown],
                index=index[name][shown],
            )
            for name in CLASSES
            if (groups == name).any()
        ),
        correlation=correlation,
        between=_class_means(correlation, groups),
        over=(str(prices.days[rows[0]]), str(prices.days[rows[-1]])),
        snapshots=tuple(_snapshot(one) for one in locked.data.windows) if snapshots else (),
    )


def _from_100(closes: Floats) -> Floats:
    """Closes as multiples of the first one of each column, which is 100."""
    first = np.argmax(np.isfinite(closes), axis=0)
    return np.asarray(100.0 * closes / closes[first, np.arange(closes.shape[1])])


def _class_means(correlation: Floats, groups: np.ndarray) -> Floats:
    """Mean of the pairs that have a correlation, within and between classes."""
    pairs = np.where(np.eye(groups.size, dtype=bool), np.nan, correlation)
    names = [name for name in CLASSES if (groups == name).any()]
    found = np.full((len(names), len(names)), np.nan)
    for row, one in enumerate(names):
        for at, other in enumerate(names):
            some = pairs[np.ix_(groups == one, groups == other)]
            if np.isfinite(some).any():
                found[row, at] = float(np.nanmean(some))
    return found


def _snapshot(window: MarketWindow) -> SnapshotView:
    """The date of a window on which its instruments were most volatile."""
    day = max(window.decisions, key=lambda one: float(np.mean([line.volatility for line in window.known(one).lines])))
    found = window.snapshot(day, window.start())
    between = found.between.copy()
    for at, one in enumerate(found.classes):
        between[at, at] = np.nan if one.intra is None else one.intra
    return SnapshotView(
        window=window.window,
        day=str(day),
        layers=tuple((name, heads, rows) for name, (heads, rows) in layers(found).items()),
        classes=tuple(one.asset_class for one in found.classes),
        between=between,
    )


def template_views(locked: LockedBench, asked: Sequence[Question]) -> Iterator[TemplateView]:
    """The questions by template: the whole set by split, and the split from which those that were asked are drawn."""
    splits, drawn = _splits(locked), Counter(one.template for one in asked)
    for name in TEMPLATES:
        mine = [one for one in locked.pool if one.template == name]
        if drawn[name]:
            regimes = Counter(one.regime for one in mine)
            yield TemplateView(
                template=name,
                splits={split: splits[name, split] for split in SPLITS},
                split=locked.plan.questions.split,
                asked=drawn[name],
                regimes={regime: regimes[regime] for regime in REGIME_NAMES},
                with_text=float(np.mean([bool(one.context.news or one.context.filings) for one in mine])),
                characters=float(np.mean([len(one.prompt()) for one in mine])),
            )


def _splits(locked: LockedBench) -> Mapping[tuple[str, str], int]:
    """How many questions of each template and split the set has: counted in a file, or as the generator shares them."""
    file = locked.plan.questions.file
    if file is not None:
        return Counter((one.template, one.split) for one in read_questions(Path(file)))
    return Counter({(str(name), str(split)): count for (name, split), count in shared_out(COUNTS).items()})
