"""`assaymark run` and its steps: the commands of a study, from records to pages."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from assaymark.cli_tools import AsJson, Budget, DryRun, Ledger, PriceFile, Tools, say_json, tools_of
from assaymark.errors import AssayError
from assaymark.importers import IMPORTERS, template
from assaymark.protocol import parse_study
from assaymark.workflow import costs, verbs
from assaymark.workflow import doctor as examination
from assaymark.workflow.asking import prices_of
from assaymark.workflow.bare_tables import measure_table
from assaymark.workflow.bench_plan import is_benchmark
from assaymark.workflow.benching import bench_report
from assaymark.workflow.exporting import export_arrow, export_inspect
from assaymark.workflow.folder import RunFolder, read_text
from assaymark.workflow.partitions import computing_of
from assaymark.workflow.tables import MEASUREMENTS, VERDICTS, Store

app = typer.Typer(rich_markup_mode=None)

Run = Annotated[Path, typer.Argument(help="Run folder.", metavar="RUN")]
Out = Annotated[Path, typer.Option("--out", help="Run folder to work in.", metavar="RUN")]


@app.command()
def demo(ctx: typer.Context, out: Out = Path("assaymark-demo")) -> None:
    """Take a small study of four reference agents to its verdict page: no key, no file, no network."""
    tools = tools_of(ctx)
    with tools.progress() as progress:
        result = verbs.demo(RunFolder(out), tools.models(), now=datetime.now(UTC), progress=progress)
    _finish(tools, result)


@app.command("import")
def import_(
    ctx: typer.Context,
    format: Annotated[
        str, typer.Argument(help=f"{', '.join(sorted(IMPORTERS))}, human, or: template.", metavar="FORMAT")
    ],
    path: Annotated[Path | None, typer.Argument(help="Folder or file to read.", metavar="PATH")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Run folder to write.", metavar="RUN")] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Import the good records of a bad file.")] = False,
    rubric: Annotated[str, typer.Option("--rubric", help="For human: the rubric that people graded by.")] = "v1.0",
    json: AsJson = False,
) -> None:
    """Read other people's records into a run folder, or print the template of the generic format.

    FORMAT human reads a table of grades that people gave to records that are there already.
    """
    tools = tools_of(ctx)
    if format == "template":
        typer.echo(template(), nl=False)
        return
    if path is None or out is None:
        raise typer.BadParameter("assaymark import FORMAT PATH --out RUN: PATH and --out are needed")
    if format == "human":
        tools.say_all([f"{verbs.import_grades(RunFolder(out), path, rubric=rubric)} grades by people"])
        return
    with tools.progress() as progress:
        report = verbs.import_records(format, path, RunFolder(out), keep_going=keep_going, progress=progress)
    _say(tools, json, report, report.lines())
    if report.problems:
        raise AssayError(f"{len(report.problems)} problems were left out; the good records are in {out}")


@app.command()
def lock(
    ctx: typer.Context,
    study: Annotated[Path, typer.Argument(help="Study file (TOML).", metavar="STUDY")],
    out: Out,
    json: AsJson = False,
) -> None:
    """Fix a plan before any judge is called: validate it, say what it can ever conclude, fingerprint it."""
    tools = tools_of(ctx)
    text = read_text(study, "study file")
    with tools.progress() as progress:
        locked = verbs.lock(
            RunFolder(out), text, str(study), now=datetime.now(UTC), models=tools.models(), progress=progress
        )
    found = {"plan_hash": locked.plan_hash, "locked_at": locked.locked_at, "preflight": locked.preflight}
    _say(tools, json, found | {"date_probes": locked.date_probes}, verbs.lock_lines(locked))


@app.command()
def amend(
    ctx: typer.Context,
    study: Annotated[Path, typer.Argument(help="The changed study file (TOML).", metavar="STUDY")],
    out: Out,
    reason: Annotated[str, typer.Option("--reason", help="Why; every reader of a verdict sees it.")],
) -> None:
    """Change a locked plan in the open: dated, hashed, with a reason; thresholds only before any judge was asked."""
    tools = tools_of(ctx)
    folder, text = RunFolder(out), read_text(study, "study file")
    made = verbs.amend(folder, text, str(study), reason=reason, now=datetime.now(UTC), models=tools.models())
    tools.say_all(verbs.amendment_lines(made, verbs.open_locked(folder)))


@app.command()
def run(
    ctx: typer.Context,
    study: Annotated[Path, typer.Argument(help="Study file (TOML).", metavar="STUDY")], out: Out, ledger: Ledger = None,
    budget: Budget = None, prices: PriceFile = None, dry_run: DryRun = False,
) -> None:  # fmt: skip
    """Lock, decide, judge, measure, claim and report, as far as they are not done; can be killed and run again."""
    tools = tools_of(ctx)
    folder, text = RunFolder(out), read_text(study, "study file")
    who = costs.paid_models(tools.models(), budget, prices)
    if dry_run:
        tools.say_all(costs.expect_study(folder, text, str(study), who, prices_of(who)))
        return
    if ledger is not None:
        verbs.name_ledger(folder, ledger)
    with tools.progress() as progress:
        verbs.lock(folder, text, str(study), now=datetime.now(UTC), models=who, progress=progress)
        result = verbs.finish(folder, who, progress=progress)
    _finish(tools, result)
    tools.say_all(costs.paid_lines(folder, prices_of(who)))


@app.command()
def worker(
    ctx: typer.Context,
    run: Annotated[Path | None, typer.Argument(help="Run folder.", metavar="RUN")] = None, ledger: Ledger = None,
    budget: Budget = None, prices: PriceFile = None,
) -> None:  # fmt: skip
    """Answer the planned calls of a shared ledger beside other workers, until none is left."""
    tools = tools_of(ctx)
    if (run is None) == (ledger is None):
        raise typer.BadParameter("give a run folder, or --ledger URL")
    who = costs.paid_models(tools.models(), budget, prices)
    with tools.progress() as progress:
        summary = verbs.work(ledger or RunFolder(run or Path()), who, progress=progress)
    tools.say_all(verbs.work_lines(summary))


@app.command()
def judge(
    ctx: typer.Context, run: Run, budget: Budget = None, prices: PriceFile = None, dry_run: DryRun = False
) -> None:
    """Put every decision before every judge of the locked plan, and every number against its material.

    A study that makes its own records first has its agents decide.
    """
    tools = tools_of(ctx)
    who = costs.paid_models(tools.models(), budget, prices)
    if dry_run:
        tools.say_all(costs.expect_judging(RunFolder(run), prices_of(who)))
        return
    with tools.progress() as progress:
        verbs.decide(RunFolder(run), who, progress=progress)
        result = verbs.judge(RunFolder(run), who, progress=progress)
    tools.say_all([f"{result.judgments} judgments ({result.made} calls made now), {result.evidence} numbers ledgered"])
    tools.say_all(costs.paid_lines(RunFolder(run), prices_of(who)))


@app.command()
def measure(
    ctx: typer.Context,
    run: Annotated[Path | None, typer.Argument(help="Run folder.", metavar="RUN")] = None,
    judgments: Annotated[
        Path | None,
        typer.Option("--judgments", help="Scores made elsewhere: CSV, JSONL, Parquet, Arrow, a folder of partitions."),
    ] = None,
    study: Annotated[Path | None, typer.Option("--study", help="For --judgments: the plan; default: defaults.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="For --judgments: where to write.", metavar="RUN")] = None,
    compute: Annotated[
        str | None, typer.Option("--compute", help="For a folder: serial, processes or ray.", metavar="HOW")
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Partitions at once; default: cores.")] = None,
    ray: Annotated[
        str | None, typer.Option("--ray", help="Cluster; default: RAY_ADDRESS, or one here.", metavar="ADDRESS")
    ] = None,
    deadline: Annotated[
        float | None, typer.Option("--deadline", help="Seconds that a partition may take; default: 3600.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Measure the judges, the agents and the evidence of a run, or a bare table of scores."""
    tools = tools_of(ctx)
    if (run is None) == (judgments is None):
        raise typer.BadParameter("give a run folder, or --judgments FILE")
    if judgments is not None:
        plan = None if study is None else parse_study(read_text(study, "study file"), source=str(study))
        with tools.progress() as progress:
            found = measure_table(
                judgments, plan, None if out is None else RunFolder(out),
                computing=computing_of(compute, workers, ray, deadline), progress=progress,
            )  # fmt: skip
        value: object = {"measurements": found.measurements, "verdicts": found.verdicts, "notes": found.notes}
        _say(tools, json, value, found.lines())
    elif run is not None:
        with tools.progress() as progress:
            count = verbs.measure(RunFolder(run), progress=progress)
        value = {"measurements": Store(RunFolder(run)).read(MEASUREMENTS)} if json else {}
        _say(tools, json, value, [f"{count} measurements"])


