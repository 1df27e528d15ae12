"""Commands that are stopped: what they say is kept is kept, and nothing of them is left."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_records import STUDY
from terminals import CTRL_C, Terminal, stop

from assaymark.cli import main
from assaymark.engine import Ledger

QUESTIONS = ("bench", "qa", "--model", "reference/portbench-steady", "--per-template", "2", "--out")
"""Asks 18 questions."""


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM"])
def test_a_run_that_is_stopped_says_how_many_replies_are_kept_and_goes_on(tmp_path, capsys, how):
    run = tmp_path / "run"
    with Terminal(*QUESTIONS, run, quick=5, slow_s=1.5) as terminal:
        terminal.until(" of 18")  # on a terminal there is progress
        stop(terminal, how)
        assert terminal.ended() == 130
        assert terminal.left(10) == []
    told = re.search(r"assaymark: stopped: (\d+) of 18 calls are answered and kept in ", terminal.shown)
    assert told is not None, terminal.shown
    assert "calls under way end first" in terminal.shown
    assert "Traceback" not in terminal.shown
    with Ledger.open(run / "ledger.db", create=False) as ledger:
        assert len(list(ledger.answered())) == int(told[1])
    assert main([*QUESTIONS, str(run), "--dry-run"]) == 0
    assert f"in all 18 calls, {told[1]} answered already" in capsys.readouterr().out


def test_a_second_ctrl_c_does_not_wait(tmp_path):
    with Terminal(*QUESTIONS, tmp_path / "run", quick=5, slow_s=600) as terminal:
        terminal.until(" of 18")
        terminal.press(CTRL_C)
        terminal.until("calls under way end first")
        terminal.press(CTRL_C)
        assert terminal.ended() == 130
        assert terminal.left(10) == []
    assert re.search(r"stopped at questions \(\d+ of 18\): .*; the same command goes on", terminal.shown)
    assert "Traceback" not in terminal.shown


def test_processes_end_with_the_command_that_started_them(tmp_path):
    """Also while they are loaded: they never hear of it, so they leave no traceback on the terminal."""
    for part in range(60):
        rows = [(f"{part}-{n}-{agent}", agent, f"{part}-{n}", f"w{part}", judge, judge, float(1 + n % 5))
                for n in range(20) for agent in "ab" for judge in "xyz"]  # fmt: skip
        names = ("trajectory", "agent", "cycle", "cluster", "judge", "family", "score.one")
        columns = {name: pa.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
        pq.write_table(pa.table(columns), tmp_path / f"part-{part:02}.parquet")
    with Terminal("measure", "--judgments", tmp_path, "--compute", "processes", "--workers", "2") as terminal:
        terminal.until("summing partitions")
        terminal.press(CTRL_C)
        assert terminal.ended() == 130
        assert terminal.left(10) == []
    assert "nothing was written" in terminal.shown.splitlines()[-1]
    assert "Traceback" not in terminal.shown


def test_a_study_without_verdicts_has_a_page_of_how_far_it_is(imported, capsys):
    """No name of an agent, no agreement and no difference is on it, and the command that it names finishes the run."""
    assert main(["lock", str(STUDY), "--out", str(imported)]) == 0
    capsys.readouterr()
    assert main(["report", str(imported), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdicts"] is None
    page = (imported / "report/index.html").read_text(encoding="utf-8")
    assert "Not decided yet" in page
    assert f"<code>assaymark run {imported}/plan.toml --out {imported}</code>" in page
    assert not re.search("κ|kappa|scores above|ranks first", page)
