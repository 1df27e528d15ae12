"""What `assaymark serve` shows of a run that goes on: progress that renews itself, and calls, whatever they say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_pages import PAYLOADS, unseen
from looking import ALL_SETTINGS, said, visiting
from markup import Page, markup_problems

from assaymark.engine import CallSpec, End, Ledger, Message, Reply, Text
from assaymark.workflow import open_server

pytestmark = pytest.mark.browser

HOSTILE = "".join(PAYLOADS.values())


def asked(trial: int, model: str) -> CallSpec:
    message = Message("user", (Text.of(f"Grade this. {HOSTILE}"),))
    return CallSpec(model=model, messages=(message,), template="", trial=trial)


CALLS = [asked(1, "reference/auditor"), asked(2, "reference/auditor"), asked(1, f"acme/{HOSTILE[:300]}")]


def answer(ledger: Ledger, call: CallSpec) -> None:
    [attempt] = ledger.commit([call.key])
    reply = Reply(text=f"Fine. {HOSTILE}", model=HOSTILE[:200], seconds=0.25, raw=f'{{"body": "{HOSTILE}"}}')
    ledger.commit(ends=[End(attempt, "replied", reply=reply)])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run <img src=x onerror=alert(1)>"
    folder.mkdir()
    with Ledger.open(folder / "ledger.db") as ledger:
        ledger.plan(CALLS)
        answer(ledger, CALLS[0])
    return folder


@pytest.fixture
def address(run: Path) -> Iterator[str]:
    with open_server(run, port=0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_progress_renews_itself_while_the_run_goes_on(browser, run, address, pictures):
    with visiting(browser, pictures) as visitor:
        visitor.page.clock.install()
        visitor.open(f"{address}/live")
        assert "1 of 3 calls are answered" in visitor.page.text_content("#said")
        visitor.picture("live/live.html", ALL_SETTINGS[0])
        with Ledger.open(run / "ledger.db") as ledger:
            answer(ledger, CALLS[2])
        # The server looks at the ledger once a second at most, by a clock of its own.
        for _ in range(40):
            visitor.page.clock.run_for(2100)
            if "2 of 3 calls" in str(visitor.page.text_content("#said")):
                break
            visitor.page.wait_for_timeout(100)
        assert "2 of 3 calls are answered" in visitor.page.text_content("#said")
        assert visitor.page.locator("tr[data-model^='acme/'] td").nth(1).text_content() == "1"
        assert visitor.spoken(f"{address}/live", f"{address}/live.json") == []


def test_live_pages_are_silent_fit_and_are_open_to_everybody(browser, address, pictures):
    problems = []
    with visiting(browser, pictures) as visitor:
        visitor.page.clock.install()
        for path in ("/live", f"/calls/{CALLS[0].key}", f"/calls/{CALLS[1].key}", "/nothing"):
            visitor.open(f"{address}{path}")
            found = [one for one in visitor.spoken(f"{address}{path}") if "404" not in one]
            for setting in ALL_SETTINGS:
                visitor.picture(f"live{path[:14]}.html", setting)
            found += [*visitor.overflow(390, 320), *visitor.printed()]
            page = Page(path, visitor.page.request.get(f"{address}{path}").text())
            found += [one for one in markup_problems(page) if "policy" not in one]
            found += [*sorted(unseen(page.text)), *visitor.barriers(ALL_SETTINGS)]
            problems += [f"{path}: {one}" for one in found]
            assert not visitor.page.evaluate("window.__canary")
    assert not problems, said(problems)
