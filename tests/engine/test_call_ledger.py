"""What the ledger promises: durable groups, one result a key, and no damage read as a result."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from engine_calls import RUBRIC, answer, call, calls, echo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assaymark.engine import INLINE_BYTES, CallSpec, End, Ledger, Message, Reply, Text, run_calls
from assaymark.engine.schema import seal
from assaymark.errors import LedgerError

CALL = call()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def tamper(path, statement, *values):
    """Change stored bytes behind the ledger's back."""
    with closing(sqlite3.connect(path)) as raw, raw:
        assert raw.execute(statement, values).rowcount != 0


def test_a_call_is_planned_once_and_its_texts_are_stored_once(ledger, path, monkeypatch):
    assert [ledger.plan(some) for some in (calls(5), calls(7), [])] == [5, 2, 0]
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("select count(*) from objects where kind = 'prompt'").fetchone() == (8,)  # rubric, 7 users
    monkeypatch.setattr("assaymark.engine.ledger._CALLS_A_GROUP", 3)
    monkeypatch.setattr("assaymark.engine.ledger._KNOWN_TEXTS", 2)
    assert ledger.plan(call(n) for n in range(10, 20)) == 10


def test_a_planned_call_can_be_read_back_and_nothing_else(ledger):
    spec = CallSpec(
        model="a/b", messages=(Message("system", (RUBRIC,)), Message("user", (Text.of("\ud800 x"), Text.of("y\x00")))),
        template="t", trial=3, order=1, seed=7, temperature=0.5, effort="low", schema=Text.of('{"type": "object"}'),
        args={"top_p": 0.9, "bad \udfff": None},
    )  # fmt: skip
    ledger.plan([spec, CALL])
    assert [ledger.call(one.key) for one in (spec, CALL)] == [spec, CALL]
    lying = CallSpec(model="a/b", messages=(Message("user", (Text("x", "0" * 64),)),), template="t")
    for work, what in (
        (lambda: ledger.call("abc"), "no call abc was planned"),
        (lambda: ledger.plan([lying]), r"a prompt part is named 0+ but its .*sha256 .*Text.of"),
        (lambda: ledger.reply(CALL.key), f"call {CALL.key} has no reply"),
        (lambda: ledger.get_object("00"), "there is no object 00"),
    ):
        with pytest.raises(LedgerError, match=what):
            work()


@pytest.mark.parametrize("scan_from", [1000, 10_000], ids=["all at once", "in groups"])
def test_pending_keeps_order_and_drops_what_is_answered(ledger, monkeypatch, scan_from):
    monkeypatch.setattr("assaymark.engine.ledger._KEYS_WORTH_A_SCAN", scan_from)
    specs = calls(1200)  # more than one query asks for at once
    keys = [spec.key for spec in specs]
    ledger.plan(specs)
    answer(ledger, specs[3:1100:2])
    assert ledger.pending(keys) == keys[:3] + keys[4:1100:2] + keys[1100:]


def test_replies_come_in_the_order_asked_and_pass_over_the_open(ledger):
    specs = calls(4)
    reply = answer(ledger, specs[:3], input_tokens=5, output_tokens=6, seconds=0.25, fingerprint="fp", finish="length")
    asked = [specs[i].key for i in (2, 3, 0)]
    assert list(ledger.replies(asked)) == [(specs[2].key, reply), (specs[0].key, reply)]


def test_the_whole_response_is_kept_as_an_object_of_its_own(ledger, path):
    raw = '{"id": "resp_1", "usage": {"reasoning": 7}, "text": "\ud800\x00"}'
    reply = answer(ledger, calls(3), raw=raw, reasoning_tokens=7, cached_tokens=3, input_tokens=5)
    assert dict(ledger.replies(spec.key for spec in calls(3))) == {spec.key: reply for spec in calls(3)}
    assert ledger.get_object(Text.of(raw).sha256).decode("utf-8", "surrogatepass") == raw
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("select count(*) from objects where kind = 'raw'").fetchone() == (1,)
    assert raw not in repr(reply)


