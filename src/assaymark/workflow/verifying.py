"""`assaymark claim --verify`: a certificate recomputed from the tables in it, and from nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from assaymark.claims import Verification, verify
from assaymark.errors import InputError, Problem
from assaymark.workflow.folder import read_text


def verify_certificate(path: Path) -> Verification:
    """Recompute the certificate in a file.

    Raises
    ------
    InputError
        It is missing, not JSON, or no certificate; every problem of it at once.
    """
    text = read_text(path, "certificate")
    try:
        raw = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as exc:
        where = f"line {exc.lineno}" if isinstance(exc, json.JSONDecodeError) else ""
        raise InputError(str(path), [Problem(where, "is not JSON")]) from None
    try:
        return verify(raw)
    except InputError as exc:
        raise InputError(str(path), exc.problems) from None


def verification_lines(found: Verification, path: Path) -> list[str]:
    """What `assaymark claim --verify` prints for one certificate."""
    head = f"{path}: {'follows from its own tables' if found.ok else 'does NOT follow from its own tables'}"
    return [head, *(f"  {text}" for text in found.differences), *(f"  note: {text}" for text in found.notes)]
