"""`assaymark check` from a table to verdicts: equal scores in any form, filled-in values, messages and verdicts."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from made_records import STUDY
from markup import markup_problems, pages_below
from rich.cells import cell_len

import assaymark
from assaymark.cli import main
from assaymark.errors import InputError
from assaymark.records import canonical_json
from assaymark.workflow import RunFolder, open_checked, study_toml

Row = dict[str, Any]


def rows_of(
    *, items: int = 8, agents: Sequence[str] = ("ash", "birch", "cedar"),
    judges: Sequence[str] = ("gpt-4o", "claude-3"), seed: int = 1, gap: float = 1.0,
) -> list[Row]:  # fmt: skip
    """Return scores 1..5 of agents that differ by ``gap`` points, on items that differ, by judges that nearly agree."""
    chance, found = random.Random(seed), []
    for q in range(items):
        base = chance.gauss(2.5, 0.6)
        for a, agent in enumerate(agents):
            true = base + gap * a + chance.gauss(0, 0.4)
            for judge in judges:
                score = min(5, max(1, round(true + chance.gauss(0, 0.3))))
                found.append({"item": f"q{q}", "agent": agent, "judge": judge, "score": score})
    return found


def written(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    pacsv.write_csv(pa.table({name: [row.get(name) for row in rows] for name in names}), path)
    return path


def verdicts_of(table: Any, out: Path, **options: Any) -> bytes:
    assaymark.check(table, out=out, **options)
    return (out / "verdicts.json").read_bytes()


def checked(capsys, path: Path, *options: str, out: str = "run") -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Check a valid table; return the terminal output, the JSON document, and ``verdicts.json``."""
    folder = path.parent / out
    assert main(["check", str(path), "--out", str(folder), *options]) == 0
    said = capsys.readouterr().out
    document = json.loads(canonical_json(open_checked(RunFolder(folder)).document))  # as --json prints it
    assert (folder / "report" / "index.html").is_file()
    assert max(cell_len(line) for line in said.split("\n") if not line.startswith("page: ")) <= 80
    return " ".join(said.split()), document, json.loads((folder / "verdicts.json").read_text())


def found_in(table: Any, **options: Any) -> tuple[Any, ...]:
    """Everything of a result that verdicts.json holds."""
    found = assaymark.check(table, **options)
    return found.plan_hash, found.verdicts, found.measurements, found.read.left, found.study


