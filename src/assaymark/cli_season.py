"""`assaymark season`: the commands of a season."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from assaymark.cli_tools import AsJson, Budget, DryRun, Ledger, PriceFile, Tools, say_json
from assaymark.cli_verb import Verbs
from assaymark.errors import InputError
from assaymark.workflow import costs
from assaymark.workflow.asking import prices_of
from assaymark.workflow.folder import RunFolder, read_text
from assaymark.workflow.season_judging import judge_season
from assaymark.workflow.season_judging_costs import expect_season_judging
from assaymark.workflow.season_plan import lock_season
from assaymark.workflow.season_publishing import chosen_languages, publish_season
from assaymark.workflow.season_running import Stepped, run_season, step_season
from assaymark.workflow.sharing import check_ledger_name, name_ledger

SeasonFile = Annotated[Path, typer.Argument(help="Season file (TOML).", metavar="FILE")]
SeasonFolder = Annotated[Path, typer.Argument(help="Run folder of a season.", metavar="SEASON")]
Out = Annotated[Path, typer.Option("--out", help="Run folder to make.", metavar="SEASON")]
Site = Annotated[Path, typer.Option("--out", help="Folder of the site: new, empty, or this season's.", metavar="SITE")]
Language = Annotated[
    list[str] | None,
    typer.Option("--language", help="A language of the pages: de, or a TOML file. Default: all.", metavar="LANGUAGE"),
]
Day = Annotated[str | None, typer.Option("--day", help="Up to this day, such as 2024-03-01.", metavar="DAY")]


def season_app(tools: Tools) -> typer.Typer:
    """The group of commands, to be added to the command line."""
    app = typer.Typer(
        help="Seasons: agents trade one universe day by day, in replay or live.",
        cls=Verbs,
        rich_markup_mode=None,
    )

    @app.command("init")
    def init(file: SeasonFile, out: Out, ledger: Ledger = None) -> None:
        """Lock a season in a new run folder, or in that of imported records: its file, its texts and its market."""
        folder = RunFolder(out)
        if ledger is not None:
            check_ledger_name(folder, ledger)
        locked = lock_season(folder, read_text(file, "season"), str(file), tools.models(), now=datetime.now(UTC))
        if ledger is not None:
            name_ledger(folder, ledger)
        season, days = locked.season, locked.season.calendar
        size = f"{len(season.agents)} agents, {len(locked.data.universe)} instruments, {days.first} to {days.last}"
        verb = "judge" if season.recorded else "step" if season.market.live else "run"
        head = f"{season.name}: {size}; plan {locked.plan_hash[:12]}..."
        tools.say_all([head, *locked.preflight, f"next: assaymark season {verb} {out}"])

    @app.command("step")
    def step(season: SeasonFolder, day: Day = None, budget: Budget = None, prices: PriceFile = None) -> None:
        """Do one trading day for all agents, and missed ones before it; twice on one day changes nothing."""
        wanted = None if day is None else _day(day)
        _run(tools, season, budget, prices, lambda *given, **named: step_season(*given, day=wanted, **named))

    @app.command("run")
    def run(season: SeasonFolder, budget: Budget = None, prices: PriceFile = None) -> None:
        """Do every day that is due: a replay to its end. Killed and called again, it goes on."""
        _run(tools, season, budget, prices, run_season)

    @app.command("judge")
    def judge(season: SeasonFolder, budget: Budget = None, prices: PriceFile = None, dry_run: DryRun = False) -> None:
        """Have the panel grade every record, whole and period by period. Killed and called again, it goes on."""
        folder = RunFolder(season)
        who = costs.paid_models(tools.models(), budget, prices)
        if dry_run:
            tools.say_all(expect_season_judging(folder, prices_of(who)))
            return
        with tools.progress() as progress:
            done = judge_season(folder, who, progress=progress)
        tools.say_all([*done.lines, *costs.paid_lines(folder, prices_of(who))])
        tools.say_all([f"next: assaymark season publish {season} --out SITE"])

    @app.command("publish")
    def publish(season: SeasonFolder, out: Site, language: Language = None, json: AsJson = False) -> None:
        """Measure and decide a judged season, and write its site: pages that need no server."""
        chosen = chosen_languages(language or ())
        with tools.progress() as progress:
            done = publish_season(RunFolder(season), out, languages=chosen, progress=progress)
        if json:
            say_json({"page": str(out / "index.html"), "pages": len(done.pages), "verdicts": done.file})
        else:
            tools.say_all(done.lines)

    return app


def _run(tools: Tools, season: Path, budget: float | None, prices: Path | None, verb: Callable[..., Stepped]) -> None:
    folder = RunFolder(season)
    who = costs.paid_models(tools.models(), budget, prices)
    with tools.progress() as progress:
        done = verb(folder, who, now=datetime.now(UTC), progress=progress)
    tools.say_all([*done.lines, *costs.paid_lines(folder, prices_of(who))])


def _day(text: str) -> date:
    """The day that a person named."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError("--day", [f"must be a day such as 2024-03-01 (got {text!r:.40})"]) from None
