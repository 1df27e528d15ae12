"""What several test folders share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from assaymark.cli import main


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real records beside the project, or a skip that says what is missing."""
    named = os.environ.get("ASSAYMARK_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip(f"needs real records: {folder} has no data/ (set ASSAYMARK_SHARED to a folder that has)")
    return folder


@pytest.fixture(scope="session")
def demo(tmp_path_factory) -> Path:
    """The run folder of a finished demo. Not to be changed."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    assert main(["demo", "--out", str(folder)]) == 0
    return folder
