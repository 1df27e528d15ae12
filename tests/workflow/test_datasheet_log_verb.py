"""`assaymark datasheet --from`: logs whose answers are known, wrong ones, and logs of real judges."""

# ruff: noqa: I001

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from datasheet_runs import (
    ALL_PAIRS, BASE, HEADER, SIMPLE, both, chips, datasheet, drift, measured, said, sheet_of, write_log,
)  # fmt: skip

from assaymark.workflow import tracks

PARTS = ("stable", "positional", "one_sided", "no_preference", "other_pairs")


def shares(out: Path, judge: str, *names: str) -> dict[str, Any]:
    """Return values of a datasheet by name; those of pairs over all pairs."""
    sheet = sheet_of(out, judge)
    return {
        name: measured(sheet, *((name, BASE) if "." in name else (f"delta0.{name}", ALL_PAIRS))).value for name in names
    }


def page_of(out: Path, name: str = "datasheet/north.html") -> str:
    return (out / "report" / name).read_text(encoding="utf-8")


def mapped(*words: str) -> list[str]:
    return [part for word in words for part in ("--map", word)]


def test_a_log_is_decomposed(tmp_path, ran, capsys):
    assert datasheet(tmp_path / "run", "--from", write_log(tmp_path / "log.csv", SIMPLE)) == 0
    sheet = sheet_of(tmp_path / "run", "north")
    assert (sheet.source, sheet.manifest, sheet.calls) == ("log", "", {"all": 12, "ok": 11, "invalid": 1})
    wanted = dict(zip((*PARTS, "raw"), (2 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6, 8 / 12), strict=True))
    assert shares(tmp_path / "run", "north", *wanted) == pytest.approx(wanted)
    flips = measured(sheet, "delta0.flip_rate", ALL_PAIRS)
    assert (flips.value, flips.detail["one_sided_pairs"]) == (pytest.approx(1 / 3), 1)
    assert "a preference here is no error" in said(capsys.readouterr().out)
    assert (tmp_path / "run" / "report" / "datasheet" / "north.svg").is_file()
    assert page_of(tmp_path / "run", "datasheets.html").count('row">Preference<') == 1
    for name in ("dark_current", "threshold", "filler.preference"):  # these need known quality
        assert measured(sheet, name, BASE).state.startswith("not measured: ")
    assert chips(sheet) == [f"{axis}: not measured" for axis in ("vacuum", "equal texts", "target", "strict prompt")]
    assert re.match(r"1 run, \d+ files", ran("report", tmp_path / "run", "--out", tmp_path / "site"))
    old = tmp_path / "run" / "datasheets" / "north.json"  # no log is the same judge for its name
    assert datasheet(tmp_path / "new", "--from", tmp_path / "log.csv", "--compare", old) == 0
    assert drift(sheet_of(tmp_path / "new", "north")).detail["verdict"] == "not comparable"
    long = [(f"claude-3-sonnet-2024022{k}", *row[1:]) for k in range(5) for row in SIMPLE]
    assert datasheet(tmp_path / "five", "--from", write_log(tmp_path / "five.csv", long)) == 0
    many = "kappa of 10 pairs of judges by position, call by call: 1.00 to 1.00; the page has each"
    assert re.search(f"flips invalid repeats claude.*{many}", said(capsys.readouterr().out))  # no column is lost


def test_rows_of_a_log_are_chosen_and_mapped(tmp_path):
    header = ("grader", "item", "left", "right", "said", "bench")
    rows = [(*row[:4], {"1": "<", "2": ">"}.get(row[4], row[4]), "x") for row in SIMPLE]
    log = write_log(tmp_path / "log.csv", [*rows, ("north", "q0", "a", "b", "never parsed", "y")], header)
    words = ['slot_1 = "left"', 'slot_2 = "right"', 'verdict = "said"', 'labels = {"<" = "1", ">" = "2"}']
    (tmp_path / "map.toml").write_text("\n".join(words))
    assert datasheet(tmp_path / "run", "--from", log, "--map", tmp_path / "map.toml", "--only", "bench=x") == 0
    assert sheet_of(tmp_path / "run", "north").calls["all"] == 12


