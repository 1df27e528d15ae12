"""`assaymark data`: snapshots of markets."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from assaymark.cli_tools import AsJson, say_json, tools_of
from assaymark.cli_verb import Verbs
from assaymark.errors import AssayError
from assaymark.workflow import data as market_data

app = typer.Typer(
    help="Market data: make, fetch, show and check a snapshot in a folder.", cls=Verbs, rich_markup_mode=None
)

Store = Annotated[Path, typer.Option("--out", help="Folder of the snapshot; it holds one.", metavar="FOLDER")]
Stored = Annotated[Path, typer.Argument(help="Folder of a snapshot.", metavar="FOLDER")]


@app.command("synth")
def data_synth(
    ctx: typer.Context, out: Store, seed: Annotated[int, typer.Option("--seed", help="0 or more.")] = 0
) -> None:
    """Write the invented market of a seed: 183 instruments, 2015 to 2025, with macro series, news and filings."""
    tools = tools_of(ctx)
    with tools.progress() as progress:
        line = market_data.synth(out, seed, progress=progress)
    tools.say_all([line])


@app.command("pull")
def data_pull(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(help="files, synthetic, or a networked source.", metavar="SOURCE")],
    out: Store,
    symbol: Annotated[list[str] | None, typer.Option("--symbol", help="What to fetch; can be repeated.")] = None,
    start: Annotated[str | None, typer.Option("--start", help="First day, such as 2024-03-01.")] = None,
    end: Annotated[str | None, typer.Option("--end", help="Last day.")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", help="KEY=VALUE for the source, such as path=FILE for files.")
    ] = None,
) -> None:
    """Fetch a snapshot from a source; keys are read from the environment and written nowhere."""
    tools = tools_of(ctx)
    wanted = market_data.Pull(source=source, symbols=symbol or (), start=start, end=end, options=option or ())
    with tools.progress() as progress:
        line = market_data.pull(out, wanted, now=datetime.now(UTC), environment=os.environ, progress=progress)
    tools.say_all([line])


@app.command("show")
def data_show(
    ctx: typer.Context,
    folder: Stored,
    at: Annotated[str | None, typer.Option("--at", help="Day or time with a zone: what was known then.")] = None,
    instrument: Annotated[str | None, typer.Option("--instrument", help="Only this instrument, in full.")] = None,
    json: AsJson = False,
) -> None:
    """Show where a snapshot is from and what it holds or, with --at, what could be known at that time."""
    tools = tools_of(ctx)
    if json:
        say_json(market_data.facts(folder, at=at, instrument=instrument))
        return
    tools.show(market_data.show(folder, at=at, instrument=instrument))


@app.command("check")
def data_check(ctx: typer.Context, folder: Stored, json: AsJson = False) -> None:
    """Look for gaps, stale and frozen series, impossible prices, half days and damage; 1 when there are problems."""
    tools = tools_of(ctx)
    checked = market_data.check(folder)
    if json:
        say_json(checked.found)
    else:
        tools.say_all(checked.lines)
    if count := len(checked.found.problems):
        raise AssayError(f"{folder}: {count} problems, named above")
