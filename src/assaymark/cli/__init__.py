"""The composition root: the command line, and the one place where real models are put together with the verbs.

Commands live in modules of their own, each loaded when it is called: the list of them is there at once.
"""

from __future__ import annotations

import os

# Before numpy is loaded, here and in the processes started from here: the matrices are small, and a linear algebra
# library that spins a thread a core makes them several times slower on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gc
import sys
import traceback
from collections.abc import Iterable, Mapping
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Annotated, Final

import typer

from assaymark import __version__
from assaymark.cli.commands import Root
from assaymark.cli.options import (
    WHOLE,
    Services,
    Verbosity,
    console,
    logging_session,
    misuse,
    print_error,
    progress,
    verbosity,
    was_interrupt,
)
from assaymark.errors import AssayError, StoppedError

if TYPE_CHECKING:
    from assaymark.engine import Model

DONE: Final = 0
WRONG: Final = 1
DEFECT: Final = 70
STOPPED: Final = 130

_COLLECTED: Final = (10_000, 10, 10)
"""How seldom the program looks for cycles: its records are many, have none, and stay. Python's own (700, 10, 10) costs
a fifth of the time of a report."""


def main(argv: list[str] | None = None) -> int:
    """Run one command, and return its exit status."""
    if argv is None:  # the process is this command's alone
        gc.set_threshold(*_COLLECTED)
        if sys.argv[1:2] == ["check"]:  # Arrow would load it wherever it is installed, for a quarter of a second
            sys.meta_path.insert(0, _WithoutPandas())
    with logging_session():
        try:
            status = app(argv, prog_name="assaymark", standalone_mode=False)
        except StoppedError as exc:
            status, line = STOPPED, str(exc)
        except AssayError as exc:
            status, line = WRONG, str(exc)
        except typer.TyperException as exc:
            status, line = exc.exit_code, misuse(exc)
        except OSError as exc:  # the machine, not the program: no permission, no room, a vanished disk
            status, line = WRONG, f"{exc.filename or 'the file system'}: {exc.strerror or exc}"
        except SystemExit as end:  # as the command line library answers a shell that completes a word, or a broken pipe
            return end.code if isinstance(end.code, int) else DONE
        except BaseException as exc:
            if not isinstance(exc, Exception) and not isinstance(exc, KeyboardInterrupt):
                raise
            status, line = STOPPED, f"stopped: {WHOLE}"  # outside of any work that says where it stopped
            if not was_interrupt(exc):
                verbose = verbosity() is Verbosity.VERBOSE
                how = "report it with the traceback above"
                if verbose:
                    print_error("".join(traceback.format_exception(exc)).rstrip())
                else:
                    how = "run it again with --verbose, and report the traceback"
                words = " ".join(f"{type(exc).__name__}: {exc}".split())
                status, line = DEFECT, f"a bug in assaymark, {words}; {how}; what was finished is kept"
        else:
            if status != STOPPED:
                return status if isinstance(status, int) else DONE
            line = f"stopped: {WHOLE}"
        print_error(f"assaymark: {line}")
        return int(status)


class _WithoutPandas(MetaPathFinder):
    """Says that pandas is not there."""

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> None:
        """Refuse it, and know nothing of any other module."""
        if fullname == "pandas":
            raise ModuleNotFoundError(f"{fullname} is not used here", name=fullname)


def models() -> Mapping[str, Model]:
    """Every model that can answer a call, by name."""
    from assaymark.agents import DATER, Dater, reference_agents
    from assaymark.benchmark.reference import reference_benchmark_models
    from assaymark.engine.providers.registry import Models, providers
    from assaymark.judging import ORACLE, ConstraintOracle, reference_judges
    from assaymark.judging.pairs import reference_pair_judges
    from assaymark.judging.season.reference import reference_season_judges

    fixed: dict[str, Model] = {
        **reference_agents(),
        **reference_judges(),
        **reference_pair_judges(),
        **reference_season_judges(),
        **reference_benchmark_models(),
        ORACLE: ConstraintOracle(),
        DATER: Dater(),
    }
    return Models(fixed, providers())


def _print_lines(lines: Iterable[str]) -> None:
    from rich.markup import escape

    out = console()
    for line in lines:
        out.print(escape(line), soft_wrap=True)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"assaymark {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="assaymark", cls=Root,
    help="Report which comparisons of LLM systems your judge scores support.",
    context_settings={
        "help_option_names": ["-h", "--help"],
        "obj": Services(models, progress, _print_lines, lambda content: console().print(content)),
    },
    rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Report which comparisons of LLM systems judge scores support."""
