"""What is measured of a judged season: every number follows from its tables, and what is not there has a state."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

import numpy as np
import pytest
from season_runs import NOW, begun, market, season_text, stored

from assaymark.claims import MISSING, SILENT, SINGLE, Season, SeasonGates, catalogue, decide_season, english, languages
from assaymark.cli import models
from assaymark.errors import InputError, LedgerError
from assaymark.judging import band
from assaymark.metrology import alpha_report, jackknife_kappa
from assaymark.plan import ClusterOrder, Missing
from assaymark.prompting import INSTRUCTION_LIKE
from assaymark.protocol import DatasheetLimits
from assaymark.records import Measurement, Rationale, measurement_id
from assaymark.report.season import Words
from assaymark.workflow import RunFolder, Store
from assaymark.workflow.tracks import (
    SeasonCheck,
    SeasonGrade,
    SeasonJudgments,
    SeasonMaterial,
    SeasonNav,
    SeasonScores,
    judge_season,
    kappa_measurement,
    parse_season,
    run_season,
    season_findings,
    season_material,
    season_notes,
)

JUDGES = ("auditor", "reader", "allocator")
PANEL = "".join(
    f'\n[[panel]]\nname = "{name}"\nfamily = "j{name}"\nmodel = "reference/season-{name}"\ntrials = 2\n'
    for name in JUDGES
)
Found = dict[str, Measurement]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A judged season of two agents and eleven days in three weeks, with two replicates. Not to be changed."""
    path = tmp_path_factory.mktemp("measured")
    text = season_text(head="universe = 6\nreplicates = 2") + PANEL
    found = begun(path / "run", f'{text}\n[market]\nsource = "{stored(path / "m", market())}"\n', models())
    run_season(found, models(), now=NOW)
    judge_season(found, models())
    return found


@pytest.fixture(scope="module")
def material(folder: RunFolder) -> SeasonMaterial:
    return season_material(folder)


@pytest.fixture(scope="module")
def judged(folder: RunFolder) -> SeasonJudgments:
    return SeasonJudgments.read(Store(folder))


def measured(material: SeasonMaterial, judged: SeasonJudgments) -> Found:
    measurements, _ = season_findings(material, judged, rng=np.random.default_rng(5))
    found = {one.id: one for one in measurements}
    assert len(found) == len(measurements)
    return found


@pytest.fixture(scope="module")
def found(material: SeasonMaterial, judged: SeasonJudgments) -> Found:
    return measured(material, judged)


def regraded(judged: SeasonJudgments, change: Callable[[SeasonGrade], SeasonGrade | None]) -> SeasonJudgments:
    """The same judgments with grades that are changed or left out."""
    grades = (change(one) for one in judged.grades)
    return replace(judged, grades=tuple(one for one in grades if one is not None))


def unusable(grade: SeasonGrade) -> SeasonGrade:
    grades = replace(grade.score.grades, state="refused", reason="no", reasoning={}, evidence={})
    return replace(grade, score=replace(grade.score, grades=grades, score=None, capped=(), disagreement=None))


def test_every_quantity_is_measured_of_everybody(found: Found):
    of_agents = ("total", "outcome", "efficiency", "reliability", "lookahead", "thrash", "decisions", "return",
                 "drawdown", "ledger")  # fmt: skip
    of_judges = ("self_preference", "alone", "verbosity", "judge_noise", "invalid", "author_probe")
    wanted = [measurement_id(f"season.{name}", {"agent": agent}) for name in of_agents for agent in ("one", "two")]
    wanted += [measurement_id(f"season.{name}", {"judge": judge}) for name in of_judges for judge in JUDGES]
    wanted += [f"season.noise[of={name}]" for name in ("one", "two", "panel")]
    wanted += [f"season.axis[agent=one,axis={axis}]" for axis in ("reasoning", "evidence", "process")]
    assert set(wanted) <= found.keys()
    assert "season.kappa[]" in found


