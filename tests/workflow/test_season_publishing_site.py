"""The folder of a site: replaced whole or not at all, and files of others are not touched."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assaymark.errors import InputError, PlanError
from assaymark.workflow import MANIFEST, replace_site

SPRING = {"format": "assaymark season site 1", "season": "spring", "plan_hash": "f" * 64, "files": []}


def written(site: Path, make: Callable[[Path], None] | None = None, **texts: str) -> tuple[Path, ...]:
    """The site of spring, written with pages whose names have ``_`` for the slash."""

    def pages(folder: Path) -> None:
        for name, text in texts.items():
            path = folder / f"{name.replace('_', '/')}.html"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return replace_site(site, "spring", "f" * 64, make or pages)


def held(site: Path) -> Mapping[str, bytes]:
    return {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def test_a_site_written_twice_is_the_same_bytes_and_only_its_own_pages_go(tmp_path):
    site = tmp_path / "some" / "site"
    assert written(site, index="a", de_index="b") == (site / "de" / "index.html", site / "index.html")
    before = held(site)
    assert set(before) == {"index.html", "de/index.html", MANIFEST}
    written(site, index="a", de_index="b")
    assert held(site) == before
    (site / "CNAME").write_text("season.example")
    written(site, index="x", agents_two="d")
    assert set(held(site)) == {"index.html", "agents/two.html", "CNAME", MANIFEST}
    assert not (site / "de").exists()
    assert (site / "index.html").read_text() == "x"


def test_a_page_that_cannot_be_made_leaves_the_site_as_it_was(tmp_path):
    def failing(folder: Path) -> None:
        (folder / "index.html").write_text("half")
        raise ValueError("no")

    site = tmp_path / "site"
    with pytest.raises(ValueError, match="no"):
        written(site, failing)
    assert not site.exists()
    written(site, index="a")
    before = held(site)
    with pytest.raises(ValueError, match="no"):
        written(site, failing)
    assert held(site) == before


@pytest.mark.parametrize(
    ("manifest", "what"),
    [
        (None, "contains something other than a site"), ("{", "contains something other than a site of assaymark"),
        ("[]", "contains something other than a site of assaymark"),
        (json.dumps({**SPRING, "season": "autumn"}), "contains another site"),
        (json.dumps({**SPRING, "plan_hash": "0" * 64}), "contains another site"),
    ],
)  # fmt: skip
def test_a_folder_that_holds_something_else_is_refused_and_left_alone(tmp_path, manifest, what):
    (tmp_path / "thesis.txt").write_text("years of work")
    if manifest is not None:
        (tmp_path / MANIFEST).write_text(manifest)
    before = held(tmp_path)
    with pytest.raises(InputError, match=what):
        written(tmp_path, index="a")
    with pytest.raises(InputError, match="contains something other"):  # a file in the place of the folder
        written(tmp_path / "thesis.txt", index="a")
    with pytest.raises(PlanError, match="cannot be made a folder"):
        written(tmp_path / "thesis.txt" / "below", index="a")
    assert held(tmp_path) == before


def test_a_site_that_was_killed_in_the_midst_of_it_is_gone_on_with(tmp_path):
    class Killed(BaseException):
        pass

    def leaving(folder: Path) -> None:
        (folder / "index.html").write_text("half")
        kept.update(held(tmp_path))
        raise Killed

    kept: dict[str, bytes] = {}
    with pytest.raises(Killed):
        written(tmp_path, leaving)
    assert list(tmp_path.iterdir()) == []
    for name, data in kept.items():  # as a kill leaves it
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    written(tmp_path, index="a")
    assert set(held(tmp_path)) == {"index.html", MANIFEST}


def test_an_edited_manifest_removes_nothing_outside_of_the_site(tmp_path):
    other, site = tmp_path / "other.txt", tmp_path / "site"
    other.write_text("mine")
    written(site, index="a")
    manifest = json.loads((site / MANIFEST).read_text())
    manifest["files"] += ["../other.txt", str(other), 3]
    (site / MANIFEST).write_text(json.dumps(manifest))
    written(site, index="a")
    assert other.read_text() == "mine"
