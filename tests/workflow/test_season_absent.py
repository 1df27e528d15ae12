"""An agent that stops answering in a live season: it is absent, and the others decide."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from live_seasons import NAMES, SEASON, arrive, evening, file_of, scripted, stepped
from season_runs import Scripted, orders

from assaymark.cli import main
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import DECISIONS, Store
from assaymark.workflow.tracks.season_record_tables import NAVS


class Holding(BaseHTTPRequestHandler):
    """An agent that trades nothing."""

    def do_POST(self) -> None:
        body = json.dumps({"orders": [], "rationale": "I hold."}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[str]:
    """The model of an agent behind an address, which is gone afterwards."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Holding) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http/127.0.0.1:{server.server_port}/decide"
        server.shutdown()


def test_an_absent_agent_never_stops_the_day(tmp_path):
    source, folder = tmp_path / "market", tmp_path / "run"
    for day in SEASON[:3]:
        arrive(source, day)
    buyer = Scripted(lambda day: orders((NAMES[0], "buy", 1.0)) if day == str(SEASON[0]) else orders())
    with scripted({"test/buyer": buyer}):
        with serving() as ghost:
            (tmp_path / "season.toml").write_text(file_of(source, {"buyer": "test/buyer", "ghost": ghost}))
            assert main(["season", "init", str(tmp_path / "season.toml"), "--out", str(folder)]) == 0
            assert stepped(folder, evening(SEASON[0]))[0] == 0
        status, out, _ = stepped(folder, evening(SEASON[2]))
    assert status not in (0, 1)  # done, and degraded
    assert "live: 2 days done" in out
    assert "ghost" in out
    store = Store(RunFolder(folder))
    flags = {(one.agent.id, str(one.decided_at.date())): one.flags for one in store.read(DECISIONS)}
    assert flags["ghost", str(SEASON[0])] == ()
    assert "absent" in flags["ghost", str(SEASON[1])]
    assert all(flags["buyer", str(day)] == () for day in SEASON[:3])
    assert [one.positions for one in store.read(NAVS) if one.agent == "buyer"][-1] == {NAMES[0]: 1.0}
