"""The numeric evidence ledger: the check of every number in an agent's rationale against its own context."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.judging.evidence.context_index import ContextIndex, DecisionNumbers, own_numbers, owners_of
from assaymark.judging.evidence.mention import NumberContext, ParsedText, UnitReading, extract_numbers
from assaymark.judging.evidence.rules import (
    Ruling,
    contradiction,
    derive,
    direction_fits,
    is_doubted,
    match_bag,
    match_cell,
    match_free,
    readings,
    sign_fits,
    significant,
    subject_words,
)
from assaymark.judging.evidence.words import LISTS, normalise_width
from assaymark.quantiles import t_quantile
from assaymark.records import Context, Decision, Evidence, EvidenceState, Measurement, RationaleKind, sha256_text

BORNE_OUT: tuple[EvidenceState, ...] = ("supported", "derivable", "rule")
"""The states of numbers that the context supports."""
SKIPPED_KINDS: frozenset[RationaleKind] = frozenset(("arena",))
"""The kinds of text that the agent did not write, so that no number in them is its claim."""

_OWN_WORDS = LISTS["own_words"]

_IN_NAME = Ruling("not_found", "in-name")
_CHARGES = ("one-cell-differs", "partial-context")
_EXACT = 1e-9
_MOST_KNOWN = 1 << 14
_MANY = 200  # with fewer numbers, repetitions are too rare for a cache to pay off
_LABELLED = ("row-labelled", "row-part-labelled")


def numeric_ledger(decision: Decision, context: Context, material: ContextIndex | None = None) -> list[Evidence]:
    """Match every number in a decision's rationale against the context that the agent saw.

    The first layer of a season's evidence ledger: ``supported`` agrees with a visible fact about the same subject
    within half of the last printed digit; ``derivable`` follows from visible facts; ``rule`` repeats the task;
    ``own_action`` repeats the decision; ``in_context`` is printed in the prompt or the context (or, rounded to four or
    more digits, in the prompt), but its subject is not established; ``not_found`` is the rest. Neither counts against
    the agent. ``contradicted`` does; it requires a complete context and a unique subject, named field and cell.

    Parameters
    ----------
    decision : Decision
        Its rationales of every kind but ``arena`` are read.
    context : Context
        The context that the agent saw.
    material : Material, optional
        ``ContextIndex.of(context)``, to be shared by all decisions of the context.

    Returns
    -------
    list of Evidence
        In order of part and position; empty if the rationale contains no number.

    Examples
    --------
    See `audit_texts` for the core on plain texts.
    """
    index = ContextIndex.of(context) if material is None else material
    texts = [(rationale.kind, rationale.text) for rationale in decision.rationales]
    numbers, owners = own_numbers(decision, context), owners_of(decision)
    return audit_texts(texts, index, numbers, owners, decision=decision.record_id)


def audit_texts(
    texts: Sequence[tuple[RationaleKind, str]], material: ContextIndex, own: DecisionNumbers | None = None,
    owners: Mapping[str, str] | None = None, decision: str = "",
) -> list[Evidence]:  # fmt: skip
    """Make the ledger of plain texts, by part and position, for a judge that only has a rendered prompt."""
    put_forward = DecisionNumbers.of() if own is None else own
    ids = material.subjects.ids
    rows = {
        text.strip(): material.subjects.rows[instrument]
        for text, instrument in (owners or {}).items()
        if instrument in material.subjects.rows
    }
    ledger: list[Evidence] = []
    # Rulings are cached, because texts often repeat the same statement.
    rulings: dict[object, Ruling] = {}
    for part, (kind, text) in enumerate(texts):
        numbers = extract_numbers(text) if kind not in SKIPPED_KINDS else []
        if not numbers:
            continue
        read = ParsedText(normalise_width(text), numbers, material.subjects, rows.get(text.strip(), -1))
        repeats = len(numbers) >= _MANY
        for at, number in enumerate(numbers):
            key = read.key(at) if repeats else None
            ruling = rulings.get(key) if repeats else None
            if ruling is None:
                around = read.around(at)
                ruling = _IN_NAME if around is None else _decide(material, around, put_forward)
                if repeats and len(rulings) < _MOST_KNOWN:
                    rulings[key] = ruling
            if ruling is _IN_NAME:
                continue
            state, rule, facts, row = ruling
            if rule in _CHARGES and is_doubted(*read.adjacent_sentences(number.start)):
                state, rule, facts = "not_found", "unmatched", ()
            ledger.append(Evidence(
                decision, part, kind, number.start, number.quote, number.value, number.unit,
                ids[row] if row >= 0 else "", state, facts, rule,
            ))  # fmt: skip
    return ledger


def _decide(material: ContextIndex, around: NumberContext, bag: DecisionNumbers) -> Ruling:
    """Apply the first rule that matches: own figures named as such, then facts, rules, own figures, derivations."""
    number, ruling = around.number, None
    named = around.words & _OWN_WORDS
    if named and (at := match_bag(bag, around, named, None)) is not None:
        ruling = Ruling("own_action", "own-labelled", (f"own:{bag.ids[at]}",))
    ruling = ruling or _match_fact(material, around)
    if ruling is None and (at := match_bag(material.rules, around, around.words, None)) is not None:
        ruling = Ruling("rule", "stated-in-task", (material.rules.ids[at],))
    if ruling is None and (number.held or not (number.bare or _is_coarse_threshold(around))):
        whose = frozenset(material.subjects.ids[row] for row in around.rows)
        if (at := match_bag(bag, around, around.words, whose)) is not None:
            ruling = Ruling("own_action", "own-same-subject", (f"own:{bag.ids[at]}",))
    if ruling is None and not around.conditional:
        ruling = derive(material, around)
    if ruling is None:
        # Contradicted if every condition for that is met; else in_context if the context contains the number.
        reason = "bare-integer" if number.bare else "threshold" if around.conditional else "unmatched"
        charge = contradiction(material, around) if reason == "unmatched" else None
        if charge is not None:
            whole = material.completeness == "complete"
            ruling = charge if whole else charge._replace(state="not_found", rule="partial-context")
        elif (present := _find_in_context(material, around)) is None:
            ruling = Ruling("not_found", reason)
        else:
            ruling = present if reason == "unmatched" else present._replace(rule=reason)
    # The subject is the one that the rule found, else the nearest one named.
    return ruling if ruling.row >= 0 or not around.rows else ruling._replace(row=around.rows[0])


def _match_fact(material: ContextIndex, around: NumberContext) -> Ruling | None:
    """Match a cell labelled by the clause, else a free fact about its subject, any cell of the row, or a wider fact."""
    from_row, coarse = match_cell(material, around), _is_coarse_threshold(around)
    if from_row is not None and from_row.rule in _LABELLED[: 1 if coarse else None]:
        return from_row
    if coarse:
        return None
    free = material.free
    at, rule = match_free(free, around, subject_words(around)), "free-fact"
    if at is None and from_row is None and not around.number.bare and significant(around.number.quote) >= 2:
        wide = around.wide | (material.subjects.words[around.default] if around.default >= 0 else frozenset())
        at, rule = match_free(free, around, wide), "free-fact-in-sentence"
    return from_row if at is None else Ruling("supported", rule, (free.ids[at],))


def _is_coarse_threshold(around: NumberContext) -> bool:
    """Return True for a round threshold, as in "falls more than 5%", which would match some 5 % by chance."""
    return around.conditional and significant(around.number.quote) < 3


def _find_in_context(material: ContextIndex, around: NumberContext) -> Ruling | None:
    """Find the number as printed anywhere in the context, about any subject; a printed sign must agree."""
    if (printed := material.prints(around.number)) is not None:
        source, rounded = printed
        return Ruling("in_context", "in-prompt-rounded" if rounded else "in-prompt", (source,))
    free, cells = material.free, material.cells
    for reading in readings(around.number):
        size, reach = reading.size, reading.size * _EXACT
        for facts in (free, cells):
            values = facts.values
            for at in values.sizes(reading).all_near(size, reach):
                if (
                    direction_fits(free, at, around)
                    if facts is free
                    else sign_fits(around, values.printed[at], cells.of_cell[at].signed, cells.of_cell[at].depth)
                ):
                    return Ruling("in_context", "in-facts", (facts.ids[at],))
    return None


ROW_RULES = frozenset(("row-labelled", "row-part-labelled", "row-unlabelled", "row-other-horizon"))
"""The rules under which a number is supported by a cell of its subject's own row."""

