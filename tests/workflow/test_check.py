"""`assaymark check` from a table to verdicts: the same scores in any form, what is filled in and said, what holds."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import assaymark
from assaymark.cli import main
from assaymark.errors import InputError

Row = dict[str, Any]


def rows_of(
    *, items: int = 8, agents: Sequence[str] = ("ash", "birch", "cedar"),
    judges: Sequence[str] = ("gpt-4o", "claude-3"), seed: int = 1, gap: float = 1.0,
) -> list[Row]:  # fmt: skip
    """Scores 1..5 of agents that stand ``gap`` points apart, on items that differ, by judges that nearly agree."""
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
    """What the terminal says, the JSON document, and verdicts.json of a table that is no error."""
    folder = path.parent / out
    assert main(["check", str(path), "--out", str(folder), *options]) == 0
    said = capsys.readouterr().out
    assert main(["check", str(path), "--out", str(folder), *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (folder / "report" / "index.html").is_file()
    assert max(len(line) for line in said.split("\n") if not line.startswith("page: ")) <= 80
    return " ".join(said.split()), document, json.loads((folder / "verdicts.json").read_text())


def found_in(table: Any, **options: Any) -> tuple[Any, ...]:
    """Everything of a result that verdicts.json holds."""
    found = assaymark.check(table, **options)
    return found.plan_hash, found.verdicts, found.measurements, found.read.left, found.study


class Stream:
    """What any frame is: something that speaks Arrow."""

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
    slots = [
        {**row, "winner": "tie" if row["winner"] == "tie" else "AB"[row["winner"] == row["agent_b"]]} for row in shown
    ]
    assert found_in(slots) == want
    orders = assaymark.check(twice).read.orders
    assert orders == assaymark.check(ordered).read.orders == assaymark.check(slots).read.orders
    mine = [row for row in twice if row["judge"] == "gpt-4o"]
    same = sum(row["winner_ab"] == row["winner_ba"] != "tie" for row in mine)
    assert (orders["gpt-4o"]["both"], orders["gpt-4o"]["same_text"]) == (len(mine), same)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0, 1], (0, 1)), (["pass", "fail"], (0, 1)), (["True", "False"], (0, 1)), ([1, 5], (1, 5)),
        ([1, 2, 7], (1, 7)), ([1, 4, 10], (1, 10)), ([0, 4, 10], (0, 10)), ([0, 100], (0, 100)),
        ([20, 55], (0, 100)), ([3, 11], (0, 100)), ([0.0, 99.5, 100.0], (0, 100)), ([1, 2.5, 5], (1, 5)),
    ],
)  # fmt: skip
def test_a_scale_is_read_from_the_scores_that_tell_it(values, scale):
    rows = [{**row, "score": values[k % len(values)]} for k, row in enumerate(rows_of(items=3))]
    read = assaymark.check(rows).read
    assert read.scale == scale
    assert any(line.startswith(f"scale {scale[0]} to {scale[1]}, read from the scores") for line in read.filled)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([2, 5], "from 2 to 5, which fits no known scale; declare it, as in --scale 1..5"),
        ([1, 2, 6], "from 1 to 6, which fits no known scale; declare it, as in --scale 1..7"),
        ([0, 5], "from 0 to 5, which fits no known scale; declare it, as in --scale 0..10"),
        ([0.2, 0.9], "from 0.2 to 0.9, which fits no known scale; declare it, as in --scale 0..1"),
        ([0, 0.5, 1], "from 0 to 1, which fits no known scale; declare it, as in --scale 0..1"),
        ([-2, 2], "from -2 to 2, which fits no known scale; declare it, as in --scale -2..2"),
        ([1, 250], "from 1 to 250, which fits no known scale; declare it, as in --scale 1..250"),
        ([10.5, 90.25], "from 10.5 to 90.25, which fits no known scale; declare it, as in --scale 0..100"),
    ],
)
def test_scores_that_tell_no_scale_are_an_error_with_the_flag(values, told):
    rows = [{**row, "score": values[k % len(values)]} for k, row in enumerate(rows_of(items=3))]
    with pytest.raises(InputError, match=told.replace("(", r"\(")):
        assaymark.check(rows)
    low, high = told.rpartition(" ")[2].split("..")
    assert assaymark.check(rows, scale=f"{low}..{high}").read.scale == (float(low), float(high))


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


def test_a_plan_that_was_locked_first_lifts_the_cap_and_one_locked_later_does_not(tmp_path, capsys):
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
        assert main(["check", str(path), *locked, *options, "--out", str(tmp_path / "none")]) == 1
        assert told in capsys.readouterr().err
        assert not (tmp_path / "none").exists()


def test_clusters_are_the_items_or_a_column_and_may_follow_in_time(tmp_path, capsys):
    rows = [{**row, "week": f"w{int(row['item'][1:]) // 2}"} for row in rows_of(items=24)]
    path = written(tmp_path / "s.csv", rows)
    own, _, _ = checked(capsys, path, "--scale", "1..5")
    assert "each item is one cluster" in own
    assert "not used: week" in own
    weeks, document, _ = checked(capsys, path, "--scale", "1..5", "--cluster", "week", out="weeks")
    assert "each item is a cluster" not in weeks
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
        "2 of 120 scores of answers are missing (1.7%), by judge: claude-3 1.7%, gpt-4o 1.7% and by agent: ash 5.0%",
        "length is not examined: length lacks a number, or differs between rows of one answer",
        "1 trajectory lacks a usable score from some judge: agreement is measured without them",
    ):  # fmt: skip
        assert any(told in line for line in lines), (told, lines)
        assert told in said
    assert "1 column not used: note" in said


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
    assert "480 of 720 scores of answers are missing (66.7%), by judge: worker_" in said
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
    assert any("every judge has so many that they are read as not asked for" in line for line in read.left)


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
    told = "no item connects these parts, which cannot be tested against each other: ash, birch; cedar, dogwood"
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
