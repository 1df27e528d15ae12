"""The record types, all frozen dataclasses. Docstrings of several lines are descriptions in the published schemas."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, dataclass_transform, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from assaymark.errors import InputError, LedgerError
from assaymark.errors import problems_of as problems_of
from assaymark.notebook import MARKS, Displayable, Grid, Heading, Part, Quote, plain_spaces
from assaymark.notebook import Rows as Rows
from assaymark.text import NBSP, bounds, clean, count, count_of, number, prose, undefined_reason

T = TypeVar("T")
K = TypeVar("K")

JSON = Any
"""A value that json.dumps accepts. Not a recursive alias, which would cost more than it checks."""


def to_json(value: Any) -> JSON:
    """Convert a value to plain JSON types: records become objects, datetimes RFC 3339 in UTC, tuples lists."""
    if type(value) in (str, bool, int) or (type(value) is float and math.isfinite(value)):
        return value  # as most details are
    return json.loads(canonical_json(value))


def canonical_json(value: Any) -> str:
    """Encode a value as JSON with sorted keys and no spaces, the same bytes on every machine."""
    try:
        return _ENCODER.encode(value)
    except ValueError as exc:
        raise ValueError(f"no JSON form: {exc}") from None


_FIELDS: dict[type, tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]] | None] = {}


def _plain(value: Any) -> JSON:
    """Encode a record, mapping or time for `json`, one level deep. The cached getter reads all fields in one call."""
    kind = type(value)
    if kind not in _FIELDS:
        names = tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
        getter = attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)
        _FIELDS[kind] = (names, getter) if dataclasses.is_dataclass(kind) else None
    if (fields := _FIELDS[kind]) is not None:
        names, values = fields
        return dict(zip(names, values(value), strict=True))
    if isinstance(value, datetime):
        return _utc(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def as_object(value: Any) -> dict[str, JSON] | None:
    """Return the fields of a record or the entries of a mapping, values unchanged; None for any other value."""
    if isinstance(value, dict):
        return value
    structured = isinstance(value, Mapping) or dataclasses.is_dataclass(type(value))
    return _plain(value) if structured else None


# The standard encoder walks everything in C and asks _plain only for records and times: four times as fast as walking
# a context of a thousand facts here. Records cannot be circular, so looking for circles is left out.
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False, default=_plain
)


@lru_cache(maxsize=4096)
def _utc(moment: datetime) -> str:
    """Format a time in UTC. Cached, because the facts of a context share a few times."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def content_id(value: Any) -> str:
    """Return the sha256 of the canonical JSON of a record as 64 hex digits: the id of a context."""
    return sha256_text(canonical_json(value))


def sha256_text(text: str) -> str:
    """Return the sha256 of a text in UTF-8; lone surrogates are encoded by ``surrogatepass``."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, in alphabetical order."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items by a key, in the order in which the keys first occur."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def parse(kind: type[T], text: str | bytes, source: str = "record") -> T:
    """Parse a record from JSON strictly; raises `InputError` with every problem, unknown keys among them."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    try:
        record: T = _ADAPTERS[kind].validate_json(text)
    except ValidationError as exc:
        raise InputError(source, problems_of(exc, kind)) from None
    return record


# Files that are replaced atomically: a reader sees all of the new bytes or none, also after a power cut.


def write_atomic(path: Path, data: bytes | str, *, named: bool = True) -> None:
    """Replace a file atomically: a reader sees the old or the new bytes. ``named`` also syncs the directory entry."""
    raw = data.encode() if isinstance(data, str) else data
    with suppress(OSError):
        if path.stat().st_size == len(raw) and path.read_bytes() == raw:
            return
    # The process id keeps two processes that write the same file apart.
    temporary = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as handle:
            handle.write(raw)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
        if named:
            sync_folder(path.parent)
    except OSError as exc:
        with suppress(OSError):
            temporary.unlink()
        raise LedgerError(f"cannot write {path}: {exc.strerror or exc}") from None


