"""What the judges' own datasheets permit: a plan may demand them, with limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from assaymark.records import Level, Measurement

OnFailure = Literal["qualified", "no-claim"]


@dataclass(frozen=True, slots=True)
class Instruments:
    """The judges that do not keep the limits of the plan, or show no datasheet, and what claims may then be at most."""

    failing: tuple[str, ...] = ()
    most: OnFailure = "qualified"
    reason: str = ""
    measurements: tuple[str, ...] = ()

    def capped(self, level: Level) -> Level:
        """The level that a claim may have after this."""
        if not self.failing or level == "no-claim":
            return level
        return self.most

    @property
    def condition(self) -> str:
        """What must be said with a qualified claim; empty where every judge keeps the limits."""
        return f"Not every judge keeps the limits that the plan sets for them: {', '.join(self.failing)}." * bool(
            self.failing
        )


def instruments_of(measurements: Iterable[Measurement], on_failure: OnFailure | None) -> Instruments:
    """What ``datasheet.gate`` measurements permit; everything where the plan demands no datasheets.

    >>> instruments_of([], None).capped("headline")
    'headline'
    >>> bad = Measurement(name="datasheet.gate", labels={"judge": "j"}, value=1.0, n=2, n_of="limits", method="",
    ...                   detail={"failed": ["dark_current 0.40, at most 0.05"]})
    >>> found = instruments_of([bad], "qualified")
    >>> found.capped("headline"), found.reason
    ('qualified', 'Judged as an instrument, j fails the limits of the plan (dark_current 0.40, at most 0.05).')
    """
    gates = sorted((one for one in measurements if one.name == "datasheet.gate"), key=lambda one: one.id)
    if on_failure is None or not gates:
        return Instruments()
    failing = [one for one in gates if one.value is None or one.value > 0]
    ids = tuple(one.id for one in gates)
    if not failing:
        return Instruments(measurements=ids, most=on_failure, reason="Every judge keeps the limits of its datasheet.")
    said = [f"{one.labels['judge']} fails the limits of the plan ({_why(one)})" for one in failing]
    reason = f"Judged as an instrument, {'; '.join(said)}."
    return Instruments(tuple(one.labels["judge"] for one in failing), on_failure, reason, ids)


def _why(item: Measurement) -> str:
    return "; ".join(item.detail.get("failed", ())) or item.state
