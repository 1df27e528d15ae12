"""Hashes of whole runs: everything behind the command line may be rebuilt, but no computed value may change.

A case is one run, and it lists the artefacts that moved: quantities, tables, fields of the verdicts, the keys of the
planned calls, the prompts. A value is the number of lines that stand for the artefact and the head of their
sha256. A number, a prompt or a plan hash moves only on purpose; then write the hashes anew, and say why in the commit::

    python tests/golden/test_golden.py --write             # all of them, or only the runs that are named after it
    python tests/golden/test_golden.py --dump FOLDER       # the lines themselves: dump before and after, and compare

The plan hash of a season holds the version of assaymark, because the embedded market is part of it: a new version moves
what hangs on it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from golden_reading import artefacts, digest
from golden_runs import RUNS, run

HASHES: Final = Path(__file__).with_name("hashes.json")
PINNED: Final[Mapping[str, Mapping[str, str]]] = json.loads(HASHES.read_text()) if HASHES.exists() else {}


def hashes(folder: Path) -> dict[str, str]:
    """The artefacts of a run, each as its digest."""
    return {name: digest(lines) for name, lines in sorted(artefacts(folder).items())}


@pytest.fixture(scope="module")
def found(once, demo) -> Callable[[str], Mapping[str, str]]:
    """``found(run)``: its hashes, from one run for all cases and workers."""

    def made(name: str) -> Mapping[str, str]:
        def build(folder: Path) -> None:
            if name == "demo":  # which other tests look at as well
                shutil.copytree(demo, folder / "run" / "run")
            run(name, folder / "run")
            (folder / "hashes.json").write_text(json.dumps(hashes(folder / "run")))

        return json.loads((once(f"golden-{name}", build) / "hashes.json").read_text())

    return made


@pytest.mark.parametrize("name", RUNS | PINNED)
def test_a_run_leaves_the_artefacts_that_are_pinned_as_they_were_and_no_others(found, name):
    now, pinned = found(name), PINNED[name]
    moved = [f"{one} was {pinned.get(one)} and is {now.get(one)}" for one in sorted(now.keys() | pinned.keys())
             if now.get(one) != pinned.get(one)]  # fmt: skip
    assert not moved, "\n".join([f"{len(moved)} of {len(pinned)} artefacts of {name} moved:", *moved])


def test_a_run_in_another_folder_leaves_the_same(found, tmp_path):
    run("scores", tmp_path / "elsewhere" / "deeper")
    assert hashes(tmp_path / "elsewhere" / "deeper") == found("scores")


def write(names: list[str]) -> None:
    """Do the runs, and write their hashes in the place of those before."""
    with TemporaryDirectory() as scratch:
        for name in names:
            run(name, Path(scratch) / name)
        made = {name: hashes(Path(scratch) / name) for name in names}
    kept = {name: pinned for name, pinned in PINNED.items() if name in RUNS}
    HASHES.write_text(json.dumps(kept | made, indent=1, sort_keys=True) + "\n")


def dump(folder: Path) -> None:
    """Do the runs, and write the lines that are hashed, one file an artefact."""
    with TemporaryDirectory() as scratch:
        for name in RUNS:
            run(name, Path(scratch) / name)
            for artefact, lines in artefacts(Path(scratch) / name).items():
                path = folder / name / f"{artefact.replace('*', 'all')}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[1] / "importers"))  # where pytest has it already
    match sys.argv[1:]:
        case ["--write", *names] if set(names) <= RUNS.keys():
            write(names or list(RUNS))
        case ["--dump", where]:
            dump(Path(where).resolve())
        case _:
            sys.exit(f"use: test_golden.py --write [{'|'.join(RUNS)}]..., or --dump FOLDER")
