"""Reference judges: instruments with known properties, asked and parsed like any model."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from assaymark.engine.calls import CallSpec, Message, Reply
from assaymark.errors import InputError, ModelError
from assaymark.judging.arithmetic_oracle import Reconciliation, oracle_score, reconcile
from assaymark.judging.books import Book, book_of
from assaymark.judging.prompts import read_decision, user_messages
from assaymark.judging.reference.features import Features, notice
from assaymark.judging.rubric import SCALE, Rubric, load_rubric
from assaymark.prompting.context import read_material
from assaymark.prompting.fences import sections
from assaymark.prompting.texts import SIGNATURES

if TYPE_CHECKING:
    from assaymark.protocol import Study
    from assaymark.records import Context, Decision


# What reference judges share: arguments that override planted properties, and draws that are fixed by a name.


_STANDARD: Final = NormalDist()
_PRINTED: Final = 1e9  # a whole number beyond it may have more digits than can be printed
_SHOWN_CHARS: Final = 80


def uniform(name: str) -> float:
    """A number between 0 and 1 that is fixed by a name.

    >>> round(uniform("ash"), 4)
    0.0136
    """
    return (int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big") + 0.5) / 2**56


def standard_normal(name: str) -> float:
    """A standard normal number that is fixed by a name."""
    return _STANDARD.inv_cdf(uniform(name))


def knob_problem(
    key: str, value: object, knobs: Sequence[str], *, most: float, never_negative: Collection[str] = ()
) -> str | None:
    """What is wrong with an argument that overrides a planted property: ``kin`` is a style, every other a number.

    >>> knob_problem("noise", -0.5, ["noise"], most=1e9, never_negative=["noise"])
    'argument noise must be at least 0 (got -0.5)'
    """
    if key not in knobs:
        return f"argument {key} is unknown (allowed: {', '.join(knobs)})"
    if key == "kin":
        known = isinstance(value, str) and value in SIGNATURES
        return None if known else f"argument kin must be one of {', '.join(SIGNATURES)} (got {value_words(value)})"
    if not is_number(value, -most, most):
        return f"argument {key} must be a finite number of at most {most:g} in size (got {value_words(value)})"
    if key in never_negative and not is_number(value, 0.0, most):
        return f"argument {key} must be at least 0 (got {value!r})"
    return None


def is_number(value: object, low: float, high: float) -> bool:
    """Whether a value is a number in a range; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def value_words(value: object) -> str:
    """A value for a message, cut short; a huge number would not print."""
    return "a huge number" if isinstance(value, int) and abs(value) > _PRINTED else f"{value!r:.{_SHOWN_CHARS}}"


# The viewpoints: for each judge and dimension, which features count, how much, and what a value is worth.


MIDDLE = 3.0
"""The score where a prompt gives nothing to go by."""


@dataclass(frozen=True, slots=True)
class Term:
    """One reason for a score: a feature, what its values are worth, and how much it counts.

    ``worth`` holds (value, score) knots with rising values; between knots the score is interpolated, beyond them flat.
    """

    feature: str
    worth: tuple[tuple[float, float], ...]
    weight: float = 1.0

    def score(self, features: Features) -> float | None:
        """What the feature is worth in this decision; None if it could not be noticed.

        >>> steps = ((0.0, 1.0), (0.5, 3.0))
        >>> Term("grounded", steps).worth == steps
        True
        """
        value = getattr(features, self.feature)
        return None if value is None else interpolate(float(value), self.worth)


def interpolate(value: float, knots: tuple[tuple[float, float], ...]) -> float:
    """Piecewise linear through the knots, flat beyond them.

    >>> interpolate(0.25, ((0.0, 1.0), (0.5, 3.0))), interpolate(9.0, ((0.0, 1.0), (0.5, 3.0)))
    (2.0, 3.0)
    """
    if value <= knots[0][0]:
        return knots[0][1]
    for (x0, y0), (x1, y1) in pairwise(knots):
        if value <= x1:
            return y0 + (y1 - y0) * (value - x0) / (x1 - x0)
    return knots[-1][1]


