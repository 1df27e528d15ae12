"""The agreement that gates a claim: which kappa governs, and what it permits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.claims.evidence import Index
from assaymark.claims.gates import agreement_status
from assaymark.claims.rules import Rules
from assaymark.claims.words import measure_words, number
from assaymark.records import AgreementStatus, Measurement


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement that governs a dimension: the lowest of the pooled and the gated within-format kappas.

    ``governing`` is the id of the measurement that this is, None where agreement was not measured. ``kappa`` is the
    number that was held against the cut-offs, None where it is undefined.
    """

    status: AgreementStatus
    kappa: float | None
    reason: str
    measurements: tuple[str, ...]
    governing: str | None = None


def governing_agreement(dimension: str, known: Index, rules: Rules) -> Agreement:
    """The agreement that gates a dimension. Where formats are gated on their own, the lowest kappa governs.

    Parameters
    ----------
    dimension : str
        A rubric dimension or ``"aggregate"``.
    known : Index
        From `index`.
    rules : Rules
        Cut-offs, and which kappa is held against them.

    Returns
    -------
    Agreement
        Its status, its value, the reason in words, and the ids of all kappas that were looked at.
    """
    key = ("agreement", dimension, rules)
    if key not in known.memo:
        known.memo[key] = _lowest(known.agreements.get(dimension, ()), measure_words(dimension), known, rules)
    found: Agreement = known.memo[key]
    return found


def _lowest(gated: Sequence[Measurement], about: str, known: Index, rules: Rules) -> Agreement:
    if not gated:
        return Agreement("halt", None, f"Agreement on {about} was not measured.", ())
    values = {item.id: _gate_value(item, known, rules) for item in gated}
    lowest = min(gated, key=lambda item: (values[item.id], item.id))
    value = None if values[lowest.id] == float("-inf") else values[lowest.id]
    status = agreement_status(value, publish=rules.publish, halt=rules.halt)
    ids = tuple(item.id for item in gated)
    return Agreement(status, value, _reason(lowest, value, status, about, rules), ids, lowest.id)


def _gate_value(item: Measurement, known: Index, rules: Rules) -> float:
    """The number that is held against the cut-offs; an undefined kappa is below all of them."""
    if item.value is None:
        return float("-inf")
    if rules.kappa == "other-ddof":
        other = known.get("kappa.other_ddof", **item.labels)
        if other is not None and other.value is None and other.state.startswith("undefined"):
            return float("-inf")
        return item.value if other is None or other.value is None else other.value
    if rules.kappa == "lower":
        return float("-inf") if item.low is None else item.low
    half_even = item.detail.get("half_even")
    return float(half_even) if rules.kappa == "half-even" and half_even is not None else item.value


def _reason(item: Measurement, value: float | None, status: AgreementStatus, about: str, rules: Rules) -> str:
    within = f" within format {item.labels['format']}" if "format" in item.labels else ""
    if value is None or item.value is None:
        return f"Agreement on {about}{within} is not defined ({item.state}); undefined agreement halts."
    interval = "" if item.low is None or item.high is None else f" ({number(item.low)} to {number(item.high)})"
    rule = {
        "publish": f"at or above the cut-off {number(rules.publish)}",
        "methodology": f"below {number(rules.publish)}: a finding about the judges, not a headline",
        "halt": f"below {number(rules.halt)}: no ranking",
    }[status]
    return f"The judges agree on {about}{within} at kappa {_shown(item.value, rules)}{interval}, {rule}."


def _shown(kappa: float, rules: Rules) -> str:
    """A kappa with two decimals, or three where two would lift it over a cut-off that it misses."""
    lifted = any(kappa < cut <= round(kappa, 2) for cut in (rules.halt, rules.publish))
    return f"{kappa:.3f}".replace("-", "−") if lifted else number(kappa)
