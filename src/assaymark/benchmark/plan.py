"""The benchmark plan, and its investor profiles: their limits, and scores of a portfolio's compliance.

Profiles are those of PortBench C.2, Table 7. Invalid inputs raise `InputError`, an unknown class or convention
`UnknownNameError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from assaymark.benchmark.questions.payloads import Condition, Split
from assaymark.benchmark.scores import Checks, Convention, Pace
from assaymark.errors import NotMeasurableError, check_known
from assaymark.plan import BiasRules, Frozen, MissingLimits, OrderRules, read_plan, read_toml
from assaymark.portfolio.optimisers import SLACK, Floats
from assaymark.protocol import AgentSpec, EngineChoice, JudgeSpec, Name
from assaymark.records import content_id, duplicates

ProfileName = Literal["conservative", "balanced", "aggressive"]


class Market(Frozen):
    """The market data: ``synthetic``, or the folder of a snapshot (`assaymark data`)."""

    source: str = "synthetic"
    seed: int = Field(default=0, ge=0, description="random seed of the synthetic market")
    instruments: int | tuple[Name, ...] = Field(
        default=81, description="number of instruments, spread over the six classes, or their names; no index"
    )

    @model_validator(mode="after")
    def _enough(self) -> Market:
        count = self.instruments if isinstance(self.instruments, int) else len(set(self.instruments))
        if count < 6:
            raise ValueError(f"instruments: six classes need 6 or more (got {count})")
        return self


class Pipeline(Frozen):
    """The five stages (sections 2.2, C.1 and C.3)."""

    profiles: tuple[ProfileName, ...] = ("conservative", "balanced", "aggressive")
    windows: tuple[Name, ...] = Field(
        default=("normal", "china-2015", "covid-2020", "crypto-2022"),
        min_length=1,
        description="the calm window and the three stress windows, which the gate needs",
    )
    frequency: Pace = "monthly"
    lookback: int = Field(default=60, ge=20, le=252, description="lookback in trading days")
    correlation: Literal["lookback", "training"] = Field(
        default="lookback", description="what S3's two layers are scored by: of the lookback, or of the training years"
    )
    alpha: float = Field(default=0.5, ge=0, le=1, description="weight of accuracy in S3, eq. 6")
    penalty: float = Field(default=0.1, ge=0, le=1, description="lambda of eq. 3")
    cost_bps: float = Field(default=15.0, ge=0, lt=1000, description="cost of trading: 10 slippage and 5 commission")
    drift_limit: float = Field(default=0.05, gt=0, le=1)
    cash_baselines: bool = Field(
        default=False, description="whether baselines may hold cash instruments: with them MinVar is cash"
    )


class Questions(Frozen):
    """The static questions (sections 2.2 and D)."""

    per_template: int = Field(default=50, ge=1, le=1000, description="questions of each template")
    split: Split = "test"
    conditions: tuple[Condition, ...] = Field(default=("full", "restricted"), min_length=1)
    seed: int = Field(default=0, ge=0)
    file: str | None = Field(default=None, description="custom question set (JSONL)")

    @property
    def main(self) -> Condition:
        """The condition of the leaderboard. Questions that are equal under both are asked only under this one."""
        return "full" if "full" in self.conditions else "restricted"


class BenchPlan(Frozen):
    """A benchmark plan, the content of ``portbench.toml``; see ``docs/portbench.md``."""

    version: Literal["2"] = "2"
    name: Name = "portbench"
    title: str = ""
    seed: int = Field(default=0, ge=0, description="random seed of resampling")
    models: tuple[AgentSpec, ...] = Field(min_length=1)
    convention: Convention = "paper"
    market: Market = Market()
    pipeline: Pipeline = Pipeline()
    questions: Questions = Questions()
    level: Annotated[float, Field(gt=0.5, lt=1, description="coverage of intervals; inference.alpha is 1 - level")] = (
        0.95
    )
    inference: OrderRules = OrderRules()
    missing: MissingLimits = MissingLimits()
    agreed: float = Field(
        default=0.5, ge=-1, le=1, description="rank correlation above which questions and pipeline agree"
    )
    judges: tuple[JudgeSpec, ...] = Field(default=(), description="judges of the rationales at S1 to S3")
    rubric: str = "v1.0"
    claims: BiasRules = Field(default=BiasRules(), description="bias rules of these judges")
    engine: EngineChoice = EngineChoice()

    @model_validator(mode="before")
    @classmethod
    def _alpha_given_once(cls, raw: Any) -> Any:
        inference = raw.get("inference", {}) if isinstance(raw, dict) else None
        if not isinstance(inference, dict):
            return raw
        if isinstance(level := raw.get("level"), float):
            return {**raw, "inference": {"alpha": round(1 - level, 12), **inference}}
        alpha = inference.get("alpha")
        return {**raw, "level": round(1 - alpha, 12)} if isinstance(alpha, float) and "level" not in raw else raw

    @model_validator(mode="after")
    def _consistent(self) -> BenchPlan:
        if abs(1 - self.level - self.inference.alpha) > 1e-9:
            raise ValueError(
                f"inference.alpha is 1 - level; give one of the two (got {self.inference.alpha} and {self.level})"
            )
        for field, names in (
            ("models", [model.name for model in self.models]),
            ("judges", [judge.name for judge in self.judges]),
            ("pipeline.profiles", [str(profile) for profile in self.pipeline.profiles]),
            ("pipeline.windows", list(self.pipeline.windows)),
        ):
            twice = duplicates(names)
            if twice:
                raise ValueError(f"{field}: each is named once (twice: {', '.join(twice)})")
        return self


def parse_plan(text: str, source: str = "portbench.toml") -> BenchPlan:
    """Parse a benchmark plan from the text of its file. Raises `InputError`."""
    return read_plan(BenchPlan, read_toml(text, source), source)


def bench_hash(plan: BenchPlan, texts: dict[str, str], inputs: dict[str, str]) -> str:
    """Compute the plan hash: sha256 of the canonical plan without its engine, its templates and its data."""
    canonical = plan.model_dump(mode="json", exclude={"engine"})
    return content_id({"plan": canonical, "texts": texts, "inputs": inputs})


ClassName = Literal["equity", "bond", "commodity", "real_estate", "crypto", "cash"]
CLASS_NAMES: tuple[ClassName, ...] = get_args(ClassName)
"""The six asset classes."""

RISKY: Final[dict[Convention, frozenset[ClassName]]] = {
    "paper": frozenset({"equity", "crypto"}),
    "reference": frozenset({"equity", "crypto", "real_estate"}),
}
"""The classes that count against the equity cap. The authors' code adds real estate."""

