"""The composition root: the command line, and the one place where real models are put together with the verbs."""

from __future__ import annotations

import os

# Before numpy is loaded, here and in the processes started from here: the matrices are small, and a linear algebra
# library that spins a thread a core makes them several times slower on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from assaymark import __version__
from assaymark.engine import Model
from assaymark.errors import AssayError
from assaymark.importers import IMPORTERS, template
from assaymark.judging import reference_judges
from assaymark.workflow import doctor as examination
from assaymark.workflow import verbs
from assaymark.workflow.folder import RunFolder, read_text
from assaymark.workflow.progress import Progress, bars

app = typer.Typer(
    name="assaymark",
    help="Measures LLM judges of AI investment agents as instruments, and says which claims may be made.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

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
    return {**reference_judges()}


def _console() -> Console:
    return Console(highlight=False)


@contextmanager
def _progress() -> Iterator[Progress]:
    with bars(Console(stderr=True)) as progress:
        yield progress


def _say(text: str) -> None:
    _console().print(escape(text), soft_wrap=True)


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
    """Make a small study of three reference agents and take it to its verdict page: no key, no file, no network."""
    with _progress() as progress:
        result = verbs.demo(RunFolder(out), models(), now=datetime.now(UTC), progress=progress)
    _finish(result)


@app.command("import")
def import_(
    format: Annotated[str, typer.Argument(help=f"{', '.join(sorted(IMPORTERS))}, or: template.", metavar="FORMAT")],
    path: Annotated[Path | None, typer.Argument(help="Folder or file to read.", metavar="PATH")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Run folder to write.", metavar="RUN")] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Import the good records of a bad file.")] = False,
) -> None:
    """Read other people's decision records into a run folder, or print the template of the generic format."""
    if format == "template":
        print(template(), end="")
        return
    if path is None or out is None:
        raise typer.BadParameter("assaymark import FORMAT PATH --out RUN: PATH and --out are needed")
    with _progress() as progress:
        report = verbs.import_records(format, path, RunFolder(out), keep_going=keep_going, progress=progress)
    for line in report.lines():
        _say(line)
    if report.problems:
        raise AssayError(f"{len(report.problems)} problems were left out; the good records are in {out}")


@app.command()
def lock(study: Annotated[Path, typer.Argument(help="Study file (TOML).", metavar="STUDY")], out: Out) -> None:
    """Fix a plan before any judge is called: validate it, say what it can ever conclude, fingerprint it."""
    locked = verbs.lock(
        RunFolder(out), read_text(study, "study file"), str(study), now=datetime.now(UTC), models=models()
    )
    for line in verbs.lock_lines(locked):
        _say(line)


@app.command()
def run(study: Annotated[Path, typer.Argument(help="Study file (TOML).", metavar="STUDY")], out: Out) -> None:
    """Lock, judge, measure, claim and report, as far as they are not done; can be killed and run again."""
    folder = RunFolder(out)
    with _progress() as progress:
        verbs.lock(folder, read_text(study, "study file"), str(study), now=datetime.now(UTC), models=models())
        result = verbs.finish(folder, models(), progress=progress)
    _finish(result)


@app.command()
def judge(run: Run) -> None:
    """Put every decision before every judge of the locked plan, and every number against its material."""
    with _progress() as progress:
        result = verbs.judge(RunFolder(run), models(), progress=progress)
    made = 0 if result.summary is None else result.summary.made
    _say(f"{result.judgments} judgments ({made} calls made now), {result.evidence} numbers ledgered")


@app.command()
def measure(run: Run) -> None:
    """Measure the judges, the agents and the evidence."""
    with _progress() as progress:
        count = verbs.measure(RunFolder(run), progress=progress)
    _say(f"{count} measurements")


@app.command()
def claim(run: Run) -> None:
    """Decide which claims may be made."""
    file = verbs.claim(RunFolder(run))
    _say(", ".join(f"{count} {level}" for level, count in file.tally.items()) + f"; written to {run}/verdicts.json")


@app.command()
def report(run: Run) -> None:
    """Write the pages and print the summary."""
    _finish(verbs.report(RunFolder(run)))


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


if __name__ == "__main__":
    sys.exit(main())
