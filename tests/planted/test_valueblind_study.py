"""The shipped study: what is planted in its agents and judges is what its verdicts say, and nothing else is said.

Planted in `studies/valueblind.toml`: alder, birch and dogwood decide alike, cedar decides and explains better, dogwood
gives no reasons in four texts of five; the reader favours alder's style by half a point, the auditor pays a tenth of a
point for 100 tokens, the allocator does neither."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from repetitions import untraced
from scipy import stats

from assaymark.claims import kind_of
from assaymark.cli import models
from assaymark.judging import reference, user_messages
from assaymark.records import AGGREGATE, content_id
from assaymark.workflow import (
    CONTEXTS,
    DECISIONS,
    JUDGMENTS,
    MEASUREMENTS,
    VERDICTS,
    RunFolder,
    Store,
    open_locked,
    verbs,
)

STUDY = Path(__file__).resolve().parents[2] / "studies" / "valueblind.toml"
VERBOSITY = 0.1
HALO = 0.5
BRIEF = 0.8
PANEL = ("auditor", "reader", "allocator")


class Run:
    """The tables of a finished run, for questions."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(RunFolder(folder))
        self.folder = folder
        self.decisions = self.store.read(DECISIONS)
        self.judgments = self.store.read(JUDGMENTS)
        self.measured = {one.id: one for one in self.store.read(MEASUREMENTS)}
        self.verdicts = {one.claim.id: one for one in self.store.read(VERDICTS)}

    def above(self, high: str, low: str, dimension: str = AGGREGATE):
        return self.verdicts[f"above[dimension={dimension},high={high},low={low}]"]

    def of_kind(self, kind: str) -> list:
        """The verdicts on all claims of a kind."""
        return [one for one in self.verdicts.values() if kind_of(one.claim) == kind]

    def over_agents(self, name: str) -> list[float]:
        """A measurement of each agent."""
        return [self.measured[f"{name}[agent={agent}]"].value for agent in ("alder", "birch", "cedar", "dogwood")]

    def sheet(self, judge: str) -> dict:
        raw = json.loads((self.folder / "datasheets" / f"{judge}.json").read_text())
        return {one["name"]: one for one in raw["measurements"] if one["labels"].get("dimension") == AGGREGATE}

    @cached_property
    def opinions(self) -> dict[tuple[str, str], np.ndarray]:
        """Mean opinion by judge and agent [dimensions, then aggregate], without noise, rounding and planted likings."""
        honest = [one for one in self.decisions if one.derivation.kind == "honest"]
        contexts = [(content_id(one), one) for one in self.store.read(CONTEXTS)]
        study = open_locked(RunFolder(self.folder)).study
        shown = user_messages(honest, contexts, study)
        found = defaultdict(list)
        for one in honest:
            seen = reference.notice(tuple(part.text for part in shown[one.record_id].parts))
            for judge in study.judges:
                view = reference.VIEWS[judge.model]
                found[judge.name, one.agent.id].append([reference.opinion(view[name], seen) for name in sorted(view)])
        means = {key: np.mean(rows, axis=0) for key, rows in found.items()}
        return {key: np.append(values, values.mean()) for key, values in means.items()}

    def truth(self, judge: str, high: str, low: str, dimension: str) -> float:
        """How far one agent is ahead of another in the unbiased opinion of one judge."""
        place = [*sorted(reference.VIEWS["reference/reader"]), AGGREGATE].index(dimension)
        return float(self.opinions[judge, high][place] - self.opinions[judge, low][place])