_UNSETTLED = frozenset(
    ("unmatched", "in-prompt", "in-prompt-rounded", "in-facts", "partial-context", "one-cell-differs")
)


def chance_corrected(
    evidence: Sequence[Evidence], materials: Mapping[str, ContextIndex], contexts: Mapping[str, str],
    rng: np.random.Generator, permutations: int = 200,
) -> tuple[float, int, dict[str, float]]:  # fmt: skip
    """Compute ``(observed - chance) / (1 - chance)`` for numbers about instruments (season methodology v0.4, evidence).

    Also returns the number of numbers, and both shares with the 95 % range of the permutations.
    """
    strata = defaultdict(list)
    for item in evidence:
        if item.rule not in ROW_RULES and item.rule not in _UNSETTLED:
            continue
        material = materials.get(contexts.get(item.decision, ""))
        row = -1 if material is None else material.subjects.rows.get(item.subject, -1)
        if material is not None and row >= 0 and material.cells.of_cell[material.cells.parts[row]]:
            strata[material.subjects.ids, item.unit, _decimals(item.quote)].append((item, material, row))
    if not (n := sum(map(len, strata.values()))):
        raise NotMeasurableError("chance agreement is undefined: no number is about an instrument with facts")
    observed, drawn = 0, np.zeros(permutations)
    for key in sorted(strata, key=repr):
        members = strata[key]
        agrees = np.zeros((len(members), len(key[0])), dtype=bool)
        subjects = np.array([row for *_, row in members], dtype=np.int64)
        groups: dict[int, list[int]] = defaultdict(list)
        for at, (_, material, _) in enumerate(members):
            groups[id(material)].append(at)
        for places in groups.values():
            # Agreement of each number with any cell of each row of one context, with the printed sign.
            items, cells = [members[at][0] for at in places], members[places[0]][1].cells
            triples = [(reading.as_rate, reading.size, reading.half) for reading in map(_first_reading, items)]
            rate, size, half = (np.array(column)[:, None] for column in zip(*triples, strict=True))
            heads = [item.quote[:4] for item in items]
            signs = [-1 if any(dash in head for dash in "-−–") else int("+" in head) for head in heads]
            sign = np.array(signs)[:, None]
            stored = np.where(rate, cells.values.rate[None, :], cells.values.plain[None, :])
            plus, minus = np.abs(stored - size) <= half, np.abs(stored + size) <= half
            hits = np.where(sign > 0, plus, np.where(sign < 0, minus, plus | minus))
            hits |= (plus | minus) & np.array([label.depth for label in cells.of_cell], dtype=bool)[None, :]
            counts = np.concatenate([np.zeros((len(items), 1), dtype=np.int64), np.cumsum(hits, axis=1)], axis=1)
            starts, stops = np.array([(part.start, part.stop) for part in cells.parts]).T
            agrees[places] = counts[:, stops] > counts[:, starts]
        index = np.arange(len(subjects))
        observed += int(agrees[index, subjects].sum())
        shuffled = rng.permuted(np.tile(subjects, (permutations, 1)), axis=1)
        drawn += agrees[index, shuffled].sum(axis=1)
    share, expected = observed / n, float(drawn.mean()) / n
    if expected >= 1.0:
        raise NotMeasurableError("chance agreement is complete: every number agrees with every row")
    low, high = (float(q) / n for q in np.quantile(drawn, (0.025, 0.975)))
    detail = {"observed": share, "chance": expected, "permutations": permutations, "chance_low": low}
    return (share - expected) / (1 - expected), n, {**detail, "chance_high": high}


