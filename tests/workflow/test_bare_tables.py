"""A table of scores made elsewhere, from the file to verdicts, and every way in which it can fall short."""

# ruff: noqa: I001

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from assaymark.engine import Ledger, map_chunks
from assaymark.errors import InputError, PlanError, UnknownNameError
from assaymark.metrology import alpha_report, icc
from assaymark.protocol import Study, parse_study, plan_hash
from assaymark.records import Measurement
from assaymark.workflow import (
    MEASUREMENTS, Checked, Computing, RunFolder, Store, computing_of, default_study, study_toml,
)  # fmt: skip
from assaymark.workflow import score_files as bare_tables

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "verdicts.schema.json").read_text())
PANEL = {"auditor": "north", "reader": "south", "skeptic": "east"}
EFFECTS = {"ash": 0.9, "birch": 0.3, "cedar": 0.0}
AGGREGATE_KAPPA = "kappa.mean_pairwise[dimension=aggregate]"
LEADER, PAIR = (f"contrast[dimension=aggregate,high=ash,low={low}]" for low in ("cedar", "birch"))
measure_table = partial(bare_tables.measure_table, dimensions=("clarity", "risk"))


def make_rows(
    *, judges: Mapping[str, str] = PANEL, clusters: int = 6, cycles: int = 10, seed: int = 1, **columns: Any
) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    rows = []
    for cycle in range(clusters * cycles):
        base = 2.7 + rng.normal(0, 0.5)
        for k, (agent, effect) in enumerate(EFFECTS.items()):
            true = base + effect + rng.normal(0, 0.5, 2)
            for judge, family in judges.items():
                clarity, risk = np.clip(np.floor(true + rng.normal(0, 0.4, 2) + 0.5), 1, 5).astype(int).tolist()
                row = {"trajectory": 3 * cycle + k, "agent": agent, "cluster": f"week{cycle // cycles}", "judge": judge,
                       "family": family, "trial": 1, "cycle": cycle, "clarity": clarity, "risk": risk}  # fmt: skip
                rows.append(row | columns)
    return rows


