"""The composition root: the command line, and the one place where real models are put together with the verbs."""

from __future__ import annotations

import os

# Before numpy is loaded, here and in the processes started from here: the matrices are small, and a linear algebra
# library that spins a thread a core makes them several times slower on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from assaymark import __version__
from assaymark.agents import DATER, Dater, reference_agents
from assaymark.benchmark.reference import reference_benchmark_models
from assaymark.cli_bench import bench_app
from assaymark.cli_datasheet import datasheet_command
from assaymark.cli_season import season_app
from assaymark.cli_serve import serve_command
from assaymark.cli_tools import Budget, DryRun, Ledger, PriceFile, Tools
from assaymark.engine import Model
from assaymark.engine.models import Models, providers
from assaymark.errors import AssayError
from assaymark.importers import IMPORTERS, template
from assaymark.judging import ORACLE, ConstraintOracle, reference_judges
from assaymark.judging.pairs import reference_pair_judges
from assaymark.judging.season.season_judges import reference_season_judges
from assaymark.protocol import parse_study
from assaymark.workflow import costs, verbs
from assaymark.workflow import data as market_data
from assaymark.workflow import doctor as examination
from assaymark.workflow.asking import prices_of
from assaymark.workflow.bare_tables import measure_table
from assaymark.workflow.bench_plan import is_benchmark
from assaymark.workflow.benching import bench_report
from assaymark.workflow.exporting import export_arrow, export_inspect
from assaymark.workflow.folder import RunFolder, read_text
from assaymark.workflow.partitions import computing_of
from assaymark.workflow.progress import Progress, bars

