"""Built-in judges: models with known properties, asked and parsed like any model.

`PromptJudge`, `planted_with` and the draws are shared by the built-in judges of rubrics, pairs and seasons; the rest
are the judges of rubrics and the constraint oracle.
"""

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
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from assaymark.engine.calls import CallSpec, Reply, Text
from assaymark.errors import InputError, ModelError
from assaymark.judging.arithmetic_oracle import Reconciliation, oracle_score, reconcile
from assaymark.judging.prompts import Book, book_of, read_decision, user_messages
from assaymark.judging.reference.features import Features, notice, planted_tables
from assaymark.judging.rubric import Rubric, load_rubric
from assaymark.prompting import SIGNATURES, read_material, sections

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from assaymark.protocol import Study
    from assaymark.records import Context, Decision

    P = TypeVar("P", bound=DataclassInstance)

Knots = tuple[tuple[float, float], ...]
"""(value, score) pairs with rising values: between them a score is interpolated, beyond them flat."""

_STANDARD: Final = NormalDist()
_PRINTED: Final = 1e9  # a whole number beyond it may have more digits than can be printed


@dataclass(frozen=True, slots=True)
class PromptJudge:
    """A judge that reads nothing but the rendered prompt and scores it by stated functions.

    It is a `Model`: it answers with JSON text, which goes through the same parser as any model's.
    """

    name: str

    version: ClassVar[str]
    """Changes with anything that can change a score; part of the fingerprint."""
    unreadable: ClassVar[tuple[type[Exception], ...]] = (InputError,)

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call.

        Raises
        ------
        ModelError
            The prompt is not one of this package's for such judges, or an argument is wrong. Asking again cannot help.
        """
        try:
            text = self.answer(call)
        except self.unreadable as exc:
            raise ModelError(f"{self.name} cannot read the prompt: {exc}", retryable=False) from None
        return Reply(text=text, model=self.name, fingerprint=f"{self.name}@{self.version}")

    def answer(self, call: CallSpec) -> str:
        """The text of the reply."""
        raise NotImplementedError


def uniform(name: str) -> float:
    """A number between 0 and 1 that is fixed by a name."""
    return (int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big") + 0.5) / 2**56


def standard_normal(name: str) -> float:
    """A standard normal number that is fixed by a name."""
    return _STANDARD.inv_cdf(uniform(name))


def parts_shown(call: CallSpec) -> list[str]:
    """The texts of the user parts of a call."""
    return [part.text for message in call.messages if message.role == "user" for part in message.parts]


def prompt_digest(call: CallSpec) -> str:
    """A name for the whole prompt of a call, for draws."""
    return ",".join(part.sha256 for message in call.messages for part in message.parts)


def knobs_of(planted: type[DataclassInstance]) -> tuple[str, ...]:
    """The planted properties that arguments of a call can override."""
    return tuple(field.name for field in fields(planted) if field.name != "words")


def planted_with(planted: Mapping[str, P], model: str, args: Mapping[str, Any], problems: Sequence[str] = ()) -> P:
    """The planted properties of a judge as the arguments of a call override them; ModelError where some are wrong."""
    if problems:
        raise ModelError("; ".join(problems), retryable=False)
    given: dict[str, Any] = {key: value if isinstance(value, str) else float(value) for key, value in args.items()}
    return replace(planted[model], **given)


def knob_problem(
    key: str, value: object, knobs: Sequence[str], *, most: float, never_negative: Collection[str] = ()
) -> str | None:
    """The problem of an argument that overrides a planted property: ``kin`` is a style, every other a number."""
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


def without_kin(knob: str, args: Mapping[str, Any]) -> list[str]:
    """The problem of a liking for a style that is not named."""
    if not args.get(knob) or "kin" in args:
        return []
    return [f"argument {knob} needs kin, the style that it favours (one of {', '.join(SIGNATURES)})"]


def is_number(value: object, low: float, high: float) -> bool:
    """Whether a value is a number in a range; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def value_words(value: object) -> str:
    """A value for a message, cut short; a huge number would not print."""
    return "a huge number" if isinstance(value, int) and abs(value) > _PRINTED else f"{value!r:.80}"


def interpolate(value: float, knots: Knots) -> float:
    """Piecewise linear through the knots, flat beyond them."""
    if value <= knots[0][0]:
        return knots[0][1]
    for (x0, y0), (x1, y1) in pairwise(knots):
        if value <= x1:
            return y0 + (y1 - y0) * (value - x0) / (x1 - x0)
    return knots[-1][1]


def weighed(seen: object, reasons: Iterable[tuple[str, Knots, float]], middle: float) -> float:
    """The weighted mean of what the features in ``seen`` are worth, of those that could be noticed; else ``middle``."""
    found = [
        (weight, interpolate(float(value), worth))
        for feature, worth, weight in reasons
        if (value := getattr(seen, feature)) is not None
    ]
    total = sum(weight for weight, _ in found)
    return sum(weight * score for weight, score in found) / total if total else middle


