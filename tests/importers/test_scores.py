"""Score tables: every layout and scale that is recognised, and every problem that a table can have."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from assaymark.cli import main

HEAD = "item,agent,judge,score"
Score = Callable[..., Any]


def scores(
    score: Score = lambda q, agent, judge: 3 + (agent == "ash") + (q + len(judge)) % 2, *, items: int = 6,
    agents: Sequence[str] = ("ash", "birch"), judges: Sequence[str] = ("gpt-4o", "claude-3"),
) -> list[tuple[Any, ...]]:  # fmt: skip
    """Rows of item, agent, judge and score."""
    cells = [(q, agent, judge) for q in range(items) for agent in agents for judge in judges]
    return [(f"q{q}", agent, judge, score(q, agent, judge)) for q, agent, judge in cells]


def text(rows: Sequence[Sequence[Any]], head: str = HEAD) -> str:
    return "\n".join([head, *(",".join(map(str, row)) for row in rows), ""])


GOOD = scores()
LONG = "x" * 200_000
SCALE = ("--scale", "1..5")


def refused(content: bytes | str, options: Sequence[str], folder: Path, capsys, name: str = "scores.csv") -> list[str]:
    """The lines of the message with which a file is refused, which leaves nothing behind."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["check", str(path), "--out", str(folder / "run"), *options]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert [one.name for one in folder.iterdir()] == [name]
    return said.err.replace(str(path), name).strip().split("\n")


def with_column(name: str, value: Callable[[int], Any], rows: Sequence[tuple[Any, ...]] = GOOD) -> str:
    return text([(*row, value(k)) for k, row in enumerate(rows)], f"{HEAD},{name}")


OF_TWO = [(f"q{q}", agent, j, 1 + q % 5, (7 * q) % 101) for q in range(30) for agent in "ab" for j in ("x", "y")]

