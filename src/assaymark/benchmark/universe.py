"""Which instruments a benchmark is about: a fixed rule, or named ones, over all six classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.market import CLASS_NAMES, History, Listing
from assaymark.portfolio.strategies import CLASSES

DEFAULT_SIZE = 81
"""Instruments of figures 28 to 30 of PortBench."""

_INDEX_NAMES = ("VIX", "VXN", "MOVE", "DXY")


@dataclass(frozen=True, slots=True, eq=False)
class Universe:
    """The instruments of a benchmark, in the order of every array.

    Attributes
    ----------
    ids : tuple of n_assets str
    classes : tuple of n_assets str
        Class names of `assaymark.portfolio.strategies.CLASSES`.
    codes : int array of shape (n_assets,)
        The place of each class in `CLASSES`.
    """

    ids: tuple[str, ...]
    classes: tuple[str, ...]
    codes: np.ndarray

    @property
    def size(self) -> int:
        """n_assets."""
        return len(self.ids)


def choose_universe(history: History, instruments: int | Sequence[str] = DEFAULT_SIZE) -> Universe:
    """So many instruments by a fixed rule, or exactly the named ones, in the order of the store.

    The rule looks at nothing but class, sub-sector and day of listing. Places are dealt to the six classes in turn
    until a class has no more; within a class to its sub-sectors in turn, and within a sub-sector to the one listed
    first. So 81 of the embedded market's 183 are all bonds, commodities, real estate, crypto and cash, and 24
    equities. How an instrument ends is not looked at: one that is delisted later can be chosen.

    Raises
    ------
    UnknownNameError
        An instrument is named that the store does not have.
    InputError
        A class has no instrument, fewer than six are asked for or more than there are, one is named twice, or one is
        an index, which nobody can hold.

    Examples
    --------
    >>> from assaymark.market import synthetic_history
    >>> found = choose_universe(synthetic_history(0))
    >>> [found.classes.count(name) for name in CLASSES]
    [24, 15, 16, 10, 12, 4]
    """
    listings = history.listings
    tradable = [one for one in listings if not is_index(one)]
    if isinstance(instruments, int):
        chosen = _dealt(tradable, instruments)
        problems = [*_missing(chosen), *_sized(instruments, len(tradable))]
    else:
        chosen = _named(listings, instruments)
        problems = [*_repeated(instruments), *_indices(chosen), *_missing(chosen)]
    if problems:
        raise InputError(f"universe ({history.source or 'history'})", problems)
    wanted = {one.id for one in chosen}
    kept = [one for one in listings if one.id in wanted]
    names = tuple(CLASS_NAMES[one.asset_class] for one in kept)
    codes = np.array([CLASSES.index(name) for name in names])
    codes.setflags(write=False)
    return Universe(tuple(one.id for one in kept), names, codes)


def is_index(listing: Listing) -> bool:
    """Whether it is an index such as VIX rather than something that can be bought.

    >>> from datetime import date
    >>> is_index(Listing("^VIX", "EQ", "", "Volatility index", date(2015, 1, 1)))
    True
    """
    bare = listing.id.upper().lstrip("^")
    return listing.id.startswith("^") or bare in _INDEX_NAMES or listing.sub == "index"


def _dealt(listings: Iterable[Listing], count: int) -> list[Listing]:
    """The first ``count`` of all in the order in which places are dealt."""
    decks: dict[str, list[Listing]] = {}
    for name in CLASSES:
        subs: dict[str, list[Listing]] = defaultdict(list)
        for one in listings:
            if CLASS_NAMES[one.asset_class] == name:
                subs[one.sub].append(one)
        # sorted is stable: of two listed on one day the first in the store comes first
        ordered = [sorted(members, key=lambda one: one.listed) for members in subs.values()]
        decks[name] = [one for turn in zip_longest(*ordered) for one in turn if one is not None]
    turns = (one for turn in zip_longest(*decks.values()) for one in turn if one is not None)
    return [one for one, _ in zip(turns, range(count), strict=False)]


def _named(listings: Sequence[Listing], names: Sequence[str]) -> list[Listing]:
    """The named instruments; a name that the store does not have is an error."""
    known = {one.id: one for one in listings}
    for name in names:
        if name not in known:
            raise UnknownNameError("instrument", name, tuple(known))
    return [known[name] for name in names]


def _sized(count: int, there: int) -> list[Problem]:
    """Whether so many can be had."""
    if len(CLASSES) <= count <= there:
        return []
    return [Problem("instruments", f"must be from {len(CLASSES)} to {there}, all that can be held (got {count})")]


def _repeated(names: Sequence[str]) -> list[Problem]:
    twice = sorted({name for name in names if list(names).count(name) > 1})
    return [Problem("instruments", f"each is named once (twice: {', '.join(twice)})")] if twice else []


def _indices(chosen: Iterable[Listing]) -> list[Problem]:
    found = [one.id for one in chosen if is_index(one)]
    return [Problem("instruments", f"an index cannot be held ({', '.join(found)})")] if found else []


def _missing(chosen: Iterable[Listing]) -> list[Problem]:
    """Classes without an instrument."""
    there = {CLASS_NAMES[one.asset_class] for one in chosen}
    lacking = [name for name in CLASSES if name not in there]
    if not lacking:
        return []
    return [Problem("classes", f"each of {', '.join(CLASSES)} needs an instrument (none of: {', '.join(lacking)})")]
