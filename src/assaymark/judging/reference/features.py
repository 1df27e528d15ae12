"""Features that built-in judges extract from a prompt. The rendered text is the only input."""

from __future__ import annotations

import math
import re
import tomllib
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.resources import files
from itertools import combinations
from typing import Any, Final

import assaymark.prompting as p
from assaymark.errors import InputError, Problem
from assaymark.judging.arithmetic_oracle import LIMITS, QuantityCheck, reconcile
from assaymark.judging.evidence import BORNE_OUT, ContextIndex, DecisionNumbers, audit_texts
from assaymark.judging.evidence.context_index import ACTION_UNITS, OwnEntry
from assaymark.judging.prompts import OrderOutcome, ParsedDecision, order_outcome, read_decision
from assaymark.records import JSON, Context, Evidence, EvidenceState, Fact, Instrument

Features = Mapping[str, Any]
"""Features by name; None if the prompt does not contain what a feature needs.

``..._rate`` are words (or numbers) per 100 words; shares lie in 0..1, and those of holdings are weighted by size.
``doubtful`` are the first numbers that the context does not support, ``style`` is the house style of the text.
"""


@cache
def planted_tables() -> dict[str, Any]:
    """Load ``planted.toml``: the planted properties of the built-in judges, and their word lists."""
    return tomllib.loads((files("assaymark.judging") / "planted.toml").read_text(encoding="utf-8"))


LEXICON: Mapping[str, frozenset[str]] = {
    topic: frozenset(words.split()) for topic, words in planted_tables()["lexicon"].items()
}
"""Words by topic. One word may belong to several topics."""

_WORD = re.compile(r"[a-z]+")
_CHINESE = {topic: tuple(word for word in words if not word.isascii()) for topic, words in LEXICON.items()}


def topic_counts(text: str) -> dict[str, int]:
    """Count the words of a text that belong to each topic."""
    words = Counter(_WORD.findall(text.lower()))
    counts = {topic: sum(words[word] for word in listed & words.keys()) for topic, listed in LEXICON.items()}
    if not text.isascii():
        for topic, listed in _CHINESE.items():
            counts[topic] += sum(text.count(word) for word in listed)
    return counts


def _has_topic(sentence: str, *topics: str) -> bool:
    words = _WORD.findall(sentence.lower())
    if any(not LEXICON[topic].isdisjoint(words) for topic in topics):
        return True
    return not sentence.isascii() and any(word in sentence for topic in topics for word in _CHINESE[topic])


def _mean(values: Sequence[float]) -> float | None:
    """Return the mean of some values; None if there are none."""
    return sum(values) / len(values) if values else None


_PLAIN_SENTENCE = re.compile(r"\s(?:(?<=[.;!?]\s)\s*|(?<=\n)\n*)")  # starts with a character class, for speed
_SENTENCE = re.compile(rf"{_PLAIN_SENTENCE.pattern}|(?<=[。；！？])")
_DIGIT = re.compile(r"\d")
_RUN = re.compile(r"[A-Za-z0-9]+")

Called = tuple[str, tuple[str, ...], frozenset[str]]
"""An instrument's case-sensitive symbol, its names in lower case, and the first word of each name."""


def _names_of(item: Instrument) -> Called:
    """Return the symbol and names of an instrument, without names of one or two letters, which are ambiguous."""
    names = dict.fromkeys((item.id, item.id.replace("_", " "), item.name, *item.aliases))
    lowered = tuple(dict.fromkeys(name.lower() for name in names if len(name) > 2 and name != item.symbol))
    firsts = (_RUN.search(name) for name in (item.symbol, *lowered) if name)
    return item.symbol or "", lowered, frozenset(first[0] if first else "" for first in firsts)


def _is_named(called: Called, text: str, lower: str) -> bool:
    """Return True if a text, given as written and in lower case, contains an instrument's name as a separate word."""
    for name, source in ((called[0], text), *((name, lower) for name in called[1])):
        at = source.find(name) if name else -1
        while at >= 0:
            # An adjacent letter or digit makes the name part of a longer word, except in unspaced scripts.
            beside = (source[at - 1 : at] if at else "", source[at + len(name) :][:1])
            if not any(char.isascii() and char.isalnum() for char in beside):
                return True
            at = source.find(name, at + 1)
    return False


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
_WEIGHT = "weight allocation"
_MOST_DOUBTFUL = 5

