"""`assaymark season`: the commands of a season."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from assaymark.cli.options import (
    DEGRADED,
    WHOLE,
    AsJson,
    Budget,
    CommandGroup,
    DryRun,
    Ledger,
    PriceFile,
    Services,
    StrictAgents,
    examples,
    option,
    say,
    say_forecast,
    say_paid,
    tools_of,
)
from assaymark.engine.providers.registry import Models
from assaymark.errors import AssayError, InputError
from assaymark.workflow import forecast as costs
from assaymark.workflow.ask import check_ledger_name, name_ledger, prices_of
from assaymark.workflow.run_folder import RunFolder, read_text
from assaymark.workflow.tracks.season_day import Stepped, run_season, start_season, step_season
from assaymark.workflow.tracks.season_judge import expect_season_judging, expect_season_run, judge_season
from assaymark.workflow.tracks.season_publish import chosen_languages, publish_season

SeasonFile = Annotated[Path, typer.Argument(help="Season file (TOML).", metavar="FILE")]
SeasonFolder = Annotated[Path, typer.Argument(help="Run folder of a season.", metavar="SEASON")]
Out = Annotated[Path, option("Run folder to make.", "SEASON", "--out", "-o")]
Site = Annotated[Path, option("Folder of the site: new, empty, or this season's.", "SITE", "--out", "-o")]
Language = Annotated[
    list[str] | None, option("Language of the pages: de, or a TOML file. Default: all.", "LANGUAGE", "--language")
]
Calls = Annotated[
    bool, typer.Option("--calls", help="Pages of raw calls for every grade and decision; they show the context.")
]
Address = Annotated[
    str | None, option("Address where the site will lie, for links in feeds and previews.", "URL", "--url")
]
AllowAbsent = Annotated[
    list[str] | None, option("Agent that may be absent when the season is locked.", "NAME", "--allow-absent")
]
Day = Annotated[str | None, option("Last day to run, such as 2024-03-01.", "DAY", "--day")]


app = typer.Typer(
    help="Run seasons: agents trade one universe day by day, in replay or live.", cls=CommandGroup,
    rich_markup_mode=None,
    epilog=examples(
        "assaymark season init season.toml --out seasons/spring",
        "assaymark season run seasons/spring",
        "assaymark season judge seasons/spring",
        "assaymark season publish seasons/spring --out site",
    ),
)  # fmt: skip


@app.command(
    "init",
    short_help="lock a season in a new run folder",
    epilog=examples("assaymark season init season.toml --out seasons/spring"),
)
def init(
    ctx: typer.Context, file: SeasonFile, out: Out, allow_absent: AllowAbsent = None, ledger: Ledger = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Lock a season in a new run folder, or in that of imported records: its file, its texts and its market."""
    tools = tools_of(ctx)
    folder = RunFolder(out)
    if ledger is not None:
        check_ledger_name(folder, ledger)
    text, absent = read_text(file, "season"), allow_absent or ()
    with tools.progress() as progress:
        locked = start_season(
            folder, text, str(file), tools.models(), now=datetime.now(UTC), allow_absent=absent, progress=progress
        )
    if ledger is not None:
        name_ledger(folder, ledger)
    season, days = locked.season, locked.season.calendar
    size = f"{len(season.agents)} agents, {len(locked.data.universe)} instruments, {days.first} to {days.last}"
    verb = "judge" if season.recorded else "step" if season.market.live else "run"
    head = f"{season.name}: {size}; plan {locked.plan_hash[:12]}..."
    then = f"assaymark season {verb} {out}"
    value = {"season": season.name, "plan_hash": locked.plan_hash, "preflight": locked.preflight, "next": then}
    say(tools, json, value, [head, *locked.preflight, f"next: {then}"])


@app.command(
    "step", short_help="advance one trading day (for cron)", epilog=examples("assaymark season step seasons/live")
)
def step(
    ctx: typer.Context, season: SeasonFolder, day: Day = None, budget: Budget = None, prices: PriceFile = None,
    strict_agents: StrictAgents = False, json: AsJson = False,
) -> None:  # fmt: skip
    """Advance all agents by one trading day, and by missed days before it; safe to repeat on one day."""
    try:
        wanted = None if day is None else date.fromisoformat(day)
    except ValueError:
        raise InputError("--day", [f"must be a day such as 2024-03-01 (got {day!r:.40})"]) from None
    tools = tools_of(ctx)
    who = costs.paid_models(tools.models(), budget, prices, strict=strict_agents)
    _run(tools, json, season, who, lambda *given, **named: step_season(*given, day=wanted, **named))


@app.command(
    "run",
    short_help="run every day that is due",
    epilog=examples("assaymark season run seasons/spring --budget 10", "assaymark season run seasons/spring --dry-run"),
)
def run(
    ctx: typer.Context, season: SeasonFolder, budget: Budget = None, prices: PriceFile = None,
    strict_agents: StrictAgents = False, dry_run: DryRun = False, json: AsJson = False,
) -> None:  # fmt: skip
    """Run every day that is due, a replay to its end; resumes after a kill."""
    tools = tools_of(ctx)
    who = costs.paid_models(tools.models(), budget, prices, strict=strict_agents)
    if dry_run:
        say_forecast(tools, json, expect_season_run(RunFolder(season), prices_of(who), now=datetime.now(UTC)))
        return
    _run(tools, json, season, who, run_season)


@app.command(
    "judge",
    short_help="have the panel grade every record",
    epilog=examples("assaymark season judge seasons/spring --dry-run"),
)
def judge(
    ctx: typer.Context, season: SeasonFolder, budget: Budget = None, prices: PriceFile = None, dry_run: DryRun = False,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Have the panel grade every record, whole and period by period; resumes after a kill."""
    tools = tools_of(ctx)
    folder = RunFolder(season)
    who = costs.paid_models(tools.models(), budget, prices)
    if dry_run:
        say_forecast(tools, json, expect_season_judging(folder, prices_of(who)))
        return
    with tools.progress() as progress:
        done = judge_season(folder, who, progress)
    then = f"assaymark season publish {season} --out SITE"
    value = {"made": done.made, "lines": done.lines, "next": then}
    say_paid(tools, json, folder, who, value, done.lines, [f"next: {then}"])


@app.command(
    "publish",
    short_help="measure, decide and write the site",
    epilog=examples("assaymark season publish seasons/spring --out site --language en"),
)
def publish(
    ctx: typer.Context, season: SeasonFolder, out: Site, language: Language = None, calls: Calls = False,
    url: Address = None, json: AsJson = False,
) -> None:  # fmt: skip
    """Measure and decide a judged season, and write its site: pages that need no server."""
    tools = tools_of(ctx)
    chosen = chosen_languages(language or ())
    with tools.progress(WHOLE) as progress:
        done = publish_season(RunFolder(season), out, chosen, calls, url or "", progress)
    value = {"page": str(out / "index.html"), "pages": len(done.pages), "url": url, "verdicts": done.file}
    say(tools, json, value, done.lines)


def _run(tools: Services, json: bool, season: Path, who: Models, verb: Callable[..., Stepped]) -> None:
    folder = RunFolder(season)
    with tools.progress() as progress:
        done = verb(folder, who, now=datetime.now(UTC), progress=progress)
    days = [str(day) for day in done.days]
    value = {"days": days, "navs": done.navs, "overdue": done.overdue, "absent": done.absent}
    say_paid(tools, json, folder, who, value, done.lines)
    if done.overdue:
        raise AssayError(f"{folder.path}: {'; '.join(done.overdue)}")
    if done.absent:
        raise typer.Exit(DEGRADED)
