"""Scoring plans of a season: axes, weights, bands and the rule for several judges, in files that are validated on load.

Two plans are built in, for versions 0.3 and 0.4 of the season methodology. They resolve gaps and contradictions in it:

- Four axes are graded, but not the four of the composite. Data reliability is graded but not used; process enters the
  composite but is not graded separately. It is computed from temporal consistency and portfolio discipline, which
  count twice: as parts of reasoning and as process.
- "90 % reasoning, evidence and process, 10 % outcome" describes the composite. In the total of v0.4 these are 81 % and
  9 %, since efficiency takes a tenth.
- Both texts put axes and their parts on one scale of 0 to 100, so a part is graded 0 to 100 and then weighted.
- The texts call bands stable and single points noise, but one point at 44 or 66 changes the band: see `contested_band`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeVar, get_args

from pydantic import Field, model_validator

import assaymark.prompting as p
from assaymark.plan import Frozen, read_model, shipped_names, shipped_text
from assaymark.prompting import Rejected, ReplyForm, brief, whole_number
from assaymark.records import JSON, Context, canonical_json, duplicates, record, sha256_text

Component = Literal["reasoning", "evidence", "process", "outcome"]
PanelRule = Literal["single", "median"]

_FOLDER: Final = "season/plans"

DEFAULT_SCORING: Final = "v0.4"
"""The default scoring plan."""

TEMPORAL: Final = "temporal_consistency"
PORTFOLIO: Final = "portfolio_discipline"
PROCESS: Final = (TEMPORAL, PORTFOLIO)
"""The parts of reasoning that also make the process score."""

_WHOLE = 100.0
_SLACK = 1e-9  # a sum of weights such as 33.3 + 33.3 + 33.4 differs from 100 by rounding

_Line = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$")]
_Weight = Annotated[float, Field(gt=0, le=_WHOLE)]


class SubComponent(Frozen):
    """One part of an axis, graded 0 to 100, with its weight in percent of the axis."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: _Line
    weight: _Weight


