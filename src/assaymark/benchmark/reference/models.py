"""The reference models: one name answers the questions and goes through the pipeline.

===========  ===============================================  ===================================================  =====
name         views (S1)                                       weights (S3)                                         skill
===========  ===============================================  ===================================================  =====
literal      60-day return carried on over the horizon        highest Sharpe ratio from the sheet, within limits    1.00
prior        the same for a class, looks at no number         60/40                                                 0.00
stubborn     none                                             equal, always                                         0.10
momentum     60-day return                                    by view                                               0.80
contrarian   its opposite                                     by view                                               0.50
steady       for the calmer half                              by inverse variance                                   0.90
cautious     60-day return carried on                         by inverse volatility, well within the profile        0.70
bold         the best Sharpe ratio and nothing else           by view: all in one asset                             0.30
noisy        60-day return and noise                          by view                                               0.60
garbled      60-day return, in a form with a fault            by view, in a form with a fault                       0.40
===========  ===============================================  ===================================================  =====

All follow the threshold of S2. Skill is the planted share of questions that are solved; the others are guessed. Which
ones is drawn from the prompt and the seed, so a question is answered alike however often it is asked.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from assaymark.benchmark.questions.guesser import guess
from assaymark.benchmark.questions.solver import solve
from assaymark.benchmark.reference.garbling import FAULTS
from assaymark.benchmark.reference.reading import (
    horizon_in,
    limits_in,
    sheet_of,
    signals_in,
    stage_of,
    threshold_in,
    views_in,
)
from assaymark.benchmark.reference.rules import BOOKS, VIEWS
from assaymark.benchmark.reply_forms import reply_text
from assaymark.benchmark.stages import SIGNALS, Signal, Stage
from assaymark.engine.calls import CallSpec, Finish, Model, Reply
from assaymark.errors import InputError, ModelError
from assaymark.portfolio.solution import Floats

VERSION: Final = "2"
"""Changes with anything that can change a reply; part of the fingerprint."""

PREFIX: Final = "reference/portbench-"
"""What the names of these models begin with."""

SKILLS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "literal": 1.0,
        "prior": 0.0,
        "stubborn": 0.1,
        "momentum": 0.8,
        "contrarian": 0.5,
        "steady": 0.9,
        "cautious": 0.7,
        "bold": 0.3,
        "noisy": 0.6,
        "garbled": 0.4,
    }
)
"""The share of questions that each model solves."""

NOISE: Final = 0.4
"""The standard deviation of what ``noisy`` adds to a view."""

_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class ReferenceBenchmarkModel:
    """A reference model. It is a `Model`: it reads the rendered prompt and knows nothing else.

    >>> ReferenceBenchmarkModel("literal").name
    'reference/portbench-literal'
    """

    word: str

    @property
    def name(self) -> str:
        """The name by which a file names it."""
        return PREFIX + self.word

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call.

        Raises
        ------
        ModelError
            The prompt is none of the pipeline's, though it looks like one, or an argument is given.
        """
        if problems := benchmark_argument_problems(self.name, call.args):
            raise ModelError("; ".join(problems), retryable=False)
        parts = tuple(part.text for message in call.messages if message.role == "user" for part in message.parts)
        try:
            text, finish = self.answer(parts, call.seed)
        except (InputError, ValueError, KeyError) as exc:
            raise ModelError(f"{self.name} cannot read the prompt: {exc}", retryable=False) from None
        return Reply(text=text, model=self.name, fingerprint=f"{self.name}@{VERSION}", finish=finish)

    def answer(self, parts: tuple[str, ...], seed: int | None = None) -> tuple[str, Finish]:
        """What it replies to the parts of a prompt."""
        stage = stage_of(parts[-1]) if parts else None
        drawn = _rng(self.word, seed, parts)
        if stage is None:
            prompt = "\n\n".join(parts)
            return (solve(prompt) if drawn.random() < SKILLS[self.word] else guess(prompt)), "stop"
        values = self._values(stage, parts, drawn)
        if self.word == "garbled":
            return list(FAULTS.values())[int(drawn.integers(len(FAULTS)))](stage, values)
        return reply_text(stage, values, rationale=_reason(self.word, stage, values)), "stop"

    def _values(self, stage: Stage, parts: tuple[str, ...], drawn: np.random.Generator) -> dict[str, float | str]:
        """What it means, by ticker."""
        task = parts[-1]
        if stage == "S2":
            threshold = threshold_in(task)
            return {name: _signal(view, threshold) for name, view in views_in(task).items()}
        sheet = sheet_of(parts)
        if stage == "S1":
            views = VIEWS[self.word](sheet, horizon_in(task))
            if self.word == "noisy":
                views = np.clip(views + drawn.normal(0.0, NOISE, views.size), -1.0, 1.0)
            return _by_ticker(sheet.tickers, views)
        told = signals_in(task)
        views = np.array([told[name][0] for name in sheet.tickers])
        buys = np.array([told[name][1] == "buy" for name in sheet.tickers])
        allowed = buys if buys.any() else np.ones_like(buys)
        weights = BOOKS[self.word](sheet, views, allowed, limits_in(task))
        return {name: weight for name, weight in _by_ticker(sheet.tickers, weights).items() if weight}


def reference_benchmark_models() -> dict[str, Model]:
    """The reference models by name, for registration.

    >>> len(reference_benchmark_models())
    10
    """
    return {PREFIX + word: ReferenceBenchmarkModel(word) for word in SKILLS}


def benchmark_argument_problems(model: str, args: Mapping[str, Any]) -> list[str]:
    """What is wrong with the arguments of a reference model, in words: it takes none.

    >>> benchmark_argument_problems("reference/portbench-bold", {"style": "oak"})
    ['argument style is unknown (reference/portbench-bold takes none)']
    """
    if not model.startswith(PREFIX):
        return []
    return [f"argument {name} is unknown ({model} takes none)" for name in args]


def _rng(word: str, seed: int | None, parts: tuple[str, ...]) -> np.random.Generator:
    """Draws that are the same for the same prompt and seed, on any machine."""
    digest = hashlib.sha256("\n".join([word, str(seed), *parts]).encode("utf-8", "surrogatepass")).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))


def _signal(view: float, threshold: float) -> Signal:
    return "buy" if view > threshold else "sell" if view < -threshold else "hold"


def _by_ticker(tickers: tuple[str, ...], values: Floats) -> dict[str, float | str]:
    return dict(zip(tickers, np.round(values, _DECIMALS).tolist(), strict=True))


def _reason(word: str, stage: Stage, values: Mapping[str, float | str]) -> str:
    """The rationale of a stage: the rule, and what it comes to."""
    if stage == "S2":
        counted = Counter(values.values())
        said = ", ".join(f"{counted[signal]} {signal}" for signal in SIGNALS)
        return f"The threshold is kept to: {said}."
    largest = sorted(values, key=lambda name: (-float(values[name]), name))[:3]
    if stage == "S1":
        shown = ", ".join(f"{name} {float(values[name]):+.2f}" for name in largest)
        return f"The rule '{word}' is most bullish on {shown}."
    shown = ", ".join(f"{name} {100 * float(values[name]):.1f}%" for name in largest)
    return f"The rule '{word}' gives weight to {len(values)} assets. The largest are {shown}."
