"""What a reference judge notices in a prompt, as numbers. Nothing here knows more than the rendered text says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from assaymark.errors import InputError
from assaymark.judging.books import Book, book_of
from assaymark.judging.evidence import Finding, Material, OwnNumbers, audit_texts
from assaymark.judging.oracle.reconciliation import LIMITS, Part, reconcile
from assaymark.judging.reading import Cell, Shown, read_decision
from assaymark.judging.reference.holdings import forecasts, held, legality, sizes, volatility_ranks
from assaymark.judging.reference.lexicon import topic_counts
from assaymark.judging.reference.mentions import Called, called, mentions
from assaymark.prompting.fences import sections
from assaymark.prompting.material_reading import read_material
from assaymark.prompting.styles import style_of
from assaymark.prompting.texts import token_count
from assaymark.records import Context, EvidenceState, Instrument

Own = tuple[str, str, float, str]
"""One of a decision's own numbers: instrument or nothing, name, value, unit."""

_BORNE_OUT: tuple[EvidenceState, ...] = ("supported", "derivable", "rule")
_LABELS = {"weight": "weight allocation"}
_ACTION_UNITS = {
    "weight": "ratio",
    "confidence": "ratio",
    "expected_return": "ratio",
    "quantity": "count",
    "price": "price",
    "leverage": "multiple",
    "stop": "price",
    "target": "price",
}
_MOST_DOUBTFUL = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What can be noticed about one decision. None: the prompt gives nothing to notice it by.

    Rates are words (or numbers) per 100 tokens. Shares lie in 0..1; those of holdings are weighted by size. Where a
    decision is made of orders, its holdings are the positions after them (see `oracle.books`). Orders that cannot be
    carried out have none: what is about holdings is None then, and ``legality`` 0, the worst.
    """

    tokens: int
    """Length of the judged text."""
    hedge_rate: float
    risk_rate: float
    catalyst_rate: float
    condition_rate: float
    contrast_rate: float
    constraint_rate: float
    size_rate: float
    number_rate: float
    named: float | None
    """Share of the holdings that the text names."""
    explained: float | None
    """Share of the holdings that it names together with a number, an event or a risk."""
    alternatives: int
    """Instruments that it names and the decision does not hold."""
    checkable: float
    """Conditions with a number, per holding."""
    grounded: float | None
    """Share of the numbers, other than the decision's own, that the material bears out."""
    contradicted: int
    """Numbers that the material contradicts."""
    used: float
    """Numbers that the material bears out, per holding."""
    rules_cited: int
    """Numbers that are rules of the task."""
    sizes_cited: float
    """Numbers that are the decision's own, per holding."""
    risk_numbers: int
    """Numbers in the texts about risk that the material bears out."""
    order: float | None
    edge: float | None
    ranges: float | None
    arithmetic: float | None
    """Share of the stated sums that hold; of orders also of the stated amounts and limits of the book (`reconcile`)."""
    legality: float | None
    """Share of the rules that are kept; of orders of those that `portfolio.orders.audit` decides."""
    effective: float | None
    largest: float | None
    groups: float | None
    volatility: float | None
    confidence: float | None
    """Stated confidence, 0..1."""
    doubtful: tuple[str, ...] = ()
    """The first numbers that the material does not bear out, as written."""
    style: str | None = None
    """The house style of the text (`prompting.styles`), if it has one."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The material of a prompt, ready for many decisions."""

    context: Context
    material: Material
    instruments: Mapping[str, Instrument]
    called: Mapping[str, Called]
    volatility: Mapping[str, float]


def notice(parts: Sequence[str]) -> Features:
    """The features of a prompt, from the texts of its user parts: the material, then the decision.

    Raises
    ------
    InputError
        The parts are not a material and a decision in the form in which this package renders them.
    """
    if len(parts) != 2:
        raise InputError("prompt", [f"a material and a decision are needed (got {len(parts)} parts)"])
    return _notice(parts[0], parts[1])


@lru_cache(maxsize=4096)
def _notice(material: str, decision: str) -> Features:
    """One reading serves every judge and trial."""
    return features(_seen(material), read_decision(sections(decision)))


@lru_cache(maxsize=16)
def _seen(text: str) -> Seen:
    """One indexed material serves every decision of its context; calls come by context, so a few are kept."""
    context = read_material(sections(text))
    return Seen(
        context=context,
        material=Material.of(context),
        instruments={item.id: item for item in context.instruments},
        called=called(context.instruments),
        volatility=volatility_ranks(context),
    )


def features(seen: Seen, shown: Shown) -> Features:
    """What can be noticed about a decision against its material."""
    text = "\n\n".join(rationale.text for rationale in shown.texts)
    tokens = token_count(text)
    book = book_of(seen.context, shown.actions)
    holdings = held(shown) if book is None else book.holdings
    stated = _stated(seen, book, text)
    noticed: dict[str, Any] = {
        **_rates(text, tokens),
        **_audit(seen, shown, len(holdings), tokens, book, stated),
        **asdict(mentions(text, holdings, seen.called)),
        **asdict(sizes(holdings, seen.instruments, seen.volatility)),
        **asdict(forecasts(shown, holdings, [part.verdict == "right" for part in stated])),
    }
    return Features(
        tokens=tokens,
        legality=legality(seen.context, shown, holdings) if book is None else book.legality,
        confidence=_confidence(shown),
        style=style_of(text),
        **noticed,
    )


