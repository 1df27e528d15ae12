"""Tables of a season besides contexts and decisions: fills, rejections, values, times, grades, guesses and checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import pyarrow as pa

from assaymark.judging.season.calls import HorizonScore
from assaymark.judging.season.record import AuditState
from assaymark.records import Evidence, Judgment, JudgmentStatus, record
from assaymark.workflow.tables import EVIDENCE, RecordTable, Store, column_specs

DELISTED: Final = "delisted"
"""The kind of a fill without an order: a delisted position, paid out at its last close without cost."""

SPLIT: Final = "split"
DIVIDEND: Final = "dividend"
"""Kinds of a fill without an order: a corporate action, applied before the orders of its ex-date."""


@record
class SeasonFill:
    """A change of a portfolio on ``day``: signed units, price, and cost. ``record_id`` is the decision behind it."""

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
    """An order, or the part cut off one, that was not executed on ``day``, with the sentence shown to its agent."""

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
    """An agent's portfolio after ``day``, valued at the last known closes; ``stale`` lists those of earlier days."""

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
    """The seconds of one decision: of one attempt, without queueing and retries. None if unknown."""

    record_id: str
    day: str
    agent: str
    replicate: int
    seconds: float | None


GradeScope = Literal["whole", "period", "replicate"]
"""The part of a record that is graded: all of it, a period (for rankings), or one replicate (for noise floors)."""


@record
class SeasonGrade:
    """A judge's score of an agent's record, or of a part of it, in one trial."""

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
    """A judge's guess at the author of a record; ``guess`` is None for an unusable reply, as ``state`` says."""

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
    """Checks of an agent's record against itself: how many fill, cash and position checks, and how many reconcile."""

    agent: str
    kind: str
    checks: int
    passed: int
    mismatches: tuple[str, ...] = ()


@record
class SeasonReplaced:
    """The number of times that blinding replaced, or kept, one name in an agent's record, and why."""

    agent: str
    name: str
    state: AuditState
    count: int
    why: str


FILLS: Final = RecordTable(
    "fills", SeasonFill,
    column_specs("day agent record_id number:int symbol quantity:float price:float cost:float kind"),
    sort=lambda row, _: (row.day, row.agent, row.kind, row.number), flat=True,
)  # fmt: skip
REJECTIONS: Final = RecordTable(
    "rejections", SeasonRejection, column_specs("day agent record_id number:int symbol reason text quantity:float"),
    sort=lambda row, _: (row.day, row.agent, row.number), flat=True,
)  # fmt: skip
NAVS: Final = RecordTable(
    "navs", SeasonNav, column_specs("day agent state cash:float nav:float costs:float positions:floats stale:list"),
    sort=lambda row, _: (row.day, row.agent),
)  # fmt: skip
TIMES: Final = RecordTable(
    "times", SeasonTime, column_specs("record_id day agent replicate:int seconds:float"),
    sort=lambda row, _: row.record_id, flat=True,
)  # fmt: skip
"""The only table of a season that differs between equal runs, because it holds measured times."""

BASELINES: Final = replace(NAVS, name="baselines")
"""Values of baselines day by day; ``agent`` is the name of the baseline."""

GRADES: Final = RecordTable(
    "grades", SeasonGrade,
    {
        **column_specs("agent judge family scope period first last trial:int replicate:int steps:int"),
        "composite": (pa.float64(), lambda row, _: row.score.score.composite if row.score.score else None),
    },
    sort=lambda row, _: (row.scope, row.period, row.replicate, row.agent, row.judge, row.trial),
)  # fmt: skip
GUESSES: Final = RecordTable(
    "guesses", SeasonGuess, column_specs("author judge period state guess call_key trial:int options:int"),
    sort=lambda row, _: (row.author, row.judge, row.period, row.trial), flat=True,
)  # fmt: skip
CHECKS: Final = RecordTable(
    "checks", SeasonCheck, column_specs("agent kind checks:int passed:int mismatches:list"),
    sort=lambda row, _: (row.agent, row.kind), flat=True,
)  # fmt: skip
REPLACED: Final = RecordTable(
    "replaced", SeasonReplaced, column_specs("agent name state count:int why"),
    sort=lambda row, _: (row.agent, row.name, row.state), flat=True,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SeasonJudgments:
    """The results of judging: grades, author guesses, checked numbers, and replaced names."""

    grades: tuple[SeasonGrade, ...]
    guesses: tuple[SeasonGuess, ...]
    evidence: tuple[Evidence, ...]
    replaced: tuple[SeasonReplaced, ...]

    @classmethod
    def read(cls, store: Store) -> SeasonJudgments:
        """Read them from the tables of a run folder."""
        return cls(*(tuple(store.read(table)) for table in (GRADES, GUESSES, EVIDENCE, REPLACED)))


def judgment_row(grade: SeasonGrade) -> Judgment:
    """Return a grade as a judgment of a trajectory named ``AGENT``, ``AGENT/PERIOD`` or ``AGENT/rREPLICATE``."""
    grades, score = grade.score.grades, grade.score.score
    within = grade.period or (f"r{grade.replicate}" if grade.scope == "replicate" else "")
    names = ("reasoning", "evidence", "process", "composite", "outcome")
    points = {} if score is None else {name: getattr(score, name) for name in names}
    status: JudgmentStatus = "invalid"  # so are truncated and failed replies
    if grades.state == "ok" or grades.state == "refused":
        status = grades.state
    return Judgment(
        f"{grade.agent}/{within}" if within else grade.agent, grade.judge, grade.family, grades.grader, grade.trial,
        status, {name: value for name, value in points.items() if value is not None},
        grades.parts[-1].call_key, first_key=grades.parts[-1].first_key, lookahead_check=grades.lookahead_check,
        reason=grades.reason,
    )  # fmt: skip


def judged_periods(grades: Iterable[SeasonGrade]) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Return (period, agent) of each period record, for periods in which all graded agents have grades, and the cluster
    of each period: itself, as in the claims of a season."""
    by_period: dict[str, set[str]] = {}
    for grade in grades:
        if grade.scope == "period" and grade.score.score is not None:
            by_period.setdefault(grade.period, set()).add(grade.agent)
    agents = set[str]().union(*by_period.values())
    complete = sorted(period for period, graded in by_period.items() if graded == agents)
    records = {f"{agent}/{period}": (period, agent) for period in complete for agent in sorted(agents)}
    return records, {period: period for period in complete}
