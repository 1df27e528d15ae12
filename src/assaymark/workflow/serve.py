"""Local servers for the pages of runs and for grading pages, and one site of several runs."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from os.path import realpath
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from assaymark.engine import Ledger
from assaymark.errors import AssayError, InputError, LedgerError, Problem
from assaymark.records import sha256_text, to_json, write_atomic
from assaymark.report import Site, each_page
from assaymark.report import site as sites
from assaymark.report.datasheet import COMPARISON, judges_frame
from assaymark.report.label import label_page
from assaymark.report.records.judgments import Calls
from assaymark.report.site import FRONTS, LiveView, SiteEntry, render_call, render_live, render_missing
from assaymark.workflow import ask
from assaymark.workflow import run_folder as runs
from assaymark.workflow.labelling import Labelling
from assaymark.workflow.progress import note, silent, watched
from assaymark.workflow.publish import call_progress, study_contents, study_pages
from assaymark.workflow.run_folder import RunFolder, missing, read_lock
from assaymark.workflow.score_files import open_checked
from assaymark.workflow.tables import MEASUREMENTS, Store
from assaymark.workflow.tracks import datasheet as sheets_of

PORT: Final = 8400
HOST: Final = "127.0.0.1"
"""The loopback address."""

EVERY: Final = ("", "0.0.0.0", "::")
"""Bind addresses that mean all addresses of this machine; no request names them as its host."""

_KINDS: Final = {
    ".csv": "text/csv; charset=utf-8", ".html": "text/html; charset=utf-8", ".ics": "text/calendar; charset=utf-8",
    ".json": "application/json", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
    ".xml": "application/rss+xml; charset=utf-8",
}  # fmt: skip
_SHOWN: Final = ("report", "datasheets", "certificates")
_KEY: Final = re.compile(r"/calls/([0-9a-f]{64})")
_FRESH_S: Final = 1.0
_LATELY_S: Final = 30.0
_OWN: Final = frozenset({"localhost", HOST})
_LARGEST: Final = 1 << 20  # maximum bytes of a label, which may have a comment
_EVERYWHERE: Final = {
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Response:
    """The response to one request."""

    status: int
    body: bytes = b""
    kind: str = _KINDS[".html"]
    location: str = ""


class RunServer:
    """A server of a run folder, or of the folder of a site; `answer` is its only operation."""

    def __init__(
        self, path: Path, hosts: frozenset[str] = frozenset(), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not path.exists():
            raise missing(path, "folder", "name a run folder, or the folder that a site was written to")
        self.folder = RunFolder(path)
        read_lock(self.folder)
        self.site = not self.folder.report.is_dir() and (path / "index.html").is_file()
        if not self.site and not (self.folder.has_ledger or self.folder.report.is_dir()):
            problem = "contains no pages and no run; name a run folder, or the folder of a site"
            raise InputError(str(path), [problem])
        self.hosts = frozenset(map(_host, hosts)) | {"localhost", HOST, "[::1]"}
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: list[tuple[float, LiveView]] = []

    def answer(self, target: str, host: str | None) -> Response:
        """Return the response to ``GET target``; errors become responses too."""
        if host is None or _host(re.sub(r":\d+$", "", host)) not in self.hosts:
            return _error_page(421, "This server answers under its own names only; --allow-host NAME adds one.")
        try:
            path = unquote(urlsplit(target).path)
            return self._dynamic(path) or self._file(path) or _error_page(404, "There is no such page in this folder.")
        except (AssayError, OSError, ValueError) as exc:
            return _error_page(500, str(exc))

    def _dynamic(self, path: str) -> Response | None:
        if self.site:
            return Response(302, location="/index.html") if path == "/" else None
        front = next((name for name in FRONTS if (self.folder.report / name).is_file()), None)
        if path == "/":
            return Response(302, location=f"/report/{front}" if front else "/live")
        if path == "/live":
            return _html_page(render_live(self.progress(), report=front))
        if path == "/live.json":
            return Response(200, json.dumps(self.progress().facts()).encode(), _KINDS[".json"])
        if (match := _KEY.fullmatch(path)) is None:
            return None
        if not self.folder.has_ledger:
            return _error_page(404, "This folder has no call log.")
        with Ledger.open(self.folder.ledger, create=False) as ledger:
            try:
                call = ledger.call(match[1])
            except LedgerError as exc:
                return _error_page(404, str(exc))
            return _html_page(render_call(call, next((reply for _, reply in ledger.replies([match[1]])), None)))

    def progress(self) -> LiveView:
        """Return the progress of the run, read at most once a second for all viewers."""
        with self._lock:
            now = self._clock()
            if not self._seen or now - self._seen[-1][0] >= _FRESH_S:
                models = call_progress(self.folder)
                answered = sum(done for _, done in models.values())
                # The rate in replies a second since the oldest look within `_LATELY_S`.
                self._seen = [entry for entry in self._seen if now - entry[0] <= _LATELY_S]
                then, before = self._seen[0] if self._seen else (now, None)
                rate = (answered - before.answered) / (now - then) if before and answered > before.answered else None
                self._seen.append((now, LiveView(self.folder.path.resolve().name, models, rate)))
            return self._seen[-1][1]

    def _file(self, path: str) -> Response | None:
        """Serve a file from one of the shown folders, with a suffix of `_KINDS`; None for any other path."""
        root = self.folder.path.resolve()
        file = (root / path.lstrip("/")).resolve()
        roots = [root] if self.site else [root / name for name in _SHOWN]
        inside = any(file.is_relative_to(top) for top in roots) or (not self.site and file == root / "verdicts.json")
        if not inside or file.suffix not in _KINDS or not file.is_file():
            return None
        return Response(200, file.read_bytes(), _KINDS[file.suffix])


def _html_page(html: str, status: int = 200) -> Response:
    return Response(status, html.encode("utf-8", "replace"))


def _error_page(status: int, reason: str) -> Response:
    return _html_page(render_missing(reason), status)


def _host(name: str) -> str:
    """Return a host name or address in the form of a ``Host`` header: lower case, IPv6 in brackets."""
    plain = name.lower()
    return f"[{plain}]" if ":" in plain and not plain.startswith("[") else plain


class LabelServer:
    """The server of grading pages; a label is on disk before it is confirmed."""

    def __init__(self, labelling: Labelling, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.labelling, self._clock = labelling, clock
        # A secret in every address, so that no other page on this machine can read or send labels.
        self.token = secrets.token_urlsafe(16)

    def path(self, grader: str) -> str:
        """Return the address of one grader's page."""
        return f"/{self.token}/{grader}/"

    def answer(self, target: str, host: str | None) -> Response:
        """Return the response to ``GET target``: a grading page with the labels given so far."""
        if host is None or _host(re.sub(r":\d+$", "", host)) not in _OWN:
            return _error_page(421, "This server answers under 127.0.0.1 and localhost only.")
        grader = self._grader(target, "")
        if grader is None:
            return _error_page(404, "There is no such page. The address is in the terminal; each start has a new one.")
        try:
            return _html_page(label_page(self.labelling.sheet(grader), labels=self.labelling.labels(grader)))
        except (AssayError, OSError, ValueError) as exc:
            return _error_page(500, str(exc))

    def receive(self, target: str, body: bytes, *, host: str, origin: str | None, kind: str | None) -> Response:
        """Store the label in ``POST target``, if the request comes from a page of this server."""
        if _host(re.sub(r":\d+$", "", host)) not in _OWN or origin != f"http://{host}":
            return Response(403, b"labels are taken from this server's own page only", _KINDS[".txt"])
        grader = self._grader(target, "save")
        if grader is None or kind != "application/json":
            return Response(404, b"no such page", _KINDS[".txt"])
        try:
            label: Any = json.loads(body)
        except (ValueError, RecursionError):
            label = None
        if (problem := self.labelling.label_problem(grader, label)) is not None:
            return Response(400, problem.encode(), _KINDS[".txt"])
        record = {"id": label["id"], "scores": label["scores"], "at": to_json(self._clock())}
        try:
            self.labelling.add(grader, record | {name: label[name] for name in ("seconds", "comment") if name in label})
        except OSError as exc:
            return Response(500, f"cannot be written: {exc.strerror or exc}".encode(), _KINDS[".txt"])
        return Response(204)

    def _grader(self, target: str, name: str) -> str | None:
        """Return the grader of an address; None if its token is wrong."""
        parts = urlsplit(target).path.split("/")
        if len(parts) != 4 or not secrets.compare_digest(parts[1].encode(), self.token.encode()) or parts[3] != name:
            return None
        return parts[2] if parts[2] in self.labelling.sheets.graders else None


