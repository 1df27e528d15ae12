"""What is not said, in words that do not say it: withheld claims in groups, with the numbers that withhold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.records import AGGREGATE, Measurement, Verdict
from assaymark.report.book import Book, measure_words
from assaymark.report.formats import (
    alpha,
    clean,
    in_mde,
    listing,
    mde_words,
    number,
    p_value,
    plural,
    shown,
    words,
)
from assaymark.report.kinds import ClaimKind, cell_of, cell_title, kind_of

Segments = tuple[tuple[str, bool], ...]
ONE_FAMILY: Final = "not measurable: one judge family"
_NAMES = 6
_UNIT: Final = " × MDE"


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
    kind = kind_of(verdict.claim)
    if kind == "cell":
        return f"What the control texts show ({clean(cell_title(cell_of(verdict.claim)), 80)})."
    where = measure_words(book, verdict.claim.dimension)
    subjects = sorted(clean(name, 80) for name in verdict.claim.subjects)
    if kind == "first":
        return f"A first place for {listing(subjects)} on {where}."
    if kind == "ranking":
        return f"One order of all agents on {where}."
    if kind == "tie":
        return f"One class of {listing(subjects)} on {where}."
    return f"Any order {_among(subjects)} on {where}."


def withheld_groups(book: Book) -> tuple[WithheldGroup, ...]:
    """Withheld claims score by score: the aggregate and the controls, then the dimensions in rubric order."""
    known = book.dimensions
    others = sorted({v.claim.dimension for v in book.run.verdicts if kind_of(v.claim) != "cell"} - set(known))
    groups: list[WithheldGroup] = []
    for dimension in (*known, *others):
        groups += _on(book, dimension)
        if dimension == AGGREGATE:
            groups += [_cell_group(book, v) for v in book.cells if v.publication_level == "no-claim"]
    return tuple(groups)


def withheld_why(book: Book, verdict: Verdict) -> Segments:
    """Why one claim is withheld, in numbers that do not say who is ahead."""
    if kind_of(verdict.claim) == "cell":
        return _cell_why(book, verdict)
    return _why(book, verdict.claim.dimension, [verdict])


def _on(book: Book, dimension: str) -> list[WithheldGroup]:
    verdicts = book.on(dimension)
    kept = [v for v in verdicts if v.publication_level == "no-claim"]
    firsts, rankings, ties = (_of_kind(kept, kind) for kind in ("first", "ranking", "tie"))
    pairs = [v for v in kept if kind_of(v.claim) in ("above", "other")]
    where = measure_words(book, dimension)
    if kept and len(kept) == len(verdicts) and firsts and pairs:
        text = f"Any order of the agents, {'a first place or a class' if ties else 'or a first place'}, on {where}."
        return [WithheldGroup(text, _why(book, dimension, kept), len(kept))]
    groups = [_pairs_group(book, dimension, part) for part in _components(pairs)]
    if firsts or rankings:
        groups.append(_places_group(book, dimension, firsts, rankings))
    return groups + [WithheldGroup(withheld_phrase(book, v), _why(book, dimension, [v]), 1) for v in ties]


def _of_kind(verdicts: Sequence[Verdict], kind: ClaimKind) -> list[Verdict]:
    return [v for v in verdicts if kind_of(v.claim) == kind]


def _pairs_group(book: Book, dimension: str, pairs: Sequence[Verdict]) -> WithheldGroup:
    names = sorted({name for v in pairs for name in v.claim.subjects})
    where = measure_words(book, dimension)
    whole = len(pairs) == len(names) * (len(names) - 1) // 2
    which = _among(_shown_names(names))
    what = "Any order" if whole else f"The order of {plural(len(pairs), 'pair')}"
    text = f"{what} {which} on {where}."
    return WithheldGroup(text, _why(book, dimension, pairs), len(pairs))


def _places_group(book: Book, dimension: str, firsts: Sequence[Verdict], rankings: Sequence[Verdict]) -> WithheldGroup:
    """First places, and with them the order of all agents, which is withheld wherever they are not all settled."""
    where = measure_words(book, dimension)
    permitted = [
        clean(v.claim.subjects[0], 80) for v in book.on(dimension, "first") if v.publication_level != "no-claim"
    ]
    anyone = f"anyone but {listing(permitted)}" if permitted else "any agent"
    text = " or ".join(
        ([f"a first place for {anyone}"] if firsts else []) + (["one order of all agents"] if rankings else [])
    )
    covered = [*firsts, *rankings]
    return WithheldGroup(f"{text[:1].upper()}{text[1:]} on {where}.", _why(book, dimension, covered), len(covered))


def _cell_group(book: Book, verdict: Verdict) -> WithheldGroup:
    return WithheldGroup(withheld_phrase(book, verdict), _cell_why(book, verdict), 1)


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
    pairs = [v for v in verdicts if kind_of(v.claim) in ("above", "other")]
    only = len(pairs) == 1
    parts += _tie_class(book, [v for v in pairs if v.stability_status == "tie-class"], only)
    parts += _judge_dependent(book, [v for v in pairs if v.stability_status == "judge-dependent"], only)
    parts += outside_words(book, pairs)
    if not parts:
        parts += _firsts(book, _of_kind(verdicts, "first"))
    if not parts:
        parts += _as_a_whole(verdicts)
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
        sizes = sorted(abs(unit) for m in found if m is not None and (unit := in_mde(m)) is not None)
        ps = [float(m.detail["p_holm"]) for m in found if m is not None and m.detail.get("p_holm") is not None]
        which = "the smallest adjusted" if len(ps) > 1 else "adjusted"
        tested = f", {which} {p_value(min(ps))}{_cut_off(book, min(ps))}" if ps else ""
        parts.append((f": {_gap_words(gaps, sizes)}{tested}. ", False))
    else:
        parts.append((". ", False))
    if never:
        parts.append((f"{plural(never, 'pair').capitalize()} never answered a common question. ", False))
    return parts


def _cut_off(book: Book, p: float) -> str:
    """The level that the p-value misses, which is less than the plan's alpha where two families share it."""
    level = book.run.study.claim_alpha
    return f", not below {alpha(level)}" if p > level else ""


