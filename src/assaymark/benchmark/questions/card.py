"""The dataset card: what a generated set holds, counted from its questions, in Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from assaymark.benchmark.questions.payloads import (
    LEVELS,
    REGIME_NAMES,
    SPLITS,
    TEMPLATES,
    Answer,
    Context,
    Direction,
    Number,
    PairAllocation,
    Payload,
    PositionSize,
    Rebalancing,
    SharpeAllocation,
    TailRisk,
    Template,
    Trade,
    Weights,
)
from assaymark.benchmark.questions.published import questions_digest
from assaymark.benchmark.questions.render import PROMPT_VERSION, template_digest
from assaymark.benchmark.questions.templates import Question, binds
from assaymark.records import JSON

if TYPE_CHECKING:
    from assaymark.benchmark.questions.generate import QuestionSet


_NUMBER = re.compile(r"\d+(?:\.\d+)?(?: ?%)?")
_PLACES = 10_000
_FOUR, _SIX = 5e-5, 5e-7  # two numbers are one where they agree to four decimals; single returns to six


def payload_states(payload: Payload, answer: Answer) -> bool:
    """Whether a number of the payload is one of the answer."""
    told = _numbers(answer)
    match payload:
        case TailRisk(returns=returns):
            return _near(np.array(returns), told, _SIX)
        case PositionSize(drawdown=drawdown, returns=returns):
            return _near(np.array((drawdown, *returns)), told, _FOUR)
        case PairAllocation():
            pair = (*payload.volatilities, *payload.means, payload.covariance, payload.correlation, payload.floor)
            return _near(np.array(pair), told, _FOUR)
        case SharpeAllocation():
            given = (*payload.means, *(one for row in payload.covariance for one in row), payload.rf)
            return _near(np.array(given), told, _FOUR)
        case Rebalancing():
            return _near(np.array((*payload.current, *payload.target, payload.threshold)), told, _FOUR)
        case _:
            return False


def without_answer(context: Context, answer: Answer) -> Context:
    """The context less the lines that happen to state a number of the answer, as a share or in percent."""
    places = (_numbers(answer) * _PLACES).round().astype(int).tolist()
    if not places:
        return context
    # The neighbours too, because two numbers that are nearly one may be rounded apart.
    told = frozenset(place + step for place in places for step in (-1, 0, 1))
    macro, news, filings = (
        tuple([line for line in lines if told.isdisjoint(_said(line))])
        for lines in (context.macro, context.news, context.filings)
    )
    return replace(context, macro=macro, news=news, filings=filings)


@lru_cache(maxsize=4096)  # the same lines surround many questions
def _said(line: str) -> frozenset[int]:
    """The numbers of a line that could be of an answer, percentages as shares, in units of the fourth decimal."""
    found = [float(one.rstrip(" %")) / (100.0 if one.endswith("%") else 1.0) for one in _NUMBER.findall(line)]
    return frozenset([round(one * _PLACES) for one in found if one < 2.0])


def _numbers(answer: Answer) -> np.ndarray:
    """The numbers of an answer; 0 and 1 tell nothing, because prompts speak of both."""
    match answer:
        case Number():
            found = [answer.value]
        case Weights():
            found = list(answer.weights.values())
        case Trade(size=size) if size is not None:
            found = [size]
        case _:
            found = []
    return np.array([abs(one) for one in found if min(abs(one), abs(1.0 - abs(one))) > _FOUR])


def _near(given: np.ndarray, told: np.ndarray, tolerance: float) -> bool:
    """Whether a given number is one of the answer's, whatever its sign."""
    if not given.size or not told.size:
        return False
    return bool((np.abs(np.abs(given)[:, None] - told) < tolerance).any())


TASKS: Final[Mapping[Template, str]] = MappingProxyType(
    {
        "T1": "return direction of one instrument",
        "T2": "value at risk of one instrument",
        "T3": "position size of one instrument",
        "T4": "least variance of two instruments, with a required return",
        "T5": "largest Sharpe ratio of three to six instruments",
        "T6": "whether to rebalance, and by which trade",
        "T7": "regime, and what to do with each class",
    }
)
"""What each template asks."""


