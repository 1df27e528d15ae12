"""What is not supported, in words that do not say it: claims in groups, with the numbers that stop them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.claims import kind_of, suppressed_phrase
from assaymark.records import AGGREGATE, Verdict
from assaymark.report.book import Book, score_words
from assaymark.report.claim_checks import ONE_FAMILY, agreement_words, checked, is_significant, stopping
from assaymark.report.formats import alpha, clean, listing, p_value, plural, prose, state_words, words
from assaymark.report.outside import finds, found_words

Segments = tuple[tuple[str, bool], ...]
_NAMES: Final = 6


@dataclass(frozen=True, slots=True)
class WithheldGroup:
    """Several unsupported claims on one score: what they are about, why in numbers, and how many claims it covers.

    ``why`` is text in segments; a segment marked True binds and is set bold.
    """

    text: str
    why: Segments
    covers: int


def withheld_groups(book: Book) -> tuple[WithheldGroup, ...]:
    """Unsupported claims score by score: the aggregate and the controls, then the dimensions in rubric order."""
    known = book.dimensions
    others = sorted({v.claim.dimension for v in book.run.verdicts if kind_of(v.claim) != "cell"} - set(known))
    groups: list[WithheldGroup] = []
    for dimension in (*known, *others):
        groups += _on(book, dimension)
        if dimension == AGGREGATE:
            groups += [_cell_group(book, v) for v in book.cells if v.publication_level == "no-claim"]
    return tuple(groups)


def _on(book: Book, dimension: str) -> list[WithheldGroup]:
    kept = {
        kind: [v for v in book.on(dimension, kind) if v.publication_level == "no-claim"]
        for kind in ("first", "pair", "within")
    }
    firsts, pairs, close = kept["first"], kept["pair"], kept["within"]
    where, groups = score_words(dimension), []
    if firsts and pairs and len(firsts) + len(pairs) == len(book.on(dimension, "first", "pair")):
        text = f"Any ranking of the agents, or a first rank, on {where}."
        groups.append(WithheldGroup(text, _why(book, [*firsts, *pairs]), len(firsts) + len(pairs)))
    else:
        groups += [_pairs_group(book, dimension, part) for part in _components(pairs)]
        if firsts:
            said = [clean(v.claim.subjects[0], 80) for v in book.on(dimension, "first") if v not in firsts]
            text = f"A first rank for any {'other agent' if said else 'agent'} on {where}."
            groups.append(WithheldGroup(text, _why(book, firsts), len(firsts)))
    if len(close) == 1:
        groups.append(WithheldGroup(prose(suppressed_phrase(close[0].claim), 400), _why(book, close), 1))
    elif close:
        text = f"That the agents of {plural(len(close), 'pair')} score alike on {where}."
        groups.append(WithheldGroup(text, _why(book, close), len(close)))
    return groups


def _pairs_group(book: Book, dimension: str, pairs: Sequence[Verdict]) -> WithheldGroup:
    names = sorted({name for v in pairs for name in v.claim.subjects})
    whole = len(pairs) == len(names) * (len(names) - 1) // 2
    what = "Any ranking" if whole else f"The ranking of {plural(len(pairs), 'pair')}"
    cleaned = [clean(name, 80) for name in names]
    some = cleaned if len(names) <= _NAMES else [*cleaned[: _NAMES - 1], f"{len(names) - _NAMES + 1} others"]
    which = f"{'of' if whole else 'among'} {listing(some)}"
    return WithheldGroup(f"{what} {which} on {score_words(dimension)}.", _why(book, pairs), len(pairs))


def _cell_group(book: Book, verdict: Verdict) -> WithheldGroup:
    stops = [check for check in checked(book, verdict).checks if check.effect == "stops"]
    why = tuple(part for one in stops for part in ((f"{one.name}: ", False), (str(one.text), True), (". ", False)))
    return WithheldGroup(prose(suppressed_phrase(verdict.claim), 400), why, 1)


def _components(pairs: Sequence[Verdict]) -> list[list[Verdict]]:
    """Pairs that share agents, as groups; the groups and their pairs in alphabetical order."""
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


def _why(book: Book, verdicts: Sequence[Verdict]) -> Segments:
    """The first check that stops each of some claims on one score, with its number; nothing says who is ahead."""
    stops = [set(stopping(v)) for v in verdicts]
    if all("agreement" in fields for fields in stops):
        return (("Agreement: ", False), (str(agreement_words(book, verdicts[0])), True), (". ", False))
    pairs = [v for v in verdicts if kind_of(v.claim) != "first"]
    if not pairs:
        return (("No lead over every other agent is supported. ", False),)
    only = len(pairs) == 1
    untested = [v for v in pairs if v.pair_state == "cannot-be-tested"]
    tested = [v for v in pairs if v not in untested]
    found = [v for v in tested if is_significant(book, v)]
    parts = _untestable(book, untested, only)
    parts += _unresolved(book, [v for v in tested if v not in found], only)
    parts += _resting([v for v in found if v.stability_status != "stable"], only)
    parts += _own_family(book, [v for v in found if "own_family" in stopping(v)], only)
    parts += outside_words(book, found)
    for field, said in (("adversarial", "The control texts fail"), ("human_anchor", "People’s grades contradict it")):
        if any(field in fields for fields in stops):
            parts += [(said, True), (". ", False)]
    return tuple(parts)


def _untestable(book: Book, pairs: Sequence[Verdict], only: bool) -> list[tuple[str, bool]]:
    states = {state_words(m) for v in pairs if (m := book.pair("contrast", v)) is not None}
    if not pairs:
        return []
    why = " " + sorted(states)[0].removeprefix("cannot be tested").strip() if states else ""
    return [(_counted(len(pairs), only), False), ("cannot be tested", True), (f"{why}. ", False)]


def _unresolved(book: Book, pairs: Sequence[Verdict], only: bool) -> list[tuple[str, bool]]:
    if not pairs:
        return []
    ps = [v.p_adjusted for v in pairs if v.p_adjusted is not None]
    order = pairs[0].claim.asserts_order
    level = book.needed(pairs[0].claim.dimension) if order else book.run.study.inference.alpha
    which = "the smallest adjusted" if len(ps) > 1 else "adjusted"
    tail = f": {which} {p_value(min(ps))}; {alpha(level)} needed. " if ps else ". "
    many = "is" if only or len(pairs) == 1 else "are"
    state = "not resolved" if order else "not shown to be so close"
    return [(f"{_counted(len(pairs), only)}{many} ", False), (state, True), (tail, False)]


def _resting(pairs: Sequence[Verdict], only: bool) -> list[tuple[str, bool]]:
    """Pairs that one judge family makes or turns."""
    parts: list[tuple[str, bool]] = []
    for state, one, many in (
        ("rests-on", "needs judge family {names} to be seen", "need judge family {names} to be seen"),
        ("reversed-without", "turns without judge family {names}", "turn without judge family {names}"),
    ):
        here = [v for v in pairs if v.stability is not None and v.stability.state == state]
        if here:
            names = sorted({clean(name, 60) for v in here for name in v.stability.families})  # type: ignore[union-attr]
            said = (one if only or len(here) == 1 else many).format(names=listing(names, last="or"))
            parts += [(_counted(len(here), only), False), (said, True), (". ", False)]
    if any(v.stability is not None and v.stability.state == "not-measurable" for v in pairs):
        parts += [("Whether it depends on the judge is ", False), (ONE_FAMILY, True), (". ", False)]
    return parts


def _own_family(book: Book, pairs: Sequence[Verdict], only: bool) -> list[tuple[str, bool]]:
    if not pairs:
        return []
    rest = "rests" if only or len(pairs) == 1 else "rest"
    ps = [v.p_adjusted for v in pairs if v.p_adjusted is not None]
    level = alpha(book.needed(pairs[0].claim.dimension))
    tail = f"; without them adjusted {p_value(min(ps))}, {level} needed. " if ps else ". "
    if not any(book.pair("recusal.contrast", v) for v in pairs):  # no interest in these, but in what they wait for
        rest = f"{'waits' if rest == 'rests' else 'wait'} for orders that rest"
    return [(f"{_counted(len(pairs), only)}{rest} on ", False), ("judges from the agents’ own makers", True),
            (tail, False)]  # fmt: skip


def outside_words(book: Book, pairs: Iterable[Verdict]) -> list[tuple[str, bool]]:
    """What the held-out judge settled about some pairs: whether it finds a difference, never on which side.

    Empty where it was not asked about any of them.
    """
    asked = [found for v in pairs if (found := book.pair("probe.contrast", v)) is not None]
    known = [m for m in asked if m.low is not None and m.high is not None]
    if not known:
        return []
    if len(known) == 1:
        return [(f"The held-out judge finds {found_words(known[0])}. ", False)]
    alike = sum(not finds(m) for m in known)
    which = "all" if alike == len(known) else words(alike) if alike else "none"
    about = f"The held-out judge was asked about {words(len(known))} of them"
    return [(f"{about} and finds no difference in {which}. ", False)]


def _counted(size: int, only: bool) -> str:
    return "The pair " if only else f"{plural(size, 'pair').capitalize()} "
