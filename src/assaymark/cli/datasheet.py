"""`assaymark datasheet`: measure judges that are asked, or read a log of verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assaymark.cli.options import (
    WHOLE,
    AsJson,
    Budget,
    DryRun,
    PriceFile,
    Services,
    examples,
    option,
    refuse,
    say_forecast,
    say_paid,
    tools_of,
)
from assaymark.engine.providers.registry import Models
from assaymark.judging import find_rubric
from assaymark.records import JSON
from assaymark.report.terminal import datasheet_summary
from assaymark.workflow import forecast as costs
from assaymark.workflow import verbs
from assaymark.workflow.ask import prices_of
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tracks.datasheet import Made

Judges = Annotated[list[str] | None, option("Judge to measure; repeatable.", "PROVIDER/NAME", "--judge")]
Log = Annotated[Path | None, option("Existing log of pairwise verdicts, any format.", "LOG", "--from")]
LogMap = Annotated[list[str] | None, option("For --from: a column, or a map (TOML).", "ROLE=COLUMN", "--map")]
KeepGoing = Annotated[bool, typer.Option("--keep-going", help="For --from: leave out rows that cannot be read.")]
Only = Annotated[list[str] | None, option("For --from: rows to read; repeatable.", "COLUMN=VALUE", "--only")]
Compare = Annotated[list[Path] | None, option("Earlier datasheet (JSON), to test for drift.", "FILE", "--compare")]
Comparator = Annotated[
    str | None, option("Upper-bound reference judge (not ground truth).", "PROVIDER/NAME", "--comparator")
]
Tasks = Annotated[Path | None, option("Custom tasks (TOML); default: finance.", "FILE", "--tasks")]
Seed = Annotated[int, option("Seed of stimuli and resampling.", "N", "--seed")]
Trials = Annotated[int, option("Times each question is asked.", "N", "--trials", min=1, max=50)]
Strict = Annotated[bool, typer.Option(help="Also ask under the strict instruction.")]
Pointwise = Annotated[bool, typer.Option("--pointwise", help="Also have single texts graded by a rubric.")]
RubricName = Annotated[str | None, option("For --pointwise: rubric, or its file.", "NAME", "--rubric")]
Panel = Annotated[Path | None, option("Run folder whose judges are all measured.", "RUN", "--run")]
BaseUrl = Annotated[str | None, option("Address of a compatible API.", "URL", "--base-url")]
KeyEnv = Annotated[str | None, option("Variable that holds its key.", "NAME", "--key-env")]
Out = Annotated[Path, option("Folder to work in.", "RUN", "--out", "-o")]
app = typer.Typer(rich_markup_mode=None)


@app.command(
    epilog=examples(
        "assaymark datasheet --judge openai/MODEL --judge google/MODEL --budget 2",
        "assaymark datasheet --judge openai-chat/MODEL --base-url http://gpu-1/v1",
        "assaymark datasheet --from verdicts.csv --map slot_1=left --keep-going",
    )
)
def datasheet(
    ctx: typer.Context, judge: Judges = None, log: Log = None, log_map: LogMap = None, only: Only = None,
    compare: Compare = None, comparator: Comparator = None, tasks: Tasks = None, seed: Seed = 7, trials: Trials = 1,
    strict: Strict = True, pointwise: Pointwise = False, rubric: RubricName = None, run: Panel = None,
    base_url: BaseUrl = None, key_env: KeyEnv = None, keep_going: KeepGoing = False,
    out: Out = Path("assaymark-datasheets"),
    budget: Budget = None, prices: PriceFile = None, dry_run: DryRun = False, json: AsJson = False,
) -> None:  # fmt: skip
    """Measure a judge: its preferences on null pairs, on equal texts, and on pairs of known difference."""
    tools = tools_of(ctx)
    if sum((bool(judge), log is not None, run is not None)) != 1:
        refuse(ctx, "give --judge MODEL, --run RUN, or --from LOG")
    given = {"base_url": base_url, "api_key_env": key_env}
    args: dict[str, JSON] = {name: value for name, value in given.items() if value is not None}
    if args and not judge:
        refuse(ctx, "--base-url and --key-env are for --judge")
    if log is not None:
        asked = "for judges that are asked"
        if tasks is not None or trials != 1 or pointwise or comparator:
            refuse(ctx, f"--tasks, --trials, --pointwise and --comparator are {asked}")
        if budget is not None or prices is not None or dry_run:
            refuse(ctx, f"--budget, --prices and --dry-run are {asked}")
        mapping = verbs.log_map(log_map or (), only or ())
        with tools.progress(WHOLE):
            made = verbs.measure_log(RunFolder(out), log, mapping, seed=seed, old=compare or (), keep_going=keep_going)
        _show(tools, json, RunFolder(out), made)
        return
    if log_map or only or keep_going:
        refuse(ctx, "--map, --only and --keep-going are for --from")
    who, folder = costs.paid_models(tools.models(), budget, prices), RunFolder(out if run is None else run)
    panel = () if run is None else verbs.panel_of(folder)
    judges = [*panel, *verbs.judges_of([*(judge or ()), *([comparator] if comparator else ())], trials, args)]
    pointwise = pointwise or run is not None
    if rubric is not None and not (pointwise and run is None):
        refuse(ctx, "--rubric is for --pointwise; a run has the rubric of its plan")
    wanted = verbs.tested_by(None if run is None else verbs.open_locked(folder).study)
    wanted = wanted if rubric is None else find_rubric(rubric)
    if dry_run:
        found = costs.expect_datasheets(folder, judges, prices_of(who), tasks, seed, strict, pointwise, rubric=wanted)
        say_forecast(tools, json, found)
        return
    with tools.progress() as progress:
        made = verbs.measure_judges(
            folder, judges, who, tasks=tasks, seed=seed, strict=strict, pointwise=pointwise, rubric=wanted,
            study=run is not None,
            comparator=comparator.partition("/")[2] if comparator else None, old=compare or (), progress=progress,
        )  # fmt: skip
    _show(tools, json, folder, made, who)


def _show(tools: Services, json: bool, folder: RunFolder, made: Made, who: Models | None = None) -> None:
    """The datasheets for a program, their summary for a person."""
    value = {"page": str(made.page), "datasheets": made.sheets, "agreement": made.agreement}
    summary = datasheet_summary(made.sheets, made.agreement)
    say_paid(tools, json, folder, who, value, [f"page: {made.page}"], summary=summary)
