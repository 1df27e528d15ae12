"""Every example of every help, typed at the command line in a scratch folder that has what the example names."""

from __future__ import annotations

import csv
import itertools
import json
import re
import shlex
import shutil
from datetime import UTC, datetime
from functools import partial
from http.server import ThreadingHTTPServer
from importlib.util import find_spec

import made_deepfund
import made_nof1
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from imported_records import store_imported
from labelled import graded
from made_capitalbench import context, packed, record
from made_records import OWN, STUDY, generic_records
from season_runs import market, season_text, stored
from small_benchmarks import small_plan
from test_bare_tables import make_rows
from test_command_help import COMMANDS_IN_FULL
from version_1_runs import STUDY_1, back_to_1

from assaymark.benchmark.questions import TEMPLATES, generate_questions, write_questions
from assaymark.cli import EXAMPLES, main
from assaymark.engine import Ledger
from assaymark.judging.pairs import finance_tasks
from assaymark.market import Origin, snapshot_of, synthetic_history
from assaymark.workflow import verbs

pytest.importorskip("openai", reason="needs the openai client (extra: test)")
pytest.importorskip("google.genai", reason="needs the google-genai client (extra: test)")

from provider_cases import speaking
from provider_server import serving

BASE = {"/tmp/first": "first"}
"""What stands in an example, by what is typed instead."""

MODELS = {"openai": "gpt-4o-mini", "google": "gemini-2.5-flash", "openai-chat": "mine"}
PANEL = "".join(
    f'[[panel]]\nname = "{name}"\nfamily = "{name}"\nmodel = "reference/season-{name}"\n'
    for name in ("auditor", "reader")
)


def examples(words, capsys):
    """The examples of a command as its help shows them."""
    assert main([*words, "--help"]) == 0
    return [line.strip() for line in capsys.readouterr().out.partition("Example")[2].splitlines()[1:]]


def typed(line, scratch, capsys):
    """Run a line as a shell would, but for what reads its output; a place in capitals stands for a real one."""
    line = re.sub(r"([a-z-]+)/MODEL", lambda found: f"{found[1]}/{MODELS[found[1]]}", line)
    if "CLAIM.json" in line:
        line = line.replace("CLAIM.json", next((scratch / "runs/mine/certificates").glob("*.json")).name)
    for there, here in BASE.items():
        line = line.replace(there, here)
    command, _, target = line.partition(" > ")
    words = shlex.split(command.partition(" | ")[0])[1:]
    status = main(words)
    shown = capsys.readouterr()
    assert status == 0, f"{line}: {shown.err}"
    if "--json" in words:
        json.loads(shown.out)
    if target:
        (scratch / target.strip()).write_text(shown.out, encoding="utf-8")


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """An empty folder in which commands are typed."""
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def seasons(tmp_path_factory):
    """The season of the examples, played, judged and published once by its own help; not to be changed."""
    return tmp_path_factory.mktemp("season")


def answers(request):
    """A verdict for a pair, and for anything else a short text."""
    return '{"verdict": "tie", "reason": "They are alike."}' if b"verdict" in request.raw else '{"answer": 1}'


def study(scratch, finished, text=STUDY):
    shutil.copytree(finished, scratch / "runs/mine")
    (scratch / "study.toml").write_text(text.read_text(), encoding="utf-8")


def of_import(scratch):
    generic_records(scratch / "records")
    (scratch / "records/map.toml").unlink()
    (scratch / "deepfund.db").write_bytes(made_deepfund.files(made_deepfund.honest())["deepfund.db"])
    (scratch / "snapshot").mkdir()
    for name, raw in made_nof1.files(made_nof1.honest()).items():
        (scratch / "snapshot" / name).write_bytes(raw)
    (scratch / "artifacts").mkdir()
    for name, raw in packed([context()], [record()]).items():
        (scratch / "artifacts" / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / "artifacts" / name).write_bytes(raw)


def of_amend(scratch):
    for name in ("mine", "old"):
        store_imported(scratch / "runs" / name)
        assert main(["lock", str(STUDY), "--out", f"runs/{name}"]) == 0
    back_to_1(scratch / "runs/old", "study", STUDY_1)
    third = '\n[[judges]]\nname = "third"\nfamily = "third"\nmodel = "reference/skeptic"\n'
    (scratch / "study.toml").write_text(STUDY.read_text() + third, encoding="utf-8")


