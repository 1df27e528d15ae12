"""The periods of a season: what orders of its agents are tested over, and whether there are enough of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Literal

from assaymark.claims.biases import FEW_CONSECUTIVE
from assaymark.metrology.moderated import FEWEST_CLUSTERS
from assaymark.metrology.serial import FEWEST_CONSECUTIVE
from assaymark.plan import ClusterOrder


def period_of(day: str, period: Literal["week", "month"]) -> str:
    """The period that a day lies in: its week by ISO 8601, or its month.

    >>> period_of("2024-12-30", "week"), period_of("2024-12-30", "month")
    ('2025-W01', '2024-12')
    """
    if period == "month":
        return day[:7]
    week = date.fromisoformat(day[:10]).isocalendar()
    return f"{week.year}-W{week.week:02d}"


def period_preflight(
    days: Iterable[str], period: Literal["week", "month"], order: ClusterOrder = "consecutive"
) -> tuple[str, ...]:
    """Warn of a season of these days that cannot rank its agents; nothing where it can.

    >>> for line in period_preflight(["2024-03-01", "2024-03-04"], "week"):
    ...     print(line)
    2 weeks: this season cannot rank agents; 12 that follow each other are needed, 24 for a claim without this condition
    >>> period_preflight(["2024-03-01", "2024-03-04"], "month", "exchangeable")[0].partition(":")[0]
    '1 month'
    """
    n = len({period_of(one, period) for one in days})
    serial = order == "consecutive"
    needed = FEWEST_CONSECUTIVE if serial else FEWEST_CLUSTERS
    if n >= needed:
        return ()
    more = f"{needed} that follow each other are needed, {FEW_CONSECUTIVE} for a claim without this condition"
    what = more if serial else f"{needed} are needed"
    return (f"{n} {period}{'' if n == 1 else 's'}: this season cannot rank agents; {what}",)
