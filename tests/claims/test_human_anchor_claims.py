"""People as the anchor of verdicts: planted worlds in which all judges err alike, and in which people agree."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from assaymark.claims import certificates, decide_claims, index, verify
from assaymark.metrology import Labels, ScoreColumns, analyse, score_table_of
from assaymark.protocol import parse_study
from assaymark.records import to_json

AGENTS = ("ash", "birch", "cedar")
JUDGES = {"auditor": "north", "reader": "south", "critic": "east"}
CLUSTERS, CYCLES = 12, 6


@cache
def world(*, liking: float = 0.0, better: float = 0.0, own: bool = False, labelled: int = 40, noise: float = 0.3,
          graders: int = 3, double: int = 10, refused: str = "", bonus: float = 0.0, longer: bool = False,
          tastes: tuple[float, ...] = (), rubric: str = "", wide: bool = False):  # fmt: skip
    """Measurements of a study: ``liking`` is what every judge gives ash and nobody else does, ``better`` is real;
    ``bonus`` is what the judge of ash's maker adds, and ``longer`` makes ash write twice as much; ``tastes`` are what
    each grader adds for ash, where all of them grade every drawn cycle. ``wide`` stretches 1 to 5 to 0 to 100."""
    rng = np.random.default_rng(5)
    cycle = [(f"c{g}", f"c{g}/{k}") for g in range(CLUSTERS) for k in range(CYCLES)]
    quality = 3 + rng.normal(0, 0.4, (len(cycle), 1)) + rng.normal(0, 0.45, (len(cycle), len(AGENTS)))
    quality[:, 0] += better
    rows, grades = [], {}
    drawn = [cycle[k][1] for k in rng.permutation(len(cycle))[:labelled]]
    for (cluster, name), true in zip(cycle, quality, strict=True):
        for a, agent in enumerate(AGENTS):
            about = {"trajectory": f"{name} {agent}", "agent": agent, "cycle": name, "cluster": cluster, "trial": 1}
            about |= {"agent_family": "north" if own and a == 0 else f"maker-{agent}"}
            about |= {"length": 200 if a == 0 else 100} if longer else {}
            for judge, family in JUDGES.items():
                score = true[a] + (liking if a == 0 else 0.0) + rng.normal(0, 0.3)
                score += bonus if a == 0 and family == "north" else 0.0
                rows.append({**about, "judge": judge, "family": family, "score": float(np.clip(round(score), 1, 5))})
            if name in drawn:
                who = rng.permutation(graders)[: 2 if name in drawn[:double] and graders > 1 else 1]
                grades[name, agent] = {
                    f"g{r}": {"score": float(np.clip(round(true[a] + rng.normal(0, noise)), 1, 5))} for r in who
                } if not tastes else {
                    f"g{r}": {"score": float(np.clip(round(true[a] + taste * (a == 0) + rng.normal(0, noise)), 1, 5))}
                    for r, taste in enumerate(tastes)
                }  # fmt: skip
    judges = "".join(f'[[judges]]\nname = "{n}"\nmodel = "elsewhere/{n}"\nfamily = "{f}"\n' for n, f in JUDGES.items())
    if wide:
        rubric = "rubric.scale = [0, 100]\n"
        for row in (*rows, *(given for by_grader in grades.values() for given in by_grader.values())):
            row["score"] = 25 * (row["score"] - 1)
    study = parse_study(
        f'name = "w"\nseed = 1\nrubric.name = "elsewhere"\n{rubric}claims.dimensions = ["aggregate"]\n{judges}'
    )
    table = score_table_of(ScoreColumns.of(pa.Table.from_pylist(rows), "w", ["score"], study.scale))
    pi = {name: labelled / len(cycle) for _, name in cycle}
    labels = Labels(grades, pi, frozenset(drawn), refused)
    return tuple(analyse(table, study, rng=np.random.default_rng(1), people=labels)), study


def read(made):
    """A certificate as it is read from its file."""
    return json.loads(json.dumps(to_json(made)))


@cache
def decided(**given):
    measurements, study = world(**given)
    verdicts = decide_claims(measurements, study, "0" * 64)
    return {one.claim.id: one for one in verdicts}, measurements, study


ABOVE = "above[dimension=aggregate,high=ash,low=birch]"
FIRST = "first[agent=ash,dimension=aggregate]"
OWN_MAKER = {"better": 0.22, "own": True, "bonus": 0.45, "labelled": 70}


def test_judges_that_all_favour_an_agent_are_contradicted() -> None:
    verdicts, measurements, _ = decided(liking=0.9)
    for name in (ABOVE, FIRST):
        one = verdicts[name]
        assert one.human_anchor == "contradicts"
        assert one.publication_level == "no-claim"
        assert one.binding == ("human_anchor",)
        assert any("3 human graders of this study see less than half" in text for text in one.reasons)
    alone = decide_claims([m for m in measurements if not m.name.startswith("human.")], world(liking=0.9)[1], "0" * 64)
    assert {one.claim.id: one.publication_level for one in alone}[ABOVE] == "qualified"
    item = index(measurements).get("human.contrast", "aggregate", high="ash", low="birch")
    assert item is not None
    assert -0.5 < item.value < 0.5
    assert item.detail["rectifier"] == pytest.approx(-0.9, abs=0.25)  # judges favour ash by that much


def test_an_order_that_people_see_is_confirmed_in_their_name() -> None:
    verdicts, measurements, study = decided(better=0.9)
    one = verdicts[ABOVE]
    assert one.human_anchor == "confirms"
    assert one.publication_level == "qualified"  # no control texts were graded
    assert one.conditions[1].id == "people"
    assert "how the 3 human graders of this study would" in str(one.condition)
    assert verdicts[FIRST].human_anchor == "confirms"
    others = (one for name, one in verdicts.items() if name.startswith("above") and "ash" not in name)
    assert {one.human_anchor for one in others} == {"not-tested"}
    sample = next(m for m in measurements if m.name == "human.sample")
    assert (sample.value, sample.n, sample.detail["graders"]) == (1.0, 40, ["g0", "g1", "g2"])
    # Holm runs over all claims put to people.
    known = index(measurements)
    next(iter(certificates(verdicts.values(), known, study)))
    put = known.memo["put to people"]
    assert {FIRST, ABOVE} <= set(put)
    assert put[FIRST] == max(put[ABOVE], put["above[dimension=aggregate,high=ash,low=cedar]"])


def test_a_confirmation_lifts_what_rests_on_the_judge_of_the_agents_own_maker() -> None:
    """One judge of three likes the agent of its maker, so that the order does not hold where it stands aside."""
    above_cedar = ABOVE.replace("birch", "cedar")
    verdicts, measurements, study = decided(**OWN_MAKER)
    one = verdicts[above_cedar]
    assert (one.own_family, one.human_anchor, one.publication_level) == ("rests-on-own-family", "confirms", "qualified")
    (cap,) = [cap for cap in one.caps if cap.field == "own_family"]
    assert (cap.level, cap.lifted) == ("no-claim", True)
    assert [c.id for c in one.conditions if "own makers" in c.text] == ["own-family"]
    alone = decide_claims([m for m in measurements if not m.name.startswith("human.")], study, "0" * 64)
    assert {v.claim.id: v.publication_level for v in alone}[above_cedar] == "no-claim"
    # graders who do not agree confirm it and lift nothing
    apart = [replace(m, value=0.31) if m.name == "human.agreement" else m for m in measurements]
    thin = {v.claim.id: v for v in decide_claims(apart, study, "0" * 64)}[above_cedar]
    assert (thin.human_anchor, thin.publication_level) == ("confirms", "no-claim")
    assert not any(cap.lifted for cap in thin.caps)


def test_a_confirmation_lifts_length_and_never_the_lack_of_control_texts() -> None:
    one = decided(better=0.9, longer=True)[0][ABOVE]
    assert one.length == "may-be-length"
    assert {cap.field: cap.lifted for cap in one.caps} == {"length": True, "adversarial": False}
    assert one.binding == ("adversarial",)
    assert not any(c.id == "length" for c in one.conditions)
    assert any("It may be length" in text for text in one.reasons)


@pytest.mark.parametrize(
    ("tastes", "who"),
    [
        ((0.2, -0.2, 0.1, -0.1, 0.0), "human graders"),
        ((1.9, -0.9, 1.8, -0.9, 1.0), "the 5 human graders of this study"),  # who mean what they say, each differently
        ((0.2, -0.2, 0.1, -0.1), "the 4 human graders of this study"),
    ],
)
def test_five_graders_who_see_alike_stand_for_others(tastes: tuple[float, ...], who: str) -> None:
    verdicts, measurements, study = decided(better=0.8, tastes=tastes)
    one = verdicts[ABOVE]
    assert one.human_anchor == "confirms"
    assert f"This is how {who} would rank them" in next(c.text for c in one.conditions if c.id == "people")
    item = index(measurements).get("human.contrast", "aggregate", high="ash", low="birch")
    assert item is not None
    # Five own differences are tested by their own spread, not by that of cycles alone.
    assert ("p_graders" in item.detail) == (len(tastes) == 5)
    assert (item.detail.get("p_graders", 1.0) <= study.inference.alpha) == (who == "human graders")
    (made,) = certificates([one], index(measurements), study)
    assert verify(read(made)).differences == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"labelled": 16}, "too few labels: 16 cycles"),
        ({"refused": "no draw was stored"}, "not a random sample of these records (no draw was stored)"),
    ],
)
def test_labels_that_anchor_nothing_say_why(given, said) -> None:
    one = decided(better=0.9, **given)[0][ABOVE]
    assert one.human_anchor == "not-tested"
    assert any(said in text for text in one.reasons), one.reasons


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"better": 0.3, "labelled": 20}, "leave it undecided; about 44 labelled cycles would be needed."),
        ({"better": 0.5, "labelled": 20}, "leave it undecided, though 20 often suffice."),
    ],
)
def test_an_order_that_people_leave_open_says_how_many_labels_it_takes(given, said) -> None:
    one = decided(**given)[0][ABOVE]
    assert (one.human_anchor, one.publication_level) == ("undecided", "qualified")
    assert next(c.text for c in one.conditions if c.id == "people").endswith(said)
    assert "human_anchor" not in {cap.field for cap in one.caps}


def test_graders_who_disagree_keep_their_word_and_lift_nothing() -> None:
    one = decided(better=1.4, noise=1.3, labelled=60, double=40)[0][ABOVE]
    assert one.human_anchor == "confirms"
    assert "which lifts no other limit: the graders agree at 0." in str(one.condition)
    alone = decided(better=0.9, graders=1, double=0)[0][ABOVE]
    assert "how the human grader of this study would rank them" in str(alone.condition)
    assert "agreement among the graders was not measured" in str(alone.condition)


@pytest.mark.parametrize(
    "given",
    [{"better": 0.9}, {"liking": 0.9}, {"better": 0.2}, {"better": 0.9, "labelled": 16}, OWN_MAKER,
     {"better": 0.9, "refused": "-"}, {"better": 0.9, "longer": True}, {"better": 0.9, "wide": True}],
)  # fmt: skip
def test_certificates_recompute_what_people_say(given) -> None:
    verdicts, measurements, study = decided(**given)
    known = index(measurements)
    made = {
        verdict.claim.id: read(one) for verdict in verdicts.values() for one in certificates([verdict], known, study)
    }
    assert {name: verify(one).differences for name, one in made.items()} == dict.fromkeys(made, ())
    if given == {"better": 0.9}:
        edited = made[ABOVE]
        item = next(one for one in edited["people"] if one["id"].startswith("human.labels"))
        item["people"] = [[None if one is None else 3.0 for one in row] for row in item["people"]]
        assert not verify(edited).ok


@pytest.mark.parametrize(
    "other", [{"rubric": 'rubric.agreement = "icc"\n'}, {"rubric": 'rubric.agreement = "alpha"\n'}, {"wide": True}]
)
def test_people_agree_by_the_coefficient_that_stands_beside_them(other) -> None:
    """Judges are compared with people by kappa, so that people are, however judges are compared with each other."""
    plain, found = (index(decided(better=0.9, **given)[1]) for given in ({}, other))
    assert found.get("kappa.mean_pairwise", "aggregate").detail["coefficient"] in ("icc", "alpha")
    one, same = (known.get("human.agreement", "aggregate") for known in (found, plain))
    assert (one.value, one.low, one.high, one.method) == (
        *map(pytest.approx, (same.value, same.low, same.high)),
        same.method,
    )
    assert one.value != pytest.approx(one.detail["icc"])
    assert one.detail["icc"] == pytest.approx(same.detail["icc"])
    one, same = (known.get("human.judge", "aggregate", judge="reader") for known in (found, plain))
    assert one.value == pytest.approx(same.value, abs=0.01)  # means of two people are halves on 1 to 5 alone
    assert (one.detail["ceiling"][0], one.method) == (pytest.approx(same.detail["ceiling"][0]), same.method)


def test_each_judge_stands_beside_people() -> None:
    measurements, _ = world(liking=0.9)
    known = index(measurements)
    for judge in JUDGES:
        item = known.get("human.judge", "aggregate", judge=judge)
        assert item is not None
        assert item.n == 120
        assert item.detail["bias"]["estimate"] == pytest.approx(0.3, abs=0.12)  # 0.9 on one of three agents
        assert item.detail["bias_by_family"]["maker-ash"]["estimate"] == pytest.approx(0.9, abs=0.2)
        assert item.detail["ceiling"][0] == known.get("human.agreement", "aggregate").value
    assert sum(m.name == "human.contrast" for m in measurements) == 6  # on the one criterion and the overall score
