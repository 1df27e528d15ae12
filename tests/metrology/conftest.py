"""Made-up studies for the metrology tests: decisions and judgments with planted differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from slow_orders import JUDGES, OWN, make_study, run

from assaymark.metrology import ScoreTable
from assaymark.protocol import Study
from assaymark.records import Agent, Decision, Judgment, Measurement, Provenance, Rationale

DIMENSIONS = ("clarity", "evidence", "risk")
Records = tuple[list[Decision], list[Judgment]]


def decision(
    agent: str, cycle: int, cluster: str, *, replicate: int = 1, format: str = "v1", tag: str = "",
    family: str | None = None,
) -> Decision:  # fmt: skip
    return Decision(
        record_id=f"{agent}.{cycle:04d}.{replicate}{tag}", episode_id=f"round{cycle}", step=0, cluster=cluster,
        decided_at=datetime(2026, 1, 1, tzinfo=UTC), agent=Agent(id=agent, family=family or agent), context_id="c",
        actions=(), rationales=(Rationale(text="because", kind="summary"),), format=format,
        provenance=Provenance(source="made up"), replicate=replicate,
    )  # fmt: skip


def judgment(trajectory: str, judge: str, scores: dict[str, float] | None, *, trial: int = 1, **parts: Any) -> Judgment:
    return Judgment(
        trajectory=trajectory, judge=judge, family=parts.pop("family", JUDGES.get(judge, judge)),
        rubric=parts.pop("rubric", "v1.0"), trial=trial, status=parts.pop("status", "ok" if scores else "invalid"),
        scores=scores or {}, call_key=f"{trajectory}-{judge}-{trial}", **parts,
    )  # fmt: skip


def make_records(
    *, agents: Sequence[str] = ("ash", "birch", "cedar", "elm"), effects: Sequence[float] = (), clusters: int = 5,
    cycles: int = 10, dimensions: Sequence[str] = DIMENSIONS, trials: int = 1, attend: float = 1.0,
    families: Mapping[str, str] | None = None, week: str = "week{:02d}", seed: int = 1,
) -> Records:  # fmt: skip
    """Each cycle has a quality of its own; agents add theirs; each judge adds noise and rounds to whole scores.
    ``families`` are those of agents that are not of a family of their own."""
    rng = np.random.default_rng(seed)
    shifts = dict(zip(agents, effects or [0.0] * len(agents), strict=True))
    decisions, judgments = [], []
    for cycle in range(clusters * cycles):
        base = 3 + rng.normal(0, 0.5)
        for agent in agents:
            if rng.random() > attend:
                continue
            own = (families or {}).get(agent)
            record = decision(agent, cycle, week.format(cycle // cycles), format=f"v{1 + cycle % 2}", family=own)
            decisions.append(record)
            true = base + shifts[agent] + rng.normal(0, 0.6, len(dimensions))
            for judge in JUDGES:
                for trial in range(1, (trials if judge == "auditor" else 1) + 1):
                    seen = np.clip(np.floor(true + rng.normal(0, 0.5, len(dimensions)) + 0.5), 1, 5)
                    scores = dict(zip(dimensions, seen.tolist(), strict=True))
                    judgments.append(judgment(record.record_id, judge, scores, trial=trial))
    return decisions, judgments


@pytest.fixture(scope="session")
def make() -> Callable[..., Records]:
    return make_records


@pytest.fixture(scope="session")
def study() -> Callable[..., Study]:
    return make_study


@pytest.fixture(scope="session")
def plan() -> Study:
    return make_study()


@pytest.fixture(scope="session")
def one_decision() -> Callable[..., Decision]:
    return decision


@pytest.fixture(scope="session")
def one_judgment() -> Callable[..., Judgment]:
    return judgment


@pytest.fixture(scope="session")
def led() -> tuple[ScoreTable, dict[str, Measurement]]:
    """A leader, three agents that are nearly equal, and nobody with an interest: analysed once."""
    return run(make_records(effects=(0.9, 0.1, 0.05, 0.0), trials=3), make_study())


@pytest.fixture(scope="session")
def biased() -> tuple[ScoreTable, dict[str, Measurement]]:
    """Judges of the agents' makers, lengths that differ, eight clusters of unequal size: analysed once."""
    decisions, judgments = make_records(effects=(0.5, 0.2, 0.1, 0.0), clusters=8, cycles=6, attend=0.9, families=OWN)
    rng = np.random.default_rng(5)
    lengths = {d.record_id: int(rng.integers(40, 400)) * (2 if d.agent.id == "ash" else 1) for d in decisions}
    return run((decisions, judgments), make_study(), lengths)
