"""`assaymark verify`: what differs is named, what is as it was written is not; and runs that can only be read."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from engine_calls import call
from made_records import STUDY
from version_1_runs import unanchored

from assaymark.cli import main
from assaymark.engine import Ledger
from assaymark.errors import AssayError
from assaymark.workflow import RunFolder, open_locked, verify_run


def differing(folder: Path) -> list[str]:
    return [str(one) for one in verify_run(RunFolder(folder)).differences]


def verify(folder: Path, capsys, status: int = 0) -> str:
    capsys.readouterr()
    assert main(["verify", str(folder)]) == status
    return " ".join("".join(capsys.readouterr()).split())


def killed(run: Path) -> None:
    """Plan calls in a process that ends without closing the ledger: they are in its write-ahead log alone."""
    code = (
        "import os, sys; from assaymark.engine import Ledger; from engine_calls import call; "
        "Ledger.open(sys.argv[1]).plan([call(1), call(2)]); os._exit(9)"
    )
    paths = os.pathsep.join([str(Path(__file__).parents[1] / "engine"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", code, str(run / "ledger.db")]
    assert subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=False).returncode == 9
    assert (run / "ledger.db-wal").stat().st_size > 0


def test_a_run_that_is_as_it_was_written(finished, tmp_path, capsys):
    out = verify(finished, capsys)
    for what in ("study.lock: every field", "plan.toml: every byte", "ledger.db: ", "tables: 9, ", "SHA256SUMS: "):
        assert f"same {what}" in out
    assert "DIFFERS" not in out
    assert "note" not in out
    assert "contains no run" in verify(tmp_path, capsys, 1)
    assert "no such run folder" in verify(tmp_path / "none", capsys, 1)


def test_every_difference_is_named_at_once(run, capsys):
    (run / "plan.toml").write_text((run / "plan.toml").read_text() + "# one more line\n")
    (run / "tables" / "judgments.parquet").unlink()
    certificate = min((run / "certificates").iterdir())
    certificate.unlink()
    (run / "certificates" / "added.json").write_text("{}")
    with closing(sqlite3.connect(run / "ledger.db")) as ledger, ledger:
        ledger.execute("update calls set planned_at = 0 where rowid = 2")
    assert main(["verify", str(run), "--json"]) == 1
    out, err = capsys.readouterr()
    assert "5 differences, named above" in err
    found = {one["file"]: one["what"] for one in json.loads(out)["differences"]}
    assert list(found) == [
        "plan.toml", "ledger.db", "tables/judgments.parquet", f"certificates/{certificate.name}",
        "certificates/added.json",
    ]  # fmt: skip
    assert found["ledger.db"].startswith("row 2 of calls (key ")
    assert "make it with assaymark judge" in found["tables/judgments.parquet"]


def test_no_field_of_a_lock_can_be_edited_after_the_first_call(run):
    path = run / "study.lock"
    lock = path.read_bytes()
    for field in (
        "software", "plan_hash", "locked_at", "tables", "preflight", "date_probes", "amendments", "preregistered",
        "plan_sha256", "format", "new",
    ):  # fmt: skip
        path.write_text(json.dumps(json.loads(lock) | {field: "other"}))
        assert any(f"its {field} was edited" in one and '"other"' in one for one in differing(run))
        with pytest.raises(AssayError, match=rf"was edited after the first call under it \({field}\)|damaged"):
            open_locked(RunFolder(run))


def test_a_lock_that_was_taken_away_is_missed_and_comes_back_as_it_was(run, tmp_path, ran):
    lock, other = run / "study.lock", tmp_path / "other.toml"
    before = lock.read_bytes()
    lock.unlink()
    assert any(one.startswith("study.lock: is gone") for one in differing(run))
    other.write_text(STUDY.read_text().replace("seed = ", "seed = 1", 1))
    assert "calls were made under the lock of another plan" in ran("lock", other, "--out", run, status=1)
    assert not lock.exists()
    ran("lock", STUDY, "--out", run)
    assert lock.read_bytes() == before
    assert differing(run) == []


def test_an_amended_lock_is_the_one_that_the_ledger_knows(run, tmp_path, ran):
    changed = tmp_path / "changed.toml"
    changed.write_text(STUDY.read_text().replace('title = "', 'title = "Again: ', 1))
    before = (run / "study.lock").read_bytes()
    ran("amend", changed, "--out", run, "--reason", "a better title")
    assert differing(run) == []
    (made,) = (run / "amendments").iterdir()
    made.write_text(made.read_text().replace("better", "bitter"))
    assert differing(run)[0].startswith(f"amendments: {made.name} was edited")
    made.write_text(made.read_text().replace("bitter", "better"))
    (run / "study.lock").write_bytes(before)  # as if nothing had been amended
    assert any("its amendments was edited" in one for one in differing(run))


def test_a_run_made_before_anything_was_anchored_or_anybody_asked_says_so(run, imported, capsys):
    unanchored(run)
    lock = json.loads((run / "study.lock").read_text())
    del lock["plan_sha256"]
    (run / "study.lock").write_text(json.dumps(lock))
    out = verify(run, capsys)
    for name in ("study.lock", "plan.toml", "ledger.db", "SHA256SUMS"):
        assert f"note {name}: " in out
    assert "DIFFERS" not in out
    # the tables of its manifest are held against it all the same
    (run / "tables" / "evidence.parquet").write_bytes(b"")
    verify(run, capsys, 1)
    assert main(["lock", str(STUDY), "--out", str(imported)]) == 0
    assert "study.lock: the call log does not have it: no call was made under it yet" in verify(imported, capsys)


def test_of_a_ledger_new_rows_of_a_killed_run_are_no_difference_and_a_ledger_that_is_gone_is(run, capsys):
    killed(run)
    out = verify(run, capsys)
    assert "written after its last clean close, and so not sealed yet: objects, rows " in out
    with Ledger.open(run / "ledger.db") as ledger:
        ledger.plan([call(3)])
    assert verify_run(RunFolder(run)).notes == ()
    (run / "ledger.db").write_bytes(b"something else")
    assert "DIFFERS ledger.db: is not a call log" in verify(run, capsys, 1)
    (run / "ledger.db").unlink()
    assert "ledger.db: is gone; the replies behind judgments are in it" in differing(run)
    (run / "tables" / "manifest.json").unlink()
    assert differing(run)[-1].startswith("tables/manifest.json: is gone, and with it the digests of the tables")


READ = """
import http.client, sys, threading
from pathlib import Path
from assaymark.cli import main
from assaymark.workflow.serve import open_server

