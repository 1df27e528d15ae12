"""Shared parts of the commands: common options, verbosity, aliases of options, one-line errors, printing."""

from __future__ import annotations

import json
import logging
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from assaymark.errors import AssayError, StoppedError, problems_of

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import Console, RenderableType
    from typer._click import Context, HelpFormatter
    from typer._click.core import Parameter

    from assaymark.engine import Model
    from assaymark.engine.providers.registry import Models
    from assaymark.workflow import Forecast, RunFolder


KEPT: Final = "finished work is kept and nothing is half-written; run the same command to resume"
"""Advice after stopping a command that works in a run folder."""

WHOLE: Final = "every file is as it was, or whole; run the same command again"
"""Advice after stopping a command that derives files from others."""

NOTHING: Final = "nothing was written; run the same command again"
"""Advice after stopping a command that writes nothing."""

_FILL: Final = re.compile(r"(?: |\x1b\[[0-9;]*m)+$", re.MULTILINE)  # spaces and colour codes at the end of a line
_LOG: Final = logging.getLogger("assaymark")  # its level says how much goes to stderr; results always go to stdout

OWN_PROCESS: Final = ContextVar("alone", default=False)  # true if the process runs this one command only


def skip_imports(*modules: str) -> None:
    """Make imports of ``modules`` fail in a process that runs one command: libraries import them without needing them.

    A submodule such as ``numpy.f2py`` is loaded lazily instead: on the first use of one of its attributes.
    """

    def refuse(fullname: str, path: Sequence[str] | None, _target: object = None) -> ModuleSpec | None:
        if fullname not in modules:
            return None
        if "." not in fullname:
            raise ModuleNotFoundError(f"{fullname} is not used here", name=fullname)
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec

    if OWN_PROCESS.get():
        sys.meta_path.insert(0, SimpleNamespace(find_spec=refuse))


def is_verbose() -> bool:
    """True if the running command logs every stage."""
    return _LOG.level <= logging.INFO


def _set_level(level: int) -> Callable[[typer.Context, bool], None]:
    """Return the callback of an option that logs from ``level`` on."""

    def speak(ctx: typer.Context, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:  # shell completion parses a command line without running it
            _LOG.setLevel(level)

    return speak


Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=_set_level(logging.ERROR), expose_value=False,
                                     help="Print only errors and the result.")]  # fmt: skip
Verbose = Annotated[bool, typer.Option("--verbose", "-v", callback=_set_level(logging.INFO), expose_value=False,
                                       help="Log every stage, retry and file.")]  # fmt: skip


@cache
def common_options() -> tuple[Parameter, ...]:
    """Return the options ``--quiet`` and ``--verbose``, the same objects each time: the parser compares by identity."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)

    @app.command()
    def _both(quiet: Quiet = False, verbose: Verbose = False) -> None:
        pass

    return tuple(get_command(app).params)


@contextmanager
def logging_session() -> Iterator[None]:
    """Log warnings to stderr in a block, and let SIGTERM stop a command just as Ctrl-C does."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    handler = _StderrHandler(time.monotonic())
    _LOG.addHandler(handler)
    pool = logging.getLogger("sqlalchemy.pool")
    before = _LOG.level, pool.level
    _LOG.setLevel(logging.WARNING)
    # An interrupt while a connection closes is raised again by the caller; the pool would log its traceback as well.
    pool.setLevel(logging.CRITICAL)
    main = threading.current_thread() is threading.main_thread()
    previous = signal.getsignal(signal.SIGTERM)
    if main and previous is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if previous is None else previous)
        _LOG.removeHandler(handler)
        _LOG.setLevel(before[0])
        pool.setLevel(before[1])


class _StderrHandler(logging.Handler):
    """Writes log records to stderr; those below a warning carry the seconds since the command began."""

    def __init__(self, began: float) -> None:
        super().__init__()
        self._began = began

    def emit(self, record: logging.LogRecord) -> None:
        stage = record.levelno < logging.WARNING
        head = f"[{time.monotonic() - self._began:7.1f} s]" if stage else "assaymark:"
        print_error(f"{head} {record.getMessage()}")


