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
from types import SimpleNamespace
from unittest.mock import Mock

import made_deepfund
import made_nof1
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from imported_records import store_imported
from labelled import graded
from made_capitalbench import context, packed, record
from made_records import OWN, STUDY, generic_records
from provider_cases import speaking
from provider_server import serving
from season_runs import market, season_text, stored
from small_benchmarks import small_plan
from test_bare_tables import make_rows
from test_cli import COMMANDS_IN_FULL
from version_1_runs import STUDY_1, back_to_1

from assaymark.benchmark import questions
from assaymark.cli import EXAMPLES, main
from assaymark.engine import Ledger
from assaymark.judging import pairs
from assaymark.market import Origin, snapshot_of, synthetic_history
from assaymark.workflow import RunFolder, open_checked, plan_calls, verbs

pytestmark = pytest.mark.usefixtures("clients")
BASE = {"/tmp/first": "first"}
"""The replacement of each word typed in an example."""

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
    """Run a line as a shell would, except for reading its output; a placeholder in capitals becomes a real path."""
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
def provider():
    """A server that answers in the requested format: a verdict for a pair, otherwise a short text."""

    def answers(request):
        return '{"verdict": "tie", "reason": "They are alike."}' if b"verdict" in request.raw else '{"answer": 1}'

    with serving(speaking(answers)) as server:
        yield server


@pytest.fixture
def at(tmp_path, request, monkeypatch, capsys):
    """An empty folder in which commands run, with the paths for placeholders of the examples."""
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)

    def written(name, *lines):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")

    def copied(fixture, *names):
        for name in names:
            shutil.copytree(request.getfixturevalue(fixture), tmp_path / name)

    return SimpleNamespace(scratch=tmp_path, patch=monkeypatch, capsys=capsys, get=request.getfixturevalue,
                           written=written, copied=copied)  # fmt: skip


def of_demo(at, _lines):
    at.copied("demo", "assaymark-demo", "first")
    at.patch.setattr(verbs, "report", partial(verbs.report, calls="none"))
    real = at.get("real")  # which this very command has made
    shown = open_checked(RunFolder(real)), real / "report/index.html"
    at.patch.setattr("assaymark.workflow.check_real", lambda _out: shown)


def of_finished(at, _lines, fixture="finished", text=STUDY):
    at.copied(fixture, "runs/mine")
    at.written("study.toml", text.read_text())
    at.patch.setattr(ThreadingHTTPServer, "serve_forever", Mock(side_effect=KeyboardInterrupt))
    at.patch.setattr("webbrowser.open", lambda _url: True)


def of_import(at, _lines):
    generic_records(at.scratch / "records")
    (at.scratch / "records/map.toml").unlink()
    files = made_deepfund.files(made_deepfund.honest())
    files |= {f"snapshot/{name}": raw for name, raw in made_nof1.files(made_nof1.honest()).items()}
    files |= {f"artifacts/{name}": raw for name, raw in packed([context()], [record()]).items()}
    for name, raw in files.items():
        (at.scratch / name).parent.mkdir(parents=True, exist_ok=True)
        (at.scratch / name).write_bytes(raw)


def of_amend(at, _lines):
    for name in ("mine", "old"):
        store_imported(at.scratch / "runs" / name)
        assert main(["lock", str(STUDY), "--out", f"runs/{name}"]) == 0
    back_to_1(at.scratch / "runs/old", "study", STUDY_1)
    third = '[[judges]]\nname = "third"\nfamily = "third"\nmodel = "reference/skeptic"\n'
    at.written("study.toml", STUDY.read_text(), third)


