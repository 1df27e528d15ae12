"""Complete analyses with consistent tables: simulated agents, judges, lengths and gaps, and control cells."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np
from analysis import measured
from made_cells import cell

from assaymark.claims import certificate, certificates, decide_claims, index
from assaymark.metrology import analyse, cell_measurements, cluster_t, score_table
from assaymark.protocol import parse_study
from assaymark.records import Agent, Decision, Judgment, Measurement, Provenance, canonical_json

Design = dict[str, Any]
NOW = datetime(2026, 1, 5, tzinfo=UTC)


def judgment(made: Decision, judge: int, family: str, scores: dict[str, float]) -> Judgment:
    """Return a judgment of a decision; without scores it is an invalid reply."""
    return Judgment(
        trajectory=made.record_id, judge=f"j{judge}", family=family, rubric="v1.0", trial=1,
        status="ok" if scores else "invalid", scores=scores, call_key="k",
    )  # fmt: skip


BASE: Design = {
    "agents": 4,
    "judges": 3,
    "dimensions": 2,
    "clusters": 6,
    "cycles": 4,
    "leader": 1.0,
    "noise": 0.25,  # how differently agents react to clusters
    "families": None,  # of the judges; default: each its own
    "conflicts": 0,  # so many agents share a family with a judge of the same number
    "lengths": None,  # None: not known; "alike" for all agents, "longer" for the leader, "fixed" within agents
    "missing": 0.0,  # share of grades that did not come
    "absent": {},  # agent: clusters in which it has no record
    "dated": False,
    "cells": False,
    "beside": False,  # a probe, terse agents and a rerun at equal length
    "plan": "",
    "preregistered": True,
}
DESIGNS: dict[str, Design] = {
    "plain": {"cells": True, "beside": True},
    "nine clusters": {"clusters": 9, "agents": 3},
    "seventeen clusters": {"clusters": 17, "cycles": 2, "agents": 3, "leader": 0.5},
    "one agent": {"agents": 1},
    "two agents": {"agents": 2},
    "one dimension": {"dimensions": 1, "leader": 0.7},
    "three dimensions of five agents": {"agents": 5, "dimensions": 3, "clusters": 8, "leader": 1.5},
    "lengths": {"lengths": "longer", "leader": 0.5, "clusters": 8},
    "fixed lengths": {"lengths": "fixed", "agents": 3},
    "style": {"lengths": "longer", "leader": 0.7, "clusters": 8, "plan": 'claims.length = ["log2", "digits"]'},
    "digits": {"lengths": "alike", "agents": 3, "plan": 'claims.length = ["digits"]'},
    "conflicts": {"conflicts": 2, "lengths": "alike", "leader": 0.9, "clusters": 8},
    "nobody without an interest": {"agents": 2, "judges": 2, "conflicts": 2, "lengths": "alike"},
    "two clusters": {"clusters": 2, "agents": 3},
    "three clusters": {"clusters": 3, "agents": 3},
    "an agent that is often absent": {"absent": {3: (0, 1, 2, 3), 2: (0,)}},
    "missing grades": {"missing": 0.1, "lengths": "alike", "conflicts": 1},
    "weeks": {"dated": True, "clusters": 26, "cycles": 2, "lengths": "alike", "conflicts": 1, "noise": 0.5},
    "few weeks": {"dated": True, "clusters": 14, "cycles": 2, "absent": {3: (0, 5, 6)}},
    "too few weeks": {"dated": True, "clusters": 8, "cycles": 2, "agents": 3},
    "any judges": {"judges": 4, "plan": 'claims.judges = "any"', "leader": 1.5},
    "two families of four judges": {"judges": 4, "families": ("f0", "f0", "f1", "f1")},
    "one family": {"families": ("f0", "f0", "f0")},
    "own variance": {"plan": 'inference.test = "own-variance"'},
    "other shares": {"plan": "inference.aggregate_share = 0.6\ninference.margin = 0.2\ninference.alpha = 0.1",
                     "leader": 0.6},
    "one scale": {"plan": 'claims.dimensions = ["d1"]'},
    "after the scores": {"preregistered": False},
    "a leader among six": {"agents": 6, "dimensions": 1, "leader": 0.7, "noise": 0.3,
                           "plan": 'claims.dimensions = ["aggregate"]'},
    "equal agents": {"leader": 0.0, "noise": 0.02, "clusters": 8, "cycles": 8},
}  # fmt: skip
"""What can make a certificate hold something else."""


def plan_of(design: Design):
    families = design["families"] or tuple(f"f{j}" for j in range(design["judges"]))
    judges = "".join(
        f'[[judges]]\nname = "j{j}"\nmodel = "reference/auditor"\nfamily = "{family}"\n'
        for j, family in enumerate(families)
    )
    return parse_study(f'name = "s"\nseed = 1\n{design["plan"]}\n{judges}')


def record(design: Design, agent: int, cluster: int, cycle: int) -> Decision:
    family = f"f{agent}" if agent < design["conflicts"] else f"other-{agent}"
    where = f"2026-W{cluster + 1:02d}" if design["dated"] else f"regime-{cluster}"
    return Decision(
        record_id=f"{agent}/{cluster}/{cycle}", episode_id=f"{cluster}/{cycle}", step=0, cluster=where, decided_at=NOW,
        agent=Agent(id=f"agent-{agent}", family=family), context_id="c", actions=(), rationales=(), format="sim",
        provenance=Provenance(source="simulation"),
    )  # fmt: skip


def simulated(design: Design, rng: np.random.Generator):
    """Judgments, decisions and lengths of one study."""
    judgments, decisions, lengths = [], [], {}
    names = [f"d{d}" for d in range(design["dimensions"])]
    families = [judge.family for judge in plan_of(design).judges]
    for cluster in range(design["clusters"]):
        liking = rng.normal(0, design["noise"], (design["agents"], len(names)))
        for cycle in range(design["cycles"]):
            task = rng.normal(0, 0.3)
            for agent in range(design["agents"]):
                made = record(design, agent, cluster, cycle)
                quality = 3.0 + task + design["leader"] * (agent == 0) - 0.05 * agent + liking[agent]
                quality = quality + rng.normal(0, 0.6) + rng.normal(0, 0.4, len(names))
                longer = 1.3 if design["lengths"] == "longer" and agent == 0 else 1.0
                spread = 0.0 if design["lengths"] == "fixed" else 0.2
                lengths[made.record_id] = int(longer * (100 + 7 * agent) * np.exp(rng.normal(0, spread)))
                grades = np.clip(np.floor(quality + rng.normal(0, 0.5, (len(families), len(names))) + 0.5), 1, 5)
                there = rng.random(len(families)) >= design["missing"]
                if cluster in design["absent"].get(agent, ()):
                    continue
                decisions.append(made)
                judgments += [
                    judgment(made, j, family, dict(zip(names, grades[j].tolist(), strict=True)) if there[j] else {})
                    for j, family in enumerate(families)
                ]
    return judgments, decisions, lengths if design["lengths"] else None


@cache
def analysed(name: str) -> tuple[Measurement, ...]:
    """Every measurement of one design."""
    design = BASE | DESIGNS[name]
    plan, rng = plan_of(design), np.random.default_rng(5)
    judgments, decisions, lengths = simulated(design, rng)
    table = score_table(judgments, decisions, lengths=lengths)
    style = (
        {"digits": {one.record_id: float(rng.poisson(5)) for one in decisions}} if "digits" in design["plan"] else {}
    )
    found = list(analyse(table, plan, rng=np.random.default_rng(1), style=style or None))
    if design["cells"]:
        found += cell_measurements(table, control_cells(table, rng), plan, rng=np.random.default_rng(2))
    if design["beside"]:
        found += [*shares(found), outside(found)]
    return tuple(found)


def control_cells(table, rng):
    """Wrong texts that score low, terse ones that lose a little, and paraphrases that lose nothing."""
    honest = table.scores

    def scored(kind, scores, parents=None):
        rows = np.resize(np.arange(table.n), len(scores))
        there = {one: getattr(table, one) for one in ("agents", "clusters", "judges", "families", "dimensions")}
        ids = tuple(f"{kind}-{k}" for k in range(len(scores)))
        made = replace(
            table, **there, trajectories=ids, cycles=ids, cycle=np.arange(len(scores)), agent=table.agent[rows],
            cluster=table.cluster[rows], formats=("v1",), format=np.zeros(len(scores), dtype=np.int64),
            scores=np.clip(np.floor(scores + 0.5), 1, 5), mean=None, first=None,
            trials={judge: np.zeros((0, 1)) for judge in table.judges}, incomplete=None, lacking=None,
        )  # fmt: skip
        return cell(kind, made, parents=parents, composer="f0")

    noise = rng.normal(0, 0.3, honest[:48].shape)
    return [
        scored("cell_a", 1.4 + noise),
        scored("cell_b", honest[:48] - 1.2 + noise),
        scored("paraphrase", honest[:48] + 0.1 * noise, parents=table.trajectories[:48]),
    ]


def shares(found) -> list[Measurement]:
    """One mostly terse agent, and a rerun at equal length that bears one of its comparisons."""
    below = {"agent-0": 5, "agent-1": 200, "agent-2": 10, "agent-3": 125}
    terse = [
        measured("terse.share", {"agent": agent}, count / 250, n=250, detail={"below": count, "tokens": 60})
        for agent, count in below.items()
    ]
    labels = next(m.labels for m in found if m.name == "contrast" and {"agent-0", "agent-1"} <= set(m.labels.values()))
    return [*terse, measured("length_matched.contrast", labels, 0.7, detail={"p": 1e-5, "p_holm": 6e-5})]


def outside(found) -> Measurement:
    """The outside judge on one unresolved aggregate pair: an interval that contains 0."""
    labels = next(
        m.labels for m in found if m.name == "contrast" and m.labels["dimension"] == "aggregate" and m.detail["p"] > 0.1
    )
    differences = np.random.default_rng(4).normal(0.02, 0.4, 60)
    where = np.repeat([f"regime-{c}" for c in range(6)], 10)
    test = cluster_t(differences, where)
    sums = {str(c): [float(differences[where == c].sum()), 10] for c in np.unique(where)}
    detail = {"judge": "deepseek", "family": "outside", "p": test.p, "cluster_sums": sums}
    return measured(
        "probe.contrast", labels, test.difference, n=60, low=test.low, high=test.high, level=0.95, detail=detail
    )


@cache
def decided(name: str = "plain"):
    """The verdicts of one design by claim id, the index they follow from, and the plan."""
    design = BASE | DESIGNS[name]
    measurements, plan = analysed(name), plan_of(design)
    verdicts = decide_claims(
        measurements, plan, "f" * 64, amended=["gates.publish", "claims.first"], preregistered=design["preregistered"]
    )
    return {verdict.claim.id: verdict for verdict in verdicts}, index(measurements), plan


def certified(claim: str, name: str = "plain"):
    """The certificate of one claim of one design."""
    verdicts, known, plan = decided(name)
    return certificate(verdicts[claim], known, plan)


def written(made):
    """A certificate as it is read from its file."""
    return json.loads(canonical_json(made))


@cache
def every(name):
    """The certificates of all claims of one design."""
    verdicts, known, plan = decided(name)
    return {
        claim: written(one) for claim, one in zip(verdicts, certificates(verdicts.values(), known, plan), strict=True)
    }


CHOSEN = [
    ("plain", "first[agent=agent-0,dimension=aggregate]"),
    ("plain", "first[agent=agent-1,dimension=d0]"),
    ("plain", "above[dimension=aggregate,high=agent-0,low=agent-1]"),
    ("plain", "cell[cell=cell_b]"),
    ("conflicts", "above[dimension=d0,high=agent-0,low=agent-1]"),
    ("conflicts", "within[dimension=aggregate,high=agent-0,low=agent-1]"),
    ("style", "above[dimension=d0,high=agent-0,low=agent-1]"),
    ("weeks", "above[dimension=aggregate,high=agent-0,low=agent-1]"),
    ("missing grades", "above[dimension=aggregate,high=agent-0,low=agent-1]"),
    ("an agent that is often absent", "first[agent=agent-3,dimension=aggregate]"),
]


def tampered(found, *path, value):
    found = copy.deepcopy(found)
    *where, last = path
    place = found
    for step in where:
        place = place[step]
    place[last] = value
    return found