def test_a_raw_response_is_refused_when_it_is_damaged_or_gone(ledger, path):
    answer(ledger, [CALL], raw="{}")
    tamper(path, "update objects set bytes = x'00' where kind = 'raw'")
    with pytest.raises(LedgerError, match=r"object .* is damaged"):
        ledger.reply(CALL.key)
    tamper(path, "delete from objects where kind = 'raw'")
    with pytest.raises(LedgerError, match="there is no object"):
        ledger.reply(CALL.key)
    with pytest.raises(LedgerError, match="the response body of a reply, is gone"):
        ledger.verify()


def test_a_raw_response_with_the_bytes_of_another_object_is_one_object(ledger):
    reply = answer(ledger, [CALL], "{}", raw="{}")
    assert ledger.reply(CALL.key) == reply
    assert ledger.verify() == 6  # call, attempt, reply, two prompts, one object for both


def test_a_reply_of_an_earlier_version_is_read(ledger, path):
    reply = answer(ledger, [CALL], input_tokens=5, seconds=0.25)
    with closing(sqlite3.connect(path)) as raw, raw:
        key, number, sha256, at = raw.execute("select key, number, object, finished_at from replies").fetchone()
        facts = '["m-1", null, "stop", 5, null, 0.25]'
        values = (facts.encode(), seal(key, number, sha256, facts, at))
        raw.execute("update replies set facts = ?, seal = ?", values)
    assert ledger.reply(CALL.key) == reply


def test_attempts_are_numbered_over_failures_and_their_errors_kept_readable(ledger):
    ledger.plan([CALL])
    (first,) = ledger.commit([CALL.key])
    ledger.commit(ends=[End(first, "timeout", "no reply within 5 s")])
    (second,) = ledger.commit([CALL.key])
    assert (first.number, second.number) == (1, 2)
    assert ledger.attempt_counts([CALL.key, "unknown"]) == {CALL.key: 2}
    assert [a.number for a in ledger.orphaned()] == [2]
    ledger.commit(ends=[End(second, "failed", "\ud800 nul \x00 " + "x" * 10_000)])
    assert ledger.attempt_counts([CALL.key]) == {CALL.key: 2}


def test_what_never_ended_is_orphaned_and_marked_once(ledger):
    ledger.plan(calls(3))
    begun = ledger.commit([spec.key for spec in calls(3)])
    ledger.commit(ends=[End(begun[0], "failed", "500")])
    assert {a.key for a in ledger.mark_lost()} == {a.key for a in begun[1:]}
    assert ledger.mark_lost() == []
    assert {(a.key, a.outcome) for a in ledger.orphaned()} == {(a.key, "lost") for a in begun[1:]}


def test_a_second_reply_does_not_replace_the_first(ledger, path):
    ledger.plan([CALL])
    begun = [ledger.commit([CALL.key])[0] for _ in range(3)]
    ends = [End(at, "replied", reply=Reply(text=text, model="m")) for at, text in zip(begun, "123", strict=True)]
    ledger.commit(ends=ends[:2])
    ledger.commit(ends=ends[2:])
    assert ledger.reply(CALL.key).text == "1"
    with closing(sqlite3.connect(path)) as raw:
        outcomes = raw.execute("select outcome from attempts order by number").fetchall()
    assert outcomes == [("replied",), ("superseded",), ("superseded",)]


def test_a_group_is_all_or_nothing(ledger):
    ledger.plan([CALL])
    (attempt,) = ledger.commit([CALL.key])
    good = End(attempt, "replied", reply=Reply(text="x", model="m"))
    with pytest.raises(LedgerError, match="FOREIGN KEY"):
        ledger.commit(begin=["never planned"], ends=[good])
    assert ledger.pending([CALL.key]) == [CALL.key]
    assert [a.outcome for a in ledger.orphaned()] == [None]


def test_replies_are_there_for_the_next_to_open(path):
    with Ledger.open(path) as ledger:
        reply = answer(ledger, [CALL])
    with Ledger.open(path, create=False) as again:
        assert again.reply(CALL.key) == reply


