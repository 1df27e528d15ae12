"""Every command that ends with a result gives it to a program: one document, sorted keys, nothing else on stdout."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from made_records import OWN
from season_runs import NOW, market, season_text

from assaymark.cli import main
from assaymark.market import Origin, snapshot_of
from assaymark.workflow import verbs

SHEET = ["datasheet", "--judge", "reference/checklist", "--out", "OUT"]


def result_of(capsys, *words):
    """The document that a command prints, and its status."""
    status = main([*map(str, words), "--json"])
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    pairs = json.loads(out, object_pairs_hook=lambda found: found)
    assert [key for key, _ in pairs] == sorted(key for key, _ in pairs)
    return status, json.loads(out)


RESULTS = [
    (["run", OWN, "--out", "RUN"], {"page", "verdicts", "paid"}),
    (["run", OWN, "--out", "RUN", "--dry-run"], {"dry_run", "models", "usd"}),
    (["lock", OWN, "--out", "RUN"], {"plan_hash", "locked_at", "preflight", "date_probes"}),
    (["judge", "RUN"], {"judgments", "evidence", "made", "reasked", "paid"}),
    (["judge", "RUN", "--dry-run"], {"dry_run", "models", "usd"}),
    (["worker", "RUN"], {"planned", "already", "made", "failed", "elsewhere", "interrupted"}),
    (["measure", "RUN"], {"measurements"}), (["claim", "RUN"], {"verdicts", "tally", "measurements"}),
    (["report", "RUN", "--calls", "none"], {"page", "verdicts"}), (["plan-calls", "RUN", "--budget", "10"], set()),
    (["export", "RUN", "--arrow", "OUT"], {"logs", "tables"}), (["doctor"], {"findings", "can_run"}),
    ([*SHEET, "--tasks", "TASKS"], {"page", "datasheets", "agreement", "paid"}),
    ([*SHEET, "--dry-run"], {"dry_run", "models", "usd"}),
    (["data", "synth", "--out", "DATA"], {"snapshot", "instruments"}),
    (["data", "pull", "synthetic", "--out", "DATA2"], {"snapshot", "instruments"}),
    (["data", "show", "DATA"], {"snapshot", "instruments"}),
]  # fmt: skip


def test_results(own, tasks, tmp_path, capsys, monkeypatch):
    small = snapshot_of(market(), "small", Origin(source="tests", retrieved_at=NOW))
    monkeypatch.setattr("assaymark.market.synthetic_snapshot", lambda _seed: small)
    fewer = partial(verbs.plan_calls_report, studies=2)  # what it foretells is held against planted studies elsewhere
    monkeypatch.setattr(verbs, "plan_calls_report", fewer)
    places = {name: tmp_path / name for name in ("OUT", "DATA", "DATA2")} | {"RUN": own, "TASKS": tasks}
    for words, keys in RESULTS:
        status, found = result_of(capsys, *(places.get(word, word) for word in words))
        assert status == 0, words
        assert keys <= found.keys(), words


def test_the_results_of_a_benchmark(tmp_path, capsys):
    asked = ("bench", "qa", "--model", "reference/portbench-steady", "--per-template", "2", "--out", tmp_path / "run")
    _, found = result_of(capsys, *asked, "--dry-run")
    assert found["models"][0]["stages"] == {"questions": 18}
    assert found["usd"] == 0
    status, found = result_of(capsys, *asked)
    assert status == 0
    assert Path(found["page"]).is_file()
    assert result_of(capsys, "report", tmp_path / "run")[1]["verdicts"] == found["verdicts"]


def test_the_results_of_a_season(tmp_path, capsys):
    (tmp_path / "season.toml").write_text(season_text(last="2024-03-06"), encoding="utf-8")
    _, made = result_of(capsys, "season", "init", tmp_path / "season.toml", "--out", tmp_path / "run")
    assert made["next"] == f"assaymark season run {tmp_path / 'run'}"
    _, first = result_of(capsys, "season", "step", tmp_path / "run")
    assert first["days"] == ["2024-03-01"]
    assert set(first["navs"]) == {"one", "two"}
    _, rest = result_of(capsys, "season", "run", tmp_path / "run")
    assert rest["days"] == ["2024-03-04", "2024-03-05", "2024-03-06"]
    assert result_of(capsys, "season", "run", tmp_path / "run")[1]["days"] == []


def test_an_error_leaves_nothing_on_stdout(tmp_path, capsys):
    assert main(["judge", str(tmp_path / "none"), "--json"]) == 1
    assert capsys.readouterr().out == ""
