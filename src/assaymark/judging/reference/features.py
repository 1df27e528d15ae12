"""What a reference judge notices in a prompt, as numbers. Nothing here knows more than the rendered text says."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

from assaymark.errors import InputError
from assaymark.judging.arithmetic_oracle import LIMITS, Part, reconcile
from assaymark.judging.books import Book, book_of
from assaymark.judging.evidence import Finding, Material, OwnNumbers, audit_texts
from assaymark.judging.prompts import Cell, Shown, read_decision
from assaymark.prompting.context import read_material
from assaymark.prompting.fences import sections
from assaymark.prompting.texts import style_of, token_count
from assaymark.records import Constraint, Context, EvidenceState, Instrument

# Word lists and the counting of words: the reference judges' whole understanding of language.


def _words(text: str) -> frozenset[str]:
    """The words of a list that is written as text."""
    return frozenset(text.split())


LEXICON: Mapping[str, frozenset[str]] = {
    "hedge": _words(
        "may might could would likely unlikely probably possible possibly potential potentially uncertain uncertainty "
        "roughly approximately appear appears seem seems suggest suggests suggesting perhaps tentative doubt cautious "
        "modest odds chance 可能 或许 大约 不确定 预计"
    ),
    "risk": _words(
        "risk risks risky drawdown drawdowns volatility volatile loss losses lose downside crash shock shocks tail "
        "stress selloff reversal reverse reverses reversion drop drops decline declines hurt hurts hit hits pressure "
        "fade fades crowded overbought correction 风险 波动 回撤 亏损 下跌"
    ),
    "catalyst": _words(
        "catalyst catalysts earnings fomc fed cpi ppi pce gdp payrolls report reports release releases meeting "
        "guidance announcement event events vote hearing statement minutes auction survey results decision "
        "财报 会议 公布"
    ),
    "condition": _words(
        "if unless until invalidate invalidates invalidated invalidation break breaks below above stop trigger "
        "triggers exceed exceeds fall falls close closes 如果 若 除非 止损 跌破"
    ),
    "contrast": _words(
        "however but although though despite whereas while yet offset offsets against instead rather 但 然而 尽管"
    ),
    "constraint": _words(
        "limit limits cap caps capped constraint constraints maximum minimum allowed permitted rule rules increment "
        "increments mandate requirement requirements cluster clusters hurdle budget ceiling floor 限制 上限 约束"
    ),
    "size": _words(
        "weight weights weighted overweight underweight allocation allocations allocate size sized sizing position "
        "positions largest smaller half core satellite tilt tilts sleeve ballast exposure 仓位 比例 配置 权重"
    ),
}
"""Words by what they speak of. One word may speak of several things."""

_WORD = re.compile(r"[a-z]+")
_CHINESE = {topic: tuple(word for word in words if not word.isascii()) for topic, words in LEXICON.items()}


def topic_counts(text: str) -> dict[str, int]:
    """How many words of a text speak of each topic.

    >>> topic_counts("Oil may fall if the Fed meeting disappoints")["catalyst"]
    2
    """
    words = Counter(_WORD.findall(text.lower()))
    counts = {topic: sum(words[word] for word in listed & words.keys()) for topic, listed in LEXICON.items()}
    if not text.isascii():
        for topic, listed in _CHINESE.items():
            counts[topic] += sum(text.count(word) for word in listed)
    return counts


def speaks_of(sentence: str, *topics: str) -> bool:
    """Whether any word of a sentence speaks of any of the topics.

    >>> speaks_of("Oil may fall if the Fed disappoints", "size"), speaks_of("Half of it is gold", "size", "risk")
    (False, True)
    """
    words = set(_WORD.findall(sentence.lower()))
    if any(not words.isdisjoint(LEXICON[topic]) for topic in topics):
        return True
    return not sentence.isascii() and any(word in sentence for topic in topics for word in _CHINESE[topic])


# Which instruments a text speaks of, and whether it says why.


_SENTENCE = re.compile(r"(?<=[.;!?])\s+|(?<=[。；！？])|\n+")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Mentions:
    """What is said about the holdings. Shares are of all weight held, None without holdings.

    ``alternatives`` counts other instruments that are named; ``checkable`` is conditions with a number per holding.
    """

    named: float | None
    explained: float | None
    alternatives: int
    checkable: float


@dataclass(frozen=True, slots=True)
class Called:
    """What an instrument is called: its symbol, which counts as written, and names in small letters, in any case."""

    symbol: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, item: Instrument) -> Called:
        """The symbol and names of an instrument; names of one or two letters tell too little."""
        names = dict.fromkeys((item.id, item.id.replace("_", " "), item.name, *item.aliases))
        found = (name.lower() for name in names if len(name) > 2 and name != item.symbol)
        return cls(item.symbol or "", tuple(dict.fromkeys(found)))

    def stands_in(self, text: str, lower: str) -> bool:
        """Whether a text, given as written and in small letters, names the instrument."""
        if self.symbol and self.symbol in text and _stands_in(self.symbol, text):
            return True
        return any(_stands_in(name, lower) for name in self.names if name in lower)


def called(instruments: Iterable[Instrument]) -> dict[str, Called]:
    """What each instrument is called, by id."""
    return {item.id: Called.of(item) for item in instruments}


def mentions(text: str, holdings: Mapping[str, float], known: Mapping[str, Called]) -> Mentions:
    """Who is named in ``text``, and in a sentence that gives a number, an event or a risk."""
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence]
    numeric = [bool(_DIGIT.search(sentence)) for sentence in sentences]
    reasons = "\n".join(
        one for one, digits in zip(sentences, numeric, strict=True) if digits or speaks_of(one, "catalyst", "risk")
    )
    conditions = sum(digits and speaks_of(one, "condition") for one, digits in zip(sentences, numeric, strict=True))
    items = {item: known.get(item) or Called.of(Instrument(id=item)) for item in holdings}
    lower, lower_reasons = text.lower(), reasons.lower()
    return Mentions(
        named=_share({key for key, item in items.items() if item.stands_in(text, lower)}, holdings),
        explained=_share({key for key, item in items.items() if item.stands_in(reasons, lower_reasons)}, holdings),
        alternatives=sum(item.stands_in(text, lower) for key, item in known.items() if key not in holdings),
        checkable=conditions / max(len(holdings), 1),
    )


def _share(chosen: set[str], holdings: Mapping[str, float]) -> float | None:
    """The part of all weight that the chosen holdings have."""
    total = math.fsum(holdings.values())
    return math.fsum(holdings[item] for item in chosen) / total if total else None


def _stands_in(name: str, text: str) -> bool:
    """Whether a name stands in a text as a word of its own."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not _is_word(text[at - 1 : at] if at else "") and not _is_word(text[end : end + 1]):
            return True
        at = text.find(name, at + 1)
    return False


