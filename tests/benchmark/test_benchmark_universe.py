"""Which instruments a benchmark is about: the fixed rule, named ones, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.benchmark.market import choose_universe, is_index
from assaymark.errors import InputError, UnknownNameError
from assaymark.market import CLASS_NAMES, History, synthetic_history
from assaymark.portfolio.backtest import CLASSES

IDS = [one.id for one in synthetic_history(0).listings]


def with_listings(**changes) -> History:
    """The embedded market with the first equity changed."""
    whole = synthetic_history(0)
    return dataclasses.replace(whole, listings=(dataclasses.replace(whole.listings[0], **changes), *whole.listings[1:]))


def test_81_are_all_of_the_small_classes_and_24_equities_of_every_sub_sector():
    history = synthetic_history(0)
    found = choose_universe(history)
    assert found.size == 81
    assert [found.classes.count(name) for name in CLASSES] == [24, 15, 16, 10, 12, 4]
    subs = {one.sub for one in history.listings if one.id in found.ids and one.asset_class == "EQ"}
    assert len(subs) == 14


@given(st.integers(6, 183))
def test_the_rule_gives_what_is_asked_for_in_the_order_of_the_store(count):
    found = choose_universe(synthetic_history(0), count)
    assert found.size == len(set(found.ids)) == count
    assert [IDS.index(one) for one in found.ids] == sorted(IDS.index(one) for one in found.ids)
    assert set(found.classes) == set(CLASSES)
    assert [CLASSES[code] for code in found.codes] == list(found.classes)
    counts = [found.classes.count(name) for name in CLASSES]
    there = [sum(CLASS_NAMES[one.asset_class] == name for one in synthetic_history(0).listings) for name in CLASSES]
    unfilled = [got for got, most in zip(counts, there, strict=True) if got < most]
    assert not unfilled or max(unfilled) - min(unfilled) <= 1


@given(st.integers(6, 182))
def test_a_larger_universe_holds_the_smaller_one(count):
    history = synthetic_history(0)
    assert set(choose_universe(history, count).ids) < set(choose_universe(history, count + 1).ids)


def test_that_an_instrument_is_delisted_later_does_not_keep_it_out():
    chosen = choose_universe(synthetic_history(0)).ids
    assert [one.id for one in synthetic_history(0).listings if one.delisted and one.id in chosen]


def test_named_instruments_come_in_the_order_of_the_store():
    wanted = choose_universe(synthetic_history(0), 12).ids
    found = choose_universe(synthetic_history(0), tuple(reversed(wanted)))
    assert found.ids == wanted


@pytest.mark.parametrize(("count", "got"), [(5, "got 5"), (184, "from 6 to 183"), (-1, "got -1")])
def test_too_few_or_too_many_are_refused(count, got):
    with pytest.raises(InputError, match=got):
        choose_universe(synthetic_history(0), count)


def test_everything_wrong_with_a_list_is_said_at_once():
    history = with_listings(sub="index")
    with pytest.raises(InputError) as caught:
        choose_universe(history, (IDS[0], IDS[0], IDS[130]))
    text = str(caught.value)
    assert f"twice: {IDS[0]}" in text
    assert f"an index cannot be held ({IDS[0]}" in text
    assert "none of: commodity, real_estate, crypto, cash" in text


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'ALBIX'"):
        choose_universe(synthetic_history(0), ("ALBIXX",))


@pytest.mark.parametrize(("changes", "index"), [({"id": "^VIX"}, True), ({"id": "vix"}, True), ({"id": "SPY"}, False)])
def test_an_index_is_told_by_its_name_and_never_dealt(changes, index):
    history = with_listings(**changes)
    assert is_index(history.listings[0]) is index
    assert (history.listings[0].id in choose_universe(history, 183 - index).ids) is not index


def test_the_codes_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        choose_universe(synthetic_history(0)).codes[0] = np.int64(3)
