"""Features that a built-in judge notices in a prompt. Nothing here knows more than the rendered text says."""

from __future__ import annotations

import math
import re
import tomllib
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import combinations
from typing import Any

from assaymark.errors import InputError
from assaymark.judging.arithmetic_oracle import LIMITS, Part, reconcile
from assaymark.judging.evidence import DecisionNumbers, Finding, Material, audit_texts
from assaymark.judging.evidence.context_index import ACTION_UNITS, OwnEntry
from assaymark.judging.prompts import Book, Shown, book_of, read_decision
from assaymark.prompting import read_material, sections, style_of, token_count
from assaymark.records import Context, EvidenceState, Instrument


@cache
def planted_tables() -> dict[str, Any]:
    """The tables of ``planted.toml``: what is planted in the built-in judges, and the words that they know."""
    return tomllib.loads((files("assaymark.judging") / "planted.toml").read_text(encoding="utf-8"))


LEXICON: Mapping[str, frozenset[str]] = {
    topic: frozenset(words.split()) for topic, words in planted_tables()["lexicon"].items()
}
"""Words by what they speak of. One word may speak of several things."""

_WORD = re.compile(r"[a-z]+")
_CHINESE = {topic: tuple(word for word in words if not word.isascii()) for topic, words in LEXICON.items()}


def topic_counts(text: str) -> dict[str, int]:
    """How many words of a text speak of each topic."""
    words = Counter(_WORD.findall(text.lower()))
    counts = {topic: sum(words[word] for word in listed & words.keys()) for topic, listed in LEXICON.items()}
    if not text.isascii():
        for topic, listed in _CHINESE.items():
            counts[topic] += sum(text.count(word) for word in listed)
    return counts


def _speaks_of(sentence: str, *topics: str) -> bool:
    words = set(_WORD.findall(sentence.lower()))
    if any(not words.isdisjoint(LEXICON[topic]) for topic in topics):
        return True
    return not sentence.isascii() and any(word in sentence for topic in topics for word in _CHINESE[topic])


# Which instruments a text speaks of, and whether it says why.

_SENTENCE = re.compile(r"(?<=[.;!?])\s+|(?<=[。；！？])|\n+")
_DIGIT = re.compile(r"\d")

Called = tuple[str, tuple[str, ...]]
"""The symbol of an instrument, which counts as written, and its names in small letters, in any case."""


def _called(item: Instrument) -> Called:
    """The symbol and names of an instrument; names of one or two letters tell too little."""
    names = dict.fromkeys((item.id, item.id.replace("_", " "), item.name, *item.aliases))
    found = (name.lower() for name in names if len(name) > 2 and name != item.symbol)
    return item.symbol or "", tuple(dict.fromkeys(found))


def _is_named(called: Called, text: str, lower: str) -> bool:
    """Whether a text, given as written and in small letters, names the instrument as a word of its own."""
    symbol, names = called
    return bool(symbol and _stands_in(symbol, text)) or any(_stands_in(name, lower) for name in names)


def _stands_in(name: str, text: str) -> bool:
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        # A neighbouring letter or digit makes the name part of a longer word; unspaced scripts never do.
        beside = (text[at - 1 : at] if at else "", text[end : end + 1])
        if not any(char.isascii() and char.isalnum() for char in beside):
            return True
        at = text.find(name, at + 1)
    return False


# The arithmetic of a stated decision: sizes, forecasts, limits, and whether they fit together.

_HELD = ("buy", "hold", "short", "target_weight")
_VOLATILITY = re.compile(r"(?:^|_)(?:vol|volatility|stdev|std)(?:_|$)")
_PORTFOLIO, _BENCHMARK, _ALPHA = (
    re.compile(rf"(?:^|[._])(?:expected_)?{what}(?:_expected)?(?:_return)?(?:_pct|_percent)?$")
    for what in ("portfolio", "benchmark", "alpha")
)
_ENDS = {"low": "low", "p10": "low", "base": "base", "p50": "base", "high": "high", "p90": "high"}
_TOTAL_SLACK = 0.005
_PRINTED = 0.00006
_SLACK = 1e-6


