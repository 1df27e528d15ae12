"""The pages of every measurement of a run: value, interval, denominator and method, the same for all kinds of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from assaymark.records import AGGREGATE, Measurement, sha256_text
from assaymark.report.blocks import Inline, Linked, Page, Row, Table, row_bytes, row_filters, spaced
from assaymark.report.inputs import RunIndex, judged_range, ranked_alone, supported_orders
from assaymark.report.page import Frame, beside
from assaymark.report.records.calls import Rests
from assaymark.report.text import cell_title, listing, state_words
from assaymark.text import bounds, clean, count_of, number, span

STYLES: Final = ("measured.css",)
"""The style of pages of measurements, beside that of every page."""

_ROW_BYTES, _REF_BYTES, _LABEL_CHARS = 240, 20, 80
_SHARE: Final = "rank.first"
"""It is no score, so that no range of judges can stand for it."""

_OF_AGENTS: Final = frozenset(("score.effect", "lofo.effect", "single.level", _SHARE))
"""Scores and ranks of single agents."""

_KEYS: Final = {"dropped": "without judge family", "family": "judge family", "part": "component"}
"""Labels by other words: agents may be called as a judge family is."""

_AGREED: Final = ("kappa.mean_pairwise", "cell.agreement", "cell.kappa")
_TITLES: Final = {
    "kappa.mean_pairwise": "Agreement, mean pairwise κ",
    "kappa.fleiss": "Agreement, Fleiss κ",
    "redundancy": "Redundancy of judges",
    "panel.alpha": "Agreement, Krippendorff’s α",
    "panel.generalizability": "Generalizability coefficient of agents’ means",
    "panel.variance": "Variance component of a score",
    "score.effect": "Level of an agent",
    "contrast": "Paired difference",
    "rank.first": "Resampled ranks of an agent",
    "recusal.contrast": "Paired difference, judges standing aside for their own family",
    "length.contrast": "Paired difference at equal length",
    "judges.contrast": "Paired difference, judges as a sample",
    "judge.own_family": "Extra points for agents of a judge’s own family",
    "judge.length": "Extra points of a judge for twice the length",
    "dimension.distinct": "Correlation of a dimension with the overall impression",
    "dimension.mtmm": "Correlation of judges on a dimension (multitrait-multimethod)",
    "order.autocorrelation": "Autocorrelation of clusters in time, lag 1",
    "order.detectable": "Smallest detectable difference, for a leader",
    "panel.families": "Judge families",
    "missing.share": "Share of replies that are missing",
    "lofo.rho": "Left-out family, rank correlation",
    "lofo.effect": "Left-out family, level of an agent",
    "lofo.contrast": "Left-out family, paired difference",
    "probe.contrast": "Held-out judge, paired difference",
    "probe.state": "Held-out judge, contested pairs",
    "single.level": "One judge alone, level of an agent",
    "single.rho": "Two judges alone, rank correlation",
    "single.discoveries": "One judge alone, significant differences",
    "panel.discoveries": "The panel, significant differences",
    "panel.effective_judges": "Effective number of judges",
    "cell.score": "Control cell, panel score",
    "cell.honest": "Honest records, panel score",
    "cell.agreement": "Control cell, κ with the honest records",
    "cell.kappa": "Control cell, κ inside (undefined by design)",
    "cell.gate": "Control cell, the number of its rule",
    "cell.halo": "Control cell, self-preference of its own family",
    "cell.drop": "Control cell, left-out family",
    "cell.separation": "Control cells, B minus A",
    "terse.share": "Share of terse rationales",
    "style.threshold": "Break in the score by length",
    "length_matched.contrast": "Paired difference, texts brought to one length",
    "anchor.shift": "Shift under other anchors",
    "human.sample": "Drawn cycles that people graded",
    "human.labels": "Records that people graded",
    "human.agreement": "Agreement of people, mean pairwise κ",
    "human.judge": "A judge beside people, κ",
    "human.contrast": "Paired difference as people see it",
    "contamination.gap": "After the cutoff against before",
    "noise.repetition_stability": "Repetition stability",
    "noise.agent_floor": "Replicate floor",
    "judge.invalid_share": "Invalid replies",
    "datasheet.gate": "Limits on a judge's datasheet",
    "oracle.kappa": "Against the arithmetic oracle, κ",
    "oracle.error": "Against the arithmetic oracle, mean error",
    "agent.flagged_texts": "Share of decisions with instruction-like text",
    "agent.answered": "Answers in the form asked for",
    "agent.limits_kept": "Decisions that keep every limit",
    "agent.seconds": "Seconds of a decision, median",
    "agent.output_tokens": "Output tokens of a decision, median",
    "agent.text_tokens": "Words of a rationale, median",
    "score.length_correlation": "Length and score",
    "evidence.share": "Evidence, share of a state",
    "evidence.chance_corrected": "Evidence, support beyond chance",
    "evidence.no_number_share": "Evidence, records without a number",
    "forecast.mismatch": "Forecast arithmetic",
}
_GROUPS: Final = {
    "Agreement": ("kappa", "redundancy", "panel.alpha", "panel.generalizability", "panel.variance"),
    "Agents": ("score.effect", "contrast", "rank", "order"),
    "Other explanations": ("recusal", "length", "judges", "judge.own_family", "judge.length", "dimension"),
    "A family left out": ("lofo",),
    "Held-out judge": ("probe",),
    "Judges one by one": ("single", "panel"),
    "Controls": ("cell", "terse", "style", "length_matched"),
    "Other anchors, other times": ("anchor", "contamination"),
    "Judges": ("noise", "judge", "datasheet", "oracle", "missing"),
    "People": ("human",),
    "Conduct": ("agent", "score.length_correlation"),
    "Evidence": ("evidence", "forecast"),
}
"""What the buttons above the rows show together: kinds by name, or by the head of their name."""


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One measurement, ready to show: its place in a page, the words of its filter button, its cells, and in ``rests``
    the records that it was computed from, where they have pages."""

    id: str
    anchor: str
    group: str
    title: str
    about: str
    value: str
    interval: str
    n: str
    method: str
    rests: tuple[Linked, ...] = ()

    @property
    def size(self) -> int:
        """About how many bytes the row will take on a page."""
        texts = [self.title, self.about, self.value, self.interval, self.n, self.method]
        texts += [text for ref in self.rests for text in (ref, ref.href)]
        return row_bytes(_ROW_BYTES + _REF_BYTES * len(self.rests), texts)


