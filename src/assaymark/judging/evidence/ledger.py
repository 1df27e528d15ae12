"""The numeric evidence ledger: what the agent's own material says about every number in its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from assaymark.judging.evidence.context_index import Material, NumberBag, OwnNumbers, own_numbers, owners_of
from assaymark.judging.evidence.mention import Around, Reading
from assaymark.judging.evidence.numbers import Number, extract_numbers
from assaymark.judging.evidence.rules import (
    CellHit,
    accusation,
    content,
    derive,
    direction_fits,
    is_doubted,
    match_bag,
    match_free,
    match_row,
    readings,
    sign_fits,
    significant,
)
from assaymark.judging.evidence.words import LISTS, narrow
from assaymark.records import Context, Decision, Evidence, EvidenceState, RationaleKind

SKIPPED_KINDS: frozenset[RationaleKind] = frozenset(("arena",))
"""Texts that the agent did not write: no number in them is its claim."""

_OWN_WORDS = LISTS["own_words"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One number of one text, and what the material says about it. ``part`` is the index of the text."""

    part: int
    kind: RationaleKind
    number: Number
    subject: str
    state: EvidenceState
    facts: tuple[str, ...]
    rule: str


class _Ruling(NamedTuple):
    """The outcome of one rule."""

    state: EvidenceState
    rule: str
    facts: tuple[str, ...] = ()
    row: int = -1


_IN_NAME = _Ruling("not_found", "in-name")
_CHARGES = ("one-cell-differs", "partial-context")
_EXACT = 1e-9
_MOST_KNOWN = 1 << 14
_MANY = 200  # texts with fewer numbers repeat themselves too seldom to be worth a look
_ROW_RULES = {3: "row-labelled", 2: "row-part-labelled", 1: "row-unlabelled", 0: "row-other-horizon"}


def numeric_ledger(decision: Decision, context: Context, *, material: Material | None = None) -> list[Evidence]:
    """Every number in a decision's reasons, matched against what the agent could see.

    Reads the first layer of a season's evidence ledger: ``supported`` agrees with a visible fact about the same
    subject within half of the last printed digit; ``derivable`` follows from visible facts; ``rule`` repeats the
    task; ``own_action`` repeats the decision; ``in_context`` stands in the prompt or the material as printed (or in the
    prompt with more digits, of which four or more are given), but of what is not established; ``not_found`` is the
    rest. Neither is a reproach; ``contradicted`` is one, and is said only on complete contexts with one subject, one
    named field and one cell.

    Parameters
    ----------
    decision : Decision
        Its rationales of every kind but ``arena`` are read.
    context : Context
        What the agent saw.
    material : Material, optional
        ``Material.of(context)``, when the caller keeps it for the other decisions of the context.

    Returns
    -------
    list of Evidence
        In order of part and position; empty when the reasons hold no number.

    Examples
    --------
    See `audit_texts` for the core on plain texts.
    """
    seen = Material.of(context) if material is None else material
    texts = [(rationale.kind, rationale.text) for rationale in decision.rationales]
    return [
        Evidence(
            decision=decision.record_id,
            part=finding.part,
            kind=finding.kind,
            start=finding.number.start,
            quote=finding.number.quote,
            number=finding.number.value,
            unit=finding.number.unit,
            subject=finding.subject,
            state=finding.state,
            facts=finding.facts,
            rule=finding.rule,
        )
        for finding in audit_texts(texts, seen, own_numbers(decision, context), owners=owners_of(decision))
    ]


def audit_texts(
    texts: Sequence[tuple[RationaleKind, str]],
    material: Material,
    own: OwnNumbers | None = None,
    *,
    owners: Mapping[str, str] | None = None,
) -> list[Finding]:
    """The same ledger for bare texts, in order of part and position: for a judge that sees only a rendered prompt.

    ``arena`` texts are skipped, and keep their place in the count of parts. ``own`` is what the agent itself put
    forward; ``owners`` names the instrument of texts that are known to be about one, such as the reason of one action.
    """
    put_forward = OwnNumbers() if own is None else own
    ids = material.subjects.ids
    rows = {
        text.strip(): material.subjects.rows[instrument]
        for text, instrument in (owners or {}).items()
        if instrument in material.subjects.rows
    }
    found: list[Finding] = []
    # The rulings are kept for texts that say the same thing again and again.
    known: dict[object, _Ruling] = {}
    for part, (kind, text) in enumerate(texts):
        numbers = extract_numbers(text) if kind not in SKIPPED_KINDS else []
        if not numbers:
            continue
        read = Reading(narrow(text), numbers, material.subjects, rows.get(text.strip(), -1))
        repeats = len(numbers) >= _MANY
        for at, number in enumerate(numbers):
            key = read.key(at) if repeats else None
            ruling = known.get(key) if repeats else None
            if ruling is None:
                around = read.around(at)
                ruling = _IN_NAME if around is None else _decide(material, around, put_forward)
                if repeats and len(known) < _MOST_KNOWN:
                    known[key] = ruling
            if ruling is _IN_NAME:
                continue
            state, rule, facts, row = ruling
            if rule in _CHARGES and is_doubted(*read.pieces.beside(number.start)):
                state, rule, facts = "not_found", "unmatched", ()
            found.append(Finding(part, kind, number, ids[row] if row >= 0 else "", state, facts, rule))
    return found


