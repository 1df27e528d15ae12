"""The whole flow of a study that makes its own records: its results, and running it again after a stop, kill or damage.

What the flow ends in is asked of the demo; what runs it more than once uses a smaller study of the same shape."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
from made_records import OWN
from repetitions import untraced

from assaymark import workflow
from assaymark.claims import kind_of
from assaymark.cli import main
from assaymark.records import Claim, parse, to_json
from assaymark.workflow import DECISIONS, EVIDENCE, MEASUREMENTS, RunFolder, Store

SETTLED = ("judgments", "anchor", "probe", "evidence", "verdicts")
TIMED = ("decisions", "measurements")
SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "verdicts.schema.json"


def digests(folder: Path, tables: tuple[str, ...] = (*SETTLED, *TIMED)) -> dict[str, str]:
    """Return digests that interruptions must not change; the seconds of an agent are in the ledger, with its reply."""
    names = ["verdicts.json", *(f"tables/{name}.parquet" for name in tables)]
    names += [str(path.relative_to(folder)) for path in sorted((folder / "certificates").iterdir())]
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def findings(folder: Path) -> tuple[dict[str, str], list[object], list[object]]:
    """Return everything that is equal in two runs of one study: all but the measured seconds of its agents.
    They stand in ``call.seconds`` of a decision and in the measurement ``agent.seconds``, and what is measured of an
    agent names its inputs by a digest, seconds included. No judge and no verdict sees them."""
    store = Store(RunFolder(folder))
    decisions = [to_json(one) for one in store.read(DECISIONS)]
    for one in decisions:
        one["call"].pop("seconds")
    measured = [to_json(one) for one in store.read(MEASUREMENTS) if one.name != "agent.seconds"]
    for one in measured:
        if one["name"].startswith("agent."):
            one.pop("inputs")
    return digests(folder, SETTLED), decisions, measured


def asked(folder: Path, question: str = "count(*)") -> int:
    with closing(sqlite3.connect(folder / "ledger.db")) as ledger:
        return int(ledger.execute(f"select {question} from attempts").fetchone()[0])


def ends_as(folder: Path, own_run: Path) -> None:
    """Assert that a study run again has the same results, and made no call twice."""
    assert untraced(lambda: main(["run", str(OWN), "--out", str(folder)])) == 0
    assert findings(folder) == findings(own_run)
    assert asked(folder, "sum(outcome = 'replied') - count(distinct case when outcome = 'replied' then key end)") == 0


def test_verdicts_of_every_level_are_said_in_full_and_follow_the_published_schema(demo):
    text = (demo / "verdicts.json").read_text()
    assert not re.search(r"\d\d:\d\d:\d\d", text), "nothing derived holds a clock"
    file = json.loads(text)
    jsonschema.validate(file, json.loads(SCHEMA.read_text()))
    levels = [verdict["publication_level"] for verdict in file["verdicts"]]
    assert file["tally"] == {level: levels.count(level) for level in ("headline", "qualified", "no-claim")}
    assert min(file["tally"].values()) >= 5
    kinds = Counter(kind_of(parse(Claim, json.dumps(verdict["claim"]))) for verdict in file["verdicts"])
    assert kinds == {"first": 28, "pair": 42, "within": 6, "cell": 2}
    for verdict in file["verdicts"]:
        assert len(verdict["reasons"]) >= 3
        assert verdict["plan_hash"] == file["plan_hash"]
        assert (verdict["publication_level"] == "headline") == (verdict["caps"] == [])
        # The gap of a pair that is not supported stands in the tables and certificates alone.
        assert verdict["publication_level"] == "no-claim" or set(verdict["measurements"]) <= set(file["measurements"])
    assert file["panel"]["reference"] is True
    # Every verdict has its certificate, and no certificate has text.
    texts = [path.read_text() for path in (demo / "certificates").iterdir()]
    assert {json.loads(one)["claim"]["id"] for one in texts} == {one["claim"]["id"] for one in file["verdicts"]}
    decisions = pq.read_table(demo / "tables" / "decisions.parquet")["record"].to_pylist()
    assert not any(json.loads(one)["rationales"][0]["text"] in "".join(texts) for one in decisions)


def test_what_is_planted_in_the_demo_is_what_it_says(demo):
    """One agent that is better, two equal ones of which a judge prefers one, and one that is terse."""
    file = json.loads((demo / "verdicts.json").read_text())
    verdicts = {one["claim"]["id"]: one for one in file["verdicts"]}
    level = {name: one["publication_level"] for name, one in verdicts.items()}
    above = [level[f"above[dimension=aggregate,high=cedar,low={low}]"] for low in ("alder", "birch", "dogwood")]
    assert above == ["headline", "headline", "qualified"]
    assert level["within[dimension=aggregate,high=alder,low=birch]"] == "headline"
    liked = verdicts["above[dimension=aggregate,high=alder,low=birch]"]
    assert (liked["publication_level"], liked["own_family"]) == ("no-claim", "rests-on-own-family")
    first = verdicts["first[agent=cedar,dimension=aggregate]"]
    assert (first["stability_status"], first["publication_level"]) == ("stable", "qualified")
    assert "fewer than 60 words" in first["condition"]
    assert file["tiers"]["aggregate"] == [["cedar"], ["alder", "birch"], ["dogwood"]]
    assert file["ranks"]["aggregate"]["birch"] == [2, 3]


LOST = ("judgments", "anchor", "evidence", "probe", "measurements", "decisions", "verdicts", "contexts", "cycles",
        "outcomes")  # fmt: skip


def test_run_again_it_asks_nobody_and_rebuilds_what_was_lost(own, refused, capsys, monkeypatch):
    """Cycles from the seed of the plan, all else from the ledger; without tables, pages and verdicts too."""
    again, before = ["run", str(OWN), "--out", str(own)], (digests(own), asked(own))
    there = {path.name for path in (own / "tables").iterdir()}
    for lost in ("nothing", *LOST, "everything"):
        if lost == "everything":
            shutil.rmtree(own / "tables")
            shutil.rmtree(own / "report")
            (own / "verdicts.json").unlink()
        elif lost != "nothing":
            (own / "tables" / f"{lost}.parquet").unlink()
            if lost == "probe":
                verdicts = (own / "verdicts.json").read_bytes()
                assert "held-out judge has not judged them" in refused("claim", own)
                assert (own / "verdicts.json").read_bytes() == verdicts
        with monkeypatch.context() as patch:
            if lost in LOST:  # pages of calls, which show what no table holds, are made twice only
                patch.setattr(workflow.verbs, "report", partial(workflow.verbs.report, calls="none"))
            assert untraced(lambda: main(again)) == 0, lost
        assert (digests(own), asked(own)) == before, lost
        assert {path.name for path in (own / "tables").iterdir()} == there
        assert "page:" in capsys.readouterr().out
    assert (own / "report" / "index.html").is_file()
    store = Store(RunFolder(own))
    store.write(EVIDENCE, store.read(EVIDENCE)[:-1], {})
    assert "newer than its measurements; run: assaymark measure" in refused("claim", own)
    assert main(["measure", str(own)]) == 0
    for words in (("report", own), ("plan-calls", own, "--budget", "9")):
        assert "newer than its verdicts; run: assaymark claim" in refused(*words)


def test_the_verbs_one_by_one_end_where_run_ends_and_no_key_is_ever_written(own_run, tmp_path, monkeypatch, capsys):
    """This second run of the study has a key in its environment."""
    folder, canary = tmp_path / "verbs", "sk-canary-7f3e91"
    monkeypatch.setenv("OPENAI_API_KEY", canary)
    assert main(["lock", str(OWN), "--out", str(folder)]) == 0
    for verb in ("judge", "measure", "claim", "report"):
        assert main([verb, str(folder)]) == 0, capsys.readouterr().err
    assert findings(folder) == findings(own_run)
    assert not [path for path in folder.rglob("*") if path.is_file() and canary.encode() in path.read_bytes()]


def test_a_damaged_table_is_never_data(own, refused):
    for table in ("contexts", "decisions", "judgments", "measurements"):
        path = own / "tables" / f"{table}.parquet"
        raw = path.read_bytes()
        place = len(raw) // 2
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        assert f"{table}.parquet is damaged" in refused("run", own / "plan.toml", "--out", own)
        path.write_bytes(raw)


FORKED = """
import os, sys, traceback
from functools import partial
from assaymark.cli import main
from assaymark.workflow import verbs