_KEEPS: Mapping[str, Callable[[Sequence[float], float], bool]] = {
    "max_holdings": lambda weights, limit: len(weights) <= limit,
    "min_holdings": lambda weights, limit: len(weights) >= limit,
    "max_weight": lambda weights, limit: max(weights) <= limit + _SLACK,
    "min_weight": lambda weights, limit: min(weights) >= limit - _SLACK,
    "max_total_weight": lambda weights, limit: math.fsum(weights) <= limit + _TOTAL_SLACK,
    "weight_increment": lambda weights, limit: all(abs(w / limit - round(w / limit)) < _SLACK for w in weights),
}
"""The limits that can be checked from weights alone."""


def _forecasts(shown: ParsedDecision, holdings: Mapping[str, float], stated: Sequence[bool]) -> Features:
    """Score the agreement of forecasts with sizes and with each other; ``stated`` holds the checks of other sums."""
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
    forecasts = [(weight, expected[item]) for item, weight in holdings.items() if item in expected]
    total = math.fsum(weight for weight, _ in forecasts)
    ahead = math.fsum(weight for weight, forecast in forecasts if forecast > (benchmark or 0.0))
    order = [
        0.5 if abs(a[1] - b[1]) < _SLACK else float((a[0] > b[0]) == (a[1] > b[1]))
        for a, b in combinations(forecasts, 2)
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
    return {"order": _mean(order), "edge": edge, "ranges": _mean(ranges), "arithmetic": _mean(sums)}


Seen = tuple[Context, ContextIndex, dict[str, Instrument], dict[str, Called], dict[str, float]]
"""The context of a prompt, plain and indexed, its instruments, their names and volatility (mid-ranks in 0..1)."""

_context = lru_cache(maxsize=16)(lambda text: p.read_material(p.sections(text)))  # parsed once for all its decisions


@lru_cache(maxsize=4096)
def read_book(parts: tuple[str, ...]) -> tuple[ParsedDecision, OrderOutcome | None, Mapping[str, QuantityCheck]]:
    """Parse the decision of a prompt, its portfolio if one can be computed, and the quantities stated about that."""
    if len(parts) != 2:
        raise InputError("prompt", [f"a material and a decision are needed (got {len(parts)} parts)"])
    context, shown = _context(parts[0]), read_decision(p.sections(parts[1]))
    result = order_outcome(context, shown.actions)
    if result is None or result.after is None:
        return shown, result, {}
    text = "\n\n".join(rationale.text for rationale in shown.texts)
    return shown, result, reconcile(text, result.after, context.constraints, [item.id for item in context.instruments])


@lru_cache(maxsize=16)
def _index_context(text: str) -> Seen:
    """Index the context of a prompt; cached for all decisions of the context."""
    context = _context(text)
    items = {item.id: item for item in context.instruments}
    # Each instrument's mid-rank by stated volatility, averaged over the fields that state one.
    fields: dict[str, dict[str, float]] = defaultdict(dict)
    volatilities = set(filter(_VOLATILITY.search, {fact.field for fact in context.facts}))
    for fact in context.facts:
        if fact.instrument and isinstance(fact.value, float) and fact.field in volatilities:
            fields[fact.field][fact.instrument] = fact.value
    ranks: dict[str, list[float]] = defaultdict(list)
    for values in fields.values():
        ordered = sorted(values.values())
        for instrument, value in values.items():
            ranks[instrument].append((bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered)))
    volatility = {instrument: math.fsum(numbers) / len(numbers) for instrument, numbers in ranks.items()}
    return context, ContextIndex.of(context), items, {name: _names_of(item) for name, item in items.items()}, volatility


