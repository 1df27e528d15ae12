"""`assaymark datasheet --from`: logs whose answers are known, wrong ones, and logs of real judges."""

# ruff: noqa: I001

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from datasheet_runs import (
    ALL_PAIRS, BASE, HEADER, SIMPLE, both, chips, datasheet, drift, measured, said, sheet_of, write_log,
)  # fmt: skip

from assaymark.workflow import tracks


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
    for name in ("dark_current", "threshold", "filler.preference"):  # these need known quality
        assert measured(sheet, name, **BASE).state.startswith("not measured: ")
    assert chips(sheet) == [f"{axis}: not measured" for axis in ("vacuum", "equal texts", "target", "strict prompt")]
    old = tmp_path / "run" / "datasheets" / "north.json"  # no log is the same instrument for its name
    assert datasheet(tmp_path / "new", "--from", tmp_path / "log.csv", "--compare", old) == 0
    assert drift(sheet_of(tmp_path / "new", "north")).detail["verdict"] == "not comparable"


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
        ("", "log.csv: is empty; a header row or JSON is needed"),
        (",".join(HEADER), "has a header and no rows"),
        ("grader_name,x\nn,1\n", "judge: no column for it (the log has grader_name, x;"),
        (f"{','.join(HEADER)}\nn,q,a,b,1\nn,q,b,a,left\nn,r,a,b,\n", "line 3, verdict: 'left' is no verdict"),
        (f"{','.join(HEADER)}\nn,q,a,b,1\nn,q,b,a\n", "line 3: has 4 cells (the header has 5"),
        (f"{','.join(HEADER)}\nn,q,a,b,1\nn,q,a,b,2\n", "line 3: is the call of line 2 again"),
    ],
)
def test_a_wrong_log_is_refused_with_its_rows(tmp_path, capsys, content, told):
    (tmp_path / "log.csv").write_text(content, encoding="utf-8")
    assert datasheet(tmp_path / "run", "--from", tmp_path / "log.csv") == 1
    assert told in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


VOTES = [
    {"dim": dim, "id": k, "meta": {"judge": "north"}, "a": "ash", "b": "elm", "order_1": first, "order_2": second,
     "gold": gold}
    for dim, k, first, second, gold in (
        ("tone", 1, "1", "2", "1"), ("tone", 2, "1", "1", "ash"), ("risk", 1, "2", "1", "1"),
        ("risk", 2, "tie", "tie", "tie"), ("risk", 3, "invalid", "2", "B"), ("risk", 4, "2", "1", ""),
    )
]  # fmt: skip
MAPPED = ("--map", "question=dim+id", "--map", "judge=meta.judge", "--map", "slot_1=a", "--map", "slot_2=b")


def shares(out: Path, judge: str, *names: str) -> dict[str, float | None]:
    sheet = sheet_of(out, judge)
    return {name: measured(sheet, name, **(ALL_PAIRS if "delta0" in name else BASE)).value for name in names}


def test_two_verdicts_in_a_row_nested_objects_and_a_truth(tmp_path, capsys):
    log = tmp_path / "votes.jsonl"
    log.write_text("\n".join(map(json.dumps, VOTES)))
    assert datasheet(tmp_path / "run", "--from", log, *MAPPED, "--map", "truth=gold") == 0
    sheet = sheet_of(tmp_path / "run", "north")
    assert (sheet.calls["all"], sheet.tasks) == (12, 6)
    # by positions 1 then 2 is ash both times
    names = ("delta0.stable", "delta0.positional", "truth.accuracy", "truth.both", "truth.one", "truth.none")
    assert shares(tmp_path / "run", "north", *names) == pytest.approx(
        dict(zip(names, (3 / 6, 1 / 6, 5 / 10, 2 / 5, 1 / 5, 2 / 5), strict=True))
    )
    accuracy = measured(sheet, "truth.accuracy", **BASE)
    assert (accuracy.n, accuracy.detail["tied_truths"], accuracy.method[-4:]) == (10, 2, "t(4)")
    told = said(capsys.readouterr().out)
    assert "1, 2 were read as positions; if they name contents, consistent and position-biased pairs change" in told
    assert "north 0.500 0.400 0.200 0.400" in told
    for asked, held in (("contents", (1 / 6, 3 / 6)), ("slots", (3 / 6, 1 / 6))):
        out = tmp_path / asked
        assert datasheet(out, "--from", log, *MAPPED, "--map", f"verdict_names={asked}") == 0
        assert tuple(shares(out, "north", *names[:2]).values()) == pytest.approx(held)
    page = (tmp_path / "run" / "report" / "datasheet" / "north.html").read_text(encoding="utf-8")
    assert "It named the better text in" in page
    assert "of a log: a column says which is better" in page