def print_error(line: str) -> None:
    """Print one line on stderr, without control characters."""
    typer.echo(visible(line), err=True)


def visible(text: str) -> str:
    """``text`` with control characters escaped, so that it cannot steer a terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)


def console(*, stderr: bool = False) -> Console:
    """Return a console on stdout or stderr that does not highlight numbers in printed texts."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False)
    if made.width < 1:  # COLUMNS=0, at which nothing at all would be printed
        made.width = 80
    return made


def show(content: RenderableType) -> None:
    """Print a table or a summary, without the spaces that pad its lines."""
    out = console()
    with out.capture() as printed:
        out.print(content)
    out.out(_FILL.sub(lambda end: end[0].replace(" ", ""), printed.get()), end="")


def print_lines(lines: Iterable[str]) -> None:
    """Print lines without markup or wrapping."""
    from rich.markup import escape

    out = console()
    for line in lines:
        out.print(escape(line), soft_wrap=True)


@contextmanager
def working(advice: str = KEPT) -> Iterator[None]:
    """Show the progress of the block on stderr; if it is stopped, raise `StoppedError` that ends with ``advice``."""
    from assaymark.workflow import bars

    with bars(console(stderr=True), quiet=_LOG.level >= logging.ERROR) as shown:
        try:
            yield
        except BaseException as exc:
            if was_interrupt(exc):
                raise StoppedError(f"stopped{shown.where()}: {advice}") from None
            raise


def was_interrupt(error: BaseException | None) -> bool:
    """True if an error is a `KeyboardInterrupt` or was caused by one: an interrupted import may raise anything."""
    while error is not None and not isinstance(error, AssayError):
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "--address": ("--host", "--ray"), "--api-base": ("--base-url",), "--bind": ("--host",), "--browser": ("--open",),
    "--cost-limit": ("--budget",), "--database": ("--ledger",), "--date": ("--day", "--at"), "--db": ("--ledger",),
    "--dir": ("--out",), "--endpoint": ("--base-url",), "--estimate": ("--dry-run",), "--file": ("--from",),
    "--folder": ("--out",), "--frequency": ("--pace",), "--from": ("--start",), "--input": ("--from", "--judgments"),
    "--jobs": ("--workers",), "--lang": ("--language",), "--log": ("--from",), "--mapping": ("--map",),
    "--max-cost": ("--budget",), "--max-usd": ("--budget",), "--message": ("--reason",), "--out-dir": ("--out",),
    "--outdir": ("--out",), "--output": ("--out",), "--output-dir": ("--out",), "--output-tokens": ("--max-tokens",),
    "--plan": ("--study",), "--processes": ("--workers",), "--repeats": ("--trials",), "--runs": ("--trials",),
    "--scores": ("--judgments",), "--since": ("--start",), "--table": ("--judgments",), "--ticker": ("--symbol",),
    "--timeout": ("--deadline",), "--to": ("--end",), "--universe": ("--instruments",), "--until": ("--end",),
    "--why": ("--reason",),
}  # fmt: skip
"""Options by other names that people try; the first option that the command has is meant."""

_NEAR: Final = 0.75  # similarity from which one option name is suggested for another
_ANY_FILE: Final = {"--config", "--file", "--path", "--input", "--plan", "--folder", "--dir"}


def examples(*lines: str) -> str:
    """The epilog of a command: examples, one a line."""
    return "\n".join(lines)


class _CommonOptions(TyperCommand if TYPE_CHECKING else object):  # type: ignore[misc]
    """Base of commands and groups: adds the options for verbosity, and examples at the end of the help."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return the parameters, with the common ones inserted before ``--help``, which comes last."""
        params = super().get_params(ctx)
        return [*params[:-1], *common_options(), *params[-1:]]

    def format_epilog(self, _ctx: Context, formatter: HelpFormatter) -> None:
        """Write the examples."""
        show_examples(formatter, (self.epilog or "").splitlines())


