"""What else could explain a difference? Judges' liking of their own family, length, one overall impression, time.

The tables describe judges and the design, so they are shown whatever the verdicts are; of pairs they hold counts alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from assaymark.metrology.multiplicity import LEVEL_SLACK
from assaymark.records import AGGREGATE, Measurement, Verdict
from assaymark.report.book import Book
from assaymark.report.claim_checks import is_significant
from assaymark.report.formats import (
    clean,
    count,
    counted,
    interval,
    listing,
    number,
    p_value,
    sentence,
    shown,
    signed,
    span,
    state_words,
)
from assaymark.report.tables import Table

_LAGS: Final = 4
_RESTING: Final = frozenset(("rests-on-own-family", "turns-without-own-family"))


@dataclass(frozen=True, slots=True)
class ExplanationsView:
    """The section: an answer, and a table for each explanation that could be measured."""

    answer: str
    own_family: Table | None
    pairs: Table | None
    dimensions: Table | None
    clusters: Table | None
    notes: tuple[str, ...]


def explanations_view(book: Book) -> ExplanationsView:
    """The whole section from the verdicts and measurements of a run."""
    return ExplanationsView(
        answer=_answer(book),
        own_family=_own_family(book),
        pairs=_pairs(book),
        dimensions=_dimensions(book),
        clusters=_clusters(book),
        notes=(detectable_words(book),),
    )


def _answer(book: Book) -> str:
    found = [v for v in book.on(AGGREGATE, "pair") if is_significant(book, v)]
    if not found:
        return "No difference on the overall score is significant, so there is none to explain."
    numbers = {
        "on judges of the agents’ own makers": sum(v.own_family in _RESTING for v in found),
        "on judges that each share a family with one of the two": sum(
            v.own_family == "no-disinterested-judge" for v in found
        ),
        "perhaps on length": sum(v.length in ("may-be-length", "length") for v in found),
    }
    parts = [f"{count(n)} {'rests' if n == 1 else 'rest'} {said}" for said, n in numbers.items() if n]
    said = f"Of {counted(len(found), 'significant difference')} on the overall score, "
    return said + (f"{listing(parts)}." if parts else "none is explained by own families or length.")


# --- judges of the agents' own makers -------------------------------------------------------------------------------


def own_family_items(book: Book) -> list[Measurement]:
    """How much more each judge gives agents of its own maker on the overall score, by judge."""
    return [m for m in book.every("judge.own_family", dimension=AGGREGATE) if m.labels["judge"] != "common"]


def _own_family(book: Book) -> Table | None:
    rows = []
    for item in own_family_items(book):
        said = state_words(item) if item.value is None else interval(item.value, item.low, item.high)
        p = item.detail.get("p_holm")
        tested = p_value(float(p)) if isinstance(p, (int, float)) else "not tested"
        rows.append((clean(item.labels["judge"], 60), book.to(item, said), tested))
    heads = ("Judge", "Points more for agents of its own maker than other judges give", "Adjusted p")
    return Table(heads, tuple(rows)) if rows else None


# --- pairs, counted -------------------------------------------------------------------------------------------------


def _pairs(book: Book) -> Table | None:
    """How many significant differences of each score pass each check."""
    rows = []
    for dimension in book.dimensions:
        found = [v for v in book.on(dimension, "pair") if is_significant(book, v)]
        if found:
            rows.append((book.title(dimension), count(len(found)), *_counts(found)))
    heads = (
        "Score", "Significant", "Without own-family judges", "At equal length", "May be length", "Told apart",
        "For other judges",
    )  # fmt: skip
    return Table(heads, tuple(rows), frozenset(range(1, len(heads)))) if rows else None


def _counts(found: list[Verdict]) -> tuple[str, ...]:
    own, length = Counter(v.own_family for v in found), Counter(v.length for v in found)
    distinct, others = Counter(v.distinct for v in found), Counter(v.other_judges for v in found)
    return (
        count(own["clear"]),
        "not tested" if length["not-tested"] == len(found) else count(length["clear"]),
        count(length["may-be-length"] + length["length"]),
        "not applicable" if distinct["not-applicable"] == len(found) else count(distinct["passed"]),
        "not tested" if others["not-tested"] == len(found) else count(others["yes"]),
    )


# --- dimensions -------------------------------------------------------------------------------------------------------


def distinct_items(book: Book) -> list[Measurement]:
    """The correlation of each dimension with the overall impression, in rubric order."""
    found = (book.one("dimension.distinct", dimension=d) for d in book.dimensions if d != AGGREGATE)
    return [item for item in found if item is not None]


def told_apart(book: Book, item: Measurement) -> bool:
    """Whether judges tell a dimension from their overall impression."""
    p = item.detail.get("p_holm")
    return isinstance(p, (int, float)) and p <= book.run.study.inference.alpha + LEVEL_SLACK


def _dimensions(book: Book) -> Table | None:
    rows = []
    for item in distinct_items(book):
        ends = "no interval" if item.low is None or item.high is None else span(item.low, item.high)
        p = item.detail.get("p_holm")
        result = ("yes" if told_apart(book, item) else "no") if item.value is not None else state_words(item)
        rows.append(
            (
                book.title(item.labels["dimension"]),
                book.to(item, shown(item)),
                ends,
                p_value(float(p)) if isinstance(p, (int, float)) else "not tested",
                result,
            )
        )
    cut = number(book.run.study.claims.distinct)
    heads = ("Dimension", f"Correlation, below {cut} needed", "Interval", "Adjusted p", "Told apart")
    return Table(heads, tuple(rows), frozenset({1, 2, 3})) if rows else None


# --- clusters ---------------------------------------------------------------------------------------------------------


def _clusters(book: Book) -> Table | None:
    """How far neighbouring clusters are alike, lag by lag."""
    rows = []
    for dimension in book.dimensions:
        item = book.one("order.autocorrelation", dimension=dimension)
        lags = [] if item is None else [lag for lag in item.detail.get("lags", ()) if isinstance(lag, (int, float))]
        if item is not None and lags:
            flag = item.detail.get("flag")
            said = "follow each other" if item.detail.get("flagged") else "not shown to follow each other"
            cut = f"{said} (above {number(float(flag))} needed)" if isinstance(flag, (int, float)) else said
            cells = [signed(float(lag)) for lag in lags[:_LAGS]]
            cells += [""] * (_LAGS - len(cells))
            rows.append((book.title(dimension), book.to(item, cells[0]), *cells[1:], cut))
    heads = ("Score", *(f"Lag {lag}" for lag in range(1, _LAGS + 1)), "Clusters")
    return Table(heads, tuple(rows), frozenset(range(1, _LAGS + 1))) if rows else None


def order_words(book: Book) -> str:
    """How the plan takes the clusters: independent, or following each other in time."""
    item = book.one("order.autocorrelation", dimension=AGGREGATE)
    order = book.run.study.inference.cluster_order if item is None else item.detail.get("order")
    return {"exchangeable": "taken as independent", "consecutive": "in time order"}.get(str(order), "not stated")


def detectable_words(book: Book) -> str:
    """The smallest differences that the design could detect."""
    item = book.one("order.detectable", dimension=AGGREGATE)
    if item is None or item.value is None:
        return sentence(f"Smallest detectable difference: {shown(item)}")
    pair, power = item.detail.get("pair"), item.detail.get("power")
    single = f", {number(float(pair))} for a single pair" if isinstance(pair, (int, float)) else ""
    with_power = f" with power {number(float(power), 1)}" if isinstance(power, (int, float)) else ""
    return (
        f"The smallest differences that this study could detect{with_power}: {number(item.value)} points for a "
        f"leader{single}. A leader needs all of its pairs and is found less often."
    )