def test_where_a_log_is_from_and_what_was_left_out_is_said(tmp_path, capsys):
    rows = [
        *SIMPLE, ("north", "q9", "a", "b", "who knows"), ("north", "q9", "b", "a", "3"), ("north", "q8", "a", "", "1"),
    ]  # fmt: skip
    log = write_log(tmp_path / "log.csv", rows)
    with log.open("a") as file:
        file.write("north,q7,a\n")
    assert datasheet(tmp_path / "run", "--from", log) == 1
    assert "line 17: has 3 cells" in capsys.readouterr().err
    assert datasheet(tmp_path / "run", "--from", log, "--keep-going", "--only", "judge=north", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["datasheets"]
    about = found["log"]
    assert about["file"] == "log.csv"
    assert about["sha256"] == hashlib.sha256(log.read_bytes()).hexdigest()
    assert (about["format"], about["rows"], about["filters"]) == ("CSV", 15, {"judge": ["north"]})
    assert [line[:60] for line in about["said"]] == [
        "left out: line 17: has 3 cells (the header has 5; it begins 'north'"[:60],
        "left out: line 16, slot_2: is empty; a value is needed",
        "left out: line 14, verdict: 'who knows' is no verdict; known"[:60],
    ]
    assert "(and 1 more like it)" in about["said"][2]
    assert found["calls"]["all"] == 12
    page = (tmp_path / "run" / "report" / "datasheet" / "north.html").read_text(encoding="utf-8")
    for part in ("log.csv", about["sha256"][:8], "judge = north", "line 17: has 3 cells", "were read as positions"):
        assert part in page, part


@pytest.mark.parametrize("flags", [("0", "1"), ("1", "2"), ("AB", "BA"), ("false", "true")])
def test_a_column_may_say_which_text_was_shown_first(tmp_path, flags, capsys):
    rows = [("north", f"q{k}", "a", "b", word, flag) for k in range(3) for word, flag in zip("12", flags, strict=True)]
    log = write_log(tmp_path / "log.csv", [*rows, ("north", "q4", "a", "b", "1", flags[0])], (*HEADER, "swapped"))
    assert datasheet(tmp_path / "none", "--from", log) == 1
    assert "or which was shown first: order" in capsys.readouterr().err
    for names, stable in (("slots", 1), ("contents", 0)):
        words = ("--map", "order=swapped", "--map", f"verdict_names={names}")
        assert datasheet(tmp_path / names, "--from", log, *words) == 0
        found = shares(tmp_path / names, "north", "delta0.stable", "delta0.positional")
        assert tuple(found.values()) == (stable, 1 - stable)


def body(page: Path) -> str:
    """What a page shows, without its scripts and styles."""
    return re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page.read_text(encoding="utf-8"), flags=re.S)


