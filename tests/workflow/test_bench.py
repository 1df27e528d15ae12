"""`assaymark bench`: whole runs with built-in models, interrupted and resumed, and errors in plans."""

# ruff: noqa: I001

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from small_benchmarks import small_plan

from assaymark.benchmark import reference_benchmark_models
from assaymark.benchmark import questions as question_set
from assaymark.benchmark.reference import RULES
from assaymark.cli import main, models
from assaymark.engine import Ledger, Reply
from assaymark.engine.providers.http_agent import failure
from assaymark.errors import AssayError, LedgerError, ModelError, PlanError
from assaymark.judging import reference_judges
from assaymark.market import fill_gaps, synthetic_history
from assaymark.report import portbench
from assaymark.workflow import DECISIONS, MEASUREMENTS, SCORES, VERDICTS, RunFolder, Store, export_arrow, verify_run
from assaymark.workflow import tracks

NOW = datetime(2026, 5, 1, tzinfo=UTC)
MODELS = reference_benchmark_models()


@pytest.fixture(scope="session")
def questions(once):
    """A small set of questions in a file."""

    def build(folder):
        made = question_set.generate_questions(synthetic_history(0), counts={f"T{k}": 40 for k in range(1, 8)})
        question_set.write_questions(folder / "set.jsonl", made.questions)

    return once("questions", build) / "set.jsonl"


def plan(questions, *words, more="", profiles='"balanced", "conservative"'):
    return small_plan(questions, 4, *words).replace('"balanced", "conservative"', profiles) + more


def asked(part, folder, text, **own):
    """Run one part of a benchmark in a folder, with custom models in addition to the built-in ones."""
    return getattr(tracks, f"bench_{part}")(folder, text, "plan", {**MODELS, **own}, now=NOW)


class Dying:
    """A model that answers so many calls and then fails."""

    def __init__(self, model, left):
        self.model, self.left = model, left

    async def complete(self, call):
        self.left -= 1
        if self.left < 0:
            raise ModelError("out of service", retryable=False)
        return await self.model.complete(call)


def dying(left):
    return {name: Dying(model, left) for name, model in MODELS.items()}


def files(folder):
    every = (path for path in sorted(folder.path.rglob("*")) if path.suffix in (".json", ".html", ".parquet"))
    return {str(path): path.read_bytes() for path in every if path.name not in ("study.lock", "manifest.json")}


def claims(path):
    """Every verdict of a file by its claim."""
    return {one["claim"]["id"]: one for one in json.loads(path.read_text())["verdicts"]}


@pytest.fixture(scope="session")
def benched(own_copy, questions):
    """A run folder with questions and pipeline of four reference models. Not to be changed."""
    text = plan(questions, "literal", "stubborn", "momentum", "garbled")

    def build(path):
        folder = RunFolder(path / "run")
        asked("qa", folder, text)
        (path / "questions-alone.json").write_bytes(folder.verdicts.read_bytes())
        asked("pipeline", folder, text)

    return RunFolder(own_copy("benched", build) / "run"), text


