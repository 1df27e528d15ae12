"""The runs whose results are pinned: each is a few commands on inputs that are written here, in a folder of its own."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

import numpy as np

from assaymark.cli import main


def call(*words: str | int, said: str = "", status: int = 0) -> None:
    """Run one command here; with ``said``, what it prints is kept in that file."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        found = main([str(word) for word in words])
    assert found == status, f"{words} ended with {found}: {err.getvalue()[-2000:]}"
    if said:
        Path(said).write_text(out.getvalue(), encoding="utf-8")


def write(folder: str, files: Mapping[str, str | bytes]) -> None:
    """Put files into a folder here."""
    Path(folder).mkdir()
    for name, text in files.items():
        (Path(folder) / name).write_bytes(text.encode() if isinstance(text, str) else text)


# --- demo -------------------------------------------------------------------------------------------------------------


def demo() -> None:
    """The demo to its pages, unless it is here already, its tables as Arrow files, and the template of an import."""
    if not Path("run").exists():
        call("demo", "--out", "run")
    call("export", "run", "--arrow", "arrow")
    call("verify", "run")
    call("import", "template", said="template.toml")


# --- records of others ------------------------------------------------------------------------------------------------

DIMENSIONS: Final = (
    "action_coherence", "constraint_awareness", "information_use", "position_sizing", "risk_alignment",
    "uncertainty_handling",
)  # fmt: skip
AGENTS: Final = {"alpha": "acme", "beta": "bolt", "gamma": "cone"}

MAP: Final = """
version = "1"
completeness = "complete"
[files]
decisions = "decisions.{form}"
facts = "facts.csv"
outcomes = "outcomes.csv"
[provenance]
source = "made"
licence = "MIT"
[columns]
episode = "round"
decided_at = "at"
agent = "agent"
family = "maker"
context = "seen"
prompt = "asked"
confidence = "sure"
instrument = "ticker"
action = "order"
weight = "size"
[rationales]
summary = ["why"]
risk = ["risks"]
[facts]
context = "seen"
[outcomes]
episode = "round"
"""

HELD: Final = "The one that grew more is held, because growth tends to last for some weeks"
TEXTS: Final = {
    "alpha": (
        "This will go up, and everybody who looks at it can see that it will go up from here.",
        "The whole book goes into it now, all at once, and it stays there until it has doubled or more.",
        "Nothing speaks against it, nothing can go wrong with it, and whoever waits any longer will have missed it.",
    ),
    "beta": (
        f"{HELD}.",
        "Sixty percent of the book go into it and the rest stays in cash, so that a turn costs less than the whole.",
        "It would be sold when the other one grows faster for two weeks, which is looked at every Monday before noon.",
    ),
    "gamma": (
        f"{HELD}, but this is uncertain.",
        "Thirty percent of the book go into it, since volatility could rise; the rest stays in cash against a loss.",
        "If it falls below its level of a month ago, half of it is sold; if rates rise, all of it, for both may turn.",
    ),
}


def _growth(k: int) -> tuple[int, int]:
    """Return the growth of the two instruments in a round, in percent."""
    return (k * 7 + 3) % 11 + 1, (k * 5 + 2) % 9 + 1


def _rounds(number: int) -> list[dict[str, str]]:
    """Decisions of three agents: one boasts and is wrong, one explains itself, one also doubts."""
    rows = []
    for k in range(number):
        for place, (agent, maker) in enumerate(AGENTS.items()):
            (growth, other), wrong = _growth(k), (place == 0) * 3 + (place == 1 and k % 4 == 0)
            said = f"A grew {growth + wrong}.0 percent and B grew {other}.0 percent over the last month."
            rows.append({
                "round": f"r{k}", "at": f"2026-{1 + k // 4:02d}-{5 + 7 * (k % 4):02d}T15:0{place}:00Z",
                "agent": agent, "maker": maker, "seen": f"m{k}", "asked": "Pick one of A and B.",
                "sure": f"{0.95 - 0.15 * place:.2f}", "ticker": "AB"[(k + place) % 2], "order": "buy",
                "size": f"{0.9 - 0.3 * place:.1f}", "why": " ".join((said, *TEXTS[agent])),
                "risks": f"A may fall {place + 2} percent." if (k + place) % 4 else "",
            })  # fmt: skip
    return rows


def _records(form: str, number: int = 24) -> dict[str, str]:
    """A study in the generic format, with decisions in CSV or JSONL."""
    rows, outcomes = _rounds(number), ["agent,round,horizon,value"]
    outcomes += [f"{row['agent']},{row['round']},one week,{(k * 13 % 7 - 3) / 100}" for k, row in enumerate(rows)]
    facts = ["seen,instrument,field,value,unit,available_at"]
    for k in range(number):
        at = f"2026-{1 + k // 4:02d}-{4 + 7 * (k % 4):02d}T20:00:00Z"
        facts += [f"m{k},{name},growth,0.{grown:02d},ratio,{at}" for name, grown in zip("AB", _growth(k), strict=True)]
    if form == "csv":
        decisions = [",".join(rows[0]), *(",".join(f'"{value}"' for value in row.values()) for row in rows)]
    else:
        decisions = [json.dumps(row) for row in rows]
    files = {f"decisions.{form}": decisions, "facts.csv": facts, "outcomes.csv": outcomes}
    return {"map.toml": MAP.format(form=form)} | {name: "\n".join(lines) + "\n" for name, lines in files.items()}