def cells(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Control cells: verbose and wrong, terse and right, and a paraphrase of every third honest record."""
    found = [{**row, "derivation": "honest", "parent": None} for row in rows]
    for row in rows:
        name = f"{row['trajectory']}"
        if row["cycle"] % 3 == 0:
            found.append({**row, "trajectory": f"{name}p", "derivation": "paraphrase", "parent": name})
        if row["agent"] == "ash":
            low = {"clarity": 1, "risk": 1 + row["cycle"] % 3}
            found.append({**row, "trajectory": f"{name}a", "derivation": "cell_a", "parent": None, **low})
            found.append({**row, "trajectory": f"{name}b", "derivation": "cell_b", "parent": None})
    return [{**row, "trajectory": str(row["trajectory"])} for row in found]


def written(folder: Path, rows: list[dict[str, Any]], name: str = "scores.csv") -> Path:
    path, table = folder / name, pa.Table.from_pylist(rows)
    if name.endswith(".csv"):
        pacsv.write_csv(table, path)
    else:
        pq.write_table(table, path, row_group_size=100)
    return path


def study_of(judges: Mapping[str, str] = PANEL, extra: str = "") -> Study:
    listed = "".join(f'[[judges]]\nname = "{n}"\nmodel = "elsewhere/{n}"\nfamily = "{f}"\n' for n, f in judges.items())
    return parse_study(f'name = "mine"\nseed = 3\n{extra}\n{listed}')


@pytest.fixture
def measured(tmp_path) -> Callable[..., Checked]:
    """``measured(rows, study)``: what is found in a file of these rows."""

    def made(rows=None, study: Study | None = None, name: str = "scores.csv") -> Checked:
        return measure_table(written(tmp_path, make_rows() if rows is None else rows, name), study)

    return made


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Checked:
    """The table measured without a plan."""
    return measure_table(written(tmp_path_factory.mktemp("plain"), make_rows()))


def index(found: Checked) -> dict[str, Measurement]:
    return {item.id: item for item in found.measurements}


def levels(found: Checked) -> dict[str, str]:
    return {verdict.claim.id: verdict.publication_level for verdict in found.verdicts}


def bare(rows: list[dict[str, Any]], column: str = "cycle") -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != column} for row in rows]


def test_a_csv_is_measured_and_decided_and_the_lines_say_what_stands(plain):
    known = index(plain)
    assert known[LEADER].value == pytest.approx(0.9, abs=0.25)
    assert known[AGGREGATE_KAPPA].value > 0.4
    assert len(known) == len(plain.measurements)
    size = plain.read
    assert (size.answers, size.agents, size.clusters, size.judges) == (180, 3, 6, 3)
    best = [v for v in plain.verdicts if v.claim.subjects[0] == "ash" and v.claim.dimension == "aggregate"]
    assert {verdict.stability_status for verdict in best if verdict.claim.asserts_order} == {"stable"}
    assert {one.id for one in best[0].conditions} == {"controls", "not-preregistered", "families-unknown"}
    assert {verdict.adversarial_status for verdict in plain.verdicts} == {"not tested"}
    assert plain.study == default_study(dict(sorted(PANEL.items())))


def test_what_is_written_is_the_same_each_time_and_never_over_a_locked_run(tmp_path):
    path, out = written(tmp_path, make_rows()), tmp_path / "out"
    found = measure_table(path, None, out)
    first = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert sorted(first) == [
        "SHA256SUMS", "plan.toml", "tables/manifest.json", "tables/measurements.parquet", "verdicts.json",
    ]  # fmt: skip
    assert Store(RunFolder(out)).read(MEASUREMENTS) == sorted(found.measurements, key=lambda item: item.id)
    assert parse_study((out / "plan.toml").read_text()) == found.study
    verdicts = json.loads(first["verdicts.json"])
    jsonschema.validate(verdicts, SCHEMA)
    rests = {name for verdict in verdicts["verdicts"] for name in verdict["measurements"]}
    supported = {name for v in found.verdicts if v.publication_level != "no-claim" for name in v.measurements}
    gaps = {name for name in rests if "high" in index(found)[name].labels}
    assert gaps - supported
    assert set(verdicts["measurements"]) == rests - (gaps - supported), "no gap of an unsupported pair"
    head = ("assaymark verdicts 2", False, found.plan_hash)
    assert (verdicts["format"], verdicts["preregistered"], verdicts["plan_hash"]) == head
    measure_table(path, None, RunFolder(out))
    assert all((out / p).read_bytes() == raw for p, raw in first.items() if p != "tables/manifest.json")
    (out / "study.lock").write_text("{}")
    with pytest.raises(PlanError, match="is the folder of a run"):
        measure_table(path, None, out)


def test_the_plan_hash_follows_plan_and_scores(measured):
    one = measured(None, study_of())
    assert one.plan_hash == measured(None, study_of()).plan_hash
    assert one.plan_hash == plan_hash(study_of(), {}, {"scores": one.measurements[0].inputs})
    others = measured(None, study_of(extra="[gates]\npublish = 0.5")), measured(make_rows(seed=2), study_of())
    assert one.plan_hash not in {other.plan_hash for other in others}


def test_control_cells_are_measured_unless_the_plan_leaves_them_out(measured):
    found = measured(cells(make_rows()))
    known = index(found)
    assert found.study.cells_judged == ("cell_a", "cell_b", "paraphrase")
    assert known["cell.gate[cell=cell_a]"].detail["outcome"] == "passed"
    assert known["cell.gate[cell=paraphrase]"].value == 0
    assert known["cell.gate[cell=paraphrase]"].n > 0
    assert found.read.answers == 180
    assert {verdict.adversarial_status for verdict in found.verdicts} != {"not tested"}
    found = measured(cells(make_rows()), study_of())
    assert not any(item.name.startswith("cell.") for item in found.measurements)
    assert "rows that the plan does not name are left out: cell_a, cell_b, paraphrase" in found.read.left
    with pytest.raises(PlanError, match=r"cells that the table lacks \(red_team\)"):
        measured(cells(make_rows()), study_of(extra='[records]\nderivations = ["honest", "red_team"]'))


def test_lengths_clusters_after_the_cutoff_and_a_choice_of_agents_are_looked_at(measured):
    rows = [{**row, "length": 40 + row["trajectory"] % 50, "cluster": row["cluster"].replace("week2", "²")}
            for row in make_rows()]  # fmt: skip
    known = index(measured(rows))
    for name in ("terse.share[agent=ash]", "score.length_correlation[dimension=aggregate]", LEADER):
        assert known[name].state == "ok"
    known = index(measured(None, study_of(extra='[contamination]\npost_cutoff = ["week5"]')))
    item = known["contamination.gap[dimension=aggregate,split=all]"]
    assert (item.state, item.detail["n_post"], item.detail["n_earlier"]) == ("ok", 30, 150)
    found = measured(None, study_of(extra='[records]\nagents = ["ash", "cedar"]'))
    assert {name for verdict in found.verdicts for name in verdict.claim.subjects} <= {"ash", "cedar", "honest"}
    assert found.read.agents == 2


def test_a_plan_about_something_else_is_refused(measured):
    for study, message in (
        (study_of({"auditor": "north", "reader": "south"}), "judge skeptic is in the table and not in the plan"),
        (study_of({**PANEL, "clerk": "west"}), "judge clerk is in the plan and not in the table"),
        (study_of({**PANEL, "reader": "west"}), "judge reader has family west in the plan and south in the table"),
        (study_of(extra='[claims]\ndimensions = ["tone"]'), "claims.dimensions names tone"),
        (study_of(extra='[records]\nagents = ["oak"]'), r"agents that the table lacks \(oak\)"),
    ):
        with pytest.raises(PlanError, match=message):
            measured(None, study)


def test_weights_of_the_plan(tmp_path, measured):
    path = written(tmp_path, make_rows())
    known = index(bare_tables.measure_table(path, study_of(extra="[rubric.weights]\nclarity = 1\nrisk = 0")))
    assert known[LEADER].value == known[LEADER.replace("aggregate", "clarity")].value
    with pytest.raises(InputError, match="no weight for dimension 'risk'"):
        measured(None, study_of(extra="[rubric.weights]\nclarity = 1"))
    with pytest.raises(InputError, match=r"tone: the table has no such column .* it has clarity, risk\)"):
        bare_tables.measure_table(path, study_of(extra="[rubric.weights]\nclarity = 1\ntone = 1"))


def test_who_ranks_first_is_the_top_set_where_pairs_are_not_claimed(tmp_path):
    measure_table(written(tmp_path, make_rows()), study_of(extra="[claims]\npairs = false\n"), tmp_path / "out")
    stored = json.loads((tmp_path / "out" / "verdicts.json").read_text())
    said = {one["claim"]["id"]: one["publication_level"] for one in stored["verdicts"]}
    assert said["first[agent=ash,dimension=aggregate]"] == "qualified"
    assert {name: stored[name]["aggregate"] for name in ("top_set", "ranks", "tiers")} == {
        "top_set": ["ash"], "ranks": {"ash": [1, 1], "birch": [2, 3], "cedar": [2, 3]},
        "tiers": [["ash"], ["birch", "cedar"]],
    }  # fmt: skip


def test_a_single_dimension_is_tested_at_the_level_of_the_aggregate(tmp_path):
    rows = [row for row in make_rows() if row["agent"] != "ash"]
    found = bare_tables.measure_table(written(tmp_path, rows), dimensions=("risk",))
    reasons = [reason for one in found.verdicts for reason in one.reasons if reason.endswith("needed.")]
    assert any(one.claim.id == "first[agent=cedar,dimension=risk]" for one in found.verdicts)
    assert all(".05 needed." in reason or ".05 needed)" in reason for reason in reasons)


def test_alpha_names_the_judge_that_pulls_the_panel_down(measured):
    rng = np.random.default_rng(3)
    rows = [{**row, "risk": int(rng.integers(1, 6))} if row["judge"] == "skeptic" else row for row in make_rows()]
    rows = [row for row in rows if row["judge"] != "reader" or row["cycle"] % 7]  # a design that is not complete
    item = index(measured(rows))["panel.alpha[dimension=risk]"]
    table = {(r["trajectory"], r["judge"]): r["risk"] for r in rows}
    texts = sorted({key for key, _ in table})
    grades = np.array([[table.get((key, judge), np.nan) for judge in PANEL] for key in texts], dtype=float)
    expected = alpha_report(grades, [key // 30 for key in texts])
    wanted = (expected.alpha.estimate, expected.alpha.low, expected.alpha.high, 180)
    assert (item.value, item.low, item.high, item.n) == pytest.approx(wanted)
    pulls = {name: rest["pulls_down"] for name, rest in item.detail["without"].items()}
    assert pulls == {"auditor": False, "reader": False, "skeptic": True}
    assert item.detail["without"]["skeptic"]["alpha"] == pytest.approx(expected.without[2].alpha)
    whole = grades[~np.isnan(grades).any(axis=1)]
    assert item.detail["icc"]["icc_ak"] == pytest.approx(icc(whole).icc_ak)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Scores made of known components, on two dimensions of which one is half the other; some records are missing."""
    rng, (clusters, cycles, agents) = np.random.default_rng(4), (40, 6, 5)

    def part(variance: float, *shape: int) -> Any:
        return rng.normal(0, np.sqrt(variance), shape)

    code = np.repeat(np.arange(clusters), cycles)
    risk = (
        np.linspace(-0.4, 0.4, agents)[:, None]
        + part(0.02, clusters, agents, 1)[code]
        + part(0.08, code.size, agents, 1)
        + np.linspace(-0.3, 0.3, agents)[:, None] * [1, -1, 0]  # each judge likes agents of its own
        + part(0.03, clusters, agents, 3)[code]
        + part(0.1, code.size, agents, 3)
        + part(0.1, code.size, 1, 1)  # cycles, and what a judge gives a cycle: no part of a contrast
        + part(0.05, code.size, 1, 3)
    )
    clarity = 0.5 * risk + part(0.1, *risk.shape)
    rows = [
        {"trajectory": f"{c}.{k}", "agent": f"a{k}", "cluster": f"w{code[c]}", "judge": judge, "family": family,
         "trial": 1, "cycle": c, "clarity": 3 + float(clarity[c, k, j]) / 2, "risk": 3 + float(risk[c, k, j]) / 2}
        for c in range(code.size) for k in range(agents) for j, (judge, family) in enumerate(PANEL.items())
        if (c + 2 * k) % 9
    ]  # fmt: skip
    table = measure_table(written(tmp_path_factory.mktemp("planted"), rows))
    there = np.array([[(c + 2 * k) % 9 > 0 for k in range(agents)] for c in range(code.size)])
    return index(table), np.stack([clarity, risk], axis=-1)[there], np.repeat(code[:, None], agents, axis=1)[there]


def test_variance_components_are_those_that_were_planted(planted):
    found, *_ = planted
    liking = np.var(np.linspace(-0.3, 0.3, 5), ddof=1)  # times the variance of 1, -1, 0 between judges, which is 1
    agent = 0.1 - liking / 3  # likings that cancel in the panel's mean are not in it; of random judges they would be
    wanted = {"agent": agent, "agent x cluster": 0.02, "agent x cycle": 0.08, "judge x agent": liking,
              "judge x agent x cluster": 0.03, "disagreement": 0.1}  # fmt: skip
    values = {part: 4 * found[f"panel.variance[dimension=risk,part={part}]"].value for part in wanted}
    assert values == pytest.approx(wanted, rel=0.2)
    item, cycles = found["panel.generalizability[dimension=risk]"], 6 * (8 / 9) ** 2
    error = (0.02 + 0.08 / cycles) / 40 + liking / 3 + (0.03 + 0.1 / cycles) / 120
    assert 4 * item.detail["error"] == pytest.approx(error, rel=0.25)
    assert item.value == pytest.approx(agent / (agent + error), abs=0.03)
    assert (item.state, item.n, item.n_of) == ("ok", 40, "clusters")


def test_the_matrix_of_judges_and_dimensions_is_that_of_the_scores(planted):
    found, scores, code = planted
    for week in range(40):
        scores[code == week] -= scores[code == week].mean(axis=0)
    matrix = np.corrcoef(scores.reshape(len(scores), 6).T).reshape(3, 2, 3, 2)
    item, judges = found["dimension.mtmm[dimension=risk]"], list(PANEL)
    for j, k in np.ndindex(3, 3):
        row = item.detail["matrix"][judges[j]][judges[k]]
        assert (row["clarity"], row["risk"]) == pytest.approx(tuple(matrix[j, 1, k]))
    others = ~np.eye(3, dtype=bool)
    same, cross = matrix[:, 1, :, 1][others].mean(), matrix[:, 1, :, 0]
    assert (item.value, item.detail["other_judges"], item.detail["same_judge"], item.n) == pytest.approx(
        (same, cross[others].mean(), cross[~others].mean(), len(scores))
    )


def test_judges_of_one_family_are_not_asked_whether_they_tell_dimensions_apart_and_claim_nothing(measured):
    table = measured(make_rows(judges=dict.fromkeys(PANEL, "north")))
    rows = [item for item in table.measurements if item.name in BY_ROWS and item.labels["dimension"] == "risk"]
    assert len(rows) == 10
    assert {(item.value, item.state) for item in rows} == {(None, "not measurable: one judge family, needs two")}
    assert set(levels(table).values()) == {"no-claim"}


def test_a_study_survives_its_file_and_people_are_judges_of_their_own_family():
    for extra in (
        "", 'title = "a \\"b\\" \\u007f é"\n[claims]\ndimensions = ["aggregate"]\nwithin = false',
        '[rubric.weights]\n"a b" = 1.5\nrisk = 2\n[stability.probe]\nname = "p"\nmodel = "x/p"\nfamily = "w"',
        '[contamination]\npost_cutoff = ["w1", "w2"]\n[records]\nderivations = ["honest", "cell_a"]',
    ):  # fmt: skip
        assert parse_study(study_toml(study_of(extra=extra))) == study_of(extra=extra)
    families = {"anna": "human", "reader": "south"}
    assert [judge.model for judge in default_study(families).judges] == ["human/table", "elsewhere/reader"]


def test_without_cycles_the_words_say_so(measured):
    found = measured(bare(make_rows()))
    item = index(found)[LEADER]
    assert (item.n, item.n_of) == (6, "common clusters")
    assert "compared by their means in each cluster" in item.method
    assert "no column cycle: agents are compared by their means in each cluster" in found.read.filled
    assert not [m.id for m in found.measurements if "cycle" in m.n_of]


def test_a_judge_that_leaves_out_weak_records_moves_nothing_without_cycles_either(measured):
    """Its severity is fitted by record: a mean over its grades in a cluster covers the better records only."""
    rows = [row for row in make_rows() if row["judge"] != "reader" or row["agent"] != "ash" or row["clarity"] > 3]
    paired, found = index(measured(rows)), index(measured(bare(rows)))
    assert found["panel.families[]"].detail["missing"] is True
    for name in [name for name in paired if name.startswith(("contrast[", "lofo.contrast["))]:
        assert found[name].value == pytest.approx(paired[name].value, abs=1e-9)
        assert found[name].detail["p"] == pytest.approx(paired[name].detail["p"], rel=1e-7)


def fixed(*judges: str) -> list[dict[str, Any]]:
    return [{**row, "clarity": 4, "risk": 4} if row["judge"] in judges else row for row in make_rows()]


NO_RHO, ONE_FAMILY = "lofo.rho[dimension=risk,dropped=north]", "not measurable: one judge family"
SHORT = {
    "one family": (make_rows(judges=dict.fromkeys(PANEL, "north")),
                   {AGGREGATE_KAPPA: ONE_FAMILY, NO_RHO: "not measurable"}),
    "one judge": (make_rows(judges={"auditor": "north"}), {AGGREGATE_KAPPA: ONE_FAMILY}),
    "every judge with one category": (fixed(*PANEL), {
        AGGREGATE_KAPPA: "undefined: both judges gave one rating", NO_RHO: "undefined: all 3 agents are tied",
        "kappa.fleiss[dimension=risk]": "undefined: all 540 ratings are the same"}),
    "one judge with one category": (
        fixed("reader"), {"redundancy[dimension=risk]": "undefined: judge 2 gave a single score"}),
    "one agent": ([row for row in make_rows() if row["agent"] == "ash"], {NO_RHO: "undefined: one agent"}),
    "agents that never meet": ([row for row in make_rows() if (row["agent"] == "ash") == (row["cycle"] % 2 == 0)], {
        PAIR: "cannot be tested (0 common clusters; 3 are needed, 5 or more to have a chance)",
        "score.effect[agent=ash,dimension=risk]": "disconnected",
        "lofo.contrast[dimension=risk,dropped=east,high=ash,low=birch]": "never compared"}),
    "no trajectory with every judge": (
        [row for row in make_rows() if (row["judge"] == "skeptic") == (row["cycle"] % 2 == 0)],
        {AGGREGATE_KAPPA: "not measurable: no trajectory has a usable score from every judge"}),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "states"), SHORT.values(), ids=SHORT)
