"""The study file: the design of a study, preregistered (locked) before any judge is called."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Final, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from assaymark.plan import BiasRules, Frozen, Human, MissingLimits, OrderRules, read_plan, read_toml
from assaymark.records import AGGREGATE, DerivationKind, content_id, duplicates, sha256_text

Name = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\[\]=,|]+$")]
"""A name from a study file. It becomes part of measurement ids, so their separators are not allowed."""

HUMAN_MODEL: Final = "human/table"
"""The model of a human judge: grades are read from a table, and no call is made."""

HUMAN_FAMILY: Final = "human"
"""The family of every human judge."""

Scale = tuple[float, float]
"""The lowest and highest score that a judge can give."""

SCALE: Final[Scale] = (1.0, 5.0)
"""The scale of the built-in rubrics (ValueBlindBench section 3.6), and the default of a plan."""

_MOST_CATEGORIES: Final = 11  # up to which judges are compared category by category


def categories_on(scale: Scale) -> int:
    """Count the whole levels of a scale; 0 if its ends are not whole or there are too many levels for kappa."""
    low, high = scale
    count = int(high - low) + 1
    return count if float(low).is_integer() and float(high).is_integer() and count <= _MOST_CATEGORIES else 0


Coefficient = Literal["kappa", "icc", "alpha"]

AGREEMENT: Final[Mapping[Coefficient, str]] = {
    "kappa": "kappa", "icc": "intraclass correlation", "alpha": "Krippendorff's alpha"
}  # fmt: skip
"""The agreement coefficients by name, as texts print them."""

IN_POINTS: Final[Mapping[str, tuple[str, ...]]] = {
    "cells": ("substance", "verbosity", "halo"), "inference": ("mde_sd",),
}  # fmt: skip
"""Fields in points of the scale. Their defaults are for 1..5 and are rescaled to the scale of the plan."""


class JudgeSpec(Frozen):
    """One judge of the panel: its model, the family it belongs to, and its number of trials."""

    name: Name
    model: Annotated[str, Field(min_length=3, pattern=r"^[a-z0-9_.-]+/.+$")]
    family: Name
    trials: int = Field(default=1, ge=1, le=50)
    seed: int | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    effort: Literal["minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    args: dict[str, str | int | float | bool] = Field(default_factory=dict)

    @property
    def built_in(self) -> bool:
        """True for a built-in rule-based judge, which makes no API calls."""
        return self.model.startswith("reference/")

    @model_validator(mode="after")
    def _people(self) -> JudgeSpec:
        if (self.model == HUMAN_MODEL) != (self.family == HUMAN_FAMILY):
            raise ValueError(
                f"a human grader has model {HUMAN_MODEL!r} and family {HUMAN_FAMILY!r} "
                f"(got model {self.model!r}, family {self.family!r})"
            )
        return self

    @property
    def human(self) -> bool:
        """True if the judge is a person: grades come from an imported table, and no call is made."""
        return self.model == HUMAN_MODEL


class AgentSpec(Frozen):
    """One agent of a study that runs its own agents: its model, and the family it belongs to."""

    name: Name
    model: Annotated[str, Field(min_length=3, pattern=r"^[a-z0-9_.-]+/.+$")]
    family: Name
    seed: int | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    effort: Literal["minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    args: dict[str, str | int | float | bool] = Field(default_factory=dict)

    @property
    def built_in(self) -> bool:
        """True for a built-in rule-based agent, which makes no API calls."""
        return self.model.startswith("reference/")


class DateProbe(Frozen):
    """Settings of the date-leakage check, which refuses the lock if a model can date the sanitised contexts."""

    model: Annotated[str, Field(min_length=3, pattern=r"^[a-z0-9_.-]+/.+$")] | None = None
    sample: int = Field(default=25, ge=5, le=10_000)
    alpha: float = Field(default=0.01, gt=0, lt=0.5, description="level of the test against chance")
    control: float = Field(default=0.8, gt=0, le=1, description="least share of unsanitised cycles that it must date")


class Controls(Frozen):
    """Number of adversarial control trajectories of each kind, and their model family (section 3.5)."""

    cell_a: int = Field(default=0, ge=0, le=100_000)
    cell_b: int = Field(default=0, ge=0, le=100_000)
    paraphrase: int = Field(default=0, ge=0, le=100_000)
    fact_flip: int = Field(default=0, ge=0, le=100_000)
    length_matched: int = Field(default=0, ge=0, le=100_000)
    length_tokens: int = Field(default=120, ge=20, le=2000, description="length of the rewritten texts, in words")
    family: Name = "control"
    style: str = "plain"

    @property
    def wanted(self) -> dict[DerivationKind, int]:
        """The kinds of control to generate, each with its number."""
        kinds: tuple[DerivationKind, ...] = ("cell_a", "cell_b", "paraphrase", "fact_flip", "length_matched")
        return {kind: count for kind in kinds if (count := getattr(self, kind))}


class Substrate(Frozen):
    """Source of the cycles of a study, each an hour of sanitised one-minute bars (sections 3.2 and 4)."""

    source: str = "synthetic"
    seed: int = Field(default=0, ge=0)
    regimes: tuple[Name, ...] = Field(
        default=("liquidity", "pandemic", "expansion", "tightening", "recent"), min_length=1
    )
    cycles: int = Field(default=50, ge=1, le=100_000, description="cycles of each regime")
    bars: int = Field(default=60, ge=20, le=390, description="one-minute bars of each cycle")
    windows: dict[Name, tuple[date, date]] | None = Field(
        default=None, description="first and last day of each regime, for bars from a file"
    )
    date_probe: DateProbe = DateProbe()

    @model_validator(mode="after")
    def _windows(self) -> Substrate:
        if self.source == "synthetic":
            if self.windows is not None:
                raise ValueError("windows are for bars from a file; the synthetic market has regimes of its own")
        elif missing := [name for name in self.regimes if name not in (self.windows or {})]:
            raise ValueError(f"bars from a file need a window for every regime (missing: {', '.join(missing)})")
        return self


class Records(Frozen):
    """Selection of the imported records that are analysed."""

    derivations: tuple[DerivationKind, ...] = ("honest",)
    exclude_flags: tuple[str, ...] = ("clock-conflict", "invalid-reply", "refused", "no-answer")
    agents: tuple[Name, ...] | None = Field(default=None, description="agents that take part; default: all")
    keep_names: tuple[str, ...] = Field(default=(), description="names that blinding must not replace")


def _of_text(choice: Any) -> Any:
    """Complete a rubric choice that has a text by the name, scale and weights of that text where they are not set."""
    text = choice.get("text") if isinstance(choice, Mapping) else None
    try:
        raw = tomllib.loads(text) if isinstance(text, str) else {}
    except ValueError:  # reported when the rubric is parsed
        raw = {}
    named = raw.get("dimension")
    rows = [table for table in named if isinstance(table, dict)] if isinstance(named, list) else []
    weights = {row.get("name"): row["weight"] for row in rows if "weight" in row}
    fields = {"name": raw.get("version"), "scale": raw.get("scale"), "weights": weights or None}
    return {**{key: value for key, value in fields.items() if value is not None}, **choice} if raw else choice


class RubricChoice(Frozen):
    """The rubric that the judges apply, its scale, and the weights of its dimensions (default: equal).

    A custom rubric is given as the ``text`` of its file, which also provides name, scale and weights unless the plan
    sets them. Commands read ``file`` and replace it by its text.
    """

    name: Name = "v1.0"
    file: str | None = Field(default=None, description="path of a rubric, from the folder of the study file")
    text: str | None = Field(default=None, max_length=1_000_000, description="custom rubric, as the text of its file")
    weights: dict[str, Annotated[float, Field(ge=0)]] | None = None
    scale: Scale = Field(default=SCALE, description="lowest and highest score")
    agreement: Coefficient | None = Field(
        default=None,
        description="default: kappa up to 11 whole levels, else the intraclass correlation; alpha also counts answers "
        "that only some judges scored",
    )

    @model_validator(mode="before")
    @classmethod
    def _as_the_text_says(cls, choice: Any) -> Any:
        return _of_text(choice)

    @model_validator(mode="after")
    def _ascending(self) -> RubricChoice:
        if self.file is not None:
            raise ValueError(f"the file {self.file!r} is read by commands alone; give what it holds as text")
        if not self.scale[0] < self.scale[1]:
            raise ValueError(f"scale names its lowest score first (got {scale_words(self.scale)})")
        if self.agreement == "kappa" and not self.categories:
            raise ValueError(
                f"kappa compares categories, of which a scale has at most {_MOST_CATEGORIES}, whole from end to end "
                f'(got {scale_words(self.scale)}); agreement = "icc" compares the scores themselves'
            )
        return self

    @property
    def categories(self) -> int:
        """`categories_on` the scale."""
        return categories_on(self.scale)

    @property
    def coefficient(self) -> Coefficient:
        """The agreement coefficient that is compared with the gates."""
        return self.agreement or ("kappa" if self.categories else "icc")

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit defaults of fields that were added after 0.1, so that the hashes of older plans do not change."""
        plain = {"file": None, "text": None, "scale": SCALE, "agreement": None}
        same = [name for name, value in plain.items() if getattr(self, name) == value]
        return {name: value for name, value in handler(self).items() if name not in same}


