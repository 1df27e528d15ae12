"""Guarantees of the ledger: durable commits, one result per key, and damage that is never read as a result."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from engine_calls import RUBRIC, answer, begin, call, calls, echo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assaymark.engine import INLINE_BYTES, CallSpec, End, Ledger, Message, Reply, Text, run_calls
from assaymark.engine.calls import seal
from assaymark.errors import LedgerError

CALL = call()
KEYS = [spec.key for spec in calls(5)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def answered(path, specs=(CALL,), **facts):
    """A closed ledger that holds the replies to these calls."""
    with Ledger.open(path) as ledger:
        return answer(ledger, list(specs), **facts)


def rows(path, statement):
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute(statement).fetchall()


def tamper(path, statement, *values):
    """Change stored bytes behind the ledger's back."""
    with closing(sqlite3.connect(path)) as raw, raw:
        assert raw.execute(statement, values).rowcount != 0


# What a ledger in a file and one in a database keep alike


def test_calls_replies_and_sources_come_back_as_they_were(either):
    spec = CallSpec(
        model="a/b\x00", messages=(Message("system", (RUBRIC,)), Message("user", (Text.of("\ud800"), Text.of("\x00")))),
        template="t", trial=3, order=1, seed=2**70, temperature=0.5, effort="low", schema=Text.of('{"type": "object"}'),
        args={"top_p": 0.9, "bad \udfff": "\x00", "none": None},
    )  # fmt: skip
    assert [either.plan(some) for some in ([spec, CALL], [spec, *calls(3)], [])] == [2, 2, 0]
    assert [either.call(one.key) for one in (spec, CALL)] == [spec, CALL]
    hostile = "nul \x00 \ud800 \udfff 😀 <script>" + "9" * 5000
    reply = answer(either, [spec], hostile, raw=hostile, fingerprint="\x00\ud800", input_tokens=10**30, seconds=0.1)
    assert either.reply(spec.key) == reply
    assert either.get_object(Text.of(hostile).sha256).decode("utf-8", "surrogatepass") == hostile
    assert hostile not in repr(Reply(text="", model="m", raw=hostile))
    assert either.pending([spec.key, CALL.key]) == [CALL.key]
    assert either.pending_models() == {"reference/echo": 3}
    assert either.pending_of("reference/echo") == sorted(KEYS[:3])
    assert either.begun()
    one = either.add_source("b\x00.jsonl", b"1", "generic")
    either.add_source("a\udcff.jsonl", b"2", "generic")
    assert either.add_source("b\x00.jsonl", b"1", "generic") == one == either.sources()[0].sha256
    assert [(s.path, s.format) for s in either.sources()] == [
        ("b\\x00.jsonl", "generic"), ("a\\udcff.jsonl", "generic"),
    ]  # fmt: skip
    assert [either.get_object(either.add_source("x", b, "x")) for b in (b"1", b"", b"\x00\xff")] == [
        b"1", b"", b"\x00\xff",
    ]  # fmt: skip
    lying = CallSpec(model="a/b", messages=(Message("user", (Text("x", "0" * 64),)),), template="t")
    for work, what in (
        (lambda: either.call("abc"), "no call abc was planned"),
        (lambda: either.plan([lying]), r"a prompt part is named 0+ but its .*sha256 .*Text.of"),
        (lambda: either.reply(CALL.key), f"call {CALL.key} has no reply"),
        (lambda: either.get_object("00"), "there is no object 00"),
    ):
        with pytest.raises(LedgerError, match=what):
            work()


def test_a_look_over_everything_counts_rows_and_each_object_once(either):
    assert dict(either.replies([])) == {}
    reply = answer(either, calls(2), "{}", raw="{}")  # a reply and its raw response with the same bytes
    assert dict(either.replies(reversed(KEYS[:4]))) == {KEYS[1]: reply, KEYS[0]: reply}
    assert [key for key, _ in either.replies([KEYS[1], KEYS[3], KEYS[0]])] == [KEYS[1], KEYS[0]]
    assert either.verify() == 3 * 2 + 3 + 1  # calls, attempts, replies; three prompts; the one object


