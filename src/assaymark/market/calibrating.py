"""What the synthetic market measures, beside what it was calibrated to: the table of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assaymark.market.calendar import fill_gaps, simple_returns
from assaymark.market.instruments import CLASSES, AssetClass, class_members
from assaymark.market.regime import class_correlations, class_index, pairwise_correlation
from assaymark.market.synthetic import (
    CRYPTO_DRAWDOWN,
    EQUAL_WEIGHT_VOLATILITY,
    INTRA,
    VOLATILITY,
    WITH_EQUITIES,
    SyntheticMarket,
    synthetic_market,
)

WINDOW = 41
"""Returns of one correlation window: PortBench prints its correlations from a trailing window of so many days."""

_YEAR = 252


@dataclass(frozen=True, slots=True)
class CalibrationRow:
    """One calibrated figure: its target range, and what each seed's market has."""

    name: str
    asset_class: str
    target: str
    low: float
    high: float
    measured: tuple[float, ...]

    @property
    def met(self) -> bool:
        """Whether every seed lies in the allowed range."""
        return all(self.low <= value <= self.high for value in self.measured)


def calibration(seeds: Sequence[int] = (0, 1, 2)) -> list[CalibrationRow]:
    """Every calibration target with the values measured in the markets of these seeds."""
    measured = [measure(synthetic_market(seed)) for seed in seeds]
    targets: list[tuple[str, str, str, float, float]] = []
    for figure, wanted in (("correlation within", INTRA), ("correlation with equities", WITH_EQUITIES)):
        targets += [(figure, name, f"{value:.2f}", value - 0.06, value + 0.06) for name, value in wanted.items()]
    for name in CLASSES:
        low, high = VOLATILITY[name]
        text = f"{100 * low:.3g} to {100 * high:.3g} %"
        targets += [(f"{end} volatility", name, text, low, high) for end in ("lowest", "highest")]
    low, high = CRYPTO_DRAWDOWN
    targets.append(("drawdown in the tightening window", "CR", f"{100 * low:.0f} to {100 * high:.0f} %", low, high))
    about = EQUAL_WEIGHT_VOLATILITY
    targets.append(("equal-weight volatility", "all", f"about {100 * about:.0f} %", about - 0.015, about + 0.015))
    return [CalibrationRow(*target, tuple(one[target[:2]] for one in measured)) for target in targets]


def measure(market: SyntheticMarket) -> dict[tuple[str, str], float]:
    """The calibrated figures of one market, by (figure, class)."""
    closes = fill_gaps(market.close)
    returns, calm = simple_returns(closes), market.calm[1:]
    found: dict[tuple[str, str], float] = {}
    means = calm_correlations(returns, market)
    for name in CLASSES:
        found["correlation within", name] = means[name, name]
        found["correlation with equities", name] = means[name, "EQ"]
    volatility = np.nanstd(returns[calm], axis=0, ddof=1) * np.sqrt(_YEAR)
    for name, columns in class_members(market.listings).items():
        found["lowest volatility", name] = float(volatility[columns].min())
        found["highest volatility", name] = float(volatility[columns].max())
    index, window = class_index(closes, market.listings)["CR"], market.windows[-1]
    path = index[window.first - 1 : window.last + 1]
    found["drawdown in the tightening window", "CR"] = float((1 - path / np.maximum.accumulate(path)).max())
    equal = np.nanmean(returns[calm], axis=1)
    found["equal-weight volatility", "all"] = float(equal.std(ddof=1) * np.sqrt(_YEAR))
    return found


def calm_correlations(
    returns: np.ndarray, market: SyntheticMarket, *, window: int = WINDOW
) -> dict[tuple[AssetClass, AssetClass], float]:
    """Mean correlations within and between classes, averaged over the windows in a row that hold calm days only."""
    calm = market.calm[1:]
    starts = [at for at in range(0, returns.shape[0] - window + 1, window) if calm[at : at + window].all()]
    each = [
        class_correlations(pairwise_correlation(returns[at : at + window], min_overlap=window // 2), market.listings)
        for at in starts
    ]
    return {pair: float(np.mean([one[pair] for one in each if pair in one])) for pair in each[-1]}


def calibration_table(seeds: Sequence[int] = (0, 1, 2)) -> str:
    """The calibration as a Markdown table, one row per figure and class, one column per seed."""
    head = ["figure", "class", "target", *(f"seed {seed}" for seed in seeds)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in calibration(seeds):
        as_share = "%" in row.target
        values = [f"{100 * v:.3g} %" if as_share else f"{v:.2f}".replace("-0.00", "0.00") for v in row.measured]
        lines.append("| " + " | ".join([row.name, row.asset_class, row.target, *values]) + " |")
    return "\n".join(lines) + "\n"
