"""The evidence ledger: every number in the rationales against what its author could see."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from assaymark.claims.messages import english
from assaymark.judging.evidence.ledger import BEFORE
from assaymark.records import Evidence, EvidenceState
from assaymark.report import blocks as b
from assaymark.report.blocks import Block, Inline
from assaymark.report.charts.grids import BarRow, bar_table
from assaymark.report.page import beside, paged
from assaymark.report.text import STATE_WORDS, STATES, counted, excerpt, real, signed, state_words
from assaymark.text import clean, count, percent

if TYPE_CHECKING:
    from assaymark.report.inputs import RunIndex


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
_LOOSE: Final = ("in_context", "not_found", "contradicted", BEFORE)
_REACH: Final = 70
_PROMPT: Final = re.compile(r"\Aprompt:(\d+)\Z")
_ROW_BYTES: Final = 330
_UNITS: Final = {
    "percent": "\u00a0%", "bps": " bps", "usd": " USD", "multiple": " ×", "none": "", "count": "", "price": "",
}  # fmt: skip


def ledger_rows(book: RunIndex, places: Mapping[str, str] = MappingProxyType({})) -> tuple[b.Row, ...]:
    """All numbers of all rationales, by time of decision, then agent, record and place in the text."""
    decisions = {d.record_id: d for d in book.run.decisions}

    def order(one: Evidence) -> tuple[float, str, str, int, int]:
        made = decisions.get(one.decision)
        when = made.decided_at.timestamp() if made else float("inf")
        return when, made.agent.id if made else "", one.decision, one.part, one.start

    rows: list[b.Row] = []
    for item in sorted(book.run.evidence, key=order):
        decision, place = decisions.get(item.decision), places.get(item.decision, "")
        facts = [_PROMPT.sub(r"line \1 of the prompt", clean(fact, 48)) for fact in item.facts[:2]]
        rule = english().texts.get(f"model.claim_rule.{item.rule.replace('-', '_')}", item.rule)
        more = f" and {len(item.facts) - 2} more" if len(item.facts) > 2 else ""
        text = decision.rationales[item.part].text if decision and item.part < len(decision.rationales) else ""
        before, quote, after = excerpt(text, item.start, item.quote, _REACH)
        agent, record = clean(decision.agent.id, 80) if decision else "unknown", clean(item.decision, 60)
        quote, number, subject = clean(quote, 220), written_number(item.number, item.unit), clean(item.subject, 48)
        against = f"{clean(rule, 60)}{': ' if facts else ''}{', '.join(facts)}{more}"
        texts = (agent, record, item.kind, before, quote, after, number, subject, against, place)
        cells: tuple[Inline, ...] = (
            agent, b.Linked(record, place) if place else record, (f"“{before}", b.bold(quote), f"{after}”"), number,
            f"{subject} · {against}" if subject else against, (b.Mark(item.state), STATE_WORDS[item.state]),
        )  # fmt: skip
        rows.append(b.Row(cells, key=item.state, size=b.row_bytes(_ROW_BYTES, texts)))
    return tuple(rows)


def written_number(value: float, unit: str) -> str:
    """A number as a text wrote it, with its unit."""
    text = f"{value:,.10g}" if abs(value) < 1e15 else f"{value:.6g}"
    return text.replace("-", "−") + _UNITS.get(unit, f" {clean(unit, 20)}")


def evidence_section(book: RunIndex) -> b.Section:
    """Where the numbers in the rationales come from, overall and by agent."""
    evidence, agents = book.run.evidence, {d.record_id: clean(d.agent.id, 80) for d in book.run.decisions}
    by_agent: dict[str, Counter[EvidenceState]] = {}
    for one in evidence:
        by_agent.setdefault(agents.get(one.decision, "unknown"), Counter())[one.state] += 1
    everything = Counter(one.state for one in evidence)
    # The states of this version; the one of older tables only where they are shown.
    states = tuple(state for state in STATES if state != BEFORE or everything[BEFORE])

    def shares(agent: str | None, seen: Mapping[EvidenceState, int]) -> dict[EvidenceState, tuple[float, str]]:
        """Measured shares with their words; where a share was not measured, the share of the rows themselves."""
        found, total, labels = {}, sum(seen.values()), {} if agent is None else {"agent": agent}
        for state in STATES:
            item = book.one("evidence.share", state=state, **labels)
            value = item.value if item is not None and item.value is not None else seen.get(state, 0) / max(total, 1)
            found[state] = value, book.to(item, percent(value))
        return found

    blocks: list[Block] = []
    answer, overall = "No number was found in the rationales.", shares(None, everything)
    if evidence:
        meanings: list[Inline] = []
        for state in states:
            known = book.value("evidence.share", state=state) is not None
            parts: tuple[Inline, ...] = (", ", overall[state][1]) if known else ()
            meanings.append((b.Mark(state), " ", b.bold(STATE_WORDS[state]), *parts, f": {STATE_MEANINGS[state]}"))
        groups = [("All agents", everything, overall)]
        groups += [(agent, by_agent[agent], shares(agent, by_agent[agent])) for agent in sorted(by_agent)]
        columns, said, rows = [STATE_WORDS[state].capitalize() for state in states], [], []
        bars: list[BarRow] = []
        for title, seen, found in groups:
            cells, n = [found[state] for state in states], count(sum(seen.values()))
            bars.append((title, n, tuple((share, str(words)) for share, words in cells)))
            named = zip(columns, cells, strict=True)
            said.append(f"{title}: {', '.join(f'{words} {column.lower()}' for column, (_, words) in named)}")
            rows.append((title, *(words for _, words in cells), n))
        title = "Share of numbers in each state, overall and by agent"
        wide, narrow = bar_table("states", columns, bars, title, "; ".join(said))
        caption = "Share of an agent’s numbers in each state; agents in alphabetical order. A full column is 100 %."
        table = b.Table(("Agent", *columns, "Numbers"), tuple(rows), frozenset(range(1, len(columns) + 2)))
        figure = b.Figure("Where do the numbers come from?", caption, wide, narrow, table)
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
    partial = (
        "Where the stored context is partial, a number that is not found may have stood in the part that is missing. "
        "It then counts as not found and never as contradicted, so few contradictions are no praise there."
    )
    way = b.Linked(f"The whole fact-check table: {counted(len(evidence), 'number')}", "ledger/page-001.html")
    return b.Section(
        "evidence", "Do the numbers in the rationales hold?", answer,
        (*blocks, *b.notes([*_side_measures(book), partial, way if evidence else ""])),
    )  # fmt: skip


def _side_measures(book: RunIndex) -> Iterator[str]:
    """Records without a number, support beyond chance, and forecasts that do not add up; or why they are not known."""
    for name, title in (
        ("evidence.no_number_share", "Share of records without a number"),
        ("evidence.chance_corrected", "Support beyond chance"),
        ("forecast.mismatch", "Arithmetic of stated forecasts"),
    ):
        item = book.one(name)
        if item is None:
            continue
        value, detail = item.value or 0.0, item.detail
        if item.value is None:
            yield f"{title}: {state_words(item)}."
        elif name == "evidence.no_number_share":
            some = f"{percent(value)} of {counted(item.n, 'record')} hold no number at all and so cannot be checked "
            yield f"{some}here." if value else f"Each of {counted(item.n, 'record')} holds at least one number."
        elif name == "evidence.chance_corrected":
            observed, chance = real(detail.get("observed")), real(detail.get("chance"))
            beside = "" if observed is None or chance is None else (
                f" ({percent(observed)} found, {percent(chance)} by chance; n = {count(item.n)})"
            )  # fmt: skip
            lead = f"Support beyond chance is {signed(value)}: 0 is what accidental matches alone would give, "
            yield f"{lead}1 is every number{beside}."
        else:
            said = f"{percent(value)} of" if value else "None of"
            differ = "differ from the weighted sum of their" if value else "differs from the weighted sum of its"
            yield f"{said} {counted(item.n, 'stated portfolio forecast')} {differ} own parts."


def ledger_pages(rows: Sequence[b.Row]) -> Iterator[b.Page]:
    """The pages of the fact-check table, one at a time."""
    done, pages = 0, [(f"ledger/page-{at:03d}.html", part) for at, part in enumerate(paged(rows), 1)]
    heads = ("Agent", "Record", "The text says", "Number", "Read against", "State")
    titles = {state: words.capitalize() for state, words in STATE_WORDS.items()}
    for path, part, links in beside(pages):
        here = f"Rows {count(done + 1)} to {count(done + len(part))} of {count(len(rows))}." if part else "It is empty."
        done += len(part)
        table = b.Table(heads, part, frozenset({3}), "", stacked=True, id="ledger-rows", what="this page",
                      filters=b.row_filters([row.key for row in part], titles))  # fmt: skip
        lead = f"Every number in the rationales against what its author could see. {here}"
        yield b.Page(path, "Fact-check table", lead, (), (table,), links, here="facts",
                   up=b.Linked("Fact check", "fact-check.html"))  # fmt: skip
