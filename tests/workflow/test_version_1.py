"""Runs of version 1: refused in one line, and brought under the rules of version 2 without paying for them again."""

from __future__ import annotations

import hashlib
import json
import shutil
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import made_aitrader
import pytest
import version_1_runs as old_runs
from full_records import grades, make, study
from imported_records import imported_records, store_imported
from made_records import STUDY
from version_1_runs import back_to_1

from assaymark.cli import main, models
from assaymark.errors import InputError, LedgerError, PlanError
from assaymark.protocol import parse_study
from assaymark.records import content_id
from assaymark.workflow import RunFolder, adopt_rules, open_locked, open_version_1, renewed_text, store_records, tracks
from assaymark.workflow import import_files as import_records

NOW = datetime(2026, 11, 1, tzinfo=UTC)

HASH_OF_0_1 = "79e8bfcc21b7ad253eebc1fa99aa2a714abf8dabc488cec48b6ede992ad58dcd"
"""The plan hash that assaymark 0.1.0 locked for the study of these tests on their records."""

TABLES_OF_0_1 = {
    "contexts": "b13af233769aca8026e6020dba942249f635015956d56424898b661e0b51e7bc",
    "decisions": "46df5361f49b9e283dbb1e88ee486addbf64daf7bfda788d8387344f85f5d086",
}


def done(*arguments: object) -> None:
    assert main([*map(str, arguments)]) == 0


@pytest.fixture(scope="session")
def judged_1(own_copy) -> Path:
    """A judged run of version 1 with pages and verdicts. Not to be changed."""

    def build(base: Path) -> None:
        folder = store_imported(base / "run").path
        done("lock", STUDY, "--out", folder)
        done("judge", folder)
        back_to_1(folder, "study", old_runs.STUDY_1)
        (folder / "verdicts.json").write_text('{"verdicts": "false orders"}')
        (folder / "report").mkdir()
        (folder / "report" / "index.html").write_text("false orders")

    return own_copy("judged-1", build) / "run"


@pytest.fixture
def old(judged_1, tmp_path) -> Path:
    return Path(shutil.copytree(judged_1, tmp_path / "old"))


@pytest.fixture(scope="session")
def season_1(own_copy) -> Path:
    """A judged season of version 1. Not to be changed."""

    def build(base: Path) -> None:
        (base / "season.toml").write_text(old_runs.SEASON)
        done("season", "init", base / "season.toml", "--out", base / "run")
        done("season", "run", base / "run")
        done("season", "judge", base / "run")
        back_to_1(base / "run", "season", old_runs.SEASON_1)

    return own_copy("season-1", build) / "run"


@pytest.fixture(scope="session")
def bench_1(own_copy) -> Path:
    """A benchmark of version 1 with a panel. Not to be changed."""

    def build(base: Path) -> None:
        (base / "bench.toml").write_text(old_runs.BENCHMARK)
        done("bench", "pipeline", base / "bench.toml", "--out", base / "run")
        back_to_1(base / "run", "benchmark", old_runs.BENCHMARK)
        back_to_1(base / "run" / "rationales", "panel", old_runs.PANEL_1)

    return own_copy("bench-1", build) / "run"


RECORDS = 'name = "log"\n[market]\nsource = "records"\nformat = "aitrader"\ntrack = "cn-hourly"\n'


def kept(folder: Path) -> dict[str, str]:
    """The ledger and every table that no rule had a part in, by digest."""
    found = [*folder.rglob("ledger.db"), *folder.rglob("tables/*.parquet"), *folder.rglob("days.journal")]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in found
        if path.stem not in ("measurements", "verdicts")
    }


def told(arguments: list[object], capsys, status: int = 1) -> str:
    capsys.readouterr()
    assert main([*map(str, arguments)]) == status
    heard = capsys.readouterr()
    return " ".join((heard.err if status else heard.out).split())


def test_the_plan_hash_of_0_1_is_still_found():
    # If this fails, what judges are told differs from 0.1: no run of 0.1 can go on, for its replies answer other calls.
    texts = old_runs.study_texts(STUDY.read_text())
    found = content_id({"plan": old_runs.FIELDS["study"], "texts": texts, "tables": TABLES_OF_0_1})
    assert found == HASH_OF_0_1


