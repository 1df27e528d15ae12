"""What was decided about a season: verdicts with their sentences by key, and the places that they permit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assaymark.claims.messages import Said
from assaymark.records import Verdict

SeasonClaimKind = Literal["cut", "tie", "unplaced", "above", "band", "beats"]
"""What a claim says.

``cut``: everybody of one group stands above everybody of the next. ``tie``: some agents are one class. ``unplaced``:
an agent has no place, because it depends on who judges. ``above``: one agent stands above another. ``band``: the band
of an agent's total. ``beats``: an agent earned more than a baseline.
"""


@dataclass(frozen=True, slots=True)
class SeasonVerdict:
    """A verdict, and what it says as sentences that any language can word.

    ``verdict`` holds them in English. ``condition`` is empty where nothing has to be said with the claim; ``withheld``
    is what a claim that may not be made is about, as a phrase: "Any position for elm."
    """

    kind: SeasonClaimKind
    verdict: Verdict
    statement: Said
    reasons: tuple[Said, ...]
    condition: tuple[Said, ...] = ()
    withheld: Said | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent stands: first and last place of its class, and in a word why its total is shown or withheld.

    ``first`` and ``last`` are None for an agent without a place. ``shown`` says whether its total may be printed: it
    stands alone, and the claim that it does may be made. ``why`` is the note of its row.
    """

    agent: str
    first: int | None
    last: int | None
    shown: bool
    level: Literal["headline", "qualified", "no-claim"]
    why: Said


@dataclass(frozen=True, slots=True)
class SeasonVerdicts:
    """All verdicts in the order in which they are read, and the places in the order of the table.

    ``groups`` are the agents between boundaries that may be claimed, from high to low, each in alphabetical order;
    agents without a place are in none of them.
    """

    verdicts: tuple[SeasonVerdict, ...]
    groups: tuple[tuple[str, ...], ...]
    places: tuple[Place, ...]

    def place(self, agent: str) -> Place:
        """The place of an agent.

        Raises
        ------
        KeyError
            It is not in the season.
        """
        return {one.agent: one for one in self.places}[agent]
