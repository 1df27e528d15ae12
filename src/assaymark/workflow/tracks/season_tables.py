"""The tables of a season, made from its journal: what judges, audits and pages read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from assaymark.records import Context, Portfolio, canonical_json, parse
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import CONTEXTS, DECISIONS, OUTCOMES, Store, texts_array
from assaymark.workflow.tracks.season_books import baseline_rows, check_rows, outcomes_of, read_decision
from assaymark.workflow.tracks.season_context import context_json, limits_of
from assaymark.workflow.tracks.season_plan import Season
from assaymark.workflow.tracks.season_record_tables import (
    BASELINES,
    CHECKS,
    FILLS,
    NAVS,
    REJECTIONS,
    TIMES,
    SeasonFill,
    SeasonNav,
    SeasonRejection,
    SeasonTime,
)

if TYPE_CHECKING:
    from assaymark.workflow.tracks.season_day import Entry
    from assaymark.workflow.tracks.season_lock import LockedSeason


def write_tables(folder: RunFolder, locked: LockedSeason, entries: Sequence[Entry], digest: str) -> None:
    """Write what the journal holds as tables; equal journals make equal bytes, `TIMES` apart."""
    store = Store(folder)
    basis: dict[str, str | None] = {"plan": locked.plan_hash, "journal": digest}
    if store.done(NAVS, basis):
        return
    store.write_arrow(CONTEXTS, _contexts(locked.season, entries), basis)
    store.write(DECISIONS, (read_decision(one) for entry in entries for one in entry.record["decisions"]), basis)
    store.write(FILLS, (SeasonFill(**one) for one in _all(entries, "fills")), basis)
    store.write(REJECTIONS, (SeasonRejection(**one) for one in _all(entries, "rejections")), basis)
    store.write(TIMES, times_of(entries), basis)
    store.write(OUTCOMES, outcomes_of(locked.season, entries), basis)
    store.write(BASELINES, baseline_rows(entries), basis)
    store.write(CHECKS, check_rows(entries), basis)
    store.write(NAVS, _navs(entries), basis)  # last: whoever finds it done finds the others done


def _all(entries: Sequence[Entry], name: str) -> Iterator[dict[str, Any]]:
    for entry in entries:
        for agent in entry.record["agents"].values():
            yield from agent[name]


def _navs(entries: Sequence[Entry]) -> Iterator[SeasonNav]:
    for entry in entries:
        for agent in entry.record["agents"].values():
            yield parse(SeasonNav, canonical_json(agent["nav"]), source="journal of the season")


def times_of(entries: Sequence[Entry]) -> Iterator[SeasonTime]:
    """The measured seconds of each decision."""
    for entry in entries:
        times = entry.times or {}
        for one in entry.record["decisions"]:
            name = one["record_id"]
            yield SeasonTime(
                record_id=name, day=entry.day, agent=one["agent"]["id"], replicate=one["replicate"],
                seconds=times.get(name),
            )  # fmt: skip


def _contexts(season: Season, entries: Iterable[Entry]) -> pa.Table:
    """The contexts as `CONTEXTS.to_arrow` would write them, from JSON that is there already."""
    limits, found = limits_of(season), {}
    for entry in entries:
        cutoff = datetime.fromisoformat(entry.record["moment"].replace("Z", "+00:00"))
        facts = entry.facts.count('"available_at":')
        for agent in entry.record["agents"].values():
            if agent["context_id"] is not None:
                nav = agent["nav"]
                context = Context(
                    completeness="complete",
                    cutoff=cutoff,
                    cutoff_source="the season's clock",
                    prompt=agent["prompt"],
                    portfolio=Portfolio(
                        currency=season.currency, cash=nav["cash"], nav=nav["nav"], positions=nav["positions"]
                    ),
                    constraints=limits,
                    missing=tuple(entry.record["missing"]),
                )
                raw = context_json(context, entry.facts, entry.series, entry.instruments).encode(
                    "utf-8", "surrogatepass"
                )
                found[raw] = (agent["context_id"], cutoff, facts, entry.record["missing"])
    rows = sorted(found)
    about = [found[raw] for raw in rows]
    columns = {
        "context_id": [one[0] for one in about],
        "completeness": ["complete"] * len(rows),
        "cutoff": [one[1] for one in about],
        "facts": [one[2] for one in about],
        "missing": [one[3] for one in about],
    }
    arrays = [pa.array(columns[name], type=kind) for name, (kind, _) in CONTEXTS.columns.items()]
    return pa.Table.from_arrays([*arrays, texts_array(rows)], schema=CONTEXTS.schema)