REFUSED = {
    "judged_1": (
        "run STUDY --out RUN", "run STUDY --out RUN --dry-run", "lock STUDY --out RUN", "judge RUN",
        "amend STUDY --out RUN --reason none", "judge RUN --dry-run", "measure RUN", "claim RUN", "report RUN",
        "report RUN --out RUN-site", "plan-calls RUN --budget 5", "worker RUN", "serve RUN --port 0",
        "datasheet --run RUN", "season judge RUN", "demo --out RUN",
    ),
    "season_1": ("season run RUN", "season step RUN", "season judge RUN", "season judge RUN --dry-run",
                 "season publish RUN --out RUN-site", "report RUN", "judge RUN"),
    "bench_1": ("bench pipeline --out RUN", "bench qa --out RUN", "bench qa --out RUN --dry-run", "report RUN"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_every_command_refuses_it_in_one_line(kind, request, tmp_path, capsys):
    folder = shutil.copytree(request.getfixturevalue(kind), tmp_path / "run")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    capsys.readouterr()
    for command in REFUSED[kind]:
        words = command.split(" ")
        assert main([one.replace("RUN", str(folder)).replace("STUDY", str(STUDY)) for one in words]) == 1, command
        said = capsys.readouterr().err
        assert said.count("\n") == 1, command
        assert "is a run of version 1, which assaymark 0.1 reads" in said
        assert f"assaymark amend {folder} --rules 2" in said
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before, command


def test_its_tables_can_still_be_copied_and_its_plan_opened(old, tmp_path):
    done("export", old, "--arrow", tmp_path / "arrow")
    assert (tmp_path / "arrow" / "judgments.arrow").is_file()
    opened = open_version_1(RunFolder(old))
    assert opened.plan_hash == json.loads((old / "study.lock").read_text())["plan_hash"]
    assert [one.name for one in opened.study.judges] == ["auditor", "reader", "allocator"]


def test_an_edited_plan_or_record_does_not_come_in_with_the_new_rules(old, season_1, bench_1, tmp_path):
    edits = ((old, "publish = 0.4 ", "publish = 0.3 "), (season_1, "universe = 6", "universe = 7"),
             (bench_1, "instruments = 12", "instruments = 13"))  # fmt: skip
    for source, *change in edits:
        folder = Path(shutil.copytree(source, tmp_path / "edited" / source.parent.name))
        text = (folder / "plan.toml").read_text()
        (folder / "plan.toml").write_text(text.replace(*change))
        for opening in (lambda run: adopt_rules(run, now=NOW), *([open_version_1] if source == old else [])):
            with pytest.raises(PlanError, match="was edited after the lock"):
                opening(RunFolder(folder))
        assert not (folder / "amendments").exists()
    lock = json.loads((old / "study.lock").read_text())
    (old / "study.lock").write_text(json.dumps({**lock, "tables": {**lock["tables"], "decisions": "other"}}))
    with pytest.raises(PlanError, match="records changed after the lock"):
        adopt_rules(RunFolder(old), now=NOW)
    (old / "study.lock").write_text('{"format": "assaymark lock 1"}')
    with pytest.raises(LedgerError, match=r"study\.lock is damaged"):
        adopt_rules(RunFolder(old), now=NOW)
    assert not (old / "amendments").exists()


def test_a_study_goes_on_under_the_new_rules_once_and_pays_nothing_again(old, tmp_path, capsys):
    before = kept(old)
    said = told(["amend", old, "--rules", "2"], capsys, 0)
    for words in ("Scores of this run had been seen, so its claims are not preregistered.",
                  "inference.gating_test: auto -> not set", "inference.test: not set -> moderated-t"):  # fmt: skip
        assert words in said
    assert kept(old) == before
    locked = open_locked(RunFolder(old))
    assert locked.study == parse_study(STUDY.read_text())
    assert (locked.preregistered, locked.amended) == (False, ())
    made = json.loads((old / "amendments" / "0001.json").read_text())
    assert locked.amendments[0].plan_before == made["plan_before"]["hash"] != locked.plan_hash
    assert json.loads(told(["judge", old, "--json"], capsys, 0))["made"] == 0
    # What version 1 decided is kept aside and not shown.
    assert not (old / "verdicts.json").exists()
    assert not (old / "report").exists()
    for name in ("report/index.html", "verdicts.json"):
        assert "false orders" in (old / "version-1" / name).read_text()
    assert "assaymark claim" in told(["plan-calls", old, "--budget", "5"], capsys)
    # Its file keeps the lines of whoever wrote it.
    text = (old / "plan.toml").read_text()
    assert [one for one in ("# --- the panel ---", 'version = "2"', 'test = "moderated-t"', "margin = 0.075",
                            "per_judge = 0.05") if one not in text] == []  # fmt: skip
    assert [one for one in ("reader: likes", "gating_test", "rankings") if one in text] == []
    assert made["plan_before"]["text"] == old_runs.STUDY_1
    # It is done once, and later amendments keep that scores had been seen.
    assert "nothing to amend" in told(["amend", old, "--rules", "2"], capsys)
    assert "has no locked plan" in told(["amend", tmp_path, "--rules", "2"], capsys)
    assert "a run folder and nothing else" in told(["amend", old, "--rules", "2", "--reason", "x"], capsys, 2)
    assert "--out and --reason are needed" in told(["amend", STUDY], capsys, 2)
    path = tmp_path / "retitled.toml"
    path.write_text(STUDY.read_text().replace('title = "Three', 'title = "The three'))
    done("amend", path, "--out", old, "--reason", "clearer")
    locked = open_locked(RunFolder(old))
    assert (locked.preregistered, locked.amended, len(locked.amendments)) == (False, ("title",), 2)


def test_a_study_that_nobody_was_asked_about_stays_preregistered(imported):
    done("lock", STUDY, "--out", imported)
    back_to_1(imported, "study", old_runs.STUDY_1)
    made = adopt_rules(RunFolder(imported), now=NOW)
    assert made.reason.endswith("No model had been called.")
    assert open_locked(RunFolder(imported)).preregistered
    done("lock", STUDY, "--out", imported)  # the same plan


def test_the_grades_of_people_are_kept(tmp_path, capsys):
    folder, path = make(tmp_path / "run").path, study(tmp_path / "study.toml", people=True)
    done("import", "human", grades(tmp_path / "grades.csv"), "--out", folder)
    done("lock", path, "--out", folder)
    done("judge", folder)
    plan = parse_study(path.read_text())
    back_to_1(folder, "study", old_runs.version_1(path.read_text()), old_runs.without_new(plan))
    before = kept(folder)
    assert "tables/human.parquet" in before
    adopt_rules(RunFolder(folder), now=NOW)
    assert kept(folder) == before
    assert json.loads(told(["judge", folder, "--json"], capsys, 0))["made"] == 0


def test_a_plan_that_can_order_nobody_goes_on_too(tmp_path):
    decisions, contexts = imported_records()
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    store_records(folder, [one for one in decisions if one.cluster in ("sell-off", "rebound")], contexts, ())
    (tmp_path / "study.toml").write_text(STUDY.read_text().replace("alpha =", "allow_hopeless = true\nalpha ="))
    done("lock", tmp_path / "study.toml", "--out", folder.path)
    back_to_1(folder.path, "study", old_runs.STUDY_1)
    adopt_rules(folder, now=NOW)
    assert not open_locked(folder).study.inference.allow_hopeless


def test_a_run_of_version_1_can_be_verified(old, capsys):
    out = told(["verify", old], capsys, 0)
    assert "the call log does not have it: no call was made under it yet, or it was made by an earlier version" in out
    (old / "tables" / "judgments.parquet").write_bytes(b"")
    assert main(["verify", str(old)]) == 1
    assert "DIFFERS  tables/judgments.parquet: is damaged" in capsys.readouterr().out


def test_killed_half_way_it_can_be_done_again(old):
    lock, plan = (old / "study.lock").read_bytes(), (old / "plan.toml").read_bytes()
    adopt_rules(RunFolder(old), now=NOW)
    after = (old / "study.lock").read_bytes()
    for killed_after in ("plan", "file"):
        (old / "study.lock").write_bytes(lock)
        if killed_after == "file":
            (old / "plan.toml").write_bytes(plan)
        adopt_rules(RunFolder(old), now=NOW)
        assert (old / "study.lock").read_bytes() == after
        assert [one.name for one in (old / "amendments").iterdir()] == ["0001.json"]


def test_a_season_goes_on_and_pays_nothing_again(season_1, tmp_path, capsys):
    folder = Path(shutil.copytree(season_1, tmp_path / "run"))
    before = kept(folder)
    assert not json.loads(told(["amend", folder, "--rules", "2", "--json"], capsys, 0))["preregistered"]
    assert kept(folder) == before
    stored = tracks.stored_season(RunFolder(folder))
    assert (stored.preregistered, len(stored.amendments)) == (False, 1)
    assert stored.amendments[0].plan_before == json.loads((season_1 / "study.lock").read_text())["plan_hash"]
    assert json.loads(told(["season", "judge", folder, "--json"], capsys, 0))["made"] == 0
    assert json.loads(told(["season", "run", folder, "--json"], capsys, 0))["days"] == []
    (tmp_path / "season.toml").write_text(old_runs.SEASON)
    done("season", "init", tmp_path / "season.toml", "--out", folder)  # the same season


def test_a_season_of_records_goes_on(tmp_path):
    log, folder = tmp_path / "log", RunFolder(tmp_path / "run")
    log.mkdir()
    for name, data in made_aitrader.files().items():
        (log / name).write_bytes(data)
    import_records("aitrader", log, folder)
    season = tracks.lock_season(folder, RECORDS, "log.toml", models(), now=NOW).season
    back_to_1(folder.path, "season", RECORDS, old_runs.without_new(season))
    lock = json.loads(folder.lock.read_text())
    folder.lock.write_text(json.dumps({**lock, "inputs": {**lock["inputs"], "market": "other records"}}))
    with pytest.raises(PlanError, match="records changed after the lock"):
        adopt_rules(folder, now=NOW)
    folder.lock.write_text(json.dumps(lock))
    made = adopt_rules(folder, now=NOW)
    assert made.reason.endswith("No model had been called.")
    locked = tracks.lock_season(folder, RECORDS, "log.toml", models(), now=NOW)
    assert (locked.preregistered, locked.amendments) == (True, (made,))


def test_a_benchmark_goes_on_with_its_panel_and_pays_nothing_again(bench_1, tmp_path, capsys):
    folder = Path(shutil.copytree(bench_1, tmp_path / "run"))
    before = kept(folder)
    assert "not preregistered" in told(["amend", folder, "--rules", "2"], capsys, 0)
    assert kept(folder) == before
    locked, panel = tracks.open_bench(RunFolder(folder)), open_locked(RunFolder(folder / "rationales"))
    assert (locked.preregistered, panel.preregistered) == (False, False)
    path = tmp_path / "bench.toml"
    path.write_text(old_runs.BENCHMARK)
    assert json.loads(told(["judge", folder / "rationales", "--json"], capsys, 0))["made"] == 0
    assert json.loads(told(["bench", "pipeline", path, "--out", folder, "--dry-run", "--json"], capsys, 0))


HEAD = 'name = "x"\nseed = 1\njudges = [{ name = "a", model = "reference/auditor", family = "f" }]\n'


def test_a_file_of_version_1_becomes_one_of_version_2():
    for text, gone in (
        (HEAD, "-"),
        ("# a remark\n" + HEAD + '[inference]\ngating_test = "sign-flip" # why\nalpha = 0.01\n', "sign-flip"),
        (HEAD + 'inference = { gating_test = "bootstrap", share_alpha = false, level = 0.9 }\n', "bootstrap"),
        (HEAD + "inference.share_alpha = false\ninference.alpha = 0.02\n", "share_alpha"),
        ('version = "1"\r\n' + HEAD + "[claims]\r\nrankings = false\r\ncells = false\r\n", "rankings"),
        (HEAD + 'title = """two\n[inference]\nlines"""\n[gates]\npublish = 0.5\n', "-"),
        (HEAD + '[records]\nkeep_names = [\n  "[claims]",\n  "b",\n]\n[claims]\nfirst = false\n', "-"),
        (HEAD + "[inference]\n[claims]\npairs = false # gating_test\n", "-"),
    ):
        made = renewed_text(text, source="x")
        study, raw, before = parse_study(made), tomllib.loads(made), tomllib.loads(text)
        assert (study.version, study.inference.test, study.missing.per_judge) == ("2", "moderated-t", 0.05)
        assert gone == "-" or gone not in made, text
        for table in ("inference", "claims", "records", "gates"):
            for name, value in before.get(table, {}).items():
                assert name in ("gating_test", "share_alpha", "rankings") or raw[table][name] == value
        assert raw.get("title") == before.get("title")
    for text in (HEAD, "x = [1,\n"):
        with pytest.raises(InputError):
            parse_study(renewed_text(text + "]", source="x"))
