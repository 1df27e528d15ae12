"""People grade a random sample of texts, blind: each label is stored at once, and returned files are checked."""

from __future__ import annotations

import html
import http.client
import json
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from labelled import NAMES, checked, data_of, graded, ids_of

from assaymark import workflow
from assaymark.cli import main
from assaymark.errors import InputError, PlanError
from assaymark.report import label_files, label_page

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def run(own_copy) -> workflow.RunFolder:
    return workflow.RunFolder(own_copy("labelled-run", lambda folder: checked(folder)) / "run")


@pytest.fixture
def label(run, capsys):
    """``label(*words)``: what the command says of the run, or of another."""

    def said(*words: str | Path, of: workflow.RunFolder = run, status: int = 0) -> str:
        assert main(["label", str(of.path), *map(str, words)]) == status
        out, err = capsys.readouterr()
        return err if status else out

    return said


@pytest.fixture
def files(run: workflow.RunFolder, label) -> tuple[Path, Path]:
    """The pages of two graders, beside their run folder."""
    folder = run.path.parent
    label("--sample", "10", "--graders", "ab,cd", "--file", folder / "label.html")
    return folder / "label-ab.html", folder / "label-cd.html"


def bytes_of(run: workflow.RunFolder) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


def test_pages_are_blind_and_load_nothing(files, tmp_path, label):
    for path in files:
        page = path.read_text(encoding="utf-8")
        assert [name for name in NAMES if re.search(rf"\b{name}\b", page, re.IGNORECASE)] == []
        said = json.dumps(data_of(page))
        assert "[agent A]" in said
        assert re.findall(r"q\d\d", said) == []  # nor ids of records
        policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
        assert ("default-src 'none'" in policy, "connect-src" in policy) == (True, False)
        assert re.findall(r'(?:src|href)="?(?!["#])', page.partition("<script")[0]) == []
    label("--file", tmp_path / "label.html", of=checked(tmp_path, items=3, scale=(11, 97)))
    page = (tmp_path / "label-1.html").read_text()
    assert ",54," in (tmp_path / "scores.csv").read_text()  # the middle, which nothing but a score can be
    assert re.search(r"\b54(\.0)?\b", page.partition("</style>")[2]) is None


def test_a_name_that_blinding_leaves_in_texts_is_said(tmp_path, label):
    said = label("--file", tmp_path / "x.html", of=checked(tmp_path, items=2, agents=("4.5", "zorblax")))
    assert "texts may show these names, because they are ordinary words or numbers: 4.5\n" in said
    assert "zorblax" not in said


def test_each_cycle_is_one_run_of_texts_in_an_order_of_its_own(run, files):
    draw = workflow.stored_draw(run)
    first, second = (ids_of(path.read_text()) for path in files)
    sheets = json.loads((run.labels / "sheets.json").read_text())["ids"]
    for cycles in (first, second):
        assert all(len(ids) == 4 == len(set(ids)) for ids in cycles)
        assert all(len({sheets[name][0] for name in ids}) == 1 for ids in cycles)
    both = {frozenset(ids) for ids in first} & {frozenset(ids) for ids in second}
    assert len(both) == len(draw.twice) == 5
    assert Counter(map(len, (first, second))) in ({7: 1, 8: 1},)
    agents = [[sheets[name][1].partition(" / ")[2] for name in ids] for ids in (*first, *second)]
    assert len(set(map(tuple, agents))) > 5  # not the order of the table
    assert len({tuple(ids) for ids in (*first, *second) if frozenset(ids) in both}) > len(both)


def test_what_comes_back_is_stored_once_with_time_and_duration(run, files, tmp_path, label):
    names = [graded(path.read_text(), tmp_path / f"{path.stem}.csv") for path in files]
    said = label("--read", *names)
    assert "60 new grades are stored" in said
    assert "ab: 32 of 32 texts graded, complete" in said or "cd: 32 of 32 texts graded, complete" in said
    stored = workflow.stored_grades(run)
    one = stored[0]
    assert (one.score, one.seconds, one.at, one.comment) == (4.0, 7.5, "2100-01-02T03:04:05Z", 'well, "so"')
    assert one.trajectory.startswith(one.cycle)
    assert {grade.grader for grade in stored} == {"ab", "cd"}
    assert Counter(Counter(grade.trajectory for grade in stored).values()) == {1: 20, 2: 20}
    before = bytes_of(run)
    found = json.loads(label("--read", *names, names[0], "--json"))
    assert (found["new"], found["graders"]["ab"]["missing"]) == (0, 0)
    assert bytes_of(run) == before


