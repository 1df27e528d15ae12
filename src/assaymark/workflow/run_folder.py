"""The layout of a run folder, its lock and amendments, and atomic writing into run folders and sites."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from assaymark import __version__
from assaymark.errors import InputError, LedgerError, PlanError, Problem, foreign_format
from assaymark.records import JSON, as_object, canonical_json, sync_folder, to_json
from assaymark.records import write_atomic as write_atomic

if TYPE_CHECKING:
    from assaymark.engine import Ledger
    from assaymark.report.site import SiteKind
from datetime import datetime

from assaymark.plan import Frozen
from assaymark.records import content_id

_LOG: Final = logging.getLogger(__name__)
_LISTED: Final = 5

LOCKS_1: Final = ("assaymark lock 1", "assaymark season lock 1", "assaymark benchmark lock 1")
"""The lock formats of version 1, whose rules published false rankings."""

CHECKED: Final = Path("assaymark-check")
"""The folder that `assaymark check` writes by default."""

PLAN_BYTES: Final = "plan_sha256"
"""The field of a lock that holds the sha256 of the bytes of ``plan.toml``."""

_ANCHOR: Final = "lock"


class _Entry:
    """Descriptor of a file or folder of a run, by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: RunFolder, _: type) -> Path:
        return folder.path / self.name


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run. Its layout is part of the product: see ``docs/run-folder.md``."""

    path: Path

    plan = _Entry("plan.toml")  # as the user wrote it
    lock = _Entry("study.lock")
    ledger_url = _Entry("ledger.url")  # names the database that holds the ledger, without a password
    tables = _Entry("tables")
    verdicts = _Entry("verdicts.json")
    certificates = _Entry("certificates")
    sums = _Entry("SHA256SUMS")  # of each published file, in the format of sha256sum
    amendments = _Entry("amendments")  # one dated and hashed file for each change of the plan after its lock
    datasheets = _Entry("datasheets")
    publications = _Entry("publications")  # the claims of each day's publication of a season
    report = _Entry("report")
    check = _Entry("check.json")  # for the folder of a checked table: how the table was read
    labels = _Entry("labels")  # assignments to human graders, and every label as given

    @property
    def ledger(self) -> Path | str:
        """The store of calls, attempts, replies and source bytes: a file here, or the database named in this folder."""
        url_file = self.ledger_url
        return url_file.read_text(encoding="utf-8").strip() if url_file.is_file() else self.path / "ledger.db"

    @property
    def has_ledger(self) -> bool:
        """True if a ledger exists; one in a database is created when the database is named."""
        return isinstance(self.ledger, str) or self.ledger.is_file()

    @property
    def rationales(self) -> RunFolder:
        """The run folder of the panel that graded the rationales in a benchmark."""
        return RunFolder(self.path / "rationales")

    def require(self) -> RunFolder:
        """Return this folder; raises `InputError` if no records were imported into it."""
        if not self.path.is_dir():
            raise missing(self.path, "run folder", "make one with: assaymark import, or assaymark run")
        if not (self.tables / "manifest.json").is_file():
            advice = f"no records here; run: assaymark import FORMAT PATH --out {self.path}"
            raise InputError(str(self.path), [advice])
        return self

    def refuse_others(self, ours: bool, noun: str) -> None:
        """Raise `PlanError` if the folder holds files and they are not ``ours``."""
        if not ours and self.path.is_dir() and any(self.path.iterdir()):
            raise PlanError(f"{self.path} holds other files; give the {noun} its own folder (--out)")


def json_text(value: Any, shared: dict[int, tuple[Any, str]] | None = None) -> str:
    """Format a record or mapping as JSON with sorted keys, one entry a line; ``shared`` caches equal parts."""
    lines = []

    def text(part: Any, depth: int = 1) -> str:
        if shared is None or not isinstance(part, dict):
            return canonical_json(part)
        if depth:
            return "{" + ",".join(f"{canonical_json(key)}:{text(part[key], depth - 1)}" for key in sorted(part)) + "}"
        if id(part) not in shared:
            shared[id(part)] = (part, canonical_json(part))
        return shared[id(part)][1]

    for key, item in sorted((as_object(value) or to_json(value)).items()):
        entries = as_object(item)
        shown = canonical_json(item) if not entries and not isinstance(item, (list, tuple)) else "[]"
        if entries:
            shown = "{\n" + ",\n".join(f"{json.dumps(name)}: {text(entries[name])}" for name in sorted(entries)) + "\n}"
        elif isinstance(item, (list, tuple)) and item:
            shown = "[\n" + ",\n".join(text(entry, 0) for entry in item) + "\n]"
        lines.append(f"{json.dumps(key)}: {shown}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as `json_text`."""
    write_atomic(path, json_text(value))