class CompositeWeights(Frozen):
    """The percentage of each component of a composite, and the components that share the outcome's if there is none."""

    reasoning: _Weight
    evidence: _Weight
    process: _Weight
    outcome: Annotated[float, Field(ge=0, lt=_WHOLE)]
    without_outcome: Annotated[tuple[Literal["reasoning", "evidence", "process"], ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _sums(self) -> CompositeWeights:
        _require_hundred("the four components", self.reasoning, self.evidence, self.process, self.outcome)
        if len(set(self.without_outcome)) != len(self.without_outcome):
            raise ValueError(f"without_outcome names a component twice (got {', '.join(self.without_outcome)})")
        return self

    def shares(self, outcome: bool) -> dict[Component, float]:
        """Return the percentage of each component; without an outcome its share goes to the components in the plan."""
        percent: dict[Component, float] = {
            "reasoning": self.reasoning, "evidence": self.evidence, "process": self.process,
        }  # fmt: skip
        if outcome:
            return {**percent, "outcome": self.outcome}
        receiving = sum(percent[name] for name in self.without_outcome)
        for name in self.without_outcome:
            percent[name] *= 1 + self.outcome / receiving
        return percent


class EfficiencyScale(Frozen):
    """The scale of efficiency points.

    ``absolute``: the full quality up to ``reference_s`` seconds per decision, proportionally less above, independent of
    other agents. ``relative``: quality per second, scaled so that the best of the season is 100. One fast rule then
    takes nearly all points from every model, and every new agent changes the efficiency of all.
    """

    scale: Literal["absolute", "relative"] = "absolute"
    reference_s: Annotated[float, Field(gt=0, le=86_400)] = 60.0


class EfficiencyRule(EfficiencyScale):
    """The percentage of efficiency in the total, its scale, and the minimum seconds counted for a decision."""

    weight: Annotated[float, Field(ge=0, lt=_WHOLE)]
    least_seconds: Annotated[float, Field(gt=0)] = 1.0


class Bands(Frozen):
    """The lowest whole score of the two upper bands; lower scores are weak."""

    strong: Annotated[int, Field(ge=1, le=100)]
    mixed: Annotated[int, Field(ge=1, le=100)]

    @model_validator(mode="after")
    def _ordered(self) -> Bands:
        if self.mixed >= self.strong:
            raise ValueError(f"mixed must begin below strong (got mixed {self.mixed}, strong {self.strong})")
        return self


class TieRule(Frozen):
    """The confidence level at which the difference of two totals must exceed their noise for them to be ranked."""

    level: Annotated[float, Field(gt=0, lt=1)] = 0.95


class ScoringPlan(Frozen):
    """The rules for computing a score from grades.

    ``panel`` is "single" for one judge or "median" for the median over judges. Every score carries ``grader`` and the
    digest, so that a comparison of scores from different versions is visible.
    """

    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]
    title: _Line
    grader: _Line
    panel: PanelRule
    composite: CompositeWeights
    efficiency: EfficiencyRule
    bands: Bands
    ties: TieRule = TieRule()
    reasoning: Annotated[tuple[SubComponent, ...], Field(min_length=1)]
    evidence: Annotated[tuple[SubComponent, ...], Field(min_length=1)]
    not_applicable: tuple[SubComponent, ...] = Field(
        default=(), exclude=True, description="parts of evidence left out for a season; see `without`"
    )

    @model_validator(mode="after")
    def _axes(self) -> ScoringPlan:
        for axis, parts in (("reasoning", self.reasoning), ("evidence", self.evidence)):
            _require_hundred(f"the parts of {axis}", *(part.weight for part in parts))
        names = [part.name for part in (*self.reasoning, *self.evidence)]
        twice = duplicates(names)
        if twice:
            raise ValueError(f"each part needs a unique name (got {', '.join(twice)} more than once)")
        absent = [name for name in PROCESS if name not in {part.name for part in self.reasoning}]
        if absent:
            raise ValueError(f"reasoning needs the parts that make the process score (missing: {', '.join(absent)})")
        return self

    def without(self, names: Collection[str]) -> ScoringPlan:
        """Return the plan without some parts of evidence; their weight goes to the others in proportion."""
        parts = [part for part in self.evidence if part.name not in names]
        removed = tuple(part for part in self.evidence if part.name in names)
        if not removed or not parts:
            return self
        whole = sum(part.weight for part in parts)
        scaled = tuple(part.model_copy(update={"weight": _WHOLE * part.weight / whole}) for part in parts)
        return self.model_copy(update={"evidence": scaled, "not_applicable": (*self.not_applicable, *removed)})

    @property
    def text(self) -> str:
        """The plan as canonical JSON, which the plan hash covers."""
        return canonical_json(self.model_dump(mode="json"))

    @property
    def digest(self) -> str:
        """The sha256 of `text`; equivalent files have the same digest."""
        return sha256_text(self.text)


def _require_hundred(subject: str, *weights: float) -> None:
    """Refuse weights that do not sum to 100."""
    if abs(sum(weights) - _WHOLE) > _SLACK:
        raise ValueError(f"the weights of {subject} must sum to 100 (got {sum(weights):g})")


def parse_scoring(text: str, *, source: str = "scoring.toml") -> ScoringPlan:
    """Parse a scoring plan from the text of its TOML file."""
    return read_model(ScoringPlan, text, source)


def scoring_names() -> tuple[str, ...]:
    """Return the names of the built-in scoring plans."""
    return shipped_names(_FOLDER)


@cache
def load_scoring(name: str = DEFAULT_SCORING) -> ScoringPlan:
    """Load the built-in scoring plan ``name``."""
    return parse_scoring(shipped_text("scoring plan", _FOLDER, name), source=f"scoring plan {name}")


# Applicable parts of the evidence axis: a part about data that a season does not have is dropped.


NEEDED: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "valuation_use": re.compile(
            "pe|peg|pb|ps|ev|ebitda|ebit|eps|earnings|book|revenue|sales|margin|profit|income|fcf|roe|roa|valuation"
            "|yield|capitalization|marketcap"
        ),
        "momentum_use": re.compile("price|close|return|momentum|rsi|macd|sma|ema|volatility|drawdown"),
        "analyst_use": re.compile("analysts?|target|ratings?|recommendation|consensus"),
        "sector_use": re.compile("sector|industry|subsector"),
    }
)
"""The parts that need special data, with a pattern of words, one of which the name of a field with such data has."""

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def applicable(plan: ScoringPlan, contexts: Iterable[Context]) -> ScoringPlan:
    """Return the plan for a season with these contexts, without the parts for which no context has a field."""
    fields: set[str] = set()
    bars = shown = False
    for context in contexts:
        if context.completeness != "complete":
            return plan
        shown, bars = True, bars or bool(context.series)
        fields.update(fact.field for fact in context.facts if fact.instrument)
    words = {word.lower() for field in fields for word in _WORDS.findall(field)}
    there = {name for name, needed in NEEDED.items() if any(map(needed.fullmatch, words))}
    if bars:
        there.add("momentum_use")
    return plan.without(NEEDED.keys() - there) if shown else plan