def test_a_run_leaves_scores_measurements_verdicts_and_pages(benched):
    folder, _ = benched
    store = Store(folder)
    scores = store.read(SCORES)
    dates = 4 + 1  # a normal year and the pandemic shock, by quarters
    # models, profiles, dates, S1 to S5 with CEPS and PAS, conventions
    assert sum(one.name != "QA" for one in scores) == 4 * 2 * dates * 7 * 2
    assert {one.convention for one in scores} == {"paper", "reference"}
    assert all(one.least <= one.value <= one.most for one in scores)
    verdicts = json.loads(folder.verdicts.read_text())
    assert len(verdicts["verdicts"]) == len(store.read(VERDICTS)) > 40
    assert set(verdicts["measurements"]) <= {one.id for one in store.read(MEASUREMENTS)}
    index = (folder.report / "index.html").read_text()
    assert all(word in index for word in ("literal", "stubborn", "momentum", "garbled"))
    assert len(list((folder.report / "episodes").glob("*.html"))) == 4 * 2 * 2
    hatched = r"Hatched: no score. </b>On most dates [^.]*\bstubborn\b[^.]* at most one instrument to buy"
    assert re.search(hatched, index)
    states = {one.state for one in scores if one.agent == "garbled" and one.name in ("S1", "S2", "S3")}
    assert states > {"ok", "partial"}  # faulty replies are scored by rule, recorded and shown
    assert states & {"invalid", "refused", "truncated"}
    pages = "".join(path.read_text() for path in (folder.report / "episodes").glob("garbled*.html"))
    assert any(words in pages for words in ("prose", "names no", "refus"))
    # floor and ceiling: the solver makes every question that states what it needs
    stated = [one for one in scores if one.name == "QA" and one.agent == "literal"]
    full = [one.value for one in stated if one.labels["template"] in ("T2", "T3", "T4", "T5", "T6")
            and (one.labels["condition"], one.convention) == ("full", "paper")]  # fmt: skip
    assert full == pytest.approx([1.0] * 20, abs=1e-6)
    with Ledger.open(folder.ledger, create=False) as ledger:
        keys = {one.key for one in ledger.answered()}
    shown = [page.read_text(encoding="utf-8") for page in folder.report.glob("calls/page-*.html")]
    named = Counter(key for page in shown for key in re.findall(r"<dt>Key</dt><dd><code>(\w+)</code>", page))
    assert named == Counter(keys)  # every call stands once on the pages


def test_gates_and_texts_are_held_against_the_boards(benched, tmp_path, capsys):
    folder, text, limit = str(benched[0].path), tmp_path / "post.md", "gate[model=literal,profile=balanced]"
    for claim, said in (
        ("literal > momentum", "Any ranking of literal and momentum on CEPS over all profiles"),
        ("literal > momentum on CEPS", "Any ranking of literal and momentum on CEPS over all profiles"),
        ("literal > momentum on CEPS under the balanced profile", "momentum on CEPS under the balanced profile"),
        ("momentum first on questions", "A first rank for momentum on the questions with full information"),
        (limit, f"The claim {limit}. The limit is about every"),
    ):
        assert main(["gate", folder, "--claim", claim, "--at-least", "qualified"]) == 1
        assert said in capsys.readouterr().out
    assert main(["gate", folder, "--claim", "beats[model=nobody]"]) == 2
    assert "unknown claim 'beats[model=nobody]'" in (said := capsys.readouterr().err)
    assert "beats[model=literal,profile=" in said
    text.write_text("Momentum beats literal on CEPS under the balanced profile. Literal beats equal weight. "
                    "Literal does not beat equal weight. Literal trails equal weight.")  # fmt: skip
    assert main(["proofread", str(text), "--run", folder, "--json"]) == 1
    assert [one["mark"] for one in json.loads(capsys.readouterr().out)["findings"]] == [*"--??"]
    decided = json.loads(benched[0].verdicts.read_text())
    order = next(one for one in decided["verdicts"] if one["claim"]["id"].startswith("above["))
    order["publication_level"], (high, low) = "headline", order["claim"]["subjects"]
    (tmp_path / "verdicts.json").write_text(json.dumps(decided))
    where = order["claim"]["statement"].partition(" on ")[2].rstrip(".")
    text.write_text(f"{high} beats {low} on {where}. {high} beats {low} on {where} for retail traders.")
    assert main(["proofread", str(text), "--run", str(tmp_path / "verdicts.json"), "--json"]) == 0
    assert [one["mark"] for one in json.loads(capsys.readouterr().out)["findings"]] == [*"x?"]


def test_a_claim_on_drawdowns_with_a_word_or_a_number_changed_is_not_passed_over(benched, tmp_path, capsys):
    decided, text = json.loads(benched[0].verdicts.read_text()), tmp_path / "post.md"
    gates = [one for one in decided["verdicts"] if one["claim"]["id"].startswith(("gate[", "gates["))]
    for one in gates:
        one["publication_level"] = "headline"
    (tmp_path / "verdicts.json").write_text(json.dumps(decided))
    assert len({one["claim"]["id"].partition("[")[0] for one in gates}) == 2
    for statement in (one["claim"]["statement"] for one in gates):
        for said, marks in (
            (statement, "x"), (re.sub(r"\d[\d.]*(?= %)", "77", statement), "!"), (f"{statement[:-1]} as well.", "?"),
            (re.sub(r"under the \w+ profile", "under the timid profile", statement), "?"),
        ):  # fmt: skip
            text.write_text(said)
            main(["proofread", str(text), "--run", str(tmp_path / "verdicts.json"), "--json"])
            assert [one["mark"] for one in json.loads(capsys.readouterr().out)["findings"]] == [*marks], said


