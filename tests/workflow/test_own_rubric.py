"""A rubric of one's own, on its own scale, from its file to the pages and certificates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assaymark.benchmark import parse_plan
from assaymark.cli import main
from assaymark.judging import find_rubric
from assaymark.protocol import parse_study
from assaymark.workflow import JUDGMENTS, MEASUREMENTS, RunFolder, Store, bench_text, tracks

RUBRIC = """
version = "house-2"
title = "How we grade here"
scale = [0, 100]
instructions = "It's the argument that counts."

[[dimension]]
name = "risk_alignment"
title = "Risks named"
question = "Are the risks that are taken named?"
weight = 3
anchors = { 0 = "None is named.", 50 = "The main one is named.", 100 = "All are named with their size." }

[[dimension]]
name = "information_use"
question = "Is the material used?"
weight = 1
anchors = { 0 = "It is ignored.", 100 = "All that matters is used." }
"""
STUDY = """
name = "small"
seed = 5
rubric.file = "house.toml"
substrate = { seed = 3, regimes = ["liquidity", "expansion", "recent"], cycles = 4 }
controls = { cell_a = 3, cell_b = 3, family = "alder", style = "alder" }
records = { derivations = ["honest", "cell_a", "cell_b"] }
inference = { allow_hopeless = true }
agents = [
  { name = "one", family = "alder", model = "reference/steward", args = { style = "alder" } },
  { name = "two", family = "dogwood", model = "reference/equal-weight" },
]
judges = [
  { name = "auditor", family = "alder", model = "reference/auditor" },
  { name = "reader", family = "birch", model = "reference/reader" },
]
"""


def written(folder: Path, study: str = STUDY, rubric: str = RUBRIC) -> str:
    (folder / "house.toml").write_text(rubric, encoding="utf-8")
    (folder / "study.toml").write_text(study, encoding="utf-8")
    return str(folder / "study.toml")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own-rubric")
    assert main(["--quiet", "run", written(folder), "--out", str(folder / "run")]) == 0
    return RunFolder(folder / "run")


def test_the_plan_of_a_run_holds_the_rubric_and_judges_grade_on_its_scale(run):
    plan = parse_study(run.plan.read_text(encoding="utf-8"))
    assert plan.rubric.text.strip() == RUBRIC.strip()
    assert (plan.rubric.name, plan.scale, plan.cells.substance) == ("house-2", (0, 100), 7.5)
    assert plan.rubric.weights == {"risk_alignment": 3, "information_use": 1}
    judgments = Store(run).read(JUDGMENTS)
    given = [value for one in judgments for value in one.scores.values()]
    assert {one.rubric for one in judgments} == {"house-2"}
    assert max(given) > 30
    assert len(set(given)) > 11
    found = {item.id: item for item in Store(run).read(MEASUREMENTS)}
    assert "intraclass" in found["kappa.mean_pairwise[dimension=aggregate]"].method


def test_pages_and_certificates_speak_of_it(run, ran):
    whole = " ".join(path.read_text(encoding="utf-8") for path in (run.path / "report").glob("*.html"))
    for said in ("All are named with their size.", "It’s the argument", "Risks named", "0 to 100", "ICC"):
        assert said in whole or said.replace("’", "&#39;") in whole, said
    assert [said for said in (", 1 to 5", "from 1 to 5", "pairwise κ") if said in whole] == []
    certificates = map(str, sorted((run.path / "certificates").iterdir()))
    ran("claim", "--verify", *certificates)


def test_another_rubric_is_another_plan_and_one_that_does_not_fit_is_refused(run, tmp_path, ran):
    changed = written(tmp_path, rubric=RUBRIC.replace("None is named.", "Not one is named."))
    assert "differs from the plan locked" in ran("lock", changed, "--out", run.path, status=1)
    file = 'rubric.file = "house.toml"'
    for study, rubric, said in (
        (STUDY, RUBRIC.replace("information_use", "charm"), "has a view of the shipped dimensions alone"),
        (STUDY.replace("house.toml", "elsewhere.toml"), RUBRIC, "elsewhere.toml"),
        (STUDY.replace(file, f'{file}\nrubric.scale = [1, 5]\nrubric.name = "house-2"'), RUBRIC, "is graded on 0..100"),
        (STUDY, RUBRIC.replace('100 = "All that', '99 = "All that'), "both ends of the scale, 0 and 100"),
    ):
        assert said in ran("lock", written(tmp_path, study, rubric), "--out", tmp_path / "run", status=1)
        assert not (tmp_path / "run").exists()


def test_people_grade_on_its_scale_and_datasheets_too(run, tmp_path, ran):
    (record,) = [one.trajectory for one in Store(run).read(JUDGMENTS)][:1]
    grades = tmp_path / "grades.csv"
    grades.write_text(f"trajectory,judge,risk_alignment,information_use\n{record},ada,73,101\n", encoding="utf-8")
    house = str(run.path.parent / "house.toml")
    assert "from 0 to 100 (got '101')" in ran("import", "human", grades, "--out", run.path, "--rubric", house, status=1)
    asked = ["datasheet", "--judge", "reference/auditor", "--pointwise", "--rubric", house, "--json"]
    (sheet,) = json.loads(ran("--quiet", *asked, "--out", tmp_path / "sheet"))["datasheets"]
    empty = [one for one in sheet["measurements"] if one["name"] == "point.vacuum_score"]
    assert {one["labels"]["dimension"] for one in empty} == {"aggregate", "risk_alignment", "information_use"}
    assert max(one["value"] for one in empty) > 5


def test_the_panel_of_a_benchmark_grades_by_it_too(tmp_path):
    (tmp_path / "house.toml").write_text(RUBRIC, encoding="utf-8")
    plan = tmp_path / "bench.toml"
    who = '[[models]]\nname = "m"\nmodel = "reference/equal-weight"\nfamily = "m"\n[[judges]]\nname = "reader"\n'
    head = 'name = "b"\nseed = 1\nrubric = "house.toml"\n'
    plan.write_text(f'{head}{who}model = "reference/reader"\nfamily = "birch"\n', encoding="utf-8")
    bench = parse_plan(bench_text(plan))
    panel = parse_study(tracks.rationale_study(bench))
    assert (panel.rubric.text, panel.scale, panel.rubric.name) == (RUBRIC, (0, 100), "house-2")
    assert find_rubric(bench.rubric).names == ("risk_alignment", "information_use")
