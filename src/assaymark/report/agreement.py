"""Do the judges agree? Kappa by dimension against the gates, within formats, by pair, and how the scale was used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assaymark.claims import agreement_status
from assaymark.records import AGGREGATE, Measurement
from assaymark.report.book import KAPPA, Book
from assaymark.report.figures import ForestRow, Gates, ScaleRow, forest, scale_use
from assaymark.report.figures.judges import POINTED, JudgeWords, told
from assaymark.report.formats import (
    AGREES,
    clean,
    count,
    interval,
    listing,
    number,
    percent,
    plural,
    shown,
    span,
    state_words,
    words,
)
from assaymark.report.tables import Figure, Table


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """One dimension in the table beside the figure, every cell already in words.

    ``by`` is the kappa and the format that decide the gate; empty where the row's own kappa does.
    """

    title: str
    kappa: str
    interval: str
    bootstrap: str
    n: str
    clusters: str
    fleiss: str
    redundancy: str
    gate: str
    by: str


@dataclass(frozen=True, slots=True)
class FormatRow:
    """Agreement within one submission format."""

    title: str
    format: str
    kappa: str
    n: str
    clusters: str
    gate: str


@dataclass(frozen=True, slots=True)
class AgreementView:
    """The section. ``scale`` and ``pairs`` are empty when the records do not carry contingency tables.

    ``traits`` sums up the multitrait-multimethod matrix by dimension.
    """

    answer: str
    forest: Figure | None
    rows: tuple[AgreementRow, ...]
    formats: tuple[FormatRow, ...]
    pair_heads: tuple[str, ...]
    pair_rows: tuple[tuple[str, tuple[str, ...]], ...]
    scale: Figure | None
    notes: tuple[str, ...]
    traits: Table | None = None


def agreement_view(book: Book) -> AgreementView:
    """The whole section from the measurements of a run."""
    measured = [(d, book.one(KAPPA, dimension=d)) for d in book.dimensions]
    found = [(d, m) for d, m in measured if m is not None]
    ordered = sorted(found, key=lambda pair: (pair[0] != AGGREGATE, pair[1].value is None, -(pair[1].value or 0.0)))
    heads, pairs = _pairs(book, ordered)
    return AgreementView(
        answer=_answer(book, found),
        forest=_forest(book, ordered) if ordered else None,
        rows=tuple(_row(book, d, m) for d, m in ordered),
        formats=_formats(book),
        pair_heads=heads,
        pair_rows=pairs,
        scale=_scale(book, ordered),
        notes=_notes(book, ordered),
        traits=_traits(book),
    )


def _answer(book: Book, found: Sequence[tuple[str, Measurement]]) -> str:
    if not found:
        return "Agreement was not measured."
    if all(m.value is None for _, m in found):
        return f"Agreement is {state_words(found[0][1])}."
    dimensions = [d for d, _ in found if d != AGGREGATE]
    by = {s: [_titled(book, d) for d in dimensions if book.status(d) == s] for s in ("publish", "methodology", "halt")}
    parts = []
    if AGGREGATE in dict(found):
        decided = _bracketed(book.gating_note(AGGREGATE), "κ ")
        status = book.status(AGGREGATE) or "halt"
        parts.append(f"On the overall score agreement is {AGREES[status]}{decided}.")
    if dimensions:
        some = words(len(by["publish"])).capitalize() if by["publish"] else "None"
        parts.append(f"{some} of {plural(len(dimensions), 'dimension')}: enough agreement.")
    if by["methodology"]:
        parts.append(f"{_names(by['methodology'])}: weak agreement, no headline.")
    if by["halt"]:
        parts.append(f"{_names(by['halt'])}: too little agreement, no claim.")
    return " ".join(parts)


def _titled(book: Book, dimension: str) -> str:
    return book.title(dimension) + _bracketed(book.gating_note(dimension))


def _bracketed(note: str, sign: str = "") -> str:
    return f" ({sign}{note})" if note else ""


def _names(titles: Sequence[str]) -> str:
    text = listing([title[:1].lower() + title[1:] for title in titles])
    return text[:1].upper() + text[1:]


def bootstrap_of(item: Measurement) -> tuple[float, float] | None:
    """The ends of a kappa's percentile bootstrap, which is too narrow with few clusters and so printed second."""
    second = item.detail.get("bootstrap")
    return _pair(second.get("low"), second.get("high")) if isinstance(second, Mapping) else None