class Gates(Frozen):
    """Cut-offs on mean pairwise kappa (ValueBlindBench section 3.7), and the minimum data for a gate per format."""

    publish: float = Field(default=0.4, ge=-1, le=1)
    halt: float = Field(default=0.2, ge=-1, le=1)
    format_min_records: int = Field(default=30, ge=2)
    format_min_clusters: int = Field(default=5, ge=2)
    repetition_stability: float = Field(default=0.90, ge=0, le=1)

    @model_validator(mode="after")
    def _ordered(self) -> Gates:
        if self.halt > self.publish:
            raise ValueError(f"halt must not exceed publish (got halt {self.halt}, publish {self.publish})")
        return self


class Inference(OrderRules):
    """Settings of confidence intervals, tests and power."""

    level: float = Field(default=0.95, gt=0.5, lt=1)
    resamples: int | None = Field(default=None, ge=1000, le=10_000_000, description="default: max(10000, 40 m/alpha)")
    ddof: Literal[0, 1] = 1
    mde_sd: float = Field(default=1.0, gt=0)
    mde_power: float = Field(default=0.8, gt=0.5, lt=1)
    allow_hopeless: bool = Field(default=False, description="lock a plan although no test can reach significance")


class Stability(Frozen):
    """Settings of the leave-one-family-out analysis, and the held-out judge that is called if a ranking changes."""

    rho: float = Field(default=0.9, ge=-1, le=1)
    probe: JudgeSpec | None = None


