"""Seasons that somebody else ran, from an import to a site."""

from __future__ import annotations

import html
import importlib.util
import re
import sys
from pathlib import Path

import made_aitrader as made
import made_capitalbench as capitalbench
import pytest

from assaymark.cli import main

PANEL = "".join(
    f'\n[[panel]]\nname = "{name}"\nfamily = "{name}"\nmodel = "reference/season-{name}"\n'
    for name in ("auditor", "reader", "allocator")
)


def published(path: Path, files: dict[str, bytes], format: str, market: str) -> dict[str, str]:
    """The pages of a season of some records, as plain text by name."""
    log, run, site = path / "log", path / "run", path / "site"
    log.mkdir()
    for name, data in files.items():
        (log / name).write_bytes(data)
    season = path / "season.toml"
    season.write_text(f'name = "log"\n[market]\nsource = "records"\nformat = "{format}"\n{market}{PANEL}')
    assert main(["import", format, str(log), "--out", str(run)]) == 0
    assert main(["season", "init", str(season), "--out", str(run)]) == 0
    assert main(["season", "judge", str(run)]) == 0
    assert main(["season", "publish", str(run), "--out", str(site)]) == 0
    return {str(one.relative_to(site)): plain(one.read_text(encoding="utf-8")) for one in sorted(site.rglob("*.html"))}


def plain(page: str) -> str:
    body = re.sub(r"(?s)<(style|script)[ >].*?</\1>", "", page)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("log")


@pytest.fixture(scope="module")
def log(folder):
    lines = made.honest()
    lines[1]["positions_after"]["CASH"] = 74000.0
    return published(folder, made.files(*lines), "aitrader", 'track = "cn-hourly"')


@pytest.fixture(scope="module")
def rounds(tmp_path_factory):
    records = [capitalbench.record(outcome=capitalbench.RESOLVED), capitalbench.record(agent="other-two")]
    files = capitalbench.packed([capitalbench.context()], records)
    return published(tmp_path_factory.mktemp("rounds"), files, "capitalbench", "")


def test_the_first_page_says_whose_season_it_is_and_what_its_records_lack(log):
    page = log["index.html"]
    assert "Two agents, instructions that are not recorded, 2 instruments, 100,000 CNY each, one day" in page
    assert "Not run here. The records come from: HKUDS/AI-Trader" in page
    assert "5 of 5 decisions were written down more than a day after their steps." in page
    assert "2 of 10 stated fills, positions and amounts of cash do not follow from the others." in page
    assert "No time was measured for claude-3.7-sonnet and gpt-5" in page
    assert "no statement of theirs can be called contradicted" in page
    assert "Equal weight" in page


def test_what_holds_of_every_agent_is_said_once(log):
    """In a season that is too short to compare any two of them."""
    for page, why in ((log["index.html"], "too few common periods"), (log["de/index.html"], "zu wenige gemeinsame")):
        assert plain(page).count(why) == 1
    assert "cannot be compared with" in plain(log["claims.html"])  # each by name among all claims


def test_every_mismatch_stands_on_the_page_of_its_agent(log):
    page = log["agents/gpt-5.html"]
    assert "Cash: stated 74000, recomputed 74800, which no price of the step explains." in page
    assert "Cash: stated 74800, recomputed 74000." in page
    assert "recomputed" not in log["agents/claude-3.7-sonnet.html"]
    assert "Family openai, model gpt-5." in page
    assert "75.0 of 100: of 8 checks of fills, cash and positions, 2 do not reconcile." in page


def test_the_rules_page_says_no_rule_that_was_not_theirs(log, rounds):
    for pages in (log, rounds):
        assert "cost_bps" not in pages["rules.html"]
        assert "The season file holds no prompt and no strategies." in pages["rules.html"]
    assert "capital 100000" in log["rules.html"]
    assert "capital 1" not in rounds["rules.html"]


def test_records_without_books_have_no_return_and_say_so(rounds):
    page = rounds["index.html"]
    assert "no capital recorded" in page
    assert page.count("no book") == 4  # return and drawdown of two agents
    assert "The records state neither fills nor books." in page
    assert "Equal weight" not in page
    own = rounds["agents/acme-one.html"]
    assert "no fill is recorded" in own
    assert "Not all that the agent saw is kept: a number that is not found was not shown to be wrong." in own
    assert "No net asset value is recorded for this agent." in own
    assert "nothing could be checked" in own


def test_both_languages_have_the_same_pages(log, rounds):
    for pages in (log, rounds):
        english = {name for name in pages if not name.startswith("de/")}
        assert {f"de/{name}" for name in english} == set(pages) - english
    assert "Diese Saison hat jemand anderes gespielt." in log["de/index.html"]
    assert "kein Kapital aufgezeichnet" in rounds["de/index.html"]


@pytest.mark.usefixtures("log")
def test_the_worked_result_is_made_from_run_folders_alone(folder):
    where = Path(__file__).resolve().parents[2] / "docs" / "aitrader_table.py"
    spec = importlib.util.spec_from_file_location("aitrader_table", where)
    table = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = table  # dataclasses look their module up there
    spec.loader.exec_module(table)
    page = table.aitrader([folder / "run"])
    assert "| cn-hourly | 2 | 2 | 5 | 1 | 2025-10-09 to 2025-10-09 | 5 |" in page
    assert "| gpt-5 | 101,100.00 | +1.1 % |" in page
    assert "| cn-hourly | 0 | 2 | 0 | 1 |" in page
    assert "Every fill that does not follow from the rest of its log (0):" in page
    assert "nan" not in page.lower().replace("finance", "")
