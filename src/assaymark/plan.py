"""Shared parts of study, season and benchmark files: strict tables, the rules for rankings, and their parsers."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time
from importlib.resources import files
from typing import Any, Final, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
)

from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.records import AGGREGATE, duplicates, problems_of

OrderTest = Literal["moderated-t", "own-variance"]
ClusterOrder = Literal["exchangeable", "consecutive"]
Covariate = Literal["log2", "digits", "lists", "hedges"]
M = TypeVar("M", bound=BaseModel)

TOLERANCE: Final = 1e-9
"""Tolerance of every cut-off: (0.3 + 0.4 + 0.5) / 3 is below 0.4 in binary floating point, but must pass 0.4."""

EQUAL_LENGTH: Final = 0.03
"""Difference in doublings of length (2 %) below which two agents count as equally long, without a length test."""

OTHER_MARGINS: Final = (0.05, 0.1)
"""Other equivalence margins for the sensitivity analysis, as fractions of the scale's range."""

FEWEST_CLUSTERS: Final = 3
"""Minimum common clusters for a test of a pair; below it, p is 1 and the pair still counts in the Holm family."""

FEWEST_CONSECUTIVE: Final = 12
"""Minimum common clusters for a test of a pair whose clusters are consecutive in time."""

FEW_CONSECUTIVE: Final = 24  # with fewer, a claim over time has a condition
NOT_PREREGISTERED: Final = "These scores were analysed after they were seen."

_COVARIATES: Final[tuple[Covariate, ...]] = ("log2", "digits", "lists", "hedges")
_MOST_COVARIATES: Final = 3
_TIME: Final = r"(?:[T ][0-9]{2}:?[0-9]{2}(?::?[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
_DATED: Final = re.compile(rf"(?:^|[^0-9A-Za-z])[0-9]{{4}}-(?:[0-9]{{2}}(?:-[0-9]{{2}}{_TIME})?|W[0-9]{{2}}|Q[1-4])$")

REPLACED: Final[Mapping[str, str]] = {
    "inference.gating_test": 'was replaced by inference.test = "moderated-t" or "own-variance"',
    "inference.share_alpha": "was replaced by inference.aggregate_share, the part of alpha that the aggregate is "
    "tested at (0.8)",
    "claims.rankings": "was replaced by tiers and rank intervals, which follow from claims.pairs; leave it out",
}
"""Fields of version 1 plans that were removed, each with its replacement."""


class Frozen(BaseModel):
    """Base of the parts of files that people write: immutable, and an unknown key is an error."""

    # A command builds only the models that it reads.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class OrderRules(Frozen):
    """Settings of the tests that rank agents: the ``[inference]`` keys that studies, seasons and benchmarks share."""

    test: OrderTest = "moderated-t"
    alpha: float = Field(default=0.05, gt=0, lt=0.5, description="error rate of all ranking claims together")
    aggregate_share: float = Field(
        default=0.8, gt=0, le=1, description="share of alpha for the aggregate; dimensions share the rest"
    )
    margin: float = Field(default=0.075, gt=0, lt=1, description="equivalence margin, as a share of the scale's range")
    cluster_order: ClusterOrder | None = Field(
        default=None, description="order of the clusters; default: consecutive if their names are dates"
    )

    def level_of(self, dimension: str, shared: bool) -> float:
        """Return the level of the aggregate, or of all dimensions together; ``shared`` if both have claims."""
        aggregate = self.aggregate_share * self.alpha
        return self.alpha if not shared else aggregate if dimension == AGGREGATE else self.alpha - aggregate

    def order_of(self, clusters: Iterable[str]) -> ClusterOrder:
        """Return the plan's cluster order; by default "consecutive" if all names are dates, else "exchangeable"."""
        names = list(clusters)
        dated = bool(names) and all(_DATED.search(name) for name in names)
        return self.cluster_order or ("consecutive" if dated else "exchangeable")


