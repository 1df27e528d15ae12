"""The commands of judges, benchmarks, seasons and market data: `datasheet`, `bench`, `season` and `data`."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import assaymark.workflow as workflow
from assaymark.cli import options as opts
from assaymark.cli.options import AsJson, Budget, DryRun, PriceFile, StrictAgents, emit, examples, option, working
from assaymark.errors import AssayError, InputError
from assaymark.text import count_of
from assaymark.workflow import RunFolder

if TYPE_CHECKING:
    from assaymark.engine.providers.registry import Models
    from assaymark.workflow import MadeSheets

app = typer.Typer(rich_markup_mode=None)

Text = str | None
Texts = list[str] | None
Number = int | None


def _add_group(name: str, help: str, *lines: str) -> typer.Typer:
    """Add a group of commands, with examples in its help, to the app."""
    group = typer.Typer(help=help, cls=opts.CommandGroup, rich_markup_mode=None, epilog=examples(*lines))
    app.add_typer(group, name=name)
    return group


Judges = Annotated[Texts, option("Judge to measure; repeatable.", "PROVIDER/NAME", "--judge")]
Log = Annotated[Path | None, option("Existing log of pairwise verdicts, any format.", "LOG", "--from")]
LogMap = Annotated[Texts, option("For --from: a column, or a map (TOML).", "ROLE=COLUMN", "--map")]
KeepGoing = Annotated[bool, typer.Option("--keep-going", help="For --from: leave out rows that cannot be read.")]
Only = Annotated[Texts, option("For --from: rows to read; repeatable.", "COLUMN=VALUE", "--only")]
Compare = Annotated[list[Path] | None, option("Earlier datasheet (JSON), to test for drift.", "FILE", "--compare")]
Comparator = Annotated[Text, option("Upper-bound reference judge (not ground truth).", "PROVIDER/NAME", "--comparator")]
Tasks = Annotated[Path | None, option("Custom tasks (TOML); default: finance.", "FILE", "--tasks")]
SheetSeed = Annotated[int, option("Seed of stimuli and resampling.", "N", "--seed")]
Trials = Annotated[int, option("Times each question is asked.", "N", "--trials", min=1, max=50)]
Strict = Annotated[bool, typer.Option(help="Also ask under the strict instruction.")]
Pointwise = Annotated[bool, typer.Option("--pointwise", help="Also have single texts graded by a rubric.")]
RubricName = Annotated[Text, option("For --pointwise: rubric, or its file.", "NAME", "--rubric")]
Panel = Annotated[Path | None, option("Run folder whose judges are all measured.", "RUN", "--run")]
BaseUrl = Annotated[Text, option("Address of a compatible API.", "URL", "--base-url")]
KeyEnv = Annotated[Text, option("Variable that holds its key.", "NAME", "--key-env")]
Sheets = Annotated[Path, option("Folder to work in.", "RUN", "--out", "-o")]


@app.command(epilog=examples(
    "assaymark datasheet --judge openai/MODEL --judge google/MODEL --budget 2",
    "assaymark datasheet --judge openai-chat/MODEL --base-url http://gpu-1/v1",
    "assaymark datasheet --from verdicts.csv --map slot_1=left --keep-going",
))  # fmt: skip
def datasheet(
    ctx: typer.Context, judge: Judges = None, log: Log = None, log_map: LogMap = None, only: Only = None,
    compare: Compare = None, comparator: Comparator = None, tasks: Tasks = None, seed: SheetSeed = 7,
    trials: Trials = 1, strict: Strict = True, pointwise: Pointwise = False, rubric: RubricName = None,
    run: Panel = None, base_url: BaseUrl = None, key_env: KeyEnv = None, keep_going: KeepGoing = False,
    out: Sheets = Path("assaymark-datasheets"), budget: Budget = None, prices: PriceFile = None,
    dry_run: DryRun = False, json: AsJson = False,
) -> None:  # fmt: skip
    """Measure a judge: its preferences on null pairs, on equal texts, and on pairs of known difference."""
    if sum((bool(judge), log is not None, run is not None)) != 1:
        opts.fail_usage(ctx, "give --judge MODEL, --run RUN, or --from LOG, and one of them only")
    args = {name: value for name, value in (("base_url", base_url), ("api_key_env", key_env)) if value is not None}
    if args and not judge:
        opts.fail_usage(ctx, "--base-url and --key-env are for --judge")
    if log is not None:
        condition = "for judges that are asked"
        if tasks is not None or trials != 1 or pointwise or comparator:
            opts.fail_usage(ctx, f"--tasks, --trials, --pointwise and --comparator are {condition}")
        if budget is not None or prices is not None or dry_run:
            opts.fail_usage(ctx, f"--budget, --prices and --dry-run are {condition}")
        mapping = workflow.log_map(log_map or (), only or ())
        with working(opts.WHOLE):
            options = {name: ctx.params[name] for name in ("seed", "keep_going")}
            sheets = workflow.measure_log(RunFolder(out), log, mapping, old=compare or (), **options)
        _show(ctx, RunFolder(out), sheets)
        return
    if log_map or only or keep_going:
        opts.fail_usage(ctx, "--map, --only and --keep-going are for --from")
    models, folder = opts.priced_models(ctx), RunFolder(out if run is None else run)
    study = None if run is None else workflow.open_locked(folder).study
    panel = () if study is None else study.asked_judges
    judges = [*panel, *workflow.judges_of([*(judge or ()), *([comparator] if comparator else ())], trials, args)]
    pointwise = pointwise or run is not None
    if rubric is not None and not (pointwise and run is None):
        opts.fail_usage(ctx, "--rubric is for --pointwise; a run has the rubric of its plan")
    criteria = workflow.tested_by(study)
    if rubric is not None:
        from assaymark.judging import find_rubric

        criteria = find_rubric(rubric)
    if dry_run:
        forecast = workflow.expect_datasheets(folder, judges, models, tasks, seed, strict, pointwise, criteria)
        opts.emit_forecast(ctx, forecast)
        return
    with working():
        sheets = workflow.measure_judges(
            folder, judges, models, **{name: ctx.params[name] for name in ("tasks", "seed", "strict")},
            pointwise=pointwise, rubric=criteria, study=run is not None,
            comparator=comparator.partition("/")[2] if comparator else None, old=compare or (),
        )  # fmt: skip
    _show(ctx, folder, sheets, models)


def _show(ctx: typer.Context, folder: RunFolder, written: MadeSheets, models: Models | None = None) -> None:
    """Print datasheets: one JSON document with ``--json``, else their summary and the path of the page."""
    from assaymark.report.terminal import datasheet_summary

    value = {"page": str(written.page), "datasheets": written.sheets, "agreement": written.agreement}
    shown = datasheet_summary(written.sheets, written.agreement)
    opts.emit_costed(ctx, folder, models, value, [f"page: {written.page}"], summary=shown)


bench = _add_group(
    "bench", "Run PortBench: questions with exact answers, and a five-stage pipeline under stress.",
    "assaymark bench qa --model openai/MODEL --per-template 5",
)  # fmt: skip
Plan = Annotated[Path | None, typer.Argument(help="Benchmark file (TOML), instead of options.", metavar="PLAN")]
Asked = Annotated[Texts, option("Model; repeatable. Default: ten built-in models.", "PROVIDER/NAME", "--model")]
BenchOut = Annotated[Path | None, option("Run folder; default: named after the model.", "RUN", "--out", "-o")]
Convention = Annotated[Text, option("paper (default) or reference.", "NAME", "--convention")]
Market = Annotated[Text, option("Snapshot; default: the built-in market.", "FOLDER", "--market")]
Instruments = Annotated[Number, option("Number of instruments; default: 81.", "N", "--instruments")]
Profiles = Annotated[Texts, option("Only this profile; repeatable.", "NAME", "--profile")]
Windows = Annotated[Texts, option("Only this window; repeatable.", "NAME", "--window")]
Pace = Annotated[Text, option("weekly, monthly (default) or quarterly.", "PACE", "--pace")]
Graders = Annotated[Texts, option("Judge of the rationales; repeatable.", "PROVIDER/NAME", "--judge")]
PerTemplate = Annotated[Number, option("Questions per template; default: 50.", "N", "--per-template")]
SplitChoice = Annotated[Text, option("train, val or test (default).", "SPLIT", "--split")]
QuestionFile = Annotated[Path | None, option("Question set (JSONL), not the built-in one.", "FILE", "--questions")]
BenchSeed = Annotated[Number, option("Seed of the built-in market; default: 0.", "N", "--seed")]
Temperature = Annotated[float | None, option("Default: 0 if supported. Below 0: not sent.", "T", "--temperature")]
MaxTokens = Annotated[int, option("Maximum reply length.", "N", "--max-tokens", min=1, show_default=True)]
_ASKED = (
    "model", "judge", "seed", "profile", "window", "questions", "convention", "market", "instruments", "pace",
    "per_template", "split", "temperature", "max_tokens", "base_url", "key_env",
)  # fmt: skip


def _add_bench_command(name: str, verb: str, short: str, help: str) -> None:
    """Add a command of `bench` that calls ``verb``; `qa` and `pipeline` share one plan, and so all options."""

    @bench.command(
        name, help=help, short_help=short,
        epilog=examples(
            f"assaymark bench {name} --model openai/MODEL --dry-run",
            f"assaymark bench {name} bench.toml --out runs/bench",
        ),
    )  # fmt: skip
    def command(
        ctx: typer.Context, plan: Plan = None, model: Asked = None, out: BenchOut = None, profile: Profiles = None,
        window: Windows = None, pace: Pace = None, judge: Graders = None, convention: Convention = None,
        market: Market = None, seed: BenchSeed = None, instruments: Instruments = None,
        per_template: PerTemplate = None, split: SplitChoice = None, questions: QuestionFile = None,
        temperature: Temperature = None, max_tokens: MaxTokens = 4096, base_url: BaseUrl = None,
        key_env: KeyEnv = None, ledger: opts.Ledger = None, budget: Budget = None, prices: PriceFile = None,
        strict_agents: StrictAgents = False, dry_run: DryRun = False, json: AsJson = False,
    ) -> None:  # fmt: skip
        params = ctx.params
        options = {name: params[name] for name in _ASKED}
        models = opts.priced_models(ctx)
        folder = RunFolder(out or workflow.default_folder(options))
        text, source = workflow.plan_text(plan, options)
        if dry_run:
            forecast = workflow.expect_bench(folder, text, source, name == "qa", models)
            opts.emit_forecast(ctx, forecast)
            return
        if ledger is not None:
            workflow.name_ledger(folder, ledger)
        with working():
            done = getattr(workflow, verb)(folder, text, source, models, now=datetime.now(UTC))
        value = {"page": str(done.page), "verdicts": workflow.verdicts_of(folder) if json else ()}
        opts.emit_costed(ctx, folder, models, value, done.lines, [f"page: {done.page}"])


_add_bench_command("qa", "bench_qa", "ask models the static questions T1 to T7",
        "Ask models the static questions T1 to T7, and report which models can be ranked.")  # fmt: skip
_add_bench_command("pipeline", "bench_pipeline", "run models through the stages S1 to S5",
        "Run models through the stages S1 to S5 for every profile and window, with five baselines.")  # fmt: skip


@bench.command("questions", short_help="write the questions as files, for use anywhere", epilog=examples(
    "assaymark bench questions --out questions/",
))  # fmt: skip
def questions(
    ctx: typer.Context, out: Annotated[Path, option("Folder to write.", "FOLDER", "--out", "-o")],
    market: Market = None,
    seed: Annotated[int, option("Seed of the questions and the built-in market.", "N", "--seed", min=0)] = 0,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Write the whole set of questions as JSON lines, with its dataset card and manifest."""
    with working(opts.WHOLE):
        size, digest = workflow.write_set(out, market, seed)
    card = str(out / "card.md")
    value = {"questions": size, "sha256": digest, "card": card}
    emit(ctx, value, [f"{size:,} questions, sha256 {digest}", f"card: {card}"])