def test_what_cannot_be_measured_has_a_state(measured, rows, states):
    found = measured(rows)
    known = index(found)
    for name, state in states.items():
        assert (known[name].value, known[name].state[: len(state)]) == (None, state), name
    for item in found.measurements:
        assert (item.value is None) == (item.state != "ok"), item.id
        assert all(one is None or np.isfinite(one) for one in (item.value, item.low, item.high)), item.id
    assert "headline" not in levels(found).values()


def test_one_cluster_has_a_gap_and_no_test(measured):
    known = index(measured(make_rows(clusters=1)))
    item = known[LEADER]
    assert (item.value, item.low, item.high, item.detail["p"]) == (None, None, None, 1.0)
    assert item.state == "cannot be tested (1 common cluster; 3 are needed, 5 or more to have a chance)"
    assert item.detail["gap"] > 0.5
    assert known[AGGREGATE_KAPPA].method.endswith("no interval: one cluster, needs two")


def test_missing_cells_are_left_out_and_counted(measured, tmp_path):
    rows = make_rows()
    rows[0]["clarity"] = None
    del rows[7]
    found = measured(rows)
    assert found.read.answers == 178
    assert "2 trajectories lack a usable score from some judge: agreement is measured without them" in found.read.left
    assert index(found)["judge.invalid_share[judge=auditor]"].detail["invalid"] == 1
    head, first, *rest = written(tmp_path, make_rows()).read_text().splitlines()
    for value in ("nan", ""):
        (tmp_path / "nan.csv").write_text("\n".join([head, first.rsplit(",", 1)[0] + f",{value}", *rest]) + "\n")
        found = measure_table(tmp_path / "nan.csv")
        assert (
            "1 trajectory lacks a usable score from some judge: agreement is measured without them" in found.read.left
        )


