"""`assaymark data`: snapshots of markets."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from assaymark.cli.options import WHOLE, AsJson, CommandGroup, examples, option, say, say_json, tools_of
from assaymark.errors import AssayError
from assaymark.workflow import data as market_data

app = typer.Typer(
    help="Make, fetch, show and check a snapshot of market data in a folder.", cls=CommandGroup, rich_markup_mode=None,
    epilog=examples("assaymark data synth --out market", "assaymark data show market"),
)  # fmt: skip

Store = Annotated[Path, option("Folder of the snapshot; it holds one.", "FOLDER", "--out", "-o")]
Stored = Annotated[Path, typer.Argument(help="Folder of a snapshot.", metavar="FOLDER")]


@app.command(
    "synth", short_help="write a synthetic market", epilog=examples("assaymark data synth --out market --seed 7")
)
def data_synth(
    ctx: typer.Context,
    out: Store,
    seed: Annotated[int, option("Random seed, 0 or more.", "N", "--seed")] = 0,
    json: AsJson = False,
) -> None:
    """Write the synthetic market of a seed: 183 instruments, 2015 to 2025, with macro series, news and filings."""
    tools = tools_of(ctx)
    with tools.progress(WHOLE) as progress:
        line = market_data.synth(out, seed, progress)
    say(tools, json, market_data.facts(out) if json else {}, [line])


@app.command(
    "pull",
    short_help="fetch a snapshot from a source",
    epilog=examples(
        "assaymark data pull files --option path=prices.csv --out market",
        "assaymark data pull yfinance --symbol SPY --start 2024-01-01 --out market",
    ),
)
def data_pull(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(help="files, synthetic, or a networked source.", metavar="SOURCE")],
    out: Store,
    symbol: Annotated[list[str] | None, option("Symbol to fetch; repeatable.", "NAME", "--symbol")] = None,
    start: Annotated[str | None, option("First day, such as 2024-03-01.", "DAY", "--start")] = None,
    end: Annotated[str | None, option("Last day.", "DAY", "--end")] = None,
    option: Annotated[
        list[str] | None, option("Option of the source, such as path=FILE for files.", "KEY=VALUE", "--option")
    ] = None,
    json: AsJson = False,
) -> None:
    """Fetch a snapshot from a source; keys are read from the environment and written nowhere."""
    tools = tools_of(ctx)
    with tools.progress(WHOLE) as progress:
        line = market_data.pull(out, source, symbol or (), start, end, options=option or (),
                                now=datetime.now(UTC), environment=os.environ, progress=progress)  # fmt: skip
    say(tools, json, market_data.facts(out) if json else {}, [line])


@app.command(
    "show",
    short_help="show a snapshot, or what was known at a time",
    epilog=examples("assaymark data show market", "assaymark data show market --at 2020-03-20"),
)
def data_show(
    ctx: typer.Context,
    folder: Stored,
    at: Annotated[str | None, option("Day or time with a zone; show what was known then.", "TIME", "--at")] = None,
    instrument: Annotated[str | None, option("Only this instrument, in full.", "NAME", "--instrument")] = None,
    json: AsJson = False,
) -> None:
    """Show where a snapshot is from and what it holds or, with --at, what could be known at that time."""
    tools = tools_of(ctx)
    if json:
        say_json(market_data.facts(folder, at, instrument))
        return
    tools.show(market_data.show(folder, at, instrument))


@app.command(
    "check",
    short_help="find gaps, frozen series, impossible prices, damage",
    epilog=examples("assaymark data check market"),
)
def data_check(ctx: typer.Context, folder: Stored, json: AsJson = False) -> None:
    """Find gaps, stale and frozen series, impossible prices, half days and damage; exit status 1 if there are any."""
    tools = tools_of(ctx)
    checked = market_data.check(folder)
    say(tools, json, checked.found, checked.lines)
    if count := len(checked.found.problems):
        raise AssayError(f"{folder}: {count} problems, named above")