class Stream:
    """A frame with nothing but the Arrow stream interface."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


RENAMED = {"item": "thing", "agent": "who", "judge": "by", "score": "given"}


def wide(rows: Sequence[Row]) -> list[Row]:
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        found.setdefault((row["item"], row["agent"]), {"item": row["item"], "agent": row["agent"]})[row["judge"]] = row[
            "score"
        ]
    return list(found.values())


@given(st.data())
@settings(max_examples=6)
def test_the_same_scores_in_any_form_give_the_same_verdicts(tmp_path_factory, data):
    chance = random.Random(data.draw(st.integers(0, 10**6)))
    judges = ("gpt-4o", "claude-3", "our-judge")[: data.draw(st.integers(2, 3))]
    rows = rows_of(items=data.draw(st.integers(3, 6)), judges=judges, seed=chance.randrange(10**6))
    rows = [row for row in rows if chance.random() > data.draw(st.sampled_from([0.0, 0.3]))]
    folder, mixed = tmp_path_factory.mktemp("forms"), chance.sample(rows, len(rows))
    want = found_in(written(folder / "long.csv", rows), scale=(1, 5))
    table = pa.Table.from_pylist(mixed)
    pq.write_table(table, folder / "mixed.parquet")
    (folder / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mixed))
    renamed = table.rename_columns([RENAMED[name] for name in table.column_names])
    forms: dict[str, tuple[Any, dict[str, Any]]] = {
        "CSV in another order": (written(folder / "mixed.csv", mixed), {}),
        "Parquet": (folder / "mixed.parquet", {}),
        "JSON lines": (folder / "lines.jsonl", {}),
        "dicts": (mixed, {}),
        "a pyarrow table": (table, {}),
        "a stream": (Stream(table), {}),
        "other names": (renamed, {"map": RENAMED}),
        "one column a judge": (wide(mixed), {"judges": judges}),
        "one column a criterion": (
            [{**row, "extra": 1} for row in mixed], {"dimensions": "score"}
        ),
    }  # fmt: skip
    for form, (source, options) in forms.items():
        assert found_in(source, scale="1..5", **options) == want, form


def test_columns_of_every_kind_that_frames_have():
    table = pa.Table.from_pylist(rows_of())
    want = found_in(table, scale=(1, 5))
    view, many = table, table
    for at, name in enumerate(table.column_names):
        text = table.column(name).cast(pa.string())
        view = view.set_column(at, name, text.cast(pa.string_view()))
        many = many.set_column(at, name, (text if name != "score" else table.column(name)).dictionary_encode())
    numbers = table.set_column(3, "score", table.column("score").cast(pa.decimal128(38, 2)))
    passed = [row["score"] > 3 for row in rows_of()]
    told = [table.set_column(3, "score", pa.array(one)) for one in (passed, [int(one) for one in passed])]
    for found in (view, many, numbers):
        assert found_in(found, scale=(1, 5)) == want
    flags, digits = (assaymark.check(one) for one in told)
    assert flags.read.scale == digits.read.scale == (0, 1)
    assert flags.measurements == digits.measurements
    assert flags.agreement.method.startswith("mean of pairwise quadratic-weighted kappa")
    shares = table.set_column(3, "score", pa.array([100 * one for one in passed]))
    assert assaymark.check(shares).agreement.method.startswith("mean of pairwise intraclass correlations")
    assert assaymark.check(shares).agreement.value == pytest.approx(flags.agreement.value, abs=0.05)


def test_pairs_in_any_form_give_the_same_verdicts(tmp_path):
    """Verdicts of both orders in one row, in two rows with an order, and in two rows that name the agents as shown."""
    chance, twice, ordered, shown = random.Random(4), [], [], []
    for q in range(12):
        for a, b in (("ash", "birch"), ("cedar", "ash"), ("birch", "cedar")):
            for judge in ("gpt-4o", "claude-3"):
                one, two = (chance.choice([a, b, b, "tie"]) for _ in range(2))
                pair = {"item": f"q{q}", "agent_a": a, "agent_b": b, "judge": judge}
                twice.append({**pair, "winner_ab": one, "winner_ba": two})
                ordered += [{**pair, "order": "ab", "winner": one}, {**pair, "order": "ba", "winner": two}]
                shown += [{**pair, "winner": one}, {**pair, "agent_a": b, "agent_b": a, "winner": two}]
    want = found_in(written(tmp_path / "twice.csv", twice))
    for rows in (ordered, chance.sample(ordered, len(ordered)), chance.sample(shown, len(shown))):
        assert found_in(rows) == want
    assert verdicts_of(twice, tmp_path / "run") == verdicts_of(shown, tmp_path / "other")
    slots = [{**row, "winner": {row["agent_a"]: 1, row["agent_b"]: -1}.get(row["winner"], 0)} for row in shown]
    assert found_in(slots) == want
    places = [
        {**row, "winner": {row["agent_a"]: "A", row["agent_b"]: "B"}.get(row["winner"], "tie")} for row in ordered
    ]
    turn = {"A": "B", "B": "A", "tie": "tie"}
    places = [{**row, "winner": turn[row["winner"]] if row["order"] == "ba" else row["winner"]} for row in places]
    assert found_in(places) == want
    texts = [{**row, "winner": {row["agent_a"]: "model_a", row["agent_b"]: "model_b"}.get(row["winner"], "tie")}
             for row in ordered]  # fmt: skip
    assert found_in(texts) == want
    assert "winner names places: the first is the text that was shown first, agent_b's in rows that say so" in (
        assaymark.check(places).read.filled
    )
    some = [{**row, "agent_a": min(row["agent_a"], row["agent_b"]), "agent_b": max(row["agent_a"], row["agent_b"])}
            for row in shown]  # fmt: skip
    assert next(line for line in assaymark.check(some).read.left if "position bias is not measured" in line).endswith(
        "named first: ash 100\N{NO-BREAK SPACE}%, birch 50\N{NO-BREAK SPACE}%, cedar 0\N{NO-BREAK SPACE}%"
    )
    orders = assaymark.check(twice).read.orders
    assert all(assaymark.check(one).read.orders == orders for one in (ordered, shown, slots, places, texts))
    pooled = [{**row, "item": int(row["item"][1:]) // 2} for row in twice]  # two rows a pair: each keeps its two orders
    assert assaymark.check(pooled).read.orders == orders
    mine = [row for row in twice if row["judge"] == "gpt-4o"]
    same = sum(row["winner_ab"] == row["winner_ba"] != "tie" for row in mine)
    assert (orders["gpt-4o"]["both"], orders["gpt-4o"]["same_text"]) == (len(mine), same)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0, 1], (0, 1)), (["pass", "fail"], (0, 1)), (["True", "False"], (0, 1)), ([1, 5], (1, 5)),
        ([1, 2, 7], (1, 7)), ([1, 4, 10], (1, 10)), ([0, 4, 10], (0, 10)), ([0, 100], (0, 100)),
        ([20, 55], (0, 100)), ([3, 11], (0, 100)), ([0.0, 99.5, 100.0], (0, 100)), ([1, 2.5, 5], (1, 5)),
        ([0] * 12 + [100], (0, 100)), ([0] * 9 + [7, 100], (0, 100)),
    ],
)  # fmt: skip
def test_a_scale_is_read_from_the_scores_that_tell_it(values, scale):
    rows = [{**row, "score": values[k % len(values)]} for k, row in enumerate(rows_of(items=3))]
    read = assaymark.check(rows).read
    assert read.scale == scale
    assert any(line.startswith(f"scale {scale[0]} to {scale[1]}, read from the scores") for line in read.filled)


@pytest.mark.parametrize(("values", "told"), [
    ([2, 5], "from 2 to 5, which does not determine the scale; declare it, as in --scale 1..5"),
    ([1, 2, 6], "from 1 to 6, which does not determine the scale; declare it, as in --scale 1..7"),
    ([0, 5], "from 0 to 5, which does not determine the scale; declare it, as in --scale 0..10"),
    ([0.2, 0.9], "from 0.2 to 0.9, which does not determine the scale; declare it, as in --scale 0..1"),
    ([0, 0.5, 1], "from 0 to 1, which does not determine the scale; declare it, as in --scale 0..1"),
    ([-2, 2], "from -2 to 2, which does not determine the scale; declare it, as in --scale -2..2"),
    ([1, 250], "from 1 to 250, which does not determine the scale; declare it, as in --scale 1..250"),
    ([10.5, 90.25], "from 10.5 to 90.25, which does not determine the scale; declare it, as in --scale 0..100"),
])  # fmt: skip
def test_scores_that_tell_no_scale_are_an_error_with_the_flag(values, told):
    rows = [{**row, "score": values[k % len(values)]} for k, row in enumerate(rows_of(items=3))]
    with pytest.raises(InputError, match=told.replace("(", r"\(")):
        assaymark.check(rows)
    low, high = told.rpartition(" ")[2].split("..")
    checked = assaymark.check(rows, scale=f"{low}..{high}")
    assert checked.read.scale == (float(low), float(high))
    assert (checked.study.rubric.coefficient == "icc") == (high in ("1", "100", "250")), "kappa would round them"


def test_families_are_told_by_names_and_people_count_one_by_one(tmp_path, capsys):
    judges = ("gpt-4o", "openai/o3-mini", "gemma-2", "models/gemini-pro", "our-judge", "human_1", "human_2")
    path = written(tmp_path / "s.csv", rows_of(judges=judges))
    said, document, stored = checked(capsys, path, "--scale", "1..5", "--family", "our-judge=Anthropic")
    assert stored["panel"]["judges"] == {
        "gpt-4o": "openai", "openai/o3-mini": "openai", "gemma-2": "google", "models/gemini-pro": "google",
        "our-judge": "anthropic", "human_1": "human_1 (a person)", "human_2": "human_2 (a person)",
    }  # fmt: skip
    assert "makers read from names (20" in said
    assert "gemma-2: google" in said
    assert any("human_1: a person" in line for line in document["read"]["filled"])
    lines = " ".join(assaymark.check(path, scale=(1, 5)).read.filled)
    assert "no maker is known for our-judge; each counts as a separate family" in lines
    lines = " ".join(assaymark.check(path, scale=(1, 5), family={"ash": "openai", "cedar": "google"}).read.filled)
    assert "no maker is known for birch; without it self-preference is not tested" in lines


def test_composite_keys_and_dotted_paths(tmp_path, capsys):
    rows = rows_of()
    nested = [
        {"task": {"set": "s", "id": row["item"]}, "by": {"model": row["judge"]}, "model": row["agent"],
         "out": {"points": row["score"]}}
        for row in rows
    ]  # fmt: skip
    path = tmp_path / "nested.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in nested))
    said, _, stored = checked(
        capsys, path, "--map", "item=task.set+task.id", "--map", "judge=by.model", "--map", "score=out.points",
        "--scale", "1..5",
    )  # fmt: skip
    assert "item = task.set+task.id" in said
    plain = [{**row, "item": f"s+{row['item']}"} for row in rows]
    assert stored["verdicts"] == json.loads(verdicts_of(plain, tmp_path / "other", scale=(1, 5)))["verdicts"]
    toml = tmp_path / "map.toml"
    toml.write_text('item = "task.set+task.id"\njudge = "by.model"\nscore = "out.points"\n')
    assert checked(capsys, path, "--map", str(toml), "--scale", "1..5", out="again")[2] == stored


@pytest.mark.parametrize("options", [("--without", "llama-3"), ("--judges", "gpt-4o,claude-3")])
def test_what_is_chosen_after_the_scores_were_seen_is_on_the_record(options, tmp_path, capsys):
    path = written(tmp_path / "s.csv", rows_of(judges=("gpt-4o", "claude-3", "llama-3")))
    said, document, stored = checked(capsys, path, "--scale", "1..5", *options)
    assert "Chosen after the scores were seen: without llama-3" in said
    assert document["read"]["choices"] == ["without llama-3"]
    assert "without llama-3" in stored["notes"]
    assert stored["panel"]["judges"] == {"gpt-4o": "openai", "claude-3": "anthropic"}
    assert stored["preregistered"] is False


PLAN = 'name = "mine"\nseed = 3\n[claims]\ndimensions = ["aggregate"]\n' + "".join(
    f'[[judges]]\nname = "{name}"\nmodel = "elsewhere/{name}"\nfamily = "{family}"\n'
    for name, family in (("gpt-4o", "openai"), ("claude-3", "anthropic"), ("llama-3", "meta"))
)


def conditions(stored: Mapping[str, Any]) -> set[str]:
    return {one["id"] for verdict in stored["verdicts"] for one in verdict["conditions"]}


def test_a_plan_that_was_locked_first_lifts_the_cap_and_one_locked_later_does_not(tmp_path, ran, capsys):
    plan, rows = tmp_path / "plan.toml", rows_of(items=12, judges=("gpt-4o", "claude-3", "llama-3"))
    plan.write_text(PLAN)
    late = written(tmp_path / "late.csv", rows)
    assert main(["lock", str(plan), "--out", str(tmp_path / "plan")]) == 0
    soon = written(tmp_path / "soon.csv", rows)
    capsys.readouterr()
    locked = ("--study", str(tmp_path / "plan"))
    said, _, stored = checked(capsys, soon, *locked)
    assert (stored["preregistered"], "not-preregistered" in conditions(stored)) == (True, False)
    assert "analysed after they were seen" not in said
    for path, options in ((late, locked), (soon, (*locked, "--without", "gpt-4o")), (soon, ("--study", str(plan)))):
        said, _, stored = checked(capsys, path, *options, out="other")
        assert (stored["preregistered"], "not-preregistered" in conditions(stored)) == (False, True)
        assert "analysed after they were seen" in said
    less = written(tmp_path / "less.csv", [row for row in rows if row["judge"] != "claude-3"])
    for path, options, told in (
        (
            soon,
            ("--cluster-order", "consecutive"),
            "the plan says nothing; leave out --cluster-order, or change the plan",
        ),
        (soon, ("--scale", "1..7"), "the plan says 1..5; leave out --scale, or change the plan"),
        (less, (), "judge claude-3 is in the plan and not in the table"),
    ):
        assert told in ran("check", path, *locked, *options, "--out", tmp_path / "none", status=1)
        assert not (tmp_path / "none").exists()


def test_clusters_are_the_items_or_a_column_and_may_follow_in_time(tmp_path, capsys):
    rows = [{**row, "week": f"w{int(row['item'][1:]) // 2}"} for row in rows_of(items=24)]
    path = written(tmp_path / "s.csv", rows)
    own, _, _ = checked(capsys, path, "--scale", "1..5")
    assert "each item is one cluster" in own
    assert "not used: week" in own
    weeks, document, _ = checked(capsys, path, "--scale", "1..5", "--cluster", "week", out="weeks")
    assert "each item is one cluster" not in weeks
    assert document["read"]["clusters"] == 12
    _, _, stored = checked(
        capsys, path, "--scale", "1..5", "--cluster", "week", "--cluster-order", "consecutive", out="time"
    )
    assert "consecutive" in conditions(stored)


def test_nothing_is_dropped_without_a_line(tmp_path, capsys):
    rows = [{**row, "note": "x", "length": 10} for row in rows_of(items=20)]
    rows[0]["score"], rows[1]["score"] = -1, None
    rows[4]["length"] = 11
    rows.append(dict(rows[-1]))
    path = written(tmp_path / "s.csv", [{**row, "trial": 1} for row in rows])
    said, document, stored = checked(capsys, path, "--scale", "1..5")
    lines = document["read"]["left"]
    assert stored["notes"] == lines
    for told in (
        "1 score of −1 count as missing", "1 row repeats a result with its score: counted once",
        "2 of 120 scores of answers are missing (1.7 %), by judge: claude-3 1.7 %, gpt-4o 1.7 %",
        "1.7 % and by agent: ash 5.0 %",
        "length is not examined: length lacks a number, or differs between rows of one answer",
        "1 answer lacks a usable score from some judge: agreement is measured without them",
    ):  # fmt: skip
        assert any(told in " ".join(line.split()) for line in lines), (told, lines)
        assert told in said
    assert "1 column not used: note" in said
    again = [*rows_of(), *({**row, "score": 6 - row["score"]} for row in rows_of())]
    assert "48 scores of claude-3, gpt-4o not used: repetition" in assaymark.check(again, scale=(1, 5)).read.left[0]


def test_every_choice_is_on_the_record_and_criteria_that_lack_scores_are_said():
    rows = rows_of(judges=("gpt-4o", "claude-3", "llama-3"))
    read = assaymark.check(wide(rows), judges="gpt-4o,claude-3", scale=(1, 5)).read
    assert read.choices == ("without llama-3",)
    assert (
        found_in(wide(rows), without="llama-3", scale=(1, 5))[1:3]
        == found_in(wide(rows), judges="gpt-4o,claude-3", scale=(1, 5))[1:3]
    )
    two = [{**row, "criterion": name} for row in rows for name in ("clear", "right")]
    assert assaymark.check(two, dimensions="clear", scale=(1, 5)).read.choices == ("without the criteria right",)
    part = [{**row, "clear": row["score"], "right": None if k % 4 == 0 else 2} for k, row in enumerate(rows)]
    left = assaymark.check(part, dimensions="clear,right", scale=(1, 5)).read.left
    told = "18 rows of 72 lack a score on some criterion and count on none (missing: right 18); fewer criteria in"
    assert any(line.startswith(told) for line in left), left
    pairs = [{"item": q, "agent_a": "ash", "agent_b": "birch", "judge": judge, "winner_ab": "A", "winner_ba": "B"}
             for q in range(5) for judge in ("gpt-4o", "claude-3", "llama-3")]  # fmt: skip
    assert set(assaymark.check(pairs, without="llama-3").read.orders) == {"gpt-4o", "claude-3"}


def test_a_large_file_is_summed_in_parts_only_where_its_columns_are_the_documented_ones(tmp_path, monkeypatch):
    rows = rows_of(items=12)
    want = found_in(rows, scale=(1, 5))
    monkeypatch.setattr("assaymark.workflow.score_files.STREAMED_FROM", 10)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "names.parquet")
    assert found_in(tmp_path / "names.parquet", scale="1..5") == want
    whole = [{**row, "score": 1 if k == 0 else 5 if k == 1 else row["score"]} for k, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(whole), tmp_path / "whole.parquet")
    assert found_in(tmp_path / "whole.parquet") == found_in(whole)
    documented = [
        {**row, "trajectory": row["item"] + row["agent"], "cluster": row["item"], "cycle": row["item"], "trial": 1,
         "family": "openai" if row["judge"] == "gpt-4o" else "anthropic", "clear": row["score"]}
        for row in rows
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(documented), tmp_path / "documented.parquet")
    found = assaymark.check(tmp_path / "documented.parquet", dimensions="clear", out=tmp_path / "run")
    assert found.agreement.value == next(m.value for m in want[2] if m.id == found.agreement.id)
    assert (tmp_path / "run" / "report" / "index.html").is_file()
    (tmp_path / "plan.toml").write_text(
        PLAN.partition('[[judges]]\nname = "llama-3"')[0].replace('"aggregate"', '"clear"')
    )
    planned = assaymark.check(tmp_path / "documented.parquet", dimensions="clear", study=tmp_path / "plan.toml")
    caps = {condition.id for verdict in planned.verdicts for condition in verdict.conditions}
    assert (planned.preregistered, "not-preregistered" in caps) == (False, True), "a plan that is not locked is no lock"


@pytest.mark.parametrize(
    ("answer", "told", "of"),
    [("2\n", "1 retries, 2 clear", "scores"), ("gpt-4o, 1\n", "1 claude-3, 2 gpt-4o, 3 retries", "judges")],
)
def test_on_a_terminal_the_open_question_is_asked(answer, told, of, tmp_path, capsys, monkeypatch):
    rows = [{"retries": k % 3, **row} for k, row in enumerate(rows_of())]
    table = [{"item": r["item"], "agent": r["agent"], "judge": r["judge"], "retries": r["retries"], "clear": r["score"]}
             for r in rows] if of == "scores" else [{**one, "retries": 1} for one in wide(rows)]  # fmt: skip
    path = written(tmp_path / "s.csv", table)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert main(["check", str(path), "--scale", "1..5", "--out", str(tmp_path / "run"), "--quiet"]) == 0
    said = capsys.readouterr().err
    assert f"Which of these columns are {of} ({told})?" in said
    read = json.loads((tmp_path / "run" / "check.json").read_text())["read"]
    assert read["dimensions"] == (["clear"] if of == "scores" else ["score"])


def test_a_folder_of_something_else_is_left_alone(tmp_path, ran, monkeypatch):
    path = written(tmp_path / "s.csv", rows_of())
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("mine")
    assert "run holds other files; give the table its own folder (--out)" in ran(
        "check", path, "--scale", "1..5", "--out", tmp_path / "run", status=1
    )
    assert "run holds other files; give the demonstration its own folder (--out)" in ran(
        "demo", "--out", tmp_path / "run", status=1
    )
    assert [one.name for one in (tmp_path / "run").iterdir()] == ["mine.txt"]
    out = tmp_path / "other"
    with monkeypatch.context() as patch:
        patch.setattr("assaymark.workflow.run_folder.replace_files", Mock(side_effect=OSError(28, "No space left")))
        ran("check", path, "--scale", "1..5", "--out", out, status=1)
    assert not out.exists(), "a full disk leaves nothing"
    out.mkdir()
    (out / "check.json").write_text("{}")
    assert main(["check", str(path), "--scale", "1..5", "--out", str(out)]) == 0, "it takes up what a kill left"
    own, step = "other files; give the run its own folder (--out)", "which has no such step; run: assaymark report"
    for words, told in (
        (["lock", STUDY, "--out"], own), (["bench", "qa", "--out"], own), (["judge"], step), (["claim"], step),
        (["check"], "is a run folder, not a table"),
    ):  # fmt: skip
        assert told in ran(*words, out, status=1)


def crowd(*, per: int = 2, workers: int = 6) -> list[Row]:
    """Each item is scored by a few of many people."""
    chance, names = random.Random(7), [f"worker_{k}" for k in range(workers)]
    rows = rows_of(items=40, judges=names, gap=0.9)
    chosen = {row["item"]: chance.sample(names, per) for row in rows}
    return [row for row in rows if row["judge"] in chosen[row["item"]]]


def alpha(tables: Sequence[Sequence[float]]) -> float:
    """Krippendorff's alpha for intervals, as its definition has it: all pairs, within items and overall."""
    paired = [values for values in tables if len(values) > 1]
    every = [value for values in paired for value in values]
    within = sum(sum((a - b) ** 2 for a in values for b in values) / (len(values) - 1) for values in paired) / len(
        every
    )
    overall = sum((a - b) ** 2 for a in every for b in every) / (len(every) * (len(every) - 1))
    return 1 - within / overall


