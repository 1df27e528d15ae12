"""The evidence ledger: every number in the rationales against what its author could see."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from assaymark.claims.messages import english
from assaymark.judging.evidence.ledger import BEFORE
from assaymark.records import Decision, Evidence, EvidenceState, Measurement
from assaymark.report.blocks import (
    Block,
    Figure,
    Inline,
    Items,
    Linked,
    Mark,
    Page,
    Row,
    Section,
    Table,
    bold,
    notes,
    row_bytes,
    row_filters,
)
from assaymark.report.charts.grids import BarCell, BarRow, bar_table
from assaymark.report.page import beside, paged
from assaymark.report.text import counted, excerpt, signed, state_words
from assaymark.text import clean, count, percent

if TYPE_CHECKING:
    from assaymark.report.lookup import RunIndex


STATE_WORDS: Final[Mapping[EvidenceState, str]] = {
    "supported": "supported",
    "derivable": "derivable",
    "rule": "rule",
    "own_action": "own action",
    "in_context": "in the context",
    "not_found": "not found",
    "contradicted": "contradicted",
    "not_verifiable": "not verifiable",
}
STATE_MEANINGS: Final[Mapping[EvidenceState, str]] = {
    "supported": "the material that the agent was given says it of the same subject",
    "derivable": "it follows from given numbers by arithmetic",
    "rule": "it restates a limit or rule the agent was given",
    "own_action": "it describes the agent’s own order",
    "in_context": "it is printed in the prompt or the material, but whether of the same subject is not established",
    "not_found": "the stored material neither holds nor excludes it",
    "contradicted": "the material gives another value for the same thing",
    "not_verifiable": "in tables of versions before 0.2: in the context or not found",
}
STATES: Final[tuple[EvidenceState, ...]] = tuple(STATE_WORDS)
_LOOSE: Final = ("in_context", "not_found", "contradicted", BEFORE)
_REACH: Final = 70
_PROMPT: Final = re.compile(r"\Aprompt:(\d+)\Z")
_ROW_BYTES: Final = 330
_UNITS: Final = {
    "percent": "\u00a0%",
    "bps": " bps",
    "usd": " USD",
    "multiple": " ×",
    "none": "",
    "count": "",
    "price": "",
}


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One number of one rationale, ready to show: ``quote`` between what its sentence says ``before`` and ``after``.
    ``place`` is that of its decision, empty where it has no row."""

    agent: str
    record: str
    kind: str
    quote: str
    number: str
    subject: str
    against: str
    state: EvidenceState
    word: str
    place: str = ""
    before: str = ""
    after: str = ""

    @property
    def size(self) -> int:
        """About how many bytes the row will take on a page."""
        said = (self.before, self.quote, self.after)
        texts = (self.agent, self.record, self.kind, *said, self.number, self.subject, self.against, self.place)
        return row_bytes(_ROW_BYTES, texts)


def ledger_rows(book: RunIndex, places: Mapping[str, str] = MappingProxyType({})) -> tuple[LedgerRow, ...]:
    """All rows, by time of decision, then agent, record and place in the text. ``places`` are those of decisions, by
    record id."""
    decisions = {d.record_id: d for d in book.run.decisions}
    ordered = sorted(book.run.evidence, key=lambda e: _time_key(e, decisions.get(e.decision)))
    rows: list[LedgerRow] = []
    for item in ordered:
        decision = decisions.get(item.decision)
        facts = [_PROMPT.sub(r"line \1 of the prompt", clean(fact, 48)) for fact in item.facts[:2]]
        rule = english().texts.get(f"model.claim_rule.{item.rule.replace('-', '_')}", item.rule)
        more = f" and {len(item.facts) - 2} more" if len(item.facts) > 2 else ""
        text = decision.rationales[item.part].text if decision and item.part < len(decision.rationales) else ""
        before, quote, after = excerpt(text, item.start, item.quote, _REACH)
        rows.append(LedgerRow(
            clean(decision.agent.id, 80) if decision else "unknown", clean(item.decision, 60), item.kind,
            clean(quote, 220), written_number(item.number, item.unit), clean(item.subject, 48),
            f"{clean(rule, 60)}{': ' if facts else ''}{', '.join(facts)}{more}", item.state, STATE_WORDS[item.state],
            places.get(item.decision, ""), before, after,
        ))  # fmt: skip
    return tuple(rows)


