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

[[judges]]
name = "reader"
family = "maker-a"
model = "reference/reader"
args = { noise = 0.2, slope = 0.0 }

[[judges]]
name = "auditor"
family = "maker-b"
model = "reference/auditor"
args = { noise = 0.2, slope = 0.0 }

[[judges]]
name = "allocator"
family = "maker-c"
model = "reference/allocator"
args = { noise = 0.2 }
"""


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
    path = folder / "study.toml"
    path.write_text(STUDY.replace('["honest"]', f"[{named}]"), encoding="utf-8")
    return str(path)


def levels(run: Path) -> dict[str, str]:
    file = json.loads((run / "verdicts.json").read_text(encoding="utf-8"))
    return {one["claim"]["id"]: one["publication_level"] for one in file["verdicts"]}


def test_with_controls_an_imported_study_reaches_a_headline(logs, logged, tmp_path, capsys):
    bare = Path(shutil.copytree(logs, tmp_path / "bare"))
    assert main(["--quiet", "run", study(tmp_path), "--out", str(bare)]) == 0
    above = "above[dimension=aggregate,high=cedar,low=birch]"
    assert levels(bare)[above] == "qualified"
    capsys.readouterr()
    assert main(["--quiet", "controls", str(logged), "--count", "10", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["made"] == {"cell_a": 10, "cell_b": 10, "fact_flip": 10}
    assert main(["--quiet", "run", study(tmp_path, "cell_a", "cell_b"), "--out", str(logged)]) == 0
    assert levels(logged)[above] == "headline"
    certificates = map(str, (logged / "certificates").iterdir())
    assert main(["--quiet", "claim", "--verify", *certificates]) == 0
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


def test_what_cannot_be_made_is_counted_with_its_reason(imported, capsys):
    """Two features of an instrument are too few for a terse text; its weights have a book, its texts have numbers."""
    assert main(["controls", str(imported), "--count", "5"]) == 0
    said = capsys.readouterr().out
    assert "cell_b: 0 of 5 made, from 24 contexts" in said
    assert "24 contexts gave none: cell_b cannot be made from this context: no instrument has" in said
    assert "fact_flip: 5 of 5 made, from 72 records" in said
    assert 'derivations = ["honest", "cell_a", "fact_flip"]' in said


@pytest.mark.parametrize(
    ("asked", "said"),
    [(["--kinds", "cell_c"], "unknown kind of control 'cell_c'"), (["--kinds", "cell_b"], "no control could be made")],
)
def test_what_makes_no_control_is_an_error(imported, asked, said, capsys):
    before = Store(RunFolder(imported)).content(DECISIONS)
    assert main(["controls", str(imported), *asked]) == 1
    assert said in capsys.readouterr().err
    assert Store(RunFolder(imported)).content(DECISIONS) == before


def test_a_study_that_makes_its_own_records_has_its_own_controls(own, capsys):
    assert main(["controls", str(own)]) == 1
    assert "its plan asks for controls with [controls]" in capsys.readouterr().err
