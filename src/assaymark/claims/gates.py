"""The rules that turn numbers into named states: agreement, the terse control cell, and the permitted level."""

from __future__ import annotations

import math
from typing import Final, Literal, get_args

from assaymark.errors import NotMeasurableError, UnknownNameError
from assaymark.protocol import Cells
from assaymark.records import AdversarialStatus, AgreementStatus, Level, StabilityStatus

CellB = Literal["substance", "verbosity-bias", "inconclusive", "terse-favoured"]

TOLERANCE: Final = 1e-9
"""Slack of every gate: (0.3 + 0.4 + 0.5) / 3 is below 0.4 in binary floating point, and must publish."""

FALLING: Final = ("cell_a", "red_team", "fact_flip")
"""Cells that have to score lower; their test is one-sided."""

SUBSTANCE: Final = 0.3
VERBOSITY: Final = 0.5


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


def cell_b_outcome(
    delta: float, significant: bool, *, substance: float = SUBSTANCE, verbosity: float = VERBOSITY
) -> CellB:
    """What the terse-but-correct control says about the rubric (ValueBlindBench section 3.5).

    Parameters
    ----------
    delta : float
        Mean score of the cell minus that of honest rationales, in rubric points: negative is a penalty for brevity.
    significant : bool
        Whether the difference survives the correction for multiple comparisons.
    substance, verbosity : float
        Cut-offs in rubric points.

    Returns
    -------
    "substance", "verbosity-bias", "inconclusive" or "terse-favoured"
        Within ``substance`` of honest; more than ``verbosity`` below and significant; between, or below without
        significance; more than ``substance`` above. The last two cases are not defined by the source.

    Raises
    ------
    NotMeasurableError
        ``delta`` is NaN: the cell was not scored.

    Examples
    --------
    >>> cell_b_outcome(-2.81, True), cell_b_outcome(4.05 - 4.35, False), cell_b_outcome(-0.6, False)
    ('verbosity-bias', 'substance', 'inconclusive')
    """
    if math.isnan(delta):
        raise NotMeasurableError("the outcome of cell B is undefined: its difference from honest records is NaN")
    if abs(delta) <= substance + TOLERANCE:
        return "substance"
    if delta > 0:
        return "terse-favoured"
    return "verbosity-bias" if delta < -verbosity - TOLERANCE and significant else "inconclusive"


def cell_outcome(cell: str, value: float, p: float, p_holm: float, *, flat: bool, cells: Cells, alpha: float) -> str:
    """What the rule of a control cell says of its number (ValueBlindBench section 3.5).

    Parameters
    ----------
    cell : str
        The cell's kind, such as ``"cell_b"``.
    value : float
        The number the rule looks at, in rubric points.
    p, p_holm : float
        One-sided for cells that have to score lower, else two-sided; alone and after Holm over all cells.
    flat : bool
        Whether all clusters differ by one amount: only a sign test is left, which few clusters cannot pass.
    cells : Cells
        The cut-offs.
    alpha : float
        Level of the Holm family of the cells.

    Returns
    -------
    str
        The outcome, as in `Measurement.detail` of a ``cell.gate``.

    Examples
    --------
    >>> rule = {"flat": False, "cells": Cells(), "alpha": 0.05}
    >>> cell_outcome("cell_a", -2.9, 1e-5, 1e-5, **rule), cell_outcome("paraphrase", 0.1, 0.3, 0.3, **rule)
    ('passed', 'invariant')
    """
    if cell in FALLING:
        done, undone = ("noticed", "not noticed") if cell == "fact_flip" else ("passed", "failed")
        if p < cells.alpha:
            return done
        return "not tested" if flat and value < 0 else undone
    if cell == "cell_b":
        return cell_b_outcome(value, p_holm <= alpha, substance=cells.substance, verbosity=cells.verbosity)
    if abs(value) <= cells.substance + TOLERANCE:
        return "invariant"
    return "style-sensitive" if p_holm <= alpha else "inconclusive"


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
    stability : "stable", "tie-class" or "judge-dependent"
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
    _known("agreement status", agreement, get_args(AgreementStatus))
    _known("stability status", stability, get_args(StabilityStatus))
    _known("adversarial status", adversarial, get_args(AdversarialStatus))
    if agreement == "halt" or stability == "judge-dependent" or adversarial == "contaminated":
        return "no-claim"
    if stability == "tie-class" and asserts_order:
        return "no-claim"
    reserved = agreement == "methodology" or adversarial in ("construct-sensitive", "not tested")
    return "qualified" if reserved or stability == "tie-class" or not significance_tested else "headline"


def _known(kind: str, name: str, allowed: tuple[str, ...]) -> None:
    if name not in allowed:
        raise UnknownNameError(kind, name, allowed)
