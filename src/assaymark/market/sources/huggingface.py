"""Files of datasets through the client `huggingface_hub`: one file of one commit, with its provenance."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assaymark.errors import InputError, Problem
from assaymark.market.files import snapshot_from_file
from assaymark.market.snapshot import Origin, with_texts
from assaymark.market.sources import request as service
from assaymark.market.sources.request import (
    Pull,
    Request,
    RetryPolicy,
    ServiceUnavailable,
    SourceTables,
    TransientError,
    safe_line,
)
from assaymark.prompting import Rejected, strict_json
from assaymark.records import canonical_json, write_atomic

SOURCE = service.Source(
    name="huggingface", extra="huggingface",

    needs="option repo=OWNER/NAME",
    licence="the terms of the dataset and of the vendors behind it apply; redistribution is not granted",
    options={
        "repo": "the dataset, OWNER/NAME", "file": "the file in it; needed where it has several that fit",
        "currency": "the currency of a market table's prices, which the file does not say",
        "revision": "a branch, tag or commit; main where it is not given",
        "token": "the key of the service, for datasets that ask for one; never stored, never shown",
        "endpoint": "a mirror that is asked in place of the service",
    },
    symbols=False, key_variable="HF_TOKEN", key_option="token",
)  # fmt: skip


def fetch_file(
    request: Request, asking: Pull, folder: Path, suffixes: tuple[str, ...]
) -> tuple[Path, str, str, tuple[str, str]]:
    """Download one file of a dataset into ``folder``. Returns its path, its name, its commit, and notes."""
    hub = service.load_client("huggingface_hub", SOURCE.extra)
    repo, token = request.options.get("repo", ""), request.secret("token")
    if not repo:
        raise InputError("source huggingface", [Problem("option repo", "is needed: repo=OWNER/NAME")])
    endpoint = request.options.get("endpoint")
    access = {"token": token or False, "endpoint": endpoint}
    with _client(asking.manners):
        asking.progress("files", 0, 1)
        info = _call(
            hub, repo, token, asking.manners,
            lambda: hub.HfApi(**access).dataset_info(
                repo, revision=request.options.get("revision"), files_metadata=True, timeout=asking.manners.timeout
            ),
        )  # fmt: skip
        sizes = {sibling.rfilename: sibling.size or 0 for sibling in info.siblings or ()}
        fitting = [name for name in sizes if name.lower().endswith(suffixes)]
        wanted, listed = request.options.get("file"), ", ".join(safe_line(name) for name in fitting[:10])
        if wanted is not None and wanted not in sizes:
            text = f"{wanted!r} is not in the dataset; files that fit: {listed or 'none'}"
            raise InputError("source huggingface", [Problem("option file", text)])
        if wanted is None and len(fitting) != 1:
            text = f"is needed; the dataset has {len(fitting)} files that end in {' or '.join(suffixes)}"
            raise InputError("source huggingface", [Problem("option file", f"{text}: {listed}" if listed else text)])
        name = wanted or fitting[0]
        service.check_size(sizes[name], asking.manners)
        path = _call(
            hub, repo, token, asking.manners,
            lambda: hub.hf_hub_download(
                repo, name, repo_type="dataset", revision=info.sha, local_dir=folder,
                etag_timeout=asking.manners.timeout, **access,
            ),
        )  # fmt: skip
        asking.progress("files", 1, 1)
    service.check_size(Path(path).stat().st_size, asking.manners)
    with Path(path).open("rb") as handle:
        service.check_data(handle.read(512))
    stated = [tag.removeprefix("license:") for tag in info.tags or () if str(tag).startswith("license:")]
    licence = safe_line(stated[0]) if stated else "not stated"
    notes = f"commit {info.sha}", f"the dataset's card states the licence: {licence}"
    return Path(path), name, str(info.sha), notes


def _call(hub: Any, repo: str, token: str | None, manners: RetryPolicy, ask: Callable[[], Any]) -> Any:
    """Make one request with the client. Its errors are converted, because they contain addresses and headers."""
    errors = hub.errors

    def once() -> Any:
        try:
            return ask()
        except (TransientError, ServiceUnavailable):
            raise
        except errors.GatedRepoError:
            text = "asks for consent on its own page first; then pass a token"
            raise InputError(repo, [Problem(repo, text)]) from None
        except errors.RepositoryNotFoundError:
            refused = "; or the token is refused" if token else "; a token may be needed"
            text = f"is not a dataset of the service, or not public{refused}"
            raise InputError(repo, [Problem(repo, text)]) from None
        except errors.RevisionNotFoundError:
            raise InputError(repo, [Problem("option revision", f"is not a revision of {repo}")]) from None
        except errors.EntryNotFoundError:
            raise InputError(repo, [Problem("option file", f"is not in {repo} any more")]) from None
        except errors.HfHubHTTPError as exc:
            status = exc.response.status_code
            why = "the token is refused" if status in (401, 403) else "the service refuses"
            raise ServiceUnavailable(f"{why} (status {status}: {safe_line(exc.server_message or '', token)})") from None
        except Exception as exc:
            if _is_cut_off(exc):
                raise TransientError(f"the answer was cut off ({type(exc).__name__})") from None
            raise ServiceUnavailable(service.parse_error("the reply", exc, token)) from None

    return service.with_retries(once, manners)


def _is_cut_off(exc: BaseException) -> bool:
    """True if the connection broke while an answer was read, or the answer was shorter than announced."""
    kinds = {kind.__name__ for kind in type(exc).__mro__}
    return bool(kinds & {"TransportError"}) or "Consistency check failed" in str(exc)


@contextmanager
def _client(manners: RetryPolicy) -> Iterator[None]:
    """Make the client's transport use the retry policy, and hide its progress bars, while the context lasts."""
    http, progress, constants = (
        service.load_client(f"huggingface_hub.{name}", SOURCE.extra) for name in ("utils._http", "utils", "constants")
    )
    before, quiet = http._GLOBAL_CLIENT_FACTORY, progress.are_progress_bars_disabled()
    plain_only = constants.HF_HUB_DISABLE_XET

    def factory() -> Any:
        client = http.default_client_factory()
        client.timeout = manners.timeout
        client.send = _with_retries(client.send, manners)
        return client

    http.set_client_factory(factory)
    constants.HF_HUB_DISABLE_XET = True  # that transport ignores our timeouts and limits
    if not quiet:
        progress.disable_progress_bars()
    try:
        yield
    finally:
        http.set_client_factory(before)
        constants.HF_HUB_DISABLE_XET = plain_only
        if not quiet:
            progress.enable_progress_bars()