HOSTILE = {
    "empty": "", "nul": "a\x00b\x00", "lone surrogates": "\ud800 \udfff \ud83d\ude00 😀", "brackets": "[" * 200_000,
    "long integer": "9" * 100_000, "script": "<script>alert(1)</script>' ; drop table replies; --",
    "newlines": "\r\n\r \u2028 \ufeff",
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_replies_come_back_as_they_were(ledger, text):
    reply = answer(ledger, [CALL], text, fingerprint=text[:50], input_tokens=10**30, seconds=0.0)
    assert ledger.reply(CALL.key) == reply


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(st.characters(codec=None), max_size=600), st.integers(0, 10**9))
def test_any_text_comes_back_as_it_was(ledger, text, n):
    spec = call(n, model=f"a/{text[:20]}")
    if ledger.pending([spec.key]) and not ledger.attempt_counts([spec.key]):
        reply = answer(ledger, [spec], text)
        assert ledger.reply(spec.key) == reply
    assert ledger.call(spec.key) == spec


def test_fifty_megabytes_go_to_a_file_and_a_long_dull_text_stays_small_in_the_table(ledger, path):
    dull, random_ = calls(2)
    answer(ledger, [dull], "a" * 50_000_000)
    assert not (path.parent / "objects").exists()
    assert len(ledger.reply(dull.key).text) == 50_000_000
    reply = answer(ledger, [random_], os.urandom(25_000_000).hex())
    assert ledger.reply(random_.key) == reply
    (file,) = (path.parent / "objects").iterdir()
    assert file.stat().st_size > INLINE_BYTES > path.stat().st_size


@pytest.mark.parametrize("data", [b"", b"\x00\xff", b"abc" * 5000, os.urandom(2 * INLINE_BYTES)], ids=len)
def test_an_object_is_named_by_its_bytes(ledger, data):
    first, second = ledger.add_source("x", data, "context"), ledger.add_source("x", data, "context")
    assert first == second
    assert ledger.get_object(first) == data


def test_sources_are_listed_once_in_order(ledger):
    one = ledger.add_source("b.jsonl", b"1", "generic")
    ledger.add_source("a\udcff.jsonl", b"2", "generic")
    ledger.add_source("b.jsonl", b"1", "generic")
    assert [(s.path, s.format) for s in ledger.sources()] == [("b.jsonl", "generic"), ("a\\udcff.jsonl", "generic")]
    assert ledger.sources()[0].sha256 == one
    assert ledger.get_object(one) == b"1"


DAMAGE = {
    "bytes of a reply": ("update objects set bytes = x'00' where kind = 'reply'", "object .* is damaged"),
    "size of a reply": ("update objects set size = size + 1 where kind = 'reply'", "object .* is damaged"),
    "kind of value": ("update objects set bytes = cast('text' as text) where kind = 'reply'", "stored as str"),
    "facts no text": ("update replies set facts = x'ff'", "its facts are no text"),
    "facts no bytes": ("update replies set facts = cast(facts as text)", "its facts are no text"),
    "key of another kind": ("update replies set number = x'00'", "does not match its seal"),
    "codec": ("update objects set codec = 'lzma' where kind = 'reply'", "unknown codec 'lzma'"),
    "reply gone": ("delete from objects where kind = 'reply'", "its object .* is gone"),
    "tokens": ("update replies set facts = cast(replace(facts, '41', '42') as blob)", "does not match its seal"),
    "another reply's text": (
        "update replies set object = (select sha256 from objects where kind = 'prompt')", "match its seal",
    ),
    "time": ("update replies set finished_at = finished_at + 1", "does not match its seal"),
}  # fmt: skip


@pytest.mark.parametrize("text", ["short", "long and dull " * 100], ids=["raw", "zstd"])
@pytest.mark.parametrize(("statement", "message"), DAMAGE.values(), ids=DAMAGE)
def test_damage_to_a_reply_is_never_silent(path, statement, message, text):
    with Ledger.open(path) as ledger:
        answer(ledger, [CALL], text, input_tokens=41)
    tamper(path, statement)
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, match=message):
        ledger.reply(CALL.key)


