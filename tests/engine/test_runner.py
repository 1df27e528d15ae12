"""The runner of calls: each answered once, deadlines, bounded attempts, and a drain on a signal."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import os
import signal
import threading
import time
from functools import partial

import pytest
from engine_calls import NAME, QUICK, Scripted, call, calls, echo, in_a_loop
from hypothesis import given
from hypothesis import strategies as st

from assaymark.engine import CallSpec, Message, Reply, Text, run_calls
from assaymark.errors import LedgerError, ModelError, UnknownNameError
from assaymark.records import canonical_json, sha256_text


def flaky(failures, *, retryable=True):
    """Fails so many times for each call, then answers."""
    seen: dict[str, int] = {}

    def answer(call):
        seen[call.key] = seen.get(call.key, 0) + 1
        return ModelError("busy", retryable=retryable) if seen[call.key] <= failures else "fine"

    return Scripted(answer)


class Asked:
    """Does what a coroutine function of the call does."""

    def __init__(self, complete):
        self.complete = complete


def returning(reply):
    async def complete(_call):
        return reply

    return Asked(complete)


def test_each_call_is_asked_once_and_answered(ledger):
    model, told, seen = echo(), [], []
    summary = run_calls(
        ledger, calls(20) + calls(20), {NAME: model}, concurrency=4, progress=lambda *now: seen.append(now),
        on_reply=lambda model, reply: told.append((model, reply.text)), **QUICK,
    )  # fmt: skip
    keys = [spec.key for spec in calls(20)]
    assert sorted(model.asked) == sorted(keys)
    assert (summary.planned, summary.already, summary.made, summary.left, summary.interrupted) == (20, 0, 20, 0, False)
    assert summary.in_flight_bound == model.most == 4
    reply = ledger.reply(call(3).key)
    assert (reply.text, reply.model, reply.fingerprint) == ("I buy fund 3.", "echo-1", "fp")
    assert 0 <= reply.seconds < 5
    # each reply is told when it is on the disk, progress after each commit
    assert sorted(told) == sorted((NAME, reply.text) for _, reply in ledger.replies(keys))
    assert seen == sorted(seen)
    assert seen[-1] == (20, 20)
    # a call with a reply is never asked again
    summary = run_calls(ledger, calls(23), {NAME: model}, progress=lambda *now: seen.append(now), **QUICK)
    assert sorted(model.asked[20:]) == sorted(spec.key for spec in calls(23)[20:])
    assert (summary.already, summary.made, seen[-1]) == (20, 3, (23, 23))
    assert run_calls(ledger, calls(8), {NAME: model}, **QUICK).in_flight_bound == 0
    assert run_calls(ledger, [], {}).planned == 0
    # the time a model reports is kept, and each model has a concurrency of its own
    run_calls(ledger, [call(30)], {NAME: returning(Reply(text="", model="m", seconds=0.125))}, **QUICK)
    assert ledger.reply(call(30).key).seconds == 0.125
    models = {name: Scripted(lambda _call: "", wait=0.01) for name in ("a/x", "a/y")}
    asked = [*calls(12, model="a/x"), *calls(2, model="a/y")]
    summary = run_calls(ledger, asked, models, concurrency=3, **QUICK)
    assert (models["a/x"].most, models["a/y"].most, summary.in_flight_bound) == (3, 2, 5)


def test_unknown_models_limits_out_of_range_and_a_second_run_are_refused_before_anything_is_sent(ledger):
    model = echo()
    with pytest.raises(UnknownNameError, match=r"unknown model 'reference/ecco'. Did you mean 'reference/echo'"):
        run_calls(ledger, [call(), call(model="reference/ecco")], {NAME: model})
    deadlines = (("deadline_s", 0), ("deadline_s", float("nan")))
    for name, value in (("concurrency", 0), ("attempts", 0), ("backoff_s", -1), *deadlines):
        with pytest.raises(ValueError, match=f"{name} must be"):
            run_calls(ledger, [], {}, **{name: value})
    with ledger.exclusive(), pytest.raises(LedgerError, match="another run is using this call log"):
        run_calls(ledger, [call()], {NAME: model})
    assert model.asked == []


def test_what_may_pass_is_tried_again_so_many_times_and_the_log_tells_it(ledger, caplog):
    with caplog.at_level("INFO", "assaymark.engine.runner"):
        run_calls(ledger, [call(9)], {NAME: flaky(5)}, attempts=2, **QUICK)
    again, over = (one.getMessage() for one in caplog.records)
    assert again.startswith(f"{NAME}: attempt 1 at a call failed (busy); again in ")
    assert over == f"{NAME}: a call is given up after 2 attempts (busy)"
    summary = run_calls(ledger, calls(5), {NAME: flaky(2)}, attempts=3, **QUICK)
    assert (summary.made, summary.retried, summary.failed) == (5, 10, ())
    assert set(ledger.attempt_counts(spec.key for spec in calls(5)).values()) == {3}
    one, model = call(20), flaky(5)
    (failure,) = run_calls(ledger, [one], {NAME: model}, attempts=3, **QUICK).failed
    assert (failure.key, failure.model, failure.attempts, failure.reason) == (one.key, NAME, 3, "busy")
    assert len(model.asked) == 3
    assert run_calls(ledger, [one], {NAME: model}, attempts=3, **QUICK).made == 1  # the next run asks again
    assert ledger.attempt_counts([one.key]) == {one.key: 6}
    model = flaky(1, retryable=False)  # what will not pass is not tried again
    summary = run_calls(ledger, calls(9)[6:], {NAME: model}, attempts=4, **QUICK)
    assert (len(model.asked), len(summary.failed), summary.retried, summary.left) == (3, 3, 0, 0)


@pytest.mark.parametrize("deaf", [False, True])
def test_a_hung_attempt_is_released_at_its_deadline(ledger, clock, deaf):
    async def hang(_call):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if not deaf:  # some do not heed the first cancellation
                raise
            await asyncio.sleep(3600)

    asked, models = [*calls(2), *calls(5, model="a/other")], {NAME: Asked(hang), "a/other": echo()}
    summary = run_calls(ledger, asked, models, deadline_s=60.0, attempts=2, backoff_s=0.001, concurrency=2)
    assert clock() < 2 * 60 + 5
    assert summary.made == 5
    assert [f.reason for f in summary.failed] == ["no reply within 60 s"] * 2
    assert ledger.orphaned() == []


def test_a_defect_ends_the_run_loudly_and_keeps_what_was_answered(ledger):
    broken = call(3).key
    model = Scripted(lambda call: ZeroDivisionError("oops") if call.key == broken else "fine", wait=0.01)
    with pytest.raises(ZeroDivisionError, match="oops"):
        run_calls(ledger, calls(50), {NAME: model}, concurrency=4, **QUICK)
    answered = [key for key in model.asked if key != broken]
    assert ledger.pending(answered) == ledger.orphaned() == []
    assert len(model.asked) < 50
    assert run_calls(ledger, calls(50), {NAME: echo()}, **QUICK).already == len(answered)
    for wrong, what in (
        *((one, "a Reply with a text") for one in (None, "text", Reply(text=b"", model="m"))),
        (Reply(text="", model="m", raw=b"{}"), "its raw response as text"),
    ):
        with pytest.raises(TypeError, match=f"must return {what}"):
            run_calls(ledger, [call(60)], {NAME: returning(wrong)}, **QUICK)

    def progress(done, planned):
        raise RuntimeError("no terminal")

    model = Scripted(lambda _call: "fine", wait=0.01)
    with pytest.raises(RuntimeError, match="no terminal"):  # after what is under way
        run_calls(ledger, calls(90)[60:], {NAME: model}, concurrency=3, progress=progress, **QUICK)
    assert ledger.pending(model.asked) == []


def test_a_ledger_that_cannot_be_written_stops_everything_with_one_error_and_no_noise(ledger, monkeypatch, caplog):
    commit = ledger.commit

    def full(begin=(), ends=()):
        if ends:
            raise LedgerError("the disk is full")
        return commit(begin, ends)

    monkeypatch.setattr(ledger, "commit", full)
    models = {NAME: echo(), "a/hung": Scripted(lambda _call: "", wait=3600)}
    with pytest.raises(LedgerError, match="the disk is full"):  # nobody waits for an hour
        run_calls(ledger, [*calls(5), *calls(5, model="a/hung")], models, **QUICK | {"deadline_s": 4000.0})
    # many workers wait for a beginning that cannot be written: their ends are expected, and nobody prints them
    groups = iter(range(3))

    def fill(*args, **kwargs):
        if next(groups, None) is None:
            raise LedgerError("the disk is full")
        return commit(*args, **kwargs)

    monkeypatch.setattr(ledger, "commit", fill)
    with pytest.raises(LedgerError, match="the disk is full"):
        run_calls(ledger, calls(200), {NAME: echo()}, concurrency=8)
    gc.collect()
    assert not caplog.records


def test_an_attempt_cancelled_from_within_is_tried_again_and_a_run_is_made_inside_an_event_loop(ledger):
    asked = []

    async def cancel(_call):
        asked.append(1)
        if len(asked) == 1:
            raise asyncio.CancelledError
        return Reply(text="", model="m")

    assert run_calls(ledger, [call(20)], {NAME: Asked(cancel)}, **QUICK).retried == 1
    here = threading.get_ident()
    model = Scripted(lambda _call: "here" if threading.get_ident() == here else "elsewhere", wait=0.001)
    assert in_a_loop(lambda: run_calls(ledger, calls(3), {NAME: model})).made == 3
    assert {ledger.reply(key).text for key in model.asked} == {"elsewhere"}
    assert asyncio.run(asyncio.to_thread(run_calls, ledger, calls(6), {NAME: echo()})).made == 3
    broken = Scripted(lambda _call: ZeroDivisionError("a defect"))
    with pytest.raises(ZeroDivisionError, match="a defect"):
        in_a_loop(lambda: run_calls(ledger, [call(7)], {NAME: broken}))


AROUND = pytest.mark.parametrize("around", [lambda work: work(), in_a_loop], ids=["alone", "inside an event loop"])


@pytest.fixture
def handled(request):
    """Let signals act as they do in a program: in the background of a shell SIGINT would be ignored."""

    def let(number, handler):
        request.addfinalizer(partial(signal.signal, number, signal.signal(number, handler)))
        return handler

    return let


@AROUND
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_what_is_under_way(ledger, number, around, handled):
    sent = []

    def answer(call):
        if len(model.asked) == 6 and not sent:  # a second one would end the tests
            sent.append(number)
            os.kill(os.getpid(), number)
        return "fine"

    model = Scripted(answer, wait=0.01)
    before = handled(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    summary = around(lambda: run_calls(ledger, calls(250), {NAME: model}, concurrency=3, **QUICK))
    assert summary.interrupted
    assert ledger.pending(model.asked) == ledger.orphaned() == []
    assert summary.made == len(model.asked) == 250 - summary.left < 250
    assert signal.getsignal(number) is before
    rest = run_calls(ledger, calls(250), {NAME: model}, **QUICK)
    assert len(model.asked) == len(set(model.asked)) == 250
    assert rest.orphaned == 0


def test_a_signal_ends_the_pause_before_another_attempt_and_an_ignored_one_stays_ignored(ledger, handled):
    def killing(number, answer):
        return Scripted(lambda _call: os.kill(os.getpid(), number) or answer)

    busy = killing(signal.SIGTERM, ModelError("busy", retryable=True))
    started = time.monotonic()
    summary = run_calls(ledger, [call()], {NAME: busy}, backoff_s=60)
    assert time.monotonic() - started < 25  # a pause is at least 30 s
    assert (summary.interrupted, summary.failed, summary.left) == (True, (), 1)
    handled(signal.SIGINT, signal.SIG_IGN)
    assert not run_calls(ledger, calls(3), {NAME: killing(signal.SIGINT, "fine")}, **QUICK).interrupted


@AROUND
def test_a_second_interrupt_ends_the_run(ledger, around, handled):
    """Calls in flight are abandoned; the next run sends them again."""

    def press_twice():
        for _ in range(2):
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)

    async def hang(_call):
        pressing.start()
        await asyncio.sleep(60)

    pressing = threading.Thread(target=press_twice)
    handled(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        around(lambda: run_calls(ledger, [call()], {NAME: Asked(hang)}))
    pressing.join()
    assert len(ledger.orphaned()) == 1
    assert run_calls(ledger, [call()], {NAME: echo()}).made == 1


@pytest.mark.parametrize(
    ("n", "refused", "kind", "made"),
    [(15, 3, "content", 15), (15, 3, "call", 15), (14, 3, "call", 11), (4, 4, "content", 4)],
)
def test_a_call_that_is_turned_away_for_good_is_answered_by_that(ledger, n, refused, kind, made):
    """A model that turns many calls away may be asked wrongly, unless its filter does."""
    asked = calls(n)
    turned = {one.key for one in asked[:refused]}
    error = ModelError("no", retryable=False, refused=kind)
    model = Scripted(lambda call: error if call.key in turned else "fine")
    summary = run_calls(ledger, asked, {NAME: model}, **QUICK)
    assert (summary.made, len(summary.failed), summary.left) == (made, n - made, 0)
    assert len(ledger.pending([one.key for one in asked])) == n - made
    if made == n:
        finishes = {key: (reply.finish, reply.text) for key, reply in ledger.replies(turned)}
        assert finishes == dict.fromkeys(turned, ("refusal", "no"))
        assert run_calls(ledger, asked, {NAME: model}, **QUICK).already == len(model.asked) == n
        assert ledger.verify() > 0


# The call key is the sha256 of canonical JSON of everything that can change the answer

texts = st.text(st.characters(codec=None), max_size=20)  # lone surrogates included
parts = st.lists(texts.map(Text.of), max_size=3).map(tuple)
messages = st.lists(st.builds(Message, st.sampled_from(["system", "user"]), parts), max_size=3).map(tuple)
values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
specs = st.builds(
    CallSpec, model=texts, messages=messages, template=texts, trial=st.integers(1, 50), order=st.integers(0, 1),
    seed=st.none() | st.integers(), temperature=st.none() | st.floats(0, 2), effort=st.none() | texts,
    schema=st.none() | texts.map(Text.of), again=st.booleans(), args=st.dictionaries(texts, values, max_size=3),
)  # fmt: skip


@given(specs)
def test_fast_key_equals_the_definition(call):
    fields = {field.name: getattr(call, field.name) for field in dataclasses.fields(call)}
    fields["messages"] = [[message.role, [part.sha256 for part in message.parts]] for message in call.messages]
    if not call.again:
        del fields["again"]
    fields["schema"] = call.schema.sha256 if call.schema else None
    assert call.key == sha256_text(canonical_json(fields))


BASE = CallSpec(model="a/b", messages=(Message("user", (Text.of("x"), Text.of("y"))),), template="t")
CHANGES = {
    "model": "a/c", "messages": (Message("user", (Text.of("y"), Text.of("x"))),), "template": "u", "trial": 2,
    "order": 1, "seed": 0, "temperature": 0.0, "effort": "low", "schema": Text.of("{}"), "again": True,
    "args": {"top_p": 0.9},
}  # fmt: skip


def test_each_field_and_how_a_prompt_is_cut_changes_the_key():
    assert set(CHANGES) == {field.name for field in dataclasses.fields(CallSpec)}
    x, y, schema = Text.of("x"), Text.of("y"), Text.of("{}")
    cuts = [
        (Message("system", (x, y)),), (Message("user", (x,)), Message("user", (y,))),
        (Message("user", (Text.of("x\n\ny"),)),),
    ]  # fmt: skip
    for change in (*({name: value} for name, value in CHANGES.items()), *({"messages": cut} for cut in cuts)):
        assert dataclasses.replace(BASE, **change).key != BASE.key, change
    one, two = (dataclasses.replace(BASE, args=args) for args in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    assert one.key == two.key
    with pytest.raises(ValueError, match="no JSON form"):
        _ = dataclasses.replace(BASE, temperature=float("nan")).key
    assert dataclasses.replace(BASE, schema=schema).texts == (*BASE.texts, schema)
    assert BASE.texts == BASE.messages[0].parts