def test_a_number_has_a_denominator_and_what_is_none_has_a_state(found: Found):
    for one in found.values():
        assert (one.value is None) == (one.state != "ok"), one.id
        assert one.n_of
        assert (one.low is None) == (one.high is None) == (one.level is None)
        if one.low is not None and one.high is not None and one.value is not None:
            assert one.low <= one.value <= one.high


def test_composites_and_totals_are_those_of_the_grades(material: SeasonMaterial, judged: SeasonJudgments):
    found = measured(replace(material, seconds={}), judged)
    given = {
        judge: fmean(
            one.score.score.composite
            for one in judged.grades
            if (one.agent, one.judge, one.scope) == ("one", judge, "whole") and one.score.score is not None
        )
        for judge in JUDGES
    }
    for judge, points in given.items():
        assert found[f"season.composite[agent=one,judge={judge}]"].value == pytest.approx(points)
        left = found[f"season.without[agent=one,judge={judge}]"]
        assert left.n == 2
        assert left.value == pytest.approx(median(value for name, value in given.items() if name != judge))
    total = found["season.total[agent=one]"]
    assert total.value == pytest.approx(median(given.values()))
    assert (total.detail["low"], total.detail["high"]) == (
        pytest.approx(min(given.values())),
        pytest.approx(max(given.values())),
    )


def test_efficiency_is_a_tenth_of_a_total(found: Found):
    total, quick = found["season.total[agent=one]"], found["season.efficiency[agent=one]"]
    assert quick.value is not None
    assert total.value == pytest.approx(0.9 * total.detail["median"] + 0.1 * quick.value)


def test_the_contrast_is_over_weeks_with_the_totals_beside_it(found: Found, judged: SeasonJudgments):
    """Mean over weeks of the mean over judges; three weeks that follow each other are no test."""
    (contrast,) = [one for one in found.values() if one.name == "contrast"]
    high, low = (found[f"season.total[agent={contrast.labels[side]}]"].value or 0.0 for side in ("high", "low"))
    assert contrast.detail["totals_gap"] == pytest.approx(high - low)
    assert contrast.detail["noise_floor"] > 0
    assert (contrast.value, contrast.n, contrast.n_of) == (None, 3, "common periods")
    assert contrast.state.startswith(
        "cannot be tested (3 common clusters that follow each other in time; 12 are needed"
    )
    weeks: dict[str, dict[str, list[float]]] = {}
    for one in judged.grades:
        if one.scope == "period" and one.score.score is not None:
            weeks.setdefault(one.agent, {}).setdefault(one.period, []).append(one.score.score.composite)
    mean = {agent: fmean(fmean(points) for points in found.values()) for agent, found in weeks.items()}
    expected = mean[contrast.labels["high"]] - mean[contrast.labels["low"]]
    assert contrast.detail["gap"] == pytest.approx(expected)
    assert expected >= 0
    dropped = {one.labels["dropped"] for one in found.values() if one.name == "lofo.contrast"}
    assert len(dropped) == len(JUDGES)


def test_exchangeable_weeks_are_tested_from_three(material: SeasonMaterial, judged: SeasonJudgments):
    inference = material.season.inference.model_copy(update={"cluster_order": "exchangeable"})
    season = material.season.model_copy(update={"inference": inference})
    found = measured(replace(material, season=season), judged)
    (contrast,) = [one for one in found.values() if one.name == "contrast"]
    assert contrast.method.endswith("over 3 clusters (own variance " + contrast.method.rpartition("variance ")[2])
    assert found["order.autocorrelation[dimension=aggregate]"].detail["order"] == "exchangeable"


def test_lengths_are_held_equal_unless_the_plan_says_not(material: SeasonMaterial, judged: SeasonJudgments):
    kept = [one for one in measured(material, judged).values() if one.name == "length.contrast"]
    assert len(kept) == 1
    claims = material.season.claims.model_copy(update={"length": "off"})
    season = material.season.model_copy(update={"claims": claims})
    off = measured(replace(material, season=season), judged)
    assert not [one for one in off.values() if one.name == "length.contrast"]