def test_a_crowd_is_measured_by_alpha_on_everything_that_two_judges_scored(tmp_path, capsys):
    rows = crowd()
    path = written(tmp_path / "crowd.csv", [{"worker" if k == "judge" else k: v for k, v in r.items()} for r in rows])
    said, document, stored = checked(capsys, path, "--scale", "1..5", "--map", "judge=worker")
    groups: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        groups.setdefault((row["item"], row["agent"]), []).append(row["score"])
    result = assaymark.check(path, scale=(1, 5), map={"judge": "worker"})
    assert result.agreement.value == pytest.approx(alpha(list(groups.values())), abs=1e-12)
    assert result.agreement.method.startswith("Krippendorff's alpha, interval scale, of all records that two judges")
    assert f"α {result.agreement.value:.2f}" in said
    assert "480 of 720 scores of answers are missing (66.7 %), by judge: worker_" in said
    assert stored["notes"] == document["read"]["left"]
    levels = {m.labels["agent"]: m.value for m in result.measurements if m.id.startswith("score.effect[agent")
              and m.labels["dimension"] == "aggregate"}  # fmt: skip
    assert levels["ash"] < levels["birch"] < levels["cedar"]
    assert any("Krippendorff's alpha" in line for v in result.claims for line in v.reasons)
    certificates = [str(one) for one in sorted((tmp_path / "run" / "certificates").iterdir())]
    assert main(["claim", "--verify", *certificates]) == 0, capsys.readouterr()


