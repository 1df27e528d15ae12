"""The examples whose pages are opened: small runs at the command line, and made-up ones with every section present."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Final

import assay_runs
import full_runs
import pytest
import test_agents_section
from browsing import write_pages
from full_records import grades, make, study
from hostile_pages import PAYLOADS, hostile_pages
from made_season import made_catalogue, made_season
from season_runs import IDS, market, season_text, stored
from small_benchmarks import small_plan

from assaymark.benchmark import questions as question_set
from assaymark.cli import main
from assaymark.market import synthetic_history
from assaymark.report import render_pages
from assaymark.report import season as season_pages

Build = Callable[[Path], None]

ROOT: Final = Path(__file__).resolve().parents[2]
_ROUNDS: Final = 12


def typed(*words: str | Path) -> None:
    """A command that has to succeed, with what it says kept from the screen."""
    said = StringIO()
    with redirect_stdout(said):
        status = main([str(word) for word in words])
    assert status == 0, f"{words}: {said.getvalue()}"


def whole_study(run: Path) -> None:
    """Control cells, an outside judge, the anchor probe, and two people on the panel."""
    make(run)
    typed("import", "human", grades(run.parent / "grades.csv"), "--out", run)
    typed("run", study(run.parent / "study.toml", people=True), "--out", run)


def capitalbench(run: Path, shared: Path) -> None:
    """The first rounds of the real records before the panel of the shipped study."""
    part = run.parent / "records"
    shutil.copytree(shared / "data" / "capitalbench", part)
    with gzip.open(part / "contexts.jsonl.gz", "rt", encoding="utf-8") as lines:
        rounds = [json.loads(line)["round_id"] for line in lines][:_ROUNDS]
    for name in ("contexts", "decisions"):
        with gzip.open(part / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            kept = [line for line in lines if json.loads(line)["round_id"] in rounds]
        with gzip.open(part / f"{name}.jsonl.gz", "wt", encoding="utf-8") as lines:
            lines.writelines(kept)
    typed("import", "capitalbench", part, "--out", run)
    plan = run.parent / "study.toml"
    plan.write_text((ROOT / "studies" / "capitalbench.toml").read_text(encoding="utf-8") + "\n", encoding="utf-8")
    typed("run", plan, "--out", run)


def datasheets(run: Path) -> None:
    """Two reference judges on the first tasks that come with the package."""
    tasks = run.parent / "tasks.toml"
    text = files("assaymark.judging.pairs").joinpath("finance.toml").read_text(encoding="utf-8")
    tasks.write_text("[[task]]".join(text.split("[[task]]")[:3]), encoding="utf-8")
    judges = ("--judge", "reference/checklist", "--judge", "reference/slot-biased")
    typed("datasheet", *judges, "--tasks", tasks, "--out", run)


def datasheet_of_a_log(run: Path) -> None:
    """A judge of whom there is only a log, with both orders and a reply that could not be read."""
    log = run.parent / "log.csv"
    lines = ["judge,question_id,slot1_model,slot2_model,verdict"]
    for at, (first, second) in enumerate(["12", "21", "11", ("1", "tie"), ("tie", "tie"), ("1", "invalid")]):
        lines += [f"north,q{at},a,b,{first}", f"north,q{at},b,a,{second}"]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    typed("datasheet", "--from", log, "--out", run)


def portbench(run: Path) -> None:
    """Questions and pipeline of two reference models, with the rationales graded by two judges."""
    questions, plan = run.parent / "questions.jsonl", run.parent / "plan.toml"
    counts = dict.fromkeys(("T1", "T2", "T3", "T4", "T5", "T6", "T7"), 10)
    question_set.write_questions(
        questions, question_set.generate_questions(synthetic_history(0), counts=counts).questions
    )
    judges = "".join(
        f'[[judges]]\nname = "{word}"\nfamily = "{word}"\nmodel = "reference/{word}"\n'
        for word in ("auditor", "reader")
    )
    plan.write_text(small_plan(questions, 2, "literal", "garbled") + judges, encoding="utf-8")
    typed("bench", "qa", plan, "--out", run)
    typed("bench", "pipeline", plan, "--out", run)


def season(site: Path) -> None:
    """Eleven days, two agents and two judges, in English and German."""
    source = stored(site.parent / "market", market())
    text = season_text(head=f"universe = {IDS}\nmarket = {{source = '{source}'}}")
    for name in ("auditor", "reader"):
        text += f'\n[[panel]]\nname = "{name}"\nfamily = "of-{name}"\nmodel = "reference/season-{name}"\ntrials = 2\n'
    plan, run = site.parent / "season.toml", site.parent / "season"
    plan.write_text(text, encoding="utf-8")
    typed("season", "init", plan, "--out", run)
    typed("season", "run", run)
    typed("season", "judge", run)
    typed("season", "publish", run, "--out", site)


def joined(site: Path, judges: Path, log: Path) -> None:
    """Judges and a log of verdicts as one site."""
    parts = [shutil.copytree(run, site.parent / name) for name, run in (("judges", judges), ("verdicts", log))]
    typed("report", *parts, "--out", site)


def made_studies(root: Path) -> None:
    """Every section of a study, one with next to nothing, one in which nothing may be said, one with its agents."""
    runs = {
        "full": full_runs.full(), "minimal": assay_runs.minimal(), "withheld": assay_runs.withheld(),
        "agents": test_agents_section.studied(planted=("alder",)),
    }  # fmt: skip
    for name, run in runs.items():
        write_pages(root / name, render_pages(replace(run, evidence=run.evidence[:300])))


def made_seasons(root: Path) -> None:
    """Claims of every level and state in two languages, one judge, and nine judges with long names of baselines."""
    many = made_season(1, 250, 9)
    lines = (replace(many.paths[-1], name=f"baseline of a long name {at}") for at in range(5))
    runs = {"eight": made_season(8, 4), "single": made_season(2, 3, 1)}
    runs["many"] = replace(many, paths=(*many.paths, *lines))
    for name, run in runs.items():
        languages = [made_catalogue(code) for code in (("en", "de") if name == "eight" else ("en",))]
        season_pages.write_site(replace(run, sheets={}), root / name, languages)


BUILT: Final[Mapping[str, Build]] = {
    "whole study": whole_study, "datasheets": datasheets, "datasheet of a log": datasheet_of_a_log,
    "portbench": portbench, "season": season, "made studies": made_studies,
    "made seasons": made_seasons,
    **{f"hostile {name}": partial(hostile_pages, payload=payload) for name, payload in PAYLOADS.items()},
}  # fmt: skip
"""The examples that are built in a folder of their own, by name; demo and real records come from fixtures."""

NAMES: Final = (
    "demo", *(name for name in BUILT if "hostile" not in name), "joined",
    pytest.param("capitalbench", marks=pytest.mark.shared),
)  # fmt: skip
