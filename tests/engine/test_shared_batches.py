"""Batches of a ledger that workers share: what is in a batch is nobody else's to ask."""

from __future__ import annotations

import pytest
from batch_house import House
from engine_calls import Scripted, calls

from assaymark.engine import Ledger, run_batches, run_calls
from assaymark.errors import LedgerError

ASKED = calls(6, model="house/one")
KEYS = [spec.key for spec in ASKED]


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def run(ledger, house, asked=ASKED, **more):
    terms = {"poll_s": 0.001, "settle_s": 0.0, "most_items": 3} | more
    return run_batches(ledger, asked, {"house": house.maker}, **terms)


def test_workers_leave_a_batch_alone_and_its_results_are_kept(shared, house):
    house.polls = 10**6
    model = Scripted(lambda spec: f"reply to {spec.key}")
    assert run(shared, house, ASKED[:4], deadline_s=0.05).under_way == 4
    assert shared.leases.claim("somebody", 4, 60.0, keys=KEYS[:4]) == ([], 0)
    assert run_calls(shared, ASKED[4:], {"house/one": model}).made == 2
    assert sorted(model.asked) == sorted(KEYS[4:])
    house.polls = 0
    house.verdict = lambda key, times: "busy" if key == KEYS[0] and times == 1 else None
    done = run(shared, house)
    assert (done.already, done.made, done.failed, done.left) == (2, 4, (), 0)
    assert house.bills() == {key: 2 if key == KEYS[0] else 1 for key in KEYS[:4]}
    assert {reply.text for _, reply in shared.replies(KEYS)} == {f"reply to {key}" for key in KEYS}
    assert shared.verify() > 0
    assert shared.pending_models() == {}


def test_what_others_hold_is_not_in_a_batch(shared, house):
    shared.plan(ASKED)
    claims, _ = shared.leases.claim("somebody", 2, 60.0)
    done = run(shared, house)
    assert (done.made, done.left, sum(house.sizes())) == (4, 2, 4)
    assert not {claim.key for claim in claims} & set(house.bills())


def test_one_run_of_batches_at_a_time(shared, database, house):
    refused = pytest.raises(LedgerError, match="somebody else is at work on its batches")
    with Ledger.open(database) as other, other.batches.alone(), refused:
        run(shared, house)
    assert run(shared, house).made == 6