def of_measure(scratch):
    (scratch / "scores").mkdir()
    rows = make_rows(cycles=4)
    pq.write_table(pa.Table.from_pylist(rows), scratch / "scores/part.parquet")
    with (scratch / "scores.csv").open("w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def of_check(scratch):
    cases = itertools.product(range(30), enumerate(("elm", "fir")), enumerate(("gpt-4o", "claude")))
    rows = [(f"q{k}", name, judge, 1 + (3 * k + at + j) % 10) for k, (at, name), (j, judge) in cases]
    long = [f"{item},{agent},{judge},{1 + score // 2 % 5}" for item, agent, judge, score in rows]
    (scratch / "scores.csv").write_text("\n".join(["item,agent,judge,score", *long]), encoding="utf-8")
    made = [json.dumps({"item": i, "made_by": a, "judge": j, "score": s}) for i, a, j, s in rows]
    (scratch / "results.jsonl").write_text("\n".join(made), encoding="utf-8")
    wide = [f"{item},{agent},{1 + score % 5},{1 + score // 2 % 5}" for item, agent, _, score in rows[::2]]
    pairs = [f"q{k},elm,fir,{judge},A,B" for k in range(30) for judge in ("gpt-4o", "claude")]
    heads = "item,agent_a,agent_b,judge,winner_ab,winner_ba"
    (scratch / "orders.csv").write_text("\n".join([heads, *pairs]), encoding="utf-8")
    (scratch / "wide.csv").write_text("\n".join(["item,agent,gpt-4o,claude", *wide]), encoding="utf-8")


FINISHED = ("judge", "measure", "claim", "report", "plan-calls", "worker", "export", "serve", "verify", "label")


@pytest.mark.parametrize("words", [one for one in COMMANDS_IN_FULL if one[0] not in ("season", "bench")], ids=" ".join)
def test_the_examples_of_a_command_run(words, scratch, request, monkeypatch, capsys):
    lines = examples(words, capsys)
    match words:
        case ("demo",):
            for name in ("assaymark-demo", "first"):
                shutil.copytree(request.getfixturevalue("demo"), scratch / name)
        case ("run",):
            study(scratch, request.getfixturevalue("own_run"), OWN)
        case ("lock",):
            study(scratch, request.getfixturevalue("records"))
        case ("import",):
            of_import(scratch)
        case ("amend",):
            of_amend(scratch)
        case ("data", *_):
            of_data(scratch, monkeypatch, lines)
        case ("check",):
            of_check(scratch)
        case ("draw",):
            of_check(scratch)
            shutil.copytree(request.getfixturevalue("finished"), scratch / "runs/mine")
        case ("controls",):
            for name in ("mine", "b"):
                store_imported(scratch / "runs" / name)
        case ("gate" | "proofread",):
            shutil.copytree(request.getfixturevalue("demo"), scratch / "assaymark-demo")
            (scratch / "README.md").write_text("Cedar beats Alder.")
        case ("datasheet",):
            of_judges(scratch, request, monkeypatch)
        case (name,) if name in FINISHED:
            study(scratch, request.getfixturevalue("finished"))
    if words == ("measure",):
        of_measure(scratch)
    if words in (("serve",), ("label",)):
        monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", stopped)
        monkeypatch.setattr("webbrowser.open", lambda _url: True)
    if words == ("report",):
        several(scratch, request.getfixturevalue("seasons"), request, capsys)
    if words == ("plan-calls",):  # what it foretells is held against planted studies elsewhere
        monkeypatch.setattr(verbs, "plan_calls_report", partial(verbs.plan_calls_report, studies=2))
    if words == ("export",) and find_spec("inspect_ai") is None:
        lines = [line for line in lines if "--inspect" not in line]
    if words == ("worker",):
        lines = [line.replace("postgresql://host/assay", planned(request)) for line in lines]
    for line in lines:
        for page in scratch.glob("label-*.html"):
            graded(page.read_text(), scratch / f"labels{page.stem.removeprefix('label')}.csv")
        typed(line, scratch, capsys)


def of_data(scratch, monkeypatch, lines):
    """A market of its own for the commands that look at one, prices in a file, and a service that knows SPY."""
    (scratch / "prices.csv").write_text("date,AA,BB\n2024-03-01,10.0,7.0\n2024-03-04,10.5,7.1\n")
    small = snapshot_of(market(), "SPY", Origin(source="tests", retrieved_at=datetime(2024, 6, 1, tzinfo=UTC)))
    monkeypatch.setattr("assaymark.market.sources.pull", lambda *_args, **_more: small)
    if not any("data synth" in line for line in lines) and not any("data pull" in line for line in lines):
        assert main(["data", "synth", "--out", "market"]) == 0
    for n, line in enumerate(lines):
        lines[n] = line.replace("--out market", f"--out market{n}") if "data pull" in line else line


def of_judges(scratch, request, monkeypatch):
    """Providers that answer here, in place of the real ones, and so few tasks that this takes no time."""
    server = request.getfixturevalue("provider")
    for name, path in (("OPENAI", "/v1"), ("GOOGLE_GEMINI", "")):
        monkeypatch.setenv(f"{name}_BASE_URL", server.url + path)
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "canary-key-90210")
    monkeypatch.setattr("assaymark.workflow.tracks.datasheet.finance_tasks", lambda: finance_tasks()[:2])
    monkeypatch.setitem(BASE, "http://gpu-1/v1", f"{server.url}/v1")
    rows = [f"q{n},north,{pair},1\n" for n in range(6) for pair in (f"a{n},b{n}", f"b{n},a{n}")]
    (scratch / "verdicts.csv").write_text("question,judge,left,slot_2,verdict\n" + "".join(rows))