def test_attempts_are_numbered_over_failures_and_what_never_ended_is_marked_once(either):
    either.plan(calls(3))
    (first,) = begin(either, KEYS[:1])
    either.commit(ends=[End(first, "timeout", "no reply within 5 s")])
    second, other = begin(either, KEYS[:2])
    assert (first.number, second.number) == (1, 2)
    assert either.attempt_counts([*KEYS[:1], "unknown"]) == {KEYS[0]: 2}
    assert {(a.key, a.number, a.outcome) for a in either.orphaned()} == {(KEYS[0], 2, None), (KEYS[1], 1, None)}
    either.commit(ends=[End(second, "failed", "\ud800 nul \x00 " + "x" * 10_000)])
    assert [a.key for a in either.mark_lost()] == [other.key]
    assert either.mark_lost() == []
    assert [(a.key, a.outcome) for a in either.orphaned()] == [(other.key, "lost")]
    with pytest.raises(LedgerError, match=r"(?i)foreign key"):  # a group is all or nothing
        either.commit([("never planned", None)], ends=[End(other, "replied", reply=Reply(text="x", model="m"))])
    assert either.pending(KEYS[:3]) == KEYS[:3]


def test_a_second_reply_does_not_replace_the_first(either):
    either.plan([CALL])
    begun = [begin(either, [CALL.key])[0] for _ in range(3)]
    ends = [End(at, "replied", reply=Reply(text=text, model="m")) for at, text in zip(begun, "123", strict=True)]
    either.commit(ends=ends[:2])
    either.commit(ends=ends[2:])
    assert either.reply(CALL.key).text == "1"
    with either._store.engine.connect() as connection:
        outcomes = connection.exec_driver_sql("select outcome from attempts order by number").scalars().all()
    assert outcomes == ["replied", "superseded", "superseded"]


# A ledger in a file


def test_pending_keeps_order_and_drops_what_is_answered(ledger, monkeypatch):
    specs = calls(1200)  # more than one query asks for at once
    keys = [spec.key for spec in specs]
    ledger.plan(specs)
    answer(ledger, specs[3:1100:2])
    for scan_from in (1000, 10_000):  # all at once, and in groups
        monkeypatch.setattr("assaymark.engine.ledger._KEYS_WORTH_A_SCAN", scan_from)
        assert ledger.pending(keys) == keys[:3] + keys[4:1100:2] + keys[1100:]


def test_texts_are_stored_once_plans_in_groups_and_a_reply_of_an_earlier_version_is_read(ledger, path, monkeypatch):
    assert [ledger.plan(some) for some in (calls(5), calls(7))] == [5, 2]
    assert rows(path, "select count(*) from objects where kind = 'prompt'") == [(8,)]  # the rubric and 7 users
    monkeypatch.setattr("assaymark.engine.ledger._CALLS_A_GROUP", 3)
    monkeypatch.setattr("assaymark.engine.ledger._KNOWN_TEXTS", 2)
    assert ledger.plan(call(n) for n in range(10, 20)) == 10
    reply = answer(ledger, [CALL], input_tokens=5, seconds=0.25)
    ((key, number, sha256, at),) = rows(path, "select key, number, object, finished_at from replies")
    facts = '["m-1", null, "stop", 5, null, 0.25]'
    tamper(path, "update replies set facts = ?, seal = ?", facts.encode(), seal(key, number, sha256, facts, at))
    assert ledger.reply(CALL.key) == reply


def test_hostile_replies_come_back_as_they_were(ledger):
    texts = [
        "", "a\x00b\x00", "\ud800 \udfff \ud83d\ude00 😀", "[" * 200_000, "9" * 100_000, "\r\n\r \u2028 \ufeff",
        "<script>alert(1)</script>' ; drop table replies; --",
    ]  # fmt: skip
    for spec, text in zip(calls(len(texts)), texts, strict=True):
        reply = answer(ledger, [spec], text, fingerprint=text[:50], input_tokens=10**30, seconds=0.0)
        assert ledger.reply(spec.key) == reply


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(st.characters(codec=None), max_size=600), st.integers(0, 10**9))
def test_any_text_comes_back_as_it_was(ledger, text, n):
    spec = call(n, model=f"a/{text[:20]}")
    if ledger.pending([spec.key]) and not ledger.attempt_counts([spec.key]):
        assert answer(ledger, [spec], text) == ledger.reply(spec.key)
    assert ledger.call(spec.key) == spec


