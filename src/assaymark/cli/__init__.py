"""The command line: the composition root, the only module that hands real models to the verbs of `workflow`.

Commands live in three modules, each imported when one of its commands is called; `COMMANDS` lists them all.
"""

from __future__ import annotations

import os

# Before numpy is loaded, here and in the processes started from here: the matrices are small, and a linear algebra
# library that spins a thread a core makes them several times slower on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gc
import sys
import traceback
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

from assaymark import __version__
from assaymark.cli import options as opts
from assaymark.cli.options import models as models
from assaymark.errors import AssayError, StoppedError

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem


DONE: Final = 0
WRONG: Final = 1
DEFECT: Final = 70
STOPPED: Final = 130

_COLLECTED: Final = (50_000, 10, 10)
"""Thresholds of the garbage collector, far above Python's (700, 10, 10): the records are many, live to the end and form
no reference cycles, and looking for some would cost a fifth of the time of a report."""


def main(argv: list[str] | None = None) -> int:
    """Run one command, and return its exit status."""
    if argv is None:  # the process is this command's alone
        gc.set_threshold(*_COLLECTED)
        opts.OWN_PROCESS.set(True)
        if isinstance(sys.stdout, TextIOWrapper):  # a character that its encoding lacks is written as an escape
            sys.stdout.reconfigure(errors="backslashreplace")
        if sys.argv[1:2] in (["check"], ["demo"], ["import"], ["report"]):
            # Arrow, NumPy and SciPy would spend more than half a second importing them
            opts.skip_imports("pandas", "charset_normalizer", "numpy.f2py", "numpy.testing")
    with opts.logging_session():
        try:
            status = app(argv, prog_name="assaymark", standalone_mode=False)
        except StoppedError as exc:
            status, line = STOPPED, str(exc)
        except AssayError as exc:
            status, line = WRONG, str(exc)
        except typer.TyperException as exc:
            status, line = exc.exit_code, opts.usage_error(exc)
        except OSError as exc:  # the system failed, not the program: no permission, disk full
            status, line = WRONG, f"{exc.filename or 'the file system'}: {exc.strerror or exc}"
        except SystemExit as end:  # raised by the command line library for shell completion and for a broken pipe
            return end.code if isinstance(end.code, int) else DONE
        except BaseException as exc:
            if not isinstance(exc, Exception) and not isinstance(exc, KeyboardInterrupt):
                raise
            status, line = STOPPED, f"stopped: {opts.WHOLE}"  # outside of `working`, which would say where it stopped
            if not opts.was_interrupt(exc):
                advice = "report it with the traceback above"
                if opts.is_verbose():
                    opts.print_error("".join(traceback.format_exception(exc)).rstrip())
                else:
                    advice = "run it again with --verbose, and report the traceback"
                words = " ".join(f"{type(exc).__name__}: {exc}".split())
                status, line = DEFECT, f"a bug in assaymark, {words}; {advice}; what was finished is kept"
        else:
            if status != STOPPED:
                return status if isinstance(status, int) else DONE
            line = f"stopped: {opts.WHOLE}"
        opts.print_error(f"assaymark: {line}")
        return int(status)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"assaymark {__version__}")
        raise typer.Exit


COMMANDS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "Start here": {
        "check": ("start", "read a table of scores, and say what it supports"),
        "demo": ("study", "run a small built-in study and write its report"),
        "gate": ("start", "fail unless a run supports a claim"),
        "proofread": ("start", "check the sentences of a text against a run"),
        "skill": ("start", "print instructions for a coding agent"),
        "serve": ("start", "show a run in the browser, also while it is running"),
        "doctor": ("start", "check packages and keys, and list what can run"),
    },
    "A study": {
        "run": ("study", "lock, decide, judge, measure, claim and report in one"),
        "import": ("study", "import existing records into a run folder"),
        "draw": ("study", "draw a random sample for people to grade"),
        "controls": ("study", "make control texts from imported records"),
        "lock": ("study", "freeze a plan and report its statistical power"),
        "amend": ("study", "change a locked plan, on the record"),
        "judge": ("study", "score every decision with every judge"),
        "measure": ("study", "measure judges, agents and evidence"),
        "claim": ("study", "decide which claims are supported; verify certificates"),
        "report": ("study", "write the pages and print the summary"),
        "label": ("study", "let people grade a random sample of the texts, blind"),
        "plan-calls": ("study", "simulate which further calls would raise a claim"),
        "worker": ("study", "answer calls of a shared call log from another machine"),
        "verify": ("study", "check every file of a run against its digests"),
        "export": ("study", "export logs for Inspect, or tables for a notebook"),
    },
    "Judges, benchmarks, seasons": {
        "datasheet": ("tracks", "measure a judge on pairs of known quality"),
        "bench": ("tracks", "PortBench: questions, and a pipeline under stress"),
        "season": ("tracks", "let agents trade day by day, and grade them"),
        "data": ("tracks", "make, fetch, show and check market data"),
    },
}
"""Every command by its heading in the help: the module that it lives in, and a summary in a few words."""

