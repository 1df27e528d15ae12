"""The rules of the control cells: what a cell's number says, at the plan's cut-offs (ValueBlindBench section 3.5)."""

from __future__ import annotations

import math
from typing import Final, Literal

from assaymark.errors import NotMeasurableError
from assaymark.protocol import Cells

TerseOutcome = Literal["substance", "verbosity-bias", "inconclusive", "terse-favoured"]
CellOutcome = Literal[
    TerseOutcome, "passed", "failed", "invariant", "style-sensitive", "noticed", "not noticed", "not tested"
]

TOLERANCE: Final = 1e-9
"""Slack of every gate: (0.3 + 0.4 + 0.5) / 3 is below 0.4 in binary floating point, and must publish."""

FALLING: Final = ("cell_a", "red_team", "fact_flip")
"""Cells that have to score lower: their test is one-sided, at the plan's ``cells.alpha``."""

SUBSTANCE: Final = 0.3
VERBOSITY: Final = 0.5


def cell_b_outcome(
    delta: float, significant: bool, *, substance: float = SUBSTANCE, verbosity: float = VERBOSITY
) -> TerseOutcome:
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


def cell_outcome(
    cell: str, value: float, p: float, p_holm: float, *, flat: bool, cells: Cells, alpha: float
) -> CellOutcome:
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
        if p < cells.alpha:
            return "noticed" if cell == "fact_flip" else "passed"
        if flat and value < 0:
            return "not tested"
        return "not noticed" if cell == "fact_flip" else "failed"
    if cell == "cell_b":
        return cell_b_outcome(value, p_holm <= alpha, substance=cells.substance, verbosity=cells.verbosity)
    if abs(value) <= cells.substance + TOLERANCE:
        return "invariant"
    return "style-sensitive" if p_holm <= alpha else "inconclusive"