@pytest.mark.parametrize(("words", "told"), [
    (["--only", "bench"], "--only: bench: must be COLUMN=VALUE"), (["--only", "verdict=never"], "verdict"),
    (["--map", "no-such.toml"], "no such column map"),
    (["--compare", "other.json"], "is of 'south'; measured here: east, north"),
    (["--map", "grader=x"], "--map: grader: unknown key (allowed: version, judge"),
    (["--map", "judge=jugde"], "judge: no column 'jugde' (the file has judge, "),
    (["--map", "threshold=high"], "threshold: must have the form"),
    (["--map", "truth=verdict"], "'invalid' is not one of the contents of its row, nor 1, 2, A, B or tie"),
])  # fmt: skip
def test_wrong_words_beside_a_log_are_refused(tmp_path, capsys, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    if "--compare" in words:
        assert datasheet(Path("south"), "--from", write_log(Path("other.csv"), both("south", "q", "1", "1"))) == 0
        Path("other.json").write_bytes(Path("south/datasheets/south.json").read_bytes())
    write_log(Path("log.csv"), [*SIMPLE, *both("east", "q", "1", "1")])
    assert datasheet(Path("run"), "--from", "log.csv", *words) == 1
    assert told in capsys.readouterr().err
    assert not Path("run").exists()


def test_two_verdicts_in_a_row_nested_objects_and_a_truth(tmp_path, capsys):
    votes = [
        {"dim": dim, "id": k, "meta": {"judge": "north"}, "a": "ash", "b": "elm", "order_1": first, "order_2": second,
         "gold": gold}
        for dim, k, first, second, gold in (
            ("tone", 1, "1", "2", "1"), ("tone", 2, "1", "1", "ash"), ("risk", 1, "2", "1", "1"),
            ("risk", 2, "tie", "tie", "tie"), ("risk", 3, "invalid", "2", "B"), ("risk", 4, "2", "1", ""),
        )
    ]  # fmt: skip
    log, run = tmp_path / "votes.jsonl", tmp_path / "run"
    log.write_text("\n".join(map(json.dumps, votes)))
    columns = ["question=dim+id", "judge=meta.judge", "slot_1=a", "slot_2=b"]
    assert datasheet(run, "--from", log, *mapped(*columns, "truth=gold")) == 0
    sheet = sheet_of(run, "north")
    assert (sheet.calls["all"], sheet.tasks) == (12, 6)
    # by positions 1 then 2 is ash both times
    wanted = {"stable": 3 / 6, "positional": 1 / 6, "truth.accuracy": 5 / 10, "truth.both": 2 / 5, "truth.one": 1 / 5,
              "truth.none": 2 / 5}  # fmt: skip
    assert shares(run, "north", *wanted) == pytest.approx(wanted)
    accuracy = measured(sheet, "truth.accuracy", BASE)
    assert (accuracy.n, accuracy.detail["tied_truths"], accuracy.method[-4:]) == (10, 2, "t(4)")
    told = said(capsys.readouterr().out)
    assert "1, 2 were read as positions; if they name contents, consistent and position-biased pairs change" in told
    assert "north 0.500 0.400 0.200 0.400" in told
    for names, stable in (("contents", 1 / 6), ("slots", 3 / 6)):
        assert datasheet(tmp_path / names, "--from", log, *mapped(*columns, f"verdict_names={names}")) == 0
        held = {"stable": stable, "positional": 4 / 6 - stable}
        assert shares(tmp_path / names, "north", *held) == pytest.approx(held)
    assert "It named the better text in" in page_of(run)
    assert "of a log: a column says which is better" in page_of(run)


def test_where_a_log_is_from_and_what_was_left_out_is_said(tmp_path, capsys):
    more = [("north", "q9", "a", "b", "who knows"), ("north", "q9", "b", "a", "3"), ("north", "q8", "a", "", "1")]
    more += [("west", "q8", "a", "", "1")]  # all that there is of this judge
    log = write_log(tmp_path / "log.csv", [*SIMPLE, *more])
    with log.open("a") as file:
        file.write("north,q7,a\n")
    assert datasheet(tmp_path / "run", "--from", log) == 1
    assert "line 18: has 3 cells" in capsys.readouterr().err
    assert datasheet(tmp_path / "run", "--from", log, "--keep-going", "--only", "judge=north", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["datasheets"]
    about, told = found["log"], found["log"].pop("said")
    assert about == about | {
        "file": "log.csv", "sha256": hashlib.sha256(log.read_bytes()).hexdigest(), "format": "CSV", "rows": 16,
        "filters": {"judge": ["north"]},
    }  # fmt: skip
    starts = ("left out: line 18: has 3 cells (the header has 5; it begins 'north'",
              "left out: line 16, slot_2: is empty; a value is needed",
              "left out: line 14, verdict: 'who knows' is not a recognised verdict; exp")  # fmt: skip
    assert [line.startswith(start) for line, start in zip(told, starts, strict=True)] == [True] * 3
    assert "(and 1 more like it)" in told[2]
    assert datasheet(tmp_path / "all", "--from", log, "--keep-going", "--json") == 0
    assert [each["judge"] for each in json.loads(capsys.readouterr().out)["datasheets"]] == ["north"]
    assert found["calls"]["all"] == 12
    for part in ("log.csv", about["sha256"][:8], "judge = north", "line 18: has 3 cells", "were read as positions"):
        assert part in page_of(tmp_path / "run"), part


@pytest.mark.parametrize("flags", [("0", "1"), ("1", "2"), ("AB", "BA"), ("false", "true")])
def test_a_column_may_say_which_text_was_shown_first(tmp_path, flags, capsys):
    rows = [("north", f"q{k}", "a", "b", word, flag) for k in range(3) for word, flag in zip("12", flags, strict=True)]
    log = write_log(tmp_path / "log.csv", [*rows, ("north", "q4", "a", "b", "1", flags[0])], (*HEADER, "swapped"))
    assert datasheet(tmp_path / "none", "--from", log) == 1
    assert "or which was shown first: order" in capsys.readouterr().err
    for names, stable in (("slots", 1), ("contents", 0)):
        assert datasheet(tmp_path / names, "--from", log, *mapped("order=swapped", f"verdict_names={names}")) == 0
        found = shares(tmp_path / names, "north", "stable", "positional")
        assert found == {"stable": stable, "positional": 1 - stable}


def test_one_text_in_both_slots_is_a_null_pair(tmp_path, capsys):
    header, run = (*HEADER, "shown first", "shown second"), tmp_path / "run"
    rows = [(*row, "x", "y") for row in SIMPLE]
    rows += [("north", f"n{k}", "a", "a", word, "x", "x") for k, word in enumerate(("1", "tie", "2", "tie"))]
    rows += [("north", "n9", "a", "b", "tie", "same", "same"), ("north", "n9", "b", "a", "1", "same", "same")]
    log = write_log(tmp_path / "log.csv", rows, header)
    assert datasheet(run, "--from", log, *mapped("text_1=shown first", "text_2=shown second")) == 0
    sheet = sheet_of(run, "north")
    null = measured(sheet, "dark_current", BASE)
    assert (null.value, null.n, measured(sheet, "delta0.stable", ALL_PAIRS).n) == (3 / 6, 6, 6)
    assert "one text in both slots north 0.500" in said(capsys.readouterr().out)
    assert "Given one text in both slots, it still chose in" in page_of(run)
    assert "Preference, one text in both slots" in page_of(run)
    for name in ("datasheet/north.html", "datasheets.html"):  # what a page shows, without its scripts and styles
        body = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page_of(run, name), flags=re.S)
        assert re.findall("Null-pair|[Ff]alse preference|[Vv]acuum|Equal texts", body) == []


def test_trials_of_a_null_pair_repeat_one_question(tmp_path, capsys):
    """More trials narrow no interval, as of other pairs, and show whether the judge repeats itself."""
    rows = [("north", f"q{k // 4}", f"m{k % 4}", f"m{k % 4}", "1" if k % 3 else "tie") for k in range(48)]
    found = []
    for trials, back in ((1, 1), (3, 1), (3, -1)):
        run = tmp_path / f"{trials}{back}"
        repeated = [(*row, f"{trial}") for row in rows for trial in range(1, trials + 1)][::back]
        log = write_log(run.with_suffix(".csv"), repeated, (*HEADER, "trial"))
        assert datasheet(run, "--from", log, *mapped()) == 0
        sheet = sheet_of(run, "north")
        null, again = measured(sheet, "dark_current", BASE), measured(sheet, "repeat.stability")
        found.append((null.value, null.low, null.high))
        assert (null.n, again.value, again.n) == ((48, None, 0) if trials == 1 else (144, 1.0, 48))
    assert found[1:] == [pytest.approx(found[0])] * 2
    # Without their numbers, two calls are the orders of a pair, which look alike; more of them are copies, or unclear.
    for copies in (2, 5):
        log = write_log(tmp_path / "bare.csv", rows * copies, HEADER)
        assert datasheet(tmp_path / f"bare {copies}", "--from", log, *mapped()) == 0
        sheet = sheet_of(tmp_path / f"bare {copies}", "north")
        null = measured(sheet, "dark_current", BASE)
        assert (null.n, sheet.log["duplicates"], null.low) == (96, 48 * (copies - 2), pytest.approx(found[0][1]))
    log = write_log(tmp_path / "bare.csv", [*rows * 2, (*rows[0][:-1], "2")], HEADER)
    assert datasheet(tmp_path / "unclear", "--from", log, *mapped()) == 1
    assert "more than two calls in one trial, and different verdicts; if calls were" in capsys.readouterr().err


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
    assert datasheet(tmp_path / "run", "--from", write_log(tmp_path / "log.csv", rows), *mapped(*words)) == 0
    verdicts = measured(sheet_of(tmp_path / "run", "north"), "delta0.raw", ALL_PAIRS).detail["verdicts"]
    assert {word: n for word, n in verdicts.items() if n} == held


HOSTILE = (
    "<script>alert(1)</script>", "../../evil", "..", "-rf", "CON", "north", "NORTH", "\u65e5\u672c", "x" * 300, "a|b",
)  # fmt: skip


def test_hostile_names_of_judges_stay_names(tmp_path):
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


# Logs of real judges, counted the slow way


def real(shared: Path, name: str) -> Path:
    path = shared / "data" / name
    if not path.is_file():
        pytest.skip(f"needs verdicts of real judges: {path} is not there")
    return path


def mt_bench(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from (row for row in csv.DictReader(file) if row["bench"] == "MTBench")


def kind_of(one: str, other: str, invalid: str) -> str:
    """Return the kind of a pair's verdicts in both orders, each of which names a slot or neither."""
    named = [word for word in (one, other) if word in "12AB"]
    if invalid in (one, other) or len(named) < 2:
        return "other_pairs" if invalid in (one, other) else "one_sided" if named else "no_preference"
    return "positional" if one == other else "stable"


@pytest.mark.shared
def test_the_decomposition_of_real_judges(shared, tmp_path):
    path, run = real(shared, "judge_verdicts/pba_full_verdicts.csv"), tmp_path / "run"
    assert datasheet(run, "--from", path, "--only", "bench=MTBench") == 0
    pairs: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for row in mt_bench(path):
        slots = frozenset((row["slot1_model"], row["slot2_model"]))
        pairs[row["judge"], row["question_id"], row["rep"], slots].append(row["verdict"])
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    first: Counter[str] = Counter()
    for (judge, *_), (one, other) in pairs.items():
        kind = kind_of(one, other, "invalid")
        kinds[judge][kind] += 1
        first[judge] += kind == "positional" and one == "1"
    for judge, counts in kinds.items():
        sheet = sheet_of(run, judge)
        for name in PARTS:
            item = measured(sheet, f"delta0.{name}", ALL_PAIRS)
            assert (item.value, item.n) == (pytest.approx(counts[name] / counts.total()), counts.total())
            assert item.low <= item.value <= item.high
        flips = measured(sheet, "delta0.flip_rate", ALL_PAIRS)
        assert flips.value == pytest.approx(counts["positional"] / (counts["positional"] + counts["stable"]))
        assert flips.detail["one_sided_pairs"] == counts["one_sided"]
        share = measured(sheet, "delta0.slot_1_share", ALL_PAIRS).value
        assert share == pytest.approx(first[judge] / counts["positional"])
    assert f"{shares(run, 'gpt-4-0613', 'one_sided')['one_sided']:.1%}" == "7.2%"


@pytest.mark.shared
def test_the_repetitions_of_real_judges(shared, tmp_path):
    path = real(shared, "judge_verdicts/pba_repetition_verdicts.csv")
    assert datasheet(tmp_path / "run", "--from", path, "--only", "bench=MTBench") == 0
    trials: dict[str, dict[tuple[str, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in mt_bench(path):
        call = (row["question_id"], row["slot1_model"], row["slot2_model"])
        trials[row["judge"]][call].append(row["verdict"])
    assert len(trials) == 9
    for judge, calls in trials.items():
        sheet = sheet_of(tmp_path / "run", judge)
        alike = [sum(a == b for a, b in combinations(verdicts, 2)) / 3 for verdicts in calls.values()]
        assert measured(sheet, "repeat.stability").value == pytest.approx(sum(alike) / len(alike))
        invalid = sum(verdict == "invalid" for verdicts in calls.values() for verdict in verdicts)
        share = measured(sheet, "pair.invalid_share", BASE)
        assert (share.value, share.n) == (pytest.approx(invalid / share.n), 3 * len(calls))
        assert sheet.calls["invalid"] == invalid


@pytest.mark.shared
@pytest.mark.parametrize(
    ("judge", "subset", "right"),
    [("GPT-4", "Natural", 0.955), ("GPT-4", "Adversarial_Neighbor", 0.787), ("ChatGPT", "Natural", 0.815),
     ("ChatGPT", "Adversarial_Neighbor", 0.194)],
)  # fmt: skip
def test_accuracy_with_the_experts_of_llmbar(shared, tmp_path, judge, subset, right):
    """Outputs are contents: the winner in swapped order names the output, not its position."""
    path, run = real(shared, f"llmbar/{subset}__{judge}__Vanilla.json.gz"), tmp_path / "run"
    orders = [f"order_{k}=results.0.swap = {swapped}.winner" for k, swapped in ((1, False), (2, True))]
    words = mapped("question=input", *orders, "truth=label", f"judge_name={judge}", "verdict_names=contents")
    assert datasheet(run, "--from", path, *words) == 0
    with gzip.open(path, "rt") as file:
        rows = json.load(file)
    hits = Counter(
        sum(row["results"][0][f"swap = {swapped}"]["winner"] == str(row["label"]) for swapped in (False, True))
        for row in rows
    )
    n = len(rows)
    wanted = {"truth.accuracy": (2 * hits[2] + hits[1]) / 2, "truth.both": hits[2], "truth.one": hits[1],
              "truth.none": hits[0], "stable": n - hits[1], "positional": hits[1]}  # fmt: skip
    found = shares(run, judge, *wanted)  # every pair is decided
    assert found == pytest.approx({name: value / n for name, value in wanted.items()})
    assert found["truth.accuracy"] == pytest.approx(right, abs=5e-4)
    accuracy = measured(sheet_of(run, judge), "truth.accuracy", BASE)
    assert accuracy.method.endswith(f"delete-one-task jackknife of the log odds, t({n - 1})")
    assert accuracy.low < right < accuracy.high


@pytest.mark.shared
def test_both_orders_in_one_row_of_a_real_log(shared, tmp_path):
    path = real(shared, "mt_bench_repro/pairwise.jsonl.gz")
    assert datasheet(tmp_path / "run", "--from", path, "--map", "question=lang+question_id") == 0
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    with gzip.open(path, "rt") as file:
        for row in map(json.loads, file):
            kind = kind_of(row["winner_ab"], row["winner_ba"], "error")
            kinds[row["judge_id"]][kind] += 1
    for judge, counts in kinds.items():
        assert counts.total() == 2400
        found = shares(tmp_path / "run", judge, *PARTS)
        assert found == pytest.approx({name: counts[name] / 2400 for name in PARTS}, abs=5e-5)
