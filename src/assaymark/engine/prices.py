"""What calls cost: a dated table of list prices, the cost of a reply, and an estimate before anything is asked."""

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
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.loop import Trouble
from assaymark.engine.schema import Attempt
from assaymark.errors import InputError, PlanError, Problem
from assaymark.records import canonical_json, problems_of, repeated

if TYPE_CHECKING:
    from assaymark.engine.ledger import Ledger

CHARACTERS_PER_TOKEN: Final = 4
"""How many characters an estimate takes for a token. English prose is near it; digits and other scripts have fewer."""

ASSUMED_OUTPUT_TOKENS: Final = 1000
"""The length of a reply that an estimate assumes, of every provider alike, where the call sets no ``max_tokens``."""

_SENT_OUTPUT_TOKENS: Final = {"anthropic": 16_000}
"""The ``max_tokens`` that is sent to a provider whose API has to be given one, where the call sets none."""

FRAME_TOKENS: Final = 500
"""Tokens that a bound allows for what a provider adds to a prompt: roles, and its words about the form of a reply."""

SHIPPED: Final = "prices.toml of assaymark"
"""The source of the table that comes with assaymark."""

FREE: Final = ("reference", "http", "https", "python")
"""Providers whose models cost nothing: ours, and agents of somebody's own."""

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
        """Whether it is the price of a model: the one it names, a snapshot of that, or any with its beginning."""
        if self.pattern.endswith("*"):
            return model.startswith(self.pattern[:-1])
        rest = model.removeprefix(self.pattern)
        return model.startswith(self.pattern) and _SNAPSHOT.fullmatch(rest) is not None


class _Table(BaseModel):
    """A file of prices as a person writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal["assaymark prices 1"]
    currency: Literal["USD"]
    model: tuple[Price, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What calls may cost, before anything is asked."""

    tokens: int
    output_tokens: int
    cost: float | None
    basis: str


Manner = tuple[str, str, str | None, str]
"""Model, prompt template, effort and arguments of a call: calls that agree in these take alike much of their bound."""


class Bound(NamedTuple):
    """The most that one call may cost, in USD, by its two parts, and the manner in which it is asked."""

    input: float
    output: float
    manner: Manner = ("", "", None, "")

    @property
    def usd(self) -> float:
        """Both together."""
        return self.input + self.output


