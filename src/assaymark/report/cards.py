"""One card per claim: its checks, what it rests on, what other rules would say, and its certificate.

The card of a claim that is not supported holds no sentence, no direction and nothing that sets one agent apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.claims import ClaimKind, certificate_name, kind_of
from assaymark.records import AGGREGATE, Level, Measurement, Verdict, sha256_text
from assaymark.report.blocks import row_bytes
from assaymark.report.levels import (
    LEVELS,
    RANK,
    TAGS,
    ClaimView,
    built_in_words,
    claim_view,
    ordered_verdicts,
    rule_words,
    supported_verdicts,
)
from assaymark.report.lookup import Book
from assaymark.report.measurements import measured_title
from assaymark.report.text import alpha, counted, listing, p_value, plural, words
from assaymark.text import clean, count, prose

# What would change under another rule: the verdicts of the first screen beside those of rules that were not locked.


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


PAGE: Final = 140_000
"""Bytes of cards on one page: with its frame a page stays below 200 KB."""

_CARD_BYTES: Final = 620
_LINK_BYTES: Final = 70
_CHECK_BYTES: Final = 80
_LINKS: Final = 12
_NAMED: Final = ("agent", "judge", "a", "b", "format", "cell", "split")
_KINDS: Final[Mapping[ClaimKind, str]] = {
    "first": "first rank",
    "pair": "order of two agents",
    "within": "two agents within the margin",
    "cell": "control texts",
}
# What an unsupported claim rests on may be listed only as far as it is the same for every agent.
_SHOWN_UNSUPPORTED: Final[Mapping[ClaimKind, tuple[str, ...]]] = {
    "first": ("kappa.", "contrast", "cell."),
    "pair": (
        "kappa.", "contrast", "lofo.contrast", "recusal.", "length.", "judges.", "dimension.", "order.", "probe.",
        "cell.", "terse.", "length_matched.",
    ),
    "within": ("kappa.", "contrast", "lofo.contrast", "recusal.", "length.", "cell.", "terse."),
    "cell": ("cell.", "kappa."),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rest:
    """Measurements of one kind that a claim rests on, as (words, link); ``more`` counts those without a link here."""

    title: str
    links: tuple[tuple[str, str], ...]
    more: str


@dataclass(frozen=True, slots=True)
class Card:
    """One claim with everything behind it, every cell in words. ``anchor`` is the place of a supported one.

    ``conditions`` are the sentences that have to be said with it, one by one. ``fragility`` is (level or None where the
    verdict holds, word, rules).
    """

    id: str
    anchor: str
    claim: ClaimView
    kind: str
    conditions: tuple[str, ...]
    fragility: tuple[tuple[Level | None, str, str], ...]
    unfragile: str
    rests: tuple[Rest, ...]
    total: str
    certificate: str

    @property
    def size(self) -> int:
        """About how many bytes the card will take on a page."""
        claim = self.claim
        texts = [claim.quote or "", claim.text, claim.copy or "", claim.amended, self.certificate, *self.conditions]
        texts += [part for check in claim.checked.checks for part in (check.name, check.text)]
        texts += [*claim.checked.unreached, *(rules for _, _, rules in self.fragility)]
        texts += [word + link for rest in self.rests for word, link in rest.links]
        links = sum(len(rest.links) + 1 for rest in self.rests)
        return row_bytes(_CARD_BYTES + _CHECK_BYTES * len(claim.checked.checks) + _LINK_BYTES * links, texts)


def cards(book: Book, links: Mapping[str, str]) -> tuple[Card, ...]:
    """A card for every verdict; ``links`` are those of `measured_links`."""
    return tuple(_card(book, verdict, links) for verdict in ordered_verdicts(book))


def _card(book: Book, verdict: Verdict, links: Mapping[str, str]) -> Card:
    said = verdict.publication_level != "no-claim"
    fragility, unfragile = _fragility(verdict)
    return Card(
        id=verdict.claim.id,
        anchor=_anchor(verdict) if said else "",
        claim=claim_view(book, verdict),
        kind=_KINDS[kind_of(verdict.claim)],
        conditions=tuple(filter(None, (built_in_words(book, verdict), *_conditions(verdict)))) if said else (),
        fragility=fragility,
        unfragile=unfragile,
        rests=_rests(book, verdict, links),
        total=_total(verdict, said),
        certificate=_certificate(verdict),
    )


def _conditions(verdict: Verdict) -> Iterator[str]:
    return (prose(one.text, 400) for one in verdict.conditions)


def _anchor(verdict: Verdict) -> str:
    """The place of a card; one made of the id could be tried against both directions of a pair."""
    claim = verdict.claim
    return f"k{sha256_text('|'.join((kind_of(claim), claim.dimension, *sorted(claim.subjects))))[:10]}"


def claim_links(pages: Mapping[str, Sequence[Card]]) -> dict[str, str]:
    """Where the card of each supported claim is, by the id of the claim."""
    return {card.id: f"{name}#{card.anchor}" for name, rows in pages.items() for card in rows if card.anchor}


# --- under other rules ----------------------------------------------------------------------------------------------


def _fragility(verdict: Verdict) -> tuple[tuple[tuple[Level | None, str, str], ...], str]:
    """The level under each other rule, rules with one level together; or why there is nothing to show."""
    if not verdict.fragility:
        return (), "No other rule was tried."
    own = verdict.publication_level
    if own == "no-claim" and kind_of(verdict.claim) == "first":
        return (), "Not shown: it would show who leads."
    by_level: dict[Level, list[str]] = {}
    for rule, level in sorted(verdict.fragility.items()):
        by_level.setdefault(level, []).append(rule_words(rule))
    found: list[tuple[Level | None, str, str]] = []
    for level in sorted(by_level, key=lambda name: (name != own, RANK[name])):
        rules = listing(by_level[level])
        found.append((None, "Holds", rules) if level == own else (level, TAGS[level], rules))
    return tuple(found), ""


# --- what it rests on -----------------------------------------------------------------------------------------------


def _rests(book: Book, verdict: Verdict, links: Mapping[str, str]) -> tuple[Rest, ...]:
    groups: dict[str, list[tuple[str, str]]] = {}
    for name in _listed(verdict):
        item = book.by_id.get(name)
        if item is not None and name in links:
            groups.setdefault(item.name, []).append((_about(book, item, verdict.claim.dimension), links[name]))
    return tuple(_rest(name, sorted(found)) for name, found in groups.items())


def _rest(name: str, found: Sequence[tuple[str, str]]) -> Rest:
    more = len(found) - _LINKS
    return Rest(measured_title(name), tuple(found[:_LINKS]), f"and {more} more" if more > 0 else "")


def _listed(verdict: Verdict) -> Iterator[str]:
    """The ids that may be listed, without repeats, in the order of the verdict."""
    for name in dict.fromkeys(verdict.measurements):
        shown = _SHOWN_UNSUPPORTED[kind_of(verdict.claim)]
        if verdict.publication_level != "no-claim" or name.startswith(shown):
            yield name


def _about(book: Book, item: Measurement, dimension: str) -> str:
    """What distinguishes a measurement from its neighbours; two agents in alphabetical order."""
    labels = item.labels
    pair = sorted(clean(labels[key], 60) for key in ("high", "low") if key in labels)
    words = [" and ".join(pair)] if pair else []
    words += [f"without judge family {clean(labels[key], 60)}" for key in ("dropped",) if key in labels]
    words += [clean(labels[key], 60) for key in _NAMED if key in labels]
    about = labels.get("dimension", dimension)
    if about != dimension or not words:
        words.append(book.title(about))
    return ", ".join(words)


def _total(verdict: Verdict, said: bool) -> str:
    if said:
        total = len(set(verdict.measurements))
        return f"{count(total)} in all." if total > 1 else ""
    if kind_of(verdict.claim) == "first":
        return "What differs from agent to agent is left out: it would show who leads."
    return ""


def _certificate(verdict: Verdict) -> str:
    """The file of the certificate; the name of one about a pair has the order in it."""
    kind = kind_of(verdict.claim)
    if kind == "within" or (kind == "pair" and verdict.publication_level == "no-claim"):
        return ""
    return clean(f"certificates/{certificate_name(verdict)}", 200)
