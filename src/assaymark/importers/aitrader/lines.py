"""The lines of ``decisions.jsonl``: their shape, and what is wrong with one although its shape is right."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from assaymark.importers.aitrader.prices import Prices
from assaymark.importers.aitrader.tracks import Track
from assaymark.importers.wording import NAME
from assaymark.records import Action, ActionKind

_STRICT: Final = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

CASH: Final = "CASH"

MOST: Final = 1e15
"""No amount, price or position is larger: sums and products of such numbers are still finite."""

KINDS: Final[dict[str, ActionKind]] = {
    "buy": "buy",
    "buy_crypto": "buy",
    "sell": "sell",
    "sell_crypto": "sell",
    "no_trade": "no_trade",
}
"""What the log calls its actions, and what they are here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAction:
    """One entry of a step's action log; ``price`` stands in a handful of them."""

    __pydantic_config__ = _STRICT

    action: Literal["buy", "buy_crypto", "sell", "sell_crypto", "no_trade"]
    symbol: str
    amount: Annotated[float, Field(ge=0, le=MOST)]
    price: Annotated[float, Field(gt=0, le=MOST)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One step of one agent. ``rationale`` is its last message, ``timestamps`` when messages were written, unzoned."""

    __pydantic_config__ = _STRICT

    track: str
    model: Annotated[str, Field(pattern=NAME)]
    step: str
    rationale: str | None
    n_messages: Annotated[int, Field(ge=0)]
    timestamps: list[str]
    actions: list[LoggedAction]
    positions_after: dict[str, Annotated[float, Field(ge=-MOST, le=MOST)]] | None


@dataclass(frozen=True, slots=True)
class Step:
    """A line that was found good, with its track and its local stamp; ``place`` says where it was read."""

    line: Line
    track: Track
    at: datetime
    place: str

    @property
    def agent(self) -> str:
        """The model, without the name of the track that some logs add to it."""
        return self.line.model.removesuffix(self.track.suffix) if self.track.suffix else self.line.model

    @property
    def record_id(self) -> str:
        """The decision's id: track, step and agent."""
        stamp = self.at.strftime("%Y-%m-%d" if self.track.daily else "%Y-%m-%dT%H:%M")
        return f"{self.track.name}/{stamp}/{self.agent}"

    @property
    def cash(self) -> float | None:
        """Cash after the step, where it is stated."""
        return None if self.line.positions_after is None else self.line.positions_after[CASH]

    @property
    def held(self) -> dict[str, float] | None:
        """Units after the step, where they are stated; nothing of a symbol is left out."""
        after = self.line.positions_after
        return None if after is None else {symbol: units for symbol, units in after.items() if units and symbol != CASH}

    @property
    def actions(self) -> tuple[Action, ...]:
        """The logged actions as ours."""
        return tuple(
            Action(
                instrument=one.symbol,
                kind=KINDS[one.action],
                quantity=None if one.action == "no_trade" else one.amount,
                price=one.price,
            )
            for one in self.line.actions
        )

    @property
    def wall_clock(self) -> tuple[datetime, datetime] | None:
        """When the first and last kept messages were written, on a clock without a zone."""
        if not self.line.timestamps:
            return None
        times = [datetime.fromisoformat(one) for one in self.line.timestamps]
        return min(times), max(times)


def faults(line: Line, at: datetime, prices: Prices) -> list[str]:
    """What is wrong with a line of the right shape: ``field: what``."""
    found = []
    if at not in prices:
        found.append(f"step: has no bar in {prices.track.prices} (got {line.step!r})")
    for number, one in enumerate(line.actions):
        if one.action == "no_trade":
            continue
        if one.symbol not in prices.symbols:
            found.append(f"actions.{number}.symbol: has no bars in {prices.track.prices} (got {one.symbol!r:.60})")
    after = line.positions_after
    if after is not None:
        if CASH not in after:
            found.append(f"positions_after: has no {CASH}")
        unknown = [symbol for symbol in after if symbol != CASH and symbol not in prices.symbols]
        found += [f"positions_after: {symbol!r:.60} has no bars in {prices.track.prices}" for symbol in unknown]
    return found + _clock_faults(line)


def _clock_faults(line: Line) -> list[str]:
    found, times = [], []
    for number, text in enumerate(line.timestamps):
        try:
            times.append(datetime.fromisoformat(text))
        except ValueError:
            found.append(f"timestamps.{number}: must be a time such as 2025-11-17T06:44:32 (got {text[:40]!r})")
    if any(one.tzinfo is not None for one in times):
        found.append("timestamps: have a zone, which this log's never had; say what changed in an issue")
    elif times != sorted(times):
        found.append("timestamps: go backwards")
    return found
