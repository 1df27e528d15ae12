"""Seasons: replay without and with model time, prompts of judges of a long record, and the site of many agents.

Run ``just bench``. Seconds are of this machine; the best of some runs, since its disk may be busy with something else.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from made_season import made_catalogue, made_season

from assaymark.cli import models
from assaymark.engine import CallSpec, Model, Reply
from assaymark.judging import horizon_tasks, load_scoring
from assaymark.protocol import JudgeSpec
from assaymark.records import canonical_json
from assaymark.report.season import write_site
from assaymark.workflow import RunFolder, Store
from assaymark.workflow.tracks import season_material
from assaymark.workflow.tracks.season_day import run_season
from assaymark.workflow.tracks.season_lock import lock_season
from assaymark.workflow.tracks.season_records import NAVS

Note = Callable[[str, str, str, str], None]

AGENTS = ("contrarian", "equal-weight", "minimum-variance", "momentum", "steward")
DAYS, INSTRUMENTS = 250, 100
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def season_text() -> str:
    """The five reference agents, a hundred instruments and 250 trading days."""
    agents = "".join(f'[[agents]]\nname = "{one}"\nfamily = "bench"\nmodel = "reference/{one}"\n' for one in AGENTS)
    return f"""
name = "bench"
prompt = "Grow the book over the season. Say what you saw and why you act."
universe = {INSTRUMENTS}
[calendar]
first = 2024-01-02
last = 2024-12-16
{agents}"""


class Stub:
    """Stands in for a reference agent and answers at once: a unit of one instrument after the other, with a reason."""

    def __init__(self, universe: tuple[str, ...], start: int) -> None:
        self.replies = [json.dumps({"orders": [order(one)], "rationale": reason(one)}) for one in universe]
        self.asked = start  # each agent buys something else, so that each has a book and a context of its own

    async def complete(self, call: CallSpec) -> Reply:
        self.asked += 1
        return Reply(text=self.replies[self.asked % len(self.replies)], model=call.model)


def order(instrument: str) -> Mapping[str, object]:
    return {"instrument": instrument, "side": "buy", "quantity": 1.0}


def reason(instrument: str) -> str:
    return f"{instrument} rose 3.1 % in a week, and one unit more leaves the book as spread as it was."


def replay(path: Path, who: Callable[[tuple[str, ...]], Mapping[str, Model]]) -> tuple[RunFolder, float]:
    """A season replayed in a new folder, and the seconds from the lock to its tables."""
    folder = RunFolder(path)
    locked = lock_season(folder, season_text(), "bench", now=NOW)
    answering = who(locked.data.universe)
    started = time.perf_counter()
    done = run_season(folder, answering, now=NOW)
    seconds = time.perf_counter() - started
    assert len(done.done) == DAYS
    return folder, seconds


def again(folder: RunFolder) -> float:
    """The seconds of the same replay once more, with every reply in the ledger: no model is asked."""
    for made in ("season", "tables"):
        shutil.rmtree(folder.path / made)
    started = time.perf_counter()
    run_season(folder, {f"reference/{one}": Silent() for one in AGENTS}, now=NOW)
    return time.perf_counter() - started


class Silent:
    """A model that must not be asked."""

    async def complete(self, call: CallSpec) -> Reply:
        raise AssertionError(f"asked {call.model}")


def stubs(universe: tuple[str, ...]) -> Mapping[str, Model]:
    return {f"reference/{one}": Stub(universe, 20 * at) for at, one in enumerate(AGENTS)}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, float]:
    """The season with stub models, and the best of three times."""
    path = tmp_path_factory.mktemp("stub")
    found = [replay(path / str(number), stubs) for number in range(3)]
    return found[0][0], min(seconds for _, seconds in found)


def test_replay(tmp_path: Path, played: tuple[RunFolder, float], note: Note) -> None:
    what = f"season of {len(AGENTS)} agents, {DAYS} days and {INSTRUMENTS} instruments replayed, to its tables"
    folder, seconds = played
    assert Store(folder).rows(NAVS) == DAYS * len(AGENTS)
    without = min(again(folder) for _ in range(3))
    note(what, "without model time: every reply is in the ledger already", f"{without:.1f} s", "< 5 s")
    note(what, "models that answer at once, every reply written to the ledger", f"{seconds:.1f} s", "none set")
    contexts = Store(folder).contexts().values()
    assert len(contexts) > DAYS * (len(AGENTS) - 1)
    started = time.perf_counter()
    for one in contexts:
        canonical_json(one)
    plain = time.perf_counter() - started
    against = f"its {len(contexts):,} contexts as JSON, record by record, and nothing else"
    note(what, against, f"{plain / without:.1f} x ({without:.1f} s against {plain:.1f} s)", "none set")
    _, whole = replay(tmp_path / "run", lambda _: models())
    note(what, "the reference agents, which read their prompts", f"{whole:.1f} s", "none set")
    assert without < 5


def test_prompts(played: tuple[RunFolder, float], note: Note) -> None:
    material = season_material(played[0])
    plan = load_scoring("v0.4")
    judges = [JudgeSpec(name=f"judge-{n}", model=f"stub/judge-{n}", family=f"family-{n}") for n in range(3)]
    started = time.perf_counter()
    horizons = {name: material.horizon(name, steps) for name, steps in material.steps.items()}
    made = (time.perf_counter() - started) / len(horizons)
    started = time.perf_counter()
    tasks = horizon_tasks(horizons, judges, plan, budget=2_000_000)
    calls = [task.next_call() for task in tasks]
    each = (time.perf_counter() - started) / len(calls)
    first = calls[0]
    assert first is not None
    assert first.about.of == 1
    size = sum(len(text.text) for message in first.call.messages for text in message.parts) / 1e6
    what = f"a record of {DAYS} days as a prompt of {size:.1f} MB"
    note(what, f"for each of {len(judges)} judges", f"{each * 1e3:.0f} ms", "< 50 ms")
    note(what, "blinding and market lines before it, once for all judges", f"{made * 1e3:.0f} ms", "none set")
    assert each < 0.05


def test_site(tmp_path: Path, note: Note) -> None:
    run = made_season(50, DAYS)
    started = time.perf_counter()
    pages = write_site(run, tmp_path / "site", [made_catalogue("en"), made_catalogue("de")])
    seconds = time.perf_counter() - started
    sizes = [page.stat().st_size for page in pages if page.suffix == ".html"]
    what = f"the site of a season of 50 agents and {DAYS} days in two languages: {len(sizes):,} pages"
    note(what, "wall clock", f"{seconds:.1f} s", "< 20 s")
    note(what, "the largest page", f"{max(sizes) / 1024:,.0f} kB", "< 1,000 kB")
    note(what, "all of it", f"{sum(sizes) / 2**20:,.0f} MB", "none set")
    assert seconds < 20
    assert max(sizes) < 1_000_000