def _is_word(char: str) -> bool:
    """Whether a neighbouring character makes a name part of a longer word; unspaced scripts never do."""
    return char.isascii() and char.isalnum()


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


@dataclass(frozen=True, slots=True)
class Sizes:
    """How a decision is spread. ``effective`` holdings and groups are inverse Herfindahl numbers; ``volatility`` is
    the weighted mean rank, 0..1, of the holdings' stated volatility among all instruments."""

    effective: float | None
    largest: float | None
    groups: float | None
    volatility: float | None


@dataclass(frozen=True, slots=True)
class Forecasts:
    """How stated forecasts and sizes go together.

    ``order`` is the share of pairs of holdings in which the larger one has the higher forecast; ``edge`` the weight of
    holdings with a forecast above the benchmark's; ``ranges`` the share of stated ranges with low <= base <= high;
    ``arithmetic`` the share of stated sums that hold.
    """

    order: float | None
    edge: float | None
    ranges: float | None
    arithmetic: float | None


def held(shown: Shown) -> dict[str, float]:
    """Absolute weights by instrument of what the decision holds; equal ones where no weight is given at all."""
    actions = [action for action in shown.actions if action.kind in _HELD]
    weights: dict[str, float] = defaultdict(float)
    for action in actions:
        weights[action.instrument] += abs(action.weight or 0.0)
    if not math.fsum(weights.values()):
        return dict.fromkeys(weights, 1.0 / max(len(weights), 1))
    return {instrument: weight for instrument, weight in weights.items() if weight > 0}