def _sizes(seen: Seen, holdings: Mapping[str, float]) -> dict[str, Any]:
    """How the holdings are spread: inverse Herfindahl numbers, the largest one, and the mean volatility rank."""
    total = math.fsum(holdings.values())
    if not total:
        return dict.fromkeys(("effective", "largest", "groups", "volatility"))
    shares = {item: weight / total for item, weight in holdings.items()}
    groups: dict[str, float] = defaultdict(float)
    for item, share in shares.items():
        known = seen.instruments.get(item)
        groups[(known.group or known.asset_class or item) if known else item] += share
    ranked = {item: share for item, share in shares.items() if item in seen.volatility}
    weight = math.fsum(ranked.values())
    whole = math.fsum(share * seen.volatility[item] for item, share in ranked.items())
    return {
        "effective": 1.0 / math.fsum(share * share for share in shares.values()),
        "largest": max(shares.values()),
        "groups": 1.0 / math.fsum(share * share for share in groups.values()),
        "volatility": whole / weight if weight else None,
    }


def _share(checks: Sequence[bool | float]) -> float | None:
    """The mean of some checks; None without any."""
    return sum(checks) / len(checks) if checks else None


def _forecasts(shown: Shown, holdings: Mapping[str, float], stated: Sequence[bool]) -> dict[str, Any]:
    """How the stated forecasts agree with the sizes and with each other; ``stated``: whether further sums hold."""
    expected = {one.instrument: one.expected_return for one in shown.actions if one.expected_return is not None}
    whole, benchmark, alpha = (
        next(
            (
                value / 100 if name.endswith(("pct", "percent")) else value
                for name, value in shown.values.items()
                if isinstance(value, float) and path.search(name)
            ),
            None,
        )
        for path in (_PORTFOLIO, _BENCHMARK, _ALPHA)
    )
    known = [(weight, expected[item]) for item, weight in holdings.items() if item in expected]
    total = math.fsum(weight for weight, _ in known)
    ahead = math.fsum(weight for weight, forecast in known if forecast > (benchmark or 0.0))
    order = [
        0.5 if abs(a[1] - b[1]) < _SLACK else float((a[0] > b[0]) == (a[1] > b[1]))
        for a, b in combinations(known, 2)
        if abs(a[0] - b[0]) > _SLACK
    ]
    ranges = []
    for entry in (entry for entries in shown.tables.values() for entry in entries):
        ends: dict[str, float] = {}
        for name, value in entry.items():
            if isinstance(value, float):
                ends.update({_ENDS[word]: value for word in name.split("_") if word in _ENDS})
        if "low" in ends and "high" in ends:
            low, high = ends["low"], ends["high"]
            ranges.append(low <= ends.get("base", low) <= high and low < high)
    sums = list(stated)
    if any(action.weight is not None for action in shown.actions):
        sums.append(math.fsum(holdings.values()) <= 1 + _TOTAL_SLACK)
    if whole is not None and holdings and holdings.keys() <= expected.keys():
        parts = math.fsum(weight * expected[item] for item, weight in holdings.items())
        sums.append(abs(parts - whole) <= _PRINTED)
    if whole is not None and benchmark is not None and alpha is not None:
        sums.append(abs(whole - benchmark - alpha) <= _PRINTED)
    edge = ahead / total if total else None
    return {"order": _share(order), "edge": edge, "ranges": _share(ranges), "arithmetic": _share(sums)}


def _legality(context: Context, shown: Shown, holdings: Mapping[str, float]) -> float | None:
    """The share of limits that the decision keeps, of those that can be checked from weights alone."""
    if not holdings or not any(action.weight is not None for action in shown.actions):
        return None
    weights = list(holdings.values())
    return _share([
        _KEEPS[rule.kind](weights, rule.limit)
        for rule in context.constraints
        if rule.scope in ("portfolio", "holding") and rule.kind in _KEEPS and rule.limit > 0
    ])  # fmt: skip


_KEEPS: Mapping[str, Callable[[Sequence[float], float], bool]] = {
    "max_holdings": lambda weights, limit: len(weights) <= limit,
    "min_holdings": lambda weights, limit: len(weights) >= limit,
    "max_weight": lambda weights, limit: max(weights) <= limit + _SLACK,
    "min_weight": lambda weights, limit: min(weights) >= limit - _SLACK,
    "max_total_weight": lambda weights, limit: math.fsum(weights) <= limit + _TOTAL_SLACK,
    "weight_increment": lambda weights, limit: all(abs(w / limit - round(w / limit)) < _SLACK for w in weights),
}

