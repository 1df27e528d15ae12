"""What may be said: measurements in, verdicts out.

`gates` has the rules that name a number, `candidates` the sentences that are put to them, `verdicts` the decision and
its reasons, `certificates` the small file that lets a stranger check it.
"""

from __future__ import annotations

from assaymark.claims.candidates import candidate_claims, withheld_phrase
from assaymark.claims.certificates import certificate, certificate_name
from assaymark.claims.evidence import Index, index
from assaymark.claims.gates import agreement_status, cell_b_outcome, publication_level
from assaymark.claims.verdicts import Rules, decide, decide_claims

__all__ = [
    "Index",
    "Rules",
    "agreement_status",
    "candidate_claims",
    "cell_b_outcome",
    "certificate",
    "certificate_name",
    "decide",
    "decide_claims",
    "index",
    "publication_level",
    "withheld_phrase",
]