ClaimState = Literal["supported", "contradicted", "not_verifiable"]
LookaheadCheck = Literal["pass", "fail"]
HIGHEST: Final = 100
MOST_CHARACTERS: Final = 400_000
"""Maximum number of characters in a reply; a longer one is invalid and is not parsed."""
MOST_CLAIMS: Final = 300
MOST_QUOTED: Final = 1_000
"""Maximum number of characters in a quotation, a reason, a verdict or a summary."""
MOST_FIELDS: Final = 24
MOST_NOTE_TOKENS: Final = 1_500
"""Maximum number of words in the notes that a judge carries from one part of a horizon to the next."""

_STATES: Final[tuple[ClaimState, ...]] = get_args(ClaimState)
_CHECKS: Final[tuple[LookaheadCheck, ...]] = get_args(LookaheadCheck)
_POINTS: Final[JSON] = {"type": "integer", "description": f"0 to {HIGHEST}"}
_TEXT: Final[JSON] = {"type": "string"}

A = TypeVar("A")


@record
class HorizonClaim:
    """One line of a judge's claims ledger: a quotation, its step, the judge's verdict on it, the fields used."""

    quote: str
    step: int
    state: ClaimState
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HorizonAnswer:
    """A valid reply on a horizon (or a part of one): a grade from 0 to 100 for every part of both axes."""

    reasoning: Mapping[str, int]
    evidence: Mapping[str, int]
    data_reliability: int
    claims: tuple[HorizonClaim, ...]
    lookahead_check: LookaheadCheck
    lookahead_reason: str
    verdict: str
    summary: str
    notes: str | None = None


@lru_cache(maxsize=16)
def horizon_schema(plan: ScoringPlan, notes: bool = False) -> str:
    """Build the JSON schema of a reply on a horizon; ``notes`` is True for a part that is not the last."""
    claim: dict[str, JSON] = {
        "quote": _TEXT, "step": {"type": "integer"}, "state": {"type": "string", "enum": list(_STATES)},
        "fields": {"type": "array", "items": _TEXT},
    }  # fmt: skip
    properties: dict[str, JSON] = {
        "reasoning": p.object_schema({part.name: _POINTS for part in plan.reasoning}),
        "evidence": p.object_schema({part.name: _POINTS for part in plan.evidence}),
        "data_reliability": _POINTS,
        "claims": {"type": "array", "items": p.object_schema(claim)},
        "lookahead_check": {"type": "string", "enum": list(_CHECKS)},
        **dict.fromkeys(("lookahead_reason", "verdict", "summary"), _TEXT),
    }
    return p.schema_text({**properties, "notes": _TEXT} if notes else properties)


