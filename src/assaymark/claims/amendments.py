"""Which claims were made under a plan field that was amended after the lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from assaymark.claims.candidates import KINDS, ClaimKind, kind_of
from assaymark.claims.words import listing
from assaymark.records import Claim

_ABOUT_AGENTS: Final[frozenset[ClaimKind]] = frozenset({"first", "pair", "within"})
_ORDERS: Final[frozenset[ClaimKind]] = frozenset({"first", "pair"})
_NONE: Final[frozenset[ClaimKind]] = frozenset()

TOUCHES: Final[Mapping[str, frozenset[ClaimKind]]] = {
    "anchor_probe": _NONE,
    "contamination": _NONE,
    "engine": _NONE,
    "human.grades": _NONE,
    "title": _NONE,
    "gates.format_min_clusters": _ABOUT_AGENTS,
    "gates.format_min_records": _ABOUT_AGENTS,
    "inference.aggregate_share": _ABOUT_AGENTS,
    "inference.cluster_order": _ABOUT_AGENTS,
    "inference.margin": frozenset({"pair", "within"}),
    "inference.test": _ABOUT_AGENTS,
    "inference.mde_power": _NONE,
    "inference.mde_sd": _NONE,
    "stability": _ABOUT_AGENTS,
    "cells.contaminates": _ABOUT_AGENTS,
    "cells.terse_share": _ORDERS,
    "cells.terse_tokens": _ORDERS,
    "claims.first": frozenset({"first"}),
    "claims.pairs": frozenset({"pair"}),
    "claims.distinct": _ORDERS,
    "claims.judges": _ORDERS,
    "claims.length": _ABOUT_AGENTS,
    "claims.within": frozenset({"within"}),
    "claims.cells": frozenset({"cell"}),
}
"""The kinds of claim that a plan field touches; a field without an entry, of its own or of a parent, touches all."""


def amended_for(claim: Claim, amended: Sequence[str]) -> tuple[str, ...]:
    """The amended plan fields under which a claim was made, in the order given, each once.

    Parameters
    ----------
    claim : Claim
    amended : sequence of str
        Dotted plan fields, such as ``"gates.publish"`` or ``"judges.0.trials"``.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from assaymark.claims import pair_claim
    >>> amended_for(pair_claim("aggregate", "b", "a"), ["claims.first", "gates.publish", "stability.probe.model"])
    ('gates.publish', 'stability.probe.model')
    """
    return tuple(name for name in dict.fromkeys(amended) if kind_of(claim) in _touched(name))


def amended_words(amended: Sequence[str]) -> str:
    """The sentence that a verdict under amended fields carries.

    >>> amended_words(("gates.publish",))
    'Amended after the lock: gates.publish.'
    """
    return f"Amended after the lock: {listing(list(amended))}."


def _touched(name: str) -> frozenset[ClaimKind]:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        found = TOUCHES.get(".".join(parts[:length]))
        if found is not None:
            return found
    return frozenset(KINDS)
