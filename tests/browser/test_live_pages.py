"""Live pages of `assaymark serve`: progress that renews itself, and calls with any content."""

from __future__ import annotations

import threading

import pytest
from hostile_pages import PAYLOADS, unseen
from looking import said, visiting
from markup import Page, markup_problems

from assaymark.engine import CallSpec, End, Ledger, Message, Reply, Text
from assaymark.workflow import open_server

pytestmark = pytest.mark.browser

HOSTILE = "".join(PAYLOADS.values())
CALLS = [
    CallSpec(model=model, messages=(Message("user", (Text.of(f"Grade this. {HOSTILE}"),)),), template="", trial=trial)
    for trial, model in ((1, "reference/auditor"), (2, "reference/auditor"), (1, f"acme/{HOSTILE[:300]}"))
]


def answer(ledger: Ledger, call: CallSpec) -> None:
    [attempt], _ = ledger.commit([(call.key, None)])
    reply = Reply(text=f"Fine. {HOSTILE}", model=HOSTILE[:200], seconds=0.25, raw=f'{{"body": "{HOSTILE}"}}')
    ledger.commit(ends=[End(attempt, "replied", reply=reply)])


def test_live_pages_renew_themselves_are_silent_fit_and_are_open_to_everybody(browser, tmp_path, pictures):
    run, problems = tmp_path / "run <img src=x onerror=alert(1)>", []
    run.mkdir()
    with Ledger.open(run / "ledger.db") as ledger:
        ledger.plan(CALLS)
        answer(ledger, CALLS[0])
    with open_server(run, port=0) as server, visiting(browser, pictures) as visitor:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        visitor.page.clock.install()
        for path in (f"/calls/{CALLS[0].key}", f"/calls/{CALLS[1].key}", "/nothing", "/live"):
            visitor.open(f"{address}{path}")
            if path == "/live":
                assert "1 of 3 calls are answered" in visitor.page.text_content("#said")
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
            found = [one for one in visitor.spoken(f"{address}{path}", f"{address}/live.json") if "404" not in one]
            visitor.pictures(f"live{path[:14]}.html")
            found += [*visitor.overflow(390, 320), *visitor.printed()]
            page = Page(path, visitor.page.request.get(f"{address}{path}").text())
            found += [one for one in [*markup_problems(page), *page.errors] if "policy" not in one]
            found += [*sorted(unseen(page.text)), *visitor.barriers()]
            problems += [f"{path}: {one}" for one in found]
            assert not visitor.page.evaluate("window.__canary")
        server.shutdown()
        thread.join()
    assert not problems, said(problems)
