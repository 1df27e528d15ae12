"""What has to hold under stress: the drawdown gate and the least CEPS of each scenario (PortBench section C.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from assaymark.benchmark.checks import positive_share, share
from assaymark.errors import UnknownNameError
from assaymark.portfolio.checks import SLACK, Findings
from assaymark.portfolio.solution import Floats

RISK_SAFE: Final[dict[str, float]] = {"china-2015": 0.40, "covid-2020": 0.45, "crypto-2022": 0.50}
"""Least CEPS of each stress scenario, Table 6, by the name of its window."""

STRESS_SCENARIOS: Final[tuple[str, ...]] = tuple(RISK_SAFE)
"""The three stress scenarios of Table 6; the gate looks at all of them."""


def stress_gate(drawdowns: ArrayLike | Mapping[str, float], tolerance: float) -> bool:
    """Whether the deepest drawdown of all stress windows is within the tolerance of a profile.

    The primary criterion of section C.2, of one profile. Tables 2 and 9 of the paper print the global gate instead:
    all windows under all profiles.

    Parameters
    ----------
    drawdowns : float array of shape (n_windows,), or mapping of windows to floats
        Largest drawdown of each stress window as a share, of either sign.
    tolerance : float
        Above 0 and at most 1; a drawdown of just this size passes (within 1e-9).

    Returns
    -------
    bool

    Raises
    ------
    InputError
        No drawdown; one beyond 1, as a percentage would be; a tolerance out of range.

    Examples
    --------
    >>> stress_gate([-0.0616, -0.0503, -0.1238], 0.10), stress_gate([-0.0616, -0.0503, -0.1238], 0.20)
    (False, True)
    """
    depths = _depths("stress_gate", drawdowns, tolerance)
    return bool(depths.max() <= tolerance + SLACK)


def stress_score(drawdown: float, tolerance: float) -> float:
    """What is left of the tolerance after a drawdown, as a share of it: ``max(0, 1 - |drawdown| / tolerance)``.

    1: no loss. 0: the tolerance is used up, or more. The cells of the paper's Figure 4, of one profile.

    Parameters
    ----------
    drawdown : float
        A share, of either sign.
    tolerance : float
        Above 0 and at most 1.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        As in `stress_gate`.

    Examples
    --------
    >>> stress_score(-0.05, 0.20)
    0.75
    """
    (depth,) = _depths("stress_score", [drawdown], tolerance)
    return max(0.0, 1.0 - float(depth) / tolerance)


def risk_safe(scenario: str, ceps: float) -> bool:
    """Whether the CEPS of a stress scenario reaches the least of Table 6: the secondary criterion of section C.2.

    The text there says that the score must exceed the threshold, the table that it may equal it; the table is taken.

    Parameters
    ----------
    scenario : str
        One of `STRESS_SCENARIOS`.
    ceps : float
        Mean CEPS of the episode, in [0, 1].

    Returns
    -------
    bool

    Raises
    ------
    UnknownNameError
        Another scenario.
    InputError
        A scenario that is no name, a score out of range.

    Examples
    --------
    >>> risk_safe("covid-2020", 0.45), risk_safe("crypto-2022", 0.45)
    (True, False)
    """
    found = Findings("risk_safe")
    if not isinstance(scenario, str):
        found.add(
            "scenario", f"must be the name of a stress scenario: {', '.join(STRESS_SCENARIOS)} (got {scenario!r})"
        )
    elif scenario not in RISK_SAFE:
        raise UnknownNameError("stress scenario", scenario, STRESS_SCENARIOS)
    share(found, "ceps", ceps)
    found.settle()
    return ceps >= RISK_SAFE[scenario]


def _depths(source: str, drawdowns: ArrayLike | Mapping[str, float], tolerance: float) -> Floats:
    """Absolute drawdowns, checked together with the tolerance."""
    found = Findings(source)
    values = found.array("drawdowns", list(drawdowns.values()) if isinstance(drawdowns, Mapping) else drawdowns, (1,))
    if values is not None:
        found.none_of(~(np.abs(values) <= 1), "drawdowns", "must be shares from -1 to 1, not percentages", values)
    positive_share(found, "tolerance", tolerance)
    found.settle()
    assert values is not None
    return np.abs(values)
