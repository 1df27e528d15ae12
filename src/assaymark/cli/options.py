"""What the groups of commands share: the options about money and the ledger, and how things are asked and shown."""

from __future__ import annotations

import enum
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from assaymark.errors import AssayError, StoppedError

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import Console, RenderableType
    from typer._click import Context, HelpFormatter
    from typer._click.core import Parameter

    from assaymark.engine import Model
    from assaymark.workflow.forecast import Forecast
    from assaymark.workflow.track import Progress


# How loudly a command speaks: `--quiet`, `--verbose`, what goes to stderr meanwhile, and how a stop is told.


class Loudness(enum.IntEnum):
    """How much is said on stderr; results go to stdout whatever it is."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


KEPT: Final = "what is finished is kept and nothing is half-written; the same command goes on from there"
"""What is safe when a command that works in a run folder is stopped."""

WHOLE: Final = "every file is as it was, or whole; run the same command again"
"""What is safe when a command that writes files from what is there is stopped."""

NOTHING: Final = "nothing was written; run the same command again"
"""What is safe when a command that writes nothing is stopped."""

_LOUDNESS: Final = ContextVar("loudness", default=Loudness.NORMAL)
_LEVELS: Final = {
    Loudness.QUIET: logging.ERROR,
    Loudness.NORMAL: logging.WARNING,
    Loudness.VERBOSE: logging.INFO,
}


def loudness() -> Loudness:
    """How loudly the command that is running speaks."""
    return _LOUDNESS.get()


def _quieter(ctx: typer.Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:  # what is only read, as to complete a word, is not run
        _speak(Loudness.QUIET)


def _louder(ctx: typer.Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        _speak(Loudness.VERBOSE)


Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=_quieter, expose_value=False, help="Only errors and the result."),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", callback=_louder, expose_value=False, help="Tell each stage, retry and file."),
]


@cache
def voice_options() -> tuple[Parameter, ...]:
    """The two options that every command takes, made once: the parser tells options apart by who they are."""
    made = typer.Typer(rich_markup_mode=None, add_completion=False)

    @made.command()
    def _both(quiet: Quiet = False, verbose: Verbose = False) -> None:
        pass

    return tuple(get_command(made).params)


@contextmanager
def speaking() -> Iterator[None]:
    """Let one command speak, at first as loudly as usual: what the program notes goes to stderr, and SIGTERM stops it.

    SIGTERM is to a command what Ctrl-C is, so that both end in the same order.
    """
    found = _LOUDNESS.set(Loudness.NORMAL)
    handler = _Teller(time.monotonic())
    logger = logging.getLogger("assaymark")
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(_LEVELS[Loudness.NORMAL])
    try:
        with _ended_as_interrupted():
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        _LOUDNESS.reset(found)


def _speak(wanted: Loudness) -> None:
    _LOUDNESS.set(wanted)
    logging.getLogger("assaymark").setLevel(_LEVELS[wanted])


class _Teller(logging.Handler):
    """Writes what the program notes to stderr: stages with the seconds since the command began."""

    def __init__(self, began: float) -> None:
        super().__init__()
        self._began = began

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING:
            tell(f"[{time.monotonic() - self._began:7.1f} s] {record.getMessage()}")
        else:
            tell(f"assaymark: {record.getMessage()}")


def tell(line: str) -> None:
    """One line on stderr; what could steer a terminal is shown as text."""
    typer.echo(visible(line), err=True)


def visible(text: str) -> str:
    r"""``text`` without what could steer a terminal.

    >>> visible("a\x1b[31mb\nc")
    'a\\x1b[31mb\nc'
    """
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)


@contextmanager
def _ended_as_interrupted() -> Iterator[None]:
    """Have SIGTERM raise `KeyboardInterrupt` in here, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def console(*, stderr: bool = False) -> Console:
    """Where people read; texts from records are printed as they are."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


@contextmanager
def progress(kept: str = KEPT) -> Iterator[Progress]:
    """How far the work in the block is, on stderr. When it is stopped, ``kept`` says what is safe."""
    from assaymark.workflow.progress import bars

    with bars(console(stderr=True), quiet=loudness() is Loudness.QUIET) as shown:
        try:
            yield shown
        except BaseException as exc:
            if was_interrupt(exc):
                raise StoppedError(f"stopped{shown.where()}: {kept}") from None
            raise


def was_interrupt(error: BaseException | None) -> bool:
    """Whether an error is a stop, or came of one: code that is stopped while it is loaded raises what it likes."""
    while error is not None and not isinstance(error, AssayError):
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


# What every command has in common: how loud it is, its examples, names that a person would guess, errors in a line.


GUESSES: Final[Mapping[str, tuple[str, ...]]] = {
    "--address": ("--host", "--ray"),
    "--api-base": ("--base-url",),
    "--bind": ("--host",),
    "--browser": ("--open",),
    "--cost-limit": ("--budget",),
    "--database": ("--ledger",),
    "--date": ("--day", "--at"),
    "--db": ("--ledger",),
    "--dir": ("--out",),
    "--endpoint": ("--base-url",),
    "--estimate": ("--dry-run",),
    "--file": ("--from",),
    "--folder": ("--out",),
    "--frequency": ("--pace",),
    "--from": ("--start",),
    "--input": ("--from", "--judgments"),
    "--jobs": ("--workers",),
    "--lang": ("--language",),
    "--log": ("--from",),
    "--mapping": ("--map",),
    "--max-cost": ("--budget",),
    "--max-usd": ("--budget",),
    "--message": ("--reason",),
    "--out-dir": ("--out",),
    "--outdir": ("--out",),
    "--output": ("--out",),
    "--output-dir": ("--out",),
    "--output-tokens": ("--max-tokens",),
    "--plan": ("--study",),
    "--processes": ("--workers",),
    "--repeats": ("--trials",),
    "--runs": ("--trials",),
    "--scores": ("--judgments",),
    "--since": ("--start",),
    "--table": ("--judgments",),
    "--ticker": ("--symbol",),
    "--timeout": ("--deadline",),
    "--to": ("--end",),
    "--universe": ("--instruments",),
    "--until": ("--end",),
    "--why": ("--reason",),
}
"""Options by the names that people try first; the first that a command has is meant."""

_NEAR: Final = 0.75  # how much two names of options have to have in common before one is offered for the other
_ANY_FILE: Final = ("--config", "--file", "--path", "--input", "--plan", "--folder", "--dir")


def examples(*lines: str) -> str:
    """What stands at the end of a command's help, one example a line."""
    return "\n".join(lines)


