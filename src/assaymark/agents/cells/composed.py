"""What a generator of control cells hands out: orders, a text, and the record of every check that they passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from assaymark.errors import NotMeasurableError
from assaymark.records import Action, Decision, DerivationKind

CELL_KINDS: Final[tuple[DerivationKind, ...]] = ("cell_a", "cell_b", "paraphrase", "fact_flip", "length_matched")
"""The kinds of control cell that are made and checked here."""

DERIVED_KINDS: Final[tuple[DerivationKind, ...]] = ("paraphrase", "fact_flip", "length_matched")
"""Those that are made from an honest decision."""

REDRAWS: Final = 24
"""How often a generator draws before it gives up."""


@dataclass(frozen=True, slots=True)
class AdmissibilityCheck:
    """One rule held against a composed cell: ``value`` is what was found, ``limit`` what is needed, in words.

    ``detail`` quotes what decided it, where something did.
    """

    rule: str
    value: float
    limit: str
    passed: bool
    detail: str = ""

    def __str__(self) -> str:
        found = f"{self.rule} is {self.value:g}, needs {self.limit}"
        return f"{found} ({self.detail})" if self.detail else found


@dataclass(frozen=True, slots=True)
class Change:
    """The one number that a fact-flip changed: what was printed, what is printed now, and the offset in the text."""

    old: str
    new: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A control cell before it becomes a record.

    ``original`` is the honest decision that a derived cell was made from, ``tokens`` the length that was asked for.
    ``known_scores`` holds, by rubric dimension, what a faultless judge gives; only what the construction fixes is in
    it. ``admissibility`` is empty for a cell that nobody has checked yet.
    """

    kind: DerivationKind
    actions: tuple[Action, ...]
    text: str
    confidence: float | None = None
    original: Decision | None = None
    tokens: int | None = None
    change: Change | None = None
    known_scores: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    admissibility: tuple[AdmissibilityCheck, ...] = ()


def failed(checks: Sequence[AdmissibilityCheck]) -> tuple[AdmissibilityCheck, ...]:
    """The checks that did not pass.

    >>> failed([AdmissibilityCheck("tokens", 61, "at most 60", False), AdmissibilityCheck("orders", 1, "any", True)])
    (AdmissibilityCheck(rule='tokens', value=61, limit='at most 60', passed=False, detail=''),)
    """
    return tuple(check for check in checks if not check.passed)


def refuse(kind: str, checks: Sequence[AdmissibilityCheck], draws: int) -> NotMeasurableError:
    """The error of a generator whose best draw is not admissible: every check that failed.

    >>> str(refuse("cell_b", [AdmissibilityCheck("tokens", 61, "at most 60", False)], 3))
    'cell_b is not admissible as drawn: tokens is 61, needs at most 60 (last of 3 draws)'
    """
    said = "; ".join(map(str, failed(checks))) or "nothing could be drawn"
    return NotMeasurableError(f"{kind} is not admissible as drawn: {said} (last of {draws} draws)")