def test_the_published_noise_of_the_panel_is_that_of_a_mean(found: Found):
    noise = found["season.noise[of=panel]"]
    assert noise.value is not None
    assert noise.detail["trials"] == 2
    assert noise.value == pytest.approx(noise.detail["one_grading"] / np.sqrt(2))


def test_the_same_generator_makes_the_same_numbers(material: SeasonMaterial, judged: SeasonJudgments, found: Found):
    assert measured(material, judged) == found


@pytest.mark.parametrize(("order", "units"), [("consecutive", "block"), ("exchangeable", "cluster")])
def test_the_interval_of_kappa_is_a_jackknife_over_periods(material: SeasonMaterial, order: ClusterOrder, units: str):
    """Twelve weeks that follow each other are four blocks; the bootstrap stays in the detail."""
    rng = np.random.default_rng(2)
    made = {f"w{k:02d}": {agent: 50 + rng.normal(0, 20) for agent in ("one", "two", "three")} for k in range(12)}
    periods = {
        week: {
            agent: {judge: float(np.clip(true + rng.normal(0, 8), 0, 100)) for judge in JUDGES}
            for agent, true in row.items()
        }
        for week, row in made.items()
    }
    scores = SeasonScores(("one", "two", "three"), {j: j for j in JUDGES}, {}, {}, periods, {}, {})
    plan = material.scoring
    kappa = kappa_measurement(scores, plan, level=0.95, rng=rng, order=order)
    weeks = [week for week, row in periods.items() for _ in row]
    ratings = np.array([
        [("weak", "mixed", "strong").index(band(value, plan=plan)) + 1 for value in grades.values()]
        for row in periods.values() for grades in row.values()
    ])  # fmt: skip
    expected = jackknife_kappa(ratings, weeks, categories=3, consecutive=order == "consecutive")
    assert (kappa.low, kappa.high) == pytest.approx((expected.low, expected.high))
    assert f"delete-one-{units} jackknife" in kappa.method
    assert "cluster bootstrap" in kappa.detail["bootstrap"]["method"]


def test_alpha_and_variance_components_take_periods_as_clusters(judged: SeasonJudgments, found: Found):
    points: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in judged.grades:
        if one.scope == "period" and one.score.score is not None:
            points[one.period, one.agent][one.judge].append(one.score.score.composite)
    rows = sorted(points)
    table = [[fmean(points[row][judge]) if judge in points[row] else np.nan for judge in JUDGES] for row in rows]
    expected = alpha_report(table, [period for period, _ in rows], consecutive=True).alpha
    alpha = found["panel.alpha[dimension=aggregate]"]
    assert (alpha.value, alpha.low, alpha.high) == pytest.approx((expected.estimate, expected.low, expected.high))
    assert (alpha.n, alpha.n_of) == (len(rows), "agents' periods")
    within, by_period = (
        found[f"panel.variance[dimension=aggregate,part={x}]"] for x in ("agent x cycle", "agent x cluster")
    )
    assert within.state == "undefined: one cycle in each cluster, needs two"
    assert by_period.value is not None
    assert "it includes agent x cycle" in by_period.method
    general = found["panel.generalizability[dimension=aggregate]"]
    agent, error = general.detail["agent"], general.detail["error"]
    assert general.value == pytest.approx(agent / (agent + error))
    states = {one.state for name in ("panel.alpha", "panel.variance", "panel.generalizability")
              for one in found.values() if one.name == name and one.state != "ok"}  # fmt: skip
    assert all(Words(catalogue(language)).has(f"state.{state}") for language in languages() for state in states)


def test_a_judge_that_refuses_everything_is_absent_and_counted(material: SeasonMaterial, judged: SeasonJudgments):
    found = measured(material, regraded(judged, lambda one: unusable(one) if one.judge == "reader" else one))
    assert found["season.composite[agent=one,judge=reader]"].state == "refused"
    assert found["season.total[agent=one]"].detail["absent"] == ["reader"]
    assert found["season.total[agent=one]"].detail["judges"] == 2
    assert found["season.alone[judge=reader]"].state == "fewer than two agents"
    assert found["season.self_preference[judge=reader]"].state == "no agent graded by all judges"
    assert found["season.kappa[]"].detail["judges"] == ["allocator", "auditor"]
    refused = found["season.invalid[judge=reader]"]
    assert refused.detail["refused"] == sum(one.judge == "reader" for one in judged.grades)
    guesses = sum(one.judge == "reader" for one in judged.guesses)
    outcomes = sum(one.judge == "reader" and one.score.outcome is not None for one in judged.grades)
    assert refused.n == refused.detail["refused"] + guesses + outcomes
    assert refused.value == refused.detail["refused"] / refused.n


