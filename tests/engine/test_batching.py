"""Calls in batches: what is written down when, what is asked again, and what a misbehaving provider can do."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from dataclasses import replace

import pytest
from batch_house import House, failure, reply_to
from engine_calls import Scripted, call, calls

from assaymark.engine import CallSpec, Ledger, batching, cancel_batches, run_batches, run_calls, run_worker
from assaymark.engine.providers.batches import BatchState, NotTaken, lane_of
from assaymark.errors import LedgerError, ModelError, UnknownNameError

ASKED = calls(10, model="house/one")
KEYS = [spec.key for spec in ASKED]


@pytest.fixture
def house(tmp_path):
    (tmp_path / "house").mkdir()
    return House(tmp_path / "house")


def run(ledger, house, asked=ASKED, **more):
    terms = {"poll_s": 0.001, "settle_s": 0.0, "most_items": 4} | more
    return run_batches(ledger, asked, {"house": house.maker}, **terms)


def always(words: dict[str, str]):
    """Some calls fare so whenever they are asked; the others are answered."""
    return lambda key, _times: words.get(key)


def answered(ledger) -> set[str]:
    replies = dict(ledger.replies(KEYS))
    assert all(reply.text == f"reply to {key}" for key, reply in replies.items())
    return set(replies)


def statuses(ledger) -> Counter[str]:
    return Counter(batch.status for batch in ledger.batches.all())


def test_every_call_is_asked_in_one_batch_and_its_reply_kept(ledger, house):
    said, seen = [], []
    done = run(ledger, house, say=said.append, progress=lambda made, planned: seen.append((made, planned)))
    assert (done.planned, done.made, done.failed, done.left, done.under_way) == (10, 10, (), 0, 0)
    assert (done.batches, house.sizes(), done.paid_again_bound, house.closed) == (3, [4, 4, 2], 0, 1)
    assert answered(ledger) == set(KEYS)
    assert house.bills() == dict.fromkeys(KEYS, 1)
    assert ledger.attempt_counts(KEYS) == dict.fromkeys(KEYS, 1)
    assert ledger.orphaned() == []
    assert seen[-1] == (10, 10)
    assert ledger.reply(KEYS[0]).raw == "{}"
    assert ledger.verify() > 40
    ended = [line for line in said if "ended" in line]
    assert len(ended) == 3
    assert all(line.startswith("house/one: batch batch-") for line in said)


def test_a_second_run_asks_nothing(ledger, house):
    run(ledger, house)
    done = run(ledger, house)
    assert (done.already, done.made, done.batches) == (10, 0, 0)
    assert statuses(ledger) == {"ended": 3}


def test_calls_of_another_model_or_address_go_in_another_batch(ledger, house):
    there = CallSpec(model="house/one", messages=ASKED[0].messages, template="", args={"base_url": "http://a.example"})
    longer = CallSpec(model="house/one", messages=ASKED[0].messages, template="", args={"max_tokens": 7})
    asked = [*ASKED[:3], *calls(2, model="house/two"), there, longer]
    assert len({lane_of(spec) for spec in asked}) == 3
    run(ledger, house, asked, most_items=100)
    assert sorted(house.sizes()) == [1, 2, 4]


def test_a_provider_sets_the_size_of_its_batches(ledger, house):
    house.most_bytes = 3 * house.size("", ASKED[0])
    run(ledger, house, most_items=100)
    assert house.sizes() == [3, 3, 3, 1]
    assert house.bills() == dict.fromkeys(KEYS, 1)


def test_a_model_without_batches_is_named_before_anything_is_sent(ledger, house):
    with pytest.raises(UnknownNameError, match="unknown provider of batches 'reference'"):
        run(ledger, house, [*ASKED, call(1)])
    assert house.remotes() == []


@pytest.mark.parametrize(("name", "value"), [("poll_s", 0), ("attempts", 0), ("most_items", 0), ("deadline_s", -1)])
def test_terms_are_checked(ledger, house, name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        run(ledger, house, **{name: value})


def test_what_fails_or_expires_is_asked_again_and_nothing_else(ledger, house):
    words = {KEYS[0]: "busy", KEYS[1]: "expired", KEYS[2]: "nothing"}
    house.verdict = lambda key, times: words.get(key) if times == 1 else None
    done = run(ledger, house, most_items=100)
    assert (done.made, done.failed, house.sizes()) == (10, (), [10, 3])
    assert house.bills() == {key: 2 if key in words else 1 for key in KEYS}
    assert ledger.attempt_counts(KEYS) == {key: 2 if key in words else 1 for key in KEYS}
    assert answered(ledger) == set(KEYS)


def test_asking_again_has_an_end(ledger, house):
    house.verdict = always({KEYS[3]: "busy", KEYS[4]: "bad"})
    done = run(ledger, house, attempts=2)
    assert done.made == 8
    assert {found.key: (found.attempts, found.reason) for found in done.failed} == {
        KEYS[3]: (2, "house: busy"),
        KEYS[4]: (1, "house: bad"),
    }
    assert (house.bills()[KEYS[3]], house.bills()[KEYS[4]]) == (2, 1)
    house.verdict = always({})
    assert run(ledger, house).made == 2


def test_a_call_that_the_provider_cannot_do_is_refused_alone(ledger, house):
    odd = CallSpec(model="house/one", messages=ASKED[0].messages, template="", args={"impossible": True})
    done = run(ledger, house, [*ASKED, odd])
    assert [(found.key, found.attempts, found.reason) for found in done.failed] == [
        (odd.key, 0, "the provider has no such thing")
    ]
    assert (done.made, house.bills()[odd.key]) == (10, 0)


def test_a_batch_that_is_refused_fails_its_calls(ledger, house):
    house.refuse = [BatchState("refused", reason="no such model")]
    done = run(ledger, house)
    assert done.made == 6
    assert {found.reason for found in done.failed} == {"the provider refused the batch: no such model"}
    assert statuses(ledger) == {"ended": 2, "refused": 1}


def test_a_batch_that_is_refused_for_want_of_room_waits_for_the_others(ledger, house):
    full = BatchState("refused", reason="too many enqueued tokens", retryable=True)
    house.refuse = [full] * 2
    done = run(ledger, house, attempts=1)
    assert (done.made, done.failed) == (10, ())
    assert statuses(ledger)["refused"] == 2


def test_a_batch_that_is_turned_away_waits_for_the_others_and_was_never_paid(ledger, house):
    """Where no label is kept, too: an answer that says so is no lost batch."""
    house.keeps_labels = False
    house.submit_errors = [(NotTaken("busy", retryable=True, retry_after=0.01), False)] * 2
    done = run(ledger, house, attempts=3)
    assert (done.made, done.failed, done.paid_again_bound) == (10, (), 0)
    assert statuses(ledger) == {"refused": 2, "ended": 3}
    house.submit_errors = [(NotTaken("busy", retryable=True), False)] * 9
    done = run(ledger, house, [call(20, model="house/one")], attempts=2)
    assert [(found.attempts, found.reason) for found in done.failed] == [(2, "the provider refused the batch: busy")]


def test_a_cancelled_batch_is_not_asked_again(ledger, house):
    house.verdict = always(dict.fromkeys(KEYS[:2], "bad"))
    house.refuse = [BatchState("cancelled")]
    done = run(ledger, house)
    assert (done.made, len(done.failed)) == (8, 2)


def test_results_that_come_twice_or_that_nobody_asked_for_are_ignored_and_noted(ledger, house):
    stranger = call(99).key
    house.twice = True
    house.extra = [(stranger, reply_to(stranger)), ("", failure("bad")), (KEYS[0], failure("busy"))]
    done = run(ledger, house, most_items=100)
    assert (done.made, done.failed) == (10, ())
    assert answered(ledger) == set(KEYS)
    assert "10 results came again" in done.notes[0]
    assert f"1 results for unknown calls were ignored (such as {stranger})" in done.notes[0]
    assert "1 lines could not be read" in done.notes[0]
    assert ledger.batches.all()[0].note in done.notes[0]
    assert ledger.pending([stranger]) == [stranger]


def test_results_that_break_off_are_read_again_and_paid_once(ledger, house, monkeypatch):
    house.cut = 7
    monkeypatch.setattr(batching, "_ENDS_A_COMMIT", 2)
    done = run(ledger, house, most_items=100)
    assert (done.made, done.notes, house.sizes()) == (10, (), [10])
    assert answered(ledger) == set(KEYS)


def test_a_submission_that_was_cut_off_is_found_and_not_paid_again(ledger, house):
    lost = ModelError("the connection broke", retryable=True)
    house.submit_errors = [(lost, True)]
    done = run(ledger, house)
    assert (done.made, done.batches, house.bills()) == (10, 2, dict.fromkeys(KEYS, 1))


def test_a_submission_that_never_arrived_is_made_again(ledger, house):
    house.submit_errors = [(ModelError("busy (503)", retryable=True, retry_after=0.01), False)]
    done = run(ledger, house)
    assert (done.made, done.failed, house.bills()) == (10, (), dict.fromkeys(KEYS, 1))
    assert (done.paid_again_bound, statuses(ledger)) == (0, {"lost": 1, "ended": 3})
    assert ledger.attempt_counts(KEYS)[KEYS[0]] == 2


def test_a_batch_that_is_refused_at_once_fails_its_calls(ledger, house):
    house.submit_errors = [(ModelError("the schema was refused (400)", retryable=False), False)]
    done = run(ledger, house)
    assert (done.made, len(done.failed), done.stopped) == (6, 4, ())


def test_without_money_nothing_more_is_sent_and_every_call_is_left(ledger, house):
    house.submit_errors = [(ModelError("no money is left (402)", retryable=False, quota=True), False)]
    done = run(ledger, house)
    assert (done.made, done.failed, done.left, house.remotes()) == (0, (), 10, [])
    assert done.stopped == ("no money is left (402); every reply so far is kept, run the same command to go on",)
    assert run(ledger, house).made == 10


def test_without_money_behind_one_key_the_other_key_is_used(ledger, house):
    others = [replace(spec, args={"api_key_env": "OTHER_KEY"}) for spec in ASKED]
    house.submit_errors = [(ModelError("no money is left (402)", retryable=False, quota=True), False)]
    done = run(ledger, house, asked=[*ASKED, *others])
    assert (done.made, done.left, len(done.stopped)) == (10, 10, 1)
    assert set(house.bills()) == {spec.key for spec in others}


def test_a_provider_that_cannot_be_reached_is_asked_again(ledger, house):
    house.state_errors = [ModelError("no connection", retryable=True)] * 5
    assert run(ledger, house).made == 10


def test_a_batch_that_is_not_there_is_not_paid_again_before_it_is_old(ledger, house, monkeypatch):
    run(ledger, house, deadline_s=0.001, poll_s=100)
    gone = house.remotes()[0]
    (house.folder / f"{gone}.json").unlink()
    done = run(ledger, house)
    assert "set the key and the address that it was handed over with" in done.stopped[0]
    assert (done.paid_again_bound, done.failed) == (0, ())
    monkeypatch.setattr(batching, "_KEPT_S", 0.0)
    done = run(ledger, house)
    assert (done.paid_again_bound, len(answered(ledger))) == (4, 10)
    assert len(ledger.orphaned()) == 4


def test_without_labels_the_newest_batch_of_the_size_is_taken_on_trust(ledger, house):
    house.keeps_labels = False
    house.submit_errors = [(ModelError("cut off", retryable=True), True)]
    done = run(ledger, house)
    assert (done.made, house.bills()) == (10, dict.fromkeys(KEYS, 1))
    assert sorted(batch.certain for batch in ledger.batches.all()) == [False, True, True]


def test_somebody_elses_batch_is_known_by_its_results(ledger, house):
    house.keeps_labels = False
    house.submit_errors = [(ModelError("cut off", retryable=True), False)]
    stranger = house.strangers(4)
    done = run(ledger, house)
    assert (done.made, done.paid_again_bound) == (10, 4)
    assert answered(ledger) == set(KEYS)
    lost = next(batch for batch in ledger.batches.all() if batch.status == "lost")
    assert (lost.remote, lost.certain) == (stranger, False)
    assert "somebody else's" in lost.note


def test_without_labels_a_lost_batch_is_counted_as_paid(ledger, house):
    house.keeps_labels = False
    house.submit_errors = [(ModelError("cut off", retryable=True), False)]
    done = run(ledger, house)
    assert (done.made, done.paid_again_bound, len(ledger.orphaned())) == (10, 4, 4)


def test_a_deadline_leaves_the_batches_where_they_are(ledger, house):
    house.polls = 10**6
    done = run(ledger, house, deadline_s=0.05)
    assert (done.under_way, done.made, done.left, done.interrupted) == (10, 0, 0, False)
    assert ledger.orphaned() == []
    house.polls = 0
    done = run(ledger, house)
    assert (done.made, done.batches, done.orphaned, house.bills()) == (10, 0, 0, dict.fromkeys(KEYS, 1))


def test_sigterm_ends_the_waiting_and_not_the_batches(ledger, house):
    house.polls = 10**6

    def stop() -> None:
        # not before the run listens and has handed over all: a machine with much to do would be too slow for a time
        while (signal.getsignal(signal.SIGTERM) is signal.SIG_DFL or len(house.remotes()) < 3) and not over.wait(0.01):
            pass
        if not over.wait(0.05):
            os.kill(os.getpid(), signal.SIGTERM)

    over = threading.Event()
    stopper = threading.Thread(target=stop)
    stopper.start()
    done = run(ledger, house, poll_s=60)
    over.set()
    stopper.join()
    assert (done.interrupted, done.under_way) == (True, 10)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_batches_of_other_calls_are_collected_too(ledger, house):
    house.polls = 10**6
    run(ledger, house, deadline_s=0.01)
    house.polls = 0
    other = call(50, model="house/one")
    done = run(ledger, house, [other])
    assert (done.planned, done.made) == (1, 1)
    assert answered(ledger) == set(KEYS)


def test_batches_can_be_cancelled_unless_they_may_be_somebody_elses(ledger, house):
    house.polls = 10**6
    run(ledger, house, deadline_s=0.01)
    assert cancel_batches(ledger, {"house": house.maker}) == 3
    assert sorted(house.cancelled) == house.remotes()
    house.cancelled.clear()
    ledger.batches.submitted(ledger.batches.all()[0].label, house.remotes()[0], certain=False)
    assert cancel_batches(ledger, {"house": house.maker}) == 2


def test_a_call_in_a_batch_is_not_asked_alone_meanwhile(ledger, house):
    house.polls = 10**6
    run(ledger, house, ASKED[:4], deadline_s=0.01)
    model = Scripted(lambda spec: f"reply to {spec.key}")
    with pytest.raises(LedgerError, match="1 of the calls to be asked are in batches under way; collect"):
        run_calls(ledger, ASKED[3:], {"house/one": model})
    with pytest.raises(LedgerError, match="4 of the calls to be asked are in batches"):
        run_worker(ledger, {"house/one": model})
    assert (run_calls(ledger, ASKED[4:], {"house/one": model}).made, len(model.asked)) == (6, 6)
    house.polls = 0
    assert (run(ledger, house).already, answered(ledger)) == (6, set(KEYS))


def test_two_runs_at_once_are_refused(ledger, house):
    with ledger.exclusive(), pytest.raises(LedgerError, match="another run is using this ledger"):
        run(ledger, house)


def test_a_ledger_without_tables_of_batches_gets_them(tmp_path, house):
    path = tmp_path / "old.db"
    with Ledger.open(path) as ledger, ledger._store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE batch_calls")
        connection.exec_driver_sql("DROP TABLE batches")
    with Ledger.open(path) as ledger:
        assert (ledger.batches.all(), ledger.orphaned(), ledger.verify()) == ([], [], 0)
        assert run(ledger, house).made == 10


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE batches SET remote = 'batch-1'", "UPDATE batches SET status = 'open'", "UPDATE batches SET certain = 0",
        "UPDATE batch_calls SET fence = 7",
    ],
)  # fmt: skip
def test_a_changed_row_is_never_read_as_it_is(ledger, house, change):
    run(ledger, house)
    with ledger._store.engine.begin() as connection:
        connection.exec_driver_sql(change)
    with pytest.raises(LedgerError, match="does not match its seal"):
        ledger.verify()


def test_what_came_in_a_batch_is_known(ledger, house):
    run(ledger, house, ASKED[:3])
    assert ledger.batches.answered_in_batches(KEYS) == set(KEYS[:3])
