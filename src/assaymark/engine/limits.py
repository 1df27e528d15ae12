"""How many requests and tokens a minute a provider may get, from all who work on one ledger together.

Before an attempt is sent, a request and its tokens are written into the ledger, into a row for the second they are
reserved in. No minute, wherever it starts, gets more than the limit: what was reserved counts for a minute and two
seconds, because an attempt is sent a moment after its reservation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from assaymark.engine.calls import CallSpec
from assaymark.engine.database import Store
from assaymark.engine.rows import Row, plain
from assaymark.engine.tables import windows

_WINDOW_S = 60.0
_SLACK_S = 2.0  # between a reservation and the arrival of its request
_BUCKET_S = 1.0
_GATE = -1  # the bucket that stands for none
_CHARS_A_TOKEN = 3  # English has about 4, JSON and numbers fewer
_TOKENS_OUT = 1024

_HERE = windows.c.provider == sa.bindparam("at")
_LOCK = sa.select(windows.c.bucket).where(_HERE, windows.c.bucket == _GATE).with_for_update()
_USED = sa.select(windows).where(_HERE, windows.c.bucket != _GATE).order_by(windows.c.bucket)
_PAST = sa.delete(windows).where(
    _HERE,
    windows.c.bucket != _GATE,
    # Rows of the future are of a clock that was set back since: they would block everybody until it is there again.
    sa.or_(windows.c.bucket <= sa.bindparam("oldest"), windows.c.bucket > sa.bindparam("newest")),
)
_ADD = (
    sa.update(windows)
    .where(_HERE, windows.c.bucket == sa.bindparam("now"))
    .values(
        requests=windows.c.requests + sa.bindparam("more_requests"),
        tokens=windows.c.tokens + sa.bindparam("more_tokens"),
    )
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one provider may get in any 60 seconds; None sets no limit.

    Raises
    ------
    ValueError
        A limit is below 1.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute"):
            value = getattr(self, name)
            if value is not None and not value >= 1:
                raise ValueError(f"{name} must be at least 1 (got {value})")


@dataclass(frozen=True, slots=True)
class Grant:
    """The first ``granted`` of those that asked may be sent, booked in ``bucket``; the rest ask again in ``wait_s``."""

    granted: int
    bucket: int
    wait_s: float


def tokens_expected(call: CallSpec) -> int:
    """A guess at the tokens of a call before it is made: a third of its characters, and the most it may answer.

    The most is ``max_tokens`` or ``max_output_tokens`` of its arguments, otherwise 1024.
    """
    characters = sum(len(text.text) for text in call.texts)
    allowed = [call.args.get(name) for name in ("max_tokens", "max_output_tokens", "max_completion_tokens")]
    out = max((n for n in allowed if isinstance(n, int)), default=_TOKENS_OUT)
    return math.ceil(characters / _CHARS_A_TOKEN) + out


def reserve(
    connection: sa.Connection,
    store: Store,
    provider: str,
    limits: Limits,
    tokens: Sequence[int],
    corrections: Mapping[int, int],
) -> Grant:
    """Book as many requests as the limits leave room for, in the order given.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    store : Store
        Whose clock counts.
    provider : str
        Whom the requests go to.
    limits : Limits
        What it may get. Whoever works on the ledger is expected to name the same.
    tokens : sequence of int
        Tokens expected of each request. More than the limit of a whole minute count as that.
    corrections : mapping of bucket to int
        Tokens to add to what was booked earlier, because replies have said how many there were.
    """
    at = {"at": plain(provider)}
    gate = {"provider": at["at"], "bucket": _GATE, "requests": 0, "tokens": 0}
    connection.execute(store.insert_new(windows), gate)
    connection.execute(_LOCK, at)
    clock = store.now(connection)
    now = math.floor(clock / _BUCKET_S)
    behind = math.ceil((_WINDOW_S + _SLACK_S) / _BUCKET_S) + 1  # a row counts until its last moment has passed
    connection.execute(_PAST, {**at, "oldest": now - behind, "newest": now + behind})
    for bucket, more in corrections.items():
        connection.execute(_ADD, {**at, "now": bucket, "more_requests": 0, "more_tokens": more})
    used = connection.execute(_USED, at).mappings().all()
    wanted = [min(n, limits.tokens_per_minute or n) for n in tokens]
    granted = _room(used, limits, wanted)
    if granted:
        _book(connection, {**at, "now": now, "more_requests": granted, "more_tokens": sum(wanted[:granted])})
    oldest = used[0]["bucket"] if used else now
    return Grant(granted, now, max(0.0, (oldest + behind) * _BUCKET_S - clock) + _BUCKET_S / 10)


def _room(used: Sequence[Row], limits: Limits, wanted: Sequence[int]) -> int:
    """How many of those wanted fit beside what was used."""
    requests, tokens = sum(row["requests"] for row in used), sum(row["tokens"] for row in used)
    granted = 0
    for more in wanted:
        requests, tokens = requests + 1, tokens + more
        if requests > (limits.requests_per_minute or math.inf) or tokens > (limits.tokens_per_minute or math.inf):
            break
        granted += 1
    return granted


def _book(connection: sa.Connection, booked: dict[str, Any]) -> None:
    if connection.execute(_ADD, booked).rowcount == 0:
        new = {"provider": booked["at"], "bucket": booked["now"]}
        new |= {"requests": booked["more_requests"], "tokens": booked["more_tokens"]}
        connection.execute(sa.insert(windows), new)