SAFE: Final[frozenset[ClassName]] = frozenset({"bond", "cash"})
"""The classes that count towards the bond floor."""

PROFILE_WORDS: Final = (
    "Investor profile: {name}. Equities and crypto together must be at most {equity_cap} of the portfolio. "
    "Bonds and cash together must be at least {bond_floor}. The largest drawdown tolerated is {drawdown_tolerance}. "
    "The one-day value at risk at 95% must not be worse than {var_limit}."
)
"""The text of a profile in prompts; therefore part of the plan hash."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The limits of one kind of investor, as shares.

    Attributes
    ----------
    name : str
    equity_cap : float
        Maximum weight of equities and crypto together, above 0 and up to 1.
    bond_floor : float
        Minimum weight of bonds and cash together, above 0 and up to 1.
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
        checks = Checks(f"profile {self.name}")
        limits = ("equity_cap", "bond_floor", "drawdown_tolerance")
        checks.shares({name: getattr(self, name) for name in limits}, zero=False)
        checks.number("var_limit", self.var_limit, -1.0, 0.0, "from -1 to below 0, as a loss is negative")
        checks.raise_for_errors()

    @property
    def text(self) -> str:
        """The profile as text for a prompt."""
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

PROFILES: Final[dict[str, Profile]] = {profile.name: profile for profile in (CONSERVATIVE, BALANCED, AGGRESSIVE)}
"""The three profiles of Table 7 by name."""


def profile_named(name: str) -> Profile:
    """Return the profile of Table 7 with this name. Raises `UnknownNameError`."""
    check_known("profile", PROFILES, name)
    return PROFILES[name]


def exposures(w: ArrayLike, classes: Sequence[str], convention: Convention = "paper") -> tuple[float, float]:
    """Compute the weight in equities and crypto together, and in bonds and cash together.

    Parameters
    ----------
    w : float array of shape (n_assets,)
        At least 0, sums to at most 1 (a sum within 1e-4 of 1 is scaled to 1); the rest is in no class.
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
    checks = Checks("exposures")
    checks.convention(convention)
    check_known("asset class", CLASS_NAMES, *set(map(str, classes)))
    weights = checks.held("w", w)
    if weights.size and weights.size != len(classes):
        checks.add("classes", f"must be {weights.size}, one of each asset (got {len(classes)})")
    checks.raise_for_errors()
    risky, safe = (
        min(1.0, float(weights[[name in group for name in classes]].sum())) for group in (RISKY[convention], SAFE)
    )
    return risky, safe


