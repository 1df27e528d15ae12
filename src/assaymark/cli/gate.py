"""`assaymark gate`, `proofread` and `skill`: what a text, a release or a coding agent may say of a finished run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

import typer

from assaymark.claims.proofread import gate_claim
from assaymark.cli.options import AsJson, examples, option, print_error, say, say_json, tools_of
from assaymark.errors import AssayError, StoppedError
from assaymark.records import to_json
from assaymark.workflow import proofread as texts

app = typer.Typer(rich_markup_mode=None)

_ERROR = 2
Alias = Annotated[list[str] | None, option("Another name of an agent; can be repeated.", "NAME=AGENT", "--alias")]


@contextmanager
def _errors() -> Iterator[None]:
    """Errors end with status 2, because 1 says that a text or a claim does not pass."""
    try:
        yield
    except StoppedError:
        raise
    except (AssayError, OSError) as exc:
        print_error(f"assaymark: {exc}")
        raise typer.Exit(_ERROR) from None


@app.command(
    epilog=examples(
        'assaymark gate assaymark-demo --claim "alder < cedar"',
        'assaymark gate assaymark-demo --claim "cedar first" --at-least qualified',
        'assaymark gate assaymark-demo --claim "alder ~ birch" --json',
    )
)
def gate(
    ctx: typer.Context,
    run: Annotated[Path, typer.Argument(help="Run folder, or a verdicts.json.", metavar="RUN")],
    claim: Annotated[str,
        option('Claim: "A > B", "A ~ B" or "A first", with "on SCORE"; or a claim id.', "CLAIM", "--claim")],
    at_least: Annotated[Literal["headline", "qualified"],
        typer.Option("--at-least", help="Level that the claim has to reach.")] = "headline",
    alias: Alias = None, json: AsJson = False,
) -> None:  # fmt: skip
    """Check that a run supports a claim: exit status 0 if it does, 1 if not, 2 on an error.

    Without "on SCORE" the claim is about the overall score. "A > B": A scores above B. "A ~ B": they score within the
    margin of each other.
    """
    with _errors():
        found = gate_claim(claim, texts.read_decided(run, alias or ()), at_least)
        value = to_json(found) | {"claim": claim, "at_least": at_least}
        say(tools_of(ctx), json, value, texts.gate_lines(found, at_least))
    if not found.passed:
        raise typer.Exit(1)


@app.command(
    epilog=examples(
        "assaymark proofread README.md --run assaymark-demo",
        "assaymark proofread README.md --run assaymark-demo --format sarif",
        'assaymark proofread README.md --run assaymark-demo --alias "A=alder"',
    )
)
def proofread(
    ctx: typer.Context,
    file: Annotated[list[Path], typer.Argument(help="Texts: Markdown, HTML, LaTeX or plain text.", metavar="FILE...")],
    run: Annotated[Path, option("Run folder, or a verdicts.json.", "RUN", "--run")],
    alias: Alias = None,
    format: Annotated[Literal["text", "json", "sarif", "github"],
        typer.Option("--format", help="Form of the output.")] = "text",
    fix: Annotated[bool,
        typer.Option("--fix", help="Write the changes: add conditions, replace unsupported sentences.")] = False,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Check every sentence that compares the agents of a run, or quotes a number of it, against the run.

    [x] supported, [/] only with its condition, [-] not supported, [!] contradicted, [?] not about this run or not
    readable. Exit status 1 if a sentence has to be changed, 2 on an error, else 0.
    """
    with _errors():
        decided = texts.read_decided(run, alias or ())
        documents = [(path, texts.read_document(path, decided)) for path in dict.fromkeys(file)]
        found = [texts.proofread(path, decided, document) for path, document in documents]
        changes: list[str] = []
        if fix:
            fixed = [texts.fix(one, decided) for one in found]
            found, changes = [one for one, _ in fixed], [line for _, lines in fixed for line in lines]
    failing = any(one.fails for text in found for one in text.found)
    if json or format == "json":
        say_json({
            "run": str(run), "findings": [one.view for text in found for one in text.found], "failing": failing,
            "not_looked_for": list(decided.names.common), "diff": changes,
        })  # fmt: skip
    elif format == "sarif":
        say_json(texts.sarif(found))
    elif format == "github":
        for line in texts.github_lines(found):
            typer.echo(line)
    else:
        tools_of(ctx).print_lines([*changes, *([""] if changes else []), *texts.lines_of(found, decided, fixing=fix)])
    if failing:
        raise typer.Exit(1)


@app.command(epilog=examples("assaymark skill > SKILL.md"))
def skill() -> None:
    """Print instructions for a coding agent: how to use assaymark on a table of scores, and what never to claim."""
    typer.echo(files("assaymark.workflow").joinpath("skill.md").read_text(encoding="utf-8"), nl=False)
