"""The commands of a study, from importing records to writing pages, and those for drawing and labelling a sample."""

from __future__ import annotations

import dataclasses
import os
import re
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import assaymark.workflow as workflow
from assaymark.cli import options as opts
from assaymark.cli import start as tables
from assaymark.cli.options import AsJson, Budget, DryRun, PriceFile, StrictAgents, emit, examples, option, working
from assaymark.errors import AssayError, InputError, LedgerError, Problem
from assaymark.report.text import tally_words
from assaymark.text import count_of
from assaymark.workflow import RunFolder

if TYPE_CHECKING:
    from assaymark.engine.providers.registry import Models
    from assaymark.workflow import StudyReport

app = typer.Typer(rich_markup_mode=None)

Run = Annotated[Path, typer.Argument(help="Run folder.", metavar="RUN")]
MaybeRun = Annotated[Path | None, typer.Argument(help="Run folder.", metavar="RUN")]
StudyFile = Annotated[Path, typer.Argument(help="Study file (TOML).", metavar="STUDY")]
Out = Annotated[Path, option("Run folder to work in.", "RUN", "--out", "-o")]
Calls = Literal["all", "judged", "none"]
FORMATS = "aitrader, capitalbench, deepfund, generic, nof1"


@app.command(epilog=examples("assaymark demo", "assaymark demo --real", "assaymark demo --out /tmp/first --verbose"))
def demo(
    ctx: typer.Context,
    real: Annotated[bool, typer.Option("--real", help="Check published grades of six language models.")] = False,
    out: Annotated[Path | None,
        option("Run folder to work in; default: assaymark-demo[-real].", "RUN", "--out", "-o")] = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Run a small built-in study and write its report: no key, no file, no network."""
    out = out or Path("assaymark-demo-real" if real else "assaymark-demo")
    if real:
        with working(opts.NOTHING):
            checked, page = workflow.check_real(out)
        tables.show_checked(ctx, checked, page)
        return
    with working():
        result = workflow.demo(RunFolder(out), opts.models(), datetime.now(UTC))
    _finish(ctx, RunFolder(out), result)


@app.command("import", epilog=examples(
    "assaymark import template > records/map.toml", "assaymark import generic records/ --out runs/mine",
    "assaymark import capitalbench artifacts/ --out runs/cb", "assaymark import nof1 snapshot/ --out runs/nof1",
    "assaymark import deepfund deepfund.db --out runs/deepfund",
))  # fmt: skip
def import_(
    ctx: typer.Context,
    format: Annotated[str, typer.Argument(help=f"{FORMATS}, human, or: template.", metavar="FORMAT")],
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
    if format == "template":
        from assaymark.importers import template

        typer.echo(template(), nl=False)
        return
    if path is None or out is None:
        opts.fail_usage(ctx, f"PATH and --out are needed (assaymark import {format} PATH --out RUN)")
    if format == "human":
        grades = workflow.import_grades(RunFolder(out), path, rubric)
        emit(ctx, {"grades": grades}, [f"{grades} grades by people"])
        return
    with working(opts.WHOLE):
        report = workflow.import_files(format, path, RunFolder(out), keep_going)
    emit(ctx, report, report.lines())
    if report.problems:
        raise AssayError(f"left out: {count_of(len(report.problems), 'problems')}; the good records are in {out}")


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
    now = datetime.now(UTC)
    with working():
        result = workflow.make_controls(RunFolder(run), now, count, [kind.strip() for kind in kinds.split(",")], seed)
    emit(ctx, result.done, result.lines)


@app.command(epilog=examples("assaymark lock study.toml --out runs/mine"))
def lock(ctx: typer.Context, study: StudyFile, out: Out, json: AsJson = False) -> None:
    """Freeze a plan before any judge is called: validate it, report its statistical power, fingerprint it."""
    now = datetime.now(UTC)
    text = workflow.study_text(study)
    if workflow.is_plan_of_scores(text, str(study)):
        fingerprint, when = workflow.lock_plan(RunFolder(out), text, str(study), now)
        lines = [f"plan hash {fingerprint}", f"locked {when}", f"then: assaymark check TABLE --study {out}"]
        emit(ctx, {"plan_hash": fingerprint, "locked_at": when}, lines)
        return
    with working():
        locked = workflow.lock_study(RunFolder(out), text, str(study), now, opts.models())
    value = {"plan_hash": locked.plan_hash, "locked_at": locked.locked_at, "preflight": locked.preflight}
    emit(ctx, value | {"date_probes": locked.date_probes}, workflow.lock_lines(locked))


@app.command(epilog=examples(
    'assaymark amend study.toml --out runs/mine --reason "a third judge"', "assaymark amend runs/old --rules 2",
))  # fmt: skip
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
    now = datetime.now(UTC)
    if rules is not None:
        if out is not None or reason is not None:
            opts.fail_usage(ctx, "--rules takes a run folder and nothing else")
        folder = RunFolder(study)
        amendment = workflow.adopt_rules(folder, now)
    elif out is None or reason is None:
        opts.fail_usage(ctx, "--out and --reason are needed, or RUN --rules 2")
    else:
        folder, text = RunFolder(out), workflow.study_text(study)
        amendment = workflow.amend_study(folder, text, str(study), reason, now, opts.models())
    preregistered = workflow.read_lock(folder)["preregistered"]
    value = {"amendment": amendment, "plan_hash": amendment.plan_after, "preregistered": preregistered}
    emit(ctx, value, workflow.amendment_lines(amendment))


@app.command(epilog=examples(
    "assaymark run study.toml --out runs/mine", "assaymark run study.toml --out runs/mine --dry-run",
    "assaymark run study.toml --out runs/mine --budget 5",
))  # fmt: skip
def run(
    ctx: typer.Context, study: StudyFile, out: Out, ledger: opts.Ledger = None, budget: Budget = None,
    prices: PriceFile = None, strict_agents: StrictAgents = False, dry_run: DryRun = False, json: AsJson = False,
) -> None:  # fmt: skip
    """Lock, decide, judge, measure, claim and report, skipping what is done; resumes after a kill."""
    now = datetime.now(UTC)
    folder, text = RunFolder(out), workflow.study_text(study)
    if {*re.findall(r"""["']([\w.-]+)/""", text)} <= {"reference"}:  # whoever is named, every model is built in
        opts.skip_imports("pandas", "numpy.f2py", "numpy.testing")  # Arrow and SciPy load them
    models = opts.priced_models(ctx)
    if dry_run:
        opts.emit_forecast(ctx, workflow.expect_study(folder, text, str(study), models, workflow.prices_of(models)))
        return
    with working():
        with workflow.new_folder(folder.path) if ledger is not None else nullcontext():
            if ledger is not None:
                workflow.name_ledger(folder, ledger)
            workflow.start(folder, text, str(study), now, models)
        result = workflow.finish(folder, models)
    _finish(ctx, folder, result, models)