def test_a_large_text_goes_to_a_file_and_a_long_dull_one_stays_small_in_the_table(ledger, path):
    dull, random_ = calls(2)
    answer(ledger, [dull], "a" * 50_000_000)
    assert not (path.parent / "objects").exists()
    assert len(ledger.reply(dull.key).text) == 50_000_000
    reply = answer(ledger, [random_], os.urandom(4 * INLINE_BYTES).hex())
    assert ledger.reply(random_.key) == reply
    (file,) = (path.parent / "objects").iterdir()
    assert file.stat().st_size > INLINE_BYTES > path.stat().st_size


REPLY_DAMAGE = {
    "update objects set bytes = x'00' where kind = 'reply'": "object .* is damaged",
    "update objects set size = size + 1 where kind = 'reply'": "object .* is damaged",
    "update objects set bytes = cast('text' as text) where kind = 'reply'": "stored as str",
    "update objects set codec = 'lzma' where kind = 'reply'": "unknown codec 'lzma'",
    "delete from objects where kind = 'reply'": "its object .* is gone",
    "update replies set facts = x'ff'": "its facts are not text",
    "update replies set facts = cast(facts as text)": "its facts are not text",
    "update replies set number = x'00'": "does not match its seal",
    "update replies set facts = cast(replace(facts, '41', '42') as blob)": "does not match its seal",
    "update replies set object = (select sha256 from objects where kind = 'prompt')": "match its seal",
    "update replies set finished_at = finished_at + 1": "does not match its seal",
    "update objects set bytes = x'00' where kind = 'raw'": "object .* is damaged",
    "delete from objects where kind = 'raw'": "there is no object|the response body of a reply, is gone",
}


@pytest.mark.parametrize("text", ["short", "long and dull " * 100], ids=["raw", "zstd"])
@pytest.mark.parametrize("statement", REPLY_DAMAGE)
def test_damage_to_a_reply_is_never_silent(path, statement, text):
    answered(path, text=text, input_tokens=41, raw="{}")
    tamper(path, statement)
    with Ledger.open(path) as ledger:
        with pytest.raises(LedgerError, match=REPLY_DAMAGE[statement]):
            ledger.reply(CALL.key)
        with pytest.raises(LedgerError, match=r"damaged|gone|codec|stored as str|no text|its seal"):
            ledger.verify()


def test_damage_to_attempts_plans_and_sources_is_never_silent(path):
    with Ledger.open(path) as ledger:
        answer(ledger, [CALL])
        ledger.add_source("a", b"1", "generic")
    sound = path.read_bytes()
    seal_broken = "attempt . of call .* does not match its seal"
    for statement, read, what in (
        *((f"update attempts set {column}", lambda ledger: ledger.attempt_counts([CALL.key]), seal_broken)
          for column in ("number = number + 1", "outcome = 'failed'", "started_at = 0", "error = 'x'")),
        ("update calls set spec = cast(replace(spec, 'trial\":1', 'trial\":2') as blob)",
         lambda ledger: ledger.call(CALL.key), "planned call .* is damaged"),
        ("update calls set spec = cast(spec as text)", lambda ledger: ledger.call(CALL.key), "planned call .* damaged"),
        ("update sources set format = 'other'", Ledger.sources, "source a is damaged"),
        ("update replies set finished_at = 0", Ledger.verify, f"the reply to call {CALL.key} is damaged"),
        ("delete from attempts", Ledger.verify, r"is damaged .foreign_key_check: replies"),
    ):  # fmt: skip
        path.write_bytes(sound)
        tamper(path, statement)
        with Ledger.open(path) as ledger, pytest.raises(LedgerError, match=what):
            read(ledger)


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
    if "note seal" not in change:
        with Ledger.open(path) as ledger:  # who only reads or notes does not seal it anew
            ledger.notes.setdefault("who", "me")
    with Ledger.open(path) as ledger:
        found = ledger.audit()
    assert any(one.startswith(named) for one in found.differences), found


def test_rows_that_came_after_the_last_clean_close_are_named_until_the_next_one(path):
    answered(path, calls(2))
    with Ledger.open(path) as ledger:
        ledger.plan(calls(5))
        found = ledger.audit()
        assert (found.differences, found.since) == ((), ("objects, rows 5 to 7", "calls, rows 3 to 5"))
    with Ledger.open(path) as ledger:
        assert ledger.audit().since == ()
    tamper(path, "delete from meta where name = 'note seal'")
    with Ledger.open(path) as ledger:
        audit = ledger.audit()
        assert (audit.rows, audit.differences, audit.since) == (16, (), None)


