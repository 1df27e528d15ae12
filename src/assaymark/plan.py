"""What the files of studies, seasons and benchmarks share: strict tables, rules for orders, and how they are read."""

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
from assaymark.records import problems_of, repeated

OrderTest = Literal["moderated-t", "own-variance"]
ClusterOrder = Literal["exchangeable", "consecutive"]
Covariate = Literal["log2", "digits", "lists", "hedges"]
M = TypeVar("M", bound=BaseModel)

TOLERANCE: Final = 1e-9
"""Slack of every gate: (0.3 + 0.4 + 0.5) / 3 is below 0.4 in binary floating point, and must publish."""

OTHER_MARGINS: Final = (0.05, 0.1)
"""Margins of equivalence that are tried beside the plan's, as shares of the scale."""

FEWEST_CLUSTERS: Final = 3
"""With fewer common clusters a pair cannot be tested: its p is 1 and it keeps its place in every count."""

FEWEST_CONSECUTIVE: Final = 12
"""With fewer common clusters a pair that is compared over time cannot be tested."""

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
"""Fields of plans of version 1 that are no more, each with what took its place."""


class Frozen(BaseModel):
    """Base of the parts of a study file: immutable, and an unknown key is an error."""

    # A command builds only the models that it reads.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class OrderRules(Frozen):
    """How orders of agents are tested: the part of ``[inference]`` that studies, seasons and benchmarks share."""

    test: OrderTest = "moderated-t"
    alpha: float = Field(default=0.05, gt=0, lt=0.5, description="of all order claims together")
    aggregate_share: float = Field(
        default=0.8, gt=0, le=1, description="of alpha, for the aggregate; dimensions have the rest"
    )
    margin: float = Field(default=0.075, gt=0, lt=1, description="of equivalence, as a part of the scale's range")
    cluster_order: ClusterOrder | None = Field(
        default=None, description="default: consecutive where clusters carry dates"
    )

    def order_of(self, clusters: Iterable[str]) -> ClusterOrder:
        """Whether clusters of these names count as following each other in time."""
        names = list(clusters)
        dated = bool(names) and all(_DATED.search(name) for name in names)
        return self.cluster_order or ("consecutive" if dated else "exchangeable")


