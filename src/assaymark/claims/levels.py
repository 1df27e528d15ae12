"""The rules that turn measurements into levels: judge limits, decision rules of a plan, gates, amended fields."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from assaymark.claims.candidates import kind_of
from assaymark.errors import UnknownNameError
from assaymark.metrology.controls import TOLERANCE
from assaymark.metrology.orders import OTHER_MARGINS
from assaymark.protocol import AGREEMENT, Cells, Study
from assaymark.records import AgreementStatus, Claim, Level, Measurement

if TYPE_CHECKING:
    from assaymark.claims.candidates import ClaimKind

OnFailure = Literal["qualified", "no-claim"]


@dataclass(frozen=True, slots=True)
class Instruments:
    """The judges that do not keep the limits of the plan, or show no datasheet, and what claims may then be at most."""

    failing: tuple[str, ...] = ()
    most: OnFailure = "qualified"
    reason: str = ""
    measurements: tuple[str, ...] = ()


def instruments_of(measurements: Iterable[Measurement], on_failure: OnFailure | None) -> Instruments:
    """What ``datasheet.gate`` measurements permit; everything where the plan demands no datasheets."""
    gates = sorted(
        (measurement for measurement in measurements if measurement.name == "datasheet.gate"),
        key=lambda measurement: measurement.id,
    )
    if on_failure is None or not gates:
        return Instruments()
    failing = {
        gate.labels["judge"]: "; ".join(gate.detail.get("failed", ())) or gate.state
        for gate in gates
        if gate.value is None or gate.value > 0
    }
    reason = "Every judge keeps the limits of its datasheet."
    if failing:
        said = [f"{judge} fails the limits of the plan ({why})" for judge, why in failing.items()]
        reason = f"Judged as an instrument, {'; '.join(said)}."
    return Instruments(tuple(failing), on_failure, reason, tuple(gate.id for gate in gates))


Test = Literal["p", "p_own_variance", "p_cluster_t", "p_bootstrap", "p_sign_flip"]
"""Where the detail of a contrast holds the p-value of a test; ``p`` is that of the plan."""

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
    """The decision rules of one plan; the functions below change them one at a time."""

    publish: float
    halt: float
    alpha: float = 0.05
    kappa: Literal["point", "lower", "half-even", "other-ddof"] = "point"
    test: Test = "p"
    source: bool = False
    share: float = 0.8
    margin: float = 0.3
    any_judges: bool = False
    scales: frozenset[str] | None = None
    cells: Cells = field(default_factory=Cells)
    cell_alpha: float = 0.05
    on_failure: OnFailure | None = None
    preregistered: bool = True
    span: float = 4.0
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
            margin=study.inference.margin * study.points,
            span=study.points,
            any_judges=study.claims.judges == "any",
            scales=None if wanted is None else frozenset(wanted),
            cells=study.cells,
            cell_alpha=study.inference.alpha,
            on_failure=None if study.datasheets is None else study.datasheets.on_failure,
            preregistered=preregistered,
        )


def coefficient_words(item: Measurement) -> str:
    """What a measurement of agreement is, in words: kappa, an intraclass correlation, or Krippendorff's alpha."""
    return AGREEMENT[item.detail.get("coefficient", "kappa")]


def other_kappas(rules: Rules, other_ddof: bool, word: str) -> dict[str, Rules]:
    """The other rules about agreement; ``other_ddof`` where a kappa under the other divisor was measured, ``word`` what
    agreement is measured by. Scores that are not rounded have no other rounding."""
    bound = f"the {word}" if word == AGREEMENT["icc"] else word
    found = {
        f"{word} cut-offs 0.5 and 0.25": replace(rules, publish=0.5, halt=0.25),
        f"lower bound of {bound}": replace(rules, kappa="lower"),
    }
    if word == AGREEMENT["kappa"]:
        found["half-even rounding"] = replace(rules, kappa="half-even")
    if other_ddof:
        found["the other ddof"] = replace(rules, kappa="other-ddof")
    return found


def other_tests(rules: Rules, measured: Collection[str], *, dimensions: bool) -> dict[str, Rules]:
    """The other tests that were ``measured`` and can reject, and other shares of alpha where dimensions are claimed."""
    found = {name: replace(rules, test=test) for name, test in _OTHER_TESTS.items() if test in measured}
    if dimensions:
        found |= {f"aggregate's share of alpha {share:g}": replace(rules, share=share) for share in _SHARES}
    source = {name: replace(rules, test=test, source=True) for name, test in _SOURCE_TESTS.items() if test in measured}
    return found | source


def other_margins(rules: Rules) -> dict[str, Rules]:
    """Other margins of equivalence."""
    return {f"margin {share * rules.span:g}": replace(rules, margin=share * rules.span) for share in OTHER_MARGINS}


def threshold(alpha: float) -> str:
    """What an adjusted p-value is compared with, in words."""
    return f"{alpha:.3g} needed".replace("0.", ".", 1)


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
    agreement: str, stability: str, adversarial: str, *, asserts_order: bool, significance_tested: bool = True
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
    for kind, name, allowed in (
        ("agreement status", agreement, ("publish", "methodology", "halt")),
        ("stability status", stability, ("stable", "tie-class", "judge-dependent", "not tested")),
        ("adversarial status", adversarial, ("passed", "construct-sensitive", "contaminated", "not tested")),
    ):
        if name not in allowed:
            raise UnknownNameError(kind, name, allowed)
    if agreement == "halt" or stability == "judge-dependent" or adversarial == "contaminated":
        return "no-claim"
    if stability != "stable" and asserts_order:
        return "no-claim"
    reserved = agreement == "methodology" or adversarial in ("construct-sensitive", "not tested")
    return "qualified" if reserved or stability != "stable" or not significance_tested else "headline"


_ABOUT_AGENTS: Final[frozenset[ClaimKind]] = frozenset({"first", "pair", "within"})
_ORDERS: Final[frozenset[ClaimKind]] = frozenset({"first", "pair"})
_NONE: Final[frozenset[ClaimKind]] = frozenset()

TOUCHES: Final[Mapping[str, frozenset[ClaimKind]]] = {
    **dict.fromkeys(
        ("anchor_probe", "contamination", "engine", "human.grades", "title", "inference.mde_power",
         "inference.mde_sd"), _NONE),
    **dict.fromkeys(
        ("gates.format_min_clusters", "gates.format_min_records", "inference.aggregate_share",
         "inference.cluster_order", "inference.test", "stability", "cells.contaminates", "claims.length"),
        _ABOUT_AGENTS),
    **dict.fromkeys(("cells.terse_share", "cells.terse_tokens", "claims.distinct", "claims.judges"), _ORDERS),
    "inference.margin": frozenset({"pair", "within"}),
    "claims.first": frozenset({"first"}),
    "claims.pairs": frozenset({"pair"}),
    "claims.within": frozenset({"within"}),
    "claims.cells": frozenset({"cell"}),
}  # fmt: skip
"""The kinds of claim that a plan field touches; a field without an entry, of its own or of a parent, touches all."""


def amended_for(claim: Claim, amended: Sequence[str]) -> tuple[str, ...]:
    """The amended plan fields under which a claim was made, in the order given, each once."""

    kind = kind_of(claim)

    def touches(name: str) -> bool:
        while name and name not in TOUCHES:
            name = name.rpartition(".")[0]
        return not name or kind in TOUCHES[name]

    return tuple(name for name in dict.fromkeys(amended) if touches(name))
