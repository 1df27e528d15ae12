"""Parsing of replies to questions, and their scores in [0, 1] (PortBench, Appendix D; other rules are ours)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast

import numpy as np

from assaymark.benchmark.questions import payloads as kinds
from assaymark.benchmark.questions.payloads import TEMPLATES, Answer, Change, Regime, Template
from assaymark.benchmark.questions.templates import Question
from assaymark.benchmark.replies import json_in
from assaymark.benchmark.scores import Convention
from assaymark.errors import InputError
from assaymark.portfolio.optimisers import Floats
from assaymark.quantiles import wilson_ends
from assaymark.records import JSON

_NUMBER = r"[-+]?(?:\d{1,15}(?:,\d{3})*(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?"
_SAID = re.compile(rf"(?<![\w.])({_NUMBER})\s?(%|percent\b|bps\b|basis points\b)?", re.IGNORECASE)
# Numbers that are part of a name: 95% confidence, VaR99, the 5th percentile, 1-day, 252 returns.
_DIGITS = r"(?<![\d.])[\d.]{1,8}(?![\d.])"
_NAMES_ELSE = re.compile(
    r"\bat(?: the| a)?\s+(?:9\d(?:\.\d{1,2})?\s?%|0?\.9\d{0,2}\b)"
    rf"|{_DIGITS}\s?%?[- ]{{1,3}}(?:confidence|quantile|var\b|value[- ]at[- ]risk|percentile)"
    rf"|(?:confidence|quantile|level|percentile)\s?(?:of|=|:)?\s?{_DIGITS}\s?%?"
    rf"|\bc?var\s?[_({{\[]{{0,3}}\s?{_DIGITS}\s?%?\s?[)}}\]]{{0,3}}"
    r"|\b\d{1,4}(?:st|nd|rd|th)\b|\b\d{1,4}[- ](?:day|days|trading|returns|observations)\b",
    re.IGNORECASE,
)
_LEADS = re.compile(r"=|:|\bis\b|\bbe\b|\bequals\b")
_LOSS = re.compile(r"\bloss(?:es)?\s+(?:of\s+)?(?:about\s+)?$", re.IGNORECASE)
_LIKE = 0.02  # two numbers with at most this relative difference are one number written twice
_OTHER = re.compile(rf"(?<![\w.-])([A-Z][A-Z0-9.-]{{1,11}})\s*[=:]\s*({_NUMBER})")
_ROUNDING, _NEARLY = 0.011, 0.1  # tolerance of the sum of weights: for rounding, and for a partial answer


State = Literal["ok", "partial", "invalid", "refused", "truncated"]


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """A parsed reply. ``answer`` is None unless the state is ``ok`` or ``partial``; ``reason`` explains why."""

    answer: Answer | None
    state: State
    reason: str = ""


def _parsed(answer: Answer | None, reason: str = "") -> ParsedAnswer:
    """Return the parsed reply for an answer or None, with the reason if it is partial or invalid."""
    return ParsedAnswer(answer, "invalid" if answer is None else "partial" if reason else "ok", reason)


def read_number(reply: str, marked: bool) -> ParsedAnswer:
    """Parse the one number of a reply; ``marked``: only its first line is the answer."""
    lines = [line for line in reply.splitlines() if line.strip()]
    for line in lines[:1] if marked else reversed(lines):
        line = _NAMES_ELSE.sub(" ", line)
        values = values_in(line)
        if not values:
            continue
        first = values[0][1]
        if all(abs(value - first) <= _LIKE * abs(first) for _, value in values):
            return _parsed(kinds.Number(first))
        leads = [match.end() for match in _LEADS.finditer(line)]
        after = [value for at, value in values if leads and at >= leads[-1]]
        if after and all(abs(value - after[0]) <= _LIKE * abs(after[0]) for value in after):
            return _parsed(kinds.Number(after[0]))
        return _parsed(None, f"several numbers: {', '.join(f'{value:g}' for _, value in values[:4])}")
    return _parsed(None, "no number")


def read_weights(reply: str, marked: bool, names: Sequence[str]) -> ParsedAnswer:
    """Parse the weights of the instruments ``names`` in a reply; ``marked``: it is all part of the answer."""
    weights: dict[str, float] = {}
    for name in names:
        escaped = re.escape(name)
        beside = rf"(?<![A-Za-z0-9-])(?:w_?\{{?)?{escaped}\}}{{0,2}}['\"]?(?![A-Za-z0-9-])(?:\s|[)=:]|is|at|to){{0,12}}"
        before = rf"({_NUMBER})\s?(%?)\s*(?:in|of|to|for)\s+{escaped}(?![A-Za-z0-9-])"
        row = rf"(?m)^\W{{0,9}}{escaped}\s{{0,9}}\|\s{{0,9}}({_NUMBER})\s?(%?)\W{{0,9}}$"  # of a table with two columns
        patterns = rf"{beside}({_NUMBER})\s?(%?)", before, row
        said_of = next(filter(None, (re.findall(pattern, reply) for pattern in patterns)), [])
        values = [_value(number, unit) for number, unit in said_of]
        if marked and len(values) > 1 and max(values) - min(values) > _LIKE:
            return _parsed(None, f"several weights for {name}")
        if values:
            weights[name] = values[-1]
    if not weights and not re.search(r"[A-Za-z]{2}", reply):  # a bare list of as many numbers as instruments
        bare = [value for _, value in values_in(reply)]
        weights = dict(zip(names, bare, strict=True)) if len(bare) == len(names) else {}
    if not weights:
        return _parsed(None, "no weights")
    missing = [name for name in names if name not in weights]
    others = {
        name: float(value)
        for name, value in (_OTHER.findall(reply) if marked else ())
        if name.removeprefix("W_") not in names and name not in names
    }
    weights = {name: weights.get(name, 0.0) for name in names} | others
    reasons = [f"no weight for {', '.join(missing)}"] * bool(missing)
    reasons += [f"weights for instruments that were not asked for: {', '.join(sorted(others)[:5])}"] * bool(others)
    total = math.fsum(weights.values())
    if abs(total - 100.0) <= 100 * _ROUNDING and max(weights.values()) > 1.5:
        weights, total = {name: value / 100.0 for name, value in weights.items()}, total / 100.0
    lowest = min(weights.values())
    if lowest < -1e-9:
        return _parsed(None, f"a weight is below 0 ({lowest:g})")
    if abs(total - 1.0) > _NEARLY:
        return _parsed(None, f"the weights sum to {total:g}")
    if abs(total - 1.0) > _ROUNDING:
        reasons = [*reasons, f"the weights sum to {total:g}; they were scaled to 1"]
    return _parsed(kinds.Weights({name: max(v, 0.0) / total for name, v in weights.items()}), "; ".join(reasons))


def values_in(line: str) -> list[tuple[int, float]]:
    """Return the numbers of a line with their positions; one that is called a loss is negative."""
    values = []
    for match in _SAID.finditer(line):
        value = _value(match[1], match[2] or "")
        if value > 0 and _LOSS.search(line[: match.start()][-40:]):
            value = -value
        if math.isfinite(value):
            values.append((match.start(), value))
    return values


def _value(number: str, unit: str) -> float:
    scale = {"": 1.0, "%": 100.0, "percent": 100.0}.get(unit.lower(), 10_000.0)
    return float(number.replace(",", "")) / scale


_NEGATED = re.compile(r"\b(?:not|no|never|neither|nor|isn't|won't|n't)\s+(?:be\s+|a\s+|an\s+|the\s+)?$", re.IGNORECASE)
_WAYS: Mapping[str, kinds.Way] = {
    "positive": "positive", "negative": "negative", "flat": "flat", "up": "positive", "down": "negative",
    "neutral": "flat",
}  # fmt: skip
_CLASSES: Mapping[str, str] = {
    "equity": r"equit(?:y|ies)|stocks?",
    "bond": r"bonds?|fixed[ _]income",
    "commodity": r"commodit(?:y|ies)",
    "real_estate": r"real[ _-]?estate|reits?",
    "crypto": r"crypto(?:currenc(?:y|ies))?",
    "cash": r"cash(?:[ _]equivalents?)?",
}
_CHANGES: Mapping[str, Change] = {
    "increas": "increase", "overweight": "increase", "raise": "increase", "decreas": "decrease",
    "reduc": "decrease", "underweight": "decrease", "lower": "decrease", "hold": "hold", "maintain": "hold",
    "neutral": "hold", "keep": "hold", "unchanged": "hold",
}  # fmt: skip
_CHANGE = rf"({'|'.join(_CHANGES)})"
_YES = re.compile(
    r"\byes\b|(?<!not )\b(?:should|must|needs? to) (?:be )?rebalance|rebalanc\w* is (?:needed|required)", re.I
)
_NO = re.compile(
    r"\bno\b|\b(?:not|n't|never)\s+(?:be\s+|to\s+)?(?:rebalanc|need|requir|necess|trad)|\bunnecessary\b|\bno need\b",
    re.I,
)
_SIDE = re.compile(r"\b(buy|bought|sell|sold|purchase|add|trim|reduce|increase)\w*\b", re.I)
_SIDES: Mapping[str, kinds.Side] = {
    "buy": "buy", "bought": "buy", "purchase": "buy", "add": "buy", "increase": "buy",
    "sell": "sell", "sold": "sell", "trim": "sell", "reduce": "sell",
}  # fmt: skip


def read_direction(reply: str, marked: bool) -> ParsedAnswer:
    """Parse the direction of a reply: positive, negative or flat."""
    for part in reply.splitlines()[:1] if marked else [reply, *reversed(reply.splitlines())]:
        ways = {_WAYS[word] for word in _unnegated(rf"\b({'|'.join(_WAYS)})\b", part)}
        if len(ways) == 1:
            return _parsed(kinds.Direction(ways.pop()))
        if ways and part is not reply:
            return _parsed(None, f"several directions: {', '.join(sorted(ways))}")
    return _parsed(None, "no direction, or several")


def read_trade(reply: str, names: Sequence[str]) -> ParsedAnswer:
    """Parse the decision to rebalance and the first trade in a reply."""
    first = re.match(r"\W*(?:\(?a\)?\W*)?(yes|no)\b", reply, re.I)
    if first:
        yes = first[1].lower() == "yes"
    else:
        yes, no = bool(_YES.search(reply)), bool(_NO.search(reply))
        if yes == no:
            return _parsed(None, "both yes and no" if yes else "neither yes nor no")
    if not yes:
        return _parsed(kinds.Trade(False))
    rest = reply[first.end() :] if first else reply
    side = _SIDE.search(rest)
    alone = {name: rf"(?<![A-Za-z0-9-]){re.escape(name)}(?![A-Za-z0-9-])" for name in names}
    places = [(match.start(), name) for name, pattern in alone.items() for match in re.finditer(pattern, rest)]
    if side is None:
        return _parsed(kinds.Trade(True), "no trade is named")
    after = sorted(place for place in places if place[0] > side.start())
    before = sorted(place for place in places if place[0] < side.start())
    instrument = after[0][1] if after else before[-1][1] if before else None
    # Sizes are not scored. Names are removed first, since their digits would be parsed as numbers.
    plain = re.sub("|".join(alone.values()), " ", rest[side.end() :])
    sizes = [value for _, value in values_in(plain)]
    trade = kinds.Trade(True, _SIDES[side[1].lower()], instrument, abs(sizes[0]) if sizes else None)
    return _parsed(trade, "" if instrument else "the trade names no instrument of the portfolio")


def read_regime(reply: str) -> ParsedAnswer:
    """Parse the regime and the change of each class in a reply."""
    words = "|".join(kinds.REGIME_NAMES)  # labelled as the regime, or the only one in the reply
    stated = re.findall(rf"\bregime\W{{0,6}}(?:is\W{{1,3}})?({words})\b", reply, re.I)
    labels = {word.lower() for word in stated} or _unnegated(rf"\b({words})(?:ish)?\b", reply)
    regime = cast(Regime, labels.pop()) if len(labels) == 1 else None
    changes: dict[str, Change] = {}
    for name, kind in _CLASSES.items():
        after = rf"(?:\b|_)(?:{kind})\b[^\w,;.\n]{{0,6}}(?:is|should be|to|allocation)?[^\w,;.\n]{{0,3}}{_CHANGE}"
        beside = re.search(after, reply, re.I) or re.search(rf"\b{_CHANGE}\w*\s+(?:{kind})\b", reply, re.I)
        if beside:
            changes[name] = _CHANGES[beside[1].lower()]
    if regime is None and not changes:
        return _parsed(None, "neither one regime nor a change of a class")
    missing = [name for name in _CLASSES if name not in changes]
    reasons = ["no regime, or several"] * (regime is None) + [f"no change for {', '.join(missing)}"] * bool(missing)
    return _parsed(kinds.RegimeView(regime, changes), "; ".join(reasons))


def _unnegated(pattern: str, text: str) -> set[str]:
    """Return the matches of a pattern in a text, in lower case, that are not preceded by a negation."""
    matches = re.finditer(pattern, text, re.I)
    return {match_[1].lower() for match_ in matches if not _NEGATED.search(text[: match_.start()][-40:])}


LONGEST: Final = 20_000
"""Characters of a reply that are parsed, from its end, where the answer is."""

_MARK = re.compile(r"\b(?:final\s+)?answer\s*(?:is)?\s*[:=]", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:i\s+(?:can\s?not|can't|won't|will\s+not|am\s+(?:unable|not\s+able))|as\s+an\s+ai|i'm\s+(?:unable|sorry))",
    re.IGNORECASE,
)
# Emphasis, the commands of LaTeX that wrap an answer, and tags; other words in angle brackets may be the answer.
_DECORATION = re.compile(r"\\[a-zA-Z]{1,12}(?=\{)|[*`$\\]|</?(?:answer|b|br|code|em|i|p|strong|sub)>")
_PLAIN = str.maketrans({"−": "-", "–": "-", "—": "-", "‑": "-", "’": "'", "\u00a0": " ", "≈": "=", "→": "="})
_ARROW = re.compile(r"[-=]>")


def read_answer(question: Question, text: str, finish: str = "stop") -> ParsedAnswer:
    """Parse a reply to a question."""
    if finish == "refusal":
        return ParsedAnswer(None, "refused", "the provider reports a refusal")
    if finish == "failed":
        return ParsedAnswer(None, "invalid", "there was no answer")
    plain = _ARROW.sub("=", _DECORATION.sub("", text[-LONGEST:].translate(_PLAIN))).strip()
    if not plain:
        return ParsedAnswer(None, "invalid", "the reply is empty")
    marks = list(_MARK.finditer(plain))
    if not marks and finish == "length":
        return ParsedAnswer(None, "truncated", "the reply was cut off before its answer")
    answer, marked = plain[marks[-1].end() :].strip() if marks else plain, bool(marks)
    names, begin, end = question.instruments, answer.find("{"), answer.rfind("}")
    entries = next(json_in([answer[begin : end + 1]] if 0 <= begin < end else []), None)
    if isinstance(entries, dict):  # flattened to text: its answer alone if it names one, not what explains it
        own = [inner for key, inner in entries.items() if key.lower() == "answer"]
        answer, marked = "; ".join(flattened({"": own[0]} if own else entries)) or answer, marked or bool(own)
    match question.answer:
        case kinds.Direction():
            reading = read_direction(answer, marked)
        case kinds.Number():
            reading = read_number(answer, marked)
        case kinds.Weights():
            reading = read_weights(answer, marked, names)
        case kinds.Trade():
            reading = read_trade(answer, names)
        case kinds.RegimeView():
            reading = read_regime(answer)
    if reading.answer is None and _REFUSAL.search(plain):
        return ParsedAnswer(None, "refused", "the reply declines to answer")
    return reading


def flattened(entries: Mapping[str, JSON]) -> Iterator[str]:
    """Yield a JSON object as texts ``name: value``; a row of a list is named by its only text."""
    for name, inner in entries.items():
        for row in inner if isinstance(inner, list) else [inner]:
            values = row if isinstance(row, dict) else {name: row}
            texts = [value for value in values.values() if isinstance(value, str)]
            for key, value in values.items():
                if isinstance(inner, list) and len(texts) == 1 < len(values):
                    key = texts[0]
                if isinstance(value, str | int | float) and value != key:
                    yield f"{key}: {('no', 'yes')[value] if isinstance(value, bool) else value}".removeprefix(": ")


_SMALLEST = 1e-6  # smallest denominator of a relative error, as in eq. 14


@dataclass(frozen=True, slots=True)
class QAScore:
    """The score of one reply, with its state and the scores of its parts."""

    score: float
    state: State
    parts: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


def score_answer(
    question: Question, reply_text: str, finish: str = "stop", *, convention: Convention = "paper"
) -> QAScore:
    """Parse a reply to a question and score it in [0, 1]."""
    read, parts = read_answer(question, reply_text, finish), dict[str, float]()
    if read.answer is None:
        return QAScore(0.0, read.state, {}, read.reason)
    match read.answer, question.answer:  # of one kind, because the truth determines the parser
        case kinds.Direction() as said, kinds.Direction() as truth:
            score = float(said.way == truth.way)
        case kinds.Number() as said, kinds.Number() as truth:
            score = max(0.0, 1.0 - abs(said.value - truth.value) / max(abs(truth.value), _SMALLEST))
        case kinds.Weights() as said, kinds.Weights() as truth:
            if convention == "reference":  # the cosine
                product = sum(value * truth.weights.get(name, 0.0) for name, value in said.weights.items())
                size = math.hypot(*said.weights.values()) * math.hypot(*truth.weights.values())
                score = min(1.0, max(0.0, product / size)) if size > 0 else 0.0
            else:  # fsum: the result does not depend on the order of a reply's lines or on Python's hash seed
                names = {**truth.weights, **said.weights}
                distance = math.fsum(abs(said.weights.get(name, 0.0) - truth.weights.get(name, 0.0)) for name in names)
                score = min(1.0, max(0.0, 1.0 - distance / 2.0))
        case kinds.Trade() as said, kinds.Trade() as truth:
            score = right = float(said.rebalance == truth.rebalance)
            parts = {"decision": right}
            if truth.rebalance and truth.side is not None:  # a published set may say yes without a trade
                side = right * float(said.side == truth.side)
                instrument = right * float(said.instrument == truth.instrument)
                score = 0.4 * right + 0.6 * (0.5 * side + 0.5 * instrument)
                parts |= {"side": side, "instrument": instrument}
        case kinds.RegimeView() as said, kinds.RegimeView() as truth:
            regime = float(said.regime == truth.regime)
            changes = sum(said.changes.get(name) == change for name, change in truth.changes.items())
            parts = {"regime": regime, "changes": changes / len(truth.changes)}
            score = 0.5 * regime + 0.5 * parts["changes"]
        case _:
            raise AssertionError("a reply is read as the kind of its truth")
    return QAScore(score, read.state, parts, read.reason)


FORMULA: Final[tuple[Template, ...]] = ("T4", "T5")
"""Templates of column F (formula) of Table 8."""

JUDGMENT: Final[tuple[Template, ...]] = ("T1", "T2", "T6", "T7")
"""Templates of column J (judgment) of Table 8. T3 is in neither, as in the paper."""


EXCERPT: Final = 1500
"""Characters of a prompt or a reply that a page shows."""


@dataclass(frozen=True, slots=True)
class ScoredReply:
    """One scored reply: its scores under the plan's convention and the ``other`` one, its start and its call key."""

    question: Question
    condition: kinds.Condition
    score: QAScore
    other: QAScore
    reply: str = ""
    key: str = ""
    missing: bool = False


