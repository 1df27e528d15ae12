"""Measurements of a judged season: every number follows from its tables, or has a state."""

# ruff: noqa: I001

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

import numpy as np
import pytest
from season_runs import NOW, panel, rows, season_text, small

from assaymark.claims import (
    MISSING, SILENT, SINGLE, SeasonGates, SeasonVerdicts, catalogue, decide_season, english, languages,
)  # fmt: skip
from assaymark.cli import models
from assaymark.errors import InputError, LedgerError, PlanError
from assaymark.judging import Contestant, band, season_table
from assaymark.metrology import alpha_report, jackknife_kappa
from assaymark.plan import MissingLimits
from assaymark.prompting import INSTRUCTION_LIKE
from assaymark.protocol import DatasheetLimits
from assaymark.records import Rationale, measurement_id
from assaymark.report import season as season_pages
from assaymark.workflow import RunFolder, Store
from assaymark.workflow import tracks

JUDGES = ("auditor", "reader", "allocator")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A judged season of two agents and eleven days in three weeks, with two replicates. Not to be changed."""
    judges = panel(*JUDGES, more="trials = 2\n")
    found = small(tmp_path_factory.mktemp("measured"), models(), head="replicates = 2", more=judges)
    tracks.run_season(found, models(), now=NOW)
    tracks.judge_season(found, models())
    return found


@pytest.fixture(scope="module")
def material(folder):
    return tracks.season_material(folder)


@pytest.fixture(scope="module")
def judged(folder):
    return tracks.SeasonJudgments.read(Store(folder))


def measured(material, judged):
    measurements, _ = tracks.season_findings(material, judged, rng=np.random.default_rng(5))
    found = {one.id: one for one in measurements}
    assert len(found) == len(measurements)
    return found


@pytest.fixture(scope="module")
def found(material, judged):
    return measured(material, judged)


def timed(material, seconds):
    """The season with other seconds of each agent's decisions, by its name and their place."""
    steps = {name: tuple(replace(one, seconds=seconds(name, k)) for k, one in enumerate(ones))
             for name, ones in material.steps.items()}  # fmt: skip
    return replace(material, steps=steps)


@pytest.fixture(scope="module")
def untimed(material, judged):
    return measured(timed(material, lambda *_: None), judged)


def regraded(judged, change):
    """The same judgments with grades that are changed or left out."""
    return replace(judged, grades=tuple(one for one in map(change, judged.grades) if one is not None))


def planned(material, **update):
    """The same season under a plan with other tables."""
    return replace(material, season=material.season.model_copy(update=update))


def unusable(grade: tracks.SeasonGrade, **where: str) -> tracks.SeasonGrade:
    """The grade as a refusal, if it is of these."""
    if any(getattr(grade, name) != value for name, value in where.items()):
        return grade
    grades = replace(grade.score.grades, state="refused", reason="no", reasoning={}, evidence={})
    return replace(grade, score=replace(grade.score, grades=grades, score=None, capped=(), disagreement=None))


def named(found, name):
    return [one for one in found.values() if one.name == name]


def states(found, *names):
    return [found[name].state for name in names]


def decided(found):
    return decide_season(list(found.values()), SeasonGates(), "plan")


def test_steps_are_in_order_and_carry_what_the_broker_made_of_them(folder, material):
    assert [one.id for one in material.agents] == ["one", "two"]
    for name, steps in material.steps.items():
        days, fills = [one.day for one in steps], rows(folder, tracks.FILLS, agent=name)
        books = {one.day: (one.cash, one.positions) for one in rows(folder, tracks.NAVS, agent=name)}
        assert (days, len(days)) == (sorted(days), 11)
        assert sum(len(one.fills) for one in steps) == len(fills)
        for step, later in zip(steps, days[1:], strict=False):
            assert (step.book.cash, step.book.positions) == books[later]
            assert {one.record_id for one in fills if one.day == later} <= {step.decision.record_id}
        assert (steps[-1].book, tuple(steps[-1].fills)) == (None, ())
    assert sorted(material.replicates) == [("one", 1), ("one", 2), ("two", 1), ("two", 2)]
    for (agent, replicate), steps in material.replicates.items():  # decisions alone
        assert {(one.decision.agent.id, one.decision.replicate) for one in steps} == {(agent, replicate)}
        assert all(one.book is None and not one.fills for one in steps)


