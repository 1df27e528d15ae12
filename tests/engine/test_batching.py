"""Calls in batches: what is recorded when, which calls are retried, and the effects of a misbehaving provider."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from batch_house import House, failure, reply_to, run_at
from engine_calls import Scripted, call, calls

from assaymark.engine import Ledger, batching, cancel_batches, run_calls, run_worker
from assaymark.engine.providers.batches import BatchRefused, BatchState, lane_of
from assaymark.errors import LedgerError, ModelError, UnknownNameError

ASKED = calls(10, model="house/one")
KEYS = [spec.key for spec in ASKED]
ONCE = dict.fromkeys(KEYS, 1)
FOREVER = 10**6


@pytest.fixture
def house(tmp_path):
    (tmp_path / "house").mkdir()
    return House(tmp_path / "house")


run = partial(run_at, asked=ASKED, most_items=4)


def answered(ledger):
    replies = dict(ledger.replies(KEYS))
    assert all(reply.text == f"reply to {key}" for key, reply in replies.items())
    return set(replies)


def test_every_call_is_asked_in_one_batch_its_reply_kept_and_a_second_run_asks_nothing(ledger, house):
    said, seen = [], []
    done = run(ledger, house, say=said.append, progress=lambda made, planned: seen.append((made, planned)))
    assert (done.planned, done.made, done.failed, done.left, done.under_way) == (10, 10, (), 0, 0)
    assert (done.batches, house.sizes(), done.paid_again_bound, house.closed) == (3, [4, 4, 2], 0, 1)
    assert (answered(ledger), ledger.orphaned(), seen[-1]) == (set(KEYS), [], (10, 10))
    assert house.bills() == ledger.attempt_counts(KEYS) == ONCE
    assert ledger.reply(KEYS[0]).raw == "{}"
    assert ledger.verify() > 40
    assert sum("ended" in line for line in said) == 3
    assert all(line.startswith("house/one: batch batch-") for line in said)
    done = run(ledger, house)
    assert (done.already, done.made, done.batches) == (10, 0, 0)
    assert {batch.status for batch in ledger.batches.all()} == {"ended"}


def test_calls_of_another_model_or_address_go_in_another_batch_and_a_provider_sets_their_size(ledger, house):
    others = [
        replace(ASKED[0], template="", args=args) for args in ({"base_url": "http://a.example"}, {"max_tokens": 7})
    ]
    asked = [*ASKED[:3], *calls(2, model="house/two"), *others]
    assert len({lane_of(spec) for spec in asked}) == 3
    run(ledger, house, asked=asked, most_items=100)
    assert sorted(house.sizes()) == [1, 2, 4]
    house.most_bytes = 3 * house.size("", ASKED[0])
    run(ledger, house, most_items=100)
    assert sorted(house.sizes()) == [1, 1, 2, 3, 3, 4]
    assert {key: house.bills()[key] for key in KEYS} == ONCE
    before = house.remotes()  # what is refused before anything is sent
    with pytest.raises(UnknownNameError, match="unknown provider of batches 'reference'"):
        run(ledger, house, asked=[*ASKED, call(1)])
    for name, value in (("poll_s", 0), ("attempts", 0), ("most_items", 0), ("deadline_s", -1)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            run(ledger, house, **{name: value})
    assert house.remotes() == before


def words(first, always=True):
    """The outcomes of some calls, at every attempt or only the first; all others are answered."""
    of = {KEYS[n]: word for n, word in first.items()}
    return lambda key, times: of.get(key) if always or times == 1 else None


FULL = BatchState("refused", reason="too many enqueued tokens", retryable=True)
NO_MODEL = "the provider refused the batch: no such model"
CUT = ModelError("the connection broke", retryable=True)
BROKE = ModelError("no money is left (402)", retryable=False, quota=True)
UNKNOWN = ModelError("the schema was refused (400)", retryable=False)
LATER, BUSY = BatchRefused("busy", retryable=True, retry_after=0.01), BatchRefused("busy", retryable=True)
AWAY = ModelError("busy (503)", retryable=True, retry_after=0.01)
STOPPED = f"{BROKE}; every reply so far is kept; run the same command to resume"
UNLABELLED = {"keeps_labels": False}
SCENES = {
    "failed, expired or without a result is asked again, and nothing else": (
        {"verdict": words({0: "busy", 1: "expired", 2: "nothing"}, always=False)}, {"most_items": 100},
        {"made": 10, "sizes": [10, 3], "bills": {KEYS[0]: 2, KEYS[1]: 2, KEYS[2]: 2}}),
    "asking again has an end": (
        {"verdict": words({3: "busy", 4: "bad"})}, {"attempts": 2},
        {"made": 8, "failed": [(1, "house: bad"), (2, "house: busy")], "bills": {KEYS[3]: 2}}),
    "a batch that is refused fails its calls": (
        {"refuse": [BatchState("refused", reason="no such model")]}, {},
        {"made": 6, "failed": [(1, NO_MODEL)] * 4, "statuses": {"ended": 2, "refused": 1}}),
    "refused for want of room waits for the others": (
        {"refuse": [FULL] * 2}, {"attempts": 1}, {"made": 10, "statuses": {"refused": 2, "ended": 3}}),
    "turned away waits for the others and was never paid, without labels too": (
        UNLABELLED | {"submit_errors": [(LATER, False)] * 2}, {"attempts": 3},
        {"made": 10, "paid_again_bound": 0, "statuses": {"refused": 2, "ended": 3}, "bills": {}}),
    "turned away again and again": (
        {"submit_errors": [(BUSY, False)] * 9}, {"attempts": 2, "most_items": 100},
        {"made": 0, "failed": [(2, "the provider refused the batch: busy")] * 10}),
    "cancelled is not asked again": (
        {"verdict": words({0: "bad", 1: "bad"}), "refuse": [BatchState("cancelled")]}, {},
        {"made": 8, "failed": [(1, "house: bad")] * 2}),
    "a submission that was cut off is found and not paid again": (
        {"submit_errors": [(CUT, True)]}, {}, {"made": 10, "batches": 2, "bills": {}}),
    "a submission that never arrived is made again": (
        {"submit_errors": [(AWAY, False)]}, {},
        {"made": 10, "paid_again_bound": 0, "statuses": {"lost": 1, "ended": 3}, "bills": {}, "attempts": 2}),
    "refused at once fails its calls": (
        {"submit_errors": [(UNKNOWN, False)]}, {}, {"made": 6, "failed": [(1, str(UNKNOWN))] * 4, "stopped": ()}),
    "without money nothing more is sent and every call is left": (
        {"submit_errors": [(BROKE, False)]}, {}, {"made": 0, "left": 10, "sizes": [], "stopped": (STOPPED,)}),
    "a provider that cannot be reached is asked again": ({"state_errors": [CUT] * 5}, {}, {"made": 10}),
    "without labels the newest batch of the size is taken on trust": (
        UNLABELLED | {"submit_errors": [(CUT, True)]}, {}, {"made": 10, "bills": {}, "certain": [False, True, True]}),
    "without labels a lost batch is counted as paid": (
        UNLABELLED | {"submit_errors": [(CUT, False)]}, {}, {"made": 10, "paid_again_bound": 4, "orphaned": 4}),
}  # fmt: skip


@pytest.mark.parametrize("scene", SCENES)
def test_what_becomes_of_batches_at_a_provider_that_misbehaves(ledger, house, scene):
    how, terms, wanted = SCENES[scene]
    for name, value in how.items():
        setattr(house, name, list(value) if isinstance(value, list) else value)
    done = run(ledger, house, **terms)
    batches = ledger.batches.all()
    found = {
        "sizes": house.sizes(), "bills": house.bills(), "statuses": Counter(batch.status for batch in batches),
        "certain": sorted(batch.certain for batch in batches), "orphaned": len(ledger.orphaned()),
        "failed": sorted((one.attempts, one.reason) for one in done.failed),
        "attempts": max(ledger.attempt_counts(KEYS).values(), default=0),
    }  # fmt: skip
    wanted = {"failed": [], **wanted} | ({"bills": ONCE | wanted["bills"]} if "bills" in wanted else {})
    assert {name: found[name] if name in found else getattr(done, name) for name in wanted} == wanted
    assert len(answered(ledger)) == done.made
    assert ledger.verify() > 0
    house.verdict, house.submit_errors = words({}), []
    assert run(ledger, house).made == 10 - done.made  # the next run asks what is left


def test_what_cannot_be_asked_and_results_of_others_or_twice_are_told_apart(ledger, house, monkeypatch):
    odd = replace(ASKED[0], template="", args={"impossible": True})
    stranger = call(99).key
    house.twice, house.cut = True, 7  # results that break off are read again and paid once
    monkeypatch.setattr(batching, "_ENDS_A_COMMIT", 2)
    house.extra = [(stranger, reply_to(stranger)), ("", failure("bad")), (KEYS[0], failure("busy"))]
    done = run(ledger, house, asked=[*ASKED, odd], most_items=100)
    ((key, attempts, reason),) = ((one.key, one.attempts, one.reason) for one in done.failed)
    assert (key, attempts, reason) == (odd.key, 0, "the provider has no such thing")
    assert (done.made, house.sizes(), house.bills()[odd.key], answered(ledger)) == (10, [10], 0, set(KEYS))
    for said in ("results arrived twice", "lines could not be read", ledger.batches.all()[0].note,
                 f"results for unknown calls were ignored (such as {stranger})"):  # fmt: skip
        assert said in done.notes[0]
    assert ledger.pending([stranger]) == [stranger]
    house.twice, house.extra = False, []
    others = [replace(spec, args={"api_key_env": "OTHER_KEY"}) for spec in ASKED]
    house.submit_errors = [(BROKE, False)]  # without money behind one key the other key is used
    done = run(ledger, house, asked=[*(replace(spec, trial=2) for spec in ASKED), *others])
    assert (done.made, done.left, len(done.stopped)) == (10, 10, 1)
    assert set(house.bills()) == {*KEYS, *(spec.key for spec in others)}


def test_a_batch_that_is_not_there_is_not_paid_again_before_it_is_old(ledger, house, monkeypatch):
    run(ledger, house, deadline_s=0.001, poll_s=100)
    (house.folder / f"{house.remotes()[0]}.json").unlink()
    done = run(ledger, house)
    assert "set the key and the address that it was handed over with" in done.stopped[0]
    assert (done.paid_again_bound, done.failed) == (0, ())
    monkeypatch.setattr(batching, "_KEPT_S", 0.0)
    done = run(ledger, house)
    assert (done.paid_again_bound, len(answered(ledger)), len(ledger.orphaned())) == (4, 10, 4)


def test_somebody_elses_batch_is_known_by_its_results(ledger, house):
    house.keeps_labels, house.submit_errors = False, [(CUT, False)]
    stranger = house.strangers(4)
    done = run(ledger, house)
    assert (done.made, done.paid_again_bound, answered(ledger)) == (10, 4, set(KEYS))
    lost = next(batch for batch in ledger.batches.all() if batch.status == "lost")
    assert (lost.remote, lost.certain, "another client" in lost.note) == (stranger, False, True)


def test_a_deadline_leaves_the_batches_where_they_are_and_a_later_run_of_other_calls_collects_them(ledger, house):
    house.polls = FOREVER
    done = run(ledger, house, deadline_s=0.05)
    assert (done.under_way, done.made, done.left, done.interrupted) == (10, 0, 0, False)
    assert ledger.orphaned() == []
    house.polls = 0
    done = run(ledger, house, asked=[call(50, model="house/one")])
    assert (done.planned, done.made, answered(ledger)) == (1, 1, set(KEYS))
    done = run(ledger, house)
    assert (done.already, done.batches, done.orphaned) == (10, 0, 0)
    assert {key: house.bills()[key] for key in KEYS} == ONCE


def test_sigterm_ends_the_waiting_and_not_the_batches(ledger, house):
    house.polls = FOREVER
    over = threading.Event()

    def stop():
        # not before the run listens and has handed over all: a machine with much to do would be too slow for a time
        while (signal.getsignal(signal.SIGTERM) is signal.SIG_DFL or len(house.remotes()) < 3) and not over.wait(0.01):
            pass
        if not over.wait(0.05):
            os.kill(os.getpid(), signal.SIGTERM)

    stopper = threading.Thread(target=stop)
    stopper.start()
    done = run(ledger, house, poll_s=60)
    over.set()
    stopper.join()
    assert (done.interrupted, done.under_way) == (True, 10)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert cancel_batches(ledger, {"house": house.maker}) == 3
    assert sorted(house.cancelled) == house.remotes()
    # one that may be another client's is not cancelled
    ledger.batches.submitted(ledger.batches.all()[0].label, house.remotes()[0], certain=False)
    assert cancel_batches(ledger, {"house": house.maker}) == 2


def test_a_call_in_a_batch_is_not_asked_alone_meanwhile(ledger, house):
    house.polls = FOREVER
    run(ledger, house, asked=ASKED[:4], deadline_s=0.01)
    model = Scripted(lambda spec: f"reply to {spec.key}")
    with pytest.raises(LedgerError, match="1 of the planned calls are in batches in progress; collect"):
        run_calls(ledger, ASKED[3:], {"house/one": model})
    with pytest.raises(LedgerError, match="4 of the planned calls are in batches"):
        run_worker(ledger, {"house/one": model})
    assert (run_calls(ledger, ASKED[4:], {"house/one": model}).made, len(model.asked)) == (6, 6)
    house.polls = 0
    assert (run(ledger, house).already, answered(ledger)) == (6, set(KEYS))
    assert ledger.batches.answered_in_batches(KEYS) == set(KEYS[:4])
    with ledger.exclusive(), pytest.raises(LedgerError, match="another run is using this call log"):
        run(ledger, house)


def test_a_ledger_without_tables_of_batches_gets_them_and_a_changed_row_is_never_read_as_it_is(tmp_path, house):
    path, changed = tmp_path / "old.db", tmp_path / "changed.db"
    with Ledger.open(path) as ledger, ledger._store.engine.begin() as connection:
        for table in ("batch_calls", "batches"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
    with Ledger.open(path) as ledger:
        assert (ledger.batches.all(), ledger.orphaned(), ledger.verify()) == ([], [], 0)
        assert run(ledger, house).made == 10
    for change in (
        "batches SET remote = 'batch-1'", "batches SET status = 'open'", "batches SET certain = 0",
        "batch_calls SET fence = 7",
    ):  # fmt: skip
        shutil.copy(path, changed)
        with Ledger.open(changed) as ledger:
            with ledger._store.engine.begin() as connection:
                connection.exec_driver_sql(f"UPDATE {change}")
            with pytest.raises(LedgerError, match="does not match its seal"):
                ledger.verify()