def test_failed_replies_keep_kappa_and_unasked_ones_do_not(tmp_path):
    rows = rows_of(items=30, judges=("gpt-4o", "claude-3", "llama-3"))
    failed = [{**row, "score": None if k in (5, 40) else row["score"]} for k, row in enumerate(rows)]
    assert assaymark.check(failed, scale=(1, 5)).agreement.method.startswith("mean of pairwise quadratic-weighted")
    assert assaymark.check(rows[1:], scale=(1, 5)).agreement.method.startswith("Krippendorff's alpha")
    half = [{**row, "score": None if k % 2 else row["score"]} for k, row in enumerate(rows)]
    read = assaymark.check(half, scale=(1, 5)).read
    assert any("every judge has so many that these scores are read as not requested" in line for line in read.left)


def test_the_severity_of_a_judge_that_lacks_scores_is_taken_out_first():
    """A harsh judge that saw only one agent must not put it behind; the fit of records and judges says how far."""
    rows = []
    for q in range(12):
        quality = 3 + q % 3
        rows += [{"item": f"q{q}", "agent": agent, "judge": judge, "score": quality + kind - 3 * (judge == "claude-3")}
                 for agent, kind in (("ash", 0), ("birch", 0), ("cedar", 1))
                 for judge in ("gpt-4o", "claude-3", "llama-3")
                 if not (judge == "claude-3" and agent == "birch")]  # fmt: skip
    result = assaymark.check(rows, scale=(-5, 10))
    gaps = {m.labels["high"] + m.labels["low"]: m.value for m in result.measurements
            if m.name == "contrast" and m.labels["dimension"] == "aggregate"}  # fmt: skip
    assert gaps == {"ashbirch": pytest.approx(0), "cedarash": pytest.approx(1), "cedarbirch": pytest.approx(1)}


