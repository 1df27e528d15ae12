"""What leads from one page of a run to a row on another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from assaymark.records import Measurement

RECORDS: Final = "records"
"""The key of the pages of records in the menu of a run."""

DECISIONS: Final = "decisions/page-001.html"
"""Where the decisions of a run begin."""

BELOW: Final[Mapping[str, Any]] = {"here": RECORDS, "root": "../", "styles": ("trail.css",)}
"""How every page of records is rendered: each lies one folder below the pages of its run."""


@dataclass(frozen=True, slots=True)
class Ref:
    """Words that lead to a place, relative to the folder of the report; ``href`` is empty where there is none."""

    words: str
    href: str = ""


Rests = Callable[[Measurement], tuple[Ref, ...]]
"""Gives the records that a measurement was computed from."""
