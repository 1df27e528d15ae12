"""The tests of leases, workers and limits once more, on the PostgreSQL of the system: Debian's package, its version."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from postgres_servers import schemas_of, system_programs, system_server

# Collected here a second time, with the fixtures below in place of those that lead to the other server.
from test_rate_limits import short, test_two_workers_together_stay_below_the_limit  # noqa: F401
from test_shared_ledger import *  # noqa: F403

from assaymark.engine import Ledger


@pytest.fixture(scope="module")
def system():
    """The URL of a server that runs the programs of the system."""
    pytest.importorskip("psycopg", reason="needs psycopg (extra: test)", exc_type=ImportError)
    programs = system_programs()
    if programs is None:
        pytest.skip("no PostgreSQL of Debian's is installed: /usr/lib/postgresql is not there (apt install postgresql)")
    with system_server(programs) as url:
        yield url


@pytest.fixture
def database(system):
    """The URL of an empty schema there."""
    with schemas_of(system)() as url:
        yield url


@pytest.fixture
def either(database):
    """A ledger there, where others take one in a file too."""
    with Ledger.open(database) as ledger:
        yield ledger


def test_it_is_that_server(system):
    engine = sa.create_engine(system)
    with engine.connect() as connection:
        where = str(connection.scalar(sa.text("show data_directory")))
        assert connection.scalar(sa.text("show fsync")) == "on"
    engine.dispose()
    assert where.startswith(str(system.query["host"]))
