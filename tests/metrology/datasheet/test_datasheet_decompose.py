"""The decomposition: its identities, its symmetries, and the slot against the content."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import decompose
from assaymark.metrology.datasheet import CLASSES, VERDICTS
from assaymark.metrology.datasheet.calls import CLASS_OF, PREFERENCES, pair_class

verdict_pairs = st.lists(st.tuples(st.sampled_from(VERDICTS), st.sampled_from(VERDICTS)), min_size=1, max_size=80)
clean_pairs = st.lists(st.tuples(st.sampled_from(VERDICTS[:4]), st.sampled_from(VERDICTS[:4])), min_size=1, max_size=80)
SWAP = {"1": "2", "2": "1"}


@given(verdict_pairs)
def test_equation_7_holds_with_any_verdicts(pairs):
    d = decompose(*zip(*pairs, strict=True))
    assert d.raw_false_preference == pytest.approx(d.stable + d.positional + d.one_sided / 2 + d.other)
    calls = [verdict for pair in pairs for verdict in pair]
    assert d.raw_false_preference == pytest.approx(sum(verdict in "12" for verdict in calls) / len(calls))


@given(verdict_pairs)
def test_the_shares_of_pairs_make_one(pairs):
    d = decompose(*zip(*pairs, strict=True))
    assert d.stable + d.positional + d.one_sided + d.no_preference + d.other_pairs == pytest.approx(1)
    assert d.n_pairs == len(pairs)


@given(verdict_pairs)
def test_pairs_with_an_invalid_call_are_other_and_nothing_else(pairs):
    d = decompose(*zip(*pairs, strict=True))
    assert d.other_pairs == pytest.approx(sum("invalid" in pair for pair in pairs) / len(pairs))
    assert 0 <= d.other <= d.other_pairs / 2


@given(clean_pairs)
def test_without_invalid_calls_nothing_is_left_over(pairs):
    d = decompose(*zip(*pairs, strict=True))
    assert d.other == d.other_pairs == 0
    tied = sum(verdict not in "12" for pair in pairs for verdict in pair) / (2 * len(pairs))
    assert tied == pytest.approx(d.no_preference + d.one_sided / 2)


@given(verdict_pairs)
def test_showing_the_other_order_first_changes_nothing(pairs):
    first, second = zip(*pairs, strict=True)
    assert decompose(first, second) == decompose(second, first)


@given(verdict_pairs)
def test_renaming_the_contents_changes_nothing(pairs):
    """Calling u v and v u swaps which call is the first of the pair, and no verdict: it names a slot."""
    first, second = zip(*pairs, strict=True)
    renamed = [(b, a) for a, b in pairs]
    assert decompose(*zip(*renamed, strict=True)) == decompose(first, second)


@given(verdict_pairs)
def test_numbering_the_slots_the_other_way_changes_nothing(pairs):
    mirrored = [tuple(SWAP.get(verdict, verdict) for verdict in pair) for pair in pairs]
    assert decompose(*zip(*mirrored, strict=True)) == decompose(*zip(*pairs, strict=True))


@given(clean_pairs)
def test_slot_and_content_mean_opposite_things(pairs):
    """Reading the second verdict as a content (u stands in slot 2 there) turns stable and positional around."""
    by_slot = decompose(*zip(*pairs, strict=True))
    first, second = zip(*pairs, strict=True)
    by_content = decompose(first, [SWAP.get(verdict, verdict) for verdict in second])
    assert (by_content.stable, by_content.positional) == (by_slot.positional, by_slot.stable)
    assert (by_content.one_sided, by_content.no_preference) == (by_slot.one_sided, by_slot.no_preference)


@given(clean_pairs)
def test_a_tie_and_an_abstention_are_the_same(pairs):
    tied = [tuple("tie" if verdict == "abstain" else verdict for verdict in pair) for pair in pairs]
    assert decompose(*zip(*tied, strict=True)) == decompose(*zip(*pairs, strict=True))


def test_every_two_verdicts_have_one_class():
    assert CLASS_OF.shape == (5, 5)
    words = {(a, b): CLASSES[pair_class(a, b)] for a in VERDICTS for b in VERDICTS}
    assert {words["1", "2"], words["2", "1"]} == {"stable"}
    assert (words["1", "1"], words["2", "2"]) == ("positional, slot 1", "positional, slot 2")
    assert {words[a, b] for a in "12" for b in ("tie", "abstain")} == {"one-sided"}
    assert {words[a, b] for a in ("tie", "abstain") for b in ("tie", "abstain")} == {"no preference"}
    assert {words["invalid", b] for b in "12"} == {"other, one preference"}
    assert {words["invalid", b] for b in ("tie", "abstain", "invalid")} == {"other, no preference"}
    for (a, b), word in words.items():
        assert PREFERENCES[CLASSES.index(word)] == ((a in "12") + (b in "12")) / 2


def test_what_is_wrong_is_named_all_at_once():
    with pytest.raises(InputError, match=r"4 problems") as caught:
        decompose(["1", "A", ""], ["tie", "3"])
    assert [str(problem)[:9] for problem in caught.value.problems] == [
        "first[1]:",
        "first[2]:",
        "second[1]",
        "first, se",
    ]
    with pytest.raises(NotMeasurableError, match="no pairs"):
        decompose([], [])