BY_ROWS = ("dimension.distinct", "dimension.mtmm", "panel.alpha", "panel.variance", "panel.generalizability")
IN_PARTS = "not measurable: the table was read in parts, of which only sums were kept"


@pytest.fixture
def large(monkeypatch):
    """Every Parquet file counts as large."""
    monkeypatch.setattr(bare_tables, "STREAMED_FROM", 1)


def size_of(found: Checked) -> tuple[int, ...]:
    return found.read.answers, found.read.agents, found.read.clusters, found.read.judges, len(found.read.dimensions)


def agree(one: Checked, other: Checked) -> None:
    """Assert equal numbers and verdicts, except where the sums of a table lack something, which caps claims."""
    ours, theirs = index(one), index(other)
    summed = ours["panel.families[]"].detail["in_parts"]
    assert list(ours) == [name for name in theirs if not (summed and name.startswith("length.contrast"))]
    for name, item in ours.items():
        if summed and item.name in BY_ROWS and item.labels.get("part") != "judge x agent":
            assert (item.value, item.state) == (None, IN_PARTS)
            continue
        assert (item.state, item.n) == (theirs[name].state, theirs[name].n)
        assert item.value == pytest.approx(theirs[name].value, abs=1e-9), name
    assert size_of(one) == size_of(other)
    wanted = levels(other)
    assert levels(one) == {k: "qualified" if summed and v == "headline" else v for k, v in wanted.items()}
    for verdict in one.verdicts:
        if summed and verdict.claim.asserts_order and verdict.publication_level != "no-claim":
            assert verdict.length == "not-tested"
            assert "length" in {condition.id for condition in verdict.conditions}
            assert "the table was read in parts" in verdict.condition