def replace_files(folder: Path, files: Mapping[str, str | bytes] | Iterable[tuple[str, str | bytes]]) -> None:
    """Make ``folder`` hold exactly ``files`` (names relative to it); files of an earlier run are removed last."""
    targets = set()
    with ThreadPoolExecutor(4) as disk:  # the next file is rendered while the last four are written
        written: deque[Future[Any]] = deque([disk.submit(int)] * 4)
        for name, data in files.items() if isinstance(files, Mapping) else files:
            written.popleft().result()
            written.append(disk.submit(write_atomic, folder / name, data, named=False))
            targets.add(folder / name)
        for last in written:
            last.result()
    for path in {path.parent for path in targets}:
        sync_folder(path)
    for path in sorted(folder.rglob("*"), reverse=True):  # contents of a folder before the folder
        if path.is_file() and path not in targets:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    _LOG.info("wrote %s: %d files", folder, len(targets))


def read_text(path: Path, noun: str) -> str:
    """Read a text file given by the user; raises `InputError` if it is missing or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise missing(path, noun) from None
    except UnicodeDecodeError as exc:
        kind = foreign_format(exc.object[:8])
        problem = Problem(f"byte {exc.start}", f"this {noun} is not UTF-8 text")
        raise InputError(str(path), [problem if kind is None else Problem("", kind)]) from None
    except OSError as exc:
        raise InputError(str(path), [f"cannot read this {noun}: {exc.strerror or exc}"]) from None


def missing(path: Path, noun: str, advice: str = "") -> InputError:
    """Return the error for a missing file or folder given by the user, with similar names beside it as suggestions."""
    problem = f"{'a file, and no' if path.is_file() else 'no such'} {noun}" + (f"; {advice}" if advice else "")
    try:
        names = sorted({entry.name for entry in path.parent.iterdir() if entry.name[0] != "."} - {path.name})
    except OSError:
        return InputError(str(path), [f"{problem}; there is no folder {path.parent}"])
    similar_kind = [name for name in names if path.suffix and name.endswith(path.suffix)]
    if similar := get_close_matches(path.name, names, n=2):
        problem += f"; did you mean {' or '.join(str(path.parent / name) for name in similar)}?"
    elif similar_kind:
        more = f" and {len(similar_kind) - _LISTED} more" if len(similar_kind) > _LISTED else ""
        problem += f"; there is {', '.join(str(path.parent / name) for name in similar_kind[:_LISTED])}{more}"
    return InputError(str(path), [problem])


def read_json(path: Path, noun: str) -> JSON:
    """Read a JSON file that assaymark wrote; raises `LedgerError` if it is damaged."""
    try:
        return json.loads(read_text(path, noun))
    except json.JSONDecodeError as exc:
        raise LedgerError(f"{path}: this {noun} is damaged at line {exc.lineno} ({exc.msg})") from None


def kind_of(folder: RunFolder) -> SiteKind | Literal["table"]:
    """Return the kind of run in a folder, or that it is of a checked table; "study" by default."""
    if folder.check.is_file():
        return "table"
    form = str(read_lock(folder).get("format"))
    if "benchmark" in form or "season" in form:
        return "portbench" if "benchmark" in form else "season"
    return "judges" if folder.datasheets.is_dir() and not folder.plan.is_file() else "study"


def is_version_1(folder: RunFolder) -> bool:
    """True if a plan of version 1 is locked in a run folder."""
    return _lock(folder).get("format") in LOCKS_1


def read_lock(folder: RunFolder) -> dict[str, Any]:
    """Return the lock of a run folder, unchecked; empty without one. Raises `PlanError` if it is of version 1."""
    stored = _lock(folder)
    if stored.get("format") in LOCKS_1:
        raise PlanError(
            f"{folder.path} is a run of version 1, which assaymark 0.1 reads; its rules published false rankings. "
            f"To continue under those of version 2, with every reply kept: assaymark amend {folder.path} --rules 2"
        )
    return stored


require_version_2 = read_lock
"""Raises `PlanError` for a run folder in which a plan of version 1 is locked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockKind:
    """A kind of run (study, season or benchmark) with the format and the messages of its lock."""

    format: str
    absent: str  # message on a folder without a lock, which is ``{0}``
    others: Mapping[str, str]  # messages on locks of other kinds, by the start of their format
    texts: str  # the texts that a plan hash covers besides the plan
    restore: str  # the remedy for an edited plan

    def holds(self, folder: RunFolder) -> bool:
        """True if a plan of this kind is locked in a run folder."""
        return read_lock(folder).get("format") == self.format

    def stored(self, folder: RunFolder) -> dict[str, Any]:
        """Return the lock of this kind in a run folder, checked against the ledger but not against the plan."""
        if not folder.lock.is_file():
            table, path = "{0} is of a checked table, which has no such step; run: assaymark report {0}", folder.path
            places = ("FOLDER", path) if path.is_file() else (path, "FILE")
            raise PlanError((table if folder.check.is_file() else self.absent).format(path, *places))
        stored = read_lock(folder)
        form = str(stored.get("format"))
        if form != self.format:
            for start, message in self.others.items():
                if form.startswith(start):
                    raise PlanError(message.format(folder.path))
            raise LedgerError(f"{folder.lock} is damaged, or of another version: it does not say {self.format!r}")
        if isinstance(folder.ledger, Path):  # a database is checked when calls are made
            _require_anchored(folder, stored, ledger_locks(folder))
        return stored

    def new_lock(self, plan_hash: str, locked_at: JSON, **parts: JSON) -> dict[str, JSON]:
        """Return the lock of a plan without amendments; ``parts`` are the fields of this kind."""
        software = f"assaymark {__version__}"
        common = {"format": self.format, "software": software, "plan_hash": plan_hash, "locked_at": locked_at}
        return {**common, "amendments": [], "preregistered": True, **parts}

    def require_unedited(self, folder: RunFolder, fingerprint: str, stored: Mapping[str, Any]) -> None:
        """Raise `PlanError` if the hash of a plan is not the locked one."""
        if fingerprint != stored.get("plan_hash"):
            raise PlanError(
                f"{folder.plan} was edited after the lock (plan hash {fingerprint[:12]}..., locked "
                f"{str(stored.get('plan_hash'))[:12]}...), or the {self.texts} differ; {self.restore}"
            )


