"""From a judgment to its raw call: on the pages of finished runs, every call stands once with its reply as it came."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from outline import read
from raw_pages import raw_texts

from assaymark.cli import main
from assaymark.engine import Ledger, Text
from assaymark.errors import LedgerError
from assaymark.workflow import ANCHOR, DECISIONS, JUDGMENTS, PAIRS, POINTS, PROBE, RunFolder, Store, raw_calls, report

CALLS = "calls/page-*.html"


def judged_keys(folder: RunFolder) -> list[str]:
    store = Store(folder)
    tables = [table for table in (JUDGMENTS, ANCHOR, PROBE) if store.rows(table)]
    return [one.call_key for table in tables for one in store.read(table)]


def shown(folder: RunFolder) -> Counter[str]:
    """Every key that the pages of calls name, and how often."""
    found = Counter[str]()
    for page in folder.report.glob(CALLS):
        found.update(re.findall(r"<dt>Key</dt><dd><code>([0-9a-f]{64})</code>", page.read_text(encoding="utf-8")))
    return found


@pytest.fixture(params=["finished", "own_run"])
def folder(request) -> RunFolder:
    return RunFolder(request.getfixturevalue(request.param))


def test_every_call_that_a_judgment_rests_on_stands_on_exactly_one_page(folder):
    found = shown(folder)
    wanted = set(judged_keys(folder))
    wanted |= {one.call.raw_object for one in Store(folder).read(DECISIONS) if one.call.raw_object}
    assert wanted
    assert found == Counter(wanted)


def test_every_reply_can_be_read_back_from_its_page(folder):
    texts = {}
    for page in folder.report.glob(CALLS):
        texts |= raw_texts(page.read_text(encoding="utf-8"))
    with Ledger.open(folder.ledger, create=False) as ledger:
        for key, reply in ledger.replies(set(judged_keys(folder))):
            assert texts[f"c{key[:16]}"][0] == reply.text


def test_what_was_asked_can_be_put_together_from_the_texts(folder):
    shown_texts = {}
    for page in folder.report.glob("calls/texts-*.html"):
        shown_texts |= raw_texts(page.read_text(encoding="utf-8"))
    key = judged_keys(folder)[-1]
    with Ledger.open(folder.ledger, create=False) as ledger:
        call = ledger.call(key)
    for message in call.messages:
        parts = [shown_texts[f"t{part.sha256[:16]}"][0] for part in message.parts]
        assert "\n\n".join(parts) == message.text


def test_every_judgment_leads_to_its_call(folder):
    pages = [path for path in folder.report.glob("judgments/*.html") if path.name != "index.html"]
    links = [link for path in pages for link in read(path.read_text(encoding="utf-8")).links if "../calls/" in link]
    assert {link.partition("#c")[2] for link in links} == {key[:16] for key in judged_keys(folder)}


def test_no_page_is_larger_than_its_budget(folder):
    sizes = {path: path.stat().st_size for path in folder.report.rglob("*.html")}
    assert max(sizes.values()) < 1_000_000
    assert max(size for path, size in sizes.items() if path.parent.name in ("judgments", "calls")) < 450_000


def test_calls_can_be_left_out_or_be_those_of_judges_alone(own):
    folder = RunFolder(own)
    report(folder, calls="judged")
    assert set(shown(folder)) == set(judged_keys(folder))
    report(folder, calls="none")
    assert not list(folder.report.glob(CALLS))
    assert (folder.report / "judgments" / "index.html").is_file()
    report(folder)
    assert set(shown(folder)) > set(judged_keys(folder))


def test_a_report_twice_is_the_same_bytes(own):
    folder = RunFolder(own)
    before = {path: path.read_bytes() for path in folder.report.rglob("*.html")}
    report(folder)
    assert {path: path.read_bytes() for path in folder.report.rglob("*.html")} == before


def test_without_its_ledger_a_run_still_has_its_judgments(own):
    folder = RunFolder(own)
    Path(folder.ledger).unlink()
    report(folder)
    assert not list(folder.report.glob(CALLS))
    assert "<code title=" in (next(iter(folder.report.glob("judgments/[!i]*.html")))).read_text(encoding="utf-8")


def test_of_each_text_only_the_first_call_has_the_words(folder):
    keys = list(dict.fromkeys(judged_keys(folder)))
    seen: dict[str, Text] = {}
    for one in raw_calls(folder, keys):
        assert not {text.sha256 for text in one.new} & seen.keys()
        seen |= {text.sha256: text for text in one.new}
        assert {text.sha256 for text in one.call.texts} <= seen.keys()
    assert all(Text.of(text.text) == text for text in seen.values())


def test_a_datasheet_leads_to_answers_and_answers_to_their_calls(tasks, tmp_path):
    """Over pairs and over single texts; a page that is made again is the same bytes."""
    judges = [word for name in ("checklist", "reader") for word in ("--judge", f"reference/{name}")]
    assert main(["datasheet", *judges, "--tasks", str(tasks), "--no-strict", "--out", str(tmp_path)]) == 0
    folder = RunFolder(tmp_path)
    store = Store(folder)
    keys = {one.call_key for table in (PAIRS, POINTS) for one in store.read(table)}
    pages = {path: path.read_text(encoding="utf-8") for path in folder.report.rglob("*.html")}
    outlines = {path.relative_to(folder.report).as_posix(): read(page) for path, page in pages.items()}
    named = Counter(key for page in pages.values() for key in re.findall(r"<dt>Key</dt><dd><code>(\w+)</code>", page))
    assert named == Counter(keys)
    for judge in ("checklist", "reader"):
        links = [link for link in outlines[f"datasheet/{judge}.html"].links if link.startswith("../answers/")]
        assert len(links) > 20
        for link in links:
            path, _, anchor = link.removeprefix("../").partition("#")
            assert anchor in outlines[path].ids
    assert main(["report", str(tmp_path)]) == 0
    assert {path: path.read_text(encoding="utf-8") for path in folder.report.rglob("*.html")} == pages


def test_a_call_that_was_never_planned_is_named(folder):
    with pytest.raises(LedgerError, match="no call 0000"):
        list(raw_calls(folder, ["0" * 64]))
