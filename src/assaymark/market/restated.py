"""Bars that were published again with other numbers: a small table in the order in which they became known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assaymark.errors import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Restated:
    """Later versions of bars, oldest first. Arrays are of shape (n,).

    ``rows`` and ``columns`` are the places of the bars in the table of first versions, ``known_at`` (int64, seconds
    since 1970 in UTC) says when each version became known, and ``values`` holds the fields; a field that is NaN or
    not there was withdrawn.

    Examples
    --------
    >>> later = Restated(np.array([0]), np.array([0]), np.array([100]), {"close": np.array([2.0])})
    >>> table = np.array([[1.0]])
    >>> later.apply(table, "close", 0, 99), table.tolist()
    (None, [[1.0]])
    >>> later.apply(table, "close", 0, 100), table.tolist()
    (None, [[2.0]])
    """

    rows: np.ndarray
    columns: np.ndarray
    known_at: np.ndarray
    values: Mapping[str, np.ndarray]

    @staticmethod
    def none() -> Restated:
        """No bar was restated."""
        empty = np.empty(0, dtype=np.int64)
        return Restated(empty, empty, empty, {})

    def apply(self, table: np.ndarray, field: str, start: int, at: int) -> None:
        """Put every version that was known at ``at`` into ``table``, whose first row is row ``start`` of the store."""
        count = int(np.searchsorted(self.known_at, at, side="right"))
        if not count:
            return
        rows = self.rows[:count] - start
        inside = (rows >= 0) & (rows < table.shape[0])
        values = self.values.get(field)
        # Of several versions of one bar the last assignment stays, and they come in the order of their times.
        table[rows[inside], self.columns[:count][inside]] = np.nan if values is None else values[:count][inside]

    def problems(self, first_known: np.ndarray, fields: Sequence[str]) -> list[Problem]:
        """What keeps these versions from following the first ones, known at ``first_known`` (n_days, n_instruments)."""
        sizes = {one.size for one in (self.rows, self.columns, self.known_at, *self.values.values())}
        if len(sizes) != 1:
            return [Problem("restated", f"its arrays must be of one length (got {sorted(sizes)})")]
        if other := sorted(set(self.values) - set(fields)):
            return [Problem("restated", f"has fields that the bars have not: {', '.join(other)}")]
        shape = first_known.shape
        if not self.rows.size:
            return []
        if (self.rows < 0).any() or (self.columns < 0).any():
            return [Problem("restated", "rows and columns must be 0 or more")]
        if self.rows.max() >= shape[0] or self.columns.max() >= shape[1]:
            return [Problem("restated", f"names a bar outside of the table of shape {shape}")]
        if (np.diff(self.known_at) < 0).any():
            return [Problem("restated", "versions must come in the order in which they became known")]
        early = int((self.known_at < first_known[self.rows, self.columns]).sum())
        return [Problem("restated", f"{early} versions are known before the first version of their bar")] * bool(early)