def _decimals(quote: str) -> int:
    """Count the digits after the decimal point of a printed number."""
    _, point, rest = quote.partition(".")
    digits = 0
    while point and digits < len(rest) and rest[digits] in "0123456789":
        digits += 1
    return digits


def _first_reading(item: Evidence) -> UnitReading:
    """Return the first reading of a number in the ledger, from its record alone."""
    size = abs(item.number)
    digits = "".join(c for c in item.quote if c in "0123456789.").strip(".")
    printed = float(digits) if digits.count(".") <= 1 and digits else size
    step = (size / printed if printed else 1.0) * 10.0 ** -_decimals(item.quote)
    if item.unit == "percent":
        return UnitReading(True, size / 100, step / 100)
    if item.unit == "bps":
        return UnitReading(True, size / 1e4, step / 1e4)
    return UnitReading(False, size, step)


BEFORE: EvidenceState = "not_verifiable"
"""The state that older versions stored instead of ``in_context`` and ``not_found``."""

STATES: tuple[EvidenceState, ...] = tuple(filter(BEFORE.__ne__, get_args(EvidenceState)))
FORECAST_TOLERANCE = 0.01
"""Percentage points within which a stated portfolio forecast equals the weighted sum of its parts."""

_FLOAT_SLACK = 1e-9
_SHARE_METHOD = "share; interval: linearised over clusters, t with clusters - 1 degrees of freedom"
_CHANCE_METHOD = "(observed - chance) / (1 - chance); subjects permuted within unit and decimals; interval: none"


