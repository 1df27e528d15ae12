"""Reference judges: instruments with known properties, asked and parsed like any model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from assaymark.engine.calls import CallSpec, Reply
from assaymark.errors import InputError, ModelError
from assaymark.judging.planting import knob_problem, standard_normal
from assaymark.judging.reference.features import Features, notice
from assaymark.judging.reference.views import RECONCILED, VIEWS, Term, opinion
from assaymark.judging.rubric import SCALE
from assaymark.prompting.styles import SIGNATURES

VERSION = "5"
"""Changes with anything that can change a score; part of the fingerprint."""


@dataclass(frozen=True, slots=True)
class Planted:
    """What is known about a reference judge because it was put in.

    On each dimension the score before rounding is
    ``opinion + offset + slope * (tokens - pivot) / 100 + halo [style is kin] - terse [tokens <= terse_tokens]
    + noise * z``, with z standard normal, fixed by judge, dimension, prompt, seed and trial. It is then rounded half up
    and clipped to the scale. No reference judge has a halo or a break at terse texts unless its arguments plant one.

    Parameters
    ----------
    offset : float
        Rubric points added to every score: leniency.
    noise : float
        Standard deviation of the noise in rubric points, drawn anew for each dimension and trial.
    slope : float
        Rubric points per 100 tokens of judged text: verbosity preference.
    pivot : float
        The length in tokens at which the slope adds nothing.
    words : str
        All of this in a sentence.
    halo : float
        Rubric points added to every dimension where the judged text is of the style ``kin``: the liking of a judge for
        texts of its own make, which the halo check of control cells looks for (ValueBlindBench section 3.5).
    kin : str
        A style of `prompting.styles`; a judge without one has no halo.
    terse : float
        Rubric points taken from every dimension where the text has at most ``terse_tokens`` tokens: the break of
        ValueBlindBench section 5.5, which no slope can make.
    terse_tokens : float
        The longest text that counts as terse.
    """

    offset: float
    noise: float
    slope: float
    pivot: float
    words: str
    halo: float = 0.0
    kin: str = ""
    terse: float = 0.0
    terse_tokens: float = 60.0


PLANTED: Mapping[str, Planted] = MappingProxyType(
    {
        "reference/auditor": Planted(
            offset=-0.20,
            noise=0.25,
            slope=0.0,
            pivot=300.0,
            words="asks whether it is true; a fifth of a point strict, noise of a quarter point, blind to length "
            "and style",
        ),
        "reference/reader": Planted(
            offset=0.25,
            noise=0.35,
            slope=0.10,
            pivot=300.0,
            words="asks whether it is explained; a quarter of a point lenient, noise of 0.35 points, each 100 "
            "tokens beyond 300 earn a tenth of a point, blind to style",
        ),
        "reference/allocator": Planted(
            offset=0.0,
            noise=0.30,
            slope=0.0,
            pivot=300.0,
            words="asks whether it is prudent; neither strict nor lenient, noise of 0.3 points, blind to "
            "length and style",
        ),
        "reference/skeptic": Planted(
            offset=-0.10,
            noise=0.30,
            slope=0.0,
            pivot=300.0,
            words="asks whether it would persuade a doubter; a tenth of a point strict, noise of 0.3 points, blind to "
            "length and style",
        ),
    }
)
"""The planted properties by model name; a call's arguments of the same names override the numbers."""

_KNOBS = tuple(field.name for field in fields(Planted) if field.name != "words")
_NEVER_NEGATIVE = ("noise", "terse", "terse_tokens")
_MOST = 1e9
_LIMITS = "constraint_awareness"
ORACLE = "reference/constraint-oracle"
"""The judge that recomputes the arithmetic of orders and knows that one dimension (see `reference.oracle`)."""


