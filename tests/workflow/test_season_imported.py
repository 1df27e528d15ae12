"""Seasons of imported records: locked, with the tables of any other season, up to a site."""

# ruff: noqa: I001

from __future__ import annotations

import html
import importlib.util
import re
import shutil
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import made_aitrader as made
import made_capitalbench as capitalbench
import pytest
from season_runs import begun, panel, season_text, table_bytes

from assaymark.claims import catalogue
from assaymark.cli import main, models
from assaymark.errors import InputError, LedgerError, PlanError
from assaymark.importers import import_aitrader
from assaymark.workflow import RunFolder, Store
from assaymark.workflow import import_files as import_records
from assaymark.workflow import tracks

NOW = datetime(2026, 4, 1, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[2]


def text(track: str = "cn-hourly", head: str = "", market: str = "", tail: str = "") -> str:
    """A season file for the made-up log."""
    source = f'source = "records"\nformat = "aitrader"\ntrack = "{track}"'
    return f'name = "log"\n{head}\n[market]\n{source}\n{market}\n{tail}\n'


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run folder with the made-up log: three hours of two agents, and a day of crypto."""
    return imported(tmp_path, *made.honest(), made.crypto())


def written(log: Path, files: dict[str, bytes]) -> Path:
    """The files of a log in a folder."""
    log.mkdir(parents=True)
    for name, data in files.items():
        (log / name).write_bytes(data)
    return log


def imported(path: Path, *lines: dict[str, object]) -> RunFolder:
    import_records("aitrader", written(path / "log", made.files(*lines)), RunFolder(path / "run"))
    return RunFolder(path / "run")


def locked(folder: RunFolder, given: str | None = None) -> tracks.LockedSeason:
    return tracks.lock_season(folder, given or text(), "log.toml", models(), now=NOW)


def test_plan_tables_and_steps_hold_what_the_log_states(run, refused):
    season, store = locked(run).season, Store(run)
    assert (season.capital, season.currency, season.recorded) == (100_000.0, "CNY", True)
    assert season.universe == ("600036.SH", "601318.SH")
    assert str(season.calendar.first) == str(season.calendar.last) == "2025-10-09"
    assert [(one.name, one.family, one.model) for one in season.agents] == [
        ("claude-3.7-sonnet", "anthropic", "records/claude-3.7-sonnet"), ("gpt-5", "openai", "records/gpt-5"),
    ]  # fmt: skip
    named = import_aitrader(made.files(made.line(model="qwen3-max-astock-hour"))).decisions[0]
    assert named.agent.family == "alibaba"
    assert [(one.agent, one.symbol, one.quantity, one.price, one.cost) for one in store.read(tracks.FILLS)] == [
        ("gpt-5", "600036.SH", 1000.0, 40.0, 0.0), ("gpt-5", "600036.SH", -500.0, 40.5, 0.0),
        ("gpt-5", "601318.SH", 100.0, 54.5, 0.0),
    ]  # fmt: skip
    assert {one.agent: (one.nav, one.positions) for one in store.read(tracks.NAVS)} == {
        "gpt-5": (74800.0 + 500 * 41.5 + 100 * 55.5, {"600036.SH": 500.0, "601318.SH": 100.0}),
        "claude-3.7-sonnet": (100_000.0, {}),
    }
    equal, cash = sorted(store.read(tracks.BASELINES), key=lambda one: one.agent, reverse=True)
    assert (equal.agent, cash.agent) == ("equal weight", "cash")
    assert equal.nav == pytest.approx(50_000 / 40 * 41.5 + 50_000 / 55 * 55.5)
    assert (store.read(tracks.REJECTIONS), [one.seconds for one in store.read(tracks.TIMES)]) == ([], [None] * 5)
    assert all(one.checks == one.passed for one in store.read(tracks.CHECKS))
    material = tracks.season_material(run)
    steps = material.steps["gpt-5"]
    assert [(one.day, one.book.cash, len(one.fills)) for one in steps] == [
        ("2025-10-09", 60000.0, 1), ("2025-10-09", 74800.0, 2), ("2025-10-09", 74800.0, 0),
    ]  # fmt: skip
    assert {one.nav for one in steps} == {material.navs["gpt-5"][0].nav}, "the book of the day itself"
    assert material.partial
    assert {one.record_id.split("/")[0] for one in material.outcomes} == {"cn-hourly"}
    # trades that are taken back are counted over days, not over the steps of a day
    one = {one.id: one for one in tracks.agent_measurements(material, [])}["season.thrash[agent=gpt-5]"]
    assert (one.value, one.n, one.n_of, one.detail["by_symbol"]) == (1.0, 1, "days", {"600036.SH": 1})
    before = {path.name: path.read_bytes() for path in run.tables.iterdir()}  # a second lock changes nothing
    assert locked(run).plan_hash == tracks.open_season(run).plan_hash == material.plan_hash
    assert {path.name: path.read_bytes() for path in run.tables.iterdir()} == before
    with pytest.raises(PlanError, match="differs from the season locked"):
        locked(run, text("crypto"))
    for verb in ("step", "run"):  # it is judged and not run
        (said,) = refused("season", verb, run.path).splitlines()
        assert "was run elsewhere; use: assaymark season judge" in said
    # A day without a stated book shows none, whatever a later day states.
    days = [replace(one, state="not stated") for one in store.read(tracks.NAVS)]
    later = [replace(one, day="2025-10-10", state="ok") for one in days]
    for stated, shown in ((days + later, None), ([replace(one, state="ok", nav=7.0) for one in days] + later, 7.0)):
        store.write(tracks.NAVS, stated, basis := {"made": str(shown)})
        assert store.done(tracks.NAVS, basis)
        assert {one.nav for one in tracks.season_material(run).steps["gpt-5"]} == {shown}


def test_every_mismatch_of_the_audit_stands_in_the_checks(tmp_path):
    run = imported(tmp_path, *false_cash())
    locked(run)
    found = [(one.agent, one.kind, one.passed, one.checks, one.mismatches) for one in Store(run).read(tracks.CHECKS)]
    assert [one for one in found if one[4]] == [
        ("gpt-5", "cash", 1, 3, (
            "cn-hourly/2025-10-09T11:30/gpt-5\tcash: stated 74000, recomputed 74800, outside the bar",
            "cn-hourly/2025-10-09T14:00/gpt-5\tcash: stated 74800, recomputed 74000",
        ))
    ]  # fmt: skip


def false_cash() -> list[dict]:
    """The log with one amount of cash that does not follow."""
    lines = made.honest()
    lines[1]["positions_after"] = {**lines[1]["positions_after"], "CASH": 74000.0}
    return lines


def test_a_file_may_name_some_agents_and_other_families(run):
    season = locked(run, text(tail='[[agents]]\nname = "gpt-5"\nfamily = "another"')).season
    assert [(one.name, one.family) for one in season.agents] == [("gpt-5", "another")]
    for table in (tracks.NAVS, tracks.TIMES):
        assert {one.agent for one in Store(run).read(table)} == {"gpt-5"}
    material = tracks.season_material(run)
    assert (list(material.steps), material.agents[0].family) == (["gpt-5"], "another")


def test_records_and_file_cannot_change_after_the_lock(run, tmp_path):
    locked(run)
    other = written(tmp_path / "other", made.files(*made.honest()))
    with pytest.raises(PlanError, match="locked on other records"):
        import_records("aitrader", other, run)
    folder = begun(tmp_path / "played", season_text(last="2024-03-05"), models())  # nor do those of a season run here
    tracks.run_season(folder, models(), now=NOW)
    before = table_bytes(folder)
    with pytest.raises(PlanError, match="locked on other records; import these into a new run folder"):
        import_records("aitrader", other, folder)
    assert table_bytes(folder) == before
    import_records("aitrader", tmp_path / "log", run)
    run.plan.write_text(run.plan.read_text().replace('"log"', '"other"'))
    with pytest.raises(PlanError, match="was edited after the lock"):
        tracks.open_season(run)


def test_everything_wrong_is_said_at_once_and_nothing_is_written(run):
    before = sorted(path.name for path in run.tables.iterdir())
    wrong = text(
        "nowhere", head='capital = 5.0\nscoring = "v9"',
        tail='[[agents]]\nname = "gpt-6"\nmodel = "a/b"\n[[agents]]\nname = "gpt-7"',
    )  # fmt: skip
    with pytest.raises(InputError) as found:
        locked(run, wrong)
    for words in ("capital: follows from the records; leave it out", "scoring: ", "agents.0.model: unknown key",
                  "market.track: must be one of cn-hourly, crypto (got 'nowhere')",
                  "agents: unknown agent 'gpt-7'. Did you mean 'gpt-5'? Known: claude-3.7-sonnet, gpt-5"):  # fmt: skip
        assert words in str(found.value)
    assert (sorted(path.name for path in run.tables.iterdir()), run.lock.exists()) == (before, False)


@pytest.mark.parametrize(
    ("market", "words"),
    [
        ('format = "capitalbench"', r"market.format: the records of .* are of aitrader \(got 'capitalbench'\)"),
        ('format = "aitradr"', "unknown format 'aitradr'. Did you mean 'aitrader'"),
        ("", "format: which importer made the records"),
        ('format = "aitrader"', r"market.track: must be one of cn-hourly, crypto \(got ''\)"),
        ('format = "aitrader"\ntrack = "crypto"\nlive = true', "live needs a source that grows; the records are"),
        (
            'format = "aitrader"\ntrack = "cn-hourly"\nexclude_flags = ["replayed"]',
            r"market.exclude_flags: leave no record \(got clock-conflict, replayed\)",
        ),
    ],
)
def test_the_records_that_a_file_names_must_be_there(run, market, words):
    with pytest.raises(InputError, match=words):
        locked(run, f'name = "log"\n[market]\nsource = "records"\n{market}')


def test_what_is_no_record_is_no_season_and_models_that_nobody_provides_are_named_with_the_rest(run, tmp_path):
    with pytest.raises(InputError, match="contains no imported records; import them with: assaymark import aitrader"):
        locked(RunFolder(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    with pytest.raises(InputError, match="format, track and exclude_flags go with source"):
        locked(run, text().replace('"records"', '"synthetic"'))
    panel = '[[panel]]\nname = "reader"\nfamily = "north"\nmodel = "reference/season-readr"'
    with pytest.raises(InputError, match=r"(?s)panel.reader.model: unknown model.*market.track: must be one") as found:
        locked(run, text("nowhere", tail=panel))
    assert len(found.value.problems) == 2


def test_the_lock_says_what_too_short_a_log_can_never_say(run, tmp_path, ran):
    (tmp_path / "log.toml").write_text(text())
    said = ran("season", "init", tmp_path / "log.toml", "--out", run.path)
    assert "log: 2 agents, 2 instruments, 2025-10-09 to 2025-10-09" in said
    assert "1 week: this season cannot rank agents" in said
    assert "there is no panel ([[panel]]): this season can be neither graded nor published" in said
    assert f"next: assaymark season judge {run.path}" in said
    assert tracks.open_season(run).preflight[0].startswith("1 week: ")


def notes_of(run: RunFolder) -> list[str]:
    return [one.key for one in tracks.record_notes(tracks.season_material(run))]


def test_what_records_lack_is_said_and_a_book_that_is_not_stated_is_carried_on(tmp_path):
    lines = made.honest()
    lines[2]["positions_after"] = None
    run = imported(tmp_path, *lines, made.crypto())
    locked(run)
    nav = next(one for one in Store(run).read(tracks.NAVS) if one.agent == "gpt-5")
    assert (nav.state, nav.cash) == ("not stated", 74800.0)
    names = ("not_ours", "replayed", "valued", "not_stated", "reconciled")
    assert notes_of(run) == [f"note.records.{name}" for name in names]
    material, words = tracks.season_material(run), catalogue("en")
    assert tracks.stated_book(material.steps["gpt-5"][-1].decision) is None
    assert [one.key for one in tracks.gates_of(material).hindsight] == ["note.records.replayed"]
    said = [words.render(one) for one in tracks.record_notes(material)]
    assert said[1].startswith("5 of 5 decisions were written down more than a day after their steps.")
    assert said[3].startswith("After 1 of 5 steps the records state no book.")


def test_records_with_a_flag_are_left_out_and_counted(tmp_path):
    lines = made.honest()
    lines[1]["rationale"] = "<think>Sell.</think> I sold.\n<FINISH_SIGNAL>"
    run = imported(tmp_path, *lines)
    found = locked(run, text(market='exclude_flags = ["think-block"]'))
    assert found.preflight[-1] == "1 of 5 records are left out for their flags (market.exclude_flags)"
    assert len(tracks.season_material(run).steps["gpt-5"]) == 2
    assert sorted({one.record_id for one in Store(run).read(tracks.FILLS)}) == ["cn-hourly/2025-10-09T10:30/gpt-5"]


ROUNDS = 'name = "rounds"\n[market]\nsource = "records"\nformat = "capitalbench"'


def rounds(path: Path, *records: dict[str, object]) -> RunFolder:
    """A run folder with made-up allocation rounds."""
    named = dict.fromkeys(str(one["round_id"]) for one in records)
    files = capitalbench.packed([capitalbench.context(one) for one in named], list(records))
    path.mkdir(exist_ok=True)
    import_records("capitalbench", written(path / "rounds", files), RunFolder(path / "run"))
    return RunFolder(path / "run")


def test_records_without_books_are_a_season_of_decisions_alone(tmp_path):
    run = rounds(tmp_path, capitalbench.record(), capitalbench.record(agent="other-two"))
    with pytest.raises(InputError, match="records of capitalbench are one track; leave it out"):
        locked(run, f'{ROUNDS}\ntrack = "us"')
    season = locked(run, ROUNDS).season
    store = Store(run)
    assert [
        store.read(table) for table in (tracks.FILLS, tracks.REJECTIONS, tracks.NAVS, tracks.BASELINES, tracks.CHECKS)
    ] == [[]] * 5
    assert [one.seconds for one in store.read(tracks.TIMES)] == [20.5, 20.5]
    material = tracks.season_material(run)
    steps = [step for ones in material.steps.values() for step in ones]
    assert {step.book for step in steps} == {None}
    assert {action.instrument for step in steps for action in step.decision.actions} < set(season.universe)
    assert notes_of(run) == ["note.records.not_ours", "note.records.no_books", "note.records.unchecked"]


def test_a_call_from_before_its_material_is_no_record_and_two_of_one_moment_have_no_order(tmp_path):
    early = capitalbench.record(agent="other-two", call={"started_at_utc": "2026-05-01T07:05:03+00:00"})
    run = rounds(tmp_path, capitalbench.record(), early)
    found = locked(run, ROUNDS)
    assert [one.name for one in found.season.agents] == ["acme-one"]
    with pytest.raises(InputError, match="unknown agent 'other-two'"):
        locked(run, f'{ROUNDS}\n[[agents]]\nname = "other-two"')
    run = rounds(tmp_path / "two", capitalbench.record(), capitalbench.record(round_id="CB-2026-05-17-1M"))
    with pytest.raises(InputError, match=r"agents.acme-one: decided twice at one moment .*a record needs an order"):
        locked(run, ROUNDS)


def test_the_books_come_from_the_files_that_were_imported_last(tmp_path):
    run = imported(tmp_path, made.line(), made.crypto())
    import_records("aitrader", written(tmp_path / "again", made.files(*made.honest(), packed=True)), run)
    locked(run)
    assert len(Store(run).read(tracks.FILLS)) == 3
    other = imported(tmp_path / "log", *made.honest())
    import_records("aitrader", tmp_path / "log" / "log", other)
    import_records("aitrader", tmp_path / "log", other)  # the log of one step, whose files are now the last
    import_records("aitrader", tmp_path / "log" / "log", other)
    with pytest.raises(LedgerError, match="source files are of another import than its decisions"):
        locked(other)


MAP = """
[files]
decisions = "decisions.csv"
[provenance]
source = "mine"
[columns]
episode = "round"
decided_at = "time"
agent = "agent"
family = "maker"
context = "round"
prompt = "prompt"
instrument = "ticker"
action = "order"
weight = "size"
replicate = "rep"
[rationales]
summary = ["thesis"]
"""
ROWS = """round,time,agent,maker,prompt,ticker,order,size,thesis,rep
r1,2026-05-01T13:30:00Z,alpha,acme,A or B?,A,buy,0.4,A grew 4 percent.,1
r1,2026-05-01T13:30:00Z,alpha,acme,A or B?,B,buy,0.2,B is cheap.,2
r2,2026-05-08T13:30:00Z,alpha,acme,A or B?,A,hold,0.4,Nothing new.,1
r2,2026-05-08T13:30:00Z,alpha,acme,A or B?,A,sell,0.1,I take some off.,2
"""


def test_replicates_of_records_are_those_of_the_season(tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    (log / "map.toml").write_text(MAP)
    (log / "decisions.csv").write_text(ROWS)
    run = RunFolder(tmp_path / "run")
    import_records("generic", log, run)
    season = locked(run, 'name = "mine"\n[market]\nsource = "records"\nformat = "generic"').season
    assert (season.replicates, season.universe) == (2, ("A", "B"))
    material = tracks.season_material(run)
    assert [one.decision.replicate for one in material.steps["alpha"]] == [1, 1]
    assert {key: len(steps) for key, steps in material.replicates.items()} == {("alpha", 1): 2, ("alpha", 2): 2}


# From an import to a site


def published(path: Path, files: dict[str, bytes], kind: str, market: str) -> dict[str, str]:
    """The pages of a season of some records, as plain text by name."""
    log, run, site, season = written(path / "log", files), path / "run", path / "site", path / "season.toml"
    judges = panel("auditor", "reader", "allocator")
    season.write_text(f'name = "log"\n[market]\nsource = "records"\nformat = "{kind}"\n{market}{judges}')
    for words in (("import", kind, log, "--out", run), ("season", "init", season, "--out", run),
                  ("season", "judge", run), ("season", "publish", run, "--out", site)):  # fmt: skip
        assert main([str(word) for word in words]) == 0
    return {str(one.relative_to(site)): plain(one.read_text(encoding="utf-8")) for one in sorted(site.rglob("*.html"))}


def plain(page: str) -> str:
    body = re.sub(r"(?s)<(style|script)[ >].*?</\1>", "", page)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("log")


@pytest.fixture(scope="module")
def log(folder):
    return published(folder, made.files(*false_cash()), "aitrader", 'track = "cn-hourly"')


@pytest.fixture(scope="module")
def shown_rounds(tmp_path_factory):
    records = [capitalbench.record(outcome=capitalbench.RESOLVED), capitalbench.record(agent="other-two")]
    files = capitalbench.packed([capitalbench.context()], records)
    return published(tmp_path_factory.mktemp("rounds"), files, "capitalbench", "")


def test_pages_say_whose_season_it_is_and_what_its_records_lack(log):
    for page, words in (
        ("index", "Two agents, instructions that are not recorded, 2 instruments, 100,000 CNY each, one day"),
        ("index", "Not run here. The records come from: HKUDS/AI-Trader"),
        ("index", "5 of 5 decisions were written down more than a day after their steps."),
        ("index", "2 of 10 stated fills, positions and amounts of cash do not follow from the others."),
        ("index", "No time was measured for claude-3.7-sonnet and gpt-5"),
        ("index", "none of their statements can be called contradicted"), ("index", "Equal weight"),
        ("claims", "cannot be compared with"),  # each by name among all claims
        ("de/index", "Diese Saison hat jemand anderes gespielt."), ("rules", "capital 100000"),
        ("agents/gpt-5", "Cash: stated 74000, recomputed 74800, which no price of the step explains."),
        ("agents/gpt-5", "Cash: stated 74800, recomputed 74000."), ("agents/gpt-5", "Family openai, model gpt-5."),
        ("agents/gpt-5", "75.0 of 100: of 8 checks of fills, cash and positions, 2 do not reconcile."),
    ):  # fmt: skip
        assert words in log[f"{page}.html"]
    assert "recomputed" not in log["agents/claude-3.7-sonnet.html"]
    # what holds of every agent is said once, in a season that is too short to compare any two of them
    assert log["index.html"].count("too few common periods") == 1
    assert log["de/index.html"].count("zu wenige gemeinsame") == 1


def test_records_without_books_have_no_return_and_no_rule_that_was_not_theirs(log, shown_rounds):
    page, own = shown_rounds["index.html"], shown_rounds["agents/acme-one.html"]
    assert "no capital recorded" in page
    assert page.count("no book") == 4  # return and drawdown of two agents
    assert "The records state neither fills nor books." in page
    assert "Equal weight" not in page
    for words in (
        "no fill is recorded", "No net asset value is recorded for this agent.", "nothing could be checked",
        "Not all that the agent saw is kept: a number that is not found was not shown to be wrong.",
    ):  # fmt: skip
        assert words in own
    assert "kein Kapital aufgezeichnet" in shown_rounds["de/index.html"]
    assert "capital 1" not in shown_rounds["rules.html"]
    for pages in (log, shown_rounds):
        assert "cost_bps" not in pages["rules.html"]
        assert "The season file holds no prompt and no strategies." in pages["rules.html"]
        english = {name for name in pages if not name.startswith("de/")}
        assert {f"de/{name}" for name in english} == set(pages) - english


@pytest.mark.usefixtures("log")
def test_the_worked_result_is_made_from_run_folders_alone(folder):
    spec = importlib.util.spec_from_file_location("aitrader_table", ROOT / "docs" / "aitrader_table.py")
    table = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = table  # dataclasses look their module up there
    spec.loader.exec_module(table)
    page = table.aitrader([folder / "run"])
    for row in ("| cn-hourly | 2 | 2 | 5 | 1 | 2025-10-09 to 2025-10-09 | 5 |", "| gpt-5 | 101,100.00 | +1.1 % |",
                "| cn-hourly | 0 | 2 | 0 | 1 |",
                "Every fill that does not follow from the rest of its log (0):"):  # fmt: skip
        assert row in page
    assert "nan" not in page.lower().replace("finance", "")


# The real logs: every track of AI-Trader and all of CapitalBench can be locked, shown and blinded

# track: (agents, decisions, weeks, days, statements that do not follow)
TRACKS = {
    "us": (6, 348, 6, 28, 189), "cn-hourly": (7, 840, 7, 30, 0), "cn-daily": (7, 210, 7, 30, 0),
    "crypto": (6, 84, 3, 14, 30),
}  # fmt: skip


@pytest.fixture(scope="module")
def logs(shared, own_copy) -> Path:
    """Every log of AI-Trader, imported. Not to be changed."""

    def build(folder: Path) -> None:
        import_records("aitrader", shared / "data" / "aitrader", RunFolder(folder / "run"))

    return own_copy("aitrader-logs", build) / "run"


def real(path: Path, study: str) -> tuple[tracks.SeasonMaterial, list, set[str]]:
    """Return a season of real records, its steps, and the names that blinding keeps in whole records."""
    locked(RunFolder(path), (ROOT / "studies" / f"{study}.toml").read_text(encoding="utf-8"))
    found = tracks.season_material(RunFolder(path))
    horizons = {name: found.horizon(name, steps) for name, steps in found.steps.items()}
    assert {name: len(one.steps) for name, one in horizons.items()} == {n: len(s) for n, s in found.steps.items()}
    kept = {line.name for one in horizons.values() for line in one.audit if line.state == "kept"}
    return found, [step for steps in found.steps.values() for step in steps], kept


@pytest.mark.shared
@pytest.mark.parametrize("track", TRACKS)
def test_a_track_is_a_season(logs, tmp_path, track):
    shutil.copytree(logs, tmp_path / "run")
    found, steps, kept = real(tmp_path / "run", f"aitrader-{track}")
    assert kept <= {"Google"}
    agents, decisions, weeks, days, off = TRACKS[track]
    assert (len(found.steps), len(steps), len({step.decision.cluster for step in steps})) == (agents, decisions, weeks)
    assert {len(books) for books in found.baselines.values()} == {days}
    assert {len(books) for books in found.navs.values()} <= {days, days - 1}
    assert sum(one.checks - one.passed for one in found.checks) == off
    assert ({step.seconds for step in steps}, found.partial) == ({None}, True)
    assert sum(step.book is None for step in steps) == (2 if track == "cn-daily" else 0)
    keys, late = {one.key for one in tracks.record_notes(found)}, track.startswith("cn")
    assert ("note.records.replayed" in keys, "note.records.undated" in keys) == (late, not late)


@pytest.mark.shared
def test_capitalbench_is_a_season_without_books(shared, tmp_path):
    import_records("capitalbench", shared / "data" / "capitalbench", RunFolder(tmp_path / "run"))
    found, steps, _ = real(tmp_path / "run", "capitalbench-season")
    assert (len(found.steps), len(steps), found.baselines, found.checks) == (10, 709, {}, ())
    assert not any(found.navs.values())
    assert all(step.seconds for step in steps)
    assert {one.key for one in tracks.record_notes(found)} >= {"note.records.no_books", "note.records.unchecked"}
