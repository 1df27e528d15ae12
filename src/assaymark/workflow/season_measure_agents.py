"""The agents of a season in facts: what they earned, what they stated, how they traded, and whether records hold up."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from assaymark.agents.llm import ABSENT, NOT_USABLE
from assaymark.errors import InputError, NotMeasurableError
from assaymark.judging.evidence import Material, chance_corrected
from assaymark.judging.season.horizon_ledger import BORNE_OUT
from assaymark.judging.season.horizon_types import Filled, StepRecord
from assaymark.judging.season.thrash import thrashing
from assaymark.metrology.season_excess import daily_excess
from assaymark.portfolio import performance
from assaymark.portfolio.broker.reconciling import RELIABILITY
from assaymark.records import Evidence, Measurement
from assaymark.workflow.season_material import SeasonMaterial
from assaymark.workflow.season_records import SPLIT, SeasonCheck, SeasonGrade, SeasonNav

WITHIN: Final = 5
"""Days within which a trade that takes back an earlier one is a round trip."""

SAMPLED: Final = 60
"""Decisions of one agent, at most, over which chance agreement is found: the material of each is read anew."""


def agent_measurements(material: SeasonMaterial, grades: Sequence[SeasonGrade]) -> Iterator[Measurement]:
    """``season.reliability``, ``.lookahead``, ``.thrash`` and ``.decisions`` of every agent."""
    days = sorted({one.day for steps in material.steps.values() for one in steps})
    built_in = {one.name for one in material.season.panel if one.model.startswith("reference/")}
    looked = [one for one in grades if one.scope == "whole" and one.judge not in built_in]  # those read no tenses
    for agent, steps in material.steps.items():
        yield _reliability(agent, [one for one in material.checks if one.agent == agent])
        yield _lookahead(agent, [one for one in looked if one.agent == agent])
        yield _thrash(agent, steps, days if material.season.has_books else None)
        yield _decisions(agent, steps, len(material.rejections.get(agent, ())))


def _reliability(agent: str, checks: Sequence[SeasonCheck]) -> Measurement:
    counted = [one for one in checks if one.kind in RELIABILITY]
    n, passed = sum(one.checks for one in counted), sum(one.passed for one in counted)
    return Measurement(
        name="season.reliability",
        labels={"agent": agent},
        value=100.0 * passed / n if n else None,
        n=n,
        n_of="checks",
        state="ok" if n else "nothing could be checked",
        detail={one.kind: [one.passed, one.checks] for one in checks},
        method="100 times the share of fill, cash and position checks that reconcile",
    )


def _lookahead(agent: str, grades: Sequence[SeasonGrade]) -> Measurement:
    """How many judges say that later data were used; a judge says so if it does in any trial."""
    said: dict[str, list[str]] = defaultdict(list)
    for one in grades:
        if one.score.grades.lookahead_check is not None:
            said[one.judge].append(one.score.grades.lookahead_check)
    checks = {judge: "fail" if "fail" in found else "pass" for judge, found in sorted(said.items())}
    failed = sum(check == "fail" for check in checks.values())
    return Measurement(
        name="season.lookahead",
        labels={"agent": agent},
        value=float(failed) if checks else None,
        n=len(checks),
        n_of="judges",
        state="ok" if checks else "not graded",
        detail=checks,
        method="judges that say an earlier decision was graded on, or made with, later data",
    )


def _thrash(agent: str, steps: Sequence[StepRecord], days: Sequence[str] | None) -> Measurement:
    """Round trips over the days of the season, on some of which a log may have several decisions, or none."""
    empty = Measurement(
        name="season.thrash", labels={"agent": agent}, value=None, n=0, n_of="days", state="no fill is recorded",
        method="trades that take back earlier ones of the same name within some days, the latest first",
    )  # fmt: skip
    if days is None:
        return empty
    fills: dict[str, list[Filled]] = {day: [] for day in days}
    for step in steps:
        fills[step.day] += [fill for fill in step.fills if fill.quantity and getattr(fill, "kind", "") != SPLIT]
    found = thrashing(list(fills.values()), within=WITHIN)
    detail = {"within": WITHIN, "trades": found.trades, "by_symbol": found.by_symbol}
    return replace(empty, value=float(len(found.trips)), n=len(days), state="ok", detail=detail)


def _decisions(agent: str, steps: Sequence[StepRecord], rejected: int) -> Measurement:
    silent = sum(bool({*NOT_USABLE} & {*step.decision.flags}) for step in steps)
    absent = sum(ABSENT in step.decision.flags for step in steps)
    detail, n = {"rejected": rejected, "silent": silent, "absent": absent}, len(steps)
    return Measurement(
        name="season.decisions", labels={"agent": agent}, value=float(n), n=n, n_of="decisions", method="counted",
        detail=detail,
    )  # fmt: skip


# --- returns ----------------------------------------------------------------------------------------------------------


def return_measurements(material: SeasonMaterial, *, level: float, rng: np.random.Generator) -> Iterator[Measurement]:
    """``season.return`` and ``season.drawdown`` of agents and baselines, and ``season.excess`` of every two of them."""
    capital = material.season.capital
    for label, books in (("agent", material.navs), ("baseline", material.baselines)):
        for name, rows in books.items():
            yield from _performance({label: name}, rows, capital)
    for agent, rows in material.navs.items():
        for baseline in sorted(material.baselines):
            yield _excess(agent, baseline, rows, material.baselines[baseline], capital, level, rng)


def _performance(labels: Mapping[str, str], rows: Sequence[SeasonNav], capital: float) -> Iterator[Measurement]:
    values = [capital, *(one.nav for one in rows)]
    state, total, fall = "no days", None, None
    if rows:
        try:
            found = performance(values)
            state, total, fall = "ok", found.total_return, found.max_drawdown
        except InputError:
            state = "its value fell to zero"
    for name, value, method in (
        ("season.return", total, "last value over the capital, less 1"),
        ("season.drawdown", fall, "deepest fall below an earlier high, the capital being the first"),
    ):
        yield Measurement(
            name=name, labels=labels, value=value, n=len(rows), n_of="days", method=method, state=state, unit="share"
        )  # fmt: skip


def _excess(
    agent: str,
    baseline: str,
    own: Sequence[SeasonNav],
    other: Sequence[SeasonNav],
    capital: float,
    level: float,
    rng: np.random.Generator,
) -> Measurement:
    """The mean daily difference, over the days on which both were valued."""
    base = {one.day: one.nav for one in other if one.state == "ok"}
    days = [one for one in own if one.state == "ok" and one.day in base]
    n = len(days)
    empty = Measurement(
        name="season.excess", labels={"agent": agent, "baseline": baseline}, value=None, n=n, n_of="days", method="",
        state="no common days",
    )  # fmt: skip
    paths = [np.array([capital, *values]) for values in ([one.nav for one in days], [base[one.day] for one in days])]
    if not n or any((path <= 0).any() for path in paths):
        return empty if not n else replace(empty, state="its value fell to zero")
    mine, theirs = (path[1:] / path[:-1] - 1.0 for path in paths)
    whole = float(paths[0][-1] / capital - paths[1][-1] / capital)
    try:
        found = daily_excess(mine, theirs, rng=rng, level=level)
    except NotMeasurableError:
        state = "too few days" if n < 10 else "the difference does not vary"
        return replace(empty, state=state, detail={"whole": whole})
    return replace(
        empty,
        value=found.mean,
        state="ok",
        method=f"mean daily difference; {found.method}",
        low=found.low,
        high=found.high,
        level=level,
        unit="share a day",
        detail={"p": found.p, "whole": whole, "block": found.block},
    )


# --- the ledger -------------------------------------------------------------------------------------------------------


def ledger_measurements(
    material: SeasonMaterial,
    evidence: Iterable[Evidence],
    grades: Iterable[SeasonGrade],
    *,
    rng: np.random.Generator,
) -> Iterator[Measurement]:
    """``season.ledger`` of every agent: the share of its numbers that its own material bears out.

    ``detail`` has the counts by state, the decisions without any number (``silent``), and how many claims of judges
    (``claims``) the numbers contradict where the judge says supported or the other way round (``disagreements``). Over
    `SAMPLED` decisions at most it has agreement with the right asset's row (``observed``), what a permutation of rows
    within unit and decimals reaches (``chance``), and what is left of the one beyond the other (``corrected``).
    """
    of = {step.decision.record_id: agent for agent, steps in material.steps.items() for step in steps}
    rows: dict[str, list[Evidence]] = defaultdict(list)
    for one in evidence:
        if one.decision in of:
            rows[of[one.decision]].append(one)
    whole = [one for one in grades if one.scope == "whole"]
    for agent, steps in material.steps.items():
        mine = [one for one in whole if one.agent == agent]
        yield _ledger(agent, steps, rows[agent], mine, material, rng)


def _ledger(
    agent: str,
    steps: Sequence[StepRecord],
    rows: Sequence[Evidence],
    grades: Sequence[SeasonGrade],
    material: SeasonMaterial,
    rng: np.random.Generator,
) -> Measurement:
    counts = Counter(one.state for one in rows)
    numbers = len(rows) - counts["own_action"]
    spoken = {one.decision for one in rows}
    compared = [one.score.disagreement for one in grades if one.score.disagreement is not None]
    detail: dict[str, Any] = {
        "counts": dict(sorted(counts.items())),
        "silent": sum(step.decision.record_id not in spoken for step in steps),
        "steps": len(steps),
        "claims": sum(one.claims for one in compared),
        "disagreements": sum(one.overruled + one.strict for one in compared),
        "misquoted": sum(one.misquoted for one in compared),
        **_chance(steps, rows, material, rng),
    }
    borne = sum(counts[state] for state in BORNE_OUT)
    return Measurement(
        name="season.ledger",
        labels={"agent": agent},
        value=borne / numbers if numbers else None,
        n=numbers,
        n_of="numbers",
        state="ok" if numbers else "no number",
        detail=detail,
        method="share of numbers that the agent's own material bears out",
    )


def _chance(
    steps: Sequence[StepRecord], rows: Sequence[Evidence], material: SeasonMaterial, rng: np.random.Generator
) -> dict[str, Any]:
    """What of the agreement with the right row is more than chance; nothing where it is not defined.

    Of a long record decisions at equal distances are taken.
    """
    chosen = steps[:: math.ceil(len(steps) / SAMPLED)] if steps else steps
    contexts = {step.decision.record_id: step.decision.context_id for step in chosen}
    wanted = {contexts[one.decision] for one in rows if one.decision in contexts}
    known = {name: Material.of(material.contexts[name]) for name in sorted(wanted) if name in material.contexts}
    try:
        found = chance_corrected(rows, known, contexts, rng=rng)
    except NotMeasurableError:
        return {}
    return {"observed": found.observed, "chance": found.chance, "corrected": found.corrected, "rows": found.n}
