"""Replies that nobody should send, to agents and to judges: none is fatal, none becomes a score, and no key is kept."""

from __future__ import annotations

import logging
import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from hostile_server import CANARY, MARK, VARIABLE, Hostile, answers_to, study_of
from outline import read
from provider_server import serving

from assaymark.cli import main
from assaymark.engine import Ledger
from assaymark.prompting import no_json
from assaymark.workflow import DECISIONS, JUDGMENTS, RunFolder, Store


class Finished:
    """A finished run whose provider was hostile, and all that it said on the way."""

    def __init__(self, root: Path) -> None:
        self.folder, self.hostile = root / "run", Hostile()
        with serving(self.hostile) as server:
            (root / "study.toml").write_text(study_of(server.url))
            self.status = main(["run", str(root / "study.toml"), "--out", str(self.folder)])
            self.asked = {one.headers["x-client-request-id"]: one for one in server.requests}
            self.sent_key = all(CANARY in one.headers["authorization"] for one in server.requests)
        store = Store(RunFolder(self.folder))
        self.judgments = {one.call_key: one for one in store.read(JUDGMENTS) if one.call_key in self.asked}
        self.again = {one.first_key for one in self.judgments.values() if one.first_key}
        self.decisions = {one.call.raw_object: one for one in store.read(DECISIONS)
                          if one.call is not None and one.call.raw_object in self.asked}  # fmt: skip

    def texts(self, key: str) -> tuple[str, str | None, bool]:
        """Which reply a call got: its name, its text if there was one, and whether it has the form asked for."""
        name = self.hostile.given[key]
        text, good = answers_to(self.asked[key].body).get(name, (None, False))
        return name, text, good


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that is done before any test looks at it; the log of everything is kept with it."""
    root = tmp_path_factory.mktemp("hostile")
    patch, lines = pytest.MonkeyPatch(), []
    patch.setenv(VARIABLE, CANARY)
    keep = logging.Handler()
    keep.emit = lambda record: lines.append(record.getMessage())
    logger, level = logging.getLogger(), logging.getLogger().level
    logger.addHandler(keep)
    logger.setLevel(logging.DEBUG)
    try:
        found = Finished(root)
    finally:
        logger.removeHandler(keep)
        logger.setLevel(level)
        patch.undo()
    found.log = lines
    return found


def test_no_reply_is_fatal_and_each_was_given(run, note):
    assert run.status == 0
    kinds = Counter(run.hostile.kinds.values())
    assert set(kinds) == {"agent", "judge"}
    for kind in kinds:
        given = {name for key, name in run.hostile.given.items() if run.hostile.kinds[key] == kind}
        assert {*answers_to(next(one.body for key, one in run.asked.items() if run.hostile.kinds[key] == kind)),
                "50 MB"} == given  # fmt: skip
    assert set(run.judgments) | set(run.decisions) | run.again == set(run.asked)
    for key in run.again:  # no JSON at all: asked once more
        _, text, good = run.texts(key)
        assert not good
        assert text is not None
        assert no_json(text)
    note("hostile replies", f"{kinds['agent']} to agents and {kinds['judge']} to judges, of {len(given)} kinds",
         "0 fatal; each recorded as it came, 50 MB too; 0 scores read from prose")  # fmt: skip


def test_judges_and_agents_are_believed_only_in_the_form_asked_for(run):
    for key, judgment in run.judgments.items():
        name, _, good = run.texts(key)
        assert judgment.status == ("ok" if good else "invalid"), name
        assert set(judgment.scores.values()) == ({1.0, 2.0} if good else set()), name  # and no 5 from what it says
    for key, decision in run.decisions.items():
        name, _, good = run.texts(key)
        assert bool(decision.rationales) == good, name
        assert ("invalid-reply" in decision.flags) == (not good and name != "50 MB"), name
        assert ("no-answer" in decision.flags) == (name == "50 MB"), name
        assert decision.actions == ()


def test_every_text_is_kept_as_it_came_and_no_page_or_table_holds_megabytes(run):
    with Ledger.open(run.folder / "ledger.db", create=False) as ledger:
        for key, reply in ledger.replies(run.asked):
            name, text, _ = run.texts(key)
            if text is None:
                assert reply.text.startswith("no answer: the reply has 50,000,000 bytes")
                assert reply.raw == "x" * 50_000_000
            else:
                assert reply.text == text.replace(CANARY, "[key]"), name
    for path in [*(run.folder / "report").rglob("*"), *(run.folder / "tables").rglob("*")]:
        assert path.is_dir() or path.stat().st_size < 3_000_000, path


def test_what_a_reply_says_is_text_on_every_page(run):
    pages = {path: path.read_text() for path in (run.folder / "report").rglob("*.html")}
    text = "".join(pages.values())
    assert [words in text for words in (MARK, "<script>document", "<img src=x")] == [True, False, False]
    for path, page in pages.items():
        outline = read(page)
        assert not [link for link in outline.links if not re.fullmatch(r"(\.\./)?[\w/.~-]*(#[\w-]+)?", link)], path
        assert not [name for name in outline.attributes if name.startswith("on")], path
        assert not {"img", "iframe", "object", "embed", "form"} & set(outline.tags), path


@pytest.mark.browser
def test_no_script_of_a_reply_runs(run, note, browser):
    pages = sorted((run.folder / "report").rglob("*.html"))
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in pages:
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert page.title() != MARK
    page.close()
    assert len(asked) == len(pages)  # nothing beside the pages themselves
    note("scripts in replies", f"{len(pages)} pages of that run in headless Chromium", "0 scripts run, nothing fetched")


def test_the_key_was_sent_and_is_nowhere(run, capsys, note):
    assert run.sent_key
    objects = 0
    with Ledger.open(run.folder / "ledger.db", create=False) as ledger:
        engine = sa.create_engine(f"sqlite:///{run.folder / 'ledger.db'}")
        with engine.connect() as connection:
            names = connection.scalars(sa.text("select sha256 from objects")).all()
        engine.dispose()
        for name in names:  # most are packed: a search of the file would not see it
            assert CANARY.encode() not in ledger.get_object(name)
            objects += 1
    files = [path for path in run.folder.rglob("*") if path.is_file()]
    for path in files:
        assert CANARY.encode() not in path.read_bytes(), path
    for path in (run.folder / "tables").glob("*.parquet"):
        assert CANARY not in str(pq.read_table(path).to_pylist()), path
    told = capsys.readouterr()
    assert CANARY not in told.out + told.err + "\n".join(run.log)
    assert main(["report", str(run.folder)]) == 0
    told = capsys.readouterr()
    assert CANARY not in told.out + told.err
    note("secrets", "a key that its provider repeats in errors and replies",
         f"in none of {objects} objects, {len(files)} files, logs, pages and screens")  # fmt: skip