EXAMPLES: Final = ("assaymark check scores.csv", "assaymark demo", "assaymark run study.toml --out runs/mine")

STATUSES: Final = "Exit status: 0 done, 1 error, 2 misuse, 3 degraded, 70 a bug, 130 stopped."
"""The meaning of each exit status, for the help."""

ALIASES: Final[Mapping[str, str]] = {
    "agree": "measure", "annotate": "label", "analyse": "measure", "analyze": "measure", "certify": "claim",
    "compare": "datasheet --compare", "evaluate": "judge", "grade": "judge", "html": "report", "init": "season init",
    "market": "data", "open": "serve", "pipeline": "bench pipeline", "plan": "lock", "preregister": "lock",
    "publish": "season publish", "pull": "data pull", "qa": "bench qa", "resume": "run", "score": "judge",
    "show": "serve", "start": "run", "status": "serve", "step": "season step", "synth": "data synth", "view": "serve",
    "watch": "serve",
}  # fmt: skip
"""Synonyms of commands, each with the command to suggest for it."""

_PLACES: Final = {name: place for places in COMMANDS.values() for name, place in places.items()}
_GROUP: Final = cache(get_group)  # parsing the signatures of a module's commands takes longer than a small command


class Root(opts.CommandGroup):
    """The root command group: lists all commands by name and imports the module of one when it is called."""

    def list_commands(self, _ctx: Context) -> list[str]:
        """The names of all commands, in the order of the help."""
        return list(_PLACES)

    def get_command(self, _ctx: Context, cmd_name: str) -> Command | None:
        """The command of this name, imported on first use; None if there is none."""
        if cmd_name not in self.commands and cmd_name in _PLACES:
            loaded: typer.Typer = import_module(f"assaymark.cli.{_PLACES[cmd_name][0]}").app
            for each in (loaded, *(group.typer_instance for group in loaded.registered_groups)):
                for info in each.registered_commands if each is not None else ():
                    info.cls = opts.Command
            self.commands[cmd_name] = _GROUP(loaded).commands[cmd_name]
        return self.commands.get(cmd_name)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the arguments of the root; ``help COMMAND`` and ``version`` work too."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, ["--version"] if args == ["version"] else args)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Resolve a command; an unknown name fails with the commands it may have been meant for."""
        matches = [ALIASES[args[0]]] if args[0] in ALIASES else get_close_matches(args[0], _PLACES)
        if args[0] not in _PLACES and matches:
            ctx.fail(f"No such command {args[0]!r}; did you mean {' or '.join(matches)}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands under their headings, then examples and exit statuses."""
        for title, places in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, does) for name, (_, does) in places.items()], col_max=14)
        opts.show_examples(formatter, EXAMPLES)
        formatter.write_paragraph()
        formatter.write_text(STATUSES)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command name without importing a command, and the options of the root."""
        from typer._click.shell_completion import CompletionItem

        names = [name for name in _PLACES if name.startswith(incomplete)]
        options = super(TyperGroup, self).shell_complete(ctx, incomplete)
        return [*(CompletionItem(name, help=_PLACES[name][1]) for name in names), *options]


app = typer.Typer(
    name="assaymark", cls=Root,
    help="Report which comparisons of LLM systems your judge scores support.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Report which comparisons of LLM systems judge scores support."""