@lru_cache(maxsize=4096)
def notice(parts: tuple[str, ...]) -> Features:
    """Extract the features of a decision from the texts of a prompt's user parts: the context, then the decision.

    The holdings of a decision made of orders are the positions after them (`order_outcome`). Orders that cannot be
    executed leave no holdings: features of holdings are then None, and ``legality`` is 0, the worst value.
    """
    shown, outcome, quantities = read_book(parts)
    context, index, items, calls, volatility = _index_context(parts[0])
    text = "\n\n".join(rationale.text for rationale in shown.texts)
    lower, tokens = text.lower(), p.token_count(text)
    words = {"", *_RUN.findall(text)}  # a name can only occur in a text that has its first word
    words.update([*map(str.lower, words)] if text.isascii() else _RUN.findall(lower))
    candidates = {key: item for key, item in calls.items() if not words.isdisjoint(item[2])}
    holdings = {} if outcome is None else outcome.holdings
    stated = [part for part in quantities.values() if part.verdict != "absent"]
    weighted = any(action.weight is not None for action in shown.actions)
    # The share of rules kept: 0 for orders that cannot be executed, None without any rule.
    legality = (
        None if outcome is None else 0.0 if outcome.after is None else _mean([one.kept for one in outcome.checks])
    )
    if outcome is None:
        # Absolute weights of the holdings by instrument; equal weights if the decision gives none at all.
        weights: dict[str, float] = defaultdict(float)
        for action in shown.actions:
            if action.kind in _HELD:
                weights[action.instrument] += abs(action.weight or 0.0)
        holdings = {instrument: weight for instrument, weight in weights.items() if weight > 0}
        if not math.fsum(weights.values()):
            holdings = dict.fromkeys(weights, 1.0 / max(len(weights), 1))
        rules = context.constraints if holdings and weighted else ()
        legality = _mean([
            _KEEPS[rule.kind](list(holdings.values()), rule.limit)
            for rule in rules
            if rule.scope in ("portfolio", "holding") and rule.kind in _KEEPS and rule.limit > 0
        ])  # fmt: skip
    confidences = [action.confidence for action in shown.actions if action.confidence is not None]
    confidence = _mean(confidences) if shown.confidence is None else shown.confidence
    # Concentration of the holdings: inverse Herfindahl numbers, the largest one, and the mean volatility rank.
    total, many = math.fsum(holdings.values()), max(len(holdings), 1)
    shares = {item: weight / total for item, weight in holdings.items()} if total else {}
    groups: dict[str, float] = defaultdict(float)
    for item, share in shares.items():
        listed = items.get(item)
        groups[(listed.group or listed.asset_class or item) if listed else item] += share
    ranked = {item: share for item, share in shares.items() if item in volatility}
    moved = math.fsum(share * volatility[item] for item, share in ranked.items())
    # Share of holdings named in the text, and in sentences that give a number, an event or a risk.
    pieces = (_PLAIN_SENTENCE if text.isascii() else _SENTENCE).split(text)
    sentences = [(sentence, bool(_DIGIT.search(sentence))) for sentence in pieces if sentence]
    reasons = "\n".join(piece for piece, digits in sentences if digits or _has_topic(piece, "catalyst", "risk"))
    called = {item: calls.get(item) or _names_of(Instrument(id=item)) for item in holdings}
    named = {}
    for name, passage in (("named", text), ("explained", reasons)):
        small = passage.lower()
        size = math.fsum(holdings[item] for item, names in called.items() if _is_named(names, passage, small))
        named[name] = size / total if total else None
    # The fact-check of the numbers in the text. Numbers that reconcile the portfolio count as rules or as the
    # decision's own, even if the context does not support them.
    waiting: dict[str, list[EvidenceState]] = {}
    for part in stated:
        for number in part.numbers:
            waiting.setdefault(number, []).append("rule" if part.quantity in LIMITS else "own_action")
    findings: list[Evidence] = []
    texts = [(rationale.kind, rationale.text) for rationale in shown.texts]
    for evidence in audit_texts(texts, index, _own_numbers(shown, items, outcome)):
        if (left := waiting.get(evidence.quote)) and evidence.state not in (*BORNE_OUT, "own_action"):
            evidence = replace(evidence, state=left.pop(0))
        findings.append(evidence)
    states = Counter(finding.state for finding in findings)
    borne_out = sum(states[state] for state in BORNE_OUT)
    others = len(findings) - states["own_action"]
    doubtful = [evidence.quote for evidence in findings if evidence.state not in (*BORNE_OUT, "own_action")]
    return {
        "tokens": tokens,
        **{f"{topic}_rate": 100.0 * count / max(tokens, 1) for topic, count in topic_counts(text).items()},
        "number_rate": 100.0 * len(findings) / max(tokens, 1), **named,
        "alternatives": sum(_is_named(item, text, lower) for key, item in candidates.items() if key not in holdings),
        "checkable": sum(digits and _has_topic(sentence, "condition") for sentence, digits in sentences) / many,
        "grounded": borne_out / others if others else None, "contradicted": states["contradicted"],
        "used": borne_out / many, "rules_cited": states["rule"], "sizes_cited": states["own_action"] / many,
        "risk_numbers": sum(evidence.kind == "risk" and evidence.state in BORNE_OUT for evidence in findings),
        **_forecasts(shown, holdings, [part.verdict == "right" for part in stated]), "legality": legality,
        "effective": 1.0 / math.fsum(share * share for share in shares.values()) if shares else None,
        "largest": max(shares.values(), default=None),
        "groups": 1.0 / math.fsum(share * share for share in groups.values()) if shares else None,
        "volatility": moved / math.fsum(ranked.values()) if math.fsum(ranked.values()) else None,
        "confidence": confidence, "doubtful": tuple(doubtful[:_MOST_DOUBTFUL]), "style": p.style_of(text),
    }  # fmt: skip