def _with_retries(plain: Any, manners: RetryPolicy) -> Any:
    """Wrap the transport's ``send`` with retries, limits and checks."""

    def send(request: Any, *, stream: bool = False, **rest: Any) -> Any:
        def once() -> Any:
            try:
                answer = plain(request, stream=True, **rest)
                if answer.status_code >= 400 or not stream:
                    try:
                        answer._content = b"".join(_limited(answer.iter_bytes, manners)())
                    finally:
                        answer.close()
            except Exception as exc:
                if _is_cut_off(exc):
                    raise TransientError(f"the service does not answer ({type(exc).__name__})") from None
                raise
            service.check_status(answer.status_code, answer.headers)
            if stream:
                answer.iter_bytes = _limited(answer.iter_bytes, manners)
            elif answer.status_code < 400:
                service.check_data(answer.content)
            return answer

        return service.with_retries(once, manners)

    return send


def _limited(plain: Any, manners: RetryPolicy) -> Any:
    """Wrap an iterator over the parts of an answer with the size limit."""

    def parts(*args: Any, **rest: Any) -> Iterator[bytes]:
        size = 0
        try:
            for part in plain(*args, **rest):
                size += len(part)
                service.check_size(size, manners)
                yield part
        except Exception as exc:
            # Converted, because the client would retry transport errors by its own policy.
            if _is_cut_off(exc):
                raise TransientError(f"the answer was cut off ({type(exc).__name__})") from None
            raise

    return parts


def fetch(request: Request, asking: Pull) -> SourceTables:
    """Fetch the one CSV or Parquet file of a dataset as a snapshot's tables."""
    with TemporaryDirectory() as place:
        path, _, _, notes = fetch_file(request, asking, Path(place), (".csv", ".parquet"))
        read = snapshot_from_file(
            path, asking.now, symbols=request.symbols, start=request.start, end=request.end,
            currency=request.options.get("currency", ""),
        )  # fmt: skip
    bars = with_texts(read.tables["bars"], source=f"huggingface {request.options['repo']}", snapshot="")
    return {**read.tables, "bars": bars}, (*read.origin.notes, *notes)


PORTBENCH_ITEMS = 6_269
"""The number of questions in PortBench's file, as stated in its abstract."""

_LONGEST_LINE = 4 << 20
_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A downloaded file of questions, one JSON object per line, with its provenance."""

    path: Path
    provenance: Path
    items: int
    sha256: str
    origin: Origin


def fetch_questions(request: Request, asking: Pull, folder: Path) -> QuestionFile:
    """Fetch a file of questions into ``folder``; one that is not JSON Lines is refused and nothing is written."""
    with TemporaryDirectory() as place:
        fetched, name, commit, card = fetch_file(request, asking, Path(place), (".jsonl",))
        data = fetched.read_bytes()
    items, digest, notes = count_items(data, name), hashlib.sha256(data).hexdigest(), [*card]
    if items != PORTBENCH_ITEMS:
        notes.append(f"{items:,} questions; PortBench states {PORTBENCH_ITEMS:,} for its own file")
    origin = Origin(
        source="huggingface", retrieved_at=asking.now, query=request.as_query(), licence=SOURCE.licence,
        notes=tuple(notes),
    )  # fmt: skip
    path = folder / Path(name).name
    if path.exists() and path.read_bytes() != data:
        raise InputError("source huggingface", [Problem(str(path), "is another file already; choose another folder")])
    provenance = path.with_name(f"{path.name}.provenance.json")
    write_atomic(path, data)
    record = {
        "file": path.name, "sha256": digest, "items": items, "commit": commit, "source": origin.source,
        "retrieved_at": origin.retrieved_at.isoformat(), "query": dict(origin.query), "licence": origin.licence,
        "notes": notes,
    }  # fmt: skip
    write_atomic(provenance, (canonical_json(record) + "\n").encode())
    return QuestionFile(path, provenance, items, digest, origin)


def count_items(data: bytes, name: str) -> int:
    """Count the questions in a file. Raises `InputError` for lines that are not JSON objects."""
    problems: list[Problem] = []
    items = 0
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        items += 1
        text = f"is longer than {_LONGEST_LINE:,} bytes" if len(line) > _LONGEST_LINE else ""
        try:
            if not text and not isinstance(strict_json(line.decode()), dict):
                text = "is not a JSON object"
        except (Rejected, UnicodeDecodeError) as exc:
            text = f"is {exc}" if isinstance(exc, Rejected) else "is no UTF-8"
        if text:
            problems.append(Problem(f"line {number}", text))
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [Problem("", f"and {len(problems) - _MOST_PROBLEMS} more lines")]
    if problems or not items:
        raise InputError(name, problems or ["holds no question"])
    return items