class BiasRules(Frozen):
    """Bias checks that rankings of judged agents must pass: the ``[claims]`` keys that studies and seasons share."""

    length: Literal["log2", "off"] | tuple[Covariate, ...] = Field(
        default="log2", description="text properties that a headline is adjusted for"
    )
    distinct: float = Field(
        default=0.95, gt=0, le=1, description="correlation with the others above which a dimension is not distinct"
    )
    judges: Literal["these", "any"] = Field(
        default="these", description="any: headlines must generalise to other judges"
    )

    @field_validator("length", mode="before")
    @classmethod
    def _covariates(cls, value: object) -> object:
        """One form for each choice, so that plans that mean the same have the same hash."""
        if value in ("log2", "off"):
            return value
        names = list(value) if isinstance(value, (list, tuple)) else []
        chosen = [name for name in _COVARIATES if name in names]
        if not names or len(chosen) != len(names) or len(names) > _MOST_COVARIATES:
            raise ValueError(
                f'must be "log2", "off", or a list of one to {_MOST_COVARIATES} of {", ".join(_COVARIATES)}'
            )
        return "log2" if chosen == ["log2"] else tuple(chosen)

    @property
    def covariates(self) -> tuple[Covariate, ...]:
        """The text properties that a headline is adjusted for; empty if the check is off."""
        if isinstance(self.length, tuple):
            return self.length
        return () if self.length == "off" else ("log2",)


class MissingLimits(Frozen):
    """Limits on the share of replies that are missing or unreadable, and the action if a limit is exceeded."""

    per_judge: float = Field(default=0.05, ge=0, le=1, description="share of missing replies allowed for a judge")
    per_agent: float = Field(default=0.05, ge=0, le=1, description="share allowed for a judge on one agent")
    on_excess: Literal["leave-out", "stop"] = "leave-out"


