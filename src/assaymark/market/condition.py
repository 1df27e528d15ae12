"""What is wrong with a whole store, and what is only worth knowing about it.

A problem is something after which numbers made from the store are wrong or a part of it is missing; a note is
something that the store's own rules deal with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assaymark.errors import Problem
from assaymark.market.checks import Finding, Limits, price_findings
from assaymark.market.history import History

LONG_GAP = 30
"""Weekdays: a gap inside a series of up to so many is a note, because it stays missing as a whole; a longer one is a
problem."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What `condition` found. ``problems`` and ``notes`` are in the order of kinds, then instruments."""

    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]


def condition(history: History, limits: Limits | None = None) -> Condition:
    """Look over a store: bars in their newest version, macro series and filings.

    Problems: prices that are not positive, returns that cannot be believed, closes equal for too many days in a row, a
    high below the open, close or low, a day with half of a class, a series that ends early although it is not
    delisted, a gap of more than `LONG_GAP` weekdays, bars before the listing or after the delisting, an instrument
    without any price, filings of unknown instruments. Notes: shorter gaps, frozen closes of cash, restated bars, and
    macro series that have ended.

    Examples
    --------
    >>> from assaymark.market.history import synthetic_history
    >>> found = condition(synthetic_history(0))
    >>> len(found.problems), "days in a row are missing" in found.notes[0].what
    (0, True)
    """
    bars = _newest(history)
    ids, groups = [one.id for one in history.listings], [one.asset_class for one in history.listings]
    found = price_findings(history.days, ids, bars["close"], limits, groups)
    found = [one for one in found if not (one.kind == "stale" and _ended_in_order(history, one))]
    light = [_is_note(history, one) for one in found]
    problems = [Problem(one.where, one.what) for one, note in zip(found, light, strict=True) if not note]
    problems += [*_impossible_bars(history, bars), *_outside_of_life(history, bars["close"]), *_strangers(history)]
    notes = [Problem(one.where, one.what) for one, note in zip(found, light, strict=True) if note]
    return Condition(tuple(problems), (*notes, *_restatements(history), *_ended_series(history)))


def _newest(history: History) -> dict[str, np.ndarray]:
    """All fields with the last version of every bar."""
    at = np.iinfo(np.int64).max
    found = {}
    for name, values in history.bars.items():
        found[name] = np.array(values)
        history.restated.apply(found[name], name, 0, at)
    return found


def _ended_in_order(history: History, finding: Finding) -> bool:
    """Whether a series that ends early was delisted within a gap's length of its last price."""
    delisted = history.listings[finding.column].delisted
    if delisted is None:
        return False
    last = history.days[history.days.size - 1 - finding.days]
    return int(np.busday_count(last, np.datetime64(delisted))) <= Limits().gap_days


def _is_note(history: History, finding: Finding) -> bool:
    """Whether the store's rules deal with it."""
    if finding.kind == "frozen":
        return history.listings[finding.column].asset_class == "CA"
    return finding.kind == "gap" and finding.days <= LONG_GAP


def _impossible_bars(history: History, bars: dict[str, np.ndarray]) -> Iterator[Problem]:
    """Highs below and lows above what lies between them; a share of 1e-9 is left to rounding."""
    high, low = bars.get("high"), bars.get("low")
    for name, edge, sign in (("high", high, 1.0), ("low", low, -1.0)):
        for other in ("open", "close"):
            if edge is not None and other in bars:
                beyond = sign * (bars[other] - edge) > 1e-9 * np.abs(edge)
                for column in np.flatnonzero(beyond.any(axis=0)):
                    rows = np.flatnonzero(beyond[:, column])
                    where = f"{history.listings[column].id}, {history.days[rows[0]]}"
                    way = "below" if sign > 0 else "above"
                    yield Problem(where, f"the {name} is {way} the {other}; {rows.size} days in all")


def _outside_of_life(history: History, closes: np.ndarray) -> Iterator[Problem]:
    """Bars of instruments that did not exist."""
    there = np.isfinite(closes)
    early = there & (history.days[:, None] < history.listed_on)
    late = there & (history.days[:, None] > history.gone_after)
    for wrong, what in ((early, "before it was listed"), (late, "after it was delisted")):
        for column in np.flatnonzero(wrong.any(axis=0)):
            rows = np.flatnonzero(wrong[:, column])
            yield Problem(f"{history.listings[column].id}, {history.days[rows[0]]}", f"{rows.size} bars lie {what}")


def _strangers(history: History) -> Iterator[Problem]:
    """Filings that belong to nothing."""
    known = {one.id for one in history.listings}
    for name in sorted(set(history.fundamentals.places) - known):
        yield Problem(name, f"{len(history.fundamentals.places[name])} filings of an instrument that is not there")


def _restatements(history: History) -> Iterator[Problem]:
    """How many bars have more than one version."""
    later = history.restated
    for column in np.unique(later.columns):
        rows = later.rows[later.columns == column]
        where = f"{history.listings[column].id}, {history.days[rows.min()]}"
        yield Problem(where, f"{rows.size} later versions of {np.unique(rows).size} bars")


def _ended_series(history: History) -> Iterator[Problem]:
    """Macro series whose last value is older than their limit on the last day of bars, or of any series."""
    ends = [one.periods[-1] for one in history.macro if one.periods.size]
    last = max([*ends, *history.days[-1:]], default=None)
    for one in history.macro:
        if one.periods.size and int((last - one.periods[-1]).astype("timedelta64[D]").astype(int)) > one.stale_days:
            yield Problem(one.id, f"has ended: its last value is of {one.periods[-1]}; later it reads as stale")
