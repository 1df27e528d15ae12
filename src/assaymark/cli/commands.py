"""What `assaymark --help` shows, and where each command lives: a command is loaded when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group

from assaymark.cli.options import CommandGroup, Verb, show_examples, tools_of

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem


class Place(NamedTuple):
    """A command: the module that it lives in, what makes it there, and what it does in a few words.

    ``made_by`` is a `typer.Typer` with the command in it, or a function of `Tools` that gives a group.
    """

    module: str
    made_by: str
    does: str


_STUDY: Final = ("assaymark.cli.study", "app")
_GATE: Final = ("assaymark.cli.gate", "app")

COMMANDS: Final[Mapping[str, Mapping[str, Place]]] = {
    "Start here": {
        "check": Place("assaymark.cli.check", "app", "read a table of scores, and say what it supports"),
        "demo": Place(*_STUDY, "run a small built-in study and write its report"),
        "gate": Place(*_GATE, "fail unless a run supports a claim"),
        "proofread": Place(*_GATE, "check the sentences of a text against a run"),
        "skill": Place(*_GATE, "print instructions for a coding agent"),
        "serve": Place("assaymark.cli.serve", "app", "show a run in the browser, also while it is running"),
        "doctor": Place("assaymark.cli.doctor", "app", "check packages and keys, and list what can run"),
    },
    "A study": {
        "run": Place(*_STUDY, "lock, decide, judge, measure, claim and report in one"),
        "import": Place(*_STUDY, "import existing records into a run folder"),
        "draw": Place("assaymark.cli.label", "app", "draw a random sample for people to grade"),
        "controls": Place(*_STUDY, "make control texts from imported records"),
        "lock": Place(*_STUDY, "freeze a plan and report its statistical power"),
        "amend": Place(*_STUDY, "change a locked plan, on the record"),
        "judge": Place(*_STUDY, "score every decision with every judge"),
        "measure": Place(*_STUDY, "measure judges, agents and evidence"),
        "claim": Place(*_STUDY, "decide which claims are supported; verify certificates"),
        "report": Place(*_STUDY, "write the pages and print the summary"),
        "label": Place("assaymark.cli.label", "app", "let people grade a random sample of the texts, blind"),
        "plan-calls": Place(*_STUDY, "simulate which further calls would raise a claim"),
        "worker": Place(*_STUDY, "answer calls of a shared ledger from another machine"),
        "verify": Place(*_STUDY, "check every file of a run against its digests"),
        "export": Place(*_STUDY, "export logs for Inspect, or tables for a notebook"),
    },
    "Instruments, benchmarks, seasons": {
        "datasheet": Place("assaymark.cli.datasheet", "app", "measure a judge on pairs of known quality"),
        "bench": Place("assaymark.cli.bench", "bench_app", "PortBench: questions, and a pipeline under stress"),
        "season": Place("assaymark.cli.season", "app", "let agents trade day by day, and grade them"),
        "data": Place("assaymark.cli.data", "app", "make, fetch, show and check market data"),
    },
}
"""Every command, as the help lists them."""

EXAMPLES: Final = ("assaymark check scores.csv", "assaymark demo", "assaymark run study.toml --out runs/mine")

STATUSES: Final = "Exit status: 0 done, 1 error, 2 misuse, 3 degraded, 70 a bug, 130 stopped."
"""What a command's exit status says, in short; `assaymark.cli.main` says it in full."""

ALIASES: Final[Mapping[str, str]] = {
    "agree": "measure", "annotate": "label", "analyse": "measure", "analyze": "measure", "certify": "claim",
    "compare": "datasheet --compare", "evaluate": "judge", "grade": "judge", "html": "report", "init": "season init",
    "market": "data", "open": "serve", "pipeline": "bench pipeline", "plan": "lock", "preregister": "lock",
    "publish": "season publish", "pull": "data pull", "qa": "bench qa", "resume": "run", "score": "judge",
    "show": "serve", "start": "run", "status": "serve", "step": "season step", "synth": "data synth", "view": "serve",
    "watch": "serve",
}  # fmt: skip
"""Commands by other words for them."""

_PLACES: Final = {name: place for places in COMMANDS.values() for name, place in places.items()}


class Root(CommandGroup):
    """The root of the command line, which knows its commands by name and loads each when it is asked for."""

    def list_commands(self, _ctx: Context) -> list[str]:
        """The names, in the order of the help."""
        return list(_PLACES)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """One command, loaded now."""
        if cmd_name not in self.commands and cmd_name in _PLACES:
            place = _PLACES[cmd_name]
            made: Any = getattr(import_module(place.module), place.made_by)
            if not isinstance(made, typer.Typer):
                made = made(tools_of(ctx))
            for info in made.registered_commands:
                info.cls = Verb
            group = get_group(made)
            self.commands[cmd_name] = group.commands.get(cmd_name, group)
        return self.commands.get(cmd_name)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """As a group does it; ``help COMMAND`` and ``version`` are understood too."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, ["--version"] if args == ["version"] else args)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """As a group does it, with a suggestion for a name that is nearly one of ours, or another word for it."""
        meant = [ALIASES[args[0]]] if args[0] in ALIASES else get_close_matches(args[0], _PLACES)
        if args[0] not in _PLACES and meant:
            ctx.fail(f"No such command {args[0]!r}; did you mean {' or '.join(meant)}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: Context, formatter: HelpFormatter) -> None:
        """The commands by what they are for, and examples."""
        for title, places in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, place.does) for name, place in places.items()], col_max=14)
        show_examples(formatter, EXAMPLES)
        formatter.write_paragraph()
        formatter.write_text(STATUSES)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Names that begin like this, without loading a command."""
        from typer._click.shell_completion import CompletionItem

        names = [name for name in _PLACES if name.startswith(incomplete)]
        options = super(TyperGroup, self).shell_complete(ctx, incomplete)
        return [*(CompletionItem(name, help=_PLACES[name].does) for name in names), *options]