def opinion(terms: tuple[Term, ...], features: Features) -> float:
    """The weighted mean of the terms that could be noticed, 1..5; `MIDDLE` if none could."""
    found = [(term.weight, score) for term in terms if (score := term.score(features)) is not None]
    total = sum(weight for weight, _ in found)
    return sum(weight * score for weight, score in found) / total if total else MIDDLE


# An auditor's tolerance for numbers that cannot be found is small; a half that can be is poor work.
_GROUNDED = ((0.3, 1.0), (0.6, 2.0), (0.8, 3.0), (0.92, 4.0), (1.0, 5.0))
_LEGAL = ((0.80, 1.0), (0.99, 1.5), (1.0, 5.0))
_ORDER = ((0.2, 1.0), (0.5, 2.0), (0.8, 3.5), (1.0, 5.0))
_ARITHMETIC = ((0.3, 1.0), (0.67, 2.5), (1.0, 5.0))

AUDITOR: Mapping[str, tuple[Term, ...]] = {
    "action_coherence": (
        Term("order", _ORDER, 2.0),
        Term("edge", ((0.5, 1.0), (0.8, 3.0), (1.0, 4.5))),
        Term("grounded", _GROUNDED, 2.0),
    ),
    "risk_alignment": (
        Term("risk_numbers", ((0.0, 1.5), (1.0, 3.0), (3.0, 5.0))),
        Term("grounded", _GROUNDED, 2.0),
    ),
    "uncertainty_handling": (
        Term("ranges", ((0.5, 1.0), (0.9, 3.0), (1.0, 5.0))),
        Term("confidence", ((0.50, 5.0), (0.60, 3.8), (0.70, 2.5), (0.90, 1.0))),
        Term("checkable", ((0.0, 1.0), (0.5, 2.5), (1.0, 3.5), (2.0, 5.0))),
        Term("grounded", _GROUNDED),
    ),
    "position_sizing": (
        Term("arithmetic", _ARITHMETIC, 2.0),
        Term("order", _ORDER),
        Term("sizes_cited", ((0.0, 1.5), (0.5, 3.0), (1.5, 5.0))),
    ),
    "information_use": (
        Term("grounded", _GROUNDED, 3.0),
        Term("used", ((0.0, 1.0), (1.0, 2.5), (3.0, 4.0), (6.0, 5.0))),
    ),
    "constraint_awareness": (
        Term("legality", _LEGAL, 1.0),
        Term("rules_cited", ((0.0, 1.5), (1.0, 3.5), (3.0, 5.0)), 2.0),
    ),
}
"""Is it true? Numbers against the material, sums, order of forecasts and sizes, limits kept."""

READER: Mapping[str, tuple[Term, ...]] = {
    "action_coherence": (
        Term("named", ((0.2, 1.0), (0.6, 2.5), (1.0, 4.5))),
        Term("explained", ((0.2, 1.0), (0.6, 3.0), (1.0, 5.0)), 2.0),
        Term("alternatives", ((0.0, 1.5), (2.0, 3.0), (6.0, 5.0))),
    ),
    "risk_alignment": (
        Term("risk_rate", ((0.5, 1.0), (2.0, 2.0), (4.0, 3.5), (7.0, 5.0)), 2.0),
        Term("named", ((0.2, 1.0), (0.6, 2.5), (1.0, 4.5))),
    ),
    "uncertainty_handling": (
        Term("hedge_rate", ((0.0, 1.0), (1.0, 2.0), (2.5, 3.5), (5.0, 5.0)), 2.0),
        Term("condition_rate", ((0.0, 1.0), (0.8, 2.5), (2.0, 4.0), (4.0, 5.0)), 2.0),
        Term("contrast_rate", ((0.0, 1.5), (1.0, 3.0), (2.5, 5.0))),
    ),
    "position_sizing": (
        Term("size_rate", ((0.0, 1.0), (0.5, 2.0), (1.5, 3.5), (3.0, 5.0)), 2.0),
        Term("explained", ((0.2, 1.0), (0.6, 2.5), (1.0, 4.5))),
    ),
    "information_use": (
        Term("number_rate", ((0.0, 1.0), (2.0, 2.0), (5.0, 3.5), (10.0, 5.0)), 2.0),
        Term("catalyst_rate", ((0.0, 1.0), (1.0, 2.5), (3.0, 4.0), (5.0, 5.0))),
    ),
    "constraint_awareness": (
        Term("constraint_rate", ((0.0, 1.0), (0.3, 2.5), (0.8, 4.0), (1.5, 5.0)), 2.0),
        Term("size_rate", ((0.0, 1.0), (0.5, 2.0), (1.5, 3.5), (3.0, 5.0))),
    ),
}
"""Is it explained? What is named and reasoned, and words of risk, doubt, events, limits and size per 100 words."""

