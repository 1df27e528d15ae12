"""DeepFund: an SQLite file of runs in which analysts and a manager decide on one ticker at a time, to records."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from assaymark.errors import InputError
from assaymark.importers.read import NAME, Model, Progress, midnight, require, shaped
from assaymark.importers.report import REPLAYED, Imported, Tally, maker_of, replayed, text_missing, week_of
from assaymark.records import (
    Action,
    ActionKind,
    Agent,
    Context,
    Decision,
    Fact,
    Instrument,
    Provenance,
    Rationale,
    content_id,
)

PROVENANCE: Final = Provenance(source="HKUSTDial/DeepFund", licence="MIT")
"""Where the file comes from unless the caller knows more (a commit, another mirror)."""

FILE: Final = "deepfund.db"
_DAY: Final = timedelta(days=1)
_ACTIONS: Final[Mapping[str, ActionKind]] = {"Buy": "buy", "Sell": "sell", "Hold": "hold"}


def _sane(when: datetime) -> datetime:
    if not 1970 <= when.year <= 2200:
        raise ValueError(f"must be a time from 1970 to 2200 (got {when.isoformat()})")
    return when


Time = Annotated[datetime, AfterValidator(_sane)]


class _Row(BaseModel):
    # columns beyond these are listed in the report
    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, protected_namespaces=())


class _Config(_Row):
    id: str
    exp_name: Annotated[str, Field(pattern=NAME)]
    llm_model: Annotated[str, Field(pattern=NAME)]


class _Portfolio(_Row):
    id: str
    config_id: str


class _Signal(_Row):
    portfolio_id: str
    ticker: str
    analyst: str
    signal: str
    justification: str
    llm_prompt: str


class _Decided(_Row):
    id: str
    portfolio_id: str
    updated_at: Time
    trading_date: Time
    ticker: Annotated[str, Field(pattern=NAME)]
    llm_prompt: str
    action: Literal["Buy", "Sell", "Hold"]
    shares: Annotated[int, Field(ge=0, le=10**15)]
    price: Annotated[float, Field(gt=0)]
    justification: str

    @property
    def written(self) -> datetime:
        """When the row was written; SQLite's own clock is UTC and says no zone."""
        return self.updated_at if self.updated_at.tzinfo else self.updated_at.replace(tzinfo=UTC)


_STATED: Final = (
    ("current_price", "price", re.compile(r"^Current Price: (\d+(?:\.\d+)?)$", re.M)),
    ("holding_shares", "count", re.compile(r"^Holding Shares(?: at current)?: (-?\d+(?:\.\d+)?)$", re.M)),
    ("remaining_shares", "count",
     re.compile(r"^Remaining Shares(?: Allowed For Purchases)?: (-?\d+(?:\.\d+)?)$", re.M)),
)  # fmt: skip


