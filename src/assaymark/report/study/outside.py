"""What did the held-out judge settle? The probe of the pairs that leaving out a judge family turns."""

from __future__ import annotations

from collections.abc import Sequence

from assaymark.records import Measurement
from assaymark.report.blocks import HATCHED, Group, Inline, Table, Text, plain
from assaymark.report.lookup import Book
from assaymark.report.study.claim_checks import gap_words
from assaymark.report.study.controls import supported_orders
from assaymark.report.text import alpha, listing, p_value, plural, state_words
from assaymark.text import clean, count, count_of, number


def outside_group(book: Book) -> Group:
    """What became of the held-out judge: every pair it was asked about. Directions only where they are supported."""
    pairs = book.by_name.get("probe.contrast", ())
    tables = (_table(book, pairs),) if pairs else ()
    said = Text(outside_answer(book), "cap")
    return Group("What did the held-out judge settle?", (said, *tables), "outside")


def outside_name(book: Book) -> str:
    """The held-out judge of the plan with its family; empty where none was committed."""
    probe = book.run.study.stability.probe
    return "" if probe is None else f"{clean(probe.name, 60)} (judge family {clean(probe.family, 60)})"


def outside_state(book: Book) -> str:
    """Whether the held-out judge was asked, in a few words."""
    item = book.one("probe.state")
    asked = len(compared_pairs(book))
    if item is not None and item.state != "ok":
        return state_words(item)
    if asked:
        return f"asked about {plural(asked, 'pair')}"
    contested = contested_pairs(book)
    if contested:
        return f"not asked, though {plural(contested, 'pair')} {'turns' if contested == 1 else 'turn'} round"
    return "not committed" if book.run.study.stability.probe is None else "not needed"


def compared_pairs(book: Book) -> list[Measurement]:
    """The contested pairs on which the held-out judge graded both agents on some common question."""
    return [item for item in book.by_name.get("probe.contrast", ()) if item.value is not None]


def contested_pairs(book: Book) -> int:
    """How many pairs of agents some left-out family turns round, on all scores."""
    item = book.one("probe.state")
    return 0 if item is None or item.value is None else round(item.value)


def outside_answer(book: Book) -> str:
    """The held-out judge and where it finds a difference, in sentences."""
    name, state = outside_name(book), outside_state(book)
    if not name:
        return (
            f"No held-out judge was named in the plan: {state}."
            if state != "not committed"
            else ("No held-out judge was named in the plan, so what turns with a judge family stays unsettled.")
        )
    pairs = compared_pairs(book)
    if not pairs:
        return f"The held-out judge, {name}: {state}."
    alike = sum(not finds(m) for m in pairs)
    settled = "none" if not alike else "all" if alike == len(pairs) else count(alike)
    return (
        f"The held-out judge, {name}, was {state}{_failing(book)}. It finds no difference in {settled} of them "
        f"({alpha(book.run.study.inference.alpha)} needed): there no order is supported."
    )


def _failing(book: Book) -> str:
    item = book.one("probe.state")
    found = {} if item is None else item.detail.get("rho", {})
    cut = book.run.study.stability.rho
    low = sorted(clean(str(f), 40) for f, value in found.items() if isinstance(value, (int, float)) and value < cut)
    return f", because without judge family {listing(low, last='or')} ρ falls below {number(cut, 1)}" if low else ""


def finds(item: Measurement) -> bool:
    """Whether the held-out judge finds a difference: its interval does not hold zero."""
    return item.low is None or item.high is None or not item.low <= 0 <= item.high


def found_words(item: Measurement) -> str:
    """Whether it finds a difference, with its p-value; of no pair the side.

    >>> item = Measurement(name="probe.contrast", labels={}, value=0.1, low=-0.1, high=0.3, n=9, n_of="", method="",
    ...                    detail={"p": 0.3})
    >>> found_words(item)
    'no difference, p = .300'
    """
    p = item.detail.get("p")
    said = "a difference" if finds(item) else "no difference"
    return f"{said}, {p_value(float(p))}" if isinstance(p, (int, float)) else said


def _table(book: Book, pairs: Sequence[Measurement]) -> Table:
    order = {name: at for at, name in enumerate(book.dimensions)}
    place = {name: order.get(name, len(order)) for name in {m.labels.get("dimension", "") for m in pairs}}
    rows = sorted(
        ((place[m.labels.get("dimension", "")], _row(book, m)) for m in pairs),
        key=lambda one: (one[0], *map(plain, one[1])),
    )
    heads = ("Score", "Pair", "Difference", "The judge finds", "n", "Supported")
    return Table(heads, tuple(row for _, row in rows), frozenset({4}), "")


def _row(book: Book, item: Measurement) -> tuple[Inline, ...]:
    dimension = item.labels.get("dimension", "")
    high, low = item.labels.get("high", ""), item.labels.get("low", "")
    allowed = supported_orders(book, dimension)
    names = " and ".join(sorted((clean(high, 60), clean(low, 60))))
    n = count_of(item.n, item.n_of)
    if item.value is None:
        return book.title(dimension), names, state_words(item), "none", n, "no order"
    found = found_words(item)
    for pair, sign in (((high, low), 1), ((low, high), -1)):
        if pair in allowed:
            said = f"{clean(pair[0], 60)} above {clean(pair[1], 60)}"
            return book.title(dimension), names, book.to(item, gap_words(item, sign)), found, n, said
    # Its size and sign are parts of what is not supported.
    return book.title(dimension), names, HATCHED, found, n, "no order"
