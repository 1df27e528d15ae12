"""Input checks shared by all measuring functions: they report all problems together, with the value found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import InputError, Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_AXES = {1: "one axis [n]", 2: "two axes"}


def fail(source: str, argument: str, problem: str) -> NoReturn:
    """Raise an InputError with one problem of an argument."""
    raise InputError(source, [Problem(argument, problem)])


def ratings(source: str, name: str, values: ArrayLike, categories: int, *, ndim: int = 1) -> Ints:
    """Return ``values`` as integers in 1..categories. Valid input costs a few reductions; errors list every problem."""
    # The reductions dominate the cost of a kappa of a thousand items, so valid input runs nothing else.
    x = values if isinstance(values, np.ndarray) else array(source, name, values)
    if x.dtype.kind not in "iu":
        # Integral floats become integers.
        if x.dtype.kind != "f":
            fail(source, name, f"must be whole-number ratings (got {_kind_of(x)})")
        if not np.isfinite(x).all():
            broken = ~np.isfinite(x)
            problem = f"{int(broken.sum())} rating(s) are not finite (first at index {_first(broken)}); leave them out"
            fail(source, name, problem)
        broken = x != np.floor(x)
        if broken.any():
            rating = float(x[broken][0])
            fail(source, name, f"ratings must be whole (first that is not: {rating!r}); use round_half_up, then clip")
        # Beyond this, the conversion below would overflow into the scale.
        x = np.asarray(np.clip(x, -(2**53), 2**53), dtype=np.int64)
    _shaped(source, name, x, ndim)
    if np.minimum.reduce(x, axis=None) < 1 or np.maximum.reduce(x, axis=None) > categories:
        bad = x[(x < 1) | (x > categories)]
        fail(source, name, f"{bad.size} rating(s) off the scale 1..{categories} (first: {bad.flat[0]})")
    return x if x.dtype == np.int64 else x.astype(np.int64)


def categories_of(source: str, categories: int) -> int:
    """Check the size of an ordinal scale: an integer of at least 2."""
    if isinstance(categories, bool) or not isinstance(categories, (int, np.integer)) or categories < 2:
        fail(source, "categories", f"must be a whole number of at least 2 (got {categories!r})")
    return int(categories)


def finite(source: str, name: str, values: ArrayLike, *, ndim: int = 1) -> Floats:
    """Return ``values`` as finite floats with ``ndim`` axes and at least one element."""
    x = array(source, name, values)
    if x.dtype.kind not in "iuf":
        fail(source, name, f"must be numbers (got {_kind_of(x)})")
    _shaped(source, name, x, ndim)
    x = x.astype(np.float64, copy=False)
    bad = ~np.isfinite(x)
    if bad.any():
        fail(source, name, f"{int(bad.sum())} value(s) are not finite (first at index {_first(bad)}); leave them out")
    return x


def labels(source: str, name: str, values: Sequence[Any] | NDArray[Any], n: int) -> tuple[tuple[Any, ...], Ints]:
    """Return the sorted distinct names in ``values``, and the index of each item's name."""
    x = array(source, name, values)
    if x.ndim != 1 or x.size != n:
        fail(source, name, f"must have one entry for each of the {n} items (got shape {x.shape})")
    if x.dtype.kind not in "iuUS" and not (x.dtype.kind == "O" and all(isinstance(item, str) for item in x)):
        fail(source, name, f"must be names or whole numbers (got {_kind_of(x)})")
    names, codes = np.unique(x, return_inverse=True)
    return tuple(names.tolist()), codes.astype(np.int64, copy=False)


def probability(source: str, name: str, value: float, *, inclusive: bool = False) -> float:
    """Check that ``value`` is strictly between 0 and 1 (``inclusive``: or equal to an end)."""
    inside = 0 <= value <= 1 if inclusive else 0 < value < 1
    if not inside:
        fail(source, name, f"must lie {'in 0..1' if inclusive else 'strictly between 0 and 1'} (got {value!r})")
    return float(value)


def integer(source: str, name: str, value: float, *, least: int) -> int:
    """Return ``value`` as an integer of at least ``least``."""
    if isinstance(value, bool) or not np.isscalar(value) or value != value or value % 1 != 0 or value < least:
        fail(source, name, f"must be a whole number of at least {least} (got {value!r})")
    return int(value)


def two_agents(source: str, a: int, b: int, agents: int) -> None:
    """Check that two agent indices differ and exist."""
    for name, agent in (("a", a), ("b", b)):
        if integer(source, name, agent, least=0) >= agents:
            fail(source, name, f"must be one of the agents 0..{agents - 1} (got {agent})")
    if a == b:
        fail(source, "b", f"must be another agent than a (got {b} twice)")


def array(source: str, name: str, values: Any) -> NDArray[Any]:
    """Return ``values`` as an array; reject rows of unequal length."""
    try:
        return np.asarray(values)
    except ValueError:
        fail(source, name, "rows have unequal lengths; give a rectangular array")


def _shaped(source: str, name: str, x: NDArray[Any], ndim: int) -> None:
    """Reject an array that is empty or has another number of axes."""
    if not x.size:
        fail(source, name, "is empty; at least one item is needed")
    if x.ndim != ndim:
        fail(source, name, f"must have {_AXES.get(ndim, f'{ndim} axes')} (got shape {x.shape})")


def _kind_of(x: NDArray[Any]) -> str:
    return f"{'objects' if x.dtype.kind == 'O' else x.dtype.name}, such as {x.flat[0]!r}" if x.size else x.dtype.name


def _first(mask: Bools) -> str:
    place = np.argwhere(mask)[0].tolist()
    return str(place[0]) if len(place) == 1 else str(tuple(place))