def _own_numbers(shown: ParsedDecision, items: Mapping[str, Instrument], state: OrderOutcome | None) -> DecisionNumbers:
    """Index the decision's own numbers as far as the prompt shows them; for orders also the resulting weights."""

    def unit_of(path: str) -> str:
        # The unit implied by the name of a stated number.
        if "pct" in path or "percent" in path:
            return "percent"
        return "bps" if path.endswith("bps") else "ratio"

    entries: list[OwnEntry] = [
        # judges know the size of an order by its asset alone, and not by the verb as the fact check does
        (action.instrument, {"weight": _WEIGHT, "quantity": "size"}.get(name, name), value, unit)
        for action in shown.actions
        for name, unit in ACTION_UNITS.items()
        if (value := getattr(action, name)) is not None
    ]
    for path, value in shown.values.items():
        if isinstance(value, float):
            # The subject is the longest instrument id at the end of the path, because ids may contain dots.
            subject = path
            while subject and subject not in items:
                subject = subject.partition(".")[2]
            # Values by instrument take their unit from the path, else from the sibling names.
            stem = path.removesuffix(subject) if subject else path
            above = stem.rstrip(".").rpartition(".")[0] if subject else ""
            beside = {unit_of(name) for name in shown.values if above and name.rpartition(".")[0] == above}
            is_ratio = unit_of(stem) == "ratio" and len(beside) == 1
            unit = beside.pop() if is_ratio else unit_of(stem.rstrip(".") if subject else path)
            entries.append((subject, path.replace(".", "_"), value, unit))
    for path, rows in shown.tables.items():
        for line in rows:
            subject = next((cell for cell in line.values() if isinstance(cell, str) and cell in items), "")
            for column, cell in line.items():
                if isinstance(cell, float):
                    entries.append((subject, f"{path}_{column}", cell, unit_of(column)))
    if state is not None and state.after is not None and state.after.equity > 0:
        # The weights that result from the orders are the decision's own, like target weights.
        entries += [(name, _WEIGHT, weight, "ratio") for name, weight in state.after.weights.items()]
    return DecisionNumbers.of(dict.fromkeys(entries))


MOST_CLAIMS: Final = 40
"""Maximum number of claims in a built-in judge's ledger, evenly spaced over the record."""

