"""Would one judge have said the same? Each judge's own order and discoveries beside the panel's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.records import AGGREGATE, Measurement
from assaymark.report.book import Book
from assaymark.report.formats import alpha, clean, count, number, plural, sentence, state_words, words
from assaymark.report.tables import Table


@dataclass(frozen=True, slots=True)
class SingleView:
    """The section. Counts and correlations only: which agent a judge alone puts first is not said."""

    answer: str
    rho: Table | None
    discoveries: Table | None
    note: str


def single_view(book: Book) -> SingleView:
    """The whole section from the measurements of a run."""
    found = list(book.every("single.discoveries"))
    return SingleView(
        answer=single_answer(book),
        rho=_rho(book),
        discoveries=_discoveries(book, found) if found else None,
        note=_note(book),
    )


def rhos(book: Book, dimension: str = AGGREGATE) -> list[Measurement]:
    """The rank correlations of two judges' orders that are defined."""
    return [m for m in book.every("single.rho", dimension=dimension) if m.value is not None]


def rho_words(values: Sequence[float]) -> str:
    """The range of several correlations.

    >>> rho_words([0.8, 0.2]), rho_words([1.0])
    ('0.20 to 0.80', '1.00')
    """
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def only_alone(item: Measurement) -> int:
    """How many significant contrasts a judge finds that the panel does not find in the same direction."""
    only = item.detail.get("only")
    if isinstance(only, (list, tuple)):
        return len(only)
    overlap = item.detail.get("overlap")
    return round(item.value or 0) - overlap if isinstance(overlap, int) else 0


def single_answer(book: Book) -> str:
    """The answer in one or two sentences that follow from the numbers."""
    pairs, alone = rhos(book), [m for m in book.every("single.discoveries") if m.value is not None]
    if not pairs and not alone:
        every = (*book.by_name.get("single.rho", ()), *book.by_name.get("single.discoveries", ()))
        return sentence(state_words(every[0])) if every else "Not measured: no judge was analysed alone."
    said = []
    if pairs:
        values = [m.value or 0.0 for m in pairs]
        how = "one and the same order" if min(values) >= 1 - 1e-9 else "different orders"
        said.append(f"Alone, the judges put the agents in {how}: ρ {rho_words(values)} on the overall score.")
    if alone:
        extra = sum(only_alone(m) for m in alone)
        said.append(
            f"Together they find {plural(extra, 'difference')} significant that the panel does not find."
            if extra
            else "None finds a significant difference that the panel does not find."
        )
    return " ".join(said)


def _rho(book: Book) -> Table | None:
    measured = book.by_name.get("single.rho", ())
    pairs = sorted({(m.labels.get("a", ""), m.labels.get("b", "")) for m in measured})
    if not pairs:
        return None
    rows = [
        (book.title(d), *(book.shown("single.rho", dimension=d, a=a, b=b) for a, b in pairs))
        for d in book.dimensions
        if any(True for _ in book.every("single.rho", dimension=d))
    ]
    heads = ("Score", *(f"{clean(a, 40)} and {clean(b, 40)}" for a, b in pairs))
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))))


def _discoveries(book: Book, found: Sequence[Measurement]) -> Table:
    heads = ("Judge", "Significant alone", "Also found by the panel", "Found by this judge alone")
    rows = [_discovery(book, m) for m in sorted(found, key=lambda m: m.labels.get("judge", ""))]
    panel = book.one("panel.discoveries")
    if panel is not None:
        rows.append(("The whole panel", _of(book, panel), "", ""))
    return Table(heads, tuple(rows), frozenset({1, 2, 3}))


def _discovery(book: Book, item: Measurement) -> tuple[str, ...]:
    name = clean(item.labels.get("judge", ""), 80)
    if item.value is None:
        return name, state_words(item), "", ""
    overlap = item.detail.get("overlap")
    both = count(overlap) if isinstance(overlap, int) else "not measured"
    return name, _of(book, item), both, count(only_alone(item))


def _of(book: Book, item: Measurement) -> str:
    if item.value is None:
        return state_words(item)
    family = item.detail.get("family")
    return book.to(item, count(round(item.value)) + (f" of {count(family)}" if isinstance(family, int) else ""))


def _note(book: Book) -> str:
    panel = book.one("panel.discoveries")
    if panel is None or panel.value is None:
        return ""
    return (
        f"Significant after Holm at α {alpha(book.run.study.inference.alpha)}, by a cluster t weighted by records, "
        "over all differences on the dimensions; it decides no claim. More findings of one judge are no evidence of "
        f"more differences between agents: {_alone_words(book)}what one judge alone finds is not supported."
    )


def _alone_words(book: Book) -> str:
    alone = [m.value for m in book.every("single.discoveries") if m.value is not None]
    panel = book.value("panel.discoveries")
    if not alone or panel is None:
        return ""
    more = sum(value > panel for value in alone)
    return f"{words(more)} of {words(len(alone))} find more than the panel, and " if more else ""