def _lock(folder: RunFolder) -> dict[str, Any]:
    stored = read_json(folder.lock, "lock") if folder.lock.is_file() else {}
    if not isinstance(stored, dict):
        raise LedgerError(f"{folder.lock} is damaged: it is not a table of fields")
    return stored


def write_verdicts(folder: RunFolder, file: Any, certificates: Iterable[tuple[str, Mapping[str, JSON]]]) -> None:
    """Write the certificates of a run by name, ``verdicts.json``, and then the digests of all published files."""
    shared: dict[int, tuple[Any, str]] = {}
    replace_files(folder.certificates, {name: json_text(certificate, shared) for name, certificate in certificates})
    write_json(folder.verdicts, file)
    write_sums(folder)


def write_sums(folder: RunFolder) -> None:
    """Write the sha256 of each published file, after all of them are written; ``sha256sum -c`` checks them."""
    write_atomic(folder.sums, "".join(f"{digest}  {name}\n" for name, digest in published_files(folder).items()))


def published_files(folder: RunFolder) -> dict[str, str]:
    """Return the published files of a run, which no table manifest covers, with the sha256 of each."""
    below = [f"{name}/*.json" for name in ("certificates", "datasheets", "publications")]
    patterns = (*below[:2], "questions.jsonl", "stimuli.json", "verdicts.json", below[2])
    paths = (path for pattern in patterns for path in sorted(folder.path.glob(pattern)))
    return {str(path.relative_to(folder.path)): file_sha256(path) for path in paths}