def _gap_words(gaps: Sequence[float], sizes: Sequence[float]) -> str:
    """How large the gaps are, in points and in units of the detectable effect, without their signs."""
    points = _ends([number(gap) for gap in gaps])
    units = ""
    if len(sizes) == len(gaps):
        units = f" ({_ends([mde_words(size).removesuffix(_UNIT) for size in sizes])}{_UNIT})"
    return f"{'the gap is' if len(gaps) == 1 else 'the gaps are'} {points} points{units}"


def _ends(shown: Sequence[str]) -> str:
    return shown[0] if shown[0] == shown[-1] else f"{shown[0]} to {shown[-1]}"


def _judge_dependent(book: Book, pairs: Sequence[Verdict], only: bool) -> list[tuple[str, bool]]:
    if not pairs:
        return []
    if not droppable(book):
        return [("Whether the order depends on the judge is ", False), (ONE_FAMILY, True), (". ", False)]
    families = sorted({clean(f, 60) for v in pairs for f in _turning(book, v)})
    parts: list[tuple[str, bool]] = [(_pairs_words(len(pairs), "are ", "is ", only), False), ("judge-dependent", True)]
    parts.append((f": the difference turns without {listing(families, last='or')}. " if families else ". ", False))
    return parts


def outside_words(book: Book, pairs: Sequence[Verdict]) -> list[tuple[str, bool]]:
    """What the outside judge settled about some pairs: whether its intervals hold zero, never on which side they lie.

    Empty where it was not asked about any of them.
    """
    asked = [
        found
        for v in pairs
        if (found := book.contrast(v.claim.dimension, v.claim.subjects[0], v.claim.subjects[1], "probe.contrast"))
    ]
    bounds = [(m.low, m.high) for m in asked if m.low is not None and m.high is not None]
    if not bounds:
        return []
    holds = sum(low <= 0 <= high for low, high in bounds)
    if len(bounds) == 1:
        return [(f"The outside judge’s interval {'contains' if holds else 'excludes'} zero. ", False)]
    which = "all" if holds == len(bounds) else words(holds) if holds else "none"
    asked_about = f"The outside judge was asked about {words(len(bounds))} of them"
    return [(f"{asked_about}; its interval contains zero for {which}. ", False)]


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


def _as_a_whole(verdicts: Sequence[Verdict]) -> Segments:
    """A ranking or a class: it falls with the weakest of the pairs that it is made of."""
    said = {
        "tie-class": ("Not every neighbour in it is separated: ", "tie class"),
        "judge-dependent": ("A part of it is ", "judge-dependent"),
    }
    for status, (lead, bound) in said.items():
        if any(v.stability_status == status for v in verdicts):
            return ((lead, False), (bound, True), (". ", False))
    return ()


def _cell_why(book: Book, verdict: Verdict) -> Segments:
    cell = cell_of(verdict.claim)
    parts: list[tuple[str, bool]] = []
    if verdict.agreement_status == "halt":
        kappa = book.one("cell.kappa", cell=cell, dimension=AGGREGATE)
        said = shown(kappa) if kappa is None or kappa.value is None else f"κ {book.kappa_words(kappa)}"
        parts += [(f"Agreement among its texts is {said}: ", False), ("halt", True), (". ", False)]
    if verdict.stability_status == "judge-dependent":
        parts += [("Its outcome turns without a judge family: ", False), ("judge-dependent", True), (". ", False)]
    if verdict.adversarial_status == "contaminated":
        parts += [("The cell itself is ", False), ("contaminated", True), (". ", False)]
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
