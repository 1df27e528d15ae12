"""Whatever is wrong with what a person hands in: one message that names it, exit status 1, nothing half-written."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial

import pytest
from made_records import STUDY, generic_records, refused

from assaymark.cli import main
from assaymark.workflow import DECISIONS, RunFolder, Store, store_records


def edited(tmp_path, *changes: tuple[str, str]):
    text = STUDY.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "study.toml"
    path.write_text(text)
    return path


def put(run, name: str, text: str) -> None:
    (run / name).write_text(text)


@pytest.mark.parametrize(("words", "told"), [
    (["judge", "{tmp}/none"], "no such run folder"),
    (["run", STUDY, "--out", "{tmp}/empty"], "assaymark import"),
    (["run", "{tmp}/none.toml", "--out", "{run}"], "no such study file"),
    (["run", "{tmp}/s.toml", "--out", "{run}"], "s.toml: is text in UTF-16: save it as UTF-8"),
    (["demo", "--out", "{run}"], "holds other records already"),
    (["measure", "{run}"], "has no locked plan"),
    (
        ["import", "capitalbank", "{tmp}", "--out", "{tmp}/none"],
        "unknown format 'capitalbank'. Did you mean 'capitalbench'?",
    ),
    (
        ["import", "capitalbench", "{tmp}/recods", "--out", "{tmp}/none"],
        "no such folder; give the one that holds contexts.jsonl",
    ),
    (["import", "capitalbench", "{tmp}/recods", "--out", "{tmp}/none"], "did you mean {tmp}/records?"),
    (["demo", "--out", "{tmp}/s.toml"], "s.toml"),
])  # fmt: skip
def test_what_is_not_there_or_not_its_own_is_refused_and_nothing_is_written(words, told, imported, tmp_path, capsys):
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("empty", "records"):
        (tmp_path / name).mkdir()
    there = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    places = {"tmp": tmp_path, "run": imported}
    assert told.format_map(places) in refused([str(word).format_map(places) for word in words], capsys)
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == there


READER = 'model = "reference/reader"'
CLAIMS = STUDY.read_text().partition("[claims]")[2]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([(READER, "model = 7"), ("publish = 0.4", "publsh = 0.5"), ("trials = 2", "trials = 0")],
         ["3 problems", "judges.1.model", "gates.publsh", "judges.1.trials", "(got 0)"]),
        ([('derivations = ["honest"]', 'derivations = ["honest"]\nagents = ["momentun"]'),
          ("pairs = true", 'pairs = true\ndimensions = ["risk_alignement"]')],
         ["Did you mean 'risk_alignment'?", "unknown agent 'momentun'"]),
        ([('name = "v1.0"', 'name = "v1.00"')], ["Did you mean 'v1.0'?"]),
        # what could only fail after the lock
        ([("reference/auditor", "reference/audtor"), (READER, f"{READER}\nargs = {{bogus = 3}}"),
          ('name = "v1.0"', 'name = "v1.0"\nweights = {information_use = 3.0, risk_alignment = 1.0}')],
         ["judges.0.model: unknown model 'reference/audtor'. Did you mean 'reference/auditor'?", "judges.1.args",
          "rubric.weights: every dimension needs a weight"]),
        ([(CLAIMS, "\nfirst = false\npairs = false\nwithin = false\n")], ["decides nothing"]),
        ([(CLAIMS, "\nfirst = true\ndimensions = []\n")], ["claims.dimensions"]),
        ([(CLAIMS, '\nfirst = true\ndimensions = ["aggregate", "aggregate"]\n')], ["named once"]),
        # of clusters that follow each other, twelve are needed, and these are six
        ([('test = "moderated-t"', 'cluster_order = "consecutive"')], ["allow_hopeless"]),
    ],
)  # fmt: skip
def test_a_study_that_is_wrong_names_all_that_is_and_is_not_locked(imported, tmp_path, capsys, changes, told):
    message = refused(["run", edited(tmp_path, *changes), "--out", imported], capsys)
    assert [part for part in told if part not in message] == []
    assert not (imported / "study.lock").exists()
    assert not (imported / "plan.toml").exists()


def test_a_study_that_leaves_no_record(imported, tmp_path, capsys):
    path = edited(tmp_path, ('derivations = ["honest"]', 'agents = ["equal-weight"]\nexclude_flags = ["flagged"]'))
    decisions = Store(RunFolder(imported)).read(DECISIONS)
    store_records(
        RunFolder(imported), [replace(one, flags=("flagged",)) for one in decisions],
        Store(RunFolder(imported)).contexts(), (),
    )  # fmt: skip
    assert "no decision is left to judge (48 by agent not in the plan, 24 by flag flagged)" in refused(
        ["lock", path, "--out", imported], capsys
    )


def test_a_plan_that_can_never_reject_is_locked_knowingly(imported, tmp_path, capsys):
    hopeless = ('test = "moderated-t"', 'cluster_order = "consecutive"')
    knowingly = edited(tmp_path, hopeless, ("level = 0.95", "level = 0.95\nallow_hopeless = true"))
    assert main(["lock", str(knowingly), "--out", str(imported)]) == 0
    assert "warning: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("damage", "verb", "told"),
    [
        (lambda run: put(run, "plan.toml", STUDY.read_text().replace("publish = 0.4", "publish = 0.3")), "claim",
         "was edited after the lock"),
        (lambda run: (run / "tables/judgments.parquet").unlink(), "measure", "make it with assaymark judge"),
        (lambda run: [(run / "ledger.db").write_bytes(b"not a database" * 100),
                      (run / "tables/judgments.parquet").unlink()], "judge", "ledger.db"),
        *((partial(put, name="study.lock", text=text), "claim", "study.lock")
          for text in ("{", "{}", "[]", '{"format": "assaymark lock 99"}')),
        *((partial(put, name="tables/manifest.json", text=text), "claim", "manifest.json")
          for text in ("{", "[]", '{"decisions": 5}')),
    ],
)  # fmt: skip
def test_a_damaged_run_is_named_with_what_makes_it_again(run, capsys, damage, verb, told):
    damage(run)
    assert told in refused([verb, run], capsys)


def test_another_plan_for_a_locked_folder(run, tmp_path, capsys):
    path = edited(tmp_path, ("publish = 0.4", "publish = 0.3"))
    assert "differs from the plan locked" in refused(["run", path, "--out", run], capsys)


def test_records_changed_after_the_lock(run, capsys):
    manifest = run / "tables" / "manifest.json"
    entries = json.loads(manifest.read_text())
    entries["decisions"]["content"] = "0" * 64
    manifest.write_text(json.dumps(entries))
    assert "manifest.json is damaged" in refused(["judge", run], capsys)
    del entries["decisions"]["seal"]  # as in manifests of earlier versions
    manifest.write_text(json.dumps(entries))
    assert "decisions changed after the lock" in refused(["judge", run], capsys)


def test_a_verb_before_its_turn(imported, capsys):
    assert main(["lock", str(STUDY), "--out", str(imported)]) == 0
    assert "make it with assaymark judge" in refused(["measure", imported], capsys)


def test_records_can_be_imported_again_into_a_locked_run_and_others_cannot(tmp_path, capsys):
    data = tmp_path / "data"
    generic_records(data)
    out = tmp_path / "run"
    assert main(["import", "generic", str(data), "--out", str(out)]) == 0
    study = edited(tmp_path, ("alpha = 0.05", "alpha = 0.05\nallow_hopeless = true"))
    assert main(["lock", str(study), "--out", str(out)]) == 0
    (out / "tables" / "decisions.parquet").unlink()
    assert main(["import", "generic", str(data), "--out", str(out)]) == 0
    assert main(["judge", str(out)]) == 0
    capsys.readouterr()
    (data / "decisions.csv").write_text((data / "decisions.csv").read_text().replace("rose", "fell"))
    assert "locked on other records" in refused(["import", "generic", data, "--out", out], capsys)


def test_a_failed_import_leaves_nothing(tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    (data / "decisions.jsonl").write_text('{"round_id": 3}\nnot json\n')
    (data / "contexts.jsonl").write_text("")
    message = refused(["import", "capitalbench", data, "--out", tmp_path / "run"], capsys)
    assert "decisions.jsonl" in message
    assert "line 2" in message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("arguments", [["import", "capitalbench"], ["run"], ["nonsense"], ["run", "x.toml"],
                                       ["claim"], ["measure"], ["datasheet"]])  # fmt: skip
def test_misuse_of_the_command_line_is_status_2(arguments, capsys):
    assert main(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


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


@pytest.mark.parametrize(("old", "new", "said"), [
    ("seed = 1", "seed = 1\nsubstarte = 3", "substarte: unknown key; did you mean 'substrate'?"),
    ('family = "n"', 'family = "n"\ntemprature = 0.2', "judges.0.temprature: unknown key; did you mean 'temperature'",),
    ('family = "n"', 'family = "n"\nhuman = true', "judges.0.human: unknown key; known are args, effort, family"),
    ("[inference]", "[infrence]", "infrence: unknown key; did you mean 'inference'?"),
    ('"reference/auditor"', '"gpt-4o"', "(got 'gpt-4o'); did you mean 'openai/gpt-4o'?"),
    ('"reference/auditor"', '"claude-opus-5"', "did you mean 'anthropic/claude-opus-5'?"),
    ('"reference/auditor"', '"gemini-2.5-pro"', "did you mean 'google/gemini-2.5-pro'?"),
    ('"reference/auditor"', '"OpenAI:gpt-4o"', "did you mean 'openai/gpt-4o'?"),
    ('"reference/auditor"', '"ollama/llama3"', "Did you mean 'openai-chat/llama3'?"),
    ('"reference/auditor"', '"http://me:secret@host/x"', "(got an address that may hold a secret, not shown)"),
    ("[[judges]]", "[judges]", "judges: is a list of tables: write [[judges]] in place of [judges]"),
    ("[inference]", "[[inference]]", "inference: is one table: write [inference] in place of [[inference]]"),
    ("seed = 1", "seed = 1.5", "seed: must be a whole number (got 1.5)"),
    ('["liquidity"]', '"liquidity"', "substrate.regimes: must be a list (got 'liquidity')"),
    ("cycles = 3", "cycles = -3", "substrate.cycles: must be at least 1 (got -3)"),
    ("allow_hopeless = true", 'allow_hopeless = "maybe"', "must be true or false (got 'maybe')"),
    ('family = "n"', 'family = "n"\neffort = "hihg"', "(got 'hihg'); did you mean 'high'?"),
    ('family = "n"', 'family = "n"\nargs = { x = 2024-01-01 }', "judges.0.args.x: must be text, a whole number"),
    ('name = "s"\n', "", "name: is missing"),
    (PLAN, '{"name": "s"}', "it looks like JSON, and has to be written as TOML"),
    (PLAN, "name: s\nseed: 1\n", "it looks like YAML, and has to be written as TOML"),
])  # fmt: skip
def test_a_plan_that_is_wrong_is_answered_in_our_words_with_what_was_meant(tmp_path, capsys, old, new, said):
    assert old in PLAN
    (tmp_path / "s.toml").write_text(PLAN.replace(old, new, 1))
    err = refused(["lock", tmp_path / "s.toml", "--out", tmp_path / "run"], capsys)
    assert said in err
    assert not LIBRARY.search(err), err
    assert "secret@" not in err


SHEET, OLD_SHEET = b"PK\x03\x04\x14\x00\x06\x00\x84\xff", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@pytest.mark.parametrize("data", [SHEET, OLD_SHEET], ids=["xlsx", "xls"])
@pytest.mark.parametrize("name", ["sheet.xlsx", "sheet.csv"])
def test_a_spreadsheet_is_told_to_be_saved_as_csv(tmp_path, capsys, data, name):
    path = tmp_path / name
    path.write_bytes(data)
    for command in (
        ["measure", "--judgments", path, "--dimensions", "a"],
        ["datasheet", "--from", path, "--out", tmp_path / "out"],
        ["data", "pull", "files", "--option", f"path={path}", "--out", tmp_path / "market"],
        ["run", path, "--out", tmp_path / "run"],
    ):
        err = refused(command, capsys)
        assert "is a spreadsheet" in err
        assert "save the sheet as CSV (UTF-8)" in err
    if name.endswith("x"):
        assert "sheet.xlsx: save each sheet as CSV" in refused(["import", "generic", tmp_path, "--out", "r"], capsys)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.parquet", b"nope"), ("a.arrow", b"nope"), ("a.csv", b"date,A\n2024-03-01,2,3\n"), ("a.csv", b""),
        ("a.csv", b"date,A\nsoon,2\n"), ("a.parquet", b"PAR1" + b"0" * 40 + b"PAR1"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_read_is_answered_in_our_words(tmp_path, capsys, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    for command in (
        ["measure", "--judgments", path, "--dimensions", "a"],
        ["data", "pull", "files", "--option", f"path={path}", "--out", tmp_path / "market"],
    ):
        err = refused(command, capsys)
        assert not LIBRARY.search(err.replace("a.arrow", "").replace(".arrow", "")), err


def test_a_module_that_is_not_on_the_path_is_told_to_be_put_there(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lonely_agents.py").write_text("def decide(context):\n    return {}\n")
    for module, said in (
        ("lonely_agents", "lonely_agents is in this folder: put PYTHONPATH=. in front of the command, or install it"),
        ("nowhere.agents", "that holds nowhere.py or nowhere/ in front of the command: PYTHONPATH=FOLDER"),
    ):
        (tmp_path / "s.toml").write_text(PLAN.replace("reference/momentum", f"python/{module}:decide"))
        assert said in refused(["run", "s.toml", "--out", "run"], capsys)
        assert not (tmp_path / "run").exists()
