"""Season files, small markets and scripted agents, for tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from assaymark.engine import CallSpec, Model, Reply
from assaymark.market import FIELDS, History, Origin, snapshot_of, synthetic_history, write_snapshot
from assaymark.workflow import RunFolder, Store, tracks


def season_text(
    *,
    prompt: str = "Grow the book.", head: str = "", seed: int = 0, first: str = "2024-03-01",
    last: str = "2024-03-15", calendar: str = "", rules: str = "", model: str = "reference/momentum",
    other: str = "reference/equal-weight",
) -> str:  # fmt: skip
    """A season file with some lines changed or added."""
    universe = "" if "universe" in head else "universe = 8"
    return f"""
version = "2"
name = "spring"
title = "A short season"
seed = {seed}
prompt = '''{prompt}'''
{universe}
{head}

[calendar]
first = {first}
last = {last}
{calendar}

[rules]
{rules}

[[agents]]
name = "one"
family = "reference"
model = "{model}"

[[agents]]
name = "two"
family = "reference"
model = "{other}"
"""


NOW = datetime(2024, 6, 1, tzinfo=UTC)
LAST = date(2024, 3, 15)


@cache
def market() -> History:
    """Six instruments of the embedded market, from November 2023 to the middle of March 2024."""
    whole = synthetic_history(0)
    rows = np.flatnonzero((whole.days >= np.datetime64("2023-11-01")) & (whole.days <= np.datetime64(LAST)))
    columns = [0, 1, 2, 130, 145, 160]
    bars = {name: whole.bars[name][rows][:, columns] for name in FIELDS}
    listings = tuple(whole.listings[i] for i in columns)
    news = tuple(one for one in whole.news if date(2023, 11, 1) <= one.published_at.date() < date(2024, 5, 1))
    return History(listings, whole.days[rows], bars, whole.known_at[rows][:, columns], whole.macro, news)


IDS = [one.id for one in market().listings]


def without(history: History, day: str, *ids: str) -> History:
    """The market without the bars of some instruments, or of all, on one day."""
    columns = [column for column, one in enumerate(history.listings) if not ids or one.id in ids]
    row = int(np.flatnonzero(history.days == np.datetime64(day))[0])
    bars = {name: values.copy() for name, values in history.bars.items()}
    for values in bars.values():
        values[row, columns] = np.nan
    return replace(history, bars=bars)


def until(history: History, day: str) -> History:
    """The market as it was when it ended on a day."""
    rows = history.days <= np.datetime64(day)
    bars = {name: values[rows] for name, values in history.bars.items()}
    return replace(history, days=history.days[rows], bars=bars, known_at=history.known_at[rows])


def stored(folder: Path, history: History, name: str = "small") -> Path:
    """A market as a snapshot in a folder."""
    last = history.days[-1].astype(object)
    origin = Origin(source="tests", retrieved_at=datetime(last.year, last.month, last.day, 22, tzinfo=UTC))
    write_snapshot(folder, snapshot_of(history, name, origin))
    return folder


@dataclass
class Scripted:
    """A model that answers what it is told to, by the day that it reads in its prompt; counts how often it is asked."""

    answers: Callable[[str], str | Exception]
    asked: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    async def complete(self, call: CallSpec) -> Reply:
        text = call.messages[-1].text
        day = text.split("cutoff\t", 1)[1][:10]
        self.asked.append(day)
        self.prompts.append(text)
        found = self.answers(day)
        if isinstance(found, Exception):
            raise found
        return Reply(text=found, model="scripted")


def orders(*wanted: tuple[str, str, float | None], why: str = "Because.") -> str:
    """A reply with orders of instrument, side and quantity."""
    listed = [{"instrument": name, "side": side, "quantity": quantity} for name, side, quantity in wanted]
    return json.dumps({"orders": listed, "rationale": why, "confidence": 0.5})


def begun(path: Path, text: str, models: Mapping[str, Model]) -> RunFolder:
    """A run folder with a locked season."""
    folder = RunFolder(path)
    tracks.lock_season(folder, text, "season.toml", models, now=NOW)
    return folder


def panel(*names: str, more: str = "", **models: str) -> str:
    """The panel of a season file: judges that are built in, and judges of other models by name."""
    chosen = {name: f"reference/season-{name}" for name in names} | models
    return "".join(
        f'\n[[panel]]\nname = "{name}"\nfamily = "j{name}"\nmodel = "{model}"\n{more}' for name, model in chosen.items()
    )


def small(path: Path, who: Mapping[str, Model], *, history: History | None = None, universe: object = 6,
          more: str = "", source: Path | None = None, live: bool = False, **changes: Any) -> RunFolder:  # fmt: skip
    """A locked season of the small market, or of a source that is there, with more tables at the end of its file."""
    text = season_text(head=f"universe = {universe}\n{changes.pop('head', '')}", **changes)
    source = source or stored(path / "market", history or market())
    return begun(path / "run", f'{text}{more}\n[market]\nsource = "{source}"\nlive = {str(live).lower()}\n', who)


def rows(folder: RunFolder, table: Any, **wanted: object) -> list[Any]:
    """The rows of a table that have these values."""
    every = Store(folder).read(table)
    return [one for one in every if all(getattr(one, name) == value for name, value in wanted.items())]


def table_bytes(folder: RunFolder) -> dict[str, bytes]:
    """The tables of a season that are the same in every replay."""
    return {path.name: path.read_bytes() for path in folder.tables.glob("*.parquet") if path.stem != "times"}
