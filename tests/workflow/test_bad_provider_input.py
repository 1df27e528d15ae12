"""User errors about providers and ledgers give status 1 and one line with a remedy, and never print a key."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing

import pytest
from made_records import OWN
from provider_cases import completion
from provider_server import answer, page, serving

from assaymark.cli import main
from assaymark.errors import LedgerError
from assaymark.workflow import publish as reporting

pytestmark = pytest.mark.usefixtures("clients")
CANARY = "canary-4471-wrong-key"
VARIABLE = "BAD_INPUT_KEY"
STUDY = """
name = "bad"
seed = 1
substrate = {{ regimes = ["liquidity"], cycles = 2 }}
engine = {{ backoff_s = 0.001 }}
inference = {{ allow_hopeless = true }}
agents = [
  {{ name = "rule", family = "rules", model = "reference/momentum" }},
  {{ name = "two", family = "rules", model = "reference/steward", args = {{ style = "birch" }} }},
]
judges = [
  {{ name = "n", family = "north", model = "{judge}", args = {{ base_url = "{url}", api_key_env = "{variable}" }} }},
  {{ name = "south", family = "south", model = "reference/auditor" }},
]
"""
NOTHING = "nothing is locked, and at most one call a model was sent"


def run_at(tmp_path, step, *, judge="openai-chat/m", root="/v1", url=None, again=None):
    """Return the status of a run whose judge gets such replies; with ``again``, that of the command repeated."""
    with serving(step) as server:
        text = STUDY.format(judge=judge, url=url or f"{server.url}{root}", variable=VARIABLE)
        (tmp_path / "study.toml").write_text(text)
        command = ["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "run")]
        status = main(command)
        if again is None:
            return status
        server.script[:] = [again]
        return main(command)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv(VARIABLE, CANARY)


def one_line(capsys) -> str:
    err = capsys.readouterr().err
    assert err.startswith("assaymark: ")
    assert err.count("\n") == 1
    assert CANARY not in err
    assert "Traceback" not in err
    return err


def openai_error(status, code, message):
    return answer({"error": {"message": message, "type": "invalid_request_error", "code": code, "param": None}}, status)


GERMAN, CHINESE = "Ich gebe der Entscheidung vier von fünf Punkten.", "我给这个决定打四分。"
REFUSALS = [
    (openai_error(401, "invalid_api_key", f"Incorrect API key provided: {CANARY}"),
     (f"{VARIABLE} was refused (401)", "set the right key")),
    (openai_error(429, "insufficient_quota", "You exceeded your current quota"),
     ("no money or quota is left (429)", "pay, or wait until it is renewed")),
    (openai_error(404, "model_not_found", "The model `m` does not exist"),
     ("unknown model 'm' at http://127.0.0.1:", "check the name and base_url")),
    (page(200), ("answers with a web page and is not an API (200)", "base_url must be the root of an API")),
    (page(404), ("answers with a web page and is not an API (404)", "base_url must be the root of an API")),
    (openai_error(400, "invalid_json_schema", "Invalid schema for response_format 'reply'"),
     ("the reply schema was refused (400) for 'm'", 'use args.structured = "json_object"')),
    *((answer(completion(text)), (f"wrote no JSON object where one is asked for; its reply begins {text!r}; ",))
      for text in (GERMAN, CHINESE)),
]  # fmt: skip


def test_a_provider_that_refuses_is_one_line_with_what_to_do(tmp_path, capsys):
    for step, said in REFUSALS:
        assert run_at(tmp_path, step) == 1
        err = one_line(capsys)
        assert all(words in err for words in (*said, NOTHING)), err
        assert not (tmp_path / "run").exists()


def test_a_wrong_key_reads_the_same_at_every_provider(tmp_path, capsys):
    for judge, root, error in (
        ("openai/m", "/v1", {"message": "no", "code": "invalid_api_key", "type": "invalid_request_error"}),
        ("anthropic/m", "", {"type": "authentication_error", "message": "no"}),
        ("google/m", "", {"code": 401, "message": "no", "status": "UNAUTHENTICATED"}),
    ):
        assert run_at(tmp_path, answer({"type": "error", "error": error}, 401), judge=judge, root=root) == 1
        said = f"assaymark: {judge}: {VARIABLE} was refused (401) by http://127.0.0.1:"
        assert one_line(capsys).startswith(said)


def test_a_key_that_is_missing_and_an_address_that_is_none_are_named_before_anything_is_sent(
    tmp_path, capsys, monkeypatch
):
    assert run_at(tmp_path, answer({}), url="localhost:8000") == 1
    err = one_line(capsys)
    assert "base_url must be http://HOST:PORT/PATH or https://HOST/PATH" in err
    assert "(got 'localhost:8000')" in err
    monkeypatch.delenv(VARIABLE)
    assert run_at(tmp_path, answer({})) == 1
    assert f"needs a key: set the environment variable {VARIABLE}" in one_line(capsys)


def test_a_judge_that_writes_json_of_another_form_gives_no_score_and_is_said_to(tmp_path, capsys):
    good = answer(completion("{}"))
    assert run_at(tmp_path, answer(completion('{"Bewertung": {"Handlung": 4}}')), again=good) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("n: ")]
    assert lines == [lines[0]]  # said once: the second command asks nothing again
    assert lines[0].startswith("n: 4 of 4 replies have no scores: 4 not in the required form (first: ")
    assert "stored verbatim and not retried" in lines[0]
    assert "name another one: assaymark amend" in lines[0]


@pytest.fixture
def begun(own):
    """A run folder whose ledger has to be read."""
    (own / "tables" / "judgments.parquet").unlink()
    return own


def commands(folder):
    return (["run", str(OWN), "--out", str(folder)], ["judge", str(folder)], ["worker", str(folder)])


def test_a_ledger_of_a_newer_version_or_copied_in_part(begun, capsys):
    whole = (begun / "ledger.db").read_bytes()
    for share in (0.0005, 0.3, 0.5, 0.9):
        (begun / "ledger.db").write_bytes(whole[: int(len(whole) * share)])
        for command in commands(begun):
            assert main(command) == 1
            assert "restore it from a copy" in one_line(capsys)
    (begun / "ledger.db").write_bytes(whole)
    with closing(sqlite3.connect(begun / "ledger.db")) as connection, connection:
        connection.execute("update meta set value = '2' where name = 'schema'")
    for command in commands(begun):
        assert main(command) == 1
        err = one_line(capsys)
        assert "is a call log of schema '2' where this version reads '1'" in err
        assert "use the version of assaymark that wrote it, or start a new run folder" in err


@pytest.fixture
def read_only(begun):
    """The same folder on a read-only file system."""
    mount = f"mount --bind {begun} {begun} && mount -o remount,ro,bind {begun}"
    if subprocess.run(["sh", "-c", mount], capture_output=True).returncode != 0:
        subprocess.run(["umount", str(begun)], capture_output=True)
        pytest.skip("needs to mount a folder read-only, which this user may not")
    yield begun
    subprocess.run(["umount", str(begun)], check=True)


def test_a_disk_that_can_only_be_read(read_only, capsys):
    for command in commands(read_only):
        assert main(command) == 1
        assert "check the permissions of the file and of its folder" in one_line(capsys)
    for command in (["demo", "--out", str(read_only / "new")], ["run", str(OWN), "--out", str(read_only / "new")]):
        assert main(command) == 1
        assert "Read-only file system" in one_line(capsys)


def test_pages_need_no_database_and_say_that_they_had_none(own, monkeypatch, capsys):
    def gone(_folder):
        raise LedgerError("the server cannot be reached")

    monkeypatch.setattr(reporting, "paid_views", gone)
    assert main(["report", str(own)]) == 1
    one_line(capsys)
    (own / "ledger.url").write_text("postgresql+psycopg://me@127.0.0.1:1/x\n")
    assert main(["report", str(own)]) == 0
    assert "could not be read where this page was made" in (own / "report" / "plan.html").read_text()