def finished(text: str, folder: Path) -> None:
    """A study from its plan to its verdicts; its pages, a third of the work, are read by nobody here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verbs, "report", lambda _folder: None)
        verbs.start(RunFolder(folder), text, "study.toml", datetime.now(UTC), models())
        verbs.finish(RunFolder(folder), models())


@pytest.fixture(scope="module")
def run(own_copy) -> Run:
    """The whole study: 1,100 trajectories, 5,500 judge calls."""

    def build(folder: Path) -> None:
        # The demo takes the same way in small, and is traced.
        untraced(lambda: finished(STUDY.read_text(encoding="utf-8"), folder / "run"))

    return Run(own_copy("valueblind", build) / "run")


@pytest.fixture(scope="module", params=["valueblind", "demo"])
def either(request, run) -> Run:
    """The study and its small cut: they tell one story."""
    return run if request.param == "valueblind" else Run(request.getfixturevalue("demo"))


def levels(verdicts) -> set[str]:
    return {one.publication_level for one in verdicts}


def states(one) -> tuple[str, ...]:
    return one.publication_level, one.agreement_status, one.stability_status, one.adversarial_status


def test_the_study_has_the_size_of_the_source_and_every_agent_is_as_planted(run):
    """ValueBlindBench section 4: 1,000 honest cycles, two cells of 50, five calls a trajectory."""
    assert Counter(one.derivation.kind for one in run.decisions) == {"honest": 1000, "cell_a": 50, "cell_b": 50}
    assert Counter(one.status for one in run.judgments) == {"ok": 5500}
    assert run.over_agents("agent.answered") == run.over_agents("agent.limits_kept") == [1, 1, 1, 1]
    assert run.over_agents("terse.share")[:3] == [0, 0, 0]
    share = run.measured["terse.share[agent=dogwood]"]
    assert share.low <= BRIEF <= share.high


# --- what may be said -------------------------------------------------------------------------------------------------


def test_the_planted_best_is_ahead_of_those_who_write_as_much(either):
    for low in ("alder", "birch"):
        verdict = either.above("cedar", low)
        assert states(verdict) == ("headline", "publish", "stable", "passed")
        assert (verdict.own_family, verdict.length, verdict.caps) == ("clear", "clear", ())
    first = either.verdicts["first[agent=cedar,dimension=aggregate]"]
    assert (first.publication_level, first.stability_status) == ("qualified", "stable")
    assert "dogwood" in first.condition, "with the condition of its comparison with the terse agent"
    others = [f"first[agent={name},dimension=aggregate]" for name in ("alder", "birch", "dogwood")]
    assert levels(either.verdicts[name] for name in others) == {"no-claim"}


def test_every_headline_is_true_by_construction(either):
    """Held against what the judges would give without noise, halo, liking of length and rounding."""
    headlines = [one.claim for one in either.verdicts.values() if one.publication_level == "headline"]
    assert {kind_of(one) for one in headlines} == {"pair", "within"}
    for claim in headlines:
        gaps = [either.truth(name, *claim.subjects, claim.dimension) for name in PANEL]
        if kind_of(claim) == "pair":
            assert min(gaps) > 0.1, claim.id
        else:
            assert abs(np.mean(gaps)) < 0.05, claim.id


def test_the_planted_tie_is_a_close_race_and_no_order_in_it_may_be_said(either):
    """Alder above birch: one judge of three sees it, and it is the one that likes alder's style."""
    both = [one for one in either.verdicts.values() if set(one.claim.subjects) == {"alder", "birch"}]
    assert levels(one for one in both if one.claim.asserts_order) == {"no-claim"}
    (close,) = (one for one in both if not one.claim.asserts_order)
    assert (close.publication_level, close.stability_status) == ("headline", "stable")
    verdict = either.above("alder", "birch")
    assert verdict.own_family in ("rests-on-own-family", "turns-without-own-family")
    assert verdict.p < 0.001
    assert verdict.stability.families == ("alder",)
    assert "makers" in " ".join(verdict.reasons)
    probe = either.measured["probe.contrast[dimension=aggregate,high=alder,low=birch]"]
    assert probe.low < 0 < probe.high


@pytest.mark.parametrize("high", ["alder", "birch", "cedar"])
def test_what_is_said_about_the_terse_agent_comes_with_a_condition(either, high):
    verdict = either.above(high, "dogwood")
    assert (verdict.publication_level, verdict.adversarial_status) == ("qualified", "construct-sensitive")
    assert "rationales of dogwood have fewer than 60 words" in verdict.condition
    assert (verdict.length == "clear") == (high == "cedar"), "cedar is better at equal length, too"
    assert ("It may be length" in verdict.condition) or high == "cedar"


def test_what_judges_do_not_tell_apart_or_hardly_agree_on_is_no_headline(either):
    """They look at one dimension alike and apart from the rest: at how doubt is handled."""
    told_apart = {name for name in reference.VIEWS["reference/reader"]
                  if either.measured[f"dimension.distinct[dimension={name}]"].detail["p_holm"] <= 0.05}  # fmt: skip
    assert told_apart == {"uncertainty_handling"}
    weak = {one.claim.dimension for one in either.verdicts.values() if one.agreement_status == "methodology"}
    assert weak == {"constraint_awareness", "position_sizing", AGGREGATE}, "cells are about the aggregate"
    assert {one.claim.id for one in either.verdicts.values()
            if one.claim.dimension != AGGREGATE and one.publication_level == "headline"} == {
        f"above[dimension=uncertainty_handling,high=cedar,low={low}]" for low in ("alder", "birch")
    }  # fmt: skip


# --- what is found in the judges --------------------------------------------------------------------------------------


def test_the_planted_verbosity_is_found_in_the_auditor_and_keeps_its_limit(either):
    found = {name: either.sheet(name)["point.verbosity"] for name in PANEL}
    assert 0 < found["auditor"]["low"] <= VERBOSITY <= found["auditor"]["high"]
    assert found["allocator"]["low"] <= 0 <= found["allocator"]["high"]
    assert max(one["value"] for one in found.values()) <= 0.15
    assert {either.measured[f"datasheet.gate[judge={name}]"].value for name in PANEL} == {0}


