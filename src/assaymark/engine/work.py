"""Where a run gets its calls from: a list that it alone works through, or a queue that it shares with other workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

from assaymark.engine.breaker import door_of
from assaymark.engine.calls import CallSpec, Text
from assaymark.engine.commits import groups
from assaymark.engine.leases import Leases
from assaymark.engine.ledger import Ledger
from assaymark.engine.rows import Claim, Committed, End

_KNOWN_TEXTS = 10_000
_KEYS_A_CLAIM = 500


@dataclass(frozen=True, slots=True)
class Due:
    """A call to be asked now. ``fence`` is that of the claim it is held by, None where no claim is needed."""

    key: str
    call: CallSpec
    fence: int | None = None


class Work(Protocol):
    """Calls to be asked, and what becomes of them. Methods that read or write the ledger are called in its thread."""

    renew_every_s: float | None
    """How often `renew` is to be called; None: never."""

    def sizes(self) -> Mapping[str, int]:
        """How many calls each lane has, at most: each model, or each model behind each door where that is known."""

    def at_hand(self, lane: str) -> list[Due]:
        """The calls of a lane that need not be fetched."""

    def more(self, lane: str, n: int) -> list[Due] | None:
        """Some more calls of a lane, about ``n``. Empty: others hold them, look again; None: nothing is left."""

    def commit(self, begins: Sequence[Due], ends: Sequence[End]) -> Committed:
        """Write down how attempts ended and which begin."""

    def renew(self) -> None:
        """Keep what is held."""

    def put_back(self, dues: Collection[Due]) -> None:
        """These are not asked after all: somebody else may."""

    def close(self) -> None:
        """Let go of everything that is still held."""


class Held:
    """Calls of a ledger that this run holds alone."""

    renew_every_s: float | None = None

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def commit(self, begins: Sequence[Due], ends: Sequence[End]) -> Committed:
        """See `Work`."""
        begun = self._ledger.commit([due.key for due in begins], ends)
        return Committed(list(begun), sum(end.reply is not None for end in ends))

    def at_hand(self, lane: str) -> list[Due]:
        """None: they are read as they are needed."""
        del lane
        return []

    def renew(self) -> None:
        """Nothing to renew."""

    def put_back(self, dues: Collection[Due]) -> None:
        """Nobody else waits for them."""

    def close(self) -> None:
        """Nothing to let go of."""


class Listed(Held):
    """Calls that are at hand, in the order given."""

    def __init__(self, ledger: Ledger, calls: Iterable[tuple[str, CallSpec]]) -> None:
        super().__init__(ledger)
        self._dues: dict[str, list[Due]] = {}
        for key, call in calls:
            self._dues.setdefault(_lane(call), []).append(Due(key, call))
        self._sizes = {lane: len(dues) for lane, dues in self._dues.items()}

    def sizes(self) -> Mapping[str, int]:
        """See `Work`."""
        return self._sizes

    def at_hand(self, lane: str) -> list[Due]:
        """All of them."""
        return self._dues.pop(lane)

    def more(self, lane: str, n: int) -> list[Due] | None:
        """There are no others."""


class Planned(Held):
    """Planned calls without a reply, in the order of their keys, read from the ledger bit by bit."""

    def __init__(self, ledger: Ledger, models: Collection[str]) -> None:
        super().__init__(ledger)
        self._loader = _Loader(ledger)
        self._keys = {model: iter(ledger.pending_of(model)) for model in models}
        self._sizes = {model: n for model, n in ledger.pending_models().items() if model in models}

    def sizes(self) -> Mapping[str, int]:
        """See `Work`."""
        return self._sizes

    def more(self, lane: str, n: int) -> list[Due] | None:
        """See `Work`."""
        for keys in groups(self._keys[lane], n):
            return [Due(key, call) for key, call in zip(keys, self._loader.load(keys), strict=True)]
        return None


class Shared:
    """Calls of a ledger that others work on too: each is held by a lease of ``lease_s`` seconds while it is asked.

    Parameters
    ----------
    ledger, leases
        The ledger, and its leases.
    lease_s : float
        How long it takes until another worker may ask what this one was asking when it died.
    calls : mapping of key to CallSpec, optional
        The calls to ask; without it all that are planned and have a model of ``sizes``.
    sizes : mapping of lane to int
        How many calls each lane has.
    """

    def __init__(
        self,
        ledger: Ledger,
        leases: Leases,
        lease_s: float,
        *,
        sizes: Mapping[str, int],
        calls: Mapping[str, CallSpec] | None = None,
    ) -> None:
        self._leases, self._lease_s, self._calls = leases, lease_s, calls
        self._loader = _Loader(ledger)
        self._sizes = sizes
        self.worker = uuid4().hex
        self.since = leases.now()
        self.lost = 0
        self.renew_every_s: float | None = lease_s / 3
        self._todo: dict[str, list[str]] = {}
        self._later: dict[str, list[str]] = {}
        for key, call in (calls or {}).items():
            self._todo.setdefault(_lane(call), []).append(key)
        for keys in self._todo.values():
            keys.reverse()  # taken from the end

    def sizes(self) -> Mapping[str, int]:
        """See `Work`."""
        return self._sizes

    def at_hand(self, lane: str) -> list[Due]:
        """None: each has to be claimed first."""
        del lane
        return []

    def more(self, lane: str, n: int) -> list[Due] | None:
        """See `Work`."""
        if self._calls is not None:
            return self._listed(lane, n, self._calls)
        claims = self._claim(n, model=lane)
        if claims:
            calls = self._loader.load([claim.key for claim in claims])
            return [Due(claim.key, call, claim.fence) for claim, call in zip(claims, calls, strict=True)]
        return [] if self._leases.any_left(lane, self.since, worker=self.worker) else None

    def commit(self, begins: Sequence[Due], ends: Sequence[End]) -> Committed:
        """See `Work`."""
        return self._leases.commit([Claim(due.key, due.fence or 0) for due in begins], ends)

    def renew(self) -> None:
        """See `Work`."""
        self._leases.renew(self.worker, self._lease_s)

    def put_back(self, dues: Collection[Due]) -> None:
        """See `Work`."""
        self._leases.release(self.worker, [due.key for due in dues])

    def close(self) -> None:
        """See `Work`."""
        self._leases.release(self.worker)

    def _listed(self, lane: str, n: int, calls: Mapping[str, CallSpec]) -> list[Due] | None:
        todo, later = self._todo.get(lane, []), self._later.setdefault(lane, [])
        while todo:
            keys = [todo.pop() for _ in range(min(len(todo), max(n, 1), _KEYS_A_CLAIM))]
            claims = self._claim(len(keys), keys=keys)
            taken = {claim.key: claim.fence for claim in claims}
            later += [key for key in keys if key not in taken]
            if taken:
                return [Due(key, calls[key], taken[key]) for key in keys if key in taken]
        open_ = self._leases.open_keys(later, self.since)
        todo += [key for key in reversed(later) if key in open_]
        later.clear()
        return [] if todo else None

    def _claim(self, n: int, *, keys: Sequence[str] | None = None, model: str | None = None) -> list[Claim]:
        claims, lost = self._leases.claim(self.worker, n, self._lease_s, keys=keys, model=model, since=self.since)
        self.lost += lost
        return claims


class _Loader:
    """Reads planned calls, and remembers the texts that many of them show."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._texts: dict[str, Text] = {}

    def load(self, keys: Sequence[str]) -> list[CallSpec]:
        if len(self._texts) > _KNOWN_TEXTS:
            self._texts.clear()
        return self._ledger.load(keys, self._texts)


def sizes_of(calls: Iterable[CallSpec]) -> Mapping[str, int]:
    """How many calls there are in each lane."""
    return Counter(_lane(call) for call in calls)


def _lane(call: CallSpec) -> str:
    """The model and the door of a call: calls of one model that go elsewhere must not wait for each other."""
    door = door_of(call)
    return call.model if door.address is None and door.key is None else f"{call.model} {door.address} {door.key}"