def test_nothing_is_said_of_the_ceps_of_a_model_that_leaves_the_oracle_no_choice(benched):
    folder, _ = benched
    about = [one for one in claims(folder.verdicts).values() if "stubborn" in one["claim"]["subjects"]]
    ranked = [one for one in about if one["claim"]["asserts_order"] and "CEPS" in one["claim"]["statement"]]
    assert len(ranked) > 6
    assert {one["publication_level"] for one in ranked} == {"no-claim"}
    assert all("stubborn has no score: on most dates it names at most one" in one["reasons"][0] for one in ranked)
    measurements = Store(folder).read(MEASUREMENTS)
    mine = [one for one in measurements if one.labels.get("model") == "stubborn"]
    without = {one.labels["stage"] for one in mine if one.name == "bench.stage" and one.value is None}
    assert without == {"S3", "S4", "S5", "CEPS"}
    assert all(one.value is None for one in mine if one.name == "bench.risk_safe")
    assert [one.n < 4 for one in measurements if one.name == "bench.dissociation"] == [True]
    # the data hold all
    assert any(one.agent == "stubborn" and one.name == "CEPS" for one in Store(folder).read(SCORES))
    parts = (folder.report / "scores.html").read_text().split("<tr>")
    row = next(part for part in parts if part.startswith('<th scope="row">stubborn') and "tint un" in part)
    assert row.count('<span class="tint un">no score</span>') == 3
    assert '<td class="iv">no score</td>' in row
    episodes = (folder.report / "episodes.html").read_text().split("<tr ")
    assert ["no score" in part for part in episodes if ">stubborn</a>" in part] == [True] * 4


def test_the_data_pages_show_the_market_of_the_run_and_what_models_saw(benched, questions):
    folder, _ = benched
    shown = (folder.report / "snapshots.html").read_text()
    assert (shown.count("<section"), "Instruments (12)" in shown) == (2, True)  # a date of each window
    rows = list(csv.reader((folder.report / "data" / "correlations.csv").read_text().splitlines()))
    history = synthetic_history(0)
    closes = dict(zip([one.id for one in history.listings], fill_gaps(history.bars["close"]).T, strict=True))
    training = history.days <= np.datetime64("2022-12-31")
    pair = np.array([closes[name][training][1:] / closes[name][training][:-1] - 1 for name in rows[0][1:3]])
    both = np.isfinite(pair).all(axis=0)
    assert float(rows[1][2]) == pytest.approx(np.corrcoef(pair[:, both])[0, 1], abs=1e-9)
    data = (folder.report / "data.html").read_text()
    drawn = [one for one in question_set.read_questions(questions) if one.split == "test"]
    of = len((folder.path / "questions.jsonl").read_text().splitlines())
    assert f"All questions of the split test, from which {of} are asked, by regime" in data
    regimes = Counter(one.regime for one in drawn)
    counts = "".join(f"<td>{regimes[name]}</td>" for name in question_set.REGIME_NAMES)
    assert f'<th scope="row">all</th><td>{len(drawn)}</td>{counts}' in data


def test_the_published_code_leaves_every_model_a_choice_and_is_named_as_what_it_is(tmp_path, questions):
    folder = RunFolder(tmp_path / "run")
    text = 'convention = "reference"\n' + plan(questions, "literal", "stubborn", profiles='"balanced"')
    asked("pipeline", folder, text)
    (above,) = [one for name, one in claims(folder.verdicts).items() if name.startswith("above")]
    assert above["p_adjusted"] < 1
    assert "No score" not in (folder.report / "index.html").read_text()
    assert "other convention" not in folder.verdicts.read_text()


