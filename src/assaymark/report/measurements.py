"""The pages of every measurement, shared by all kinds of runs, and of every number in the rationales."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from assaymark.claims.messages import english
from assaymark.judging.evidence.ledger import BEFORE
from assaymark.records import EvidenceState, Measurement, sha256_text
from assaymark.report import blocks as b
from assaymark.report.blocks import Block, Inline, Linked, Page, PageRow, Table, chained, row_bytes, row_filters
from assaymark.report.charts.canvas import WIDE
from assaymark.report.charts.grids import BarRow, bar_table
from assaymark.report.page import Frame, by_file, paginate, with_pager
from assaymark.report.records.calls import Lineage
from assaymark.report.text import STATE_WORDS, STATES, as_float, counted, excerpt, known, listing, signed, state_words
from assaymark.text import bounds, clean, count, count_of, number, percent

if TYPE_CHECKING:
    from assaymark.report.inputs import RunIndex

STYLES: Final = ("measured.css",)
"""The style of pages of measurements, in addition to that of every page."""

_ROW_BYTES, _NUMBER_BYTES, _REF_BYTES, _LABEL_CHARS = 240, 330, 20, 80
_KEYS: Final = {"dropped": "without judge family", "family": "judge family", "part": "component"}
"""Words for labels whose values may be agents as well as judge families."""

Quantities = Mapping[str, Mapping[str, str]]
"""The measurements of a kind of run by name, in the order of its pages: their titles, groups and documentation."""


@cache
def quantities(kind: str) -> Quantities:
    """Return the ``study``, ``portbench``, ``datasheet`` or ``season`` quantities, one table each in `quantities`."""
    text = (files("assaymark.report") / "quantities" / f"{kind}.toml").read_text(encoding="utf-8")
    return MappingProxyType(tomllib.loads(text))


MeasurementRow = tuple[Measurement, PageRow]
"""A measurement and its row, whose last cell links to the records it was computed from, if they have pages."""


def table_rows(
    measurements: Iterable[Measurement],
    kinds: Quantities,
    hidden: Callable[[Measurement], str],
    lineage: Lineage = lambda _: (),
    shown: Callable[[str, str], str] = lambda _, value: clean(value, _LABEL_CHARS),
) -> tuple[MeasurementRow, ...]:
    """Rows by kind and subject, never by value; ``hidden`` says why a value is not shown, ``lineage`` links records."""
    order, anchors, rows = {name: at for at, name in enumerate(kinds)}, Counter[str](), list[MeasurementRow]()

    def undirected(item: Measurement) -> str:
        """An id that hides which of two agents is higher: neither position nor link may show an unsupported order."""
        pair = sorted(value for key, value in item.labels.items() if key in ("high", "low"))
        others = sorted(f"{key}={value}" for key, value in item.labels.items() if key not in ("high", "low"))
        return f"{item.name}[{','.join((*others, *pair))}]"

    for item in sorted(measurements, key=lambda m: (order.get(m.name, len(order)), undirected(m), m.id)):
        anchor, reason, labels = f"m{sha256_text(undirected(item))[:10]}", hidden(item), item.labels
        anchors[anchor] += 1
        subjects = ("high", "low") if reason else ()
        words = [f"{_KEYS.get(key) or clean(key, 30)} {shown(key, labels[key])}" for key in sorted(labels)
                 if key not in subjects]  # fmt: skip
        if names := sorted(clean(labels[key], _LABEL_CHARS) for key in subjects if key in labels):
            words.append(f"agents {listing(names)}")
        kind, value = kinds.get(item.name, {}), reason
        title = kind.get("title", clean(item.name, 60))
        if not reason:
            value = f"{number(item.value, 3)} {clean(item.unit, 24)}".rstrip() if known(item) else state_words(item)
        interval, on = "" if reason else bounds(item.low, item.high, item.level), lineage(item)
        cells = (title, "; ".join(words) or "the whole run", value, interval, count_of(item.n, item.n_of),
                 clean(item.method, 200))  # fmt: skip
        texts = [*cells, *(text for ref in on for text in (ref, ref.href))]
        anchor = anchor if anchors[anchor] == 1 else f"{anchor}-{anchors[anchor]}"
        size = row_bytes(_ROW_BYTES + _REF_BYTES * len(on), texts)
        rows.append((item, PageRow((*cells, chained(on)), anchor, kind.get("group", title), size=size)))
    return tuple(rows)


def measurement_parts(rows: Sequence[MeasurementRow]) -> dict[str, tuple[MeasurementRow, ...]]:
    """Split some rows into pages, by file."""
    return by_file("measurements", rows, size_of=lambda pair: pair[1].size)


def measurement_links(pages: Mapping[str, Sequence[MeasurementRow]]) -> dict[str, str]:
    """Links to measurements: the page and row of each, by its id."""
    return {item.id: f"{name}#{row.id}" for name, rows in pages.items() for item, row in rows}


def measurement_pages(frame: Frame, pages: Mapping[str, Sequence[MeasurementRow]]) -> Iterator[tuple[str, str]]:
    """The pages of measurements, one at a time, as path and HTML; ``pages`` maps paths to their rows."""
    lead = (
        "Whether a value supports a claim is decided on the ", Linked("first page", "index.html"),
        ". Rows are sorted by kind and name, never by value.",
    )  # fmt: skip
    for path, measured, parts in with_pager(pages.items()):
        columns, rows = page_rows(("Measurement", "About", "Value", "Interval", "n", "Method", "Rests on"), measured)
        table = Table(
            columns, rows, frozenset({2, 3, 4}), "", stacked=True, id="measured-rows",
            filters=row_filters([row.key for row in rows]), search="measurements",
        )  # fmt: skip
        page = Page(path, "Every measurement", lead, (), (table,), parts, here="measurements", styles=STYLES)
        yield path, frame.page(page)


def page_rows(columns: tuple[str, ...], pairs: Iterable[MeasurementRow]) -> tuple[tuple[str, ...], tuple[PageRow, ...]]:
    """The column heads and the rows of a page, without the last column if no row links to records."""
    rows = tuple(row for _, row in pairs)
    if any(row.cells[-1] for row in rows):
        return columns, rows
    return columns[:-1], tuple(replace(row, cells=row.cells[:-1]) for row in rows)


STATE_MEANINGS: Final[Mapping[EvidenceState, str]] = {
    "supported": "the material that the agent was given says it of the same subject",
    "derivable": "it follows from given numbers by arithmetic",
    "rule": "it restates a limit or rule the agent was given",
    "own_action": "it describes the agent’s own order, its size or a figure stated with it",
    "in_context": "it is printed in the prompt or the material, but whether of the same thing is not established",
    "not_found": "the stored material neither holds nor excludes it; thresholds and forecasts are often here",
    "contradicted": "the material gives another value for the same thing",
    "not_verifiable": "in tables of versions before 0.2: in the context or not found",
}
_LOOSE: Final = ("in_context", "not_found", "contradicted", BEFORE)
_REACH: Final = 70
_PROMPT: Final = re.compile(r"\Aprompt:(\d+)\Z")
_UNITS: Final = {
    "percent": "\u00a0%", "bps": " bps", "usd": " USD", "multiple": " ×", "none": "", "count": "", "price": "",
}  # fmt: skip


def fact_check_rows(index: RunIndex, places: Mapping[str, str] = MappingProxyType({})) -> tuple[PageRow, ...]:
    """All numbers of all rationales, by time of the decision, then by agent, record and position in the text."""
    decisions = {d.record_id: d for d in index.run.decisions}
    # The time and the agent of each decision, computed once for all of its numbers.
    when = {name: (d.decided_at.timestamp(), d.agent.id) for name, d in decisions.items()}
    unknown = float("inf"), ""
    rows: list[PageRow] = []
    for item in sorted(index.run.evidence, key=lambda one: (
        *when.get(one.decision, unknown), one.decision, one.part, one.start
    )):  # fmt: skip
        decision, place = decisions.get(item.decision), places.get(item.decision, "")
        facts = [_PROMPT.sub(r"line \1 of the prompt", clean(fact, 48)) for fact in item.facts[:2]]
        rule = english().texts.get(f"model.claim_rule.{item.rule.replace('-', '_')}", item.rule)
        more = f" and {len(item.facts) - 2} more" if len(item.facts) > 2 else ""
        text = decision.rationales[item.part].text if decision and item.part < len(decision.rationales) else ""
        before, quote, after = excerpt(text, item.start, item.quote, _REACH)
        agent, record = clean(decision.agent.id, 80) if decision else "unknown", clean(item.decision, 60)
        quote, number, subject = clean(quote, 220), stated_number(item.number, item.unit), clean(item.subject, 48)
        against = f"{clean(rule, 60)}{': ' if facts else ''}{', '.join(facts)}{more}"
        texts = (agent, record, item.kind, before, quote, after, number, subject, against, place)
        cells: tuple[Inline, ...] = (
            agent, Linked(record, place) if place else record, (f"“{before}", b.bold(quote), f"{after}”"), number,
            f"{subject} · {against}" if subject else against, (b.Mark(item.state), STATE_WORDS[item.state]),
        )  # fmt: skip
        rows.append(PageRow(cells, key=item.state, size=row_bytes(_NUMBER_BYTES, texts)))
    return tuple(rows)


def stated_number(value: float, unit: str) -> str:
    """A number as it was written in a text, with its unit."""
    text = f"{value:,.10g}" if abs(value) < 1e15 else f"{value:.6g}"
    return text.replace("-", "−") + _UNITS.get(unit, f" {clean(unit, 20)}")


def evidence_section(index: RunIndex) -> b.Section:
    """The section on the numbers in the rationales: their states overall and by agent."""
    evidence, agents = index.run.evidence, {d.record_id: clean(d.agent.id, 80) for d in index.run.decisions}
    by_agent: dict[str, Counter[EvidenceState]] = {}
    for mention in evidence:
        by_agent.setdefault(agents.get(mention.decision, "unknown"), Counter())[mention.state] += 1
    everything = Counter(mention.state for mention in evidence)
    # The states of this version; that of older tables only if such a table is shown.
    states = tuple(state for state in STATES if state != BEFORE or everything[BEFORE])

    def shares(agent: str | None, counts: Mapping[EvidenceState, int]) -> dict[EvidenceState, tuple[float, str]]:
        """Measured shares by state with their words; where a share was not measured, it is counted from the rows."""
        by_state, total, labels = {}, sum(counts.values()), {} if agent is None else {"agent": agent}
        for state in STATES:
            item = index.get("evidence.share", state=state, **labels)
            value = item.value if known(item) else counts.get(state, 0) / max(total, 1)
            by_state[state] = value, index.link(item, percent(value))
        return by_state

    blocks: list[Block] = []
    answer, overall = "No number was found in the rationales.", shares(None, everything)
    if evidence:
        meanings: list[Inline] = []
        for state in states:
            measured = known(index.get("evidence.share", state=state))
            parts: tuple[Inline, ...] = (", ", overall[state][1]) if measured else ()
            meanings.append((b.Mark(state), " ", b.bold(STATE_WORDS[state]), *parts, f": {STATE_MEANINGS[state]}"))
        groups = [("All agents", everything, overall)]
        groups += [(agent, by_agent[agent], shares(agent, by_agent[agent])) for agent in sorted(by_agent)]
        columns, texts, rows = [STATE_WORDS[state].capitalize() for state in states], [], []
        bars: list[BarRow] = []
        for title, counts, by_state in groups:
            cells, n = [by_state[state] for state in states], count(sum(counts.values()))
            bars.append((title, n, tuple((share, str(words)) for share, words in cells)))
            named = zip(columns, cells, strict=True)
            texts.append(f"{title}: {', '.join(f'{words} {column.lower()}' for column, (_, words) in named)}")
            rows.append((title, *(words for _, words in cells), n))
        title = "Share of numbers in each state, overall and by agent"
        caption = "Share of an agent’s numbers in each state; agents in alphabetical order. A full column is 100 %."
        table = Table(("Agent", *columns, "Numbers"), tuple(rows), frozenset(range(1, len(columns) + 2)))
        figure = b.plot(
            "states", "Where do the numbers come from?", caption, partial(bar_table, columns, bars),
            "; ".join(texts), table, alt=title, width=WIDE,
        )  # fmt: skip
        blocks = [figure, b.Items(tuple(meanings), "defs")]
        share = {state: value for state, (value, _) in overall.items()}
        traced = sum(value for state, value in share.items() if state not in _LOOSE)
        loose = f"{percent(share['in_context'])} are printed there without an established subject, "
        against = f"{percent(share['contradicted'])} contradict" if share["contradicted"] else "none contradicts"
        answer = (
            f"Of {counted(len(evidence), 'number')} in the rationales, {percent(traced)} can be traced to what the "
            f"agent had, {loose if share['in_context'] else ''}{percent(share['not_found'] + share[BEFORE])} were not "
            f"found, and {against} it."
        )
    incomplete = (
        "Where the stored context is partial, a number that is not found may have stood in the part that is missing. "
        "It then counts as not found and never as contradicted, so few contradictions are no praise there."
    )
    way = Linked(f"The whole fact-check table: {counted(len(evidence), 'number')}", "ledger/page-001.html")
    return b.Section(
        "evidence", "Do the numbers in the rationales hold?", answer,
        (*blocks, *b.notes([*_side_measures(index), incomplete, way if evidence else ""])),
    )  # fmt: skip


def _side_measures(index: RunIndex) -> Iterator[str]:
    """Records without a number, support beyond chance, and inconsistent forecasts; or why they are unknown."""
    for name, title in (
        ("evidence.no_number_share", "Share of records without a number"),
        ("evidence.chance_corrected", "Support beyond chance"),
        ("forecast.mismatch", "Arithmetic of stated forecasts"),
    ):
        item = index.get(name)
        if item is None:
            continue
        if not known(item):
            yield f"{title}: {state_words(item)}."
            continue
        value, detail = item.value, item.detail
        if name == "evidence.no_number_share":
            some = f"{percent(value)} of {counted(item.n, 'record')} hold no number at all and so cannot be checked "
            yield f"{some}here." if value else f"Each of {counted(item.n, 'record')} holds at least one number."
        elif name == "evidence.chance_corrected":
            observed, chance = as_float(detail.get("observed")), as_float(detail.get("chance"))
            beside = "" if observed is None or chance is None else (
                f" ({percent(observed)} found, {percent(chance)} by chance; n = {count(item.n)})"
            )  # fmt: skip
            lead = f"Support beyond chance is {signed(value)}: 0 is what accidental matches alone would give, "
            yield f"{lead}1 is every number{beside}."
        else:
            share = f"{percent(value)} of" if value else "None of"
            differ = "differ from the weighted sum of their" if value else "differs from the weighted sum of its"
            yield f"{share} {counted(item.n, 'stated portfolio forecast')} {differ} own parts."


def fact_check_pages(rows: Sequence[PageRow]) -> Iterator[Page]:
    """The pages of the fact-check table, one at a time."""
    done, pages = 0, [(f"ledger/page-{at:03d}.html", part) for at, part in enumerate(paginate(rows), 1)]
    columns = ("Agent", "Record", "The text says", "Number", "Read against", "State")
    titles = {state: words.capitalize() for state, words in STATE_WORDS.items()}
    for path, part, links in with_pager(pages):
        here = f"Rows {count(done + 1)} to {count(done + len(part))} of {count(len(rows))}." if part else "It is empty."
        done += len(part)
        table = Table(columns, part, frozenset({3}), "", stacked=True, id="ledger-rows", search="this page",
                      filters=row_filters([row.key for row in part], titles))  # fmt: skip
        lead = f"Every number in the rationales against what its author could see. {here}"
        yield Page(path, "Fact-check table", lead, (), (table,), links, here="facts", styles=STYLES,
                   up=Linked("Fact check", "fact-check.html"))  # fmt: skip