season = _add_group(
    "season", "Run seasons: agents trade one universe day by day, in replay or live.",
    "assaymark season init season.toml --out seasons/spring",
    "assaymark season run seasons/spring",
    "assaymark season judge seasons/spring",
    "assaymark season publish seasons/spring --out site",
)  # fmt: skip
SeasonFile = Annotated[Path, typer.Argument(help="Season file (TOML).", metavar="FILE")]
SeasonFolder = Annotated[Path, typer.Argument(help="Run folder of a season.", metavar="SEASON")]
SeasonOut = Annotated[Path, option("Run folder to make.", "SEASON", "--out", "-o")]
Site = Annotated[Path, option("Folder of the site: new, empty, or this season's.", "SITE", "--out", "-o")]
Language = Annotated[
    Texts, option("Language of the pages: de, or a TOML file. Default: all.", "LANGUAGE", "--language")
]
Calls = Annotated[
    bool, typer.Option("--calls", help="Pages of raw calls for every grade and decision; they show the context.")
]
Address = Annotated[Text, option("Address where the site will lie, for links in feeds and previews.", "URL", "--url")]
AllowAbsent = Annotated[Texts, option("Agent that may be absent when the season is locked.", "NAME", "--allow-absent")]
Day = Annotated[Text, option("Last day to run, such as 2024-03-01.", "DAY", "--day")]