def _grades(number: int = 24) -> str:
    """Grades of two people, half points and a row without any included."""
    rng = np.random.default_rng(5)
    lines = [",".join(("trajectory", "judge", *DIMENSIONS))]
    for row in _rounds(number):
        for person in ("ann", "bob"):
            mean = {"alpha": 1.8, "beta": 3.4, "gamma": 4.1}[row["agent"]]
            given = np.clip(np.round(2 * rng.normal(mean, 0.6, len(DIMENSIONS))) / 2, 1, 5)
            shown = [f"{value:g}" for value in given] if rng.random() > 0.05 else [""] * len(DIMENSIONS)
            lines.append(",".join((f"{row['round']}/{row['agent']}", person, *shown)))
    return "\n".join(lines) + "\n"


def _table(head: str, name: str, family: str, model: str, *more: str) -> str:
    lines = (head, f'name = "{name}"', f'family = "{family}"', f'model = "{model}"', *more)
    return "\n" + "\n".join(lines) + "\n"


STUDY: Final = """
version = "2"
name = "golden"
title = "Three agents who explain themselves more and less"
seed = 2041

[gates]
publish = 0.25
halt = 0.1
""" + "".join((
    _table("[[judges]]", "auditor", "acme", "reference/auditor", "seed = 11"),
    _table("[[judges]]", "reader", "reader", "reference/reader", "trials = 2", "seed = 12"),
    _table("[[judges]]", "allocator", "allocator", "reference/allocator", "seed = 13"),
    _table("[[judges]]", "ann", "human", "human/table"), _table("[[judges]]", "bob", "human", "human/table"),
    _table("[stability.probe]", "outsider", "skeptic", "reference/skeptic", "seed = 14"),
    '\n[anchor_probe]\njudge = "auditor"\nrubric = "v1.1"\nsample = 12\n',
))  # fmt: skip


def study() -> None:
    """Records in CSV and grades by people through a whole study, amended once, and what further calls would do."""
    write("records", _records("csv"))
    Path("grades.csv").write_text(_grades())
    Path("study.toml").write_text(STUDY)
    call("import", "generic", "records", "--out", "run", "--json", said="import.json")
    call("import", "human", "grades.csv", "--out", "run")
    call("lock", "study.toml", "--out", "run", "--json", said="lock.json")
    Path("study.toml").write_text(STUDY + "\n[inference]\nmargin = 0.4\n")
    call("amend", "study.toml", "--out", "run", "--reason", "a wider margin")
    call("run", "study.toml", "--out", "run", "--dry-run", "--json", said="forecast.json")
    call("run", "study.toml", "--out", "run")
    call("verify", "run")


def _aitrader() -> dict[str, bytes]:
    import made_aitrader

    return made_aitrader.files(*made_aitrader.honest(), made_aitrader.crypto())


def imports() -> None:
    """Each importer on a few records, and what it reports."""
    import made_capitalbench

    shapes = [made_capitalbench.record(shape, agent=f"acme-{shape}") for shape in made_capitalbench.SHAPES]
    write("aitrader", _aitrader())
    write("capitalbench", made_capitalbench.packed([made_capitalbench.context()], shapes))
    write("generic", _records("jsonl", 4))
    for name in ("aitrader", "capitalbench", "generic"):
        call("import", name, name, "--out", f"{name}-run", "--json", said=f"{name}.json")


def recorded() -> None:
    """A season that somebody else ran, locked on imported records, judged and published."""
    write("aitrader", _aitrader())
    market = '[market]\nsource = "records"\nformat = "aitrader"\ntrack = "cn-hourly"\n'
    panel = SEASON[SEASON.index("[[panel]]") :]
    Path("season.toml").write_text(f'version = "2"\nname = "log"\n\n{market}\n{panel}')
    call("import", "aitrader", "aitrader", "--out", "run")
    call("season", "init", "season.toml", "--out", "run")
    call("season", "judge", "run")
    call("season", "publish", "run", "--out", "site")


def calls() -> None:
    """A study that is small enough to plan further calls for it: two agents, two judges, one dimension."""
    records = _records("jsonl", 14)
    lines = records["decisions.jsonl"].splitlines(keepends=True)
    records["decisions.jsonl"] = "".join(line for line in lines if '"agent": "gamma"' not in line)
    records["map.toml"] = MAP.format(form="jsonl").replace('outcomes = "outcomes.csv"\n', "").split("[outcomes]")[0]
    write("records", records)
    head, auditor, _, allocator, *_ = STUDY.split("[[judges]]\n")
    claims = '[claims]\ndimensions = ["action_coherence"]\n'
    Path("study.toml").write_text("[[judges]]\n".join((head, auditor, allocator)) + claims)
    call("import", "generic", "records", "--out", "run")
    call("run", "study.toml", "--out", "run")
    call("plan-calls", "run", "--budget", "7", "--json", said="plan-calls.json")


