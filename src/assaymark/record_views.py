"""How records show themselves in a notebook and in a terminal: as a row of a table, and as a line of text.

A verdict whose claim is not supported shows what the claim is about and never its sentence, as on the pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from assaymark.display import MARKS, Grid, Heading, Note, Part, Said, Shown, plain
from assaymark.typography import NBSP, bounds, clean, count, count_of, number, prose, why_undefined

_EVERY: Final = frozenset(("above", "band", "beats", "cell", "first", "gate", "gates", "within"))
"""Kinds of claims that are made of all alike. The subjects of any other would show who is ahead."""
_OF_ALL: Final = frozenset(("agreement", "adversarial", "datasheets", "preregistration"))
"""Fields that limit the first rank of every agent alike."""


class ShownDecision(Shown):
    """What a decision shows: who, when, which orders, and how its reasons begin."""

    __slots__ = ()
    record_id: str
    cycle: Any
    agent: Any
    derivation: Any
    actions: tuple[Any, ...]
    rationales: tuple[Any, ...]

    _wordy = ("Derivation", "Reasons")

    def _cells(self) -> dict[str, str]:
        return {
            "Decision": clean(self.record_id, 80),
            "Agent": clean(self.agent.id, 60),
            "Cycle": clean(self.cycle, 80),
            "Derivation": self.derivation.kind,
            "Orders": clean("; ".join(f"{one.kind} {one.instrument}" for one in self.actions), 200) or "none",
            "Reasons": clean(" ".join(one.text for one in self.rationales), 200),
        }

    def __repr__(self) -> str:
        return "Decision {Decision} of {Agent}: {Orders}".format_map(self._cells())


class ShownJudgment(Shown):
    """What a judgment shows: who graded what, and the scores or why there are none."""

    __slots__ = ()
    trajectory: str
    judge: str
    trial: int
    status: str
    scores: Mapping[str, float]
    reason: str | None

    def _cells(self) -> dict[str, str]:
        scores = "; ".join(f"{name} {value:g}" for name, value in self.scores.items())
        return {
            "Judgment of": clean(self.trajectory, 80),
            "Judge": clean(self.judge, 60),
            "Trial": count(self.trial),
            "Status": self.status,
            "Scores": clean(scores or self.reason or "none", 200),
        }


class ShownMeasurement(Shown):
    """What a measurement shows: the number with its interval, denominator and method, or why there is none."""

    __slots__ = ()
    name: str
    labels: Mapping[str, str]
    value: float | None
    n: int
    n_of: str
    method: str
    state: str
    low: float | None
    high: float | None
    level: float | None
    unit: str

    _right = ("Value",)
    _wordy = ("Method",)

    def _cells(self) -> dict[str, str]:
        known = None if self.value is None else f"{number(self.value, 3)} {clean(self.unit, 24)}".rstrip()
        return {
            "Measurement": clean(self.name, 60),
            "About": clean("; ".join(f"{key} {self.labels[key]}" for key in sorted(self.labels)), 200),
            "Value": why_undefined(self.state) if known is None else known,
            "Interval": bounds(self.low, self.high, self.level),
            "n": count_of(self.n, self.n_of),
            "Method": clean(self.method, 140),
        }

    def __repr__(self) -> str:
        name, _, value, interval, n, method = self._cells().values()
        about = ",".join(f"{key}={self.labels[key]}" for key in sorted(self.labels))
        return plain(f"{name}[{clean(about, 200)}]: {value} ({interval}), n = {n}; {method}")


class ShownVerdict(Shown):
    """What a verdict shows: its level, the supported sentence with its condition, and what decided."""

    __slots__ = ()
    claim: Any
    agreement_status: str
    stability_status: str
    adversarial_status: str
    publication_level: Any
    reasons: Sequence[str]
    binding: Sequence[str]
    condition: str | None
    fragility: Mapping[str, Any]

    _wordy = ("Say also", "Decided by")

    @property
    def said(self) -> str:
        """The claim as it may be shown: its sentence, or for one that is not supported what it is about and no more."""
        if self.publication_level != "no-claim":
            return prose(self.claim.statement, 400)
        kind = clean(self.claim.id.partition("[")[0], 40)
        about = ", ".join(sorted(clean(name, 80) for name in self.claim.subjects))
        named = f": {about}" if kind.rpartition(".")[2] in _EVERY else ""
        return f"not supported ({kind}{named}; {clean(self.claim.dimension, 60)})"

    def _cells(self) -> dict[str, str]:
        said = self.publication_level != "no-claim"
        # Of several first ranks that are not supported, the one that another check stops is the leader's.
        leads = not said and self.claim.id.startswith("first[")
        return {
            "Level": f"{MARKS[self.publication_level]}{NBSP}{self.publication_level}",
            "Claim": self.said,
            "Say also": prose(self.condition or "", 400) if said else "",
            "Agreement": self.agreement_status,
            "Stability": "not shown" if leads else self.stability_status,
            "Controls": self.adversarial_status,
            "Decided by": ", ".join(name for name in self.binding if not leads or name in _OF_ALL),
        }

    def _parts(self) -> Iterator[Part]:
        cells = self._cells()
        level, said, also = cells.pop("Level"), cells.pop("Claim"), cells.pop("Say also")
        if self.publication_level == "no-claim":
            yield Heading(f"{level}: {said}")
        else:
            yield Said(self.publication_level, said, also)
        yield Grid(tuple(cells), (tuple(cells.values()),))
        if self.publication_level == "no-claim":
            return
        for reason in self.reasons:
            yield Note(prose(reason, 400))
        if self.fragility:
            other = "; ".join(f"{clean(rule, 60)}: {self.fragility[rule]}" for rule in sorted(self.fragility))
            yield Note(f"Under other rules: {other}.")

    def __repr__(self) -> str:
        level, said, also, *_, by = self._cells().values()
        more = (f" Say also: {also}" if also else "") + (f" Decided by {by}." if by else "")
        return plain(f"{level}: {said}{more}")