WRONG: dict[str, tuple[bytes | str, Sequence[str], list[str]]] = {
    "two columns for one role, twice": (text([(*row, "x", 2) for row in GOOD], f"{HEAD},model,rating"), (),
     ["assaymark: scores.csv: 2 problems",
     "  header: agent, model could each be the agent; say which with --map agent=agent",
     "  header: score, rating could each be the score; say which with --map score=score"]),
    "roles that are lacking": ("topic,criterion\n1,2\n", (), ["no column is the agent or the item (the",
     "judge or the score (the table has 'topic', 'criterion'); say which with --map judge=COLUMN --map score=COLUMN"]),
    "numbers that nobody named": (text([(*row, 3) for row in GOOD], "item,agent,judge,clarity,retries"), (),
     ["are scores? clarity in column 4, retries in column 5; name them, as in --dimensions clarity,retries"]),
    "numbers beside judges": (text([(f"q{q}", agent, 3, 4, 7) for q in range(5) for agent in "ab"],
     "item,agent,gpt-4o,claude-3,retries"), (),
     ["retries in column 5; name the judges, as in --judges claude-3,gpt-4o"]),
    "a judge on another scale": (text(scores(lambda q, _, j: 1 + q % 5 if j == "gpt-4o" else 1 + q % 10, items=30)), (),
     ["score: two scales in one table: gpt-4o uses 1..5, while the whole runs from 1 to 10; bring them to one, or",
     "declare that it is one with --scale 1..10"]),
    "a criterion on another scale": (text(OF_TWO, "item,agent,judge,d0,d1"), ("--dimensions", "d0,d1"),
     ["two scales in one table: d0 uses 1..5, while the whole runs from 0 to 98"]),
    "a criterion that is passed or failed": (text([(*row[:3], row[3], int(row[3] > 2)) for row in OF_TWO],
     "item,agent,judge,d0,d1"), ("--dimensions", "d0,d1"),
     ["two scales in one table: d0 uses 1..5, d1 uses 0..1, while the whole runs from 0 to 5"]),
    "a judge of two families": (with_column("family", lambda k: "openai" if k % 3 else "meta"), SCALE,
     ["  line 4, family: gpt-4o has 'openai' here and 'meta' in line 2; each has one (--family gpt-4o=MAKER",
     "  line 5, family: claude-3 has 'meta' here and 'openai' in line 3; each has one (--family claude-3=MAKER"]),
    "one result twice": (with_column("trial", lambda _: 7, [*GOOD, ("q0", "ash", "gpt-4o", 1)]), SCALE,
     ["line 26, score: a second score for q0, ash, gpt-4o, trial 7: 1, and 4 in line 2; keep one, or number"]),
    "a trial that is none": (with_column("trial", lambda k: "one" if k == 2 else 1), SCALE,
     ["line 4, trial: a trial is a whole number, as in 1, 2, 3 (got 'one')"]),
    "several things at once, in the order of lines": (text([*GOOD, ("q1", "birch", "gpt-4o", "good grief"), ("q2", "",
     "gpt-4o", 4), ("q3", "ash", "", 4), ("q7", "ash", "gpt-4o", 9)]), SCALE, ["assaymark: scores.csv: 4 problems",
     "  line 26, score: text in a column of scores (got 'good grief'); correct it, or leave the cell empty",
     "  line 27, agent: is empty; each row needs its agent", "  line 28, judge: is empty; each row needs its judge",
     "  line 29, score: 9 lies outside 1..5; scores run from 3 to 9 (correct it, or declare another scale)"]),
    "names that other tools write for empty cells": (text([*GOOD, ("q2", "NaN", "gpt-4o", 4), ("q3", "ash",
     "<NA>", 4)]), SCALE, ["line 26, agent: is 'NaN'; each row needs its agent", "line 27, judge: is '<NA>'; each"]),
    "families, trials, words and scale at once": (text([(*row, "openai" if k % 3 else "meta", 1) for k,
     row in enumerate([("q9", "ash", "gpt-4o", 9), ("q8", "ash", "gpt-4o", "great"), *GOOD, (*GOOD[0][:3], 5)])],
     f"{HEAD},family,trial"), SCALE, ["9 lies outside 1..5", "(got 'great')", "' here and '", "a second score for"]),
    "scores that tell no scale": (text(GOOD), (),
     ["score: scores run from 3 to 5, which does not determine the scale; declare it, as in --scale 1..5"]),
    "labels of more than two kinds": (text(scores(lambda q, *_: ["great", "poor", "so-so"][q % 3])), (),
     ["score: holds the labels great, poor, so-so; write them as numbers, or two of them as pass and fail"]),
    "decimal commas, in lines as an editor counts them": (
     b"\xef\xbb\xbfitem;agent;judge;score;text\r\nq1;ash;gpt-4o;3.0;\"two\r\nlines\"\r\nq2;ash;gpt-4o;3,5;c\r\n", (),
     ["assaymark: scores.csv: line 4, score: text in a column of scores (got '3,5'); write it with a decimal point"]),
    "a score far from all others": (text([*scores(lambda q, *_: 1 + q % 5, items=30), ("q", "a", "j", 4e7)]), (),
     ["line 122, score: 40000000 lies outside the other scores, 1 to 5; correct it, or leave the cell empty; --scale"]),
    "a score that may be right": (text([*scores(lambda q, *_: 1 + q % 5, items=30), ("q", "a", "j", 0)]), (),
     ["0 lies outside the other scores, 1 to 5; correct it, or leave the cell empty; --scale 1..5 fits the others,"]),
    "rows of a JSON list that are lists": ('[["q1", "ash", "gpt-4o", 3], ["q2", "ash", "gpt-4o", 4]]', (),
     ["assaymark: scores.csv: must be a list of objects, one a row (got a list of [\"q1\", \"ash\", \"gpt-4o\", 3]"]),
    "a code of missing scores": (text(scores(lambda q, *_: 1 + q % 5 if q % 20 else 99, items=60)), (),
     ["line 2, score: 99 lies outside the other scores, 1 to 5 (one of 12 such scores); correct it"]),
    "a score off the scale in the column of a judge": (text([(f"q{q}", "ash", 1 + q % 5, 40 - q) for q in range(9)],
     "item,agent,gpt-4o,claude-3"), SCALE, ["line 2, claude-3: 40 lies outside 1..5"]),
    "decimal commas everywhere": ("item;agent;judge;score\n" + "q;a;j;3,500\n" * 9 + "q;a;j;4,000\n", (),
     ["scores.csv: line 2, score: text in a column of scores (got '3,500', and 9 more like it); write it with a dec"]),
    "many labels": (text(scores(lambda q, *_: f"{q} of 9", items=9)), (),
     ["assaymark: scores.csv: score: holds the labels 0 of 9, 1 of 9, 2 of 9, 3 of 9, 4 of 9 and 4"]),
    "no header": ("q1,ash,gpt-4o,3\nq2,ash,gpt-4o,4\n", (),
     ["header: no name of a column is known (the table has 'q1',", "; the first line has to name the columns"]),
    "cells that nothing separates": ("item agent judge score\nq1 ash gpt-4o 3\n", (),
     ["cells are separated by a comma, semicolon, tab or bar, and the first line has to name the columns"]),
    "scores in a list": ('{"item": 1, "model": "a", "judgments": [{"judge": "b", "score": 3}]}\n' * 2, (),
     ["no column is the judge", "'judgments'; kept as JSON text: judgments, while each score needs a row)"]),
    "columns in objects": ('{"item": 1, "model": {"name": "a"}, "by": {"judge": "b"}, "out": {"mark": 3}}\n' * 2, (),
     ["--map agent=model.name", "--map judge=by.judge --map score=out.mark; a judge alone is named with --judges"]),
    "objects in every column": ('{"x": {"id": 1}, "answer": {"model": "a"}, "by": {"judge": "b"}}\n' * 2, (),
     ["say which is what with --map item=COLUMN --map agent=answer.model --map judge=by.judge --map score=COLUMN"]),
    "one column a system": (text([("q1", "gpt-4o", 3, 4)], "item,judge,ash,birch"), (),
     ["(agent, model, system,", "=COLUMN; a table with one column a system is not read: write one row a score"]),
    "columns that may be judges": (text([("q1", "ash", 3, 4)], "item,agent,Anna,Ben B."), (),
     ["no column is the judge; if each numeric column is one: --judges 'Anna,Ben B.'; if one judge gave all scores:"]),
    "more numbers than a message lists": (text([("q", "a", "j", *range(30))], ",".join(["item,agent,judge",
     *map("d{}".format, range(30))])), (), ["d7 in column 11 and 22 more; name them, as in --dimensions d0", ",d29"]),
    "no score at all": (text(scores(lambda *_: "")), (),
     ["no row of 24 has a score; --map score=COLUMN names another"]),
    "a number that is none": (text(scores(lambda q, *_: ["inf", "1e999", 3][q % 3], items=3)), SCALE,
     ["line 2, score: text in a column of scores (got 'inf', and 3 more like it)", "line 6, score: text in a column",
      "'1e999'"]),
    "an item in two clusters": (with_column("topic", lambda k: f"t{k // 3}"), (*SCALE, "--cluster", "topic"),
     ["line 5, topic: item q0 is in several clusters (t0, t1); name items by both, as in --map item=item+topic"]),
    "a cluster that is not said": (with_column("topic", lambda k: "" if k == 4 else "t"), (*SCALE, "--cluster",
     "topic"), ["line 6, topic: is empty; each row needs its cluster"]),
    "a lost cycle": (with_column("cycle", lambda k: "" if k < 4 else "t"), SCALE, ["line 2, cycle: is empty"]),
    "a column that is not there": (text(GOOD), ("--map", "agent=agnet", "--cluster", "topic"),
     ["--map agent=agnet: no column 'agnet' (the file has item, agent, judge, score); is it 'agent'?",
     "--map cluster=topic: no column 'topic'"]),
    "a role that is none": (text(GOOD), ("--map", "agnet=agent"), ["unknown role 'agnet'. Did you mean 'agent'?"]),
    "a map that is none": (text(GOOD), ("--map", "agent"), ["--map: must be written NAME=VALUE (got 'agent')"]),
    "a scale that is none": (text(GOOD), ("--scale", "5..1"),
     ["--scale: two numbers, the lower one first, as in 1..5 (got '5..1')"]),
    "an order that is none": (text(GOOD), (*SCALE, "--cluster-order", "sideways"),
     ["--cluster-order: must be exchangeable or consecutive (got 'sideways')"]),
    "names that are none": (text(GOOD), (*SCALE, "--without", "gtp-4o", "--judges", "gpt-4o,claude", "--family",
     "gpt=openai"), ["--without: unknown judge 'gtp-4o'. Did you mean 'gpt-4o'?",
     "--judges: unknown judge 'claude'. Did you mean 'claude-3'?", "--family: unknown judge or agent 'gpt'."]),
    "a criterion that is none": (text(GOOD), ("--dimensions", "scroe"),
     ["--dimensions scroe: the table has no such column; did you mean 'score'?"]),
    "no judge left": (text(GOOD), (*SCALE, "--without", "gpt-4o", "--without", "claude-3"),
     ["--without: no judge is left of claude-3, gpt-4o; one has to stay"]),
    "no agent, one judge": ("item,score\nq1,2\n", ("--judges", "gpt-4o"), ["no column is the agent"]),
    "a name of 200,000 characters": (text([*GOOD, ("q0", LONG, "gpt-4o", 3)]), SCALE,
     ["line 26, agent: a name has 1 to 120 printable characters (200,000 in 'xxxxxx"]),
    "a name with a control character": (text([*GOOD, ("q0", "a\x1b[31mb", "gpt-4o", 3)]), SCALE,
     ["line 26, agent: a name has 1 to 120 printable"]),
    "a score of 200,000 characters": (text([*GOOD, ("q9", "ash", "gpt-4o", LONG)]), SCALE,
     ["line 26, score: text in a column of scores (got 'xxxxx"]),
    "a trial of 200,000 characters": (with_column("trial", lambda _: LONG, GOOD[:4]), SCALE,
     ["line 2, trial: a trial is a whole number"]),
    "an agent against itself": ("item,agent_a,agent_b,judge,winner\nq,a,a,j,a\n", (),
     ["line 2, agent_b: an agent is compared with itself"]),
    "an order that is no order": ("item,agent_a,agent_b,judge,winner,order\nq,a,b,j,a,sideways\n", (),
     ["line 2, order: must be ab or ba (got 'sideways')"]),
    "no verdict that can be read": ("item,agent_a,agent_b,judge,winner\nq,a,b,j,zebra\n", (),
     ["winner: no verdict of 1 can be read (zebra 1)"]),
    "winners of 0 and 1": ("item,agent_a,agent_b,judge,winner\nq,a,b,j,0\nr,a,b,j,1\n", (),
     ["winner: 0 and 1 alone do not say who won; write A, B and tie, or names"]),
    "winners in several columns": ("id,model_a,model_b,winner_model_a,winner_tie\nq,a,b,1,0\n", ("--judges", "people"),
     ["header: no column is the winner", "say which with --map winner=COLUMN"]),
    "rows of other lengths": (f"{text(GOOD)}q9,ash\nq9,ash,gpt-4o,3,4\n", SCALE,
     ["line 26: has 2 cells (the header has 4; it begins 'q9'); add what is missing",
     "line 27: has 5 cells (the header has 4; it begins 'q9'); quote a cell that holds ','"]),
    "one name for two columns": (with_column("score", lambda k: k), (),
     ["line 1: column 'score' occurs twice in the header (columns 4 and 5)"]),
    "nothing": (b"", (), ["is empty; a header row or JSON is needed"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_with_its_place_and_remedy_and_nothing_is_written(case, tmp_path, capsys):
    content, options, told = WRONG[case]
    lines = refused(content, options, tmp_path, capsys)
    at = 0
    for one in told:
        at = next((k for k, line in enumerate(lines) if one in line and k >= at), len(lines))
        assert at < len(lines), (one, lines)
    assert all(len(line) < 500 for line in lines)


@pytest.mark.parametrize(("old", "new", "said"), [
    ("item,agent,judge,score", "promptId,modelName,Evaluator,overallScore", "= modelName, judge = Evaluator"),
    ("item,agent", "item,LLM", "agent = LLM"), ("\nq1,", "\n,,,\n,,,\nq1,", "rows without a value, left out: 8"),
    ("claude-3", "o3", "cannot be measured: All judges are of one family; two are needed. Add a judge"),
    (",3\n", ",n.a.\n", "one criterion: 18 scores"), (",3\n", ",#N/A\n", "one criterion: 18 scores"),
    (HEAD, "Frage,Modell,Prüfer,Bewertung", "agent = Modell, judge = Prüfer, item = Frage, score = Bewertung"),
    (HEAD, "问题,模型,评委,评分", "agent = 模型, judge = 评委"), (",3\n", ',"2,75"\\n', "decimal commas are"),
    (r"(score|\d)\n", lambda found: f"{found[1]},{'cycle' * found[0].startswith('s')}\n", "1 column not used: cycle"),
    (r"((claude-3|q0,.*),)\d\n", r"\1\n", "judge claude-3 gave no score and is left out"),
    (r",(\d)\n", r',"\1,0 %"\n', "score: percent signs are left out and decimal commas are read as points"),
    (r",(\d)\n", r",\1 /5\n", "score: /5 is left out"),
])  # fmt: skip
def test_what_people_write_is_read_once_as_from_a_pipe(old, new, said, tmp_path, capsys):
    reader, writer = os.pipe()
    os.write(writer, re.sub(old, new, text(GOOD)).encode())
    os.close(writer)
    assert main(["check", f"/dev/fd/{reader}", *SCALE, "--out", str(tmp_path / "run")]) == 0
    assert said in " ".join(capsys.readouterr().out.split())


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert main(["check", str(tmp_path / "none.csv")]) == 1
    assert "none.csv: no such score table" in capsys.readouterr().err


def test_a_result_that_is_given_twice_is_counted_and_each_next_step_has_its_command_on_a_line(tmp_path, capsys):
    path = tmp_path / "scores.csv"
    path.write_text(text([*GOOD, GOOD[0]], HEAD))
    assert main(["check", str(path), "--out", str(tmp_path / "run"), *SCALE]) == 0
    said = capsys.readouterr().out
    assert "1 result given more than once (up to 2 times), read as trials" in said
    assert not re.search(" +\n", said), "blanks at the end of a line"
    assert "assaymark proofread README.md --run RUN" in map(str.strip, said.splitlines())