def test_nothing_is_read_but_tables_and_lock_and_both_are_held_to(folder, material, tmp_path):
    copied = RunFolder(tmp_path / "copy")
    shutil.copytree(folder.path, copied.path, ignore=shutil.ignore_patterns("season", "ledger*"))
    again = tracks.season_material(copied)
    assert (again.steps, again.contexts, again.partial) == (material.steps, material.contexts, False)
    assert again.plan_hash == material.plan_hash
    (copied.tables / "navs.parquet").unlink()
    with pytest.raises(LedgerError, match=r"navs\.parquet is not there; make it with assaymark season run"):
        tracks.season_material(copied)
    copied.plan.write_text(copied.plan.read_text().replace("Grow", "Shrink"))
    with pytest.raises(PlanError, match="was edited after the lock"):
        tracks.season_material(copied)


def test_every_quantity_is_measured_of_everybody_with_a_denominator_or_a_state(material, judged, found):
    of_agents = ("total", "outcome", "efficiency", "reliability", "lookahead", "thrash", "decisions", "return",
                 "drawdown", "ledger")  # fmt: skip
    of_judges = ("self_preference", "alone", "verbosity", "judge_noise", "invalid", "author_probe")
    wanted = {measurement_id(f"season.{name}", {"agent": agent}) for name in of_agents for agent in ("one", "two")}
    wanted |= {measurement_id(f"season.{name}", {"judge": judge}) for name in of_judges for judge in JUDGES}
    wanted |= {f"season.noise[of={name}]" for name in ("one", "two", "panel")}
    wanted |= {f"season.axis[agent=one,axis={axis}]" for axis in ("reasoning", "evidence", "process")}
    assert wanted | {"season.kappa[]"} <= found.keys()
    for one in found.values():
        assert (one.value is None) == (one.state != "ok"), one.id
        assert one.n_of
        assert (one.low is None) == (one.high is None) == (one.level is None)
        assert None in (one.low, one.value) or one.low <= one.value <= one.high
    docs = Path(__file__).parents[2] / "docs"
    pages = "".join((docs / name).read_text(encoding="utf-8") for name in ("scoring.md", "metrics.md"))
    assert {one.name for one in found.values()} <= set(re.findall(r"^\| `([a-z_.]+)` \|", pages, re.M))
    assert measured(material, judged) == found  # the same generator makes the same numbers


def test_composites_and_totals_are_those_of_the_grades(found, untimed, judged):
    """Without a measured time a total is the median of the judges; with one, efficiency is a tenth of it."""
    given = {
        judge: fmean(
            one.score.score.composite
            for one in judged.grades
            if (one.agent, one.judge, one.scope) == ("one", judge, "whole") and one.score.score is not None
        )
        for judge in JUDGES
    }
    for judge, points in given.items():
        assert untimed[f"season.composite[agent=one,judge={judge}]"].value == pytest.approx(points)
        left = untimed[f"season.without[agent=one,judge={judge}]"]
        others = median(value for name, value in given.items() if name != judge)
        assert (left.n, left.value) == (2, pytest.approx(others))
    total = untimed["season.total[agent=one]"]
    assert total.value == total.detail["median"] == pytest.approx(median(given.values()))
    assert [total.detail["low"], total.detail["high"]] == pytest.approx([min(given.values()), max(given.values())])
    assert untimed["season.efficiency[agent=one]"].state == "no timing"
    total, quick = found["season.total[agent=one]"], found["season.efficiency[agent=one]"]
    assert total.value == pytest.approx(0.9 * total.detail["median"] + 0.1 * quick.value)