def test_judges_of_the_agents_makers_stand_aside_in_large_tables_too(measured, large):
    """Only the judge of the leader's maker puts it ahead: there is no ranking, however the table is read."""
    makers = {"ash": "north", "birch": "maker", "cedar": None}
    rows = [
        {**row, "agent_family": makers[row["agent"]],
         "risk": min(5, row["risk"] + 2 * (row["agent"] == "ash" and row["judge"] == "auditor")),
         "clarity": row["clarity"] - (row["agent"] == "ash" and row["clarity"] > 1)}
        for row in make_rows()
    ]  # fmt: skip
    summed, whole = measured(rows, name="s.parquet"), measured(rows)
    agree(summed, whole)
    assert index(summed)["panel.families[]"].detail["own"] == {"auditor": ["ash"], "reader": [], "skeptic": []}
    assert [v.own_family for v in summed.verdicts] == [v.own_family for v in whole.verdicts]
    assert {"rests-on-own-family", "turns-without-own-family"} & {v.own_family for v in summed.verdicts}
    assert "families-unknown" not in {c.id for v in summed.verdicts for c in v.conditions}


def test_large_tables_that_need_their_rows_are_read_whole(measured, large):
    lacks = "some trajectories lack a usable score from some judge"
    for change, notes in (
        ({"replicate": 1}, ["read whole into memory, because there is a column replicate"]),
        ({"risk": None}, [f"read whole into memory, because {lacks}",
                          "1 trajectory lacks a usable score from some judge: agreement is measured without them"]),
    ):  # fmt: skip
        rows = [row | (change if "replicate" in change or at == 5 else {}) for at, row in enumerate(make_rows())]
        found = measured(rows, name="scores.parquet")
        assert list(found.read.left) == notes
        agree(found, measured(rows))