def write_lock(folder: RunFolder, lock: Mapping[str, JSON]) -> None:
    """Write the lock of the plan in the folder, with the sha256 of the plan's bytes."""
    stored = {**lock, PLAN_BYTES: file_sha256(folder.plan)}
    anchors = ledger_locks(folder)
    if anchors and not folder.lock.is_file():
        earlier = _lock_of(anchors, lock["plan_hash"])
        if earlier is None and isinstance(folder.ledger, Path):
            raise PlanError(f"{folder.path}: calls were made under the lock of another plan; put {folder.lock} back")
        write_json(folder.lock, earlier or stored)
        return

    def anchor(*locks: Mapping[str, JSON]) -> None:
        from assaymark.engine import Ledger  # imported here, because most commands open no ledger

        with Ledger.open(folder.ledger, create=False) as ledger:
            ledger.notes.set(_ANCHOR, canonical_json(list(locks)))

    if anchors:
        anchor(stored, _lock(folder))
    write_json(folder.lock, stored)
    if anchors:
        anchor(stored)


def ledger_locks(folder: RunFolder) -> tuple[Mapping[str, JSON], ...]:
    """Return the locks stored in the ledger: none before its first call, two while the lock is being replaced."""
    if not folder.has_ledger:
        return ()
    from assaymark.engine import Ledger

    with Ledger.open(folder.ledger, create=False) as ledger:
        return tuple(json.loads(ledger.notes.get(_ANCHOR) or "[]"))


def anchor_lock(folder: RunFolder, ledger: Ledger) -> None:
    """Store the lock in the ledger before the first call under it, so that any later edit of a field is detected."""
    if not folder.lock.is_file():
        return
    stored, anchors = _lock(folder), json.loads(ledger.notes.get(_ANCHOR) or "[]")
    first = _lock_of(anchors, stored.get("plan_hash")) if ledger.leases is not None else None
    if first is not None and edited_fields(stored, anchors):
        write_json(folder.lock, first)
        return
    _require_anchored(folder, stored, anchors)
    if len(anchors) != 1:
        ledger.notes.set(_ANCHOR, canonical_json([stored]))


def edited_fields(stored: Mapping[str, JSON], anchors: Sequence[Mapping[str, JSON]]) -> list[str]:
    """Return the fields in which a lock differs from the ledger's; empty if the ledger has none."""
    now, *then = ({name: canonical_json(value) for name, value in lock.items()} for lock in (stored, *anchors))
    if not then or now in then:
        return []
    return sorted(name for name in {*now, *then[0]} if now.get(name) != then[0].get(name))


def _require_anchored(folder: RunFolder, stored: Mapping[str, JSON], anchors: Sequence[Mapping[str, JSON]]) -> None:
    if fields := edited_fields(stored, anchors):
        raise PlanError(f"{folder.lock} was edited after the first call under it ({', '.join(fields)}); restore it")


def _lock_of(locks: Sequence[Mapping[str, JSON]], plan_hash: JSON) -> Mapping[str, JSON] | None:
    return next((lock for lock in locks if lock.get("plan_hash") == plan_hash), None)


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file's bytes; raises `LedgerError` if they cannot be read."""
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as exc:
        raise LedgerError(f"cannot read {path}: {exc.strerror or exc}") from None


@contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """Create ``path`` for a run that the block writes, as `made_folder` does; raises `PlanError` if it holds others."""
    RunFolder(path).refuse_others(not RunFolder(path).check.is_file(), "run")
    with made_folder(path):
        yield


@contextmanager
def made_folder(path: Path) -> Iterator[None]:
    """Create ``path`` for the work in the block; a folder created here is removed again if the work fails."""
    try:
        created = [parent for parent in (path, *path.parents) if not parent.exists()]
        path.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise PlanError(f"--out {path}: cannot be made a folder ({exc.strerror or exc})") from None
    try:
        yield
    except BaseException:
        if created:
            shutil.rmtree(created[-1], ignore_errors=True)
        raise


MANIFEST: Final = "site.json"
"""The manifest of a site: what it shows, and which of its files assaymark wrote."""

FORMAT: Final = "assaymark season site 1"

_NEW = ".new-"


def replace_site(site: Path, season: str, plan_hash: str, write: Callable[[Path], object]) -> tuple[Path, ...]:
    """Make ``site`` hold the pages that ``write`` puts into an empty folder; returns their paths in the site."""
    earlier, existed = site_files(site, season, plan_hash), (site / MANIFEST).is_file()

    def say(files: Iterable[str]) -> None:
        about = {"format": FORMAT, "season": season, "plan_hash": plan_hash, "files": sorted(files)}
        write_atomic(site / MANIFEST, json_text(about))

    with new_folder(site):
        try:
            say(earlier)  # from here on, a folder left by a kill is recognised as a site
            for stale in site.glob(f"{_NEW}*"):
                shutil.rmtree(stale, ignore_errors=True)
            # within the site, and so on the same disk: if a page cannot be made, the site stays unchanged
            with tempfile.TemporaryDirectory(dir=site, prefix=_NEW) as staged:
                write(Path(staged))
                names = sorted(str(path.relative_to(staged)) for path in Path(staged).rglob("*") if path.is_file())
                say({*earlier, *names})
                for name in names:
                    (site / name).parent.mkdir(parents=True, exist_ok=True)
                    (Path(staged) / name).replace(site / name)
        except BaseException:
            if not existed:
                (site / MANIFEST).unlink(missing_ok=True)
            raise
    for name in set(earlier) - set(names):
        (site / name).unlink(missing_ok=True)
        for folder in (site / name).parents:
            if folder == site or not folder.is_dir() or any(folder.iterdir()):
                break
            folder.rmdir()
    say(names)
    return tuple(site / name for name in names)


def site_files(site: Path, season: str, plan_hash: str) -> tuple[str, ...]:
    """Return the files of the existing site; empty if the folder is empty or missing."""
    path, problem, stored = site / MANIFEST, "", None
    if not path.is_file():
        if not site.exists() or (site.is_dir() and not any(site.iterdir())):
            return ()
        problem = f"contains something other than a site (it has no {MANIFEST})"
    else:
        with suppress(LedgerError):
            stored = read_json(path, "site")
        if not isinstance(stored, dict) or stored.get("format") != FORMAT or not isinstance(stored.get("files"), list):
            problem = f"contains something other than a site of assaymark (see its {MANIFEST})"
        elif stored.get("season") != season or stored.get("plan_hash") != plan_hash:
            owner = f"{stored.get('season')!r:.60}, plan {str(stored.get('plan_hash'))[:12]}..."
            problem = f"contains another site ({owner}; this one is {season!r}, plan {plan_hash[:12]}...)"
    if problem:
        raise InputError("--out", [Problem(str(site), f"{problem}; give a new or an empty folder")])
    assert isinstance(stored, dict)
    # An edited manifest may name a file outside of the folder.
    inside = site.resolve()
    return tuple(
        name for name in stored["files"] if isinstance(name, str) and (site / name).resolve().is_relative_to(inside)
    )


# --- Amendments of a plan: one dated and hashed file each, with the digest of the previous one ------------------------


