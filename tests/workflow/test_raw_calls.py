"""From a judgment to its raw call: the pages of finished runs list every call once, with its verbatim reply."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from outline import raw_texts, read

from assaymark.engine import Ledger, Text
from assaymark.errors import LedgerError
from assaymark.workflow import ANCHOR, DECISIONS, JUDGMENTS, PAIRS, POINTS, PROBE, RunFolder, Store, raw_calls, report

CALLS = "calls/page-*.html"


def judged_keys(folder: RunFolder) -> list[str]:
    store = Store(folder)
    tables = [table for table in (JUDGMENTS, ANCHOR, PROBE) if store.rows(table)]
    return [one.call_key for table in tables for one in store.read(table)]


def shown(folder: RunFolder) -> Counter[str]:
    """Return how often the pages of calls list each key."""
    found = Counter[str]()
    for page in folder.report.glob(CALLS):
        found.update(re.findall(r"<dt>Key</dt><dd><code>([0-9a-f]{64})</code>", page.read_text(encoding="utf-8")))
    return found


@pytest.fixture(params=["finished", "own_run"])
def folder(request) -> RunFolder:
    return RunFolder(request.getfixturevalue(request.param))


def test_every_call_of_a_run_stands_on_one_page_and_can_be_read_back(folder):
    keys = judged_keys(folder)
    pages = {path: path.read_text(encoding="utf-8") for path in folder.report.rglob("*.html")}
    decided = {one.call.raw_object for one in Store(folder).read(DECISIONS) if one.call.raw_object}
    assert shown(folder) == Counter({*keys} | decided)
    # Replies, and what was asked, from the texts of the pages.
    texts = {name: text for path, page in pages.items() if path.parent.name == "calls"
             for name, text in raw_texts(page).items()}  # fmt: skip
    with Ledger.open(folder.ledger, create=False) as ledger:
        for key, reply in ledger.replies({*keys}):
            assert texts[f"c{key[:16]}"][0] == reply.text
        call = ledger.call(keys[-1])
    for message in call.messages:
        assert "\n\n".join(texts[f"t{part.sha256[:16]}"][0] for part in message.parts) == message.text
    # Every judgment leads to its call, and no page is larger than its budget.
    judged = [page for path, page in pages.items() if path.parent.name == "judgments" and path.name != "index.html"]
    links = [link for page in judged for link in read(page).links if "../calls/" in link]
    assert {link.partition("#c")[2] for link in links} == {key[:16] for key in keys}
    sizes = {path: path.stat().st_size for path in pages}
    assert max(sizes.values()) < 1_000_000
    assert max(size for path, size in sizes.items() if path.parent.name in ("judgments", "calls")) < 450_000
    # Of each text only the first call has the words.
    seen: dict[str, Text] = {}
    for one in raw_calls(folder, list(dict.fromkeys(keys))):
        assert not {text.sha256 for text in one.new} & seen.keys()
        seen |= {text.sha256: text for text in one.new}
        assert {text.sha256 for text in one.call.texts} <= seen.keys()
    assert all(Text.of(text.text) == text for text in seen.values())
    with pytest.raises(LedgerError, match="no call 0000"):
        list(raw_calls(folder, ["0" * 64]))


def test_calls_can_be_left_out_and_a_report_twice_is_the_same_bytes(own):
    folder = RunFolder(own)
    before = {path: path.read_bytes() for path in folder.report.rglob("*.html")}
    report(folder, calls="judged")
    assert set(shown(folder)) == set(judged_keys(folder))
    report(folder, calls="none")
    assert not list(folder.report.glob(CALLS))
    assert (folder.report / "judgments" / "index.html").is_file()
    report(folder)
    assert set(shown(folder)) > set(judged_keys(folder))
    assert {path: path.read_bytes() for path in folder.report.rglob("*.html")} == before
    Path(folder.ledger).unlink()  # without its ledger a run still has its judgments
    report(folder)
    assert not list(folder.report.glob(CALLS))
    assert "<code title=" in (next(iter(folder.report.glob("judgments/[!i]*.html")))).read_text(encoding="utf-8")


def test_a_datasheet_leads_to_answers_and_answers_to_their_calls(tasks, tmp_path, ran):
    """Over pairs and over single texts; a page that is made again is the same bytes."""
    judges = [word for name in ("checklist", "reader") for word in ("--judge", f"reference/{name}")]
    ran("datasheet", *judges, "--tasks", tasks, "--no-strict", "--out", tmp_path)
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
    ran("report", tmp_path)
    assert {path: path.read_text(encoding="utf-8") for path in folder.report.rglob("*.html")} == pages
