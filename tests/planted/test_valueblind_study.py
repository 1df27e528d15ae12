"""The shipped study: what is planted in its agents and judges is what its verdicts say, and nothing else is said.

Planted in `studies/valueblind.toml`: alder is the best and fullest writer, birch and cedar are exchangeable, dogwood is
terse; the reader favours alder's style by two points, the auditor pays a quarter of a point for 100 tokens, the
allocator does neither.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from repetitions import untraced

from assaymark.cli import main
from assaymark.records import AGGREGATE
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.tables import DECISIONS, JUDGMENTS, MEASUREMENTS, VERDICTS, Store

STUDY = Path(__file__).resolve().parents[2] / "studies" / "valueblind.toml"
PLANTED_VERBOSITY = 0.25


class Run:
    """The tables of a finished run, for questions."""

    def __init__(self, folder: Path) -> None:
        store = Store(RunFolder(folder))
        self.folder = folder
        self.decisions = store.read(DECISIONS)
        self.judgments = store.read(JUDGMENTS)
        self.measured = {one.id: one for one in store.read(MEASUREMENTS)}
        self.verdicts = store.read(VERDICTS)

    def verdict(self, kind: str, *subjects: str, dimension: str = AGGREGATE):
        found = [
            one
            for one in self.verdicts
            if one.claim.id.startswith(kind) and one.claim.subjects == subjects and one.claim.dimension == dimension
        ]
        assert len(found) == 1, [one.claim.id for one in found]
        return found[0]

    def sheet(self, judge: str) -> dict:
        raw = json.loads((self.folder / "datasheets" / f"{judge}.json").read_text())
        return {one["name"]: one for one in raw["measurements"] if one["labels"].get("dimension") == AGGREGATE}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """The whole study: 1,100 trajectories, 5,500 judge calls."""
    folder = tmp_path_factory.mktemp("valueblind") / "run"
    # The demo takes the same way in small, and is traced.
    assert untraced(lambda: main(["run", str(STUDY), "--out", str(folder)])) == 0
    return Run(folder)


def test_the_study_has_the_size_of_the_source(run):
    """ValueBlindBench section 4: 1,000 honest cycles, two cells of 50, five calls a trajectory."""
    kinds = Counter(one.derivation.kind for one in run.decisions)
    assert kinds == {"honest": 1000, "cell_a": 50, "cell_b": 50}
    assert len(run.judgments) == 5500
    assert {one.status for one in run.judgments} == {"ok"}


def test_the_planted_first_place_may_be_said_with_its_conditions(run):
    verdict = run.verdict("first", "alder")
    assert (verdict.publication_level, verdict.agreement_status, verdict.stability_status) == (
        "qualified",
        "publish",
        "stable",
    )
    assert verdict.adversarial_status == "construct-sensitive"
    assert "auditor" in verdict.condition
    assert "dogwood" in verdict.condition
    assert not [one for one in run.verdicts if one.publication_level == "headline"]


@pytest.mark.parametrize("agent", ["birch", "cedar", "dogwood"])
def test_no_other_first_place_may_be_said_on_the_aggregate(run, agent):
    assert run.verdict("first", agent).publication_level == "no-claim"


def test_the_planted_tie_is_a_class_and_no_order_in_it_may_be_said(run):
    pairs = [
        one
        for one in run.verdicts
        if one.claim.scope == "pairwise-contrast" and set(one.claim.subjects) == {"birch", "cedar"}
    ]
    assert len(pairs) >= 7
    assert {one.publication_level for one in pairs} == {"no-claim"}
    assert {one.stability_status for one in pairs if one.claim.dimension == AGGREGATE} == {"tie-class"}
    classes = [
        one for one in run.verdicts if set(one.claim.subjects) == {"birch", "cedar"} and not one.claim.asserts_order
    ]
    assert [one.publication_level for one in classes if one.claim.dimension == AGGREGATE] == ["qualified"]


def test_what_the_judges_do_not_agree_on_is_withheld(run):
    halted = {one.claim.dimension for one in run.verdicts if one.agreement_status == "halt"} - {AGGREGATE}
    assert {"constraint_awareness", "risk_alignment", "position_sizing"} <= halted
    about = [one for one in run.verdicts if one.claim.dimension in halted]
    assert {one.publication_level for one in about} == {"no-claim"}


def test_the_planted_verbosity_is_found_in_the_auditor_and_in_nobody_else(run):
    found = run.sheet("auditor")["point.verbosity"]
    assert found["low"] <= PLANTED_VERBOSITY <= found["high"]
    assert run.measured["datasheet.gate[judge=auditor]"].value == 1
    assert run.measured["datasheet.gate[judge=reader]"].value == 0
    assert run.measured["datasheet.gate[judge=allocator]"].value == 0


def test_the_planted_halo_is_found_and_the_cell_is_scored_without_the_judge_who_has_it(run):
    """Composed in alder's name: the halo is what the judge of that family adds."""
    for cell in ("cell_a", "cell_b"):
        halo = run.measured[f"cell.halo[cell={cell}]"]
        assert halo.value >= 0.3
        assert halo.low > 0
        gate = run.measured[f"cell.gate[cell={cell}]"]
        assert gate.value == pytest.approx(run.measured[f"cell.drop[cell={cell},dropped=alder]"].value)
    assert "without the judges of family alder" in " ".join(run.verdict("first", "alder").reasons)


def test_the_panel_does_not_simply_reward_verbosity_and_the_market_cannot_be_known(run):
    """Cell A lies below the honest bottom quartile; nothing changes after the cutoff of an invented market."""
    assert "Confident but wrong rationales score below" in " ".join(run.verdict("first", "alder").reasons)
    gap = run.measured["contamination.gap[dimension=aggregate,split=all]"]
    assert gap.low < 0 < gap.high


def test_every_agent_answered_and_kept_its_limits(run):
    for agent in ("alder", "birch", "cedar", "dogwood"):
        assert run.measured[f"agent.answered[agent={agent}]"].value == 1
        assert run.measured[f"agent.limits_kept[agent={agent}]"].value == 1
    assert run.measured["terse.share[agent=dogwood]"].value == 1
    assert run.measured["terse.share[agent=alder]"].value == 0


def test_the_oracle_finds_the_judge_who_reads_the_arithmetic(run):
    """The auditor holds numbers against the material; the allocator looks at the spread of the book."""
    kappa = {judge: run.measured[f"oracle.kappa[judge={judge}]"].value for judge in ("auditor", "allocator")}
    assert kappa["auditor"] > kappa["allocator"] + 0.3


def test_nothing_is_found_where_nothing_is_planted(tmp_path):
    """The same study, smaller, without halo and verbosity: no halo, and no judge fails its limit."""
    text = STUDY.read_text(encoding="utf-8")
    for old, new in (
        (', kin = "alder", halo = 2.0', ""),
        ("slope = 0.25", "slope = 0.0"),
        ("cycles = 50", "cycles = 6"),
        ("cell_a = 50", "cell_a = 20"),
        ("cell_b = 50", "cell_b = 20"),
        ("sample = 120", "sample = 30"),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    assert main(["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "run")]) == 0
    plain = Run(tmp_path / "run")
    assert {plain.measured[f"datasheet.gate[judge={name}]"].value for name in ("auditor", "reader", "allocator")} == {0}
    assert abs(plain.measured["cell.halo[cell=cell_b]"].value) < 0.3
    assert plain.sheet("auditor")["point.verbosity"]["low"] <= 0 <= plain.sheet("auditor")["point.verbosity"]["high"]
