from __future__ import annotations

import json
from pathlib import Path

import pytest

from assaymark.encoding import write_atomic
from assaymark.errors import InputError, LedgerError, PlanError
from assaymark.workflow import RunFolder, json_text, new_folder, read_json, read_text, replace_files


def test_a_file_is_the_old_one_or_the_new_one(tmp_path, monkeypatch):
    path = tmp_path / "a" / "file.txt"
    write_atomic(path, "old")

    def refuse(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(LedgerError, match=r"cannot write .*file\.txt: No space left on device"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [item.name for item in path.parent.iterdir()] == ["file.txt"]


def test_what_an_earlier_run_left_is_removed(tmp_path):
    replace_files(tmp_path, {"a.html": "1", "sub/b.html": "2"})
    replace_files(tmp_path, {"a.html": "3"})
    assert {str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.rglob("*") if p.is_file()} == {"a.html": "3"}


def test_json_is_one_entry_a_line():
    value = {"b": {"y": [1, {"z": 2}], "x": None}, "a": [3, "é"], "c": 1.5, "d": [], "e": {}}
    text = json_text(value)
    assert json.loads(text) == value
    assert '"é"\n' in text
    assert '"y": [1,{"z":2}]' in text


def test_a_new_folder_disappears_with_the_failure_that_made_it_and_one_that_was_there_stays(tmp_path):
    def stumble(target: Path) -> None:
        with new_folder(target):
            (target / "half").mkdir(exist_ok=True)
            (target / "half" / "written").write_text("x")
            raise KeyError("stop")

    (tmp_path / "mine").write_text("x")
    for target in (tmp_path / "deep" / "run", tmp_path):
        with pytest.raises(KeyError, match="stop"):
            stumble(target)
        assert not (tmp_path / "deep" / "run").exists()
    assert (tmp_path / "mine").read_text() == "x"
    with pytest.raises(PlanError, match="cannot be made a folder"), new_folder(tmp_path / "mine"):
        pass


def test_what_cannot_be_read_says_why_and_a_folder_without_records_which_command_makes_them(tmp_path):
    for name, told in (("none", "no such plan"), (".", "cannot read this plan")):
        with pytest.raises(InputError, match=told):
            read_text(tmp_path / name, "plan")
    (tmp_path / "m.json").write_text('{"a": 1,\n}')
    with pytest.raises(LedgerError, match="damaged at line 2"):
        read_json(tmp_path / "m.json", "manifest")
    with pytest.raises(InputError, match="assaymark import FORMAT PATH --out"):
        RunFolder(tmp_path).require()
