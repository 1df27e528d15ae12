"""A run folder may keep its ledger in a database, and never keeps a password."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import sqlalchemy as sa
from made_records import OWN

from assaymark.cli import main
from assaymark.engine import CallSpec, Failure, Ledger, RunSummary
from assaymark.errors import LedgerError
from assaymark.workflow import RunFolder, name_ledger, verify_run, work, work_lines

STUDY = "x.toml"
NOWHERE = "postgresql+psycopg://me@127.0.0.1:1/x"
ENGINE = """
[engine]
concurrency = 3
deadline_s = 77.0
attempts = 2
[engine.limits.reference]
requests_per_minute = 100000
[engine.limits.openai]
requests_per_minute = 5
tokens_per_minute = 600
"""


@pytest.fixture(autouse=True)
def a_study_file(tmp_path, monkeypatch):
    """A valid study file; no test here gets as far as its content."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / STUDY).write_text("")


def test_a_url_that_cannot_be_kept_is_refused_without_being_shown(tmp_path, refused):
    for url, message in (
        ("postgresql+psycopg://me:canary-77@127.0.0.1:1/x", "must not hold a password"),
        ("postgresql+psycopg://me@127.0.0.1:1/x?password=canary-77", "must not hold a password"),
        ("canary-77 no url", "is not the URL of a database"),
        ("mysql://me@127.0.0.1:1/x", "a call log is a file or a database postgresql"),
    ):
        err = refused("run", STUDY, "--out", tmp_path / "run", "--ledger", url)
        assert message in err
        assert "canary-77" not in err
        assert not (tmp_path / "run").exists()


def test_a_database_that_does_not_answer_is_one_line_and_leaves_no_folder(tmp_path, refused):
    pytest.importorskip("psycopg", reason="needs psycopg (extra: test)")
    err = refused("run", STUDY, "--out", tmp_path / "run", "--ledger", NOWHERE)
    assert err.count("\n") == 1
    assert not (tmp_path / "run" / "ledger.url").exists()


def test_a_folder_with_a_ledger_keeps_it_and_a_named_database_is_where_it_is(own_run, tmp_path, refused):
    err = refused("run", STUDY, "--out", own_run, "--ledger", NOWHERE)
    assert "has its call log elsewhere already" in err
    assert RunFolder(own_run).ledger == own_run / "ledger.db"
    (tmp_path / "ledger.url").write_text(f"{NOWHERE}\n")
    folder = RunFolder(tmp_path)
    assert (folder.ledger, folder.has_ledger) == (NOWHERE, True)
    name_ledger(folder, NOWHERE)
    assert "no such run folder" in refused("worker", tmp_path / "none")


def test_what_a_worker_prints():
    summary = RunSummary(
        planned=9, already=0, made=4, failed=(Failure("k" * 64, "openai/m", 4, "busy (503)"),), retried=3,
        interrupted=False, in_flight_bound=8, orphaned=0, stopped=("openai: stopped asking it",), elsewhere=2,
    )  # fmt: skip
    assert work_lines(summary) == [
        "4 calls answered here, 2 by others, 1 failed, 2 left", "first failure: kkkkkkkkkkkk..., busy (503)",
        "openai: stopped asking it",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def hosted(empty_schema, tmp_path_factory):
    """A run folder whose ledger is in a database, with a finished study, and the URL of that database."""
    with empty_schema() as url:
        root = tmp_path_factory.mktemp("hosted")
        study = root / "study.toml"
        study.write_text(OWN.read_text() + ENGINE)
        assert main(["run", str(study), "--out", str(root / "run"), "--ledger", url]) == 0
        yield root / "run", url


def test_a_worker_with_nothing_but_the_ledger_works_in_the_manner_of_the_plan(hosted, monkeypatch):
    folder, url = hosted
    seen = []
    monkeypatch.setattr("assaymark.workflow.study_calls.run_worker", lambda *_, **manner: seen.append(manner))
    work(url, {})
    work(RunFolder(folder), {})
    for manner in seen:
        assert (manner["concurrency"], manner["deadline_s"], manner["attempts"]) == (3, 77.0, 2)
        limits = {name: (one.requests_per_minute, one.tokens_per_minute) for name, one in manner["limits"].items()}
        assert limits == {"reference": (100_000, None), "openai": (5, 600)}


def test_a_worker_answers_what_is_planned_in_a_ledger(hosted, ran):
    _, url = hosted
    with Ledger.open(url) as ledger:
        key = min(one.key for one in ledger.answered())
        again = replace(ledger.call(key), trial=77)
        ledger.plan([again])
    assert "1 calls answered here" in ran("worker", "--ledger", url)
    with Ledger.open(url) as ledger:
        assert ledger.reply(again.key).text
        assert ledger.verify() > 0


def test_a_second_plan_in_the_same_database_is_refused_before_it_plans_anything(hosted, tmp_path, refused):
    _, url = hosted
    (tmp_path / "other.toml").write_text(OWN.read_text().replace("seed = 1\n", "seed = 9\n", 1) + ENGINE)
    with Ledger.open(url) as ledger:
        before = ledger.verify()
    err = refused("run", tmp_path / "other.toml", "--out", tmp_path / "other", "--ledger", url)
    assert "holds the calls of another plan" in err
    assert "name another database, or another schema of it" in err
    assert err.count("\n") == 1
    with Ledger.open(url) as ledger:
        assert ledger.verify() == before
    assert "holds the calls of another plan" in refused("worker", tmp_path / "other")


def test_folders_of_one_plan_that_share_a_database_have_one_lock(hosted, tmp_path, ran):
    folder, url = hosted
    ran("run", folder.parent / "study.toml", "--out", tmp_path / "other", "--ledger", url)
    assert (tmp_path / "other" / "study.lock").read_bytes() == (folder / "study.lock").read_bytes()
    found = verify_run(RunFolder(tmp_path / "other"))
    assert found.differences == ()
    assert any("not sealed: a database never is" in one for one in found.notes)


def test_a_ledger_that_no_run_has_asked_through_names_no_manner(database, refused, ran):
    with Ledger.open(database):
        pass
    ran("worker", "--ledger", database)
    with Ledger.open(database) as ledger:
        ledger.plan([CallSpec(model="openai/m", messages=(), template="")])
    err = refused("worker", "--ledger", database)
    assert "does not say how its calls are to be asked" in err


def test_a_note_that_was_damaged_is_not_read(database):
    with Ledger.open(database) as ledger:
        assert ledger.notes.get("manner") is None
        assert ledger.notes.setdefault("manner", "a") == "a" == ledger.notes.setdefault("manner", "b")
        ledger.notes.set("manner", "c\ud83d")
        assert ledger.notes.get("manner") == "c\ud83d"
        found = ledger.verify()
        engine = sa.create_engine(database)
        with engine.begin() as connection:
            connection.execute(sa.text("update meta set value = replace(value, 'c', 'd') where name = 'note manner'"))
        engine.dispose()
        for read in (partial(ledger.notes.get, "manner"), ledger.verify):
            with pytest.raises(LedgerError, match="the note 'manner' of the call log is damaged"):
                read()
    assert found == 1
