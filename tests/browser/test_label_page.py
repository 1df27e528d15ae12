"""The page on which people grade: by keyboard alone, with every label kept, on any screen, whatever the texts hold."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hostile_pages import PAYLOADS, unseen
from labelled import AGENTS, checked, data_of
from looking import Visitor, said, until, visiting

from assaymark.cli import main
from assaymark.workflow import (
    CANNOT_SAY,
    FIELDS,
    HOST,
    LabelServer,
    RunFolder,
    listen,
    open_labelling,
    store_labels,
    stored_grades,
)  # fmt: skip

pytestmark = pytest.mark.browser

HOSTILE = "".join(PAYLOADS.values()).replace("{", "{{").replace("}", "}}").replace("\x00", "").replace("\ud800", "")
SENT = "!Object.keys(unsent).length"
SEND = "([to, body]) => fetch(to, {method: 'POST', mode: 'no-cors', body, headers: {'Content-Type': 'text/plain'}})"


@pytest.fixture
def visitor(browser, pictures):
    with visiting(browser, pictures, accept_downloads=True) as one:
        yield one


def page_of(run: RunFolder, *words: str) -> str:
    """The address of a file for one grader."""
    assert main(["label", str(run.path), *words, "--file", str(run.path.parent / "label.html"), "--quiet"]) == 0
    return sorted(run.path.parent.glob("label-*.html"))[0].as_uri()


def press(visitor: Visitor, *keys: str) -> None:
    for key in keys:
        visitor.page.keyboard.press(key)


def told(visitor: Visitor, *names: str) -> list[str]:
    """Return the texts of parts of the page."""
    return [str(visitor.page.text_content(f"#{name}")) for name in names]


def downloaded(visitor: Visitor, path: Path, button: str = "#save") -> list[dict[str, str]]:
    """The rows that a button exports, by keyboard."""
    visitor.page.focus(button)
    with visitor.page.expect_download() as found:
        press(visitor, "Enter")
    found.value.save_as(path)
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


@contextmanager
def served(run: RunFolder, port: int = 0) -> Iterator[tuple[LabelServer, str]]:
    """A desk, and where its pages are."""
    desk = LabelServer(open_labelling(run, now=datetime(2026, 3, 1, tzinfo=UTC)))
    with listen(desk, HOST, port) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield desk, f"http://{HOST}:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_everything_is_graded_by_keyboard_and_comes_back(visitor, tmp_path, capsys):
    run = checked(tmp_path, items=3, criteria=("clarity", "risk"), agents=AGENTS[:2])
    visitor.open(page_of(run))
    assert told(visitor, "title") == ["Text 1 of 6"]
    press(visitor, "4", "2", "Enter")  # a digit gives a grade and goes to the next question
    press(visitor, "ArrowRight", "ArrowRight", "ArrowDown", "c", "Enter")  # 3, cannot say
    assert told(visitor, "title") == ["Text 3 of 6"]
    press(visitor, "5", "Enter")  # risk has no grade yet
    assert told(visitor, "title", "said") == ["Text 3 of 6", "Risk has no grade yet"]
    press(visitor, "1", "b")
    assert told(visitor, "title") == ["Text 2 of 6"]
    press(visitor, "Enter", "Tab", "Tab")
    visitor.page.keyboard.type('=bets "all", 4 of 5')  # digits and letters are text in the comment
    press(visitor, "Escape", "Enter", *("3", "3", "Enter") * 3)
    assert told(visitor, "title") == ["All 6 texts are graded"]
    rows = downloaded(visitor, tmp_path / "labels.csv", "#take")
    assert visitor.spoken(visitor.page.url) == []
    assert tuple(rows[0]) == FIELDS
    assert [row["grade"] for row in rows[:6]] == ["4", "2", "3", CANNOT_SAY, "5", "1"]
    assert rows[5]["comment"] == '\'=bets "all", 4 of 5'  # no formula of a spreadsheet
    assert main(["label", str(run.path), "--read", str(tmp_path / "labels.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["new"] == 12
    assert sorted(str(one.score) for one in stored_grades(run))[:4] == ["1.0", "2.0", "3.0", "3.0"]
    assert '=bets "all", 4 of 5' in {one.comment for one in stored_grades(run)}


def test_pause_undo_and_reload_lose_nothing(visitor, tmp_path):
    page = visitor.page
    page.clock.install(time=datetime(2026, 3, 1, tzinfo=UTC))
    page.clock.pause_at(datetime(2026, 3, 1, 0, 0, 1, tzinfo=UTC))  # a slow machine counts no seconds
    visitor.open(page_of(checked(tmp_path, items=2, agents=AGENTS[:2])))
    page.clock.run_for(5700)
    assert told(visitor, "clock") == ["0:05"]
    press(visitor, "p")
    assert (told(visitor, "title"), page.is_visible("#text")) == (["Paused"], False)
    page.clock.run_for(60_000)
    press(visitor, "Enter")  # on Resume
    page.clock.run_for(3000)
    assert told(visitor, "clock") == ["0:08"]
    press(visitor, "4", "Enter", "2")
    assert told(visitor, "count") == ["2 of 4 graded"]
    press(visitor, "u")
    assert told(visitor, "count") == ["1 of 4 graded"]
    press(visitor, "u")  # goes back to the text before
    assert (told(visitor, "title"), page.locator("#ask :checked[type=radio]").count()) == (["Text 1 of 4"], 0)
    press(visitor, "5", "Enter", "3", "Enter")
    page.reload()
    assert told(visitor, "title") == ["Text 3 of 4"]
    rows = downloaded(visitor, tmp_path / "labels.csv")
    assert [row["grade"] for row in rows] == ["5", "3"]
    assert [float(row["seconds"]) >= least for row, least in zip(rows, (8, 0), strict=True)] == [True, True]
    press(visitor, "b")
    assert page.input_value("#ask :checked[type=radio]") == "3"


def test_two_tabs_and_undo_take_nothing_away(visitor, tmp_path):
    visitor.open(page_of(checked(tmp_path, items=2, agents=AGENTS[:2], criteria=("clarity", "risk"))))
    other = visitor.page.context.new_page()
    other.goto(visitor.page.url)
    press(visitor, "4", "2", "Enter", "3")
    until(other, "document.querySelector('#count').textContent == '1 of 4 graded'")
    for key in ("ArrowDown", "5"):  # on the same text, whose first grade came from the other tab
        other.keyboard.press(key)
    visitor.page.reload()
    press(visitor, "1")
    visitor.page.focus("#comment")
    visitor.page.keyboard.type("hm")
    press(visitor, "Escape", "u")
    assert visitor.page.input_value("#comment") == "hm"
    assert [row["grade"] for row in downloaded(visitor, tmp_path / "labels.csv")] == ["4", "5", "3"]


@pytest.mark.parametrize(("scale", "keys", "grades"), [
    ((0, 1), ["1", "Enter", "0", "Enter", "c"], ["1", "0", CANNOT_SAY]),
    ((1, 10), ["1", "0", "Enter", "0", "Enter", "1", "Enter", "7"], ["10", "10", "1", "7"]),
    ((0, 10), ["1", "0", "Enter", "0", "Enter", "9", "ArrowRight"], ["10", "0", "10"]),
    ((0, 100), ["7", "3", "Enter", "1", "0", "1", "Enter", "Backspace", "Enter", "c"], ["73", "10", CANNOT_SAY]),
])  # fmt: skip
def test_any_scale_has_its_control(visitor, tmp_path, scale, keys, grades):
    visitor.open(page_of(checked(tmp_path, items=2, agents=AGENTS[:2], scale=scale)))
    press(visitor, *keys)
    assert [row["grade"] for row in downloaded(visitor, tmp_path / "labels.csv")] == grades
    visitor.page.wait_for_timeout(20)


def test_the_page_fits_any_screen_and_is_open_to_everybody_and_another_page_can_send_nothing(visitor, tmp_path):
    run = checked(tmp_path, items=2, agents=AGENTS[:2], text="{agent} {item} " + HOSTILE + " gold" * 40_000)
    with served(run) as (desk, address), served(run) as (_, other):
        url = f"{address}{desk.path('1')}"
        visitor.open(f"{other}/")
        body = json.dumps({"id": desk.labelling.ids_of("1")[0], "scores": {"score": 1}})
        visitor.page.evaluate(f"x => ({SEND})(x).catch(() => 0)", [f"{url}save", body])
        assert desk.labelling.labels("1") == {}
        visitor.open(url)
        assert told(visitor, "title") == ["Text 1 of 4"]
        assert len(told(visitor, "text")[0]) > 200_000
        press(visitor, "4")
        until(visitor.page, "document.querySelector('#count').textContent == '1 of 4 graded'")
        problems = visitor.spoken(url, f"{url}save")
        visitor.pictures("label/label.html")
        problems += [*visitor.overflow(390, 320), *sorted(unseen(str(visitor.page.text_content("main"))))]
        problems += [*visitor.overflow(320, unfolded=True), *visitor.barriers()]
        assert not visitor.page.evaluate("window.__canary")
    assert not problems, said(problems)


def test_a_killed_server_loses_no_label(visitor, tmp_path):
    run = checked(tmp_path, items=2, agents=AGENTS[:2])
    command = [sys.executable, "-m", "assaymark", "label", str(run.path), "--json", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = str(json.loads(server.stdout.readline())["addresses"]["1"])
        visitor.open(url)
        press(visitor, "4", "Enter", "3")
        until(visitor.page, SENT)
        server.kill()
    press(visitor, "Enter", "2")  # nobody takes this one
    visitor.page.wait_for_selector("#warn:not([hidden])")
    assert "Not on disk yet" in told(visitor, "warn")[0]
    visitor.page.set_viewport_size({"width": 390, "height": 300})
    visitor.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert visitor.page.locator("#warn").bounding_box()["y"] >= 0  # it stays in view
    with served(run, port=int(url.split(":")[2].partition("/")[0])) as (desk, address):
        assert sorted(one.score for one in stored_grades(run)) == [3, 4]  # taken over from what was kept
        visitor.page.goto(f"{address}{desk.path('1')}")  # its address is new, and the browser kept the label
        assert told(visitor, "title") == ["Text 4 of 4"]
        press(visitor, "1", "Enter")
        until(visitor.page, SENT)
        ended = ["All 4 texts are graded", "Every grade is on disk. You can close this page."]
        assert told(visitor, "title", "ended") == ended
        assert store_labels(run) == 2
    assert sorted(one.score for one in stored_grades(run)) == [1, 2, 3, 4]


def test_known_answers_are_counted_at_the_end(visitor, tmp_path):
    run = checked(tmp_path, items=2, agents=AGENTS[:2])
    (tmp_path / "gold.csv").write_text("text,score\nPlainly bad.,1\nPlainly good.,4\n")
    visitor.open(page_of(run, "--gold", str(tmp_path / "gold.csv")))
    assert data_of(visitor.page.content())["salt"]
    press(visitor, *("4", "Enter") * 6)
    until(visitor.page, "document.querySelector('#gold').textContent")
    assert told(visitor, "gold") == ["1 of 2 questions with a known answer were answered as expected."]
