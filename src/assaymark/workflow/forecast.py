"""What a run will cost and what it has cost: `--dry-run`, `--budget`, and the line after a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assaymark.engine import CallSpec, Ledger, Model, SpendLimit
from assaymark.engine.prices import CHARACTERS_PER_TOKEN, Estimate, Prices, costs_nothing, load_prices
from assaymark.engine.providers.registry import Models
from assaymark.errors import InputError, Problem
from assaymark.protocol import Study
from assaymark.text import money
from assaymark.workflow.run_folder import RunFolder, missing

if TYPE_CHECKING:
    from assaymark.report import PaidView


@dataclass(frozen=True, slots=True)
class Stage:
    """Calls that one part of a study makes. ``stand_in``: made of texts that are not written yet."""

    what: str
    calls: Sequence[CallSpec]
    stand_in: bool = False


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What one model has to answer: calls by stage, how many have their reply, and the estimate of the others."""

    model: str
    stages: Mapping[str, int]
    already: int
    rest: Estimate

    @property
    def planned(self) -> int:
        """All calls."""
        return sum(self.stages.values())


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would be asked and cost: for each model, and in lines to print."""

    models: tuple[CostEstimate, ...]
    lines: tuple[str, ...]

    @property
    def usd(self) -> float | None:
        """What all of it may cost; None where a price is not known."""
        known = [model.rest.cost for model in self.models if model.rest.cost is not None]
        return sum(known) if len(known) == len(self.models) else None

    def noting(self, line: str) -> Forecast:
        """The same with one more line before the last."""
        return replace(self, lines=(*self.lines[:-1], line, self.lines[-1]))


def paid_models(
    models: Mapping[str, Model], budget: float | None, prices: Path | None, *, strict: bool = False
) -> Models:
    """``models`` at the prices of a file, or those that come with assaymark, within a budget in USD if there is one."""
    if prices is not None and not prices.exists():
        raise missing(prices, "file of prices")
    found = load_prices(prices)
    try:
        purse = None if budget is None else SpendLimit(budget, found.bound, found.paid, found.share)
    except ValueError as exc:
        raise InputError("--budget", [Problem("", str(exc))]) from None
    whole = models if isinstance(models, Models) else Models(models, {})
    return whole.paid_from(purse, found, strict)


def expected(
    stages: Sequence[Stage], held: Iterable[str], prices: Prices, *, batch: bool = False
) -> list[CostEstimate]:
    """What each model has to answer, by name; ``held`` are the keys of calls that have a reply."""
    replied = set(held)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    rest: defaultdict[str, list[CallSpec]] = defaultdict(list)
    calls: dict[str, tuple[str, CallSpec]] = {}
    for stage in stages:
        for call in stage.calls:
            calls.setdefault(call.key, (stage.what, call))
    for key, (what, call) in calls.items():
        counts[call.model][what] += 1
        if key not in replied:
            rest[call.model].append(call)
    return [
        CostEstimate(name, of, of.total() - len(rest[name]), prices.estimate_all(rest[name], batch))
        for name, of in sorted(counts.items())
    ]


def forecast(
    stages: Sequence[Stage], folder: RunFolder, study: Study | None, prices: Prices, batch: bool = False
) -> Forecast:
    """What each model has to answer, and the sum. ``batch`` where no study says it."""
    held = {call.key for stage in stages for call in stage.calls} if folder.has_ledger else set()
    if folder.has_ledger:
        with Ledger.open(folder.ledger, create=False) as ledger:
            held -= set(ledger.pending(held))
    found = expected(stages, held, prices, batch=batch if study is None else study.engine.batch)
    lines = []
    for one in found:
        each = ", ".join(f"{what} {n:,}" for what, n in one.stages.items())
        cost = "costs nothing"
        if not costs_nothing(one.model):
            basis = one.rest.basis.rpartition("output tokens: ")[2]
            tokens = f"about {one.rest.tokens:,} input and {one.rest.output_tokens:,} output tokens ({basis})"
            cost = f"{tokens}, {'no price known' if one.rest.cost is None else f'{money(one.rest.cost)} USD'}"
        lines.append(f"{one.model}: {one.planned:,} calls ({each}), {one.already:,} answered already; {cost}")
    # What all models may cost together; not known where that of one is not.
    paid = [one for one in found if one.rest.cost is None or not costs_nothing(one.model)]
    known = [one.rest.cost for one in paid if one.rest.cost is not None]
    whole = f"about {money(sum(known))} USD" if paid else "costs nothing"
    if unpriced := ", ".join(one.model for one in paid if one.rest.cost is None):
        others = f"; the other models: {whole}" if known else ""
        whole = f"cost not known, because there is no price of {unpriced} (--prices FILE){others}"
    planned, already = sum(one.planned for one in found), sum(one.already for one in found)
    lines.append(f"in all {planned:,} calls, {already:,} answered already; the rest: {whole}")
    if any(stage.stand_in for stage in stages):
        lines.append("judges' calls are estimated: their number is known, texts of 300 tokens stand in for the agents'")
    if study is not None and (probe := study.stability.probe) is not None:
        lines.append(f"not counted: {probe.name}, asked only about pairs that the panel leaves open")
    if any(not costs_nothing(one.model) for one in found):
        lines.append(f"input tokens: characters / {CHARACTERS_PER_TOKEN}; prices: {prices.source}")
    return Forecast(tuple(found), (*lines, "dry run: nothing was sent"))


def paid_lines(views: Sequence[PaidView]) -> list[str]:
    """What the replies of a run cost, in lines to print; none where none costs anything."""
    lines = []
    for paid in views:
        known = paid.calls - paid.unpriced
        unknown = f", {paid.unpriced:,} of unknown price" if paid.unpriced else ""
        cost = f"{money(paid.usd)} USD for {known:,} replies{unknown}"
        if not known:
            cost = f"not known, because there is no price of its {paid.calls:,} replies"
        lines.append(f"paid for {paid.model}: {cost}")
    return lines