def _pair(low: object, high: object) -> tuple[float, float] | None:
    return (float(low), float(high)) if isinstance(low, (int, float)) and isinstance(high, (int, float)) else None


def _forest_row(book: Book, dimension: str, item: Measurement) -> ForestRow:
    gating = book.gating(dimension)
    return ForestRow(
        title=book.title(dimension),
        value=item.value,
        interval=_pair(item.low, item.high),
        bootstrap=bootstrap_of(item),
        status=book.status(dimension),
        state=state_words(item),
        pooled=dimension == AGGREGATE,
        by=book.gating_note(dimension),
        gating=gating.value if gating is not None and "format" in gating.labels else None,
        within=tuple(m.value for m in _gated_formats(book, dimension) if m.value is not None),
    )


def _gated_formats(book: Book, dimension: str) -> list[Measurement]:
    """The kappas within formats that have a gate of their own."""
    found = book.every(KAPPA, dimension=dimension)
    return [m for m in found if "format" in m.labels and not m.state.startswith("too few")]


def _forest(book: Book, found: Sequence[tuple[str, Measurement]]) -> Figure:
    rows = [_forest_row(book, d, m) for d, m in found]
    gates = book.run.study.gates
    desc = "; ".join(f"{r.title}: {_said(r)}" for r in rows)
    title = "Agreement between judges on each score, against the gates"
    wide, narrow = forest("kappa", rows, Gates(gates.halt, gates.publish), title, desc)
    sizes = sorted({m.n for _, m in found})
    n = count(sizes[-1]) if sizes else "no"
    caption = (
        f"Mean pairwise quadratic-weighted κ, where 1 is full agreement and 0 is chance; n = {n} "
        f"{clean(found[0][1].n_of, 40)}. Thick bar: jackknife interval over the clusters. "
        f"Thin line below it: their percentile bootstrap. Square: one dimension. Diamond: the overall score."
    )
    if any(row.within for row in rows):
        caption += " Small circle: κ within one submission format."
    if any(row.by for row in rows):
        caption += " Upright stroke: the lowest κ within a format that has a gate of its own; it decides."
    return Figure("How far is each score from a gate?", caption, wide, narrow)


def _said(row: ForestRow) -> str:
    decided = _bracketed(row.by)
    if row.value is None:
        return row.state + decided
    word = AGREES[row.status] if row.status else "no gate"
    return f"{interval(row.value, *(row.interval or (None, None)))}, {word}{decided}"


def _row(book: Book, dimension: str, item: Measurement) -> AgreementRow:
    ends, bootstrap = _pair(item.low, item.high), bootstrap_of(item)
    return AgreementRow(
        title=book.title(dimension),
        kappa=book.to(item, shown(item)),
        interval=span(*ends) if ends else "no interval",
        bootstrap=span(*bootstrap) if bootstrap else "no interval",
        n=count(item.n),
        clusters=_clusters(item),
        fleiss=book.shown("kappa.fleiss", dimension=dimension),
        redundancy=book.shown("redundancy", dimension=dimension),
        gate=AGREES[found] if (found := book.status(dimension)) else "no gate",
        by=book.gating_note(dimension),
    )


def _clusters(item: Measurement) -> str:
    clusters = item.detail.get("clusters")
    return count(clusters) if isinstance(clusters, int) else "not stated"