class Verb(TyperCommand):
    """A command: quiet or loud, and lenient with the names of its options."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Its parameters, and those that every command has."""
        return _with_voice(super().get_params(ctx))

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the words behind the command, guessed names included."""
        return super().parse_args(ctx, list(understood(args, self.get_params(ctx))))

    def format_epilog(self, _ctx: Context, formatter: HelpFormatter) -> None:
        """The examples."""
        show_examples(formatter, (self.epilog or "").splitlines())


class Verbs(TyperGroup):
    """A group of commands, which says what it has when it is given nothing."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Its parameters, and those that every command has."""
        return _with_voice(super().get_params(ctx))

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the words behind the group; without any, show the help. That is misuse, so that no script takes it."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def format_epilog(self, _ctx: Context, formatter: HelpFormatter) -> None:
        """The examples."""
        show_examples(formatter, (self.epilog or "").splitlines())


def show_examples(formatter: HelpFormatter, lines: Sequence[str]) -> None:
    """Examples as a part of a help, each on a line of its own."""
    if lines:
        with formatter.section("Example" if len(lines) == 1 else "Examples"):
            for line in lines:
                formatter.write_text(line)


def _with_voice(params: list[Parameter]) -> list[Parameter]:
    """The parameters of a command with those that every command has, before the last, which is the help."""
    return [*params[:-1], *voice_options(), *params[-1:]]


def understood(args: Sequence[str], params: Sequence[Parameter]) -> Iterator[str]:
    """The words of a command line with guessed names replaced by the real ones.

    A name is guessed right when it differs from an option's by ``_`` for ``-``, or by an ``s``, or is in `GUESSES`. A
    command's only argument may be given by its name too.
    """
    options = {name: one for one in params if _is_option(one) for name in (*one.opts, *one.secondary_opts)}
    named = _argument_names([one for one in params if not _is_option(one)])
    rest = iter(args)
    for word in rest:
        if word == "--":
            yield from (word, *rest)
            return
        name, equals, value = word.partition("=")
        found = name if name in options or not name.startswith("--") else _meant(name, options)
        if found is None and name in named:
            yield from (value,) if equals else ()
            continue
        yield (found or name) + equals + value
        if not equals and found in options and not _is_flag(options[found]):
            yield from (value for value in [next(rest, None)] if value is not None)


