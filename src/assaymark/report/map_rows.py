"""A row of the claim map, filled step by step: named, then with its result, or with why its absence matters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

NOT_RUN: Final = "not run"


@dataclass(frozen=True, slots=True)
class MapRow:
    """One experiment. ``href`` leads to its section, ``link`` to its first measurement where it has one."""

    experiment: str
    tests: str
    href: str
    where: str
    result: str = NOT_RUN
    conclusion: str = ""
    ran: bool = False
    measured: tuple[str, ...] = ()
    link: str = ""

    def run(self, result: str, conclusion: str, *measured: str, ran: bool = True) -> MapRow:
        """The row with what was found; ``measured`` are the ids of its measurements."""
        text = result[:1].upper() + result[1:] if result.startswith(NOT_RUN) else result
        return replace(self, result=text, conclusion=conclusion, ran=ran, measured=measured)

    def not_run(self, why: str) -> MapRow:
        """The row of an experiment that was not run, and why that matters.

        >>> MapRow("A", "B?", "#a", "A").not_run("It might be wrong.").result
        'Not run'
        """
        return replace(self, result=NOT_RUN.capitalize(), conclusion=why)

    def linked(self, link: str) -> MapRow:
        """The row with the way to its measurement."""
        return replace(self, link=link)
