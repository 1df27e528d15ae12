"""A verdict as a small file of its own: enough tables to recompute it, and no text that anybody wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from assaymark import __version__
from assaymark.claims.candidates import kind_of
from assaymark.claims.evidence import HOLM_FIELDS, P_FIELDS, Index, family_of
from assaymark.claims.rules import TESTS, Rules
from assaymark.protocol import Study
from assaymark.records import JSON, Claim, Measurement, Verdict, sha256_text, to_json

FORMAT: Final = "assaymark certificate 2"

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "agreement": ("kappa.mean_pairwise", "kappa.other_ddof", "cell.kappa"),
    "levels": ("score.effect",),
    "contrasts": ("contrast",),
    "drops": ("lofo.effect", "lofo.contrast"),
    "probe": ("probe.contrast",),
    "cells": ("cell.gate", "cell.halo", "cell.drop"),
    "style": ("terse.share", "length_matched.contrast"),
    "instruments": ("datasheet.gate",),
}
"""Which measurements stand in which part of a certificate."""

_KAPPA: Final = ("pairs", "tables", "clusters", "half_even")
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "kappa.mean_pairwise": _KAPPA,
    "kappa.other_ddof": ("ddof",),
    "cell.kappa": _KAPPA,
    "contrast": ("gating", *P_FIELDS.values(), *HOLM_FIELDS.values(), "clusters", "cluster_sums"),
    "probe.contrast": ("judge", "family", "p", "cluster_sums"),
    "cell.gate": ("outcome", "p", "p_holm", "primary", "cluster_sums"),
    "cell.halo": ("family", "triggered"),
    "cell.drop": ("outcome", "p", "p_holm"),
    "terse.share": ("below", "tokens"),
    "length_matched.contrast": ("p", "p_holm"),
    "datasheet.gate": ("failed",),
}
"""What a certificate keeps of each measurement's detail."""

_CELLS: Final = ("cell.gate", "cell.drop", "cell.halo")
_NO_INTERVAL: Final = ("score.effect", "lofo.effect", "lofo.contrast", "terse.share", "length_matched.contrast")


def certificates(verdicts: Iterable[Verdict], known: Index, study: Study) -> Iterator[Mapping[str, JSON]]:
    """The `certificate` of each verdict; what several of them hold is made once."""
    made: dict[tuple[str, bool], Mapping[str, JSON]] = {}
    for verdict in verdicts:
        yield _certificate(verdict, known, study, made)


def certificate(verdict: Verdict, known: Index, study: Study) -> Mapping[str, JSON]:
    """The certificate of one verdict, as plain JSON: `assaymark.claims.verify` recomputes the verdict from it alone.

    It holds the plan hash, the claim with its tuple, reasons and fragility, the rules, and the tables they follow from:
    contingency tables behind each kappa, cluster sums behind each contrast, probe and control cell, levels with and
    without each judge family, the share of terse rationales, and the p-values of the rest of the Holm family.

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


def _certificate(
    verdict: Verdict, known: Index, study: Study, made: dict[tuple[str, bool], Mapping[str, JSON]]
) -> Mapping[str, JSON]:
    kept = _needed(verdict, known)
    parts: dict[str, JSON] = {
        section: [_entry(item, verdict, made) for item in kept if item.name in names]
        for section, names in SECTIONS.items()
    }
    return {
        "format": FORMAT,
        "software": f"assaymark {__version__}",
        "plan_hash": verdict.plan_hash,
        "claim": to_json(verdict.claim),
        "tuple": {
            "claim_scope": verdict.claim.scope,
            "agreement_status": verdict.agreement_status,
            "stability_status": verdict.stability_status,
            "adversarial_status": verdict.adversarial_status,
            "permitted_publication_level": verdict.publication_level,
        },
        "binding": list(verdict.binding),
        "condition": verdict.condition,
        "reasons": list(verdict.reasons),
        "fragility": dict(verdict.fragility),
        "amended": list(verdict.amended),
        "rests_on": list(verdict.measurements),
        "rules": _rules(study, known),
        **parts,
        "holm_family": _family(verdict.claim, known, kept),
    }


def certificate_name(verdict: Verdict) -> str:
    """The file name of a certificate: readable, safe on every file system, and unique by the claim's digest."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", verdict.claim.id).strip("-.")[:80]
    return f"{readable}-{sha256_text(verdict.claim.id)[:8]}.json"


