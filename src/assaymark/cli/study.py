"""`assaymark run` and its steps: the commands of a study, from records to pages."""

from __future__ import annotations

import os
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from assaymark.cli import check as tables
from assaymark.cli.options import (
    KEPT,
    NOTHING,
    WHOLE,
    AsJson,
    Budget,
    DryRun,
    Ledger,
    PriceFile,
    Services,
    StrictAgents,
    examples,
    option,
    refuse,
    say,
    say_forecast,
    say_paid,
    tools_of,
)
from assaymark.engine.providers.registry import Models
from assaymark.errors import AssayError, LedgerError
from assaymark.importers import IMPORTERS, template
from assaymark.protocol import parse_study
from assaymark.records import to_json
from assaymark.report.records.study import Calls
from assaymark.workflow import forecast as costs
from assaymark.workflow import verbs
from assaymark.workflow.amend import make_controls
from assaymark.workflow.ask import prices_of, require_not_stopped
from assaymark.workflow.check import check_real, is_plan_of_scores, is_table, lock_plan, open_checked
from assaymark.workflow.export import export_arrow, export_inspect
from assaymark.workflow.joining import TITLE, join_runs, kind_of
from assaymark.workflow.plan_calls import PRICES
from assaymark.workflow.publish import report_unfinished
from assaymark.workflow.run_folder import RunFolder, new_folder, read_lock
from assaymark.workflow.score_files import computing_of, measure_table
from assaymark.workflow.tables import MEASUREMENTS, VERDICTS, Store
from assaymark.workflow.track import study_text
from assaymark.workflow.tracks.benchmark import bench_report
from assaymark.workflow.tracks.datasheet import datasheet_report
from assaymark.workflow.version_1 import adopt_rules

app = typer.Typer(rich_markup_mode=None)

Run = Annotated[Path, typer.Argument(help="Run folder.", metavar="RUN")]
MaybeRun = Annotated[Path | None, typer.Argument(help="Run folder.", metavar="RUN")]
StudyFile = Annotated[Path, typer.Argument(help="Study file (TOML).", metavar="STUDY")]
Out = Annotated[Path, option("Run folder to work in.", "RUN", "--out", "-o")]


