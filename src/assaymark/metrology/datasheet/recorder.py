"""Turns counts by task into measurements of one judge, each with its denominator, interval and method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.datasheet.shares import TaskBootstrap, share_interval
from assaymark.quantiles import wilson_ends
from assaymark.records import JSON, Measurement

CALLS, PAIRS = "calls", "pairs"


@dataclass(frozen=True, slots=True)
class Recorder:
    """What all measurements of a judge share: its name, the draws of tasks with their level, the hash of its calls."""

    judge: str
    bootstrap: TaskBootstrap
    inputs: str = ""

    @property
    def level(self) -> float:
        """Coverage aimed at by every interval."""
        return self.bootstrap.level

    def number(
        self,
        name: str,
        labels: Mapping[str, str],
        value: float | None,
        *,
        n: int,
        n_of: str,
        method: str,
        state: str = "ok",
        ends: tuple[float, float] | None = None,
        unit: str = "",
        detail: Mapping[str, JSON] | None = None,
    ) -> Measurement:
        """A measurement of this judge; without ``ends`` it has no interval and no level."""
        low, high = ends if ends is not None else (None, None)
        return Measurement(
            name=name,
            labels={"judge": self.judge, **labels},
            value=value,
            n=n,
            n_of=n_of,
            method=method,
            state=state,
            low=low,
            high=high,
            level=self.level if ends is not None else None,
            unit=unit,
            inputs=self.inputs,
            detail=dict(detail or {}),
        )

    def missing(
        self,
        name: str,
        labels: Mapping[str, str],
        state: str,
        *,
        n: int = 0,
        n_of: str = CALLS,
        detail: Mapping[str, JSON] | None = None,
    ) -> Measurement:
        """A measurement that has no value, and why."""
        return self.number(name, labels, None, n=n, n_of=n_of, method="none", state=state, detail=detail)

    def calls(
        self,
        name: str,
        labels: Mapping[str, str],
        counts: Ints,
        what: str,
        *,
        questions: int | None = None,
        n_of: str = CALLS,
        detail: Mapping[str, JSON] | None = None,
    ) -> Measurement:
        """A share of calls with `share_interval`, from counts by task [G, 2] (calls that count, calls that do not).

        ``questions`` is the number of different questions where trials repeat them, or of pairs where their orders go
        together: more than these the calls are not worth. ``detail`` holds Wilson's interval on that number, as the
        source prints it; it takes calls for independent.
        """
        hits, n = int(counts[:, 0].sum()), int(counts.sum())
        if not n:
            return self.missing(name, labels, f"undefined: no {n_of}", n_of=n_of, detail=detail)
        size = n if questions is None else min(questions, n)
        low, high = wilson_ends(hits / n, size, level=self.level)
        wilson: JSON = {"low": low, "high": high, "n": size}
        return self.classes(
            name,
            labels,
            counts,
            np.array([1.0, 0.0]),
            what,
            information=size / n,
            n_of=n_of,
            detail={"count": hits, **(detail or {}), "wilson": wilson},
        )

    def classes(
        self,
        name: str,
        labels: Mapping[str, str],
        counts: Ints,
        weights: Floats,
        what: str,
        *,
        information: float = 1.0,
        n_of: str = PAIRS,
        detail: Mapping[str, JSON] | None = None,
    ) -> Measurement:
        """A weighted share of pairs, from class counts by task [G, K], with `share_interval`."""
        total = counts.sum(axis=0)
        n = int(total.sum())
        found = share_interval(counts, weights, level=self.level, information=information)
        return self.number(
            name,
            labels,
            float(weights @ total) / n,
            n=n,
            n_of=n_of,
            method=f"{what}, {found.method}",
            ends=None if found.low is None or found.high is None else (found.low, found.high),
            detail={**(detail or {}), "effective_n": found.effective},
        )
