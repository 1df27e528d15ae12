"""What would change under another rule: the verdicts of the first screen beside those of rules nobody locked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.records import Level, Verdict
from assaymark.report.book import Book
from assaymark.report.formats import clean, count, counted, plural
from assaymark.report.levels import LEVELS, TAGS, permitted_verdicts

_RANK = {"no-claim": 0, "qualified": 1, "headline": 2}
_ROWS = 8


@dataclass(frozen=True, slots=True)
class Cell:
    """The level under another rule; ``level`` is None where the verdict holds."""

    level: Level | None
    word: str


@dataclass(frozen=True, slots=True)
class FragilityRow:
    """One permitted claim and its level under each rule."""

    text: str
    level: Level
    tag: str
    cells: tuple[Cell, ...]

    @property
    def holds(self) -> str:
        """Under how many of the rules the verdict holds, for narrow pages."""
        return f"{sum(cell.level is None for cell in self.cells)} of {counted(len(self.cells), 'other rule')}"


@dataclass(frozen=True, slots=True)
class FragilityView:
    """The table. ``rules`` is empty when the verdicts were decided under one rule only."""

    answer: str
    rules: tuple[str, ...]
    rows: tuple[FragilityRow, ...]
    total: str
    locked: str
    counts: tuple[str, ...]


def fragility_view(book: Book) -> FragilityView:
    """The permitted claims that open the page under each other rule, and how many of all claims a rule would move."""
    verdicts = [v for v in book.run.verdicts if v.fragility]
    rules = sorted({rule for v in verdicts for rule in v.fragility})
    # A withheld claim has no row: which of them open the page is decided by estimates that may not be shown.
    shown = [v for v in permitted_verdicts(book) if v.fragility][:_ROWS]
    moved = sum(any(level != v.publication_level for level in v.fragility.values()) for v in verdicts)
    return FragilityView(
        answer=_answer(len(verdicts), moved, len(rules)),
        rules=tuple(clean(rule, 60) for rule in rules),
        rows=tuple(_row(v, rules) for v in shown),
        total=f"All {count(len(verdicts))} claims",
        locked=_levels(verdicts),
        counts=tuple(_moves(verdicts, rule) for rule in rules),
    )


def _answer(verdicts: int, moved: int, rules: int) -> str:
    other = f"under {'the one rule' if rules == 1 else 'any of ' + plural(rules, 'rule')} that the plan did not lock"
    if not moved:
        return f"No verdict of {count(verdicts)} changes {other}."
    return f"{plural(moved, 'verdict').capitalize()} of {count(verdicts)} would change {other}."


def _row(verdict: Verdict, rules: Sequence[str]) -> FragilityRow:
    level = verdict.publication_level
    text = clean(verdict.claim.statement, 400).removesuffix(".")
    cells = []
    for rule in rules:
        other = verdict.fragility.get(rule, level)
        cells.append(Cell(None, "holds") if other == level else Cell(other, TAGS[other]))
    return FragilityRow(text, level, TAGS[level], tuple(cells))


def _levels(verdicts: Sequence[Verdict]) -> str:
    found = [v.publication_level for v in verdicts]
    return ", ".join(f"{count(found.count(level))} {TAGS[level].lower()}" for level in LEVELS if level in found)


def _moves(verdicts: Sequence[Verdict], rule: str) -> str:
    steps = [_RANK[v.fragility.get(rule, v.publication_level)] - _RANK[v.publication_level] for v in verdicts]
    lower, higher = sum(step < 0 for step in steps), sum(step > 0 for step in steps)
    parts = ([f"{count(lower)} lower"] if lower else []) + ([f"{count(higher)} higher"] if higher else [])
    return ", ".join(parts) or "all hold"
