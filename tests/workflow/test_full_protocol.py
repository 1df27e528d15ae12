"""Control cells, the outside judge, the anchor probe and people as judges, from records to verdicts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from full_records import DIMENSIONS, grades, make, study
from made_records import STUDY
from repetitions import untraced

from assaymark import workflow
from assaymark.cli import main


@pytest.fixture(scope="module")
def full(own_copy) -> workflow.Store:
    """A finished run of the whole protocol, people among the judges. Not to be changed."""

    def build(folder: Path) -> None:
        run, _, plan = with_people(folder)
        assert main(["run", str(plan), "--out", str(run.path)]) == 0

    return workflow.Store(workflow.RunFolder(own_copy("full-protocol", build) / "run"))


def measured(store: workflow.Store, name: str):
    return [item for item in store.read(workflow.MEASUREMENTS) if item.name == name]


def test_control_cells_are_judged_and_gated_but_not_ranked(full):
    judged = {one.trajectory for one in full.read(workflow.JUDGMENTS)}
    assert sum("~" in name for name in judged) == 54
    agents = {item.labels["agent"] for item in measured(full, "score.effect")}
    assert agents == {"equal-weight", "minimum-variance", "momentum"}
    assert not any("~" in item.decision for item in full.read(workflow.EVIDENCE))
    assert {item.labels["cell"] for item in measured(full, "cell.gate")} == {"cell_a", "cell_b", "fact_flip"}
    verdicts = full.read(workflow.VERDICTS)
    claims = {one.claim.id for one in verdicts if one.claim.scope == "adversarial-cell"}
    assert claims == {"cell[cell=cell_a]", "cell[cell=cell_b]", "cell[cell=fact_flip]"}
    tested = {one.adversarial_status for one in verdicts if one.claim.scope == "aggregate-ranking"}
    assert tested <= {"passed", "construct-sensitive", "contaminated", "not tested"}


def test_people_are_one_more_family_under_the_same_gates(full):
    judgments = full.read(workflow.JUDGMENTS)
    people = [one for one in judgments if one.family == "human"]
    assert {one.judge for one in people} == {"committee-1", "committee-2"}
    dropped = {item.labels["dropped"] for item in measured(full, "lofo.rho")}
    assert dropped == {"auditor", "reader", "allocator", "human"}
    graded = Counter(one.trajectory for one in people)
    assert {one.trajectory for one in judgments} > {name for name, times in graded.items() if times == 2}
    (kappa,) = (item for item in measured(full, "kappa.mean_pairwise") if item.labels == {"dimension": "aggregate"})
    assert "committee-1|committee-2" not in kappa.detail["pairs"], "siblings' agreement is not the panel's"
    found = {item.labels["dimension"]: item for item in measured(full, "panel.effective_judges")}
    assert found["aggregate"].value > 1  # known scores give it where errors vary
    assert found["aggregate"].detail["judges"] == 5
    assert all(item.state == "ok" or item.state.startswith("undefined: judge") for item in found.values())


def test_the_anchor_probe_is_one_judge_on_its_own_sample(full):
    again = full.read(workflow.ANCHOR)
    assert {(one.judge, one.rubric) for one in again} == {("auditor", "v1.1")}
    assert len({one.trajectory for one in again}) == 24
    shifts = {item.labels["dimension"]: item for item in measured(full, "anchor.shift")}
    changed = {name: shifts[name].detail["changed"] for name in ("constraint_awareness", "position_sizing")}
    assert changed == {"constraint_awareness": True, "position_sizing": False}
    assert shifts["constraint_awareness"].n == 24


def test_the_outside_judge_was_asked_about_contested_pairs_only(full):
    (state,) = measured(full, "probe.state")
    assert state.state == "ok"
    assert state.value == len(state.detail["pairs"]) > 0
    pairs = {(a, frozenset((b, c))) for a, b, c in state.detail["pairs"]}
    contrasts = measured(full, "probe.contrast")
    assert {(i.labels["dimension"], frozenset((i.labels["high"], i.labels["low"]))) for i in contrasts} == pairs
    assert {one.judge for one in full.read(workflow.PROBE)} == {"outsider"}
    verdicts = full.read(workflow.VERDICTS)
    assert not any("no outside judge was asked" in reason for one in verdicts for reason in one.reasons)


def with_people(folder: Path) -> tuple[workflow.RunFolder, Path, Path]:
    """Records with the grades of people imported, their table and their study."""
    run, table = make(folder / "run"), grades(folder / "grades.csv")
    assert main(["import", "human", str(table), "--out", str(run.path)]) == 0
    return run, table, study(folder / "s.toml", people=True)


def test_one_verb_after_the_other_ends_in_the_same_bytes(full, tmp_path, ran):
    run, _, plan = with_people(tmp_path)
    ran("lock", plan, "--out", run.path)
    for verb in ("judge", "measure", "judge", "measure", "claim", "report"):
        assert untraced(lambda verb=verb: main([verb, str(run.path)])) == 0
    assert run.verdicts.read_bytes() == full.folder.verdicts.read_bytes()


def test_a_plan_that_names_what_is_not_there_or_contradicts_itself(imported, tmp_path, refused):
    path = study(tmp_path / "s.toml", people=True, extra='\n[contamination]\npost_cutoff = ["never"]\n')
    text = path.read_text()
    path.write_text(text.replace('"v1.1"', '"v9"').replace('"reference/skeptic"', '"reference/cynic"'))
    message = refused("run", path, "--out", imported)
    missing = "no record of the control cell cell_a was imported"
    for part in ("stability.probe.model", "anchor_probe.rubric", missing, "assaymark import human",
                 "contamination.post_cutoff", "'never'"):  # fmt: skip
        assert part in message
    text = study(path, people=True).read_text()
    for old, new, says in (
        ('family = "skeptic"', 'family = "reader"', "outside the panel's families (got reader)"),
        ('name = "outsider"', 'name = "reader"', "a unique name (got reader"),
        ('judge = "auditor"', 'judge = "nobody"', "must be a judge of the panel that is a model (got nobody)"),
        ('model = "human/table"', 'model = "reference/reader"', "a human grader has model 'human/table'"),
        ('"honest", "cell_a"', '"cell_a"', "must name honest"),
    ):
        assert old in text
        path.write_text(text.replace(old, new, 1))
        assert says in refused("run", path, "--out", imported)


HEAD = ",".join(("trajectory", "judge", *DIMENSIONS))
WRONG = [
    (["nobody,ann,3,3,3,3,3,3"], "line 2, trajectory: no such record among those that there are (got 'nobody')"),
    (["{id},ann,3,3,3,3,3,9"], "line 2, uncertainty_handling: must be a finite number from 1 to 5 (got '9')"),
    (["{id},ann,3,3,3,3,3,3", "{id},ann,4,3,3,3,3,3"], "'ann' graded '{id}' twice in trial 1"),
    (["{id},,3,3,3,3,3,3"], "line 2, judge: is empty"),
    (["{id},ann,,,,,,"], "holds no grade"),
    (["{id},ann,3,3,3,3,3,3"], "column 'style' is not a dimension"),
]


def test_a_wrong_table_of_grades_is_refused_and_half_a_grade_is_recorded_and_used_by_nobody(
    imported, tmp_path, refused, ran
):
    store, path = workflow.Store(workflow.RunFolder(imported)), tmp_path / "grades.csv"
    record = store.columns(workflow.DECISIONS, "record_id")[0]["record_id"]
    command = ["import", "human", path, "--out", imported]
    for lines, says in WRONG:
        head = HEAD.replace("risk_alignment", "style") if "style" in says else HEAD
        path.write_text("\n".join([head, *lines]).replace("{id}", record) + "\n")
        assert says.replace("{id}", record) in refused(*command)
        assert not (imported / "tables" / "human.parquet").exists()
    path.write_text(f"{HEAD}\n{record},ann,3,,3,3,3,3\n")
    ran(*command)
    (one,) = store.read(workflow.HUMAN)
    assert (one.status, one.scores, one.reason) == ("invalid", {}, "graded 5 of 6 dimensions")


def test_other_grades_after_the_lock_and_graders_who_are_not_in_the_plan_are_refused(tmp_path, run, refused, ran):
    mine, table, plan = with_people(tmp_path / "mine")
    ran("lock", plan, "--out", mine.path)
    other = grades(tmp_path / "b.csv", seed=2)
    assert "locked on other grades" in refused("import", "human", other, "--out", mine.path)
    ran("import", "human", table, "--out", mine.path)
    table.write_text(table.read_text() + table.read_text().splitlines()[1].replace(",committee-1,", ",zoe,") + "\n")
    says = "judge: unknown human grader of the plan 'zoe'"
    assert says in refused("import", "human", table, "--out", mine.path)
    # Where the grades came first, the plan is refused that would drop them.
    fresh = make(tmp_path / "fresh")
    ran("import", "human", table, "--out", fresh.path)
    err = refused("lock", plan, "--out", fresh.path)
    assert "grades of 'zoe' were imported, and no judge of the plan is that person" in err
    assert not fresh.lock.exists()
    # A plan without people takes no grades.
    record = workflow.Store(workflow.RunFolder(run)).columns(workflow.DECISIONS, "record_id")[0]["record_id"]
    table.write_text(f"{HEAD}\n{record},ann,3,3,3,3,3,3\n")
    says = "unknown human grader of the plan 'ann'. Known: none"
    assert says in refused("import", "human", table, "--out", run)


def amended(tmp_path, old="publish = 0.4 ", new="publish = 0.35 "):
    path = tmp_path / "amended.toml"
    assert old in STUDY.read_text()
    path.write_text(STUDY.read_text().replace(old, new, 1))
    return path


@pytest.fixture
def locked(imported):
    assert main(["lock", str(STUDY), "--out", str(imported)]) == 0
    return imported


def test_an_amendment_before_the_judging_is_dated_hashed_and_said_with_every_verdict(locked, tmp_path, ran):
    first, path = json.loads((locked / "study.lock").read_text())["plan_hash"], amended(tmp_path)
    reason = "the pilot showed coarse anchors"
    assert "gates.publish: 0.4 -> 0.35" in ran("amend", path, "--out", locked, "--reason", reason)
    made = json.loads((locked / "amendments" / "0001.json").read_text())
    assert (made["reason"], made["plan_before"]["hash"]) == (reason, first)
    assert made["plan_after"]["hash"] == json.loads((locked / "study.lock").read_text())["plan_hash"] != first
    ran("run", path, "--out", locked)
    file = json.loads((locked / "verdicts.json").read_text())
    assert file["amendments"][0]["fields"] == {"gates.publish": {"from": 0.4, "to": 0.35}}
    assert all(verdict["amended"] == ["gates.publish"] for verdict in file["verdicts"])
    assert all(any("gates.publish" in reason for reason in verdict["reasons"]) for verdict in file["verdicts"])


def test_once_a_judge_was_asked_only_what_no_verdict_rests_on_may_change(run, tmp_path, refused, ran):
    before = {path: path.read_bytes() for path in (run / "plan.toml", run / "study.lock", run / "verdicts.json")}
    path = amended(tmp_path, new="publish = 0.21 ")
    message = refused("amend", path, "--out", run, "--reason", "looks better")
    assert "the judging has begun, and gates.publish would be chosen with the result in sight" in message
    assert {path: path.read_bytes() for path in before} == before
    assert not (run / "amendments").exists()
    path = amended(tmp_path, 'title = "Three rule-based agents', 'title = "Three simple agents')
    ran("amend", path, "--out", run, "--reason", "clearer")
    assert untraced(lambda: main(["run", str(path), "--out", str(run)])) == 0
    file = json.loads((run / "verdicts.json").read_text())
    assert file["title"].startswith("Three simple agents")
    assert all(verdict["amended"] == [] for verdict in file["verdicts"])


def test_an_amendment_needs_a_reason_and_a_change_and_is_not_edited(locked, tmp_path, refused, ran):
    assert "needs a reason" in refused("amend", STUDY, "--out", locked, "--reason", "  ")
    assert "nothing to amend" in refused("amend", STUDY, "--out", locked, "--reason", "x")
    path = amended(tmp_path)
    ran("amend", path, "--out", locked, "--reason", "true reason")
    made = locked / "amendments" / "0001.json"
    made.write_text(made.read_text().replace("true reason", "other reason"))
    assert "0001.json was edited" in refused("run", path, "--out", locked)


def test_an_amendment_that_was_killed_half_way_can_be_made_again(locked, tmp_path, ran):
    lock, plan = (locked / "study.lock").read_bytes(), (locked / "plan.toml").read_bytes()
    again = ["amend", str(amended(tmp_path)), "--out", str(locked), "--reason", "coarse anchors"]
    ran(*again)
    for killed_after in ("plan", "file"):
        (locked / "study.lock").write_bytes(lock)
        if killed_after == "file":
            (locked / "plan.toml").write_bytes(plan)
        ran(*again)
        assert [one.name for one in (locked / "amendments").iterdir()] == ["0001.json"]
    assert main(["lock", str(tmp_path / "amended.toml"), "--out", str(locked)]) == 0  # the same plan