run, *others, site = sys.argv[1:]
try:
    (Path(run) / "new").touch()
except OSError:
    pass
else:
    sys.exit("this can be written")
for one in (run, *others):
    assert main(["verify", one]) == 0
    with open_server(Path(one), port=0) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        for page in ("/live.json", "/report/index.html"):
            asked = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
            asked.request("GET", page)
            assert asked.getresponse().status == 200, page
        server.shutdown()
assert main(["report", run]) == 0
assert main(["report", run, "--out", site, "--calls", "none"]) == 0
"""


def test_a_run_can_be_looked_at_where_nothing_can_be_written(finished, tmp_path):
    """A finished run, and what a run that was killed leaves: its log with its index, and the log alone."""
    root = tmp_path / "medium"
    whole, indexed, logged = (Path(shutil.copytree(finished, root / name)) for name in ("whole", "indexed", "logged"))
    killed(indexed)
    killed(logged)
    (logged / "ledger.db-shm").unlink()
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    (tmp_path / "read.py").write_text(READ)
    mounted = f'mount -o bind "{root}" "{root}" && mount -o remount,bind,ro "{root}" && exec "$@"'
    inside = ["unshare", "-m", "sh", "-c", mounted, "sh"]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a mount namespace: unshare -m, and a bind mount that is read-only")
    command = [*inside, sys.executable, tmp_path / "read.py", whole, indexed, logged, tmp_path / "site"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("not sealed yet: objects, rows") == 2
    assert (tmp_path / "site" / "index.html").is_file()
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
