"""Files that come with the package and are chosen by name: rubrics and scoring plans."""

from __future__ import annotations

from importlib.resources import files

from assaymark.errors import UnknownNameError


def shipped_names(folder: str) -> tuple[str, ...]:
    """The names of the files in a folder of this package, in alphabetical order.

    >>> shipped_names("season/plans")
    ('v0.3', 'v0.4')
    """
    names = (entry.name for entry in (files("assaymark.judging") / folder).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def shipped_text(kind: str, folder: str, name: str) -> str:
    """The file ``name`` in a folder of this package.

    Raises
    ------
    UnknownNameError
        There is none; the message says of which ``kind``, and offers the closest name.
    """
    if name not in shipped_names(folder):
        raise UnknownNameError(kind, name, shipped_names(folder))
    return (files("assaymark.judging") / folder / f"{name}.toml").read_text(encoding="utf-8")