class Own:
    """A custom agent that answers as told: a text, no answer, or another kind of ending."""

    def __init__(self, *says):
        self.says, self.asked = says, 0

    async def complete(self, call):
        text, finish = self.says[min(self.asked, len(self.says) - 1)]
        self.asked += 1
        return Reply(text=text, model=call.model, finish=finish)


def own(*names):
    model = '[[models]]\nname = "{0}"\nfamily = "{0}"\nmodel = "python/{0}:decide"\n'
    return "".join(map(model.format, names))


LEFT_OUT = "100.0% of its replies are missing, at most 5.0%"
RAISED = (failure("exception", "RuntimeError: no idea").text, "failed")
NEVER = {"raises": RAISED, "gone": (failure("unreachable", "nobody").text, "failed"), "refuses": ("no", "refusal")}


def test_models_that_never_replied_are_left_out_and_the_other_is_not_first(tmp_path, questions):
    folder, text = RunFolder(tmp_path / "run"), plan(questions, "stubborn", more=own(*NEVER))
    never = {f"python/{name}:decide": Own(says) for name, says in NEVER.items()}
    found = asked("qa", folder, text, **never)
    assert [f"{name} was left out of the questions: {LEFT_OUT}." in found.lines for name in NEVER] == [True] * 3
    decided = json.loads(folder.verdicts.read_text())
    assert decided["tally"].keys() - {"no-claim"} == {name for name, n in decided["tally"].items() if n == 0}
    assert (decided["missing"], decided["ranks"], decided["top_set"]) == (dict.fromkeys(NEVER, 1.0), {}, {})
    first = claims(folder.verdicts)["first[agent=stubborn,dimension=questions]"]
    assert "stubborn alone has a score." in (folder.report / "index.html").read_text()
    only = "stubborn is the only model with a score, and cannot be tested."
    assert (first["stability_status"], first["reasons"]) == ("not tested", [only])
    stopping = plan(questions, "literal", more=own("raises") + '[missing]\non_excess = "stop"\n')
    with pytest.raises(LedgerError, match=f"too many replies are missing: model raises: {LEFT_OUT}"):
        asked("qa", RunFolder(tmp_path / "stops"), stopping, **never)


@pytest.mark.parametrize(
    ("says", "most", "missing", "level"),
    [  # replies that came and cannot be read are wrong and not missing
        ((("what?", "stop"), ("", "stop"), ("I'm sorry, I cannot.", "stop"),
          (failure("wrong type", "must return a mapping (got list)").text, "failed")), 0.05, {}, "headline"),
        ((RAISED, ("what?", "stop")), 0.1, {"mine": 1 / 36}, "headline"),
        ((RAISED, ("what?", "stop")), 0.02, {"mine": 1 / 36}, "no-claim"),
    ],
)  # fmt: skip
def test_what_is_missing_within_the_limit_is_printed_and_caps_nothing(tmp_path, questions, says, most, missing, level):
    folder = RunFolder(tmp_path / "run")
    text = plan(questions, "literal", more=own("mine") + f"[missing]\nper_agent = {most}\n")
    found = asked("qa", folder, text, **{"python/mine:decide": Own(*says)})
    first = claims(folder.verdicts)["first[agent=literal,dimension=questions]"]
    assert first["publication_level"] == level
    assert json.loads(folder.verdicts.read_text())["missing"] == pytest.approx(missing, abs=1e-4)
    lost = "35 of 35 replies of mine to the questions could not be used" if missing else "36 of 36 replies of mine"
    page = (folder.report / "index.html").read_text()
    assert most == 0.02 or (any(line.startswith(lost) for line in found.lines) and lost in page)
    assert missing or ("could not be used (1 refused)." in page and "0.00, no interval" in page)
    if missing and level == "headline":
        said = "mine gave no reply to 1 of 36 calls of the questions (2.8 %)."
        assert said in found.lines
        assert said in page
        assert [one["text"] for one in first["conditions"] if one["id"] == "missing-replies"] == [said]


