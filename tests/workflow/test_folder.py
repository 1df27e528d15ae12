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


def test_a_new_folder_disappears_with_the_failure_that_made_it(tmp_path):
    target = tmp_path / "deep" / "run"

    def stumble() -> None:
        with new_folder(target):
            (target / "half").mkdir()
            (target / "half" / "written").write_text("x")
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        stumble()
    assert not target.exists()


def test_a_folder_that_was_there_stays(tmp_path):
    (tmp_path / "mine").write_text("x")

    def stumble() -> None:
        with new_folder(tmp_path):
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        stumble()
    assert (tmp_path / "mine").read_text() == "x"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(PlanError, match="cannot be made a folder"), new_folder(tmp_path / "file"):
        pass


@pytest.mark.parametrize(("name", "told"), [("none", "no such plan"), (".", "cannot read this plan")])
def test_a_file_that_cannot_be_read_says_why(tmp_path, name, told):
    with pytest.raises(InputError, match=told):
        read_text(tmp_path / name, "plan")


def test_damaged_json_says_where(tmp_path):
    (tmp_path / "m.json").write_text('{"a": 1,\n}')
    with pytest.raises(LedgerError, match="damaged at line 2"):
        read_json(tmp_path / "m.json", "manifest")


def test_a_folder_without_records_says_which_command_makes_them(tmp_path):
    with pytest.raises(InputError, match="assaymark import FORMAT PATH --out"):
        RunFolder(tmp_path).require()
