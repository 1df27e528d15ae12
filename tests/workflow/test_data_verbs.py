"""`assaymark data`: synth, pull, show and check, as used on a terminal."""

from __future__ import annotations

import io
import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from assaymark.cli import main
from assaymark.errors import InputError, UnknownNameError
from assaymark.market import open_history, read_manifest, read_snapshot, sources
from assaymark.workflow import check_market, pull_market, show_market, synth_market, watched

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The market of seed 0 in a folder. Not to be changed."""
    folder = tmp_path_factory.mktemp("market") / "store"
    assert main(["data", "synth", "--seed", "0", "--out", str(folder)]) == 0
    open_history(folder)
    return folder


def text_of(folder: Path, at: str | None = None, instrument: str | None = None) -> str:
    out = io.StringIO()
    Console(width=100, file=out, highlight=False).print(show_market(folder, at=at, instrument=instrument))
    return out.getvalue()


def prices(path: Path, columns: str = "A,B", html: bool = False) -> Path:
    lines = [f"date,{columns}"]
    days = np.arange(np.datetime64("2024-01-01"), np.datetime64("2024-12-31"))
    for number, day in enumerate(days[np.is_busday(days)][:30]):
        lines.append(",".join([str(day), *(f"{10 + (number * 7 + at) % 5}" for at in range(columns.count(",") + 1))]))
    path.write_text("<html>busy</html>" if html else "\n".join(lines) + "\n")
    return path


def test_synth_says_what_is_there_does_it_once_and_keeps_a_folder_to_one_seed(made, tmp_path, ran):
    before = (made / "snapshot.json").stat().st_mtime_ns
    out = ran("data", "synth", "--seed", "0", "--out", made)
    assert out.startswith(f"synthetic-0 in {made}: 490,797 bars, 183 instruments")
    assert "filed values" in out
    assert (made / "snapshot.json").stat().st_mtime_ns == before
    assert "holds the snapshot 'synthetic-0' of synthetic; a folder contains one" in ran(
        "data", "synth", "--seed", "1", "--out", made, status=1
    )
    told: list[tuple[str, int, int]] = []
    with watched(lambda *state: told.append(state)):
        synth_market(tmp_path / "told", 0)
    assert told == [("market", done, 2) for done in range(3)]
    pull_market(tmp_path / "pulled", "synthetic", options=["seed=0"], now=NOW, environment={})
    assert read_manifest(tmp_path / "pulled").digest == read_manifest(made).digest


def test_it_is_shown_and_checked_for_a_program_and_for_a_person(made, ran, capsys):
    def document(*words: str) -> dict:
        assert main(["data", words[0], str(made), *words[1:], "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert len(document("show")["instruments"]) == 183
    shown = document("show", "--at", "2020-03-20")
    assert shown["as_of"].startswith("2020-03-20")
    assert all(one["day"] <= "2020-03-20" for one in shown["instruments"] if "day" in one)
    assert {one["state"] for one in shown["macro"]}
    assert re.search(r"bond +15 +2015-01-01 +2025-12-31 +42,694 +356 +2", ran("data", "show", made))  # in 80 columns
    assert "…" not in ran("data", "show", made, "--at", "2024-03-05")
    assert document("check")["problems"] == []
    out = ran("data", "check", made)
    assert "synthetic-0: 0 problems, 34 notes" in out
    assert "note: interbank_spread: has ended" in out


@pytest.mark.parametrize(
    ("at", "instrument", "told", "untold"),
    [
        (None, None, ["synthetic-0", "made here, free to use", "gaps and delistings are deliberate", "equity",
                      "2025-12-31", "12 macro series", "2,001 news items", "10,393 filed values",
                      "0 later versions of bars"], []),
        ("2024-03-31", None, ["As of 2024-03-31 23:59:59 UTC, knowing nothing later", "stale: the last value",
                              "and 120 more of equity"], ["2025", "2024-04"]),
        ("2024-03-01T22:00:00Z", "ALBIX", ["ALBIX", "2023-Q4"], ["BREBIX", "2024-Q1"]),
        (None, "ALBIX", ["listed 2015-01-01, not delisted"], []),
        ("2014-06-01", None, ["No close was known.", "not published"], []),
    ],
)  # fmt: skip
def test_show_tells_what_there_is_and_at_a_time_nothing_later(made, at, instrument, told, untold):
    text = text_of(made, at, instrument)
    assert [one for one in told if one not in text] == []
    assert [one for one in untold if one in text.partition("As of")[2]] == []
    if at == "2024-03-31":
        assert "2024-02-29" in next(line for line in text.splitlines() if line.startswith("policy_rate"))


def test_an_instrument_that_lists_later_has_no_name_yet(made):
    later = next(one for one in open_history(made).listings if one.listed.year == 2018)
    with pytest.raises(UnknownNameError, match=f"unknown instrument '{later.id}'") as caught:
        show_market(made, at="2017-06-01", instrument=later.id)
    assert later.id not in caught.value.known
    assert later.id in text_of(made, instrument=later.id)


def test_names_from_outside_are_shown_as_they_are(tmp_path):
    path = prices(tmp_path / "a.csv", "[/red],A\x1b[31m")
    pull_market(tmp_path / "s", "files", options=[f"path={path}"], now=NOW, environment={})
    text = text_of(tmp_path / "s", at="2024-02-01")
    assert "[/red]" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("at", "message"), [("yesterday", "must be a day or a time"), ("2024-03-01T22:00:00", "needs a zone")]
)
def test_a_time_must_be_one(made, at, message):
    with pytest.raises(InputError, match=message):
        show_market(made, at=at)


@pytest.mark.parametrize("verb", ["show", "check"])
def test_a_folder_without_a_snapshot_is_answered_with_what_makes_one(tmp_path, ran, verb):
    (tmp_path / "market").mkdir()
    assert "contains no market snapshot; make one with: assaymark data synth" in ran("data", "show", tmp_path, status=1)
    said = ran("data", verb, tmp_path / "marktet", status=1)
    assert "no such folder of a market snapshot; make one with: assaymark data synth" in said
    assert f"did you mean {tmp_path / 'market'}?" in said


def test_problems_are_listed_counted_and_exit_1(tmp_path, ran, capsys):
    names = ",".join(f"S{number}" for number in range(45))
    path, days = tmp_path / "a.csv", np.arange(np.datetime64("2024-01-01"), np.datetime64("2024-02-15"))
    rows = [f"{day}{',5' * 45}" for day in days[np.is_busday(days)]]
    path.write_text("\n".join([f"date,{names}", *rows]) + "\n")
    ran("data", "pull", "files", "--option", f"path={path}", "--out", tmp_path / "s")
    assert main(["data", "check", str(tmp_path / "s")]) == 1
    captured = capsys.readouterr()
    assert captured.out.count("problem: ") == 40
    assert "and 5 more problems" in captured.out
    assert "45 problems, named above" in captured.err
    assert len(check_market(tmp_path / "s").done.problems) == 45


def test_check_finds_damage(made, tmp_path, ran):
    shutil.copytree(made, tmp_path / "s")
    path = tmp_path / "s" / "bars.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    assert "bars.parquet is damaged or cut off" in ran("data", "check", tmp_path / "s", status=1)


def test_a_file_becomes_a_snapshot(tmp_path, ran):
    path = prices(tmp_path / "mine.csv")
    arguments = ["data", "pull", "files", "--out", str(tmp_path / "s"), "--symbol", "B", "--start", "2024-01-10",
                 "--option", f"path={path}", "--option", "licence=our own", "--option", "class=BO"]  # fmt: skip
    assert "1 instruments" in ran(*arguments)
    manifest, history = read_manifest(tmp_path / "s"), open_history(tmp_path / "s")
    assert manifest.origin.licence == "our own"
    assert manifest.id.startswith("files-mine-")
    assert [(one.id, one.asset_class) for one in history.listings] == [("B", "BO")]
    assert str(history.days[0]) == "2024-01-10"
    assert main(arguments) == 0  # the same file again, at another time: nothing to do


@pytest.mark.parametrize(("wanted", "error", "message"), [
    ({"source": "files"}, InputError, "option path: is needed"),
    ({"source": "files", "options": ["path=x", "colour=red"]}, InputError, "colour: is unknown; files takes path"),
    ({"source": "files", "options": ["path"]}, InputError, "number 1 must be KEY=VALUE"),
    ({"source": "files", "options": ["path=a", "path=b"]}, InputError, "path is given more than once"),
    ({"source": "files", "options": ["path=nowhere.csv"]}, InputError, "nowhere.csv: cannot be read"),
    ({"source": "files", "options": ["path=a"], "start": "soon"}, InputError, "--start: must be a day"),
    ({"source": "synthetic", "options": ["seed=-1"]}, InputError, "must be a whole number"),
    ({"source": "synthetic", "symbols": ["A"]}, InputError, "comes whole"),
    ({"source": "yfinanc"}, UnknownNameError, "Did you mean 'yfinance'"),
    ({"source": "files", "options": ["path=a", "class=equity"]}, UnknownNameError, "unknown class 'equity'"),
])  # fmt: skip
def test_what_cannot_be_asked_for(tmp_path, wanted, error, message):
    with pytest.raises(error, match=message):
        pull_market(tmp_path / "s", **wanted, now=NOW, environment={})
    assert not (tmp_path / "s").exists()


def test_a_web_page_leaves_nothing_behind(tmp_path, ran):
    path = prices(tmp_path / "a.csv", html=True)
    assert "is a web page (HTML)" in ran(
        "data", "pull", "files", "--option", f"path={path}", "--out", tmp_path / "s", status=1
    )
    assert not (tmp_path / "s").exists()


def test_a_networked_source_is_handed_its_key_from_the_environment(tmp_path, monkeypatch, made):
    asked = []

    def answer(source, request, *, now, progress):
        asked.append((source, request.symbols, dict(request.options)))
        return read_snapshot(made)

    monkeypatch.setattr(sources, "pull", answer)
    line = pull_market(tmp_path, "fred", symbols=["UNRATE"], now=NOW, environment={"FRED_API_KEY": "canary-7"})
    assert asked == [("fred", ("UNRATE",), {"api_key": "canary-7"})]
    assert "canary-7" not in line