def _needed(verdict: Verdict, known: Index) -> list[Measurement]:
    """What the verdict rests on, and what deciding it again, also under the other rules, has to look at."""
    claim, rests = verdict.claim, set(verdict.measurements)
    kind, dimension = kind_of(claim), claim.dimension
    if kind == "cell":
        return [item for name, item in known.by_id.items() if name in rests or item.name in _CELLS]
    everyone = kind != "pair" or dimension in known.probed
    every_pair = kind == "tie" or dimension in known.probed
    wanted = {"kappa.other_ddof"}
    wanted |= {"score.effect", "lofo.effect"} if everyone else set()
    wanted |= {"contrast", "lofo.contrast", "probe.contrast"} if every_pair else set()
    own = set() if everyone else {item.id for agent in claim.subjects if (item := known.level(dimension, agent))}
    return [
        item
        for name, item in known.by_id.items()
        if name in rests
        or name in own
        or item.name in _CELLS
        or (item.name == "terse.share" and (everyone or item.labels["agent"] in claim.subjects))
        or (item.name in wanted and item.labels.get("dimension") == dimension)
    ]


def _entry(item: Measurement, verdict: Verdict, made: dict[tuple[str, bool], Mapping[str, JSON]]) -> Mapping[str, JSON]:
    # Of a contrast that the claim does not rest on, the p-values are all that it needs.
    apart = item.name == "contrast" and item.id not in verdict.measurements
    key = (item.id, apart)
    if key not in made:
        made[key] = _made(item, apart=apart)
    return made[key]


def _made(item: Measurement, *, apart: bool) -> Mapping[str, JSON]:
    """One measurement as it stands in a certificate; what is absent is undefined, or not needed to check the rest."""
    entry: dict[str, JSON] = {"id": item.id, "n": item.n}
    if item.state != "ok":
        entry["state"] = item.state
    if item.value is not None:
        entry["value"] = item.value
    if not apart and item.name not in _NO_INTERVAL:
        entry |= {"n_of": item.n_of, "method": item.method}
        ends = {"low": item.low, "high": item.high, "level": item.level}
        entry |= {part: value for part, value in ends.items() if value is not None}
    entry |= {part: to_json(item.detail[part]) for part in PARTS.get(item.name, ()) if part in item.detail}
    return {part: value for part, value in entry.items() if not (apart and part in ("clusters", "cluster_sums"))}


def _rules(study: Study, known: Index) -> Mapping[str, JSON]:
    rules = Rules.of(study)
    return {
        "publish": rules.publish,
        "halt": rules.halt,
        "alpha": rules.alpha,
        "cell_alpha": rules.cell_alpha,
        "on_failure": rules.on_failure,
        "level": study.inference.level,
        "gating_test": study.inference.gating_test,
        "cells": study.cells.model_dump(mode="json"),
        "judges": {judge.name: judge.family for judge in study.judges},
        "families": list(known.families),
    }


def _family(claim: Claim, known: Index, kept: list[Measurement]) -> Mapping[str, JSON] | None:
    """The Holm family of the claim's contrasts: its size, and the p-values of those that stand nowhere above."""
    if kind_of(claim) == "cell" or not known.tested(claim.dimension):
        return None
    members, here = known.members(family_of(claim.dimension)), {item.id for item in kept}
    elsewhere = [known.contrasts[key] for key in members if known.contrasts[key].measurement.id not in here]
    measured = known.measured_tests(claim.dimension)
    return {
        "name": family_of(claim.dimension),
        "size": len(members),
        "gating": sorted(known.gating_tests(claim.dimension)),
        "measured": sorted(measured),
        "elsewhere": {test: sorted(item.p(test) for item in elsewhere) for test in TESTS if test in measured},
    }
