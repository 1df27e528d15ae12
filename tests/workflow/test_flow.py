"""The whole flow on the demo's records: what it ends in, and what it does when it is run again, stopped or damaged."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from made_records import STUDY
from repetitions import untraced

from assaymark.claims import kind_of
from assaymark.cli import main
from assaymark.records import Claim, parse

LEVELS = ("headline", "qualified", "no-claim")


def digests(folder: Path) -> dict[str, str]:
    """What must not depend on the clock or on interruptions."""
    names = ["verdicts.json", *(str(p.relative_to(folder)) for p in sorted((folder / "certificates").iterdir()))]
    names += [f"tables/{t}.parquet" for t in ("judgments", "evidence", "measurements", "verdicts")]
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def attempts(folder: Path) -> int:
    engine = sa.create_engine(f"sqlite:///{folder / 'ledger.db'}")
    try:
        with engine.connect() as connection:
            return int(connection.execute(sa.text("select count(*) from attempts")).scalar_one())
    finally:
        engine.dispose()


def test_the_demo_ends_in_everything_the_layout_promises(finished):
    names = {path.name for path in finished.iterdir()} - {"objects", "ledger.db.lock"}
    assert names == {"plan.toml", "study.lock", "ledger.db", "tables", "verdicts.json", "certificates", "report"}
    tables = {path.stem for path in (finished / "tables").glob("*.parquet")}
    made = {"contexts", "decisions", "outcomes", "judgments", "anchor", "probe", "evidence", "measurements", "verdicts"}
    assert tables == made
    assert (finished / "report" / "index.html").stat().st_size < 200_000


def test_verdicts_are_said_in_full_and_no_higher_than_qualified(finished):
    file = json.loads((finished / "verdicts.json").read_text())
    levels = [verdict["publication_level"] for verdict in file["verdicts"]]
    assert file["tally"] == {level: levels.count(level) for level in LEVELS}
    assert file["tally"]["headline"] == 0, "no control texts were graded, so nothing can be a headline"
    kinds = Counter(kind_of(parse(Claim, json.dumps(verdict["claim"]))) for verdict in file["verdicts"])
    assert {kind: kinds[kind] for kind in ("first", "pair", "ranking", "cell")} == {
        "first": 21, "pair": 21, "ranking": 7, "cell": 0,
    }  # fmt: skip
    for verdict in file["verdicts"]:
        assert verdict["adversarial_status"] == "not tested"
        assert len(verdict["reasons"]) >= 3
        assert verdict["plan_hash"] == file["plan_hash"]
        assert set(verdict["measurements"]) <= set(file["measurements"])
    assert file["panel"]["reference"] is True


def test_verdicts_follow_the_published_schema(finished):
    schema = json.loads((STUDY.parents[3] / "docs" / "verdicts.schema.json").read_text())
    jsonschema.validate(json.loads((finished / "verdicts.json").read_text()), schema)


def test_every_verdict_has_its_certificate_and_no_certificate_has_text(finished):
    file = json.loads((finished / "verdicts.json").read_text())
    certificates = [json.loads(path.read_text()) for path in (finished / "certificates").iterdir()]
    assert {item["claim"]["id"] for item in certificates} == {v["claim"]["id"] for v in file["verdicts"]}
    decisions = pq.read_table(finished / "tables" / "decisions.parquet")["record"].to_pylist()
    sentences = [json.loads(text)["rationales"][0]["text"] for text in decisions]
    everything = "".join(path.read_text() for path in (finished / "certificates").iterdir())
    assert not any(sentence in everything for sentence in sentences)


def test_nothing_derived_holds_a_clock(finished):
    text = (finished / "verdicts.json").read_text()
    assert not re.search(r"\d\d:\d\d:\d\d", text)


def test_running_it_again_asks_nobody_and_changes_nothing(run, capsys):
    before, asked = digests(run), attempts(run)
    assert main(["demo", "--out", str(run)]) == 0
    assert digests(run) == before
    assert attempts(run) == asked
    assert "page:" in capsys.readouterr().out


def test_two_runs_are_byte_equal_and_no_key_is_ever_written(finished, tmp_path, monkeypatch):
    """The second run has a key in its environment."""
    canary, other = "sk-canary-7f3e91", tmp_path / "other"
    monkeypatch.setenv("OPENAI_API_KEY", canary)
    assert untraced(lambda: main(["demo", "--out", str(other)])) == 0
    assert digests(other) == digests(finished)
    for path in other.rglob("*"):
        if path.is_file():
            assert canary.encode() not in path.read_bytes()


def test_the_verbs_one_by_one_end_where_run_ends(finished, imported, capsys):
    assert main(["lock", str(STUDY), "--out", str(imported)]) == 0
    for verb in ("judge", "measure", "claim", "report"):
        assert main([verb, str(imported)]) == 0, capsys.readouterr().err
    assert digests(imported) == digests(finished)


def test_nothing_is_claimed_before_the_outside_judge_was_heard(run, capsys):
    (run / "tables" / "probe.parquet").unlink()
    before = (run / "verdicts.json").read_bytes()
    assert main(["claim", str(run)]) == 1
    assert "the outside judge that the plan commits was not asked" in capsys.readouterr().err
    assert (run / "verdicts.json").read_bytes() == before


@pytest.mark.parametrize("lost", ["judgments", "evidence", "anchor", "probe", "measurements", "verdicts"])
def test_a_lost_table_is_rebuilt_from_the_ledger_without_asking_again(run, lost):
    before, asked = digests(run), attempts(run)
    (run / "tables" / f"{lost}.parquet").unlink()
    assert main(["run", str(run / "plan.toml"), "--out", str(run)]) == 0
    assert digests(run) == before
    assert attempts(run) == asked


@pytest.mark.parametrize("table", ["decisions", "judgments", "measurements"])
def test_a_damaged_table_is_never_data(run, table, capsys):
    path = run / "tables" / f"{table}.parquet"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    assert main(["run", str(run / "plan.toml"), "--out", str(run)]) == 1
    message = capsys.readouterr().err
    assert f"{table}.parquet is damaged" in message
    assert "Traceback" not in message


FORKED = """
import os, sys, traceback
from assaymark.cli import main

