"""The three levels of the first screen: claims that are supported, only with a condition, or not.

A view of a claim that is not supported never holds its sentence: it says what it is about, without the direction that
the panel saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from assaymark.claims import kind_of, suppressed_phrase
from assaymark.claims.candidates import KINDS
from assaymark.claims.messages import english, stand_ins
from assaymark.records import Level, Verdict
from assaymark.report.book import Book
from assaymark.report.claim_checks import Checked, cap_words, checked
from assaymark.report.formats import clean, count, counted, listing, moment, prose
from assaymark.report.withheld import WithheldGroup, withheld_groups

LEVELS: Final[tuple[Level, ...]] = ("headline", "qualified", "no-claim")
TAGS: Final = {level: english().say(f"level.{level}.tag") for level in LEVELS}
TITLES: Final = {
    "headline": "Supported",
    "qualified": "Supported only with its condition",
    "no-claim": "Not supported by this evidence",
}
TALLY: Final = {"headline": "supported", "qualified": "only with a condition", "no-claim": "not supported"}
EMPTY: Final = {
    "headline": "No claim is supported without a condition.",
    "qualified": "No claim is supported with a condition.",
    "no-claim": "Every claim is supported.",
}
RANK: Final = {"no-claim": 0, "qualified": 1, "headline": 2}
_RULES: Final = {
    "half-even rounding": "halves rounded to even",
    "own variance of each pair": "a test with each pair’s own variance",
    "clusters weighted by records": "a test with clusters weighted by records",
    "aggregate's share of alpha 0.5": "half of alpha for the overall score",
    "aggregate's share of alpha 1": "all of alpha for the overall score",
    "source: percentile bootstrap": "ValueBlindBench’s percentile bootstrap with Holm",
    "source: sign flip": "ValueBlindBench’s sign flip with Holm",
}
_UNMADE: Final = ("not tested", "not graded", "not judged", "not measur")
_MORE: Final = 5
# Heights in CSS pixels on a wide screen: two levels and the third's heading must start above the 900th.
_ROOM, _HEADLINE_HEIGHT, _QUALIFIED_HEIGHT = 440, 76, 102


@dataclass(frozen=True, slots=True)
class Chip:
    """What becomes of a verdict under the rules that the plan did not lock; ``loses`` if one of them is stricter."""

    text: str
    loses: bool


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim as a page shows it. ``quote`` is the supported sentence and ``copy`` its clipboard text, else None.

    ``limits`` names what keeps it at its level. ``amended`` says which fields of the plan were changed after the lock;
    empty where none was. ``href`` leads to the card of the claim, where that is another page.
    """

    level: Level
    tag: str
    dimension: str
    quote: str | None
    text: str
    condition: str | None
    limits: str
    checked: Checked
    chip: Chip | None
    copy: str | None
    amended: str
    href: str


@dataclass(frozen=True, slots=True)
class LevelView:
    """One level: how many claims reach it, those shown at once, those one click away, and how many remain."""

    level: Level
    title: str
    tag: str
    total: int
    of: str
    empty: str
    shown: tuple[ClaimView, ...]
    more: tuple[ClaimView, ...]
    groups: tuple[WithheldGroup, ...]
    more_groups: tuple[WithheldGroup, ...]
    rest: int


def level_views(book: Book) -> tuple[LevelView, ...]:
    """The three levels in order, each with the claims that fit its part of the first screen."""
    by_level = {level: _sorted(book, level) for level in LEVELS}
    headlines, qualified = _room(*([_height(book, v) for v in by_level[level]] for level in LEVELS[:2]))
    return (
        _supported_level(book, "headline", by_level["headline"], headlines),
        _supported_level(book, "qualified", by_level["qualified"], qualified),
        _unsupported_level(book, len(by_level["no-claim"])),
    )


def claim_view(book: Book, verdict: Verdict) -> ClaimView:
    """How one verdict is shown. Of a claim that is not supported neither the sentence nor its condition is."""
    level = verdict.publication_level
    said = level != "no-claim"
    statement, amended = prose(verdict.claim.statement, 400), amended_words(verdict.amended)
    condition = " ".join(filter(None, (built_in_words(book, verdict), prose(verdict.condition or "", 1200))))
    found = checked(book, verdict)
    study, source = book.run.study, (book.run.locked_at, verdict.plan_hash)
    return ClaimView(
        level=level,
        tag=TAGS[level],
        dimension=book.title(verdict.claim.dimension),
        quote=statement if said else None,
        text="" if said else prose(suppressed_phrase(verdict.claim), 400),
        condition=condition or None if said else None,
        limits=_limits(verdict, found) if said else "",
        checked=found,
        chip=_chip(verdict) if said else None,
        copy=copied(statement, f"{condition} {amended}".strip(), study.title or study.name, *source) if said else None,
        amended=amended,
        href=book.claims.get(verdict.claim.id, ""),
    )


def built_in_words(book: Book, verdict: Verdict) -> str:
    """That a claim's judges or agents are built in; nobody's agents wrote control texts."""
    graders = {one.name for one in book.run.reference_panel}
    makers = {one.name for one in book.run.reference_agents}
    agents = {} if kind_of(verdict.claim) == "cell" else {name: name in makers for name in book.agents}
    judges = {one.name: one.name in graders for one in book.run.study.judges}
    return stand_ins(english(), judges, agents, verdict.claim.subjects)


def _limits(verdict: Verdict, found: Checked) -> str:
    """What keeps a supported claim below a headline; without such a limit, which checks were not made."""
    fields = dict.fromkeys(cap.field for cap in verdict.caps if not cap.lifted)
    if fields:
        return f"Limited by {listing([cap_words(name) for name in fields])}"
    open_ = [f"{one.name[:1].lower()}{one.name[1:]}" for one in found.checks if one.text.startswith(_UNMADE)]
    return f"Every check that was made passed; not made: {listing(open_)}" if open_ else "Every check passed"