def _meant(name: str, options: Mapping[str, Any]) -> str | None:
    """The option that a guessed name means; None if there is none."""
    plain = name.replace("_", "-")
    tried = (plain, plain + "s", plain.removesuffix("s"), *GUESSES.get(plain, ()))
    return next((one for one in tried if one in options), None)


def _argument_names(arguments: Sequence[Parameter]) -> frozenset[str]:
    """Names by which the only argument of a command may be given."""
    if len(arguments) != 1:
        return frozenset()
    (only,) = arguments
    own = {only.name or "", (only.metavar or "").lower(), (only.metavar or "").lower() + "-file"}
    return frozenset([*(f"--{name}" for name in own if name), *_ANY_FILE])


def _is_option(one: Parameter) -> bool:
    return one.param_type_name == "option"


def _is_flag(one: Any) -> bool:
    return bool(one.is_flag or one.count)


def misuse(error: typer.TyperException) -> str:
    """What is wrong with a command line, in one line, with what may have been meant or what it looks like done right.

    >>> misuse(typer.BadParameter("give a run folder"))
    'give a run folder'
    """
    said = " ".join(error.format_message().removeprefix("Invalid value: ").split())
    said = said.partition(" (Possible options:")[0].rstrip(".").replace(". Did you mean", "; did you mean")
    said = said.partition(", unable to parse")[0].replace(": Input should", ": it should")
    near = get_close_matches(
        getattr(error, "option_name", ""), getattr(error, "possibilities", None) or (), cutoff=_NEAR
    )
    if near:
        said += f"; did you mean {' or '.join(sorted(near))}?"
    ctx: Any = getattr(error, "ctx", None)
    if ctx is None:
        return said
    example = _first_example(ctx.command.epilog)
    said = said[:1].lower() + said[1:]
    if hasattr(error, "option_name") and isinstance(ctx.command, TyperGroup) and not near:
        said += "; the options of a command stand behind its name"
    if example is None or said.endswith("?"):
        return f"{said}{'' if said.endswith('?') else ';'} see: {ctx.command_path} --help"
    return f"{said}; for example: {example}"


def _first_example(epilog: str | None) -> str | None:
    return next(iter((epilog or "").splitlines()), None)


DEGRADED = 3
"""Exit status of a command that did its work without something that should have been there."""

Ledger = Annotated[
    str | None,
    typer.Option("--ledger", help="Ledger in a PostgreSQL database, for several workers.", metavar="URL"),
]
Budget = Annotated[
    float | None, typer.Option("--budget", help="Most that all calls of this run may cost.", metavar="USD")
]
PriceFile = Annotated[
    Path | None, typer.Option("--prices", help="Prices of your own (TOML), in place of ours.", metavar="FILE")
]
StrictAgents = Annotated[
    bool,
    typer.Option("--strict-agents", help="Stop when a Python agent raises."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document in place of words.")]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would be asked and cost; send nothing.")]


@dataclass(frozen=True, slots=True)
class Tools:
    """The models that can be asked, progress, and how lines and tables are printed.

    ``progress`` can be told what is safe when the work in its block is stopped.
    """

    models: Callable[[], Mapping[str, Model]]
    progress: Callable[..., AbstractContextManager[Progress]]
    say_all: Callable[[Iterable[str]], None]
    show: Callable[[RenderableType], None]


def tools_of(ctx: Context) -> Tools:
    """The tools that the root of the command line was given."""
    found = ctx.find_object(Tools)
    assert found is not None, "the root sets them before any command runs"
    return found


def say(tools: Tools, as_json: bool, value: object, lines: Iterable[str]) -> None:
    """A result: one JSON document on one line for a program, else lines for a person."""
    if as_json:
        say_json(value)
    else:
        tools.say_all(lines)


def say_json(value: object) -> None:
    """Print one JSON document on one line, for a program that reads along."""
    from assaymark.records import canonical_json

    typer.echo(canonical_json(value))


def say_forecast(tools: Tools, as_json: bool, found: Forecast) -> None:
    """What a dry run found."""
    say(tools, as_json, {"dry_run": True, "models": found.models, "usd": found.usd}, found.lines)
