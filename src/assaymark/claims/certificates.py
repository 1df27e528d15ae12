"""A verdict as a small file of its own: enough tables to recompute it, and no text that anybody wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from assaymark import __version__
from assaymark.claims.candidates import kind_of
from assaymark.claims.evidence import Index
from assaymark.claims.orders import Row, rows_of
from assaymark.claims.rules import Rules
from assaymark.claims.verdicts import rejecting
from assaymark.protocol import Study
from assaymark.records import AGGREGATE, JSON, Claim, Measurement, Verdict, sha256_text, to_json

FORMAT: Final = "assaymark certificate 3"

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "agreement": ("kappa.mean_pairwise", "kappa.other_ddof", "cell.kappa", "cell.agreement"),
    "design": ("panel.families", "order.autocorrelation", "missing.share", "agent.flagged_texts"),
    "levels": ("score.effect",),
    "contrasts": ("contrast",),
    "drops": ("lofo.effect", "lofo.contrast"),
    "biases": ("recusal.contrast", "length.contrast", "judges.contrast", "dimension.distinct"),
    "probe": ("probe.contrast",),
    "cells": ("cell.gate", "cell.halo", "cell.drop"),
    "style": ("terse.share", "length_matched.contrast"),
    "instruments": ("datasheet.gate",),
}
"""Which measurements stand in which part of a certificate."""

_KAPPA: Final = ("pairs", "tables", "clusters", "half_even")
_TEST: Final = ("p", "se", "df", "clusters")
_POOLED: Final = ("variance", "mean_variance", "prior_df", "rho", "effective")
OTHER_TESTS: Final = ("p_own_variance", "p_cluster_t", "p_bootstrap", "p_sign_flip")
"""p-values of a contrast under the tests of the fragility table, by their place in its detail."""
_NEAR: Final = ("p_equivalence", "p_equivalence_at")

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "kappa.mean_pairwise": _KAPPA,
    "kappa.other_ddof": ("ddof",),
    "cell.kappa": _KAPPA,
    "cell.agreement": ("unanimous", "leave_one_out", "each", "drops", "p"),
    "panel.families": ("unknown", "own", "in_parts", "missing"),
    "order.autocorrelation": ("lags", "flagged", "flag", "order"),
    "contrast": (*_TEST, *_POOLED, *OTHER_TESTS, *_NEAR, "cluster_sums", "gap", "equivalence_interval", "others",
                 "p_specific"),
    "lofo.contrast": (*_TEST, *_POOLED, "p_adjusted"),
    "recusal.contrast": (*_TEST, *_NEAR, "families", "free"),
    "length.contrast": (*_TEST, *_NEAR, "word", "covariates", "gap", "slope",
                        "slope_p", "raw", "overlap", "slopes", "gaps"),
    "judges.contrast": ("p", "se", "df"),
    "dimension.distinct": ("p", "p_holm", "distinct"),
    "probe.contrast": ("judge", "family", "p", "cluster_sums"),
    "cell.gate": ("outcome", "p", "p_holm", "primary", "cluster_sums"),
    "cell.halo": ("family", "triggered"),
    "cell.drop": ("outcome", "p", "p_holm"),
    "missing.share": ("left_out", "records", "lacking", "p_more"),
    "agent.flagged_texts": ("count",),
    "terse.share": ("below", "tokens"),
    "length_matched.contrast": ("p", "p_holm"),
    "datasheet.gate": ("failed",),
}  # fmt: skip
"""What a certificate keeps of each measurement's detail."""

PLACES: Final[Mapping[str, str]] = {
    "agreement_status": "agreement_status",
    "stability_status": "stability_status",
    "adversarial_status": "adversarial_status",
    "publication_level": "permitted_publication_level",
}
"""Fields of a verdict that stand in the tuple, by the names that ValueBlindBench gives them."""

_CELLS: Final = ("cell.gate", "cell.drop", "cell.halo")
_ON_DIMENSION: Final = ("kappa.other_ddof", "dimension.distinct", "order.autocorrelation")
_NO_INTERVAL: Final = ("score.effect", "lofo.effect", "lofo.contrast", "terse.share", "length_matched.contrast")