app = typer.Typer(
    name="assaymark",
    help="Measures LLM judges of AI investment agents as instruments, and says which claims may be made.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

data = typer.Typer(
    help="Market data: make, fetch, show and check a snapshot in a folder.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(data, name="data")

Store = Annotated[Path, typer.Option("--out", help="Folder of the snapshot; it holds one.", metavar="FOLDER")]
Stored = Annotated[Path, typer.Argument(help="Folder of a snapshot.", metavar="FOLDER")]
Run = Annotated[Path, typer.Argument(help="Run folder.", metavar="RUN")]
Out = Annotated[Path, typer.Option("--out", help="Run folder to work in.", metavar="RUN")]


def main(argv: list[str] | None = None) -> int:
    """Run one command. Errors of ours are one line and exit status 1; misuse of the command line is 2."""
    try:
        app(argv)
    except AssayError as exc:
        print(f"assaymark: {exc}", file=sys.stderr)
        return 1
    except OSError as exc:  # the machine, not the program: no permission, no room, a vanished disk
        print(f"assaymark: {exc.filename or 'the file system'}: {exc.strerror or exc}", file=sys.stderr)
        return 1
    except SystemExit as end:  # how the command line library says that a command is over
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        print("assaymark: stopped; run the same command again to go on", file=sys.stderr)
        return 130
    return 0


def models() -> Mapping[str, Model]:
    """Every model that can answer a call, by name."""
    fixed: dict[str, Model] = {
        **reference_agents(),
        **reference_judges(),
        **reference_pair_judges(),
        **reference_benchmark_models(),
        **reference_season_judges(),
        ORACLE: ConstraintOracle(),
        DATER: Dater(),
    }
    return Models(fixed, providers())


def _console() -> Console:
    return Console(highlight=False)


@contextmanager
def _progress() -> Iterator[Progress]:
    with bars(Console(stderr=True)) as progress:
        yield progress


def _say(text: str) -> None:
    _console().print(escape(text), soft_wrap=True)


def _say_all(lines: Iterable[str]) -> None:
    for line in lines:
        _say(line)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"assaymark {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Put a study of AI investment agents through the assay."""


@app.command()
def demo(out: Out = Path("assaymark-demo")) -> None:
    """Take a small study of four reference agents to its verdict page: no key, no file, no network."""
    with _progress() as progress:
        result = verbs.demo(RunFolder(out), models(), now=datetime.now(UTC), progress=progress)
    _finish(result)


@app.command("import")
def import_(
    format: Annotated[
        str, typer.Argument(help=f"{', '.join(sorted(IMPORTERS))}, human, or: template.", metavar="FORMAT")
    ],
    path: Annotated[Path | None, typer.Argument(help="Folder or file to read.", metavar="PATH")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Run folder to write.", metavar="RUN")] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Import the good records of a bad file.")] = False,
    rubric: Annotated[str, typer.Option("--rubric", help="For human: the rubric that people graded by.")] = "v1.0",
) -> None:
    """Read other people's records into a run folder, or print the template of the generic format.

    FORMAT human reads a table of grades that people gave to records that are there already.
    """
    if format == "template":
        print(template(), end="")
        return
    if path is None or out is None:
        raise typer.BadParameter("assaymark import FORMAT PATH --out RUN: PATH and --out are needed")
    if format == "human":
        _say(f"{verbs.import_grades(RunFolder(out), path, rubric=rubric)} grades by people")
        return
    with _progress() as progress:
        report = verbs.import_records(format, path, RunFolder(out), keep_going=keep_going, progress=progress)
    for line in report.lines():
        _say(line)
    if report.problems:
        raise AssayError(f"{len(report.problems)} problems were left out; the good records are in {out}")


@app.command()
def lock(study: Annotated[Path, typer.Argument(help="Study file (TOML).", metavar="STUDY")], out: Out) -> None:
    """Fix a plan before any judge is called: validate it, say what it can ever conclude, fingerprint it."""
    text = read_text(study, "study file")
    with _progress() as progress:
        locked = verbs.lock(RunFolder(out), text, str(study), now=datetime.now(UTC), models=models(), progress=progress)
    for line in verbs.lock_lines(locked):
        _say(line)


@app.command()
def amend(
    study: Annotated[Path, typer.Argument(help="The changed study file (TOML).", metavar="STUDY")],
    out: Out,
    reason: Annotated[str, typer.Option("--reason", help="Why; every reader of a verdict sees it.")],
) -> None:
    """Change a locked plan in the open: dated, hashed, with a reason; thresholds only before any judge was asked."""
    folder, text = RunFolder(out), read_text(study, "study file")
    made = verbs.amend(folder, text, str(study), reason=reason, now=datetime.now(UTC), models=models())
    for line in verbs.amendment_lines(made, verbs.open_locked(folder)):
        _say(line)


@app.command()
def run(
    study: Annotated[Path, typer.Argument(help="Study file (TOML).", metavar="STUDY")], out: Out, ledger: Ledger = None,
    budget: Budget = None, prices: PriceFile = None, dry_run: DryRun = False,
) -> None:  # fmt: skip
    """Lock, decide, judge, measure, claim and report, as far as they are not done; can be killed and run again."""
    folder, who, text = RunFolder(out), costs.paid_models(models(), budget, prices), read_text(study, "study file")
    if dry_run:
        _say_all(costs.expect_study(folder, text, str(study), who, prices_of(who)))
        return
    if ledger is not None:
        verbs.name_ledger(folder, ledger)
    with _progress() as progress:
        verbs.lock(folder, text, str(study), now=datetime.now(UTC), models=who, progress=progress)
        result = verbs.finish(folder, who, progress=progress)
    _finish(result)
    _say_all(costs.paid_lines(folder, prices_of(who)))


@app.command()
def worker(
    run: Annotated[Path | None, typer.Argument(help="Run folder.", metavar="RUN")] = None, ledger: Ledger = None,
    budget: Budget = None, prices: PriceFile = None,
) -> None:  # fmt: skip
    """Answer the planned calls of a shared ledger beside other workers, until none is left."""
    if (run is None) == (ledger is None):
        raise typer.BadParameter("give a run folder, or --ledger URL")
    who = costs.paid_models(models(), budget, prices)
    with _progress() as progress:
        summary = verbs.work(ledger or RunFolder(run or Path()), who, progress=progress)
    for line in verbs.work_lines(summary):
        _say(line)


@app.command()
def judge(run: Run, budget: Budget = None, prices: PriceFile = None, dry_run: DryRun = False) -> None:
    """Put every decision before every judge of the locked plan, and every number against its material.

    A study that makes its own records first has its agents decide.
    """
    who = costs.paid_models(models(), budget, prices)
    if dry_run:
        _say_all(costs.expect_judging(RunFolder(run), prices_of(who)))
        return
    with _progress() as progress:
        verbs.decide(RunFolder(run), who, progress=progress)
        result = verbs.judge(RunFolder(run), who, progress=progress)
    _say(f"{result.judgments} judgments ({result.made} calls made now), {result.evidence} numbers ledgered")
    _say_all(costs.paid_lines(RunFolder(run), prices_of(who)))


@app.command()
def measure(
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
) -> None:
    """Measure the judges, the agents and the evidence of a run, or a bare table of scores."""
    if (run is None) == (judgments is None):
        raise typer.BadParameter("give a run folder, or --judgments FILE")
    if judgments is not None:
        plan = None if study is None else parse_study(read_text(study, "study file"), source=str(study))
        with _progress() as progress:
            found = measure_table(
                judgments, plan, None if out is None else RunFolder(out),
                computing=computing_of(compute, workers, ray, deadline), progress=progress,
            )  # fmt: skip
        for line in found.lines():
            _say(line)
    elif run is not None:
        with _progress() as progress:
            count = verbs.measure(RunFolder(run), progress=progress)
        _say(f"{count} measurements")


@app.command()
def claim(
    run: Annotated[Path | None, typer.Argument(help="Run folder.", metavar="RUN")] = None,
    verify: Annotated[
        list[Path] | None, typer.Option("--verify", help="Recompute a certificate from its own tables.", metavar="FILE")
    ] = None,
) -> None:
    """Decide which claims may be made, or check certificates, without any text that was judged."""
    if (run is None) == (not verify):
        raise typer.BadParameter("give a run folder, or --verify CERTIFICATE")
    if run is not None:
        file = verbs.claim(RunFolder(run))
        _say(", ".join(f"{count} {level}" for level, count in file.tally.items()) + f"; written to {run}/verdicts.json")
        return
    wrong = 0
    for path in verify or ():
        found = verbs.verify_certificate(path)
        wrong += not found.ok
        for line in verbs.verification_lines(found, path):
            _say(line)
    if wrong:
        raise AssayError(f"{wrong} of {len(verify or ())} certificates do not follow from their own tables")


@app.command("plan-calls")
def plan_calls(
    run: Run,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Judge calls that can still be made.")],
) -> None:
    """Say which further judge calls would most likely move a claim to the next level, by simulation."""
    with _progress() as progress:
        lines = verbs.plan_calls(RunFolder(run), budget, progress=progress)
    for line in lines:
        _say(line)


@app.command()
def report(run: Run) -> None:
    """Write the pages and print the summary."""
    folder = RunFolder(run)
    if not is_benchmark(folder):
        _finish(verbs.report(folder))
        return
    with _progress() as progress:
        done = bench_report(folder, progress=progress)
    _say_all([*done.lines, f"page: {done.page}"])


@app.command()
def export(
    run: Run,
    inspect: Annotated[bool, typer.Option("--inspect", help="Logs for Inspect AI's viewer, one a judge.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="For --inspect: where they go.", metavar="FOLDER")] = None,
    arrow: Annotated[
        Path | None, typer.Option("--arrow", help="Copy the tables as Arrow files into this folder.", metavar="FOLDER")
    ] = None,
) -> None:
    """Write what judges were asked and answered as logs for Inspect's viewer, or the tables for a notebook."""
    if inspect != (out is not None) or (out is None and arrow is None):
        raise typer.BadParameter("give --inspect --out FOLDER, or --arrow FOLDER, or both")
    folder = RunFolder(run)
    with _progress() as progress:
        logs = export_inspect(folder, out, progress=progress) if out is not None else []
    for line in (*map(str, logs), *map(str, export_arrow(folder, arrow) if arrow is not None else ())):
        _say(line)


@data.command("synth")
def data_synth(out: Store, seed: Annotated[int, typer.Option("--seed", help="0 or more.")] = 0) -> None:
    """Write the invented market of a seed: 183 instruments, 2015 to 2025, with macro series, news and filings."""
    with _progress() as progress:
        line = market_data.synth(out, seed, progress=progress)
    _say(line)


@data.command("pull")
def data_pull(
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
    wanted = market_data.Pull(source=source, symbols=symbol or (), start=start, end=end, options=option or ())
    with _progress() as progress:
        line = market_data.pull(out, wanted, now=datetime.now(UTC), environment=os.environ, progress=progress)
    _say(line)


@data.command("show")
def data_show(
    folder: Stored,
    at: Annotated[str | None, typer.Option("--at", help="Day or time with a zone: what was known then.")] = None,
    instrument: Annotated[str | None, typer.Option("--instrument", help="Only this instrument, in full.")] = None,
) -> None:
    """Show where a snapshot is from and what it holds or, with --at, what could be known at that time."""
    _console().print(market_data.show(folder, at=at, instrument=instrument))


@data.command("check")
def data_check(folder: Stored) -> None:
    """Look for gaps, stale and frozen series, impossible prices, half days and damage; 1 when there are problems."""
    found = market_data.check(folder)
    for line in found.lines:
        _say(line)
    if found.problems:
        raise AssayError(f"{folder}: {found.problems} problems, named above")


@app.command()
def doctor() -> None:
    """Say what is installed, which keys are present (never their values), and what can run."""
    findings = examination.examine(os.environ)
    for finding in findings:
        mark = "yes" if finding.present else ("NO " if finding.needed else "no ")
        _say(f"{mark}  {finding.what:<20} {finding.detail}")
    for line in examination.can_run(findings, sorted(models())):
        _say(line)
    if any(not finding.present for finding in findings if finding.needed):
        raise AssayError("a package that assaymark needs is missing")


def _finish(result: verbs.Reported) -> None:
    _console().print(result.summary)
    _say(f"page: {result.page}")


_tools = Tools(models, _progress, _say_all, lambda content: _console().print(content))
app.command()(datasheet_command(_tools))
app.command()(serve_command(_tools))
app.add_typer(bench_app(_tools), name="bench")
app.add_typer(season_app(_tools), name="season")


if __name__ == "__main__":
    sys.exit(main())