def test_a_judge_that_lacks_too_much_is_left_out_by_the_plan(material: SeasonMaterial, judged: SeasonJudgments):
    def one_period(one: SeasonGrade) -> SeasonGrade:
        bad = (one.judge, one.agent, one.period) == ("reader", "one", "2024-W10")
        return unusable(one) if bad else one

    found = measured(material, regraded(judged, one_period))
    assert found["season.composite[agent=two,judge=reader]"].state == "left out"
    assert found["season.total[agent=two]"].detail["absent"] == ["reader"]
    detail = found["season.invalid[judge=reader]"].detail
    assert detail["lacking"] == {"one": [1, 6]}
    assert detail["left_out"] == "8.3% of its replies are missing, at most 5.0%"
    (order,) = [one for one in decide_season(list(found.values()), SeasonGates(), "plan").verdicts
                if one.verdict.claim.id.startswith("above")]  # fmt: skip
    assert "qualified" in {cap.level for cap in order.verdict.caps}

    loose = material.season.model_copy(update={"missing": Missing(per_judge=0.5, per_agent=0.5)})
    kept = measured(replace(material, season=loose), regraded(judged, one_period))
    assert kept["season.composite[agent=two,judge=reader]"].state == "ok"
    decided = decide_season(list(kept.values()), SeasonGates(), "plan").verdicts
    texts = [reason.text for one in decided for reason in one.verdict.conditions if reason.id == "missing-replies"]
    assert all(text == "reader gave no usable grade on 1 of 12 records." for text in texts)
    stop = material.season.model_copy(update={"missing": Missing(on_excess="stop")})
    with pytest.raises(LedgerError, match=r"too many replies are missing: judge reader: 8.3%"):
        measured(replace(material, season=stop), regraded(judged, one_period))


def test_an_agent_without_a_usable_grade_has_no_number_and_no_place(material: SeasonMaterial, judged: SeasonJudgments):
    found = measured(material, regraded(judged, lambda one: unusable(one) if one.agent == "two" else one))
    for name in ("total", "outcome", "efficiency"):
        assert found[f"season.{name}[agent=two]"].state == "not graded"
    assert not [one for one in found.values() if one.name == "contrast"]
    decided = decide_season(list(found.values()), SeasonGates(), "plan")
    assert decided.place("two").first is None


def test_a_season_with_no_usable_grade_says_nothing(material: SeasonMaterial, judged: SeasonJudgments):
    found = measured(material, regraded(judged, unusable))
    assert found["season.kappa[]"].value is None
    decided = decide_season(list(found.values()), SeasonGates(), "plan")
    assert decided.tiers == ()
    assert {one.verdict.publication_level for one in decided.verdicts} == {"no-claim"}


def test_one_judge_has_nobody_to_agree_with(material: SeasonMaterial, judged: SeasonJudgments):
    found = measured(material, regraded(judged, lambda one: one if one.judge == "auditor" else None))
    assert found["season.kappa[]"].state == SINGLE
    for name in ("self_preference", "alone", "verbosity"):
        assert found[f"season.{name}[judge=auditor]"].state == "one judge"
    assert found["season.without[agent=one,judge=auditor]"].state == "no other judge"


