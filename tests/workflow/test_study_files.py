"""The study files that ship with the project: they parse, and say what their comments say."""

from __future__ import annotations

from pathlib import Path

import pytest

from assaymark import workflow
from assaymark.protocol import parse_study

# The demo's study is part of the package, so that it runs where only the package is installed.
FOLDERS = (Path(workflow.__file__).parent, Path(__file__).resolve().parents[2] / "studies")
FILES = {path.stem: path for folder in FOLDERS for path in folder.glob("*.toml")}


def study(name: str):
    return parse_study(FILES[name].read_text(encoding="utf-8"), source=f"{name}.toml")


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_study_file_is_valid_and_named_after_itself(name):
    assert study(name).name == name
    assert study(name).title


@pytest.mark.parametrize(("name", "trials"), [("demo", [1, 2, 1]), ("capitalbench", [1, 1, 1])])
def test_the_reference_panel_has_three_families(name, trials):
    panel = study(name).judges
    assert [judge.model for judge in panel] == ["reference/auditor", "reference/reader", "reference/allocator"]
    assert [judge.family for judge in panel] == [judge.name for judge in panel]
    assert [judge.trials for judge in panel] == trials


def test_both_studies_use_the_same_panel_and_gates():
    demo, real = study("demo"), study("capitalbench")
    assert [judge.model_copy(update={"trials": 1}) for judge in demo.judges] == list(real.judges)
    assert demo.gates == real.gates
    assert demo.inference == real.inference


def test_decisions_with_conflicting_clocks_are_left_out():
    assert study("capitalbench").records.exclude_flags == ("clock-conflict",)
