"""Any invalid input gives one message that names it, exit status 1, and no half-written file."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from made_records import STUDY, generic_records

from assaymark.cli import main
from assaymark.engine import Ledger
from assaymark.workflow import DECISIONS, RunFolder, Store, store_records


def edited(tmp_path, *changes: tuple[str, str]):
    text = STUDY.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "study.toml"
    path.write_text(text)
    return path


def test_what_is_not_there_or_not_its_own_is_refused_and_nothing_is_written(imported, tmp_path, refused):
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "season.toml").write_text("[calendar]")
    for name in ("empty", "records"):
        (tmp_path / name).mkdir()
    there = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    of_bench = ["import", "capitalbench", "{tmp}/recods", "--out", "{tmp}/none"]
    for words, told in (
        (["judge", "{tmp}/none"], "no such run folder"), (["verify", "{tmp}/s.toml"], "a file, and no run folder"),
        (["run", STUDY, "--out", "{tmp}/empty"], "assaymark import"),
        (["run", "{tmp}/none.toml", "--out", "{run}"], "no such study file"),
        (["run", "{tmp}/s.toml", "--out", "{run}"], "s.toml: is text in UTF-16: save it as UTF-8"),
        (["run", "{tmp}/season.toml", "--out", "{tmp}/none"], "is the file of a season; use: assaymark season init"),
        (["demo", "--out", "{run}"], "holds other records already"),
        (["measure", "{run}"], "has no locked plan"), (["demo", "--out", "{tmp}/s.toml"], "s.toml"),
        (["import", "capitalbank", "{tmp}", "--out", "{tmp}/none"],
         "unknown format 'capitalbank'. Did you mean 'capitalbench'?"),
        (of_bench, "no such folder; give the one that holds contexts.jsonl"),
        (of_bench, "did you mean {tmp}/records?"),
    ):  # fmt: skip
        places = {"tmp": tmp_path, "run": imported}
        assert told.format_map(places) in refused(*[str(word).format_map(places) for word in words])
        assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == there, words


READER = 'model = "reference/reader"'
CLAIMS = STUDY.read_text().partition("[claims]")[2]


def test_a_study_that_is_wrong_names_all_that_is_and_is_not_locked(imported, tmp_path, ran, refused):
    # of clusters that follow each other, twelve are needed, and these are six
    hopeless = ('test = "moderated-t"', 'cluster_order = "consecutive"')
    for changes, told in (
        ([(READER, "model = 7"), ("publish = 0.4", "publsh = 0.5"), ("trials = 2", "trials = 0")],
         ["3 problems", "judges.1.model", "gates.publsh", "judges.1.trials", "(got 0)"]),
        ([('derivations = ["honest"]', 'derivations = ["honest"]\nagents = ["momentun"]'),
          ("pairs = true", 'pairs = true\ndimensions = ["risk_alignement"]')],
         ["Did you mean 'risk_alignment'?", "unknown agent 'momentun'"]),
        ([('name = "v1.0"', 'name = "v1.00"')], ["Did you mean 'v1.0'?"]),
        ([('name = "reader"', 'name = "auditor"'), ("trials = 2", "trials = 0"), ("publish = 0.4", "publsh = 0.5")],
         ["3 problems", "judges: each needs a unique name (got auditor more than once)"]),
        # what could only fail after the lock
        ([("reference/auditor", "reference/audtor"), (READER, f"{READER}\nargs = {{bogus = 3}}"),
          ('name = "v1.0"', 'name = "v1.0"\nweights = {information_use = 3.0, risk_alignment = 1.0}')],
         ["judges.0.model: unknown model 'reference/audtor'. Did you mean 'reference/auditor'?", "judges.1.args",
          "rubric.weights: every dimension needs a weight"]),
        ([(CLAIMS, "\nfirst = false\npairs = false\nwithin = false\n")], ["decides nothing"]),
        ([(CLAIMS, "\nfirst = true\ndimensions = []\n")], ["claims.dimensions"]),
        ([(CLAIMS, '\nfirst = true\ndimensions = ["aggregate", "aggregate"]\n')], ["named once"]),
        ([hopeless], ["allow_hopeless"]),
    ):  # fmt: skip
        message = refused("run", edited(tmp_path, *changes), "--out", imported)
        assert [part for part in told if part not in message] == []
        assert not (imported / "study.lock").exists()
        assert not (imported / "plan.toml").exists()
    knowingly = edited(tmp_path, hopeless, ("level = 0.95", "level = 0.95\nallow_hopeless = true"))
    assert "warning: " in ran("lock", knowingly, "--out", imported)
    assert "make it with assaymark judge" in refused("measure", imported)


def test_a_study_that_leaves_no_record(imported, tmp_path, refused):
    path = edited(tmp_path, ('derivations = ["honest"]', 'agents = ["equal-weight"]\nexclude_flags = ["flagged"]'))
    run = RunFolder(imported)
    flagged = [replace(one, flags=("flagged",)) for one in Store(run).read(DECISIONS)]
    store_records(run, flagged, Store(run).contexts(), ())
    told = "no decision is left to judge (48 by agent not in the plan, 24 by flag flagged)"
    assert told in refused("lock", path, "--out", imported)


def test_a_damaged_run_is_named_with_what_makes_it_again(run, tmp_path, refused):
    text = edited(tmp_path, ("publish = 0.4", "publish = 0.3")).read_bytes()
    assert "differs from the plan locked" in refused("run", tmp_path / "study.toml", "--out", run)
    for name, damage, verb, told in (
        ("plan.toml", text, "claim", "was edited after the lock"),
        ("tables/judgments.parquet", None, "measure", "make it with assaymark judge"),
        *(("study.lock", raw, "claim", "study.lock")
          for raw in (b"{", b"{}", b"[]", b'{"format": "assaymark lock 99"}')),
        *(("tables/manifest.json", raw, "claim", "manifest.json") for raw in (b"{", b"[]", b'{"decisions": 5}')),
    ):  # fmt: skip
        there = (run / name).read_bytes()
        if damage is None:
            (run / name).unlink()
        else:
            (run / name).write_bytes(damage)
        assert told in refused(verb, run), (name, damage)
        (run / name).write_bytes(there)
    manifest = run / "tables" / "manifest.json"
    entries = json.loads(there := manifest.read_text())
    entries["decisions"]["content"] = "0" * 64
    manifest.write_text(json.dumps(entries))
    assert "manifest.json is damaged" in refused("judge", run)
    del entries["decisions"]["seal"]  # as in manifests of earlier versions
    manifest.write_text(json.dumps(entries))
    assert "decisions changed after the lock" in refused("judge", run)
    manifest.write_text(there)
    (run / "ledger.db").write_bytes(b"not a database" * 100)
    (run / "tables/judgments.parquet").unlink()
    assert "ledger.db" in refused("judge", run)


def test_records_can_be_imported_again_into_a_locked_run_and_others_cannot(tmp_path, refused, capsys):
    data, out = tmp_path / "data", tmp_path / "run"
    generic_records(data)
    bringing = ["import", "generic", str(data), "--out", str(out)]
    study = edited(tmp_path, ("alpha = 0.05", "alpha = 0.05\nallow_hopeless = true"))
    assert main(bringing) == main(["lock", str(study), "--out", str(out)]) == 0
    (out / "tables" / "decisions.parquet").unlink()
    assert main(bringing) == main(["judge", str(out)]) == 0
    capsys.readouterr()
    (data / "decisions.csv").write_text((data / "decisions.csv").read_text().replace("rose", "fell"))
    assert "locked on other records" in refused(*bringing)
    with Ledger.open(out / "ledger.db") as ledger:  # their bytes are not kept either
        assert {ledger.get_object(one.sha256).count(b"fell") for one in ledger.sources()} == {0}


def test_a_failed_import_leaves_nothing(tmp_path, refused):
    (tmp_path / "decisions.jsonl").write_text('{"round_id": 3}\nnot json\n')
    (tmp_path / "contexts.jsonl").write_text("")
    message = refused("import", "capitalbench", tmp_path, "--out", tmp_path / "run")
    assert re.search(r"decisions.jsonl.*line 2", message, re.S)
    assert not (tmp_path / "run").exists()


PLAN = """
name = "s"
seed = 1
[substrate]
regimes = ["liquidity"]
cycles = 3
[inference]
allow_hopeless = true
[[agents]]
name = "one"
family = "a"
model = "reference/momentum"
[[agents]]
name = "two"
family = "b"
model = "reference/equal-weight"
[[judges]]
name = "north"
family = "n"
model = "reference/auditor"
"""
LIBRARY = re.compile(
    r"input should|extra inputs|field required|valid (tuple|dictionary|string|integer|number|boolean)|validation"
    r"|keyword|permitted|pydantic|arrow|parse error|block size|string should|instance of|\^\[",
    re.IGNORECASE,
)


AUDITOR, N = '"reference/auditor"', 'family = "n"'
WRONG = [
    ("seed = 1", "seed = 1\nsubstarte = 3", "substarte: unknown key; did you mean 'substrate'?"),
    (N, f"{N}\ntemprature = 0.2", "judges.0.temprature: unknown key; did you mean 'temperature'"),
    (N, f"{N}\nhuman = true", "judges.0.human: unknown key; known are args, effort, family"),
    ("[inference]", "[infrence]", "infrence: unknown key; did you mean 'inference'?"),
    (AUDITOR, '"gpt-4o"', "(got 'gpt-4o'); did you mean 'openai/gpt-4o'?"),
    (AUDITOR, '"claude-opus-5"', "did you mean 'anthropic/claude-opus-5'?"),
    (AUDITOR, '"gemini-2.5-pro"', "did you mean 'google/gemini-2.5-pro'?"),
    (AUDITOR, '"OpenAI:gpt-4o"', "did you mean 'openai/gpt-4o'?"),
    (AUDITOR, '"ollama/llama3"', "Did you mean 'openai-chat/llama3'?"),
    (AUDITOR, '"http://me:secret@host/x"', "(got an address that may hold a secret, not shown)"),
    ("[[judges]]", "[judges]", "judges: is a list of tables: write [[judges]] in place of [judges]"),
    ("[inference]", "[[inference]]", "inference: is one table: write [inference] in place of [[inference]]"),
    ("seed = 1", "seed = 1.5", "seed: must be a whole number (got 1.5)"),
    ('["liquidity"]', '"liquidity"', "substrate.regimes: must be a list (got 'liquidity')"),
    ("cycles = 3", "cycles = -3", "substrate.cycles: must be at least 1 (got -3)"),
    ("allow_hopeless = true", 'allow_hopeless = "maybe"', "must be true or false (got 'maybe')"),
    (N, f'{N}\neffort = "hihg"', "(got 'hihg'); did you mean 'high'?"),
    (N, f"{N}\nargs = {{ x = 2024-01-01 }}", "judges.0.args.x: must be text, a whole number"),
    ('name = "s"\n', "", "name: is missing"),
    (PLAN, '{"name": "s"}', "it looks like JSON, and has to be written as TOML"),
    (PLAN, "name: s\nseed: 1\n", "it looks like YAML, and has to be written as TOML"),
]


def test_a_plan_that_is_wrong_is_answered_in_our_words_with_what_was_meant(tmp_path, refused):
    for old, new, said in WRONG:
        assert old in PLAN
        (tmp_path / "s.toml").write_text(PLAN.replace(old, new, 1))
        err = refused("lock", tmp_path / "s.toml", "--out", tmp_path / "run")
        assert said in err
        assert not LIBRARY.search(err), err
        assert "secret@" not in err


def test_a_module_that_is_not_on_the_path_is_told_to_be_put_there(tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lonely_agents.py").write_text("def decide(context):\n    return {}\n")
    for module, said in (
        ("lonely_agents", "lonely_agents is in this folder: put PYTHONPATH=. in front of the command, or install it"),
        ("nowhere.agents", "that holds nowhere.py or nowhere/ in front of the command: PYTHONPATH=FOLDER"),
    ):
        (tmp_path / "s.toml").write_text(PLAN.replace("reference/momentum", f"python/{module}:decide"))
        assert said in refused("run", "s.toml", "--out", "run")
        assert not (tmp_path / "run").exists()
