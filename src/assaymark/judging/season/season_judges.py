"""Reference judges of a season: instruments with known properties, asked and parsed like any model."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final

from assaymark.engine.calls import CallSpec, Model, Reply
from assaymark.errors import InputError, ModelError
from assaymark.judging.planting import knob_problem, standard_normal, value_words
from assaymark.judging.reference.views import interpolate
from assaymark.judging.season.season_features import HorizonFeatures, notice_horizon
from assaymark.judging.season.season_reading import read_steps
from assaymark.prompting.styles import SIGNATURES, style_of
from assaymark.records import JSON

VERSION: Final = "1"
"""Changes with anything that can change a score; part of the fingerprint."""

MIDDLE: Final = 50.0
"""The grade where a prompt gives nothing to go by."""

_HIGHEST = 100
Knots = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class SeasonPlanted:
    """What is known about a reference judge of a season because it was put in.

    Every grade before rounding is
    ``opinion + offset + slope * (tokens per step - pivot) / 100 + preference [style is kin] + noise * z``, with one
    standard normal z for a call, fixed by judge, prompt, seed and trial: what repeated judging shows of a composite is
    ``noise``, but for rounding. It is then rounded half up and clipped to 0..100. In outcome calls ``slope`` and
    ``preference`` have nothing to look at.

    Parameters
    ----------
    offset : float
        Points added to every grade: leniency.
    noise : float
        Standard deviation of the noise, in points.
    slope : float
        Points per 100 tokens of reasons per step: verbosity preference.
    pivot : float
        Tokens per step at which the slope adds nothing.
    words : str
        All of this in a sentence.
    preference : float
        Points added where the reasons are of the style ``kin``: self-preference. A judge cannot read a name, and knows
        its kin by how it writes.
    kin : str
        A style of `prompting.styles`.
    knows : str
        For author probes, ``style=agent`` pairs with commas between them: whom this judge can tell. Of any other record
        it guesses by a draw.
    """

    offset: float
    noise: float
    slope: float
    pivot: float
    words: str
    preference: float = 0.0
    kin: str = ""
    knows: str = ""


SEASON_PLANTED: Mapping[str, SeasonPlanted] = MappingProxyType(
    {
        "reference/season-auditor": SeasonPlanted(
            offset=-3.0,
            noise=2.5,
            slope=0.0,
            pivot=60.0,
            words="asks whether it is true; three points strict, noise of 2.5 points, blind to length and style",
        ),
        "reference/season-reader": SeasonPlanted(
            offset=4.0,
            noise=3.5,
            slope=5.0,
            pivot=60.0,
            words="asks whether it is explained; four points lenient, noise of 3.5 points, each 100 tokens a step "
            "beyond 60 earn five points, blind to style",
        ),
        "reference/season-allocator": SeasonPlanted(
            offset=0.0,
            noise=3.0,
            slope=0.0,
            pivot=60.0,
            words="asks whether it is prudent; neither strict nor lenient, noise of 3 points, blind to length and "
            "style",
        ),
    }
)
"""The planted properties by model name; a call's arguments of the same names override them."""

_WORDS = ("kin", "knows")
_KNOBS = tuple(one.name for one in fields(SeasonPlanted) if one.name != "words")
_MOST = 1e6

# --- opinions ---------------------------------------------------------------------------------------------------------

WORTH: Mapping[str, Knots] = {
    "hedge_rate": ((0.0, 30.0), (1.5, 60.0), (4.0, 85.0)),
    "risk_rate": ((0.0, 15.0), (2.0, 50.0), (6.0, 90.0)),
    "catalyst_rate": ((0.0, 25.0), (2.0, 60.0), (5.0, 90.0)),
    "condition_rate": ((0.0, 25.0), (1.0, 55.0), (4.0, 90.0)),
    "contrast_rate": ((0.0, 35.0), (1.5, 65.0), (3.0, 85.0)),
    "constraint_rate": ((0.0, 30.0), (0.5, 60.0), (2.0, 90.0)),
    "size_rate": ((0.0, 25.0), (1.5, 60.0), (4.0, 90.0)),
    "numbers": ((0.0, 15.0), (2.0, 55.0), (6.0, 90.0)),
    "grounded": ((0.1, 5.0), (0.5, 45.0), (0.9, 80.0), (1.0, 97.0)),
    "named": ((0.0, 10.0), (0.6, 55.0), (1.0, 92.0)),
    "reversed_trades": ((0.0, 92.0), (0.1, 65.0), (0.4, 20.0)),
    "carried_out": ((0.5, 10.0), (0.9, 60.0), (1.0, 90.0)),
    "holdings": ((0.5, 15.0), (2.0, 40.0), (6.0, 75.0), (12.0, 92.0)),
}
"""What a value of a feature is worth in points: straight lines between these, flat beyond."""