@dataclass(frozen=True, slots=True)
class Prices:
    """A table of prices and where it is from; see `load_prices`."""

    source: str
    entries: tuple[Price, ...]

    def of(self, model: str) -> Price | None:
        """The entry of a model ``provider/name``: the longest pattern that fits, None where none does."""
        fitting = [entry for entry in self.entries if entry.covers(model)]
        return max(fitting, key=lambda entry: len(entry.pattern), default=None)

    def cost_of(
        self, model: str, input_tokens: int | None, output_tokens: int | None, cached_tokens: int | None = None,
        batch: bool = False,
    ) -> float | None:  # fmt: skip
        """What one call cost, in USD; None where the price or a number of tokens is unknown."""
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
        """What a reply cost, in USD, by the tokens that its provider counted; 0 for models that cost nothing."""
        if costs_nothing(model):
            return 0.0
        return self.cost_of(model, reply.input_tokens, reply.output_tokens, reply.cached_tokens, batch)

    def bound(self, call: CallSpec) -> Bound | None:
        """The most that one call may cost, in USD, where it sets ``max_tokens``; None where its price is unknown."""
        if costs_nothing(call.model):
            return Bound(0.0, 0.0)
        tokens, reply = _most_tokens(call)
        asked, answered = self.cost_of(call.model, tokens, 0), self.cost_of(call.model, 0, reply)
        return None if asked is None or answered is None else Bound(asked, answered)

    @staticmethod
    def share(call: CallSpec, reply: Reply) -> tuple[float, float] | None:
        """The parts of the tokens of `bound` that a reply took, of input and output; None where they are not known."""
        if reply.input_tokens is None or reply.output_tokens is None:
            return None
        tokens, most = _most_tokens(call)
        return reply.input_tokens / tokens, reply.output_tokens / max(most, 1)

    def estimate_all(self, calls: Iterable[CallSpec], batch: bool = False) -> Estimate:
        """What calls may cost together: their characters divided by four, and the longest replies that they allow."""
        tokens = output = 0
        costs: list[float | None] = []
        words: set[str] = set()
        for call in calls:
            asked = -(-sum(len(part.text) for part in call.texts) // CHARACTERS_PER_TOKEN)
            reply = _output_tokens(call, ASSUMED_OUTPUT_TOKENS)
            words.add(f"{reply:,} a reply, {'its max_tokens' if 'max_tokens' in call.args else 'assumed'}")
            tokens, output = tokens + asked, output + reply
            free = costs_nothing(call.model)
            costs.append(0.0 if free else self.cost_of(call.model, asked, reply, batch=batch))
        priced = [cost for cost in costs if cost is not None]
        basis = f"characters / {CHARACTERS_PER_TOKEN}; output tokens: {' or '.join(sorted(words)) or 'none'}"
        return Estimate(tokens, output, sum(priced) if len(priced) == len(costs) else None, basis)


def load_prices(path: Path | None = None) -> Prices:
    """The table of prices that comes with assaymark, or the user's own file in its place."""
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
        raise InputError(source, problems_of(exc, _Table)) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as exc:
        raise InputError(source, [f"is not TOML: {exc}"]) from None
    patterns = [entry.pattern for entry in table.model]
    twice = repeated(patterns)
    if twice:
        raise InputError(source, [Problem("model", f"pattern {name!r} comes more than once") for name in twice])
    return Prices(source, table.model)


def text_of_prices(prices: Prices) -> str:
    """A table of prices as JSON, for `prices_of_text`."""
    entries = [entry.model_dump(mode="json") for entry in prices.entries]
    return json.dumps({"source": prices.source, "entries": entries})


def prices_of_text(text: str) -> Prices:
    """The table of prices that `text_of_prices` wrote down."""
    try:
        table = json.loads(text)
        return Prices(str(table["source"]), tuple(Price.model_validate(entry) for entry in table["entries"]))
    except ValidationError as exc:
        raise InputError("the noted prices", problems_of(exc)) from None
    except (ValueError, TypeError, KeyError) as exc:
        raise InputError("the noted prices", [f"are none ({type(exc).__name__})"]) from None


@lru_cache(maxsize=4)
def _table_of(raw: bytes) -> _Table:
    """The table that some bytes spell: read once, because each day of a season asks for it."""
    return _Table.model_validate(tomllib.loads(raw.decode("utf-8")))


def costs_nothing(model: str) -> bool:
    """Whether a model is one of ours or somebody's agent, which no provider sends a bill for."""
    return model.partition("/")[0] in FREE


def _most_tokens(call: CallSpec) -> tuple[int, int]:
    """The most tokens that a call can take: of input, and of output where its length is limited."""
    size = sum(len(part.text.encode("utf-8", "surrogatepass")) for part in call.texts)
    unset = _SENT_OUTPUT_TOKENS.get(call.model.partition("/")[0], ASSUMED_OUTPUT_TOKENS)
    return size + FRAME_TOKENS, _output_tokens(call, unset)


def _output_tokens(call: CallSpec, unset: int) -> int:
    most = call.args.get("max_tokens", unset)
    return int(most) if isinstance(most, int | float) else unset


# A budget for calls: what was paid, what is under way, and whether the next call may be sent

AttemptId = tuple[str, int]
"""Key and number of an attempt."""

_MARGIN_S = 60.0  # how much later than its time a reply of somebody else can come to light
_ROUNDING_USD = 1e-9
_REPLIES_TO_LEARN: Final = 2  # before these, the most that a call may cost is held back
_HEADROOM: Final = 1.25  # above the largest reply seen
_HEADROOM_OF_FEW: Final = 8.0  # more, divided by the number of replies seen to the power of 1.5
_READ_TO_LEARN: Final = 64  # replies of earlier runs and other workers, a model

Books = tuple[
    dict[AttemptId, float], dict[AttemptId, Bound], frozenset[str], list[tuple[Manner, tuple[float, float]]], float
]  # fmt: skip
"""What a ledger says was paid: replies at their cost, the bounds of attempts that may have been paid, models without a
price, what replies took of their bounds, and the time of the last reply."""


class SpendLimit:
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
        self, limit_usd: float, bound: Callable[[CallSpec], Bound | tuple[float, float] | None],
        cost: Callable[[str, Reply, bool], float | None],
        share: Callable[[CallSpec, Reply], tuple[float, float] | None] | None = None,
    ) -> None:  # fmt: skip
        if not (math.isfinite(limit_usd) and limit_usd >= 0):
            raise ValueError(f"a budget must be a number of USD, 0 or more (got {limit_usd})")
        self.limit_usd, self._bound, self._cost, self._share = limit_usd, bound, cost, share
        self.stopped: str | None = None
        self._paid: dict[AttemptId, float] = {}
        self._paid_usd = 0.0
        self._mine: set[AttemptId] = set()
        self._cut_off: dict[AttemptId, Bound] = {}
        self._perhaps: dict[AttemptId, Bound] = {}
        self._bounds: dict[str, Bound | str] = {}
        self._seen: dict[Manner, tuple[float, float, int]] = {}
        self._read: Counter[str] = Counter()
        self._holds: set[Reservation] = set()
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

    def _held(self, calls: Iterable[Bound], least: int = _REPLIES_TO_LEARN) -> float:
        return math.fsum(self._expected(call, least) for call in calls)

    def _expected(self, most: Bound, least: int = _REPLIES_TO_LEARN) -> float:
        """A call's bound before so many replies, then the most that these took, and some more."""
        shown, said, n = self._seen.get(most.manner, (0.0, 0.0, 0))
        if n < least:
            return most.usd
        more = _HEADROOM + _HEADROOM_OF_FEW / math.pow(n, 1.5)
        return min(shown * more, 1.0) * most.input + said * more * most.output

    def learn(self, manner: Manner, share: tuple[float, float]) -> None:
        """Keep the largest parts of their bounds that replies took, of input and output, and how many there were."""
        shown, said, n = self._seen.get(manner, (0.0, 0.0, 0))
        self._seen[manner] = max(shown, share[0]), max(said, share[1]), n + 1

    def _most(self, call: CallSpec) -> Bound | None:
        bound = self._bound(call)
        return None if bound is None else Bound(*bound[:2], _manner(call))

    def emptied(self) -> SpendLimit:
        """Another purse with the same limit, that has paid nothing yet and is for any ledger."""
        return SpendLimit(self.limit_usd, self._bound, self._cost, self._share)

    def begin(self, ledger: Ledger) -> None:
        """Read what was paid, before a run of calls on ``ledger``."""
        if self._ledger not in (None, ledger.name):
            raise ValueError(f"this purse is for {self._ledger} (got {ledger.name})")
        self._ledger = ledger.name
        self._changed, self._holds = asyncio.Event(), set()
        self.load_spend(self.read(ledger))

    def check(self, calls: Iterable[CallSpec]) -> None:
        """Raise `PlanError` if a call has no known price: with a budget, such a call is not sent."""
        if unknown := {call.model for call in calls if self._bound(call) is None}:
            raise PlanError(_no_price(unknown))

    def check_affordable(self, ledger: Ledger, calls: Iterable[CallSpec]) -> None:
        """See that those of ``calls`` that have no reply, and are in no batch, can all be paid at once."""
        asked = {call.key: call for call in calls}
        waiting = {key for key, _ in ledger.batches.attempts_under_way()}
        open_ = [asked[key] for key in ledger.pending(asked) if key not in waiting]
        if not open_:
            return
        self.check(open_)
        self.begin(ledger)
        needed = math.fsum(most.usd for call in open_ if (most := self._most(call)) is not None)
        if not self._fits(needed + self.spent + self.under_way):
            self._stop(needed, f"{len(open_)} calls need")
            raise PlanError(f"{self.stopped} (calls in batches are paid together or not at all)")

    def read(self, ledger: Ledger) -> Books:
        """What the ledger says was paid by others than this purse. Called in the ledger's thread."""
        answered = ledger.answered(since=self._until - _MARGIN_S)
        unpaid = [answer for answer in answered if (answer.key, answer.number) not in self._paid]
        in_batches = ledger.batches.answered_in_batches([answer.key for answer in unpaid])
        paid: dict[AttemptId, float] = {}
        unpriced: dict[AttemptId, str] = {}
        for answer in unpaid:
            cost = self._cost(answer.model, answer.reply, answer.key in in_batches)
            if cost is None:
                unpriced[answer.key, answer.number] = answer.key
            else:
                paid[answer.key, answer.number] = cost
        perhaps = {place: place[0] for place in ledger.perhaps_paid() if place not in self._mine}
        # the bounds of these calls, unless they are known; of a model without a price, its name
        keys = {*unpriced.values(), *perhaps.values()}
        new = sorted(key for key in keys if key not in self._bounds)
        calls = dict(zip(new, ledger.load(new, {}), strict=True)) if new else {}
        self._bounds.update({key: self._most(call) or call.model for key, call in calls.items()})
        unknown = frozenset(most for key in keys if isinstance(most := self._bounds[key], str))
        paid |= {place: most.usd for place, key in unpriced.items() if isinstance(most := self._bounds[key], Bound)}
        owed = {place: most for place, key in perhaps.items() if isinstance(most := self._bounds[key], Bound)}
        until = max([self._until, *(answer.finished_at for answer in unpaid)])
        # what the newest of these replies took of their bounds, some of each model
        replies: dict[str, Reply] = {}
        for answer in sorted(unpaid, key=lambda answer: -answer.finished_at) if self._share is not None else ():
            self._read[answer.model] += 1
            if self._read[answer.model] <= _READ_TO_LEARN and answer.reply.finish != "refusal":
                replies[answer.key] = answer.reply
        shares = [
            (_manner(call), share) for call in (ledger.load(list(replies), {}) if replies else ())
            if self._share is not None and (share := self._share(call, replies[call.key])) is not None
        ]  # fmt: skip
        return paid, owed, unknown, shares, until

    def load_spend(self, books: Books) -> None:
        """Take account of what was read. Called where calls are taken."""
        paid, self._perhaps, unknown, shares, self._until = books
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

    async def take(self, call: CallSpec, shut: Callable[[], bool]) -> Reservation | None:
        """Hold back what ``call`` may cost, waiting for room if need be. None: it may not be sent any more."""
        most = self._most(call)
        if most is None:
            self.stopped = _no_price([call.model])
            self.wake()
        while most is not None and self.stopped is None and not shut():
            # the largest amount by which one call may cost more than it is held at
            to_spare = max(0.0, *(cap.usd - self._expected(cap) for cap in (most, *(one.most for one in self._holds))))
            needed = self._expected(most) + self.spent + self.under_way + to_spare
            if most.usd == 0 or self._fits(needed):
                hold = Reservation(self, call, most)
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

    def wake(self) -> None:
        """Let everybody who waits for room look again."""
        self._changed.set()
        self._changed = asyncio.Event()