def _time_key(item: Evidence, decision: Decision | None) -> tuple[float, str, str, int, int]:
    when = decision.decided_at.timestamp() if decision else float("inf")
    return when, decision.agent.id if decision else "", item.decision, item.part, item.start


def written_number(value: float, unit: str) -> str:
    """A number as a text wrote it, with its unit.

    >>> written_number(4.25, "bps"), written_number(-41200.0, "usd"), written_number(18.4, "price")
    ('4.25 bps', '−41,200 USD', '18.4')
    """
    text = f"{value:,.10g}" if abs(value) < 1e15 else f"{value:.6g}"
    return text.replace("-", "−") + _UNITS.get(unit, f" {clean(unit, 20)}")


def evidence_section(book: RunIndex, rows: Sequence[LedgerRow]) -> Section:
    """Where the numbers in the rationales come from; ``rows`` are those of `ledger_rows`."""
    blocks: list[Block] = []
    if rows:
        meanings: list[Inline] = []
        for state in _shown(rows):
            item = book.one("evidence.share", state=state)
            share = "" if item is None or item.value is None else book.to(item, percent(item.value))
            parts: tuple[Inline, ...] = (", ", share) if share else ()
            meanings.append((Mark(state), " ", bold(STATE_WORDS[state]), *parts, f": {STATE_MEANINGS[state]}"))
        agents = {d.record_id: d.agent.id for d in book.run.decisions}
        by_agent: dict[str, Counter[EvidenceState]] = {}
        for figure_item in book.run.evidence:
            by_agent.setdefault(agents.get(figure_item.decision, "unknown"), Counter())[figure_item.state] += 1
        everything = Counter(row.state for row in rows)
        groups: list[tuple[str, str | None, Mapping[EvidenceState, int]]] = [("All agents", None, everything)]
        groups += [(clean(agent, 80), agent, by_agent[agent]) for agent in sorted(by_agent)]
        states = _shown(rows)
        figure_shares = [_shares(book, agent, seen) for _, agent, seen in groups]
        bars = [
            BarRow(title, count(sum(seen.values())),
                   tuple(BarCell(found[state], percent(found[state])) for state in states), agent is None)
            for (title, agent, seen), found in zip(groups, figure_shares, strict=True)
        ]  # fmt: skip
        columns = [STATE_WORDS[state].capitalize() for state in states]
        desc = "; ".join(f"{bar.title}: {_cells_words(bar, columns)}" for bar in bars)
        wide, narrow = bar_table("states", columns, bars, "Share of numbers in each state, overall and by agent", desc)
        caption = "Share of an agent’s numbers in each state; agents in alphabetical order. A full column is 100 %."
        rows_of_table = tuple(
            (bar.title, *_linked(book, agent, bar, states), bar.n)
            for bar, (_, agent, _) in zip(bars, groups, strict=True)
        )
        table = Table(("Agent", *columns, "Numbers"), rows_of_table, frozenset(range(1, len(columns) + 2)))
        blocks = [
            Figure("Where do the numbers come from?", caption, wide, narrow, table=table),
            Items(tuple(meanings), "defs"),
        ]
    way = (Linked(f"The whole fact-check table: {counted(len(rows), 'number')}", "ledger/page-001.html"),)
    if not rows:
        answer = "No number was found in the rationales."
    else:
        shares = _shares(book, None, Counter(row.state for row in rows))
        found = sum(share for state, share in shares.items() if state not in _LOOSE)
        shown = f"{percent(shares['in_context'])} are printed there without an established subject, "
        lost = shares["not_found"] + shares[BEFORE]
        against = f"{percent(shares['contradicted'])} contradict" if shares["contradicted"] else "none contradicts"
        answer = (
            f"Of {counted(len(rows), 'number')} in the rationales, {percent(found)} can be traced to what the agent "
            "had, "
            f"{shown if shares['in_context'] else ''}{percent(lost)} were not found, and {against} it."
        )
    partial = (
        "Where the stored context is partial, a number that is not found may have stood in the part that is missing. "
        "It then counts as not found and never as contradicted, so few contradictions are no praise there."
    )
    no_number_item = book.one("evidence.no_number_share")
    if no_number_item is None or no_number_item.value is None:
        no_number = (
            "" if no_number_item is None else f"Share of records without a number: {state_words(no_number_item)}."
        )
    elif not no_number_item.value:
        no_number = f"Each of {counted(no_number_item.n, 'record')} holds at least one number."
    else:
        some = f"{percent(no_number_item.value)} of {counted(no_number_item.n, 'record')}"
        no_number = f"{some} hold no number at all and so cannot be checked here."
    made = (no_number, _chance(book), _forecasts(book), partial)
    return Section(
        "evidence", "Do the numbers in the rationales hold?", answer,
        (*blocks, *notes(tuple(note for note in made if note)), *notes([way] if rows else [])),
    )  # fmt: skip


