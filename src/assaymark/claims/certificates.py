"""A verdict as a small file of its own: enough tables to recompute it, and no text that anybody wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from assaymark import __version__
from assaymark.claims.evidence import Index
from assaymark.protocol import Study
from assaymark.records import AGGREGATE, JSON, Measurement, Verdict, sha256_text, to_json

FORMAT: Final = "assaymark certificate 1"
_KAPPA_PARTS: Final = ("pairs", "tables", "clusters")
_CONTRAST_PARTS: Final = ("cluster_sums", "p", "p_holm", "p_holm_family", "gating")


def certificate(verdict: Verdict, known: Index, study: Study) -> Mapping[str, JSON]:
    """The certificate of one verdict, as plain JSON.

    It holds the plan hash, the claim and its tuple, the gates, the contingency tables behind the agreement, the
    cluster sums behind each contrast the claim rests on, and the levels without each judge family.
    """
    rests = [known.by_id[name] for name in verdict.measurements]
    family = [item for (dimension, _), item in known.contrasts.items() if _same_family(dimension, verdict)]
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
        "reasons": list(verdict.reasons),
        "rules": {
            "publish": study.gates.publish,
            "halt": study.gates.halt,
            "alpha": study.claim_alpha,
            "gating_test": study.inference.gating_test,
        },
        "agreement": [_entry(item, _KAPPA_PARTS) for item in rests if item.name == "kappa.mean_pairwise"],
        "contrasts": [_entry(item, _CONTRAST_PARTS) for item in rests if item.name == "contrast"],
        "drops": [_entry(item, ()) for item in rests if item.name.startswith("lofo.")],
        "holm_family": {"size": len(family), "p": sorted(item.p("gating") for item in family)},
    }


def certificate_name(verdict: Verdict) -> str:
    """The file name of a certificate: readable, safe on every file system, and unique by the claim's digest."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", verdict.claim.id).strip("-.")[:80]
    return f"{readable}-{sha256_text(verdict.claim.id)[:8]}.json"


def _same_family(dimension: str, verdict: Verdict) -> bool:
    return (dimension == AGGREGATE) == (verdict.claim.dimension == AGGREGATE)


def _entry(item: Measurement, parts: Sequence[str]) -> Mapping[str, JSON]:
    head = {"id": item.id, "value": item.value, "low": item.low, "high": item.high, "n": item.n, "n_of": item.n_of}
    return {
        **head,
        "method": item.method,
        "state": item.state,
        **{k: item.detail[k] for k in parts if k in item.detail},
    }
