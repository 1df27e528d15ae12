"""A budget for calls: what was paid, what is under way, and whether the next call may be sent."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.loop import Trouble
from assaymark.engine.schema import Answered, Attempt
from assaymark.errors import PlanError
from assaymark.records import canonical_json

if TYPE_CHECKING:
    from assaymark.engine.ledger import Ledger


Place = tuple[str, int]
"""Key and number of an attempt."""

Manner = tuple[str, str, str | None, str]
"""Model, prompt template, effort and arguments of a call: calls that agree in these take alike much of their bound."""

_MARGIN_S = 60.0  # how much later than its time a reply of somebody else can come to light
_ROUNDING_USD = 1e-9
_REPLIES_TO_LEARN: Final = 2  # before these, the most that a call may cost is held back
_HEADROOM: Final = 1.25  # above the largest reply seen
_HEADROOM_OF_FEW: Final = 8.0  # more, divided by the number of replies seen to the power of 1.5
_READ_TO_LEARN: Final = 64  # replies of earlier runs and other workers, a model


class Books(NamedTuple):
    """What a ledger says was paid: replies at their cost, and attempts that may have been paid."""

    paid: dict[Place, float]
    perhaps: dict[Place, Most]
    unknown: frozenset[str]
    shares: list[tuple[Manner, tuple[float, float]]]
    until: float


@dataclass(slots=True)
class _Seen:
    """The largest parts of their bounds that replies took, of input and output, and how many replies there were."""

    input: float = 0.0
    output: float = 0.0
    n: int = 0

    def add(self, share: tuple[float, float]) -> None:
        self.input, self.output, self.n = max(self.input, share[0]), max(self.output, share[1]), self.n + 1

    def expects(self, most: Most, least: int) -> float:
        """What a call is held at: its bound before so many replies, then the most that these took, and some more."""
        if self.n < least:
            return most.usd
        more = _HEADROOM + _HEADROOM_OF_FEW / math.pow(self.n, 1.5)
        return min(self.input * more, 1.0) * most.input + self.output * more * most.output


@dataclass(frozen=True, slots=True)
class Most:
    """The most that a call may cost, in USD, by its parts, and the manner in which it is asked."""

    manner: Manner
    input: float
    output: float

    @property
    def usd(self) -> float:
        """Both parts."""
        return self.input + self.output


class Purse:
    """Money that the calls on one ledger may cost. Before a call is sent, what it may cost is held back.

    A call is held at its bound until two replies in its manner have come. Then it is held at the largest parts of their
    bounds that these took, by input and output, and more: 4.1 times these parts after two replies, 1.5 times after ten,
    1.25 times in the end. Refusals, which are short, are not counted. What was paid, what is held, and what the one
    call with the most to spare may cost beyond its hold never pass ``limit_usd`` together. So the limit is kept unless
    several replies under way together turn out longer than any before them, by more than these holds leave.

    A call that does not fit now waits while replies of this run can still make room; when they cannot, nothing more is
    sent. Every reply of the ledger counts, of earlier runs too. An attempt that brought no reply within its deadline,
    or was under way when its run died, counts at what such a call is held at: it may have been paid. Where others pay
    from the same ledger, theirs is read whenever calls are claimed.

    ``bound`` is the most that a call may cost in USD, of input and output, ``cost`` what the reply of a model cost (and
    whether it came in a batch), ``share`` the parts of its bound that a reply took; each is None where it is not known.
    """

    def __init__(
        self,
        limit_usd: float,
        bound: Callable[[CallSpec], tuple[float, float] | None],
        cost: Callable[[str, Reply, bool], float | None],
        share: Callable[[CallSpec, Reply], tuple[float, float] | None] | None = None,
    ) -> None:
        if not (math.isfinite(limit_usd) and limit_usd >= 0):
            raise ValueError(f"a budget must be a number of USD, 0 or more (got {limit_usd})")
        self.limit_usd, self._bound, self._cost, self._share = limit_usd, bound, cost, share
        self.stopped: str | None = None
        self._paid: dict[Place, float] = {}
        self._paid_usd = 0.0
        self._mine: set[Place] = set()
        self._cut_off: dict[Place, Most] = {}
        self._perhaps: dict[Place, Most] = {}
        self._bounds: dict[str, Most | str] = {}
        self._seen: dict[Manner, _Seen] = {}
        self._read: Counter[str] = Counter()
        self._holds: set[Hold] = set()
        self._ledger: str | None = None
        self._until = 0.0
        self._changed = asyncio.Event()

    @property
    def spent(self) -> float:
        """What was paid, and what attempts of this run that were cut off may have cost."""
        return self._paid_usd + self._held(self._cut_off.values(), least=1)

    @property
    def under_way(self) -> float:
        """What is held back for that which is being asked now, here or by others."""
        return self._held(hold.most for hold in self._holds) + self._held(self._perhaps.values(), least=1)

    def _held(self, calls: Iterable[Most], least: int = _REPLIES_TO_LEARN) -> float:
        return math.fsum(self._expected(one, least) for one in calls)

    def _expected(self, most: Most, least: int = _REPLIES_TO_LEARN) -> float:
        seen = self._seen.get(most.manner)
        return most.usd if seen is None else seen.expects(most, least)

    def _most(self, call: CallSpec) -> Most | None:
        bound = self._bound(call)
        return None if bound is None else Most(_manner(call), *bound)

    def emptied(self) -> Purse:
        """Another purse with the same limit, that has paid nothing yet and is for any ledger."""
        return Purse(self.limit_usd, self._bound, self._cost, self._share)

    def begin(self, ledger: Ledger) -> None:
        """Read what was paid, before a run of calls on ``ledger``."""
        if self._ledger not in (None, ledger.name):
            raise ValueError(f"this purse is for {self._ledger} (got {ledger.name})")
        self._ledger = ledger.name
        self._changed, self._holds = asyncio.Event(), set()
        self.enter_books(self.read(ledger))

    def check(self, calls: Iterable[CallSpec]) -> None:
        """Raise `PlanError` if a call has no known price: with a budget, such a call is not sent."""
        _refuse({call.model for call in calls if self._bound(call) is None})

    def afford(self, ledger: Ledger, calls: Iterable[CallSpec]) -> None:
        """See that those of ``calls`` that have no reply, and are in no batch, can all be paid at once."""
        asked = {call.key: call for call in calls}
        waiting = {key for key, _ in ledger.batches.attempts_under_way()}
        open_ = [asked[key] for key in ledger.pending(asked) if key not in waiting]
        if not open_:
            return
        self.check(open_)
        self.begin(ledger)
        needed = math.fsum(sum(self._bound(call) or ()) for call in open_)
        if not self._fits(needed + self.spent + self.under_way):
            self._stop(needed, f"{len(open_)} calls need")
            raise PlanError(f"{self.stopped} (calls in batches are paid together or not at all)")

    def read(self, ledger: Ledger) -> Books:
        """What the ledger says was paid by others than this purse. Called in the ledger's thread."""
        found = [one for one in ledger.answered(since=self._until - _MARGIN_S) if one.place not in self._paid]
        in_batches = ledger.batches.answered_in_batches([one.key for one in found])
        paid: dict[Place, float] = {}
        unpriced: dict[Place, str] = {}
        for one in found:
            cost = self._cost(one.model, one.reply, one.key in in_batches)
            if cost is None:
                unpriced[one.place] = one.key
            else:
                paid[one.place] = cost
        perhaps = {place: place[0] for place in ledger.perhaps_paid() if place not in self._mine}
        # the bounds of these calls, unless they are known; of a model without a price, its name
        keys = {*unpriced.values(), *perhaps.values()}
        new = sorted(key for key in keys if key not in self._bounds)
        calls = dict(zip(new, ledger.load(new, {}), strict=True)) if new else {}
        self._bounds.update({key: self._most(call) or call.model for key, call in calls.items()})
        unknown = frozenset(most for key in keys if isinstance(most := self._bounds[key], str))
        paid |= {place: most.usd for place, key in unpriced.items() if isinstance(most := self._bounds[key], Most)}
        owed = {place: most for place, key in perhaps.items() if isinstance(most := self._bounds[key], Most)}
        until = max([self._until, *(one.finished_at for one in found)])
        return Books(paid, owed, unknown, self._shares(ledger, found), until)

    def enter_books(self, books: Books) -> None:
        """Take account of what was read. Called where calls are taken."""
        _refuse(books.unknown)
        for place, cost in books.paid.items():
            self._pay(place, cost)
        for manner, share in books.shares:
            self._seen.setdefault(manner, _Seen()).add(share)
        self._perhaps, self._until = books.perhaps, books.until
        self.wake()

    def _shares(self, ledger: Ledger, found: Iterable[Answered]) -> list[tuple[Manner, tuple[float, float]]]:
        """What the newest of these replies took of their bounds, some of each model."""
        if self._share is None:
            return []
        wanted: dict[str, Reply] = {}
        for one in sorted(found, key=lambda one: -one.finished_at):
            self._read[one.model] += 1
            if self._read[one.model] <= _READ_TO_LEARN and one.reply.finish != "refusal":
                wanted[one.key] = one.reply
        calls = ledger.load(list(wanted), {}) if wanted else []
        pairs = [(_manner(call), self._share(call, wanted[call.key])) for call in calls]
        return [(manner, share) for manner, share in pairs if share is not None]

    def _pay(self, place: Place, cost: float) -> None:
        if place not in self._paid:
            self._paid[place] = cost
            self._paid_usd += cost

    async def take(self, call: CallSpec, shut: Callable[[], bool]) -> Hold | None:
        """Hold back what ``call`` may cost, waiting for room if need be. None: it may not be sent any more.

        ``shut`` says whether nothing may be sent for another reason; see `wake`.
        """
        most = self._most(call)
        if most is None:
            self.stopped = _no_price([call.model])
            self.wake()
        while most is not None and self.stopped is None and not shut():
            # the largest amount by which one call may cost more than it is held at
            to_spare = max(0.0, *(one.usd - self._expected(one) for one in (most, *(one.most for one in self._holds))))
            needed = self._expected(most) + self.spent + self.under_way + to_spare
            if most.usd == 0 or self._fits(needed):
                hold = Hold(self, call, most)
                self._holds.add(hold)
                return hold
            if not self._holds or not self._fits(most.usd + self.spent + self._held(self._perhaps.values(), least=1)):
                self._stop(most.usd)
                break
            await self._changed.wait()
        return None

    def _fits(self, usd: float) -> bool:
        return usd <= self.limit_usd + _ROUNDING_USD

    def _stop(self, usd: float, what: str = "call needs") -> None:
        self.stopped = (
            f"budget of {_usd(self.limit_usd)} USD would be passed: {_usd(self.spent)} spent, {_usd(self.under_way)} "
            f"under way or cut off, the next {what} up to {_usd(usd)}; "
            "every reply so far is kept; raise --budget to go on"
        )
        self.wake()

    def back(self, hold: Hold, place: Place | None, result: Reply | Trouble | None) -> None:
        """Release a hold; what was paid for it, or may have been, counts from now on."""
        self._holds.discard(hold)
        if place is not None:
            self._mine.add(place)
            if isinstance(result, Reply):
                share = None if self._share is None else self._share(hold.call, result)
                if share is not None and result.finish != "refusal":  # how much of its bound a reply took
                    self._seen.setdefault(hold.most.manner, _Seen()).add(share)
                known = self._cost(hold.call.model, result, False)
                self._pay(place, hold.most.usd if known is None else known)
            elif result is not None and result.outcome != "failed":
                self._cut_off[place] = hold.most
        self.wake()

    def wake(self) -> None:
        """Let everybody who waits for room look again."""
        self._changed.set()
        self._changed = asyncio.Event()


class Hold:
    """Money held back for one attempt at a call that costs ``most``; `done` settles it."""

    __slots__ = ("_purse", "call", "most")

    def __init__(self, purse: Purse, call: CallSpec, most: Most) -> None:
        self._purse, self.call, self.most = purse, call, most

    def done(self, attempt: Attempt | None, result: Reply | Trouble | None) -> None:
        """How the attempt ended; None: it was not sent."""
        self._purse.back(self, None if attempt is None else (attempt.key, attempt.number), result)


def _manner(call: CallSpec) -> Manner:
    return call.model, call.template, call.effort, canonical_json(call.args)


def _refuse(models: Iterable[str]) -> None:
    if names := sorted(models):
        raise PlanError(_no_price(names))


def _no_price(models: Iterable[str]) -> str:
    return (
        f"no price is known for {', '.join(models)}, or not for prompts of this length: with a budget it is not asked; "
        "give a file of prices that has it (--prices FILE), or leave the budget out"
    )


def _usd(amount: float) -> str:
    """Two decimals, more where the amount is small."""
    return f"{amount:.2f}" if amount >= 0.01 or amount == 0 else f"{amount:.2g}"
