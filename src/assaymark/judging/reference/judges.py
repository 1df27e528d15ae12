"""Built-in judges for rubrics and seasons: models with known properties, called and parsed like any model."""

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
from typing import TYPE_CHECKING, Any, Final, TypeVar

from assaymark.engine.calls import BuiltInModel, CallSpec, Message, Text
from assaymark.errors import InputError, ModelError
from assaymark.judging.arithmetic_oracle import oracle_score
from assaymark.judging.prompts import user_messages
from assaymark.judging.reference.features import Features, notice, notice_horizon, planted_tables, read_book, read_steps
from assaymark.judging.rubric import Rubric, load_rubric
from assaymark.prompting import SIGNATURES, style_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from assaymark.protocol import Study
    from assaymark.records import JSON, Context, Decision

    P = TypeVar("P", bound=DataclassInstance)

Knots = tuple[tuple[float, float], ...]
"""(value, score) pairs with increasing values: linear between them, constant beyond them."""
Term = tuple[str, Knots, float]
"""One term of a score: a feature, the scores of its values, and its weight."""

_PRINTED: Final = 1e9  # an integer beyond it may have too many digits to print


def uniform(name: str) -> float:
    """Return a pseudo-random number between 0 and 1 determined by a name."""
    return (int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big") + 0.5) / 2**56


def _normal(call: CallSpec, *parts: str) -> tuple[str, float]:
    """Return a name for the draws of one call, and a standard normal number determined by it."""
    prompt = ",".join(part.sha256 for message in call.messages for part in message.parts)
    asked = "|".join([*parts, prompt, str(call.seed), str(call.trial)])
    return asked, NormalDist().inv_cdf(uniform(asked))


def override_names(planted: type[DataclassInstance]) -> tuple[str, ...]:
    """Return the names of the planted properties that the arguments of a call can override."""
    return tuple(field.name for field in fields(planted) if field.name != "words")


def planted_for(planted: Mapping[str, P], model: str, args: Mapping[str, Any], problems: Sequence[str] = ()) -> P:
    """Return a judge's planted properties with a call's arguments applied; raise ModelError if any is invalid."""
    if problems:
        raise ModelError("; ".join(problems), retryable=False)
    overrides: dict[str, Any] = {key: value if isinstance(value, str) else float(value) for key, value in args.items()}
    return replace(planted[model], **overrides) if overrides else planted[model]


def is_number(value: object, low: float, high: float) -> bool:
    """Return True if a value is a number in a range; booleans are not numbers."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def value_words(value: object) -> str:
    """Format a value for a message, truncated; a huge number cannot be printed."""
    return "a huge number" if isinstance(value, int) and abs(value) > _PRINTED else f"{value!r:.80}"


def half_up(value: float, low: int, high: int) -> int:
    """Round a score half up and clip it to its scale."""
    return min(max(math.floor(value + 0.5), low), high)


def _argument_problems(
    planted: type[DataclassInstance], args: Mapping[str, Any], most: float, liking: str, never_negative: Collection[str]
) -> Iterable[str]:
    """Yield the problems of arguments that override planted properties; ``liking`` needs ``kin``, a style."""
    knobs, styles = override_names(planted), ", ".join(SIGNATURES)
    for key, value in args.items():
        got = f"(got {value_words(value)})"
        if key not in knobs:
            yield f"argument {key} is unknown (allowed: {', '.join(knobs)})"
        elif key == "knows":
            pairs = _pairs(value) if isinstance(value, str) else {}
            if not pairs or any(style not in SIGNATURES for style in pairs):
                yield f"argument knows must be style=agent pairs with commas between {got}"
        elif key == "kin":
            if not isinstance(value, str) or value not in SIGNATURES:
                yield f"argument kin must be one of {styles} {got}"
        elif not is_number(value, -most, most):
            yield f"argument {key} must be a finite number of at most {most:g} in size {got}"
        elif key in never_negative and not is_number(value, 0.0, most):
            yield f"argument {key} must be at least 0 (got {value!r})"
    if args.get(liking) and "kin" not in args:
        yield f"argument {liking} needs kin, the style that it favours (one of {styles})"


def _pairs(text: str) -> dict[str, str]:
    """Parse comma-separated ``style=agent`` pairs."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {style.strip(): agent.strip() for style, _, agent in pairs}


MIDDLE = 3.0
"""The score if a prompt has none of the features."""


def opinion(terms: Iterable[Term], features: Features, middle: float = MIDDLE) -> float:
    """Compute the weighted mean score of the features that are defined; ``middle`` if none is."""
    scores = []
    for feature, knots, weight in terms:
        if (noticed := features[feature]) is None:
            continue
        # Piecewise linear through the knots, constant beyond them.
        value, score = float(noticed), knots[-1][1]
        if value <= knots[0][0]:
            score = knots[0][1]
        else:
            for (x0, y0), (x1, y1) in pairwise(knots):
                if value <= x1:
                    score = y0 + (y1 - y0) * (value - x0) / (x1 - x0)
                    break
        scores.append((weight, score))
    total = sum(weight for weight, _ in scores)
    return sum(weight * score for weight, score in scores) / total if total else middle


def _terms(rows: Sequence[Sequence[Any]]) -> tuple[Term, ...]:
    """Build terms from (feature, weight) or, with a value scale other than the default, (feature, weight, knots)."""
    worth = planted_tables()["worth"]
    return tuple(
        (name, tuple((value, score) for value, score in (other[0] if other else worth[name])), weight)
        for name, weight, *other in rows
    )


VIEWS: Mapping[str, Mapping[str, tuple[Term, ...]]] = {
    model: {dimension: _terms(rows) for dimension, rows in view.items()}
    for model, view in planted_tables()["views"].items()
}
"""The viewpoints by model name. A rubric dimension without one is scored `MIDDLE`."""


@dataclass(frozen=True, slots=True)
class PlantedJudge:
    """The planted properties of a built-in rubric judge.

    On each dimension the score before rounding is ``opinion + offset + slope * (tokens - pivot) / 100 + halo [style is
    kin] - terse [tokens <= terse_tokens] + noise * z``, with z standard normal, determined by judge, dimension, prompt,
    seed and trial. It is then rounded half up and clipped to the scale.
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


PLANTED: Mapping[str, PlantedJudge] = MappingProxyType(
    {model: PlantedJudge(**row) for model, row in planted_tables()["rubric"].items()}
)
"""The planted properties by model name; a call's arguments of the same names override the numbers."""

ORACLE = "reference/constraint-oracle"
"""The judge that recomputes the arithmetic of orders and grades only the dimension `DIMENSION`."""
DIMENSION = "constraint_awareness"
RUBRIC = "constraints-1.0"
"""The rubric that has only this dimension, worded as in v1.1."""


class ReferenceJudge(BuiltInModel):
    """A built-in rubric judge, with the viewpoint of `VIEWS` and the errors of `PLANTED`."""

    version = "5"

    def answer(self, call: CallSpec) -> str:
        """Return the reply as JSON text. Tense is not analysed, so ``lookahead_check`` is always ``unsure``."""
        planted = planted_for(PLANTED, self.name, call.args, argument_problems(self.name, call.args))
        features, views = notice(call.shown()), VIEWS[self.name]
        dimensions, (low, high) = requested_scores(call.schema)
        # Constraint awareness is scored by arithmetic if the anchors ask for it.
        if "arithmetic" in "\n".join(call.shown("system")).partition(f"{DIMENSION}\n")[2].partition("\n\n")[0]:
            views = {**views, DIMENSION: _terms(planted_tables()["reconciled"][DIMENSION])}
        error = planted.offset + planted.slope * (features["tokens"] - planted.pivot) / 100.0
        halo = planted.halo if planted.kin and features["style"] == planted.kin else 0.0
        terse = planted.terse if features["tokens"] <= planted.terse_tokens else 0.0
        scores = {}
        for name in dimensions:
            z = _normal(call, self.name, name)[1] if planted.noise else 0.0
            value = opinion(views.get(name, ()), features) + (error + planted.noise * z) + halo - terse
            scores[name] = half_up(value if low == 1 and high == 5 else low + (value - 1) * (high - low) / 4, low, high)
        doubtful = list(features["doubtful"])
        comment = f"{features['tokens']} tokens, {len(doubtful)} of the quoted numbers not found in the material"
        return _reply(scores, doubtful, comment)


def _reply(scores: Mapping[str, int], evidence: list[str], comment: str) -> str:
    return json.dumps({"scores": scores, "evidence": evidence, "lookahead_check": "unsure", "comment": comment})


def reference_judges() -> dict[str, ReferenceJudge]:
    """Return the built-in rubric judges by model name, for registration."""
    return {name: ReferenceJudge(name) for name in VIEWS}


def argument_problems(model: str, args: Mapping[str, Any]) -> list[str]:
    """List the problems of a built-in judge's arguments; empty for other models."""
    if model == ORACLE:
        return [f"argument {key} is unknown ({ORACLE} takes none)" for key in args]
    if model not in PLANTED:
        return []
    return [*_argument_problems(PlantedJudge, args, 1e9, "halo", ("noise", "terse", "terse_tokens"))]


def dimension_problem(model: str, names: Collection[str]) -> str | None:
    """Return the reason why a built-in judge cannot grade these dimensions; None if it can, and for other models."""
    unknown = sorted(set(names) - set(VIEWS.get(model, names)))
    if not unknown:
        return None
    views = ", ".join(VIEWS[model])
    return f"{model} has a view of the shipped dimensions alone ({views}) and none of {', '.join(unknown)}; ask a model"


@lru_cache(maxsize=16)
def requested_scores(schema: Text | None) -> tuple[tuple[str, ...], tuple[int, int]]:
    """Return the dimensions and the scale in a call's reply schema; raise ModelError if it has none."""
    if schema is None:
        raise ModelError("a judge call needs a reply schema", retryable=False)
    try:
        scores = json.loads(schema.text)["properties"]["scores"]
        point = scores["properties"][scores["required"][0]]
        low, high = (point["enum"][0], point["enum"][-1]) if "enum" in point else point["description"].split(" to ")
        return tuple(scores["required"]), (int(low), int(high))
    except (ValueError, KeyError, TypeError, IndexError) as exc:
        raise ModelError(f"the reply schema asks for no scores: {exc!r}", retryable=False) from None


_MOST_QUOTES = 12
_MOST_QUOTED = 200


class ConstraintOracle(BuiltInModel):
    """A rule-based judge of constraint awareness: it computes the portfolio from one rendered prompt.

    It has no noise, no preferences and no arguments. It only accepts rubrics whose one dimension is
    ``constraint_awareness`` (`RUBRIC`), and it refuses decisions not made of orders, whose score would be a guess.
    """

    def __init__(self) -> None:
        super().__init__(ORACLE)

    def answer(self, call: CallSpec) -> str:
        """Return the reply as JSON text: the wrong statements as evidence, every verdict in the comment."""
        if call.args:
            raise ModelError(f"{ORACLE} takes no arguments (got {', '.join(sorted(call.args))})", retryable=False)
        asked, scale = requested_scores(call.schema)
        if (asked, scale) != ((DIMENSION,), (1, 5)):
            got = f"asked for {', '.join(asked)}" + ("" if scale == (1, 5) else f" on {scale[0]}..{scale[1]}, not 1..5")
            raise ModelError(f"{ORACLE} knows {DIMENSION} alone ({got}); use rubric {RUBRIC}", retryable=False)
        _, outcome, quantities = read_book(tuple(call.shown()))
        if outcome is None:
            raise ModelError(f"{ORACLE} needs orders on a portfolio with prices; there are none here", retryable=False)
        stated = [part for part in quantities.values() if part.verdict != "absent"]
        wrong = [quote for part in stated if part.verdict == "wrong" for quote in part.quotes]
        words = [f"{part.quantity} {part.verdict}" for part in stated] or ["nothing is reconciled"]
        if outcome.after is None:
            words = ["the orders cannot be carried out"]
        comment = "; ".join([*words, *(f"{check.rule} broken" for check in outcome.checks if not check.kept)])
        # Passages are truncated, without characters that UTF-8 cannot encode.
        quotes = [quote[:_MOST_QUOTED].encode("utf-8", "replace").decode("utf-8") for quote in wrong[:_MOST_QUOTES]]
        return _reply({DIMENSION: oracle_score(quantities, outcome.kept)}, quotes, comment)


def asked_alike(rubric: Rubric) -> bool:
    """Return True if a rubric words constraint awareness as the oracle does; the oracle's score is then the truth."""
    wording = {dimension.name: dimension for dimension in rubric.dimensions}
    return wording.get(DIMENSION) == load_rubric(RUBRIC).dimensions[0]


def oracle_scores(
    decisions: Sequence[Decision], contexts: Iterable[tuple[str, Context]], study: Study,
    shown: Mapping[str, Message] | None = None,
) -> dict[str, int]:  # fmt: skip
    """Compute the oracle's score of every decision made of orders, from the prompt that judges are ``shown``."""
    scores = {}
    for name, message in (user_messages(decisions, contexts, study) if shown is None else shown).items():
        _, outcome, quantities = read_book(tuple(part.text for part in message.parts))
        if outcome is not None:
            scores[name] = oracle_score(quantities, outcome.kept)
    return scores


HALFWAY: Final = 50.0
"""The grade if a prompt has none of the features."""


@dataclass(frozen=True, slots=True)
class SeasonPlanted:
    """The planted properties of a built-in season judge.

    Every grade before rounding is ``opinion + offset + slope * (words per step - pivot) / 100 + preference [style is
    kin] + noise * z``, with one standard normal z per call, determined by judge, prompt, seed and trial: repeated
    judging measures ``noise`` on a composite, up to rounding. It is then rounded half up and clipped to 0..100.
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
    {model: SeasonPlanted(**row) for model, row in planted_tables()["season"].items()}
)
"""The planted properties by model name; a call's arguments of the same names override them."""
WORTH: Mapping[str, Knots] = {
    feature: tuple((value, points) for value, points in rows)
    for feature, rows in planted_tables()["season_worth"].items()
}
"""The points for the values of a feature: linear between these, constant beyond."""
TOPICS: Mapping[str, Sequence[str]] = planted_tables()["season_topics"]
"""The features that determine each part of the built-in plans. Any other part is graded `HALFWAY`."""
LEANING: Mapping[str, Mapping[str, float]] = planted_tables()["season_leaning"]
"""The weight of each feature for each judge (default 1), in which the judges' viewpoints differ."""


class SeasonJudge(BuiltInModel):
    """A judge of whole horizons; it answers horizon calls, outcome calls and author probes, according to the schema."""

    unreadable = (InputError, KeyError, ValueError)

    def answer(self, call: CallSpec) -> str:
        """Return the text of the reply. Tense is not analysed, so the look-ahead check always passes."""
        planted = planted_for(SEASON_PLANTED, self.name, call.args, season_argument_problems(self.name, call.args))
        if call.schema is None:
            raise ModelError("a judge call needs a reply schema", retryable=False)
        try:
            form: Mapping[str, Any] = json.loads(call.schema.text)["properties"]
        except (ValueError, KeyError, TypeError) as exc:
            raise ModelError(f"the reply schema asks for nothing: {exc!r}", retryable=False) from None
        shown = "\n\n".join(call.shown())
        asked, z = _normal(call, self.name)
        noise = planted.noise * (z if planted.noise else 0.0)
        if "outcome" in form:
            rows = [outcome for step in read_steps(shown) for outcome in step.outcomes]
            won = [float(row["value"]) > float(row["benchmark"] or 0.0) for row in rows]
            points = 100.0 * sum(won) / len(won) if won else HALFWAY
            reason = f"{sum(won)} of {len(won)} outcomes above the benchmark"
            return json.dumps({"outcome": half_up(points + planted.offset + noise, 0, 100), "reason": reason})
        if "author" in form:
            options = form["author"]["enum"]
            style = style_of("\n\n".join(step.text for step in read_steps(shown)))
            author = _pairs(planted.knows).get(style or "")
            if author in options:
                return json.dumps({"author": author, "reason": "its phrases"})
            drawn = int.from_bytes(hashlib.sha256(asked.encode()).digest()[:8], "big")
            return json.dumps({"author": options[drawn % len(options)], "reason": "a draw"})
        if "reasoning" not in form:
            raise ModelError(f"{self.name} is asked for nothing that it knows", retryable=False)
        features, leaning = notice_horizon(shown), LEANING[self.name]
        error = planted.offset + planted.slope * (features["tokens"] - planted.pivot) / 100.0 + noise
        if planted.kin and features["style"] == planted.kin:
            error += planted.preference
        axes: dict[str, dict[str, int]] = {"reasoning": {}, "evidence": {}}
        for axis, grades in axes.items():
            for part in form[axis]["required"]:
                # The opinion before any planted error: the weighted mean of the features' points.
                reasons = ((name, WORTH[name], leaning.get(name, 1.0)) for name in TOPICS.get(part, ()))
                grades[part] = half_up(opinion(reasons, features, HALFWAY) + error, 0, 100)
        mean = sum(axes["reasoning"].values()) / max(len(axes["reasoning"]), 1)
        reconciled = HALFWAY if features["reconciled"] is None else 100.0 * features["reconciled"]
        reply: dict[str, JSON] = {
            **axes, "data_reliability": half_up(reconciled, 0, 100), "claims": list(features["claims"]),
            "lookahead_check": "pass", "lookahead_reason": "reference judges do not read tenses",
            "verdict": f"{mean:.0f} by the {self.name.partition('/')[2]}",
            "summary": f"{features['steps']} steps with {features['tokens']:.0f} tokens of reasons each.",
        }  # fmt: skip
        return json.dumps({**reply, "notes": f"{features['steps']} steps read."} if "notes" in form else reply)


def reference_season_judges() -> dict[str, SeasonJudge]:
    """Return the built-in season judges by model name, for registration."""
    return {name: SeasonJudge(name) for name in SEASON_PLANTED}


def season_argument_problems(model: str, args: Mapping[str, Any]) -> list[str]:
    """List the problems of a built-in season judge's arguments; empty for other models."""
    is_planted = model in SEASON_PLANTED
    return [*_argument_problems(SeasonPlanted, args, 1e6, "preference", ("noise",))] if is_planted else []
