"""A ledger in a file, and one in a database for the tests of workers."""

from __future__ import annotations

import pytest

from assaymark.engine import Ledger


@pytest.fixture
def ledger(tmp_path):
    """An empty ledger in a file."""
    with Ledger.open(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture
def shared(database):
    """An empty ledger that workers can share."""
    with Ledger.open(database) as opened:
        yield opened
