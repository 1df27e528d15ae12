"""Names that people write in files, and what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from assaymark.engine.calls import Model
from assaymark.errors import InputError, Problem, UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """The things of one kind that a study file may name. A wrong name is answered with the closest right one.

    >>> judges = Registry("judge")
    >>> @judges.add("auditor")
    ... def audit(): ...
    >>> judges.names()
    ('auditor',)
    >>> judges.get("auditr")
    Traceback (most recent call last):
    ...
    assaymark.errors.UnknownNameError: unknown judge 'auditr'. Did you mean 'auditor'? Known: auditor
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._known: dict[str, T] = {}

    def add(self, name: str) -> Callable[[T], T]:
        """Decorator that gives a thing its name.

        Raises
        ------
        ValueError
            The name is taken.
        """

        def keep(thing: T) -> T:
            if name in self._known:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._known[name] = thing
            return thing

        return keep

    def get(self, name: str) -> T:
        """The thing of that name, or `UnknownNameError`."""
        try:
            return self._known[name]
        except KeyError:
            raise UnknownNameError(self.kind, name, self.names()) from None

    def names(self) -> tuple[str, ...]:
        """Every known name, in alphabetical order."""
        return tuple(sorted(self._known))


def resolve(name: str, factories: Mapping[str, Callable[[str], Model]]) -> Model:
    """The model that ``provider/rest`` names: the provider's factory is handed the rest.

    Parameters
    ----------
    name : str
        As written in a study file. Only the first slash divides.
    factories : mapping of provider to factory
        Put together where the program is put together, so that nothing else knows which providers there are.

    Raises
    ------
    InputError
        The name has no provider or no rest.
    UnknownNameError
        No factory has that provider, or the factory does not know the rest.
    """
    provider, _, rest = name.partition("/")
    if not provider or not rest:
        known = ", ".join(sorted(factories)) or "none"
        problem = f"must be provider/name (got {name!r}); known providers: {known}"
        raise InputError("model", [Problem("name", problem)])
    if provider not in factories:
        raise UnknownNameError("model provider", provider, list(factories))
    return factories[provider](rest)
