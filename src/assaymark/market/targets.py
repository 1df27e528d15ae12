"""What the synthetic market is calibrated to, per class: the figures that PortBench prints (appendix F.1, section 4).

Figures that PortBench does not print (sub-sector shares, correlations among the other classes, sizes of the legs of the
stress windows) are choices, kept here beside the printed ones so that they can be read in one place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assaymark.market.instruments import CLASSES, AssetClass

INTRA: dict[AssetClass, float] = {"EQ": 0.48, "BO": 0.77, "CO": 0.23, "CR": 0.60, "RE": 0.77, "CA": 0.21}
"""Mean correlation between two instruments of one class."""

DESIGN: dict[AssetClass, float] = {"EQ": 0.495, "BO": 0.795, "CO": 0.23, "CR": 0.61, "RE": 0.795, "CA": 0.21}
"""What the generator aims at within a class: 41-day windows with changing volatility read 2 to 4 % less than this."""

WITH_EQUITIES: dict[AssetClass, float] = {"BO": -0.18, "CO": 0.12, "CR": 0.20, "RE": 0.53, "CA": -0.07}
"""Mean correlation between an instrument of the class and an equity."""

VOLATILITY: dict[AssetClass, tuple[float, float]] = {
    "EQ": (0.09, 0.22),
    "BO": (0.05, 0.15),
    "CO": (0.13, 0.58),
    "CR": (0.49, 0.72),
    "RE": (0.16, 0.18),
    "CA": (0.001, 0.003),
}
"""Lowest and highest calm volatility of an instrument, a year."""

CRYPTO_DRAWDOWN = (0.50, 0.70)
"""Fall of the crypto class in the tightening window, as shares of the peak."""

EQUAL_WEIGHT_VOLATILITY = 0.10
"""Volatility of all instruments in equal weights, a year, on calm days: about this."""

SUB_SHARE: dict[AssetClass, float] = {"EQ": 0.08, "BO": 0.04, "CO": 0.20, "CR": 0.04, "RE": 0.03, "CA": 0.10}
"""Share of an instrument's variance that it shares with its sub-sector only."""

# Correlations of class factors that PortBench leaves open, for the six classes in the order of CLASSES.
_OTHERS: dict[tuple[AssetClass, AssetClass], float] = {
    ("BO", "CO"): -0.10,
    ("BO", "CR"): -0.08,
    ("BO", "RE"): -0.12,
    ("BO", "CA"): 0.25,
    ("CO", "CR"): 0.15,
    ("CO", "RE"): 0.38,
    ("CO", "CA"): -0.05,
    ("CR", "RE"): 0.34,
    ("CR", "CA"): -0.05,
    ("RE", "CA"): -0.18,
}

SUB_VOLATILITY: dict[str, tuple[float, float]] = {
    "large caps": (0.105, 0.14),
    "small caps": (0.16, 0.21),
    "growth": (0.145, 0.19),
    "value": (0.11, 0.15),
    "technology": (0.16, 0.215),
    "health care": (0.115, 0.155),
    "financials": (0.14, 0.185),
    "energy companies": (0.17, 0.215),
    "industrials": (0.13, 0.17),
    "staples": (0.095, 0.125),
    "discretionary": (0.15, 0.19),
    "utilities": (0.11, 0.145),
    "developed abroad": (0.12, 0.16),
    "emerging": (0.14, 0.20),
    "government": (0.055, 0.145),
    "corporate": (0.055, 0.09),
    "inflation-linked": (0.055, 0.08),
    "mortgage": (0.055, 0.075),
    "energy": (0.26, 0.57),
    "precious metals": (0.135, 0.28),
    "industrial metals": (0.16, 0.26),
    "agriculture": (0.15, 0.30),
    "major coins": (0.495, 0.58),
    "platforms": (0.58, 0.69),
    "payments": (0.55, 0.69),
    "diversified": (0.166, 0.174),
    "residential": (0.166, 0.174),
    "commercial": (0.166, 0.174),
    "bills": (0.0011, 0.0018),
    "money market": (0.0018, 0.0027),
}
"""Range of calm volatility that each sub-sector's instruments are drawn from, inside their class's range."""


def factor_correlation(mean_loading: np.ndarray) -> np.ndarray:
    """Correlation of the six class factors that gives the wanted correlations with equities.

    Parameters
    ----------
    mean_loading : float array of shape (6,)
        Mean loading of each class's instruments on their factor, in the order of `CLASSES`: two instruments of
        different classes correlate by the product of their loadings and this matrix.
    """
    place = {name: i for i, name in enumerate(CLASSES)}
    found = np.eye(len(CLASSES))
    for name, target in WITH_EQUITIES.items():
        found[0, place[name]] = target / (mean_loading[0] * mean_loading[place[name]])
    for (a, b), value in _OTHERS.items():
        found[place[a], place[b]] = value
    upper = np.triu(found, 1)
    return np.eye(len(CLASSES)) + upper + upper.T


@dataclass(frozen=True, slots=True)
class StressPlan:
    """One kind of stress window.

    ``earliest`` and ``latest`` bound the first day (it is drawn between them), ``days`` is its length in weekdays.
    ``common`` and ``own`` multiply the volatility of what a class shares and of what an instrument has alone.
    ``legs`` pins the mean log price of each class, as (share of the window, cumulative log return) knots.
    """

    name: str
    earliest: str
    latest: str
    days: int
    common: float
    own: float
    legs: dict[AssetClass, tuple[tuple[float, float], ...]]


STRESS: tuple[StressPlan, ...] = (
    StressPlan(
        "liquidity",
        "2015-05-01",
        "2016-12-01",
        140,
        1.6,
        1.15,
        {
            "EQ": ((0.2, -0.12), (0.45, -0.06), (0.9, -0.18), (1.0, -0.15)),
            "BO": ((1.0, 0.01),),
            "CO": ((0.9, -0.17), (1.0, -0.16)),
            "CR": ((0.3, -0.20), (1.0, 0.05)),
            "RE": ((0.2, -0.08), (0.9, -0.11), (1.0, -0.08)),
        },
    ),
    StressPlan(
        "pandemic",
        "2018-06-01",
        "2020-09-01",
        75,
        3.0,
        1.9,
        {
            "EQ": ((0.35, -0.36), (1.0, -0.15)),
            "BO": ((0.25, 0.04), (0.35, 0.0), (1.0, 0.05)),
            "CO": ((0.35, -0.32), (1.0, -0.22)),
            "CR": ((0.35, -0.48), (1.0, -0.10)),
            "RE": ((0.35, -0.42), (1.0, -0.25)),
        },
    ),
    StressPlan(
        "tightening",
        "2021-06-01",
        "2022-12-01",
        165,
        1.5,
        1.1,
        {
            "EQ": ((0.3, -0.14), (0.5, -0.06), (0.8, -0.20), (1.0, -0.14)),
            "BO": ((0.3, -0.04), (0.8, -0.13), (1.0, -0.11)),
            "CO": ((0.2, 0.03), (1.0, -0.14)),
            "CR": ((0.25, -0.58), (0.5, -0.50), (0.8, -0.76), (1.0, -0.80)),
            "RE": ((0.3, -0.12), (0.5, -0.08), (0.8, -0.28), (1.0, -0.24)),
        },
    ),
)
"""The three windows of PortBench section C.2 in kind and length. They end before 2024, its normal year."""