def measured_rows(book: RunIndex, rests: Rests = lambda _: ()) -> tuple[MeasuredRow, ...]:
    """All measurements of a study. A difference whose order is not supported is without its numbers; a score of an
    agent that shares its tier has the range of its judges in its place."""
    orders = {d: {frozenset(pair) for pair in supported_orders(book, d)} for d in book.dimensions}
    alone = {d: ranked_alone(book, d) for d in book.dimensions}

    def shown(key: str, value: str) -> str:
        if key == "dimension":
            return book.title(value)
        return clean(cell_title(value) if key == "cell" else value, _LABEL_CHARS)

    def hidden(item: Measurement) -> str:
        dimension = item.labels.get("dimension", AGGREGATE)
        if {"high", "low"} <= item.labels.keys():
            known = frozenset((item.labels["high"], item.labels["low"])) in orders.get(dimension, ())
            return "" if known else "not shown: no supported order"
        if item.name in _OF_AGENTS and item.labels.get("agent") not in alone.get(dimension, ()):
            found = None if item.name == _SHARE else judged_range(book, dimension, item.labels.get("agent", ""))
            why = "the agent shares its tier"
            return f"not shown: {why}" if found is None else f"{span(*found)}, range of the judges; {why}"
        return ""

    groups = {name: words for words, names in _GROUPS.items() for name in names}
    ours = {name: measured_title(name, book.sign) for name in _AGREED}
    return rows_of(book.run.measurements, _TITLES | ours, shown, rests, groups, hidden)