def certificates(verdicts: Iterable[Verdict], known: Index, study: Study) -> Iterator[Mapping[str, JSON]]:
    """The `certificate` of each verdict; what several of them hold is made once."""
    made: dict[tuple[str, bool], Mapping[str, JSON]] = {}
    for verdict in verdicts:
        yield _certificate(verdict, known, study, made)


def certificate(verdict: Verdict, known: Index, study: Study) -> Mapping[str, JSON]:
    """The certificate of one verdict, as plain JSON: `assaymark.claims.verify` recomputes the verdict from it alone.

    It holds the verdict with its tuple, reasons, conditions and fragility, the rules, and the tables they follow from:
    contingency tables behind each kappa, cluster sums behind each contrast, probe and control cell, what each judge
    family left out does to them, the tests of what else may explain them, and, of the pairs that the claim is not
    about, the p-values that the order procedure takes.

    Parameters
    ----------
    verdict : Verdict
        From `decide_claims`.
    known : Index
        Over the measurements that it was decided on.
    study : Study
        The locked plan.

    Returns
    -------
    mapping of str to JSON
        Without any rationale text, time or random name: equal inputs give equal bytes.
    """
    return _certificate(verdict, known, study, {})


def stated_in(verdict: Verdict, form: str) -> dict[str, JSON]:
    """What a certificate of the format ``form`` says of its verdict, whatever that was decided from."""
    stated = to_json(verdict)
    rests_on = stated.pop("measurements")
    five = {place: stated.pop(name) for name, place in PLACES.items()}
    head = {"format": form, "software": f"assaymark {__version__}"}
    return {**head, **stated, "tuple": {"claim_scope": verdict.claim.scope, **five}, "rests_on": rests_on}


def _certificate(
    verdict: Verdict, known: Index, study: Study, made: dict[tuple[str, bool], Mapping[str, JSON]]
) -> Mapping[str, JSON]:
    rules = Rules.of(study, preregistered=verdict.preregistered)
    kept = {item.id: (item, False) for item in _needed(verdict, known)}
    kept |= {item.id: (item, True) for item in _other_drops(verdict.claim, known) if item.id not in kept}
    return {
        **stated_in(verdict, FORMAT),
        "rules": {
            **{name: getattr(rules, name) for name in Rules.__dataclass_fields__},
            "scales": None if rules.scales is None else sorted(rules.scales),
            "cells": rules.cells.model_dump(mode="json"),
        },
        "study": {
            "level": study.inference.level,
            "judges": {judge.name: judge.family for judge in study.judges},
            "families": list(known.families),
            "agents": list(known.agents),
            "dimensions": list(known.dimensions),
        },
        **{
            section: [_entry(item, made, apart=apart) for item, apart in kept.values() if item.name in names]
            for section, names in SECTIONS.items()
        },
        "other_pairs": None if kind_of(verdict.claim) == "cell" else _other_pairs(verdict.claim, known, rules),
    }


def certificate_name(verdict: Verdict) -> str:
    """The file name of a certificate: readable, safe on every file system, and unique by the claim's digest."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", verdict.claim.id).strip("-.")[:80]
    return f"{readable}-{sha256_text(verdict.claim.id)[:8]}.json"


# --- measurements -----------------------------------------------------------------------------------------------------


def _needed(verdict: Verdict, known: Index) -> list[Measurement]:
    """What the verdict rests on, and what deciding it again, also under the other rules, has to look at."""
    claim, rests = verdict.claim, set(verdict.measurements)
    if kind_of(claim) == "cell":
        return [item for name, item in known.by_id.items() if name in rests or item.name in _CELLS]
    agents = known.agents if kind_of(claim) == "first" else claim.subjects
    on_dimension = _ON_DIMENSION if known.tested(claim.dimension) else (*_ON_DIMENSION, "score.effect")
    return [
        item
        for name, item in known.by_id.items()
        if name in rests
        or item.name in (*_CELLS, "panel.families")
        or (item.name == "terse.share" and item.labels["agent"] in agents)
        or (item.name in on_dimension and item.labels["dimension"] == claim.dimension)
        or (
            item.name == "length_matched.contrast"
            and item.labels["dimension"] == claim.dimension
            and about(claim, item.labels["high"], item.labels["low"])
        )
    ]


def _other_drops(claim: Claim, known: Index) -> Iterator[Measurement]:
    """What leaving out families does to the other pairs of a leader: if all of them pass, so may the claim's pair."""
    if kind_of(claim) not in ("pair", "within") or claim.dimension != AGGREGATE or not known.tested(AGGREGATE):
        return
    leader = claim.subjects[0]
    mine = [row for row in rows_of(known)[AGGREGATE] if leader in (row.high, row.low)]
    if all(row.high == leader and row.testable for row in mine):
        for row in mine:
            drops = (known.drops.get((AGGREGATE, family, frozenset((leader, row.low)))) for family in known.families)
            yield from (item for item in drops if item is not None)