def copied(statement: str, condition: str, study: str, locked_at: str | None, plan_hash: str) -> str:
    """What the clipboard gets: a sentence with its condition, and which study said it under which plan, locked when.

    >>> copied("A ranks first.", "Few clusters (5).", "Spring", "2026-11-21T02:00:15Z", "a41f")
    '“A ranks first.” Few clusters (5). (assaymark: Spring, 21 November 2026, plan a41f)'
    """
    when = moment(locked_at).partition(", ")[0] if locked_at else ""
    source = ", ".join(filter(None, (clean(study, 120), when, f"plan {clean(plan_hash)}")))
    return " ".join(filter(None, (f"“{statement}”", condition, f"(assaymark: {source})")))


def amended_words(fields: Sequence[str]) -> str:
    """That a claim was made under an amended plan.

    >>> amended_words(["gates.publish"]), amended_words(())
    ('Made under a plan amended after its lock: gates.publish.', '')
    """
    named = listing(sorted(clean(field, 80) for field in fields))
    return f"Made under a plan amended after its lock: {named}." if named else ""


def ordered_verdicts(book: Book) -> tuple[Verdict, ...]:
    """Every verdict: the aggregate first, then the dimensions; by kind and then by name within."""
    order = {name: at for at, name in enumerate(book.dimensions)}
    return tuple(sorted(book.run.verdicts, key=lambda v: _place(v, order)))


def _place(verdict: Verdict, order: dict[str, int]) -> tuple[int, str, int, tuple[str, ...], str]:
    claim = verdict.claim
    at = order.get(claim.dimension, len(order))
    return at, claim.dimension, KINDS.index(kind_of(claim)), tuple(sorted(claim.subjects)), claim.id


def _sorted(book: Book, level: Level) -> list[Verdict]:
    """Score by score and by name: a page must not be sorted by an order that it does not support."""
    order = {name: at for at, name in enumerate(book.dimensions)}
    return sorted((v for v in book.run.verdicts if v.publication_level == level), key=lambda v: _place(v, order))


def supported_verdicts(book: Book) -> tuple[Verdict, ...]:
    """The supported claims, in the order of the page."""
    return tuple(v for level in LEVELS[:2] for v in _sorted(book, level))


def _room(headlines: Sequence[int], qualified: Sequence[int]) -> tuple[int, int]:
    """How many claims of the first two levels fit above the third, from the heights of all of them.

    >>> _room([76, 76], [102] * 3), _room([], [102] * 40), _room([76] * 9, [102] * 9), _room([], [])
    ((2, 2), (0, 4), (3, 2), (0, 0))
    """
    kept = sum(qualified[:2])
    heads = _fitting(headlines, _ROOM - kept)
    return heads, _fitting(qualified, _ROOM - sum(headlines[:heads]))


def _fitting(heights: Sequence[int], room: int) -> int:
    """How many of the first heights fit; one always does."""
    sums = accumulate(heights)
    return max(sum(height <= room for height in sums), min(1, len(heights)))


def _height(book: Book, verdict: Verdict) -> int:
    """About how tall a claim is on the page: its lines at some 70 characters, and its condition."""
    condition = f"{built_in_words(book, verdict)} {verdict.condition or ''}".strip()
    lines = len(verdict.claim.statement) // 70 + len(condition) // 95
    return (_QUALIFIED_HEIGHT if condition else _HEADLINE_HEIGHT) + 24 * lines


def _supported_level(book: Book, level: Level, verdicts: Sequence[Verdict], room: int) -> LevelView:
    views = [claim_view(book, verdict) for verdict in verdicts[: room + _MORE]]
    return LevelView(
        level=level,
        title=TITLES[level],
        tag=TAGS[level],
        total=len(verdicts),
        of=_of(len(verdicts), book),
        empty=EMPTY[level],
        shown=tuple(views[:room]),
        more=tuple(views[room:]),
        groups=(),
        more_groups=(),
        rest=max(len(verdicts) - room - _MORE, 0),
    )


def _unsupported_level(book: Book, total: int) -> LevelView:
    groups = withheld_groups(book)
    return LevelView(
        level="no-claim",
        title=TITLES["no-claim"],
        tag=TAGS["no-claim"],
        total=total,
        of=_of(total, book),
        empty=EMPTY["no-claim"],
        shown=(),
        more=(),
        groups=groups[:3],
        more_groups=groups[3:],
        rest=0,
    )


def _of(total: int, book: Book) -> str:
    return f"{count(total)} of {counted(len(book.run.verdicts), 'claim')}"


def rule_words(rule: str) -> str:
    """How a page calls a rule that the plan did not lock; one it does not know keeps its name.

    >>> rule_words("half-even rounding"), rule_words("kappa cut-offs 0.5 and 0.25")
    ('halves rounded to even', 'kappa cut-offs 0.5 and 0.25')
    """
    return _RULES.get(rule) or clean(rule, 60)


def _chip(verdict: Verdict) -> Chip | None:
    if not verdict.fragility:
        return None
    worse = {
        rule: level
        for rule, level in sorted(verdict.fragility.items())
        if RANK[level] < RANK[verdict.publication_level]
    }
    others = len(verdict.fragility)
    if not worse:
        return Chip(f"Holds under all {others} other rules" if others > 1 else "Holds under the other rule", False)
    lowest = min(worse.values(), key=RANK.__getitem__)
    rules = [rule_words(rule) for rule, level in worse.items() if level == lowest]
    under = listing(rules, last="or") if len(rules) < 3 else f"{len(rules)} of {others} other rules"
    return Chip(f"{TAGS[lowest]} under {under}", True)