@app.command(epilog=examples("assaymark demo", "assaymark demo --real", "assaymark demo --out /tmp/first --verbose"))
def demo(
    ctx: typer.Context,
    real: Annotated[bool, typer.Option("--real", help="Check published grades of six language models.")] = False,
    out: Annotated[Path | None,
        option("Run folder to work in; default: assaymark-demo[-real].", "RUN", "--out", "-o")] = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Run a small built-in study and write its report: no key, no file, no network."""
    tools, out = tools_of(ctx), out or Path("assaymark-demo-real" if real else "assaymark-demo")
    if real:
        with tools.progress(NOTHING) as progress:
            found, page = check_real(out, progress)
        tables.show_checked(tools, json, found, page)
        return
    with tools.progress() as progress:
        result = verbs.demo(RunFolder(out), tools.models(), datetime.now(UTC), progress)
    _finish(tools, json, RunFolder(out), result)


@app.command(
    "import",
    epilog=examples(
        "assaymark import template > records/map.toml",
        "assaymark import generic records/ --out runs/mine",
        "assaymark import capitalbench artifacts/ --out runs/cb",
        "assaymark import nof1 snapshot/ --out runs/nof1",
        "assaymark import deepfund deepfund.db --out runs/deepfund",
    ),
)
def import_(
    ctx: typer.Context,
    format: Annotated[
        str, typer.Argument(help=f"{', '.join(sorted(IMPORTERS))}, human, or: template.", metavar="FORMAT")
    ],
    path: Annotated[Path | None, typer.Argument(help="Folder or file to read.", metavar="PATH")] = None,
    out: Annotated[Path | None, option("Run folder to write.", "RUN", "--out", "-o")] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Import the good records of a bad file.")] = False,
    rubric: Annotated[
        str, option("For human: rubric that people graded by, or its file.", "NAME", "--rubric")
    ] = "v1.0",
    json: AsJson = False,
) -> None:
    """Import existing records into a run folder, or print the template of the generic format.

    FORMAT human reads a table of grades that people gave to records that were imported before.
    """
    tools = tools_of(ctx)
    if format == "template":
        typer.echo(template(), nl=False)
        return
    if path is None or out is None:
        refuse(ctx, "PATH and --out are needed")
    if format == "human":
        grades = verbs.import_grades(RunFolder(out), path, rubric=rubric)
        say(tools, json, {"grades": grades}, [f"{grades} grades by people"])
        return
    with tools.progress(WHOLE) as progress:
        report = verbs.import_records(format, path, RunFolder(out), keep_going, progress)
    say(tools, json, report, report.lines())
    if report.problems:
        raise AssayError(f"{len(report.problems)} problems were left out; the good records are in {out}")


@app.command(
    epilog=examples("assaymark controls runs/mine", "assaymark controls runs/b --count 10 --kinds cell_a,fact_flip")
)
def controls(
    ctx: typer.Context, run: Run,
    count: Annotated[int, option("Texts of each kind.", "N", "--count", min=1)] = 30,
    kinds: Annotated[str, option("Some of cell_a, cell_b, fact_flip.", "NAMES", "--kinds")] = "cell_a,cell_b,fact_flip",
    seed: Annotated[int, option("Random seed of the texts.", "N", "--seed")] = 0,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Make control texts from imported records before they are judged.

    Verbose but wrong, terse but right, and records with one number changed, where the arithmetic can be verified.
    """
    tools, now = tools_of(ctx), datetime.now(UTC)
    with tools.progress() as progress:
        made = make_controls(
            RunFolder(run), now, count, [one.strip() for one in kinds.split(",")], seed,
            progress=progress,
        )  # fmt: skip
    say(tools, json, made, list(made.lines()))


@app.command(epilog=examples("assaymark lock study.toml --out runs/mine"))
def lock(ctx: typer.Context, study: StudyFile, out: Out, json: AsJson = False) -> None:
    """Freeze a plan before any judge is called: validate it, report its statistical power, fingerprint it."""
    tools, now = tools_of(ctx), datetime.now(UTC)
    text = study_text(study)
    if is_plan_of_scores(text, str(study)):
        made, when = lock_plan(RunFolder(out), text, str(study), now)
        lines = [f"plan hash {made}", f"locked {when}", f"then: assaymark check TABLE --study {out}"]
        say(tools, json, {"plan_hash": made, "locked_at": when}, lines)
        return
    with tools.progress() as progress:
        locked = verbs.lock(RunFolder(out), text, str(study), now, tools.models(), progress)
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
    out: Annotated[Path | None, option("Run folder to work in.", "RUN", "--out", "-o")] = None,
    reason: Annotated[str | None, option("Reason, shown with every verdict.", "TEXT", "--reason")] = None,
    rules: Annotated[
        Literal["2"] | None, typer.Option("--rules", help="New rules for a run of version 1; keeps all replies.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Change a locked plan on the record: dated, hashed, with a reason; thresholds only before any judge was asked.

    With --rules, a study, season or benchmark that assaymark 0.1 locked continues under the rules of this version.
    """
    tools, now = tools_of(ctx), datetime.now(UTC)
    if rules is not None:
        if out is not None or reason is not None:
            refuse(ctx, "--rules takes a run folder and nothing else")
        folder = RunFolder(study)
        made = adopt_rules(folder, now)
    elif out is None or reason is None:
        refuse(ctx, "--out and --reason are needed, or RUN --rules 2")
    else:
        folder, text = RunFolder(out), study_text(study)
        made = verbs.amend(folder, text, str(study), reason, now, tools.models())
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
    """Lock, decide, judge, measure, claim and report, skipping what is done; resumes after a kill."""
    tools, now = tools_of(ctx), datetime.now(UTC)
    folder, text = RunFolder(out), study_text(study)
    who = costs.paid_models(tools.models(), budget, prices, strict=strict_agents)
    if dry_run:
        say_forecast(tools, json, costs.expect_study(folder, text, str(study), who, prices_of(who)))
        return
    with tools.progress() as progress:
        with new_folder(folder.path) if ledger is not None else nullcontext():
            if ledger is not None:
                verbs.name_ledger(folder, ledger)
            verbs.start(folder, text, str(study), now, who, progress)
        result = verbs.finish(folder, who, progress)
    _finish(tools, json, folder, result, who)


@app.command(epilog=examples("assaymark worker runs/mine", "assaymark worker --ledger postgresql://host/assay"))
def worker(
    ctx: typer.Context, run: MaybeRun = None, ledger: Ledger = None, budget: Budget = None, prices: PriceFile = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Answer the planned calls of a shared ledger, together with other workers, until none is left."""
    tools = tools_of(ctx)
    if (run is None) == (ledger is None):
        refuse(ctx, "give a run folder, or --ledger URL")
    who = costs.paid_models(tools.models(), budget, prices)
    where = ledger or RunFolder(run or Path())
    with tools.progress() as progress:
        summary = verbs.work(where, who, progress)
    say(tools, json, summary, verbs.work_lines(summary))
    require_not_stopped(summary, "the ledger" if isinstance(where, str) else where)


@app.command(epilog=examples("assaymark judge runs/mine", "assaymark judge runs/mine --dry-run"))
def judge(
    ctx: typer.Context, run: Run, budget: Budget = None, prices: PriceFile = None,
    strict_agents: StrictAgents = False, dry_run: DryRun = False,
    reparse: Annotated[bool,
        typer.Option("--reparse", help="Only parse stored replies again, with this version (an amendment).")] = False,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Score every decision with every judge of the locked plan, and check every number against its context.

    A study that makes its own records first has its agents decide.
    """
    tools, folder = tools_of(ctx), RunFolder(run)
    if reparse:
        with tools.progress(WHOLE) as progress:
            read = verbs.reparse(folder, datetime.now(UTC), progress)
        say(tools, json, {"amendment": read.amendment}, read.lines)
        return
    who = costs.paid_models(tools.models(), budget, prices, strict=strict_agents)
    if dry_run:
        say_forecast(tools, json, costs.expect_judging(folder, prices_of(who)))
        return
    with tools.progress() as progress:
        verbs.decide(folder, who, progress)
        result = verbs.judge(folder, who, progress)
    line = f"{result.judgments} judgments ({result.made} calls made now), {result.evidence} numbers ledgered"
    say_paid(tools, json, folder, who, to_json(result), [line])


@app.command(
    epilog=examples(
        "assaymark measure runs/mine", "assaymark measure --judgments scores/ --dimensions clarity,risk --out big"
    )
)
def measure(
    ctx: typer.Context, run: MaybeRun = None,
    judgments: Annotated[Path | None,
        option("Folder of partitions; for one file use: assaymark check.", "PATH", "--judgments")] = None,
    study: Annotated[Path | None, option("For --judgments: the plan; default: defaults.", "STUDY", "--study")] = None,
    dimensions: tables.Criteria = None, role_map: tables.RoleMap = None, scale: tables.OnScale = None,
    judges: tables.Judges = None, family: tables.Makers = None, cluster: tables.Cluster = None,
    cluster_order: tables.Order = None, without: tables.Without = None,
    out: Annotated[Path | None, option("For --judgments: output folder.", "RUN", "--out", "-o")] = None,
    compute: Annotated[str | None, option("For a folder: serial, processes or ray.", "HOW", "--compute")] = None,
    workers: Annotated[int | None, option("Partitions at once; default: cores.", "N", "--workers", min=1)] = None,
    ray: Annotated[str | None, option("Ray cluster; default: RAY_ADDRESS, or local.", "ADDRESS", "--ray")] = None,
    deadline: Annotated[float | None, option("Seconds per partition; default: 3600.", "SECONDS", "--deadline")] = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Measure the judges, the agents and the evidence of a run, or of a folder of partitions of scores."""
    tools = tools_of(ctx)
    if (run is None) == (judgments is None):
        refuse(ctx, "give a run folder, or --judgments PATH")
    computing = computing_of(compute, workers, ray, deadline)
    if judgments is not None and computing is None and not judgments.is_dir():  # as `check`, under its old name
        tables.run_check(tools, judgments, out, json, role_map=role_map, scale=scale, dimensions=dimensions,
                         judges=judges, family=family, cluster=cluster, cluster_order=cluster_order, without=without,
                         study=study)  # fmt: skip
    elif judgments is not None:
        plan = None if study is None else parse_study(study_text(study), source=str(study))
        with tools.progress(NOTHING if out is None else KEPT) as progress:
            found = measure_table(
                judgments, plan, None if out is None else RunFolder(out), dimensions, computing,
                progress,
            )  # fmt: skip
        value: object = {"measurements": found.measurements, "verdicts": found.verdicts, "notes": found.notes}
        say(tools, json, value, found.lines())
    elif run is not None:
        with tools.progress(WHOLE) as progress:
            count = verbs.measure(RunFolder(run), progress)
        value = {"measurements": Store(RunFolder(run)).read(MEASUREMENTS)} if json else {}
        say(tools, json, value, [f"{count} measurements"])


@app.command(epilog=examples("assaymark claim runs/mine", "assaymark claim --verify runs/mine/certificates/CLAIM.json"))
def claim(
    ctx: typer.Context, runs: Annotated[list[Path] | None,
        typer.Argument(help="Run folder; with --verify, more certificates.", metavar="RUN")] = None,
    verify: Annotated[list[Path] | None,
        option("Certificates to recompute from their own tables.", "FILE", "--verify")] = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Decide which claims are supported, or verify certificates without any judged text."""
    tools = tools_of(ctx)
    if not verify:
        if len(runs or ()) != 1:
            refuse(ctx, "give a run folder, or --verify CERTIFICATE")
        file = verbs.claim(RunFolder((runs or [Path()])[0]))
        tally = ", ".join(f"{count} {level}" for level, count in file.tally.items())
        say(tools, json, file, [f"{tally}; written to {(runs or [Path()])[0]}/verdicts.json"])
        return
    verify = [*verify, *(runs or ())]
    found = {path: verbs.verify_certificate(path) for path in verify}
    lines = [line for path, one in found.items() for line in verbs.verification_lines(one, path)]
    say(tools, json, {str(path): one for path, one in found.items()}, lines)
    if wrong := sum(not one.ok for one in found.values()):
        raise AssayError(f"{wrong} of {len(found)} certificates do not follow from their own tables")


@app.command(epilog=examples("assaymark verify runs/mine", "assaymark verify runs/mine --json | jq .differences"))
def verify(ctx: typer.Context, run: Run, json: AsJson = False) -> None:
    """Check every file of a run against its digests: lock, plan, ledger, objects, tables, verdicts, certificates.

    Nothing is changed, and a read-only copy is enough. Exit status 1 if anything differs; every such file is named.
    """
    tools = tools_of(ctx)
    found = verbs.verify_run(RunFolder(run))
    value = {
        "same": found.same,
        "differences": [{"file": difference.where, "what": difference.what} for difference in found.differences],
        "notes": found.notes,
    }
    say(tools, json, value, found.lines)
    if count := len(found.differences):
        raise AssayError(f"{run}: {count} difference{'s' if count > 1 else ''}, named above")


@app.command(
    "plan-calls",
    epilog=examples(
        "assaymark plan-calls runs/mine --budget 500",
        "assaymark plan-calls runs/mine --effect .3 --price call=.01 --price human=2",
    ),
)
def plan_calls(
    ctx: typer.Context, run: Run,
    budget: Annotated[int | None, option("Number of further judge calls.", "CALLS", "--budget", min=1)] = None,
    effect: Annotated[float | None, option("Difference to find; default: the claim's.", "POINTS", "--effect")] = None,
    price: Annotated[list[str] | None,
        option("Price of a record, call or human grade; repeatable.", "WHAT=USD", "--price")] = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Simulate which further judge calls would most likely raise a claim to the next level.

    Also run a D-study: from the variance components of the run, the extension with the fewest calls (judges, trials,
    cycles in a cluster, clusters) that finds the gap of the claim with the plan's power, and what one more call buys.
    With a price of human grades, the cheapest design is one that people confirm.
    """
    tools, given = tools_of(ctx), dict(PRICES if not price else {})
    if budget is None and effect is None:
        refuse(ctx, "--budget or --effect is needed")
    for one in price or ():
        name, _, value = one.partition("=")
        try:
            given[name.strip()] = float(value)
        except ValueError:
            refuse(ctx, f"--price must be written call=0.01 (got {one!r})")
    with tools.progress(NOTHING) as progress:
        plan = verbs.plan_calls(RunFolder(run), budget, effect, given, progress)
    say(tools, json, plan.document, verbs.plan_calls_lines(plan))


@app.command(
    epilog=examples(
        "assaymark report runs/mine",
        "assaymark report runs/mine --calls none --json | jq .verdicts",
        "assaymark report runs/mine --language de",
        "assaymark report runs/study runs/judges runs/season --out site",
    )
)
def report(
    ctx: typer.Context,
    runs: Annotated[list[Path], typer.Argument(help="Run folder; several make one site.", metavar="RUN")],
    out: Annotated[Path | None, option("Folder of a site of all runs.", "SITE", "--out", "-o")] = None,
    title: Annotated[str, typer.Option("--title", help="Title of the site's index page.")] = TITLE,
    calls: Annotated[Calls, typer.Option("--calls", help="Raw calls of a study that get pages.")] = "all",
    language: Annotated[str, option("Further language of the main pages: de.", "LANGUAGE", "--language")] = "",
    json: AsJson = False,
) -> None:
    """Write the pages and print the summary; with --out, join the pages of several runs into one site."""
    tools, folders = tools_of(ctx), [RunFolder(run) for run in runs]
    if out is None and len(folders) > 1:
        refuse(ctx, "several runs make one site: say where with --out SITE")
    if out is not None:
        with tools.progress(WHOLE) as progress:
            shown, pages = join_runs(folders, out, title, calls, progress)
        named = [{"kind": one.kind, "title": one.title, "claims": one.verdicts} for one in shown]
        page, lines = out / "index.html", [f"{len(shown)} runs, {len(pages)} files"]
        say(tools, json, {"page": str(page), "runs": named}, [*lines, f"page: {page}"])
        return
    try:
        _report_one(tools, json, folders[0], calls, language)
    except LedgerError as exc:
        if os.access(runs[0], os.W_OK):
            raise
        raise LedgerError(f"{exc}; to have the pages elsewhere: assaymark report {runs[0]} --out SITE") from None


def _report_one(tools: Services, json: bool, folder: RunFolder, calls: Calls, language: str) -> None:
    """The pages of one run in its own folder, whatever it holds."""
    if is_table(folder):
        checked = open_checked(folder)
        tables.show_checked(tools, json, checked, checked.write_pages(folder, language=language))
        return
    match kind_of(folder):
        case "portbench":
            with tools.progress(WHOLE) as progress:
                done = bench_report(folder, calls, progress, language)
            value = {"page": str(done.page), "verdicts": Store(folder).read(VERDICTS)}
            say(tools, json, value, [*done.lines, f"page: {done.page}"])
        case "season":
            raise AssayError(
                f"the pages of a season are a site; run: assaymark season publish {folder.path} --out SITE"
            )
        case "judges":
            made = datasheet_report(folder, calls, language)
            value = {"page": str(made.page), "datasheets": made.sheets, "agreement": made.agreement}
            say(tools, json, value, [f"{len(made.sheets)} datasheets", f"page: {made.page}"])
        case "study":
            if not Store(folder).rows(VERDICTS):
                page, view = report_unfinished(folder)
                say(tools, json, {"page": str(page), "verdicts": None, **view.facts()}, [view.said(), f"page: {page}"])
                return
            _finish(tools, json, folder, verbs.report(folder, calls, language))


@app.command(
    epilog=examples("assaymark export runs/mine --arrow tables/", "assaymark export runs/mine --inspect --out logs/")
)
def export(
    ctx: typer.Context, run: Run,
    inspect: Annotated[bool, typer.Option("--inspect", help="Write Inspect AI logs, one per judge.")] = False,
    out: Annotated[Path | None, option("For --inspect: output folder.", "FOLDER", "--out", "-o")] = None,
    arrow: Annotated[Path | None,
        option("Folder for copies of all tables as Arrow files.", "FOLDER", "--arrow")] = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Export what judges were asked and answered as logs for Inspect's viewer, or all tables for a notebook."""
    tools = tools_of(ctx)
    if inspect != (out is not None) or (out is None and arrow is None):
        refuse(ctx, "give --inspect --out FOLDER, or --arrow FOLDER, or both")
    folder = RunFolder(run)
    with tools.progress(WHOLE) as progress:
        logs = export_inspect(folder, out, progress) if out is not None else []
        tables = [str(one) for one in export_arrow(folder, arrow)] if arrow is not None else []
    lines = map("{path}: {samples} answers of {judge}, {scored} with scores".format_map, logs)
    say(tools, json, {"logs": logs, "tables": tables}, [*lines, *tables])


def _finish(tools: Services, json: bool, folder: RunFolder, result: verbs.Reported, who: Models | None = None) -> None:
    """The result of a study: its verdicts for a program, their summary for a person."""
    value = {"page": str(result.page), "verdicts": Store(folder).read(VERDICTS) if json else ()}
    say_paid(tools, json, folder, who, value, [f"page: {result.page}"], summary=result.summary)