def half_up(value: float, low: int, high: int) -> int:
    """A score rounded half up and clipped to its scale."""
    return min(max(math.floor(value + 0.5), low), high)


# The viewpoints: for each judge and dimension, which features count, how much, and what a value is worth.

MIDDLE = 3.0
"""The score where a prompt gives nothing to go by."""


@dataclass(frozen=True, slots=True)
class Term:
    """One reason for a score: a feature, what its values are worth, and how much it counts."""

    feature: str
    worth: Knots
    weight: float = 1.0


def opinion(terms: tuple[Term, ...], features: Features) -> float:
    """The weighted mean of the terms that could be noticed, 1..5; `MIDDLE` if none could."""
    return weighed(features, ((term.feature, term.worth, term.weight) for term in terms), MIDDLE)


def _terms(rows: Sequence[Sequence[Any]]) -> tuple[Term, ...]:
    """Terms from (feature, weight) or, where the feature is worth something else, (feature, weight, knots)."""
    worth = planted_tables()["worth"]
    return tuple(
        Term(name, tuple((value, score) for value, score in (other[0] if other else worth[name])), weight)
        for name, weight, *other in rows
    )


VIEWS: Mapping[str, Mapping[str, tuple[Term, ...]]] = {
    model: {dimension: _terms(rows) for dimension, rows in view.items()}
    for model, view in planted_tables()["views"].items()
}
"""The viewpoints by model name. A rubric dimension that is not among them is scored `MIDDLE`."""


@dataclass(frozen=True, slots=True)
class Planted:
    """The known properties of a built-in judge of rubrics.

    On each dimension the score before rounding is ``opinion + offset + slope * (tokens - pivot) / 100 + halo [style is
    kin] - terse [tokens <= terse_tokens] + noise * z``, with z standard normal, fixed by judge, dimension, prompt, seed
    and trial. It is then rounded half up and clipped to the scale.
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
    {model: Planted(**row) for model, row in planted_tables()["rubric"].items()}
)
"""The planted properties by model name; a call's arguments of the same names override the numbers."""

ORACLE = "reference/constraint-oracle"
"""The judge that recomputes the arithmetic of orders and knows the dimension `DIMENSION` alone."""
DIMENSION = "constraint_awareness"
RUBRIC = "constraints-1.0"
"""The rubric that asks for this dimension alone, in the words of v1.1."""


class ReferenceJudge(PromptJudge):
    """A built-in judge of rubrics, with the viewpoint of `VIEWS` and the errors of `PLANTED`."""

    version = "5"

    def answer(self, call: CallSpec) -> str:
        """The reply as JSON text. No tense is understood here, so look-ahead stays open."""
        planted = planted_with(PLANTED, self.name, call.args, argument_problems(self.name, call.args))
        seen = notice(parts_shown(call))
        dimensions, (low, high) = asked_of(call.schema)
        views = _views(self.name, "\n".join(part.text for m in call.messages if m.role == "system" for part in m.parts))
        error = planted.offset + planted.slope * (seen.tokens - planted.pivot) / 100.0
        halo = planted.halo if planted.kin and seen.style == planted.kin else 0.0
        terse = planted.terse if seen.tokens <= planted.terse_tokens else 0.0
        digest = prompt_digest(call)
        scores = {}
        for name in dimensions:
            z = standard_normal(f"{self.name}|{name}|{digest}|{call.seed}|{call.trial}") if planted.noise else 0.0
            value = opinion(views.get(name, ()), seen) + (error + planted.noise * z) + halo - terse
            scores[name] = half_up(value if low == 1 and high == 5 else low + (value - 1) * (high - low) / 4, low, high)
        comment = f"{seen.tokens} tokens, {len(seen.doubtful)} of the quoted numbers not found in the material"
        return _reply(scores, list(seen.doubtful), comment)


def _reply(scores: Mapping[str, int], evidence: list[str], comment: str) -> str:
    reply = {"scores": scores, "evidence": evidence, "lookahead_check": "unsure", "comment": comment}
    return json.dumps(reply)


def reference_judges() -> dict[str, ReferenceJudge]:
    """The built-in judges of rubrics by model name, for registration."""
    return {name: ReferenceJudge(name) for name in VIEWS}


def argument_problems(model: str, args: Mapping[str, Any]) -> list[str]:
    """The problems of a built-in judge's arguments, in words; nothing for models that are none."""
    if model == ORACLE:
        return [f"argument {key} is unknown ({ORACLE} takes none)" for key in args]
    if model not in PLANTED:
        return []
    knobs, never_negative = knobs_of(Planted), ("noise", "terse", "terse_tokens")
    looked = (knob_problem(*item, knobs, most=1e9, never_negative=never_negative) for item in args.items())
    return [*filter(None, looked), *without_kin("halo", args)]