def evidence_summary(
    evidence: Sequence[Evidence], decisions: Sequence[Decision],
    contexts: Mapping[str, Context] | Mapping[str, ContextIndex] | None = None, *, rng: np.random.Generator,
    level: float = 0.95, permutations: int = 200,
) -> tuple[Measurement, ...]:  # fmt: skip
    """Compute the ledger's measurements over ``decisions``, including those without numbers; ignore other evidence."""
    by_id = {decision.record_id: decision for decision in decisions}
    ledger = sorted((e for e in evidence if e.decision in by_id), key=lambda e: (e.decision, e.part, e.start))
    lines = [f"{item.decision}\t{item.part}\t{item.start}\t{item.state}\t{item.rule}" for item in ledger]
    lines += sorted(f"{decision.record_id}\t{decision.agent.id}\t{decision.cluster}" for decision in decisions)
    inputs = sha256_text("\n".join(lines))
    rows: list[Measurement] = []

    def share(name: str, labels: Mapping[str, str], hits: Mapping[str, int], totals: Mapping[str, int]) -> None:
        n_of = "numbers" if name == "evidence.share" else "records"
        n, count, clusters = sum(totals.values()), sum(hits.values()), sorted(totals)
        # The standard error of a ratio of sums, linearised over clusters; None if the clusters do not vary.
        low = high = None
        groups = len(clusters)
        if groups > 1 and 0 < count < n:
            sizes = np.array([totals[c] for c in clusters], dtype=np.float64)
            residuals = np.array([hits.get(c, 0) for c in clusters], dtype=np.float64) - count / n * sizes
            error = float(np.sqrt(groups / (groups - 1) * np.square(residuals).sum())) / n
            reach = t_quantile(0.5 + level / 2, groups - 1) * error
            low, high = max(0.0, count / n - reach), min(1.0, count / n + reach)
        rows.append(Measurement(
            name, labels, count / n if n else None, n, n_of, method=_SHARE_METHOD, low=low, high=high,
            level=level if low is not None else None, inputs=inputs, **_unit_or_state(n, f"no {n_of}", "share"),
            detail={"count": count, **({"clusters": len(clusters)} if n else {})},
        ))  # fmt: skip

    for agent in (None, *sorted({decision.agent.id for decision in decisions})):
        labels = {} if agent is None else {"agent": agent}
        cluster_of = {d.record_id: d.cluster for d in decisions if agent is None or d.agent.id == agent}
        numbers = [item for item in ledger if item.decision in cluster_of]
        with_number = {item.decision for item in numbers}
        by_state: dict[str, Counter[str]] = defaultdict(Counter)
        for item in numbers:
            by_state[item.state][cluster_of[item.decision]] += 1
        totals = Counter(cluster_of[item.decision] for item in numbers)
        for state in (*STATES, BEFORE) if any(item.state == BEFORE for item in ledger) else STATES:
            share("evidence.share", {"state": state, **labels}, by_state[state], totals)
        silent = Counter(cluster for name, cluster in cluster_of.items() if name not in with_number)
        share("evidence.no_number_share", labels, silent, Counter(cluster_of.values()))
    value, n, detail, reason = None, 0, dict[str, float](), "contexts are needed to permute rows (got none)"
    if contexts is not None:
        materials = {name: x if isinstance(x, ContextIndex) else ContextIndex.of(x) for name, x in contexts.items()}
        context_of = {name: decision.context_id for name, decision in by_id.items()}
        try:
            value, n, detail = chance_corrected(ledger, materials, context_of, rng, permutations)
        except NotMeasurableError as exc:
            reason = str(exc)
    corrected = Measurement(
        "evidence.chance_corrected", {}, value, n, n_of="numbers", method=_CHANCE_METHOD, inputs=inputs,
        **_unit_or_state(n, reason, "share beyond chance"), detail=detail,
    )  # fmt: skip
    return (*rows, corrected)


