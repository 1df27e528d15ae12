"""Equal agents: how often a study of them ends in an order that may be said (it has to stay within 5 %)."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from repetitions import over_seeds
from scipy import stats

from assaymark.claims import decide_claims
from assaymark.metrology import analyse, score_table
from assaymark.protocol import parse_study
from assaymark.records import Agent, Decision, Judgment, Provenance

AGENTS, JUDGES, DIMENSIONS = 4, 3, 6
STUDIES = 120
PLAN = parse_study(
    'name = "null"\nseed = 1\n'
    + "".join(f'[[judges]]\nname = "j{j}"\nmodel = "reference/auditor"\nfamily = "f{j}"\n' for j in range(JUDGES))
)
NOW = datetime(2026, 1, 5, tzinfo=UTC)


def decision(agent: int, cluster: int, cycle: int) -> Decision:
    return Decision(
        record_id=f"{agent}/{cluster}/{cycle}",
        episode_id=f"{cluster}/{cycle}",
        step=0,
        cluster=f"regime-{cluster}",
        decided_at=NOW,
        agent=Agent(id=f"agent-{agent}", family="x"),
        context_id="c",
        actions=(),
        rationales=(),
        format="sim",
        provenance=Provenance(source="simulation"),
    )


def study(rng: np.random.Generator, *, clusters: int, cycles: int, leader: float = 0.0) -> tuple[list, list]:
    """Four agents, the first ``leader`` points better; quality per trajectory and dimension is seen by all judges.

    Agents react differently to regimes (a cluster effect), so decisions of one cluster are not independent.
    """
    decisions, judgments = [], []
    for cluster in range(clusters):
        liking = rng.normal(0, 0.25, (AGENTS, DIMENSIONS))
        for cycle in range(cycles):
            task = rng.normal(0, 0.3)
            for agent in range(AGENTS):
                record = decision(agent, cluster, cycle)
                decisions.append(record)
                quality = 3.2 + task + leader * (agent == 0) + liking[agent] + rng.normal(0, 0.8, DIMENSIONS)
                for judge in range(JUDGES):
                    seen = np.clip(np.floor(quality + rng.normal(0, 0.5, DIMENSIONS) + 0.5), 1, 5)
                    judgments.append(
                        Judgment(
                            trajectory=record.record_id,
                            judge=f"j{judge}",
                            family=f"f{judge}",
                            rubric="v1.0",
                            trial=1,
                            status="ok",
                            scores={f"d{d}": float(seen[d]) for d in range(DIMENSIONS)},
                            call_key="k",
                        )
                    )
    return judgments, decisions


def orders(seed: int, **design) -> list[str]:
    """The order claims that one simulated study permits."""
    judgments, decisions = study(np.random.default_rng([77, seed]), **design)
    measurements = analyse(score_table(judgments, decisions), PLAN, rng=np.random.default_rng(seed))
    verdicts = decide_claims(measurements, PLAN, "hash")
    return [v.claim.id for v in verdicts if v.claim.asserts_order and v.publication_level != "no-claim"]


def test_equal_agents_rarely_give_an_order_that_may_be_said():
    """At most 5 %: the count must not exceed the upper end of the central 99.9 % binomial band of that rate."""
    found = sum(over_seeds(lambda seed: bool(orders(seed, clusters=5, cycles=6)), range(STUDIES)))
    assert found <= stats.binom.ppf(0.9995, STUDIES, 0.05)


def test_a_planted_leader_is_found():
    """One agent a full point better on every dimension: its first place may be said in nearly every study."""
    claims = over_seeds(lambda seed: orders(seed, clusters=8, cycles=6, leader=1.0), range(12))
    assert sum("first[agent=agent-0,dimension=aggregate]" in found for found in claims) >= 11
    assert not any(name.startswith(f"first[agent=agent-{a}") for found in claims for name in found for a in (1, 2, 3))