def test_without_periods_agreement_is_not_defined_and_nothing_is_tested(
    material: SeasonMaterial, judged: SeasonJudgments
):
    found = measured(material, regraded(judged, lambda one: one if one.scope == "whole" else None))
    assert found["season.kappa[]"].state == MISSING
    (contrast,) = [one for one in found.values() if one.name == "contrast"]
    assert (contrast.value, contrast.n) == (None, 0)
    assert contrast.state.startswith("cannot be tested (0 common clusters")
    assert found["season.noise[of=one]"].state == "no replicates"
    decided = decide_season(list(found.values()), SeasonGates(), "plan")
    assert {one.verdict.publication_level for one in decided.verdicts if one.kind != "beats"} == {"no-claim"}


def test_without_a_measured_time_the_total_is_the_median(material: SeasonMaterial, judged: SeasonJudgments):
    found = measured(replace(material, seconds={}), judged)
    total = found["season.total[agent=one]"]
    assert found["season.efficiency[agent=one]"].state == "no timing"
    assert total.value == total.detail["median"]


def test_identical_replicates_of_a_rule_give_no_noise_floor_and_the_season_says_so(
    material: SeasonMaterial, judged: SeasonJudgments, found: Found
):
    noise = found["season.noise[of=two]"]
    assert (noise.value, noise.n, noise.state) == (None, 2, "identical repetitions")
    (contrast,) = [one for one in found.values() if one.name == "contrast"]
    assert contrast.detail["noise_floor"] > 0  # that of the judges
    assert Season(list(found.values()), SeasonGates(), "").unchanging(("one", "two")) == ("one", "two")
    (said,) = [one for one in season_notes(material, judged.grades, list(found.values())) if "identical" in one.key]
    assert english().render(said).startswith("All replicates of one and two are identical. They give no noise floor")


def test_only_usable_answers_are_timed_and_an_agent_without_one_has_no_total(
    material: SeasonMaterial, judged: SeasonJudgments
):
    first = material.steps["two"][0].decision.record_id

    def unanswered(keep: Collection[str]) -> SeasonMaterial:
        mine = tuple(
            one
            if one.decision.record_id in keep
            else replace(one, decision=replace(one.decision, flags=("no-answer",)))
            for one in material.steps["two"]
        )
        seconds = dict.fromkeys(material.seconds, 0.001) | {first: 120.0}
        return replace(material, steps={**material.steps, "two": mine}, seconds=seconds)

    found = measured(unanswered({first}), judged)
    quick, total = found["season.efficiency[agent=two]"], found["season.total[agent=two]"]
    assert (quick.n, quick.detail["seconds"]) == (1, 120.0)
    assert quick.value == pytest.approx(total.detail["median"] / 2)
    found = measured(unanswered(()), judged)
    for name in ("total", "efficiency"):
        assert (found[f"season.{name}[agent=two]"].value, found[f"season.{name}[agent=two]"].state) == (None, SILENT)
    assert found["season.composite[agent=two,judge=reader]"].value is not None
    assert found["season.kappa[]"].n == 3  # judges agree on an empty record, and that says nothing about them
    assert not [one for one in found.values() if one.name == "contrast"]
    place = decide_season(list(found.values()), SeasonGates(), "plan").place("two")
    assert (place.first, place.why.key) == (None, "claim.why.silent")


def test_the_file_names_the_scale_of_efficiency(material: SeasonMaterial, judged: SeasonJudgments):
    season = parse_season(season_text(head='universe = 6\nefficiency = {scale = "relative", reference_s = 5}'))
    assert season.scoring_plan.efficiency.scale == "relative"
    assert season.scoring_plan.digest != material.season.scoring_plan.digest
    seconds = {name: 2.0 if "-one" in name else 4.0 for name in material.seconds}
    found = measured(replace(material, season=material.season.model_copy(update={"efficiency": season.efficiency}),
                             seconds=seconds), judged)  # fmt: skip
    assert found["season.efficiency[agent=one]"].value == 100.0
    assert "the best of the season" in found["season.efficiency[agent=two]"].method
    with pytest.raises(InputError, match=r"efficiency\.scale"):
        parse_season(season_text(head='universe = 6\nefficiency = {scale = "best"}'))


