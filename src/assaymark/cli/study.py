"""`assaymark run` and its steps: the commands of a study, from records to pages."""

from __future__ import annotations

import os
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from assaymark.cli.options import (
    KEPT,
    NOTHING,
    WHOLE,
    AsJson,
    Budget,
    DryRun,
    Ledger,
    PriceFile,
    StrictAgents,
    Tools,
    examples,
    say,
    say_forecast,
    say_json,
    tools_of,
)
from assaymark.errors import AssayError, LedgerError
from assaymark.importers import IMPORTERS, template
from assaymark.protocol import parse_study
from assaymark.records import to_json
from assaymark.report.records.study import Calls
from assaymark.workflow import doctor as examination
from assaymark.workflow import forecast as costs
from assaymark.workflow import verbs
from assaymark.workflow.ask import prices_of, require_not_stopped
from assaymark.workflow.export import export_arrow, export_inspect
from assaymark.workflow.joining import TITLE, join_runs, kind_of
from assaymark.workflow.run_folder import RunFolder, new_folder, read_lock, read_text
from assaymark.workflow.score_files import computing_of, measure_table
from assaymark.workflow.tables import MEASUREMENTS, VERDICTS, Store
from assaymark.workflow.tracks.benchmark import bench_report
from assaymark.workflow.tracks.datasheet import datasheet_report
from assaymark.workflow.version_1 import adopt_rules

app = typer.Typer(rich_markup_mode=None)

