"""A study that makes its own records: cut, probed, locked, decided and judged with one command."""

# ruff: noqa: I001

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from assaymark.cli import main
from assaymark.engine import Ledger
from assaymark.workflow import (
    CONTEXTS, CYCLES, DECISIONS, JUDGMENTS, MEASUREMENTS, RunFolder, Store, open_locked, store_records,
    unusable_decisions,
)  # fmt: skip

STUDY = """
name = "small"
seed = 5
oracle = true
agents = [
  { name = "one", family = "alder", model = "reference/steward", args = { style = "alder" } },
  { name = "two", family = "dogwood", model = "reference/equal-weight" },
]
judges = [
  { name = "auditor", family = "alder", model = "reference/auditor" },
  { name = "reader", family = "birch", model = "reference/reader" },
]
inference = { allow_hopeless = true }
[substrate]
seed = 3
regimes = ["liquidity", "expansion", "recent"]
cycles = 4
date_probe = { model = "reference/dater", sample = 6 }
[controls]
cell_a = 3
cell_b = 3
paraphrase = 2
fact_flip = 2
length_matched = 2
length_tokens = 150
family = "alder"
style = "alder"
[records]
derivations = ["honest", "cell_a", "cell_b", "paraphrase", "fact_flip", "length_matched"]
"""
EQUAL = 'model = "reference/equal-weight"'


def study(tmp_path: Path, *changes: tuple[str, str]) -> str:
    text, path = STUDY, tmp_path / "study.toml"
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return str(path)


def store_of(folder: Path) -> Store:
    return Store(RunFolder(folder))


@pytest.fixture(scope="module")
def made(own_copy) -> Path:
    """A finished run. Not to be changed."""

    def build(folder: Path) -> None:
        assert main(["run", study(folder), "--out", str(folder / "run")]) == 0

    return own_copy("own-records", build) / "run"


def test_every_cycle_is_decided_by_every_agent_and_the_controls_stand_beside_them(made):
    store = store_of(made)
    decisions = store.read(DECISIONS)
    kinds = Counter(one.derivation.kind for one in decisions)
    controls = {"cell_a": 3, "cell_b": 3, "paraphrase": 2, "fact_flip": 2, "length_matched": 2}
    assert kinds == {"honest": 2 * 3 * 4, **controls}
    assert store.rows(CONTEXTS) == store.rows(CYCLES) == 12
    assert {one.cluster for one in decisions} == {"liquidity", "expansion", "recent"}
    by_id = {one.record_id: one for one in decisions}
    for one in decisions:
        if one.derivation.kind in ("paraphrase", "fact_flip", "length_matched"):
            parent = by_id[one.derivation.parent]
            assert (parent.actions, parent.cycle) == (one.actions, one.cycle)


def test_the_lock_comes_before_the_decisions_and_says_what_the_probes_found(made):
    lock = json.loads((made / "study.lock").read_text())
    assert set(lock["tables"]) == {"contexts"}
    probes = [(one["probe"], one["passed"], one["asked"]) for one in lock["date_probes"]]
    assert probes == [("mechanical", True, 6), ("model", True, 6)]
    assert lock["date_probes"][1]["control_hits"] == 6


def test_no_real_name_and_no_real_date_reaches_an_agent_or_a_judge(made):
    store = store_of(made)
    keys = store.read(CYCLES)
    names = {name for key in keys for name in key.names.values()}
    assert len(names) == 6
    with Ledger.open(made / "ledger.db", create=False) as ledger:
        raw = [one.call.raw_object for one in store.read(DECISIONS) if one.call.raw_object]
        assert len(dict(ledger.replies(raw))) == len(raw)
    contexts = (made / "tables" / "contexts.parquet").read_bytes()
    assert not [name for name in names if name.encode() in contexts]
    text = "".join(one.prompt + str(one.series) for one in store.contexts().values())
    assert not [key for key in keys if key.last_bar.date().isoformat() in text]


def test_the_conduct_of_the_agents_the_oracle_and_the_cells_are_measured(made):
    found = {one.id: one for one in store_of(made).read(MEASUREMENTS)}
    assert found["agent.limits_kept[agent=one]"].value == 1.0
    assert found["agent.answered[agent=two]"].n == 12
    assert found["agent.seconds[agent=one]"].value > 0
    assert found["oracle.error[judge=auditor]"].n == 36
    assert {"cell.gate[cell=cell_a]", "cell.gate[cell=fact_flip]"} <= set(found)


def test_another_study_in_the_same_folder_is_refused(made, tmp_path, refused):
    copy = shutil.copytree(made, tmp_path / "run")
    for change, said in ((("seed = 5", "seed = 6"), "differs from the plan locked in"),
                         (("seed = 3", "seed = 4"), "holds other records already")):  # fmt: skip
        assert said in refused("run", study(tmp_path, change), "--out", copy)
    assert store_of(copy).rows(JUDGMENTS) == 72


