"""The registry of formats: what a folder offers, and wrong names."""

from __future__ import annotations

import pytest

from assaymark.errors import InputError, UnknownNameError
from assaymark.importers import IMPORTERS, importer


def test_a_format_by_its_name():
    assert importer("capitalbench") is IMPORTERS["capitalbench"]
    assert all(name == one.name for name, one in IMPORTERS.items())
    assert IMPORTERS["capitalbench"].provenance.licence == "CC BY 4.0"


def test_a_wrong_name_is_answered_with_the_right_one():
    with pytest.raises(UnknownNameError, match=r"unknown format 'capitalbank'\. Did you mean 'capitalbench'"):
        importer("capitalbank")


def test_the_files_of_a_folder(tmp_path):
    for name in ("decisions.jsonl.gz", "contexts.jsonl", "daily_prices.csv.gz", "map.toml", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "x.csv").mkdir()
    assert importer("capitalbench").files(tmp_path) == ("contexts.jsonl", "decisions.jsonl.gz")
    assert importer("generic").files(tmp_path) == (
        "contexts.jsonl", "daily_prices.csv.gz", "decisions.jsonl.gz", "map.toml",
    )  # fmt: skip


def test_a_folder_that_is_none_or_empty_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere: does not exist; give the folder that holds contexts\.jsonl"):
        importer("capitalbench").files(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not a folder"):
        importer("capitalbench").files(tmp_path / "file")
    with pytest.raises(InputError, match="holds no file for capitalbench"):
        importer("capitalbench").files(tmp_path)
