"""Which claims the scores support, under which condition, and why not: measurements in, verdicts out."""

from __future__ import annotations

from assaymark.claims.candidates import (
    ClaimKind,
    candidate_claims,
    cell_words,
    first_claim,
    kind_of,
    pair_claim,
    suppressed_phrase,
    within_claim,
)
from assaymark.claims.certificates import Verification, certificate, certificate_name, certificates
from assaymark.claims.evidence import Index, SeasonGates, index
from assaymark.claims.levels import Rules, agreement_status, publication_level
from assaymark.claims.panel import Agreement, governing_agreement
from assaymark.claims.season_claims import Place, SeasonVerdict, SeasonVerdicts
from assaymark.claims.verdicts import decide, decide_claims, decide_season, summary_of
from assaymark.claims.verify import season_certificates, verify
from assaymark.metrology.controls import cell_b_outcome

__all__ = [
    "Agreement",
    "ClaimKind",
    "Index",
    "Place",
    "Rules",
    "SeasonGates",
    "SeasonVerdict",
    "SeasonVerdicts",
    "Verification",
    "agreement_status",
    "candidate_claims",
    "cell_b_outcome",
    "cell_words",
    "certificate",
    "certificate_name",
    "certificates",
    "decide",
    "decide_claims",
    "decide_season",
    "first_claim",
    "governing_agreement",
    "index",
    "kind_of",
    "pair_claim",
    "publication_level",
    "season_certificates",
    "summary_of",
    "suppressed_phrase",
    "verify",
    "within_claim",
]