class Command(_CommonOptions, TyperCommand):
    """A command that takes the common options and aliases of options."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the arguments of the command after replacing aliases."""
        return super().parse_args(ctx, list(resolve_aliases(args, self.get_params(ctx))))


class CommandGroup(_CommonOptions, TyperGroup):
    """A group of commands that shows its help when it is called without arguments."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the arguments of the group; without any, show the help and exit with status 2, as for misuse."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(2)
        return super().parse_args(ctx, args)


def show_examples(formatter: HelpFormatter, lines: Sequence[str]) -> None:
    """Write examples as a section of the help, each on its own line."""
    if lines:
        with formatter.section("Example" if len(lines) == 1 else "Examples"):
            for line in lines:
                formatter.write_text(line)


def resolve_aliases(args: Sequence[str], params: Sequence[Parameter]) -> Iterator[str]:
    """Yield the arguments of a command line with aliases replaced by the names of its options.

    An alias differs from an option by ``_`` for ``-`` or by a final ``s``, or is in `ALIASES`. The only positional
    argument of a command may be given as an option too: by its name, its metavar or a word such as ``--file``.
    """
    options: dict[str, Any] = {}
    arguments = []
    for param in params:
        if param.param_type_name == "option":
            options |= dict.fromkeys((*param.opts, *param.secondary_opts), param)
        else:
            arguments.append(param)
    argument_names: set[str] = set()
    if len(arguments) == 1:
        metavar = (arguments[0].metavar or "").lower()
        argument_names = {f"--{name}" for name in (arguments[0].name, metavar, f"{metavar}-file") if name} | _ANY_FILE
    rest = iter(args)
    for word in rest:
        if word == "--":
            yield from (word, *rest)
            return
        name, equals, value = word.partition("=")
        canonical: str | None = name
        if name not in options and name.startswith("--"):
            plain = name.replace("_", "-")
            tried = (plain, plain + "s", plain.removesuffix("s"), *ALIASES.get(plain, ()))
            canonical = next((option for option in tried if option in options), None)
        if canonical is None and name in argument_names:
            yield from (value,) if equals else ()
            continue
        yield (canonical or name) + equals + value
        if not equals and canonical in options and not (options[canonical].is_flag or options[canonical].count):
            yield from (value for value in [next(rest, None)] if value is not None)


def usage_error(error: typer.TyperException) -> str:
    """Format a usage error as one line that ends with a suggestion, an example or the command's help."""
    cause: Any = error.__cause__
    if "Input should" in error.message:  # a number that does not parse, or is out of range
        error.message = problems_of(cause)[0].what
    message = " ".join(error.format_message().removeprefix("Invalid value: ").split()).replace(": Value error,", ":")
    message = message.partition(" (Possible options:")[0].rstrip(".").replace(". Did you mean", "; did you mean")
    possible = getattr(error, "possibilities", None) or ()
    similar = get_close_matches(getattr(error, "option_name", ""), possible, cutoff=_NEAR)
    if similar:
        message += f"; did you mean {' or '.join(sorted(similar))}?"
    ctx: Any = getattr(error, "ctx", None)
    if ctx is None:
        return message
    message = message if message[1:2].isupper() else message[:1].lower() + message[1:]
    if hasattr(error, "option_name") and isinstance(ctx.command, TyperGroup) and not similar:
        message += "; the options of a command follow its name"
    example = next(iter((ctx.command.epilog or "").splitlines()), None)
    if example is None or message.endswith("?"):
        return f"{message}{'' if message.endswith('?') else ';'} see: {ctx.command_path} --help"
    return f"{message}; for example: {example}"


def option(help: str, metavar: str, *flags: str, **more: Any) -> Any:
    """An option of a command with its help text and metavar."""
    return typer.Option(*flags, help=help, metavar=metavar, **more)


