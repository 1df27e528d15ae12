"""The rules that turn numbers into named states: agreement and the permitted level."""

from __future__ import annotations

import math
from typing import Final

from assaymark.errors import UnknownNameError
from assaymark.metrology.cell_rules import TOLERANCE
from assaymark.records import AdversarialStatus, AgreementStatus, Level, StabilityStatus

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
