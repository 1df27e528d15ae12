"""Investor profiles, what a portfolio exposes to them, and how well it keeps to them (PortBench C.2, Table 7).

Inputs that are not as their parameters say raise `InputError`, another class or convention `UnknownNameError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from assaymark.benchmark.scores import Checks, Convention
from assaymark.errors import NotMeasurableError, UnknownNameError
from assaymark.portfolio.optimisers import SLACK, Floats

ClassName = Literal["equity", "bond", "commodity", "real_estate", "crypto", "cash"]
CLASS_NAMES: tuple[ClassName, ...] = get_args(ClassName)
"""The six classes of assets."""

RISKY: Final[dict[Convention, frozenset[ClassName]]] = {
    "paper": frozenset({"equity", "crypto"}),
    "reference": frozenset({"equity", "crypto", "real_estate"}),
}
"""What counts against the equity cap. The authors' code files real estate with equities."""

SAFE: Final[frozenset[ClassName]] = frozenset({"bond", "cash"})
"""What counts towards the bond floor."""

PROFILE_WORDS: Final = (
    "Investor profile: {name}. Equities and crypto together must be at most {equity_cap} of the portfolio. "
    "Bonds and cash together must be at least {bond_floor}. The largest drawdown tolerated is {drawdown_tolerance}. "
    "The one-day value at risk at 95% must not be worse than {var_limit}."
)
"""A profile as a model is told it; part of every prompt that must obey it, and so of what a plan is hashed over."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The limits of one kind of investor, as shares.

    Attributes
    ----------
    name : str
    equity_cap : float
        Most weight of equities and crypto together, above 0 and up to 1.
    bond_floor : float
        Least weight of bonds and cash together, above 0 and up to 1.
    drawdown_tolerance : float
        Largest drawdown, as a positive share, up to 1.
    var_limit : float
        One-day value at risk at 95 %, as a return: below 0, at least -1.

    Examples
    --------
    >>> Profile("mine", 0.5, 0.3, 0.15, -0.015).var_limit
    -0.015
    """

    name: str
    equity_cap: float
    bond_floor: float
    drawdown_tolerance: float
    var_limit: float

    def __post_init__(self) -> None:
        found = Checks(f"profile {self.name}")
        limits = ("equity_cap", "bond_floor", "drawdown_tolerance")
        found.shares({where: getattr(self, where) for where in limits}, zero=False)
        found.number("var_limit", self.var_limit, -1.0, 0.0, "from -1 to below 0, as a loss is negative")
        found.settle()

    @property
    def text(self) -> str:
        """The profile in words, for a prompt."""
        limits = {
            name: f"{round(100 * getattr(self, name), 8):g}%"
            for name in ("equity_cap", "bond_floor", "drawdown_tolerance", "var_limit")
        }
        return PROFILE_WORDS.format(name=self.name, **limits)


CONSERVATIVE: Final = Profile("conservative", 0.40, 0.40, 0.10, -0.010)
"""Table 7, first row."""

BALANCED: Final = Profile("balanced", 0.65, 0.20, 0.20, -0.020)
"""Table 7, second row."""

AGGRESSIVE: Final = Profile("aggressive", 0.90, 0.05, 0.35, -0.040)
"""Table 7, third row."""

PROFILES: Final[dict[str, Profile]] = {one.name: one for one in (CONSERVATIVE, BALANCED, AGGRESSIVE)}
"""The three profiles of Table 7 by name."""


def profile_named(name: str) -> Profile:
    """The profile of Table 7 with this name."""
    if name not in PROFILES:
        raise UnknownNameError("profile", name, tuple(PROFILES))
    return PROFILES[name]


def exposures(w: ArrayLike, classes: Sequence[str], *, convention: Convention = "paper") -> tuple[float, float]:
    """Weight in equities and crypto together, and in bonds and cash together.

    Parameters
    ----------
    w : float array of shape (n_assets,)
        At least 0, sums to at most 1 (a sum within 1e-4 of 1 is brought to 1); what is left over is in no class.
    classes : sequence of n_assets class names
        Out of `CLASS_NAMES`.
    convention : {"paper", "reference"}
        ``reference`` counts real estate with the equities.

    Returns
    -------
    tuple of two floats
        Shares of the portfolio in [0, 1].

    Examples
    --------
    >>> exposures([0.25, 0.25, 0.5], ["equity", "real_estate", "cash"])
    (0.25, 0.5)
    >>> exposures([0.25, 0.25, 0.5], ["equity", "real_estate", "cash"], convention="reference")
    (0.5, 0.5)
    """
    found = Checks("exposures")
    found.convention(convention)
    for name in set(classes).difference(CLASS_NAMES):
        raise UnknownNameError("asset class", str(name), CLASS_NAMES)
    weights = found.held("w", w)
    if weights.size and weights.size != len(classes):
        found.add("classes", f"must be {weights.size}, one of each asset (got {len(classes)})")
    found.settle()
    risky, safe = (
        min(1.0, float(weights[[name in group for name in classes]].sum())) for group in (RISKY[convention], SAFE)
    )
    return risky, safe


