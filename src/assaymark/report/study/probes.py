"""Two probes beside the scores: other anchors for the same texts, and the clusters after the training cutoff."""

from __future__ import annotations

from collections.abc import Sequence

from assaymark.records import AGGREGATE, Measurement
from assaymark.report.blocks import Block, Figure, Section, Table, notes
from assaymark.report.charts.intervals import DeltaRow, deltas
from assaymark.report.lookup import Book
from assaymark.report.text import counted, interval, listing, p_value, plural, shown, signed, state_words
from assaymark.text import clean, count, number, span


def probe(id_: str, title: str, answer: str, *blocks: Block | None) -> Section:
    """A probe beside the scores, with what of it was measured."""
    return Section(id_, title, answer, tuple(one for one in blocks if one is not None))


# --- other anchors --------------------------------------------------------------------------------------------------


def anchors(book: Book) -> list[Measurement]:
    """The shifts of each score under the other rubric, in rubric order."""
    order = {name: at for at, name in enumerate(book.dimensions)}
    found = book.by_name.get("anchor.shift", ())
    return sorted(found, key=lambda m: (order.get(m.labels.get("dimension", ""), len(order)), m.id))


def changed_anchors(book: Book) -> list[Measurement]:
    """The shifts of the dimensions whose anchors differ; where the run does not say which, all but the aggregate."""
    found = [m for m in anchors(book) if m.labels.get("dimension") != AGGREGATE]
    return [m for m in found if m.detail.get("changed", True)]


def anchor_section(book: Book) -> Section:
    """The anchor probe. How many pairs change order is counted, not named: neither order is supported here."""
    found, title = anchors(book), "Do the anchors carry the score?"
    if not found:
        return probe("anchors", title, "Not run: no texts were graded again under another rubric.")
    measured = [m for m in found if m.value is not None]
    if not measured:
        return probe("anchors", title, f"The anchor probe is {state_words(found[0])}.")
    rubric, judge = (clean(str(measured[0].detail.get(key, "")), 60) for key in ("rubric", "judge"))
    rows = [_anchor_row(book, m) for m in measured]
    desc = "; ".join(f"{row.title}: {row.shown}, {row.note}" for row in rows)
    wide, narrow = deltas("anchors", rows, "Shift of each score under the other anchors", desc)
    caption = (
        f"Score under rubric {rubric or 'of the probe'} minus score under {clean(book.run.rubric.name, 60)}, the same "
        f"texts and the same judge{f' ({judge})' if judge else ''}, in rubric points with intervals over clusters."
    )
    note = "One judge alone grades this probe, so it says nothing about agreement under the other rubric."
    table = _anchor_table(book, found)
    figure = Figure("How far do the scores move?", caption, wide, narrow, values=table)
    return probe("anchors", title, anchor_answer(book), figure, table, *notes([note]))


def anchor_answer(book: Book) -> str:
    """Which dimensions move with their anchors, in one sentence."""
    changed = [m for m in changed_anchors(book) if m.value is not None]
    moved = [book.title(m.labels["dimension"]) for m in changed if not _holds_zero(m)]
    if not changed:
        return "No dimension has other anchors in the probe."
    if not moved:
        return f"Other anchors move none of {plural(len(changed), 'score')} measurably."
    return f"{listing(moved)}: the score depends on how its anchors are written."


def _anchor_row(book: Book, item: Measurement) -> DeltaRow:
    before, after = item.detail.get("sd_before"), item.detail.get("sd_after")
    spread = ""
    if isinstance(before, (int, float)) and isinstance(after, (int, float)):
        spread = f"spread {number(before)} before, {number(after)} after; "
    same = item.labels.get("dimension") != AGGREGATE and item.detail.get("changed") is False
    title = book.title(item.labels.get("dimension", "")) + (" (same anchors)" if same else "")
    value = item.value or 0.0
    bounds = None if item.low is None or item.high is None else (item.low, item.high)
    return DeltaRow(
        title=title,
        shown=signed(value) + (f" ({span(*bounds)})" if bounds else ""),
        note=f"{spread}n = {count(item.n)}",
        value=value,
        bounds=bounds,
        mark="mn",
        zero="no shift",
    )