def test_the_contrast_is_over_weeks_with_the_totals_beside_it(found, judged):
    """Mean over weeks of the mean over judges; three weeks that follow each other are no test."""
    (contrast,) = named(found, "contrast")
    high, low = (found[f"season.total[agent={contrast.labels[side]}]"].value or 0.0 for side in ("high", "low"))
    assert contrast.detail["totals_gap"] == pytest.approx(high - low)
    assert contrast.detail["noise_floor"] > 0  # that of the judges
    assert (contrast.value, contrast.n, contrast.n_of) == (None, 3, "common periods")
    told = "cannot be tested (3 common clusters that follow each other in time; 12 are needed"
    assert contrast.state.startswith(told)
    weeks: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in judged.grades:
        if one.scope == "period" and one.score.score is not None:
            weeks[one.agent][one.period].append(one.score.score.composite)
    mean = {agent: fmean(fmean(points) for points in found.values()) for agent, found in weeks.items()}
    expected = mean[contrast.labels["high"]] - mean[contrast.labels["low"]]
    assert contrast.detail["gap"] == pytest.approx(expected)
    assert expected >= 0
    assert len({one.labels["dropped"] for one in named(found, "lofo.contrast")}) == len(JUDGES)


def test_the_plan_says_what_is_measured_and_how(material, judged, found):
    """If weeks are exchangeable, if lengths are held equal, the scale of efficiency, and limits of datasheets."""
    assert len(named(found, "length.contrast")) == 1
    text = 'universe = 6\nefficiency = {scale = "relative", reference_s = 5}'
    season, plan = tracks.parse_season(season_text(head=text)), material.season
    assert season.scoring_plan.efficiency.scale == "relative"
    assert season.scoring_plan.digest != plan.scoring_plan.digest
    changed = planned(
        material, inference=plan.inference.model_copy(update={"cluster_order": "exchangeable"}),
        claims=plan.claims.model_copy(update={"length": "off"}), efficiency=season.efficiency,
        datasheets=DatasheetLimits(slope=0.2),
    )  # fmt: skip
    other = measured(timed(changed, lambda name, _: 2.0 if name == "one" else 4.0), judged)
    assert not named(other, "length.contrast")
    (contrast,) = named(other, "contrast")
    assert contrast.method.endswith("over 3 clusters (own variance " + contrast.method.rpartition("variance ")[2])
    assert other["order.autocorrelation[dimension=aggregate]"].detail["order"] == "exchangeable"
    assert other["season.efficiency[agent=one]"].value == 100.0
    assert "the best of the season" in other["season.efficiency[agent=two]"].method
    gates = named(other, "datasheet.gate")
    assert {one.labels["judge"] for one in gates} == set(JUDGES)
    assert all(one.state.startswith("not measured: no datasheet") for one in gates)
    with pytest.raises(InputError, match=r"efficiency\.scale"):
        tracks.parse_season(season_text(head='universe = 6\nefficiency = {scale = "best"}'))


def test_the_published_noise_of_the_panel_is_that_of_a_mean_and_a_rule_has_none(material, judged, found):
    noise, rule = found["season.noise[of=panel]"], found["season.noise[of=two]"]
    assert (noise.detail["trials"], noise.n_of) == (2, "gradings")
    assert noise.value == pytest.approx(noise.detail["one_grading"] / np.sqrt(2))
    assert noise.method.endswith("divided by the square root of the trials of a grading")
    assert "divided" not in rule.method + found["season.judge_noise[judge=auditor]"].method
    assert (rule.value, rule.n, rule.state) == (None, 2, "identical repetitions")
    notes = tracks.season_notes(material, judged.grades, list(found.values()))
    (said,) = [english().render(one) for one in notes if "identical" in one.key]
    assert said.startswith("All replicates of one and two are identical. They give no noise floor")
    # an agent may be called as the panel is
    names = {"two": "panel"}
    agents = tuple(one.model_copy(update={"name": names.get(one.name, one.name)}) for one in material.season.agents)
    called = regraded(judged, lambda one: replace(one, agent=names.get(one.agent, one.agent)))
    other = measured(replace(planned(material, agents=agents), steps={}, navs={}), called)
    assert other["season.noise[kind=agent,of=panel]"].n_of == "replicates"
    assert other["season.noise[of=panel]"].n_of == "gradings"


