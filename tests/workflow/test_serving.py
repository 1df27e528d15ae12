"""A run folder shown in the browser: its pages, its progress, single calls, and nothing that is not for showing."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from assaymark.engine import CallSpec, End, Ledger, Message, Reply, Text
from assaymark.errors import InputError
from assaymark.workflow import Served, open_server

HOSTILE = "<script>document.title='got in'</script>"


def asked(trial: int) -> CallSpec:
    message = Message("user", (Text.of(f"Grade this. {HOSTILE}"),))
    return CallSpec(model="reference/auditor", messages=(message,), template="", trial=trial)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three planned calls, one of them answered, and a page."""
    calls = [asked(trial) for trial in (1, 2, 3)]
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.plan(calls)
        answer(ledger, calls[0])
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "index.html").write_text("<h1>verdicts</h1>", encoding="utf-8")
    (tmp_path / "verdicts.json").write_text("[]", encoding="utf-8")
    (tmp_path / "plan.toml").write_text("secret = 1", encoding="utf-8")
    return tmp_path


def answer(ledger: Ledger, call: CallSpec) -> None:
    [attempt] = ledger.commit([call.key])
    reply = Reply(text=f"Fine. {HOSTILE}", model="auditor-1", seconds=0.25, raw='{"body": 1}')
    ledger.commit(ends=[End(attempt, "replied", reply=reply)])


@contextmanager
def over_loopback(path: Path, **listening: Any) -> Iterator[http.client.HTTPConnection]:
    with open_server(path, port=0, **listening) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        connection = http.client.HTTPConnection("127.0.0.1", int(server.server_address[1]), timeout=10)
        try:
            yield connection
        finally:
            connection.close()
            server.shutdown()
            thread.join()


def got(connection: http.client.HTTPConnection, target: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    connection.request("GET", target, headers=headers)
    reply = connection.getresponse()
    return reply.status, reply.read(), {name.lower(): value for name, value in reply.getheaders()}


def test_the_start_leads_to_the_report_or_to_the_progress(run: Path) -> None:
    with over_loopback(run) as connection:
        status, _, headers = got(connection, "/")
        assert (status, headers["location"]) == (302, "/report/index.html")
        status, body, headers = got(connection, "/report/index.html")
        assert (status, body) == (200, b"<h1>verdicts</h1>")
        assert headers["x-content-type-options"] == "nosniff"
        connection.request("HEAD", "/verdicts.json")
        reply = connection.getresponse()
        assert (reply.status, reply.read(), reply.getheader("Content-Length")) == (200, b"", "2")
    (run / "report" / "index.html").rename(run / "report" / "datasheets.html")
    assert Served(run).answer("/", "localhost:8400").location == "/report/datasheets.html"
    assert b'href="/report/datasheets.html"' in Served(run).answer("/live", "localhost:8400").body
    (run / "report" / "datasheets.html").unlink()
    assert Served(run).answer("/", "localhost:8400").location == "/live"


def test_progress_follows_the_ledger(run: Path) -> None:
    now = [100.0]
    served = Served(run, clock=lambda: now[0])
    assert served.standing().said() == "1 of 3 calls are answered; nothing has come in lately."
    with Ledger.open(run / "ledger.db") as ledger:
        answer(ledger, asked(2))
    now[0] += 0.5  # asked again within a second, the ledger is left alone
    assert json.loads(served.answer("/live.json", "localhost").body)["rows"][0]["answered"] == 1
    now[0] += 1.5
    found = json.loads(served.answer("/live.json", "localhost").body)
    assert found["rows"] == [{"model": "reference/auditor", "planned": 3, "answered": 2}]
    assert found["said"] == "2 of 3 calls are answered, 0.5 a second lately; about 2 s for the others."
    assert not found["done"]
    page = served.answer("/live", "127.0.0.1:8400").body.decode()
    assert "2 of 3 calls" in page
    assert "connect-src" in page


def test_a_call_is_shown_as_text(run: Path) -> None:
    page = Served(run).answer(f"/calls/{asked(1).key}", "localhost").body.decode()
    assert HOSTILE not in page
    assert page.count("&lt;script&gt;document") == 2
    assert '{"body": 1}' in page
    assert "0.250" in page
    assert "There is none yet." in Served(run).answer(f"/calls/{asked(3).key}", "localhost").body.decode()
    assert Served(run).answer(f"/calls/{'0' * 64}", "localhost").status == 404


def test_nothing_else_is_handed_out(run: Path) -> None:
    (run / "report" / "link.html").symlink_to(run / "plan.toml")
    for target in (
        "/plan.toml", "/ledger.db", "/report/../plan.toml", "/report/%2e%2e/plan.toml", "/report/..%2fledger.db",
        "//etc/passwd", "/report/", "/report/index.html%00", "/tables/decisions.parquet", "/report/link.html",
        "http://[",
    ):  # fmt: skip
        found = Served(run).answer(target, "localhost")
        assert found.status in (404, 500), target
        assert b"secret" not in found.body, target


def test_other_names_for_this_server_are_refused_unless_they_are_allowed(run: Path) -> None:
    page, served = "/report/index.html", Served(run, frozenset({"lab.example.org", "10.0.0.7", "FE80::1"}))
    for host in (None, "", "attacker.example", "attacker.example:8400", "localhost.attacker.example"):
        assert Served(run).answer(page, host).status == 421
    for host in ("Lab.Example.org", "lab.example.org:8400", "10.0.0.7:8400", "[fe80::1]:8400", "localhost"):
        assert served.answer(page, host).status == 200
    assert served.answer(page, "example.org").status == 421
    with over_loopback(run, host="0.0.0.0", allowed=["lab.example.org"]) as connection:
        named = {
            host: got(connection, page, Host=host)[0] for host in ("lab.example.org", "0.0.0.0", "attacker.example")
        }
        assert [*named.values()] == [200, 421, 421]
    with over_loopback(run) as connection:
        assert got(connection, page, Host="attacker.example")[0] == 421
        connection.request("POST", "/live")
        assert connection.getresponse().status == 501


def test_a_site_is_shown_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("leaderboard", encoding="utf-8")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "ash.html").write_text("ash", encoding="utf-8")
    served = Served(tmp_path)
    assert served.answer("/", "localhost").location == "/index.html"
    assert served.answer("/agents/ash.html?from=index", "localhost").body == b"ash"
    assert served.answer("/../x.html", "localhost").status == 404


def test_what_cannot_be_served_is_said(run: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="neither pages nor a run"):
        Served(empty)
    with open_server(run, port=0) as server, pytest.raises(InputError, match="choose another with --port"):
        open_server(run, port=int(server.server_address[1]))