def test_a_study_that_is_wrong_is_refused_in_one_line_and_leaves_nothing(tmp_path, refused):
    for old, new, message in (
        ('"reference/steward"', '"reference/stewart"', "agents.0.model: unknown model 'reference/stewart'"),
        ('{ style = "alder" }', '{ style = "oak" }', "agents.0.args: argument style must be one of"),
        ('"liquidity", ', '"liquidty", ', "unknown regime 'liquidty'. Did you mean 'liquidity'"),
        ('model = "reference/dater"', 'model = "reference/later"', "substrate.date_probe.model: unknown model"),
        ('derivations = ["honest", "cell_a", ', 'derivations = ["honest", ', "missing: cell_a"),
        ("seed = 3", 'source = "bars.csv"', "bars from a file need a window for every regime"),
        ('name = "two"', 'name = "one"', "each agent needs a unique name (got one more than once)"),
        (EQUAL, 'model = "http/127.0.0.1:9/x", seed = 1', "agents.1.seed: is not sent"),
        ("cell_a = 3", "cell_a = -1", "controls.cell_a"),
        (STUDY[STUDY.index("[substrate]") :], "", "with both [[agents]] and [substrate], or has neither"),
    ):
        err = refused("run", study(tmp_path, (old, new)), "--out", tmp_path / "run")
        assert message in err
        assert "Traceback" not in err
        assert not (tmp_path / "run" / "study.lock").exists()


def test_material_that_can_be_dated_is_not_locked(tmp_path, refused, monkeypatch):
    """A cut that forgets to rebase: both probes work, and the lock is refused."""
    from assaymark.market import cycles

    def unrebased(bars, rng):
        shown, key = original(bars, rng)
        raw = {one.instrument: one for one in bars}
        kept = [raw[key[one.instrument]] for one in shown]
        leaky = [type(one)(one.instrument, one.times, was.open, was.high, was.low, was.close, one.volume)
                 for one, was in zip(shown, kept, strict=True)]  # fmt: skip
        return tuple(leaky), key

    original = cycles.sanitise
    monkeypatch.setattr(cycles, "sanitise", unrebased)
    err = refused("run", study(tmp_path), "--out", tmp_path / "run")
    assert "date-leakage check by price ranges: FAIL" in err
    assert not (tmp_path / "run" / "study.lock").exists()


OWN = """
def decide(context):
    best = max(context.instruments, key=lambda item: [f.value for f in context.facts
               if f.instrument == item.id and f.field == "return_60m"][0])
    if context.portfolio.cash > 50_000:
        raise RuntimeError("no idea")
    return {"orders": [{"instrument": best.id, "side": "buy", "quantity": 0.5}, {"instrument": "GOLD", "side": "buy",
            "quantity": 1}], "rationale": f"{best.id} rose most over the hour.", "confidence": 0.5}
"""