def horizon_form(plan: ScoringPlan, first: int, last: int, notes: bool = False) -> ReplyForm[HorizonAnswer]:
    """Build the reply form for these steps of a horizon; a claim about a step not shown makes a reply invalid."""

    def check(raw: JSON) -> HorizonAnswer:
        # Keys are checked in this order, which determines the problem that is recorded.
        keys = ["reasoning", "evidence", "data_reliability", "claims"]
        keys += ["lookahead_check", "lookahead_reason", "verdict", "summary", *(["notes"] if notes else [])]
        reply = require_object(raw, keys)
        axes: list[dict[str, int]] = []
        for axis, parts in (("reasoning", plan.reasoning), ("evidence", plan.evidence)):
            names = [part.name for part in parts]
            grades = require_object(reply[axis], names, f"parts of {axis}")
            axes.append({name: whole_number(grades[name], name, 0, HIGHEST) for name in names})
        reliability = whole_number(reply["data_reliability"], "data_reliability", 0, HIGHEST)
        claims = reply["claims"]
        if not isinstance(claims, list):
            raise Rejected(f"claims must be a list (got {brief(claims)})")
        if len(claims) > MOST_CLAIMS:
            raise Rejected(f"claims has {len(claims)} entries, at most {MOST_CLAIMS} are allowed")
        ledger = tuple(claim(entry, f"claim {at}") for at, entry in enumerate(claims, start=1))
        lookahead = p.choice(reply["lookahead_check"], _CHECKS, f"lookahead_check must be one of {', '.join(_CHECKS)}")
        reason = p.bounded_text(reply["lookahead_reason"], "lookahead_reason", MOST_QUOTED)
        lines = {}
        for field in ("verdict", "summary"):
            lines[field] = p.bounded_text(reply[field], field, MOST_QUOTED).strip()
            if not lines[field] or any(ord(char) < 32 for char in lines[field]):
                raise Rejected(f"{field} must be one line of text (got {brief(reply[field])})")
        carried = p.bounded_text(reply["notes"], "notes", MOST_CHARACTERS) if notes else None
        if carried is not None and (count := p.token_count(carried)) > MOST_NOTE_TOKENS:
            raise Rejected(f"notes has {count} words, at most {MOST_NOTE_TOKENS} are allowed")
        remarks = (lookahead, reason, lines["verdict"], lines["summary"], carried)
        return HorizonAnswer(axes[0], axes[1], reliability, ledger, *remarks)

    def claim(raw: JSON, label: str) -> HorizonClaim:
        members = require_object(raw, ("quote", "step", "state", "fields"), f"{label}: keys")
        step = whole_number(members["step"], f"{label}: step", first, last)
        fields = members["fields"]
        if not isinstance(fields, list) or len(fields) > MOST_FIELDS:
            raise Rejected(f"{label}: fields must be a list of at most {MOST_FIELDS} (got {brief(fields)})")
        quote = p.bounded_text(members["quote"], f"{label}: quote", MOST_QUOTED)
        state = p.choice(members["state"], _STATES, f"{label}: state must be one of {', '.join(_STATES)}")
        used = tuple(p.bounded_text(field, f"{label}: field", MOST_QUOTED) for field in fields)
        return HorizonClaim(quote, step, state, used)

    return ReplyForm(plan.version, horizon_schema(plan, notes), check, MOST_CHARACTERS, failures=True)


def reasoned_form(key: str, schema: JSON, value: Callable[[JSON], A]) -> ReplyForm[tuple[A, str]]:
    """Build the form of a reply with one value under ``key`` and a reason."""

    def check(raw: JSON) -> tuple[A, str]:
        fields = require_object(raw, (key, "reason"))
        return value(fields[key]), p.bounded_text(fields["reason"], "reason", MOST_QUOTED)

    return ReplyForm(key, p.schema_text({key: schema, "reason": _TEXT}), check, MOST_CHARACTERS, failures=True)


OUTCOME = reasoned_form("outcome", _POINTS, lambda raw: whole_number(raw, "outcome", 0, HIGHEST))
"""The form of a reply to the outcome call."""


def require_object(raw: JSON, keys: Sequence[str], label: str = "keys") -> Mapping[str, Any]:
    """Check that a value is an object with exactly these keys, and return it."""
    subject = "the reply" if label == "keys" else label
    return p.members(raw, keys, label, otherwise=f"{subject} must be a JSON object (got {brief(raw)})")
