"""A score table of ten million trajectories x 3 judges x 6 dimensions: time, memory, growth, and pandas beside it.

Each measurement is a process of its own, so that its peak memory is its own; the time is that of the work inside it,
the start of Python and its imports left out on both sides.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from make_scores import DIMENSIONS

Note = Callable[[str, str, str, str], None]
MAKER = Path(__file__).with_name("make_scores.py")
SIZES = (100_000, 1_000_000, 10_000_000)
SECONDS, MEGABYTES, RATIO = 5.0, 2048.0, 5.0

PEAK = """
def peak():
    # Not ru_maxrss: a process inherits that of whoever forked it.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
"""

WHOLE = (
    PEAK
    + """
import json, sys, time
from pathlib import Path
import pyarrow.parquet, duckdb, scipy.special
from assaymark.workflow import score_files
score_files.STREAMED_FROM = 1
started = time.perf_counter()
score_files.measure_table(Path(sys.argv[1]), dimensions=sys.argv[2])
seconds = time.perf_counter() - started
print(json.dumps([seconds, peak(), []]))
"""
)

# The statistics alone: contingency tables by cluster of every pair of judges and every name, and paired differences by
# cluster of every pair of agents, of the panel, each judge alone, and without each family.
SUMS = (
    PEAK
    + """
import json, sys, time
from pathlib import Path
import numpy as np
import pyarrow.parquet, duckdb, scipy.special
from assaymark.metrology import analysis, streaming
from assaymark.workflow.score_files import default_study
started = time.perf_counter()
sums = streaming.score_sums(Path(sys.argv[1]), dimensions=sys.argv[2], scratch=Path("."))
study = default_study(dict(zip(sums.layout.judges, sums.layout.families, strict=True)))
panel = analysis.panel_of_sums(sums, study)
seconds = time.perf_counter() - started
found = analysis.analyse(sums, study, rng=np.random.default_rng(1))
known = {item.id: item.value for item in found}
pair = "contrast[dimension=aggregate,high=ash,low=elm]"
answers = [known["kappa.mean_pairwise[dimension=risk]"], known[pair]]
print(json.dumps([seconds, peak(), answers]))
"""
)

# The same in pandas, fewer of the differences: none of a judge alone.
PANDAS = (
    PEAK
    + """
import itertools, json, sys, time
import numpy as np
import pandas as pd
started = time.perf_counter()
frame = pd.read_parquet(sys.argv[1])
names = sorted(set(frame.columns) - {"trajectory", "agent", "cluster", "judge", "family", "trial", "cycle"})
frame["aggregate"] = frame[names].mean(axis=1)
names = ["aggregate", *names]
judges = sorted(frame["judge"].unique())
wide = frame.pivot(index="trajectory", columns="judge", values=names)
about = frame.drop_duplicates("trajectory").set_index("trajectory")[["cluster", "cycle", "agent"]].loc[wide.index]
tables = {}
for name in names:
    rated = np.clip(np.floor(wide[name] + 0.5), 1, 5).astype("int8")
    rated["cluster"] = about["cluster"]
    for a, b in itertools.combinations(judges, 2):
        tables[name, a, b] = rated.groupby(["cluster", a, b], observed=True).size()
contrasts = {}
cluster = about.groupby("cycle")["cluster"].first()
kept = [judges, *([j for j in judges if j != out] for out in judges)]
for k, panel in enumerate(kept):
    scores = pd.DataFrame({name: wide[name][panel].mean(axis=1) for name in names})
    scores[["cycle", "agent"]] = about[["cycle", "agent"]]
    means = scores.groupby(["cycle", "agent"], observed=True).mean().unstack("agent")
    for a, b in itertools.combinations(means.columns.unique("agent"), 2):
        apart = means.xs(a, axis=1, level="agent") - means.xs(b, axis=1, level="agent")
        contrasts[k, a, b] = apart.groupby(cluster, observed=True).agg(["sum", "count"])
seconds = time.perf_counter() - started
def kappa(table):
    counts = table.groupby(level=[1, 2]).sum()
    n = counts.sum()
    a, b = (counts.index.get_level_values(i).to_numpy(dtype=float) for i in (0, 1))
    p = counts.to_numpy() / n
    pa, pb = ([p[x == v].sum() for v in range(1, 6)] for x in (a, b))
    chance = sum(pa[i] * pb[j] * (i - j) ** 2 for i in range(5) for j in range(5))
    return 1 - (p * (a - b) ** 2).sum() / chance
risk = np.mean([kappa(tables["risk", a, b]) for a, b in itertools.combinations(judges, 2)])
found = contrasts[0, "ash", "elm"]["aggregate"].sum()
answers = [risk, found["sum"] / found["count"]]
print(json.dumps([seconds, peak(), answers]))
"""
)


def run(program: str, path: Path) -> tuple[float, float, list[float]]:
    """Seconds of the work, peak memory of the process in MB, and two answers to be compared."""
    command = [sys.executable, "-c", program, str(path), ",".join(DIMENSIONS)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, megabytes, answers = json.loads(done.stdout)
    return float(seconds), float(megabytes), list(answers)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("scores")
    made = {size: folder / f"{size}.parquet" for size in SIZES}
    for size, path in made.items():
        subprocess.run([sys.executable, str(MAKER), str(size), str(path)], check=True)
    return made


def test_ten_million_trajectories(tables: dict[int, Path], note: Note) -> None:
    found = {size: min(run(WHOLE, tables[size])[:2] for _ in range(3)) for size in SIZES}
    for size, (seconds, megabytes) in found.items():
        what = f"measure {size:,} trajectories x 3 judges x 6 dimensions from Parquet, to verdicts"
        last = size == SIZES[-1]
        note(what, "wall clock, two threads", f"{seconds:.2f} s", f"< {SECONDS:.0f} s" if last else "none set")
        note(what, "resident memory", f"{megabytes:.0f} MB", f"< {MEGABYTES:.0f} MB" if last else "none set")
    small, middle, large = (found[size][0] for size in SIZES)
    growth = (large - small) / (middle - small)
    wanted = (SIZES[2] - SIZES[0]) / (SIZES[1] - SIZES[0])
    note(
        "growth from 1e5: ten times more trajectories", "time added, ratio", f"{growth:.1f}", f"{wanted:.0f} is linear"
    )
    assert large < SECONDS
    assert found[SIZES[-1]][1] < MEGABYTES
    assert growth < 2 * wanted


def test_against_pandas(tables: dict[int, Path], note: Note) -> None:
    pytest.importorskip("pandas")
    path = tables[1_000_000]
    # In turns, so that a busy minute of the machine falls on both.
    runs = [(run(SUMS, path), run(PANDAS, path)) for _ in range(4)]
    ours, theirs = min(one for one, _ in runs), min(other for _, other in runs)
    assert ours[2] == pytest.approx(theirs[2], abs=1e-9)
    ratio = theirs[0] / ours[0]
    what = "1,000,000 trajectories: counts of score pairs and paired differences by cluster"
    measured = f"{ratio:,.0f} x ({ours[0]:.2f} s against {theirs[0]:.1f} s)"
    note(what, "pandas on the same file", measured, f">= {RATIO:.0f} x")
    note(what, "pandas, resident memory", f"{theirs[1]:,.0f} MB (ours {ours[1]:.0f} MB)", "none set")
    assert ratio >= RATIO
