"""Files of datasets through the client `huggingface_hub`: one file, of one commit, with where it is from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assaymark.errors import InputError, Problem
from assaymark.market.sources.manners import (
    Busy,
    Manners,
    Stopped,
    checked_data,
    checked_size,
    checked_status,
    library,
    one_line,
    patiently,
)
from assaymark.market.sources.request import Asking, Request, Source

SOURCE = Source(
    name="huggingface",
    extra="huggingface",
    gives="a market table or a file of questions from a dataset, such as those of PortBench",
    needs="option repo=OWNER/NAME",
    licence="the terms of the dataset and of the vendors behind it apply; redistribution is not granted",
    options={
        "repo": "the dataset, OWNER/NAME",
        "file": "the file in it; needed where it has several that fit",
        "currency": "the currency of a market table's prices, which the file does not say",
        "revision": "a branch, tag or commit; main where it is not given",
        "token": "the key of the service, for datasets that ask for one; never stored, never shown",
        "endpoint": "a mirror that is asked in place of the service",
    },
    symbols=False,
    key_variable="HF_TOKEN",
    key_option="token",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A file that was fetched: where it lies now, and the dataset, file, commit and licence that it is of."""

    path: Path
    repo: str
    file: str
    commit: str
    licence: str


def fetch_file(request: Request, asking: Asking, folder: Path, suffixes: tuple[str, ...]) -> Fetched:
    """One file of a dataset, below ``folder``.

    Raises
    ------
    InputError
        The dataset, revision or file is not there, or several files fit and none is named.
    Stopped
        The service does not answer, or refuses.
    """
    hub = library("huggingface_hub", SOURCE.extra)
    repo, token = request.options.get("repo", ""), request.secret("token")
    if not repo:
        raise InputError("source huggingface", [Problem("option repo", "is needed: repo=OWNER/NAME")])
    endpoint = request.options.get("endpoint")
    said = {"token": token or False, "endpoint": endpoint}
    with _client(asking.manners):
        asking.progress("files", 0, 1)
        info = _call(
            hub, repo, token, asking.manners,
            lambda: hub.HfApi(**said).dataset_info(
                repo, revision=request.options.get("revision"), files_metadata=True, timeout=asking.manners.timeout
            ),
        )  # fmt: skip
        name = _chosen(info, request.options.get("file"), suffixes, asking.manners)
        path = _call(
            hub, repo, token, asking.manners,
            lambda: hub.hf_hub_download(
                repo, name, repo_type="dataset", revision=info.sha, local_dir=folder,
                etag_timeout=asking.manners.timeout, **said,
            ),
        )  # fmt: skip
        asking.progress("files", 1, 1)
    return _looked_at(Fetched(path=Path(path), repo=repo, file=name, commit=str(info.sha), licence=_licence(info)),
                      asking.manners)  # fmt: skip


def _chosen(info: Any, wanted: str | None, suffixes: tuple[str, ...], manners: Manners) -> str:
    """The name of the file to fetch."""
    sizes = {one.rfilename: one.size or 0 for one in info.siblings or ()}
    fitting = [name for name in sizes if name.lower().endswith(suffixes)]
    if wanted is not None and wanted not in sizes:
        known = ", ".join(one_line(name) for name in fitting[:10]) or "none"
        raise InputError("source huggingface", [Problem("option file", f"{wanted!r} is not in the dataset; files that "
                                                        f"fit: {known}")])  # fmt: skip
    if wanted is None and len(fitting) != 1:
        found = f"has {len(fitting)} files that end in {' or '.join(suffixes)}"
        listed = ": " + ", ".join(one_line(name) for name in fitting[:10]) if fitting else ""
        raise InputError("source huggingface", [Problem("option file", f"is needed; the dataset {found}{listed}")])
    name = wanted or fitting[0]
    checked_size(sizes[name], manners)
    return name


def _looked_at(fetched: Fetched, manners: Manners) -> Fetched:
    """The file, unless it is a page or too large for what it said to be."""
    checked_size(fetched.path.stat().st_size, manners)
    with fetched.path.open("rb") as handle:
        checked_data(handle.read(512))
    return fetched


def _licence(info: Any) -> str:
    """What the dataset's own card says about its licence."""
    stated = [tag.removeprefix("license:") for tag in info.tags or () if str(tag).startswith("license:")]
    return one_line(stated[0]) if stated else "not stated"


