"""What calls cost: a dated table of list prices, the cost of a reply, and an estimate before anything is asked.

A price that is not in the table is unknown, and so is every cost that needs it: never zero, never a neighbour's.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assaymark.engine.calls import CallSpec, Reply
from assaymark.errors import InputError, Problem
from assaymark.records import problems_of

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
    """The price of one model, or of several with one beginning, in USD per million tokens. One entry of a table.

    ``cached`` is for input that was read from the provider's cache, None where it is not known; ``batch`` is what a
    batch costs as a part of the price; ``most`` the longest input in tokens that the price holds for.
    """

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
    """What calls may cost, before anything is asked.

    ``tokens`` is the input, ``output_tokens`` the longest reply that is allowed or else assumed; ``cost`` is in USD,
    None where any price is unknown. ``basis`` says in words how they were come by.
    """

    tokens: int
    output_tokens: int
    cost: float | None
    basis: str


class Bound(NamedTuple):
    """The most that one call may cost, in USD, by its two parts."""

    input: float
    output: float

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
        self,
        model: str,
        input_tokens: int | None,
        output_tokens: int | None,
        cached_tokens: int | None = None,
        batch: bool = False,
    ) -> float | None:
        """What one call cost, in USD; None where the price or a number of tokens is unknown."""
        price = self.of(model)
        if price is None or input_tokens is None or output_tokens is None:
            return None
        if price.most is not None and input_tokens > price.most:
            return None
        cached = min(cached_tokens or 0, input_tokens)
        dear = price.input * (input_tokens - cached) + price.output * output_tokens
        whole = dear + (price.input if price.cached is None else price.cached) * cached
        return whole * (price.batch if batch else 1.0) / _MILLION

    def paid(self, model: str, reply: Reply, batch: bool = False) -> float | None:
        """What a reply cost, in USD, by the tokens that its provider counted; 0 for models that cost nothing."""
        if costs_nothing(model):
            return 0.0
        return self.cost_of(model, reply.input_tokens, reply.output_tokens, reply.cached_tokens, batch)

    def bound(self, call: CallSpec) -> Bound | None:
        """The most that one call may cost, in USD, where it sets ``max_tokens``; None where its price is unknown.

        No tokenizer makes more tokens than there are bytes, and `FRAME_TOKENS` are for what a provider puts around a
        prompt. Without ``max_tokens`` a reply of `ASSUMED_OUTPUT_TOKENS` is assumed, and then it is no bound.
        """
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

    def estimate_all(self, calls: Iterable[CallSpec], *, batch: bool = False) -> Estimate:
        """What calls may cost together: their characters divided by four, and the longest replies that they allow.

        Without ``args.max_tokens`` a reply of 1,000 tokens is assumed. Reasoning, which is paid as output, can make it
        many times as long. One unknown price makes the whole cost unknown.
        """
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
        known = [cost for cost in costs if cost is not None]
        basis = f"characters / {CHARACTERS_PER_TOKEN}; output tokens: {' or '.join(sorted(words)) or 'none'}"
        return Estimate(tokens, output, sum(known) if len(known) == len(costs) else None, basis)


def load_prices(path: Path | None = None) -> Prices:
    """The table of prices that comes with assaymark, or the user's own file in its place.

    A file of one's own replaces the shipped table as a whole, so that no price is from a list one did not read.
    """
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
    twice = sorted({name for name in patterns if patterns.count(name) > 1})
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
        found = json.loads(text)
        return Prices(str(found["source"]), tuple(Price.model_validate(entry) for entry in found["entries"]))
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