def test_large_tables_give_the_same_verdicts_under_plans_and_without_cycles(measured, large, plain):
    parquet = partial(measured, None, name="scores.parquet")
    agree(parquet(), plain)
    agree(measured(bare(make_rows()), name="scores.parquet"), measured(bare(make_rows())))
    agree(parquet(study_of()), measured(None, study_of()))
    assert parquet(study_of(extra='[records]\nagents = ["ash", "cedar"]')).read.agents == 2
    with pytest.raises(PlanError, match="cells that the table lacks"):
        parquet(study_of(extra='[records]\nderivations = ["honest", "cell_a"]'))


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet", "streamed.parquet", "folder"])
def test_a_stray_column_is_no_dimension(tmp_path, monkeypatch, name, plain):
    if name not in ("scores.csv", "scores.parquet"):
        monkeypatch.setattr(bare_tables, "STREAMED_FROM", 1)
    rows = [{**row, "retries": 5 if row["agent"] == "cedar" else 1, "note": "x"} for row in make_rows()]
    path = written(tmp_path, rows, "one.parquet" if name == "folder" else name)
    path = path.parent if name == "folder" else path
    with pytest.raises(InputError, match=r"--dimensions clarity,risk,retries, .*retries in column 10"):
        bare_tables.measure_table(path)
    found = measure_table(path)
    agree(found, plain)
    assert "numeric columns that are not used: retries" in found.read.left
    assert not plain.read.left
    wrong = measure_table(path, dimensions="clarity,risk,retries")
    assert (len(wrong.read.dimensions), wrong.read.left) == (3, ())


