"""One finished run for every test that only looks at one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from imported_records import store_imported
from made_records import OWN, STUDY

from assaymark.cli import main


@pytest.fixture(scope="session")
def records(tmp_path_factory) -> Path:
    """A run folder with imported records and nothing else. Not to be changed."""
    return store_imported(tmp_path_factory.mktemp("records") / "run").path


@pytest.fixture(scope="session")
def finished(records, tmp_path_factory) -> Path:
    """The folder of a finished run on imported records. Not to be changed."""
    folder = Path(shutil.copytree(records, tmp_path_factory.mktemp("finished") / "run"))
    assert main(["run", str(STUDY), "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of that run that a test may damage."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def imported(records, tmp_path) -> Path:
    """A run folder with imported records, to work in."""
    return Path(shutil.copytree(records, tmp_path / "imported"))


@pytest.fixture(scope="session")
def own_run(tmp_path_factory) -> Path:
    """The folder of a finished run that made its own records. Not to be changed."""
    folder = tmp_path_factory.mktemp("own") / "run"
    assert main(["run", str(OWN), "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def own(own_run, tmp_path) -> Path:
    """A copy of that run that a test may damage."""
    return Path(shutil.copytree(own_run, tmp_path / "own"))