def manifest(made: QuestionSet) -> dict[str, JSON]:
    """What names a set: its digest, where it is from, how it was made, and how many items it has."""
    counted = Counter((one.template, one.split) for one in made.questions)
    return {
        "sha256": questions_digest(made.questions),
        "items": len(made.questions),
        "counts": {name: {split: counted[name, split] for split in SPLITS} for name in TEMPLATES},
        "market": {"source": made.source, "snapshot": made.snapshot},
        "seed": made.seed,
        "window": made.window,
        "horizon": made.horizon,
        "lookback": made.lookback,
        "prompts": {"version": PROMPT_VERSION, "sha256": template_digest()},
    }


def dataset_card(made: QuestionSet) -> str:
    """The card of a set, in Markdown."""
    facts = manifest(made)
    counted = Counter((one.template, one.split) for one in made.questions)
    rows = [
        [name, TASKS[name], LEVELS[name], *(counted[name, split] for split in SPLITS), len(_of(made.questions, name))]
        for name in TEMPLATES
    ]
    total = [sum(one.split == split for one in made.questions) for split in SPLITS]
    rows.append(["all", "", "", *total, len(made.questions)])
    ways = Counter(one.answer.way for one in made.questions if isinstance(one.answer, Direction))
    lines = [f"- T1: {', '.join(f'{name} {count}' for name, count in sorted(ways.items()))}."] if ways else []
    told: dict[str, Callable[[Question], bool | None]] = {
        "T3 at the cap of 1": lambda one: (
            one.answer.value == 1.0
            if isinstance(one.payload, PositionSize) and isinstance(one.answer, Number)
            else None
        ),
        "T4 with a required return that binds": lambda one: (
            binds(one.payload) if isinstance(one.payload, PairAllocation) else None
        ),
        "T6 that need a trade": lambda one: one.answer.rebalance if isinstance(one.answer, Trade) else None,
    }
    for what, holds in told.items():
        found = [value for one in made.questions if (value := holds(one)) is not None]
        if found:
            lines.append(f"- {what}: {sum(found)} of {len(found)}.")
    parts = [
        f"# PortBench questions: {len(made.questions):,} items",
        f"Made by assaymark from the market `{made.source} {made.snapshot}`, seed {made.seed}.",
        f"Prompts `{PROMPT_VERSION}`. sha256 of the JSON lines: `{facts['sha256']}`.",
        "## Templates and splits\n\n" + _table(["template", "asks for", "level", *SPLITS, "items"], rows),
        "## Regimes\n\n" + _regimes(made.questions),
        "## Text\n\n" + _text(made.questions),
        "## Balance of the answers\n\n" + "\n".join(lines),
        _ABOUT.format(window=made.window, horizon=made.horizon, lookback=made.lookback),
    ]
    return "\n\n".join(parts) + "\n"


_ABOUT = """\
## How it was made

Seven templates of PortBench, Appendix D. Splits by year end: train up to 2022, val 2023 and 2024, test from 2025. A
prompt holds only what was known at the close of its decision day; T2 to T5 rest on the last {window} daily returns, T1
looks {horizon} trading days ahead, summaries cover {lookback} trading days. Prompts state no dates. The answers of T2
to T6 follow from the numbers as printed under the full condition; the restricted condition takes the covariance and
the correlation out of T4 and the covariance matrix out of T5. No number of an answer is stated in its own prompt.

## Limits

- Instruments whose price is missing where the answer of T1 lies are not asked about: T1 knows no delisting.
- The regime in T7 is that of equities, save where equities hardly have a regime in a split: another class stands in.
- The class changes of T7 are a fixed table of the paper, not a measured optimum.
- Items of one day share their market. Intervals that treat items as independent are somewhat too narrow.
- T1 asks for what cannot be known: a score far above the share of its most frequent answer is a finding to doubt."""


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _of(questions: Sequence[Question], name: Template) -> list[Question]:
    return [one for one in questions if one.template == name]


def _regimes(questions: Sequence[Question]) -> str:
    counted = Counter((one.template, one.regime) for one in questions)
    rows = [[name, *(counted[name, regime] for regime in REGIME_NAMES)] for name in TEMPLATES]
    return _table(["template", *REGIME_NAMES], rows)


def _text(questions: Sequence[Question]) -> str:
    rows = []
    for name in TEMPLATES:
        found = _of(questions, name)
        if found:
            with_text = float(np.mean([bool(one.context.news or one.context.filings) for one in found]))
            characters = float(np.mean([len(one.prompt("full")) for one in found]))
            rows.append([name, f"{100 * with_text:.0f} %", f"{characters:,.0f}"])
    return _table(["template", "with news or filings", "mean characters of the full prompt"], rows)
