"""What a season writes down beside contexts and decisions: what was traded, what it was worth, how it was graded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from assaymark.judging.season.scoring import HorizonScore
from assaymark.records import record
from assaymark.workflow.tables import Table

if TYPE_CHECKING:
    from assaymark.workflow.tables import Column


DELISTED: Final = "delisted"
"""The kind of a fill that no order asked for: an instrument ended, and its last close was paid out without cost."""


SPLIT: Final = "split"
DIVIDEND: Final = "dividend"
"""Kinds of a fill that no order asked for: a corporate action came into force before the orders of its ex-date."""


@record
class SeasonFill:
    """What changed it on ``day``: signed units, price, and cost in cash. ``record_id`` is the decision behind it."""

    day: str
    agent: str
    record_id: str
    number: int
    symbol: str
    quantity: float
    price: float | None
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
    """One agent's book after ``day``, valued at the last known closes; ``stale`` names those of earlier days."""

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


GradeScope = Literal["whole", "period", "replicate"]
"""What was graded: a whole record; a period of it, for orders; the decisions of one replicate, for noise floors."""


@record
class SeasonGrade:
    """One judge's score of one agent's record, or of a part of it, in one trial."""

    agent: str
    judge: str
    family: str
    trial: int
    scope: GradeScope
    period: str
    replicate: int
    first: str
    last: str
    steps: int
    score: HorizonScore


@record
class SeasonGuess:
    """One guess of a judge at who made a record; ``guess`` is None where ``state`` says that the reply is no guess."""

    author: str
    judge: str
    trial: int
    period: str
    options: int
    state: str
    guess: str | None
    call_key: str


@record
class SeasonCheck:
    """One agent's record held against itself: how many fill, cash and position checks, and how many reconcile."""

    agent: str
    kind: str
    checks: int
    passed: int
    mismatches: tuple[str, ...] = ()


@record
class SeasonReplaced:
    """What blinding did with one name in one agent's record: how often it was replaced or kept, and why."""

    agent: str
    name: str
    state: str
    count: int
    why: str


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
    "rejections", SeasonRejection,
    {**_texts("day", "agent", "record_id"), **_NUMBER, **_texts("symbol", "reason", "text"), **_numbers("quantity")},
    sort=lambda row, _: (row.day, row.agent, row.number), flat=True,
)  # fmt: skip

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
    "times", SeasonTime,
    {**_texts("record_id", "day", "agent"), "replicate": (pa.int64(), _of("replicate")), **_numbers("seconds")},
    sort=lambda row, _: row.record_id, flat=True,
)  # fmt: skip
"""The only table of a season that differs from one run to the next: it holds what was measured."""

BASELINES: Final = replace(NAVS, name="baselines")
"""Books that nobody decided about (``agent`` is the baseline's name), day by day like those of the agents."""

GRADES: Final = Table(
    "grades",
    SeasonGrade,
    {
        **_texts("agent", "judge", "family", "scope", "period", "first", "last"),
        **{name: (pa.int64(), _of(name)) for name in ("trial", "replicate", "steps")},
        "composite": (pa.float64(), lambda row, _: row.score.score.composite if row.score.score else None),
    },
    sort=lambda row, _: (row.scope, row.period, row.replicate, row.agent, row.judge, row.trial),
)

GUESSES: Final = Table(
    "guesses",
    SeasonGuess,
    {
        **_texts("author", "judge", "period", "state", "guess", "call_key"),
        **{name: (pa.int64(), _of(name)) for name in ("trial", "options")},
    },
    sort=lambda row, _: (row.author, row.judge, row.period, row.trial),
    flat=True,
)

CHECKS: Final = Table(
    "checks",
    SeasonCheck,
    {
        **_texts("agent", "kind"),
        **{name: (pa.int64(), _of(name)) for name in ("checks", "passed")},
        "mismatches": (pa.list_(pa.string()), lambda row, _: list(row.mismatches)),
    },
    sort=lambda row, _: (row.agent, row.kind),
    flat=True,
)

REPLACED: Final = Table(
    "replaced", SeasonReplaced,
    {**_texts("agent", "name", "state"), "count": (pa.int64(), _of("count")), **_texts("why")},
    sort=lambda row, _: (row.agent, row.name, row.state), flat=True,
)  # fmt: skip

SEASON_TABLES: Final[tuple[Table[Any], ...]] = (FILLS, REJECTIONS, NAVS, TIMES)
