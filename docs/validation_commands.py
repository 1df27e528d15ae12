"""Studies sent through the command line: `assaymark measure --judgments TABLE --study PLAN`, beside the batch."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from validation_worlds import FAMILIES, Bools, Drawn, World, decide

from assaymark.cli import main
from assaymark.metrology.contrasts import pairs_of

COUNTS = (
    "claimed", "headline", "false", "false headline", "batch claimed", "batch headline", "no headline", "differ"
)  # fmt: skip

_KIN = ("north", "south", "east", "west")
_CONTROLS = 3
_GRADED = World(grades=True, judge_sd=0.4, cycles=4)

COMMANDS: Mapping[str, World] = {
    "four equal agents, 5 clusters": replace(_GRADED, clusters=5),
    "eight equal agents, 12 clusters": replace(_GRADED, agents=8),
    "at the ceiling, 20 clusters": replace(_GRADED, clusters=20, centre=4.5),
    "agents differ in variance, 12 clusters": replace(_GRADED, spread=(0.4, 0.7, 1.4, 2.5)),
    "uneven clusters, 12": replace(_GRADED, cycles=0),
    "one ahead, the others equal, 12 clusters": replace(_GRADED, levels=(0.8,)),
    "own family .5, 20 clusters": replace(_GRADED, clusters=20, agent_families=_KIN, own=0.5),
    "length .25 a doubling, 20 clusters": replace(_GRADED, clusters=20, slope=0.25, longer=(1.0, 0.7, 0.3, 0.0)),
    "six dimensions from one impression, 12 clusters": replace(
        _GRADED, levels=(0.5, 0.3, 0.2), on=(1.0,) * 6, halo=1.0
    ),
    "one odd judge 1, 20 clusters": replace(_GRADED, clusters=20, odd=1.0),
    "24 weeks correlated by .5": replace(_GRADED, clusters=24, levels=(0.4,), rho=(0.5,) * 4),
    "leader by .4 of its judge's family, 20 clusters": replace(
        _GRADED, clusters=20, levels=(0.4,), agent_families=_KIN
    ),
}


def command(world: World, studies: int, draws: Callable[[World, int], Iterator[Drawn]]) -> dict[str, int]:
    """Studies with an order, with a false one, with each as a headline; what the batch says, and where they differ."""
    counts = dict.fromkeys(COUNTS, 0)
    for drawn in draws(world, studies):
        found = decide(drawn)
        for b in range(len(drawn.scores)):
            claimed, headline, kept = _verdicts(drawn, b)
            counts["claimed"] += bool(claimed.any())
            counts["headline"] += bool(headline.any())
            wrong = np.sign(found.gap[b]) * world.truth <= 0
            counts["false"] += bool((claimed & wrong).any())
            counts["false headline"] += bool((headline & wrong).any())
            counts["batch claimed"] += bool(found.stable[b].any())
            counts["batch headline"] += bool(found.headline[b].any())
            # The batch takes agreement and controls as good; without them the command makes no headline.
            counts["no headline"] += not kept
            same = (claimed == found.stable[b]).all() and (headline == (found.headline[b] & kept)).all()
            counts["differ"] += not same
    return counts


def _verdicts(drawn: Drawn, b: int) -> tuple[Bools, Bools, bool]:
    """Orders that the command claims [S, P], those that are headlines, and whether panel and controls allow any."""
    world = drawn.world
    names = ["aggregate", *(f"d{s}" for s in range(1, len(world.on) + 1))]
    claimed = np.zeros((len(names), world.agents * (world.agents - 1) // 2), dtype=bool)
    headline = claimed.copy()
    with tempfile.TemporaryDirectory(prefix="assaymark-") as folder:
        table, plan, out = (Path(folder) / name for name in ("scores.csv", "study.toml", "out"))
        pacsv.write_csv(_table(drawn, b), table)
        plan.write_text(_plan(world), encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            status = main(["measure", "--judgments", str(table), "--study", str(plan), "--out", str(out)])
        if status:
            raise RuntimeError(f"assaymark measure ended with {status}")
        found = json.loads((out / "verdicts.json").read_text(encoding="utf-8"))["verdicts"]
    places = {pair: k for k, pair in enumerate(zip(*(axis.tolist() for axis in pairs_of(world.agents)), strict=True))}
    kept = False
    for verdict in found:
        if not verdict["claim"]["id"].startswith("above["):
            continue
        i, j = sorted(int(agent.removeprefix("agent-")) for agent in verdict["claim"]["subjects"])
        place = names.index(verdict["claim"]["dimension"]), places[i, j]
        claimed[place] = verdict["publication_level"] != "no-claim"
        headline[place] = verdict["publication_level"] == "headline"
        kept |= verdict["agreement_status"] == "publish" and verdict["adversarial_status"] == "passed"
    # A single dimension is the aggregate.
    return (claimed[:1], headline[:1], kept) if len(world.on) == 1 else (claimed, headline, kept)


def _plan(world: World) -> str:
    order = "consecutive" if world.consecutive else "exchangeable"
    weights = ", ".join(f"d{s} = 1" for s in range(1, len(world.on) + 1))
    judges = "".join(
        f'[[judges]]\nname = "judge-{family}"\nmodel = "elsewhere/judge"\nfamily = "{family}"\n' for family in FAMILIES
    )
    return (
        f'version = "2"\nname = "validation"\nseed = 1\nrecords = {{derivations = ["honest", "cell_a", "cell_b"]}}\n'
        f'rubric = {{name = "one", weights = {{{weights}}}}}\n'
        f'inference = {{cluster_order = "{order}", resamples = 1000}}\n{judges}'
    )


def _table(drawn: Drawn, b: int) -> pa.Table:
    """One study as a table of scores, with control texts: wrong ones at the bottom, terse ones like honest ones."""
    world, dimensions = drawn.world, len(drawn.world.on)
    scores = drawn.scores[b, ..., -dimensions:]
    families = world.agent_families or ("none",) * world.agents
    cycle, agent, judge = (axis.ravel() for axis in np.indices(scores.shape[:3]))
    honest = {
        "trajectory": [f"t{c}-{k}" for c, k in zip(cycle, agent, strict=True)],
        "agent": [f"agent-{k}" for k in agent],
        "agent_family": [families[k] for k in agent],
        "cycle": cycle,
        "cluster": [f"cluster {world.cluster[c]:03d}" for c in cycle],
        "judge": judge,
        "length": np.rint(2 ** drawn.words[b][cycle, agent]).astype(int),
        "derivation": ["honest"] * cycle.size,
    } | {f"d{s + 1}": scores[..., s].ravel() for s in range(dimensions)}
    rng, parts = np.random.default_rng(b), [honest]
    means = drawn.means[b, -dimensions:].mean(axis=3)  # [S, G, J]
    for kind, words in (("cell_a", 300), ("cell_b", 40)):
        cluster, text, judge = (axis.ravel() for axis in np.indices((world.clusters, _CONTROLS, len(FAMILIES))))
        at = means[:, cluster, judge]
        grades = rng.integers(1, 3, at.shape) if kind == "cell_a" else at + 0.15 * rng.standard_normal(at.shape)
        one = {
            "trajectory": [f"{kind} {g}-{t}" for g, t in zip(cluster, text, strict=True)],
            "agent": ["control"] * cluster.size,
            "agent_family": ["control"] * cluster.size,
            "cycle": world.cluster.size + cluster,
            "cluster": [f"cluster {g:03d}" for g in cluster],
            "judge": judge,
            "length": [words] * cluster.size,
            "derivation": [kind] * cluster.size,
        }
        parts.append(one | {f"d{s + 1}": np.clip(grades[s], 1, 5).astype(float) for s in range(dimensions)})
    table = pa.concat_tables([pa.table(part) for part in parts])
    names = np.array(FAMILIES)[table.column("judge").to_numpy()]
    table = table.set_column(table.column_names.index("judge"), "judge", pa.array([f"judge-{name}" for name in names]))
    return table.append_column("family", pa.array(names)).append_column("trial", pa.array([1] * len(table)))