def dimension_problem(model: str, names: Collection[str]) -> str | None:
    """Why a built-in judge cannot grade by a rubric with dimensions of these names; None for models that are none."""
    unknown = sorted(set(names) - set(VIEWS.get(model, names)))
    if not unknown:
        return None
    known = ", ".join(VIEWS[model])
    return f"{model} has a view of the shipped dimensions alone ({known}) and none of {', '.join(unknown)}; ask a model"


@lru_cache(maxsize=16)
def asked_of(schema: Text | None) -> tuple[tuple[str, ...], tuple[int, int]]:
    """The dimensions that the reply schema of a call asks for, and their scale; ModelError where it asks for none."""
    if schema is None:
        raise ModelError("a judge call needs a reply schema", retryable=False)
    try:
        scores = json.loads(schema.text)["properties"]["scores"]
        point = scores["properties"][scores["required"][0]]
        low, high = (point["enum"][0], point["enum"][-1]) if "enum" in point else point["description"].split(" to ")
        return tuple(scores["required"]), (int(low), int(high))
    except (ValueError, KeyError, TypeError, IndexError) as exc:
        raise ModelError(f"the reply schema asks for no scores: {exc!r}", retryable=False) from None


@lru_cache(maxsize=64)
def _views(judge: str, system: str) -> Mapping[str, tuple[Term, ...]]:
    """A judge's viewpoint under the rubric it was given: anchors that ask for arithmetic are read as asking for it."""
    block = system.partition(f"{DIMENSION}\n")[2].partition("\n\n")[0]
    if "arithmetic" not in block:
        return VIEWS[judge]
    return {**VIEWS[judge], DIMENSION: _terms(planted_tables()["reconciled"][DIMENSION])}


_MOST_QUOTES = 12
_MOST_QUOTED = 200


class ConstraintOracle(PromptJudge):
    """A judge of constraint awareness by rule: it reads one rendered prompt, like any judge, and works the book out.

    It has no noise, no taste and no arguments. It answers under rubrics that ask for ``constraint_awareness`` alone
    (`RUBRIC`) and refuses every other one, and decisions that are not made of orders on a portfolio with prices: a
    score that it has no ground for would be a guess.
    """

    version = "1"

    def __init__(self) -> None:
        super().__init__(ORACLE)

    def answer(self, call: CallSpec) -> str:
        """The reply as JSON text: the wrong statements as evidence, every verdict in the comment."""
        if call.args:
            raise ModelError(f"{ORACLE} takes no arguments (got {', '.join(sorted(call.args))})", retryable=False)
        asked, scale = asked_of(call.schema)
        if (asked, scale) != ((DIMENSION,), (1, 5)):
            got = f"asked for {', '.join(asked)}" + ("" if scale == (1, 5) else f" on {scale[0]}..{scale[1]}, not 1..5")
            raise ModelError(f"{ORACLE} knows {DIMENSION} alone ({got}); use rubric {RUBRIC}", retryable=False)
        graded = _graded(parts_shown(call))
        if graded is None:
            raise ModelError(f"{ORACLE} needs orders on a portfolio with prices; there are none here", retryable=False)
        book, found = graded
        stated = [part for part in found.parts if part.verdict != "absent"]
        wrong = [quote for part in stated if part.verdict == "wrong" for quote in part.quotes]
        words = [f"{part.quantity} {part.verdict}" for part in stated] or ["nothing is reconciled"]
        if book.after is None:
            words = ["the orders cannot be carried out"]
        comment = "; ".join([*words, *(f"{check.rule} broken" for check in book.checks if not check.kept)])
        # Passages are cut short, in characters that UTF-8 can carry.
        quotes = [quote[:_MOST_QUOTED].encode("utf-8", "replace").decode("utf-8") for quote in wrong[:_MOST_QUOTES]]
        return _reply({DIMENSION: oracle_score(found, book.kept)}, quotes, comment)


def asked_alike(rubric: Rubric) -> bool:
    """Whether a rubric asks for constraint awareness in the words that the oracle scores by.

    Only then is the oracle's score known quality under that rubric.
    """
    wording = {dimension.name: dimension for dimension in rubric.dimensions}
    return wording.get(DIMENSION) == load_rubric(RUBRIC).dimensions[0]


def oracle_scores(
    decisions: Sequence[Decision], contexts: Iterable[tuple[str, Context]], study: Study
) -> dict[str, int]:
    """The oracle's score of constraint awareness of every decision of a study that is made of orders, by record id.

    Each is read from the same rendered and blinded prompt that the judges are shown (`user_messages`). Decisions that
    are not made of orders, or whose material has no portfolio or lacks the price of a holding, have no score.
    """
    scores = {}
    for name, message in user_messages(decisions, contexts, study).items():
        if (graded := _graded([part.text for part in message.parts])) is not None:
            scores[name] = oracle_score(graded[1], graded[0].kept)
    return scores


def _graded(parts: Sequence[str]) -> tuple[Book, Reconciliation] | None:
    """The book of a prompt's decision and what its text states about it; None where there is no book to be made."""
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