def of_measure(at, _lines):
    rows = make_rows(cycles=4)
    (at.scratch / "scores").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), at.scratch / "scores/part.parquet")
    with (at.scratch / "scores.csv").open("w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def of_check(at, _lines):
    cases = itertools.product(range(30), enumerate(("elm", "fir")), enumerate(("gpt-4o", "claude")))
    rows = [(f"q{k}", name, judge, 1 + (3 * k + a + j) % 10) for k, (a, name), (j, judge) in cases]
    at.written("scores.csv", "item,agent,judge,score", *(f"{i},{a},{j},{1 + s // 2 % 5}" for i, a, j, s in rows))
    results = [{"item": i, "made_by": a, "judge": j, "score": s} for i, a, j, s in rows]
    at.written("results.jsonl", *map(json.dumps, results))
    orders = [f"q{k},elm,fir,{judge},A,B" for k in range(30) for judge in ("gpt-4o", "claude")]
    at.written("orders.csv", "item,agent_a,agent_b,judge,winner_ab,winner_ba", *orders)
    wide = [f"{i},{a},{1 + s % 5},{1 + s // 2 % 5}" for i, a, _, s in rows[::2]]
    at.written("wide.csv", "item,agent,gpt-4o,claude", *wide)


def of_controls(at, _lines):
    for name in ("mine", "b"):
        store_imported(at.scratch / "runs" / name)


def of_text(at, _lines):
    at.copied("demo", "assaymark-demo")
    at.written("README.md", "Cedar beats Alder.")


def of_data(at, lines):
    """A market of its own for the commands that look at one, prices in a file, and a service that knows SPY."""
    at.written("prices.csv", "date,AA,BB", "2024-03-01,10.0,7.0", "2024-03-04,10.5,7.1", "")
    small = snapshot_of(market(), "SPY", Origin(source="tests", retrieved_at=datetime(2024, 6, 1, tzinfo=UTC)))
    at.patch.setattr("assaymark.market.sources.pull", lambda *_args, **_more: small)
    at.patch.setattr("assaymark.market.synthetic_snapshot", lambda _seed: small)
    if not any("data synth" in line or "data pull" in line for line in lines):
        assert main(["data", "synth", "--out", "market"]) == 0
    for n, line in enumerate(lines):
        lines[n] = line.replace("--out market", f"--out market{n}") if "data pull" in line else line


def of_judges(at, _lines):
    """Providers that answer here, in place of the real ones, and so few tasks that this takes no time."""
    url = at.get("provider").url
    for name, value in (("OPENAI_BASE_URL", f"{url}/v1"), ("GOOGLE_GEMINI_BASE_URL", url),
                        ("OPENAI_API_KEY", "canary-key-90210"), ("GOOGLE_API_KEY", "canary-key-90210")):  # fmt: skip
        at.patch.setenv(name, value)
    at.patch.setattr("assaymark.workflow.tracks.datasheet.finance_tasks", lambda: pairs.finance_tasks()[:2])
    at.patch.setitem(BASE, "http://gpu-1/v1", f"{url}/v1")
    rows = [f"q{n},north,{pair},1" for n in range(6) for pair in (f"a{n},b{n}", f"b{n},a{n}")]
    at.written("verdicts.csv", "question,judge,left,slot_2,verdict", *rows, "")


def of_bench(at, _lines):
    made = questions.generate_questions(synthetic_history(0), counts={"T2": 4, "T4": 4, "T6": 4})
    questions.write_questions(at.scratch / "q.jsonl", made.questions)
    at.get("few_questions")
    at.written("bench.toml", small_plan(at.scratch / "q.jsonl", 2, "literal", "stubborn"))


def of_report(at, _lines):
    """A study, datasheets and a season for one site."""
    at.copied("own_run", "runs/study")
    shutil.copytree(at.get("played") / "seasons/spring", at.scratch / "runs/season")
    judges = ["--judge", "reference/slot-biased", "--tasks", str(at.get("tasks"))]
    assert main(["datasheet", *judges, "--out", "runs/judges"]) == 0


def of_plan_calls(at, _lines):  # what it foretells is held against planted studies elsewhere
    at.patch.setattr(plan_calls, "plan_calls_report", partial(plan_calls.plan_calls_report, studies=2))


def of_export(_at, lines):
    lines[:] = [line for line in lines if "--inspect" not in line or find_spec("inspect_ai") is not None]


def of_worker(at, lines):
    """The URL of a ledger without pending calls."""
    with Ledger.open(url := str(at.get("database"))):
        lines[:] = [line.replace("postgresql://host/assay", url) for line in lines]


def of_season(at, lines):
    """The season of the examples, brought to its site once by the examples of ``season --help``."""
    shutil.copytree(at.get("played"), at.scratch, dirs_exist_ok=True)
    if any("season init" in line for line in lines):
        shutil.rmtree(at.scratch / "seasons")
    if any("season step" in line for line in lines):
        live = f"universe = 4\nmarket = {{source = '{stored(at.scratch / 'market', market())}', live = true}}"
        at.written("live.toml", season_text(head=live, first="2024-03-14", last="2024-03-15"))
        assert main(["season", "init", "live.toml", "--out", "seasons/live"]) == 0


@pytest.fixture
def played(own_copy, capsys):
    """The season of the examples. Not to be changed."""

    def build(folder):
        text = season_text(head="universe = 6", last="2024-03-05") + PANEL
        (folder / "season.toml").write_text(text, encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            for line in examples(("season",), capsys):
                typed(line, folder, capsys)

    return own_copy("season-of-the-help", build)


of_own = partial(of_finished, fixture="own_run", text=OWN)
FILLED = {
    "demo": [of_demo], "run": [of_own], "import": [of_import], "lock": [partial(of_finished, fixture="records")],
    "amend": [of_amend], "data": [of_data], "check": [of_check], "draw": [of_check, of_finished], "gate": [of_text],
    "controls": [of_controls], "proofread": [of_text], "datasheet": [of_judges], "measure": [of_measure, of_finished],
    "report": [of_report, of_own], "plan-calls": [of_plan_calls, of_finished], "export": [of_export, of_finished],
    "season": [of_season], "worker": [of_worker, of_finished], "bench": [of_judges, of_bench],
    **{name: [of_finished] for name in ("judge", "claim", "serve", "verify", "label")},
}  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS_IN_FULL, ids=" ".join)
def test_the_examples_of_a_command_run(words, at):
    lines = examples(words, at.capsys)
    for fill in FILLED.get(words[0], ()):
        fill(at, lines)
    for line in [] if words == ("season",) else lines:
        for page in at.scratch.glob("label-*.html"):
            graded(page.read_text(), at.scratch / f"labels{page.stem.removeprefix('label')}.csv")
        typed(line, at.scratch, at.capsys)


def test_the_examples_of_the_program_are_among_those_of_its_commands(capsys):
    known = {line for words in COMMANDS_IN_FULL for line in examples(words, capsys)}
    assert all(any(line.startswith(one) for line in known) for one in EXAMPLES)