@app.command()
def claim(
    ctx: typer.Context,
    run: Annotated[Path | None, typer.Argument(help="Run folder.", metavar="RUN")] = None,
    verify: Annotated[
        list[Path] | None, typer.Option("--verify", help="Recompute a certificate from its own tables.", metavar="FILE")
    ] = None,
    json: AsJson = False,
) -> None:
    """Decide which claims may be made, or check certificates, without any text that was judged."""
    tools = tools_of(ctx)
    if (run is None) == (not verify):
        raise typer.BadParameter("give a run folder, or --verify CERTIFICATE")
    if run is not None:
        file = verbs.claim(RunFolder(run))
        tally = ", ".join(f"{count} {level}" for level, count in file.tally.items())
        _say(tools, json, file, [f"{tally}; written to {run}/verdicts.json"])
        return
    found = {path: verbs.verify_certificate(path) for path in verify or ()}
    lines = [line for path, one in found.items() for line in verbs.verification_lines(one, path)]
    _say(tools, json, {str(path): one for path, one in found.items()}, lines)
    if wrong := sum(not one.ok for one in found.values()):
        raise AssayError(f"{wrong} of {len(found)} certificates do not follow from their own tables")


@app.command("plan-calls")
def plan_calls(
    ctx: typer.Context,
    run: Run,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Judge calls that can still be made.")],
    json: AsJson = False,
) -> None:
    """Say which further judge calls would most likely move a claim to the next level, by simulation."""
    tools = tools_of(ctx)
    with tools.progress() as progress:
        plan = verbs.plan_calls(RunFolder(run), budget, progress=progress)
    _say(tools, json, plan.document, verbs.plan_calls_lines(plan))


