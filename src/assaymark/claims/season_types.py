"""Decided claims of a season: verdicts with their sentences by key, tiers, and the rows of its table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assaymark.claims.messages import Said
from assaymark.records import Level, Verdict

SeasonClaimKind = Literal["first", "above", "within", "band", "beats"]
"""What a claim says.

``first``: an agent ranks first. ``above``: one agent scores above another. ``within``: two agents score within the
margin of each other. ``band``: the band of an agent's total. ``beats``: an agent earned more than a baseline.
"""


@dataclass(frozen=True, slots=True)
class SeasonVerdict:
    """A verdict, and what it says as sentences that any language can word."""

    kind: SeasonClaimKind
    verdict: Verdict
    statement: Said
    reasons: tuple[Said, ...]
    condition: tuple[Said, ...] = ()
    withheld: Said | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The ranks that an agent can have, and in a word why its total is shown or not."""

    agent: str
    first: int | None
    last: int | None
    shown: bool
    level: Level
    why: Said


@dataclass(frozen=True, slots=True)
class SeasonVerdicts:
    """All verdicts in the order in which they are read, and the rows of the table."""

    verdicts: tuple[SeasonVerdict, ...]
    tiers: tuple[tuple[str, ...], ...]
    places: tuple[Place, ...]

    def place(self, agent: str) -> Place:
        """The row of an agent."""
        return {one.agent: one for one in self.places}[agent]
