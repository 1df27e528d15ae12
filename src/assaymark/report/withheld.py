"""What is not said, in words that do not say it: withheld claims in groups, with the numbers that withhold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.records import Measurement, Verdict
from assaymark.report.book import Book, measure_words
from assaymark.report.formats import alpha, clean, listing, number, p_value, plural

Segments = tuple[tuple[str, bool], ...]
ONE_FAMILY: Final = "not measurable: one judge family"
_NAMES = 6


@dataclass(frozen=True, slots=True)
class WithheldGroup:
    """Several withheld claims on one score: what they all come to, why in numbers, and how many claims it covers.

    ``why`` is text in segments; a segment marked True binds and is set bold.
    """

    text: str
    why: Segments
    covers: int


def droppable(book: Book) -> bool:
    """Whether a judge family can be left out at all: with one family, dependence on it cannot be measured."""
    return len(book.run.study.families) > 1


def withheld_phrase(book: Book, verdict: Verdict) -> str:
    """What one withheld claim would have said, without the direction that the panel saw."""
    where = measure_words(book, verdict.claim.dimension)
    subjects = sorted(clean(name, 80) for name in verdict.claim.subjects)
    if len(subjects) == 1:
        return f"A first place for {subjects[0]} on {where}."
    return f"Any order {_among(subjects)} on {where}."


def withheld_groups(book: Book) -> tuple[WithheldGroup, ...]:
    """Withheld claims score by score: the aggregate, then the dimensions in rubric order."""
    known = book.dimensions
    others = sorted({v.claim.dimension for v in book.run.verdicts} - set(known))
    return tuple(group for dimension in (*known, *others) for group in _on(book, dimension))


def _on(book: Book, dimension: str) -> list[WithheldGroup]:
    verdicts = book.on(dimension)
    kept = [v for v in verdicts if v.publication_level == "no-claim"]
    firsts = [v for v in kept if len(v.claim.subjects) == 1]
    pairs = [v for v in kept if len(v.claim.subjects) > 1]
    where = measure_words(book, dimension)
    if kept and len(kept) == len(verdicts) and firsts and pairs:
        text = f"Any order of the agents, or a first place, on {where}."
        return [WithheldGroup(text, _why(book, dimension, kept), len(kept))]
    groups = [_pairs_group(book, dimension, part) for part in _components(pairs)]
    if firsts:
        groups.append(_firsts_group(book, dimension, firsts))
    return groups


def _pairs_group(book: Book, dimension: str, pairs: Sequence[Verdict]) -> WithheldGroup:
    names = sorted({name for v in pairs for name in v.claim.subjects})
    where = measure_words(book, dimension)
    whole = len(pairs) == len(names) * (len(names) - 1) // 2
    which = _among(_shown_names(names))
    what = "Any order" if whole else f"The order of {plural(len(pairs), 'pair')}"
    text = f"{what} {which} on {where}."
    return WithheldGroup(text, _why(book, dimension, pairs), len(pairs))


def _firsts_group(book: Book, dimension: str, firsts: Sequence[Verdict]) -> WithheldGroup:
    where = measure_words(book, dimension)
    permitted = [
        clean(v.claim.subjects[0], 80)
        for v in book.on(dimension)
        if len(v.claim.subjects) == 1 and v.publication_level != "no-claim"
    ]
    if permitted:
        text = f"A first place for anyone but {listing(permitted)} on {where}."
    else:
        text = f"A first place for any agent on {where}."
    return WithheldGroup(text, _why(book, dimension, firsts), len(firsts))


def _components(pairs: Sequence[Verdict]) -> list[list[Verdict]]:
    """Withheld pairs that share agents, as groups; the groups and their pairs in alphabetical order."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for verdict in pairs:
        ends = sorted(find(name) for name in verdict.claim.subjects)
        for end in ends[1:]:
            root[end] = ends[0]
    groups: dict[str, list[Verdict]] = {}
    for verdict in sorted(pairs, key=lambda v: sorted(v.claim.subjects)):
        groups.setdefault(find(verdict.claim.subjects[0]), []).append(verdict)
    return [groups[name] for name in sorted(groups)]


# --- why ------------------------------------------------------------------------------------------------------------


def _why(book: Book, dimension: str, verdicts: Sequence[Verdict]) -> Segments:
    """The fields that bind, with their numbers; nothing here says who is ahead."""
    parts: list[tuple[str, bool]] = []
    if any(v.agreement_status == "halt" for v in verdicts):
        parts += _halt(book, dimension)
    if any(v.adversarial_status == "contaminated" for v in verdicts):
        parts += [("The controls found the score ", False), ("contaminated", True), (". ", False)]
    pairs = [v for v in verdicts if len(v.claim.subjects) > 1]
    only = len(pairs) == 1
    parts += _tie_class(book, [v for v in pairs if v.stability_status == "tie-class"], only)
    parts += _judge_dependent(book, [v for v in pairs if v.stability_status == "judge-dependent"], only)
    if not parts:
        parts += _firsts(book, verdicts)
    return tuple(parts)