def test_of_a_model_without_replies_nothing_is_claimed_or_shown_in_either_order(tmp_path, monkeypatch, ran, questions):
    """Through the command, with an agent that raises at every question and every stage."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "agent_that_raises.py").write_text("def decide(context):\n    raise RuntimeError('no idea')\n")
    mine = own("mine").replace("mine:decide", "agent_that_raises:decide")
    (tmp_path / "plan.toml").write_text(plan(questions, "literal", "momentum", more=mine))
    turns = (("one", "qa"), ("one", "pipeline"), ("two", "pipeline"), ("two", "qa"))
    said = "".join(ran("bench", part, tmp_path / "plan.toml", "--out", tmp_path / out) for out, part in turns)
    one, two = (RunFolder(tmp_path / name) for name in ("one", "two"))
    assert one.verdicts.read_bytes() == two.verdicts.read_bytes()
    decided = json.loads(one.verdicts.read_text())
    assert decided["missing"] == {"mine": 1.0}
    assert not any("mine" in tier for tiers in decided["tiers"].values() for tier in tiers)
    every = claims(one.verdicts).values()
    mine = [found for found in every if "mine" in found["claim"]["subjects"]]
    assert {found["claim"]["id"].partition("[")[0] for found in mine} == {"first", "above", "within", "gate", "beats"}
    assert {found["publication_level"] for found in mine} == {"no-claim"}
    assert all(f"mine has no score: {LEFT_OUT}." in found["reasons"] for found in mine)
    orders = [found for found in every if found["publication_level"] != "no-claim"]
    assert {found["publication_level"] for found in orders} == {"qualified"}
    assert all(f"mine was left out of the pipeline: {LEFT_OUT}." in found["condition"] for found in orders)
    rows = [found for found in Store(one).read(MEASUREMENTS) if found.labels.get("model") == "mine"]
    assert {found.name for found in rows if found.value is not None} == {"missing.share"}
    index, scores, histories = ((one.report / f"{name}.html").read_text() for name in ("index", "scores", "histories"))
    for part in ("pipeline", "questions"):
        line = f"mine was left out of the {part}: {LEFT_OUT}."
        assert line in index
        assert line in said
    assert "left out: too many of the replies did not come" in scores
    assert f"No history: {LEFT_OUT}." in histories
    assert "not run to its end" not in histories
    kept = portbench.BenchmarkIndex.of(tracks.decide_bench(one)).results
    assert {result.model for result in kept} == {"literal", "momentum"}


def test_the_same_run_again_asks_nothing_and_writes_the_same_and_what_is_turned_is_named(benched, tmp_path):
    folder = RunFolder(Path(shutil.copytree(benched[0].path, tmp_path / "run")))
    before = files(folder)
    asked("pipeline", folder, benched[1], **dying(0))
    asked("qa", folder, benched[1], **dying(0))
    assert files(folder) == before
    assert verify_run(folder).differences == ()
    for name, text in {
        "study.lock": b"amendments", "plan.toml": b"market", "verdicts.json": b"tally", "questions.jsonl": b"prompt",
        "tables/scores.parquet": b"PAR1", "ledger.db": b"reference/portbench-literal",
    }.items():  # fmt: skip
        path = folder.path / name
        raw = path.read_bytes()
        at = raw.index(text)
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        found = {one.where for one in verify_run(folder).differences}
        path.write_bytes(raw)
        assert found == {name}


def test_a_run_that_is_stopped_goes_on_and_what_was_run_first_changes_no_verdict(benched, tmp_path):
    """The family of tests is that of the plan: what the pipeline supports does not wait for the questions, nor back."""
    whole, text = benched
    folder = RunFolder(tmp_path / "run")
    for left in (3, 6):
        with pytest.raises(ModelError, match="out of service"):
            asked("pipeline", folder, text, **dying(left))
    asked("pipeline", folder, text)
    last = claims(whole.verdicts)
    for alone in (claims(folder.verdicts), claims(whole.path.parent / "questions-alone.json")):
        assert len(alone) > 10
        assert alone.items() <= last.items()
    asked("qa", folder, text)
    for name in ("verdicts.json", "tables/scores.parquet"):
        assert (folder.path / name).read_bytes() == (whole.path / name).read_bytes()


def test_planted_skill_on_questions_orders_the_models(tmp_path, questions):
    """Ten models that solve a planted share of the questions: their mean scores are in that order, up to noise."""
    folder = RunFolder(tmp_path / "run")
    asked("qa", folder, plan(questions, *RULES).replace("per_template = 4", 'per_template = 25\nsplit = "train"'))
    found = {
        one.labels["model"]: one.value
        for one in Store(folder).read(MEASUREMENTS)
        if one.name == "bench.level" and one.labels["board"] == "questions"
    }
    floor, ceiling = found["prior"], found["literal"]
    assert min(found.values()) > floor - 0.1
    assert max(found.values()) == ceiling
    recovered = {name: (value - floor) / (ceiling - floor) for name, value in found.items()}
    assert recovered == pytest.approx({name: rule.skill for name, rule in RULES.items()}, abs=0.2)
    assert np.corrcoef(list(recovered.values()), [RULES[name].skill for name in recovered])[0, 1] > 0.95


def test_judges_grade_the_rationales_in_a_run_of_their_own(tmp_path, questions):
    judges = "\n".join(
        f'[[judges]]\nname = "{word}"\nfamily = "{word}"\nmodel = "reference/{word}"' for word in ("auditor", "reader")
    )
    folder = RunFolder(tmp_path / "run")
    text = plan(questions, "literal", "stubborn", more=judges, profiles='"balanced"')
    asked("pipeline", folder, text, **reference_judges())
    panel = RunFolder(folder.path / "rationales")
    assert json.loads(panel.verdicts.read_text())["panel"]["judges"] == {"auditor": "auditor", "reader": "reader"}
    assert (panel.report / "index.html").is_file()
    texts = [[one.text for one in decision.rationales] for decision in Store(panel).read(DECISIONS)]
    assert {tuple(text.partition(":")[0] for text in some) for some in texts} == {("Views", "Signals", "Weights")}
    assert "../rationales/report/index.html" in (folder.report / "index.html").read_text()
    assert verify_run(folder).differences == ()
    panel.verdicts.write_text(panel.verdicts.read_text().replace("1", "2", 1))
    assert [one.where for one in verify_run(folder).differences] == ["rationales/verdicts.json"]
    exported = {str(path.relative_to(tmp_path)) for path in export_arrow(folder, tmp_path / "arrow")}
    assert len(exported) == len([*folder.tables.glob("*.parquet"), *panel.tables.glob("*.parquet")])
    assert exported > {"arrow/scores.arrow", "arrow/rationales/judgments.arrow"}


def words_of(questions, model, *windows):
    """Return the command line of a benchmark."""
    few = ["--instruments", "12", "--profile", "balanced", "--pace", "quarterly", "--per-template", "2"]
    return [*few, "--questions", str(questions), "--model", model, *(w for one in windows for w in ("--window", one))]


def test_one_model_by_its_short_name(tmp_path, monkeypatch, ran, questions):
    monkeypatch.chdir(tmp_path)
    few = words_of(questions, "reference/solver", "china-2015", "covid-2020", "crypto-2022")
    said = ran("bench", "qa", *few) + ran("bench", "pipeline", *few)
    assert "page: assaymark-bench-literal/report/index.html" in said
    assert "the pipeline was not run yet" in said
    (line,) = (one for one in said.splitlines() if one.startswith(("Supported: ", "Only with its condition: ")))
    verdicts = Store(RunFolder(Path("assaymark-bench-literal"))).read(VERDICTS)
    (decided,) = (one for one in verdicts if one.claim.statement in line)
    also = f" The models are rule-based stand-ins. {decided.condition or ''}".rstrip()
    assert line.endswith(decided.claim.statement + also)  # whoever copies a line has what has to be said with it
    ran("report", "assaymark-bench-literal")


def test_a_dry_run_says_what_would_be_asked_and_writes_nothing_nor_does_a_run_without_a_key(
    tmp_path, monkeypatch, ran, refused, questions
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    words = [*words_of(questions, "openai/gpt-5.2", "normal"), "--out", str(tmp_path / "run")]
    # four dates, three stages; seven templates, two questions, two of them under two conditions
    for part, calls in (("pipeline", "12 calls"), ("qa", "18 calls")):
        assert calls in ran("bench", part, *words, "--dry-run")
    assert "OPENAI_API_KEY" in refused("bench", "qa", *words)
    assert not (tmp_path / "run").exists()
    assert "did you mean reference/portbench-literal?" in refused("bench", "qa", "--model", "reference/solvr", "-n")
    for word, model in (("momentum", "portbench-momentum"), ("equal-weight", "portbench-stubborn"), ("nobody",) * 2):
        assert tracks.resolve(f"reference/{word}") == f"reference/{model}"
    text, _ = tracks.plan_text(None, {"model": ["openai/one", "google/one"], "temperature": -1, "max_tokens": 100})
    assert ('name = "one"' in text, 'name = "one-2"' in text, "temperature" in text) == (True, True, False)


def test_a_folder_holds_one_plan_as_it_was_locked_and_no_study(benched, demo, questions, tmp_path, refused):
    folder, text = benched
    for changed in ("per_template = 4", "per_template = 5"), ("instruments = 12", "instruments = 13"):
        with pytest.raises(PlanError, match="differs from the plan locked"):
            asked("qa", folder, text.replace(*changed))
    copied = RunFolder(Path(shutil.copytree(folder.path, tmp_path / "run")))
    copied.plan.write_text(text.replace("per_template = 4", "per_template = 3"))
    with pytest.raises(PlanError, match="edited after the lock"):
        tracks.bench_report(copied)
    with pytest.raises(AssayError, match=r"none\.jsonl"):
        asked("qa", RunFolder(tmp_path / "none"), text.replace("set.jsonl", "none.jsonl"))
    with pytest.raises(PlanError, match="contains a study"):
        asked("qa", RunFolder(demo), plan(questions, "literal"))
    assert "benchmark" in refused("judge", folder.path)


@pytest.mark.parametrize(
    ("part", "wrong", "right", "told"),
    [
        ("pipeline", '"covid-2020"', '"tulips-1637"', "tulips-1637"),
        ("pipeline", "instruments = 12", "instruments = 3", "6 or more"),
        ("pipeline", "instruments = 12", 'instruments = ["A", "B", "C", "D", "E", "F"]', "A"),
        ("pipeline", "instruments = 12", 'source = "/nowhere"', "/nowhere"),
        ("pipeline", "per_template = 4", "per_template = 0", "per_template"),
        ("pipeline", '"balanced", "conservative"', '"reckless"', "balanced"),
        ("pipeline", "[market]", "[markt]", "markt"),
        ("qa", "set.jsonl", "gone.jsonl", "gone.jsonl: cannot be read: No such file"),
        ("pipeline", "portbench-literal", "portbench-nobody", "nobody"),
        # On the command line reference/momentum is the benchmark's; in a file it would be the agent of that name.
        *(("qa", "portbench-literal", named,
           f"reference/{named} answers nothing .*; did you mean reference/portbench-{meant}")
          for named, meant in (("momentum", "momentum"), ("solver", "literal"), ("solvr", "literal"))),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_run_says_why_and_locks_nothing(tmp_path, questions, part, wrong, right, told):
    with pytest.raises(AssayError, match=told):
        asked(part, RunFolder(tmp_path / "run"), plan(questions, "literal").replace(wrong, right), **models())
    assert not (tmp_path / "run" / "study.lock").exists()


def test_the_embedded_market_as_a_snapshot_has_the_same_windows(benched, tmp_path, questions):
    assert main(["data", "synth", "--out", str(tmp_path / "market")]) == 0
    source = f'instruments = 12\nsource = "{tmp_path / "market"}"'
    asked("pipeline", stored := RunFolder(tmp_path / "stored"),
          plan(questions, "stubborn", profiles='"balanced"').replace("instruments = 12", source))  # fmt: skip
    embedded = [one for one in Store(benched[0]).read(SCORES) if one.agent == "stubborn" and one.name != "QA"]
    wanted = [one for one in embedded if one.labels["profile"] == "balanced"]
    assert len(wanted) == len(embedded) / 2
    assert Store(stored).read(SCORES) == wanted
