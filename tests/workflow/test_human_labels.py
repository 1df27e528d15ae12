"""The draw of cycles for people to grade, and how it and the grades are stored."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assaymark import workflow
from assaymark.cli import main
from assaymark.engine import Ledger
from assaymark.errors import AssayError, InputError, LedgerError, PlanError
from assaymark.metrology import anchor_needed
from assaymark.records import AGGREGATE

AT = "2025-03-01T12:00:00Z"
CYCLES = {f"{cluster}/{k}": cluster for cluster, size in (("a", 3), ("b", 7), ("c", 5)) for k in range(size)}


def drawn(number: int = 6, seed: int = 1, **more: float) -> workflow.Draw:
    return workflow.draw_sample(CYCLES, number, seed=seed, agents_a_cycle=4, at=AT, **more)


def grade(trajectory: str = "a/0 north", at: str = "2025-03-02T09:00:00Z", **more: object) -> workflow.HumanGrade:
    known = {"trajectory": trajectory, "cycle": "a/0", "grader": "ab", "dimension": "risk", "score": 4.0, "at": at}
    return workflow.HumanGrade(**{**known, **more})  # type: ignore[arg-type]


def test_every_cycle_has_the_same_probability_and_every_cluster_its_share() -> None:
    draws = [drawn(seed=seed) for seed in range(3000)]
    times = Counter(name for one in draws for name in one.units)
    # 6 of 15: 0.4 with a standard error of 0.009
    assert all(abs(times[name] / 3000 - 0.4) < 0.036 for name in CYCLES)
    assert {round(one.pi[name], 12) for one in draws[:5] for name in CYCLES} == {0.4}
    shares = [Counter(CYCLES[name] for name in one.units) for one in draws]
    assert {(one["a"] in (1, 2), one["b"] in (2, 3), one["c"]) for one in shares} == {(True, True, 2)}
    firsts = Counter(one.units[0] for one in draws)
    assert all(abs(firsts[name] / 3000 - 1 / 15) < 0.02 for name in CYCLES)


def test_a_draw_is_recomputed_from_its_frame_and_seed() -> None:
    one = drawn()
    assert one.units == ("c/3", "b/3", "b/4", "c/2", "a/2", "b/5") == workflow.redraw(one)
    assert workflow.redraw(replace(one, seed=2)) != one.units
    assert drawn(15).units != tuple(sorted(CYCLES))
    assert sorted(drawn(15).units) == sorted(CYCLES)


@pytest.mark.parametrize(("number", "share", "twice"), [(15, 0.2, 5), (15, 0.5, 8), (3, 0.2, 3), (15, 0.0, 0)])
def test_enough_cycles_are_graded_twice(number: int, share: float, twice: int) -> None:
    one = drawn(number, twice=share)
    assert len(one.twice) == twice == len(set(one.twice) & set(one.units))


def test_what_cannot_be_drawn_is_said_at_once() -> None:
    with pytest.raises(InputError, match="3 problems") as caught:
        workflow.draw_sample(CYCLES, 16, seed=1, twice=1.5, agents_a_cycle=0, at=AT)
    assert "--sample: must be 1 to 15" in str(caught.value)


@pytest.mark.parametrize("ledger", [True, False])
def test_a_draw_and_grades_are_kept(tmp_path: Path, ledger: bool) -> None:
    folder = workflow.RunFolder(tmp_path)
    if ledger:
        Ledger.open(folder.ledger).close()
    assert workflow.stored_draw(folder) is None
    first = workflow.store_draw(folder, drawn())
    assert workflow.stored_draw(folder) == first == drawn()
    assert workflow.store_draw(folder, replace(drawn(), at="2025-03-05T12:00:00Z")).at == AT  # the same again
    other = workflow.store_draw(folder, drawn(seed=2))  # nothing was graded yet
    assert workflow.stored_draw(folder) == other != first
    given = [grade(score=None), grade(dimension="thesis", comment="odd", seconds=2.5)]
    assert workflow.store_grades(folder, given) == 2 == workflow.store_grades(folder, given)
    assert workflow.stored_grades(folder) == tuple(given)
    # the last by time counts, whatever the order in which they come
    assert workflow.store_grades(folder, [grade(score=2.0, at="2025-03-01T23:00:00+01:00"), grade("b/1 north")]) == 3
    assert workflow.stored_grades(folder)[0].score is None
    assert workflow.store_grades(folder, [grade(score=2.0, at="2025-03-02T12:00:00+02:00")]) == 3
    assert workflow.stored_grades(folder)[0].score == 2.0
    assert workflow.store_draw(folder, drawn(seed=2)) == other
    with pytest.raises(PlanError, match="a second draw would choose among labels"):
        workflow.store_draw(folder, drawn())
    with pytest.raises(InputError, match="a time with its zone"):
        workflow.store_grades(folder, [grade(at="2025-03-02 09:00")])


def test_an_edited_draw_is_refused(tmp_path: Path) -> None:
    folder = workflow.RunFolder(tmp_path)
    workflow.store_draw(folder, drawn())
    path = tmp_path / "draw.json"
    path.write_text(path.read_text().replace("b/3", "b/0"))
    with pytest.raises(LedgerError, match="damaged or was edited"):
        workflow.stored_draw(folder)
    path.write_text("[]")
    with pytest.raises(AssayError, match="damaged or was edited"):
        workflow.stored_draw(folder)
    with pytest.raises(InputError, match="no such run folder"):
        workflow.store_draw(workflow.RunFolder(tmp_path / "gone"), drawn())


# --- from a table to a verdict ----------------------------------------------------------------------------------------

JUDGES = ("gpt-4o", "claude-3", "gemini-pro")
ITEMS, SIZE, AGENTS = 60, 2, ("ash", "birch", "cedar")


def scores(
    path: Path, *, liking: float = 0.0, better: float = 0.0, grades: Collection[str] = (), **columns: Any
) -> Path:
    """A wide table: ``liking`` is what judges alone give ash; ``grades`` are the items that people graded."""
    chance = random.Random(4)
    rows = []
    for q in range(ITEMS):
        base = chance.gauss(3, 0.5)
        for agent in AGENTS:
            ash = agent == "ash"
            true = base + (better if ash else 0) + chance.gauss(0, 0.5)
            row: dict[str, Any] = {"item": f"q{q:02}", "agent": agent}
            for judge in JUDGES:
                row[judge] = min(5, max(1, round(true + (liking if ash else 0) + chance.gauss(0, 0.3))))
            for person in ("ab", "cd"):
                shown = f"q{q:02}" in grades
                row[f"human_{person}"] = min(5, max(1, round(true + chance.gauss(0, 0.3)))) if shown else None
            rows.append(row | {name: value(f"q{q:02}") for name, value in columns.items()})
    if not grades:
        rows = [{k: v for k, v in row.items() if not k.startswith("human_")} for row in rows]
    lines = (",".join("" if value is None else str(value) for value in row.values()) for row in rows)
    path.write_text("\n".join([",".join(rows[0]), *lines]))
    return path


def verdict(out: Path, claim: str = "above[dimension=aggregate,high=ash,low=birch]") -> dict[str, Any]:
    found = json.loads((out / "verdicts.json").read_text())
    return next(one for one in found["verdicts"] if one["claim"]["id"] == claim)


@pytest.fixture
def table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[Path, list[str]]]:
    def made(**world: float) -> tuple[Path, list[str]]:
        """A table, and the items that were drawn from it into the folder ``run``."""
        path = scores(tmp_path / "scores.csv", **world)
        assert main(["draw", str(path), "--sample", "30", "--out", str(tmp_path / "run"), "--json"]) == 0
        return path, json.loads(capsys.readouterr().out)["units"]

    return made


def test_people_in_columns_of_a_table_confirm_an_order(tmp_path: Path, table, ran) -> None:
    path, units = table(better=0.8)
    scores(path, better=0.8, grades=units)
    os.utime(path, (time.time() + 5,) * 2)
    said = ran("check", path, "--out", tmp_path / "run")
    one = verdict(tmp_path / "run")
    assert one["human_anchor"] == "confirms"
    assert "how the 2 human graders of this study would" in " ".join(said.split())
    assert one["publication_level"] == "qualified"
    page = " ".join(re.sub(r"<[^>]+>", " ", (tmp_path / "run/report/agreement.html").read_text()).split())
    assert re.search(
        r"Two people graded 30 of 30 drawn items\. Each judge agrees with them at κ 0\.\d\d to 0\.\d\d; two people "
        r"agree at 0\.77\. Of the rankings that the judges support they have 3 confirmed\.",
        page,
    )
    assert "Two people graded 30 of 30 drawn items. Each judge agrees with them" in " ".join(said.split())
    assert re.search(r"ash above birch on overall score \+0\.\d\d \+0\.\d\d \(0\.\d\d to 0\.\d\d\) birch by 0\.1", page)
    assert "two people 0.77 (0.68 to 0.86)" in page  # what a judge can reach, in the same table
    (certificate,) = (tmp_path / "run" / "certificates").glob("above-dimension-aggregate-high-ash-low-birch*")
    ran("claim", "--verify", certificate)
    assert "human graders of this study" in " ".join(
        ran("gate", tmp_path / "run", "--claim", "ash > birch", "--at-least", "qualified").split()
    )


def test_judges_that_favour_an_agent_are_contradicted_by_labels(tmp_path: Path, table, ran, capsys) -> None:
    path, units = table(liking=0.9)
    folder = workflow.RunFolder(tmp_path / "run")
    assert main(["check", str(path), "--out", str(folder.path)]) == 0
    assert verdict(folder.path)["publication_level"] == "qualified"
    truth = scores(tmp_path / "truth.csv", liking=0.9, grades=units).read_text().splitlines()
    people = [dict(zip(truth[0].split(","), line.split(","), strict=True)) for line in truth[1:]]
    lines = ["trajectory,grader,dimension,grade,time"]
    for row in people:
        for who in ("ab", "cd"):
            if row[f"human_{who}"]:
                grade = f"{row['item']} / {row['agent']},{who},aggregate,{row[f'human_{who}']}"
                lines.append(f"{grade},2031-01-01T12:00:00Z")
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join([*lines, "q99 / ash,ab,risk,9,noon"]))
    refused = ran("import", "human", labels, "--out", folder.path, status=1)
    assert all(word in refused for word in ("no such record", "unknown dimension 'risk'", "from 1 to 5", "noon"))
    assert not workflow.stored_grades(folder)
    labels.write_text("\n".join(lines))
    assert main(["import", "human", str(labels), "--out", str(folder.path)]) == 0
    assert main(["check", str(path), "--out", str(folder.path)]) == 0
    one = verdict(folder.path)
    said = one["human_anchor"], one["publication_level"], one["binding"]
    assert said == ("contradicts", "no-claim", ["human_anchor"])
    page = (folder.path / "report" / "agreement.html").read_text()
    assert "3 contradicted" in page
    assert "Supported rankings as people see them" not in page  # no number of what is not supported
    assert main(["gate", str(folder.path), "--claim", "ash > birch", "--at-least", "qualified"]) == 1
    assert "human graders" in " ".join(capsys.readouterr().out.split())
    assert "a second draw would choose among labels" in ran("draw", folder.path, "--seed", "7", status=1)


def test_grades_that_are_older_than_the_draw_anchor_nothing(tmp_path: Path, table, ran) -> None:
    path, units = table(better=0.8)
    scores(path, better=0.8, grades=units)
    os.utime(path, (1e9,) * 2)
    ran("check", path, "--out", tmp_path / "run")
    one = verdict(tmp_path / "run")
    assert one["human_anchor"] == "not-tested"
    assert any("(2001-09-09T01:46:40+00:00) is not later than the draw" in text for text in one["reasons"])


def test_grades_of_items_chosen_by_hand_anchor_nothing(tmp_path: Path, ran) -> None:
    path = scores(tmp_path / "scores.csv", better=0.8, grades=[f"q{q:02}" for q in range(40)])
    ran("check", path, "--out", tmp_path / "run")
    assert "not a random sample" in " ".join(verdict(tmp_path / "run")["reasons"])
    assert verdict(tmp_path / "run")["human_anchor"] == "not-tested"
    assert "a sample is drawn before the first grade" in ran("draw", path, "--out", tmp_path / "late", status=1)
    assert not (tmp_path / "late").exists()


def test_a_table_may_say_its_probabilities_and_who_fixed_them(tmp_path: Path, ran, capsys) -> None:
    drawn = [f"q{q:02}" for q in random.Random(1).sample(range(ITEMS), 30)]
    path = scores(tmp_path / "a.csv", better=0.8, grades=drawn, pi=lambda _: 0.5, pi_by=lambda _: "ab on 1 March")
    assert main(["check", str(path), "--out", str(tmp_path / "run")]) == 0
    assert verdict(tmp_path / "run")["human_anchor"] == "confirms"
    single = scores(tmp_path / "single.csv", better=0.8, grades=[f"q{q:02}" for q in range(ITEMS)], pi=lambda _: 0.5,
                    pi_by=lambda _: "ab on 1 March")  # fmt: skip
    head, *lines = single.read_text().splitlines()
    at, chance = head.split(",").index("human_ab"), random.Random(3)
    rows = [line.split(",") for line in lines]
    for row in chance.sample(rows, 90):  # half of the records, whatever their item
        row[at : at + 2] = "", ""
    single.write_text("\n".join([head, *(",".join(row) for row in rows)]))
    assert main(["check", str(single), "--out", str(tmp_path / "single")]) == 0
    assert verdict(tmp_path / "single")["human_anchor"] == "confirms"
    capsys.readouterr()
    scores(path, better=0.8, grades=drawn, pi=lambda name: 0 if name == "q03" else 0.5)
    said = ran("check", path, "--out", tmp_path / "other", status=1)
    assert "line 11, pi: every record needs its probability, above 0 to 1" in said
    assert "who fixed them" in said
    assert not (tmp_path / "other").exists()


def test_other_columns_of_people_are_named(tmp_path: Path, ran) -> None:
    path = scores(tmp_path / "a.csv", better=0.8, grades=["q01"])
    path.write_text(path.read_text().replace("human_", "expert_"))
    judges = ",".join(JUDGES)
    options = ["--judges", judges, "--human", "expert_ab,expert_cd", "--json", "--out", str(tmp_path / "run")]
    assert "people = expert_ab, expert_cd" in json.loads(ran("check", path, *options))["read"]["read"]
    assert "unknown column 'expert'" in ran("check", path, "--judges", judges, "--human", "expert", status=1)


# --- what labels are worth --------------------------------------------------------------------------------------------


def test_plan_calls_trades_labels_against_judges_trials_and_cycles(finished, ran) -> None:
    asked = ["plan-calls", str(finished), "--effect", "1", "--price", "call=.01"]
    found = json.loads(ran(*asked, "--price", "human=2", "--json"))
    best, agents = found["design"]["cheapest"], 3
    calls = best["G"] * best["C"] * best["J"] * best["T"]
    assert best["labelled"] >= 20
    assert best["cost"] == pytest.approx(agents * (0.01 * calls + 2 * best["labelled"]))
    assert found["options"] == []  # no budget, no simulated ways to spend it
    said = ran(*asked)
    assert "labelled cycles (assuming r = .6 with the judges)" in said or "No number of labels" in said
    assert "Assumed:" not in said
    said = ran("plan-calls", finished, "--effect", "9", "--price", "cal=1", status=1)
    assert "--effect: must be above 0 and at most 4 points (got 9)" in said
    assert "--price: must be record, call or human, from 0 (got cal=1)" in said
    assert "--budget or --effect is needed" in ran("plan-calls", finished, status=2)


def test_labelling_asks_for_the_labels_that_planning_finds(tmp_path, monkeypatch, ran) -> None:
    """Labels do not replace clusters: the spread between clusters does not depend on labels."""
    monkeypatch.chdir(tmp_path)
    path = scores(
        tmp_path / "a.csv", better=0.8, cluster=lambda name: f"c{int(name[1:]) // SIZE}", response="answer {}".format
    )
    ran("check", path, "--cluster", "cluster", "--quiet")
    margin, largest = json.loads(ran("label", path, "--file", "label.html", "--json"))["needed"]
    names, *rows = (line.split(",") for line in path.read_text().splitlines())
    panel = np.array([[float(row[names.index(judge)]) for judge in JUDGES] for row in rows]).mean(axis=1)
    gaps = panel.reshape(ITEMS, 3) @ [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]

    def least(effect: float, gap: np.ndarray) -> int | None:
        of_cluster = gap.reshape(-1, SIZE)
        between = max(0.0, of_cluster.mean(axis=1).var(ddof=1) - of_cluster.var(axis=1, ddof=1).mean() / SIZE)
        sd = (gap.var(ddof=1) - between) ** 0.5
        return anchor_needed(effect, sd, 0.6, ITEMS, ITEMS // SIZE, sd_cluster=between**0.5)

    needed = [least(margin["effect"], gap) for gap in gaps.T]
    assert margin["cycles"] == (None if None in needed else max(needed))
    assert largest["effect"] == pytest.approx(abs(gaps.mean(axis=0)).max())
    assert (largest["cycles"], largest["assumed"]) == (20, True)  # fewer are not tested


def test_a_study_reads_the_grades_that_people_gave_after_the_judging(demo, tasks, tmp_path, ran, capsys) -> None:
    """People who grade as one of the judges does: the file may come at any time after the draw, in Parquet too."""
    folder = workflow.RunFolder(tmp_path / "run")
    shutil.copytree(demo, folder.path)
    before = json.loads(folder.verdicts.read_text())
    units = set(json.loads(ran("draw", folder.path, "--sample", "30", "--json"))["units"])
    frame = workflow.frame_of(folder)
    judged = workflow.Store(folder).read(workflow.JUDGMENTS)
    given = {one.trajectory: one.scores for one in judged if one.judge == "auditor"}
    chance, rows = random.Random(2), []
    for name, (cycle, _) in frame.records.items():
        for who in ("ab", "cd") if cycle in units else ():
            for dimension in frame.dimensions:
                grade = min(5.0, max(1.0, round(given[name][dimension] + chance.choice((-0.4, 0, 0.4)))))
                when = datetime(2031, 1, 1, tzinfo=UTC)
                row = {"trajectory": name, "grader": who, "dimension": dimension, "grade": grade, "time": when}
                rows.append(row)
    pq.write_table(pa.Table.from_pylist(rows), folder.path / "grades.parquet")
    workflow.import_named_grades(
        folder, "grades.parquet", anchor=True
    )  # as measuring does with the plan's human.grades
    assert len(workflow.stored_grades(folder)) == len(rows)
    assert f"{len(rows)} grades by people" in ran(
        "import", "human", folder.path / "grades.parquet", "--out", folder.path
    )
    for verb in ("measure", "claim"):
        assert main([verb, str(folder.path)]) == 0
    after = json.loads(folder.verdicts.read_text())
    assert after["plan_hash"] == before["plan_hash"]
    states = Counter(one["human_anchor"] for one in after["verdicts"])
    assert states["confirms"] > 0
    capsys.readouterr()
    confirmed = next(one for one in after["verdicts"] if one["human_anchor"] == "confirms")
    assert "how the 2 human graders of this study would" in confirmed["condition"]
    certificates = [str(path) for path in sorted(folder.certificates.glob("*.json"))[::4]]
    assert main(["claim", "--verify", *certificates]) == 0
    ran("verify", folder.path)
    sheets = {
        one["judge"]: one
        for one in json.loads(ran("datasheet", "--run", folder.path, "--tasks", tasks, "--json"))["datasheets"]
    }
    kappas = {}
    del sheets["outsider"]  # the held-out judge scored none of these
    for judge, sheet in sheets.items():
        measured = sheet["measurements"]
        found = {one["name"]: one["value"] for one in measured if one["labels"] == {"dimension": AGGREGATE}}
        assert found["human.ceiling"] > 0.8
        kappas[judge] = found["human.kappa"]
    assert max(kappas, key=kappas.__getitem__) == "auditor"
    assert "Does it grade as people do?" in (folder.report / "datasheet" / "auditor.html").read_text()
    assert workflow.Store(folder).rows(workflow.MEASUREMENTS) > 500  # those of the run stay