def test_what_is_no_ledger_of_ours_is_refused_and_left_alone(path, tmp_path):
    def refused(what, **more):
        before = path.read_bytes() if path.exists() else None
        with pytest.raises(LedgerError, match=what):
            Ledger.open(path, **more)
        assert (path.read_bytes() if path.exists() else None) == before

    refused("there is no call log here", create=False)
    path.touch()
    refused("there is no call log here", create=False)
    path.write_bytes(b"not at all" * 100)
    refused("is not a call log")
    for table in ("songs (name text)", "meta (colour text)", "meta (name text, value text)"):
        path.unlink()
        with closing(sqlite3.connect(path)) as raw:
            raw.execute(f"create table {table}")
        refused("is a database but not a call log")
    path.unlink()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA journal_mode=WAL")
    refused("there is no call log here", create=False)
    Ledger.open(path).close()  # an interrupted creation is finished
    tamper(path, "update meta set value = '0' where name = 'schema'")
    with pytest.raises(LedgerError, match="is a call log of schema '0' where this version reads '1'"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="cannot be opened; check that the folder exists"):
        Ledger.open(tmp_path / "absent" / "ledger.db")
    path.unlink()
    path.touch()
    answered(path, calls(200))  # so is that of an empty file
    path.write_bytes(path.read_bytes()[:40_000])
    with pytest.raises(LedgerError, match=r"is damaged|is not a call log"), Ledger.open(path) as ledger:
        list(ledger.replies([spec.key for spec in calls(200)]))


def test_a_full_disk_loses_nothing(path, monkeypatch):
    answered(path, calls(3))
    # SQLite answers a page limit exactly as it answers a full disk.
    monkeypatch.setattr("assaymark.engine.database._PRAGMAS", ("max_page_count=20",))
    with Ledger.open(path) as ledger:
        with pytest.raises(LedgerError, match="the disk is full; what was committed is safe"):
            ledger.plan(calls(2000))
        assert ledger.pending(KEYS[:3]) == []
    monkeypatch.undo()

    def full(_handle):
        raise OSError(28, "No space left on device", "x")

    with Ledger.open(path) as ledger:
        assert ledger.plan(calls(2000)) == 1997
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(LedgerError, match="the disk is full"):
            ledger.add_source("x", os.urandom(2 * INLINE_BYTES), "context")
        assert not list(path.parent.glob("objects/*"))


def test_a_database_held_by_another_or_that_may_not_be_written(ledger, path, monkeypatch):
    monkeypatch.setattr("assaymark.engine.database.BUSY_S", 0.05)
    with Ledger.open(path) as second, closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="is held by another process"):
            second.plan([CALL])
    monkeypatch.setattr("assaymark.engine.database._PRAGMAS", ("query_only=ON",))
    ledger.close()  # the next connection is made anew
    with pytest.raises(LedgerError, match="cannot be written; check the permissions"):
        ledger.plan([CALL])


def test_a_second_run_is_refused_by_name_and_the_lock_dies_with_its_holder(ledger, path):
    with Ledger.open(path) as other, ledger.exclusive():
        with pytest.raises(LedgerError, match=f"another run is using this call log .process {os.getpid()}."):
            other.exclusive().__enter__()
        assert other.plan([CALL]) == 1  # only running calls needs the right
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
    with pytest.raises(LedgerError, match="the database refused: Is a directory"), ledger.exclusive():
        pass


def test_a_ledger_is_looked_over_once_an_opening_before_anything_is_paid_for(path, monkeypatch):
    def asked(number):
        return run_calls(ledger, [call(number)], {"reference/echo": echo()}).made

    looks: list[str] = []
    check = Ledger.check_structure
    monkeypatch.setattr(Ledger, "check_structure", lambda self: looks.append("looked") or check(self))
    for opening in (1, 2):
        with Ledger.open(path) as ledger:
            assert [asked(10 * opening + number) for number in range(3)] == [1, 1, 1]
        assert len(looks) == opening

    def damaged(_: Ledger) -> None:
        raise LedgerError("it does not hang together")

    monkeypatch.setattr(Ledger, "check_structure", damaged)
    with Ledger.open(path) as ledger:
        for number in range(2):
            with pytest.raises(LedgerError, match="does not hang together"):
                asked(number)