def import_deepfund(
    files: Mapping[str, bytes], *, keep_going: bool = False, progress: Progress | None = None,
    provenance: Provenance = PROVENANCE,
) -> Imported:  # fmt: skip
    """DeepFund's decisions, each about one ticker on one trading day, with all prompts that led to it.

    ``files`` is ``deepfund.db``, plain or gzip. Agents are models in an experiment (``MODEL (EXPERIMENT)``); those that
    decided on one ticker for one trading day answered one question, and further decisions of an agent on it are
    replicates in the order in which they were written. The context holds the manager's prompt, then its analysts';
    price and shares are facts where they stand in their fixed lines. The manager's justification is the ``summary``,
    the analysts' are of kind ``stage``. `InputError`: the file is missing or damaged; or, unless ``keep_going``, all
    that is wrong in it.
    """
    tally = Tally()
    name, data = require(files, FILE)
    with closing(sqlite3.connect(":memory:")) as base:
        try:
            base.deserialize(data)
            configs = {one.id: one for _, one in _rows(base, name, "config", _Config, tally)}
            runs = {one.id: one for _, one in _rows(base, name, "portfolio", _Portfolio, tally)}
            signals = [one for _, one in _rows(base, name, "signal", _Signal, tally)]
            decided = _rows(base, name, "decision", _Decided, tally)
        except (sqlite3.Error, OverflowError) as exc:
            hint = "copy it again while its program is stopped"
            raise InputError(name, [f"no readable SQLite file ({exc}); {hint}"]) from None
    made: dict[str, Decision] = {}
    contexts: dict[str, Context] = {}
    asked: Counter[tuple[str, str]] = Counter()
    for done, (place, one) in enumerate(sorted(decided, key=lambda row: (row[1].written, row[0])), start=1):
        run = runs.get(one.portfolio_id)
        config = None if run is None else configs.get(run.config_id)
        if run is None:
            tally.problem(f"{place}, portfolio_id", f"no such portfolio (got {one.portfolio_id!r:.60})")
        elif config is None:
            tally.problem(f"{place}, portfolio_id", f"its portfolio is of no config (got {run.config_id!r:.60})")
        elif one.id in made:
            tally.problem(f"{place}, id", f"stands twice (got {one.id!r:.60})")
        else:
            heard = [got for got in signals if (got.portfolio_id, got.ticker) == (one.portfolio_id, one.ticker)]
            # the end of the trading day, or the writing of the row if that came first
            cutoff = min(one.written, midnight(one.trading_date.date()) + _DAY)
            stated = [(field, unit, pattern.search(one.llm_prompt)) for field, unit, pattern in _STATED]
            for field, _, line in stated:
                if line is None:
                    tally.missing(f"{field} in its fixed line (kept as text)", one.id)
            facts = tuple(
                Fact(id=f"{one.ticker}:{field}", instrument=one.ticker, field=field, unit=unit, value=float(line[1]),
                     available_at=cutoff, as_of=cutoff, source="prompt")
                for field, unit, line in stated if line is not None
            )  # fmt: skip
            prompts = [f"--- prompt of the {got.analyst} analyst ---\n{got.llm_prompt.strip()}" for got in heard]
            context = Context(
                completeness="partial", cutoff=cutoff,
                cutoff_source="the end of trading_date (UTC), or updated_at if that came first",
                prompt="\n\n".join([one.llm_prompt.strip(), *prompts]), facts=facts,
                instruments=(Instrument(id=one.ticker, symbol=one.ticker, asset_class="equity"),),
                missing=("system prompts", "what tools returned beyond the prompts"),
            )  # fmt: skip
            agent = f"{config.llm_model.rsplit('/', 1)[-1]} ({config.exp_name})"
            question = f"{one.trading_date:%Y-%m-%d}/{one.ticker}"
            asked[agent, question] += 1
            nth, own = asked[agent, question], one.justification
            texts = (*((Rationale(text=own, kind="summary"),) if own.strip() else ()), *(
                Rationale(text=f"{got.analyst} analyst ({got.signal}): {got.justification}", kind="stage")
                for got in heard if got.justification.strip()
            ))  # fmt: skip
            contexts[content_id(context)] = context
            made[one.id] = Decision(
                record_id=f"{question}/{agent}" if nth == 1 else f"{question}/{agent}/r{nth}",
                episode_id=question, step=0, cluster=week_of(one.trading_date), decided_at=one.written,
                agent=Agent(id=agent, family=maker_of(config.llm_model) or config.llm_model, model=config.llm_model),
                context_id=content_id(context),
                actions=(Action(instrument=one.ticker, kind=_ACTIONS[one.action], quantity=float(one.shares),
                                price=one.price),),
                rationales=texts, format="deepfund", provenance=replace(provenance, path=f"decision {one.id}"),
                replicate=nth, flags=(REPLAYED,) if one.written - cutoff > _DAY else (), missing=text_missing(texts),
            )  # fmt: skip
        if progress is not None:
            progress("decisions", done, len(decided))
    if not decided and not tally.problems:
        tally.problem(name, "holds no decision: its table decision is empty")
    tally.refuse("deepfund", keep_going)
    for got in signals:
        if not any((got.portfolio_id, got.ticker) == (one.portfolio_id, one.ticker) for _, one in decided):
            tally.no_place("signals of runs that decided nothing on their ticker", f"{got.analyst} {got.ticker}")
    for run_id in runs.keys() - {one.portfolio_id for _, one in decided}:
        tally.no_place("portfolios of runs without a decision", run_id)
    tally.unresolved(made.values(), (), "outcome")
    bad = len(decided) - len(made) + tally.counts.pop("unreadable decision", 0)
    return tally.imported("deepfund", tuple(made.values()), contexts, (), bad, replayed(made.values(), "trading day"))


def _rows(base: sqlite3.Connection, file: str, table: str, kind: type[Model], tally: Tally) -> list[tuple[str, Model]]:
    """The rows of a table with their places; what is wrong with one is noted, and it is left out."""
    held = [row[1] for row in base.execute(f"pragma table_info({table})")]
    if not held:
        tally.problem(file, f"holds no table {table}")
        return []
    if absent := [name for name in kind.model_fields if name not in held]:
        tally.problem(f"{file} {table}", f"no column {', '.join(absent)} (got {', '.join(held)})")
        return []
    found = []
    for number, *cells in base.execute(f"select rowid, * from {table} order by rowid"):
        place = f"{file} {table} row {number}"
        if (row := shaped(kind, dict(zip(held, cells, strict=True)), place, tally)) is None:
            tally.counts[f"unreadable {table}"] += 1
        else:
            found.append((place, row))
    if found and (extra := sorted({*held} - {*kind.model_fields, "id"})):
        tally.no_place(f"{', '.join(extra)} of {table}", found[0][0], len(found))
    return found