def test_agents_that_write_nothing_or_always_as_much_show_no_verbosity(
    material: SeasonMaterial, judged: SeasonJudgments
):
    for text in ("", "The same words every day."):
        steps = {
            agent: tuple(
                replace(one, decision=replace(one.decision, rationales=(Rationale(text=text, kind="summary"),)))
                for one in ones
            )
            for agent, ones in material.steps.items()
        }
        found = measured(replace(material, steps=steps), judged)
        assert found["season.verbosity[judge=reader]"].state == "lengths do not differ"


def test_limits_of_datasheets_are_asked_of_every_judge(material: SeasonMaterial, judged: SeasonJudgments):
    season = material.season.model_copy(update={"datasheets": DatasheetLimits(slope=0.2)})
    found = measured(replace(material, season=season), judged)
    gates = [one for one in found.values() if one.name == "datasheet.gate"]
    assert {one.labels["judge"] for one in gates} == set(JUDGES)
    assert all(one.state.startswith("not measured: no datasheet") for one in gates)


def books(name: str, values: list[float], state: str = "ok") -> tuple[SeasonNav, ...]:
    return tuple(
        SeasonNav(day=f"2024-04-{at:02d}", agent=name, state=state, cash=0.0, nav=value, costs=0.0, positions={})
        for at, value in enumerate(values, start=1)
    )


def path(seed: int, drift: float, days: int = 25) -> list[float]:
    steps = np.random.default_rng(seed).normal(drift, 0.004, days)
    return [float(value) for value in 100_000 * np.cumprod(1 + steps)]


def test_returns_drawdowns_and_the_difference_from_a_baseline(material: SeasonMaterial, judged: SeasonJudgments):
    own, base = path(1, 0.01), path(2, 0.0)
    made = replace(
        material, navs={"one": books("one", own), "two": books("two", base)},
        baselines={"equal weight": books("equal weight", base), "cash": books("cash", [100_000.0] * 25)},
    )  # fmt: skip
    found = measured(made, judged)
    assert found["season.return[agent=one]"].value == pytest.approx(own[-1] / 100_000 - 1)
    assert found["season.return[baseline=cash]"].value == 0.0
    fall = found["season.drawdown[baseline=equal weight]"].value
    assert fall is not None
    assert fall < 0
    excess = found["season.excess[agent=one,baseline=equal weight]"]
    assert excess.detail["whole"] == pytest.approx((own[-1] - base[-1]) / 100_000)
    assert excess.low is not None
    assert excess.low > 0
    assert found["season.excess[agent=two,baseline=equal weight]"].state == "the difference does not vary"
    decided = decide_season(list(found.values()), SeasonGates(), "plan")
    said = [one.verdict for one in decided.verdicts if one.kind == "beats"]
    assert [(one.claim.statement, one.publication_level) for one in said] == [
        ("one earned more than equal weight.", "qualified"),
        ("Another agent earned more than equal weight.", "no-claim"),
    ]


def test_short_seasons_and_lost_books_have_no_difference(material: SeasonMaterial, judged: SeasonJudgments):
    base = {"equal weight": books("equal weight", path(2, 0.0))}
    short = replace(material, navs={"one": books("one", path(1, 0.0, 5)), "two": ()}, baselines=base)
    found = measured(short, judged)
    assert found["season.excess[agent=one,baseline=equal weight]"].state == "too few days"
    assert found["season.excess[agent=two,baseline=equal weight]"].state == "no common days"
    assert found["season.return[agent=two]"].state == "no days"
    navs = {"one": books("one", [50_000.0, 0.0]), "two": books("two", path(3, 0.0))}
    lost = replace(material, navs=navs, baselines=base)
    ruined = measured(lost, judged)
    assert ruined["season.return[agent=one]"].state == "its value fell to zero"
    assert ruined["season.excess[agent=one,baseline=equal weight]"].state == "its value fell to zero"


def test_data_reliability_is_the_share_of_checks_that_reconcile(material: SeasonMaterial, judged: SeasonJudgments):
    checks = (
        SeasonCheck(agent="one", kind="fill", checks=8, passed=6),
        SeasonCheck(agent="one", kind="cash", checks=2, passed=2),
        SeasonCheck(agent="one", kind="nav", checks=10, passed=0),
    )
    found = measured(replace(material, checks=checks), judged)
    one = found["season.reliability[agent=one]"]
    assert (one.value, one.n) == (80.0, 10)
    assert found["season.reliability[agent=two]"].state == "nothing could be checked"