class Human(Frozen):
    """The sample that people grade, against which the judges are compared."""

    grades: str | None = Field(default=None, min_length=1, description="trajectory, grader, dimension, grade, time")
    sample: int = Field(default=40, ge=1, le=100_000, description="cycles to draw")
    pass_mark: float | None = Field(
        default=None, alias="pass", description="grade from which a text passes; default: 62.5 % of the scale"
    )
    double: float = Field(default=0.2, ge=0, le=1, description="share of the drawn cycles that two people grade")

    def passed_from(self, lowest: float = 1.0, highest: float = 5.0) -> float:
        """Return the lowest passing grade on the scale from ``lowest`` to ``highest``."""
        return lowest + 0.625 * (highest - lowest) if self.pass_mark is None else self.pass_mark

    @model_serializer(mode="wrap")
    def _as_in_the_file(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {("pass" if name == "pass_mark" else name): value for name, value in handler(self).items()}


def read_toml(text: str, source: str) -> dict[str, Any]:
    """Parse a TOML file; raises `InputError` with the line and a hint."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        message = str(exc)
        # A duplicate header or key.
        at = re.match(r"Cannot .*\(at line (\d+),", message)
        header = re.match(r"\s*(\[?)\[?\s*([\w.-]+)\s*[]=]", text.split("\n")[int(at[1]) - 1]) if at else None
        if at and header:
            more = f"; of a list, write [[{header[2]}]] in place of [{header[2]}] each time" if header[1] else ""
            message = f"line {at[1]}: {header[2]} comes twice{more}"
        form = "YAML" if re.match(r"(?:#[^\n]*\n|---[ \t]*\n|\s)*\w+:(?:\s|$)", text) else ""
        if form := "JSON" if text.lstrip().startswith("{") else form:
            message += f'; it looks like {form}, and has to be written as TOML: name = "value"'
        raise InputError(source, [f"not TOML: {message}"]) from None
    except (ValueError, RecursionError):
        # The two other things the reader raises.
        raise InputError(source, ["not TOML: a number with too many digits, or tables too deep"]) from None


def read_model(kind: type[M], text: str, source: str) -> M:
    """Parse a TOML file into a model; raises `InputError` with every problem."""
    raw = read_toml(text, source)
    try:
        return kind.model_validate(raw)
    except ValidationError as exc:
        raise InputError(source, problems_of(exc, kind)) from None


_TELLING: Final = {
    "calendar": "a season; use: assaymark season init", "pipeline": "a benchmark; use: assaymark bench",
    "questions": "a benchmark; use: assaymark bench", "substrate": "a study; use: assaymark run",
}  # fmt: skip
"""The kind of plan that a file is, by a top-level key that no other kind has."""


def read_plan(kind: type[M], raw: Mapping[str, Any], source: str) -> M:
    """Build a plan from the table of its file; raises `InputError` with every problem."""
    refuse_version_1(raw, source)
    try:
        return kind.model_validate(raw)
    except ValidationError as exc:
        problems = plan_problems(exc, kind)
    if other := [noun for key, noun in _TELLING.items() if key in raw and key not in kind.model_fields]:
        raise InputError(source, [f"is the file of {other[0]}"])
    if all(problem.where for problem in problems):  # rules of the whole were not reached, names among them
        for noun in [key for key in ("agents", "judges") if isinstance(raw.get(key), list)]:
            names = [entry.get("name") for entry in raw[noun] if isinstance(entry, dict)]
            if twice := ", ".join(duplicates(name for name in names if isinstance(name, str))):
                problems.append(Problem(noun, f"each needs a unique name (got {twice} more than once)"))
    raise InputError(source, problems)


def refuse_version_1(raw: Mapping[str, Any], source: str) -> None:
    """Refuse a file of version 1, whose rules published false orders."""
    if raw.get("version") != "1":
        return
    tables = {name: table for name, table in raw.items() if isinstance(table, Mapping)}
    old = [name for name in REPLACED if name.partition(".")[2] in tables.get(name.partition(".")[0], ())]
    then = "".join(f"; {name} {REPLACED[name]}" for name in old)
    raise InputError(source, [Problem("version", f'"1" is read by assaymark 0.1; write version = "2"{then}')])


def plan_problems(error: ValidationError, kind: type[BaseModel]) -> list[Problem]:
    """Return the problems of a plan; for a removed field, the message names its replacement."""
    return [Problem(problem.where, REPLACED.get(problem.where, problem.what)) for problem in problems_of(error, kind)]


_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_SHORT_FORM: Final = 0xFFFF  # the longest code that four digits hold


def toml_text(table: Mapping[str, Any]) -> str:
    """Format a table as a TOML document: in each table plain values first, then nested tables."""

    def is_table(value: Any) -> bool:
        return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))

    def lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
        yield from (f"{_key(name)} = {toml_value(value)}" for name, value in table.items() if not is_table(value))
        for name, value in table.items():
            inner = (*path, _key(name))
            brackets = ("[", "]") if isinstance(value, dict) else ("[[", "]]")
            for item in ([value] if value else []) if isinstance(value, dict) else value if is_table(value) else ():
                yield from ("", ".".join(inner).join(brackets), *lines(item, inner))

    return "\n".join(lines(table, ())) + "\n"


def toml_value(value: object) -> str:
    """Format a value as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value) if isinstance(value, (int, float)) else _quote(str(value))


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _quote(name)


def _quote(text: str) -> str:
    """Quote a string for TOML on one line, with non-printable characters escaped."""
    chars = []
    for char in text:
        if char in '"\\':
            chars.append(f"\\{char}")
        elif char.isprintable():
            chars.append(char)
        else:
            chars.append(f"\\u{ord(char):04x}" if ord(char) <= _SHORT_FORM else f"\\U{ord(char):08x}")
    return f'"{"".join(chars)}"'


def shipped_names(folder: str) -> tuple[str, ...]:
    """Return the names of the built-in rubrics or scoring plans, in alphabetical order."""
    names = (entry.name for entry in (files("assaymark.judging") / folder).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def shipped_text(kind: str, folder: str, name: str) -> str:
    """Return the text of the built-in file with this name, one of `shipped_names`."""
    if name not in shipped_names(folder):
        raise UnknownNameError(kind, name, shipped_names(folder))
    return (files("assaymark.judging") / folder / f"{name}.toml").read_text(encoding="utf-8")