OTHER = "a text of the other grader"

WRONG = [
    ({"grader": "zz"}, "line 2, grader: 'zz' is not a grader of this draw (ab, cd)"),
    ({"grade": "6"}, "line 2, grade: must be a whole number from 1 to 5 in ASCII digits, or 'cannot say' (got '6')"),
    ({"grade": "４"}, "(got '４')"), ({"grade": "4.0"}, "(got '4.0')"), ({"grade": ""}, "(got '')"),
    ({"id": "deadbeef0000"}, "line 2, id: no text of cd has the id 'deadbeef0000'"),
    ({"id": OTHER}, "line 2, id: no text of cd has the id"),
    ({"run": "0123456789ab"}, "line 2, run: of another draw or run, 1 in all"),
    ({"dimension": "agregate"}, "Did you mean 'aggregate'?"),
    ({"at": "yesterday"}, "line 2, at: must be a time with its zone"),
    ({"at": "1999-01-01T00:00:00Z"}, "line 2, at: is not later than the draw of"),
    ({"seconds": "١٢"}, "line 2, seconds: must be a number from 0"),
    ({"comment": "x" * 4001}, "line 2, comment: must have at most 4000 characters (got 4001)"),
]  # fmt: skip


def test_a_wrong_cell_is_said_and_nothing_taken(run, files, tmp_path):
    found = workflow.open_labelling(run, now=NOW)
    good = graded(files[0].read_text(), tmp_path / "good.csv")
    theirs, mine = ([name for ids in ids_of(path.read_text()) for name in ids] for path in files)
    for number, (changed, told) in enumerate(WRONG):
        if changed.get("id") == OTHER:
            changed = {"id": next(name for name in theirs if name not in mine)}
        bad = graded(files[1].read_text(), tmp_path / f"{number}.csv", **changed)
        with pytest.raises(InputError) as caught:
            workflow.read_labels(found, [good, bad])
        assert told in str(caught.value), changed
    assert workflow.stored_grades(run) == ()
    assert not list(run.labels.glob("*.jsonl"))


def test_all_problems_of_all_files_are_said_at_once(files, tmp_path, label):
    good = graded(files[0].read_text(), tmp_path / "good.csv")
    two = graded(files[0].read_text(), tmp_path / "two.csv", grade="2")
    edited, broken = tmp_path / "edited.csv", tmp_path / "broken.csv"
    edited.write_text(good.read_text().replace("seconds", "time", 1))
    broken.write_text("a,b\n1\n")
    said = label("--read", good, two, edited, broken, tmp_path / "none.csv", status=1)
    assert said.startswith("assaymark: labels: 4 problems")
    assert re.search(r"two.csv line 2, grade: ab grades \w{12} on aggregate 2, and 4 .*good.csv line 2; keep one", said)
    assert "edited.csv, header: must be run,id,grader,dimension,grade,at,seconds,comment (got " in said
    assert "broken.csv" in said
    assert "none.csv" in said
    label("--read", good)
    assert "and 4 before; keep one" in label("--read", two, status=1)


def test_the_sample_and_the_graders_are_fixed_once_people_work(files, tmp_path, label):
    said = label("--graders", "ab,ef", status=1)
    assert "graders (ab, cd) and known answers are fixed, because files were written" in said
    label("--read", graded(files[0].read_text(), tmp_path / "ab.csv"))
    assert "files of the stored draw were written" in label("--sample", "5", "--file", "x.html", status=1)
    assert "leave out --sample and --seed" in label("--seed", "9", "--file", "x.html", status=1)