# --- spread -----------------------------------------------------------------------------------------------------------


def sizes(holdings: Mapping[str, float], instruments: Mapping[str, Instrument], ranks: Mapping[str, float]) -> Sizes:
    """How the holdings are spread over instruments, groups and stated volatility."""
    total = math.fsum(holdings.values())
    if not total:
        return Sizes(None, None, None, None)
    shares = {item: weight / total for item, weight in holdings.items()}
    groups: dict[str, float] = defaultdict(float)
    for item, share in shares.items():
        known = instruments.get(item)
        groups[(known.group or known.asset_class or item) if known else item] += share
    ranked = {item: share for item, share in shares.items() if item in ranks}
    weight = math.fsum(ranked.values())
    return Sizes(
        effective=_effective(shares),
        largest=max(shares.values()),
        groups=_effective(groups),
        volatility=math.fsum(share * ranks[item] for item, share in ranked.items()) / weight if weight else None,
    )


def _effective(shares: Mapping[str, float]) -> float:
    """The inverse Herfindahl number."""
    return 1.0 / math.fsum(share * share for share in shares.values())


def volatility_ranks(context: Context) -> dict[str, float]:
    """For each instrument its mid-rank, 0..1, by stated volatility, averaged over the fields that state one."""
    fields: dict[str, dict[str, float]] = defaultdict(dict)
    for fact in context.facts:
        if fact.instrument and isinstance(fact.value, float) and _VOLATILITY.search(fact.field):
            fields[fact.field][fact.instrument] = fact.value
    ranks: dict[str, list[float]] = defaultdict(list)
    for values in fields.values():
        ordered = sorted(values.values())
        for instrument, value in values.items():
            ranks[instrument].append((bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered)))
    return {instrument: math.fsum(found) / len(found) for instrument, found in ranks.items()}


# --- forecasts --------------------------------------------------------------------------------------------------------


def forecasts(shown: Shown, holdings: Mapping[str, float], stated: Sequence[bool] = ()) -> Forecasts:
    """How the stated forecasts agree with the sizes and with each other; ``stated``: whether further sums hold."""
    expected = {
        action.instrument: action.expected_return for action in shown.actions if action.expected_return is not None
    }
    benchmark = _value(shown, _BENCHMARK)
    return Forecasts(
        order=_order(holdings, expected),
        edge=_edge(holdings, expected, benchmark or 0.0),
        ranges=_ranges(shown),
        arithmetic=_arithmetic(shown, holdings, expected, stated),
    )


def _value(shown: Shown, path: re.Pattern[str]) -> float | None:
    """A stated return by its path, as a ratio."""
    for name, value in shown.values.items():
        if isinstance(value, float) and path.search(name):
            return value / 100 if name.endswith(("pct", "percent")) else value
    return None


def _order(holdings: Mapping[str, float], expected: Mapping[str, float]) -> float | None:
    """Concordance of size and forecast over pairs of unequal size; equal forecasts count half."""
    known = [(weight, expected[item]) for item, weight in holdings.items() if item in expected]
    pairs = [(a, b) for a, b in combinations(known, 2) if abs(a[0] - b[0]) > _SLACK]
    if not pairs:
        return None
    return sum(_concordance(a, b) for a, b in pairs) / len(pairs)


