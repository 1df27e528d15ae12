"""`assaymark check`: what a table of scores supports."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from assaymark.cli.options import NOTHING, AsJson, Services, examples, option, say_json, tools_of
from assaymark.errors import InputError, Problem
from assaymark.importers.roles import ROLES
from assaymark.importers.scores import UnnamedError
from assaymark.plan import read_toml
from assaymark.workflow.check import OUT, Checked
from assaymark.workflow.check import check as check_table
from assaymark.workflow.run_folder import read_text

app = typer.Typer(rich_markup_mode=None)

Table = Annotated[
    Path, typer.Argument(help="Scores: CSV, TSV, JSON, JSON lines, Parquet, Arrow, or a tool's log.", metavar="TABLE")
]
RoleMap = Annotated[
    list[str] | None, option("Column of a role, or a TOML file of them; repeatable.", "ROLE=COLUMN", "--map")
]
OnScale = Annotated[str | None, option("Scale of the scores; default: read.", "1..5", "--scale")]
Criteria = Annotated[str | None, option("Columns that are scores, comma-separated.", "NAMES", "--dimensions")]
Judges = Annotated[str | None, option("Columns that are judges, or judges to keep.", "NAMES", "--judges")]
Makers = Annotated[list[str] | None, option("Maker of a judge or agent; repeatable.", "NAME=MAKER", "--family")]
Cluster = Annotated[str | None, option("Column that groups items; default: each item.", "COLUMN", "--cluster")]
Order = Annotated[
    str | None, option("exchangeable, or consecutive if clusters follow in time.", "ORDER", "--cluster-order")
]
Without = Annotated[list[str] | None, option("Judge to leave out, on the record; repeatable.", "JUDGE", "--without")]
Locked = Annotated[Path | None, option("Plan, or the folder where it was locked.", "STUDY", "--study")]
Pairs = Annotated[Path | None, option("Pairs that the same judges saw in both orders.", "TABLE", "--pairs")]
Humans = Annotated[str | None, option("Columns of people's grades; default: human_*.", "COLUMNS", "--human")]
Out = Annotated[Path, option("Folder to write.", "RUN", "--out", "-o")]


@app.command(
    epilog=examples(
        "assaymark check scores.csv",
        "assaymark check results.jsonl --map agent=made_by --scale 1..10",
        "assaymark check wide.csv --judges gpt-4o,claude --json | jq .verdicts",
        "assaymark check scores.csv --pairs orders.csv",
    )
)
def check(
    ctx: typer.Context, table: Table, role_map: RoleMap = None, scale: OnScale = None, dimensions: Criteria = None,
    judges: Judges = None, family: Makers = None, cluster: Cluster = None, cluster_order: Order = None,
    without: Without = None, study: Locked = None, pairs: Pairs = None, human: Humans = None,
    out: Out = OUT, json: AsJson = False,
) -> None:  # fmt: skip
    """Read a table of scores, say how it was read, and which sentences about its agents the scores support.

    Columns are known by their names and synonyms (agent, model, system; judge, grader; item, question_id; score,
    rating), with one row a score, one column a criterion or a judge, or pairs with a winner.
    """
    run_check(tools_of(ctx), table, out, json, role_map=role_map, scale=scale, dimensions=dimensions, judges=judges,
              family=family, cluster=cluster, cluster_order=cluster_order, without=without, study=study,
              pairs=pairs, human=human, labels=out)  # fmt: skip


def run_check(
    tools: Services, table: Path, out: Path | None, json: bool, *, role_map: RoleMap, family: Makers,
    dimensions: Criteria, without: Without, **given: Any,
) -> None:  # fmt: skip
    """Check a table, ask on a terminal which columns are scores where that is open, write and show the result."""
    roles, makers = mapped(role_map or (), "--map"), mapped(family or (), "--family")
    with tools.progress(NOTHING) as progress:

        def read(named: Sequence[str] | str | None) -> Checked:
            return check_table(table, map=roles, family=makers, dimensions=named, without=without or (),
                               progress=progress, **given)  # fmt: skip

        try:
            found = read(dimensions)
        except UnnamedError as exc:
            named = chosen(exc)
            if named is None:
                raise
            if exc.wanted == "judges":
                given["judges"] = named
            found = read(dimensions if exc.wanted == "judges" else named)
        page = None if out is None else found.save(out)
    show_checked(tools, json, found, page)


def show_checked(tools: Services, json: bool, found: Checked, page: Path | None) -> None:
    """The result for a program, or in words."""
    if json:
        say_json(found.document | ({} if page is None else {"page": str(page)}))
        return
    tools.show(found.summary)
    tools.print_lines([] if page is None else [f"page: {page}"])


def chosen(error: UnnamedError) -> tuple[str, ...] | None:
    """Which numeric columns are scores, by a question on a terminal; None where nobody can be asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    numbered = ", ".join(f"{at} {name}" for at, name in enumerate(error.columns, 1))
    what = "scores" if error.wanted == "dimensions" else "judges"
    said = typer.prompt(f"Which of these columns are {what} ({numbered})? Numbers or names, comma-separated", err=True)
    names = [one.strip() for one in said.split(",")]
    known = {str(at): name for at, name in enumerate(error.columns, 1)}
    return tuple(known.get(one, one) for one in names if one)


def mapped(given: Sequence[str], flag: str) -> dict[str, str]:
    """``name=value`` options, and TOML files of them, as a mapping."""
    found: dict[str, str] = {}
    problems: list[Problem] = []
    for one in given:
        name, equals, value = one.partition("=")
        if not equals and one.endswith(".toml"):
            tree = read_toml(read_text(Path(one), "column map"), source=one)
            words = {key: item for key, item in tree.items() if isinstance(item, str)}
            problems += [Problem(f"{one}: {key}", "must be the name of a column") for key in tree if key not in words]
            found |= words
        elif not (equals and name.strip() and value.strip()):
            known = f" (roles: {', '.join(ROLES)})" if flag == "--map" else ""
            problems.append(Problem(flag, f"must be written NAME=VALUE (got {one!r:.60}){known}"))
        else:
            found[name.strip()] = value.strip()
    if problems:
        raise InputError("check", problems)
    return found