@dataclass(frozen=True, slots=True)
class ReferenceJudge:
    """A judge that reads nothing but the rendered prompt and scores it by stated functions (see `views`).

    It is a `Model`: it answers with JSON text, which goes through the same parser as any model's.
    """

    name: str

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call.

        Raises
        ------
        ModelError
            The prompt is not one of this package's judge prompts, or an argument is wrong (`argument_problems`).
        """
        planted = _with_arguments(self.name, call)
        try:
            seen = notice([part.text for message in call.messages if message.role == "user" for part in message.parts])
        except InputError as exc:
            raise ModelError(f"{self.name} cannot read the prompt: {exc}", retryable=False) from None
        dimensions = dimensions_of(call)
        views = _views(self.name, "\n".join(part.text for m in call.messages if m.role == "system" for part in m.parts))
        asked = ",".join(part.sha256 for message in call.messages for part in message.parts)
        scores = {}
        for name in dimensions:
            z = standard_normal(f"{self.name}|{name}|{asked}|{call.seed}|{call.trial}") if planted.noise else 0.0
            scores[name] = _score(views.get(name, ()), seen, planted, z)
        return Reply(text=_answer(scores, seen), model=self.name, fingerprint=f"{self.name}@{VERSION}")


def reference_judges() -> dict[str, ReferenceJudge]:
    """The reference judges by model name, for registration.

    >>> sorted(reference_judges())
    ['reference/allocator', 'reference/auditor', 'reference/reader', 'reference/skeptic']
    """
    return {name: ReferenceJudge(name) for name in VIEWS}


def argument_problems(model: str, args: Mapping[str, Any]) -> list[str]:
    """What is wrong with a reference judge's arguments, in words; nothing if they can be used.

    Of a model that is no reference judge nothing is known, so nothing is wrong with its arguments.

    >>> argument_problems("reference/auditor", {"noise": 0.5, "offset": -1})
    []
    >>> argument_problems("reference/auditor", {"noise": -0.5})
    ['argument noise must be at least 0 (got -0.5)']
    >>> argument_problems("reference/auditor", {"halo": 0.5})
    ['argument halo needs kin, the style that it favours (one of alder, birch, cedar, dogwood, elder)']
    """
    if model == ORACLE:
        return [f"argument {key} is unknown ({ORACLE} takes none)" for key in args]
    if model not in PLANTED:
        return []
    looked = (knob_problem(*one, _KNOBS, most=_MOST, never_negative=_NEVER_NEGATIVE) for one in args.items())
    problems = [problem for problem in looked if problem]
    if args.get("halo") and "kin" not in args:
        problems.append(f"argument halo needs kin, the style that it favours (one of {', '.join(SIGNATURES)})")
    return problems


def _with_arguments(model: str, call: CallSpec) -> Planted:
    """The planted properties of a judge as this call overrides them."""
    if problems := argument_problems(model, call.args):
        raise ModelError("; ".join(problems), retryable=False)
    given: dict[str, Any] = {key: value if key == "kin" else float(value) for key, value in call.args.items()}
    return replace(PLANTED[model], **given)


def dimensions_of(call: CallSpec) -> tuple[str, ...]:
    """The dimensions that the reply schema of a call asks for; ModelError where it asks for none."""
    if call.schema is None:
        raise ModelError("a judge call needs a reply schema", retryable=False)
    return _asked(call.schema.text)


@lru_cache(maxsize=16)
def _asked(schema: str) -> tuple[str, ...]:
    """The keys of ``scores`` in a reply schema."""
    try:
        return tuple(json.loads(schema)["properties"]["scores"]["required"])
    except (ValueError, KeyError, TypeError) as exc:
        raise ModelError(f"the reply schema asks for no scores: {exc!r}", retryable=False) from None


@lru_cache(maxsize=64)
def _views(judge: str, system: str) -> Mapping[str, tuple[Term, ...]]:
    """A judge's viewpoint under the rubric it was given: anchors that ask for arithmetic are read as asking for it."""
    block = system.partition(f"{_LIMITS}\n")[2].partition("\n\n")[0]
    return {**VIEWS[judge], _LIMITS: RECONCILED} if "arithmetic" in block else VIEWS[judge]


def _score(terms: tuple[Term, ...], seen: Features, planted: Planted, z: float) -> int:
    """One score: opinion, planted error, rounded half up, clipped to the scale."""
    value = opinion(terms, seen)
    value += planted.offset + planted.slope * (seen.tokens - planted.pivot) / 100.0 + planted.noise * z
    if planted.kin and seen.style == planted.kin:
        value += planted.halo
    if seen.tokens <= planted.terse_tokens:
        value -= planted.terse
    return min(max(math.floor(value + 0.5), SCALE[0]), SCALE[-1])


def _answer(scores: Mapping[str, int], seen: Features) -> str:
    """The reply as JSON text. No tense is understood here, so look-ahead stays open."""
    comment = f"{seen.tokens} tokens, {len(seen.doubtful)} of the quoted numbers not found in the material"
    return json.dumps(
        {
            "scores": scores,
            "evidence": list(seen.doubtful),
            "lookahead_check": "unsure",
            "comment": comment,
        }
    )
