"""`assaymark demo --real`: the real grades that ship with the package, each number against another computation."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import cohen_kappa_score

import assaymark
from assaymark.errors import InputError
from assaymark.records import Measurement
from assaymark.workflow import RunFolder, open_checked

Row = dict[str, Any]
PACKAGE = Path(assaymark.__file__).parent / "workflow" / "mt_bench_repro"
OWN = {"Gemma-4-12B-it": "gemma-2-9b-it", "EXAONE-3.5-32B-Instruct-AWQ": "EXAONE-3.5-7.8B-Instruct"}
WON = {"A": 1.0, "B": 0.0, "tie": 0.5}


@pytest.fixture(scope="module")
def grades() -> list[Row]:
    return pq.read_table(PACKAGE / "grades.parquet").to_pylist()


@pytest.fixture(scope="module")
def orders() -> list[Row]:
    return pq.read_table(PACKAGE / "orders.parquet").to_pylist()


@pytest.fixture(scope="module")
def measured(real) -> dict[str, Measurement]:
    return {one.id: one for one in open_checked(RunFolder(real)).measurements}


@pytest.fixture(scope="module")
def answers(grades) -> tuple[list[str], list[Row]]:
    """The judges in order, and each answer with what each judge gave it in both languages, or None."""
    judges, found = sorted({row["judge"] for row in grades}), dict[tuple[str, str], Row]()
    for row in grades:
        one = found.setdefault((row["item"], row["system"]), {**row, "given": {}})
        one["given"].setdefault(row["judge"], {})[row["language"]] = row["score"]
    for one in found.values():  # an answer that lacks a language of some judge counts on none of that judge's
        one["given"] = {judge: both for judge, both in one["given"].items() if min(both.values()) >= 1}
    return judges, list(found.values())


def own_points(table: np.ndarray[Any, Any], judges: list[str], systems: list[str]) -> dict[str, float]:
    """Points more for the own family in a table [clusters, judges, systems]: least squares in each cluster."""
    cells = [(j, s) for j in judges for s in systems]
    columns = [[j == one for j, _ in cells] for one in judges] + [[s == one for _, s in cells] for one in systems]
    columns += [[(j, s) == (judge, system) for j, s in cells] for judge, system in OWN.items()]
    design = np.array(columns, dtype=float).T
    fits = []
    for row in table.reshape(len(table), -1):
        there = ~np.isnan(row)
        fits.append(np.linalg.lstsq(design[there], row[there], rcond=None)[0][-len(OWN) :])
    return dict(zip(OWN, np.mean(fits, axis=0).tolist(), strict=True))


def test_the_tables_hold_figures_and_no_texts(grades, orders):
    assert (len(grades), len(orders)) == (11520, 14400)
    assert sum(path.stat().st_size for path in PACKAGE.iterdir()) < 300_000
    assert max(len(str(value)) for row in (*grades, *orders) for value in row.values()) < 40
    assert {row["score"] for row in grades} <= {-1.0, *(k / 10 for k in range(10, 101))}
    assert {len({row[name] for row in grades}) for name in ("system", "judge")} == {6}
    notice = (PACKAGE / "NOTICE.md").read_text(encoding="utf-8")
    assert all(words in notice for words in ("kook222/mt_bench_repro", "b3b827d", "Apache License", "Left out"))


@pytest.mark.shared
def test_the_tables_are_those_of_the_source(shared, grades, orders):
    def lines(name: str) -> list[Row]:
        with gzip.open(shared / "data" / "mt_bench_repro" / name, "rt") as rows:
            return [json.loads(row) for row in rows]

    tongue = {"en": "English", "ko": "Korean"}
    assert Counter(tuple(row.values()) for row in grades) == Counter(
        (one["question_id"], f"{one['question_id']}.{turn}", one["category"], tongue[one["lang"]], one["model_id"],
         one["judge_id"], one[f"score_turn{turn}"])
        for one in lines("single_grade.jsonl.gz") for turn in (1, 2)
    )  # fmt: skip
    assert Counter(tuple(row.values()) for row in orders) == Counter(
        (one["question_id"], f"{one['question_id']} {tongue[one['lang']]}", one["category"], tongue[one["lang"]],
         one["model_a"], one["model_b"], one["judge_id"], one["winner_ab"], one["winner_ba"])
        for one in lines("pairwise.jsonl.gz")
    )  # fmt: skip


def test_missing_scores_are_counted_and_agreement_is_that_of_another_library(measured, answers):
    judges, every = answers
    for judge in judges:
        lacking = sum(judge not in one["given"] for one in every)
        assert measured[f"missing.share[judge={judge}]"].value == pytest.approx(lacking / len(every))
    whole = [one["given"] for one in every if len(one["given"]) == len(judges)]
    family = {judge: "qwen" if judge.startswith("Qwen") else judge for judge in judges}
    for dimension in ("English", "Korean", "aggregate"):
        marks = {
            judge: [int(np.floor(np.mean([*one[judge].values()] if dimension == "aggregate" else one[judge][dimension])
                                 + 0.5)) for one in whole]
            for judge in judges
        }  # fmt: skip
        found = [
            cohen_kappa_score(marks[a], marks[b], labels=range(1, 11), weights="quadratic")
            for a, b in combinations(judges, 2) if family[a] != family[b]
        ]  # fmt: skip
        item = measured[f"kappa.mean_pairwise[dimension={dimension}]"]
        assert item.value == pytest.approx(np.mean(found), abs=1e-12)
        assert item.n == len(whole)


def test_points_and_wins_for_the_own_family(measured, answers, orders):
    judges, every = answers
    systems, clusters = sorted({one["system"] for one in every}), sorted({one["cluster"] for one in every})

    def table(found: dict[tuple[Any, ...], list[float]]) -> np.ndarray[Any, Any]:
        return np.array([[[np.mean(found.get((c, j, s), np.nan)) for s in systems] for j in judges] for c in clusters])

    points: dict[tuple[Any, ...], list[float]] = {}
    for one in every:
        for judge, both in one["given"].items():
            points.setdefault((one["cluster"], judge, one["system"]), []).append(float(np.mean([*both.values()])))
    wins: dict[tuple[Any, ...], list[float]] = {}
    for row in orders:
        won = [WON[row["winner_ab"]]] if row["winner_ab"] in WON else []
        won += [1 - WON[row["winner_ba"]]] if row["winner_ba"] in WON else []
        for system, share in ((row["agent_a"], np.mean(won)), (row["agent_b"], 1 - np.mean(won))) if won else ():
            wins.setdefault((row["item"], row["cluster"], row["judge"], system), []).append(float(share))
    by_cluster: dict[tuple[Any, ...], list[float]] = {}
    for (_, *rest), shares in wins.items():
        by_cluster.setdefault(tuple(rest), []).append(float(np.mean(shares)))
    for dimension, found in (("aggregate", points), ("share of wins", by_cluster)):
        for judge, value in own_points(table(found), judges, systems).items():
            item = measured[f"judge.own_family[dimension={dimension},judge={judge}]"]
            assert item.value == pytest.approx(value, abs=1e-9)


def test_both_orders_of_each_judge(real, orders):
    stored = json.loads((real / "check.json").read_text(encoding="utf-8"))["read"]["orders"]
    for judge, one in stored.items():
        both = [(row["winner_ab"], row["winner_ba"]) for row in orders
                if row["judge"] == judge and {row["winner_ab"], row["winner_ba"]} <= WON.keys()]  # fmt: skip
        seen = Counter(both)
        assert one == {
            "both": len(both), "same_text": seen["A", "B"] + seen["B", "A"], "first_place": seen["A", "A"],
            "same_place": seen["A", "A"] + seen["B", "B"],
            "one_tie": sum((a == "tie") != (b == "tie") for a, b in both),
        }  # fmt: skip


def test_what_is_said_of_real_systems_has_its_evidence_and_scope(real, answers):
    """Pairs turned by the language differ in the plain means too, and the page says whose grades these are."""
    text = " ".join((real / "report" / "index.html").read_text(encoding="utf-8").split())
    for said in ("kook222/mt_bench_repro, Apache-2.0", "not a ranking of today’s models", "no grades by people",
                 "judges may lack 8 % of the scores of a system, not 5 %"):  # fmt: skip
        assert said in text
    places = [text.index(said) for said in ("ranks first of the six agents", "Say with each of them: ",
                                            "Say with each of them, besides the above: ")]  # fmt: skip
    assert places == sorted(places)
    levels = {
        (system, language): np.mean([both[language] for one in answers[1] if one["system"] == system
                                     for both in one["given"].values()])
        for system in {one["system"] for one in answers[1]} for language in ("English", "Korean")
    }  # fmt: skip
    verdicts = json.loads((real / "verdicts.json").read_text(encoding="utf-8"))["verdicts"]
    assert not [one for one in verdicts if one["publication_level"] == "headline"]
    said = [one["claim"] for one in verdicts if one["publication_level"] != "no-claim"]
    supported = {(one["dimension"], *one["subjects"]) for one in said if " scores above " in one["statement"]}
    turned = {(high, low) for dimension, high, low in supported if ("Korean", low, high) in supported}
    assert turned == {(name, "EEVE-Korean-Instruct-10.8B") for name in
                      ("Mistral-7B-Instruct-v0.3", "Phi-3.5-mini-Instruct")}  # fmt: skip
    for high, low in turned:
        assert f"{high} scores above {low} on English, and below it on Korean." in text
        assert levels[high, "English"] > levels[low, "English"]
        assert levels[high, "Korean"] < levels[low, "Korean"]


def test_the_folder_is_whole_and_names_no_place_of_the_machine(real, ran):
    ran("verify", real)
    ran("claim", "--verify", min((real / "certificates").iterdir()))
    for path in real.rglob("*"):
        assert not path.is_file() or str(PACKAGE).encode() not in path.read_bytes()
    named = {"--pairs": real / "orders.parquet", "--map": "dimension=language", "--study": PACKAGE / "plan.toml",
             "--out": real.parent / "again"}  # fmt: skip
    words = [str(part) for both in named.items() for part in both]
    ran("check", real / "grades.parquet", *words)
    found = [json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))["verdicts"]
             for folder in (real, named["--out"])]  # fmt: skip
    assert found[0] == found[1]


def test_pairs_beside_scores_have_both_orders_of_the_same_judges():
    rows = [{"item": q, "agent": a, "judge": j, "score": 3 + (q + len(a + j)) % 3}
            for q in range(4) for a in ("north", "south") for j in ("gpt-4o", "claude-3")]  # fmt: skip
    pair = {"item": 1, "agent_a": "north", "agent_b": "south", "winner_ab": "A", "winner_ba": "B"}
    found = assaymark.check(rows, scale=(1, 5), pairs=[pair | {"judge": "gpt-4o"}])
    assert found.read.orders["gpt-4o"]["same_text"] == 1
    with pytest.raises(InputError, match="its judges are not those of the table: qwen-max"):
        assaymark.check(rows, scale=(1, 5), pairs=[pair | {"judge": "qwen-max"}])
    with pytest.raises(InputError, match="contains no pair that a judge saw in both orders"):
        assaymark.check(rows, scale=(1, 5), pairs=[{**pair, "judge": "gpt-4o", "winner_ba": "error"}])
