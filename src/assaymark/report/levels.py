"""The three levels of the first screen: what may be said, what only with its condition, what not.

A view of a withheld claim never holds its sentence: it says what is not said, without the direction the panel saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from assaymark.claims.messages import english
from assaymark.records import AGGREGATE, Level, Verdict
from assaymark.report.book import Book
from assaymark.report.formats import WITHHELD, clean, count, counted, listing, prose
from assaymark.report.kinds import KINDS, cell_of, kind_of
from assaymark.report.withheld import ONE_FAMILY, WithheldGroup, droppable, withheld_groups, withheld_phrase

LEVELS: Final[tuple[Level, ...]] = ("headline", "qualified", "no-claim")
TAGS: Final = {level: english().say(f"level.{level}.tag") for level in LEVELS}
TITLES: Final = {level: english().say(f"level.{level}.title") for level in LEVELS}
TALLY: Final = {level: english().say(f"level.{level}.tally") for level in LEVELS}
EMPTY: Final = {
    "headline": "No claim reaches this level in this run.",
    "qualified": "No claim stands at this level.",
    "no-claim": "Nothing was withheld.",
}
RANK: Final = {"no-claim": 0, "qualified": 1, "headline": 2}
_FIELDS: Final = (("agreement", "Agreement"), ("stability", "Stability"), ("adversarial", "Controls"))
_RULES: Final = {
    "cluster t": "t test over clusters",
    "percentile bootstrap": "percentile bootstrap test",
    "half-even rounding": "halves rounded to even",
}
_MORE: Final = 20
# Heights in CSS pixels on a wide screen: two levels and the third's heading must start above the 900th.
_ROOM, _HEADLINE_HEIGHT, _QUALIFIED_HEIGHT = 440, 76, 102


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a verdict's tuple; ``binding`` if it decided the level."""

    name: str
    text: str
    binding: bool


@dataclass(frozen=True, slots=True)
class Chip:
    """What becomes of a verdict under the rules that the plan did not lock; ``loses`` if one of them is stricter."""

    text: str
    loses: bool


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim as a page shows it. ``quote`` is the licensed sentence and ``copy`` its clipboard text, else None.

    ``amended`` says which fields of the plan were changed after the lock; empty where none was. ``href`` leads to the
    card of the claim, where that is another place.
    """

    level: Level
    tag: str
    dimension: str
    quote: str | None
    text: str
    condition: str | None
    fields: tuple[Field, ...]
    chip: Chip | None
    copy: str | None
    reasons: tuple[str, ...]
    amended: str
    href: str


@dataclass(frozen=True, slots=True)
class LevelView:
    """One level: how many claims stand at it, those shown at once, those one click away, and how many remain."""

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
    headlines, qualified = _room(*([_height(v) for v in by_level[level]] for level in LEVELS[:2]))
    return (
        _permitted_level(book, "headline", by_level["headline"], headlines),
        _permitted_level(book, "qualified", by_level["qualified"], qualified),
        _withheld_level(book, len(by_level["no-claim"])),
    )


def claim_view(book: Book, verdict: Verdict) -> ClaimView:
    """How one verdict is shown. For no-claim the sentence, its reasons and its condition stay behind."""
    level = verdict.publication_level
    said = level != "no-claim"
    statement, condition = prose(verdict.claim.statement, 400), prose(verdict.condition or "", 400)
    amended = amended_words(verdict.amended)
    return ClaimView(
        level=level,
        tag=TAGS[level],
        dimension=book.title(verdict.claim.dimension),
        quote=statement if said else None,
        text="" if said else withheld_phrase(book, verdict),
        condition=condition or None if said else None,
        fields=_fields(book, verdict),
        chip=_chip(verdict) if said else None,
        copy=_copy(statement, " ".join(filter(None, (condition, amended))), verdict.plan_hash) if said else None,
        reasons=tuple(prose(reason, 400) for reason in verdict.reasons) if said else (),
        amended=amended,
        href=book.claims.get(verdict.claim.id, ""),
    )


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
    """Score by score and by name: the page that withholds an order must not be sorted by it."""
    order = {name: at for at, name in enumerate(book.dimensions)}
    return sorted((v for v in book.run.verdicts if v.publication_level == level), key=lambda v: _place(v, order))


def permitted_verdicts(book: Book) -> tuple[Verdict, ...]:
    """The claims that may be said, in the order of the page."""
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


def _height(verdict: Verdict) -> int:
    """About how tall a claim stands: its lines at some 70 characters, and its condition."""
    lines = len(verdict.claim.statement) // 70 + len(verdict.condition or "") // 95
    return (_QUALIFIED_HEIGHT if verdict.condition else _HEADLINE_HEIGHT) + 24 * lines


def _permitted_level(book: Book, level: Level, verdicts: Sequence[Verdict], room: int) -> LevelView:
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


def _withheld_level(book: Book, total: int) -> LevelView:
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


def _fields(book: Book, verdict: Verdict) -> tuple[Field, ...]:
    stability = _stability(book, verdict)
    texts = {
        "agreement": _agreement(book, verdict),
        "stability": stability,
        "adversarial": verdict.adversarial_status,
    }
    hidden = {"stability"} if stability == WITHHELD else set()
    return tuple(Field(title, texts[name], name in verdict.binding and name not in hidden) for name, title in _FIELDS)


def _agreement(book: Book, verdict: Verdict) -> str:
    """Whether judges agree, with the kappa behind it: that of its score, or that among the texts of its own cell."""
    claim = verdict.claim
    if kind_of(claim) == "cell":
        item = book.one("cell.kappa", cell=cell_of(claim), dimension=AGGREGATE)
        said = book.kappa_words(item)
        said = f"κ {said} inside the cell" if item is not None and item.value is not None else said
    else:
        item, said = book.gating(claim.dimension), book.gating_words(claim.dimension)
    return book.to(item, f"{verdict.agreement_status} ({said})")


def _stability(book: Book, verdict: Verdict) -> str:
    """A claim's stability. Of several withheld first places, the one whose stability differs is the leader's."""
    if verdict.stability_status != "tie-class" and not droppable(book):
        return ONE_FAMILY
    if tells_who_leads(book, verdict):
        return WITHHELD
    return verdict.stability_status


def tells_who_leads(book: Book, verdict: Verdict) -> bool:
    """Whether the stability of a withheld first place sets it apart from the other withheld first places."""
    if verdict.publication_level != "no-claim" or kind_of(verdict.claim) != "first":
        return False
    firsts = book.on(verdict.claim.dimension, "first")
    return len({v.stability_status for v in firsts if v.publication_level == "no-claim"}) > 1


def rule_words(rule: str) -> str:
    """How a page calls a rule that the plan did not lock; one it does not know keeps its name.

    >>> rule_words("cluster t"), rule_words("kappa cut-offs 0.5 and 0.25")
    ('t test over clusters', 'kappa cut-offs 0.5 and 0.25')
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


def _copy(statement: str, condition: str, plan_hash: str) -> str:
    said = f"“{statement}”" + (f" {condition}" if condition else "")
    return f"{said} (assaymark, plan {clean(plan_hash)})"