def _unit_or_state(there: object, reason: str, unit: str) -> dict[str, Any]:
    """Return the unit of a defined measurement, or the state and reason of an undefined one."""
    return {"unit": unit} if there else {"state": f"undefined: {reason}"}


def forecast_mismatches(decisions: Sequence[Decision], *, tolerance: float = FORECAST_TOLERANCE) -> Measurement:
    """Compute ``forecast.mismatch``: the share of portfolio forecasts that differ from the weighted sum of their parts.

    A decision counts if ``stages["forecast"]`` states ``portfolio_pct`` and, under ``holdings``, a forecast for every
    instrument that an action gives a weight.
    """
    gaps = {}
    for decision in decisions:
        stage = decision.stages.get("forecast")
        if not isinstance(stage, Mapping) or not isinstance(stage.get("holdings"), Mapping):
            continue
        weights = {a.instrument: a.weight for a in decision.actions if a.weight is not None}
        stated = _finite_number(stage.get("portfolio_pct"))
        parts = {name: part for name in weights if (part := _finite_number(stage["holdings"].get(name))) is not None}
        if stated is not None and weights and len(parts) == len(weights):
            gaps[decision.record_id] = stated - sum(weights[name] * part for name, part in parts.items())
    differing = sorted(name for name, difference in gaps.items() if abs(difference) > tolerance + _FLOAT_SLACK)
    return Measurement(
        name="forecast.mismatch", labels={}, value=len(differing) / len(gaps) if gaps else None, n=len(gaps),
        n_of="forecasts",
        method=f"stated portfolio forecast against the weighted sum of its parts, tolerance {tolerance:g} points",
        inputs=sha256_text("\n".join(f"{name}\t{gaps[name]!r}" for name in sorted(gaps))) if gaps else "",
        **_unit_or_state(gaps, "no forecast was stated with its parts", "share"),
        detail={"count": len(differing), "tolerance": tolerance, **({"records": differing} if gaps else {})},
    )  # fmt: skip


def _finite_number(value: object) -> float | None:
    """Return a finite number as a float, and None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
        return None
    return float(value)
