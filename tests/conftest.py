"""Fixtures that several test folders share."""

from __future__ import annotations

import os

# Several workers share the processors: one that waits for threads of its own holds the others up. Before NumPy loads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gc
import importlib
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
import sqlalchemy as sa
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres_servers import schemas_of

from assaymark.cli import main

# The same examples each time, and no clock: what is green on one machine is green on the next. New examples are looked
# for on purpose, with --hypothesis-profile=search.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("search", max_examples=500, deadline=None, print_blob=True)
settings.load_profile("fixed")

# Tests start many processes, and each worker imports all tests: without bytecode beside the sources each of them would
# compile the package and the tests anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_CHROMIUM: Final = Path("/usr/bin/chromium")
_CHROMIUM_OPTIONS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--js-flags=--single-threaded",
)  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Tests and modules stay to the end: whatever looks for cycles need not go through them again and again.
    In a new environment one worker compiles, and the others wait: together they would each compile everything."""
    gc.disable()
    compiled = Path(cache_from_source(str(find_spec("scipy.stats").origin)))
    first = FileLock(session.config._tmp_path_factory.getbasetemp().parent / "collecting.lock")
    first.acquire()
    if compiled.exists():
        first.release()
    try:
        found = yield
        if first.is_locked:  # Hypothesis gathers values worth trying from all sources, and keeps them for every worker
            given(st.text())(lambda _: None)()
        return found
    finally:
        first.release()
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)


def pytest_configure():
    # A shell has what it starts behind it ignore Ctrl-C, and so would every process that a test stops that way.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--long-faults", action="store_true", help="the faults in full, hundreds of them, with results")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real records beside the project, or a skip that says what is missing."""
    named = os.environ.get("ASSAYMARK_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip(f"needs real records: {folder} has no data/ (set ASSAYMARK_SHARED to a folder that has)")
    return folder


@pytest.fixture(scope="session")
def docs_script() -> Callable[[str], ModuleType]:
    """``docs_script(name)``: a script of ``docs/``, no part of the package, as it finds the others when it is run."""

    def found(name: str) -> ModuleType:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(Path(__file__).resolve().parents[1] / "docs")
            return importlib.import_module(name)

    return found


@pytest.fixture(scope="session")
def once(tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """``once(name, build)``: a folder that ``build(folder)`` filled, once for all workers. Not to be changed."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "once"

    def made(name: str, build: Callable[[Path], object]) -> Path:
        root.mkdir(exist_ok=True)
        folder, done = root / name, root / f"{name}.done"
        with FileLock(root / f"{name}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                build(folder)
                done.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def own_copy(once, tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """``own_copy(name, build)``: what ``once`` built, as this worker's own: an open ledger has files beside it."""

    def copied(name: str, build: Callable[[Path], object]) -> Path:
        return Path(shutil.copytree(once(name, build), tmp_path_factory.mktemp("own-copies") / name))

    return copied


@pytest.fixture(scope="session")
def demo(once) -> Path:
    """The run folder of a finished demo. Not to be changed."""

    def build(folder: Path) -> None:
        assert main(["demo", "--out", str(folder / "run")]) == 0
        # Its pages as they are now: a test writes them again.
        shutil.copytree(
            folder / "run", folder / "pages", ignore=shutil.ignore_patterns("ledger.db*", "objects", "tables")
        )

    return once("demo", build) / "run"


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """Headless Chromium, or a skip. Not for the session: while it is open, the thread has a running event loop."""
    if not _CHROMIUM.exists():
        pytest.skip(f"needs Chromium: {_CHROMIUM} does not exist")
    sync = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with sync.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(_CHROMIUM), args=list(_CHROMIUM_OPTIONS))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def server():
    """The URL of a PostgreSQL server: that of ASSAYMARK_POSTGRES_URL or one of pgserver's own; without one, a skip."""
    given = os.environ.get("ASSAYMARK_POSTGRES_URL")
    if given is not None:
        yield sa.make_url(given).set(drivername="postgresql+psycopg")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a folder that only its own lock file needs
        reason = "no PostgreSQL: set ASSAYMARK_POSTGRES_URL, or install pgserver and psycopg (extra: test)"
        pytest.importorskip("psycopg", reason=reason, exc_type=ImportError)
        pgserver = pytest.importorskip("pgserver", reason=reason, exc_type=ImportError)
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: the name of its socket has to fit
    running = pgserver.get_server(folder, cleanup_mode="delete")
    yield sa.make_url(running.get_uri()).set(drivername="postgresql+psycopg")
    running.cleanup()


@pytest.fixture(scope="session")
def empty_schema(server):
    """``with empty_schema() as url``: the URL of an empty schema, which is gone afterwards."""
    return schemas_of(server)


@pytest.fixture
def database(empty_schema):
    with empty_schema() as url:
        yield url