verbs.report = partial(verbs.report, calls="none")
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 99
        try:
            status = main(["run", sys.argv[1], "--out", line.removesuffix("\\n")])
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    print(child, flush=True)
    sys.stdin.readline()  # until then nobody takes the number of a process that is done
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""A process that has imported everything once, and makes no pages of calls. For each folder it is told it runs a study
in a fork, and says the number of that process; for the next line it waits for its end, and says its status."""


def test_killing_it_anywhere_and_running_again_ends_in_the_same_place(own_run, tmp_path):
    """SIGKILL at eight moments spread over the run; each time it goes on, and no reply is asked for twice."""
    out, errors = tmp_path / "killed", tmp_path / "errors"
    command = [sys.executable, "-c", FORKED, str(OWN)]
    pipe = subprocess.PIPE
    with errors.open("w") as log, subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True) as server:
        assert server.stdout.readline() == "ready\n"

        def say(line: object) -> int:
            server.stdin.write(f"{line}\n")
            server.stdin.flush()
            return int(server.stdout.readline())

        started = time.monotonic()
        say(tmp_path / "timing")
        assert say("wait") == 0
        whole, statuses = time.monotonic() - started, []
        # What was judged stays judged, so that later runs are over after little more than half of the time.
        for share in (0.05, 0.2, 0.3, 0.4, 0.5, 0.45, 0.35, 0.25):
            process = say(out)
            time.sleep(whole * share)
            os.kill(process, signal.SIGKILL)
            statuses.append(say("wait"))
        server.stdin.close()
    assert statuses[0] == -signal.SIGKILL
    assert set(statuses) <= {-signal.SIGKILL, 0}
    assert "Traceback" not in errors.read_text()
    ends_as(out, own_run)


def test_a_stop_request_drains_and_the_run_goes_on(tmp_path, own_run):
    out, deadline = tmp_path / "stopped", time.monotonic() + 120
    command = [sys.executable, "-m", "assaymark", "run", str(OWN), "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and time.monotonic() < deadline:
        if (out / "tables" / "decisions.parquet").exists():
            process.send_signal(signal.SIGTERM)
            break
        time.sleep(0.005)
    _, errors = process.communicate(timeout=120)
    assert "Traceback" not in errors
    ends_as(out, own_run)