# --- scores made elsewhere --------------------------------------------------------------------------------------------


def scores() -> None:
    rng = np.random.default_rng(1)
    lines = ["trajectory,agent,cluster,cycle,judge,family,trial,length,clarity,risk"]
    for cycle in range(40):
        base = 3 + rng.normal(0, 0.6)
        for agent, effect in (("ash", 0.9), ("birch", 0.0), ("cedar", 0.0)):
            quality, length = base + effect + rng.normal(0, 0.4, 2), int(rng.integers(60, 200))
            for judge in ("north", "south", "east"):
                given = np.clip(np.floor(quality + rng.normal(0, 0.4, 2) + 0.5), 1, 5).astype(int)
                head = f"{agent}{cycle},{agent},w{cycle // 5},c{cycle},{judge},{judge},1,{length}"
                lines.append(f"{head},{given[0]},{given[1]}")
    Path("scores.csv").write_text("\n".join(lines) + "\n")
    call("measure", "--judgments", "scores.csv", "--dimensions", "clarity,risk", "--out", "run")


# --- datasheets -------------------------------------------------------------------------------------------------------


def datasheets() -> None:
    """The datasheet of a reference judge that is asked, and those of a log of verdicts."""
    call("datasheet", "--judge", "reference/slot-biased", "--out", "asked")
    rng = np.random.default_rng(3)
    lines = ["judge,question_id,slot1_model,slot2_model,verdict,rep"]
    for judge in ("north", "south"):
        for question in range(60):
            for rep in (1, 2):
                for first, second in (("a", "b"), ("b", "a")):
                    verdict = rng.choice(["1", "2", "tie", "invalid"], p=[0.5, 0.36, 0.12, 0.02])
                    lines.append(f"{judge},q{question},{first},{second},{verdict},{rep}")
    Path("log.csv").write_text("\n".join(lines) + "\n")
    call("datasheet", "--from", "log.csv", "--out", "log")


# --- benchmark --------------------------------------------------------------------------------------------------------

BENCH: Final = """
[market]
instruments = 12
[pipeline]
profiles = ["balanced", "conservative"]
windows = ["normal", "covid-2020"]
frequency = "quarterly"
[questions]
per_template = 4
"""


def bench() -> None:
    """Questions and pipeline of three reference models."""
    models = [f'[[models]]\nname = "{word}"\nfamily = "{word}"\nmodel = "reference/portbench-{word}"\n'
              for word in ("literal", "momentum", "garbled")]  # fmt: skip
    Path("bench.toml").write_text(BENCH + "".join(models))
    call("bench", "qa", "bench.toml", "--out", "run")
    call("bench", "pipeline", "bench.toml", "--out", "run")


# --- season -----------------------------------------------------------------------------------------------------------

SEASON: Final = """
version = "2"
name = "spring"
title = "Ten days"
prompt = "Grow the book over the season. Say what you saw and why you act."
universe = 6
replicates = 2

[market]
source = "synthetic"

[calendar]
first = 2024-03-04
last = 2024-03-15
""" + "".join((
    _table("[[agents]]", "trend", "north", "reference/momentum"),
    _table("[[agents]]", "contra", "south", "reference/contrarian"),
    _table("[[agents]]", "even", "even", "reference/equal-weight"),
    _table("[[panel]]", "auditor", "east", "reference/season-auditor", "trials = 2"),
    _table("[[panel]]", "reader", "west", "reference/season-reader"),
    _table("[[panel]]", "allocator", "north", "reference/season-allocator"),
))  # fmt: skip


def season() -> None:
    """Ten days of three agents, each asked twice, under three judges, to the site."""
    _season(SEASON)


def quarter() -> None:
    """Thirteen weeks of them, so that there are periods enough to rank agents by."""
    _season(SEASON.replace("replicates = 2\n", "").replace("2024-03-15", "2024-05-31"))


def _season(text: str) -> None:
    Path("season.toml").write_text(text)
    call("season", "init", "season.toml", "--out", "run", "--json", said="init.json")
    call("season", "run", "run")
    call("season", "judge", "run")
    call("season", "publish", "run", "--out", "site")
    call("export", "run", "--arrow", "arrow")


RUNS: Final[Mapping[str, Callable[[], None]]] = {
    "demo": demo, "study": study, "imports": imports, "scores": scores, "datasheets": datasheets, "bench": bench,
    "season": season, "quarter": quarter, "recorded": recorded, "calls": calls,
}  # fmt: skip


def run(name: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with chdir(folder):
        RUNS[name]()