def test_what_cannot_be_is_said(label):
    for words, told in (
        (["--file", "x.html", "--sample", "11"], "--sample: must be 1 to 10"),
        (["--file", "x.html", "--graders", "ab,A B,AB"], "--graders: 2 problems"),
        (["--file", "label.txt"], "the name of a page ends in .html"),
        (["--file", "x.html", "--gold", "nothing.csv"], "no such table of known answers"),
    ):
        assert told in label(*words, status=1)
    assert "is read only with --read" in label("x.csv", status=2)
    assert "names no file" in label("--read", status=2)


def test_a_table_that_changed_or_has_no_texts_is_refused(tmp_path, label, capsys):
    run, path = checked(tmp_path), tmp_path / "scores.csv"
    with path.open("a") as handle:
        handle.write("\n")
    assert "changed since; run: assaymark check" in label(of=run, status=1)
    path.write_text("\n".join(line.rpartition(",")[0] for line in path.read_text().splitlines()))
    main(["check", str(path), "--out", str(run.path), "--scale", "1..5", "--quiet"])
    capsys.readouterr()
    said = label(of=run, status=1)
    assert "no column holds the texts of single answers" in said
    assert f"assaymark draw {path} --out {run.path}" in said


def test_a_bare_table_is_checked_first(run, tmp_path, monkeypatch, ran):
    monkeypatch.chdir(tmp_path)
    found = json.loads(ran("label", run.path.parent / "scores.csv", "--graders", "1", "--file", "label.html", "--json"))
    assert (found["cycles"], found["of"], found["without_second"], found["written"]) == (10, 10, 5, ["label-1.html"])
    assert [one["assumed"] for one in found["needed"]] == [True, True]
    assert (tmp_path / "assaymark-check" / "draw.json").is_file()


def test_another_table_takes_no_folder_in_which_people_grade(tmp_path, label, ran):
    run = checked(tmp_path, items=3)
    ran("draw", run.path, "--sample", "3")
    checked(tmp_path, items=4)  # nobody was given a text yet
    assert "4 of 4 cycles" in label("--file", tmp_path / "b.html", of=run)
    before = bytes_of(run)
    with pytest.raises(PlanError, match=r"people grade 4 of 4 other cycles here.* its own folder"):
        checked(tmp_path, items=5)
    assert bytes_of(run) == before
    checked(tmp_path, items=4)
    label("--read", graded((tmp_path / "b-1.html").read_text(), tmp_path / "b.csv"), of=run)
    assert len(workflow.stored_grades(run)) == 16


def test_a_second_draw_loses_no_file_that_was_handed_out(tmp_path, label, ran):
    run = checked(tmp_path, items=4)
    assert main(["draw", str(run.path), "--sample", "3"]) == main(["draw", str(run.path), "--sample", "2"]) == 0
    label("--file", tmp_path / "a.html", of=run)
    assert re.search(
        "2 cycles were drawn.*dealt out to graders", ran("draw", run.path, "--sample", "3", status=1), re.S
    )


def test_long_material_is_split_into_files_of_less_than_two_megabytes(tmp_path, label):
    run = checked(tmp_path, items=3, text="{agent} {item}. " + "gold " * 40_000)
    label("--file", tmp_path / "label.html", of=run)
    parts = sorted(tmp_path.glob("label-1-*.html"))
    assert [path.stat().st_size <= 2_000_000 for path in parts] == [True, True]
    every = [name for path in parts for ids in ids_of(path.read_text()) for name in ids]
    assert len(every) == len(set(every)) == 12
    for path in parts:
        label("--read", graded(path.read_text(), path.with_suffix(".csv")), of=run)
    assert len(workflow.stored_grades(run)) == 12


def test_a_text_that_no_file_holds_is_said(run):
    sheet = workflow.open_labelling(run, now=NOW).sheet("1")
    whole = len(label_page(sheet).encode())
    with pytest.raises(InputError, match="grade it on the local page"):
        label_files(sheet, "x", limit=whole - len(json.dumps(data_of(label_page(sheet))["cycles"])))
    assert len(label_files(sheet, "x", limit=whole)) == 2  # its margin is for names and numbers of parts