class CellThresholds(Frozen):
    """Thresholds for the adversarial controls (section 3.5), in rubric points unless stated otherwise."""

    alpha: float = Field(default=0.01, gt=0, lt=0.5, description="level of cell A, one-sided")
    substance: float = Field(default=0.3, gt=0, description="largest difference of cell B that counts as substance")
    verbosity: float = Field(default=0.5, gt=0, description="deficit of cell B that counts as verbosity bias")
    halo: float = Field(default=0.3, gt=0, description="self-preference from which its judge is left out")
    terse_tokens: int = Field(default=60, ge=1, description="number of words below which a rationale is terse")
    terse_share: float = Field(default=0.5, ge=0, le=1, description="share of such texts of a terse agent")
    contaminates: tuple[str, ...] | None = Field(
        default=None, description="dimensions suppressed if cell A fails; default: all and the aggregate"
    )

    @model_validator(mode="after")
    def _ordered(self) -> CellThresholds:
        if self.substance > self.verbosity:
            raise ValueError(
                f"substance must not exceed verbosity (got substance {self.substance}, verbosity {self.verbosity})"
            )
        return self


class Contamination(Frozen):
    """The clusters after the agents' training cutoff, which are compared with the earlier ones (section 3.9)."""

    post_cutoff: tuple[Name, ...] = Field(min_length=1)


class AnchorProbe(Frozen):
    """Rubric-wording ablation: a stratified subsample that one judge scores again under another rubric (5.6)."""

    judge: Name
    rubric: Name = "v1.1"
    sample: int = Field(default=120, ge=10)


class DatasheetLimits(Frozen):
    """Reliability and bias limits for every judge's datasheet; a limit that is not set is not checked."""

    dark_current: float | None = Field(default=None, ge=0, le=1)
    positional: float | None = Field(default=None, ge=0, le=1)
    threshold: float | None = Field(default=None, gt=0)
    vacuum_score: float | None = None
    slope: float | None = None
    verbosity: float | None = Field(default=None, ge=0)
    on_failure: Literal["qualified", "no-claim"] = "qualified"

    @model_validator(mode="after")
    def _something_to_keep(self) -> DatasheetLimits:
        if not self.set:
            raise ValueError("datasheets are demanded without a limit; set dark_current, positional, threshold, "
                             "vacuum_score, slope or verbosity")  # fmt: skip
        return self

    @property
    def set(self) -> dict[str, float]:
        """The limits that are set, by name."""
        return {name: value for name, value in self if name != "on_failure" and value is not None}