_VOLATILITY = ((0.25, 5.0), (0.50, 3.8), (0.75, 2.3), (0.95, 1.0))
_CONFIDENCE = ((0.45, 5.0), (0.55, 4.0), (0.65, 3.0), (0.75, 2.0), (0.90, 1.0))

ALLOCATOR: Mapping[str, tuple[Term, ...]] = {
    "action_coherence": (
        Term("order", _ORDER, 2.0),
        Term("grounded", _GROUNDED),
        Term("explained", ((0.2, 1.0), (0.6, 3.0), (1.0, 5.0))),
    ),
    "risk_alignment": (
        Term("volatility", _VOLATILITY, 2.0),
        Term("groups", ((1.0, 1.0), (2.0, 2.3), (3.0, 3.5), (4.5, 5.0))),
        Term("risk_rate", ((0.5, 1.0), (2.0, 2.0), (4.0, 3.5), (7.0, 5.0))),
    ),
    "uncertainty_handling": (
        Term("confidence", _CONFIDENCE, 2.0),
        Term("effective", ((1.0, 1.0), (2.0, 2.3), (3.5, 3.6), (5.0, 5.0))),
        Term("checkable", ((0.0, 1.0), (0.5, 2.5), (1.0, 3.5), (2.0, 5.0))),
    ),
    "position_sizing": (
        Term("effective", ((1.0, 1.0), (2.0, 2.3), (3.5, 3.6), (5.0, 5.0)), 2.0),
        Term("largest", ((0.20, 5.0), (0.30, 3.8), (0.50, 2.3), (1.0, 1.0))),
        Term("volatility", _VOLATILITY),
    ),
    "information_use": (
        Term("grounded", _GROUNDED, 2.0),
        Term("used", ((0.0, 1.0), (1.0, 2.5), (3.0, 4.0), (6.0, 5.0))),
        Term("explained", ((0.2, 1.0), (0.6, 3.0), (1.0, 5.0))),
    ),
    "constraint_awareness": (
        Term("legality", _LEGAL),
        Term("largest", ((0.20, 5.0), (0.30, 3.8), (0.50, 2.3), (1.0, 1.0))),
        Term("groups", ((1.0, 1.0), (2.0, 2.3), (3.0, 3.5), (4.5, 5.0))),
    ),
}
"""Is it prudent? Spread, stated volatility of what is held, confidence, limits kept, and numbers that hold."""