def sync_folder(folder: Path) -> None:
    """Sync the directory entries of ``folder``, which POSIX does not write together with the files."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_STRICT = ConfigDict(extra="forbid", strict=True)

Completeness = Literal["complete", "partial"]
ActionKind = Literal["buy", "sell", "short", "cover", "hold", "close", "target_weight", "no_trade"]
RationaleKind = Literal["summary", "portfolio", "risk", "candidate", "holding", "stage", "arena"]
TimingSource = Literal["measured", "derived", "absent"]
DerivationKind = Literal[
    "honest", "cell_a", "cell_b", "ladder", "vacuum", "paraphrase", "fact_flip", "length_matched", "red_team"
]
# not_verifiable is in the tables of versions before 0.2, which did not distinguish in_context and not_found
EvidenceState = Literal[
    "supported", "contradicted", "derivable", "rule", "own_action", "in_context", "not_found", "not_verifiable"
]
PairCondition = Literal["vacuum", "graded_vacuum", "same_subset", "different_subset", "ladder", "filler"]
SlotVerdict = Literal["1", "2", "tie", "abstain", "invalid"]
JudgmentStatus = Literal["ok", "invalid", "refused"]
Scope = Literal["aggregate-ranking", "dimension-ranking", "pairwise-contrast", "adversarial-cell", "benchmark"]
AgreementStatus = Literal["publish", "methodology", "halt", "not judged"]
StabilityStatus = Literal["stable", "tie-class", "judge-dependent", "rule-dependent", "not tested"]
AdversarialStatus = Literal["passed", "construct-sensitive", "contaminated", "not tested", "not judged"]
Level = Literal["headline", "qualified", "no-claim"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
"""Publication levels, highest first."""
RANK: Final[Mapping[Level, int]] = {level: rank for rank, level in enumerate(reversed(LEVELS))}
"""The order of levels: 0 for no claim, the highest for a headline."""


def weakest(levels: Iterable[Level]) -> Level:
    """Return the lowest of some levels; no-claim if there are none."""
    return min(levels, key=RANK.__getitem__, default="no-claim")


PairState = Literal[
    "ordered", "ordered-by-less-than-the-margin", "within-the-margin", "not-resolved", "cannot-be-tested"
]
StabilityState = Literal["stable", "rests-on", "reversed-without", "not-measurable"]
OwnFamilyState = Literal[
    "clear", "rests-on-own-family", "turns-without-own-family", "no-disinterested-judge", "unknown", "not-applicable"
]
LengthState = Literal["clear", "may-be-length", "length", "not-tested", "not-applicable"]
DistinctState = Literal["passed", "not-told-apart", "smaller", "not-tested", "not-applicable"]
OtherJudgesState = Literal["yes", "no", "not-tested", "not-applicable"]
AnchorState = Literal["not-tested", "confirms", "undecided", "contradicts"]


@dataclass_transform(frozen_default=True)
def record(kind: type[T]) -> type[T]:
    """Make a frozen, slotted dataclass whose parser rejects wrong types and unknown keys."""
    kind.__pydantic_config__ = _STRICT  # type: ignore[attr-defined]  # pydantic looks for it on the class
    return dataclass(frozen=True, slots=True, repr=kind.__repr__ is object.__repr__)(kind)


_EVERY: Final = frozenset(("above", "band", "beats", "cell", "first", "gate", "gates", "within"))
"""Kinds of claims that exist for every agent or pair. The subjects of other claims would reveal who is ahead."""
_OF_ALL: Final = frozenset(("agreement", "adversarial", "datasheets", "preregistration"))
"""Fields that limit the first ranks of all agents equally."""

IDENTICAL: Literal["identical repetitions"] = "identical repetitions"
"""State of a noise floor if all repetitions are identical."""

AGGREGATE = "aggregate"
"""Name of the mean over all rubric dimensions, used like a dimension."""


@record
class Instrument(Displayable):
    """Something that can be held, with the names by which a text may call it."""

    id: str
    symbol: str | None = None
    name: str = ""
    asset_class: str = ""
    group: str = ""
    aliases: tuple[str, ...] = ()


@record
class Fact(Displayable):
    """One value an agent could see. ``instrument`` is empty for facts about the economy at large.

    ``available_at`` is when it could be known; a fact later than the decision can never be shown. ``unit`` is one of
    ratio (0.05 is five percent), percent, bps, price, index, count, usd, date, text, or the source's own word.
    ``note`` holds the sentence or table row that a briefing fact was read from.
    """

    id: str
    instrument: str
    field: str
    value: float | str
    unit: str
    available_at: datetime
    as_of: datetime | None = None
    source: str = ""
    note: str = ""


@record
class Series(Displayable):
    """Bars of one instrument, oldest first; ``times`` are bar closes. All sequences have one length."""

    instrument: str
    interval_s: int
    times: tuple[datetime, ...]
    close: tuple[float, ...]
    open: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    volume: tuple[float, ...] = ()


FillAt = Literal["next_open", "close"]
"""Price at which orders fill: the next day's open, or the close."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One day's prices of one instrument, None if unknown; ``age`` is their age in days."""

    open: float | None
    high: float | None = None
    low: float | None = None
    close: float | None = None
    age: int = 0

    def at(self, fill: FillAt) -> float | None:
        """Return the price at which orders fill; None if it is missing, infinite or not positive."""
        price = self.open if fill == "next_open" else self.close
        return price if price is not None and 0 < price < math.inf else None


@record
class Portfolio(Displayable):
    """What was held before the decision: cash and NAV in ``currency``, positions as units per instrument."""

    currency: str
    cash: float
    nav: float
    positions: Mapping[str, float] = field(default_factory=dict)


@record
class Constraint(Displayable):
    """One numeric rule the agent was given, such as ``max_holdings`` 5 count or ``max_weight`` 0.5 nav."""

    kind: str
    limit: float
    unit: str
    scope: str = "portfolio"


@record
class Context(Displayable):
    """Everything an agent could see when it decided, stored once and named by its content (`content_id`).

    ``completeness`` is ``partial`` when the agent saw something that is not here; nothing can then be called
    contradicted. ``cutoff`` is the last moment that the material speaks of and ``cutoff_source`` where it was read.
    ``prompt`` is the text as it was put to the agent.
    """

    completeness: Completeness
    cutoff: datetime
    cutoff_source: str
    prompt: str
    facts: tuple[Fact, ...] = ()
    series: tuple[Series, ...] = ()
    instruments: tuple[Instrument, ...] = ()
    portfolio: Portfolio | None = None
    constraints: tuple[Constraint, ...] = ()
    profile: str | None = None
    missing: tuple[str, ...] = ()


@record
class Agent(Displayable):
    """The agent that decided. ``family`` groups agents and judges of one vendor and defines conflicts of interest."""

    id: str
    family: str
    model: str = ""
    fingerprint: str | None = None
    params: Mapping[str, JSON] = field(default_factory=dict)


@record
class Action(Displayable):
    """One order or target. ``weight`` is a fraction of NAV, ``confidence`` lies in 0..1."""

    instrument: str
    kind: ActionKind
    quantity: float | None = None
    weight: float | None = None
    price: float | None = None
    leverage: float | None = None
    stop: float | None = None
    target: float | None = None
    confidence: float | None = None
    expected_return: float | None = None
    rationale: str | None = None


@record
class Rationale(Displayable):
    """A text of a decision. Texts of kind ``arena`` come from the venue: neither judged nor fact-checked."""

    text: str
    kind: RationaleKind


@record
class CallFacts(Displayable):
    """Metadata of the call behind a decision: seconds and tokens of one attempt, and the source of the timing."""

    seconds: float | None = None
    timing_source: TimingSource = "absent"
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    attempts: int = 1
    raw_object: str | None = None


@record
class Derivation(Displayable):
    """Origin of a decision: honest, or a control derived from record ``parent`` with ``seed``."""

    kind: DerivationKind = "honest"
    parent: str | None = None
    seed: int | None = None
    known_scores: Mapping[str, float] = field(default_factory=dict)


@record
class Provenance(Displayable):
    """Source of a record."""

    source: str
    path: str = ""
    commit: str | None = None
    licence: str | None = None


@record
class Decision(Displayable):
    """One decision of one agent with its rationales: the trajectory that a ValueBlindBench judge scores."""

    _wordy = ("Derivation", "Reasons")

    record_id: str
    episode_id: str
    step: int
    cluster: str
    decided_at: datetime
    agent: Agent
    context_id: str
    actions: tuple[Action, ...]
    rationales: tuple[Rationale, ...]
    format: str
    provenance: Provenance
    confidence: float | None = None
    stages: Mapping[str, JSON] = field(default_factory=dict)
    call: CallFacts = field(default_factory=CallFacts)
    derivation: Derivation = field(default_factory=Derivation)
    replicate: int = 1
    flags: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def cycle(self) -> str:
        """Id of the question that the decision answers; contrasts between agents are paired by it."""
        return f"{self.episode_id}#{self.step}"

    def _cells(self) -> dict[str, str]:
        return {
            "Decision": clean(self.record_id, 80), "Agent": clean(self.agent.id, 60), "Cycle": clean(self.cycle, 80),
            "Derivation": self.derivation.kind,
            "Orders": clean("; ".join(f"{action.kind} {action.instrument}" for action in self.actions), 200) or "none",
            "Reasons": clean(" ".join(rationale.text for rationale in self.rationales), 200),
        }  # fmt: skip

    def __repr__(self) -> str:
        return "Decision {Decision} of {Agent}: {Orders}".format_map(self._cells())


@record
class Outcome(Displayable):
    """A realised outcome. Stored in its own table and never shown to a judge of the rationale."""

    record_id: str
    horizon: str
    value: float
    benchmark: float | None
    resolved_at: datetime | None
    source: str


@record
class Score(Displayable):
    """One benchmark score of a decision, an answer, or a whole episode."""

    about: str
    agent: str
    cluster: str
    name: str
    value: float
    convention: str
    least: float = 0.0
    most: float = 1.0
    state: str = "ok"
    labels: Mapping[str, str] = field(default_factory=dict)


@record
class Judgment(Displayable):
    """One judge's reply on one trajectory in one trial. ``scores`` is empty unless ``status`` is ok."""

    trajectory: str
    judge: str
    family: str
    rubric: str
    trial: int
    status: JudgmentStatus
    scores: Mapping[str, float]
    call_key: str
    evidence: tuple[str, ...] = ()
    lookahead_check: str | None = None
    reason: str | None = None
    first_key: str = ""

    def _cells(self) -> dict[str, str]:
        scores = "; ".join(f"{name} {value:g}" for name, value in self.scores.items())
        return {
            "Judgment of": clean(self.trajectory, 80), "Judge": clean(self.judge, 60), "Trial": count(self.trial),
            "Status": self.status, "Scores": clean(scores or self.reason or "none", 200),
        }  # fmt: skip