def test_hostile_texts_stay_text(tmp_path, label):
    text = "{agent} {item} </script><script>alert(1)</script><!-- \u202egold\u2028 &amp;"
    label("--file", tmp_path / "x.html", of=checked(tmp_path, items=2, text=text))
    page = (tmp_path / "x-1.html").read_text()
    assert page.count("</script>") == 2
    assert "\u202e" not in page
    [shown] = {text["sections"][0][1].rpartition("</script>")[2] for text in data_of(page)["cycles"][0]["texts"]}
    assert shown == "<!-- [U+202E]gold\u2028 &amp;"


def test_known_answers_are_hashed_and_counted_for_each_grader(run, tmp_path, label):
    gold = tmp_path / "gold.csv"
    gold.write_text("text,material,score\nPlainly bad by zorblax.,Any.,1\nPlainly good.,,4\n")
    label("--graders", "ab,cd", "--gold", gold, "--file", tmp_path / "l.html")
    page = (tmp_path / "l-ab.html").read_text()
    assert "zorblax" not in page
    assert len(re.findall(r'"check":\{"aggregate":"[0-9a-f]{64}"\}', page)) == 2
    assert "1 of 2 known answers right" in label("--read", graded(page, tmp_path / "ab.csv"))
    assert all(one.trajectory.startswith("q") for one in workflow.stored_grades(run))  # the known texts are no records
    gold.write_text("text,scroe,score\nBad.,1,9\n,,3\n")
    said = label("--gold", gold, "--file", tmp_path / "l.html", of=checked(tmp_path, items=2), status=1)
    assert "3 problems" in said
    assert "line 2, score: must be a whole number from 1 to 5" in said


def test_a_run_of_records_is_graded_as_its_judges_saw_it(own_copy, demo, tmp_path, label):
    run = workflow.RunFolder(own_copy("labelled-demo", lambda folder: shutil.copytree(demo, folder / "run")) / "run")
    plan = (run.path / "study.lock").read_bytes()
    label("--sample", "6", "--file", tmp_path / "l.html", of=run)
    page = (tmp_path / "l-1.html").read_text()
    names = "alder|birch|cedar|dogwood|maple|rowan|reader|auditor|allocator|outsider"
    assert re.findall(rf"\b({names})\b", page, re.IGNORECASE) == []
    data = data_of(page)
    assert [one["name"] for one in data["questions"]][:2] == ["action_coherence", "risk_alignment"]
    assert all(len(one["anchors"]) == 5 for one in data["questions"])
    assert data["cycles"][0]["texts"][0]["sections"][0][0] == "Actions"
    rows = {name: content for name, content in data["cycles"][0]["material"] if not isinstance(content, str)}
    assert rows["Constraints"][0] == ["kind", "limit", "unit", "scope"]
    assert len(rows["Series: Asset A, 60"]) > 50  # the bars that judges saw, below their head
    label("--read", graded(page, tmp_path / "1.csv"), of=run)
    assert len(workflow.stored_grades(run)) == 6 * 4 * 6
    assert (run.path / "study.lock").read_bytes() == plan


# --- the local page ---------------------------------------------------------------------------------------------------


