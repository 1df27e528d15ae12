"""The commands `check`, `gate`, `proofread`, `skill`, `serve` and `doctor`, for a table of scores or a finished run."""

from __future__ import annotations

import os
import platform
import sys
import time
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from assaymark import __version__, workflow
from assaymark.cli import options as opts
from assaymark.cli.options import AsJson, examples, option
from assaymark.errors import AssayError, InputError, Problem, StoppedError

if TYPE_CHECKING:
    from assaymark.importers.scores import UnnamedError
    from assaymark.workflow import Checked

app = typer.Typer(rich_markup_mode=None)

Text = str | None
Texts = list[str] | None
Table = Annotated[
    Path, typer.Argument(help="Scores: CSV, TSV, JSON, JSON lines, Parquet, Arrow, or a tool's log.", metavar="TABLE")
]
RoleMap = Annotated[Texts, option("Column of a role, or a TOML file of them; repeatable.", "ROLE=COLUMN", "--map")]
OnScale = Annotated[Text, option("Scale of the scores; default: read.", "1..5", "--scale")]
Criteria = Annotated[Text, option("Columns that are scores, comma-separated.", "NAMES", "--dimensions")]
Judges = Annotated[Text, option("Columns that are judges, or judges to keep.", "NAMES", "--judges")]
Makers = Annotated[Texts, option("Maker of a judge or agent; repeatable.", "NAME=MAKER", "--family")]
Cluster = Annotated[Text, option("Column that groups items; default: each item.", "COLUMN", "--cluster")]
Order = Annotated[Text, option("exchangeable, or consecutive if clusters follow in time.", "ORDER", "--cluster-order")]
Without = Annotated[Texts, option("Judge to leave out, on the record; repeatable.", "JUDGE", "--without")]
Locked = Annotated[Path | None, option("Plan, or the folder where it was locked.", "STUDY", "--study")]
Pairs = Annotated[Path | None, option("Pairs that the same judges saw in both orders.", "TABLE", "--pairs")]
Humans = Annotated[Text, option("Columns of people's grades; default: human_*.", "COLUMNS", "--human")]
Out = Annotated[Path, option("Folder to write.", "RUN", "--out", "-o")]
Port = Annotated[int, option("Port; 0 picks a free one.", "N", "--port", min=0, max=65535)]
Alias = Annotated[Texts, option("Another name of an agent; can be repeated.", "NAME=AGENT", "--alias")]

_READ = ("scale", "judges", "cluster", "cluster_order", "study", "pairs", "human")
_ERROR = 2


@app.command(epilog=examples(
    "assaymark check scores.csv", "assaymark check results.jsonl --map agent=made_by --scale 1..10",
    "assaymark check wide.csv --judges gpt-4o,claude --json | jq .verdicts",
    "assaymark check scores.csv --pairs orders.csv",
))  # fmt: skip
def check(
    ctx: typer.Context, table: Table, role_map: RoleMap = None, scale: OnScale = None, dimensions: Criteria = None,
    judges: Judges = None, family: Makers = None, cluster: Cluster = None, cluster_order: Order = None,
    without: Without = None, study: Locked = None, pairs: Pairs = None, human: Humans = None,
    out: Out = workflow.CHECKED, json: AsJson = False,
) -> None:  # fmt: skip
    """Read a table of scores, say how it was read, and which claims about its systems the scores support.

    Columns are known by their names and synonyms (agent, model, system; judge, grader; item, question_id; score,
    rating), with one row a score, one column a criterion or a judge, or pairs with a winner.
    """
    run_check(ctx, table, out, labels=out)


def run_check(ctx: typer.Context, table: Path, out: Path | None, **options: Any) -> None:
    """Check a table, write its page and print the result; where no column is a score, ask on the terminal which are."""
    from assaymark.importers.scores import UnnamedError

    asked, began = ctx.params, time.monotonic()
    options |= {"map": to_dict(asked["role_map"] or (), "--map"), "family": to_dict(asked["family"] or (), "--family")}
    options |= {name: asked[name] for name in _READ if name in asked} | {"without": asked["without"] or ()}
    with opts.working(opts.NOTHING):
        try:
            checked = workflow.check_table(table, dimensions=asked["dimensions"], **options)
        except UnnamedError as exc:
            if (columns := ask_columns(exc)) is None:
                raise
            options |= {"dimensions": asked["dimensions"], exc.wanted: columns}
            checked = workflow.check_table(table, **options)
        page = None if out is None else checked.save(out)
    show_checked(ctx, checked, page, f"{time.monotonic() - began:.1f} s, no model was called")


def show_checked(ctx: typer.Context, checked: Checked, page: Path | None, cost: str = "") -> None:
    """Print a checked table: one JSON document with ``--json``, else its summary, the cost and the path of its page."""
    if ctx.params["json"]:
        opts.emit_json(checked.document | ({} if page is None else {"page": str(page)}))
        return
    opts.show(checked.summary)
    opts.print_lines([*filter(None, [cost]), *([] if page is None else [f"page: {page}"])])


