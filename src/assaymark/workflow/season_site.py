"""The folder of a site: written beside it first, then put in its place; nothing that is not ours is touched."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from assaymark.errors import InputError, LedgerError, Problem
from assaymark.workflow.folder import json_text, new_folder, read_json, write_atomic

MANIFEST: Final = "site.json"
"""The file of a site that says what it shows and which of its files are ours."""

FORMAT: Final = "assaymark season site 1"

_NEW = ".new-"


def replace_site(site: Path, season: str, plan_hash: str, write: Callable[[Path], object]) -> tuple[Path, ...]:
    """Make ``site`` hold the pages that ``write`` makes in an empty folder; returns where they lie now.

    Pages of an earlier time that are no longer made are removed. Files that somebody else put beside them stay.

    Raises
    ------
    InputError
        The folder holds something else: files and no site, or the site of another season or plan.
    PlanError
        It cannot be made.
    """
    earlier = site_files(site, season, plan_hash)

    def say(files: Iterable[str]) -> None:
        about = {"format": FORMAT, "season": season, "plan_hash": plan_hash, "files": sorted(files)}
        write_atomic(site / MANIFEST, json_text(about))

    with _kept(site):
        say(earlier)  # from here on a kill leaves a folder that is known for what it is
        for left in site.glob(f"{_NEW}*"):
            shutil.rmtree(left, ignore_errors=True)
        # beside its place and so on the same disk: a page that cannot be made leaves the site as it was
        with tempfile.TemporaryDirectory(dir=site, prefix=_NEW) as made:
            write(Path(made))
            names = sorted(str(path.relative_to(made)) for path in Path(made).rglob("*") if path.is_file())
            say({*earlier, *names})
            for name in names:
                (site / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(made) / name).replace(site / name)
    _remove(site, set(earlier) - set(names))
    say(names)
    return tuple(site / name for name in names)


@contextmanager
def _kept(site: Path) -> Iterator[None]:
    """Make the folder for the work inside; if that fails, what was not there before is not there after."""
    known = (site / MANIFEST).is_file()
    with new_folder(site):
        try:
            yield
        except BaseException:
            if not known:
                (site / MANIFEST).unlink(missing_ok=True)
            raise


def site_files(site: Path, season: str, plan_hash: str) -> tuple[str, ...]:
    """The files of the site that lies there; none where the folder is empty or not there yet.

    Raises
    ------
    InputError
        As `replace_site`.
    """
    path = site / MANIFEST
    if not path.is_file():
        if site.exists() and (not site.is_dir() or any(site.iterdir())):
            _refuse(site, f"holds something else than a site ({MANIFEST} is not there)")
        return ()
    try:
        stored = read_json(path, "site")
    except LedgerError:
        stored = None
    if not isinstance(stored, dict) or stored.get("format") != FORMAT or not isinstance(stored.get("files"), list):
        _refuse(site, f"holds something else than a site of ours (see its {MANIFEST})")
    if stored.get("season") != season or stored.get("plan_hash") != plan_hash:
        theirs = f"{stored.get('season')!r:.60}, plan {str(stored.get('plan_hash'))[:12]}..."
        _refuse(site, f"holds another site ({theirs}; this one is {season!r}, plan {plan_hash[:12]}...)")
    return tuple(name for name in stored["files"] if isinstance(name, str) and _inside(site, name))


def _refuse(site: Path, what: str) -> None:
    raise InputError("--out", [Problem(str(site), f"{what}; give a new or an empty folder")])


def _inside(site: Path, name: str) -> bool:
    """Whether a name of the manifest, which somebody may have edited, is of a file below the folder."""
    return (site / name).resolve().is_relative_to(site.resolve())


def _remove(site: Path, names: Iterable[str]) -> None:
    """Remove pages, and the folders that they leave empty."""
    for name in names:
        path = site / name
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == site or not folder.is_dir() or any(folder.iterdir()):
                break
            folder.rmdir()
