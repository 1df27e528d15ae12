"""A run folder may keep its ledger in a database, and never keeps a password."""

from __future__ import annotations

import pytest

from assaymark.cli import main
from assaymark.engine import RunSummary
from assaymark.engine.runner import Failure
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.sharing import name_ledger, work_lines

STUDY = "x.toml"


@pytest.fixture(autouse=True)
def a_study_file(tmp_path, monkeypatch):
    """A study file that can be read; nothing here comes as far as what is in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / STUDY).write_text("")


def refused(capsys, *arguments) -> str:
    assert main([*map(str, arguments)]) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql+psycopg://me:canary-77@127.0.0.1:1/x", "must not hold a password"),
        ("postgresql+psycopg://me@127.0.0.1:1/x?password=canary-77", "must not hold a password"),
        ("canary-77 no url", "is no URL of a database"),
        ("mysql://me@127.0.0.1:1/x", "a ledger is a file or a database postgresql"),
    ],
)
def test_a_url_that_cannot_be_kept_is_refused_without_being_shown(tmp_path, capsys, url, message):
    err = refused(capsys, "run", STUDY, "--out", tmp_path / "run", "--ledger", url)
    assert message in err
    assert "canary-77" not in err
    assert not (tmp_path / "run").exists()


def test_a_database_that_does_not_answer_is_one_line_and_leaves_no_folder(tmp_path, capsys):
    pytest.importorskip("psycopg", reason="needs psycopg (extra: test)")
    err = refused(capsys, "run", STUDY, "--out", tmp_path / "run", "--ledger", "postgresql+psycopg://me@127.0.0.1:1/x")
    assert err.count("\n") == 1
    assert not (tmp_path / "run" / "ledger.url").exists()


def test_a_folder_with_a_ledger_keeps_it(own_run, capsys):
    err = refused(capsys, "run", STUDY, "--out", own_run, "--ledger", "postgresql+psycopg://me@127.0.0.1:1/x")
    assert "has its ledger elsewhere already" in err
    assert RunFolder(own_run).ledger == own_run / "ledger.db"


def test_a_named_database_is_where_the_ledger_is(tmp_path):
    (tmp_path / "ledger.url").write_text("postgresql+psycopg://me@127.0.0.1:1/x\n")
    folder = RunFolder(tmp_path)
    assert folder.ledger == "postgresql+psycopg://me@127.0.0.1:1/x"
    assert folder.has_ledger
    name_ledger(folder, "postgresql+psycopg://me@127.0.0.1:1/x")


def test_a_worker_without_a_ledger_says_so(tmp_path, capsys):
    assert "no such run folder" in refused(capsys, "worker", tmp_path / "none")


def test_what_a_worker_prints():
    failure = Failure("k" * 64, "openai/m", 4, "busy (503)")
    summary = RunSummary(
        planned=9, already=0, made=4, failed=(failure,), retried=3, interrupted=False, in_flight_bound=8, orphaned=0,
        stopped=("openai: stopped asking it",), elsewhere=2,
    )  # fmt: skip
    assert work_lines(summary) == [
        "4 calls answered here, 2 by others, 1 failed, 2 left",
        "first failure: kkkkkkkkkkkk..., busy (503)",
        "openai: stopped asking it",
    ]