TOPICS: Mapping[str, tuple[str, ...]] = {
    "action_rationale_alignment": ("named", "carried_out", "grounded"),
    "thesis_quality": ("named", "catalyst_rate", "contrast_rate", "grounded"),
    "strategy_fit": ("constraint_rate", "carried_out", "holdings"),
    "risk_awareness": ("risk_rate", "condition_rate", "holdings"),
    "portfolio_discipline": ("holdings", "carried_out", "size_rate", "reversed_trades"),
    "temporal_consistency": ("reversed_trades", "condition_rate"),
    "decision_update_quality": ("reversed_trades", "catalyst_rate", "numbers"),
    "uncertainty_discipline": ("hedge_rate", "condition_rate", "grounded"),
    "outcome_independent_reasoning": ("contrast_rate", "catalyst_rate", "numbers"),
    "clarity_and_specificity": ("named", "numbers", "size_rate"),
    "claim_support": ("grounded", "numbers"),
    "valuation_use": ("grounded", "numbers"),
    "momentum_use": ("grounded", "numbers"),
    "analyst_use": ("grounded", "catalyst_rate"),
    "sector_use": ("grounded", "contrast_rate"),
    "no_unsupported_claims": ("grounded",),
    "no_contradiction": ("grounded", "reversed_trades"),
}
"""The features that speak to each part of the shipped plans. A part that is not among them is graded `MIDDLE`."""

LEANING: Mapping[str, Mapping[str, float]] = {
    "reference/season-auditor": {"grounded": 3.0, "numbers": 1.5},
    "reference/season-reader": {"named": 2.0, "catalyst_rate": 2.0, "contrast_rate": 2.0, "numbers": 2.0},
    "reference/season-allocator": {"holdings": 3.0, "reversed_trades": 2.0, "carried_out": 2.0, "risk_rate": 2.0},
}
"""How much a feature counts for each judge; 1 where nothing is said. This is where their viewpoints differ."""


def season_opinion(judge: str, part: str, seen: HorizonFeatures) -> float:
    """What a judge thinks of one part before any planted error: the weighted mean of what its features are worth."""
    weights = LEANING[judge]
    found = [
        (weights.get(name, 1.0), interpolate(float(value), WORTH[name]))
        for name in TOPICS.get(part, ())
        if (value := getattr(seen, name)) is not None
    ]
    return sum(w * points for w, points in found) / sum(w for w, _ in found) if found else MIDDLE