class Reservation:
    """Money held back for one attempt at a call that costs ``most``; `done` settles it."""

    __slots__ = ("_purse", "call", "most")

    def __init__(self, purse: SpendLimit, call: CallSpec, most: Bound) -> None:
        self._purse, self.call, self.most = purse, call, most

    def done(self, attempt: Attempt | None, result: Reply | Trouble | None) -> None:
        """Release the hold; what was paid for it, or may have been, counts from now on. No attempt: it was not sent."""
        purse = self._purse
        purse._holds.discard(self)
        if attempt is not None:
            place = attempt.key, attempt.number
            purse._mine.add(place)
            if isinstance(result, Reply):
                share = None if purse._share is None else purse._share(self.call, result)
                if share is not None and result.finish != "refusal":  # how much of its bound a reply took
                    purse.learn(self.most.manner, share)
                cost = purse._cost(self.call.model, result, False)
                purse._pay(place, self.most.usd if cost is None else cost)
            elif result is not None and result.outcome != "failed":
                purse._cut_off[place] = self.most
        purse.wake()


def _manner(call: CallSpec) -> Manner:
    return call.model, call.template, call.effort, canonical_json(call.args)


def _no_price(models: Iterable[str]) -> str:
    return (
        f"no price is known for {', '.join(sorted(models))}, or not for prompts of this length: "
        "with a budget it is not asked; give a file of prices that has it (--prices FILE), or leave the budget out"
    )


def _usd(amount: float) -> str:
    """Two decimals, more where the amount is small."""
    return f"{amount:.2f}" if amount >= 0.01 or amount == 0 else f"{amount:.2g}"