@record
class PairCall(Displayable):
    """One verdict of a judge on two candidates in one presentation order, for its datasheet."""

    pair: str
    condition: PairCondition
    task: str
    order: Literal["uv", "vu"]
    verdict: SlotVerdict
    judge: str
    delta: float = 0.0
    better: Literal["u", "v"] | None = None
    variant: str = ""
    prompt: str = "tie-allowed"
    trial: int = 1
    call_key: str = ""
    reason: str | None = None


@record
class Evidence(Displayable):
    """One number in a rationale, and the result of checking it against the agent's context."""

    decision: str
    part: int
    kind: RationaleKind
    start: int
    quote: str
    number: float
    unit: str
    subject: str
    state: EvidenceState
    facts: tuple[str, ...]
    rule: str


@record
class Measurement(Displayable):
    """A number with all that is needed to read it: denominator, interval, level and method.

    ``labels`` say what it is about (dimension, agent, judge, dropped family ...). ``value`` is None exactly when
    ``state`` is not ``"ok"``; the state then says why in words. ``detail`` carries the parts that a certificate needs
    to recompute it (contingency tables, cluster sums), as plain JSON.
    """

    _right = ("Value",)
    _wordy = ("Method",)

    name: str
    labels: Mapping[str, str]
    value: float | None
    n: int
    n_of: str
    method: str
    state: str = "ok"
    low: float | None = None
    high: float | None = None
    level: float | None = None
    unit: str = ""
    inputs: str = ""
    detail: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Stable id: the measurement's name and its labels in alphabetical order."""
        return measurement_id(self.name, self.labels)

    def _cells(self) -> dict[str, str]:
        text = None if self.value is None else f"{number(self.value, 3)} {clean(self.unit, 24)}".rstrip()
        return {
            "Measurement": clean(self.name, 60),
            "About": clean("; ".join(f"{key} {self.labels[key]}" for key in sorted(self.labels)), 200),
            "Value": undefined_reason(self.state) if text is None else text,
            "Interval": bounds(self.low, self.high, self.level), "n": count_of(self.n, self.n_of),
            "Method": clean(self.method, 140),
        }  # fmt: skip

    def __repr__(self) -> str:
        name, _, value, interval, n, method = self._cells().values()
        about = ",".join(f"{key}={self.labels[key]}" for key in sorted(self.labels))
        return plain_spaces(f"{name}[{clean(about, 200)}]: {value} ({interval}), n = {n}; {method}")


