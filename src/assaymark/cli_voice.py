"""How loudly a command speaks: `--quiet`, `--verbose`, what goes to stderr meanwhile, and how a stop is told."""

from __future__ import annotations

import enum
import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer.main import get_command

from assaymark.errors import AssayError, StoppedError

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import Console
    from typer._click.core import Parameter

    from assaymark.workflow.progress import Progress


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
    """How far the work in the block is, on stderr. When it is stopped, ``kept`` says what is safe.

    Raises
    ------
    StoppedError
        It was stopped, by Ctrl-C or SIGTERM.
    """
    from assaymark.workflow.progress_shown import bars

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