@app.command(epilog=examples("assaymark worker runs/mine", "assaymark worker --ledger postgresql://host/assay"))
def worker(
    ctx: typer.Context, run: MaybeRun = None, ledger: opts.Ledger = None, budget: Budget = None,
    prices: PriceFile = None, json: AsJson = False,
) -> None:  # fmt: skip
    """Answer the planned calls of a shared call log, together with other workers, until none is left."""
    if (run is None) == (ledger is None):
        opts.fail_usage(ctx, "give a run folder, or --ledger URL")
    models = opts.priced_models(ctx)
    place = ledger or RunFolder(run or Path())
    with working():
        summary = workflow.work(place, models)
    emit(ctx, summary, workflow.work_lines(summary))
    workflow.require_not_stopped(summary, "the call log" if isinstance(place, str) else place)


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
    folder = RunFolder(run)
    if reparse:
        with working(opts.WHOLE):
            read = workflow.reparse(folder, datetime.now(UTC))
        emit(ctx, {"amendment": read.done}, read.lines)
        return
    models = opts.priced_models(ctx)
    if dry_run:
        opts.emit_forecast(ctx, workflow.expect_judging(folder, workflow.prices_of(models)))
        return
    with working():
        workflow.decide(folder, models)
        result = workflow.judge(folder, models)
    line = f"{result.judgments} judgments ({result.made} calls made now), {result.evidence} numbers ledgered"
    opts.emit_costed(ctx, folder, models, dataclasses.asdict(result), [line])


