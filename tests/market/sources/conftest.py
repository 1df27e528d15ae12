"""Waits that are noted in place of waited, and an environment in which nothing but loopback is reached."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from assaymark.errors import InputError
from assaymark.market import sources

NOW = datetime(2024, 3, 8, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _nothing_but_loopback(tmp_path, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FRED_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    import yfinance  # slow, and only for the tests that use it

    # The client's cache of time zones lies in the test's folder; it is opened once in a process.
    yfinance.set_tz_cache_location(str(tmp_path))
    monkeypatch.setattr("yfinance.cache._TzCacheManager._tz_cache", yfinance.cache._TzCacheDummy())
    monkeypatch.setattr("yfinance.cache._CookieCacheManager._Cookie_cache", yfinance.cache._CookieCacheDummy())


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def told(waits) -> dict[str, object]:
    """The current time and the retry policy, as arguments of a pull."""
    manners = sources.RetryPolicy(attempts=3, timeout=5.0, most_bytes=2_000_000, sleep=waits.append)
    return {"now": NOW, "manners": manners}


@pytest.fixture
def pull(told):
    """``pull(source, request)``: the snapshot of a source."""
    return lambda source, request: sources.pull(source, request, **told)


@pytest.fixture
def refused(pull):
    """``refused(source, request)``: what a source says that gives nothing."""

    def said(source: str, request: sources.Request) -> str:
        with pytest.raises(InputError, match=f"source {source}") as caught:
            pull(source, request)
        return str(caught.value)

    return said