def test_an_agent_of_ones_own_is_measured_and_its_failures_are_recorded(tmp_path, monkeypatch, refused, capsys):
    (tmp_path / "own_agent_for_this_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    run = ["run", study(tmp_path, (EQUAL, 'model = "python/own_agent_for_this_test:decide"'))]
    run += ["--out", str(tmp_path / "run")]
    (*_, err) = refused(*run, "--strict-agents").strip().splitlines()
    assert err.startswith("assaymark: python/own_agent_for_this_test:decide: raised RuntimeError: no idea (")
    assert "own_agent_for_this_test.py, line 6); stopped here, because of --strict-agents" in err
    assert main(run) == 0
    (raised,) = [line for line in capsys.readouterr().err.splitlines() if " raised " in line]
    store = store_of(tmp_path / "run")
    own = [one for one in store.read(DECISIONS) if one.agent.id == "two"]
    silent = [one for one in own if one.flags == ("no-answer",)]
    assert raised.endswith(f"own_agent_for_this_test.py, line 6), {len(silent)} times; recorded as no answer")
    assert {one.flags for one in own} == {("rejected-order",), ("no-answer",)}
    assert all("no idea" in one.missing[0] for one in silent)
    (line,) = unusable_decisions(silent)
    assert line.endswith("give this agent another model in a new run folder")  # an agent's model is never amended
    assert all("'GOLD' is not offered" in one.missing[0] for one in own if one not in silent)
    found = {one.id: one for one in store.read(MEASUREMENTS)}
    assert found["agent.answered[agent=two]"].value == pytest.approx(1 - len(silent) / 12)


def test_an_agent_that_was_never_started_stops_the_run_before_it_asks(tmp_path, refused):
    path = study(tmp_path, (EQUAL, 'model = "http/127.0.0.1:9/decide"'))
    assert "nothing answers at" in refused("run", path, "--out", tmp_path / "run")
    assert store_of(tmp_path / "run").digest(DECISIONS) is None


def test_a_plan_may_be_amended_until_an_agent_is_asked_and_keeps_what_the_probes_found(tmp_path, ran, refused):
    folder = tmp_path / "run"

    def amend(old: str, new: str) -> list[str]:
        return ["amend", study(tmp_path, (old, new)), "--out", str(folder), "--reason", "fewer controls are enough"]

    assert "date-leakage check by a model PASS: dated" in ran("lock", study(tmp_path), "--out", folder)
    ran(*amend("cell_a = 3", "cell_a = 2"))
    assert len(json.loads((folder / "study.lock").read_text())["date_probes"]) == 2
    ran("judge", folder)
    assert store_of(folder).rows(JUDGMENTS) == 2 * 35
    assert "the asking has begun" in refused(*amend("cell_a = 3", "cell_a = 1"))
    assert "the cycles are cut already" in refused(*amend("cycles = 4", "cycles = 5"))


# --- controls made from imported records ------------------------------------------------------------------------------


AGENTS = ("birch", "cedar", "dogwood")
LOGS_STUDY = """
name = "imported"
seed = 4
[records]
derivations = ["honest"]
[claims]
length = "off"
""" + "".join(
    f'[[judges]]\nname = "{name}"\nfamily = "{name}"\nmodel = "reference/{name}"\nargs = {{ noise = 0.2{slope} }}\n'
    for name, slope in (("reader", ", slope = 0.0"), ("auditor", ", slope = 0.0"), ("allocator", ""))
)


@pytest.fixture(scope="module")
def logs(demo, tmp_path_factory) -> Path:
    """Records of three agents as an importer leaves them: the demo's, without the plan that made them."""
    store, folder = store_of(demo), tmp_path_factory.mktemp("logs") / "run"
    folder.mkdir()
    some = {key.context_id for key in store.read(CYCLES) if key.number <= 4}
    honest = [one for one in store.read(DECISIONS) if one.derivation.kind == "honest" and one.agent.id in AGENTS]
    contexts = {name: context for name, context in store.each_context() if name in some}
    store_records(RunFolder(folder), [one for one in honest if one.context_id in some], contexts, ())
    return folder


@pytest.fixture
def logged(logs, tmp_path) -> Path:
    return Path(shutil.copytree(logs, tmp_path / "run"))


def study_of_logs(folder: Path, *kinds: str) -> str:
    named = ", ".join(f'"{kind}"' for kind in ("honest", *kinds))
    (folder / "study.toml").write_text(LOGS_STUDY.replace('["honest"]', f"[{named}]"), encoding="utf-8")
    return str(folder / "study.toml")


def level(run: Path) -> str:
    file = json.loads((run / "verdicts.json").read_text(encoding="utf-8"))
    above = "above[dimension=aggregate,high=cedar,low=birch]"
    return next(one["publication_level"] for one in file["verdicts"] if one["claim"]["id"] == above)


def test_with_controls_an_imported_study_reaches_a_headline(logs, logged, tmp_path, ran, capsys):
    bare = Path(shutil.copytree(logs, tmp_path / "bare"))
    assert main(["--quiet", "run", study_of_logs(tmp_path), "--out", str(bare)]) == 0
    assert level(bare) == "qualified"
    capsys.readouterr()
    assert json.loads(ran("--quiet", "controls", logged, "--count", "10", "--json"))["made"] == {
        "cell_a": 10,
        "cell_b": 10,
        "fact_flip": 10,
    }
    assert main(["--quiet", "run", study_of_logs(tmp_path, "cell_a", "cell_b"), "--out", str(logged)]) == 0
    assert level(logged) == "headline"
    assert main(["--quiet", "claim", "--verify", *map(str, (logged / "certificates").iterdir())]) == 0
    assert "judges were asked already" in ran("controls", logged, status=1)


def test_a_locked_plan_is_amended_before_judging_and_controls_are_made_once(logged, tmp_path, ran):
    ran("--quiet", "lock", study_of_logs(tmp_path), "--out", logged)
    said = ran("controls", logged, "--count", "3", "--kinds", "cell_b,cell_a")
    assert "cell_a: 3 of 3 made, from 20 contexts" in said
    assert "amendment 1: controls made from the records: cell_a, cell_b" in said
    locked = open_locked(RunFolder(logged))
    assert locked.study.records.derivations == ("honest", "cell_a", "cell_b")
    assert locked.amended == ("records.derivations",)
    assert "has controls already" in ran("controls", logged, status=1)


def test_what_cannot_be_made_is_counted_with_its_reason_and_an_error_where_nothing_is(imported, own, ran):
    """Two features of an instrument are too few for a terse text; its weights have a book, its texts have numbers."""
    before = store_of(imported).content(DECISIONS)
    for folder, kinds, said in (
        (imported, ["--kinds", "cell_c"], "unknown kind of control 'cell_c'"),
        (imported, ["--kinds", "cell_b"], "no control could be made"),
        (own, [], "its plan asks for controls with [controls]"),
    ):
        assert said in ran("controls", folder, *kinds, status=1)
    assert store_of(imported).content(DECISIONS) == before
    told = ran("controls", imported, "--count", "5")
    for said in ("cell_b: 0 of 5 made, from 24 contexts", "fact_flip: 5 of 5 made, from 72 records",
                 "24 contexts gave none: cell_b cannot be made from this context: no instrument has",
                 'derivations = ["honest", "cell_a", "fact_flip"]'):  # fmt: skip
        assert said in told
