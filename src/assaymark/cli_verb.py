"""What every command has in common: how loud it is, its examples, names that a person would guess, errors in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from assaymark.cli_voice import voice_options

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter
    from typer._click.core import Parameter

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
