"""What is wrong with a log: every kind of problem gets its share of the lines that are shown, the rest is counted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from assaymark.errors import LISTED, InputError, Problem

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Findings:
    """Collects problems by kind, so that a thousand of one kind do not hide the only one of another."""

    def __init__(self) -> None:
        self._kinds: dict[str, list[Problem]] = {}
        self._more = 0

    def add(self, kind: str, where: str, what: str) -> None:
        """One problem of a kind; of each kind the first `LISTED` are kept and the rest is counted."""
        kept = self._kinds.setdefault(kind, [])
        if len(kept) < LISTED:
            kept.append(Problem(where, what))
        else:
            self._more += 1

    def rows(self, kind: str, bad: Bools, describe: Callable[[int], tuple[str, str]]) -> None:
        """One problem for each place of ``bad`` [n]; ``describe`` makes where and what, and is called for few."""
        places = np.flatnonzero(bad)
        for place in places[:LISTED].tolist():
            self.add(kind, *describe(place))
        self._more += max(0, places.size - LISTED)

    def refuse(self, source: str) -> None:
        """Raise everything that was found, if anything was.

        Raises
        ------
        InputError
            At most `LISTED` problems, and the number of the others.
        """
        ranked = sorted(
            (
                (place, kind, problem)
                for kind, kept in enumerate(self._kinds.values())
                for place, problem in enumerate(kept)
            ),
            key=lambda item: item[:2],
        )
        shown = [problem for _, _, problem in sorted(ranked[:LISTED], key=lambda item: (item[1], item[0]))]
        rest = len(ranked) - len(shown) + self._more
        if not shown:
            return
        raise InputError(source, shown, more=rest)