@pytest.mark.parametrize("column", ["number = number + 1", "outcome = 'failed'", "started_at = 0", "error = 'x'"])
def test_damage_to_an_attempt_is_never_silent(path, column):
    with Ledger.open(path) as ledger:
        answer(ledger, [CALL])
    tamper(path, f"update attempts set {column}")
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, match=r"attempt . of call .* does not match its seal"):
        ledger.attempt_counts([CALL.key])


def test_damage_to_a_plan_or_a_source_is_never_silent(path):
    with Ledger.open(path) as ledger:
        ledger.plan([CALL])
        ledger.add_source("a", b"1", "generic")
    tamper(path, "update calls set spec = cast(replace(spec, 'trial\":1', 'trial\":2') as blob)")
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, match=r"planned call .* is damaged"):
        ledger.call(CALL.key)
    tamper(path, "update calls set spec = cast(spec as text)")
    tamper(path, "update sources set format = 'other'")
    with Ledger.open(path) as ledger:
        with pytest.raises(LedgerError, match=r"planned call .* is damaged"):
            ledger.call(CALL.key)
        with pytest.raises(LedgerError, match="source a is damaged"):
            ledger.sources()


def test_damage_to_an_object_is_never_silent(ledger, path):
    for harm in ("flip", "cut", "gone"):
        sha256 = ledger.add_source("x", os.urandom(2 * INLINE_BYTES), "context")
        file = path.parent / "objects" / sha256
        data = bytearray(file.read_bytes())
        data[1000] ^= 1
        if harm == "gone":
            file.unlink()
        else:
            file.write_bytes(data if harm == "flip" else data[:-1])
        with pytest.raises(LedgerError, match=f"object {sha256} is damaged"):
            ledger.get_object(sha256)
    sha256 = ledger.add_source("x", b"dull " * 1000, "context")
    # a frame that announces the world is not believed
    tamper(path, "update objects set bytes = x'28b52ffde0ffffffffffffff7f000000' where sha256 = ?", sha256)
    with pytest.raises(LedgerError, match=r"announces .* bytes where 5000 were stored"):
        ledger.get_object(sha256)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a small ledger, and its replies."""
    path = tmp_path_factory.mktemp("sound") / "ledger.db"
    with Ledger.open(path) as ledger:
        ledger.plan(calls(40))
        begun = ledger.commit([spec.key for spec in calls(40)])
        replies = [Reply(text=f"{a.key} " * n, model="m", input_tokens=n) for n, a in enumerate(begun)]
        ledger.commit(ends=[End(a, "replied", reply=reply) for a, reply in zip(begun, replies, strict=True)])
        ledger.add_source("a.jsonl", b"line\n" * 500, "generic")
        replies = dict(ledger.replies(a.key for a in begun))
        assert (
            ledger.verify() == 40 * 3 + 40 + 41 + 2
        )  # attempts, replies, calls; reply texts; prompt texts; the source
    return path.read_bytes(), replies


def harmed(data, n):
    """The n-th way to harm these bytes: every other one is cut, the others have one bit turned."""
    rng = random.Random(n)
    at = rng.randrange(len(data))
    return data[:at] if n % 2 else data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


@pytest.mark.parametrize("n", range(120))
def test_a_cut_or_a_turned_bit_anywhere_is_found_or_harmless(path, sound, n):
    data, replies = sound
    path.write_bytes(harmed(data, n))
    try:
        with Ledger.open(path, create=False) as ledger:
            ledger.check_structure()
            found = dict(ledger.replies(replies))
            counts = ledger.attempt_counts(replies)
    except LedgerError:
        return
    assert found == replies
    assert counts == dict.fromkeys(replies, 1)


@pytest.mark.parametrize(
    ("harm", "what"),
    [
        ("update replies set finished_at = 0", f"the reply to call {CALL.key} is damaged"),
        ("delete from attempts", r"is damaged .foreign_key_check: replies"),
    ],
)
def test_verify_names_what_has_changed_or_is_gone(path, harm, what):
    with Ledger.open(path) as ledger:
        answer(ledger, [CALL])
    tamper(path, harm)
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, match=what):
        ledger.verify()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("update calls set planned_at = 0 where rowid = 3", "row 3 of calls (key"),
        ("update calls set model = 'other' where rowid = 3", "planned call"),
        ("update objects set kind = 'reply' where rowid = 2", "row 2 of objects (sha256"),
        ("update sources set id = 7", "row 1 of sources is gone"), ("delete from sources", "row 1 of sources is gone"),
        ("update calls set planned_at = rowid", "several rows of calls have changed"),
        ("update attempts set ended_at = 0 where rowid = 2", "attempt 1 of call"),
        ("update meta set name = 'oote seal' where name = 'note seal'", "the note 'oote seal'"),
        ("update meta set value = replace(value, '1', '2') where name = 'note seal'", "the note 'seal'"),
    ],
)  # fmt: skip
def test_every_field_of_a_row_is_protected_once_a_ledger_was_closed(path, change, named):
    with Ledger.open(path) as ledger:
        answer(ledger, calls(5))
        ledger.add_source("a.jsonl", b"line", "generic")
    with Ledger.open(path) as ledger:
        audit = ledger.audit()
        assert (audit.rows, audit.differences, audit.since) == (25, (), ())
    tamper(path, change)
    with Ledger.open(path) as ledger:
        found = ledger.audit()
    assert any(one.startswith(named) for one in found.differences), found


def test_rows_that_came_after_the_last_clean_close_are_named_until_the_next_one(path):
    with Ledger.open(path) as ledger:
        answer(ledger, calls(2))
    with Ledger.open(path) as ledger:
        ledger.plan(calls(5))
        found = ledger.audit()
        assert not found.differences
        assert found.since == ("objects, rows 5 to 7", "calls, rows 3 to 5")
    with Ledger.open(path) as ledger:
        assert ledger.audit().since == ()
    tamper(path, "delete from meta where name = 'note seal'")
    with Ledger.open(path) as ledger:
        audit = ledger.audit()
        assert (audit.rows, audit.differences, audit.since) == (16, (), None)


def test_a_sealed_ledger_is_not_sealed_anew_by_who_only_reads_or_notes(path):
    with Ledger.open(path) as ledger:
        answer(ledger, calls(2))
    tamper(path, "update calls set planned_at = 0 where rowid = 1")
    with Ledger.open(path) as ledger:
        ledger.notes.leave("who", "me")
    with Ledger.open(path) as ledger:
        assert len(ledger.audit().differences) == 1


def test_a_file_that_is_no_database_is_refused_and_left_alone(path, tmp_path):
    path.write_bytes(b"not at all" * 100)
    with pytest.raises(LedgerError, match="is no ledger"):
        Ledger.open(path)
    assert path.read_bytes() == b"not at all" * 100
    with pytest.raises(LedgerError, match="cannot be opened; check that the folder exists"):
        Ledger.open(tmp_path / "absent" / "ledger.db")


def test_a_database_cut_short_is_refused(path):
    with Ledger.open(path) as ledger:
        answer(ledger, calls(200))
    path.write_bytes(path.read_bytes()[:40_000])
    with pytest.raises(LedgerError, match=r"is damaged|is no ledger"), Ledger.open(path) as ledger:
        list(ledger.replies([spec.key for spec in calls(200)]))


@pytest.mark.parametrize("table", ["songs (name text)", "meta (colour text)", "meta (name text, value text)"])
def test_a_strangers_database_is_refused_and_left_alone(path, table):
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"create table {table}")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is a database but no ledger of ours"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_another_schema_version_is_refused(path):
    Ledger.open(path).close()
    tamper(path, "update meta set value = '0' where name = 'schema'")
    with pytest.raises(LedgerError, match="is a ledger of schema '0' where this version reads '1'"):
        Ledger.open(path)


@pytest.mark.parametrize("found", ["nothing", "an empty file", "a database without tables"])
def test_an_interrupted_creation_is_finished_by_the_next(path, found):
    if found == "an empty file":
        path.touch()
    if found == "a database without tables":
        with closing(sqlite3.connect(path)) as raw:
            raw.execute("PRAGMA journal_mode=WAL")
    with pytest.raises(LedgerError, match="there is no ledger here"):
        Ledger.open(path, create=False)
    with Ledger.open(path) as ledger:
        assert ledger.plan([CALL]) == 1


def test_a_ledger_that_may_not_be_written(ledger, monkeypatch):
    monkeypatch.setattr("assaymark.engine.database._PRAGMAS", ("query_only=ON",))
    ledger.close()  # the next connection is made anew
    with pytest.raises(LedgerError, match="cannot be written; check the permissions"):
        ledger.plan([CALL])


def test_a_full_disk_loses_nothing(path, monkeypatch):
    with Ledger.open(path) as ledger:
        answer(ledger, calls(3))
    # SQLite answers a page limit exactly as it answers a full disk.
    monkeypatch.setattr("assaymark.engine.database._PRAGMAS", ("max_page_count=20",))
    with Ledger.open(path) as ledger:
        with pytest.raises(LedgerError, match="the disk is full; what was committed is safe"):
            ledger.plan(calls(2000))
        assert ledger.pending([spec.key for spec in calls(3)]) == []
    monkeypatch.undo()
    with Ledger.open(path) as ledger:
        assert ledger.plan(calls(2000)) == 1997


def test_a_full_disk_under_a_large_object(ledger, path, monkeypatch):
    def full(_handle):
        raise OSError(28, "No space left on device", "x")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LedgerError, match="the disk is full"):
        ledger.add_source("x", os.urandom(2 * INLINE_BYTES), "context")
    assert not list(path.parent.glob("objects/*"))


def test_a_database_held_by_another(ledger, path, monkeypatch):
    monkeypatch.setattr("assaymark.engine.database.BUSY_S", 0.05)
    with Ledger.open(path) as second, closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="is held by another process"):
            second.plan([CALL])


def test_a_second_run_is_refused_by_name_and_the_lock_dies_with_its_holder(ledger, path):
    with Ledger.open(path) as other, ledger.exclusive():
        with pytest.raises(LedgerError, match=f"another run is using this ledger .process {os.getpid()}."):
            other.exclusive().__enter__()
        assert other.plan([CALL]) == 1  # only running calls needs the right
    with ledger.exclusive():
        pass
    code = (
        "import sys, os, signal; from assaymark.engine import Ledger\n"
        "with Ledger.open(sys.argv[1]).exclusive(): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == -9
    with ledger.exclusive():
        pass
    lock = path.with_name("ledger.db.lock")
    lock.unlink()
    lock.mkdir()
    with pytest.raises(LedgerError, match="the store refused: Is a directory"), ledger.exclusive():
        pass


# A ledger is looked over before anything is paid for: once an opening, however many runs there are


def asked(ledger: Ledger, number: int) -> int:
    return run_calls(ledger, [call(number)], {"reference/echo": echo()}).made


def test_once_an_opening_and_again_after_the_next(path, monkeypatch):
    looks: list[str] = []
    check = Ledger.check_structure
    monkeypatch.setattr(Ledger, "check_structure", lambda self: looks.append("looked") or check(self))
    for opening in (1, 2):
        with Ledger.open(path) as ledger:
            assert [asked(ledger, 10 * opening + number) for number in range(3)] == [1, 1, 1]
        assert len(looks) == opening

    def damaged(_: Ledger) -> None:
        raise LedgerError("it does not hang together")

    monkeypatch.setattr(Ledger, "check_structure", damaged)
    with Ledger.open(path) as ledger:
        for number in range(2):
            with pytest.raises(LedgerError, match="does not hang together"):
                asked(ledger, number)
