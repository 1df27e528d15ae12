"""Laws of what may be said of a season, over seasons of any kind."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from season_measured import gate, measured

from assaymark.claims import SeasonGates, SeasonVerdicts, decide_season, english
from assaymark.records import Measurement

NAMES = ("alder", "birch", "cedar", "elm", "fir")
LEVELS = ("no-claim", "qualified", "headline")

points = st.integers(0, 200).map(lambda half: half / 2)
rows = st.tuples(points, points, points)
seasons = st.lists(rows, min_size=1, max_size=5).map(lambda ones: dict(zip(NAMES, ones, strict=False)))
tested = st.dictionaries(
    st.sampled_from([(a, b) for a in NAMES for b in NAMES if a != b]),
    st.fixed_dictionaries({}, optional={"p": st.floats(0.0001, 1.0), "floor": st.floats(0.0, 40.0)}),
    max_size=6,
)


def decided(measurements: list[Measurement]) -> SeasonVerdicts:
    judges = {one.labels["judge"] for one in measurements if one.name == "season.composite"}
    kept = [gate(judge, []) for judge in judges]
    return decide_season([*measurements, *kept], SeasonGates(on_failure="qualified"), "plan")


def claimed(found: SeasonVerdicts) -> set[tuple[str, str]]:
    """Every pair whose order is claimed."""
    pairs = {
        one.verdict.claim.subjects
        for one in found.verdicts
        if one.kind == "above" and one.verdict.publication_level != "no-claim"
    }
    return {(high, low) for high, low in pairs}


@given(seasons, tested)
def test_tiers_ranks_and_totals_follow_from_the_claimed_pairs_and_every_verdict_keeps_its_form(given_, pairs):
    found = decided(measured(given_, pairs=pairs))
    orders, listed = claimed(found), [agent for tier in found.tiers for agent in tier]
    # Every agent is in one tier, and no order is claimed in both directions.
    assert sorted(listed) == sorted(given_)
    assert [one.agent for one in found.places] == listed
    assert all(list(tier) == sorted(tier) for tier in found.tiers)
    assert not {(low, high) for high, low in orders} & orders
    # Every agent of a higher tier is claimed above every agent of a lower one, pair by pair.
    for upper, lower in combinations(found.tiers, 2):
        assert {(high, low) for high in upper for low in lower} <= orders
    # Ranks follow from the claimed pairs and nothing else; a total is shown only alone on one rank.
    size = {agent: len(tier) for tier in found.tiers for agent in tier}
    for one in found.places:
        assert one.first == 1 + sum(low == one.agent for _, low in orders)
        assert one.last == len(given_) - sum(high == one.agent for high, _ in orders)
        assert 1 <= one.first <= one.last <= len(given_)
        assert (one.first == one.last) == (size[one.agent] == 1)
        assert not one.shown or (one.first == one.last and one.level != "no-claim" and len(given_) > 1)
    first = {one.verdict.claim.subjects[0] for one in found.verdicts if one.kind == "first" and one.withheld is None}
    assert first == {one.agent for one in found.places if one.last == 1 < len(given_)}
    # What is unsupported has a phrase, what is qualified a condition, and what is no headline a field that binds.
    for one in found.verdicts:
        level = one.verdict.publication_level
        assert (one.withheld is None) == (level != "no-claim")
        assert bool(one.condition) == (one.verdict.condition is not None)
        assert one.condition or level != "qualified"
        assert bool(one.verdict.binding) == (level != "headline")
        assert one.verdict.reasons
        assert one.verdict.claim.statement == english().render(one.statement)


@given(seasons, st.floats(0.0, 10.0), st.floats(0.0, 10.0))
def test_more_noise_makes_no_order(given_, floor, more):
    assert claimed(decided(measured(given_, floor=floor + more))) <= claimed(decided(measured(given_, floor=floor)))


@given(seasons, st.floats(0.0001, 0.5), st.floats(1.0, 10.0))
def test_less_evidence_makes_no_order(given_, p, times):
    less = measured(given_, p=min(1.0, p * times))
    assert claimed(decided(less)) <= claimed(decided(measured(given_, p=p)))


@given(seasons, st.floats(-0.5, 1.0), st.floats(0.0, 1.0))
def test_less_agreement_raises_no_level(given_, kappa, less):
    better = {one.verdict.claim.id: one.verdict for one in decided(measured(given_, kappa=kappa)).verdicts}
    for one in decided(measured(given_, kappa=kappa - less)).verdicts:
        before = better.get(one.verdict.claim.id)
        if before is not None:
            assert LEVELS.index(one.verdict.publication_level) <= LEVELS.index(before.publication_level)


# Season methodology v0.4: what its own agreement table permits to be said

SEED_JUDGES = ("openai", "anthropic", "xai")
SCORES = {
    "OpenAI GPT-5": (83, 57, 81),
    "Anthropic Claude Sonnet 4.6": (76, 59, 83),
    "xAI Grok 4.3": (63, 59, 82),
    "Google Gemini 3.5 Flash": (68, 63, 73),
    "Google Gemini 3.1 Pro": (80, 63, 58),
}
"""Contestants by judges, as both tables of the page imply them (``tests/seeds/test_season_scores.py``)."""


def test_what_the_table_of_the_page_permits():
    """The page calls bands stable: all five of its contestants straddle one."""
    found = decided(measured(SCORES, judges=SEED_JUDGES))
    bands = [one for one in found.verdicts if one.kind == "band"]
    assert len(bands) == 5
    assert {one.verdict.publication_level for one in bands} == {"no-claim"}
    assert all("The judges disagree on the band" in one.verdict.reasons[0] for one in bands)
    # It has neither a second grading nor a second decision, and says that decimals are noise: nothing is ordered.
    found = decided(measured(SCORES, judges=SEED_JUDGES, floor=None, reach=None))
    assert len(found.tiers) == 1
    assert {(one.first, one.last, one.shown) for one in found.places} == {(1, 5, False)}
    # Even with calm judges and small p in every drop, of ten pairs three keep their sign without any one judge.
    found = decided(measured(SCORES, judges=SEED_JUDGES, floor=0.5, p=1e-6))
    above = [one for one in found.verdicts if one.kind == "above"]
    assert {one.verdict.claim.subjects for one in above if one.verdict.publication_level == "headline"} == {
        ("OpenAI GPT-5", "Google Gemini 3.5 Flash"),
        ("Anthropic Claude Sonnet 4.6", "Google Gemini 3.5 Flash"),
        ("Anthropic Claude Sonnet 4.6", "xAI Grok 4.3"),
    }
    assert not any(one.shown for one in found.places)