def _formats(book: Book) -> tuple[FormatRow, ...]:
    order = {name: at for at, name in enumerate(book.dimensions)}
    found = [m for m in book.every(KAPPA) if "format" in m.labels]
    found.sort(key=lambda m: (order.get(m.labels.get("dimension", ""), len(order)), m.id))
    return tuple(_format_row(book, m) for m in found)


def _format_row(book: Book, item: Measurement) -> FormatRow:
    gates = book.run.study.gates
    few = item.state.startswith("too few")
    status = agreement_status(item.value, publish=gates.publish, halt=gates.halt)
    return FormatRow(
        title=book.title(item.labels.get("dimension", "")),
        format=clean(item.labels["format"], 60),
        kappa=_format_kappa(book, item),
        n=count(item.n),
        clusters=_clusters(item),
        gate=state_words(item) if few or item.value is None else AGREES[status],
    )


def _format_kappa(book: Book, item: Measurement) -> str:
    if item.value is None:
        return "no number"
    bounds = "no interval" if item.low is None or item.high is None else span(item.low, item.high)
    return book.to(item, f"{book.kappa_words(item)} ({bounds})")


def _pairs(
    book: Book, found: Sequence[tuple[str, Measurement]]
) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    names = sorted({name for _, m in found for name in m.detail.get("pairs", {})})
    rows = []
    for dimension, item in found:
        pairs = item.detail.get("pairs", {})
        cells = tuple(_kappa_cell(pairs.get(name)) for name in names)
        rows.append((book.title(dimension), cells))
    return tuple(_pair_title(name) for name in names), tuple(rows) if names else ()


def _kappa_cell(value: object) -> str:
    return number(float(value)) if isinstance(value, (int, float)) else "not defined"


def _pair_title(name: str) -> str:
    return " and ".join(clean(part, 40) for part in name.split("|"))


def _scale(book: Book, found: Sequence[tuple[str, Measurement]]) -> Figure | None:
    judges = [judge.name for judge in book.run.study.judges]
    rows = [ScaleRow(book.title(d), tuple(_marginal(m, judge) for judge in judges)) for d, m in found]
    rows = [row for row in rows if any(row.shares)]
    if not rows or len(judges) > POINTED:
        return None
    titles = [clean(judge, 60) for judge in judges]
    said = tuple(JudgeWords(at, name, _mostly(rows, at)) for at, name in enumerate(titles))
    wide, narrow = scale_use("scale", titles, rows, "How each judge used the marks 1 to 5", told(said))
    caption = "Share of the trajectories that each judge gave each mark, trials averaged and rounded as for κ."
    return Figure("Which marks did each judge give?", caption, wide, narrow, said, table=_marks_table(titles, rows))


def _mostly(rows: Sequence[ScaleRow], judge: int) -> str:
    """The mark that a judge gave most often, score by score."""
    found = []
    for row in rows:
        shares = row.shares[judge]
        if shares is None:
            found.append(f"{row.title} no marks")
        else:
            top = max(range(len(shares)), key=lambda at, shares=shares: shares[at])  # type: ignore[misc]
            found.append(f"{row.title} mostly {top + 1} ({percent(shares[top])})")
    return ", ".join(found)


def _marks_table(judges: Sequence[str], rows: Sequence[ScaleRow]) -> Table:
    cells = [
        (f"{row.title}, {judge}", *(("no marks",) * 5 if shares is None else map(percent, shares)))
        for row in rows
        for judge, shares in zip(judges, row.shares, strict=True)
    ]
    return Table(("Score and judge", "1", "2", "3", "4", "5"), tuple(cells), frozenset(range(1, 6)))


def _marginal(item: Measurement, judge: str) -> tuple[float, ...] | None:
    """A judge's share of each mark, from the first contingency table that the judge is part of."""
    tables = item.detail.get("tables", {})
    for name in sorted(tables):
        pair = name.split("|")
        if judge not in pair:
            continue
        table = tables[name]
        sums = [sum(row) for row in table] if pair[0] == judge else [sum(column) for column in zip(*table, strict=True)]
        total = sum(sums)
        return tuple(value / total for value in sums) if total else None
    return None


