"""The benchmark file: which models are put through which questions, windows and profiles, written down and locked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from assaymark.benchmark.market import Pace
from assaymark.benchmark.questions.payloads import Condition, Split
from assaymark.benchmark.scores import Convention
from assaymark.plan import BiasRules, Frozen, Missing, OrderRules, read_plan, read_toml
from assaymark.protocol import AgentSpec, EngineChoice, JudgeSpec, Name
from assaymark.records import content_id

ProfileName = Literal["conservative", "balanced", "aggressive"]


class Market(Frozen):
    """Where prices come from: ``synthetic``, or the folder of a snapshot (`assaymark data`)."""

    source: str = "synthetic"
    seed: int = Field(default=0, ge=0, description="of the synthetic market")
    instruments: int | tuple[Name, ...] = Field(
        default=81, description="how many, by a fixed rule over the six classes, or which; an index cannot be held"
    )

    @model_validator(mode="after")
    def _enough(self) -> Market:
        count = self.instruments if isinstance(self.instruments, int) else len(set(self.instruments))
        if count < 6:
            raise ValueError(f"instruments: six classes need 6 or more (got {count})")
        return self


class Pipeline(Frozen):
    """The five stages (sections 2.2, C.1 and C.3)."""

    profiles: tuple[ProfileName, ...] = ("conservative", "balanced", "aggressive")
    windows: tuple[Name, ...] = Field(
        default=("normal", "china-2015", "covid-2020", "crypto-2022"),
        min_length=1,
        description="the normal window and the stress windows; the gate needs all three of these",
    )
    frequency: Pace = "monthly"
    lookback: int = Field(default=60, ge=20, le=252, description="trading days")
    correlation: Literal["lookback", "training"] = Field(
        default="lookback", description="what S3's two layers are scored by: of the lookback, or of the training years"
    )
    alpha: float = Field(default=0.5, ge=0, le=1, description="weight of accuracy in S3, eq. 6")
    penalty: float = Field(default=0.1, ge=0, le=1, description="lambda of eq. 3")
    cost_bps: float = Field(default=15.0, ge=0, lt=1000, description="10 slippage and 5 commission")
    drift_limit: float = Field(default=0.05, gt=0, le=1)
    cash_baselines: bool = Field(
        default=False, description="whether baselines may hold cash instruments: with them MinVar is cash"
    )


class Questions(Frozen):
    """The static questions (sections 2.2 and D)."""

    per_template: int = Field(default=50, ge=1, le=1000, description="asked of each model")
    split: Split = "test"
    conditions: tuple[Condition, ...] = Field(default=("full", "restricted"), min_length=1)
    seed: int = Field(default=0, ge=0)
    file: str | None = Field(default=None, description="a set of questions in place of our own (JSONL)")


class BenchPlan(Frozen):
    """A whole benchmark file; see ``docs/portbench.md``."""

    version: Literal["2"] = "2"
    name: Name = "portbench"
    title: str = ""
    seed: int = Field(default=0, ge=0, description="of resampling")
    models: tuple[AgentSpec, ...] = Field(min_length=1)
    convention: Convention = "paper"
    market: Market = Market()
    pipeline: Pipeline = Pipeline()
    questions: Questions = Questions()
    level: Annotated[float, Field(gt=0.5, lt=1, description="coverage of intervals; inference.alpha is 1 - level")] = (
        0.95
    )
    inference: OrderRules = OrderRules()
    missing: Missing = Missing()
    agreed: float = Field(
        default=0.5, ge=-1, le=1, description="rank correlation above which questions and pipeline agree"
    )
    judges: tuple[JudgeSpec, ...] = Field(default=(), description="a panel that grades what models say at S1 to S3")
    rubric: str = "v1.0"
    claims: BiasRules = Field(default=BiasRules(), description="of that panel")
    engine: EngineChoice = EngineChoice()

    @model_validator(mode="before")
    @classmethod
    def _alpha_given_once(cls, raw: Any) -> Any:
        inference = raw.get("inference", {}) if isinstance(raw, dict) else None
        if not isinstance(inference, dict):
            return raw
        if isinstance(level := raw.get("level"), float):
            return {**raw, "inference": {"alpha": round(1 - level, 12), **inference}}
        alpha = inference.get("alpha")
        return {**raw, "level": round(1 - alpha, 12)} if isinstance(alpha, float) and "level" not in raw else raw

    @model_validator(mode="after")
    def _consistent(self) -> BenchPlan:
        if abs(1 - self.level - self.inference.alpha) > 1e-9:
            raise ValueError(
                f"inference.alpha is 1 - level; give one of the two (got {self.inference.alpha} and {self.level})"
            )
        for what, names in (
            ("models", [model.name for model in self.models]),
            ("judges", [judge.name for judge in self.judges]),
            ("pipeline.profiles", [str(profile) for profile in self.pipeline.profiles]),
            ("pipeline.windows", list(self.pipeline.windows)),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{what}: each is named once (twice: {', '.join(twice)})")
        return self


def parse_plan(text: str, source: str = "portbench.toml") -> BenchPlan:
    """A benchmark plan from the text of its file."""
    return read_plan(BenchPlan, read_toml(text, source), source)


def bench_hash(plan: BenchPlan, texts: dict[str, str], inputs: dict[str, str]) -> str:
    """sha256 of the canonical plan, of the digests of every template it uses, and of the data it is run on."""
    canonical = plan.model_dump(mode="json", exclude={"engine"})
    return content_id({"plan": canonical, "texts": texts, "inputs": inputs})