@pytest.fixture
def provider():
    """A server that answers in the format it is asked in."""
    with serving(speaking(answers)) as server:
        yield server


def stopped(_server):
    raise KeyboardInterrupt


def planned(request):
    """The URL of a ledger with nothing left to ask."""
    url = request.getfixturevalue("database")
    with Ledger.open(url):
        return str(url)


def several(scratch, seasons, request, capsys):
    """A study, datasheets and a season for one site."""
    shutil.copytree(scratch / "runs/mine", scratch / "runs/study")
    assert main(["datasheet", "--judge", "reference/slot-biased", "--out", "runs/judges"]) == 0
    played(seasons, capsys)
    shutil.copytree(seasons / "seasons/spring", scratch / "runs/season")


def played(folder, capsys):
    """The season of the examples, brought to its site by the examples of ``season --help``, unless it is."""
    if (folder / "site").exists():
        return
    (folder / "season.toml").write_text(season_text(head="universe = 6", last="2024-03-05") + PANEL, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in examples(("season",), capsys):
            typed(line, folder, capsys)


SEASON = [one for one in COMMANDS_IN_FULL if one[0] == "season"]


@pytest.mark.parametrize("words", SEASON, ids=" ".join)
def test_the_examples_of_seasons_run(words, scratch, seasons, capsys):
    played(seasons, capsys)
    shutil.copytree(seasons, scratch, dirs_exist_ok=True)
    if words[-1] == "init":
        shutil.rmtree(scratch / "seasons")
    if words[-1] == "step":
        live = f"universe = 4\nmarket = {{source = '{stored(scratch / 'market', market())}', live = true}}"
        (scratch / "live.toml").write_text(season_text(head=live, first="2024-03-14", last="2024-03-15"))
        assert main(["season", "init", "live.toml", "--out", "seasons/live"]) == 0
    for line in [] if words == ("season",) else examples(words, capsys):
        typed(line, scratch, capsys)


@pytest.mark.parametrize("words", [one for one in COMMANDS_IN_FULL if one[0] == "bench"], ids=" ".join)
def test_the_examples_of_the_benchmark_run(words, scratch, request, monkeypatch, capsys):
    of_judges(scratch, request, monkeypatch)
    counts = {"T2": 4, "T4": 4, "T6": 4}
    write_questions(scratch / "q.jsonl", generate_questions(synthetic_history(0), counts=counts).questions)
    fewer = partial(generate_questions, counts=dict.fromkeys(TEMPLATES, 4))
    monkeypatch.setattr("assaymark.benchmark.questions.published.generate_questions", fewer)
    monkeypatch.setattr("assaymark.workflow.tracks.benchmark_plan.generate_questions", fewer)
    (scratch / "bench.toml").write_text(small_plan(scratch / "q.jsonl", 2, "literal", "stubborn"))
    for line in examples(words, capsys):
        typed(line, scratch, capsys)


def test_the_examples_of_the_program_are_among_those_of_its_commands(capsys):
    known = {line for words in COMMANDS_IN_FULL for line in examples(words, capsys)}
    assert all(any(line.startswith(one) for line in known) for one in EXAMPLES)
