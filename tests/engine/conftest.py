"""A PostgreSQL server for the tests that need one: the one of ASSAYMARK_POSTGRES_URL, or one of pgserver's own."""

from __future__ import annotations

import os
import tempfile
import warnings
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa

from assaymark.engine import Ledger


@pytest.fixture(scope="session")
def server():
    """The URL of a server; tests that need one are skipped where there is none."""
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


@pytest.fixture
def database(server, schemas=count()):
    """The URL of an empty schema."""
    name = f"test_{os.getpid()}_{next(schemas)}"
    engine = sa.create_engine(server)
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE SCHEMA {name}"))
    url = server.update_query_dict({"options": f"-csearch_path={name}"})
    yield url.render_as_string(hide_password=False)
    with engine.begin() as connection:
        connection.execute(sa.text("SET client_min_messages = warning"))
        connection.execute(sa.text(f"DROP SCHEMA {name} CASCADE"))
    engine.dispose()


@pytest.fixture
def shared(database):
    """An empty ledger that workers can share."""
    with Ledger.open(database) as opened:
        yield opened