class ProviderLimits(Frozen):
    """Rate limits of one provider per minute, shared by all workers on a study; None is no limit."""

    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)


class EngineChoice(Frozen):
    """Settings of the call engine. None of them affects a reply, so none is part of a call key."""

    concurrency: int = Field(default=64, ge=1, le=4096)
    deadline_s: float = Field(default=120.0, gt=0, le=3600)
    attempts: int = Field(default=4, ge=1, le=20)
    backoff_s: float = Field(default=1.0, ge=0, le=300)
    limits: dict[Name, ProviderLimits] = Field(default_factory=dict, description="by provider, such as openai")
    batch: bool = Field(default=False, description="use batch requests where a provider supports them")
    batch_poll_s: float = Field(default=60.0, gt=0, le=3600, description="seconds between polls of a batch")


class Claims(BiasRules):
    """The candidate claims to decide; by default all kinds, for the aggregate and each dimension."""

    first: bool = True
    pairs: bool = True
    within: bool = True
    cells: bool = True
    dimensions: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="scores to make claims on; default: all"
    )

    @model_validator(mode="after")
    def _something_to_decide(self) -> Claims:
        if not (self.first or self.pairs or self.within):
            raise ValueError("a study without any candidate claim decides nothing; set first, pairs or within to true")
        if self.dimensions is not None and len(set(self.dimensions)) < len(self.dimensions):
            raise ValueError(f"each dimension is named once (got {', '.join(self.dimensions)})")
        return self


