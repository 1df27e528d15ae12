# ruff: noqa: I001

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assaymark.records import write_atomic
from assaymark.errors import InputError, LedgerError, PlanError
from assaymark.records import Context, Evidence, Judgment, Measurement, Outcome, content_id
from assaymark.workflow import (
    CONTEXTS, EVIDENCE, JUDGMENTS, MEASUREMENTS, OUTCOMES, RunFolder, Store, json_text, new_folder, read_json,
    read_text, replace_files, tables,
)  # fmt: skip

NOW = datetime(2026, 3, 2, tzinfo=UTC)
CONTEXT = Context(completeness="partial", cutoff=NOW, cutoff_source="made up", prompt="“curly”", missing=("x",))


def outcome(name: str, value: float = 0.1) -> Outcome:
    return Outcome(record_id=name, horizon="1W", value=value, benchmark=None, resolved_at=NOW, source="s")


RECORDS = {
    CONTEXTS: CONTEXT,
    OUTCOMES: outcome("a"),
    JUDGMENTS: Judgment(trajectory="t", judge="j", family="f", rubric="v1.0", trial=1, status="ok",
                        scores={"d2": 3.0, "d1": 4.0}, call_key="k", evidence=("e",)),
    EVIDENCE: Evidence(decision="d", part=0, kind="risk", start=3, quote="3%", number=3.0, unit="percent", subject="",
                       state="supported", facts=(), rule="r"),
    MEASUREMENTS: Measurement(name="m", labels={"b": "2", "a": "1"}, value=None, n=0, n_of="x", method="y",
                              state="undefined: none"),
}  # fmt: skip


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(RunFolder(tmp_path))


def test_tables_give_back_their_records(store):
    for table, record in RECORDS.items():
        store.write(table, [record], {"plan": "p"})
        assert (store.read(table), store.rows(table)) == ([record], 1), table.name
        assert store.done(table, {"plan": "p"})
        assert not store.done(table, {"plan": "q"})


def test_rows_have_one_order_whatever_order_they_came_in(store, tmp_path):
    store.write(OUTCOMES, [outcome("a"), outcome("b")], {})
    first, content = (tmp_path / "tables/outcomes.parquet").read_bytes(), store.content(OUTCOMES)
    store.write(OUTCOMES, [outcome("b"), outcome("a")], {})
    assert (tmp_path / "tables/outcomes.parquet").read_bytes() == first
    assert store.content(OUTCOMES) == content
    store.write(OUTCOMES, [outcome("b"), outcome("a", 0.2)], {})
    assert store.content(OUTCOMES) != content


def test_contexts_are_found_by_their_content_and_one_under_a_wrong_name_is_refused(store):
    store.write(CONTEXTS, [CONTEXT], {})
    assert store.contexts() == {content_id(CONTEXT): CONTEXT}
    assert store.columns(CONTEXTS, "completeness", "missing") == [{"completeness": "partial", "missing": ["x"]}]
    columns = {**CONTEXTS.columns, "context_id": (pa.string(), lambda *_: "0" * 64)}
    store.write(tables.RecordTable(CONTEXTS.name, Context, columns, sort=CONTEXTS.sort), [CONTEXT], {})
    with pytest.raises(LedgerError, match="does not match its name"):
        store.contexts()


def test_a_table_that_was_never_made_says_so(store):
    for read in (lambda: store.read(OUTCOMES), store.contexts, lambda: store.columns(OUTCOMES, "value")):
        with pytest.raises(LedgerError, match="is not there"):
            read()


def test_a_kill_between_manifest_and_table_is_no_damage(store, tmp_path):
    """The manifest names the new bytes first; the old table beside it is then unfinished work, not damage."""
    store.write(OUTCOMES, [outcome("a")], {})
    old = (tmp_path / "tables/outcomes.parquet").read_bytes()
    store.write(OUTCOMES, [outcome("b")], {})
    (tmp_path / "tables/outcomes.parquet").write_bytes(old)
    assert store.digest(OUTCOMES) is None
    assert not store.done(OUTCOMES, {})


def test_pages_carry_checksums_and_any_reader_can_query_them(store, tmp_path):
    store.write(JUDGMENTS, [RECORDS[JUDGMENTS]], {})
    found = pq.read_table(tmp_path / "tables/judgments.parquet", page_checksum_verification=True).to_pylist()[0]
    assert found["scores"] == [("d1", 4.0), ("d2", 3.0)]
    assert json.loads(found["record"])["scores"] == {"d1": 4.0, "d2": 3.0}


# --- files and folders ------------------------------------------------------------------------------------------------


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
