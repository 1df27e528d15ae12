"""`assaymark data`: synth, pull, show and check, as a person at a terminal meets them."""

from __future__ import annotations

import io
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from assaymark.cli import main
from assaymark.errors import InputError, UnknownNameError
from assaymark.market import open_history, read_manifest
from assaymark.workflow.data import LISTED, check, parse_moment, pull, show, synth

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The market of seed 0 in a folder. Not to be changed."""
    folder = tmp_path_factory.mktemp("market") / "store"
    assert main(["data", "synth", "--seed", "0", "--out", str(folder)]) == 0
    open_history(folder)
    return folder


def text_of(folder: Path, *, at: str | None = None, instrument: str | None = None) -> str:
    out = io.StringIO()
    Console(width=100, file=out, highlight=False).print(show(folder, at=at, instrument=instrument))
    return out.getvalue()


def prices(path: Path, columns: str = "A,B", rows: int = 30, html: bool = False) -> Path:
    lines = [f"date,{columns}"]
    days = np.arange(np.datetime64("2024-01-01"), np.datetime64("2024-12-31"))
    for number, day in enumerate(days[np.is_busday(days)][:rows]):
        lines.append(",".join([str(day), *(f"{10 + (number * 7 + at) % 5}" for at in range(columns.count(",") + 1))]))
    path.write_text("<html>busy</html>" if html else "\n".join(lines) + "\n")
    return path


def test_synth_says_what_is_there_and_does_it_once(made, capsys):
    before = (made / "snapshot.json").stat().st_mtime_ns
    assert main(["data", "synth", "--seed", "0", "--out", str(made)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"synthetic-0 in {made}: 490,797 bars, 183 instruments")
    assert "filed values" in out
    assert (made / "snapshot.json").stat().st_mtime_ns == before


def test_it_is_shown_and_checked_for_a_program(made, capsys):
    def document(*words: str) -> dict:
        assert main(["data", words[0], str(made), *words[1:], "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert len(document("show")["instruments"]) == 183
    shown = document("show", "--at", "2020-03-20")
    assert shown["as_of"].startswith("2020-03-20")
    assert all(one["day"] <= "2020-03-20" for one in shown["instruments"] if "day" in one)
    assert {one["state"] for one in shown["macro"]}
    assert document("check")["problems"] == []


def test_a_folder_is_not_given_another_seed(made, capsys):
    assert main(["data", "synth", "--seed", "1", "--out", str(made)]) == 1
    assert "holds the snapshot 'synthetic-0' of synthetic; a folder holds one" in capsys.readouterr().err


def test_progress_is_told(tmp_path):
    told: list[tuple[str, int, int]] = []
    synth(tmp_path, 0, progress=lambda *state: told.append(state))
    assert told == [("market", done, 2) for done in range(3)]


def test_show_tells_what_there_is(made):
    text = text_of(made)
    for said in ("synthetic-0", "made here, free to use", "gaps and delistings are deliberate", "equity", "2025-12-31",
                 "12 macro series", "2,001 news items", "10,393 filed values", "0 later versions of bars"):  # fmt: skip
        assert said in text


def test_show_at_a_time_knows_nothing_later(made):
    text = text_of(made, at="2024-03-31")
    assert "As of 2024-03-31 23:59:59 UTC, knowing nothing later" in text
    assert "2024-02-29" in next(line for line in text.splitlines() if line.startswith("policy_rate"))
    assert "stale: the last value" in text
    assert "and 120 more of equity" in text
    assert "2025" not in text.partition("As of")[2]
    assert "2024-04" not in text.partition("As of")[2]


def test_show_of_one_instrument(made):
    text = text_of(made, at="2024-03-01T22:00:00Z", instrument="ALBIX")
    assert "ALBIX" in text
    assert "BREBIX" not in text
    assert "2023-Q4" in text
    assert "2024-Q1" not in text
    assert "listed 2015-01-01, not delisted" in text_of(made, instrument="ALBIX")


def test_an_instrument_that_lists_later_has_no_name_yet(made):
    later = next(one for one in open_history(made).listings if one.listed.year == 2018)
    with pytest.raises(UnknownNameError, match=f"unknown instrument '{later.id}'") as caught:
        show(made, at="2017-06-01", instrument=later.id)
    assert later.id not in caught.value.known
    assert later.id in text_of(made, instrument=later.id)


def test_names_from_outside_are_shown_as_they_are(tmp_path):
    path = prices(tmp_path / "a.csv", "[/red],A\x1b[31m")
    pull(tmp_path / "s", "files", options=[f"path={path}"], now=NOW, environment={})
    text = text_of(tmp_path / "s", at="2024-02-01")
    assert "[/red]" in text
    assert "\x1b" not in text


def test_before_the_first_day_nothing_is_known(made):
    text = text_of(made, at="2014-06-01")
    assert "No close was known." in text
    assert "not published" in text


@pytest.mark.parametrize(
    ("at", "message"), [("yesterday", "must be a day or a time"), ("2024-03-01T22:00:00", "needs a zone")]
)
def test_a_time_must_be_one(at, message):
    with pytest.raises(InputError, match=message):
        parse_moment(at)


def test_show_without_a_snapshot(tmp_path, capsys):
    assert main(["data", "show", str(tmp_path)]) == 1
    assert "holds no market snapshot; make one with: assaymark data synth" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["show", "check"])
def test_a_folder_that_is_not_there_is_answered_with_one_that_is(tmp_path, capsys, verb):
    (tmp_path / "market").mkdir()
    assert main(["data", verb, str(tmp_path / "marktet")]) == 1
    said = capsys.readouterr().err
    assert "no such folder of a market snapshot; make one with: assaymark data synth" in said
    assert f"did you mean {tmp_path / 'market'}?" in said


def test_the_synthetic_market_has_notes_only(made, capsys):
    assert main(["data", "check", str(made)]) == 0
    out = capsys.readouterr().out
    assert "synthetic-0: 0 problems, 34 notes" in out
    assert "note: interbank_spread: has ended" in out


def test_problems_are_listed_counted_and_exit_1(tmp_path, capsys):
    names = ",".join(f"S{number}" for number in range(LISTED + 5))
    path, days = tmp_path / "a.csv", np.arange(np.datetime64("2024-01-01"), np.datetime64("2024-02-15"))
    rows = [f"{day}{',5' * (LISTED + 5)}" for day in days[np.is_busday(days)]]
    path.write_text("\n".join([f"date,{names}", *rows]) + "\n")
    assert main(["data", "pull", "files", "--option", f"path={path}", "--out", str(tmp_path / "s")]) == 0
    capsys.readouterr()
    assert main(["data", "check", str(tmp_path / "s")]) == 1
    captured = capsys.readouterr()
    assert captured.out.count("problem: ") == LISTED
    assert "and 5 more problems" in captured.out
    assert f"{LISTED + 5} problems, named above" in captured.err
    assert len(check(tmp_path / "s").found.problems) == LISTED + 5


def test_check_finds_damage(made, tmp_path, capsys):
    shutil.copytree(made, tmp_path / "s")
    path = tmp_path / "s" / "bars.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["data", "check", str(tmp_path / "s")]) == 1
    assert "bars.parquet is damaged or cut off" in capsys.readouterr().err


def test_a_file_becomes_a_snapshot(tmp_path, capsys):
    path = prices(tmp_path / "mine.csv")
    arguments = ["data", "pull", "files", "--out", str(tmp_path / "s"), "--symbol", "B", "--start", "2024-01-10",
                 "--option", f"path={path}", "--option", "licence=our own", "--option", "class=BO"]  # fmt: skip
    assert main(arguments) == 0
    assert "1 instruments" in capsys.readouterr().out
    manifest, history = read_manifest(tmp_path / "s"), open_history(tmp_path / "s")
    assert manifest.origin.licence == "our own"
    assert manifest.id.startswith("files-mine-")
    assert [(one.id, one.asset_class) for one in history.listings] == [("B", "BO")]
    assert str(history.days[0]) == "2024-01-10"
    assert main(arguments) == 0  # the same file again, at another time: nothing to do


def test_the_synthetic_market_can_be_pulled_too(made, tmp_path):
    pull(tmp_path, "synthetic", options=["seed=0"], now=NOW, environment={})
    assert read_manifest(tmp_path).digest == read_manifest(made).digest


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"source": "files"}, "option path: is needed"),
        ({"source": "files", "options": ["path=x", "colour=red"]}, "option colour: is unknown; files takes path"),
        ({"source": "files", "options": ["path"]}, "number 1 must be KEY=VALUE"),
        ({"source": "files", "options": ["path=a", "path=b"]}, "path is given more than once"),
        ({"source": "files", "options": ["path=nowhere.csv"]}, "nowhere.csv: cannot be read"),
        ({"source": "files", "options": ["path=a"], "start": "soon"}, "--start: must be a day"),
        ({"source": "synthetic", "options": ["seed=-1"]}, "must be a whole number"),
        ({"source": "synthetic", "symbols": ["A"]}, "comes whole"),
    ],
)
def test_what_cannot_be_asked_for(tmp_path, wanted, message):
    with pytest.raises(InputError, match=message):
        pull(tmp_path / "s", **wanted, now=NOW, environment={})
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"source": "yfinanc"}, "Did you mean 'yfinance'"),
        ({"source": "files", "options": ["path=a", "class=equity"]}, "unknown class 'equity'"),
    ],
)
def test_unknown_names(tmp_path, wanted, message):
    with pytest.raises(UnknownNameError, match=message):
        pull(tmp_path, **wanted, now=NOW, environment={})


def test_a_web_page_leaves_nothing_behind(tmp_path, capsys):
    path = prices(tmp_path / "a.csv", html=True)
    assert main(["data", "pull", "files", "--option", f"path={path}", "--out", str(tmp_path / "s")]) == 1
    assert "is a web page (HTML)" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_a_networked_source_is_handed_its_key_from_the_environment(tmp_path, monkeypatch, made):
    from assaymark.market import read_snapshot, sources

    asked = []

    def answer(source, request, *, now, progress):
        asked.append((source, request.symbols, dict(request.options)))
        return read_snapshot(made)

    monkeypatch.setattr(sources, "pull", answer)
    line = pull(tmp_path, "fred", symbols=["UNRATE"], now=NOW, environment={"FRED_API_KEY": "canary-7"})
    assert asked == [("fred", ("UNRATE",), {"api_key": "canary-7"})]
    assert "canary-7" not in line