def _stated(seen: Seen, book: Book | None, text: str) -> list[Part]:
    """The quantities of the book after orders that the text states."""
    if book is None or book.after is None:
        return []
    found = reconcile(text, book.after, seen.context.constraints, names=tuple(seen.instruments))
    return [part for part in found.parts if part.verdict != "absent"]


def _rates(text: str, tokens: int) -> dict[str, float]:
    """Topic words per 100 tokens, under the names of their fields."""
    return {f"{topic}_rate": 100.0 * count / max(tokens, 1) for topic, count in topic_counts(text).items()}


def _confidence(shown: Shown) -> float | None:
    """The stated confidence of the decision, else the mean of its actions'."""
    if shown.confidence is not None:
        return shown.confidence
    stated = [action.confidence for action in shown.actions if action.confidence is not None]
    return sum(stated) / len(stated) if stated else None


def _audit(
    seen: Seen, shown: Shown, holdings: int, tokens: int, book: Book | None, stated: Sequence[Part]
) -> dict[str, Any]:
    """What the material says about the numbers of the text, under the names of the fields."""
    texts = [(rationale.kind, rationale.text) for rationale in shown.texts]
    own = own_numbers(shown, seen.instruments, book)
    findings = _reconciled(audit_texts(texts, seen.material, own), stated)
    states = Counter(finding.state for finding in findings)
    borne_out = sum(states[state] for state in _BORNE_OUT)
    others = len(findings) - states["own_action"]
    doubtful = [one.number.quote for one in findings if one.state not in (*_BORNE_OUT, "own_action")]
    return {
        "number_rate": 100.0 * len(findings) / max(tokens, 1),
        "grounded": borne_out / others if others else None,
        "contradicted": states["contradicted"],
        "used": borne_out / max(holdings, 1),
        "rules_cited": states["rule"],
        "sizes_cited": states["own_action"] / max(holdings, 1),
        "risk_numbers": sum(one.kind == "risk" and one.state in _BORNE_OUT for one in findings),
        "doubtful": tuple(doubtful[:_MOST_DOUBTFUL]),
    }


def _reconciled(findings: Sequence[Finding], stated: Sequence[Part]) -> list[Finding]:
    """The findings with the numbers that reconcile the book: limits are rules, what follows from orders is their own.

    The material alone bears out neither, and they must not count as made up.
    """
    states: dict[str, list[EvidenceState]] = {}
    for part in stated:
        for number in part.numbers:
            states.setdefault(number, []).append("rule" if part.quantity in LIMITS else "own_action")
    found = []
    for one in findings:
        waiting = states.get(one.number.quote)
        if waiting and one.state not in (*_BORNE_OUT, "own_action"):
            found.append(replace(one, state=waiting.pop(0)))
        else:
            found.append(one)
    return found


def own_numbers(shown: Shown, instruments: Mapping[str, Instrument], book: Book | None = None) -> OwnNumbers:
    """The numbers that the decision itself puts forward, as far as the prompt shows them; of orders also weights."""
    entries = [
        (action.instrument, _LABELS.get(name, name), value, unit)
        for action in shown.actions
        for name, unit in _ACTION_UNITS.items()
        if (value := getattr(action, name)) is not None
    ]
    for path, value in shown.values.items():
        if isinstance(value, float):
            subject = _subject(path, instruments)
            unit = _unit_beside(path.removesuffix(subject), shown.values) if subject else _unit(path)
            entries.append((subject, path.replace(".", "_"), value, unit))
    for path, rows in shown.tables.items():
        entries += [entry for cells in rows for entry in _of_row(path, cells, instruments)]
    return OwnNumbers.of(dict.fromkeys([*entries, *_of_book(book)]))


def _of_book(book: Book | None) -> Iterator[Own]:
    """The weights that the orders lead to: they are the decision's own, as target weights are."""
    if book is not None and book.after is not None and book.after.equity > 0:
        for name, weight in book.after.weights.items():
            yield name, _LABELS["weight"], weight, "ratio"


def _subject(path: str, instruments: Mapping[str, Instrument]) -> str:
    """The instrument that a path ends in, the longest such one: ids may hold dots themselves."""
    while path and path not in instruments:
        path = path.partition(".")[2]
    return path


def _unit_beside(path: str, values: Mapping[str, Cell]) -> str:
    """The unit of the values by instrument under a path: what the path says, else what the names beside it say.

    ``forecast.holdings.GOLD`` is in percent where it stands beside ``forecast.portfolio_pct``.
    """
    above = path.rstrip(".").rpartition(".")[0]
    beside = {_unit(name) for name in values if above and name.rpartition(".")[0] == above}
    return beside.pop() if _unit(path) == "ratio" and len(beside) == 1 else _unit(path.rstrip("."))


def _of_row(path: str, cells: Mapping[str, Cell], instruments: Mapping[str, Instrument]) -> Iterator[Own]:
    """The numbers of one entry of a stated table; the instrument among its cells is their subject."""
    subject = next((cell for cell in cells.values() if isinstance(cell, str) and cell in instruments), "")
    for column, cell in cells.items():
        if isinstance(cell, float):
            yield subject, f"{path}_{column}", cell, _unit(column)


def _unit(path: str) -> str:
    """The unit that a stated number's name gives away."""
    if "pct" in path or "percent" in path:
        return "percent"
    return "bps" if path.endswith("bps") else "ratio"