def rows_of(
    measurements: Iterable[Measurement],
    titles: Mapping[str, str],
    shown: Callable[[str, str], str] = lambda _, value: clean(value, _LABEL_CHARS),
    rests: Rests = lambda _: (),
    groups: Mapping[str, str] = MappingProxyType({}),
    hidden: Callable[[Measurement], str] = lambda _: "",
) -> tuple[MeasuredRow, ...]:
    """Measurements by kind, in the order of the titles, and then by what they are about; never by value."""
    order, seen, rows = {name: at for at, name in enumerate(titles)}, Counter[str](), list[MeasuredRow]()

    def undirected(item: Measurement) -> str:
        """An id without the higher of two agents: neither place nor link may show an order that is not supported."""
        pair = sorted(value for key, value in item.labels.items() if key in ("high", "low"))
        others = sorted(f"{key}={value}" for key, value in item.labels.items() if key not in ("high", "low"))
        return f"{item.name}[{','.join((*others, *pair))}]"

    for item in sorted(measurements, key=lambda m: (order.get(m.name, len(order)), undirected(m), m.id)):
        anchor, why, labels = f"m{sha256_text(undirected(item))[:10]}", hidden(item), item.labels
        seen[anchor] += 1
        kept = ("high", "low") if why else ()
        words = [f"{_KEYS.get(key) or clean(key, 30)} {shown(key, labels[key])}" for key in sorted(labels)
                 if key not in kept]  # fmt: skip
        if names := sorted(clean(labels[key], _LABEL_CHARS) for key in kept if key in labels):
            words.append(f"agents {listing(names)}")
        title, value = titles.get(item.name, clean(item.name, 60)), why
        if not why:
            known = f"{number(item.value or 0.0, 3)} {clean(item.unit, 24)}".rstrip()
            value = state_words(item) if item.value is None else known
        rows.append(MeasuredRow(
            item.id, anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}",
            groups.get(item.name) or groups.get(item.name.partition(".")[0], title), title,
            "; ".join(words) or "the whole run", value,
            "" if why else bounds(item.low, item.high, item.level), count_of(item.n, item.n_of),
            clean(item.method, 200), rests(item),
        ))  # fmt: skip
    return tuple(rows)


def measured_links(pages: Mapping[str, Sequence[MeasuredRow]]) -> dict[str, str]:
    """Where each measurement is: its id to the page and row that show it."""
    return {row.id: f"{name}#{row.anchor}" for name, rows in pages.items() for row in rows}


def measured_title(name: str, sign: str = "κ") -> str:
    """How a page calls a kind of measurement; one it does not know keeps its name. ``sign`` is that of agreement."""
    title = _TITLES.get(name, clean(name, 60))
    return title.replace("κ", sign) if name in _AGREED else title


def measurement_pages(frame: Frame, pages: Mapping[str, Sequence[MeasuredRow]]) -> Iterator[tuple[str, str]]:
    """The pages of measurements, one at a time, as path and HTML; ``pages`` are their rows by path."""
    lead = (
        "Whether a value supports a claim is decided on the ", Linked("first page", "index.html"),
        ". Rows are sorted by kind and name, never by value.",
    )  # fmt: skip
    for path, rows, parts in beside(pages.items()):
        resting = any(row.rests for row in rows)
        heads = ("Measurement", "About", "Value", "Interval", "n", "Method", *(["Rests on"] if resting else []))
        table = Table(
            heads, tuple(measured_row(row, resting) for row in rows), frozenset({2, 3, 4}), "", stacked=True,
            id="measured-rows", filters=row_filters([row.group for row in rows]), what="measurements",
        )  # fmt: skip
        page = Page(path, "Every measurement", lead, (), (table,), parts, here="measurements", styles=STYLES)
        yield path, frame.page(page)


def measured_row(row: MeasuredRow, resting: bool) -> Row:
    """A measurement as a row of a table; ``resting`` is whether its last column is what a value rests on."""
    cells: list[Inline] = [row.title, row.about, row.value, row.interval, row.n, row.method]
    return Row((*cells, *([spaced(row.rests)] if resting else [])), row.anchor, row.group)