_EARLY: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TRADES: Final = ("buy", "sell", "short", "cover", "close", "target_weight")
_AROUND: Final = 60
_LONGEST: Final = 500
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step parsed from a prompt: the rows of its tables by name, and its texts; ``cash`` is None if not shown."""

    number: int
    day: str
    tables: Mapping[str, tuple[p.Row, ...]]
    cash: float | None = None
    texts: tuple[tuple[str, str], ...] = ()
    outcomes: tuple[p.Row, ...] = ()

    @property
    def text(self) -> str:
        """The judged texts, joined."""
        return "\n\n".join(text for _, text in self.texts)

    def rows(self, table: str) -> tuple[p.Row, ...]:
        """Return the rows of a table; empty if it is not shown."""
        return self.tables.get(table, ())


def read_steps(text: str) -> tuple[ShownStep, ...]:
    """Parse the steps of a user message; each is a section of tables, followed by its texts and outcomes."""
    steps: list[list[p.Section]] = []
    for section in p.sections(text):
        if section.label == "step":
            steps.append([])
        if steps:
            steps[-1].append(section)
    shown = []
    for step, *others in steps:
        head, *lines = step.content.split("\n")
        named = p.cells(head)
        if len(named) != 3 or named[0] != "step" or not named[1].isdecimal():
            raise InputError("prompt", [Problem("step", f"its first line is not a step's (got {head[:60]!r})")])
        tables, rest = p.read_tables(lines)
        cash = next((float(line[1]) for line in rest if line[0] == "cash"), None)
        texts = tuple((part.label, part.content) for part in others if part.label in p.JUDGED_KINDS)
        after = [part.content.split("\n") for part in others if part.label == "outcomes"]
        outcomes = p.read_tables(after[-1])[0].get("outcomes", ()) if after else ()
        shown.append(ShownStep(int(named[1]), named[2], tables, cash, texts, outcomes))
    return tuple(shown)


@lru_cache(maxsize=8)
def notice_horizon(message: str) -> Features:
    """Extract the features of a user message on a horizon; cached for all judges and trials.

    ``tokens`` is the number of words of judged text per step. ``claims`` are entries of a claims ledger: numbers in the
    rationales with the words around them, checked against the market lines of their step.
    """
    from assaymark.judging.season.record import ORDER  # here, because rubrics do not need season code

    steps = read_steps(message)
    prose, many = "\n\n".join(step.text for step in steps), max(len(steps), 1)
    tokens = p.token_count(prose)
    findings = []
    for step in steps:
        # Numbers are checked only against the market lines of their own step.
        market = tuple(tuple(line.items()) for line in step.rows("market"))
        findings += [(step, finding) for finding in _check_numbers(step.texts, market)]
    last: dict[str, bool] = {}
    turns: list[bool] = []
    right: list[bool] = []
    early: dict[str, float] | None = None
    holdings: list[int] = []
    filled = refused = 0
    for step in steps:
        # Fills of orders only, without splits, dividends and delisted instruments.
        ordered = [fill for fill in step.rows("fills") if fill.get("kind", ORDER) == ORDER]
        filled, refused = filled + len(ordered), refused + len(step.rows("refused"))
        for fill in ordered:
            bought = float(fill["units"]) > 0
            turns.append(last.get(fill["symbol"], bought) != bought)
            last[fill["symbol"]] = bought
        positions = {row["symbol"]: float(row["units"]) for row in step.rows("book")}
        after = None if step.cash is None else positions
        if after is not None:
            holdings.append(len(after))
        if early is not None and after is not None:
            expected = defaultdict(float, early)
            for fill in step.rows("fills"):
                expected[fill["symbol"]] += float(fill["units"])
            for symbol in {*expected, *after}:
                reach = _SLACK * max(1.0, abs(expected[symbol]))
                right.append(abs(expected[symbol] - after.get(symbol, 0.0)) <= reach)
        early = after
    traded = [(line, step) for step in steps for line in step.rows("actions") if line["action"] in _TRADES]
    # Evenly spaced numbers, each quoted verbatim with the words around it.
    claims: list[dict[str, JSON]] = []
    for step, evidence in findings[:: -(-len(findings) // MOST_CLAIMS) or 1]:
        text = step.texts[evidence.part][1]
        start, end = evidence.start, evidence.start + len(evidence.quote)
        low = text.rfind(" ", 0, max(start - _AROUND, 0)) + 1 if start > _AROUND else 0
        high = text.find(" ", min(end + _AROUND, len(text)))
        quote = text[low : high if high >= 0 else len(text)]
        if len(quote) > _LONGEST or _HALF_PAIR.search(quote):
            quote = evidence.quote[:_LONGEST]
        state = "supported" if evidence.state in BORNE_OUT else "not_verifiable"
        claims.append({"quote": quote, "step": step.number, "state": state, "fields": list(evidence.facts)})
    return {
        "steps": len(steps), "tokens": tokens / many,
        **{f"{topic}_rate": 100.0 * n / max(tokens, 1) for topic, n in topic_counts(prose).items()},
        "numbers": len(findings) / many, "grounded": _mean([finding.state in BORNE_OUT for _, finding in findings]),
        "named": _mean([line["instrument"] in step.text for line, step in traded]), "reversed_trades": _mean(turns),
        "carried_out": filled / (filled + refused) if filled + refused else None, "holdings": _mean(holdings),
        "reconciled": _mean(right), "style": p.style_of(prose),
        "claims": tuple(claims),
    }  # fmt: skip


@lru_cache(maxsize=2048)
def _check_numbers(
    texts: tuple[tuple[str, str], ...], market: tuple[tuple[tuple[str, str], ...], ...]
) -> tuple[Evidence, ...]:
    """Check the numbers of texts against market lines; cached, because every judge sees a step in several prompts."""
    facts, names = [], []
    for line in map(dict, market):
        symbol = line.pop("symbol")
        names.append(Instrument(symbol, symbol))
        for column, cell in line.items():
            try:
                value = float(cell)
            except ValueError:
                continue
            name, _, unit = column.rpartition(" [")
            unit = unit.removesuffix("]")
            facts.append(Fact(column, symbol, name, value, unit, available_at=_EARLY))
    shown: list[Any] = list(texts)
    return tuple(audit_texts(shown, ContextIndex.build(facts, names)))
