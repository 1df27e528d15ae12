"""Verdict logs of any tool: expected results, and rejected rows with their places."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import re
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark import importers
from assaymark.errors import LISTED, InputError, UnknownNameError
from assaymark.importers import LABELS, SPELLINGS, VERDICTS, VerdictLog, VerdictMap, read_verdicts
from assaymark.importers.verdict_log import combine_codes, dense
from assaymark.metrology import datasheet, decompose

HEAD = "judge,question_id,slot1_model,slot2_model,verdict\n"
ONE = "j,q1,x,y,1\n"


def read(text: str | bytes, mapping: VerdictMap | None = None, **fields) -> VerdictLog:
    data = text.encode() if isinstance(text, str) else text
    return read_verdicts("log.csv", data, importers.verdict_map(**fields) if fields else mapping)


def refused(text: str | bytes, **fields) -> str:
    with pytest.raises(InputError) as caught:
        read(text, **fields)
    return str(caught.value)


def calls(log: VerdictLog) -> list[tuple]:
    """Return the calls of a log without their places in the file."""
    shown = np.where(log.order[:, None], log.pair_contents[log.pair][:, ::-1], log.pair_contents[log.pair])
    columns = zip(log.judge, log.question, shown, log.trial, log.verdict, strict=True)
    return [
        (log.judges[j], log.questions[q], log.contents[a], log.contents[b], log.trials[t], VERDICTS[v])
        for j, q, (a, b), t, v in columns
    ]


def verdicts(*given, **fields) -> list[str]:
    return [VERDICTS[v] for v in read(*given, **fields).verdict]


def preferred(log: VerdictLog) -> Counter:
    """Count the calls by the content that they prefer, or by their verdict if they prefer none."""
    rows = zip(log.judge, log.pair, log.trial, log.chosen, log.verdict, strict=True)
    return Counter(
        (log.judges[j], log.pair_name(p), log.trials[t], log.contents[c] if c >= 0 else VERDICTS[v])
        for j, p, t, c, v in rows
    )


def test_a_plain_log(tmp_path):
    log = read(HEAD + "j,q2,y,x,2\nj,q1,x,y,1\nj,q1,y,x,tie\nk,q1,y,x,invalid\nk,q1,x,y,abstain\n")
    assert calls(log) == [
        ("j", "q1", "x", "y", 1, "1"), ("j", "q1", "y", "x", 1, "tie"), ("j", "q2", "y", "x", 1, "2"),
        ("k", "q1", "x", "y", 1, "abstain"), ("k", "q1", "y", "x", 1, "invalid"),
    ]  # fmt: skip
    assert log.line.tolist() == [3, 4, 2, 6, 5]
    assert [log.contents[c] if c >= 0 else None for c in log.chosen] == ["x", None, "x", None, None]
    assert (log.judges, log.questions, log.contents, log.trials) == (("j", "k"), ("q1", "q2"), ("x", "y"), (1,))
    assert (log.both.tolist(), log.single.tolist()) == ([1, 1], [1, 0])
    assert (log.both.any(), log.single.any(), log.rows, log.filtered, log.duplicates) == (True, True, 5, 0, 0)
    fields = ("judge", "question", "slot_1", "slot_2", "verdict")
    assert log.columns == dict(zip(fields, HEAD.strip().split(","), strict=True))
    path = tmp_path / "log.csv"
    path.write_text(HEAD + ONE)
    assert read_verdicts(path).source == read_verdicts(str(path)).source == str(path)
    assert read_verdicts("mine", path).source == "mine"
    with pytest.raises(InputError, match=r"none\.csv: cannot be read: No such file"):
        read_verdicts(tmp_path / "none.csv")


@pytest.mark.parametrize("field", SPELLINGS)
def test_every_spelling_of_a_column_is_known(field):
    for k, spelled in enumerate(SPELLINGS[field]):
        names = {name: spellings[0] for name, spellings in SPELLINGS.items()}
        names |= {field: spelled.upper().replace("_", " ")}
        if field in ("slot_1", "slot_2"):
            names |= {"slot_1": SPELLINGS["slot_1"][k], "slot_2": SPELLINGS["slot_2"][k]}
        two = field.startswith("order")
        names = {name: one for name, one in names.items() if name != "verdict" if two or not name.startswith("order")}
        names |= {} if two else {"verdict": spelled if field == "verdict" else "verdict"}
        cells = {"judge": "j", "question": "q", "slot_1": "x", "slot_2": "y", "verdict": "1", "trial": "3", "pair": "p"}
        cells |= {"order_1": "1", "order_2": "2", "truth": "x"}
        log = read(",".join(names.values()) + "\n" + ",".join(cells[field] for field in names) + "\n")
        assert calls(log) == [("j", "q", "x", "y", 3, "1"), ("j", "q", "y", "x", 3, "2")][: 1 + two]
        assert (log.pair_truth.tolist(), log.pair_name(0)) == ([0], "p")


def test_every_label_is_known_and_the_content_that_won_and_labels_of_ones_own():
    for verdict, words in LABELS.items():
        for word in words:
            for spelled in (word, word.upper(), f" {word.replace('_', ' ')} "):
                log = read(HEAD + f"j,q,x,y,{spelled}\n")
                assert (VERDICTS[log.verdict[0]], log.labels) == (verdict, {spelled.strip(): verdict})
    log = read(HEAD + "j,q1,gpt-4,other,gpt-4\nj,q1,other,gpt-4,gpt-4\nj,q2,other,gpt-4,tie\n")
    assert ([VERDICTS[v] for v in log.verdict], log.labels) == (["1", "2", "tie"], {"tie": "tie"})
    own = {"<": "1", ">": "2", "": "invalid"}
    log = read(HEAD + "j,q1,x,y,<\nj,q2,x,y,>\nj,q3,x,y,\nj,q4,x,y,A\n", labels=own)
    assert ([VERDICTS[v] for v in log.verdict], log.labels) == (["1", "2", "invalid", "1"], own | {"A": "1"})
    # a label that is also a content
    log = HEAD + "j,q1,B,A,B\nj,q2,A,B,A\nj,q3,B,A,A\n"
    assert "line 2, verdict: 'B' is a label and also a content of its row ('B', 'A') in another slot" in refused(log)
    assert verdicts(log, verdict_names="contents") == ["1", "1", "2"]
    assert verdicts(log, verdict_names="slots") == ["2", "1", "1"]
    assert verdicts(log, labels={"A": "tie", "B": "invalid"}) == ["invalid", "tie", "tie"]
    assert verdicts(HEAD + "j,q2,A,B,A\n") == ["1"]


def test_a_map_names_columns_and_rows_and_the_judge_of_a_log_without_one():
    text = "bench,run,who,what,l,r,said\nA,1,j,q,x,y,1\nB,1,j,q,x,y,nonsense\nA,2,j,q,y,x,2\n C ,2,j,q,x,y,2\n"
    columns = {"judge": "who", "question": "what", "slot_1": "l", "slot_2": "r", "verdict": "said", "trial": "run"}
    toml = "".join(f'{role} = "{name}"\n' for role, name in columns.items()) + '[filter]\nbench = ["A", "C"]\n'
    log = read(text, importers.parse_verdict_map(toml))
    assert calls(log) == [("j", "q", "x", "y", 1, "1"), ("j", "q", "x", "y", 2, "2"), ("j", "q", "y", "x", 2, "2")]
    assert (log.rows, log.filtered, log.line.tolist()) == (4, 1, [2, 5, 4])
    assert len(read(text, importers.parse_verdict_map(toml + "run = 2\n"))) == 2
    log = read("pair,model_a,model_b,winner\np,x,y,A\np,y,x,A\n", judge_name="me")
    assert (log.judges, log.questions, log.pair_ids) == (("me",), ("p",), ("p",))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_dialects(pack):
    for delimiter, end, mark in product(",;\t|", ("\n", "\r\n"), (b"", b"\xef\xbb\xbf")):
        text = (HEAD + ONE + "\n" + 'j,q2,y,x,"2"\n').replace(",", delimiter).replace("\n", end)
        log = read(pack(mark + text.encode()))
        assert calls(log) == [("j", "q1", "x", "y", 1, "1"), ("j", "q2", "y", "x", 1, "2")]
        assert log.line.tolist() == [2, 4]
    text = "judge;question_id;slot1_model;slot2_model;verdict;a,b,c,d,e,f,g\nj;q;x;y;1;\n"  # which can be given
    assert "line 2: has 1 cells (the header has 7" in refused(text)
    assert len(read(text, delimiter=";")) == 1


def test_quoted_newlines_long_cells_and_hostile_names_are_data():
    why, long = '"first,\nsecond ""so""\n\n"', "x" * 3_000_000
    text = f'why,"judge\n",question_id,slot1_model,slot2_model,verdict\n{why},j,"q\n1",x,y,1\n{long},j,q2,x,y,2\n'
    log = read(text)
    assert (log.questions, log.line.tolist()) == (("q\n1", "q2"), [3, 8])
    assert "line 9: has 1 cells (the header has 6" in refused(text + "z\n")
    assert read(HEAD + 'j,19" or 24"?,x,y,1\n').questions == ('19" or 24"?',)  # quotes inside a cell are characters
    for hostile in ("<script>alert(1)</script>", "[x=1,y|z]", "../../etc", "=SUM(A1)", "नमस्ते", "'; --"):
        out = io.StringIO(newline="")
        csv.writer(out).writerows([HEAD.strip().split(","), [hostile, hostile, hostile, "y", hostile]])
        assert calls(read(out.getvalue())) == [(hostile, hostile, hostile, "y", 1, "1")]
    log = read(HEAD + 'j,"a"",""b",c,d,1\nj,a,"b"",""c",d,1\n')
    assert len({log.pair_name(k) for k in range(2)}) == 2


def test_calls_again_in_one_order_and_in_trials():
    log = read(HEAD + ONE * 3 + "j,q1,y,x,2\n")
    assert (len(log), log.duplicates, log.line.tolist()) == (2, 2, [2, 5])
    assert (log.both.tolist(), log.single.tolist()) == ([1], [0])
    log = read("rep," + HEAD + "0,j,q,x,y,1\n2.0,j,q,x,y,2\n02,j,q,y,x,1\n10,j,q,x,y,1\n")
    assert (log.trials, log.trial.tolist(), *log.both, *log.single) == ((0, 2, 10), [0, 1, 1, 2], 1, 2)
    log = read(HEAD + ONE + "j,q2,y,x,tie\n")
    assert (log.both.tolist(), log.single.tolist()) == ([0], [2])
    assert read(HEAD + ONE + "j,q1,y,x,1\n").both.tolist() == [1]


@pytest.mark.parametrize(("text", "said"), [
    ('{"judge": "j"}\n', "question: no column for it (the log has judge; known are question_id"),
    (HEAD.replace("judge", "jugde") + ONE, "is it 'jugde'?; name it in the map: judge = ..."),
    (HEAD.replace("slot2_model", "slot2_modle") + ONE, "is it 'slot2_modle'?"),
    ("winner," + HEAD + "1," + ONE, "verdict: could be any of verdict, winner; say which in the map"),
    (HEAD + "j,q1,x,y,win\nj,q2,x,y,win\n", "line 2, verdict: 'win' in 2 rows is not a recognised verdict; expected"),
    (HEAD + "j,q1,x,y,z\nj,q2,x,z,1\n", "line 2, verdict: 'z' is not a recognised verdict"),
    (HEAD + "j,q1,x,y,\n", "line 2, verdict: '' is not a recognised verdict"),
    (HEAD + "j,q1,x,y,3\n", "line 2, verdict: '3' is not a recognised verdict"),
    (HEAD + " ,q1,x,y,1\n", "line 2, judge: is empty; a value is needed"),
    (HEAD + ONE + "j,q1,,y,1\n", "line 3, slot_1: is empty; a value is needed"),
    (HEAD + "j\x1b[2J,q1,x,y,1\n", "line 2, judge: the name of a judge may hold no control characters"),
    (HEAD + "j\u202e,q1,x,y,1\n", "(got 'j\\u202e', with 0x202e)"),
    (HEAD + ONE + "j,q1,x,y,2\n", "line 3: is the call of line 2 again (judge 'j', question 'q1', 'x' in slot 1)"),
    (HEAD + ONE + ONE + "j,q1,x,y,tie\n", "line 4: is the call of line 2 again"),
    (HEAD + ONE + "j,q1,x,y,2\n", "with verdict 2, there 1; if calls were repeated, name the column that counts"),
    ("rep," + HEAD + "one," + ONE, "line 2, trial: must be a whole number from 0 to 999999999 (got 'one')"),
    ("rep," + HEAD + "1.5," + ONE, "(got '1.5')"), ("rep," + HEAD + "," + ONE, "(got '')"),
    ("rep," + HEAD + "\u0661," + ONE, "line 2, trial: must be a whole number"),
    ("pair_id," + HEAD + "p,j,q1,x,y,1\np,k,q1,y,x,1\np,j,q1,z,x,1\n",
     "line 4, pair: 'p' has the contents 'x' and 'z' here, 'x' and 'y' in line 2; a pair has two"),
    ("pair_id," + HEAD + "p,j,q1,x,y,1\np,j,q2,y,x,1\n",
     "line 3, pair: 'p' belongs to question 'q2' here, to 'q1' in line 2; a pair has one"),
    ("pair_id," + HEAD + "p,j,q1,x,y,1\n,j,q1,y,x,1\n", "line 3, pair: is empty"),
])  # fmt: skip
def test_what_is_refused(text, said):
    assert said in refused(text)


@pytest.mark.parametrize(("fields", "said"), [
    ({"judge": "jugde"}, "judge: no column 'jugde' (the file has judge, question_id, slot1_model, "),
    ({"judge": "jugde"}, "; is it 'judge'?"), ({"filter": {"bench": "A"}}, "filter bench: no column 'bench'"),
    ({"filter": {"judge": ["a", "b"]}}, "filter judge: no row has 'a' or 'b' (the column holds 'j')"),
    ({"filter": {"judge": []}}, "filter judge: no row has any of no values"),
    ({"judge": "judge", "judge_name": "me"}, "give one of them"),
    ({"judge_name": "me"}, "judge_name: the log has a column 'judge' for the judge"),
    ({"labels": {"A": "3"}}, "labels.A: must be '1', '2', 'tie', 'abstain' or 'invalid' (got '3')"),
    ({"grader": "x"}, "grader: unknown key (allowed: version, judge, question"),
])  # fmt: skip
def test_maps_that_do_not_fit(fields, said):
    assert said in refused(HEAD + ONE, **fields)


def test_filters_that_exclude_each_other_a_map_that_is_no_toml_and_a_judge_that_is_not_there():
    text = "bench," + HEAD + "A," + ONE + "B,k,q,x,y,1\n"
    assert "filter: no row passes every filter" in refused(text, filter={"bench": "B", "judge": "j"})
    with pytest.raises(InputError, match=r"mine\.toml: not TOML"):
        importers.parse_verdict_map("judge = ", source="mine.toml")
    with pytest.raises(UnknownNameError, match=r"unknown judge 'jj'\. Did you mean 'j'"):
        importers.to_pair_calls(read(HEAD + ONE), "jj")
    assert len(read("pair_id," + HEAD + "p,j,q1,x,y,1\nr,j,q1,y,x,1\n").pair_question) == 2
    assert VERDICTS == datasheet.VERDICTS  # the codes of the metrology


def test_all_problems_at_once_few_of_each_kind_and_the_rest_counted():
    many = "".join(f"j,q{k},,y,1\n" for k in range(1000))
    said = refused(HEAD + many + "j,q,x,y,what\nj,q,z,,1\nj,p,x,y,1\nj,p,x,y,2\n").splitlines()
    assert (len(said), said[0], said[-1].strip()) == (LISTED + 2, "log.csv: 1003 problems", f"and {1003 - LISTED} more")
    for one in (
        "line 1002, verdict: 'what'", "line 1003, slot_2: is empty", "line 1005: is the call of line 1004 again",
    ):  # fmt: skip
        assert any(one in line for line in said)
    said = refused(HEAD + "".join(f"j,q{k},x,y,w{k}\n" for k in range(50)))
    assert (said.splitlines()[-1].strip(), said.count("is not a recognised verdict")) == ("and 30 more", LISTED)
    assert refused(HEAD + "j,q\n" * 30).splitlines()[-1].strip() == "and 10 more"


@given(st.binary(max_size=80))
def test_any_bytes_are_a_log_or_refused(data):
    for text in (data, HEAD.encode() + data):
        with contextlib.suppress(InputError):
            read(text)


def _stripped(name: str) -> str:
    return name.strip(" \t\n\v\f\r")


NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00\r", exclude_categories=["Cs"]), min_size=1, max_size=4
)
QUIET = NAMES.map(lambda name: "n" + "".join(c for c in name if c.isalnum()))
SLOTS = st.sampled_from([(0, 1), (1, 0), (0, 2), (2, 0), (1, 2)])
CALL = st.tuples(st.integers(0, 2), st.integers(0, 3), SLOTS, st.integers(0, 2))


@st.composite
def logs(draw) -> list[list[str]]:
    """Rows of a log without errors: judge, question, two contents, verdict (a label or the content), trial."""
    judges = draw(st.lists(QUIET, min_size=3, max_size=3, unique=True))
    questions = draw(st.lists(NAMES.filter(str.strip), min_size=4, max_size=4, unique_by=_stripped))
    contents = [f"cc{name}" for name in draw(st.lists(NAMES, min_size=3, max_size=3, unique_by=_stripped))]
    rows = []
    for judge, question, (a, b), trial in draw(st.lists(CALL, min_size=1, max_size=40, unique=True)):
        one, two = contents[a], contents[b]
        verdict = draw(st.sampled_from(["1", "2", "B", "[[A]]", "tie", "abstain", "invalid", one, two]))
        rows.append([judges[judge], questions[question], one, two, verdict, str(trial)])
    return rows + draw(st.lists(st.sampled_from(rows), max_size=3))


def as_csv(rows: list[list[str]]) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([["judge", "question_id", "slot1_model", "slot2_model", "verdict", "trial"], *rows])
    return out.getvalue()


def slowly(text: str) -> list[tuple]:
    """The calls of a log without errors: the definition, one row at a time."""
    found = set()
    for row in csv.DictReader(io.StringIO(text, newline="")):
        judge, question, one, two, word, trial = (_stripped(cell) for cell in row.values())
        slot = {one: "1", two: "2"}.get(word)
        label = next((verdict for verdict, words in LABELS.items() if word.lower() in words), None)
        found.add((judge, question, one, two, int(trial), slot or label))
    return sorted(found, key=lambda c: (c[0], c[1], sorted(c[2:4]), c[4], c[2] > c[3]))


@settings(max_examples=25)
@given(logs(), st.randoms(use_true_random=False))
def test_the_same_as_a_slow_reader_whatever_the_sequence_of_the_rows(rows, random):
    text = as_csv(rows)
    log = read(text)
    found = calls(log)
    assert found == slowly(text)
    assert log.duplicates == len(rows) - len(log)
    units = Counter((judge, question, frozenset(two), trial) for judge, question, *two, trial, _ in found)
    wanted = {j: Counter(n for unit, n in units.items() if unit[0] == j) for j in log.judges}
    assert [*zip(log.both, log.single, strict=True)] == [(found[2], found[1]) for found in wanted.values()]
    for code, judge in enumerate(log.judges):  # and the calls of each judge as records
        made = importers.to_pair_calls(log, judge)
        assert {(c.judge, c.condition, c.delta, c.better) for c in made} == {
            (judge, importers.CALLS_CONDITION, 0.0, None)
        }
        assert [(c.task, c.trial, c.verdict) for c in made] == [(q, t, v) for j, q, _, _, t, v in found if j == judge]
        assert [c.order == "vu" for c in made] == (log.order[log.judge == code] == 1).tolist()
        assert len({c.pair for c in made}) == np.unique(log.pair[log.judge == code]).size
    shuffled = random.sample(rows, len(rows))
    other = read(as_csv(shuffled))
    assert found == calls(other)
    assert (log.digest, log.both.tolist(), log.labels) == (other.digest, other.both.tolist(), other.labels)
    for name in ("judge", "pair", "trial", "order", "verdict", "pair_question", "pair_contents"):
        assert np.array_equal(getattr(log, name), getattr(other, name))
    held = [[*map(_stripped, row)] for row in shuffled]
    # a name may hold ends of lines, so a row begins where an editor counts those before it
    begins = {as_csv(shuffled[:k]).count("\n") + 1: k for k in range(len(shuffled))}
    for line, call in zip(other.line.tolist(), found, strict=True):
        assert held[begins[line]][:4] == list(call[:4])


@settings(max_examples=25)
@given(logs())
def test_swapped_slots_are_the_same_contents_and_another_verdict_is_another_digest(rows):
    turned = {"1": "2", "2": "1", "B": "[[A]]", "[[A]]": "B"}
    swapped = [[j, q, two, one, turned.get(word, word), trial] for j, q, one, two, word, trial in rows]
    log, other = read(as_csv(rows)), read(as_csv(swapped))
    assert (preferred(log), log.both.tolist()) == (preferred(other), other.both.tolist())
    assert log.digest != other.digest
    judge, question, one, two, trial, said = calls(log)[0]
    first, word = [judge, question, one, two, str(trial)], "1" if said == "tie" else "tie"
    held = [[*map(_stripped, (*row[:4], row[5]))] for row in rows]
    changed = [[*row[:4], word, row[5]] if at == first else row for row, at in zip(rows, held, strict=True)]
    assert read(as_csv(changed)).digest != log.digest


@given(st.lists(st.tuples(*[st.integers(0, 2**31 - 1)] * 3), min_size=1, max_size=30))
def test_joined_codes_sort_as_their_parts_do(rows):
    parts = [np.array(column) for column in zip(*rows, strict=True)]
    codes = combine_codes(list(zip(parts, [2**31] * 3, strict=True)))
    ranks = {row: rank for rank, row in enumerate(sorted(set(rows)))}
    assert dense(codes)[1].tolist() == [ranks[row] for row in rows]


def many_calls(rows: int, questions: int) -> str:
    """Every judge on every pair in both orders, no call twice; slots win 45 and 40 in 100, 2 in 100 are invalid."""
    rng, pairs = np.random.default_rng(7), rows // 8
    # The pairs of a question count through all two of twelve contents, and go on with the next trial.
    u, v = np.triu_indices(12, 1)
    trial, kind = np.divmod(np.arange(pairs) // questions, u.size)
    code = rng.permutation(rows)
    judge, swapped, pair = code % 4, code // 4 % 2 == 1, code // 8
    left, right = u[kind[pair]], v[kind[pair]]
    verdict = rng.choice(["1", "2", "tie", "invalid"], size=rows, p=[0.45, 0.40, 0.13, 0.02])
    first, second = np.where(swapped, right, left), np.where(swapped, left, right)
    calls = zip(judge, pair % questions, first, second, verdict, trial[pair], strict=True)
    return "rep," + HEAD + "".join(f"{t},judge-{j},{q},model-{a},model-{b},{said}\n" for j, q, a, b, said, t in calls)


def test_records_and_columns_come_to_the_same_pairs():
    log = read(many_calls(8000, questions=10))
    assert (len(log), log.duplicates, log.single.any(), log.trials) == (8000, 0, False, (0, 1))
    assert np.array_equal(np.sort(log.line), np.arange(2, 8002))
    assert np.all(np.diff(log.judge * (log.call.max() + 1) + log.call) > 0)
    counts = datasheet.decompose_arrays(log.judge, log.trial_of_pair, log.order, log.verdict, log.question)
    for k, judge in enumerate(log.judges):
        made = importers.to_pair_calls(log, judge)
        found = {order: {(c.pair, c.trial): c.verdict for c in made if c.order == order} for order in ("uv", "vu")}
        whole = decompose(list(found["uv"].values()), [found["vu"][pair] for pair in found["uv"]])
        pairs = counts.pairs[k].sum(axis=0)
        assert whole.n_pairs == pairs.sum() == log.both[k] == 1000
        assert whole.stable == pytest.approx(pairs[datasheet.CLASSES.index("stable")] / 1000)


@pytest.fixture(scope="module")
def verdict_files(shared) -> Path:
    folder: Path = shared / "data" / "judge_verdicts"
    if not folder.is_dir():
        pytest.skip(f"needs real verdict logs: {folder} is not there")
    return folder


@pytest.mark.shared
def test_real_logs_in_both_orders_and_rows_that_were_never_parsed(verdict_files):
    logs = {}
    for name, judges, pairs, trials in (("pba_full_verdicts.csv", 3, 2400, (0,)),
                                        ("pba_repetition_verdicts.csv", 9, 96 * 3, (1, 2, 3))):  # fmt: skip
        log = logs[name] = read_verdicts(verdict_files / name, mapping=VerdictMap(filter={"bench": "MTBench"}))
        assert (len(log.judges), log.trials, log.duplicates, log.single.any()) == (judges, trials, 0, False)
        assert {*log.both} == {pairs}
        with (verdict_files / name).open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["bench"] == "MTBench"]
        columns = ("judge", "question_id", "slot1_model", "slot2_model", "rep", "verdict")
        assert Counter((*one[:4], str(one[4]), one[5]) for one in calls(log)) == Counter(
            tuple(row[name] for name in columns) for row in rows
        )
    log = logs["pba_full_verdicts.csv"]
    counts = datasheet.decompose_arrays(log.judge, log.trial_of_pair, log.order, log.verdict, log.question)
    of = [datasheet.CLASSES.index(name) for name in ("stable", "one-sided", "no preference")]
    assert dict(zip(log.judges, counts.pairs.sum(axis=1)[:, of].tolist(), strict=True)) == {
        "gemini-pro": [1347, 215, 18], "gpt-3.5-turbo-1106": [1637, 109, 20], "gpt-4-0613": [1740, 173, 216],
    }  # fmt: skip
    # they do not matter unless asked for
    whole = read_verdicts(verdict_files / "pba_full_verdicts.csv")
    assert whole.rows == log.rows == len(log) + log.filtered == 25_600
    assert re.fullmatch(r"[0-9a-f]{16}", log.digest)
    assert whole.digest != log.digest
