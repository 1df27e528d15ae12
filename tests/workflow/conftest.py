"""One finished demo for every test that only looks at it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from assaymark.cli import main


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    """The run folder of a finished demo. Not to be changed."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    assert main(["demo", "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of the finished demo that a test may damage."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def imported(finished, tmp_path) -> Path:
    """A run folder with the demo's records and nothing else."""
    folder = tmp_path / "imported"
    (folder / "tables").mkdir(parents=True)
    for name in ("contexts", "decisions", "outcomes"):
        shutil.copy(finished / "tables" / f"{name}.parquet", folder / "tables")
    shutil.copy(finished / "tables" / "manifest.json", folder / "tables")
    return folder
