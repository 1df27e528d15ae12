"""The composition root: the command line, and the one place where real models are put together with the verbs.

Commands live in modules of their own, each loaded when it is called: the list of them is there at once.
"""

from __future__ import annotations

import os

# Before numpy is loaded, here and in the processes started from here: the matrices are small, and a linear algebra
# library that spins a thread a core makes them several times slower on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from assaymark import __version__
from assaymark.cli_root import Root
from assaymark.cli_tools import Tools
from assaymark.errors import AssayError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from assaymark.engine import Model
    from assaymark.workflow.progress import Progress


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
    from assaymark.agents import DATER, Dater, reference_agents
    from assaymark.benchmark.reference import reference_benchmark_models
    from assaymark.engine.models import Models, providers
    from assaymark.judging import ORACLE, ConstraintOracle, reference_judges
    from assaymark.judging.pairs import reference_pair_judges
    from assaymark.judging.season.season_judges import reference_season_judges

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


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


@contextmanager
def _progress() -> Iterator[Progress]:
    from assaymark.workflow.progress import bars

    with bars(_console(stderr=True)) as progress:
        yield progress


def _say_all(lines: Iterable[str]) -> None:
    from rich.markup import escape

    console = _console()
    for line in lines:
        console.print(escape(line), soft_wrap=True)


def _show(content: RenderableType) -> None:
    _console().print(content)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"assaymark {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="assaymark",
    cls=Root,
    help="Measures LLM judges of AI investment agents as instruments, and says which claims may be made.",
    no_args_is_help=True,
    context_settings={"obj": Tools(models, _progress, _say_all, _show)},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Put a study of AI investment agents through the assay."""


if __name__ == "__main__":
    sys.exit(main())
