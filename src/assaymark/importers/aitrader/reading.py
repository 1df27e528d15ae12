"""The files of a log together: price files for the tracks that occur, and every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from assaymark.errors import InputError, Problem
from assaymark.importers.aitrader.lines import Line, Step, faults
from assaymark.importers.aitrader.prices import Prices, read_prices
from assaymark.importers.aitrader.tracks import TRACKS
from assaymark.importers.report import Tally
from assaymark.importers.source import joined, json_lines, json_object, pick, require, shaped

DECISIONS = "decisions.jsonl"
"""The file of steps, plain or as ``.gz``; the price files stand beside it."""

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Log:
    """What was read: prices by the log's track name, good steps in their order, and how many were left out.

    ``broken`` counts the steps of each track whose price file could not be read at all.
    """

    prices: dict[str, Prices] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    bad: int = 0
    broken: dict[str, int] = field(default_factory=dict)

    def runs(self) -> dict[tuple[str, str], list[Step]]:
        """Each agent's steps on each track, oldest first, by track and agent."""
        found: dict[tuple[str, str], list[Step]] = {}
        for step in sorted(self.steps, key=lambda one: (one.line.track, one.agent, one.at)):
            found.setdefault((step.line.track, step.agent), []).append(step)
        return found


def read_log(files: Mapping[str, bytes], tally: Tally, progress: Progress | None = None) -> Log:
    """Every step and price of the files; what is wrong goes to ``tally``.

    Raises
    ------
    InputError
        A file is missing or damaged as a whole.
    """
    log = Log()
    name, data = require(files, DECISIONS)
    lines = list(json_lines(data))
    absent: dict[str, int] = {}
    places: dict[str, str] = {}
    for done, (number, line) in enumerate(lines, start=1):
        if not _read_line(log, files, f"{name} line {number}", line, tally, absent, places):
            log.bad += 1
        if progress is not None:
            progress("steps", done, len(lines))
    for track, count in absent.items():
        wanted = TRACKS[track].prices
        tally.problem(wanted, f"missing, and needed for {count} steps of {track}; give it as {wanted} or {wanted}.gz")
    for track, count in log.broken.items():
        tally.problem(TRACKS[track].prices, f"{count} steps of {track} without prices: their file is broken")
    if not lines:
        tally.problem(name, "holds no step: no line with anything in it")
    return log


def _read_line(
    log: Log,
    files: Mapping[str, bytes],
    place: str,
    text: bytes,
    tally: Tally,
    absent: dict[str, int],
    places: dict[str, str],
) -> bool:
    """Whether a line became a step."""
    try:
        json_object(text)
    except ValueError as exc:
        tally.problem(place, str(exc))
        return False
    line: Line | None = shaped(Line, text, place, tally)
    if line is None:
        return False
    track = TRACKS.get(line.track)
    if track is None:
        tally.problem(f"{place}, track", f"must be one of {', '.join(TRACKS)} (got {line.track[:60]!r})")
        return False
    prices = None if line.track in log.broken else _prices(log, files, line.track, tally)
    if prices is None:
        unread = log.broken if line.track in log.broken else absent
        unread[line.track] = unread.get(line.track, 0) + 1
        return False
    try:
        at = track.read(line.step)
    except ValueError as exc:
        tally.problem(f"{place}, step", str(exc))
        return False
    found = faults(line, at, prices)
    step = Step(line, track, at, place)
    if step.record_id in places:
        found.append(f"step: {line.model} has two lines at {line.step} (first at {places[step.record_id]})")
    for what in found:
        where, _, rest = what.partition(": ")
        tally.problem(f"{place}, {where}", rest)
    if found:
        return False
    places[step.record_id] = place
    log.steps.append(step)
    return True


def _prices(log: Log, files: Mapping[str, bytes], track: str, tally: Tally) -> Prices | None:
    """The prices of a track, read when its first step is met; None where there is no such file."""
    if track not in log.prices:
        before = len(tally.problems)
        try:
            found = pick(files, TRACKS[track].prices)
            made = None if found is None else read_prices(TRACKS[track], *found, tally)
        except InputError as exc:
            tally.problems += [Problem(joined(exc.source, one.where), one.what) for one in exc.problems]
            made = None
        if made is not None and made.steps:
            log.prices[track] = made
        elif len(tally.problems) > before:
            log.broken.setdefault(track, 0)
    return log.prices.get(track)
