"""Season methodology v0.4: what its own agreement table permits to be said."""

from __future__ import annotations

from season_measured import gate, measured

from assaymark.claims import SeasonGates, decide_season

JUDGES = ("openai", "anthropic", "xai")
SCORES = {
    "OpenAI GPT-5": (83, 57, 81),
    "Anthropic Claude Sonnet 4.6": (76, 59, 83),
    "xAI Grok 4.3": (63, 59, 82),
    "Google Gemini 3.5 Flash": (68, 63, 73),
    "Google Gemini 3.1 Pro": (80, 63, 58),
}
"""Contestants by judges, as both tables of the page imply them (``tests/seeds/test_season_self_preference.py``)."""

GATES = SeasonGates(on_failure="qualified")
KEPT = [gate(judge, []) for judge in JUDGES]


def test_no_band_of_the_table_may_be_named():
    """The page calls bands stable: all five of its contestants straddle one."""
    found = decide_season([*measured(SCORES, judges=JUDGES), *KEPT], GATES, "plan")
    bands = [one for one in found.verdicts if one.kind == "band"]
    assert len(bands) == 5
    assert {one.verdict.publication_level for one in bands} == {"no-claim"}
    assert all("The judges disagree on the band" in one.verdict.reasons[0] for one in bands)


def test_nothing_was_graded_twice_so_nothing_is_ordered():
    """The page has neither a second grading nor a second decision, and says that decimals are noise."""
    found = decide_season([*measured(SCORES, judges=JUDGES, floor=None, reach=None), *KEPT], GATES, "plan")
    assert len(found.tiers) == 1
    assert {(one.first, one.last, one.shown) for one in found.places} == {(1, 5, False)}


def test_even_with_calm_judges_and_small_p_in_every_drop_few_pairs_are_ordered():
    """Of ten pairs three keep their sign without any one judge: no agent has a single rank."""
    found = decide_season([*measured(SCORES, judges=JUDGES, floor=0.5, p=1e-6), *KEPT], GATES, "plan")
    above = [one for one in found.verdicts if one.kind == "above"]
    assert {one.verdict.claim.subjects for one in above if one.verdict.publication_level == "headline"} == {
        ("OpenAI GPT-5", "Google Gemini 3.5 Flash"),
        ("Anthropic Claude Sonnet 4.6", "Google Gemini 3.5 Flash"),
        ("Anthropic Claude Sonnet 4.6", "xAI Grok 4.3"),
    }
    assert not any(one.shown for one in found.places)
