"""What else could explain a difference, as rows of the claim map."""

from __future__ import annotations

from assaymark.records import AGGREGATE, Measurement
from assaymark.report.book import Book, score_words
from assaymark.report.claim_checks import is_significant
from assaymark.report.explanations import distinct_items, own_family_items, told_apart
from assaymark.report.formats import clean, count, count_of, counted, interval, number
from assaymark.report.map_rows import MapRow


def own_family_row(book: Book) -> MapRow:
    """What judges add to agents of their own maker, and how many orders rest on it."""
    row = MapRow(
        "Own-family judges", "Do judges favour agents of their own maker?", "index.html#explanations",
        "What else could explain a difference?",
    )  # fmt: skip
    items = [m for m in own_family_items(book) if m.value is not None]
    if not items:
        return row.not_run("A judge may score its own maker’s agent higher than other judges do.")
    said = [f"{clean(m.labels['judge'], 60)} {interval(m.value or 0.0, m.low, m.high)}" for m in items]
    found = [v for v in book.on(AGGREGATE, "pair") if is_significant(book, v)]
    rests = sum(v.own_family in ("rests-on-own-family", "turns-without-own-family") for v in found)
    verb = "rests" if rests == 1 else "rest"
    conclusion = f"{count(rests)} of {counted(len(found), 'significant pair')} {verb} on it."
    result = f"{'; '.join(said)} points; n = {count_of(items[0].n, items[0].n_of)}"
    return row.run(result, conclusion, *(m.id for m in items))


def _pairs(book: Book, name: str) -> list[Measurement]:
    """The measurements of a kind about the pairs of the overall score, by names: ids have the direction in them."""
    return sorted(book.every(name, dimension=AGGREGATE), key=lambda m: sorted((m.labels["high"], m.labels["low"])))


def length_row(book: Book) -> MapRow:
    """What length adds, and how many orders remain at equal length."""
    row = MapRow(
        "Equal length", "Would the differences remain at equal length?", "index.html#explanations",
        "What else could explain a difference?",
    )  # fmt: skip
    items = _pairs(book, "length.contrast")
    if not items:
        return row.not_run("A longer text may score higher for its length.")
    slopes = [float(slope) for m in items if isinstance(slope := m.detail.get("slope"), (int, float))]
    found = [v for v in book.on(AGGREGATE, "pair") if is_significant(book, v)]
    clear = sum(v.length == "clear" for v in found)
    slope = f"{number(max(slopes))} points a doubling of length; " if slopes else ""
    result = f"{slope}n = {count_of(items[0].n, items[0].n_of)}"
    remain = f"{count(clear)} of {counted(len(found), 'significant pair')} remain at equal length."
    return row.run(result, remain, *(m.id for m in items[:1]))


def distinct_row(book: Book) -> MapRow:
    """Which dimensions the judges tell from their overall impression."""
    row = MapRow(
        "Dimensions told apart", "Do judges tell each dimension from their overall impression?",
        "index.html#explanations", "What else could explain a difference?",
    )  # fmt: skip
    items = [m for m in distinct_items(book) if m.value is not None]
    if not items:
        return row.not_run("Scores of several dimensions may be one overall impression.")
    apart = sum(told_apart(book, m) for m in items)
    said = [f"{score_words(m.labels['dimension'])} {number(m.value or 0.0)}" for m in items]
    result = f"Correlation with the overall impression: {', '.join(said)}; n = {count_of(items[0].n, items[0].n_of)}"
    return row.run(result, f"{count(apart)} of {counted(len(items), 'dimension')} told apart.", *(m.id for m in items))


def others_row(book: Book) -> MapRow:
    """How many orders hold for other judges."""
    row = MapRow(
        "Other judges", "Would other judges like these see the same order?", "index.html#explanations",
        "What else could explain a difference?",
    )  # fmt: skip
    items = [m for m in _pairs(book, "judges.contrast") if m.value is not None]
    if not items:
        return row.not_run("An order may hold for these judges alone; three judge families are needed.")
    found = [v for v in book.on(AGGREGATE, "pair") if is_significant(book, v)]
    yes = sum(v.other_judges == "yes" for v in found)
    pairs = counted(len(found), "significant pair")
    result = f"{count(yes)} of {pairs} hold for other judges; n = {count_of(items[0].n, items[0].n_of)}"
    return row.run(result, "The sentence of any other order names these judges.", *(m.id for m in items[:1]))


def time_row(book: Book) -> MapRow:
    """How far neighbouring clusters are alike."""
    row = MapRow(
        "Clusters in time", "Do neighbouring clusters resemble each other?", "index.html#explanations",
        "What else could explain a difference?",
    )  # fmt: skip
    item = book.one("order.autocorrelation", dimension=AGGREGATE)
    lags = [] if item is None else [float(v) for v in item.detail.get("lags", ()) if isinstance(v, (int, float))]
    if item is None or not lags:
        return row.not_run("Weeks that follow each other count as fewer than they are.")
    said = ", ".join(f"lag {at} {number(value)}" for at, value in enumerate(lags, 1))
    conclusion = "They are taken as independent."
    if item.detail.get("order") == "consecutive":
        conclusion = "The test counts them as fewer clusters."
    elif item.detail.get("flagged"):
        conclusion = "They were declared independent, so orders are qualified at most."
    return row.run(f"Autocorrelation: {said}; n = {count_of(item.n, item.n_of)}", conclusion, item.id)
