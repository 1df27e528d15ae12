"""Costs of calls: a dated table of list prices, the cost of a reply, estimates before a run, and spend limits."""

from __future__ import annotations

import asyncio
import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.loop import FailedAttempt
from assaymark.engine.schema import Attempt
from assaymark.errors import InputError, PlanError, Problem
from assaymark.records import canonical_json, duplicates, problems_of
from assaymark.text import money

if TYPE_CHECKING:
    from assaymark.engine.ledger import Ledger

CHARACTERS_PER_TOKEN: Final = 4
"""Characters per token in an estimate. English prose has about as many; digits and other scripts have fewer."""

ASSUMED_OUTPUT_TOKENS: Final = 1000
"""The length of a reply that an estimate assumes if the call sets no ``max_tokens``, the same for every provider."""

SENT_OUTPUT_TOKENS: Final = {"anthropic": 16_000}
"""The ``max_tokens`` that is sent to a provider whose API requires it, if the call sets none."""

FRAME_TOKENS: Final = 500
"""Tokens that a bound allows for additions of the provider to a prompt: roles, and instructions on the reply form."""

SHIPPED: Final = "prices.toml of assaymark"
"""The name, in messages, of the price table that comes with assaymark."""

FREE: Final = ("reference", "http", "https", "python")
"""Providers whose models cost nothing: built-in models and external agents."""

_MILLION: Final = 1_000_000
_MOST_BYTES: Final = 1_000_000
_SNAPSHOT = re.compile(r"(-latest|[-@]\d{4}-?\d{2}-?\d{2}|-\d{2}-\d{2}|-\d{3})?")
_Money = Annotated[float, Field(ge=0, le=1_000_000)]


class Price(BaseModel):
    """The price of one model, or of several with one beginning, in USD per million tokens. One entry of a table."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    pattern: Annotated[str, Field(pattern=r"^[a-z\-]+/[^*\s]*\*?$", max_length=200)]
    input: _Money
    output: _Money
    cached: _Money | None = None
    batch: Annotated[float, Field(gt=0, le=1)] = 1.0
    most: Annotated[int, Field(gt=0)] | None = None
    as_of: date
    source: Annotated[str, Field(min_length=1, max_length=500)]

    def covers(self, model: str) -> bool:
        """True for the model that ``pattern`` names, for dated snapshots of it, or (``*``) for its prefix."""
        if self.pattern.endswith("*"):
            return model.startswith(self.pattern[:-1])
        rest = model.removeprefix(self.pattern)
        return model.startswith(self.pattern) and _SNAPSHOT.fullmatch(rest) is not None


class _PriceFile(BaseModel):
    """A price file as the user writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal["assaymark prices 1"]
    currency: Literal["USD"]
    model: tuple[Price, ...]


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """Estimated tokens and cost (USD) of calls that have not been sent."""

    tokens: int
    output_tokens: int
    cost: float | None
    basis: str


CallKind = tuple[str, str, str | None, str]
"""Model, prompt template, effort and arguments of a call; calls with equal values use similar shares of their bound."""


class Bound(NamedTuple):
    """The maximum cost of one call in USD, for input and for output, and its `CallKind`."""

    input: float
    output: float
    manner: CallKind = ("", "", None, "")

    @property
    def usd(self) -> float:
        """The maximum cost of input and output together."""
        return self.input + self.output