def _notes(book: Book, found: Sequence[tuple[str, Measurement]]) -> tuple[str, ...]:
    notes = []
    fleiss = book.one("kappa.fleiss", dimension=AGGREGATE)
    if fleiss is not None:
        notes.append(f"Unweighted Fleiss κ on the overall score is {shown(fleiss)}. It is reported and gates nothing.")
    overlap = book.one("redundancy", dimension=AGGREGATE)
    if overlap is not None:
        notes.append(
            f"Redundancy, the mean correlation between two judges’ scores, is {shown(overlap)}. {_worth_words(book)}"
        )
    alpha = book.one("panel.alpha", dimension=AGGREGATE)
    if alpha is not None and alpha.value is not None:
        ends = interval(alpha.value, alpha.low, alpha.high)
        notes.append(f"Krippendorff’s α on the overall score is {ends}. {_pulling(alpha)}")
    notes += _generalizability(book)
    clusters = [m.detail["clusters"] for _, m in found if isinstance(m.detail.get("clusters"), int)]
    if clusters and min(clusters) < 20:
        notes.append(
            f"With {plural(min(clusters), 'cluster')} a percentile bootstrap is narrower than its level says; the "
            "thick bar is the one to trust. The gate itself compares the point estimate with the cut-offs."
        )
    return tuple(notes)


def _pulling(alpha: Measurement) -> str:
    """Which judges pull the panel's alpha down: those without whom it is higher beyond chance."""
    without = alpha.detail.get("without", {})
    found = [
        f"{clean(judge, 60)} ({number(rest['alpha'])} without it)"
        for judge, rest in without.items()
        if rest["pulls_down"]
    ]
    if not found:
        return "No judge pulls it down beyond chance." if without else "It takes three judges to leave one out."
    return f"{listing(found)} {'pull' if len(found) > 1 else 'pulls'} it down."


def _generalizability(book: Book) -> list[str]:
    """How well the design tells the agents apart on average, and how much judges like single agents."""
    item, liking = (
        book.one(name, dimension=AGGREGATE, **labels)
        for name, labels in (("panel.generalizability", {}), ("panel.variance", {"part": "judge x agent"}))
    )
    if item is None or item.value is None or liking is None or liking.value is None:
        return []
    said = (
        f"The generalizability coefficient of the agents’ means on the overall score is {number(item.value)}: 1 where "
        "agents differ and their means have no error, 0 where they do not differ. The judge × agent component is "
        f"{number(liking.value, 3)} squared points: judges differ in how much they like an agent by a standard "
        f"deviation of {number(liking.value**0.5)} points."
    )
    return [said]


def _traits(book: Book) -> Table | None:
    """Correlations of each dimension by Campbell and Fiske's three kinds; None where none was measured."""
    found = [(d, m) for d in book.dimensions if (m := book.one("dimension.mtmm", dimension=d)) is not None]
    rows = tuple(
        (book.title(d), number(m.value), number(m.detail["other_judges"]), number(m.detail["same_judge"]))
        for d, m in found
        if m.value is not None
    )
    heads = ("Dimension", "other judge, same dimension", "other judge, other dimension", "same judge, other dimension")
    summary = "Correlations by judge and dimension (multitrait-multimethod)"
    return Table(heads, rows, frozenset((1, 2, 3)), summary) if rows else None


def _worth_words(book: Book) -> str:
    item = book.one("panel.effective_judges", dimension=AGGREGATE)
    if item is None or item.value is None:
        why = "" if item is None else f": {state_words(item)}"
        needs = "needs texts of known quality and was not measured"
        return f"How many independent judges the panel is worth {needs}{why}."
    return f"On {count(item.n)} texts of known quality the panel is worth {number(item.value, 1)} independent judges."
