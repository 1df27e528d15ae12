"""The rules an agent must keep, and the nearest book that keeps them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.records import Constraint

Floats = npt.NDArray[np.float64]

_COUNTS = frozenset(("min_holdings", "max_holdings"))
_FRACTIONS = frozenset(("min_weight", "max_weight", "weight_increment"))
_PERMISSIONS = frozenset(("allow_benchmark", "allow_cash"))
_WHOLE_BOOK = frozenset(("portfolio", "holding"))
_SCALES = {"nav": 1.0, "ratio": 1.0, "weight": 1.0, "percent": 0.01, "bps": 0.0001}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mandate:
    """How many holdings a book may have and how large each may be; weights are fractions of NAV.

    Every weight is a whole number of steps of ``weight_increment``, and a full book is ``steps`` of them.
    """

    min_holdings: int = 1
    max_holdings: int = 5
    min_weight: float = 0.05
    max_weight: float = 1.0
    weight_increment: float = 0.05

    @property
    def steps(self) -> int:
        """How many increments make a full book."""
        return round(1.0 / self.weight_increment)

    @property
    def step_range(self) -> tuple[int, int]:
        """The fewest and the most increments of one holding."""
        fewest = max(1, math.ceil(self.min_weight / self.weight_increment - 1e-9))
        return fewest, math.floor(self.max_weight / self.weight_increment + 1e-9)

    def holdings_range(self, available: int) -> tuple[int, int]:
        """The fewest and the most holdings that a full book of ``available`` instruments can have.

        Raises
        ------
        NotMeasurableError
            No full book keeps the rules.

        Examples
        --------
        >>> Mandate(min_holdings=1, max_holdings=5, max_weight=0.4).holdings_range(9)
        (3, 5)
        """
        low, high = self.step_range
        fewest = max(self.min_holdings, -(-self.steps // high) if high > 0 else available + 1)
        most = min(self.max_holdings, available, self.steps // low)
        if fewest > most:
            raise NotMeasurableError(
                f"no full book keeps the rules: with weights of {self.min_weight:g} to {self.max_weight:g} in steps of "
                f"{self.weight_increment:g} it needs at least {fewest} holdings, and at most {most} are allowed of the "
                f"{available} on offer"
            )
        return fewest, most

    def fit(self, ideal: Floats) -> Floats:
        """The book nearest to ``ideal`` (least squares) among those that keep the rules with its largest names.

        Parameters
        ----------
        ideal : array of shape (n_instruments,)
            Wanted weights, non-negative; they need not sum to 1. Names of equal weight are taken in their order.

        Returns
        -------
        array of shape (n_instruments,)
            Fractions of NAV, multiples of the increment, summing to 1.

        Raises
        ------
        NotMeasurableError
            No full book keeps the rules, or ``ideal`` has a negative or undefined weight.

        Examples
        --------
        >>> Mandate(max_holdings=2, max_weight=0.6).fit(np.array([0.7, 0.2, 0.1])).tolist()
        [0.6, 0.4, 0.0]
        """
        if not np.all(np.isfinite(ideal)) or np.any(ideal < 0):
            raise NotMeasurableError(f"wanted weights must be finite and not negative (got {ideal.tolist()})")
        fewest, most = self.holdings_range(ideal.size)
        count = min(max(int(np.count_nonzero(ideal > 0)), fewest), most)
        chosen = np.argsort(-ideal, kind="stable")[:count]
        wanted = ideal[chosen]
        total = float(wanted.sum())
        shares = wanted / total if total > 0 else np.full(count, 1.0 / count)
        weights = np.zeros(ideal.size)
        weights[chosen] = self._apportion(shares * self.steps) / self.steps
        return weights

    def _apportion(self, wanted: Floats) -> npt.NDArray[np.int64]:
        """Whole steps nearest to ``wanted``; giving the next step to the largest shortfall is exact here."""
        low, high = self.step_range
        given = np.full(wanted.size, low, dtype=np.int64)
        for _ in range(self.steps - int(given.sum())):
            shortfall = np.where(given < high, wanted - given, -np.inf)
            given[int(np.argmax(shortfall))] += 1
        return given


def read_mandate(constraints: Iterable[Constraint], *, source: str = "context") -> Mandate:
    """The mandate that a context's constraints describe; what they do not mention keeps its default.

    Kinds: ``min_holdings`` and ``max_holdings`` (count); ``min_weight``, ``max_weight`` and ``weight_increment`` (unit
    nav, ratio, weight, percent or bps; scope portfolio or holding). ``allow_cash``, ``allow_benchmark`` and
    ``max_total_weight`` are read where they leave a full book of any instruments allowed.

    Raises
    ------
    InputError
        A constraint of another kind, scope or unit, or a limit that means nothing. An agent that cannot read a rule
        must not go on as if it kept it.

    Examples
    --------
    >>> read_mandate([Constraint(kind="max_weight", limit=40.0, unit="percent")]).max_weight
    0.4
    """
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    for number, rule in enumerate(constraints):
        where = f"constraints.{number}"
        if rule.kind in _COUNTS:
            _read_count(rule, where, found, problems)
        elif rule.kind in _FRACTIONS and rule.scope in _WHOLE_BOOK:
            _read_fraction(rule, where, found, problems)
        elif not _restricts_nothing(rule):
            known = ", ".join(sorted({*_COUNTS, *_FRACTIONS}))
            problems.append(Problem(where, f"no agent here can keep {_told(rule)}; it can keep {known}"))
    mandate = Mandate(**found)
    problems += _contradictions(mandate)
    if problems:
        raise InputError(source, problems)
    return mandate


def _read_count(rule: Constraint, where: str, found: dict[str, Any], problems: list[Problem]) -> None:
    """Add one count to ``found``."""
    if rule.unit != "count" or rule.limit < 1 or rule.limit != int(rule.limit):
        problems.append(Problem(where, f"{rule.kind} must be a whole count of at least 1 (got {_seen(rule)})"))
    else:
        found[rule.kind] = int(rule.limit)


def _read_fraction(rule: Constraint, where: str, found: dict[str, Any], problems: list[Problem]) -> None:
    """Add one fraction of NAV to ``found``."""
    scale = _SCALES.get(rule.unit)
    if scale is None or not 0 < rule.limit * scale <= 1:
        allowed = f"above 0 and at most 1 as a fraction of NAV, unit one of {', '.join(_SCALES)}"
        problems.append(Problem(where, f"{rule.kind} must be {allowed} (got {_seen(rule)})"))
    else:
        found[rule.kind] = round(rule.limit * scale, 12)


def _restricts_nothing(rule: Constraint) -> bool:
    """Whether a rule leaves every full book allowed."""
    if rule.kind in _PERMISSIONS:
        return rule.limit != 0
    return rule.kind == "max_total_weight" and rule.limit * _SCALES.get(rule.unit, 0.0) >= 1


def _contradictions(mandate: Mandate) -> list[Problem]:
    """What in a mandate contradicts itself."""
    problems = []
    if mandate.min_holdings > mandate.max_holdings:
        problems.append(
            Problem("min_holdings", f"exceeds max_holdings (got {mandate.min_holdings} and {mandate.max_holdings})")
        )
    if mandate.min_weight > mandate.max_weight:
        problems.append(
            Problem("min_weight", f"exceeds max_weight (got {mandate.min_weight:g} and {mandate.max_weight:g})")
        )
    if abs(mandate.steps * mandate.weight_increment - 1.0) > 1e-9:
        problems.append(
            Problem("weight_increment", f"must divide 1 without remainder (got {mandate.weight_increment:g})")
        )
    return problems


def _told(rule: Constraint) -> str:
    """A rule as its author would recognise it."""
    return f"the rule {rule.kind!r} {_seen(rule)} for {rule.scope!r}"


def _seen(rule: Constraint) -> str:
    return f"{rule.limit:g} {rule.unit}"