@season.command("init", short_help="lock a season in a new run folder", epilog=examples(
    "assaymark season init season.toml --out seasons/spring",
))  # fmt: skip
def season_init(
    ctx: typer.Context, file: SeasonFile, out: SeasonOut, allow_absent: AllowAbsent = None, ledger: opts.Ledger = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Lock a season in a new run folder, or in that of imported records: its file, its texts and its market."""
    folder = RunFolder(out)
    if ledger is not None:
        workflow.check_ledger_name(folder, ledger)
    text, absent = workflow.read_text(file, "season"), allow_absent or ()
    with working():
        locked = workflow.start_season(
            folder, text, str(file), opts.models(), now=datetime.now(UTC), allow_absent=absent,
        )  # fmt: skip
    if ledger is not None:
        workflow.name_ledger(folder, ledger)
    season, days = locked.season, locked.season.calendar
    size = f"{count_of(len(season.agents), 'agents')}, {count_of(len(locked.data.universe), 'instruments')}"
    verb = "judge" if season.recorded else "step" if season.market.live else "run"
    head = f"{season.name}: {size}, {days.first} to {days.last}; plan {locked.plan_hash[:12]}..."
    then = f"assaymark season {verb} {out}"
    once = [f"trials of {judge.name} 1" for judge in season.panel if judge.trials < 2 and not judge.human]
    once = [*(["replicates 1"] if season.replicates < 2 else []), *once]
    noise = "noise is not measured: this season cannot rank agents; repetitions are needed, 2 or more each (got "
    value = {"season": season.name, "plan_hash": locked.plan_hash, "preflight": locked.preflight, "next": then}
    warning = [f"{noise}{', '.join(once)})"] if once else []
    if not season.panel:
        warning = ["there is no panel ([[panel]]): this season can be neither graded nor published"]
    emit(ctx, value, [head, *locked.preflight, *warning, f"next: {then}"])


@season.command(
    "step", short_help="advance one trading day (for cron)", epilog=examples("assaymark season step seasons/live")
)
def season_step(
    ctx: typer.Context, season: SeasonFolder, day: Day = None, budget: Budget = None, prices: PriceFile = None,
    strict_agents: StrictAgents = False, json: AsJson = False,
) -> None:  # fmt: skip
    """Advance all agents by one trading day, and by missed days before it; safe to repeat on one day."""
    try:
        until = None if day is None else date.fromisoformat(day)
    except ValueError:
        raise InputError("--day", [f"must be a day such as 2024-03-01 (got {day!r:.40})"]) from None
    models = opts.priced_models(ctx)
    _run(ctx, season, models, lambda *args, **named: workflow.step_season(*args, day=until, **named))


@season.command("run", short_help="run every day that is due", epilog=examples(
    "assaymark season run seasons/spring --budget 10", "assaymark season run seasons/spring --dry-run",
))  # fmt: skip
def season_run(
    ctx: typer.Context, season: SeasonFolder, budget: Budget = None, prices: PriceFile = None,
    strict_agents: StrictAgents = False, dry_run: DryRun = False, json: AsJson = False,
) -> None:  # fmt: skip
    """Run every day that is due, a replay to its end; resumes after a kill."""
    models = opts.priced_models(ctx)
    if dry_run:
        forecast = workflow.expect_season_run(RunFolder(season), workflow.prices_of(models), now=datetime.now(UTC))
        opts.emit_forecast(ctx, forecast)
        return
    _run(ctx, season, models, workflow.run_season)


@season.command("judge", short_help="have the panel grade every record", epilog=examples(
    "assaymark season judge seasons/spring --dry-run",
))  # fmt: skip
def season_judge(
    ctx: typer.Context, season: SeasonFolder, budget: Budget = None, prices: PriceFile = None, dry_run: DryRun = False,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Have the panel grade every record, whole and period by period; resumes after a kill."""
    folder, models = RunFolder(season), opts.priced_models(ctx)
    if dry_run:
        opts.emit_forecast(ctx, workflow.expect_season_judging(folder, workflow.prices_of(models)))
        return
    with working():
        done = workflow.judge_season(folder, models)
    then = f"assaymark season publish {season} --out SITE"
    value = {"made": done.done, "lines": done.lines, "next": then}
    opts.emit_costed(ctx, folder, models, value, done.lines, [f"next: {then}"])


@season.command("publish", short_help="measure, decide and write the site", epilog=examples(
    "assaymark season publish seasons/spring --out site --language en",
))  # fmt: skip
def season_publish(
    ctx: typer.Context, season: SeasonFolder, out: Site, language: Language = None, calls: Calls = False,
    url: Address = None, json: AsJson = False,
) -> None:  # fmt: skip
    """Measure and decide a judged season, and write its site: pages that need no server."""
    chosen = workflow.chosen_languages(language or ())
    with working(opts.WHOLE):
        done = workflow.publish_season(RunFolder(season), out, chosen, calls, url or "")
    value = {"page": str(out / "index.html"), "pages": len(done.pages), "url": url, "verdicts": done.file}
    emit(ctx, value, done.lines)


def _run(ctx: typer.Context, season: Path, models: Models, verb: Callable[..., Any]) -> None:
    folder = RunFolder(season)
    with working():
        done = verb(folder, models, now=datetime.now(UTC))
    days = [str(day) for day in done.done]
    value = {"days": days, "navs": done.navs, "overdue": done.overdue, "absent": done.absent}
    opts.emit_costed(ctx, folder, models, value, done.lines)
    if done.overdue:
        raise AssayError(f"{folder.path}: {'; '.join(done.overdue)}")
    if done.absent:
        raise typer.Exit(opts.DEGRADED)


data = _add_group(
    "data", "Make, fetch, show and check a snapshot of market data in a folder.",
    "assaymark data synth --out market", "assaymark data show market",
)  # fmt: skip
Snapshot = Annotated[Path, option("Folder of the snapshot; it holds one.", "FOLDER", "--out", "-o")]
Stored = Annotated[Path, typer.Argument(help="Folder of a snapshot.", metavar="FOLDER")]


@data.command(
    "synth", short_help="write a synthetic market", epilog=examples("assaymark data synth --out market --seed 7")
)
def data_synth(
    ctx: typer.Context, out: Snapshot, seed: Annotated[int, option("Random seed, 0 or more.", "N", "--seed")] = 0,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Write the synthetic market of a seed: 183 instruments, 2015 to 2025, with macro series, news and filings."""
    with working(opts.WHOLE):
        line = workflow.synth_market(out, seed)
    emit(ctx, workflow.market_facts(out) if json else {}, [line])


@data.command("pull", short_help="fetch a snapshot from a source", epilog=examples(
    "assaymark data pull files --option path=prices.csv --out market",
    "assaymark data pull yfinance --symbol SPY --start 2024-01-01 --out market",
))  # fmt: skip
def data_pull(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(help="files, synthetic, or a networked source.", metavar="SOURCE")],
    out: Snapshot,
    symbol: Annotated[Texts, option("Symbol to fetch; repeatable.", "NAME", "--symbol")] = None,
    start: Annotated[Text, option("First day, such as 2024-03-01.", "DAY", "--start")] = None,
    end: Annotated[Text, option("Last day.", "DAY", "--end")] = None,
    option: Annotated[
        Texts, option("Option of the source, such as path=FILE for files.", "KEY=VALUE", "--option")
    ] = None,
    json: AsJson = False,
) -> None:
    """Fetch a snapshot from a source; keys are read from the environment and written nowhere."""
    with working(opts.WHOLE):
        line = workflow.pull_market(out, source, symbol or (), start, end, options=option or (),
                                now=datetime.now(UTC), environment=os.environ)  # fmt: skip
    emit(ctx, workflow.market_facts(out) if json else {}, [line])


@data.command("show", short_help="show a snapshot, or what was known at a time", epilog=examples(
    "assaymark data show market", "assaymark data show market --at 2020-03-20",
))  # fmt: skip
def data_show(
    ctx: typer.Context, folder: Stored,
    at: Annotated[Text, option("Day or time with a zone; show what was known then.", "TIME", "--at")] = None,
    instrument: Annotated[Text, option("Only this instrument, in full.", "NAME", "--instrument")] = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Show where a snapshot is from and what it holds or, with --at, what could be known at that time."""
    if json:
        opts.emit_json(workflow.market_facts(folder, at, instrument))
        return
    opts.show(workflow.show_market(folder, at, instrument))


@data.command("check", short_help="find gaps, frozen series, impossible prices, damage", epilog=examples(
    "assaymark data check market",
))  # fmt: skip
def data_check(ctx: typer.Context, folder: Stored, json: AsJson = False) -> None:
    """Find gaps, stale and frozen series, impossible prices, half days and damage; exit status 1 if there are any."""
    checked = workflow.check_market(folder)
    emit(ctx, checked.done, checked.lines)
    if count := len(checked.done.problems):
        raise AssayError(f"{folder}: {count_of(count, 'problems')}, named above")