def _entry(item: Measurement, made: dict[tuple[str, bool], Mapping[str, JSON]], *, apart: bool) -> Mapping[str, JSON]:
    if (item.id, apart) not in made:
        made[item.id, apart] = _made(item, apart=apart)
    return made[item.id, apart]


def _made(item: Measurement, *, apart: bool) -> Mapping[str, JSON]:
    """One measurement as it stands in a certificate; what is absent is undefined, or not needed to check the rest."""
    entry: dict[str, JSON] = {"id": item.id, "n": item.n}
    if item.state != "ok":
        entry["state"] = item.state
    if item.value is not None:
        entry["value"] = item.value
    if item.name not in _NO_INTERVAL:
        ends = {"low": item.low, "high": item.high, "level": item.level}
        entry |= {part: value for part, value in ends.items() if value is not None}
    parts = ("p",) if apart else PARTS.get(item.name, ())
    return entry | {part: to_json(item.detail[part]) for part in parts if item.detail.get(part) is not None}


# --- the pairs that the claim is not about ----------------------------------------------------------------------------


def _other_pairs(claim: Claim, known: Index, rules: Rules) -> Mapping[str, JSON]:
    """The pairs that the order procedure sees beside those of the claim, scale by scale, in the order of names.

    An order on the aggregate does not depend on those of dimensions; of these only the names are needed.
    """
    tests = sorted(rejecting(known, rules).intersection(OTHER_TESTS)) if kind_of(claim) != "within" else []
    found: dict[str, JSON] = {}
    for scale, rows in (rows_of(known) if known.tested(claim.dimension) else {}).items():
        if rules.claims_scale(scale):
            needed = claim.dimension != AGGREGATE or scale == AGGREGATE
            mine = claim if scale == claim.dimension else None
            found[scale] = _stated_rows(known.agents, rows, mine, tests, rules) if needed else None
    return {"tests": tests, "scales": found}


def _stated_rows(
    agents: Sequence[str], rows: Sequence[Row], claim: Claim | None, tests: Sequence[str], rules: Rules
) -> Mapping[str, JSON]:
    """Rows as columns; a column that says the same of every pair as the lack of it is left out."""
    pairs = zip(combinations(agents, 2), rows, strict=True)
    left = [(one, row) for (one, other), row in pairs if not about(claim, one, other)]
    names = ["floor", "length", *(["others"] if rules.any_judges else [])]
    if claim is not None and claim.dimension == AGGREGATE and len(claim.subjects) == 2:
        names.append("equivalence")
    columns = {name: [_short(getattr(row, name)) for _, row in left] for name in names}
    margins = sorted({margin for _, row in left for margin in row.near}) if "equivalence" in names else []
    near = {margin: [_short(row.near.get(margin, 1.0)) for _, row in left] for margin in margins}
    places: dict[str, list[int]] = {
        "untested": [at for at, (_, row) in enumerate(left) if not row.testable],
        "interested": [at for at, (_, row) in enumerate(left) if not row.disinterested],
    }
    return {
        "order": "".join(">" if row.high == one else "<" for one, row in left),
        "p": {test: [_short(row.p.get(test, 1.0)) for _, row in left] for test in dict.fromkeys(("p", *tests))},
        **{name: values for name, values in columns.items() if any(value is not None for value in values)},
        **({"near": near} if near else {}),
        **{name: at for name, at in places.items() if at},
    }


def _short(p: float | None) -> float | None:
    """A p-value with as many digits as comparisons look at."""
    return None if p is None else float(f"{p:.12g}")


def about(claim: Claim | None, one: str, other: str) -> bool:
    """Whether a claim about agents compares these two: all its pairs have its one or both of its two subjects."""
    return claim is not None and set(claim.subjects) <= {one, other}
