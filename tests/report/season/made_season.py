"""Invented seasons of any size for the site: every state that a season can have, and texts that try to break a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import TypeVar

import numpy as np
from made_season_claims import PLAN, decided, made_catalogue
from made_season_numbers import measurements

from assaymark import records
from assaymark.claims import phrase
from assaymark.judging import Contestant, NoiseFloor, ScoringPlan, StepRecord, judge_score, load_scoring, season_table
from assaymark.judging import season as judging_season
from assaymark.portfolio import Account
from assaymark.protocol import AgentSpec, JudgeSpec
from assaymark.records import EvidenceState
from assaymark.report import season as season_pages
from assaymark.workflow import tracks

Spec = TypeVar("Spec", AgentSpec, JudgeSpec)
HOSTILE = '</pre><script>document.title="pwned"</script>{{ 7*7 }}{% raw %}<img src=x onerror=alert(1)>\x1b[31m\u202e'
BASELINES = (("equal weight", 0.05), ("60/40", 0.039), ("cash", 0.009))
UNIVERSE = ("NVX", "ORL", "QAD", "SPY", "TLT")
CAST = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gorse", "Hazel")
FAMILIES = ("North", "Strand", "Quay", "Ferro", "Moor", "North", "Strand", "Quay")
# Points of each judge: the first alone, five that cannot be ranked, the last alone.
SCORES: Mapping[str, tuple[float, ...]] = {
    "Alder": (70, 74, 79), "Birch": (58, 66, 71), "Cedar": (56, 60, 79), "Dogwood": (61, 64, 66), "Elm": (40, 55, 65),
    "Fir": (33, 38, 44), "Gorse": (60, 63), "Hazel": (),
}  # fmt: skip
SECONDS = {"Alder": 4.2, "Birch": 4.9, "Cedar": None, "Dogwood": 2.9, "Elm": 5.5, "Fir": 8.0, "Gorse": 3.0}
UNRESOLVED = "Fir"

__all__ = ["HOSTILE", "hostile_season", "made_catalogue", "made_season", "pages", "planned", "site", "specs"]
STATES: tuple[tuple[EvidenceState, str, str], ...] = (
    ("supported", "up 6.2 % over five sessions", "NVX 5-day return +6.18 %"),
    ("contradicted", "analysts' mean target is 240", "target mean 214.50"),
    ("derivable", "drawdown now 4.4 % from the peak", "NAV 101,260; peak 105,930"),
    ("not_verifiable", "debt has fallen by a third since March", ""),
    ("rule", "position capped at 15 % of NAV", "limit 15 %; weight 14.6 %"),
    ("own_action", "selling 40 of the 120 shares", ""),
)


def made_season(
    agents: int = 8, days: int = 61, judges: int = 3, *, claims_a_day: int = 2, hostile: bool = True, seed: int = 3
) -> season_pages.SeasonRun:
    """A season of invented agents and numbers.
    The first six are those of a known table, then one that a judge failed on, then one that nobody graded; more are
    drawn at random. One judge gives a season without a panel: no order is supported."""
    rng = np.random.default_rng(seed)
    scoring = load_scoring("v0.3" if judges == 1 else "v0.4")
    cast, panel = [_agent(at) for at in range(agents)], [_judge(at) for at in range(judges)]
    dates = tuple(map(str, np.busday_offset("2026-01-05", np.arange(days))))
    grades = [_grade(one, judge, at, scoring, rng, hostile) for one in cast for at, judge in enumerate(panel)]
    floor = NoiseFloor(1.2, 9, 10, 1, "ok")
    contestants = [
        Contestant(one.name, {g.judge: g.composite for g in grades if g.agent == one.name and g.composite is not None},
                   SECONDS.get(one.name, 3.0 + at % 5), floor)
        for at, one in enumerate(cast)
    ]  # fmt: skip
    table = season_table(contestants, judges=NoiseFloor(0.9, 12, 15, 3, "ok"), plan=scoring)
    paths = _paths(cast, dates, rng)
    plan = tracks.Season(
        name="season-3", title=f"Season 3, days 1 to {days}", prompt="Trade the universe.", agents=tuple(cast),
        panel=tuple(panel), calendar={"first": dates[0], "last": dates[-1]},
    )  # fmt: skip
    audited = judging_season.AuditLine("NVX", "kept", 12, "a holding")
    run = season_pages.SeasonRun(
        plan, PLAN, "2026-01-02T08:00:00Z", "0.1", dates[0], dates[-1], days, UNIVERSE, scoring, paths,
        steps={one.name: _steps(one.name, dates, rng, hostile) for one in cast},
        ledger={one.name: _ledger(dates, panel, claims_a_day, rng, hostile) for one in cast},
        grades=tuple(grades), table=table, decided=decided(cast, table, len(panel), days),
        measurements=measurements(cast, panel, grades, table, paths, rng),
        blinding=tuple(
            line for one in cast
            for line in (judging_season.AuditLine(one.family, "replaced", 3, "name of a provider"), audited)
        ),
        notes=(phrase("made.kappa", kappa=0.31, items=48, publish=0.4),),
        sheets={panel[0].name: "judges/north-j.html"} if panel else {},
    )  # fmt: skip
    return planned(run, prompt=f"Trade the universe.\n{HOSTILE}") if hostile else run


def pages(run: season_pages.SeasonRun, *languages: str) -> dict[str, str]:
    """Every page and file of a season in some languages; in both without any."""
    made = list(season_pages.site_pages(run, [made_catalogue(code) for code in languages or ("en", "de")]))
    assert len({path for path, _ in made}) == len(made)
    return dict(made)


@cache
def site(name: str) -> dict[str, str]:
    """The pages of a season that many tests read, made once."""
    seasons = {"eight": (8, 61), "one": (1, 1), "single": (5, 9, 1), "many": (12, 6, 6), "short": (8, 6),
               "year": (1, 250)}  # fmt: skip
    return pages(hostile_season() if name == "hostile" else made_season(*seasons[name]))


def hostile_season() -> season_pages.SeasonRun:
    """A small season in which every name and text tries to break out of the page."""
    made = made_season(4, 5)
    names = {"Alder": '<script>alert("x")</script>', "Birch": "\u202eBirch & Söhne\u2066", "Cedar": "C" * 90}
    *agents, dogwood = made.plan.agents
    agents += specs([dogwood], family=HOSTILE, model=HOSTILE)
    renamed = _renamed(planned(made, agents=tuple(agents), title=HOSTILE), names)
    sheets = dict.fromkeys((judge.name for judge in made.plan.panel), "../sheet.html")
    return planned(replace(renamed, sheets=sheets, source=HOSTILE), panel=specs(made.plan.panel, model=HOSTILE))


def planned(run: season_pages.SeasonRun, **fields: object) -> season_pages.SeasonRun:
    """The season with other fields of its plan, which need not be valid."""
    return replace(run, plan=run.plan.model_copy(update=fields))


def specs(found: Sequence[Spec], **fields: object) -> tuple[Spec, ...]:
    """Agents or judges with other fields, which need not be valid."""
    return tuple(one.model_copy(update=fields) for one in found)


# --- who took part ----------------------------------------------------------------------------------------------------


def _agent(at: int) -> AgentSpec:
    if at < len(CAST):
        return AgentSpec(name=CAST[at], family=FAMILIES[at], model=f"made/{FAMILIES[at].lower()}-{at}")
    family = f"House {at % 9 + 1}"
    return AgentSpec(name=f"Agent {at + 1:02d}", family=family, model=f"made/{at + 1}")


def _judge(at: int) -> JudgeSpec:
    family = (*dict.fromkeys(FAMILIES), *(f"House {n}" for n in range(1, 9)))[at]
    return JudgeSpec(name=f"{family}-J", family=family, model=f"made/{family.lower()}-judge")


# --- what was graded --------------------------------------------------------------------------------------------------


def _parts(parts: Sequence[judging_season.SubComponent], target: float, rng: np.random.Generator) -> dict[str, float]:
    return {part.name: float(np.clip(round(target + rng.normal(0, 4.0)), 0, 100)) for part in parts}


def _grade(
    agent: AgentSpec, judge: JudgeSpec, at: int, plan: ScoringPlan, rng: np.random.Generator, hostile: bool
) -> season_pages.SeasonGradeView:
    known = SCORES.get(agent.name)
    if known is not None and at >= len(known) and not (known and at > 2):
        why = "the reply is no JSON object" + (f" {HOSTILE}" if hostile else "")
        return season_pages.SeasonGradeView(agent.name, judge.name, "invalid", reason=why)
    target = known[at] if known is not None and at < len(known) else float(rng.uniform(35, 85))
    reasoning, evidence = _parts(plan.reasoning, target, rng), _parts(plan.evidence, target, rng)
    outcome = None if agent.name == UNRESOLVED else float(np.clip(round(target + rng.normal(-6, 6)), 0, 100))
    score = judge_score(judge.name, reasoning, evidence, outcome, plan=plan)
    words = HOSTILE if hostile and agent.name == "Birch" else "Theses are kept and sizes follow them."
    early = agent.name == "Elm" and at == 0
    capped = {"claim_support": min(evidence["claim_support"] + 12, 100.0)} if agent.name == "Birch" else {}
    axes = {"reasoning": score.reasoning, "evidence": score.evidence, "process": score.process}
    return season_pages.SeasonGradeView(
        agent.name, judge.name, "ok", score.composite, axes, reasoning, evidence, capped, outcome,
        "unresolved" if outcome is None else "ok", 98.0, "fail" if early else "pass",
        "Day 3 speaks of the close of day 4." if early else "", "The process is steady.", words, parts=1,
    )  # fmt: skip


# --- what happened ---------------------------------------------------------------------------------------------------


def _paths(
    agents: Sequence[AgentSpec], days: tuple[str, ...], rng: np.random.Generator
) -> tuple[season_pages.SeasonPath, ...]:
    found = []
    ends = [(one.name, float(rng.normal(0.03, 0.04)), False) for one in agents]
    for name, end, baseline in [*ends, *((name, end, True) for name, end in BASELINES)]:
        noise = rng.normal(0, 0.0 if name == "cash" else 0.006, len(days)).cumsum()
        bridge = noise - noise[-1] * np.arange(1, len(days) + 1) / len(days)
        nav = 100_000 * (1 + end * np.arange(1, len(days) + 1) / len(days) + bridge)
        found.append(season_pages.SeasonPath(name, baseline, 100_000.0, days, tuple(map(float, nav))))
    return tuple(found)


def step(
    number: int, day: str, agent: str = "Alder", orders: Sequence[records.Action] = (),
    texts: Sequence[tuple[records.RationaleKind, str]] = (), flags: tuple[str, ...] = (),
    missing: tuple[str, ...] = (), **more: object,
) -> StepRecord:  # fmt: skip
    """A decision, its reasons as (kind, text), and what came of it."""
    monday = datetime(2026, 1, 5, tzinfo=UTC)
    decision = records.Decision(
        record_id=f"{agent}/{day}", episode_id="made", step=number, cluster="",
        agent=records.Agent(id=agent, family="made"), decided_at=monday, context_id="", actions=tuple(orders),
        rationales=tuple(records.Rationale(text=text, kind=kind) for kind, text in texts), format="made",
        provenance=records.Provenance(source="made"), flags=flags, missing=missing,
    )  # fmt: skip
    return StepRecord(day=day, decision=decision, number=number, **more)  # type: ignore[arg-type]


def redecided(found: StepRecord, **fields: object) -> StepRecord:
    """The step with other fields of its decision, which need not be valid."""
    return replace(found, decision=replace(found.decision, **fields))  # type: ignore[arg-type]


def _steps(agent: str, days: tuple[str, ...], rng: np.random.Generator, hostile: bool) -> tuple[StepRecord, ...]:
    found = []
    for at, day in enumerate(days):
        symbol = UNIVERSE[int(rng.integers(len(UNIVERSE)))]
        text = HOSTILE if hostile and at == 1 else f"{symbol} is up on the week, and the position stays small."
        wrong = "Cash 40,000.00 is stated; the fills make 39,998.00."
        row, shown = (day, agent, f"{agent}/{day}", 1, symbol), "Buying 40 needs 9,000, and 310 is left."
        flags = ("target above the limit",) * (at % 30 == 9) + ("no-answer",) * (at % 40 == 11)
        found.append(step(
            at + 1, day, agent, (records.Action(instrument=symbol, kind="buy"),), (("summary", text),),
            flags, ("no answer in time",), fills=(tracks.SeasonFill(*row, 10.0, None if at == 2 else 101.5, 1.0),),
            rejections=(tracks.SeasonRejection(*row, "not enough cash", shown),) * (at % 20 == 7),
            seconds=None if agent == "Cedar" else float(rng.uniform(2, 6)), nav=100_000.0 + 10 * at,
            book=Account(40_000.0 - 100 * at, {symbol: 10.0 * (at + 1)}), mismatches=(wrong,) * (at % 50 == 13),
        ))  # fmt: skip
    return tuple(found)


def _ledger(
    days: tuple[str, ...], panel: Sequence[JudgeSpec], a_day: int, rng: np.random.Generator, hostile: bool
) -> tuple[season_pages.SeasonClaimLine, ...]:
    found = []
    words = ("supported", "contradicted", "not_verifiable")
    for at, day in enumerate(days):
        for which in rng.integers(len(STATES), size=a_day):
            state, quote, saw = STATES[which]
            agreed = state if state in words else "supported"
            says = agreed if rng.random() < 0.85 else str(rng.choice(words))
            found.append(season_pages.SeasonClaimLine(
                at + 1, day, HOSTILE if hostile and at == 1 else quote, saw,
                None if which == 3 and rng.random() < 0.5 else state, "same field",
                {judge.name: says for judge in panel[:2]} if rng.random() < 0.6 else {},
            ))  # fmt: skip
    return tuple(found)


def _renamed(run: season_pages.SeasonRun, names: Mapping[str, str]) -> season_pages.SeasonRun:
    """The same season with other names of agents, wherever they stand."""

    def call(name: str) -> str:
        return names.get(name, name)

    def labels(given: Mapping[str, str]) -> dict[str, str]:
        return {key: call(value) for key, value in given.items()}

    rows = tuple(replace(row, contestant=call(row.contestant)) for row in run.table)
    agents = tuple(one.model_copy(update={"name": call(one.name)}) for one in run.plan.agents)
    return replace(
        planned(run, agents=agents), paths=tuple(replace(path, name=call(path.name)) for path in run.paths),
        steps={call(name): steps for name, steps in run.steps.items()},
        ledger={call(name): lines for name, lines in run.ledger.items()},
        grades=tuple(replace(grade, agent=call(grade.agent)) for grade in run.grades), table=rows,
        decided=decided(agents, rows, len(run.plan.panel), run.days),
        measurements=tuple(replace(m, labels=labels(m.labels)) for m in run.measurements),
    )  # fmt: skip