def _decide(material: Material, around: Around, own: OwnNumbers) -> _Ruling:
    """The first rule that speaks: own figures named as such, then facts, rules, own figures, derivations."""
    ruling = (
        _own(own.bag, around, material, labelled=True)
        or _fact(material, around)
        or _rule(material, around)
        or _own(own.bag, around, material, labelled=False)
        or _derived(material, around)
        or _unmatched(material, around)
    )
    # Its subject is the one that the rule found, else the nearest one named.
    return ruling if ruling.row >= 0 or not around.rows else ruling._replace(row=around.rows[0])


def _fact(material: Material, around: Around) -> _Ruling | None:
    """A cell that the clause labels, a free fact of the clause's subject, any cell of the row, a wider free fact."""
    hit: CellHit | None = None
    for row in around.rows:  # the best agreeing cell among the instruments the number can be about, the nearest first
        other = match_row(material, around, row)
        if other is not None and (hit is None or other.tier > hit.tier):
            hit = other
    from_row = None
    if hit is not None:
        from_row = _Ruling("supported", _ROW_RULES[hit.tier], (material.cells.ids[hit.cell],), hit.row)
        if hit.tier >= 2:
            return from_row
    if _is_coarse_threshold(around):
        return None
    free = material.free
    at = match_free(free, around, content(around))
    if at is not None:
        return _Ruling("supported", "free-fact", (free.ids[at],))
    if from_row is not None:
        return from_row
    if around.number.bare or significant(around.number) < 2:
        return None
    wide = around.wide | (material.subjects.words[around.default] if around.default >= 0 else frozenset())
    at = match_free(free, around, wide)
    return None if at is None else _Ruling("supported", "free-fact-in-sentence", (free.ids[at],))


def _is_coarse_threshold(around: Around) -> bool:
    """Whether the number is a round level to be crossed: "falls more than 5%" would find a 5 % somewhere."""
    return around.conditional and significant(around.number) < 3


def _rule(material: Material, around: Around) -> _Ruling | None:
    """A number of the task, where the clause shares a word with it."""
    at = match_bag(material.rules, around, around.words, None)
    return None if at is None else _Ruling("rule", "stated-in-task", (material.rules.ids[at],))


def _own(bag: NumberBag, around: Around, material: Material, *, labelled: bool) -> _Ruling | None:
    """What the agent put forward: named as such in the clause, or (later) a figure about the same instrument."""
    at = None
    if labelled:
        words = around.words & _OWN_WORDS
        at = match_bag(bag, around, words, None) if words else None
    elif around.number.held or not (around.number.bare or _is_coarse_threshold(around)):
        whose = frozenset(material.subjects.ids[row] for row in around.rows)
        at = match_bag(bag, around, around.words, whose)
    if at is None:
        return None
    name = bag.ids[at]
    return _Ruling("own_action", "own-labelled" if labelled else "own-same-subject", (f"own:{name}",))


def _derived(material: Material, around: Around) -> _Ruling | None:
    found = derive(material, around)
    return None if found is None else _Ruling("derivable", found.rule, found.facts, found.row)


def _stands(material: Material, around: Around) -> _Ruling | None:
    """Where the material holds the number as it is printed, whatever it is said of there; a sign goes with it."""
    if (found := material.prints(around.number)) is not None:
        where, rounded = found
        return _Ruling("in_context", "in-prompt-rounded" if rounded else "in-prompt", (where,))
    free, cells = material.free, material.cells
    for reading in readings(around.number):
        reach = reading.size * _EXACT
        index = free.values.rate_size if reading.as_rate else free.values.plain_size
        for at in index.all_near(reading.size, reach):
            if direction_fits(free, at, around):
                return _Ruling("in_context", "in-facts", (free.ids[at],))
        for at in (cells.values.rate_size if reading.as_rate else cells.values.plain_size).all_near(
            reading.size, reach
        ):
            if sign_fits(around, cells.values.printed[at], cells.of_cell[at].signed, cells.of_cell[at].depth):
                return _Ruling("in_context", "in-facts", (cells.ids[at],))
    return None


def _unmatched(material: Material, around: Around) -> _Ruling:
    """Accused, if every condition of an accusation holds; else in the context, where that holds it at all."""
    why = "bare-integer" if around.number.bare else "threshold" if around.conditional else "unmatched"
    charge = accusation(material, around) if why == "unmatched" else None
    if charge is not None:
        facts = (material.cells.ids[charge.cell],)
        if material.completeness != "complete":
            return _Ruling("not_found", "partial-context", facts, charge.row)
        return _Ruling("contradicted", "one-cell-differs", facts, charge.row)
    found = _stands(material, around)
    if found is None:
        return _Ruling("not_found", why)
    return found if why == "unmatched" else found._replace(rule=why)
