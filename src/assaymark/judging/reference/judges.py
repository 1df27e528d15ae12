"""Reference judges: instruments with known properties, asked and parsed like any model."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from types import MappingProxyType
from typing import Any

from assaymark.engine.calls import CallSpec, Reply
from assaymark.errors import InputError, ModelError
from assaymark.judging.reference.features import Features, notice
from assaymark.judging.reference.views import VIEWS, opinion
from assaymark.judging.rubric import SCALE

VERSION = "1"
"""Changes with anything that can change a score; part of the fingerprint."""


@dataclass(frozen=True, slots=True)
class Planted:
    """What is known about a reference judge because it was put in.

    On each dimension the score before rounding is
    ``opinion + offset + slope * (tokens - pivot) / 100 + noise * z``, with z standard normal, fixed by judge,
    dimension, prompt, seed and trial. It is then rounded half up and clipped to the scale.

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
    """

    offset: float
    noise: float
    slope: float
    pivot: float
    words: str


PLANTED: Mapping[str, Planted] = MappingProxyType(
    {
        "reference/auditor": Planted(
            offset=-0.20,
            noise=0.25,
            slope=0.0,
            pivot=300.0,
            words="asks whether it is true; a fifth of a point strict, noise of a quarter point, blind to length",
        ),
        "reference/reader": Planted(
            offset=0.25,
            noise=0.35,
            slope=0.10,
            pivot=300.0,
            words="asks whether it is explained; a quarter of a point lenient, noise of 0.35 points, each 100 "
            "tokens beyond 300 earn a tenth of a point",
        ),
        "reference/allocator": Planted(
            offset=0.0,
            noise=0.30,
            slope=0.0,
            pivot=300.0,
            words="asks whether it is prudent; neither strict nor lenient, noise of 0.3 points, blind to length",
        ),
    }
)
"""The planted properties by model name; a call's arguments of the same names override the numbers."""

_KNOBS = ("offset", "noise", "slope", "pivot")


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
            The prompt is not one of this package's judge prompts, or an argument is unknown or no number.
        """
        planted = _with_arguments(PLANTED[self.name], call)
        try:
            seen = notice([part.text for message in call.messages if message.role == "user" for part in message.parts])
        except InputError as exc:
            raise ModelError(f"{self.name} cannot read the prompt: {exc}", retryable=False) from None
        dimensions = _dimensions(call)
        scores = {name: _score(self.name, name, seen, planted, call) for name in dimensions}
        return Reply(text=_answer(scores, seen), model=self.name, fingerprint=f"{self.name}@{VERSION}")


def reference_judges() -> dict[str, ReferenceJudge]:
    """The reference judges by model name, for registration.

    >>> sorted(reference_judges())
    ['reference/allocator', 'reference/auditor', 'reference/reader']
    """
    return {name: ReferenceJudge(name) for name in VIEWS}


def _with_arguments(planted: Planted, call: CallSpec) -> Planted:
    """The planted properties as this call overrides them."""
    given: dict[str, Any] = {}
    for key, value in call.args.items():
        known = key in _KNOBS and isinstance(value, (int, float)) and not isinstance(value, bool)
        if not known or not math.isfinite(value) or (key == "noise" and value < 0):
            allowed = ", ".join(_KNOBS)
            raise ModelError(f"argument {key}={value!r} must be a number for one of {allowed}", retryable=False)
        given[key] = float(value)
    return replace(planted, **given)


def _dimensions(call: CallSpec) -> tuple[str, ...]:
    """The dimensions that the reply schema asks for."""
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


def _score(judge: str, dimension: str, seen: Features, planted: Planted, call: CallSpec) -> int:
    """One score: opinion, planted error, rounded half up, clipped to the scale."""
    value = opinion(VIEWS[judge].get(dimension, ()), seen)
    value += planted.offset + planted.slope * (seen.tokens - planted.pivot) / 100.0
    if planted.noise:
        value += planted.noise * _normal(judge, dimension, call)
    return min(max(math.floor(value + 0.5), SCALE[0]), SCALE[-1])


def _normal(judge: str, dimension: str, call: CallSpec) -> float:
    """A standard normal number fixed by judge, dimension, prompt, seed and trial."""
    prompt = ",".join(part.sha256 for message in call.messages for part in message.parts)
    digest = hashlib.sha256(f"{judge}|{dimension}|{prompt}|{call.seed}|{call.trial}".encode()).digest()
    return NormalDist().inv_cdf((int.from_bytes(digest[:7], "big") + 0.5) / 2**56)


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
