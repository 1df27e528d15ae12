"""The periods of a season: what orders of its agents are tested over, and whether there are enough of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Literal

from assaymark.metrology.season_contrasts import LEAST_PERIODS


def period_of(day: str, period: Literal["week", "month"]) -> str:
    """The period that a day lies in: its week by ISO 8601, or its month.

    >>> period_of("2024-12-30", "week"), period_of("2024-12-30", "month")
    ('2025-W01', '2024-12')
    """
    if period == "month":
        return day[:7]
    week = date.fromisoformat(day[:10]).isocalendar()
    return f"{week.year}-W{week.week:02d}"


def period_preflight(days: Iterable[str], period: Literal["week", "month"]) -> tuple[str, ...]:
    """What a season of these days can never say; nothing where orders of its agents can be tested.

    >>> for line in period_preflight(["2024-03-01", "2024-03-04"], "week"):
    ...     print(line)
    2 weeks: an order of agents is tested over at least 3 of them, so none can ever be claimed of this season
    >>> period_preflight(["2024-03-01", "2024-03-04"], "month")[0].partition(":")[0]
    '1 month'
    >>> period_preflight(["2024-03-01", "2024-03-04", "2024-03-11"], "week")
    ()
    """
    n = len({period_of(one, period) for one in days})
    if n >= LEAST_PERIODS:
        return ()
    what = f"an order of agents is tested over at least {LEAST_PERIODS} of them"
    return (f"{n} {period}{'' if n == 1 else 's'}: {what}, so none can ever be claimed of this season",)
