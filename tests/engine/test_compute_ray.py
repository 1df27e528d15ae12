"""Chunks on a cluster of Ray on this machine, and what is said where there is no Ray. Two nodes: tests/faults."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import chunk_functions as functions
import pytest

from assaymark.engine import Chunk, ChunkError, map_chunks
from assaymark.errors import AssayError

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no Ray: pip install 'assaymark[ray]'")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(Path(functions.__file__).parent))  # of the workers, which Ray starts
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # no token is written into the home of whoever runs the tests
    made = tmp_path / "attempts"
    made.mkdir()
    return made


def made(folder: Path, **more: object) -> list[Chunk]:
    return [Chunk(f"part {k}", {"n": k}, {"folder": str(folder), **more}) for k in range(5)]


@needs_ray
def test_results_are_those_of_serial_and_of_processes(folder):
    """Two of the workers are killed at their first attempt."""
    chunks = made(folder, victims=[1, 3])
    found = map_chunks(functions.kill_once, chunks, version="1", how="ray", workers=2, deadline_s=60.0)
    assert sorted(functions.called(folder)) == list("0112334")
    for how in ("serial", "processes"):
        assert map_chunks(functions.kill_once, chunks, version="1", how=how, workers=2) == found


@needs_ray
def test_what_is_refused_hangs_or_fails_is_told(folder, pytestconfig):
    if not pytestconfig.getoption("--long-faults"):
        pytest.skip("three clusters are started; --long-faults does it")
    with pytest.raises(ChunkError, match=r"^part 1: row 1: is 1; row 2: is worse$") as caught:
        map_chunks(functions.refuse, made(folder, victims=[1]), version="1", how="ray", workers=2)
    assert sorted(caught.value.results) == [0, 2, 3, 4]
    with pytest.raises(ChunkError, match=r"^part 1: ZeroDivisionError: a defect in two lines"):
        map_chunks(functions.stumble, made(folder, victims=[1]), version="1", how="ray", workers=2)
    chunks = made(folder, victims=[0], times=9)
    with pytest.raises(ChunkError, match=r"^part 0: given up after 2 attempts; at last .* not finished within 4 s$"):
        map_chunks(functions.hang, chunks, version="1", how="ray", workers=2, deadline_s=4.0, attempts=2)


def test_without_ray_the_way_to_it_is_said(folder, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(AssayError, match=r"pip install 'assaymark\[ray\]'"):
        map_chunks(functions.square, made(folder), version="1", how="ray")