def test_parts_that_no_item_connects_cannot_be_tested_and_are_named(tmp_path, capsys):
    one, two = rows_of(items=8, agents=("ash", "birch")), rows_of(items=8, agents=("cedar", "dogwood"), seed=3)
    rows = one + [{**row, "item": f"p{row['item']}"} for row in two]
    said, _, stored = checked(capsys, written(tmp_path / "s.csv", rows), "--scale", "1..5")
    told = (
        "no item that the same judges scored connects these parts, so they cannot be tested: ash, birch; cedar, dogwood"
    )
    assert told in said
    assert told in stored["notes"]
    apart = [v for v in stored["verdicts"] if set(v["claim"]["subjects"]) == {"ash", "cedar"}]
    assert apart
    assert all(v["publication_level"] == "no-claim" for v in apart)
    assert any("cannot be tested" in reason for v in apart for reason in v["reasons"])
    assert "trajector" not in said
    assert "cycle" not in said


@pytest.mark.parametrize("items", [1, 2])
def test_one_or_two_clusters_are_no_error_and_license_nothing(items, tmp_path, capsys):
    said, _, stored = checked(capsys, written(tmp_path / "s.csv", rows_of(items=items, gap=2)), "--scale", "1..5")
    assert {verdict["publication_level"] for verdict in stored["verdicts"]} == {"no-claim"}
    assert "cannot be tested" in said or "cannot order" in said
    assert stored["within_margin"] in ({}, {"aggregate": []})
    page = (tmp_path / "run" / "report" / "index.html").read_text()
    assert "cannot" in page
    for word in ("one class", "score within", "tied"):
        assert word not in said
        assert word not in page
    assert len(stored["tiers"].get("aggregate", [[]])) == 1


