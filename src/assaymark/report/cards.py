"""One card per claim: its checks, what it rests on, what other rules would say, and its certificate. The card of a
claim that is not supported holds no sentence, no direction and nothing that sets one agent apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from assaymark.claims import ClaimKind, certificate_name, kind_of, suppressed_phrase
from assaymark.records import Level, Measurement, Verdict, sha256_text
from assaymark.report.blocks import (
    Block,
    Card,
    Inline,
    Items,
    Linked,
    Listing,
    Mark,
    Page,
    Section,
    Table,
    Text,
    bold,
    code,
    notes,
    row_filters,
    small,
    spaced,
)
from assaymark.report.inputs import RunIndex
from assaymark.report.levels import (
    LEVELS,
    RANK,
    TAGS,
    amended_words,
    built_in_words,
    ordered_verdicts,
    rule_words,
    said_claim,
    supported_verdicts,
)
from assaymark.report.measurements import measured_title
from assaymark.report.page import beside
from assaymark.report.study.bench import FLIP, flip_words
from assaymark.report.study.claim_checks import checked
from assaymark.report.text import listing, plural, words
from assaymark.text import clean, count, prose

# What would change under another rule: the supported claims beside rules that the plan did not lock.


_ROWS: Final = 6


def rules_section(book: RunIndex) -> Section | None:
    """The first supported claims under each other rule, and how many of all claims a rule would move; None without one.
    Where no pair can be tested no rule could reject anything, and none is counted."""
    verdicts = [] if book.untestable else [v for v in book.run.verdicts if v.fragility]
    names = sorted({rule for v in verdicts for rule in v.fragility})
    if not names:
        return None
    rows: list[tuple[Inline, ...]] = []
    # Another rule of an unsupported claim would show its direction.
    for verdict in [v for v in supported_verdicts(book) if v.fragility][:_ROWS]:
        level, href = verdict.publication_level, book.claims.get(verdict.claim.id, "")
        text = prose(verdict.claim.statement, 400).removesuffix(".")
        cells: list[Inline] = [(text, " ", Linked("Rests on", href)) if href else text, Mark(level, TAGS[level])]
        for rule in names:
            other = verdict.fragility.get(rule)
            cells.append("not tried" if other is None else "holds" if other == level else Mark(other, TAGS[other]))
        rows.append(tuple(cells))
    found = [v.publication_level for v in verdicts]
    locked = ", ".join(f"{count(found.count(level))} {TAGS[level].lower()}" for level in LEVELS if level in found)
    rows.append((f"All {count(len(verdicts))} claims", locked, *(_moves(verdicts, rule) for rule in names)))
    moved = sum(any(level != v.publication_level for level in v.fragility.values()) for v in verdicts)
    under = f"under {'the one other rule' if len(names) == 1 else f'any one of {words(len(names))} other rules'}"
    verdict_words = plural(moved, "verdict").capitalize() if moved else "No verdict"
    heads = ("Claim", "Locked rule", *(said[:1].upper() + said[1:] for said in map(rule_words, names)))
    why = "" if FLIP in names else flip_words(book)
    note = f"Not counted: {rule_words(FLIP)}. {why}" if why else ""
    return Section(
        "rules", "What would change under another rule?",
        f"{verdict_words} of {count(len(verdicts))} would change {under}, which the plan did not lock.",
        (Table(heads, tuple(rows), summary="", stacked=True, style="frag"), *notes([note])),
    )  # fmt: skip


def _moves(verdicts: Sequence[Verdict], rule: str) -> str:
    steps = [RANK[v.fragility.get(rule, v.publication_level)] - RANK[v.publication_level] for v in verdicts]
    lower, higher = sum(step < 0 for step in steps), sum(step > 0 for step in steps)
    parts = ([f"{count(lower)} lower"] if lower else []) + ([f"{count(higher)} higher"] if higher else [])
    return ", ".join(parts) or "all hold"


PAGE: Final = 120_000
"""Bytes of cards on one page: with its frame a page stays below 200 KB."""

_CARD_BYTES: Final = 300
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


def cards(book: RunIndex, links: Mapping[str, str]) -> tuple[tuple[str, Card], ...]:
    """A card for every verdict, with the id of its claim; ``links`` are those of `measured_links`."""
    made: list[tuple[str, Card]] = []
    for verdict in ordered_verdicts(book):
        level, claim, kind = verdict.publication_level, verdict.claim, kind_of(verdict.claim)
        said, found_checks = level != "no-claim", checked(book, verdict)
        # The place of a card; one made of the id could be tried against both directions of a pair.
        place = "|".join((kind, claim.dimension, *sorted(claim.subjects)))
        anchor = f"k{sha256_text(place)[:10]}"
        blocks: list[Block] = []
        if not said:
            blocks.append(Text(prose(suppressed_phrase(claim), 400), "up"))
        else:
            needed = (prose(condition.text, 400) for condition in verdict.conditions)
            conditions = list(filter(None, (built_in_words(book, verdict), *needed)))
            quote = said_claim(book, verdict, f"q{anchor}")
            blocks.append(replace(quote, condition="") if conditions else quote)
            if conditions:
                blocks += [Text(bold("Say also:"), "also"), Items(tuple(conditions), "whys")]
        effects = {"stops": bold("Stops here."), "condition": bold("Condition.")}
        checks: list[Inline] = [
            (f"{check.name}: ", check.text, *((" ", effects[check.effect]) if check.effect else ()))
            for check in found_checks.checks
        ]
        if found_checks.unreached:
            checks.append(f"Not reached: {', '.join(found_checks.unreached).lower()}")
        blocks += [Text(bold("Checks"), "also"), Items(tuple(checks), "whys")]
        if amended := amended_words(verdict.amended):
            blocks.append(Text(bold(amended), "why"))
        facts: list[tuple[str, Inline]] = [("Other rules", _fragility(verdict))]
        # The measurements that a claim rests on, kind by kind, each leading to its row.
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in dict.fromkeys(verdict.measurements):
            item = book.by_id.get(name)
            if item is not None and name in links and (said or name.startswith(_SHOWN_UNSUPPORTED[kind])):
                groups.setdefault(item.name, []).append((_about(book, item, claim.dimension), links[name]))
        kinds: list[Inline] = []
        for name, found in groups.items():
            ways = spaced(Linked(words, link) for words, link in sorted(found)[:_LINKS])
            more = f" and {len(found) - _LINKS} more" if len(found) > _LINKS else ""
            kinds.append((f"{measured_title(name, book.sign)}: ", ways, more))
        rests = spaced(kinds, ". ")
        if rests:
            total = "" if kind != "first" else "What differs from agent to agent is left out: it would show who leads."
            if said:
                total = f"{count(n)} in all." if (n := len(set(verdict.measurements))) > 1 else ""
            facts.append(("Rests on", (rests, small(f" {total}")) if total else rests))
        # The file of the certificate; the name of one about a pair has the order in it.
        file: Inline = code(clean(f"certificates/{certificate_name(verdict)}", 200))
        if kind == "within" or (kind == "pair" and not said):
            file = ("in ", code("certificates/"), "; its name has the direction in it")
        facts.append(("Certificate", file))
        about = f"{_KINDS[kind]}, {book.title(claim.dimension)}"
        made.append((claim.id, Card(level, TAGS[level], about, tuple(blocks), tuple(facts), anchor)))
    return tuple(made)


def card_bytes(card: Card) -> int:
    """About how many bytes a card will take on a page."""
    return len(str(card).encode(errors="surrogatepass")) + _CARD_BYTES


def claims_pages(pages: Mapping[str, Sequence[Card]]) -> Iterator[Page]:
    """The pages of all claims, one at a time; ``pages`` are their cards by path."""
    lead = (
        "Every candidate of the plan with its checks, in the order in which they are decided. A claim that is not "
        "supported is named without the direction that the panel saw."
    )
    note = (
        "To check a certificate without any text of the agents: ",
        code("assaymark claim --verify certificate.json"),
    )
    for path, rows, parts in beside(pages.items()):
        filters = row_filters([row.level for row in rows], TAGS)
        shown = Listing(tuple(rows), filters, "claims", "claim-rows")
        yield Page(path, "All sentences", lead, (), (shown,), parts, here="claims", foot=note)


def claim_links(pages: Mapping[str, Sequence[tuple[str, Card]]]) -> dict[str, str]:
    """Where the card of each claim is, by the id of the claim; the place of a card has no direction in it."""
    return {claim: f"{name}#{card.id}" for name, rows in pages.items() for claim, card in rows}


# --- under other rules ----------------------------------------------------------------------------------------------


def _fragility(verdict: Verdict) -> Inline:
    """The level under each other rule, rules with one level together; or why there is nothing to show."""
    if not verdict.fragility:
        return "No other rule was tried."
    own = verdict.publication_level
    if own == "no-claim" and kind_of(verdict.claim) == "first":
        return "Not shown: it would show who leads."
    by_level: dict[Level, list[str]] = {}
    for rule, level in sorted(verdict.fragility.items()):
        by_level.setdefault(level, []).append(rule_words(rule))
    found: list[Inline] = []
    for level in sorted(by_level, key=lambda name: (name != own, RANK[name])):
        rules = listing(by_level[level])
        found.append(f"Holds: {rules}" if level == own else (Mark(level, TAGS[level]), f": {rules}"))
    return spaced(found, ". ")


def _about(book: RunIndex, item: Measurement, dimension: str) -> str:
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