@pytest.mark.parametrize(("order", "units"), [("consecutive", "block"), ("exchangeable", "cluster")])
def test_the_interval_of_kappa_is_a_jackknife_over_periods(material, order, units):
    """Twelve weeks that follow each other are four blocks; the bootstrap stays in the detail."""
    rng, agents = np.random.default_rng(2), ("one", "two", "three")
    made = {f"w{k:02d}": {agent: 50 + rng.normal(0, 20) for agent in agents} for k in range(12)}
    periods = {
        week: {
            agent: {judge: float(np.clip(true + rng.normal(0, 8), 0, 100)) for judge in JUDGES}
            for agent, true in row.items()
        }
        for week, row in made.items()
    }
    scores = tracks.SeasonScores(agents, {j: j for j in JUDGES}, {}, periods, {})
    kappa = tracks.kappa_measurement(scores, material.scoring, rng, order)
    ratings = np.array([
        [("weak", "mixed", "strong").index(band(value, plan=material.scoring)) + 1 for value in grades.values()]
        for row in periods.values() for grades in row.values()
    ])  # fmt: skip
    weeks = [week for week, row in periods.items() for _ in row]
    expected = jackknife_kappa(ratings, weeks, categories=3, consecutive=order == "consecutive")
    assert (kappa.low, kappa.high) == pytest.approx((expected.low, expected.high))
    assert f"delete-one-{units} jackknife" in kappa.method
    assert "cluster bootstrap" in kappa.detail["bootstrap"]["method"]


def test_alpha_and_variance_components_take_periods_as_clusters(judged, found):
    points: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in judged.grades:
        if one.scope == "period" and one.score.score is not None:
            points[one.period, one.agent][one.judge].append(one.score.score.composite)
    cells = sorted(points)
    table = [[fmean(points[row][judge]) if judge in points[row] else np.nan for judge in JUDGES] for row in cells]
    expected = alpha_report(table, [period for period, _ in cells], consecutive=True).alpha
    alpha = found["panel.alpha[dimension=aggregate]"]
    assert (alpha.value, alpha.low, alpha.high) == pytest.approx((expected.estimate, expected.low, expected.high))
    assert (alpha.n, alpha.n_of) == (len(cells), "agents' periods")
    within, by_period = (
        found[f"panel.variance[dimension=aggregate,part={x}]"] for x in ("agent x cycle", "agent x cluster")
    )
    assert within.state == "undefined: one cycle in each cluster, needs two"
    assert by_period.value is not None
    assert "it includes agent x cycle" in by_period.method
    general = found["panel.generalizability[dimension=aggregate]"]
    agent, error = general.detail["agent"], general.detail["error"]
    assert general.value == pytest.approx(agent / (agent + error))
    missing = {one.state for one in found.values() if one.name.startswith("panel.") and one.state != "ok"}
    for words in (season_pages.Language(catalogue(language)) for language in languages()):
        assert all(words.has(f"state.{state}") for state in missing)


def test_a_judge_that_refuses_everything_is_absent_and_counted(material, judged):
    found = measured(material, regraded(judged, lambda one: unusable(one, judge="reader")))
    of_reader = (f"season.{name}[judge=reader]" for name in ("alone", "self_preference"))
    assert states(found, "season.composite[agent=one,judge=reader]", *of_reader) == [
        "refused", "fewer than two agents", "no agent graded by all judges",
    ]  # fmt: skip
    detail = found["season.total[agent=one]"].detail
    assert (detail["absent"], detail["judges"]) == (["reader"], 2)
    assert found["season.kappa[]"].detail["judges"] == ["allocator", "auditor"]
    refused = found["season.invalid[judge=reader]"]
    mine = [one for one in judged.grades if one.judge == "reader"]
    others = sum(one.judge == "reader" for one in judged.guesses) + sum(one.score.outcome is not None for one in mine)
    assert (refused.detail["refused"], refused.n) == (len(mine), len(mine) + others)
    assert refused.value == len(mine) / refused.n