class _Handler(BaseHTTPRequestHandler):
    """Passes requests to the served object."""

    served: RunServer | LabelServer
    server_version = "assaymark"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer a ``GET``; a ``HEAD`` gets no body."""
        self._send(self.served.answer(self.path, self.headers.get("Host")))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Store a label if grading pages are served; refuse any other ``POST``."""
        length = self.headers.get("Content-Length", "")
        if not isinstance(self.served, LabelServer):
            return self.send_error(501, "this server accepts no data")
        if not (length.isascii() and length.isdigit() and int(length) <= _LARGEST):
            return self.send_error(413, "too large")
        host, origin, kind = (self.headers.get(name) for name in ("Host", "Origin", "Content-Type"))
        body = self.rfile.read(int(length))
        return self._send(self.served.receive(self.path, body, host=host or "", origin=origin, kind=kind))

    def _send(self, answer: Response) -> None:
        self.send_response(answer.status)
        for name, value in {**_EVERYWHERE, **({"Location": answer.location} if answer.location else {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal shows the address."""


def open_server(
    path: Path, host: str = HOST, port: int = PORT, *, allowed: Collection[str] = ()
) -> ThreadingHTTPServer:
    """Return a server of a folder; the caller runs ``serve_forever`` and closes it."""
    hosts = set() if host in EVERY else {host}
    return listen(RunServer(path, frozenset({*hosts, *allowed})), host, port)


def listen(served: RunServer | LabelServer, host: str, port: int) -> ThreadingHTTPServer:
    """Return a server at an address; raises `InputError` if the address is taken."""
    handler = type("Handler", (_Handler,), {"served": served})
    try:
        server = ThreadingHTTPServer((host, port), handler)
    except OSError as exc:
        problem = f"is not available: {exc.strerror or exc}; choose another with --port"
        raise InputError(f"{host}:{port}", [problem]) from None
    server.daemon_threads = True
    return server


# --- One site of several runs ------------------------------------------------------------------------------------

TITLE: Final = "Supported claims"

_NAME: Final = "several runs"
"""The name in the manifest of a site of several runs, the same whichever runs it has."""

Write = Callable[[Path, Site], object]


def join_runs(
    folders: Sequence[RunFolder], site: Path, title: str = TITLE, calls: Calls = "all"
) -> tuple[tuple[SiteEntry, ...], tuple[Path, ...]]:
    """Write one site of finished runs of any kind; returns the runs in menu order, and the files."""
    paths, problems = [Path(realpath(folder.path)) for folder in folders], []
    for at, (folder, path) in enumerate(zip(folders, paths, strict=True)):
        if path in paths[:at]:
            problems.append(Problem(str(folder.path), "is named twice"))
        elif not folder.lock.is_file() and not folder.datasheets.is_dir() and not folder.check.is_file():
            problem = "is not a run folder" if folder.path.exists() else "does not exist"
            problems.append(Problem(str(folder.path), f"{problem}; name folders of finished runs"))
    if problems:
        raise InputError("runs of a site", problems)
    runs.site_files(site, _NAME, "")
    shown: dict[str, tuple[SiteEntry, Write]] = {}
    for at, (folder, path) in enumerate(zip(folders, paths, strict=True)):
        note("reading the runs", at, len(folders))
        # The folder's name, reduced to letters, digits and hyphens.
        key = re.sub(r"[^a-z0-9]+", "-", path.name.lower()).strip("-")[:40].strip("-") or "run"
        key = key if key not in shown else f"{key}-{sha256_text(str(path))[:6]}"
        with watched(silent):
            shown[key] = _site_entry(folder, calls)
    fronts = {key: front for key, (front, _) in shown.items()}
    links = sites.menu(fronts)

    def write(out: Path) -> None:
        for at, (key, (_, pages)) in enumerate(shown.items()):
            note("writing pages", at, len(shown))
            pages(out / key, sites.site_of(links, key))
        write_atomic(out / "index.html", sites.render_site_index(fronts, title))

    files = runs.replace_site(site, _NAME, "", write)
    note("writing pages", len(shown), len(shown))
    return tuple(fronts[key] for key in links), files


def _site_entry(folder: RunFolder, calls: Calls) -> tuple[SiteEntry, Write]:
    """Return a run's entry on the first page of a site, and the function that writes its pages."""
    read = None if calls == "none" else ask.calls_of(folder)
    match runs.kind_of(folder):
        case "table":
            run = open_checked(folder).run
            return sites.study_entry(run), lambda out, site: runs.replace_files(out, each_page(run, site))
        case "portbench":
            from assaymark.report.portbench import each_benchmark_page
            from assaymark.workflow.tracks.benchmark import decide_bench

            bench = decide_bench(folder)
            return sites.benchmark_entry(bench), lambda out, site: runs.replace_files(
                out, each_benchmark_page(bench, site, read)
            )
        case "season":
            from assaymark.workflow.tracks.season_publish import decide_judged_season, shipped_languages, write_season

            season, measured, *_ = decide_judged_season(folder)
            return sites.season_entry(season), lambda out, site: write_season(
                out, season, shipped_languages(), measured, site
            )
        case "judges":
            sheets, agreement = sheets_of.stored_datasheets(folder), Store(folder).stored(MEASUREMENTS)
            answers = ask.stored_answers(folder)
            return sites.judges_entry(sheets, folder.path.resolve().name), lambda out, site: runs.replace_files(
                out, sheets_of.datasheet_pages(sheets, agreement, judges_frame(COMPARISON, site), answers, read)
            )
        case "study":
            shown = study_contents(folder)
            return sites.study_entry(shown[0]), lambda out, site: runs.replace_files(
                out, study_pages(shown, site, calls)
            )