def profile_alignment(equity_crypto: float, bond_cash: float, var: float, profile: Profile) -> float:
    """Profile alignment score: the mean of how well the cap, the floor and the limit of value at risk are kept.

    1: all three are kept. A term falls in proportion to how far its limit is overstepped: 0 at twice the cap, without
    bonds and cash, and at twice the limit of value at risk. Keeping far within a limit earns nothing (section C.2).

    Parameters
    ----------
    equity_crypto, bond_cash : float
        Shares in [0, 1], from `exposures`.
    var : float
        One-day value at risk at 95 % as a return: -0.02 is a loss of 2 %.
    profile : Profile

    Examples
    --------
    >>> profile_alignment(0.40, 0.40, -0.01, CONSERVATIVE)
    1.0
    >>> profile_alignment(0.60, 0.20, -0.015, CONSERVATIVE)
    0.5
    """
    found = Checks("profile_alignment")
    found.shares({"equity_crypto": equity_crypto, "bond_cash": bond_cash})
    found.finite({"var": var})
    found.settle()
    cap = max(1.0 - max(equity_crypto - profile.equity_cap, 0.0) / profile.equity_cap, 0.0)
    floor = min(bond_cash / profile.bond_floor, 1.0)
    risk = max(1.0 + min(var - profile.var_limit, 0.0) / abs(profile.var_limit), 0.0)
    return float(cap + floor + risk) / 3.0


def adaptation_score(pas: Sequence[float] | Mapping[str, float]) -> float:
    """How much the profile alignment differs between profiles: the standard deviation (ddof 0) of their means.

    0: the same alignment under every profile, which one portfolio for everybody seldom has and perfect obedience
    always has. So it is read beside the means themselves, not as better or worse (equation 15; the ddof is that of
    the authors' code).

    Parameters
    ----------
    pas : sequence or mapping of floats
        The mean alignment under each profile, in [0, 1]; PortBench has three.

    Returns
    -------
    float
        In [0, 0.5].

    Raises
    ------
    NotMeasurableError
        Fewer than two profiles.

    Examples
    --------
    >>> round(adaptation_score({"conservative": 0.7, "balanced": 1.0, "aggressive": 1.0}), 4)
    0.1414
    """
    values = list(pas.values()) if isinstance(pas, Mapping) else list(pas)
    if len(values) < 2:
        raise NotMeasurableError(f"adaptation is undefined: it compares profiles (got {len(values)})")
    found = Checks("adaptation_score")
    means = found.vector("pas", values)
    found.settle()
    return float(means.std())


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

    Examples
    --------
    >>> stress_gate([-0.0616, -0.0503, -0.1238], 0.10), stress_gate([-0.0616, -0.0503, -0.1238], 0.20)
    (False, True)
    """
    depths = _depths("stress_gate", drawdowns, tolerance)
    return bool(depths.max() <= tolerance + SLACK)


def stress_score(drawdown: float, tolerance: float) -> float:
    """What is left of the tolerance after a drawdown, as a share of it: ``max(0, 1 - |drawdown| / tolerance)``."""
    (depth,) = _depths("stress_score", [drawdown], tolerance)
    return max(0.0, 1.0 - float(depth) / tolerance)


def risk_safe(scenario: str, ceps: float) -> bool:
    """Whether the CEPS of a stress scenario reaches the least of Table 6: the secondary criterion of section C.2."""
    found = Checks("risk_safe")
    if not isinstance(scenario, str):
        names = ", ".join(STRESS_SCENARIOS)
        found.add("scenario", f"must be the name of a stress scenario: {names} (got {scenario!r})")
    elif scenario not in RISK_SAFE:
        raise UnknownNameError("stress scenario", scenario, STRESS_SCENARIOS)
    found.shares({"ceps": ceps})
    found.settle()
    return ceps >= RISK_SAFE[scenario]


def _depths(source: str, drawdowns: ArrayLike | Mapping[str, float], tolerance: float) -> Floats:
    found = Checks(source)
    given = list(drawdowns.values()) if isinstance(drawdowns, Mapping) else drawdowns
    values = found.vector("drawdowns", given, -1.0, "must be shares from -1 to 1, not percentages")
    found.shares({"tolerance": tolerance}, zero=False)
    found.settle()
    return np.abs(values)
