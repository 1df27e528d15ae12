"""`assaymark datasheet --from`: logs whose answers are known, wrong ones, and logs of real judges."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from datasheet_runs import (
    ALL_PAIRS,
    BASE,
    HEADER,
    SIMPLE,
    both,
    chips,
    datasheet,
    drift,
    measured,
    said,
    sheet_of,
    write_log,
)

from assaymark.workflow.tracks.datasheet import datasheet_name


def test_a_log_is_decomposed(tmp_path, capsys):
    assert datasheet(tmp_path / "run", "--from", write_log(tmp_path / "log.csv", SIMPLE)) == 0
    sheet = sheet_of(tmp_path / "run", "north")
    assert (sheet.source, sheet.manifest, sheet.calls) == ("log", "", {"all": 12, "ok": 11, "invalid": 1})
    names = ("stable", "positional", "one_sided", "no_preference", "other_pairs", "raw")
    shares = {name: measured(sheet, f"delta0.{name}", **ALL_PAIRS).value for name in names}
    assert shares == pytest.approx(
        {"stable": 2 / 6, "positional": 1 / 6, "one_sided": 1 / 6, "no_preference": 1 / 6, "other_pairs": 1 / 6,
         "raw": 8 / 12}
    )  # fmt: skip
    flips = measured(sheet, "delta0.flip_rate", **ALL_PAIRS)
    assert (flips.value, flips.detail["one_sided_pairs"]) == (pytest.approx(1 / 3), 1)
    assert "a preference here is no error" in said(capsys.readouterr().out)
    assert (tmp_path / "run" / "report" / "datasheet" / "north.svg").is_file()


def test_a_log_says_nothing_that_needs_known_quality(tmp_path):
    assert datasheet(tmp_path / "run", "--from", write_log(tmp_path / "log.csv", SIMPLE)) == 0
    sheet = sheet_of(tmp_path / "run", "north")
    for name in ("dark_current", "threshold", "filler.preference"):
        assert measured(sheet, name, **BASE).state.startswith("not measured: ")
    assert chips(sheet) == [f"{axis}: not measured" for axis in ("vacuum", "equal texts", "target", "strict prompt")]


def test_a_log_with_one_order_is_refused_only_what_needs_both(tmp_path):
    rows = [row for row in SIMPLE if row[2] == "a"]
    assert datasheet(tmp_path / "run", "--from", write_log(tmp_path / "log.csv", rows)) == 0
    sheet = sheet_of(tmp_path / "run", "north")
    for name in ("stable", "positional", "one_sided", "no_preference", "flip_rate", "slot_1_share"):
        item = measured(sheet, f"delta0.{name}", **ALL_PAIRS)
        assert (item.value, item.state) == (
            None, "not measured: every pair was shown in one order only, needs both",
        )  # fmt: skip
    assert measured(sheet, "delta0.raw", **ALL_PAIRS).value == pytest.approx(5 / 6)
    assert measured(sheet, "pair.invalid_share", **BASE).value == 0


def test_rows_of_a_log_are_chosen_and_mapped(tmp_path):
    header = ("grader", "item", "left", "right", "said", "bench")
    rows = [(*row[:4], {"1": "<", "2": ">"}.get(row[4], row[4]), "x") for row in SIMPLE]
    log = write_log(tmp_path / "log.csv", [*rows, ("north", "q0", "a", "b", "never parsed", "y")], header)
    words = ['slot_1 = "left"', 'slot_2 = "right"', 'verdict = "said"', 'labels = {"<" = "1", ">" = "2"}']
    (tmp_path / "map.toml").write_text("\n".join(words))
    assert datasheet(tmp_path / "run", "--from", log, "--map", tmp_path / "map.toml", "--only", "bench=x") == 0
    assert sheet_of(tmp_path / "run", "north").calls["all"] == 12


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "log.csv: is empty; a header row is needed"),
        (",".join(HEADER), "has a header and no rows"),
        ("grader_name,x\nn,1\n", "judge: no column for it (the log has grader_name, x;"),
        (f"{','.join(HEADER)}\nn,q,a,b,1\nn,q,b,a,left\nn,r,a,b,\n", "row 3, verdict: 'left' is no verdict"),
        (f"{','.join(HEADER)}\nn,q,a,b,1\nn,q,b,a\n", "row 3: has 4 cells (the header has 5)"),
        (f"{','.join(HEADER)}\nn,q,a,b,1\nn,q,a,b,2\n", "row 3: is the call of row 2 again"),
    ],
)
def test_a_wrong_log_is_refused_with_its_rows(tmp_path, capsys, content, told):
    (tmp_path / "log.csv").write_text(content, encoding="utf-8")
    assert datasheet(tmp_path / "run", "--from", tmp_path / "log.csv") == 1
    assert told in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--only", "bench"], "--only: bench: must be COLUMN=VALUE"),
        (["--only", "verdict=never"], "verdict"),
        (["--map", "no-such.toml"], "no such column map"),
        (["--compare", "other.json"], "is of 'south'; measured here: east, north"),
    ],
)
def test_wrong_words_beside_a_log(tmp_path, capsys, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    write_log(Path("other.csv"), both("south", "q", "1", "1"))
    assert datasheet(Path("south"), "--from", "other.csv") == 0
    Path("other.json").write_bytes(Path("south/datasheets/south.json").read_bytes())
    write_log(Path("log.csv"), [*SIMPLE, *both("east", "q", "1", "1")])
    assert datasheet(Path("run"), "--from", "log.csv", *words) == 1
    assert told in capsys.readouterr().err
    assert not Path("run").exists()


def test_a_log_is_never_called_the_same_instrument_for_its_name(tmp_path):
    log = write_log(tmp_path / "log.csv", SIMPLE)
    assert datasheet(tmp_path / "old", "--from", log) == 0
    assert datasheet(tmp_path / "new", "--from", log, "--compare", tmp_path / "old" / "datasheets" / "north.json") == 0
    assert drift(sheet_of(tmp_path / "new", "north")).detail["verdict"] == "not comparable"


HOSTILE = (
    "<script>alert(1)</script>", "../../evil", "..", "-rf", "CON", "north", "NORTH", "\u65e5\u672c", "x" * 300, "a|b",
)  # fmt: skip


def test_hostile_names_of_judges_stay_names(tmp_path, capsys):
    rows = [row for name in HOSTILE for row in both(name, "q", "1", "1")]
    assert datasheet(tmp_path / "run", "--from", write_log(tmp_path / "log.csv", rows)) == 0
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "log.csv"]
    assert all(path.is_relative_to(tmp_path / "run") for path in written)
    assert [path.name for path in written if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}", path.name)] == []
    assert len({datasheet_name(name).lower() for name in HOSTILE}) == len(HOSTILE)
    assert {sheet_of(tmp_path / "run", name).judge for name in HOSTILE} == set(HOSTILE)
    pages = [path.read_text(encoding="utf-8") for path in written if path.suffix in (".html", ".svg")]
    assert [page for page in pages if "<script>alert" in page] == []
    assert sum("&lt;script&gt;alert(1)" in page for page in pages) >= 2
    for path in written:
        if path.suffix == ".svg":
            ElementTree.parse(path)
    capsys.readouterr()


@pytest.fixture(scope="module")
def logs(shared) -> Path:
    folder: Path = shared / "data" / "judge_verdicts"
    if not folder.is_dir():
        pytest.skip(f"needs real verdict logs: {folder} is not there")
    return folder


def mt_bench(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from (row for row in csv.DictReader(file) if row["bench"] == "MTBench")


def kinds_of(rows: Iterator[dict[str, str]]) -> Mapping[str, Counter[str]]:
    """Pairs by what their two verdicts come to, for each judge, counted the slow way."""
    pairs: dict[tuple[Any, ...], list[tuple[str, str]]] = defaultdict(list)
    for row in rows:
        slots = (row["slot1_model"], row["slot2_model"])
        pairs[row["judge"], row["question_id"], row["rep"], frozenset(slots)].append((slots[0], row["verdict"]))
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for (judge, *_), (one, other) in pairs.items():
        verdicts = {one[1], other[1]}
        named = [verdict for verdict in (one[1], other[1]) if verdict in ("1", "2")]
        if "invalid" in verdicts:
            kind = "other_pairs"
        elif len(named) == 2:
            kind = "stable" if one[1] != other[1] else "positional"
        else:
            kind = "one_sided" if named else "no_preference"
        found[judge][kind] += 1
        found[judge]["slot 1"] += kind == "positional" and one[1] == "1"
    return found


@pytest.mark.shared
def test_the_decomposition_of_real_judges(logs, tmp_path):
    assert datasheet(tmp_path / "run", "--from", logs / "pba_full_verdicts.csv", "--only", "bench=MTBench") == 0
    for judge, kinds in kinds_of(mt_bench(logs / "pba_full_verdicts.csv")).items():
        sheet = sheet_of(tmp_path / "run", judge)
        slot_1 = kinds.pop("slot 1")
        for name in ("stable", "positional", "one_sided", "no_preference", "other_pairs"):
            item = measured(sheet, f"delta0.{name}", **ALL_PAIRS)
            assert (item.value, item.n) == (pytest.approx(kinds[name] / kinds.total()), kinds.total())
            assert item.low is not None
            assert item.high is not None
            assert item.low <= item.value <= item.high
        flips = measured(sheet, "delta0.flip_rate", **ALL_PAIRS)
        assert flips.value == pytest.approx(kinds["positional"] / (kinds["positional"] + kinds["stable"]))
        assert flips.detail["one_sided_pairs"] == kinds["one_sided"]
        share = measured(sheet, "delta0.slot_1_share", **ALL_PAIRS)
        assert share.value == pytest.approx(slot_1 / kinds["positional"])
    known = measured(sheet_of(tmp_path / "run", "gpt-4-0613"), "delta0.one_sided", **ALL_PAIRS)
    assert known.value is not None
    assert f"{known.value:.1%}" == "7.2%"


@pytest.mark.shared
def test_the_repetitions_of_real_judges(logs, tmp_path):
    path = logs / "pba_repetition_verdicts.csv"
    assert datasheet(tmp_path / "run", "--from", path, "--only", "bench=MTBench") == 0
    trials: dict[str, dict[tuple[str, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in mt_bench(path):
        call = (row["question_id"], row["slot1_model"], row["slot2_model"])
        trials[row["judge"]][call].append(row["verdict"])
    assert len(trials) == 9
    for judge, calls in trials.items():
        shares = [sum(a == b for a, b in combinations(verdicts, 2)) / 3 for verdicts in calls.values()]
        sheet = sheet_of(tmp_path / "run", judge)
        stability = measured(sheet, "repeat.stability")
        assert stability.value == pytest.approx(sum(shares) / len(shares))
        invalid = sum(verdict == "invalid" for verdicts in calls.values() for verdict in verdicts)
        share = measured(sheet, "pair.invalid_share", **BASE)
        assert (share.value, share.n) == (pytest.approx(invalid / share.n), 3 * len(calls))
        assert sheet.calls["invalid"] == invalid