@app.command(epilog=examples(
    "assaymark measure runs/mine", "assaymark measure --judgments scores/ --dimensions clarity,risk --out big",
))  # fmt: skip
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
    if (run is None) == (judgments is None):
        opts.fail_usage(ctx, "give a run folder, or --judgments PATH")
    computing = workflow.computing_of(compute, workers, ray, deadline)
    if judgments is not None and computing is None and not judgments.is_dir():  # as `check`, under its old name
        tables.run_check(ctx, judgments, out)
    elif judgments is not None:
        plan = None if study is None else workflow.read_study(study)
        with working(opts.NOTHING if out is None else opts.KEPT):
            measured = workflow.measure_table(
                judgments, plan, None if out is None else RunFolder(out), dimensions, computing,
            )  # fmt: skip
        notes = measured.read.left
        value: object = {"measurements": measured.measurements, "verdicts": measured.verdicts, "notes": notes}
        if not json:
            opts.show(measured.summary)
        emit(ctx, value, [] if out is None else [f"written to {out}"])
    elif run is not None:
        with working(opts.WHOLE):
            count = workflow.measure_study(RunFolder(run))
        value = {"measurements": workflow.Store(RunFolder(run)).read(workflow.MEASUREMENTS)} if json else {}
        emit(ctx, value, [f"{count} measurements"])