def profile_alignment(equity_crypto: float, bond_cash: float, var: float, profile: Profile) -> float:
    """Profile alignment score: the mean compliance with the cap, the floor and the limit of value at risk.

    It is 1 if all three are kept. Each term falls in proportion to the breach of its limit: to 0 at twice the cap,
    without bonds and cash, and at twice the limit of value at risk. A margin earns nothing (section C.2).

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
    checks = Checks("profile_alignment")
    checks.shares({"equity_crypto": equity_crypto, "bond_cash": bond_cash})
    checks.finite({"var": var})
    checks.raise_for_errors()
    cap = max(1.0 - max(equity_crypto - profile.equity_cap, 0.0) / profile.equity_cap, 0.0)
    floor = min(bond_cash / profile.bond_floor, 1.0)
    risk = max(1.0 + min(var - profile.var_limit, 0.0) / abs(profile.var_limit), 0.0)
    return float(cap + floor + risk) / 3.0


def adaptation_score(pas: Sequence[float] | Mapping[str, float]) -> float:
    """Adaptation score: the standard deviation (ddof 0) of mean profile alignment over profiles.

    It is 0 if the alignment is the same under every profile, as with perfect compliance, and seldom if one portfolio
    is held under all profiles. So it is neither better nor worse when larger, and is read next to the means
    (equation 15; the ddof is that of the authors' code).

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
    checks = Checks("adaptation_score")
    means = checks.vector("pas", values)
    checks.raise_for_errors()
    return float(means.std())


RISK_SAFE: Final[dict[str, float]] = {"china-2015": 0.40, "covid-2020": 0.45, "crypto-2022": 0.50}
"""Minimum CEPS of each stress scenario (Table 6), by the name of its window."""

STRESS_SCENARIOS: Final[tuple[str, ...]] = tuple(RISK_SAFE)
"""The three stress scenarios of Table 6; the gate needs all of them."""


def stress_gate(drawdowns: ArrayLike | Mapping[str, float], tolerance: float) -> bool:
    """True if the maximum drawdown over all stress windows is within the tolerance of a profile.

    This is the primary criterion of section C.2 for one profile. Tables 2 and 9 of the paper report the global gate
    instead: all windows under all profiles.

    Parameters
    ----------
    drawdowns : float array of shape (n_windows,), or mapping of windows to floats
        Maximum drawdown of each stress window as a share, of either sign.
    tolerance : float
        Above 0 and at most 1; a drawdown of exactly this size passes (within 1e-9).

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
    """Compute the unused share of the drawdown tolerance: ``max(0, 1 - |drawdown| / tolerance)``."""
    (depth,) = _depths("stress_score", [drawdown], tolerance)
    return max(0.0, 1.0 - float(depth) / tolerance)


def risk_safe(scenario: str, ceps: float) -> bool:
    """True if the CEPS of a stress scenario reaches its minimum in Table 6, the secondary criterion of section C.2."""
    checks = Checks("risk_safe")
    if not isinstance(scenario, str):
        names = ", ".join(STRESS_SCENARIOS)
        checks.add("scenario", f"must be the name of a stress scenario: {names} (got {scenario!r})")
    else:
        check_known("stress scenario", RISK_SAFE, scenario)
    checks.shares({"ceps": ceps})
    checks.raise_for_errors()
    return ceps >= RISK_SAFE[scenario]


def _depths(source: str, drawdowns: ArrayLike | Mapping[str, float], tolerance: float) -> Floats:
    checks = Checks(source)
    raw = list(drawdowns.values()) if isinstance(drawdowns, Mapping) else drawdowns
    values = checks.vector("drawdowns", raw, -1.0, "must be shares from -1 to 1, not percentages")
    checks.shares({"tolerance": tolerance}, zero=False)
    checks.raise_for_errors()
    return np.abs(values)