class BiasRules(Frozen):
    """What an order of judged agents has to pass beside its test: the part of ``[claims]`` that seasons share."""

    length: Literal["log2", "off"] | tuple[Covariate, ...] = Field(
        default="log2", description="what a headline is held against: properties of the judged texts"
    )
    distinct: float = Field(
        default=0.95, gt=0, le=1, description="a dimension that goes this far with the others is not told from them"
    )
    judges: Literal["these", "any"] = Field(
        default="these", description="any: a headline has to hold for other judges too"
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
        """What a headline is held against, by name; none where that is off."""
        if isinstance(self.length, tuple):
            return self.length
        return () if self.length == "off" else ("log2",)


class Missing(Frozen):
    """How many replies that were asked for may not come (or not be readable), as shares, and what is done beyond."""

    per_judge: float = Field(default=0.05, ge=0, le=1, description="of the records of one judge")
    per_agent: float = Field(default=0.05, ge=0, le=1, description="of the records of one agent, by one judge")
    on_excess: Literal["leave-out", "stop"] = "leave-out"


class Human(Frozen):
    """The sample that people grade, to hold the judges against it."""

    grades: str | None = Field(default=None, min_length=1, description="trajectory, grader, dimension, grade, time")
    sample: int = Field(default=40, ge=1, le=100_000, description="cycles to draw")
    pass_mark: float | None = Field(
        default=None, alias="pass", description="where judges and people are compared; default: 62.5 % of the scale"
    )
    double: float = Field(default=0.2, ge=0, le=1, description="of the drawn cycles, graded by two people")

    def passed_from(self, lowest: float = 1.0, highest: float = 5.0) -> float:
        """The grade from which a text passes, on a scale."""
        return lowest + 0.625 * (highest - lowest) if self.pass_mark is None else self.pass_mark

    @model_serializer(mode="wrap")
    def _as_in_the_file(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {("pass" if name == "pass_mark" else name): value for name, value in handler(self).items()}


def read_toml(text: str, source: str) -> dict[str, Any]:
    """The table in a TOML file that a person wrote."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        message = str(exc)
        # A header or a key that comes twice.
        at = re.match(r"Cannot .*\(at line (\d+),", message)
        header = re.match(r"\s*(\[?)\[?\s*([\w.-]+)\s*[]=]", text.split("\n")[int(at[1]) - 1]) if at else None
        if at and header:
            more = f"; of a list, write [[{header[2]}]] in place of [{header[2]}] each time" if header[1] else ""
            message = f"line {at[1]}: {header[2]} comes twice{more}"
        form = "YAML" if re.match(r"(?:#[^\n]*\n|---[ \t]*\n|\s)*\w+:(?:\s|$)", text) else ""
        if form := "JSON" if text.lstrip().startswith("{") else form:
            message += f'; it looks like {form}, and has to be written as TOML: name = "value"'
        raise InputError(source, [Problem("", f"not TOML: {message}")]) from None
    except ValueError:
        # The one other thing the reader raises.
        raise InputError(source, [Problem("", "not TOML: a number with too many digits")]) from None


def read_model(kind: type[M], text: str, source: str) -> M:
    """A TOML file that a person wrote, as a model."""
    raw = read_toml(text, source)
    try:
        return kind.model_validate(raw)
    except ValidationError as exc:
        raise InputError(source, problems_of(exc, kind)) from None


_TELLING: Final = {
    "calendar": "a season; use: assaymark season init", "pipeline": "a benchmark; use: assaymark bench",
    "questions": "a benchmark; use: assaymark bench", "substrate": "a study; use: assaymark run",
}  # fmt: skip
"""What a file is of, by a table that no other kind of plan has."""


def read_plan(kind: type[M], raw: Mapping[str, Any], source: str) -> M:
    """A plan from the table in its file."""
    refuse_version_1(raw, source)
    try:
        return kind.model_validate(raw)
    except ValidationError as exc:
        problems = plan_problems(exc, kind)
    if other := [what for key, what in _TELLING.items() if key in raw and key not in kind.model_fields]:
        raise InputError(source, [f"is the file of {other[0]}"])
    if all(problem.where for problem in problems):  # rules of the whole were not reached, names among them
        for what in [key for key in ("agents", "judges") if isinstance(raw.get(key), list)]:
            names = [entry.get("name") for entry in raw[what] if isinstance(entry, dict)]
            if twice := ", ".join(repeated(name for name in names if isinstance(name, str))):
                problems.append(Problem(what, f"each needs a name of its own (got {twice} more than once)"))
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
    """What is wrong with a plan; of a field that was replaced, what took its place."""
    return [Problem(problem.where, REPLACED.get(problem.where, problem.what)) for problem in problems_of(error, kind)]


_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_SHORT_FORM: Final = 0xFFFF  # the longest code that four digits hold


def toml_text(table: Mapping[str, Any]) -> str:
    """A table as a TOML document: in each table its own values come first, then the tables inside it."""

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
    """A value as TOML writes it on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value) if isinstance(value, (int, float)) else _quoted(str(value))


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    """A string on one line, with every character that cannot be seen written as its number."""
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
    """The names of the rubrics or of the scoring plans that come with the package, in alphabetical order."""
    names = (entry.name for entry in (files("assaymark.judging") / folder).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def shipped_text(kind: str, folder: str, name: str) -> str:
    """The file of one of `shipped_names`."""
    if name not in shipped_names(folder):
        raise UnknownNameError(kind, name, shipped_names(folder))
    return (files("assaymark.judging") / folder / f"{name}.toml").read_text(encoding="utf-8")
