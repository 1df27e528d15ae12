"""A ledger in PostgreSQL keeps what a ledger in a file keeps, and says as plainly what is wrong."""

from __future__ import annotations

import os
import sys

import pytest
import sqlalchemy as sa
from engine_calls import RUBRIC, answer, call, calls

from assaymark.engine import CallSpec, Ledger, Message, Text
from assaymark.engine.calls import INLINE_BYTES
from assaymark.engine.database import _see_to_durability, is_url
from assaymark.errors import LedgerError

CALL = call()
SECRET = "canary-4711"


def change(url, statement):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        assert connection.execute(sa.text(statement)).rowcount != 0
    engine.dispose()


def test_calls_and_replies_come_back_as_they_were(shared):
    spec = CallSpec(
        model="a/b\x00",
        messages=(Message("system", (RUBRIC,)), Message("user", (Text.of("\ud800 x"), Text.of("y\x00")))),
        template="t",
        seed=2**70,
        schema=Text.of('{"type": "object"}'),
        args={"bad \udfff": "\x00"},
    )
    assert (shared.plan([spec, CALL]), shared.plan([spec, *calls(3)])) == (2, 2)
    assert shared.call(spec.key) == spec
    hostile = "nul \x00 \ud800 \udfff 😀 <script>" + "9" * 5000
    reply = answer(shared, [spec], hostile, raw=hostile, fingerprint="\x00\ud800", input_tokens=10**30, seconds=0.1)
    assert shared.reply(spec.key) == reply
    assert shared.pending([spec.key, CALL.key]) == [CALL.key]
    assert shared.pending_models() == {"reference/echo": 3}
    assert shared.pending_of("reference/echo") == sorted(one.key for one in calls(3))
    assert shared.begun()


def test_large_objects_live_in_the_table(shared, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = os.urandom(3 * INLINE_BYTES)
    assert shared.get_object(shared.put_object(data, "context")) == data
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("assaymark.engine.database._MOST_BYTES", 1000)
    with pytest.raises(LedgerError, match="an object of 2000 bytes is too large"):
        shared.put_object(os.urandom(2000), "context")


def test_an_error_of_any_content_is_kept(shared):
    shared.plan([CALL])
    (attempt,) = shared.begin([CALL.key])
    shared.fail([(attempt, "failed", "\ud800 nul \x00 " + "x" * 10_000)])
    assert shared.attempt_counts([CALL.key]) == {CALL.key: 1}


def test_sources_and_a_look_over_everything(shared):
    one = shared.add_source("b\x00.jsonl", b"1", "generic")
    shared.add_source("a\udcff.jsonl", b"2", "generic")
    shared.add_source("b\x00.jsonl", b"1", "generic")
    assert [s.path for s in shared.sources()] == ["b\\x00.jsonl", "a\\udcff.jsonl"]
    assert shared.get_object(one) == b"1"
    answer(shared, calls(2), raw="{}")
    assert shared.verify() == 2 + 3 * 2 + 7  # sources; calls, attempts, replies; their bytes, three prompts, two texts


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("update objects set bytes = '\\x00' where kind = 'reply'", "object .* is damaged"),
        ("update objects set bytes = null where kind = 'reply'", "its bytes are gone"),
        ("update replies set finished_at = 0", "does not match its seal"),
    ],
)
def test_damage_is_never_silent(shared, database, statement, message):
    answer(shared, [CALL])
    change(database, statement)
    with pytest.raises(LedgerError, match=message):
        shared.reply(CALL.key)


def test_it_is_there_for_the_next_to_open(database):
    with pytest.raises(LedgerError, match="there is no ledger here"):
        Ledger.open(database, create=False)
    with Ledger.open(database) as ledger:
        reply = answer(ledger, [CALL])
        ledger.check_structure()
    with Ledger.open(database, create=False) as again:
        assert again.reply(CALL.key) == reply


def test_strangers_and_other_versions_are_refused(database):
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        connection.execute(sa.text("create table songs (name text)"))
    with pytest.raises(LedgerError, match="is a database but no ledger of ours"):
        Ledger.open(database)
    with engine.begin() as connection:
        connection.execute(sa.text("drop table songs"))
    engine.dispose()
    Ledger.open(database).close()
    change(database, "update meta set value = '0' where name = 'schema'")
    with pytest.raises(LedgerError, match="is a ledger of schema '0'"):
        Ledger.open(database)


def test_where_no_server_is_the_error_has_no_password():
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra: postgres)")
    url = f"postgresql://someone:{SECRET}@127.0.0.1:9/study?application_name={SECRET}"
    with pytest.raises(LedgerError, match=r"^postgresql://127.0.0.1/study: cannot be reached") as caught:
        Ledger.open(url)
    assert SECRET not in str(caught.value)


def test_a_url_that_cannot_be_read_is_not_shown():
    with pytest.raises(LedgerError, match="the URL of the ledger cannot be read") as caught:
        Ledger.open(f"postgresql://someone:{SECRET}@host:port/study")
    assert SECRET not in str(caught.value)
    with pytest.raises(LedgerError, match=r"a file or a database postgresql.* URL of 'mysql'"):
        is_url("mysql://host/study")


def test_without_the_driver_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"pip install 'assaymark\[postgres\]'"):
        Ledger.open("postgresql://127.0.0.1/study")


class Answering:
    """As much of a connection as is looked at: what the server says of itself, and what it is told."""

    def __init__(self, *settings):
        self.settings, self.told = settings, []

    def cursor(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_args):
        pass

    def execute(self, statement):
        self.told.append(statement)

    def fetchone(self):
        return self.settings

    def commit(self):
        pass


def test_a_server_that_can_lose_commits_is_refused():
    with pytest.raises(LedgerError, match="fsync = off"):
        _see_to_durability(Answering("off", "on"), None)
    hasty, careful = Answering("on", "off"), Answering("on", "remote_apply")
    _see_to_durability(hasty, None)
    _see_to_durability(careful, None)
    assert hasty.told[-1] == "SET synchronous_commit = on"
    assert len(careful.told) == 1