def test_the_planted_halo_is_what_the_reader_gives_alder_more_than_its_twin(either):
    honest = {one.record_id: one for one in either.decisions if one.derivation.kind == "honest"}
    given, gaps = {}, defaultdict(list)
    for one in either.judgments:
        if one.judge == "reader" and one.trajectory in honest:
            shown = honest[one.trajectory]
            given[shown.agent.id, shown.cluster, shown.cycle] = np.mean(list(one.scores.values()))
    for (agent, cluster, cycle), score in given.items():
        if agent == "alder":
            gaps[cluster].append(score - given["birch", cluster, cycle])
    means = [np.mean(one) for one in gaps.values()]
    low, high = stats.t.interval(0.95, len(means) - 1, np.mean(means), stats.sem(means))
    assert low <= HALO <= high
    # Against the other judges, which see alder a little otherwise than the reader would without its liking.
    liking = either.measured["judge.own_family[dimension=aggregate,judge=reader]"]
    assert liking.low > 0
    assert liking.value == pytest.approx(HALO, abs=0.1)


def test_the_reader_moves_the_cell_that_was_written_in_the_style_it_likes(either):
    """Composed in alder's name: the cell is scored without the judge who favours it, and its verdict says so. It lies
    below the honest bottom quartile; nothing changes after the cutoff of an invented market."""
    halo, gate, drop, agreement = (
        either.measured[f"cell.{name}]"]
        for name in ("halo[cell=cell_a", "gate[cell=cell_a", "drop[cell=cell_a,dropped=alder", "agreement[cell=cell_a")
    )
    assert halo.value >= 0.3
    assert halo.low > 0
    assert gate.value == pytest.approx(drop.value)
    assert states(either.verdicts["cell[cell=cell_a]"]) == ("qualified", "methodology", "stable", "construct-sensitive")
    assert agreement.detail["leave_one_out"]
    assert agreement.detail["p"]["alder"] > 0.01, "the reader alone does not see it"
    reasons = " ".join(either.above("cedar", "alder").reasons)
    assert "without the judges of family alder" in reasons
    assert "Confident but wrong rationales score below" in reasons
    gap = either.measured["contamination.gap[dimension=aggregate,split=all]"]
    assert gap.low < 0 < gap.high


def test_brevity_alone_costs_nothing_with_this_panel_and_the_oracle_finds_who_reads_the_arithmetic(run):
    """Terse but right texts score like honest ones; the allocator marks them down a little more than the margin. The
    auditor holds numbers against the material; the allocator looks at the spread of the book."""
    verdict = run.verdicts["cell[cell=cell_b]"]
    assert (verdict.publication_level, verdict.agreement_status) == ("qualified", "methodology")
    assert "within 0.3 points" in verdict.claim.statement
    assert run.measured["cell.agreement[cell=cell_b]"].detail["each"]["rowan"] < -0.3
    kappa = {judge: run.measured[f"oracle.kappa[judge={judge}]"] for judge in PANEL}
    assert kappa["auditor"].low > max(kappa["reader"].high, kappa["allocator"].high)


# --- without what is planted ------------------------------------------------------------------------------------------


def test_nothing_is_found_where_nothing_is_planted(tmp_path):
    """The same study, smaller: four agents of one rule, judges without halo and without a liking of length."""
    text = STUDY.read_text(encoding="utf-8")
    for old, new in (
        (', kin = "alder", halo = 0.5', ""), ("slope = 0.1", "slope = 0.0"), (", brief = 0.8", ""),
        ('model = "reference/inverse-volatility"', 'model = "reference/mixed"\nseed = 4'),
        ("cycles = 50", "cycles = 8"), ("cell_a = 50", "cell_a = 20"), ("cell_b = 50", "cell_b = 20"),
        ("sample = 120", "sample = 30"),
    ):  # fmt: skip
        assert text.count(old) == 1
        text = text.replace(old, new)
    finished(text, tmp_path / "run")
    plain = Run(tmp_path / "run")
    assert levels(plain.of_kind("pair")) == levels(plain.of_kind("first")) == {"no-claim"}
    assert {one.own_family for one in plain.of_kind("pair")} == {"clear"}
    liking = plain.measured["judge.own_family[dimension=aggregate,judge=reader]"]
    assert liking.low <= 0 <= liking.high
    assert abs(plain.measured["cell.halo[cell=cell_b]"].value) < 0.3
    assert {plain.measured[f"datasheet.gate[judge={name}]"].value for name in PANEL} == {0}
    verbosity = plain.sheet("auditor")["point.verbosity"]
    assert verbosity["low"] <= 0 <= verbosity["high"]
    assert set(plain.over_agents("terse.share")) == {0}
