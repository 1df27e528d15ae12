"""What would change under another rule: the verdicts of the first screen beside those of rules that were not locked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.records import AGGREGATE, Level, Verdict
from assaymark.report.book import Book
from assaymark.report.formats import alpha, count, counted, p_value, plural, prose, words
from assaymark.report.levels import LEVELS, TAGS, rule_words, supported_verdicts

_RANK = {"no-claim": 0, "qualified": 1, "headline": 2}
_ROWS = 6
_FLIP = "source: sign flip"
_UNTRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Cell:
    """The level under another rule; ``level`` is None where the verdict holds or the rule was not tried."""

    level: Level | None
    word: str


@dataclass(frozen=True, slots=True)
class FragilityRow:
    """One supported claim and its level under each rule; ``href`` leads to its card."""

    text: str
    level: Level
    tag: str
    cells: tuple[Cell, ...]
    href: str = ""

    @property
    def holds(self) -> str:
        """Under how many of the rules the verdict holds, for narrow pages."""
        tried = [cell for cell in self.cells if cell.word != _UNTRIED]
        return f"{sum(cell.level is None for cell in tried)} of {counted(len(tried), 'other rule')}"


@dataclass(frozen=True, slots=True)
class FragilityView:
    """The table. ``rules`` is empty when the verdicts were decided under one rule only.

    ``note`` names a rule that was measured and is not counted, because it could not reject in this design.
    """

    answer: str
    rules: tuple[str, ...]
    rows: tuple[FragilityRow, ...]
    total: str
    locked: str
    counts: tuple[str, ...]
    note: str = ""


def fragility_view(book: Book) -> FragilityView:
    """The supported claims that open the page under each other rule, and how many of all claims a rule would move.

    Where no pair can be tested no rule could reject anything, and none is counted.
    """
    verdicts = [] if book.untestable else [v for v in book.run.verdicts if v.fragility]
    rules = sorted({rule for v in verdicts for rule in v.fragility})
    # Another rule of an unsupported claim would show its direction.
    shown = [v for v in supported_verdicts(book) if v.fragility][:_ROWS]
    moved = sum(any(level != v.publication_level for level in v.fragility.values()) for v in verdicts)
    return FragilityView(
        answer=_answer(len(verdicts), moved, len(rules)),
        rules=tuple(said[:1].upper() + said[1:] for said in map(rule_words, rules)),
        rows=tuple(_row(book, v, rules) for v in shown),
        total=f"All {count(len(verdicts))} claims",
        locked=_levels(verdicts),
        counts=tuple(_moves(verdicts, rule) for rule in rules),
        note="" if _FLIP in rules or not rules else _flip_words(book),
    )


def _flip_words(book: Book) -> str:
    """Why the sign flip is no rule here, where it was measured: over so few clusters its p cannot be small enough."""
    found = [item for item in book.by_name.get("contrast", ()) if item.detail.get("p_sign_flip") is not None]
    most = max((int(item.detail.get("clusters", 0)) for item in found), default=0)
    if not most:
        return ""
    pairs, least, level = len(book.on(AGGREGATE, "pair")), 2.0 ** (1 - most), book.run.study.inference.alpha
    return (
        f"Not counted: {rule_words(_FLIP)}. Over {plural(most, 'cluster')} its {p_value(least)} at least, with Holm "
        f"over {plural(pairs, 'pair')} {p_value(min(1.0, least * pairs))}; {alpha(level)} needed. "
        "It cannot reject anything in this design, so that it says nothing about a verdict."
    )


def _answer(verdicts: int, moved: int, rules: int) -> str:
    other = f"under {'the one other rule' if rules == 1 else f'any one of {words(rules)} other rules'}"
    verdict = plural(moved, "verdict").capitalize() if moved else "No verdict"
    return f"{verdict} of {count(verdicts)} would change {other}, which the plan did not lock."


def _row(book: Book, verdict: Verdict, rules: Sequence[str]) -> FragilityRow:
    level = verdict.publication_level
    text = prose(verdict.claim.statement, 400).removesuffix(".")
    cells = []
    for rule in rules:
        other = verdict.fragility.get(rule)
        if other is None:
            cells.append(Cell(None, _UNTRIED))
        else:
            cells.append(Cell(None, "holds") if other == level else Cell(other, TAGS[other]))
    return FragilityRow(text, level, TAGS[level], tuple(cells), book.claims.get(verdict.claim.id, ""))


def _levels(verdicts: Sequence[Verdict]) -> str:
    found = [v.publication_level for v in verdicts]
    return ", ".join(f"{count(found.count(level))} {TAGS[level].lower()}" for level in LEVELS if level in found)


def _moves(verdicts: Sequence[Verdict], rule: str) -> str:
    steps = [_RANK[v.fragility.get(rule, v.publication_level)] - _RANK[v.publication_level] for v in verdicts]
    lower, higher = sum(step < 0 for step in steps), sum(step > 0 for step in steps)
    parts = ([f"{count(lower)} lower"] if lower else []) + ([f"{count(higher)} higher"] if higher else [])
    return ", ".join(parts) or "all hold"