_BORNE_OUT: tuple[EvidenceState, ...] = ("supported", "derivable", "rule")
_WEIGHT = "weight allocation"
_MOST_DOUBTFUL = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What can be noticed about one decision. None: the prompt gives nothing to notice it by.

    Rates are words (or numbers) per 100 words. Shares lie in 0..1; those of holdings are weighted by size. Where a
    decision is made of orders, its holdings are the positions after them (`book_of`). Orders that cannot be carried out
    have none: what is about holdings is None then, and ``legality`` 0, the worst.
    """

    tokens: int
    """Length of the judged text in words."""
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
    """The house style of the text (`prompting.texts.style_of`), if it has one."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The material of a prompt, ready for many decisions."""

    context: Context
    material: Material
    instruments: Mapping[str, Instrument]
    called: Mapping[str, Called]
    volatility: Mapping[str, float]


def notice(parts: Sequence[str]) -> Features:
    """The features of a prompt, from the texts of its user parts: the material, then the decision."""
    if len(parts) != 2:
        raise InputError("prompt", [f"a material and a decision are needed (got {len(parts)} parts)"])
    return _notice(parts[0], parts[1])


@lru_cache(maxsize=16)
def _seen(text: str) -> Seen:
    """One indexed material serves every decision of its context; calls come by context, so a few are kept."""
    context = read_material(sections(text))
    items = {item.id: item for item in context.instruments}
    called = {name: _called(item) for name, item in items.items()}
    # For each instrument its mid-rank, 0..1, by stated volatility, averaged over the fields that state one.
    fields: dict[str, dict[str, float]] = defaultdict(dict)
    for fact in context.facts:
        if fact.instrument and isinstance(fact.value, float) and _VOLATILITY.search(fact.field):
            fields[fact.field][fact.instrument] = fact.value
    ranks: dict[str, list[float]] = defaultdict(list)
    for values in fields.values():
        ordered = sorted(values.values())
        for instrument, value in values.items():
            ranks[instrument].append((bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered)))
    return Seen(
        context,
        Material.of(context),
        items,
        called,
        {instrument: math.fsum(found) / len(found) for instrument, found in ranks.items()},
    )


