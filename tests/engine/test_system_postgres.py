"""The tests of leases, workers and limits once more, on the PostgreSQL of the system: Debian's package, its version."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from postgres_servers import schemas_of, system_programs, system_server

# Collected here a second time, with the fixtures below in place of those that lead to the other server.
from test_rate_limits import test_two_workers_together_stay_below_the_limit  # noqa: F401
from test_shared_ledger import (  # noqa: F401
    leases,
    test_a_call_has_one_holder_until_its_lease_ends,
    test_a_late_reply_is_refused_and_on_record,
    test_it_is_there_for_the_next_to_open_and_strangers_and_other_versions_are_refused,
    test_large_objects_live_in_the_table_and_damage_is_never_silent,
    test_two_workers_and_a_run_share_one_plan,
    test_what_is_answered_is_never_claimed_again_and_what_was_given_up_only_by_who_comes_later,
    test_workers_leave_a_batch_alone_and_its_results_are_kept,
)


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


def test_it_is_that_server(system):
    engine = sa.create_engine(system)
    with engine.connect() as connection:
        where = str(connection.scalar(sa.text("show data_directory")))
        assert connection.scalar(sa.text("show fsync")) == "on"
    engine.dispose()
    assert where.startswith(str(system.query["host"]))
