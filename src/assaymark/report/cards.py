"""One card per claim: the tuple, the reasons, what it rests on, what other rules would say, and its certificate.

A card of a withheld claim holds no sentence, no direction and nothing that sets one agent apart from the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from assaymark.claims import certificate_name
from assaymark.records import Level, Measurement, Verdict, sha256_text
from assaymark.report.book import Book
from assaymark.report.formats import clean, count, count_of, in_mde, interval, listing, mde_words, p_value, signed
from assaymark.report.kinds import ClaimKind, kind_of
from assaymark.report.levels import RANK, TAGS, ClaimView, claim_view, ordered_verdicts, rule_words
from assaymark.report.levels import tells_who_leads as leads
from assaymark.report.measured import measured_title
from assaymark.report.paging import row_bytes
from assaymark.report.withheld import withheld_why

PAGE: Final = 140_000
"""Bytes of cards on one page: with its frame a page stays below 200 KB."""

_CARD_BYTES: Final = 620
_LINK_BYTES: Final = 70
_LINKS: Final = 12
_NAMED: Final = ("agent", "judge", "a", "b", "format", "cell", "split")
_SCOPES: Final = {
    "aggregate-ranking": "aggregate ranking",
    "dimension-ranking": "ranking on one dimension",
    "pairwise-contrast": "pairwise contrast",
    "adversarial-cell": "control cell",
}
# What a withheld claim rests on may be listed only as far as it is the same for every agent.
_SHOWN_WITHHELD: Final[Mapping[ClaimKind, tuple[str, ...]]] = {
    "first": ("kappa.", "contrast", "cell.", "terse.", "probe.state"),
    "above": ("kappa.", "contrast", "lofo.contrast", "probe.", "cell.", "terse.", "length_matched."),
    "tie": ("kappa.", "contrast", "probe.", "cell.", "terse."),
    "cell": ("cell.", "kappa."),
    "ranking": ("kappa.", "cell.", "probe.state"),
    "other": ("kappa.", "cell."),
}


@dataclass(frozen=True, slots=True)
class Rest:
    """Measurements of one kind that a claim rests on, as (words, link); ``more`` counts those without a link here."""

    title: str
    links: tuple[tuple[str, str], ...]
    more: str


@dataclass(frozen=True, slots=True)
class Card:
    """One claim with everything behind it, every cell in words. ``anchor`` is the place of one that may be said.

    ``fragility`` is (level or None where the verdict holds, word, rules); ``why`` gives the reasons of a withheld
    claim in segments, a segment marked True is set bold.
    """

    id: str
    anchor: str
    claim: ClaimView
    scope: str
    gap: str
    why: tuple[tuple[str, bool], ...]
    fragility: tuple[tuple[Level | None, str, str], ...]
    unfragile: str
    rests: tuple[Rest, ...]
    total: str
    certificate: str

    @property
    def size(self) -> int:
        """About how many bytes the card will take on a page."""
        claim = self.claim
        texts = [claim.quote or "", claim.text, claim.condition or "", claim.copy or "", claim.amended, self.gap]
        texts += [*claim.reasons, self.certificate, *(text for text, _ in self.why)]
        texts += [field.text for field in claim.fields] + [rules for _, _, rules in self.fragility]
        texts += [word + link for rest in self.rests for word, link in rest.links]
        links = sum(len(rest.links) + 1 for rest in self.rests)
        return row_bytes(_CARD_BYTES + _LINK_BYTES * links, texts)


def cards(book: Book, links: Mapping[str, str]) -> tuple[Card, ...]:
    """A card for every verdict; ``links`` are those of `measured_links`."""
    return tuple(_card(book, verdict, links) for verdict in ordered_verdicts(book))


def _card(book: Book, verdict: Verdict, links: Mapping[str, str]) -> Card:
    said = verdict.publication_level != "no-claim"
    fragility, unfragile = _fragility(book, verdict)
    rests = _rests(book, verdict, links)
    return Card(
        id=verdict.claim.id,
        # One made of a withheld order could be tried against both directions.
        anchor=f"k{sha256_text(verdict.claim.id)[:10]}" if said else "",
        claim=_without_repeat(claim_view(book, verdict)),
        scope=_SCOPES.get(verdict.claim.scope, clean(verdict.claim.scope, 40)),
        gap=_gap(book, verdict) if said else "",
        why=() if said else _why(book, verdict),
        fragility=fragility,
        unfragile=unfragile,
        rests=rests,
        total=_total(verdict, said),
        certificate=_certificate(verdict),
    )


def claim_links(pages: Mapping[str, Sequence[Card]]) -> dict[str, str]:
    """Where the card of each claim that may be said stands, by the id of the claim."""
    return {card.id: f"{name}#{card.anchor}" for name, rows in pages.items() for card in rows if card.anchor}


def _without_repeat(view: ClaimView) -> ClaimView:
    """The claim without the reason that its line about the amended plan already gives."""
    kept = tuple(reason for reason in view.reasons if not (view.amended and reason.startswith("Amended after")))
    return replace(view, reasons=kept)


def _why(book: Book, verdict: Verdict) -> tuple[tuple[str, bool], ...]:
    if leads(book, verdict) and verdict.agreement_status != "halt" and verdict.adversarial_status != "contaminated":
        return (("What stops it would tell who leads, so it is withheld as well. ", False),)
    return withheld_why(book, verdict)


def _gap(book: Book, verdict: Verdict) -> str:
    """The gap of a permitted pair, in the direction that the claim states."""
    if kind_of(verdict.claim) != "above":
        return ""
    item = book.one("contrast", **_pair_labels(verdict))
    if item is None or item.value is None:
        return ""
    p = item.detail.get("p_holm")
    tested = f", adjusted {p_value(float(p))}" if isinstance(p, (int, float)) else ""
    return f"{gap_words(item)}{tested}; n = {count_of(item.n, item.n_of)}"


def _pair_labels(verdict: Verdict) -> dict[str, str]:
    high, low = verdict.claim.subjects[:2]
    return {"dimension": verdict.claim.dimension, "high": high, "low": low}


def gap_words(item: Measurement, sign: int = 1) -> str:
    """A difference with its interval, in points and in units of the detectable effect; ``sign`` −1 turns it round.

    >>> gap_words(Measurement(name="contrast", labels={}, value=0.5, low=0.4, high=0.6, n=9, n_of="", method="",
    ...                       detail={"mde": 0.25}))
    '+0.50 points (0.40 to 0.60), 2.0 × MDE'
    """
    value = sign * (item.value or 0.0)
    low, high = (item.low, item.high) if sign > 0 else (_minus(item.high), _minus(item.low))
    bounds = interval(value, low, high).partition(" ")[2]
    multiple = in_mde(item)
    units = "" if multiple is None else f", {mde_words(multiple)}"
    return f"{signed(value)} points {bounds}{units}"


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


# --- under other rules ----------------------------------------------------------------------------------------------


def _fragility(book: Book, verdict: Verdict) -> tuple[tuple[tuple[Level | None, str, str], ...], str]:
    """The level under each other rule, rules with one level together; or why there is nothing to show."""
    if not verdict.fragility:
        return (), "No other rule was tried."
    if _fragility_tells(book, verdict):
        return (), "Withheld: it would tell who leads."
    own = verdict.publication_level
    by_level: dict[Level, list[str]] = {}
    for rule, level in sorted(verdict.fragility.items()):
        by_level.setdefault(level, []).append(rule_words(rule))
    found: list[tuple[Level | None, str, str]] = []
    for level in sorted(by_level, key=lambda name: (name != own, RANK[name])):
        rules = listing(by_level[level])
        found.append((None, "Holds", rules) if level == own else (level, TAGS[level], rules))
    return tuple(found), ""


def _fragility_tells(book: Book, verdict: Verdict) -> bool:
    """Whether the other rules would set a withheld first place apart from the other withheld first places."""
    if verdict.publication_level != "no-claim" or kind_of(verdict.claim) != "first":
        return False
    firsts = [v for v in book.on(verdict.claim.dimension, "first") if v.publication_level == "no-claim"]
    return any(dict(v.fragility) != dict(verdict.fragility) for v in firsts)


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
        shown = _SHOWN_WITHHELD[kind_of(verdict.claim)]
        if verdict.publication_level != "no-claim" or name.startswith(shown):
            yield name


def _about(book: Book, item: Measurement, dimension: str) -> str:
    """What tells a measurement from its neighbours; two agents stand in alphabetical order."""
    labels = item.labels
    pair = sorted(clean(labels[key], 60) for key in ("high", "low") if key in labels)
    words = [" and ".join(pair)] if pair else []
    words += [f"without {clean(labels[key], 60)}" for key in ("dropped",) if key in labels]
    words += [clean(labels[key], 60) for key in _NAMED if key in labels]
    about = labels.get("dimension", dimension)
    if about != dimension or not words:
        words.append(book.title(about))
    return ", ".join(words)


def _total(verdict: Verdict, said: bool) -> str:
    if said:
        total = len(set(verdict.measurements))
        return f"{count(total)} in all." if total > 1 else ""
    if kind_of(verdict.claim) in ("first", "ranking"):
        return "What differs from agent to agent is left out: it would tell more than the verdict."
    return ""


def _certificate(verdict: Verdict) -> str:
    """The file of the certificate; the name of a withheld order has the order in it."""
    if verdict.publication_level == "no-claim" and kind_of(verdict.claim) in ("above", "ranking", "other"):
        return ""
    return clean(f"certificates/{certificate_name(verdict)}", 200)