def test_a_judge_that_lacks_too_much_is_left_out_by_the_plan(material, judged):
    lacking = regraded(judged, lambda one: unusable(one, judge="reader", agent="one", period="2024-W10"))
    found = measured(material, lacking)
    assert found["season.composite[agent=two,judge=reader]"].state == "left out"
    assert found["season.total[agent=two]"].detail["absent"] == ["reader"]
    detail = found["season.invalid[judge=reader]"].detail
    assert detail["lacking"] == {"one": [1, 6]}
    assert detail["left_out"] == "8.3% of its replies are missing, at most 5.0%"
    (order,) = [one for one in decided(found).verdicts if one.verdict.claim.id.startswith("above")]
    assert "qualified" in {cap.level for cap in order.verdict.caps}
    kept = measured(planned(material, missing=MissingLimits(per_judge=0.5, per_agent=0.5)), lacking)
    assert kept["season.composite[agent=two,judge=reader]"].state == "ok"
    conditions = [reason for one in decided(kept).verdicts for reason in one.verdict.conditions]
    texts = [reason.text for reason in conditions if reason.id == "missing-replies"]
    assert all(text == "reader gave no usable grade on 1 of 12 records." for text in texts)
    with pytest.raises(LedgerError, match=r"too many replies are missing: judge reader: 8.3%"):
        measured(planned(material, missing=MissingLimits(on_excess="stop")), lacking)


def test_without_grades_judges_or_periods_there_is_a_state_and_no_claim(material, judged):
    found = measured(material, regraded(judged, lambda one: unusable(one, agent="two")))
    of_two = [f"season.{name}[agent=two]" for name in ("total", "outcome", "efficiency")]
    assert (states(found, *of_two), named(found, "contrast")) == (["not graded"] * 3, [])
    assert decided(found).place("two").first is None
    found = measured(material, regraded(judged, unusable))
    assert (found["season.kappa[]"].value, decided(found).tiers) == (None, ())
    assert {one.verdict.publication_level for one in decided(found).verdicts} == {"no-claim"}
    found = measured(material, regraded(judged, lambda one: one if one.judge == "auditor" else None))
    alone = [f"season.{name}[judge=auditor]" for name in ("self_preference", "alone", "verbosity")]
    wanted = [SINGLE, *["one judge"] * 3, "no other judge"]
    assert states(found, "season.kappa[]", *alone, "season.without[agent=one,judge=auditor]") == wanted
    found = measured(material, regraded(judged, lambda one: one if one.scope == "whole" else None))
    assert states(found, "season.kappa[]", "season.noise[of=one]") == [MISSING, "no replicates"]
    (contrast,) = named(found, "contrast")
    assert (contrast.value, contrast.n) == (None, 0)
    assert contrast.state.startswith("cannot be tested (0 common clusters")
    levels = {one.verdict.publication_level for one in decided(found).verdicts if one.kind != "beats"}
    assert levels == {"no-claim"}


def redecided(material, agent, change):
    """The season in which the decisions of an agent are others: fields of each by its place."""
    steps = tuple(
        replace(one, decision=replace(one.decision, **change(k))) for k, one in enumerate(material.steps[agent])
    )
    return replace(material, steps={**material.steps, agent: steps})


def test_only_usable_answers_are_timed_and_an_agent_without_one_has_no_total(material, judged):
    slow = timed(material, lambda name, k: 120.0 if (name, k) == ("two", 0) else 0.001)
    found = measured(redecided(slow, "two", lambda k: {"flags": ("no-answer",) * (k > 0)}), judged)
    quick, total = found["season.efficiency[agent=two]"], found["season.total[agent=two]"]
    assert (quick.n, quick.detail["seconds"]) == (1, 120.0)
    assert quick.value == pytest.approx(total.detail["median"] / 2)
    found = measured(redecided(slow, "two", lambda _: {"flags": ("no-answer",)}), judged)
    for name in ("total", "efficiency"):
        assert (found[f"season.{name}[agent=two]"].value, found[f"season.{name}[agent=two]"].state) == (None, SILENT)
    assert found["season.composite[agent=two,judge=reader]"].value is not None
    assert found["season.kappa[]"].n == 3  # judges agree on an empty record, and that says nothing about them
    assert not named(found, "contrast")
    place = decided(found).place("two")
    assert (place.first, place.why.key) == (None, "claim.why.silent")


def books(name, values):
    return tuple(
        tracks.SeasonNav(day=f"2024-04-{at:02d}", agent=name, state="ok", cash=0.0, nav=value, costs=0.0, positions={})
        for at, value in enumerate(values, start=1)
    )