def fail_usage(ctx: Context, problem: str) -> NoReturn:
    """End a command with a usage error."""
    raise typer.BadParameter(problem, ctx=ctx)


DEGRADED = 3
"""Exit status of a command that did its days of a season although an agent was absent on some of them."""

Ledger = Annotated[str | None, option("PostgreSQL call log, for several workers.", "URL", "--ledger")]
Budget = Annotated[float | None, option("Maximum total spend for this run, in USD.", "USD", "--budget")]
PriceFile = Annotated[Path | None, option("Custom price table (TOML), not the built-in one.", "FILE", "--prices")]
StrictAgents = Annotated[bool, typer.Option("--strict-agents", help="Stop when a Python agent raises.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Print the planned calls and their cost; send nothing.")]


class _BuiltInModels(Mapping[str, "Model"]):
    """The built-in models by name. A module is imported only when no module before it has the name."""

    modules = (
        ("agents.reference", "reference_agents"), ("agents.llm", "Dater"),
        ("judging.reference.judges", "reference_season_judges"), ("judging.reference.judges", "reference_judges"),
        ("judging.reference.judges", "ConstraintOracle"), ("judging.pairs.reference", "reference_pair_judges"),
        ("benchmark.reference", "reference_benchmark_models"),
    )  # fmt: skip

    def __init__(self) -> None:
        self._loaded: list[Mapping[str, Model]] = []

    def _groups(self) -> Iterator[Mapping[str, Model]]:
        for at, (module, function) in enumerate(self.modules):
            if at == len(self._loaded):
                group = getattr(import_module(f"assaymark.{module}"), function)()
                self._loaded.append(group if isinstance(group, Mapping) else {group.name: group})
            yield self._loaded[at]

    def __getitem__(self, name: str) -> Model:
        if name.startswith("reference/"):
            for group in self._groups():
                if name in group:
                    return group[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._groups())

    def __len__(self) -> int:
        return sum(map(len, self._groups()))


def models() -> Mapping[str, Model]:
    """Return every model that can answer a call, by name: built-in models and those of all providers."""
    from assaymark.engine.providers.registry import Models, providers

    return Models(_BuiltInModels(), providers())


def priced_models(ctx: Context) -> Models:
    """Return the models that a command may call, with the prices and the budget of its options."""
    from assaymark.workflow import paid_models

    options = ctx.params
    return paid_models(models(), options["budget"], options["prices"], options.get("strict_agents", False))


def emit(ctx: Context, value: object, lines: Iterable[str]) -> None:
    """Print a result: with ``--json`` one JSON document, else lines."""
    if ctx.params["json"]:
        emit_json(value)
    else:
        print_lines(lines)


def emit_json(value: object) -> None:
    """Print one JSON document on one line."""
    from assaymark.records import canonical_json

    text = canonical_json(value)
    typer.echo(text if (sys.stdout.encoding or "utf-8").lower().startswith("utf") else json.dumps(json.loads(text)))


def emit_forecast(ctx: Context, forecast: Forecast) -> None:
    """Print the estimate of ``--dry-run``."""
    emit(ctx, {"dry_run": True, "models": forecast.models, "usd": forecast.usd}, forecast.lines)


def emit_costed(
    ctx: Context, folder: RunFolder, models: Models | None, value: Mapping[str, object], lines: Iterable[str],
    then: Iterable[str] = (), summary: RenderableType | None = None,
) -> None:  # fmt: skip
    """Print a result below its summary, with the cost of the run's replies if the command called ``models``."""
    if summary is not None and not ctx.params["json"]:
        show(summary)
    if models is None:
        emit(ctx, value, [*lines, *then])
        return
    from assaymark.workflow import paid_lines, paid_views, prices_of

    paid = paid_views(folder, prices_of(models))
    emit(ctx, {**value, "paid": paid}, [*lines, *paid_lines(paid), *then])
