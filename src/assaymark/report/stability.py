"""Does each order hold without any one judge family? Sign and significance of every pair in every drop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.records import AGGREGATE, Measurement, Verdict
from assaymark.report.book import Book
from assaymark.report.claim_checks import family_words, is_significant
from assaymark.report.formats import alpha, clean, count, counted, listing, p_value, plural, sentence, state_words
from assaymark.report.tables import Table


@dataclass(frozen=True, slots=True)
class StabilityView:
    """The section: counts by score, every pair of the aggregate in every drop, and rank correlations."""

    answer: str
    note: str
    scores: Table | None
    pairs: Table | None
    rho: Table | None


def stability_view(book: Book) -> StabilityView:
    """The whole section from the verdicts and measurements of a run."""
    by_score = {dimension: book.on(dimension, "pair") for dimension in book.dimensions}
    found = [v for v in by_score.get(AGGREGATE, ()) if is_significant(book, v)]
    return StabilityView(
        answer=_answer(book, found),
        note=_note(book) if found else "",
        scores=_scores(book, by_score),
        pairs=_pairs(book, found),
        rho=_rho(book),
    )


def _answer(book: Book, found: Sequence[Verdict]) -> str:
    if len(book.run.study.families) < 2:
        return "Not measurable: one judge family, so none can be left out."
    rho = list(book.every("lofo.rho", dimension=AGGREGATE))
    if not found:
        undefined = rho and all(m.value is None for m in rho)
        return sentence(state_words(rho[0])) if undefined else "No difference on the overall score is significant."
    holds = sum(v.stability is not None and v.stability.state == "stable" for v in found)
    of = f"{count(holds)} of {counted(len(found), 'significant difference')} on the overall score"
    said = f"{of} {'holds' if holds == 1 else 'hold'} without any one judge family"
    findings = [v.stability for v in found if v.stability is not None]
    needing, turning = (
        sorted({clean(name, 60) for one in findings if one.state == state for name in one.families})
        for state in ("rests-on", "reversed-without")
    )
    parts = [f"some need judge family {listing(needing, last='or')} to be seen"] if needing else []
    parts += [f"some turn without judge family {listing(turning, last='or')}"] if turning else []
    return f"{said}{'; ' if parts else ''}{listing(parts)}."


def _note(book: Book) -> str:
    """The levels that every drop has to reach."""
    level, families = book.run.study.inference.alpha, len(book.run.study.families)
    single = 2 * level / min(max(2, families), 3)
    return (
        f"An order has to keep its sign and its significance without each of "
        f"{plural(families, 'judge family', 'judge families')}: p of at most {alpha(round(single, 3))} and, after "
        f"correction over all pairs, {alpha(2 * level)}. A first rank whose pairs all keep the former "
        "needs no correction."
    )


def _scores(book: Book, by_score: dict[str, tuple[Verdict, ...]]) -> Table | None:
    rows = []
    for dimension, verdicts in by_score.items():
        found = [v for v in verdicts if is_significant(book, v)]
        states = [v.stability.state for v in found if v.stability is not None]
        if verdicts:
            in_drops = [states.count("stable"), states.count("rests-on"), states.count("reversed-without")]
            rows.append((book.title(dimension), *map(count, (len(verdicts), len(found), *in_drops))))
    heads = ("Score", "Pairs", "Significant", "Hold in every drop", "Need one family", "Turn without one")
    return Table(heads, tuple(rows), frozenset(range(1, 6))) if rows else None


def _pairs(book: Book, found: Sequence[Verdict]) -> Table | None:
    families = sorted({m.labels["dropped"] for m in book.every("lofo.contrast", dimension=AGGREGATE)})
    if not found or not families:
        return None
    rows = sorted(
        (
            listing(sorted(clean(name, 60) for name in v.claim.subjects)),
            *(_drop(book, v, family) for family in families),
            family_words(book, v),
        )
        for v in found
    )
    heads = ("Pair", *(f"without judge family {clean(family, 60)}" for family in families), "Result")
    return Table(heads, tuple(rows), summary="Every pair of the overall score without each judge family")


def _drop(book: Book, verdict: Verdict, family: str) -> str:
    high, low = verdict.claim.subjects
    labels = {"dimension": AGGREGATE, "dropped": family}
    item: Measurement | None = book.one("lofo.contrast", **labels, high=high, low=low)
    if item is None or item.value is None:
        return "not comparable"
    if item.value <= 0:
        return "turns"
    p, adjusted = item.detail.get("p"), item.detail.get("p_adjusted")
    said = p_value(float(p)) if isinstance(p, (int, float)) else "not tested"
    return said + (f", adjusted {p_value(float(adjusted))}" if isinstance(adjusted, (int, float)) else "")


def _rho(book: Book) -> Table | None:
    """Rank correlations with and without each family, of estimates: what calls for the held-out judge."""
    families = sorted({m.labels["dropped"] for m in book.every("lofo.rho")})
    rows = [
        (book.title(d), *(book.shown("lofo.rho", dimension=d, dropped=family) for family in families))
        for d in book.dimensions
        if any(True for _ in book.every("lofo.rho", dimension=d))
    ]
    heads = ("Score", *(f"without judge family {clean(family, 60)}" for family in families))
    summary = "Rank correlation ρ of the agents’ scores with and without each judge family"
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), summary) if rows else None