@dataclass(frozen=True, slots=True)
class MeanScore:
    """A mean score with its interval and number of scores."""

    value: float
    low: float | None
    high: float | None
    n: int
    method: str


def tabulate(
    scored: Iterable[ScoredReply], rng: np.random.Generator, level: float = 0.95, *, resamples: int = 2000
) -> list[tuple[str, dict[str, str], MeanScore]]:
    """Compute one row of Table 8: mean scores of one model, each with its condition and its group."""
    rows = list(scored)
    if not rows:
        raise InputError("scores", ["there are no answers; ask a model first"])
    counted = Counter((row.question.id, row.condition) for row in rows)
    twice = [f"{mark} ({condition})" for (mark, condition), count in counted.items() if count > 1]
    if twice:
        raise InputError("scores", [f"{len(twice)} questions were scored twice: {', '.join(twice[:5])}"])

    def mean_of(parts: Sequence[Floats], *, stratified: bool = True, share: bool = False) -> MeanScore:
        """Compute the unweighted mean of parts, with a bootstrap within parts or, of a ``share``, Wilson's interval."""
        mean, n = float(np.mean([part.mean() for part in parts])), sum(part.size for part in parts)
        if share and bool(np.isin(parts[0], (0.0, 1.0)).all()):
            return MeanScore(mean, *wilson_ends(mean, n, level), n, "wilson")
        if max(part.size for part in parts) == 1:
            return MeanScore(mean, None, None, n, "one question a template" if stratified else "one question")
        drawn = [part[rng.integers(part.size, size=(resamples, part.size))].mean(axis=1) for part in parts]
        low, high = np.quantile(np.mean(drawn, axis=0), [(1 - level) / 2, (1 + level) / 2])
        method = "bootstrap within templates" if stratified else "bootstrap"
        return MeanScore(mean, float(low), float(high), n, method)

    def cell(values: Floats, *, share: bool = True) -> MeanScore:
        return mean_of([values], stratified=False, share=share)

    def grouped(some: Sequence[ScoredReply]) -> dict[Template, Floats]:
        values = {name: [row.score.score for row in some if row.question.template == name] for name in TEMPLATES}
        return {name: np.array(scores) for name, scores in values.items() if scores}

    full, restricted = ([row for row in rows if row.condition == name] for name in ("full", "restricted"))
    # Means are of the full condition, or of the restricted one if the full one was not asked.
    main, whole = ("full", full) if full else ("restricted", restricted)
    by_template, without = grouped(whole), {scored.question.id: scored.score.score for scored in restricted}
    lost = {
        name: [
            scored.score.score - without[scored.question.id]
            for scored in {scored.question.id: scored for scored in full}.values()
            if scored.question.id in without and scored.question.template == name
        ]
        for name in kinds.ABLATED
    }
    cells: list[tuple[str, dict[str, str], MeanScore | None]] = []
    cells += [(main, {"template": name}, cell(values)) for name, values in by_template.items()]
    if full:
        cells += [("restricted", {"template": name}, cell(values)) for name, values in grouped(restricted).items()]
    cells += [
        ("full less restricted", {"template": name}, cell(np.array(values), share=False))
        for name, values in lost.items()
        if values
    ]
    mean, formula, judgment = (
        mean_of([by_template[name] for name in names]) if set(names) <= set(by_template) else None
        for names in (TEMPLATES, FORMULA, JUDGMENT)
    )
    by_regime = {name: grouped([one for one in whole if one.question.regime == name]) for name in kinds.REGIME_NAMES}
    cells += [(main, {"regime": name}, mean_of([*some.values()])) for name, some in by_regime.items() if some]
    cells += [(main, {"kind": "formula"}, formula), (main, {"kind": "judgment"}, judgment), (main, {}, mean)]
    return [(condition, labels, cell) for condition, labels, cell in cells if cell is not None]