def ledger_pages(rows: Sequence[LedgerRow]) -> Iterator[Page]:
    """The pages of the fact-check table, one at a time."""
    done, pages = 0, [(f"ledger/page-{at:03d}.html", part) for at, part in enumerate(paged(rows), 1)]
    heads = ("Agent", "Record", "The text says", "Number", "Read against", "State")
    for path, part, links in beside(pages):
        here = f"Rows {count(done + 1)} to {count(done + len(part))} of {count(len(rows))}." if part else "It is empty."
        done += len(part)
        # The buttons above some rows: all, then each state that occurs.
        shown_rows: list[Row] = []
        for row in part:
            record: Inline = Linked(row.record, row.place) if row.place else row.record
            read = f"{row.subject} · {row.against}" if row.subject else row.against
            said: Inline = (f"“{row.before}", bold(row.quote), f"{row.after}”")
            shown_rows.append(
                Row((row.agent, record, said, row.number, read, (Mark(row.state), row.word)), key=row.state)
            )
        table = Table(
            heads,
            tuple(shown_rows),
            frozenset({3}),
            "",
            stacked=True,
            id="ledger-rows",
            what="this page",
            filters=row_filters(
                [row.state for row in part], {state: STATE_WORDS[state].capitalize() for state in STATES}
            ),
        )
        lead = f"Every number in the rationales against what its author could see. {here}"
        yield Page(path, "Fact-check table", lead, blocks=(table,), parts=links, here="facts",
                   up=Linked("Fact check", "fact-check.html"))  # fmt: skip


def _shown(rows: Sequence[LedgerRow]) -> tuple[EvidenceState, ...]:
    """The states of this version; the one of older tables only where they are shown."""
    return STATES if any(row.state == BEFORE for row in rows) else tuple(state for state in STATES if state != BEFORE)


def _shares(book: RunIndex, agent: str | None, seen: Mapping[EvidenceState, int]) -> dict[EvidenceState, float]:
    """Measured shares; where a share was not measured, the share of the rows themselves."""
    total = sum(seen.values())
    labels = {} if agent is None else {"agent": agent}
    found: dict[EvidenceState, float] = {}
    for state in STATES:
        measured = book.value("evidence.share", state=state, **labels)
        found[state] = measured if measured is not None else (seen.get(state, 0) / total if total else 0.0)
    return found


def _linked(book: RunIndex, agent: str | None, bar: BarRow, states: Sequence[EvidenceState]) -> Iterator[str]:
    """The shares of a bar, each leading to its measurement."""
    labels = {} if agent is None else {"agent": agent}
    for state, cell in zip(states, bar.cells, strict=True):
        yield book.to(book.one("evidence.share", state=state, **labels), cell.text)


def _cells_words(bar: BarRow, columns: Sequence[str]) -> str:
    return ", ".join(f"{cell.text} {word.lower()}" for cell, word in zip(bar.cells, columns, strict=True))


def _chance(book: RunIndex) -> str:
    item = book.one("evidence.chance_corrected")
    if item is None:
        return ""
    if item.value is None:
        return f"Support beyond chance: {state_words(item)}."
    return (
        f"Support beyond chance is {signed(item.value)}: 0 is what accidental matches alone would give, "
        f"1 is every number{_observed(item)}."
    )


def _observed(item: Measurement) -> str:
    observed, chance = item.detail.get("observed"), item.detail.get("chance")
    if not isinstance(observed, (int, float)) or not isinstance(chance, (int, float)):
        return ""
    return f" ({percent(float(observed))} found, {percent(float(chance))} by chance; n = {count(item.n)})"


def _forecasts(book: RunIndex) -> str:
    item = book.one("forecast.mismatch")
    if item is None:
        return ""
    if item.value is None:
        return f"Arithmetic of stated forecasts: {state_words(item)}."
    said = f"{percent(item.value)} of" if item.value else "None of"
    differ = "differ from the weighted sum of their" if item.value else "differs from the weighted sum of its"
    return f"{said} {counted(item.n, 'stated portfolio forecast')} {differ} own parts."
