"""Controls made from imported records: what they lift, what they cannot be made from, and when it is too late."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from assaymark.cli import main
from assaymark.workflow import CYCLES, DECISIONS, RunFolder, Store, open_locked, store_records

AGENTS = ("birch", "cedar", "dogwood")
STUDY = """
name = "imported"
seed = 4
[records]
derivations = ["honest"]
[claims]
length = "off"
""" + "".join(
    f'[[judges]]\nname = "{name}"\nfamily = "{name}"\nmodel = "reference/{name}"\nargs = {{ {args} }}\n'
    for name, args in (
        ("reader", "noise = 0.2, slope = 0.0"),
        ("auditor", "noise = 0.2, slope = 0.0"),
        ("allocator", "noise = 0.2"),
    )
)


@pytest.fixture(scope="module")
def logs(demo, tmp_path_factory) -> Path:
    """Records of three agents as an importer leaves them: the demo's, without the plan that made them."""
    store, folder = Store(RunFolder(demo)), tmp_path_factory.mktemp("logs") / "run"
    folder.mkdir()
    some = {key.context_id for key in store.read(CYCLES) if key.number <= 4}
    honest = [one for one in store.read(DECISIONS) if one.derivation.kind == "honest" and one.agent.id in AGENTS]
    contexts = {name: context for name, context in store.each_context() if name in some}
    store_records(RunFolder(folder), [one for one in honest if one.context_id in some], contexts, ())
    return folder


@pytest.fixture
def logged(logs, tmp_path) -> Path:
    return Path(shutil.copytree(logs, tmp_path / "run"))


def study(folder: Path, *kinds: str) -> str:
    named = ", ".join(f'"{kind}"' for kind in ("honest", *kinds))
    (folder / "study.toml").write_text(STUDY.replace('["honest"]', f"[{named}]"), encoding="utf-8")
    return str(folder / "study.toml")


def level(run: Path) -> str:
    file = json.loads((run / "verdicts.json").read_text(encoding="utf-8"))
    above = "above[dimension=aggregate,high=cedar,low=birch]"
    return next(one["publication_level"] for one in file["verdicts"] if one["claim"]["id"] == above)


def test_with_controls_an_imported_study_reaches_a_headline(logs, logged, tmp_path, capsys):
    bare = Path(shutil.copytree(logs, tmp_path / "bare"))
    assert main(["--quiet", "run", study(tmp_path), "--out", str(bare)]) == 0
    assert level(bare) == "qualified"
    capsys.readouterr()
    assert main(["--quiet", "controls", str(logged), "--count", "10", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["made"] == {"cell_a": 10, "cell_b": 10, "fact_flip": 10}
    assert main(["--quiet", "run", study(tmp_path, "cell_a", "cell_b"), "--out", str(logged)]) == 0
    assert level(logged) == "headline"
    assert main(["--quiet", "claim", "--verify", *map(str, (logged / "certificates").iterdir())]) == 0
    assert main(["controls", str(logged)]) == 1
    assert "judges were asked already" in capsys.readouterr().err


def test_a_locked_plan_is_amended_before_judging_and_controls_are_made_once(logged, tmp_path, capsys):
    assert main(["--quiet", "lock", study(tmp_path), "--out", str(logged)]) == 0
    assert main(["controls", str(logged), "--count", "3", "--kinds", "cell_b,cell_a"]) == 0
    said = capsys.readouterr().out
    assert "cell_a: 3 of 3 made, from 20 contexts" in said
    assert "amendment 1: controls made from the records: cell_a, cell_b" in said
    locked = open_locked(RunFolder(logged))
    assert locked.study.records.derivations == ("honest", "cell_a", "cell_b")
    assert locked.amended == ("records.derivations",)
    assert main(["controls", str(logged)]) == 1
    assert "has controls already" in capsys.readouterr().err


def test_what_cannot_be_made_is_counted_with_its_reason_and_an_error_where_nothing_is(imported, own, capsys):
    """Two features of an instrument are too few for a terse text; its weights have a book, its texts have numbers."""
    before = Store(RunFolder(imported)).content(DECISIONS)
    for folder, kinds, said in (
        (imported, ["--kinds", "cell_c"], "unknown kind of control 'cell_c'"),
        (imported, ["--kinds", "cell_b"], "no control could be made"),
        (own, [], "its plan asks for controls with [controls]"),
    ):
        assert main(["controls", str(folder), *kinds]) == 1
        assert said in capsys.readouterr().err
    assert Store(RunFolder(imported)).content(DECISIONS) == before
    assert main(["controls", str(imported), "--count", "5"]) == 0
    told = capsys.readouterr().out
    for said in ("cell_b: 0 of 5 made, from 24 contexts", "fact_flip: 5 of 5 made, from 72 records",
                 "24 contexts gave none: cell_b cannot be made from this context: no instrument has",
                 'derivations = ["honest", "cell_a", "fact_flip"]'):  # fmt: skip
        assert said in told
