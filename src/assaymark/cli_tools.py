"""What the groups of commands share: the options about money and the ledger, and how things are asked and shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:  # so that the command line can say what there is before half of the program is loaded
    from rich.console import RenderableType
    from typer._click import Context

    from assaymark.engine import Model
    from assaymark.workflow.costs import Forecast
    from assaymark.workflow.progress import Progress

DEGRADED = 3
"""Exit status of a command that did its work without something that should have been there."""

Ledger = Annotated[
    str | None,
    typer.Option("--ledger", help="Ledger in a PostgreSQL database, for several workers.", metavar="URL"),
]
Budget = Annotated[
    float | None, typer.Option("--budget", help="Most that all calls of this run may cost.", metavar="USD")
]
PriceFile = Annotated[
    Path | None, typer.Option("--prices", help="Prices of your own (TOML), in place of ours.", metavar="FILE")
]
StrictAgents = Annotated[
    bool,
    typer.Option("--strict-agents", help="Stop when a Python agent raises."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document in place of words.")]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would be asked and cost; send nothing.")]


@dataclass(frozen=True, slots=True)
class Tools:
    """The models that can be asked, progress, and how lines and tables are printed.

    ``progress`` can be told what is safe when the work in its block is stopped.
    """

    models: Callable[[], Mapping[str, Model]]
    progress: Callable[..., AbstractContextManager[Progress]]
    say_all: Callable[[Iterable[str]], None]
    show: Callable[[RenderableType], None]


def tools_of(ctx: Context) -> Tools:
    """The tools that the root of the command line was given."""
    found = ctx.find_object(Tools)
    assert found is not None, "the root sets them before any command runs"
    return found


def say(tools: Tools, as_json: bool, value: object, lines: Iterable[str]) -> None:
    """A result: one JSON document on one line for a program, else lines for a person."""
    if as_json:
        say_json(value)
    else:
        tools.say_all(lines)


def say_json(value: object) -> None:
    """Print one JSON document on one line, for a program that reads along."""
    from assaymark.records import canonical_json

    typer.echo(canonical_json(value))


def say_forecast(tools: Tools, as_json: bool, found: Forecast) -> None:
    """What a dry run found."""
    say(tools, as_json, {"dry_run": True, "models": found.models, "usd": found.usd}, found.lines)