SKEPTIC: Mapping[str, tuple[Term, ...]] = {
    "action_coherence": (
        Term("order", _ORDER),
        Term("alternatives", ((0.0, 1.0), (2.0, 2.5), (5.0, 4.0), (8.0, 5.0)), 2.0),
        Term("grounded", _GROUNDED),
    ),
    "risk_alignment": (
        Term("contrast_rate", ((0.0, 1.0), (1.0, 2.5), (2.5, 4.0), (4.0, 5.0))),
        Term("risk_numbers", ((0.0, 1.5), (1.0, 3.0), (3.0, 5.0))),
        Term("volatility", _VOLATILITY),
    ),
    "uncertainty_handling": (
        Term("checkable", ((0.0, 1.0), (0.5, 2.5), (1.0, 3.5), (2.0, 5.0)), 2.0),
        Term("confidence", _CONFIDENCE),
        Term("condition_rate", ((0.0, 1.0), (0.8, 2.5), (2.0, 4.0), (4.0, 5.0))),
    ),
    "position_sizing": (
        Term("sizes_cited", ((0.0, 1.5), (0.5, 3.0), (1.5, 5.0))),
        Term("largest", ((0.20, 5.0), (0.30, 3.8), (0.50, 2.3), (1.0, 1.0))),
        Term("arithmetic", _ARITHMETIC),
    ),
    "information_use": (
        Term("grounded", _GROUNDED, 2.0),
        Term("number_rate", ((0.0, 1.0), (2.0, 2.0), (5.0, 3.5), (10.0, 5.0))),
        Term("alternatives", ((0.0, 1.0), (2.0, 2.5), (5.0, 4.0), (8.0, 5.0))),
    ),
    "constraint_awareness": (
        Term("legality", _LEGAL),
        Term("rules_cited", ((0.0, 1.5), (1.0, 3.5), (3.0, 5.0))),
        Term("constraint_rate", ((0.0, 1.0), (0.3, 2.5), (0.8, 4.0), (1.5, 5.0))),
    ),
}
"""Would it persuade a doubter? Alternatives, counter-arguments, checkable conditions, numbers. For an outside judge."""

RECONCILED: tuple[Term, ...] = (
    Term("legality", _LEGAL),
    Term("rules_cited", ((0.0, 1.0), (1.0, 3.0), (2.0, 4.0), (3.0, 5.0)), 2.0),
    Term("arithmetic", _ARITHMETIC),
)
"""What every judge looks for where the anchors of constraint awareness ask for arithmetic."""

VIEWS: Mapping[str, Mapping[str, tuple[Term, ...]]] = {
    "reference/auditor": AUDITOR,
    "reference/reader": READER,
    "reference/allocator": ALLOCATOR,
    "reference/skeptic": SKEPTIC,
}
"""The viewpoints by model name. A rubric dimension that is not among them is scored `MIDDLE`."""

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


# The constraint-arithmetic oracle as a judge, and its scores of the decisions of a study.


ORACLE_VERSION = "1"
"""Changes with anything that can change a score; part of the fingerprint."""

DIMENSION = "constraint_awareness"
"""All that the oracle knows anything about."""

RUBRIC = "constraints-1.0"
"""The rubric that asks for this dimension alone, in the words of v1.1."""

_MOST_QUOTES = 12
_MOST_QUOTED = 200


