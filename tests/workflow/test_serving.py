"""A run folder shown in the browser: its pages, its progress and single calls, and no other file."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from outline import read

from assaymark.cli import main
from assaymark.engine import CallSpec, End, Ledger, Message, Reply, Text
from assaymark.errors import AssayError, InputError
from assaymark.workflow import RunFolder, RunServer, join_runs, open_server

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
    [attempt], _ = ledger.commit([(call.key, None)])
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
    assert RunServer(run).answer("/", "localhost:8400").location == "/report/datasheets.html"
    assert b'href="/report/datasheets.html"' in RunServer(run).answer("/live", "localhost:8400").body
    (run / "report" / "datasheets.html").unlink()
    assert RunServer(run).answer("/", "localhost:8400").location == "/live"


def test_progress_follows_the_ledger(run: Path) -> None:
    now = [100.0]
    served = RunServer(run, clock=lambda: now[0])
    assert served.progress().progress() == "1 of 3 calls are answered; nothing has come in lately."
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
    page = RunServer(run).answer(f"/calls/{asked(1).key}", "localhost").body.decode()
    assert HOSTILE not in page
    assert page.count("&lt;script&gt;document") == 2
    assert '{"body": 1}' in page
    assert "0.250" in page
    assert "There is none yet." in RunServer(run).answer(f"/calls/{asked(3).key}", "localhost").body.decode()
    assert RunServer(run).answer(f"/calls/{'0' * 64}", "localhost").status == 404


def test_nothing_else_is_handed_out(run: Path) -> None:
    (run / "report" / "link.html").symlink_to(run / "plan.toml")
    for target in (
        "/plan.toml", "/ledger.db", "/report/../plan.toml", "/report/%2e%2e/plan.toml", "/report/..%2fledger.db",
        "//etc/passwd", "/report/", "/report/index.html%00", "/tables/decisions.parquet", "/report/link.html",
        "http://[",
    ):  # fmt: skip
        found = RunServer(run).answer(target, "localhost")
        assert found.status in (404, 500), target
        assert b"secret" not in found.body, target


def test_other_names_for_this_server_are_refused_unless_they_are_allowed(run: Path) -> None:
    page, served = "/report/index.html", RunServer(run, frozenset({"lab.example.org", "10.0.0.7", "FE80::1"}))
    for host in (None, "", "attacker.example", "attacker.example:8400", "localhost.attacker.example"):
        assert RunServer(run).answer(page, host).status == 421
    for host in ("Lab.Example.org", "lab.example.org:8400", "10.0.0.7:8400", "[fe80::1]:8400", "localhost"):
        assert served.answer(page, host).status == 200
    assert served.answer(page, "example.org").status == 421
    with over_loopback(run, host="0.0.0.0", allowed=["lab.example.org"]) as connection:
        for host, status in (("lab.example.org", 200), ("0.0.0.0", 421), ("attacker.example", 421)):
            assert got(connection, page, Host=host)[0] == status
        connection.request("POST", "/live")
        assert connection.getresponse().status == 501


def test_a_site_is_shown_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("leaderboard", encoding="utf-8")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "ash.html").write_text("ash", encoding="utf-8")
    served = RunServer(tmp_path)
    assert served.answer("/", "localhost").location == "/index.html"
    assert served.answer("/agents/ash.html?from=index", "localhost").body == b"ash"
    assert served.answer("/../x.html", "localhost").status == 404


def test_what_cannot_be_served_is_said(run: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="contains no pages and no run"):
        RunServer(empty)
    with open_server(run, port=0) as server, pytest.raises(InputError, match="choose another with --port"):
        open_server(run, port=int(server.server_address[1]))


# --- several runs as one site -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sheets(own_copy, tasks) -> Path:
    """The datasheets of two judges. Not to be changed."""
    judges = ("--judge", "reference/slot-biased", "--judge", "reference/checklist", "--tasks", str(tasks))

    def build(folder: Path) -> None:
        assert main(["datasheet", *judges, "--out", str(folder / "Our judges")]) == 0

    return own_copy("two-datasheets", build) / "Our judges"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def joined(own_run, sheets, own_copy) -> Path:
    """Both as one site. Not to be changed."""

    def build(folder: Path) -> None:
        site, before = folder / "site", files(own_run / "report")
        runs, _ = join_runs([RunFolder(sheets), RunFolder(own_run)], site, title="Two runs", calls="none")
        assert (site / "index.html").is_file()
        assert [run.kind for run in runs] == ["study", "judges"]
        assert files(own_run / "report") == before

    return own_copy("joined", build) / "site"


def test_every_run_has_its_pages_below_its_name_with_the_menu_of_all(joined, sheets):
    first = read((joined / "index.html").read_text(encoding="utf-8"))
    assert {"run/index.html", "our-judges/datasheets.html"} <= set(first.links)
    for path in joined.rglob("*.html"):
        links = set(read(path.read_text(encoding="utf-8")).links)
        up = "../" * (len(path.relative_to(joined).parts) - 1)
        assert f"{up}run/index.html" in links or path.parent.name == "run", path
        assert f"{up}index.html" in links or path == joined / "index.html", path
    own = read((sheets / "report" / "datasheets.html").read_text(encoding="utf-8"))
    there = read((joined / "our-judges" / "datasheets.html").read_text(encoding="utf-8"))
    assert "kappa" in own.ids  # the agreement of judges
    assert there.ids == own.ids


def test_one_command_makes_the_same_bytes_again_and_with_fewer_runs_the_others_go(
    joined, own_run, sheets, tmp_path, ran
):
    words = ["report", str(own_run), str(sheets), "--title", "Two runs", "--calls", "none", "--json"]
    site = tmp_path / "site"
    assert '"kind":"judges"' in ran(*words, "--out", site)
    assert files(site) == files(joined)
    join_runs([RunFolder(sheets)], site)
    assert not (site / "run").exists()
    assert (site / "our-judges" / "datasheets.html").is_file()


def test_all_that_is_no_run_is_said_at_once_and_nothing_is_written(own_run, sheets, tmp_path, ran):
    (tmp_path / "empty").mkdir()
    site, locked, loop = tmp_path / "site", tmp_path / "locked", tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(InputError) as caught:
        join_runs([RunFolder(one) for one in (own_run, own_run, tmp_path / "empty", loop, own_run / "plan.toml")], site)
    for what in ("is named twice", "empty: is not a run folder", "loop: does not exist", "toml: is not a run folder"):
        assert what in str(caught.value)
    locked.mkdir()
    for name in ("plan.toml", "study.lock"):
        (locked / name).write_bytes((own_run / name).read_bytes())
    with pytest.raises(AssayError, match="no records here"):
        join_runs([RunFolder(locked)], site)
    assert not site.exists()
    site.mkdir()
    (site / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="new or an empty folder"):
        join_runs([RunFolder(own_run)], site)
    assert files(site) == {"notes.txt": b"mine"}
    assert "--out SITE" in ran("report", own_run, sheets, status=2)


def test_a_folder_of_datasheets_is_reported_anew_and_a_site_without_calls_has_none(sheets, own_run, tmp_path, capsys):
    before = files(sheets / "report")
    (sheets / "report" / "datasheets.html").unlink()
    assert main(["report", str(sheets)]) == 0
    assert files(sheets / "report") == before
    assert "datasheets.html" in capsys.readouterr().out
    assert main(["report", str(own_run), "--out", str(tmp_path / "site"), "--calls", "none"]) == 0
    assert (tmp_path / "site" / "run" / "judgments" / "index.html").is_file()
    assert not (tmp_path / "site" / "run" / "calls").exists()
