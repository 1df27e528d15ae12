"""Every measurement of one judge's datasheet from its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from assaymark.metrology import checks
from assaymark.metrology.datasheet.calls import CallTable, call_table
from assaymark.metrology.datasheet.equal_texts import (
    delta0_measurements,
    filler_measurement,
    invalid_measurement,
    reasons_of,
    vacuum_measurements,
)
from assaymark.metrology.datasheet.kappa import stability_measurement
from assaymark.metrology.datasheet.ladder import criterion_measurements, ladder_measurements
from assaymark.metrology.datasheet.recorder import Recorder
from assaymark.metrology.datasheet.shares import TaskBootstrap
from assaymark.records import Measurement, PairCall


def datasheet_measurements(
    calls: Sequence[PairCall], *, level: float = 0.95, rng: np.random.Generator
) -> tuple[Measurement, ...]:
    """Measure one judge as an instrument (Judge Datasheet, Algorithm 1).

    For each instruction that was given: dark current, preferences between nearly identical and between equal texts
    with their decomposition, sensitivity along the ladder, threshold, d', filler preference and unusable replies;
    then the shift that the strict instruction makes, and stability over trials. What was not run, or cannot be
    computed, is a measurement whose state says so. A log with one presentation order gets everything except what needs
    both.

    Shares carry intervals over tasks (`share_interval`), since the calls of a task depend on each other.
    ``detail["wilson"]`` of a share of calls holds Wilson's, which the source prints: it takes calls for independent,
    which not even the two orders of a pair are. Trials of a question are averaged into the shares and do not narrow the
    intervals.

    Parameters
    ----------
    calls : sequence of PairCall
        All calls of one judge, in any sequence.
    level : float
        Coverage aimed at.
    rng : numpy Generator
        Draws of tasks.

    Returns
    -------
    tuple of Measurement
        In the order of the protocol.

    Raises
    ------
    InputError
        No calls, several judges, contradictory or duplicate calls: see `call_table`. All problems at once.

    References
    ----------
    Usami et al. (2026). LLM judges have dark current. Section 3 and appendix A.7.

    Examples
    --------
    >>> calls = [
    ...     PairCall(pair=f"p{i}", condition="same_subset", task=f"t{i}", order=order, verdict="1", judge="j")
    ...     for i in range(6) for order in ("uv", "vu")
    ... ]
    >>> found = {m.id: m for m in datasheet_measurements(calls, rng=np.random.default_rng(1))}
    >>> found["delta0.positional[condition=same_subset,judge=j,prompt=tie-allowed]"].value
    1.0
    >>> found["dark_current[judge=j,prompt=tie-allowed]"].state
    'not measured: vacuum was not run under tie-allowed'
    """
    table = call_table(calls)
    return table_measurements(table, level=level, rng=rng, reasons=reasons_of(calls))


def table_measurements(
    table: CallTable,
    *,
    level: float = 0.95,
    rng: np.random.Generator,
    reasons: Mapping[str, Mapping[str, int]] | None = None,
) -> tuple[Measurement, ...]:
    """`datasheet_measurements` of columns that are known to be good, for logs too long to hold as records.

    ``reasons`` says for each prompt how often each reason for an unusable reply was given.
    """
    checks.probability("datasheet_measurements", "level", level)
    recorder = Recorder(table.judge, TaskBootstrap(rng, level), table.digest)
    found: list[Measurement] = []
    for prompt in table.arms:
        found.extend(vacuum_measurements(table, recorder, prompt))
        found.extend(delta0_measurements(table, recorder, prompt))
        found.extend(ladder_measurements(table, recorder, prompt))
        found.append(filler_measurement(table, recorder, prompt))
        found.append(invalid_measurement(table, recorder, prompt, (reasons or {}).get(prompt, {})))
    found.extend(criterion_measurements(table, recorder))
    found.append(stability_measurement(table, recorder))
    return tuple(found)