def test_no_score_is_said_to_lie_beyond_its_scale(tmp_path, capsys):
    scores = {("q1", "elm"): (5, 4), ("q1", "fir"): (2, 1), ("q2", "elm"): (4, 4), ("q2", "fir"): (3, 1)}
    rows = [
        {"item": item, "agent": agent, "judge": judge, "score": score}
        for (item, agent), both in scores.items()
        for judge, score in zip(("gpt-4o", "claude-3"), both, strict=True)
    ]
    said, _, _ = checked(capsys, written(tmp_path / "s.csv", rows))
    assert re.search(r"elm, fir +1\.00 to 5\.00 +=+ ", said)


@pytest.fixture(scope="module")
def graded(shared) -> tuple[list[Row], Any]:
    path = shared / "data" / "mt_bench_repro" / "single_grade.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    found = assaymark.check(
        path, dimensions="score_turn1,score_turn2", map={"item": "question_id+lang"}, cluster="question_id"
    )
    return rows, found


Answer = tuple[int, str, str]


def panel(rows: Sequence[Row]) -> tuple[list[str], dict[Answer, dict[str, float]]]:
    """Return the judges that stay, and their scores of each answer (question, language, model); below 1 is missing."""
    scores: dict[Answer, dict[str, float]] = {}
    asked, failed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in rows:
        one, two, judge = row["score_turn1"], row["score_turn2"], row["judge_id"]
        asked[judge, row["model_id"]] += 1
        answer = scores.setdefault((row["question_id"], row["lang"], row["model_id"]), {})
        if min(one, two) < 1:
            failed[judge, row["model_id"]] += 1
        else:
            answer[judge] = (one + two) / 2
    judges = sorted({judge for judge, _ in asked})
    kept = [j for j in judges if all(failed[key] / n <= 0.05 for key, n in asked.items() if key[0] == j)]
    return kept, {key: {j: v for j, v in given.items() if j in kept} for key, given in scores.items()}