# --- answers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SeasonJudge:
    """A judge of whole horizons that reads nothing but the rendered prompt and grades it by stated functions.

    It is a `Model` and answers horizon calls, outcome calls and author probes, by the schema of the call.
    """

    name: str

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call.

        Raises
        ------
        ModelError
            The prompt is none of this package's season prompts, or an argument is wrong (`season_argument_problems`).
        """
        return Reply(text=self.answer(call), model=self.name, fingerprint=f"{self.name}@{VERSION}")

    def answer(self, call: CallSpec) -> str:
        """The text of the reply."""
        planted = _with_arguments(self.name, call.args)
        form = _properties(call)
        shown = "\n\n".join(message.text for message in call.messages if message.role == "user")
        z = standard_normal(self._asked(call)) if planted.noise else 0.0
        try:
            if "outcome" in form:
                return json.dumps(_outcome(shown, planted, z))
            if "author" in form:
                return json.dumps(self._author(shown, form["author"]["enum"], planted, call))
            if "reasoning" in form:
                return json.dumps(self._grades(notice_horizon(shown), form, planted, z))
        except (InputError, KeyError, ValueError) as exc:
            raise ModelError(f"{self.name} cannot read the prompt: {exc}", retryable=False) from None
        raise ModelError(f"{self.name} is asked for nothing that it knows", retryable=False)

    def _grades(
        self, seen: HorizonFeatures, form: Mapping[str, Any], planted: SeasonPlanted, z: float
    ) -> dict[str, JSON]:
        """A reply on a horizon. No tense is understood here, so the check for look-ahead always passes."""
        error = planted.offset + planted.slope * (seen.tokens - planted.pivot) / 100.0 + planted.noise * z
        if planted.kin and seen.style == planted.kin:
            error += planted.preference
        axes: dict[str, dict[str, int]] = {
            axis: {part: _points(season_opinion(self.name, part, seen) + error) for part in form[axis]["required"]}
            for axis in ("reasoning", "evidence")
        }
        mean = sum(axes["reasoning"].values()) / max(len(axes["reasoning"]), 1)
        claims = [
            {"quote": one.quote, "step": one.step, "state": one.state, "fields": list(one.fields)}
            for one in seen.claims
        ]
        reply: dict[str, JSON] = {
            **axes,
            "data_reliability": _points(MIDDLE if seen.reconciled is None else 100.0 * seen.reconciled),
            "claims": claims,
            "lookahead_check": "pass",
            "lookahead_reason": "reference judges do not read tenses",
            "verdict": f"{mean:.0f} by the {self.name.partition('/')[2]}",
            "summary": f"{seen.steps} steps with {seen.tokens:.0f} tokens of reasons each.",
        }
        return {**reply, "notes": f"{seen.steps} steps read."} if "notes" in form else reply

    def _author(self, shown: str, options: Sequence[str], planted: SeasonPlanted, call: CallSpec) -> dict[str, JSON]:
        """A guess: whom the planted knowledge names, else a draw."""
        style = style_of("\n\n".join(step.text for step in read_steps(shown)))
        known = _pairs(planted.knows).get(style or "")
        if known in options:
            return {"author": known, "reason": "its phrases"}
        drawn = int.from_bytes(hashlib.sha256(self._asked(call).encode()).digest()[:8], "big")
        return {"author": options[drawn % len(options)], "reason": "a draw"}

    def _asked(self, call: CallSpec) -> str:
        parts = ",".join(part.sha256 for message in call.messages for part in message.parts)
        return f"{self.name}|{parts}|{call.seed}|{call.trial}"


def reference_season_judges() -> Mapping[str, Model]:
    """The reference judges of a season by model name, for registration.

    >>> sorted(reference_season_judges())
    ['reference/season-allocator', 'reference/season-auditor', 'reference/season-reader']
    """
    return {name: SeasonJudge(name) for name in SEASON_PLANTED}


def season_argument_problems(model: str, args: Mapping[str, Any]) -> list[str]:
    """What is wrong with the arguments of a reference judge of a season, in words; nothing if they can be used.

    >>> season_argument_problems("reference/season-reader", {"preference": 15, "kin": "alder"})
    []
    >>> season_argument_problems("reference/season-reader", {"preference": 15})
    ['argument preference needs kin, the style that it favours (one of alder, birch, cedar, dogwood, elder)']
    """
    if model not in SEASON_PLANTED:
        return []
    problems = [problem for key, value in args.items() if (problem := _argument_problem(key, value))]
    if args.get("preference") and "kin" not in args:
        problems.append(f"argument preference needs kin, the style that it favours (one of {', '.join(SIGNATURES)})")
    return problems


def _argument_problem(key: str, value: object) -> str | None:
    """What is wrong with one argument."""
    if key != "knows":
        return knob_problem(key, value, _KNOBS, most=_MOST, never_negative=("noise",))
    known = isinstance(value, str) and bool(_pairs(value)) and all(style in SIGNATURES for style in _pairs(value))
    return None if known else f"argument knows must be style=agent pairs with commas between (got {value_words(value)})"


def _pairs(text: str) -> dict[str, str]:
    """``style=agent`` pairs."""
    found = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {style.strip(): agent.strip() for style, _, agent in found}


def _with_arguments(model: str, args: Mapping[str, Any]) -> SeasonPlanted:
    """The planted properties of a judge as a call overrides them."""
    if problems := season_argument_problems(model, args):
        raise ModelError("; ".join(problems), retryable=False)
    given: dict[str, Any] = {key: value if key in _WORDS else float(value) for key, value in args.items()}
    return replace(SEASON_PLANTED[model], **given)


def _properties(call: CallSpec) -> Mapping[str, Any]:
    """What the reply schema of a call asks for."""
    if call.schema is None:
        raise ModelError("a judge call needs a reply schema", retryable=False)
    try:
        found: Mapping[str, Any] = json.loads(call.schema.text)["properties"]
    except (ValueError, KeyError, TypeError) as exc:
        raise ModelError(f"the reply schema asks for nothing: {exc!r}", retryable=False) from None
    return found


def _outcome(shown: str, planted: SeasonPlanted, z: float) -> dict[str, JSON]:
    """A reply of an outcome call: the share of the outcomes above their benchmark, or above 0."""
    rows = [one for step in read_steps(shown) for one in step.outcomes]
    won = [float(one["value"]) > float(one["benchmark"] or 0.0) for one in rows]
    points = 100.0 * sum(won) / len(won) if won else MIDDLE
    return {
        "outcome": _points(points + planted.offset + planted.noise * z),
        "reason": f"{sum(won)} of {len(won)} outcomes above the benchmark",
    }


def _points(value: float) -> int:
    """Rounded half up and clipped to the scale."""
    return min(max(math.floor(value + 0.5), 0), _HIGHEST)
