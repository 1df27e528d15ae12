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
    """A verdict, and what it says as sentences that any language can word.

    ``verdict`` holds them in English. ``condition`` is empty where the claim needs none; ``withheld`` is what an
    unsupported claim is about, as a phrase: "A first rank for elm."
    """

    kind: SeasonClaimKind
    verdict: Verdict
    statement: Said
    reasons: tuple[Said, ...]
    condition: tuple[Said, ...] = ()
    withheld: Said | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The ranks that an agent can have, and in a word why its total is shown or not.

    ``first`` and ``last`` are None for an agent without a total. ``shown`` says whether its total may be printed: its
    rank is a single one. ``level`` is the weakest verdict that sets its tier apart; ``why`` is the note of its row.
    """

    agent: str
    first: int | None
    last: int | None
    shown: bool
    level: Level
    why: Said


@dataclass(frozen=True, slots=True)
class SeasonVerdicts:
    """All verdicts in the order in which they are read, and the rows of the table.

    ``tiers`` are the agents between two cuts, from the top, each tier in alphabetical order: a cut runs where every
    agent above it is claimed above every agent below it. Agents without a total are in no tier.
    """

    verdicts: tuple[SeasonVerdict, ...]
    tiers: tuple[tuple[str, ...], ...]
    places: tuple[Place, ...]

    def place(self, agent: str) -> Place:
        """The row of an agent.

        Raises
        ------
        KeyError
            It is not in the season.
        """
        return {one.agent: one for one in self.places}[agent]