@app.command()
def report(ctx: typer.Context, run: Run, json: AsJson = False) -> None:
    """Write the pages and print the summary."""
    tools = tools_of(ctx)
    folder = RunFolder(run)
    if is_benchmark(folder):
        with tools.progress() as progress:
            done = bench_report(folder, progress=progress)
        _say(tools, json, {"page": str(done.page), "lines": done.lines}, [*done.lines, f"page: {done.page}"])
        return
    result = verbs.report(folder)
    if json:
        verdicts = Store(folder).read(VERDICTS)
        say_json({"page": str(result.page), "verdicts": verdicts})
    else:
        _finish(tools, result)


@app.command()
def export(
    ctx: typer.Context,
    run: Run,
    inspect: Annotated[bool, typer.Option("--inspect", help="Logs for Inspect AI's viewer, one a judge.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="For --inspect: where they go.", metavar="FOLDER")] = None,
    arrow: Annotated[
        Path | None, typer.Option("--arrow", help="Copy the tables as Arrow files into this folder.", metavar="FOLDER")
    ] = None,
) -> None:
    """Write what judges were asked and answered as logs for Inspect's viewer, or the tables for a notebook."""
    tools = tools_of(ctx)
    if inspect != (out is not None) or (out is None and arrow is None):
        raise typer.BadParameter("give --inspect --out FOLDER, or --arrow FOLDER, or both")
    folder = RunFolder(run)
    with tools.progress() as progress:
        logs = export_inspect(folder, out, progress=progress) if out is not None else []
    tools.say_all((*map(str, logs), *map(str, export_arrow(folder, arrow) if arrow is not None else ())))


@app.command()
def doctor(ctx: typer.Context, json: AsJson = False) -> None:
    """Say what is installed, which keys are present (never their values), and what can run."""
    tools = tools_of(ctx)
    findings = examination.examine(os.environ)
    runs = examination.can_run(findings, sorted(tools.models()))
    _say(tools, json, {"findings": findings, "can_run": runs}, [*map(_found, findings), *runs])
    if any(not finding.present for finding in findings if finding.needed):
        raise AssayError("a package that assaymark needs is missing")


def _found(finding: examination.Finding) -> str:
    mark = "yes" if finding.present else ("NO " if finding.needed else "no ")
    return f"{mark}  {finding.what:<20} {finding.detail}"


def _say(tools: Tools, json: bool, value: object, lines: Iterable[str]) -> None:
    """The same thing for a program or for a person."""
    if json:
        say_json(value)
    else:
        tools.say_all(lines)


def _finish(tools: Tools, result: verbs.Reported) -> None:
    tools.show(result.summary)
    tools.say_all([f"page: {result.page}"])
