"""Several runs as one site: made again it is the same, what is no run is refused, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from outline import read

from assaymark.cli import main
from assaymark.errors import AssayError, InputError
from assaymark.workflow import RunFolder, join_runs


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
    joined, own_run, sheets, tmp_path, capsys
):
    words = ["report", str(own_run), str(sheets), "--title", "Two runs", "--calls", "none", "--json"]
    site = tmp_path / "site"
    assert main([*words, "--out", str(site)]) == 0
    assert '"kind":"judges"' in capsys.readouterr().out
    assert files(site) == files(joined)
    join_runs([RunFolder(sheets)], site)
    assert not (site / "run").exists()
    assert (site / "our-judges" / "datasheets.html").is_file()


def test_all_that_is_no_run_is_said_at_once_and_nothing_is_written(own_run, sheets, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    site, locked = tmp_path / "site", tmp_path / "locked"
    with pytest.raises(InputError) as caught:
        join_runs([RunFolder(path) for path in (own_run, own_run, tmp_path / "empty", tmp_path / "gone")], site)
    for what in ("is named twice", "is no run folder", "does not exist"):
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
    assert main(["report", str(own_run), str(sheets)]) == 2
    assert "--out SITE" in capsys.readouterr().err


def test_a_folder_of_datasheets_is_reported_anew_and_a_site_without_calls_has_none(sheets, own_run, tmp_path, capsys):
    before = files(sheets / "report")
    (sheets / "report" / "datasheets.html").unlink()
    assert main(["report", str(sheets)]) == 0
    assert files(sheets / "report") == before
    assert "datasheets.html" in capsys.readouterr().out
    assert main(["report", str(own_run), "--out", str(tmp_path / "site"), "--calls", "none"]) == 0
    assert (tmp_path / "site" / "run" / "judgments" / "index.html").is_file()
    assert not (tmp_path / "site" / "run" / "calls").exists()
