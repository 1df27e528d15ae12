"""Decide which claims the measurements support: verdicts with level, reasons and conditions, and certificates."""

# ruff: noqa: I001  # packed, because it is a list

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.claims.boards import (
        DISSOCIATION, DRAWDOWN, SHARPE_CONTRAST, Board, Leaderboard, decide_benchmark,
    )  # fmt: skip
    from assaymark.claims.certification import (
        KEPT, Rank, certificate, certificate_name, certificates, season_certificates,
    )  # fmt: skip
    from assaymark.claims.certification import Rank as Place  # noqa: F401  # its name in 0.1
    from assaymark.claims.levels import (
        SILENT, Index, Rules, SeasonGates, agreement_status, governing_agreement, governing_kappa, index,
        publication_level,
    )  # fmt: skip
    from assaymark.claims.messages import ENGLISH, Catalogue, Phrase, catalogue, english, languages, phrase
    from assaymark.claims.messages import Phrase as Said, phrase as said  # noqa: F401  # their names in 0.1
    from assaymark.claims.orders import summary_of
    from assaymark.claims.recompute import Verification
    from assaymark.claims.season_claims import (
        CONSTANT, MISSING, SINGLE, SeasonClaims, SeasonVerdict, SeasonVerdicts, decide_season,
    )  # fmt: skip
    from assaymark.claims.season_claims import SeasonClaims as Season  # noqa: F401  # its name before
    from assaymark.claims.verdicts import (
        KIND_NAMES, ClaimKind, candidate_claims, decide, decide_claims, kind_of, scope_words, suppressed_phrase,
    )  # fmt: skip
    from assaymark.claims.verification import verify
    from assaymark.metrology.controls import cell_b_outcome

__all__ = [
    "CONSTANT", "DISSOCIATION", "DRAWDOWN", "ENGLISH", "KEPT", "KIND_NAMES", "MISSING", "SHARPE_CONTRAST", "SILENT",
    "SINGLE",
    "Board", "Catalogue", "ClaimKind", "Index", "Leaderboard", "Phrase", "Rank", "Rules", "SeasonClaims",
    "SeasonGates", "SeasonVerdict", "SeasonVerdicts", "Verification", "agreement_status", "candidate_claims",
    "catalogue", "cell_b_outcome", "certificate", "certificate_name", "certificates", "decide", "decide_benchmark",
    "decide_claims", "decide_season", "english", "governing_agreement", "governing_kappa", "index", "kind_of",
    "languages", "phrase", "publication_level", "scope_words", "season_certificates", "summary_of", "suppressed_phrase",
    "verify",
]  # fmt: skip

__getattr__ = exported(__name__)