def _anchor_table(book: Book, found: Sequence[Measurement]) -> Table:
    heads = ("Score", "Anchors", "Shift", "p", "Spread before", "Spread after", "Pairs that change order", "n")
    rows = []
    for item in found:
        detail = item.detail
        dimension = item.labels.get("dimension", "")
        what = "all" if dimension == AGGREGATE else "changed" if detail.get("changed", True) else "same"
        shift = state_words(item) if item.value is None else book.to(item, shift_words(item))
        p = detail.get("p")
        agents = detail.get("order_before") or ()
        pairs = len(agents) * (len(agents) - 1) // 2
        flips = detail.get("flips")
        rows.append(
            (
                book.title(dimension),
                what,
                shift,
                p_value(float(p)) if isinstance(p, (int, float)) else "not tested",
                _two(detail.get("sd_before")),
                _two(detail.get("sd_after")),
                f"{count(flips)}{f' of {count(pairs)}' if pairs else ''}" if isinstance(flips, int) else "not measured",
                count(item.n),
            )
        )
    return Table(heads, tuple(rows), frozenset({4, 5, 7}))


def shift_words(item: Measurement) -> str:
    """A shift or gap with its interval, in points."""
    return f"{interval(item.value or 0.0, item.low, item.high)} points"


def _two(value: object) -> str:
    return number(float(value)) if isinstance(value, (int, float)) else "not measured"


def _holds_zero(item: Measurement) -> bool:
    return item.low is None or item.high is None or item.low <= 0 <= item.high


# --- after the cutoff -----------------------------------------------------------------------------------------------


def contamination_gaps(book: Book) -> list[Measurement]:
    """The gaps between later and earlier clusters: all instruments together, then each of them."""
    found = book.by_name.get("contamination.gap", ())
    return sorted(found, key=lambda m: (m.labels.get("split") != "all", m.labels.get("split", "")))


def contamination_section(book: Book) -> Section:
    """The contamination probe, with the instruments that are on one side only."""
    found, title = contamination_gaps(book), "Do later clusters differ?"
    if not found:
        said = "the plan names no clusters after the training cutoff, so scores may rest on remembered events."
        return probe("contamination", title, f"Not run: {said}")
    heads = ("Split", "Later minus earlier", "p", "Later", "Earlier")
    rows = tuple(
        (split_words(m), shown(m) if m.value is None else book.to(m, shift_words(m)), _p(m), _side(m, "post"),
         _side(m, "earlier"))
        for m in found
    )  # fmt: skip
    absent = sorted({clean(str(name), 40) for m in found for name in m.detail.get("absent", ())})
    said = f"On one side only, and so not compared: {listing(absent)}." if absent else ""
    return probe("contamination", title, contamination_answer(book), Table(heads, rows, summary=""), *notes([said]))


def contamination_answer(book: Book) -> str:
    """Whether scores differ after the cutoff, as far as the tests say."""
    found = contamination_gaps(book)
    tested = [m for m in found if m.value is not None and isinstance(m.detail.get("p"), (int, float))]
    if not tested:
        return f"The contamination probe is {state_words(found[0])}." if found else "Not run."
    cut = book.run.study.inference.alpha
    moved = [split_words(m) for m in tested if float(m.detail["p"]) <= cut]
    if moved:
        return f"Scores after the cutoff differ from those before on: {listing(moved)}."
    return (
        f"None of {plural(len(tested), 'split')} shows a difference after the cutoff; "
        "that bounds contamination, it does not exclude it."
    )


def split_words(item: Measurement) -> str:
    """Which records a gap compares: all of them, or those of one instrument."""
    split = clean(item.labels.get("split", ""), 60)
    return "all records" if split == "all" else split.removeprefix("instrument:")


def _p(item: Measurement) -> str:
    p = item.detail.get("p")
    return p_value(float(p)) if isinstance(p, (int, float)) else "not tested"


def _side(item: Measurement, side: str) -> str:
    n, clusters = item.detail.get(f"n_{side}"), item.detail.get(f"clusters_{side}")
    if not isinstance(n, int):
        return "not stated"
    return count(n) + (f" in {counted(clusters, 'cluster')}" if isinstance(clusters, int) else "")