def _call(hub: Any, repo: str, token: str | None, manners: Manners, ask: Callable[[], Any]) -> Any:
    """One question to the client; its errors carry addresses and headers, so none of them leaves here."""
    errors = hub.errors

    def once() -> Any:
        try:
            return ask()
        except (Busy, Stopped):
            raise
        except errors.GatedRepoError:
            raise InputError(
                repo, [Problem(repo, "asks for consent on its own page first; then pass a token")]
            ) from None
        except errors.RepositoryNotFoundError:
            refused = "; or the token is refused" if token else "; a token may be needed"
            raise InputError(
                repo, [Problem(repo, f"is no dataset of the service, or not a public one{refused}")]
            ) from None
        except errors.RevisionNotFoundError:
            raise InputError(repo, [Problem("option revision", f"is no revision of {repo}")]) from None
        except errors.EntryNotFoundError:
            raise InputError(repo, [Problem("option file", f"is not in {repo} any more")]) from None
        except errors.HfHubHTTPError as exc:
            status = exc.response.status_code
            why = "the token is refused" if status in (401, 403) else "the service refuses"
            raise Stopped(f"{why} (status {status}: {one_line(exc.server_message or '', token)})") from None
        # The client indexes into whatever it was sent; a reply of another shape ends in any error there is.
        except Exception as exc:
            if _cut(exc):
                raise Busy(f"the answer was cut off ({type(exc).__name__})") from None
            raise Stopped(f"the reply cannot be read ({type(exc).__name__}: {one_line(exc, token)})") from None

    return patiently(once, manners)


def _cut(exc: BaseException) -> bool:
    """Whether the connection broke while an answer was read, or it came out shorter than it said."""
    kinds = {one.__name__ for one in type(exc).__mro__}
    return bool(kinds & {"TransportError"}) or "Consistency check failed" in str(exc)


@contextmanager
def _client(manners: Manners) -> Iterator[None]:
    """The client's transport asks with manners while this lasts, and shows no bars of its own."""
    http, progress = (
        library("huggingface_hub.utils._http", SOURCE.extra),
        library("huggingface_hub.utils", SOURCE.extra),
    )
    constants = library("huggingface_hub.constants", SOURCE.extra)
    before, quiet, plain_only = (
        http._GLOBAL_CLIENT_FACTORY,
        progress.are_progress_bars_disabled(),
        constants.HF_HUB_DISABLE_XET,
    )

    def factory() -> Any:
        client = http.default_client_factory()
        client.timeout = manners.timeout
        client.send = _polite(client.send, manners)
        return client

    http.set_client_factory(factory)
    constants.HF_HUB_DISABLE_XET = True  # its own transport knows neither our timeouts nor our limits
    if not quiet:
        progress.disable_progress_bars()
    try:
        yield
    finally:
        http.set_client_factory(before)
        constants.HF_HUB_DISABLE_XET = plain_only
        if not quiet:
            progress.enable_progress_bars()


def _polite(plain: Any, manners: Manners) -> Any:
    """The transport's way to send, with attempts, limits and checks around it."""

    def send(request: Any, *, stream: bool = False, **rest: Any) -> Any:
        def once() -> Any:
            try:
                answer = plain(request, stream=True, **rest)
                if answer.status_code >= 400 or not stream:
                    _read(answer, manners)
            except Exception as exc:
                if _cut(exc):
                    raise Busy(f"the service does not answer ({type(exc).__name__})") from None
                raise
            checked_status(answer.status_code, answer.headers)
            if stream:
                answer.iter_bytes = _limited(answer.iter_bytes, manners)
            elif answer.status_code < 400:
                checked_data(answer.content)
            return answer

        return patiently(once, manners)

    return send


def _read(answer: Any, manners: Manners) -> None:
    """Read the body of an answer, up to the limit, and leave it where the client looks for it."""
    try:
        answer._content = b"".join(_limited(answer.iter_bytes, manners)())
    finally:
        answer.close()


def _limited(plain: Any, manners: Manners) -> Any:
    """An answer's parts, as long as they are not too much."""

    def parts(*args: Any, **rest: Any) -> Iterator[bytes]:
        size = 0
        try:
            for part in plain(*args, **rest):
                size += len(part)
                checked_size(size, manners)
                yield part
        except Exception as exc:
            # Not an error of the transport any more: the client would ask again by a clock and count of its own.
            if _cut(exc):
                raise Busy(f"the answer was cut off ({type(exc).__name__})") from None
            raise

    return parts