def path(seed, drift, days=25):
    return [float(one) for one in 100_000 * np.cumprod(1 + np.random.default_rng(seed).normal(drift, 0.004, days))]


def test_returns_drawdowns_and_the_difference_from_a_baseline(material, judged):
    own, base = path(1, 0.01), path(2, 0.0)
    found = measured(replace(
        material, navs={"one": books("one", own), "two": books("two", base)},
        baselines={"equal weight": books("equal weight", base), "cash": books("cash", [100_000.0] * 25)},
    ), judged)  # fmt: skip
    assert found["season.return[agent=one]"].value == pytest.approx(own[-1] / 100_000 - 1)
    assert found["season.return[baseline=cash]"].value == 0.0
    assert found["season.drawdown[baseline=equal weight]"].value < 0
    excess = found["season.excess[agent=one,baseline=equal weight]"]
    assert excess.detail["whole"] == pytest.approx((own[-1] - base[-1]) / 100_000)
    assert excess.low > 0
    assert found["season.excess[agent=two,baseline=equal weight]"].state == "the difference does not vary"
    said = [one.verdict for one in decided(found).verdicts if one.kind == "beats"]
    assert [(one.claim.statement, one.publication_level) for one in said] == [
        ("one earned more than equal weight.", "qualified"),
        ("Another agent earned more than equal weight.", "no-claim"),
    ]
    navs, even = {"one": books("one", own)[3:]}, {"equal weight": books("equal weight", base)}  # it starts late
    item = measured(replace(material, navs=navs, baselines=even), judged)[
        "season.excess[agent=one,baseline=equal weight]"
    ]
    assert (item.n, item.method.partition(";")[0]) == (21, "mean daily difference from the end of its first day on")
    assert item.value == pytest.approx(np.mean(np.diff(own[3:]) / own[3:-1] - np.diff(base[3:]) / base[3:-1]))
    assert item.detail["whole"] == pytest.approx(own[-1] / 100_000 - base[-1] / base[3])
    names = [f"season.excess[agent={name},baseline=equal weight]" for name in ("one", "two")]
    names += [f"season.return[agent={name}]" for name in ("one", "two")]
    for one, two, wanted in (  # a season that is short, a book that is lost
        (path(1, 0.0, 5), (), ["too few days", "no common days", "ok", "no days"]),
        ([50_000.0, 0.0], path(3, 0.0), ["its value fell to zero", "ok", "its value fell to zero", "ok"]),
    ):
        navs = {"one": books("one", one), "two": books("two", two)}
        made = replace(material, navs=navs, baselines=even)
        assert states(measured(made, judged), *names) == wanted


@pytest.mark.parametrize("text", ["", "The same words every day."])
def test_checks_that_reconcile_texts_of_one_length_and_texts_that_address_the_judge(material, judged, found, text):
    counts = (("fill", 8, 6), ("cash", 2, 2), ("nav", 10, 0))  # the last is none of a statement
    checks = tuple(tracks.SeasonCheck(agent="one", kind=kind, checks=n, passed=ok) for kind, n, ok in counts)
    changed, said = replace(material, checks=checks), (Rationale(text=text, kind="summary"),)
    for agent in material.steps:
        flags = (INSTRUCTION_LIKE,) * (agent == "one")
        changed = redecided(changed, agent, lambda k, flags=flags: {"rationales": said, "flags": flags * (k == 0)})
    other = measured(changed, judged)
    assert (other["season.reliability[agent=one]"].value, other["season.reliability[agent=one]"].n) == (80.0, 10)
    assert states(other, "season.reliability[agent=two]", "season.verbosity[judge=reader]") == [
        "nothing could be checked", "lengths do not differ",
    ]  # fmt: skip
    flagged = other["agent.flagged_texts[agent=one]"]
    assert (flagged.detail["count"], flagged.n) == (1, 11)
    assert other.keys() - found.keys() == {f"agent.flagged_texts[agent={name}]" for name in material.steps}


