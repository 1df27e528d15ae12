"""The rules page of a season: every field of its locked file, its value, and what it means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, time
from pathlib import Path
from typing import Any, Final

from assaymark.claims.messages import said
from assaymark.plan import Frozen
from assaymark.protocol import AgentSpec, JudgeSpec
from assaymark.records import sha256_text
from assaymark.report.season.inputs import SeasonRule
from assaymark.workflow.season_file import Season

OWN: Final = "season"
"""The group of fields that stand in no table of the file."""

_FOLDERS: Final = ("source", "grades")
_TEXTS: Final = ("prompt",)
_NOT_RECORDED: Final = frozenset(
    {
        *((OWN, name) for name in ("bars", "news_days")),
        ("market", "seed"),
        ("market", "live"),
        ("calendar", "decide_at"),
    }
)
"""Fields that say nothing of a season that somebody else ran; so does the table of the broker's rules."""

_OF_BOOKS: Final = frozenset({(OWN, "capital"), (OWN, "currency")})


def season_rules(season: Season) -> tuple[SeasonRule, ...]:
    """The lines of the rules page, in the order of the file's fields.

    A value stands as one would write it in the file, and is empty where the field is not set. Agents and judges have a
    line each. Of a season that somebody else ran, what only our broker goes by is left out. Long texts stand as their
    digest, and folders as their last name: a site is no place for the paths of the machine that made it.

    Examples
    --------
    >>> from assaymark.workflow.season_file import parse_season
    >>> season = parse_season('''
    ... name = "spring"
    ... prompt = "Grow the book."
    ... calendar = { first = 2024-03-01, last = 2024-05-31 }
    ... agents = [{ name = "one", family = "reference", model = "reference/momentum" }]
    ... ''')
    >>> found = {(one.group, one.name): one.value for one in season_rules(season)}
    >>> found["rules", "cost_bps"], found["calendar", "first"], found["rules", "max_weight"]
    ('10', '2024-03-01', '')
    >>> found["agents", "one"]
    'model = "reference/momentum", family = "reference"'
    """
    own, tables = [], []
    for name in type(season).model_fields:
        value = getattr(season, name)
        if isinstance(value, Frozen) or name in ("agents", "panel", "strategies"):
            tables += list(_table(name, value))
        else:
            own.append(SeasonRule(group=OWN, name=name, value=_of(name, value), meaning=said(f"field.{OWN}.{name}")))
    return tuple(one for one in (*own, *tables) if not season.recorded or _holds(one, season.has_books))


def _holds(one: SeasonRule, books: bool) -> bool:
    """Whether a line says something of a season that somebody else ran."""
    told = books or (one.group, one.name) not in _OF_BOOKS
    return told and one.group != "rules" and (one.group, one.name) not in _NOT_RECORDED


def _table(name: str, value: Any) -> Iterator[SeasonRule]:
    """The lines of one table of the file."""
    if isinstance(value, dict):
        for agent, text in sorted(value.items()):
            yield SeasonRule(group=name, name=agent, value=_digest(text), meaning=said(f"field.{name}"))
    elif isinstance(value, tuple):
        for spec in sorted(value, key=lambda one: one.name):
            yield SeasonRule(group=name, name=spec.name, value=_spec(spec), meaning=said(f"field.{name}"))
    else:
        for one, info in type(value).model_fields.items():
            shown = info.alias or one
            meaning = said(f"field.{name}.{shown}")
            yield SeasonRule(group=name, name=shown, value=_of(one, getattr(value, one)), meaning=meaning)


def _spec(spec: AgentSpec | JudgeSpec) -> str:
    """An agent or a judge, with what was set of it."""
    given = spec.model_dump(mode="json", exclude={"name"}, exclude_none=True)
    first = [("model", given.pop("model")), ("family", given.pop("family"))]
    return ", ".join(f"{name} = {_written(value)}" for name, value in [*first, *given.items()] if value != {})


def _of(name: str, value: Any) -> str:
    """The value of one field."""
    if name in _TEXTS:
        return _digest(value)
    return Path(value).name if name in _FOLDERS and isinstance(value, str) else _shown(value)


def _digest(text: str) -> str:
    return f"sha256 {sha256_text(text)[:12]}" if text else ""


def _shown(value: Any) -> str:
    """A value by itself: a text without its quotes."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, (date, time)):
        return value.isoformat()
    return _written(value)


def _written(value: Any) -> str:
    """A value as it would stand in the file."""
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, Frozen):
        value = value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, dict):
        inner = ", ".join(f"{name} = {_written(one)}" for name, one in value.items())
        return f"{{ {inner} }}" if inner else ""
    return json.dumps(value, ensure_ascii=False)