def _halt(book: Book, dimension: str) -> Segments:
    kappa, said = book.gating(dimension), book.gating_words(dimension)
    if kappa is None or kappa.value is None:
        return (("Agreement there is ", False), (said, True), (". ", False))
    return ((f"Agreement there is {said}: ", False), ("halt", True), (". ", False))


def _tie_class(book: Book, pairs: Sequence[Verdict], only: bool) -> list[tuple[str, bool]]:
    if not pairs:
        return []
    found = [_contrast(book, v) for v in pairs]
    gaps = sorted(abs(m.value) for m in found if m is not None and m.value is not None)
    never = sum(m is None or m.value is None for m in found)
    parts: list[tuple[str, bool]] = [
        (_pairs_words(len(pairs), "form a ", "forms a ", only), False),
        ("tie class", True),
    ]
    if gaps:
        size = f"the gap is {number(gaps[0])}" if len(gaps) == 1 else f"the gaps are {_range(gaps)}"
        ps = [float(m.detail["p_holm"]) for m in found if m is not None and m.detail.get("p_holm") is not None]
        which = "the smallest adjusted" if len(ps) > 1 else "adjusted"
        tested = f", {which} {p_value(min(ps))}{_cut_off(book, min(ps))}" if ps else ""
        parts.append((f": {size} points{tested}. ", False))
    else:
        parts.append((". ", False))
    if never:
        parts.append((f"{plural(never, 'pair').capitalize()} never answered a common question. ", False))
    return parts


def _cut_off(book: Book, p: float) -> str:
    """The level that the p-value misses, which is less than the plan's alpha where two families share it."""
    level = book.run.study.claim_alpha
    return f", not below {alpha(level)}" if p > level else ""


def _range(gaps: Sequence[float]) -> str:
    low, high = number(gaps[0]), number(gaps[-1])
    return low if low == high else f"{low} to {high}"


def _judge_dependent(book: Book, pairs: Sequence[Verdict], only: bool) -> list[tuple[str, bool]]:
    if not pairs:
        return []
    if not droppable(book):
        return [("Whether the order depends on the judge is ", False), (ONE_FAMILY, True), (". ", False)]
    families = sorted({clean(f, 60) for v in pairs for f in _turning(book, v)})
    parts: list[tuple[str, bool]] = [(_pairs_words(len(pairs), "are ", "is ", only), False), ("judge-dependent", True)]
    parts.append((f": the difference turns without {listing(families, last='or')}. " if families else ". ", False))
    return parts


def _turning(book: Book, verdict: Verdict) -> Iterable[str]:
    """Families without which the pair's measured difference is gone or turned round."""
    pair = set(verdict.claim.subjects)
    for item in book.every("lofo.contrast", dimension=verdict.claim.dimension):
        if {item.labels.get("high"), item.labels.get("low")} == pair and (item.value is None or item.value <= 0):
            yield item.labels.get("dropped", "")


def _firsts(book: Book, verdicts: Sequence[Verdict]) -> Segments:
    tie = sum(v.stability_status == "tie-class" for v in verdicts)
    bent = sum(v.stability_status == "judge-dependent" for v in verdicts)
    parts: list[tuple[str, bool]] = []
    if tie:
        parts += [(f"No significant lead over every other agent, for {plural(tie, 'agent')}: ", False)]
        parts += [("tie class", True), (". ", False)]
    if bent and not droppable(book):
        parts += [("Whether it depends on the judge is ", False), (ONE_FAMILY, True), (". ", False)]
    elif bent:
        parts += [(f"For {plural(bent, 'agent')} it is ", False), ("judge-dependent", True), (". ", False)]
    return tuple(parts)


def _contrast(book: Book, verdict: Verdict) -> Measurement | None:
    return book.contrast(verdict.claim.dimension, verdict.claim.subjects[0], verdict.claim.subjects[1])


def _pairs_words(size: int, many: str, one: str, only: bool) -> str:
    return f"The pair {one}" if only else f"{plural(size, 'pair').capitalize()} {one if size == 1 else many}"


def _shown_names(names: Sequence[str]) -> list[str]:
    cleaned = [clean(name, 80) for name in names]
    if len(cleaned) <= _NAMES:
        return cleaned
    return [*cleaned[: _NAMES - 1], f"{len(cleaned) - _NAMES + 1} others"]


def _among(names: Sequence[str]) -> str:
    """Two names or more after "order".

    >>> _among(["a", "b"]), _among(["a", "b", "c"])
    ('between a and b', 'among a, b and c')
    """
    return f"{'between' if len(names) == 2 else 'among'} {listing(names)}"
