from __future__ import annotations

import json
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import typer
from made_records import OWN
from season_runs import NOW, market, season_text
from test_bare_tables import make_rows, study_of, written

from assaymark import __version__
from assaymark.cli import COMMANDS, app, main
from assaymark.cli import study as cli_study
from assaymark.cli.options import logging_session
from assaymark.cli.start import CORE, examine
from assaymark.importers import IMPORTERS
from assaymark.market import Origin, snapshot_of
from assaymark.workflow import plan_calls, study_toml

NAMES = [name for places in COMMANDS.values() for name in places]
OTHERS = {"check", "gate", "proofread", "skill", "serve", "doctor", "datasheet", "bench", "season", "data"}


def test_no_command_of_a_study_is_missing_from_the_list_and_the_help_fits_a_screen(ran):
    made = {one.name or one.callback.__name__ for one in cli_study.app.registered_commands if one.callback}
    assert {name.rstrip("_") for name in made} == {*NAMES} - OTHERS
    assert ", ".join(sorted(IMPORTERS)) == cli_study.FORMATS
    lines = ran("--help").splitlines()
    assert len(lines) <= 51
    assert max(map(len, lines)) <= 80
    assert [name for name in NAMES if not any(line.startswith(f"  {name} ") for line in lines)] == []


@pytest.mark.parametrize(("words", "found"), [("assaymark me", ["measure"]), ("assaymark season in", ["init"])])
def test_names_are_completed(words, found):
    """The shell gets names, and completing a name of the root imports no command."""
    asked = {"_ASSAYMARK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run(
        ["assaymark"], executable=Path(sys.executable).parent / "assaymark", env=asked, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout.split() == found


def test_the_list_of_commands_loads_none_of_them():
    """The help, the version and completion answer at once because the program behind them is left alone."""
    code = "import sys; from assaymark.cli import main; main(['--help']); print({'numpy', 'pydantic'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_command_is_installed_and_says_its_version(ran):
    done = subprocess.run([sys.executable, "-m", "assaymark", "--version"], capture_output=True, text=True, check=False)
    assert done.stdout == ran("--version") == f"assaymark {__version__}\n"


def test_what_each_verb_says_when_there_is_nothing_left_to_do(run, ran):
    for verb, said in (("judge", "(0 calls made now)"), ("measure", "measurements"), ("claim", "0 supported")):
        assert said in ran(verb, run)


def test_doctor_says_what_is_there_and_never_a_value_and_names_what_is_missing(monkeypatch, ran, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-41")
    out = ran("doctor")
    assert [word in out for word in ("OPENAI_API_KEY", "reference/auditor", "sk-canary-41")] == [True, True, False]
    assert {finding.what for finding in examine({})} >= {*CORE, "OPENAI_API_KEY", "FRED_API_KEY"}
    monkeypatch.setattr("assaymark.cli.start.CORE", ("duckdb", "nothing-41"))
    assert main(["doctor"]) == 1
    out, err = capsys.readouterr()
    assert "NO   nothing-41           missing; install assaymark again with pip\n" in out
    assert out.endswith("\nnothing until the missing packages above are installed\n")
    assert "a package that assaymark needs is missing" in err


# --- the help of each command -----------------------------------------------------------------------------------------


ROOT = typer.main.get_command(app)
CONTEXT = ROOT.make_context("assaymark", [], resilient_parsing=True)
COMMANDS_IN_FULL = [
    words for name in NAMES
    for words in ((name,), *((name, inner) for inner in getattr(ROOT.get_command(CONTEXT, name), "commands", {})))
]  # fmt: skip
"""Every command and sub-command by its words."""

WITHOUT_RESULT = {"serve", "bench", "season", "data", "skill"}  # and groups


def test_the_help_of_each_command_fits_a_screen_and_ends_with_examples_that_are_understood(ran):
    """Every example in a help text parses without a usage error."""
    for words in COMMANDS_IN_FULL:
        shown = ran(*words, "--help")
        lines = shown.splitlines()
        assert len(lines) <= 40, words
        assert max(map(len, lines)) <= 80, words
        assert words[-1] in WITHOUT_RESULT or "--json" in shown, words
        title = max(number for number, line in enumerate(lines) if line in ("Example:", "Examples:"))
        assert len(lines) > title + 1, words
        for line in lines[title + 1 :]:
            assert line.startswith("  assaymark ")
            typed = shlex.split(line.partition(" | ")[0].partition(" > ")[0])[1:]
            found, rest, context = ROOT, typed, None
            while hasattr(found, "commands"):
                context = found.make_context("assaymark", list(rest), context, resilient_parsing=True)
                found, rest = found.get_command(context, rest[0]), rest[1:]
            with logging_session():
                found.make_context("assaymark", rest, parent=context)  # raises what is misuse


# --- results for a program --------------------------------------------------------------------------------------------


SHEET = ["datasheet", "--judge", "reference/checklist", "--out", "OUT"]


def result_of(capsys, *words):
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
    fewer = partial(plan_calls.plan_calls_report, studies=2)  # what it foretells is tested elsewhere
    monkeypatch.setattr(plan_calls, "plan_calls_report", fewer)
    places = {name: tmp_path / name for name in ("OUT", "DATA", "DATA2")} | {"RUN": own, "TASKS": tasks}
    for words, keys in RESULTS:
        status, found = result_of(capsys, *(places.get(word, word) for word in words))
        assert status == 0, words
        assert keys <= found.keys(), words


def test_the_results_of_a_benchmark(tmp_path, few_questions, capsys):
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


# --- certificates, bare tables and further calls, as a user types them ------------------------------------------------


def test_certificates_follow_from_their_own_tables_and_a_changed_one_does_not(finished, tmp_path, ran, refused, capsys):
    paths = sorted((finished / "certificates").iterdir())
    assert ran("claim", *(part for path in paths for part in ("--verify", str(path)))).count(
        "follows from its own tables"
    ) == len(paths)
    good, bad = next(path for path in paths if path.name.startswith("above")), tmp_path / "c.json"
    raw = json.loads(good.read_text())
    raw["tuple"]["permitted_publication_level"] = "headline"
    bad.write_text(json.dumps(raw))
    assert main(["claim", "--verify", str(bad)]) == 1
    captured = capsys.readouterr()
    assert "does NOT follow from its own tables" in captured.out
    assert "publication level: the certificate says headline" in captured.out
    assert captured.err == "assaymark: 1 of 1 certificates do not follow from their own tables\n"
    for path in (good, bad):  # for a program too
        assert main(["claim", "--verify", str(path), "--json"]) == (path == bad)
        assert json.loads(capsys.readouterr().out)[str(path)]["ok"] == (path == good)
    for text, told in (
        ("{", "line 1: is not JSON"), ("[]", "must be a JSON object"),
        ('{"format": "assaymark certificate 1"}', "is read by assaymark 0.1"), ("[" * 100_000, "is not JSON"),
    ):  # fmt: skip
        bad.write_text(text)
        assert told in refused("claim", "--verify", bad).removeprefix(f"assaymark: {bad}")


def test_a_bare_table_goes_from_scores_to_verdicts_under_a_plan_or_without(tmp_path, ran):
    out, path = tmp_path / "out", written(tmp_path, make_rows(clusters=5, cycles=8))
    measure = ["measure", "--judgments", str(path), "--dimensions", "clarity,risk"]
    said = ran(*measure, "--out", out)
    assert "3 systems, 5\nclusters, 3 judges, two criteria: 720 scores, scale 1 to 5" in said
    assert "[/] “ash ranks first of the three agents on the overall score.”" in said
    assert json.loads((out / "verdicts.json").read_text())["tally"]["headline"] == 0
    plan = study_of(extra="[rubric.weights]\nclarity = 1\nrisk = 1\n[gates]\npublish = 0.99\nhalt = 0.98\n")
    (tmp_path / "plan.toml").write_text(study_toml(plan))
    assert "[x] 0 supported   [/] 0 only with a condition" in ran(*measure, "--study", tmp_path / "plan.toml")


def test_a_plan_of_pairs_is_on_shares_of_wins(tmp_path, capsys):
    judges = [f'[[judges]]\nname = "{name}"\nmodel = "elsewhere/{name}"\nfamily = "{name}"\n'
              for name in ("north", "south")]  # fmt: skip
    rows = [f"q{q},ash,elm,{j},{'ab'[q % 3 == 0]}\n" for q in range(12) for j in ("north", "south")]
    (tmp_path / "pairs.csv").write_text("".join(["item,agent_a,agent_b,judge,winner\n", *rows]))
    plan, said = tmp_path / "plan.toml", []
    for rubric in ("", "scale = [0, 1]", 'scale = [0, 1]\nagreement = "icc"'):
        plan.write_text(f'name = "mine"\nseed = 1\n[rubric]\n{rubric}\n' + "".join(judges))
        run = main(["check", str(tmp_path / "pairs.csv"), "--study", str(plan), "--out", str(tmp_path / "out")])
        said.append((run, "pairs give shares of comparisons won; the plan needs" in capsys.readouterr().err))
    assert said == [(1, True), (1, True), (0, False)]


def test_further_calls_are_planned_from_a_finished_run(finished, ran, monkeypatch):
    fewer = partial(plan_calls.plan_calls_report, studies=4)  # what it foretells is tested elsewhere
    monkeypatch.setattr(plan_calls, "plan_calls_report", fewer)
    said = ran("plan-calls", finished, "--budget", "60")
    assert "of 4 simulated studies" in said
    study = said[said.index("\nD-study") + 1 : said.index("\nAssumed:")].splitlines()
    assert len(study) <= 7
    assert max(map(len, study)) <= 80
    monkeypatch.setattr(plan_calls, "STUDIES", 4)  # enough for a second process to simulate half of them
    assert ran("plan-calls", finished, "--budget", "60") == said
    found = json.loads(ran("plan-calls", finished, "--budget", "60", "--json"))
    design = found["design"]
    assert (found["budget"], design["state"], set(design["per_call"])) == (60, "ok", {"J", "T", "C", "G"})
    assert f"power {design['power_now']:.2f}." in study[1]
    assert {one["option"] for one in found["prospects"]} <= {one["name"] for one in found["options"]}