@dataclass(frozen=True, slots=True)
class Prices:
    """A table of prices with its source; see `load_prices`."""

    source: str
    entries: tuple[Price, ...]

    def of(self, model: str) -> Price | None:
        """Return the entry of a model ``provider/name``: the one with the longest matching pattern, or None."""
        fitting = [entry for entry in self.entries if entry.covers(model)]
        return max(fitting, key=lambda entry: len(entry.pattern), default=None)

    def cost_of(
        self, model: str, input_tokens: int | None, output_tokens: int | None, cached_tokens: int | None = None,
        batch: bool = False,
    ) -> float | None:  # fmt: skip
        """Compute the cost of one call in USD; None if its price or a token count is unknown."""
        price = self.of(model)
        if price is None or input_tokens is None or output_tokens is None:
            return None
        if price.most is not None and input_tokens > price.most:
            return None
        cached = min(cached_tokens or 0, input_tokens)
        dear = price.input * (input_tokens - cached) + price.output * output_tokens
        cost = dear + (price.input if price.cached is None else price.cached) * cached
        return cost * (price.batch if batch else 1.0) / _MILLION

    def paid(self, model: str, reply: Reply, batch: bool = False) -> float | None:
        """Compute the cost of a reply in USD from the token counts of its provider; 0 for models that cost nothing."""
        if costs_nothing(model):
            return 0.0
        return self.cost_of(model, reply.input_tokens, reply.output_tokens, reply.cached_tokens, batch)

    def bound(self, call: CallSpec) -> Bound | None:
        """Compute the maximum cost of one call in USD, given its ``max_tokens``; None if its price is unknown."""
        if costs_nothing(call.model):
            return Bound(0.0, 0.0)
        tokens, reply = _most_tokens(call)
        asked, answered = self.cost_of(call.model, tokens, 0), self.cost_of(call.model, 0, reply)
        return None if asked is None or answered is None else Bound(asked, answered, _kind_of(call))

    @staticmethod
    def share(call: CallSpec, reply: Reply) -> tuple[float, float] | None:
        """Compute the shares of the input and output tokens of `bound` that a reply used; None if they are unknown."""
        if reply.input_tokens is None or reply.output_tokens is None:
            return None
        tokens, most = _most_tokens(call)
        return reply.input_tokens / tokens, reply.output_tokens / max(most, 1)

    def estimate_all(self, calls: Iterable[CallSpec], batch: bool = False) -> CallEstimate:
        """Estimate the cost of calls: characters divided by four, and the longest reply that each call allows."""
        tokens = output = 0
        costs: list[float | None] = []
        words: set[str] = set()
        for call in calls:
            asked = -(-sum(len(part.text) for part in call.texts) // CHARACTERS_PER_TOKEN)
            reply = call.output_tokens(ASSUMED_OUTPUT_TOKENS)
            words.add(f"{reply:,} a reply, {'its max_tokens' if 'max_tokens' in call.args else 'assumed'}")
            tokens, output = tokens + asked, output + reply
            free = costs_nothing(call.model)
            costs.append(0.0 if free else self.cost_of(call.model, asked, reply, batch=batch))
        priced = [cost for cost in costs if cost is not None]
        basis = f"characters / {CHARACTERS_PER_TOKEN}; output tokens: {' or '.join(sorted(words)) or 'none'}"
        return CallEstimate(tokens, output, sum(priced) if len(priced) == len(costs) else None, basis)


def load_prices(path: Path | None = None) -> Prices:
    """Load the built-in table of prices, or the user's file if ``path`` is given. Raises `InputError`."""
    source = SHIPPED if path is None else str(path)
    try:
        if path is None:
            raw = (files("assaymark.engine.providers") / "prices.toml").read_bytes()
        else:
            with path.open("rb") as file:
                raw = file.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise InputError(source, [f"is larger than {_MOST_BYTES:,} bytes"])
        table = _table_of(raw)
    except OSError as exc:
        raise InputError(source, [f"cannot be read: {exc.strerror or type(exc).__name__}"]) from None
    except ValidationError as exc:
        raise InputError(source, problems_of(exc, _PriceFile)) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as exc:
        raise InputError(source, [f"is not TOML: {exc}"]) from None
    patterns = [entry.pattern for entry in table.model]
    twice = duplicates(patterns)
    if twice:
        raise InputError(source, [Problem("model", f"pattern {name!r} comes more than once") for name in twice])
    return Prices(source, table.model)


def text_of_prices(prices: Prices) -> str:
    """Return a table of prices as JSON, which `prices_of_text` reads."""
    entries = [entry.model_dump(mode="json") for entry in prices.entries]
    return json.dumps({"source": prices.source, "entries": entries})


def prices_of_text(text: str) -> Prices:
    """Read the table of prices that `text_of_prices` wrote. Raises `InputError`."""
    try:
        table = json.loads(text)
        return Prices(str(table["source"]), tuple(Price.model_validate(entry) for entry in table["entries"]))
    except ValidationError as exc:
        raise InputError("the noted prices", problems_of(exc)) from None
    except (ValueError, TypeError, KeyError) as exc:
        raise InputError("the noted prices", [f"are none ({type(exc).__name__})"]) from None


@lru_cache(maxsize=4)
def _table_of(raw: bytes) -> _PriceFile:
    """Parse a price file. Cached, because each day of a season loads it."""
    return _PriceFile.model_validate(tomllib.loads(raw.decode("utf-8")))


def costs_nothing(model: str) -> bool:
    """True for built-in models and external agents, which no provider bills."""
    return model.partition("/")[0] in FREE


def _most_tokens(call: CallSpec) -> tuple[int, int]:
    """The maximum numbers of input and output tokens of a call; output is an assumption if no limit is sent."""
    size = sum(len(part.text.encode("utf-8", "surrogatepass")) for part in call.texts)
    unset = SENT_OUTPUT_TOKENS.get(call.model.partition("/")[0], ASSUMED_OUTPUT_TOKENS)
    return size + FRAME_TOKENS, call.output_tokens(unset)


AttemptId = tuple[str, int]
"""Key and number of an attempt."""

_MARGIN_S = 60.0  # a reply of another worker becomes visible at most so long after its timestamp
_ROUNDING_USD = 1e-9
_REPLIES_TO_LEARN: Final = 2  # before these, the maximum cost of a call is reserved
_HEADROOM: Final = 1.25  # factor on the largest reply so far
_HEADROOM_OF_FEW: Final = 8.0  # added to it, divided by the number of replies so far to the power of 1.5
_READ_TO_LEARN: Final = 64  # replies of earlier runs and other workers, per model

Spending = tuple[
    dict[AttemptId, float], dict[AttemptId, Bound], frozenset[str], list[tuple[CallKind, tuple[float, float]]], float
]  # fmt: skip
"""Spending recorded in a ledger: cost of each reply, bounds of attempts that may have been paid, models without a
price, shares of their bounds that replies used, and the time of the last reply."""


class SpendLimit:
    """Spend limit for the calls on one ledger. Before a call is sent, its expected cost is reserved.

    The reservation is the bound of the call until two replies of its `CallKind` have arrived. Then it is the
    largest shares of their bounds that these used, of input and output, times a factor: 4.1 after two replies, 1.5
    after ten, 1.25 in the limit. Refusals, which are short, are not counted. Money spent, money reserved, and the
    largest excess of one call's bound over its reservation never exceed ``limit_usd`` together. So the limit holds
    unless several calls in flight turn out longer than all before them by more than these reservations leave.

    A call that does not fit waits while replies of this run can still make room; when they cannot, nothing more is
    sent. Every reply in the ledger counts, also of earlier runs. An attempt without a whole reply within its deadline,
    or in flight when its run died, counts at its reservation, because it may have been paid. Spending of other workers
    on the same ledger is read whenever calls are claimed.
    """

    def __init__(self, limit_usd: float, prices: Prices) -> None:
        if not (math.isfinite(limit_usd) and limit_usd >= 0):
            raise ValueError(f"a budget must be a number of USD, 0 or more (got {limit_usd})")
        self.limit_usd, self._prices = limit_usd, prices
        self.stopped: str | None = None
        self._paid: dict[AttemptId, float] = {}
        self._paid_usd = 0.0
        self._own_attempts: set[AttemptId] = set()
        self._cut_off: dict[AttemptId, Bound] = {}
        self._unsure: dict[AttemptId, Bound] = {}
        self._bounds: dict[str, Bound | str] = {}
        self._seen: dict[CallKind, tuple[float, float, int]] = {}
        self._read: Counter[str] = Counter()
        self._holds: dict[int, Bound] = {}
        self._numbers = count()
        self._ledger: str | None = None
        self._until = 0.0
        self._changed = asyncio.Event()

    @property
    def spent(self) -> float:
        """Money paid in USD, including the expected cost of attempts of this run that were cut off."""
        return self._paid_usd + self._held(self._cut_off.values(), least=1)

    @property
    def under_way(self) -> float:
        """Money in USD that is reserved for calls in flight, of this run and of other workers."""
        return self._held(self._holds.values()) + self._held(self._unsure.values(), least=1)

    def _held(self, calls: Iterable[Bound], least: int = _REPLIES_TO_LEARN) -> float:
        return math.fsum(self._expected(call, least) for call in calls)

    def _expected(self, most: Bound, least: int = _REPLIES_TO_LEARN) -> float:
        """Return the cost expected of a call in USD: its bound; after ``least`` replies, their largest share of it."""
        share_in, share_out, n = self._seen.get(most.manner, (0.0, 0.0, 0))
        if n < least:
            return most.usd
        more = _HEADROOM + _HEADROOM_OF_FEW / math.pow(n, 1.5)
        return min(share_in * more, 1.0) * most.input + share_out * more * most.output

    def learn(self, manner: CallKind, share: tuple[float, float]) -> None:
        """Update the largest shares of their bounds that replies used, of input and output, and count the replies."""
        share_in, share_out, n = self._seen.get(manner, (0.0, 0.0, 0))
        self._seen[manner] = max(share_in, share[0]), max(share_out, share[1]), n + 1

    def fresh(self) -> SpendLimit:
        """Return an unused budget with the same limit, for any ledger."""
        return SpendLimit(self.limit_usd, self._prices)

    def begin(self, ledger: Ledger) -> None:
        """Load the spending recorded in ``ledger``, before a run of calls on it."""
        if self._ledger not in (None, ledger.name):
            raise ValueError(f"this budget is for {self._ledger} (got {ledger.name})")
        self._ledger = ledger.name
        self._changed, self._holds = asyncio.Event(), {}
        self.load_spend(self.read(ledger))

    def check(self, calls: Iterable[CallSpec]) -> None:
        """Raise `PlanError` if a call has no known price: with a budget, such a call is not sent."""
        if unknown := {call.model for call in calls if self._prices.bound(call) is None}:
            raise PlanError(_no_price(unknown))

    def check_affordable(self, ledger: Ledger, calls: Iterable[CallSpec]) -> None:
        """Raise `PlanError` unless all ``calls`` without a reply and in no open batch fit the budget together."""
        asked = {call.key: call for call in calls}
        waiting = {key for key, _ in ledger.batches.attempts_under_way()}
        open_ = [asked[key] for key in ledger.pending(asked) if key not in waiting]
        if not open_:
            return
        self.check(open_)
        self.begin(ledger)
        needed = math.fsum(most.usd for call in open_ if (most := self._prices.bound(call)) is not None)
        if not self._fits(needed + self.spent + self.under_way):
            self._stop(needed, f"{len(open_)} calls need")
            raise PlanError(f"{self.stopped} (calls in batches are paid together or not at all)")

    def read(self, ledger: Ledger) -> Spending:
        """Read the spending in the ledger that this object has not counted. Called in the ledger's thread."""
        answered = ledger.answered(since=self._until - _MARGIN_S)
        unpaid = [answer for answer in answered if (answer.key, answer.number) not in self._paid]
        in_batches = ledger.batches.answered_in_batches([answer.key for answer in unpaid])
        paid: dict[AttemptId, float] = {}
        unpriced: dict[AttemptId, str] = {}
        for answer in unpaid:
            cost = self._prices.paid(answer.model, answer.reply, answer.key in in_batches)
            if cost is None:
                unpriced[answer.key, answer.number] = answer.key
            else:
                paid[answer.key, answer.number] = cost
        perhaps = {place: place[0] for place in ledger.possibly_paid() if place not in self._own_attempts}
        # the bounds of these calls, unless they are cached; for a model without a price, its name
        keys = {*unpriced.values(), *perhaps.values()}
        new = sorted(key for key in keys if key not in self._bounds)
        calls = dict(zip(new, ledger.load(new, {}), strict=True)) if new else {}
        self._bounds.update({key: self._prices.bound(call) or call.model for key, call in calls.items()})
        unknown = frozenset(most for key in keys if isinstance(most := self._bounds[key], str))
        paid |= {place: most.usd for place, key in unpriced.items() if isinstance(most := self._bounds[key], Bound)}
        owed = {place: most for place, key in perhaps.items() if isinstance(most := self._bounds[key], Bound)}
        until = max([self._until, *(answer.finished_at for answer in unpaid)])
        # the shares of their bounds that the newest of these replies used, up to a number per model
        replies: dict[str, Reply] = {}
        for answer in sorted(unpaid, key=lambda answer: -answer.finished_at):
            self._read[answer.model] += 1
            if self._read[answer.model] <= _READ_TO_LEARN and answer.reply.finish != "refusal":
                replies[answer.key] = answer.reply
        shares = [
            (_kind_of(call), share)
            for call in (ledger.load(list(replies), {}) if replies else ())
            if (share := self._prices.share(call, replies[call.key])) is not None
        ]
        return paid, owed, unknown, shares, until

    def load_spend(self, books: Spending) -> None:
        """Add the result of `read`. Called on the event loop. Raises `PlanError` if a price is unknown."""
        paid, self._unsure, unknown, shares, self._until = books
        if unknown:
            raise PlanError(_no_price(unknown))
        for place, cost in paid.items():
            self._pay(place, cost)
        for manner, share in shares:
            self.learn(manner, share)
        self.wake()

    def _pay(self, place: AttemptId, cost: float) -> None:
        if place not in self._paid:
            self._paid[place] = cost
            self._paid_usd += cost

    async def take(self, call: CallSpec, shut: Callable[[], bool]) -> int | None:
        """Reserve the expected cost of ``call``, waiting for room if needed.

        Returns the number of the reservation, which `settle` releases; None if the call must not be sent.
        """
        most = self._prices.bound(call)
        if most is None:
            self.stopped = _no_price([call.model])
            self.wake()
        while most is not None and self.stopped is None and not shut():
            # the largest amount by which one call may cost more than its reservation
            excess = max(0.0, *(cap.usd - self._expected(cap) for cap in (most, *self._holds.values())))
            needed = self._expected(most) + self.spent + self.under_way + excess
            if most.usd == 0 or self._fits(needed):
                self._holds[hold := next(self._numbers)] = most
                return hold
            if not self._holds or not self._fits(most.usd + self.spent + self._held(self._unsure.values(), least=1)):
                self._stop(most.usd)
                break
            await self._changed.wait()
        return None

    def settle(self, hold: int, call: CallSpec, attempt: Attempt | None, result: Reply | FailedAttempt | None) -> None:
        """Release a reservation and count the actual or possible cost. ``attempt`` None: it was not sent."""
        most = self._holds.pop(hold)
        if attempt is not None:
            place = attempt.key, attempt.number
            self._own_attempts.add(place)
            if isinstance(result, Reply):
                share = self._prices.share(call, result)
                if share is not None and result.finish != "refusal":  # see SpendLimit
                    self.learn(most.manner, share)
                cost = self._prices.paid(call.model, result)
                self._pay(place, most.usd if cost is None else cost)
            elif result is not None and result.outcome != "failed":
                self._cut_off[place] = most
        self.wake()

    def _fits(self, usd: float) -> bool:
        return usd <= self.limit_usd + _ROUNDING_USD

    def _stop(self, usd: float, subject: str = "call needs") -> None:
        self.stopped = (
            f"budget of {money(self.limit_usd)} USD would be exceeded: {money(self.spent)} spent, "
            f"{money(self.under_way)} under way or cut off, the next {subject} up to {money(usd)}; "
            "every reply so far is kept; raise --budget to continue"
        )
        self.wake()

    def wake(self) -> None:
        """Wake all callers that wait for room."""
        self._changed.set()
        self._changed = asyncio.Event()


def _kind_of(call: CallSpec) -> CallKind:
    return call.model, call.template, call.effort, canonical_json(call.args)


def _no_price(models: Iterable[str]) -> str:
    return (
        f"no price is known for {', '.join(sorted(models))}, or not for prompts of this length, "
        "and a budget needs one: add it to a price table (--prices FILE), or leave the budget out"
    )