def _concordance(a: tuple[float, float], b: tuple[float, float]) -> float:
    """1 where the larger has the higher forecast, 0 where it has the lower."""
    if abs(a[1] - b[1]) < _SLACK:
        return 0.5
    return float((a[0] > b[0]) == (a[1] > b[1]))


def _edge(holdings: Mapping[str, float], expected: Mapping[str, float], benchmark: float) -> float | None:
    """The weight share of holdings that are forecast to beat the benchmark."""
    known = {item: weight for item, weight in holdings.items() if item in expected}
    total = math.fsum(known.values())
    if not total:
        return None
    return math.fsum(weight for item, weight in known.items() if expected[item] > benchmark) / total


def _ranges(shown: Shown) -> float | None:
    """The share of stated ranges that are in order."""
    found = [_range(entry) for entries in shown.tables.values() for entry in entries]
    checked = [fine for fine in found if fine is not None]
    return sum(checked) / len(checked) if checked else None


def _range(entry: Mapping[str, Cell]) -> bool | None:
    """Whether low <= base <= high and low < high; None for what is no range."""
    ends = {}
    for name, value in entry.items():
        if isinstance(value, float):
            ends.update({_ENDS[word]: value for word in name.split("_") if word in _ENDS})
    if "low" not in ends or "high" not in ends:
        return None
    return ends["low"] <= ends.get("base", ends["low"]) <= ends["high"] and ends["low"] < ends["high"]


def _arithmetic(
    shown: Shown, holdings: Mapping[str, float], expected: Mapping[str, float], stated: Sequence[bool]
) -> float | None:
    """The share of sums that hold: weights make at most one, parts make the whole, whole less benchmark makes alpha.

    Sums are compared within half of the last digit of a percentage with two decimals, and a little.
    """
    checks = list(stated)
    if any(action.weight is not None for action in shown.actions):
        checks.append(math.fsum(holdings.values()) <= 1 + _TOTAL_SLACK)
    whole, benchmark, alpha = (_value(shown, path) for path in (_PORTFOLIO, _BENCHMARK, _ALPHA))
    if whole is not None and holdings and holdings.keys() <= expected.keys():
        parts = math.fsum(weight * expected[item] for item, weight in holdings.items())
        checks.append(abs(parts - whole) <= _PRINTED)
    if whole is not None and benchmark is not None and alpha is not None:
        checks.append(abs(whole - benchmark - alpha) <= _PRINTED)
    return sum(checks) / len(checks) if checks else None


# --- limits -----------------------------------------------------------------------------------------------------------


def legality(context: Context, shown: Shown, holdings: Mapping[str, float]) -> float | None:
    """The share of limits that the decision keeps, of those that can be checked from weights alone.

    Limits on anything but single holdings and the whole portfolio are left out: their exceptions are not in the
    prompt, and a breach must not be alleged on a guess.
    """
    if not any(action.weight is not None for action in shown.actions):
        return None
    checks = [fine for limit in context.constraints if (fine := _keeps(limit, holdings)) is not None]
    return sum(checks) / len(checks) if checks else None


def _keeps(limit: Constraint, holdings: Mapping[str, float]) -> bool | None:
    """Whether one limit is kept; None if it cannot be told."""
    if limit.scope not in ("portfolio", "holding") or not holdings:
        return None
    value, weights = limit.limit, list(holdings.values())
    checks = {
        "max_holdings": lambda: len(weights) <= value,
        "min_holdings": lambda: len(weights) >= value,
        "max_weight": lambda: max(weights) <= value + _SLACK,
        "min_weight": lambda: min(weights) >= value - _SLACK,
        "max_total_weight": lambda: math.fsum(weights) <= value + _TOTAL_SLACK,
        "weight_increment": lambda: all(abs(w / value - round(w / value)) < _SLACK for w in weights),
    }
    check = checks.get(limit.kind)
    return check() if check and value > 0 else None


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
    """The features of a prompt, from the texts of its user parts: the material, then the decision."""
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