def test_the_ledger_counts_numbers_and_silent_steps_and_draws_of_a_long_record(found, judged, material, monkeypatch):
    whole = found["season.ledger[agent=one]"]
    mine = {step.decision.record_id for step in material.steps["one"]}
    lines = [row for row in judged.evidence if row.decision in mine]
    assert sum(whole.detail["counts"].values()) == len(lines)
    assert whole.n == sum(row.state != "own_action" for row in lines)
    assert whole.detail["silent"] == len(mine - {row.decision for row in lines})
    monkeypatch.setattr("assaymark.workflow.tracks.season_facts.SAMPLED", 4)
    some = measured(material, judged)["season.ledger[agent=one]"]
    assert (some.value, some.n, some.detail["counts"]) == (whole.value, whole.n, whole.detail["counts"])
    assert 0 < some.detail["rows"] < whole.detail["rows"]  # what chance reaches is drawn of some decisions


@pytest.fixture(scope="module")
def run(folder, material, judged):
    points = {
        name: {one.judge: one.score.score.composite for one in judged.grades if one.agent == name and one.score.score}
        for name in material.steps
    }
    table = season_table([Contestant(name, ones) for name, ones in points.items()])
    replaced = [("two", "Acme", "replaced", 1), ("one", "NVX", "kept", 2), ("one", "QAD", "kept", 5)]
    judged = replace(judged, replaced=tuple(tracks.SeasonReplaced(*one, "because") for one in replaced))
    decisions = SeasonVerdicts((), (), ())
    return tracks.season_run(
        tracks.stored_season(folder), material, judged, (), table, decisions, {"reader": "datasheet/reader.html"}
    )


def test_what_is_shown_is_what_the_tables_hold(run, material):
    assert (run.first, run.last, run.days, run.source) == ("2024-03-01", "2024-03-15", 11, "")
    assert {name: len(steps) for name, steps in run.steps.items()} == {"one": 11, "two": 11}
    assert (len(run.universe), run.sheets, run.plan) == (6, {"reader": "datasheet/reader.html"}, material.season)
    assert sorted((one.agent, one.judge, one.state) for one in run.grades) == [
        (agent, judge, "ok") for agent in ("one", "two") for judge in sorted(JUDGES)
    ]
    assert [(one.name, one.baseline) for one in run.paths][:3] == [("one", False), ("two", False), ("60/40", True)]
    assert {one.start for one in run.paths} == {100_000.0}
    assert run.paths[1].nav == tuple(one.nav for one in material.navs["two"])
    assert sorted((one.name, one.state, one.count) for one in run.blinding) == [
        ("Acme", "replaced", 1), ("NVX", "kept", 2), ("QAD", "kept", 5)
    ]  # fmt: skip
    lines = run.ledger["one"]
    assert {judge for one in lines for judge in one.judges} <= set(JUDGES)
    assert any(one.numbers is not None for one in lines)  # both layers
    assert any(one.judges for one in lines)
    assert [one.number for one in lines] == sorted(one.number for one in lines)


def test_everything_that_is_said_of_a_played_season_has_words(run, material, judged, found):
    """Also of a season that continued after judging, of a judge that was asked again, and of a text that instructs."""
    grades = judged.grades
    late = {"note.judged_to", "note.judge_again", "note.instructing"}
    assert not late & {one.key for one in tracks.season_notes(material, grades)}
    parts = [replace(part, first_key="0" * 64) for part in grades[0].score.grades.parts]
    again = replace(grades[0].score, grades=replace(grades[0].score.grades, parts=tuple(parts)))
    hostile = redecided(material, "one", lambda k: {"flags": ("instruction-like text",) * (k == 0)})
    changed = [replace(one, last="2024-03-13") for one in (replace(grades[0], score=again), *grades[1:])]
    notes = {one.key: one for one in tracks.season_notes(hostile, changed) if one.key in late}
    said = notes["note.judge_again"].values
    assert (said["judge"], said["n"]) == (grades[0].judge, len(parts))
    assert dict(notes["note.judged_to"].values) == {"judged": "2024-03-13", "last": "2024-03-15"}
    assert dict(notes["note.instructing"].values) == {"agent": "one", "n": 1, "of": 11}
    for words in map(catalogue, languages()):
        for one in decided(found).verdicts:
            assert all(words.render(reason) for reason in (one.statement, *one.reasons, *one.condition))
        assert all(words.render(note) for note in (*run.notes, *notes.values()))