def ask_columns(error: UnnamedError) -> tuple[str, ...] | None:
    """Ask on the terminal which numeric columns are scores (or judges); None if stdin or stderr is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    names = {str(at): name for at, name in enumerate(error.columns, 1)}
    numbered = ", ".join(f"{at} {name}" for at, name in names.items())
    noun = "scores" if error.wanted == "dimensions" else "judges"
    reply = typer.prompt(f"Which of these columns are {noun} ({numbered})? Numbers or names, comma-separated", err=True)
    return tuple(names.get(word, word) for word in (part.strip() for part in reply.split(",")) if word)


def to_dict(pairs: Sequence[str], flag: str) -> dict[str, str]:
    """Return ``name=value`` options, and the TOML files among them, as one mapping; raises `InputError`."""
    values: dict[str, str] = {}
    problems: list[Problem] = []
    for word in pairs:
        name, equals, value = word.partition("=")
        if not equals and word.endswith(".toml"):
            from assaymark.plan import read_toml

            tree = read_toml(workflow.read_text(Path(word), "column map"), source=word)
            words = {key: item for key, item in tree.items() if isinstance(item, str)}
            problems += [Problem(f"{word}: {key}", "must be the name of a column") for key in tree if key not in words]
            values |= words
        elif not (equals and name.strip() and value.strip()):
            from assaymark.importers.roles import ROLES

            roles = f" (roles: {', '.join(ROLES)})" if flag == "--map" else ""
            problems.append(Problem(flag, f"must be written NAME=VALUE (got {word!r:.60}){roles}"))
        else:
            values[name.strip()] = value.strip()
    if problems:
        raise InputError("check", problems)
    return values


@contextmanager
def _errors() -> Iterator[None]:
    """Turn errors into exit status 2, because 1 means that a text or a claim did not pass."""
    try:
        yield
    except StoppedError:
        raise
    except (AssayError, OSError) as exc:
        opts.print_error(f"assaymark: {exc}")
        raise typer.Exit(_ERROR) from None


@app.command(epilog=examples(
    'assaymark gate assaymark-demo --claim "alder < cedar"',
    'assaymark gate assaymark-demo --claim "cedar first" --at-least qualified',
    'assaymark gate assaymark-demo --claim "alder ~ birch" --json',
))  # fmt: skip
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
    from assaymark.records import to_json

    with _errors():
        gated = workflow.gate_claim(claim, workflow.read_decided(run, alias or ()), at_least)
        value = to_json(gated) | {"claim": claim, "at_least": at_least}
        opts.emit(ctx, value, workflow.gate_lines(gated, at_least))
    if not gated.passed:
        raise typer.Exit(1)


@app.command(epilog=examples(
    "assaymark proofread README.md --run assaymark-demo",
    "assaymark proofread README.md --run assaymark-demo --format sarif",
    'assaymark proofread README.md --run assaymark-demo --alias "A=alder"',
))  # fmt: skip
def proofread(
    ctx: typer.Context,
    file: Annotated[list[Path], typer.Argument(help="Texts: Markdown, HTML, LaTeX or plain text.", metavar="FILE")],
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
        decided = workflow.read_decided(run, alias or ())
        documents = [workflow.read_document(path, decided) for path in dict.fromkeys(file)]
        checked = [workflow.proofread_text(document, decided) for document in documents]
        changes: list[str] = []
        if fix:
            fixed = [workflow.fix_text(document, decided) for document in checked]
            checked, changes = [document for document, _ in fixed], [line for _, lines in fixed for line in lines]
    failing = any(placed.fails for text in checked for placed in text.found)
    if json or format == "json":
        opts.emit_json({
            "run": str(run), "findings": [placed.view for text in checked for placed in text.found], "failing": failing,
            "not_looked_for": list(decided.names.common), "diff": changes,
        })  # fmt: skip
    elif format == "sarif":
        opts.emit_json(workflow.sarif(checked))
    elif format == "github":
        for line in workflow.github_lines(checked):
            typer.echo(line)
    else:
        lines = workflow.proofread_lines(checked, decided, fixing=fix)
        opts.print_lines([*changes, *([""] if changes else []), *lines])
    if failing:
        raise typer.Exit(1)


@app.command(epilog=examples("assaymark skill > SKILL.md"))
def skill() -> None:
    """Print instructions for a coding agent: how to use assaymark on a table of scores, and what never to claim."""
    typer.echo(files("assaymark.workflow").joinpath("skill.md").read_text(encoding="utf-8"), nl=False)


@app.command(epilog=examples(
    "assaymark serve runs/mine", "assaymark serve runs/mine --port 0 --open",
    "assaymark serve runs/mine --host 0.0.0.0 --allow-host lab.example.org",
))  # fmt: skip
def serve(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Run folder, or the folder of a site.", metavar="FOLDER")],
    host: Annotated[str,
        option("Bind address; anything but 127.0.0.1 exposes the pages.", "ADDRESS", "--host")] = "127.0.0.1",
    allow: Annotated[Texts, option("Host name or address of this machine; repeatable.", "NAME", "--allow-host")] = None,
    port: Port = 8400, open_: Annotated[bool, typer.Option("--open", help="Open the pages in the browser.")] = False,
) -> None:  # fmt: skip
    """Show a run in the browser, with live progress; Ctrl-C stops the server.

    Only requests to a host named here are answered, so that no other web page can read the run.
    """
    everywhere = host in workflow.EVERY
    with workflow.open_server(folder, host, port, allowed=allow or ()) as server:
        names = ["localhost" if everywhere else host, *(allow or ())]
        address, *others = (f"http://{name}:{server.server_address[1]}/" for name in names)
        hint = "others on the network are refused: say with --allow-host NAME how they call this machine"
        lines = [f"{folder} at {', '.join([address, *others])}", *([hint] if everywhere and not allow else [])]
        opts.print_lines([*lines, "Ctrl-C stops the server; a run in progress continues"])
        if open_:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            opts.print_lines(["stopped"])


CORE: Final = ("numpy", "scipy", "pyarrow", "duckdb", "sqlalchemy", "pydantic", "zstandard", "pyyaml", "typer", "rich",
               "jinja2")  # fmt: skip
_EXTRAS: Final = {
    "openai": ("openai", ""), "anthropic": ("anthropic", ""), "google": ("google-genai", ""),
    "inspect": ("inspect-ai", ""), "postgres": ("psycopg", "a call log in PostgreSQL"),
    "ray": ("ray", "assaymark measure --compute ray"),
}  # fmt: skip
"""Extras for models, shared ledgers and clusters: the package that each installs, and its purpose if not models."""
_CLIENTS: Final = {"yfinance": "yfinance", "fred": "fredapi", "ccxt": "ccxt", "huggingface": "huggingface_hub"}
"""The client library that each extra for market data installs."""


@dataclass(frozen=True, slots=True)
class DoctorLine:
    """One line of ``doctor``: a package or key, whether it is there, and a version or advice."""

    what: str
    present: bool
    detail: str
    needed: bool = True


def examine(environment: Mapping[str, str]) -> list[DoctorLine]:
    """Examine the interpreter, the packages and the keys, of which only "set or not" is read."""
    from assaymark.engine.providers.anthropic import ANTHROPIC
    from assaymark.engine.providers.google import GOOGLE
    from assaymark.engine.providers.openai import RESPONSES
    from assaymark.market.sources import SOURCES

    findings = [DoctorLine("assaymark", True, f"{__version__} on Python {platform.python_version()}")]

    def package(name: str, lacking: str, needed: bool = False) -> None:
        try:
            findings.append(DoctorLine(name, True, version(name), needed))
        except PackageNotFoundError:
            findings.append(DoctorLine(name, False, lacking, needed))

    def key(name: str, purpose: str) -> None:
        present = bool(environment.get(name))
        findings.append(DoctorLine(name, present, f"{'set' if present else 'not set'} (for {purpose})", False))

    for name in CORE:
        package(name, "missing; install assaymark again with pip", True)
    for extra, (name, purpose) in _EXTRAS.items():
        package(name, f"not installed; pip install 'assaymark[{extra}]' for {purpose or f'models {extra}/...'}")
    for provider in (RESPONSES, ANTHROPIC, GOOGLE):
        for name in provider.key_envs:
            key(name, f"models {provider.name}/...")
    for extra in dict.fromkeys(source.extra for source in SOURCES.values()):
        package(_CLIENTS[extra], f"not installed; pip install 'assaymark[{extra}]' for assaymark data pull")
    for name in dict.fromkeys(filter(None, (source.key_variable for source in SOURCES.values()))):
        asking = ", ".join(source for source, entry in SOURCES.items() if entry.key_variable == name)
        key(name, f"assaymark data pull: {asking}")
    return findings


@app.command(epilog=examples("assaymark doctor", "assaymark doctor --json | jq .can_run"))
def doctor(ctx: typer.Context, json: AsJson = False) -> None:
    """Check which packages and keys are present (never the keys' values), and list what can run."""
    from assaymark.importers import IMPORTERS

    findings = examine(os.environ)
    missing = any(not finding.present for finding in findings if finding.needed)
    runs = ["nothing until the missing packages above are installed"] if missing else [
        "assaymark demo: yes, with no key, no file and no network",
        "assaymark bench qa, assaymark bench pipeline: yes, with ten built-in models",
        "assaymark run studies/valueblind.toml: yes; your own agents as http/... or python/...",
        f"import: {', '.join(sorted(IMPORTERS))}", f"models without a key: {', '.join(sorted(opts.models()))}",
    ]  # fmt: skip
    marks = ["yes" if finding.present else ("NO " if finding.needed else "no ") for finding in findings]
    lines = [f"{mark}  {finding.what:<20} {finding.detail}" for mark, finding in zip(marks, findings, strict=True)]
    opts.emit(ctx, {"findings": findings, "can_run": runs}, [*lines, *runs])
    if missing:
        raise AssayError("a package that assaymark needs is missing")
