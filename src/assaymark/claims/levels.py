"""Which claims were made under a plan field that was amended after the lock."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from assaymark.claims.candidates import KINDS, kind_of
from assaymark.claims.words import listing
from assaymark.errors import UnknownNameError
from assaymark.metrology.controls import TOLERANCE
from assaymark.metrology.orders import OTHER_MARGINS
from assaymark.protocol import Cells, Study
from assaymark.records import AGGREGATE, AdversarialStatus, AgreementStatus, Claim, Level, Measurement, StabilityStatus

if TYPE_CHECKING:
    from assaymark.claims.candidates import ClaimKind

__all__ = ["AGGREGATE", "RANGE", "Rules", "Test", "other_kappas", "other_margins", "other_tests", "threshold"]


# What the judges' own datasheets permit: a plan may demand them, with limits.


OnFailure = Literal["qualified", "no-claim"]


@dataclass(frozen=True, slots=True)
class Instruments:
    """The judges that do not keep the limits of the plan, or show no datasheet, and what claims may then be at most."""

    failing: tuple[str, ...] = ()
    most: OnFailure = "qualified"
    reason: str = ""
    measurements: tuple[str, ...] = ()

    def capped(self, level: Level) -> Level:
        """The level that a claim may have after this."""
        if not self.failing or level == "no-claim":
            return level
        return self.most

    @property
    def condition(self) -> str:
        """What must be said with a qualified claim; empty where every judge keeps the limits."""
        return f"Not every judge keeps the limits that the plan sets for them: {', '.join(self.failing)}." * bool(
            self.failing
        )


def instruments_of(measurements: Iterable[Measurement], on_failure: OnFailure | None) -> Instruments:
    """What ``datasheet.gate`` measurements permit; everything where the plan demands no datasheets.

    >>> instruments_of([], None).capped("headline")
    'headline'
    >>> bad = Measurement(name="datasheet.gate", labels={"judge": "j"}, value=1.0, n=2, n_of="limits", method="",
    ...                   detail={"failed": ["dark_current 0.40, at most 0.05"]})
    >>> found = instruments_of([bad], "qualified")
    >>> found.capped("headline"), found.reason
    ('qualified', 'Judged as an instrument, j fails the limits of the plan (dark_current 0.40, at most 0.05).')
    """
    gates = sorted((one for one in measurements if one.name == "datasheet.gate"), key=lambda one: one.id)
    if on_failure is None or not gates:
        return Instruments()
    failing = [one for one in gates if one.value is None or one.value > 0]
    ids = tuple(one.id for one in gates)
    if not failing:
        return Instruments(measurements=ids, most=on_failure, reason="Every judge keeps the limits of its datasheet.")
    said = [f"{one.labels['judge']} fails the limits of the plan ({_why(one)})" for one in failing]
    reason = f"Judged as an instrument, {'; '.join(said)}."
    return Instruments(tuple(one.labels["judge"] for one in failing), on_failure, reason, ids)


def _why(item: Measurement) -> str:
    return "; ".join(item.detail.get("failed", ())) or item.state


# The decision rules that a plan locked, and the other rules under which a claim is decided again.


Test = Literal["p", "p_own_variance", "p_cluster_t", "p_bootstrap", "p_sign_flip"]
"""Where the detail of a contrast holds the p-value of a test; ``p`` is that of the plan."""

RANGE: Final = 4.0
"""Points between the ends of a scale of 1 to 5, in which the margin is a share."""

_OTHER_TESTS: Final[Mapping[str, Test]] = {
    "own variance of each pair": "p_own_variance",
    "clusters weighted by records": "p_cluster_t",
}
_SOURCE_TESTS: Final[Mapping[str, Test]] = {
    "source: percentile bootstrap": "p_bootstrap",
    "source: sign flip": "p_sign_flip",
}
_SHARES: Final = (0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Rules:
    """The decision rules of one plan; the functions below change them one at a time.

    Attributes
    ----------
    publish, halt : float
        Cut-offs of agreement.
    alpha : float
        Error rate of all order claims together, and of all equivalence claims together.
    share : float
        Part of alpha that the aggregate is tested at where dimensions are claimed, too.
    margin : float
        Largest difference that counts as none, in points.
    test : str
        Which p-values decide.
    source : bool
        Whether ValueBlindBench's own procedure decides: Holm, and the sign of each drop.
    any_judges : bool
        Whether a headline has to hold for other judges too.
    scales : names or None
        The scales that order claims are made on; None: all.
    cells, cell_alpha : Cells, float
        Cut-offs of the control cells, and the level of their family of tests.
    on_failure : str or None
        The most that claims may be where a judge fails the datasheet that the plan demands.
    preregistered : bool
        Whether the plan was locked before its scores were seen.
    span : float
        Points between the ends of the scale.
    judged : bool
        False for scores that no judge gave: no judge family can be left out.

    >>> rules = Rules(0.4, 0.2)
    >>> rules.test, round(rules.margin, 9), rules.cells.substance
    ('p', 0.3, 0.3)
    """

    publish: float
    halt: float
    alpha: float = 0.05
    kappa: Literal["point", "lower", "half-even", "other-ddof"] = "point"
    test: Test = "p"
    source: bool = False
    share: float = 0.8
    margin: float = 0.075 * RANGE
    any_judges: bool = False
    scales: frozenset[str] | None = None
    cells: Cells = field(default_factory=Cells)
    cell_alpha: float = 0.05
    on_failure: OnFailure | None = None
    preregistered: bool = True
    span: float = RANGE
    judged: bool = True

    @property
    def order(self) -> Hashable:
        """The part that decides orders; what does not change it need not decide them again."""
        return (self.test, self.source, self.alpha, self.share, self.margin, self.any_judges, self.scales)

    def claims_scale(self, scale: str) -> bool:
        """Whether orders are claimed on a scale, which then is part of the family of tests."""
        return self.scales is None or scale in self.scales

    @classmethod
    def of(cls, study: Study, *, preregistered: bool = True) -> Rules:
        """The rules that a study locked."""
        wanted = study.claims.dimensions
        return cls(
            study.gates.publish,
            study.gates.halt,
            study.inference.alpha,
            share=study.inference.aggregate_share,
            margin=study.inference.margin * RANGE,
            any_judges=study.claims.judges == "any",
            scales=None if wanted is None else frozenset(wanted),
            cells=study.cells,
            cell_alpha=study.inference.alpha,
            on_failure=None if study.datasheets is None else study.datasheets.on_failure,
            preregistered=preregistered,
        )


def other_kappas(rules: Rules, *, other_ddof: bool) -> dict[str, Rules]:
    """The other rules about agreement; ``other_ddof`` where a kappa under the other divisor was measured."""
    found = {
        "kappa cut-offs 0.5 and 0.25": replace(rules, publish=0.5, halt=0.25),
        "lower bound of kappa": replace(rules, kappa="lower"),
        "half-even rounding": replace(rules, kappa="half-even"),
    }
    if other_ddof:
        found["the other ddof"] = replace(rules, kappa="other-ddof")
    return found


def other_tests(rules: Rules, measured: Collection[str], *, dimensions: bool) -> dict[str, Rules]:
    """The other tests that were ``measured`` and can reject, and other shares of alpha where dimensions are claimed.

    >>> list(other_tests(Rules(0.4, 0.2), ["p", "p_bootstrap"], dimensions=False))
    ['source: percentile bootstrap']
    """
    found = {name: replace(rules, test=test) for name, test in _OTHER_TESTS.items() if test in measured}
    if dimensions:
        found |= {f"aggregate's share of alpha {share:g}": replace(rules, share=share) for share in _SHARES}
    source = {name: replace(rules, test=test, source=True) for name, test in _SOURCE_TESTS.items() if test in measured}
    return found | source


def other_margins(rules: Rules) -> dict[str, Rules]:
    """Other margins of equivalence.

    >>> list(other_margins(Rules(0.4, 0.2)))
    ['margin 0.2', 'margin 0.4']
    """
    return {f"margin {share * rules.span:g}": replace(rules, margin=share * rules.span) for share in OTHER_MARGINS}


def threshold(alpha: float) -> str:
    """What an adjusted p-value is compared with, in words.

    >>> threshold(0.04)
    '.04 needed'
    """
    return f"{alpha:.3g} needed".replace("0.", ".", 1)


# The rules that turn numbers into named states: agreement and the permitted level.


_AGREEMENT: Final[tuple[AgreementStatus, ...]] = ("publish", "methodology", "halt")
_STABILITY: Final[tuple[StabilityStatus, ...]] = ("stable", "tie-class", "judge-dependent", "not tested")
_ADVERSARIAL: Final[tuple[AdversarialStatus, ...]] = ("passed", "construct-sensitive", "contaminated", "not tested")


def agreement_status(kappa: float | None, *, publish: float = 0.4, halt: float = 0.2) -> AgreementStatus:
    """What the panel's agreement permits (ValueBlindBench section 3.7).

    Parameters
    ----------
    kappa : float or None
        Mean pairwise quadratic-weighted kappa in [-1, 1]. None or NaN means that it is undefined, which halts.
    publish, halt : float
        Cut-offs. A kappa on a boundary falls on its better side.

    Returns
    -------
    "publish", "methodology" or "halt"
        A headline is possible; only a finding about the judges is; no ranking at all.

    Examples
    --------
    >>> agreement_status((0.3 + 0.4 + 0.5) / 3), agreement_status(0.2022), agreement_status(None)
    ('publish', 'methodology', 'halt')
    """
    if kappa is None or math.isnan(kappa):
        return "halt"
    if kappa >= publish - TOLERANCE:
        return "publish"
    return "methodology" if kappa >= halt - TOLERANCE else "halt"


def publication_level(
    agreement: str,
    stability: str,
    adversarial: str,
    *,
    asserts_order: bool,
    significance_tested: bool = True,
) -> Level:
    """The level at which a claim may be made (ValueBlindBench section 3.8, completed where its table is silent).

    Parameters
    ----------
    agreement : "publish", "methodology" or "halt"
    stability : "stable", "tie-class", "judge-dependent" or "not tested"
        "not tested" is a pair with too few common clusters for any test.
    adversarial : "passed", "construct-sensitive", "contaminated" or "not tested"
    asserts_order : bool
        Whether the claim puts one agent above another inside the class that stability is about.
    significance_tested : bool
        False for tables that came without contrasts; such a claim is qualified at best.

    Returns
    -------
    "headline", "qualified" or "no-claim"

    Raises
    ------
    UnknownNameError
        A status is not one of the names above.

    Examples
    --------
    The two worked verdicts of section 5.3:

    >>> publication_level("publish", "stable", "construct-sensitive", asserts_order=True)
    'qualified'
    >>> publication_level("publish", "tie-class", "construct-sensitive", asserts_order=True)
    'no-claim'
    """
    _known("agreement status", agreement, _AGREEMENT)
    _known("stability status", stability, _STABILITY)
    _known("adversarial status", adversarial, _ADVERSARIAL)
    if agreement == "halt" or stability == "judge-dependent" or adversarial == "contaminated":
        return "no-claim"
    if stability != "stable" and asserts_order:
        return "no-claim"
    reserved = agreement == "methodology" or adversarial in ("construct-sensitive", "not tested")
    return "qualified" if reserved or stability != "stable" or not significance_tested else "headline"


def _known(kind: str, name: str, allowed: tuple[str, ...]) -> None:
    if name not in allowed:
        raise UnknownNameError(kind, name, allowed)


_ABOUT_AGENTS: Final[frozenset[ClaimKind]] = frozenset({"first", "pair", "within"})
_ORDERS: Final[frozenset[ClaimKind]] = frozenset({"first", "pair"})
_NONE: Final[frozenset[ClaimKind]] = frozenset()

TOUCHES: Final[Mapping[str, frozenset[ClaimKind]]] = {
    "anchor_probe": _NONE,
    "contamination": _NONE,
    "engine": _NONE,
    "human.grades": _NONE,
    "title": _NONE,
    "gates.format_min_clusters": _ABOUT_AGENTS,
    "gates.format_min_records": _ABOUT_AGENTS,
    "inference.aggregate_share": _ABOUT_AGENTS,
    "inference.cluster_order": _ABOUT_AGENTS,
    "inference.margin": frozenset({"pair", "within"}),
    "inference.test": _ABOUT_AGENTS,
    "inference.mde_power": _NONE,
    "inference.mde_sd": _NONE,
    "stability": _ABOUT_AGENTS,
    "cells.contaminates": _ABOUT_AGENTS,
    "cells.terse_share": _ORDERS,
    "cells.terse_tokens": _ORDERS,
    "claims.first": frozenset({"first"}),
    "claims.pairs": frozenset({"pair"}),
    "claims.distinct": _ORDERS,
    "claims.judges": _ORDERS,
    "claims.length": _ABOUT_AGENTS,
    "claims.within": frozenset({"within"}),
    "claims.cells": frozenset({"cell"}),
}
"""The kinds of claim that a plan field touches; a field without an entry, of its own or of a parent, touches all."""


def amended_for(claim: Claim, amended: Sequence[str]) -> tuple[str, ...]:
    """The amended plan fields under which a claim was made, in the order given, each once.

    Examples
    --------
    >>> from assaymark.claims import pair_claim
    >>> amended_for(pair_claim("aggregate", "b", "a"), ["claims.first", "gates.publish", "stability.probe.model"])
    ('gates.publish', 'stability.probe.model')
    """
    return tuple(name for name in dict.fromkeys(amended) if kind_of(claim) in _touched(name))


def amended_words(amended: Sequence[str]) -> str:
    """The sentence that a verdict under amended fields carries.

    >>> amended_words(("gates.publish",))
    'Amended after the lock: gates.publish.'
    """
    return f"Amended after the lock: {listing(list(amended))}."


def _touched(name: str) -> frozenset[ClaimKind]:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        found = TOUCHES.get(".".join(parts[:length]))
        if found is not None:
            return found
    return frozenset(KINDS)
