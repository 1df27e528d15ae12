"""A ledger in a database, for the tests of workers."""

from __future__ import annotations

import pytest

from assaymark.engine import Ledger


@pytest.fixture
def shared(database):
    """An empty ledger that workers can share."""
    with Ledger.open(database) as opened:
        yield opened