def measurement_id(name: str, labels: Mapping[str, str]) -> str:
    """Return the id of the measurement ``name`` with these labels."""
    return _joined_id(name, tuple(labels.items()))


@lru_cache(maxsize=1 << 14)
def _joined_id(name: str, labels: tuple[tuple[str, str], ...]) -> str:
    return f"{name}[{','.join(f'{key}={value}' for key, value in sorted(labels))}]"


@record
class Claim(Displayable):
    """A sentence somebody may want to publish.

    ``subjects`` are agents, the one claimed higher first; for the scope ``adversarial-cell`` the one name of the cell.
    """

    id: str
    scope: Scope
    statement: str
    subjects: tuple[str, ...]
    dimension: str
    asserts_order: bool


@record
class Condition(Displayable):
    """One sentence that has to be said with a claim; ``id`` names its kind for programs."""

    id: str
    text: str


@record
class Cap(Displayable):
    """One field that keeps a claim at ``level`` or below, and whether the human anchor lifts it."""

    field: str
    level: Level
    lifted: bool = False


@record
class StabilityFinding(Displayable):
    """What leaving out each judge family does to an order, and the families whose absence decides it."""

    state: StabilityState
    families: tuple[str, ...] = ()


@record
class Verdict(Displayable):
    """The deliverable: which sentence the scores support, and why (ValueBlindBench section 3.8).

    ``conditions`` are the sentences that have to be said with the claim, and ``condition`` is their texts joined;
    ``binding`` names the fields that decided the level; ``caps`` lists every field that limits it, lowest level first;
    ``measurements`` are the ids it rests on; ``amended`` names the plan fields that were changed after the lock.
    ``p`` is that of the contrast, ``p_adjusted`` that in the order procedure, and
    ``p_adjusted_headline`` that in its second run, where length may explain the difference (a first place has the
    largest of its contrasts). ``stability`` is None where no judge family was left out to decide. The five states name
    what each bias test found, in one word.
    """

    _wordy = ("Say also", "Decided by")

    claim: Claim
    agreement_status: AgreementStatus
    stability_status: StabilityStatus
    adversarial_status: AdversarialStatus
    publication_level: Level
    reasons: tuple[str, ...]
    binding: tuple[str, ...]
    measurements: tuple[str, ...]
    plan_hash: str
    condition: str | None = None
    fragility: Mapping[str, Level] = field(default_factory=dict)
    amended: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    caps: tuple[Cap, ...] = ()
    pair_state: PairState | None = None
    p: float | None = None
    p_adjusted: float | None = None
    p_adjusted_headline: float | None = None
    stability: StabilityFinding | None = None
    own_family: OwnFamilyState = "not-applicable"
    length: LengthState = "not-applicable"
    distinct: DistinctState = "not-applicable"
    other_judges: OtherJudgesState = "not-applicable"
    human_anchor: AnchorState = "not-tested"
    preregistered: bool = True

    @property
    def said(self) -> str:
        """The claim as displayed: its statement, or for an unsupported claim only its kind, agents and score."""
        if self.publication_level != "no-claim":
            return prose(self.claim.statement, 400)
        kind = clean(self.claim.id.partition("[")[0], 40)
        about = ", ".join(sorted(clean(name, 80) for name in self.claim.subjects))
        named = f": {about}" if kind.rpartition(".")[2] in _EVERY else ""
        return f"not supported ({kind}{named}; {clean(self.claim.dimension, 60)})"

    def _cells(self) -> dict[str, str]:
        supported = self.publication_level != "no-claim"
        # Hidden for an unsupported first rank: a claim that only another check stops would reveal the leader.
        leads = not supported and self.claim.id.startswith("first[")
        return {
            "Level": f"{MARKS[self.publication_level]}{NBSP}{self.publication_level}", "Claim": self.said,
            "Say also": prose(self.condition or "", 400) if supported else "", "Agreement": self.agreement_status,
            "Stability": "not shown" if leads else self.stability_status, "Controls": self.adversarial_status,
            "Decided by": ", ".join(name for name in self.binding if not leads or name in _OF_ALL),
        }  # fmt: skip

    def _parts(self) -> Iterator[Part]:
        cells = self._cells()
        level, claim, also = cells.pop("Level"), cells.pop("Claim"), cells.pop("Say also")
        if self.publication_level == "no-claim":
            yield Heading(f"{level}: {claim}")
        else:
            yield Quote(self.publication_level, claim, also)
        yield Grid(tuple(cells), (tuple(cells.values()),))
        if self.publication_level == "no-claim":
            return
        for reason in self.reasons:
            yield prose(reason, 400)
        if self.fragility:
            other = "; ".join(f"{clean(rule, 60)}: {self.fragility[rule]}" for rule in sorted(self.fragility))
            yield f"Under other rules: {other}."

    def __repr__(self) -> str:
        level, claim, also, *_, by = self._cells().values()
        more = (f" Say also: {also}" if also else "") + (f" Decided by {by}." if by else "")
        return plain_spaces(f"{level}: {claim}{more}")
