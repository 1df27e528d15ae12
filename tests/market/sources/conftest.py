"""Waits that are noted in place of waited, and an environment in which nothing but loopback is reached."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from assaymark.market.sources import Manners

NOW = datetime(2024, 3, 8, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FRED_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def manners(waits) -> Manners:
    return Manners(attempts=3, timeout=5.0, most_bytes=2_000_000, sleep=waits.append)


@pytest.fixture
def now() -> datetime:
    return NOW