@pytest.fixture
def desk(run: workflow.RunFolder) -> Iterator[tuple[workflow.LabelDesk, int]]:
    found = workflow.LabelDesk(workflow.open_labelling(run, graders=["ab", "cd"], now=NOW))
    with workflow.listen(found, workflow.HOST, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found, server.server_address[1]
        server.shutdown()
        thread.join()


def asked(port: int, method: str, path: str, body: str | None = None, **headers: str | None) -> tuple[int, str]:
    """Return status and text of a response; a header of None is left out, and the Host is the server's by default."""
    connection = http.client.HTTPConnection(workflow.HOST, port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    named = {"Host": f"{workflow.HOST}:{port}"} | {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        named = {"Content-Length": str(len(body.encode()))} | named
    for name, value in named.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(None if body is None else body.encode())
    found = connection.getresponse()
    text = found.read().decode()
    connection.close()
    return found.status, text


def sent(port: int) -> dict[str, str | None]:
    return {"Origin": f"http://{workflow.HOST}:{port}", "Content_Type": "application/json"}


def test_a_label_is_on_disk_when_it_is_confirmed(run, desk):
    found, port = desk
    address = found.path("ab")
    status, page = asked(port, "GET", address)
    assert status == 200
    assert "connect-src 'self'" in html.unescape(page)
    name = ids_of(page)[0][0]
    label = {"id": name, "scores": {"aggregate": 3}, "seconds": 2.5, "comment": "\ud800 so",
             "at": "1990-01-01T00:00:00Z"}  # fmt: skip
    assert asked(port, "POST", f"{address}save", json.dumps(label), **sent(port)) == (204, "")
    [line] = (run.labels / "ab.jsonl").read_text().split("\n")[1:-1]
    assert json.loads(line)["scores"] == {"aggregate": 3}
    assert json.loads(line)["at"] > "2026-03-01"  # the clock of this machine, not the page's
    with (run.labels / "ab.jsonl").open("a") as handle:  # a kill in the middle of the next
        handle.write('{"id": "')
    label["scores"] = {"aggregate": None}
    assert asked(port, "POST", f"{address}save", json.dumps(label), **sent(port))[0] == 204
    assert data_of(asked(port, "GET", address)[1])["labels"][name]["scores"] == {"aggregate": None}
    assert workflow.store_labels(run) == 1
    [grade] = workflow.stored_grades(run)
    assert (grade.grader, grade.score, grade.seconds) == ("ab", None, 2.5)


def test_an_undone_grade_is_taken_back_and_a_check_leaves_none_out(run, desk):
    found, port = desk
    one, other = found.labelling.ids_of("ab")[:2]

    def give(name: str, **scores: int) -> None:
        body = json.dumps({"id": name, "scores": scores})
        assert asked(port, "POST", f"{found.path('ab')}save", body, **sent(port))[0] == 204

    give(one, aggregate=3)
    checked(run.path.parent)  # takes over what the page has, as a killed server left it
    assert [grade.score for grade in workflow.stored_grades(run)] == [3]
    give(one)  # undone
    give(other, aggregate=5)
    opened = workflow.open_labelling(run, now=NOW)
    assert (opened.late, sorted(grade.score or 0 for grade in workflow.stored_grades(run))) == (2, [0, 5])
    assert "2 grades that a stopped server had left are stored now" in [*workflow.labelling_lines(opened)]


TAKEN_FROM_ELSEWHERE = [
    ({"Host": "evil.example:1", "Origin": "http://evil.example:1"}, 403), ({"Origin": "http://127.0.0.1:1"}, 403),
    ({"Content_Type": "text/plain"}, 404), ({"Content_Length": "9999999"}, 413), ({"path": "/guessed/ab/save"}, 404),
    ({"path": "/{token}/zz/save"}, 404), ({"Content_Length": "-1"}, 413), ({"body": "[" * 100_000}, 400),
    ({"comment": "x" * 5000}, 400), ({"dimension": "other"}, 400), ({"id": "deadbeef0000"}, 400), ({"body": "[]"}, 400),
    ({"body": "no json"}, 400), ({"Origin": "null"}, 403), ({"Origin": None}, 403), ({"score": True}, 400),
    ({"seconds": -1}, 400), ({"score": 3.5}, 400), ({"score": 9}, 400), ({"id": []}, 400),
]  # fmt: skip


def test_nothing_is_taken_from_elsewhere(run, desk):
    found, port = desk
    for change, status in TAKEN_FROM_ELSEWHERE:
        label = {"id": change.get("id", found.labelling.ids_of("ab")[0])}
        label |= {"scores": {change.get("dimension", "aggregate"): change.get("score", 3)}}
        label |= {key: change[key] for key in ("comment", "seconds") if key in change}
        path = change.get("path", "/{token}/ab/save").format(token=found.token)
        headers = sent(port) | {key: value for key, value in change.items() if key[0].isupper()}
        assert asked(port, "POST", path, change.get("body", json.dumps(label)), **headers)[0] == status, change
    assert not list(run.labels.glob("*.jsonl"))


def test_pages_are_for_those_who_know_the_address(desk):
    found, port = desk
    assert [asked(port, "GET", path)[0] for path in ("/", "/guessed/ab/", f"/{found.token}/zz/")] == [404] * 3
    assert asked(port, "GET", found.path("ab"), Host="evil.example")[0] == 421
    assert asked(port, "HEAD", found.path("ab")) == (200, "")
