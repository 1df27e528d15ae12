"""A budget for calls: what was paid, what is under way, and whether the next call may be sent."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from assaymark.engine.attempt import Trouble
from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.ledger import Ledger
from assaymark.engine.rows import Attempt
from assaymark.errors import PlanError

Place = tuple[str, int]
"""Key and number of an attempt."""

_MARGIN_S = 60.0  # how much later than its time a reply of somebody else can come to light
_ROUNDING_USD = 1e-9


@dataclass(frozen=True, slots=True)
class Books:
    """What a ledger says was paid: replies at their cost, and attempts that may have been paid, at their estimate."""

    paid: dict[Place, float]
    perhaps: dict[Place, float]
    unknown: frozenset[str]
    until: float


class Purse:
    """Money that the calls on one ledger may cost. Before a call is sent, its estimate is held back.

    The sum of what was paid, of the estimates under way and of the next estimate never passes ``limit_usd``. A call
    that does not fit now waits while replies of this run can still make room; when they cannot, nothing more is sent.
    Every reply of the ledger counts, of earlier runs too. An attempt that brought no reply within its deadline, or was
    under way when somebody died, counts at its estimate: it may have been paid.

    Where others pay from the same ledger, theirs is read whenever calls are claimed: a worker can pass the limit by
    no more than what the others have sent since it looked.

    Parameters
    ----------
    limit_usd : float
        The budget; 0 lets only calls through that cost nothing.
    estimate : callable
        The most that a call may cost, in USD; None where that is not known.
    cost : callable
        What the reply of a model cost, and whether it came in a batch; None where it is not known: then its estimate
        counts.

    Raises
    ------
    ValueError
        The limit is negative or no number.

    Examples
    --------
    >>> purse = Purse(1.0, lambda call: 0.25, lambda model, reply, batch: 0.2)
    >>> purse.spent, purse.under_way, purse.stopped
    (0.0, 0.0, None)
    """

    def __init__(
        self,
        limit_usd: float,
        estimate: Callable[[CallSpec], float | None],
        cost: Callable[[str, Reply, bool], float | None],
    ) -> None:
        if not (math.isfinite(limit_usd) and limit_usd >= 0):
            raise ValueError(f"a budget must be a number of USD, 0 or more (got {limit_usd})")
        self.limit_usd, self._estimate, self._cost = limit_usd, estimate, cost
        self.stopped: str | None = None
        self._paid: dict[Place, float] = {}
        self._mine: set[Place] = set()
        self._perhaps: dict[Place, float] = {}
        self._estimates: dict[str, float | None] = {}
        self._holds: set[Hold] = set()
        self._ledger: str | None = None
        self._until = 0.0
        self._changed = asyncio.Event()
        self.spent = 0.0

    @property
    def under_way(self) -> float:
        """Estimates of what is being asked now, here or by others."""
        return math.fsum([*(hold.usd for hold in self._holds), *self._perhaps.values()])

    # --- before a run ---

    def begin(self, ledger: Ledger) -> None:
        """Read what was paid, before a run of calls on ``ledger``.

        Raises
        ------
        ValueError
            The purse is that of another ledger.
        PlanError
            The ledger has replies of a model without a price: what they cost is not known.
        """
        if self._ledger not in (None, ledger.name):
            raise ValueError(f"this purse is for {self._ledger} (got {ledger.name})")
        self._ledger = ledger.name
        self._changed, self._holds = asyncio.Event(), set()
        self.enter_books(self.read(ledger))

    def check(self, calls: Iterable[CallSpec]) -> None:
        """Raise `PlanError` if a call has no known price: with a budget, such a call is not sent."""
        _refuse({call.model for call in calls if self._estimate(call) is None})

    def afford(self, ledger: Ledger, calls: Iterable[CallSpec]) -> None:
        """See that those of ``calls`` that have no reply, and are in no batch, can all be paid at once.

        Raises
        ------
        PlanError
            They cannot, or one has no known price.
        """
        asked = {call.key: call for call in calls}
        waiting = {key for key, _ in ledger.batches.attempts_under_way()}
        open_ = [asked[key] for key in ledger.pending(asked) if key not in waiting]
        if not open_:
            return
        self.check(open_)
        self.begin(ledger)
        needed = math.fsum(self._estimate(call) or 0.0 for call in open_)
        if not self._fits(needed + self.spent + self.under_way):
            self._stop(needed, f"{len(open_)} calls need")
            raise PlanError(f"{self.stopped} (calls in batches are paid together or not at all)")

    # --- the books ---

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
        unknown = self._learn(ledger, {*unpriced.values(), *perhaps.values()})
        paid |= {place: self._estimates[key] or 0.0 for place, key in unpriced.items()}
        owed = {place: self._estimates[key] or 0.0 for place, key in perhaps.items()}
        return Books(paid, owed, unknown, max([self._until, *(one.finished_at for one in found)]))

    def enter_books(self, books: Books) -> None:
        """Take account of what was read. Called where calls are taken."""
        _refuse(books.unknown)
        for place, cost in books.paid.items():
            self._pay(place, cost)
        self._perhaps, self._until = books.perhaps, books.until
        self.wake()

    def _learn(self, ledger: Ledger, keys: Iterable[str]) -> frozenset[str]:
        """Estimate these calls, unless they were before; returns the models that have no price."""
        new = sorted(key for key in keys if key not in self._estimates)
        calls = dict(zip(new, ledger.load(new, {}), strict=True)) if new else {}
        self._estimates.update({key: self._estimate(call) for key, call in calls.items()})
        return frozenset(call.model for key, call in calls.items() if self._estimates[key] is None)

    def _pay(self, place: Place, cost: float) -> None:
        if place not in self._paid:
            self._paid[place] = cost
            self.spent += cost

    # --- during a run ---

    async def take(self, call: CallSpec, shut: Callable[[], bool]) -> Hold | None:
        """Hold back what ``call`` may cost, waiting for room if need be. None: it may not be sent any more.

        ``shut`` says whether nothing may be sent for another reason; see `wake`.
        """
        usd = self._estimate(call)
        if usd is None:
            self.stopped = _no_price([call.model])
            self.wake()
        while usd is not None and self.stopped is None and not shut():
            if self._fits(usd + self.spent + self.under_way) or usd == 0:
                hold = Hold(self, call.model, usd)
                self._holds.add(hold)
                return hold
            if not self._holds or not self._fits(usd + self.spent + math.fsum(self._perhaps.values())):
                self._stop(usd)
                break
            await self._changed.wait()
        return None

    def _fits(self, usd: float) -> bool:
        return usd <= self.limit_usd + _ROUNDING_USD

    def _stop(self, usd: float, what: str = "call needs") -> None:
        self.stopped = (
            f"budget of {self.limit_usd:.2f} USD would be passed: {_usd(self.spent)} spent, {_usd(self.under_way)} "
            f"under way or cut off, the next {what} about {_usd(usd)}; "
            "every reply so far is kept; raise --budget to go on"
        )
        self.wake()

    def back(self, hold: Hold, place: Place | None, cost: float | None) -> None:
        """Release a hold; what was paid for it counts from now on."""
        self._holds.discard(hold)
        if place is not None:
            self._mine.add(place)
            if cost is not None:
                self._pay(place, cost)
        self.wake()

    def cost_of(self, model: str, reply: Reply) -> float | None:
        """What a reply of this run cost."""
        return self._cost(model, reply, False)

    def wake(self) -> None:
        """Let everybody who waits for room look again."""
        self._changed.set()
        self._changed = asyncio.Event()


class Hold:
    """Money held back for one attempt; `done` settles it."""

    __slots__ = ("_model", "_purse", "usd")

    def __init__(self, purse: Purse, model: str, usd: float) -> None:
        self._purse, self._model, self.usd = purse, model, usd

    def done(self, attempt: Attempt | None, result: Reply | Trouble | None) -> None:
        """How the attempt ended; None: it was not sent."""
        if attempt is None or result is None:
            self._purse.back(self, None, None)
            return
        cost: float | None = self.usd  # it may have been paid, whatever came of it
        if isinstance(result, Reply):
            known = self._purse.cost_of(self._model, result)
            cost = self.usd if known is None else known
        elif result.outcome == "failed":
            cost = None
        self._purse.back(self, (attempt.key, attempt.number), cost)


def _refuse(models: Iterable[str]) -> None:
    if names := sorted(models):
        raise PlanError(_no_price(names))


def _no_price(models: Iterable[str]) -> str:
    return (
        f"no price is known for {', '.join(models)}, or not for prompts of this length: with a budget it is not asked; "
        "give a file of prices that has it (--prices FILE), or leave the budget out"
    )


def _usd(amount: float) -> str:
    """Two decimals, more where the amount is small.

    >>> _usd(4.87), _usd(0.00123), _usd(0.0)
    ('4.87', '0.0012', '0.00')
    """
    return f"{amount:.2f}" if amount >= 0.01 or amount == 0 else f"{amount:.2g}"