class ConstraintOracle:
    """A judge of constraint awareness by rule: it reads one rendered prompt, like any judge, and works the book out.

    It has no noise, no taste and no arguments. It answers under rubrics that ask for ``constraint_awareness`` alone
    (`RUBRIC`) and refuses every other one: a score that it has no ground for would be a guess.
    """

    name = ORACLE

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call.

        Raises
        ------
        ModelError
            The reply schema asks for other dimensions, arguments were given, the prompt is none of this package's, or
            the decision is not made of orders on a portfolio with prices. Asking again cannot help.
        """
        if call.args:
            raise ModelError(f"{ORACLE} takes no arguments (got {', '.join(sorted(call.args))})", retryable=False)
        if (asked := dimensions_of(call)) != (DIMENSION,):
            raise ModelError(
                f"{ORACLE} knows {DIMENSION} alone (asked for {', '.join(asked)}); use rubric {RUBRIC}", retryable=False
            )
        parts = [part.text for message in call.messages if message.role == "user" for part in message.parts]
        try:
            found = _graded(parts)
        except InputError as exc:
            raise ModelError(f"{ORACLE} cannot read the prompt: {exc}", retryable=False) from None
        if found is None:
            raise ModelError(f"{ORACLE} needs orders on a portfolio with prices; there are none here", retryable=False)
        return Reply(text=_oracle_answer(*found), model=ORACLE, fingerprint=f"{ORACLE}@{ORACLE_VERSION}")


def asked_alike(rubric: Rubric) -> bool:
    """Whether a rubric asks for constraint awareness in the words that the oracle scores by.

    Only then is the oracle's score known quality under that rubric.

    >>> asked_alike(load_rubric("v1.1")), asked_alike(load_rubric("v1.0"))
    (True, False)
    """
    wording = {one.name: one for one in rubric.dimensions}
    return wording.get(DIMENSION) == load_rubric(RUBRIC).dimensions[0]


def oracle_scores(
    decisions: Sequence[Decision], contexts: Iterable[tuple[str, Context]], study: Study
) -> dict[str, int]:
    """The oracle's score of constraint awareness of every decision of a study that is made of orders, by record id.

    Each is read from the same rendered and blinded prompt that the judges are shown. Decisions that are not made of
    orders, or whose material has no portfolio or lacks the price of a holding, have no score and are not listed.

    Parameters
    ----------
    decisions : sequence of Decision
        All of the records, as for `user_messages`; those that the study leaves out get no score.
    contexts : iterable of (context id, Context)
        At least those of the decisions; they may come one after the other.
    study : Study
        For the records it is about and the names that stay.

    Raises
    ------
    InputError
        A decision's context is missing, or holds anything from after the decision.
    """
    return message_scores(user_messages(decisions, contexts, study))


def message_scores(shown: Mapping[str, Message]) -> dict[str, int]:
    """The same from messages that were rendered already, by record id."""
    graded = {name: _graded([part.text for part in message.parts]) for name, message in shown.items()}
    return {name: oracle_score(found, kept=book.kept) for name, (book, found) in _known(graded)}


Graded = tuple[Book, Reconciliation]
"""The book of a decision, and what its text states about it."""


def _known(graded: Mapping[str, Graded | None]) -> Iterable[tuple[str, Graded]]:
    return ((name, found) for name, found in graded.items() if found is not None)


def _graded(parts: Sequence[str]) -> Graded | None:
    """A prompt worked out; None where there is no book to be made. Orders that cannot be carried out reconcile nothing.

    Raises InputError where the parts are no material and decision of this package.
    """
    if len(parts) != 2:
        raise InputError("prompt", [f"a material and a decision are needed (got {len(parts)} parts)"])
    context = _context(parts[0])
    shown = read_decision(sections(parts[1]))
    book = book_of(context, shown.actions)
    if book is None:
        return None
    if book.after is None:
        return book, Reconciliation(())
    text = "\n\n".join(one.text for one in shown.texts)
    return book, reconcile(text, book.after, context.constraints, names=[item.id for item in context.instruments])


@lru_cache(maxsize=16)
def _context(text: str) -> Context:
    """One reading serves every decision of a context."""
    return read_material(sections(text))


def _oracle_answer(book: Book, found: Reconciliation) -> str:
    """The reply as JSON text: the wrong statements as evidence, every verdict in the comment."""
    stated = [part for part in found.parts if part.verdict != "absent"]
    wrong = [quote for part in stated if part.verdict == "wrong" for quote in part.quotes]
    broken = [check.rule for check in book.checks if not check.kept]
    words = [f"{part.quantity} {part.verdict}" for part in stated] or ["nothing is reconciled"]
    if book.after is None:
        words = ["the orders cannot be carried out"]
    return json.dumps(
        {
            "scores": {DIMENSION: oracle_score(found, kept=book.kept)},
            "evidence": [_printable(quote) for quote in wrong[:_MOST_QUOTES]],
            "lookahead_check": "unsure",
            "comment": "; ".join([*words, *(f"{rule} broken" for rule in broken)]),
        }
    )


def _printable(quote: str) -> str:
    """A passage cut short, in characters that UTF-8 can carry."""
    return quote[:_MOST_QUOTED].encode("utf-8", "replace").decode("utf-8")
