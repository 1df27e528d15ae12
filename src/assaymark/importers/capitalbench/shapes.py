"""The shapes of a CapitalBench record as the arena publishes them; unknown keys are refused, types are strict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import ConfigDict, Field

from assaymark.importers.wording import NAME, SHA256

_SHAPE = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

Name = Annotated[str, Field(pattern=NAME)]
Text = str
Share = Annotated[float, Field(ge=0, le=1)]
Percent = Annotated[float, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]
Sha256 = Annotated[str, Field(pattern=SHA256)]

OPTION, WEIGHTS_V1, WEIGHTS_V2, WEIGHTS_V3 = "option", "weights-v1", "weights-v2", "weights-v3"
"""The four shapes, as they stand in ``Decision.format``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """How the answer was obtained, as measured by the arena."""

    __pydantic_config__ = _SHAPE

    api_model_name: str
    started_at_utc: str
    completed_at_utc: str
    latency_seconds: Seconds
    input_tokens: Count | None
    output_tokens: Count | None
    reasoning_tokens: Count | None
    total_tokens: Count | None
    raw_response_sha256: Sha256
    validation_status: Literal["valid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What happened: decimal text, empty where the arena computed none."""

    __pydantic_config__ = _SHAPE

    portfolio_return: str
    sp500_return: str
    alpha_vs_sp500: str
    beats_sp500: Literal["True", "False", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One holding of a portfolio; the last three only from v2 on."""

    __pydantic_config__ = _SHAPE

    option_id: Name
    allocation_pct: Percent
    rationale: Text
    expected_return_pct: float | None = None
    time_window_catalyst: Text = ""
    invalidation_condition: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One row of the v2 candidate ledger: an option the agent weighed, kept or turned down."""

    __pydantic_config__ = _SHAPE

    option_id: Name
    decision: Literal["selected", "rejected"]
    evidence: list[Text]
    continuation_case: Text
    reversal_case: Text
    time_window_catalyst: Text
    invalidation_condition: Text
    forecast_low_pct: float
    forecast_base_pct: float
    forecast_high_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One v3 candidate assessment: the agent's own ranks, chances and evidence."""

    __pydantic_config__ = _SHAPE

    option_id: Name
    rank: Annotated[int, Field(ge=1)]
    mechanism: str
    recent_return_interpretation: str
    origin_lanes: list[str]
    evidence: list[Text]
    p_beat_spy_pct: Percent
    p_top3_pct: Percent
    excess_return_p10_pct: float
    excess_return_p50_pct: float
    excess_return_p90_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioV3:
    """What a v3 agent said, and (``deterministic_allocation``) what the arena made of it."""

    __pydantic_config__ = _SHAPE

    candidate_assessments: list[Assessment]
    candidate_slate_option_ids: list[str]
    confidence_derivation: str
    deterministic_allocation: dict[str, Any]
    dispersion_state: str
    dominant_pattern: str
    market_rationale: Text
    methodology_version: str
    prefer_spy: bool
    top3_option_ids: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMetadata:
    """The empty metadata of every shape but v3."""

    __pydantic_config__ = _SHAPE


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataV3:
    """The metadata that make a submission v3."""

    __pydantic_config__ = _SHAPE

    portfolio_v3: PortfolioV3


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What all four shapes share."""

    __pydantic_config__ = _SHAPE

    round_id: str
    model_id: Name
    provider: Name
    mode: str
    run_type: str
    is_official_score: bool
    replicate_count: Annotated[int, Field(ge=1)]
    replicate_index: Annotated[int, Field(ge=1)]
    confidence: Share
    rationale_summary: Text
    key_risks: list[Text]
    usage: dict[str, float | None]
    cost_usd: Annotated[float, Field(ge=0)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSubmission(Submission):
    """The first shape: one option, everything on it."""

    selected_option_id: Name
    metadata: NoMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsV1(Submission):
    """A portfolio with a reason per holding."""

    portfolio: Annotated[list[Holding], Field(min_length=1)]
    portfolio_rationale: Text
    metadata: NoMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsV2(Submission):
    """A portfolio with forecasts and a candidate ledger; the pilot had no ledger yet."""

    portfolio: Annotated[list[Holding], Field(min_length=1)]
    portfolio_rationale: Text
    portfolio_expected_return_pct: float
    benchmark_expected_return_pct: float
    expected_alpha_vs_sp500_pct: float
    metadata: NoMetadata
    candidate_ledger: list[Candidate] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsV3(Submission):
    """Ranked candidates from the agent; portfolio, its weights and its reasons from the arena."""

    portfolio: Annotated[list[Holding], Field(min_length=1)]
    portfolio_rationale: Text
    metadata: MetadataV3


S = TypeVar("S", bound=Submission)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Generic[S]):
    """One line of the decisions file."""

    __pydantic_config__ = _SHAPE

    round_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=120)]
    run_id: Name
    path: str
    submission: S
    call: Call
    outcome: Resolved | None


def format_of(submission: dict[str, Any]) -> str:
    """Which of the four shapes a submission has, told by the keys that only that shape has."""
    metadata = submission.get("metadata")
    if isinstance(metadata, dict) and "portfolio_v3" in metadata:
        return WEIGHTS_V3
    if "selected_option_id" in submission:
        return OPTION
    if "candidate_ledger" in submission or "portfolio_expected_return_pct" in submission:
        return WEIGHTS_V2
    return WEIGHTS_V1


RECORDS: dict[str, Any] = {
    OPTION: Record[OptionSubmission],
    WEIGHTS_V1: Record[WeightsV1],
    WEIGHTS_V2: Record[WeightsV2],
    WEIGHTS_V3: Record[WeightsV3],
}
"""The reader of each shape."""
