"""Buttons above a table that show some of its rows: all of them first, then by level, by kind, or by a key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assaymark.records import Level
from assaymark.report.evidence import Filter
from assaymark.report.levels import LEVELS, TAGS
from assaymark.text import count

if TYPE_CHECKING:
    from assaymark.report.measurements import MeasuredRow


def level_filters(levels: Sequence[Level]) -> tuple[Filter, ...]:
    """A button for each level that a row has, highest first."""
    seen = Counter(levels)
    return _with_all(len(levels), (Filter(level, TAGS[level], count(seen[level])) for level in LEVELS if seen[level]))


def kind_filters(rows: Sequence[MeasuredRow]) -> tuple[Filter, ...]:
    """A button for each group of measurements, in the order of the rows."""
    seen = Counter(row.group for row in rows)
    return _with_all(len(rows), (Filter(group, group, count(n)) for group, n in seen.items()))


def key_filters(keys: Sequence[str]) -> tuple[Filter, ...]:
    """A button for each key, by name."""
    seen = Counter(keys)
    return _with_all(len(keys), (Filter(key, key, count(seen[key])) for key in sorted(seen)))


def _with_all(total: int, others: Iterable[Filter]) -> tuple[Filter, ...]:
    return (Filter("", "All", count(total)), *others)
