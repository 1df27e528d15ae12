"""Does length alone move the score? A straight line, and a scan for a break that a straight line would miss."""

from __future__ import annotations

from collections.abc import Sequence

from assaymark.records import AGGREGATE, Measurement
from assaymark.report.book import Book
from assaymark.report.figures import scan_line
from assaymark.report.formats import count, number, p_value, plural, signed, state_words
from assaymark.report.probes import ProbeView
from assaymark.report.tables import Figure, Table


def style_view(book: Book) -> ProbeView:
    """The stylometric audit of the honest records."""
    item = book.one("style.threshold", dimension=AGGREGATE)
    points = [] if item is None else scan_points(item)
    figure = None
    if item is not None and item.value is not None and len(points) > 1:
        figure = _figure(book, item, points)
    return ProbeView(
        answer=style_answer(book),
        figure=figure,
        table=_table(points) if figure else None,
        notes=_length_matched(book),
    )


def scan_points(item: Measurement) -> list[tuple[float, float, int]]:
    """The scanned splits as (words, difference, records below), by words; entries of another form are left out."""
    found = []
    for entry in item.detail.get("scan", ()):
        if isinstance(entry, (list, tuple)) and len(entry) == 3:
            found.append((float(entry[0]), float(entry[1]), int(entry[2])))
    return sorted(found)


def style_answer(book: Book) -> str:
    """The straight line and the break, in one or two sentences."""
    line = book.one("score.length_correlation", dimension=AGGREGATE)
    item = book.one("style.threshold", dimension=AGGREGATE)
    said = []
    if line is not None:
        value = state_words(line) if line.value is None else number(line.value)
        said.append(f"Length and panel score correlate at {value}.")
    if item is None:
        said.append("No break by length was looked for, so a penalty on short texts alone would not show.")
    elif item.value is None:
        said.append(f"The scan for a break is {state_words(item)}.")
    else:
        gap, p = item.detail.get("difference"), item.detail.get("p")
        size = f": {signed(float(gap))} points from there on" if isinstance(gap, (int, float)) else ""
        tested = f" ({p_value(float(p))})" if isinstance(p, (int, float)) else ""
        said.append(f"The scores part most at {count(round(item.value))} words{size}{tested}.")
    return " ".join(said)


def _figure(book: Book, item: Measurement, points: Sequence[tuple[float, float, int]]) -> Figure:
    chosen, terse = item.value or 0.0, float(book.run.study.cells.terse_tokens)
    first, last = points[0], points[-1]
    desc = (
        f"The difference is {signed(first[1])} at {count(round(first[0]))} words and {signed(last[1])} at "
        f"{count(round(last[0]))}; the scores part most at {count(round(chosen))}"
    )
    line = [(tokens, gap) for tokens, gap, _ in points]
    wide, narrow = scan_line("scan", line, chosen, terse, "Score above minus below each length", desc)
    caption = (
        "Mean panel score of the texts with at least so many words minus that of the shorter ones, in rubric points. "
        "Solid: the split where they part most. Dashed: below it the plan calls a text terse."
    )
    return Figure("Where do long and short texts part?", caption, wide, narrow)


def _table(points: Sequence[tuple[float, float, int]]) -> Table:
    rows = tuple((count(round(tokens)), signed(gap), count(below)) for tokens, gap, below in points)
    return Table(("Words", "Above minus below, points", "Records below"), rows, frozenset({1, 2}))


def _length_matched(book: Book) -> tuple[str, ...]:
    found = book.by_name.get("length_matched.contrast", ())
    measured = [m for m in found if m.value is not None]
    if not measured:
        return ()
    cut = book.run.study.inference.alpha
    tested = [(m.value or 0.0, float(m.detail.get("p_holm", m.detail.get("p", 1.0)))) for m in measured]
    kept = sum(value > 0 and p <= cut for value, p in tested)
    said = f"{count(kept)} of {plural(len(measured), 'contrast')} {'keeps' if kept == 1 else 'keep'}"
    return (f"On texts of one length, {said} the panel’s direction and significance.",)
