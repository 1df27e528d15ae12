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


_TYPES: Final = {
    "int": pa.int64(),
    "float": pa.float64(),
    "Mapping[str, float]": pa.map_(pa.string(), pa.float64()),
    "tuple[str, ...]": pa.list_(pa.string()),
}
"""Of columns, by the types of fields; all others are texts."""


def _columns(kind: type[Any], names: str) -> dict[str, tuple[pa.DataType, Column]]:
    """Columns of some fields of a record, each of the type of its field."""

    def column(name: str, declared: str) -> Column:
        if declared.startswith("Mapping"):
            return lambda row, _: sorted(getattr(row, name).items())
        if declared.startswith("tuple"):
            return lambda row, _: list(getattr(row, name))
        return lambda row, _: getattr(row, name)

    types = {name: str(kind.__annotations__[name]).removesuffix(" | None") for name in names.split()}
    return {name: (_TYPES.get(one, pa.string()), column(name, one)) for name, one in types.items()}


FILLS: Final = Table(
    "fills",
    SeasonFill,
    _columns(SeasonFill, "day agent record_id number symbol quantity price cost kind"),
    sort=lambda row, _: (row.day, row.agent, row.kind, row.number),
    flat=True,
)

REJECTIONS: Final = Table(
    "rejections",
    SeasonRejection,
    _columns(SeasonRejection, "day agent record_id number symbol reason text quantity"),
    sort=lambda row, _: (row.day, row.agent, row.number),
    flat=True,
)

NAVS: Final = Table(
    "navs",
    SeasonNav,
    _columns(SeasonNav, "day agent state cash nav costs positions stale"),
    sort=lambda row, _: (row.day, row.agent),
)

TIMES: Final = Table(
    "times",
    SeasonTime,
    _columns(SeasonTime, "record_id day agent replicate seconds"),
    sort=lambda row, _: row.record_id,
    flat=True,
)
"""The only table of a season that differs from one run to the next: it holds what was measured."""

BASELINES: Final = replace(NAVS, name="baselines")
"""Books that nobody decided about (``agent`` is the baseline's name), day by day like those of the agents."""

GRADES: Final = Table(
    "grades",
    SeasonGrade,
    _columns(SeasonGrade, "agent judge family scope period first last trial replicate steps")
    | {"composite": (pa.float64(), lambda row, _: row.score.score.composite if row.score.score else None)},
    sort=lambda row, _: (row.scope, row.period, row.replicate, row.agent, row.judge, row.trial),
)

GUESSES: Final = Table(
    "guesses",
    SeasonGuess,
    _columns(SeasonGuess, "author judge period state guess call_key trial options"),
    sort=lambda row, _: (row.author, row.judge, row.period, row.trial),
    flat=True,
)

CHECKS: Final = Table(
    "checks",
    SeasonCheck,
    _columns(SeasonCheck, "agent kind checks passed mismatches"),
    sort=lambda row, _: (row.agent, row.kind),
    flat=True,
)

REPLACED: Final = Table(
    "replaced",
    SeasonReplaced,
    _columns(SeasonReplaced, "agent name state count why"),
    sort=lambda row, _: (row.agent, row.name, row.state),
    flat=True,
)

SEASON_TABLES: Final[tuple[Table[Any], ...]] = (FILLS, REJECTIONS, NAVS, TIMES)
