"""What a season writes down beside contexts and decisions: fills, rejections, books with their NAV, and times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from assaymark.records import record
from assaymark.workflow.tables import Column, Table

DELISTED: Final = "delisted"
"""The kind of a fill that no order asked for: an instrument ended, and its last close was paid out without cost."""


@record
class SeasonFill:
    """What was traded on ``day``: signed units, price, and cost in cash. ``record_id`` is the decision it is due to.

    ``kind`` is ``order``, or `DELISTED`.
    """

    day: str
    agent: str
    record_id: str
    number: int
    symbol: str
    quantity: float
    price: float
    cost: float
    kind: str = "order"


@record
class SeasonRejection:
    """An order, or what was cut off one, that was not carried out on ``day``, with the sentence its agent is shown."""

    day: str
    agent: str
    record_id: str
    number: int
    symbol: str
    reason: str
    text: str
    quantity: float | None = None


@record
class SeasonNav:
    """One agent's book after ``day``, valued at the last known closes; ``stale`` names those that are of earlier days.

    ``state`` is ``ok``, or ``no data`` where nothing of the universe traded, and all stayed as it was.
    """

    day: str
    agent: str
    state: str
    cash: float
    nav: float
    costs: float
    positions: Mapping[str, float]
    stale: tuple[str, ...] = ()


@record
class SeasonTime:
    """The seconds that one decision took: of one attempt, without queueing and retries. None where unknown."""

    record_id: str
    day: str
    agent: str
    replicate: int
    seconds: float | None


def _texts(*names: str) -> dict[str, tuple[pa.DataType, Column]]:
    return {name: (pa.string(), _of(name)) for name in names}


def _numbers(*names: str) -> dict[str, tuple[pa.DataType, Column]]:
    return {name: (pa.float64(), _of(name)) for name in names}


def _of(name: str) -> Column:
    def get(row: Any, _: bytes) -> Any:
        return getattr(row, name)

    return get


_NUMBER: Final = {"number": (pa.int64(), _of("number"))}

FILLS: Final = Table(
    "fills",
    SeasonFill,
    {
        **_texts("day", "agent", "record_id"),
        **_NUMBER,
        **_texts("symbol"),
        **_numbers("quantity", "price", "cost"),
        **_texts("kind"),
    },
    sort=lambda row, _: (row.day, row.agent, row.kind, row.number),
    flat=True,
)

REJECTIONS: Final = Table(
    "rejections",
    SeasonRejection,
    {
        **_texts("day", "agent", "record_id"),
        **_NUMBER,
        **_texts("symbol", "reason", "text"),
        **_numbers("quantity"),
    },
    sort=lambda row, _: (row.day, row.agent, row.number),
    flat=True,
)

NAVS: Final = Table(
    "navs",
    SeasonNav,
    {
        **_texts("day", "agent", "state"),
        **_numbers("cash", "nav", "costs"),
        "positions": (pa.map_(pa.string(), pa.float64()), lambda row, _: sorted(row.positions.items())),
        "stale": (pa.list_(pa.string()), lambda row, _: list(row.stale)),
    },
    sort=lambda row, _: (row.day, row.agent),
)

TIMES: Final = Table(
    "times",
    SeasonTime,
    {
        **_texts("record_id", "day", "agent"),
        "replicate": (pa.int64(), _of("replicate")),
        **_numbers("seconds"),
    },
    sort=lambda row, _: row.record_id,
    flat=True,
)
"""The only table of a season that differs from one run to the next: it holds what was measured."""

SEASON_TABLES: Final[tuple[Table[Any], ...]] = (FILLS, REJECTIONS, NAVS, TIMES)