@lru_cache(maxsize=4096)
def _notice(material: str, decision: str) -> Features:
    """One reading serves every judge and trial."""
    seen, shown = _seen(material), read_decision(sections(decision))
    text = "\n\n".join(rationale.text for rationale in shown.texts)
    tokens = token_count(text)
    book = book_of(seen.context, shown.actions)
    holdings = {} if book is None else book.holdings
    if book is None:
        # Absolute weights by instrument of what the decision holds; equal ones where no weight is given at all.
        weights: dict[str, float] = defaultdict(float)
        for action in shown.actions:
            if action.kind in _HELD:
                weights[action.instrument] += abs(action.weight or 0.0)
        holdings = {instrument: weight for instrument, weight in weights.items() if weight > 0}
        if not math.fsum(weights.values()):
            holdings = dict.fromkeys(weights, 1.0 / max(len(weights), 1))
    stated: list[Part] = []
    if book is not None and book.after is not None:
        found = reconcile(text, book.after, seen.context.constraints, names=tuple(seen.instruments))
        stated = [part for part in found.parts if part.verdict != "absent"]
    confidence = shown.confidence
    if confidence is None:
        confidence = _share([action.confidence for action in shown.actions if action.confidence is not None])
    # What is named in `text`, and in a sentence that gives a number, an event or a risk.
    sentences = [(one, bool(_DIGIT.search(one))) for one in _SENTENCE.split(text) if one]
    reasons = "\n".join(one for one, digits in sentences if digits or _speaks_of(one, "catalyst", "risk"))
    items = {item: seen.called.get(item) or _called(Instrument(id=item)) for item in holdings}
    total = math.fsum(holdings.values())

    def share(said: str) -> float | None:
        lower = said.lower()
        named = [holdings[key] for key, item in items.items() if _is_named(item, said, lower)]
        return math.fsum(named) / total if total else None

    lower = text.lower()
    # What the material says about the numbers of the text, under the names of the fields.
    audit_holdings = max(len(holdings), 1)
    audit_tokens = max(tokens, 1)
    texts = [(rationale.kind, rationale.text) for rationale in shown.texts]
    # Numbers that reconcile the book are rules or the decision's own, although the material bears out neither.
    waiting: dict[str, list[EvidenceState]] = {}
    for part in stated:
        for number in part.numbers:
            waiting.setdefault(number, []).append("rule" if part.quantity in LIMITS else "own_action")
    findings: list[Finding] = []
    for one in audit_texts(texts, seen.material, _own_numbers(shown, seen.instruments, book)):
        states_left = waiting.get(one.number.quote)
        if states_left and one.state not in (*_BORNE_OUT, "own_action"):
            findings.append(replace(one, state=states_left.pop(0)))
        else:
            findings.append(one)
    states = Counter(finding.state for finding in findings)
    borne_out = sum(states[state] for state in _BORNE_OUT)
    others = len(findings) - states["own_action"]
    doubtful = [one.number.quote for one in findings if one.state not in (*_BORNE_OUT, "own_action")]
    noticed: dict[str, Any] = {
        **{f"{topic}_rate": 100.0 * count / max(tokens, 1) for topic, count in topic_counts(text).items()},
        "number_rate": 100.0 * len(findings) / audit_tokens,
        "grounded": borne_out / others if others else None,
        "contradicted": states["contradicted"],
        "used": borne_out / audit_holdings,
        "rules_cited": states["rule"],
        "sizes_cited": states["own_action"] / audit_holdings,
        "risk_numbers": sum(one.kind == "risk" and one.state in _BORNE_OUT for one in findings),
        "doubtful": tuple(doubtful[:_MOST_DOUBTFUL]),
        "named": share(text),
        "explained": share(reasons),
        "alternatives": sum(_is_named(item, text, lower) for key, item in seen.called.items() if key not in holdings),
        "checkable": sum(digits and _speaks_of(one, "condition") for one, digits in sentences) / max(len(holdings), 1),
        **_sizes(seen, holdings),
        **_forecasts(shown, holdings, [part.verdict == "right" for part in stated]),
    }
    legality = _legality(seen.context, shown, holdings) if book is None else book.legality
    return Features(tokens=tokens, legality=legality, confidence=confidence, style=style_of(text), **noticed)


def _own_numbers(shown: Shown, instruments: Mapping[str, Instrument], book: Book | None) -> DecisionNumbers:
    """The numbers that the decision itself puts forward, as far as the prompt shows them; of orders also weights."""
    entries: list[OwnEntry] = [
        (action.instrument, _WEIGHT if name == "weight" else name, value, unit)
        for action in shown.actions
        for name, unit in ACTION_UNITS.items()
        if (value := getattr(action, name)) is not None
    ]
    for path, value in shown.values.items():
        if isinstance(value, float):
            # The subject is the instrument that a path ends in, the longest such one: ids may hold dots themselves.
            subject = path
            while subject and subject not in instruments:
                subject = subject.partition(".")[2]
            # The unit of values by instrument is what their path says, else what the names beside it say.
            stem = path.removesuffix(subject) if subject else path
            above = stem.rstrip(".").rpartition(".")[0] if subject else ""
            beside = {_unit(name) for name in shown.values if above and name.rpartition(".")[0] == above}
            told = _unit(stem) == "ratio" and len(beside) == 1
            unit = beside.pop() if told else _unit(stem.rstrip(".") if subject else path)
            entries.append((subject, path.replace(".", "_"), value, unit))
    for path, rows in shown.tables.items():
        for cells in rows:
            subject = next((cell for cell in cells.values() if isinstance(cell, str) and cell in instruments), "")
            for column, cell in cells.items():
                if isinstance(cell, float):
                    entries.append((subject, f"{path}_{column}", cell, _unit(column)))
    if book is not None and book.after is not None and book.after.equity > 0:
        # The weights that the orders lead to are the decision's own, as target weights are.
        entries += [(name, _WEIGHT, weight, "ratio") for name, weight in book.after.weights.items()]
    return DecisionNumbers.of(dict.fromkeys(entries))


def _unit(path: str) -> str:
    """The unit that a stated number's name gives away."""
    if "pct" in path or "percent" in path:
        return "percent"
    return "bps" if path.endswith("bps") else "ratio"