def test_the_ledger_counts_numbers_and_silent_steps(found: Found, judged: SeasonJudgments, material: SeasonMaterial):
    one = found["season.ledger[agent=one]"]
    mine = {step.decision.record_id for step in material.steps["one"]}
    rows = [row for row in judged.evidence if row.decision in mine]
    assert sum(one.detail["counts"].values()) == len(rows)
    assert one.n == sum(row.state != "own_action" for row in rows)
    assert one.detail["silent"] == len(mine - {row.decision for row in rows})


def test_decisions_whose_texts_address_the_judge_are_counted(
    material: SeasonMaterial, judged: SeasonJudgments, found: Found
):
    (agent, (first, *rest)), *_ = material.steps.items()
    flagged = replace(first, decision=replace(first.decision, flags=(*first.decision.flags, INSTRUCTION_LIKE)))
    again = measured(replace(material, steps={**material.steps, agent: (flagged, *rest)}), judged)
    item = again[f"agent.flagged_texts[agent={agent}]"]
    assert (item.detail["count"], item.n) == (1, 1 + len(rest))
    assert again.keys() - found.keys() == {f"agent.flagged_texts[agent={name}]" for name in material.steps}


def test_of_a_long_record_some_decisions_show_what_chance_reaches(
    material: SeasonMaterial, judged: SeasonJudgments, found: Found, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("assaymark.workflow.tracks.season_measure.SAMPLED", 4)
    whole, some = found["season.ledger[agent=one]"], measured(material, judged)["season.ledger[agent=one]"]
    assert (some.value, some.n, some.detail["counts"]) == (whole.value, whole.n, whole.detail["counts"])
    assert 0 < some.detail["rows"] < whole.detail["rows"]


def test_a_name_is_a_label_and_changes_no_number(material: SeasonMaterial, judged: SeasonJudgments, found: Found):
    """The grades of two agents swapped: the numbers swap, and nothing else happens."""
    names = {"one": "two", "two": "one"}
    again = measured(replace(material, seconds={}), regraded(judged, lambda one: replace(one, agent=names[one.agent])))
    before = measured(replace(material, seconds={}), judged)
    for agent, other in names.items():
        for name in ("total", "outcome"):
            assert again[f"season.{name}[agent={agent}]"].value == before[f"season.{name}[agent={other}]"].value
    assert again["season.kappa[]"].value == before["season.kappa[]"].value


@pytest.mark.parametrize("language", languages())
def test_everything_that_is_said_of_a_played_season_has_words(found: Found, language: str):
    decided = decide_season(list(found.values()), SeasonGates(), "plan")
    words = catalogue(language)
    for one in decided.verdicts:
        assert words.render(one.statement)
        assert all(words.render(reason) for reason in (*one.reasons, *one.condition))


def test_an_agent_may_be_called_as_the_panel_is(material: SeasonMaterial, judged: SeasonJudgments):
    agents = tuple(
        one.model_copy(update={"name": "panel"}) if one.name == "two" else one for one in material.season.agents
    )
    called = replace(material, season=material.season.model_copy(update={"agents": agents}), steps={}, navs={})
    found = measured(
        called, regraded(judged, lambda one: replace(one, agent={"two": "panel"}.get(one.agent, one.agent)))
    )
    assert found["season.noise[kind=agent,of=panel]"].n_of == "replicates"
    assert found["season.noise[of=panel]"].n_of == "gradings"


def test_the_page_names_what_is_measured(found: Found):
    page = (Path(__file__).parents[2] / "docs" / "scoring.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith(("| `season.", "| `contrast`", "| `order."))]
    named = {name for row in rows for name in re.findall(r"`(?:season)?\.?([a-z_.]+)`", row.split("|")[1])}
    assert named >= {one.name.removeprefix("season.") for one in found.values()}
