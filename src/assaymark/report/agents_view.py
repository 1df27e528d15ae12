"""What the agents were shown and did: the cycles, the probes for dates, and conduct, which is no ranking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from assaymark.protocol import AgentSpec
from assaymark.records import Measurement
from assaymark.report.book import Book
from assaymark.report.formats import (
    NBSP,
    clean,
    count,
    counted,
    listing,
    moment,
    number,
    p_value,
    percent,
    plural,
    shown,
    state_words,
)
from assaymark.report.inputs import PlantedView
from assaymark.report.substrate_views import DateProbeView, RegimeView, SubstrateView

EXAMPLE: Final = "cycle-example.html"
"""The page of one whole cycle."""

CAUTION: Final = (
    "This is conduct, not quality: no judge graded it and no test compares the agents here, so it supports no ranking. "
    "Agents are listed in alphabetical order."
)
_FLAGS: Final[Mapping[str, str]] = {
    "invalid-reply": "reply of another form",
    "refused": "refused",
    "no-answer": "no answer",
    "rejected-order": "with an order that was not taken",
    "constraint-breach": "with a limit broken",
    "instruction-like text": "with instruction-like text",
}
_RULES: Final[Mapping[str, str]] = {
    "max_weight": "largest position",
    "min_cash": "cash",
    "max_leverage": "leverage",
    "max_orders": "number of orders",
    "allow_short": "short positions",
    "settlement": "orders that cannot be settled",
}
_PROBES: Final[Mapping[str, str]] = {
    "mechanical": "A search of the daily price ranges",
    "model": "A model that was asked for the month",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A measurement in a table: its value, or in words why there is none, and what has to be read with it."""

    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent of the study and what it did."""

    name: str
    family: str
    model: str
    answered: Cell
    kept: Cell
    seconds: Cell
    words: Cell
    terse: Cell
    flags: str


@dataclass(frozen=True, slots=True)
class RegimeRow:
    """The cycles of one regime, where they were cut, and what was left out of them and why."""

    name: str
    cycles: str
    between: str
    left_out: str


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """What one date probe found, in a sentence."""

    passed: bool
    text: str


@dataclass(frozen=True, slots=True)
class AgentsView:
    """The section, and the notice on the first screen where agents are built in (empty where none is)."""

    reference: str
    answer: str
    regimes: tuple[RegimeRow, ...]
    clock: str
    probes: tuple[ProbeRow, ...]
    unprobed: str
    rows: tuple[AgentRow, ...]
    caution: str
    method: str
    planted: tuple[PlantedView, ...]
    example: str


def agents_view(book: Book) -> AgentsView | None:
    """The whole section; None for a run whose records were imported."""
    found = book.run.substrate
    if found is None:
        return None
    return AgentsView(
        reference=_reference(book),
        answer=_answer(found),
        regimes=tuple(_regime(one) for one in found.regimes),
        clock="Dates are those of the source. Neither agents nor judges saw a date, a real name or a price level.",
        probes=tuple(ProbeRow(one.passed, probe_words(one)) for one in found.probes),
        unprobed=_unprobed(book, found),
        rows=tuple(_row(book, agent) for agent in sorted(book.run.study.agents, key=lambda one: one.name)),
        caution=CAUTION,
        method=_method(book),
        planted=tuple(_planted(book)),
        example=EXAMPLE if found.example is not None else "",
    )


def _reference(book: Book) -> str:
    built_in = {view.name for view in book.run.reference_agents}
    if not built_in:
        return ""
    names = sorted(agent.name for agent in book.run.study.agents)
    if built_in.issuperset(names):
        return "Every agent is a built-in rule with planted properties; none is a language model."
    named = listing([clean(name, 60) for name in names if name in built_in])
    are = "is a built-in rule" if len(built_in) == 1 else "are built-in rules"
    return f"{named} {are} with planted properties, no language model."


# --- what was shown ---------------------------------------------------------------------------------------------------


def _answer(found: SubstrateView) -> str:
    cycles = sum(regime.cycles for regime in found.regimes)
    market = "the built-in invented market" if found.source == "synthetic" else f"the file {clean(found.source, 80)}"
    return (
        f"Each agent decided on {counted(cycles, 'cycle')} from {plural(len(found.regimes), 'regime')} of {market}. A "
        f"cycle shows {counted(found.bars, 'one-minute bar')} of each instrument, a book, and numeric limits."
    )


def _regime(regime: RegimeView) -> RegimeRow:
    return RegimeRow(clean(regime.name, 60), count(regime.cycles), _between(regime), _left_out(regime))


def _between(regime: RegimeView) -> str:
    first, last = (moment(when.date().isoformat()) for when in (regime.first, regime.last))
    return first if first == last else f"{first} and {last}"


def _left_out(regime: RegimeView) -> str:
    """Which instruments, of how many cycles, and why."""
    if not regime.left_out:
        return "none"
    named = [
        clean(name, 40) if times == regime.cycles else f"{clean(name, 40)} in {count(times)} of {count(regime.cycles)}"
        for name, times in sorted(regime.left_out.items())
    ]
    shown_names = listing(named[:8]) if len(named) <= 8 else f"{', '.join(named[:8])} and {count(len(named) - 8)} more"
    return f"{shown_names}: did not trade then"


def probe_words(found: DateProbeView) -> str:
    """What a date probe found, in a sentence.

    >>> said = probe_words(DateProbeView(probe="model", passed=True, asked=25, hits=0, control_asked=25,
    ...                                  control_hits=24, chance=0.25, p=1.0))
    >>> said.partition("(")[0]
    'A model that was asked for the month: PASS. It dated 0 of 25 sanitised cycles '
    """
    verdict = "PASS" if found.passed else "FAIL"
    return (
        f"{_PROBES.get(found.probe, clean(found.probe, 40))}: {verdict}. It dated {count(found.hits)} of "
        f"{count(found.asked)} sanitised cycles (chance {percent(found.chance, 2)}, {p_value(found.p)}) and "
        f"{count(found.control_hits)} of {count(found.control_asked)} with dates and names left in."
    )


def _unprobed(book: Book, found: SubstrateView) -> str:
    if not found.probes:
        return "The lock holds no date-leakage check, so nothing shows that the cycles do not give their dates away."
    substrate = book.run.study.substrate
    if substrate is not None and substrate.date_probe.model is None:
        return "The plan names no model for a date probe, so no model was asked."
    return ""


# --- what was done ----------------------------------------------------------------------------------------------------


def _row(book: Book, agent: AgentSpec) -> AgentRow:
    answered = book.one("agent.answered", agent=agent.name)
    kept = book.one("agent.limits_kept", agent=agent.name)
    return AgentRow(
        name=clean(agent.name, 80),
        family=clean(agent.family, 60),
        model=clean(agent.model, 120),
        answered=_share(book, answered),
        kept=_share(book, kept),
        seconds=_median(book, book.one("agent.seconds", agent=agent.name), 2),
        words=_words(book, agent.name),
        terse=_share(book, book.one("terse.share", agent=agent.name)),
        flags="; ".join([*_counts(answered, "flags", _FLAGS), *_counts(kept, "breaches", _RULES)]) or "none",
    )


def _share(book: Book, item: Measurement | None) -> Cell:
    """A share with its interval, and the ends over clusters where there are any."""
    if item is None or item.value is None:
        return Cell(shown(item))
    notes = [] if item.low is None or item.high is None else [f"{percent(item.low)} to {percent(item.high)}"]
    low, high = item.detail.get("t_low"), item.detail.get("t_high")
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        notes.append(f"over clusters {percent(float(low))} to {percent(float(high))}")
    notes.append(_n(item))
    return Cell(book.to(item, percent(item.value)), ", ".join(notes))


def _n(item: Measurement) -> str:
    """The denominator, which stays on one line."""
    return f"n{NBSP}={NBSP}{count(item.n)}"


def _median(book: Book, item: Measurement | None, digits: int) -> Cell:
    """A median with its quartiles."""
    if item is None or item.value is None:
        return Cell(shown(item))
    said = book.to(item, number(item.value, digits))
    low, high = item.detail.get("lower"), item.detail.get("upper")
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return Cell(said, _n(item))
    quartiles = f"{number(float(low), digits)} to {number(float(high), digits)}"
    return Cell(said, f"{quartiles}, {_n(item)}")


def _words(book: Book, agent: str) -> Cell:
    """The length of a text in words, with the tokens that the provider counted beside it."""
    found = _median(book, book.one("agent.text_tokens", agent=agent), 0)
    tokens = book.one("agent.output_tokens", agent=agent)
    if tokens is None or tokens.value is None:
        return Cell(found.value, "; ".join(filter(None, (found.note, "output tokens not counted"))))
    return Cell(found.value, f"{found.note}; {number(tokens.value, 0)} output tokens, {_n(tokens)}")


def _counts(item: Measurement | None, part: str, named: Mapping[str, str]) -> Iterator[str]:
    """The counts in a part of a measurement's detail, in words."""
    counts = {} if item is None else item.detail.get(part, {})
    if isinstance(counts, Mapping):
        for name in sorted(counts):
            if isinstance(counts[name], int):
                yield f"{counts[name]} {named.get(name, clean(name, 40))}"


def _method(book: Book) -> str:
    item = next(iter(book.by_name.get("agent.answered", ())), None)
    if item is None or item.level is None:
        return "The conduct of the agents was not measured."
    return (
        f"Intervals of shares: {percent(item.level)}, Wilson, which takes decisions as independent; the ends over "
        "clusters do not, and are given beside it where decisions differ. Seconds and words: median, lower to upper "
        f"quartile. Seconds are of one call on the machine that ran the study, waiting included. {_untimed(book)}"
    ).strip()


def _untimed(book: Book) -> str:
    states = sorted({state_words(m) for m in book.by_name.get("agent.seconds", ()) if m.value is None})
    return "" if not states else f"Without seconds: {listing(states)}."


def _planted(book: Book) -> Iterator[PlantedView]:
    for view in sorted(book.run.reference_agents, key=lambda one: one.name):
        yield PlantedView(
            name=clean(view.name, 80),
            family=clean(view.family, 80),
            question=clean(view.question, 300),
            planted=tuple(clean(one, 300) for one in view.planted),
        )
