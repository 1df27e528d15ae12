"""What a study that makes its own records shows its agents: views of its cycles, its date probes and one whole cycle.

Real names and dates stand here, because a reader may know them. Agents and judges never see these views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from assaymark.records import Context, Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeView:
    """The cycles of one regime: how many, between which bars they lie, and which instruments were left out of how many.

    ``left_out`` maps the real name of an instrument to the number of cycles in whose period it did not trade.
    """

    name: str
    cycles: int
    first: datetime
    last: datetime
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DateProbeView:
    """What one date probe of the lock found: hits among sanitised cycles, and among those with everything left in."""

    probe: str
    passed: bool
    asked: int
    hits: int
    control_asked: int
    control_hits: int
    chance: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleView:
    """One cycle as its agents saw it, what each of them decided, and the way back to the source.

    ``names`` maps neutral to real names of instruments, ``left_out`` are real names.
    """

    regime: str
    number: int
    first: datetime
    last: datetime
    names: Mapping[str, str]
    context: Context
    decisions: tuple[Decision, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubstrateView:
    """Where the cycles of a study come from. ``source`` is ``synthetic`` or the name of a file.

    ``example`` is the first cycle of the first regime; None where there is no cycle.
    """

    source: str
    bars: int
    regimes: tuple[RegimeView, ...]
    probes: tuple[DateProbeView, ...] = ()
    example: CycleView | None = None