AMENDMENT_FORMAT: Final = "assaymark amendment 1"
_KEYS: Final = frozenset(("format", "number", "date", "reason", "fields", "plan_before", "plan_after", "previous"))


@dataclass(frozen=True, slots=True)
class Amendment:
    """One change of a locked plan: date, reason, and the old and new value of each changed field."""

    number: int
    date: str
    reason: str
    fields: Mapping[str, Mapping[str, JSON]]
    plan_before: str
    plan_after: str
    digest: str

    @property
    def stated(self) -> dict[str, JSON]:
        """The part of it in ``verdicts.json``, without its time and hashes."""
        return {"number": self.number, "reason": self.reason, "fields": dict(self.fields)}


def changed_fields(before: Frozen | Mapping[str, Any], after: Frozen | Mapping[str, Any]) -> dict[str, dict[str, JSON]]:
    """Return the fields in which two plans differ, by dotted name, with both values; judges are matched by name."""

    def flat(name: str, value: JSON) -> Iterator[tuple[str, JSON]]:
        if isinstance(value, dict) and value:
            for key, part in value.items():
                yield from flat(f"{name}.{key}" if name else key, part)
        else:
            yield name, value

    plans = []
    for plan in (before, after):
        tree = plan.model_dump(mode="json") if isinstance(plan, Frozen) else dict(plan)
        if "judges" in tree:
            tree["judges"] = {judge["name"]: judge for judge in tree["judges"]}
        plans.append(dict(flat("", tree)))
    old, new = plans
    names = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
    return {name: {"from": old.get(name), "to": new.get(name)} for name in names}


def record_amendment(
    folder: RunFolder, earlier: Sequence[Amendment], now: datetime, reason: str,
    fields: Mapping[str, Mapping[str, JSON]], before: str, after: tuple[str, str],
) -> tuple[str, ...]:  # fmt: skip
    """Write an amendment before the plan changes: from the hash ``before`` to the hash and text of ``after``."""
    raw = {
        "format": AMENDMENT_FORMAT, "number": len(earlier) + 1, "date": to_json(now), "reason": reason,
        "fields": fields, "plan_before": {"hash": before, "text": read_text(folder.plan, "plan")},
        "plan_after": {"hash": after[0], "text": after[1]}, "previous": earlier[-1].digest if earlier else "",
    }  # fmt: skip
    write_json(amendment_path(folder, len(earlier) + 1), raw)
    return (*(amendment.digest for amendment in earlier), content_id(raw))


def undo_unfinished(folder: RunFolder, stored: Mapping[str, Any]) -> None:
    """Undo an amendment that was killed before the lock, which is ``stored``, was written."""
    path = amendment_path(folder, len(stored.get("amendments", ())) + 1)
    if path.is_file():
        before = read_json(path, "amendment")["plan_before"]
        if before["hash"] == stored["plan_hash"]:
            write_atomic(folder.plan, before["text"])
        path.unlink()


def amendment_path(folder: RunFolder, number: int) -> Path:
    """Return the path of the amendment with this number."""
    return folder.amendments / f"{number:04d}.json"


def read_amendments(folder: RunFolder, digests: Sequence[str]) -> tuple[Amendment, ...]:
    """Read the amendments that a lock names, in order; raises `LedgerError` if one was edited."""
    amendments: list[Amendment] = []
    for number, digest in enumerate(digests, start=1):
        path = amendment_path(folder, number)
        raw = read_json(path, "amendment")
        if not isinstance(raw, dict) or raw.keys() != _KEYS or raw["format"] != AMENDMENT_FORMAT:
            raise LedgerError(f"{path} is damaged, or of another version: it does not say {AMENDMENT_FORMAT!r}")
        if content_id(raw) != digest:
            raise LedgerError(f"{path} was edited: its sha256 is not the one in {folder.lock}; restore the file")
        before, after = raw["plan_before"]["hash"], raw["plan_after"]["hash"]
        amendments.append(Amendment(raw["number"], raw["date"], raw["reason"], raw["fields"], before, after, digest))
    return tuple(amendments)
