"""One finished run for every test that only looks at one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import slow_command
from datasheet_runs import two_tasks
from imported_records import store_imported
from made_records import OWN, STUDY

from assaymark.cli import main


@pytest.fixture(scope="session")
def clients() -> None:
    """The clients of providers, or a skip. They load where a test uses them: each worker collects all tests."""
    for name in ("openai", "anthropic", "google.genai"):
        pytest.importorskip(name, reason=f"needs the client of {name} (extra: test)")


@pytest.fixture
def ran(capsys):
    """``ran(*words, status=0)``: run a command, which ends with ``status``; its output, or its errors if it fails."""

    def printed(*words, status: int = 0) -> str:
        capsys.readouterr()
        ended = main([*map(str, words)])
        out, err = capsys.readouterr()
        assert ended == status, err
        assert status != 1 or out == "", "a command that is refused prints its message and nothing else"
        return err if status else out

    return printed


@pytest.fixture
def refused(ran):
    """``refused(*words)``: the message of a command that has to be refused."""

    def said(*words) -> str:
        message = ran(*words, status=1)
        assert message.startswith("assaymark: ")
        assert "Traceback" not in message
        return message

    return said


@pytest.fixture(scope="session")
def real(own_copy) -> Path:
    """The run folder of the real demo. Not to be changed."""
    return own_copy("real", lambda folder: main(["demo", "--real", "--out", str(folder / "run")])) / "run"


@pytest.fixture(scope="session")
def records(own_copy) -> Path:
    """A run folder with imported records and nothing else. Not to be changed."""
    return own_copy("imported-records", lambda folder: store_imported(folder / "run")) / "run"


@pytest.fixture(scope="session")
def finished(records, own_copy) -> Path:
    """The folder of a finished run on imported records. Not to be changed."""

    def build(folder: Path) -> None:
        shutil.copytree(records, folder / "run")
        assert main(["run", str(STUDY), "--out", str(folder / "run")]) == 0

    return own_copy("finished-run", build) / "run"


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of that run that a test may damage."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def imported(records, tmp_path) -> Path:
    """A run folder with imported records, to work in."""
    return Path(shutil.copytree(records, tmp_path / "imported"))


@pytest.fixture(scope="session")
def tasks(tmp_path_factory) -> Path:
    """A file of two tasks, on which a datasheet takes little time."""
    path = tmp_path_factory.mktemp("tasks") / "mine.toml"
    path.write_text(two_tasks(), encoding="utf-8")
    return path


@pytest.fixture
def few_questions(monkeypatch):
    """A benchmark draws its questions from twenty of each kind."""
    slow_command.few_questions(monkeypatch)


@pytest.fixture(scope="session")
def own_run(own_copy) -> Path:
    """The folder of a finished run that made its own records. Not to be changed."""

    def build(folder: Path) -> None:
        assert main(["run", str(OWN), "--out", str(folder / "run")]) == 0

    return own_copy("own-run", build) / "run"


@pytest.fixture
def own(own_run, tmp_path) -> Path:
    """A copy of that run that a test may damage."""
    return Path(shutil.copytree(own_run, tmp_path / "own"))