@pytest.mark.shared
def test_gaps_and_tiers_of_real_scores_are_those_of_plain_least_squares(graded, tmp_path):
    rows, found = graded
    judges, scores = panel(rows)
    models, questions = sorted({key[2] for key in scores}), sorted({key[0] for key in scores})
    gaps: dict[tuple[str, str], list[float]] = {pair: [] for pair in combinations(models, 2)}
    for question in questions:
        answers = [key for key in scores if key[0] == question and scores[key]]
        cells = [(k, judges.index(j), v) for k, key in enumerate(answers) for j, v in scores[key].items()]
        design = np.zeros((len(cells) + 1, len(answers) + len(judges)))
        for at, (k, j, _) in enumerate(cells):
            design[at, k] = design[at, len(answers) + j] = 1
        design[-1, len(answers) :] = 1  # judge effects sum to zero
        effects = np.linalg.lstsq(design, np.array([*(v for *_, v in cells), 0.0]), rcond=None)[0]
        level = {key: effects[k] for k, key in enumerate(answers)}
        for a, b in gaps:
            both = [
                level[question, lang, a] - level[question, lang, b]
                for lang in ("en", "ko")
                if {(question, lang, a), (question, lang, b)} <= level.keys()
            ]
            gaps[a, b].append(float(np.mean(both)))
    contrasts = {
        (m.labels["high"], m.labels["low"]): m.value
        for m in found.measurements
        if m.name == "contrast" and m.labels["dimension"] == "aggregate"
    }
    for (a, b), values in gaps.items():
        known = contrasts[a, b] if (a, b) in contrasts else -contrasts[b, a]
        assert known == pytest.approx(np.mean(values), abs=1e-4)
    order = sorted(models, key=lambda name: -np.mean([np.mean(v) * (1 if a == name else -1)
                                                      for (a, b), v in gaps.items() if name in (a, b)]))  # fmt: skip
    p = {pair: scipy.stats.ttest_1samp(values, 0).pvalue * len(gaps) for pair, values in gaps.items()}
    tiers: list[list[str]] = [[]]
    for at, name in enumerate(order):
        tiers[-1].append(name)
        if all(p[tuple(sorted((above, below)))] < 0.05 for above in order[: at + 1] for below in order[at + 1 :]):
            tiers.append([])
    found.save(tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "verdicts.json").read_text())["tiers"]["aggregate"]
    assert [sorted(one) for one in tiers if one] == [sorted(one) for one in stored]


@pytest.mark.shared
def test_shares_of_wins_and_both_orders_of_real_verdicts(shared):
    """The file's column ``winner``, which combines both orders, is not read."""
    path = shared / "data" / "mt_bench_repro" / "pairwise.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    found = assaymark.check(path, map={"item": "question_id+lang"}, cluster="question_id")
    good, value = ("A", "B", "tie"), {"A": 1.0, "B": 0.0, "tie": 0.5}
    for judge, one in found.read.orders.items():
        both = [r for r in rows if r["judge_id"] == judge and r["winner_ab"] in good and r["winner_ba"] in good]
        assert one["both"] == len(both)
        clear = [r for r in both if "tie" not in (r["winner_ab"], r["winner_ba"])]
        assert one["same_text"] == sum(r["winner"] in (r["model_a"], r["model_b"]) for r in clear)
        assert one["same_place"] == sum(r["winner_ab"] == r["winner_ba"] != "tie" for r in both)
        assert one["one_tie"] == sum((r["winner_ab"] == "tie") != (r["winner_ba"] == "tie") for r in both)
    shares: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        won = [value[row["winner_ab"]]] if row["winner_ab"] in good else []
        won += [1 - value[row["winner_ba"]]] if row["winner_ba"] in good else []
        for model, share in ((row["model_a"], np.mean(won)), (row["model_b"], 1 - np.mean(won))) if won else ():
            shares.setdefault((row["question_id"], row["lang"], model, row["judge_id"]), []).append(float(share))
    levels = {m.labels["agent"]: m.value for m in found.measurements
              if m.name == "score.effect" and m.labels["dimension"] == "aggregate"}  # fmt: skip
    for model, level in levels.items():
        assert level == pytest.approx(np.mean([np.mean(v) for key, v in shares.items() if key[2] == model]), abs=1e-4)