class Study(Frozen):
    """A study file. ``docs/protocol.md`` describes every field, its source and its rationale."""

    version: Literal["2"] = "2"
    name: Name
    title: str = ""
    seed: int = Field(ge=0)
    judges: tuple[JudgeSpec, ...] = Field(min_length=1)
    agents: tuple[AgentSpec, ...] = ()
    substrate: Substrate | None = None
    controls: Controls = Controls()
    oracle: bool = Field(default=False, description="compare the judges with constraint arithmetic")
    records: Records = Records()
    rubric: RubricChoice = RubricChoice()
    gates: Gates = Gates()
    inference: Inference = Inference()
    stability: Stability = Stability()
    cells: CellThresholds = CellThresholds()
    contamination: Contamination | None = None
    anchor_probe: AnchorProbe | None = None
    datasheets: DatasheetLimits | None = None
    claims: Claims = Claims()
    missing: MissingLimits = MissingLimits()
    human: Human = Human()
    engine: EngineChoice = EngineChoice()

    @model_validator(mode="before")
    @classmethod
    def _in_points(cls, table: Any) -> Any:
        """Rescale the defaults of `IN_POINTS` fields to the scale of the rubric."""
        rubric = _of_text(table.get("rubric") if isinstance(table, Mapping) else None)
        named = rubric.get("scale") if isinstance(rubric, Mapping) else getattr(rubric, "scale", None)
        try:
            low, high = map(float, named or ())
        except (TypeError, ValueError):
            return table
        if (low, high) == SCALE or not low < high:
            return table
        filled = dict(table)
        for section, names in IN_POINTS.items():
            own = filled.get(section, {})
            if isinstance(own, Frozen):
                own = {name: getattr(own, name) for name in own.model_fields_set}
            if isinstance(own, Mapping):
                of = cls.model_fields[section].default
                filled[section] = {name: round(getattr(of, name) * (high - low) / 4, 12) for name in names} | dict(own)
        return filled

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        names, agents = [judge.name for judge in self.judges], [agent.name for agent in self.agents]
        probe, anchor, controls = self.stability.probe, self.anchor_probe, self.controls.wanted
        wrong = list[str]()
        if twice := ", ".join(duplicates(names)):
            wrong.append(f"each judge needs a unique name (got {twice} more than once)")
        if AGGREGATE in names:
            wrong.append(f"{AGGREGATE!r} is not available as a judge name")
        if (self.substrate is None) != (not agents):
            wrong.append("a study makes its own records with both [[agents]] and [substrate], or has neither")
        if self.substrate is None and controls:
            wrong.append("controls are made from a study's own cycles; without [substrate] they are imported")
        if twice := ", ".join(duplicates(agents)):
            wrong.append(f"each agent needs a unique name (got {twice} more than once)")
        if unjudged := ", ".join(sorted(set(controls) - set(self.records.derivations))):
            wrong.append(f"records.derivations must name the controls that are made (missing: {unjudged})")
        if probe is not None and probe.name in names:
            wrong.append(f"stability.probe needs a unique name (got {probe.name}, a judge of the panel)")
        if probe is not None and probe.family in self.families:
            wrong.append(f"stability.probe must come from outside the panel's families (got {probe.family})")
        if probe is not None and probe.human:
            wrong.append("stability.probe is asked after the others have graded, and must be a model")
        if anchor is not None and anchor.judge not in [judge.name for judge in self.model_judges]:
            wrong.append(f"anchor_probe.judge must be a judge of the panel that is a model (got {anchor.judge})")
        (low, high), limits = self.scale, self.datasheets
        if limits is not None and limits.vacuum_score is not None and not low <= limits.vacuum_score <= high:
            scale = f"{scale_words(self.scale)} (got {limits.vacuum_score:g})"
            wrong.append(f"datasheets.vacuum_score must lie on the scale, {scale}")
        if limits is not None and limits.slope is not None and abs(limits.slope) > self.points:
            wrong.append(f"datasheets.slope must lie in ±{self.points:g}, the scale (got {limits.slope:g})")
        if self.oracle and self.scale != SCALE:
            wrong.append(f"oracle scores on 1..5 alone (the plan is on {scale_words(self.scale)}); leave it out")
        if "honest" not in self.records.derivations:
            wrong.append("records.derivations must name honest: control cells are compared with honest records")
        if wrong:
            raise ValueError("\n".join(wrong))
        return self

    @property
    def scale(self) -> Scale:
        """The lowest and the highest score."""
        return self.rubric.scale

    @property
    def scale_text(self) -> str:
        """The scale as pages print it, such as "1 to 5"."""
        return scale_words(self.scale).replace("-", "−").replace("..", " to ")

    @property
    def points(self) -> float:
        """Length of the scale in points; margins are fractions of it."""
        return self.scale[1] - self.scale[0]

    @property
    def model_judges(self) -> tuple[JudgeSpec, ...]:
        """The judges of the panel that are models; the others are people."""
        return tuple(judge for judge in self.judges if not judge.human)

    @property
    def asked_judges(self) -> tuple[JudgeSpec, ...]:
        """Every judge model that the study may call: those of the panel, and the held-out judge."""
        probe = self.stability.probe
        return self.model_judges if probe is None else (*self.model_judges, probe)

    @property
    def anchor_judges(self) -> tuple[JudgeSpec, ...]:
        """The judge that scores a sample again under another rubric; empty without an anchor probe."""
        return tuple(judge for judge in self.judges if self.anchor_probe and judge.name == self.anchor_probe.judge)

    @property
    def cells_judged(self) -> tuple[DerivationKind, ...]:
        """The derivations of the plan other than honest, which are judged as controls."""
        return tuple(kind for kind in self.records.derivations if kind != "honest")

    @property
    def families(self) -> tuple[str, ...]:
        """The judge families of the panel, in the order of their first judge."""
        return tuple(dict.fromkeys(judge.family for judge in self.judges))


def scale_words(scale: Scale) -> str:
    """Format a scale for messages and pages.

    >>> scale_words((1, 5)), scale_words((0, 2.5))
    ('1..5', '0..2.5')
    """
    return f"{scale[0]:g}..{scale[1]:g}"


def parse_study(text: str, source: str = "study.toml") -> Study:
    """Parse the text of a study file; raises `InputError` with every problem."""
    return read_plan(Study, read_toml(text, source), source)


def plan_hash(study: Study, texts: Mapping[str, str], tables: Mapping[str, str] | None = None) -> str:
    """Return the sha256 of the canonical plan, every text it uses, and the tables that it was locked with."""
    plan = study.model_dump(mode="json", exclude={"engine": True, "human": {"grades"}})
    hashed = {name: sha256_text(text) for name, text in texts.items()}
    return content_id({"plan": plan, "texts": hashed, "tables": dict(tables or {})})
