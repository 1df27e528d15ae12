"""Supported claims: those that the first page may say, what it does not, and one card for every verdict.

The first page has first ranks, counts of drawdown limits, comparisons with equal weight, and whether the questions
rank the models as the pipeline does; pairs of models are on the page of all claims. A claim that is not supported is
listed without its direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.claims.boards import Leaderboard
from assaymark.claims.messages import english, stand_ins
from assaymark.records import Level, Verdict
from assaymark.report.blocks import Card, Linked, Quote, Text, spaced
from assaymark.report.levels import LEVELS, TAGS, TITLES, Segments, WithheldGroup, copied
from assaymark.report.portbench.book import KINDS, BenchBook, board_title, kind_of, shown_names
from assaymark.report.text import alpha, counted, listing, p_value
from assaymark.text import NBSP, clean, count, prose

PAGE: Final = 140_000
"""Bytes of cards on one page."""

SHOWN: Final = 4
"""How many sentences of a level a reader meets first."""

_LINKS: Final = 6

_SCOPES: Final = {
    "first": "a first rank",
    "within": "a pair within the margin",
    "gates": "drawdown limit, counted",
    "gate": "drawdown limit",
    "beats": "against equal weight",
    "dissociation": "questions and pipeline",
    "above": "a pair of models",
    "other": "benchmark",
}


@dataclass(frozen=True, slots=True)
class BenchClaim:
    """One claim as a page shows it. ``quote`` is the supported sentence, else None; ``copy`` its clipboard text.

    ``rests`` are measurements as (words, link); ``total`` says how many there are in all.
    """

    level: Level
    tag: str
    scope: str
    quote: str | None
    text: str
    condition: str
    reasons: tuple[str, ...]
    copy: str
    rests: tuple[tuple[str, str], ...]
    total: str

    @property
    def sentence(self) -> Quote:
        """The supported sentence with what has to be said with it."""
        return Quote(self.level, self.quote or "", self.condition, self.copy)

    @property
    def card(self) -> Card:
        """The claim with its reasons and what it rests on."""
        said = self.sentence if self.quote else Text(self.text, "text")
        rests = spaced(Linked(words, link) for words, link in self.rests)
        about = Text((f"Rests on {self.total}", *((": ", rests) if rests else ())), "tuple")
        return Card(self.level, self.tag, self.scope, (said, *(Text(reason, "why") for reason in self.reasons), about))


@dataclass(frozen=True, slots=True)
class SaidLevel:
    """One level in few words: its first sentences, ``more`` of them, or in ``groups`` what is not supported.

    Only the page of all claims has the ``rest``.
    """

    level: Level
    title: str
    shown: tuple[Quote, ...]
    more: tuple[Quote, ...]
    groups: tuple[WithheldGroup, ...]
    rest: int = 0


def said_levels(book: BenchBook) -> Iterator[SaidLevel]:
    """The three levels in order; pairs and single models are among all claims alone."""
    found = [claim_of(book, verdict) for verdict in front(book) if verdict.publication_level != "no-claim"]
    for level in LEVELS:
        mine = tuple(one.sentence for one in found if one.level == level)
        groups = withheld_groups(book) if level == "no-claim" else ()
        yield SaidLevel(level, TITLES[level], mine[:SHOWN], mine[SHOWN:], groups)


def front(book: BenchBook) -> list[Verdict]:
    """The verdicts that are sentences of the first page: the first board, the limits, equal weight, the others."""
    boards = [one.board.name for one in book.run.leaderboards]
    counted_gates = {verdict.claim.dimension for verdict in book.of_kind("gates")}
    kept = [
        verdict
        for verdict in book.of_kind("first", "gates", "gate", "beats", "dissociation")
        if kind_of(verdict) != "gate" or verdict.claim.dimension not in counted_gates
    ]

    def place(verdict: Verdict) -> tuple[int, int]:
        kind = kind_of(verdict)
        if kind != "first":
            return 1, KINDS.index(kind)
        at = boards.index(verdict.claim.dimension) if verdict.claim.dimension in boards else len(boards)
        return (0, KINDS.index(kind)) if at == 0 else (2 + at, KINDS.index(kind))

    return sorted(kept, key=place)


def claim_of(book: BenchBook, verdict: Verdict, links: Mapping[str, str] | None = None) -> BenchClaim:
    """How one verdict is shown; for no-claim the sentence and its condition stay behind."""
    level = verdict.publication_level
    said, built_in = level != "no-claim", stands_in(book, verdict.claim.subjects)
    statement, run = said_words(verdict.claim.statement), book.run
    condition = " ".join(filter(None, (built_in, said_words(verdict.condition or ""))))
    return BenchClaim(
        level=level,
        tag=TAGS[level],
        scope=_SCOPES[kind_of(verdict)],
        quote=statement if said else None,
        text="" if said else withheld_words(book, verdict),
        condition=condition if said else "",
        reasons=tuple(said_words(reason) for reason in verdict.reasons),
        copy=copied(statement, condition, run.title or run.name, run.locked_at, verdict.plan_hash) if said else "",
        rests=_rests(book, verdict, links or {}),
        total=counted(len(set(verdict.measurements)), "measurement"),
    )


def stands_in(book: BenchBook, models: Sequence[str]) -> str:
    """That these models are built in, which is said wherever a sentence about them is copied; else nothing."""
    return stand_ins(english(), {}, {one.name: one.reference for one in book.models}, models, made_by="models")


def said_words(text: str) -> str:
    """A sentence of a verdict as it is set: no percent sign leaves its number at the end of a line.

    >>> said_words("a drawdown of 10 %.").replace(NBSP, "_")
    'a drawdown of 10_%.'
    """
    return prose(text, 600).replace(" %", f"{NBSP}%")


def every_claim(book: BenchBook, links: Mapping[str, str]) -> tuple[BenchClaim, ...]:
    """A card for every verdict: by board and kind, then by name; never by which of two models is higher.

    ``links`` has the row of each measurement, by its id.
    """
    boards = [one.board.name for one in book.run.leaderboards]

    def place(verdict: Verdict) -> tuple[int, int, tuple[str, ...], str]:
        kind = kind_of(verdict)
        at = boards.index(verdict.claim.dimension) if verdict.claim.dimension in boards else len(boards)
        names = tuple(sorted(verdict.claim.subjects))
        return at, KINDS.index(kind), names, "" if kind in ("above", "within") else verdict.claim.id

    return tuple(claim_of(book, verdict, links) for verdict in sorted(book.run.verdicts, key=place))


def withheld_words(book: BenchBook, verdict: Verdict) -> str:
    """What a claim that is not supported is about, without its direction."""
    names = sorted(shown_names(verdict.claim.subjects))
    dimension = clean(verdict.claim.dimension, 60)
    match kind_of(verdict):
        case "above" | "first" | "within" as kind:
            board = next((s.board for s in book.run.leaderboards if s.board.name == verdict.claim.dimension), None)
            where = clean(board.words, 120) if board else dimension
            says = {"above": "Any ranking of {}", "first": "A first rank for {}", "within": "That {} score alike"}[kind]
            return f"{says.format(listing(names))} on {where}."
        case "beats":
            return f"That {listing(names)} beats equal weight ({dimension})."
        case "gate" | "gates":
            return f"Whether {listing(names)} stay{'s' if len(names) == 1 else ''} within the limit ({dimension})."
        case "dissociation":
            return "Whether questions and pipeline rank the models alike."
        case _:
            return f"A claim about {listing(names) or 'the models'} ({dimension})."


# --- what is withheld, in few lines -----------------------------------------------------------------------------------


def withheld_groups(book: BenchBook) -> tuple[WithheldGroup, ...]:
    """The claims of a run that are not supported in a handful of lines, with their numbers."""
    found = [_orders(book), _beats(book), *_gates(book), *_dissociation(book)]
    return tuple(group for group in found if group is not None)


def _orders(book: BenchBook) -> WithheldGroup | None:
    kept = [v for v in book.of_kind("above", "first", "within") if v.publication_level == "no-claim"]
    if not kept:
        return None
    parts = [words for board in book.run.leaderboards if (words := _open_pairs(board))]
    whole = all(len(board.tiers) == 1 for board in book.run.leaderboards)
    text = "Any ranking of the models." if whole else "Any further ranking of the models."
    why: Segments = ((f"Pairs that are not resolved: {'; '.join(parts)}. ", False),) if parts else ()
    return WithheldGroup(text, why, len(kept))


def _open_pairs(board: Leaderboard) -> str:
    """How many pairs of a board are not resolved, and the smallest adjusted p among them."""
    if not board.open_pairs:
        return ""
    return (
        f"{board_title(board.board.name)}, {board.open_pairs} of {board.pairs} "
        f"(smallest adjusted {p_value(board.least)}, needed {alpha(round(board.alpha, 4))})"
    )


def _beats(book: BenchBook) -> WithheldGroup | None:
    verdicts = book.of_kind("beats")
    kept = [v for v in verdicts if v.publication_level == "no-claim"]
    if not kept:
        return None
    items = [book.by_id[name] for v in kept for name in v.measurements if name in book.by_id]
    ends = [(item.low, item.high) for item in items if item.low is not None and item.high is not None]
    across = sum(low <= 0 <= high for low, high in ends)
    if across == len(kept):
        every = f"All {count(across)} Sharpe differences have intervals"
        numbers = f"{every if across > 1 else 'The one Sharpe difference has an interval'} that "
        numbers += f"{'contain' if across > 1 else 'contains'} zero. "
    else:
        numbers = f"Of {counted(len(kept), 'Sharpe difference')} {listing(_sides(ends, len(kept)))}. "
    only = len(book.names) == 1
    other = "any model" if len(kept) == len(verdicts) else "any other model or profile"
    text = f"That {shown_names(book.names)[0] if only else other} beats equal weight."
    return WithheldGroup(text, ((numbers, False),), len(kept))


def _sides(ends: Sequence[tuple[float, float]], total: int) -> list[str]:
    """Where intervals lie, without the side of zero; and how many there are none of.

    >>> _sides([(-1, 1), (-2, -1)], 3)
    ['1 has an interval that contains zero', '1 is not shown to be above it', '1 has no interval']
    """
    across, none = sum(low <= 0 <= high for low, high in ends), total - len(ends)
    said = (
        (across, "has an interval that contains zero", "have an interval that contains zero"),
        (len(ends) - across, "is not shown to be above it", "are not shown to be above it"),
        (none, "has no interval", "have no interval"),
    )
    return [f"{count(size)} {one if size == 1 else many}" for size, one, many in said if size]


def _gates(book: BenchBook) -> list[WithheldGroup]:
    """Limits for which not all stress windows were run: profiles with their reasons, each reason once."""
    kept: dict[tuple[str, str], int] = {}
    for verdict in book.of_kind("gates", "gate"):
        if verdict.publication_level == "no-claim":
            reason = " ".join(said_words(reason) for reason in verdict.reasons)
            key = verdict.claim.dimension, reason
            kept[key] = kept.get(key, 0) + 1
    by_reason: dict[str, list[tuple[str, int]]] = {}
    for (dimension, reason), covers in kept.items():
        by_reason.setdefault(reason, []).append((clean(dimension.removeprefix("drawdown, "), 40), covers))
    alike: dict[str, dict[str, int]] = {}
    for reason, found in by_reason.items():
        alike.setdefault(listing([name for name, _ in found]), {})[reason] = sum(covers for _, covers in found)
    return [
        WithheldGroup(
            f"Whether limits are kept under stress ({profiles}).",
            tuple((f"{reason} ", False) for reason in reasons),
            sum(reasons.values()),
        )
        for profiles, reasons in alike.items()
    ]


def _dissociation(book: BenchBook) -> list[WithheldGroup]:
    return [
        WithheldGroup(
            withheld_words(book, verdict), ((" ".join(said_words(r) for r in verdict.reasons) + " ", False),), 1
        )
        for verdict in book.of_kind("dissociation")
        if verdict.publication_level == "no-claim"
    ]


def _rests(book: BenchBook, verdict: Verdict, links: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The first measurements that a verdict rests on; two models in alphabetical order."""
    found = []
    for name in dict.fromkeys(verdict.measurements):
        if name in links:
            labels = book.by_id[name].labels
            pair = " and ".join(sorted(clean(labels[key], 60) for key in ("high", "low") if key in labels))
            others = [clean(labels[key], 60) for key in ("model", "profile", "window") if key in labels]
            found.append((", ".join(filter(None, (pair, *others))) or "the correlation", links[name]))
    return tuple(sorted(found)[:_LINKS])