Run = Annotated[Path, typer.Argument(help="Run folder.", metavar="RUN")]
StudyFile = Annotated[Path, typer.Argument(help="Study file (TOML).", metavar="STUDY")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Run folder to work in.", metavar="RUN")]


@app.command(epilog=examples("assaymark demo", "assaymark demo --out /tmp/first --verbose"))
def demo(ctx: typer.Context, out: Out = Path("assaymark-demo"), json: AsJson = False) -> None:
    """Take a small study of four reference agents to its verdict page: no key, no file, no network."""
    tools = tools_of(ctx)
    with tools.progress() as progress:
        result = verbs.demo(RunFolder(out), tools.models(), now=datetime.now(UTC), progress=progress)
    _finish(tools, json, RunFolder(out), result)


@app.command(
    "import",
    epilog=examples(
        "assaymark import template > records/map.toml",
        "assaymark import generic records/ --out runs/mine",
        "assaymark import capitalbench artifacts/ --out runs/cb",
    ),
)
def import_(
    ctx: typer.Context,
    format: Annotated[
        str, typer.Argument(help=f"{', '.join(sorted(IMPORTERS))}, human, or: template.", metavar="FORMAT")
    ],
    path: Annotated[Path | None, typer.Argument(help="Folder or file to read.", metavar="PATH")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder to write.", metavar="RUN")] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Import the good records of a bad file.")] = False,
    rubric: Annotated[
        str, typer.Option("--rubric", help="For human: the rubric that people graded by.", metavar="NAME")
    ] = "v1.0",
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
        raise typer.BadParameter("PATH and --out are needed", ctx=ctx)
    if format == "human":
        grades = verbs.import_grades(RunFolder(out), path, rubric=rubric)
        say(tools, json, {"grades": grades}, [f"{grades} grades by people"])
        return
    with tools.progress(WHOLE) as progress:
        report = verbs.import_records(format, path, RunFolder(out), keep_going=keep_going, progress=progress)
    say(tools, json, report, report.lines())
    if report.problems:
        raise AssayError(f"{len(report.problems)} problems were left out; the good records are in {out}")


@app.command(epilog=examples("assaymark lock study.toml --out runs/mine"))
def lock(ctx: typer.Context, study: StudyFile, out: Out, json: AsJson = False) -> None:
    """Fix a plan before any judge is called: validate it, say what it can ever conclude, fingerprint it."""
    tools = tools_of(ctx)
    text = read_text(study, "study file")
    with tools.progress() as progress:
        locked = verbs.lock(
            RunFolder(out), text, str(study), now=datetime.now(UTC), models=tools.models(), progress=progress
        )
    found = {"plan_hash": locked.plan_hash, "locked_at": locked.locked_at, "preflight": locked.preflight}
    say(tools, json, found | {"date_probes": locked.date_probes}, verbs.lock_lines(locked))


@app.command(
    epilog=examples(
        'assaymark amend study.toml --out runs/mine --reason "a third judge"', "assaymark amend runs/old --rules 2"
    )
)
def amend(
    ctx: typer.Context,
    study: Annotated[Path, typer.Argument(help="Study file (TOML); for --rules, a run folder.", metavar="STUDY|RUN")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder to work in.", metavar="RUN")] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why; every reader of a verdict sees it.", metavar="TEXT")
    ] = None,
    rules: Annotated[
        Literal["2"] | None,
        typer.Option("--rules", help="Bring a run of version 1 under these rules; no reply is lost."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Change a locked plan in the open: dated, hashed, with a reason; thresholds only before any judge was asked.

    With --rules, a study, season or benchmark that assaymark 0.1 locked goes on under the rules of this version.
    """
    tools, now = tools_of(ctx), datetime.now(UTC)
    if rules is not None:
        if out is not None or reason is not None:
            raise typer.BadParameter("--rules takes a run folder and nothing else", ctx=ctx)
        folder = RunFolder(study)
        made = adopt_rules(folder, now=now)
    elif out is None or reason is None:
        raise typer.BadParameter("--out and --reason are needed, or RUN --rules 2", ctx=ctx)
    else:
        folder, text = RunFolder(out), read_text(study, "study file")
        made = verbs.amend(folder, text, str(study), reason=reason, now=now, models=tools.models())
    value = {"amendment": made, "plan_hash": made.plan_after, "preregistered": read_lock(folder)["preregistered"]}
    say(tools, json, value, verbs.amendment_lines(made))


@app.command(
    epilog=examples(
        "assaymark run study.toml --out runs/mine",
        "assaymark run study.toml --out runs/mine --dry-run",
        "assaymark run study.toml --out runs/mine --budget 5",
    )
)
def run(
    ctx: typer.Context, study: StudyFile, out: Out, ledger: Ledger = None, budget: Budget = None,
    prices: PriceFile = None, strict_agents: StrictAgents = False, dry_run: DryRun = False, json: AsJson = False,
) -> None:  # fmt: skip
    """Lock, decide, judge, measure, claim and report, as far as they are not done; can be killed and run again."""
    tools = tools_of(ctx)
    folder, text = RunFolder(out), read_text(study, "study file")
    who = costs.paid_models(tools.models(), budget, prices, strict=strict_agents)
    if dry_run:
        say_forecast(tools, json, costs.expect_study(folder, text, str(study), who, prices_of(who)))
        return
    with tools.progress() as progress:
        with new_folder(folder.path) if ledger is not None else nullcontext():
            if ledger is not None:
                verbs.name_ledger(folder, ledger)
            verbs.start(folder, text, str(study), now=datetime.now(UTC), models=who, progress=progress)
        result = verbs.finish(folder, who, progress=progress)
    _finish(tools, json, folder, result, costs.paid_of(folder, prices_of(who)))


@app.command(epilog=examples("assaymark worker runs/mine", "assaymark worker --ledger postgresql://host/assay"))
def worker(
    ctx: typer.Context,
    run: Annotated[Path | None, typer.Argument(help="Run folder.", metavar="RUN")] = None, ledger: Ledger = None,
    budget: Budget = None, prices: PriceFile = None, json: AsJson = False,
) -> None:  # fmt: skip
    """Answer the planned calls of a shared ledger beside other workers, until none is left."""
    tools = tools_of(ctx)
    if (run is None) == (ledger is None):
        raise typer.BadParameter("give a run folder, or --ledger URL", ctx=ctx)
    who = costs.paid_models(tools.models(), budget, prices)
    where = ledger or RunFolder(run or Path())
    with tools.progress() as progress:
        summary = verbs.work(where, who, progress=progress)
    say(tools, json, summary, verbs.work_lines(summary))
    require_not_stopped(summary, "the ledger" if isinstance(where, str) else where)


@app.command(epilog=examples("assaymark judge runs/mine", "assaymark judge runs/mine --dry-run"))
def judge(
    ctx: typer.Context, run: Run, budget: Budget = None, prices: PriceFile = None,
    strict_agents: StrictAgents = False, dry_run: DryRun = False,
    reparse: Annotated[
        bool, typer.Option("--reparse", help="Only reread stored replies, by a newer version's parser (an amendment).")
    ] = False,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Put every decision before every judge of the locked plan, and every number against its material.

    A study that makes its own records first has its agents decide.
    """
    tools, folder = tools_of(ctx), RunFolder(run)
    if reparse:
        with tools.progress(WHOLE) as progress:
            read = verbs.reparse(folder, now=datetime.now(UTC), progress=progress)
        say(tools, json, {"amendment": read.amendment}, read.lines)
        return
    who = costs.paid_models(tools.models(), budget, prices, strict=strict_agents)
    if dry_run:
        say_forecast(tools, json, costs.expect_judging(folder, prices_of(who)))
        return
    with tools.progress() as progress:
        verbs.decide(folder, who, progress=progress)
        result = verbs.judge(folder, who, progress=progress)
    paid = costs.paid_of(folder, prices_of(who))
    line = f"{result.judgments} judgments ({result.made} calls made now), {result.evidence} numbers ledgered"
    say(tools, json, to_json(result) | {"paid": paid.views}, [line, *paid.lines])


@app.command(
    epilog=examples(
        "assaymark measure runs/mine",
        "assaymark measure --judgments scores.csv --dimensions clarity,risk",
        "assaymark measure --judgments scores/ --dimensions clarity,risk --out big",
    )
)
def measure(
    ctx: typer.Context,
    run: Annotated[Path | None, typer.Argument(help="Run folder.", metavar="RUN")] = None,
    judgments: Annotated[
        Path | None,
        typer.Option("--judgments", help="Scores made elsewhere: CSV, JSONL, Parquet, Arrow, or a folder of these.",
                     metavar="PATH"),
    ] = None,
    study: Annotated[
        Path | None, typer.Option("--study", help="For --judgments: the plan; default: defaults.", metavar="STUDY")
    ] = None,
    dimensions: Annotated[
        str | None,
        typer.Option("--dimensions", help="For --judgments: columns that hold scores, a comma list.", metavar="NAMES"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="For --judgments: where to write.", metavar="RUN")
    ] = None,
    compute: Annotated[
        str | None, typer.Option("--compute", help="For a folder: serial, processes or ray.", metavar="HOW")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Partitions at once; default: cores.", metavar="N")
    ] = None,
    ray: Annotated[
        str | None, typer.Option("--ray", help="Cluster; default: RAY_ADDRESS, or one here.", metavar="ADDRESS")
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option("--deadline", help="Seconds that a partition may take; default: 3600.", metavar="SECONDS"),
    ] = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Measure the judges, the agents and the evidence of a run, or a bare table of scores."""
    tools = tools_of(ctx)
    if (run is None) == (judgments is None):
        raise typer.BadParameter("give a run folder, or --judgments FILE", ctx=ctx)
    if judgments is not None:
        plan = None if study is None else parse_study(read_text(study, "study file"), source=str(study))
        with tools.progress(NOTHING if out is None else KEPT) as progress:
            found = measure_table(
                judgments, plan, None if out is None else RunFolder(out), dimensions=dimensions,
                computing=computing_of(compute, workers, ray, deadline), progress=progress,
            )  # fmt: skip
        value: object = {"measurements": found.measurements, "verdicts": found.verdicts, "notes": found.notes}
        say(tools, json, value, found.lines())
    elif run is not None:
        with tools.progress(WHOLE) as progress:
            count = verbs.measure(RunFolder(run), progress=progress)
        value = {"measurements": Store(RunFolder(run)).read(MEASUREMENTS)} if json else {}
        say(tools, json, value, [f"{count} measurements"])


@app.command(epilog=examples("assaymark claim runs/mine", "assaymark claim --verify runs/mine/certificates/CLAIM.json"))
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
        raise typer.BadParameter("give a run folder, or --verify CERTIFICATE", ctx=ctx)
    if run is not None:
        file = verbs.claim(RunFolder(run))
        tally = ", ".join(f"{count} {level}" for level, count in file.tally.items())
        say(tools, json, file, [f"{tally}; written to {run}/verdicts.json"])
        return
    found = {path: verbs.verify_certificate(path) for path in verify or ()}
    lines = [line for path, one in found.items() for line in verbs.verification_lines(one, path)]
    say(tools, json, {str(path): one for path, one in found.items()}, lines)
    if wrong := sum(not one.ok for one in found.values()):
        raise AssayError(f"{wrong} of {len(found)} certificates do not follow from their own tables")


@app.command(epilog=examples("assaymark verify runs/mine", "assaymark verify runs/mine --json | jq .differences"))
def verify(ctx: typer.Context, run: Run, json: AsJson = False) -> None:
    """Check that a run is as it was written: lock, plan, ledger, objects, tables, verdicts, certificates.

    Nothing is changed, and a read-only copy will do. Exit status 1 if anything differs; every such file is named.
    """
    tools = tools_of(ctx)
    found = verbs.verify_run(RunFolder(run))
    value = {"same": found.same, "differences": found.differences, "notes": found.notes}
    say(tools, json, value, found.lines)
    if count := len(found.differences):
        raise AssayError(f"{run}: {count} difference{'s' if count > 1 else ''}, named above")


@app.command("plan-calls", epilog=examples("assaymark plan-calls runs/mine --budget 500"))
def plan_calls(
    ctx: typer.Context,
    run: Run,
    budget: Annotated[
        int, typer.Option("--budget", min=1, help="Judge calls that can still be made.", metavar="CALLS")
    ],
    json: AsJson = False,
) -> None:
    """Say which further judge calls would most likely move a claim to the next level, by simulation.

    Beside it a D-study: from the variance components of the run, the extension with the fewest calls (judges, trials,
    cycles in a cluster, clusters) that finds the gap of the claim with the plan's power, and what one more call buys.
    """
    tools = tools_of(ctx)
    with tools.progress(NOTHING) as progress:
        plan = verbs.plan_calls(RunFolder(run), budget, progress=progress)
    say(tools, json, plan.document, verbs.plan_calls_lines(plan))


@app.command(
    epilog=examples(
        "assaymark report runs/mine",
        "assaymark report runs/mine --calls none --json | jq .verdicts",
        "assaymark report runs/study runs/judges runs/season --out site",
    )
)
def report(
    ctx: typer.Context,
    runs: Annotated[list[Path], typer.Argument(help="Run folder; several make one site.", metavar="RUN")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Make a site of the runs in this folder.", metavar="SITE")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Of the first page of a site.")] = TITLE,
    calls: Annotated[
        Calls, typer.Option("--calls", help="Calls of a study that get pages, as they were asked and answered.")
    ] = "all",
    json: AsJson = False,
) -> None:
    """Write the pages and print the summary; with --out, join the pages of several runs to one site."""
    tools = tools_of(ctx)
    folders = [RunFolder(run) for run in runs]
    if out is None and len(folders) > 1:
        raise typer.BadParameter("several runs make one site: say where with --out SITE", ctx=ctx)
    if out is not None:
        with tools.progress(WHOLE) as progress:
            joined = join_runs(folders, out, title=title, calls=calls, progress=progress)
        lines = [f"{len(joined.runs)} runs, {len(joined.pages)} files", f"page: {joined.page}"]
        say(tools, json, {"page": str(joined.page), "runs": joined.named}, lines)
    else:
        try:
            _report_one(tools, json, folders[0], calls)
        except LedgerError as exc:
            if os.access(runs[0], os.W_OK):
                raise
            raise LedgerError(f"{exc}; to have the pages elsewhere: assaymark report {runs[0]} --out SITE") from None


def _report_one(tools: Tools, json: bool, folder: RunFolder, calls: Calls) -> None:
    """The pages of one run in its own folder, whatever it holds."""
    match kind_of(folder):
        case "portbench":
            with tools.progress(WHOLE) as progress:
                done = bench_report(folder, calls=calls, progress=progress)
            value = {"page": str(done.page), "verdicts": Store(folder).read(VERDICTS)}
            say(tools, json, value, [*done.lines, f"page: {done.page}"])
        case "season":
            raise AssayError(
                f"the pages of a season are a site; run: assaymark season publish {folder.path} --out SITE"
            )
        case "judges":
            made = datasheet_report(folder, calls=calls)
            value = {"page": str(made.page), "datasheets": made.sheets, "agreement": made.agreement}
            say(tools, json, value, [f"{len(made.sheets)} datasheets", f"page: {made.page}"])
        case "study":
            _finish(tools, json, folder, verbs.report(folder, calls=calls))


@app.command(
    epilog=examples("assaymark export runs/mine --arrow tables/", "assaymark export runs/mine --inspect --out logs/")
)
def export(
    ctx: typer.Context,
    run: Run,
    inspect: Annotated[bool, typer.Option("--inspect", help="Logs for Inspect AI's viewer, one a judge.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="For --inspect: where they go.", metavar="FOLDER")
    ] = None,
    arrow: Annotated[
        Path | None, typer.Option("--arrow", help="Copy the tables as Arrow files into this folder.", metavar="FOLDER")
    ] = None,
    json: AsJson = False,
) -> None:
    """Write what judges were asked and answered as logs for Inspect's viewer, or the tables for a notebook."""
    tools = tools_of(ctx)
    if inspect != (out is not None) or (out is None and arrow is None):
        raise typer.BadParameter("give --inspect --out FOLDER, or --arrow FOLDER, or both", ctx=ctx)
    folder = RunFolder(run)
    with tools.progress(WHOLE) as progress:
        logs = export_inspect(folder, out, progress=progress) if out is not None else []
        tables = [str(one) for one in export_arrow(folder, arrow)] if arrow is not None else []
    told = [{"path": str(one.path), "judge": one.judge, "samples": one.samples, "scored": one.scored} for one in logs]
    value = {"logs": told, "tables": tables}
    say(tools, json, value, [*map(str, logs), *tables])


@app.command(epilog=examples("assaymark doctor", "assaymark doctor --json | jq .can_run"))
def doctor(ctx: typer.Context, json: AsJson = False) -> None:
    """Say what is installed, which keys are present (never their values), and what can run."""
    tools = tools_of(ctx)
    findings = examination.examine(os.environ)
    runs = examination.can_run(findings, sorted(tools.models()))
    say(tools, json, {"findings": findings, "can_run": runs}, [*map(_found, findings), *runs])
    if any(not finding.present for finding in findings if finding.needed):
        raise AssayError("a package that assaymark needs is missing")


def _found(finding: examination.Finding) -> str:
    mark = "yes" if finding.present else ("NO " if finding.needed else "no ")
    return f"{mark}  {finding.what:<20} {finding.detail}"


def _finish(
    tools: Tools, json: bool, folder: RunFolder, result: verbs.Reported, paid: costs.Paid | None = None
) -> None:
    """The result of a study: its verdicts for a program, their summary for a person."""
    if json:
        views = {} if paid is None else {"paid": paid.views}
        say_json({"page": str(result.page), "verdicts": Store(folder).read(VERDICTS)} | views)
        return
    tools.show(result.summary)
    tools.say_all([f"page: {result.page}", *(() if paid is None else paid.lines)])