HOSTILE = (
    "<script>window.__canary=1</script></style></title></svg>", '"><img src=x onerror=alert(1)> \' onclick=x',
    "[bold red]x[/bold red] [link=http://x]y[/link] {{7*7}} {% raw %} `x` **b** $(rm)", "W" * 120, "名前ナ" * 40,
    "a\u0301" * 60, "=cmd|' /C calc'!A0", "x,y;z|w=[q]", "--help",
)  # fmt: skip


def test_hostile_names_stay_text_on_every_page_and_in_the_terminal(tmp_path, capsys):
    rows = [
        {**row, "item": f"<b>{row['item']}</b>\x1b[31m\n\u202e{HOSTILE[0]}" + "Z" * 3000,
         "<i>crit</i> [red]": row["score"],
         "topic": f"<t>\x07</t>{'T' * 3000}{int(row['item'][1:]) // 3}"}
        for row in rows_of(items=12, agents=HOSTILE[:5], judges=HOSTILE[5:], gap=0.5)
    ]  # fmt: skip
    path = tmp_path / "<b>[red] it's.parquet"
    pq.write_table(pa.Table.from_pylist([{k: v for k, v in row.items() if k != "score"} for row in rows]), path)
    said, document, _ = checked(
        capsys, path, "--dimensions", "<i>crit</i> [red]", "--scale", "1..5", "--cluster", "topic"
    )
    assert all(one.isprintable() for one in said)
    assert "names of judges written without []=,|: =cmd|' /C calc’!A0 as -cmd/' /C calc’!A0" in said
    pages = pages_below(tmp_path / "run" / "report")
    assert not [one for page in pages.values() for one in markup_problems(page)]
    assert not [
        page.name for page in pages.values() if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page.text)
    ]
    certificates = [str(one) for one in sorted((tmp_path / "run" / "certificates").iterdir())]
    assert main(["claim", "--verify", *certificates]) == 0, capsys.readouterr()
    assert document["read"]["clusters"] == 4


def test_one_claimed_dimension_of_several_is_tested_by_its_own_differences(tmp_path):
    """Not by those of the overall score, with which it is the same thing only if there is no other dimension."""
    rows = [row | {"clear": row["score"], "right": 3 + (n // 2 + n) % 2} for n, row in enumerate(rows_of(items=12))]
    plan = assaymark.check(rows, dimensions="clear,right", scale=(1, 5)).study
    plan = plan.model_copy(update={"claims": plan.claims.model_copy(update={"dimensions": ("aggregate", "right")})})
    (tmp_path / "plan.toml").write_text(study_toml(plan))
    found = assaymark.check(rows, dimensions="clear,right", study=tmp_path / "plan.toml").claims
    pairs = [one for one in found if one.claim.id.startswith("above[dimension=right")]
    assert [one.p_adjusted >= one.p > 0.3 for one in pairs] == [True] * 3


def test_what_never_varies_has_no_interval_and_each_sentence_names_its_judges(tmp_path, ran, monkeypatch):
    found = product(range(9), (("a", 1), ("b", 3), ("c", 4), ("d", 5)), ("gpt-4o", "claude-3"))
    rows = [{"item": item, "agent": agent, "judge": judge, "score": score} for item, (agent, score), judge in found]
    text = " ".join(ran("check", written(tmp_path / "s.csv", rows), "--out", tmp_path / "run").split())
    assert "“d and c score above the other two agents on the overall score in the scores of these 2 judges.”" in text
    assert "5.00 (no interval)" in text
    assert "judges agree on every answer; copies of one count as several: claude-3 and gpt-4o" in text
    assert "claude-3 and gpt-4o gave equal scores to every answer; copies of one judge count as several" in text
    assert "too close" not in text, "all pairs are ranked"
    pages = "".join(page.text for page in pages_below(tmp_path / "run" / "report").values())
    assert not re.search(r"\b(\d\.\d+) to \1(?!\d|, range of the judges)", pages)
    assert "range of the judges; no ranking on it was tested" in pages
    assert "Of 6 significant differences on the overall score, none was tested for own families and length." in pages
    monkeypatch.setattr("assaymark.workflow.score_files._PAIRS", 12)  # room for two certificates of six pairs
    assaymark.check(rows, out=tmp_path / "few")
    assert len([*(tmp_path / "few" / "certificates").iterdir()]) == 2


def test_a_small_table_is_said_on_about_one_screen(tmp_path, ran):
    path = written(tmp_path / "s.csv", rows_of(items=20))
    lines = ran("check", path, "--scale", "1..5", "--out", tmp_path / "run").rstrip("\n").split("\n")
    assert len(lines) <= 60