def test_the_plan_or_the_table_itself_names_dimensions(tmp_path):
    path = written(tmp_path, [{**row, "retries": 1} for row in make_rows()])
    weighed = bare_tables.measure_table(path, study_of(extra="[rubric.weights]\nclarity = 2\nrisk = 1"))
    assert (len(weighed.read.dimensions), weighed.read.left) == (2, ("numeric columns that are not used: retries",))
    claimed = bare_tables.measure_table(path, study_of(extra='[claims]\ndimensions = ["aggregate", "clarity", "risk"]'))
    agree(claimed, measure_table(path, claimed.study))
    for extra in ('[claims]\ndimensions = ["aggregate"]', ""):
        with pytest.raises(InputError, match="name those of the numeric columns"):
            bare_tables.measure_table(path, study_of(extra=extra))
    one = [{**bare([row], "risk")[0], "score": row["risk"]} for row in bare(make_rows(), "clarity")]
    found = bare_tables.measure_table(written(tmp_path, one))
    assert (found.read.dimensions, found.read.left) == (("score",), ())


# --- a folder of partitions, measured as the one table that it is -----------------------------------------------------


def spread(
    folder: Path, rows: list[dict[str, object]], parts: int = 3, form: str = "part={:04}/scores.parquet"
) -> Path:
    for k in range(parts):
        path = folder / form.format(k)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([row for row in rows if row["cycle"] % parts == k]), path)
    return folder


def same(one: Checked, other: Checked) -> None:
    """Assert equality in everything but the name of the source."""
    ours, theirs = ({**{name: getattr(found, name) for name in Checked.__slots__},
                     "read": replace(found.read, source="")} for found in (one, other))  # fmt: skip
    assert ours == theirs


@pytest.fixture
def table(tmp_path, large) -> Checked:
    return measure_table(written(tmp_path, make_rows(), "one.parquet"))


def test_partitions_are_measured_as_the_one_table_they_are_wherever_they_are_summed(tmp_path, table, monkeypatch):
    folder = spread(tmp_path / "many", make_rows())
    same(measure_table(folder), table)
    same(measure_table(spread(tmp_path / "flat", make_rows(), form="{}.parquet")), table)
    same(measure_table(folder, computing=Computing("processes", workers=2)), table)
    with pytest.raises(PlanError, match="only a folder of partitions can be spread"):
        measure_table(tmp_path / "one.parquet", computing=Computing("processes"))
    monkeypatch.setattr(bare_tables, "STREAMED_FROM", 10**9)  # the rows of one file are held in memory
    agree(measure_table(folder), measure_table(tmp_path / "one.parquet"))


def test_what_lacks_a_score_is_left_out_and_the_note_says_so(tmp_path, large):
    rows = make_rows()
    rows[5]["risk"] = None
    found = measure_table(spread(tmp_path / "many", rows))
    lack = "1 trajectory lacks a usable score from some judge"
    why = "partitions are only summed, while one file is read whole"
    assert found.read.left == (f"left out of every number: {lack}, and {why}",)
    assert found.read.answers == 179
    whole = [row for row in rows if row["trajectory"] != rows[5]["trajectory"]]
    theirs = {item.id: item for item in measure_table(spread(tmp_path / "whole", whole)).measurements}
    for item in found.measurements:
        if not item.name.startswith(("judge.", "missing.")):
            assert (item.value, item.state) == (theirs[item.id].value, theirs[item.id].state)
    shares = {item.id: item.value for item in found.measurements if item.name == "missing.share"}
    judge, agent = rows[5]["judge"], rows[5]["agent"]
    assert shares[f"missing.share[judge={judge}]"] == pytest.approx(1 / 180)
    assert shares[f"missing.share[agent={agent}]"] == pytest.approx(1 / 60 / 3)


def test_a_judge_that_lacks_too_much_stops_the_measuring(tmp_path, large):
    """Sums hold complete trajectories only: without the rows the judge cannot be left out of them."""
    rows = make_rows()
    for row in rows:
        if (row["judge"], row["agent"], row["cycle"] % 8) == ("skeptic", "ash", 0):
            row["risk"] = None
    told = r"skeptic: 13.3% of its replies on ash are missing, at most 5.0%\); take these judges out, or measure"
    with pytest.raises(PlanError, match=told):
        measure_table(spread(tmp_path / "many", rows))
    found = measure_table(written(tmp_path, rows))
    assert found.read.judges == 2, "one file is read whole, and the others' scores are measured"


