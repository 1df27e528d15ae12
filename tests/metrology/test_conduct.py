"""Conduct of agents: planted shares and medians come back, and what nobody counted has a name."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.metrology import Conduct, conduct_measurements, wilson
from assaymark.records import Measurement

KEPT, BROKEN = (("max_weight", True), ("min_cash", True)), (("max_weight", False), ("min_cash", False))


def asked(agent: str = "ash", cluster: str = "calm", **more) -> Conduct:
    return Conduct(**{"agent": agent, "cluster": cluster, "usable": True, "checks": KEPT, "tokens": 50, **more})


def found(*conduct: Conduct, level: float = 0.95) -> dict[str, Measurement]:
    return {item.id: item for item in conduct_measurements(conduct, level=level)}


def test_the_planted_share_of_answers_comes_back_with_its_flags():
    lost = [asked(usable=False, checks=None, flags=(flag,)) for flag in ("refused", "refused", "invalid-reply")]
    item = found(*[asked()] * 6, asked(flags=("rejected-order",)), *lost)["agent.answered[agent=ash]"]
    assert (item.value, item.n, item.n_of) == (0.7, 10, "questions")
    assert (item.low, item.high) == wilson(7, 10)
    assert item.detail["flags"] == {"invalid-reply": 1, "refused": 2, "rejected-order": 1}
    assert "takes decisions as independent" in item.method


def test_limits_are_counted_over_usable_decisions_with_a_book():
    made = [*[asked()] * 3, asked(checks=BROKEN), asked(checks=None), asked(usable=False, checks=None)]
    item = found(*made)["agent.limits_kept[agent=ash]"]
    assert (item.value, item.n) == (0.75, 4)
    assert item.detail["breaches"] == {"max_weight": 1, "min_cash": 1}


def test_a_rule_that_is_stated_twice_breaks_once_a_decision():
    twice = (("max_weight", False), ("max_weight", False))
    assert found(asked(checks=twice))["agent.limits_kept[agent=ash]"].detail["breaches"] == {"max_weight": 1}


def test_a_regime_in_which_all_fails_widens_the_ends_over_clusters_only():
    made = [
        asked(cluster=f"regime {at}", checks=BROKEN if at == 0 else KEPT) for at in range(5) for _ in range(50)
    ]  # fmt: skip
    item = found(*made)["agent.limits_kept[agent=ash]"]
    low, high = item.detail["t_low"], item.detail["t_high"]
    assert item.detail["clusters"] == 5
    assert item.value == 0.8
    # Five cluster means 0, 1, 1, 1, 1: mean 0.8, standard error 0.2, t(4) = 2.776.
    assert low == pytest.approx(0.8 - 2.7764 * 0.2, abs=1e-4)
    assert high == 1.0
    assert item.high - item.low < 0.11


@pytest.mark.parametrize("made", [[asked()] * 4, [asked(checks=BROKEN), asked()], [asked(cluster="x"), asked()]])
def test_there_are_no_ends_over_clusters_where_none_can_be_given(made):
    detail = found(*made)["agent.limits_kept[agent=ash]"].detail
    assert (detail["t_low"], detail["t_high"]) == (None, None)


def test_medians_have_their_quartiles_and_say_what_is_not_known():
    made = [asked(seconds=value, output_tokens=int(10 * value)) for value in (1.0, 2.0, 3.0, 4.0, 50.0)]
    items = found(*made, asked(), asked(usable=False, checks=None, seconds=900.0, tokens=0))
    seconds = items["agent.seconds[agent=ash]"]
    assert (seconds.value, seconds.n, seconds.unit) == (3.0, 5, "seconds")
    assert seconds.detail == {"lower": 2.0, "upper": 4.0, "unknown": 1}
    assert items["agent.output_tokens[agent=ash]"].value == 30.0
    assert (items["agent.text_tokens[agent=ash]"].value, items["agent.text_tokens[agent=ash]"].n) == (50.0, 6)


def test_an_agent_that_never_answered_has_states_and_one_share_of_zero():
    items = found(*[asked(usable=False, checks=None, flags=("no-answer",), tokens=0)] * 3)
    assert items["agent.answered[agent=ash]"].value == 0.0
    assert items["agent.answered[agent=ash]"].low == 0.0
    states = {item.name: item.state for item in items.values() if item.value is None}
    assert states == {
        "agent.limits_kept": "undefined: no usable decisions with a book",
        "agent.seconds": "no timing: no usable decision has a time",
        "agent.output_tokens": "not counted: no usable decision has a token count of its provider",
        "agent.text_tokens": "undefined: no usable decision",
    }


def test_nothing_asked_is_nothing_measured():
    assert found() == {}


def test_a_level_that_is_none_is_refused():
    with pytest.raises(InputError, match="level"):
        found(asked(), level=1.0)


CONDUCT = st.builds(
    Conduct, agent=st.sampled_from(["ash", "birch"]), cluster=st.sampled_from(["a", "b", "c"]), usable=st.booleans(),
    flags=st.lists(st.sampled_from(["refused", "rejected-order"]), max_size=2, unique=True).map(tuple),
    checks=st.none() | st.sampled_from([KEPT, BROKEN]), seconds=st.none() | st.floats(0, 100),
    output_tokens=st.none() | st.integers(0, 9999), tokens=st.integers(0, 500),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(CONDUCT, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_the_records_changes_nothing_and_intervals_hold_their_share(made, rng):
    shuffled = rng.sample(made, len(made))
    items = found(*made)
    assert found(*shuffled) == items
    for item in items.values():
        assert (item.value is None) == (item.state != "ok")
        if item.low is not None:
            assert 0 <= item.low <= item.value <= item.high <= 1


def test_agents_stand_in_alphabetical_order_whatever_they_did():
    names = [f"agent {letter}" for letter in "dbca"]
    random.Random(1).shuffle(names)
    made = [item for item in conduct_measurements([asked(agent=name) for name in names]) if item.value == 1.0]
    seen = [item.labels["agent"] for item in made if item.name == "agent.answered"]
    assert seen == sorted(names)
