"""The file of a season that somebody else ran, and the season it comes to beside its records.

What follows from the records (universe, capital, currency, days, and the agents unless the file names some) does not
stand in the file. From there on it is a `Season` as any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from assaymark.errors import InputError, Problem
from assaymark.plan import Frozen, plan_problems, read_plan, read_toml, refuse_version_1
from assaymark.protocol import JudgeSpec, Name
from assaymark.records import problems_of, record
from assaymark.workflow.season_file import RECORDS, Season, SeasonMarket

FOLLOWS: Final = (
    "universe",
    "capital",
    "currency",
    "calendar",
    "rules",
    "bars",
    "news_days",
    "replicates",
    "strategies",
)
"""Fields of a season file that follow from the records."""

_STAND_IN: Final = {
    "agents": [{"name": "agent", "family": "family", "model": f"{RECORDS}/agent"}],
    "calendar": {"first": "2000-01-01", "last": "2000-01-01"},
}


class RecordedAgent(Frozen):
    """One agent of the records, and the family it counts for if it is not the importer's."""

    name: Name
    family: Name | None = None


@record
class Follows:
    """What the records say of a season: each agent's (name, family, model), and the rest as in a season file.

    ``capital`` and ``currency`` are None where the records do not state them.
    """

    agents: tuple[tuple[str, str, str], ...]
    universe: tuple[str, ...]
    first: str
    last: str
    replicates: int = 1
    capital: float | None = None
    currency: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RecordedFile:
    """The file as it was read; ``market``, ``panel`` and ``agents`` are absent as far as they could not be."""

    raw: Mapping[str, Any]
    market: SeasonMarket | None
    panel: tuple[JudgeSpec, ...] | None
    agents: tuple[RecordedAgent, ...]
    problems: tuple[Problem, ...]


def is_recorded(text: str, *, source: str) -> bool:
    """Whether a season file names imported records as its market."""
    market = read_toml(text, source=source).get("market")
    return isinstance(market, dict) and market.get("source") == RECORDS


def read_recorded(text: str, *, source: str) -> RecordedFile:
    """The file of a season of records, and everything that is wrong with it by itself.

    Raises
    ------
    InputError
        It is of version 1.
    """
    raw = read_toml(text, source=source)
    refuse_version_1(raw, source=source)
    problems = [
        Problem(name, "follows from the records; leave it out (or market.source, for a season of your own)")
        for name in FOLLOWS
        if name in raw
    ]
    rest = {name: value for name, value in raw.items() if name not in (*FOLLOWS, "agents")}
    panel: tuple[JudgeSpec, ...] | None = None
    try:
        panel = Season.model_validate(rest | _STAND_IN).panel
    except ValidationError as exc:
        problems += plan_problems(exc, Season)
    agents, wrong = _agents(raw.get("agents", []))
    return RecordedFile(rest, _market(rest["market"]), panel, agents, (*problems, *wrong))


def recorded_season(file: RecordedFile, follows: Follows, *, source: str) -> Season:
    """The season that a file comes to beside its records.

    Agents stand in the order of the file, or of the records if it names none; a family in the file counts for more than
    the importer's.

    Raises
    ------
    InputError
        The file is wrong.
    """
    if file.problems:
        raise InputError(source, list(file.problems))
    known = {name: (family, model) for name, family, model in follows.agents}
    chosen = file.agents or tuple(RecordedAgent(name=name) for name in known)
    agents = [
        {"name": one.name, "family": one.family or known[one.name][0], "model": f"{RECORDS}/{known[one.name][1]}"}
        for one in chosen
    ]
    stated = {"capital": follows.capital, "currency": follows.currency}
    whole = {
        **file.raw,
        "agents": agents,
        "universe": list(follows.universe),
        "calendar": {"first": follows.first, "last": follows.last},
        "replicates": follows.replicates,
        **{name: value for name, value in stated.items() if value is not None},
    }
    return read_plan(Season, whole, source=source)


def _agents(given: Any) -> tuple[tuple[RecordedAgent, ...], list[Problem]]:
    """The agents that the file names, and what is wrong with them."""
    found: list[RecordedAgent] = []
    problems: list[Problem] = []
    if not isinstance(given, list):
        return (), [Problem("agents", f"must be tables [[agents]] (got {type(given).__name__})")]
    for number, one in enumerate(given):
        try:
            found.append(RecordedAgent.model_validate(one))
        except ValidationError as exc:
            problems += [
                Problem(f"agents.{number}.{problem.where}", problem.what) for problem in problems_of(exc, RecordedAgent)
            ]
    problems += [Problem("agents", f"each is named once (twice: {', '.join(twice)})") for twice in _twice(found)]
    return tuple(found), problems


def _twice(agents: Sequence[RecordedAgent]) -> list[list[str]]:
    names = [one.name for one in agents]
    twice = sorted({name for name in names if names.count(name) > 1})
    return [twice] if twice else []


def _market(given: Mapping[str, Any]) -> SeasonMarket | None:
    try:
        return SeasonMarket.model_validate(given)
    except ValidationError:
        return None