def test_other_dimensions_are_other_sums_and_so_are_plans(tmp_path, table):
    folder, out = spread(tmp_path / "many", make_rows()), tmp_path / "out"
    both, one = measure_table(folder, out=out), measure_table(folder, out=out, dimensions=["risk"])
    assert (both.read.dimensions, one.read.dimensions) == (("clarity", "risk"), ("risk",))
    assert one.read.left == ("numeric columns that are not used: clarity",)
    weighted = study_of(extra='[rubric]\nname = "elsewhere"\nweights = {clarity = 2.0, risk = 1.0}')
    same(measure_table(folder, weighted), measure_table(tmp_path / "one.parquet", weighted))
    for extra in ('[records]\nagents = ["ash", "cedar"]', '[records]\nderivations = ["honest", "cell_a"]'):
        with pytest.raises(PlanError, match=r"measure it as one file|cells that the table lacks"):
            measure_table(folder, study_of(extra=extra))


def test_without_cycles_and_in_any_order(tmp_path, large):
    folder = spread(tmp_path / "many", make_rows()[::-1])
    for path in folder.rglob("*.parquet"):
        pq.write_table(pq.read_table(path).drop_columns("cycle"), path)
    same(measure_table(folder), measure_table(written(tmp_path, bare(make_rows()), "one.parquet")))


def test_what_is_summed_is_kept_and_a_changed_file_is_summed_again(tmp_path, table, monkeypatch):
    folder, out = spread(tmp_path / "many", make_rows()), tmp_path / "out"
    same(measure_table(folder, out=out), table)
    summed: list[int] = []

    def counted(*a, **k):
        return map_chunks(*a, **{**k, "progress": lambda _, done, n: summed.append(n - done)})

    monkeypatch.setattr("assaymark.engine.map_chunks", counted)
    folder = folder.rename(tmp_path / "moved")
    same(measure_table(folder, out=out), table)
    assert summed == [0]
    path = folder / "part=0001" / "scores.parquet"
    pq.write_table(pq.read_table(path).slice(9), path)
    changed = measure_table(folder, out=out)
    assert summed == [0, 1, 0]
    assert changed.read.answers == table.read.answers - 3
    with Ledger.open(out / "partitions" / "ledger.db") as ledger:
        assert ledger.verify() > 0


def test_everything_wrong_is_told_at_once(tmp_path, large):
    (tmp_path / "_metadata.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="no partitions here"):
        measure_table(tmp_path)
    folder = spread(tmp_path / "many", make_rows(), parts=7)
    files = sorted(folder.rglob("*.parquet"))
    tables = [pq.read_table(path) for path in files]
    files[1].write_bytes(files[1].read_bytes()[:-9])
    files[2].write_bytes(b"no table")
    pq.write_table(tables[3].drop_columns("risk"), files[3])
    pq.write_table(pa.concat_tables([tables[0].slice(0, 9), tables[4]]), files[4])
    only = [k for k, judge in enumerate(tables[5].column("judge").to_pylist()) if judge != "reader"]
    pq.write_table(tables[5].take(only), files[5])
    pq.write_table(tables[6].set_column(8, "risk", pa.array([9] * tables[6].num_rows)), files[6])
    with pytest.raises(InputError) as caught:
        measure_table(folder, out=tmp_path / "out")
    told = {problem.where.split("/")[0]: problem.what for problem in caught.value.problems if problem.where}
    damaged = "is not a Parquet file, or is damaged"
    wanted = (damaged, damaged, "risk: the table has no", "cycle 0 is in part=0000", "not here: reader of south", "")
    assert set(told) == {f"part={k:04}" for k in range(1, 7)}
    assert [what for k, what in enumerate(wanted, 1) if what not in told[f"part={k:04}"]] == []
    assert "risk: scores must be in 1..5 (got 9)" in str(caught.value)
    assert not (tmp_path / "out" / "verdicts.json").exists()


def test_options_that_do_not_go_together():
    assert computing_of(None, None, None, None) is None
    assert computing_of(None, None, "auto", None) == Computing("ray", None, "auto")
    with pytest.raises(UnknownNameError, match="Did you mean 'processes'"):
        computing_of("process", None, None, None)
    with pytest.raises(InputError) as caught:
        computing_of("serial", 2, "auto", float("nan"))
    assert [problem.where for problem in caught.value.problems] == ["--workers", "--ray", "--deadline"]


def test_the_command_line(tmp_path, ran, large):
    measure = ["measure", "--judgments", str(spread(tmp_path / "many", make_rows(clusters=3), parts=2))]
    out = tmp_path / "out"
    said = ran(*measure, "--dimensions", "clarity,risk", "--workers", "2", "--out", out)
    assert f"clusters, {len(PANEL)} judges, two criteria" in said
    assert said.endswith(f"\nwritten to {out}\n")
    assert (out / "verdicts.json").is_file()
    assert ran(*measure, "--compute", "raj", status=1).startswith(
        "assaymark: unknown way to compute 'raj'. Did you mean 'ray'?"
    )
