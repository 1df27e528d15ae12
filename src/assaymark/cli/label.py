"""`assaymark draw` and `label`: people grade a random sample of a run's texts."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from assaymark.cli.options import AsJson, Services, examples, option, say, say_json, tools_of
from assaymark.encoding import write_atomic
from assaymark.errors import InputError, Problem
from assaymark.report.label import label_files
from assaymark.workflow.check import OUT, is_table, open_checked
from assaymark.workflow.check import check as check_table
from assaymark.workflow.human_labels import take_over
from assaymark.workflow.label_texts import draw as draw_cycles
from assaymark.workflow.label_texts import draw_lines
from assaymark.workflow.labelling import Labelling, lines, needed, open_labelling, read_labels
from assaymark.workflow.run_folder import RunFolder, file_sha256, new_folder
from assaymark.workflow.serve import HOST, LabelDesk, listen

app = typer.Typer(rich_markup_mode=None)

PORT = 8401

Run = Annotated[Path, typer.Argument(help="Run folder, or a table with a column of texts.", metavar="RUN")]
Files = Annotated[list[Path] | None, typer.Argument(help="Files of labels, with --read.", metavar="[FILES]...")]
Sample = Annotated[int | None, option("Number of cycles to draw; default: the plan's, 40", "N", "--sample", min=1)]
Graders = Annotated[str | None, option("Initials or numbers of the graders, comma-separated.", "NAMES", "--graders")]
File = Annotated[Path | None, option("Page to write for each grader, in place of serving.", "FILE", "--file")]
Read = Annotated[bool, typer.Option("--read", help="Read the FILES that graders sent back.")]
Gold = Annotated[Path | None, option("Table of texts with known grades, to mix in.", "FILE", "--gold")]
Seed = Annotated[int | None, option("Random seed of the draw; default: the plan's.", "N", "--seed")]
Port = Annotated[int, option("Port; 0 picks a free one.", "N", "--port", min=0, max=65535)]


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
    out: Annotated[Path, option("Folder to write.", "RUN", "--out", "-o")] = OUT,
    json: AsJson = False,
) -> None:
    """Draw a random sample of cycles, or a season's periods, for people to grade, and store it before the first grade.

    A table is checked into --out first. Grades of another sample are shown and correct nothing.
    """
    tools = tools_of(ctx)
    with new_folder(out) if run.is_file() else nullcontext():
        folder = _folder(run, out)
        made = draw_cycles(folder, sample, datetime.now(UTC), seed, twice=double)
    say(tools, json, made, draw_lines(folder, made))


@app.command(
    epilog=examples(
        "assaymark label runs/mine --graders ab,cd",
        "assaymark label runs/mine --graders ab,cd --file label.html",
        "assaymark label runs/mine --read labels-ab.csv labels-cd.csv",
    )
)
def label(
    ctx: typer.Context, run: Run, files: Files = None, sample: Sample = None, graders: Graders = None,
    file: File = None, read: Read = False, gold: Gold = None, seed: Seed = None, port: Port = PORT,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Draw a random sample of cycles and let people grade its texts, blind, in the browser of this machine.

    The draw is stored before the first grade. Every label is on disk at once; Ctrl-C stops the server, and the same
    command resumes. Names of agents, makers and judges, and scores, are not on the page.
    """
    tools = tools_of(ctx)
    if files and not read:
        raise typer.BadParameter(f"{files[0]} is read only with --read", param_hint="FILES")
    if read and not files:
        raise typer.BadParameter("names no file", param_hint="--read")
    names = None if graders is None else [one.strip() for one in graders.split(",") if one.strip()]
    found = open_labelling(_folder(run, OUT), sample, names, gold, seed, now=datetime.now(UTC))
    if read:
        new = read_labels(found, files or [])
        _say(tools, json, found, {"files": len(files or []), "new": new}, [f"{new} new grades are stored"])
    elif file is not None:
        written = _write(found, file)
        _say(tools, json, found, {"written": written}, [f"wrote {one}" for one in written])
    else:
        # Show the pages until Ctrl-C, then take the labels over.
        desk = LabelDesk(found)
        with listen(desk, HOST, port) as server:
            addresses = {
                grader: f"http://{HOST}:{server.server_address[1]}{desk.path(grader)}"
                for grader in found.sheets.graders
            }
            said = [*(f"{one} grades at {address}" for one, address in addresses.items()), "Ctrl-C ends this"]
            _say(tools, json, found, {"addresses": addresses}, said)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                new = take_over(found.folder)
                if json:
                    say_json({**found.progress(), "new": new})
                else:
                    tools.print_lines([f"stopped; {new} new grades are stored"])


def _folder(run: Path, out: Path) -> RunFolder:
    """The run folder that is meant; a table is checked into ``out`` first, unless it was."""
    if run.is_dir() or not run.exists():
        return RunFolder(run).require()
    folder = RunFolder(out)
    if not is_table(folder) or open_checked(folder).read.sha256 != file_sha256(run):
        check_table(run, out=out)
    return folder


def _say(tools: Services, json: bool, found: Labelling, more: dict[str, object], said: list[str]) -> None:
    say(tools, json, {**found.progress(), "needed": needed(found), **more}, [*lines(found), *said])


def _write(found: Labelling, file: Path) -> list[str]:
    """Write the files of every grader, and return their names."""
    if file.suffix != ".html":
        raise InputError("--file", [Problem(str(file), "the name of a page ends in .html")])
    pages: dict[str, str] = {}
    for grader in found.sheets.graders:
        pages |= label_files(found.sheet(grader), file.stem)
    found.hand_out()
    for name, text in pages.items():
        write_atomic(file.parent / name, text)
    return [str(file.parent / name) for name in pages]