def test_one_text_in_both_slots_is_a_null_pair(tmp_path, capsys):
    header = (*HEADER, "shown first", "shown second")
    rows = [(*row, "x", "y") for row in SIMPLE]
    rows += [("north", f"n{k}", "a", "a", word, "x", "x") for k, word in enumerate(("1", "tie", "2", "tie"))]
    rows += [("north", "n9", "a", "b", "tie", "same", "same"), ("north", "n9", "b", "a", "1", "same", "same")]
    words = ("--map", "text_1=shown first", "--map", "text_2=shown second")
    assert datasheet(tmp_path / "run", "--from", write_log(tmp_path / "log.csv", rows, header), *words) == 0
    sheet = sheet_of(tmp_path / "run", "north")
    null = measured(sheet, "dark_current", **BASE)
    assert (null.value, null.n) == (3 / 6, 6)
    assert measured(sheet, "delta0.stable", **ALL_PAIRS).n == 6
    assert "one text in both slots north 0.500" in said(capsys.readouterr().out)
    page = (tmp_path / "run" / "report" / "datasheet" / "north.html").read_text(encoding="utf-8")
    assert "Given one text in both slots, it still chose in" in page
    assert "Preference, one text in both slots" in page
    for words in ("Dark current", "false preference", "False preference", "vacuum", "Vacuum", "Equal texts"):
        for name in ("datasheet/north.html", "datasheets.html"):
            assert words not in body(tmp_path / "run" / "report" / name), (words, name)


@pytest.mark.parametrize(
    ("words", "held"),
    [
        (("threshold=0",), {"1": 1, "2": 4, "tie": 1}),
        (("threshold=-0.5..0.5", "above=1"), {"1": 3, "2": 1, "tie": 2}),
        (("threshold=0", "labels.2=abstain"), {"1": 1, "2": 3, "tie": 1, "abstain": 1}),
    ],
)
def test_numbers_are_verdicts_on_either_side_of_a_threshold(tmp_path, words, held):
    numbers = (("-2", "0.4"), ("0", "2"), ("1e0", "3"))
    rows = [row for k, two in enumerate(numbers) for row in both("north", f"q{k}", *two)]
    args = [word for one in words for word in ("--map", one)]
    assert datasheet(tmp_path / "run", "--from", write_log(tmp_path / "log.csv", rows), *args) == 0
    verdicts = measured(sheet_of(tmp_path / "run", "north"), "delta0.raw", **ALL_PAIRS).detail["verdicts"]
    assert {word: n for word, n in verdicts.items() if n} == held


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--only", "bench"], "--only: bench: must be COLUMN=VALUE"), (["--only", "verdict=never"], "verdict"),
        (["--map", "no-such.toml"], "no such column map"),
        (["--compare", "other.json"], "is of 'south'; measured here: east, north"),
        (["--map", "grader=x"], "--map: grader: unknown key (allowed: version, judge"),
        (["--map", "judge=jugde"], "judge: no column 'jugde' (the file has judge, "),
        (["--map", "threshold=high"], "threshold: must have the form"),
        (["--map", "truth=verdict"], "'invalid' is none of the contents of its row, 1, 2, A, B and tie"),
    ],
)  # fmt: skip
def test_wrong_words_beside_a_log(tmp_path, capsys, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    if "--compare" in words:
        write_log(Path("other.csv"), both("south", "q", "1", "1"))
        assert datasheet(Path("south"), "--from", "other.csv") == 0
        Path("other.json").write_bytes(Path("south/datasheets/south.json").read_bytes())
    write_log(Path("log.csv"), [*SIMPLE, *both("east", "q", "1", "1")])
    assert datasheet(Path("run"), "--from", "log.csv", *words) == 1
    assert told in capsys.readouterr().err
    assert not Path("run").exists()


HOSTILE = (
    "<script>alert(1)</script>", "../../evil", "..", "-rf", "CON", "north", "NORTH", "\u65e5\u672c", "x" * 300, "a|b",
)  # fmt: skip


def test_hostile_names_of_judges_stay_names(tmp_path, capsys):
    rows = [row for name in HOSTILE for row in both(name, "q", "1", "1")]
    assert datasheet(tmp_path / "run", "--from", write_log(tmp_path / "log.csv", rows)) == 0
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "log.csv"]
    assert all(path.is_relative_to(tmp_path / "run") for path in written)
    assert [path.name for path in written if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}", path.name)] == []
    assert len({tracks.datasheet_name(name).lower() for name in HOSTILE}) == len(HOSTILE)
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
            assert item.low <= item.value <= item.high
        flips = measured(sheet, "delta0.flip_rate", **ALL_PAIRS)
        assert flips.value == pytest.approx(kinds["positional"] / (kinds["positional"] + kinds["stable"]))
        assert flips.detail["one_sided_pairs"] == kinds["one_sided"]
        share = measured(sheet, "delta0.slot_1_share", **ALL_PAIRS)
        assert share.value == pytest.approx(slot_1 / kinds["positional"])
    known = measured(sheet_of(tmp_path / "run", "gpt-4-0613"), "delta0.one_sided", **ALL_PAIRS)
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