print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 99
        try:
            status = main(["demo", "--out", line.removesuffix("\\n")])
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    print(child, flush=True)
    sys.stdin.readline()  # until then nobody takes the number of a process that is done
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""A process that has imported everything once. For each folder it is told it runs the demo in a fork, and says the
number of that process; for the next line it waits for its end, and says its status."""


def test_killing_it_anywhere_and_running_again_gives_the_same_bytes(finished, tmp_path):
    """SIGKILL at eight moments spread over the run; each time it goes on, and no reply is asked for twice."""
    out, errors = tmp_path / "killed", tmp_path / "errors"
    with (
        errors.open("w") as log,
        subprocess.Popen(
            [sys.executable, "-c", FORKED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as server,
    ):
        asked, told = server.stdin, server.stdout
        assert told.readline() == "ready\n"

        def say(line: object) -> int:
            asked.write(f"{line}\n")
            asked.flush()
            return int(told.readline())

        started = time.monotonic()
        say(tmp_path / "timing")
        assert say("wait") == 0
        whole = time.monotonic() - started
        statuses = []
        # What was judged stays judged, so that later runs are over after little more than half of the time.
        for share in (0.05, 0.2, 0.3, 0.4, 0.5, 0.45, 0.35, 0.25):
            process = say(out)
            time.sleep(whole * share)
            os.kill(process, signal.SIGKILL)
            statuses.append(say("wait"))
        asked.close()
    assert statuses[0] == -signal.SIGKILL
    assert set(statuses) <= {-signal.SIGKILL, 0}
    assert "Traceback" not in errors.read_text()
    assert untraced(lambda: main(["demo", "--out", str(out)])) == 0
    assert digests(out) == digests(finished)
    engine = sa.create_engine(f"sqlite:///{out / 'ledger.db'}")
    with engine.connect() as connection:
        twice = connection.execute(
            sa.text("select count(*) - count(distinct key) from attempts where outcome = 'replied'")
        ).scalar_one()
    engine.dispose()
    assert twice == 0


def test_a_stop_request_drains_and_says_how_to_go_on(tmp_path, finished):
    out = tmp_path / "stopped"
    command = [sys.executable, "-m", "assaymark.cli", "demo", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        if (out / "study.lock").exists() and (out / "tables" / "evidence.parquet").exists():
            process.send_signal(signal.SIGTERM)
            break
        time.sleep(0.005)
    _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors
    assert untraced(lambda: main(command[3:])) == 0
    assert digests(out) == digests(finished)


def test_the_ledger_alone_rebuilds_the_tables_of_a_run(run, finished):
    for name in ("judgments", "evidence", "measurements", "verdicts"):
        (run / "tables" / f"{name}.parquet").unlink()
    shutil.rmtree(run / "report")
    (run / "verdicts.json").unlink()
    assert main(["run", str(run / "plan.toml"), "--out", str(run)]) == 0
    assert digests(run) == digests(finished)
    assert (run / "report" / "index.html").is_file()