@app.command(epilog=examples("assaymark claim runs/mine", "assaymark claim --verify runs/mine/certificates/CLAIM.json"))
def claim(
    ctx: typer.Context, runs: Annotated[list[Path] | None,
        typer.Argument(help="Run folder; with --verify, more certificates.", metavar="RUN")] = None,
    verify: Annotated[list[Path] | None,
        option("Certificates to recompute from their own tables.", "FILE", "--verify")] = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Decide which claims are supported, or verify certificates without any judged text."""
    if not verify:
        if len(runs or ()) != 1:
            opts.fail_usage(ctx, "give a run folder, or --verify CERTIFICATE")
        file = workflow.claim_study(RunFolder((runs or [Path()])[0]))
        emit(ctx, file, [f"{tally_words(file.tally)}; written to {(runs or [Path()])[0]}/verdicts.json"])
        return
    verify = [*verify, *(runs or ())]
    results = {path: workflow.verify_certificate(path) for path in verify}
    lines = [line for path, verification in results.items() for line in workflow.verification_lines(verification, path)]
    emit(ctx, {str(path): verification for path, verification in results.items()}, lines)
    if wrong := sum(not verification.ok for verification in results.values()):
        raise AssayError(f"{wrong} of {len(results)} certificates do not follow from their own tables")


@app.command(epilog=examples("assaymark verify runs/mine", "assaymark verify runs/mine --json | jq .differences"))
def verify(ctx: typer.Context, run: Run, json: AsJson = False) -> None:
    """Check every file of a run against its digests: lock, plan, ledger, objects, tables, verdicts, certificates.

    Nothing is changed, and a read-only copy is enough. Exit status 1 if anything differs; every such file is named.
    """
    verified = workflow.verify_run(RunFolder(run))
    value = {
        "same": verified.same,
        "differences": [{"file": difference.where, "what": difference.what} for difference in verified.differences],
        "notes": verified.notes,
    }
    emit(ctx, value, verified.lines)
    if count := len(verified.differences):
        raise AssayError(f"{run}: {count_of(count, 'differences')}, named above")


@app.command("plan-calls", epilog=examples(
    "assaymark plan-calls runs/mine --budget 500",
    "assaymark plan-calls runs/mine --effect .3 --price call=.01 --price human=2",
))  # fmt: skip
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
    prices = dict(workflow.PRICES if not price else {})
    if budget is None and effect is None:
        opts.fail_usage(ctx, "--budget or --effect is needed")
    for text in price or ():
        name, _, value = text.partition("=")
        try:
            prices[name.strip()] = float(value)
        except ValueError:
            opts.fail_usage(ctx, f"--price must be written call=0.01 (got {text!r})")
    with working(opts.NOTHING):
        plan = workflow.plan_further_calls(RunFolder(run), budget, effect, prices)
    emit(ctx, plan.document, workflow.plan_calls_lines(plan))


@app.command(epilog=examples(
    "assaymark report runs/mine", "assaymark report runs/mine --calls none --json | jq .verdicts",
    "assaymark report runs/mine --language de", "assaymark report runs/study runs/judges runs/season --out site",
))  # fmt: skip
def report(
    ctx: typer.Context,
    runs: Annotated[list[Path], typer.Argument(help="Run folder; several make one site.", metavar="RUN")],
    out: Annotated[Path | None, option("Folder of a site of all runs.", "SITE", "--out", "-o")] = None,
    title: Annotated[str, option("Title of the site's index page.", "TEXT", "--title")] = "Supported claims",
    calls: Annotated[Calls, typer.Option("--calls", help="Raw calls of a study that get pages.")] = "all",
    language: Annotated[str, option("Further language of the main pages: de.", "LANGUAGE", "--language")] = "",
    json: AsJson = False,
) -> None:
    """Write the pages and print the summary; with --out, join the pages of several runs into one site."""
    folders = [RunFolder(run) for run in runs]
    if out is None and len(folders) > 1:
        opts.fail_usage(ctx, "several runs make one site: say where with --out SITE")
    if out is not None:
        with working(opts.WHOLE):
            shown, pages = workflow.join_runs(folders, out, title, calls)
        runs_shown = [{"kind": front.kind, "title": front.title, "claims": front.verdicts} for front in shown]
        page, lines = out / "index.html", [f"{count_of(len(shown), 'runs')}, {len(pages)} files"]
        emit(ctx, {"page": str(page), "runs": runs_shown}, [*lines, f"page: {page}"])
        return
    folder = folders[0]
    try:
        match workflow.kind_of(folder):
            case "table":
                checked = workflow.open_checked(folder)
                tables.show_checked(ctx, checked, checked.write_pages(folder, language=language))
            case "portbench":
                with working(opts.WHOLE):
                    done = workflow.bench_report(folder, calls, language)
                value = {"page": str(done.page), "verdicts": workflow.verdicts_of(folder)}
                emit(ctx, value, [*done.lines, f"page: {done.page}"])
            case "season":
                then = f"assaymark season publish {folder.path} --out SITE"
                raise AssayError(f"the pages of a season are a site; run: {then}")
            case "judges":
                written = workflow.datasheet_report(folder, calls, language)
                value = {"page": str(written.page), "datasheets": written.sheets, "agreement": written.agreement}
                emit(ctx, value, [count_of(len(written.sheets), "datasheets"), f"page: {written.page}"])
            case "study" if workflow.Store(folder).rows(workflow.VERDICTS):
                _finish(ctx, folder, workflow.report(folder, calls, language))
            case "study":
                page, view = workflow.report_unfinished(folder, language)
                lines = [view.progress(more=True), f"page: {page}"]
                emit(ctx, {"page": str(page), "verdicts": None, **view.facts()}, lines)
    except LedgerError as exc:
        if os.access(runs[0], os.W_OK):
            raise
        raise LedgerError(f"{exc}; to have the pages elsewhere: assaymark report {runs[0]} --out SITE") from None


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
    if inspect != (out is not None) or (out is None and arrow is None):
        opts.fail_usage(ctx, "give --inspect --out FOLDER, or --arrow FOLDER, or both")
    folder = RunFolder(run)
    with working(opts.WHOLE):
        logs = workflow.export_inspect(folder, out) if out is not None else []
        tables = [str(path) for path in workflow.export_arrow(folder, arrow)] if arrow is not None else []
    lines = map("{path}: {samples} answers of {judge}, {scored} with scores".format_map, logs)
    emit(ctx, {"logs": logs, "tables": tables}, [*lines, *tables])


def _finish(ctx: typer.Context, folder: RunFolder, result: StudyReport, models: Models | None = None) -> None:
    """Print the result of a study: its verdicts with ``--json``, else its summary and the path of its page."""
    value = {"page": str(result.page), "verdicts": workflow.verdicts_of(folder) if ctx.params["json"] else ()}
    opts.emit_costed(ctx, folder, models, value, [f"page: {result.page}"], (), result.summary)


Graded = Annotated[Path, typer.Argument(help="Run folder, or a table with a column of texts.", metavar="RUN")]
Files = Annotated[list[Path] | None, typer.Argument(help="Files of labels, with --read.", metavar="FILE")]
Sample = Annotated[int | None, option("Number of cycles to draw; default: the plan's, 40", "N", "--sample", min=1)]
Graders = Annotated[str | None, option("Initials or numbers of the graders, comma-separated.", "NAMES", "--graders")]
File = Annotated[Path | None, option("Page to write for each grader, instead of serving.", "FILE", "--file")]
Read = Annotated[bool, typer.Option("--read", help="Read the files that graders sent back.")]
Gold = Annotated[Path | None, option("Table of texts with known grades, to mix in.", "FILE", "--gold")]
Seed = Annotated[int | None, option("Random seed of the draw; default: the plan's.", "N", "--seed")]


@app.command(
    epilog=examples("assaymark draw scores.csv --sample 25", "assaymark draw runs/mine --sample 4 --double .5")
)
def draw(
    ctx: typer.Context,
    run: Annotated[Path, typer.Argument(help="Run folder, or a table of scores.", metavar="RUN|TABLE")],
    sample: Annotated[int | None, option("Cycles to draw; default: human.sample of the plan.", "N", "--sample")] = None,
    double: Annotated[
        float | None, option("Share of them that two people grade; default: 0.2.", "P", "--double")
    ] = None,
    seed: Annotated[int | None, option("Random seed; default: the plan's.", "N", "--seed")] = None,
    out: Annotated[Path, option("Folder to write.", "RUN", "--out", "-o")] = workflow.CHECKED,
    json: AsJson = False,
) -> None:
    """Draw a random sample of cycles, or a season's periods, for people to grade, and store it before the first grade.

    A table is checked into --out first. Grades of another sample are shown and correct nothing.
    """
    with nullcontext() if out.exists() or not run.is_file() else workflow.new_folder(out):
        folder = _folder(run, out)
        drawn = workflow.draw_cycles(folder, sample, datetime.now(UTC), seed, twice=double)
    emit(ctx, drawn, workflow.draw_lines(folder, drawn))


@app.command(epilog=examples(
    "assaymark label runs/mine --graders ab,cd", "assaymark label runs/mine --graders ab,cd --file label.html",
    "assaymark label runs/mine --read labels-ab.csv labels-cd.csv",
))  # fmt: skip
def label(
    ctx: typer.Context, run: Graded, files: Files = None, sample: Sample = None, graders: Graders = None,
    file: File = None, read: Read = False, gold: Gold = None, seed: Seed = None, port: tables.Port = 8401,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Draw a random sample of cycles and let people grade its texts, blind, in the browser of this machine.

    The draw is stored before the first grade. Every label is on disk at once; Ctrl-C stops the server, and the same
    command resumes. Names of agents, makers and judges, and scores, are not on the page.
    """
    if files and not read:
        raise typer.BadParameter(f"{files[0]} is read only with --read", param_hint="FILE")
    if read and not files:
        raise typer.BadParameter("names no file", param_hint="--read")
    names = None if graders is None else [name.strip() for name in graders.split(",") if name.strip()]
    session = workflow.open_labelling(_folder(run, workflow.CHECKED), sample, names, gold, seed, now=datetime.now(UTC))

    def tell(more: dict[str, object], lines: list[str]) -> None:
        value = {**session.progress(), "needed": workflow.labels_needed(session), **more}
        emit(ctx, value, [*workflow.labelling_lines(session), *lines])

    if read:
        new = workflow.read_labels(session, files or [])
        tell({"files": len(files or []), "new": new}, [f"{new} new grades are stored"])
    elif file is not None:
        if file.suffix != ".html":
            raise InputError("--file", [Problem(str(file), "the name of a page ends in .html")])
        from assaymark.records import write_atomic
        from assaymark.report.label import label_files

        sheets = [session.sheet(grader) for grader in session.sheets.graders]
        pages = {name: text for sheet in sheets for name, text in label_files(sheet, file.stem).items()}
        session.mark_handed_out()
        for name, text in pages.items():
            write_atomic(file.parent / name, text)
        written = [str(file.parent / name) for name in pages]
        tell({"written": written}, [f"wrote {path}" for path in written])
    else:
        # Show the pages until Ctrl-C, then take the labels over.
        desk = workflow.LabelServer(session)
        with workflow.listen(desk, workflow.HOST, port) as server:
            root = f"http://{workflow.HOST}:{server.server_address[1]}"
            addresses = {grader: f"{root}{desk.path(grader)}" for grader in session.sheets.graders}
            lines = [*(f"{grader} grades at {address}" for grader, address in addresses.items()), "Ctrl-C ends this"]
            tell({"addresses": addresses}, lines)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                new = workflow.store_labels(session.folder)
                emit(ctx, {**session.progress(), "new": new}, [f"stopped; {new} new grades are stored"])


def _folder(run: Path, out: Path) -> RunFolder:
    """Return the run folder of ``run``; a table is checked into ``out`` first, unless that holds it already."""
    if run.is_dir() or not run.exists():
        return RunFolder(run).require()
    folder = RunFolder(out)
    if not folder.check.is_file() or workflow.open_checked(folder).read.sha256 != workflow.file_sha256(run):
        workflow.check_table(run, out=out)
    return folder
