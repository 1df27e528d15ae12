"""The cycles that a study cuts for itself: made before the lock, so that the plan is locked on what will be shown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final

import numpy as np

from assaymark.agents.prompts import task_text
from assaymark.errors import PlanError
from assaymark.market.cycles import (
    Cycle,
    CycleKey,
    MinuteSource,
    cycles_of,
    key_of,
    synthetic_minutes,
)
from assaymark.market.minute_file import minutes_from_file
from assaymark.protocol import Study, Substrate
from assaymark.records import Context, Instrument, Series, content_id
from assaymark.workflow.folder import RunFolder, new_folder
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.tables import CONTEXTS, CYCLES, OUTCOMES, Store

_PLACE: Final = ("regimes", "cycles", "bars", "seed", "source", "windows")


def prepare(folder: RunFolder, study: Study, *, progress: Progress = silent) -> None:
    """Cut the cycles of a study into a run folder: contexts, and apart from them where each was cut from.

    Equal studies make equal bytes; what is there already for this substrate is not made again. Nothing is done for a
    study whose records are imported.

    Raises
    ------
    PlanError
        The folder holds other records already.
    """
    if study.substrate is None:
        return
    store = Store(folder)
    basis: dict[str, str | None] = {"substrate": _digest(study.substrate)}
    if all(store.done(table, basis) for table in (CONTEXTS, CYCLES, OUTCOMES)):
        return
    # The same contexts without the rest are what a kill between two tables leaves.
    if store.digest(CONTEXTS) is not None and not store.done(CONTEXTS, basis):
        raise PlanError(f"{folder.path} holds other records already; run this study in a new folder")
    contexts: list[Context] = []
    keys: list[CycleKey] = []
    wanted = len(study.substrate.regimes) * study.substrate.cycles
    for cycle in cut(study.substrate):
        contexts.append(cycle.context)
        keys.append(key_of(cycle, content_id(cycle.context), study.substrate.source))
        progress("cutting cycles", len(keys), wanted)
    with new_folder(folder.path):
        store.write(CONTEXTS, contexts, basis)
        store.write(CYCLES, keys, basis)
        store.write(OUTCOMES, (), basis)


def cut(substrate: Substrate, *, cycles: int | None = None) -> list[Cycle]:
    """The cycles of a substrate; with ``cycles`` only so many of each regime, which are the same ones."""
    return list(
        cycles_of(
            source_of(substrate),
            substrate.regimes,
            cycles=substrate.cycles if cycles is None else min(cycles, substrate.cycles),
            bars=substrate.bars,
            seed=substrate.seed,
            prompt=task_text(),
        )
    )


def source_of(substrate: Substrate) -> MinuteSource:
    """Where the minutes of a substrate come from.

    Raises
    ------
    InputError
        A file of minutes that cannot be read, or holds bars that are none.
    """
    if substrate.source == "synthetic":
        return synthetic_minutes(substrate.seed)
    return minutes_from_file(Path(substrate.source), substrate.windows or {})


def unsanitised(cycle: Cycle) -> Context:
    """A cycle as it would be shown with dates, names and levels left in: what a date probe has to be able to date."""
    shift = timedelta(seconds=int(cycle.raw[0].times[-1])) - timedelta(seconds=cycle.context.cutoff.timestamp())
    series = tuple(
        Series(
            instrument=one.instrument,
            interval_s=60,
            times=tuple(when + shift for when in cycle.context.series[0].times),
            **{
                name: tuple(np.asarray(getattr(one, name)).tolist())
                for name in ("open", "high", "low", "close", "volume")
            },
        )
        for one in cycle.raw
    )
    return Context(
        completeness="complete",
        cutoff=cycle.context.cutoff + shift,
        cutoff_source="bars",
        prompt=cycle.context.prompt,
        series=series,
        instruments=tuple(Instrument(id=one.instrument, name=one.instrument) for one in cycle.raw),
        constraints=cycle.context.constraints,
    )


def _digest(substrate: Substrate) -> str:
    """What the cycles depend on, the task that stands in them included."""
    chosen = substrate.model_dump(mode="json", include=set(_PLACE))
    return content_id({"substrate": chosen, "task": task_text()})