@pytest.mark.shared
@pytest.mark.parametrize(
    ("judge", "subset", "right"),
    [("GPT-4", "Natural", 0.955), ("GPT-4", "Adversarial_Neighbor", 0.787), ("ChatGPT", "Natural", 0.815),
     ("ChatGPT", "Adversarial_Neighbor", 0.194)],
)  # fmt: skip
def test_accuracy_with_the_experts_of_llmbar(shared, tmp_path, judge, subset, right):
    """Outputs are contents: the winner of the swapped order names the output, not the place at which it was shown."""
    path = shared / "data" / "llmbar" / f"{subset}__{judge}__Vanilla.json.gz"
    if not path.is_file():
        pytest.skip(f"needs LLMBar's verdicts: {path} is not there")
    orders = [f"order_{k}=results.0.swap = {swapped}.winner" for k, swapped in ((1, False), (2, True))]
    told = ("question=input", *orders, "truth=label", f"judge_name={judge}", "verdict_names=contents")
    assert datasheet(tmp_path / "run", "--from", path, *(word for one in told for word in ("--map", one))) == 0
    with gzip.open(path, "rt") as file:
        rows = json.load(file)
    hits = Counter(
        sum(row["results"][0][f"swap = {swapped}"]["winner"] == str(row["label"]) for swapped in (False, True))
        for row in rows
    )
    n, sheet = len(rows), sheet_of(tmp_path / "run", judge)
    names = ("truth.accuracy", "truth.both", "truth.one", "truth.none", "delta0.stable", "delta0.positional")
    wanted = ((2 * hits[2] + hits[1]) / 2, hits[2], hits[1], hits[0], n - hits[1], hits[1])  # every pair is decided
    found = shares(tmp_path / "run", judge, *names)
    assert found == pytest.approx({name: value / n for name, value in zip(names, wanted, strict=True)})
    assert found["truth.accuracy"] == pytest.approx(right, abs=5e-4)
    accuracy = measured(sheet, "truth.accuracy", **BASE)
    assert accuracy.method.endswith(f"delete-one-task jackknife of the log odds, t({n - 1})")
    assert accuracy.low < right < accuracy.high


@pytest.mark.shared
def test_both_orders_in_one_row_of_a_real_log(shared, tmp_path):
    path = shared / "data" / "mt_bench_repro" / "pairwise.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"needs real judges: {path} is not there")
    assert datasheet(tmp_path / "run", "--from", path, "--map", "question=lang+question_id") == 0
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    with gzip.open(path, "rt") as file:
        for row in map(json.loads, file):
            both = [row["winner_ab"], row["winner_ba"]]
            named = [word for word in both if word in "AB"]
            kind = "other_pairs" if "error" in both else ("no_preference", "one_sided", "")[len(named)]
            kinds[row["judge_id"]][kind or ("positional" if both[0] == both[1] else "stable")] += 1
    assert {judge: one.total() for judge, one in kinds.items()} == dict.fromkeys(kinds, 2400)
    for judge, counts in kinds.items():
        names = [f"delta0.{kind}" for kind in ("stable", "positional", "one_sided", "no_preference", "other_pairs")]
        found = shares(tmp_path / "run", judge, *names)
        assert {name: round(value or 0, 4) for name, value in found.items()} == {
            name: round(counts[name.partition(".")[2]] / 2400, 4) for name in names
        }
