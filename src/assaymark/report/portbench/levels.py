"""Supported claims: those that the first page may say, what it does not, and one card for every verdict.

The first page has first ranks, counts of drawdown limits, comparisons with equal weight, and whether the questions
rank the models as the pipeline does; pairs of models are on the page of all claims. A claim that is not supported is
listed without its direction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from assaymark.claims.messages import english, stand_ins
from assaymark.records import Verdict
from assaymark.report.blocks import Card, Linked, Quote, Text, spaced
from assaymark.report.levels import LEVELS, TAGS, TITLES, SaidLevel, Segments, WithheldGroup, copied
from assaymark.report.portbench.book import KINDS, BenchmarkIndex, board_title, ends_of, kind_of, shown_names
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


def said_levels(book: BenchmarkIndex) -> Iterator[SaidLevel]:
    """The three levels in order; pairs and single models are among all claims alone."""
    for level in LEVELS:
        known = [one for one in front(book) if level == one.publication_level != "no-claim"]
        mine = tuple(said_claim(book, verdict) for verdict in known)
        groups = withheld_groups(book) if level == "no-claim" else ()
        yield SaidLevel(level, TITLES[level], mine[:SHOWN], mine[SHOWN:], groups)


def _board_place(book: BenchmarkIndex, verdict: Verdict) -> int:
    boards = [leaderboard.board.name for leaderboard in book.run.leaderboards]
    return boards.index(verdict.claim.dimension) if verdict.claim.dimension in boards else len(boards)


def front(book: BenchmarkIndex) -> list[Verdict]:
    """The verdicts that are sentences of the first page: the first board, the limits, equal weight, the others."""
    counted_gates = {verdict.claim.dimension for verdict in book.of_kind("gates")}

    def place(verdict: Verdict) -> tuple[int, int]:
        kind, at = kind_of(verdict), _board_place(book, verdict)
        return 1 if kind != "first" else 2 + at if at else 0, KINDS.index(kind)

    kept = book.of_kind("first", "gates", "gate", "beats", "dissociation")
    return sorted((v for v in kept if kind_of(v) != "gate" or v.claim.dimension not in counted_gates), key=place)


def said_claim(book: BenchmarkIndex, verdict: Verdict) -> Quote:
    """A supported claim with its condition and its clipboard text."""
    run, text = book.run, said_words(verdict.claim.statement)
    built_in = stands_in(book, verdict.claim.subjects)
    condition = " ".join(filter(None, (built_in, said_words(verdict.condition or ""))))
    copy = copied(text, condition, run.title or run.name, run.locked_at, verdict.plan_hash)
    return Quote(verdict.publication_level, text, condition, copy)


def claim_cards(book: BenchmarkIndex) -> list[Card]:
    """A card for every verdict: by board and kind, then by name; never by which of two models is higher."""

    def place(verdict: Verdict) -> tuple[int, int, tuple[str, ...], str]:
        kind, names = kind_of(verdict), tuple(sorted(verdict.claim.subjects))
        told = "" if kind in ("above", "within") else verdict.claim.id
        return _board_place(book, verdict), KINDS.index(kind), names, told

    cards = []
    for verdict in sorted(book.run.verdicts, key=place):
        level, found = verdict.publication_level, []
        # The first measurements that it rests on; two models in alphabetical order.
        for name in dict.fromkeys(verdict.measurements):
            if name in book.links:
                labels = book.by_id[name].labels
                pair = " and ".join(sorted(clean(labels[key], 60) for key in ("high", "low") if key in labels))
                others = [clean(labels[key], 60) for key in ("model", "profile", "window") if key in labels]
                words = ", ".join(filter(None, (pair, *others))) or "the correlation"
                found.append((words, book.links[name]))
        rests = spaced(Linked(*one) for one in sorted(found)[:_LINKS])
        total = counted(len(set(verdict.measurements)), "measurement")
        about = Text((f"Rests on {total}", *((": ", rests) if rests else ())), "tuple")
        said = Text(withheld_words(book, verdict), "text") if level == "no-claim" else said_claim(book, verdict)
        why = (Text(said_words(reason), "why") for reason in verdict.reasons)
        cards.append(Card(level, TAGS[level], _SCOPES[kind_of(verdict)], (said, *why, about)))
    return cards


def stands_in(book: BenchmarkIndex, models: Sequence[str]) -> str:
    """That these models are built in, which is said wherever a sentence about them is copied; else nothing."""
    return stand_ins(english(), {}, {model.name: model.reference for model in book.models}, models, made_by="models")


def said_words(text: str) -> str:
    """A sentence of a verdict as it is set: no percent sign leaves its number at the end of a line.

    >>> said_words("a drawdown of 10 %.").replace(NBSP, "_")
    'a drawdown of 10_%.'
    """
    return prose(text, 600).replace(" %", f"{NBSP}%")


def withheld_words(book: BenchmarkIndex, verdict: Verdict) -> str:
    """What a claim that is not supported is about, without its direction."""
    names = sorted(shown_names(verdict.claim.subjects))
    dimension, kind = clean(verdict.claim.dimension, 60), kind_of(verdict)
    board = book.board(verdict.claim.dimension)
    where = clean(board.board.words, 120) if board else dimension
    stay = "stays" if len(names) == 1 else "stay"
    limit = f"Whether {listing(names)} {stay} within the limit ({dimension})."
    return {
        "above": f"Any ranking of {listing(names)} on {where}.",
        "first": f"A first rank for {listing(names)} on {where}.",
        "within": f"That {listing(names)} score alike on {where}.",
        "beats": f"That {listing(names)} beats equal weight ({dimension}).",
        "gate": limit,
        "gates": limit,
        "dissociation": "Whether questions and pipeline rank the models alike.",
    }.get(kind, f"A claim about {listing(names) or 'the models'} ({dimension}).")


# --- what is withheld, in few lines -----------------------------------------------------------------------------------


def withheld_groups(book: BenchmarkIndex) -> tuple[WithheldGroup, ...]:
    """The claims of a run that are not supported in a handful of lines, with their numbers."""
    kept = [verdict for verdict in book.run.verdicts if verdict.publication_level == "no-claim"]
    groups, boards = [], book.run.leaderboards
    if orders := [verdict for verdict in kept if kind_of(verdict) in ("above", "first", "within")]:
        # How many pairs of a board are not resolved, and the smallest adjusted p among them.
        parts = [
            f"{board_title(board.board.name)}, {board.open_pairs} of {board.pairs} "
            f"(smallest adjusted {p_value(board.least)}, needed {alpha(round(board.alpha, 4))})"
            for board in boards
            if board.open_pairs
        ]
        further = "" if all(len(board.tiers) == 1 for board in boards) else "further "
        why: Segments = ((f"Pairs that are not resolved: {'; '.join(parts)}. ", False),) if parts else ()
        groups.append(WithheldGroup(f"Any {further}ranking of the models.", why, len(orders)))
    if beats := [verdict for verdict in kept if kind_of(verdict) == "beats"]:
        groups.append(_beats(book, beats))
    groups += _limits(kept)
    for verdict in kept:
        if kind_of(verdict) == "dissociation":
            reasons = " ".join(map(said_words, verdict.reasons))
            groups.append(WithheldGroup(withheld_words(book, verdict), ((f"{reasons} ", False),), 1))
    return tuple(groups)


def _beats(book: BenchmarkIndex, kept: Sequence[Verdict]) -> WithheldGroup:
    items = [book.by_id[name] for verdict in kept for name in verdict.measurements if name in book.by_id]
    ends = [found for item in items if (found := ends_of(item)) is not None]
    across = sum(low <= 0 <= high for low, high in ends)
    numbers = f"Of {counted(len(kept), 'Sharpe difference')} {listing(_sides(ends, len(kept)))}. "
    if across == len(kept):
        numbers = f"All {count(across)} Sharpe differences have intervals that contain zero. "
        if across == 1:
            numbers = "The one Sharpe difference has an interval that contains zero. "
    other = "any model" if len(kept) == len(book.of_kind("beats")) else "any other model or profile"
    who = shown_names(book.names)[0] if len(book.names) == 1 else other
    return WithheldGroup(f"That {who} beats equal weight.", ((numbers, False),), len(kept))


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


def _limits(kept: Sequence[Verdict]) -> Iterator[WithheldGroup]:
    """Limits for which not all stress windows were run: profiles with their reasons, each reason once."""
    by_reason: dict[str, Counter[str]] = {}
    for verdict in kept:
        if kind_of(verdict) in ("gates", "gate"):
            reason = " ".join(map(said_words, verdict.reasons))
            name = clean(verdict.claim.dimension.removeprefix("drawdown, "), 40)
            by_reason.setdefault(reason, Counter())[name] += 1
    alike: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for reason, found in by_reason.items():
        alike[listing([*found])][reason] = found.total()
    for profiles, reasons in alike.items():
        why = tuple((f"{reason} ", False) for reason in reasons)
        yield WithheldGroup(f"Whether limits are kept under stress ({profiles}).", why, sum(reasons.values()))
